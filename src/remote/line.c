/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/line.h"

#include "base/safeguard.h"
#include "remote/office.h"

/* ---- life --------------------------------------------------------------------------------------- */

/* What is the driver's, as if nobody had ever been met. Where it is found by others it stays as it is:
 * the gate, the stack, and whether the driver looks at it. */
static void line_init(fk_driver *driver, fk_line *line)
{
    line->is_out = line->has_left = line->is_gone = line->is_counting = false;
    line->watching = (fk_watcher_node){ .uid = 0 };
    line->samples = NULL;
    line->mail = (fk_mail_peer){ .cache = NULL };
    line->owed = 0;
    line->uid = line->ack_seq = line->quarantined_uid = 0;
    line->compress_at = FK_NEVER;
    line->leaver_len = line->why_len = 0;
    fk__peer_init(&line->peer, NULL);
    fk_err err = fk__outbox_init(&line->outbox, &driver->delivery);
    FK_ASSERT(err == FK_OK); /* the config was checked */
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        fk_stream *stream = &line->stream[kind];
        *stream = (fk_stream){ .line = line, .kind = (uint8_t)kind };
        fk__handshake_init(&stream->handshake, &driver->handshake);
    }
}

static fk_err line_create(fk_driver *driver, fk_line **out)
{
    void *memory;
    FK_TRY(fk__mem_alloc(&driver->remote->sys->mem, sizeof(fk_line),
                         FK_SITE("line to another system"), &memory));
    fk_line *line = memory;
    memset(line, 0, sizeof(*line));
    line_init(driver, line);
    line->all_next = fk__driver_lines(driver);
    /* Release: the line, to the driver, which walks over all of them without the lock. */
    fk__word_store(&driver->lines, (uintptr_t)line, FK_RELEASE);
    *out = line;
    return FK_OK;
}

fk_err fk__line_get(fk_remote *remote, fk_authority *authority, fk_line **out)
{
    fk_driver *driver = remote->driver;
    *out = authority->user;
    if (*out != NULL) return FK_OK;
    if (driver->lines_free != NULL) {
        *out = driver->lines_free;
        driver->lines_free = (*out)->free_next;
    } else {
        FK_TRY(line_create(driver, out));
    }
    /* No more than this: the rest is the driver's. */
    (*out)->authority = (*out)->peer.authority = authority;
    authority->user = *out;
    return FK_OK;
}

void fk__line_retire(fk_driver *driver, fk_line *line)
{
    fk_mem *mem = &driver->remote->sys->mem;
    fk_envelopes left;
    fk__peer_fini(&driver->door.origins, &line->peer);
    fk__outbox_fini(&line->outbox, &left);
    FK_ASSERT(left.first == NULL);
    FK_ASSERT(line->piercing.first == NULL);
    FK_ASSERT(line->news_first == NULL);
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        fk__turnstile_leave(driver, &line->stream[kind]);
        FK_ASSERT(line->stream[kind].conn == 0);
        FK_ASSERT(line->stream[kind].buffer == NULL);
        FK_ASSERT(line->stream[kind].ready.first == NULL);
    }
    fk__tables_free(driver, line);
    fk__mem_free(mem, line->samples, driver->watcher.config.detector.samples_max * sizeof(fk_time));
    line_init(driver, line);
    fk__half_store(&line->is_refusing, 0, FK_RELEASE);
    line->authority->user = NULL;
    line->authority = NULL;
    line->free_next = driver->lines_free;
    driver->lines_free = line;
}

/* ---- sending: any thread -------------------------------------------------------------------------- */

/* True: there was nothing, so nobody looks at it yet. */
static bool line_push(fk_line *line, fk_letter *letter)
{
    uintptr_t top = fk__word_load(&line->stack, FK_RELAXED);
    do {
        letter->link.next = (fk_envelope *)top;
        /* Release: the letter. Acquire: see fk__line_call(). */
    } while (!fk__word_cas(&line->stack, &top, (uintptr_t)&letter->link, FK_ACQ_REL));
    return top == 0;
}

void fk__line_call(fk_remote *remote, fk_line *line)
{
    fk_driver *driver = remote->driver;
    /* Acq_rel: the driver clears it, by a swap as well, before it looks at the line: so either it
     * sees what was done before this call, or we find it clear. */
    if (fk__half_swap(&line->is_busy, 1, FK_ACQ_REL) != 0) return;
    uintptr_t top = fk__word_load(&driver->busy, FK_RELAXED);
    do {
        line->busy_next = (fk_line *)top;
    } while (!fk__word_cas(&driver->busy, &top, (uintptr_t)line, FK_RELEASE));
    if (driver->transport.wake != NULL) driver->transport.wake(driver->transport.ctx);
}

/* All that is on the stack, oldest first. */
static fk_envelopes line_take(fk_line *line)
{
    fk_envelopes list = { NULL, NULL, 0 };
    fk_envelope *top = (fk_envelope *)fk__word_swap(&line->stack, 0, FK_ACQUIRE);
    while (top != NULL) {
        fk_envelope *next = top->next;
        fk__envelopes_put_first(&list, top);
        top = next;
    }
    return list;
}

/* Under the lock, with the gate shut: each to the authority, which takes it or does not. */
static void line_defer(fk_remote *remote, fk_line *line, fk_envelopes *letters, fk_envelopes *full,
                       fk_envelopes *refused)
{
    fk_envelope *envelope;
    while ((envelope = fk__envelopes_take(letters)) != NULL) {
        fk_letter *letter = FK_CONTAINER(envelope, fk_letter, link);
        bool is_deferred, pierces = letter->path != NULL;
        fk__word_add(&line->gate, -FK_LINE_ONE, FK_RELAXED);
        fk_err err =
            fk__authority_send(&remote->table, line->authority, envelope, pierces, &is_deferred);
        if (err == FK_OK && !is_deferred) fk__envelopes_put(&line->piercing, envelope);
        if (err == FK_OK) continue;
        fk__envelopes_put(err == FK_E_QUARANTINED ? refused : full, envelope);
    }
}

/* Without the lock. address: of the authority, as it was with the lock. */
static void line_report(fk_local *local, fk_str address, fk_envelopes *full, fk_envelopes *refused)
{
    fk_envelope *envelope;
    while ((envelope = fk__envelopes_take(full)) != NULL) {
        fk__letter_refuse(local, address, FK_CONTAINER(envelope, fk_letter, link), FK_E_FULL);
    }
    while ((envelope = fk__envelopes_take(refused)) != NULL) {
        fk__letter_refuse(local, address, FK_CONTAINER(envelope, fk_letter, link),
                          FK_E_QUARANTINED);
    }
}

/* Under the lock: somebody is wanted there. From now on it is tried. True: the driver must know. */
static bool line_want(fk_remote *remote, fk_line *line)
{
    fk_authority *authority = line->authority;
    fk_time now = fk__system_now(remote->sys);
    if (authority->is_mapped) {
        bool was_resting = authority->is_resting;
        fk__authority_rouse(&remote->table, authority, now);
        return was_resting;
    }
    /* If that fails, the next letter tries again. */
    return fk__authority_map(&remote->table, authority, FK_STR(""), 0, now) == FK_OK;
}

/* Under the lock: the line is its receiver's. */
static bool line_is_its(fk_remote *remote, const fk_line *line, const fk_letter *letter)
{
    if (letter->path != NULL) return true; /* its authority is held */
    if (!FK_SAFEGUARD(LINE_OWNER)) return line->authority != NULL;
    const fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, letter->to);
    return proxy != NULL && proxy->authority->user == line;
}

/* The gate that lets no more letters through. */
static inline uintptr_t line_most(const fk_remote *remote)
{
    uintptr_t most = (uintptr_t)remote->driver->config.outbound_max * FK_LINE_ONE;
    return FK_SAFEGUARD(LINE_BOUND) ? most : UINTPTR_MAX;
}

/* The gate has been shut, but what came through it has not been given back. What is quarantined is
 * refused in any case, in whatever order. */
static bool line_is_behind(const fk_line *line)
{
    bool is_out = line->authority->state == FK_ASSOCIATION_QUARANTINE;
    return line->has_older && !is_out && FK_SAFEGUARD(LINE_RETURN);
}

/* The gate was shut, or too many are behind it. */
static FK_COLD fk_err send_slowly(fk_remote *remote, fk_local *local, fk_line *line,
                                  fk_letter *letter, bool pierces)
{
    fk_envelopes full = { NULL, NULL, 0 }, refused = { NULL, NULL, 0 };
    char buf[FK_ADDRESS_MAX];
    fk_str address = FK_STR("");
    bool is_deferred = true, is_due = false, must_call = false;
    fk__remote_lock(remote);
    uintptr_t gate = fk__word_load(&line->gate, FK_RELAXED);
    bool is_open = (gate & FK_LINE_OPEN) != 0;
    fk_err err = line_is_its(remote, line, letter) ? FK_E_FULL : FK_E_DEAD;
    bool may_pass = gate < line_most(remote) && FK_SAFEGUARD(LINE_REOPENED);
    if (is_open && err != FK_E_DEAD && may_pass) { /* it has been opened since we came by */
        fk__word_add(&line->gate, FK_LINE_ONE, FK_ACQ_REL);
        must_call = line_push(line, letter);
        err = FK_OK;
    } else if (!is_open && err != FK_E_DEAD && line_is_behind(line)) {
        /* The driver still has what was sent before: this waits after it. */
        must_call = gate < line_most(remote);
        err = must_call ? FK_OK : FK_E_FULL;
        if (must_call) fk__word_add(&line->gate, FK_LINE_ONE, FK_RELAXED);
        if (must_call) (void)!line_push(line, letter);
    } else if (!is_open && err != FK_E_DEAD) {
        fk_authority *authority = line->authority;
        fk_envelopes older = line_take(line);
        if (FK_SAFEGUARD(LINE_ORDER)) line_defer(remote, line, &older, &full, &refused);
        err = fk__authority_send(&remote->table, authority, &letter->link, pierces, &is_deferred);
        must_call = err == FK_OK && !is_deferred; /* it pierces */
        if (must_call) fk__envelopes_put(&line->piercing, &letter->link);
        if (!FK_SAFEGUARD(LINE_ORDER)) line_defer(remote, line, &older, &full, &refused);
        if (err == FK_OK) is_due = line_want(remote, line);
        if (err == FK_E_QUARANTINED || refused.first != NULL) {
            address = fk__remote_address(remote, authority, buf);
        }
    }
    fk__remote_unlock(remote);
    line_report(local, address, &full, &refused);
    if (must_call) fk__line_call(remote, line);
    if (is_due) fk__driver_poke(remote->driver);
    return err != FK_OK ? fk__letter_refuse(local, address, letter, err) : FK_OK;
}

/* Who waits for the answer has nothing better to do than to write the question: if the driver's thread
 * sleeps, it need not be woken for that. False: it must. */
static bool send_oneself(fk_remote *remote, fk_local *local, fk_line *line)
{
    fk_driver *driver = remote->driver;
    const fk_transport *transport = &driver->transport;
    fk_stream *stream = &line->stream[FK_STREAM_ORDINARY];
    if (transport->borrow == NULL || !transport->borrow(transport->ctx)) return false;
    fk_local *own = driver->local;
    driver->local = local; /* the thread's own lets cells run that only it would look for */
    driver->now = fk__system_now(remote->sys);
    bool is_gone = fk__line_gather(driver, line);
    if (is_gone) fk__stream_pump(driver, stream);
    driver->local = own;
    is_gone =
        is_gone && stream->ready.first == NULL && line->stream[FK_STREAM_LARGE].ready.first == NULL;
    transport->give_back(transport->ctx);
    return is_gone;
}

fk_err fk__line_send(fk_remote *remote, fk_local *local, fk_line *line, fk_letter *letter,
                     bool pierces)
{
    /* Acquire: the letter goes onto the stack after this. As long as it is counted the line stays the
     * authority's. */
    uintptr_t gate = fk__word_add(&line->gate, FK_LINE_ONE, FK_ACQ_REL);
    if (FK_UNLIKELY((gate & FK_LINE_OPEN) == 0 || gate >= line_most(remote))) {
        fk__word_add(&line->gate, -FK_LINE_ONE, FK_RELAXED);
        return send_slowly(remote, local, line, letter, pierces);
    }
    if (!line_push(line, letter)) return FK_OK;
    if (local->is_waiting && send_oneself(remote, local, line)) return FK_OK;
    fk__line_call(remote, line);
    return FK_OK;
}

void fk__line_follow(fk_line *line)
{
    /* Release, as everywhere the gate is changed: what senders do next they do by its new state. */
    const fk_authority *authority = line->authority;
    if (!fk__authority_is_clear(authority)) {
        fk__word_and(&line->gate, ~FK_LINE_OPEN, FK_ACQ_REL);
    }
    bool is_refusing = fk__authority_refuses(authority, authority->uid);
    fk__half_store(&line->is_refusing, is_refusing, FK_RELEASE);
}

void fk__line_note(fk_remote *remote, fk_line *line, fk_remote_proxy *proxy)
{
    if (proxy->has_news) return;
    fk__proxies_news(&remote->proxies, proxy, true);
    proxy->news_next = NULL;
    if (line->news_last != NULL)
        line->news_last->news_next = proxy;
    else
        line->news_first = proxy;
    line->news_last = proxy;
}

fk_remote_proxy *fk__line_news(fk_remote *remote, fk_line *line)
{
    fk_remote_proxy *proxy = line->news_first;
    if (proxy == NULL) return NULL;
    line->news_first = proxy->news_next;
    if (line->news_first == NULL) line->news_last = NULL;
    fk__proxies_news(&remote->proxies, proxy, false);
    return proxy;
}

/* ---- the driver ----------------------------------------------------------------------------------- */

/* Actors whose messages may be large have a stream of their own. Under the lock. */
static bool is_large(fk_driver *driver, const fk_letter *letter)
{
    const char *const *large = driver->config.large;
    if (large == NULL) return false;
    const fk_remote_proxy *proxy = fk__proxies_find(&driver->remote->proxies, letter->to);
    if (proxy == NULL) return false;
    fk_path path;
    if (fk_path_parse(&driver->remote->sys->paths, proxy->proxy.path, &path, NULL) != FK_OK)
        return false;
    for (; *large != NULL; large++) {
        fk_str own = path.segments, asked = fk_str_of(*large);
        if (own.len > 0 && own.ptr[0] != '/' && asked.len > 0 && asked.ptr[0] == '/') {
            asked.ptr++;
            asked.len--;
        }
        bool begins = own.len >= asked.len && memcmp(own.ptr, asked.ptr, asked.len) == 0;
        if (begins && (own.len == asked.len || own.ptr[asked.len] == '/')) return true;
    }
    return false;
}

/* From the line to its streams. Under the lock. */
static void line_sort(fk_driver *driver, fk_line *line, fk_envelopes *letters)
{
    fk_envelope *envelope;
    if (driver->config.large == NULL) { /* a whole list in one step */
        fk__envelopes_move(&line->stream[FK_STREAM_ORDINARY].ready, letters);
        return;
    }
    while ((envelope = fk__envelopes_take(letters)) != NULL) {
        bool large = is_large(driver, FK_CONTAINER(envelope, fk_letter, link));
        fk__envelopes_put(&line->stream[large ? FK_STREAM_LARGE : FK_STREAM_ORDINARY].ready,
                          envelope);
    }
}

/* What was deferred goes first. *drained: how many. Under the lock. */
static void line_drain(fk_driver *driver, fk_line *line, uint32_t *drained)
{
    fk_authority_table *table = &driver->remote->table;
    fk_envelopes batch;
    for (;;) {
        fk__authority_take(table, line->authority, UINT32_MAX, &batch);
        if (batch.count == 0) break;
        *drained += batch.count;
        fk__word_add(&line->gate, batch.count * FK_LINE_ONE, FK_RELAXED);
        line_sort(driver, line, &batch);
    }
    if (fk__authority_is_clear(line->authority)) {
        fk__word_or(&line->gate, FK_LINE_OPEN, FK_ACQ_REL);
        line->has_older = true;
    }
}

/* There is no way: everything that has not been written goes back. Under the lock. */
static void line_return(fk_driver *driver, fk_line *line, fk_envelopes *full, fk_envelopes *refused)
{
    fk_envelopes letters = { NULL, NULL, 0 }, newest = line_take(line);
    for (uint32_t kind = FK_STREAM_ORDINARY; kind < FK_STREAM_COUNT; kind++) {
        fk__envelopes_move(&letters, &line->stream[kind].ready);
    }
    fk__envelopes_move(&letters, &newest);
    line_defer(driver->remote, line, &letters, full, refused);
    line->has_older = false;
}

bool fk__line_gather(fk_driver *driver, fk_line *line)
{
    fk_remote *remote = driver->remote;
    fk_envelopes full = { NULL, NULL, 0 }, refused = { NULL, NULL, 0 };
    uint32_t drained = 0;
    char buf[FK_ADDRESS_MAX];
    fk__remote_lock(remote);
    if (line->authority == NULL) { /* whoever called had his letter written, and the system went */
        fk__remote_unlock(remote);
        return false;
    }
    fk__line_follow(line);
    if (!line->authority->is_open) {
        line_return(driver, line, &full, &refused);
        if (line->authority->deferred.count != 0 && line_want(remote, line)) driver->next_at = 0;
    } else {
        fk__word_add(&line->gate, line->piercing.count * FK_LINE_ONE, FK_RELAXED);
        line_sort(driver, line, &line->piercing);
        line_drain(driver, line, &drained);
        fk_envelopes newest = line_take(line);
        line_sort(driver, line, &newest);
    }
    bool is_told = drained != 0 || refused.first != NULL;
    fk_str address = is_told ? fk__remote_address(remote, line->authority, buf) : FK_STR("");
    fk__remote_unlock(remote);
    line_report(driver->local, address, &full, &refused);
    for (; drained != 0; drained--) {
        fk__event(remote->sys, driver->local,
                  &(fk_event){ .kind = FK_EVENT_LETTER_DRAINED, .text = address });
    }
    return true;
}

void fk__line_blunt(fk_driver *driver, fk_line *line)
{
    fk_envelopes full = { NULL, NULL, 0 }, refused = { NULL, NULL, 0 };
    char buf[FK_ADDRESS_MAX];
    fk__remote_lock(driver->remote);
    fk__envelopes_move(&refused, &line->piercing);
    fk_str address = fk__remote_address(driver->remote, line->authority, buf);
    fk__remote_unlock(driver->remote);
    line_report(driver->local, address, &full, &refused);
}

void fk__line_destroy(fk_remote *remote, fk_line *line)
{
    fk_mem *mem = &remote->sys->mem;
    fk_driver *driver = remote->driver;
    fk_envelopes left, newest = line_take(line);
    fk__envelopes_move(&newest, &line->piercing);
    fk_envelope *envelope;
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        fk_stream *stream = &line->stream[kind];
        fk__envelopes_move(&stream->ready, &newest);
        while ((envelope = fk__envelopes_take(&stream->ready)) != NULL) {
            fk__letter_discard(driver->local, FK_REASON_SYSTEM_STOPPING,
                               FK_CONTAINER(envelope, fk_letter, link));
        }
        fk__mem_free(mem, stream->buffer, stream->size);
    }
    fk__outbox_fini(&line->outbox, &left);
    fk__parcels_free(driver, &left);
    fk__tables_free(driver, line);
    fk__mem_free(mem, line->samples, driver->watcher.config.detector.samples_max * sizeof(fk_time));
    fk__mem_free(mem, line, sizeof(*line));
}
