/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Each message of the protocol by itself: as it is written, read again, and what is refused. */

#include <stdlib.h>
#include <string.h>

#include "support/hex.h"
#include "support/test.h"
#include "support/tsv.h"
#include "wire/control.h"
#include "wire/sysmsg.h"

#define S(text)                                                                                    \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define HOST                                                                                       \
    {                                                                                              \
        .protocol = S("pekko"), .system = S("s"), .host = S("h"), .port = 1                        \
    }
#define UNIQUE                                                                                     \
    {                                                                                              \
        .address = HOST, .uid = 5                                                                  \
    }

/* What HOST and UNIQUE are written as. */
#define HOST_HEX   "0a0570656b6b6f1201731a01682001"
#define UNIQUE_HEX "0a0f" HOST_HEX "1005"

static fk_str block;

static fk_str bytes_of(const char *hex)
{
    free((void *)(uintptr_t)block.ptr);
    block = hex_bytes(fk_str_of(hex));
    return block;
}

static void check_bytes(const unsigned char *bytes, size_t size, const char *hex)
{
    char *text = hex_text((fk_str){ (const char *)bytes, size });
    CHECK_STR(text, hex);
    free(text);
}

static bool is_unique(const fk_wire_unique *u)
{
    return u->uid == 5 && u->address.port == 1 && tsv_equal(u->address.system, FK_STR("s")) &&
           tsv_equal(u->address.host, FK_STR("h")) &&
           tsv_equal(u->address.protocol, FK_STR("pekko"));
}

/* ---- control messages ------------------------------------------------------------------------ */

static fk_wire_control control_round(const fk_wire_control *control, const char *hex)
{
    unsigned char bytes[256];
    size_t size = fk__control_size(control);
    CHECK(size <= sizeof(bytes));
    fk__control_encode(control, bytes, size);
    check_bytes(bytes, size, hex);
    fk_wire_control out = { .kind = FK_CONTROL_NONE };
    CHECK_OK(fk__control_decode(fk__control_manifest(control->kind), bytes_of(hex), &out, NULL));
    CHECK_U64(out.kind, control->kind);
    return out;
}

static void check_control_refused(fk_control_kind kind, const char *hex, fk_err err, uint64_t at)
{
    fk_wire_control out = { .kind = FK_CONTROL_NONE };
    fk_wire_fault fault = { FK_OK, 0, NULL };
    CHECK_ERR(fk__control_decode(fk__control_manifest(kind), bytes_of(hex), &out, &fault), err);
    CHECK_ERR(fault.err, err);
    CHECK_U64(fault.at, at);
    CHECK_U64(out.kind, FK_CONTROL_NONE); /* untouched */
}

TEST(control_manifests_are_one_letter_each)
{
    fk_wire_control out;
    fk_wire_fault fault;
    for (unsigned kind = FK_CONTROL_NONE + 1; kind < FK_CONTROL_COUNT; kind++) {
        fk_str manifest = fk__control_manifest((fk_control_kind)kind);
        CHECK_U64(manifest.len, 1);
        CHECK_U64(manifest.ptr[0], 'a' + kind - 1);
    }
    static const char *const UNKNOWN[] = { "", "q", "`", "A", "aa", "z" };
    for (size_t i = 0; i < 6; i++) {
        fk_str manifest = fk_str_of(UNKNOWN[i]);
        CHECK_ERR(fk__control_decode(manifest, FK_STR(""), &out, &fault), FK_E_NO_CODEC);
        CHECK_ERR(fault.err, FK_E_NO_CODEC);
    }
}

TEST(control_quarantined)
{
    fk_wire_control out =
        control_round(&(fk_wire_control){ FK_CONTROL_QUARANTINED,
                                          { .quarantined = { .from = UNIQUE, .to = UNIQUE } } },
                      "0a13" UNIQUE_HEX "1213" UNIQUE_HEX);
    CHECK(is_unique(&out.as.quarantined.from) && is_unique(&out.as.quarantined.to));
    check_control_refused(FK_CONTROL_QUARANTINED, "0a13" UNIQUE_HEX, FK_E_MALFORMED, 21);
}

TEST(control_messages_with_an_address)
{
    static const fk_control_kind KINDS[] = { FK_CONTROL_TERMINATING, FK_CONTROL_TERMINATING_ACK,
                                             FK_CONTROL_HANDSHAKE_RSP };
    for (size_t i = 0; i < 3; i++) {
        fk_wire_control out = control_round(
            &(fk_wire_control){ KINDS[i], { .from = { .from = UNIQUE } } }, "0a13" UNIQUE_HEX);
        CHECK(is_unique(&out.as.from.from));
        check_control_refused(KINDS[i], "", FK_E_MALFORMED, 0);
    }
}

TEST(control_handshake_request)
{
    fk_wire_control out =
        control_round(&(fk_wire_control){ FK_CONTROL_HANDSHAKE_REQ,
                                          { .handshake = { .from = UNIQUE, .to = HOST } } },
                      "0a13" UNIQUE_HEX "120f" HOST_HEX);
    CHECK(is_unique(&out.as.handshake.from));
    CHECK(tsv_equal(out.as.handshake.to.host, FK_STR("h")));
    /* a port that is none */
    check_control_refused(FK_CONTROL_HANDSHAKE_RSP,
                          "0a15 0a11 0a0570656b6b6f1201731a016820808004 1005", FK_E_MALFORMED, 17);
}

TEST(control_tables_and_their_acks)
{
    static const fk_str KEYS[] = { S("one"), S("two") };
    static const uint32_t VALUES[] = { 0, 65535 };
    static const fk_control_kind KINDS[] = { FK_CONTROL_REF_TABLE, FK_CONTROL_MANIFEST_TABLE };
    for (size_t i = 0; i < 2; i++) {
        fk_wire_control out = control_round(
            &(fk_wire_control){ KINDS[i],
                                { .table = { .from = UNIQUE,
                                             .origin_uid = 9,
                                             .version = 127,
                                             .keys = { .count = 2, .items = KEYS },
                                             .values = { .count = 2, .items = VALUES } } } },
            "0a13" UNIQUE_HEX "1009187f22036f6e652203747"
            "76f280028ffff03");
        fk_wire_pair pair = { 0 };
        CHECK_U64(out.as.table.origin_uid, 9);
        CHECK(fk__advertisement_next(&out.as.table, &pair));
        CHECK(tsv_equal(pair.key, KEYS[0]) && pair.value == 0);
        CHECK(fk__advertisement_next(&out.as.table, &pair));
        CHECK(tsv_equal(pair.key, KEYS[1]) && pair.value == 65535);
        CHECK(!fk__advertisement_next(&out.as.table, &pair));
        out = control_round(&(fk_wire_control){ (fk_control_kind)(KINDS[i] + 1),
                                                { .table_ack = { .from = UNIQUE, .version = 3 } } },
                            "0a13" UNIQUE_HEX "1003");
        CHECK_U64(out.as.table_ack.version, 3);
    }
    check_control_refused(FK_CONTROL_REF_TABLE, "0a13" UNIQUE_HEX "1009 1801 220161",
                          FK_E_MALFORMED, 28);
    check_control_refused(FK_CONTROL_REF_TABLE, "0a13" UNIQUE_HEX "1009 1801 2800", FK_E_MALFORMED,
                          27);
    check_control_refused(FK_CONTROL_REF_TABLE, "0a13" UNIQUE_HEX "1009 188001", FK_E_MALFORMED,
                          23);
    check_control_refused(FK_CONTROL_REF_TABLE, "0a13" UNIQUE_HEX "1009 1801 220161 28808004",
                          FK_E_MALFORMED, 28);
}

TEST(control_system_message_and_acks)
{
    fk_wire_control out = control_round(
        &(fk_wire_control){ FK_CONTROL_SYSTEM_MESSAGE,
                            { .system_message = { .message = S("xyz"),
                                                  .serializer = -3,
                                                  .manifest = S("M"),
                                                  .seq = UINT64_MAX,
                                                  .ack_to = UNIQUE } } },
        "0a0378797a10fdffffffffffffffff011a014d20ffffffffffffffffff012a13" UNIQUE_HEX);
    CHECK(out.as.system_message.serializer == -3);
    CHECK_U64(out.as.system_message.seq, UINT64_MAX);
    CHECK(tsv_equal(out.as.system_message.message, FK_STR("xyz")));
    CHECK(tsv_equal(out.as.system_message.manifest, FK_STR("M")));
    CHECK(is_unique(&out.as.system_message.ack_to));
    for (unsigned kind = FK_CONTROL_ACK; kind <= FK_CONTROL_NACK; kind++) {
        out = control_round(
            &(fk_wire_control){ (fk_control_kind)kind, { .ack = { .seq = 300, .from = UNIQUE } } },
            "08ac021213" UNIQUE_HEX);
        CHECK_U64(out.as.ack.seq, 300);
        CHECK(is_unique(&out.as.ack.from));
    }
}

TEST(control_heartbeats_and_flush)
{
    (void)control_round(&(fk_wire_control){ .kind = FK_CONTROL_HEARTBEAT }, "");
    (void)control_round(&(fk_wire_control){ .kind = FK_CONTROL_FLUSH }, "");
    fk_wire_control out = control_round(
        &(fk_wire_control){ FK_CONTROL_HEARTBEAT_RSP, { .heartbeat_rsp = { .uid = 77 } } }, "084d");
    CHECK_U64(out.as.heartbeat_rsp.uid, 77);
    out = control_round(
        &(fk_wire_control){ FK_CONTROL_FLUSH_ACK, { .flush_ack = { .expected = 0 } } }, "0800");
    CHECK_U64(out.as.flush_ack.expected, 0);
    /* from those who do not say how many */
    CHECK_OK(fk__control_decode(FK_STR("p"), FK_STR(""), &out, NULL));
    CHECK_U64(out.as.flush_ack.expected, 1);
}

/* ---- system messages ------------------------------------------------------------------------- */

static fk_wire_sysmsg sysmsg_round(const fk_wire_sysmsg *message, const char *hex)
{
    unsigned char bytes[256];
    fk_wire_sysmsg out;
    size_t size = fk__sysmsg_size(message);
    CHECK(size <= sizeof(bytes));
    fk__sysmsg_encode(message, bytes, size);
    check_bytes(bytes, size, hex);
    CHECK_OK(fk__sysmsg_decode(bytes_of(hex), &out, NULL));
    CHECK_U64(out.kind, message->kind);
    return out;
}

#define REF(text)                                                                                  \
    {                                                                                              \
        .path = S(text)                                                                            \
    }
#define CAUSE                                                                                      \
    {                                                                                              \
        .message = S("c"), .serializer = 16, .manifest = S("F")                                    \
    }
#define CAUSE_HEX                                                                                  \
    "1a080a0163101022"                                                                             \
    "0146"

TEST(sysmsg_of_each_kind)
{
    static const fk_wire_sysmsg WATCH = { .kind = FK_SYSMSG_WATCH,
                                          .watch = { .watchee = REF("a"), .watcher = REF("b") } };
    fk_wire_sysmsg out = sysmsg_round(&WATCH, "0806120a0a030a016112030a0162");
    CHECK(tsv_equal(out.watch.watchee.path, FK_STR("a")));
    CHECK(tsv_equal(out.watch.watcher.path, FK_STR("b")));
    fk_wire_sysmsg unwatch = WATCH;
    unwatch.kind = FK_SYSMSG_UNWATCH;
    (void)sysmsg_round(&unwatch, "0807120a0a030a016112030a0162");
    (void)sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_CREATE }, "0800");
    (void)sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_CREATE, .cause = CAUSE },
                       "0800" CAUSE_HEX);
    (void)sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_RECREATE, .cause = CAUSE },
                       "0801" CAUSE_HEX);
    (void)sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_SUSPEND }, "0802");
    (void)sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_RESUME, .cause = CAUSE },
                       "0803" CAUSE_HEX);
    (void)sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_TERMINATE }, "0804");
    out = sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_SUPERVISE,
                                          .supervise = { .child = REF("a"), .is_async = true } },
                       "08052a070a030a01611001");
    CHECK(out.supervise.is_async);
    out = sysmsg_round(&(fk_wire_sysmsg){ .kind = FK_SYSMSG_FAILED,
                                          .cause = CAUSE,
                                          .failed = { .child = REF("a"), .uid = 7 } },
                       "0808" CAUSE_HEX "32070a030a01611007");
    CHECK_U64(out.failed.uid, 7);
    CHECK(tsv_equal(out.cause.manifest, FK_STR("F")));
    out = sysmsg_round(
        &(fk_wire_sysmsg){ .kind = FK_SYSMSG_DEATH,
                           .death = { .actor = REF("a"), .existence_confirmed = true } },
        "08093a090a030a016110011800");
    CHECK(out.death.existence_confirmed && !out.death.address_terminated);
}

TEST(sysmsg_without_what_its_kind_needs_is_refused)
{
    static const char HALF[] = "0808" CAUSE_HEX;
    static const char *const LACKING[] = {
        "0801",
        "0803",
        "0805",
        "0806",
        "0807",
        "0808",
        "0809", /* the kind and nothing else */
        HALF,
        "080832070a030a01611007", /* the one or the other half */
        "080a",
        "08ffffffff0f",
        "",                         /* no kind at all */
        "0806 1a080a01631010220146" /* another kind's part */
    };
    for (size_t i = 0; i < sizeof(LACKING) / sizeof(LACKING[0]); i++) {
        fk_wire_sysmsg out = { .kind = 99 };
        fk_wire_fault fault = { FK_OK, 0, NULL };
        CHECK_ERR(fk__sysmsg_decode(bytes_of(LACKING[i]), &out, &fault), FK_E_MALFORMED);
        CHECK_ERR(fault.err, FK_E_MALFORMED);
        CHECK_U64(out.kind, 99);
    }
}

/* ---- selections and the rest ------------------------------------------------------------------ */

TEST(selection_patterns_are_checked_with_it)
{
    fk_wire_selection out;
    fk_wire_pattern pattern;
    size_t cursor = 0;
    fk_wire_fault fault = { FK_OK, 0, NULL };
    CHECK_OK(fk__selection_decode(bytes_of("0a00 1004 1a020800 1a050801120161"), &out, &fault));
    CHECK(!out.fan_out); /* from those who do not say */
    CHECK_U64(out.patterns.count, 2);
    CHECK(fk__selection_next(&out, &cursor, &pattern));
    CHECK_U64(pattern.kind, FK_PATTERN_PARENT);
    CHECK(fk__selection_next(&out, &cursor, &pattern));
    CHECK(pattern.kind == FK_PATTERN_NAME && tsv_equal(pattern.text, FK_STR("a")));
    CHECK(!fk__selection_next(&out, &cursor, &pattern));
    CHECK_ERR(fk__selection_decode(bytes_of("0a00 1004 1a020801"), &out, &fault), FK_E_MALFORMED);
    CHECK_U64(fault.at, 8);
    CHECK_ERR(fk__selection_decode(bytes_of("0a00 1004 1a0408011200"), &out, &fault),
              FK_E_MALFORMED);
    CHECK_U64(fault.at, 10); /* an empty name, which nobody has */
    CHECK_ERR(fk__selection_decode(bytes_of("0a00 1004 1a020803"), &out, &fault), FK_E_MALFORMED);
    CHECK_U64(fault.at, 6);
    CHECK_ERR(fk__selection_decode(bytes_of("0a00 1004 1a0108"), &out, &fault), FK_E_TRUNCATED);
    CHECK_U64(fault.at, 7);
}

static fk_wire_misc misc_round(const fk_wire_misc *misc, const char *manifest, const char *hex)
{
    unsigned char bytes[256];
    fk_wire_misc out;
    size_t size = fk__misc_size(misc);
    CHECK(size <= sizeof(bytes));
    fk__misc_encode(misc, bytes, size);
    check_bytes(bytes, size, hex);
    CHECK(tsv_equal(fk__misc_manifest(misc->kind), fk_str_of(manifest)));
    CHECK_OK(fk__misc_decode(fk_str_of(manifest), bytes_of(hex), &out, NULL));
    CHECK_U64(out.kind, misc->kind);
    return out;
}

TEST(misc_of_each_kind)
{
    fk_wire_payload id = { .message = S("1"), .serializer = 20 };
    fk_wire_misc out = misc_round(&(fk_wire_misc){ FK_MISC_IDENTIFY, { .identify = { .id = id } } },
                                  "A", "0a050a01311014");
    CHECK(tsv_equal(out.as.identify.id.message, FK_STR("1")));
    out = misc_round(
        &(fk_wire_misc){ FK_MISC_IDENTITY, { .identity = { .id = id, .ref = REF("r") } } }, "B",
        "0a050a0131101412030a0172");
    CHECK(tsv_equal(out.as.identity.ref.path, FK_STR("r")));
    out = misc_round(&(fk_wire_misc){ FK_MISC_IDENTITY, { .identity = { .id = id } } }, "B",
                     "0a050a01311014");
    CHECK(out.as.identity.ref.path.ptr == NULL);
    (void)misc_round(&(fk_wire_misc){ FK_MISC_SUCCESS, { .status = id } }, "D", "0a01311014");
    (void)misc_round(&(fk_wire_misc){ FK_MISC_FAILURE, { .status = id } }, "E", "0a01311014");
    out = misc_round(&(fk_wire_misc){ FK_MISC_REF, { .ref = REF("r") } }, "G", "0a0172");
    CHECK(tsv_equal(out.as.ref.path, FK_STR("r")));
    (void)misc_round(&(fk_wire_misc){ .kind = FK_MISC_KILL }, "K", "");
    (void)misc_round(&(fk_wire_misc){ .kind = FK_MISC_POISON }, "P", "");
    out =
        misc_round(&(fk_wire_misc){ FK_MISC_THROWABLE,
                                    { .throwable = { .class_name = S("C"), .message = S("m") } } },
                   "F", "0a014312016d");
    CHECK(tsv_equal(out.as.throwable.message, FK_STR("m")));
    (void)misc_round(
        &(fk_wire_misc){ FK_MISC_NOT_SERIALIZABLE,
                         { .not_serializable = { .message = S("m"), .original_class = S("C") } } },
        "TNSEX", "0a016d12001a0143");
    fk_wire_fault fault;
    CHECK_ERR(fk__misc_decode(FK_STR("RWHB"), FK_STR(""), &out, &fault), FK_E_NO_CODEC);
    CHECK_ERR(fk__misc_decode(FK_STR(""), FK_STR(""), &out, NULL), FK_E_NO_CODEC);
}
