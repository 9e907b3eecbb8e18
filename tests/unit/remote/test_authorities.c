/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a program may know of other systems and ask of them (fraktor/remote.h), without a network. */

#include <string.h>

#include "remote/remote.h"
#include "support/observer.h"

static const char ADDRESS[] = "fraktor.tcp://other@10.0.0.9:2552";

typedef struct change {
    fk_level level;
    fk_time at;
    char from[16], to[16], reason[64];
} change;

static observer o;
static change last;

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->kind != FK_EVENT_AUTHORITY) return;
    last = (change){ .level = event->level, .at = event->at };
    strncpy(last.from, event->from, sizeof(last.from) - 1);
    strncpy(last.to, event->to, sizeof(last.to) - 1);
    strncpy(last.reason, event->reason, sizeof(last.reason) - 1);
}

static void check_change(const char *from, const char *to, const char *reason)
{
    CHECK_STR(last.from, from);
    CHECK_STR(last.to, to);
    CHECK_STR(last.reason, reason);
    CHECK(last.at != 0);
    last = (change){ .at = 0 };
}

static void start(void)
{
    fk_ref ref;
    last = (change){ .at = 0 };
    observer_start_with(&o, (fk_system_config){ .name = "t",
                                                .on_event = on_event,
                                                .remoting = { .quarantine = FK_SECONDS(60) } });
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor.tcp://other@10.0.0.9:2552/user/a"), &ref, NULL));
    check_change("", "unresolved", "created");
}

static fk_authority_info known(void)
{
    fk_authority_info info;
    memset(&info, 0xA5, sizeof(info));
    CHECK_OK(fk_authority_state(o.r.sys, fk_str_of(ADDRESS), &info));
    return info;
}

/* As the network would tell. */
static void tell(fk_authority_event event)
{
    fk_remote *remote = fk__remote_of(o.r.sys);
    fk_authority_key key = { FK_STR("other"), FK_STR("10.0.0.9"), 2552 };
    fk_authority *authority = fk__authority_find(&remote->table, &key);
    fk_authority_effects effects;
    CHECK_OK(fk__authority_map(&remote->table, authority, FK_STR("gate"), 99, o.r.now));
    fk_authority_result result =
        fk__authority_step(&remote->table, authority, &event, o.r.now, &effects);
    CHECK_U64(result, FK_AUTHORITY_RESULT_DONE);
}

TEST(authority_info_of_one_that_was_only_named)
{
    start();
    rig_advance(&o.r, FK_SECONDS(7));
    fk_authority_info info = known();
    CHECK_U64(info.status, FK_AUTHORITY_UNRESOLVED);
    CHECK_U64(info.status_age, FK_SECONDS(7));
    CHECK_U64(info.uid, 0);
    CHECK_U64(info.incarnation, 1);
    CHECK(!info.is_open);
    CHECK_U64(info.reconnect_in, FK_NEVER);
    CHECK_U64(info.quarantine_left, 0);
    CHECK_STR(info.host, "10.0.0.9");
    CHECK_U64(info.port, 2552);
    rig_stop(&o.r);
}

TEST(authority_info_shows_the_peer_its_place_and_the_next_attempt)
{
    start();
    tell((fk_authority_event){ .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = 7 });
    fk_authority_info info = known();
    CHECK_U64(info.status, FK_AUTHORITY_CONNECTED);
    CHECK_U64(info.status_age, 0);
    CHECK(info.is_open);
    CHECK_U64(info.uid, 7);
    CHECK_STR(info.host, "gate");
    CHECK_U64(info.port, 99);
    tell((fk_authority_event){ .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = 8 });
    CHECK_U64(known().incarnation, 2);
    tell((fk_authority_event){ .kind = FK_AUTHORITY_EVENT_DROPPED, .uid = 8 });
    info = known();
    CHECK_U64(info.status, FK_AUTHORITY_UNRESOLVED);
    CHECK_U64(info.uid, 8); /* who was there last */
    CHECK_U64(info.failures, 1);
    CHECK(info.reconnect_in > FK_MILLIS(50));
    CHECK(info.reconnect_in <= FK_MILLIS(100));
    rig_stop(&o.r);
}

/* ---- all of them ------------------------------------------------------------------------------------ */

typedef struct listing {
    size_t count, quarantined;
    bool has_other;
} listing;

static void list(void *user, fk_str address, const fk_authority_info *info)
{
    listing *l = user;
    fk_authority_info again; /* nothing is locked */
    CHECK_OK(fk_authority_state(o.r.sys, address, &again));
    CHECK_U64(again.status, info->status);
    l->count++;
    if (info->status == FK_AUTHORITY_QUARANTINE) l->quarantined++;
    if (address.len == strlen(ADDRESS) && memcmp(address.ptr, ADDRESS, address.len) == 0) {
        l->has_other = true;
    }
}

TEST(authorities_are_listed_all_and_once)
{
    static const char *const OTHERS[] = { "fraktor.tcp://a@h:1", "fraktor.tcp://b@h:1",
                                          "fraktor.tcp://a@[::1]:2" };
    listing l = { 0, 0, false };
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    CHECK_OK(fk_authority_each(o.r.sys, list, &l));
    CHECK_U64(l.count, 0);
    CHECK_ERR(fk_authority_each(o.r.sys, NULL, NULL), FK_E_INVALID);
    rig_stop(&o.r);
    start();
    for (size_t i = 0; i < 3; i++) CHECK_OK(fk_authority_quarantine(o.r.sys, fk_str_of(OTHERS[i])));
    CHECK_OK(fk_authority_each(o.r.sys, list, &l));
    CHECK_U64(l.count, 4);
    CHECK_U64(l.quarantined, 3);
    CHECK(l.has_other);
    rig_stop(&o.r);
}

/* ---- changes ------------------------------------------------------------------------------------------ */

TEST(authority_override_by_force_lets_the_same_system_in_and_says_so)
{
    for (int force = 0; force <= 1; force++) {
        start();
        tell((fk_authority_event){ .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = 7 });
        CHECK_OK(fk_authority_quarantine(o.r.sys, fk_str_of(ADDRESS)));
        check_change("connected", "quarantine", "asked for");
        CHECK_U64(known().quarantine_left, FK_SECONDS(60));
        CHECK_OK(force ? fk_authority_override_force(o.r.sys, fk_str_of(ADDRESS))
                       : fk_authority_override(o.r.sys, fk_str_of(ADDRESS)));
        CHECK_U64(last.level, force ? FK_LEVEL_WARN : FK_LEVEL_INFO);
        check_change("quarantine", "connected",
                     force ? "quarantine overridden by force" : "quarantine overridden");
        fk_authority_info info = known();
        CHECK(!info.is_open); /* waits for a handshake */
        CHECK_U64(info.reconnect_in, 0);
        if (force) {
            tell((fk_authority_event){ .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = 7 });
            CHECK(known().is_open);
        } else {
            fk_remote *remote = fk__remote_of(o.r.sys);
            CHECK(fk__authority_refuses(fk__authority_after(&remote->table, NULL), 7));
        }
        rig_stop(&o.r);
    }
}

TEST(authority_mapping_needs_remoting)
{
    start();
    CHECK_ERR(fk_authority_set_mapping(o.r.sys, fk_str_of(ADDRESS), FK_STR("gate"), 99),
              FK_E_UNSUPPORTED);
    CHECK_STR(known().host, "10.0.0.9");
    rig_stop(&o.r);
}

TEST(system_uid_is_another_one_each_time)
{
    uint64_t first;
    start();
    first = fk_system_uid(o.r.sys);
    CHECK(first != 0);
    CHECK_U64(fk_system_uid(o.r.sys), first);
    rig_stop(&o.r);
    start();
    CHECK(fk_system_uid(o.r.sys) != first);
    rig_stop(&o.r);
    observer_start_with(&o,
                        (fk_system_config){ .name = "t", .paths = { .rules = FK_RULES_PEKKO } });
    CHECK_U64(fk_system_uid(o.r.sys), 0);
    CHECK_ERR(fk_authority_each(o.r.sys, list, NULL), FK_E_UNSUPPORTED);
    rig_stop(&o.r);
}
