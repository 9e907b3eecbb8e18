/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Millions of messages from four outside threads into one actor. Nothing is lost that was not
 * reported, what one sender sends stays in order, and memory stays where it was told to stay.
 */

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "support/rig.h"

enum { SENDERS = 4, CAPACITY = 1000 };

typedef struct parcel {
    uint32_t sender;
    uint32_t unused;
    uint64_t number;
} parcel;
FK_MESSAGE(parcel);

typedef struct sink {
    uint64_t got, next[SENDERS];
    uint64_t gaps;
} sink;

static fk_err sink_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sink *s = state;
    const parcel *p = FK_AS(parcel, msg);
    (void)ctx;
    CHECK(p != NULL && p->sender < SENDERS);
    CHECK(p->number >= s->next[p->sender]); /* never back in time */
    s->gaps += p->number - s->next[p->sender];
    s->next[p->sender] = p->number + 1;
    s->got++;
    return FK_OK;
}

typedef struct sender {
    fk_system *sys;
    fk_ref to;
    uint32_t id;
    uint64_t count;
    uint64_t refused; /* sends that gave an error */
    bool insists;     /* sends again what was refused */
} sender;

static void *send_all(void *arg)
{
    sender *s = arg;
    for (uint64_t i = 0; i < s->count;) {
        fk_err err = fk_send(s->sys, s->to, FK_MSG(parcel, s->id, 0, i));
        if (err == FK_OK) {
            i++;
            continue;
        }
        CHECK(err == FK_E_LIMIT || err == FK_E_FULL);
        s->refused++;
        if (s->insists)
            sched_yield();
        else
            i++;
    }
    return NULL;
}

typedef struct flood {
    const char *name;
    uint64_t count; /* of each sender */
    fk_mailbox_kind mailbox;
    fk_overflow overflow;
    size_t memory_max;
    bool insists;
    fk_reason reason; /* of what was not delivered */
    bool is_lossless;
} flood;

static void ignore_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    (void)letter;
}

static void run(const flood *f)
{
    rig r;
    sink s;
    sender senders[SENDERS];
    pthread_t thread[SENDERS];
    fk_ref to;
    fk_stats stats;
    uint64_t refused = 0, all = f->count * SENDERS;
    memset(&s, 0, sizeof(s));
    rig_start_with(&r, (fk_system_config){ .workers = 2,
                                           .memory_max = f->memory_max,
                                           .on_dead_letter = ignore_letter });
    fk_props props = { .receive = sink_receive,
                       .state = &s,
                       .mailbox = f->mailbox,
                       .overflow = f->overflow,
                       .capacity = CAPACITY };
    CHECK_OK(fk_spawn(r.sys, FK_STR("sink"), &props, &to));
    int64_t began = test_clock();
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (sender){ r.sys, to, i, f->count, 0, f->insists };
        CHECK_U64(pthread_create(&thread[i], NULL, send_all, &senders[i]), 0);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        pthread_join(thread[i], NULL);
        refused += senders[i].refused;
    }
    fk_err poisoned; /* it needs memory, too */
    while ((poisoned = fk_poison(r.sys, to)) == FK_E_LIMIT) sched_yield();
    CHECK_OK(poisoned);
    CHECK_OK(fk_await_stopped(r.sys, to, FK_SECONDS(60)));
    double seconds = (double)(test_clock() - began) / 1e9;
    fk_stats_get(r.sys, &stats);
    uint64_t lost = stats.dead_letters[f->reason];
    uint64_t peak = atomic_load(&r.bytes_peak);
    printf("%-22s %10llu sent %10llu got %10llu %-15s %6.2f M/s, peak %llu kB\n", f->name,
           (unsigned long long)all, (unsigned long long)s.got, (unsigned long long)lost,
           fk_reason_name(f->reason), (double)all / seconds / 1e6, (unsigned long long)peak / 1024);
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        if (i != (int)f->reason) CHECK_U64(stats.dead_letters[i], 0);
    }
    if (f->is_lossless) {
        CHECK_U64(s.got, all);
        CHECK_U64(s.gaps, 0);
        CHECK_U64(lost, refused); /* each refusal was reported */
    } else {
        CHECK_U64(s.got + lost, all);
        if (f->overflow == FK_OVERFLOW_FAIL)
            CHECK_U64(lost, refused);
        else
            CHECK_U64(refused, 0);
    }
    CHECK(peak <= (f->memory_max != 0 ? f->memory_max : 16u << 20));
    rig_stop(&r);
}

TEST(flood_of_an_unbounded_mailbox_is_held_by_the_memory_limit)
{
    run(&(flood){ .name = "unbounded, 32 MB",
                  .count = test_scaled(10000000 / SENDERS),
                  .memory_max = 32 << 20,
                  .insists = true,
                  .reason = FK_REASON_NO_MEMORY,
                  .is_lossless = true });
}

TEST(flood_of_a_bounded_mailbox_that_blocks_loses_nothing)
{
    run(&(flood){ .name = "bounded, block",
                  .count = test_scaled(2000000 / SENDERS),
                  .mailbox = FK_MAILBOX_BOUNDED,
                  .overflow = FK_OVERFLOW_BLOCK,
                  .reason = FK_REASON_FULL,
                  .is_lossless = true });
}

TEST(flood_of_a_bounded_mailbox_that_fails_tells_each_sender)
{
    run(&(flood){ .name = "bounded, fail",
                  .count = test_scaled(4000000 / SENDERS),
                  .mailbox = FK_MAILBOX_BOUNDED,
                  .overflow = FK_OVERFLOW_FAIL,
                  .reason = FK_REASON_FULL });
}

TEST(flood_of_a_bounded_mailbox_that_drops_the_newest_adds_up)
{
    run(&(flood){ .name = "bounded, drop newest",
                  .count = test_scaled(4000000 / SENDERS),
                  .mailbox = FK_MAILBOX_BOUNDED,
                  .overflow = FK_OVERFLOW_DROP_NEWEST,
                  .reason = FK_REASON_DROPPED_NEWEST });
}

TEST(flood_of_a_bounded_mailbox_that_drops_the_oldest_adds_up)
{
    run(&(flood){ .name = "bounded, drop oldest",
                  .count = test_scaled(4000000 / SENDERS),
                  .mailbox = FK_MAILBOX_BOUNDED,
                  .overflow = FK_OVERFLOW_DROP_OLDEST,
                  .reason = FK_REASON_DROPPED_OLDEST });
}
