/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_CONFIG_H
#define FK_REMOTE_CONFIG_H

/* What was asked of remoting, checked and completed: see fk_remoting_config in fraktor/system.h. */

#include "fraktor/system.h"

enum {
    FK_REMOTING_FRAME_MIN = 4 << 10,
    FK_REMOTING_FRAME_MOST = 64 << 20, /* a peer makes us hold that much for each connection */
    FK_REMOTING_SYSTEMS_MOST = 1 << 20,
    FK_INBOUND_BYTES = 64 << 20,
    FK_INBOUND_LEAST = 32 << 10 /* a frame of a control stream, whatever frame_max is */
};

/* For a config with `enabled`. Fills in what was left 0, except port and bind_port, for only whoever
 * listens knows what is free, and what the authorities see to themselves (quarantine to
 * deferred_total_max). What it points to stays the caller's. Completing twice changes nothing.
 * FK_E_AUTHORITY: no host. FK_E_INVALID: anything else. *out is written on success only. */
FK_MUST_USE fk_err fk__remoting_configure(const fk_remoting_config *asked, fk_remoting_config *out);

#endif /* FK_REMOTE_CONFIG_H */
