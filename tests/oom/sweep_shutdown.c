/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coordinated shutdown without memory. The system must be usable afterwards, so it is not terminated. */

#include "oom/sweep.h"

static size_t begun, added;

static void task(fk_system *sys, fk_shutdown_task self, void *user)
{
    (void)user;
    begun++;
    CHECK_OK(fk_shutdown_task_done(sys, self, FK_OK));
}

static bool add(sweep *s, fk_str phase)
{
    bool ok = note(s, fk_shutdown_task_add(s->r.sys, phase, FK_STR("task"), task, s, NULL));
    added += ok;
    return ok;
}

static bool add_actor(sweep *s, fk_shutdown_task *out)
{
    token_large large = { make_token(s), { 0 } };
    return note(s, fk_shutdown_task_add_actor(s->r.sys, FK_STR("service-stop"), FK_STR("actor"),
                                              s->target, (fk_out){ &fk_type_token_large, &large },
                                              out));
}

static void prepare_target(sweep *s)
{
    fk_props props = { .receive =
                           doer_receive }; /* does not want what it gets, and does not answer */
    begun = added = 0;
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
}

/* What cannot be reserved is refused; what was begins. */
static void finish(sweep *s)
{
    fk_err outcome = FK_E_UNSUPPORTED;
    CHECK_OK(fk_stop(s->r.sys, s->target));
    rig_run(&s->r);
    rig_pass(&s->r, FK_MILLIS(50));
    /* A block for each beat of its timer is not reserved: without any it waits for memory. */
    atomic_store(&s->r.fault_at, 0);
    rig_pass(&s->r, FK_MILLIS(50));
    if (fk_shutdown_reason(s->r.sys, NULL, 0) == 0) return; /* it has not begun */
    CHECK(fk_shutdown_is_over(s->r.sys, &outcome));
    CHECK_ERR(outcome, FK_OK);
    CHECK_U64(begun, added);
}

static void reserve_and_run(sweep *s)
{
    const fk_shutdown_phase off = { .name = FK_STR("actor-system-terminate"), .disabled = true };
    if (!note(s, fk_shutdown_phase_set(s->r.sys, &off))) return;
    for (int i = 0; i < 10; i++) add(s, FK_STR("service-unbind"));
    fk_shutdown_task actor = { 0 };
    if (add_actor(s, &actor)) CHECK_OK(fk_shutdown_task_cancel(s->r.sys, actor));
    CHECK_OK(fk_shutdown_run(s->r.sys, FK_STR("sweep")));
    finish(s);
}

static void prepare_reserved(sweep *s)
{
    const fk_shutdown_phase off = { .name = FK_STR("actor-system-terminate"), .disabled = true };
    prepare_target(s);
    CHECK_OK(fk_shutdown_phase_set(s->r.sys, &off));
    for (int i = 0; i < 10; i++) CHECK(add(s, FK_STR("service-unbind")));
    CHECK(add_actor(s, NULL));
    rig_run(&s->r);
}

/* Once all is reserved, nothing can fail. */
static void run_reserved(sweep *s)
{
    CHECK_OK(fk_shutdown_run(s->r.sys, FK_STR("sweep")));
    rig_run(&s->r);
    finish(s);
}

const scenario SWEEP_SHUTDOWN[] = {
    { "reserve and run a shutdown", prepare_target, reserve_and_run, 0 },
    { "run a shutdown that is reserved", prepare_reserved, run_reserved, 0 },
    { NULL, NULL, NULL, 0 },
};
