/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_WORLD_STATE_H
#define FK_SIM_WORLD_STATE_H

/* The inside of the world, for world.c (who runs, and when it ends) and world_port.c. */

#include "sim/world.h"

typedef enum fk_strand_state {
    FK_STRAND_ABSENT,
    FK_STRAND_ACTIVE,
    FK_STRAND_ASLEEP,  /* in the port's wait */
    FK_STRAND_WAITING, /* main, in fk__world_await */
    FK_STRAND_DONE,    /* returned, or was killed */
} fk_strand_state;

/* One virtual thread as the world sees it. */
typedef struct fk_strand {
    fk_strand_state state;
    bool is_frozen;
    fk_time deadline;            /* of its sleep */
    fk_time (*input)(void *arg); /* when something comes that ends its sleep; NULL: nothing does */
    void *input_arg;
    uint32_t sleeps;
    fk_machine_thread_fn *fn;
    void *arg;
} fk_strand;

typedef struct fk_world {
    fk_swarm swarm;
    fk_machine *machine;
    fk_rng chance;   /* of the workload and the faults */
    fk_rng schedule; /* of the machine */
    fk_time now;
    uint64_t decisions;
    uint64_t stall_end;     /* the decision at which those who stand go on */
    uint32_t stalled;       /* mask of threads */
    uint32_t linger_thread; /* will stand still ... */
    uint32_t linger_after;  /* ... after so many choices; 0: nobody will */
    bool at_rest;           /* for ever, but for what main does next */
    bool (*awaited)(void);
    bool has_faults;
    size_t bytes, bytes_limit;
    uint32_t blocks;              /* allocated so far */
    fk_half word[FK_WORLD_WORDS]; /* what workers sleep on */
    fk_half yields;
    fk_half naps;
    uint32_t strand_count;
    fk_strand strand[FK_MACHINE_THREADS_MAX];
} fk_world;

extern fk_world fk__world;

#endif /* FK_SIM_WORLD_STATE_H */
