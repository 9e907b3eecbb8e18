/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The near ring is a window: slot t % FK_WHEEL_NEAR holds what is due at tick t, for every t from
 * the current tick to a ring's length ahead. Beyond it an entry sits on the lowest level whose
 * current turn contains its tick: the level of the highest group of six bits in which that tick and
 * wheel->tick differ. So advancing touches a level only when everything below it wraps to zero, and
 * each entry moves down at most once per level.
 */

#include "base/wheel.h"

enum { NEAR_MASK = FK_WHEEL_NEAR - 1, SLOT_BITS = 6, SLOT_MASK = FK_WHEEL_SLOTS - 1 };

_Static_assert(FK_WHEEL_NEAR % 64 == 0 && FK_WHEEL_NEAR <= 64 * 64, "one word of words");

#define TICK_NEVER ((uint64_t)FK_NEVER >> FK_TICK_SHIFT)

static int level_shift(int level)
{
    return FK_WHEEL_NEAR_BITS + SLOT_BITS * level;
}

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
    for (uint32_t i = 0; i < FK_WHEEL_NEAR; i++) {
        wheel->near[i].next = wheel->near[i].prev = &wheel->near[i];
    }
    for (int level = 0; level < FK_WHEEL_LEVELS; level++) {
        for (int i = 0; i < FK_WHEEL_SLOTS; i++) {
            fk_wheel_link *head = &wheel->slot[level][i];
            head->next = head->prev = head;
        }
    }
}

static void link_append(fk_wheel_link *head, fk_wheel_link *link)
{
    link->next = head;
    link->prev = head->prev;
    head->prev->next = link;
    head->prev = link;
}

static void place_far(fk_wheel *wheel, fk_wheel_entry *entry, uint64_t due)
{
    uint64_t differ = due ^ wheel->tick;
    int level = (63 - __builtin_clzll(differ) - FK_WHEEL_NEAR_BITS) / SLOT_BITS;
    if (level >= FK_WHEEL_LEVELS) level = FK_WHEEL_LEVELS - 1;
    uint64_t at = wheel->tick >> level_shift(level);
    uint64_t to = due >> level_shift(level);
    /* Beyond the top level's reach: to the slot that comes up last, and placed again then. */
    uint64_t slot = (to - at < FK_WHEEL_SLOTS ? to : at - 1) & SLOT_MASK;
    link_append(&wheel->slot[level][slot], &entry->link);
    wheel->occupied[level] |= (uint64_t)1 << slot;
}

/* earliest: the first tick this entry may still be found at. */
static void place(fk_wheel *wheel, fk_wheel_entry *entry, uint64_t earliest)
{
    uint64_t due = tick_of(entry->deadline);
    if (due < earliest) due = earliest;
    if (due - wheel->tick >= FK_WHEEL_NEAR) {
        place_far(wheel, entry, due);
        return;
    }
    uint32_t slot = (uint32_t)(due & NEAR_MASK);
    link_append(&wheel->near[slot], &entry->link);
    wheel->near_occupied[slot / 64] |= (uint64_t)1 << (slot % 64);
    wheel->near_words |= (uint64_t)1 << (slot / 64);
}

void fk__wheel_add(fk_wheel *wheel, fk_wheel_entry *entry, fk_time deadline)
{
    FK_ASSERT(entry->link.next == NULL);
    entry->deadline = deadline;
    place(wheel, entry, wheel->tick + 1); /* the current tick's slot has been emptied already */
    wheel->count++;
}

static void mark_empty(fk_wheel *wheel, const fk_wheel_link *head)
{
    if (head >= &wheel->near[0] && head < &wheel->near[FK_WHEEL_NEAR]) {
        size_t slot = (size_t)(head - &wheel->near[0]);
        wheel->near_occupied[slot / 64] &= ~((uint64_t)1 << (slot % 64));
        if (wheel->near_occupied[slot / 64] == 0) {
            wheel->near_words &= ~((uint64_t)1 << (slot / 64));
        }
        return;
    }
    size_t index = (size_t)(head - &wheel->slot[0][0]);
    wheel->occupied[index / FK_WHEEL_SLOTS] &= ~((uint64_t)1 << (index % FK_WHEEL_SLOTS));
}

static void take_out(fk_wheel *wheel, fk_wheel_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    if (link->next == link->prev) mark_empty(wheel, link->next); /* only the list's head is left */
    link->next = link->prev = NULL;
}

void fk__wheel_remove(fk_wheel *wheel, fk_wheel_entry *entry)
{
    FK_ASSERT(entry->link.next != NULL);
    FK_ASSERT(wheel->count > 0);
    take_out(wheel, &entry->link);
    wheel->count--;
}

/* Rotated so that bit 0 is bit `by`: then the lowest bit is the next one, going round. */
static uint64_t rotate_down(uint64_t bits, unsigned by)
{
    return by == 0 ? bits : (bits >> by) | (bits << (64 - by));
}

/* The first tick after wheel->tick whose near slot has something. */
static uint64_t near_next(const fk_wheel *wheel)
{
    uint32_t from = (uint32_t)((wheel->tick + 1) & NEAR_MASK);
    uint32_t word = from / 64;
    if (wheel->near_words == 0) return TICK_NEVER;
    uint64_t bits = wheel->near_occupied[word] >> (from % 64);
    if (bits != 0) return wheel->tick + 1 + (uint64_t)__builtin_ctzll(bits);
    /* The words after it, going round; this one, below `from`, comes last. */
    const uint32_t words = FK_WHEEL_NEAR / 64;
    uint32_t found = word;
    for (uint32_t i = 1; i <= words; i++) {
        found = (word + i) % words;
        if ((wheel->near_words >> found & 1) != 0) break;
    }
    uint32_t slot = found * 64 + (uint32_t)__builtin_ctzll(wheel->near_occupied[found]);
    return wheel->tick + 1 + ((slot - from) & NEAR_MASK);
}

/* The first tick after wheel->tick at which a slot of this level comes up. */
static uint64_t level_next(const fk_wheel *wheel, int level)
{
    if (wheel->occupied[level] == 0) return TICK_NEVER;
    uint64_t turn = wheel->tick >> level_shift(level);
    unsigned by = (unsigned)((turn + 1) & SLOT_MASK); /* the slot after the current one */
    uint64_t ahead = (uint64_t)__builtin_ctzll(rotate_down(wheel->occupied[level], by)) + 1;
    return (turn + ahead) << level_shift(level);
}

static uint64_t next_tick(const fk_wheel *wheel)
{
    uint64_t first = near_next(wheel);
    for (int level = 0; level < FK_WHEEL_LEVELS; level++) {
        uint64_t tick = level_next(wheel, level);
        if (tick < first) first = tick;
    }
    return first;
}

/* Moves the entries of the slots that come up at wheel->tick to lower levels; what is due at this
 * very tick goes to the near ring's current slot. */
static void cascade(fk_wheel *wheel)
{
    for (int level = FK_WHEEL_LEVELS - 1; level >= 0; level--) {
        int shift = level_shift(level);
        if ((wheel->tick & (((uint64_t)1 << shift) - 1)) != 0) continue;
        fk_wheel_link *head = &wheel->slot[level][(wheel->tick >> shift) & SLOT_MASK];
        while (head->next != head) {
            fk_wheel_link *link = head->next;
            take_out(wheel, link);
            place(wheel, FK_CONTAINER(link, fk_wheel_entry, link), wheel->tick);
        }
    }
}

fk_wheel_entry *fk__wheel_take(fk_wheel *wheel, fk_time now)
{
    uint64_t target = (uint64_t)now >> FK_TICK_SHIFT;
    for (;;) {
        fk_wheel_link *head = &wheel->near[wheel->tick & NEAR_MASK];
        if (head->next != head) {
            fk_wheel_link *link = head->next;
            __builtin_prefetch(link->next);
            take_out(wheel, link);
            wheel->count--;
            return FK_CONTAINER(link, fk_wheel_entry, link);
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

static uint64_t check_list(const fk_wheel_link *head, bool marked)
{
    uint64_t count = 0;
    FK_ASSERT(marked == (head->next != head));
    for (const fk_wheel_link *l = head->next; l != head; l = l->next, count++) {
        FK_ASSERT(l->next->prev == l);
    }
    return count;
}

void fk__wheel_check(const fk_wheel *wheel)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < FK_WHEEL_NEAR; i++) {
        bool word_marked = (wheel->near_words >> (i / 64) & 1) != 0;
        FK_ASSERT(word_marked == (wheel->near_occupied[i / 64] != 0));
        count += check_list(&wheel->near[i], (wheel->near_occupied[i / 64] >> (i % 64) & 1) != 0);
    }
    for (int level = 0; level < FK_WHEEL_LEVELS; level++) {
        for (int i = 0; i < FK_WHEEL_SLOTS; i++) {
            count += check_list(&wheel->slot[level][i], (wheel->occupied[level] >> i & 1) != 0);
        }
    }
    FK_ASSERT(count == wheel->count);
}
