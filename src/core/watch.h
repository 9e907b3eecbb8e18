/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_WATCH_H
#define FK_CORE_WATCH_H

/*
 * Death watch. Each watch is one block, a *vigil*, made by the watcher with all that will ever be
 * needed for it, so that nothing after fk_watch() can fail. It goes to the one who is watched as a
 * signal, lies in its list, comes back as a signal when that one has ended, and lies in the
 * watcher's mailbox as (the contents of) a message until that is handled.
 *
 * Whoever ends a watch before its time sends the vigil after itself: its second signal takes it out
 * of the list, or finds that it has left already. So it is in up to two places at once, which are
 * counted, and the last place to let go frees it.
 *
 * An actor of another system is watched in the same way: the vigils lie in the list of its proxy's cell,
 * so that the remote part has to see to one watch, however many there are here.
 */

#include "core/turn.h"

/* A signal of this kind arrived at a cell, whoever lives there now. */
void fk__watch_signal(fk_worker *worker, fk_cell *cell, fk_signal *signal, uint32_t kind);
/* The cell's actor watches another, by a plain fk_terminated or, when type is not NULL, by msg, which
 * is the caller's still when this fails. The caller has the cell's token. */
FK_MUST_USE fk_err fk__watch(fk_local *local, fk_cell *cell, fk_ref actor, const fk_out *msg);

/* The cell has just ended and so do its watches; before its extras go. */
void fk__watch_end(fk_worker *worker, fk_cell *cell);
/* Its watchers: taken, so that they can be told when the cell is not ours any more. */
fk_vigil *fk__watch_take(fk_cell *cell);
void fk__watch_tell(fk_local *local, fk_vigil *watchers);

/* An actor of another system has ended, or its system has: all who watch it by this ref, a proxy's, are
 * told. Any thread; needs no memory. Twice is once, unless somebody has begun to watch meanwhile. */
void fk__watch_remote_ended(fk_local *local, fk_ref ref, bool existence_confirmed,
                            bool address_terminated);
/* The same on the thread that runs the proxy's cell, when it is asked to stop. */
void fk__watch_remote_stop(fk_worker *worker, fk_cell *cell);

/* A promise that has just ended: what watched it until now is in its signals. */
void fk__watch_promise(fk_local *local, fk_cell *cell);
/* What signals and watchers a cell of a system that is given up has. */
void fk__watch_sweep(fk_local *local, fk_cell *cell);

/* The message in the mailbox that carries a vigil. False: nobody wants it any more; else *out is what
 * the watcher is to see, and the node it comes from: the same, or the one given to fk_watch_with(). */
extern const fk_type fk__type_notice;
bool fk__watch_arrived(fk_worker *worker, fk_cell *cell, fk_node *node, fk_node **from,
                       fk_msg *out);
/* The contents of such a node, to be let go of. */
void fk__watch_drop(fk_cache *cache, fk_node *node);
/* What the watcher sees of a vigil without a message of its own. */
const fk_terminated *fk__watch_terminated(const fk_node *node);

#endif /* FK_CORE_WATCH_H */
