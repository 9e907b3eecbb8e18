/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Watches across systems, and how systems end: the driver with a transport that the test plays. */

#include <stdio.h>
#include <string.h>

#include "fraktor/remote.h"
#include "support/branch.h"

static branch b;

/* Watches what it is told to, and counts the ends. */
typedef struct watchman {
    fk_ref self, whom;
    uint32_t told;
    fk_terminated last;
} watchman;

static fk_err watchman_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    watchman *w = state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end == NULL) return fk_watch(ctx, w->whom);
    w->told++;
    w->last = *end;
    return FK_OK;
}

static void watchman_begin(watchman *w, fk_ref whom)
{
    *w = (watchman){ .whom = whom };
    fk_props props = { .receive = watchman_receive, .state = w };
    CHECK_OK(fk_spawn(b.r.sys, FK_STR(""), &props, &w->self));
    CHECK_OK(fk_send(b.r.sys, w->self, FK_MSG(num, 1)));
    cable_run(&b.c);
}

static fk_wire_sysmsg watch_of(fk_sysmsg_kind kind, const char *watchee, const char *watcher)
{
    fk_wire_sysmsg message = { .kind = kind };
    message.watch.watchee.path = fk_str_of(watchee);
    message.watch.watcher.path = fk_str_of(watcher);
    return message;
}

/* The next numbered message of the driver; it must be of that kind. */
static fk_wire_sysmsg heard(fk_sysmsg_kind kind, uint64_t *seq)
{
    fk_wire_control said;
    fk_wire_sysmsg message;
    fk_wire_fault fault;
    CHECK(cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_SYSTEM_MESSAGE, &said));
    CHECK_OK(fk__sysmsg_decode(said.as.system_message.message, &message, &fault));
    CHECK_U64(message.kind, kind);
    *seq = said.as.system_message.seq;
    return message;
}

static void ack(uint64_t seq)
{
    fk_wire_control control = { .kind = FK_CONTROL_ACK };
    control.as.ack.from = cable_unique(&b.peer);
    control.as.ack.seq = seq;
    CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &control));
    cable_run(&b.c);
}

static const char *own_path(fk_ref ref)
{
    static char text[256];
    fk_path_of(b.r.sys, ref, text, sizeof(text));
    return text;
}

static const char WATCHER[] = "fraktor://b@10.0.0.2:2/system/remote-watcher";

TEST(driver_tells_a_peer_that_an_actor_it_watches_has_stopped)
{
    uint64_t seq;
    fk_wire_control said;
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    fk_wire_sysmsg watch = watch_of(FK_SYSMSG_WATCH, own_path(b.here_ref), WATCHER);
    CHECK(cable_watch(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, 1, &watch));
    cable_run(&b.c);
    CHECK(cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_ACK, &said));
    CHECK_OK(fk_stop(b.r.sys, b.here_ref));
    cable_run(&b.c); /* at once, and not when something else happens */
    fk_wire_sysmsg death = heard(FK_SYSMSG_DEATH, &seq);
    CHECK(death.death.existence_confirmed);
    CHECK_U64(seq, 1);
    ack(seq);
    branch_pass(&b, FK_SECONDS(5));
    branch_stop(&b);
}

TEST(driver_tells_two_peers_of_one_end)
{
    uint64_t seq;
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    for (uint64_t i = 1; i <= 2; i++) {
        char watcher[64];
        snprintf(watcher, sizeof(watcher), "fraktor://b@10.0.0.2:2/user/w%u", (unsigned)i);
        fk_wire_sysmsg watch = watch_of(FK_SYSMSG_WATCH, own_path(b.here_ref), watcher);
        CHECK(cable_watch(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, i, &watch));
    }
    cable_run(&b.c);
    CHECK_OK(fk_stop(b.r.sys, b.here_ref));
    cable_run(&b.c);
    heard(FK_SYSMSG_DEATH, &seq); /* the first by itself, until it has an answer, and once more */
    ack(seq);
    heard(FK_SYSMSG_DEATH, &seq);
    heard(FK_SYSMSG_DEATH, &seq);
    CHECK_U64(seq, 3);
    branch_stop(&b);
}

TEST(driver_answers_a_watch_of_nobody_with_an_end)
{
    uint64_t seq;
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    fk_wire_sysmsg watch = watch_of(FK_SYSMSG_WATCH, "fraktor://a@10.0.0.1:1/user/nobody", WATCHER);
    CHECK(cable_watch(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, 1, &watch));
    cable_run(&b.c);
    CHECK(!heard(FK_SYSMSG_DEATH, &seq).death.existence_confirmed);
    branch_stop(&b);
}

/* The peer is told of an end of nobody. */
static void refused(const char *watchee)
{
    uint64_t seq;
    fk_wire_sysmsg death = heard(FK_SYSMSG_DEATH, &seq);
    CHECK(!death.death.existence_confirmed);
    CHECK_U64(death.death.actor.path.len, strlen(watchee));
    CHECK(memcmp(death.death.actor.path.ptr, watchee, strlen(watchee)) == 0);
    ack(seq);
}

static uint64_t watches; /* numbers of what the peer says */

static void peer_watches(const char *watchee, const char *watcher)
{
    fk_wire_control said;
    fk_wire_sysmsg watch = watch_of(FK_SYSMSG_WATCH, watchee, watcher);
    CHECK(cable_watch(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, ++watches, &watch));
    cable_run(&b.c);
    CHECK(cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_ACK, &said));
    CHECK_U64(said.as.ack.seq, watches);
}

static void check_no_word(void)
{
    fk_wire_control said;
    CHECK(!cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_SYSTEM_MESSAGE, &said));
}

TEST(driver_answers_watches_over_watches_max_with_an_end)
{
    char name[16];
    branch_start(&b, (fk_remoting_config){ .watches_max = 4 });
    branch_meet(&b);
    watches = 0;
    for (uint64_t i = 1; i <= 6; i++) {
        fk_ref ref;
        fk_props props = { .receive = doer_receive };
        snprintf(name, sizeof(name), "x%u", (unsigned)i);
        CHECK_OK(fk_spawn(b.r.sys, fk_str_of(name), &props, &ref));
        rig_run(&b.r);
        peer_watches(own_path(ref), WATCHER);
        if (i == 4) check_no_word();
        if (i >= 5) refused(own_path(ref));
        if (i == 5) refused(own_path(ref)); /* the first that is ever said is said twice */
    }
    check_no_word();
    CHECK_STR(b.reason, "a watch refused: too many of that system");
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_CONNECTED);
    branch_stop(&b);
}

/* Whatever the reason is: a watch is kept or answered. */
TEST(driver_answers_watches_that_it_cannot_keep_with_an_end)
{
    static const char *const STRANGE[] = { "fraktor://c@10.0.0.3:3/user/w", /* not the peer's */
                                           "fraktor://a@10.0.0.1:1/user/here", "fraktor://b/user/w",
                                           "no path" };
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    watches = 0;
    fk_remote *remote = fk__remote_of(b.r.sys);
    for (size_t i = 0; i < 4; i++) {
        peer_watches(own_path(b.here_ref), STRANGE[i]);
        refused(own_path(b.here_ref));
        if (i == 0) refused(own_path(b.here_ref));
        check_no_word();
    }
    remote->proxies.pins_max = 2;
    for (unsigned i = 0; i < 4; i++) {
        char watcher[64];
        snprintf(watcher, sizeof(watcher), "fraktor://b@10.0.0.2:2/user/w%u", i);
        peer_watches(own_path(b.here_ref), watcher);
        if (i >= 2) refused(own_path(b.here_ref));
        check_no_word();
    }
    remote->proxies.met_max = 0; /* there is no room for the watcher */
    peer_watches(own_path(b.here_ref), "fraktor://b@10.0.0.2:2/user/w9");
    fk__proxies_check(&remote->proxies);
    refused(own_path(b.here_ref));
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_CONNECTED);
    branch_stop(&b);
}

/* And nobody gets to know of a system by that. */
TEST(driver_answers_watches_of_actors_of_other_systems_with_an_end)
{
    static const char *const ELSEWHERE[] = { "fraktor://c@10.0.0.3:3/user/x",
                                             "fraktor://b@10.0.0.2:2/user/x",
                                             "fraktor://a/user/here", "no path" };
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    watches = 0;
    fk_remote *remote = fk__remote_of(b.r.sys);
    for (size_t i = 0; i < 4; i++) {
        peer_watches(ELSEWHERE[i], WATCHER);
        refused(ELSEWHERE[i]);
        if (i == 0) refused(ELSEWHERE[i]);
        check_no_word();
        CHECK_STR(b.reason, "a watch refused: of an actor of another system");
    }
    CHECK_U64(remote->table.count, 1);
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_CONNECTED);
    branch_stop(&b);
}

/* Those that watch stay, and there is room for whoever sends all the same. */
TEST(driver_hears_new_senders_however_many_watch)
{
    char name[64];
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    branch_join(&b, FK_STREAM_ORDINARY);
    watches = 0;
    fk_remote *remote = fk__remote_of(b.r.sys);
    remote->proxies.met_max = remote->proxies.pins_max = 8;
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "fraktor://b@10.0.0.2:2/user/w%u", i);
        peer_watches(own_path(b.here_ref), name);
    }
    CHECK_U64(remote->proxies.pinned, 4);
    for (unsigned i = 1; i <= 20; i++) {
        snprintf(name, sizeof(name), "fraktor://b@10.0.0.2:2/user/s%u", i);
        CHECK(cable_text(&b.c, b.in[FK_STREAM_ORDINARY], &b.peer, own_path(b.here_ref), name,
                         FK_STR("hi")));
        cable_run(&b.c);
        CHECK_U64(b.here.count, i);
    }
    remote->proxies.met_max = 0; /* without room it is refused, and that is the reason */
    CHECK(cable_text(&b.c, b.in[FK_STREAM_ORDINARY], &b.peer, own_path(b.here_ref),
                     "fraktor://b@10.0.0.2:2/user/more", FK_STR("hi")));
    cable_run(&b.c);
    CHECK_U64(b.here.count, 20);
    CHECK_U64(b.r.letters.of[FK_REASON_LIMIT], 1);
    CHECK_U64(b.r.letters.of[FK_REASON_NO_MEMORY], 0);
    branch_stop(&b);
}

TEST(driver_tells_watchers_at_once_when_they_are_too_many)
{
    static watchman w[3];
    char path[64];
    branch_start(&b, (fk_remoting_config){ .watches_max = 2 });
    branch_meet(&b);
    for (size_t i = 0; i < 3; i++) {
        fk_ref ref;
        snprintf(path, sizeof(path), "fraktor.tcp://b@10.0.0.2:2/user/x%u", (unsigned)i);
        CHECK_OK(fk_resolve(b.r.sys, fk_str_of(path), &ref, NULL));
        watchman_begin(&w[i], ref);
    }
    CHECK_U64(w[0].told + w[1].told, 0);
    CHECK_U64(w[2].told, 1);
    CHECK_STR(b.reason, "too many actors of that system are watched");
    branch_stop(&b);
}

TEST(driver_watches_once_for_many_and_tells_each_of_them)
{
    static watchman w[3];
    uint64_t seq;
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    for (size_t i = 0; i < 3; i++) watchman_begin(&w[i], branch_there(&b));
    heard(FK_SYSMSG_WATCH, &seq);
    fk_wire_control said;
    CHECK(!cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_SYSTEM_MESSAGE, &said));
    ack(1);
    fk_wire_sysmsg death = { .kind = FK_SYSMSG_DEATH };
    death.death.actor.path = FK_STR("fraktor://b@10.0.0.2:2/user/there#5");
    death.death.existence_confirmed = true;
    CHECK(cable_watch(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, 1, &death));
    CHECK(cable_watch(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, 1, &death)); /* again, by mistake */
    cable_run(&b.c);
    for (size_t i = 0; i < 3; i++) CHECK_U64(w[i].told, 1);
    branch_stop(&b);
}

TEST(driver_sends_a_watch_again_until_it_is_acknowledged)
{
    static watchman w;
    uint64_t seq;
    branch_start(&b, (fk_remoting_config){ .heartbeat_pause = FK_SECONDS(100) });
    branch_meet(&b);
    watchman_begin(&w, branch_there(&b));
    for (int i = 0; i < 3; i++) {
        heard(FK_SYSMSG_WATCH, &seq);
        CHECK_U64(seq, 1);
        branch_pass(&b, FK_SECONDS(1));
    }
    heard(FK_SYSMSG_WATCH, &seq);
    ack(1);
    heard(FK_SYSMSG_WATCH, &seq); /* the first that is ever said is said twice */
    CHECK_U64(seq, 2);
    ack(2);
    branch_pass(&b, FK_SECONDS(2));
    fk_wire_control said;
    CHECK(!cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_SYSTEM_MESSAGE, &said));
    branch_stop(&b);
}

TEST(driver_tells_watchers_once_when_the_peer_falls_silent)
{
    static watchman w;
    branch_start(&b, (fk_remoting_config){ .heartbeat_pause = FK_SECONDS(3) });
    branch_meet(&b);
    watchman_begin(&w, branch_there(&b));
    ack(1);
    branch_pass(&b, FK_SECONDS(60));
    CHECK_U64(w.told, 1);
    CHECK(w.last.address_terminated);
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_QUARANTINE);
    CHECK_STR(b.change, "silent for too long");
    branch_stop(&b);
}

/* ---- a quarantine that is lifted at the worst moment ---------------------------------------------- */

/* What another thread could do whenever the driver leaves the lock. */
static struct {
    void (*unlock)(void *ctx, fk_lock *lock);
    uint32_t skip; /* so many times before that */
    bool is_armed, was_told;
    const watchman *w;
} lift;

/* The end has been told, is being told, or lies there for those who watch now: who is added later is
 * none of these. */
static bool is_told(const watchman *w)
{
    const fk_cell *cell = fk__slots_at(&b.r.sys->slots, w->whom.slot);
    bool is_marked = fk__half_load(&cell->ended.word, FK_RELAXED) != 0;
    return w->told != 0 || is_marked || cell->u.watchers == NULL;
}

static void unlock_and_lift(void *ctx, fk_lock *lock)
{
    static const fk_authority_key KEY = { { "b", 1 }, { "10.0.0.2", 8 }, 2 };
    fk_remote *remote = fk__remote_of(b.r.sys);
    lift.unlock(ctx, lock);
    if (!lift.is_armed || lock != &remote->lock) return;
    const fk_authority *authority = fk__authority_find(&remote->table, &KEY);
    if (authority->state != FK_ASSOCIATION_QUARANTINE || lift.skip-- > 0) return;
    lift.is_armed = false;
    lift.was_told = is_told(lift.w);
    CHECK_OK(fk_authority_override(b.r.sys, FK_STR("fraktor.tcp://b@10.0.0.2:2")));
}

typedef enum lift_way { LIFT_KNOWN, LIFT_NEW, LIFT_SILENT, LIFT_WAYS } lift_way;

/* False: the driver does not leave the lock so often. */
static bool lift_after(uint32_t skip, lift_way way)
{
    static watchman w;
    branch_start(&b, (fk_remoting_config){ .heartbeat_pause = FK_SECONDS(3) });
    branch_meet(&b);
    if (way == LIFT_NEW) { /* the driver has not heard of it */
        w = (watchman){ .whom = branch_there(&b) };
        fk_props props = { .receive = watchman_receive, .state = &w };
        CHECK_OK(fk_spawn(b.r.sys, FK_STR(""), &props, &w.self));
        CHECK_OK(fk_send(b.r.sys, w.self, FK_MSG(num, 1)));
        rig_run(&b.r);
    } else {
        watchman_begin(&w, branch_there(&b));
        ack(1);
    }
    if (way != LIFT_SILENT) {
        CHECK_OK(fk_authority_quarantine(b.r.sys, FK_STR("fraktor.tcp://b@10.0.0.2:2")));
    }
    lift.unlock = b.r.sys->mem.port.unlock;
    lift.skip = skip;
    lift.w = &w;
    b.r.sys->mem.port.unlock = unlock_and_lift;
    lift.is_armed = true;
    for (int i = 0; i < 100 && lift.is_armed && way == LIFT_SILENT; i++) {
        branch_pass(&b, FK_MILLIS(200));
    }
    cable_run(&b.c);
    bool is_lifted = !lift.is_armed;
    lift.is_armed = false;
    b.r.sys->mem.port.unlock = lift.unlock;
    CHECK_U64(w.told, is_lifted ? lift.was_told : 1);
    branch_stop(&b);
    return is_lifted;
}

TEST(driver_tells_of_no_end_after_a_quarantine_is_lifted)
{
    for (lift_way way = LIFT_KNOWN; way < LIFT_WAYS; way++) {
        uint32_t skip = 0;
        while (lift_after(skip, way)) skip++;
        CHECK(skip >= 2);
    }
}

TEST(driver_answers_a_peer_that_ends_and_tells_watchers_once)
{
    static watchman w;
    fk_wire_control said, leaving = { .kind = FK_CONTROL_TERMINATING };
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    watchman_begin(&w, branch_there(&b));
    ack(1);
    leaving.as.from.from = cable_unique(&b.peer);
    CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &leaving));
    cable_run(&b.c);
    CHECK_U64(w.told, 1);
    CHECK(cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_TERMINATING_ACK, &said));
    CHECK_U64(said.as.from.from.uid, fk_system_uid(b.r.sys));
    branch_pass(&b, FK_SECONDS(30));
    CHECK_U64(w.told, 1);
    branch_stop(&b);
}

TEST(driver_says_that_its_system_ends_and_waits_for_the_answer)
{
    fk_wire_control said, answer = { .kind = FK_CONTROL_TERMINATING_ACK };
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    cable_conn *control = cable_stream(&b.c, FK_STREAM_CONTROL);
    CHECK_OK(fk_terminate(b.r.sys));
    cable_run(&b.c);
    CHECK(cable_heard(control, FK_CONTROL_TERMINATING, &said));
    CHECK(fk_is_terminating(b.r.sys));
    answer.as.from.from = cable_unique(&b.peer);
    CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &answer));
    cable_run(&b.c); /* not a nanosecond later */
    CHECK_OK(fk_await_termination(b.r.sys, 0));
    cable_end(&b.c);
    rig_stop(&b.r);
}

/* The one that would say so is not made any more, and the driver asks for no turn after the other. */
TEST(driver_sleeps_while_its_system_ends_without_having_begun)
{
    fk_ref x;
    branch_start(&b, (fk_remoting_config){ 0 });
    CHECK_OK(fk_resolve(b.r.sys, FK_STR("fraktor.tcp://b@10.0.0.2:2/user/x"), &x, NULL));
    CHECK_OK(fk_send(b.r.sys, x, FK_MSG(num, 1)));
    CHECK_OK(fk_terminate(b.r.sys));
    for (int i = 0; i < 3; i++) { /* the first turns have something to do */
        fk_time now = fk__system_now(b.r.sys);
        fk_time next = fk__driver_run(b.c.driver, now);
        CHECK(i < 2 || next > now);
    }
    cable_run(&b.c);
    CHECK_OK(fk_await_termination(b.r.sys, 0));
    cable_end(&b.c);
    rig_stop(&b.r);
}
