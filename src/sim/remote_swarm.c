/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a seed of the scenario "remote" says. */

#include "sim/remote.h"

static uint32_t between(fk_rng *rng, uint32_t low, uint32_t high)
{
    return low + fk__rng_below(rng, high - low + 1);
}

static bool one_in(fk_rng *rng, uint32_t n)
{
    return fk__rng_below(rng, n) == 0;
}

static uint32_t draw_weights(uint32_t *weight, const uint32_t *often, uint32_t count, fk_rng *rng)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool has = !one_in(rng, 3);
        weight[i] = has ? often[i] * (one_in(rng, 6) ? 4 : 1) : 0;
        sum += weight[i];
    }
    return sum;
}

static void draw_machine(fk_swarm *s, fk_rng *rng)
{
    s->is_solo = s->creation_fails = false;
    s->fail_in = 0;
    s->memory_spare = 0;
    s->looks_max = 40000;
    s->step_ns = one_in(rng, 4) ? 300 : 20;
    if (s->clock_ns > 20000) s->clock_ns = 20000;
    s->jump_in = one_in(rng, 12) ? UINT32_C(1) << between(rng, 8, 11) : 0;
    s->switch_in = UINT32_C(1) << between(rng, 2, 6);
    if (s->is_direct && one_in(rng, 2)) { /* blocks are many, and each counts */
        s->is_direct = false;
        s->memory = FK_MEMORY_SC;
    }
}

static void draw_network(fk_network_config *n, fk_rng *rng, uint64_t seed)
{
    static const uint32_t WINDOW[] = { 0, 0, 400, 5000 };
    static const fk_time DELAY[] = { FK_MICROS(100), FK_MILLIS(2), FK_MILLIS(20), FK_MILLIS(100) };
    *n = (fk_network_config){ .seed = seed };
    n->delay_max = DELAY[fk__rng_below(rng, 4)];
    n->delay_min = one_in(rng, 2) ? 0 : n->delay_max / 2;
    n->accept_max = one_in(rng, 3) ? FK_MILLIS(between(rng, 1, 800)) : 0;
    n->connect_timeout = FK_MILLIS(between(rng, 300, 3000));
    n->window = WINDOW[fk__rng_below(rng, 4)];
    n->piece_max = one_in(rng, 4) ? between(rng, 10, 200) : 0;
    n->refuse_in = one_in(rng, 4) ? between(rng, 3, 10) : 0;
    n->reset_in = one_in(rng, 4) ? between(rng, 20, 200) : 0;
    n->lazy_in = one_in(rng, 2) ? between(rng, 2, 20) : 0;
    n->spare_in = one_in(rng, 2) ? 2 : 0;
}

static void draw_remoting(fk_voyage *v, fk_rng *rng)
{
    static const fk_time QUARANTINE[] = { 0, FK_SECONDS(1), FK_SECONDS(4), FK_SECONDS(20) };
    static const fk_time GIVE_UP[] = { 0, FK_SECONDS(3), FK_SECONDS(8) };
    static const uint32_t DEFERRED[] = { 0, 0, 3, 20 };
    fk_remoting_config *r = &v->remoting;
    *r = (fk_remoting_config){ .codecs = fk__remote_codecs };
    r->quarantine = QUARANTINE[fk__rng_below(rng, 4)];
    r->give_up_after = GIVE_UP[fk__rng_below(rng, 3)];
    r->deferred_max = DEFERRED[fk__rng_below(rng, 4)];
    r->deferred_total_max = one_in(rng, 4) ? between(rng, 3, 30) : 0;
    r->outbound_max = one_in(rng, 4) ? between(rng, 2, 30) : 0;
    /* Those of a system that died unheard of count until its successor is met. */
    r->connections_max = one_in(rng, 6) ? between(rng, 18, 27) : 0;
    r->half_open_max = one_in(rng, 6) ? between(rng, 2, 6) : 0;
    r->connecting_max = one_in(rng, 4) ? between(rng, 1, 4) : 0;
    r->frame_max = one_in(rng, 4) ? 4096 : 0;
    r->handshake_timeout = FK_MILLIS(between(rng, 800, 4000));
    r->reconnect_min = FK_MILLIS(between(rng, 20, 200));
    r->reconnect_max = FK_MILLIS(between(rng, 300, 1500));
    r->heartbeat_every = FK_MILLIS(between(rng, 300, 1000));
    r->heartbeat_pause = FK_MILLIS(between(rng, 800, 4000));
    r->idle_after = one_in(rng, 2) ? FK_MILLIS(between(rng, 200, 4000)) : 0;
    r->compress_every = one_in(rng, 2) ? FK_MILLIS(between(rng, 300, 3000)) : FK_NEVER;
    if (one_in(rng, 3)) {
        v->large[0] = "/user/p2";
        r->large = v->large;
    }
}

void fk__voyage_draw(fk_voyage *v, fk_swarm *s, uint64_t seed)
{
    static const uint32_t DEEDS[] = {
#define DEED_WEIGHT(NAME, weight) weight,
        FK_DEEDS(DEED_WEIGHT)
#undef DEED_WEIGHT
    };
    static const uint32_t TROUBLES[] = {
#define TROUBLE_WEIGHT(NAME, weight) weight,
        FK_TROUBLES(TROUBLE_WEIGHT)
#undef TROUBLE_WEIGHT
    };
    fk__swarm_draw_plain(s, seed);
    fk_rng rng = { fk__mix64(seed ^ UINT64_C(0x9D39247E33776D41)) | 1 };
    draw_machine(s, &rng);
    *v = (fk_voyage){ .stations = one_in(&rng, 4) ? between(&rng, 3, 4) : between(&rng, 2, 3),
                      .workers = between(&rng, 1, 2),
                      .rounds = between(&rng, 10, 60),
                      .nap_ms = between(&rng, 20, 600),
                      .trouble_in = one_in(&rng, 8) ? 0 : between(&rng, 1, 8),
                      .orders = between(&rng, 1, 4),
                      .posts_max = between(&rng, 40, 400),
                      .uidless_in = between(&rng, 1, 6),
                      .wide_in = between(&rng, 2, 10),
                      .react_in = between(&rng, 1, 4) };
    draw_network(&v->network, &rng, seed);
    draw_remoting(v, &rng);
    v->deed_sum = draw_weights(v->deed, DEEDS, FK_DEED_COUNT, &rng);
    if (v->deed[FK_DEED_TELL] == 0) v->deed_sum += v->deed[FK_DEED_TELL] = 10;
    v->trouble_sum = draw_weights(v->trouble, TROUBLES, FK_TROUBLE_COUNT, &rng);
    if (v->trouble_sum == 0) v->trouble_in = 0;
    if (v->trouble_in != 0) return;
    v->network.refuse_in = v->network.reset_in = 0;
    v->remoting.give_up_after = v->remoting.quarantine = 0;
    /* Who is refused has already written. */
    v->remoting.half_open_max = v->remoting.connections_max = 0;
    v->remoting.connecting_max = 0;                 /* who waits for its turn is silent meanwhile */
    v->remoting.handshake_timeout = FK_SECONDS(12); /* whatever the network takes */
    /* A stream that ends while its bytes are still under way may be overtaken by the next. */
    if (v->remoting.idle_after != 0) v->remoting.idle_after += FK_SECONDS(2);
    s->jump_in = one_in(&rng, 3) ? UINT32_C(1) << between(&rng, 8, 11) : 0;
}
