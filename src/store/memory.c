/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The store in memory: who shares which cluster, and the way from an op to what it does. A cluster
 * takes its memory from the port of whoever opened it first, which must last as long as all handles.
 */

#include "store/memory.h"

typedef struct memory_store {
    fk_store base;
    memory_cluster *cluster;
    fk_mem mem;
} memory_store;

/* All clusters of the process. This lock is taken before that of a cluster, never after it. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static memory_cluster *registry;

/* ---- clusters ----------------------------------------------------------------------------- */

fk_err fk__memory_text_make(fk_mem *mem, fk_str from, memory_text *out)
{
    void *made = NULL;
    FK_TRY(fk__mem_alloc(mem, from.len + 1, FK_SITE("store: text"), &made));
    *out = (memory_text){ made, from.len };
    if (from.len > 0) memcpy(out->ptr, from.ptr, from.len);
    return FK_OK;
}

void fk__memory_text_free(fk_mem *mem, memory_text text)
{
    fk__mem_free(mem, text.ptr, text.len + 1);
}

static fk_err cluster_create(fk_str name, const fk_port *port, memory_cluster **out)
{
    fk_mem mem;
    memory_text text;
    void *made = NULL;
    fk__mem_init(&mem, port, 0);
    FK_TRY(fk__mem_alloc(&mem, sizeof(memory_cluster), FK_SITE("store: memory"), &made));
    fk_err err = fk__memory_text_make(&mem, name, &text);
    if (err != FK_OK) {
        fk__mem_free(&mem, made, sizeof(memory_cluster));
        return err;
    }
    memory_cluster *c = made;
    memset(c, 0, sizeof *c);
    c->mem = mem;
    c->name = text;
    c->dice = 0x9e3779b97f4a7c15u;
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return FK_OK;
}

static void cluster_destroy(memory_cluster *c)
{
    fk__memory_grains_fini(c);
    fk__memory_slots_fini(c);
    fk__memory_members_fini(c);
    fk__memory_text_free(&c->mem, c->strategy);
    fk__memory_text_free(&c->mem, c->name);
    pthread_mutex_destroy(&c->lock);
    fk_mem mem = c->mem;
    fk__mem_free(&mem, c, sizeof *c);
}

/* Under the registry's lock. */
static fk_err cluster_take(fk_str name, const fk_port *port, memory_cluster **out)
{
    memory_cluster *c = registry;
    while (c != NULL && !fk__str_same(fk__memory_str(c->name), name)) c = c->next;
    if (c == NULL) {
        FK_TRY(cluster_create(name, port, &c));
        c->next = registry;
        registry = c;
    }
    c->handles++;
    *out = c;
    return FK_OK;
}

static void cluster_put(memory_cluster *c)
{
    memory_cluster **at = &registry;
    FK_ASSERT(c->handles > 0);
    if (--c->handles > 0) return;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    cluster_destroy(c);
}

/* ---- ops ----------------------------------------------------------------------------------- */

static void memory_do(memory_cluster *c, fk_store_op *op)
{
    static void (*const verbs[])(memory_cluster *, fk_store_op *) = {
        [FK_STORE_JOIN] = fk__memory_join,         [FK_STORE_RENEW] = fk__memory_renew,
        [FK_STORE_UPDATE] = fk__memory_update,     [FK_STORE_LEAVE] = fk__memory_leave,
        [FK_STORE_VIEW] = fk__memory_view,         [FK_STORE_ACQUIRE] = fk__memory_acquire,
        [FK_STORE_TRANSFER] = fk__memory_transfer, [FK_STORE_RELEASE] = fk__memory_release,
        [FK_STORE_LOAD] = fk__memory_load,         [FK_STORE_STORE] = fk__memory_put,
        [FK_STORE_REMOVE] = fk__memory_remove,     [FK_STORE_PEEK] = fk__memory_peek,
        [FK_STORE_LIST] = fk__memory_list,
    };
    _Static_assert(sizeof verbs / sizeof *verbs == FK_STORE_VERB_COUNT, "every verb");
    if (fk__store_begin(op)) verbs[op->verb](c, op);
}

static void memory_apply(fk_store *store, fk_store_op *const *ops, size_t count)
{
    memory_cluster *c = FK_CONTAINER(store, memory_store, base)->cluster;
    pthread_mutex_lock(&c->lock);
    c->now = fk__store_clock() + c->shift;
    for (size_t i = 0; i < count; i++) memory_do(c, ops[i]);
    pthread_mutex_unlock(&c->lock);
}

static uint64_t memory_stamp(fk_store *store)
{
    memory_cluster *c = FK_CONTAINER(store, memory_store, base)->cluster;
    pthread_mutex_lock(&c->lock);
    uint64_t version = c->version;
    pthread_mutex_unlock(&c->lock);
    return version;
}

static void memory_close(fk_store *store)
{
    memory_store *s = FK_CONTAINER(store, memory_store, base);
    fk_mem mem = s->mem;
    pthread_mutex_lock(&registry_lock);
    cluster_put(s->cluster);
    pthread_mutex_unlock(&registry_lock);
    fk__mem_free(&mem, s, sizeof *s);
}

void fk__memory_clock_shift(fk_store *store, fk_time by)
{
    memory_cluster *c = FK_CONTAINER(store, memory_store, base)->cluster;
    pthread_mutex_lock(&c->lock);
    c->shift += by;
    pthread_mutex_unlock(&c->lock);
}

static fk_err memory_open(void *user, fk_str rest, bool is_state, const fk_port *port,
                          fk_store **out, const char **why)
{
    static const fk_store_ops ops = { memory_apply, memory_stamp, memory_close };
    fk_mem mem;
    void *made = NULL;
    (void)user;
    (void)is_state; /* memory survives nothing */
    fk__mem_init(&mem, port, 0);
    FK_TRY(fk__mem_alloc(&mem, sizeof(memory_store), FK_SITE("store: handle"), &made));
    memory_store *s = made;
    *s = (memory_store){ .base = { &ops }, .mem = mem };
    pthread_mutex_lock(&registry_lock);
    fk_err err = cluster_take(rest, port, &s->cluster);
    pthread_mutex_unlock(&registry_lock);
    if (err != FK_OK) {
        *why = "no memory for the store";
        mem = s->mem;
        fk__mem_free(&mem, s, sizeof *s);
        return err;
    }
    *out = &s->base;
    return FK_OK;
}

const fk_store_provider fk_store_memory = { "memory", NULL, memory_open };
