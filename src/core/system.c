/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/system.h"

#include "core/box.h"
#include "core/children.h"
#include "core/mailbox.h"
#include "core/spawn.h"
#include "core/turn.h"
#include "fraktor/path.h"

enum {
    SYSTEM_BLOCK = sizeof(fk_system) + FK_CACHE_LINE, /* the port aligns to 16 bytes only */
    THROUGHPUT_DEFAULT = 100,
    SLICE_DEFAULT = 1000000,
    ACTORS_DEFAULT = 1 << 24,
    PATH_NAME_MAX = 256
};

fk_time fk__system_now(const fk_system *sys)
{
    return sys->mem.port.now(sys->mem.port.ctx);
}

static fk_err port_check(const fk_port *port)
{
    bool complete = port->alloc != NULL && port->now != NULL && port->random != NULL &&
                    port->lock != NULL && port->unlock != NULL && port->wake != NULL &&
                    port->panic != NULL;
    if (!complete || (port->wait == NULL) != (port->notify == NULL)) return FK_E_INVALID;
    return port->size != 0 && port->size < sizeof(fk_port) ? FK_E_INVALID : FK_OK;
}

/* The parent of all actors that are made from outside. It does nothing but have children. */
static fk_err guardian_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

static fk_err guardian_create(fk_system *sys)
{
    static const fk_props GUARDIAN = { .receive = guardian_receive };
    fk_ref ref;
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__spawn(local, NULL, FK_STR(""), &GUARDIAN, &ref);
    fk__local_leave(local);
    if (err == FK_OK) sys->guardian = fk__cell_resolve(sys, ref);
    return err;
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
    sys->uid_next = 1;
    sys->name_len = (uint32_t)name.len;
    memcpy(sys->name, name.ptr, name.len);
}

fk_err fk__system_create(const fk_system_config *config, const fk_port *port, uint32_t workers,
                         fk_system **out)
{
    fk_str name = config->name != NULL ? fk_str_of(config->name) : FK_STR("fraktor");
    fk_mem mem;
    void *memory;
    if (config->size != 0 && config->size < sizeof(*config)) return FK_E_INVALID;
    if (workers == 0 || workers > FK_WORKERS_MAX || config->slice < 0) return FK_E_INVALID;
    FK_TRY(port_check(port));
    FK_TRY(fk_path_check_system(NULL, name, NULL));
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
    fk_err err = fk__slots_init(&sys->slots, &sys->mem, slots);
    if (err == FK_OK) err = fk__dispatch_init(sys, workers);
    if (err == FK_OK) err = guardian_create(sys);
    if (err != FK_OK) {
        fk__system_destroy(sys);
        return err;
    }
    *out = sys;
    return FK_OK;
}

void fk__system_begin_stop(fk_system *sys)
{
    fk__half_store(&sys->stopping, 1, FK_SEQ_CST);
    fk_local *local = fk__local_enter(sys);
    uint32_t generation = fk__half_load(&sys->guardian->generation, FK_RELAXED);
    if ((generation & 1) != 0) fk__cell_ask_stop(local, sys->guardian, generation);
    fk__local_leave(local);
}

bool fk__system_is_down(const fk_system *sys)
{
    return (fk__half_load(&sys->guardian->generation, FK_SEQ_CST) & 1) == 0;
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
                if ((node->flags & (FK_NODE_TIMER | FK_NODE_POISON)) == 0) {
                    fk__dead_node(local, FK_REASON_SYSTEM_STOPPING, to, node);
                }
                fk__node_drop_contents(&local->cache, node);
            }
            fk__node_free(&local->cache, node);
        }
        link = next;
    }
}

void fk__system_destroy(fk_system *sys)
{
    fk_directory *directory = fk__word_ptr(&sys->slots.directory, FK_RELAXED);
    for (uint32_t i = 0; directory != NULL && i < sys->slots.chunks; i++) {
        for (uint32_t j = 0; j < FK_CHUNK_CELLS; j++) {
            cell_sweep(sys, fk__slots_at(&sys->slots, i * FK_CHUNK_CELLS + j));
        }
    }
    fk__box_fini_all(sys);
    fk__dispatch_fini(sys);
    fk__slots_fini(&sys->slots, &sys->mem);
    fk__props_fini(sys);
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
            FK_ASSERT(!idle || takes == (cell->life == FK_LIFE_RUNNING && cell->suspended == 0));
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
    out->spawned -= 1; /* the guardian is not the user's */
    out->actors = out->spawned - out->stopped;
    out->memory = fk__word_load(&sys->mem.used, FK_RELAXED);
}

/* Gone and forgotten: its name is free again. */
static bool is_gone(const fk_system *sys, fk_ref ref)
{
    if (ref.system != sys->id || (ref.generation & 1) == 0) return true;
    const fk_cell *cell = fk__slots_at(&sys->slots, ref.slot);
    if (cell == NULL) return true;
    /* Seq_cst, not by fk__cell_resolve: see notify_waiters. */
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
    if (sys->host.is_inside != NULL && sys->host.is_inside(sys->host.ctx)) return FK_E_STATE;
    fk_time deadline = fk__time_add(fk__system_now(sys), timeout);
    fk_err err = FK_OK;
    fk__half_add(&sys->waiters, 1, FK_SEQ_CST); /* pairs with notify_waiters */
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

/* Writes backwards from the end of a text that is `full` bytes long; only what fits in buf. */
static size_t write_before(size_t end, const char *text, size_t len, char *buf, size_t size)
{
    size_t start = end - len;
    for (size_t i = 0; i < len; i++) {
        if (start + i + 1 < size) buf[start + i] = text[i];
    }
    return start;
}

/* One step up from an actor that may end at any moment: 0 when it has. A parent keeps the names of
 * its children under its lock and outlives them; a child's parent changes after its generation. */
static size_t name_of(const fk_cell *cell, uint32_t *generation, const fk_cell **up, char *name)
{
    fk_mem *mem = &cell->sys->mem;
    fk_cell *parent = fk__cell_parent(cell);
    size_t len = 0;
    if (parent == NULL) return 0;
    fk__mem_lock(mem, &parent->children_lock);
    if (fk__half_load(&cell->generation, FK_ACQUIRE) == *generation) {
        len = fk__cell_name(cell, name, PATH_NAME_MAX);
        *generation = fk__half_load(&parent->generation, FK_ACQUIRE);
        *up = parent;
    }
    fk__mem_unlock(mem, &parent->children_lock);
    return len;
}

size_t fk_path_of(fk_system *sys, fk_ref ref, char *buf, size_t size)
{
    char name[PATH_NAME_MAX];
    static const char USER[] = "/user";
    size_t full = sizeof(USER) - 1;
    uint32_t generation = ref.generation;
    if (size > 0) buf[0] = '\0';
    const fk_cell *cell = fk__cell_resolve(sys, ref);
    if (cell == NULL) return 0;
    for (const fk_cell *c = cell; c != sys->guardian;) {
        size_t len = name_of(c, &generation, &c, name);
        if (len == 0) return 0;
        full += 1 + len;
    }
    /* Once more, now that the end is known: names do not change. */
    size_t at = full;
    generation = ref.generation;
    for (const fk_cell *c = cell; c != sys->guardian;) {
        size_t len = name_of(c, &generation, &c, name);
        if (len == 0) {
            if (size > 0) buf[0] = '\0';
            return 0;
        }
        at = write_before(at, name, len, buf, size);
        at = write_before(at, "/", 1, buf, size);
    }
    write_before(at, USER, sizeof(USER) - 1, buf, size);
    if (size > 0) buf[full < size ? full : size - 1] = '\0';
    return full;
}
