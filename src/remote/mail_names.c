/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/mail_names.h"

#include "core/path.h"
#include "core/promise.h"
#include "core/registry.h"
#include "core/select.h"

/* ---- what is kept ------------------------------------------------------------------------------- */

static FK_COLD fk_mail_cache *cache_create(fk_mail *mail, fk_mail_peer *peer)
{
    void *memory;
    if (peer == NULL) return NULL;
    size_t size = sizeof(fk_mail_cache);
    if (fk__mem_alloc(&mail->sys->mem, size, FK_SITE("names of a peer"), &memory) != FK_OK) {
        return NULL;
    }
    memset(memory, 0, size);
    peer->cache = memory;
    return peer->cache;
}

/* NULL: there is no memory for it, and everything is looked for each time. */
static inline fk_mail_cache *names_cache(fk_mail *mail, fk_mail_peer *peer)
{
    if (FK_LIKELY(peer != NULL && peer->cache != NULL)) return peer->cache;
    return cache_create(mail, peer);
}

static void kept_free(fk_mem *mem, fk_name_kept *kept)
{
    fk__mem_free(mem, kept->ptr, kept->size);
}

void fk__names_fini(fk_mail *mail, fk_mail_peer *peer)
{
    fk_mail_cache *cache = peer->cache;
    fk_mem *mem = &mail->sys->mem;
    if (cache == NULL) return;
    for (uint32_t i = 0; i < FK_PLACE_COUNT * FK_NAMES; i++) {
        kept_free(mem, &cache->out[i / FK_NAMES][i % FK_NAMES].text);
    }
    for (uint32_t i = 0; i < FK_NAMES; i++) kept_free(mem, &cache->in[i].text);
    fk__mem_free(mem, cache, sizeof(*cache));
    peer->cache = NULL;
}

/* In the room that is there, if it is large enough. */
static bool kept_set(fk_mail *mail, fk_name_kept *kept, fk_str text)
{
    fk_mem *mem = &mail->sys->mem;
    void *memory;
    if (text.len > FK_WIRE_LITERAL_MAX) return false;
    if (text.len > kept->size) {
        size_t size = (text.len + 31) & ~(size_t)31;
        if (fk__mem_alloc(mem, size, FK_SITE("name of an actor"), &memory) != FK_OK) return false;
        kept_free(mem, kept);
        kept->ptr = memory;
        kept->size = (uint16_t)size;
    }
    memcpy(kept->ptr, text.ptr, text.len);
    kept->len = (uint16_t)text.len;
    return true;
}

static fk_str kept_text(const fk_name_kept *kept)
{
    return (fk_str){ kept->ptr, kept->len };
}

/* ---- from refs to texts -------------------------------------------------------------------------- */

/* "pekko.tcp://" is what people write; between systems it is "pekko://". */
static size_t drop_tcp(const fk_system *sys, char *text, size_t len)
{
    fk_str tcp = sys->ruleset->scheme[FK_SCHEME_TCP];
    size_t kept = sys->ruleset->scheme[FK_SCHEME_LOCAL].len;
    if (len <= tcp.len || memcmp(text, tcp.ptr, tcp.len) != 0) return len;
    memmove(text + kept, text + tcp.len, len - tcp.len);
    return len - (tcp.len - kept);
}

static size_t proxy_text(fk_mail *mail, fk_ref ref, char *buf, size_t size)
{
    fk_remote *remote = mail->remote;
    size_t len = 0;
    fk__remote_lock(remote);
    const fk_remote_proxy *proxy = fk__proxies_find(&remote->proxies, ref);
    if (proxy != NULL && proxy->proxy.path.len < size) {
        len = proxy->proxy.path.len;
        memcpy(buf, proxy->proxy.path.ptr, len);
    }
    fk__remote_unlock(remote);
    return len;
}

static size_t actor_text(fk_mail *mail, fk_local *local, fk_ref ref, char *buf, size_t size)
{
    fk_local *borrowed = local == NULL ? fk__local_enter(mail->sys) : NULL;
    size_t len = fk__path_of(local != NULL ? local : borrowed, ref, buf, size);
    if (borrowed != NULL) fk__local_leave(borrowed);
    return len < size ? len : 0;
}

/* Into a place of the mail's. */
static fk_str text_anew(fk_mail *mail, fk_local *local, fk_ref ref, const fk_cell *cell,
                        fk_mail_place place)
{
    char *buf = mail->place[place];
    size_t len = fk__cell_is_remote(cell) ? proxy_text(mail, ref, buf, mail->place_size)
                                          : actor_text(mail, local, ref, buf, mail->place_size);
    return (fk_str){ buf, drop_tcp(mail->sys, buf, len) };
}

/* The proxy is in use. */
static void name_refresh(fk_mail *mail, fk_ref ref)
{
    fk_remote *remote = mail->remote;
    fk__remote_lock(remote);
    (void)fk__proxies_find(&remote->proxies, ref);
    fk__remote_unlock(remote);
}

/* Finds the text and keeps it, in place of what is there. NULL: it cannot be kept; *text is then what
 * it is, in its place. */
static FK_COLD fk_name_out *out_anew(fk_mail *mail, fk_local *local, fk_ref ref,
                                     fk_mail_place place, fk_name_out *name, fk_str *text)
{
    const fk_cell *cell = fk__slots_at(&mail->sys->slots, ref.slot);
    *text = FK_STR("");
    if (cell == NULL || ref.system != mail->sys->id || (ref.generation & 1) == 0) return NULL;
    *text = text_anew(mail, local, ref, cell, place);
    if (name == NULL || text->len == 0 || fk__cell_is_promise(cell)) return NULL;
    name->key = 0;
    if (!kept_set(mail, &name->text, *text)) return NULL;
    name->key = fk__sender_pack(ref.slot, ref.generation);
    name->spot = (fk_name_spot){ 0, 0, false };
    name->is_remote = fk__cell_is_remote(cell);
    name->met = mail->met;
    return name;
}

/* As out_anew(), if it is not there already. */
static fk_name_out *out_get(fk_mail *mail, fk_mail_peer *peer, fk_local *local, fk_ref ref,
                            fk_mail_place place, fk_str *text)
{
    fk_mail_cache *cache = names_cache(mail, peer);
    if (cache == NULL) return out_anew(mail, local, ref, place, NULL, text);
    uint64_t key = fk__sender_pack(ref.slot, ref.generation);
    fk_name_out *name = fk__name_place(cache, place, key);
    if (name->key != key) return out_anew(mail, local, ref, place, name, text);
    if (mail->met - name->met > FK_NAMES_REFRESH) {
        if (name->is_remote) name_refresh(mail, ref);
        name->met = mail->met;
    }
    return name;
}

fk_str fk__names_text(fk_mail *mail, fk_mail_peer *peer, fk_local *local, fk_ref ref,
                      fk_mail_place place)
{
    fk_str text;
    const fk_name_out *name = out_get(mail, peer, local, ref, place, &text);
    return name != NULL ? kept_text(&name->text) : text;
}

/* ---- by the peer's tables ------------------------------------------------------------------------ */

static bool spot_holds(const fk_name_spot *spot, const fk_texts *texts, fk_str text)
{
    if (!spot->is_there || spot->slot >= texts->count) return false;
    const fk_texts_slot *slot = &texts->slot[spot->slot];
    return slot->len == text.len && memcmp(slot->ptr, text.ptr, text.len) == 0;
}

/* Only versions up to 127 come, and then again from 0: so one that was seen before may be another
 * table. A text that is not found in it for that reason is merely not compressed. */
static inline void spot_name(fk_name_spot *spot, const fk_wire_table *table, fk_str text,
                             fk_wire_name *out)
{
    out->text = text;
    if (table == NULL || table->texts.count == 0) return;
    bool holds = spot_holds(spot, &table->texts, text);
    if (!holds && (spot->is_there || spot->looked != table->version + 1u)) {
        spot->slot = fk__texts_find(&table->texts, text);
        spot->is_there = holds = spot->slot != FK_TEXTS_NONE;
        spot->looked = (uint16_t)(table->version + 1u);
    }
    if (!holds) return;
    out->index = (uint16_t)table->texts.slot[spot->slot].number;
    out->is_compressed = true;
}

void fk__names_out_any(fk_mail *mail, fk_mail_peer *peer, uint64_t key, fk_mail_place place,
                       fk_wire_name *out)
{
    fk_ref ref = fk__sender_ref(key, mail->sys->id);
    fk_name_out *name = out_get(mail, peer, NULL, ref, place, &out->text);
    if (FK_UNLIKELY(name == NULL)) return; /* it comes once: its peer does not count it either */
    spot_name(&name->spot, peer->refs_out, kept_text(&name->text), out);
}

/* The place of a codec's manifest; NULL: there is none. */
static fk_name_manifest *name_manifest(fk_mail *mail, fk_mail_peer *peer, const fk_codec *codec)
{
    fk_mail_cache *cache = names_cache(mail, peer);
    if (cache == NULL) return NULL;
    uint64_t mixed = fk__mix64((uintptr_t)codec);
    fk_name_manifest *name = &cache->manifest[mixed % FK_NAMES_MANIFESTS];
    if (name->codec != codec) *name = (fk_name_manifest){ .codec = codec };
    return name;
}

void fk__names_manifest(fk_mail *mail, fk_mail_peer *peer, const fk_codec *codec, fk_wire_name *out)
{
    out->text = fk_codec_manifest(codec);
    fk_name_manifest *name = peer->manifests_out != NULL ? name_manifest(mail, peer, codec) : NULL;
    if (name != NULL) spot_name(&name->spot, peer->manifests_out, out->text, out);
}

/* ---- from texts to refs -------------------------------------------------------------------------- */

#define NAMES_FACTOR 0x9e3779b97f4a7c15u

static uint64_t names_hash(fk_str text)
{
    uint64_t hash = text.len * NAMES_FACTOR;
    const char *at = text.ptr, *end = text.ptr + text.len;
    uint64_t word;
    for (; end - at > 8; at += 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ word) * NAMES_FACTOR;
        hash ^= hash >> 32;
    }
    if (text.len >= 8) {
        memcpy(&word, end - 8, 8); /* some of it for the second time */
        hash = (hash ^ word) * NAMES_FACTOR;
    } else {
        for (; at != end; at++) hash = (hash ^ (unsigned char)*at) * NAMES_FACTOR;
    }
    hash ^= hash >> 32;
    return hash != 0 ? hash : 1;
}

static fk_reason reason_missed(const fk_path *path)
{
    if (fk_path_top(path) == FK_TOP_TEMP) return FK_REASON_LATE_REPLY;
    return path->uid != 0 ? FK_REASON_WRONG_INCARNATION : FK_REASON_NO_RECEIVER;
}

static void find_own(fk_mail *mail, const fk_path *path, fk_named *out)
{
    fk_system *sys = mail->sys;
    uint64_t uid;
    out->is_own = true;
    if (!fk__registry_find(sys, path, &out->ref, &uid)) {
        out->ref = FK_REF_NONE;
        out->miss = (uint8_t)reason_missed(path);
        return;
    }
    /* By where it is and not by how it was written: there may be ".." in it. */
    bool is_root = out->ref.slot == sys->top.root->slot;
    out->is_guarded = is_root || fk__is_below(sys, out->ref, sys->top.system);
}

static void find_other(fk_mail *mail, fk_local *local, const fk_path *path, fk_named *out)
{
    fk_err err = fk__remote_meet(mail->remote, local, path, &out->ref);
    mail->met++;
    if (err == FK_OK) return;
    out->ref = FK_REF_NONE;
    /* A system that cannot be named: there is nobody. */
    if (err == FK_E_NOMEM || err == FK_E_LIMIT) out->err = (uint8_t)err;
}

/* Says whether it is worth keeping. */
static bool names_find(const fk_mail_way *way, fk_str text, bool is_to, fk_named *out)
{
    fk_mail *mail = way->mail;
    fk_path path;
    *out = (fk_named){ .miss = FK_REASON_NO_RECEIVER };
    fk_err err = fk_path_parse(&mail->sys->paths, text, &path, NULL);
    if (err != FK_OK) {
        out->err = (uint8_t)err;
        out->miss = FK_REASON_BAD_PATH;
        return false;
    }
    if (path.host.len == 0) return false; /* no system is called that, on the wire */
    if (fk__registry_is_own(mail->sys, &path))
        find_own(mail, &path, out);
    else if (!is_to)
        find_other(mail, way->local, &path, out);
    return !fk_ref_is_none(out->ref) && fk_path_top(&path) != FK_TOP_TEMP;
}

static void in_keep(fk_mail *mail, fk_name_in *name, uint64_t hash, fk_str text,
                    const fk_named *named)
{
    name->hash = 0;
    name->named = (fk_named){ .ref = FK_REF_NONE }; /* whatever it was called */
    if (!kept_set(mail, &name->text, text)) return;
    name->hash = hash;
    name->named = *named;
    name->met = mail->met;
    name->hits = 1;
}

static void in_anew(const fk_mail_way *way, fk_str text, bool is_to, uint64_t hash, fk_named *out)
{
    fk_mail_peer *peer = way->peer;
    if (!names_find(way, text, is_to, out) || peer == NULL) return;
    if (peer->cache != NULL) {
        in_keep(way->mail, &peer->cache->in[hash % FK_NAMES], hash, text, out);
    }
    if (peer->refs_in != NULL) fk__compression_hit(peer->refs_in, text);
}

/* NULL: it is not known, and *out says who it is. */
static fk_name_in *in_look(const fk_mail_way *way, fk_str text, bool is_to, fk_named *out)
{
    fk_mail_cache *cache = names_cache(way->mail, way->peer);
    uint64_t hash = names_hash(text);
    fk_name_in *name = cache != NULL ? &cache->in[hash % FK_NAMES] : NULL;
    if (name == NULL || name->hash != hash || !fk__name_holds(name, text, way->local)) {
        in_anew(way, text, is_to, hash, out);
        return NULL;
    }
    /* What is the last one's needs no second look: see fk__names_in(). */
    if (!is_to || name->named.is_own) cache->last[is_to] = name;
    return name;
}

void fk__names_in_any(const fk_mail_way *way, fk_str text, bool is_to, fk_named *out)
{
    fk_mail_peer *peer = way->peer;
    fk_mail *mail = way->mail;
    fk_name_in *name = in_look(way, text, is_to, out);
    if (name == NULL) return;
    *out = name->named;
    if (peer->refs_in != NULL && fk__name_is_counted(++name->hits)) {
        fk__compression_hit(peer->refs_in, text);
    }
    bool is_own = name->named.is_own;
    if (mail->met - name->met > FK_NAMES_REFRESH) {
        if (!is_own) name_refresh(mail, name->named.ref);
        name->met = mail->met;
    }
    if (is_to && !is_own) *out = (fk_named){ .miss = FK_REASON_NO_RECEIVER };
}

void fk__names_manifest_came(fk_mail *mail, fk_mail_peer *peer, const fk_codec *codec)
{
    if (peer->manifests_in == NULL) return;
    fk_str text = fk_codec_manifest(codec);
    fk_name_manifest *name = name_manifest(mail, peer, codec);
    if (name != NULL && !fk__name_is_counted(++name->hits)) return;
    fk__compression_hit(peer->manifests_in, text);
}
