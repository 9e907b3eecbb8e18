/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_PROXIES_H
#define FK_REMOTE_PROXIES_H

/*
 * Proxies: what stands for actors of other systems. There is one per path. Those that a program has
 * asked for (fk_resolve) stay for as long as the system, up to a limit. Those that are only *met*,
 * because they sent us something or were in a message, are as many as others choose to make, so
 * they give way to newer ones, the one unused for the longest time first; a reference to one that
 * gave way is stale, as that of an actor that has ended. One that is watched, or asked for after
 * all, stays, and leaves its place among those that are met to others.
 *
 * What all systems share none may use up. Who has more of those that are met than others gives way
 * first, so that a system can take from another one only what that has more than itself. And those
 * that stay because they watch actors here, which is their own choice, are a few of each system and at
 * most half of all, so that there is always room for whoever sends something.
 *
 * Their memory is never freed before the system, nor is it anything but a proxy: a sender may look
 * at one that is just giving way. What such a letter is for is checked by its generation, under the
 * lock, before it is written.
 *
 * Those that are met give way as well when their system is forgotten (fk__proxies_retire), and all of
 * them when others need its place (fk__proxies_evict).
 *
 * Everything here is under the lock of the remote part, except where it is said.
 */

#include "core/system.h"
#include "remote/authority.h"

typedef struct fk_remote_proxy {
    fk_proxy proxy; /* first: the cell's state; its text changes under the lock alone */
    struct fk_remote_proxy *next;          /* in its bucket */
    struct fk_remote_proxy *older, *newer; /* in the queue that it is in, if any */
    struct fk_proxy_queue *queue;
    fk_authority *authority;                       /* NULL: it is spare */
    struct fk_remote_proxy *sibling, **link;       /* of the same authority */
    struct fk_remote_proxy *kin_older, *kin_newer; /* the same, of those that may give way */
    uint32_t *count;                               /* where it counts: held, kept or met */
    fk_word line; /* fk_line of the authority; without the lock it may be that of a later one, or by
                     now that of another authority; NULL: there is no driver */
    uint64_t hash;
    fk_ref ref;
    bool is_held;    /* asked for: stays */
    bool is_watched; /* stays as long as that is so */
    bool has_news;   /* the driver has to look at is_watched: stays until it has */
    bool is_worn;    /* its cell has no more generations: stays */
    bool is_staying; /* for one of these, or the pins; counted by its authority */
    uint32_t pins;   /* watches of its own, on actors here: stays while there are some */
    struct fk_remote_proxy *news_next; /* the driver's, while it has news */
    char *text;                        /* of text_size bytes */
    uint32_t text_size;
} fk_remote_proxy;

typedef struct fk_proxy_queue {
    fk_remote_proxy *oldest, *newest;
    uint32_t count;
} fk_proxy_queue;

typedef struct fk_proxies {
    fk_system *sys;
    uint32_t held_max, kept_max; /* 65,536 each */
    uint32_t met_max;  /* 16,384; those that are watched no more may be over it for a while */
    uint32_t pins_max; /* of one system: an eighth of these; of all: half of them */
    uint32_t held, kept, met; /* asked for; watched, or with news of that; all others */
    uint32_t pinned;          /* of any kind, with pins */
    fk_authority *largest;    /* had most of those that are met, when one was last made; or NULL */
    bool is_over;        /* authorities are gone: nothing gives way any more, and nothing is made */
    fk_proxy_queue idle; /* those met that may give way, by use */
    fk_proxy_queue watched; /* those watched, in no particular order */
    fk_remote_proxy *spare; /* those that stand for nobody */
    fk_remote_proxy **bucket;
    uint32_t bucket_count;
} fk_proxies;

/* met_max, pins_max: 0 means the default. */
FK_MUST_USE fk_err fk__proxies_init(fk_proxies *proxies, fk_system *sys, uint32_t met_max,
                                    uint32_t pins_max);
void fk__proxies_fini(fk_proxies *proxies);
/* Walks all and asserts what must hold of them. */
void fk__proxies_check(const fk_proxies *proxies);

/* The proxy for a path in its canonical form, made if there is none; both count as a use. is_held: it
 * was asked for. FK_E_LIMIT: too many that stay; FK_E_NOMEM. Then nothing has changed. */
FK_MUST_USE fk_err fk__proxies_get(fk_proxies *proxies, fk_local *local, fk_str path,
                                   fk_authority *authority, bool is_held, fk_remote_proxy **out);
/* The proxy that a ref names, which counts as a use; NULL: it has given way, or never was one. */
fk_remote_proxy *fk__proxies_find(fk_proxies *proxies, fk_ref ref);
/* Whether it is watched, and whether that is news to the driver. False: it is not, because too many are. */
FK_MUST_USE bool fk__proxies_watched(fk_proxies *proxies, fk_remote_proxy *proxy, bool is_watched);
void fk__proxies_news(fk_proxies *proxies, fk_remote_proxy *proxy, bool has_news);
/* It watches one more actor here, or one less. FK_E_LIMIT: too many do, of its system or of all. */
FK_MUST_USE fk_err fk__proxies_pin(fk_proxies *proxies, fk_remote_proxy *proxy);
void fk__proxies_unpin(fk_proxies *proxies, fk_remote_proxy *proxy);
/* Goes round: the first of those that are watched, which becomes the last. NULL: there are none. */
fk_remote_proxy *fk__proxies_next_watched(fk_proxies *proxies);

/* Of an authority that is to be forgotten, none of which must stay: each gives way. False: one stays
 * after all, because it is worn out. */
FK_MUST_USE bool fk__proxies_retire(fk_proxies *proxies, fk_authority *authority);

/* Of one that others need the place of: also those that were asked for. FK_E_FULL: so many have given
 * way, and there are more; FK_E_STATE: one is watched, or watches, or is worn out, and stays. */
FK_MUST_USE fk_err fk__proxies_evict(fk_proxies *proxies, fk_authority *authority, uint32_t most);

#endif /* FK_REMOTE_PROXIES_H */
