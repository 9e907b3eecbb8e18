/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/crash.h"

#include "sim/fiber.h"

#include <signal.h>
#include <stddef.h>

static const int SIGNALS[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT };

static fk_crash_fn *on_crash;
static unsigned char handler_stack[65536];

static const char *describe(int number, const void *address)
{
    if (number == SIGABRT) return "crash: abort";
    if (number == SIGILL || number == SIGTRAP) return "crash: trap";
    if (number == SIGFPE) return "crash: arithmetic";
    return fk__fiber_is_guard(fk__fiber_self(), address) ? "crash: stack overflow"
                                                         : "crash: bad address";
}

/* Leaving the handler by switching stacks is sound here: the signal is not blocked (SA_NODEFER)
 * and its stack is used again from the top by the next one. */
static void handle(int number, siginfo_t *info, void *unused)
{
    (void)unused;
    if (fk__fiber_self() != NULL) on_crash(describe(number, info->si_addr));
    signal(number, SIG_DFL);
    raise(number);
}

void fk__crash_install(fk_crash_fn *failed)
{
    on_crash = failed;
    sigaltstack(&(stack_t){ .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) }, NULL);
    struct sigaction action = { .sa_sigaction = handle,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
        sigaction(SIGNALS[i], &action, NULL);
    }
}
