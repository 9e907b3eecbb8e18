/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cluster/steward.h"

#include "cluster/placement.h"
#include "core/answer.h"
#include "core/ask.h"

enum { TIMER_KEY = 1, ECHOES_MIN = 64 };

static const fk_time SIGHT_EVERY = FK_MILLIS(50), GONE_EVERY = FK_MILLIS(200),
                     NAME_RETRY = FK_MILLIS(1);

const fk_type fk__type_steward_order = { "fk_steward_order", sizeof(fk_steward_order),
                                         (uint32_t) _Alignof(fk_steward_order) | FK_TYPE_QUIET,
                                         NULL };

static fk_err steward_order(fk_cluster *cluster, const fk_steward_order *order)
{
    return fk_send(cluster->sys, cluster->steward, (fk_out){ &fk__type_steward_order, order });
}

fk_err fk__steward_tell(fk_cluster *cluster, fk_steward_task task, const fk_breed *breed)
{
    fk_steward_order order = { task, breed, 0 };
    return steward_order(cluster, &order);
}

fk_err fk__steward_leave(fk_cluster *cluster, fk_time limit)
{
    fk_steward_order order = { FK_TASK_LEAVE, NULL, limit };
    return steward_order(cluster, &order);
}

/* ---- echoes ------------------------------------------------------------------------------------------- */

static fk_err echoes_grow(fk_steward *c)
{
    uint32_t capacity = c->echo_capacity != 0 ? c->echo_capacity * 2 : ECHOES_MIN;
    void *memory;
    FK_TRY(fk__mem_alloc(c->mem, capacity * sizeof(fk_echo), FK_SITE("echoes"), &memory));
    fk_echo *echoes = memory;
    for (uint32_t i = 0; i < c->echo_count; i++) echoes[i] = c->echoes[c->echo_first + i];
    fk__mem_free(c->mem, c->echoes, c->echo_capacity * sizeof(fk_echo));
    c->echoes = echoes;
    c->echo_first = 0;
    c->echo_capacity = capacity;
    return FK_OK;
}

fk_err fk__steward_echo_reserve(fk_steward *c)
{
    return c->echo_first + c->echo_count == c->echo_capacity ? echoes_grow(c) : FK_OK;
}

/* One that there is no memory for is as if it had been lost on the way: whoever waits for it has a
 * deadline. Only who waits for an end has none. */
void fk__steward_echo(fk_steward *c, const fk_echo *echo)
{
    if (fk__steward_echo_reserve(c) != FK_OK) {
        if (echo->kind == FK_ECHO_STOPPED) c->has_lost_stop = true;
        return;
    }
    c->echoes[c->echo_first + c->echo_count++] = *echo;
}

/* A grain that has just begun is stopped with its system: that is no failure of the grain, and there
 * are other nodes. */
static void settled(fk_steward *c, const fk_echo *echo)
{
    fk_resolution resolution = echo->resolution;
    bool is_ending = fk__half_load(&c->cluster->sys->stopping, FK_RELAXED) == FK_SPAWN_STOPPING;
    if (resolution.err == FK_E_ACTIVATION && is_ending) resolution.err = FK_E_STOPPING;
    fk__desk_settled(c->desk, echo->number, &resolution, c->now);
}

static void echo_tell(fk_steward *c, const fk_echo *echo)
{
    fk_placement_result result = { .kind = FK_COMMAND_ENSURE_ACTIVATION,
                                   .request_id = echo->number,
                                   .err = echo->err,
                                   .pid = (uint64_t)(uintptr_t)echo->seat };
    switch (echo->kind) {
    case FK_ECHO_SETTLED: settled(c, echo); break;
    case FK_ECHO_ENSURED:
        if (echo->err != FK_OK) result.verdict = FK_VERDICT_REFUSED;
        (void)fk_placement_handle_result(c->placement, &result, c->now);
        break;
    case FK_ECHO_REFUSED:
        result.kind = echo->command;
        result.verdict = FK_VERDICT_REFUSED;
        (void)fk_placement_handle_result(c->placement, &result, c->now);
        break;
    case FK_ECHO_STOPPED:
        (void)fk_placement_stopped(c->placement, echo->grain, 0, "was never there", c->now);
        break;
    }
}

static void steward_settle(fk_steward *c)
{
    while (c->echo_count > 0) {
        fk_echo echo = c->echoes[c->echo_first++];
        if (--c->echo_count == 0) c->echo_first = 0;
        echo_tell(c, &echo);
    }
}

/* What was to stop and never began is known to placement, too. */
static void steward_lost_stops(fk_steward *c)
{
    fk_grain_id id;
    if (!c->has_lost_stop) return;
    c->has_lost_stop = false;
    while (!c->has_lost_stop && fk__placement_unbegun(c->placement, &id)) {
        (void)fk_placement_stopped(c->placement, id, 0, "was never there", c->now);
    }
}

/* ---- time -------------------------------------------------------------------------------------------------- */

static fk_time steward_next(const fk_steward *c)
{
    fk_time at = fk_placement_next_deadline(c->placement);
    fk__steward_due(&at, fk__desk_next(c->desk));
    fk__steward_due(&at, c->sweep_at);
    fk__steward_due(&at, c->rejoin_at);
    fk__steward_due(&at, c->leave_at);
    fk__steward_due(&at, c->view_at);
    fk__steward_due(&at, c->retry_at);
    if (!c->is_seen) fk__steward_due(&at, c->sight_at);
    if (c->ensuring != NULL) fk__steward_due(&at, c->now + NAME_RETRY);
    /* Whoever ends says so; unless there was no memory for it. */
    if (c->has_stopping) fk__steward_due(&at, c->now + GONE_EVERY);
    return at;
}

static void steward_arm(fk_steward *c)
{
    fk_time at = steward_next(c);
    fk_half *is_unarmed = &c->cluster->is_unarmed;
    bool is_armed = true;
    c->next_at = at;
    if (at < c->tick_at && at != FK_NEVER) {
        fk_time delay = at > c->now ? at - c->now : 0;
        fk_out tick = { &fk__type_tick, "" };
        is_armed = fk_timer_start(c->ctx, TIMER_KEY, FK_TIMER_ONCE, delay, tick) == FK_OK;
        if (is_armed) c->tick_at = at;
    }
    /* Relaxed: it only says that the driver is to wake it, for want of a timer. */
    if (is_armed == (fk__half_load(is_unarmed, FK_RELAXED) == 0)) return;
    fk__half_store(is_unarmed, !is_armed, FK_RELAXED);
}

static void steward_tick(fk_steward *c)
{
    steward_lost_stops(c);
    fk_placement_tick(c->placement, c->now);
    steward_settle(c);
    fk__desk_tick(c->desk, c->now);
    steward_settle(c);
    if (c->now >= c->sweep_at) fk__steward_sweep(c);
    fk__steward_membership_tick(c);
}

/* After whatever has happened: the clock of those who take turns, and of what is to come. */
static void steward_conclude(fk_steward *c)
{
    fk_cluster *cluster = c->cluster;
    steward_settle(c);
    fk_time lease = fk_placement_lease_deadline(c->placement);
    uintptr_t until = lease > 0 ? fk__lease_of(lease) : fk__lease_of(c->now) - 1;
    /* Release pairs with fk__lease_holds(). */
    fk__word_store(&cluster->lease_ms, until, FK_RELEASE);
    if (c->now >= c->sight_at) {
        fk__steward_show(c);
        c->sight_at = fk__time_add(c->now, SIGHT_EVERY);
        c->is_seen = true;
    } else {
        c->is_seen = false;
    }
    steward_arm(c);
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

static void steward_obey(fk_steward *c, const fk_steward_order *order)
{
    switch (order->task) {
    case FK_TASK_LOOK:
    case FK_TASK_KIND: break; /* with the tick */
    case FK_TASK_NEWS: fk__steward_news(c); break;
    case FK_TASK_LEAVE:
        c->is_leaving = true;
        c->leave_at = fk__time_add(c->now, order->limit);
        /* fall through */
    case FK_TASK_DRAIN:
        c->status = FK_MEMBER_DRAINING;
        c->is_update_wanted = c->is_member && !c->is_draining;
        /* Slots are given away when the view says so: whoever gets them must be able to know why, or it
         * would give them back. */
        c->is_draining = true;
        break;
    }
}

static void steward_job(fk_steward *c, const fk_store_job_done *done)
{
    fk_store_job *job = done->job;
    bool is_kept = false;
    if (!fk__steward_membership_done(c, job)) fk__steward_done(c, job, &is_kept);
    if (is_kept) job->is_kept = true; /* else it goes with its message */
}

fk_err fk__steward_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_steward *c = state;
    c->ctx = ctx;
    c->now = fk_now(ctx);
    fk__steward_gone(c);
    steward_settle(c);
    if (c->ensuring != NULL) fk__steward_ensure_again(c);
    if (msg->type == &fk__type_mission) {
        fk_mission *mission = ((const fk_mission_message *)msg->data)->mission;
        ctx->node->flags |= FK_NODE_MOVED; /* the desk has it now */
        c->stats.calls++;
        fk__desk_submit(c->desk, &mission->call, c->now);
    } else if (msg->type == &fk_type_fk_answer) {
        fk__steward_answer(c, msg->data, ctx->node);
    } else if (msg->type == &fk__type_telegram) {
        fk__steward_telegram(c, (fk_str){ msg->data, msg->len });
    } else if (msg->type == &fk__type_store_job_done) {
        steward_job(c, msg->data);
    } else if (msg->type == &fk__type_steward_order) {
        steward_obey(c, msg->data);
    } else if (msg->type == &fk__type_tick) {
        c->tick_at = FK_NEVER;
    } else {
        return fk_unhandled(ctx, msg);
    }
    steward_settle(c);
    bool is_call = msg->type == &fk__type_mission || msg->type == &fk_type_fk_answer;
    if (!is_call || c->now >= c->next_at) steward_tick(c);
    steward_conclude(c);
    return FK_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

/* Rate, margin and the like are placement's own defaults. */
static fk_err steward_placement(fk_steward *c, uint64_t incarnation, fk_time asked_at)
{
    const fk_cluster_config *config = &c->cluster->config;
    fk_placement_config placement = { .size = sizeof(placement),
                                      .slots = config->slots,
                                      .strategy = config->strategy,
                                      .lease_ttl = config->lease_ttl,
                                      .command_timeout = config->store_timeout,
                                      .waiters_max = config->waiters_max,
                                      .activations_max = config->activations_max,
                                      .cache_capacity = FK_PIDS_CACHED,
                                      .outcome = { .ctx = c,
                                                   .command = fk__steward_command,
                                                   .event = fk__steward_event,
                                                   .settled = fk__steward_settled,
                                                   .discard = fk__steward_discard } };
    FK_TRY(fk_placement_create(&placement, &c->mem->port, &c->placement));
    c->now = fk__system_now(c->cluster->sys);
    if (c->is_client) return fk_placement_start_client(c->placement, c->now);
    return fk_placement_start_member(c->placement, fk__cluster_id(c->cluster), incarnation,
                                     asked_at, c->now);
}

fk_err fk__steward_create(fk_cluster *cluster, uint64_t incarnation, fk_time asked_at,
                          fk_steward **out)
{
    void *memory;
    fk_mem *mem = &cluster->sys->mem;
    FK_TRY(fk__mem_alloc(mem, sizeof(fk_steward), FK_SITE("steward"), &memory));
    fk_steward *c = memory;
    memset(c, 0, sizeof(*c));
    c->cluster = cluster;
    c->mem = mem;
    c->is_client = cluster->config.client;
    c->is_member = !c->is_client;
    c->incarnation = incarnation;
    c->status = FK_MEMBER_UP;
    c->is_update_wanted = c->is_member;
    c->tick_at = c->rejoin_at = c->leave_at = c->sweep_at = c->retry_at = FK_NEVER;
    c->is_view_shown = true;
    fk_err err = fk__steward_echo_reserve(c); /* so that only many at once can be lost */
    if (err == FK_OK) err = steward_placement(c, incarnation, asked_at);
    if (err == FK_OK) err = fk__steward_desk(c);
    if (err != FK_OK) {
        fk__steward_destroy(c);
        return err;
    }
    *out = c;
    return FK_OK;
}

void fk__steward_destroy(fk_steward *c)
{
    while (c->ensuring != NULL) {
        fk_ensuring *e = c->ensuring;
        c->ensuring = e->next;
        fk__mem_free(c->mem, e, sizeof(*e));
    }
    if (c->placement != NULL) fk_placement_destroy(c->placement);
    if (c->desk != NULL) fk__desk_destroy(c->desk);
    fk__steward_calls_end(c);
    while (c->peers != NULL) {
        fk_peer_node *peer = c->peers;
        c->peers = peer->next;
        fk__mem_free(c->mem, peer, peer->size);
    }
    fk__mem_free(c->mem, c->echoes, c->echo_capacity * sizeof(fk_echo));
    fk__mem_free(c->mem, c, sizeof(*c));
}

/* With /system: nobody is left to run grains, and none to answer. */
void fk__steward_stop(fk_ctx *ctx, void *state)
{
    fk_steward *c = state;
    c->ctx = ctx;
    c->now = fk_now(ctx);
    c->is_stopped = true;
    fk__steward_gone(c);
    fk__desk_give_up(c->desk, FK_E_STOPPING);
    (void)fk_placement_stop(c->placement, c->now);
    c->echo_count = c->echo_first = 0;
    fk__word_store(&c->cluster->lease_ms, fk__lease_of(c->now) - 1, FK_RELEASE);
}
