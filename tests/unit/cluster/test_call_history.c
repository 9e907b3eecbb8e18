/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Desks in random worlds. Whatever placement, the network and the clock do: each call is taken once, a
 * number is of one call, low never passes one that is not settled, and no call outlives its deadline.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/call.h"
#include "support/rig.h"

enum { ORIGIN = 9, CALLS_MAX = 2000, STEPS = 600, DESK_MAX = 40 };

/* By id, and outlives the call. */
typedef struct fate {
    fk_call *call; /* NULL: taken */
    fk_request request;
    uint64_t ticket; /* that placement works on; 0: none */
    fk_time deadline;
    bool is_ours;
} fate;

typedef struct item {
    fk_call call;
    uint32_t id;
} item;

static rig r;
static fk_mem mem;
static fk_desk *desk;
static test_random rng;
static fk_time now;
static fate fates[CALLS_MAX];
static uint32_t count;
static uint32_t depth;
static uint64_t ended_ok, ended_late, sent_again, delivered;

static uint64_t below(uint64_t n)
{
    return test_random_below(&rng, n);
}

static fate *fate_of(const fk_call *call)
{
    fate *f = &fates[((const item *)call)->id];
    CHECK(f->call == call);
    return f;
}

static void take(fk_call *call)
{
    fate_of(call)->call = NULL;
    memset(call, 0xdd, sizeof(item));
    free(call);
}

static void submit_some(void)
{
    if (count == CALLS_MAX) return;
    item *it = calloc(1, sizeof(*it));
    it->id = count++;
    fate *f = &fates[it->id];
    *f = (fate){ .call = &it->call, .is_ours = below(4) != 0 };
    f->deadline = below(3) == 0 ? FK_NEVER : now + (fk_time)below(400);
    it->call.is_ours = f->is_ours;
    it->call.deadline = f->deadline;
    it->call.hops = (uint8_t)below(FK_CALL_HOPS_MAX + 1);
    if (!f->is_ours) it->call.request = (fk_request){ 1 + below(3), below(20) };
    fk__desk_submit(desk, &it->call, now);
}

/* Users of the desk use it from inside, but not without end. */
static void reenter(void)
{
    if (depth >= 3 || below(8) != 0) return;
    depth++;
    submit_some();
    depth--;
}

static const fk_str NODES[] = { { "b", 1 }, { "c", 1 }, { "d", 1 } };

static void somewhere(fk_resolution *out)
{
    bool is_local = below(3) == 0;
    *out = (fk_resolution){
        .locality = is_local ? FK_LOCALITY_LOCAL : FK_LOCALITY_REMOTE,
        .authority = NODES[below(3)],
        .incarnation = 1,
    };
}

static fk_err some_error(void)
{
    static const fk_err errs[] = {
        FK_E_NOT_READY, FK_E_LOCK_DENIED, FK_E_UNKNOWN_KIND, FK_E_STORAGE, FK_E_NOMEM,
    };
    return errs[below(5)];
}

static fk_err on_resolve(void *ctx, fk_call *call, fk_time at, fk_resolution *out)
{
    (void)ctx;
    fate *f = fate_of(call);
    CHECK(at < f->deadline);
    CHECK(call->ticket != 0 && call->ticket != f->ticket);
    f->ticket = 0;
    reenter();
    switch (below(4)) {
    case 0: f->ticket = call->ticket; return FK_E_PENDING;
    case 1: return some_error();
    default: somewhere(out); return FK_OK;
    }
}

/* What goes with a call that has a number of ours. */
static void check_number(fate *f, const fk_call *call)
{
    CHECK_U64(call->request.origin, ORIGIN);
    if (f->request.origin != 0) {
        CHECK(fk__request_equal(f->request, call->request));
        sent_again++;
    }
    f->request = call->request;
    CHECK_U64(call->low, fk__desk_low(desk));
    for (uint32_t i = 0; i < count; i++) {
        if (fates[i].call == NULL || fates[i].request.origin == 0) continue;
        CHECK(call->low <= fates[i].request.seq);
        CHECK(&fates[i] == f || fates[i].request.seq != call->request.seq);
    }
}

static fk_err on_send(void *ctx, fk_call *call, const fk_resolution *to, fk_str *authority)
{
    (void)ctx;
    fate *f = fate_of(call);
    CHECK(now < f->deadline);
    if (f->is_ours) check_number(f, call);
    CHECK(f->is_ours || call->hops <= FK_CALL_HOPS_MAX);
    *authority = to->authority;
    if (below(5) == 0) return below(2) == 0 ? FK_E_FULL : some_error();
    if (f->is_ours && below(10) == 0) {
        (void)fk__desk_answered(desk, f->request, below(2) == 0 ? FK_OK : FK_E_NOT_READY, NULL,
                                now);
    } else if (!f->is_ours) {
        take(call);
    }
    reenter();
    return FK_OK;
}

static fk_err on_deliver(void *ctx, fk_call *call, const fk_resolution *at)
{
    (void)ctx;
    CHECK_U64(at->locality, FK_LOCALITY_LOCAL);
    fate *f = fate_of(call);
    bool is_kept = f->request.origin != 0;
    if (is_kept) check_number(f, call);
    reenter();
    if (below(5) == 0) return some_error();
    if (!is_kept) take(call);
    delivered++;
    reenter();
    return FK_OK;
}

static void on_finish(void *ctx, fk_call *call, fk_err err, void *answer)
{
    (void)ctx;
    CHECK(answer == NULL || answer == &rng);
    fate *f = fate_of(call);
    if (err == FK_OK) ended_ok++;
    if (err == FK_E_TIMEOUT) {
        CHECK(now >= f->deadline);
        ended_late++;
    }
    take(call);
    reenter();
}

static bool is_there(void *ctx, fk_str id, uint64_t incarnation)
{
    (void)incarnation;
    return id.ptr != NODES[*(uint64_t *)ctx].ptr;
}

static void step(void)
{
    fate *f = count != 0 ? &fates[below(count)] : NULL;
    switch (below(8)) {
    case 0:
    case 1: submit_some(); break;
    case 2: /* placement settles something, maybe what nobody waits for any more */
        if (f != NULL && f->ticket != 0) {
            fk_resolution to;
            somewhere(&to);
            if (below(3) == 0) to.err = some_error();
            uint64_t ticket = f->ticket;
            f->ticket = 0;
            fk__desk_settled(desk, ticket, &to, now);
        }
        break;
    case 3:
        if (f != NULL && f->request.origin != 0) {
            bool is_in = f->call != NULL;
            fk_err err = below(2) == 0 ? FK_OK : some_error();
            void *answer = err == FK_OK ? &rng : NULL;
            CHECK(fk__desk_answered(desk, f->request, err, answer, now) == is_in);
        }
        break;
    case 4: {
        uint64_t gone = below(3);
        fk__desk_members_changed(desk, is_there, &gone, now);
        break;
    }
    case 5:
        if (f != NULL && below(4) == 0) {
            fk__desk_cancel(desk, f->request, now);
            CHECK(f->request.origin == 0 || f->call == NULL);
        }
        break;
    default:
        now += (fk_time)below(60);
        fk__desk_tick(desk, now);
        CHECK(fk__desk_next(desk) > now);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(fates[i].call == NULL || now < fates[i].deadline);
        }
    }
}

static void check_world(void)
{
    fk__desk_check(desk);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) left += fates[i].call != NULL;
    CHECK_U64(fk__desk_count(desk), left);
    CHECK(left <= DESK_MAX);
}

static void run(uint64_t seed)
{
    rng.state = seed;
    now = 0;
    count = depth = 0;
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    fk_desk_config config = {
        .ops = { NULL, on_resolve, on_send, on_deliver, on_finish },
        .origin = ORIGIN,
        .resend_after = 50,
        .resend_max = 200,
        .retry_min = 5,
        .retry_max = 40,
        .calls_max = DESK_MAX,
    };
    CHECK_OK(fk__desk_create(&mem, &config, &desk));
    for (int i = 0; i < STEPS; i++) {
        if (below(20) == 0) rig_fault(&r, 1 + below(3), false);
        step();
        check_world();
    }
    rig_fault(&r, 0, false);
    fk__desk_destroy(desk);
    for (uint32_t i = 0; i < count; i++) CHECK(fates[i].call == NULL);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

TEST(call_each_comes_to_one_end)
{
    uint64_t seed = test_env("FK_SEED", 1);
    printf("seeds from %llu\n", (unsigned long long)seed);
    ended_ok = ended_late = sent_again = delivered = 0;
    for (uint64_t i = 0; i < test_scaled(300); i++) run(seed + i);
    /* All of that has happened, or the worlds are too quiet. */
    CHECK(ended_ok > 0);
    CHECK(ended_late > 0);
    CHECK(sent_again > 0);
    CHECK(delivered > 0);
}
