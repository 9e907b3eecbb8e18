/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_PHASES_H
#define FK_CORE_PHASES_H

/*
 * Phases of a coordinated shutdown, the order they come in, and the course of a run through them.
 * Knows no tasks, only how many there are; no clock, no lock, no memory.
 */

#include "base/base.h"
#include "fraktor/shutdown.h"

#define FK_PHASE_NONE UINT32_MAX

typedef struct fk_phase {
    uint64_t after; /* a bit for each phase that must be over before */
    fk_time timeout;
    bool aborts, disabled;
    uint8_t name_len;
    char name[FK_SHUTDOWN_NAME_MAX];
} fk_phase;

typedef struct fk_phases {
    uint32_t count;
    fk_phase at[FK_SHUTDOWN_PHASES_MAX];
} fk_phases;

_Static_assert(FK_SHUTDOWN_PHASES_MAX <= 64, "a bit for each phase");

#define FK_PHASE_TERMINATE FK_STR("actor-system-terminate")

/* None at all; and Pekko's. */
void fk__phases_clear(fk_phases *phases);
void fk__phases_init(fk_phases *phases);
/* FK_E_CYCLE, FK_E_LIMIT, FK_E_NAME and FK_E_INVALID change nothing. */
FK_MUST_USE fk_err fk__phases_set(fk_phases *phases, const fk_shutdown_phase *spec);
/* FK_PHASE_NONE: there is none of that name. */
uint32_t fk__phases_find(const fk_phases *phases, fk_str name);
/* Writes the indices of all phases in the order they run. FK_E_CYCLE. */
FK_MUST_USE fk_err fk__phases_sort(const fk_phases *phases, uint8_t *order);
fk_str fk__phase_name(const fk_phase *phase);
/* Of a phase or a task: FK_E_NAME. */
FK_MUST_USE fk_err fk__phase_name_check(fk_str name);

typedef enum fk_course_state {
    FK_COURSE_IDLE = 0,
    FK_COURSE_BETWEEN, /* the phase at order[at] is about to begin */
    FK_COURSE_INSIDE,  /* its tasks are under way */
    FK_COURSE_OVER
} fk_course_state;

/* Where a run is. */
typedef struct fk_course {
    fk_course_state state;
    fk_err outcome;
    uint32_t at;
    uint32_t tasks;   /* of this phase */
    uint32_t pending; /* of them, not done */
    fk_err failure;   /* of the first of them that failed */
    fk_time deadline;
    uint8_t order[FK_SHUTDOWN_PHASES_MAX];
} fk_course;

/* What has come to pass. */
typedef enum fk_move_kind {
    FK_MOVE_WAIT = 0, /* nothing: tasks are under way, or the run has not begun */
    FK_MOVE_SKIP,     /* the phase is disabled */
    FK_MOVE_ENTER,    /* the phase begins: fk__course_expect(), then begin its tasks */
    FK_MOVE_DONE,     /* all its tasks are */
    FK_MOVE_FAILED,   /* they are, one has failed, and the run ends with that */
    FK_MOVE_TIMEOUT,  /* its time is up: whoever reports now is late */
    FK_MOVE_END       /* the run is over; so again from now on */
} fk_move_kind;

typedef struct fk_move {
    fk_move_kind kind;
    uint32_t phase; /* FK_PHASE_NONE for WAIT and END */
} fk_move;

/* Begins before the phase of that index, or before the first. FK_E_CYCLE. */
FK_MUST_USE fk_err fk__course_begin(fk_course *course, const fk_phases *phases, uint32_t from);
/* To be called until it says WAIT or END. */
fk_move fk__course_step(fk_course *course, const fk_phases *phases, fk_time now);
void fk__course_expect(fk_course *course, uint32_t tasks);
/* A task of this phase is done. */
void fk__course_report(fk_course *course, fk_err err);
/* The run ends here, unless it is over. */
void fk__course_end(fk_course *course, fk_err outcome);
/* The phase whose tasks are under way, or FK_PHASE_NONE. */
uint32_t fk__course_phase(const fk_course *course);
/* The run has come to that phase, or will not come to it any more. */
bool fk__course_has_passed(const fk_course *course, const fk_phases *phases, uint32_t phase);

#endif /* FK_CORE_PHASES_H */
