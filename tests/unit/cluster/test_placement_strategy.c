/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Placement: each line of the test strategy of its specification. */

#include <string.h>

#include "support/placing.h"

static placing s, t;

TEST(strategy_not_started_is_refused)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 1), FK_E_NOT_READY);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_REFUSED), 1);
    CHECK_U64(s.commands, 0);
    placing_end_all(&s);
}

TEST(strategy_lock_denied_by_a_member_that_is_there)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "ab"));
    fk_grain_key key = placing_key_of(&s, "account", "a", 0);
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    CHECK_ERR(placing_resolve(&s, key, 2), FK_E_PENDING);
    while (placing_next(&s, FK_COMMAND_TRY_ACQUIRE) != NULL) CHECK_OK(placing_refuse(&s, "b", 1));
    for (uint64_t ticket = 1; ticket <= 2; ticket++) {
        CHECK_OK(placing_end_of(&s, ticket)->r.err);
        CHECK(placing_end_of(&s, ticket)->r.locality == FK_LOCALITY_REMOTE);
        CHECK_STR(placing_end_of(&s, ticket)->authority, "b");
    }
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_LOCK_DENIED), 1);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_LOCK_DENIED)->authority, "b");
    /* The hint answers until the slot is tried again. */
    CHECK_OK(placing_resolve(&s, key, 3));
    CHECK(s.got.authority.ptr[0] == 'b');
    size_t tried = placing_said(&s, FK_COMMAND_TRY_ACQUIRE);
    placing_tick(&s, FK_SECONDS(3) / 16);
    CHECK(placing_said(&s, FK_COMMAND_TRY_ACQUIRE) > tried);
    CHECK_ERR(placing_resolve(&s, key, 4), FK_E_PENDING);
    placing_grant_all(&s);
    CHECK_OK(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_STORE_ACTIVATION));
    CHECK(placing_end_of(&s, 4)->r.locality == FK_LOCALITY_LOCAL);
    placing_end_all(&s);
}

TEST(strategy_lock_denied_by_somebody_unknown)
{
    placing_begin(&s, (fk_placement_config){ .command_timeout = FK_MILLIS(500) });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "a"));
    fk_grain_key key = placing_key("account", "1");
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    fk_time until = s.now + FK_MILLIS(500);
    while (s.now < until) {
        CHECK_U64(s.ends, 0);
        while (placing_next(&s, FK_COMMAND_TRY_ACQUIRE) != NULL) {
            CHECK_OK(placing_refuse(&s, "ghost", 9));
        }
        fk_time next = fk_placement_next_deadline(s.p);
        CHECK(next > s.now);
        placing_tick(&s, next - s.now);
    }
    CHECK_ERR(placing_end_of(&s, 1)->r.err, FK_E_LOCK_DENIED);
    CHECK(placing_end_of(&s, 1)->r.reason[0] != '\0');
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_LOCK_DENIED), 1);
    CHECK(placing_last(&s, FK_PLACEMENT_LOCK_DENIED)->reason[0] != '\0');
    CHECK(placing_said(&s, FK_COMMAND_TRY_ACQUIRE) > 4); /* it was tried again meanwhile */
    placing_end_all(&s);
}

TEST(strategy_placement_is_deterministic)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_begin(&t, (fk_placement_config){ 0 });
    CHECK_OK(fk_placement_start_client(s.p, s.now));
    CHECK_OK(fk_placement_start_client(t.p, t.now));
    CHECK_OK(placing_view(&s, 1, "abcde"));
    CHECK_OK(placing_view(&t, 1, "c"));
    CHECK_OK(placing_view(&t, 2, "dbeac")); /* another way, another order */
    unsigned different = 0;
    for (unsigned i = 0; i < 200; i++) {
        char text[2] = { (char)('0' + i % 50), (char)('a' + i / 50) };
        fk_grain_key key;
        CHECK_OK(fk_grain_key_of(FK_STR("account"), (fk_str){ text, 2 }, &key));
        CHECK_OK(placing_resolve(&s, key, 1));
        CHECK_OK(placing_resolve(&t, key, 1));
        CHECK(s.got.authority.ptr[0] == t.got.authority.ptr[0]);
        different += s.got.authority.ptr[0] != 'a';
    }
    CHECK(different > 50);
    placing_end_all(&s);
    placing_end_all(&t);
}

TEST(strategy_remote_means_no_command)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "ab"));
    placing_grant_all(&s);
    size_t commands = s.commands;
    for (unsigned i = 0; i < 5; i++) {
        CHECK_OK(placing_resolve(&s, placing_key_of(&s, "account", "b", i), i));
        CHECK(s.got.locality == FK_LOCALITY_REMOTE);
    }
    CHECK_U64(s.commands, commands);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_RESOLVED), 5);
    placing_end_all(&s);
}

TEST(strategy_client_holds_nothing)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    CHECK_OK(fk_placement_add_kind(s.p, &PLACING_ROOM, s.now));
    CHECK_OK(fk_placement_start_client(s.p, s.now));
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 1), FK_E_NOT_READY);
    CHECK_OK(placing_view(&s, 1, "ab"));
    CHECK_OK(placing_resolve(&s, placing_key("room", "1"), 1));
    CHECK(s.got.locality == FK_LOCALITY_REMOTE);
    CHECK_OK(placing_view(&s, 2, "A"));
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 1), FK_E_NOT_READY);
    CHECK_OK(placing_view(&s, 3, ""));
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 1), FK_E_UNKNOWN_KIND);
    placing_tick(&s, FK_SECONDS(100));
    CHECK_U64(s.commands, 0);
    placing_end_all(&s);
}

TEST(strategy_events_keep_their_order)
{
    static const fk_placement_event_kind ORDER[] = {
        FK_PLACEMENT_STATE,    FK_PLACEMENT_TOPOLOGY,      FK_PLACEMENT_STATE,
        FK_PLACEMENT_RESOLVED, FK_PLACEMENT_SLOT_ACQUIRED, FK_PLACEMENT_ACTIVATED,
    };
    placing_begin(&s, (fk_placement_config){ .slots = 1 });
    CHECK_OK(fk_placement_add_kind(s.p, &PLACING_ROOM, s.now));
    CHECK_OK(fk_placement_start_member(s.p, FK_STR("a"), 1, s.now, s.now));
    CHECK_OK(placing_view(&s, 1, "a"));
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 1), FK_E_PENDING);
    CHECK_OK(placing_ok(&s, FK_COMMAND_TRY_ACQUIRE));
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_U64(s.events, 6);
    for (size_t i = 0; i < s.events; i++) CHECK(s.event[i].e.kind == ORDER[i]);
    placing_end_all(&s);
}

TEST(strategy_request_ids_correlate)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    size_t before = s.commands;
    fk_grain_key one = placing_key("account", "1"), two = placing_key("account", "2");
    CHECK_ERR(placing_resolve(&s, one, 1), FK_E_PENDING);
    CHECK_ERR(placing_resolve(&s, two, 2), FK_E_PENDING);
    uint64_t id_one = s.command[before].c.request_id, id_two = s.command[before + 1].c.request_id;
    CHECK(id_one != id_two);
    fk_placement_result wrong = { .kind = FK_COMMAND_ENSURE_ACTIVATION, .request_id = id_one };
    fk_placement_result none = { .kind = FK_COMMAND_LOAD_ACTIVATION, .request_id = 99999 };
    CHECK_ERR(fk_placement_handle_result(s.p, &wrong, s.now),
              FK_E_NOT_FOUND); /* of a later phase */
    CHECK_ERR(fk_placement_handle_result(s.p, &none, s.now), FK_E_NOT_FOUND);
    fk_placement_result loaded = { .kind = FK_COMMAND_LOAD_ACTIVATION, .request_id = id_two };
    CHECK_OK(fk_placement_handle_result(s.p, &loaded, s.now));
    CHECK_ERR(fk_placement_handle_result(s.p, &loaded, s.now), FK_E_NOT_FOUND); /* twice */
    const placing_command *ensure = placing_next(&s, FK_COMMAND_ENSURE_ACTIVATION);
    CHECK_U64(ensure->c.request_id, id_two);
    CHECK_STR(ensure->key, "2");
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_U64(placing_next(&s, FK_COMMAND_STORE_ACTIVATION)->c.request_id, id_two);
    CHECK_U64(s.commands - before, 4);
    placing_end_all(&s);
}

TEST(strategy_results_make_the_round)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1");
    for (uint64_t ticket = 1; ticket <= 20; ticket++) {
        CHECK_ERR(placing_resolve(&s, key, ticket), FK_E_PENDING);
    }
    CHECK_U64(placing_snapshot(&s).waiters, 20);
    CHECK_U64(placing_snapshot(&s).flights, 1);
    CHECK_OK(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_STORE_ACTIVATION));
    CHECK_U64(s.ends, 20);
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_U64(s.end[i].ticket, i + 1); /* in the order they came */
        CHECK_U64(s.end[i].r.pid, s.pid);
    }
    CHECK_U64(placing_said(&s, FK_COMMAND_ENSURE_ACTIVATION), 1);
    CHECK_U64(placing_snapshot(&s).commands_pending, 0);
    placing_end_all(&s);
}

typedef struct boundary {
    fk_command_kind at;
    fk_verdict verdict;
    fk_err err, told;
    fk_placement_event_kind event;
    bool stops, loses;
} boundary;

TEST(strategy_lock_and_storage_boundaries)
{
    static const boundary CASES[] = {
        { FK_COMMAND_LOAD_ACTIVATION, FK_VERDICT_REFUSED, FK_E_STORAGE, FK_E_STORAGE,
          FK_PLACEMENT_ACTIVATION_FAILED, false, false },
        { FK_COMMAND_LOAD_ACTIVATION, FK_VERDICT_REFUSED, FK_E_CORRUPT, FK_E_CORRUPT,
          FK_PLACEMENT_ACTIVATION_FAILED, false, false },
        { FK_COMMAND_LOAD_ACTIVATION, FK_VERDICT_UNKNOWN, FK_E_TIMEOUT, FK_E_STORAGE,
          FK_PLACEMENT_ACTIVATION_FAILED, false, false },
        { FK_COMMAND_LOAD_ACTIVATION, FK_VERDICT_REFUSED, FK_E_FENCED, FK_E_FENCED,
          FK_PLACEMENT_FENCED, false, true },
        { FK_COMMAND_ENSURE_ACTIVATION, FK_VERDICT_REFUSED, FK_E_ACTIVATION, FK_E_ACTIVATION,
          FK_PLACEMENT_ACTIVATION_FAILED, false, false },
        { FK_COMMAND_ENSURE_ACTIVATION, FK_VERDICT_UNKNOWN, FK_E_TIMEOUT, FK_E_ACTIVATION,
          FK_PLACEMENT_ACTIVATION_FAILED, true, false },
        { FK_COMMAND_STORE_ACTIVATION, FK_VERDICT_REFUSED, FK_E_STORAGE, FK_E_STORAGE,
          FK_PLACEMENT_STORE_FAILED, true, false },
        { FK_COMMAND_STORE_ACTIVATION, FK_VERDICT_UNKNOWN, FK_E_TIMEOUT, FK_E_STORAGE,
          FK_PLACEMENT_STORE_FAILED, true, false },
        { FK_COMMAND_STORE_ACTIVATION, FK_VERDICT_REFUSED, FK_E_CONFLICT, FK_E_CONFLICT,
          FK_PLACEMENT_STORE_CONFLICT, true, false },
        { FK_COMMAND_STORE_ACTIVATION, FK_VERDICT_REFUSED, FK_E_FENCED, FK_E_FENCED,
          FK_PLACEMENT_FENCED, true, true },
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        const boundary *b = &CASES[i];
        fk_grain_key key = placing_key("account", "1");
        placing_begin(&s, (fk_placement_config){ 0 });
        placing_alone(&s);
        CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
        while (placing_next(&s, b->at) == NULL) {
            CHECK_OK(placing_ok(&s, placing_next(&s, FK_COMMAND_LOAD_ACTIVATION) != NULL
                                        ? FK_COMMAND_LOAD_ACTIVATION
                                        : FK_COMMAND_ENSURE_ACTIVATION));
        }
        CHECK_OK(placing_answer(&s, placing_next(&s, b->at), b->verdict, b->err));
        CHECK_ERR(placing_end_of(&s, 1)->r.err, b->told);
        CHECK_U64(placing_happened(&s, b->event), 1);
        CHECK_U64(placing_happened(&s, FK_PLACEMENT_ACTIVATED), 0);
        CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), b->stops ? 1 : 0);
        CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_LOST), b->loses ? 1 : 0);
        CHECK_U64(placing_said(&s, FK_COMMAND_RELEASE), 0);
        CHECK_U64(placing_snapshot(&s).stopping, b->stops ? 1 : 0);
        placing_grant_all(&s); /* what was lost is wanted again, because the table says so */
        /* The next attempt waits for the end of what may run, and then loads anew. */
        CHECK_ERR(placing_resolve(&s, key, 2), FK_E_PENDING);
        if (b->stops) {
            CHECK(placing_next(&s, FK_COMMAND_LOAD_ACTIVATION) == NULL);
            CHECK_OK(fk_placement_stopped(s.p, key.id, s.pid, "told", s.now));
        }
        CHECK_OK(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION));
        CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
        CHECK_OK(placing_ok(&s, FK_COMMAND_STORE_ACTIVATION));
        CHECK_OK(placing_end_of(&s, 2)->r.err);
        placing_end_all(&s);
    }
}

TEST(strategy_an_activation_is_used_again)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 2, "ab"));
    placing_grant_all(&s);
    fk_grain_key key = placing_key_of(&s, "account", "a", 0);
    uint64_t pid = placing_activate(&s, key);
    size_t commands = s.commands;
    for (uint64_t ticket = 1; ticket <= 10; ticket++) {
        CHECK_OK(placing_resolve(&s, key, ticket));
        CHECK(s.got.locality == FK_LOCALITY_LOCAL);
        CHECK_U64(s.got.pid, pid);
    }
    CHECK_U64(s.commands, commands);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_ACTIVATED), 1);
    CHECK_OK(placing_view(&s, 3, "a")); /* the other goes, and it stays */
    CHECK_OK(placing_resolve(&s, key, 11));
    CHECK_U64(s.got.pid, pid);
    CHECK_U64(placing_said(&s, FK_COMMAND_ENSURE_ACTIVATION), 1);
    placing_end_all(&s);
}

TEST(strategy_a_topology_update_is_reflected)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    CHECK_OK(fk_placement_start_client(s.p, s.now));
    CHECK_OK(placing_view(&s, 1, "a"));
    fk_grain_key key = placing_key("account", "1");
    CHECK_OK(placing_resolve(&s, key, 1));
    CHECK(s.got.authority.ptr[0] == 'a');
    CHECK_OK(placing_view(&s, 2, "b"));
    CHECK_OK(placing_resolve(&s, key, 2));
    CHECK(s.got.authority.ptr[0] == 'b');
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_TOPOLOGY), 2);
    CHECK_U64(placing_snapshot(&s).view_version, 2);
    CHECK_OK(placing_view(&s, 1, "a")); /* one that comes late changes nothing */
    CHECK_OK(placing_resolve(&s, key, 3));
    CHECK(s.got.authority.ptr[0] == 'b');
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_TOPOLOGY), 2);
    CHECK_U64(placing_snapshot(&s).members, 1);
    placing_end_all(&s);
}
