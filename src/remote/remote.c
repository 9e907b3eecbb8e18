/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "remote/remote.h"

#include "base/safeguard.h"
#include "core/path.h"
#include "core/registry.h"
#include "core/send.h"
#include "core/spawn.h"
#include "core/watch.h"
#include "remote/config.h"
#include "remote/line.h"

fk_str fk__remote_address(const fk_remote *remote, const fk_authority *authority,
                          char buf[FK_ADDRESS_MAX])
{
    fk_rules rules = remote->sys->paths.rules; /* Pekko names what it speaks by its plain scheme */
    fk_path path = { .rules = (uint8_t)rules,
                     .scheme = rules == FK_RULES_PEKKO ? FK_SCHEME_LOCAL : FK_SCHEME_TCP,
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
    fk_str name = fk__remote_address(remote, effects->authority, buf);
    if (effects->has_change) {
        const fk_authority_change *change = &effects->change;
        bool is_new = change->reason == FK_AUTHORITY_REASON_CREATED;
        bool is_forced = effects->uid_forgiven != 0;
        fk__event(remote->sys, local,
                  &(fk_event){ .kind = FK_EVENT_AUTHORITY,
                               .text = name,
                               .from = is_new ? "" : fk__association_name(change->from),
                               .to = fk__association_name(change->to),
                               .count = effects->change_number,
                               .level = is_forced ? FK_LEVEL_WARN : FK_LEVEL_INFO,
                               .reason = is_forced ? "quarantine overridden by force"
                                                   : fk__authority_reason_name(change->reason) });
        /* A driver knows whom it watches. */
        bool is_out = change->to == FK_ASSOCIATION_QUARANTINE;
        if (is_out && remote->driver == NULL) fk__remote_lost(remote, local, effects->authority);
    }
    fk_envelope *envelope;
    while ((envelope = fk__envelopes_take(&effects->refused)) != NULL) {
        fk__invalid_association(local, name);
        fk__letter_discard(local, FK_REASON_QUARANTINED, FK_CONTAINER(envelope, fk_letter, link));
    }
    while ((envelope = fk__envelopes_take(&effects->lapsed)) != NULL) {
        fk__letter_discard(local, FK_REASON_NO_RECEIVER, FK_CONTAINER(envelope, fk_letter, link));
    }
}

void fk__remote_release(fk_remote *remote, fk_authority *authority)
{
    if (authority == NULL) return;
    fk__remote_lock(remote);
    FK_ASSERT(authority->holds > 0);
    authority->holds--;
    bool is_crowded = remote->driver != NULL && fk__driver_is_crowded(remote->driver);
    fk__remote_unlock(remote);
    if (is_crowded) fk__driver_poke(remote->driver);
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

void fk__remote_replan(fk_remote *remote, fk_local *local)
{
    static const fk_props KEEPER = { .receive = keeper_receive };
    fk_system *sys = remote->sys;
    fk_ref ref;
    if (remote->driver != NULL) {
        fk__driver_poke(remote->driver);
        return;
    }
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

/* What is known of whoever is referred to. */
typedef enum fk_repute {
    REPUTE_MET,   /* another system has named it */
    REPUTE_NAMED, /* a program here has, to send it something */
    REPUTE_HELD   /* and has asked for the reference, which stays */
} fk_repute;

/* One actor has one reference, however it is written: where the scheme does not count, as addresses are
 * (fk__remote_address). */
static fk_err reference(fk_remote *remote, fk_local *local, const fk_path *given, fk_repute repute,
                        fk_ref *out)
{
    bool is_held = repute == REPUTE_HELD;
    fk_path own = *given;
    const fk_path *path = &own;
    if (own.rules == FK_RULES_FRAKTOR && FK_SAFEGUARD(SCHEME_ONE)) own.scheme = FK_SCHEME_TCP;
    fk_authority_effects effects = { .authority = NULL };
    fk_authority *authority;
    fk_remote_proxy *proxy;
    size_t size = fk_path_format(path, FK_FORM_FULL, NULL, 0) + 1, len = size - 1;
    char *text = fk__cache_alloc(&local->cache, size, FK_SITE("path of a remote reference"));
    if (text == NULL) return local->cache.err;
    fk_path_format(path, FK_FORM_FULL, text, size);
    fk__remote_lock(remote);
    fk_err err = fk__remote_authority(remote, path, &effects, &authority);
    bool is_full = err == FK_E_LIMIT;
    bool is_met = repute == REPUTE_MET;
    if (!is_met && err == FK_OK) fk__authority_vouch(&remote->table, authority);
    if (!is_met && err == FK_OK) authority->is_named = true;
    if (is_met && effects.has_change) authority->is_hearsay = true;
    /* Who has sent something is referred to all the same, so that what is sent to it is refused like
     * all else (R3.5), and not lost as if it were to nobody. */
    bool is_out = err == FK_OK && authority->state == FK_ASSOCIATION_QUARANTINE;
    if (!is_met && is_out) err = FK_E_QUARANTINED;
    /* Before anybody can send: fk__letter_send() takes no lock to find it. */
    fk_line *line;
    if (err == FK_OK && remote->driver != NULL) err = fk__line_get(remote, authority, &line);
    if (err == FK_OK) {
        err = fk__proxies_get(&remote->proxies, local, (fk_str){ text, len }, authority, is_held,
                              &proxy);
    }
    if (err == FK_OK) *out = proxy->ref;
    fk_authority *made = effects.has_change ? effects.authority : NULL;
    if (made != NULL) made->holds++;
    fk__remote_unlock(remote);
    fk__cache_free(&local->cache, text, size);
    if (is_full && remote->driver != NULL) fk__driver_full(remote->driver);
    fk__remote_act(remote, local, &effects);
    fk__remote_release(remote, made);
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

static fk_err remote_resolve(void *ctx, fk_local *local, const fk_path *path, bool is_held,
                             fk_ref *out)
{
    return reference(ctx, local, path, is_held ? REPUTE_HELD : REPUTE_NAMED, out);
}

fk_err fk__remote_meet(fk_remote *remote, fk_local *local, const fk_path *path, fk_ref *out)
{
    return reference(remote, local, path, REPUTE_MET, out);
}

/* ---- watching ----------------------------------------------------------------------------------------- */

fk_err fk__remote_pin(fk_remote *remote, fk_ref ref, const fk_authority *authority)
{
    fk_err err = FK_E_FORBIDDEN;
    fk__remote_lock(remote);
    fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, ref);
    bool is_its = proxy != NULL && proxy->authority == authority;
    if (is_its) err = fk__proxies_pin(&remote->proxies, proxy);
    fk__remote_unlock(remote);
    return err;
}

void fk__remote_unpin(fk_remote *remote, fk_ref ref)
{
    fk__remote_lock(remote);
    fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, ref);
    if (proxy != NULL) fk__proxies_unpin(&remote->proxies, proxy);
    fk__remote_unlock(remote);
}

/* Without a driver nobody can be told, nor tell us anything: what is watched stays so until its system is
 * quarantined. */
static bool remote_watch(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref ref, bool is_watched)
{
    fk_remote *remote = ctx;
    fk_remote_proxy *own = FK_CONTAINER(proxy, fk_remote_proxy, proxy);
    fk__remote_lock(remote);
    bool is_there = fk_ref_equal(own->ref, ref);
    /* Too many are watched: so this one cannot be, which its watcher is told at once. */
    if (is_there) is_there = fk__proxies_watched(&remote->proxies, own, is_watched);
    bool is_out = is_there && own->authority->state == FK_ASSOCIATION_QUARANTINE;
    fk_line *line = is_there && remote->driver != NULL ? own->authority->user : NULL;
    if (line != NULL) fk__line_note(remote, line, own);
    fk__remote_unlock(remote);
    if (line != NULL) fk__line_call(remote, line);
    if (is_there && is_watched && is_out) fk__watch_remote_ended(local, ref, false, true);
    return is_there;
}

/* Under the lock: whoever watches from the moment on in which the quarantine is lifted is not told. */
void fk__remote_lost(fk_remote *remote, fk_local *local, const fk_authority *authority)
{
    fk__remote_lock(remote);
    bool is_out = authority->state == FK_ASSOCIATION_QUARANTINE;
    for (uint32_t left = is_out ? remote->proxies.watched.count : 0; left > 0; left--) {
        const fk_remote_proxy *proxy = fk__proxies_next_watched(&remote->proxies);
        if (proxy->authority != authority) continue;
        fk__watch_remote_ended(local, proxy->ref, false, true);
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
    if (remote->driver != NULL) fk__driver_destroy(remote);
    remote->proxies.is_over = true;
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
        .authorities_max = asked->systems_max,
        .tombs_max = asked->quarantined_max,
        .deferred_max = asked->deferred_max,
        .deferred_total_max = asked->deferred_total_max,
        .quarantine = asked->quarantine,
        .quarantine_override = asked->quarantine_override,
        .give_up_after = asked->give_up_after,
        .backoff_min = asked->reconnect_min,
        .backoff_max = asked->reconnect_max,
    };
    fk_remoting_config complete;
    /* Pekko without an address is Pekko without remoting. */
    if (sys->paths.rules == FK_RULES_PEKKO && asked->host == NULL) return FK_OK;
    void *memory;
    uint64_t seed;
    sys->mem.port.random(sys->mem.port.ctx, &seed, sizeof(seed));
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_remote), FK_SITE("remoting"), &memory));
    fk_remote *remote = memory;
    memset(remote, 0, sizeof(*remote));
    remote->sys = sys;
    remote->uid = seed != 0 ? seed : 1; /* of 64 bits: no two will ever meet */
    sys->mem.port.random(sys->mem.port.ctx, &seed, sizeof(seed));
    fk_err err = fk__authority_table_init(&remote->table, &sys->mem, &authorities, &sys->key, seed);
    if (err == FK_OK)
        err = fk__proxies_init(&remote->proxies, sys, asked->references_max, asked->watchers_max);
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
    if (!asked->enabled) return FK_OK;
    err = fk__remoting_configure(asked, &complete);
    return err == FK_OK ? fk__driver_create(remote, &complete) : err;
}
