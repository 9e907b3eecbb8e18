/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Those who live in the systems, and what they say to each other. */

#include "sim/remote.h"

#include "base/base.h"
#include "base/hash.h"
#include "fraktor/ask.h"
#include "fraktor/registry.h"
#include "fraktor/select.h"
#include "sim/post.h"
#include "sim/sometimes.h"
#include "sim/station.h"
#include "sim/tie.h"
#include "sim/vigil.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ------------------------------------------------------------------------------ */

typedef struct sim_post {
    uint32_t number;
    uint32_t check;
} sim_post;
FK_MESSAGE(sim_post);
FK_CODEC_STRUCT(sim_post, 1, FK_FIELD(sim_post, number), FK_FIELD(sim_post, check));

typedef struct sim_long_post {
    uint32_t number;
    uint8_t filler[700];
} sim_long_post;
FK_MESSAGE(sim_long_post);
FK_CODEC_STRUCT(sim_long_post, 1, FK_FIELD(sim_long_post, number),
                FK_FIELD_ARRAY(sim_long_post, filler));

/* From the director, in the same system. */
typedef struct sim_order {
    uint32_t deeds;
    uint32_t target;
} sim_order;
FK_MESSAGE(sim_order);

const fk_codec *const fk__remote_codecs[] = { &fk_codec_sim_post, &fk_codec_sim_long_post, NULL };

static uint32_t check_of(uint32_t number)
{
    return (uint32_t)fk__mix64(number);
}

typedef struct paper {
    sim_post note;
    sim_long_post wide;
    char text[24];
    fk_str str;
} paper;

static fk_out write_post(paper *p, uint32_t number)
{
    uint32_t draw = fk__world_below(fk__remote_run_state.voyage.wide_in + 1);
    if (draw == 0) {
        sim_long_post *wide = &p->wide;
        wide->number = number;
        memset(wide->filler, (int)(check_of(number) & 0xff), sizeof(wide->filler));
        return FK_MSG_AT(sim_long_post, wide);
    }
    if (draw == 1) {
        p->str.ptr = p->text;
        p->str.len = (size_t)snprintf(p->text, sizeof(p->text), "post %u", (unsigned)number);
        return (fk_out){ &fk_type_text, &p->str };
    }
    sim_post *note = &p->note;
    *note = (sim_post){ number, check_of(number) };
    return FK_MSG_AT(sim_post, note);
}

/* The number of a post; 0: it is something else. */
static uint32_t read_post(const fk_type *type, const void *data, size_t len)
{
    if (type == &fk_type_sim_post) {
        const sim_post *note = data;
        if (len != sizeof(*note) || note->check != check_of(note->number))
            fk__world_fail("R9", "a message has changed on its way");
        return note->number;
    }
    if (type == &fk_type_sim_long_post) {
        const sim_long_post *wide = data;
        uint8_t expected = (uint8_t)check_of(wide->number);
        for (size_t i = 0; i < sizeof(wide->filler); i++) {
            if (wide->filler[i] != expected)
                fk__world_fail("R9", "a message has changed on its way");
        }
        return wide->number;
    }
    if (type != &fk_type_text || len < 6 || len >= 24 || memcmp(data, "post ", 5) != 0) return 0;
    char text[24] = "";
    memcpy(text, data, len);
    return (uint32_t)strtoul(text + 5, NULL, 10);
}

/* ---- what actors know ---------------------------------------------------------------------- */

typedef struct acquaintance {
    fk_ref ref;
    uint16_t person; /* FK_NOBODY: whoever is there */
} acquaintance;

typedef struct question {
    uint16_t asker;
    bool is_answered;
    uint32_t lives; /* of the asker */
    uint32_t post;
    fk_time at, timeout;
} question;

enum { QUESTIONS_MAX = 512 };

static fk_folk *const f = &fk__folk;
static fk_remote_run *const r = &fk__remote_run_state;
static acquaintance known[FK_FOLK_MAX][FK_FOLK_STATIONS][FK_FOLK_SLOTS];
static question questions[QUESTIONS_MAX];
static uint32_t question_count;

void fk__remote_actors_begin(void)
{
    question_count = 0;
}

typedef struct resident {
    uint32_t person;
} resident;

static bool one_in(uint32_t n)
{
    return fk__world_one_in(n);
}

/* Some person who has, or had, that name; the present one mostly. */
static uint32_t pick_person(uint32_t station, uint32_t slot)
{
    uint32_t person = f->at[station][slot];
    if (person != FK_NOBODY && !one_in(4)) return person;
    uint32_t start = f->count > 0 ? fk__world_below(f->count) : 0;
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t other = (start + i) % f->count;
        const fk_dweller *p = &f->person[other];
        if (p->is_spawned && p->station == station && p->slot == slot) return other;
    }
    return FK_NOBODY;
}

static fk_err resolve(fk_system *sys, uint32_t station, uint32_t slot, acquaintance *out)
{
    char path[80];
    uint32_t person = one_in(r->voyage.uidless_in) ? FK_NOBODY : pick_person(station, slot);
    fk_str address = fk__station_address(station);
    int len = snprintf(path, sizeof(path), "%.*s/user/p%u", (int)address.len, address.ptr,
                       (unsigned)slot);
    if (person != FK_NOBODY) {
        len += snprintf(path + len, sizeof(path) - (size_t)len, "#%llu",
                        (unsigned long long)f->person[person].uid);
    }
    out->person = (uint16_t)person;
    fk_err err = fk_resolve(sys, (fk_str){ path, (size_t)len }, &out->ref, NULL);
    if (err != FK_OK && err != FK_E_QUARANTINED && err != FK_E_LIMIT)
        fk__world_fail("A4", "%s cannot be resolved: %s", path, fk_err_name(err));
    return err;
}

/* Somebody elsewhere; target: at that station, if not FK_NOBODY. False: there is no way. */
static bool choose(fk_ctx *ctx, uint32_t self, uint32_t target, acquaintance *out,
                   uint32_t *station, uint32_t *slot)
{
    uint32_t own = f->person[self].station;
    uint32_t other = (own + 1 + fk__world_below(fk__stations_count() - 1)) % fk__stations_count();
    *station = target != FK_NOBODY ? target : other;
    *slot = fk__world_below(FK_FOLK_SLOTS);
    acquaintance *a = &known[self][*station][*slot];
    if (!fk_ref_is_none(a->ref) && !one_in(3)) {
        *out = *a;
        return true;
    }
    if (resolve(fk_system_of(ctx), *station, *slot, out) != FK_OK) return false;
    *a = *out;
    return true;
}

/* ---- deeds --------------------------------------------------------------------------------- */

static bool may_send(void)
{
    return r->is_healing || fk__posts.count < r->voyage.posts_max;
}

static void tell(fk_ctx *ctx, uint32_t self, uint32_t target, uint32_t count)
{
    acquaintance to;
    uint32_t station, slot;
    paper sheet;
    if (!choose(ctx, self, target, &to, &station, &slot)) return;
    for (uint32_t i = 0; i < count && may_send(); i++) {
        uint32_t number = fk__post_send(self, to.person, station, slot, FK_VIA_TELL);
        if (number == 0) return;
        fk__post_sent(number, fk_tell(ctx, to.ref, write_post(&sheet, number)));
    }
}

static void ask(fk_ctx *ctx, uint32_t self)
{
    acquaintance to;
    uint32_t station, slot;
    paper sheet;
    if (!may_send() || question_count == QUESTIONS_MAX) return;
    if (!choose(ctx, self, FK_NOBODY, &to, &station, &slot)) return;
    uint32_t number = fk__post_send(self, to.person, station, slot, FK_VIA_ASK);
    if (number == 0) return;
    uint32_t id = question_count++;
    fk_time timeout = FK_MILLIS(50 + fk__world_below(4000));
    questions[id] = (question){ .asker = (uint16_t)self,
                                .lives = f->person[self].lives,
                                .post = number,
                                .at = fk__world_now(),
                                .timeout = timeout };
    fk_err err = fk_ask(ctx, to.ref, write_post(&sheet, number), id, timeout);
    fk__post_sent(number, err);
    if (err != FK_OK) questions[id].is_answered = true;
}

static void select_tell(fk_ctx *ctx, uint32_t self)
{
    uint32_t own = f->person[self].station;
    uint32_t station = (own + 1 + fk__world_below(fk__stations_count() - 1)) % fk__stations_count();
    uint32_t slot = fk__world_below(FK_FOLK_SLOTS);
    char path[80];
    paper sheet;
    if (!may_send()) return;
    fk_str address = fk__station_address(station);
    int len = snprintf(path, sizeof(path), "%.*s/user/p%u", (int)address.len, address.ptr,
                       (unsigned)slot);
    uint32_t number = fk__post_send(self, FK_NOBODY, station, slot, FK_VIA_SELECT);
    if (number == 0) return;
    fk_err err = fk_select_tell(ctx, (fk_str){ path, (size_t)len }, write_post(&sheet, number));
    fk__post_sent(number, err);
    FK_SOMETIMES_HIT(SELECTED_REMOTE);
}

static void watch(fk_ctx *ctx, uint32_t self)
{
    acquaintance to;
    uint32_t station, slot;
    if (!choose(ctx, self, FK_NOBODY, &to, &station, &slot)) return;
    if (fk__vigil_find(self, to.ref) != FK_NOBODY) return;
    uint32_t vigil = fk__vigil_begin(self, to.person, station, slot, to.ref);
    if (vigil != FK_NOBODY) fk__vigil_begun(vigil, fk_watch(ctx, to.ref));
}

static void unwatch(fk_ctx *ctx, uint32_t self)
{
    uint32_t vigil = fk__vigil_of(self, fk__world_below(4));
    if (vigil == FK_NOBODY) return;
    fk__vigil_ended(vigil, fk_unwatch(ctx, fk__vigils.vigil[vigil].ref));
    FK_SOMETIMES_HIT(UNWATCHED_REMOTE);
}

static fk_deed draw_deed(void)
{
    uint32_t draw = fk__world_below(r->voyage.deed_sum), deed = 0;
    while (draw >= r->voyage.deed[deed]) draw -= r->voyage.deed[deed++];
    return (fk_deed)deed;
}

static fk_err act(fk_ctx *ctx, uint32_t self)
{
    switch (draw_deed()) {
    case FK_DEED_TELL: tell(ctx, self, FK_NOBODY, 1); break;
    case FK_DEED_BURST: tell(ctx, self, FK_NOBODY, 2 + fk__world_below(30)); break;
    case FK_DEED_ASK: ask(ctx, self); break;
    case FK_DEED_SELECT: select_tell(ctx, self); break;
    case FK_DEED_WATCH: watch(ctx, self); break;
    case FK_DEED_UNWATCH: unwatch(ctx, self); break;
    case FK_DEED_STOP: fk_stop_self(ctx); break;
    case FK_DEED_FAIL: return FK_E_FAILED;
    default: break;
    }
    return FK_OK;
}

/* ---- receiving ----------------------------------------------------------------------------- */

static fk_err obey(fk_ctx *ctx, uint32_t self, const sim_order *order)
{
    fk_err err = FK_OK;
    if (order->target != FK_NOBODY) {
        tell(ctx, self, order->target, 1);
        return FK_OK;
    }
    for (uint32_t i = 0; i < order->deeds && err == FK_OK; i++) err = act(ctx, self);
    return err;
}

static void reply(fk_ctx *ctx, uint32_t self, const fk_post *post)
{
    const fk_dweller *to = &f->person[post->origin];
    paper sheet;
    uint32_t number = fk__post_send(self, post->origin, to->station, to->slot,
                                    post->is_asked ? FK_VIA_ANSWER : FK_VIA_REPLY);
    if (number != 0) fk__post_sent(number, fk_reply(ctx, write_post(&sheet, number)));
}

static void forward(fk_ctx *ctx, uint32_t self, uint32_t number)
{
    acquaintance to;
    uint32_t station, slot;
    if (!choose(ctx, self, FK_NOBODY, &to, &station, &slot)) return;
    fk__post_forward(number, self, to.person, station, slot);
    fk__post_sent(number, fk_forward(ctx, to.ref));
    FK_SOMETIMES_HIT(FORWARDED_REMOTE);
}

static void take_post(fk_ctx *ctx, uint32_t self, uint32_t number, const fk_msg *msg)
{
    const fk_post *post = &fk__posts.post[number];
    fk__post_received(number, self);
    const fk_dweller *origin = &f->person[post->origin];
    uint32_t own = f->person[self].station;
    r->proved[f->person[post->from].station][own] = true;
    if (!post->is_asked && origin->station != own) {
        acquaintance *a = &known[self][origin->station][origin->slot];
        *a = (acquaintance){ msg->sender, post->origin };
    }
    if (r->is_healing || !may_send()) return;
    uint32_t draw = fk__world_below(8);
    if (post->is_asked ? draw != 0 : one_in(r->voyage.react_in)) {
        if (draw == 1 && post->legs < 3)
            forward(ctx, self, number);
        else if (post->via != FK_VIA_REPLY || draw < 4)
            reply(ctx, self, post);
    }
}

static void take_answer(uint32_t self, const fk_answer *answer)
{
    fk_time now = fk__world_now();
    fk__ledger_note(FK_FACT_ANSWER, self, FK_NOBODY, (uint32_t)answer->id, (uint32_t)answer->err);
    if (answer->id >= question_count) fk__world_fail("A1", "an answer to no question");
    question *q = &questions[answer->id];
    if (q->asker != self || q->is_answered) fk__world_fail("A1", "an answer too many");
    q->is_answered = true;
    if (answer->err == FK_E_TIMEOUT) {
        FK_SOMETIMES_HIT(ASK_TIMED_OUT);
        if (now - q->at < q->timeout) fk__world_fail("A11", "a question is given up early");
        return;
    }
    if (answer->err != FK_OK) return;
    FK_SOMETIMES_HIT(ASK_ANSWERED);
    const fk_msg *msg = &answer->reply;
    uint32_t number = read_post(msg->type, msg->data, msg->len);
    if (number == 0 || fk__posts.post[number].via != FK_VIA_ANSWER)
        fk__world_fail("A1", "an answer that nobody gave");
    fk__post_received(number, self);
}

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const resident *own = state;
    const sim_order *order = FK_AS(sim_order, msg);
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (order != NULL) return obey(ctx, own->person, order);
    if (end != NULL) {
        fk__vigil_told(own->person, end->actor, end->address_terminated);
        return FK_OK;
    }
    if (answer != NULL) {
        take_answer(own->person, answer);
        return FK_OK;
    }
    uint32_t number = read_post(msg->type, msg->data, msg->len);
    if (number == 0) return fk_unhandled(ctx, msg);
    take_post(ctx, own->person, number, msg);
    return FK_OK;
}

static fk_err start(fk_ctx *ctx, void *state)
{
    const resident *own = state;
    fk_dweller *p = &f->person[own->person];
    if (p->lives++ > 0) return FK_OK;
    char path[128];
    size_t len = fk_path_of(fk_system_of(ctx), fk_self(ctx), path, sizeof(path));
    const char *mark = len < sizeof(path) ? memchr(path, '#', len) : NULL;
    uint64_t uid = mark != NULL ? strtoull(mark + 1, NULL, 10) : 0;
    fk__folk_spawned(own->person, FK_OK, fk_self(ctx), uid);
    return FK_OK;
}

/* ---- for the director ---------------------------------------------------------------------- */

void fk__remote_spawn(uint32_t station, uint32_t slot)
{
    uint32_t person = fk__folk_spawn(station, slot);
    if (person == FK_NOBODY) return;
    resident init = { person };
    fk_props props = {
        .receive = receive, .start = start, .state_size = sizeof(init), .init = &init
    };
    char name[8];
    fk_ref ref;
    memset(known[person], 0, sizeof(known[person]));
    snprintf(name, sizeof(name), "p%u", (unsigned)slot);
    fk_err err = fk_spawn(fk__station[station].sys, fk_str_of(name), &props, &ref);
    if (err == FK_OK) return;
    if (err != FK_E_NAME_TAKEN && err != FK_E_STOPPING)
        fk__world_fail("A7", "nobody can be spawned: %s", fk_err_name(err));
    fk__folk_spawned(person, err, FK_REF_NONE, 0);
}

void fk__remote_order(uint32_t person, uint32_t deeds, uint32_t target)
{
    const fk_dweller *p = &f->person[person];
    (void)fk_send(fk__station[p->station].sys, p->ref, FK_MSG(sim_order, deeds, target));
}

void fk__remote_letter(void *user, const fk_dead_letter *letter)
{
    const fk_station *s = user;
    uint32_t number = read_post(letter->type, letter->data, letter->len);
    fk__tie_letter(s->number, letter->reason);
    if (number == 0 && letter->type == &fk_type_bytes) fk__post_unread(s->number);
    if (number == 0) return;
    if (letter->reason == FK_REASON_FULL) FK_SOMETIMES_HIT(REMOTE_FULL);
    if (letter->reason == FK_REASON_LATE_REPLY) FK_SOMETIMES_HIT(LATE_REPLY);
    fk__post_dead(number, s->number, letter->reason);
}

void fk__remote_asks_check_live(void)
{
    for (uint32_t i = 0; i < question_count; i++) {
        const question *q = &questions[i];
        bool is_same = fk__folk_lives(q->asker) && f->person[q->asker].lives == q->lives;
        if (q->is_answered || !is_same) continue;
        if (fk__world_now() > q->at + q->timeout + FK_SECONDS(1))
            fk__world_fail("A1", "question %u of a%u has no answer", i, q->asker);
    }
}
