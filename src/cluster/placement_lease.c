/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The one lease of a member. Whoever grants it counts from when the request came; this member counts
 * from when it was sent, which is earlier, on a clock that may be a little slow, and stops a margin
 * before. So it has stopped before anybody else can start, whatever the answer took.
 */

#include "cluster/placement.h"

static fk_time lease_end(const fk_placement *p, fk_time asked_at)
{
    fk_time ttl = p->config.lease_ttl;
    fk_time drift = ttl / 1000000 * p->config.clock_error_ppm +
                    ttl % 1000000 * p->config.clock_error_ppm / 1000000;
    return fk__time_add(asked_at, ttl) - drift - p->config.lease_margin;
}

void fk__lease_start(fk_placement *p, fk_time asked_at)
{
    p->lease = (fk_lease){ .deadline = lease_end(p, asked_at),
                           .renew_at = fk__time_add(asked_at, p->config.lease_ttl / 3) };
}

void fk__lease_lose(fk_placement *p, const char *reason)
{
    FK_ASSERT(p->lease.deadline != 0);
    p->lease = (fk_lease){ 0 };
    fk__placement_forget(p, "lease lost", FK_E_NOT_READY);
    fk__say(p, (fk_placement_event){ .kind = FK_PLACEMENT_LEASE_LOST,
                                     .authority = fk__placement_id(p),
                                     .reason = reason });
    fk__placement_restate(p);
}

static void lease_renew(fk_placement *p)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    fk_lease *lease = &p->lease;
    /* One answer that is lost must not cost the lease. */
    fk_time patience = p->config.lease_ttl / 4;
    if (patience > p->config.command_timeout) patience = p->config.command_timeout;
    lease->request_id = ++p->last_request;
    lease->asked_at = p->now;
    lease->late_at = fk__time_add(p->now, patience);
    fk_placement_command command = { .kind = FK_COMMAND_RENEW_MEMBER,
                                     .request_id = lease->request_id,
                                     .deadline = lease->late_at,
                                     .fence = { 0, fk__placement_id(p), p->incarnation },
                                     .reason = "" };
    outcome->command(outcome->ctx, &command);
}

static void lease_try_again(fk_placement *p)
{
    p->lease.request_id = 0;
    p->lease.renew_at = fk__time_add(p->now, p->config.lease_ttl / 12);
}

fk_err fk__lease_result(fk_placement *p, const fk_placement_result *result)
{
    fk_lease *lease = &p->lease;
    if (lease->request_id == 0 || lease->request_id != result->request_id) return FK_E_NOT_FOUND;
    if (result->verdict == FK_VERDICT_REFUSED && result->err == FK_E_FENCED) {
        fk__lease_lose(p, "the renewal was refused");
        return FK_OK;
    }
    if (result->verdict !=
        FK_VERDICT_OK) { /* the store is full, or gone: the lease is as good as before */
        lease_try_again(p);
        return FK_OK;
    }
    fk_time from = FK_SAFEGUARD(PLACEMENT_SEND_TIME) ? lease->asked_at : p->now;
    fk__lease_start(p, from);
    fk__say(p, (fk_placement_event){ .kind = FK_PLACEMENT_LEASE_RENEWED,
                                     .authority = fk__placement_id(p) });
    return FK_OK;
}

/* ---- time --------------------------------------------------------------------------------------- */

static void lease_tick(fk_placement *p)
{
    fk_lease *lease = &p->lease;
    if (lease->deadline == 0) return;
    if (lease->request_id != 0 && p->now >= lease->late_at) lease_try_again(p);
    if (lease->request_id == 0 && p->now >= lease->renew_at) lease_renew(p);
}

static void pids_tick(fk_placement *p)
{
    fk_pid *pid;
    while ((pid = fk__pids_expired(&p->pids, p->now)) != NULL) {
        fk__say_cached(p, FK_PLACEMENT_CACHE_DROPPED, pid, "ttl");
        fk__pids_drop(&p->pids, pid);
    }
}

void fk_placement_tick(fk_placement *p, fk_time now)
{
    fk__placement_enter(p, now);
    lease_tick(p);
    while (!fk__ring_is_empty(&p->due)) {
        const fk_attempt *attempt = FK_CONTAINER(p->due.next, fk_attempt, due);
        if (now < attempt->deadline) break;
        fk__flight_late(p, attempt->grain);
    }
    while (!fk__ring_is_empty(&p->errands_due)) {
        fk_errand *errand = FK_CONTAINER(p->errands_due.next, fk_errand, due);
        if (now < errand->deadline) break;
        fk__errand_late(p, errand);
    }
    pids_tick(p);
    fk__slots_retry(p);
    fk__slots_pump(p);
}

static void deadline_min(fk_time *deadline, fk_time other)
{
    if (other < *deadline) *deadline = other;
}

fk_time fk_placement_next_deadline(const fk_placement *p)
{
    fk_time deadline = fk__pids_deadline(&p->pids);
    const fk_lease *lease = &p->lease;
    if (lease->deadline != 0) {
        if (FK_SAFEGUARD(PLACEMENT_SELF_FENCE)) deadline_min(&deadline, lease->deadline);
        deadline_min(&deadline, lease->request_id != 0 ? lease->late_at : lease->renew_at);
    }
    if (!fk__ring_is_empty(&p->due)) {
        deadline_min(&deadline, FK_CONTAINER(p->due.next, fk_attempt, due)->deadline);
    }
    if (!fk__ring_is_empty(&p->errands_due)) {
        deadline_min(&deadline, FK_CONTAINER(p->errands_due.next, fk_errand, due)->deadline);
    }
    if (p->short_until != 0) deadline_min(&deadline, p->short_until);
    if (p->queued[FK_QUEUE_REFUSED] == 0) return deadline;
    for (const fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        const fk_slot_queue *refused = &realm->queue[FK_QUEUE_REFUSED];
        if (refused->count != 0) deadline_min(&deadline, realm->slot[refused->first].retry_at);
    }
    return deadline;
}

fk_time fk_placement_lease_deadline(const fk_placement *p)
{
    if (p->lease.deadline == 0) return 0;
    return FK_SAFEGUARD(PLACEMENT_SELF_FENCE) ? p->lease.deadline : FK_NEVER;
}
