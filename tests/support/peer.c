/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what is written down ---------------------------------------------------------------------- */

static void put(char *to, size_t size, const char *text, size_t len)
{
    if (len > size - 1) len = size - 1;
    if (len != 0) memcpy(to, text, len);
    to[len] = '\0';
}

static void put_text(char *to, size_t size, const char *text)
{
    put(to, size, text, text != NULL ? strlen(text) : 0);
}

static void on_event(void *user, const fk_event *event)
{
    static const fk_topics TOPICS = FK_TOPIC(AUTHORITY) | FK_TOPIC(INVALID_ASSOCIATION);
    peer *p = (peer *)user; /* its rig comes first */
    if ((TOPICS >> event->kind & 1) == 0) return;
    pthread_mutex_lock(&p->lock);
    if (p->events < PEER_EVENTS) {
        peer_event *kept = &p->event[p->events];
        *kept = (peer_event){ .kind = event->kind, .at = event->at };
        put(kept->address, sizeof(kept->address), event->text.ptr, event->text.len);
        put_text(kept->from, sizeof(kept->from), event->from);
        put_text(kept->to, sizeof(kept->to), event->to);
        put_text(kept->reason, sizeof(kept->reason), event->reason);
    }
    p->events++;
    pthread_mutex_unlock(&p->lock);
}

static fk_err box_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    peer *p = *(peer **)state;
    const fk_long *number = FK_AS(fk_long, msg);
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    const rig_call *call = FK_AS(rig_call, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    if (number == NULL && end == NULL) return fk_unhandled(ctx, msg);
    pthread_mutex_lock(&p->lock);
    if (number != NULL && p->count < PEER_BOX) p->box[p->count] = *number;
    if (number != NULL) p->count++;
    if (end != NULL) p->terminated++;
    if (end != NULL && end->address_terminated) p->address_terminated++;
    pthread_mutex_unlock(&p->lock);
    return FK_OK;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static void learn_address(peer *p)
{
    char buf[512];
    fk_path own;
    CHECK_OK(fk_system_path(p->r.sys, NULL, 0, FK_BUF(buf), &own, NULL));
    CHECK(own.port != 0);
    p->port = own.port;
    CHECK(fk_path_format(&own, FK_FORM_ADDRESS, p->address, sizeof(p->address)) <
          sizeof(p->address));
}

void peer_start_with(peer *p, fk_system_config config)
{
    fk_ref ref;
    memset(p, 0, sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    config.remoting.enabled = true;
    if (config.remoting.host == NULL) config.remoting.host = "127.0.0.1";
    if (config.workers == 0) config.workers = 2;
    if (config.paths.rules == FK_RULES_FRAKTOR) config.scheme = FK_SCHEME_TCP;
    config.on_event = on_event;
    p->rules = config.paths.rules;
    rig_start_with(&p->r, config);
    learn_address(p);
    CHECK_OK(fk_spawn(p->r.sys, FK_STR("box"),
                      &(fk_props){ .receive = box_receive, .state_size = sizeof(p), .init = &p },
                      &ref));
}

void peer_start(peer *p, const char *name, fk_remoting_config remoting)
{
    peer_start_with(p, (fk_system_config){ .name = name, .remoting = remoting });
}

void peer_stop(peer *p)
{
    rig_stop(&p->r);
    pthread_mutex_destroy(&p->lock);
}

uint16_t peer_free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

fk_ref peer_box(peer *p, const char *address)
{
    char path[160];
    fk_ref ref = FK_REF_NONE;
    snprintf(path, sizeof(path), "%s/user/box", address);
    CHECK_OK(fk_resolve(p->r.sys, fk_str_of(path), &ref, NULL));
    return ref;
}

void peer_send(peer *p, fk_ref to, fk_long first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(fk_send(p->r.sys, to, FK_MSG(fk_long, first + (fk_long)i)));
    }
}

size_t peer_count(peer *p)
{
    pthread_mutex_lock(&p->lock);
    size_t count = p->count;
    pthread_mutex_unlock(&p->lock);
    return count;
}

void peer_await_box(peer *p, size_t count)
{
    PEER_AWAIT(peer_count(p) >= count);
    CHECK_U64(peer_count(p), count);
}

void peer_check_box(peer *p, size_t index, fk_long first, size_t count)
{
    pthread_mutex_lock(&p->lock);
    CHECK(index + count <= p->count);
    for (size_t i = 0; i < count; i++) CHECK_U64(p->box[index + i], first + (fk_long)i);
    pthread_mutex_unlock(&p->lock);
}

/* ---- others ------------------------------------------------------------------------------------------ */

/* The index after the change, or 0. */
static size_t find_change(peer *p, const char *address, const char *from, const char *to,
                          char reason[64])
{
    size_t found = 0;
    pthread_mutex_lock(&p->lock);
    size_t end = p->events < PEER_EVENTS ? p->events : PEER_EVENTS;
    for (size_t i = p->seen; i < end && found == 0; i++) {
        const peer_event *e = &p->event[i];
        if (e->kind != FK_EVENT_AUTHORITY || strcmp(e->address, address) != 0) continue;
        if (strcmp(e->from, from) != 0 || strcmp(e->to, to) != 0) continue;
        memcpy(reason, e->reason, 64);
        CHECK(e->at != 0);
        found = i + 1;
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

void peer_await_change(peer *p, const char *address, const char *from, const char *to,
                       const char *reason)
{
    char actual[64] = "";
    size_t found = 0;
    int64_t end = test_clock() + FK_SECONDS(30);
    while ((found = find_change(p, address, from, to, actual)) == 0 && test_clock() < end) {
        test_sleep_ms(1);
    }
    if (found == 0) fprintf(stderr, "no change of %s from '%s' to '%s'\n", address, from, to);
    CHECK(found != 0);
    p->seen = found;
    if (reason != NULL) CHECK_STR(actual, reason);
}

size_t peer_invalid(peer *p)
{
    size_t count = 0;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->events && i < PEER_EVENTS; i++) {
        if (p->event[i].kind == FK_EVENT_INVALID_ASSOCIATION) count++;
    }
    pthread_mutex_unlock(&p->lock);
    return count;
}

size_t peer_letters(peer *p, fk_reason reason)
{
    fk_stats stats;
    fk_stats_get(p->r.sys, &stats);
    return (size_t)stats.dead_letters[reason];
}

fk_authority_info peer_info(peer *p, const char *address)
{
    fk_authority_info info;
    CHECK_OK(fk_authority_state(p->r.sys, fk_str_of(address), &info));
    return info;
}
