/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The conformance data for one outbound association of Artery (association_state.tsv: all rows),
 * run by Pekko's rules. Operations:
 *
 *   H<u> a handshake is completed with uid u      Q<u> quarantine is asked for, Q? without uid
 *   S    an ordinary message is sent              A    a selection is sent
 *   I<u> an inbound message of uid u              J<u> an inbound heartbeat of uid u
 *
 * I and J are questions to the state only: whether that uid is refused. That the answer to I is a
 * Quarantined message, and to J none, is the business of the inbound stream.
 */

#include <stdio.h>
#include <string.h>

#include "support/desk.h"

typedef struct vector {
    const char *id, *ops, *results, *state;
    uint64_t uid;
    uint32_t incarnation;
    const char *quarantined;
} vector;

static const vector VECTORS[] = {
    { "as005", "H1|H1", "ok|same", "known", 1, 1, "" },
    { "as006", "H1|Q1", "ok|quarantined", "quarantined", 1, 1, "1" },
    { "as007", "H1|Q1|S", "ok|quarantined|dropped", "quarantined", 1, 1, "1" },
    { "as008", "H1|Q1|A", "ok|quarantined|sent", "quarantined", 1, 1, "1" },
    { "as010", "H1|Q1|Q1", "ok|quarantined|already", "quarantined", 1, 1, "1" },
    { "as011", "H1|Q2", "ok|ignored", "known", 1, 1, "" },
    { "as012", "H1|Q2|S", "ok|ignored|sent", "known", 1, 1, "" },
    { "as013", "Q1", "ignored", "unknown", 0, 1, "" },
    { "as014", "Q1|S", "ignored|sent", "unknown", 0, 1, "" },
    { "as015", "Q?", "ignored", "unknown", 0, 1, "" },
    { "as016", "H1|Q?|S", "ok|ignored|sent", "known", 1, 1, "" },
    { "as019", "H1|Q1|H2", "ok|quarantined|new-incarnation", "known", 2, 2, "1" },
    { "as020", "H1|Q1|H2|S", "ok|quarantined|new-incarnation|sent", "known", 2, 2, "1" },
    { "as022", "H1|Q1|H2|Q1|S", "ok|quarantined|new-incarnation|ignored|sent", "known", 2, 2, "1" },
    { "as023", "H1|Q1|H1|S", "ok|quarantined|same|dropped", "quarantined", 1, 1, "1" },
    { "as024", "H1|Q1|H2|H1|S", "ok|quarantined|new-incarnation|new-incarnation|dropped",
      "quarantined", 1, 3, "1" },
    { "as025", "H1|Q1|H2|I1", "ok|quarantined|new-incarnation|drop+notify", "known", 2, 2, "1" },
    { "as027", "H1|I1", "ok|accepted", "known", 1, 1, "" },
    { "as028", "H1|Q1|I1", "ok|quarantined|drop+notify", "quarantined", 1, 1, "1" },
    { "as029", "H1|Q1|J1", "ok|quarantined|drop", "quarantined", 1, 1, "1" },
    { "as030", "H1|H2|I1", "ok|new-incarnation|accepted", "known", 2, 2, "" },
    { "as031", "H1|H2|H3|Q3|S", "ok|new-incarnation|new-incarnation|quarantined|dropped",
      "quarantined", 3, 3, "3" },
    { "as034", "H1|Q1|H2|Q2|H3|S|I1|I2|I3",
      "ok|quarantined|new-incarnation|quarantined|new-incarnation|sent|drop+notify|drop+notify|"
      "accepted",
      "known", 3, 3, "1|2" },
};

static desk d;

static const char *handshake(uint64_t uid)
{
    uint32_t before = d.a->incarnation;
    bool is_first = d.a->uid == 0;
    desk_handshake(&d, uid);
    if (is_first) return "ok";
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

static const char *apply(const char *op)
{
    uint64_t uid = op[0] != 'S' && op[0] != 'A' && op[1] != '?' ? (uint64_t)(op[1] - '0') : 0;
    switch (op[0]) {
    case 'H': return handshake(uid);
    case 'Q': return quarantine(uid);
    case 'S': return send_one(false);
    case 'A': return send_one(true);
    case 'I': return fk__authority_refuses(d.a, uid) ? "drop+notify" : "accepted";
    case 'J': return fk__authority_refuses(d.a, uid) ? "drop" : "accepted";
    default: return "?";
    }
}

static const char *state_name(void)
{
    if (d.a->state == QUARANTINE) return "quarantined";
    return d.a->uid != 0 ? "known" : "unknown";
}

static void check_vector(const vector *v)
{
    char results[200] = "", quarantined[100] = "";
    desk_init(&d, &(fk_authority_config){ .rules = FK_RULES_PEKKO });
    desk_map(&d);
    for (const char *op = v->ops; op != NULL; op = strchr(op, '|')) {
        if (*op == '|') op++;
        size_t len = strlen(results);
        snprintf(results + len, sizeof(results) - len, "%s%s", len == 0 ? "" : "|", apply(op));
        fk__authority_table_check(&d.table);
    }
    for (uint32_t i = 0; i < d.a->quarantined.count; i++) {
        size_t len = strlen(quarantined);
        snprintf(quarantined + len, sizeof(quarantined) - len, "%s%d", i == 0 ? "" : "|",
                 (int)d.a->quarantined.mark[i].uid);
    }
    printf("%s %s\n", v->id, v->ops);
    CHECK_STR(results, v->results);
    CHECK_STR(state_name(), v->state);
    CHECK_U64(d.a->uid, v->uid);
    CHECK_U64(d.a->incarnation, v->incarnation);
    CHECK_STR(quarantined, v->quarantined);
    desk_fini(&d);
}

TEST(vectors_of_association_states_hold_by_pekkos_rules)
{
    for (size_t i = 0; i < sizeof(VECTORS) / sizeof(VECTORS[0]); i++) check_vector(&VECTORS[i]);
}
