/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sweep's scenarios with another system, which has all the memory it wants. */

#include <stdio.h>

#include "fraktor/codec.h"
#include "fraktor/remote.h"
#include "oom/sweep.h"
#include "remote/remote.h"

enum { ROUNDS = 60, LARGE = 200000 };

static struct {
    rig r;
    fk_ref box;
    char path[128]; /* of the one who is swept: its box */
    uint64_t heard;
} other;

static uint64_t heard;

static fk_err box_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    uint64_t **count = state;
    (void)ctx;
    if (msg->type == &fk_type_bytes) ++**count;
    return FK_OK;
}

static fk_props box_props(uint64_t **count)
{
    return (fk_props){ .receive = box_receive, .state_size = sizeof(*count), .init = count };
}

static const char *const LARGE_PATHS[] = { "/user/box", NULL };

static fk_remoting_config remoting(void)
{
    return (fk_remoting_config){ .enabled = true,
                                 .host = "127.0.0.1",
                                 .give_up_after = FK_MINUTES(10),
                                 .compress_every = FK_MILLIS(100),
                                 .large = LARGE_PATHS,
                                 .reconnect_max = FK_MILLIS(200),
                                 .heartbeat_every = FK_MILLIS(50) };
}

static void both(sweep *s, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        rig_advance(&s->r, FK_MILLIS(25));
        rig_advance(&other.r, FK_MILLIS(25));
    }
}

static bool find_box(sweep *s, fk_ref *out)
{
    char path[128];
    snprintf(path, sizeof(path), "fraktor.tcp://other@127.0.0.1:%u/user/box",
             fk_remoting_port(other.r.sys));
    return note(s, fk_resolve(s->r.sys, fk_str_of(path), out, NULL));
}

/* With memory again the two can talk. */
static void finish(sweep *s)
{
    static fk_ref there;
    uint64_t before = other.heard;
    rig_fault(&s->r, 0, false);
    for (int i = 0; i < 100 && other.heard == before; i++) {
        if (find_box(s, &there)) {
            (void)!fk_send(s->r.sys, there, FK_BYTES_AT(((fk_str){ "again", 5 })));
        }
        both(s, 20);
    }
    CHECK(other.heard > before);
    /* It says that it ends, and waits for the answer; so somebody has to give one. */
    (void)!fk_terminate(other.r.sys);
    both(s, 120);
    rig_stop(&other.r);
}

/* Both have a box; the other one knows where this one's is. */
static void two_systems(sweep *s)
{
    static uint64_t *ours = &heard, *theirs = &other.heard;
    fk_props our_box = box_props(&ours), their_box = box_props(&theirs);
    fk_ref ref;
    heard = other.heard = 0;
    s->finish = finish;
    rig_start_with(
        &other.r,
        (fk_system_config){ .name = "other", .workers = FK_WORKERS_NONE, .remoting = remoting() });
    CHECK_OK(fk_spawn(other.r.sys, FK_STR("box"), &their_box, &other.box));
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("box"), &our_box, &ref));
    snprintf(other.path, sizeof(other.path), "fraktor.tcp://fraktor@127.0.0.1:%u/user/box",
             fk_remoting_port(s->r.sys));
}

static fk_err watch_call(fk_ctx *ctx, void *arg)
{
    fk_err err = fk_watch(ctx, *(fk_ref *)arg);
    return err == FK_E_NOMEM ? FK_OK : err;
}

static void watch(rig *r, fk_ref watcher, fk_ref *watched)
{
    (void)!fk_send(r->sys, watcher, FK_MSG(rig_call, watch_call, watched));
}

/* Messages and watches both ways, large ones too, and the end of whoever is watched. */
static void talk(sweep *s)
{
    static char large[LARGE];
    static fk_ref there, here, mortal, watcher;
    bool is_found = find_box(s, &there);
    if (is_found) {
        (void)!fk_send(s->r.sys, there, FK_BYTES_AT(((fk_str){ "hello", 5 })));
        (void)!fk_send(s->r.sys, there, FK_BYTES_AT(((fk_str){ large, LARGE })));
        watch(&s->r, s->doer, &there);
    }
    CHECK_OK(fk_resolve(other.r.sys, fk_str_of(other.path), &here, NULL));
    CHECK_OK(fk_spawn(other.r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &watcher));
    watch(&other.r, watcher, &here);
    (void)!fk_send(other.r.sys, here, FK_BYTES_AT(((fk_str){ large, LARGE })));
    for (int i = 0; i < ROUNDS * 8; i++) { /* often enough for names to become numbers */
        fk_str x = { "x", 1 };
        if (is_found) (void)!fk_send_from(s->r.sys, there, s->doer, FK_BYTES_AT(x));
        if (i % 8 == 0) both(s, 1);
    }
    if (fk_resolve(s->r.sys, FK_STR("/user/box"), &mortal, NULL) == FK_OK) {
        fk_stop(s->r.sys, mortal);
    }
    both(s, ROUNDS / 4);
    /* As if one had been crowded out: it cannot fail, but may be forgotten. */
    fk_remote *remote = fk__remote_of(s->r.sys);
    fk__remote_lock(remote);
    fk__tombs_add(&remote->table.tombs, 1, 1);
    fk__remote_unlock(remote);
}

const scenario SWEEP_REMOTE[] = {
    { "two systems talk", two_systems, talk, SWEEP_LISTENS },
    { NULL, NULL, NULL, 0 },
};
