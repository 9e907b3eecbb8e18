/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_WATCHER_H
#define FK_REMOTE_WATCHER_H

/*
 * Death watch across systems. However many actors here watch one at a node, the node is told once
 * (Watch), and once when the last of them has lost interest (Unwatch). A node in which somebody is
 * watched is sent a heartbeat each second; its replies feed a failure detector. When that finds the
 * silence too long the node is lost: every bond with it ends, each is reported once, and the system
 * that was there is to be quarantined, because it may live on and believe in what has ended here.
 * A watch that comes after that is a new beginning.
 *
 * A reply carries the uid of the system. If it is another one than before, the node was restarted
 * and knows of no watches: they are sent again, and it says of each that is gone that it is.
 *
 * It remembers as well who of a node watches actors here, so that they can be told of an end and
 * forgotten with their node. A node may not make us remember without limit.
 *
 * No clock, lock or thread, as with authorities (remote/authority.h); memory is the caller's.
 */

#include "remote/bonds.h"
#include "remote/deadlines.h"
#include "remote/detector.h"

/* All zero is the default. */
typedef struct fk_watcher_config {
    uint32_t bonds_max;        /* of one node, in each direction; 0: 10,000 */
    fk_time heartbeat_every;   /* 0: 1 s */
    fk_time first_reply_after; /* the first heartbeat: from then on it is silence; 0: 1 s */
    fk_detector_config detector;
} fk_watcher_config;

/* Embedded in what the caller keeps for an authority. For all but the functions below: to read. */
typedef struct fk_watcher_node {
    fk_bond_node bonds; /* first */
    uint64_t uid;       /* that the last reply carried; 0: none since somebody is watched there */
    bool is_owed;       /* a heartbeat was sent since the last reply */
    bool was_late;      /* we were, and the node was not judged for that reason */
    fk_time heartbeat_at;
    fk_time first_at;
    fk_deadline deadline; /* the first of the two; both FK_NEVER while nobody is watched */
    fk_detector detector;
} fk_watcher_node;

typedef struct fk_watcher {
    fk_watcher_config config; /* defaults filled in */
    fk_bonds bonds;           /* the caller initialises it, and may move it */
    fk_deadlines deadlines;
} fk_watcher;

/* Written whole by each call that takes it. */
typedef struct fk_watcher_effects {
    fk_watcher_node *node; /* whom all this is about */
    bool must_watch;       /* send a Watch for the watchee */
    bool must_unwatch;     /* send an Unwatch for the watchee */
    bool must_rewatch;     /* send a Watch for each watchee of the node (fk__watcher_watchee) */
    bool must_heartbeat;   /* send one */
    bool must_quarantine;  /* the node is lost: quarantine its system, `uid` */
    bool has_ended;        /* there are bonds to be taken (fk__watcher_take) */
    uint64_t uid;          /* 0: it never replied */
} fk_watcher_effects;

/* config may be NULL. heap: the caller's, for as many nodes as may be watched at one time. The
 * caller then initialises watcher->bonds. FK_E_INVALID. */
FK_MUST_USE fk_err fk__watcher_init(fk_watcher *watcher, const fk_watcher_config *config,
                                    fk_deadline **heap, uint32_t nodes_max);
void fk__watcher_check(const fk_watcher *watcher);
/* sample: the caller's, config.detector.samples_max of them. */
void fk__watcher_node_init(fk_watcher *watcher, fk_watcher_node *node, fk_time *sample);
void fk__watcher_node_check(const fk_watcher *watcher, const fk_watcher_node *node);

/* ---- actors here watch actors of a node ----------------------------------------------------- */

/* FK_E_LIMIT: too many bonds with that node, or too many nodes. FK_E_FULL: no record is free; the
 * caller may bring more memory (fk__bonds_move) and try again. Watching twice is watching once. */
FK_MUST_USE fk_err fk__watcher_watch(fk_watcher *watcher, fk_watcher_node *node, uint64_t watchee,
                                     uint64_t who, fk_time now, fk_watcher_effects *effects);
/* Nothing happens when there is no such bond (any more). */
void fk__watcher_unwatch(fk_watcher *watcher, uint64_t watchee, uint64_t who,
                         fk_watcher_effects *effects);
/* The node says that the watchee has stopped. What it says of others' actors is not believed. */
void fk__watcher_terminated(fk_watcher *watcher, fk_watcher_node *node, uint64_t watchee,
                            fk_watcher_effects *effects);
/* A reply to a heartbeat, of the system that is there now. */
void fk__watcher_reply(fk_watcher *watcher, fk_watcher_node *node, uint64_t uid, fk_time now,
                       fk_watcher_effects *effects);

/* ---- actors of a node watch actors here ----------------------------------------------------- */

/* FK_E_LIMIT, FK_E_FULL, as above. */
FK_MUST_USE fk_err fk__watcher_watched(fk_watcher *watcher, fk_watcher_node *node, uint64_t watchee,
                                       uint64_t who);
void fk__watcher_unwatched(fk_watcher *watcher, const fk_watcher_node *node, uint64_t watchee,
                           uint64_t who);
/* An actor here has stopped. */
void fk__watcher_stopped(fk_watcher *watcher, uint64_t watchee, fk_watcher_effects *effects);

/* ---- the node as a whole -------------------------------------------------------------------- */

/* Another system answers at its address (fk_authority_effects.is_new_peer). */
void fk__watcher_renewed(fk_watcher *watcher, fk_watcher_node *node, uint64_t uid,
                         fk_watcher_effects *effects);
/* It was quarantined, for whatever reason, or is to be forgotten. */
void fk__watcher_lose(fk_watcher *watcher, fk_watcher_node *node, fk_watcher_effects *effects);

/* The watchees of a node, each once: *cursor begins at 0; 0: that was all. Nothing may change
 * meanwhile. */
uint64_t fk__watcher_watchee(const fk_watcher *watcher, const fk_watcher_node *node,
                             uint32_t *cursor);
/* The next bond that has ended, in the order of ends; false: there is none. */
FK_MUST_USE bool fk__watcher_take(fk_watcher *watcher, fk_bond_ended *out);

/* When fk__watcher_tick must be called next: FK_NEVER, or any time. */
fk_time fk__watcher_next(const fk_watcher *watcher);
/* Lets time do its work for one node. To be called again until it says false. */
bool fk__watcher_tick(fk_watcher *watcher, fk_time now, fk_watcher_effects *effects);

#endif /* FK_REMOTE_WATCHER_H */
