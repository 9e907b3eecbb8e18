/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_KERNEL_H
#define FK_SIM_KERNEL_H

/*
 * The scenario "kernel": one system, actors that do everything the public API offers at random,
 * threads outside that send, spawn and stop, and a program that starts it all and stops it at
 * some moment. Everything goes through include/fraktor; what the system does is recorded in the
 * ledger, which finds what is wrong. Private headers are used to drive the workers, as the host
 * does, and to look at queues while nobody runs.
 */

#include "core/system.h"
#include "sim/ledger.h"
#include "sim/world.h"

#define FK_SIM_CLAIMS 2u

/* A uid of a thread's own. */
typedef struct sim_claim {
    bool is_held;
    fk_time until_least, until_most; /* when its reservation ends; 0: it never had one */
} sim_claim;

typedef struct fk_kernel {
    fk_system *sys;                                 /* NULL before and after */
    uint32_t threads;                               /* workers and pinned workers that run */
    uint32_t outsiders;                             /* that have not returned */
    uint32_t pinned;                                /* threads made for pinned actors */
    bool has_begun;                                 /* all is set up: faults, limits */
    uint32_t rests;                                 /* moments at which everybody slept */
    uint32_t insiders;                              /* mask of threads that are workers */
    uint32_t in_letter;                             /* mask of threads in on_dead_letter */
    fk_reporting reporting[FK_MACHINE_THREADS_MAX]; /* the kernel's own note of the same */
    uint32_t drowsy; /* workers that sleep in the middle of something: they may have work */
    fk_receive_fn receive[2]; /* that fk_become() changes between */
    sim_claim claim[FK_MACHINE_THREADS_MAX][FK_SIM_CLAIMS];
} fk_kernel;

extern fk_kernel fk__kernel;

/* One run of that seed: NULL, or what was found. */
const char *fk__kernel_run(uint64_t seed);

/* What other scenarios of one system share with it. */
void fk__kernel_start_workers(fk_system *sys);
/* Tries fk__kernel.sys = make(port) until it succeeds, with allocations that fail if need be. */
void fk__kernel_create(fk_err (*make)(const fk_port *port, fk_system **out));
/* Allocations may fail from here on. */
void fk__kernel_begin_faults(fk_system *sys);
/* When the root has stopped: the rest of fk_system_stop(). */
void fk__kernel_destroy(fk_system *sys);
/* While nobody runs: every cell and worker. */
void fk__kernel_watch_pause(void);
/* False: some worker is in the middle of something. */
bool fk__kernel_watch_rest(fk_time next);
/* Nobody waits for a worker, though some may sleep in the middle of something. */
bool fk__kernel_is_quiet(void);
void fk__kernel_check_end(void);
/* Notes how the machine of the run is. */
void fk__kernel_note_machine(const fk_swarm *swarm);

/* ---- kernel_mail.c: messages ------------------------------------------------------------- */

typedef enum fk_mail_kind {
    FK_KIND_NOTE,
    FK_KIND_WIDE,
    FK_KIND_OWNED,
    FK_KIND_LARGE,
    FK_KIND_CARGO,
    FK_KIND_TEXT,
    FK_KIND_SENDABLE, /* how many of the above */
    FK_KIND_PARCEL = FK_KIND_SENDABLE,
    FK_KIND_TICK, /* of timers */
    FK_KIND_BELL,
    FK_KIND_COUNT
} fk_mail_kind;

typedef struct fk_envelope {
    _Alignas(16) unsigned char bytes[256];
    fk_str text;
} fk_envelope;

/* Writes a message of that kind; the result points into the envelope. */
fk_out fk__kernel_make(fk_envelope *envelope, fk_mail_kind kind, uint32_t number);
/* The number that a message carries; its bytes are checked. */
uint32_t fk__kernel_read(const fk_type *type, const void *data, size_t len, fk_mail_kind *kind);
int64_t fk__kernel_priority(const fk_msg *msg);
void fk__kernel_letter(void *user, const fk_dead_letter *letter);

/* Sends. ctx NULL: from outside, and from is FK_NOBODY. */
bool fk__kernel_may_send(void);
void fk__kernel_send(fk_ctx *ctx, uint32_t from, uint32_t to, uint32_t rounds);
void fk__kernel_reply(fk_ctx *ctx, uint32_t from, uint32_t to, uint32_t rounds);
void fk__kernel_send_bogus(fk_ctx *ctx, uint32_t from);
void fk__kernel_send_parcel(fk_ctx *ctx, uint32_t from);
/* By its path. */
void fk__kernel_send_selected(fk_ctx *ctx, uint32_t from, uint32_t to, fk_str path);
/* Somebody whose ref is known, perhaps dead; FK_NOBODY when there is none. */
uint32_t fk__kernel_pick(void);
uint32_t fk__kernel_pick_dying(void);

/* ---- kernel_actor.c: actors -------------------------------------------------------------- */

/* ctx NULL: under /user. */
void fk__kernel_spawn(fk_ctx *ctx, uint32_t parent, bool is_named);
void fk__kernel_stop_other(uint32_t by);
void fk__kernel_poison(void);
extern const fk_receive_fn fk__kernel_receive[2];

/* kernel_acts.c: what an actor does with a message. */
typedef struct fk_scene {
    fk_ctx *ctx;
    uint32_t actor;
    const fk_msg *msg; /* NULL in hooks */
    uint32_t mail;     /* being handled; 0: none */
    uint32_t alarm;    /* being handled; 0: none */
    bool is_used;      /* forwarded or stashed */
    bool is_hook;      /* there may be nothing left to change about the actor itself */
    fk_err err;
} fk_scene;

void fk__kernel_act(fk_scene *scene, fk_act act);
/* Around the acts with a message: which one it is, and whether it still is. */
void fk__kernel_open(fk_scene *scene);
void fk__kernel_close(fk_scene *scene);
/* Draws the mailbox of an actor and whatever else no scenario cares about. */
void fk__kernel_draw_mailbox(fk_props *props, fk_person *person);
void fk__kernel_count_spawn(const fk_person *person, fk_err err);
/* The name of the n-th kind; 0: none. */
typedef struct fk_short_name {
    char text[16];
} fk_short_name;
fk_short_name fk__kernel_name(uint32_t n);

/* ---- kernel_path.c: paths, selections, uids --------------------------------------------------- */

void fk__kernel_look_at_path(void);
void fk__kernel_resolve(void);
void fk__kernel_identify(void);
void fk__kernel_select(fk_ctx *ctx, uint32_t from);
/* A message to many: no part of the ledger of mail. */
void fk__kernel_call(void);
bool fk__kernel_is_call(const fk_type *type);
bool fk__kernel_call_received(uint32_t actor, const fk_msg *msg);
bool fk__kernel_call_letter(const fk_dead_letter *letter);
void fk__kernel_claim(void);

/* ---- kernel_thread.c: threads ------------------------------------------------------------ */

void fk__kernel_shuffle(fk_worker *worker);
void fk__kernel_worker(void *arg, uint32_t thread);
bool fk__kernel_is_inside(void *ctx);
fk_reporting *fk__kernel_reporting(void *ctx);
fk_err fk__kernel_pin(void *ctx, fk_worker *worker);
void fk__kernel_outsider(void *arg, uint32_t thread);

#endif /* FK_SIM_KERNEL_H */
