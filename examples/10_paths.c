/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Paths: sending to whoever is there. A desk sends to its three clerks by a wildcard, asks one who it
 * is, and sends to one that does not exist: the dead letter shows the path it was meant for. A clerk
 * sends to its parent by "..". The uids behind '#' differ in every run and are left out here. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>

enum { CLERKS = 3 };

typedef struct {
    int sheet;
} job;
FK_MESSAGE(job);

typedef struct {
    int clerk;
} done;
FK_MESSAGE(done);

typedef struct {
    int waiting; /* clerks that have not answered */
} desk;

static void show(fk_system *sys, const char *what, fk_ref ref)
{
    char path[256];
    fk_path_of(sys, ref, path, sizeof path);
    printf("%s is %.*s\n", what, (int)strcspn(path, "#"), path);
}

static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    char path[256];
    fk_dead_letter_path(*(fk_system **)user, letter, path, sizeof path);
    printf("dead letter (%s): %s for %.*s\n", fk_reason_name(letter->reason), letter->type->name,
           (int)strcspn(path, "#"), path);
}

static fk_err clerk_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const int *number = state;
    if (FK_AS(job, msg) == NULL) return fk_unhandled(ctx, msg);
    return fk_select_tell(ctx, FK_STR(".."), FK_MSG(done, *number)); /* the desk */
}

static fk_err desk_start(fk_ctx *ctx, void *state)
{
    desk *self = state;
    fk_err err = FK_OK;
    for (int i = 1; i <= CLERKS && err == FK_OK; i++, self->waiting++) {
        char name[24];
        fk_ref clerk;
        snprintf(name, sizeof name, "clerk-%d", i);
        err = fk_spawn_child(
            ctx, fk_str_of(name),
            &(fk_props){ .receive = clerk_receive, .state_size = sizeof i, .init = &i }, &clerk);
    }
    return err;
}

static fk_err desk_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    desk *self = state;
    const job *j = FK_AS(job, msg);
    if (j != NULL) return fk_select_tell(ctx, FK_STR("clerk-*"), FK_MSG(job, j->sheet));
    if (FK_AS(done, msg) != NULL) {
        if (--self->waiting > 0) return FK_OK;
        printf("%d clerks have answered\n", CLERKS);
        return fk_select_tell(ctx, FK_STR("clerk-2"), FK_IDENTIFY(2));
    }
    const fk_identity *identity = FK_AS(fk_identity, msg);
    if (identity == NULL) return fk_unhandled(ctx, msg);
    show(fk_system_of(ctx), "clerk 2", identity->ref);
    fk_stop_self(ctx);
    return fk_select_tell(ctx, FK_STR("./clerk-9"), FK_MSG(job, 9));
}

/* Paths back to actors, from outside. */
static fk_err look_up(fk_system *sys)
{
    fk_ref found;
    fk_path_fault fault;
    /* The desk answers when it has started, so its clerks are there. */
    fk_err err = fk_resolve_one(sys, FK_STR("/user/desk"), FK_SECONDS(10), &found);
    if (err == FK_OK)
        err = fk_resolve(sys, FK_STR("fraktor://office/user/desk/clerk-1"), &found, NULL);
    if (err != FK_OK) return err;
    show(sys, "clerk 1", found);
    err = fk_resolve(sys, FK_STR("fraktor://office/user/archive"), &found, NULL);
    printf("the archive: %s\n", fk_path_code(err));
    err = fk_resolve(sys, FK_STR("fraktor://office/user/a%2Fb"), &found, &fault);
    printf("a%%2Fb: %s at byte %zu\n", fk_path_code(err), fault.at);
    return FK_OK;
}

int main(void)
{
    fk_system *sys = NULL;
    fk_ref ref;
    const fk_props props = { .receive = desk_receive,
                             .start = desk_start,
                             .state_size = sizeof(desk) };
    const fk_system_config config = { .size = sizeof config,
                                      .name = "office",
                                      .workers = 1,
                                      .user = &sys,
                                      .on_dead_letter = on_dead_letter,
                                      .scheme = FK_SCHEME_TCP,
                                      .remoting = { .host = "10.0.0.7", .port = 2552 } };
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("desk"), &props, &ref);
    if (err == FK_OK) err = look_up(sys);
    if (err == FK_OK) err = fk_select_send(sys, FK_STR("/user/d?sk"), FK_MSG(job, 1));
    if (err == FK_OK) err = fk_await_stopped(sys, ref, FK_SECONDS(10));
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}
