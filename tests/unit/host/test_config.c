/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What fk_system_start() refuses, and that it leaves nothing behind when it does. */

#include <string.h>

#include "support/rig.h"

static void refuses(rig *r, fk_system_config config, fk_err expected)
{
    r->sys = NULL;
    CHECK_ERR(rig_try_start(r, &config), expected);
    CHECK(r->sys == NULL); /* written on success only */
    rig_check_empty(r);
}

TEST(config_names_are_checked)
{
    static const char *const BAD[] = { "-a", "_a", "a b", "a/b", "a.b", "\xc3\xa4", "a\n", "$a" };
    static const char *const GOOD[] = { "a", "0", "A-b_c9" };
    char name[300];
    rig r;
    rig_init(&r);
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        refuses(&r, (fk_system_config){ .name = BAD[i] }, FK_E_SYSTEM);
    }
    refuses(&r, (fk_system_config){ .name = "" }, FK_E_EMPTY);
    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    refuses(&r, (fk_system_config){ .name = name }, FK_E_SYSTEM);
    name[255] = '\0';
    CHECK_OK(rig_try_start(&r, &(fk_system_config){ .name = name }));
    rig_stop(&r);
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        rig_init(&r);
        CHECK_OK(rig_try_start(&r, &(fk_system_config){ .name = GOOD[i] }));
        rig_stop(&r);
    }
}

TEST(config_sizes_and_numbers_are_checked)
{
    rig r;
    rig_init(&r);
    refuses(&r, (fk_system_config){ .size = 8 }, FK_E_INVALID);
    refuses(&r, (fk_system_config){ .size = sizeof(fk_system_config) - 1 }, FK_E_INVALID);
    refuses(&r, (fk_system_config){ .workers = 100000 }, FK_E_INVALID);
    refuses(&r, (fk_system_config){ .slice = -1 }, FK_E_INVALID);
    CHECK_OK(rig_try_start(&r, &(fk_system_config){ .size = sizeof(fk_system_config) }));
    rig_stop(&r);
}

TEST(config_null_pointers_are_refused)
{
    fk_system *sys = NULL;
    CHECK_ERR(fk_system_start(NULL, &sys), FK_E_INVALID);
    CHECK_ERR(fk_system_start(&(fk_system_config){ 0 }, NULL), FK_E_INVALID);
    CHECK_ERR(fk_system_stop(NULL), FK_E_INVALID);
    CHECK(sys == NULL);
}

TEST(config_ports_are_checked)
{
    rig r;
    rig_init(&r);
    fk_port good = r.port;
    r.port.size = 8;
    refuses(&r, (fk_system_config){ 0 }, FK_E_INVALID);
#define WITHOUT(member)                                                                            \
    do {                                                                                           \
        r.port = good;                                                                             \
        r.port.member = NULL;                                                                      \
        refuses(&r, (fk_system_config){ 0 }, FK_E_INVALID);                                        \
    } while (0)
    WITHOUT(alloc);
    WITHOUT(now);
    WITHOUT(random);
    WITHOUT(lock);
    WITHOUT(unlock);
    WITHOUT(wake);
    WITHOUT(panic);
    WITHOUT(wait);   /* without notify */
    WITHOUT(notify); /* without wait */
#undef WITHOUT
}

TEST(config_port_may_lack_what_is_optional)
{
    rig r;
    probe p;
    rig_init(&r);
    r.port.wait = NULL;
    r.port.notify = NULL;
    r.port.thread = NULL;
    r.port.admit = NULL;
    r.port.wall = NULL;
    CHECK_OK(rig_try_start(&r, &(fk_system_config){ 0 }));
    fk_ref to = probe_spawn(&r, &p);
    CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(p.count, 1);
    CHECK_ERR(fk_await_stopped(r.sys, to, 1), FK_E_UNSUPPORTED);
    rig_stop(&r);
}

TEST(config_port_without_wait_makes_block_behave_like_fail)
{
    rig r;
    probe p;
    fk_ref to;
    rig_init(&r);
    r.port.wait = NULL;
    r.port.notify = NULL;
    CHECK_OK(rig_try_start(&r, &(fk_system_config){ 0 }));
    fk_props props = probe_props(&p);
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.overflow = FK_OVERFLOW_BLOCK;
    props.capacity = 1;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &to));
    CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 1)));
    CHECK_ERR(fk_send(r.sys, to, FK_MSG(num, 2)), FK_E_FULL);
    rig_stop(&r);
}

TEST(config_defaults_start_a_system_on_the_host_port)
{
    fk_system *sys = NULL;
    fk_stats stats;
    CHECK_OK(fk_system_start(&(fk_system_config){ 0 }, &sys));
    fk_stats_get(sys, &stats);
    CHECK(stats.memory > 0);
    CHECK_U64((uint64_t)fk_host_fd(sys), (uint64_t)-1);
    CHECK_OK(fk_system_stop(sys));
}

TEST(config_host_port_is_complete)
{
    fk_port port = fk_host_port();
    uint64_t a[4] = { 0 }, b[4] = { 0 };
    CHECK_U64(port.size, sizeof(fk_port));
    port.random(port.ctx, a, sizeof(a));
    port.random(port.ctx, b, sizeof(b));
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    fk_time before = port.now(port.ctx);
    CHECK(port.now(port.ctx) >= before);
    CHECK(port.wall(port.ctx) > FK_SECONDS(1600000000));
    static const size_t SIZES[] = {
        1, 100, 65536, 131072, 1 << 20, 2 << 20, (2 << 20) + 1, 5000001
    };
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        unsigned char *block = port.alloc(port.ctx, NULL, 0, SIZES[i]);
        CHECK(block != NULL);
        CHECK_U64((uintptr_t)block % 16, 0);
        if (SIZES[i] % port.align == 0) CHECK_U64((uintptr_t)block % port.align, 0);
        block[0] = block[SIZES[i] - 1] = 1;
        port.alloc(port.ctx, block, SIZES[i], 0);
    }
}
