/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Selections at other systems: what waits for them is what was asked for. */

#include <string.h>

#include "fraktor/remote.h"
#include "remote/remote.h"
#include "support/observer.h"

static observer o;
static fk_remote *remote;

static void start(fk_rules rules)
{
    fk_system_config config = { .name = "t", .pools_malloc = true, .paths = { .rules = rules } };
    if (rules == FK_RULES_PEKKO) {
        config.remoting.host = "10.0.0.1";
        config.remoting.port = 2552;
    }
    observer_start_with(&o, config);
    remote = fk__remote_of(o.r.sys);
}

static fk_authority *authority(void)
{
    fk_authority_key key = { FK_STR("b"), FK_STR("h"), 1 };
    return fk__authority_find(&remote->table, &key);
}

/* The only one that waits. */
static const fk_letter *letter(void)
{
    CHECK_U64(authority()->deferred.count, 1);
    return FK_CONTAINER(authority()->deferred.first, fk_letter, link);
}

static void check_element(const fk_letter_path *path, size_t *cursor, fk_element_kind kind,
                          const char *text)
{
    fk_element element;
    CHECK(fk_expression_next(&path->expression, cursor, &element));
    CHECK_U64(element.kind, kind);
    CHECK_U64(element.text.len, strlen(text));
    CHECK(memcmp(element.text.ptr, text, element.text.len) == 0);
}

TEST(remote_selection_waits_with_its_elements)
{
    size_t cursor = 0;
    fk_element none;
    start(FK_RULES_FRAKTOR);
    fk_ref sender = observer_spawn(&o, "a");
    CHECK_OK(fk_select_send_from(o.r.sys, FK_REF_NONE, FK_STR("fraktor.tcp://b@h:1/user//w?/v*#7"),
                                 sender, FK_MSG(num, 3)));
    const fk_letter *l = letter();
    CHECK(fk_ref_is_none(l->to));
    CHECK(l->path != NULL);
    CHECK(l->path->authority == authority());
    CHECK(l->node->type == &fk_type_num);
    CHECK_U64(l->node->sender, fk__sender_pack(sender.slot, sender.generation));
    CHECK_STR(l->path->text, "fraktor.tcp://b@h:1/user/w?/v*#7");
    check_element(l->path, &cursor, FK_ELEMENT_NAME, "user");
    check_element(l->path, &cursor, FK_ELEMENT_PATTERN, "w?");
    check_element(l->path, &cursor, FK_ELEMENT_PATTERN, "v*");
    CHECK(!fk_expression_next(&l->path->expression, &cursor, &none));
    CHECK_U64(l->path->expression.count, 3);
    CHECK_U64(l->path->expression.uid, 7);
    rig_stop(&o.r);
    CHECK_STR(observer_letters(&o, 1)->path, "fraktor.tcp://b@h:1/user/w?/v*#7");
}

TEST(remote_selection_of_a_plain_path_is_a_reference)
{
    fk_ref ref;
    start(FK_RULES_FRAKTOR);
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("fraktor.tcp://b@h:1/user/w"), FK_MSG(num, 3)));
    /* It may give way, though it is no stranger who has named it. */
    fk_remoting_stats stats;
    CHECK_OK(fk_remoting_stats_get(o.r.sys, &stats));
    CHECK_U64(stats.references_held, 0);
    CHECK_U64(stats.references, 1);
    CHECK_U64(stats.systems, 1);
    CHECK_U64(stats.deferred, 1);
    CHECK(authority()->is_named && !authority()->is_hearsay);
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor.tcp://b@h:1/user/w"), &ref, NULL));
    CHECK_OK(fk_remoting_stats_get(o.r.sys, &stats));
    CHECK_U64(stats.references_held, 1);
    CHECK_U64(stats.references, 0);
    CHECK(letter()->path == NULL);
    CHECK(fk_ref_equal(letter()->to, ref));
    rig_stop(&o.r);
}

TEST(remote_selection_is_refused_in_quarantine)
{
    const fk_str text = FK_STR("fraktor.tcp://b@h:1/user/*#9");
    start(FK_RULES_FRAKTOR);
    CHECK_OK(fk_select_send(o.r.sys, text, FK_MSG(num, 1)));
    o.events = 0;
    CHECK_OK(fk_authority_quarantine(o.r.sys, FK_STR("fraktor.tcp://b@h:1")));
    const observer_letter *dead = observer_letters(&o, 1);
    CHECK_STR(dead->path, text.ptr);
    CHECK_U64(dead->reason, FK_REASON_QUARANTINED);
    observer_events(&o, 2);
    CHECK_ERR(fk_select_send(o.r.sys, text, FK_MSG(num, 2)), FK_E_QUARANTINED);
    dead = observer_letters(&o, 1);
    CHECK_STR(dead->path, text.ptr);
    CHECK_U64(dead->reason, FK_REASON_QUARANTINED);
    CHECK_U64(observer_events(&o, 1)->kind, FK_EVENT_INVALID_ASSOCIATION);
    rig_stop(&o.r);
}

TEST(remote_selection_has_the_bounds_of_all_that_waits)
{
    const fk_str text = FK_STR("fraktor.tcp://b@h:1/user/*");
    _Atomic int drops = 0;
    observer_start_with(&o, (fk_system_config){ .name = "t", .remoting = { .deferred_max = 1 } });
    remote = fk__remote_of(o.r.sys);
    for (uint64_t i = 0; i < 2; i++) {
        owned message = { &drops, i };
        CHECK_ERR(fk_select_send(o.r.sys, text, (fk_out){ &fk_type_owned, &message }),
                  i == 0 ? FK_OK : FK_E_FULL);
    }
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_FULL);
    CHECK_U64(drops, 1);
    rig_stop(&o.r);
    CHECK_U64(drops, 2);
}

/* An Identify that gets lost is answered, here, with nobody. */
TEST(remote_selection_of_identify_is_answered_when_it_does_not_go)
{
    static probe p;
    const fk_str text = FK_STR("fraktor.tcp://b@h:1/user/*");
    p = (probe){ 0 };
    start(FK_RULES_FRAKTOR);
    fk_props props = probe_props(&p);
    fk_ref asker;
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("a"), &props, &asker));
    CHECK_OK(fk_select_send_from(o.r.sys, FK_REF_NONE, text, asker, FK_IDENTIFY(3)));
    CHECK(letter()->node->type == &fk_type_identify);
    rig_run(&o.r);
    CHECK_U64(p.count, 0);
    CHECK_OK(fk_authority_quarantine(o.r.sys, FK_STR("fraktor.tcp://b@h:1")));
    rig_run(&o.r);
    CHECK_U64(p.count, 1);
    rig_stop(&o.r);
}

/* Pekko's selections are selections, whatever they look like. */
TEST(remote_selection_by_pekkos_rules_keeps_plain_paths)
{
    size_t cursor = 0;
    start(FK_RULES_PEKKO);
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("pekko://b@h:1/user/v/../w#7"), FK_MSG(num, 3)));
    const fk_letter *l = letter();
    CHECK(l->path != NULL);
    check_element(l->path, &cursor, FK_ELEMENT_NAME, "user");
    check_element(l->path, &cursor, FK_ELEMENT_NAME, "v");
    check_element(l->path, &cursor, FK_ELEMENT_PARENT, "..");
    check_element(l->path, &cursor, FK_ELEMENT_NAME, "w");
    CHECK_U64(l->path->expression.uid, 7);
    rig_stop(&o.r);
    CHECK_STR(observer_letters(&o, 1)->path, "pekko://b@h:1/user/v/../w");
}

TEST(remote_selection_by_pekkos_rules_pierces_a_quarantine)
{
    fk_ref ref;
    fk_authority_effects fx;
    fk_authority_event event = { .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = 5 };
    start(FK_RULES_PEKKO);
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("pekko://b@h:1/user/w"), &ref, NULL));
    CHECK_OK(fk__authority_map(&remote->table, authority(), FK_STR(""), 0, o.r.now));
    CHECK_U64(fk__authority_step(&remote->table, authority(), &event, o.r.now, &fx),
              FK_AUTHORITY_RESULT_DONE);
    event.kind = FK_AUTHORITY_EVENT_INVALID;
    CHECK_U64(fk__authority_step(&remote->table, authority(), &event, o.r.now, &fx),
              FK_AUTHORITY_RESULT_DONE);
    CHECK_ERR(fk_send(o.r.sys, ref, FK_MSG(num, 1)), FK_E_QUARANTINED);
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_QUARANTINED);
    /* It is let through, but without a driver nobody takes it. */
    CHECK_ERR(fk_select_send(o.r.sys, FK_STR("pekko://b@h:1/user/w"), FK_MSG(num, 2)),
              FK_E_UNRESOLVED);
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_NO_RECEIVER);
    rig_stop(&o.r);
}
