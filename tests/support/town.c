/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/town.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FK_CODEC_STRUCT(town_op, 1, FK_FIELD(town_op, verb), FK_FIELD(town_op, arg), FK_FIELD(town_op, to));
FK_CODEC_STRUCT(town_total, 1, FK_FIELD(town_total, n), FK_FIELD(town_total, node),
                FK_FIELD(town_total, version), FK_FIELD(town_total, epoch));

town_store town_shop;
town_node *town;
_Atomic size_t town_starts, town_stops;

static char town_url[32];
static uint32_t town_slots;

/* ---- the store: memory, with a will of its own ------------------------------------------------------ */

typedef struct town_handle {
    fk_store store; /* first */
    fk_store *inner;
    bool is_state;
    int node;
} town_handle;

static int town_opening; /* whose store is opened */

static void handle_op(const town_handle *h, fk_store_op *op)
{
    bool is_blind = atomic_load(&town_shop.hides_view) || atomic_load(&town_shop.blind) == h->node;
    bool is_hidden = op->verb == FK_STORE_VIEW && is_blind;
    if ((h->is_state && atomic_load(&town_shop.is_gone)) || is_hidden) {
        op->verdict = FK_VERDICT_UNKNOWN;
        op->err = FK_E_STORAGE;
        return;
    }
    int slow_ms = atomic_load(&town_shop.slow_ms);
    if (slow_ms > 0 && (op->verb == FK_STORE_JOIN || op->verb == FK_STORE_RENEW)) {
        fk_store_apply(h->inner, &op, 1); /* the lease runs from here */
        test_sleep_ms((unsigned)slow_ms);
        return;
    }
    bool is_store = op->verb == FK_STORE_STORE && op->record.snapshot.ptr != NULL;
    bool is_renewal = op->verb == FK_STORE_RENEW;
    if ((is_store || is_renewal) && atomic_load(&town_shop.is_full)) {
        op->verdict = FK_VERDICT_REFUSED;
        op->err = FK_E_FULL;
        if (is_renewal) atomic_fetch_add(&town_shop.renewals_refused, 1);
        return;
    }
    if (is_store && atomic_load(&town_shop.is_lossy)) {
        op->verdict = FK_VERDICT_UNKNOWN;
        op->err = FK_E_STORAGE;
        return;
    }
    if (is_store && atomic_load(&town_shop.is_held)) {
        atomic_fetch_add(&town_shop.held, 1);
        while (atomic_load(&town_shop.is_held)) test_sleep_ms(1);
        atomic_fetch_sub(&town_shop.held, 1);
    }
    fk_store_apply(h->inner, &op, 1);
    if (op->verb == FK_STORE_LOAD) atomic_fetch_add(&town_shop.loads, 1);
    if (!is_store) return;
    atomic_fetch_add(&town_shop.stores, 1);
    if (atomic_load(&town_shop.unsure) > 0) {
        atomic_fetch_sub(&town_shop.unsure, 1);
        op->verdict = FK_VERDICT_UNKNOWN;
        op->err = FK_E_TIMEOUT;
    }
}

static void handle_apply(fk_store *store, fk_store_op *const *ops, size_t count)
{
    const town_handle *h = (const town_handle *)(const void *)store;
    for (size_t i = 0; i < count; i++) handle_op(h, ops[i]);
}

static uint64_t handle_stamp(fk_store *store)
{
    const town_handle *h = (const town_handle *)(const void *)store;
    return h->inner->ops->stamp(h->inner);
}

static void handle_close(fk_store *store)
{
    town_handle *h = (town_handle *)(void *)store;
    h->inner->ops->close(h->inner);
    free(h);
}

static fk_err handle_open(void *user, fk_str rest, bool is_state, const fk_port *port,
                          fk_store **out, const char **why)
{
    static const fk_store_ops OPS = { handle_apply, handle_stamp, handle_close };
    /* All nodes share what is stored, so it is in nobody's own memory. */
    const fk_port host = fk_host_port();
    (void)user;
    (void)port;
    town_handle *h = calloc(1, sizeof(*h));
    CHECK(h != NULL);
    fk_err err = fk_store_memory.open(fk_store_memory.user, rest, is_state, &host, &h->inner, why);
    if (err != FK_OK) {
        free(h);
        return err;
    }
    h->store.ops = &OPS;
    h->is_state = is_state;
    h->node = town_opening;
    *out = &h->store;
    return FK_OK;
}

static const fk_store_provider TOWN_PROVIDER = { "town", NULL, handle_open };
const fk_store_provider *const TOWN_PROVIDERS[2] = { &TOWN_PROVIDER, NULL };

/* ---- counters ------------------------------------------------------------------------------------------ */

typedef struct counter {
    int64_t total;
} counter;

static pthread_mutex_t alive_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t id[2];
    int count;
} alive[TOWN_KEYS];

/* No two of one grain at a time, wherever they are. */
static void alive_change(const fk_ctx *ctx, int by)
{
    fk_grain_info info;
    fk_grain_key key;
    CHECK_OK(fk_grain_self(ctx, &info));
    CHECK_OK(fk_grain_key_of(info.kind, info.key, &key));
    pthread_mutex_lock(&alive_lock);
    size_t i = key.id.hi % TOWN_KEYS;
    for (size_t n = 0; n < TOWN_KEYS; n++, i = (i + 1) % TOWN_KEYS) {
        if (alive[i].id[0] == 0 || (alive[i].id[0] == key.id.hi && alive[i].id[1] == key.id.lo))
            break;
    }
    alive[i].id[0] = key.id.hi;
    alive[i].id[1] = key.id.lo;
    alive[i].count += by;
    int count = alive[i].count;
    pthread_mutex_unlock(&alive_lock);
    CHECK(count == 0 || count == 1);
}

static fk_err counter_start(fk_ctx *ctx, void *state)
{
    (void)state;
    atomic_fetch_add(&town_starts, 1);
    alive_change(ctx, 1);
    return FK_OK;
}

static void counter_stop(fk_ctx *ctx, void *state)
{
    (void)state;
    atomic_fetch_add(&town_stops, 1);
    alive_change(ctx, -1);
}

static int64_t node_index(const fk_ctx *ctx)
{
    int64_t i = 0;
    while (i < TOWN_MAX && town[i].r.sys != fk_system_of(ctx)) i++;
    return i;
}

static fk_err counter_receive(fk_ctx *ctx, void *state, const fk_msg *msg);

static fk_err counter_bulk(fk_ctx *ctx, counter *self, size_t len)
{
    fk_str bytes = { calloc(1, len), len };
    CHECK(bytes.ptr != NULL);
    self->total++;
    fk_err err = fk_reply(ctx, FK_BYTES_AT(bytes));
    free((char *)(uintptr_t)bytes.ptr);
    return err;
}

static fk_err counter_do(fk_ctx *ctx, counter *self, const town_op *op, int64_t *n)
{
    fk_grain_info info;
    switch ((town_verb)op->verb) {
    case TOWN_ADD: self->total += op->arg; break;
    case TOWN_FAIL: self->total += op->arg; return fk_fail(ctx, FK_E_INVALID, "told to");
    case TOWN_DELETE: CHECK_OK(fk_grain_delete(ctx)); break;
    case TOWN_NAP:
        test_sleep_ms((unsigned)op->arg);
        self->total++;
        break;
    case TOWN_BECOME: *n = (int64_t)fk_become(ctx, counter_receive); return FK_OK;
    case TOWN_STASH: *n = (int64_t)fk_stash(ctx); return FK_OK;
    case TOWN_REPORT:
        self->total += op->arg;
        CHECK_OK(fk_tell(ctx, op->to, FK_MSG(num, (uint64_t)self->total)));
        break;
    case TOWN_REQUEST:
        CHECK_OK(fk_grain_self(ctx, &info));
        *n = (int64_t)info.request[0];
        return FK_OK;
    case TOWN_BULK: break; /* counter_bulk() */
    }
    *n = self->total;
    return FK_OK;
}

static fk_err counter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    counter *self = state;
    const town_op *op = FK_AS(town_op, msg);
    fk_grain_info info;
    int64_t n = 0;
    if (op == NULL) return fk_unhandled(ctx, msg);
    CHECK_OK(fk_grain_self(ctx, &info));
    if (op->verb == TOWN_BULK) return counter_bulk(ctx, self, (size_t)op->arg);
    fk_err err = counter_do(ctx, self, op, &n);
    if (err != FK_OK || fk_ref_is_none(msg->sender)) return err;
    return fk_reply(
        ctx, FK_MSG(town_total, n, node_index(ctx), (int64_t)info.version, (int64_t)info.epoch));
}

static const fk_props COUNTER = { .receive = counter_receive,
                                  .start = counter_start,
                                  .stop = counter_stop,
                                  .state_size = sizeof(counter) };

/* ---- what is written down -------------------------------------------------------------------------------- */

static void put(char *to, size_t size, fk_str text)
{
    size_t len = text.len < size ? text.len : size - 1;
    if (len != 0) memcpy(to, text.ptr, len);
    to[len] = '\0';
}

static void town_on_event(void *user, const fk_event *event)
{
    town_node *t = user;
    const fk_placement_event *p = event->placement;
    if (p == NULL) return;
    pthread_mutex_lock(&t->lock);
    if (t->events < TOWN_EVENTS) {
        town_event *e = &t->event[t->events++];
        *e = (town_event){ .topic = event->kind,
                           .kind = p->kind,
                           .at = event->at,
                           .observed_at = p->observed_at,
                           .err = p->err,
                           .epoch = p->epoch,
                           .version = p->version };
        put(e->text, sizeof(e->text), event->text);
        put(e->authority, sizeof(e->authority), p->authority);
        put(e->reason, sizeof(e->reason), fk_str_of(p->reason));
    }
    pthread_mutex_unlock(&t->lock);
}

size_t town_find(int i, fk_placement_event_kind kind, const char *text, size_t from)
{
    town_node *t = &town[i];
    size_t found = SIZE_MAX;
    pthread_mutex_lock(&t->lock);
    for (size_t k = from; k < t->events && found == SIZE_MAX; k++) {
        const town_event *e = &t->event[k];
        if (e->kind == kind && (text == NULL || strcmp(e->text, text) == 0)) found = k;
    }
    pthread_mutex_unlock(&t->lock);
    return found;
}

size_t town_happened(int i, fk_placement_event_kind kind, const char *text)
{
    size_t count = 0;
    for (size_t at = town_find(i, kind, text, 0); at != SIZE_MAX; count++) {
        at = town_find(i, kind, text, at + 1);
    }
    return count;
}

/* ---- life -------------------------------------------------------------------------------------------------- */

void town_begin(void)
{
    static unsigned number;
    snprintf(town_url, sizeof(town_url), "town:%u", ++number);
    atomic_store(&town_shop.is_gone, false);
    atomic_store(&town_shop.slow_ms, 0);
    atomic_store(&town_shop.blind, -1);
    atomic_store(&town_shop.is_full, false);
    atomic_store(&town_shop.is_lossy, false);
    atomic_store(&town_shop.renewals_refused, 0);
    atomic_store(&town_shop.is_held, false);
    atomic_store(&town_shop.unsure, 0);
    atomic_store(&town_shop.hides_view, false);
    atomic_store(&town_shop.loads, 0);
    atomic_store(&town_shop.stores, 0);
    atomic_store(&town_starts, 0);
    atomic_store(&town_stops, 0);
    memset(alive, 0, sizeof(alive));
    town = calloc(TOWN_MAX, sizeof(*town)); /* what a test that failed had still runs */
    CHECK(town != NULL);
}

void town_system(int i)
{
    static const fk_codec *const CODECS[] = { &fk_codec_town_op, &fk_codec_town_total, NULL };
    town_node *t = &town[i];
    fk_system_config config = { .size = sizeof(config),
                                .name = "town",
                                .workers = 1,
                                .scheme = FK_SCHEME_TCP,
                                .on_event = town_on_event,
                                .remoting = { .enabled = true,
                                              .host = "127.0.0.1",
                                              .reconnect_min = FK_MILLIS(10),
                                              .reconnect_max = FK_MILLIS(50),
                                              .codecs = CODECS } };
    CHECK(!t->is_up);
    memset(t, 0, sizeof(*t)); /* another life */
    pthread_mutex_init(&t->lock, NULL);
    snprintf(t->id, sizeof(t->id), "%c", 'a' + i);
    rig_start_with(&t->r, config);
    t->is_up = true;
}

fk_cluster_config town_config(int i)
{
    return (fk_cluster_config){ .size = sizeof(fk_cluster_config),
                                .store = town_url,
                                .id = town[i].id,
                                .slots = 64,
                                .lease_ttl = FK_SECONDS(3),
                                .providers = TOWN_PROVIDERS };
}

void town_kinds(int i)
{
    fk_cluster *cluster = town[i].cluster;
    CHECK_OK(fk_kind_register(
        cluster, FK_STR("durable"),
        &(fk_kind){ .size = sizeof(fk_kind), .props = &COUNTER, .durable = true }));
    CHECK_OK(fk_kind_register(cluster, FK_STR("volatile"), &(fk_kind){ .props = &COUNTER }));
    CHECK_OK(fk_kind_register(
        cluster, FK_STR("brief"),
        &(fk_kind){ .props = &COUNTER, .durable = true, .idle_ttl = FK_MILLIS(200) }));
}

void town_open(int i, fk_cluster_config config)
{
    fk_cluster_config own = town_config(i);
    const char *why = "";
    town_system(i);
    own.client = config.client;
    own.why = &why;
    if (config.id != NULL) own.id = config.id;
    if (config.lease_ttl != 0) own.lease_ttl = config.lease_ttl;
    if (config.call_timeout != 0) own.call_timeout = config.call_timeout;
    if (config.store_timeout != 0) own.store_timeout = config.store_timeout;
    own.weight = config.weight;
    own.waiters_max = config.waiters_max;
    own.activations_max = config.activations_max;
    town_slots = own.slots;
    town_opening = i;
    CHECK_OK(fk_cluster_join(town[i].r.sys, &own, &town[i].cluster));
    if (!config.client) town_kinds(i);
    CHECK_OK(fk_cluster_await_ready(town[i].cluster, FK_SECONDS(30)));
}

fk_cluster_stats town_stats(int i)
{
    fk_cluster_stats stats;
    CHECK_OK(fk_cluster_stats_get(town[i].cluster, &stats));
    return stats;
}

static bool town_is_settled(int members)
{
    uint64_t version = 0;
    uint32_t held = 0;
    for (int i = 0; i < TOWN_MAX; i++) {
        if (!town[i].is_up || town[i].cluster == NULL) continue;
        fk_placement_snapshot p = town_stats(i).placement;
        if (p.state == FK_PLACEMENT_STATE_STOPPED) continue;
        if (p.members != (uint32_t)members || p.slots_draining != 0) return false;
        if (version != 0 && version != p.view_version) return false;
        version = p.view_version;
        held += p.slots_held;
    }
    return held == 3 * town_slots;
}

void town_settle(int members)
{
    PEER_AWAIT(town_is_settled(members));
}

void town_open_all(int count, fk_cluster_config config)
{
    for (int i = 0; i < count; i++) town_open(i, config);
    town_settle(count);
}

void town_close(int i)
{
    if (!town[i].is_up) return;
    rig_stop(&town[i].r);
    pthread_mutex_destroy(&town[i].lock);
    town[i].is_up = false;
    town[i].cluster = NULL;
}

void town_end(void)
{
    for (int i = 0; i < TOWN_MAX; i++) town_close(i);
    free(town);
    CHECK_U64(atomic_load(&town_starts), atomic_load(&town_stops));
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

fk_err town_ask(int i, const char *kind, const char *key, town_op op, town_total *out)
{
    return fk_grain_ask_wait(town[i].cluster, fk_str_of(kind), fk_str_of(key),
                             FK_MSG_AT(town_op, &op), FK_INTO(town_total, out), FK_SECONDS(30));
}

town_total town_add(int i, const char *kind, const char *key, int64_t by)
{
    town_total total = { 0 };
    CHECK_OK(town_ask(i, kind, key, (town_op){ .verb = TOWN_ADD, .arg = by }, &total));
    return total;
}

fk_grain_place town_where(int i, const char *kind, const char *key)
{
    fk_grain_place place;
    CHECK_OK(fk_grain_where(town[i].cluster, fk_str_of(kind), fk_str_of(key), &place));
    return place;
}

const char *town_key(const char *kind, int i, int n, char buf[32])
{
    for (int k = 0;; k++) {
        snprintf(buf, 32, "key-%d", k);
        if (strcmp(town_where(0, kind, buf).owner, town[i].id) == 0 && n-- == 0) return buf;
    }
}
