/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/driver.h"

#include "base/safeguard.h"
#include "remote/config.h"
#include "remote/office.h"

enum { PARTING_NS = 1000000000, SCOLD_NS = 1000000000 };

/* ---- life ------------------------------------------------------------------------------------------- */

static fk_err watcher_make(fk_driver *driver)
{
    const fk_remoting_config *config = &driver->config;
    const fk_watcher_config asked = { .bonds_max = config->watches_max,
                                      .heartbeat_every = config->heartbeat_every,
                                      .first_reply_after = config->heartbeat_every,
                                      .detector = { .pause = config->heartbeat_pause,
                                                    .first_estimate = config->heartbeat_every } };
    uint32_t nodes = driver->remote->table.config.authorities_max;
    void *heap;
    FK_TRY(fk__mem_alloc(&driver->remote->sys->mem, nodes * sizeof(fk_deadline *),
                         FK_SITE("deadlines of watched systems"), &heap));
    driver->heap = heap;
    FK_TRY(fk__watcher_init(&driver->watcher, &asked, driver->heap, nodes));
    return fk__bonds_init_all(driver);
}

static fk_err door_make(fk_driver *driver)
{
    fk_system *sys = driver->remote->sys;
    uint32_t buckets = 1024;
    void *memory;
    uint64_t key;
    FK_TRY(fk__mem_alloc(&sys->mem, buckets * sizeof(fk_origin *), FK_SITE("table of systems met"),
                         &memory));
    memset(memory, 0, buckets * sizeof(fk_origin *));
    sys->mem.port.random(sys->mem.port.ctx, &key, sizeof(key));
    fk__origins_init(&driver->door.origins, memory, buckets, key);
    driver->door.table = &driver->remote->table;
    driver->door.own =
        (fk_authority_key){ sys->address.system, sys->address.host, sys->address.port };
    driver->door.own_uid = driver->uid;
    return FK_OK;
}

static fk_err driver_fill(fk_driver *driver)
{
    fk_system *sys = driver->remote->sys;
    const fk_remoting_config *config = &driver->config;
    fk_str name = FK_STR("/system/remote-watcher");
    fk_handshake_config handshake = { .fail_after = config->handshake_timeout };
    fk_mail_config mail = { .codecs = config->codecs,
                            .own_uid = driver->uid,
                            .frame_max = config->frame_max,
                            .frame_max_large = config->frame_max_large,
                            .is_trusting = config->trusting };
    memcpy(driver->watcher_path, sys->address_text, sys->address_len);
    memcpy(driver->watcher_path + sys->address_len, name.ptr, name.len);
    driver->watcher_path_len = sys->address_len + (uint32_t)name.len;
    driver->delivery = (fk_delivery_config){ .is_careful = true };
    FK_TRY(fk__handshake_configure(&handshake, &driver->handshake));
    FK_TRY(watcher_make(driver));
    FK_TRY(door_make(driver));
    return fk__mail_create(driver->remote, &mail, &driver->mail);
}

size_t fk__driver_message_max(const fk_driver *driver)
{
    enum { ENVELOPE_MOST = 1024 }; /* two paths and a manifest of the usual length */
    return driver->config.frame_max - ENVELOPE_MOST;
}

fk_err fk__driver_create(fk_remote *remote, const fk_remoting_config *config)
{
    fk_system *sys = remote->sys;
    void *memory;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_driver), FK_SITE("driver of remoting"), &memory));
    fk_driver *driver = memory;
    memset(driver, 0, sizeof(*driver));
    driver->remote = remote;
    driver->config = *config;
    driver->local = &sys->outside[0];
    driver->uid = remote->uid;
    driver->retire_at = FK_NEVER;
    driver->crowd_next = FK_CROWD;
    remote->driver = driver;
    fk_err err = driver_fill(driver);
    if (err != FK_OK) fk__driver_destroy(remote);
    return err;
}

void fk__driver_destroy(fk_remote *remote)
{
    fk_driver *driver = remote->driver;
    fk_mem *mem = &remote->sys->mem;
    FK_ASSERT(!driver->is_started);
    driver->local = &remote->sys->outside[0];
    fk_line *next;
    for (fk_line *line = fk__driver_lines(driver); line != NULL; line = next) {
        next = line->all_next;
        fk__line_destroy(remote, line);
    }
    if (driver->watcher.bonds.bond != NULL) fk__bonds_fini_all(driver);
    if (driver->mail != NULL) fk__mail_destroy(driver->mail);
    fk__map_fini(&driver->local->cache, &driver->conns);
    fk__mem_free(mem, driver->door.origins.bucket,
                 driver->door.origins.bucket_count * sizeof(fk_origin *));
    fk__mem_free(mem, driver->heap, remote->table.config.authorities_max * sizeof(fk_deadline *));
    fk__mem_free(mem, driver, sizeof(*driver));
    remote->driver = NULL;
}

fk_driver *fk__driver_of(const fk_system *sys)
{
    return sys->remote.ctx != NULL ? fk__remote_of(sys)->driver : NULL;
}

void fk__driver_start(fk_driver *driver, const fk_transport *transport, fk_worker *worker)
{
    driver->transport = *transport;
    driver->worker = worker;
    driver->local = &worker->local;
    driver->is_started = true;
}

void fk__driver_stop(fk_driver *driver)
{
    if (!driver->is_started) return;
    for (fk_line *line = fk__driver_lines(driver); line != NULL; line = line->all_next) {
        for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
            fk__stream_close(driver, &line->stream[kind], true);
        }
    }
    while (driver->guests != NULL) fk__guest_close(driver, driver->guests);
    driver->is_started = false;
    driver->transport.wake = NULL;
}

/* ---- connections by number --------------------------------------------------------------------------- */

fk_err fk__conn_add(fk_driver *driver, fk_conn_id conn, void *what)
{
    FK_TRY(fk__map_reserve(&driver->local->cache, &driver->conns, FK_SITE("table of connections")));
    fk__map_put(&driver->conns, conn, what);
    return FK_OK;
}

void fk__driver_connected(fk_driver *driver, fk_conn_id conn, fk_time now)
{
    fk_stream *stream = fk__map_get(&driver->conns, conn);
    driver->now = now;
    if (stream != NULL) fk__stream_connected(driver, stream);
}

void fk__driver_writable(fk_driver *driver, fk_conn_id conn, fk_time now)
{
    fk_stream *stream = fk__map_get(&driver->conns, conn);
    driver->now = now;
    if (stream == NULL) return;
    stream->is_lent = false;
    stream->len = stream->letters = 0;
    fk__line_wake(driver, stream->line);
}

bool fk__driver_read(fk_driver *driver, fk_conn_id conn, fk_str bytes, fk_time now)
{
    void *what = fk__map_get(&driver->conns, conn);
    driver->now = now;
    if (what == NULL) return false;
    if ((conn & FK_CONN_ACCEPTED) != 0) return fk__guest_read(driver, what, bytes);
    fk_stream *stream = what;
    char buf[FK_ADDRESS_MAX];
    fk__driver_scold(driver, FK_SCOLD_BYTES,
                     fk__remote_address(driver->remote, stream->line->authority, buf),
                     "bytes came back on a connection of ours", 0);
    fk__map_remove(&driver->conns, conn);
    fk__stream_lost(driver, stream);
    return false;
}

void fk__driver_closed(fk_driver *driver, fk_conn_id conn, fk_err err, fk_str why, fk_time now)
{
    void *what = fk__map_get(&driver->conns, conn);
    driver->now = now;
    (void)err;
    if (what == NULL) return;
    if ((conn & FK_CONN_ACCEPTED) != 0) {
        fk__guest_lost(driver, what);
        return;
    }
    fk_stream *stream = what;
    fk_line *line = stream->line;
    size_t len = why.len < sizeof(line->why) ? why.len : sizeof(line->why);
    memcpy(line->why, why.ptr, len);
    line->why_len = (uint8_t)len;
    fk__map_remove(&driver->conns, conn);
    fk__stream_lost(driver, stream);
}

/* ---- what becomes of a line ----------------------------------------------------------------------------- */

void fk__line_wake(fk_driver *driver, fk_line *line)
{
    if (line->is_awake) return;
    line->is_awake = true;
    line->next = driver->awake;
    driver->awake = line;
}

void fk__driver_act(fk_driver *driver, fk_authority_effects *effects)
{
    fk_remote *remote = driver->remote;
    fk_authority *authority = effects->authority;
    fk_line *line;
    if (authority == NULL) return;
    fk__remote_lock(remote);
    fk_err err = fk__line_get(remote, authority, &line);
    if (err == FK_OK) fk__line_follow(line);
    fk__remote_unlock(remote);
    fk__remote_act(remote, driver->local, effects);
    driver->next_at = 0;      /* the table has other deadlines now */
    if (err != FK_OK) return; /* the attempt will be found to have led nowhere */
    bool is_out = effects->has_change && effects->change.to == FK_ASSOCIATION_QUARANTINE;
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        /* To one that is quarantined there is still something to say. */
        if (effects->must_close && !is_out) fk__stream_close(driver, &line->stream[kind], false);
    }
    fk__line_wake(driver, line);
}

/* It has been quarantined, by us or by somebody. */
static void put_out(fk_driver *driver, fk_line *line)
{
    fk_outbox_effects effects;
    if (!fk__bonds_put_out(driver, line)) return;
    line->is_out = true;
    (void)!fk__outbox_step(
        &line->outbox, &(fk_outbox_event){ .kind = FK_OUTBOX_EVENT_QUARANTINED, .uid = line->uid },
        driver->now, &effects);
    fk__bonds_outbox(driver, line, &effects);
    for (uint32_t kind = FK_STREAM_ORDINARY; kind < FK_STREAM_COUNT; kind++) {
        fk__stream_close(driver, &line->stream[kind], false);
    }
    line->owed = 0;
    if (line->uid == 0 || line->stream[FK_STREAM_CONTROL].conn == 0) return;
    line->quarantined_uid = line->uid;
    line->owed = 1u << FK_CONTROL_QUARANTINED;
}

static void streams_settle(fk_driver *driver, fk_line *line, const fk_authority *seen,
                           bool has_piercing)
{
    fk_stream *control = &line->stream[FK_STREAM_CONTROL];
    bool is_out = seen->state == FK_ASSOCIATION_QUARANTINE && !seen->is_attempting;
    bool owes_notice = (line->owed & 1u << FK_CONTROL_QUARANTINED) != 0;
    bool does_pierce = is_out && has_piercing;
    bool is_wanted = seen->is_open || seen->is_attempting || (is_out && owes_notice) || does_pierce;
    bool is_stale = seen->is_attempting && !seen->is_open && control->attempt != seen->attempt;
    /* One that waits for its turn keeps it. */
    if (is_stale && control->conn != 0) fk__stream_close(driver, control, false);
    if (is_wanted) fk__stream_open(driver, control);
    /* Who is told that it is quarantined is not greeted: it would refuse that if it has quarantined us,
     * say so, and be refused, without end. */
    control->is_notice = is_out && !does_pierce;
    for (uint32_t kind = FK_STREAM_ORDINARY; kind < FK_STREAM_COUNT; kind++) {
        fk_stream *stream = &line->stream[kind];
        if (seen->is_open && stream->ready.first != NULL) fk__stream_open(driver, stream);
        if (!seen->is_open) fk__stream_close(driver, stream, false);
        if (stream->ready.first == NULL) fk__turnstile_leave(driver, stream);
    }
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        fk__stream_pump(driver, &line->stream[kind]);
    }
    bool is_over =
        is_out && line->owed == 0 && control->is_connected && control->len == 0 && !does_pierce;
    if (!is_wanted || is_over) {
        fk__stream_close(driver, control, true);
    }
}

void fk__driver_settle(fk_driver *driver, fk_line *line)
{
    fk_remote *remote = driver->remote;
    if (!fk__line_gather(driver, line)) return;
    fk__bonds_news(driver, line);
    fk__remote_lock(remote);
    const fk_authority seen = *line->authority;
    bool has_piercing = line->piercing.first != NULL;
    fk__remote_unlock(remote);
    if (seen.state != FK_ASSOCIATION_QUARANTINE)
        line->is_out = false;
    else if (!line->is_out)
        put_out(driver, line);
    streams_settle(driver, line, &seen, has_piercing);
    if (!FK_SAFEGUARD(LINE_BUSY)) fk__half_swap(&line->is_busy, 0, FK_ACQ_REL);
}

/* ---- the end of this system -------------------------------------------------------------------------------- */

static bool line_is_done(const fk_line *line)
{
    bool is_done = line->owed == 0 && line->outbox.unacked.count == 0;
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        is_done = is_done && line->stream[kind].ready.first == NULL && line->stream[kind].len == 0;
    }
    return is_done;
}

/* Lines on which somebody can be told. */
static bool line_counts(const fk_line *line)
{
    const fk_stream *control = &line->stream[FK_STREAM_CONTROL];
    return line->uid != 0 && control->is_connected &&
           control->handshake.phase == FK_HANDSHAKE_ANSWERED;
}

static void part(fk_driver *driver)
{
    bool is_late = driver->now >= driver->parting_at;
    bool is_done = fk__word_load(&driver->stopped, FK_RELAXED) == 0;
    if (driver->parting == FK_PARTING_NONE) {
        driver->parting = FK_PARTING_ASKED;
        driver->parting_at = fk__time_add(driver->now, PARTING_NS);
        is_late = false;
    }
    for (fk_line *line = fk__driver_lines(driver); line != NULL; line = line->all_next) {
        if (!line_counts(line)) continue;
        is_done =
            is_done && (driver->parting == FK_PARTING_ASKED ? line_is_done(line) : line->has_left);
    }
    fk__driver_due(driver, is_late ? driver->now : driver->parting_at);
    if (!is_done && !is_late) return;
    if (driver->parting == FK_PARTING_ASKED) {
        driver->parting = FK_PARTING_SAID;
        driver->parting_at = fk__time_add(driver->now, PARTING_NS);
        for (fk_line *line = fk__driver_lines(driver); line != NULL; line = line->all_next) {
            if (line_counts(line)) fk__line_owe(driver, line, FK_CONTROL_TERMINATING);
        }
        fk__driver_due(driver, driver->now); /* there may be nobody to wait for */
    } else if (driver->parting == FK_PARTING_SAID) {
        driver->parting = FK_PARTING_DONE;
        fk__agent_parted(driver);
    }
}

/* ---- a turn ---------------------------------------------------------------------------------------------------- */

static void authorities_tick(fk_driver *driver)
{
    fk_remote *remote = driver->remote;
    fk_authority_effects effects;
    for (;;) {
        fk_authority *due;
        fk__remote_lock(remote);
        while ((due = fk__authority_due(&remote->table, driver->now)) != NULL &&
               due->user != NULL && !fk__line_is_wanted(due->user)) {
            fk__authority_rest(&remote->table, due);
        }
        bool more = fk__authority_tick(&remote->table, driver->now, &effects);
        fk_time next = fk__authority_next(&remote->table);
        fk__remote_unlock(remote);
        if (more) fk__driver_act(driver, &effects);
        if (more) continue;
        fk__driver_due(driver, next);
        return;
    }
}

static void outbox_tick(fk_driver *driver, fk_line *line)
{
    fk_outbox_effects effects;
    fk_time next = fk__outbox_next(&line->outbox);
    if (next <= driver->now) {
        fk__outbox_tick(&line->outbox, driver->now, &effects);
        fk__bonds_outbox(driver, line, &effects);
    } else {
        fk__driver_due(driver, next);
    }
}

/* As soon as there is anybody to be told of anything. */
static bool needs_agent(fk_driver *driver)
{
    return fk__driver_lines(driver) != NULL && fk__half_load(&driver->is_hooked, FK_ACQUIRE) == 0;
}

/* All that may be due; also finds out when the next of it is. */
static void tick(fk_driver *driver)
{
    driver->next_at = FK_NEVER;
    if (needs_agent(driver)) fk__driver_due(driver, driver->agent_at);
    fk__guests_tick(driver);
    for (fk_line *line = fk__driver_lines(driver); line != NULL; line = line->all_next) {
        for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
            fk__stream_tick(driver, &line->stream[kind]);
            if (line->stream[kind].wants_request) fk__line_wake(driver, line);
        }
        outbox_tick(driver, line);
        fk__speech_advertise(driver, line);
        if (line->has_old_news) fk__line_wake(driver, line);
    }
    fk__bonds_tick(driver);
    fk__retire_tick(driver);
    authorities_tick(driver); /* last: its effects ask for another look */
}

static void take_calls(fk_driver *driver)
{
    fk_line *line = (fk_line *)fk__word_swap(&driver->busy, 0, FK_ACQUIRE);
    while (line != NULL) {
        fk_line *next = line->busy_next;
        /* Before it is looked at: see fk__line_call(). */
        if (FK_SAFEGUARD(LINE_BUSY)) fk__half_swap(&line->is_busy, 0, FK_ACQ_REL);
        fk__line_wake(driver, line);
        line = next;
    }
}

fk_time fk__driver_run(fk_driver *driver, fk_time now)
{
    driver->now = now;
    if (!driver->is_started) return FK_NEVER;
    if (needs_agent(driver) && driver->agent_at <= now) fk__agent_start(driver);
    if (fk__half_load(&driver->is_poked, FK_RELAXED) != 0) {
        fk__half_swap(&driver->is_poked, 0, FK_ACQ_REL);
        driver->next_at = 0;
    }
    take_calls(driver);
    if (fk__word_load(&driver->stopped, FK_RELAXED) != 0) fk__bonds_tick(driver);
    if (driver->next_at <= now) tick(driver);
    if (driver->queued_count != 0) fk__turnstile_run(driver);
    while (driver->awake != NULL) {
        fk_line *line = driver->awake;
        driver->awake = line->next;
        line->is_awake = false;
        fk__driver_settle(driver, line);
    }
    if (fk__half_load(&driver->is_asked, FK_ACQUIRE) != 0 && driver->parting != FK_PARTING_DONE) {
        part(driver);
    }
    bool is_more = driver->awake != NULL || fk__word_load(&driver->busy, FK_RELAXED) != 0;
    return is_more ? now : driver->next_at;
}

void fk__driver_full(fk_driver *driver)
{
    fk__half_swap(&driver->is_full, 1, FK_ACQ_REL);
    fk__driver_poke(driver);
}

void fk__driver_poke(fk_driver *driver)
{
    fk__half_swap(&driver->is_poked, 1, FK_ACQ_REL);
    if (driver->transport.wake != NULL) driver->transport.wake(driver->transport.ctx);
}

/* ---- telling of others' mistakes --------------------------------------------------------------------------------- */

static void put(char *buf, size_t size, size_t *len, fk_str text)
{
    size_t fits = text.len < size - *len ? text.len : size - *len;
    memcpy(buf + *len, text.ptr, fits);
    *len += fits;
}

static void put_number(char *buf, size_t size, size_t *len, uint64_t number)
{
    char digits[20];
    size_t i = sizeof(digits);
    do {
        digits[--i] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    put(buf, size, len, (fk_str){ digits + i, sizeof(digits) - i });
}

void fk__driver_scold(fk_driver *driver, fk_scold_kind kind, fk_str who, const char *reason,
                      uint64_t at)
{
    fk_scold *scold = &driver->scold[kind];
    char text[FK_ADDRESS_MAX + 32];
    size_t len = 0;
    if (driver->now < scold->next_at) {
        scold->suppressed++;
        return;
    }
    put(text, sizeof(text), &len, who);
    if (at != UINT64_MAX) {
        put(text, sizeof(text), &len, FK_STR(" byte "));
        put_number(text, sizeof(text), &len, at);
    }
    fk__event(driver->remote->sys, driver->local,
              &(fk_event){ .kind = FK_EVENT_REMOTE,
                           .text = { text, len },
                           .reason = reason,
                           .count = scold->suppressed });
    scold->suppressed = 0;
    scold->next_at = fk__time_add(driver->now, SCOLD_NS);
}
