/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a program may know of authorities and ask of them: fraktor/remote.h. */

#include "fraktor/remote.h"

#include "core/registry.h"
#include "remote/line.h"
#include "remote/remote.h"

static fk_err address_parse(fk_system *sys, fk_str text, fk_path *out)
{
    if (sys->remote.resolve == NULL) return FK_E_UNSUPPORTED;
    FK_TRY(fk_path_parse(&sys->paths, text, out, NULL));
    if (fk__registry_is_own(sys, out)) return FK_E_FOREIGN;
    return out->host.len != 0 ? FK_OK : FK_E_AUTHORITY;
}

static fk_authority_key address_key(const fk_path *path)
{
    return (fk_authority_key){ path->system, path->host, path->port };
}

uint64_t fk_system_uid(fk_system *sys)
{
    return sys->remote.ctx != NULL ? fk__remote_of(sys)->uid : 0;
}

/* ---- looking: with the lock ----------------------------------------------------------------------- */

static fk_time info_until(fk_time at, fk_time now)
{
    if (at == FK_NEVER) return FK_NEVER;
    return at > now ? at - now : 0;
}

static void info_fill(const fk_authority *a, fk_time now, fk_authority_info *out)
{
    fk_str host;
    *out = (fk_authority_info){
        .status = (fk_authority_status)a->state,
        .deferred = a->deferred.count,
        .quarantine_left = a->state == FK_ASSOCIATION_QUARANTINE ? info_until(a->lift_at, now) : 0,
        .status_age = now > a->state_at ? now - a->state_at : 0,
        .uid = a->uid,
        .incarnation = a->incarnation,
        .is_open = a->is_open,
        .failures = a->failures,
        .reconnect_in = a->is_attempting ? 0 : info_until(a->attempt_at, now),
    };
    fk__authority_target(a, &host, &out->port);
    FK_ASSERT(host.len < sizeof(out->host));
    memcpy(out->host, host.ptr, host.len);
}

fk_err fk_authority_state(fk_system *sys, fk_str address, fk_authority_info *out)
{
    fk_path path;
    if (out == NULL) return FK_E_INVALID;
    FK_TRY(address_parse(sys, address, &path));
    fk_remote *remote = fk__remote_of(sys);
    fk_authority_key key = address_key(&path);
    fk_time now = fk__system_now(sys);
    fk__remote_lock(remote);
    const fk_authority *authority = fk__authority_find(&remote->table, &key);
    if (authority != NULL) info_fill(authority, now, out);
    fk__remote_unlock(remote);
    return authority != NULL ? FK_OK : FK_E_NOT_FOUND;
}

/* One authority of a list that is complete before the first of them is shown to anybody. */
typedef struct authority_entry {
    fk_authority_info info;
    size_t len;
    char address[FK_ADDRESS_MAX];
} authority_entry;

fk_err fk_authority_each(fk_system *sys, fk_authority_fn fn, void *user)
{
    if (fn == NULL) return FK_E_INVALID;
    if (sys->remote.ctx == NULL) return FK_E_UNSUPPORTED;
    fk_remote *remote = fk__remote_of(sys);
    fk_time now = fk__system_now(sys);
    const fk_authority *a = NULL;
    void *memory = NULL;
    fk_err err = FK_OK;
    uint32_t count = 0;
    fk__remote_lock(remote);
    size_t size = remote->table.count * sizeof(authority_entry);
    if (size != 0) err = fk__mem_alloc(&sys->mem, size, FK_SITE("list of authorities"), &memory);
    authority_entry *entry = memory;
    while (err == FK_OK && (a = fk__authority_after(&remote->table, a)) != NULL) {
        FK_ASSERT(entry != NULL && count < remote->table.count);
        info_fill(a, now, &entry[count].info);
        entry[count].len = fk__remote_address(remote, a, entry[count].address).len;
        count++;
    }
    fk__remote_unlock(remote);
    for (uint32_t i = 0; i < count; i++) {
        fn(user, (fk_str){ entry[i].address, entry[i].len }, &entry[i].info);
    }
    fk__mem_free(&sys->mem, memory, size);
    return err;
}

fk_err fk_remoting_stats_get(fk_system *sys, fk_remoting_stats *out)
{
    if (out == NULL) return FK_E_INVALID;
    if (sys->remote.ctx == NULL) return FK_E_UNSUPPORTED;
    fk_remote *remote = fk__remote_of(sys);
    const fk_authority_table *table = &remote->table;
    fk__remote_lock(remote);
    *out = (fk_remoting_stats){ .systems = table->count,
                                .deferred = table->deferred_total,
                                .quarantined = table->tombs.count,
                                .quarantined_over = table->tombs.forgotten,
                                .references = remote->proxies.met + remote->proxies.kept,
                                .references_held = remote->proxies.held };
    fk__remote_unlock(remote);
    return FK_OK;
}

/* ---- asking for a change -------------------------------------------------------------------------- */

/* A step that a person asks for. */
static fk_err authority_ask(fk_system *sys, fk_str address, fk_authority_event event, bool makes)
{
    fk_path path;
    FK_TRY(address_parse(sys, address, &path));
    fk_remote *remote = fk__remote_of(sys);
    fk_authority_effects created = { .authority = NULL }, effects = { .authority = NULL };
    fk_authority_key key = address_key(&path);
    fk_authority_result result = FK_AUTHORITY_RESULT_STATE;
    fk_err err = FK_OK;
    fk__remote_lock(remote);
    fk_authority *authority = fk__authority_find(&remote->table, &key);
    if (authority == NULL && makes) err = fk__remote_authority(remote, &path, &created, &authority);
    if (authority == NULL && err == FK_OK) err = FK_E_NOT_FOUND;
    if (err == FK_OK) {
        fk__authority_vouch(&remote->table, authority);
        /* By Pekko's rules it is always a uid that is quarantined: that of who is there. */
        if (sys->paths.rules == FK_RULES_PEKKO) event.uid = authority->uid;
        result =
            fk__authority_step(&remote->table, authority, &event, fk__system_now(sys), &effects);
    }
    fk_line *line = authority != NULL ? authority->user : NULL;
    if (line != NULL) fk__line_follow(line);
    if (authority != NULL) authority->holds++;
    fk__remote_unlock(remote);
    if (err == FK_E_LIMIT && remote->driver != NULL) fk__driver_full(remote->driver);
    fk_local *local = fk__local_enter(sys);
    fk__remote_act(remote, local, &created);
    fk__remote_act(remote, local, &effects);
    if (line != NULL) fk__line_call(remote, line);
    fk__remote_release(remote, authority);
    if (err == FK_OK) fk__remote_replan(remote, local);
    fk__local_leave(local);
    if (err != FK_OK) return err;
    return result == FK_AUTHORITY_RESULT_DONE ? FK_OK : FK_E_STATE;
}

fk_err fk_authority_quarantine(fk_system *sys, fk_str address)
{
    return authority_ask(sys, address,
                         (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_QUARANTINE }, true);
}

fk_err fk_authority_override(fk_system *sys, fk_str address)
{
    return authority_ask(sys, address, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_OVERRIDE },
                         false);
}

fk_err fk_authority_override_force(fk_system *sys, fk_str address)
{
    return authority_ask(sys, address,
                         (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_OVERRIDE, .force = true },
                         false);
}

fk_err fk_authority_set_mapping(fk_system *sys, fk_str address, fk_str host, uint16_t port)
{
    fk_path path;
    FK_TRY(address_parse(sys, address, &path));
    fk_remote *remote = fk__remote_of(sys);
    /* Nobody would connect, and what waits would be given up after a while. */
    if (remote->driver == NULL) return FK_E_UNSUPPORTED;
    if (host.len != 0) {
        fk_err bad = fk_path_check_host(&sys->paths, host, NULL);
        if (bad != FK_OK) return FK_E_INVALID;
    }
    fk_authority_effects created = { .authority = NULL };
    fk_authority *authority;
    fk__remote_lock(remote);
    fk_err err = fk__remote_authority(remote, &path, &created, &authority);
    bool is_full = err == FK_E_LIMIT;
    if (err == FK_OK) {
        fk__authority_vouch(&remote->table, authority);
        err = fk__authority_keep(&remote->table, authority);
        fk_time now = fk__system_now(sys);
        if (err == FK_OK) err = fk__authority_map(&remote->table, authority, host, port, now);
        if (err == FK_OK) fk__authority_hurry(&remote->table, authority, now);
        authority->holds++;
        created.authority = authority;
    }
    fk__remote_unlock(remote);
    if (is_full) fk__driver_full(remote->driver);
    fk_local *local = fk__local_enter(sys);
    fk__remote_act(remote, local, &created);
    fk__remote_release(remote, created.authority);
    if (err == FK_OK) fk__remote_replan(remote, local);
    fk__local_leave(local);
    return err;
}
