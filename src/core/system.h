/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SYSTEM_H
#define FK_CORE_SYSTEM_H

/* The system object: what all parts of the core share. Private to the library. */

#include "core/cell.h"
#include "core/dispatch.h"
#include "core/roster.h"

#define FK_OUTSIDE_LOCALS 16u
#define FK_PROPS_MAX      65536u

typedef struct fk_interned fk_interned;
typedef struct fk_claims fk_claims;
typedef struct fk_farewell fk_farewell;
struct fk_cluster;

enum { FK_SPAWN_OPEN = 0, FK_SPAWN_STOPPING, FK_SPAWN_BOOTING };

/* A callback that a thread is in. */
typedef struct fk_frame {
    const struct fk_frame *outer;
    const void *who;
} fk_frame;

/* Which callbacks a thread is in: see deadletter.c and event.c. */
typedef struct fk_reporting {
    bool in_letter;
    const fk_frame *frames; /* of events, innermost first */
} fk_reporting;

static inline bool fk__is_reporting(const fk_reporting *reporting)
{
    return reporting->in_letter || reporting->frames != NULL;
}

/* Names under /temp: temp.c. */
typedef struct fk_temps {
    fk_lock lock;
    uint32_t count, capacity;
    uint64_t next; /* number of the next name */
    struct fk_temp **bucket;
} fk_temps;

/* What the core wants from the part above that owns the threads. Filled before the system runs. */
typedef struct fk_host_ops {
    void *ctx;
    fk_err (*pin)(void *ctx, fk_worker *worker); /* starts a thread for a pinned worker */
    void (*wake)(void *ctx, uint32_t worker);    /* instead of port->wake */
    bool (*is_inside)(void *ctx);                /* the calling thread is one of the workers */
    fk_reporting *(*reporting)(void *ctx);       /* of the calling thread */
} fk_host_ops;

/* What the core wants from remoting, the part above it. Filled before the system runs; without it
 * there are no other systems. */
typedef struct fk_remote_ops {
    void *ctx;
    /* A ref for an actor of another system. is_held: for as long as the system, else it may give way. */
    fk_err (*resolve)(void *ctx, fk_local *local, const fk_path *path, bool is_held, fk_ref *out);
    /* A message for such a ref. The node is taken. The proxy may be giving way to another. */
    fk_err (*send)(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref to, fk_node *node);
    /* A message for whoever an expression selects at the system of its address. The node is taken. */
    fk_err (*select)(void *ctx, fk_local *local, const fk_expression *expression, fk_node *node);
    /* As fk_path_of(), for such a ref: 0 when its proxy has given way. */
    size_t (*path)(void *ctx, fk_ref ref, char *buf, size_t size);
    /* Whether anybody here watches the actor that ref, a proxy's, stands for. By whoever runs the
     * proxy's cell, whenever that changes; when they were told of its end, too, which is by
     * fk__watch_remote_ended(). False: it has given way meanwhile, and is not watched; but from true on
     * until it is said that nobody watches any more, it does not give way. */
    bool (*watch)(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref ref, bool is_watched);
    /* With the system: nothing runs any more. */
    void (*destroy)(void *ctx);
} fk_remote_ops;

/* What the core wants from the cluster, the part above remoting. Filled when a cluster is joined. */
typedef struct fk_cluster_ops {
    fk_word ctx;    /* struct fk_cluster; 0: none */
    fk_ref steward; /* who may be spoken to by other nodes, though it is below /system */
    /* With the system: nothing runs any more. First what runs beside it ends; then, when no message is
     * left, the memory goes. */
    void (*close)(struct fk_cluster *cluster);
    void (*destroy)(struct fk_cluster *cluster);
} fk_cluster_ops;

struct fk_system {
    /* Read by every send. */
    uint32_t id; /* random, never 0 */
    uint32_t throughput;
    uint32_t actors_max; /* 0: not counted, the slots are the limit */
    fk_word actors;      /* alive, with actors_max */
    fk_slots slots;
    fk_pool pool;

    fk_mem mem;
    fk_time slice;
    fk_hash_key key;
    void *user;
    fk_dead_letter_fn on_dead_letter;
    fk_failure_fn on_failure;
    fk_host_ops host;
    fk_remote_ops remote;
    fk_cluster_ops cluster;
    /* The top of the tree, for as long as the system exists: their slots are never used again. */
    struct {
        fk_cell *root, *user, *system, *temp, *dead_letters;
        uint32_t count; /* of all children of the root, and itself */
    } top;
    struct {
        fk_ref ref;
        fk_half alive;
    } guardians[FK_GUARDIAN_ROOT + 1];
    fk_half termination;        /* fk_termination, and what terminate.c adds to it */
    fk_word termination_reason; /* const char *: of whoever was the first to want it */
    fk_farewell *farewells;     /* under lock: the last one given */
    bool is_farewell_over;      /* under lock */
    fk_lock lock;               /* of interned, boxes, uids, pinned workers */
    fk_interned *interned[64];
    uint32_t interned_count;
    fk_box *boxes;
    fk_box *boxes_all;
    uint64_t uid_first; /* numbers of uids: see fk__uid_of(); the first one ... */
    uint64_t uid_next;  /* ... and the next, given out to threads */
    uint32_t uid_seed;
    fk_reporting reporting; /* without host.reporting */
    fk_half stopping;       /* FK_SPAWN_*: whether anybody can be spawned */
    fk_half waiters;        /* threads in fk_await_stopped */
    fk_half questions;      /* of threads, under way or about to be: see fk__question_open */
    fk_half stops;          /* changes with each stop while there are waiters; what they wait on */
    fk_path_options paths;
    const struct fk_ruleset *ruleset; /* of paths.rules */
    fk_guardian_kind guardian;        /* of paths made from parts */
    fk_time quarantine;               /* how long a dead actor's uid is reserved */
    fk_claims *claims;
    fk_temps temps;
    fk_events events;
    fk_word shutdown; /* fk_shutdown, made when asked for: see shutdown.c */
    fk_path address;  /* its own, in address_text: the root's path */
    uint32_t address_len;
    char address_text[544]; /* "fraktor://name@host:port" */
    char name[256];

    void *block; /* the memory it lies in */
    fk_dispatch dispatch;
    fk_local outside[FK_OUTSIDE_LOCALS];
};

/* Makes a system that has only a root: boot.h makes the rest. `workers` of them are expected. */
FK_MUST_USE fk_err fk__system_make(const fk_system_config *config, const fk_port *port,
                                   uint32_t workers, fk_system **out);
/* Makes a system that needs nothing but threads to run. */
FK_MUST_USE fk_err fk__system_create(const fk_system_config *config, const fk_port *port,
                                     uint32_t workers, fk_system **out);
/* After fk_terminate(): everything has stopped. */
bool fk__system_is_down(const fk_system *sys);
/* Ends the threads of its store, if it is in a cluster: before the host is gone, which they use. Once is
 * enough. No worker may run any more. */
void fk__system_close_cluster(fk_system *sys);
/* Nothing may run any more. */
void fk__system_destroy(fk_system *sys);
/* Walks all cells and asserts what must hold of them; nothing may run meanwhile. */
void fk__system_check(const fk_system *sys);

fk_time fk__system_now(const fk_system *sys);
void fk__now_bound_set(fk_local *local, uint64_t cycles);

/* It is not later than that, and FK_CYCLES_TIME earlier at most. For a worker that has to know before
 * each turn that a deadline is not over, with the clock read once in many turns. */
static inline fk_time fk__now_bound(fk_local *local)
{
    const fk_port *port = &local->sys->mem.port;
    if (port->cycles == NULL) return port->now(port->ctx);
    uint64_t cycles = port->cycles(port->ctx);
    /* One that goes back is far away, too. */
    if (FK_UNLIKELY(cycles - local->cycles >= FK_CYCLES_NEAR)) fk__now_bound_set(local, cycles);
    return local->now_bound;
}

static inline void fk__system_wake(fk_system *sys, uint32_t worker)
{
    if (sys->host.wake != NULL)
        sys->host.wake(sys->host.ctx, worker);
    else
        sys->mem.port.wake(sys->mem.port.ctx, worker);
}

/* The live cell a ref names, or NULL. */
static inline fk_cell *fk__cell_resolve(const fk_system *sys, fk_ref ref)
{
    if (FK_UNLIKELY(ref.system != sys->id || (ref.generation & 1) == 0)) return NULL;
    fk_cell *cell = fk__slots_at(&sys->slots, ref.slot);
    if (FK_UNLIKELY(cell == NULL)) return NULL;
    /* Acquire pairs with the release that opened the cell (spawn.c): its gate and box, which we
     * read next, are this generation's or a later one's, never older. */
    if (fk__half_load(&cell->generation, FK_ACQUIRE) != ref.generation) return NULL;
    return cell;
}

/* The same by the directory this thread saw last: three loads on each other's heels instead of
 * five. */
static inline fk_cell *fk__local_resolve(fk_local *local, fk_ref ref)
{
    uint32_t index = ref.slot >> FK_CHUNK_SHIFT;
    if (FK_UNLIKELY(index >= local->chunks)) return fk__local_resolve_anew(local, ref);
    if (FK_UNLIKELY(ref.system != local->system || (ref.generation & 1) == 0)) return NULL;
    /* Acquires as in fk__slots_at and fk__cell_resolve. */
    fk_cell *chunk = fk__word_ptr(&local->directory->chunk[index], FK_ACQUIRE);
    if (FK_UNLIKELY(chunk == NULL)) return NULL;
    fk_cell *cell = &chunk[ref.slot % FK_CHUNK_CELLS];
    return fk__half_load(&cell->generation, FK_ACQUIRE) == ref.generation ? cell : NULL;
}

/* Uids are numbers in the order they are given out; by Pekko's rules, which know 32 bit with a sign,
 * in an order that nobody can guess: a step of an odd number walks through all of them. */
#define FK_UID_STEP      0x9e3779b1u
#define FK_UID_STEP_BACK 0xe8b2f51u /* times FK_UID_STEP is 1 */

static inline uint64_t fk__uid_of(const fk_system *sys, uint64_t number)
{
    if (sys->paths.rules == FK_RULES_FRAKTOR) return number;
    uint32_t uid = (uint32_t)number * FK_UID_STEP + sys->uid_seed;
    return (uint64_t)(int64_t)(int32_t)uid;
}

static inline uint64_t fk__uid_number(const fk_system *sys, uint64_t uid)
{
    if (sys->paths.rules == FK_RULES_FRAKTOR) return uid;
    return (uint32_t)(((uint32_t)uid - sys->uid_seed) * FK_UID_STEP_BACK);
}

static inline fk_ref fk__cell_ref(const fk_cell *cell)
{
    return (fk_ref){ cell->slot, fk__half_load(&cell->generation, FK_RELAXED), cell->sys->id };
}

/* With actors_max: one more or one less. Relaxed: only a number. */
static inline fk_err fk__actor_count(fk_system *sys)
{
    if (FK_LIKELY(sys->actors_max == 0)) return FK_OK;
    if (fk__word_add(&sys->actors, 1, FK_RELAXED) < sys->actors_max) return FK_OK;
    fk__word_add(&sys->actors, (uintptr_t)-1, FK_RELAXED);
    return FK_E_LIMIT;
}

static inline void fk__actor_uncount(fk_system *sys)
{
    if (FK_UNLIKELY(sys->actors_max != 0)) fk__word_add(&sys->actors, (uintptr_t)-1, FK_RELAXED);
}

/* Bytes that an actor's state takes, with what it begins with. */
static inline size_t fk__state_size(const fk_props *props)
{
    return props->init != NULL ? props->state_size * 2 : props->state_size;
}

/* intern.c: a copy of props that lives as long as the system; equal props share one. */
FK_MUST_USE fk_err fk__props_intern(fk_local *local, const fk_props *props, const fk_props **out);
/* They are those that this thread used last: most spawns repeat. */
bool fk__props_are_last(const fk_local *local, const fk_props *props);
void fk__props_fini(fk_system *sys);

/* deadletter.c: the message did not reach an actor. The contents are still the caller's. */
void fk__dead_letter(fk_local *local, fk_reason reason, fk_ref to, const fk_msg *msg);
void fk__dead_node(fk_local *local, fk_reason reason, fk_ref to, const fk_node *node);
void fk__dead_node_at(fk_local *local, fk_reason reason, fk_str path, const fk_node *node);
/* The same with all that there is to say about it. */
void fk__dead_report(fk_local *local, const fk_dead_letter *letter);
/* The same for a message to a path where nobody is; it is taken. */
void fk__dead_path(fk_local *local, fk_reason reason, fk_str path, fk_ref sender, fk_out out);
/* event.c: tells whoever wants to know; no lock may be held. Fills .at, and .level of all but LOG.
 * local: the caller's, if it has one. Costly to make? Then ask fk__event_wanted() first. */
void fk__event(fk_system *sys, fk_local *local, const fk_event *event);
/* The event that goes with a message to a quarantined system. */
void fk__invalid_association(fk_local *local, fk_str address);
void fk__dead_out(fk_local *local, fk_reason reason, fk_ref to, fk_ref sender, fk_out out);

#endif /* FK_CORE_SYSTEM_H */
