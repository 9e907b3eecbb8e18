/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_CLUSTER_H
#define FK_SIM_CLUSTER_H

/*
 * A cluster in virtual time: nodes made of the real placement coordinator, call desk, dedup windows
 * and activations; between them a network, a lock service and a store of rows that are simulated, and
 * that fail as the plan of the seed says. There are no threads: everything is an event at a moment.
 *
 * The ledger (cluster_ledger.c) sees every grant, turn, store and answer at the moment at which it
 * truly happens, whatever the clocks of the nodes say, and checks:
 *
 *   I1  epochs of a slot only grow             I10 a slot is held before a grain in it is started
 *   I2  one holder of a slot at a time         I11 who is told Remote causes no I/O
 *   I3  a holder stops before its lease ends   I12 results are matched with requests, none is left
 *   I4  one node takes turns of a grain        I13 one view, one owner
 *   I5  stores: epochs grow, versions by one   I14 only what must move moves
 *   I6  nothing acknowledged is lost           I15 who is dead stays dead
 *   I7  each grain is linearizable             I16 no turn of a slot that is not held
 *   I8  one effect, one answer of a call       I17 events are in order, none is lost
 *   I9  an answer leaves after its store       I18 everything has a bound, nothing leaks
 *
 *   L1 calls end  L2 slots are with their owners  L3 grains can be reached  L4 idle ones go
 *   L5 who has drained holds nothing
 *   C1 a call ends once  C2 with its own answer  C3 that had an effect  C4 once
 */

#include "cluster/activation.h"
#include "cluster/call.h"
#include "fraktor/placement.h"
#include "fraktor/store.h"

#include "base/hash.h"
#include "sim/cluster_fact.h"

#include <stdio.h>

enum {
    FK_CSIM_MEMBERS = 5,
    FK_CSIM_NODES = 6, /* the last is never a member */
    FK_CSIM_LOCK = 6,  /* ends of the network: nodes, and ... */
    FK_CSIM_ROWS = 7,
    FK_CSIM_ENDS = 8,
    FK_CSIM_KINDS = 2, /* 0 durable, 1 volatile */
    FK_CSIM_SLOTS = 16,
    FK_CSIM_KEYS = 10,
    FK_CSIM_OPS = 3072,
    FK_CSIM_LIVES = 512,
    FK_CSIM_TICKETS = 512,
    FK_CSIM_VERSIONS = 1024,
    FK_CSIM_VIEW_MAX = 24, /* former lives are members until their leases are over */
    FK_CSIM_NOBODY = 0xff,
};

/* ---- the plan: what a seed says ------------------------------------------------------------ */

typedef enum fk_csim_mood {
    FK_CSIM_SWARM = 0, /* some of all faults */
    FK_CSIM_CALM,      /* none */
    FK_CSIM_ROLLING,   /* every node is restarted, one after the other, politely */
    FK_CSIM_SPLIT,     /* one node is cut off from the others and the store, then not */
    FK_CSIM_STORM,     /* nodes come and go */
    FK_CSIM_CLOCKS,    /* clocks are worse than anybody may expect */
    FK_CSIM_FAILOVER,  /* the lock service forgets */
    FK_CSIM_MOODS,
} fk_csim_mood;

/* NAME, weight. */
#define FK_CSIM_FAULTS(X)                                                                          \
    X(PAUSE, 6)                                                                                    \
    X(CRASH, 4)                                                                                    \
    X(CUT_NODES, 4)                                                                                \
    X(CUT_ONE_WAY, 3)                                                                              \
    X(CUT_LOCK, 4)                                                                                 \
    X(CUT_ROWS, 4)                                                                                 \
    X(LOCK_DOWN, 2)                                                                                \
    X(LOCK_SLOW, 3)                                                                                \
    X(ROWS_SLOW, 3)                                                                                \
    X(DISK_FULL, 2)                                                                                \
    X(OLD_VIEW, 3)                                                                                 \
    X(LEAVE, 4)                                                                                    \
    X(DRAIN, 2)                                                                                    \
    X(PASSIVATE, 4)                                                                                \
    X(FAILOVER, 0)                                                                                 \
    X(FREEZE, 0)                                                                                   \
    X(RATE, 0)

typedef enum fk_csim_fault {
#define FK_CSIM_FAULT_ENUM(NAME, weight) FK_CSIM_FAULT_##NAME,
    FK_CSIM_FAULTS(FK_CSIM_FAULT_ENUM)
#undef FK_CSIM_FAULT_ENUM
        FK_CSIM_FAULT_COUNT
} fk_csim_fault;

typedef struct fk_csim_plan {
    fk_csim_mood mood;
    uint32_t members, keys, clients; /* clients of each node */
    bool has_guest;                  /* the node that is no member */
    bool is_shuffled;                /* members of a view come in any order */
    bool is_epoch_global;
    bool has_ties;    /* a strategy that makes many */
    bool joins_first; /* as JOINING, UP later */
    fk_time trouble;  /* how long it lasts */
    fk_time delay_min, delay_max, spike_max;
    uint32_t spike_in, drop_in, dup_in, lost_ack_in, twice_in;
    uint32_t pause_load_in, pause_store_in; /* at the worst moments */
    uint32_t busy_in;                       /* a message cannot be sent now */
    fk_time turn_max, think_max, call_timeout, op_timeout, view_every, idle_ttl;
    int32_t ppm_max;
    uint32_t read_in, burst_in;
    uint32_t starve_in; /* an allocation fails */
    fk_time fault_gap;
    uint32_t fault[FK_CSIM_FAULT_COUNT], fault_sum;
    uint32_t waiters_max, cache_capacity, acquire_batch, drain_batch;
    fk_time command_timeout;
} fk_csim_plan;

extern const fk_strategy_ops fk__csim_ties;

void fk__csim_plan_draw(fk_csim_plan *plan, uint64_t seed, bool is_split);

/* ---- things that travel -------------------------------------------------------------------- */

typedef struct fk_csim_node fk_csim_node;

/* A row as it was read, or is to be written. */
typedef struct fk_csim_record {
    uint64_t version, total;
    unsigned char bytes[8]; /* total, as the snapshot */
    fk_str dedup;
    bool is_kept, is_discarded; /* by the coordinator */
} fk_csim_record;

typedef struct fk_csim_view {
    uint64_t version;
    uint32_t count;
    struct {
        uint8_t node;
        fk_member_status status;
        uint32_t weight;
        uint64_t incarnation;
    } member[FK_CSIM_VIEW_MAX];
} fk_csim_view;

/* One thing to be done by the lock service or the store, and what came of it. */
typedef struct fk_csim_op fk_csim_op;
struct fk_csim_op {
    fk_store_verb verb;
    fk_csim_op *asked; /* of an answer: what was asked; of that: NULL */
    void (*done)(fk_csim_node *node, const fk_csim_op *answer);
    uint8_t node, to, kind;
    bool is_done;    /* it has been answered, or given up */
    bool is_command; /* of the coordinator: late answers go there, too */
    uint32_t life;
    fk_command_kind command;
    uint64_t request_id, incarnation, to_incarnation;
    fk_time asked_at;
    fk_member_status status;
    fk_slot_claim *claims;
    uint32_t claim_count;
    uint32_t key;
    uint64_t epoch, version, pid;
    fk_request request;
    fk_csim_record *record;
    uint16_t *batch; /* calls whose effect is in it */
    uint32_t batch_count;
    fk_verdict verdict;
    fk_err err;
    const fk_csim_view *view;
};

/* A call that is on its way, or an answer to it. */
typedef struct fk_csim_call fk_csim_call;
struct fk_csim_call {
    fk_call core; /* first */
    fk_csim_call *after;
    uint32_t op;  /* of the ledger */
    uint8_t home; /* node of the asker */
    bool is_copy; /* the desk has the original */
    fk_err err;   /* an answer */
    uint64_t value;
};

typedef struct fk_csim_notice {
    uint8_t kind, authority;
    uint32_t key;
    uint64_t incarnation;
    fk_slot_claim *claims;
    uint32_t count;
} fk_csim_notice;

/* ---- nodes --------------------------------------------------------------------------------- */

typedef struct fk_csim_act fk_csim_act;
struct fk_csim_act {
    fk_activation core;
    fk_csim_act *next;
    uint64_t pid, total;
    uint32_t key;
    bool is_ready, is_busy, is_stopping;
    const char *reason; /* why it stops */
    fk_csim_call *running;
    fk_csim_call *mail, **mail_end;
    fk_csim_call *kept, **kept_end;
    uint16_t batch[FK_ACTIVATION_BATCH_MAX + 1];
    uint32_t batch_count;
    uint32_t ran_count; /* of a volatile grain: who has been run */
    uint16_t *ran;
};

typedef enum fk_csim_state {
    FK_CSIM_ABSENT = 0,
    FK_CSIM_RUNNING,
    FK_CSIM_LEAVING,  /* drains */
    FK_CSIM_STOPPING, /* the coordinator has been stopped */
} fk_csim_state;

typedef struct fk_csim_block fk_csim_block;

struct fk_csim_node {
    uint8_t index;
    bool is_guest;
    fk_csim_state state;
    uint32_t life;        /* each run of its process has another */
    uint64_t incarnation; /* as a member */
    fk_time paused_until;
    fk_time clock_true, clock_local;
    int32_t clock_ppm;
    fk_placement *placement;
    fk_desk *desk;
    fk_mem mem;
    fk_csim_block *blocks;
    fk_csim_act *acts;
    fk_time wake_at;
    uint64_t single_origin, single_seq;
    uint64_t pid_last;
    bool may_starve;
    bool is_joining, is_quiet; /* quiet: its clients make no calls */
    bool is_draining, stays_drained, is_returning;
    fk_time leave_by;
    uint32_t open_calls;
    uint32_t commands;                /* that the coordinator has given */
    uint64_t ticket[FK_CSIM_TICKETS]; /* that are not settled */
    uint32_t ticket_count;
    fk_time deadline_seen;
    uint64_t view_seen;
    uint32_t steps;
};

/* ---- the services -------------------------------------------------------------------------- */

typedef struct fk_csim_lease {
    fk_time expires;
    fk_member_status status; /* DOWN: over */
} fk_csim_lease;

typedef struct fk_csim_slot {
    uint8_t holder;
    uint64_t incarnation, epoch;
} fk_csim_slot;

typedef struct fk_csim_row {
    bool exists;
    uint8_t holder;
    uint64_t incarnation, epoch, version, total;
    fk_str dedup;
    fk_request last; /* store that made this version */
} fk_csim_row;

enum { FK_CSIM_UNDO = 8 };

typedef struct fk_csim_services {
    fk_csim_lease lease[FK_CSIM_MEMBERS][FK_CSIM_LIVES];
    uint64_t incarnation[FK_CSIM_MEMBERS]; /* the newest */
    fk_csim_slot slot[FK_CSIM_KINDS][FK_CSIM_SLOTS];
    uint64_t epoch_last[FK_CSIM_KINDS][FK_CSIM_SLOTS];
    uint64_t epoch_global;
    struct {
        uint8_t kind, slot;
        fk_csim_slot before;
        uint64_t epoch_last;
    } undo[FK_CSIM_UNDO];
    uint32_t undo_count;
    fk_csim_view *view[FK_CSIM_VERSIONS]; /* by version */
    uint64_t version;
    fk_csim_row row[FK_CSIM_KEYS];
    fk_time down_until[2], slow_until[2], full_until;
} fk_csim_services;

/* ---- the ledger ---------------------------------------------------------------------------- */

typedef struct fk_csim_deed {
    uint8_t key, node, client;
    bool is_read, is_over, is_lost; /* lost: its node is gone */
    bool is_applied, is_answered;
    fk_err err;
    uint32_t life;
    fk_time begun, ended;
    uint64_t value;   /* what the asker was told */
    uint64_t applied; /* the total that it made */
    uint64_t replied;
} fk_csim_deed;

typedef struct fk_csim_turn {
    bool is_on, is_excused; /* its node stood still meanwhile */
    uint64_t pid;
    uint32_t life, deed;
} fk_csim_turn;

typedef struct fk_csim_book {
    fk_csim_deed deed[FK_CSIM_OPS];
    uint32_t deed_count, deeds_open, failed;
    fk_csim_turn turn[FK_CSIM_KEYS][FK_CSIM_NODES];
    uint64_t epoch[FK_CSIM_KINDS][FK_CSIM_SLOTS]; /* greatest ever granted */
    uint64_t fence[FK_CSIM_KEYS];                 /* greatest that has loaded or stored */
    uint64_t applied[FK_CSIM_KEYS];
    uint8_t owner[FK_CSIM_VERSIONS][FK_CSIM_KINDS][FK_CSIM_SLOTS];
    bool has_owner[FK_CSIM_VERSIONS];
    uint32_t kept_records;
    struct { /* before the trouble, in it, and after it */
        uint32_t turns, ok, not_ready, other;
        fk_time last_turn;
    } part[FK_CSIM_NODES][3];
    uint64_t turns, calls;
} fk_csim_book;

/* ---- the world ----------------------------------------------------------------------------- */

typedef struct fk_csim_event {
    fk_time at;
    uint64_t order;
    void (*fn)(void *arg, uint64_t number);
    void *arg;
    uint64_t number;
    uint32_t life;
    uint8_t node; /* FK_CSIM_NOBODY: the world's own */
} fk_csim_event;

typedef struct fk_csim {
    fk_csim_plan plan;
    fk_rng rng;
    fk_time now, begun, trouble_at, healed_at;
    uint64_t order, events;
    fk_csim_event *heap;
    uint32_t heap_count, heap_capacity;
    bool is_strict;  /* clocks and lock service are as they promise: S1 holds */
    bool is_healed;  /* no more faults */
    uint8_t alone;   /* who is cut off from all others */
    bool is_closing; /* clients make no more calls */
    uint32_t lives;
    fk_time cut[FK_CSIM_ENDS][FK_CSIM_ENDS]; /* until then */
    fk_grain_key key[FK_CSIM_KEYS];
    char key_text[FK_CSIM_KEYS][8];
    uint8_t key_kind[FK_CSIM_KEYS];
    fk_grain_key probe[FK_CSIM_KINDS][FK_CSIM_SLOTS]; /* a key for each slot */
    char probe_text[FK_CSIM_KINDS][FK_CSIM_SLOTS][8];
    fk_csim_node node[FK_CSIM_NODES];
    fk_csim_services services;
    fk_csim_book book;
} fk_csim;

extern fk_csim fk__csim;

/* cluster.c: time, chance, memory, findings. */
_Noreturn void fk__csim_fail(const char *invariant, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void *fk__csim_new(size_t size); /* zeroed; until the end of the run */
uint32_t fk__csim_below(uint32_t end);
bool fk__csim_one_in(uint32_t n); /* never when n is 0 */
fk_time fk__csim_between(fk_time low, fk_time high);
void fk__csim_at(fk_time delay, void (*fn)(void *arg, uint64_t number), void *arg, uint64_t number);
/* Not before the node goes on, and never if its process ends before. */
uint64_t fk__csim_node_at(fk_csim_node *n, fk_time delay, void (*fn)(void *arg, uint64_t number),
                          void *arg, uint64_t number);

/* cluster_swarm.c draws; cluster_net.c sends. */
void fk__csim_send(uint8_t from, uint8_t to, void (*fn)(void *arg, uint64_t number), void *arg);
bool fk__csim_is_cut(uint8_t from, uint8_t to);
void fk__csim_heal_network(void);

/* cluster_store.c: asks a service; done() is called once, or more often for commands. */
fk_csim_op *fk__csim_op_make(fk_csim_node *n, fk_store_verb verb,
                             void (*done)(fk_csim_node *node, const fk_csim_op *answer));
void fk__csim_op_send(fk_csim_op *op);
/* cluster_lock.c, cluster_rows.c: what the services do. */
void fk__csim_lock_apply(fk_csim_op *op);
void fk__csim_rows_apply(fk_csim_op *op);
bool fk__csim_lease_is_good(uint8_t node, uint64_t incarnation);
bool fk__csim_holds(uint8_t node, uint64_t incarnation, uint32_t key, uint64_t epoch);
void fk__csim_lock_sweep(void);
void fk__csim_lock_forget(void);
void fk__csim_lock_raise(void);

/* cluster_node.c: processes. */
fk_time fk__csim_local(const fk_csim_node *n);
fk_time fk__csim_true_of(const fk_csim_node *n, fk_time local);
void fk__csim_clock_set(fk_csim_node *n, int32_t ppm);
void fk__csim_boot(fk_csim_node *n);
void fk__csim_crash(fk_csim_node *n);
void fk__csim_drain(fk_csim_node *n);
void fk__csim_leave(fk_csim_node *n, bool returns);
void fk__csim_pause(fk_csim_node *n, fk_time time);
void fk__csim_view_old(fk_csim_node *n);
void fk__csim_node_after(fk_csim_node *n);
fk_str fk__csim_id(uint8_t node);
uint8_t fk__csim_index(fk_str id);
uint32_t fk__csim_key_index(fk_grain_id id);
fk_port fk__csim_port(fk_csim_node *n);
size_t fk__csim_bytes(const fk_csim_node *n);
void fk__csim_abandon(fk_csim_node *n);

/* cluster_driver.c: what the coordinator says. */
fk_placement_outcome fk__csim_outcome(fk_csim_node *n);
void fk__csim_join(fk_csim_node *n);

/* cluster_grain.c: activations. */
fk_csim_act *fk__csim_act_find(fk_csim_node *n, uint64_t pid);
fk_csim_act *fk__csim_act_make(fk_csim_node *n, const fk_csim_op *op);
void fk__csim_act_deliver(fk_csim_node *n, fk_csim_act *act, fk_csim_call *call);
void fk__csim_act_stop(fk_csim_node *n, fk_csim_act *act, const char *reason);
void fk__csim_acts_quit(fk_csim_node *n); /* by themselves */
void fk__csim_acts_end(fk_csim_node *n);

/* cluster_desk.c: calls. */
fk_desk_config fk__csim_desk_config(fk_csim_node *n);
void fk__csim_give_back(fk_csim_node *n, fk_csim_call *call);
void fk__csim_reply(fk_csim_node *n, fk_csim_call *call, fk_err err, uint64_t value);
void fk__csim_clients_begin(fk_csim_node *n);
uint32_t fk__csim_ask(fk_csim_node *n, uint32_t key, bool is_read, uint8_t client);

/* cluster_fault.c: when things go wrong. */
void fk__csim_trouble_begin(void);
void fk__csim_heal(void);
void fk__csim_worst_moment(fk_csim_node *n, uint32_t in);

/* cluster_ledger.c: what is checked when it happens; cluster_check.c: at rest and at the end. */
void fk__book_begin(void);
void fk__book_granted(uint8_t kind, uint32_t slot, uint8_t node, uint64_t epoch);
void fk__book_activated(fk_csim_node *n, uint32_t key, uint64_t epoch);
void fk__book_turn_begin(fk_csim_node *n, const fk_csim_act *act, uint32_t deed);
void fk__book_turn_end(fk_csim_node *n, const fk_csim_act *act);
void fk__book_paused(fk_csim_node *n);
void fk__book_gone(fk_csim_node *n);
void fk__book_loaded(uint32_t key, uint64_t epoch);
void fk__book_stored(const fk_csim_op *op, uint64_t total_before, uint64_t version_before);
void fk__book_replied(fk_csim_node *n, uint32_t deed, uint64_t value, bool is_durable);
uint32_t fk__book_asked(fk_csim_node *n, uint32_t key, bool is_read, uint8_t client);
void fk__book_answered(fk_csim_node *n, uint32_t deed, fk_err err, uint64_t value);
void fk__book_event(fk_csim_node *n, const fk_placement_event *event);
void fk__book_pending(fk_csim_node *n, uint64_t ticket);
void fk__book_settled(fk_csim_node *n, uint64_t ticket);
void fk__book_owners(fk_csim_node *n);
void fk__book_node(fk_csim_node *n);
void fk__book_check_live(void);
void fk__book_check_idle(void);
void fk__book_check_ended(void);
const char *fk__csim_mood_name(fk_csim_mood mood);

#endif /* FK_SIM_CLUSTER_H */
