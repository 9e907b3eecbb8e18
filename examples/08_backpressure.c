/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bounded mailboxes: what happens to the fifth letter in a box for four. Under the first three
 * policies an actor sends ten letters at one go to a mailbox of four; with one worker the
 * receiver cannot run in between, so the output is always the same. Under FK_OVERFLOW_BLOCK a
 * thread from outside sends, waits when the box is full, and nothing is lost. */

#include <fraktor/fraktor.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LETTERS = 10, CAPACITY = 4 };

typedef struct {
    int n;
} letter;
FK_MESSAGE(letter);

typedef struct {
    fk_ref box;
} deliver;
FK_MESSAGE(deliver);

static atomic_int dead_count;
static atomic_int dead_reason;

static void on_dead_letter(void *user, const fk_dead_letter *dead)
{
    (void)user;
    atomic_fetch_add(&dead_count, 1);
    atomic_store(&dead_reason, (int)dead->reason);
}

static fk_err box_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const letter *l = FK_AS(letter, msg);
    (void)state;
    if (l == NULL) return fk_unhandled(ctx, msg);
    printf(" %d", l->n);
    return FK_OK;
}

static void box_stop(fk_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    puts("");
}

static fk_err postman_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const deliver *d = FK_AS(deliver, msg);
    int refused = 0;
    (void)state;
    if (d == NULL) return fk_unhandled(ctx, msg);
    for (int i = 1; i <= LETTERS; i++) {
        if (fk_tell(ctx, d->box, FK_MSG(letter, i)) == FK_E_FULL) refused++;
    }
    printf("%d sends refused, received", refused);
    fk_stop_self(ctx);
    return FK_OK;
}

static fk_err try_policy(fk_system *sys, const char *name, fk_overflow overflow)
{
    fk_ref box, postman;
    const fk_props box_props = { .receive = box_receive,
                                 .stop = box_stop,
                                 .mailbox = FK_MAILBOX_BOUNDED,
                                 .overflow = overflow,
                                 .capacity = CAPACITY };
    printf("%s: ", name);
    atomic_store(&dead_count, 0);
    fk_err err = fk_spawn(sys, FK_STR(""), &box_props, &box);
    if (err != FK_OK) return err;
    if (overflow == FK_OVERFLOW_BLOCK) {
        printf("received");
        for (int i = 1; i <= LETTERS && err == FK_OK; i++)
            err = fk_send(sys, box, FK_MSG(letter, i));
    } else {
        err = fk_spawn(sys, FK_STR(""), &(fk_props){ .receive = postman_receive }, &postman);
        if (err == FK_OK) err = fk_send(sys, postman, FK_MSG(deliver, box));
        if (err == FK_OK) err = fk_await_stopped(sys, postman, FK_SECONDS(10));
    }
    if (err == FK_OK) fk_poison(sys, box); /* stops it after the letters it has */
    if (err == FK_OK) err = fk_await_stopped(sys, box, FK_SECONDS(10));
    int count = atomic_load(&dead_count);
    if (count > 0) printf("  %d dead letters: %s\n", count, fk_reason_name((fk_reason)dead_reason));
    return err;
}

int main(void)
{
    fk_system *sys = NULL;
    const fk_system_config config = { .name = "post",
                                      .workers = 1,
                                      .on_dead_letter = on_dead_letter };
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_err err = try_policy(sys, "fail", FK_OVERFLOW_FAIL);
    if (err == FK_OK) err = try_policy(sys, "drop newest", FK_OVERFLOW_DROP_NEWEST);
    if (err == FK_OK) err = try_policy(sys, "drop oldest", FK_OVERFLOW_DROP_OLDEST);
    if (err == FK_OK) err = try_policy(sys, "block", FK_OVERFLOW_BLOCK);
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}
