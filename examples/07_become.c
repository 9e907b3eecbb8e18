/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A state machine without a switch: a turnstile whose receive function is its state. Each state
 * replaces it with fk_become() and goes back with fk_unbecome(). */

#include <fraktor/fraktor.h>
#include <stdio.h>

typedef struct {
    int value;
} coin;
FK_MESSAGE(coin);

typedef struct {
    int person;
} push;
FK_MESSAGE(push);

typedef struct {
    int earned;
    int passed;
} turnstile;

static fk_err unlocked(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    turnstile *self = state;
    const push *p = FK_AS(push, msg);
    const coin *c = FK_AS(coin, msg);
    if (p != NULL) {
        self->passed++;
        printf("unlocked: person %d passes\n", p->person);
        return fk_unbecome(ctx);
    }
    if (c != NULL) {
        self->earned += c->value;
        puts("unlocked: thank you for another coin");
        return FK_OK;
    }
    return fk_unhandled(ctx, msg);
}

static fk_err locked(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    turnstile *self = state;
    const push *p = FK_AS(push, msg);
    const coin *c = FK_AS(coin, msg);
    if (p != NULL) {
        printf("locked: person %d has to wait\n", p->person);
        return FK_OK;
    }
    if (c != NULL) {
        self->earned += c->value;
        puts("locked: a coin, opening");
        return fk_become(ctx, unlocked);
    }
    return fk_unhandled(ctx, msg);
}

static void report(fk_ctx *ctx, void *state)
{
    const turnstile *self = state;
    (void)ctx;
    printf("%d passed, %d earned\n", self->passed, self->earned);
}

int main(void)
{
    fk_system *sys = NULL;
    fk_ref ref;
    const fk_props props = { .receive = locked, .stop = report, .state_size = sizeof(turnstile) };
    if (fk_system_start(&(fk_system_config){ .name = "turnstile" }, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("turnstile"), &props, &ref);
    if (err == FK_OK) {
        fk_send(sys, ref, FK_MSG(push, 1));
        fk_send(sys, ref, FK_MSG(coin, 2));
        fk_send(sys, ref, FK_MSG(push, 1));
        fk_send(sys, ref, FK_MSG(push, 2));
        fk_send(sys, ref, FK_MSG(coin, 2));
        fk_send(sys, ref, FK_MSG(coin, 1));
        fk_send(sys, ref, FK_MSG(push, 3));
        fk_poison(sys, ref); /* stops it after all of these */
        err = fk_await_stopped(sys, ref, FK_SECONDS(10));
    }
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}
