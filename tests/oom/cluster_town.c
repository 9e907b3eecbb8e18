/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "oom/cluster_town.h"

#include <stdio.h>
#include <string.h>

#include "fraktor/codec.h"

static const fk_time PATIENCE = FK_MILLIS(120), IMPATIENCE = FK_MILLIS(4),
                     RECOVERY = FK_SECONDS(20);

typedef struct deposit {
    int64_t amount;
} deposit;
FK_MESSAGE(deposit);
FK_CODEC_STRUCT(deposit, 1, FK_FIELD(deposit, amount));

typedef struct deposit_large {
    int64_t amount;
    unsigned char filling[300];
} deposit_large;
FK_MESSAGE(deposit_large);
FK_CODEC_STRUCT(deposit_large, 1, FK_FIELD(deposit_large, amount),
                FK_FIELD_ARRAY(deposit_large, filling));

typedef struct balance {
    int64_t total;
} balance;
FK_MESSAGE(balance);
FK_CODEC_STRUCT(balance, 1, FK_FIELD(balance, total));

/* Of a type that no codec writes. */
typedef struct receipt {
    int64_t total;
    unsigned char filling[100];
} receipt;
FK_MESSAGE(receipt);

typedef struct close_account {
    uint32_t n;
} close_account;
FK_MESSAGE(close_account);
FK_CODEC_STRUCT(close_account, 1, FK_FIELD(close_account, n));

typedef struct gossip {
    uint32_t n;
} gossip;
FK_MESSAGE(gossip);
FK_CODEC_STRUCT(gossip, 1, FK_FIELD(gossip, n));

static const fk_codec *const CODECS[] = { &fk_codec_deposit, &fk_codec_deposit_large,
                                          &fk_codec_balance, &fk_codec_close_account,
                                          &fk_codec_gossip,  NULL };

/* ---- grains ------------------------------------------------------------------------------------------ */

typedef struct account {
    int64_t total;
    uint64_t texts;
} account;

static fk_err account_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    account *self = state;
    const deposit *small = FK_AS(deposit, msg);
    const deposit_large *large = FK_AS(deposit_large, msg);
    if (small != NULL || large != NULL) {
        self->total += small != NULL ? small->amount : large->amount;
        return fk_reply(ctx, FK_MSG(balance, self->total));
    }
    if (msg->type == &fk_type_text) {
        self->texts++;
        return fk_reply(ctx, FK_TEXT_AT(((fk_str){ msg->data, msg->len })));
    }
    if (FK_AS(num, msg) != NULL) return fk_reply(ctx, FK_MSG(receipt, self->total, { 0 }));
    if (FK_AS(gossip, msg) != NULL) { /* tells others before it answers */
        char long_key[80];
        memset(long_key, 'g', sizeof(long_key));
        (void)!fk_grain_tell(ctx, FK_STR("flea"), FK_STR("told"), FK_MSG(deposit, 1));
        (void)!fk_grain_tell(ctx, FK_STR("flea"), (fk_str){ long_key, sizeof(long_key) },
                             FK_MSG(deposit_large, 1, { 0 }));
        return fk_reply(ctx, FK_MSG(balance, self->total));
    }
    if (FK_AS(close_account, msg) != NULL) {
        fk_err err = fk_grain_delete(ctx);
        return err != FK_OK ? err : fk_reply(ctx, FK_MSG(balance, 0));
    }
    return fk_unhandled(ctx, msg);
}

static size_t account_encode(const void *state, unsigned char *to, size_t size)
{
    const account *self = state;
    if (size >= sizeof(self->total)) memcpy(to, &self->total, sizeof(self->total));
    return sizeof(self->total);
}

static fk_err account_decode(void *state, fk_str bytes)
{
    account *self = state;
    if (bytes.len != sizeof(self->total)) return FK_E_MISMATCH;
    memcpy(&self->total, bytes.ptr, sizeof(self->total));
    return FK_OK;
}

static const account NEW_ACCOUNT = { 0, 0 };
static const fk_props ACCOUNT = { .receive = account_receive,
                                  .state_size = sizeof(account),
                                  .init = &NEW_ACCOUNT };
static const char *const KIND_NAME[3] = { "bank", "book", "flea" };
static const fk_kind KIND[3] = {
    { .props = &ACCOUNT, .durable = true, .idle_ttl = FK_SECONDS(30) },
    { .props = &ACCOUNT,
      .durable = true,
      .idle_ttl = FK_MILLIS(40),
      .encode = account_encode,
      .decode = account_decode },
    { .props = &ACCOUNT, .idle_ttl = FK_MILLIS(40) },
};

/* The first is durable, the second is durable and written by functions; keys are short and long. */
static fk_str account_kind(int i)
{
    return fk_str_of(KIND_NAME[i % 2]);
}

static fk_str account_key(const town *t, int i, char buf[128])
{
    int len = snprintf(buf, 128, i < 4 ? "%s%d" : "%s%0100d", t->name, i);
    return (fk_str){ buf, (size_t)len };
}

/* ---- beginning ---------------------------------------------------------------------------------------- */

void town_start(town *t, const char *name, const char *store, bool direct, bool is_remote)
{
    memset(t, 0, sizeof(*t));
    rig_init(&t->r);
    fault_port(&t->r);
    t->name = name;
    t->store = store;
    t->direct = direct;
    t->is_remote = is_remote;
    t->patience = PATIENCE;
    t->leave_time = is_remote ? FK_MILLIS(150) : FK_MILLIS(20);
    fk_system_config config = { .name = name, .workers = 1, .pools_malloc = direct };
    if (is_remote) {
        config.remoting = (fk_remoting_config){ .enabled = true,
                                                .host = "127.0.0.1",
                                                .codecs = CODECS,
                                                .reconnect_min = FK_MILLIS(10),
                                                .reconnect_max = FK_MILLIS(50) };
    }
    fault_pause(true);
    CHECK_OK(rig_try_start(&t->r, &config));
    fault_pause(false);
}

bool town_join(town *t)
{
    const char *why = NULL;
    if (t->cluster == NULL) {
        fk_err err = fk_cluster_join(t->r.sys,
                                     &(fk_cluster_config){ .store = t->store,
                                                           .slots = 16,
                                                           .lease_ttl = FK_MILLIS(400),
                                                           .call_timeout = FK_MILLIS(500),
                                                           .store_timeout = FK_MILLIS(200),
                                                           .why = &why },
                                     &t->cluster);
        if (err != FK_OK) {
            CHECK_ERR(err, FK_E_NOMEM);
            CHECK(why != NULL && why[0] != '\0');
            CHECK(fk_cluster_of(t->r.sys) == NULL);
            t->cluster = NULL;
            return false;
        }
        CHECK(fk_cluster_of(t->r.sys) == t->cluster);
    }
    bool all = true;
    for (int i = 0; i < 3; i++) {
        if (t->has_kind[i]) continue;
        fk_err err = fk_kind_register(t->cluster, fk_str_of(KIND_NAME[i]), &KIND[i]);
        t->has_kind[i] = err == FK_OK;
        if (err == FK_OK) continue;
        CHECK_ERR(err, FK_E_NOMEM);
        all = false;
    }
    return all;
}

/* ---- working -------------------------------------------------------------------------------------------- */

/* What a call may end with for want of memory. */
static bool settled(town *t, fk_err err)
{
    switch (err) {
    case FK_OK: t->patience = PATIENCE; return true;
    case FK_E_TIMEOUT:
    case FK_E_NOMEM:
    case FK_E_STORAGE:
    case FK_E_NOT_READY:
    case FK_E_ACTIVATION:
    case FK_E_LOCK_DENIED:
    case FK_E_UNKNOWN_KIND: /* nobody could be told of it yet */
    case FK_E_FAILED: t->patience = IMPATIENCE; return false;
    default: test_failed(__FILE__, __LINE__, "a call ends with %s", fk_err_name(err));
    }
}

static bool pay(town *t, int i, bool is_large, fk_time patience, fk_err *err)
{
    char buf[128];
    balance told = { 0 };
    fk_out msg = is_large ? FK_MSG(deposit_large, 1, { 0 }) : FK_MSG(deposit, 1);
    t->tried[i]++;
    *err = fk_grain_ask_wait(t->cluster, account_kind(i), account_key(t, i, buf), msg,
                             FK_INTO(balance, &told), patience);
    if (*err != FK_OK) return false;
    CHECK(told.total > t->acked[i]);
    CHECK(told.total <= t->tried[i]);
    t->acked[i] = told.total;
    return true;
}

static fk_err call_grains(fk_ctx *ctx, void *arg)
{
    town *t = arg;
    char buf[128];
    for (int i = 0; i < 3; i++) {
        uint64_t id = (uint64_t)i;
        fk_err err = fk_grain_ask(ctx, account_kind(i), account_key(t, i, buf), FK_MSG(num, 1), id,
                                  FK_MILLIS(200));
        if (settled(t, err)) atomic_fetch_add(&t->asked, 1);
        settled(t, fk_grain_tell(ctx, FK_STR("flea"), account_key(t, i, buf), FK_TEXT("told")));
    }
    return FK_OK;
}

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    town *t = *(town **)state;
    const rig_call *call = FK_AS(rig_call, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    if (msg->type == &fk_type_fk_answer) atomic_fetch_add(&t->answered, 1);
    return FK_OK;
}

/* An actor asks and tells; each of its questions has one answer. */
static void work_inside(town *t)
{
    fk_ref ref;
    fk_props props = { .receive = asker_receive, .state_size = sizeof(t), .init = &t };
    fk_err err = fk_spawn(t->r.sys, FK_STR(""), &props, &ref);
    if (!settled(t, err)) return;
    settled(t, fk_send(t->r.sys, ref, FK_MSG(rig_call, call_grains, t)));
}

static void work_text(town *t)
{
    char text[400], answer[400];
    memset(text, 't', sizeof(text));
    fk_str longer = { text, 300 };
    fk_buf buf = { answer, sizeof(answer) };
    settled(t, fk_grain_ask_wait(t->cluster, FK_STR("bank"), FK_STR("text"), FK_TEXT("short"),
                                 FK_INTO_TEXT(&buf), t->patience));
    buf = (fk_buf){ answer, sizeof(answer) };
    settled(t, fk_grain_ask_wait(t->cluster, FK_STR("flea"), FK_STR("text"), FK_TEXT_AT(longer),
                                 FK_INTO_TEXT(&buf), t->patience));
    settled(t, fk_grain_send(t->cluster, FK_STR("bank"), FK_STR("text"), FK_TEXT_AT(longer)));
}

/* So many that tables have to grow, and a crowd before one that is not there yet. */
static void work_crowds(town *t)
{
    char buf[32];
    for (int i = 0; i < TOWN_FLEAS; i++) {
        int len = snprintf(buf, sizeof(buf), "flea%d", i);
        fk_str key = { buf, (size_t)len };
        settled(t, fk_grain_send(t->cluster, FK_STR("flea"), key, FK_MSG(deposit, 1)));
    }
    for (int i = 0; i < TOWN_CROWD; i++) {
        settled(t, fk_grain_send(t->cluster, FK_STR("bank"), FK_STR("crowd"), FK_MSG(deposit, 1)));
    }
}

/* Called while it ends: its successor wants a name that is not quite free. */
static void work_succession(town *t)
{
    fk_str kind = FK_STR("flea"), key = FK_STR("heir");
    balance told;
    settled(t, fk_grain_ask_wait(t->cluster, kind, key, FK_MSG(deposit, 1), FK_INTO(balance, &told),
                                 t->patience));
    for (int i = 0; i < 4; i++) {
        settled(t, fk_grain_send(t->cluster, kind, key, FK_MSG(close_account, 1)));
        settled(t, fk_grain_send(t->cluster, kind, key, FK_MSG(deposit, 1)));
        settled(t, fk_grain_ask_wait(t->cluster, kind, key, FK_MSG(deposit, 1),
                                     FK_INTO(balance, &told), t->patience));
    }
}

static void work_end(town *t)
{
    balance told;
    for (int i = 0; i < 2; i++) { /* the second one wants a grain whose predecessor is just going */
        settled(t, fk_grain_ask_wait(t->cluster, FK_STR("bank"), FK_STR("closed"),
                                     FK_MSG(deposit, 1), FK_INTO(balance, &told), t->patience));
        settled(t,
                fk_grain_ask_wait(t->cluster, FK_STR("bank"), FK_STR("closed"),
                                  FK_MSG(close_account, 1), FK_INTO(balance, &told), t->patience));
    }
    settled(t, fk_grain_ask_wait(t->cluster, FK_STR("bank"), FK_STR("gossip"), FK_MSG(gossip, 1),
                                 FK_INTO(balance, &told), t->patience));
}

void town_work(town *t)
{
    fk_err err;
    if (t->cluster == NULL) return;
    (void)!fk_cluster_await_ready(t->cluster, PATIENCE);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TOWN_ACCOUNTS; i++) {
            pay(t, i, (i + round) % 2 != 0, t->patience, &err);
            settled(t, err);
        }
        if (round == 0) work_crowds(t);
        work_text(t);
    }
    work_inside(t);
    work_succession(t);
    work_end(t);
}

/* ---- looking ----------------------------------------------------------------------------------------------- */

static void count_grain(void *user, fk_str kind, fk_str key, fk_ref ref, uint64_t epoch)
{
    (void)ref;
    CHECK(kind.len > 0 && key.len > 0 && epoch > 0);
    ++*(size_t *)user;
}

static void count_member(void *user, const fk_member *member, bool is_self)
{
    CHECK(member->id.len > 0);
    *(size_t *)user += is_self;
}

void town_look(town *t)
{
    char buf[128];
    fk_grain_row row;
    fk_grain_place place;
    fk_cluster_stats stats;
    size_t count = 0;
    if (t->cluster == NULL) return;
    fk_err err = fk_grain_peek(t->cluster, FK_STR("bank"), account_key(t, 0, buf), &row);
    if (err != FK_E_NOT_FOUND) settled(t, err);
    settled(t, fk_grain_where(t->cluster, FK_STR("bank"), account_key(t, 0, buf), &place));
    settled(t, fk_grain_each(t->cluster, count_grain, &count));
    settled(t, fk_cluster_members(t->cluster, count_member, &count));
    CHECK_OK(fk_cluster_stats_get(t->cluster, &stats));
}

/* ---- ends ---------------------------------------------------------------------------------------------------- */

void town_leave(town *t)
{
    if (t->cluster == NULL) return;
    fk_err err = fk_cluster_leave(t->cluster, t->leave_time);
    if (err != FK_E_STOPPING) settled(t, err);
}

void town_check(town *t)
{
    char buf[128];
    fk_err err = FK_OK;
    fk_grain_row row;
    size_t selves = 0;
    int64_t deadline = test_clock() + RECOVERY;
    CHECK(town_join(t));
    CHECK_OK(fk_cluster_await_ready(t->cluster, RECOVERY));
    for (int i = 0; i < TOWN_ACCOUNTS; i++) {
        /* What was begun without memory may end so for a moment after it. */
        while (!pay(t, i, i % 2 == 0, RECOVERY, &err) && test_clock() < deadline) {
            settled(t, err);
            test_sleep_ms(10);
        }
        CHECK_OK(err);
    }
    CHECK_OK(fk_grain_peek(t->cluster, FK_STR("bank"), account_key(t, 0, buf), &row));
    CHECK(row.version > 0);
    do {
        CHECK_OK(fk_cluster_members(t->cluster, count_member, &selves));
    } while (selves == 0 && test_clock() < deadline);
    CHECK(selves == 1);
    while (atomic_load(&t->answered) < atomic_load(&t->asked) && test_clock() < deadline) {
        test_sleep_ms(1);
    }
    CHECK_U64(atomic_load(&t->answered), atomic_load(&t->asked));
}

void town_stop(town *t)
{
    CHECK_OK(fk_system_stop(t->r.sys));
}
