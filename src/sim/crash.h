/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_CRASH_H
#define FK_SIM_CRASH_H

/*
 * Turns a crash of the code under test into a failure. Freed memory is filled with a
 * pattern that is no address, so a pointer read from it ends in SIGSEGV; abort() and traps
 * are caught as well. The handler runs on a stack of its own (the crash may be a stack
 * overflow) and calls failed(), which must not return: the fiber is abandoned and the host
 * goes on. On the host itself a crash stays a crash.
 */

typedef void fk_crash_fn(const char *what);

void fk__crash_install(fk_crash_fn *failed);

#endif /* FK_SIM_CRASH_H */
