/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads that ask and wait, on systems with workers of their own. */

#include "support/rig.h"

#include <string.h>

typedef struct wide {
    uint64_t n[40]; /* too large to be inline */
} wide;
FK_MESSAGE(wide);

/* What an actor is asked to answer with. */
typedef struct order {
    enum { WITH_NUM, WITH_WIDE, WITH_TEXT, WITH_OWNED, WITH_OWNED_LARGE, WITH_SHARED, NEVER } what;
    _Atomic int *drops;
} order;
FK_MESSAGE(order);

static fk_payload *kept; /* by the desk, until it is asked again */

static fk_err reply_shared(fk_ctx *ctx, _Atomic int *drops)
{
    CHECK_OK(fk_payload_create(fk_system_of(ctx), &fk_type_owned, sizeof(owned), &kept));
    *(owned *)fk_payload_data(kept) = (owned){ drops, 9 };
    fk_payload_share(kept);
    return fk_reply(ctx, FK_MSG_PAYLOAD(kept));
}

static fk_err waiter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const order *o = FK_AS(order, msg);
    fk_ref *last = state;
    if (o == NULL) return fk_unhandled(ctx, msg);
    if (kept != NULL) fk_payload_put(kept);
    kept = NULL;
    if (last != NULL && o->what == NEVER) *last = msg->sender;
    owned_large large = { o->drops, 8, { 8 } };
    memset(large.filling, 8, sizeof(large.filling));
    switch (o->what) {
    case WITH_NUM: return fk_reply(ctx, FK_MSG(num, 7));
    case WITH_WIDE: return fk_reply(ctx, FK_MSG(wide, { 1, 2, 3 }));
    case WITH_TEXT: return fk_reply(ctx, FK_TEXT("seven"));
    case WITH_OWNED: return fk_reply(ctx, FK_MSG(owned, o->drops, 7));
    case WITH_OWNED_LARGE: return fk_reply(ctx, FK_MSG_AT(owned_large, &large));
    case WITH_SHARED: return reply_shared(ctx, o->drops);
    case NEVER:
    default: return FK_OK;
    }
}

static fk_ref waiter_spawn(rig *r, fk_ref *last)
{
    fk_ref ref;
    CHECK_OK(fk_spawn(r->sys, FK_STR("desk"),
                      &(fk_props){ .receive = waiter_receive, .state = last }, &ref));
    return ref;
}

static void start(rig *r)
{
    rig_start_with(r, (fk_system_config){ .name = "test", .workers = 2 });
}

#define LONG FK_SECONDS(20)

TEST(ask_wait_gets_the_answer)
{
    rig r;
    start(&r);
    fk_ref desk = waiter_spawn(&r, NULL);
    for (int i = 0; i < 1000; i++) {
        num n = { 0 };
        CHECK_OK(fk_ask_wait(r.sys, desk, FK_MSG(order, WITH_NUM, NULL), FK_INTO(num, &n), LONG));
        CHECK_U64(n.n, 7);
    }
    wide w = { { 0 } };
    fk_into into = fk_into_of(&fk_type_wide, &w); /* as FK_INTO */
    CHECK_OK(fk_ask_wait(r.sys, desk, FK_MSG(order, WITH_WIDE, NULL), into, FK_NEVER));
    CHECK_U64(w.n[2], 3);
    CHECK_OK(fk_ask_wait(r.sys, desk, FK_MSG(order, WITH_NUM, NULL), FK_INTO_NOTHING, LONG));
    CHECK_U64(r.letters.count, 0);
    rig_stop(&r);
}

TEST(ask_wait_gets_text)
{
    rig r;
    start(&r);
    fk_ref desk = waiter_spawn(&r, NULL);
    char text[6] = "", small[5] = "";
    fk_buf buf = FK_BUF(text), little = FK_BUF(small);
    fk_out what = FK_MSG(order, WITH_TEXT, NULL);
    CHECK_OK(fk_ask_wait(r.sys, desk, what, FK_INTO_TEXT(&buf), LONG));
    CHECK_STR(text, "seven");
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO_TEXT(&little), LONG), FK_E_LIMIT);
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 1);
    rig_stop(&r);
}

TEST(ask_wait_takes_what_the_answer_owns)
{
    rig r;
    _Atomic int drops = 0;
    start(&r);
    fk_ref desk = waiter_spawn(&r, NULL);
    owned o;
    owned_large large;
    fk_out what = FK_MSG(order, WITH_OWNED, &drops);
    CHECK_OK(fk_ask_wait(r.sys, desk, what, FK_INTO(owned, &o), LONG));
    CHECK_U64(o.n, 7);
    what = FK_MSG(order, WITH_OWNED_LARGE, &drops);
    CHECK_OK(fk_ask_wait(r.sys, desk, what, FK_INTO(owned_large, &large), LONG));
    CHECK_U64(large.filling[199], 8);
    CHECK_U64(drops, 0);                       /* both are ours now */
    what = FK_MSG(order, WITH_SHARED, &drops); /* this one is not ours alone */
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(owned, &o), LONG), FK_E_TYPE);
    what = FK_MSG(order, WITH_OWNED, &drops);
    CHECK_OK(fk_ask_wait(r.sys, desk, what, FK_INTO_NOTHING, LONG));
    CHECK_U64(drops, 2);
    rig_stop(&r);
}

TEST(ask_wait_answer_of_another_type_is_a_dead_letter)
{
    rig r;
    start(&r);
    fk_ref desk = waiter_spawn(&r, NULL);
    wide w;
    fk_out what = FK_MSG(order, WITH_NUM, NULL);
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(wide, &w), LONG), FK_E_TYPE);
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 1);
    CHECK(r.letters.last.type == &fk_type_num);
    CHECK(fk_ref_equal(r.letters.last.sender, desk));
    rig_stop(&r);
}

TEST(ask_wait_times_out)
{
    rig r;
    fk_ref last = FK_REF_NONE;
    num n;
    start(&r);
    fk_ref desk = waiter_spawn(&r, &last);
    fk_out what = FK_MSG(order, NEVER, NULL);
    int64_t began = test_clock();
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(num, &n), FK_MILLIS(10)), FK_E_TIMEOUT);
    CHECK(test_clock() - began >= FK_MILLIS(10));
    /* Once this one is answered the desk has seen the other. */
    CHECK_OK(fk_ask_wait(r.sys, desk, FK_MSG(order, WITH_NUM, NULL), FK_INTO(num, &n), LONG));
    CHECK(!fk_is_alive(r.sys, last));
    CHECK_OK(fk_send_from(r.sys, last, desk, FK_MSG(num, 1)));
    CHECK_U64(r.letters.of[FK_REASON_LATE_REPLY], 1);
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(num, &n), 0), FK_E_TIMEOUT);
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(num, &n), -5), FK_E_TIMEOUT);
    CHECK_U64(r.letters.count, 1);
    rig_stop(&r);
}

TEST(ask_wait_of_the_dead_fails_at_once)
{
    rig r;
    num n;
    start(&r);
    fk_ref desk = waiter_spawn(&r, NULL);
    fk_out what = FK_MSG(order, WITH_NUM, NULL);
    fk_stop(r.sys, desk);
    CHECK_OK(fk_await_stopped(r.sys, desk, LONG));
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(num, &n), FK_NEVER), FK_E_DEAD);
    CHECK_ERR(fk_ask_wait(r.sys, FK_REF_NONE, what, FK_INTO(num, &n), FK_NEVER), FK_E_DEAD);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1);
    CHECK_U64(r.letters.of[FK_REASON_NO_RECEIVER], 1);
    rig_stop(&r);
}

TEST(ask_wait_what_cannot_be_asked)
{
    rig r;
    _Atomic int drops = 0;
    start(&r);
    fk_ref desk = waiter_spawn(&r, NULL);
    fk_into nowhere = fk_into_of(&fk_type_num, NULL);
    fk_out what = FK_MSG(owned, &drops, 1); /* taken, whatever happens */
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, nowhere, LONG), FK_E_INVALID);
    CHECK_U64(drops, 1);
    nowhere = fk_into_of(fk_type_sized(&fk_type_num, 3), &drops); /* two types of one name */
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, nowhere, LONG), FK_E_INVALID);
    CHECK_U64(drops, 2);
    rig_stop(&r);
}

static fk_err ask_inside(fk_ctx *ctx, void *arg)
{
    num n;
    *(fk_err *)arg =
        fk_ask_wait(fk_system_of(ctx), fk_parent(ctx), FK_MSG(num, 1), FK_INTO(num, &n), LONG);
    fk_stop_self(ctx);
    return FK_OK;
}

TEST(ask_wait_not_from_inside)
{
    rig r;
    fk_err err = FK_OK;
    start(&r);
    fk_ref doer = doer_spawn(&r);
    CHECK_OK(fk_send(r.sys, doer, FK_MSG(rig_call, ask_inside, &err)));
    CHECK_OK(fk_await_stopped(r.sys, doer, LONG));
    CHECK_ERR(err, FK_E_STATE);
    rig_stop(&r);

    rig_start(&r); /* nor from the thread that runs the actors */
    fk_ref desk = waiter_spawn(&r, NULL);
    num n;
    fk_out what = FK_MSG(order, WITH_NUM, NULL);
    rig_run(&r);
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(num, &n), LONG), FK_E_STATE);
    rig_stop(&r);
}

TEST(ask_wait_needs_a_port_that_can_wait)
{
    rig r;
    num n;
    rig_init(&r);
    r.port.wait = NULL;
    r.port.notify = NULL;
    CHECK_OK(rig_try_start(&r, &(fk_system_config){ .name = "test" }));
    fk_ref desk = waiter_spawn(&r, NULL);
    fk_out what = FK_MSG(order, WITH_NUM, NULL);
    CHECK_ERR(fk_ask_wait(r.sys, desk, what, FK_INTO(num, &n), LONG), FK_E_UNSUPPORTED);
    rig_stop(&r);
}

/* ---- the end of the system ---------------------------------------------------------------------- */

typedef struct patient {
    rig r;
    fk_ref silent;
    fk_err err;
} patient;

static void *ask_for_ever(void *arg)
{
    patient *p = arg;
    p->err = fk_ask_wait(p->r.sys, p->silent, FK_MSG(num, 1), FK_INTO_NOTHING, FK_NEVER);
    return NULL;
}

TEST(ask_wait_without_a_limit_ends_with_the_system)
{
    static patient p;
    static probe silent;
    pthread_t thread;
    start(&p.r);
    p.silent = probe_spawn(&p.r, &silent);
    CHECK(pthread_create(&thread, NULL, ask_for_ever, &p) == 0);
    fk_stats stats;
    do { /* until it has been asked */
        fk_stats_get(p.r.sys, &stats);
    } while (stats.processed == 0);
    CHECK_OK(fk_terminate(p.r.sys));
    pthread_join(thread, NULL);
    CHECK_ERR(p.err, FK_E_DEAD);
    rig_stop(&p.r);
}

/* ---- many threads ------------------------------------------------------------------------------ */

enum { THREADS = 4 };

typedef struct crowd {
    rig r;
    fk_ref desk;
    _Atomic uint64_t answered, late;
} crowd;

/* With a timeout that is sometimes just enough. */
static void *ask_often(void *arg)
{
    crowd *c = arg;
    uint64_t rounds = test_scaled(2000);
    for (uint64_t i = 0; i < rounds; i++) {
        num n = { 0 };
        fk_time timeout = i % 4 == 0 ? FK_MICROS(i % 50) + 1 : LONG;
        fk_err err = fk_ask_wait(c->r.sys, c->desk, FK_MSG(order, WITH_NUM, NULL), FK_INTO(num, &n),
                                 timeout);
        if (err == FK_E_TIMEOUT) {
            CHECK(timeout != LONG);
            atomic_fetch_add(&c->late, 1);
        } else {
            CHECK_OK(err);
            CHECK_U64(n.n, 7);
            atomic_fetch_add(&c->answered, 1);
        }
    }
    return NULL;
}

TEST(ask_wait_from_many_threads)
{
    crowd c = { .answered = 0 };
    pthread_t thread[THREADS];
    start(&c.r);
    c.desk = waiter_spawn(&c.r, NULL);
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, ask_often, &c);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    CHECK_OK(fk_poison(c.r.sys, c.desk));
    CHECK_OK(fk_await_stopped(c.r.sys, c.desk, LONG));
    CHECK_U64(c.answered + c.late, THREADS * test_scaled(2000));
    CHECK_U64(c.r.letters.of[FK_REASON_LATE_REPLY], c.late);
    CHECK_U64(c.r.letters.count, c.late);
    rig_stop(&c.r);
}
