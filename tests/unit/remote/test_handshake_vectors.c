/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The conformance data for one outbound association of Artery, association_state.tsv: all rows, run
 * by Pekko's rules through the door. Operations:
 *
 *   H<u> a handshake is completed with uid u      Q<u> quarantine is asked for, Q? without uid
 *   S    an ordinary message is sent              A    a selection is sent
 *   I<u> an inbound message of uid u              J<u> an inbound heartbeat of uid u
 */

#include <stdio.h>
#include <string.h>

#include "remote/handshake.h"
#include "support/desk.h"
#include "support/tsv.h"

#define TABLE FK_SOURCE_DIR "/tests/vectors/association_state.tsv"

enum { BUCKETS = 4, ITEMS = 16 };

static desk d;
static fk_door door;
static fk_origin *bucket[BUCKETS];
static fk_peer peer;
static tsv t;

static void begin(void)
{
    desk_init(&d, &(fk_authority_config){ .rules = FK_RULES_PEKKO });
    memset(bucket, 0, sizeof(bucket));
    door = (fk_door){ .table = &d.table,
                      .own = { FK_STR("us"), FK_STR("here"), 2551 },
                      .own_uid = 99 };
    fk__origins_init(&door.origins, bucket, BUCKETS, 1);
    fk__peer_init(&peer, d.a);
}

static const char *handshake(uint64_t uid)
{
    fk_door_effects fx;
    uint32_t before = d.a->incarnation;
    bool is_first = d.a->uid == 0;
    CHECK(fk__door_knock(&door, &DESK_KEY, &door.own, d.now, &fx) == FK_DOOR_RESULT_ACCEPTED);
    fk_door_result result = fk__door_accept(&door, &peer, uid, true, d.now, &fx);
    bool is_refused = fk__authority_refuses(d.a, uid);
    CHECK(result == (is_refused ? FK_DOOR_RESULT_QUARANTINED : FK_DOOR_RESULT_ACCEPTED));
    if (is_first) return "ok";
    CHECK(fx.authority.is_new_peer == (d.a->incarnation != before));
    return d.a->incarnation != before ? "new-incarnation" : "same";
}

static const char *quarantine(uint64_t uid)
{
    switch (desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, uid)) {
    case FK_AUTHORITY_RESULT_DONE: return "quarantined";
    case FK_AUTHORITY_RESULT_SAME: return "already";
    default: return "ignored";
    }
}

static const char *send_one(bool pierces)
{
    bool is_deferred;
    fk_err err = fk__authority_send(&d.table, d.a, &d.letters[d.sent].link, pierces, &is_deferred);
    if (err == FK_OK) d.sent++;
    return err == FK_OK ? "sent" : "dropped";
}

static const char *receive(uint64_t uid, bool is_heartbeat)
{
    fk_origin *origin;
    bool must_notify;
    fk_door_result result = fk__door_admit(&door, uid, is_heartbeat, &origin, &must_notify);
    if (result == FK_DOOR_RESULT_ACCEPTED) return "accepted";
    CHECK(result == FK_DOOR_RESULT_QUARANTINED);
    return must_notify ? "drop+notify" : "drop";
}

static const char *apply(fk_str op)
{
    uint64_t uid = op.len > 1 && op.ptr[1] != '?' ? (uint64_t)(op.ptr[1] - '0') : 0;
    switch (op.ptr[0]) {
    case 'H': return handshake(uid);
    case 'Q': return quarantine(uid);
    case 'S': return send_one(false);
    case 'A': return send_one(true);
    case 'I': return receive(uid, false);
    case 'J': return receive(uid, true);
    default: return "?";
    }
}

static const char *state_name(void)
{
    if (d.a->state == QUARANTINE) return "quarantined";
    return d.a->uid != 0 ? "known" : "unknown";
}

static void check_number(const char *column, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    if (number == 0 && tsv_is(&t, column, "\\N")) return;
    if (!tsv_is(&t, column, text)) test_failed(TABLE, (int)t.line, "%s is %s", column, text);
}

static void check_row(void)
{
    fk_str ops[ITEMS], results[ITEMS], uids[ITEMS];
    size_t count = tsv_list(&t, "ops", ops, ITEMS);
    CHECK_U64(tsv_list(&t, "results", results, ITEMS), count);
    for (size_t i = 0; i < count; i++) {
        const char *result = apply(ops[i]);
        fk__authority_table_check(&d.table);
        if (tsv_equal(fk_str_of(result), results[i])) continue;
        test_failed(TABLE, (int)t.line, "operation %zu: %s", i + 1, result);
    }
    CHECK(tsv_is(&t, "final_state", state_name()));
    check_number("final_uid", d.a->uid);
    check_number("incarnation", d.a->incarnation);
    CHECK_U64(tsv_list(&t, "quarantined_uids", uids, ITEMS), d.a->quarantined.count);
    for (uint32_t i = 0; i < d.a->quarantined.count; i++) {
        CHECK_U64((uint64_t)(uids[i].ptr[0] - '0'), d.a->quarantined.mark[i].uid);
    }
}

TEST(vectors_of_association_states_hold_by_pekkos_rules)
{
    size_t rows = 0;
    for (tsv_open(&t, TABLE); tsv_next(&t); rows++) {
        begin();
        check_row();
        desk_fini(&d);
    }
    CHECK(rows >= 23);
}
