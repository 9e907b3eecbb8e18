/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads that do jobs for a cluster, over a store that blocks, fails and counts as told. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/placement_driver.h"
#include "support/rig.h"

enum { STATE, LEASE, WAYS, SEEN_MAX = 16384, BATCH_MAX = 256 };

/* ---- the store ------------------------------------------------------------------------------- */

typedef struct shop {
    fk_store_provider provider;
    const fk_store_provider *more[2];
    fk_err open_err[WAYS];
    _Atomic int open;           /* stores that are */
    _Atomic bool is_shut[WAYS]; /* apply() waits */
    _Atomic bool is_forgetful;  /* apply() answers nothing */
    _Atomic size_t inside[WAYS], batches[WAYS], ops[WAYS], largest[WAYS];
    _Atomic uint64_t stamp, stamps;
    uint64_t seen[WAYS][SEEN_MAX]; /* request ids, in order; after the threads' end */
    char left[32];                 /* id of who left */
    uint64_t left_incarnation;
    size_t state_before_leave;
} shop;

typedef struct shop_store {
    fk_store store;
    shop *shop;
    fk_port port;
    int way;
} shop_store;

static void shop_do(shop *s, int way, fk_store_op *op)
{
    size_t at = atomic_fetch_add(&s->ops[way], 1);
    if (at < SEEN_MAX) s->seen[way][at] = op->request_id;
    if (atomic_load(&s->is_forgetful)) return;
    op->verdict = FK_VERDICT_OK;
    op->err = FK_OK;
    if (op->verb == FK_STORE_LOAD) {
        char *room = op->room(op, 5);
        CHECK(room != NULL);
        memcpy(room, "state", 5);
        op->record.snapshot = (fk_str){ room, 5 };
    } else if (op->verb == FK_STORE_STORE) {
        op->verdict = FK_VERDICT_REFUSED;
        op->err = FK_E_FENCED;
    } else if (op->verb == FK_STORE_LEAVE) {
        CHECK(op->member.id.len < sizeof(s->left));
        if (op->member.id.len > 0) memcpy(s->left, op->member.id.ptr, op->member.id.len);
        s->left_incarnation = op->member.incarnation;
        s->state_before_leave = atomic_load(&s->ops[STATE]);
    }
}

static void shop_apply(fk_store *store, fk_store_op *const *ops, size_t count)
{
    const shop_store *own = (const shop_store *)store;
    shop *s = own->shop;
    int way = own->way;
    CHECK_U64(atomic_fetch_add(&s->inside[way], 1), 0); /* one thread at a time */
    CHECK(count > 0);
    while (atomic_load(&s->is_shut[way])) test_sleep_ms(1);
    atomic_fetch_add(&s->batches[way], 1);
    if (count > atomic_load(&s->largest[way])) atomic_store(&s->largest[way], count);
    for (size_t i = 0; i < count; i++) shop_do(s, way, ops[i]);
    atomic_fetch_sub(&s->inside[way], 1);
}

static uint64_t shop_stamp(fk_store *store)
{
    shop *s = ((const shop_store *)store)->shop;
    atomic_fetch_add(&s->stamps, 1);
    return atomic_load(&s->stamp);
}

static void shop_close(fk_store *store)
{
    shop_store *own = (shop_store *)store;
    fk_port port = own->port;
    atomic_fetch_sub(&own->shop->open, 1);
    port.alloc(port.ctx, own, sizeof(*own), 0);
}

static const fk_store_ops SHOP_OPS = { shop_apply, shop_stamp, shop_close };

static fk_err shop_open(void *user, fk_str rest, bool is_state, const fk_port *port, fk_store **out,
                        const char **why)
{
    shop *s = user;
    int way = is_state ? STATE : LEASE;
    CHECK(rest.len == 5 && memcmp(rest.ptr, "there", 5) == 0);
    *why = "the shop is closed";
    if (s->open_err[way] != FK_OK) return s->open_err[way];
    shop_store *own = port->alloc(port->ctx, NULL, 0, sizeof(*own));
    if (own == NULL) return FK_E_NOMEM;
    *own = (shop_store){ { &SHOP_OPS }, s, *port, way };
    atomic_fetch_add(&s->open, 1);
    *out = &own->store;
    return FK_OK;
}

/* ---- a maker of jobs ------------------------------------------------------------------------- */

typedef struct maker {
    _Atomic size_t count, stopping;
    uint64_t tag[SEEN_MAX]; /* in the order in which they came back */
    uint32_t way[SEEN_MAX];
    fk_verdict verdict; /* of the last one */
    fk_err err;
    char snapshot[8];
    bool keeps;
    fk_store_job *kept;
} maker;

/* Keeps the first one beyond its message, and changes its mind about the second. */
static void maker_keep(maker *m, fk_store_job *job)
{
    job->is_kept = true;
    if (m->kept == NULL) {
        m->kept = job;
        memset(m->snapshot, 0, sizeof(m->snapshot));
        return;
    }
    memcpy(m->snapshot, m->kept->op.record.snapshot.ptr, 5);
    fk__store_job_destroy(m->kept);
    fk__store_job_destroy(job);
}

static fk_err maker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    maker *m = *(maker **)state;
    (void)ctx;
    CHECK(msg->type == &fk__type_store_job_done);
    fk_store_job *job = ((const fk_store_job_done *)msg->data)->job;
    size_t at = atomic_load(&m->count);
    CHECK(at < SEEN_MAX);
    m->tag[at] = job->tag[0];
    m->way[at] = (uint32_t)job->tag[1];
    m->verdict = job->op.verdict;
    m->err = job->op.err;
    if (job->op.record.snapshot.len == 5) memcpy(m->snapshot, job->op.record.snapshot.ptr, 5);
    if (job->op.err == FK_E_STOPPING) atomic_fetch_add(&m->stopping, 1);
    if (m->keeps) maker_keep(m, job);
    atomic_store(&m->count, at + 1);
    return FK_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

typedef struct stand {
    rig r;
    size_t threads; /* before */
    shop shop;
    maker maker;
    fk_ref ref;
    fk_placement_driver *driver;
    fk_cluster_port port;
} stand;

static stand st; /* too large for a stack; one test at a time */

static void stand_prepare(void)
{
    memset(&st, 0, sizeof(st));
    st.shop.provider = (fk_store_provider){ "fake", &st.shop, shop_open };
    st.shop.more[0] = &st.shop.provider;
    rig_start_with(&st.r, (fk_system_config){ .workers = 2 });
    maker *m = &st.maker;
    fk_props props = { .receive = maker_receive, .state_size = sizeof(m), .init = &m };
    CHECK_OK(fk_spawn(st.r.sys, FK_STR("maker"), &props, &st.ref));
    st.threads = test_thread_count();
}

static fk_err stand_try_open(fk_time poll_every, const char **why)
{
    return fk__placement_driver_open(st.r.sys, FK_STR("fake:there"), st.shop.more, poll_every,
                                     &st.driver, why);
}

static void stand_open(fk_time poll_every)
{
    const char *why = NULL;
    stand_prepare();
    CHECK_OK(stand_try_open(poll_every, &why));
    CHECK(why == NULL);
    st.port = fk__placement_driver_port(st.driver);
}

static void wait_threads(size_t expected)
{
    /* A joined thread leaves /proc a moment later. */
    int64_t deadline = test_clock() + FK_SECONDS(10);
    while (test_thread_count() != expected && test_clock() < deadline) test_sleep_ms(1);
    CHECK_U64(test_thread_count(), expected);
}

static void wait_size(_Atomic size_t *at, size_t least)
{
    int64_t deadline = test_clock() + FK_SECONDS(30);
    while (atomic_load(at) < least && test_clock() < deadline) test_sleep_ms(1);
    CHECK(atomic_load(at) >= least);
}

static void stand_end(void)
{
    CHECK_U64(atomic_load(&st.shop.open), 0);
    wait_threads(st.threads);
    rig_stop(&st.r); /* not a byte is left */
}

static void stand_close(void)
{
    st.port.close(st.port.ctx, FK_STR(""), 0);
    stand_end();
}

static fk_store_job *job_new(fk_store_verb verb, uint64_t tag)
{
    fk_store_job *job = NULL;
    CHECK_OK(fk__store_job_create(st.r.sys, 32, &job));
    memset(fk__store_job_extra(job), 0xaa, 32);
    job->op.verb = verb;
    job->op.request_id = tag;
    job->to = st.ref;
    job->tag[0] = tag;
    job->tag[1] = verb >= FK_STORE_LOAD ? STATE : LEASE;
    return job;
}

static void submit(fk_store_verb verb, uint64_t tag)
{
    st.port.submit(st.port.ctx, job_new(verb, tag));
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(placement_driver_brings_answers_back)
{
    stand_open(0);
    submit(FK_STORE_LOAD, 1);
    wait_size(&st.maker.count, 1);
    CHECK_U64(st.maker.verdict, FK_VERDICT_OK);
    CHECK_STR(st.maker.snapshot, "state");
    submit(FK_STORE_STORE, 2);
    wait_size(&st.maker.count, 2);
    CHECK_U64(st.maker.verdict, FK_VERDICT_REFUSED);
    CHECK_ERR(st.maker.err, FK_E_FENCED);
    atomic_store(&st.shop.is_forgetful, true);
    submit(FK_STORE_RENEW, 3);
    wait_size(&st.maker.count, 3);
    CHECK_U64(st.maker.verdict, FK_VERDICT_UNKNOWN); /* what a store forgot did not go well */
    CHECK_ERR(st.maker.err, FK_E_STORAGE);
    stand_close();
}

TEST(placement_driver_sends_each_verb_its_way)
{
    stand_open(0);
    for (int verb = 0; verb < FK_STORE_VERB_COUNT; verb++) {
        submit((fk_store_verb)verb, (uint64_t)verb);
    }
    wait_size(&st.maker.count, FK_STORE_VERB_COUNT);
    CHECK_U64(atomic_load(&st.shop.ops[STATE]), 5);
    CHECK_U64(atomic_load(&st.shop.ops[LEASE]), FK_STORE_VERB_COUNT - 5);
    for (size_t i = 0; i < 5; i++) CHECK_U64(st.shop.seen[STATE][i], FK_STORE_LOAD + i);
    for (size_t i = 0; i < FK_STORE_LOAD; i++) CHECK_U64(st.shop.seen[LEASE][i], i);
    stand_close();
}

TEST(placement_driver_keeps_the_order_of_each_way)
{
    enum { JOBS = 4000 };
    uint64_t next[WAYS] = { 0, 0 };
    stand_open(FK_MILLIS(1));
    for (uint64_t i = 0; i < JOBS; i++) submit(FK_STORE_STORE, i), submit(FK_STORE_RENEW, i);
    wait_size(&st.maker.count, 2 * JOBS);
    for (size_t i = 0; i < 2 * JOBS; i++) CHECK_U64(st.maker.tag[i], next[st.maker.way[i]]++);
    for (size_t i = 0; i < JOBS; i++) {
        CHECK_U64(st.shop.seen[STATE][i], i);
        CHECK_U64(st.shop.seen[LEASE][i], i);
    }
    stand_close();
}

TEST(placement_driver_leases_do_not_wait_for_state)
{
    stand_open(0);
    atomic_store(&st.shop.is_shut[STATE], true);
    submit(FK_STORE_STORE, 1);
    wait_size(&st.shop.inside[STATE], 1);
    for (uint64_t i = 0; i < 100; i++) submit(FK_STORE_RENEW, i);
    wait_size(&st.maker.count, 100);
    CHECK_U64(atomic_load(&st.shop.ops[STATE]), 0);
    atomic_store(&st.shop.is_shut[STATE], false);
    wait_size(&st.maker.count, 101);
    stand_close();
}

TEST(placement_driver_gives_what_waits_as_one_batch)
{
    enum { JOBS = 1000 };
    stand_open(0);
    atomic_store(&st.shop.is_shut[STATE], true);
    submit(FK_STORE_STORE, 0);
    wait_size(&st.shop.inside[STATE], 1);
    for (uint64_t i = 1; i < JOBS; i++) submit(FK_STORE_STORE, i);
    atomic_store(&st.shop.is_shut[STATE], false);
    wait_size(&st.maker.count, JOBS);
    CHECK_U64(atomic_load(&st.shop.batches[STATE]), 1 + (JOBS - 1 + BATCH_MAX - 1) / BATCH_MAX);
    CHECK_U64(atomic_load(&st.shop.largest[STATE]), BATCH_MAX);
    stand_close();
}

static void *close_main(void *arg)
{
    (void)arg;
    st.port.close(st.port.ctx, FK_STR("bank@there:1"), 7);
    return NULL;
}

TEST(placement_driver_close_returns_everything)
{
    enum { JOBS = 700 };
    pthread_t closer;
    stand_open(FK_MILLIS(1));
    atomic_store(&st.shop.is_shut[STATE], true);
    for (uint64_t i = 0; i < JOBS; i++) submit(FK_STORE_STORE, i);
    CHECK_U64(pthread_create(&closer, NULL, close_main, NULL), 0);
    size_t more = 0;
    int64_t deadline = test_clock() + FK_SECONDS(30);
    while (atomic_load(&st.maker.stopping) == 0 && test_clock() < deadline) {
        submit(FK_STORE_RENEW, JOBS + more++);
        test_sleep_ms(1);
    }
    CHECK(atomic_load(&st.maker.stopping) > 0);
    CHECK_STR(st.shop.left, "");
    atomic_store(&st.shop.is_shut[STATE], false);
    pthread_join(closer, NULL);
    wait_size(&st.maker.count, JOBS + more);
    CHECK_U64(atomic_load(&st.maker.count), JOBS + more);
    CHECK_U64(atomic_load(&st.shop.ops[STATE]), JOBS);
    CHECK_U64(atomic_load(&st.shop.ops[LEASE]), more - atomic_load(&st.maker.stopping) + 1);
    CHECK_STR(st.shop.left, "bank@there:1"); /* after all that was to be stored */
    CHECK_U64(st.shop.left_incarnation, 7);
    CHECK_U64(st.shop.state_before_leave, JOBS);
    stand_end();
}

TEST(placement_driver_close_without_id_leaves_nothing)
{
    stand_open(0);
    st.port.close(st.port.ctx, FK_STR(""), 7);
    CHECK_U64(atomic_load(&st.shop.ops[LEASE]), 0);
    stand_end();
}

TEST(placement_driver_jobs_of_nobody_and_of_the_dead_are_freed)
{
    stand_open(0);
    fk_store_job *job = job_new(FK_STORE_LOAD, 1);
    job->to = FK_REF_NONE;
    st.port.submit(st.port.ctx, job);
    CHECK_OK(fk_stop(st.r.sys, st.ref));
    CHECK_OK(fk_await_stopped(st.r.sys, st.ref, FK_SECONDS(10)));
    submit(FK_STORE_LOAD, 2);
    st.port.close(st.port.ctx, FK_STR(""), 0);
    CHECK_U64(atomic_load(&st.shop.ops[STATE]), 2);
    CHECK_U64(atomic_load(&st.maker.count), 0);
    CHECK_U64(st.r.letters.count, 0); /* nobody misses them */
    stand_end();
}

TEST(placement_driver_job_can_be_kept)
{
    stand_open(0);
    st.maker.keeps = true;
    submit(FK_STORE_LOAD, 1);
    wait_size(&st.maker.count, 1);
    submit(FK_STORE_LOAD, 2); /* the maker destroys the first then, and this one at once */
    wait_size(&st.maker.count, 2);
    CHECK_STR(st.maker.snapshot, "state");
    stand_close();
}

TEST(placement_driver_do_waits)
{
    stand_open(0);
    fk_store_job *job = job_new(FK_STORE_LOAD, 1);
    CHECK_OK(fk__placement_driver_do(st.driver, job, FK_SECONDS(30)));
    CHECK_U64(job->op.verdict, FK_VERDICT_OK);
    CHECK(memcmp(job->op.record.snapshot.ptr, "state", 5) == 0);
    fk__store_job_destroy(job);
    atomic_store(&st.shop.is_shut[LEASE], true);
    job = job_new(FK_STORE_JOIN, 2);
    CHECK_ERR(fk__placement_driver_do(st.driver, job, FK_MILLIS(20)), FK_E_TIMEOUT);
    atomic_store(&st.shop.is_shut[LEASE], false);
    wait_size(&st.shop.ops[LEASE], 1); /* it is done all the same, and freed by the thread */
    CHECK_U64(atomic_load(&st.maker.count), 0);
    stand_close();
}

static bool count_change(void *ctx, bool is_new)
{
    if (is_new) atomic_fetch_add((_Atomic size_t *)ctx, 1);
    return true;
}

/* Cannot be told the first two times. */
static bool count_tries(void *ctx, bool is_new)
{
    return !is_new || atomic_fetch_add((_Atomic size_t *)ctx, 1) >= 2;
}

TEST(placement_driver_tells_again_what_could_not_be_told)
{
    enum { POLL_MS = 5 };
    _Atomic size_t tries = 0;
    stand_open(FK_MILLIS(POLL_MS));
    fk__placement_driver_watch(st.driver, count_tries, &tries);
    atomic_store(&st.shop.stamp, 1);
    wait_size(&tries, 3);
    test_sleep_ms(4 * POLL_MS);
    CHECK_U64(atomic_load(&tries), 3);
    stand_close();
}

TEST(placement_driver_tells_each_change_once)
{
    enum { POLL_MS = 5 };
    _Atomic size_t changes = 0;
    stand_open(FK_MILLIS(POLL_MS));
    int64_t start = test_clock();
    atomic_store(&st.shop.stamp, 1); /* before anybody watches: told then */
    test_sleep_ms(3 * POLL_MS);
    CHECK_U64(atomic_load(&changes), 0);
    fk__placement_driver_watch(st.driver, count_change, &changes);
    wait_size(&changes, 1);
    for (size_t i = 2; i < 10; i++) {
        atomic_store(&st.shop.stamp, i * i);
        wait_size(&changes, i);
        if (i % 2 == 0) submit(FK_STORE_RENEW, i); /* work is no reason to look more often */
        test_sleep_ms(3 * POLL_MS);
        CHECK_U64(atomic_load(&changes), i);
    }
    size_t polls = atomic_load(&st.shop.stamps);
    CHECK(polls <= 2 + (size_t)((test_clock() - start) / FK_MILLIS(POLL_MS)));
    st.port.close(st.port.ctx, FK_STR(""), 0);
    stand_end();
}

TEST(placement_driver_does_not_poll_unless_told)
{
    _Atomic size_t changes = 0;
    stand_open(0);
    fk__placement_driver_watch(st.driver, count_change, &changes);
    atomic_store(&st.shop.stamp, 1);
    submit(FK_STORE_RENEW, 1);
    wait_size(&st.maker.count, 1);
    test_sleep_ms(20);
    CHECK_U64(atomic_load(&st.shop.stamps), 1); /* where it began */
    CHECK_U64(atomic_load(&changes), 0);
    stand_close();
}

static size_t threads_named(const char *name)
{
    size_t found = 0;
    char path[300], comm[32];
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue;
        bool is_read = fgets(comm, sizeof(comm), file) != NULL;
        fclose(file);
        if (is_read && strstr(comm, name) != NULL) found++;
    }
    closedir(tasks);
    return found;
}

TEST(placement_driver_has_two_threads_with_names)
{
    stand_open(0);
    wait_threads(st.threads + 2);
    CHECK_U64(threads_named("-store\n"), 1);
    CHECK_U64(threads_named("-lease\n"), 1);
    stand_close();
}

TEST(placement_driver_that_cannot_be_opened_leaves_nothing)
{
    const char *why = NULL;
    stand_prepare();
    uint64_t before = atomic_load(&st.r.bytes);
    for (int way = 0; way < WAYS; way++) {
        st.shop.open_err[way] = FK_E_STORAGE;
        CHECK_ERR(stand_try_open(0, &why), FK_E_STORAGE);
        CHECK_STR(why, "the shop is closed");
        CHECK_ERR(stand_try_open(0, NULL), FK_E_STORAGE);
        st.shop.open_err[way] = FK_OK;
        CHECK_U64(atomic_load(&st.shop.open), 0);
        CHECK_U64(atomic_load(&st.r.bytes), before);
    }
    CHECK_ERR(fk__placement_driver_open(st.r.sys, FK_STR("nosuch:there"), st.shop.more, 0,
                                        &st.driver, &why),
              FK_E_UNSUPPORTED);
    CHECK(why != NULL);
    for (uint64_t at = 1;; at++) {
        rig_fault(&st.r, at, false);
        fk_err err = stand_try_open(0, &why);
        rig_fault(&st.r, 0, false);
        if (err == FK_OK) break;
        CHECK_ERR(err, FK_E_NOMEM);
        CHECK_U64(atomic_load(&st.shop.open), 0);
        CHECK_U64(atomic_load(&st.r.bytes), before);
        CHECK(at < 10);
    }
    st.port = fk__placement_driver_port(st.driver);
    stand_close();
}

/* ---- many at once ---------------------------------------------------------------------------- */

enum { SUBMITTERS = 4, OF_EACH = 1000 };

static void *submit_main(void *arg)
{
    uint64_t first = (uint64_t)(uintptr_t)arg * OF_EACH;
    for (uint64_t i = 0; i < OF_EACH; i++) submit(FK_STORE_LOAD, first + i);
    return NULL;
}

TEST(placement_driver_takes_jobs_from_many_threads)
{
    pthread_t thread[SUBMITTERS];
    uint64_t next[SUBMITTERS] = { 0 };
    stand_open(FK_MILLIS(1));
    for (uintptr_t i = 0; i < SUBMITTERS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, submit_main, (void *)i), 0);
    }
    for (int i = 0; i < SUBMITTERS; i++) pthread_join(thread[i], NULL);
    wait_size(&st.maker.count, SUBMITTERS * OF_EACH);
    for (size_t i = 0; i < SUBMITTERS * OF_EACH; i++) {
        uint64_t of = st.maker.tag[i] / OF_EACH;
        CHECK_U64(st.maker.tag[i] % OF_EACH, next[of]++); /* each one's in its order */
    }
    stand_close();
}

/* ---- with real stores ------------------------------------------------------------------------ */

static fk_store_job *job_do(fk_placement_driver *driver, fk_store_job *job)
{
    CHECK_OK(fk__placement_driver_do(driver, job, FK_SECONDS(30)));
    CHECK_ERR(job->op.err, FK_OK);
    CHECK_U64(job->op.verdict, FK_VERDICT_OK);
    return job;
}

static uint64_t join_by(fk_placement_driver *driver)
{
    fk_store_job *job = job_new(FK_STORE_JOIN, 1);
    job->op.member = (fk_member){ .id = FK_STR("a@there:1"),
                                  .address = FK_STR("fraktor.tcp://a@there:1"),
                                  .weight = 100,
                                  .status = FK_MEMBER_UP };
    job->op.strategy = "rendezvous";
    job->op.slots = 64;
    job->op.ttl = FK_SECONDS(60);
    uint64_t incarnation = job_do(driver, job)->op.member.incarnation;
    fk__store_job_destroy(job);
    return incarnation;
}

static uint32_t members_by(fk_placement_driver *driver)
{
    fk_store_job *job = job_do(driver, job_new(FK_STORE_VIEW, 2));
    uint32_t count = job->op.view.count;
    fk__store_job_destroy(job);
    return count;
}

/* Two drivers of one store, as two nodes have them: one joins, stores and leaves, the other sees
 * it. */
static void check_two_drivers(const char *url)
{
    _Atomic size_t changes = 0;
    fk_placement_driver *one = NULL, *other = NULL;
    const char *why = NULL;
    stand_prepare();
    CHECK_OK(fk__placement_driver_open(st.r.sys, fk_str_of(url), NULL, 0, &one, &why));
    CHECK_OK(fk__placement_driver_open(st.r.sys, fk_str_of(url), NULL, FK_MILLIS(2), &other, &why));
    fk__placement_driver_watch(other, count_change, &changes);
    uint64_t incarnation = join_by(one);
    CHECK_U64(incarnation, 1);
    wait_size(&changes, 1);
    CHECK_U64(members_by(other), 1);
    fk_store_job *job = job_new(FK_STORE_LOAD, 3);
    job->op.key = (fk_grain_key){ FK_STR("account"), FK_STR("alice"), { 1, 2 } };
    job->op.fence = (fk_fence){ 1, FK_STR("a@there:1"), incarnation };
    job_do(one, job);
    CHECK_U64(job->op.record.version, 0);
    fk__store_job_destroy(job);
    size_t before = atomic_load(&changes);
    fk_cluster_port port = fk__placement_driver_port(one);
    port.close(port.ctx, FK_STR("a@there:1"), incarnation);
    wait_size(&changes, before + 1);
    CHECK_U64(members_by(other), 0); /* it has left; nobody waits for its lease */
    port = fk__placement_driver_port(other);
    port.close(port.ctx, FK_STR(""), 0);
    stand_end();
}

TEST(placement_driver_over_memory)
{
    check_two_drivers("memory:placement_driver");
}

/* Without libsqlite3 there is no such store. */
static bool is_built_in(const char *url)
{
    fk_port port = fk_host_port();
    fk_store *store = NULL;
    fk_err err = fk_store_open(fk_str_of(url), NULL, true, &port, &store, NULL);
    if (err == FK_E_UNSUPPORTED) return false;
    CHECK_OK(err);
    store->ops->close(store);
    return true;
}

TEST(placement_driver_over_sqlite)
{
    static const char *const ENDS[] = { "", "-wal", "-shm" };
    char folder[] = "/tmp/fk_driver_XXXXXX", url[64], file[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(url, sizeof(url), "sqlite:%s/store.db", folder);
    if (is_built_in(url)) check_two_drivers(url);
    for (size_t i = 0; i < sizeof(ENDS) / sizeof(*ENDS); i++) {
        snprintf(file, sizeof(file), "%s/store.db%s", folder, ENDS[i]);
        unlink(file);
    }
    CHECK_U64(rmdir(folder), 0);
}
