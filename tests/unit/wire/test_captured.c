/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Frames that a Pekko node has sent (artery_captured.tsv; or the table that FK_CAPTURED names, as
 * interop/pekko makes one of each run): what is read from them and written again must be the same
 * bytes, down to the innermost message.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/hex.h"
#include "support/test.h"
#include "support/tsv.h"
#include "support/wire_reader.h"
#include "wire/control.h"
#include "wire/envelope.h"
#include "wire/sysmsg.h"

static void check_message(const char *id, int32_t serializer, fk_str manifest, fk_str bytes);

static void check_rewritten(const char *id, wire_kind kind, fk_str manifest, fk_str bytes)
{
    fk_err err = wire_read(kind, manifest, bytes);
    if (err != FK_OK) {
        test_failed(__FILE__, __LINE__, "%s: kind %d, manifest %.*s: refused (error %d)", id,
                    (int)kind, (int)manifest.len, manifest.ptr, (int)err);
    }
    fk_str again = wire_rewrite(kind, manifest, bytes);
    if (!tsv_equal(again, bytes)) {
        test_failed(__FILE__, __LINE__, "%s: kind %d, manifest %.*s\n   came %s\nwritten %s", id,
                    (int)kind, (int)manifest.len, manifest.ptr, hex_text(bytes), hex_text(again));
    }
    free((void *)(uintptr_t)again.ptr);
}

static void check_control(const char *id, fk_str manifest, fk_str bytes)
{
    fk_wire_control control;
    check_rewritten(id, WIRE_CONTROL, manifest, bytes);
    CHECK_OK(fk__control_decode(manifest, bytes, &control, NULL));
    if (control.kind != FK_CONTROL_SYSTEM_MESSAGE) return;
    const fk_wire_numbered *numbered = &control.as.system_message;
    check_message(id, numbered->serializer, numbered->manifest, numbered->message);
}

static void check_selection(const char *id, fk_str bytes)
{
    fk_wire_selection selection;
    check_rewritten(id, WIRE_SELECTION, FK_STR(""), bytes);
    CHECK_OK(fk__selection_decode(bytes, &selection, NULL));
    check_message(id, selection.serializer, selection.manifest, selection.message);
}

static void check_misc(const char *id, fk_str manifest, fk_str bytes)
{
    fk_wire_misc misc;
    check_rewritten(id, WIRE_MISC, manifest, bytes);
    CHECK_OK(fk__misc_decode(manifest, bytes, &misc, NULL));
    const fk_wire_payload *inner = NULL;
    if (misc.kind == FK_MISC_IDENTIFY) inner = &misc.as.identify.id;
    if (misc.kind == FK_MISC_IDENTITY) inner = &misc.as.identity.id;
    if (inner != NULL) check_message(id, inner->serializer, inner->manifest, inner->message);
}

/* Values (strings, numbers) are their bytes; they are not for this test. */
static void check_message(const char *id, int32_t serializer, fk_str manifest, fk_str bytes)
{
    switch (serializer) {
    case FK_SERIALIZER_CONTROL: check_control(id, manifest, bytes); break;
    case FK_SERIALIZER_SYSMSG: check_rewritten(id, WIRE_SYSMSG, manifest, bytes); break;
    case FK_SERIALIZER_SELECTION: check_selection(id, bytes); break;
    case FK_SERIALIZER_MISC: check_misc(id, manifest, bytes); break;
    default: break;
    }
}

static void check_frame(const char *id, fk_str frame)
{
    fk_wire_envelope e;
    fk_wire_fault fault = { FK_OK, 0, NULL };
    size_t size = 0;
    CHECK(frame.len > FK_FRAME_HEADER);
    fk_str envelope = { frame.ptr + FK_FRAME_HEADER, frame.len - FK_FRAME_HEADER };
    if (fk__envelope_decode(envelope, &e, &fault) != FK_OK) {
        test_failed(__FILE__, __LINE__, "%s: at %u: %s", id, (unsigned)fault.at, fault.message);
    }
    CHECK_OK(fk__frame_size(&e, FK_FRAME_MAX_LARGE, &size));
    unsigned char *made = malloc(size);
    CHECK(made != NULL);
    fk__frame_encode(&e, made);
    fk_str again = { (const char *)made, size };
    if (!tsv_equal(again, frame)) {
        test_failed(__FILE__, __LINE__, "%s\n   came %s\nwritten %s", id, hex_text(frame),
                    hex_text(again));
    }
    free(made);
    /* A manifest by table: which one only those two know. */
    if (!e.manifest.is_compressed) check_message(id, e.serializer, e.manifest.text, e.payload);
}

static void check_connection(const char *id, fk_str bytes)
{
    fk_deframer d;
    fk_str rest = bytes, frame;
    unsigned char made[FK_CONNECTION_HEADER];
    fk__deframer_init(&d);
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), FK_DEFRAME_STREAM);
    fk__connection_header_write(d.magic, d.stream, made);
    if (!tsv_equal((fk_str){ (const char *)made, sizeof(made) }, bytes)) {
        test_failed(__FILE__, __LINE__, "%s", id);
    }
}

TEST(captured_frames_are_read_and_written_as_they_came)
{
    static tsv t;
    const char *file = getenv("FK_CAPTURED");
    tsv_open(&t, file != NULL ? file : FK_SOURCE_DIR "/tests/vectors/artery_captured.tsv");
    while (tsv_next(&t)) {
        char id[160];
        fk_str what = tsv_raw(&t, "what"), number = tsv_raw(&t, "id");
        snprintf(id, sizeof(id), "%.*s %.*s", (int)number.len, number.ptr, (int)what.len, what.ptr);
        fk_str bytes = hex_bytes(tsv_text(&t, "hex"));
        CHECK_U64(bytes.len, strtoul(tsv_raw(&t, "length").ptr, NULL, 10));
        if (tsv_is(&t, "kind", "connection-header"))
            check_connection(id, bytes);
        else
            check_frame(id, bytes);
        free((void *)(uintptr_t)bytes.ptr);
    }
    CHECK(t.rows > 0);
}
