/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/origins.h"

void fk__origins_init(fk_origins *origins, fk_origin **bucket, uint32_t bucket_count, uint64_t key)
{
    FK_ASSERT(bucket_count > 0);
    FK_ASSERT((bucket_count & (bucket_count - 1)) == 0);
    *origins = (fk_origins){ bucket, bucket_count, key };
}

static fk_origin **origins_bucket(const fk_origins *origins, uint64_t uid)
{
    return &origins->bucket[fk__mix64(uid ^ origins->key) & (origins->bucket_count - 1)];
}

fk_origin *fk__origins_find(const fk_origins *origins, uint64_t uid)
{
    fk_origin *origin = *origins_bucket(origins, uid);
    while (origin != NULL && origin->uid != uid) origin = origin->chain;
    return origin;
}

static void origins_remove(fk_origins *origins, fk_origin *origin)
{
    if (origin->uid == 0) return;
    fk_origin **link = origins_bucket(origins, origin->uid);
    while (*link != origin) link = &(*link)->chain;
    *link = origin->chain;
    origin->uid = 0;
}

void fk__peer_init(fk_peer *peer, fk_authority *authority)
{
    *peer = (fk_peer){ .authority = authority };
}

void fk__peer_fini(fk_origins *origins, fk_peer *peer)
{
    for (uint32_t i = 0; i < FK_PEER_ORIGINS; i++) origins_remove(origins, &peer->origin[i]);
}

fk_origin *fk__peer_meet(fk_origins *origins, fk_peer *peer, uint64_t uid)
{
    fk_origin *origin = fk__origins_find(origins, uid);
    FK_ASSERT(uid != 0);
    if (origin != NULL) {
        FK_ASSERT(origin->peer == peer);
        return origin;
    }
    origin = &peer->origin[peer->next];
    peer->next = (peer->next + 1) % FK_PEER_ORIGINS;
    origins_remove(origins, origin);
    fk_origin **bucket = origins_bucket(origins, uid);
    *origin = (fk_origin){ .uid = uid, .peer = peer, .chain = *bucket };
    *bucket = origin;
    return origin;
}
