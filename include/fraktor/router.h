/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_ROUTER_H
#define FK_ROUTER_H

/*
 * Routers: many actors behind one reference.
 *
 *     static const fk_props WORKER = { .receive = worker_receive };
 *     fk_router_config pool = { .kind = FK_ROUTER_ROUND_ROBIN, .pool = &WORKER, .routees = 8 };
 *     fk_router_spawn(sys, FK_STR("workers"), &pool, &workers);
 *     fk_send(sys, workers, FK_MSG(job, 1));                          one of the eight gets it
 *
 * A router is an actor. What is sent to it goes on to its routees, with the original sender, when
 * the router comes to it: one more hop, which costs as much as any message. Messages of one sender
 * to one routee stay in order. What the runtime answers for an actor (poison, kill, FK_IDENTIFY())
 * is about the router itself. Without routees everything is a dead letter; so is what a routee's
 * full mailbox refuses, and the sender is not told.
 *
 * A *pool* makes its routees, as its children. One that stops leaves the pool, and when the last one
 * has, the router stops. The pool's strategy decides about their failures; without one each is
 * escalated, so that the router's own parent decides. A restart of the router restarts its routees
 * and keeps them.
 *
 * A *group* is given its routees: references, which leave when they stop, and paths, which are
 * selected anew for every message and never leave (fraktor/select.h; "../a" is seen from the
 * router, and must not lead back to it: what it gets it would get again and again). A group without
 * routees waits for more.
 */

#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fk_router_kind {
    FK_ROUTER_ROUND_ROBIN = 0, /* each in its turn */
    FK_ROUTER_RANDOM,
    /* Whoever has the fewest messages waiting or in hand. Pools only, and not with the priority
     * kinds of mailbox; an unbounded one becomes one that counts. */
    FK_ROUTER_SMALLEST_MAILBOX,
    FK_ROUTER_BROADCAST, /* everybody */
    /* Equal keys go to the same routee. When one comes or goes, only the keys that it gets or had
     * move: one in n. Routers with equally many routees agree. */
    FK_ROUTER_CONSISTENT_HASH,
} fk_router_kind;

/* The key of a message; runs in the router. */
typedef uint64_t (*fk_router_key_fn)(const fk_msg *msg);
/* A key made of bytes; the same everywhere and for ever. */
FK_API uint64_t fk_router_hash(const void *data, size_t len);

typedef struct fk_router_config {
    uint32_t size; /* sizeof(fk_router_config), or 0 for the layout of release 0.1 */
    fk_router_kind kind;
    /* Of a pool: what its routees are made of, copied with what init points to. Not with a state of
     * the caller's, which several could not share. */
    const fk_props *pool;
    uint32_t routees;     /* how many at first; at least 1 */
    fk_strategy strategy; /* for them; without a decide every failure is escalated */
    /* Of a group, when there is no pool: copied. */
    const fk_ref *refs;
    size_t refs_len;
    const fk_str *paths;
    size_t paths_len;
    fk_router_key_fn
        key; /* of FK_ROUTER_CONSISTENT_HASH; NULL: fk_router_hash() of all its bytes */
} fk_router_config;

/* Makes a router, as fk_spawn() and fk_spawn_child() make an actor. Besides their errors: FK_E_INVALID
 * (see the config), FK_E_FOREIGN (a reference of another system), and the faults of a path. Routees
 * are made when the router starts: if that fails, for lack of memory perhaps, so has the router. */
FK_API FK_MUST_USE fk_err fk_router_spawn(fk_system *sys, fk_str name,
                                          const fk_router_config *config, fk_ref *out);
FK_API FK_MUST_USE fk_err fk_router_spawn_child(fk_ctx *ctx, fk_str name,
                                                const fk_router_config *config, fk_ref *out);

/* ---- messages to the router itself: any thread, inside receive too ---------------------------
 * They take their turn behind what was sent before. FK_OK: it is on its way, as by fk_send(). An
 * actor that is no router does not know them. */

/* To all routees of any router, whatever its kind. The message is taken. One with a drop function
 * goes to one routee only, unless it is a payload (large structs are): else FK_REASON_SEVERAL. */
FK_API fk_err fk_router_broadcast(fk_system *sys, fk_ref router, fk_ref sender, fk_out msg);
/* A pool of n: more are made, or the last ones leave and stop when they have done what is in their
 * mailboxes. What cannot be made for lack of memory is an FK_EVENT_LOG. FK_E_INVALID: n is 0. */
FK_API fk_err fk_router_resize(fk_system *sys, fk_ref router, uint32_t n);
/* One more, or one less. A pool's own routee that is removed does what is in its mailbox and stops.
 * FK_E_INVALID: it is the router itself. */
FK_API fk_err fk_router_add(fk_system *sys, fk_ref router, fk_ref routee);
FK_API fk_err fk_router_remove(fk_system *sys, fk_ref router, fk_ref routee);

/* Asks for its routees. The answer is of fk_type_fk_routees: an array of fk_ref, msg->len bytes long,
 * with FK_REF_NONE for a path. */
#ifdef __cplusplus
#define FK_ROUTEES (fk_out{ &fk_type_fk_routees_ask, "" })
#else
#define FK_ROUTEES ((fk_out){ &fk_type_fk_routees_ask, "" })
#endif
extern FK_API const fk_type fk_type_fk_routees_ask;
extern FK_API const fk_type fk_type_fk_routees;

#ifdef __cplusplus
}
#endif
#endif /* FK_ROUTER_H */
