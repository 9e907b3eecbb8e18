/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_SCHEDULE_H
#define FK_SIM_SCHEDULE_H

/*
 * Schedules: what the machine's chooser may be.
 *
 *   DFS     every schedule with at most `bound` preemptions, one after the other. Leaving a
 *           thread that could go on is a preemption, and so is flushing a store while the
 *           thread that ran last could go on.
 *   RANDOM  each possible action with equal probability.
 *   PCT     random priorities that drop at depth-1 random moments (Burckhardt et al., ASPLOS
 *           2010); finds a bug of that depth with a known probability. A thread that spins
 *           goes to the back, and so does one that ran very long while others could.
 *   REPLAY  a given list of actions; diverged when one of them is not possible.
 */

#include "sim/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FK_SCHEDULE_STEPS_MAX  32768u
#define FK_SCHEDULE_BOUND_NONE UINT32_MAX

typedef enum fk_schedule_kind {
    FK_SCHEDULE_DFS,
    FK_SCHEDULE_RANDOM,
    FK_SCHEDULE_PCT,
    FK_SCHEDULE_REPLAY,
} fk_schedule_kind;

typedef struct fk_schedule {
    fk_schedule_kind kind;
    uint32_t bound;      /* DFS: preemptions; PCT: depth */
    uint64_t seed;       /* RANDOM, PCT */
    uint64_t count;      /* schedules begun */
    uint64_t random;     /* state of the generator, renewed from seed and count each time */
    uint64_t first_step; /* the machine's step count when this schedule began */

    uint32_t depth; /* DFS: choices made so far, of which the first `length` are given */
    uint32_t length;
    uint32_t preemptions;
    bool is_unsteady; /* the same choices led somewhere else: the harness is not repeatable */
    uint8_t chosen[FK_SCHEDULE_STEPS_MAX];
    uint8_t options[FK_SCHEDULE_STEPS_MAX];

    uint64_t steps_seen;  /* PCT: the longest schedule so far */
    int64_t priority[32]; /* of each action */
    uint64_t change[16];  /* the steps at which the running one drops */
    int64_t lowest;
    uint32_t same_count; /* steps that the same thread has run although others could */

    const uint8_t *replay; /* REPLAY: borrowed */
    size_t replay_len;
} fk_schedule;

/* bound as above (FK_SCHEDULE_BOUND_NONE: all schedules); seed is ignored by DFS. */
void fk__schedule_init(fk_schedule *s, fk_schedule_kind kind, uint32_t bound, uint64_t seed);
void fk__schedule_init_replay(fk_schedule *s, const uint8_t *actions, size_t len);

/* Before each run. */
void fk__schedule_begin(fk_schedule *s);

/* The chooser; ctx is the fk_schedule. */
uint32_t fk__schedule_choose(void *ctx, const fk_machine *m, uint32_t mask);

/* After a run of that many steps: false when there is no further schedule. */
bool fk__schedule_next(fk_schedule *s, uint64_t steps);

/* Actions as text, "0x5.1.1f.0x2": thread 0 five times, thread 1 once, flush of thread 1, thread 0
 * twice. Writes at most size bytes with the final zero and returns the length it would have. */
size_t fk__schedule_format(const uint8_t *actions, size_t len, char *out, size_t size);

/* The reverse; false when text is not such a list or longer than size actions. */
bool fk__schedule_parse(const char *text, uint8_t *actions, size_t size, size_t *len);

#endif /* FK_SIM_SCHEDULE_H */
