/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* References to actors of other systems, used for everything that references are used for. */

#include <stdio.h>
#include <string.h>

#include "fraktor/remote.h"
#include "support/observer.h"

static const char PATH[] = "fraktor.tcp://other@10.0.0.9:2552/user/a";

static observer o;

static fk_ref start(fk_system_config config)
{
    fk_ref ref;
    config.name = "t";
    observer_start_with(&o, config);
    CHECK_OK(fk_resolve(o.r.sys, fk_str_of(PATH), &ref, NULL));
    o.events = 0;
    return ref;
}

static uint32_t deferred(void)
{
    fk_authority_info info;
    CHECK_OK(fk_authority_state(o.r.sys, FK_STR("fraktor.tcp://other@10.0.0.9:2552"), &info));
    return info.deferred;
}

TEST(remote_ref_survives_being_stopped)
{
    fk_ref again, ref = start((fk_system_config){ 0 });
    fk_stop(o.r.sys, ref);
    rig_run(&o.r);
    CHECK_OK(fk_send(o.r.sys, ref, FK_MSG(num, 1))); /* still a letter for the other system */
    rig_run(&o.r);
    observer_letters(&o, 0);
    CHECK(deferred() >= 1);
    CHECK_OK(fk_resolve(o.r.sys, fk_str_of(PATH), &again, NULL));
    CHECK(fk_ref_equal(ref, again));
    observer_check_path(&o, ref, PATH);
    rig_stop(&o.r);
}

TEST(remote_ref_is_one_however_the_scheme_is_written)
{
    fk_ref again, ref = start((fk_system_config){ 0 });
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor://other@10.0.0.9:2552/user/a"), &again, NULL));
    CHECK(fk_ref_equal(ref, again));
    observer_check_path(&o, again, PATH);
    rig_stop(&o.r);
}

TEST(remote_ref_as_an_anchor_leads_nowhere)
{
    static const char *const TEXTS[] = { "x", "*", "../b", "x/y" };
    fk_ref ref = start((fk_system_config){ 0 });
    fk_ref local;
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("b"), &(fk_props){ .receive = doer_receive }, &local));
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
        fk_select_send_from(o.r.sys, ref, fk_str_of(TEXTS[i]), FK_REF_NONE, FK_MSG(num, 1));
        rig_run(&o.r);
        CHECK(o.letters + deferred() == i + 1); /* dead or on its way, never with a local actor */
    }
    rig_stop(&o.r);
}

TEST(remote_ref_as_a_sender_is_answered)
{
    static probe p;
    fk_ref ref = start((fk_system_config){ 0 });
    fk_props props = probe_props(&p);
    fk_ref local;
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("a"), &props, &local));
    CHECK_OK(fk_send_from(o.r.sys, local, ref, FK_IDENTIFY(3)));
    rig_run(&o.r);
    CHECK_U64(deferred(), 1); /* the answer */
    CHECK_OK(fk_send_from(o.r.sys, ref, local, FK_IDENTIFY(4)));
    rig_run(&o.r);
    CHECK_U64(deferred(), 2); /* the question: it is not for us to answer */
    CHECK_U64(p.count, 0);
    rig_stop(&o.r);
}

TEST(remote_refs_have_a_limit_and_cost_nothing_else)
{
    fk_stats stats;
    start((fk_system_config){ .actors_max = 10 });
    fk_err err = FK_OK;
    uint32_t made = 1;
    for (; made < 100000 && err == FK_OK; made++) {
        char text[128];
        fk_ref ref;
        snprintf(text, sizeof(text), "%s%u", PATH, made);
        err = fk_resolve(o.r.sys, fk_str_of(text), &ref, NULL);
    }
    CHECK_ERR(err, FK_E_LIMIT);
    fk_stats_get(o.r.sys, &stats);
    CHECK_U64(stats.actors, 0);
    fk_ref ref;
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("a"), &(fk_props){ .receive = doer_receive }, &ref));
    rig_stop(&o.r);
}

TEST(resolve_one_of_a_remote_path_waits_and_gives_up)
{
    fk_ref found = FK_REF_NONE;
    observer_start_with(&o, (fk_system_config){ .name = "t", .workers = 1 });
    CHECK_ERR(fk_resolve_one(o.r.sys, fk_str_of(PATH), FK_MILLIS(20), &found), FK_E_TIMEOUT);
    CHECK(fk_ref_is_none(found));
    rig_stop(&o.r);
}

TEST(remote_selection_keeps_its_uid_and_is_refused_in_quarantine)
{
    const fk_str address = FK_STR("fraktor.tcp://other@10.0.0.9:2552");
    const fk_str text = FK_STR("fraktor.tcp://other@10.0.0.9:2552/user/a#7");
    start((fk_system_config){ 0 });
    CHECK_OK(fk_select_send(o.r.sys, text, FK_MSG(num, 1)));
    CHECK_U64(deferred(), 1);
    CHECK_OK(fk_authority_quarantine(o.r.sys, address));
    const observer_letter *letter = observer_letters(&o, 1);
    CHECK_STR(letter->path, text.ptr);
    CHECK_U64(letter->reason, FK_REASON_QUARANTINED);
    observer_events(&o, 2); /* the change, and one for the message */
    CHECK_ERR(fk_select_send(o.r.sys, text, FK_MSG(num, 2)), FK_E_QUARANTINED);
    letter = observer_letters(&o, 1);
    CHECK_STR(letter->path, text.ptr);
    CHECK_U64(letter->reason, FK_REASON_QUARANTINED);
    const observer_event *event = observer_events(&o, 1);
    CHECK_U64(event->kind, FK_EVENT_INVALID_ASSOCIATION);
    fk_authority_info info; /* what an event shows can be asked about */
    CHECK_OK(fk_authority_state(o.r.sys, fk_str_of(event->text), &info));
    CHECK_U64(info.status, FK_AUTHORITY_QUARANTINE);
    rig_stop(&o.r);
}

TEST(remote_override_ends_a_quarantine)
{
    fk_str text = FK_STR("fraktor.tcp://other@10.0.0.9:2552/user/a");
    fk_str address = FK_STR("fraktor.tcp://other@10.0.0.9:2552");
    fk_authority_info info;
    start((fk_system_config){ 0 });
    CHECK_ERR(fk_authority_override(o.r.sys, FK_STR("fraktor.tcp://nobody@10.0.0.9:1")),
              FK_E_NOT_FOUND);
    CHECK_OK(fk_select_send(o.r.sys, text, FK_MSG(num, 1)));
    CHECK_ERR(fk_authority_override(o.r.sys, address), FK_E_STATE);
    CHECK_OK(fk_authority_quarantine(o.r.sys, address));
    CHECK_ERR(fk_select_send(o.r.sys, text, FK_MSG(num, 2)), FK_E_QUARANTINED);
    CHECK_OK(fk_authority_override(o.r.sys, address));
    CHECK_OK(fk_authority_state(o.r.sys, address, &info));
    CHECK_U64(info.status, FK_AUTHORITY_UNRESOLVED); /* nobody has said where it is */
    CHECK_OK(fk_select_send(o.r.sys, text, FK_MSG(num, 3)));
    CHECK_U64(deferred(), 1);
    rig_stop(&o.r);
}
