/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Durable grains: accounts whose money is in a file. Deposits; a transfer, which is a grain of its own that
 * goes step by step; then the program's system ends and another begins, and the money is still there. A
 * transfer that is asked for again moves its money once. */

#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <fraktor/fraktor.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        fk_err err_ = (call);                                                                      \
        if (err_ != FK_OK) return err_;                                                            \
    } while (0)

/* ---- accounts ---------------------------------------------------------------------------------------- */

typedef struct {
    int64_t amount; /* negative: a withdrawal; 0: a look */
    int64_t number; /* of the transfer that it belongs to, or 0 */
} deposit;
FK_MESSAGE(deposit);

typedef struct {
    int64_t total;
    bool is_refused;
} balance;
FK_MESSAGE(balance);

enum { RECENT = 8 };

/* What is stored: as it lies in memory, because the kind has no encode() of its own. */
typedef struct {
    int64_t total;
    int64_t recent[RECENT]; /* transfers that it knows */
    int64_t next;
} account;

static bool account_knows(const account *self, int64_t number)
{
    for (size_t i = 0; i < RECENT; i++) {
        if (number != 0 && self->recent[i] == number) return true;
    }
    return false;
}

/* Whatever it answers leaves only when the new total is stored. */
static fk_err account_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    account *self = state;
    const deposit *d = FK_AS(deposit, msg);
    if (d == NULL) return fk_unhandled(ctx, msg);
    bool is_known = account_knows(self, d->number);
    bool is_refused = !is_known && self->total + d->amount < 0;
    if (!is_known && !is_refused) {
        self->total += d->amount;
        if (d->number != 0) self->recent[self->next++ % RECENT] = d->number;
    }
    return fk_reply(ctx, FK_MSG(balance, self->total, is_refused));
}

static const fk_props ACCOUNT = { .receive = account_receive, .state_size = sizeof(account) };

/* ---- transfers ---------------------------------------------------------------------------------------
 * A grain for each, by its number, so that it is the same one when it is asked for again. Each step is
 * stored before the next is asked of an account. The question itself is not: when this node dies before
 * it is answered, whoever wants the transfer asks again, and so does the transfer; and the account knows
 * it by its number. */

typedef struct {
    char from[16], to[16];
    int64_t number, amount;
} transfer;
FK_MESSAGE(transfer);

typedef struct {
    bool is_done;
} receipt;
FK_MESSAGE(receipt);

enum { NEW = 0, BEGUN, TAKEN, DONE, REFUSED };

typedef struct {
    transfer what;
    int64_t step;
    fk_ref asker; /* not stored: it means nothing to another life of the node */
} moving;

static size_t moving_encode(const void *state, unsigned char *to, size_t size)
{
    if (size >= offsetof(moving, asker)) memcpy(to, state, offsetof(moving, asker));
    return offsetof(moving, asker);
}

static fk_err moving_decode(void *state, fk_str bytes)
{
    if (bytes.len != offsetof(moving, asker)) return FK_E_MISMATCH;
    memcpy(state, bytes.ptr, bytes.len);
    return FK_OK;
}

static fk_err moving_next(fk_ctx *ctx, moving *self)
{
    const transfer *t = &self->what;
    bool is_first = self->step == BEGUN;
    if (self->step >= DONE) {
        if (fk_ref_is_none(self->asker)) return FK_OK;
        return fk_tell(ctx, self->asker, FK_MSG(receipt, self->step == DONE));
    }
    return fk_grain_ask(ctx, FK_STR("account"), fk_str_of(is_first ? t->from : t->to),
                        FK_MSG(deposit, is_first ? -t->amount : t->amount, t->number),
                        (uint64_t)self->step, FK_SECONDS(5));
}

static fk_err moving_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    moving *self = state;
    const transfer *t = FK_AS(transfer, msg);
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (t != NULL) {
        self->asker = msg->sender;
        if (self->step == NEW) {
            self->what = *t;
            self->step = BEGUN;
        }
        return moving_next(ctx, self);
    }
    if (answer == NULL) return fk_unhandled(ctx, msg);
    if (answer->err != FK_OK) return fk_fail(ctx, answer->err, "an account does not answer");
    const balance *b = FK_AS(balance, &answer->reply);
    if (b == NULL || answer->id != (uint64_t)self->step) return FK_OK; /* of a step before */
    self->step = b->is_refused ? REFUSED : self->step + 1;
    return moving_next(ctx, self);
}

static const fk_props TRANSFER = { .receive = moving_receive, .state_size = sizeof(moving) };

/* ---- the program -------------------------------------------------------------------------------------- */

static fk_err begin(const char *store, fk_system **sys, fk_cluster **bank)
{
    TRY(fk_system_start(&(fk_system_config){ .size = sizeof(fk_system_config), .name = "bank" },
                        sys));
    TRY(fk_cluster_join(
        *sys, &(fk_cluster_config){ .size = sizeof(fk_cluster_config), .store = store }, bank));
    TRY(fk_kind_register(*bank, FK_STR("account"),
                         &(fk_kind){ .props = &ACCOUNT, .durable = true }));
    TRY(fk_kind_register(*bank, FK_STR("transfer"),
                         &(fk_kind){ .props = &TRANSFER,
                                     .durable = true,
                                     .encode = moving_encode,
                                     .decode = moving_decode }));
    return fk_cluster_await_ready(*bank, FK_SECONDS(5));
}

static fk_err pay(fk_cluster *bank, const char *who, int64_t amount)
{
    balance b = { 0, false };
    TRY(fk_grain_ask_wait(bank, FK_STR("account"), fk_str_of(who), FK_MSG(deposit, amount, 0),
                          FK_INTO(balance, &b), FK_SECONDS(5)));
    printf("%s has %" PRId64 "%s\n", who, b.total, b.is_refused ? ", which is not enough" : "");
    return FK_OK;
}

static fk_err move(fk_cluster *bank, transfer t)
{
    char key[24];
    receipt r = { false };
    snprintf(key, sizeof key, "%" PRId64, t.number);
    TRY(fk_grain_ask_wait(bank, FK_STR("transfer"), fk_str_of(key), FK_MSG_AT(transfer, &t),
                          FK_INTO(receipt, &r), FK_SECONDS(5)));
    printf("transfer %s: %" PRId64 " from %s to %s %s\n", key, t.amount, t.from, t.to,
           r.is_done ? "done" : "refused");
    return FK_OK;
}

static fk_err monday(fk_cluster *bank)
{
    TRY(pay(bank, "alice", 100));
    TRY(pay(bank, "bob", 5));
    TRY(pay(bank, "bob", -50));
    TRY(move(bank, (transfer){ "alice", "bob", 1001, 30 }));
    TRY(move(bank, (transfer){ "bob", "alice", 1002, 1000 }));
    TRY(pay(bank, "alice", 0));
    return pay(bank, "bob", 0);
}

/* Whoever asked for 1001 is not sure that it was done, and asks again. */
static fk_err tuesday(fk_cluster *bank)
{
    fk_grain_row row;
    TRY(move(bank, (transfer){ "alice", "bob", 1001, 30 }));
    TRY(pay(bank, "alice", 0));
    TRY(pay(bank, "bob", 0));
    fk_err err = fk_grain_peek(bank, FK_STR("account"), FK_STR("carol"), &row);
    printf("carol: %s\n", fk_err_name(err));
    return FK_OK;
}

int main(void)
{
    static fk_err (*const DAYS[])(fk_cluster *) = { monday, tuesday };
    char folder[] = "/tmp/fraktor-bank-XXXXXX", store[64], file[64];
    fk_err err = FK_OK;
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(store, sizeof store, "sqlite:%s/bank.db", folder);
    for (size_t day = 0; day < 2 && err == FK_OK; day++) {
        fk_system *sys = NULL;
        fk_cluster *bank;
        err = begin(store, &sys, &bank);
        if (err == FK_OK) err = DAYS[day](bank);
        if (sys != NULL) fk_system_stop(sys); /* which leaves the cluster, too */
        if (err == FK_OK) puts("the bank closes");
    }
    static const char *const PARTS[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s/bank.db%s", folder, PARTS[i]);
        unlink(file);
    }
    rmdir(folder);
    if (err != FK_OK) printf("failed: %s\n", fk_err_text(err));
    return err == FK_OK ? 0 : 1;
}
