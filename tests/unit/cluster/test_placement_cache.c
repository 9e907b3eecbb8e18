/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Placement: the cache of what was found elsewhere than the table says. */

#include "support/placing.h"

static placing s;

/* A client of "ab", and the first key that is b's by the table. */
static fk_grain_key begin(fk_placement_config config)
{
    placing_begin(&s, config);
    CHECK_OK(fk_placement_start_client(s.p, s.now));
    CHECK_OK(placing_view(&s, 1, "ab"));
    return placing_key_of(&s, "account", "b", 0);
}

static char found(fk_grain_key key)
{
    CHECK_OK(placing_resolve(&s, key, 1));
    CHECK(s.got.locality == FK_LOCALITY_REMOTE);
    return s.got.authority.ptr[0];
}

TEST(cache_remembers_a_redirect_and_says_nothing)
{
    fk_grain_key key = begin((fk_placement_config){ .cache_capacity = 100 });
    CHECK(found(key) == 'b');
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_RESOLVED), 1);
    fk_placement_redirected(s.p, &key, FK_STR("a"), s.now);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_REDIRECTED), 1);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_CACHE_PUT)->authority, "a");
    CHECK(found(key) == 'a');
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_RESOLVED), 1); /* a hit is no resolve */
    CHECK_U64(placing_snapshot(&s).cached, 1);
    fk_placement_redirected(s.p, &key, FK_STR(""), s.now);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_CACHE_DROPPED)->reason, "redirected");
    CHECK(found(key) == 'b');
    fk_placement_redirected(s.p, &key, FK_STR("nobody"), s.now);
    fk_placement_redirected(s.p, &key, FK_STR("b"), s.now); /* what the table says anyway */
    CHECK_U64(placing_snapshot(&s).cached, 0);
    placing_end_all(&s);
}

TEST(cache_forgets_after_a_while)
{
    fk_grain_key key =
        begin((fk_placement_config){ .cache_capacity = 100, .cache_ttl = FK_SECONDS(2) });
    fk_placement_redirected(s.p, &key, FK_STR("a"), s.now);
    CHECK_U64(fk_placement_next_deadline(s.p), s.now + FK_SECONDS(2));
    s.now += FK_SECONDS(2) - 1;
    CHECK(found(key) == 'a'); /* its use does not make it live longer */
    s.now++;
    CHECK(found(key) == 'b');
    placing_tick(&s, 0);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_CACHE_DROPPED)->reason, "ttl");
    CHECK_U64(placing_snapshot(&s).cached, 0);
    placing_end_all(&s);
}

TEST(cache_gives_up_the_least_recently_used)
{
    fk_grain_key key[4];
    key[0] = begin((fk_placement_config){ .cache_capacity = 3 });
    for (unsigned i = 0; i < 4; i++) {
        key[i] = placing_key_of(&s, "account", "b", i);
        if (i == 3) CHECK(found(key[0]) == 'a'); /* used: the second is next */
        fk_placement_redirected(s.p, &key[i], FK_STR("a"), s.now);
    }
    CHECK_U64(placing_snapshot(&s).cached, 3);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_CACHE_DROPPED)->reason, "capacity");
    CHECK(found(key[0]) == 'a');
    CHECK(found(key[1]) == 'b');
    CHECK(found(key[2]) == 'a');
    CHECK(found(key[3]) == 'a');
    placing_end_all(&s);
}

TEST(cache_goes_with_its_member)
{
    fk_grain_key key = begin((fk_placement_config){ .cache_capacity = 100 });
    fk_placement_redirected(s.p, &key, FK_STR("a"), s.now);
    CHECK_OK(placing_view(&s, 2, "b"));
    CHECK_STR(placing_last(&s, FK_PLACEMENT_CACHE_DROPPED)->reason, "member left");
    CHECK(found(key) == 'b');
    placing_end_all(&s);
}

TEST(cache_goes_when_the_table_says_the_same)
{
    fk_grain_key key = begin((fk_placement_config){ .cache_capacity = 100 });
    fk_placement_redirected(s.p, &key, FK_STR("a"), s.now);
    CHECK_OK(placing_view(&s, 2, "a"));
    CHECK_STR(placing_last(&s, FK_PLACEMENT_CACHE_DROPPED)->reason, "view");
    CHECK(found(key) == 'a');
    placing_end_all(&s);
}

TEST(cache_can_be_none)
{
    fk_grain_key key = begin((fk_placement_config){ 0 });
    fk_placement_redirected(s.p, &key, FK_STR("a"), s.now);
    CHECK_U64(placing_snapshot(&s).cached, 0);
    CHECK(found(key) == 'b');
    placing_end_all(&s);
}
