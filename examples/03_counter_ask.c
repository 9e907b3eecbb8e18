/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Asking. A counter answers with what it has counted. main() asks it and waits; a clerk, who is an
 * actor and must not wait, asks and gets the answer as a message. Both say how long they are ready to
 * wait, and both hear of it when nobody answers. */

#include <fraktor/fraktor.h>
#include <stdio.h>

typedef struct {
    int by;
} add;
FK_MESSAGE(add);

typedef struct {
    int total;
} count;
FK_MESSAGE(count);

typedef struct {
    int total;
} counter;

static fk_err counter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    counter *self = state;
    const add *a = FK_AS(add, msg);
    if (a == NULL) return FK_OK; /* no answer to anything else */
    self->total += a->by;
    return fk_reply(ctx, FK_MSG(count, self->total)); /* whoever asked, and however */
}

typedef struct {
    fk_ref counter;
} clerk;

enum { ASK_COUNT, ASK_NONSENSE };

static fk_err clerk_start(fk_ctx *ctx, void *state)
{
    clerk *self = state;
    fk_err err = fk_ask(ctx, self->counter, FK_MSG(add, 10), ASK_COUNT, FK_SECONDS(5));
    if (err != FK_OK) return err;
    return fk_ask(ctx, self->counter, FK_TEXT("how are you?"), ASK_NONSENSE, FK_MILLIS(20));
}

static fk_err clerk_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer == NULL) return fk_unhandled(ctx, msg);
    const count *c = FK_AS(count, &answer->reply); /* NULL: another type, or none at all */
    if (answer->id == ASK_COUNT && c != NULL) {
        printf("clerk: %d\n", c->total);
        return FK_OK;
    }
    printf("clerk: %s\n", fk_err_text(answer->err));
    fk_stop_self(ctx);
    return FK_OK;
}

int main(void)
{
    fk_system *sys = NULL;
    fk_ref ref;
    clerk init;
    count c = { 0 };
    const fk_props counter_props = { .receive = counter_receive, .state_size = sizeof(counter) };
    const fk_props clerk_props = {
        .receive = clerk_receive, .start = clerk_start, .state_size = sizeof init, .init = &init
    };

    if (fk_system_start(&(fk_system_config){ .name = "asking" }, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("counter"), &counter_props, &init.counter);
    for (int i = 1; i <= 3 && err == FK_OK; i++) {
        err = fk_ask_wait(sys, init.counter, FK_MSG(add, i), FK_INTO(count, &c), FK_SECONDS(5));
        if (err == FK_OK) printf("main: %d\n", c.total);
    }
    if (err == FK_OK) err = fk_spawn(sys, FK_STR("clerk"), &clerk_props, &ref);
    if (err == FK_OK) err = fk_await_stopped(sys, ref, FK_SECONDS(10));
    if (err == FK_OK) {
        fk_err late = fk_ask_wait(sys, init.counter, FK_TEXT("how are you?"), FK_INTO(count, &c),
                                  FK_MILLIS(20));
        printf("main: %s\n", fk_err_text(late));
    }
    fk_stop(sys, init.counter);
    if (err == FK_OK) err = fk_await_stopped(sys, init.counter, FK_SECONDS(10));
    if (err == FK_OK) {
        fk_err dead =
            fk_ask_wait(sys, init.counter, FK_MSG(add, 1), FK_INTO(count, &c), FK_SECONDS(5));
        printf("main: %s\n", fk_err_text(dead));
    }
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}
