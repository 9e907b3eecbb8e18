/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Actors that subscribe to events, and to types of messages of the program's own. */

#include <string.h>

#include "core/event.h"
#include "support/rig.h"

typedef struct listener {
    size_t count;
    size_t of[FK_EVENT_COUNT];
    fk_event_record last;
    bool refuses;
} listener;

static fk_err listen(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    listener *l = state;
    const fk_event_record *record = FK_AS(fk_event_record, msg);
    if (record == NULL) return fk_unhandled(ctx, msg);
    CHECK(fk_ref_is_none(msg->sender));
    l->count++;
    l->of[record->kind]++;
    l->last = *record;
    return l->refuses ? fk_unhandled(ctx, msg) : FK_OK;
}

static fk_ref listener_spawn(rig *r, listener *l, const char *name)
{
    fk_ref ref;
    memset(l, 0, sizeof(*l));
    fk_props props = { .receive = listen, .state = l };
    CHECK_OK(fk_spawn(r->sys, fk_str_of(name), &props, &ref));
    rig_run(r);
    return ref;
}

static void emit(rig *r, fk_event_kind kind)
{
    fk__event(r->sys, NULL, &(fk_event){ .kind = kind, .text = FK_STR("emitted") });
    rig_run(r);
}

static void bury(rig *r, fk_ref ref)
{
    CHECK_OK(fk_stop(r->sys, ref));
    rig_run(r);
}

TEST(event_actor_gets_a_record_with_everything_in_it)
{
    rig r;
    listener l;
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    fk_ref dead = doer_spawn(&r);
    char path[256];
    rig_run(&r);
    fk_path_of(r.sys, dead, path, sizeof(path));
    bury(&r, dead);
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_ALL));
    CHECK_OK(fk_send_from(r.sys, dead, ref, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(l.of[FK_EVENT_DEAD_LETTER], 1);
    CHECK_STR(l.last.path, path);
    CHECK_STR(l.last.type, "num");
    CHECK_STR(l.last.reason, "stopped");
    CHECK_U64(l.last.letter, FK_REASON_STOPPED);
    CHECK_U64(l.last.len, sizeof(num));
    CHECK(fk_ref_equal(l.last.sender, ref));
    CHECK(fk_ref_equal(l.last.actor, dead));
    rig_stop(&r);
}

TEST(event_actor_record_cuts_what_is_too_long)
{
    rig r;
    listener l;
    char text[2000];
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    memset(text, 'x', sizeof(text));
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_LOG));
    fk_log(r.sys, FK_LEVEL_DEBUG, ref, (fk_str){ text, sizeof(text) });
    rig_run(&r);
    CHECK_U64(strlen(l.last.text), sizeof(l.last.text) - 1);
    CHECK_U64(l.last.level, FK_LEVEL_DEBUG);
    fk_path_of(r.sys, ref, text, sizeof(text));
    CHECK_STR(l.last.path, text);
    rig_stop(&r);
}

TEST(event_b60_unsubscribing_a_kind_silences_it_although_its_group_stays)
{
    rig r;
    listener l;
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_LIFECYCLE));
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_SUPERVISION)); /* overlaps */
    CHECK_ERR(fk_subscribe_actor(r.sys, ref, FK_TOPIC(STARTED)), FK_E_STATE);
    emit(&r, FK_EVENT_RESTARTED);
    CHECK_U64(l.count, 1);
    CHECK_OK(fk_unsubscribe_actor(r.sys, ref, FK_TOPIC(RESTARTED)));
    CHECK_ERR(fk_unsubscribe_actor(r.sys, ref, FK_TOPIC(RESTARTED)), FK_E_NOT_FOUND);
    emit(&r, FK_EVENT_RESTARTED);
    emit(&r, FK_EVENT_RESUMED);
    CHECK_U64(l.of[FK_EVENT_RESTARTED], 1);
    CHECK_U64(l.of[FK_EVENT_RESUMED], 1);
    CHECK_OK(fk_unsubscribe_actor(r.sys, ref, FK_TOPIC_ALL));
    CHECK_ERR(fk_unsubscribe_actor(r.sys, ref, FK_TOPIC_ALL), FK_E_NOT_FOUND);
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_RESUMED));
    emit(&r, FK_EVENT_RESUMED);
    CHECK_U64(l.count, 2);
    rig_stop(&r);
}

TEST(event_actor_that_has_died_is_removed_by_the_next_event)
{
    rig r;
    listener l;
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_DEAD_LETTERS));
    bury(&r, ref);
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_DEAD_LETTER));
    CHECK_U64(r.letters.count, 1); /* and no dead letter of that */
    CHECK_ERR(fk_subscribe_actor(r.sys, ref, FK_TOPIC_ALL), FK_E_DEAD);
    CHECK_ERR(fk_subscribe_actor(r.sys, FK_REF_NONE, FK_TOPIC_ALL), FK_E_DEAD);
    CHECK_ERR(fk_subscribe_actor(r.sys, ref, 0), FK_E_INVALID);
    rig_stop(&r);
}

TEST(event_actor_that_has_died_is_forgotten_when_somebody_says_so)
{
    rig r;
    listener l;
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    fk__events_forget(r.sys, ref); /* no subscriber: nothing */
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_LIFECYCLE));
    CHECK_OK(fk_subscribe_type(r.sys, ref, &fk_type_num));
    fk__events_forget(r.sys, FK_REF_NONE); /* another */
    CHECK(fk__event_wanted(r.sys, FK_EVENT_STARTED));
    fk__events_forget(r.sys, ref);
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_STARTED));
    CHECK_ERR(fk_unsubscribe_type(r.sys, ref, &fk_type_num), FK_E_NOT_FOUND);
    CHECK_U64(fk__half_load(&r.sys->events.actors, FK_RELAXED), 0);
    rig_stop(&r);
}

TEST(event_record_that_is_not_handled_makes_no_further_event)
{
    rig r;
    listener l;
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    l.refuses = true;
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_ALL));
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(l.count, 1);
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 1); /* but it is a dead letter */
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    bury(&r, ref); /* with a record in its mailbox */
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1);
    rig_stop(&r);
}

TEST(event_replay_to_an_actor_is_of_what_is_new_to_it)
{
    rig r;
    listener l;
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    emit(&r, FK_EVENT_FAILED);
    emit(&r, FK_EVENT_GUARDIAN);
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC(FAILED) | FK_TOPIC_REPLAY));
    rig_run(&r);
    CHECK_U64(l.count, 1);
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_ALL | FK_TOPIC_REPLAY));
    rig_run(&r);
    CHECK_U64(l.of[FK_EVENT_FAILED], 1);
    CHECK_U64(l.of[FK_EVENT_GUARDIAN], 1);
    rig_stop(&r);
}

static fk_err log_from_inside(fk_ctx *ctx, void *arg)
{
    (void)arg;
    fk_log_here(ctx, FK_LEVEL_INFO, FK_STR("from inside"));
    return FK_OK;
}

TEST(event_of_a_log_from_inside_is_about_the_actor)
{
    rig r;
    listener l;
    char path[256];
    rig_start(&r);
    fk_ref ref = listener_spawn(&r, &l, "ear");
    fk_ref doer = doer_spawn(&r);
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_LOG));
    rig_do(&r, doer, log_from_inside, NULL);
    fk_path_of(r.sys, doer, path, sizeof(path));
    CHECK_STR(l.last.path, path);
    CHECK_STR(l.last.text, "from inside");
    rig_stop(&r);
}

/* ---- types of messages --------------------------------------------------------------------------- */

TEST(publish_goes_to_all_who_subscribed_to_the_type)
{
    rig r;
    static probe p[3];
    fk_ref ref[3];
    rig_start(&r);
    for (int i = 0; i < 3; i++) ref[i] = probe_spawn(&r, &p[i]);
    CHECK_OK(fk_publish(r.sys, FK_MSG(num, 1))); /* nobody */
    for (int i = 0; i < 2; i++) CHECK_OK(fk_subscribe_type(r.sys, ref[i], &fk_type_num));
    CHECK_OK(fk_subscribe_type(r.sys, ref[2], &fk_type_text));
    CHECK_ERR(fk_subscribe_type(r.sys, ref[0], &fk_type_num), FK_E_STATE);
    CHECK_ERR(fk_subscribe_type(r.sys, ref[0], NULL), FK_E_INVALID);
    CHECK_OK(fk_publish(r.sys, FK_MSG(num, 2)));
    CHECK_OK(fk_publish(r.sys, FK_TEXT("text")));
    rig_run(&r);
    CHECK_U64(p[0].count, 1);
    CHECK_U64(p[0].n[0], 2);
    CHECK_U64(p[1].count, 1);
    CHECK_U64(p[2].count, 1);
    CHECK(p[2].type == &fk_type_text);
    CHECK_OK(fk_unsubscribe_type(r.sys, ref[0], &fk_type_num));
    CHECK_ERR(fk_unsubscribe_type(r.sys, ref[0], &fk_type_num), FK_E_NOT_FOUND);
    bury(&r, ref[1]);
    CHECK_OK(fk_publish(r.sys, FK_MSG(num, 3)));
    rig_run(&r);
    CHECK_U64(p[0].count, 1);
    CHECK_ERR(fk_unsubscribe_type(r.sys, ref[1], &fk_type_num), FK_E_NOT_FOUND); /* dead */
    CHECK_U64(r.letters.count, 0);
    rig_stop(&r);
}

TEST(publish_of_what_owns_something_goes_to_one_only)
{
    rig r;
    static probe p[2];
    fk_ref ref[2];
    _Atomic int drops = 0;
    rig_start(&r);
    for (int i = 0; i < 2; i++) ref[i] = probe_spawn(&r, &p[i]);
    CHECK_OK(fk_publish(r.sys, FK_MSG(owned, &drops, 1)));
    CHECK_U64(drops, 1);
    CHECK_OK(fk_subscribe_type(r.sys, ref[0], &fk_type_owned));
    CHECK_OK(fk_publish(r.sys, FK_MSG(owned, &drops, 1)));
    rig_run(&r);
    CHECK_U64(p[0].count, 1);
    CHECK_U64(drops, 2);
    CHECK_OK(fk_subscribe_type(r.sys, ref[1], &fk_type_owned));
    CHECK_ERR(fk_publish(r.sys, FK_MSG(owned, &drops, 1)), FK_E_INVALID);
    CHECK_U64(drops, 3);
    CHECK_U64(r.letters.of[FK_REASON_SEVERAL], 1);
    rig_run(&r);
    CHECK_U64(p[0].count, 1);
    CHECK_U64(p[1].count, 0);
    rig_stop(&r);
}

TEST(publish_shares_a_payload)
{
    rig r;
    static probe p[2];
    _Atomic int drops = 0;
    fk_payload *payload;
    rig_start(&r);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(fk_subscribe_type(r.sys, probe_spawn(&r, &p[i]), &fk_type_owned));
    }
    CHECK_OK(fk_payload_create(r.sys, &fk_type_owned, sizeof(owned), &payload));
    *(owned *)fk_payload_data(payload) = (owned){ &drops, 1 };
    CHECK_OK(fk_publish(r.sys, FK_MSG_PAYLOAD(payload)));
    rig_run(&r);
    CHECK_U64(p[0].count, 1);
    CHECK_U64(p[1].count, 1);
    CHECK_U64(drops, 1);
    CHECK_ERR(fk_publish(r.sys, FK_MSG_PAYLOAD((fk_payload *)NULL)), FK_E_INVALID);
    CHECK_U64(r.letters.of[FK_REASON_BAD_TYPE], 1);
    rig_stop(&r);
}
