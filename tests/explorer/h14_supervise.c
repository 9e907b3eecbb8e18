/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H14: a supervisor's answer meets another failure than it was given for. Two siblings have failed,
 * all-for-one: the first is restarted, and the second with it, while its own failure is being decided
 * about. In its new life it fails again, and the answer to the failure of its former life, to go on,
 * is not for this one: each failure that a life ends with is decided about.
 */

#include "explorer/kernel.h"

enum { FAIL_FIRST, FAIL_SECOND, FAIL_AGAIN, FIRST_ERROR = 1000 };

typedef struct world {
    fk_ref parent, first, second;
    fk_cell *waiting; /* the parent, which has something to do */
    fk_directive answer;
    uint32_t decided[KERNEL_MESSAGES_MAX];
    uint32_t restarts; /* of the second */
} world;

static world the_world;

static const kernel_config TWO = { .workers = 2, .direct = true };

static fk_err child_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    return (fk_err)(FIRST_ERROR + kernel_receive(msg));
}

static fk_err second_start(fk_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    the_world.restarts++; /* the first time does not count */
    return FK_OK;
}

static fk_directive decide(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    world *w = state;
    (void)ctx;
    uint32_t which = (uint32_t)failure->err - (uint32_t)FIRST_ERROR;
    fk__explore_check(which < KERNEL_MESSAGES_MAX, "a failure of nobody's");
    w->decided[which]++;
    if (which == FAIL_FIRST) return FK_DIRECTIVE_RESTART;
    return which == FAIL_SECOND ? w->answer : FK_DIRECTIVE_STOP;
}

static fk_err parent_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)kernel_receive(msg);
    return FK_OK;
}

/* Runs whoever is ready, but not the parent. */
static void run_children(world *w)
{
    fk_worker *worker = the_kernel.sys->dispatch.worker[0];
    const fk_cell *parent = fk__slots_at(&the_kernel.sys->slots, w->parent.slot);
    fk_cell *cell;
    (void)fk__ready_take_stack(worker, &the_kernel.sys->dispatch.inject);
    while ((cell = fk__ready_take_next(worker)) != NULL || (cell = fk__ready_pop(worker)) != NULL) {
        if (cell == parent)
            w->waiting = cell;
        else
            kernel_turn(worker, cell);
    }
}

static fk_ref spawn_child(world *w, const fk_props *props)
{
    fk_ref ref;
    fk_cell *parent = fk__slots_at(&the_kernel.sys->slots, w->parent.slot);
    fk_err err = fk__spawn(&the_kernel.sys->outside[0], parent, FK_STR(""), NULL, props, &ref);
    fk__explore_check(err == FK_OK, "spawn failed");
    return ref;
}

/* Both have failed, in this order, and the second has another message that it will fail at. The
 * parent is worker 0's, the second is worker 1's. */
static void start(world *w, fk_directive answer)
{
    static const fk_props CHILD = { .receive = child_receive };
    static const fk_props SECOND = { .receive = child_receive, .start = second_start };
    fk_system *sys = kernel_start(&TWO, 2, 0);
    fk_props parent = { .receive = parent_receive,
                        .state = w,
                        .strategy = { .kind = FK_ALL_FOR_ONE, .decide = decide } };
    w->answer = answer;
    w->parent = kernel_spawn(&sys->outside[0], &parent);
    w->first = spawn_child(w, &CHILD);
    w->second = spawn_child(w, &SECOND);
    run_children(w);
    w->restarts = 0;
    kernel_send(w->first, FAIL_FIRST);
    run_children(w);
    kernel_send(w->second, FAIL_SECOND);
    run_children(w);
    kernel_send(w->second, FAIL_AGAIN);
    (void)fk__ready_take_stack(sys->dispatch.worker[1], &sys->dispatch.inject);
    fk__explore_check(w->waiting != NULL, "the parent has nothing to do");
    fk__ready_push(sys->dispatch.worker[0], w->waiting);
    kernel_label(w->second, "tail", "system", "generation");
    const fk_cell *second = fk__slots_at(&sys->slots, w->second.slot);
    fk__explore_label(&second->ended.word, sizeof(fk_half), 1, "word");
}

static void resume_setup(void *state)
{
    start(state, FK_DIRECTIVE_RESUME);
}

static void escalate_setup(void *state)
{
    start(state, FK_DIRECTIVE_ESCALATE);
}

static void thread(void *state, uint32_t id)
{
    (void)state;
    kernel_work(id);
}

static void finish(void *state)
{
    const world *w = state;
    bool is_left =
        w->answer == FK_DIRECTIVE_RESUME; /* else the parent's restart ends its children */
    kernel_settle();
    fk__explore_check(w->decided[FAIL_FIRST] == 1, "the first failure is not decided once");
    fk__explore_check(w->decided[FAIL_SECOND] <= 1, "a failure is decided twice");
    fk__explore_check(!is_left || w->restarts != 0, "the sibling is not restarted");
    fk__explore_check(!is_left || w->decided[FAIL_AGAIN] == 1,
                      "a failure that nobody has decided about is over");
    fk__explore_check(!fk_is_alive(the_kernel.sys, w->second), "it was to stop");
    kernel_end(true);
}

static const fk_harness HARNESSES[] = {
    KERNEL_HARNESS("supervise-resume", 2, resume_setup, thread, finish),
    KERNEL_HARNESS("supervise-escalate", 2, escalate_setup, thread, finish),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "supervise-resume", FK_MUTATION_ANSWER_HEARD, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}
