/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_PLACING_H
#define FK_TESTS_SUPPORT_PLACING_H

/*
 * A coordinator under test, and a driver that does nothing by itself: commands, events and
 * settlements are written down, and the test answers what it likes.
 */

#include "fraktor/placement.h"
#include "support/rig.h"

enum { PLACING_MAX = 8192, PLACING_SLOTS = 16, PLACING_TEXT = 64 };

typedef struct placing_command {
    fk_placement_command c; /* its texts point into this struct */
    fk_slot_claim slots[PLACING_SLOTS];
    char kind[PLACING_TEXT], key[PLACING_TEXT], holder[PLACING_TEXT], to[PLACING_TEXT];
    bool is_answered;
} placing_command;

typedef struct placing_event {
    fk_placement_event e;
    char kind[PLACING_TEXT], key[PLACING_TEXT], authority[PLACING_TEXT], reason[PLACING_TEXT];
} placing_event;

typedef struct placing_end {
    uint64_t ticket;
    fk_resolution r;
    char authority[PLACING_TEXT];
} placing_end;

typedef struct placing {
    rig r;
    fk_placement *p;
    fk_time now;
    uint64_t epoch; /* the last that was granted */
    uint64_t pid;   /* the last that was made up */
    placing_command command[PLACING_MAX];
    placing_event event[PLACING_MAX];
    placing_end end[PLACING_MAX];
    size_t commands, events, ends, discards;
    void *discarded;   /* the last one */
    fk_resolution got; /* by the last placing_resolve() */
} placing;

extern const fk_activated_kind PLACING_ACCOUNT; /* durable */
extern const fk_activated_kind PLACING_ROOM;    /* not; idle after a minute */

/* A coordinator with PLACING_SLOTS slots, not started. Zeros of `config` are defaults. */
void placing_begin(placing *s, fk_placement_config config);
/* Destroys it and asserts that no byte is left. */
void placing_end_all(placing *s);

/* Both kinds, and started as "a" with incarnation 1; no view yet. */
void placing_member(placing *s);
/* A view of members that are UP, have both kinds and weight 1: "a", "b", ... by their letters; a
 * letter in upper case is DRAINING. Their incarnations are 1. */
fk_err placing_view(placing *s, uint64_t version, const char *letters);
/* Member "a" of a view of itself, with all slots held. */
void placing_alone(placing *s);

fk_grain_key placing_key(const char *kind, const char *key);
/* A key of that kind whose slot the table gives to that member; number: another each. */
fk_grain_key placing_key_of(placing *s, const char *kind, const char *owner, unsigned number);
fk_err placing_resolve(placing *s, fk_grain_key key, uint64_t ticket);
fk_err placing_tick(placing *s, fk_time by);

/* The first command of that kind that has no answer, or NULL. */
placing_command *placing_next(placing *s, fk_command_kind kind);
size_t placing_unanswered(const placing *s, fk_command_kind kind);
size_t placing_said(const placing *s, fk_command_kind kind);
/* Answers that one OK: slots are granted under new epochs, a load finds nothing, an activation gets
 * a new pid, a store the next version. */
fk_err placing_ok(placing *s, fk_command_kind kind);
fk_err placing_answer(placing *s, placing_command *command, fk_verdict verdict, fk_err err);
/* Refuses all slots of the next TryAcquire: `holder` has them. */
fk_err placing_refuse(placing *s, const char *holder, uint64_t incarnation);
/* OK to TryAcquire until there is none any more. */
void placing_grant_all(placing *s);
/* Resolves and answers all until it is active; its pid. */
uint64_t placing_activate(placing *s, fk_grain_key key);

size_t placing_happened(const placing *s, fk_placement_event_kind kind);
/* The last of that kind, or NULL. */
const placing_event *placing_last(const placing *s, fk_placement_event_kind kind);
const placing_end *placing_end_of(const placing *s, uint64_t ticket);
fk_placement_snapshot placing_snapshot(const placing *s);

#endif /* FK_TESTS_SUPPORT_PLACING_H */
