/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H3: the system queue beside the user queue. A cell that is suspended goes idle on whatever is
 * in its queue; a signal or a mark, followed by a kick, wakes it. So a resume never meets a full
 * but silent queue, and a signal is handled before the messages its sender sent after it.
 *
 * The worker's turn is written here, because the kernel does not suspend actors yet; it takes the
 * steps of fk__cell_turn, with the functions of core/mailbox.h.
 */

#include "core/mailbox.h"
#include "sim/explore.h"

enum { MESSAGES = 2 };

#define OVERTAKEN "a message overtook a signal"

enum own_mutation {
    NO_KICK = FK_MUTATION_COUNT, /* signals are pushed and the cell is left alone */
    MESSAGES_FIRST,              /* messages are run before signals */
    SIGNALS_EARLY,               /* signals are looked at before the queue, not after it */
};

typedef enum kind { SUSPEND, RESUME, KIND_COUNT } kind;

typedef struct order {
    fk_signal signal;
    kind kind;
} order;

typedef struct letter {
    fk_link link;
    bool is_late; /* sent after the suspend, by the same thread */
} letter;

typedef struct cell_state {
    fk_cell cell;
    fk_word ready;
    uint32_t senders;
    uint32_t done;
    uint32_t awake;
    bool resume_is_mark;
    uint32_t seen[KIND_COUNT];
    uint32_t total;
    letter letters[MESSAGES];
    order orders[KIND_COUNT];
} cell_state;

static cell_state the_cell;

static void setup(cell_state *s, uint32_t workers)
{
    fk__mailbox_init(&s->cell);
    s->senders = 2;
    s->awake = workers;
    fk__explore_label(&s->cell.tail, sizeof(s->cell.tail), 1, "tail");
    fk__explore_label(&s->cell.system, sizeof(s->cell.system), 1, "system");
    fk__explore_label(&s->cell.stub, sizeof(s->cell.stub), 1, "stub");
    fk__explore_label(&s->ready, sizeof(s->ready), 1, "ready");
    fk__explore_label(s->letters, sizeof(letter), MESSAGES, "letter");
    fk__explore_label(s->orders, sizeof(order), KIND_COUNT, "order");
}

static void setup_1(void *state)
{
    setup(state, 1);
}

static void setup_2(void *state)
{
    setup(state, 2);
}

static void setup_mark(void *state)
{
    cell_state *s = state;
    setup(s, 1);
    s->resume_is_mark = true;
}

static void schedule(cell_state *s)
{
    fk__word_add(&s->ready, 1, FK_ACQ_REL);
}

static void kick(cell_state *s)
{
    if (fk__mutation == NO_KICK) return;
    if (fk__mailbox_kick(&s->cell)) schedule(s);
}

static void post(cell_state *s, letter *l)
{
    fk__explore_write(&l->is_late);
    if (fk__mailbox_push(&s->cell, &l->link)) schedule(s);
}

/* Suspends, sends, resumes. */
static void command(cell_state *s)
{
    fk__explore_write(&s->orders[SUSPEND].kind);
    s->orders[SUSPEND].kind = SUSPEND;
    fk__mailbox_signal(&s->cell, &s->orders[SUSPEND].signal.link);
    kick(s);
    s->letters[0].is_late = true;
    post(s, &s->letters[0]);
    fk__explore_write(&s->orders[RESUME].kind);
    s->orders[RESUME].kind = RESUME;
    if (s->resume_is_mark) {
        fk__mailbox_mark(&s->cell, FK_SYSTEM_STOP);
    } else {
        fk__mailbox_signal(&s->cell, &s->orders[RESUME].signal.link);
    }
    kick(s);
    s->done++;
}

static void handle_signals(cell_state *s)
{
    uintptr_t marks;
    fk_link *link = fk__mailbox_take_signals(&s->cell, &marks);
    while (link != NULL) {
        const order *o = FK_CONTAINER(link, order, signal.link);
        fk__explore_read(&o->kind);
        fk__explore_check(o->kind != RESUME || s->seen[SUSPEND] == 1, "signals out of order");
        s->seen[o->kind]++;
        s->cell.suspended = o->kind == SUSPEND;
        link = fk__word_ptr(&link->next, FK_RELAXED);
    }
    if (marks != 0) {
        s->seen[RESUME]++;
        s->cell.suspended = 0;
    }
}

/* fk__cell_turn, with a suspended cell. True: stays ready. */
static bool turn(cell_state *s)
{
    for (;;) {
        if (fk__mutation == SIGNALS_EARLY && fk__mailbox_has_signal(&s->cell)) handle_signals(s);
        /* First the queue, then the signals: whoever sees a message sees, by its release, the
         * signals that its sender pushed before it. */
        fk_link *next = fk__mailbox_peek(&s->cell);
        bool looks = fk__mutation != MESSAGES_FIRST && fk__mutation != SIGNALS_EARLY;
        if ((looks || next == NULL) && fk__mailbox_has_signal(&s->cell)) {
            handle_signals(s);
            continue;
        }
        fk__explore_write(&s->total);
        if (s->cell.suspended != 0) {
            uintptr_t tail = fk__word_load(&s->cell.tail, FK_ACQUIRE);
            return !fk__mailbox_idle(&s->cell, tail & ~FK_TAIL_IDLE);
        }
        if (next == NULL) return !fk__mailbox_idle(&s->cell, (uintptr_t)s->cell.head);
        fk__mailbox_advance(&s->cell, next);
        const letter *l = FK_CONTAINER(next, letter, link);
        fk__explore_read(&l->is_late);
        fk__explore_check(!l->is_late || s->seen[SUSPEND] == 1, OVERTAKEN);
        s->total++;
    }
}

static bool has_news(void *arg)
{
    const cell_state *s = arg;
    return fk__word_load(&s->ready, FK_ACQUIRE) > 0 || (s->done == s->senders && s->awake == 0);
}

static void work(cell_state *s)
{
    for (;;) {
        s->awake--;
        fk__explore_await(has_news, s);
        s->awake++;
        if (s->ready.v == 0) break;
        s->ready.v--;
        uint32_t before = s->total + s->seen[SUSPEND] + s->seen[RESUME];
        if (!turn(s)) continue;
        if (s->total + s->seen[SUSPEND] + s->seen[RESUME] == before) fk__cpu_relax();
        schedule(s);
    }
    s->awake--;
}

static void thread(void *state, uint32_t id)
{
    cell_state *s = state;
    if (id == 0) {
        command(s);
    } else if (id == 1) {
        post(s, &s->letters[1]);
        s->done++;
    } else {
        work(s);
    }
}

static void finish(void *state)
{
    const cell_state *s = state;
    fk__explore_check(s->seen[SUSPEND] == 1 && s->seen[RESUME] == 1, "lost signal");
    fk__explore_check(s->cell.suspended == 0, "still suspended");
    fk__explore_check(s->total == MESSAGES, "lost message");
    fk__explore_check((s->cell.tail.v & FK_TAIL_IDLE) != 0, "nobody runs it, and not idle");
}

static const fk_harness HARNESSES[] = {
    { .name = "suspend",
      .threads = 3,
      .setup = setup_1,
      .thread = thread,
      .finish = finish,
      .state = &the_cell,
      .state_size = sizeof(the_cell) },
    { .name = "suspend-mark",
      .threads = 3,
      .setup = setup_mark,
      .thread = thread,
      .finish = finish,
      .state = &the_cell,
      .state_size = sizeof(the_cell) },
    { .name = "suspend-2-workers",
      .threads = 4,
      .setup = setup_2,
      .thread = thread,
      .finish = finish,
      .state = &the_cell,
      .state_size = sizeof(the_cell) },
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "suspend", FK_MUTATION_IDLE_RECHECK, NULL, FK_MEMORY_SC, true, NULL },
    { "suspend-mark", FK_MUTATION_IDLE_RECHECK, NULL, FK_MEMORY_SC, true, NULL },
    { "suspend", FK_MUTATION_IDLE_CAS, NULL, FK_MEMORY_SC, true, NULL },
    { "suspend", NO_KICK, "no-kick", FK_MEMORY_SC, true, NULL },
    { "suspend", MESSAGES_FIRST, "messages-first", FK_MEMORY_SC, true, OVERTAKEN },
    { "suspend", SIGNALS_EARLY, "signals-early", FK_MEMORY_SC, true, OVERTAKEN },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}
