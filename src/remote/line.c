/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/line.h"

#include "base/safeguard.h"
#include "remote/office.h"

/* ---- life --------------------------------------------------------------------------------------- */

static void line_init(fk_remote *remote, fk_line *line, fk_authority *authority)
{
    fk_driver *driver = remote->driver;
    memset(line, 0, sizeof(*line));
    line->authority = authority;
    line->compress_at = FK_NEVER;
    fk__peer_init(&line->peer, authority);
    fk_err err = fk__outbox_init(&line->outbox, &driver->delivery);
    FK_ASSERT(err == FK_OK); /* the config was checked */
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        fk_stream *stream = &line->stream[kind];
        stream->line = line;
        stream->kind = (uint8_t)kind;
        fk__handshake_init(&stream->handshake, &driver->handshake);
    }
}

fk_err fk__line_get(fk_remote *remote, fk_authority *authority, fk_line **out)
{
    *out = authority->user;
    if (*out != NULL) return FK_OK;
    void *memory;
    FK_TRY(fk__mem_alloc(&remote->sys->mem, sizeof(fk_line), FK_SITE("line to another system"),
                         &memory));
    *out = memory;
    line_init(remote, *out, authority);
    (*out)->all_next = fk__driver_lines(remote->driver);
    /* Release: the line, to the driver, which walks over all of them without the lock. */
    fk__word_store(&remote->driver->lines, (uintptr_t)*out, FK_RELEASE);
    authority->user = *out;
    return FK_OK;
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

/* Without the lock. */
static void line_report(fk_remote *remote, fk_local *local, const fk_line *line, fk_envelopes *full,
                        fk_envelopes *refused)
{
    char buf[FK_ADDRESS_MAX];
    fk_envelope *envelope;
    while ((envelope = fk__envelopes_take(full)) != NULL) {
        fk__letter_discard(local, FK_REASON_FULL, FK_CONTAINER(envelope, fk_letter, link));
    }
    while ((envelope = fk__envelopes_take(refused)) != NULL) {
        fk__invalid_association(local, fk__remote_address(remote, line->authority, buf));
        fk__letter_discard(local, FK_REASON_QUARANTINED, FK_CONTAINER(envelope, fk_letter, link));
    }
}

/* The gate is open. False: too many are behind it. *is_first: nobody has been called for it. */
static bool line_pass(const fk_remote *remote, fk_line *line, fk_letter *letter, bool *is_first)
{
    uintptr_t most = (uintptr_t)remote->driver->config.outbound_max * FK_LINE_ONE;
    if (fk__word_add(&line->gate, FK_LINE_ONE, FK_ACQ_REL) >= most) {
        fk__word_add(&line->gate, -FK_LINE_ONE, FK_RELAXED);
        return false;
    }
    *is_first = line_push(line, letter);
    return true;
}

/* The gate was shut, or too many are behind it. */
static FK_COLD fk_err send_slowly(fk_remote *remote, fk_local *local, fk_line *line,
                                  fk_letter *letter, bool pierces)
{
    fk_envelopes full = { NULL, NULL, 0 }, refused = { NULL, NULL, 0 };
    fk_authority *authority = line->authority;
    bool is_deferred = true, is_mapped = false, must_call = false;
    fk_err err = FK_E_FULL;
    fk__remote_lock(remote);
    bool is_open = (fk__word_load(&line->gate, FK_RELAXED) & FK_LINE_OPEN) != 0;
    if (is_open) { /* it may have been opened since we came by, and stays so under the lock */
        if (FK_SAFEGUARD(LINE_REOPENED) && line_pass(remote, line, letter, &must_call)) err = FK_OK;
    } else {
        fk_envelopes older = line_take(line);
        if (FK_SAFEGUARD(LINE_ORDER)) line_defer(remote, line, &older, &full, &refused);
        err = fk__authority_send(&remote->table, authority, &letter->link, pierces, &is_deferred);
        must_call = err == FK_OK && !is_deferred;
        if (must_call) fk__envelopes_put(&line->piercing, &letter->link);
        if (!FK_SAFEGUARD(LINE_ORDER)) line_defer(remote, line, &older, &full, &refused);
        /* Somebody is wanted there: from now on it is tried. */
        if (err == FK_OK && !authority->is_mapped) {
            fk_err mapped = fk__authority_map(&remote->table, authority, FK_STR(""), 0,
                                              fk__system_now(remote->sys));
            is_mapped = mapped == FK_OK; /* else the next letter tries again */
        }
    }
    fk__remote_unlock(remote);
    line_report(remote, local, line, &full, &refused);
    if (must_call) fk__line_call(remote, line);
    if (is_mapped) fk__driver_poke(remote->driver); /* there is something due now */
    return err;
}

fk_err fk__line_send(fk_remote *remote, fk_local *local, fk_line *line, fk_letter *letter,
                     bool pierces)
{
    uintptr_t most = (uintptr_t)remote->driver->config.outbound_max * FK_LINE_ONE;
    /* Acquire: the letter goes onto the stack after this. */
    uintptr_t gate = fk__word_add(&line->gate, FK_LINE_ONE, FK_ACQ_REL);
    if (FK_UNLIKELY((gate & FK_LINE_OPEN) == 0 || gate >= most)) {
        fk__word_add(&line->gate, -FK_LINE_ONE, FK_RELAXED);
        return send_slowly(remote, local, line, letter, pierces);
    }
    if (line_push(line, letter)) fk__line_call(remote, line);
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
}

void fk__line_gather(fk_driver *driver, fk_line *line)
{
    fk_remote *remote = driver->remote;
    fk_envelopes full = { NULL, NULL, 0 }, refused = { NULL, NULL, 0 };
    uint32_t drained = 0;
    fk__remote_lock(remote);
    fk__line_follow(line);
    if (!line->authority->is_open) {
        line_return(driver, line, &full, &refused);
    } else {
        fk__word_add(&line->gate, line->piercing.count * FK_LINE_ONE, FK_RELAXED);
        line_sort(driver, line, &line->piercing);
        line_drain(driver, line, &drained);
        fk_envelopes newest = line_take(line);
        line_sort(driver, line, &newest);
    }
    fk__remote_unlock(remote);
    line_report(remote, driver->local, line, &full, &refused);
    char buf[FK_ADDRESS_MAX];
    fk_str address = drained != 0 ? fk__remote_address(remote, line->authority, buf) : FK_STR("");
    for (; drained != 0; drained--) {
        fk__event(remote->sys, driver->local,
                  &(fk_event){ .kind = FK_EVENT_LETTER_DRAINED, .text = address });
    }
}

void fk__line_blunt(fk_driver *driver, fk_line *line)
{
    fk_envelopes full = { NULL, NULL, 0 }, refused = { NULL, NULL, 0 };
    fk__remote_lock(driver->remote);
    fk__envelopes_move(&refused, &line->piercing);
    fk__remote_unlock(driver->remote);
    line_report(driver->remote, driver->local, line, &full, &refused);
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
