/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_NETWORK_FLOW_H
#define FK_SIM_NETWORK_FLOW_H

/* The inside of the network: how bytes and acknowledgements move in one link. */

#include "sim/network.h"

/* How long something takes from one host to the other. */
fk_time fk__network_delay(fk_network *net, uint32_t from, uint32_t to);
uint32_t fk__network_below(fk_network *net, uint32_t end);
/* True once in n times, while there are faults; never when n is 0. */
bool fk__network_one_in(fk_network *net, uint32_t n);
/* When things happen at the ends of a link, or anywhere, has changed. */
void fk__network_touch(fk_network *net, const fk_net_link *link);
void fk__network_touch_all(fk_network *net);
void fk__network_lose(fk_network *net, const fk_net_link *link);

/* So many bytes set off; where that way is cut they are held back. */
void fk__flights_launch(fk_network *net, fk_flights *flights, size_t size, uint32_t from,
                        uint32_t to);
size_t fk__flights_arrived(const fk_flights *flights, fk_time now);
/* When the first of them arrives. */
fk_time fk__flights_next(const fk_flights *flights);
void fk__flights_take(fk_flights *flights, size_t size);
/* Those held back set off. */
void fk__flights_release(fk_network *net, fk_flights *flights, uint32_t from, uint32_t to);
/* What has not arrived never will; returns how much that is. */
size_t fk__flights_drop(fk_flights *flights, fk_time now);

/* Memory of at least so many bytes; what is in it stays. */
void *fk__network_grown(void *memory, size_t *capacity, size_t need);

/* Copies what is written. */
void fk__link_put(fk_net_link *link, const void *bytes, size_t len);
/* What the window allows sets off. */
void fk__link_pump(fk_network *net, fk_net_link *link);
/* Acknowledgements that have come open the window; nobody is told. */
void fk__link_acked(fk_network *net, fk_net_link *link);
/* Keeps a copy of what is lent, and compares it at the end. */
void fk__link_lend(fk_net_link *link, const void *bytes, size_t len);
void fk__link_lent_back(fk_network *net, fk_net_link *link);
/* What is on its way, or lent, gets lost. */
void fk__link_spill(fk_network *net, fk_net_link *link);

/* network.c: the maker will hear that there is nobody any more; the other that there comes no more;
 * the other's end is gone. */
void fk__link_break(fk_network *net, fk_net_link *link);
void fk__link_finish(fk_network *net, fk_net_link *link, bool is_reset);
void fk__link_other_gone(fk_network *net, fk_net_link *link);
/* When and how an attempt ends, as things are now. */
void fk__link_attempt(fk_network *net, fk_net_link *link);

static inline size_t fk__link_unsent(const fk_net_link *link)
{
    return link->tail - link->sent;
}

#endif /* FK_SIM_NETWORK_FLOW_H */
