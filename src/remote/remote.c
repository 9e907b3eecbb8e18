/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "remote/remote.h"

#include "fraktor/remote.h"

#include "core/path.h"
#include "core/registry.h"
#include "core/send.h"
#include "core/spawn.h"
#include "core/watch.h"

fk_str fk__remote_address(const fk_remote *remote, const fk_authority *authority,
                          char buf[FK_ADDRESS_MAX])
{
    fk_path path = { .rules = (uint8_t)remote->sys->paths.rules,
                     .scheme = FK_SCHEME_TCP,
                     .system = authority->key.system,
                     .host = authority->key.host,
                     .port = authority->key.port };
    return (fk_str){ buf, fk_path_format(&path, FK_FORM_ADDRESS, buf, FK_ADDRESS_MAX) };
}

/* ---- effects: without the lock ------------------------------------------------------------------ */

void fk__remote_act(fk_remote *remote, fk_local *local, fk_authority_effects *effects)
{
    if (effects->authority == NULL) return;
    char buf[FK_ADDRESS_MAX];
    fk_str name = fk__remote_address(remote, effects->authority, buf); /* an authority stays */
    if (effects->has_change) {
        const fk_authority_change *change = &effects->change;
        bool is_new = change->reason == FK_AUTHORITY_REASON_CREATED;
        fk__event(remote->sys, local,
                  &(fk_event){ .kind = FK_EVENT_AUTHORITY,
                               .text = name,
                               .from = is_new ? "" : fk__association_name(change->from),
                               .to = fk__association_name(change->to),
                               .reason = fk__authority_reason_name(change->reason) });
        /* A driver knows whom it watches. */
        bool is_out = change->to == FK_ASSOCIATION_QUARANTINE;
        if (is_out && remote->driver == NULL) fk__remote_lost(remote, local, effects->authority);
    }
    fk_envelope *envelope;
    while ((envelope = fk__envelopes_take(&effects->refused)) != NULL) {
        fk__invalid_association(local, name);
        fk__letter_discard(local, FK_REASON_QUARANTINED, FK_CONTAINER(envelope, fk_letter, link));
    }
}

/* ---- the keeper: /system/authorities -------------------------------------------------------------- */

static fk_err keeper_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_remote *remote = fk__remote_of(local->sys);
    fk_authority_effects effects;
    bool more = true;
    (void)state;
    if (msg->type != &fk__type_tick) return fk_unhandled(ctx, msg);
    fk_time now = fk_now(ctx);
    while (more) {
        fk__remote_lock(remote);
        more = fk__authority_tick(&remote->table, now, &effects);
        fk__remote_unlock(remote);
        if (more) fk__remote_act(remote, local, &effects);
    }
    fk__remote_lock(remote);
    fk_time next = fk__authority_next(&remote->table);
    fk__remote_unlock(remote);
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
    fk__remote_lock(remote);
    if (is_new) remote->keeper = ref;
    ref = remote->keeper;
    fk__remote_unlock(remote);
    if (!fk_ref_is_none(ref))
        fk__send(local, ref, FK_REF_NONE, (fk_out){ &fk__type_tick, "" }, NULL);
}

/* ---- references -------------------------------------------------------------------------------- */

fk_err fk__remote_authority(fk_remote *remote, const fk_path *path, fk_authority_effects *effects,
                            fk_authority **out)
{
    fk_authority_key key = { path->system, path->host, path->port };
    return fk__authority_get(&remote->table, &key, fk__system_now(remote->sys), effects, out);
}

static fk_err reference(fk_remote *remote, fk_local *local, const fk_path *path, bool is_held,
                        fk_ref *out)
{
    fk_authority_effects effects = { .authority = NULL };
    fk_authority *authority;
    fk_remote_proxy *proxy;
    size_t size = fk_path_format(path, FK_FORM_FULL, NULL, 0) + 1, len = size - 1;
    char *text = fk__cache_alloc(&local->cache, size, FK_SITE("path of a remote reference"));
    if (text == NULL) return local->cache.err;
    fk_path_format(path, FK_FORM_FULL, text, size);
    fk__remote_lock(remote);
    fk_err err = fk__remote_authority(remote, path, &effects, &authority);
    if (err == FK_OK && authority->state == FK_ASSOCIATION_QUARANTINE) err = FK_E_QUARANTINED;
    if (err == FK_OK) {
        err = fk__proxies_get(&remote->proxies, local, (fk_str){ text, len }, authority, is_held,
                              &proxy);
    }
    if (err == FK_OK) *out = proxy->ref;
    fk__remote_unlock(remote);
    fk__cache_free(&local->cache, text, size);
    fk__remote_act(remote, local, &effects);
    return err;
}

static size_t remote_path(void *ctx, fk_ref ref, char *buf, size_t size)
{
    fk_remote *remote = ctx;
    fk_text text = { buf, size > 0 ? size - 1 : 0, 0 };
    fk__remote_lock(remote);
    const fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, ref);
    if (proxy != NULL) fk__text_put(&text, proxy->proxy.path);
    fk__remote_unlock(remote);
    if (size > 0) buf[text.len < text.size ? text.len : text.size] = '\0';
    return text.len;
}

static fk_err remote_resolve(void *ctx, fk_local *local, const fk_path *path, fk_ref *out)
{
    return reference(ctx, local, path, true, out);
}

fk_err fk__remote_meet(fk_remote *remote, fk_local *local, const fk_path *path, fk_ref *out)
{
    return reference(remote, local, path, false, out);
}

/* ---- watching ----------------------------------------------------------------------------------------- */

/* Without a driver nobody can be told, nor tell us anything: what is watched stays so until its system is
 * quarantined. */
static bool remote_watch(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref ref, bool is_watched)
{
    fk_remote *remote = ctx;
    fk_remote_proxy *own = FK_CONTAINER(proxy, fk_remote_proxy, proxy);
    fk__remote_lock(remote);
    bool is_there = fk_ref_equal(own->ref, ref);
    if (is_there) fk__proxies_watched(&remote->proxies, own, is_watched);
    const fk_authority *authority = fk__word_ptr(&own->authority, FK_RELAXED);
    bool is_out = authority->state == FK_ASSOCIATION_QUARANTINE;
    fk__remote_unlock(remote);
    if (is_there && is_watched && is_out) fk__watch_remote_ended(local, ref, false, true);
    return is_there;
}

/* Those that are watched go by one after the other, each from the front to the back, so that the lock can
 * be left in between. Who is added meanwhile finds the quarantine by itself. */
void fk__remote_lost(fk_remote *remote, fk_local *local, const fk_authority *authority)
{
    enum { AT_ONCE = 32 };
    fk_ref lost[AT_ONCE];
    fk__remote_lock(remote);
    uint32_t left = remote->proxies.watched.count;
    while (left > 0) {
        uint32_t count = 0;
        for (; left > 0 && count < AT_ONCE; left--) {
            const fk_remote_proxy *proxy = fk__proxies_next_watched(&remote->proxies);
            if (proxy == NULL) break;
            bool is_its = fk__word_ptr(&proxy->authority, FK_RELAXED) == authority;
            if (is_its) lost[count++] = proxy->ref;
        }
        fk__remote_unlock(remote);
        for (uint32_t i = 0; i < count; i++) fk__watch_remote_ended(local, lost[i], false, true);
        fk__remote_lock(remote);
        if (remote->proxies.watched.count == 0) break;
    }
    fk__remote_unlock(remote);
}

/* ---- beginning and end ------------------------------------------------------------------------------------ */

static void remote_destroy(void *ctx)
{
    fk_remote *remote = ctx;
    fk_system *sys = remote->sys;
    fk_local *local = &sys->outside[0];
    fk_envelopes left = { NULL, NULL, 0 };
    fk_envelope *envelope;
    /* What callbacks about the last letters send is refused; paths can be shown to the end. */
    sys->remote = (fk_remote_ops){ .ctx = remote, .path = remote_path };
    fk__authority_table_fini(&remote->table, &left);
    while ((envelope = fk__envelopes_take(&left)) != NULL) {
        fk__letter_discard(local, FK_REASON_SYSTEM_STOPPING,
                           FK_CONTAINER(envelope, fk_letter, link));
    }
    sys->remote = (fk_remote_ops){ .ctx = NULL };
    fk__proxies_fini(&remote->proxies);
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
    if (err == FK_OK) err = fk__proxies_init(&remote->proxies, sys);
    if (err != FK_OK) {
        fk__mem_free(&sys->mem, remote, sizeof(*remote));
        return err;
    }
    sys->remote = (fk_remote_ops){ .ctx = remote,
                                   .resolve = remote_resolve,
                                   .send = fk__letter_send,
                                   .select = fk__letter_select,
                                   .path = remote_path,
                                   .watch = remote_watch,
                                   .destroy = remote_destroy };
    return FK_OK;
}

/* ---- public --------------------------------------------------------------------------------------------- */

static fk_err address_parse(fk_system *sys, fk_str text, fk_path *out)
{
    if (sys->remote.resolve == NULL) return FK_E_UNSUPPORTED;
    FK_TRY(fk_path_parse(&sys->paths, text, out, NULL));
    if (fk__registry_is_own(sys, out)) return FK_E_FOREIGN;
    return out->host.len != 0 ? FK_OK : FK_E_AUTHORITY;
}

fk_err fk_authority_state(fk_system *sys, fk_str address, fk_authority_info *out)
{
    fk_path path;
    FK_TRY(address_parse(sys, address, &path));
    fk_remote *remote = fk__remote_of(sys);
    fk_authority_key key = { path.system, path.host, path.port };
    fk_time now = fk__system_now(sys);
    fk__remote_lock(remote);
    const fk_authority *authority = fk__authority_find(&remote->table, &key);
    if (authority != NULL) {
        bool is_out = authority->state == FK_ASSOCIATION_QUARANTINE;
        fk_time left = authority->lift_at == FK_NEVER ? FK_NEVER : authority->lift_at - now;
        *out = (fk_authority_info){ .status = (fk_authority_status)authority->state,
                                    .deferred = authority->deferred.count,
                                    .quarantine_left = is_out ? left : 0 };
    }
    fk__remote_unlock(remote);
    return authority != NULL ? FK_OK : FK_E_NOT_FOUND;
}

/* A step that a person asks for. */
static fk_err step(fk_system *sys, const fk_path *path, fk_authority_event_kind kind, bool makes)
{
    fk_remote *remote = fk__remote_of(sys);
    fk_authority_effects created = { .authority = NULL }, effects = { .authority = NULL };
    fk_authority_key key = { path->system, path->host, path->port };
    fk_authority_event event = { .kind = kind };
    fk_authority_result result = FK_AUTHORITY_RESULT_STATE;
    fk_err err = FK_OK;
    fk__remote_lock(remote);
    fk_authority *authority = fk__authority_find(&remote->table, &key);
    if (authority == NULL && makes) err = fk__remote_authority(remote, path, &created, &authority);
    if (authority == NULL && err == FK_OK) err = FK_E_NOT_FOUND;
    if (err == FK_OK) {
        result =
            fk__authority_step(&remote->table, authority, &event, fk__system_now(sys), &effects);
    }
    fk__remote_unlock(remote);
    fk_local *local = fk__local_enter(sys);
    fk__remote_act(remote, local, &created);
    fk__remote_act(remote, local, &effects);
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
