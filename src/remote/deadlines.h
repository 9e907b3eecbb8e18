/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_DEADLINES_H
#define FK_REMOTE_DEADLINES_H

/*
 * Deadlines in order: a binary heap whose entries know where they are. Not the timer wheel of
 * base/wheel.h: that one takes 70 KiB and rounds to a millisecond, which is right for a million
 * timers; here are a few thousand at most, and the simulator has hundreds of these.
 *
 * The array belongs to the owner, who makes room before an entry first needs it: setting a
 * deadline cannot fail.
 */

#include "base/base.h"

#define FK_DEADLINE_OUT UINT32_MAX

typedef struct fk_deadline {
    fk_time at;     /* FK_NEVER when it is not in the heap */
    uint32_t index; /* FK_DEADLINE_OUT when it is not */
} fk_deadline;

typedef struct fk_deadlines {
    fk_deadline **heap;
    uint32_t count;
    uint32_t capacity;
} fk_deadlines;

#define FK_DEADLINE_INIT ((fk_deadline){ FK_NEVER, FK_DEADLINE_OUT })

/* Puts it in, moves it, or with FK_NEVER takes it out. */
void fk__deadline_set(fk_deadlines *deadlines, fk_deadline *entry, fk_time at);
void fk__deadlines_check(const fk_deadlines *deadlines);

/* The earliest one, or NULL. */
static inline fk_deadline *fk__deadlines_first(const fk_deadlines *deadlines)
{
    return deadlines->count != 0 ? deadlines->heap[0] : NULL;
}

#endif /* FK_REMOTE_DEADLINES_H */
