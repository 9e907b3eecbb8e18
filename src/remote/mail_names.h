/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_MAIL_NAMES_H
#define FK_REMOTE_MAIL_NAMES_H

/*
 * Names of actors: from refs to texts and back, for one correspondent. Most messages go between a few
 * actors, so both ways are remembered in tables of fixed size where each name has one place, and the
 * next one that has the same takes it. Names under /temp are not: they come once.
 *
 * A ref is never another actor's, so its text holds for ever; what stands for a place in the peer's
 * compression table is compared with the text before it is used. A text holds as long as the actor
 * that it led to lives. The hash has no secret: a peer that finds texts with the same place makes its
 * own mail slow.
 *
 * Proxies that were only met give way to newer ones when nobody uses them (remote/proxies.h), and do
 * not see what is answered from here. So one that was not looked for while FK_NAMES_REFRESH others
 * were met is looked for again.
 */

#include "remote/mail_room.h"

enum {
    FK_NAMES = 256, /* of each kind */
    FK_NAMES_MANIFESTS = 16,
    FK_NAMES_REFRESH = 1024,
    FK_NAMES_SAMPLE = 16, /* of a name that comes often, every 16th is counted */
};

typedef struct fk_name_kept { /* a text and the room that it lies in */
    char *ptr;
    uint16_t len, size;
} fk_name_kept;

/* Where a text is in the peer's table. All zero: not looked yet. */
typedef struct fk_name_spot {
    uint16_t slot;
    uint16_t looked; /* the version of the table, and 1 */
    bool is_there;
} fk_name_spot;

typedef struct fk_name_out {
    uint64_t key; /* fk__sender_pack(); 0: none */
    fk_name_kept text;
    fk_name_spot spot;
    bool is_remote;
    uint32_t met; /* mail->met when the proxy was looked for */
} fk_name_out;

typedef struct fk_name_in {
    uint64_t hash; /* 0: none */
    fk_name_kept text;
    fk_named named;
    uint32_t met;
    uint32_t hits;
} fk_name_in;

typedef struct fk_name_manifest {
    const fk_codec *codec;
    fk_name_spot spot;
    uint32_t hits;
} fk_name_manifest;

struct fk_mail_cache {
    fk_name_in *last[2]; /* sender, recipient: most messages are like the one before */
    fk_name_out out[FK_PLACE_COUNT][FK_NAMES]; /* apart, so that none is lost while it is used */
    fk_name_in in[FK_NAMES];
    fk_name_manifest manifest[FK_NAMES_MANIFESTS];
};

/* The text of a ref, for the wire; its length is 0 when nobody knows it (any more). Good until the
 * next one for the same place. peer may be NULL: nothing is remembered. local: the caller's; NULL: one
 * from outside is borrowed. */
fk_str fk__names_text(fk_mail *mail, fk_mail_peer *peer, fk_local *local, fk_ref ref,
                      fk_mail_place place);
/* The same as the peer's table of references has it. key: fk__sender_pack(). *out is zeroed before. */
void fk__names_out_any(fk_mail *mail, fk_mail_peer *peer, uint64_t key, fk_mail_place place,
                       fk_wire_name *out);

static inline fk_name_out *fk__name_place(fk_mail_cache *cache, fk_mail_place place, uint64_t key)
{
    return &cache->out[place][(key ^ key >> 33) % FK_NAMES]; /* generations are odd */
}

/* The short way, without a call: it is known, there is no table, and nothing is to be done. */
static inline void fk__names_out(fk_mail *mail, fk_mail_peer *peer, uint64_t key,
                                 fk_mail_place place, fk_wire_name *out)
{
    const fk_name_out *name = NULL;
    if (FK_LIKELY(peer->cache != NULL && peer->refs_out == NULL)) {
        name = fk__name_place(peer->cache, place, key);
    }
    if (FK_UNLIKELY(name == NULL || name->key != key) ||
        FK_UNLIKELY(mail->met - name->met > FK_NAMES_REFRESH)) {
        fk__names_out_any(mail, peer, key, place, out);
        return;
    }
    out->text = (fk_str){ name->text.ptr, name->text.len };
}

void fk__names_manifest(fk_mail *mail, fk_mail_peer *peer, const fk_codec *codec,
                        fk_wire_name *out);

/* is_to: it must be one of this system's, and no proxy is made for another's. The text is counted for the table that we make for
 * the peer. */
void fk__names_in_any(const fk_mail_way *way, fk_str text, bool is_to, fk_named *out);

/* It is that text, and who it led to still lives. */
static inline bool fk__name_holds(const fk_name_in *name, fk_str text, fk_local *local)
{
    if (name->text.len != text.len) return false;
    if (memcmp(name->text.ptr, text.ptr, text.len) != 0) return false;
    return fk__local_resolve(local, name->named.ref) != NULL;
}

/* The first ones, and then a sample: what is rare must be seen, and what is frequent is. */
static inline bool fk__name_is_counted(uint32_t hits)
{
    return (hits & (hits - 1)) == 0 || hits % FK_NAMES_SAMPLE == 0;
}

/* The short way: it is the one that came last, and there is nothing to be done about it. */
static inline void fk__names_in(const fk_mail_way *way, fk_str text, bool is_to, fk_named *out)
{
    fk_mail_peer *peer = way->peer;
    fk_name_in *name = peer != NULL && peer->cache != NULL ? peer->cache->last[is_to] : NULL;
    bool is_last = name != NULL && fk__name_holds(name, text, way->local);
    if (FK_LIKELY(is_last && way->mail->met - name->met <= FK_NAMES_REFRESH)) {
        bool is_counted = peer->refs_in != NULL && fk__name_is_counted(name->hits + 1);
        if (FK_LIKELY(!is_counted)) {
            name->hits++;
            *out = name->named;
            return;
        }
    }
    fk__names_in_any(way, text, is_to, out);
}

/* A manifest came; it is counted. */
void fk__names_manifest_came(fk_mail *mail, fk_mail_peer *peer, const fk_codec *codec);

void fk__names_fini(fk_mail *mail, fk_mail_peer *peer);

#endif /* FK_REMOTE_MAIL_NAMES_H */
