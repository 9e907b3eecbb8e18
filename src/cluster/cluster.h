/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_CLUSTER_H
#define FK_CLUSTER_CLUSTER_H

/*
 * What the files of the cluster's actors share:
 *
 *   cluster.c     its life, and looking at it from any thread
 *   kinds.c       kinds of grains, and /user/KIND
 *   roll.c        the roll: which grains are active here, for senders, without a lock
 *   mission.c      a call as it travels: hot, straight to an active grain, or as an mission
 *   grain.c       the actor that a grain is: turns, stores, answers
 *   steward.c   /system/cluster, the actor that owns placement and desk; steward_*.c what it does
 *   calling.c     fk_grain_tell() and its kin
 *
 * Pure and used by these: placement*.c, call.c, dedup.c, activation.c, rendezvous.c, telegram.c.
 *
 * Who may touch what: placement, desk and seats are the steward's; a shell (the state of a grain's
 * actor) is that actor's; the roll, the lease word and what is under the lock are anybody's.
 */

#include "cluster/activation.h"
#include "cluster/job.h"
#include "cluster/telegram.h"
#include "core/tray.h"
#include "fraktor/cluster.h"
#include "fraktor/registry.h"
#include "fraktor/shutdown.h"

typedef struct fk_steward fk_steward;
typedef struct fk_seat fk_seat;
typedef struct fk_shell fk_shell;

/* A kind that is registered here. Never changes, and stays as long as the cluster. */
typedef struct fk_breed {
    struct fk_breed *next;
    fk_kind kind;
    fk_props props;       /* the user's */
    fk_props shell_props; /* of the actor around it */
    fk_ref parent;        /* /user/KIND */
    uint32_t name_len;
    char name[FK_KIND_NAME_MAX + 1];
} fk_breed;

/* The place of an active grain. The memory stays a seat until the cluster ends, and a seat that was
 * given up is not used again soon: a sender that found it in the roll may be slow. */
struct fk_seat {
    /* Readers of the roll; written by the steward. Aligned for FK_ROLL_LINK_BITS. */
    _Alignas(16) fk_half version; /* odd while it changes */
    fk_half id[4];
    fk_half slot, generation; /* of the actor */
    fk_word next;             /* link to the next one of its bucket */
    fk_half is_used;          /* since the steward looked last; by anybody */
    fk_half is_closing;       /* calls go back to the steward; by the steward */

    /* The steward's; what is above `gone` does not change while the actor lives. */
    fk_cluster *cluster;
    const fk_breed *breed;
    fk_grain_id grain;
    uint64_t epoch;
    fk_ref ref;   /* of the actor */
    fk_half turn; /* how often it has been given to a grain; read by anybody */
    uint32_t key_len;
    char *key;
    fk_seat *gone; /* in the stack of those whose actor has ended, or of free ones */
    fk_err why;    /* it ended for: FK_OK, or the error of its store */
    fk_verdict verdict;
    uint64_t fence_epoch;
    bool is_listed;  /* in the roll */
    bool is_removed; /* its row, too */
};

/* Bytes of a grain's key that lie in the seat's own block. */
enum { FK_SEAT_KEY_INLINE = 40 };

typedef struct fk_roll_table {
    struct fk_roll_table *older;
    uint32_t mask;
    fk_word bucket[]; /* links to seats: roll.c */
} fk_roll_table;

/* What a link says of its seat besides where it is. */
#define FK_ROLL_LINK_BITS ((uintptr_t)15)
_Static_assert(_Alignof(fk_seat) > 15, "the bits of a link are free");
static inline fk_seat *fk__roll_seat(uintptr_t link)
{
    return (fk_seat *)(link & ~FK_ROLL_LINK_BITS);
}
static inline fk_seat *fk__roll_follow(const fk_word *link)
{
    return fk__roll_seat(fk__word_load(link, FK_ACQUIRE));
}

typedef struct fk_roll {
    fk_word table; /* fk_roll_table */
    fk_mem *mem;
    uint32_t count;
    fk_seat *free_first, **free_last; /* oldest first */
    uint32_t free_count;
    struct fk_seat_block *blocks;
} fk_roll;

/* What people see of a cluster, copied by the steward, under the lock. */
typedef struct fk_sight_of_cluster {
    fk_cluster_stats stats;
    unsigned char *view; /* block with members, kinds and texts */
    size_t view_size;
    fk_view members;
} fk_sight_of_cluster;

struct fk_cluster {
    fk_system *sys;
    fk_cluster_config config;
    fk_cluster_port port;
    uint64_t origin;        /* of numbered calls */
    uint64_t origin_single; /* of calls that stay here */
    fk_word single_next;
    fk_ref steward;
    fk_steward *steward_state;
    fk_roll roll;
    fk_word breeds;   /* fk_breed, newest first; written under the lock */
    fk_word lease_ms; /* turns may begin until then, on the system's clock */
    fk_word gone;     /* stack of seats whose actors have ended */
    fk_half is_ready; /* calls can be made; what fk_cluster_await_ready() waits on */
    uint64_t
        shutdown_task;  /* of coordinated shutdown, to be told when it has left: under the lock */
    fk_half is_left;    /* 1: it is leaving; 2: it has left; also waited on */
    fk_half is_over;    /* nothing runs any more */
    fk_half is_unarmed; /* the steward has no timer: it is to be told to look, by whoever can */
    const fk_codecs *codecs;
    fk_codecs codecs_own;
    void *codecs_memory;
    size_t codecs_size;
    fk_lock lock; /* of breeds, sight */
    fk_sight_of_cluster sight;
    size_t telegram_max;
    uint64_t incarnation; /* of the last join: under the lock */
    bool has_lease;       /* it has joined and not left: under the lock */
    /* Any thread; only numbers. */
    fk_word deduplicated, stores, store_failures;
    fk_word types; /* fk_known_type: of answers that no codec writes */
    uint32_t id_len, address_len;
    char id[FK_MEMBER_TEXT_MAX + 1];
    char address[FK_MEMBER_TEXT_MAX + 1];
};

static inline fk_str fk__cluster_id(const fk_cluster *cluster)
{
    return (fk_str){ cluster->id, cluster->id_len };
}

static inline uintptr_t fk__lease_of(fk_time at)
{
    return (uintptr_t)(uint64_t)(at / 1000000);
}

/* Turns may begin. Modulo the width of a word, which is good for weeks. */
static inline bool fk__lease_holds(const fk_cluster *cluster, fk_local *local)
{
    /* Acquire: pairs with the steward's release. An old value is smaller, and so safe. */
    uintptr_t until = fk__word_load(&cluster->lease_ms, FK_ACQUIRE);
    return (intptr_t)(until - fk__lease_of(fk__now_bound(local))) > 0;
}

/* ---- cluster.c */

/* Made by the host, which has joined: with its incarnation, asked for at that time. */
typedef struct fk_cluster_start {
    const fk_cluster_config *config;
    fk_str id, address;
    fk_cluster_port port;
    uint64_t incarnation;
    fk_time asked_at;
    size_t telegram_max; /* longer ones do not go to other nodes */
} fk_cluster_start;
FK_MUST_USE fk_err fk__cluster_create(fk_system *sys, const fk_cluster_start *start,
                                      fk_cluster **out);
/* Cut, if it is longer than any id or address can be. */
void fk__member_text(char to[FK_MEMBER_TEXT_MAX + 1], fk_str from);
/* The driver looks around; is_new: the store has something new. False: it could not be told, and is to
 * be told again. Any thread. */
bool fk__cluster_changed(void *cluster, bool is_new);

/* ---- kinds.c */

const fk_breed *fk__breed_find(const fk_cluster *cluster, fk_str name);
/* KEY of /user/KIND/KEY: the key itself, or a name for one that is none, or might be the same name as
 * another: "%41" is "A". */
enum { FK_GRAIN_NAME_ROOM = 33 };
fk_str fk__grain_name(const fk_system *sys, fk_str key, fk_grain_id id,
                      char room[FK_GRAIN_NAME_ROOM]);

/* ---- roll.c */

FK_MUST_USE fk_err fk__roll_init(fk_roll *roll, fk_mem *mem);
void fk__roll_fini(fk_roll *roll);
/* A seat for a grain, not listed. */
FK_MUST_USE fk_err fk__seat_get(fk_roll *roll, fk_cluster *cluster, const fk_breed *breed,
                                const fk_grain_key *key, fk_seat **out);
void fk__seat_put(fk_roll *roll, fk_seat *seat);
/* FK_E_NOMEM: it is not listed, and calls go by the steward. */
fk_err fk__roll_add(fk_roll *roll, fk_seat *seat, fk_ref ref);
void fk__roll_remove(fk_roll *roll, fk_seat *seat);
/* The steward: a grain of that id is likely to be added soon. */
void fk__roll_expect(const fk_roll *roll, fk_grain_id id);
/* Any thread. NULL: it is not listed, as far as can be seen. */
fk_seat *fk__roll_find(const fk_roll *roll, const fk_grain_key *key, fk_ref *ref, uint32_t system);

/* ---- mission.c */

enum { FK_HOT_NODE = 1, FK_HOT_NUMBERED = 2, FK_HOT_ACK = 4, FK_HOT_BODY = 40 };

/* A call on its way to an active grain, as a message. What is not handled goes back to the steward,
 * whatever happens to the actor: that is its drop function. */
typedef struct fk_hot {
    fk_seat *seat; /* NULL: it has been handled */
    const fk_type *type;
    uint64_t origin, seq, low;
    uint32_t turn; /* the seat's */
    uint8_t flags;
    uint8_t len;
    uint16_t why; /* fk_err: what it is given back for, if anything is wrong */
    uint32_t asker_slot, asker_generation;
    union {
        unsigned char bytes[FK_HOT_BODY];
        struct {
            fk_node *node;
            uint64_t earlier_origin, earlier_seq;
            fk_time deadline;
            uint64_t returns;
        } far;
    } body;
} fk_hot;
extern const fk_type fk__type_hot;

/* A call that the steward has to do with. */
typedef struct fk_mission {
    fk_call call; /* first */
    fk_cluster *cluster;
    fk_ref asker; /* FK_REF_NONE: nobody; ours only */
    bool wants_answer;
    fk_node *body;  /* the message, or NULL: packed */
    fk_cargo cargo; /* packed: views into the block, into `packed`, or a codec's manifest */
    unsigned char *packed;
    size_t packed_size;
    fk_str origin_address; /* of another node's: in the block */
    uint64_t view;         /* of another node's: the newest that it has met on its way */
    size_t size;
} fk_mission;

typedef struct fk_mission_message {
    fk_mission *mission;
} fk_mission_message;
extern const fk_type fk__type_mission;

/* Who answers a call without saying anything. */
extern const fk_type fk__type_ack;

/* An mission with room for key, kind and so many bytes more. */
FK_MUST_USE fk_err fk__mission_create(fk_local *local, fk_cluster *cluster, const fk_grain_key *key,
                                      size_t more, fk_mission **out);
static inline char *fk__mission_more(fk_mission *mission)
{
    return (char *)(mission + 1) + mission->call.key.kind.len + mission->call.key.key.len;
}
void fk__mission_destroy(fk_local *local, fk_mission *mission);
/* To the steward; taken. Without one it ends. */
void fk__mission_post(fk_mission *mission);
/* The asker is told that there is no answer, or a dead letter says it. The mission stays. */
void fk__mission_fail(fk_local *local, fk_mission *mission, fk_err err);
/* As bytes, from the node, which is dropped. FK_E_NO_CODEC ... */
FK_MUST_USE fk_err fk__mission_pack(fk_local *local, fk_mission *mission);
/* A node of its own for whoever handles it. */
FK_MUST_USE fk_err fk__mission_body(fk_local *local, fk_mission *mission, fk_node **out);

/* Bytes for a message, and back. cargo->bytes is in memory from fk__mem_alloc(&sys->mem), of *size.
 * Without a codec, with is_local, the bytes as they are, for whoever has the same type. */
FK_MUST_USE fk_err fk__cargo_pack(fk_cluster *cluster, const fk_msg *msg, fk_cargo *cargo,
                                  unsigned char **memory, size_t *size);
FK_MUST_USE fk_err fk__cargo_open(fk_cluster *cluster, fk_local *local, const fk_cargo *cargo,
                                  fk_node **out);

/* An answer as it is kept in the dedup window. Without a codec it is kept for this process alone. *size
 * bytes from fk__mem_alloc(&sys->mem). */
FK_MUST_USE fk_err fk__answer_pack(fk_cluster *cluster, const fk_msg *msg, unsigned char **bytes,
                                   size_t *size);
void fk__answer_types_fini(fk_cluster *cluster);
FK_MUST_USE fk_err fk__answer_unpack(fk_cluster *cluster, fk_local *local, fk_str bytes,
                                     fk_node **out);

/* Sends a call to an active grain. asker: FK_REF_NONE: nobody. FK_E_*: the message is still the
 * caller's. */
typedef struct fk_hot_call {
    fk_seat *seat;
    fk_ref ref;
    fk_ref asker;
    fk_request request, earlier;
    uint64_t low;
    fk_time deadline; /* 0: call_timeout, from when it is given back */
    uint16_t returns;
    uint8_t flags; /* FK_HOT_NUMBERED, FK_HOT_ACK */
} fk_hot_call;
FK_MUST_USE fk_err fk__hot_send(fk_local *local, const fk_hot_call *call, fk_out msg);
/* The same with a node, which is taken, whatever happens. */
fk_err fk__hot_send_node(fk_local *local, const fk_hot_call *call, fk_node *node);
/* It comes to nothing: whoever asked is told, else a dead letter says it. The call stays. */
void fk__hot_fail(fk_local *local, const fk_hot *hot, fk_err err);

/* Of a call that does not leave this node. */
static inline fk_request fk__single_request(fk_cluster *cluster)
{
    /* Relaxed: only a number, no two the same. */
    return (fk_request){ cluster->origin_single,
                         (uint64_t)fk__word_add(&cluster->single_next, 1, FK_RELAXED) + 1 };
}

/* ---- grain.c */

/* The state of a grain's actor, with the user's behind it. record: what was loaded, or NULL. */
typedef struct fk_shell_start {
    fk_seat *seat;
    uint64_t incarnation; /* under which its slot is held */
    const fk_record *record;
} fk_shell_start;
FK_MUST_USE fk_err fk__shell_create(fk_local *local, const fk_shell_start *start, fk_shell **out);
void fk__shell_destroy(fk_local *local, fk_shell *shell);
void fk__shell_props(const fk_breed *breed, fk_props *out);

/* What the steward tells a grain's actor. */
typedef struct fk_grain_order {
    fk_seat *seat;
    uint64_t version; /* of its row, before the first call; 0: end, when nothing is under way */
} fk_grain_order;
extern const fk_type fk__type_grain_order;

/* ---- steward_events.c */

/* Tells whoever wants to know, as an event of the system. */
void fk__placement_publish(fk_system *sys, fk_local *local, const fk_placement_event *event);

/* ---- steward.c */

FK_MUST_USE fk_err fk__steward_create(fk_cluster *cluster, uint64_t incarnation, fk_time asked_at,
                                      fk_steward **out);
void fk__steward_destroy(fk_steward *steward);
fk_err fk__steward_receive(fk_ctx *ctx, void *state, const fk_msg *msg);
void fk__steward_stop(fk_ctx *ctx, void *state);

typedef enum fk_steward_task {
    FK_TASK_LOOK = 0, /* something has happened: seats, the store */
    FK_TASK_KIND,     /* .breed is new */
    FK_TASK_DRAIN,
    FK_TASK_LEAVE, /* drain, then leave */
    FK_TASK_NEWS   /* members may have changed */
} fk_steward_task;

typedef struct fk_steward_order {
    fk_steward_task task;
    const fk_breed *breed;
    fk_time limit; /* LEAVE: from now */
} fk_steward_order;
extern const fk_type fk__type_steward_order;

fk_err fk__steward_tell(fk_cluster *cluster, fk_steward_task task, const fk_breed *breed);
fk_err fk__steward_leave(fk_cluster *cluster, fk_time limit);

#endif /* FK_CLUSTER_CLUSTER_H */
