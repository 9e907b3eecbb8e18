/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Out of memory, everywhere: each scenario is run again and again with its first, second, third ...
 * allocation refused, until it passes without a refusal; once with that one allocation refused and
 * once with all after it, too; with pools and with a block of its own for everything. Every run
 * must end with clear errors, a system that still works, and no byte left.
 *
 * The linker's table of allocation sites says what "everywhere" is: at the end each of them must
 * have been refused in both ways. Those of clusters and stores are left to cluster_sweep.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oom/sites.h"
#include "oom/sweep.h"
#include "remote/authority.h"

enum { SITES_MAX = 512, RUNS_MAX = 2000 };

static _Atomic bool refused_at[2][SITES_MAX]; /* once, for ever */

static void note_refusal(void *user, const fk_site *site, bool refused)
{
    const sweep *s = user;
    ptrdiff_t index = site - __start_fk_sites;
    CHECK(site >= __start_fk_sites && site < __stop_fk_sites && index < SITES_MAX);
    if (refused) atomic_store(&refused_at[s->stays][index], true);
}

static void send_kinds(sweep *s, fk_ref to)
{
    token small = make_token(s);
    token_large large = { make_token(s), { 0 } };
    char text[500];
    fk_payload *payload = NULL;
    memset(text, 't', sizeof(text));
    note(s, fk_send(s->r.sys, to, (fk_out){ &fk_type_token, &small }));
    note(s, fk_send(s->r.sys, to, (fk_out){ &fk_type_token_large, &large }));
    note(s, fk_send(s->r.sys, to, FK_MSG(num, 1)));
    note(s, fk_send(s->r.sys, to, FK_TEXT("short")));
    note(s, fk_send(s->r.sys, to, FK_TEXT_AT(((fk_str){ text, 20 }))));
    note(s, fk_send(s->r.sys, to, FK_TEXT_AT(((fk_str){ text, 60 }))));
    note(s, fk_send(s->r.sys, to, FK_BYTES_AT(((fk_str){ text, sizeof(text) }))));
    if (!note(s, fk_payload_create(s->r.sys, &fk_type_token, 20000, &payload))) return;
    token owned_by_payload = make_token(s);
    memcpy(fk_payload_data(payload), &owned_by_payload, sizeof(token));
    note(s, fk_send(s->r.sys, to, FK_MSG_PAYLOAD(fk_payload_share(payload))));
    note(s, fk_send(s->r.sys, to, FK_MSG_PAYLOAD(payload)));
}

/* ---- scenarios: what is done with allocations failing ------------------------------------ */

static void run_ready(sweep *s)
{
    rig_run(&s->r);
}

static void spawn_one(sweep *s, fk_str name, const fk_props *props)
{
    fk_ref ref = FK_REF_NONE;
    bool ok = note(s, fk_spawn(s->r.sys, name, props, &ref));
    CHECK(ok == fk_is_alive(s->r.sys, ref));
}

static void spawn_plain(sweep *s)
{
    spawn_one(s, FK_STR(""), &(fk_props){ .receive = doer_receive });
    spawn_one(s, FK_STR(""), &(fk_props){ .receive = doer_receive, .throughput = 3 });
}

static void spawn_state(sweep *s)
{
    static const unsigned char INIT[20000] = { 1 };
    spawn_one(s, FK_STR(""), &(fk_props){ .receive = doer_receive, .state_size = 100 });
    spawn_one(s, FK_STR(""),
              &(fk_props){ .receive = doer_receive, .state_size = sizeof(INIT), .init = INIT });
}

static void spawn_named(sweep *s)
{
    char name[200];
    memset(name, 'n', sizeof(name));
    spawn_one(s, FK_STR("short"), &(fk_props){ .receive = doer_receive });
    spawn_one(s, (fk_str){ name, sizeof(name) }, &(fk_props){ .receive = doer_receive });
}

static void spawn_bounded(sweep *s)
{
    spawn_one(s, FK_STR("b"),
              &(fk_props){ .receive = doer_receive,
                           .mailbox = FK_MAILBOX_BOUNDED,
                           .capacity = 4,
                           .state_size = 64 });
}

static int64_t no_priority(const fk_msg *msg)
{
    (void)msg;
    return 0;
}

static void spawn_priority(sweep *s)
{
    spawn_one(s, FK_STR("p"),
              &(fk_props){ .receive = doer_receive,
                           .mailbox = FK_MAILBOX_PRIORITY,
                           .priority = no_priority,
                           .state_size = 64 });
}

static void spawn_pinned(sweep *s)
{
    fk_props props = { .receive = doer_receive, .dispatcher = FK_DISPATCHER_PINNED };
    for (int i = 0; i < 3; i++) spawn_one(s, FK_STR(""), &props);
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.capacity = 2;
    spawn_one(s, FK_STR("x"), &props);
}

static void spawn_many(sweep *s)
{
    for (int i = 0; i < 4300; i++) spawn_one(s, FK_STR(""), &(fk_props){ .receive = doer_receive });
}

static void send_all(sweep *s)
{
    for (int i = 0; i < 3; i++) send_kinds(s, s->target);
}

static void send_and_run(sweep *s)
{
    for (int i = 0; i < 3; i++) {
        send_kinds(s, s->target);
        rig_run(&s->r);
    }
}

static void send_nowhere(sweep *s)
{
    send_kinds(s, FK_REF_NONE);
}

static void pass_time(sweep *s)
{
    rig_pass(&s->r, FK_MILLIS(40));
}

static void poison_all(sweep *s)
{
    note(s, fk_poison(s->r.sys, s->target));
    rig_run(&s->r);
}

static void stop_all(sweep *s)
{
    /* Stopping cannot fail: what it may ask for, it can do without. */
    CHECK_OK(fk_stop(s->r.sys, s->doer));
    CHECK_OK(fk_stop(s->r.sys, s->target));
    rig_run(&s->r);
    CHECK(!fk_is_alive(s->r.sys, s->doer));
    CHECK(!fk_is_alive(s->r.sys, s->target));
}

/* ---- the same of the parts that no system drives yet -------------------------------------- */

/* A peer that is met, mapped elsewhere, and quarantined under one uid after the other. */
static void meet_authority(sweep *s, fk_authority_table *table, uint16_t port)
{
    fk_authority_effects fx;
    fk_authority *a = NULL;
    fk_authority_key key = { FK_STR("system"), FK_STR("host"), port };
    if (!note(s, fk__authority_get(table, &key, s->r.now, &fx, &a))) return;
    if (!note(s, fk__authority_map(table, a, FK_STR("elsewhere"), port, s->r.now))) return;
    for (uint64_t uid = 1; uid <= 9; uid++) {
        fk_authority_event event = { .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = uid };
        fk_authority_result result = fk__authority_step(table, a, &event, s->r.now, &fx);
        CHECK(result == FK_AUTHORITY_RESULT_DONE || result == FK_AUTHORITY_RESULT_NOMEM);
        if (!note(s, result == FK_AUTHORITY_RESULT_DONE ? FK_OK : FK_E_NOMEM)) continue;
        event.kind = FK_AUTHORITY_EVENT_INVALID; /* a decision: needs no memory */
        result = fk__authority_step(table, a, &event, s->r.now, &fx);
        CHECK(result == FK_AUTHORITY_RESULT_DONE);
        CHECK(fk__authority_refuses(a, uid));
    }
    fk__authority_table_check(table);
}

static void meet_authorities(sweep *s)
{
    static const fk_hash_key KEY = { 1, 2 };
    fk_mem mem;
    fk_authority_table table;
    fk_envelopes left;
    fk__mem_init(&mem, &s->r.port, 0);
    CHECK_OK(fk__authority_table_init(&table, &mem, NULL, &KEY, 1));
    for (uint16_t port = 1; port <= 17; port++) meet_authority(s, &table, port);
    fk__authority_table_fini(&table, &left);
    CHECK_U64(fk__word_load(&mem.used, FK_RELAXED), 0);
}

/* ---- what actors do with allocations failing --------------------------------------------- */

static fk_err call_spawn_children(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    char name[16];
    for (int i = 0; i < 40; i++) {
        fk_ref ref = FK_REF_NONE;
        fk_props props = { .receive = doer_receive, .state_size = i % 3 == 0 ? 40 : 0 };
        int len = snprintf(name, sizeof(name), "child%d", i);
        note(s, fk_spawn_child(ctx, i % 2 != 0 ? (fk_str){ name, (size_t)len } : FK_STR(""), &props,
                               &ref));
    }
    return FK_OK;
}

static fk_err call_tell(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    for (int i = 0; i < 3; i++) {
        token small = make_token(s);
        token_large large = { make_token(s), { 0 } };
        note(s, fk_tell(ctx, s->target, (fk_out){ &fk_type_token, &small }));
        note(s, fk_tell(ctx, s->target, (fk_out){ &fk_type_token_large, &large }));
        note(s, fk_tell(ctx, s->target, FK_MSG(num, 1)));
        note(s, fk_tell(ctx, s->target, FK_TEXT("text")));
        note(s, fk_reply(ctx, FK_MSG(num, 2)));
        note(s, fk_send_from(s->r.sys, s->target, fk_self(ctx), FK_MSG(num, 3)));
    }
    return FK_OK;
}

static fk_err call_become(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    int deep = 0;
    for (int i = 0; i < 40; i++) deep += note(s, fk_become(ctx, doer_receive));
    for (int i = 0; i < deep; i++) CHECK_OK(fk_unbecome(ctx));
    CHECK_ERR(fk_unbecome(ctx), FK_E_STATE);
    return FK_OK;
}

static fk_err call_timers(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    for (uint64_t key = 0; key < 12; key++) {
        token small = make_token(s);
        fk_timer_mode mode = (fk_timer_mode)(key % 3);
        note(s, fk_timer_start(ctx, key, mode, FK_MILLIS(3), (fk_out){ &fk_type_token, &small }));
    }
    for (uint64_t key = 0; key < 12; key += 4) { /* replaced, or the old one goes on */
        token_large large = { make_token(s), { 0 } };
        bool was_active = fk_timer_is_active(ctx, key);
        bool ok = note(s, fk_timer_start(ctx, key, FK_TIMER_FIXED_RATE, FK_MILLIS(2),
                                         (fk_out){ &fk_type_token_large, &large }));
        CHECK(fk_timer_is_active(ctx, key) == (ok || was_active));
    }
    return FK_OK;
}

static fk_err call_timer_of_payload(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    fk_payload *payload = NULL;
    if (!note(s, fk_payload_create(s->r.sys, NULL, 700, &payload))) return FK_OK;
    note(s, fk_timer_start(ctx, 1, FK_TIMER_FIXED_RATE, FK_MILLIS(3), FK_MSG_PAYLOAD(payload)));
    note(s, fk_timer_start(ctx, 2, FK_TIMER_ONCE, FK_MILLIS(3), FK_MSG(num, 1)));
    return FK_OK;
}

static fk_err call_timeout(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    note(s, fk_receive_timeout_set(ctx, FK_MILLIS(5)));
    note(s, fk_receive_timeout_set(ctx, FK_MILLIS(4)));
    return FK_OK;
}

static fk_err call_spawn_top(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    fk_ref ref = FK_REF_NONE;
    (void)ctx;
    note(s, fk_spawn(s->r.sys, FK_STR("top"), &(fk_props){ .receive = doer_receive }, &ref));
    return FK_OK;
}

/* A target that stashes everything until a text of three letters comes. */
static fk_err stashing(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sweep *s = state;
    if (msg->type == &fk_type_text && msg->len == 3)
        note(s, fk_unstash_all(ctx));
    else if (s->probe.count++ < 30)
        note(s, fk_stash(ctx));
    return FK_OK;
}

static fk_err forwarding(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sweep *s = state;
    (void)msg;
    note(s, fk_forward(ctx, s->doer));
    return FK_OK;
}

/* Starts timers on the first message; stashes or forwards what they bring. */
static fk_err timing(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sweep *s = state;
    const rig_call *call = FK_AS(rig_call, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    if (s->probe.count++ % 2 == 0)
        note(s, fk_forward(ctx, s->doer));
    else
        note(s, fk_stash(ctx));
    return FK_OK;
}

/* ---- preparing: everything works ---------------------------------------------------------- */

static void target_is(sweep *s, fk_props props)
{
    if (s == NULL) return;
    if (props.state == NULL) props.state = &s->probe;
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
}

static void prepare_probe(sweep *s)
{
    target_is(s, (fk_props){ .receive = probe_receive });
}

static void prepare_bounded(sweep *s)
{
    target_is(s, (fk_props){ .receive = probe_receive,
                             .mailbox = FK_MAILBOX_BOUNDED,
                             .overflow = FK_OVERFLOW_DROP_OLDEST,
                             .capacity = 5 });
}

static void prepare_heap(sweep *s)
{
    target_is(s, (fk_props){ .receive = probe_receive,
                             .mailbox = FK_MAILBOX_STABLE,
                             .priority = no_priority });
    for (int i = 0; i < 10; i++) send_kinds(s, s->target);
    CHECK_U64(s->failed, 0);
}

static void prepare_stash(sweep *s)
{
    target_is(s, (fk_props){ .receive = stashing, .state = s });
    for (int i = 0; i < 3; i++) send_kinds(s, s->target);
    CHECK_OK(fk_send(s->r.sys, s->target, FK_TEXT("all")));
    for (int i = 0; i < 2; i++) send_kinds(s, s->target);
    CHECK_OK(fk_send(s->r.sys, s->target, FK_TEXT("all")));
    CHECK_U64(s->failed, 0);
}

static void prepare_forward(sweep *s)
{
    target_is(s, (fk_props){ .receive = forwarding, .state = s });
    for (int i = 0; i < 2; i++) send_kinds(s, s->target);
    CHECK_U64(s->failed, 0);
}

static void prepare_timing(sweep *s)
{
    target_is(s, (fk_props){ .receive = timing, .state = s });
    CHECK_OK(fk_send(s->r.sys, s->target, FK_MSG(rig_call, call_timer_of_payload, s)));
}

static void prepare_call(sweep *s, rig_call_fn fn)
{
    prepare_probe(s);
    CHECK_OK(fk_send_from(s->r.sys, s->doer, s->target, FK_MSG(rig_call, fn, s)));
}

static void prepare_children(sweep *s)
{
    prepare_call(s, call_spawn_children);
}

static void prepare_tell(sweep *s)
{
    prepare_call(s, call_tell);
}

static void prepare_become(sweep *s)
{
    prepare_call(s, call_become);
}

static void prepare_timers(sweep *s)
{
    prepare_call(s, call_timers);
}

static void prepare_timeout(sweep *s)
{
    prepare_call(s, call_timeout);
}

static void prepare_top(sweep *s)
{
    prepare_call(s, call_spawn_top);
}

/* With threads: holds the doer until the allocations begin to fail. */
static fk_err call_wait(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    (void)ctx;
    while (!atomic_load(&s->open)) test_sleep_ms(0);
    return FK_OK;
}

static fk_err call_passed(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    (void)ctx;
    atomic_store(&s->passed, true);
    return FK_OK;
}

static void prepare_gate(sweep *s)
{
    CHECK_OK(fk_send(s->r.sys, s->doer, FK_MSG(rig_call, call_wait, s)));
    prepare_tell(s);
    CHECK_OK(fk_send(s->r.sys, s->doer, FK_MSG(rig_call, call_passed, s)));
}

static void open_gate(sweep *s)
{
    int64_t deadline = test_clock() + FK_SECONDS(20);
    atomic_store(&s->open, true);
    while (!atomic_load(&s->passed) && test_clock() < deadline) test_sleep_ms(0);
    CHECK(atomic_load(&s->passed));
}

/* More actors ready at once than a worker's ring holds. */
static void prepare_crowd(sweep *s)
{
    for (int i = 0; i < 1500; i++) {
        fk_ref ref;
        CHECK_OK(fk_spawn(s->r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref));
        send_kinds(s, ref);
    }
    CHECK_U64(s->failed, 0);
}

static void prepare_running_timers(sweep *s)
{
    prepare_timers(s);
    rig_run(&s->r);
    CHECK_U64(s->failed, 0);
}

static void prepare_busy(sweep *s)
{
    prepare_stash(s);
    CHECK_OK(fk_send(s->r.sys, s->doer, FK_MSG(rig_call, call_timers, s)));
    rig_run(&s->r);
}

/* ---- the list ----------------------------------------------------------------------------- */

static const scenario SCENARIOS[] = {
    { "start without threads", NULL, NULL, 0 },
    { "start with two workers", NULL, NULL, 2 },
    { "spawn", NULL, spawn_plain, 0 },
    { "spawn with state", NULL, spawn_state, 0 },
    { "spawn with a name", NULL, spawn_named, 0 },
    { "spawn with a bounded mailbox", NULL, spawn_bounded, 0 },
    { "spawn with a priority mailbox", NULL, spawn_priority, 0 },
    { "spawn pinned", NULL, spawn_pinned, 2 },
    { "spawn thousands", NULL, spawn_many, 0 },
    { "spawn with threads", NULL, spawn_named, 2 },
    { "spawn children", prepare_children, run_ready, 0 },
    { "spawn at the top from inside", prepare_top, run_ready, 0 },
    { "send", prepare_probe, send_all, 0 },
    { "send and run", prepare_probe, send_and_run, 0 },
    { "send to a bounded mailbox", prepare_bounded, send_all, 0 },
    { "send to nobody", NULL, send_nowhere, 0 },
    { "send with threads", prepare_probe, send_all, 2 },
    { "tell and reply", prepare_tell, run_ready, 0 },
    { "tell with threads", prepare_gate, open_gate, 2 },
    { "thousands ready at once", prepare_crowd, run_ready, 0 },
    { "forward", prepare_forward, run_ready, 0 },
    { "stash and unstash", prepare_stash, run_ready, 0 },
    { "become", prepare_become, run_ready, 0 },
    { "heap of a priority mailbox", prepare_heap, run_ready, 0 },
    { "start timers", prepare_timers, run_ready, 0 },
    { "timers firing", prepare_running_timers, pass_time, 0 },
    { "timers' messages stashed and forwarded", prepare_timing, pass_time, 0 },
    { "receive timeout", prepare_timeout, pass_time, 0 },
    { "poison", prepare_probe, poison_all, 0 },
    { "stop", prepare_busy, stop_all, 0 },
    { "meet other systems", NULL, meet_authorities, 0 },
};

/* ---- one run ------------------------------------------------------------------------------ */

static fk_err follow_up_call(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    fk_ref child;
    (void)s;
    CHECK_OK(fk_spawn_child(ctx, FK_STR("after"), &(fk_props){ .receive = doer_receive }, &child));
    CHECK_OK(fk_timer_start(ctx, 99, FK_TIMER_ONCE, 0, FK_MSG(num, 1)));
    CHECK_OK(fk_become(ctx, doer_receive));
    return FK_OK;
}

/* With memory again, everything works. */
static void check_usable(sweep *s, uint32_t workers)
{
    probe p;
    fk_ref ref, doer;
    fk_props props = probe_props(&p);
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("after-the-flood"), &props, &ref));
    CHECK_OK(fk_spawn(s->r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &doer));
    CHECK_OK(fk_send(s->r.sys, doer, FK_MSG(rig_call, follow_up_call, s)));
    uint64_t failed = s->failed;
    send_kinds(s, ref);
    CHECK_U64(s->failed, failed);
    CHECK_OK(fk_poison(s->r.sys, ref));
    if (workers == 0) rig_pass(&s->r, FK_MILLIS(50));
    CHECK_OK(fk_await_stopped(s->r.sys, ref, FK_SECONDS(20)));
    CHECK_OK(fk_poison(s->r.sys, doer));
    if (workers == 0) rig_run(&s->r);
    CHECK_OK(fk_await_stopped(s->r.sys, doer, FK_SECONDS(20)));
    CHECK_U64(p.count, 9);
    bool was_used = s->doer.generation != 0 && fk_is_alive(s->r.sys, s->doer);
    if (workers == 0 && was_used && !s->may_fail) {
        fk_stats stats;
        fk_stats_get(s->r.sys, &stats);
        CHECK_U64(stats.failures, 0);
    }
}

/* Returns how many allocations were refused. */
static uint64_t run(const scenario *what, bool direct, bool stays, uint64_t at)
{
    static sweep s;
    memset(&s, 0, sizeof(s));
    s.direct = direct;
    s.stays = stays;
    rig_init(&s.r);
    s.r.on_admit = note_refusal;
    s.r.on_admit_user = &s;
    uint32_t workers = what->workers % SWEEP_LISTENS;
    fk_system_config config = { .workers = workers,
                                .pools_malloc = direct,
                                .remoting = { .quarantine = FK_SECONDS(1) } };
    if (what->workers >= SWEEP_LISTENS) {
        config.remoting.enabled = true;
        config.remoting.host = "127.0.0.1";
        config.remoting.give_up_after = FK_MINUTES(10);
        config.remoting.compress_every = FK_MILLIS(100);
        config.remoting.heartbeat_every = FK_MILLIS(50);
        config.remoting.reconnect_max = FK_MILLIS(200);
    }
    if (what->name[0] == '@') { /* a system that others can write to */
        config.remoting.host = "10.0.0.1";
        config.remoting.port = 1;
    }
    if (what->act == NULL) { /* starting is what may fail */
        rig_fault(&s.r, at, stays);
        fk_err err = rig_try_start(&s.r, &config);
        uint64_t refused = atomic_load(&s.r.refused);
        rig_fault(&s.r, 0, false);
        if (!note(&s, err)) {
            CHECK(refused > 0);
            rig_check_empty(&s.r);
            CHECK_OK(rig_try_start(&s.r, &config));
        }
        check_usable(&s, workers);
        rig_stop(&s.r);
        return refused;
    }
    CHECK_OK(rig_try_start(&s.r, &config));
    CHECK_OK(fk_spawn(s.r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &s.doer));
    if (what->prepare != NULL) what->prepare(&s);
    rig_fault(&s.r, at, stays);
    what->act(&s);
    uint64_t refused = atomic_load(&s.r.refused);
    rig_fault(&s.r, 0, false);
    if (refused == 0) CHECK_U64(s.failed, 0);
    if (s.finish != NULL) s.finish(&s);
    check_usable(&s, workers);
    rig_stop(&s.r);
    CHECK_U64(atomic_load(&s.dropped), atomic_load(&s.made));
    return refused;
}

static uint64_t sweep_scenario(const scenario *what, bool direct, bool stays)
{
    uint64_t at = 1;
    while (run(what, direct, stays, at) > 0) {
        at++;
        if (at > RUNS_MAX) test_failed(__FILE__, __LINE__, "%s does not end", what->name);
    }
    return at - 1;
}

static uint64_t sweep_in_all_ways(const scenario *what)
{
    uint64_t runs[4];
    for (int mode = 0; mode < 4; mode++) {
        runs[mode] = sweep_scenario(what, mode / 2 == 0, mode % 2 != 0);
    }
    printf("%-40s direct %llu %llu  pools %llu %llu\n", what->name, (unsigned long long)runs[0],
           (unsigned long long)runs[1], (unsigned long long)runs[2], (unsigned long long)runs[3]);
    return runs[0] + runs[1] + runs[2] + runs[3];
}

TEST(sweep_every_allocation_of_every_scenario)
{
    uint64_t all = 0;
    size_t scenarios = 0;
    unsetenv("FK_POOLS"); /* each run says itself which it wants */
    for (size_t i = 0; i < sizeof(SCENARIOS) / sizeof(SCENARIOS[0]); i++, scenarios++) {
        all += sweep_in_all_ways(&SCENARIOS[i]);
    }
    static const scenario *const MORE[] = { SWEEP_PATHS,   SWEEP_SHUTDOWN,    SWEEP_EVENTS,
                                            SWEEP_LIVES,   SWEEP_SUPERVISION, SWEEP_ASK,
                                            SWEEP_ROUTERS, SWEEP_MAIL,        SWEEP_NET,
                                            SWEEP_REMOTE };
    size_t groups = sizeof(MORE) / sizeof(MORE[0]);
    if (!sweep_has_network()) groups -= 2;
    for (size_t i = 0; i < groups; i++) {
        for (const scenario *what = MORE[i]; what->name != NULL; what++, scenarios++) {
            all += sweep_in_all_ways(what);
        }
    }
    printf("%llu allocations refused in %zu scenarios\n", (unsigned long long)all, scenarios);
    CHECK(all > 500);
}

TEST(sweep_refused_every_site_once_and_for_ever)
{
    static const char *const WAY[2] = { "once", "for ever" };
    size_t all = (size_t)(__stop_fk_sites - __start_fk_sites), sites = 0, failed = 0;
    CHECK(all > 10 && all <= SITES_MAX);
    for (size_t i = 0; i < all; i++) {
        bool both = true;
        if (site_is_of_cluster(&__start_fk_sites[i])) continue;
        sites++;
        for (int way = 0; way < 2; way++) {
            if (atomic_load(&refused_at[way][i])) continue;
            both = false;
            printf("never refused %s: \"%s\" at %s:%d\n", WAY[way], __start_fk_sites[i].what,
                   __start_fk_sites[i].file, __start_fk_sites[i].line);
        }
        failed += both;
    }
    printf("sites %zu failed %zu\n", sites, failed);
    CHECK_U64(failed, sites);
}
