/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 10 of the first hour: floods one actor with ten million messages from four threads, under
 * each mailbox policy. The first argument is another number of messages. */

#include <fraktor/fraktor.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SENDERS = 4, CAPACITY = 10000 };

typedef struct item {
    uint64_t sender, number;
} item;
FK_MESSAGE(item);

typedef struct sink {
    uint64_t got, next[SENDERS];
    bool in_order;
} sink;

static fk_err take(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sink *s = state;
    const item *i = FK_AS(item, msg);
    (void)ctx;
    if (i->number < s->next[i->sender]) s->in_order = false;
    s->next[i->sender] = i->number + 1;
    s->got++;
    return FK_OK;
}

typedef struct sender {
    fk_system *sys;
    fk_ref to;
    uint64_t id, count;
} sender;

static void *send_all(void *arg)
{
    sender *s = arg;
    for (uint64_t i = 0; i < s->count; i++) fk_send(s->sys, s->to, FK_MSG(item, s->id, i));
    return NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool flood(const char *name, fk_overflow overflow, uint64_t count)
{
    static const fk_reason REASONS[] = { FK_REASON_FULL, FK_REASON_DROPPED_NEWEST,
                                         FK_REASON_DROPPED_OLDEST, FK_REASON_FULL };
    fk_system *sys;
    fk_ref to;
    fk_stats stats;
    sink s = { .in_order = true };
    sender senders[SENDERS];
    pthread_t thread[SENDERS];
    fk_props props = { .receive = take,
                       .state = &s,
                       .mailbox = FK_MAILBOX_BOUNDED,
                       .overflow = overflow,
                       .capacity = CAPACITY };
    if (fk_system_start(&(fk_system_config){ .name = "flood" }, &sys) != FK_OK) return false;
    if (fk_spawn(sys, FK_STR("sink"), &props, &to) != FK_OK) return false;
    double began = now();
    for (uint64_t i = 0; i < SENDERS; i++) {
        senders[i] = (sender){ sys, to, i, count / SENDERS };
        if (pthread_create(&thread[i], NULL, send_all, &senders[i]) != 0) return false;
    }
    for (int i = 0; i < SENDERS; i++) pthread_join(thread[i], NULL);
    fk_poison(sys, to);
    if (fk_await_stopped(sys, to, FK_SECONDS(100)) != FK_OK) return false;
    double seconds = now() - began;
    fk_stats_get(sys, &stats);
    uint64_t lost = stats.dead_letters[REASONS[overflow]], sent = count / SENDERS * SENDERS;
    printf("%-12s %9llu sent %9llu handled %9llu %-15s %5.1f M/s %6llu kB\n", name,
           (unsigned long long)sent, (unsigned long long)s.got, (unsigned long long)lost,
           fk_reason_name(REASONS[overflow]), (double)sent / seconds / 1e6,
           (unsigned long long)stats.memory / 1024);
    bool ok = s.in_order && s.got + lost == sent && stats.memory < 64u << 20;
    if (overflow == FK_OVERFLOW_BLOCK) ok = ok && lost == 0;
    return fk_system_stop(sys) == FK_OK && ok;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    bool ok = flood("block", FK_OVERFLOW_BLOCK, count);
    ok = flood("drop newest", FK_OVERFLOW_DROP_NEWEST, count) && ok;
    ok = flood("drop oldest", FK_OVERFLOW_DROP_OLDEST, count) && ok;
    ok = flood("fail", FK_OVERFLOW_FAIL, count) && ok;
    return ok ? 0 : 1;
}
