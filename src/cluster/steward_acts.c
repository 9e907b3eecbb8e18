/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cluster/steward.h"

#include "core/path.h"
#include "core/send.h"
#include "core/spawn.h"

static const fk_time SWEEP_LEAST = FK_MILLIS(20);

/* ---- jobs ------------------------------------------------------------------------------------------------ */

static char *act_text(char *at, fk_str from, fk_str *to)
{
    if (from.len != 0) memcpy(at, from.ptr, from.len);
    *to = (fk_str){ at, from.len };
    return at + from.len;
}

fk_err fk__steward_job(fk_steward *c, fk_store_verb verb, size_t extra, fk_store_job **out)
{
    fk_str id = fk__cluster_id(c->cluster);
    FK_TRY(fk__store_job_create(c->cluster->sys, extra, out));
    fk_store_op *op = &(*out)->op;
    op->verb = verb;
    op->member.id = id; /* the cluster's: there as long as any job */
    op->member.incarnation = c->incarnation;
    op->ttl = c->cluster->config.lease_ttl;
    return FK_OK;
}

void fk__steward_submit(fk_steward *c, fk_store_job *job)
{
    job->to = c->cluster->steward;
    job->asked_at = c->now;
    c->cluster->port.submit(c->cluster->port.ctx, job);
}

/* Claims, the kind and who gets them lie behind the job. */
static fk_err act_slots(fk_steward *c, const fk_placement_command *command, fk_store_verb verb)
{
    size_t claims = command->slot_count * sizeof(fk_slot_claim);
    fk_store_job *job;
    FK_TRY(fk__steward_job(c, verb, claims + command->slot_kind.len + command->to.len, &job));
    fk_slot_claim *own = fk__store_job_extra(job);
    for (uint32_t i = 0; i < command->slot_count; i++) {
        own[i] =
            (fk_slot_claim){ .slot = command->slots[i].slot, .epoch = command->slots[i].epoch };
    }
    char *at = (char *)own + claims;
    at = act_text(at, command->slot_kind, &job->op.kind);
    act_text(at, command->to, &job->op.to);
    job->op.to_incarnation = command->to_incarnation;
    job->op.claims = own;
    job->op.claim_count = command->slot_count;
    job->op.request_id = command->request_id;
    job->tag[0] = (uint64_t)command->kind;
    fk__steward_submit(c, job);
    return FK_OK;
}

static fk_err act_row(fk_steward *c, const fk_placement_command *command, fk_store_verb verb)
{
    const fk_store_job *loaded = command->record;
    fk_str snapshot = { NULL, 0 }, dedup = { NULL, 0 };
    fk_store_job *job;
    if (loaded != NULL && verb == FK_STORE_STORE) {
        snapshot = loaded->op.record.snapshot;
        dedup = loaded->op.record.dedup;
    }
    size_t extra = command->key.kind.len + command->key.key.len + command->fence.holder.len +
                   snapshot.len + dedup.len + 1;
    FK_TRY(fk__steward_job(c, verb, extra, &job));
    fk_store_op *op = &job->op;
    char *at = fk__store_job_extra(job);
    at = act_text(at, command->key.kind, &op->key.kind);
    at = act_text(at, command->key.key, &op->key.key);
    at = act_text(at, command->fence.holder, &op->fence.holder);
    at = act_text(at, dedup, &op->record.dedup);
    act_text(at, snapshot, &op->record.snapshot);
    if (snapshot.ptr == NULL) op->record.snapshot.ptr = NULL; /* no state is not an empty one */
    op->key.id = command->key.id;
    op->fence.epoch = command->fence.epoch;
    op->fence.incarnation = command->fence.incarnation;
    op->version = command->version;
    op->request_id = command->request_id;
    op->request[0] = c->incarnation;
    op->request[1] = command->request_id;
    job->context = (void *)(uintptr_t)command->pid;
    job->tag[0] = (uint64_t)command->kind;
    fk__steward_submit(c, job);
    return FK_OK;
}

static fk_err act_renew(fk_steward *c, const fk_placement_command *command)
{
    fk_store_job *job;
    FK_TRY(fk__steward_job(c, FK_STORE_RENEW, 0, &job));
    job->op.request_id = command->request_id;
    job->tag[0] = (uint64_t)command->kind;
    fk__steward_submit(c, job);
    return FK_OK;
}

/* ---- actors ------------------------------------------------------------------------------------------------ */

/* FK_E_NAME_TAKEN: its predecessor is not quite gone. */
static fk_err seat_spawn(fk_steward *c, fk_seat *seat, uint64_t incarnation,
                         const fk_store_job *loaded)
{
    char room[FK_GRAIN_NAME_ROOM];
    fk_local *local = fk__steward_local(c);
    const fk_shell_start start = { seat, incarnation, loaded != NULL ? &loaded->op.record : NULL };
    fk_shell *shell;
    fk_cell *parent = fk__cell_resolve(local->sys, seat->breed->parent);
    if (parent == NULL) return FK_E_STOPPING; /* /user restarts, or stops all that it has */
    FK_TRY(fk__shell_create(local, &start, &shell));
    fk_props props = seat->breed->shell_props;
    props.state = shell;
    fk_str name =
        fk__grain_name(local->sys, (fk_str){ seat->key, seat->key_len }, seat->grain, room);
    fk_err err = fk__spawn(local, parent, name, NULL, &props, &seat->ref);
    if (err != FK_OK) {
        fk__shell_destroy(local, shell);
        return err;
    }
    c->stats.activated++;
    return FK_OK;
}

static void seat_give_up(fk_steward *c, fk_seat *seat)
{
    fk__mem_lock(c->mem, &c->cluster->lock);
    fk__seat_put(&c->cluster->roll, seat);
    fk__mem_unlock(c->mem, &c->cluster->lock);
}

/* What is no fault of the grain is said as it is: another node may do better, or this one later. */
static fk_err ensure_error(fk_err err)
{
    switch (err) {
    case FK_OK:
    case FK_E_CORRUPT:
    case FK_E_NOMEM:
    case FK_E_STOPPING: return err;
    case FK_E_LIMIT: return FK_E_OVERLOADED; /* of actors, or of memory */
    default: return FK_E_ACTIVATION;
    }
}

static void ensured_later(fk_steward *c, uint64_t request_id, fk_seat *seat, fk_err err)
{
    const fk_echo echo = {
        .kind = FK_ECHO_ENSURED, .number = request_id, .seat = seat, .err = ensure_error(err)
    };
    fk__steward_echo(c, &echo);
}

static fk_err ensure_later(fk_steward *c, const fk_placement_command *command, fk_seat *seat)
{
    void *memory;
    FK_TRY(fk__mem_alloc(c->mem, sizeof(fk_ensuring), FK_SITE("grain to be"), &memory));
    fk_ensuring *e = memory;
    *e = (fk_ensuring){ .next = c->ensuring,
                        .seat = seat,
                        .request_id = command->request_id,
                        .incarnation = command->fence.incarnation,
                        .deadline = command->deadline,
                        .record = command->record };
    c->ensuring = e;
    return FK_OK;
}

/* Of a volatile grain at once, else when placement has returned. */
static void ensured(fk_steward *c, const fk_placement_command *command, fk_seat *seat, fk_err err)
{
    if (command->done == NULL) {
        ensured_later(c, command->request_id, seat, err);
        return;
    }
    *command->done = (fk_placement_result){
        .kind = command->kind,
        .request_id = command->request_id,
        .verdict = err == FK_OK ? FK_VERDICT_OK : FK_VERDICT_REFUSED,
        .err = ensure_error(err),
        .pid = (uint64_t)(uintptr_t)seat,
    };
}

static void act_ensure(fk_steward *c, const fk_placement_command *command)
{
    fk_cluster *cluster = c->cluster;
    const fk_breed *breed = fk__breed_find(cluster, command->key.kind);
    fk_seat *seat = NULL;
    /* An actor that placement cannot be told of would be nobody's: without room for that the command
     * is late. */
    if (fk__steward_echo_reserve(c) != FK_OK) return;
    fk_err err = breed != NULL ? FK_OK : FK_E_UNKNOWN_KIND;
    if (err == FK_OK) {
        fk__mem_lock(c->mem, &cluster->lock);
        err = fk__seat_get(&cluster->roll, cluster, breed, &command->key, &seat);
        fk__mem_unlock(c->mem, &cluster->lock);
    }
    if (err == FK_OK) {
        seat->epoch = command->fence.epoch;
        err = seat_spawn(c, seat, command->fence.incarnation, command->record);
        if (err == FK_E_NAME_TAKEN) {
            err = ensure_later(c, command, seat);
            if (err == FK_OK) return;
        }
        if (err != FK_OK) seat_give_up(c, seat);
    }
    ensured(c, command, err == FK_OK ? seat : NULL, err);
}

void fk__steward_ensure_again(fk_steward *c)
{
    fk_ensuring **link = &c->ensuring;
    while (*link != NULL) {
        fk_ensuring *e = *link;
        if (fk__steward_echo_reserve(c) != FK_OK) return; /* as in act_ensure() */
        fk_err err = seat_spawn(c, e->seat, e->incarnation, e->record);
        if (err == FK_E_NAME_TAKEN && c->now < e->deadline) {
            link = &e->next;
            continue;
        }
        *link = e->next;
        if (err != FK_OK) seat_give_up(c, e->seat);
        ensured_later(c, e->request_id, err == FK_OK ? e->seat : NULL, err);
        fk__mem_free(c->mem, e, sizeof(*e));
    }
}

/* Placement goes on without it: nobody has the record any more. */
static void ensure_cancel(fk_steward *c, uint64_t request_id)
{
    for (fk_ensuring **link = &c->ensuring; *link != NULL; link = &(*link)->next) {
        fk_ensuring *e = *link;
        if (e->request_id != request_id) continue;
        *link = e->next;
        seat_give_up(c, e->seat);
        fk__mem_free(c->mem, e, sizeof(*e));
        return;
    }
}

/* Its calls come back; it ends when what is under way is done. If it cannot be told, it is stopped. */
static void act_stop(fk_steward *c, const fk_placement_command *command)
{
    fk_seat *seat = (fk_seat *)(uintptr_t)command->pid;
    if (seat == NULL) {
        ensure_cancel(c, command->request_id);
        fk_echo echo = { .kind = FK_ECHO_STOPPED, .grain = command->key.id };
        fk__steward_echo(c, &echo);
        return;
    }
    fk_grain_order order = { seat, 0 };
    fk__half_store(&seat->is_closing, 1, FK_RELAXED);
    fk__mem_lock(c->mem, &c->cluster->lock);
    fk__roll_remove(&c->cluster->roll, seat);
    fk__mem_unlock(c->mem, &c->cluster->lock);
    bool holds = fk_placement_lease_deadline(c->placement) > c->now;
    fk_err err = !holds ? FK_E_STATE
                        : fk__send(fk__steward_local(c), seat->ref, FK_REF_NONE,
                                   (fk_out){ &fk__type_grain_order, &order }, NULL);
    if (err != FK_OK) (void)fk_stop(c->cluster->sys, seat->ref);
}

void fk__steward_gone(fk_steward *c)
{
    fk_cluster *cluster = c->cluster;
    if (fk__word_load(&cluster->gone, FK_RELAXED) == 0) return;
    /* Acquire pairs with fk__shell_stop(). */
    fk_seat *seat = (fk_seat *)fk__word_swap(&cluster->gone, 0, FK_ACQ_REL), *next;
    for (; seat != NULL; seat = next) {
        next = seat->gone;
        uint64_t pid = (uint64_t)(uintptr_t)seat;
        bool is_closing = fk__half_load(&seat->is_closing, FK_RELAXED) != 0;
        fk__mem_lock(c->mem, &cluster->lock);
        fk__roll_remove(&cluster->roll, seat);
        fk__mem_unlock(c->mem, &cluster->lock);
        c->stats.stopped++;
        if (seat->why != FK_OK) {
            const fk_placement_result failed = { .kind = FK_COMMAND_STORE_ACTIVATION,
                                                 .verdict = seat->verdict,
                                                 .err = seat->why,
                                                 .epoch = seat->fence_epoch };
            (void)fk_placement_store_failed(c->placement, seat->grain, pid, &failed, c->now);
            (void)fk_placement_stopped(c->placement, seat->grain, pid, "store failed", c->now);
        } else {
            const char *why = seat->is_removed ? "deleted" : is_closing ? "asked to" : "by itself";
            (void)fk_placement_stopped(c->placement, seat->grain, pid, why, c->now);
        }
        seat_give_up(c, seat);
    }
}

/* ---- commands and results --------------------------------------------------------------------------------------- */

void fk__steward_command(void *ctx, const fk_placement_command *command)
{
    fk_steward *c = ctx;
    fk_err err = FK_OK;
    if (c->is_stopped) return; /* nobody is there to do it */
    switch (command->kind) {
    case FK_COMMAND_TRY_ACQUIRE: err = act_slots(c, command, FK_STORE_ACQUIRE); break;
    case FK_COMMAND_TRANSFER_SLOT: err = act_slots(c, command, FK_STORE_TRANSFER); break;
    case FK_COMMAND_RELEASE:
        /* When everything is being ended nobody may have them before the last grain has; then the whole
         * lease goes. */
        if (!c->is_halting) err = act_slots(c, command, FK_STORE_RELEASE);
        break;
    case FK_COMMAND_LOAD_ACTIVATION: err = act_row(c, command, FK_STORE_LOAD); break;
    case FK_COMMAND_STORE_ACTIVATION: err = act_row(c, command, FK_STORE_STORE); break;
    case FK_COMMAND_REMOVE_ACTIVATION: err = act_row(c, command, FK_STORE_REMOVE); break;
    case FK_COMMAND_RENEW_MEMBER: err = act_renew(c, command); break;
    case FK_COMMAND_ENSURE_ACTIVATION: act_ensure(c, command); break;
    case FK_COMMAND_STOP_ACTIVATION: act_stop(c, command); break;
    case FK_COMMAND_CANCEL_REQUEST: ensure_cancel(c, command->request_id); break;
    case FK_COMMAND_COUNT: break;
    }
    /* Without memory for a job about slots or the lease it is as if the store did not answer: the
     * command has a deadline. Of a row there are callers who wait. */
    bool is_row = command->kind == FK_COMMAND_LOAD_ACTIVATION ||
                  command->kind == FK_COMMAND_STORE_ACTIVATION ||
                  command->kind == FK_COMMAND_REMOVE_ACTIVATION;
    if (err == FK_OK || !is_row) return;
    fk_echo echo = {
        .kind = FK_ECHO_REFUSED, .number = command->request_id, .command = command->kind, .err = err
    };
    fk__steward_echo(c, &echo);
}

void fk__steward_discard(void *ctx, void *record)
{
    fk_steward *c = ctx;
    for (fk_ensuring *e = c->ensuring; e != NULL; e = e->next) {
        if (e->record == record) e->record = NULL;
    }
    fk__store_job_destroy(record);
}

static bool is_member(const fk_member *member, fk_str id, uint64_t incarnation)
{
    return member->id.len == id.len && memcmp(member->id.ptr, id.ptr, id.len) == 0 &&
           member->incarnation == incarnation;
}

/* Slots are another member's now; or, with epoch 0, the lock says so, and it may not know. */
static void tell_slots(fk_steward *c, const fk_member *to, const fk_store_op *op,
                       const fk_slot_claim *claims, uint32_t count)
{
    fk_peer_node *peer;
    fk_telegram moved = { .kind = FK_TELEGRAM_MOVED,
                          .grain_kind = op->kind,
                          .incarnation = to->incarnation,
                          .claim_count = count };
    if (count == 0 || fk__steward_peer(c, to->id, to->address, &peer) != FK_OK) return;
    (void)fk__steward_wire(c, peer->steward, &moved, claims);
}

static void tell_moved(fk_steward *c, const fk_store_job *job)
{
    const fk_store_op *op = &job->op;
    fk_view view = fk_placement_view(c->placement);
    for (uint32_t i = 0; i < view.count; i++) {
        if (!is_member(&view.members[i], op->to, op->to_incarnation)) continue;
        tell_slots(c, &view.members[i], op, op->claims, op->claim_count);
    }
}

/* What was refused because another member holds it: that one may have missed that it does. */
static void tell_holders(fk_steward *c, const fk_store_job *job)
{
    const fk_store_op *op = &job->op;
    fk_view view = fk_placement_view(c->placement);
    fk_slot_claim claims[64];
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        uint32_t count = 0;
        for (uint32_t k = 0; k < op->claim_count; k++) {
            const fk_slot_claim *claim = &op->claims[k];
            if (claim->epoch != 0 || !is_member(m, claim->holder, claim->holder_incarnation)) {
                continue;
            }
            claims[count++] = (fk_slot_claim){ .slot = claim->slot };
            if (count < sizeof(claims) / sizeof(claims[0])) continue;
            tell_slots(c, m, op, claims, count);
            count = 0;
        }
        tell_slots(c, m, op, claims, count);
    }
}

static void note_slots(fk_steward *c, const fk_store_job *job)
{
    const fk_store_op *op = &job->op;
    uint32_t count = 0;
    for (uint32_t i = 0; i < op->claim_count; i++) count += op->claims[i].epoch != 0;
    if (op->verb == FK_STORE_TRANSFER) c->stats.slots_moved_out += count;
}

/* Before its first call, which is an echo still to come. */
static void tell_version(fk_steward *c, const fk_store_job *job)
{
    fk_seat *seat = job->context;
    fk_grain_order order = { seat, job->op.record.version };
    if (fk__send(fk__steward_local(c), seat->ref, FK_REF_NONE,
                 (fk_out){ &fk__type_grain_order, &order }, NULL) != FK_OK) {
        (void)fk_stop(c->cluster->sys, seat->ref);
    }
}

void fk__steward_done(fk_steward *c, fk_store_job *job, bool *is_kept)
{
    const fk_store_op *op = &job->op;
    fk_placement_result result = { .kind = (fk_command_kind)job->tag[0],
                                   .request_id = op->request_id,
                                   .verdict = op->verdict,
                                   .err = op->err,
                                   .version = op->record.version,
                                   .epoch = op->epoch,
                                   .slots = op->claims,
                                   .slot_count = op->claim_count };
    bool is_ok = op->verdict == FK_VERDICT_OK;
    if (op->verb == FK_STORE_LOAD && is_ok) result.record = job;
    if (op->verb == FK_STORE_ACQUIRE && is_ok) tell_holders(c, job);
    if (op->verb == FK_STORE_TRANSFER && is_ok) {
        note_slots(c, job);
        tell_moved(c, job); /* before the calls that follow the slots */
    }
    fk_err err = fk_placement_handle_result(c->placement, &result, c->now);
    *is_kept = err == FK_OK && result.record != NULL;
    if (err == FK_OK && op->verb == FK_STORE_STORE && is_ok) tell_version(c, job);
}

/* ---- idle grains ------------------------------------------------------------------------------------------------- */

static void sweep_one(fk_steward *c, fk_seat *seat)
{
    if (fk__half_load(&seat->is_used, FK_RELAXED) == 0) return;
    fk__half_store(&seat->is_used, 0, FK_RELAXED);
    fk_placement_touch(c->placement, seat->grain, c->now);
}

void fk__steward_sweep(fk_steward *c)
{
    const fk_roll_table *table = fk__word_ptr(&c->cluster->roll.table, FK_RELAXED);
    for (uint32_t i = 0; i <= table->mask; i++) {
        fk_seat *seat = fk__roll_follow(&table->bucket[i]);
        for (; seat != NULL; seat = fk__roll_follow(&seat->next)) sweep_one(c, seat);
    }
    fk_placement_passivate_idle(c->placement, c->now);
    fk_time least = FK_NEVER;
    const fk_breed *breed = fk__word_ptr(&c->cluster->breeds, FK_ACQUIRE);
    for (; breed != NULL; breed = breed->next) fk__steward_due(&least, breed->kind.idle_ttl);
    if (least != FK_NEVER && least / 4 < SWEEP_LEAST) least = SWEEP_LEAST * 4;
    c->sweep_at = least != FK_NEVER ? fk__time_add(c->now, least / 4) : FK_NEVER;
}
