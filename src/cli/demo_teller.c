/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Those of the demo's bank who handle no money of their own: tellers, printer, reporter.
 *
 * A teller has DEMO_SLOTS transfers under way. Each is a small state machine: debit sent, then
 * credit sent, then over. A message that bounced is sent again after RETRY_AFTER, to whatever
 * reference the account has by then.
 */

#include "demo_bank.h"

#include "cli.h"

#include <stdio.h>

/* ---- teller ----------------------------------------------------------------------------- */

enum { TIMER_TALLY = DEMO_SLOTS }; /* the keys below are those of the slots */
enum { AMOUNT_MAX = 100, RECEIPTS_EVERY = 4096, RECEIPTS_BURST = 32, PRINTER_CAPACITY = 8 };

#define RETRY_AFTER FK_MILLIS(1)
#define TALLY_EVERY FK_MILLIS(100)

typedef enum phase { PHASE_IDLE = 0, PHASE_DEBIT, PHASE_CREDIT } phase;

typedef struct {
    phase phase;
    uint32_t from;
    uint32_t to;
    int64_t amount;
} transfer;

typedef struct {
    demo_bank *bank;
    uint64_t seed;
    bool closing;
    uint32_t active;
    uint64_t tallied;
    demo_totals totals;
    transfer slot[DEMO_SLOTS];
    fk_ref account[DEMO_ACCOUNTS];
} teller;

typedef struct {
    uint32_t slot;
} teller_retry;
FK_MESSAGE(teller_retry);

/* Errors are not looked at: a message that cannot be delivered comes back as demo_bounced. */
static void teller_send(fk_ctx *ctx, teller *self, uint32_t slot)
{
    const transfer *t = &self->slot[slot];
    if (t->phase == PHASE_DEBIT) {
        fk_tell(ctx, self->account[t->from], FK_MSG(demo_debit, slot, t->amount));
    } else {
        fk_tell(ctx, self->account[t->to], FK_MSG(demo_credit, slot, t->amount));
    }
}

static void teller_begin(fk_ctx *ctx, teller *self, uint32_t slot)
{
    transfer *t = &self->slot[slot];
    t->from = (uint32_t)(cli_random(&self->seed) % DEMO_ACCOUNTS);
    t->to =
        (t->from + 1 + (uint32_t)(cli_random(&self->seed) % (DEMO_ACCOUNTS - 1))) % DEMO_ACCOUNTS;
    t->amount = 1 + (int64_t)(cli_random(&self->seed) % AMOUNT_MAX);
    t->phase = PHASE_DEBIT;
    teller_send(ctx, self, slot);
}

static fk_err teller_end(fk_ctx *ctx, teller *self, uint32_t slot)
{
    if (!self->closing) {
        teller_begin(ctx, self, slot);
        return FK_OK;
    }
    self->slot[slot].phase = PHASE_IDLE;
    if (--self->active > 0) return FK_OK;
    return fk_tell(ctx, self->bank->branch, FK_MSG(demo_teller_closed, self->totals));
}

static fk_err teller_hours(fk_ctx *ctx, teller *self, bool open)
{
    self->closing = !open;
    if (!open) return FK_OK;
    for (uint32_t i = 0; i < DEMO_SLOTS; i++) teller_begin(ctx, self, i);
    self->active = DEMO_SLOTS;
    return fk_timer_start(ctx, TIMER_TALLY, FK_TIMER_FIXED_RATE, TALLY_EVERY, FK_MSG(demo_tick, 0));
}

static fk_err teller_debited(fk_ctx *ctx, teller *self, const demo_debited *debited)
{
    transfer *t = &self->slot[debited->slot];
    if (t->phase != PHASE_DEBIT) return fk_fail(ctx, FK_E_STATE, "an answer nobody waits for");
    if (debited->amount == 0) {
        self->totals.refused++;
        return teller_end(ctx, self, debited->slot);
    }
    t->phase = PHASE_CREDIT;
    teller_send(ctx, self, debited->slot);
    return FK_OK;
}

/* The printer's mailbox holds fewer than a burst, so most of these become dead letters. */
static void teller_receipts(fk_ctx *ctx, const teller *self, const transfer *t)
{
    for (int i = 0; i < RECEIPTS_BURST; i++) {
        fk_tell(ctx, self->bank->printer, FK_MSG(demo_receipt, t->from, t->to, t->amount));
    }
}

static fk_err teller_credited(fk_ctx *ctx, teller *self, const demo_credited *credited)
{
    const transfer *t = &self->slot[credited->slot];
    if (t->phase != PHASE_CREDIT) return fk_fail(ctx, FK_E_STATE, "an answer nobody waits for");
    self->totals.transfers++;
    if (self->totals.transfers % RECEIPTS_EVERY == 0) teller_receipts(ctx, self, t);
    return teller_end(ctx, self, credited->slot);
}

static fk_err teller_bounced(fk_ctx *ctx, teller *self, const demo_bounced *bounced)
{
    self->totals.retries++;
    return fk_timer_start(ctx, bounced->slot, FK_TIMER_ONCE, RETRY_AFTER,
                          FK_MSG(teller_retry, bounced->slot));
}

static fk_err teller_tally(fk_ctx *ctx, teller *self)
{
    uint64_t done = self->totals.transfers - self->tallied;
    self->tallied = self->totals.transfers;
    return fk_tell(ctx, self->bank->reporter, FK_MSG(demo_tally, done, 0));
}

static fk_err teller_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    teller *self = state;
    const demo_debited *debited = FK_AS(demo_debited, msg);
    if (debited != NULL) return teller_debited(ctx, self, debited);
    const demo_credited *credited = FK_AS(demo_credited, msg);
    if (credited != NULL) return teller_credited(ctx, self, credited);
    const demo_bounced *bounced = FK_AS(demo_bounced, msg);
    if (bounced != NULL) return teller_bounced(ctx, self, bounced);
    const teller_retry *retry = FK_AS(teller_retry, msg);
    if (retry != NULL) {
        teller_send(ctx, self, retry->slot);
        return FK_OK;
    }
    const demo_opened *opened = FK_AS(demo_opened, msg);
    if (opened != NULL) {
        self->account[opened->index] = opened->ref;
        return FK_OK;
    }
    const demo_hours *hours = FK_AS(demo_hours, msg);
    if (hours != NULL) return teller_hours(ctx, self, hours->open);
    if (FK_AS(demo_tick, msg) != NULL) return teller_tally(ctx, self);
    return fk_unhandled(ctx, msg);
}

fk_err demo_teller_spawn(fk_ctx *ctx, demo_bank *bank, uint32_t index, fk_ref *out)
{
    const teller init = { .bank = bank, .seed = (index + 1) * UINT64_C(0x9E3779B97F4A7C15) };
    const fk_props props = { .receive = teller_receive, .state_size = sizeof init, .init = &init };
    char name[32];
    snprintf(name, sizeof name, "teller-%u", index);
    return fk_spawn_child(ctx, fk_str_of(name), &props, out);
}

/* ---- printer ---------------------------------------------------------------------------- */

static fk_err printer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    uint64_t *printed = state;
    if (FK_AS(demo_receipt, msg) == NULL) return fk_unhandled(ctx, msg);
    ++*printed; /* paper costs money */
    return FK_OK;
}

fk_err demo_printer_spawn(fk_ctx *ctx, fk_ref *out)
{
    const fk_props props = { .receive = printer_receive,
                             .state_size = sizeof(uint64_t),
                             .mailbox = FK_MAILBOX_BOUNDED,
                             .overflow = FK_OVERFLOW_DROP_OLDEST,
                             .capacity = PRINTER_CAPACITY };
    return fk_spawn_child(ctx, FK_STR("printer"), &props, out);
}

/* ---- reporter --------------------------------------------------------------------------- */

typedef struct {
    demo_bank *bank;
    uint64_t second;
    uint64_t transfers;
    uint64_t reopened;
    fk_stats last;
} reporter;

static uint64_t letters(const fk_stats *stats)
{
    uint64_t sum = 0;
    for (int i = 0; i < FK_REASON_COUNT; i++) sum += stats->dead_letters[i];
    return sum;
}

static void reporter_print(reporter *self)
{
    static const char JSON[] = "{\"event\":\"progress\",\"second\":%llu,\"transfers\":%llu,"
                               "\"messages\":%llu,\"dead_letters\":%llu,\"reopened\":%llu}\n";
    static const char TEXT[] = "%4llu s %12llu transfers/s %12llu messages/s %8llu dead letters"
                               " %6llu accounts reopened\n";
    fk_stats now;
    fk_stats_get(self->bank->sys, &now);
    if (self->bank->json) {
        printf(JSON, (unsigned long long)++self->second, (unsigned long long)self->transfers,
               (unsigned long long)(now.processed - self->last.processed),
               (unsigned long long)(letters(&now) - letters(&self->last)),
               (unsigned long long)self->reopened);
    } else {
        printf(TEXT, (unsigned long long)++self->second, (unsigned long long)self->transfers,
               (unsigned long long)(now.processed - self->last.processed),
               (unsigned long long)(letters(&now) - letters(&self->last)),
               (unsigned long long)self->reopened);
    }
    fflush(stdout);
    self->last = now;
    self->transfers = 0;
    self->reopened = 0;
}

static fk_err reporter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    reporter *self = state;
    const demo_tally *tally = FK_AS(demo_tally, msg);
    if (tally != NULL) {
        self->transfers += tally->transfers;
        self->reopened += tally->reopened;
        return FK_OK;
    }
    if (FK_AS(demo_tick, msg) == NULL) return fk_unhandled(ctx, msg);
    reporter_print(self);
    return FK_OK;
}

static fk_err reporter_start(fk_ctx *ctx, void *state)
{
    (void)state;
    return fk_timer_start(ctx, 1, FK_TIMER_FIXED_RATE, FK_SECONDS(1), FK_MSG(demo_tick, 0));
}

/* Pinned: writing to a terminal or a pipe may block, and must not hold up a worker. */
fk_err demo_reporter_spawn(fk_ctx *ctx, demo_bank *bank, fk_ref *out)
{
    const reporter init = { .bank = bank };
    const fk_props props = { .receive = reporter_receive,
                             .start = reporter_start,
                             .state_size = sizeof init,
                             .init = &init,
                             .dispatcher = FK_DISPATCHER_PINNED };
    return fk_spawn_child(ctx, FK_STR("reporter"), &props, out);
}
