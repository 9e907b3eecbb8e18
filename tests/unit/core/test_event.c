/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Callbacks that subscribe to events: topics, levels, replay, and what they may do when called. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/event.h"
#include "support/rig.h"

/* What a callback got. */
typedef struct ear {
    rig *r;
    fk_subscription subscription;
    size_t count;
    size_t of[FK_EVENT_COUNT];
    fk_event_kind order[128];
    fk_level level;
    fk_reason reason;
    char text[128], detail[128], type[64];
    fk_failure_phase phase;
    bool has_data;
    void (*also)(struct ear *ear, const fk_event *event);
    struct ear *other;
} ear;

static void ear_on_event(void *user, const fk_event *event)
{
    ear *e = user;
    e->order[e->count % 128] = event->kind;
    e->count++;
    e->of[event->kind]++;
    e->level = event->level;
    snprintf(e->text, sizeof(e->text), "%.*s", (int)event->text.len,
             event->text.len != 0 ? event->text.ptr : "");
    if (event->letter != NULL) {
        e->reason = event->letter->reason;
        e->has_data = event->letter->data != NULL;
        snprintf(e->type, sizeof(e->type), "%s", event->letter->type->name);
    }
    if (event->failure != NULL) {
        e->phase = event->failure->phase;
        snprintf(e->detail, sizeof(e->detail), "%s", event->failure->detail);
    }
    if (e->also != NULL) e->also(e, event);
}

static void ear_open(ear *e, rig *r, fk_topics topics, fk_level level)
{
    e->r = r;
    CHECK_OK(fk_subscribe(r->sys, topics, level, ear_on_event, e, &e->subscription));
}

static void say(rig *r, fk_level level, const char *text)
{
    fk_log(r->sys, level, FK_REF_NONE, fk_str_of(text));
}

static void emit(rig *r, fk_event_kind kind)
{
    fk__event(r->sys, NULL, &(fk_event){ .kind = kind, .text = FK_STR("emitted") });
}

/* ---- names --------------------------------------------------------------------------------------- */

TEST(event_names_are_those_of_the_table)
{
    CHECK_STR(fk_event_name(FK_EVENT_DEAD_LETTER), "dead_letter");
    CHECK_STR(fk_event_name(FK_EVENT_INVALID_ASSOCIATION), "invalid_association");
    CHECK_STR(fk_event_name(FK_EVENT_COUNT), "unknown");
    CHECK_STR(fk_level_name(FK_LEVEL_DEBUG), "debug");
    CHECK_STR(fk_level_name(FK_LEVEL_ERROR), "error");
    CHECK_STR(fk_level_name((fk_level)4), "unknown");
    CHECK_U64(FK_TOPIC_ALL & FK_TOPIC_REPLAY, 0);
    CHECK_U64(FK_TOPIC_ALL & FK_TOPIC(INVALID_ASSOCIATION), FK_TOPIC(INVALID_ASSOCIATION));
}

/* ---- topics and levels --------------------------------------------------------------------------- */

TEST(event_is_wanted_only_while_somebody_listens)
{
    rig r;
    ear e = { 0 };
    rig_start(&r);
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_STARTED));
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_DEAD_LETTER));
    CHECK(fk__event_wanted(r.sys, FK_EVENT_FAILED)); /* for the replay */
    ear_open(&e, &r, FK_TOPIC_LIFECYCLE, FK_LEVEL_INFO);
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_STARTED)); /* that is debug */
    CHECK(fk__event_wanted(r.sys, FK_EVENT_RESTARTED));
    CHECK_OK(fk_unsubscribe(r.sys, e.subscription));
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_RESTARTED));
    CHECK_ERR(fk_unsubscribe(r.sys, e.subscription), FK_E_NOT_FOUND);
    rig_stop(&r);
}

TEST(event_reaches_those_who_asked_for_its_kind_and_level)
{
    rig r;
    ear all = { 0 }, letters = { 0 }, loud = { 0 };
    rig_start(&r);
    ear_open(&all, &r, FK_TOPIC_ALL, FK_LEVEL_DEBUG);
    ear_open(&letters, &r, FK_TOPIC_DEAD_LETTERS, FK_LEVEL_DEBUG);
    ear_open(&loud, &r, FK_TOPIC_ALL, FK_LEVEL_WARN);
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    say(&r, FK_LEVEL_DEBUG, "quiet");
    CHECK_U64(all.level, FK_LEVEL_DEBUG);
    say(&r, FK_LEVEL_ERROR, "loud");
    CHECK_U64(all.count, 3);
    CHECK_U64(letters.count, 1);
    CHECK_U64(letters.reason, FK_REASON_NO_RECEIVER);
    CHECK_U64(letters.level, FK_LEVEL_INFO);
    CHECK_STR(letters.type, "num");
    CHECK_U64(loud.count, 1);
    CHECK_STR(loud.text, "loud");
    rig_stop(&r);
}

TEST(event_goes_to_overlapping_topics_once)
{
    rig r;
    ear e = { 0 };
    fk_topics topics = FK_TOPIC_LIFECYCLE;
    rig_start(&r);
    CHECK(topics & FK_TOPIC_SUPERVISION);
    topics |= FK_TOPIC_SUPERVISION;
    ear_open(&e, &r, topics, FK_LEVEL_DEBUG);
    emit(&r, FK_EVENT_RESTARTED);
    CHECK_U64(e.count, 1);
    rig_stop(&r);
}

TEST(event_subscription_needs_a_topic_a_level_and_a_function)
{
    rig r;
    ear e = { 0 };
    fk_subscription s;
    rig_start(&r);
    CHECK_ERR(fk_subscribe(r.sys, 0, FK_LEVEL_INFO, ear_on_event, &e, &s), FK_E_INVALID);
    CHECK_ERR(fk_subscribe(r.sys, FK_TOPIC_REPLAY, FK_LEVEL_INFO, ear_on_event, &e, &s),
              FK_E_INVALID);
    CHECK_ERR(fk_subscribe(r.sys, FK_TOPIC_LOG, (fk_level)9, ear_on_event, &e, &s), FK_E_INVALID);
    CHECK_ERR(fk_subscribe(r.sys, FK_TOPIC_LOG, FK_LEVEL_INFO, NULL, &e, &s), FK_E_INVALID);
    rig_stop(&r);
}

TEST(event_of_a_log_carries_the_actor)
{
    rig r;
    ear e = { 0 };
    rig_start(&r);
    ear_open(&e, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
    say(&r, (fk_level)17, "what level is that?");
    CHECK_U64(e.level, FK_LEVEL_ERROR);
    CHECK_U64(e.of[FK_EVENT_LOG], 1);
    rig_stop(&r);
}

/* ---- the kinds of dead letters ------------------------------------------------------------------- */

typedef struct hush {
    int n;
} hush;
FK_MESSAGE_QUIET(hush);

static fk_err refuse_all(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

TEST(event_b49_of_a_quiet_type_is_a_suppressed_dead_letter_and_nothing_else)
{
    rig r;
    ear e = { 0 };
    fk_stats stats;
    fk_ref ref;
    rig_start(&r);
    ear_open(&e, &r, FK_TOPIC_DEAD_LETTERS, FK_LEVEL_DEBUG);
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(hush, 1)));
    CHECK_U64(e.of[FK_EVENT_SUPPRESSED], 1);
    CHECK_OK(fk_spawn(r.sys, FK_STR("x"), &(fk_props){ .receive = refuse_all }, &ref));
    CHECK_OK(fk_poison(r.sys, ref)); /* of two the second comes too late */
    CHECK_OK(fk_poison(r.sys, ref));
    rig_run(&r);
    CHECK_U64(e.of[FK_EVENT_SUPPRESSED], 2);
    CHECK_U64(e.count, 2);
    CHECK_U64(r.letters.count, 0);
    fk_stats_get(r.sys, &stats);
    for (int i = 0; i < FK_REASON_COUNT; i++) CHECK_U64(stats.dead_letters[i], 0);
    rig_stop(&r);
}

TEST(event_of_what_an_actor_does_not_handle_is_unhandled)
{
    rig r;
    ear e = { 0 };
    fk_ref ref;
    rig_start(&r);
    ear_open(&e, &r, FK_TOPIC_DEAD_LETTERS, FK_LEVEL_DEBUG);
    CHECK_OK(fk_spawn(r.sys, FK_STR("x"), &(fk_props){ .receive = refuse_all }, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(e.of[FK_EVENT_UNHANDLED], 1);
    CHECK_U64(e.count, 1);
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 1);
    rig_stop(&r);
}

/* ---- replay -------------------------------------------------------------------------------------- */

TEST(event_replay_gives_the_last_rare_ones_in_order)
{
    rig r;
    ear e = { 0 };
    rig_start(&r);
    fk_failure failure = { FK_REF_NONE, FK_E_INVALID, &fk_type_num, "broken", FK_PHASE_START };
    fk__event(r.sys, NULL, &(fk_event){ .kind = FK_EVENT_FAILED, .failure = &failure });
    emit(&r, FK_EVENT_STARTED); /* not kept */
    say(&r, FK_LEVEL_INFO, "not kept");
    say(&r, FK_LEVEL_WARN, "kept");
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    ear_open(&e, &r, FK_TOPIC_ALL | FK_TOPIC_REPLAY, FK_LEVEL_DEBUG);
    CHECK_U64(e.count, 2);
    CHECK_U64(e.order[0], FK_EVENT_FAILED);
    CHECK_U64(e.order[1], FK_EVENT_LOG);
    CHECK_STR(e.text, "kept");
    CHECK_STR(e.detail, "broken");
    CHECK_U64(e.phase, FK_PHASE_START);
    ear late = { 0 };
    ear_open(&late, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG); /* did not ask for it */
    CHECK_U64(late.count, 0);
    rig_stop(&r);
}

TEST(event_replay_is_bounded_and_of_the_topics_of_the_config)
{
    rig r;
    ear e = { 0 }, choosy = { 0 };
    rig_start_with(&r, (fk_system_config){ .name = "test",
                                           .events_replay = 3,
                                           .events_replay_topics = FK_TOPIC_DEAD_LETTERS });
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_FAILED));
    for (int i = 0; i < 5; i++) CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    ear_open(&e, &r, FK_TOPIC_ALL | FK_TOPIC_REPLAY, FK_LEVEL_DEBUG);
    CHECK_U64(e.of[FK_EVENT_DEAD_LETTER], 3);
    CHECK_STR(e.type, "num");
    CHECK(!e.has_data);
    CHECK_U64(e.reason, FK_REASON_NO_RECEIVER);
    ear_open(&choosy, &r, FK_TOPIC_ALL | FK_TOPIC_REPLAY, FK_LEVEL_WARN);
    CHECK_U64(choosy.count, 0);
    rig_stop(&r);
}

TEST(event_replay_can_be_switched_off)
{
    rig r;
    ear e = { 0 };
    rig_start_with(&r, (fk_system_config){ .name = "test", .events_replay = FK_REPLAY_NONE });
    CHECK(!fk__event_wanted(r.sys, FK_EVENT_FAILED));
    emit(&r, FK_EVENT_FAILED);
    ear_open(&e, &r, FK_TOPIC_ALL | FK_TOPIC_REPLAY, FK_LEVEL_DEBUG);
    CHECK_U64(e.count, 0);
    rig_stop(&r);
}

/* ---- what callbacks do --------------------------------------------------------------------------- */

static void also_log(ear *e, const fk_event *event)
{
    (void)event;
    CHECK(e->count < 100);
    say(e->r, FK_LEVEL_INFO, "from a callback");
}

TEST(event_of_a_callback_goes_to_the_others_and_no_further)
{
    rig r;
    ear a = { .also = also_log }, b = { .also = also_log };
    rig_start(&r);
    ear_open(&a, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
    say(&r, FK_LEVEL_INFO, "one");
    CHECK_U64(a.count, 1); /* not for what it says itself */
    ear_open(&b, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
    say(&r, FK_LEVEL_INFO, "two");
    CHECK_U64(a.count, 3); /* "two" and what b said of it */
    CHECK_U64(b.count, 2);
    rig_stop(&r);
}

static void also_unsubscribe(ear *e, const fk_event *event)
{
    (void)event;
    CHECK_OK(fk_unsubscribe(e->r->sys, e->subscription));
    if (e->other != NULL) CHECK_OK(fk_unsubscribe(e->r->sys, e->other->subscription));
}

TEST(event_callback_may_unsubscribe_itself_and_the_next)
{
    rig r;
    ear a = { .also = also_unsubscribe }, b = { 0 }, c = { 0 };
    a.other = &b;
    rig_start(&r);
    ear_open(&a, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
    ear_open(&b, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
    ear_open(&c, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
    say(&r, FK_LEVEL_INFO, "one");
    say(&r, FK_LEVEL_INFO, "two");
    CHECK_U64(a.count, 1);
    CHECK_U64(b.count, 0);
    CHECK_U64(c.count, 2);
    rig_stop(&r);
}

static void also_spawn(ear *e, const fk_event *event)
{
    fk_ref ref;
    (void)event;
    CHECK_OK(fk_spawn(e->r->sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref));
    CHECK_OK(fk_send(e->r->sys, ref, FK_MSG(num, 1)));
    if (e->other->r == NULL) ear_open(e->other, e->r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
}

TEST(event_callback_may_spawn_send_and_subscribe)
{
    rig r;
    ear a = { .also = also_spawn }, b = { 0 };
    fk_stats stats;
    a.other = &b;
    rig_start(&r);
    ear_open(&a, &r, FK_TOPIC_LOG, FK_LEVEL_DEBUG);
    say(&r, FK_LEVEL_INFO, "one");
    say(&r, FK_LEVEL_INFO, "two");
    CHECK_U64(b.of[FK_EVENT_LOG] >= 1, 1);
    fk_stats_get(r.sys, &stats);
    CHECK_U64(stats.actors, 2);
    rig_stop(&r);
}

/* A thread that stays in the callback until it is let go. */
static pthread_barrier_t inside;
static _Atomic bool is_let_go, is_back;

static void stay(void *user, const fk_event *event)
{
    (void)user;
    (void)event;
    pthread_barrier_wait(&inside);
    while (!atomic_load(&is_let_go)) test_sleep_ms(1);
    test_sleep_ms(5);
    atomic_store(&is_back, true);
}

static void *log_once(void *arg)
{
    say(arg, FK_LEVEL_INFO, "one");
    return NULL;
}

static void *let_go(void *arg)
{
    (void)arg;
    test_sleep_ms(20);
    atomic_store(&is_let_go, true);
    return NULL;
}

TEST(event_unsubscribing_waits_for_the_callback_on_other_threads)
{
    rig r;
    pthread_t in, out;
    fk_subscription s;
    rig_start(&r);
    atomic_store(&is_let_go, false);
    atomic_store(&is_back, false);
    pthread_barrier_init(&inside, NULL, 2);
    CHECK_OK(fk_subscribe(r.sys, FK_TOPIC_LOG, FK_LEVEL_INFO, stay, NULL, &s));
    CHECK_U64(pthread_create(&in, NULL, log_once, &r), 0);
    pthread_barrier_wait(&inside);
    CHECK_U64(pthread_create(&out, NULL, let_go, NULL), 0);
    CHECK_OK(fk_unsubscribe(r.sys, s));
    CHECK(atomic_load(&is_back));
    pthread_join(in, NULL);
    pthread_join(out, NULL);
    pthread_barrier_destroy(&inside);
    rig_stop(&r);
}

/* ---- the end ------------------------------------------------------------------------------------- */

TEST(event_stream_that_has_stopped_publishes_nothing)
{
    rig r;
    ear e = { 0 };
    fk_subscription s;
    rig_start_with(&r, (fk_system_config){ .name = "test" });
    ear_open(&e, &r, FK_TOPIC_ALL, FK_LEVEL_DEBUG);
    say(&r, FK_LEVEL_ERROR, "before");
    fk__events_stop(r.sys);
    fk__events_stop(r.sys);
    say(&r, FK_LEVEL_ERROR, "after");
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    CHECK_U64(e.count, 1);
    CHECK_U64(r.letters.count, 1); /* the callback of the config is none of its business */
    CHECK_ERR(fk_unsubscribe(r.sys, e.subscription), FK_E_NOT_FOUND);
    CHECK_ERR(fk_subscribe(r.sys, FK_TOPIC_LOG, FK_LEVEL_INFO, ear_on_event, &e, &s),
              FK_E_STOPPING);
    rig_stop(&r);
}

/* A callback that leaves and comes again with every event. */
typedef struct restless {
    rig r;
    fk_subscription subscription;
    int calls;
} restless;

static void come_again(void *user, const fk_event *event)
{
    restless *me = user;
    (void)event;
    CHECK(++me->calls < 10);
    CHECK_OK(fk_unsubscribe(me->r.sys, me->subscription));
    CHECK_OK(
        fk_subscribe(me->r.sys, FK_TOPIC_LOG, FK_LEVEL_DEBUG, come_again, me, &me->subscription));
}

TEST(event_subscriber_that_comes_again_hears_of_each_event_once)
{
    static restless me;
    rig_start(&me.r);
    CHECK_OK(
        fk_subscribe(me.r.sys, FK_TOPIC_LOG, FK_LEVEL_DEBUG, come_again, &me, &me.subscription));
    fk_log(me.r.sys, FK_LEVEL_INFO, FK_REF_NONE, FK_STR("one"));
    CHECK_U64(me.calls, 1);
    fk_log(me.r.sys, FK_LEVEL_INFO, FK_REF_NONE, FK_STR("two"));
    CHECK_U64(me.calls, 2);
    rig_stop(&me.r);
}
