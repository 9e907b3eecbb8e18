/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 6 of the first hour: an actor whose receive gives an error is restarted with fresh state, and
 * after the limit it is stopped and its watcher told. A NULL that is dereferenced kills the process,
 * like in any C program, with a line that names the actor and the message if the program asked. */

#include <fraktor/fraktor.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    int n;
} bad;
FK_MESSAGE(bad);

typedef struct {
    int n;
} good;
FK_MESSAGE(good);

static fk_system *sys;
static int restarted, stopped_by_limit, told, wrong;

static void on_event(void *user, const fk_event *event)
{
    char path[128] = "";
    (void)user;
    if (event->kind == FK_EVENT_RESTARTED) restarted++;
    if (event->kind != FK_EVENT_SUPERVISED) return;
    fk_path_of(sys, event->actor, path, sizeof path);
    path[strcspn(path, "#")] = '\0';
    printf("%s: %s at %s, restart %u: %s\n", path, fk_err_name(event->err),
           event->failure->type->name, (unsigned)event->count, fk_directive_name(event->directive));
    bool is_right = strcmp(path, "fraktor://hour/user/fragile") == 0 &&
                    event->err == FK_E_INVALID && event->failure->type == &fk_type_bad;
    if (!is_right) wrong++;
    if (event->directive == FK_DIRECTIVE_STOP) stopped_by_limit++;
}

static fk_err fragile(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    int *seen = state;
    if (FK_AS(bad, msg) != NULL) return FK_E_INVALID;
    if (FK_AS(good, msg) == NULL) return fk_unhandled(ctx, msg);
    if (++*seen != 1)
        wrong++; /* every good one is followed by a bad one: the state is always fresh */
    return FK_OK;
}

static fk_err watcher_start(fk_ctx *ctx, void *state)
{
    return fk_watch(ctx, *(fk_ref *)state);
}

static fk_err watcher(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end == NULL) return fk_unhandled(ctx, msg);
    if (fk_ref_equal(end->actor, *(fk_ref *)state)) told++;
    fk_stop_self(ctx);
    return FK_OK;
}

static int fail_until_the_limit(void)
{
    fk_ref actor, other;
    fk_system_config config = { .name = "hour", .on_event = on_event };
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_props props = { .receive = fragile, .state_size = sizeof(int) };
    if (fk_spawn(sys, FK_STR("fragile"), &props, &actor) != FK_OK) return 1;
    fk_props own = { .receive = watcher, .start = watcher_start, .state = &actor };
    if (fk_spawn(sys, FK_STR("watcher"), &own, &other) != FK_OK) return 1;
    for (int i = 0; i < 11; i++) { /* the default: ten restarts in a second */
        fk_send(sys, actor, FK_MSG(good, i));
        fk_send(sys, actor, FK_MSG(bad, i));
    }
    fk_err err = fk_await_stopped(sys, other, FK_SECONDS(20));
    fk_system_stop(sys);
    printf("restarted %d times, then stopped: %d; watcher told: %d\n", restarted, stopped_by_limit,
           told);
    return err == FK_OK && restarted == 10 && stopped_by_limit == 1 && told == 1 && wrong == 0 ? 0
                                                                                               : 1;
}

static fk_err wild(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    volatile int *nowhere = state; /* no state: NULL */
    (void)ctx;
    (void)msg;
    *nowhere = 1;
    return FK_OK;
}

enum { SURVIVED = 10, NOT_STARTED = 11 };

static int wild_main(int report)
{
    fk_ref actor;
    signal(SIGSEGV, SIG_DFL);
    if (fk_host_report_crashes(report) != FK_OK) return NOT_STARTED;
    if (fk_system_start(&(fk_system_config){ .name = "hour" }, &sys) != FK_OK) return NOT_STARTED;
    if (fk_spawn(sys, FK_STR("wild"), &(fk_props){ .receive = wild }, &actor) != FK_OK) {
        return NOT_STARTED;
    }
    fk_send(sys, actor, FK_MSG(bad, 1));
    sleep(20);
    return SURVIVED;
}

/* In a process of its own, which must die by the signal; or by what a sanitizer makes of it. */
static int dereference_null(void)
{
    static const char EXPECTED[] = "fraktor: SIGSEGV in actor fraktor://hour/user/wild#";
    int status = 0, report[2];
    char line[256] = "";
    if (pipe(report) != 0) return 1;
    pid_t child = fork();
    if (child == 0) _exit(wild_main(report[1]));
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    close(report[1]);
    if (read(report[0], line, sizeof line - 1) < 0) return 1;
    close(report[0]);
    bool is_by_itself = WIFEXITED(status) &&
                        (WEXITSTATUS(status) == SURVIVED || WEXITSTATUS(status) == NOT_STARTED);
    bool is_dead = !is_by_itself && (WIFEXITED(status) || WTERMSIG(status) == SIGSEGV ||
                                     WTERMSIG(status) == SIGABRT);
    bool is_plain = is_dead && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
    if (is_plain) { /* a sanitizer has its own words, and its own way to end */
        printf("report: %.*s\n", (int)strcspn(line, "#"), line);
        if (strncmp(line, EXPECTED, sizeof EXPECTED - 1) != 0) return 1;
        if (strstr(line, ", handling a message of type bad\n") == NULL) return 1;
    }
    puts(is_dead ? "a wild pointer kills the process" : "a wild pointer went unnoticed");
    return is_dead ? 0 : 1;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    int result = dereference_null(); /* first: there are no threads yet that fork() would lose */
    return fail_until_the_limit() != 0 ? 1 : result;
}
