/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_CONTAINER_H
#define FK_WIRE_CONTAINER_H

/*
 * Messages with something in them: selections (serializer 6), and of Pekko's miscellaneous ones
 * (serializer 16) those that every node has to understand.
 */

#include "wire/proto.h"

enum { FK_SERIALIZER_SELECTION = 6, FK_SERIALIZER_MISC = 16 };

typedef struct fk_wire_ref {
    uint32_t has;
    fk_str path; /* "pekko://sys@host:port/user/a#7" */
} fk_wire_ref;

/* A message of any kind inside another. */
typedef struct fk_wire_payload {
    uint32_t has;
    int32_t serializer;
    fk_str message;
    fk_str manifest;
} fk_wire_payload;

extern const fk_proto_type fk__proto_ref;
extern const fk_proto_type fk__proto_payload;

/* ---- selections ----------------------------------------------------------------------------- */

typedef enum fk_pattern_kind {
    FK_PATTERN_PARENT = 0,
    FK_PATTERN_NAME,
    FK_PATTERN_GLOB,
    FK_PATTERN_COUNT,
} fk_pattern_kind;

typedef struct fk_wire_pattern {
    uint32_t has;
    uint32_t kind; /* fk_pattern_kind */
    fk_str text;   /* of a name or a glob */
} fk_wire_pattern;

typedef struct fk_wire_selection {
    uint32_t has;
    int32_t serializer; /* of the message */
    fk_str message;
    fk_str manifest;
    fk_proto_list patterns; /* of fk_wire_pattern */
    bool fan_out;
} fk_wire_selection;

FK_MUST_USE fk_err fk__selection_decode(fk_str bytes, fk_wire_selection *out, fk_wire_fault *fault);
size_t fk__selection_size(const fk_wire_selection *selection);
void fk__selection_encode(const fk_wire_selection *selection, unsigned char *to, size_t size);
/* The next pattern of a selection that was decoded: *cursor is 0 at first; false at the end. */
bool fk__selection_next(const fk_wire_selection *selection, size_t *cursor, fk_wire_pattern *out);

/* ---- miscellaneous -------------------------------------------------------------------------- */

typedef enum fk_misc_kind {
    FK_MISC_NONE = 0,
    FK_MISC_IDENTIFY,         /* "A" */
    FK_MISC_IDENTITY,         /* "B" */
    FK_MISC_SUCCESS,          /* "D" */
    FK_MISC_FAILURE,          /* "E" */
    FK_MISC_THROWABLE,        /* "F" */
    FK_MISC_REF,              /* "G" */
    FK_MISC_KILL,             /* "K" */
    FK_MISC_POISON,           /* "P" */
    FK_MISC_NOT_SERIALIZABLE, /* "TNSEX": how a failure is told to those who cannot have its class */
    FK_MISC_COUNT,
} fk_misc_kind;

typedef struct fk_wire_identify {
    uint32_t has;
    fk_wire_payload id;
} fk_wire_identify;

typedef struct fk_wire_identity {
    uint32_t has;
    fk_wire_payload id;
    fk_wire_ref ref; /* no path: there is no such actor */
} fk_wire_identity;

typedef struct fk_wire_throwable {
    uint32_t has;
    fk_str class_name;
    fk_str message;
} fk_wire_throwable;

typedef struct fk_wire_not_serializable {
    uint32_t has;
    fk_str message;
    fk_str original_message;
    fk_str original_class;
} fk_wire_not_serializable;

typedef struct fk_wire_misc {
    fk_misc_kind kind;
    union {
        uint32_t nothing; /* kill, poison */
        fk_wire_identify identify;
        fk_wire_identity identity;
        fk_wire_payload status; /* success, failure */
        fk_wire_throwable throwable;
        fk_wire_not_serializable not_serializable;
        fk_wire_ref ref;
    } as;
} fk_wire_misc;

/* "A"; static. */
fk_str fk__misc_manifest(fk_misc_kind kind);
/* FK_E_NO_CODEC when the manifest is none of those above. */
FK_MUST_USE fk_err fk__misc_decode(fk_str manifest, fk_str bytes, fk_wire_misc *out,
                                   fk_wire_fault *fault);
size_t fk__misc_size(const fk_wire_misc *misc);
void fk__misc_encode(const fk_wire_misc *misc, unsigned char *to, size_t size);

#endif /* FK_WIRE_CONTAINER_H */
