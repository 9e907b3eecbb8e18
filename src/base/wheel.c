/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An entry for tick t sits on the lowest level whose current turn contains t: the level of the
 * highest group of six bits in which t and wheel->tick differ. So advancing the wheel touches a
 * higher level only when all lower groups wrap to zero, and each entry moves down at most once
 * per level.
 */

#include "base/wheel.h"

enum { SLOT_BITS = 6, SLOT_MASK = FK_WHEEL_SLOTS - 1 };

#define TICK_NEVER ((uint64_t)FK_NEVER >> FK_TICK_SHIFT)

/* Rounded up: a timer is never early. */
static uint64_t tick_of(fk_time deadline)
{
    if (deadline <= 0) return 0;
    uint64_t ns = (uint64_t)deadline;
    return (ns + ((uint64_t)1 << FK_TICK_SHIFT) - 1) >> FK_TICK_SHIFT;
}

void fk__wheel_init(fk_wheel *wheel, fk_time now)
{
    memset(wheel, 0, sizeof(*wheel));
    wheel->tick = (uint64_t)now >> FK_TICK_SHIFT;
    for (int level = 0; level < FK_WHEEL_LEVELS; level++) {
        for (int i = 0; i < FK_WHEEL_SLOTS; i++) {
            fk_wheel_entry *head = &wheel->slot[level][i];
            head->next = head->prev = head;
        }
    }
}

/* earliest: the first tick this entry may still be found at. */
static void place(fk_wheel *wheel, fk_wheel_entry *entry, uint64_t earliest)
{
    uint64_t due = tick_of(entry->deadline);
    if (due < earliest) due = earliest;
    uint64_t differ = due ^ wheel->tick;
    int level = differ == 0 ? 0 : (63 - __builtin_clzll(differ)) / SLOT_BITS;
    uint64_t slot;
    if (level >= FK_WHEEL_LEVELS) {
        /* Beyond the top level's current turn. Near ones keep their slot, which comes up in the
         * next turn; the others go to the slot that comes up last and are placed again then. */
        level = FK_WHEEL_LEVELS - 1;
        uint64_t at = wheel->tick >> (SLOT_BITS * level);
        uint64_t to = due >> (SLOT_BITS * level);
        slot = (to - at < FK_WHEEL_SLOTS ? to : at - 1) & SLOT_MASK;
    } else {
        slot = (due >> (SLOT_BITS * level)) & SLOT_MASK;
    }
    fk_wheel_entry *head = &wheel->slot[level][slot];
    entry->next = head;
    entry->prev = head->prev;
    head->prev->next = entry;
    head->prev = entry;
    wheel->occupied[level] |= (uint64_t)1 << slot;
}

void fk__wheel_add(fk_wheel *wheel, fk_wheel_entry *entry, fk_time deadline)
{
    FK_ASSERT(entry->next == NULL);
    entry->deadline = deadline;
    place(wheel, entry, wheel->tick + 1); /* the current tick's slot has been emptied already */
    wheel->count++;
}

static void unlink_entry(fk_wheel *wheel, fk_wheel_entry *entry)
{
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    if (entry->next == entry->prev) { /* only the list's head is left */
        size_t index = (size_t)(entry->next - &wheel->slot[0][0]);
        wheel->occupied[index / FK_WHEEL_SLOTS] &= ~((uint64_t)1 << (index % FK_WHEEL_SLOTS));
    }
    entry->next = entry->prev = NULL;
}

void fk__wheel_remove(fk_wheel *wheel, fk_wheel_entry *entry)
{
    FK_ASSERT(entry->next != NULL);
    FK_ASSERT(wheel->count > 0);
    unlink_entry(wheel, entry);
    wheel->count--;
}

/* The first tick after wheel->tick at which a slot of this level comes up. */
static uint64_t level_next(const fk_wheel *wheel, int level)
{
    uint64_t bits = wheel->occupied[level];
    if (bits == 0) return TICK_NEVER;
    int shift = SLOT_BITS * level;
    uint64_t turn = wheel->tick >> shift;
    unsigned at = (unsigned)(turn & SLOT_MASK);
    /* Rotate so that bit 0 is the slot after the current one. */
    unsigned by = (at + 1) & SLOT_MASK;
    uint64_t rotated = by == 0 ? bits : (bits >> by) | (bits << (FK_WHEEL_SLOTS - by));
    uint64_t ahead = (uint64_t)__builtin_ctzll(rotated) + 1;
    return (turn + ahead) << shift;
}

static uint64_t next_tick(const fk_wheel *wheel)
{
    uint64_t first = TICK_NEVER;
    for (int level = 0; level < FK_WHEEL_LEVELS; level++) {
        uint64_t tick = level_next(wheel, level);
        if (tick < first) first = tick;
    }
    return first;
}

/* Moves the entries of the slots that come up at wheel->tick to lower levels; what is due at this
 * very tick goes to level 0's current slot. */
static void cascade(fk_wheel *wheel)
{
    for (int level = FK_WHEEL_LEVELS - 1; level > 0; level--) {
        int shift = SLOT_BITS * level;
        if ((wheel->tick & (((uint64_t)1 << shift) - 1)) != 0) continue;
        fk_wheel_entry *head = &wheel->slot[level][(wheel->tick >> shift) & SLOT_MASK];
        while (head->next != head) {
            fk_wheel_entry *entry = head->next;
            unlink_entry(wheel, entry);
            place(wheel, entry, wheel->tick);
        }
    }
}

fk_wheel_entry *fk__wheel_take(fk_wheel *wheel, fk_time now)
{
    uint64_t target = (uint64_t)now >> FK_TICK_SHIFT;
    for (;;) {
        fk_wheel_entry *head = &wheel->slot[0][wheel->tick & SLOT_MASK];
        if (head->next != head) {
            fk_wheel_entry *entry = head->next;
            unlink_entry(wheel, entry);
            wheel->count--;
            return entry;
        }
        uint64_t next = wheel->count == 0 ? TICK_NEVER : next_tick(wheel);
        if (next > target) {
            if (target > wheel->tick) wheel->tick = target;
            return NULL;
        }
        wheel->tick = next;
        cascade(wheel);
    }
}

fk_time fk__wheel_next(const fk_wheel *wheel)
{
    if (wheel->count == 0) return FK_NEVER;
    uint64_t tick = next_tick(wheel);
    return tick >= TICK_NEVER ? FK_NEVER : (fk_time)(tick << FK_TICK_SHIFT);
}

void fk__wheel_check(const fk_wheel *wheel)
{
    uint64_t count = 0;
    for (int level = 0; level < FK_WHEEL_LEVELS; level++) {
        for (int i = 0; i < FK_WHEEL_SLOTS; i++) {
            const fk_wheel_entry *head = &wheel->slot[level][i];
            bool marked = (wheel->occupied[level] >> i & 1) != 0;
            FK_ASSERT(marked == (head->next != head));
            for (const fk_wheel_entry *e = head->next; e != head; e = e->next) {
                FK_ASSERT(e->next->prev == e);
                count++;
            }
        }
    }
    FK_ASSERT(count == wheel->count);
}
