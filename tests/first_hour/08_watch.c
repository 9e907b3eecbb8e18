/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 8 of the first hour: watches an actor that is dead already, watches twice, unwatches. */

#include <fraktor/fraktor.h>
#include <stdio.h>

/* What the watcher is to do with an actor. */
typedef struct {
    fk_ref actor;
    int watches, unwatches;
} order;
FK_MESSAGE(order);

static int told, confirmed;

static fk_err watcher(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const order *o = FK_AS(order, msg);
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    fk_err err = FK_OK;
    (void)state;
    if (end != NULL) {
        told++;
        confirmed += end->existence_confirmed;
    }
    for (int i = 0; o != NULL && i < o->watches && err == FK_OK; i++) err = fk_watch(ctx, o->actor);
    for (int i = 0; o != NULL && i < o->unwatches && err == FK_OK; i++)
        err = fk_unwatch(ctx, o->actor);
    return err;
}

static fk_err idle(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_OK;
}

static fk_system *sys;
static fk_ref ear;

static void run(void)
{
    while (fk_host_run_once(sys, 0) != 0) {
    }
}

/* Words about an actor that is watched so often, and dies before or after that. */
static int words(const char *what, bool is_dead, int watches, int unwatches)
{
    fk_ref actor;
    told = confirmed = 0;
    if (fk_spawn(sys, FK_STR(""), &(fk_props){ .receive = idle }, &actor) != FK_OK) return -1;
    if (is_dead) fk_stop(sys, actor);
    run();
    fk_send(sys, ear, FK_MSG(order, actor, watches, unwatches));
    run();
    if (!is_dead) fk_stop(sys, actor);
    run();
    printf("%-28s terminated %d, existence confirmed %d\n", what, told, confirmed);
    return told;
}

int main(void)
{
    fk_system_config config = { .name = "hour", .workers = FK_WORKERS_NONE };
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    if (fk_spawn(sys, FK_STR("ear"), &(fk_props){ .receive = watcher }, &ear) != FK_OK) return 1;
    bool ok = words("watched", false, 1, 0) == 1 && confirmed == 1;
    ok = words("watched when dead", true, 1, 0) == 1 && confirmed == 0 && ok;
    ok = words("watched twice", false, 2, 0) == 1 && ok;
    ok = words("watched twice when dead", true, 2, 0) == 1 && ok;
    ok = words("watched and unwatched", false, 1, 1) == 0 && ok;
    ok = words("unwatched when dead", true, 1, 1) == 0 && ok;
    ok = fk_is_alive(sys, ear) && ok; /* no call failed */
    return fk_system_stop(sys) == FK_OK && ok ? 0 : 1;
}
