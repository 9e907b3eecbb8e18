/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Events without memory: who subscribed gets what there is memory for, the rest is counted, and
 * unsubscribing always works. */

#include "oom/sweep.h"

typedef struct ear {
    fk_subscription subscription;
    size_t count;
} ear;

static void ear_on_event(void *user, const fk_event *event)
{
    ear *e = user;
    (void)event;
    e->count++;
}

static fk_err hear(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sweep *s = state;
    (void)ctx;
    if (FK_AS(fk_event_record, msg) != NULL) s->probe.count++;
    return FK_OK;
}

static void prepare_target(sweep *s)
{
    fk_props props = { .receive = hear, .state = s };
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
}

static void act_subscribe(sweep *s)
{
    static ear e;
    fk_system *sys = s->r.sys;
    e = (ear){ { 0 }, 0 };
    bool hears =
        note(s, fk_subscribe(sys, FK_TOPIC_LOG, FK_LEVEL_INFO, ear_on_event, &e, &e.subscription));
    bool has_topic = note(s, fk_subscribe_actor(sys, s->target, FK_TOPIC_LOG));
    bool has_type = note(s, fk_subscribe_type(sys, s->target, &fk_type_num));
    fk_log(sys, FK_LEVEL_WARN, s->target, FK_STR("is anybody there?"));
    note(s, fk_publish(sys, FK_MSG(num, 1)));
    CHECK_U64(e.count, hears ? 1 : 0); /* calling needs none */
    CHECK_ERR(fk_unsubscribe(sys, e.subscription), hears ? FK_OK : FK_E_NOT_FOUND);
    CHECK_ERR(fk_unsubscribe_actor(sys, s->target, FK_TOPIC_ALL),
              has_topic ? FK_OK : FK_E_NOT_FOUND);
    CHECK_ERR(fk_unsubscribe_type(sys, s->target, &fk_type_num), has_type ? FK_OK : FK_E_NOT_FOUND);
    rig_run(&s->r);
}

/* Every record arrives or is a dead letter. */
static void act_publish(sweep *s)
{
    size_t before = s->r.letters.count;
    for (int i = 0; i < 3; i++) {
        fk_log(s->r.sys, FK_LEVEL_WARN, s->target, FK_STR("news"));
        rig_run(&s->r);
    }
    CHECK_U64(s->probe.count + s->r.letters.count - before, 3);
}

static void prepare_subscribed(sweep *s)
{
    prepare_target(s);
    CHECK_OK(fk_subscribe_actor(s->r.sys, s->target, FK_TOPIC_LOG));
}

static void prepare_kept(sweep *s)
{
    prepare_target(s);
    for (int i = 0; i < 3; i++) {
        fk_log(s->r.sys, FK_LEVEL_WARN, FK_REF_NONE, FK_STR("kept"));
    }
}

static void act_replay(sweep *s)
{
    static ear e;
    e = (ear){ { 0 }, 0 };
    if (note(s, fk_subscribe(s->r.sys, FK_TOPIC_LOG | FK_TOPIC_REPLAY, FK_LEVEL_INFO, ear_on_event,
                             &e, &e.subscription))) {
        CHECK_U64(e.count, 3);
    }
    note(s, fk_subscribe_actor(s->r.sys, s->target, FK_TOPIC_LOG | FK_TOPIC_REPLAY));
    rig_run(&s->r);
}

static void act_sink(sweep *s)
{
    fk_subscription sink;
    fk_system *sys = s->r.sys;
    if (!note(s, fk_log_open(sys, &(fk_log_config){ .path = "/dev/null" }, &sink))) return;
    for (int i = 0; i < 20; i++) {
        note(s, fk_send(sys, FK_REF_NONE, FK_MSG(num, 1)));
        fk_log(sys, FK_LEVEL_ERROR, s->doer, FK_STR("a line needs no memory"));
    }
    CHECK_OK(fk_log_close(sys, sink));
}

const scenario SWEEP_EVENTS[] = {
    { "subscribe and unsubscribe", prepare_target, act_subscribe, 0 },
    { "events to an actor", prepare_subscribed, act_publish, 0 },
    { "replay of events", prepare_kept, act_replay, 0 },
    { "a sink", NULL, act_sink, 0 },
    { NULL, NULL, NULL, 0 },
};
