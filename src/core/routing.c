/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/box.h"
#include "core/router.h"
#include "core/select.h"
#include "core/send.h"

uint64_t fk_router_hash(const void *data, size_t len)
{
    static const fk_hash_key PUBLIC = { 0, 0 }; /* no secret: others have to come to the same */
    return fk__hash_bytes(&PUBLIC, data, len);
}

/* ---- choosing: there is at least one routee ---------------------------------------------------- */

static const fk_routee *choose_next(fk_routees *all)
{
    if (all->cursor >= all->count) all->cursor = 0;
    return &all->at[all->cursor++];
}

static const fk_routee *choose_any(fk_routees *all)
{
    uint64_t chance = fk__rng_next(&all->rng) >> 32;
    return &all->at[chance * all->count >> 32];
}

/* How much a routee has to do. The box of a counted mailbox knows what waits; a cell that is not idle
 * has one message in hand, or is about to take it. Not known is as much as can be, and one that is
 * held comes before that: it may go on. All of this may be over when the message arrives. */
static uint32_t load_of(fk_local *local, const fk_routee *routee)
{
    const fk_cell *cell = fk__local_resolve(local, routee->ref);
    if (cell == NULL) return UINT32_MAX;
    uint32_t gate = fk__half_load(&cell->gate, FK_RELAXED);
    if ((gate & FK_GATE_BOUNDED) == 0) return UINT32_MAX;
    if ((gate & FK_GATE_HELD) != 0) return UINT32_MAX - 1;
    bool is_idle = (fk__word_load(&cell->tail, FK_RELAXED) & FK_TAIL_IDLE) != 0;
    return fk__box_count(cell) + (is_idle ? 0 : 1);
}

/* From whoever's turn it is, so that equals take turns. */
static const fk_routee *choose_smallest(fk_local *local, fk_routees *all)
{
    const fk_routee *best = NULL;
    uint32_t least = 0;
    uint32_t from = all->cursor < all->count ? all->cursor : 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const fk_routee *routee = &all->at[(from + i) % all->count];
        uint32_t load = load_of(local, routee);
        if (best == NULL || load < least) {
            best = routee;
            least = load;
        }
        if (least == 0) break;
    }
    all->cursor = from + 1;
    return best;
}

/* Each routee draws a number for the key, and the highest wins: so without him the same ones lead
 * for all other keys. As many steps as there are routees, but short ones, and no ring to keep. */
static const fk_routee *choose_by_key(const fk_routees *all, uint64_t key)
{
    const fk_routee *best = &all->at[0];
    uint64_t most = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        uint64_t drawn = fk__mix64(key ^ fk__mix64((uint64_t)all->at[i].number + 1));
        if (drawn < most) continue;
        best = &all->at[i];
        most = drawn;
    }
    return best;
}

static const fk_routee *choose(fk_local *local, const fk_router *router, fk_routees *all,
                               const fk_msg *msg)
{
    switch (router->kind) {
    case FK_ROUTER_RANDOM: return choose_any(all);
    case FK_ROUTER_SMALLEST_MAILBOX: return choose_smallest(local, all);
    case FK_ROUTER_CONSISTENT_HASH:
        return choose_by_key(all, router->key != NULL ? router->key(msg)
                                                      : fk_router_hash(msg->data, msg->len));
    case FK_ROUTER_ROUND_ROBIN:
    case FK_ROUTER_BROADCAST: break;
    }
    return choose_next(all);
}

/* ---- sending ------------------------------------------------------------------------------------- */

/* Whatever happens, the message is taken, and reported if need be. */
static void send_to(fk_ctx *ctx, const fk_routee *routee, fk_out msg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_ref sender = ctx->msg.sender;
    if (fk_ref_is_none(routee->ref))
        fk__select_text(local, fk_self(ctx), routee->path, sender, msg);
    else
        fk__send(local, routee->ref, sender, msg, NULL);
}

void fk__route_to_all(fk_ctx *ctx, fk_node *node)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    const fk_routees *all = fk__routees_of(ctx);
    fk_str text;
    fk_out msg = fk__node_out(node, &text);
    if (all->count == 0 || (all->count > 1 && !fk__out_can_double(msg))) {
        fk_reason reason = all->count == 0 ? FK_REASON_NO_RECEIVER : FK_REASON_SEVERAL;
        node->sender = ctx->node->sender;
        fk__dead_node(local, reason, fk_self(ctx), node);
        return;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        if (i + 1 < all->count) fk__out_double(msg);
        send_to(ctx, &all->at[i], msg);
    }
    node->flags |= FK_NODE_MOVED;
}

void fk__route(fk_ctx *ctx, const fk_router *router, const fk_msg *msg)
{
    fk_routees *all = fk__routees_of(ctx);
    if (router->kind == FK_ROUTER_BROADCAST || all->count == 0) {
        fk__route_to_all(ctx, ctx->node);
        return;
    }
    const fk_routee *routee = choose(&fk__ctx_worker(ctx)->local, router, all, msg);
    if (!fk_ref_is_none(routee->ref)) {
        fk_forward(ctx, routee->ref);
        return;
    }
    fk_str text;
    send_to(ctx, routee, fk__node_out(ctx->node, &text));
    ctx->node->flags |= FK_NODE_MOVED;
}
