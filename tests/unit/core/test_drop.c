/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a message owns is released exactly once, whatever becomes of the message. */

#include <string.h>

#include "support/rig.h"

typedef struct kinds {
    _Atomic int drops[3]; /* inline, large, payload */
} kinds;

static fk_out inline_out(owned *m, kinds *k)
{
    *m = (owned){ &k->drops[0], 1 };
    return (fk_out){ &fk_type_owned, m };
}

static fk_out large_out(owned_large *m, kinds *k)
{
    m->drops = &k->drops[1];
    m->n = 77;
    memset(m->filling, 77, sizeof(m->filling));
    return (fk_out){ &fk_type_owned_large, m };
}

static fk_payload *owned_payload(fk_system *sys, kinds *k)
{
    fk_payload *payload = NULL;
    CHECK_OK(fk_payload_create(sys, &fk_type_owned, sizeof(owned), &payload));
    *(owned *)fk_payload_data(payload) = (owned){ &k->drops[2], 3 };
    return payload;
}

/* Sends one of each kind; returns the result, which is the same for all of them. */
static fk_err send_all(fk_system *sys, fk_ref to, kinds *k)
{
    owned small;
    owned_large large;
    fk_err err = fk_send(sys, to, inline_out(&small, k));
    CHECK_ERR(fk_send(sys, to, large_out(&large, k)), err);
    CHECK_ERR(fk_send(sys, to, FK_MSG_PAYLOAD(owned_payload(sys, k))), err);
    return err;
}

static void check_drops(const kinds *k, int each)
{
    for (int i = 0; i < 3; i++) CHECK_U64(atomic_load(&k->drops[i]), each);
}

TEST(drop_once_after_delivery)
{
    kinds k = { 0 };
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = probe_spawn(&r, &p);
    CHECK_OK(send_all(r.sys, to, &k));
    check_drops(&k, 0); /* not before it was handled */
    rig_run(&r);
    CHECK_U64(p.count, 3);
    check_drops(&k, 1);
    rig_stop(&r);
    check_drops(&k, 1);
}

TEST(drop_once_as_dead_letter_to_nobody)
{
    kinds k = { 0 };
    rig r;
    rig_start(&r);
    CHECK_OK(send_all(r.sys, FK_REF_NONE, &k));
    check_drops(&k, 1);
    CHECK_U64(r.letters.of[FK_REASON_NO_RECEIVER], 3);
    rig_stop(&r);
    check_drops(&k, 1);
}

TEST(drop_once_when_the_receiver_stops_before_it)
{
    kinds k = { 0 };
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = probe_spawn(&r, &p);
    CHECK_OK(send_all(r.sys, to, &k));
    CHECK_OK(fk_stop(r.sys, to));
    rig_run(&r);
    CHECK_U64(p.count, 0);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 3);
    check_drops(&k, 1);
    CHECK_OK(send_all(r.sys, to, &k));
    check_drops(&k, 2);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 6);
    rig_stop(&r);
    check_drops(&k, 2);
}

TEST(drop_once_when_the_system_stops_before_it)
{
    kinds k = { 0 };
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = probe_spawn(&r, &p);
    CHECK_OK(send_all(r.sys, to, &k));
    rig_stop(&r);
    check_drops(&k, 1);
    CHECK_U64(p.count + r.letters.count, 3);
}

TEST(drop_once_when_the_mailbox_is_full)
{
    for (int overflow = FK_OVERFLOW_FAIL; overflow <= FK_OVERFLOW_DROP_OLDEST; overflow++) {
        kinds k = { 0 };
        rig r;
        probe p;
        rig_start(&r);
        fk_props props = probe_props(&p);
        props.mailbox = FK_MAILBOX_BOUNDED;
        props.overflow = (fk_overflow)overflow;
        props.capacity = 3;
        fk_ref to;
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &to));
        CHECK_OK(send_all(r.sys, to, &k));
        check_drops(&k, 0);
        fk_err err = send_all(r.sys, to, &k);
        CHECK_ERR(err, overflow == FK_OVERFLOW_FAIL ? FK_E_FULL : FK_OK);
        check_drops(&k, 1);
        rig_run(&r);
        CHECK_U64(p.count, 3);
        check_drops(&k, 2);
        rig_stop(&r);
        check_drops(&k, 2);
    }
}

TEST(drop_once_without_memory)
{
    /* Fails each allocation of the three sends in turn, with and without pools. */
    for (int direct = 0; direct < 2; direct++) {
        uint64_t refused = 1;
        for (uint64_t n = 1; refused > 0; n++) {
            kinds k = { 0 };
            rig r;
            probe p;
            fk_payload *payload;
            rig_start_with(&r, (fk_system_config){ .pools_malloc = direct != 0 });
            fk_ref to = probe_spawn(&r, &p);
            rig_run(&r);
            payload = owned_payload(r.sys, &k);
            owned small;
            owned_large large;
            rig_fault(&r, n, true);
            fk_err errs[3];
            errs[0] = fk_send(r.sys, to, inline_out(&small, &k));
            errs[1] = fk_send(r.sys, to, large_out(&large, &k));
            errs[2] = fk_send(r.sys, to, FK_MSG_PAYLOAD(payload));
            refused = atomic_load(&r.refused);
            rig_fault(&r, 0, false);
            size_t failed = 0;
            for (int i = 0; i < 3; i++) {
                if (errs[i] != FK_OK) CHECK_ERR(errs[i], FK_E_NOMEM);
                failed += errs[i] != FK_OK;
            }
            CHECK_U64(failed, r.letters.of[FK_REASON_NO_MEMORY]);
            rig_run(&r);
            CHECK_U64(p.count, 3 - failed);
            check_drops(&k, 1);
            rig_stop(&r);
            check_drops(&k, 1);
            CHECK(n < 100);
        }
    }
}

static fk_err forward_all(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)msg;
    fk_err err = fk_forward(ctx, *(fk_ref *)state);
    CHECK_ERR(fk_forward(ctx, *(fk_ref *)state), FK_E_STATE); /* it is gone */
    CHECK_ERR(fk_stash(ctx), FK_E_STATE);
    return err;
}

TEST(drop_once_when_forwarded)
{
    kinds k = { 0 };
    rig r;
    probe p;
    rig_start(&r);
    fk_ref end = probe_spawn(&r, &p), middle, nowhere, none = FK_REF_NONE;
    CHECK_OK(
        fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = forward_all, .state = &end }, &middle));
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = forward_all, .state = &none },
                      &nowhere));
    CHECK_OK(send_all(r.sys, middle, &k));
    rig_run(&r);
    CHECK_U64(p.count, 3);
    check_drops(&k, 1);
    CHECK_OK(send_all(r.sys, nowhere, &k));
    rig_run(&r);
    check_drops(&k, 2);
    CHECK_U64(r.letters.of[FK_REASON_NO_RECEIVER], 3);
    rig_stop(&r);
    check_drops(&k, 2);
}

static fk_err stash_all(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    fk_err err = fk_stash(ctx);
    CHECK_ERR(fk_stash(ctx), FK_E_STATE);
    CHECK_ERR(fk_forward(ctx, FK_REF_NONE), FK_E_STATE);
    return err;
}

TEST(drop_once_when_stashed_at_stop)
{
    kinds k = { 0 };
    rig r;
    fk_ref to;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = stash_all }, &to));
    CHECK_OK(send_all(r.sys, to, &k));
    rig_run(&r);
    check_drops(&k, 0);
    CHECK_OK(fk_stop(r.sys, to));
    rig_run(&r);
    check_drops(&k, 1);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 3);
    rig_stop(&r);
    check_drops(&k, 1);
}

static fk_err fail_always(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_E_INVALID;
}

TEST(drop_once_when_receive_fails)
{
    kinds k = { 0 };
    rig r;
    fk_ref to;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = fail_always }, &to));
    CHECK_OK(send_all(r.sys, to, &k));
    rig_run(&r);
    CHECK(r.failures.count >= 1);
    rig_stop(&r);
    check_drops(&k, 1);
}

static int64_t equal_priority(const fk_msg *msg)
{
    (void)msg;
    return 5;
}

TEST(drop_once_in_every_kind_of_mailbox_at_stop)
{
    for (int kind = FK_MAILBOX_UNBOUNDED; kind <= FK_MAILBOX_CONTROL; kind++) {
        kinds k = { 0 };
        rig r;
        probe p;
        rig_start(&r);
        fk_props props = probe_props(&p);
        props.mailbox = (fk_mailbox_kind)kind;
        props.capacity = 100;
        props.throughput = 1;
        props.priority = kind >= FK_MAILBOX_PRIORITY ? equal_priority : NULL;
        fk_ref to;
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &to));
        for (int i = 0; i < 5; i++) CHECK_OK(send_all(r.sys, to, &k));
        for (int i = 0; i < 3; i++) fk_host_run_once(r.sys, 0);
        CHECK_OK(send_all(r.sys, to, &k));
        CHECK_OK(fk_stop(r.sys, to));
        rig_stop(&r);
        check_drops(&k, 6);
        CHECK_U64(p.count + r.letters.count, 18);
    }
}

typedef struct start_args {
    kinds *k;
    fk_err expected;
    fk_time period;
    fk_timer_mode mode;
} start_args;

static fk_err start_owned_timer(fk_ctx *ctx, void *arg)
{
    start_args *a = arg;
    owned small;
    owned_large large;
    CHECK_ERR(fk_timer_start(ctx, 1, a->mode, a->period, inline_out(&small, a->k)), a->expected);
    CHECK_ERR(fk_timer_start(ctx, 2, a->mode, a->period, large_out(&large, a->k)), a->expected);
    fk_payload *payload = owned_payload(fk_system_of(ctx), a->k);
    CHECK_ERR(fk_timer_start(ctx, 3, a->mode, a->period, FK_MSG_PAYLOAD(payload)), a->expected);
    return FK_OK;
}

TEST(drop_once_of_timer_messages)
{
    kinds k = { 0 };
    rig r;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    start_args bad = { &k, FK_E_INVALID, -1, FK_TIMER_ONCE };
    rig_do(&r, doer, start_owned_timer, &bad);
    check_drops(&k, 1); /* refused */
    start_args once = { &k, FK_OK, FK_MILLIS(10), FK_TIMER_ONCE };
    rig_do(&r, doer, start_owned_timer, &once);
    check_drops(&k, 1);
    rig_pass(&r, FK_MILLIS(20));
    check_drops(&k, 2); /* delivered */
    rig_do(&r, doer, start_owned_timer, &once);
    rig_do(&r, doer, start_owned_timer, &once);
    check_drops(&k, 3); /* replaced */
    CHECK_OK(fk_stop(r.sys, doer));
    rig_run(&r);
    check_drops(&k, 4); /* ended with its actor */
    rig_stop(&r);
    check_drops(&k, 4);
}

TEST(drop_of_a_periodic_timer_once_at_its_end)
{
    kinds k = { 0 };
    rig r;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    start_args rate = { &k, FK_OK, FK_MILLIS(10), FK_TIMER_FIXED_RATE };
    rig_do(&r, doer, start_owned_timer, &rate);
    rig_pass(&r, FK_MILLIS(55));
    CHECK(r.letters.of[FK_REASON_UNHANDLED] >= 12); /* the doer does not know them */
    check_drops(&k, 0);
    CHECK_OK(fk_stop(r.sys, doer));
    rig_stop(&r);
    check_drops(&k, 1);
}
