/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_WIRE_READER_H
#define FK_TESTS_SUPPORT_WIRE_READER_H

/*
 * Reads bytes as one of the things that the wire has, whatever the bytes are, and checks what must
 * then hold: a fault that lies in the bytes and has a reason; or views that lie in them, and a
 * message that is written as it was measured, read again as the same, and then written as the same.
 * Anything else ends the program. No test framework: fuzz targets use it, too.
 */

#include "fraktor/base.h"

typedef enum wire_kind {
    WIRE_ENVELOPE = 0,
    WIRE_CONTROL,
    WIRE_SYSMSG,
    WIRE_SELECTION,
    WIRE_MISC,
    WIRE_STRUCT, /* of wire_codec */
    WIRE_KIND_COUNT,
} wire_kind;

/* manifest: of WIRE_CONTROL and WIRE_MISC. */
fk_err wire_read(wire_kind kind, fk_str manifest, fk_str bytes);

/* Reads a message (not an envelope, not a struct), which must succeed, and writes it again. The
 * caller frees the text's pointer. */
fk_str wire_rewrite(wire_kind kind, fk_str manifest, fk_str bytes);

/* A whole stream in pieces: each cut is where one ends and the next begins, 0 the end of cuts. The
 * frames' checksum and number, and how it ended. */
typedef struct wire_outcome {
    fk_err err;
    uint64_t at;
    uint64_t frames;
    uint64_t checksum;
} wire_outcome;

wire_outcome wire_stream(fk_str bytes, const size_t *cuts, uint32_t frame_max);

/* A codec with every kind of field, for WIRE_STRUCT. */
struct fk_codec;
extern const struct fk_codec *const wire_codec;

#endif /* FK_TESTS_SUPPORT_WIRE_READER_H */
