/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/network_flow.h"

#include "sim/swarm.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW_DEFAULT = 65536 };

/* ---- chance ------------------------------------------------------------------------------ */

uint32_t fk__network_below(fk_network *net, uint32_t end)
{
    return fk__rng_below(&net->rng, end);
}

bool fk__network_one_in(fk_network *net, uint32_t n)
{
    return n != 0 && !net->is_calm && fk__rng_below(&net->rng, n) == 0;
}

fk_time fk__network_delay(fk_network *net, uint32_t from, uint32_t to)
{
    fk_time spread = net->config.delay_max - net->config.delay_min;
    fk_time delay = net->config.delay_min + net->slow[from][to];
    return spread > 0 ? delay + fk__network_below(net, (uint32_t)spread) : delay;
}

void fk__network_lose(fk_network *net, const fk_net_link *link)
{
    net->lost_at[link->maker][link->aimed] = net->world.now();
    net->count.lost++;
}

void fk__network_touch(fk_network *net, const fk_net_link *link)
{
    net->is_stale[link->maker] = net->is_stale[link->other] = true;
}

void fk__network_touch_all(fk_network *net)
{
    memset(net->is_stale, true, sizeof(net->is_stale));
}

/* ---- flights ----------------------------------------------------------------------------- */

static fk_flight *flight_at(fk_flights *flights, uint32_t index)
{
    return &flights->item[(flights->first + index) % FK_FLIGHTS];
}

static const fk_flight *flight_seen(const fk_flights *flights, uint32_t index)
{
    return &flights->item[(flights->first + index) % FK_FLIGHTS];
}

void fk__flights_launch(fk_network *net, fk_flights *flights, size_t size, uint32_t from,
                        uint32_t to)
{
    fk_time at = net->world.now() + fk__network_delay(net, from, to);
    if (at < flights->last_at) at = flights->last_at;
    if (net->is_cut[from][to]) at = FK_NEVER;
    if (at == FK_NEVER) net->count.held++;
    flights->last_at = at;
    if (flights->count == FK_FLIGHTS) { /* they travel together */
        fk_flight *last = flight_at(flights, FK_FLIGHTS - 1);
        last->size += size;
        last->at = at;
        return;
    }
    *flight_at(flights, flights->count++) = (fk_flight){ size, at };
}

size_t fk__flights_arrived(const fk_flights *flights, fk_time now)
{
    size_t size = 0;
    for (uint32_t i = 0; i < flights->count; i++) {
        const fk_flight *flight = flight_seen(flights, i);
        if (flight->at > now) break;
        size += flight->size;
    }
    return size;
}

fk_time fk__flights_next(const fk_flights *flights)
{
    return flights->count == 0 ? FK_NEVER : flight_seen(flights, 0)->at;
}

void fk__flights_take(fk_flights *flights, size_t size)
{
    while (size > 0) {
        fk_flight *flight = flight_at(flights, 0);
        size_t part = size < flight->size ? size : flight->size;
        flight->size -= part;
        size -= part;
        if (flight->size != 0) break;
        flights->first = (flights->first + 1) % FK_FLIGHTS;
        flights->count--;
    }
}

void fk__flights_release(fk_network *net, fk_flights *flights, uint32_t from, uint32_t to)
{
    fk_time before = 0;
    if (flights->last_at == FK_NEVER && flights->count == 0) flights->last_at = 0;
    for (uint32_t i = 0; i < flights->count; i++) {
        fk_flight *flight = flight_at(flights, i);
        if (flight->at == FK_NEVER)
            flight->at = net->world.now() + fk__network_delay(net, from, to);
        if (flight->at < before) flight->at = before;
        before = flights->last_at = flight->at;
    }
}

size_t fk__flights_drop(fk_flights *flights, fk_time now)
{
    size_t dropped = 0;
    while (flights->count > 0) {
        fk_flight *last = flight_at(flights, flights->count - 1);
        if (last->at <= now) break;
        dropped += last->size;
        flights->count--;
    }
    flights->last_at = 0;
    return dropped;
}

/* ---- bytes of a link --------------------------------------------------------------------- */

void *fk__network_grown(void *memory, size_t *capacity, size_t need)
{
    if (need <= *capacity) return memory;
    size_t size = *capacity == 0 ? 4096 : *capacity;
    while (size < need) size *= 2;
    memory = realloc(memory, size);
    if (memory == NULL) abort();
    *capacity = size;
    return memory;
}

void fk__link_put(fk_net_link *link, const void *bytes, size_t len)
{
    if (link->head > 0) {
        memmove(link->bytes, link->bytes + link->head, link->tail - link->head);
        link->tail -= link->head;
        link->sent -= link->head;
        link->head = 0;
    }
    link->bytes = fk__network_grown(link->bytes, &link->capacity, link->tail + len);
    memcpy(link->bytes + link->tail, bytes, len);
    link->tail += len;
}

/* Nobody is there who could get it. */
static bool is_void(const fk_net_link *link)
{
    return link->is_reset || link->other_end == FK_LINK_END_GONE;
}

void fk__link_pump(fk_network *net, fk_net_link *link)
{
    size_t window = net->config.window != 0 ? net->config.window : WINDOW_DEFAULT;
    if (link->lazy_until > net->world.now()) return;
    link->lazy_until = 0;
    while (fk__link_unsent(link) > 0 && link->unacked < window) {
        size_t size = window - link->unacked;
        if (size > fk__link_unsent(link)) size = fk__link_unsent(link);
        link->unacked += size;
        if (is_void(link)) { /* a dead host opens no window again; after a reset there is none */
            fk__network_lose(net, link);
            link->tail -= size;
            if (link->is_reset) link->unacked = 0;
        } else {
            link->sent += size;
            fk__flights_launch(net, &link->data, size, link->maker, link->other);
        }
    }
}

void fk__link_acked(fk_network *net, fk_net_link *link)
{
    size_t size = fk__flights_arrived(&link->acks, net->world.now());
    fk__flights_take(&link->acks, size);
    link->unacked = size < link->unacked ? link->unacked - size : 0;
    fk__link_pump(net, link);
}

void fk__link_lend(fk_net_link *link, const void *bytes, size_t len)
{
    link->lent_copy = fk__network_grown(link->lent_copy, &link->lent_capacity, len);
    memcpy(link->lent_copy, bytes, len);
    link->lent = bytes;
    link->lent_len = len;
    link->is_lent = true;
}

void fk__link_lent_back(fk_network *net, fk_net_link *link)
{
    if (!link->is_lent) return;
    link->is_lent = false;
    if (memcmp(link->lent, link->lent_copy, link->lent_len) != 0) {
        net->world.fail("contract", "bytes that were lent to the transport have changed");
    }
}

void fk__link_spill(fk_network *net, fk_net_link *link)
{
    size_t dropped = fk__flights_drop(&link->data, net->world.now());
    if (dropped + fk__link_unsent(link) == 0) return;
    link->sent -= dropped;
    link->tail = link->sent;
    link->unacked = 0;
    fk__network_lose(net, link);
}
