/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two pipes tie the processes together: through one the second process says its port, at the end of
 * the other, which nobody writes to, it knows that its time has come, however the first one ended. */

#include "bench_second.h"

#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOP_SECONDS = 20 };

/* ---- looking at a process --------------------------------------------------------------- */

double bench_process_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec t = { 0 };
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t bench_process_kb(pid_t pid, const char *what)
{
    char line[128];
    unsigned long long kb = 0;
    size_t len = strlen(what);
    snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    FILE *file = fopen(line, "r");
    if (file == NULL) return 0;
    while (kb == 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, what, len) == 0 && line[len] == ':') {
            if (sscanf(line + len + 1, "%llu", &kb) != 1) break;
        }
    }
    fclose(file);
    return kb;
}

/* ---- in the second process -------------------------------------------------------------- */

fk_remoting_config bench_loopback(const fk_codec *const *codecs)
{
    return (fk_remoting_config){ .host = "127.0.0.1", .enabled = true, .codecs = codecs };
}

/* Whatever goes wrong ends this process at once; the first one learns it from the exit code. */
static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "fraktor bench: second process: %s: %s\n", what, why);
    _exit(CLI_FAILED);
}

static void second_failure(void *user, const fk_failure *failure)
{
    (void)user;
    give_up("an actor failed",
            failure->detail[0] != '\0' ? failure->detail : fk_err_text(failure->err));
}

static void second_dead_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    give_up("a message became a dead letter", fk_reason_name(letter->reason));
}

static void serve(const bench_run *run, const bench_service *service, int ready, int life)
{
    fk_system *sys = NULL;
    fk_ref ref;
    char byte;
    const fk_system_config config = { .size = sizeof config,
                                      .name = "second",
                                      .workers = run->threads,
                                      .on_failure = second_failure,
                                      .on_dead_letter = second_dead_letter,
                                      .remoting = bench_loopback(service->codecs) };
    fk_err err = fk_system_start(&config, &sys);
    if (err != FK_OK) give_up("fk_system_start", fk_err_text(err));
    err = fk_spawn(sys, fk_str_of(service->name), service->props, &ref);
    if (err != FK_OK) give_up("fk_spawn", fk_err_text(err));
    uint16_t port = fk_remoting_port(sys);
    if (write(ready, &port, sizeof port) != (ssize_t)sizeof port) _exit(CLI_FAILED);
    close(ready);
    while (read(life, &byte, 1) < 0 && errno == EINTR) continue;
    cli_watchdog("fk_system_stop() of the second process does not return", STOP_SECONDS);
    err = fk_system_stop(sys);
    if (err != FK_OK) give_up("fk_system_stop", fk_err_text(err));
    _exit(CLI_OK);
}

/* ---- in the first one ------------------------------------------------------------------- */

/* Without the second process the first would wait until its timeout. */
static void on_lost(int signal_number)
{
    static const char TEXT[] = "fraktor bench: the second process ended too early\n";
    (void)signal_number;
    if (write(STDERR_FILENO, TEXT, sizeof TEXT - 1) < 0) _exit(CLI_FAILED);
    _exit(CLI_FAILED);
}

static bool port_read(int fd, uint16_t *port)
{
    ssize_t n;
    do {
        n = read(fd, port, sizeof *port);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *port && *port != 0;
}

bool bench_second_start(bench_run *run, const bench_service *service, bench_second *second)
{
    int ready[2];
    int life[2];
    *second = (bench_second){ .pid = -1, .life = -1 };
    if (pipe(ready) != 0) {
        bench_fail(run, "no pipe: %s", strerror(errno));
        return false;
    }
    if (pipe(life) != 0) {
        close(ready[0]);
        close(ready[1]);
        bench_fail(run, "no pipe: %s", strerror(errno));
        return false;
    }
    fflush(stdout);
    second->pid = fork();
    if (second->pid == 0) {
        close(ready[0]);
        close(life[1]);
        serve(run, service, ready[1], life[0]);
    }
    close(ready[1]);
    close(life[0]);
    second->life = life[1];
    bool ok = second->pid > 0 && port_read(ready[0], &second->port);
    close(ready[0]);
    if (ok) signal(SIGCHLD, on_lost);
    if (!ok) bench_fail(run, "the second process did not start");
    return ok;
}

void bench_second_stop(bench_run *run, bench_second *second)
{
    int status = 0;
    if (second->life < 0) return;
    signal(SIGCHLD, SIG_DFL);
    close(second->life);
    second->life = -1;
    if (second->pid <= 0) return;
    while (waitpid(second->pid, &status, 0) < 0 && errno == EINTR) continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CLI_OK) {
        bench_fail(run, "the second process failed (status %d)", status);
    }
}
