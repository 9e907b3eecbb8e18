/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Watches across systems: connects remote/watcher.h with the actors and the outbox.
 *
 * Ours: however many actors here watch a proxy, its cell is one watcher (core/watch.h), and towards
 * the peer it is our /system/remote-watcher that watches. Theirs: a peer's watcher is a proxy; for
 * each actor that is watched there is a subject, which the agent watches until it ends.
 *
 * Numbers of actors are their refs.
 */

#include "base/safeguard.h"
#include "core/path.h"
#include "core/watch.h"
#include "remote/office.h"

enum { BONDS_FIRST = 64, RETRY_NS = 100000000 };

static uint64_t actor_number(fk_ref ref)
{
    return fk__sender_pack(ref.slot, ref.generation);
}

static fk_ref actor_ref(const fk_driver *driver, uint64_t number)
{
    return (fk_ref){ (uint32_t)number, (uint32_t)(number >> 32), driver->remote->sys->id };
}

/* A watch by the path alone is another bond than one with the uid, though it may be of the same actor:
 * each is ended by itself. What lives has an odd generation, so its lowest bit is free. */
#define BOND_HAS_UID ((uint64_t)1 << 32)

static uint64_t bond_number(fk_ref watcher, fk_str watchee)
{
    size_t at = watchee.len;
    while (at > 0 && watchee.ptr[at - 1] != '#' && watchee.ptr[at - 1] != '/') at--;
    bool has_uid = at > 0 && watchee.ptr[at - 1] == '#';
    return has_uid || !FK_SAFEGUARD(BOND_UID) ? actor_number(watcher)
                                              : actor_number(watcher) & ~BOND_HAS_UID;
}

static fk_line *line_of(fk_watcher_node *node)
{
    return FK_CONTAINER(node, fk_line, watching);
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static fk_err bonds_memory(fk_driver *driver, uint32_t capacity, fk_bond **bond, uint32_t **bucket)
{
    fk_mem *mem = &driver->remote->sys->mem;
    void *records, *buckets;
    FK_TRY(fk__mem_alloc(mem, capacity * sizeof(fk_bond), FK_SITE("remote watches"), &records));
    fk_err err = fk__mem_alloc(mem, capacity * sizeof(uint32_t), FK_SITE("table of remote watches"),
                               &buckets);
    if (err != FK_OK) {
        fk__mem_free(mem, records, capacity * sizeof(fk_bond));
        return err;
    }
    *bond = records;
    *bucket = buckets;
    return FK_OK;
}

static void bond_memory_free(fk_driver *driver, const fk_bonds *bonds)
{
    fk_mem *mem = &driver->remote->sys->mem;
    fk__mem_free(mem, bonds->bond, bonds->capacity * sizeof(fk_bond));
    fk__mem_free(mem, bonds->bucket, bonds->bucket_count * sizeof(uint32_t));
}

static bool bonds_grow(fk_driver *driver)
{
    fk_bonds old = driver->watcher.bonds;
    fk_bond *bond;
    uint32_t *bucket;
    uint32_t capacity = old.capacity * 2;
    if (bonds_memory(driver, capacity, &bond, &bucket) != FK_OK) return false;
    fk__bonds_move(&driver->watcher.bonds, bond, capacity, bucket, capacity);
    bond_memory_free(driver, &old);
    return true;
}

fk_err fk__bonds_init_all(fk_driver *driver)
{
    fk_bond *bond;
    uint32_t *bucket;
    uint64_t key;
    const fk_port *port = &driver->remote->sys->mem.port;
    FK_TRY(bonds_memory(driver, BONDS_FIRST, &bond, &bucket));
    port->random(port->ctx, &key, sizeof(key));
    fk__bonds_init(&driver->watcher.bonds, bond, BONDS_FIRST, bucket, BONDS_FIRST, key);
    return FK_OK;
}

void fk__bonds_fini_all(fk_driver *driver)
{
    uint32_t cursor = 0;
    fk_subject *subject;
    while ((subject = fk__map_next(&driver->subjects, &cursor)) != NULL) {
        fk__mem_free(&driver->remote->sys->mem, subject, sizeof(*subject) + subject->text_len);
    }
    fk__map_fini(&driver->local->cache, &driver->subjects);
    bond_memory_free(driver, &driver->watcher.bonds);
}

/* What the watcher keeps of a node; made when there is something to keep. */
static fk_watcher_node *node_of(fk_driver *driver, fk_line *line)
{
    if (line->samples != NULL) return &line->watching;
    void *memory;
    size_t size = driver->watcher.config.detector.samples_max * sizeof(fk_time);
    fk_err err = fk__mem_alloc(&driver->remote->sys->mem, size,
                               FK_SITE("failure detector of another system"), &memory);
    if (err != FK_OK) return NULL;
    line->samples = memory;
    fk__watcher_node_init(&driver->watcher, &line->watching, line->samples);
    return &line->watching;
}

/* ---- system messages of ours -------------------------------------------------------------------------- */

void fk__parcels_free(fk_driver *driver, fk_envelopes *parcels)
{
    fk_envelope *envelope;
    while ((envelope = fk__envelopes_take(parcels)) != NULL) {
        fk_sysparcel *parcel = FK_CONTAINER(fk__parcel_of(envelope), fk_sysparcel, parcel);
        fk__mem_free(&driver->remote->sys->mem, parcel,
                     sizeof(*parcel) + parcel->recipient_len + parcel->message_len);
    }
}

/* Under the lock, while the system is quarantined: who watches there from the moment on in which that
 * is lifted is not told of an end before it. */
static void lost_tell(fk_driver *driver, fk_line *line)
{
    uint32_t cursor = 0;
    uint64_t watchee;
    if (line->authority->state != FK_ASSOCIATION_QUARANTINE || line->samples == NULL) return;
    while ((watchee = fk__bonds_tell(&driver->watcher.bonds, &line->watching.bonds,
                                     FK_BOND_END_LOST, &cursor)) != 0) {
        fk__watch_remote_ended(driver->local, actor_ref(driver, watchee), true, true);
    }
}

static void quarantine(fk_driver *driver, fk_line *line, uint64_t uid, fk_authority_reason why)
{
    fk_remote *remote = driver->remote;
    fk_authority_effects effects = { .authority = NULL };
    fk_authority_event event = { .kind = FK_AUTHORITY_EVENT_QUARANTINE, .uid = uid, .why = why };
    fk__remote_lock(remote);
    (void)!fk__authority_step(&remote->table, line->authority, &event, driver->now, &effects);
    fk__line_follow(line);
    lost_tell(driver, line);
    fk__remote_unlock(remote);
    fk__driver_act(driver, &effects);
}

void fk__bonds_outbox(fk_driver *driver, fk_line *line, fk_outbox_effects *effects)
{
    char buf[FK_ADDRESS_MAX];
    fk__parcels_free(driver, &effects->delivered);
    for (uint32_t i = 0; i < effects->lost.count; i++) {
        fk__event(driver->remote->sys, driver->local,
                  &(fk_event){ .kind = FK_EVENT_REMOTE,
                               .text = fk__remote_address(driver->remote, line->authority, buf),
                               .reason = "a system message was not delivered" });
    }
    fk__parcels_free(driver, &effects->lost);
    if (effects->despair != FK_OUTBOX_DESPAIR_NONE) {
        quarantine(driver, line, effects->uid, FK_AUTHORITY_REASON_UNACKED);
    }
    if (effects->has_unsent) fk__line_wake(driver, line);
    fk__driver_due(driver, fk__outbox_next(&line->outbox));
}

/* False: no memory. */
static bool parcel_put(fk_driver *driver, fk_line *line, fk_str recipient,
                       const fk_wire_sysmsg *message)
{
    fk_mem *mem = &driver->remote->sys->mem;
    fk_outbox_effects effects;
    void *memory;
    size_t len = fk__sysmsg_size(message);
    size_t size = sizeof(fk_sysparcel) + recipient.len + len;
    if (recipient.len + len + 1024 > FK_SYSPARCEL_MAX) return true; /* longer than paths can be */
    if (fk__mem_alloc(mem, size, FK_SITE("system message to another system"), &memory) != FK_OK) {
        return false;
    }
    fk_sysparcel *parcel = memory;
    *parcel =
        (fk_sysparcel){ .recipient_len = (uint32_t)recipient.len, .message_len = (uint32_t)len };
    memcpy(parcel->bytes, recipient.ptr, recipient.len);
    fk__sysmsg_encode(message, parcel->bytes + recipient.len, len);
    fk_err err = fk__outbox_put(&line->outbox, &parcel->parcel, driver->now, &effects);
    if (err != FK_OK) fk__mem_free(mem, parcel, size); /* it is quarantined, or will be now */
    fk__bonds_outbox(driver, line, &effects);
    fk__line_wake(driver, line);
    return true;
}

/*
 * A late word of a system that is gone can open a stream that leads to the next one at its address, who
 * then takes number 1 for the first that we ever said to it, and the true number 1 for the same once
 * more. So the first message is sent by itself, until whom it is for has acknowledged it, and then
 * once again: to be told twice of a watch, its end or a death is to be told once.
 */
static bool parcel_send(fk_driver *driver, fk_line *line, fk_str recipient,
                        const fk_wire_sysmsg *message)
{
    bool is_first = line->outbox.seq == 0 && !line->outbox.is_shut;
    if (is_first && !parcel_put(driver, line, recipient, message)) return false;
    return parcel_put(driver, line, recipient, message);
}

static fk_str own_watcher(const fk_driver *driver)
{
    return (fk_str){ driver->watcher_path, driver->watcher_path_len };
}

static bool watch_send(fk_driver *driver, fk_line *line, uint64_t watchee, fk_sysmsg_kind kind)
{
    char text[FK_PATH_MAX + FK_ADDRESS_MAX];
    size_t len =
        fk__mail_text(driver->mail, driver->local, actor_ref(driver, watchee), text, sizeof(text));
    if (len == 0 || len >= sizeof(text)) return true; /* it has given way */
    fk_wire_sysmsg message = { .kind = kind };
    message.watch.watchee.path = (fk_str){ text, len };
    message.watch.watcher.path = own_watcher(driver);
    return parcel_send(driver, line, message.watch.watchee.path, &message);
}

static bool death_send(fk_driver *driver, fk_line *line, fk_str watchee, fk_str watcher,
                       bool existed)
{
    fk_wire_sysmsg message = { .kind = FK_SYSMSG_DEATH };
    message.death.actor.path = watchee;
    message.death.existence_confirmed = existed;
    return parcel_send(driver, line, watcher, &message);
}

/* ---- what the watcher says ------------------------------------------------------------------------------ */

/* False: no memory. */
static bool end_tell(fk_driver *driver, const fk_bond_ended *ended)
{
    fk_line *line = line_of(FK_CONTAINER(ended->node, fk_watcher_node, bonds));
    fk_ref watchee = actor_ref(driver, ended->watchee);
    fk_ref watcher = actor_ref(driver, ended->watcher | BOND_HAS_UID);
    if (ended->end == FK_BOND_END_NONE) return true;
    if (ended->end == FK_BOND_END_TERMINATED || ended->end == FK_BOND_END_LOST) {
        bool is_lost = ended->end == FK_BOND_END_LOST;
        fk__watch_remote_ended(driver->local, watchee, is_lost || driver->was_confirmed, is_lost);
        return true;
    }
    if (ended->end == FK_BOND_END_STOPPED) {
        char text[FK_PATH_MAX + FK_ADDRESS_MAX];
        size_t len = fk__mail_text(driver->mail, driver->local, watcher, text, sizeof(text));
        const fk_subject *subject = fk__map_get(&driver->subjects, ended->watchee);
        fk_str name = { subject->text, subject->text_len };
        bool is_known = len != 0 && len < sizeof(text);
        if (is_known && !death_send(driver, line, name, (fk_str){ text, len }, true)) return false;
    }
    fk__remote_unpin(driver->remote, watcher);
    return true;
}

static void ends_tell(fk_driver *driver)
{
    if (driver->has_unended && !end_tell(driver, &driver->unended)) {
        fk__driver_due(driver, driver->now + RETRY_NS);
        return;
    }
    driver->has_unended = false;
    fk_bond_ended ended;
    while (fk__watcher_take(&driver->watcher, &ended)) {
        if (end_tell(driver, &ended)) continue;
        driver->unended = ended;
        driver->has_unended = true;
        fk__driver_due(driver, driver->now + RETRY_NS);
        return;
    }
}

/* Each is one Watch; for want of memory it is done again at the next reply. */
static void rewatch(fk_driver *driver, fk_line *line)
{
    uint32_t cursor = 0;
    uint64_t watchee;
    while ((watchee = fk__watcher_watchee(&driver->watcher, &line->watching, &cursor)) != 0) {
        if (!watch_send(driver, line, watchee, FK_SYSMSG_WATCH)) {
            line->watching.uid = 0;
            return;
        }
    }
}

static void act_on(fk_driver *driver, fk_watcher_effects *effects)
{
    if (effects->node != NULL) { /* an actor here that has stopped may concern many */
        fk_line *line = line_of(effects->node);
        if (effects->must_rewatch) rewatch(driver, line);
        if (effects->must_heartbeat) fk__line_owe(driver, line, FK_CONTROL_HEARTBEAT);
        if (effects->must_quarantine) {
            quarantine(driver, line, effects->uid, FK_AUTHORITY_REASON_SILENT);
        }
    }
    bool is_now = effects->node != NULL || FK_SAFEGUARD(ENDS_TOLD);
    if (effects->has_ended && is_now) ends_tell(driver);
    fk__driver_due(driver, fk__watcher_next(&driver->watcher));
}

void fk__bonds_renewed(fk_driver *driver, fk_line *line)
{
    fk_watcher_effects effects;
    if (line->samples == NULL) return;
    fk__watcher_renewed(&driver->watcher, &line->watching, line->uid, &effects);
    act_on(driver, &effects);
}

void fk__bonds_reply(fk_driver *driver, fk_line *line)
{
    fk_watcher_effects effects;
    if (line->samples == NULL) return;
    fk__watcher_reply(&driver->watcher, &line->watching, line->uid, driver->now, &effects);
    act_on(driver, &effects);
}

void fk__bonds_lose(fk_driver *driver, fk_line *line)
{
    fk_watcher_effects effects;
    if (line->samples == NULL) return;
    fk__watcher_lose(&driver->watcher, &line->watching, &effects);
    act_on(driver, &effects);
}

bool fk__bonds_put_out(fk_driver *driver, fk_line *line)
{
    fk_remote *remote = driver->remote;
    fk_watcher_effects effects;
    bool is_met = line->samples != NULL;
    fk__remote_lock(remote);
    bool is_out = line->authority->state == FK_ASSOCIATION_QUARANTINE;
    if (is_out && is_met) fk__watcher_lose(&driver->watcher, &line->watching, &effects);
    lost_tell(driver, line);
    fk__remote_unlock(remote);
    if (is_out && is_met) act_on(driver, &effects);
    return is_out;
}

/* ---- ours ---------------------------------------------------------------------------------------------- */

/* False: no memory. */
static bool watch_begin(fk_driver *driver, fk_line *line, fk_ref ref)
{
    fk_watcher_node *node = node_of(driver, line);
    fk_watcher_effects effects;
    uint64_t number = actor_number(ref);
    fk_err err = FK_E_FULL;
    if (node == NULL) return false;
    do {
        err = fk__watcher_watch(&driver->watcher, node, number, number, driver->now, &effects);
    } while (err == FK_E_FULL && bonds_grow(driver));
    if (err == FK_E_FULL) return false;
    if (err == FK_E_LIMIT) { /* nobody would tell the watchers: so do it now */
        char buf[FK_ADDRESS_MAX];
        fk__driver_scold(driver, FK_SCOLD_REFUSED,
                         fk__remote_address(driver->remote, line->authority, buf),
                         "too many actors of that system are watched", UINT64_MAX);
        fk__watch_remote_ended(driver->local, ref, false, false);
        return true;
    }
    if (effects.must_watch && !watch_send(driver, line, number, FK_SYSMSG_WATCH)) {
        fk_watcher_effects undone;
        fk__watcher_unwatch(&driver->watcher, number, number, &undone);
        return false;
    }
    act_on(driver, &effects);
    return true;
}

/* False: no memory. */
static bool watch_end(fk_driver *driver, fk_line *line, fk_ref ref)
{
    fk_watcher_effects effects;
    uint64_t number = actor_number(ref);
    fk__watcher_unwatch(&driver->watcher, number, number, &effects);
    bool is_sent = !effects.must_unwatch || watch_send(driver, line, number, FK_SYSMSG_UNWATCH);
    act_on(driver, &effects);
    return is_sent;
}

void fk__bonds_news(fk_driver *driver, fk_line *line)
{
    fk_remote *remote = driver->remote;
    line->has_old_news = false;
    for (;;) {
        fk__remote_lock(remote);
        fk_remote_proxy *proxy = fk__line_news(remote, line);
        fk_ref ref = proxy != NULL ? proxy->ref : FK_REF_NONE;
        bool is_wanted = proxy != NULL && proxy->is_watched;
        bool is_out = line->authority->state == FK_ASSOCIATION_QUARANTINE;
        if (proxy != NULL && is_wanted && !is_out) {
            fk__authority_rouse(&remote->table, line->authority, driver->now);
            driver->next_at = 0;
        }
        if (proxy != NULL && is_wanted && !is_out && !line->authority->is_mapped) {
            fk_err err =
                fk__authority_map(&remote->table, line->authority, FK_STR(""), 0, driver->now);
            is_out = err != FK_OK && err != FK_E_NOMEM;
        }
        /* Before a quarantine can be lifted: see lost_tell(). */
        if (is_wanted && is_out) fk__watch_remote_ended(driver->local, ref, false, true);
        fk__remote_unlock(remote);
        if (proxy == NULL) return;
        if (is_wanted && is_out) continue;
        bool is_done = is_wanted ? watch_begin(driver, line, ref) : watch_end(driver, line, ref);
        if (is_done) continue;
        fk__remote_lock(remote);
        fk__line_note(remote, line, proxy); /* once more, later */
        line->has_old_news = true;
        fk__remote_unlock(remote);
        fk__driver_due(driver, driver->now + RETRY_NS);
        return;
    }
}

/* ---- theirs --------------------------------------------------------------------------------------------- */

static fk_subject *subject_get(fk_driver *driver, fk_ref ref)
{
    uint64_t number = actor_number(ref);
    fk_subject *subject = fk__map_get(&driver->subjects, number);
    if (subject != NULL) return subject;
    char text[FK_PATH_MAX + FK_ADDRESS_MAX];
    void *memory;
    size_t len = fk__mail_text(driver->mail, driver->local, ref, text, sizeof(text));
    if (len == 0 || len >= sizeof(text)) return NULL;
    if (fk__map_reserve(&driver->local->cache, &driver->subjects,
                        FK_SITE("table of actors watched by others")) != FK_OK) {
        return NULL;
    }
    fk_mem *mem = &driver->remote->sys->mem;
    if (fk__mem_alloc(mem, sizeof(*subject) + len, FK_SITE("actor watched by others"), &memory) !=
        FK_OK) {
        return NULL;
    }
    subject = memory;
    *subject = (fk_subject){ .ref = ref, .text_len = (uint32_t)len };
    memcpy(subject->text, text, len);
    if (!fk__agent_watch(driver, subject)) {
        fk__mem_free(mem, subject, sizeof(*subject) + len);
        return NULL;
    }
    fk__map_put(&driver->subjects, number, subject);
    return subject;
}

/* A watch that cannot be kept is answered at once, as if nobody were there: the peer has made it, and
 * its watcher is to be told once, whatever happens. Not to acknowledge it until there is room would hold
 * up all that the peer says after it, and in the end it would quarantine us. */
static bool watch_refuse(fk_driver *driver, fk_line *line, const fk_sysmsg_watch *watch,
                         const char *reason)
{
    char buf[FK_ADDRESS_MAX];
    fk__driver_scold(driver, FK_SCOLD_REFUSED,
                     fk__remote_address(driver->remote, line->authority, buf), reason, UINT64_MAX);
    return death_send(driver, line, watch->watchee.path, watch->watcher.path, false);
}

static bool hear_watch(fk_driver *driver, fk_line *line, const fk_sysmsg_watch *watch)
{
    static const char TOO_MANY[] = "a watch refused: too many of that system";
    fk_ref watchee, watcher;
    fk_err err = fk__mail_ref(driver->mail, driver->local, watch->watcher.path, &watcher);
    if (err == FK_E_NOMEM) return false;
    if (err == FK_E_LIMIT) return watch_refuse(driver, line, watch, TOO_MANY);
    if (err != FK_OK || fk_ref_is_none(watcher)) {
        return watch_refuse(driver, line, watch, "a watch refused: by nobody");
    }
    if (!fk__mail_own(driver->mail, driver->local, watch->watchee.path, &watchee)) {
        return watch_refuse(driver, line, watch, "a watch refused: of an actor of another system");
    }
    if (fk__cell_resolve(driver->remote->sys, watchee) == NULL) {
        return death_send(driver, line, watch->watchee.path, watch->watcher.path, false);
    }
    fk_watcher_node *node = node_of(driver, line);
    if (node == NULL || subject_get(driver, watchee) == NULL) {
        bool is_gone = fk__cell_resolve(driver->remote->sys, watchee) == NULL;
        return is_gone && death_send(driver, line, watch->watchee.path, watch->watcher.path, false);
    }
    uint64_t number = bond_number(watcher, watch->watchee.path);
    bool was_there =
        fk__bonds_find(&driver->watcher.bonds, FK_BOND_THEIRS, actor_number(watchee), number) != 0;
    if (was_there) return true;
    err = fk__remote_pin(driver->remote, watcher, line->authority);
    if (err == FK_E_LIMIT) return watch_refuse(driver, line, watch, TOO_MANY);
    if (err != FK_OK) {
        return watch_refuse(driver, line, watch, "a watch refused: in the name of another system");
    }
    do {
        err = fk__watcher_watched(&driver->watcher, node, actor_number(watchee), number);
    } while (err == FK_E_FULL && bonds_grow(driver));
    if (err != FK_OK) fk__remote_unpin(driver->remote, watcher);
    if (err == FK_E_LIMIT) return watch_refuse(driver, line, watch, TOO_MANY);
    return err != FK_E_FULL;
}

static bool hear_unwatch(fk_driver *driver, fk_line *line, const fk_sysmsg_watch *watch)
{
    fk_ref watchee, watcher;
    if (line->samples == NULL) return true;
    if (!fk__mail_own(driver->mail, driver->local, watch->watchee.path, &watchee) ||
        fk__mail_ref(driver->mail, driver->local, watch->watcher.path, &watcher) != FK_OK) {
        return true; /* then there is no such bond */
    }
    uint64_t number = bond_number(watcher, watch->watchee.path);
    bool was_there =
        fk__bonds_find(&driver->watcher.bonds, FK_BOND_THEIRS, actor_number(watchee), number) != 0;
    fk__watcher_unwatched(&driver->watcher, &line->watching, actor_number(watchee), number);
    bool is_there =
        fk__bonds_find(&driver->watcher.bonds, FK_BOND_THEIRS, actor_number(watchee), number) != 0;
    if (was_there && !is_there) fk__remote_unpin(driver->remote, watcher);
    return true;
}

/* An actor there has ended. It may be known by its path alone, or by path and uid. */
static bool hear_death(fk_driver *driver, fk_line *line, const fk_sysmsg_death *death)
{
    fk_str text = death->actor.path;
    fk_watcher_effects effects;
    if (line->samples == NULL) return true;
    driver->was_confirmed = death->existence_confirmed;
    for (int i = 0; i < 2; i++) {
        fk_ref ref;
        fk_err err = fk__mail_ref(driver->mail, driver->local, text, &ref);
        if (err == FK_E_NOMEM) return false;
        if (err == FK_OK) {
            fk__watcher_terminated(&driver->watcher, &line->watching, actor_number(ref), &effects);
            act_on(driver, &effects);
        }
        size_t cut = text.len;
        while (cut > 0 && text.ptr[cut - 1] != '#' && text.ptr[cut - 1] != '/') cut--;
        bool has_uid = cut > 0 && text.ptr[cut - 1] == '#';
        if (!has_uid || !death->existence_confirmed) break; /* others may live there */
        text.len = cut - 1;
    }
    return true;
}

bool fk__bonds_hear(fk_driver *driver, fk_line *line, fk_str message, fk_wire_fault *fault)
{
    fk_wire_sysmsg sysmsg;
    if (fk__sysmsg_decode(message, &sysmsg, fault) != FK_OK) return false;
    fault->err = FK_OK;
    char buf[FK_ADDRESS_MAX];
    switch (sysmsg.kind) {
    case FK_SYSMSG_WATCH: return hear_watch(driver, line, &sysmsg.watch);
    case FK_SYSMSG_UNWATCH: return hear_unwatch(driver, line, &sysmsg.watch);
    case FK_SYSMSG_DEATH: return hear_death(driver, line, &sysmsg.death);
    default: /* nobody else's children are supervised here */
        fk__driver_scold(driver, FK_SCOLD_REFUSED,
                         fk__remote_address(driver->remote, line->authority, buf),
                         "a system message that others may not send", UINT64_MAX);
        return true;
    }
}

static void subject_free(fk_driver *driver, fk_subject *subject)
{
    fk__map_remove(&driver->subjects, actor_number(subject->ref));
    fk__mem_free(&driver->remote->sys->mem, subject, sizeof(*subject) + subject->text_len);
}

static void unwatched_put(fk_driver *driver, fk_subject *subject)
{
    if (driver->unwatched == NULL) driver->unwatched_at = driver->now + RETRY_NS;
    subject->next = driver->unwatched;
    driver->unwatched = subject;
    fk__driver_due(driver, driver->unwatched_at);
}

/* Not at once: there may be no memory for a long time, and nobody else would get to work. */
static void unwatched_try(fk_driver *driver)
{
    fk_subject *subject = driver->unwatched;
    if (subject == NULL) return;
    fk__driver_due(driver, driver->unwatched_at);
    if (driver->now < driver->unwatched_at) return;
    driver->unwatched = NULL;
    while (subject != NULL) {
        fk_subject *next = subject->next;
        subject->is_unwatched = false;
        if (!fk__agent_watch(driver, subject)) {
            subject->is_unwatched = true;
            unwatched_put(driver, subject);
        }
        subject = next;
    }
}

static void stopped_take(fk_driver *driver)
{
    fk_watcher_effects effects;
    fk_subject *subject = (fk_subject *)fk__word_swap(&driver->stopped, 0, FK_ACQUIRE);
    while (subject != NULL) {
        fk_subject *next = subject->next;
        if (subject->is_unwatched) {
            unwatched_put(driver, subject);
        } else {
            fk__watcher_stopped(&driver->watcher, actor_number(subject->ref), &effects);
            subject->next = driver->buried;
            driver->buried = subject;
            act_on(driver, &effects);
        }
        subject = next;
    }
}

/* All have been told of their ends. */
static void buried_free(fk_driver *driver)
{
    while (!driver->has_unended && driver->buried != NULL) {
        fk_subject *subject = driver->buried;
        driver->buried = subject->next;
        subject_free(driver, subject);
    }
}

void fk__bonds_tick(fk_driver *driver)
{
    fk_watcher_effects effects;
    if (driver->has_unended) ends_tell(driver);
    if (fk__word_load(&driver->stopped, FK_RELAXED) != 0 && !driver->has_unended) {
        stopped_take(driver);
    }
    unwatched_try(driver);
    buried_free(driver);
    while (fk__watcher_next(&driver->watcher) <= driver->now &&
           fk__watcher_tick(&driver->watcher, driver->now, &effects)) {
        act_on(driver, &effects);
    }
    fk__driver_due(driver, fk__watcher_next(&driver->watcher));
}
