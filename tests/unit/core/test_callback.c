/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The user's functions that the runtime calls from outside receive: dead letters, drops, failures.
 * They may call the runtime again, from as many threads and as deeply as they like. */

#include <pthread.h>
#include <sched.h>

#include "support/rig.h"

enum { DEPTH = 40, THREADS = 24 };

typedef struct nest {
    rig r; /* first: the callbacks' user is the rig */
    fk_ref live;
    probe p;
    int count;
} nest;

static void letter_makes_letter(void *user, const fk_dead_letter *letter)
{
    nest *n = user;
    (void)letter;
    n->count++;
    CHECK_OK(fk_send(n->r.sys, n->live, FK_MSG(num, 7)));
    CHECK_OK(fk_send(n->r.sys, FK_REF_NONE, FK_MSG(num, 1)));
}

static void nest_start(nest *n, fk_dead_letter_fn fn)
{
    n->count = 0;
    rig_start_with(&n->r, (fk_system_config){ .on_dead_letter = fn });
    n->live = probe_spawn(&n->r, &n->p);
    rig_run(&n->r);
}

TEST(callback_of_a_dead_letter_may_send_and_is_not_called_for_what_it_sends_in_vain)
{
    static nest n;
    fk_stats stats;
    nest_start(&n, letter_makes_letter);
    CHECK_OK(fk_send(n.r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    CHECK_U64(n.count, 1);
    fk_stats_get(n.r.sys, &stats);
    CHECK_U64(stats.dead_letters[FK_REASON_NO_RECEIVER], 2); /* but it is counted */
    rig_run(&n.r);
    CHECK_U64(n.p.count, 1);
    CHECK_OK(fk_send(n.r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    CHECK_U64(n.count, 2); /* called again for the next one */
    rig_stop(&n.r);
}

/* A message that, when dropped, sends another of its kind. */
typedef struct hydra {
    nest *n;
    int left;
} hydra;

static void hydra_drop(void *message);
static const fk_type fk_type_hydra = { "hydra", sizeof(hydra), _Alignof(hydra), hydra_drop };

static void hydra_drop(void *message)
{
    hydra *h = message;
    h->n->count++;
    if (h->left == 0) return;
    hydra next = { h->n, h->left - 1 };
    CHECK_OK(fk_send(h->n->r.sys, FK_REF_NONE, (fk_out){ &fk_type_hydra, &next }));
}

TEST(callback_of_a_drop_may_send_however_deep)
{
    static nest n;
    nest_start(&n, NULL); /* the rig's own */
    hydra first = { &n, DEPTH };
    CHECK_OK(fk_send(n.r.sys, FK_REF_NONE, (fk_out){ &fk_type_hydra, &first }));
    CHECK_U64(n.count, DEPTH + 1);
    /* And the same on a worker. */
    CHECK_OK(fk_send(n.r.sys, n.live, (fk_out){ &fk_type_hydra, &first }));
    rig_run(&n.r);
    CHECK_U64(n.count, 2 * (DEPTH + 1));
    rig_stop(&n.r);
}

/* ---- from many threads at once ----------------------------------------------------------- */

typedef struct crowd {
    rig r;
    fk_ref live;
    _Atomic uint64_t letters;
    pthread_barrier_t all;
} crowd;

static crowd C;

static void letter_to_live(void *user, const fk_dead_letter *letter)
{
    (void)user;
    (void)letter;
    /* All threads are in here at the same time, the first time round. */
    if (atomic_fetch_add(&C.letters, 1) < THREADS) pthread_barrier_wait(&C.all);
    CHECK_OK(fk_send(C.r.sys, C.live, FK_MSG(num, 1)));
}

static void *send_to_nobody(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) CHECK_OK(fk_send(C.r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    return NULL;
}

TEST(callback_of_dead_letters_may_send_from_many_threads_at_once)
{
    pthread_t thread[THREADS];
    static probe p;
    pthread_barrier_init(&C.all, NULL, THREADS);
    rig_start_with(&C.r, (fk_system_config){ .on_dead_letter = letter_to_live });
    C.live = probe_spawn(&C.r, &p);
    for (int i = 0; i < THREADS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, send_to_nobody, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    rig_run(&C.r);
    CHECK_U64(p.count, THREADS * 100);
    rig_stop(&C.r);
    pthread_barrier_destroy(&C.all);
}

static void failure_to_live(void *user, const fk_failure *failure)
{
    nest *n = user;
    CHECK_ERR(failure->err, FK_E_FAILED);
    CHECK_OK(fk_send(n->r.sys, n->live, FK_MSG(num, 5)));
}

static fk_err fail_it(fk_ctx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return FK_E_FAILED;
}

TEST(callback_of_a_failure_may_send)
{
    static nest n;
    rig_start_with(&n.r, (fk_system_config){ .on_failure = failure_to_live });
    n.live = probe_spawn(&n.r, &n.p);
    rig_do(&n.r, doer_spawn(&n.r), fail_it, NULL);
    CHECK_U64(n.p.count, 1);
    CHECK_U64(n.p.n[0], 5);
    rig_stop(&n.r);
}
