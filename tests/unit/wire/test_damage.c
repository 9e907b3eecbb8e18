/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Everything that can be read, damaged in each of the simple ways: cut after each byte, and each
 * byte changed to every other value. Whatever comes out, wire_read() checks that it makes sense;
 * each input is a block of just its size, so that a sanitizer sees a read beside it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fraktor/codec.h"
#include "support/hex.h"
#include "support/test.h"
#include "support/tsv.h"
#include "support/wire_reader.h"
#include "wire/frame.h"

#define HOST   "0a0570656b6b6f1201731a01682001"
#define UNIQUE "0a0f" HOST "1005"
#define CAUSE  "1a080a01631010220146"

static const struct {
    wire_kind kind;
    const char *manifest;
    const char *hex;
} SAMPLES[] = {
    { WIRE_CONTROL, "a", "0a13" UNIQUE "1213" UNIQUE },
    { WIRE_CONTROL, "b", "0a13" UNIQUE },
    { WIRE_CONTROL, "c", "0a13" UNIQUE },
    { WIRE_CONTROL, "d", "0a13" UNIQUE "120f" HOST },
    { WIRE_CONTROL, "e", "0a13" UNIQUE },
    { WIRE_CONTROL, "f", "0a13" UNIQUE "1009187f22036f6e65220374776f280028ffff03" },
    { WIRE_CONTROL, "g", "0a13" UNIQUE "1003" },
    { WIRE_CONTROL, "h", "0a13" UNIQUE "100918012200220178280028ac02" },
    { WIRE_CONTROL, "i", "0a13" UNIQUE "1003" },
    { WIRE_CONTROL, "j",
      "0a0378797a10fdffffffffffffffff011a014d20ffffffffffffffffff012a13" UNIQUE },
    { WIRE_CONTROL, "k", "08ac021213" UNIQUE },
    { WIRE_CONTROL, "l", "08ac021213" UNIQUE },
    { WIRE_CONTROL, "m", "" },
    { WIRE_CONTROL, "n", "084d" },
    { WIRE_CONTROL, "o", "" },
    { WIRE_CONTROL, "p", "0804" },
    { WIRE_CONTROL, "n", "50ffffffffffffffffff015101020304050607085d010203045a02ffff084d" },
    { WIRE_SYSMSG, "", "0800" CAUSE },
    { WIRE_SYSMSG, "", "0802" },
    { WIRE_SYSMSG, "", "0806120a0a030a016112030a0162" },
    { WIRE_SYSMSG, "", "08052a070a030a01611001" },
    { WIRE_SYSMSG, "", "0808" CAUSE "32070a030a01611007" },
    { WIRE_SYSMSG, "", "08093a090a030a016110011800" },
    { WIRE_SELECTION, "", "0a02686910141a0208001a0608021202612a2201782801" },
    { WIRE_MISC, "A", "0a050a01311014" },
    { WIRE_MISC, "B", "0a050a0131101412030a0172" },
    { WIRE_MISC, "D", "0a01311014220146" },
    { WIRE_MISC, "E", "0a01311014" },
    { WIRE_MISC, "F", "0a014312016d" },
    { WIRE_MISC, "G", "0a0172" },
    { WIRE_MISC, "K", "" },
    { WIRE_MISC, "P", "" },
    { WIRE_MISC, "TNSEX", "0a016d12001a0143" },
    { WIRE_ENVELOPE, "",
      "00010a0b 0700000000000000 14000000 23000000 010000ff 2a000000 03000000616263"
      "05002f75736572 02006d6d 7061796c6f6164" },
    { WIRE_STRUCT, "", NULL },
};

static uint64_t accepted, refused;

static void read_copy(wire_kind kind, fk_str manifest, fk_str bytes)
{
    char *copy = malloc(bytes.len > 0 ? bytes.len : 1);
    if (bytes.len > 0) memcpy(copy, bytes.ptr, bytes.len);
    fk_err err = wire_read(kind, manifest, (fk_str){ copy, bytes.len });
    free(copy);
    accepted += err == FK_OK;
    refused += err != FK_OK;
}

static void damage(wire_kind kind, fk_str manifest, fk_str bytes)
{
    char *changed = malloc(bytes.len + 1);
    for (size_t len = 0; len <= bytes.len; len++) {
        read_copy(kind, manifest, (fk_str){ bytes.ptr, len });
    }
    for (size_t i = 0; i < bytes.len; i++) {
        memcpy(changed, bytes.ptr, bytes.len);
        for (unsigned by = 1; by < 256; by++) {
            changed[i] = (char)((unsigned char)bytes.ptr[i] ^ by);
            read_copy(kind, manifest, (fk_str){ changed, bytes.len });
        }
    }
    free(changed);
}

static fk_str struct_bytes(void)
{
    size_t size;
    static unsigned char message[64] = { 1 };
    size_t len = wire_codec->type->size;
    CHECK_OK(fk_codec_measure(wire_codec, message, len, &size));
    unsigned char *bytes = malloc(size);
    CHECK_OK(fk_codec_encode(wire_codec, message, len, bytes, size));
    return (fk_str){ (const char *)bytes, size };
}

TEST(damage_to_each_message_is_handled)
{
    for (size_t i = 0; i < sizeof(SAMPLES) / sizeof(SAMPLES[0]); i++) {
        fk_str bytes =
            SAMPLES[i].hex != NULL ? hex_bytes(fk_str_of(SAMPLES[i].hex)) : struct_bytes();
        CHECK_OK(wire_read(SAMPLES[i].kind, fk_str_of(SAMPLES[i].manifest), bytes));
        damage(SAMPLES[i].kind, fk_str_of(SAMPLES[i].manifest), bytes);
        free((void *)(uintptr_t)bytes.ptr);
    }
    printf("%llu accepted, %llu refused\n", (unsigned long long)accepted,
           (unsigned long long)refused);
    CHECK(accepted > 1000);
    CHECK(refused > 1000);
}

/* Row by row of the conformance data. */
TEST(damage_to_each_vector_is_handled)
{
    static tsv t;
    tsv_open(&t, FK_SOURCE_DIR "/tests/vectors/artery_frame.tsv");
    while (tsv_next(&t)) {
        bool is_frame = tsv_is(&t, "kind", "frame");
        fk_str bytes = hex_bytes(tsv_text(&t, "hex"));
        fk_str envelope = bytes;
        if (is_frame) {
            envelope.ptr += FK_FRAME_HEADER;
            envelope.len -= FK_FRAME_HEADER;
        }
        if (is_frame || tsv_is(&t, "kind", "envelope-header")) {
            damage(WIRE_ENVELOPE, FK_STR(""), envelope);
        } else if (tsv_is(&t, "kind", "proto")) {
            damage(WIRE_CONTROL, FK_STR("d"), bytes);
            damage(WIRE_CONTROL, FK_STR("h"), bytes);
            damage(WIRE_SYSMSG, FK_STR(""), bytes);
            damage(WIRE_SELECTION, FK_STR(""), bytes);
        }
        free((void *)(uintptr_t)bytes.ptr);
    }
}

/* A stream with each byte changed, and cut at each place. */
TEST(damage_to_a_stream_is_handled_however_it_is_cut)
{
    fk_str whole = FK_STR("PEKK\2\3\0\0\0abc\7\0\0\0defghij\1\0\0\0k");
    char changed[64];
    for (size_t i = 0; i < whole.len; i++) {
        memcpy(changed, whole.ptr, whole.len);
        for (unsigned by = 1; by < 256; by++) {
            changed[i] = (char)((unsigned char)whole.ptr[i] ^ by);
            fk_str bytes = { changed, whole.len };
            wire_outcome expected = wire_stream(bytes, (size_t[]){ 0 }, 64);
            for (size_t cut = 1; cut < whole.len; cut += by % 3 + 1) {
                wire_outcome outcome = wire_stream(bytes, (size_t[]){ cut, 0 }, 64);
                CHECK_ERR(outcome.err, expected.err);
                CHECK_U64(outcome.at, expected.at);
                CHECK_U64(outcome.frames, expected.frames);
                CHECK_U64(outcome.checksum, expected.checksum);
            }
        }
    }
}
