/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where a system listens, what it refuses to do, and too many who come. */

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/fake_driver.h"

typedef struct told {
    size_t count;
    fk_level level;
    char text[256];
} told;

static void on_event(void *user, const fk_event *event)
{
    told *t = user;
    if (event->kind != FK_EVENT_LOG) return;
    t->count++;
    t->level = event->level;
    snprintf(t->text, sizeof(t->text), "%.*s", (int)event->text.len, event->text.ptr);
}

static fk_err try_start_with(uint32_t workers, fk_remoting_config remoting, told *t,
                             fk_system **out)
{
    *t = (told){ .count = 0 };
    remoting.enabled = true;
    fk_system_config config = {
        .name = "net", .workers = workers, .remoting = remoting, .on_event = on_event, .user = t
    };
    fake_reset();
    return fk_system_start(&config, out);
}

static fk_err try_start(fk_remoting_config remoting, told *t, fk_system **out)
{
    return try_start_with(1, remoting, t, out);
}

static void refused(fk_remoting_config remoting, fk_err expected, const char *why)
{
    told t;
    fk_system *sys = NULL;
    size_t fds = world_fds();
    CHECK_ERR(try_start(remoting, &t, &sys), expected);
    CHECK_U64(world_fds(), fds);
    if (why == NULL) return;
    CHECK_U64(t.count, 1);
    CHECK(t.level == FK_LEVEL_ERROR);
    CHECK(strncmp(t.text, "cannot listen at ", 17) == 0);
    if (strstr(t.text, why) == NULL) CHECK_STR(t.text, why);
}

TEST(listen_refuses_what_is_not_allowed)
{
    const char *why = "others can reach it";
    refused((fk_remoting_config){ .host = "h", .bind_host = "0.0.0.0" }, FK_E_FORBIDDEN, why);
    refused((fk_remoting_config){ .host = "h", .bind_host = "::" }, FK_E_FORBIDDEN, why);
    refused((fk_remoting_config){ .host = "h", .bind_host = "10.1.2.3" }, FK_E_FORBIDDEN, why);
    refused((fk_remoting_config){ .host = "h", .bind_host = "[::2]" }, FK_E_FORBIDDEN, why);
    refused((fk_remoting_config){ .host = "h", .bind_host = "::ffff:10.0.0.1" }, FK_E_FORBIDDEN,
            why);
    refused((fk_remoting_config){ .host = "h", .bind_host = "128.0.0.1" }, FK_E_FORBIDDEN, why);
}

TEST(listen_refuses_what_cannot_be)
{
    const char *why = "that is not an address";
    refused((fk_remoting_config){ .host = "h", .bind_host = "localhost" }, FK_E_AUTHORITY, why);
    refused((fk_remoting_config){ .host = "h", .bind_host = "127.1" }, FK_E_AUTHORITY, why);
    refused((fk_remoting_config){ .host = "h", .bind_host = "[]" }, FK_E_AUTHORITY, why);
    refused(
        (fk_remoting_config){ .host = "h",
                              .bind_host = "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111" },
        FK_E_AUTHORITY, why);
    refused((fk_remoting_config){ .host = NULL }, FK_E_AUTHORITY, NULL);
    refused((fk_remoting_config){ .host = "h", .frame_max = 1 }, FK_E_INVALID, NULL);
    refused((fk_remoting_config){ .host = "two words" }, FK_E_AUTHORITY, NULL);
    /* Not an address of this machine. */
    refused((fk_remoting_config){ .host = "h",
                                  .bind_host = "192.0.2.7",
                                  .allow_unencrypted_beyond_loopback = true },
            FK_E_OS, "not available");
}

TEST(listen_at_a_port_in_use_says_so)
{
    uint16_t port;
    int fd = peer_listen(5, &port);
    refused((fk_remoting_config){ .host = "h", .port = port }, FK_E_IN_USE, "in use");
    refused((fk_remoting_config){ .host = "h", .port = 1, .bind_port = port }, FK_E_IN_USE,
            "in use");
    close(fd);
}

static void address_is(fk_system *sys, const char *host, uint16_t port)
{
    char text[128], expected[128];
    snprintf(expected, sizeof(expected), "fraktor://net@%s:%u", host, port);
    memset(text, 0, sizeof(text));
    CHECK(sys->address_len < sizeof(text));
    memcpy(text, sys->address_text, sys->address_len);
    CHECK_STR(text, expected);
}

TEST(listen_gives_the_system_its_port)
{
    told t;
    fk_system *sys;
    world w;
    fake_reset();
    world_start(&w, 1); /* a free port, and what libuv keeps */
    uint16_t port = world_port(&w);
    world_stop(&w);

    CHECK_OK(try_start((fk_remoting_config){ .host = "h" }, &t, &sys));
    CHECK(fk_remoting_port(sys) != 0);
    address_is(sys, "h", fk_remoting_port(sys));
    CHECK_OK(fk_system_stop(sys));

    CHECK_OK(try_start((fk_remoting_config){ .host = "h", .port = port }, &t, &sys));
    CHECK_U64(fk_remoting_port(sys), port);
    address_is(sys, "h", port);
    close(peer_connect(port));
    WORLD_UNTIL(&w, atomic_load(&the_fake.accepted) == 1);
    CHECK_OK(fk_system_stop(sys));

    /* And once more at once: what is left of the old connection does not matter. */
    CHECK_OK(
        try_start((fk_remoting_config){ .host = "h", .port = 9, .bind_port = port }, &t, &sys));
    CHECK_U64(fk_remoting_port(sys), port);
    address_is(sys, "h", 9); /* behind somebody who forwards */
    CHECK_OK(fk_system_stop(sys));

    CHECK_OK(try_start((fk_remoting_config){ .host = "h",
                                             .bind_host = "0.0.0.0",
                                             .allow_unencrypted_beyond_loopback = true },
                       &t, &sys));
    CHECK_OK(fk_system_stop(sys));
    CHECK_U64(t.count, 0);
}

TEST(listen_at_ipv6)
{
    told t;
    fk_system *sys;
    fk_err err = try_start((fk_remoting_config){ .host = "[::1]" }, &t, &sys);
    if (err == FK_E_OS) return; /* a machine without it */
    CHECK_OK(err);
    struct sockaddr_in6 to = { .sin6_family = AF_INET6,
                               .sin6_port = htons(fk_remoting_port(sys)),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    world w = { .sys = sys };
    WORLD_UNTIL(&w, atomic_load(&the_fake.accepted) == 1);
    CHECK(strncmp(world_last().from, "[::1]:", 6) == 0);
    close(fd);
    CHECK_OK(fk_system_stop(sys));
}

TEST(listen_without_remoting_is_nothing)
{
    fk_system *sys;
    CHECK_OK(fk_system_start(&(fk_system_config){ .workers = 1 }, &sys));
    CHECK_U64(fk_remoting_port(sys), 0);
    CHECK_OK(fk_system_stop(sys));
}

TEST(listen_abandoned_frees_the_port)
{
    uint16_t port;
    size_t fds = world_fds();
    close(peer_listen(5, &port));
    fk_boot *boot;
    fk_system_config config = { .remoting = { .enabled = true, .host = "h", .port = port } };
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fk_boot_create(&config, &boot));
        fk_boot_abandon(boot);
    }
    CHECK_U64(world_fds(), fds);
}

TEST(listen_turns_away_whom_the_driver_does_not_want)
{
    world w;
    fake *f = fake_reset();
    f->refuses = true;
    world_start(&w, 2);
    size_t fds = world_fds();
    for (int i = 0; i < 50; i++) {
        int fd = peer_connect(world_port(&w));
        WORLD_UNTIL(&w, peer_read(fd, 0) != -1);
        close(fd);
    }
    CHECK_U64(atomic_load(&f->accepted), 50);
    CHECK_U64(atomic_load(&f->closed), 0);
    WORLD_UNTIL(&w, world_fds() == fds);
    world_stop(&w);
}

/* ---- no descriptors left --------------------------------------------------------------------------- */

enum { ROOM = 5, KNOCKS = 40 };

static void fail(const char *what)
{
    fprintf(stderr, "in the child: %s\n", what);
    _exit(1);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The server: says its port, then serves until the pipe is closed. Without threads, which after a fork
 * ThreadSanitizer does not want. */
static void serve(int to, int from, bool spare)
{
    told t;
    fk_system *sys;
    struct rlimit limit;
    fk_remoting_config remoting = { .host = "127.0.0.1" };
    if (try_start_with(FK_WORKERS_NONE, remoting, &t, &sys) != FK_OK) fail("start");
    fk_net *net = the_fake.transport->ctx;
    getrlimit(RLIMIT_NOFILE, &limit);
    /* The lowest free number, and ROOM of them; without the spare one more. */
    int next = dup(0);
    close(next);
    limit.rlim_cur = (rlim_t)next + ROOM;
    if (!spare) { /* nobody runs yet that would look at it: no connection has come */
        close(net->listener.spare);
        net->listener.spare = -1;
        limit.rlim_cur = (rlim_t)next;
    }
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) fail("setrlimit");
    uint16_t port = fk_remoting_port(sys);
    double began = cpu_seconds();
    if (write(to, &port, sizeof(port)) != sizeof(port)) fail("write");
    struct pollfd p[2] = { { from, POLLIN, 0 }, { fk_host_fd(sys), POLLIN, 0 } };
    while (poll(p, 2, fk_host_timeout_ms(sys)) >= 0 && p[0].revents == 0) {
        fk_host_run_once(sys, 0);
    }
    if (spare && atomic_load(&the_fake.accepted) < ROOM) fail("nobody was let in");
    if (cpu_seconds() - began > 0.25) fail("it was busy for nothing");
    limit.rlim_cur += 64; /* stopping must not need any */
    setrlimit(RLIMIT_NOFILE, &limit);
    if (fk_system_stop(sys) != FK_OK) fail("stop");
    if (t.count != 1 || t.level != FK_LEVEL_WARN) fail("it was not logged once");
    if (strstr(t.text, "no file descriptors left") == NULL) fail(t.text);
    _exit(0);
}

/* How many were, when as many are as should be, or when that takes too long. */
static size_t turned_away(const int fd[KNOCKS])
{
    bool is_away[KNOCKS] = { false };
    size_t away = 0;
    int64_t end = test_clock() + FK_SECONDS(30);
    while (away < KNOCKS - ROOM && test_clock() < end) {
        for (int i = 0; i < KNOCKS; i++) {
            long n = is_away[i] ? -1 : peer_read(fd[i], 0);
            is_away[i] = is_away[i] || n == 0 || n == -2;
            away += n == 0 || n == -2;
        }
        test_sleep_ms(10);
    }
    return away;
}

/* When it has noticed that others have gone. */
static bool is_let_in(uint16_t port)
{
    bool is_in = false;
    int64_t end = test_clock() + FK_SECONDS(30);
    while (!is_in && test_clock() < end) {
        int fd = peer_connect(port);
        test_sleep_ms(100);
        is_in = peer_read(fd, 0) == -1;
        close(fd);
    }
    return is_in;
}

static void exhaust(bool spare)
{
    int up[2], down[2], fd[KNOCKS], status;
    uint16_t port = 0;
    CHECK(pipe(up) == 0);
    CHECK(pipe(down) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(up[0]);
        close(down[1]);
        serve(up[1], down[0], spare);
    }
    close(up[1]);
    close(down[0]);
    CHECK(read(up[0], &port, sizeof(port)) == sizeof(port));
    for (int i = 0; i < KNOCKS; i++) {
        fd[i] = peer_connect(port);
        test_sleep_ms(2);
    }
    test_sleep_ms(500); /* being busy for nothing would show */
    if (spare) CHECK_U64(turned_away(fd), KNOCKS - ROOM);
    for (int i = 0; i < KNOCKS; i++) close(fd[i]);
    if (spare) CHECK(is_let_in(port)); /* with descriptors again, all is well again */
    close(down[1]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_U64(WEXITSTATUS(status), 0);
    close(up[0]);
}

TEST(listen_without_descriptors_turns_away)
{
    exhaust(true);
}

TEST(listen_without_even_a_spare_one_waits)
{
    exhaust(false);
}
