/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A bound of the time for whoever wants one before each turn: the clock is read only when it has to be. */

#include "core/system.h"
#include "support/rig.h"

static struct {
    fk_time now;
    uint64_t cycles;
    unsigned reads; /* of the clock */
} world;

static fk_time world_now(void *ctx)
{
    (void)ctx;
    world.reads++;
    return world.now;
}

static uint64_t world_cycles(void *ctx)
{
    (void)ctx;
    return world.cycles;
}

/* A system whose worker has begun at that count. */
static fk_local *begin(rig *r, uint64_t cycles, bool has_cycles)
{
    rig_init(r);
    r->port.now = world_now;
    r->port.cycles = has_cycles ? world_cycles : NULL;
    world.now = FK_SECONDS(1000);
    world.cycles = cycles;
    CHECK_OK(rig_try_start(r, &(fk_system_config){ .name = "test" }));
    world.reads = 0;
    return &r->sys->dispatch.worker[0]->local;
}

static void pass(uint64_t cycles, fk_time time)
{
    world.cycles += cycles;
    world.now += time;
}

TEST(the_clock_is_read_when_the_counter_has_moved_on)
{
    rig r;
    fk_local *local = begin(&r, 5000000, true);
    CHECK(fk__now_bound(local) == world.now + FK_CYCLES_TIME);
    CHECK_U64(world.reads, 1);
    fk_time first = world.now;
    pass(FK_CYCLES_NEAR - 1, FK_CYCLES_TIME - 1);
    CHECK(fk__now_bound(local) == first + FK_CYCLES_TIME);
    CHECK(fk__now_bound(local) >= world.now);
    CHECK_U64(world.reads, 1);
    pass(1, 1);
    CHECK(fk__now_bound(local) == world.now + FK_CYCLES_TIME);
    CHECK_U64(world.reads, 2);
    pass(UINT64_C(1) << 40, FK_SECONDS(300)); /* it was stopped */
    CHECK(fk__now_bound(local) == world.now + FK_CYCLES_TIME);
    rig_stop(&r);
}

TEST(a_counter_that_goes_back_is_not_believed)
{
    rig r;
    fk_local *local = begin(&r, 5000000, true);
    (void)fk__now_bound(local);
    world.cycles = 4999999; /* as after a sleep that has reset it */
    world.now += FK_SECONDS(3600);
    CHECK(fk__now_bound(local) == world.now + FK_CYCLES_TIME);
    CHECK_U64(world.reads, 2);
    rig_stop(&r);
}

TEST(the_first_reading_is_of_the_clock_wherever_the_counter_begins)
{
    rig r;
    static const uint64_t AT[] = { 0, 1, FK_CYCLES_NEAR, UINT64_MAX };
    for (size_t i = 0; i < sizeof(AT) / sizeof(AT[0]); i++) {
        fk_local *local = begin(&r, AT[i], true);
        CHECK(fk__now_bound(local) == world.now + FK_CYCLES_TIME);
        rig_stop(&r);
    }
}

TEST(without_a_counter_the_clock_is_read_each_time)
{
    rig r;
    fk_local *local = begin(&r, 0, false);
    CHECK(fk__now_bound(local) == world.now);
    pass(0, 1);
    CHECK(fk__now_bound(local) == world.now);
    CHECK_U64(world.reads, 2);
    rig_stop(&r);
}

/* What the port promises of it. */
TEST(the_hosts_counter_keeps_to_its_word)
{
    fk_port port = fk_host_port();
    if (port.cycles == NULL) return;
    unsigned near = 0;
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t before = port.cycles(port.ctx);
        fk_time from = port.now(port.ctx);
        for (volatile unsigned k = 0; k < i % 3000; k++) {
        }
        fk_time to = port.now(port.ctx);
        if (port.cycles(port.ctx) - before >= FK_CYCLES_NEAR) continue;
        CHECK(to - from < FK_CYCLES_TIME);
        near++;
    }
    CHECK(near > 1000);
}
