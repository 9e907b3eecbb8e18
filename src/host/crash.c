/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Last words. A wild pointer in an actor ends the process; with these handlers it says first which
 * actor that was. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/children.h"
#include "core/path.h"
#include "host/host.h"

_Thread_local fk_worker *fk__host_worker;

enum { CRASH_DEPTH = 64, CRASH_LINE = 1024 };

static const int CRASHES[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
enum { CRASH_COUNT = sizeof(CRASHES) / sizeof(CRASHES[0]) };

static struct sigaction before[CRASH_COUNT];
static fk_half crash_fd; /* plus one; 0: nobody asked */

/* Without locks: whoever crashed may hold one. Ancestors of an actor at work are alive, and their
 * names stay; at worst a name is read while its text is being replaced. */
static void put_path(fk_text *line, const fk_system *sys, const fk_cell *cell)
{
    const fk_cell *way[CRASH_DEPTH];
    char generated[FK_AUTONAME_MAX], number[24];
    uint32_t depth = 0;
    const fk_cell *at = cell;
    for (; at != NULL && fk__cell_parent(at) != NULL && depth < CRASH_DEPTH; depth++) {
        way[depth] = at;
        at = fk__cell_parent(at);
    }
    fk__text_put(line, (fk_str){ sys->address_text, sys->address_len });
    if (depth == CRASH_DEPTH) fk__text_put(line, FK_STR("/..."));
    while (depth > 0) {
        fk__text_put(line, FK_STR("/"));
        fk__text_put(line, fk__label_text(way[--depth]->label, generated));
    }
    fk_text uid = { number, sizeof(number), 0 };
    fk_path path = { .uid = cell->uid, .rules = (uint8_t)sys->paths.rules };
    fk__text_uid(&uid, &path);
    fk__text_put(line, (fk_str){ number, uid.len < sizeof(number) ? uid.len : sizeof(number) });
}

static void put_crash(fk_text *line, int index, const fk_worker *worker)
{
    static const char *const NAMES[CRASH_COUNT] = { "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL",
                                                    "SIGABRT" };
    const fk_ctx *ctx = &worker->ctx;
    fk__text_put(line, FK_STR("fraktor: "));
    fk__text_put(line, fk_str_of(NAMES[index]));
    fk__text_put(line, FK_STR(" in actor "));
    put_path(line, worker->sys, ctx->cell);
    if (ctx->node == NULL) {
        fk__text_put(line, FK_STR(", in a hook\n"));
        return;
    }
    fk__text_put(line, FK_STR(", handling a message of type "));
    fk__text_put(line, fk_str_of(ctx->msg.type->name));
    fk__text_put(line, FK_STR("\n"));
}

/* Afterwards it happens again, and nobody is there to stop it: whoever handled it before, or the
 * kernel. */
static void on_crash(int number)
{
    int error = errno;
    char buf[CRASH_LINE];
    fk_text line = { buf, sizeof(buf), 0 };
    const fk_worker *worker = fk__host_worker;
    int index = 0;
    while (index < CRASH_COUNT - 1 && CRASHES[index] != number) index++;
    sigaction(number, &before[index], NULL);
    if (worker != NULL && worker->ctx.cell != NULL) {
        put_crash(&line, index, worker);
        size_t len = line.len < sizeof(buf) ? line.len : sizeof(buf);
        int fd = (int)fk__half_load(&crash_fd, FK_RELAXED) - 1;
        ssize_t ignored = write(fd, buf, len);
        (void)ignored;
    }
    errno = error;
}

fk_err fk_host_report_crashes(int fd)
{
    struct sigaction action;
    if (fd < 0) return FK_E_INVALID;
    uint32_t first = fk__half_swap(&crash_fd, (uint32_t)fd + 1, FK_ACQ_REL);
    if (first != 0) return FK_OK; /* only the descriptor is new */
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_crash;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CRASH_COUNT; i++) {
        if (sigaction(CRASHES[i], &action, &before[i]) != 0) return FK_E_OS;
    }
    return FK_OK;
}
