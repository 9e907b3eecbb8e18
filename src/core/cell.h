/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_CELL_H
#define FK_CORE_CELL_H

/*
 * The cell: one actor. 192 bytes, in a slot that never moves and whose memory stays a cell until
 * the system ends, so that a sender with a stale ref always finds a mailbox to push to.
 *
 * Who may touch what:
 *   senders' line    any thread, by atomics only
 *   owner's lines    whoever holds the *run token*: the right to run the cell. It is the absence
 *                    of FK_TAIL_IDLE from the tail word. A cell that is idle or free has nobody;
 *                    a sender that finds the mark takes the token and must schedule the cell.
 *   children         under children_lock
 */

#include "base/atomic.h"
#include "base/hash.h"
#include "core/message.h"

typedef struct fk_cell fk_cell;
typedef struct fk_local fk_local;
typedef struct fk_worker fk_worker;
typedef struct fk_box fk_box;
typedef struct fk_proxy fk_proxy;
typedef struct fk_extras fk_extras;
typedef struct fk_name fk_name;
typedef struct fk_vigil fk_vigil;

#define FK_TAIL_IDLE ((uintptr_t)1) /* in cell->tail: nobody holds the run token */
/* In cell->system, below the address of the newest signal. */
#define FK_SYSTEM_STOP  ((uintptr_t)1) /* a stop was asked for */
#define FK_SYSTEM_MAIL  ((uintptr_t)2) /* the box is no longer empty */
#define FK_SYSTEM_ORDER ((uintptr_t)4) /* the parent wants something: see fk_signal.word */
#define FK_SYSTEM_MARKS ((uintptr_t)7)

enum {
    FK_GATE_BOUNDED = 1,  /* user messages go to cell->box */
    FK_GATE_PINNED = 2,   /* runs on cell->pinned only */
    FK_GATE_ENDING = 4,   /* the actor is gone, but its parent has not seen it: the name is taken */
    FK_GATE_REMOTE = 8,   /* no actor but a proxy, which is the cell's state for ever */
    FK_GATE_PROMISE = 16, /* no actor but a promise, which is the cell's state for ever */
    FK_GATE_HELD = 32,    /* handles no messages for now, nor must its children */
    FK_GATE_SHARED = 64 /* others make its children, as under a guardian; it ends with the system */
};

/* Where an actor is in its life; the owner's. */
typedef enum fk_life {
    FK_LIFE_FREE = 0, /* no actor: what arrives is a dead letter */
    FK_LIFE_STARTING, /* the start hook has not run */
    FK_LIFE_RUNNING,
    FK_LIFE_RESTARTING, /* has left its old state; waits for children that it stopped */
    FK_LIFE_STOPPING,   /* no more user messages; waits for its children */
    FK_LIFE_REMOTE, /* a proxy: messages that arrive are for a former tenant, and dead letters */
    FK_LIFE_PROMISE /* a pending promise: see promise.h */
} fk_life;

/* What stands for an actor of another system; its maker, the remote part, knows more of it, and sees to
 * it that the path does not change while somebody reads it. */
struct fk_proxy {
    fk_str path; /* canonical, with uid if one was given */
};

/* What moves through cell->system. Embedded in what it speaks of, so that it cannot fail.
 *
 * A cell has one, for its parent: "look at my word". The word is between the two of them: bits that
 * the child sets for the parent (FAILED, ENDED), that the parent keeps about the child, and that it
 * sets for the child (RESUME, RESTART). In the upper half is the error that a restart is due to. A
 * proxy has no parent; its word is what its watchers are to be told (watch.c). */
typedef struct fk_signal {
    fk_link link;
    fk_half word;   /* FK_SIGNAL_*, FK_WORD_* */
    uint16_t depth; /* not the signal's but the cell's, which has no other room: levels below the */
    uint16_t path_len; /* root, and length of "/user/a"; both stop at UINT16_MAX */
} fk_signal;

enum {
    /* Child to parent. */
    FK_WORD_FAILED = 1, /* it waits for the parent to decide */
    FK_WORD_ENDED = 2,
    FK_WORD_QUEUED = 1 << 10,   /* because of a failure the signal is on its way */
    FK_WORD_AT_START = 1 << 11, /* both: in a child */
    FK_WORD_AT_RESTART = 1 << 12,
    /* The parent's notes. */
    FK_WORD_ESCALATED = 4,   /* the parent has failed in its turn because of it */
    FK_WORD_PENDING = 8,     /* failed while the parent was held itself: to be looked at later */
    FK_WORD_AWAITED = 16,    /* the parent's restart waits for its end */
    FK_WORD_CHOSEN = 32,     /* see fk__brood() */
    FK_WORD_HEARD = 1 << 14, /* the parent has heard of the failure, and what it decides is for that
                                one: the child takes this back when it begins anew for any reason */
    /* Parent to child, with FK_SYSTEM_ORDER. */
    FK_WORD_RESUME = 64,
    FK_WORD_RESTART = 128,
    FK_WORD_REVIVE = 1 << 13, /* the same, after it has waited */
    FK_WORD_ERROR_SHIFT = 16,
    /* What kind of signal it is. */
    FK_SIGNAL_CHILD = 0,
    FK_SIGNAL_WATCH = 1 << 8, /* watch.c, from here on */
    FK_SIGNAL_UNWATCH = 2 << 8,
    FK_SIGNAL_NOTICE = 3 << 8,
    FK_SIGNAL_KIND = 3 << 8
};

/* cell->suspended: why the actor handles no messages, though it is RUNNING. */
enum {
    FK_HELD_FAILED = 1, /* its parent has not decided */
    FK_HELD_PARENT = 2, /* its parent is held */
    FK_HELD = 3,
    FK_HELD_NEWS = 4 /* not a reason: a child has failed meanwhile */
};

struct fk_cell {
    /* Senders. The token holder writes these too, by the same atomics. */
    fk_word tail;            /* last node, or the stub; | FK_TAIL_IDLE */
    fk_word system;          /* stack of fk_signal, newest first; | FK_SYSTEM_* */
    fk_half generation;      /* odd: alive; even: free */
    fk_half gate;            /* FK_GATE_* */
    fk_half stop_generation; /* the newest generation asked to stop */
    uint32_t slot;           /* for ever */
    fk_word box;             /* fk_box of a bounded mailbox */
    fk_word pinned;          /* fk_worker of a pinned actor */
    fk_link stub;            /* the first "node" of the queue */
    fk_cell *ready_next;     /* in a list of ready cells */

    /* Owner. */
    fk_link *head; /* the node delivered last: stays until the next one is there */
    fk_receive_fn receive;
    void *state;
    const fk_props *props; /* interned */
    fk_extras *extras;     /* NULL until something rare is needed */
    fk_word parent;        /* fk_cell; written by the owner, read by fk_path_of() at any time */
    uint8_t life;
    uint8_t flags;          /* FK_CELL_* */
    uint16_t home;          /* the worker that ran it last */
    uint16_t suspended;     /* FK_HELD_* */
    uint8_t closed;         /* under children_lock: no more children */
    uint8_t children_shift; /* under children_lock: log2 of the table's capacity */
    uint64_t *children;     /* under children_lock: see children.c */

    /* Rare. */
    uint64_t uid;
    union {
        fk_vigil *watchers; /* the owner's: who is told when it ends */
        fk_cell *free_next;
    } u;
    uint64_t label; /* its name: see children.h; and registry.c for who may look at it */
    fk_signal ended;
    fk_lock children_lock;
    uint32_t children_count; /* under children_lock */
    uint64_t child_counter;  /* under children_lock: makes names */
    fk_system *sys;
};

/* cell->flags. A cell with none of FK_CELL_SPECIAL set takes the short way (turn.c). */
enum {
    FK_CELL_OWNED = 1,     /* state came from the pool */
    FK_CELL_UNSTARTED = 2, /* stopped before its start hook ran: no stop hook */
    FK_CELL_HALTED = 4,    /* takes no user messages: not RUNNING, or suspended */
    FK_CELL_LEAVING = 8,   /* stops when this message is done */
    FK_CELL_FRONT = 16,    /* has messages in front of the queue, or a heap */
    FK_CELL_BOXED = 32,    /* its messages are in cell->box */
    FK_CELL_TIMED = 64,    /* has a receive timeout */
    FK_CELL_LIMITED = 128, /* has a throughput of its own */
    FK_CELL_SPECIAL = 0xfc
};

_Static_assert(sizeof(void *) != 8 || offsetof(fk_cell, head) == 64, "senders: one cache line");
_Static_assert(sizeof(void *) != 8 || sizeof(fk_cell) == 192, "three cache lines");

/* What a thread brings along when it works for a system: a worker has one, an outside thread
 * borrows one for the length of a call. */
struct fk_local {
    fk_cache cache;
    fk_system *sys;
    fk_worker *worker;                    /* NULL: outside */
    uint32_t system;                      /* sys->id */
    uint32_t chunks;                      /* length of ... */
    const struct fk_directory *directory; /* ... the one seen last */
    fk_cell *cells_free;
    uint32_t cells_count;
    fk_half busy;    /* of an outside one: lent to a thread */
    bool is_waiting; /* which sends a question, and waits for the answer next */
    uint64_t uid_next, uid_end;
    uint64_t cycles;             /* of a worker: when it last read the clock for ... */
    fk_time now_bound;           /* ... fk__now_bound() */
    const fk_props *props_last;  /* interned last: most spawns repeat */
    struct fk_promise *promises; /* at hand for the next question */
    /* Counters of this thread, written by it alone, read by fk_stats_get(). */
    struct {
        fk_word spawned, stopped, processed, failures, timers_started, timers_ended;
        fk_word dead_letters[FK_REASON_COUNT];
    } stats;
};

/* Every counter has one writer, so no read-modify-write. Relaxed: only a number. */
static inline void fk__stat_add(fk_word *stat, uintptr_t n)
{
    fk__word_store(stat, fk__word_load(stat, FK_RELAXED) + n, FK_RELAXED);
}

#define FK_CHUNK_SHIFT 8
#define FK_CHUNK_CELLS (1u << FK_CHUNK_SHIFT)

/* The directory of chunks. It grows by replacement; old ones stay until the system ends, because
 * a reader may still be in them. */
typedef struct fk_directory {
    struct fk_directory *older;
    uint32_t len;
    fk_word chunk[]; /* fk_cell arrays */
} fk_directory;

typedef struct fk_slot_block fk_slot_block;

typedef struct fk_slots {
    fk_word directory;
    fk_lock lock; /* of what follows */
    fk_slot_block *blocks;
    char *fresh; /* room for this many chunks */
    uint32_t fresh_chunks;
    uint32_t chunks;
    uint32_t cut;   /* cells handed out of the newest chunk */
    fk_cell *depot; /* lists of free cells; the first cell of each links to the next by parent */
    uint32_t cells_max;
} fk_slots;

/* slots.c */
FK_MUST_USE fk_err fk__slots_init(fk_slots *slots, fk_mem *mem, uint32_t cells_max);
void fk__slots_fini(fk_slots *slots, fk_mem *mem);
/* A free cell with the run token held by the caller: FK_E_NOMEM, FK_E_LIMIT. */
FK_MUST_USE fk_err fk__cell_get(fk_local *local, fk_cell **out);
/* A cell whose life is FREE; the token may be anywhere. */
void fk__cell_put(fk_local *local, fk_cell *cell);
/* Takes the run token of a free cell, if nobody has it. */
bool fk__cell_claim(fk_cell *cell);
/* It has used up its generations, and must not be used again: no ref ever names two actors. */
static inline bool fk__cell_is_used_up(const fk_cell *cell)
{
    return fk__half_load(&cell->generation, FK_RELAXED) >= 0xfffffffe;
}
/* The cell of a slot, or NULL when there is none. */
static inline fk_cell *fk__slots_at(const fk_slots *slots, uint32_t slot)
{
    /* Both acquires pair with the releases of chunk_add: a chunk is seen initialised. */
    const fk_directory *directory = fk__word_ptr(&slots->directory, FK_ACQUIRE);
    uint32_t index = slot >> FK_CHUNK_SHIFT;
    if (FK_UNLIKELY(index >= directory->len)) return NULL;
    fk_cell *chunk = fk__word_ptr(&directory->chunk[index], FK_ACQUIRE);
    if (FK_UNLIKELY(chunk == NULL)) return NULL;
    return &chunk[slot & (FK_CHUNK_CELLS - 1)];
}

/* It stands for an actor of another system. */
static inline bool fk__cell_is_remote(const fk_cell *cell)
{
    /* Relaxed: it never changes back, and who has a ref of a proxy has its gate by that. */
    return (fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_REMOTE) != 0;
}

static inline fk_cell *fk__cell_parent(const fk_cell *cell)
{
    return fk__word_ptr(&cell->parent, FK_ACQUIRE);
}

/* local.c */
void fk__local_init(fk_local *local, fk_system *sys, fk_worker *worker);
/* An outside thread's way in and out; never blocks for long. */
fk_local *fk__local_enter(fk_system *sys);
void fk__local_leave(fk_local *local);
/* Around a function of the user's, which may call us again: others may have an outside thread's
 * local meanwhile. Else as many threads as there are locals, each in a callback that sends, would
 * wait for each other for ever. */
void fk__local_pause(fk_local *local);
void fk__local_resume(fk_local *local);
uint64_t fk__local_uid(fk_local *local);
/* A larger one than any so far, of any thread. */
uint64_t fk__local_uid_fresh(fk_local *local);
/* fk__local_resolve() after a look at the newest directory. */
FK_COLD fk_cell *fk__local_resolve_anew(fk_local *local, fk_ref ref);

#endif /* FK_CORE_CELL_H */
