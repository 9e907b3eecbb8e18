/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_FOLK_H
#define FK_SIM_FOLK_H

/*
 * Who lives where: the ledger of systems and actors of a scenario with many systems. A *house* is one
 * system, the n-th at its station; a *person* is one life of an actor in it. At a station there are
 * always the same names, /user/p0 and so on, whoever has them.
 */

#include "fraktor/system.h"
#include "sim/fact.h"

#define FK_FOLK_STATIONS 4u
#define FK_FOLK_SLOTS    3u
#define FK_FOLK_HOUSES   16u /* one after the other, at one station */
#define FK_FOLK_MAX      1024u

typedef struct fk_house {
    uint64_t uid; /* of the system */
    fk_time built_at, gone_at;
    bool is_ending;
    bool is_gone;
    bool is_crashed;
    bool
        has_refused; /* it has quarantined somebody; while it ends its events say nothing of that */
} fk_house;

typedef struct fk_dweller {
    uint8_t station, slot;
    uint8_t house;
    bool is_spawned; /* the spawn has returned */
    bool is_gone;
    uint32_t lives; /* starts and restarts */
    uint64_t uid;
    fk_ref ref;
    fk_time born_at, gone_at;
} fk_dweller;

typedef struct fk_folk {
    uint32_t count;
    uint8_t houses[FK_FOLK_STATIONS]; /* the present one is the last */
    fk_house house[FK_FOLK_STATIONS][FK_FOLK_HOUSES];
    uint32_t at[FK_FOLK_STATIONS][FK_FOLK_SLOTS];     /* who has the name; FK_NOBODY */
    fk_time left_at[FK_FOLK_STATIONS][FK_FOLK_SLOTS]; /* nobody had the name, the last time */
    fk_dweller person[FK_FOLK_MAX];
} fk_folk;

extern fk_folk fk__folk;

void fk__folk_begin(void);
/* A system begins, with that uid; ends in order; is gone, perhaps by a crash. */
void fk__folk_built(uint32_t station, uint64_t uid);
void fk__folk_left(uint32_t station, bool is_crashed);
fk_house *fk__folk_house(uint32_t station);
/* The house of that uid: false if there is none. */
bool fk__folk_find_uid(uint64_t uid, uint32_t *station, uint32_t *house);

/* Somebody is about to be spawned; FK_NOBODY: the ledger is full. */
uint32_t fk__folk_spawn(uint32_t station, uint32_t slot);
void fk__folk_spawned(uint32_t person, fk_err err, fk_ref ref, uint64_t uid);
/* An actor of the present house has stopped. */
void fk__folk_stopped(uint32_t station, fk_ref ref);
/* It is in the present house of its station, and has not stopped. */
bool fk__folk_lives(uint32_t person);

#endif /* FK_SIM_FOLK_H */
