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

#include "fraktor/shutdown.h"
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

/* ---- signals -------------------------------------------------------------------------------
 * The library touches no signal unless it is asked to. */

#define FK_EXIT_DEADLINE 124 /* as timeout(1) has it */

typedef struct fk_signal_config {
    uint32_t size;    /* sizeof(fk_signal_config), or 0 for the layout of release 0.1 */
    int progress_fd;  /* what happens is written there, a line each; 0: nowhere */
    fk_time deadline; /* from the first signal to fk_system_stop(); 0: 30 s; FK_NEVER: none */
} fk_signal_config;

/* From now on SIGTERM and SIGINT run the coordinated shutdown of the system (fraktor/shutdown.h); so
 * for each system of the process that asks. The program goes on: its main thread typically is in
 * fk_shutdown_await(), calls fk_system_stop() and returns from main with a code of its own. If a
 * phase aborts the run, the system is terminated all the same.
 *
 * A second signal ends the process at once, with code 128 + the signal's number (SIGINT 130, SIGTERM
 * 143). When a system has not been stopped by its deadline, the process ends with FK_EXIT_DEADLINE.
 *
 * When the last system that asked has been stopped, the handlers from before are back. A signal that
 * was ignored before stays ignored. config may be NULL. Any thread. FK_E_STATE: it was called for
 * this system before. FK_E_INVALID, FK_E_OS, FK_E_NOMEM, FK_E_STOPPING. */
FK_API FK_MUST_USE fk_err fk_host_shutdown_on_signal(fk_system *sys,
                                                     const fk_signal_config *config);

/* A wild pointer in an actor ends the process, as in any C program. After this call a line is written
 * to fd before that: the signal, the actor, the type of the message it was handling. For the whole
 * process and until its end: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT; what the program had installed
 * for them, or the kernel, comes after it. FK_E_INVALID, FK_E_OS. */
FK_API FK_MUST_USE fk_err fk_host_report_crashes(int fd);

#ifdef __cplusplus
}
#endif
#endif /* FK_HOST_H */
