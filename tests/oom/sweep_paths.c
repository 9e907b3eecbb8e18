/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sweep's scenarios of paths, uids and selections. */

#include <stdio.h>
#include <string.h>

#include "oom/sweep.h"
#include "remote/remote.h"

enum { WORKERS = 15 }; /* more than a selection's first room, twice */

static fk_ref worker[WORKERS];

/* ---- paths: what is kept of them is a convenience, so nothing here fails -------------------- */

static void check_path(sweep *s, fk_ref ref, const char *expected)
{
    char text[128], piece[12];
    size_t len = fk_path_of(s->r.sys, ref, text, sizeof(text));
    CHECK(len != 0 && len < sizeof(text));
    CHECK(strncmp(text, expected, strlen(expected)) == 0);
    CHECK_U64(fk_path_of(s->r.sys, ref, piece, sizeof(piece)), len);
    CHECK(piece[0] == '\0' || memcmp(piece, text, sizeof(piece) - 1) == 0);
}

/* Without memory for it a cut path is empty. */
static void check_cut(sweep *s, fk_ref ref)
{
    char piece[12];
    CHECK(fk_path_of(s->r.sys, ref, piece, sizeof(piece)) >= sizeof(piece));
    CHECK(piece[0] == '\0' || memcmp(piece, "fraktor://f", sizeof(piece)) == 0);
    CHECK(fk_path_of(s->r.sys, ref, NULL, 0) >= sizeof(piece));
}

static void show_paths(sweep *s)
{
    for (int i = 0; i < 3; i++) {
        check_path(s, s->target, "fraktor://fraktor/user/target#");
        check_path(s, s->doer, "fraktor://fraktor/user/$a#");
        for (int j = 0; j < WORKERS; j++) check_cut(s, worker[j]);
    }
    CHECK_OK(fk_stop(s->r.sys, s->target)); /* and of the dead */
    rig_run(&s->r);
    check_path(s, s->target, "fraktor://fraktor/user/target#");
}

/* ---- uids ----------------------------------------------------------------------------------- */

static void claim_uids(sweep *s)
{
    const fk_str path = FK_STR("fraktor://fraktor/user/elsewhere");
    for (uint64_t uid = 1000001; uid <= 1000005; uid++) {
        fk_time left = 0;
        if (!note(s, fk_uid_claim(s->r.sys, path, uid, NULL))) {
            CHECK_ERR(fk_uid_release(s->r.sys, path, uid), FK_E_NOT_FOUND);
            continue;
        }
        CHECK_ERR(fk_uid_claim(s->r.sys, path, uid, &left), FK_E_UID_RESERVED);
        CHECK(left == FK_NEVER);
        /* Giving back needs memory for nothing but the sweeper, which it can do without. */
        CHECK_OK(fk_uid_release(s->r.sys, path, uid));
        CHECK_ERR(fk_uid_claim(s->r.sys, path, uid, &left), FK_E_UID_RESERVED);
        CHECK(left == FK_SECONDS(1));
        rig_run(&s->r);
    }
    rig_pass(&s->r, FK_MILLIS(1100));
    for (uint64_t uid = 1000001; uid <= 1000005; uid++)
        note(s, fk_uid_claim(s->r.sys, path, uid, NULL));
}

static void spawn_as(sweep *s)
{
    const fk_props props = { .receive = doer_receive, .state_size = 64 };
    for (uint64_t uid = 2000001; uid <= 2000003; uid++) {
        fk_ref ref = FK_REF_NONE, again = FK_REF_NONE;
        bool ok = note(s, fk_spawn_as(s->r.sys, FK_STR("guest"), uid, &props, &ref));
        CHECK(ok == fk_is_alive(s->r.sys, ref));
        if (!ok) continue;
        CHECK_OK(fk_stop(s->r.sys, ref));
        rig_run(&s->r);
        fk_err err = fk_spawn_as(s->r.sys, FK_STR("guest"), uid, &props, &again);
        note(s, err == FK_E_UID_RESERVED ? FK_OK : err);
        CHECK(err != FK_OK);
    }
    rig_pass(&s->r, FK_MILLIS(1100));
    fk_ref ref = FK_REF_NONE;
    note(s, fk_spawn_as(s->r.sys, FK_STR("guest"), 2000001, &props, &ref));
}

/* ---- selections ------------------------------------------------------------------------------- */

static void select_kinds(sweep *s, fk_str one, fk_str many)
{
    token small = make_token(s), lost = make_token(s);
    fk_payload *payload = NULL;
    note(s, fk_select_send(s->r.sys, one, (fk_out){ &fk_type_token, &small }));
    note(s,
         fk_select_send(s->r.sys, FK_STR("/user/nobody/there"), (fk_out){ &fk_type_token, &lost }));
    note(s, fk_select_send(s->r.sys, many, FK_MSG(num, 1)));
    note(s, fk_select_send(s->r.sys, FK_STR("/user/*/nobody"), FK_MSG(num, 2)));
    note(s, fk_select_send(s->r.sys, FK_STR("fraktor://other/user/a"), FK_MSG(num, 3)));
    note(s,
         fk_select_send_from(s->r.sys, worker[0], FK_STR("../worker1"), s->doer, FK_MSG(num, 4)));
    if (!note(s, fk_payload_create(s->r.sys, &fk_type_token, 3000, &payload))) return;
    token shared = make_token(s);
    memcpy(fk_payload_data(payload), &shared, sizeof(token));
    note(s, fk_select_send(s->r.sys, many, FK_MSG_PAYLOAD(payload)));
}

static void select_all(sweep *s)
{
    for (int i = 0; i < 2; i++) {
        select_kinds(s, FK_STR("/user/worker3"), FK_STR("/user/worker*"));
        rig_run(&s->r);
    }
    token refused = make_token(s), many = make_token(s);
    CHECK_ERR(fk_select_send(s->r.sys, FK_STR("/user/a b"), (fk_out){ &fk_type_token, &refused }),
              FK_E_NAME);
    /* What owns something goes to one receiver. */
    fk_err err =
        fk_select_send(s->r.sys, FK_STR("/user/worker?"), (fk_out){ &fk_type_token, &many });
    CHECK(err == FK_E_INVALID || !note(s, err));
}

static fk_err call_select(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    token small = make_token(s);
    note(s, fk_select_tell(ctx, FK_STR("../worker*"), FK_MSG(num, 1)));
    note(s, fk_select_tell(ctx, FK_STR("../worker1"), (fk_out){ &fk_type_token, &small }));
    note(s, fk_select_tell(ctx, FK_STR("child"), FK_MSG(num, 2)));
    note(s, fk_select_tell(ctx, FK_STR("../worker*"), FK_IDENTIFY(1)));
    note(s, fk_select_tell(ctx, FK_STR("../nobody"), FK_IDENTIFY(2)));
    note(s, fk_tell(ctx, s->target, FK_IDENTIFY(3)));
    return FK_OK;
}

/* An answer that gets lost is one that never comes; else it comes, however slow the machine. */
static fk_err resolve_slowly(sweep *s, fk_str path, fk_ref *out)
{
    int64_t deadline = test_clock() + FK_SECONDS(20);
    fk_err err;
    do {
        err = fk_resolve_one(s->r.sys, path, FK_MILLIS(20), out);
    } while (err == FK_E_TIMEOUT && atomic_load(&s->r.refused) == 0 && test_clock() < deadline);
    return err;
}

static void resolve_one(sweep *s)
{
    for (int i = 0; i < 3; i++) {
        fk_ref found = FK_REF_NONE;
        fk_err err = resolve_slowly(s, FK_STR("/user/worker1"), &found);
        if (err == FK_OK) CHECK(fk_ref_equal(found, worker[1]));
        note(s, err == FK_E_TIMEOUT ? FK_E_NOMEM : err);
        err = resolve_slowly(s, FK_STR("/user/nobody"), &found);
        if (err == FK_E_PID_UNKNOWN) err = FK_OK;
        note(s, err == FK_E_TIMEOUT ? FK_E_NOMEM : err);
    }
}

static void count_authority(void *user, fk_str address, const fk_authority_info *info)
{
    (void)address;
    (void)info;
    ++*(int *)user;
}

/* Other systems: refs to their actors, messages that wait, and that are refused at last. */
static void write_to_others(sweep *s)
{
    static const char *const PATHS[] = { "fraktor.tcp://a@h:1/user/x",
                                         "fraktor.tcp://a@h:1/user/y#7",
                                         "fraktor.tcp://b@h:1/user/x" };
    for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
        fk_ref ref;
        if (!note(s, fk_resolve(s->r.sys, fk_str_of(PATHS[i]), &ref, NULL))) continue;
        for (int k = 0; k < 3; k++) {
            token t = make_token(s);
            note(s, fk_send(s->r.sys, ref, (fk_out){ &fk_type_token, &t }));
        }
    }
    for (int k = 0; k < 2; k++) {
        token t = make_token(s);
        note(s, fk_select_send(s->r.sys, FK_STR("fraktor.tcp://a@h:1/user/*#7"),
                               (fk_out){ &fk_type_token, &t }));
        note(s, fk_select_send(s->r.sys, FK_STR("fraktor.tcp://c@h:1/user/x?"), FK_MSG(num, 1)));
    }
    note(s, fk_authority_quarantine(s->r.sys, FK_STR("fraktor.tcp://a@h:1")));
    token late = make_token(s);
    fk_err err = fk_select_send(s->r.sys, FK_STR("fraktor.tcp://a@h:1/user/x"),
                                (fk_out){ &fk_type_token, &late });
    note(s, err == FK_E_QUARANTINED ? FK_OK : err);
    int count = 0;
    bool is_listed = note(s, fk_authority_each(s->r.sys, count_authority, &count));
    CHECK(is_listed || count == 0); /* all or none */
}

/* Those that are only met: they give way to each other, and a longer path needs more room. */
static void meet_others(sweep *s)
{
    static const char *const NAMES[] = { "x", "y", "z", "longer", "the-longest-of-them-all" };
    fk_remote *remote = fk__remote_of(s->r.sys);
    remote->proxies.met_max = 2;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        char text[64];
        fk_path path;
        fk_ref ref = FK_REF_NONE;
        int len = snprintf(text, sizeof(text), "fraktor.tcp://a@h:1/user/%s", NAMES[i]);
        CHECK_OK(fk_path_parse(NULL, (fk_str){ text, (size_t)len }, &path, NULL));
        fk_local *local = fk__local_enter(s->r.sys);
        bool ok = note(s, fk__remote_meet(remote, local, &path, &ref));
        fk__local_leave(local);
        fk__proxies_check(&remote->proxies);
        CHECK(ok == fk_is_alive(s->r.sys, ref));
        token t = make_token(s);
        if (ok)
            note(s, fk_send(s->r.sys, ref, (fk_out){ &fk_type_token, &t }));
        else
            token_drop(&t);
    }
}

static fk_err call_watch_others(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    for (int i = 0; i < WORKERS; i++) note(s, fk_watch(ctx, worker[i]));
    return FK_OK;
}

static fk_err watching(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sweep *s = state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end == NULL) return doer_receive(ctx, NULL, msg);
    CHECK(end->address_terminated);
    s->probe.count++;
    return FK_OK;
}

/* What is watched is told of however little there is. */
static void watch_others(sweep *s)
{
    rig_run(&s->r);
    CHECK_OK(fk_authority_quarantine(s->r.sys, FK_STR("fraktor.tcp://a@h:1")));
    rig_run(&s->r);
    CHECK_U64(s->probe.count, s->calls - s->failed);
    CHECK_U64(fk__remote_of(s->r.sys)->proxies.watched.count, 0);
}

static void prepare_watch_others(sweep *s)
{
    char text[64];
    for (int i = 0; i < WORKERS; i++) {
        int len = snprintf(text, sizeof(text), "fraktor.tcp://a@h:1/user/x%d", i);
        CHECK_OK(fk_resolve(s->r.sys, (fk_str){ text, (size_t)len }, &worker[i], NULL));
    }
    CHECK_OK(fk_authority_quarantine(s->r.sys, FK_STR("fraktor.tcp://other@h:1"))); /* the keeper */
    rig_run(&s->r);
    fk_props props = { .receive = watching, .state = s };
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
    CHECK_OK(fk_send(s->r.sys, s->target, FK_MSG(rig_call, call_watch_others, s)));
}

/* ---- preparing ---------------------------------------------------------------------------------- */

static fk_err idle_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_OK;
}

static void prepare_workers(sweep *s)
{
    char name[16];
    for (int i = 0; i < WORKERS; i++) {
        int len = snprintf(name, sizeof(name), "worker%d", i);
        CHECK_OK(fk_spawn(s->r.sys, (fk_str){ name, (size_t)len },
                          &(fk_props){ .receive = idle_receive }, &worker[i]));
    }
    fk_props props = { .receive = idle_receive };
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
}

static void prepare_select(sweep *s)
{
    prepare_workers(s);
    CHECK_OK(fk_send_from(s->r.sys, s->doer, s->target, FK_MSG(rig_call, call_select, s)));
}

static void run_ready(sweep *s)
{
    rig_run(&s->r);
}

const scenario SWEEP_PATHS[] = {
    { "paths of actors", prepare_workers, show_paths, 0 },
    { "claim uids", NULL, claim_uids, 0 },
    { "spawn with a uid", NULL, spawn_as, 0 },
    { "select", prepare_workers, select_all, 0 },
    { "select and identify from inside", prepare_select, run_ready, 0 },
    { "resolve one", prepare_workers, resolve_one, 2 },
    { "write to other systems", NULL, write_to_others, 0 },
    { "meet other systems", NULL, meet_others, 0 },
    { "watch other systems", prepare_watch_others, watch_others, 0 },
    { NULL, NULL, NULL, 0 },
};
