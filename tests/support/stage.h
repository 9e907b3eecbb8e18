/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_STAGE_H
#define FK_TESTS_SUPPORT_STAGE_H

/*
 * A stage: a rig whose actors play roles and write into a diary what happens to them, and that keeps
 * the events of lives, failures and termination. A role says what an actor's hooks do, and whom it
 * has below it.
 */

#include "support/rig.h"

enum {
    STAGE_EVENTS = 512,
    STAGE_DIARY = 4096,
    STAGE_PATH = 96,
    STAGE_DETAIL = 128,
    ROLE_CHILDREN = 4
};

typedef struct stage_event {
    fk_event_kind kind;
    fk_ref actor, other;
    char path[STAGE_PATH]; /* of the actor, as "/user/a" */
    fk_err err;
    fk_failure_phase phase;
    const fk_type *type;
    char detail[STAGE_DETAIL];
    fk_directive directive;
    uint32_t count;
    const char *from, *to, *reason;
} stage_event;

typedef struct stage {
    rig r;
    char diary[STAGE_DIARY];
    size_t len;
    size_t events;
    stage_event event[STAGE_EVENTS]; /* the first of them */
} stage;

void stage_start(stage *s);
void stage_start_with(stage *s, fk_system_config config);
/* As rig_try_start(), after stage_init(); and the config alone, for boots. */
void stage_init(stage *s);
fk_err stage_try_start(stage *s, fk_system_config config);
fk_system_config stage_config(stage *s, fk_system_config config);
/* Stops the system; no byte is left. */
void stage_end(stage *s);
/* Runs, and begins a new page: neither events nor diary. */
void stage_forget(stage *s);

/* Adds a word to the diary. Any thread. */
__attribute__((format(printf, 2, 3))) void stage_note(stage *s, const char *format, ...);
/* Runs; the words since the last time must be these. */
void stage_expect(stage *s, const char *words);
/* Events of a kind so far, and the last of them (there must be one). */
size_t stage_count(const stage *s, fk_event_kind kind);
const stage_event *stage_last(const stage *s, fk_event_kind kind);
/* The steps of termination so far: "running>stopping_user ...". */
void stage_expect_steps(const stage *s, const char *steps);
void stage_path(stage *s, fk_ref ref, char path[STAGE_PATH]);

/* ---- roles ----------------------------------------------------------------------------------- */

typedef struct role role;
struct role {
    const char *name;
    stage *stage;               /* by role_spawn() */
    fk_ref ref;                 /* by its start hook */
    role *child[ROLE_CHILDREN]; /* spawned by its start hook */
    fk_strategy strategy;
    fk_directive answer;                         /* of role_decide() */
    bool has_before, has_after;                  /* restart hooks of its own */
    bool is_quiet;                               /* writes only what it is sent */
    int start_fails, after_fails;                /* the next so many times */
    fk_err (*on_start)(fk_ctx *ctx, role *self); /* instead of FK_OK */
    void (*on_before)(fk_ctx *ctx, role *self);
    void (*on_stop)(fk_ctx *ctx, role *self);
    int starts; /* so far */
};

/* The state of its actor: made anew at every restart. */
typedef struct player {
    role *role;
    uint64_t total; /* of the numbers it was sent */
} player;

/*
 * A player writes "a.start", "a.stop", "a.before", "a.after" when its hooks run. A num n is added up
 * and written as "a=total"; a text as "a:text"; an fk_terminated as "a!path", with "?" behind it when
 * existence was not confirmed. A rig_call is called. All else is unhandled.
 */
fk_err player_receive(fk_ctx *ctx, void *state, const fk_msg *msg);
fk_props role_props(role *self);
/* Under /user, with all its children; and runs. */
void role_spawn(stage *s, role *self);
/* As a child of whoever runs. */
void role_spawn_child(fk_ctx *ctx, role *parent, role *self);
/* Decides as its role says. */
fk_directive role_decide(fk_ctx *ctx, void *state, const fk_failure *failure);

/* Messages to it; none of them runs. */
void role_send(role *self, uint64_t n);
void role_call(role *self, rig_call_fn fn, void *arg);
void role_fail(role *self, fk_err err);
void role_watch(role *self, const role *other);
bool role_is_alive(const role *self);

#endif /* FK_TESTS_SUPPORT_STAGE_H */
