/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_CONTEXT_H
#define FK_SIM_CONTEXT_H

/*
 * A context is a stack that can be left and continued: the machine-dependent part of a
 * fiber. context_asm.c knows x86-64 and AArch64; context_posix.c does the rest with
 * makecontext and _setjmp, and everything when FK_CONTEXT_POSIX is defined. Both keep
 * floating-point control words and the signal mask as they are.
 */

#include <stddef.h>

/* What to continue; NULL for the host's own stack, which is filled in when it is left. */
typedef void *fk_context;

/* A context that calls entry(), which must not return, at the top of the given stack. */
fk_context fk__context_make(void *stack, size_t size, void (*entry)(void));

/* Leaves the current context in *from and continues to. */
void fk__context_swap(fk_context *from, fk_context to);

#endif /* FK_SIM_CONTEXT_H */
