/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/proxies.h"

#include "core/spawn.h"

enum { HELD_MAX = 65536, MET_MAX = 16384, PROXY_BUCKETS = 4096 };

fk_err fk__proxies_init(fk_proxies *proxies, fk_system *sys)
{
    void *memory;
    *proxies = (fk_proxies){ .sys = sys, .held_max = HELD_MAX, .met_max = MET_MAX };
    size_t size = PROXY_BUCKETS * sizeof(fk_remote_proxy *);
    FK_TRY(fk__mem_alloc(&sys->mem, size, FK_SITE("table of remote references"), &memory));
    memset(memory, 0, size);
    proxies->bucket = memory;
    proxies->bucket_count = PROXY_BUCKETS;
    return FK_OK;
}

static void proxy_free(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    fk_mem *mem = &proxies->sys->mem;
    fk__mem_free(mem, proxy->text, proxy->text_size);
    fk__mem_free(mem, proxy, sizeof(*proxy));
}

void fk__proxies_fini(fk_proxies *proxies)
{
    for (uint32_t i = 0; i < proxies->bucket_count; i++) {
        while (proxies->bucket[i] != NULL) {
            fk_remote_proxy *proxy = proxies->bucket[i];
            proxies->bucket[i] = proxy->next;
            proxy_free(proxies, proxy);
        }
    }
    while (proxies->spare != NULL) {
        fk_remote_proxy *proxy = proxies->spare;
        proxies->spare = proxy->next;
        proxy_free(proxies, proxy);
    }
    fk__mem_free(&proxies->sys->mem, proxies->bucket,
                 proxies->bucket_count * sizeof(fk_remote_proxy *));
}

static fk_remote_proxy *proxy_of_text(const fk_proxies *proxies, uint64_t hash, fk_str text)
{
    fk_remote_proxy *proxy = proxies->bucket[hash % proxies->bucket_count];
    for (; proxy != NULL; proxy = proxy->next) {
        fk_str own = proxy->proxy.path;
        bool is_same = proxy->hash == hash && own.len == text.len;
        if (is_same && memcmp(own.ptr, text.ptr, text.len) == 0) break;
    }
    return proxy;
}

/* ---- queues ------------------------------------------------------------------------------------ */

static void queue_remove(fk_remote_proxy *proxy)
{
    fk_proxy_queue *queue = proxy->queue;
    if (queue == NULL) return;
    if (proxy->older != NULL)
        proxy->older->newer = proxy->newer;
    else
        queue->oldest = proxy->newer;
    if (proxy->newer != NULL)
        proxy->newer->older = proxy->older;
    else
        queue->newest = proxy->older;
    queue->count--;
    proxy->queue = NULL;
    proxy->older = proxy->newer = NULL;
}

static void queue_put(fk_proxy_queue *queue, fk_remote_proxy *proxy)
{
    proxy->older = queue->newest;
    if (queue->newest != NULL)
        queue->newest->newer = proxy;
    else
        queue->oldest = proxy;
    queue->newest = proxy;
    queue->count++;
    proxy->queue = queue;
}

static bool proxy_stays(const fk_remote_proxy *proxy)
{
    return proxy->is_held || proxy->is_watched || proxy->has_news || proxy->is_worn ||
           proxy->pins != 0;
}

/* Where it belongs, as the newest. */
static void proxy_queue(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    bool stays = proxy_stays(proxy);
    queue_remove(proxy);
    if (proxy->is_watched)
        queue_put(&proxies->watched, proxy);
    else if (!stays)
        queue_put(&proxies->idle, proxy);
    if (stays == proxy->is_staying) return;
    proxy->is_staying = stays;
    proxy->authority->proxies_staying += stays ? 1 : (uint32_t)-1;
}

/* ---- making ------------------------------------------------------------------------------------ */

static void bucket_put(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    fk_remote_proxy **bucket = &proxies->bucket[proxy->hash % proxies->bucket_count];
    proxy->next = *bucket;
    *bucket = proxy;
}

static void bucket_remove(fk_proxies *proxies, const fk_remote_proxy *proxy)
{
    fk_remote_proxy **at = &proxies->bucket[proxy->hash % proxies->bucket_count];
    while (*at != proxy) at = &(*at)->next;
    *at = proxy->next;
}

static void authority_attach(fk_remote_proxy *proxy, fk_authority *authority)
{
    proxy->authority = authority;
    /* Relaxed: who has the ref has it from the lock; who has a former one is found out. */
    fk__word_store(&proxy->line, (uintptr_t)authority->user, FK_RELAXED);
    proxy->sibling = authority->proxies;
    proxy->link = &authority->proxies;
    if (proxy->sibling != NULL) proxy->sibling->link = &proxy->sibling;
    authority->proxies = proxy;
}

static void authority_detach(fk_remote_proxy *proxy)
{
    FK_ASSERT(!proxy->is_staying);
    *proxy->link = proxy->sibling;
    if (proxy->sibling != NULL) proxy->sibling->link = proxy->link;
    proxy->sibling = NULL;
    proxy->link = NULL;
    proxy->authority = NULL;
}

/* Room for a text that is longer than what it had. */
static fk_err text_reserve(fk_mem *mem, fk_remote_proxy *proxy, size_t len)
{
    void *room;
    if (len <= proxy->text_size) return FK_OK;
    FK_TRY(fk__mem_alloc(mem, len, FK_SITE("text of a remote reference"), &room));
    /* What it says until now stays said. */
    if (proxy->proxy.path.len != 0) memcpy(room, proxy->text, proxy->proxy.path.len);
    fk__mem_free(mem, proxy->text, proxy->text_size);
    proxy->text = room;
    proxy->text_size = (uint32_t)len;
    proxy->proxy.path.ptr = proxy->text;
    return FK_OK;
}

static fk_err proxy_create(fk_proxies *proxies, fk_local *local, size_t len, fk_remote_proxy **out)
{
    fk_mem *mem = &proxies->sys->mem;
    void *memory;
    if (proxies->spare != NULL) {
        *out = proxies->spare;
        FK_TRY(text_reserve(mem, *out, len));
        proxies->spare = (*out)->next;
        return FK_OK;
    }
    FK_TRY(fk__mem_alloc(mem, sizeof(fk_remote_proxy), FK_SITE("remote reference"), &memory));
    fk_remote_proxy *proxy = memory;
    *proxy = (fk_remote_proxy){ .proxy.path = { NULL, 0 } };
    fk_err err = text_reserve(mem, proxy, len);
    /* Nobody knows the ref before the text is there and the lock is left. */
    if (err == FK_OK) err = fk__proxy_open(local, &proxy->proxy, &proxy->ref);
    if (err != FK_OK) {
        proxy_free(proxies, proxy);
        return err;
    }
    *out = proxy;
    return FK_OK;
}

/* One that was met stands for nobody any more. False: it is worn out, and stays. */
static bool proxy_close(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    FK_ASSERT(proxy->queue == &proxies->idle);
    proxy->is_worn = !fk__proxy_reopen(proxies->sys, &proxy->ref);
    proxy_queue(proxies, proxy);
    if (proxy->is_worn) return false;
    queue_remove(proxy);
    bucket_remove(proxies, proxy);
    authority_detach(proxy);
    proxies->met--;
    return true;
}

/* The one that is unused for the longest time. */
static fk_err proxy_give_way(fk_proxies *proxies, size_t len, fk_remote_proxy **out)
{
    fk_remote_proxy *proxy;
    while ((proxy = proxies->idle.oldest) != NULL) {
        FK_TRY(text_reserve(&proxies->sys->mem, proxy, len));
        if (!proxy_close(proxies, proxy)) continue;
        *out = proxy;
        return FK_OK;
    }
    return FK_E_LIMIT;
}

bool fk__proxies_retire(fk_proxies *proxies, fk_authority *authority)
{
    while (authority->proxies != NULL) {
        fk_remote_proxy *proxy = authority->proxies;
        if (!proxy_close(proxies, proxy)) return false;
        proxy->next = proxies->spare;
        proxies->spare = proxy;
    }
    return true;
}

fk_err fk__proxies_evict(fk_proxies *proxies, fk_authority *authority, uint32_t most)
{
    while (authority->proxies != NULL) {
        fk_remote_proxy *proxy = authority->proxies;
        bool must_stay = proxy->is_watched || proxy->has_news || proxy->is_worn;
        if (must_stay || proxy->pins != 0) return FK_E_STATE;
        if (most-- == 0) return FK_E_FULL;
        if (proxy->is_held) {
            proxy->is_held = false;
            authority->proxies_held--;
            proxies->held--;
            proxies->met++;
            proxy_queue(proxies, proxy);
        }
        if (!proxy_close(proxies, proxy)) return FK_E_STATE;
        proxy->next = proxies->spare;
        proxies->spare = proxy;
    }
    return FK_OK;
}

static fk_err proxy_add(fk_proxies *proxies, fk_local *local, fk_str path, bool is_held,
                        fk_remote_proxy **out)
{
    if (is_held && proxies->held >= proxies->held_max) return FK_E_LIMIT;
    bool is_full = !is_held && proxies->met >= proxies->met_max;
    FK_TRY(is_full ? proxy_give_way(proxies, path.len, out)
                   : proxy_create(proxies, local, path.len, out));
    fk_remote_proxy *proxy = *out;
    memcpy(proxy->text, path.ptr, path.len);
    proxy->proxy.path = (fk_str){ proxy->text, path.len };
    proxy->is_held = is_held;
    if (is_held)
        proxies->held++;
    else
        proxies->met++;
    return FK_OK;
}

/* It was met, and is asked for after all. */
static fk_err proxy_hold(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    if (proxies->held >= proxies->held_max) return FK_E_LIMIT;
    proxy->is_held = true;
    proxies->held++;
    proxies->met--;
    return FK_OK;
}

fk_err fk__proxies_get(fk_proxies *proxies, fk_local *local, fk_str path, fk_authority *authority,
                       bool is_held, fk_remote_proxy **out)
{
    uint64_t hash = fk__hash_bytes(&proxies->sys->key, path.ptr, path.len);
    fk_remote_proxy *proxy = proxy_of_text(proxies, hash, path);
    if (proxy == NULL) {
        FK_TRY(proxy_add(proxies, local, path, is_held, &proxy));
        proxy->hash = hash;
        authority_attach(proxy, authority);
        if (is_held) authority->proxies_held++;
        bucket_put(proxies, proxy);
    } else if (is_held && !proxy->is_held) {
        FK_TRY(proxy_hold(proxies, proxy));
        authority->proxies_held++;
    }
    proxy_queue(proxies, proxy);
    *out = proxy;
    return FK_OK;
}

/* ---- using ------------------------------------------------------------------------------------- */

fk_remote_proxy *fk__proxies_find(fk_proxies *proxies, fk_ref ref)
{
    const fk_cell *cell = fk__cell_resolve(proxies->sys, ref);
    if (cell == NULL) return NULL;
    if ((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_REMOTE) == 0) return NULL;
    fk_proxy *found = cell->state;
    fk_remote_proxy *proxy = FK_CONTAINER(found, fk_remote_proxy, proxy);
    if (proxy->queue == &proxies->idle) proxy_queue(proxies, proxy);
    return proxy;
}

void fk__proxies_watched(fk_proxies *proxies, fk_remote_proxy *proxy, bool is_watched)
{
    proxy->is_watched = is_watched;
    proxy_queue(proxies, proxy);
}

void fk__proxies_news(fk_proxies *proxies, fk_remote_proxy *proxy, bool has_news)
{
    proxy->has_news = has_news;
    proxy_queue(proxies, proxy);
}

void fk__proxies_pin(fk_proxies *proxies, fk_remote_proxy *proxy, bool is_pinned)
{
    proxy->pins += is_pinned ? 1 : (uint32_t)-1;
    proxy_queue(proxies, proxy);
}

fk_remote_proxy *fk__proxies_next_watched(fk_proxies *proxies)
{
    fk_remote_proxy *proxy = proxies->watched.oldest;
    if (proxy != NULL) proxy_queue(proxies, proxy);
    return proxy;
}

/* ---- invariants -------------------------------------------------------------------------------- */

static void proxy_check(const fk_proxies *proxies, const fk_remote_proxy *proxy)
{
    const fk_system *sys = proxies->sys;
    const fk_cell *cell = fk__cell_resolve(sys, proxy->ref);
    FK_ASSERT(cell != NULL);
    FK_ASSERT(fk__half_load(&cell->gate, FK_RELAXED) == FK_GATE_REMOTE);
    FK_ASSERT(cell->state == &proxy->proxy);
    FK_ASSERT(proxy->proxy.path.ptr == proxy->text);
    FK_ASSERT(proxy->proxy.path.len <= proxy->text_size);
    FK_ASSERT(proxy->hash ==
              fk__hash_bytes(&sys->key, proxy->proxy.path.ptr, proxy->proxy.path.len));
    FK_ASSERT(proxy->authority != NULL);
    FK_ASSERT(*proxy->link == proxy);
    FK_ASSERT(fk__word_ptr(&proxy->line, FK_RELAXED) == proxy->authority->user);
    FK_ASSERT(proxy->is_staying == proxy_stays(proxy));
    FK_ASSERT(!proxy->is_staying || proxy->authority->proxies_staying != 0);
    FK_ASSERT(proxy->is_watched == (proxy->queue == &proxies->watched));
    FK_ASSERT(proxy_stays(proxy) == (proxy->queue != &proxies->idle));
}

static void queue_check(const fk_proxy_queue *queue)
{
    uint32_t count = 0;
    const fk_remote_proxy *older = NULL;
    for (const fk_remote_proxy *p = queue->oldest; p != NULL; older = p, p = p->newer) {
        FK_ASSERT(p->older == older);
        FK_ASSERT(p->queue == queue);
        count++;
    }
    FK_ASSERT(queue->newest == older);
    FK_ASSERT(queue->count == count);
}

void fk__proxies_check(const fk_proxies *proxies)
{
    uint32_t held = 0, met = 0;
    for (uint32_t i = 0; i < proxies->bucket_count; i++) {
        for (const fk_remote_proxy *p = proxies->bucket[i]; p != NULL; p = p->next) {
            FK_ASSERT(p->hash % proxies->bucket_count == i);
            proxy_check(proxies, p);
            if (p->is_held)
                held++;
            else
                met++;
        }
    }
    FK_ASSERT(held == proxies->held);
    FK_ASSERT(met == proxies->met);
    FK_ASSERT(held <= proxies->held_max);
    FK_ASSERT(met <= proxies->met_max);
    queue_check(&proxies->idle);
    queue_check(&proxies->watched);
}
