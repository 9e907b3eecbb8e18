/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The table: chains in buckets, and as many places for deadlines as there are buckets, in one
 * block that is doubled when there are as many authorities. The names come from whoever sends us a
 * reference, so the hash is keyed.
 */

#include "remote/authority.h"

#include "remote/authority_clock.h"

enum {
    AUTHORITY_BUCKETS_MIN = 16,
    AUTHORITY_PART_MAX = 255, /* bytes of a system's or a host's name */
    AUTHORITY_TEXT_MAX = 2 * AUTHORITY_PART_MAX + sizeof("@:65535")
};

/* ---- keys ---------------------------------------------------------------------------------- */

static size_t authority_put_text(char *to, size_t at, fk_str text)
{
    memcpy(to + at, text.ptr, text.len);
    return at + text.len;
}

static size_t authority_put_number(char *to, size_t at, uint32_t number)
{
    char digits[10];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0) to[at++] = digits[--count];
    return at;
}

static bool authority_has_at_sign(fk_str text)
{
    size_t i = 0;
    while (i < text.len && text.ptr[i] != '@') i++;
    return i < text.len;
}

/* "system@host:port". Two keys have one text only if they are equal, because the first '@' ends the
 * system and the last ':' begins the port. 0: not a key. */
static size_t authority_write(const fk_authority_key *key, char *to)
{
    if (key->system.len == 0 || key->system.len > AUTHORITY_PART_MAX) return 0;
    if (key->host.len == 0 || key->host.len > AUTHORITY_PART_MAX) return 0;
    if (key->port == 0 || authority_has_at_sign(key->system)) return 0;
    size_t len = authority_put_text(to, 0, key->system);
    to[len++] = '@';
    len = authority_put_text(to, len, key->host);
    to[len++] = ':';
    return authority_put_number(to, len, key->port);
}

static fk_authority *authority_look_up(const fk_authority_table *table, fk_str text, uint64_t hash)
{
    if (table->bucket_count == 0) return NULL;
    fk_authority *a = table->bucket[hash & (table->bucket_count - 1)];
    while (a != NULL && !(a->hash == hash && a->text.len == text.len &&
                          memcmp(a->text.ptr, text.ptr, text.len) == 0)) {
        a = a->chain;
    }
    return a;
}

fk_authority *fk__authority_find(const fk_authority_table *table, const fk_authority_key *key)
{
    char buffer[AUTHORITY_TEXT_MAX];
    fk_str text = { buffer, authority_write(key, buffer) };
    if (text.len == 0) return NULL;
    return authority_look_up(table, text, fk__hash_bytes(&table->hash_key, text.ptr, text.len));
}

/* ---- making and forgetting ----------------------------------------------------------------- */

static size_t authority_block_size(uint32_t bucket_count)
{
    return (size_t)bucket_count * (sizeof(fk_authority *) + sizeof(fk_deadline *));
}

static fk_err authority_grow(fk_authority_table *table)
{
    uint32_t count = table->bucket_count != 0 ? table->bucket_count * 2 : AUTHORITY_BUCKETS_MIN;
    void *memory;
    FK_TRY(fk__mem_alloc(table->mem, authority_block_size(count), FK_SITE("authority table"),
                         &memory));
    fk_authority **bucket = memory;
    fk_deadline **heap = (fk_deadline **)(void *)(bucket + count);
    memset(bucket, 0, count * sizeof(*bucket));
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        for (fk_authority *a = table->bucket[i], *next; a != NULL; a = next) {
            next = a->chain;
            a->chain = bucket[a->hash & (count - 1)];
            bucket[a->hash & (count - 1)] = a;
        }
    }
    for (uint32_t i = 0; i < table->deadlines.count; i++) heap[i] = table->deadlines.heap[i];
    fk__mem_free(table->mem, table->bucket, authority_block_size(table->bucket_count));
    table->bucket = bucket;
    table->bucket_count = table->deadlines.capacity = count;
    table->deadlines.heap = heap;
    return FK_OK;
}

static fk_err authority_create(fk_authority_table *table, const fk_authority_key *key, fk_str text,
                               uint64_t hash, fk_authority **out)
{
    if (table->count >= table->config.authorities_max) return FK_E_LIMIT;
    if (table->count == table->bucket_count) FK_TRY(authority_grow(table));
    void *memory;
    FK_TRY(
        fk__mem_alloc(table->mem, sizeof(fk_authority) + text.len, FK_SITE("authority"), &memory));
    fk_authority *a = memory;
    fk_authority **bucket = &table->bucket[hash & (table->bucket_count - 1)];
    char *own = (char *)(a + 1);
    memcpy(own, text.ptr, text.len);
    *a = (fk_authority){ .state = FK_ASSOCIATION_UNRESOLVED,
                         .incarnation = 1,
                         .attempt_at = FK_NEVER,
                         .give_up_at = FK_NEVER,
                         .lift_at = FK_NEVER,
                         .lapse_at = FK_NEVER,
                         .deadline = FK_DEADLINE_INIT,
                         .chain = *bucket,
                         .hash = hash,
                         .text = { own, text.len } };
    a->key.system = (fk_str){ own, key->system.len };
    a->key.host = (fk_str){ own + key->system.len + 1, key->host.len };
    a->key.port = key->port;
    *bucket = a;
    table->count++;
    *out = a;
    return FK_OK;
}

fk_err fk__authority_get(fk_authority_table *table, const fk_authority_key *key, fk_time now,
                         fk_authority_effects *effects, fk_authority **out)
{
    char buffer[AUTHORITY_TEXT_MAX];
    fk_str text = { buffer, authority_write(key, buffer) };
    *effects = (fk_authority_effects){ .authority = NULL };
    if (text.len == 0) return FK_E_INVALID;
    uint64_t hash = fk__hash_bytes(&table->hash_key, text.ptr, text.len);
    fk_authority *a = authority_look_up(table, text, hash);
    if (a == NULL) {
        FK_TRY(authority_create(table, key, text, hash, &a));
        a->state_at = now;
        effects->has_change = true;
        effects->change =
            (fk_authority_change){ a->state, a->state, FK_AUTHORITY_REASON_CREATED, now };
        effects->change_number = ++a->changes;
    }
    effects->authority = *out = a;
    return FK_OK;
}

static void authority_destroy(fk_authority_table *table, fk_authority *a)
{
    fk__uids_fini(&a->quarantined, table->mem);
    fk__mem_free(table->mem, a->mapped_host, a->mapped_host_len);
    fk__mem_free(table->mem, a, sizeof(*a) + a->text.len);
}

static void authority_remove(fk_authority_table *table, fk_authority *authority)
{
    FK_ASSERT(authority->proxies == NULL);
    fk_authority **link = &table->bucket[authority->hash & (table->bucket_count - 1)];
    while (*link != authority) link = &(*link)->chain;
    *link = authority->chain;
    fk__deadline_set(&table->deadlines, &authority->deadline, FK_NEVER);
    authority_destroy(table, authority);
    table->count--;
}

/* By Pekko's rules no time ends a quarantine. But a uid need not be remembered for longer than this,
 * and with the uid the quarantine is over. */
bool fk__authority_is_forgettable(const fk_authority_table *table, const fk_authority *authority,
                                  fk_time now)
{
    const fk_authority *a = authority;
    bool is_for_good = a->state == FK_ASSOCIATION_QUARANTINE && a->lift_at == FK_NEVER;
    if (a->state != FK_ASSOCIATION_UNRESOLVED && !is_for_good) return false;
    if (a->is_attempting || a->deferred.count != 0) return false;
    if (a->is_kept || a->holds != 0) return false;
    return fk__uids_are_over(&a->quarantined, table->uids_limit.keep, now);
}

fk_err fk__authority_forget(fk_authority_table *table, fk_authority *authority, fk_time now)
{
    if (!fk__authority_is_forgettable(table, authority, now)) return FK_E_STATE;
    authority_remove(table, authority);
    return FK_OK;
}

fk_err fk__authority_give_way(fk_authority_table *table, fk_authority *authority)
{
    const fk_uids *uids = &authority->quarantined;
    if (!authority->is_crowded || authority->is_kept || authority->holds != 0) return FK_E_STATE;
    FK_ASSERT(authority->deferred.count == 0);
    for (uint32_t i = 0; i < uids->count; i++) {
        uint64_t uid = uids->mark[i].uid;
        if (authority->is_spared && uid == authority->uid) continue;
        fk__tombs_add(&table->tombs, authority->hash, uid);
    }
    authority_remove(table, authority);
    return FK_OK;
}

fk_err fk__authority_keep(fk_authority_table *table, fk_authority *authority)
{
    if (authority->is_kept) return FK_OK;
    if (table->kept >= (table->config.authorities_max + 1) / 2) return FK_E_LIMIT;
    authority->is_kept = true;
    table->kept++;
    return FK_OK;
}

fk_authority *fk__authority_after(const fk_authority_table *table, const fk_authority *authority)
{
    uint32_t i = 0;
    if (authority != NULL) {
        if (authority->chain != NULL) return authority->chain;
        i = (uint32_t)(authority->hash & (table->bucket_count - 1)) + 1;
    }
    while (i < table->bucket_count && table->bucket[i] == NULL) i++;
    return i < table->bucket_count ? table->bucket[i] : NULL;
}

/* ---- mapping ------------------------------------------------------------------------------- */

static bool authority_str_equal(fk_str a, fk_str b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

void fk__authority_target(const fk_authority *authority, fk_str *host, uint16_t *port)
{
    *host = authority->mapped_host != NULL
                ? (fk_str){ authority->mapped_host, authority->mapped_host_len }
                : authority->key.host;
    *port = authority->mapped_port != 0 ? authority->mapped_port : authority->key.port;
}

fk_err fk__authority_map(fk_authority_table *table, fk_authority *authority, fk_str host,
                         uint16_t port, fk_time now)
{
    fk_authority *a = authority;
    fk_str old_host;
    uint16_t old_port;
    void *copy = NULL;
    if (host.len > AUTHORITY_PART_MAX) return FK_E_INVALID;
    if (host.len == 0) host = a->key.host;
    if (port == 0) port = a->key.port;
    fk__authority_target(a, &old_host, &old_port);
    if (a->is_mapped && port == old_port && authority_str_equal(host, old_host)) return FK_OK;
    if (!authority_str_equal(host, a->key.host)) {
        FK_TRY(fk__mem_alloc(table->mem, host.len, FK_SITE("authority mapping"), &copy));
        memcpy(copy, host.ptr, host.len);
    }
    fk__mem_free(table->mem, a->mapped_host, a->mapped_host_len);
    a->mapped_host = copy;
    a->mapped_host_len = copy != NULL ? (uint16_t)host.len : 0;
    a->mapped_port = port;
    a->is_mapped = true;
    /* What is known of the old address says nothing about the new one. */
    a->failures = a->drops = 0;
    a->is_resting = false;
    if (a->state == FK_ASSOCIATION_UNRESOLVED) {
        a->attempt_at = FK_NEVER;
        fk__authority_arm(table, a, now);
    }
    return FK_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

fk_err fk__authority_table_init(fk_authority_table *table, fk_mem *mem,
                                const fk_authority_config *config, const fk_hash_key *key,
                                uint64_t seed)
{
    fk_authority_config own;
    FK_TRY(fk__authority_configure(config, &own));
    fk_time duration = own.quarantine_override != 0 ? own.quarantine_override : own.quarantine;
    fk_time keep = duration > FK_QUARANTINE_DEFAULT ? duration : FK_QUARANTINE_DEFAULT;
    *table = (fk_authority_table){ .mem = mem,
                                   .config = own,
                                   .hash_key = *key,
                                   .rng = { seed != 0 ? seed : 1 },
                                   .duration = duration,
                                   .uids_limit = { own.uids_max, keep } };
    fk__tombs_init(&table->tombs, mem, own.tombs_max);
    return FK_OK;
}

void fk__authority_table_fini(fk_authority_table *table, fk_envelopes *left)
{
    *left = (fk_envelopes){ NULL, NULL, 0 };
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        for (fk_authority *a = table->bucket[i], *next; a != NULL; a = next) {
            next = a->chain;
            fk__envelopes_move(left, &a->deferred);
            authority_destroy(table, a);
        }
    }
    FK_ASSERT(left->count == table->deferred_total);
    fk__mem_free(table->mem, table->bucket, authority_block_size(table->bucket_count));
    fk__tombs_fini(&table->tombs);
    *table = (fk_authority_table){ .mem = table->mem };
}
