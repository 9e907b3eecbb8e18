/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_GUARD_H
#define FK_TESTS_SUPPORT_GUARD_H

/*
 * Text between two pages that nobody may touch: a read past its end, or a write past a buffer's,
 * is a crash and not luck.
 */

#include "fraktor/base.h"

enum { GUARD_MAX = 2 << 20 };

/* A copy whose last byte is the last of its page. Lives until the next call. */
fk_str guard_text(fk_str text);
/* A buffer whose last byte is the last of its page; not the page of guard_text(). */
char *guard_buffer(size_t size);

#endif /* FK_TESTS_SUPPORT_GUARD_H */
