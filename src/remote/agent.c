/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * /system/remote-watcher: the one actor of the remote part. It watches actors here for others, because
 * only actors can watch, and as a termination hook it holds up the end of the system until the peers
 * have been told. Heartbeats, which are addressed to it, the driver answers itself.
 */

#include "core/send.h"
#include "core/spawn.h"
#include "remote/office.h"

typedef enum fk_agent_task {
    FK_AGENT_BEGIN, /* be a termination hook */
    FK_AGENT_WATCH, /* the subject */
    FK_AGENT_END    /* peers know that we end */
} fk_agent_task;

typedef struct fk_agent_order {
    fk_subject *subject;
    fk_agent_task task;
} fk_agent_order;

typedef struct fk_agent_loss {
    fk_subject *subject; /* has stopped */
} fk_agent_loss;

static const fk_type fk_type_fk_agent_order = { "fk_agent_order", sizeof(fk_agent_order),
                                                _Alignof(fk_agent_order), NULL };
static const fk_type fk_type_fk_agent_loss = { "fk_agent_loss", sizeof(fk_agent_loss),
                                               _Alignof(fk_agent_loss), NULL };

void fk__subject_return(fk_driver *driver, fk_subject *subject)
{
    uintptr_t top = fk__word_load(&driver->stopped, FK_RELAXED);
    do {
        subject->next = (fk_subject *)top;
    } while (!fk__word_cas(&driver->stopped, &top, (uintptr_t)subject, FK_RELEASE));
    if (driver->transport.wake != NULL) driver->transport.wake(driver->transport.ctx);
}

/* It never fails: what cannot be done for want of memory the driver asks for again. */
static void agent_obey(fk_ctx *ctx, fk_driver *driver, const fk_agent_order *order)
{
    fk_subject *subject = order->subject;
    switch (order->task) {
    case FK_AGENT_BEGIN:
        if (fk_hook_register(ctx, 0) == FK_OK) fk__half_store(&driver->is_hooked, 1, FK_RELEASE);
        break;
    case FK_AGENT_WATCH:
        if (fk_watch_with(ctx, subject->ref, FK_MSG(fk_agent_loss, subject)) == FK_OK) break;
        subject->is_unwatched = true;
        fk__subject_return(driver, subject);
        break;
    case FK_AGENT_END: fk_hook_done(ctx); break;
    }
}

static fk_err agent_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_driver *driver = fk__remote_of(fk__ctx_worker(ctx)->sys)->driver;
    (void)state;
    if (msg->type == &fk_type_fk_agent_order) {
        agent_obey(ctx, driver, msg->data);
        return FK_OK;
    }
    if (msg->type == &fk_type_fk_agent_loss) {
        fk__subject_return(driver, ((const fk_agent_loss *)msg->data)->subject);
        return FK_OK;
    }
    if (msg->type == &fk_type_fk_termination_hook) {
        fk__half_store(&driver->is_asked, 1, FK_RELEASE);
        if (driver->transport.wake != NULL) driver->transport.wake(driver->transport.ctx);
        return FK_OK;
    }
    return fk_unhandled(ctx, msg);
}

static bool agent_tell(fk_driver *driver, fk_agent_task task, fk_subject *subject)
{
    if (fk_ref_is_none(driver->agent)) return false;
    return fk__send(driver->local, driver->agent, FK_REF_NONE,
                    FK_MSG(fk_agent_order, subject, task), NULL) == FK_OK;
}

void fk__agent_start(fk_driver *driver)
{
    static const fk_props AGENT = { .receive = agent_receive };
    fk_system *sys = driver->remote->sys;
    bool is_running = fk__half_load(&sys->stopping, FK_ACQUIRE) == FK_SPAWN_OPEN;
    /* Also when it cannot be made now: who asks for another look at once never sleeps. */
    driver->agent_at = fk__time_add(driver->now, FK_MILLIS(100)); /* unless it has begun */
    fk__driver_due(driver, driver->agent_at);
    if (!is_running || sys->top.system == NULL) return;
    if (fk_ref_is_none(driver->agent)) {
        fk_ref ref;
        fk_err err =
            fk__spawn(driver->local, sys->top.system, FK_STR("remote-watcher"), NULL, &AGENT, &ref);
        if (err == FK_OK) driver->agent = ref;
    }
    (void)!agent_tell(driver, FK_AGENT_BEGIN, NULL);
}

bool fk__agent_watch(fk_driver *driver, fk_subject *subject)
{
    return agent_tell(driver, FK_AGENT_WATCH, subject);
}

void fk__agent_parted(fk_driver *driver)
{
    /* If that fails, its time as a hook runs out. */
    (void)!agent_tell(driver, FK_AGENT_END, NULL);
}
