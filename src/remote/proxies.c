/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/proxies.h"

#include "core/spawn.h"

enum { HELD_MAX = 65536, KEPT_MAX = 65536, MET_MAX = 16384, PROXY_BUCKETS = 4096 };
enum { PINS_OF_ONE = 8, PINS_OF_ALL = 2 }; /* one part in so many of those that are met */

fk_err fk__proxies_init(fk_proxies *proxies, fk_system *sys, uint32_t met_max, uint32_t pins_max)
{
    void *memory;
    if (met_max == 0) met_max = MET_MAX;
    if (pins_max == 0) pins_max = (met_max + PINS_OF_ONE - 1) / PINS_OF_ONE;
    *proxies = (fk_proxies){ .sys = sys,
                             .held_max = HELD_MAX,
                             .kept_max = KEPT_MAX,
                             .met_max = met_max,
                             .pins_max = pins_max };
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

/* Among those of the same authority that may give way. */
static void kin_remove(fk_remote_proxy *proxy)
{
    fk_authority *a = proxy->authority;
    FK_ASSERT(a != NULL);
    *(proxy->kin_older != NULL ? &proxy->kin_older->kin_newer : &a->idle_oldest) = proxy->kin_newer;
    *(proxy->kin_newer != NULL ? &proxy->kin_newer->kin_older : &a->idle_newest) = proxy->kin_older;
    proxy->kin_older = proxy->kin_newer = NULL;
}

static void kin_put(fk_remote_proxy *proxy)
{
    fk_authority *a = proxy->authority;
    FK_ASSERT(a != NULL);
    proxy->kin_older = a->idle_newest;
    *(a->idle_newest != NULL ? &a->idle_newest->kin_newer : &a->idle_oldest) = proxy;
    a->idle_newest = proxy;
}

static void idle_remove(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    if (proxy->queue == &proxies->idle) kin_remove(proxy);
    queue_remove(proxy);
}

static uint32_t *proxy_class(fk_proxies *proxies, const fk_remote_proxy *proxy)
{
    if (proxy->is_held) return &proxies->held;
    return proxy->is_watched || proxy->has_news ? &proxies->kept : &proxies->met;
}

/* It counts there from now on; NULL: nowhere. */
static void proxy_count(fk_proxies *proxies, fk_remote_proxy *proxy, uint32_t *count)
{
    fk_authority *a = proxy->authority;
    if (proxy->count == count) return;
    if (proxy->count != NULL) (*proxy->count)--;
    if (count != NULL) (*count)++;
    a->proxies_met += (count == &proxies->met) - (uint32_t)(proxy->count == &proxies->met);
    a->proxies_held += (count == &proxies->held) - (uint32_t)(proxy->count == &proxies->held);
    proxy->count = count;
    bool is_largest = proxies->largest == NULL || a->proxies_met > proxies->largest->proxies_met;
    if (is_largest && a->proxies_met != 0) proxies->largest = a;
    if (proxies->largest == a && a->proxies_met == 0) proxies->largest = NULL;
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
    idle_remove(proxies, proxy);
    if (proxy->is_watched) queue_put(&proxies->watched, proxy);
    if (!stays) {
        queue_put(&proxies->idle, proxy);
        kin_put(proxy);
    }
    proxy_count(proxies, proxy, proxy_class(proxies, proxy));
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
    /* Release: who has the ref has it from the lock, but who has a former one, and will be found out,
     * may be the first to see that line. */
    fk__word_store(&proxy->line, (uintptr_t)authority->user, FK_RELEASE);
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
    idle_remove(proxies, proxy);
    bucket_remove(proxies, proxy);
    proxy_count(proxies, proxy, NULL);
    authority_detach(proxy);
    proxy->next = proxies->spare;
    proxies->spare = proxy;
    return true;
}

/* Of these three the one with most: who has the reference that is unused for the longest time, who
 * had most when that was last looked at, and who wants another one. */
static fk_remote_proxy *proxy_to_go(const fk_proxies *proxies, const fk_authority *authority)
{
    fk_remote_proxy *oldest = proxies->idle.oldest;
    if (oldest == NULL) return NULL;
    const fk_authority *who = oldest->authority, *largest = proxies->largest;
    bool is_more = largest != NULL && largest->proxies_met > who->proxies_met;
    if (is_more && largest->idle_oldest != NULL) who = largest;
    is_more = authority->proxies_met > who->proxies_met;
    if (is_more && authority->idle_oldest != NULL) who = authority;
    return who->idle_oldest;
}

/* The last one to go is the first of those that are spare, and has room for the text. */
static fk_err proxies_room(fk_proxies *proxies, size_t len, const fk_authority *authority)
{
    while (proxies->met >= proxies->met_max) {
        fk_remote_proxy *proxy = proxy_to_go(proxies, authority);
        if (proxy == NULL) return FK_E_LIMIT;
        FK_TRY(text_reserve(&proxies->sys->mem, proxy, len));
        (void)!proxy_close(proxies, proxy);
    }
    return FK_OK;
}

bool fk__proxies_retire(fk_proxies *proxies, fk_authority *authority)
{
    while (authority->proxies != NULL) {
        if (!proxy_close(proxies, authority->proxies)) return false;
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
        proxy->is_held = false;
        proxy_queue(proxies, proxy);
        if (!proxy_close(proxies, proxy)) return FK_E_STATE;
    }
    return FK_OK;
}

static fk_err proxy_add(fk_proxies *proxies, fk_local *local, fk_str path,
                        const fk_authority *authority, bool is_held, fk_remote_proxy **out)
{
    if (is_held && proxies->held >= proxies->held_max) return FK_E_LIMIT;
    if (!is_held) FK_TRY(proxies_room(proxies, path.len, authority));
    FK_TRY(proxy_create(proxies, local, path.len, out));
    fk_remote_proxy *proxy = *out;
    memcpy(proxy->text, path.ptr, path.len);
    proxy->proxy.path = (fk_str){ proxy->text, path.len };
    proxy->is_held = is_held;
    return FK_OK;
}

/* It was met, and is asked for after all. */
static fk_err proxy_hold(const fk_proxies *proxies, fk_remote_proxy *proxy)
{
    if (proxies->held >= proxies->held_max) return FK_E_LIMIT;
    proxy->is_held = true;
    return FK_OK;
}

fk_err fk__proxies_get(fk_proxies *proxies, fk_local *local, fk_str path, fk_authority *authority,
                       bool is_held, fk_remote_proxy **out)
{
    uint64_t hash = fk__hash_bytes(&proxies->sys->key, path.ptr, path.len);
    fk_remote_proxy *proxy = proxy_of_text(proxies, hash, path);
    if (proxy == NULL) {
        FK_TRY(proxy_add(proxies, local, path, authority, is_held, &proxy));
        proxy->hash = hash;
        authority_attach(proxy, authority);
        bucket_put(proxies, proxy);
    } else if (is_held && !proxy->is_held) {
        FK_TRY(proxy_hold(proxies, proxy));
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
    bool may_go = proxy->queue == &proxies->idle && !proxies->is_over;
    if (may_go) proxy_queue(proxies, proxy);
    return proxy;
}

bool fk__proxies_watched(fk_proxies *proxies, fk_remote_proxy *proxy, bool is_watched)
{
    bool is_kept = proxy->count != &proxies->met;
    if (is_watched && !is_kept && proxies->kept >= proxies->kept_max) return false;
    proxy->is_watched = is_watched;
    proxy_queue(proxies, proxy);
    return true;
}

void fk__proxies_news(fk_proxies *proxies, fk_remote_proxy *proxy, bool has_news)
{
    proxy->has_news = has_news;
    proxy_queue(proxies, proxy);
}

fk_err fk__proxies_pin(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    fk_authority *a = proxy->authority;
    uint32_t most = (proxies->met_max + PINS_OF_ALL - 1) / PINS_OF_ALL;
    bool is_full = a->proxies_pinned >= proxies->pins_max || proxies->pinned >= most;
    if (proxy->pins == 0 && is_full) return FK_E_LIMIT;
    proxies->pinned += proxy->pins == 0;
    a->proxies_pinned += proxy->pins == 0;
    proxy->pins++;
    proxy_queue(proxies, proxy);
    return FK_OK;
}

void fk__proxies_unpin(fk_proxies *proxies, fk_remote_proxy *proxy)
{
    FK_ASSERT(proxy->pins != 0);
    proxy->pins--;
    proxies->pinned -= proxy->pins == 0;
    proxy->authority->proxies_pinned -= proxy->pins == 0;
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
    FK_ASSERT(proxy->is_held == (proxy->count == &proxies->held));
    FK_ASSERT((proxy->count == &proxies->met) ==
              (!proxy->is_held && !proxy->is_watched && !proxy->has_news));
    FK_ASSERT(proxy->queue != &proxies->idle || proxy->kin_newer != NULL ||
              proxy->authority->idle_newest == proxy);
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
    uint32_t held = 0, kept = 0, met = 0, pinned = 0;
    for (uint32_t i = 0; i < proxies->bucket_count; i++) {
        for (const fk_remote_proxy *p = proxies->bucket[i]; p != NULL; p = p->next) {
            FK_ASSERT(p->hash % proxies->bucket_count == i);
            proxy_check(proxies, p);
            held += p->count == &proxies->held;
            kept += p->count == &proxies->kept;
            met += p->count == &proxies->met;
            pinned += p->pins != 0;
        }
    }
    FK_ASSERT(held == proxies->held);
    FK_ASSERT(kept == proxies->kept);
    FK_ASSERT(met == proxies->met);
    FK_ASSERT(pinned == proxies->pinned);
    FK_ASSERT(held <= proxies->held_max);
    FK_ASSERT(met + kept <= proxies->met_max + proxies->kept_max);
    queue_check(&proxies->idle);
    queue_check(&proxies->watched);
}
