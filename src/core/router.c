/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/router.h"

#include "core/send.h"
#include "core/spawn.h"

const fk_type fk_type_fk_routees_ask = { "fk_routees_ask", 0, 1, NULL };
const fk_type fk_type_fk_routees = { "fk_routees", 0, _Alignof(fk_ref), NULL };

/* What a router is told. */
typedef enum fk_router_verb { VERB_RESIZE, VERB_ADD, VERB_REMOVE } fk_router_verb;

typedef struct fk_router_order {
    fk_router_verb verb;
    uint32_t count;
    fk_ref routee;
} fk_router_order;

static const fk_type ORDER = { "fk_router_order", sizeof(fk_router_order),
                               _Alignof(fk_router_order), NULL };

/* A message to all, on its way to the router. */
typedef struct fk_broadcast {
    fk_system *sys;
    fk_node *node;
} fk_broadcast;

static void broadcast_drop(void *message)
{
    const fk_broadcast *broadcast = message;
    fk_local *local = fk__local_enter(broadcast->sys);
    fk__node_drop_contents(&local->cache, broadcast->node);
    fk__node_free(&local->cache, broadcast->node);
    fk__local_leave(local);
}

static const fk_type BROADCAST = { "fk_broadcast", sizeof(fk_broadcast), _Alignof(fk_broadcast),
                                   broadcast_drop };

/* ---- the actor ----------------------------------------------------------------------------------- */

static const void *part_of(const fk_router *router, fk_router_part part)
{
    return (const char *)router + part.at;
}

static fk_err routees_begin(fk_ctx *ctx, const fk_router *router)
{
    const fk_ref *refs = part_of(router, router->refs);
    const fk_router_part *paths = part_of(router, router->paths);
    FK_TRY(fk__routees_begin(ctx));
    for (uint32_t i = 0; i < router->first; i++) FK_TRY(fk__routees_spawn(ctx, router));
    for (uint32_t i = 0; i < router->refs.len; i++) FK_TRY(fk__routees_add(ctx, refs[i]));
    for (uint32_t i = 0; i < router->paths.len; i++) {
        fk_str path = { part_of(router, paths[i]), paths[i].len };
        FK_TRY(fk__routees_add_path(ctx, path));
    }
    return FK_OK;
}

static fk_err router_start(fk_ctx *ctx, void *state)
{
    fk_err err = routees_begin(ctx, state);
    return err == FK_OK ? FK_OK : fk_fail(ctx, err, "the router's routees could not be made");
}

/* The routees stay at a restart of the router. */
static void router_before_restart(fk_ctx *ctx, void *state, fk_err why)
{
    (void)ctx;
    (void)state;
    (void)why;
}

static fk_err router_after_restart(fk_ctx *ctx, void *state, fk_err why)
{
    (void)ctx;
    (void)state;
    (void)why;
    return FK_OK;
}

/* Nobody waits for an answer, and it is no reason to fail: that would restart all routees. */
static void router_complain(const fk_ctx *ctx, fk_err err, fk_str what)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk__event(local->sys, local,
              &(fk_event){ .kind = FK_EVENT_LOG,
                           .level = FK_LEVEL_WARN,
                           .at = fk_now(ctx),
                           .actor = fk_self(ctx),
                           .err = err,
                           .text = what });
}

static void pool_resize(fk_ctx *ctx, const fk_router *router, uint32_t n)
{
    const fk_routees *all = fk__routees_of(ctx);
    fk_err err = FK_OK;
    while (err == FK_OK && all->count < n) err = fk__routees_spawn(ctx, router);
    while (err == FK_OK && all->count > n) err = fk__routees_dismiss_last(ctx);
    if (err != FK_OK)
        router_complain(ctx, err, FK_STR("the pool does not have the size asked for"));
}

static fk_err router_obey(fk_ctx *ctx, const fk_router *router, const fk_router_order *order)
{
    fk_err err = FK_OK;
    switch (order->verb) {
    case VERB_RESIZE:
        if (!router->is_pool) return fk_unhandled(ctx, &ctx->msg);
        pool_resize(ctx, router, order->count);
        break;
    case VERB_ADD: err = fk__routees_add(ctx, order->routee); break;
    case VERB_REMOVE: err = fk__routees_dismiss(ctx, order->routee); break;
    }
    if (err != FK_OK) router_complain(ctx, err, FK_STR("a routee could not be added or removed"));
    return FK_OK;
}

/* A pool that nobody is left of, not even to finish, has nothing to do. */
static fk_err router_bereave(fk_ctx *ctx, const fk_router *router, fk_ref routee)
{
    fk__routees_forget(ctx, routee);
    bool is_over = fk__routees_of(ctx)->count == 0 && fk_child_count(ctx) == 0;
    if (router->is_pool && is_over) fk_stop_self(ctx);
    return FK_OK;
}

static fk_err router_answer(fk_ctx *ctx)
{
    const fk_routees *all = fk__routees_of(ctx);
    fk_payload *payload = NULL;
    fk_err err = fk_payload_create(fk_system_of(ctx), &fk_type_fk_routees,
                                   all->count * sizeof(fk_ref), &payload);
    if (err != FK_OK) {
        router_complain(ctx, err, FK_STR("the question for routees cannot be answered"));
        return FK_OK;
    }
    fk_ref *refs = fk_payload_data(payload);
    for (uint32_t i = 0; i < all->count; i++) refs[i] = all->at[i].ref;
    fk_reply(ctx, FK_MSG_PAYLOAD(payload));
    return FK_OK;
}

static fk_err router_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_router *router = state;
    const fk_terminated *terminated = FK_AS(fk_terminated, msg);
    const fk_router_order *order = fk_msg_data_if(msg, &ORDER, sizeof(*order));
    const fk_broadcast *broadcast = fk_msg_data_if(msg, &BROADCAST, sizeof(*broadcast));
    if (terminated != NULL) return router_bereave(ctx, router, terminated->actor);
    if (order != NULL) return router_obey(ctx, router, order);
    if (msg->type == &fk_type_fk_routees_ask) return router_answer(ctx);
    if (broadcast != NULL)
        fk__route_to_all(ctx, broadcast->node);
    else
        fk__route(ctx, router, msg);
    return FK_OK;
}

/* ---- making one ------------------------------------------------------------------------------------ */

static fk_err pool_check(const fk_router_config *config)
{
    if (config->routees == 0 || config->refs_len != 0 || config->paths_len != 0) {
        return FK_E_INVALID;
    }
    if (config->pool->state != NULL) return FK_E_INVALID;
    bool has_heap = config->pool->mailbox >= FK_MAILBOX_PRIORITY;
    if (config->kind == FK_ROUTER_SMALLEST_MAILBOX && has_heap) return FK_E_INVALID;
    return fk__props_check(config->pool);
}

static fk_err group_check(const fk_system *sys, const fk_router_config *config)
{
    fk_expression expression;
    fk_path_fault fault;
    if (config->kind == FK_ROUTER_SMALLEST_MAILBOX || config->routees != 0) return FK_E_INVALID;
    if (config->refs_len != 0 && config->refs == NULL) return FK_E_INVALID;
    if (config->paths_len != 0 && config->paths == NULL) return FK_E_INVALID;
    for (size_t i = 0; i < config->refs_len; i++) {
        if (config->refs[i].system != sys->id) return FK_E_FOREIGN;
    }
    for (size_t i = 0; i < config->paths_len; i++) {
        FK_TRY(fk_expression_parse(&sys->paths, config->paths[i], &expression, &fault));
        bool is_self = expression.anchor == FK_ANCHOR_SELF && expression.count == 0;
        if (is_self) return FK_E_INVALID;
    }
    return FK_OK;
}

static fk_err config_check(const fk_system *sys, const fk_router_config *config)
{
    if (config == NULL || (unsigned)config->kind > FK_ROUTER_CONSISTENT_HASH) return FK_E_INVALID;
    if (config->size != 0 && config->size < sizeof(*config)) return FK_E_INVALID;
    return config->pool != NULL ? pool_check(config) : group_check(sys, config);
}

/* Room for so many of something, behind what there is; UINT32_MAX is more than there can be. */
static fk_router_part part_plan(size_t *size, size_t count, size_t each, size_t align)
{
    bool fits = *size < UINT32_MAX - align;
    size_t at = fits ? (*size + align - 1) & ~(align - 1) : 0;
    fits = fits && count < (UINT32_MAX - at) / each;
    *size = fits ? at + count * each : UINT32_MAX;
    return (fk_router_part){ fits ? (uint32_t)at : 0, fits ? (uint32_t)count : 0 };
}

static size_t init_size(const fk_router_config *config)
{
    return config->pool != NULL && config->pool->init != NULL ? config->pool->state_size : 0;
}

/* Returns the size of it all; the texts are at *texts. */
static size_t router_plan(const fk_router_config *config, fk_router *router, size_t *texts)
{
    size_t size = sizeof(*router);
    router->init = part_plan(&size, init_size(config), 1, 16);
    router->refs = part_plan(&size, config->refs_len, sizeof(fk_ref), _Alignof(fk_ref));
    router->paths =
        part_plan(&size, config->paths_len, sizeof(fk_router_part), _Alignof(fk_router_part));
    *texts = size;
    for (size_t i = 0; i < config->paths_len; i++) {
        part_plan(&size, config->paths[i].len, 1, 1);
    }
    part_plan(&size, 0, 1, 64); /* few sizes, because the system keeps a copy of all props */
    return size;
}

static fk_props pool_props(const fk_router_config *config)
{
    fk_props props = *config->pool;
    props.init = NULL;
    if (config->kind == FK_ROUTER_SMALLEST_MAILBOX && props.mailbox == FK_MAILBOX_UNBOUNDED) {
        /* The queue of an unbounded mailbox knows no length; a box does, and the price is a lock.
         * A count of our own would have to learn what has been handled. */
        props.mailbox = FK_MAILBOX_BOUNDED;
        props.overflow = FK_OVERFLOW_FAIL;
        props.capacity = UINT32_MAX;
    }
    return props;
}

static void router_fill(fk_router *router, const fk_router_config *config, size_t texts)
{
    char *base = (char *)router;
    router->kind = config->kind;
    router->is_pool = config->pool != NULL;
    router->first = config->routees;
    router->key = config->key;
    if (router->is_pool) router->pool = pool_props(config);
    if (router->init.len != 0) memcpy(base + router->init.at, config->pool->init, router->init.len);
    if (router->refs.len != 0) {
        memcpy(base + router->refs.at, config->refs, router->refs.len * sizeof(fk_ref));
    }
    for (uint32_t i = 0; i < router->paths.len; i++) {
        fk_str path = config->paths[i];
        fk_router_part part = { (uint32_t)texts, (uint32_t)path.len };
        memcpy(base + router->paths.at + i * sizeof(part), &part, sizeof(part));
        memcpy(base + texts, path.ptr, path.len);
        texts += path.len;
    }
}

/* ctx NULL: under /user. */
static fk_err router_spawn(fk_system *sys, fk_ctx *ctx, fk_str name, const fk_router_config *config,
                           fk_ref *out)
{
    fk_router plan = { 0 };
    size_t texts;
    void *memory;
    FK_TRY(config_check(sys, config));
    size_t size = router_plan(config, &plan, &texts);
    if (size == UINT32_MAX) return FK_E_LIMIT;
    FK_TRY(fk__mem_alloc(&sys->mem, size, FK_SITE("router's config"), &memory));
    memset(memory, 0, size);
    memcpy(memory, &plan, sizeof(plan));
    router_fill(memory, config, texts);
    fk_props props = { .receive = router_receive,
                       .start = router_start,
                       .before_restart = router_before_restart,
                       .after_restart = router_after_restart,
                       .state_size = size,
                       .init = memory,
                       .strategy = config->strategy };
    if (props.strategy.decide == NULL) props.strategy.decide = fk_decide_escalate;
    fk_err err =
        ctx != NULL ? fk_spawn_child(ctx, name, &props, out) : fk_spawn(sys, name, &props, out);
    fk__mem_free(&sys->mem, memory, size);
    return err;
}

fk_err fk_router_spawn(fk_system *sys, fk_str name, const fk_router_config *config, fk_ref *out)
{
    return sys != NULL ? router_spawn(sys, NULL, name, config, out) : FK_E_INVALID;
}

fk_err fk_router_spawn_child(fk_ctx *ctx, fk_str name, const fk_router_config *config, fk_ref *out)
{
    return router_spawn(fk_system_of(ctx), ctx, name, config, out);
}

/* ---- telling it -------------------------------------------------------------------------------------- */

static fk_err order_send(fk_system *sys, fk_ref router, fk_router_order order)
{
    return fk_send(sys, router, (fk_out){ &ORDER, &order });
}

fk_err fk_router_resize(fk_system *sys, fk_ref router, uint32_t n)
{
    if (n == 0) return FK_E_INVALID;
    return order_send(sys, router, (fk_router_order){ .verb = VERB_RESIZE, .count = n });
}

fk_err fk_router_add(fk_system *sys, fk_ref router, fk_ref routee)
{
    if (fk_ref_equal(router, routee)) return FK_E_INVALID;
    if (routee.system != sys->id) return fk_ref_is_none(routee) ? FK_E_INVALID : FK_E_FOREIGN;
    return order_send(sys, router, (fk_router_order){ .verb = VERB_ADD, .routee = routee });
}

fk_err fk_router_remove(fk_system *sys, fk_ref router, fk_ref routee)
{
    return order_send(sys, router, (fk_router_order){ .verb = VERB_REMOVE, .routee = routee });
}

static fk_err broadcast_send(fk_local *local, fk_ref router, fk_ref sender, fk_out msg)
{
    /* Where nobody is, the message itself is the dead letter. */
    if (fk__local_resolve(local, router) == NULL) return fk__send(local, router, sender, msg, NULL);
    fk_broadcast broadcast = { local->sys, fk__node_create(&local->cache, msg) };
    if (broadcast.node == NULL) {
        fk_err err = local->cache.err;
        fk_reason reason = err == FK_E_INVALID ? FK_REASON_BAD_TYPE : FK_REASON_NO_MEMORY;
        fk__dead_out(local, reason, router, sender, msg);
        return err;
    }
    return fk__send(local, router, sender, (fk_out){ &BROADCAST, &broadcast }, NULL);
}

fk_err fk_router_broadcast(fk_system *sys, fk_ref router, fk_ref sender, fk_out msg)
{
    if (sender.system != sys->id) sender = FK_REF_NONE; /* as fk_send_from() */
    fk_local *local = fk__local_enter(sys);
    fk_err err = broadcast_send(local, router, sender, msg);
    fk__local_leave(local);
    return err;
}
