/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The process of a node: its clock, its memory, how it begins, goes on and ends. */

#include "sim/cluster.h"

#include "sim/sometimes.h"

#include <stdlib.h>
#include <string.h>

static fk_csim *const w = &fk__csim;

static const char *const KINDS[FK_CSIM_KINDS] = { "account", "cache" };
static const char *const IDS[FK_CSIM_NODES] = { "bank@10.0.0.1:1", "bank@10.0.0.2:1",
                                                "bank@10.0.0.3:1", "bank@10.0.0.4:1",
                                                "bank@10.0.0.5:1", "guest@10.0.0.6:1" };

fk_str fk__csim_id(uint8_t node)
{
    return fk_str_of(IDS[node]);
}

uint8_t fk__csim_index(fk_str id)
{
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        fk_str text = fk__csim_id((uint8_t)i);
        if (text.len == id.len && memcmp(text.ptr, id.ptr, id.len) == 0) return (uint8_t)i;
    }
    fk__csim_fail("I15", "there is no node %.*s", (int)id.len, id.ptr);
}

uint32_t fk__csim_key_index(fk_grain_id id)
{
    uint32_t i = 0;
    while (i < FK_CSIM_KEYS && !fk_grain_id_equal(w->key[i].id, id)) i++;
    if (i == FK_CSIM_KEYS) fk__csim_fail("I12", "nobody has asked for that grain");
    return i;
}

/* ---- clock ------------------------------------------------------------------------------------ */

static fk_time local_at(const fk_csim_node *n, fk_time at)
{
    fk_time passed = at > n->clock_true ? at - n->clock_true : 0;
    return n->clock_local + passed + passed * n->clock_ppm / 1000000;
}

fk_time fk__csim_local(const fk_csim_node *n)
{
    return local_at(n, w->now);
}

fk_time fk__csim_true_of(const fk_csim_node *n, fk_time local)
{
    if (local >= FK_NEVER / 4) return FK_NEVER / 4;
    if (local <= n->clock_local) return n->clock_true;
    fk_time at = n->clock_true + (local - n->clock_local) * 1000 / (1000000 + n->clock_ppm) * 1000;
    while (local_at(n, at) < local) at += 1000;
    return at;
}

void fk__csim_clock_set(fk_csim_node *n, int32_t ppm)
{
    n->clock_local = fk__csim_local(n);
    n->clock_true = w->now;
    n->clock_ppm = ppm;
    n->wake_at = 0; /* what was computed with the old rate does not hold */
}

/* ---- memory: what a process has goes with it --------------------------------------------------- */

struct fk_csim_block {
    fk_csim_block *next, *prev;
    size_t size;
    size_t unused;
};

static void *node_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    fk_csim_node *n = ctx;
    if (ptr == NULL) {
        fk_csim_block *block = malloc(sizeof(*block) + new_size);
        if (block == NULL) return NULL;
        *block = (fk_csim_block){ .next = n->blocks, .size = new_size };
        if (n->blocks != NULL) n->blocks->prev = block;
        n->blocks = block;
        return block + 1;
    }
    fk_csim_block *block = (fk_csim_block *)ptr - 1;
    if (block->size != old_size || new_size != 0) fk__csim_fail("I18", "free with the wrong size");
    *(block->prev != NULL ? &block->prev->next : &n->blocks) = block->next;
    if (block->next != NULL) block->next->prev = block->prev;
    memset(block, 0xdd, sizeof(*block) + old_size);
    free(block);
    return NULL;
}

void fk__csim_abandon(fk_csim_node *n)
{
    while (n->blocks != NULL) {
        fk_csim_block *next = n->blocks->next;
        free(n->blocks);
        n->blocks = next;
    }
}

size_t fk__csim_bytes(const fk_csim_node *n)
{
    size_t bytes = 0;
    for (const fk_csim_block *block = n->blocks; block != NULL; block = block->next) {
        bytes += block->size;
    }
    return bytes;
}

/* Not while it boots: who cannot start is not there. */
static bool node_admit(void *ctx, const fk_site *site, size_t size)
{
    const fk_csim_node *n = ctx;
    (void)site;
    (void)size;
    bool is_tried = !w->is_healed && n->may_starve && fk__csim_one_in(w->plan.starve_in);
    if (is_tried) FK_SOMETIMES_HIT(CLUSTER_NO_MEMORY);
    return !is_tried;
}

static void node_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    (void)lock;
}

fk_port fk__csim_port(fk_csim_node *n)
{
    return (fk_port){ .size = sizeof(fk_port),
                      .ctx = n,
                      .alloc = node_alloc,
                      .admit = node_admit,
                      .lock = node_lock,
                      .unlock = node_lock };
}

/* ---- membership and views ---------------------------------------------------------------------- */

static void updated(fk_csim_node *n, const fk_csim_op *answer)
{
    bool is_known = answer->verdict != FK_VERDICT_UNKNOWN;
    if (is_known || n->incarnation != answer->asked->incarnation) return;
    fk_csim_op *op = fk__csim_op_make(n, FK_STORE_UPDATE, updated);
    op->status = answer->status;
    fk__csim_op_send(op);
}

static void say_status(fk_csim_node *n, fk_member_status status)
{
    if (n->incarnation == 0) return;
    fk_csim_op *op = fk__csim_op_make(n, FK_STORE_UPDATE, updated);
    op->status = status;
    fk__csim_op_send(op);
}

void fk__csim_drain(fk_csim_node *n)
{
    n->is_draining = true;
    say_status(n, FK_MEMBER_DRAINING);
    fk_placement_drain(n->placement, fk__csim_local(n));
    fk__csim_node_after(n);
}

static void joined(fk_csim_node *n, const fk_csim_op *answer)
{
    n->is_joining = false;
    if (n->state != FK_CSIM_RUNNING || n->incarnation != 0) return;
    if (answer->verdict != FK_VERDICT_OK) {
        fk__csim_join(n);
        return;
    }
    fk_time now = fk__csim_local(n);
    fk_err err = fk_placement_start_member(n->placement, fk__csim_id(n->index), answer->incarnation,
                                           answer->asked_at, now);
    if (err == FK_E_NOMEM) {
        fk__csim_join(n);
        return;
    }
    if (err != FK_OK) {
        fk__csim_fail("L2", "n%u cannot start: %s", (unsigned)n->index, fk_err_name(err));
    }
    /* An answer that comes very late starts a lease that is over. */
    if (fk_placement_lease_deadline(n->placement) == 0) return;
    n->incarnation = answer->incarnation;
    fk__cfact(FK_CFACT_JOINED, n->index, n->incarnation, 0);
    if (n->stays_drained) {
        fk__csim_drain(n);
    } else if (w->plan.joins_first) {
        say_status(n, FK_MEMBER_UP);
    }
}

void fk__csim_join(fk_csim_node *n)
{
    if (n->is_joining || n->incarnation != 0 || n->is_guest) return;
    n->is_joining = true;
    fk_csim_op *op = fk__csim_op_make(n, FK_STORE_JOIN, joined);
    op->status = n->stays_drained      ? FK_MEMBER_DRAINING
                 : w->plan.joins_first ? FK_MEMBER_JOINING
                                       : FK_MEMBER_UP;
    fk__csim_op_send(op);
}

static bool is_there(void *ctx, fk_str id, uint64_t incarnation)
{
    fk_view view = fk_placement_view(ctx);
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        if (m->incarnation == incarnation && fk__csim_index(m->id) == fk__csim_index(id)) {
            return true;
        }
    }
    return false;
}

static void show_view(fk_csim_node *n, const fk_csim_view *view)
{
    fk_str kinds[FK_CSIM_KINDS];
    fk_member members[FK_CSIM_VIEW_MAX];
    uint32_t first = w->plan.is_shuffled && view->count != 0 ? fk__csim_below(view->count) : 0;
    for (uint32_t i = 0; i < FK_CSIM_KINDS; i++) kinds[i] = fk_str_of(KINDS[i]);
    for (uint32_t i = 0; i < view->count; i++) {
        uint32_t at = (i + first) % view->count;
        members[i] = (fk_member){
            .id = fk__csim_id(view->member[at].node),
            .incarnation = view->member[at].incarnation,
            .address = fk__csim_id(view->member[at].node),
            .kinds = kinds,
            .kind_count = FK_CSIM_KINDS,
            .weight = view->member[at].weight,
            .status = view->member[at].status,
        };
    }
    fk_view shown = { view->version, members, view->count };
    fk_time now = fk__csim_local(n);
    uint64_t before = fk_placement_view(n->placement).version;
    fk_err err = fk_placement_update_topology(n->placement, &shown, now);
    uint64_t after = fk_placement_view(n->placement).version;
    if (after < before) {
        fk__csim_fail("I13", "n%u goes back from view %llu to %llu", (unsigned)n->index,
                      (unsigned long long)before, (unsigned long long)after);
    }
    if (err == FK_E_NOMEM) n->view_seen = 0; /* again, when it is asked next */
    if (err == FK_OK && after < view->version) {
        fk__csim_fail("I13", "n%u does not take view %llu", (unsigned)n->index,
                      (unsigned long long)view->version);
    }
    if (after == before) return;
    fk__cfact(FK_CFACT_VIEW, n->index, after, view->count);
    fk__book_owners(n);
    fk__desk_members_changed(n->desk, is_there, n->placement, now);
}

static void viewed(fk_csim_node *n, const fk_csim_op *answer)
{
    if (answer->verdict != FK_VERDICT_OK || answer->view == NULL) return;
    if (n->state == FK_CSIM_STOPPING || answer->view->version == n->view_seen) return;
    n->view_seen = answer->view->version;
    show_view(n, answer->view);
}

void fk__csim_view_old(fk_csim_node *n)
{
    uint64_t version = fk_placement_view(n->placement).version;
    if (version < 2 || n->state == FK_CSIM_STOPPING) return;
    FK_SOMETIMES_HIT(CLUSTER_OLD_VIEW);
    show_view(n, w->services.view[1 + fk__csim_below((uint32_t)version - 1)]);
}

static void view_step(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    fk__csim_op_send(fk__csim_op_make(n, FK_STORE_VIEW, viewed));
    fk__csim_node_at(n, fk__csim_between(w->plan.view_every / 2, w->plan.view_every), view_step, n,
                     number);
}

static void idle_step(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    if (n->state == FK_CSIM_STOPPING) return;
    fk_placement_passivate_idle(n->placement, fk__csim_local(n));
    fk__csim_node_at(n, FK_MILLIS(250), idle_step, n, number);
}

/* ---- beginning and end ------------------------------------------------------------------------- */

void fk__csim_boot(fk_csim_node *n)
{
    const fk_csim_plan *p = &w->plan;
    n->life = ++w->lives;
    n->state = FK_CSIM_RUNNING;
    n->incarnation = 0;
    n->paused_until = 0;
    n->may_starve = false;
    n->is_joining = n->is_quiet = n->is_returning = n->is_draining = false;
    n->acts = NULL;
    n->wake_at = 0;
    n->view_seen = 0;
    n->deadline_seen = 0;
    n->single_origin = (uint64_t)n->life * 2 + 1;
    n->single_seq = n->pid_last = 0;
    n->ticket_count = 0;
    fk__cfact(FK_CFACT_BOOT, n->index, n->life, 0);
    fk_port port = fk__csim_port(n);
    fk__mem_init(&n->mem, &port, 0);
    fk_placement_config config = {
        .size = sizeof(config),
        .slots = FK_CSIM_SLOTS,
        .strategy = p->has_ties ? &fk__csim_ties : NULL,
        .outcome = fk__csim_outcome(n),
        .command_timeout = p->command_timeout,
        .waiters_max = p->waiters_max,
        .acquire_batch = p->acquire_batch,
        .drain_batch = p->drain_batch,
        .cache_capacity = p->cache_capacity,
        .cache_ttl = FK_SECONDS(2),
    };
    fk_desk_config desk = fk__csim_desk_config(n);
    fk_err err = fk_placement_create(&config, &port, &n->placement);
    FK_ASSERT(err == FK_OK);
    err = fk__desk_create(&n->mem, &desk, &n->desk);
    FK_ASSERT(err == FK_OK);
    fk_time now = fk__csim_local(n);
    if (n->is_guest) {
        err = fk_placement_start_client(n->placement, now);
        FK_ASSERT(err == FK_OK);
    }
    for (uint32_t i = 0; i < FK_CSIM_KINDS && !n->is_guest; i++) {
        fk_activated_kind kind = { fk_str_of(KINDS[i]), i == 0, p->idle_ttl };
        err = fk_placement_add_kind(n->placement, &kind, now);
        FK_ASSERT(err == FK_OK);
    }
    n->may_starve = true;
    fk__csim_join(n);
    view_step(n, 0);
    idle_step(n, 0);
    fk__csim_clients_begin(n);
    fk__csim_node_after(n);
}

void fk__csim_pause(fk_csim_node *n, fk_time time)
{
    if (n->state == FK_CSIM_ABSENT || n->paused_until > w->now) return;
    n->paused_until = w->now + time;
    fk__book_paused(n);
    fk__cfact(FK_CFACT_PAUSE, n->index, (uint64_t)time / 1000000, 0);
    FK_SOMETIMES_HIT(CLUSTER_PAUSED);
}

static void be_gone(fk_csim_node *n)
{
    n->state = FK_CSIM_ABSENT;
    n->placement = NULL;
    n->desk = NULL;
    n->acts = NULL;
    n->incarnation = 0;
    n->paused_until = 0;
    fk__book_gone(n);
}

void fk__csim_crash(fk_csim_node *n)
{
    if (n->state == FK_CSIM_ABSENT) return;
    fk__cfact(FK_CFACT_CRASH, n->index, n->life, 0);
    FK_SOMETIMES_HIT(CLUSTER_CRASHED);
    be_gone(n);
    fk__csim_abandon(n);
}

static void reboot(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_node *n = arg;
    if (n->state == FK_CSIM_ABSENT) fk__csim_boot(n);
}

static void left(fk_csim_node *n, const fk_csim_op *answer)
{
    (void)answer;
    bool returns = n->is_returning;
    fk__desk_destroy(n->desk);
    fk__csim_acts_end(n);
    fk_placement_destroy(n->placement);
    size_t bytes = fk__csim_bytes(n);
    if (bytes != 0) fk__csim_fail("I18", "n%u leaves %zu bytes", (unsigned)n->index, bytes);
    fk__cfact(FK_CFACT_GONE, n->index, n->life, 0);
    FK_SOMETIMES_HIT(CLUSTER_LEFT);
    be_gone(n);
    if (returns) fk__csim_at(fk__csim_between(0, FK_SECONDS(1)), reboot, n, 0);
}

static void leave(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    for (const fk_csim_act *act = n->acts; act != NULL; act = act->next) {
        if (!act->is_stopping) {
            fk__csim_fail("L5", "n%u has stopped, and g%u has not been told", (unsigned)n->index,
                          (unsigned)act->key);
        }
    }
    if (n->acts != NULL && number < 40) { /* a store is under way */
        fk__csim_node_at(n, FK_MILLIS(100), leave, n, number + 1);
        return;
    }
    fk__csim_op_send(fk__csim_op_make(n, FK_STORE_LEAVE, left));
}

static void check_drained(const fk_csim_node *n)
{
    for (uint32_t i = 0; i < FK_CSIM_KINDS * FK_CSIM_SLOTS; i++) {
        const fk_csim_slot *slot = &w->services.slot[i / FK_CSIM_SLOTS][i % FK_CSIM_SLOTS];
        if (slot->holder != n->index || slot->incarnation != n->incarnation) continue;
        fk__csim_fail("L5", "n%u has drained, and holds slot %u", (unsigned)n->index, (unsigned)i);
    }
}

/* Calls of its own are awaited, and its slots given away; but not for ever. Others may give some back
 * as long as they do not know; so when there are no faults, it waits until they do. */
static void leave_step(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    bool is_drained = n->is_guest || n->incarnation == 0 || fk_placement_is_drained(n->placement);
    bool is_idle = n->open_calls == 0 && fk__desk_count(n->desk) == 0;
    bool is_ready = is_drained && is_idle;
    uint64_t settle = w->is_healed ? (uint64_t)(2 * w->plan.view_every / FK_MILLIS(20)) + 20 : 0;
    if ((!is_ready || number < settle) && w->now < n->leave_by) {
        fk__csim_node_at(n, FK_MILLIS(20), leave_step, n, is_ready ? number + 1 : 0);
        return;
    }
    if (is_drained) FK_SOMETIMES_HIT(CLUSTER_DRAINED);
    fk__cfact(FK_CFACT_DRAINED, n->index, n->incarnation, is_drained);
    bool is_late = n->leave_by - FK_SECONDS(8) > w->healed_at + FK_SECONDS(1);
    if (w->is_healed && is_late && !is_ready) {
        fk__csim_fail("L5", "n%u does not drain", (unsigned)n->index);
    }
    if (w->is_healed && is_late && n->incarnation != 0) check_drained(n);
    n->state = FK_CSIM_STOPPING;
    fk__desk_give_up(n->desk, FK_E_STOPPING);
    fk_err err = fk_placement_stop(n->placement, fk__csim_local(n));
    bool is_started = n->is_guest || n->incarnation != 0;
    if (err != FK_OK && is_started) fk__csim_fail("L5", "n%u cannot stop", (unsigned)n->index);
    fk__csim_node_at(n, FK_MILLIS(100 + fk__csim_below(400)), leave, n, 0);
}

void fk__csim_leave(fk_csim_node *n, bool returns)
{
    if (n->state != FK_CSIM_RUNNING) return;
    n->state = FK_CSIM_LEAVING;
    n->is_quiet = true;
    n->is_returning = returns;
    n->leave_by = w->now + FK_SECONDS(8);
    /* Some are in a hurry. */
    bool is_gentle = w->is_healed || w->plan.mood == FK_CSIM_ROLLING;
    if (!is_gentle && fk__csim_one_in(3)) n->leave_by = w->now;
    fk__cfact(FK_CFACT_LEAVING, n->index, n->incarnation, 0);
    say_status(n, FK_MEMBER_DRAINING);
    if (n->incarnation != 0) fk_placement_drain(n->placement, fk__csim_local(n));
    fk__csim_node_at(n, FK_MILLIS(20), leave_step, n, 0);
    fk__csim_node_after(n);
}

/* ---- after each thing it did -------------------------------------------------------------------- */

static void wake(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_node *n = arg;
    fk_time now = fk__csim_local(n);
    if (n->wake_at > w->now) return; /* there is another */
    n->wake_at = 0;
    fk_placement_tick(n->placement, now);
    fk__desk_tick(n->desk, now);
}

void fk__csim_node_after(fk_csim_node *n)
{
    fk__book_node(n);
    fk_time next = fk_placement_next_deadline(n->placement);
    fk_time due = fk__desk_next(n->desk);
    if (due < next) next = due;
    if (next >= FK_NEVER / 4) return;
    fk_time at = fk__csim_true_of(n, next);
    if (at < w->now) at = w->now;
    if (n->wake_at > w->now && n->wake_at <= at) return;
    if (n->wake_at == w->now && at == w->now) return; /* it is about to */
    n->wake_at = at;
    fk__csim_node_at(n, at - w->now, wake, n, 0);
}
