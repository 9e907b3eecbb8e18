/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTKIT_SIM_H
#define FK_TESTKIT_SIM_H

/*
 * A simulation: a system, the port it stands on, who runs next, and what is remembered of it.
 *
 * There is one worker (and one for each pinned actor), and it is given one turn of one message at a
 * time. That is all that is needed for every order that actors can tell apart: with any number of
 * threads, messages are handled one after another by each actor, and what an actor sends is in the
 * mailbox before anything else happens to it. So which ready actor runs next is the whole of chance,
 * and it is drawn from the seed.
 */

#include "core/system.h"
#include "fraktor/host.h"
#include "fraktor/testkit.h"
#include "testkit/history.h"

enum {
    FK_SIM_RULES_MAX = 16,
    FK_SIM_ERRORS = 128,
    FK_PROBE_IGNORED_MAX = 8,
    FK_SIM_TEXT_MAX = 256
};

/* A block from the system's allocator, in front of it. */
typedef struct fk_sim_block {
    struct fk_sim_block *next, *prev;
    const fk_site *site;
    size_t size;
} fk_sim_block;

_Static_assert(sizeof(fk_sim_block) % 16 == 0, "what follows is aligned");

typedef struct fk_sim_memory {
    fk_sim_block all;    /* a ring */
    const fk_site *site; /* of the allocation that is being made */
    uint64_t bytes;
    uint64_t asked, refused;
    uint64_t fail_at; /* counted like asked; 0: none */
    bool fail_stays;
    const char *fail_site;
} fk_sim_memory;

typedef struct fk_sim_drop {
    fk_ref to;
    const fk_type *type;
    uint32_t left;
} fk_sim_drop;

typedef struct fk_sim_hold {
    fk_ref actor;
    fk_time until;
    fk_cell *cell; /* taken from the queue of its worker; NULL: it was not ready */
    fk_worker *worker;
} fk_sim_hold;

struct fk_sim {
    fk_system *sys;
    fk_port port;
    char name[FK_SIM_TEXT_MAX];
    uint64_t seed;
    uint64_t random; /* state of the generator */
    fk_time now, began;
    fk_time within;
    uint64_t turns, turns_max, turns_here; /* ever; since time moved last */
    bool in_order;
    bool is_inside; /* an actor is running */
    bool is_reporting;
    fk_reporting reporting; /* the core's: see fk_host_ops */
    fk_sim_memory memory;
    fk_sim_drop drops[FK_SIM_RULES_MAX];
    fk_sim_hold holds[FK_SIM_RULES_MAX];
    fk_history history;
    fk_probe *probes;
    /* What the system's own callbacks were meant to be. */
    fk_system_config asked;
    /* Failures of actors. */
    bool allow_failures;
    uint64_t failures;                   /* not expected */
    uint64_t failures_of[FK_SIM_ERRORS]; /* by error */
    char failure_first[FK_SIM_TEXT_MAX];
    /* Failures of the test. */
    uint64_t failed;
    const char *file; /* where the next check is */
    int line;
    fk_writer writer;
    void *user;
    fk_sim_failure_fn on_failure;
};

/* port.c */
void fk__sim_port_init(fk_sim *sim);
uint64_t fk__sim_draw(fk_sim *sim);
/* 0 .. n - 1 */
uint32_t fk__sim_below(fk_sim *sim, uint32_t n);
/* The end of the tick that a moment is in. */
fk_time fk__sim_tick_end(fk_time at);
/* The testkit's own memory, zeroed; there is no test without it. */
void *fk__sim_alloc(size_t size);

/* driver.c */
void fk__sim_attach(fk_sim *sim);
/* Runs until the condition holds (NULL: never does) or the deadline has passed, and what was ready
 * then is done. False: it does not hold. */
bool fk__sim_drive(fk_sim *sim, fk_sim_condition_fn condition, void *arg, fk_time deadline);
/* When a wait of that length that begins now ends. */
fk_time fk__sim_deadline(const fk_sim *sim, fk_time within);

/* fault.c */
/* Drops what the rules say from the mailbox of a cell whose token the caller holds. */
void fk__sim_drop_from(fk_sim *sim, fk_worker *worker, fk_cell *cell);
/* The rule that keeps the actor from running now, or NULL. */
fk_sim_hold *fk__sim_hold_of(fk_sim *sim, const fk_cell *cell);
/* Ends the rules whose time has come; the cells are ready again. */
void fk__sim_release(fk_sim *sim);
/* When the first of them ends. */
fk_time fk__sim_release_next(const fk_sim *sim);

/* witness.c */
void fk__witness_attach(fk_sim *sim, fk_system_config *config);

/* report.c */
/* A check has failed: false. */
bool fk__sim_fail(fk_sim *sim, const char *expected, const char *actual);

/* probe.c */
void fk__probes_release(fk_sim *sim);
void fk__probes_destroy(fk_sim *sim);

#endif /* FK_TESTKIT_SIM_H */
