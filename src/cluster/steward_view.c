/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Membership: the row of this node in the store, and the view that follows from all of them. One
 * operation of each kind is under way at a time; what is wanted meanwhile is done after it. A node whose
 * lease is lost joins again, as a new incarnation, until it is told to leave.
 */

#include "cluster/steward.h"

#include "core/send.h"
#include "fraktor/remote.h"

static const fk_time VIEW_RETRY = FK_MILLIS(200), HEARD_LATELY = FK_SECONDS(60);

static fk_time retry_delay(const fk_steward *c)
{
    return c->cluster->config.lease_ttl / 8;
}

/* There was no memory for it. */
static void want_again(fk_steward *c)
{
    fk__steward_due(&c->retry_at, fk__time_add(c->now, retry_delay(c)));
}

/* ---- what is wanted -------------------------------------------------------------------------------------- */

/* The kinds, behind the job; as strings that last as long as the cluster. */
static void job_kinds(const fk_steward *c, fk_store_job *job)
{
    fk_str *kinds = fk__store_job_extra(job);
    uint32_t count = 0;
    const fk_breed *breed = fk__word_ptr(&c->cluster->breeds, FK_ACQUIRE);
    for (; breed != NULL && count < FK_MEMBER_KINDS_MAX; breed = breed->next) {
        kinds[count++] = (fk_str){ breed->name, breed->name_len };
    }
    fk_member *member = &job->op.member;
    member->kinds = kinds;
    member->kind_count = count;
    member->address = (fk_str){ c->cluster->address, c->cluster->address_len };
    member->weight = c->cluster->config.weight;
    member->status = c->status;
}

static fk_err member_job(fk_steward *c, fk_store_verb verb, fk_store_job **out)
{
    FK_TRY(fk__steward_job(c, verb, FK_MEMBER_KINDS_MAX * sizeof(fk_str), out));
    job_kinds(c, *out);
    return FK_OK;
}

static void want_join(fk_steward *c)
{
    fk_store_job *job;
    if (c->is_join_asked || c->is_leaving || c->now < c->rejoin_at) return;
    if (member_job(c, FK_STORE_JOIN, &job) != FK_OK) {
        c->rejoin_at = fk__time_add(c->now, retry_delay(c));
        return;
    }
    job->op.strategy = c->cluster->config.strategy->name;
    job->op.slots = c->cluster->config.slots;
    c->is_join_asked = true;
    c->join_asked_at = c->now;
    c->rejoin_at = FK_NEVER;
    fk__steward_submit(c, job);
}

static void want_update(fk_steward *c)
{
    fk_store_job *job;
    if (!c->is_update_wanted || c->is_update_asked || !c->is_member) return;
    if (member_job(c, FK_STORE_UPDATE, &job) != FK_OK) {
        want_again(c);
        return;
    }
    c->is_update_asked = true;
    c->is_update_wanted = false;
    fk__steward_submit(c, job);
}

static void want_view(fk_steward *c)
{
    fk_store_job *job;
    if (c->is_view_asked || c->now < c->view_at) return;
    c->view_at = fk__time_add(c->now, VIEW_RETRY);
    if (fk__steward_job(c, FK_STORE_VIEW, 0, &job) != FK_OK) return;
    job->op.version = fk_placement_view(c->placement).version;
    job->op.strategy = c->cluster->config.strategy->name;
    job->op.slots = c->cluster->config.slots;
    c->is_view_asked = true;
    c->is_news = false;
    c->view_at = FK_NEVER;
    fk__steward_submit(c, job);
}

static void left(fk_steward *c);

/* It takes too long: what is left is ended. Others may take over when that has happened, and if it does
 * not, when the lease is over. */
static void halt(fk_steward *c)
{
    if (c->is_halting) {
        left(c);
        c->is_leave_asked = true;
        return;
    }
    c->is_halting = true;
    c->leave_at = fk__time_add(c->now, c->cluster->config.lease_ttl);
    fk__half_store(&c->cluster->is_left, 3, FK_RELEASE);
    (void)fk_placement_stop(c->placement, c->now);
    /* No more renewals: placement is what asks for them. */
}

static bool has_grains(const fk_steward *c)
{
    return c->stats.activated != c->stats.stopped || c->ensuring != NULL;
}

static void want_leave(fk_steward *c)
{
    fk_store_job *job;
    bool is_late = c->now >= c->leave_at;
    if (!c->is_leaving || c->is_leave_asked) return;
    if (is_late && c->is_member) {
        halt(c);
        return;
    }
    if (c->is_halting && has_grains(c)) return;
    bool is_drained = c->is_giving && fk_placement_is_drained(c->placement);
    if (c->is_member && !c->is_halting && !is_drained) return;
    if (fk__steward_job(c, FK_STORE_LEAVE, 0, &job) != FK_OK) {
        if (is_late) c->leave_at = fk__time_add(c->now, retry_delay(c)); /* as late as before */
        want_again(c);
        return;
    }
    c->is_leave_asked = true;
    c->leave_at = FK_NEVER;
    fk__half_store(&c->cluster->is_left, c->is_halting ? 3 : 1, FK_RELEASE);
    fk__steward_submit(c, job);
}

/* Kinds that were registered since. If there is no memory for one, all are told again later, which
 * does no harm; others hear of them when all are there. */
static void want_kinds(fk_steward *c)
{
    const fk_breed *newest = fk__word_ptr(&c->cluster->breeds, FK_ACQUIRE);
    if (newest == c->breeds) return;
    fk_time idle_least = FK_NEVER;
    for (const fk_breed *breed = newest; breed != c->breeds; breed = breed->next) {
        fk_time idle = breed->kind.idle_ttl;
        fk_activated_kind kind = { { breed->name, breed->name_len }, breed->kind.durable, idle };
        fk_err err = fk_placement_add_kind(c->placement, &kind, c->now);
        if (err == FK_E_NOMEM || err == FK_E_LIMIT) {
            want_again(c);
            return;
        }
        if (err != FK_OK) fk__steward_say(c, FK_LEVEL_ERROR, "kind refused", err, "");
        fk__steward_due(&idle_least, idle);
    }
    c->breeds = newest;
    c->is_update_wanted = true;
    if (idle_least == FK_NEVER) return;
    fk__steward_due(&c->sweep_at, fk__time_add(c->now, idle_least / 4));
}

void fk__steward_membership_tick(fk_steward *c)
{
    if (c->is_stopped) return;
    if (c->now >= c->retry_at) c->retry_at = FK_NEVER;
    if (!c->is_view_shown) fk__steward_show_members(c);
    want_kinds(c);
    if (!c->is_client && !c->is_member) want_join(c);
    want_update(c);
    want_view(c);
    want_leave(c);
}

void fk__steward_news(fk_steward *c)
{
    c->is_news = true;
    c->view_at = c->now;
}

/* ---- what has come ----------------------------------------------------------------------------------------- */

static void joined(fk_steward *c, const fk_store_job *job)
{
    const fk_store_op *op = &job->op;
    fk_cluster *cluster = c->cluster;
    c->is_join_asked = false;
    fk_err err = op->err;
    if (op->verdict == FK_VERDICT_OK && !c->is_leaving) {
        c->incarnation = op->member.incarnation;
        c->is_member =
            true; /* unless it is lost again already: the answer may have taken so long */
        err = fk_placement_start_member(c->placement, fk__cluster_id(cluster), c->incarnation,
                                        c->join_asked_at, c->now);
        if (err != FK_OK) c->is_member = false;
        c->is_update_wanted = c->is_member;
        c->is_giving = false;
        fk__mem_lock(c->mem, &cluster->lock);
        cluster->incarnation = c->incarnation;
        cluster->has_lease = c->is_member;
        fk__mem_unlock(c->mem, &cluster->lock);
    }
    /* Another has its id, and will for a while. */
    bool is_taken = err == FK_E_NAME_TAKEN;
    fk_time delay = is_taken ? c->cluster->config.lease_ttl / 2 : retry_delay(c);
    if (!c->is_member) c->rejoin_at = fk__time_add(c->now, delay);
    fk__steward_say(c, c->is_member ? FK_LEVEL_INFO : FK_LEVEL_WARN,
                    c->is_member ? "joined again" : "cannot join", err,
                    op->reason != NULL ? op->reason : "");
    fk__steward_news(c);
}

/* Others look at once instead of when they look anyway: members, and whoever has called lately. */
static void tell_news(fk_steward *c)
{
    fk_view view = fk_placement_view(c->placement);
    fk_telegram news = { .kind = FK_TELEGRAM_NEWS, .view = UINT64_MAX };
    fk_peer_node *peer;
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        bool is_own =
            m->id.len == c->cluster->id_len && memcmp(m->id.ptr, c->cluster->id, m->id.len) == 0;
        if (is_own || fk__steward_peer(c, m->id, m->address, &peer) != FK_OK) continue;
        (void)fk__steward_wire(c, peer->steward, &news, NULL);
    }
    for (peer = c->peers; peer != NULL; peer = peer->next) {
        bool is_caller = peer->id_len == 0 && peer->heard_at != 0;
        if (!is_caller || c->now - peer->heard_at > HEARD_LATELY) continue;
        (void)fk__steward_wire(c, peer->steward, &news, NULL);
    }
}

static bool view_has(void *ctx, fk_str id, uint64_t incarnation)
{
    const fk_view view = fk_placement_view(((fk_steward *)ctx)->placement);
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        if (m->id.len != id.len || memcmp(m->id.ptr, id.ptr, id.len) != 0) continue;
        return m->incarnation == incarnation;
    }
    return false;
}

/* A node that has come anew is connected to at once, however long it was out of reach. */
static void meet(fk_steward *c)
{
    fk_view view = fk_placement_view(c->placement);
    fk_peer_node *peer;
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        bool is_own =
            m->id.len == c->cluster->id_len && memcmp(m->id.ptr, c->cluster->id, m->id.len) == 0;
        if (is_own || fk__steward_peer(c, m->id, m->address, &peer) != FK_OK) continue;
        if (peer->incarnation == m->incarnation) continue;
        peer->incarnation = m->incarnation;
        fk_err ignored =
            fk_authority_set_mapping(c->cluster->sys, m->address, (fk_str){ NULL, 0 }, 0);
        (void)ignored; /* it is a hint */
    }
}

/* Others can know by now that this node drains. */
static void give(fk_steward *c)
{
    fk_view view = fk_placement_view(c->placement);
    if (!c->is_draining || !c->is_member || c->is_giving) return;
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        if (m->incarnation != c->incarnation || m->status != FK_MEMBER_DRAINING) continue;
        if (m->id.len != c->cluster->id_len) continue;
        if (memcmp(m->id.ptr, c->cluster->id, m->id.len) != 0) continue;
        c->is_giving = fk_placement_drain(c->placement, c->now) == FK_OK;
    }
}

static void viewed(fk_steward *c, const fk_store_job *job)
{
    const fk_store_op *op = &job->op;
    c->is_view_asked = false;
    if (op->verdict != FK_VERDICT_OK || c->is_news) {
        c->view_at = op->verdict == FK_VERDICT_OK ? c->now : fk__time_add(c->now, VIEW_RETRY);
    }
    bool is_other = op->verdict == FK_VERDICT_REFUSED && op->err == FK_E_MISMATCH;
    if (is_other && !c->is_other) { /* a client that came before the first member */
        fk__steward_say(c, FK_LEVEL_ERROR, "no view", op->err,
                        op->reason != NULL ? op->reason : "");
    }
    c->is_other = is_other;
    if (op->verdict != FK_VERDICT_OK || op->view.version == 0) return;
    if (op->view.version <= fk_placement_view(c->placement).version) {
        /* Whoever spoke of a newer one was wrong: the store knows best. */
        fk_placement_expect_view(c->placement, 0, c->now);
        give(c); /* if there was no memory for it before */
        return;
    }
    if (fk_placement_update_topology(c->placement, &op->view, c->now) != FK_OK) {
        fk__steward_due(&c->view_at, fk__time_add(c->now, VIEW_RETRY));
        return;
    }
    meet(c);
    give(c);
    fk__desk_members_changed(c->desk, view_has, c, c->now);
    fk__steward_forget_peers(c, true); /* no call is on its way to those any more */
    fk__steward_show_members(c);
    c->sight_at = c->now;
}

static void updated(fk_steward *c, const fk_store_job *job)
{
    c->is_update_asked = false;
    if (job->op.verdict == FK_VERDICT_OK) {
        tell_news(c);
    } else if (job->op.err != FK_E_FENCED) {
        c->is_update_wanted = true; /* with the next tick */
        fk__steward_due(&c->view_at, fk__time_add(c->now, VIEW_RETRY));
    }
    fk__steward_news(c);
}

static void left(fk_steward *c)
{
    fk_cluster *cluster = c->cluster;
    const fk_port *port = &c->mem->port;
    tell_news(c);
    (void)fk_placement_stop(c->placement, c->now);
    c->is_member = false;
    c->rejoin_at = FK_NEVER;
    fk__mem_lock(c->mem, &cluster->lock);
    cluster->has_lease = false;
    fk_shutdown_task task = { cluster->shutdown_task };
    cluster->shutdown_task = 0;
    fk__mem_unlock(c->mem, &cluster->lock);
    bool was_late = fk__half_load(&cluster->is_left, FK_RELAXED) == 3;
    fk__half_store(&cluster->is_left, was_late ? 4 : 2, FK_RELEASE);
    if (port->notify != NULL) port->notify(port->ctx, (uint32_t *)(void *)&cluster->is_left);
    if (task.id != 0) (void)fk_shutdown_task_done(cluster->sys, task, FK_OK);
    c->sight_at = c->now;
}

bool fk__steward_membership_done(fk_steward *c, const fk_store_job *job)
{
    switch (job->op.verb) {
    case FK_STORE_JOIN: joined(c, job); return true;
    case FK_STORE_VIEW: viewed(c, job); return true;
    case FK_STORE_UPDATE: updated(c, job); return true;
    case FK_STORE_LEAVE: left(c); return true;
    default: return false;
    }
}

/* ---- what people see ------------------------------------------------------------------------------------------ */

void fk__steward_show(fk_steward *c)
{
    fk_cluster *cluster = c->cluster;
    const fk_port *port = &c->mem->port;
    fk_cluster_stats stats = c->stats;
    fk_placement_snapshot_get(c->placement, &stats.placement);
    c->has_stopping = stats.placement.stopping > 0;
    stats.incarnation = c->incarnation;
    stats.calls_open = fk__desk_count(c->desk);
    memcpy(stats.id, cluster->id, sizeof(stats.id));
    fk__mem_lock(c->mem, &cluster->lock);
    cluster->sight.stats = stats;
    fk__mem_unlock(c->mem, &cluster->lock);
    fk_placement_state state = stats.placement.state;
    bool is_ready = (state == FK_PLACEMENT_STATE_MEMBER || state == FK_PLACEMENT_STATE_CLIENT) &&
                    stats.placement.view_version != 0;
    if (is_ready == (fk__half_load(&cluster->is_ready, FK_RELAXED) != 0)) return;
    fk__half_store(&cluster->is_ready, is_ready, FK_RELEASE);
    if (port->notify != NULL) port->notify(port->ctx, (uint32_t *)(void *)&cluster->is_ready);
}

static size_t view_size(const fk_view *view)
{
    size_t size = view->count * sizeof(fk_member);
    for (uint32_t i = 0; i < view->count; i++) {
        const fk_member *m = &view->members[i];
        size += m->kind_count * sizeof(fk_str) + m->id.len + m->address.len;
        for (uint32_t k = 0; k < m->kind_count; k++) size += m->kinds[k].len;
    }
    return size;
}

static char *view_text(char *at, fk_str *text)
{
    if (text->len != 0) memcpy(at, text->ptr, text->len);
    text->ptr = at;
    return at + text->len;
}

void fk__view_copy(const fk_view *view, void *block, fk_view *out)
{
    fk_member *members = block;
    fk_str *kinds = (fk_str *)(void *)(members + view->count);
    size_t kind_count = 0;
    for (uint32_t i = 0; i < view->count; i++) kind_count += view->members[i].kind_count;
    char *at = (char *)(kinds + kind_count);
    for (uint32_t i = 0; i < view->count; i++) {
        members[i] = view->members[i];
        at = view_text(at, &members[i].id);
        at = view_text(at, &members[i].address);
        members[i].kinds = kinds;
        for (uint32_t k = 0; k < members[i].kind_count; k++) {
            kinds[k] = view->members[i].kinds[k];
            at = view_text(at, &kinds[k]);
        }
        kinds += members[i].kind_count;
    }
    *out = (fk_view){ view->version, members, view->count };
}

size_t fk__view_size(const fk_view *view)
{
    return view_size(view) + 1;
}

void fk__steward_show_members(fk_steward *c)
{
    fk_cluster *cluster = c->cluster;
    fk_view view = fk_placement_view(c->placement);
    void *block;
    size_t size = fk__view_size(&view);
    /* Without memory people see the view before this one, for a while. */
    c->is_view_shown = fk__mem_alloc(c->mem, size, FK_SITE("members to show"), &block) == FK_OK;
    if (!c->is_view_shown) {
        want_again(c);
        return;
    }
    fk__mem_lock(c->mem, &cluster->lock);
    void *old = cluster->sight.view;
    size_t old_size = cluster->sight.view_size;
    cluster->sight.view = block;
    cluster->sight.view_size = size;
    fk__view_copy(&view, block, &cluster->sight.members);
    fk__mem_unlock(c->mem, &cluster->lock);
    fk__mem_free(c->mem, old, old_size);
}
