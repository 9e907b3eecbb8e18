/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A context is its stack pointer; the registers that a C call preserves lie on its stack.
 * The first switch to a fresh context "returns" into a short piece of code that calls the
 * entry function with the stack aligned as the ABI wants and with an end-of-stack mark for
 * debuggers. The offsets used by fk__context_make() are those of the pops.
 */

#include "sim/context.h"

#include <stdint.h>

#if !defined(FK_CONTEXT_POSIX) && defined(__x86_64__)

enum { FRAME_WORDS = 9, FRAME_ENTRY = 4, FRAME_RETURN = 6 };

__asm__(".text\n"
        ".p2align 4\n"
        ".globl fk__context_swap\n"
        ".hidden fk__context_swap\n"
        ".type fk__context_swap, @function\n"
        "fk__context_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fk__context_swap, . - fk__context_swap\n"
        ".globl fk__context_boot\n"
        ".hidden fk__context_boot\n"
        ".type fk__context_boot, @function\n"
        "fk__context_boot:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    callq *%rbx\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size fk__context_boot, . - fk__context_boot\n");

#elif !defined(FK_CONTEXT_POSIX) && defined(__aarch64__)

enum { FRAME_WORDS = 20, FRAME_ENTRY = 0, FRAME_RETURN = 11 };

__asm__(".text\n"
        ".p2align 4\n"
        ".globl fk__context_swap\n"
        ".hidden fk__context_swap\n"
        ".type fk__context_swap, %function\n"
        "fk__context_swap:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size fk__context_swap, . - fk__context_swap\n"
        ".globl fk__context_boot\n"
        ".hidden fk__context_boot\n"
        ".type fk__context_boot, %function\n"
        "fk__context_boot:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    blr x19\n"
        "    brk #1\n"
        "    .cfi_endproc\n"
        ".size fk__context_boot, . - fk__context_boot\n");

#endif

#if !defined(FK_CONTEXT_POSIX) && (defined(__x86_64__) || defined(__aarch64__))

void fk__context_boot(void);

fk_context fk__context_make(void *stack, size_t size, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    uintptr_t *frame = (uintptr_t *)top - FRAME_WORDS;
    for (int i = 0; i < FRAME_WORDS; i++) frame[i] = 0;
    frame[FRAME_ENTRY] = (uintptr_t)entry;
    frame[FRAME_RETURN] = (uintptr_t)fk__context_boot;
    return frame;
}

#endif
