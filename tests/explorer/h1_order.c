/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H1: the order of a mailbox. Two producers with two messages each, or three with one,
 * push through fk__mailbox_push, one consumer
 * holds the run token and takes with peek and advance. Messages of one producer arrive in the
 * order it sent them, none is lost or doubled, contents are visible, and the consumer may free a
 * node as soon as it has passed it.
 *
 * Two broken pushes show what the orders are for.
 */

#include "core/mailbox.h"
#include "sim/explore.h"

enum { PRODUCERS_MAX = 3 };

enum own_mutation {
    SWAP_RELAXED = FK_MUTATION_COUNT, /* the tail is exchanged without release */
    LINK_RELAXED,                     /* the node is linked without release */
    LINK_FIRST,                       /* the tail is read, linked to, then replaced */
};

typedef struct letter {
    fk_link link;
    uint32_t sender;
    uint32_t number;
} letter;

typedef struct order {
    fk_cell cell;
    uint32_t producers;
    uint32_t messages; /* of each */
    uint32_t done;     /* producers that have returned */
    uint32_t total;
    uint32_t seen[PRODUCERS_MAX];
} order;

static order the_order;

static void order_setup(order *o, uint32_t producers, uint32_t messages)
{
    fk__mailbox_init(&o->cell);
    fk__explore_check(fk__mailbox_kick(&o->cell), "a new cell is not idle");
    o->producers = producers;
    o->messages = messages;
    fk__explore_label(&o->cell.tail, sizeof(o->cell.tail), 1, "tail");
    fk__explore_label(&o->cell.stub, sizeof(o->cell.stub), 1, "stub");
}

static void order_setup_2(void *state)
{
    order_setup(state, 2, 2);
}

static void order_setup_3(void *state)
{
    order_setup(state, 3, 1);
}

/* fk__mailbox_push with something left out. */
static bool push_broken(fk_cell *cell, fk_link *link)
{
    fk__word_store(&link->next, 0, FK_RELAXED);
    if (fk__mutation == LINK_FIRST) {
        fk_link *last = (fk_link *)(fk__word_load(&cell->tail, FK_ACQUIRE) & ~FK_TAIL_IDLE);
        fk__word_store(&last->next, (uintptr_t)link, FK_RELEASE);
        return (fk__word_swap(&cell->tail, (uintptr_t)link, FK_ACQ_REL) & FK_TAIL_IDLE) != 0;
    }
    uintptr_t before = fk__word_swap(&cell->tail, (uintptr_t)link,
                                     fk__mutation == SWAP_RELAXED ? FK_RELAXED : FK_ACQ_REL);
    fk__word_store(&((fk_link *)(before & ~FK_TAIL_IDLE))->next, (uintptr_t)link,
                   fk__mutation == LINK_RELAXED ? FK_RELAXED : FK_RELEASE);
    return (before & FK_TAIL_IDLE) != 0;
}

static void produce(order *o, uint32_t id)
{
    for (uint32_t i = 0; i < o->messages; i++) {
        letter *l = fk__explore_alloc(sizeof(*l));
        fk__explore_write(&l->sender);
        l->sender = id;
        l->number = i;
        bool token = fk__mutation >= FK_MUTATION_COUNT ? push_broken(&o->cell, &l->link)
                                                       : fk__mailbox_push(&o->cell, &l->link);
        fk__explore_check(!token, "the token was given to two");
    }
    o->done++;
}

static bool has_news(void *arg)
{
    const order *o = arg;
    return fk__word_load(&o->cell.head->next, FK_ACQUIRE) != 0 || o->done == o->producers;
}

static void consume(order *o)
{
    for (;;) {
        fk__explore_await(has_news, o);
        fk_link *next = fk__mailbox_peek(&o->cell);
        if (next == NULL) break;
        fk_link *old = fk__mailbox_advance(&o->cell, next);
        if (old != &o->cell.stub) fk__explore_free(old, sizeof(letter));
        const letter *l = FK_CONTAINER(next, letter, link);
        fk__explore_read(&l->sender);
        fk__explore_check(l->number == o->seen[l->sender], "out of order");
        o->seen[l->sender]++;
        o->total++;
    }
    /* Everybody has returned, but a store may still be on its way. */
    if (!fk__mailbox_is_empty(&o->cell)) return;
    fk__explore_check(o->total == o->producers * o->messages, "empty, but not all have come");
    fk__explore_check(fk__mailbox_idle(&o->cell, (uintptr_t)o->cell.head), "busy with nothing");
}

static void order_thread(void *state, uint32_t id)
{
    order *o = state;
    if (id < o->producers) {
        produce(o, id);
    } else {
        consume(o);
    }
}

/* Takes what the last stores brought, alone, and frees the head. */
static void order_finish(void *state)
{
    order *o = state;
    fk_link *next;
    while ((next = fk__mailbox_peek(&o->cell)) != NULL) {
        fk_link *old = fk__mailbox_advance(&o->cell, next);
        if (old != &o->cell.stub) fk__explore_free(old, sizeof(letter));
        const letter *l = FK_CONTAINER(next, letter, link);
        fk__explore_check(l->number == o->seen[l->sender], "out of order");
        o->seen[l->sender]++;
        o->total++;
    }
    fk__explore_check(o->total == o->producers * o->messages, "lost message");
    fk__explore_free(o->cell.head, sizeof(letter));
}

static const fk_harness HARNESSES[] = {
    { .name = "order-2",
      .threads = 3,
      .setup = order_setup_2,
      .thread = order_thread,
      .finish = order_finish,
      .state = &the_order,
      .state_size = sizeof(the_order) },
    { .name = "order-3",
      .threads = 4,
      .setup = order_setup_3,
      .thread = order_thread,
      .finish = order_finish,
      .state = &the_order,
      .state_size = sizeof(the_order) },
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "order-2", SWAP_RELAXED, "swap-relaxed", FK_MEMORY_TSO_PLUS, true, "lost message" },
    { "order-2", LINK_RELAXED, "link-relaxed", FK_MEMORY_SC, true, "data race" },
    { "order-2", LINK_FIRST, "link-first", FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}
