/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Item 24 of the first hour: SIGTERM during load, and twice in a row. The program starts itself as a
 * server under load, sends it signals, and looks at its progress lines and its exit code.
 */

#include <fraktor/fraktor.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 100, OUTPUT_SIZE = 65536, SECONDS_MAX = 20 };

/* ---- the server ------------------------------------------------------------------------------ */

static _Atomic bool is_open = true; /* new requests are taken */

typedef struct {
    uint64_t n;
} request;
FK_MESSAGE(request);

/* Each answer brings the next request, until the intake is closed. */
static fk_err client_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_ref *server = state;
    const request *r = FK_AS(request, msg);
    if (r == NULL) return fk_unhandled(ctx, msg);
    return atomic_load(&is_open) ? fk_tell(ctx, *server, FK_MSG(request, r->n + 1)) : FK_OK;
}

static fk_err server_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (FK_AS(request, msg) != NULL) return fk_reply(ctx, FK_MSG(request, 0));
    /* Everything that came before this has been answered. */
    if (msg->type == &fk_type_text) return fk_reply(ctx, FK_MSG(fk_shutdown_done, FK_OK));
    return fk_unhandled(ctx, msg);
}

static void close_intake(fk_system *sys, fk_shutdown_task task, void *user)
{
    (void)user;
    atomic_store(&is_open, false);
    fk_shutdown_task_done(sys, task, FK_OK);
}

static void never_done(fk_system *sys, fk_shutdown_task task, void *user)
{
    (void)sys;
    (void)task;
    (void)user;
}

static fk_err load_start(fk_system *sys, fk_ref *server)
{
    fk_ref client;
    fk_err err = fk_spawn(sys, FK_STR("server"), &(fk_props){ .receive = server_receive }, server);
    for (int i = 0; i < CLIENTS && err == FK_OK; i++) {
        fk_props props = { .receive = client_receive,
                           .state_size = sizeof(*server),
                           .init = server };
        err = fk_spawn(sys, FK_STR(""), &props, &client);
        if (err == FK_OK) err = fk_send(sys, client, FK_MSG(request, 1));
    }
    return err;
}

static int serve(bool is_stuck, fk_time deadline)
{
    fk_system *sys;
    fk_ref server;
    fk_err outcome = FK_E_FAILED;
    if (fk_system_start(&(fk_system_config){ .name = "shop" }, &sys) != FK_OK) return 1;
    fk_err err = load_start(sys, &server);
    if (err == FK_OK) {
        err = fk_shutdown_task_add(sys, FK_STR("service-unbind"), FK_STR("intake"), close_intake,
                                   NULL, NULL);
    }
    if (err == FK_OK) {
        err = fk_shutdown_task_add_actor(sys, FK_STR("service-requests-done"), FK_STR("answers"),
                                         server, FK_TEXT("drain"), NULL);
    }
    if (err == FK_OK && is_stuck) {
        err = fk_shutdown_task_add(sys, FK_STR("service-stop"), FK_STR("stuck"), never_done, NULL,
                                   NULL);
    }
    fk_signal_config signals = { .progress_fd = STDOUT_FILENO, .deadline = deadline };
    if (err == FK_OK) err = fk_host_shutdown_on_signal(sys, &signals);
    if (err != FK_OK) return 1;
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
    if (fk_shutdown_await(sys, FK_NEVER, &outcome) != FK_OK) return 1;
    if (fk_system_stop(sys) != FK_OK) return 1;
    return outcome == FK_OK ? 0 : 1;
}

/* ---- the test -------------------------------------------------------------------------------- */

typedef struct child {
    pid_t pid;
    int fd;
    size_t len;
    char output[OUTPUT_SIZE];
} child;

static void start(child *c, const char *program, const char *how)
{
    int fd[2];
    c->len = 0;
    c->output[0] = '\0';
    if (pipe(fd) != 0 || (c->pid = fork()) < 0) _exit(1);
    if (c->pid == 0) {
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        execl(program, program, how, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    c->fd = fd[0];
}

/* Reads on until the text has come; with NULL until there is no more. */
static bool read_until(child *c, const char *text)
{
    while (text == NULL || strstr(c->output, text) == NULL) {
        ssize_t n = read(c->fd, c->output + c->len, OUTPUT_SIZE - 1 - c->len);
        if (n <= 0) return text == NULL;
        c->len += (size_t)n;
        c->output[c->len] = '\0';
    }
    return true;
}

/* The exit code; -1 when it did not exit by itself. */
static int finish(child *c)
{
    int status = 0;
    read_until(c, NULL);
    waitpid(c->pid, &status, 0);
    close(c->fd);
    printf("%s-> exit code %d\n\n", c->output, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Each line begins where the one before it has ended. */
static bool has_in_order(const child *c, const char *const *lines)
{
    const char *at = c->output;
    for (; *lines != NULL; lines++) {
        at = strstr(at, *lines);
        if (at == NULL) {
            printf("missing, or not in its place: %s\n", *lines);
            return false;
        }
        at += strlen(*lines);
    }
    return true;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool goes_down_in_order(child *c, const char *program, int number)
{
    static const char *const LINES[] = { "ready\n",
                                         "shutdown shop: signal SIG",
                                         "shutdown shop: service-unbind started\n",
                                         "shutdown shop: service-unbind/intake done\n",
                                         "shutdown shop: service-unbind done\n",
                                         "shutdown shop: service-requests-done started\n",
                                         "shutdown shop: service-requests-done/answers done\n",
                                         "shutdown shop: service-requests-done done\n",
                                         "shutdown shop: actor-system-terminate started\n",
                                         "shutdown shop: actor-system-terminate done\n",
                                         "shutdown shop: done\n",
                                         NULL };
    start(c, program, "serve");
    if (!read_until(c, "ready\n")) return false;
    kill(c->pid, number);
    return finish(c) == 0 && has_in_order(c, LINES);
}

static bool ends_at_the_second_signal(child *c, const char *program, int number)
{
    double begun = seconds();
    start(c, program, "stuck");
    if (!read_until(c, "ready\n")) return false;
    kill(c->pid, SIGTERM);
    if (!read_until(c, "service-stop started\n")) return false;
    kill(c->pid, number);
    return finish(c) == 128 + number && strstr(c->output, "again: the process ends\n") != NULL &&
           seconds() - begun < SECONDS_MAX;
}

static bool ends_at_the_deadline(child *c, const char *program)
{
    double begun = seconds();
    start(c, program, "hurry");
    if (!read_until(c, "ready\n")) return false;
    kill(c->pid, SIGTERM);
    return finish(c) == FK_EXIT_DEADLINE && strstr(c->output, "not down after 0.3 s") != NULL &&
           seconds() - begun < SECONDS_MAX;
}

/* Those who are started inherit that; the signals come through all the same. */
static void block_signals(void)
{
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGTERM);
    sigaddset(&both, SIGINT);
    sigprocmask(SIG_BLOCK, &both, NULL);
}

int main(int argc, char **argv)
{
    static child c;
    if (argc > 1 && strcmp(argv[1], "serve") == 0) return serve(false, 0);
    if (argc > 1 && strcmp(argv[1], "stuck") == 0) return serve(true, FK_NEVER);
    if (argc > 1 && strcmp(argv[1], "hurry") == 0) return serve(true, FK_MILLIS(300));
    if (argc > 1 && strcmp(argv[1], "blocked") == 0) block_signals();
    bool ok = goes_down_in_order(&c, argv[0], SIGTERM) && goes_down_in_order(&c, argv[0], SIGINT) &&
              ends_at_the_second_signal(&c, argv[0], SIGTERM) &&
              ends_at_the_second_signal(&c, argv[0], SIGINT) && ends_at_the_deadline(&c, argv[0]);
    puts(ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
