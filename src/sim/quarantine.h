/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_QUARANTINE_H
#define FK_SIM_QUARANTINE_H

/*
 * The heap of one schedule. Freed blocks are filled with 0xDD and never handed out again
 * before fk__quarantine_reset(), so that every later touch can be seen: atomic accesses are
 * looked up here before they happen, and plain writes have damaged the filling at the end.
 * A shadow byte per eight bytes of heap says what may be touched.
 *
 * Addresses depend only on the order of calls, which makes schedules repeatable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fk_quarantine_state {
    FK_QUARANTINE_OUTSIDE, /* never part of a block */
    FK_QUARANTINE_LIVE,
    FK_QUARANTINE_FREED,
    FK_QUARANTINE_POISONED, /* part of a live block, marked by its owner */
} fk_quarantine_state;

#define FK_QUARANTINE_FILL_NEW  0xCC
#define FK_QUARANTINE_FILL_FREE 0xDD
#define FK_QUARANTINE_GRANULE   8u
#define FK_QUARANTINE_SIZE      ((size_t)64 * 1024 * 1024)

/* Shown here only for the inline test below. */
extern unsigned char *fk__quarantine_base;
extern unsigned char *fk__quarantine_shadow;
extern size_t fk__quarantine_used;

/* Forgets all blocks. */
void fk__quarantine_reset(void);

/* size bytes aligned to 16 and filled with 0xCC; ends the program when 64 MiB are used up. */
void *fk__quarantine_alloc(size_t size);

/* NULL, or why the block cannot be freed: "double free", "free of a wild pointer", "free with
 * the wrong size". Addresses of a freed block stay dead until the reset. */
const char *fk__quarantine_free(void *ptr, size_t size);

/* Blocks from now on are that owner's; and all of an owner are given up at once, as dead as freed
 * ones but not damaged. Returns their bytes. */
void fk__quarantine_own(uint8_t owner);
size_t fk__quarantine_abandon(uint8_t owner);

/* Marks a part of a live block as not to be touched by atomic accesses, and back: for pools that
 * recycle memory themselves. Only whole granules of 8 bytes inside the range are marked. */
void fk__quarantine_poison(void *ptr, size_t size);
void fk__quarantine_unpoison(void *ptr, size_t size);

/* NULL, or what is wrong at the end of a schedule: "leak" or "write after free". */
const char *fk__quarantine_end(void);

/* The block that holds address: its number counting from 0, and the offset in it. False when
 * address never belonged to a block of this schedule. */
bool fk__quarantine_find(const void *address, uint32_t *index, size_t *offset);

static inline bool fk__quarantine_holds(const void *address)
{
    return (size_t)((uintptr_t)address - (uintptr_t)fk__quarantine_base) < fk__quarantine_used;
}

/* Whether an atomic access to address is allowed; memory outside the heap always is. */
static inline bool fk__quarantine_is_ok(const void *address)
{
    if (!fk__quarantine_holds(address)) return true;
    size_t at = (size_t)((uintptr_t)address - (uintptr_t)fk__quarantine_base);
    return fk__quarantine_shadow[at / FK_QUARANTINE_GRANULE] == FK_QUARANTINE_LIVE;
}

#endif /* FK_SIM_QUARANTINE_H */
