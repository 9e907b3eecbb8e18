/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/extras.h"
#include "core/router.h"

fk_routees *fk__routees_of(const fk_ctx *ctx)
{
    return ctx->cell->extras->routees;
}

static uint64_t rng_seed(const fk_system *sys)
{
    uint64_t seed;
    const fk_port *port = &sys->mem.port;
    port->random(port->ctx, &seed, sizeof(seed));
    return seed != 0 ? seed : 1;
}

fk_err fk__routees_begin(fk_ctx *ctx)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    FK_TRY(fk__extras_need(local, ctx->cell));
    fk_routees *all = ctx->cell->extras->routees;
    if (all == NULL) {
        all = fk__cache_alloc(&local->cache, sizeof(*all), FK_SITE("router"));
        if (all == NULL) return local->cache.err;
        *all = (fk_routees){ .rng = { rng_seed(local->sys) } };
        ctx->cell->extras->routees = all;
    }
    all->count = 0; /* what an attempt to start has left behind has been stopped */
    return FK_OK;
}

void fk__routees_destroy(fk_cache *cache, fk_routees *all)
{
    fk__cache_free(cache, all->at, all->capacity * sizeof(*all->at));
    fk__cache_free(cache, all, sizeof(*all));
}

/* ---- the table ------------------------------------------------------------------------------- */

static fk_err table_reserve(fk_ctx *ctx, fk_routees *all)
{
    fk_cache *cache = &fk__ctx_worker(ctx)->local.cache;
    if (all->count < all->capacity) return FK_OK;
    uint32_t capacity = all->capacity == 0 ? 8 : all->capacity * 2;
    if (capacity > UINT32_MAX / sizeof(fk_routee)) return FK_E_LIMIT;
    fk_routee *at = fk__cache_alloc(cache, capacity * sizeof(*at), FK_SITE("table of routees"));
    if (at == NULL) return cache->err;
    if (all->count != 0) memcpy(at, all->at, all->count * sizeof(*at));
    fk__cache_free(cache, all->at, all->capacity * sizeof(*at));
    all->at = at;
    all->capacity = capacity;
    return FK_OK;
}

/* After table_reserve(): into the first gap. */
static void table_insert(fk_routees *all, fk_routee routee)
{
    uint32_t at = 0;
    while (at < all->count && all->at[at].number == at) at++;
    routee.number = at;
    memmove(&all->at[at + 1], &all->at[at], (all->count - at) * sizeof(*all->at));
    all->at[at] = routee;
    all->count++;
}

static fk_routee *table_find(const fk_routees *all, fk_ref ref)
{
    if (fk_ref_is_none(ref)) return NULL;
    for (uint32_t i = 0; i < all->count; i++) {
        if (fk_ref_equal(all->at[i].ref, ref)) return &all->at[i];
    }
    return NULL;
}

static void table_remove_at(fk_routees *all, const fk_routee *routee)
{
    uint32_t at = (uint32_t)(routee - all->at);
    all->count--;
    memmove(&all->at[at], &all->at[at + 1], (all->count - at) * sizeof(*all->at));
    if (all->cursor > at) all->cursor--; /* whose turn it was, it is */
}

/* ---- coming ------------------------------------------------------------------------------------ */

fk_err fk__routees_spawn(fk_ctx *ctx, const fk_router *router)
{
    fk_routees *all = fk__routees_of(ctx);
    fk_props props = router->pool;
    fk_ref ref;
    if (router->init.len != 0) props.init = (const char *)router + router->init.at;
    FK_TRY(table_reserve(ctx, all));
    FK_TRY(fk_spawn_child(ctx, FK_STR(""), &props, &ref));
    fk_err err = fk_watch(ctx, ref);
    if (err != FK_OK) {
        fk_stop(fk_system_of(ctx), ref);
        return err;
    }
    table_insert(all, (fk_routee){ .ref = ref, .is_child = true });
    return FK_OK;
}

fk_err fk__routees_add(fk_ctx *ctx, fk_ref ref)
{
    fk_routees *all = fk__routees_of(ctx);
    if (table_find(all, ref) != NULL) return FK_OK;
    FK_TRY(table_reserve(ctx, all));
    FK_TRY(fk_watch(ctx, ref));
    table_insert(all, (fk_routee){ .ref = ref });
    return FK_OK;
}

fk_err fk__routees_add_path(fk_ctx *ctx, fk_str path)
{
    fk_routees *all = fk__routees_of(ctx);
    FK_TRY(table_reserve(ctx, all));
    table_insert(all, (fk_routee){ .path = path });
    return FK_OK;
}

/* ---- going -------------------------------------------------------------------------------------- */

static fk_err dismiss(fk_ctx *ctx, const fk_routee *routee)
{
    if (routee->is_child) { /* still watched: the last one to end takes the router along */
        fk_err err = fk_poison(fk_system_of(ctx), routee->ref);
        if (err != FK_OK && err != FK_E_DEAD) return err;
    } else {
        fk_unwatch(ctx, routee->ref);
    }
    table_remove_at(fk__routees_of(ctx), routee);
    return FK_OK;
}

fk_err fk__routees_dismiss(fk_ctx *ctx, fk_ref ref)
{
    const fk_routee *routee = table_find(fk__routees_of(ctx), ref);
    return routee != NULL ? dismiss(ctx, routee) : FK_OK;
}

fk_err fk__routees_dismiss_last(fk_ctx *ctx)
{
    const fk_routees *all = fk__routees_of(ctx);
    FK_ASSERT(all->count > 0);
    return dismiss(ctx, &all->at[all->count - 1]);
}

void fk__routees_forget(fk_ctx *ctx, fk_ref ref)
{
    fk_routees *all = fk__routees_of(ctx);
    const fk_routee *routee = table_find(all, ref);
    if (routee != NULL) table_remove_at(all, routee);
}
