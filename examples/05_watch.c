/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Death watch: a foreman hands out work, watches who does it, and finds out who is gone. Each watch
 * gets exactly one answer, also of a worker that was dead before the watch began. When nobody is left
 * the foreman goes home. */

#include <fraktor/fraktor.h>
#include <stdio.h>

enum { WORKERS = 3 };

typedef struct {
    int hours;
} shift;
FK_MESSAGE(shift);

typedef struct {
    int worker;
} accident; /* what the foreman is told instead of fk_terminated, about the last one */
FK_MESSAGE(accident);

static fk_err work(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const int *number = state;
    const shift *s = FK_AS(shift, msg);
    if (s == NULL) return fk_unhandled(ctx, msg);
    printf("worker %d: %d hours\n", *number, s->hours);
    if (s->hours > 8) return fk_fail(ctx, FK_E_KILLED, "too much");
    fk_stop_self(ctx);
    return FK_OK;
}

typedef struct {
    fk_ref worker[WORKERS];
    int left;
} foreman;

static fk_err foreman_start(fk_ctx *ctx, void *state)
{
    foreman *self = state;
    fk_err err = FK_OK;
    for (int i = 0; i < WORKERS && err == FK_OK; i++) {
        fk_props props = { .receive = work, .state_size = sizeof(int), .init = &i };
        err = fk_spawn_child(ctx, FK_STR(""), &props, &self->worker[i]);
        if (err != FK_OK) break;
        bool is_last = i == WORKERS - 1;
        err = is_last ? fk_watch_with(ctx, self->worker[i], FK_MSG(accident, i))
                      : fk_watch(ctx, self->worker[i]);
        fk_tell(ctx, self->worker[i], FK_MSG(shift, i == WORKERS - 1 ? 16 : 7 + i));
    }
    self->left = WORKERS;
    return err;
}

static fk_err one_less(fk_ctx *ctx, foreman *self)
{
    if (--self->left > 0) return FK_OK;
    puts("foreman: is the dead one really dead?");
    return fk_watch(ctx, self->worker[0]); /* it answers at once */
}

static fk_err foreman_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    foreman *self = state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    const accident *a = FK_AS(accident, msg);
    if (a != NULL) {
        printf("foreman: an accident of worker %d\n", a->worker);
        return one_less(ctx, self);
    }
    if (end == NULL)
        return fk_unhandled(ctx, msg); /* an fk_terminated here would be a death pact */
    if (!end->existence_confirmed) {
        puts("foreman: it was gone already. Good night");
        fk_stop_self(ctx);
        return FK_OK;
    }
    int number = 0;
    while (!fk_ref_equal(self->worker[number], end->actor)) number++;
    printf("foreman: worker %d is done\n", number);
    return one_less(ctx, self);
}

int main(void)
{
    static const fk_props FOREMAN = { .receive = foreman_receive,
                                      .start = foreman_start,
                                      .state_size = sizeof(foreman) };
    fk_system *sys;
    fk_ref ref;
    /* On this thread, so that the lines come in the same order every time. */
    fk_system_config config = { .name = "site", .workers = FK_WORKERS_NONE };
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("foreman"), &FOREMAN, &ref);
    while (fk_host_run_once(sys, 0) != 0) {
    }
    bool is_home = err == FK_OK && !fk_is_alive(sys, ref);
    fk_system_stop(sys);
    return is_home ? 0 : 1;
}
