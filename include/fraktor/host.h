/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_HOST_H
#define FK_HOST_H

/*
 * The Linux host: for programs that bring their own allocator or event loop.
 *
 * With workers = FK_WORKERS_NONE a system has no thread of its own. fk_host_fd() becomes
 * readable when there is something to do; fk_host_run_once() does it on the calling thread.
 *
 *     struct pollfd p = { fk_host_fd(sys), POLLIN, 0 };
 *     poll(&p, 1, fk_host_timeout_ms(sys));
 *     fk_host_run_once(sys, 0);
 */

#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The host's table, to be copied and changed before fk_system_start(). A program that replaces
 * alloc must set align to what its own allocator guarantees (0 if unsure). The environment
 * variable FK_POOLS=malloc acts like config.pools_malloc. */
FK_API fk_port fk_host_port(void);

/* The thread that calls these owns the system's single worker; one thread at a time. */

/* -1 when the system has threads of its own. */
FK_API int fk_host_fd(fk_system *sys);
/* Milliseconds until the next timer; 0: run now; -1: nothing to wait for but the fd. */
FK_API int fk_host_timeout_ms(fk_system *sys);
/* Runs what is ready, then due timers, waiting up to timeout for the first of them (0: not at
 * all, FK_NEVER: as long as it takes). Returns how many turns were run. */
FK_API size_t fk_host_run_once(fk_system *sys, fk_time timeout);

#ifdef __cplusplus
}
#endif
#endif /* FK_HOST_H */
