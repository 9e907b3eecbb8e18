/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * References to actors of other systems that give way to each other while threads send to them, ask
 * for their paths, watch them and say that they have ended: every message is one dead letter or waits,
 * a ref has one path or none, every watch is answered once.
 */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/watch.h"
#include "remote/remote.h"
#include "support/rig.h"

enum { PATHS = 64, MET_MAX = 16, GUARDS = 8, LAST = 2 };

static rig r;
static fk_remote *remote;
static _Atomic uint64_t refs[PATHS]; /* slot and generation; 0: never met */
static _Atomic uint64_t sent, refused, known;
static _Atomic bool is_over;

static size_t path_text(uint64_t n, char buf[128])
{
    return (size_t)snprintf(buf, 128, "fraktor.tcp://s%u@h:1/user/%.*sp%u", (unsigned)(n % 3),
                            (int)(n % 40), "a-name-that-is-longer-than-that-of-others",
                            (unsigned)n);
}

static fk_ref ref_of(uint64_t n)
{
    return fk__sender_ref(atomic_load(&refs[n]), r.sys->id);
}

static void *meet_them(void *arg)
{
    test_random random = { (uintptr_t)arg };
    for (uint64_t i = 0; i < test_scaled(200000); i++) {
        char text[128];
        uint64_t n = test_random_below(&random, PATHS);
        fk_path path;
        fk_ref ref;
        CHECK_OK(fk_path_parse(&r.sys->paths, (fk_str){ text, path_text(n, text) }, &path, NULL));
        fk_local *local = fk__local_enter(r.sys);
        fk_err err = fk__remote_meet(remote, local, &path, &ref);
        fk__local_leave(local);
        CHECK(err == FK_OK || err == FK_E_LIMIT); /* all watched */
        if (err == FK_OK) atomic_store(&refs[n], fk__sender_pack(ref.slot, ref.generation));
    }
    atomic_store(&is_over, true);
    return NULL;
}

static void *send_them(void *arg)
{
    test_random random = { (uintptr_t)arg };
    while (!atomic_load(&is_over)) {
        fk_ref to = ref_of(test_random_below(&random, PATHS));
        if (fk_ref_is_none(to)) continue;
        fk_err err = fk_send(r.sys, to, FK_MSG(num, 1));
        CHECK(err == FK_OK || err == FK_E_FULL);
        atomic_fetch_add(&sent, 1);
        if (err != FK_OK) atomic_fetch_add(&refused, 1);
    }
    return NULL;
}

static void *name_them(void *arg)
{
    test_random random = { (uintptr_t)arg };
    while (!atomic_load(&is_over)) {
        char text[128], expected[128];
        uint64_t n = test_random_below(&random, PATHS);
        fk_ref ref = ref_of(n);
        size_t len = fk_path_of(r.sys, ref, text, sizeof(text));
        if (len == 0) continue;
        CHECK_U64(len, path_text(n, expected));
        CHECK_STR(text, expected);
        atomic_fetch_add(&known, 1);
    }
    return NULL;
}

static void end_all(test_random *random)
{
    uint64_t n = test_random_below(random, PATHS);
    fk_local *local = fk__local_enter(r.sys);
    fk__watch_remote_ended(local, ref_of(n), n % 2 == 0, false);
    fk__local_leave(local);
}

static void *end_them(void *arg)
{
    test_random random = { (uintptr_t)arg };
    while (!atomic_load(&is_over)) {
        end_all(&random);
        test_sleep_ms(0);
    }
    return NULL;
}

/* Watches one after the other, and waits for its end or does not. */
typedef struct guard {
    test_random random;
    fk_ref self, actor; /* none: watches nobody */
    uint64_t told, unwatched;
    _Atomic uint64_t watches, ends;
    _Atomic bool is_done; /* watches nobody from now on */
} guard;

static guard guards[GUARDS];

static fk_err guard_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    guard *g = state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end != NULL) {
        CHECK(fk_ref_equal(end->actor, g->actor));
        g->actor = FK_REF_NONE;
        g->told++;
        atomic_fetch_add(&g->ends, 1);
    } else if (!fk_ref_is_none(g->actor) && test_random_below(&g->random, 4) == 0) {
        CHECK_OK(fk_unwatch(ctx, g->actor));
        g->actor = FK_REF_NONE;
        g->unwatched++;
        atomic_fetch_add(&g->ends, 1);
    }
    const num *n = FK_AS(num, msg);
    if (n != NULL && n->n == LAST) atomic_store(&g->is_done, true);
    if (!fk_ref_is_none(g->actor) || atomic_load(&is_over)) return FK_OK;
    g->actor = ref_of(test_random_below(&g->random, PATHS));
    if (fk_ref_is_none(g->actor)) return FK_OK;
    CHECK_OK(fk_watch(ctx, g->actor));
    atomic_fetch_add(&g->watches, 1);
    return FK_OK;
}

static void *nudge_them(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        for (int i = 0; i < GUARDS; i++) CHECK_OK(fk_send(r.sys, guards[i].self, FK_MSG(num, 1)));
        test_sleep_ms(0);
    }
    return NULL;
}

static void finish_watches(void)
{
    int64_t deadline = test_clock() + FK_SECONDS(60);
    test_random random = { 9 };
    for (int i = 0; i < GUARDS; i++) {
        guard *g = &guards[i];
        CHECK_OK(fk_send(r.sys, g->self, FK_MSG(num, LAST)));
        while (!atomic_load(&g->is_done) || atomic_load(&g->watches) != atomic_load(&g->ends)) {
            CHECK(test_clock() < deadline);
            end_all(&random);
        }
    }
}

TEST(proxies_give_way_while_all_threads_use_them)
{
    static void *(*const RUN[])(void *) = { meet_them, send_them, send_them,
                                            name_them, end_them,  nudge_them };
    enum { THREADS = sizeof(RUN) / sizeof(RUN[0]) };
    pthread_t thread[THREADS];
    rig_start_with(&r, (fk_system_config){ .workers = 2, .remoting = { .deferred_max = 50 } });
    remote = fk__remote_of(r.sys);
    remote->proxies.met_max = MET_MAX;
    for (int i = 0; i < GUARDS; i++) {
        guards[i].random.state = (uint64_t)i + 100;
        fk_props props = { .receive = guard_receive, .state = &guards[i] };
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &guards[i].self));
    }
    for (size_t i = 0; i < THREADS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, RUN[i], (void *)(uintptr_t)(i + 1)), 0);
    }
    for (size_t i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    finish_watches();
    fk__proxies_check(&remote->proxies);
    uint64_t deferred = remote->table.deferred_total, told = 0, unwatched = 0;
    CHECK_U64(r.letters.count + deferred, sent);
    CHECK_U64(r.letters.of[FK_REASON_FULL], refused);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED] + refused + deferred, sent);
    rig_stop(&r);
    for (int i = 0; i < GUARDS; i++) {
        CHECK_U64(guards[i].watches, guards[i].told + guards[i].unwatched);
        told += guards[i].told;
        unwatched += guards[i].unwatched;
    }
    printf("%llu sent, %zu to those that gave way; %llu paths; %llu ends told, %llu unwatched\n",
           (unsigned long long)sent, r.letters.of[FK_REASON_STOPPED], (unsigned long long)known,
           (unsigned long long)told, (unsigned long long)unwatched);
    CHECK(r.letters.of[FK_REASON_STOPPED] != 0);
    CHECK(told != 0 && unwatched != 0);
}
