/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H2: going idle and being scheduled, with one read-modify-write a send. A producer exchanges the
 * tail word, which carries the mark IDLE, and schedules the cell if the mark was there; the
 * consumer goes idle by compare-exchange of tail to tail|IDLE and stays ready if that fails. So
 * every message is handled, and one worker at a time runs the cell and sees what the last left.
 *
 * Beside the mutation of the real code there are four forms that look much the same and lose
 * messages, run the cell twice, or hand over a half-written state.
 */

#include "core/mailbox.h"
#include "sim/explore.h"

enum { PRODUCERS_MAX = 2, MESSAGES = 2, BUDGET = 2 };

enum own_mutation {
    FLAG_LOAD = FK_MUTATION_COUNT, /* a word of its own says idle; the producer loads it after
                                      linking, the consumer looks at the queue after setting it */
    MARK_LOAD,    /* the producer loads the mark before its exchange instead of taking it out */
    IDLE_OR,      /* the consumer sets the mark without comparing */
    IDLE_RELAXED, /* the consumer's compare-exchange is relaxed */
};

typedef struct letter {
    fk_link link;
    uint32_t sender;
    uint32_t number;
} letter;

typedef struct idle {
    fk_cell cell;
    fk_word flag;  /* FLAG_LOAD: 1 while idle */
    fk_word ready; /* how often the cell is in the run queue */
    uint32_t producers;
    uint32_t done;  /* producers that have returned */
    uint32_t awake; /* workers that are not waiting */
    uint32_t total;
    uint32_t messages[PRODUCERS_MAX];
    uint32_t seen[PRODUCERS_MAX];
    letter letters[PRODUCERS_MAX][MESSAGES];
} idle;

static idle the_idle;

static void idle_setup(idle *i, uint32_t workers)
{
    /* With two workers one message less, or the schedules are too many. */
    i->messages[0] = MESSAGES;
    i->messages[1] = workers == 1 ? MESSAGES : 1;
    fk__mailbox_init(&i->cell);
    fk__word_init(&i->flag, 1);
    i->producers = PRODUCERS_MAX;
    i->awake = workers;
    fk__explore_label(&i->cell.tail, sizeof(i->cell.tail), 1, "tail");
    fk__explore_label(&i->cell.system, sizeof(i->cell.system), 1, "system");
    fk__explore_label(&i->cell.stub, sizeof(i->cell.stub), 1, "stub");
    fk__explore_label(&i->ready, sizeof(i->ready), 1, "ready");
    fk__explore_label(&i->flag, sizeof(i->flag), 1, "flag");
    fk__explore_label(i->letters, sizeof(letter), PRODUCERS_MAX * MESSAGES, "letter");
}

static void idle_setup_1(void *state)
{
    idle_setup(state, 1);
}

static void idle_setup_2(void *state)
{
    idle_setup(state, 2);
}

static bool push(idle *i, fk_link *link)
{
    fk_cell *cell = &i->cell;
    if (fk__mutation == FLAG_LOAD) {
        fk__mailbox_push(cell, link);
        if (fk__word_load(&i->flag, FK_ACQUIRE) == 0) return false;
        return fk__word_swap(&i->flag, 0, FK_ACQ_REL) == 1;
    }
    if (fk__mutation == MARK_LOAD) {
        bool was_idle = (fk__word_load(&cell->tail, FK_ACQUIRE) & FK_TAIL_IDLE) != 0;
        fk__mailbox_push(cell, link);
        return was_idle;
    }
    return fk__mailbox_push(cell, link);
}

/* True: the token is gone. */
static bool go_idle(idle *i)
{
    fk_cell *cell = &i->cell;
    uintptr_t tail = (uintptr_t)cell->head;
    if (fk__mutation == FLAG_LOAD) {
        const fk_link *head = cell->head;
        fk__word_swap(&i->flag, 1, FK_ACQ_REL);
        if (fk__word_load(&head->next, FK_ACQUIRE) == 0) return true;
        return fk__word_swap(&i->flag, 0, FK_ACQ_REL) == 0;
    }
    if (fk__mutation == IDLE_OR) {
        fk__word_or(&cell->tail, FK_TAIL_IDLE, FK_ACQ_REL);
        return true;
    }
    if (fk__mutation == IDLE_RELAXED) {
        return fk__word_cas(&cell->tail, &tail, tail | FK_TAIL_IDLE, FK_RELAXED);
    }
    return fk__mailbox_idle(cell, tail);
}

static void produce(idle *i, uint32_t id)
{
    for (uint32_t n = 0; n < i->messages[id]; n++) {
        letter *l = &i->letters[id][n];
        fk__explore_write(&l->sender);
        l->sender = id;
        l->number = n;
        if (push(i, &l->link)) fk__word_add(&i->ready, 1, FK_ACQ_REL);
    }
    i->done++;
}

/* A cell is ready, or nothing will come any more. */
static bool has_news(void *arg)
{
    const idle *i = arg;
    return fk__word_load(&i->ready, FK_ACQUIRE) > 0 || (i->done == i->producers && i->awake == 0);
}

/* Returns whether the cell stays ready. */
static bool run(idle *i)
{
    for (uint32_t n = 0; n < BUDGET; n++) {
        fk_link *next = fk__mailbox_peek(&i->cell);
        fk__explore_write(&i->total); /* the owner's: races are two runners */
        if (next == NULL) return !go_idle(i);
        fk__mailbox_advance(&i->cell, next);
        const letter *l = FK_CONTAINER(next, letter, link);
        fk__explore_read(&l->sender);
        fk__explore_check(l->number == i->seen[l->sender], "out of order");
        i->seen[l->sender]++;
        i->total++;
    }
    return true;
}

static void work(idle *i)
{
    for (;;) {
        i->awake--;
        fk__explore_await(has_news, i);
        i->awake++;
        if (i->ready.v == 0) break;
        i->ready.v--;
        uint32_t before = i->total;
        if (!run(i)) continue;
        /* A producer stands between exchange and link: the cell stays ready, but not at the cost
         * of that producer. */
        if (i->total == before) fk__cpu_relax();
        fk__word_add(&i->ready, 1, FK_ACQ_REL);
    }
    i->awake--;
}

static void idle_thread(void *state, uint32_t id)
{
    idle *i = state;
    if (id < i->producers) {
        produce(i, id);
    } else {
        work(i);
    }
}

static void idle_finish(void *state)
{
    const idle *i = state;
    fk__explore_check(i->total == i->messages[0] + i->messages[1], "lost message");
    fk__explore_check(i->ready.v == 0, "still in the run queue");
    if (fk__mutation != FLAG_LOAD) {
        fk__explore_check((i->cell.tail.v & FK_TAIL_IDLE) != 0, "nobody runs it, and not idle");
    }
}

static const fk_harness HARNESSES[] = {
    { .name = "idle",
      .threads = 3,
      .setup = idle_setup_1,
      .thread = idle_thread,
      .finish = idle_finish,
      .state = &the_idle,
      .state_size = sizeof(the_idle) },
    { .name = "idle-2-workers",
      .threads = 4,
      .setup = idle_setup_2,
      .thread = idle_thread,
      .finish = idle_finish,
      .state = &the_idle,
      .state_size = sizeof(the_idle) },
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "idle", FK_MUTATION_IDLE_CAS, NULL, FK_MEMORY_SC, true, NULL },
    { "idle-2-workers", FK_MUTATION_IDLE_CAS, NULL, FK_MEMORY_SC, true, NULL },
    { "idle", FLAG_LOAD, "flag-load", FK_MEMORY_TSO, true, "lost message" },
    { "idle", MARK_LOAD, "mark-load", FK_MEMORY_SC, true, NULL },
    { "idle", IDLE_OR, "idle-or", FK_MEMORY_SC, true, "lost message" },
    { "idle-2-workers", IDLE_RELAXED, "idle-relaxed", FK_MEMORY_SC, true, "data race" },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}
