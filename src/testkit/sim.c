/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The beginning and the end of a simulation, and checks that need no probe. */

#include "testkit/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "remote/remote.h"

enum { TURNS_DEFAULT = 10000000, WITHIN_DEFAULT_S = 3, STOP_SECONDS = 86400 };

uint64_t fk_sim_seed(void)
{
    const char *text = getenv("FK_SEED");
    uint64_t seed = 0;
    if (text != NULL) seed = strtoull(text, NULL, 0);
    while (seed == 0) {
        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) seed = 1;
    }
    return seed;
}

/* ---- beginning --------------------------------------------------------------------------- */

static void configure(fk_sim *sim, const fk_sim_config *config)
{
    snprintf(sim->name, sizeof(sim->name), "%s", config->name != NULL ? config->name : "test");
    sim->seed = config->seed != 0 ? config->seed : fk_sim_seed();
    sim->within = config->within != 0 ? config->within : FK_SECONDS(WITHIN_DEFAULT_S);
    sim->turns_max = config->turns_max != 0 ? config->turns_max : TURNS_DEFAULT;
    sim->in_order = config->in_order;
    sim->allow_failures = config->allow_failures;
    sim->writer = config->writer;
    sim->user = config->user;
    sim->on_failure = config->on_failure;
    fk__history_init(&sim->history, config->events);
    fk__sim_port_init(sim);
    fk_sim_fail_alloc(sim, config->fail_alloc);
}

static fk_err system_create(fk_sim *sim, const fk_system_config *asked)
{
    fk_system_config config = asked != NULL ? *asked : (fk_system_config){ .name = "sim" };
    config.throughput = 1;
    config.pools_malloc = true; /* so that each can be made to fail, and none hides another's end */
    config.port = NULL;
    fk__witness_attach(sim, &config);
    FK_TRY(fk__system_create(&config, &sim->port, 1, &sim->sys));
    fk_err err = fk__remote_attach(sim->sys, &config);
    if (err != FK_OK) {
        fk__system_destroy(sim->sys);
        return err;
    }
    fk__sim_attach(sim);
    return FK_OK;
}

fk_err fk_sim_create(const fk_sim_config *config, fk_sim **out)
{
    static const fk_sim_config DEFAULT = { .size = sizeof(DEFAULT) };
    if (config == NULL) config = &DEFAULT;
    if (out == NULL || (config->size != 0 && config->size < sizeof(*config))) return FK_E_INVALID;
    fk_sim *sim = fk__sim_alloc(sizeof(*sim));
    configure(sim, config);
    fk_err err = system_create(sim, config->system);
    if (err != FK_OK) {
        free(sim);
        return err;
    }
    *out = sim;
    return FK_OK;
}

fk_system *fk_sim_system(fk_sim *sim)
{
    return sim->sys;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* A payload that the test forgot. It is given back here, because a system cannot end without. */
static bool reclaim_payload(fk_sim *sim, size_t *bytes)
{
    fk_sim_block *all = &sim->memory.all;
    for (fk_sim_block *block = all->next; block != all; block = block->next) {
        if (block->site == NULL || strcmp(block->site->what, "payload") != 0) continue;
        fk_payload *payload = (fk_payload *)(void *)(block + 1);
        *bytes += payload->len;
        fk_payload_put(payload);
        return true;
    }
    return false;
}

static void check_payloads(fk_sim *sim)
{
    char actual[FK_SIM_TEXT_MAX];
    size_t bytes = 0, count = 0;
    while (reclaim_payload(sim, &bytes)) count++;
    if (count == 0) return;
    snprintf(actual, sizeof(actual), "%zu left, %zu bytes", count, bytes);
    fk__sim_fail(sim, "that every payload is sent or put back", actual);
}

static void check_failures(fk_sim *sim)
{
    char actual[2 * FK_SIM_TEXT_MAX];
    if (sim->allow_failures || sim->failures == 0) return;
    snprintf(actual, sizeof(actual), "%llu; the first: %s", (unsigned long long)sim->failures,
             sim->failure_first);
    fk__sim_fail(sim, "that no actor fails", actual);
}

static bool system_is_down(void *arg)
{
    const fk_sim *sim = arg;
    return fk__system_is_down(sim->sys);
}

/* What a test has broken must not keep it from ending. */
static void lift_faults(fk_sim *sim)
{
    fk_sim_fail_alloc(sim, 0);
    fk_sim_fail_site(sim, NULL);
    memset(sim->drops, 0, sizeof(sim->drops));
    for (size_t i = 0; i < FK_SIM_RULES_MAX; i++) {
        if (sim->holds[i].until != 0) sim->holds[i].until = sim->now;
    }
    fk__sim_release(sim);
}

static void system_end(fk_sim *sim)
{
    fk_terminate(sim->sys);
    fk_time deadline = fk__sim_deadline(sim, FK_SECONDS(STOP_SECONDS));
    if (!fk__sim_drive(sim, system_is_down, sim, deadline)) {
        fk__sim_fail(sim, "that the system stops", "an actor never ends");
        abort(); /* its memory cannot be given back */
    }
    fk__sim_drive(sim, NULL, NULL, sim->now);
    fk__probes_release(sim);
    check_payloads(sim);
    fk__dispatch_shutdown(sim->sys);
    fk__system_destroy(sim->sys);
    sim->sys = NULL;
}

/* Tells the test's own function last, when there is nothing left that it could leave behind. */
static void tell_end(fk_sim_failure_fn on_failure, void *user, const char *name, uint64_t seed)
{
    char text[2 * FK_SIM_TEXT_MAX];
    const fk_sim_failure failure = { .test = name,
                                     .expected = "a clean end",
                                     .actual = "see the report",
                                     .seed = seed,
                                     .text = text };
    snprintf(text, sizeof(text), "%s: not a clean end, see the report; FK_SEED=0x%llx", name,
             (unsigned long long)seed);
    on_failure(user, &failure);
}

bool fk_sim_destroy(fk_sim *sim)
{
    if (sim == NULL) return true;
    char name[FK_SIM_TEXT_MAX];
    fk_sim_failure_fn on_failure = sim->on_failure;
    void *user = sim->user;
    uint64_t seed = sim->seed, before = sim->failed;
    memcpy(name, sim->name, sizeof(name));
    sim->on_failure = NULL;
    lift_faults(sim);
    check_failures(sim);
    system_end(sim);
    fk__probes_destroy(sim);
    if (sim->memory.bytes != 0) fk__sim_fail(sim, "no memory left", "some is: a bug in fraktor");
    bool passed = sim->failed == 0;
    bool is_news = sim->failed != before;
    free(sim);
    if (is_news && on_failure != NULL) tell_end(on_failure, user, name, seed);
    return passed;
}

/* ---- checks ------------------------------------------------------------------------------ */

fk_sim *fk_sim_at(fk_sim *sim, const char *file, int line)
{
    sim->file = file;
    sim->line = line;
    return sim;
}

bool fk_sim_check(fk_sim *sim, bool condition, const char *what)
{
    if (!condition) return fk__sim_fail(sim, what, "not true");
    sim->file = NULL;
    return true;
}

static const char *within_text(const fk_sim *sim, fk_time within, char buf[FK_SHOWN_TIME])
{
    return fk__sim_show_time(within != 0 ? within : sim->within, buf);
}

bool fk_sim_run_until(fk_sim *sim, fk_sim_condition_fn condition, void *user, fk_time within)
{
    char expected[FK_SIM_TEXT_MAX], time[FK_SHOWN_TIME];
    if (sim->is_inside) return false;
    fk_time wait = within != 0 ? within : sim->within;
    if (fk__sim_drive(sim, condition, user, fk__sim_deadline(sim, wait))) return true;
    snprintf(expected, sizeof(expected), "the condition within %s s",
             within_text(sim, within, time));
    return fk__sim_fail(sim, expected, "it does not hold");
}

bool fk_sim_expect_stopped(fk_sim *sim, fk_ref actor, fk_time within)
{
    char expected[FK_SIM_TEXT_MAX], time[FK_SHOWN_TIME], who[FK_SHOWN_ACTOR];
    fk_err err = fk_await_stopped(sim->sys, actor, within != 0 ? within : sim->within);
    if (err == FK_OK) return true;
    snprintf(expected, sizeof(expected), "%s stops within %s s",
             fk__sim_show_actor(sim, actor, who), within_text(sim, within, time));
    return fk__sim_fail(sim, expected, err == FK_E_TIMEOUT ? "it lives" : fk_err_text(err));
}

typedef struct failure_wait {
    const fk_sim *sim;
    fk_err err;
} failure_wait;

static bool failure_has_come(void *arg)
{
    const failure_wait *wait = arg;
    return wait->sim->failures_of[wait->err] != 0;
}

bool fk_sim_expect_failure(fk_sim *sim, fk_err err, fk_time within)
{
    char expected[FK_SIM_TEXT_MAX], time[FK_SHOWN_TIME];
    failure_wait wait = { sim, err };
    fk_time how_long = within != 0 ? within : sim->within;
    if ((unsigned)err >= FK_SIM_ERRORS) return false;
    if (!fk__sim_drive(sim, failure_has_come, &wait, fk__sim_deadline(sim, how_long))) {
        snprintf(expected, sizeof(expected), "an actor fails with %s within %s s", fk_err_name(err),
                 within_text(sim, within, time));
        return fk__sim_fail(sim, expected, "none did");
    }
    sim->failures_of[err]--;
    sim->failures--;
    return true;
}

bool fk_sim_has_failed(const fk_sim *sim)
{
    return sim->failed != 0;
}

uint64_t fk_sim_hash(const fk_sim *sim)
{
    return sim->history.hash;
}

void fk_sim_note(fk_sim *sim, const char *text)
{
    fk_moment moment = { .kind = FK_MOMENT_NOTE };
    snprintf(moment.text, sizeof(moment.text), "%s", text);
    fk__sim_record(sim, &moment);
}
