/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_ROUTER_H
#define FK_CORE_ROUTER_H

/*
 * A router has two parts. What it was made of, fk_router, is the actor's state: copied by spawn, never
 * changed, so a restart finds it as it was. Whom it routes to, fk_routees, lies with the actor's
 * extras: it outlives restarts, and ends with the actor whatever hooks are run or not.
 *
 *   router.c   making one, and what it is told
 *   routee.c   the table: who comes and goes
 *   routing.c  who gets a message
 */

#include "fraktor/router.h"

#include "core/system.h"

typedef struct fk_routees fk_routees;

/* A piece of what lies behind the fk_router. */
typedef struct fk_router_part {
    uint32_t at, len; /* from the router's first byte; elements */
} fk_router_part;

typedef struct fk_router {
    fk_router_kind kind;
    bool is_pool;
    uint32_t first; /* routees of a pool at first */
    fk_router_key_fn key;
    fk_props pool;        /* its init is ... */
    fk_router_part init;  /* ... here, if it has one */
    fk_router_part refs;  /* fk_ref */
    fk_router_part paths; /* fk_router_part, of bytes */
} fk_router;

typedef struct fk_routee {
    fk_ref ref;      /* FK_REF_NONE: it is the path */
    uint32_t number; /* the smallest that was free: who takes another's place gets his keys */
    fk_str path;     /* in the fk_router */
    bool is_child;
} fk_routee;

struct fk_routees {
    fk_routee *at; /* by number */
    uint32_t count, capacity;
    uint32_t cursor; /* whose turn it is */
    fk_rng rng;
};

/* ---- routee.c: inside the router's receive and hooks ---------------------------------------- */

/* The table, made if there is none; empty. */
FK_MUST_USE fk_err fk__routees_begin(fk_ctx *ctx);
void fk__routees_destroy(fk_cache *cache, fk_routees *all);
fk_routees *fk__routees_of(const fk_ctx *ctx);

/* One more: the pool's own, somebody else, whoever is at a path. */
FK_MUST_USE fk_err fk__routees_spawn(fk_ctx *ctx, const fk_router *router);
FK_MUST_USE fk_err fk__routees_add(fk_ctx *ctx, fk_ref ref);
FK_MUST_USE fk_err fk__routees_add_path(fk_ctx *ctx, fk_str path);
/* Takes one out. The pool's own ends when its mailbox is empty. FK_E_NOMEM: it stays. */
FK_MUST_USE fk_err fk__routees_dismiss(fk_ctx *ctx, fk_ref ref);
/* Takes the last one out. */
FK_MUST_USE fk_err fk__routees_dismiss_last(fk_ctx *ctx);
/* It has ended. */
void fk__routees_forget(fk_ctx *ctx, fk_ref ref);

/* ---- routing.c ------------------------------------------------------------------------------- */

/* The message being handled goes to whom the router's kind says. */
void fk__route(fk_ctx *ctx, const fk_router *router, const fk_msg *msg);
/* A node goes to everybody, in the name of the sender of the message being handled; its contents go
 * along, if they go anywhere. */
void fk__route_to_all(fk_ctx *ctx, fk_node *node);

#endif /* FK_CORE_ROUTER_H */
