/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Letters: made in the thread of whoever sends, and put where the authority of the receiver says. What
 * does not go becomes a dead letter here, in the same call.
 */

#include "remote/letter.h"

#include "base/safeguard.h"
#include "core/path.h"
#include "remote/line.h"
#include "remote/mail.h"
#include "remote/remote.h"

/* ---- the end of letters -------------------------------------------------------------------------- */

void fk__letter_free(fk_local *local, fk_letter *letter)
{
    fk_letter_path *path = letter->path;
    if (path != NULL) fk__cache_free(&local->cache, path, path->size);
    fk__cache_free(&local->cache, letter, sizeof(*letter));
}

static void node_drop(fk_local *local, fk_node *node)
{
    fk__node_drop_contents(&local->cache, node);
    fk__node_free(&local->cache, node);
}

static void node_discard(fk_local *local, fk_reason reason, fk_ref to, fk_node *node)
{
    fk__dead_node(local, reason, to, node);
    node_drop(local, node);
}

static void node_discard_at(fk_local *local, fk_reason reason, fk_str path, fk_node *node)
{
    fk__dead_node_at(local, reason, path, node);
    node_drop(local, node);
}

void fk__letter_discard(fk_local *local, fk_reason reason, fk_letter *letter)
{
    const fk_letter_path *path = letter->path;
    if (path == NULL)
        node_discard(local, reason, letter->to, letter->node);
    else
        node_discard_at(local, reason, (fk_str){ path->text, path->len }, letter->node);
    fk__letter_free(local, letter);
}

void fk__letter_fail(fk_local *local, fk_letter *letter, const fk_codec_fault *fault)
{
    fk_msg msg;
    fk__node_view(letter->node, local->sys->id, &msg);
    const char *detail = fault->message != NULL ? fault->message : "";
    fk_dead_letter dead = { .reason = fk__mail_reason(fault->err),
                            .to = letter->to,
                            .sender = msg.sender,
                            .type = msg.type,
                            .data = msg.data,
                            .len = msg.len,
                            .detail = fk_str_of(detail) };
    if (letter->path != NULL) dead.path = (fk_str){ letter->path->text, letter->path->len };
    fk__dead_report(local, &dead);
    fk__letter_done(local, letter);
}

void fk__letter_done(fk_local *local, fk_letter *letter)
{
    node_drop(local, letter->node);
    fk__letter_free(local, letter);
}

/* ---- sending ------------------------------------------------------------------------------------------ */

static fk_reason reason_for(fk_err err)
{
    switch (err) {
    case FK_E_QUARANTINED: return FK_REASON_QUARANTINED;
    case FK_E_FULL: return FK_REASON_FULL;
    case FK_E_UNRESOLVED: return FK_REASON_NO_RECEIVER;
    case FK_E_DEAD: return FK_REASON_STOPPED;
    default: return FK_REASON_NO_MEMORY;
    }
}

fk_err fk__letter_refuse(fk_local *local, fk_str address, fk_letter *letter, fk_err err)
{
    bool is_event = err == FK_E_QUARANTINED && FK_SAFEGUARD(INVALID_EACH);
    if (is_event) fk__invalid_association(local, address);
    fk__letter_discard(local, reason_for(err), letter);
    return err;
}

static fk_letter *letter_create(fk_local *local)
{
    fk_letter *letter =
        fk__cache_alloc(&local->cache, sizeof(*letter), FK_SITE("letter to another system"));
    if (letter != NULL) *letter = (fk_letter){ .node = NULL };
    return letter;
}

/* Without a driver. The letter is the caller's when this fails. Under the lock. */
static fk_err letter_put(fk_remote *remote, fk_authority *authority, fk_letter *letter)
{
    bool is_deferred, pierces = letter->path != NULL;
    FK_TRY(fk__authority_send(&remote->table, authority, &letter->link, pierces, &is_deferred));
    return is_deferred ? FK_OK : FK_E_UNRESOLVED; /* without a transport nobody is ever reached */
}

/* It did not go. Of an authority that stays. */
static fk_err letter_refuse(fk_remote *remote, fk_local *local, const fk_authority *authority,
                            fk_letter *letter, fk_err err)
{
    char buf[FK_ADDRESS_MAX];
    fk_str address = FK_STR("");
    if (err == FK_E_QUARANTINED) address = fk__remote_address(remote, authority, buf);
    return fk__letter_refuse(local, address, letter, err);
}

fk_err fk__letter_send(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref to, fk_node *node)
{
    fk_remote *remote = ctx;
    const fk_remote_proxy *own = FK_CONTAINER(proxy, fk_remote_proxy, proxy);
    fk_letter *letter = letter_create(local);
    if (letter == NULL) {
        fk_err err = local->cache.err;
        node_discard(local, FK_REASON_NO_MEMORY, to, node);
        return err;
    }
    letter->node = node;
    letter->to = to;
    if (remote->driver != NULL) {
        /* Acquire pairs with the release in proxies.c: a line is never anything else, but it may be
         * another authority's by now, and new. Then the proxy has given way, and the letter is found
         * out by its generation: where the line is shut in the same call, else when it is written. */
        return fk__line_send(remote, local, fk__word_ptr(&own->line, FK_ACQUIRE), letter, false);
    }
    fk__remote_lock(remote);
    bool is_stale = !fk_ref_equal(own->ref, to);
    fk_authority *authority = own->authority;
    fk_err err = is_stale ? FK_OK : letter_put(remote, authority, letter);
    fk__remote_unlock(remote);
    if (is_stale) fk__letter_discard(local, FK_REASON_STOPPED, letter);
    return err != FK_OK ? letter_refuse(remote, local, authority, letter, err) : FK_OK;
}

/* ---- selections ------------------------------------------------------------------------------------- */

/* The expression with its own text. Of the path only the text is missing. */
static fk_letter_path *letter_path_create(fk_local *local, const fk_path *path, uint32_t count)
{
    size_t len = fk_path_format(path, FK_FORM_FULL, NULL, 0);
    size_t end = fk_path_format(path, FK_FORM_NO_UID, NULL, 0);
    size_t begin = fk_path_format(path, FK_FORM_ADDRESS, NULL, 0);
    size_t size = sizeof(fk_letter_path) + len + 1;
    fk_letter_path *out =
        fk__cache_alloc(&local->cache, size, FK_SITE("path of a selection elsewhere"));
    if (out == NULL) return NULL;
    *out = (fk_letter_path){ .size = (uint32_t)size, .len = (uint32_t)len };
    fk_path_format(path, FK_FORM_FULL, out->text, len + 1);
    if (path->rules == FK_RULES_PEKKO) out->len = (uint32_t)end; /* it shows them without uid */
    out->expression = (fk_expression){ .anchor = FK_ANCHOR_ROOT,
                                       .elements = { out->text + begin, end - begin },
                                       .uid = path->uid,
                                       .count = count,
                                       .rules = (fk_rules)path->rules };
    return out;
}

static fk_err selection_put(fk_remote *remote, fk_local *local, const fk_path *path,
                            fk_letter *letter)
{
    fk_authority_effects effects = { .authority = NULL };
    fk_authority *authority = NULL;
    fk__remote_lock(remote);
    fk_err err = fk__remote_authority(remote, path, &effects, &authority);
    bool is_full = err == FK_E_LIMIT;
    letter->path->authority = authority;
    if (err == FK_OK) fk__authority_vouch(&remote->table, authority);
    if (err == FK_OK) authority->is_named = true;
    fk_line *line = NULL;
    if (err == FK_OK && remote->driver != NULL) err = fk__line_get(remote, authority, &line);
    if (err == FK_OK && line == NULL) err = letter_put(remote, authority, letter);
    /* Until the letter is on its line, which has no other way to know whose it is. */
    if (authority != NULL) authority->holds++;
    fk__remote_unlock(remote);
    if (is_full && remote->driver != NULL) fk__driver_full(remote->driver);
    fk_err refused = err != FK_OK ? letter_refuse(remote, local, authority, letter, err) : FK_OK;
    if (line != NULL) refused = fk__line_send(remote, local, line, letter, true);
    fk__remote_act(remote, local, &effects);
    fk__remote_release(remote, authority);
    return refused;
}

fk_err fk__letter_select(void *ctx, fk_local *local, const fk_expression *e, fk_node *node)
{
    fk_path path = e->address;
    path.segments = e->elements;
    path.depth = e->count;
    path.uid = e->uid;
    fk_letter *letter = letter_create(local);
    if (letter != NULL) letter->path = letter_path_create(local, &path, e->count);
    if (letter == NULL || letter->path == NULL) {
        fk_err err = local->cache.err;
        if (letter != NULL) fk__letter_free(local, letter);
        node_discard_at(local, FK_REASON_NO_MEMORY, e->elements, node); /* at least that much */
        return err;
    }
    letter->node = node;
    return selection_put(ctx, local, &path, letter);
}
