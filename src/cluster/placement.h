/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_PLACEMENT_H
#define FK_CLUSTER_PLACEMENT_H

/*
 * The inside of a placement coordinator.
 *
 *   grain    a key that is active here, on its way to be, or on its way out: its phase
 *   attempt  what a grain has besides while somebody waits for it: tickets, request id, deadline
 *   slot     a lease's unit; its state says whether grains of it may run, its queue what it waits for
 *   realm    one kind: its slots, and the table that says who should own them
 *   errand   a command about many slots that has no result yet
 *
 * Each call from outside enters with fk__placement_enter(), which looks at the lease, changes
 * phases and states, and leaves with fk__slots_pump(), which sends what the queues of slots want.
 * Nothing is allocated where something has to be given up: whatever that needs is there before.
 */

#include "base/map.h"
#include "base/safeguard.h"
#include "cluster/pids.h"
#include "cluster/ring.h"
#include "cluster/table.h"
#include "fraktor/placement.h"

/* ---- grains ------------------------------------------------------------------------------------ */

typedef enum fk_grain_phase {
    FK_PHASE_WAITING = 0, /* for its slot */
    FK_PHASE_LOADING,     /* from here to STORING a command is under way */
    FK_PHASE_ENSURING,
    FK_PHASE_STORING,
    FK_PHASE_ACTIVE,
    FK_PHASE_STOPPING, /* until stopped() */
    FK_PHASE_COUNT
} fk_grain_phase;

typedef struct fk_realm fk_realm;
typedef struct fk_grain fk_grain;

enum { FK_ATTEMPT_TICKETS = 6 };

typedef struct fk_attempt {
    fk_ring due; /* fk_placement.due, in the order of deadlines */
    fk_grain *grain;
    uint64_t request_id;
    fk_time deadline;
    uint64_t version;
    void *record;
    uint64_t *ticket; /* own, until there are more */
    uint32_t count, capacity;
    uint64_t own[FK_ATTEMPT_TICKETS];
} fk_attempt;

struct fk_grain {
    fk_grain_id id;
    fk_grain *next, *prev; /* of its slot */
    fk_realm *realm;
    uint64_t pid;
    fk_time used_at;
    fk_attempt *attempt; /* NULL: nobody waits */
    uint16_t key_len;
    uint8_t phase;
    char key[];
};

/* By id: linear probing, removal by shifting back. Duplicates can be put, and are found in any
 * order. */
typedef struct fk_grains_entry {
    uint64_t hi; /* of its id: others are not looked at, which would be a line of memory each */
    fk_grain *grain;
} fk_grains_entry;

typedef struct fk_grains {
    fk_grains_entry *at;
    uint32_t count;
    uint32_t capacity; /* 0 or a power of two */
} fk_grains;

/* The id is a hash already: its high half says where to look, because the low one says which slot,
 * and grains of one slot would crowd. */
static inline uint32_t fk__grains_home(const fk_grains *grains, uint64_t hi)
{
    return (uint32_t)(hi ^ (hi >> 32)) & (grains->capacity - 1);
}

static inline fk_grain *fk__grains_find(const fk_grains *grains, fk_grain_id id)
{
    if (grains->count == 0) return NULL;
    uint32_t mask = grains->capacity - 1;
    for (uint32_t i = fk__grains_home(grains, id.hi);; i = (i + 1) & mask) {
        const fk_grains_entry *entry = &grains->at[i];
        if (entry->grain == NULL) return NULL;
        if (entry->hi == id.hi && entry->grain->id.lo == id.lo) return entry->grain;
    }
}

/* One that is to stop and of which nobody has said that it began; false: there is none. */
bool fk__placement_unbegun(const fk_placement *p, fk_grain_id *out);
FK_MUST_USE fk_err fk__grains_reserve(fk_grains *grains, fk_mem *mem);
void fk__grains_put(fk_grains *grains, fk_grain *grain);
void fk__grains_remove(fk_grains *grains, const fk_grain *grain);
void fk__grains_fini(fk_grains *grains, fk_mem *mem);

/* ---- slots ------------------------------------------------------------------------------------- */

typedef enum fk_slot_state {
    FK_SLOT_FREE = 0, /* not ours */
    FK_SLOT_ASKED,    /* TryAcquire under way */
    FK_SLOT_HELD,
    FK_SLOT_DRAINING, /* nothing starts; when nothing is left it goes to its next owner */
    FK_SLOT_LEAVING,  /* TransferSlot or Release under way */
    FK_SLOT_STATE_COUNT
} fk_slot_state;

typedef enum fk_queue {
    FK_QUEUE_NONE = 0,
    FK_QUEUE_URGENT,   /* free: wanted by somebody who waits */
    FK_QUEUE_WANTED,   /* free: ours by the table, or maybe ours at the lock */
    FK_QUEUE_REFUSED,  /* free: the same, but not before retry_at; in that order */
    FK_QUEUE_MOVING,   /* held: another's by the table */
    FK_QUEUE_DRAINING, /* draining: not empty yet */
    FK_QUEUE_DRAINED,  /* draining: empty */
    FK_QUEUE_COUNT
} fk_queue;

typedef struct fk_slot {
    fk_grain *grains;
    uint64_t epoch; /* the highest that is known */
    union {
        fk_time retry_at;  /* refused */
        uint64_t asked_by; /* asked: the errand */
    };
    uint32_t next, prev; /* of its queue */
    uint32_t holder;     /* refused: who has it, as an index of the view, or FK_NOBODY */
    uint32_t busy;       /* grains that have or may have an activation */
    uint32_t waiting;    /* grains that wait for the slot */
    uint8_t state, queue;
    bool is_in_doubt; /* free, but the lock may think it is ours: to be asked, whoever owns it */
} fk_slot;

typedef struct fk_slot_queue {
    uint32_t first, last, count;
} fk_slot_queue;

struct fk_realm {
    fk_realm *next;
    fk_slot_table table;
    uint32_t *member_of; /* index of a candidate to index in the view */
    uint32_t member_capacity;
    fk_slot *slot; /* NULL: not run here */
    fk_slot_queue queue[FK_QUEUE_COUNT];
    fk_time idle_ttl;
    bool is_local, is_durable;
    bool is_listed; /* by some member of the view */
    uint8_t name_len;
    char name[FK_KIND_NAME_MAX];
};

typedef struct fk_errand {
    fk_ring due; /* fk_placement.errands_due, in the order of deadlines */
    uint64_t request_id;
    fk_time deadline;
    fk_realm *realm;
    fk_command_kind kind;
    uint32_t count;
    uint32_t to_len;
    uint32_t slot[]; /* then the id of `to` */
} fk_errand;

/* ---- the coordinator --------------------------------------------------------------------------- */

typedef enum fk_role { FK_ROLE_NONE = 0, FK_ROLE_MEMBER, FK_ROLE_CLIENT } fk_role;

/* A view that is our own copy: one block. */
typedef struct fk_census {
    fk_view view;
    fk_member *member; /* by id, then by incarnation */
    size_t size;
} fk_census;

typedef struct fk_lease {
    fk_time deadline; /* 0: there is none */
    fk_time renew_at;
    uint64_t request_id; /* of the renewal under way, or 0 */
    fk_time asked_at;    /* when that was sent */
    fk_time late_at;     /* when it is given up */
} fk_lease;

struct fk_placement {
    fk_mem mem;
    fk_pool pool;
    fk_cache cache;
    fk_placement_config config;

    fk_role role;
    fk_placement_state state;
    bool is_draining;
    uint64_t incarnation;
    uint32_t self; /* index in the view, or FK_NOBODY */
    fk_lease lease;

    fk_time now;   /* of the call that is being made */
    fk_time clock; /* the latest of all: deadlines are made from it, so that they are in order */
    uint64_t last_request;

    fk_census *census; /* NULL: none */
    fk_realm *realms;
    uint32_t realm_count;

    fk_grains grains;
    uint32_t count[FK_PHASE_COUNT];
    uint32_t waiters;
    fk_ring due;
    fk_map attempts; /* by request id */
    const fk_grain
        *resolving;         /* started by the call that is being made, whose ticket is its first: */
    bool is_resolved;       /* that one is told by what the call returns, */
    fk_resolution resolved; /* namely this */

    uint32_t slots[FK_SLOT_STATE_COUNT];
    uint32_t queued[FK_QUEUE_COUNT];
    fk_ring errands_due;
    fk_map errands;        /* by request id */
    uint32_t acquiring;    /* errands that are TryAcquire */
    uint64_t expected;     /* version of a view that there is; 0: none but ours is known */
    fk_time short_until;   /* memory ran out: nothing is sent until then; 0: it did not */
    fk_slot_claim *claims; /* of the command that is being said */
    uint32_t claims_max;

    fk_pids pids;
    uint32_t id_len;
    char id[FK_MEMBER_TEXT_MAX];
};

static inline fk_str fk__placement_id(const fk_placement *p)
{
    return (fk_str){ p->id, p->id_len };
}

static inline fk_str fk__realm_name(const fk_realm *realm)
{
    return (fk_str){ realm->name, realm->name_len };
}

static inline bool fk__text_equal(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline uint32_t fk__grain_slot(const fk_placement *p, const fk_grain *grain)
{
    return fk_slot_of(grain->id, p->config.slots);
}

static inline fk_grain_key fk__grain_key(const fk_grain *grain)
{
    return (
        fk_grain_key){ fk__realm_name(grain->realm), { grain->key, grain->key_len }, grain->id };
}

/* Whether grains of this member may run now. */
static inline bool fk__placement_is_member(const fk_placement *p)
{
    return p->state == FK_PLACEMENT_STATE_MEMBER;
}

/* ---- placement.c ---- */
void fk__placement_enter(fk_placement *p, fk_time now);
/* STATE, when it is another than before. */
void fk__placement_restate(fk_placement *p);
void fk__placement_forget(fk_placement *p, const char *reason, fk_err err);

/* ---- placement_say.c ---- */
void fk__say(const fk_placement *p, fk_placement_event event);
void fk__say_key(const fk_placement *p, fk_placement_event_kind kind, const fk_grain_key *key,
                 fk_err err, const char *reason);
void fk__say_grain(const fk_placement *p, fk_placement_event_kind kind, const fk_grain *grain,
                   fk_err err, const char *reason);
void fk__say_slot(const fk_placement *p, fk_placement_event_kind kind, const fk_realm *realm,
                  uint32_t slot, const char *reason);
void fk__say_cached(const fk_placement *p, fk_placement_event_kind kind, const fk_pid *pid,
                    const char *reason);
/* A command about a grain; of one without an attempt the request id is new. */
void fk__say_command(fk_placement *p, fk_command_kind kind, const fk_grain *grain,
                     const char *reason, fk_placement_result *done);
fk_resolution fk__resolution_local(const fk_placement *p, const fk_grain *grain);
fk_resolution fk__resolution_remote(const fk_placement *p, uint32_t member);
fk_resolution fk__resolution_error(const fk_placement *p, fk_err err, const char *reason);

/* ---- placement_flight.c ---- */
/* A grain that waits for its slot, with an attempt nobody waits for yet. */
FK_MUST_USE fk_err fk__grain_create(fk_placement *p, fk_realm *realm, const fk_grain_key *key,
                                    fk_grain **out);
void fk__grain_free(fk_placement *p, fk_grain *grain);
void fk__grain_set_phase(fk_placement *p, fk_grain *grain, fk_grain_phase phase);
/* Adds a ticket; makes an attempt when there is none. FK_E_OVERLOADED, FK_E_NOMEM. */
FK_MUST_USE fk_err fk__attempt_join(fk_placement *p, fk_grain *grain, uint64_t ticket);
void fk__attempt_free(fk_placement *p, fk_grain *grain);
/* Tells all who wait, and forgets them with the attempt. */
void fk__attempt_settle(fk_placement *p, fk_grain *grain, const fk_resolution *resolution);
/* Its slot is held: the first command. */
void fk__flight_go(fk_placement *p, fk_grain *grain);
/* Ends what is under way without a result: whatever may run is stopped, who waits is told. */
void fk__flight_fail(fk_placement *p, fk_grain *grain, fk_placement_event_kind kind, fk_err err,
                     const char *reason);
/* The same, but who waits goes on waiting, for the slot. */
void fk__flight_retreat(fk_placement *p, fk_grain *grain, const char *reason);
void fk__flight_late(fk_placement *p, fk_grain *grain);
fk_err fk__flight_result(fk_placement *p, fk_grain *grain, const fk_placement_result *result);
/* An active grain: StopActivation. */
void fk__grain_stop(fk_placement *p, fk_grain *grain, const char *reason);
/* idle_ttl 0: that of each kind. */
void fk__placement_passivate(fk_placement *p, fk_time now, fk_time idle_ttl);

/* ---- placement_slots.c ---- */
/* Puts the slot where table and state want it, and sees to whoever waits for it. */
void fk__slot_review(fk_placement *p, fk_realm *realm, uint32_t slot);
void fk__slots_review(fk_placement *p, fk_realm *realm);
void fk__slot_set(fk_placement *p, fk_realm *realm, uint32_t slot, fk_slot_state state);
void fk__slot_queue(fk_placement *p, fk_realm *realm, uint32_t slot, fk_queue queue);
/* It is not ours any more, or nobody knows: everything of it stops. */
void fk__slot_lose(fk_placement *p, fk_realm *realm, uint32_t slot, const char *reason, fk_err err);
/* It is ours: those who wait go. */
void fk__slot_hold(fk_placement *p, fk_realm *realm, uint32_t slot, uint64_t epoch);
/* It is another's. `holder` may be FK_NOBODY. */
void fk__slot_refuse(fk_placement *p, fk_realm *realm, uint32_t slot, uint32_t holder);
/* Refused ones whose time has come are wanted again. */
void fk__slots_retry(fk_placement *p);
/* Sends what the queues hold, as far as there may be. */
void fk__slots_pump(fk_placement *p);

/* ---- placement_errand.c ---- */
/* False: there is no memory now. */
bool fk__errand_acquire(fk_placement *p, fk_realm *realm);
bool fk__errand_move(fk_placement *p, fk_realm *realm);
fk_err fk__errand_result(fk_placement *p, const fk_placement_result *result);
void fk__errand_late(fk_placement *p, fk_errand *errand);
void fk__errands_forget(fk_placement *p);

/* ---- placement_lease.c ---- */
void fk__lease_start(fk_placement *p, fk_time asked_at);
void fk__lease_lose(fk_placement *p, const char *reason);
fk_err fk__lease_result(fk_placement *p, const fk_placement_result *result);

/* ---- placement_view.c ---- */
typedef enum fk_owner { FK_OWNER_NOBODY = 0, FK_OWNER_SELF, FK_OWNER_OTHER } fk_owner;

fk_realm *fk__realm_find(const fk_placement *p, fk_str name);
FK_MUST_USE fk_err fk__realm_create(fk_placement *p, fk_str name, fk_realm **out);
void fk__realm_drop(fk_placement *p, fk_realm *realm);
void fk__realms_free(fk_placement *p);
/* By the table. A former life of this member is nobody. *member, when it is another. */
fk_owner fk__realm_owner(const fk_placement *p, const fk_realm *realm, uint32_t slot,
                         uint32_t *member);
/* FK_NOBODY: it is not in the view. */
uint32_t fk__census_find(const fk_placement *p, fk_str id, uint64_t incarnation);
/* Where this member is in the view, and the tables that come of it. Cannot fail when there are not
 * more candidates than before. */
FK_MUST_USE fk_err fk__census_refresh(fk_placement *p);
void fk__census_free(fk_placement *p, fk_census *census);
/* Gives all slots away, whatever the table says. */
bool fk__placement_is_leaving(const fk_placement *p);
/* Leaving, and there is none to give them to. */
static inline bool fk__owner_is_missing(const fk_placement *p, fk_owner owner)
{
    return owner == FK_OWNER_NOBODY && fk__placement_is_leaving(p);
}
#define FK_NOBODY_IS_UP "no member that has this kind is up"

#endif /* FK_CLUSTER_PLACEMENT_H */
