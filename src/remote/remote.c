/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One lock for the table of authorities and the proxies. Nobody is called with it held: what a step
 * of an authority brings about is a value, acted on when the lock is free.
 */

#include "remote/remote.h"

#include "fraktor/remote.h"

#include "core/path.h"
#include "core/registry.h"
#include "core/send.h"
#include "core/spawn.h"
#include "remote/authority.h"

enum { PROXIES_MAX = 65536, PROXY_BUCKETS = 1024 };

/* A message on its way to another system. */
typedef struct fk_letter {
    fk_envelope link;
    fk_node *node;
    fk_ref to;
} fk_letter;

typedef struct fk_remote_proxy {
    fk_proxy proxy; /* first: the cell's state */
    struct fk_remote_proxy *next;
    fk_authority *authority;
    uint64_t hash;
    fk_ref ref;
    size_t size; /* of the block */
    char text[];
} fk_remote_proxy;

typedef struct fk_remote {
    fk_system *sys;
    fk_lock lock;
    fk_authority_table table;
    fk_ref keeper; /* the actor that sees to the time */
    uint32_t proxies;
    fk_remote_proxy *bucket[PROXY_BUCKETS];
} fk_remote;

static void remote_lock(fk_remote *remote)
{
    fk__mem_lock(&remote->sys->mem, &remote->lock);
}

static void remote_unlock(fk_remote *remote)
{
    fk__mem_unlock(&remote->sys->mem, &remote->lock);
}

/* ---- letters that do not go ------------------------------------------------------------------- */

/* "fraktor.tcp://bank@10.0.0.7:2552", as an address is written. */
#define ADDRESS_MAX 544

static fk_str address_of(const fk_remote *remote, const fk_authority *authority,
                         char buf[ADDRESS_MAX])
{
    fk_path path = { .rules = (uint8_t)remote->sys->paths.rules,
                     .scheme = FK_SCHEME_TCP,
                     .system = authority->key.system,
                     .host = authority->key.host,
                     .port = authority->key.port };
    return (fk_str){ buf, fk_path_format(&path, FK_FORM_ADDRESS, buf, ADDRESS_MAX) };
}

static void letter_free(fk_local *local, fk_letter *letter)
{
    fk__cache_free(&local->cache, letter, sizeof(*letter));
}

static void node_discard(fk_local *local, fk_reason reason, fk_ref to, fk_node *node)
{
    fk__dead_node(local, reason, to, node);
    fk__node_drop_contents(&local->cache, node);
    fk__node_free(&local->cache, node);
}

static void letter_discard(fk_local *local, fk_reason reason, fk_letter *letter)
{
    node_discard(local, reason, letter->to, letter->node);
    letter_free(local, letter);
}

/* ---- effects: without the lock ------------------------------------------------------------------ */

static void act(fk_remote *remote, fk_local *local, fk_authority_effects *effects)
{
    if (effects->authority == NULL) return;
    char buf[ADDRESS_MAX];
    fk_str name = address_of(remote, effects->authority, buf); /* an authority stays */
    if (effects->has_change) {
        const fk_authority_change *change = &effects->change;
        bool is_new = change->reason == FK_AUTHORITY_REASON_CREATED;
        fk__event(remote->sys, local,
                  &(fk_event){ .kind = FK_EVENT_AUTHORITY,
                               .text = name,
                               .from = is_new ? "" : fk__association_name(change->from),
                               .to = fk__association_name(change->to),
                               .reason = fk__authority_reason_name(change->reason) });
    }
    fk_envelope *envelope;
    while ((envelope = fk__envelopes_take(&effects->refused)) != NULL) {
        fk__invalid_association(local, name);
        letter_discard(local, FK_REASON_QUARANTINED, FK_CONTAINER(envelope, fk_letter, link));
    }
}

/* ---- the keeper: /system/authorities -------------------------------------------------------------- */

static fk_remote *remote_of(const fk_system *sys)
{
    return sys->remote.ctx;
}

static fk_err keeper_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_remote *remote = remote_of(local->sys);
    fk_authority_effects effects;
    bool more = true;
    (void)state;
    if (msg->type != &fk__type_tick) return fk_unhandled(ctx, msg);
    fk_time now = fk_now(ctx);
    while (more) {
        remote_lock(remote);
        more = fk__authority_tick(&remote->table, now, &effects);
        remote_unlock(remote);
        if (more) act(remote, local, &effects);
    }
    remote_lock(remote);
    fk_time next = fk__authority_next(&remote->table);
    remote_unlock(remote);
    if (next == FK_NEVER) return FK_OK;
    fk_err err = fk_timer_start(ctx, 1, FK_TIMER_ONCE, next > now ? next - now : 0,
                                (fk_out){ &fk__type_tick, "" });
    /* No reason to end: the next step of any authority brings another tick. */
    return err == FK_E_NOMEM || err == FK_E_LIMIT ? FK_OK : err;
}

/* There is a new deadline. */
static void keeper_tell(fk_remote *remote, fk_local *local)
{
    static const fk_props KEEPER = { .receive = keeper_receive };
    fk_system *sys = remote->sys;
    fk_ref ref;
    /* If there is one, the name is taken. */
    bool is_new =
        fk__spawn(local, sys->top.system, FK_STR("authorities"), NULL, &KEEPER, &ref) == FK_OK;
    remote_lock(remote);
    if (is_new) remote->keeper = ref;
    ref = remote->keeper;
    remote_unlock(remote);
    if (!fk_ref_is_none(ref))
        fk__send(local, ref, FK_REF_NONE, (fk_out){ &fk__type_tick, "" }, NULL);
}

/* ---- proxies: under the lock ------------------------------------------------------------------------ */

static fk_remote_proxy *proxy_find(fk_remote *remote, uint64_t hash, fk_str text)
{
    fk_remote_proxy *proxy = remote->bucket[hash % PROXY_BUCKETS];
    for (; proxy != NULL; proxy = proxy->next) {
        fk_str own = proxy->proxy.path;
        if (proxy->hash == hash && own.len == text.len &&
            memcmp(own.ptr, text.ptr, text.len) == 0) {
            break;
        }
    }
    return proxy;
}

static fk_err proxy_create(fk_remote *remote, fk_local *local, uint64_t hash, fk_str text,
                           fk_remote_proxy **out)
{
    fk_mem *mem = &remote->sys->mem;
    size_t size = sizeof(fk_remote_proxy) + text.len;
    void *memory;
    if (remote->proxies >= PROXIES_MAX) return FK_E_LIMIT;
    FK_TRY(fk__mem_alloc(mem, size, FK_SITE("remote reference"), &memory));
    fk_remote_proxy *proxy = memory;
    *proxy = (fk_remote_proxy){ .hash = hash, .size = size };
    memcpy(proxy->text, text.ptr, text.len);
    proxy->proxy.path = (fk_str){ proxy->text, text.len };
    fk_err err = fk__proxy_open(local, &proxy->proxy, &proxy->ref);
    if (err != FK_OK) {
        fk__mem_free(mem, proxy, size);
        return err;
    }
    fk_remote_proxy **bucket = &remote->bucket[hash % PROXY_BUCKETS];
    proxy->next = *bucket;
    *bucket = proxy;
    remote->proxies++;
    *out = proxy;
    return FK_OK;
}

static fk_err authority_of(fk_remote *remote, const fk_path *path, fk_authority_effects *effects,
                           fk_authority **out)
{
    fk_authority_key key = { path->system, path->host, path->port };
    return fk__authority_get(&remote->table, &key, fk__system_now(remote->sys), effects, out);
}

static fk_err remote_resolve(void *ctx, fk_local *local, const fk_path *path, fk_ref *out)
{
    fk_remote *remote = ctx;
    fk_authority_effects effects = { .authority = NULL };
    fk_authority *authority;
    fk_remote_proxy *proxy = NULL;
    size_t size = fk_path_format(path, FK_FORM_FULL, NULL, 0) + 1, len = size - 1;
    char *text = fk__cache_alloc(&local->cache, size, FK_SITE("path of a remote reference"));
    if (text == NULL) return local->cache.err;
    fk_path_format(path, FK_FORM_FULL, text, size);
    uint64_t hash = fk__hash_bytes(&remote->sys->key, text, len);
    remote_lock(remote);
    fk_err err = authority_of(remote, path, &effects, &authority);
    if (err == FK_OK && authority->state == FK_ASSOCIATION_QUARANTINE) err = FK_E_QUARANTINED;
    if (err == FK_OK) proxy = proxy_find(remote, hash, (fk_str){ text, len });
    if (err == FK_OK && proxy == NULL) {
        err = proxy_create(remote, local, hash, (fk_str){ text, len }, &proxy);
        if (err == FK_OK) proxy->authority = authority;
    }
    if (err == FK_OK) *out = proxy->ref;
    remote_unlock(remote);
    fk__cache_free(&local->cache, text, size);
    act(remote, local, &effects);
    return err;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

static fk_reason reason_for(fk_err err)
{
    return err == FK_E_QUARANTINED ? FK_REASON_QUARANTINED : FK_REASON_FULL;
}

static fk_err remote_send(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref to, fk_node *node)
{
    fk_remote *remote = ctx;
    fk_remote_proxy *own = FK_CONTAINER(proxy, fk_remote_proxy, proxy);
    bool is_deferred;
    fk_letter *letter =
        fk__cache_alloc(&local->cache, sizeof(*letter), FK_SITE("letter to another system"));
    if (letter == NULL) {
        fk_err err = local->cache.err;
        node_discard(local, FK_REASON_NO_MEMORY, to, node);
        return err;
    }
    *letter = (fk_letter){ .node = node, .to = to };
    remote_lock(remote);
    fk_err err =
        fk__authority_send(&remote->table, own->authority, &letter->link, false, &is_deferred);
    remote_unlock(remote);
    if (err == FK_OK) {
        FK_ASSERT(is_deferred); /* without a transport nobody is ever reached */
        return FK_OK;
    }
    if (err == FK_E_QUARANTINED) {
        char buf[ADDRESS_MAX];
        fk__invalid_association(local, address_of(remote, own->authority, buf));
    }
    letter_discard(local, reason_for(err), letter);
    return err;
}

/* ---- beginning and end ------------------------------------------------------------------------------------ */

static void remote_destroy(void *ctx)
{
    fk_remote *remote = ctx;
    fk_system *sys = remote->sys;
    fk_local *local = &sys->outside[0];
    fk_envelopes left = { NULL, NULL, 0 };
    fk_envelope *envelope;
    fk__authority_table_fini(&remote->table, &left);
    while ((envelope = fk__envelopes_take(&left)) != NULL) {
        letter_discard(local, FK_REASON_SYSTEM_STOPPING, FK_CONTAINER(envelope, fk_letter, link));
    }
    for (uint32_t i = 0; i < PROXY_BUCKETS; i++) {
        while (remote->bucket[i] != NULL) {
            fk_remote_proxy *proxy = remote->bucket[i];
            remote->bucket[i] = proxy->next;
            fk__mem_free(&sys->mem, proxy, proxy->size);
        }
    }
    fk__mem_free(&sys->mem, remote, sizeof(*remote));
}

fk_err fk__remote_attach(fk_system *sys, const fk_system_config *config)
{
    const fk_remoting_config *asked = &config->remoting;
    fk_authority_config authorities = {
        .rules = sys->paths.rules,
        .deferred_max = asked->deferred_max,
        .deferred_total_max = asked->deferred_total_max,
        .quarantine = asked->quarantine,
        .quarantine_override = asked->quarantine_override,
        .give_up_after = asked->give_up_after,
    };
    /* Pekko without an address is Pekko without remoting. */
    if (sys->paths.rules == FK_RULES_PEKKO && asked->host == NULL) return FK_OK;
    void *memory;
    uint64_t seed;
    sys->mem.port.random(sys->mem.port.ctx, &seed, sizeof(seed));
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_remote), FK_SITE("remoting"), &memory));
    fk_remote *remote = memory;
    memset(remote, 0, sizeof(*remote));
    remote->sys = sys;
    fk_err err = fk__authority_table_init(&remote->table, &sys->mem, &authorities, &sys->key, seed);
    if (err != FK_OK) {
        fk__mem_free(&sys->mem, remote, sizeof(*remote));
        return err;
    }
    sys->remote = (fk_remote_ops){
        .ctx = remote, .resolve = remote_resolve, .send = remote_send, .destroy = remote_destroy
    };
    return FK_OK;
}

/* ---- public --------------------------------------------------------------------------------------------- */

static fk_err address_parse(fk_system *sys, fk_str text, fk_path *out)
{
    if (sys->remote.ctx == NULL) return FK_E_UNSUPPORTED;
    FK_TRY(fk_path_parse(&sys->paths, text, out, NULL));
    if (fk__registry_is_own(sys, out)) return FK_E_FOREIGN;
    return out->host.len != 0 ? FK_OK : FK_E_AUTHORITY;
}

fk_err fk_authority_get(fk_system *sys, fk_str address, fk_authority_info *out)
{
    fk_path path;
    FK_TRY(address_parse(sys, address, &path));
    fk_remote *remote = remote_of(sys);
    fk_authority_key key = { path.system, path.host, path.port };
    fk_time now = fk__system_now(sys);
    remote_lock(remote);
    const fk_authority *authority = fk__authority_find(&remote->table, &key);
    if (authority != NULL) {
        bool is_out = authority->state == FK_ASSOCIATION_QUARANTINE;
        fk_time left = authority->lift_at == FK_NEVER ? FK_NEVER : authority->lift_at - now;
        *out = (fk_authority_info){ .status = (fk_authority_status)authority->state,
                                    .deferred = authority->deferred.count,
                                    .quarantine_left = is_out ? left : 0 };
    }
    remote_unlock(remote);
    return authority != NULL ? FK_OK : FK_E_NOT_FOUND;
}

/* A step that a person asks for. */
static fk_err step(fk_system *sys, const fk_path *path, fk_authority_event_kind kind, bool makes)
{
    fk_remote *remote = remote_of(sys);
    fk_authority_effects created = { .authority = NULL }, effects = { .authority = NULL };
    fk_authority_key key = { path->system, path->host, path->port };
    fk_authority_event event = { .kind = kind };
    fk_authority_result result = FK_AUTHORITY_RESULT_STATE;
    fk_err err = FK_OK;
    remote_lock(remote);
    fk_authority *authority = fk__authority_find(&remote->table, &key);
    if (authority == NULL && makes) err = authority_of(remote, path, &created, &authority);
    if (authority == NULL && err == FK_OK) err = FK_E_NOT_FOUND;
    if (err == FK_OK) {
        result =
            fk__authority_step(&remote->table, authority, &event, fk__system_now(sys), &effects);
    }
    remote_unlock(remote);
    fk_local *local = fk__local_enter(sys);
    act(remote, local, &created);
    act(remote, local, &effects);
    if (err == FK_OK) keeper_tell(remote, local);
    fk__local_leave(local);
    if (err != FK_OK) return err;
    return result == FK_AUTHORITY_RESULT_DONE ? FK_OK : FK_E_STATE;
}

fk_err fk_authority_quarantine(fk_system *sys, fk_str address)
{
    fk_path path;
    FK_TRY(address_parse(sys, address, &path));
    return step(sys, &path, FK_AUTHORITY_EVENT_QUARANTINE, true);
}

fk_err fk_authority_override(fk_system *sys, fk_str address)
{
    fk_path path;
    FK_TRY(address_parse(sys, address, &path));
    return step(sys, &path, FK_AUTHORITY_EVENT_OVERRIDE, false);
}
