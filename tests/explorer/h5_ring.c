/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H5: the queues of ready cells. An owner pushes and pops while thieves steal: the last cell of
 * the ring, the next slot, and a full ring with an overflow behind it. Whatever happens, each
 * cell is got by exactly one, and whoever gets it sees what its last owner wrote.
 *
 * The ring's slots are relaxed, so the small harnesses make relaxed accesses scheduling points.
 */

#include "explorer/kernel.h"

enum { CELLS_MAX = 260, OWNER = 0 };

enum own_mutation {
    POP_STORE = FK_MUTATION_COUNT, /* the owner moves top by a store */
    SLOTS_LATE,                    /* the thief reads the slots after it has moved top */
    BOTTOM_RELAXED,                /* the owner publishes a slot without release */
};

typedef struct ring {
    fk_worker *worker[KERNEL_WORKERS_MAX];
    fk_cell cell[CELLS_MAX];
    uint32_t cells;
    uint32_t got[CELLS_MAX];
} ring;

static ring the_ring;

static const kernel_config WORKERS = { .workers = 3, .direct = true };

static void setup(ring *r)
{
    fk_system *sys = kernel_start(&WORKERS, 0, 0);
    for (uint32_t i = 0; i < KERNEL_WORKERS_MAX; i++) r->worker[i] = sys->dispatch.worker[i];
    fk__explore_label(r->worker[0]->ring, sizeof(fk_word), FK_RING, "ring0");
    fk__explore_label(r->worker[1]->ring, sizeof(fk_word), FK_RING, "ring1");
    fk__explore_label(r->cell, sizeof(fk_cell), CELLS_MAX, "cell");
}

/* A cell that the calling thread owned goes into the queue. */
static void push(ring *r, uint32_t worker)
{
    fk_worker *w = r->worker[worker];
    fk_cell *cell = &r->cell[r->cells++];
    fk__explore_write(&cell->head);
    if (fk__mutation == BOTTOM_RELAXED) {
        uint32_t bottom = fk__half_load(&w->bottom, FK_RELAXED);
        fk__word_store(&w->ring[bottom % FK_RING], (uintptr_t)cell, FK_RELAXED);
        fk__half_store(&w->bottom, bottom + 1, FK_RELAXED);
        return;
    }
    fk__ready_push(w, cell);
}

static fk_cell *pop(fk_worker *w)
{
    if (fk__mutation != POP_STORE) return fk__ready_pop(w);
    uint32_t top = fk__half_load(&w->top, FK_ACQUIRE);
    if (fk__half_load(&w->bottom, FK_RELAXED) == top) return NULL;
    fk_cell *cell = fk__word_ptr(&w->ring[top % FK_RING], FK_RELAXED);
    fk__half_store(&w->top, top + 1, FK_RELEASE);
    return cell;
}

/* Takes one, reading its slot too late. */
static fk_cell *steal_broken(fk_worker *victim)
{
    uint32_t top = fk__half_load(&victim->top, FK_ACQUIRE);
    if (fk__half_load(&victim->bottom, FK_ACQUIRE) == top) return NULL;
    if (!fk__half_cas(&victim->top, &top, top + 1, FK_ACQ_REL)) return NULL;
    fk__cpu_relax(); /* a scheduling point: the slot's load is relaxed */
    return fk__word_ptr(&victim->ring[top % FK_RING], FK_RELAXED);
}

static void take(ring *r, fk_cell *cell)
{
    if (cell == NULL) return;
    fk__explore_write(&cell->head);
    fk__explore_check(++r->got[cell - r->cell] == 1, "a cell was got twice");
}

static void take_all(ring *r, uint32_t worker)
{
    fk_cell *cell;
    while ((cell = pop(r->worker[worker])) != NULL) take(r, cell);
}

static void steal(ring *r, uint32_t thief)
{
    take(r, fk__ready_steal(r->worker[thief], r->worker[OWNER]));
    take_all(r, thief);
}

static void finish(void *state)
{
    ring *r = state;
    for (uint32_t i = 0; i < KERNEL_WORKERS_MAX; i++) {
        take_all(r, i);
        take(r, fk__ready_take_next(r->worker[i]));
    }
    for (uint32_t i = 0; i < r->cells; i++) {
        fk__explore_check(r->got[i] == 1, "a cell was lost");
    }
    fk__explore_check(r->worker[OWNER]->overflow_len == 0, "the overflow's length is wrong");
    fk_terminate_now(the_kernel.sys);
    kernel_settle();
    kernel_end(false);
}

/* The last cell: one in the ring, one more on its way. */

static void last_setup(void *state)
{
    ring *r = state;
    setup(r);
    push(r, OWNER);
}

static void last_thread(void *state, uint32_t id)
{
    ring *r = state;
    if (id == OWNER) {
        take(r, pop(r->worker[OWNER]));
        push(r, OWNER);
        take(r, pop(r->worker[OWNER]));
    } else {
        steal(r, id);
    }
    kernel_barrier();
}

/* Some cells, of which a thief takes half. */
static void half_setup(void *state)
{
    ring *r = state;
    setup(r);
    for (uint32_t i = 0; i < 3; i++) push(r, OWNER);
}

static void half_thread(void *state, uint32_t id)
{
    ring *r = state;
    if (id == OWNER) {
        take(r, pop(r->worker[OWNER]));
        take(r, pop(r->worker[OWNER]));
        push(r, OWNER);
    } else {
        steal(r, id);
    }
    kernel_barrier();
}

/* The next slot: the owner puts cells there and takes them, a thief takes, too. */
static void next_thread(void *state, uint32_t id)
{
    ring *r = state;
    fk_worker *owner = r->worker[OWNER];
    if (id == OWNER) {
        for (uint32_t i = 0; i < 2; i++) {
            r->cells++;
            fk__explore_write(&r->cell[i].head);
            fk__schedule(&owner->local, &r->cell[i]);
        }
        take(r, fk__ready_take_next(owner));
        take(r, fk__ready_pop(owner));
    } else {
        take(r, fk__ready_take_next(owner));
        take(r, fk__ready_steal(r->worker[id], owner));
    }
    kernel_barrier();
}

static void next_setup(void *state)
{
    setup(state);
}

/* A full ring, one cell behind it. The thief makes room, the owner refills. */
static void overflow_setup(void *state)
{
    ring *r = state;
    setup(r);
    for (uint32_t i = 0; i < FK_RING; i++) push(r, OWNER);
}

static void overflow_thread(void *state, uint32_t id)
{
    ring *r = state;
    if (id == OWNER) {
        push(r, OWNER);
        take(r, pop(r->worker[OWNER]));
        push(r, OWNER);
    } else {
        take(r, fk__mutation == SLOTS_LATE ? steal_broken(r->worker[OWNER])
                                           : fk__ready_steal(r->worker[id], r->worker[OWNER]));
    }
    kernel_barrier();
}

/* A theft moves 128 cells, each by a store of its own: under TSO that is too much for more than
 * one preemption. */
#define HARNESS(NAME, THREADS, FINE, BOUND, SETUP, THREAD)                                         \
    {                                                                                              \
        .name = NAME, .threads = THREADS, .is_fine = FINE, .bound_max = BOUND, .setup = SETUP,     \
        .thread = THREAD, .finish = finish, .state = &the_ring, .state_size = sizeof(the_ring)     \
    }

static const fk_harness HARNESSES[] = {
    HARNESS("ring-last", 3, true, 0, last_setup, last_thread),
    HARNESS("ring-half", 3, true, 0, half_setup, half_thread),
    HARNESS("ring-next", 3, true, 0, next_setup, next_thread),
    HARNESS("ring-overflow", 2, false, 1, overflow_setup, overflow_thread),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "ring-last", POP_STORE, "pop-store", FK_MEMORY_SC, true, NULL },
    { "ring-overflow", SLOTS_LATE, "slots-late", FK_MEMORY_SC, true, NULL },
    { "ring-last", BOTTOM_RELAXED, "bottom-relaxed", FK_MEMORY_SC, true, "data race" },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}
