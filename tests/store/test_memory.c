/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kit against "memory:", and what is only so there. */

#include "store/kit.h"
#include "store/memory.h"

static const char *url = "memory:";

const char *kit_url(void)
{
    return url;
}

void kit_pass(fk_store *store, unsigned ms)
{
    fk__memory_clock_shift(store, FK_MILLIS(ms));
}

void kit_clean(void)
{
    url = "memory:";
}

TEST(memory_is_shared_by_name_and_ends_with_the_last_handle)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_U64(kit_view(k.b, 0).view.count, 1);
    url = "memory:other";
    fk_store *other = kit_open(true);
    CHECK_U64(kit_view(other, 77).view.count, 0);
    kit_close(other);
    kit_end();
    kit_begin();
    CHECK_U64(kit_view(k.b, 77).view.count, 0);
    kit_end();
}

TEST(static_members_are_those_that_are_named_and_time_does_not_matter)
{
    kit_begin();
    url = "static:x?n1,n22";
    fk_store *a = kit_open(false), *b = kit_open(true);
    CHECK_DONE(kit_join(a, "n1", 1));
    CHECK_DONE(kit_join(b, "n22", 1));
    CHECK_REFUSED(kit_join(a, "n2", 1), FK_E_FORBIDDEN);
    CHECK_REFUSED(kit_join(a, "n1,n22", 1), FK_E_FORBIDDEN);
    uint64_t epoch = kit_acquire(a, "n1", 1, 3);
    test_sleep_ms(20);
    CHECK_U64(kit_view(b, 0).view.count, 2);
    CHECK_DONE(kit_member(a, FK_STORE_RENEW, "n1", 1));
    CHECK_U64(kit_acquire(a, "n1", 1, 3), epoch);
    CHECK_U64(kit_join(b, "n1", 1).member.incarnation, 2); /* in the place of the first */
    CHECK_REFUSED(kit_member(a, FK_STORE_RENEW, "n1", 1), FK_E_FENCED);
    CHECK_U64(kit_acquire(b, "n1", 2, 3), epoch + 1);
    kit_close(a);
    kit_close(b);
    kit_end();
}

TEST(static_clusters_have_members)
{
    const char *why = NULL;
    const fk_port port = fk_host_port();
    fk_store *store;
    CHECK_ERR(fk_store_open(FK_STR("static:x"), NULL, true, &port, &store, &why), FK_E_INVALID);
    CHECK(why != NULL);
    CHECK_ERR(fk_store_open(FK_STR("static:x?"), NULL, true, &port, &store, &why), FK_E_INVALID);
}

TEST(memory_tombstones_are_purged_after_an_hour)
{
    kit_begin();
    fk_fence f = kit_fence(5, "n1", 1), lower = kit_fence(4, "n1", 1);
    for (int i = 0; i < 2; i++) {
        const char *key = i == 0 ? "old" : "used";
        CHECK_DONE(kit_load(k.a, key, f));
        CHECK_DONE(kit_put(k.a, key, f, 0, "s"));
        CHECK_DONE(kit_remove(k.a, key, f, 1));
    }
    CHECK_DONE(kit_load(k.a, "used", f));
    kit_pass(k.a, 3599000);
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_REFUSED(kit_load(k.a, "old", lower), FK_E_FENCED);
    kit_pass(k.a, 2000);
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_DONE(kit_load(k.a, "old", lower));
    CHECK_REFUSED(kit_load(k.a, "used", lower), FK_E_FENCED);
    kit_end();
}
