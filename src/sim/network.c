/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/network.h"

#include "sim/network_flow.h"

#include <string.h>

enum { PIECE_DEFAULT = 65536 };

static const fk_time TIMEOUT_DEFAULT = FK_SECONDS(3);

static fk_time soon(fk_network *net, uint32_t from, uint32_t to)
{
    if (net->is_cut[from][to]) return FK_NEVER;
    return net->world.now() + fk__network_delay(net, from, to);
}

/* ---- links ------------------------------------------------------------------------------- */

static void link_release(fk_net_link *link)
{
    if (link->maker_end != FK_LINK_END_GONE || link->other_end != FK_LINK_END_GONE) return;
    link->is_used = false;
}

static fk_net_link *link_create(fk_network *net)
{
    for (uint32_t i = 0; i < FK_NETWORK_LINKS; i++) {
        fk_net_link *link = &net->link[i];
        if (link->is_used) continue;
        fk_net_link kept = *link;
        *link = (fk_net_link){ .is_used = true,
                               .bytes = kept.bytes,
                               .capacity = kept.capacity,
                               .lent_copy = kept.lent_copy,
                               .lent_capacity = kept.lent_capacity,
                               .accept_at = FK_NEVER,
                               .end_at = FK_NEVER,
                               .broken_at = FK_NEVER };
        if (i >= net->link_end) net->link_end = i + 1;
        return link;
    }
    net->world.fail("R10", "more connections than any good run makes");
    return NULL;
}

/* The end of a link that a host calls by that number. NULL: there is none. */
static fk_net_link *link_of(fk_network *net, uint32_t host, fk_conn_id conn)
{
    bool is_accepted = (conn & FK_CONN_ACCEPTED) != 0;
    for (uint32_t i = 0; i < net->link_end; i++) {
        fk_net_link *link = &net->link[i];
        if (!link->is_used) continue;
        if (is_accepted ? link->other == host && link->other_end == FK_LINK_END_OPEN &&
                              link->other_id == conn
                        : link->maker == host && link->maker_end != FK_LINK_END_GONE &&
                              link->maker_id == conn) {
            return link;
        }
    }
    return NULL;
}

void fk__link_break(fk_network *net, fk_net_link *link)
{
    if (link->is_broken || link->maker_end == FK_LINK_END_GONE) return;
    link->is_broken = true;
    link->broken_at = soon(net, link->other, link->maker);
}

void fk__link_finish(fk_network *net, fk_net_link *link, bool is_reset)
{
    if (link->is_ending && (link->is_reset || !is_reset)) return;
    if (is_reset) fk__link_spill(net, link);
    link->is_ending = true;
    link->is_reset = is_reset;
    link->end_at = soon(net, link->maker, link->other);
    if (!is_reset && link->data.count > 0 && link->end_at < link->data.last_at) {
        link->end_at = link->data.last_at;
    }
}

void fk__link_other_gone(fk_network *net, fk_net_link *link)
{
    if (link->tail > link->head) fk__network_lose(net, link);
    link->other_end = FK_LINK_END_GONE;
    link->data.count = 0;
    link->head = link->sent;
    link_release(link);
}

/* ---- the transport ----------------------------------------------------------------------- */

static uint32_t host_of(const fk_network *net, fk_str address, uint16_t number)
{
    for (uint32_t i = 0; i < net->host_count; i++) {
        const fk_network_host *host = &net->host[i];
        bool is_same = host->port == number && host->address.len == address.len;
        if (is_same && memcmp(host->address.ptr, address.ptr, address.len) == 0) return i;
    }
    return FK_NETWORK_HOSTS;
}

void fk__link_attempt(fk_network *net, fk_net_link *link)
{
    const fk_network_host *host = &net->host[link->other];
    fk_time now = net->world.now();
    bool is_lost = net->is_cut[link->maker][link->other] || net->is_cut[link->other][link->maker] ||
                   (!host->is_up && host->is_silent);
    link->answer_at = FK_NEVER;
    if (is_lost) return;
    link->answer_at = now + fk__network_delay(net, link->maker, link->other) +
                      fk__network_delay(net, link->other, link->maker);
    link->is_refused = !host->is_up || fk__network_one_in(net, net->config.refuse_in);
    if (link->is_refused) return;
    link->accept_at = link->answer_at + fk__network_delay(net, link->maker, link->other);
    fk_time late = net->config.accept_max;
    if (late != 0 && !net->is_calm) link->accept_at += fk__network_below(net, (uint32_t)late);
    if (late != 0) net->count.late_accepts++;
    fk_time *last = &net->accepted_at[link->maker][link->other];
    if (link->accept_at <= *last) link->accept_at = *last + 1;
    *last = link->accept_at;
}

fk_err fk__network_connect(void *port, fk_conn_id conn, fk_str address, uint16_t number)
{
    const fk_network_port *from = port;
    fk_network *net = from->net;
    net->count.connects++;
    if (conn == 0 || (conn & FK_CONN_ACCEPTED) != 0 || link_of(net, from->host, conn) != NULL) {
        net->world.fail("contract", "a connection with a number that it cannot have");
    }
    if (!net->host[from->host].is_up) net->world.fail("contract", "who is gone connects");
    uint32_t to = host_of(net, address, number);
    if (to == FK_NETWORK_HOSTS || fk__network_one_in(net, net->config.refuse_in * 4)) {
        net->count.refused++;
        return FK_E_OS;
    }
    fk_net_link *link = link_create(net);
    if (link == NULL) return FK_E_LIMIT;
    fk_time limit = net->config.connect_timeout;
    link->maker = (uint8_t)from->host;
    link->other = net->route[to];
    link->aimed = (uint8_t)to;
    link->maker_id = conn;
    link->give_up_at = net->world.now() + (limit != 0 ? limit : TIMEOUT_DEFAULT);
    fk__link_attempt(net, link);
    fk__network_touch(net, link);
    return FK_OK;
}

bool fk__network_write(void *port, fk_conn_id conn, const void *bytes, size_t len)
{
    const fk_network_port *from = port;
    fk_network *net = from->net;
    fk_net_link *link = link_of(net, from->host, conn);
    bool is_writable = link != NULL && link->maker_end == FK_LINK_END_OPEN &&
                       link->maker == from->host && (conn & FK_CONN_ACCEPTED) == 0;
    if (!is_writable) {
        net->world.fail("contract", "a write to what is not connected");
        return true;
    }
    if (link->is_lent) net->world.fail("contract", "a write while another is under way");
    if (len == 0) net->world.fail("contract", "a write of nothing");
    fk__network_touch(net, link);
    fk__link_acked(net, link);
    fk__link_put(link, bytes, len);
    if (fk__network_one_in(net, net->config.lazy_in)) {
        link->lazy_until = net->world.now() + 1 + fk__network_below(net, (uint32_t)FK_MILLIS(5));
    }
    fk__link_pump(net, link);
    if (fk__network_one_in(net, net->config.reset_in)) {
        net->count.resets++;
        fk__link_break(net, link);
        fk__link_finish(net, link, true);
    }
    if (fk__link_unsent(link) == 0) return true;
    net->count.lent++;
    fk__link_lend(link, bytes, len);
    return false;
}

static void maker_close(fk_network *net, fk_net_link *link, bool gently)
{
    fk__link_lent_back(net, link);
    if (link->maker_end == FK_LINK_END_WAITING) {
        bool is_met = link->other_end == FK_LINK_END_OPEN ||
                      (link->accept_at != FK_NEVER && !fk__network_one_in(net, 2));
        link->maker_end = FK_LINK_END_GONE;
        if (is_met)
            fk__link_finish(net, link, false);
        else
            fk__link_other_gone(net, link);
        link_release(link); /* the other may have met it, and left */
        return;
    }
    link->maker_end = FK_LINK_END_GONE;
    if (fk__link_unsent(link) > 0) {
        net->count.cut_frames++;
        link->tail = link->sent;
        fk__network_lose(net, link);
    }
    if (link->other_end == FK_LINK_END_GONE) {
        link_release(link);
        return;
    }
    fk__link_finish(net, link, !gently && !fk__network_one_in(net, net->config.spare_in));
}

void fk__network_close(void *port, fk_conn_id conn, bool gently)
{
    const fk_network_port *from = port;
    fk_network *net = from->net;
    fk_net_link *link = link_of(net, from->host, conn);
    if (link == NULL) {
        net->world.fail("contract", "a close of what is closed");
        return;
    }
    fk__network_touch(net, link);
    if ((conn & FK_CONN_ACCEPTED) == 0) {
        maker_close(net, link, gently);
        return;
    }
    fk__link_break(net, link);
    fk__link_other_gone(net, link);
}

/* ---- telling ----------------------------------------------------------------------------- */

static void tell_closed(fk_network *net, uint32_t host, fk_conn_id conn, fk_err err,
                        const char *why)
{
    const fk_network_user *user = &net->host[host].user;
    user->closed(user->ctx, conn, err, fk_str_of(why), net->world.now());
}

/* The attempt has come to nothing. */
static void fail_attempt(fk_network *net, fk_net_link *link, const char *why)
{
    fk_conn_id conn = link->maker_id;
    uint32_t host = link->maker;
    link->maker_end = FK_LINK_END_GONE;
    fk__link_other_gone(net, link);
    tell_closed(net, host, conn, FK_E_OS, why);
}

static bool tell_waiting(fk_network *net, fk_net_link *link, fk_time now)
{
    const fk_network_user *user = &net->host[link->maker].user;
    if (link->answer_at <= now) {
        if (link->is_refused) {
            net->count.refused++;
            fail_attempt(net, link, "connection refused");
        } else {
            link->maker_end = FK_LINK_END_OPEN;
            user->connected(user->ctx, link->maker_id, now);
        }
        return true;
    }
    if (link->give_up_at > now) return false;
    net->count.timeouts++;
    fail_attempt(net, link, "connection timed out");
    return true;
}

static bool tell_maker(fk_network *net, fk_net_link *link, fk_time now)
{
    const fk_network_user *user = &net->host[link->maker].user;
    if (link->maker_end == FK_LINK_END_WAITING) return tell_waiting(net, link, now);
    if (link->is_broken && link->broken_at <= now) {
        fk_conn_id conn = link->maker_id;
        uint32_t host = link->maker;
        if (fk__link_unsent(link) > 0) fk__network_lose(net, link);
        link->tail = link->sent;
        fk__link_lent_back(net, link);
        link->maker_end = FK_LINK_END_GONE;
        link_release(link);
        tell_closed(net, host, conn, FK_E_OS, "connection reset by peer");
        return true;
    }
    fk__link_acked(net, link);
    if (!link->is_lent || fk__link_unsent(link) > 0) return false;
    fk__link_lent_back(net, link);
    user->writable(user->ctx, link->maker_id, now);
    return true;
}

static void refuse_end(fk_network *net, fk_net_link *link)
{
    fk__link_break(net, link);
    fk__link_other_gone(net, link);
}

static size_t draw_piece(fk_network *net, size_t arrived)
{
    size_t max = net->config.piece_max != 0 ? net->config.piece_max : PIECE_DEFAULT;
    if (arrived > max) arrived = max;
    /* Mostly all there is: a run of single bytes tests one thing only. */
    if (arrived < 2 || fk__network_below(net, 4) != 0) return arrived;
    return 1 + fk__network_below(net, (uint32_t)arrived);
}

static void tell_bytes(fk_network *net, fk_net_link *link, size_t arrived, fk_time now)
{
    const fk_network_user *user = &net->host[link->other].user;
    fk_conn_id conn = link->other_id;
    uint32_t host = link->other;
    size_t size = draw_piece(net, arrived);
    net->told[host] = fk__network_grown(net->told[host], &net->told_capacity[host], size);
    memcpy(net->told[host], link->bytes + link->head, size);
    fk_str bytes = { (const char *)net->told[host], size };
    fk__flights_take(&link->data, size);
    link->head += size;
    if (link->aimed != link->other) fk__network_lose(net, link); /* whoever reads it */
    if (link->maker_end != FK_LINK_END_GONE)
        fk__flights_launch(net, &link->acks, size, link->other, link->maker);
    if (user->read(user->ctx, conn, bytes, now)) return;
    if (link_of(net, host, conn) != link) {
        net->world.fail("contract", "a connection was closed, and is to be closed");
        return;
    }
    fk__network_lose(net, link); /* of these bytes, too */
    refuse_end(net, link);
}

/* Those who came before are told first. */
static bool is_next_accept(const fk_network *net, const fk_net_link *link)
{
    for (uint32_t i = 0; i < net->link_end; i++) {
        const fk_net_link *other = &net->link[i];
        bool waits = other->is_used && other->other == link->other &&
                     other->other_end == FK_LINK_END_WAITING;
        if (waits && other->accept_at < link->accept_at) return false;
    }
    return true;
}

static bool tell_other(fk_network *net, fk_net_link *link, fk_time now)
{
    const fk_network_user *user = &net->host[link->other].user;
    if (link->other_end == FK_LINK_END_WAITING) {
        if (link->accept_at > now || !is_next_accept(net, link)) return false;
        link->other_end = FK_LINK_END_OPEN;
        link->other_id = FK_CONN_ACCEPTED | ++net->host[link->other].next;
        net->count.accepted++;
        if (user->accepted(user->ctx, link->other_id, net->host[link->maker].address, now))
            return true;
        refuse_end(net, link);
        return true;
    }
    size_t arrived = fk__flights_arrived(&link->data, now);
    if (arrived > 0) {
        tell_bytes(net, link, arrived, now);
        return true;
    }
    if (!link->is_ending || link->end_at > now || link->data.count > 0) return false;
    fk_conn_id conn = link->other_id;
    uint32_t host = link->other;
    bool is_reset = link->is_reset;
    fk__link_other_gone(net, link);
    tell_closed(net, host, conn, is_reset ? FK_E_OS : FK_OK, is_reset ? "connection reset" : "");
    return true;
}

bool fk__network_deliver(fk_network *net, uint32_t host)
{
    fk_time now = net->world.now();
    uint32_t count = net->link_end;
    if (fk__network_next(net, host) > now) return false;
    uint32_t start = count > 1 ? fk__network_below(net, count) : 0;
    for (uint32_t i = 0; i < count; i++) {
        fk_net_link *link = &net->link[(start + i) % count];
        if (!link->is_used || (link->maker != host && link->other != host)) continue;
        fk__network_touch(net, link); /* acknowledgements change it, too */
        if (link->maker == host && link->maker_end != FK_LINK_END_GONE &&
            tell_maker(net, link, now)) {
            return true;
        }
        if (link->is_used && link->other == host && link->other_end != FK_LINK_END_GONE &&
            tell_other(net, link, now)) {
            return true;
        }
    }
    return false;
}

static fk_time first_of(fk_time a, fk_time b)
{
    return a < b ? a : b;
}

static fk_time maker_next(const fk_net_link *link)
{
    if (link->maker_end == FK_LINK_END_WAITING) return first_of(link->answer_at, link->give_up_at);
    fk_time next = link->broken_at;
    if (!link->is_lent) return next;
    if (fk__link_unsent(link) == 0) return 0;
    if (link->lazy_until > 0) next = first_of(next, link->lazy_until);
    return first_of(next, fk__flights_next(&link->acks));
}

static fk_time other_next(const fk_net_link *link)
{
    if (link->other_end == FK_LINK_END_WAITING) return link->accept_at;
    if (link->data.count > 0) return fk__flights_next(&link->data);
    return link->is_ending ? link->end_at : FK_NEVER;
}

fk_time fk__network_next(fk_network *net, uint32_t host)
{
    fk_time next = FK_NEVER;
    if (!net->is_stale[host]) return net->next_at[host];
    for (uint32_t i = 0; i < net->link_end; i++) {
        const fk_net_link *link = &net->link[i];
        if (!link->is_used) continue;
        if (link->maker == host && link->maker_end != FK_LINK_END_GONE)
            next = first_of(next, maker_next(link));
        if (link->other == host && link->other_end != FK_LINK_END_GONE)
            next = first_of(next, other_next(link));
    }
    net->is_stale[host] = false;
    net->next_at[host] = next;
    return next;
}
