/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Everybody asks everybody, with timeouts that are sometimes too short: actors, who stop and are made
 * anew with questions open, and outside threads; some repliers answer twice, some never, some pass the
 * question on, some want to know the path. Every question that was accepted is answered once, unless
 * its asker stopped; nothing is left.
 */

#include "support/rig.h"

#include <stdio.h>
#include <string.h>

enum { ACTORS = 12, THREADS = 3, OUTSTANDING = 8 };

typedef struct crowd {
    rig r;
    _Atomic uint64_t refs[ACTORS]; /* slot and generation; 0: being made */
    _Atomic uint64_t asked, answered, given_up;
    uint32_t system;
    _Atomic bool is_over;
} crowd;

static fk_ref citizen(crowd *c, uint64_t packed)
{
    return (fk_ref){ (uint32_t)packed, (uint32_t)(packed >> 32), c->system };
}

typedef struct member {
    crowd *c;
    test_random random;
    uint64_t open, life;
} member;

static fk_ref somebody(member *self)
{
    crowd *c = self->c;
    return citizen(c, atomic_load(&c->refs[test_random_below(&self->random, ACTORS)]));
}

static fk_time some_time(test_random *random)
{
    static const fk_time TIMES[] = { 0, 1, FK_MICROS(50), FK_MILLIS(2), FK_SECONDS(60) };
    return TIMES[test_random_below(random, 5)];
}

static void member_asks(fk_ctx *ctx, member *self)
{
    crowd *c = self->c;
    while (self->open < OUTSTANDING && !atomic_load(&c->is_over)) {
        fk_time timeout = some_time(&self->random);
        if (timeout == FK_SECONDS(60)) timeout = FK_MILLIS(20); /* some are never answered */
        fk_err err = fk_ask(ctx, somebody(self), FK_MSG(num, self->open), self->open, timeout);
        CHECK_OK(err);
        self->open++;
        atomic_fetch_add(&c->asked, 1);
    }
}

static fk_err member_replies(fk_ctx *ctx, member *self, const fk_msg *msg)
{
    char path[64];
    uint64_t n = FK_AS(num, msg)->n;
    switch (test_random_below(&self->random, 8)) {
    case 0: return FK_OK;                                                               /* never */
    case 1: fk_reply(ctx, FK_MSG(num, n)); return fk_reply(ctx, FK_MSG(num, n + 1000)); /* twice */
    case 2: return fk_forward(ctx, somebody(self));
    case 3: fk_path_of(fk_system_of(ctx), msg->sender, path, sizeof(path)); break;
    case 4: return fk_ask_pipe(ctx, somebody(self), FK_MSG(num, n), msg->sender, n, FK_MILLIS(5));
    case 5:
        if (test_random_below(&self->random, 20) == 0) fk_stop(fk_system_of(ctx), msg->sender);
        break;
    default: break;
    }
    return fk_reply(ctx, FK_MSG(num, n));
}

static fk_err member_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    member *self = state;
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer != NULL) {
        self->open--;
        atomic_fetch_add(&self->c->answered, 1);
        if (answer->err == FK_OK) CHECK(FK_AS(num, &answer->reply) != NULL);
    } else if (msg->type == &fk_type_num) {
        fk_err err = member_replies(ctx, self, msg);
        if (err != FK_OK) return err;
    }
    if (++self->life > 500 && !atomic_load(&self->c->is_over)) {
        fk_stop_self(ctx); /* with what is open */
        return FK_OK;
    }
    member_asks(ctx, self);
    return FK_OK;
}

static void member_stop(fk_ctx *ctx, void *state)
{
    member *self = state;
    (void)ctx;
    atomic_fetch_add(&self->c->given_up, self->open);
}

static void member_spawn(crowd *c, uint32_t index, uint64_t seed)
{
    fk_ref ref;
    member init = { .c = c, .random = { seed } };
    fk_props props = {
        .receive = member_receive, .stop = member_stop, .state_size = sizeof(init), .init = &init
    };
    CHECK_OK(fk_spawn(c->r.sys, FK_STR(""), &props, &ref));
    atomic_store(&c->refs[index], (uint64_t)ref.generation << 32 | ref.slot);
    CHECK_OK(fk_send(c->r.sys, ref, FK_TEXT("go")));
}

typedef struct outsider {
    crowd *c;
    test_random random;
} outsider;

static void *outsider_main(void *arg)
{
    outsider *self = arg;
    crowd *c = self->c;
    uint64_t rounds = test_scaled(3000);
    for (uint64_t i = 0; i < rounds; i++) {
        num n = { 0 };
        uint32_t index = (uint32_t)test_random_below(&self->random, ACTORS);
        uint64_t packed = atomic_load(&c->refs[index]);
        fk_ref to = citizen(c, packed);
        fk_time timeout = some_time(&self->random);
        if (timeout == FK_SECONDS(60)) timeout = FK_MILLIS(5);
        fk_err err = fk_ask_wait(c->r.sys, to, FK_MSG(num, 7), FK_INTO(num, &n), timeout);
        CHECK(err == FK_OK || err == FK_E_TIMEOUT || err == FK_E_DEAD || err == FK_E_KILLED);
        if (err == FK_OK) CHECK_U64(n.n, 7);
        /* Not by the error: that may be what became of a question that this one was passed on to. */
        bool is_gone = packed != 0 && !fk_is_alive(c->r.sys, to);
        if (is_gone && atomic_compare_exchange_strong(&c->refs[index], &packed, 0)) {
            member_spawn(c, index, test_random_next(&self->random));
        }
    }
    return NULL;
}

static void all_stop(crowd *c)
{
    atomic_store(&c->is_over, true);
    for (uint32_t i = 0; i < ACTORS; i++) {
        fk_ref ref = citizen(c, atomic_load(&c->refs[i]));
        fk_stop(c->r.sys, ref);
        CHECK_OK(fk_await_stopped(c->r.sys, ref, FK_SECONDS(60)));
    }
}

TEST(asking_everybody_everybody)
{
    static crowd c;
    pthread_t thread[THREADS];
    outsider out[THREADS];
    memset(&c, 0, sizeof(c));
    rig_start_with(&c.r, (fk_system_config){ .name = "test", .workers = 3 });
    c.system = doer_spawn(&c.r).system;
    for (uint32_t i = 0; i < ACTORS; i++) member_spawn(&c, i, 77 + i);
    for (uint32_t i = 0; i < THREADS; i++) {
        out[i] = (outsider){ &c, { 1000 + i } };
        pthread_create(&thread[i], NULL, outsider_main, &out[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    all_stop(&c);
    printf("asked %llu answered %llu given up %llu late %zu\n",
           (unsigned long long)atomic_load(&c.asked), (unsigned long long)atomic_load(&c.answered),
           (unsigned long long)atomic_load(&c.given_up), c.r.letters.of[FK_REASON_LATE_REPLY]);
    CHECK_U64(atomic_load(&c.answered) + atomic_load(&c.given_up), atomic_load(&c.asked));
    CHECK_U64(c.r.failures.count, 0);
    rig_stop(&c.r);
}
