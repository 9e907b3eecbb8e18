/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The branch of the demo's bank, and its accounts. */

#include "demo_bank.h"

#include "cli.h"

#include <stdio.h>

/* ---- account ---------------------------------------------------------------------------- */

typedef struct {
    uint32_t index;
    int64_t balance;
} account;

static fk_err account_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    account *self = state;
    const demo_debit *debit = FK_AS(demo_debit, msg);
    if (debit != NULL) {
        int64_t amount = debit->amount <= self->balance ? debit->amount : 0;
        self->balance -= amount;
        return fk_reply(ctx, FK_MSG(demo_debited, debit->slot, amount));
    }
    const demo_credit *credit = FK_AS(demo_credit, msg);
    if (credit != NULL) {
        self->balance += credit->amount;
        return fk_reply(ctx, FK_MSG(demo_credited, credit->slot));
    }
    if (FK_AS(demo_audit, msg) != NULL) return fk_reply(ctx, FK_MSG(demo_statement, self->balance));
    return fk_unhandled(ctx, msg);
}

/* Runs whatever the reason for stopping is, so the money always goes back to the branch. */
static void account_stop(fk_ctx *ctx, void *state)
{
    const account *self = state;
    fk_tell(ctx, fk_parent(ctx), FK_MSG(demo_closed, self->index, self->balance));
}

/* ---- branch ----------------------------------------------------------------------------- */

enum { TIMER_CLOSE = 1 };

#define CLOSE_EVERY FK_MILLIS(5)

typedef struct {
    demo_bank *bank;
    uint64_t seed;
    fk_ref teller[DEMO_TELLERS];
    fk_ref account[DEMO_ACCOUNTS];
    bool closing[DEMO_ACCOUNTS]; /* asked to stop, not yet opened again */
    uint32_t closing_count;
    uint32_t tellers_closed;
    uint32_t statements;
    uint64_t reopened;
    int64_t money;
    demo_totals totals;
    fk_ref closer; /* who wants to know that the books are made up */
} branch;

/* Anonymous, because a name is free again only when its old owner is gone for good, and the
 * stop hook, which lets us know, runs a moment before that. */
static fk_err open_account(fk_ctx *ctx, branch *self, uint32_t index, int64_t balance)
{
    const account init = { index, balance };
    const fk_props props = {
        .receive = account_receive, .stop = account_stop, .state_size = sizeof init, .init = &init
    };
    fk_err err = fk_spawn_child(ctx, FK_STR(""), &props, &self->account[index]);
    for (uint32_t i = 0; i < DEMO_TELLERS && err == FK_OK; i++) {
        err = fk_tell(ctx, self->teller[i], FK_MSG(demo_opened, index, self->account[index]));
    }
    return err;
}

static fk_err branch_start(fk_ctx *ctx, void *state)
{
    branch *self = state;
    demo_bank *bank = self->bank;
    fk_err err = demo_printer_spawn(ctx, &bank->printer);
    if (err == FK_OK) err = demo_reporter_spawn(ctx, bank, &bank->reporter);
    for (uint32_t i = 0; i < DEMO_TELLERS && err == FK_OK; i++) {
        err = demo_teller_spawn(ctx, bank, i, &self->teller[i]);
    }
    for (uint32_t i = 0; i < DEMO_ACCOUNTS && err == FK_OK; i++) {
        err = open_account(ctx, self, i, DEMO_OPENING);
    }
    return err;
}

static fk_err tell_tellers(fk_ctx *ctx, const branch *self, bool open)
{
    fk_err err = FK_OK;
    for (uint32_t i = 0; i < DEMO_TELLERS && err == FK_OK; i++) {
        err = fk_tell(ctx, self->teller[i], FK_MSG(demo_hours, open));
    }
    return err;
}

static fk_err branch_hours(fk_ctx *ctx, branch *self, bool open, fk_ref sender)
{
    self->closer = sender;
    if (open) {
        fk_err err = fk_timer_start(ctx, TIMER_CLOSE, FK_TIMER_FIXED_RATE, CLOSE_EVERY,
                                    FK_MSG(demo_tick, 0));
        if (err != FK_OK) return err;
    } else {
        fk_timer_cancel(ctx, TIMER_CLOSE);
    }
    return tell_tellers(ctx, self, open);
}

/* Closes an account in the middle of its work: what is in its mailbox becomes dead letters. */
static fk_err branch_tick(branch *self)
{
    uint32_t index = (uint32_t)(cli_random(&self->seed) % DEMO_ACCOUNTS);
    if (self->closing[index]) return FK_OK;
    self->closing[index] = true;
    self->closing_count++;
    return fk_stop(self->bank->sys, self->account[index]);
}

/* The books are made up when no money is anywhere but in the accounts. */
static fk_err audit_when_quiet(fk_ctx *ctx, const branch *self)
{
    fk_err err = FK_OK;
    if (self->tellers_closed < DEMO_TELLERS || self->closing_count > 0) return FK_OK;
    for (uint32_t i = 0; i < DEMO_ACCOUNTS && err == FK_OK; i++) {
        err = fk_tell(ctx, self->account[i], FK_MSG(demo_audit, 0));
    }
    return err;
}

static fk_err branch_closed(fk_ctx *ctx, branch *self, const demo_closed *closed)
{
    fk_err err = open_account(ctx, self, closed->index, closed->balance);
    if (err != FK_OK) return fk_fail(ctx, err, "cannot open an account again");
    self->closing[closed->index] = false;
    self->closing_count--;
    self->reopened++;
    err = fk_tell(ctx, self->bank->reporter, FK_MSG(demo_tally, 0, 1));
    return err == FK_OK ? audit_when_quiet(ctx, self) : err;
}

static fk_err branch_teller_closed(fk_ctx *ctx, branch *self, const demo_totals *totals)
{
    self->totals.transfers += totals->transfers;
    self->totals.refused += totals->refused;
    self->totals.retries += totals->retries;
    self->tellers_closed++;
    return audit_when_quiet(ctx, self);
}

static fk_err branch_statement(fk_ctx *ctx, branch *self, int64_t balance)
{
    demo_bank *bank = self->bank;
    self->money += balance;
    if (++self->statements < DEMO_ACCOUNTS) return FK_OK;
    bank->totals = self->totals;
    bank->reopened = self->reopened;
    bank->money = self->money;
    bank->closed = true;
    return fk_tell(ctx, self->closer, FK_MSG(fk_shutdown_done, FK_OK));
}

static fk_err branch_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    branch *self = state;
    const demo_statement *statement = FK_AS(demo_statement, msg);
    if (statement != NULL) return branch_statement(ctx, self, statement->balance);
    const demo_closed *closed = FK_AS(demo_closed, msg);
    if (closed != NULL) return branch_closed(ctx, self, closed);
    const demo_teller_closed *teller = FK_AS(demo_teller_closed, msg);
    if (teller != NULL) return branch_teller_closed(ctx, self, &teller->totals);
    const demo_hours *hours = FK_AS(demo_hours, msg);
    if (hours != NULL) return branch_hours(ctx, self, hours->open, msg->sender);
    if (FK_AS(demo_tick, msg) != NULL) return branch_tick(self);
    return fk_unhandled(ctx, msg);
}

fk_err demo_branch_spawn(demo_bank *bank)
{
    const branch init = { .bank = bank, .seed = 20240229 };
    const fk_props props = {
        .receive = branch_receive, .start = branch_start, .state_size = sizeof init, .init = &init
    };
    return fk_spawn(bank->sys, FK_STR("branch"), &props, &bank->branch);
}
