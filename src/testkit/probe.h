/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTKIT_PROBE_H
#define FK_TESTKIT_PROBE_H

/* A probe: an actor that keeps its messages. */

#include "testkit/sim.h"

/* A message with what it owns, in memory of the testkit. */
typedef struct fk_kept {
    struct fk_kept *next;
    fk_msg msg;
    fk_time at;
    fk_payload *payload; /* the data is in it; or NULL */
    bool has_drop;       /* the bytes own something */
    _Alignas(16) unsigned char bytes[];
} fk_kept;

struct fk_probe {
    fk_probe *next;
    fk_sim *sim;
    fk_ref ref;
    fk_kept *first, *last;
    fk_kept *lent; /* to the test: the one taken last */
    size_t count;
    const fk_type *ignored[FK_PROBE_IGNORED_MAX];
    bool has_acted; /* fk__probe_do() */
    fk_err act_result;
    bool has_window; /* fk_probe_within() */
    fk_time window_began, window_min, window_max;
};

/* Takes the next message, which is lent from here on; NULL: none came by the deadline. */
const fk_kept *fk__probe_take(fk_probe *probe, fk_time deadline);
/* Waits for a message without taking it. */
bool fk__probe_await(fk_probe *probe, fk_time deadline);

/* What a probe can be told to do, inside its receive. */
typedef fk_err (*fk_probe_act_fn)(fk_ctx *ctx, fk_ref actor);
/* Lets it do that, and runs until it has. FK_E_TIMEOUT: it was stopped or delayed. */
FK_MUST_USE fk_err fk__probe_do(fk_probe *probe, fk_probe_act_fn act, fk_ref actor);

#endif /* FK_TESTKIT_PROBE_H */
