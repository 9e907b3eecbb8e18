/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a user may do wrong, or at a bad moment: a clear error, no crash, no hang. */

#include <stdint.h>

#include "support/rig.h"

TEST(misuse_payload_that_is_null_is_refused)
{
    rig r;
    probe p;
    fk_payload *none = NULL;
    rig_start(&r);
    fk_ref ref = probe_spawn(&r, &p);
    CHECK_ERR(fk_send(r.sys, ref, FK_MSG_PAYLOAD(none)), FK_E_INVALID);
    rig_run(&r);
    CHECK_U64(p.count, 0);
    CHECK_U64(r.letters.of[FK_REASON_BAD_TYPE], 1);
    rig_stop(&r);
}

TEST(misuse_sizes_that_wrap_are_refused)
{
    rig r;
    fk_payload *payload;
    fk_ref ref;
    fk_props huge = { .receive = doer_receive, .state_size = SIZE_MAX };
    rig_start(&r);
    CHECK(fk_payload_create(r.sys, NULL, SIZE_MAX - 160, &payload) != FK_OK);
    CHECK(fk_payload_create(r.sys, NULL, SIZE_MAX / 2, &payload) != FK_OK);
    CHECK(fk_spawn(r.sys, FK_STR(""), &huge, &ref) != FK_OK);
    rig_stop(&r);
}

static int64_t urgent(const fk_msg *msg)
{
    (void)msg;
    return -1;
}

/* Each message sends the next one, more urgent than anything: poison must still be reached. */
static fk_err go_on(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_tell(ctx, fk_self(ctx), FK_MSG(num, 1));
}

TEST(misuse_poison_stops_a_priority_mailbox_that_never_empties)
{
    rig r;
    fk_ref ref;
    fk_props props = { .receive = go_on, .mailbox = FK_MAILBOX_PRIORITY, .priority = urgent };
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
    CHECK_OK(fk_poison(r.sys, ref));
    for (int i = 0; i < 100 && fk_is_alive(r.sys, ref); i++) fk_host_run_once(r.sys, 0);
    CHECK(!fk_is_alive(r.sys, ref));
    rig_stop(&r);
}

static fk_err run_again(fk_ctx *ctx, void *arg)
{
    size_t *turns = arg;
    *turns = fk_host_run_once(fk_system_of(ctx), 0);
    return FK_OK;
}

TEST(misuse_run_once_inside_receive_or_with_a_negative_timeout_returns_at_once)
{
    rig r;
    size_t turns = 99;
    rig_start(&r);
    rig_do(&r, doer_spawn(&r), run_again, &turns);
    CHECK_U64(turns, 0);
    fk_host_run_once(r.sys, -FK_SECONDS(1)); /* must come back */
    rig_stop(&r);
}

static fk_err wait_inside(fk_ctx *ctx, void *arg)
{
    fk_err *err = arg;
    *err = fk_await_stopped(fk_system_of(ctx), fk_self(ctx), FK_SECONDS(60));
    return FK_OK;
}

TEST(misuse_waiting_for_oneself_is_refused)
{
    rig r;
    fk_err err = FK_OK;
    rig_start(&r);
    rig_do(&r, doer_spawn(&r), wait_inside, &err);
    CHECK_ERR(err, FK_E_STATE);
    rig_stop(&r);
}

typedef struct impatient {
    rig r; /* first: the callbacks' user is the rig */
    fk_err stopped, termination, shutdown, stop;
    int calls;
} impatient;

static void wait_in_callback(void *user, const fk_event *event)
{
    impatient *i = user;
    if (event->kind != FK_EVENT_LOG) return;
    fk_system *sys = i->r.sys;
    i->calls++;
    i->stopped = fk_await_stopped(sys, fk_guardian(sys, FK_GUARDIAN_USER), FK_SECONDS(60));
    i->termination = fk_await_termination(sys, FK_SECONDS(60));
    i->shutdown = fk_shutdown_await(sys, FK_SECONDS(60), NULL);
    i->stop = fk_system_stop(sys);
}

TEST(misuse_waiting_in_a_callback_is_refused_on_outside_threads_too)
{
    static impatient i;
    fk_subscription subscription;
    rig_start_with(&i.r, (fk_system_config){ .workers = 2 });
    CHECK_OK(
        fk_subscribe(i.r.sys, FK_TOPIC_LOG, FK_LEVEL_DEBUG, wait_in_callback, &i, &subscription));
    fk_log(i.r.sys, FK_LEVEL_ERROR, FK_REF_NONE, FK_STR("now"));
    CHECK_U64(i.calls, 1);
    CHECK_ERR(i.stopped, FK_E_STATE);
    CHECK_ERR(i.termination, FK_E_STATE);
    CHECK_ERR(i.shutdown, FK_E_STATE);
    CHECK_ERR(i.stop, FK_E_STATE);
    rig_stop(&i.r);
}

TEST(misuse_port_that_cannot_wait_has_no_threads)
{
    fk_system *sys;
    fk_port port = fk_host_port();
    port.wait = NULL;
    port.notify = NULL;
    fk_system_config config = { .workers = 1, .port = &port };
    CHECK_ERR(fk_system_start(&config, &sys), FK_E_INVALID);
}
