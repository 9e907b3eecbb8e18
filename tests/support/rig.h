/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_RIG_H
#define FK_TESTS_SUPPORT_RIG_H

/*
 * A rig: one test's system with a port that counts every byte, can refuse any allocation, and
 * whose clock the test moves. rig_stop() asserts that not a byte is left.
 *
 * By default a rig has no threads: rig_run() runs everything that is ready on the test's thread,
 * so every order is the same each time.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "support/test.h"

typedef struct rig_letters {
    size_t count;
    size_t of[FK_REASON_COUNT];
    fk_dead_letter last; /* data points to bytes */
    unsigned char bytes[64];
} rig_letters;

typedef struct rig_failures {
    size_t count;
    fk_failure last; /* detail points to text */
    char text[128];
} rig_failures;

typedef struct rig {
    fk_port host; /* the real one, under the test's */
    fk_port port;
    fk_system *sys;
    _Atomic int64_t now;
    bool is_real_time; /* what rig_init() leaves false; systems with workers make it true */
    _Atomic uint64_t bytes, blocks, bytes_peak, allocations;
    /* Refuses the fault_at-th allocation from rig_fault() on, counted from 1, and with fault_stays
     * all after it, too. 0: none. */
    _Atomic uint64_t fault_at;
    _Atomic bool fault_stays;
    _Atomic uint64_t asked, refused;
    void (*on_admit)(void *user, const fk_site *site, bool refused);
    void *on_admit_user;
    /* What the system reported. */
    pthread_mutex_t lock;
    rig_letters letters;
    rig_failures failures;
} rig;

/* The port, and no system yet. */
void rig_init(rig *r);
/* Starts r->sys with r's port and callbacks; workers 0 becomes FK_WORKERS_NONE. Manual time if
 * there are no threads. */
fk_err rig_try_start(rig *r, const fk_system_config *config);
void rig_start(rig *r);
void rig_start_with(rig *r, fk_system_config config);
/* Runs until nothing is ready; returns the turns. */
size_t rig_run(rig *r);
/* Moves the clock by that much at once, then runs. */
void rig_advance(rig *r, fk_time by);
/* Moves the clock in steps of a millisecond. */
void rig_pass(rig *r, fk_time by);
/* Stops the system; asserts that no byte is left. */
void rig_stop(rig *r);
void rig_check_empty(rig *r);
void rig_fault(rig *r, uint64_t at, bool stays);

/* ---- actors and messages for tests ------------------------------------------------------- */

typedef struct num {
    uint64_t n;
} num;
FK_MESSAGE(num);

/* Writes down what it gets. */
typedef struct probe {
    size_t count;
    uint64_t n[1024]; /* of a num; PROBE_OTHER for another type */
    const fk_type *type;
    fk_ref sender;
    size_t len;
    unsigned char bytes[256]; /* of the last message */
    bool started, stopped;
} probe;

#define PROBE_OTHER UINT64_MAX

fk_err probe_receive(fk_ctx *ctx, void *state, const fk_msg *msg);
void probe_stop(fk_ctx *ctx, void *state);
/* Props of a probe; its state is the caller's. */
fk_props probe_props(probe *p);
fk_ref probe_spawn(rig *r, probe *p);

/* Runs a function inside receive. */
typedef fk_err (*rig_call_fn)(fk_ctx *ctx, void *arg);
typedef struct rig_call {
    rig_call_fn fn;
    void *arg;
} rig_call;
FK_MESSAGE(rig_call);

/* An actor that does what rig_call messages say. */
fk_err doer_receive(fk_ctx *ctx, void *state, const fk_msg *msg);
fk_ref doer_spawn(rig *r);
/* Sends the call and runs. */
void rig_do(rig *r, fk_ref doer, rig_call_fn fn, void *arg);

/* A message that owns something: counts how often it was dropped. */
typedef struct owned {
    _Atomic int *drops;
    uint64_t n;
} owned;
extern const fk_type fk_type_owned;
/* The same, too large to be inline. */
typedef struct owned_large {
    _Atomic int *drops;
    uint64_t n;
    unsigned char filling[200];
} owned_large;
extern const fk_type fk_type_owned_large;

#endif /* FK_TESTS_SUPPORT_RIG_H */
