/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_HOST_PLACEMENT_DRIVER_H
#define FK_HOST_PLACEMENT_DRIVER_H

/*
 * The placement driver: two threads that do for a cluster what may block. Each has a store of its
 * own and a queue of jobs (cluster/job.h), which it gives to the store in batches:
 *
 *     <system>-store   the state of grains: LOAD, STORE, REMOVE, PEEK, LIST
 *     <system>-lease   all else; it also looks, while it is there, whether the members have changed
 *
 * so that a lease is renewed in time however long a disk takes.
 */

#include "cluster/job.h"

typedef struct fk_placement_driver fk_placement_driver;

/* Opens the stores and starts the threads. more: as for fk_store_open(). poll_every: how often the
 * store's stamp is looked at; 0: never. On failure nothing is left, and *why, unless why is NULL,
 * is a static sentence for people: what fk_store_open() gives, FK_E_NOMEM, FK_E_LIMIT, FK_E_OS. */
FK_MUST_USE fk_err fk__placement_driver_open(fk_system *sys, fk_str url,
                                             const fk_store_provider *const *more,
                                             fk_time poll_every, fk_placement_driver **out,
                                             const char **why);
/* submit() may be called on any thread, also beside close(), but not after it: that ends the driver
 * and frees it. A job without a maker (`to` is FK_REF_NONE) is freed when it is done. */
fk_cluster_port fk__placement_driver_port(fk_placement_driver *driver);

/* changed(ctx, is_new) is called on the driver's thread, once every poll_every; not after close(). Once.
 * is_new: the members may have changed since it last returned true, or since the driver was opened. */
void fk__placement_driver_watch(fk_placement_driver *driver,
                                bool (*changed)(void *ctx, bool is_new), void *ctx);

/* Submits the job and waits for it, on a thread that is not the system's, and not beside close().
 * FK_OK: it is done, its op says what came of it, and it is the caller's again. FK_E_TIMEOUT:
 * nobody knows what will come of it; FK_E_STOPPING: nothing was done. Then the job is gone; so it
 * must own all that its op points to. */
FK_MUST_USE fk_err fk__placement_driver_do(fk_placement_driver *driver, fk_store_job *job,
                                           fk_time timeout);

#endif /* FK_HOST_PLACEMENT_DRIVER_H */
