/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_STEWARD_H
#define FK_CLUSTER_STEWARD_H

/*
 * The steward, /system/cluster: the one actor that decides. It owns placement and desk, and does what
 * they say. steward.c is its life and its messages; the rest:
 *
 *   steward_acts.c    commands of placement: jobs for the store, actors that begin and end
 *   steward_calls.c   what the desk wants: calls to grains here, to other nodes, and their ends
 *   steward_events.c  what is told to the event stream
 *   steward_view.c    membership: joining, kinds, views, leaving
 *
 * Placement and desk call back while they work, and must not be called then; so what has to be told to
 * them is put on a list (echoes) and told when they have returned.
 */

#include "cluster/cluster.h"

/* What placement or desk is to be told. */
typedef enum fk_echo_kind {
    FK_ECHO_SETTLED, /* desk: a ticket */
    FK_ECHO_ENSURED, /* placement: an activation was made, or not */
    FK_ECHO_REFUSED, /* there was no memory to ask the store */
    FK_ECHO_STOPPED, /* placement: there was none */
} fk_echo_kind;

typedef struct fk_echo {
    fk_echo_kind kind;
    uint64_t number; /* ticket, request id */
    fk_seat *seat;
    fk_grain_id grain;
    fk_err err;
    fk_command_kind command; /* REFUSED */
    fk_resolution resolution;
} fk_echo;

/* An actor whose name is not free yet: its predecessor is ending. */
typedef struct fk_ensuring {
    struct fk_ensuring *next;
    fk_seat *seat;
    uint64_t request_id, incarnation;
    fk_time deadline;
    fk_store_job *record;
} fk_ensuring;

/* Another node. */
/* Where grains are that are not where the table says: few, and only while a view is on its way. */
enum { FK_PIDS_CACHED = 65536 };

typedef struct fk_peer_node {
    struct fk_peer_node *next;
    fk_ref steward;
    uint32_t id_len, address_len;
    uint64_t incarnation; /* that was met last by the view */
    fk_time heard_at;     /* a call of it was answered last, or it was met */
    size_t size;
    char text[]; /* id, then address */
} fk_peer_node;

/* A call that is with a grain here, and whose answer goes elsewhere. */
typedef struct fk_guest_call {
    struct fk_guest_call *next, **link;
    fk_request request;
    fk_mission *mission; /* of another node; NULL: ours, with the desk */
} fk_guest_call;

struct fk_steward {
    fk_cluster *cluster;
    fk_mem *mem;
    fk_placement *placement;
    fk_desk *desk;
    fk_ctx *ctx; /* while it handles a message */
    fk_time now;
    fk_echo *echoes;
    uint32_t echo_first, echo_count, echo_capacity;
    fk_ensuring *ensuring;
    fk_peer_node *peers;
    fk_guest_call *guests;
    fk_time tick_at;        /* when the timer is to fire */
    fk_time next_at;        /* when the first of all that is due */
    fk_time sweep_at;       /* idle grains */
    fk_time sight_at;       /* what people see is refreshed */
    fk_time rejoin_at;      /* FK_NEVER: not wanted */
    fk_time leave_at;       /* give up draining */
    fk_time view_at;        /* the view is asked for */
    fk_time retry_at;       /* what there was no memory for; FK_NEVER: nothing */
    const fk_breed *breeds; /* those from here on are known to placement */
    bool is_view_shown;     /* people see the newest */
    bool has_lost_stop;     /* an FK_ECHO_STOPPED that there was no memory for */
    bool has_stopping;      /* when sight was refreshed: some were to end */
    bool is_seen;           /* nothing has happened since sight was refreshed */
    bool is_view_asked, is_news;
    bool is_other; /* the store's cluster has another strategy or number of slots */
    bool is_join_asked, is_update_asked, is_update_wanted;
    bool is_member, is_client, is_draining, is_leaving, is_leave_asked, is_stopped;
    bool is_halting; /* leaving, and out of time: everything is being ended */
    bool is_giving;  /* draining, and others can know: placement has been told */
    uint64_t incarnation;
    fk_time join_asked_at;
    fk_member_status status;
    fk_cluster_stats stats;
};

/* ---- steward.c */

void fk__steward_echo(fk_steward *c, const fk_echo *echo);
/* Room for one more, which then cannot be lost. */
FK_MUST_USE fk_err fk__steward_echo_reserve(fk_steward *c);
static inline fk_local *fk__steward_local(const fk_steward *c)
{
    return &fk__ctx_worker(c->ctx)->local;
}
/* Something is due then. */
static inline void fk__steward_due(fk_time *slot, fk_time at)
{
    if (at < *slot) *slot = at;
}

/* ---- steward_acts.c */

void fk__steward_command(void *ctx, const fk_placement_command *command);
/* A job of placement has come back; is_kept: its record is needed still. */
void fk__steward_done(fk_steward *c, fk_store_job *job, bool *is_kept);
void fk__steward_discard(void *ctx, void *record);
/* Actors that have ended, and those whose names may be free now. */
void fk__steward_gone(fk_steward *c);
void fk__steward_ensure_again(fk_steward *c);
/* Marks those that were used. */
void fk__steward_sweep(fk_steward *c);
/* A job about the member itself or slots. */
FK_MUST_USE fk_err fk__steward_job(fk_steward *c, fk_store_verb verb, size_t extra,
                                   fk_store_job **out);
void fk__steward_submit(fk_steward *c, fk_store_job *job);

/* ---- steward_calls.c */

FK_MUST_USE fk_err fk__steward_desk(fk_steward *c);
void fk__steward_settled(void *ctx, uint64_t ticket, const fk_resolution *resolution);
void fk__steward_telegram(fk_steward *c, fk_str bytes);
void fk__steward_answer(fk_steward *c, const fk_answer *answer, fk_node *node);
/* To the steward of another node. claims: of MOVED. */
fk_err fk__steward_wire(fk_steward *c, fk_ref to, const fk_telegram *telegram,
                        const fk_slot_claim *claims);
FK_MUST_USE fk_err fk__steward_peer(fk_steward *c, fk_str id, fk_str address, fk_peer_node **out);
/* Clients that have not called for long; with_members: and members that are not in the view. */
void fk__steward_forget_peers(fk_steward *c, bool with_members);
void fk__steward_calls_end(fk_steward *c);

/* ---- steward_events.c */

void fk__steward_event(void *ctx, const fk_placement_event *event);
void fk__steward_say(fk_steward *c, fk_level level, const char *what, fk_err err, const char *why);

/* ---- steward_view.c */

/* Jobs of membership; false: it is none of these. */
bool fk__steward_membership_done(fk_steward *c, const fk_store_job *job);
void fk__steward_membership_tick(fk_steward *c);
void fk__steward_news(fk_steward *c);
/* What people see. */
void fk__steward_show(fk_steward *c);
void fk__steward_show_members(fk_steward *c);
/* A view in one block, of fk__view_size(). */
size_t fk__view_size(const fk_view *view);
void fk__view_copy(const fk_view *view, void *block, fk_view *out);

#endif /* FK_CLUSTER_STEWARD_H */
