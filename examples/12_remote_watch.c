/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* When other systems fail. A guard watches an actor of another process, which is killed (kill -9): the
 * guard is told once, and that the whole system is gone. Then a second one is quarantined, as somebody
 * would who does not trust it: what is sent to it is refused, until that is overridden. Run with an
 * argument it is one of the others. */

#define _POSIX_C_SOURCE 200809L /* popen, kill */
#include <fraktor/fraktor.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static fk_err start(const char *name, fk_system **out)
{
    const fk_system_config config = { .size = sizeof config,
                                      .name = name,
                                      .scheme = FK_SCHEME_TCP,
                                      .remoting = { .enabled = true,
                                                    .host = "127.0.0.1",
                                                    .heartbeat_every = FK_MILLIS(100),
                                                    .heartbeat_pause = FK_MILLIS(500) } };
    return fk_system_start(&config, out);
}

/* ---- another system --------------------------------------------------------------------------------- */

static fk_err answer(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_reply(ctx, FK_TEXT("here"));
}

static int other(void)
{
    fk_system *sys;
    fk_ref ref;
    char path[256];
    if (start("other", &sys) != FK_OK) return 1;
    if (fk_spawn(sys, FK_STR("worker"), &(fk_props){ .receive = answer }, &ref) != FK_OK) return 1;
    fk_path_of(sys, ref, path, sizeof path);
    printf("%ld %s\n", (long)getpid(), path);
    fflush(stdout);
    /* It is killed long before that. */
    return fk_await_termination(sys, FK_SECONDS(60)) == FK_OK ? 0 : 1;
}

typedef struct {
    FILE *pipe;
    long pid;
    char path[256];    /* of its worker, */
    char address[256]; /* and of the system alone */
    fk_ref worker;
} process;

static fk_err process_start(fk_system *sys, const char *program, process *out)
{
    char command[1024];
    snprintf(command, sizeof command, "exec '%s' other", program);
    out->pipe = popen(command, "r");
    if (out->pipe == NULL) return FK_E_OS;
    if (fscanf(out->pipe, "%ld %255s", &out->pid, out->path) != 2) return FK_E_OS;
    const char *end = strstr(out->path, "/user");
    if (end == NULL) return FK_E_OS;
    memcpy(out->address, out->path, (size_t)(end - out->path));
    return fk_resolve(sys, fk_str_of(out->path), &out->worker, NULL);
}

static void process_kill(process *p)
{
    if (p->pid > 0) kill((pid_t)p->pid, SIGKILL);
    if (p->pipe != NULL) pclose(p->pipe);
}

static fk_err ask(fk_system *sys, const process *p)
{
    char text[16];
    fk_buf buf = FK_BUF(text);
    fk_err err =
        fk_ask_wait(sys, p->worker, FK_TEXT("where are you?"), FK_INTO_TEXT(&buf), FK_SECONDS(10));
    printf("worker: %s\n", err == FK_OK ? text : fk_err_text(err));
    return err;
}

/* ---- the guard --------------------------------------------------------------------------------------- */

static fk_err guard_start(fk_ctx *ctx, void *state)
{
    return fk_watch(ctx, *(fk_ref *)state);
}

static fk_err guard(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end == NULL) return fk_unhandled(ctx, msg);
    printf("guard: it is gone%s\n", end->address_terminated ? ", with its whole system" : "");
    fk_stop_self(ctx);
    return FK_OK;
}

static fk_err lose_one(fk_system *sys, const char *program)
{
    process p = { .pid = 0 };
    fk_ref ref = FK_REF_NONE;
    fk_err err = process_start(sys, program, &p);
    const fk_props props = {
        .receive = guard, .start = guard_start, .state_size = sizeof(fk_ref), .init = &p.worker
    };
    if (err == FK_OK) err = fk_spawn(sys, FK_STR("guard"), &props, &ref);
    if (err == FK_OK) err = ask(sys, &p);
    process_kill(&p);
    return err == FK_OK ? fk_await_stopped(sys, ref, FK_SECONDS(20)) : err;
}

static fk_err quarantine_one(fk_system *sys, const char *program)
{
    process p = { .pid = 0 };
    fk_authority_info info;
    fk_err err = process_start(sys, program, &p);
    /* Before it is met. Else it would be told, and quarantine us in turn; to come together again both
     * would have to ask for fk_authority_override_force(), or one of them be restarted. */
    if (err == FK_OK) err = fk_authority_quarantine(sys, fk_str_of(p.address));
    if (err == FK_OK) err = fk_authority_state(sys, fk_str_of(p.address), &info);
    if (err == FK_OK) {
        printf("quarantine for %d days\n",
               (int)((info.quarantine_left + FK_SECONDS(1)) / FK_MINUTES(24 * 60)));
        printf("a message: %s\n", fk_err_text(fk_send(sys, p.worker, FK_TEXT("?"))));
        err = fk_authority_override(sys, fk_str_of(p.address));
    }
    if (err == FK_OK) err = ask(sys, &p);
    process_kill(&p);
    return err;
}

int main(int argc, char **argv)
{
    fk_system *sys;
    if (argc > 1) return other();
    if (start("watcher", &sys) != FK_OK) return 1;
    fk_err err = lose_one(sys, argv[0]);
    if (err == FK_OK) err = quarantine_one(sys, argv[0]);
    fk_system_stop(sys);
    if (err != FK_OK) printf("failed: %s\n", fk_err_text(err));
    return err == FK_OK ? 0 : 1;
}
