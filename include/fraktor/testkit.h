/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTKIT_H
#define FK_TESTKIT_H

/*
 * Testing one's own actors: a system that runs on the test's thread, on a clock that moves only when
 * the test waits, in an order drawn from a seed. A day passes in milliseconds, and whatever goes
 * wrong goes wrong again with the same seed. Link fraktor::testkit, or pkg-config fraktor-testkit.
 *
 *     fk_sim *sim;
 *     fk_probe *probe;
 *     if (fk_sim_create(&(fk_sim_config){ .name = "cart" }, &sim) != FK_OK) return 1;
 *     if (fk_probe_create(sim, "probe", &probe) != FK_OK) return 1;
 *     fk_spawn(fk_sim_system(sim), FK_STR("cart"), &CART, &cart);
 *     fk_probe_send(probe, cart, FK_MSG(add_item, 7));
 *     const item_added *added = FK_EXPECT(probe, item_added);    runs until it comes, or fails
 *     fk_sim_advance(sim, FK_MINUTES(30));
 *     FK_EXPECT(probe, cart_expired);
 *     FK_EXPECT_NOTHING(probe, FK_SECONDS(5));
 *     return fk_sim_destroy(sim) ? 0 : 1;                        false if anything failed
 *
 * An expectation that fails writes a report (what was expected and what came, the last events with
 * their time, the tree of actors, and the line that replays the seed), calls config.on_failure, and
 * returns NULL or false. So it works in any framework; inside cmocka, one line makes it end there:
 *
 *     FK_SIM_CMOCKA(end_test)                                    after #include <cmocka.h>
 *     ... fk_sim_create(&(fk_sim_config){ .name = "cart", .on_failure = end_test }, &sim)
 *
 * The system is an ordinary one. The calls that wait (fk_await_stopped() and its like) let the
 * simulation run meanwhile; only fk_system_stop() gives FK_E_UNSUPPORTED. Timers go by ticks of 1.05 ms; the
 * testkit's clock stops at the end of one, so that waiting for as long as a timer does is enough.
 *
 * Everything here is for one thread, and not for inside receive.
 */

#include "fraktor/inspect.h"
#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_sim fk_sim;
typedef struct fk_probe fk_probe;

/* ---- failures ----------------------------------------------------------------------------- */

/* Lent to on_failure. */
typedef struct fk_sim_failure {
    const char *test;     /* config.name */
    const char *expected; /* "item_added from anybody within 3.000000 s" */
    const char *actual;   /* "nothing came" */
    const char *file;     /* where, when the check was made by a macro; or NULL */
    int line;
    uint64_t seed;
    const char *text; /* all that in one line */
} fk_sim_failure;

/* Called last, with nothing held: it may leave by longjmp. */
typedef void (*fk_sim_failure_fn)(void *user, const fk_sim_failure *failure);

/* Defines such a function that ends the test of cmocka. */
#define FK_SIM_CMOCKA(name)                                                                        \
    static void name(void *user, const fk_sim_failure *failure)                                    \
    {                                                                                              \
        (void)user;                                                                                \
        fail_msg("%s", failure->text);                                                             \
    }                                                                                              \
    static void name(void *user, const fk_sim_failure *failure)

/* ---- the simulation ----------------------------------------------------------------------- */

/* All zero is the default. */
typedef struct fk_sim_config {
    uint32_t size;                  /* sizeof(fk_sim_config), or 0 for the layout of release 0.1 */
    uint32_t events;                /* shown in a report; 0: 20; at most 256 */
    const char *name;               /* of the test, as ctest -R finds it; NULL: "test" */
    uint64_t seed;                  /* 0: fk_sim_seed() */
    const fk_system_config *system; /* workers, throughput, pools and port are the testkit's */
    bool in_order;                  /* actors run in the order they became ready */
    bool allow_failures;            /* failures of actors do not fail the test */
    fk_time within;                 /* how long expectations wait; 0: 3 s */
    uint64_t turns_max;             /* in one moment; more fails the test; 0: 10,000,000 */
    uint64_t fail_alloc;            /* as fk_sim_fail_alloc(), from the system's first one on */
    fk_writer writer;               /* of reports; all zero: stderr */
    void *user;
    fk_sim_failure_fn on_failure;
} fk_sim_config;

/* The environment's FK_SEED, a number as in C; without it, a new one each time. Never 0. */
FK_API uint64_t fk_sim_seed(void);
/* Fails as fk_system_start() does. */
FK_API FK_MUST_USE fk_err fk_sim_create(const fk_sim_config *config, fk_sim **out);
/* Stops the system and frees everything. False, after a report, if a payload was neither sent nor
 * put back, an actor failed and nobody expected it, an actor would not stop, or a check had failed
 * before. NULL is fine, and true. */
FK_API FK_MUST_USE bool fk_sim_destroy(fk_sim *sim);
FK_API fk_system *fk_sim_system(fk_sim *sim);

/* Virtual time since the beginning; on the system's clock it began at 1000 s. */
FK_API fk_time fk_sim_now(const fk_sim *sim);
/* Runs until nothing is ready; no time passes. Returns how many turns were run. */
FK_API size_t fk_sim_run(fk_sim *sim);
/* Lets time pass, and all that happens in it. */
FK_API size_t fk_sim_advance(fk_sim *sim, fk_time by);

typedef bool (*fk_sim_condition_fn)(void *user);
/* Runs until the condition holds, which is looked at after each message; fails after that time. */
FK_API bool fk_sim_run_until(fk_sim *sim, fk_sim_condition_fn condition, void *user,
                             fk_time within);

/* A condition of the test's own: false is a failure, with everything a report has. */
FK_API bool fk_sim_check(fk_sim *sim, bool condition, const char *what);
#define FK_SIM_CHECK(sim, condition)                                                               \
    fk_sim_check(fk_sim_at((sim), __FILE__, __LINE__), (condition), #condition)
/* Says where the next check is made; returns its first argument. What the macros add. */
FK_API fk_sim *fk_sim_at(fk_sim *sim, const char *file, int line);

/* Runs until the actor is gone. */
FK_API bool fk_sim_expect_stopped(fk_sim *sim, fk_ref actor, fk_time within);
/* Runs until an actor has failed with that error, which then is no failure of the test. */
FK_API bool fk_sim_expect_failure(fk_sim *sim, fk_err err, fk_time within);

/* Anything has failed so far. */
FK_API bool fk_sim_has_failed(const fk_sim *sim);
/* A number made of everything that happened, in its order: the same seed gives the same one. */
FK_API uint64_t fk_sim_hash(const fk_sim *sim);
/* Puts a line among the events. */
FK_API void fk_sim_note(fk_sim *sim, const char *text);
/* Writes the events, the tree and the replay line, as a failure does. */
FK_API void fk_sim_report(fk_sim *sim);

/* ---- faults ------------------------------------------------------------------------------- */

/* Makes the n-th allocation from here on fail, 1 being the next; or from the n-th on all. 0 ends
 * that. Every message, actor and timer is an allocation. */
FK_API void fk_sim_fail_alloc(fk_sim *sim, uint64_t n);
FK_API void fk_sim_fail_alloc_from(fk_sim *sim, uint64_t n);
/* Makes all of one place fail (fk_site.what: "message", "timer", "actor's state", ...); NULL ends
 * that. The text is borrowed until then. */
FK_API void fk_sim_fail_site(fk_sim *sim, const char *what);
/* Allocations asked for so far, and those that were made to fail: a test that runs with
 * config.fail_alloc = 1, 2, ... has seen all when nothing was refused. */
FK_API uint64_t fk_sim_allocs(const fk_sim *sim);
FK_API uint64_t fk_sim_refused(const fk_sim *sim);

/* Drops the next n messages to an actor (FK_REF_NONE: any) of a type (NULL: any) before it sees
 * them; each is a dead letter with reason FK_REASON_DROPPED_OLDEST. FK_E_LIMIT: 16 rules at once. */
FK_API FK_MUST_USE fk_err fk_sim_drop_next(fk_sim *sim, fk_ref to, const fk_type *type, uint32_t n);
/* The actor does not run for that long, as if its thread had lost the processor; what is sent to it
 * waits. FK_E_LIMIT: 16 actors at once. */
FK_API FK_MUST_USE fk_err fk_sim_delay(fk_sim *sim, fk_ref actor, fk_time by);
/* Whether the seed decides who runs next (it does at first, without config.in_order), or the order in
 * which actors became ready. */
FK_API void fk_sim_reorder(fk_sim *sim, bool on);

/* ---- probes -------------------------------------------------------------------------------
 * A probe is an actor under /user that keeps what it gets until the test asks for it. It ends with
 * the simulation. A time of 0 is config.within, or what is left of fk_probe_within(). */

FK_API FK_MUST_USE fk_err fk_probe_create(fk_sim *sim, const char *name, fk_probe **out);
FK_API fk_ref fk_probe_ref(const fk_probe *probe);
/* As fk_sim_at(). */
FK_API fk_probe *fk_probe_at(fk_probe *probe, const char *file, int line);

/* The next message, which must be of that type and come within that time. Lent until the next call
 * for this probe that takes a message; NULL: it failed. */
FK_API const fk_msg *fk_probe_expect(fk_probe *probe, const fk_type *type, fk_time within);
/* The same, but others before it are thrown away. */
FK_API const fk_msg *fk_probe_fish(fk_probe *probe, const fk_type *type, fk_time within);
/* The next message, whatever it is. */
FK_API const fk_msg *fk_probe_expect_any(fk_probe *probe, fk_time within);
/* No message for that long: all of that time passes. */
FK_API bool fk_probe_expect_nothing(fk_probe *probe, fk_time within);
/* The function behind FK_EXPECT: the message's bytes; NULL also if it is not of that size. */
FK_API const void *fk_probe_expect_data(fk_probe *probe, const fk_type *type, size_t size,
                                        fk_time within);

#define FK_EXPECT_WITHIN(probe, T, within)                                                         \
    ((const T *)fk_probe_expect_data(fk_probe_at((probe), __FILE__, __LINE__), &fk_type_##T,       \
                                     sizeof(T), (within)))
#define FK_EXPECT(probe, T) FK_EXPECT_WITHIN(probe, T, 0)
#define FK_EXPECT_NOTHING(probe, within)                                                           \
    fk_probe_expect_nothing(fk_probe_at((probe), __FILE__, __LINE__), (within))

/* What comes between these two must take at least min and at most max; so much is left for each
 * expectation in it. */
FK_API void fk_probe_within(fk_probe *probe, fk_time min, fk_time max);
FK_API bool fk_probe_within_end(fk_probe *probe);

/* Throws messages of a type away as they come, also those that are there. FK_E_LIMIT: 8 types. */
FK_API FK_MUST_USE fk_err fk_probe_ignore(fk_probe *probe, const fk_type *type);
/* Messages that have come and were not asked for. */
FK_API size_t fk_probe_count(const fk_probe *probe);

/* In the probe's name. Reply: to the sender of the last message that was taken. */
FK_API fk_err fk_probe_send(fk_probe *probe, fk_ref to, fk_out msg);
FK_API fk_err fk_probe_reply(fk_probe *probe, fk_out msg);

/* The probe watches the actor, as by fk_watch(); FK_E_UNSUPPORTED: the system cannot. Then it gets an
 * fk_terminated, which must be the next message. */
FK_API FK_MUST_USE fk_err fk_probe_watch(fk_probe *probe, fk_ref actor);
FK_API bool fk_probe_expect_terminated(fk_probe *probe, fk_ref actor, fk_time within);

#ifdef __cplusplus
}
#endif
#endif /* FK_TESTKIT_H */
