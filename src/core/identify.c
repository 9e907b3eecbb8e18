/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who is there? Answers in the name of actors, and a thread that waits for one. */

#include "core/select.h"

#include "fraktor/select.h"

#include "core/send.h"
#include "core/spawn.h"

const fk_type fk_type_fk_identity = { "fk_identity", sizeof(fk_identity), _Alignof(fk_identity),
                                      NULL };

void fk__identify_answer(fk_local *local, const fk_msg *msg, fk_ref ref)
{
    fk_identity identity = { 0, ref };
    if (fk_ref_is_none(msg->sender)) return;
    memcpy(&identity.id, msg->data, sizeof(identity.id));
    fk_out answer = { &fk_type_fk_identity, &identity };
    fk__send(local, msg->sender, ref, answer, NULL);
}

/* What a thread in fk_resolve_one() and the actor that waits for the answer share. Whoever is the
 * last to leave frees it. */
typedef struct fk_inquiry {
    fk_half answered; /* what the thread waits on */
    fk_half users;
    fk_ref ref;
    fk_system *sys;
} fk_inquiry;

static void inquiry_leave(fk_inquiry *inquiry)
{
    if (fk__half_add(&inquiry->users, (uint32_t)-1, FK_ACQ_REL) != 1) return;
    fk__mem_free(&inquiry->sys->mem, inquiry, sizeof(*inquiry));
}

static fk_err inquirer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_inquiry *inquiry = *(fk_inquiry **)state;
    const fk_port *port = &inquiry->sys->mem.port;
    const fk_identity *identity = FK_AS(fk_identity, msg);
    if (identity == NULL) return fk_unhandled(ctx, msg);
    if (fk__half_load(&inquiry->answered, FK_RELAXED) != 0) return FK_OK; /* the first one wins */
    inquiry->ref = identity->ref;
    fk__half_store(&inquiry->answered, 1, FK_RELEASE); /* pairs with the load in await */
    port->notify(port->ctx, (uint32_t *)(void *)&inquiry->answered);
    return FK_OK;
}

static void inquirer_stop(fk_ctx *ctx, void *state)
{
    (void)ctx;
    inquiry_leave(*(fk_inquiry **)state);
}

static fk_err inquiry_await(fk_inquiry *inquiry, fk_time timeout, fk_ref *out)
{
    fk_system *sys = inquiry->sys;
    const fk_port *port = &sys->mem.port;
    fk_time deadline = fk__time_add(fk__system_now(sys), timeout);
    while (fk__half_load(&inquiry->answered, FK_ACQUIRE) == 0) {
        fk_time left = deadline == FK_NEVER ? FK_NEVER : deadline - fk__system_now(sys);
        if (left <= 0) return FK_E_TIMEOUT;
        port->wait(port->ctx, (uint32_t *)(void *)&inquiry->answered, 0, left);
    }
    *out = inquiry->ref;
    return fk_ref_is_none(inquiry->ref) ? FK_E_PID_UNKNOWN : FK_OK;
}

static fk_err inquirer_create(fk_system *sys, fk_inquiry *inquiry, fk_ref *out)
{
    fk_props props = { .receive = inquirer_receive,
                       .stop = inquirer_stop,
                       .state_size = sizeof(inquiry),
                       .init = &inquiry };
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__spawn(local, sys->top.temp, FK_STR(""), NULL, &props, out);
    fk__local_leave(local);
    return err;
}

fk_err fk_resolve_one(fk_system *sys, fk_str expression, fk_time timeout, fk_ref *out)
{
    void *memory;
    fk_ref inquirer, found = FK_REF_NONE;
    if (sys->mem.port.wait == NULL) return FK_E_UNSUPPORTED;
    if (sys->host.is_inside != NULL && sys->host.is_inside(sys->host.ctx)) return FK_E_STATE;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_inquiry), FK_SITE("inquiry"), &memory));
    fk_inquiry *inquiry = memory;
    *inquiry = (fk_inquiry){ .sys = sys };
    fk__half_init(&inquiry->answered, 0);
    fk__half_init(&inquiry->users, 2);
    fk_err err = inquirer_create(sys, inquiry, &inquirer);
    if (err != FK_OK) {
        fk__mem_free(&sys->mem, inquiry, sizeof(*inquiry));
        return err;
    }
    fk_local *local = fk__local_enter(sys);
    fk_ref root = fk__cell_ref(sys->top.root);
    err = fk__select_text(local, root, expression, inquirer, FK_IDENTIFY(0));
    fk__local_leave(local);
    if (err == FK_OK) err = inquiry_await(inquiry, timeout, &found);
    fk_stop(sys, inquirer);
    inquiry_leave(inquiry);
    if (err == FK_OK) *out = found;
    return err;
}
