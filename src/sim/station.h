/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_STATION_H
#define FK_SIM_STATION_H

/*
 * Stations: addresses at which systems live, one after the other. A system runs as on the host: its
 * workers are threads, and that of worker 0 is the driver's as well (remote/driver.h). It can end in
 * order; be paused, when nothing of it runs while time and input go on; or crash, when all of it is
 * gone at once, at whatever point its threads stand.
 */

#include "core/system.h"
#include "remote/driver.h"
#include "sim/machine.h"
#include "sim/network.h"

#define FK_STATIONS        4u
#define FK_STATION_WORKERS 2u

typedef enum fk_station_state {
    FK_STATION_EMPTY = 0,
    FK_STATION_RUNNING,
    FK_STATION_ENDING,  /* asked to terminate */
    FK_STATION_LEAVING, /* terminated: its threads are returning */
} fk_station_state;

typedef struct fk_station {
    uint32_t number; /* also as host of the network */
    fk_station_state state;
    fk_system *sys;
    fk_driver *driver;
    uint32_t incarnation; /* 1 for the first system */
    uint64_t questions;   /* the first name its last system gave to a question */
    uint32_t workers;
    uint32_t thread[FK_STATION_WORKERS];
    bool has_thread[FK_STATION_WORKERS]; /* it has not returned */
    bool is_paused;
    fk_half is_woken;   /* the driver is to run */
    fk_time due_at;     /* or at this time */
    bool is_in_driver;  /* one of its functions is being called */
    uint64_t delivered; /* things that the network has told it */
    fk_network_port port;
    fk_reporting reporting[FK_MACHINE_THREADS_MAX];
} fk_station;

extern fk_network fk__sim_net;
extern fk_station fk__station[FK_STATIONS];

/* No systems, and a new network with so many addresses. */
void fk__stations_begin(uint32_t count, const fk_network_config *config);
uint32_t fk__stations_count(void);
/* "fraktor.tcp://sim@10.0.0.1:2552" */
fk_str fk__station_address(uint32_t station);
const char *fk__station_host(uint32_t station);
#define FK_STATION_PORT 2552

/* Makes a system there; host and port of the config are the station's. */
void fk__station_boot(fk_station *s, const fk_system_config *config, uint32_t workers);
/* Asks it to end; what is to be done then, fk__station_tend() does. */
void fk__station_end(fk_station *s);
/* True when a system that was asked to end is gone now. */
bool fk__station_tend(fk_station *s);
void fk__station_crash(fk_station *s, bool is_silent);
void fk__station_pause(fk_station *s, bool is_paused);

/* The calling thread is one of its workers. */
bool fk__station_is_inside(const fk_station *s);
/* The station whose system the calling thread runs, or NULL. */
fk_station *fk__station_self(void);

#endif /* FK_SIM_STATION_H */
