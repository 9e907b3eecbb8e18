/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads that publish, subscribe and unsubscribe, and actors that subscribe and die, all at once.
 * Who was there before the first event and stays to the end gets all of them; who has unsubscribed
 * frees what its callback used; nobody is left when all is over.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/rig.h"

enum { PUBLISHERS = 3, JOINERS = 3 };

typedef struct storm {
    rig r;
    _Atomic uint64_t heard;
    _Atomic uint64_t records;
    _Atomic uint32_t publishing;
    uint64_t count;
} storm;

static storm S;

static void on_event(void *user, const fk_event *event)
{
    _Atomic uint64_t *count = user;
    CHECK(event->kind == FK_EVENT_LOG || event->kind == FK_EVENT_DEAD_LETTER);
    atomic_fetch_add(count, 1);
}

static void *publisher(void *arg)
{
    uint64_t id = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 0; i < S.count; i++) {
        if ((i + id) % 8 == 0)
            CHECK_OK(fk_send(S.r.sys, FK_REF_NONE, FK_MSG(num, i)));
        else
            fk_log(S.r.sys, FK_LEVEL_WARN, FK_REF_NONE, FK_STR("news"));
        if (i % 16 == 0) CHECK_OK(fk_publish(S.r.sys, FK_MSG(num, i)));
    }
    atomic_fetch_sub(&S.publishing, 1);
    return NULL;
}

static fk_err listen(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    const fk_event_record *record = FK_AS(fk_event_record, msg);
    CHECK(record != NULL || msg->type == &fk_type_num);
    if (record != NULL) CHECK(record->kind == FK_EVENT_LOG || record->kind == FK_EVENT_DEAD_LETTER);
    if (atomic_fetch_add(&S.records, 1) % 64 == 0) fk_stop_self(ctx);
    return FK_OK;
}

/* FK_E_DEAD: it has had enough already. */
static void actor_joins(void)
{
    fk_ref ref;
    CHECK_OK(fk_spawn(S.r.sys, FK_STR(""), &(fk_props){ .receive = listen }, &ref));
    fk_err err = fk_subscribe_actor(S.r.sys, ref, FK_TOPIC_LOG | FK_TOPIC_REPLAY);
    CHECK_OK(err);
    err = fk_subscribe_type(S.r.sys, ref, &fk_type_num);
    CHECK(err == FK_OK || err == FK_E_DEAD);
    err = fk_unsubscribe_actor(S.r.sys, ref, FK_TOPIC_LOG);
    CHECK(err == FK_OK || err == FK_E_NOT_FOUND);
    fk_stop(S.r.sys, ref);
    CHECK_OK(fk_await_stopped(S.r.sys, ref, FK_SECONDS(60)));
}

static void *joiner(void *arg)
{
    const fk_topics topics = FK_TOPIC_LOG | FK_TOPIC_DEAD_LETTERS;
    (void)arg;
    for (int i = 0; atomic_load(&S.publishing) != 0; i++) {
        fk_subscription s;
        _Atomic uint64_t *count =
            calloc(1, sizeof(*count)); /* freed: who comes late is found out */
        CHECK(count != NULL);
        CHECK_OK(fk_subscribe(S.r.sys, i % 2 == 0 ? topics : topics | FK_TOPIC_REPLAY,
                              FK_LEVEL_DEBUG, on_event, count, &s));
        actor_joins();
        CHECK_OK(fk_unsubscribe(S.r.sys, s));
        free(count);
    }
    return NULL;
}

TEST(stress_events_are_heard_by_all_who_are_there)
{
    pthread_t thread[PUBLISHERS + JOINERS];
    fk_subscription all, sink;
    S.count = test_scaled(20000);
    rig_start_with(&S.r, (fk_system_config){ .name = "storm", .workers = 2 });
    atomic_store(&S.publishing, PUBLISHERS);
    CHECK_OK(fk_subscribe(S.r.sys, FK_TOPIC_LOG | FK_TOPIC(DEAD_LETTER), FK_LEVEL_DEBUG, on_event,
                          &S.heard, &all));
    CHECK_OK(fk_log_open(S.r.sys, &(fk_log_config){ .path = "/dev/null" }, &sink));
    for (uintptr_t i = 0; i < PUBLISHERS + JOINERS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, i < PUBLISHERS ? publisher : joiner, (void *)i),
                  0);
    }
    for (int i = 0; i < PUBLISHERS + JOINERS; i++) pthread_join(thread[i], NULL);
    uint64_t heard = atomic_load(&S.heard);
    printf("%llu events, %llu records and numbers\n", (unsigned long long)heard,
           (unsigned long long)atomic_load(&S.records));
    CHECK(heard >= PUBLISHERS * S.count);
    CHECK_OK(fk_unsubscribe(S.r.sys, all));
    rig_stop(&S.r);
}
