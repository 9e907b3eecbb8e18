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
    fk__mem_free(&proxies->sys->mem, proxies->bucket,
                 proxies->bucket_count * sizeof(fk_remote_proxy *));
}

static fk_remote_proxy *proxy_of_text(fk_proxies *proxies, uint64_t hash, fk_str text)
{
    fk_remote_proxy *proxy = proxies->bucket[hash % proxies->bucket_count];
    for (; proxy != NULL; proxy = proxy->next) {
        fk_str own = proxy->proxy.path;
        bool is_same = proxy->hash == hash && own.len == text.len;
        if (is_same && memcmp(own.ptr, text.ptr, text.len) == 0) break;
    }
    return proxy;
}

static fk_err proxy_create(fk_proxies *proxies, fk_local *local, uint64_t hash, fk_str text,
                           fk_remote_proxy **out)
{
    fk_mem *mem = &proxies->sys->mem;
    void *memory, *copy;
    if (proxies->held >= proxies->held_max) return FK_E_LIMIT;
    FK_TRY(fk__mem_alloc(mem, sizeof(fk_remote_proxy), FK_SITE("remote reference"), &memory));
    fk_err err = fk__mem_alloc(mem, text.len, FK_SITE("text of a remote reference"), &copy);
    if (err != FK_OK) {
        fk__mem_free(mem, memory, sizeof(fk_remote_proxy));
        return err;
    }
    fk_remote_proxy *proxy = memory;
    memcpy(copy, text.ptr, text.len);
    *proxy = (fk_remote_proxy){ .hash = hash, .text = copy, .text_size = (uint32_t)text.len };
    proxy->proxy.path = (fk_str){ proxy->text, text.len };
    err = fk__proxy_open(local, &proxy->proxy, &proxy->ref);
    if (err != FK_OK) {
        proxy_free(proxies, proxy);
        return err;
    }
    fk_remote_proxy **bucket = &proxies->bucket[hash % proxies->bucket_count];
    proxy->next = *bucket;
    *bucket = proxy;
    proxies->held++;
    *out = proxy;
    return FK_OK;
}

fk_err fk__proxies_get(fk_proxies *proxies, fk_local *local, fk_str path, fk_authority *authority,
                       bool is_held, fk_remote_proxy **out)
{
    uint64_t hash = fk__hash_bytes(&proxies->sys->key, path.ptr, path.len);
    *out = proxy_of_text(proxies, hash, path);
    if (*out != NULL) return FK_OK;
    FK_TRY(proxy_create(proxies, local, hash, path, out));
    (*out)->is_held = is_held;
    fk__word_store(&(*out)->authority, (uintptr_t)authority, FK_RELAXED);
    return FK_OK;
}
