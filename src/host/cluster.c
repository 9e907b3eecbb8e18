/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Joining a cluster: the store is opened and the member's row made before anything of it runs, so that
 * what is wrong with the config or the store is told to whoever asks. */

#include "cluster/cluster.h"

#include <string.h>

#include "core/ask.h"
#include "core/path.h"
#include "host/host.h"
#include "host/placement_driver.h"
#include "remote/driver.h"
#include "store/store.h"

static const fk_time LEASE_LEAST = FK_MILLIS(200), POLL_LEAST = FK_MILLIS(20);

typedef struct joining {
    fk_system *sys;
    fk_cluster_config config; /* complete */
    const char *why;
    char id[FK_MEMBER_TEXT_MAX + 1], address[FK_MEMBER_TEXT_MAX + 1];
    fk_placement_driver *driver;
    uint64_t incarnation;
    fk_time asked_at;
} joining;

static fk_err join_fail(joining *j, fk_err err, const char *why)
{
    if (why != NULL) j->why = why;
    return err;
}

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* "fraktor.tcp://bank@127.0.0.1:4001", and without the scheme. */
static fk_err join_names(joining *j, const char *id)
{
    fk_system *sys = j->sys;
    size_t len = fk_path_format(&sys->address, FK_FORM_ADDRESS, j->address, sizeof(j->address));
    if (len >= sizeof(j->address)) return join_fail(j, FK_E_LIMIT, "the address is too long");
    const char *rest = strstr(j->address, "://");
    const char *own = id != NULL ? id : rest != NULL ? rest + 3 : j->address;
    if (own[0] == '\0' || strlen(own) >= sizeof(j->id)) {
        return join_fail(j, FK_E_INVALID, "the id is empty or too long");
    }
    memcpy(j->id, own, strlen(own) + 1);
    return FK_OK;
}

static fk_err join_config(joining *j, const fk_cluster_config *config)
{
    fk_cluster_config *c = &j->config;
    *c = *config;
    if (config->size != 0 && config->size < sizeof(*config)) return FK_E_INVALID;
    if (c->store == NULL) return join_fail(j, FK_E_INVALID, "the config names no store");
    if (c->slots == 0) c->slots = FK_SLOTS_DEFAULT;
    if (!is_power_of_two(c->slots) || c->slots > FK_SLOTS_MAX) {
        return join_fail(j, FK_E_INVALID, "slots must be a power of two, at most 1048576");
    }
    if (c->lease_ttl == 0) c->lease_ttl = FK_SECONDS(3);
    if (c->lease_ttl < LEASE_LEAST) {
        return join_fail(j, FK_E_INVALID, "lease_ttl must be at least 200 ms");
    }
    if (c->call_timeout < 0 || c->store_timeout < 0 || c->poll_every < 0) return FK_E_INVALID;
    if (c->store_timeout == 0) c->store_timeout = FK_SECONDS(5);
    if (c->weight == 0) c->weight = 100;
    if (c->strategy == NULL) c->strategy = &fk_strategy_rendezvous;
    if (c->poll_every == 0) c->poll_every = c->lease_ttl / 30;
    if (c->poll_every < POLL_LEAST) c->poll_every = POLL_LEAST;
    return join_names(j, config->id);
}

/* Whatever else is wrong with the store, a client goes on trying. */
static fk_err join_client(joining *j)
{
    const fk_cluster_config *c = &j->config;
    fk_store_job *job;
    FK_TRY(fk__store_job_create(j->sys, 0, &job));
    job->op.verb = FK_STORE_VIEW;
    job->op.strategy = c->strategy->name;
    job->op.slots = c->slots;
    if (fk__placement_driver_do(j->driver, job, c->store_timeout) != FK_OK) return FK_OK;
    bool is_other = job->op.verdict == FK_VERDICT_REFUSED && job->op.err == FK_E_MISMATCH;
    fk__store_job_destroy(job);
    return is_other ? join_fail(j, FK_E_MISMATCH, FK_STORE_MISMATCH_TEXT) : FK_OK;
}

/* All that the operation points to goes with it: it may outlive this call. */
static fk_err join_store(joining *j)
{
    const fk_cluster_config *c = &j->config;
    fk_store_job *job;
    if (c->client) return join_client(j);
    size_t id = strlen(j->id), address = strlen(j->address);
    FK_TRY(fk__store_job_create(j->sys, id + address, &job));
    char *text = fk__store_job_extra(job);
    memcpy(text, j->id, id);
    memcpy(text + id, j->address, address);
    job->op.verb = FK_STORE_JOIN;
    job->op.member = (fk_member){ .id = { text, id },
                                  .address = { text + id, address },
                                  .weight = c->weight,
                                  .status = FK_MEMBER_JOINING };
    job->op.ttl = c->lease_ttl;
    job->op.strategy = c->strategy->name;
    job->op.slots = c->slots;
    j->asked_at = fk__system_now(j->sys);
    fk_err err = fk__placement_driver_do(j->driver, job, c->store_timeout);
    if (err != FK_OK) {
        return join_fail(j, err == FK_E_TIMEOUT ? FK_E_STORAGE : err, "the store does not answer");
    }
    err = job->op.verdict == FK_VERDICT_OK ? FK_OK : job->op.err;
    if (err == FK_E_MISMATCH) {
        j->why = FK_STORE_MISMATCH_TEXT;
    } else if (err != FK_OK) {
        j->why = err == FK_E_FULL ? "there is no room left for the store" : fk_err_text(err);
    }
    j->incarnation = job->op.member.incarnation;
    fk__store_job_destroy(job);
    return err;
}

/* Without remoting nothing goes anywhere. */
static size_t telegram_max(const fk_system *sys)
{
    const fk_driver *driver = fk__driver_of(sys);
    return driver != NULL ? fk__driver_message_max(driver) : SIZE_MAX;
}

static fk_err join(joining *j, const fk_cluster_config *config, fk_cluster **out)
{
    fk_system *sys = j->sys;
    FK_TRY(join_config(j, config));
    FK_TRY(fk__placement_driver_open(sys, fk_str_of(j->config.store), config->providers,
                                     j->config.poll_every, &j->driver, &j->why));
    fk_err err = join_store(j);
    fk_cluster_port port = fk__placement_driver_port(j->driver);
    const fk_cluster_start start = { .config = &j->config,
                                     .id = fk_str_of(j->id),
                                     .address = fk_str_of(j->address),
                                     .port = port,
                                     .incarnation = j->incarnation,
                                     .asked_at = j->asked_at,
                                     .telegram_max = telegram_max(sys) };
    if (err == FK_OK) err = fk__cluster_create(sys, &start, out);
    if (err != FK_OK) {
        bool has_joined = j->incarnation != 0;
        port.close(port.ctx, has_joined ? fk_str_of(j->id) : (fk_str){ NULL, 0 }, j->incarnation);
        return err;
    }
    fk__placement_driver_watch(j->driver, fk__cluster_changed, *out);
    return FK_OK;
}

fk_err fk_cluster_join(fk_system *sys, const fk_cluster_config *config, fk_cluster **out)
{
    if (sys == NULL || config == NULL || out == NULL) return FK_E_INVALID;
    joining j = { .sys = sys, .why = "" };
    fk_host *host = fk__host_of(sys);
    fk_err err = fk__question_check(sys);
    if (err == FK_OK && fk_is_terminating(sys)) err = FK_E_STOPPING;
    /* One at a time, and only one. */
    if (err == FK_OK && fk__half_swap(&host->has_cluster, 1, FK_ACQ_REL) != 0) {
        err = FK_E_IDENTITY_SETUP;
        j.why = "the system is in a cluster already";
    } else if (err == FK_OK) {
        err = join(&j, config, out);
        if (err != FK_OK) fk__half_store(&host->has_cluster, 0, FK_RELEASE);
    }
    if (err != FK_OK && (j.why == NULL || j.why[0] == '\0')) j.why = fk_err_text(err);
    if (config->why != NULL) *config->why = err != FK_OK ? j.why : "";
    return err;
}
