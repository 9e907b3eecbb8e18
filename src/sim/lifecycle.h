/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_LIFECYCLE_H
#define FK_SIM_LIFECYCLE_H

/*
 * The scenario "lifecycle": a tree of actors that fail in every place where they can, parents with
 * all kinds of strategies, watches of anybody by anybody, actors beside /user that want to be asked
 * before the end, and the end itself, begun from anywhere and more than once. What actors do besides
 * is the kernel scenario's (sim/kernel.h); what must hold is in sim/lives.h.
 */

#include "sim/kernel.h"
#include "sim/lives.h"

/* What the seed says about a run, besides the swarm. */
typedef struct fk_drama {
    uint32_t depth_max;
    uint32_t fail_in;       /* one message in so many fails */
    uint32_t fail_start_in; /* one start, or start after a restart */
    uint32_t tempers;       /* mask of fk_temper */
    uint32_t kinds;         /* mask of fk_strategy_kind */
    uint32_t watch_in;      /* one act in so many is about watches */
    uint32_t hooks;         /* actors beside /user */
    uint32_t farewells;
    uint32_t enders;   /* one act in so many ends the system, when it is time */
    bool has_guardian; /* a /user of our own */
    bool has_limits;
    bool sleeps; /* deciders do, sometimes */
} fk_drama;

/* What is done to a system in the middle of its end. */
typedef enum fk_cut_how {
    FK_CUT_TERMINATE,
    FK_CUT_TERMINATE_NOW,
    FK_CUT_STOP_SYSTEM,
    FK_CUT_KILL_HOOK,
    FK_CUT_KILL_ACTOR,
    FK_CUT_SPAWN,
    FK_CUT_KNOCK,
    FK_CUT_COUNT
} fk_cut_how;

#define FK_CUT_STEPS 900u /* no end of theirs takes longer */

typedef struct fk_lifecycle {
    fk_drama drama;
    uint32_t cut; /* the step of the end at which something is done to it; 0: none */
    fk_cut_how cut_how;
    uint64_t end_began; /* steps of the machine until then */
} fk_lifecycle;

extern fk_lifecycle fk__lifecycle;

/* One run of that seed: NULL, or what was found. */
const char *fk__lifecycle_run(uint64_t seed);
/* The scenario "termination": FK_CUT_STEPS seeds in a row are the same run, cut at each step. */
const char *fk__termination_run(uint64_t seed);

/* lifecycle_actor.c */
void fk__lifecycle_spawn(fk_ctx *ctx, uint32_t parent, uint32_t name);
/* Beside /user, before the system runs. */
fk_err fk__lifecycle_extra(fk_system *sys, uint32_t number);
fk_directive fk__lifecycle_decide(fk_ctx *ctx, void *state, const fk_failure *failure);
fk_strategy fk__lifecycle_draw_strategy(fk_temper *temper);
/* Fails with a number of its own. */
void fk__lifecycle_fail(fk_scene *scene);
extern const fk_receive_fn fk__lifecycle_receive[2];

/* lifecycle_act.c */
void fk__lifecycle_act(fk_scene *scene);
/* A message about an end: true when it was one. */
bool fk__lifecycle_told(fk_scene *scene);
void fk__lifecycle_kill(uint32_t actor);
void fk__lifecycle_cut(fk_cut_how how);
bool fk__lifecycle_is_own(const fk_type *type);
void fk__lifecycle_knock(void);
/* One way or another. */
void fk__lifecycle_end(void);
void fk__lifecycle_end_now(void);
void fk__lifecycle_outsider(void *arg, uint32_t thread);

#endif /* FK_SIM_LIFECYCLE_H */
