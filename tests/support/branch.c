/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/branch.h"

#include <string.h>

#include "fraktor/remote.h"
#include "wire/codec.h"

static void on_event(void *user, const fk_event *event)
{
    branch *b = user;
    if (event->kind == FK_EVENT_REMOTE) {
        b->told++;
        b->suppressed += event->count;
        strncpy(b->reason, event->reason, sizeof(b->reason) - 1);
    }
    if (event->kind == FK_EVENT_AUTHORITY) {
        b->changes++;
        strncpy(b->to, event->to, sizeof(b->to) - 1);
        strncpy(b->change, event->reason, sizeof(b->change) - 1);
    }
    if (event->kind == FK_EVENT_INVALID_ASSOCIATION) {
        size_t len = event->text.len < sizeof(b->invalid_of) ? event->text.len : 0;
        b->invalid++;
        memcpy(b->invalid_of, event->text.ptr, len);
        b->invalid_of[len] = '\0';
    }
}

void branch_start(branch *b, fk_remoting_config config)
{
    fk_system_config own = { .name = "a",
                             .on_event = on_event,
                             .remoting = { .host = "10.0.0.1",
                                           .port = 1,
                                           .deferred_max = config.deferred_max,
                                           .deferred_total_max = config.deferred_total_max,
                                           .quarantine = config.quarantine,
                                           .reconnect_min = config.reconnect_min,
                                           .reconnect_max = config.reconnect_max } };
    memset(b, 0, sizeof(*b));
    rig_start_with(&b->r, own);
    b->peer = BRANCH_PEER;
    config.host = "10.0.0.1";
    config.port = 1;
    fk_props props = probe_props(&b->here);
    CHECK_OK(fk_spawn(b->r.sys, FK_STR("here"), &props, &b->here_ref));
    cable_begin(&b->c, b->r.sys, &config);
}

void branch_stop(branch *b)
{
    CHECK_OK(fk_terminate(b->r.sys));
    fk_time end = atomic_load(&b->r.now) + FK_SECONDS(20);
    while (atomic_load(&b->r.now) < end) branch_pass(b, FK_MILLIS(500));
    cable_end(&b->c);
    rig_stop(&b->r);
}

void branch_pass(branch *b, fk_time by)
{
    fk_time end = atomic_load(&b->r.now) + by;
    cable_run(&b->c);
    for (;;) {
        fk_time now = atomic_load(&b->r.now);
        if (now >= end) return;
        fk_time next = now + FK_MILLIS(100); /* for actors, who have timers as well */
        if (cable_next_at(&b->c) < next) next = cable_next_at(&b->c);
        if (next <= now) next = now + 1;
        atomic_store(&b->r.now, next < end ? next : end);
        cable_run(&b->c);
    }
}

void branch_connect(branch *b)
{
    cable_conn *conn;
    cable_run(&b->c);
    while ((conn = cable_waiting(&b->c)) != NULL) {
        cable_connected(&b->c, conn);
        cable_run(&b->c);
    }
}

cable_conn *branch_join(branch *b, fk_wire_stream stream)
{
    cable_conn *conn = cable_accept(&b->c);
    CHECK(conn != NULL);
    CHECK(cable_header(&b->c, conn, stream));
    CHECK(cable_request(&b->c, conn, &b->peer));
    b->in[stream] = conn;
    cable_run(&b->c);
    return conn;
}

void branch_meet(branch *b)
{
    cable_conn *control = branch_join(b, FK_STREAM_CONTROL);
    branch_connect(b);
    CHECK(cable_response(&b->c, control, &b->peer));
    cable_run(&b->c);
    CHECK_U64(branch_info(b).status, FK_AUTHORITY_CONNECTED);
    CHECK(branch_info(b).is_open);
}

fk_ref branch_there(branch *b)
{
    fk_ref ref;
    CHECK_OK(fk_resolve(b->r.sys, FK_STR(BRANCH_THERE), &ref, NULL));
    return ref;
}

fk_authority_info branch_info(branch *b)
{
    fk_authority_info info;
    CHECK_OK(fk_authority_state(b->r.sys, FK_STR("fraktor.tcp://b@10.0.0.2:2"), &info));
    return info;
}

bool branch_letter(branch *b, fk_wire_stream stream, const char *text)
{
    cable_conn *conn = cable_stream(&b->c, stream);
    fk_wire_envelope e;
    CHECK(conn != NULL);
    while (cable_next(conn, &e)) {
        if (e.serializer == FK_SERIALIZER_CONTROL) continue;
        CHECK_U64(e.serializer, FK_SERIALIZER_TEXT);
        CHECK_U64(e.payload.len, strlen(text));
        CHECK(memcmp(e.payload.ptr, text, e.payload.len) == 0);
        return true;
    }
    return false;
}
