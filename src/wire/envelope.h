/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_ENVELOPE_H
#define FK_WIRE_ENVELOPE_H

/*
 * An envelope: what a frame holds. A fixed part of 28 bytes, metadata if there is any, the texts
 * that are not compressed, and the payload up to the end of the frame.
 */

#include "wire/frame.h"

enum {
    FK_ENVELOPE_FIXED = 28,          /* bytes; an envelope has no fewer */
    FK_ENVELOPE_METADATA = 1,        /* flag */
    FK_WIRE_LITERAL_MAX = INT16_MAX, /* Pekko reads the length as a signed number */
};

/* A text, or the place that it has in a table that both sides know. All zero: the empty text, which
 * stands for nobody, or for no manifest. */
typedef struct fk_wire_name {
    fk_str text; /* ASCII; not looked at when it is compressed */
    uint16_t index;
    bool is_compressed;
} fk_wire_name;

typedef struct fk_wire_envelope {
    uint64_t uid; /* of the sending system */
    int32_t serializer;
    uint8_t version;   /* 0 */
    uint8_t flags;     /* FK_ENVELOPE_METADATA when there is some, and what later versions add */
    uint8_t ref_table; /* version of the table that sender and recipient are compressed by */
    uint8_t manifest_table; /* likewise */
    fk_wire_name sender;    /* "pekko://sys@host:port/user/a#7" */
    fk_wire_name recipient;
    fk_wire_name manifest;
    fk_str metadata; /* with the flag only */
    fk_str payload;
} fk_wire_envelope;

/* What a frame holds. Views into it. */
FK_MUST_USE fk_err fk__envelope_decode(fk_str frame, fk_wire_envelope *out, fk_wire_fault *fault);

/* The size that the envelope has as a whole frame, header and payload included. FK_E_LIMIT: more
 * than frame_max bytes of envelope, or a text that is too long; FK_E_INVALID: a text that is not
 * ASCII, or metadata without the flag or the other way round. */
FK_MUST_USE fk_err fk__frame_size(const fk_wire_envelope *e, uint32_t frame_max, size_t *out);
/* Writes as many bytes as fk__frame_size() said. Returns where the payload begins: the caller
 * writes it there itself when payload.ptr is NULL. */
unsigned char *fk__frame_encode(const fk_wire_envelope *e, unsigned char *to);

#endif /* FK_WIRE_ENVELOPE_H */
