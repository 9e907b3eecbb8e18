/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls on their way: each comes to one end, and one that is sent again is the same call. */

#include <stdlib.h>
#include <string.h>

#include "cluster/call.h"
#include "support/rig.h"

enum { ORIGIN = 1000, NOTES_MAX = 64 };

/* A call and what has become of it. Freed when it is taken, so that the sanitizer sees every use that
 * comes too late. */
typedef struct item {
    fk_call call;
    uint32_t id;
} item;

/* What the desk has done, in order. */
typedef struct happening {
    char what; /* 'r'esolve, 's'end, 'd'eliver, 'f'inish */
    uint32_t id;
    fk_err err;
    fk_request request;
    uint64_t low;
    uint64_t ticket;
    uint8_t hops;
    const void *answer;
} happening;

static rig r;
static fk_mem mem;
static fk_desk *desk;
static fk_time now;
static uint32_t ids;

static happening log_[NOTES_MAX];
static uint32_t log_count;

/* What resolve, send and deliver say. */
static struct {
    fk_err resolve, send, deliver;
    fk_locality locality;
    fk_str authority;
    bool resubmits; /* finish() submits another call, once */
    bool answers;   /* send() is answered before it returns */
} world;

static void happen(char what, const item *it, fk_err err, const void *answer)
{
    log_[log_count++ % NOTES_MAX] = (happening){
        .what = what,
        .id = it->id,
        .err = err,
        .request = it->call.request,
        .low = it->call.low,
        .ticket = it->call.ticket,
        .hops = it->call.hops,
        .answer = answer,
    };
}

static item *make(bool is_ours, fk_time deadline)
{
    item *it = calloc(1, sizeof(*it));
    CHECK(it != NULL);
    it->id = ++ids;
    it->call.is_ours = is_ours;
    it->call.deadline = deadline;
    if (!is_ours) it->call.request = (fk_request){ 5, 77 };
    return it;
}

static fk_err on_resolve(void *ctx, fk_call *call, fk_time at, fk_resolution *out)
{
    (void)ctx;
    CHECK_U64(at, now);
    happen('r', (item *)call, world.resolve, NULL);
    if (world.resolve != FK_OK) return world.resolve;
    *out = (fk_resolution){
        .locality = world.locality,
        .authority = world.authority,
        .incarnation = 3,
    };
    return FK_OK;
}

static fk_err on_send(void *ctx, fk_call *call, const fk_resolution *to, fk_str *authority)
{
    (void)ctx;
    bool is_ours = call->is_ours;
    happen('s', (item *)call, world.send, NULL);
    if (world.send != FK_OK) return world.send;
    *authority = to->authority;
    fk_request request = call->request;
    if (!is_ours) free(call);
    if (world.answers) CHECK(fk__desk_answered(desk, request, FK_OK, &world, now));
    return FK_OK;
}

static fk_err on_deliver(void *ctx, fk_call *call, const fk_resolution *at)
{
    (void)ctx;
    CHECK_U64(at->locality, FK_LOCALITY_LOCAL);
    happen('d', (item *)call, world.deliver, NULL);
    if (world.deliver != FK_OK) return world.deliver;
    if (!call->is_ours || call->request.origin != ORIGIN) free(call);
    return FK_OK;
}

static void on_finish(void *ctx, fk_call *call, fk_err err, void *answer)
{
    (void)ctx;
    happen('f', (item *)call, err, answer);
    free(call);
    if (world.resubmits) {
        world.resubmits = false;
        fk__desk_submit(desk, &make(true, FK_NEVER)->call, now);
    }
}

static fk_desk_config config_of(void)
{
    return (fk_desk_config){
        .ops = { NULL, on_resolve, on_send, on_deliver, on_finish },
        .origin = ORIGIN,
        .resend_after = 100,
        .resend_max = 350,
        .retry_min = 10,
        .retry_max = 35,
    };
}

static void begin_with(fk_desk_config config)
{
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    memset(&world, 0, sizeof(world));
    world.locality = FK_LOCALITY_REMOTE;
    world.authority = FK_STR("b");
    now = 0;
    ids = 0;
    log_count = 0;
    CHECK_OK(fk__desk_create(&mem, &config, &desk));
}

static void begin(void)
{
    begin_with(config_of());
}

static void end(void)
{
    fk__desk_check(desk);
    fk__desk_destroy(desk);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

static item *submit(bool is_ours, fk_time deadline)
{
    item *it = make(is_ours, deadline);
    fk__desk_submit(desk, &it->call, now);
    fk__desk_check(desk);
    return it;
}

static void tick(fk_time at)
{
    now = at;
    fk__desk_tick(desk, now);
    fk__desk_check(desk);
}

static void settle(uint64_t ticket, fk_err err)
{
    fk_resolution to = { .err = err, .locality = world.locality, .authority = world.authority };
    fk__desk_settled(desk, ticket, &to, now);
    fk__desk_check(desk);
}

/* The n-th last thing that happened; 1 is the last. */
static const happening *latest(uint32_t n)
{
    CHECK(log_count >= n);
    return &log_[(log_count - n) % NOTES_MAX];
}

static void check_latest(char what, uint32_t id, fk_err err)
{
    CHECK_U64(latest(1)->what, what);
    CHECK_U64(latest(1)->id, id);
    CHECK_ERR(latest(1)->err, err);
}

static void check_finished(uint32_t id, fk_err err)
{
    check_latest('f', id, err);
    CHECK_U64(fk__desk_count(desk), 0);
}

TEST(call_to_a_grain_here_is_delivered_without_a_number)
{
    begin();
    world.locality = FK_LOCALITY_LOCAL;
    submit(true, FK_NEVER);
    check_latest('d', 1, FK_OK);
    CHECK_U64(latest(1)->request.origin, 0);
    CHECK_U64(fk__desk_count(desk), 0);
    CHECK_U64(fk__desk_next(desk), FK_NEVER);
    submit(false, FK_NEVER);
    check_latest('d', 2, FK_OK);
    CHECK_U64(latest(1)->request.seq, 77); /* of its origin, as it came */
    CHECK_U64(fk__desk_count(desk), 0);
    end();
}

TEST(call_to_another_node_is_numbered_and_kept_until_it_is_answered)
{
    begin();
    int answer;
    submit(true, FK_NEVER);
    check_latest('s', 1, FK_OK);
    CHECK_U64(latest(1)->request.origin, ORIGIN);
    CHECK_U64(latest(1)->request.seq, 1);
    CHECK_U64(latest(1)->low, 1);
    submit(true, FK_NEVER);
    CHECK_U64(latest(1)->request.seq, 2);
    CHECK_U64(latest(1)->low, 1); /* the first is not settled */
    CHECK(!fk__desk_answered(desk, (fk_request){ ORIGIN, 3 }, FK_OK, &answer, now));
    CHECK(!fk__desk_answered(desk, (fk_request){ ORIGIN + 1, 1 }, FK_OK, &answer, now));
    CHECK(fk__desk_answered(desk, (fk_request){ ORIGIN, 2 }, FK_OK, &answer, now));
    check_latest('f', 2, FK_OK);
    CHECK(latest(1)->answer == &answer);
    CHECK(!fk__desk_answered(desk, (fk_request){ ORIGIN, 2 }, FK_OK, &answer, now));
    submit(true, FK_NEVER);
    CHECK_U64(latest(1)->low, 1); /* the second is, but the first is not */
    CHECK(fk__desk_answered(desk, (fk_request){ ORIGIN, 1 }, FK_E_FAILED, NULL, now));
    check_latest('f', 1, FK_E_FAILED);
    CHECK_U64(fk__desk_low(desk), 3);
    fk__desk_cancel(desk, (fk_request){ ORIGIN, 3 }, now);
    check_finished(3, FK_E_DEAD);
    CHECK_U64(fk__desk_low(desk), 4);
    end();
}

TEST(call_without_an_answer_is_sent_again_with_the_same_number)
{
    begin();
    submit(true, FK_NEVER);
    fk_request request = latest(1)->request;
    fk_time expected[] = { 100, 300, 650, 1000 };
    for (size_t i = 0; i < 4; i++) {
        CHECK_U64(fk__desk_next(desk), expected[i]);
        tick(expected[i] - 1);
        uint32_t before = log_count;
        tick(expected[i]);
        CHECK_U64(log_count, before + 2); /* it is asked again where, and sent */
        check_latest('s', 1, FK_OK);
        CHECK(fk__request_equal(latest(1)->request, request));
        CHECK(latest(2)->ticket != 0);
    }
    CHECK(fk__desk_answered(desk, request, FK_OK, NULL, now));
    check_finished(1, FK_OK);
    end();
}

TEST(call_that_is_refused_waits_longer_each_time)
{
    begin();
    world.resolve = FK_E_NOT_READY;
    submit(true, FK_NEVER);
    fk_time expected[] = { 10, 30, 65, 100 };
    for (size_t i = 0; i < 4; i++) {
        check_latest('r', 1, FK_E_NOT_READY);
        CHECK_U64(fk__desk_next(desk), expected[i]);
        tick(expected[i]);
    }
    world.resolve = FK_OK;
    world.send = FK_E_NOMEM;
    tick(fk__desk_next(desk));
    check_latest('s', 1, FK_E_NOMEM);
    CHECK_U64(fk__desk_count(desk), 1);
    world.send = FK_OK;
    tick(fk__desk_next(desk));
    check_latest('s', 1, FK_OK);
    CHECK_U64(fk__desk_next(desk), now + 100);
    /* The other node has refused it. */
    CHECK(fk__desk_answered(desk, latest(1)->request, FK_E_NOT_READY, NULL, now));
    CHECK_U64(fk__desk_next(desk), now + 35);
    tick(fk__desk_next(desk));
    check_latest('s', 1, FK_OK);
    world.send = FK_E_NO_CODEC; /* no use to try */
    tick(fk__desk_next(desk));
    check_finished(1, FK_E_NO_CODEC);
    end();
}

TEST(call_ends_with_an_error_that_stays)
{
    begin();
    static const fk_err final[] = { FK_E_UNKNOWN_KIND, FK_E_OVERLOADED, FK_E_ACTIVATION };
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(!fk__call_may_retry(final[i]));
        world.resolve = final[i];
        submit(true, FK_NEVER);
        check_finished(2 * i + 1, final[i]);
        submit(false, FK_NEVER);
        check_finished(2 * i + 2, final[i]);
    }
    CHECK(!fk__call_may_retry(FK_OK));
    end();
}

TEST(call_that_waits_for_placement_goes_on_when_it_is_settled)
{
    begin();
    world.resolve = FK_E_PENDING;
    submit(true, FK_NEVER);
    uint64_t one = latest(1)->ticket;
    submit(false, FK_NEVER);
    uint64_t two = latest(1)->ticket;
    submit(true, FK_NEVER);
    uint64_t three = latest(1)->ticket;
    CHECK(one != 0 && two != 0 && one != two && two != three);
    uint32_t before = log_count;
    settle(one ^ 0x40, FK_OK); /* nobody's */
    settle(0, FK_OK);
    CHECK_U64(log_count, before);
    world.locality = FK_LOCALITY_LOCAL;
    settle(one, FK_OK);
    check_latest('d', 1, FK_OK);
    settle(two, FK_E_LOCK_DENIED); /* its origin tries again */
    check_latest('f', 2, FK_E_LOCK_DENIED);
    settle(three, FK_E_LOCK_DENIED);
    CHECK_U64(fk__desk_count(desk), 1);
    settle(three, FK_OK); /* twice: it is not asked for now */
    CHECK_U64(fk__desk_count(desk), 1);
    tick(10);
    check_latest('r', 3, FK_E_PENDING);
    CHECK(latest(1)->ticket != three);
    uint64_t again = latest(1)->ticket;
    settle(three, FK_OK);
    check_latest('r', 3, FK_E_PENDING);
    settle(again, FK_OK);
    check_latest('d', 3, FK_OK);
    CHECK_U64(fk__desk_count(desk), 0);
    end();
}

TEST(call_ends_at_its_deadline)
{
    begin();
    world.resolve = FK_E_PENDING;
    submit(true, 50);
    uint64_t ticket = latest(1)->ticket;
    CHECK_U64(fk__desk_next(desk), 50);
    tick(49);
    CHECK_U64(fk__desk_count(desk), 1);
    tick(50);
    check_finished(1, FK_E_TIMEOUT);
    settle(ticket, FK_OK);
    check_finished(1, FK_E_TIMEOUT);

    world.resolve = FK_E_STORAGE; /* it waits, and the reason is told */
    submit(true, 55);
    CHECK_U64(fk__desk_next(desk), 55);
    tick(55);
    check_finished(2, FK_E_STORAGE);

    world.resolve = FK_OK; /* it is sent, and nobody knows */
    submit(true, 60);
    CHECK_U64(fk__desk_next(desk), 60);
    tick(60);
    check_finished(3, FK_E_TIMEOUT);
    CHECK(!fk__desk_answered(desk, (fk_request){ ORIGIN, 1 }, FK_OK, NULL, now));

    submit(true, 60); /* late already */
    check_finished(4, FK_E_TIMEOUT);

    world.resolve = FK_E_PENDING;
    submit(false, 70);
    ticket = latest(1)->ticket;
    now = 80; /* settled before somebody looked at the clock */
    settle(ticket, FK_OK);
    check_finished(5, FK_E_TIMEOUT);
    end();
}

TEST(call_of_another_node_is_passed_on_but_not_for_ever)
{
    begin();
    item *it = make(false, FK_NEVER);
    it->call.hops = FK_CALL_HOPS_MAX - 1;
    fk__desk_submit(desk, &it->call, now);
    check_latest('s', 1, FK_OK);
    CHECK_U64(latest(1)->hops, FK_CALL_HOPS_MAX);
    CHECK_U64(latest(1)->request.origin, 5);
    CHECK_U64(fk__desk_count(desk), 0);
    it = make(false, FK_NEVER);
    it->call.hops = FK_CALL_HOPS_MAX;
    fk__desk_submit(desk, &it->call, now);
    check_finished(2, FK_E_NOT_READY);
    world.send = FK_E_FULL;
    submit(false, FK_NEVER);
    check_finished(3, FK_E_FULL);
    world.locality = FK_LOCALITY_LOCAL;
    world.deliver = FK_E_DEAD;
    submit(false, FK_NEVER);
    check_finished(4, FK_E_DEAD);
    end();
}

TEST(call_that_was_sent_stays_with_the_desk_when_the_grain_comes_here)
{
    begin();
    submit(true, FK_NEVER);
    fk_request request = latest(1)->request;
    world.locality = FK_LOCALITY_LOCAL;
    world.deliver = FK_E_NOMEM;
    tick(100);
    check_latest('d', 1, FK_E_NOMEM);
    world.deliver = FK_OK;
    tick(110);
    check_latest('d', 1, FK_OK);
    CHECK(fk__request_equal(latest(1)->request, request));
    CHECK_U64(fk__desk_count(desk), 1);
    /* The activation broke. */
    CHECK(fk__desk_answered(desk, request, FK_E_FENCED, NULL, now));
    tick(fk__desk_next(desk));
    check_latest('d', 1, FK_OK);
    CHECK(fk__desk_answered(desk, request, FK_OK, NULL, now));
    check_finished(1, FK_OK);
    end();
}

TEST(call_that_was_not_taken_here_is_tried_again)
{
    begin();
    world.locality = FK_LOCALITY_LOCAL;
    world.deliver = FK_E_DEAD;
    submit(true, FK_NEVER);
    CHECK_U64(fk__desk_count(desk), 1);
    world.deliver = FK_OK;
    tick(10);
    check_latest('d', 1, FK_OK);
    CHECK_U64(fk__desk_count(desk), 0);
    end();
}

TEST(call_that_ran_here_before_says_under_which_number)
{
    begin();
    item *it = make(true, FK_NEVER);
    it->call.request = (fk_request){ 90, 4 };
    fk__desk_submit(desk, &it->call, now);
    check_latest('s', 1, FK_OK);
    CHECK_U64(it->call.request.origin, ORIGIN);
    CHECK_U64(it->call.earlier.origin, 90);
    CHECK_U64(it->call.earlier.seq, 4);
    tick(100); /* again: it stays so */
    CHECK_U64(it->call.earlier.origin, 90);
    /* One that has a number of this desk keeps it, and its place. */
    submit(true, FK_NEVER);
    it = make(true, FK_NEVER);
    it->call.request = (fk_request){ ORIGIN, 9 };
    fk__desk_submit(desk, &it->call, now);
    CHECK_U64(latest(1)->request.seq, 9);
    it = make(true, FK_NEVER);
    it->call.request = (fk_request){ ORIGIN, 5 };
    fk__desk_submit(desk, &it->call, now);
    CHECK_U64(latest(1)->request.seq, 5);
    fk__desk_check(desk);
    submit(true, FK_NEVER);
    CHECK_U64(latest(1)->request.seq, 10);
    end();
}

static bool is_not_b(void *ctx, fk_str id, uint64_t incarnation)
{
    (void)ctx;
    CHECK_U64(incarnation, 3);
    return id.ptr[0] != 'b';
}

TEST(call_to_a_member_that_is_gone_is_tried_again_at_once)
{
    begin();
    submit(true, FK_NEVER);
    world.authority = FK_STR("c");
    submit(true, FK_NEVER);
    now = 5;
    fk__desk_members_changed(desk, is_not_b, NULL, now);
    fk__desk_check(desk);
    CHECK_U64(fk__desk_next(desk), 5);
    uint32_t before = log_count;
    tick(5);
    CHECK_U64(log_count, before + 2);
    check_latest('s', 1, FK_OK);
    CHECK_U64(latest(1)->request.seq, 1);
    /* One that waits for a refusal to pass is not touched. */
    CHECK(fk__desk_answered(desk, (fk_request){ ORIGIN, 2 }, FK_E_NOT_READY, NULL, now));
    fk__desk_members_changed(desk, is_not_b, NULL, now);
    CHECK_U64(fk__desk_next(desk), 15);
    end();
}

TEST(call_beyond_the_bound_is_refused)
{
    fk_desk_config config = config_of();
    config.calls_max = 2;
    begin_with(config);
    submit(true, FK_NEVER);
    submit(true, FK_NEVER);
    submit(true, FK_NEVER);
    check_latest('f', 3, FK_E_OVERLOADED);
    CHECK_U64(fk__desk_count(desk), 2);
    CHECK(fk__desk_answered(desk, (fk_request){ ORIGIN, 1 }, FK_OK, NULL, now));
    submit(true, FK_NEVER);
    check_latest('s', 4, FK_OK);
    end();
}

TEST(call_may_be_made_from_inside_the_desk)
{
    begin();
    world.resubmits = true;
    world.resolve = FK_E_UNKNOWN_KIND;
    submit(true, FK_NEVER);
    check_finished(2, FK_E_UNKNOWN_KIND);
    world.resolve = FK_OK;
    world.answers = true; /* answered inside send() */
    submit(true, FK_NEVER);
    check_finished(3, FK_OK);
    world.answers = false;
    for (int i = 0; i < 100; i++) submit(true, i % 2 == 0 ? FK_NEVER : 1000);
    world.resubmits = true; /* a desk that gives up takes on no more */
    fk__desk_give_up(desk, FK_E_NOT_READY);
    CHECK_U64(fk__desk_count(desk), 0);
    CHECK_U64(ids, 104);
    uint32_t before = log_count;
    submit(true, FK_NEVER);
    check_finished(105, FK_E_NOT_READY);
    CHECK_U64(log_count, before + 1);
    end();
}

TEST(call_desk_ends_what_it_has_when_it_is_destroyed)
{
    begin();
    submit(true, FK_NEVER);
    world.resolve = FK_E_PENDING;
    submit(false, FK_NEVER);
    fk__desk_destroy(desk);
    CHECK_U64(latest(1)->what, 'f');
    CHECK_ERR(latest(1)->err, FK_E_STOPPING);
    CHECK_U64(latest(2)->what, 'f');
    CHECK_ERR(latest(2)->err, FK_E_STOPPING);
    CHECK(latest(1)->id != latest(2)->id);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

TEST(call_without_memory_is_refused_at_the_beginning_or_never)
{
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    fk_desk_config config = config_of();
    rig_fault(&r, 1, false);
    CHECK_ERR(fk__desk_create(&mem, &config, &desk), FK_E_NOMEM);
    begin();
    uint32_t refused = 0;
    for (uint32_t i = 1; i <= 200; i++) {
        for (uint64_t at = 1;; at++) { /* each room that is made: of the map, of the heap */
            rig_fault(&r, at, false);
            submit(true, FK_NEVER);
            rig_fault(&r, 0, false);
            if (latest(1)->what != 'f') break;
            CHECK_ERR(latest(1)->err, FK_E_NOMEM);
            refused++;
        }
        check_latest('s', ids, FK_OK);
        CHECK_U64(fk__desk_count(desk), i);
    }
    CHECK(refused >= 5);
    rig_fault(&r, 1, true); /* nothing after that needs any */
    for (int i = 0; i < 20; i++) tick(fk__desk_next(desk));
    CHECK_U64(fk__desk_count(desk), 200);
    rig_fault(&r, 0, false);
    end();
}
