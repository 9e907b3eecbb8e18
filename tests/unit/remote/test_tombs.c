/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Uids that stay out although nobody knows their system any more. */

#include "remote/tombs.h"
#include "support/rig.h"

static rig r;
static fk_mem mem;
static fk_tombs tombs;

static void begin(uint32_t max)
{
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    fk__tombs_init(&tombs, &mem, max);
}

static void end(void)
{
    fk__tombs_fini(&tombs);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

TEST(tombs_are_of_a_uid_at_an_address)
{
    begin(10);
    CHECK(!fk__tombs_has(&tombs, 1, 7));
    fk__tombs_add(&tombs, 1, 7);
    CHECK(fk__tombs_has(&tombs, 1, 7));
    CHECK(!fk__tombs_has(&tombs, 2, 7)); /* it may be another's there */
    CHECK(!fk__tombs_has(&tombs, 1, 8));
    CHECK(fk__tombs_remove(&tombs, 1, 7));
    CHECK(!fk__tombs_remove(&tombs, 1, 7));
    CHECK(!fk__tombs_has(&tombs, 1, 7));
    end();
}

TEST(tombs_beyond_the_bound_the_oldest_goes_and_is_counted)
{
    enum { MAX = 1000 };
    begin(MAX);
    for (uint64_t uid = 1; uid <= MAX; uid++) fk__tombs_add(&tombs, 1, uid);
    for (uint64_t uid = 1; uid <= MAX; uid++) CHECK(fk__tombs_has(&tombs, 1, uid));
    CHECK_U64(tombs.forgotten, 0);
    fk__tombs_add(&tombs, 1, 1); /* new again: the second is the oldest now */
    CHECK(fk__tombs_remove(&tombs, 1, 3));
    for (uint64_t uid = MAX + 1; uid <= MAX + 3; uid++) fk__tombs_add(&tombs, 1, uid);
    CHECK(fk__tombs_has(&tombs, 1, 1));
    CHECK(!fk__tombs_has(&tombs, 1, 2));
    CHECK(!fk__tombs_has(&tombs, 1, 3));
    CHECK(tombs.count <= MAX);
    for (uint64_t uid = 2 * MAX; uid <= 20 * MAX; uid++) fk__tombs_add(&tombs, uid % 3, uid);
    for (uint64_t uid = 19 * MAX + 1; uid <= 20 * MAX; uid++) {
        CHECK(fk__tombs_has(&tombs, uid % 3, uid));
    }
    CHECK(!fk__tombs_has(&tombs, 19 * MAX % 3, 19 * MAX));
    CHECK(!fk__tombs_has(&tombs, 1, 1));
    CHECK(tombs.forgotten > 18 * MAX);
    end();
}

TEST(tombs_without_memory_the_oldest_goes)
{
    begin(1000);
    rig_fault(&r, 1, true);
    fk__tombs_add(&tombs, 1, 1);
    CHECK(!fk__tombs_has(&tombs, 1, 1));
    CHECK_U64(tombs.forgotten, 1);
    rig_fault(&r, 0, false);
    for (uint64_t uid = 1; uid <= 64; uid++) fk__tombs_add(&tombs, 1, uid);
    rig_fault(&r, 1, true);
    fk__tombs_add(&tombs, 1, 65);
    CHECK(!fk__tombs_has(&tombs, 1, 1));
    CHECK(fk__tombs_has(&tombs, 1, 2));
    CHECK(fk__tombs_has(&tombs, 1, 65));
    CHECK_U64(tombs.forgotten, 2);
    rig_fault(&r, 0, false);
    end();
}
