/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From spawn to the stop hook: order of hooks, state, stop and poison. */

#include <string.h>

#include "support/rig.h"

/* A tree whose members write down their hooks. */
typedef struct member {
    char *log;
    char name;
    int depth; /* of children below it */
    int width;
} member;

static void note(member *m, char what)
{
    size_t len = strlen(m->log);
    m->log[len] = what;
    m->log[len + 1] = m->name;
    m->log[len + 2] = '\0';
}

static fk_err member_start(fk_ctx *ctx, void *state);

static void member_stop(fk_ctx *ctx, void *state)
{
    fk_ref ref;
    fk_props late = { .receive = probe_receive };
    note(state, '-');
    CHECK_ERR(fk_spawn_child(ctx, FK_STR(""), &late, &ref), FK_E_STOPPING);
}

static fk_err member_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)msg;
    note(state, '!');
    return FK_OK;
}

static fk_props member_props(const member *m)
{
    return (fk_props){ .receive = member_receive,
                       .start = member_start,
                       .stop = member_stop,
                       .state_size = sizeof(*m),
                       .init = m };
}

static fk_err member_start(fk_ctx *ctx, void *state)
{
    member *m = state;
    note(m, '+');
    for (int i = 0; i < m->width && m->depth > 0; i++) {
        member child = { m->log, (char)(m->name + 1 + i * 3), m->depth - 1, m->width };
        fk_props props = member_props(&child);
        fk_ref ref;
        CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &props, &ref));
    }
    return FK_OK;
}

static size_t position(const char *log, char what, char name)
{
    char wanted[3] = { what, name, '\0' };
    const char *found = strstr(log, wanted);
    CHECK(found != NULL);
    return (size_t)(found - log);
}

TEST(stop_runs_hooks_of_children_before_their_parents)
{
    char log[256] = "";
    rig r;
    fk_ref top;
    rig_start(&r);
    member root = { log, 'A', 2, 2 };
    fk_props props = member_props(&root);
    CHECK_OK(fk_spawn(r.sys, FK_STR("top"), &props, &top));
    rig_run(&r);
    /* A has B and E, B has C and F, E has F and I. */
    CHECK_U64(strlen(log), 14);
    CHECK(position(log, '+', 'A') < position(log, '+', 'B'));
    CHECK(position(log, '+', 'B') < position(log, '+', 'C'));
    log[0] = '\0';
    CHECK_OK(fk_stop(r.sys, top));
    rig_run(&r);
    CHECK_U64(strlen(log), 14);
    CHECK(position(log, '-', 'C') < position(log, '-', 'B'));
    CHECK(position(log, '-', 'I') < position(log, '-', 'E'));
    CHECK(position(log, '-', 'B') < position(log, '-', 'A'));
    CHECK(position(log, '-', 'E') < position(log, '-', 'A'));
    CHECK(!fk_is_alive(r.sys, top));
    rig_stop(&r);
}

TEST(system_stop_runs_all_stop_hooks)
{
    char log[256] = "";
    rig r;
    fk_ref top;
    rig_start(&r);
    member root = { log, 'A', 2, 2 };
    fk_props props = member_props(&root);
    CHECK_OK(fk_spawn(r.sys, FK_STR("top"), &props, &top));
    rig_run(&r);
    log[0] = '\0';
    rig_stop(&r);
    CHECK_U64(strlen(log), 14);
    CHECK_U64(position(log, '-', 'A'), 12);
}

static fk_err start_fails(fk_ctx *ctx, void *state)
{
    probe *p = state;
    p->started = true;
    return fk_fail(ctx, FK_E_OS, "no device");
}

TEST(start_hook_error_stops_the_actor_before_its_first_message)
{
    rig r;
    probe p;
    fk_ref ref;
    rig_start(&r);
    fk_props props = probe_props(&p);
    props.start = start_fails;
    CHECK_OK(fk_spawn(r.sys, FK_STR("x"), &props, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK(p.started);
    CHECK_U64(p.count, 0);
    CHECK(!fk_is_alive(r.sys, ref));
    CHECK_U64(r.failures.count, 1);
    CHECK(r.failures.last.type == NULL);
    CHECK_ERR(r.failures.last.err, FK_E_OS);
    CHECK_STR(r.failures.last.detail, "no device");
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1);
    CHECK_OK(fk_spawn(r.sys, FK_STR("x"), &(fk_props){ .receive = doer_receive }, &ref));
    rig_stop(&r);
}

TEST(stop_before_the_start_hook_ran_runs_no_hook)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref ref = probe_spawn(&r, &p);
    CHECK_OK(fk_stop(r.sys, ref));
    rig_run(&r);
    CHECK(!fk_is_alive(r.sys, ref));
    CHECK(p.started == p.stopped); /* both or none */
    rig_stop(&r);
}

static fk_err stop_in_start(fk_ctx *ctx, void *state)
{
    ((probe *)state)->started = true;
    fk_stop_self(ctx);
    return FK_OK;
}

TEST(stop_self_in_the_start_hook)
{
    rig r;
    probe p;
    fk_ref ref;
    rig_start(&r);
    fk_props props = probe_props(&p);
    props.start = stop_in_start;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK(p.stopped);
    CHECK_U64(p.count, 0);
    CHECK_U64(r.failures.count, 0);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1);
    rig_stop(&r);
}

TEST(stop_comes_before_queued_messages)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref ref = probe_spawn(&r, &p);
    rig_run(&r);
    for (uint64_t i = 0; i < 5; i++) CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, i)));
    CHECK_OK(fk_stop(r.sys, ref));
    rig_run(&r);
    CHECK_U64(p.count, 0);
    CHECK(p.stopped);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 5);
    CHECK_ERR(fk_stop(r.sys, ref), FK_E_DEAD);
    rig_stop(&r);
}

TEST(poison_comes_after_queued_messages)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref ref = probe_spawn(&r, &p);
    for (uint64_t i = 0; i < 5; i++) CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, i)));
    CHECK_OK(fk_poison(r.sys, ref));
    for (uint64_t i = 5; i < 8; i++) CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, i)));
    CHECK_OK(fk_poison(r.sys, ref));
    rig_run(&r);
    CHECK_U64(p.count, 5); /* poison itself is not for receive */
    for (uint64_t i = 0; i < 5; i++) CHECK_U64(p.n[i], i);
    CHECK(p.stopped);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 3); /* and is no dead letter */
    rig_stop(&r);
}

static fk_err stop_at_two(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    probe *p = state;
    probe_receive(ctx, state, msg);
    if (p->count == 2) {
        fk_stop_self(ctx);
        CHECK(fk_is_alive(fk_system_of(ctx), fk_self(ctx))); /* not before receive returns */
    }
    return FK_OK;
}

TEST(stop_self_ends_after_the_message_in_hand)
{
    rig r;
    probe p;
    fk_ref ref;
    rig_start(&r);
    fk_props props = probe_props(&p);
    props.receive = stop_at_two;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
    for (uint64_t i = 0; i < 6; i++) CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, i)));
    rig_run(&r);
    CHECK_U64(p.count, 2);
    CHECK(p.stopped);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 4);
    rig_stop(&r);
}

static fk_err stop_by_ref(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_stop(fk_system_of(ctx), fk_self(ctx));
}

TEST(stop_of_self_by_reference_works_like_stop_self)
{
    rig r;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    CHECK_OK(fk_send(r.sys, doer, FK_MSG(rig_call, stop_by_ref, NULL)));
    CHECK_OK(fk_send(r.sys, doer, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK(!fk_is_alive(r.sys, doer));
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1);
    rig_stop(&r);
}

static void tell_in_stop(fk_ctx *ctx, void *state)
{
    fk_ref *to = state;
    CHECK_OK(fk_tell(ctx, *to, FK_MSG(num, 77)));
    CHECK_OK(fk_tell(ctx, fk_self(ctx), FK_MSG(num, 78))); /* too late: a dead letter */
}

TEST(stop_hook_may_send)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref other = probe_spawn(&r, &p), ref;
    fk_props props = { .receive = doer_receive, .stop = tell_in_stop, .state = &other };
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
    rig_run(&r);
    CHECK_OK(fk_stop(r.sys, ref));
    rig_run(&r);
    CHECK_U64(p.count, 1);
    CHECK_U64(p.n[0], 77);
    CHECK(fk_ref_equal(p.sender, ref));
    CHECK_U64(r.letters.count, 1);
    rig_stop(&r);
}

static fk_err spawn_then_stop(fk_ctx *ctx, void *arg)
{
    probe *p = arg;
    fk_props props = probe_props(p);
    fk_ref child;
    CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &props, &child));
    CHECK_OK(fk_tell(ctx, child, FK_MSG(num, 1)));
    fk_stop_self(ctx);
    return FK_OK;
}

TEST(parent_that_stops_takes_its_newest_child_along)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, spawn_then_stop, &p);
    CHECK(!fk_is_alive(r.sys, doer));
    CHECK(p.started == p.stopped);
    CHECK_U64(p.count + r.letters.of[FK_REASON_STOPPED], 1);
    fk_stats stats;
    fk_stats_get(r.sys, &stats);
    CHECK_U64(stats.actors, 0);
    rig_stop(&r);
}

static fk_err check_state(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    unsigned char *bytes = state;
    size_t size = FK_AS(num, msg)->n & 0xffffffff;
    unsigned char expected = (unsigned char)(FK_AS(num, msg)->n >> 32);
    (void)ctx;
    CHECK_U64((uintptr_t)bytes % 16, 0);
    for (size_t i = 0; i < size; i++) CHECK_U64(bytes[i], expected);
    memset(bytes, 0xee, size); /* dirt for whoever gets the block next */
    return FK_OK;
}

TEST(state_is_zeroed_or_copied_whatever_its_size)
{
    static const size_t SIZES[] = { 1, 8, 48, 49, 100, 1000, 8192, 8193, 100000 };
    static unsigned char init[100000];
    rig r;
    rig_start(&r);
    memset(init, 0x33, sizeof(init));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
            fk_ref zeroed, copied;
            fk_props props = { .receive = check_state, .state_size = SIZES[i] };
            CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &zeroed));
            CHECK_OK(fk_send(r.sys, zeroed, FK_MSG(num, SIZES[i])));
            props.init = init;
            CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &copied));
            CHECK_OK(fk_send(r.sys, copied, FK_MSG(num, SIZES[i] | (uint64_t)0x33 << 32)));
            rig_run(&r);
            CHECK_OK(fk_stop(r.sys, zeroed));
            CHECK_OK(fk_stop(r.sys, copied));
            rig_run(&r);
        }
    }
    CHECK_U64(r.failures.count, 0);
    rig_stop(&r);
}

TEST(props_are_checked)
{
    int x = 0;
    rig r;
    fk_ref ref = { 1, 2, 3 };
    rig_start(&r);
    fk_system *sys = r.sys;
    fk_props good = { .receive = doer_receive };
    fk_props props = { 0 };
    CHECK_ERR(fk_spawn(sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    CHECK_ERR(fk_spawn(sys, FK_STR(""), NULL, &ref), FK_E_INVALID);
    CHECK_ERR(fk_spawn(sys, FK_STR(""), &good, NULL), FK_E_INVALID);
    CHECK_ERR(fk_spawn(NULL, FK_STR(""), &good, &ref), FK_E_INVALID);
    CHECK_ERR(fk_spawn(sys, (fk_str){ NULL, 3 }, &good, &ref), FK_E_INVALID);
    props = (fk_props){ .receive = doer_receive, .state = &x, .state_size = 4 };
    CHECK_ERR(fk_spawn(sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    props = (fk_props){ .receive = doer_receive, .init = &x };
    CHECK_ERR(fk_spawn(sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    props = (fk_props){ .receive = doer_receive, .size = 4 };
    CHECK_ERR(fk_spawn(sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    props = (fk_props){ .receive = doer_receive, .dispatcher = (fk_dispatcher)9 };
    CHECK_ERR(fk_spawn(sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    CHECK_U64(ref.slot, 1); /* written on success only */
    props = (fk_props){ .receive = doer_receive, .size = sizeof(fk_props) };
    CHECK_OK(fk_spawn(sys, FK_STR(""), &props, &ref));
    rig_stop(&r);
}

static fk_err stop_parent(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_stop(fk_system_of(ctx), fk_parent(ctx));
}

TEST(guardian_stopped_by_an_actor_ends_all_and_the_system_can_still_be_stopped)
{
    rig r;
    probe p;
    fk_ref ref;
    rig_start(&r);
    fk_ref other = probe_spawn(&r, &p);
    rig_do(&r, doer_spawn(&r), stop_parent, NULL);
    CHECK(!fk_is_alive(r.sys, other));
    CHECK_ERR(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref),
              FK_E_STOPPING);
    rig_stop(&r);
}
