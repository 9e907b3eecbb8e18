/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_ORIGINS_H
#define FK_REMOTE_ORIGINS_H

/*
 * Origins: the incarnations of other systems that have shaken hands with us. A frame names its
 * sender by the uid of its system alone, so this is how one finds whose it is, and the numbers of
 * system messages are counted here, per origin.
 *
 * Each authority remembers its last few incarnations: late frames of an old one still find their
 * place. Memory is the caller's: the origins of an authority lie in what he keeps for it, and only
 * hang in this table. A uid belongs to one authority at a time, because nobody may speak in the name
 * of a system that is another's.
 */

#include "remote/authority.h"
#include "remote/delivery.h"

enum { FK_PEER_ORIGINS = 4 };

typedef struct fk_peer fk_peer;

typedef struct fk_origin {
    uint64_t uid; /* 0: not in use */
    fk_peer *peer;
    fk_inbox inbox;
    struct fk_origin *chain; /* next in its bucket */
} fk_origin;

/* Embedded in what the caller keeps for an authority. */
struct fk_peer {
    fk_authority *authority;
    uint32_t next; /* the place that the next incarnation gets: the one met longest ago */
    fk_origin origin[FK_PEER_ORIGINS];
};

typedef struct fk_origins {
    fk_origin **bucket; /* the caller's */
    uint32_t bucket_count;
    uint64_t key;
} fk_origins;

/* bucket: zeroed, a power of two of them; about as many as there will be authorities. key should be
 * random: peers choose their uids. */
void fk__origins_init(fk_origins *origins, fk_origin **bucket, uint32_t bucket_count, uint64_t key);
/* NULL: nobody has shaken hands with that uid, or so long ago that it is forgotten. */
fk_origin *fk__origins_find(const fk_origins *origins, uint64_t uid);

void fk__peer_init(fk_peer *peer, fk_authority *authority);
/* Before the authority or the peer goes. */
void fk__peer_fini(fk_origins *origins, fk_peer *peer);
/* The origin for that uid: the one there is, or a new one, for which the oldest gives way. The uid
 * must not be 0 or another peer's. */
fk_origin *fk__peer_meet(fk_origins *origins, fk_peer *peer, uint64_t uid);

#endif /* FK_REMOTE_ORIGINS_H */
