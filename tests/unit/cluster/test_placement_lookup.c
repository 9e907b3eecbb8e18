/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IdentityLookup: the face of placement for programs with a driver of their own. */

#include <string.h>

#include "fraktor/lookup.h"
#include "support/placing.h"

static rig r;
static fk_lookup *lookup;
static fk_placement_command last;
static fk_resolution told;
static const fk_time NOW = FK_SECONDS(5);

static void on_command(void *ctx, const fk_placement_command *command)
{
    (void)ctx;
    last = *command;
}

static void on_settled(void *ctx, uint64_t ticket, const fk_resolution *resolution)
{
    (void)ctx;
    CHECK_U64(ticket, 1);
    told = *resolution;
}

static void begin(uint32_t events_max)
{
    rig_init(&r);
    fk_lookup_config config = { .placement = { .slots = 1,
                                               .cache_capacity = 100,
                                               .outcome = { .command = on_command,
                                                            .settled = on_settled } },
                                .events_max = events_max };
    CHECK_OK(fk_lookup_create(&config, &r.port, &lookup));
}

static void end(void)
{
    fk_placement_check(fk_lookup_placement(lookup));
    fk_lookup_destroy(lookup);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

static fk_err view(uint64_t version, const char *letters)
{
    static const fk_str KIND = { "room", 4 };
    fk_member member[4];
    uint32_t count = (uint32_t)strlen(letters);
    for (uint32_t i = 0; i < count; i++) {
        member[i] = (fk_member){ .id = { &letters[i], 1 },
                                 .incarnation = 1,
                                 .kinds = &KIND,
                                 .kind_count = 1,
                                 .weight = 1,
                                 .status = FK_MEMBER_UP };
    }
    return fk_lookup_update_topology(lookup, &(fk_view){ version, member, count }, NOW);
}

typedef struct seen {
    size_t count;
    fk_placement_event_kind kind[64];
    char key[64];
} seen;

static void on_seen(void *ctx, const fk_placement_event *event)
{
    seen *all = ctx;
    all->kind[all->count++] = event->kind;
    CHECK(event->reason != NULL);
    memcpy(all->key, event->key.key.ptr, event->key.key.len);
    all->key[event->key.key.len] = '\0';
}

TEST(lookup_member_resolves_and_passivates)
{
    fk_resolution out;
    seen all = { 0 };
    begin(0);
    CHECK_ERR(fk_lookup_resolve(lookup, FK_STR("room"), FK_STR("1"), 1, NOW, &out), FK_E_NOT_READY);
    CHECK_OK(fk_lookup_setup_member(lookup, &PLACING_ROOM, 1, FK_STR("a"), 1, NOW));
    CHECK_ERR(fk_lookup_setup_member(lookup, &PLACING_ROOM, 1, FK_STR("a"), 2, NOW),
              FK_E_IDENTITY_SETUP);
    CHECK_ERR(fk_lookup_setup_client(lookup, NULL, 0, NOW), FK_E_IDENTITY_SETUP);
    CHECK_OK(view(1, "a"));
    fk_placement *p = fk_lookup_placement(lookup);
    fk_slot_claim claim = { .slot = 0, .epoch = 1 };
    fk_placement_result acquired = { .kind = FK_COMMAND_TRY_ACQUIRE,
                                     .request_id = last.request_id,
                                     .slots = &claim,
                                     .slot_count = 1 };
    CHECK_OK(fk_placement_handle_result(p, &acquired, NOW));
    CHECK_ERR(fk_lookup_resolve(lookup, FK_STR("room"), FK_STR("1"), 1, NOW, &out), FK_E_PENDING);
    CHECK(last.kind == FK_COMMAND_ENSURE_ACTIVATION);
    fk_placement_result ensured = { .kind = last.kind, .request_id = last.request_id, .pid = 77 };
    CHECK_OK(fk_placement_handle_result(p, &ensured, NOW));
    CHECK_OK(told.err);
    CHECK_U64(told.pid, 77);
    CHECK_ERR(fk_lookup_resolve(lookup, FK_STR("room"), FK_STR(""), 2, NOW, &out), FK_E_KEY);
    CHECK_ERR(out.err, FK_E_KEY);
    CHECK(fk_lookup_drain_events(lookup, on_seen, &all) > 4);
    CHECK(all.kind[0] == FK_PLACEMENT_REFUSED);
    CHECK(all.kind[all.count - 1] == FK_PLACEMENT_ACTIVATED);
    CHECK_STR(all.key, "1");
    CHECK_U64(fk_lookup_drain_events(lookup, on_seen, &all), 0);
    fk_lookup_passivate_idle(lookup, NOW + FK_MILLIS(9), FK_MILLIS(10));
    CHECK(last.kind == FK_COMMAND_ENSURE_ACTIVATION);
    fk_lookup_passivate_idle(lookup, NOW + FK_MILLIS(10), FK_MILLIS(10));
    CHECK(last.kind == FK_COMMAND_STOP_ACTIVATION);
    CHECK_U64(fk_lookup_events_dropped(lookup), 0);
    end();
}

TEST(lookup_client_hears_of_members_that_leave)
{
    fk_resolution out;
    begin(0);
    CHECK_OK(fk_lookup_setup_client(lookup, NULL, 0, NOW));
    CHECK_OK(view(1, "ab"));
    CHECK_OK(fk_lookup_resolve(lookup, FK_STR("room"), FK_STR("1"), 1, NOW, &out));
    char first = out.authority.ptr[0];
    CHECK_OK(fk_lookup_on_member_left(lookup, out.authority, NOW)); /* lent by the view itself */
    CHECK_OK(fk_lookup_resolve(lookup, FK_STR("room"), FK_STR("1"), 1, NOW, &out));
    CHECK(out.authority.ptr[0] != first);
    CHECK_ERR(fk_lookup_on_member_left(lookup, (fk_str){ &first, 1 }, NOW), FK_E_NOT_FOUND);
    end();
}

TEST(lookup_cache_events_have_their_own_queue)
{
    fk_resolution out;
    seen all = { 0 };
    begin(0);
    CHECK_OK(fk_lookup_setup_client(lookup, NULL, 0, NOW));
    CHECK_OK(view(1, "ab"));
    CHECK_OK(fk_lookup_resolve(lookup, FK_STR("room"), FK_STR("1"), 1, NOW, &out));
    fk_grain_key key = placing_key("room", "1");
    fk_str other = out.authority.ptr[0] == 'a' ? FK_STR("b") : FK_STR("a");
    fk_placement_redirected(fk_lookup_placement(lookup), &key, other, NOW);
    CHECK_OK(fk_lookup_on_member_left(lookup, other, NOW));
    CHECK_U64(fk_lookup_drain_cache_events(lookup, on_seen, &all), 2);
    CHECK(all.kind[0] == FK_PLACEMENT_CACHE_PUT);
    CHECK(all.kind[1] == FK_PLACEMENT_CACHE_DROPPED);
    end();
}

TEST(lookup_keeps_the_newest_events_and_counts_the_rest)
{
    fk_resolution out;
    seen all = { 0 };
    begin(3);
    for (unsigned i = 0; i < 5; i++) {
        char text = (char)('0' + i);
        CHECK_ERR(fk_lookup_resolve(lookup, FK_STR("room"), (fk_str){ &text, 1 }, 1, NOW, &out),
                  FK_E_NOT_READY);
    }
    CHECK_U64(fk_lookup_events_dropped(lookup), 2);
    CHECK_U64(fk_lookup_drain_events(lookup, on_seen, &all), 3);
    CHECK_STR(all.key, "4");
    rig_fault(&r, 1, true);
    CHECK_ERR(fk_lookup_resolve(lookup, FK_STR("room"), FK_STR("1"), 1, NOW, &out), FK_E_NOT_READY);
    rig_fault(&r, 0, false);
    CHECK_U64(fk_lookup_events_dropped(lookup), 3);
    end();
}
