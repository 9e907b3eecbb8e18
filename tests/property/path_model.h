/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_PROPERTY_PATH_MODEL_H
#define FK_TESTS_PROPERTY_PATH_MODEL_H

/*
 * What actor paths mean, a second time: the rules of fraktor with default limits, written to be
 * compared with the library. It shares nothing with it. Where the library reads a text once from
 * left to right, the model cuts it into pieces first and then looks at each by itself; it is slow
 * and takes help from the C library (inet_pton judges IPv6).
 */

#include "fraktor/path.h"

enum { MODEL_TEXT_MAX = 1024, MODEL_SEGMENT_MAX = 255, MODEL_DEPTH_MAX = 64 };
/* A base, and what an expression may add before it is seen to be too deep. */
enum { MODEL_NAMES_MAX = 2 * MODEL_DEPTH_MAX };

typedef struct model_path {
    fk_err err;       /* FK_OK: what is below holds */
    int segment;      /* where the fault is: -1 or an index */
    size_t at;        /* its byte, as far as the rules name it; else MODEL_AT_ANY */
    bool or_too_long; /* as right an answer: what is wrong is known only from behind the limit */
    bool is_tcp;
    fk_str system;
    fk_str host;
    uint32_t port;
    uint64_t uid;
    size_t depth;
    size_t depth_max, len_max; /* of what it was on the way, when resolved */
    fk_str name[MODEL_NAMES_MAX];
} model_path;

#define MODEL_AT_ANY SIZE_MAX

model_path model_parse(fk_str text);
/* A name for a new actor. */
model_path model_check_name(fk_str name);
/* expression seen from base, which is without fault. */
model_path model_resolve(const model_path *base, fk_str expression);

/* Is that what the model says, too? With FK_OK the fault does not matter. */
bool model_agrees(const model_path *model, fk_err err, const fk_path_fault *fault);

/* The canonical text; gives its length. */
size_t model_format(const model_path *path, bool with_uid, char *buf, size_t size);
bool model_equal(const model_path *a, const model_path *b);

/* At most MODEL_MATCH_MAX bytes each. Takes exponential time for the worst patterns. */
enum { MODEL_MATCH_MAX = 64 };
bool model_match(fk_rules rules, fk_str pattern, fk_str name);

#endif /* FK_TESTS_PROPERTY_PATH_MODEL_H */
