/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/observer.h"

#include <string.h>

#include "fraktor/registry.h"

static void on_letter(void *user, const fk_dead_letter *letter)
{
    observer *o = (observer *)user; /* its rig comes first */
    pthread_mutex_lock(&o->r.lock);
    observer_letter *kept = &o->letter[o->letters++ % OBSERVER_MAX];
    *kept = (observer_letter){
        .reason = letter->reason, .to = letter->to, .sender = letter->sender, .type = letter->type
    };
    size_t len = letter->detail.len < 127 ? letter->detail.len : 127;
    if (len != 0) memcpy(kept->detail, letter->detail.ptr, len);
    kept->len = fk_dead_letter_path(o->r.sys, letter, kept->path, sizeof(kept->path));
    pthread_mutex_unlock(&o->r.lock);
}

static void on_event(void *user, const fk_event *event)
{
    static const fk_topics TOPICS = FK_TOPIC(PATH_FAULT) | FK_TOPIC_REMOTE;
    observer *o = (observer *)user;
    if ((TOPICS >> event->kind & 1) == 0) return;
    pthread_mutex_lock(&o->r.lock);
    observer_event *kept = &o->event[o->events++ % OBSERVER_MAX];
    *kept = (observer_event){ .kind = event->kind, .fault = event->fault, .len = event->text.len };
    size_t len = event->text.len < OBSERVER_TEXT - 1 ? event->text.len : OBSERVER_TEXT - 1;
    if (len != 0) memcpy(kept->text, event->text.ptr, len);
    pthread_mutex_unlock(&o->r.lock);
}

void observer_init(observer *o)
{
    memset(o, 0, sizeof(*o));
    rig_init(&o->r);
}

fk_err observer_try_start(observer *o, fk_system_config config)
{
    config.on_dead_letter = on_letter;
    if (config.on_event == NULL) config.on_event = on_event;
    return rig_try_start(&o->r, &config);
}

void observer_start_with(observer *o, fk_system_config config)
{
    observer_init(o);
    CHECK_OK(observer_try_start(o, config));
}

const observer_letter *observer_letters(observer *o, size_t count)
{
    CHECK_U64(o->letters, count);
    o->letters = 0;
    return &o->letter[(count + OBSERVER_MAX - 1) % OBSERVER_MAX];
}

const observer_event *observer_events(observer *o, size_t count)
{
    CHECK_U64(o->events, count);
    o->events = 0;
    return &o->event[(count + OBSERVER_MAX - 1) % OBSERVER_MAX];
}

static void path_of(observer *o, fk_ref ref, char *text)
{
    size_t len = fk_path_of(o->r.sys, ref, text, OBSERVER_TEXT);
    CHECK_U64(len, strlen(text));
}

uint64_t observer_uid(observer *o, fk_ref ref)
{
    char text[OBSERVER_TEXT];
    path_of(o, ref, text);
    const char *mark = strrchr(text, '#');
    CHECK(mark != NULL);
    uint64_t uid = 0;
    for (mark++; *mark != '\0'; mark++) uid = uid * 10 + (uint64_t)(*mark - '0');
    CHECK(uid != 0);
    return uid;
}

void observer_check_path(observer *o, fk_ref ref, const char *expected)
{
    char text[OBSERVER_TEXT];
    path_of(o, ref, text);
    CHECK_STR(text, expected);
}

void observer_check_place(observer *o, fk_ref ref, const char *expected)
{
    char text[OBSERVER_TEXT];
    path_of(o, ref, text);
    char *mark = strrchr(text, '#');
    if (mark != NULL) *mark = '\0';
    CHECK_STR(text, expected);
}

fk_ref observer_spawn(observer *o, const char *name)
{
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_spawn(o->r.sys, fk_str_of(name), &(fk_props){ .receive = doer_receive }, &ref));
    return ref;
}

void observer_bury(observer *o, fk_ref ref)
{
    CHECK_OK(fk_stop(o->r.sys, ref));
    rig_run(&o->r);
    CHECK(!fk_is_alive(o->r.sys, ref));
}
