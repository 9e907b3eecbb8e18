/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/system.h"

#include "base/safeguard.h"
#include "core/boot.h"
#include "core/box.h"
#include "core/children.h"
#include "core/claim.h"
#include "core/event.h"
#include "core/extras.h"
#include "core/guardian.h"
#include "core/mailbox.h"
#include "core/path.h"
#include "core/promise.h"
#include "core/shutdown.h"
#include "core/temp.h"
#include "core/terminate.h"
#include "core/turn.h"
#include "core/watch.h"

enum {
    SYSTEM_BLOCK = sizeof(fk_system) + FK_CACHE_LINE, /* the port aligns to 16 bytes only */
    THROUGHPUT_DEFAULT = 100,
    SLICE_DEFAULT = 1000000,
    ACTORS_DEFAULT = 1 << 24,
    QUARANTINE_DAYS = 5,
    SECONDS_PER_DAY = 86400
};

fk_time fk__system_now(const fk_system *sys)
{
    return sys->mem.port.now(sys->mem.port.ctx);
}

/* The counter is read before the clock: all that is near it is within FK_CYCLES_TIME of that clock. */
FK_COLD void fk__now_bound_set(fk_local *local, uint64_t cycles)
{
    local->cycles = cycles;
    local->now_bound = fk__time_add(fk__system_now(local->sys), FK_CYCLES_TIME);
}

static fk_err port_check(const fk_port *port)
{
    bool complete = port->alloc != NULL && port->now != NULL && port->random != NULL &&
                    port->lock != NULL && port->unlock != NULL && port->wake != NULL &&
                    port->panic != NULL;
    if (!complete || (port->wait == NULL) != (port->notify == NULL)) return FK_E_INVALID;
    return port->size != 0 && port->size < sizeof(fk_port) ? FK_E_INVALID : FK_OK;
}

/* Its own path, made of the config's parts and read like any other. */
static fk_err address_init(fk_system *sys, const fk_system_config *config, fk_str name)
{
    fk_path_parts parts = { .scheme = config->scheme, .system = name };
    fk_path_options unlimited = config->paths;
    unlimited.path_max = sizeof(sys->address_text);
    if (config->remoting.host != NULL) parts.host = fk_str_of(config->remoting.host);
    parts.port = config->remoting.port;
    if ((parts.host.len == 0) != (parts.port == 0)) return FK_E_AUTHORITY;
    char buf[sizeof(sys->address_text)] = "";
    fk_path path;
    FK_TRY(fk_path_build(&unlimited, &parts, FK_BUF(buf), &path, NULL));
    path = fk_path_root(&path);
    sys->address_len = (uint32_t)fk_path_format(&path, FK_FORM_NO_UID, sys->address_text,
                                                sizeof(sys->address_text)) -
                       1; /* without "/" */
    fk_str text = { sys->address_text, sys->address_len };
    return fk_path_parse(&unlimited, text, &sys->address, NULL);
}

static fk_err quarantine_init(fk_system *sys, const fk_remoting_config *config)
{
    fk_time asked =
        config->quarantine_override != 0 ? config->quarantine_override : config->quarantine;
    if (config->quarantine != 0 && config->quarantine < FK_SECONDS(1)) return FK_E_INVALID;
    if (asked != 0 && asked < FK_SECONDS(1)) return FK_E_INVALID;
    sys->quarantine = asked != 0 ? asked : FK_SECONDS(QUARANTINE_DAYS * SECONDS_PER_DAY);
    return FK_OK;
}

static fk_err paths_init(fk_system *sys, const fk_system_config *config, fk_str name)
{
    const fk_path_options *options = &config->paths;
    if ((unsigned)options->rules > FK_RULES_PEKKO || (unsigned)config->scheme > FK_SCHEME_TCP ||
        (unsigned)config->guardian > FK_GUARDIAN_SYSTEM) {
        return FK_E_INVALID;
    }
    sys->paths = *options;
    if (options->path_max == 0) sys->paths.path_max = FK_PATH_MAX;
    if (options->depth_max == 0) sys->paths.depth_max = FK_DEPTH_MAX;
    sys->ruleset = fk__ruleset(options->rules);
    sys->guardian = config->guardian;
    FK_TRY(quarantine_init(sys, &config->remoting));
    return address_init(sys, config, name);
}

static void configure(fk_system *sys, const fk_system_config *config, fk_str name)
{
    uint64_t seed[3];
    const fk_port *port = &sys->mem.port;
    port->random(port->ctx, seed, sizeof(seed));
    sys->id = (uint32_t)seed[0] | 1;
    sys->key = (fk_hash_key){ seed[1], seed[2] };
    sys->actors_max = config->actors_max;
    sys->throughput = config->throughput != 0 ? config->throughput : THROUGHPUT_DEFAULT;
    sys->slice = config->slice != 0 ? config->slice : SLICE_DEFAULT;
    sys->user = config->user;
    sys->on_dead_letter = config->on_dead_letter;
    sys->on_failure = config->on_failure;
    /* Others remember uids for longer than a system lives; the next one at this address must not give
     * the same ones out. Pekko's are drawn anyway. */
    bool is_known = config->remoting.enabled && config->paths.rules == FK_RULES_FRAKTOR &&
                    FK_SAFEGUARD(UID_FRESH);
    sys->uid_first = is_known ? (fk__mix64(seed[0]) >> 2) + 1 : 1;
    sys->uid_next = sys->uid_first;
    /* The same for whoever waits for an answer. */
    bool is_fresh = config->remoting.enabled && FK_SAFEGUARD(TEMP_FRESH);
    sys->temps.next = is_fresh ? fk__mix64(seed[1]) >> 20 : 0;
    sys->top.count = FK_GUARDIANS;
    fk__half_init(&sys->stopping, FK_SPAWN_BOOTING);
    fk__half_init(&sys->termination, FK_TERMINATION_BOOTING);
    sys->uid_seed = (uint32_t)(seed[0] >> 32);
    memcpy(sys->name, name.ptr, name.len);
}

fk_err fk__system_make(const fk_system_config *config, const fk_port *port, uint32_t workers,
                       fk_system **out)
{
    fk_str name = config->name != NULL ? fk_str_of(config->name) : FK_STR("fraktor");
    fk_mem mem;
    void *memory;
    if (config->size != 0 && config->size < sizeof(*config)) return FK_E_INVALID;
    if (workers == 0 || workers > FK_WORKERS_MAX || config->slice < 0) return FK_E_INVALID;
    FK_TRY(port_check(port));
    FK_TRY(fk_path_check_system(&config->paths, name, NULL));
    fk__mem_init(&mem, port, config->memory_max);
    FK_TRY(fk__mem_alloc(&mem, SYSTEM_BLOCK, FK_SITE("system"), &memory));
    uintptr_t aligned = ((uintptr_t)memory + FK_CACHE_LINE - 1) & ~(uintptr_t)(FK_CACHE_LINE - 1);
    fk_system *sys = (fk_system *)aligned;
    memset(sys, 0, sizeof(*sys));
    sys->block = memory;
    sys->mem = mem;
    configure(sys, config, name);
    fk__pool_init(&sys->pool, &sys->mem, config->pools_malloc);
    for (uint32_t i = 0; i < FK_OUTSIDE_LOCALS; i++) fk__local_init(&sys->outside[i], sys, NULL);
    /* More slots than actors_max: free ones lie in the lists of other threads. */
    uint32_t slots = config->actors_max > ACTORS_DEFAULT / 2 ? UINT32_MAX - 1 : ACTORS_DEFAULT;
    fk_err err = paths_init(sys, config, name);
    if (err == FK_OK) err = fk__slots_init(&sys->slots, &sys->mem, slots);
    if (err == FK_OK) err = fk__events_init(sys, config);
    if (err == FK_OK) err = fk__claims_create(sys, config->claims_max);
    if (err == FK_OK) err = fk__dispatch_init(sys, workers);
    if (err == FK_OK) err = fk__root_create(sys);
    if (err != FK_OK) {
        fk__system_destroy(sys);
        return err;
    }
    *out = sys;
    return FK_OK;
}

fk_err fk__system_create(const fk_system_config *config, const fk_port *port, uint32_t workers,
                         fk_system **out)
{
    fk_system *sys = NULL;
    FK_TRY(fk__system_make(config, port, workers, &sys));
    fk_err err = fk__boot_all(sys, config);
    if (err != FK_OK) {
        fk__system_destroy(sys);
        return fk__boot_error(config, err);
    }
    *out = sys;
    return FK_OK;
}

bool fk__system_is_down(const fk_system *sys)
{
    return (fk__half_load(&sys->top.root->generation, FK_SEQ_CST) & 1) == 0;
}

/* What a free cell still holds: the node delivered last, and what came too late to be seen. */
static void cell_sweep(fk_system *sys, fk_cell *cell)
{
    fk_local *local = &sys->outside[0];
    fk_link *link = cell->head;
    while (link != NULL) {
        fk_link *next = fk__word_ptr(&link->next, FK_RELAXED);
        if (link != &cell->stub) {
            fk_node *node = FK_CONTAINER(link, fk_node, link);
            if (link != cell->head) {
                fk_ref to = { cell->slot, node->generation, sys->id };
                if ((node->flags & FK_NODE_TIMER) == 0) {
                    fk__dead_node(local, FK_REASON_SYSTEM_STOPPING, to, node);
                }
                fk__node_drop_contents(&local->cache, node);
            }
            fk__node_free(&local->cache, node);
        }
        link = next;
    }
    fk__watch_sweep(local, cell);
    if (fk__cell_is_promise(cell)) {
        fk__promise_destroy(local, cell);
        return;
    }
    if (cell->life == FK_LIFE_FREE || cell->life == FK_LIFE_REMOTE) return;
    /* A guardian of a system that never ran. */
    fk__extras_abandon(local, cell);
    fk__name_free(local, fk__label_name(cell->label));
    if ((cell->flags & FK_CELL_OWNED) != 0) {
        fk__cache_free(&local->cache, cell->state, fk__state_size(cell->props));
    }
    fk__children_abandon(local, cell);
}

void fk__system_close_cluster(fk_system *sys)
{
    struct fk_cluster *cluster = fk__word_ptr(&sys->cluster.ctx, FK_ACQUIRE);
    if (cluster != NULL && sys->cluster.close != NULL) sys->cluster.close(cluster);
    sys->cluster.close = NULL;
}

void fk__system_destroy(fk_system *sys)
{
    struct fk_cluster *cluster = fk__word_ptr(&sys->cluster.ctx, FK_ACQUIRE);
    fk__system_close_cluster(sys);
    if (sys->remote.destroy != NULL) sys->remote.destroy(sys->remote.ctx);
    fk__shutdown_destroy(sys);
    fk__events_stop(sys); /* from here on there is not always a path to show */
    fk__replay_fini(sys);
    fk_directory *directory = fk__word_ptr(&sys->slots.directory, FK_RELAXED);
    for (uint32_t i = 0; directory != NULL && i < sys->slots.chunks; i++) {
        for (uint32_t j = 0; j < FK_CHUNK_CELLS; j++) {
            cell_sweep(sys, fk__slots_at(&sys->slots, i * FK_CHUNK_CELLS + j));
        }
    }
    if (cluster != NULL) sys->cluster.destroy(cluster);
    fk__temps_fini(&sys->outside[0]);
    fk__box_fini_all(sys);
    fk__dispatch_fini(sys);
    fk__slots_fini(&sys->slots, &sys->mem);
    fk__props_fini(sys);
    fk__claims_destroy(sys);
    fk__terminate_fini(sys);
    for (uint32_t i = 0; i < FK_OUTSIDE_LOCALS; i++) fk__cache_fini(&sys->outside[i].cache);
    fk__pool_fini(&sys->pool);
    fk_mem mem = sys->mem;
    fk__mem_free(&mem, sys->block, SYSTEM_BLOCK);
    FK_ASSERT(fk__word_load(&mem.used, FK_RELAXED) == 0);
}

void fk__system_check(const fk_system *sys)
{
    for (uint32_t i = 0; i < sys->slots.chunks; i++) {
        for (uint32_t j = 0; j < FK_CHUNK_CELLS; j++) {
            const fk_cell *cell = fk__slots_at(&sys->slots, i * FK_CHUNK_CELLS + j);
            FK_ASSERT(cell != NULL);
            bool alive = (fk__half_load(&cell->generation, FK_RELAXED) & 1) != 0;
            bool idle = (fk__word_load(&cell->tail, FK_RELAXED) & FK_TAIL_IDLE) != 0;
            FK_ASSERT(cell->slot == i * FK_CHUNK_CELLS + j);
            FK_ASSERT(cell->head != NULL);
            FK_ASSERT(!idle || alive == (cell->life != FK_LIFE_FREE));
            /* A5: an idle actor that takes messages has none. */
            bool takes = (cell->flags & FK_CELL_HALTED) == 0;
            bool is_held = (cell->suspended & FK_HELD) != 0;
            FK_ASSERT(!idle || takes == (cell->life == FK_LIFE_RUNNING && !is_held));
            FK_ASSERT(!idle || !takes || fk__mailbox_is_empty(cell));
            FK_ASSERT(!idle || !fk__mailbox_has_signal(cell));
        }
    }
}

/* ---- public ------------------------------------------------------------------------------ */

static uint64_t read_stat(const fk_word *stat)
{
    return fk__word_load(stat, FK_RELAXED);
}

static void stats_add(fk_stats *out, const fk_local *local)
{
    out->spawned += read_stat(&local->stats.spawned);
    out->stopped += read_stat(&local->stats.stopped);
    out->processed += read_stat(&local->stats.processed);
    out->failures += read_stat(&local->stats.failures);
    out->timers += read_stat(&local->stats.timers_started);
    out->timers -= read_stat(&local->stats.timers_ended);
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        out->dead_letters[i] += read_stat(&local->stats.dead_letters[i]);
    }
}

void fk_stats_get(fk_system *sys, fk_stats *out)
{
    fk_dispatch *dispatch = &sys->dispatch;
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < FK_OUTSIDE_LOCALS; i++) stats_add(out, &sys->outside[i]);
    for (uint32_t i = 0; i < dispatch->workers; i++) {
        stats_add(out, &dispatch->worker[i]->local);
        out->steals += read_stat(&dispatch->worker[i]->steals);
        out->parks += read_stat(&dispatch->worker[i]->parks);
    }
    fk__mem_lock(&sys->mem, &sys->lock);
    for (fk_worker *w = dispatch->pinned; w != NULL; w = w->pinned_next) {
        stats_add(out, &w->local);
        out->parks += read_stat(&w->parks);
    }
    fk__mem_unlock(&sys->mem, &sys->lock);
    out->spawned -= sys->top.count; /* those are not the user's */
    out->actors = out->spawned - out->stopped;
    out->memory = fk__word_load(&sys->mem.used, FK_RELAXED);
}

/* Gone and forgotten: its name is free again. */
static bool is_gone(const fk_system *sys, fk_ref ref)
{
    if (ref.system != sys->id || (ref.generation & 1) == 0) return true;
    const fk_cell *cell = fk__slots_at(&sys->slots, ref.slot);
    if (cell == NULL) return true;
    /* Seq_cst, not by fk__cell_resolve: see fk__waiters_notify. */
    uint32_t generation = fk__half_load(&cell->generation, FK_SEQ_CST);
    if (generation == ref.generation) return false;
    if (generation != ref.generation + 1) return true;
    return (fk__half_load(&cell->gate, FK_SEQ_CST) & FK_GATE_ENDING) == 0;
}

fk_err fk_await_stopped(fk_system *sys, fk_ref ref, fk_time timeout)
{
    const fk_port *port = &sys->mem.port;
    if (port->wait == NULL) return FK_E_UNSUPPORTED;
    if (is_gone(sys, ref)) return FK_OK;
    if (fk__is_awaited_itself(sys)) return FK_E_STATE;
    fk_time deadline = fk__time_add(fk__system_now(sys), timeout);
    fk_err err = FK_OK;
    fk__half_add(&sys->waiters, 1, FK_SEQ_CST); /* pairs with fk__waiters_notify */
    for (;;) {
        uint32_t seen = fk__half_load(&sys->stops, FK_SEQ_CST);
        if (is_gone(sys, ref)) break;
        fk_time left = deadline == FK_NEVER ? FK_NEVER : deadline - fk__system_now(sys);
        if (left <= 0) {
            err = FK_E_TIMEOUT;
            break;
        }
        port->wait(port->ctx, (uint32_t *)(void *)&sys->stops, seen, left);
    }
    fk__half_add(&sys->waiters, (uint32_t)-1, FK_SEQ_CST);
    return err;
}
