/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Questions to actors of other systems: whoever takes them there needs a path for the answer. */

#include <pthread.h>
#include <string.h>

#include "fraktor/ask.h"
#include "fraktor/remote.h"
#include "remote/remote.h"
#include "support/observer.h"

static observer o;
static fk_ref x; /* at the other system */

/* An actor that asks, and what it is answered. */
typedef struct asker {
    fk_ref self, answer_to;
    uint32_t answers;
    fk_err err;
    uint64_t n;
} asker;

static asker a;

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_answer *answer = FK_AS(fk_answer, msg);
    const rig_call *call = FK_AS(rig_call, msg);
    (void)state;
    if (call != NULL) return call->fn(ctx, call->arg);
    if (answer == NULL) return fk_unhandled(ctx, msg);
    a.answers++;
    a.err = answer->err;
    const num *n = answer->err == FK_OK ? FK_AS(num, &answer->reply) : NULL;
    a.n = n != NULL ? n->n : 0;
    return FK_OK;
}

static fk_err call_ask(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_ask(ctx, x, FK_MSG(num, 1), 1, FK_SECONDS(1));
}

static fk_err call_pipe(fk_ctx *ctx, void *arg)
{
    const fk_ref *to = arg;
    return fk_ask_pipe(ctx, *to, FK_MSG(num, 1), x, 1, FK_SECONDS(1));
}

static void start(void)
{
    observer_start_with(&o, (fk_system_config){ .name = "t", .pools_malloc = true });
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor.tcp://b@h:1/user/x"), &x, NULL));
    a = (asker){ .err = FK_E_FAILED };
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("a"), &(fk_props){ .receive = asker_receive }, &a.self));
}

static fk_authority *authority(void)
{
    fk_authority_key key = { FK_STR("b"), FK_STR("h"), 1 };
    return fk__authority_find(&fk__remote_of(o.r.sys)->table, &key);
}

/* The letter that waits; who asks is its sender. */
static fk_ref asked(void)
{
    CHECK_U64(authority()->deferred.count, 1);
    const fk_letter *letter = FK_CONTAINER(authority()->deferred.first, fk_letter, link);
    CHECK(fk_ref_equal(letter->to, x));
    return fk__sender_ref(letter->node->sender, o.r.sys->id);
}

/* What the driver does, on a thread of its own: the path of who asks, and the way back. */
typedef struct courier {
    fk_ref sender, found;
    char path[256];
    size_t len;
    fk_err err;
} courier;

static void *courier_run(void *arg)
{
    courier *c = arg;
    c->len = fk_path_of(o.r.sys, c->sender, c->path, sizeof(c->path));
    c->err = fk_resolve(o.r.sys, (fk_str){ c->path, c->len }, &c->found, NULL);
    if (c->err == FK_OK) CHECK_OK(fk_send_from(o.r.sys, c->found, x, FK_MSG(num, 7)));
    return NULL;
}

static void courier_go(courier *c, fk_ref sender)
{
    pthread_t thread;
    *c = (courier){ .sender = sender };
    CHECK_U64(pthread_create(&thread, NULL, courier_run, c), 0);
    pthread_join(thread, NULL);
    rig_run(&o.r);
}

TEST(remote_question_has_a_path_on_any_thread_and_is_answered_by_it)
{
    courier c;
    start();
    rig_do(&o.r, a.self, call_ask, NULL);
    fk_ref promise = asked();
    courier_go(&c, promise);
    CHECK(strncmp(c.path, "fraktor://t/temp/x$", 19) == 0);
    CHECK(fk_ref_equal(c.found, promise));
    CHECK_U64(a.answers, 1);
    CHECK_OK(a.err);
    CHECK_U64(a.n, 7);
    /* It is over: no path any more, and the old one leads nowhere. */
    fk_ref found;
    CHECK_ERR(fk_resolve(o.r.sys, fk_str_of(c.path), &found, NULL), FK_E_PID_UNKNOWN);
    courier_go(&c, promise);
    CHECK_U64(c.len, 0);
    CHECK_STR(c.path, "");
    CHECK_U64(a.answers, 1);
    rig_stop(&o.r);
}

TEST(remote_question_that_is_too_old_has_no_path)
{
    courier c;
    start();
    rig_do(&o.r, a.self, call_ask, NULL);
    fk_ref promise = asked();
    rig_advance(&o.r, FK_SECONDS(2));
    CHECK_U64(a.answers, 1);
    CHECK_ERR(a.err, FK_E_TIMEOUT);
    courier_go(&c, promise);
    CHECK_U64(c.len, 0);
    rig_stop(&o.r);
}

/* The next question may use the same cell. */
TEST(remote_question_has_a_path_of_its_own)
{
    courier first, second;
    start();
    rig_do(&o.r, a.self, call_ask, NULL);
    courier_go(&first, asked());
    CHECK_OK(fk_authority_quarantine(o.r.sys, FK_STR("fraktor.tcp://b@h:1")));
    CHECK_OK(fk_authority_override(o.r.sys, FK_STR("fraktor.tcp://b@h:1")));
    rig_do(&o.r, a.self, call_ask, NULL);
    courier_go(&second, asked());
    CHECK(strcmp(first.path, second.path) != 0);
    CHECK_U64(a.answers, 2);
    courier_go(&first, first.sender);
    CHECK_U64(first.len, 0);
    rig_stop(&o.r);
}

static fk_err replying(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_reply(ctx, FK_MSG(num, 9));
}

TEST(remote_answer_is_piped_there_like_any_message)
{
    fk_ref local;
    start();
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("local"), &(fk_props){ .receive = replying }, &local));
    rig_do(&o.r, a.self, call_pipe, &local);
    CHECK(fk_ref_equal(asked(), local));
    const fk_letter *letter = FK_CONTAINER(authority()->deferred.first, fk_letter, link);
    CHECK(letter->node->type == &fk_type_fk_answer);
    fk_msg msg;
    fk__node_view(letter->node, o.r.sys->id, &msg);
    const fk_answer *answer = msg.data;
    CHECK_OK(answer->err);
    const num *reply = FK_AS(num, &answer->reply);
    CHECK(reply != NULL);
    CHECK_U64(reply->n, 9);
    /* If it does not go, the reply is what is lost. */
    CHECK_OK(fk_authority_quarantine(o.r.sys, FK_STR("fraktor.tcp://b@h:1")));
    const observer_letter *dead = observer_letters(&o, 1);
    CHECK(dead->type == &fk_type_num);
    CHECK(fk_ref_equal(dead->to, x));
    CHECK_U64(dead->reason, FK_REASON_QUARANTINED);
    rig_do(&o.r, a.self, call_pipe, &local); /* and when the system refuses it at once */
    CHECK(observer_letters(&o, 1)->type == &fk_type_num);
    rig_stop(&o.r);
}

TEST(remote_answer_that_waits_goes_with_the_system)
{
    fk_ref local;
    start();
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("local"), &(fk_props){ .receive = replying }, &local));
    rig_do(&o.r, a.self, call_pipe, &local);
    asked();
    rig_stop(&o.r);
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_SYSTEM_STOPPING);
}
