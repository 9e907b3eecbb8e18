/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_UNIT_REMOTE_DELIVERY_NET_H
#define FK_TESTS_UNIT_REMOTE_DELIVERY_NET_H

/*
 * Two systems and a network that loses, doubles and reorders: one sends system messages, the other
 * receives them, both are restarted now and then, and connections break. A ledger of messages says
 * whether the promise of remote/delivery.h holds:
 *
 *   - what was acknowledged was delivered, once, to the incarnation that acknowledged it
 *   - nothing is delivered twice, and to one incarnation from one in the order of sending
 *   - what was not acknowledged is reported as lost, once, or is still on its way
 *   - when the network heals, everything gets through
 */

#include "remote/origins.h"
#include "support/history.h"

typedef struct delivery_net_seen {
    uint64_t delivered, lost, refused, dropped, doubled, restarts, breaks, given_up;
} delivery_net_seen;

extern delivery_net_seen delivery_net_counts;

const char *delivery_net_run(uint64_t seed, uint32_t steps, bool is_blind);

#endif /* FK_TESTS_UNIT_REMOTE_DELIVERY_NET_H */
