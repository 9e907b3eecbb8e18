/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_WHEEL_H
#define FK_BASE_WHEEL_H

/*
 * A hierarchical timer wheel: start and cancel in constant time, whatever the number of timers.
 *
 * Time is cut into ticks of 2^20 ns (1.05 ms); a deadline is rounded up, so an entry is never
 * early and at most one tick plus the caller's own delay late. What is due within the next
 * FK_WHEEL_NEAR ticks (4.3 s) is in the near ring, one slot a tick, and never moves. What is
 * further away is on one of five levels of 64 slots, each slot 64 times as long as one of the level
 * below, and moves down when its slot comes up. They cover 146 years; what is further away waits on
 * the top level and is put back when it comes up.
 *
 * The wheel knows no clock and no lock: both are the owner's.
 */

#include "base/base.h"

#define FK_TICK_SHIFT 20
/* The explorer copies whole systems back and forth: there the ring is short. */
#if defined(FK_SIM)
#define FK_WHEEL_NEAR_BITS 6
#else
#define FK_WHEEL_NEAR_BITS 12
#endif
#define FK_WHEEL_NEAR   (1u << FK_WHEEL_NEAR_BITS)
#define FK_WHEEL_LEVELS 5
#define FK_WHEEL_SLOTS  64

typedef struct fk_wheel_link {
    struct fk_wheel_link *next, *prev; /* NULL when not in a wheel */
} fk_wheel_link;

typedef struct fk_wheel_entry {
    fk_wheel_link link;
    fk_time deadline;
} fk_wheel_entry;

typedef struct fk_wheel {
    uint64_t tick; /* everything due at or before this tick has been taken out */
    uint64_t count;
    uint64_t near_words;                        /* a bit per word of near_occupied that is not 0 */
    uint64_t near_occupied[FK_WHEEL_NEAR / 64]; /* a bit per slot */
    uint64_t occupied[FK_WHEEL_LEVELS];
    /* Lists, linked to themselves when empty. */
    fk_wheel_link near[FK_WHEEL_NEAR];
    fk_wheel_link slot[FK_WHEEL_LEVELS][FK_WHEEL_SLOTS];
} fk_wheel;

void fk__wheel_init(fk_wheel *wheel, fk_time now);
void fk__wheel_add(fk_wheel *wheel, fk_wheel_entry *entry, fk_time deadline);
/* The entry must be in the wheel. */
void fk__wheel_remove(fk_wheel *wheel, fk_wheel_entry *entry);
static inline bool fk__wheel_has(const fk_wheel_entry *entry)
{
    return entry->link.next != NULL;
}
/* Takes one entry whose deadline has passed, or NULL when there is none left. */
fk_wheel_entry *fk__wheel_take(fk_wheel *wheel, fk_time now);
/* A moment by which fk__wheel_take should be called again: no later than the first entry's tick,
 * perhaps earlier. FK_NEVER when the wheel is empty. */
fk_time fk__wheel_next(const fk_wheel *wheel);
void fk__wheel_check(const fk_wheel *wheel);

#endif /* FK_BASE_WHEEL_H */
