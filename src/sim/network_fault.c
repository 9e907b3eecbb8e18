/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who is there, and what happens to links besides bytes. */

#include "sim/network.h"

#include "sim/network_flow.h"

#include <stdlib.h>
#include <string.h>

void fk__network_begin(fk_network *net, const fk_network_world *world,
                       const fk_network_config *config)
{
    for (uint32_t i = 0; i < FK_NETWORK_LINKS; i++) net->link[i].is_used = false;
    memset(net, 0, offsetof(fk_network, link));
    net->world = *world;
    net->config = *config;
    net->rng.state = fk__mix64(config->seed ^ UINT64_C(0x6A09E667F3BCC909)) | 1;
}

uint32_t fk__network_host(fk_network *net, fk_str address, uint16_t port)
{
    uint32_t host = net->host_count++;
    if (host >= FK_NETWORK_HOSTS) abort();
    net->host[host] = (fk_network_host){ .address = address, .port = port };
    net->route[host] = (uint8_t)host;
    net->is_stale[host] = true;
    for (uint32_t i = 0; i < FK_NETWORK_HOSTS; i++) {
        net->lost_at[host][i] = net->lost_at[i][host] = -1;
    }
    return host;
}

/* What was sent to whoever sat there before meets somebody who knows nothing of it. */
void fk__network_up(fk_network *net, uint32_t host, const fk_network_user *user)
{
    fk__network_touch_all(net);
    net->host[host].is_up = true;
    net->host[host].user = *user;
    for (uint32_t i = 0; i < net->link_end; i++) {
        fk_net_link *link = &net->link[i];
        if (!link->is_used || link->other != host) continue;
        bool is_stale = link->other_end == FK_LINK_END_GONE;
        if (is_stale) fk__link_break(net, link);
        bool waits = link->maker_end == FK_LINK_END_WAITING && !is_stale;
        if (waits && link->answer_at == FK_NEVER) fk__link_attempt(net, link);
    }
}

static void maker_crash(fk_network *net, fk_net_link *link, bool is_silent)
{
    bool was_waiting = link->maker_end == FK_LINK_END_WAITING;
    link->is_lent = false;
    link->maker_end = FK_LINK_END_GONE;
    if (fk__link_unsent(link) > 0) fk__network_lose(net, link);
    link->tail = link->sent;
    if (link->other_end == FK_LINK_END_GONE || (was_waiting && link->accept_at == FK_NEVER))
        fk__link_other_gone(net, link);
    else if (!is_silent)
        fk__link_finish(net, link, fk__network_one_in(net, 2));
}

static void other_crash(fk_network *net, fk_net_link *link, bool is_silent)
{
    bool is_met = link->other_end == FK_LINK_END_OPEN; /* even if its maker does not know yet */
    if (link->maker_end == FK_LINK_END_WAITING && !is_met) { /* there is nobody to answer */
        link->is_refused = true;
        link->accept_at = FK_NEVER;
        if (is_silent) link->answer_at = FK_NEVER;
        return;
    }
    if (!is_silent) fk__link_break(net, link);
    fk__link_other_gone(net, link);
}

void fk__network_crash(fk_network *net, uint32_t host, bool is_silent)
{
    fk__network_touch_all(net);
    net->host[host].is_up = false;
    net->host[host].is_silent = is_silent;
    for (uint32_t i = 0; i < net->link_end; i++) {
        fk_net_link *link = &net->link[i];
        if (!link->is_used) continue;
        if (link->maker == host && link->maker_end != FK_LINK_END_GONE)
            maker_crash(net, link, is_silent);
        if (link->is_used && link->other == host && link->other_end != FK_LINK_END_GONE)
            other_crash(net, link, is_silent);
    }
}

uint32_t fk__network_met(const fk_network *net, uint32_t host)
{
    uint32_t met = 0;
    for (uint32_t i = 0; i < net->link_end; i++) {
        const fk_net_link *link = &net->link[i];
        met += link->is_used && link->other == host && link->other_end == FK_LINK_END_OPEN;
    }
    return met;
}

uint32_t fk__network_ends(const fk_network *net, uint32_t host)
{
    uint32_t ends = 0;
    for (uint32_t i = 0; i < net->link_end; i++) {
        const fk_net_link *link = &net->link[i];
        if (!link->is_used) continue;
        ends += link->maker == host && link->maker_end != FK_LINK_END_GONE;
        ends += link->other == host && link->other_end == FK_LINK_END_OPEN;
    }
    return ends;
}

uint32_t fk__network_made(const fk_network *net, uint32_t from, uint32_t to)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < net->link_end; i++) {
        const fk_net_link *link = &net->link[i];
        made += link->is_used && link->maker == from && link->aimed == to &&
                link->maker_end != FK_LINK_END_GONE;
    }
    return made;
}

void fk__network_down(fk_network *net, uint32_t host)
{
    if (fk__network_ends(net, host) != 0) {
        net->world.fail("A14", "a system that has ended leaves connections");
    }
    fk__network_crash(net, host, false); /* those that nobody has accepted */
}

/* ---- faults ------------------------------------------------------------------------------ */

static void release(fk_network *net, uint32_t from, uint32_t to)
{
    fk__network_touch_all(net);
    fk_time now = net->world.now();
    for (uint32_t i = 0; i < net->link_end; i++) {
        fk_net_link *link = &net->link[i];
        if (!link->is_used) continue;
        if (link->maker == from && link->other == to) {
            fk__flights_release(net, &link->data, from, to);
            if (link->is_ending && link->end_at == FK_NEVER) {
                link->end_at = now + fk__network_delay(net, from, to);
                if (link->data.count > 0 && link->end_at < link->data.last_at)
                    link->end_at = link->data.last_at;
            }
        }
        if (link->maker == to && link->other == from) {
            fk__flights_release(net, &link->acks, from, to);
            if (link->is_broken && link->broken_at == FK_NEVER)
                link->broken_at = now + fk__network_delay(net, from, to);
        }
        bool is_theirs = (link->maker == from && link->other == to) ||
                         (link->maker == to && link->other == from);
        if (is_theirs && link->maker_end == FK_LINK_END_WAITING && link->answer_at == FK_NEVER)
            fk__link_attempt(net, link);
    }
}

void fk__network_cut(fk_network *net, uint32_t from, uint32_t to, bool is_cut)
{
    if (net->is_cut[from][to] == is_cut) return;
    net->is_cut[from][to] = is_cut;
    if (!is_cut) release(net, from, to);
}

static void reset(fk_network *net, fk_net_link *link)
{
    fk__network_touch_all(net);
    if (link->maker_end != FK_LINK_END_OPEN || link->other_end == FK_LINK_END_GONE) return;
    net->count.resets++;
    fk__link_break(net, link);
    fk__link_finish(net, link, true);
}

void fk__network_reset(fk_network *net, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < net->link_end; i++) {
        fk_net_link *link = &net->link[i];
        bool is_theirs =
            (link->maker == a && link->other == b) || (link->maker == b && link->other == a);
        if (link->is_used && is_theirs) reset(net, link);
    }
}

void fk__network_reset_any(fk_network *net)
{
    uint32_t start = net->link_end > 0 ? fk__network_below(net, net->link_end) : 0;
    for (uint32_t i = 0; i < net->link_end; i++) {
        fk_net_link *link = &net->link[(start + i) % net->link_end];
        if (!link->is_used || link->maker_end != FK_LINK_END_OPEN) continue;
        reset(net, link);
        return;
    }
}

void fk__network_heal(fk_network *net)
{
    net->is_calm = true;
    for (uint32_t from = 0; from < net->host_count; from++) {
        net->route[from] = (uint8_t)from;
        for (uint32_t to = 0; to < net->host_count; to++) {
            net->slow[from][to] = 0;
            fk__network_cut(net, from, to, false);
        }
    }
}

/* ---- looking ----------------------------------------------------------------------------- */

static bool is_sound(const fk_net_link *link)
{
    size_t flying = 0;
    for (uint32_t i = 0; i < link->data.count; i++) {
        flying += link->data.item[(link->data.first + i) % FK_FLIGHTS].size;
    }
    bool has_end = link->maker_end != FK_LINK_END_GONE || link->other_end != FK_LINK_END_GONE;
    bool is_ordered = link->head <= link->sent && link->sent <= link->tail;
    return has_end && is_ordered && flying == link->sent - link->head &&
           (link->is_lent || fk__link_unsent(link) == 0);
}

void fk__network_check(const fk_network *net)
{
    for (uint32_t i = 0; i < net->link_end; i++) {
        if (net->link[i].is_used && !is_sound(&net->link[i]))
            net->world.fail("network", "the books of a link are wrong");
    }
}
