/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H13: a question is ended by several at once: two replies, its time, its asker that stops, somebody
 * who wants to know its path, the thread that waits. Exactly one of them ends it; the losers are dead
 * letters; the asker hears of it once; and when all is quiet nothing of it is left, neither in a wheel
 * nor under /temp nor in memory.
 *
 * ask-again asks a second time, and the promise is used again when those who ended the first question
 * have let go of it, and not before.
 */

#include "explorer/kernel.h"

#include "core/ask.h"
#include "core/promise.h"
#include "core/timer.h"
#include "fraktor/registry.h"

enum { QUESTION, REPLY, REPLY_TOO, COMMAND, COMMAND_AGAIN, QUESTION_AGAIN, REPLY_AGAIN };

static const fk_time MS = 1000000;

typedef struct world {
    fk_ref asker, target, question;
    uint32_t asked, answers;
    fk_time timeout;
    uint32_t owner;
} world;

static world the_world;

static const kernel_config DIRECT = { .workers = 1, .direct = true };

static void ask(fk_ctx *ctx, world *w, uint32_t number)
{
    numbered message = { number, ~number };
    the_kernel.sent[number]++;
    w->asked++;
    fk_err err = fk_ask(ctx, w->target, (fk_out){ &NUMBERED, &message }, number, w->timeout);
    fk__explore_check(err == FK_OK, "it could not ask");
}

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    fk__explore_write(&w->owner);
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer == NULL) { /* the command */
        fk__explore_check(msg->data != NULL, "a message without its contents");
        ask(ctx, w, kernel_receive(msg) == COMMAND ? QUESTION : QUESTION_AGAIN);
        return FK_OK;
    }
    bool is_first = answer->id == QUESTION;
    w->answers++;
    if (answer->err == FK_OK) {
        fk__explore_check(answer->reply.data != NULL, "an answer without a reply");
        uint32_t number = kernel_receive(&answer->reply);
        fk__explore_check((number == REPLY_AGAIN) != is_first, "the answer of another question");
    } else {
        fk__explore_check(answer->err == FK_E_TIMEOUT, "another error");
        fk__explore_check(answer->reply.type == NULL, "an error with a reply");
    }
    return FK_OK;
}

static fk_err target_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    (void)ctx;
    if (kernel_receive(msg) == QUESTION) {
        w->question = msg->sender;
    } else { /* the second one is answered at once */
        numbered message = { REPLY_AGAIN, ~(uint32_t)REPLY_AGAIN };
        the_kernel.sent[REPLY_AGAIN]++;
        (void)fk_reply(ctx, (fk_out){ &NUMBERED, &message });
    }
    return FK_OK;
}

/* A question is under way; with_wheel: it has met the wheel, and its time is up. */
static void start(world *w, uint32_t threads, bool with_wheel)
{
    fk_system *sys = kernel_start(&DIRECT, 1, threads);
    fk_worker *worker = sys->dispatch.worker[0];
    fk_props asker = { .receive = asker_receive, .state = w };
    fk_props target = { .receive = target_receive, .state = w };
    w->timeout = 2 * MS;
    w->asker = kernel_spawn(&sys->outside[0], &asker);
    w->target = kernel_spawn(&sys->outside[0], &target);
    kernel_send(w->asker, COMMAND);
    kernel_settle();
    fk__explore_check(fk_is_alive(sys, w->question), "no question");
    if (with_wheel) {
        fk__timers_run(worker, worker);
        the_kernel.now += 10 * MS;
        worker->now = the_kernel.now;
    }
    kernel_label(w->question, "tail", "system", "generation");
    fk__explore_label(&worker->wheel_lock, sizeof(fk_lock), 1, "wheel_lock");
    fk__explore_label(&worker->promises_new, sizeof(fk_word), 1, "promises_new");
}

static void race_setup(void *state)
{
    start(state, 3, true);
}

static void arm_setup(void *state)
{
    start(state, 2, false);
}

static void again_setup(void *state)
{
    world *w = state;
    start(w, 2, false);
    kernel_send(w->asker, COMMAND_AGAIN); /* on its way already */
}

static void stop_setup(void *state)
{
    world *w = state;
    start(w, 2, true);
    fk__explore_check(fk_stop(the_kernel.sys, w->asker) == FK_OK, "stop");
}

/* The last thread is the worker, which looks at its wheel first; the others reply. */
static void race_thread(void *state, uint32_t id)
{
    const world *w = state;
    fk_worker *worker = the_kernel.sys->dispatch.worker[0];
    if (id == 0) {
        fk__timers_run(worker, worker);
        kernel_thread_ends();
        kernel_work(0);
    } else {
        kernel_send(w->question, id == 1 ? REPLY : REPLY_TOO);
        kernel_thread_ends();
    }
}

/* The asker stops, and nobody replies; only somebody wants to know the path. */
static void abandon_thread(void *state, uint32_t id)
{
    const world *w = state;
    char path[64];
    if (id == 0) {
        kernel_work(0);
    } else {
        (void)fk_path_of(the_kernel.sys, w->question, path, sizeof(path));
        kernel_thread_ends();
    }
}

static void abandon_setup(void *state)
{
    world *w = state;
    start(w, 1, false);
    fk__explore_check(fk_stop(the_kernel.sys, w->asker) == FK_OK, "stop");
}

/* One replies while another wants to know the path. */
static void name_thread(void *state, uint32_t id)
{
    const world *w = state;
    char path[64];
    if (id == 0) {
        kernel_work(0);
    } else if (id == 1) {
        kernel_send(w->question, REPLY);
        kernel_thread_ends();
    } else {
        (void)fk_path_of(the_kernel.sys, w->question, path, sizeof(path));
        kernel_thread_ends();
    }
}

static void name_setup(void *state)
{
    start(state, 2, false);
}

static void finish(void *state)
{
    const world *w = state;
    fk_system *sys = the_kernel.sys;
    fk_worker *worker = sys->dispatch.worker[0];
    bool is_stopped = !fk_is_alive(sys, w->asker);
    kernel_settle();
    fk__timers_run(worker, worker); /* what is over leaves the stack */
    fk__explore_check(worker->wheel.count == 0, "a question that is over is in the wheel");
    fk__explore_check(sys->temps.count == 0, "a question that is over has a name");
    fk__explore_check(!fk_is_alive(sys, w->question), "the question is still open");
    fk__explore_check(is_stopped ? w->answers <= 1 : w->answers == w->asked,
                      "not one answer for each question");
    kernel_end(true);
}

/* ---- a thread that waits ------------------------------------------------------------------------ */

static void wait_start(world *w, fk_time timeout)
{
    fk_system *sys = kernel_start(&DIRECT, 1, 2);
    fk_props target = { .receive = target_receive, .state = w };
    w->timeout = timeout;
    w->target = kernel_spawn(&sys->outside[0], &target);
    fk_err err = fk__question_open(sys, w->target, &w->question);
    fk__explore_check(err == FK_OK, "no question");
    kernel_label(w->question, "tail", "system", "generation");
}

static void wait_setup(void *state)
{
    wait_start(state, FK_NEVER);
}

static void wait_late_setup(void *state)
{
    wait_start(state, 0); /* its time is up at once */
}

static void wait_thread(void *state, uint32_t id)
{
    world *w = state;
    if (id == 0) {
        numbered got = { 0, 0 };
        fk_err err = fk__question_await(the_kernel.sys, w->question, fk_into_of(&NUMBERED, &got),
                                        w->timeout);
        w->answers++;
        if (err == FK_OK) {
            fk__explore_check(got.number == REPLY || got.number == REPLY_TOO, "another answer");
            the_kernel.delivered[got.number]++;
            numbered_drop(&got); /* it is ours */
        } else {
            fk__explore_check(err == FK_E_TIMEOUT && w->timeout == 0, "another error");
        }
    } else {
        kernel_send(w->question, id == 1 ? REPLY : REPLY_TOO);
    }
    kernel_thread_ends();
}

static void wait_finish(void *state)
{
    const world *w = state;
    fk__explore_check(w->answers == 1, "the thread did not come back");
    fk__explore_check(!fk_is_alive(the_kernel.sys, w->question), "the question is still open");
    kernel_end(true);
}

static const fk_harness HARNESSES[] = {
    KERNEL_HARNESS("ask-race", 3, race_setup, race_thread, finish),
    KERNEL_HARNESS("ask-arm", 2, arm_setup, race_thread, finish),
    KERNEL_HARNESS("ask-again", 2, again_setup, race_thread, finish),
    KERNEL_HARNESS("ask-stop", 2, stop_setup, race_thread, finish),
    KERNEL_HARNESS("ask-abandon", 2, abandon_setup, abandon_thread, finish),
    KERNEL_HARNESS("ask-name", 3, name_setup, name_thread, finish),
    KERNEL_HARNESS("ask-wait", 3, wait_setup, wait_thread, wait_finish),
    KERNEL_HARNESS("ask-wait-late", 3, wait_late_setup, wait_thread, wait_finish),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "ask-race", FK_MUTATION_PROMISE_FIRST, NULL, FK_MEMORY_SC, true, NULL },
    { "ask-arm", FK_MUTATION_PROMISE_DISARM, NULL, FK_MEMORY_SC, true, NULL },
    { "ask-again", FK_MUTATION_CLAIM, NULL, FK_MEMORY_SC, true, NULL },
    { "ask-abandon", FK_MUTATION_ASKS_END, NULL, FK_MEMORY_SC, true, NULL },
    { "ask-name", FK_MUTATION_PROMISE_NAME, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}
