/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* References that are only met give way to newer ones; everything else stays. */

#include <stdio.h>
#include <string.h>

#include "core/mailbox.h"
#include "core/turn.h"
#include "remote/remote.h"
#include "support/observer.h"

static observer o;
static fk_remote *remote;

static void start_with(fk_system_config config, uint32_t held_max, uint32_t met_max)
{
    config.name = "t";
    observer_start_with(&o, config);
    remote = fk__remote_of(o.r.sys);
    remote->proxies.held_max = held_max;
    remote->proxies.met_max = met_max;
}

static void start(uint32_t held_max, uint32_t met_max)
{
    start_with((fk_system_config){ 0 }, held_max, met_max);
}

static void stop(void)
{
    fk__proxies_check(&remote->proxies);
    rig_stop(&o.r);
}

/* Paths of different lengths at three systems. */
static fk_str path_text(uint32_t n, char buf[128])
{
    static const char LONG[] = "very-long-name-of-somebody-who-lives-far-away";
    int len = snprintf(buf, 128, "fraktor.tcp://s%u@h:1/user/%.*sx%u#%u", n % 3,
                       (int)(n * 7 % sizeof(LONG)), LONG, n, n + 1);
    return (fk_str){ buf, (size_t)len };
}

static fk_err meet(uint32_t n, fk_ref *out)
{
    char buf[128];
    fk_path path;
    CHECK_OK(fk_path_parse(&o.r.sys->paths, path_text(n, buf), &path, NULL));
    fk_local *local = fk__local_enter(o.r.sys);
    fk_err err = fk__remote_meet(remote, local, &path, out);
    fk__local_leave(local);
    return err;
}

static fk_ref met(uint32_t n)
{
    fk_ref ref;
    CHECK_OK(meet(n, &ref));
    return ref;
}

static fk_err hold(uint32_t n, fk_ref *out)
{
    char buf[128];
    return fk_resolve(o.r.sys, path_text(n, buf), out, NULL);
}

static fk_remote_proxy *found(fk_ref ref)
{
    fk__remote_lock(remote);
    fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, ref);
    fk__remote_unlock(remote);
    return proxy;
}

static void set_watched(fk_ref ref, bool is_watched)
{
    fk__remote_lock(remote);
    fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, ref);
    CHECK(proxy != NULL);
    CHECK(fk__proxies_watched(&remote->proxies, proxy, is_watched));
    fk__remote_unlock(remote);
}

static void set_news(fk_ref ref, bool has_news)
{
    fk__remote_lock(remote);
    fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, ref);
    CHECK(proxy != NULL);
    fk__proxies_news(&remote->proxies, proxy, has_news);
    fk__remote_unlock(remote);
}

static fk_err pin(fk_ref ref)
{
    fk__remote_lock(remote);
    fk_err err = fk__proxies_pin(&remote->proxies, fk__proxies_find(&remote->proxies, ref));
    fk__remote_unlock(remote);
    return err;
}

static void unpin(fk_ref ref)
{
    fk__remote_lock(remote);
    fk__proxies_unpin(&remote->proxies, fk__proxies_find(&remote->proxies, ref));
    fk__remote_unlock(remote);
}

static void check_there(fk_ref ref, uint32_t n)
{
    char buf[128];
    CHECK(fk_is_alive(o.r.sys, ref));
    observer_check_path(&o, ref, path_text(n, buf).ptr);
}

static void check_gone(fk_ref ref)
{
    char text[16] = "x";
    CHECK(!fk_is_alive(o.r.sys, ref));
    CHECK(found(ref) == NULL);
    CHECK_U64(fk_path_of(o.r.sys, ref, text, sizeof(text)), 0);
    CHECK_STR(text, "");
}

TEST(proxies_met_give_way_oldest_first)
{
    fk_ref ref[4];
    start(8, 3);
    for (uint32_t i = 0; i < 3; i++) ref[i] = met(i);
    CHECK(fk_ref_equal(met(0), ref[0])); /* a use */
    CHECK(found(ref[1]) != NULL);        /* another */
    ref[3] = met(3);
    CHECK_U64(ref[3].slot, ref[2].slot); /* the cell is used again */
    check_gone(ref[2]);
    check_there(ref[0], 0);
    check_there(ref[1], 1);
    check_there(ref[3], 3);
    stop();
}

TEST(proxies_a_stale_reference_is_a_dead_letter_of_one_who_has_ended)
{
    fk_ref old, now;
    start(8, 1);
    old = met(0);
    CHECK_OK(fk_send(o.r.sys, old, FK_MSG(num, 1)));
    now = met(1);
    CHECK_OK(fk_send(o.r.sys, old, FK_MSG(num, 2)));
    const observer_letter *letter = observer_letters(&o, 1);
    CHECK_U64(letter->reason, FK_REASON_STOPPED);
    CHECK(fk_ref_equal(letter->to, old));
    /* The same for who has come past the look at the generation. */
    fk_local *local = fk__local_enter(o.r.sys);
    fk_node *node = fk__node_create(&local->cache, FK_MSG(num, 3));
    node->sender = 0;
    node->generation = old.generation;
    fk_proxy *proxy = fk__slots_at(&o.r.sys->slots, old.slot)->state;
    CHECK_OK(o.r.sys->remote.send(remote, local, proxy, old, node));
    fk__local_leave(local);
    letter = observer_letters(&o, 1);
    CHECK_U64(letter->reason, FK_REASON_STOPPED);
    CHECK_OK(fk_send(o.r.sys, now, FK_MSG(num, 4)));
    CHECK_ERR(fk_stop(o.r.sys, old), FK_E_DEAD);
    rig_run(&o.r);
    observer_letters(&o, 0);
    stop();
}

TEST(proxies_that_are_watched_or_have_news_stay_and_leave_their_place_to_others)
{
    fk_ref ref[3], more;
    start(8, 3);
    for (uint32_t i = 0; i < 3; i++) ref[i] = met(i);
    set_watched(ref[0], true);
    set_watched(ref[1], true);
    set_news(ref[2], true);
    CHECK_U64(remote->proxies.kept, 3);
    for (uint32_t i = 3; i < 9; i++) more = met(i);
    for (uint32_t i = 0; i < 3; i++) check_there(ref[i], i);
    CHECK_U64(remote->proxies.met, 3);
    set_watched(ref[1], false); /* one more than there may be, until the next */
    CHECK_U64(remote->proxies.met, 4);
    met(9);
    CHECK_U64(remote->proxies.met, 3);
    for (uint32_t i = 10; i < 12; i++) met(i);
    check_gone(ref[1]);
    check_gone(more);
    check_there(ref[0], 0);
    check_there(ref[2], 2);
    stop();
}

TEST(proxies_too_many_that_are_watched_are_refused)
{
    fk_ref ref[2];
    start(8, 8);
    remote->proxies.kept_max = 1;
    for (uint32_t i = 0; i < 2; i++) ref[i] = met(i);
    set_watched(ref[0], true);
    fk__remote_lock(remote);
    CHECK(!fk__proxies_watched(&remote->proxies, fk__proxies_find(&remote->proxies, ref[1]), true));
    fk__remote_unlock(remote);
    set_watched(ref[0], false);
    set_watched(ref[1], true);
    stop();
}

/* Numbers of one system are three apart. */
TEST(proxies_that_watch_here_are_a_few_of_each_system_and_half_of_all)
{
    fk_ref ref[12];
    start(8, 12);
    remote->proxies.pins_max = 3;
    for (uint32_t i = 0; i < 12; i++) ref[i] = met(i);
    for (uint32_t i = 0; i < 9; i += 3) CHECK_OK(pin(ref[i]));
    CHECK_ERR(pin(ref[9]), FK_E_LIMIT);
    CHECK_OK(pin(ref[0])); /* it is pinned already */
    for (uint32_t i = 1; i < 9; i += 3) CHECK_OK(pin(ref[i]));
    CHECK_ERR(pin(ref[2]), FK_E_LIMIT);
    for (uint32_t i = 12; i < 30; i++) met(i); /* there is always room */
    for (uint32_t i = 0; i < 9; i += 3) check_there(ref[i], i);
    check_gone(ref[2]);
    unpin(ref[0]);
    CHECK_ERR(pin(met(2)), FK_E_LIMIT); /* it still has one */
    unpin(ref[0]);
    CHECK_OK(pin(met(2)));
    stop();
}

TEST(proxies_of_who_has_most_give_way_first)
{
    fk_ref few[2], many;
    start(8, 10);
    for (uint32_t i = 0; i < 2; i++) few[i] = met(1 + 3 * i);
    for (uint32_t i = 0; i < 100; i++) many = met(3 * i); /* its own, though others' are older */
    for (uint32_t i = 0; i < 2; i++) check_there(few[i], 1 + 3 * i);
    for (uint32_t i = 0; i < 3; i++) met(2 + 3 * i); /* a third one: from who has most */
    for (uint32_t i = 0; i < 2; i++) check_there(few[i], 1 + 3 * i);
    check_there(many, 3 * 99);
    stop();
}

TEST(proxies_met_become_held_when_asked_for)
{
    fk_ref ref, same, other;
    start(2, 2);
    ref = met(0);
    CHECK_OK(hold(0, &same));
    CHECK(fk_ref_equal(ref, same));
    for (uint32_t i = 10; i < 20; i++) met(i);
    check_there(ref, 0);
    CHECK_U64(remote->proxies.held, 1);
    CHECK_U64(remote->proxies.met, 2);
    CHECK_OK(hold(1, &other));
    CHECK_ERR(hold(2, &other), FK_E_LIMIT);
    CHECK_ERR(hold(19, &other), FK_E_LIMIT); /* nor one that was met */
    check_there(met(19), 19);
    CHECK_OK(hold(0, &same));
    stop();
}

TEST(proxies_cell_without_generations_stays_with_its_last_tenant)
{
    fk_ref ref[2], more;
    start(8, 2);
    for (uint32_t i = 0; i < 2; i++) ref[i] = met(i);
    fk_remote_proxy *proxy = found(ref[0]);
    fk_cell *cell = fk__slots_at(&o.r.sys->slots, ref[0].slot);
    fk__half_store(&cell->generation, 0xfffffffb, FK_RELAXED);
    proxy->ref.generation = 0xfffffffb;
    met(1); /* so that the other one is the oldest */
    more = met(2);
    CHECK_U64(more.slot, ref[0].slot);
    CHECK_U64(more.generation, 0xfffffffd);
    met(1);
    ref[0] = met(3);
    CHECK_U64(ref[0].slot, ref[1].slot);
    check_there(more, 2);
    ref[1] = met(4);
    CHECK_U64(ref[0].slot, ref[1].slot);
    check_there(more, 2);
    check_gone(ref[0]);
    stop();
}

/* The cell of an actor that has ended must not lead to where that was. */
static fk_err call_meet(fk_ctx *ctx, void *arg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    bool is_pekko = local->sys->paths.rules == FK_RULES_PEKKO;
    fk_str text = is_pekko ? FK_STR("pekko://b@h:1/user/x") : FK_STR("fraktor://b@h:1/user/x");
    fk_path path;
    CHECK_OK(fk_path_parse(&local->sys->paths, text, &path, NULL));
    return fk__remote_meet(remote, local, &path, arg);
}

TEST(proxies_in_the_cell_of_a_former_actor_have_no_place_here)
{
    /* By Pekko's rules nobody looks at the depth. */
    for (int rules = FK_RULES_FRAKTOR; rules <= FK_RULES_PEKKO; rules++) {
        fk_ref ref = FK_REF_NONE;
        start_with((fk_system_config){ .paths = { .rules = (fk_rules)rules },
                                       .remoting = { .host = "me", .port = 1 } },
                   8, 8);
        fk_ref doer = observer_spawn(&o, "doer"), former = observer_spawn(&o, "a");
        observer_spawn(&o, "b");
        observer_bury(&o, former);
        rig_do(&o.r, doer, call_meet, &ref);
        CHECK_U64(ref.slot, former.slot);
        CHECK(found(ref) != NULL);
        fk_select_send_from(o.r.sys, ref, FK_STR("../b"), FK_REF_NONE, FK_MSG(num, 1));
        rig_run(&o.r);
        CHECK_U64(observer_letters(&o, 1)->reason,
                  rules == FK_RULES_PEKKO ? FK_REASON_NO_RECEIVER : FK_REASON_BAD_PATH);
        stop();
    }
}

/* ---- a model ------------------------------------------------------------------------------------- */

enum { NAMES = 24, MODEL_HELD = 5, MODEL_MET = 6 };

typedef struct known {
    bool is_there, is_held, is_watched, has_news;
    uint64_t used;
    fk_ref ref;
} known;

typedef struct model {
    known of[NAMES];
    uint64_t clock;
    uint32_t held;
    uint32_t gone, limits; /* it must have come to that */
} model;

enum { SYSTEMS = 3 };

static bool model_is_met(const known *k)
{
    return k->is_there && !k->is_held && !k->is_watched && !k->has_news;
}

/* Of one system, or of all. */
static uint32_t model_met(const model *m, uint32_t system)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < NAMES; n++) {
        bool is_its = system == SYSTEMS || n % SYSTEMS == system;
        count += is_its && model_is_met(&m->of[n]);
    }
    return count;
}

static known *model_oldest(model *m, uint32_t system)
{
    known *oldest = NULL;
    for (uint32_t n = 0; n < NAMES; n++) {
        known *k = &m->of[n];
        if (!model_is_met(k) || (system != SYSTEMS && n % SYSTEMS != system)) continue;
        if (oldest == NULL || k->used < oldest->used) oldest = k;
    }
    return oldest;
}

/* Who had most when that was last looked at is known from the thing itself. */
static known *model_to_go(model *m, uint32_t n)
{
    known *oldest = model_oldest(m, SYSTEMS);
    if (oldest == NULL) return NULL;
    uint32_t who = (uint32_t)(oldest - m->of) % SYSTEMS;
    const fk_authority *largest = remote->proxies.largest;
    uint32_t hint = largest != NULL ? (uint32_t)(largest->key.system.ptr[1] - '0') : who;
    if (model_met(m, hint) > model_met(m, who)) who = hint;
    if (model_met(m, n % SYSTEMS) > model_met(m, who)) who = n % SYSTEMS;
    return model_oldest(m, who);
}

/* What there must be to get one; true: it may be got, and *gone is who gives way. */
static bool model_get(model *m, known *k, bool is_held, known **gone)
{
    *gone = NULL;
    bool becomes_held = is_held && !(k->is_there && k->is_held);
    if (becomes_held && m->held == MODEL_HELD) return false;
    while (!k->is_there && !is_held && model_met(m, SYSTEMS) >= MODEL_MET) {
        *gone = model_to_go(m, (uint32_t)(k - m->of));
        (*gone)->is_there = false;
        m->gone++;
    }
    m->held += becomes_held;
    k->is_held = is_held || (k->is_there && k->is_held);
    if (!k->is_there) k->is_watched = k->has_news = false;
    return true;
}

static void model_try_get(model *m, uint32_t n, bool is_held)
{
    known *k = &m->of[n], *gone;
    fk_ref ref = FK_REF_NONE;
    bool was_there = k->is_there;
    bool may = model_get(m, k, is_held, &gone);
    CHECK_ERR(is_held ? hold(n, &ref) : meet(n, &ref), may ? FK_OK : FK_E_LIMIT);
    if (!may) {
        m->limits++;
        return;
    }
    if (was_there) CHECK(fk_ref_equal(ref, k->ref));
    if (gone != NULL) {
        CHECK_U64(ref.slot, gone->ref.slot);
        check_gone(gone->ref);
    }
    k->ref = ref;
    k->is_there = true;
    k->used = ++m->clock;
}

static void model_step(model *m, test_random *random)
{
    uint32_t n = (uint32_t)test_random_below(random, NAMES);
    known *k = &m->of[n];
    uint64_t what = test_random_below(random, 100);
    if (what < 50 || !k->is_there) {
        model_try_get(m, n, what % 16 == 0);
        return;
    }
    k->used = ++m->clock;
    if (what < 70) {
        CHECK(found(k->ref) != NULL);
    } else if (what < 90) {
        k->is_watched = what % 3 == 0;
        set_watched(k->ref, k->is_watched);
    } else {
        k->has_news = what % 3 == 0;
        set_news(k->ref, k->has_news);
    }
}

TEST(proxies_do_what_a_simple_model_does)
{
    model m = { 0 };
    test_random random = { test_env("FK_SEED", 1) };
    start(MODEL_HELD, MODEL_MET);
    for (uint64_t i = 0; i < 10000; i++) {
        model_step(&m, &random);
        fk__proxies_check(&remote->proxies);
        CHECK_U64(remote->proxies.held, m.held);
        CHECK_U64(remote->proxies.met, model_met(&m, SYSTEMS));
        for (uint32_t n = 0; n < NAMES && i % 64 == 0; n++) {
            known *k = &m.of[n];
            if (!k->is_there) continue;
            k->used = ++m.clock; /* to ask for the path is a use */
            check_there(k->ref, n);
        }
    }
    CHECK(m.gone > 100);
    CHECK(m.limits > 100);
    stop();
}
