/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_SWARM_H
#define FK_SIM_SWARM_H

/*
 * The swarm: everything about a run that is not the kernel's business, drawn from the seed. A
 * test that always does a little of everything never does much of anything, so each seed leaves
 * most kinds of action out and overdoes the rest.
 */

#include "base/hash.h"
#include "sim/machine.h"

/* What an actor may do with a message, and how often if a seed has it at all. */
#define FK_ACTS(X)                                                                                 \
    X(TELL, 20)                                                                                    \
    X(VOLLEY, 8)                                                                                   \
    X(REPLY, 12)                                                                                   \
    X(FORWARD, 6)                                                                                  \
    X(SPAWN, 6)                                                                                    \
    X(SPAWN_NAMED, 4)                                                                              \
    X(STOP_SELF, 1)                                                                                \
    X(STOP_OTHER, 1)                                                                               \
    X(POISON, 1)                                                                                   \
    X(STASH, 6)                                                                                    \
    X(UNSTASH, 6)                                                                                  \
    X(BECOME, 4)                                                                                   \
    X(UNBECOME, 4)                                                                                 \
    X(TIMER_START, 6)                                                                              \
    X(TIMER_CANCEL, 4)                                                                             \
    X(RECEIVE_TIMEOUT, 2)                                                                          \
    X(FAIL, 1)                                                                                     \
    X(UNHANDLED, 2)                                                                                \
    X(BOGUS, 2)                                                                                    \
    X(PARCEL, 4)                                                                                   \
    X(LOOK_UP, 4)                                                                                  \
    X(SELECT, 4)                                                                                   \
    X(WORK, 4)                                                                                     \
    X(YIELD, 2)

typedef enum fk_act {
#define FK_ACT_ENUM(NAME, weight) FK_ACT_##NAME,
    FK_ACTS(FK_ACT_ENUM)
#undef FK_ACT_ENUM
        FK_ACT_COUNT
} fk_act;

typedef struct fk_swarm {
    uint64_t seed;

    /* The machine. */
    uint32_t workers;
    uint32_t outsiders;
    uint32_t pinned_max;
    bool is_solo; /* one worker, nobody outside: order and fairness are checked exactly */
    fk_memory memory;
    bool is_direct;       /* every block from the port by itself */
    uint32_t switch_in;   /* another thread goes on at one access in so many; a power of two */
    uint32_t stall_in;    /* one switch in so many leaves a thread standing for long; 0: never */
    uint32_t looks_max;   /* pauses and rests of the longest good run; 0: the usual */
    uint32_t spurious_in; /* one sleep in so many ends at once */
    bool shuffles;        /* ready actors run in another order, with other budgets */

    /* Time. */
    fk_time step_ns;  /* that an access takes */
    fk_time clock_ns; /* at most, between two looks at the clock */
    fk_time late_ns;  /* at most, that a sleeper wakes too late */
    uint32_t jump_in; /* a sleep in so many ends with a jump of the clock; 0: never */

    /* Memory. */
    uint32_t fail_in;    /* one allocation in so many fails; 0: none */
    size_t memory_spare; /* bytes above what the system needs at the start; 0: no limit */
    bool creation_fails;

    /* The system. */
    uint32_t throughput;
    fk_time slice;
    uint32_t actors_max; /* 0: the kernel's */

    /* The workload. */
    uint32_t actors_first;
    uint32_t actors_alive; /* at most, by its own will */
    uint32_t sends_max;
    uint32_t acts_max; /* per message */
    uint32_t outside_acts;
    uint32_t outside_sends; /* percent of them that just send */
    uint32_t stale_in;      /* one target in so many may be long dead */
    bool is_churning;       /* targets are mostly the youngest actors, which come and go */
    uint32_t stop_at;       /* facts after which the system is stopped; 0: when it is at rest */
    uint32_t weight[FK_ACT_COUNT];
    uint32_t weight_sum;
    uint8_t mailboxes; /* mask of fk_mailbox_kind */
    uint8_t overflows; /* mask of fk_overflow */
} fk_swarm;

void fk__swarm_draw(fk_swarm *s, uint64_t seed);
/* The same without what kernel actors do: the machine, its time and memory. */
void fk__swarm_draw_plain(fk_swarm *s, uint64_t seed);

/* An act, as often as the weights say. */
fk_act fk__swarm_act(const fk_swarm *s, uint32_t draw);

static inline uint32_t fk__rng_below(fk_rng *rng, uint32_t end)
{
    return (uint32_t)(((fk__rng_next(rng) >> 32) * end) >> 32);
}

#endif /* FK_SIM_SWARM_H */
