/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Systems started and stopped again and again, two at a time, leave threads and memory as before. */

#include <stdio.h>

#include "support/rig.h"

enum { CYCLES = 50, RSS_SLACK = 24 << 20 };

static fk_err pass_on(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref *next = state;
    const num *left = FK_AS(num, msg);
    if (left == NULL) { /* who comes next */
        *next = msg->sender;
        return FK_OK;
    }
    if (left->n == 0) {
        fk_stop_self(ctx);
        return FK_OK;
    }
    return fk_tell(ctx, *next, FK_MSG(num, left->n - 1));
}

/* A ring of actors passes a message round; one of them, which ends it, stops. */
static void use(rig *r)
{
    enum { RING = 20 };
    fk_ref ref[RING];
    for (int i = 0; i < RING; i++) {
        fk_props props = { .receive = pass_on, .state_size = sizeof(fk_ref) };
        if (i % 10 == 9) props.dispatcher = FK_DISPATCHER_PINNED;
        CHECK_OK(fk_spawn(r->sys, FK_STR(""), &props, &ref[i]));
    }
    for (int i = 0; i < RING; i++) {
        CHECK_OK(fk_send_from(r->sys, ref[i], ref[(i + 1) % RING], FK_TEXT("next")));
    }
    CHECK_OK(fk_send(r->sys, ref[0], FK_MSG(num, RING * 10 + 5)));
    CHECK_OK(fk_await_stopped(r->sys, ref[5], FK_SECONDS(30)));
}

TEST(cycles_of_two_systems_return_to_the_start)
{
    size_t threads = test_thread_count(), rss = 0;
    for (int i = 0; i < CYCLES; i++) {
        rig a, b;
        rig_start_with(&a, (fk_system_config){ .name = "a", .workers = 2 });
        rig_start_with(&b, (fk_system_config){ .name = "b", .workers = 1, .throughput = 1 });
        use(&a);
        use(&b);
        fk_ref ref;
        CHECK_OK(fk_spawn(a.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref));
        CHECK(!fk_is_alive(b.sys, ref));
        rig_stop(i % 2 != 0 ? &a : &b);
        use(i % 2 != 0 ? &b : &a); /* the other one does not notice */
        rig_stop(i % 2 != 0 ? &b : &a);
        if (i == 4) rss = test_rss(); /* the allocator has what it keeps */
    }
    int64_t deadline = test_clock() + FK_SECONDS(10);
    while (test_thread_count() != threads && test_clock() < deadline) test_sleep_ms(1);
    CHECK_U64(test_thread_count(), threads);
    size_t after = test_rss();
    printf("%d cycles: %zu threads, %zu kB then and %zu kB now\n", CYCLES, threads, rss / 1024,
           after / 1024);
    if (!test_is_sanitized()) CHECK(after < rss + RSS_SLACK);
}
