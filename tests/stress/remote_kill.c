/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A peer in a process of its own is killed by SIGKILL and started again, REMOTE_KILL_ROUNDS times
 * (10), while numbers go both ways and an actor there is watched. Then: numbers of one sender arrive in
 * order and at most once; each that did not arrive was a dead letter, or was on its way when the peer
 * was killed; and each watcher was told once.
 *
 * What the peer gets it writes into a pipe at once: that survives it.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fraktor/ask.h"
#include "fraktor/codec.h"
#include "fraktor/remote.h"
#include "support/peer.h"

enum {
    ROUNDS = 10,
    NUMBERS = 1 << 22,
    LOST_MAX = 20000, /* by one kill: what buffers and sockets hold */
    ENOUGH = 50,      /* numbers each way before the next kill */
    ROUND = 1000000   /* what the peer sends is NUMBERS + round * ROUND + 0, 1, ... */
};

static const fk_remoting_config QUICK = { .reconnect_min = FK_MILLIS(5),
                                          .reconnect_max = FK_MILLIS(20),
                                          .deferred_max = 1000 };

/* ---- the peer, which is this program, too ------------------------------------------------------- */

static int peer_pipe;
static fk_ref peer_other;
static fk_long peer_next;

static fk_err peer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_long *number = FK_AS(fk_long, msg);
    (void)state;
    if (number == NULL) return fk_unhandled(ctx, msg);
    return write(peer_pipe, number, sizeof(*number)) == (ssize_t)sizeof(*number) ? FK_OK : FK_E_OS;
}

static fk_err talker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    for (int i = 0; i < 4; i++) {
        if (fk_tell(ctx, peer_other, FK_MSG(fk_long, peer_next)) == FK_OK) peer_next++;
    }
    return fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS(1), FK_MSG(fk_long, 0));
}

/* REMOTE_KILL_PEER: "port of the peer, round, the other's address". */
__attribute__((constructor)) static void peer_main(void)
{
    const char *text = getenv("REMOTE_KILL_PEER");
    char address[128], path[160];
    unsigned port, number;
    fk_system *sys;
    fk_ref ref;
    if (text == NULL) return;
    if (sscanf(text, "%u %u %127s", &port, &number, address) != 3) _exit(3);
    peer_pipe = 1;
    peer_next = NUMBERS + (fk_long)number * ROUND;
    fk_system_config config = { .name = "b", .workers = 1, .remoting = QUICK };
    config.remoting.enabled = true;
    config.remoting.host = "127.0.0.1";
    config.remoting.port = (uint16_t)port;
    if (fk_system_start(&config, &sys) != FK_OK) _exit(4);
    snprintf(path, sizeof(path), "%s/user/box", address);
    if (fk_resolve(sys, fk_str_of(path), &peer_other, NULL) != FK_OK) _exit(5);
    fk_props box = { .receive = peer_receive }, talker = { .receive = talker_receive };
    if (fk_spawn(sys, FK_STR("box"), &box, &ref) != FK_OK) _exit(6);
    if (fk_spawn(sys, FK_STR("talker"), &talker, &ref) != FK_OK) _exit(7);
    fk_send(sys, ref, FK_MSG(fk_long, 0));
    for (;;) pause();
}

/* ---- this side ------------------------------------------------------------------------------------ */

static rig r;
static pid_t child = -1;
static int from_peer = -1;
static uint16_t port;
static char address[64], there_path[64];
static _Atomic uint32_t dead[NUMBERS];
static unsigned char delivered[NUMBERS];
static uint32_t last_delivered; /* by this incarnation; 0: none yet */
static uint64_t delivered_count, lost_count;
static _Atomic uint32_t sent;
static _Atomic bool is_over;
static _Atomic uint64_t came; /* numbers of the peer, in this round */
static _Atomic fk_long came_last;
static _Atomic uint32_t disorder, strange;

static void on_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    fk_long n;
    if (letter->type != &fk_type_fk_long || letter->len != sizeof(n)) return;
    memcpy(&n, letter->data, sizeof(n));
    if (n > 0 && n < NUMBERS)
        atomic_fetch_add(&dead[n], 1);
    else if (n <= 0 || !atomic_load(&is_over)) /* at the end the peer's last may be unread */
        atomic_fetch_add(&strange, 1);
}

static fk_err box_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_long *number = FK_AS(fk_long, msg);
    (void)state;
    if (number == NULL) return fk_unhandled(ctx, msg);
    if (*number <= atomic_load(&came_last)) atomic_fetch_add(&disorder, 1);
    atomic_store(&came_last, *number);
    atomic_fetch_add(&came, 1);
    return FK_OK;
}

/* Meets the peer's box, so that it knows its uid, and watches it. */
typedef struct guard {
    fk_ref self, other;
    _Atomic uint32_t is_watching, told;
} guard;

static fk_err guard_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    guard *g = state;
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (FK_AS(fk_terminated, msg) != NULL) {
        atomic_fetch_add(&g->told, 1);
        return FK_OK;
    }
    if (answer != NULL && answer->err == FK_OK) {
        const fk_identity *who = FK_AS(fk_identity, &answer->reply);
        if (who != NULL && !fk_ref_is_none(who->ref) && fk_watch(ctx, who->ref) == FK_OK) {
            atomic_store(&g->is_watching, 1);
            return FK_OK;
        }
    }
    return fk_ask(ctx, g->other, FK_IDENTIFY(1), 1, FK_SECONDS(5));
}

static void peer_begin(uint32_t number)
{
    int ends[2];
    char text[128];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    snprintf(text, sizeof(text), "%u %u %s", (unsigned)port, (unsigned)number, address);
    CHECK(setenv("REMOTE_KILL_PEER", text, 1) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* It must not outlive a test that has failed: whoever runs this one waits for all that holds its
         * stderr. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 1);
        execl("/proc/self/exe", "peer", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    unsetenv("REMOTE_KILL_PEER");
    from_peer = ends[0];
    CHECK(fcntl(from_peer, F_SETFL, O_NONBLOCK) == 0);
    last_delivered = 0;
    atomic_store(&came, 0);
}

/* What the peer has got so far; how many. Between two of one incarnation nothing may be missing that was
 * not a dead letter. */
static uint32_t peer_take(void)
{
    fk_long n;
    uint32_t count = 0;
    ssize_t got;
    while ((got = read(from_peer, &n, sizeof(n))) == (ssize_t)sizeof(n)) {
        CHECK(n > 0 && n <= atomic_load(&sent));
        CHECK(n > last_delivered); /* in order, and once */
        CHECK(delivered[n] == 0);
        for (uint32_t i = last_delivered + 1; last_delivered != 0 && i < n; i++) {
            CHECK_U64(atomic_load(&dead[i]), 1);
        }
        delivered[n] = 1;
        delivered_count++;
        last_delivered = (uint32_t)n;
        count++;
    }
    CHECK(got <= 0);
    return count;
}

static void peer_kill(void)
{
    CHECK(kill(child, SIGKILL) == 0);
    CHECK(waitpid(child, NULL, 0) == child);
    peer_take();
    close(from_peer);
}

static void *sender_main(void *arg)
{
    fk_ref there;
    (void)arg;
    CHECK_OK(fk_resolve(r.sys, fk_str_of(there_path), &there, NULL));
    while (!atomic_load(&is_over)) {
        for (int i = 0; i < 20; i++) {
            fk_long n = (fk_long)atomic_load(&sent) + 1;
            if (n >= NUMBERS) return NULL;
            atomic_store(&sent, (uint32_t)n); /* before it can arrive */
            (void)fk_send(r.sys, there, FK_MSG(fk_long, n));
        }
        test_sleep_ms(1);
    }
    return NULL;
}

static void guard_begin(guard *g)
{
    *g = (guard){ .told = 0 };
    fk_props props = { .receive = guard_receive, .state = g };
    CHECK_OK(fk_resolve(r.sys, fk_str_of(there_path), &g->other, NULL));
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &g->self));
    CHECK_OK(fk_send(r.sys, g->self, FK_MSG(num, 1)));
}

static void start(void)
{
    fk_ref box;
    fk_system_config config = {
        .name = "a", .workers = 2, .on_dead_letter = on_letter, .remoting = QUICK
    };
    config.remoting.enabled = true;
    config.remoting.host = "127.0.0.1";
    port = peer_free_port();
    rig_start_with(&r, config);
    snprintf(address, sizeof(address), "fraktor.tcp://a@127.0.0.1:%u",
             (unsigned)fk_remoting_port(r.sys));
    snprintf(there_path, sizeof(there_path), "fraktor.tcp://b@127.0.0.1:%u/user/box",
             (unsigned)port);
    fk_props props = { .receive = box_receive };
    CHECK_OK(fk_spawn(r.sys, FK_STR("box"), &props, &box));
}

/* All that was sent is accounted for; what is neither here nor there was lost by a kill. */
static void account(uint32_t rounds)
{
    uint64_t dead_count = 0;
    for (uint32_t i = 1; i <= atomic_load(&sent); i++) {
        uint32_t times = atomic_load(&dead[i]);
        CHECK(times <= 1);
        CHECK(times + delivered[i] <= 1);
        dead_count += times;
        lost_count += times + delivered[i] == 0;
    }
    printf("%u rounds: %u sent, %llu delivered, %llu dead letters, %llu lost on their way\n",
           (unsigned)rounds, (unsigned)atomic_load(&sent), (unsigned long long)delivered_count,
           (unsigned long long)dead_count, (unsigned long long)lost_count);
    CHECK(lost_count <= (uint64_t)rounds * LOST_MAX);
    CHECK_U64(delivered_count + dead_count + lost_count, atomic_load(&sent));
}

TEST(remote_kill_keeps_order_and_tells_watchers_once)
{
    const char *text = getenv("REMOTE_KILL_ROUNDS");
    uint32_t rounds = text != NULL ? (uint32_t)atoi(text) : ROUNDS;
    guard *guards = calloc(rounds + 1, sizeof(guard));
    pthread_t sender;
    CHECK(guards != NULL && rounds > 0);
    start();
    CHECK(pthread_create(&sender, NULL, sender_main, NULL) == 0);
    peer_begin(1);
    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t got = 0;
        guard_begin(&guards[i]);
        /* Always taking what it writes: with a full pipe the peer would stand still. */
        PEER_AWAIT((got += peer_take(), atomic_load(&came)) >= ENOUGH);
        PEER_AWAIT((got += peer_take()) >= ENOUGH);
        PEER_AWAIT((peer_take(), atomic_load(&guards[i].is_watching)) != 0);
        peer_kill();
        peer_begin(i + 2);
        PEER_AWAIT((peer_take(), atomic_load(&guards[i].told)) == 1);
    }
    atomic_store(&is_over, true);
    CHECK(pthread_join(sender, NULL) == 0);
    /* The last number arrives, or was a dead letter. */
    uint32_t last = atomic_load(&sent);
    PEER_AWAIT((peer_take(), delivered[last] != 0 || atomic_load(&dead[last]) != 0));
    peer_kill();
    CHECK_OK(fk_system_stop(r.sys));
    rig_check_empty(&r);
    for (uint32_t i = 0; i < rounds; i++) CHECK_U64(guards[i].told, 1);
    CHECK_U64(atomic_load(&disorder), 0);
    CHECK_U64(atomic_load(&strange), 0);
    account(rounds);
    free(guards);
}
