/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "node_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 24, WORDS_MAX = 4, ACCOUNT_HEAD = 20, ACCOUNT_ENTRY = 17 };

/* ---- texts ----------------------------------------------------------------------------------------- */

typedef struct command {
    char word[WORDS_MAX][WORD_MAX];
    int count;
} command;

/* False: more or longer words than any command has. */
static bool command_read(const fk_msg *msg, command *out)
{
    const char *at = msg->data, *end = at + msg->len;
    *out = (command){ .count = 0 };
    while (at != end) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        size_t len = (size_t)((space != NULL ? space : end) - at);
        if (out->count == WORDS_MAX || len == 0 || len >= WORD_MAX) return false;
        memcpy(out->word[out->count++], at, len);
        at += len + (space != NULL);
    }
    return out->count != 0;
}

/* Nothing but digits, and below 2^63. */
static bool number_read(const char *text, uint64_t *out)
{
    uint64_t n = 0;
    if (*text == '\0') return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || n > (INT64_MAX - 9) / 10) return false;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    *out = n;
    return true;
}

static bool is_word(const command *c, const char *text)
{
    return strcmp(c->word[0], text) == 0;
}

/* ---- account ----------------------------------------------------------------------------------------- */

typedef struct account_order {
    uint64_t caller, number;
    bool is_refused;
} account_order;

typedef struct account {
    int64_t balance;
    uint64_t applied; /* orders that have changed the balance */
    uint32_t count;
    account_order last[ACCOUNT_CALLERS_MAX]; /* of each caller; newest first */
} account;

static void put_number(unsigned char *to, uint64_t n, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(n >> (8 * i));
}

static uint64_t get_number(const unsigned char *from, int bytes)
{
    uint64_t n = 0;
    for (int i = 0; i < bytes; i++) n |= (uint64_t)from[i] << (8 * i);
    return n;
}

static size_t account_encode(const void *state, unsigned char *to, size_t size)
{
    const account *self = state;
    size_t needed = ACCOUNT_HEAD + (size_t)self->count * ACCOUNT_ENTRY;
    if (needed > size) return needed;
    put_number(to, (uint64_t)self->balance, 8);
    put_number(to + 8, self->applied, 8);
    put_number(to + 16, self->count, 4);
    to += ACCOUNT_HEAD;
    for (uint32_t i = 0; i < self->count; i++, to += ACCOUNT_ENTRY) {
        put_number(to, self->last[i].caller, 8);
        put_number(to + 8, self->last[i].number, 8);
        to[16] = self->last[i].is_refused;
    }
    return needed;
}

static fk_err account_decode(void *state, fk_str bytes)
{
    account *self = state;
    const unsigned char *from = (const unsigned char *)bytes.ptr;
    if (bytes.len < ACCOUNT_HEAD) return FK_E_CORRUPT;
    uint64_t count = get_number(from + 16, 4);
    if (count > ACCOUNT_CALLERS_MAX || bytes.len != ACCOUNT_HEAD + count * ACCOUNT_ENTRY) {
        return FK_E_CORRUPT;
    }
    self->balance = (int64_t)get_number(from, 8);
    self->applied = get_number(from + 8, 8);
    self->count = (uint32_t)count;
    from += ACCOUNT_HEAD;
    for (uint32_t i = 0; i < self->count; i++, from += ACCOUNT_ENTRY) {
        self->last[i] = (account_order){ get_number(from, 8), get_number(from + 8, 8), from[16] };
    }
    return FK_OK;
}

static fk_err account_reply(fk_ctx *ctx, const account *self, const char *word)
{
    char text[120];
    int len = snprintf(text, sizeof text, "%s balance=%" PRId64 " applied=%" PRIu64, word,
                       self->balance, self->applied);
    return fk_reply(ctx, FK_TEXT_AT(((fk_str){ text, (size_t)len })));
}

static fk_err account_help(fk_ctx *ctx)
{
    return fk_reply(ctx, FK_TEXT_AT(FK_STR("error: an account knows balance, deposit AMOUNT [CALLER"
                                           " NUMBER], withdraw AMOUNT [CALLER NUMBER]")));
}

/* Puts what is known of the caller first, and gives it; number 0: nothing. */
static account_order *account_recall(account *self, uint64_t caller)
{
    uint32_t at = 0;
    while (at < self->count && self->last[at].caller != caller) at++;
    account_order found = { .caller = caller };
    if (at < self->count) {
        found = self->last[at];
    } else if (self->count < ACCOUNT_CALLERS_MAX) {
        self->count++;
    } else {
        at--;
    }
    memmove(&self->last[1], &self->last[0], at * sizeof self->last[0]);
    self->last[0] = found;
    return &self->last[0];
}

/* False: refused. */
static bool account_move(account *self, bool is_deposit, int64_t amount)
{
    if (!is_deposit && self->balance < amount) return false;
    if (is_deposit && self->balance > INT64_MAX - amount) return false;
    self->balance += is_deposit ? amount : -amount;
    self->applied++;
    return true;
}

static fk_err account_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    account *self = state;
    command c;
    uint64_t amount, caller = 0, number = 0;
    if (msg->type != &fk_type_text) return fk_unhandled(ctx, msg);
    if (!command_read(msg, &c)) return account_help(ctx);
    if (is_word(&c, "balance") && c.count == 1) return account_reply(ctx, self, "ok");
    bool is_deposit = is_word(&c, "deposit");
    if (!is_deposit && !is_word(&c, "withdraw")) return account_help(ctx);
    if (c.count != 2 && c.count != 4) return account_help(ctx);
    if (!number_read(c.word[1], &amount)) return account_help(ctx);
    if (c.count == 2) {
        bool done = account_move(self, is_deposit, (int64_t)amount);
        return account_reply(ctx, self, done ? "ok" : "refused");
    }
    if (!number_read(c.word[2], &caller) || !number_read(c.word[3], &number) || number == 0) {
        return account_help(ctx);
    }
    account_order *last = account_recall(self, caller);
    if (number < last->number) return account_reply(ctx, self, "stale");
    if (number > last->number) {
        last->number = number;
        last->is_refused = !account_move(self, is_deposit, (int64_t)amount);
    }
    return account_reply(ctx, self, last->is_refused ? "refused" : "ok");
}

/* ---- counter ------------------------------------------------------------------------------------------ */

typedef struct counter {
    uint64_t count;
} counter;

static fk_err counter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    counter *self = state;
    command c;
    uint64_t n = 0;
    char text[64] = "error: a counter knows get and add N";
    int len = (int)strlen(text);
    if (msg->type != &fk_type_text) return fk_unhandled(ctx, msg);
    bool ok = command_read(msg, &c);
    bool is_add = ok && is_word(&c, "add") && c.count == 2 && number_read(c.word[1], &n);
    if (is_add || (ok && is_word(&c, "get") && c.count == 1)) {
        self->count += n;
        len = snprintf(text, sizeof text, "ok count=%" PRIu64, self->count);
    }
    return fk_reply(ctx, FK_TEXT_AT(((fk_str){ text, (size_t)len })));
}

fk_err node_kinds_register(fk_cluster *cluster)
{
    static const fk_props ACCOUNT = { .receive = account_receive, .state_size = sizeof(account) };
    static const fk_props COUNTER = { .receive = counter_receive, .state_size = sizeof(counter) };
    const fk_kind account_kind = { .size = sizeof account_kind,
                                   .durable = true,
                                   .props = &ACCOUNT,
                                   .encode = account_encode,
                                   .decode = account_decode };
    const fk_kind counter_kind = { .size = sizeof counter_kind, .props = &COUNTER };
    fk_err err = fk_kind_register(cluster, FK_STR("account"), &account_kind);
    return err == FK_OK ? fk_kind_register(cluster, FK_STR("counter"), &counter_kind) : err;
}
