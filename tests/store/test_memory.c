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
