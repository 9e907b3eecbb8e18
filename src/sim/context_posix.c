/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The portable context: makecontext() begins a stack, _setjmp() and _longjmp() leave and
 * continue it, which spares the system call that swapcontext() makes for the signal mask.
 * Fortified longjmp refuses to jump between stacks, hence the first line.
 */

#undef _FORTIFY_SOURCE

#include "sim/context.h"

#if defined(FK_CONTEXT_POSIX) || !(defined(__x86_64__) || defined(__aarch64__))

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

typedef struct record {
    ucontext_t boot;
    jmp_buf jump;
    bool begun;
} record;

static record host = { .begun = true };

fk_context fk__context_make(void *stack, size_t size, void (*entry)(void))
{
    /* The record lies at the top of the stack it describes. */
    uintptr_t top = ((uintptr_t)stack + size - sizeof(record)) & ~(uintptr_t)63;
    record *r = (record *)top;
    r->begun = false;
    getcontext(&r->boot);
    r->boot.uc_stack.ss_sp = stack;
    r->boot.uc_stack.ss_size = (size_t)(top - (uintptr_t)stack);
    r->boot.uc_link = NULL;
    makecontext(&r->boot, entry, 0);
    return r;
}

void fk__context_swap(fk_context *from, fk_context to)
{
    record *leave = *from != NULL ? *from : &host;
    record *enter = to;
    *from = leave;
    if (_setjmp(leave->jump) != 0) return;
    if (enter->begun) _longjmp(enter->jump, 1);
    enter->begun = true;
    setcontext(&enter->boot);
}

#endif
