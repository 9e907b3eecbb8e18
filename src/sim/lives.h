/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_LIVES_H
#define FK_SIM_LIVES_H

/*
 * The ledger of lives: failures and what was decided about them, restarts, watches, the end of the
 * system. It stands beside sim/ledger.h, whose persons it continues under the same numbers:
 *
 *   A3  who has failed handles nothing until that was decided, nor do those below it
 *   A6  one fk_terminated for each watch, after the end and all that was sent before it
 *   A7  children end before their parents; a name is free when the parent is told
 *   A8  one directive for each failure; restarts as often as the strategy says; what they keep
 *   A10 the end in its order, each step once
 *   A15 what is published of an actor is in order, each once
 */

#include "sim/ledger.h"

#define FK_VOWS_MAX      4096u
#define FK_UNDECIDED_MAX 16u
#define FK_STRANGERS_MAX 64u

/* How a parent decides. */
typedef enum fk_temper {
    FK_TEMPER_DEFAULT,
    FK_TEMPER_RESUME,
    FK_TEMPER_RESTART,
    FK_TEMPER_STOP,
    FK_TEMPER_ESCALATE,
    FK_TEMPER_MIXED,
    FK_TEMPER_COUNT
} fk_temper;

/* A failure as its supervisor must see it. */
typedef struct fk_fall {
    uint32_t number; /* in its detail; 0: it has none */
    fk_err err;
    fk_failure_phase phase;
} fk_fall;

/* Restarts of a child as the strategy's own words count them; times are known only roughly. */
typedef struct fk_count {
    uint32_t in_window, total;
    fk_time window_least, window_most;
    bool is_unsure;
} fk_count;

typedef struct fk_soul {
    /* What it is made of. */
    bool is_extra;  /* beside /user */
    bool is_beside; /* that, or below one */
    bool has_before, has_after;
    fk_temper temper;
    fk_strategy strategy;
    uint32_t depth;
    /* Its life. */
    bool is_announced; /* FK_EVENT_STARTED */
    bool is_unstarted; /* its last start failed */
    bool fell_anew;    /* ... and it was not its first */
    bool is_parted;    /* has left its old state */
    bool is_granted;   /* ... and that was a restart, for sure */
    bool is_renewed;   /* has begun a new one, which is not published yet */
    uint32_t handled;  /* messages in this life */
    /* Its failure. */
    fk_fall falling; /* has failed, but that is not published yet; err FK_OK: not */
    bool is_failed;  /* waits for a decision */
    bool is_escalated;
    uint32_t kills;
    uint32_t undecided_count;
    fk_fall undecided[FK_UNDECIDED_MAX];
    fk_count count;
    /* What was ordered, and may happen to it or must. */
    bool may_resume, may_stop, must_stop, must_restart;
    uint32_t may_restart;
    bool is_awaited; /* its parent stopped it while restarting */
    /* As a parent. */
    bool is_deciding; /* nothing has been published yet */
    fk_directive drawn;
    fk_time decided_at;
    bool is_restarting_crowd, is_stopping_crowd; /* some time, all children of /user */
    uint32_t escalating;                         /* has to fail with this number, plus 1 */
    /* Its parent has failed and that has reached it: messages that it may still begin. */
    bool is_held;
    uint32_t allowance;
    /* A termination hook. */
    bool is_hook, is_sure, is_asked, is_done;
    fk_time deadline;
} fk_soul;

typedef enum fk_vow_state {
    FK_VOW_ACTIVE,
    FK_VOW_UNDONE,
    FK_VOW_TOLD,
    FK_VOW_VOID, /* refused, or the watcher is gone */
} fk_vow_state;

/* One watch. */
typedef struct fk_vow {
    uint16_t watcher;
    uint16_t target; /* FK_NOBODY: made up, or a guardian */
    fk_ref ref;
    bool is_custom; /* told by a message with this vow's number */
    bool was_dead;  /* when it began */
    uint8_t state;
    uint8_t drops;
} fk_vow;

#define FK_PHASES 7u /* of termination, booting and terminated included */

typedef struct fk_lives {
    uint32_t fall_count, vow_count;
    uint64_t published;    /* failures */
    bool is_exact;         /* the order in which children of /user were made is known */
    fk_soul user;          /* /user as a parent */
    uint32_t spawning[16]; /* per thread: who is being made, plus 1 */
    /* Who stopped before the thread that made it could say who it is. */
    fk_ref stranger[FK_STRANGERS_MAX];
    uint32_t stranger_count;
    /* Termination: who came from where, plus 1; and when. */
    uint8_t came_from[FK_PHASES];
    fk_time reached[FK_PHASES];
    bool may_force; /* somebody asks for the end by force */
    bool is_closed; /* somebody has asked for the end: nobody can be made any more */
    uint32_t farewells, farewells_said;
    fk_soul soul[FK_ACTORS_MAX];
    fk_vow vow[FK_VOWS_MAX]; /* from 1 */
} fk_lives;

extern fk_lives fk__lives;

void fk__lives_begin(void);
/* The soul of a parent: FK_NOBODY is /user. */
fk_soul *fk__soul_parent(uint32_t actor);
/* FK_NOBODY: none has that reference. */
uint32_t fk__soul_find(fk_ref ref);
/* A spawn has returned that. */
void fk__soul_spawned(uint32_t actor, fk_err err, fk_ref ref);
/* What its system publishes. */
void fk__lives_event(const fk_event *event);
/* Everybody sleeps, some perhaps while deciding: by now all who are below a failure know. */
void fk__lives_mark_held(void);
void fk__lives_check_rest(void);
void fk__lives_check_ended(void);

/* ---- lives.c: what an actor does ---------------------------------------------------------- */

/* Its next life is not its first. */
static inline bool fk__soul_has_lived(const fk_soul *s)
{
    return s->is_parted || (s->is_unstarted && s->fell_anew);
}
/* It is not held any more: who is below it may go on, as far as it is concerned. */
void fk__soul_release(uint32_t actor);
void fk__soul_begin_start(uint32_t actor, fk_ref self, bool is_after);
/* A hook or receive is about to return that. */
void fk__soul_falls(uint32_t actor, fk_err err, uint32_t number, fk_failure_phase phase);
/* The stop or before_restart hook. */
void fk__soul_begin_parting(uint32_t actor, fk_ref self, bool is_before);
void fk__soul_end_parting(uint32_t actor);
void fk__soul_begin_receive(uint32_t actor, uint32_t handled);

/* ---- lives_decide.c ------------------------------------------------------------------------- */

void fk__soul_decides(uint32_t parent, uint32_t child, const fk_failure *failure);
void fk__soul_decided(uint32_t parent, fk_directive drawn);
void fk__soul_supervised(const fk_event *event);
void fk__soul_failed(const fk_failure *failure);
void fk__soul_resumed(uint32_t actor);
void fk__soul_grant_restart(uint32_t actor, bool must);
/* The number in a failure's detail; 0: none. */
uint32_t fk__fall_number(const char *detail);

/* ---- lives_watch.c --------------------------------------------------------------------------- */

uint32_t fk__vow_begin(uint32_t watcher, fk_ref ref, bool is_custom);
void fk__vow_made(uint32_t number, fk_err err);
void fk__vow_undone(uint32_t watcher, fk_ref ref, fk_err err);
void fk__vow_told(uint32_t watcher, const fk_terminated *terminated);
void fk__vow_told_by(uint32_t watcher, uint32_t number);
void fk__vow_drop(uint32_t number);
void fk__vow_watcher_gone(uint32_t watcher);
void fk__vow_check_rest(void);
void fk__vow_check_ended(void);

/* ---- lives_end.c ------------------------------------------------------------------------------ */

void fk__end_phase(const fk_event *event);
void fk__end_hook_asked(uint32_t actor);
void fk__end_farewell(uint32_t number);
void fk__end_check(void);

#endif /* FK_SIM_LIVES_H */
