/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/post.h"

#include "base/base.h"
#include "sim/network.h"
#include "sim/sometimes.h"
#include "sim/station.h"
#include "sim/tie.h"
#include "sim/world.h"

enum { CLASS_DIRECT, CLASS_SELECTED, CLASS_COUNT };

fk_posts fk__posts;

static fk_posts *const l = &fk__posts;
static fk_folk *const f = &fk__folk;

/* The last numbers of what a person has sent to a place: given out, and received there. */
typedef struct lane {
    uint32_t sent, received;
} lane;

static lane lanes[FK_FOLK_MAX][FK_FOLK_STATIONS][FK_FOLK_SLOTS][CLASS_COUNT];
static uint32_t lanes_used;

void fk__posts_begin(void)
{
    memset(l, 0, offsetof(fk_posts, post));
    memset(lanes, 0, lanes_used * sizeof(lanes[0]));
    lanes_used = 0;
    l->count = 1;
}

/* Answers to questions go to somebody who is no actor, each to another. */
static lane *lane_of(const fk_post *post)
{
    if (post->via == FK_VIA_ANSWER) return NULL;
    if (post->from >= lanes_used) lanes_used = post->from + 1u;
    uint32_t class = post->via == FK_VIA_SELECT ? CLASS_SELECTED : CLASS_DIRECT;
    return &lanes[post->from][post->station][post->slot][class];
}

static void set_off(uint32_t number)
{
    fk_post *post = &l->post[number];
    lane *way = lane_of(post);
    if (way != NULL) post->seq = ++way->sent;
    post->at = fk__world_now();
    post->received = post->dead = 0;
    post->is_returned = false;
    fk__ledger_note(FK_FACT_SEND, post->from, post->to, number, post->via);
}

uint32_t fk__post_send(uint32_t from, uint32_t to, uint32_t station, uint32_t slot, fk_post_via via)
{
    if (l->count == FK_POSTS_MAX) return 0;
    uint32_t number = l->count++;
    l->post[number] = (fk_post){ .from = (uint16_t)from,
                                 .origin = (uint16_t)from,
                                 .is_asked = via == FK_VIA_ASK,
                                 .to = (uint16_t)to,
                                 .station = (uint8_t)station,
                                 .slot = (uint8_t)slot,
                                 .via = (uint8_t)via };
    set_off(number);
    return number;
}

void fk__post_forward(uint32_t number, uint32_t by, uint32_t to, uint32_t station, uint32_t slot)
{
    fk_post *post = &l->post[number];
    post->from = (uint16_t)by;
    post->to = (uint16_t)to;
    post->station = (uint8_t)station;
    post->slot = (uint8_t)slot;
    post->via = FK_VIA_FORWARD;
    post->legs++;
    set_off(number);
}

void fk__post_sent(uint32_t number, fk_err err)
{
    fk_post *post = &l->post[number];
    post->is_returned = true;
    post->err = err;
    fk__ledger_note(FK_FACT_SENT, post->from, post->to, number, (uint32_t)err);
    if (err == FK_OK) return;
    bool is_known = err == FK_E_FULL || err == FK_E_QUARANTINED || err == FK_E_NOMEM ||
                    err == FK_E_LIMIT || err == FK_E_STOPPING;
    if (!is_known) fk__world_fail("A1", "#%u: the send gave %s", number, fk_err_name(err));
    if (post->received != 0) fk__world_fail("A1", "#%u was refused and arrived", number);
    if (post->dead != 1)
        fk__world_fail("A1", "#%u was refused, %u dead letters", number, post->dead);
}

/* ---- arriving ------------------------------------------------------------------------------ */

static void check_receiver(uint32_t number, const fk_post *post, uint32_t by)
{
    const fk_dweller *p = &f->person[by];
    if (p->station != post->station || p->slot != post->slot)
        fk__world_fail("A4", "#%u was meant for p%u at station %u", number, post->slot,
                       post->station);
    if (post->to != FK_NOBODY && post->to != by)
        fk__world_fail("A4", "#%u was meant for a%u", number, post->to);
    if (post->at < f->person[post->from].born_at) fk__world_fail("A4", "#%u is too old", number);
}

static void check_order(uint32_t number, const fk_post *post)
{
    lane *way = lane_of(post);
    if (way == NULL) return;
    if (post->seq <= way->received)
        fk__world_fail("R1", "#%u is overtaken: %u of its lane, after %u", number, post->seq,
                       way->received);
    way->received = post->seq;
}

void fk__post_received(uint32_t number, uint32_t by)
{
    fk_post *post = &l->post[number];
    fk__ledger_note(FK_FACT_RECEIVE, by, post->from, number, post->via);
    if (number == 0 || number >= l->count) fk__world_fail("A1", "nobody sent #%u", number);
    if (++post->received > 1) fk__world_fail("R1", "#%u has come twice", number);
    if (post->dead != 0) fk__world_fail("R5", "#%u was a dead letter, and has come", number);
    check_receiver(number, post, by);
    check_order(number, post);
    const fk_dweller *from = &f->person[post->from];
    fk__tie_check_passage(from->station, from->house, post->station, f->person[by].house, post->at,
                          number);
    l->received++;
}

void fk__post_dead(uint32_t number, uint32_t station, fk_reason reason)
{
    fk_post *post = &l->post[number];
    fk__ledger_note(FK_FACT_DEAD, station, post->from, number, (uint32_t)reason);
    if (number == 0 || number >= l->count) fk__world_fail("A1", "nobody sent #%u", number);
    if (post->received != 0) fk__world_fail("R5", "#%u has come, and is a dead letter", number);
    if (++post->dead > 1) fk__world_fail("R5", "#%u is a dead letter twice", number);
    bool is_here = station == f->person[post->from].station, is_there = station == post->station;
    if (!is_here && !is_there) fk__world_fail("A4", "#%u is a dead letter elsewhere", number);
    post->reason = (uint8_t)reason;
    l->letters[reason]++;
    l->dead++;
}

void fk__post_unread(uint32_t station)
{
    fk__ledger_note(FK_FACT_DEAD, station, FK_NOBODY, 0, 0);
    l->unread[station]++;
}

/* ---- the end ------------------------------------------------------------------------------- */

static bool is_excused(const fk_post *post)
{
    const fk_dweller *from = &f->person[post->from];
    const fk_house *house = &f->house[from->station][from->house];
    if (house->is_crashed) return true;
    for (uint32_t i = 0; i < f->houses[post->station]; i++) {
        const fk_house *there = &f->house[post->station][i];
        bool was_there = there->gone_at >= post->at;
        bool may_shut = there->is_ending && there->has_refused;
        if (was_there && (there->is_crashed || may_shut)) return true;
    }
    if (fk__sim_net.lost_at[from->station][post->station] >= post->at) return true;
    /* Who gives the other up says so, and that may be read before what was sent earlier. */
    if (fk__tie_has_shut(from->station, from->house, post->station, post->at)) return true;
    return fk__tie_was_shut(post->station, from->station, from->house);
}

/* One of those that say not which message they were. */
static bool is_unread(const fk_post *post)
{
    if (l->unread[post->station] == 0) return false;
    l->unread[post->station]--;
    return true;
}

uint32_t fk__posts_open(void)
{
    uint32_t open = 0;
    for (uint32_t i = 1; i < l->count; i++) open += l->post[i].received + l->post[i].dead == 0;
    return open;
}

void fk__posts_check_ended(bool is_calm)
{
    for (uint32_t i = 1; i < l->count; i++) {
        const fk_post *post = &l->post[i];
        if (post->received + post->dead == 1) continue;
        bool is_nowhere = post->received + post->dead == 0;
        if (is_nowhere && ((!is_calm && is_excused(post)) || is_unread(post))) {
            l->lost++;
            FK_SOMETIMES_HIT(POST_LOST);
            continue;
        }
        fk__world_fail("A1", "#%u of a%u to station %u (%s) is neither received nor dead", i,
                       post->from, post->station, fk_err_name(post->err));
    }
}
