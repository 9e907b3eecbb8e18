/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two actors and two types of message. The pinger knows the ponger by its reference; the ponger
 * answers whoever asked, with fk_reply(). */

#include <fraktor/fraktor.h>
#include <stdio.h>

typedef struct {
    int n;
} ping;
FK_MESSAGE(ping);

typedef struct {
    int n;
} pong;
FK_MESSAGE(pong);

typedef struct {
    fk_ref ponger;
    int left;
} pinger;

static fk_err ponger_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const ping *p = FK_AS(ping, msg); /* NULL when it is another type */
    (void)state;
    if (p == NULL) return fk_unhandled(ctx, msg);
    printf("ping %d\n", p->n);
    return fk_reply(ctx, FK_MSG(pong, p->n));
}

static fk_err pinger_start(fk_ctx *ctx, void *state)
{
    pinger *self = state;
    return fk_tell(ctx, self->ponger, FK_MSG(ping, self->left));
}

static fk_err pinger_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    pinger *self = state;
    const pong *p = FK_AS(pong, msg);
    if (p == NULL) return fk_unhandled(ctx, msg);
    printf("pong %d\n", p->n);
    if (--self->left > 0) return fk_tell(ctx, self->ponger, FK_MSG(ping, self->left));
    fk_stop_self(ctx);
    return FK_OK;
}

int main(void)
{
    fk_system *sys = NULL;
    pinger init = { .left = 3 }; /* copied by spawn: the actor has its own */
    const fk_props ponger_props = { .receive = ponger_receive };
    const fk_props pinger_props = {
        .receive = pinger_receive, .start = pinger_start, .state_size = sizeof init, .init = &init
    };
    fk_ref ref;

    if (fk_system_start(&(fk_system_config){ .name = "pingpong" }, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("ponger"), &ponger_props, &init.ponger);
    if (err == FK_OK) err = fk_spawn(sys, FK_STR("pinger"), &pinger_props, &ref);
    if (err == FK_OK) err = fk_await_stopped(sys, ref, FK_SECONDS(10));
    fk_system_stop(sys);
    printf("%s\n", fk_err_text(err));
    return err == FK_OK ? 0 : 1;
}
