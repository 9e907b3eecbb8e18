/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_REMOTE_H
#define FK_REMOTE_REMOTE_H

/*
 * The remote part of a system: what stands behind references to actors of other systems.
 *
 * Such a reference is a slot like any other, whose cell is marked FK_GATE_REMOTE and has a proxy
 * instead of an actor (remote/proxies.h). The cell's senders come here, and the authority of the path
 * decides (remote/authority.h): what may be sent goes onto the line to that system (remote/line.h),
 * from where the driver takes it (remote/driver.h); everything else waits, or is refused. Without
 * remoting enabled in the config everything waits.
 *
 * One lock, for the table of authorities and the proxies. Nobody is called with it held: what a step
 * of an authority brings about is a value, acted on when the lock is free. Only fk__watch_remote_ended(),
 * which leaves a mark at a cell, is called under it where the state must not change meanwhile.
 */

#include "remote/authority.h"
#include "remote/driver.h"
#include "remote/letter.h"
#include "remote/proxies.h"

struct fk_remote {
    fk_system *sys;
    uint64_t uid; /* of this system, not 0; another one each time it starts */
    fk_lock lock;
    fk_authority_table table;
    fk_proxies proxies;
    fk_ref keeper;     /* without a driver: the actor that sees to the time, /system/authorities */
    fk_driver *driver; /* NULL: not enabled */
};

/* Fills sys->remote. sys->remote.destroy, which fk__system_destroy() calls, undoes it. */
FK_MUST_USE fk_err fk__remote_attach(fk_system *sys, const fk_system_config *config);

static inline fk_remote *fk__remote_of(const fk_system *sys)
{
    return (fk_remote *)sys->remote.ctx;
}

static inline void fk__remote_lock(fk_remote *remote)
{
    fk__mem_lock(&remote->sys->mem, &remote->lock);
}

static inline void fk__remote_unlock(fk_remote *remote)
{
    fk__mem_unlock(&remote->sys->mem, &remote->lock);
}

/* Under the lock: the authority of a path, made if need be. FK_E_INVALID, FK_E_LIMIT, FK_E_NOMEM. */
FK_MUST_USE fk_err fk__remote_authority(fk_remote *remote, const fk_path *path,
                                        fk_authority_effects *effects, fk_authority **out);
/* Acts on what a step of an authority has brought about, without the lock: events, dead letters; the
 * rest goes to the driver. The authority must be held, unless it is the driver's thread, because only
 * that one forgets any. */
void fk__remote_act(fk_remote *remote, fk_local *local, fk_authority_effects *effects);
/* It was held while somebody looked at it without the lock. NULL: nobody was. */
void fk__remote_release(fk_remote *remote, fk_authority *authority);
/* The system is out, and all its actors with it: whoever watches one is told, once; unless it is not
 * out any more. */
void fk__remote_lost(fk_remote *remote, fk_local *local, const fk_authority *authority);
/* There may be a new deadline (fk__authority_next). Without the lock. */
void fk__remote_replan(fk_remote *remote, fk_local *local);

/* A ref for an actor of another system that was only met, in what somebody sent. The authority is made
 * if need be; one of a quarantined system is given, too. As sys->remote.resolve, which is for those
 * asked for. */
FK_MUST_USE fk_err fk__remote_meet(fk_remote *remote, fk_local *local, const fk_path *path,
                                   fk_ref *out);

/* A proxy, which must be that authority's, watches one more actor here, or one less. FK_E_FORBIDDEN,
 * FK_E_LIMIT: too many do. */
FK_MUST_USE fk_err fk__remote_pin(fk_remote *remote, fk_ref ref, const fk_authority *authority);
void fk__remote_unpin(fk_remote *remote, fk_ref ref);

/* "fraktor.tcp://bank@10.0.0.7:2552", as an address is written. */
#define FK_ADDRESS_MAX 544
fk_str fk__remote_address(const fk_remote *remote, const fk_authority *authority,
                          char buf[FK_ADDRESS_MAX]);

#endif /* FK_REMOTE_REMOTE_H */
