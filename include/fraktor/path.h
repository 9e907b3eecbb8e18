/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_PATH_H
#define FK_PATH_H

/*
 * Actor paths: fraktor.tcp://system@host:port/user/parent/name#uid
 *
 * A path is a flat value that borrows the text it was made from; nothing here allocates, keeps
 * state or takes a lock, so everything may be called from any thread. Every function that reads
 * foreign text checks it by the same rules, and says on failure which byte was wrong.
 *
 * What two systems exchange is the canonical text: scheme in lower case, no empty segments,
 * everything else as it was written.
 */

#include "fraktor/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fk_rules {
    FK_RULES_FRAKTOR = 0, /* schemes fraktor, fraktor.tcp; uids of 64 bit; escapes are decoded */
    FK_RULES_PEKKO,       /* schemes pekko, pekko.tcp; uids of signed 32 bit; raw text compared */
} fk_rules;

/* What is accepted. All zero is the default. */
typedef struct fk_path_options {
    fk_rules rules;
    uint32_t path_max;    /* bytes of the whole text; 0: 1,024 */
    uint32_t segment_max; /* bytes of one segment; 0: 255 */
    uint32_t depth_max;   /* segments; 0: 64 */
    bool utf8;            /* fraktor rules: escapes may spell UTF-8 beyond ASCII */
} fk_path_options;

typedef enum fk_scheme { FK_SCHEME_LOCAL = 0, FK_SCHEME_TCP } fk_scheme;

/* A parsed path. Lives as long as the text it was parsed from, or the buffer it was built in. */
typedef struct fk_path {
    fk_str system;
    fk_str host;     /* with its brackets when IPv6; empty: no authority */
    fk_str segments; /* "/user/a/b", as written, unchecked bytes never; empty: the root */
    uint64_t uid;    /* 0: none; under pekko rules the signed value's two's complement */
    uint32_t depth;  /* non-empty segments */
    uint16_t port;   /* 0: no authority */
    uint8_t rules;   /* fk_rules */
    uint8_t scheme;  /* fk_scheme */
} fk_path;

/* Why a text was refused, and where: its leftmost wrong byte. A fault of a whole segment is at the
 * segment's first byte, one of an escape at its '%', a limit at the first byte over it. */
typedef struct fk_path_fault {
    fk_err err;
    int32_t segment;     /* index among the non-empty segments; -1: not in a segment */
    size_t at;           /* byte offset; the text's length when something is missing at the end */
    const char *message; /* a sentence; static */
} fk_path_fault;

/* The short name of a path or resolution error ("invalid_scheme"), as programs' output has it; NULL
 * for any other error. */
FK_API const char *fk_path_code(fk_err err);

/* ---- reading -------------------------------------------------------------------------------
 * options may be NULL (the default); fault may be NULL and is written on failure only. All fail
 * with one of FK_E_EMPTY, FK_E_SCHEME, FK_E_NO_SYSTEM, FK_E_SYSTEM, FK_E_AUTHORITY, FK_E_NAME (a
 * segment), FK_E_RESERVED, FK_E_PERCENT, FK_E_UID, FK_E_ESCAPE, FK_E_LIMIT (too long). */

/* A complete path with scheme and system. */
FK_API FK_MUST_USE fk_err fk_path_parse(const fk_path_options *options, fk_str text, fk_path *out,
                                        fk_path_fault *fault);
/* A name that a user gives a new actor. */
FK_API FK_MUST_USE fk_err fk_path_check_name(const fk_path_options *options, fk_str name,
                                             fk_path_fault *fault);
FK_API FK_MUST_USE fk_err fk_path_check_system(const fk_path_options *options, fk_str name,
                                               fk_path_fault *fault);
/* host as in a path: name, IPv4, or bracketed IPv6. Pekko rules: also with underscores, but not in
 * the last label; Pekko starts on such a host, and refuses paths that name it. */
FK_API FK_MUST_USE fk_err fk_path_check_host(const fk_path_options *options, fk_str host,
                                             fk_path_fault *fault);

/* ---- parts --------------------------------------------------------------------------------- */

/* The scheme's text: "fraktor.tcp". */
FK_API fk_str fk_path_scheme(const fk_path *path);
/* Walks the segments: *cursor is 0 at first; false at the end. */
FK_API bool fk_path_next(const fk_path *path, size_t *cursor, fk_str *segment);
/* The last segment, empty for the root. */
FK_API fk_str fk_path_name(const fk_path *path);
/* Without its last segment and without uid; the root's parent is the root. */
FK_API fk_path fk_path_parent(const fk_path *path);
FK_API fk_path fk_path_root(const fk_path *path);
/* FK_E_UID when the root would get one, and when it is beyond 32 bit under pekko rules. */
FK_API FK_MUST_USE fk_err fk_path_with_uid(const fk_path *path, uint64_t uid, fk_path *out);
/* As another system has to write it: a path without host gets the address's scheme, system, host
 * and port (borrowed). Pekko's pekko://local/ignore stays what it is. */
FK_API fk_path fk_path_with_address(const fk_path *path, const fk_path *address);

typedef enum fk_path_top_kind {
    FK_TOP_ROOT = 0,
    FK_TOP_USER,
    FK_TOP_SYSTEM,
    FK_TOP_TEMP,
    FK_TOP_DEAD_LETTERS,
    FK_TOP_EXTRA, /* any other first segment */
} fk_path_top_kind;

/* Which part of the tree the path is in. */
FK_API fk_path_top_kind fk_path_top(const fk_path *path);

/* ---- writing ------------------------------------------------------------------------------- */

typedef enum fk_path_form {
    FK_FORM_FULL = 0, /* fraktor.tcp://sys@host:1/user/a#7 */
    FK_FORM_NO_UID,   /* fraktor.tcp://sys@host:1/user/a */
    FK_FORM_LOCAL,    /* /user/a */
    FK_FORM_ADDRESS,  /* fraktor.tcp://sys@host:1 */
} fk_path_form;

/* Writes the canonical text (always NUL-terminated when size > 0) and returns the length it has in
 * full: it was cut when that is size or more. */
FK_API size_t fk_path_format(const fk_path *path, fk_path_form form, char *buf, size_t size);

/* ---- building ------------------------------------------------------------------------------
 * The result borrows buf and nothing else; buf must not hold what is read. path_max bytes are
 * always enough, a buffer that is too small is FK_E_LIMIT. Child and resolve go by the rules of the
 * path they start from, whatever options->rules says. */

/* Where a result is written. */
typedef struct fk_buf {
    char *ptr;
    size_t size;
} fk_buf;

#ifdef __cplusplus
#define FK_BUF(array) (fk_buf{ array, sizeof(array) })
#else
#define FK_BUF(array) ((fk_buf){ array, sizeof(array) })
#endif

typedef enum fk_guardian_kind {
    FK_GUARDIAN_USER = 0,
    FK_GUARDIAN_SYSTEM,
    FK_GUARDIAN_ROOT,
} fk_guardian_kind;

typedef struct fk_path_parts {
    fk_scheme scheme;
    fk_str system;
    fk_str host;   /* empty: no authority */
    uint16_t port; /* with host */
    fk_guardian_kind guardian;
    const fk_str *names; /* below the guardian */
    size_t count;
    uint64_t uid; /* 0: none */
} fk_path_parts;

/* The guardian is always put in front. The names are checked as references, so "$a" is fine.
 * Faults count in the text that would have been built. */
FK_API FK_MUST_USE fk_err fk_path_build(const fk_path_options *options, const fk_path_parts *parts,
                                        fk_buf buf, fk_path *out, fk_path_fault *fault);
/* parent/name; name may end in "#uid". The parent is not checked again. Offsets count in name, the
 * segment's index in the child. */
FK_API FK_MUST_USE fk_err fk_path_child(const fk_path_options *options, const fk_path *parent,
                                        fk_str name, fk_buf buf, fk_path *out,
                                        fk_path_fault *fault);
/* What a selection expression names when seen from base: "../b", "/user/x", "c#7", or a complete
 * path. There are no wildcards here: '*' is a character of names, '?' is FK_E_NAME. An expression
 * without elements ("", ".") is base with its uid. The limits also hold for the steps on the way. */
FK_API FK_MUST_USE fk_err fk_path_resolve(const fk_path_options *options, const fk_path *base,
                                          fk_str expression, fk_buf buf, fk_path *out,
                                          fk_path_fault *fault);

/* ---- comparing -----------------------------------------------------------------------------
 * Fraktor rules: system, authority and decoded segments count; scheme and uid do not. Pekko rules:
 * scheme, system, authority and raw segments count. Equal paths have equal hashes. The hash has no
 * secret: a table of paths that strangers choose needs a keyed one. */

FK_API bool fk_path_equal(const fk_path *a, const fk_path *b);
FK_API uint64_t fk_path_hash(const fk_path *path);
/* <0, 0, >0: a total order that agrees with fk_path_equal(), and is Pekko's: by the last segment,
 * then its parent's and so on, a path after all that are below it, the addresses' text at the end. */
FK_API int fk_path_compare(const fk_path *a, const fk_path *b);

/* ---- selection expressions ------------------------------------------------------------------- */

typedef enum fk_anchor {
    FK_ANCHOR_SELF = 0, /* relative: begins where it is asked */
    FK_ANCHOR_ROOT,     /* begins with "/" */
    FK_ANCHOR_ADDRESS,  /* a complete path: .address says of which system */
} fk_anchor;

typedef enum fk_element_kind {
    FK_ELEMENT_NAME = 0,
    FK_ELEMENT_PARENT,
    FK_ELEMENT_PATTERN
} fk_element_kind;

typedef struct fk_element {
    fk_element_kind kind;
    fk_str text;
} fk_element;

/* "../worker-?#7": borrows the expression. Empty elements are left out; so is "." under fraktor
 * rules, while pekko rules take it for a name. */
typedef struct fk_expression {
    fk_anchor anchor;
    fk_path address; /* anchor ADDRESS: the root of that system */
    fk_str elements; /* text between the slashes */
    uint64_t uid;    /* of the last element; 0: any */
    uint32_t count;  /* elements */
    fk_rules rules;
} fk_expression;

FK_API FK_MUST_USE fk_err fk_expression_parse(const fk_path_options *options, fk_str text,
                                              fk_expression *out, fk_path_fault *fault);
/* The same for text whose anchor is known already, as in a selection that another system sends: a
 * '/' in front means nothing and nothing is a scheme. Under pekko rules elements may be anything
 * but control characters, for there they are not checked either: they match nothing. */
FK_API FK_MUST_USE fk_err fk_expression_split(const fk_path_options *options, fk_str text,
                                              fk_expression *out, fk_path_fault *fault);
/* Walks the elements: *cursor is 0 at first; false at the end. */
FK_API bool fk_expression_next(const fk_expression *expression, size_t *cursor,
                               fk_element *element);

/* "*" is any run of characters, "?" exactly one; the whole name must match, case counts. Fraktor
 * rules: escapes are decoded first, so "%2A" is a plain asterisk and "%20" one character. Takes at
 * most as many steps as the product of both lengths. */
FK_API bool fk_path_match(fk_rules rules, fk_str pattern, fk_str name);

/* ---- generated names ------------------------------------------------------------------------ */

#define FK_AUTONAME_MAX 16
/* The n-th name the runtime makes: "$a", "$b", ...; returns its length. */
FK_API size_t fk_path_autoname(uint64_t n, char buf[FK_AUTONAME_MAX]);

#ifdef __cplusplus
}
#endif
#endif /* FK_PATH_H */
