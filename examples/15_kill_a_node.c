/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A node is killed, and nobody is told. Two processes can run grains; this one only calls them. A counter
 * counts to three on one of them, which then gets SIGKILL: the next call is answered by the other, from the
 * state that was stored, as soon as the lease of the dead one is over. The call that was under way when it
 * died counts once. */

#define _POSIX_C_SOURCE 200809L
#include <fraktor/fraktor.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        fk_err err_ = (call);                                                                      \
        if (err_ != FK_OK) return err_;                                                            \
    } while (0)

/* A node that was not heard of for so long is taken over from. */
static const fk_time LEASE = FK_SECONDS(1);
static const fk_time BOUND = FK_SECONDS(4);

/* ---- what all know ------------------------------------------------------------------------------------ */

typedef struct {
    int64_t by;
} add;
FK_MESSAGE(add);
FK_CODEC_STRUCT(add, 1, FK_FIELD(add, by));

typedef struct {
    int64_t total;
    int64_t pid; /* of the process that answers */
} sum;
FK_MESSAGE(sum);
FK_CODEC_STRUCT(sum, 1, FK_FIELD(sum, total), FK_FIELD(sum, pid));

static fk_err begin(const char *store, const char *id, fk_system **sys, fk_cluster **cluster)
{
    static const fk_codec *const CODECS[] = { &fk_codec_add, &fk_codec_sum, NULL };
    const fk_system_config config = { .size = sizeof config,
                                      .name = "counters",
                                      .workers = 1,
                                      .scheme = FK_SCHEME_TCP,
                                      .remoting = { .enabled = true,
                                                    .host = "127.0.0.1", /* and any port */
                                                    .codecs = CODECS } };
    const fk_cluster_config joining = {
        .size = sizeof joining, .store = store, .id = id, .client = id == NULL, .lease_ttl = LEASE
    };
    TRY(fk_system_start(&config, sys));
    return fk_cluster_join(*sys, &joining, cluster);
}

/* ---- a node ------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t total;
} counter;

static fk_err counter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    counter *self = state;
    const add *a = FK_AS(add, msg);
    if (a == NULL) return fk_unhandled(ctx, msg);
    self->total += a->by;
    return fk_reply(ctx, FK_MSG(sum, self->total, getpid()));
}

static const fk_props COUNTER = { .receive = counter_receive, .state_size = sizeof(counter) };

/* Runs until its input ends: with the process that started it, whatever becomes of that. */
static int node(const char *store, const char *id)
{
    fk_system *sys = NULL;
    fk_cluster *cluster;
    char byte;
    fk_err err = begin(store, id, &sys, &cluster);
    if (err == FK_OK) {
        err = fk_kind_register(cluster, FK_STR("counter"),
                               &(fk_kind){ .props = &COUNTER, .durable = true });
    }
    while (err == FK_OK && read(STDIN_FILENO, &byte, 1) > 0) continue;
    if (sys != NULL) fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}

typedef struct {
    const char *id;
    pid_t pid;
    int input;
} process;

static bool process_start(process *p, char *program, char *store)
{
    int ends[2];
    char id[16];
    snprintf(id, sizeof id, "%s", p->id);
    char *const arguments[] = { program, store, id, NULL };
    if (pipe(ends) != 0) return false;
    p->input = ends[1];
    p->pid = fork();
    if (p->pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(program, arguments);
        _exit(127);
    }
    close(ends[0]);
    return p->pid > 0;
}

/* ---- who calls ---------------------------------------------------------------------------------------- */

static fk_time now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return FK_SECONDS((fk_time)t.tv_sec) + t.tv_nsec;
}

static fk_err count(fk_cluster *cluster, sum *out)
{
    return fk_grain_ask_wait(cluster, FK_STR("counter"), FK_STR("visits"), FK_MSG(add, 1),
                             FK_INTO(sum, out), FK_SECONDS(20));
}

static fk_err await_two(fk_cluster *cluster)
{
    fk_grain_place place = { .members = 0 };
    fk_time end = now() + FK_SECONDS(20);
    while (now() < end) {
        fk_err err = fk_grain_where(cluster, FK_STR("counter"), FK_STR("visits"), &place);
        if (err == FK_OK && place.members == 2) return FK_OK;
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    return FK_E_TIMEOUT;
}

static fk_err show(fk_cluster *cluster, process *two)
{
    sum s = { 0, 0 };
    TRY(await_two(cluster));
    for (int i = 0; i < 3; i++) {
        TRY(count(cluster, &s));
        printf("visits: %" PRId64 "\n", s.total);
    }
    process *owner = two[0].pid == s.pid ? &two[0] : &two[1], *other = &two[two == owner];
    printf("the process that answered is killed\n");
    kill(owner->pid, SIGKILL);
    fk_time begun = now();
    TRY(count(cluster, &s));
    bool is_quick = now() - begun < BOUND;
    printf("visits: %" PRId64 ", answered by %s, %s\n", s.total,
           s.pid == other->pid ? "the other" : "nobody that is known",
           is_quick ? "in less than four seconds" : "too late");
    TRY(count(cluster, &s));
    printf("visits: %" PRId64 "\n", s.total);
    return FK_OK;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/fraktor-kill-XXXXXX", store[64], file[64];
    process two[2] = { { .id = "first" }, { .id = "second" } };
    fk_system *sys = NULL;
    fk_cluster *cluster;
    if (argc > 2) return node(argv[1], argv[2]);
    if (mkdtemp(folder) == NULL) return 1;
    signal(SIGPIPE, SIG_IGN);
    snprintf(store, sizeof store, "sqlite:%s/counters.db", folder);
    fk_err err = FK_OK;
    for (int i = 0; i < 2; i++) {
        if (!process_start(&two[i], argv[0], store)) err = FK_E_OS;
    }
    if (err == FK_OK) err = begin(store, NULL, &sys, &cluster);
    if (err == FK_OK) err = show(cluster, two);
    if (sys != NULL) fk_system_stop(sys);
    for (int i = 0; i < 2; i++) {
        close(two[i].input);
        if (two[i].pid > 0) waitpid(two[i].pid, NULL, 0);
    }
    static const char *const PARTS[] = { "", "-wal", "-shm" };
    for (size_t i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s/counters.db%s", folder, PARTS[i]);
        unlink(file);
    }
    rmdir(folder);
    if (err != FK_OK) printf("failed: %s\n", fk_err_text(err));
    return err == FK_OK ? 0 : 1;
}
