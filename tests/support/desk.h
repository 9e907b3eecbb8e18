/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_DESK_H
#define FK_TESTS_SUPPORT_DESK_H

/*
 * A desk: a table of authorities with one authority, sys@host:2552, letters to send to it, and a
 * clock. Every call walks the table's invariants, and no transition outside the graph of
 * remote/authority.h passes.
 */

#include "remote/authority.h"
#include "support/rig.h"

/* Short, because tests are full of them. */
#define UNRESOLVED FK_ASSOCIATION_UNRESOLVED
#define CONNECTED  FK_ASSOCIATION_CONNECTED
#define QUARANTINE FK_ASSOCIATION_QUARANTINE
#define DONE       FK_AUTHORITY_RESULT_DONE

enum { DESK_LETTERS = 10000 };

#define DESK_KEY                                                                                   \
    ((fk_authority_key){ .system = FK_STR("sys"), .host = FK_STR("host"), .port = 2552 })

typedef struct desk_letter {
    fk_envelope link;
    uint32_t number; /* from 0, as they are sent */
} desk_letter;

typedef struct desk {
    rig r;
    fk_mem mem;
    fk_authority_table table;
    fk_time now;
    fk_authority *a;
    fk_authority_effects fx; /* of the last call that has them */
    uint32_t sent;           /* letters used up */
    desk_letter letters[DESK_LETTERS];
} desk;

/* The authority is Unresolved and has no mapping. */
void desk_init(desk *d, const fk_authority_config *config);
/* Ends the table; asserts that not a byte is left. Returns the envelopes that were. */
uint32_t desk_fini(desk *d);

fk_authority_result desk_step(desk *d, fk_authority_event event);
fk_authority_result desk_handshake(desk *d, uint64_t uid);
fk_authority_result desk_tell(desk *d, fk_authority_event_kind kind, uint64_t uid);
fk_authority_result desk_failed(desk *d);
fk_authority_result desk_override(desk *d, bool force);
void desk_map(desk *d);
/* Begins the attempt that is due. */
void desk_attempt(desk *d);
/* Moves the clock to the next deadline and ticks, once. */
void desk_tick(desk *d);
/* Ticks until nothing is due at that later time; returns how often. */
uint32_t desk_pass(desk *d, fk_time by);
/* Maps and shakes hands; nothing may be deferred. */
void desk_open(desk *d, uint64_t uid);
/* Open, then quarantined with that uid. */
void desk_quarantined(desk *d, uint64_t uid);

/* Sends the next letter; *is_deferred may be NULL. */
fk_err desk_send(desk *d, bool *is_deferred);
/* Sends so many, which must all be deferred. */
void desk_defer(desk *d, uint32_t count);
/* Takes everything, in batches of that many; it must be the letters from first on. */
void desk_drain(desk *d, uint32_t batch, uint32_t first, uint32_t count);
/* The list must be the letters from first on. */
void desk_check_letters(const fk_envelopes *list, uint32_t first, uint32_t count);
void desk_check_change(const desk *d, fk_association from, fk_association to,
                       fk_authority_reason reason);

#endif /* FK_TESTS_SUPPORT_DESK_H */
