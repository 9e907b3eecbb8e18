/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_PATH_H
#define FK_CORE_PATH_H

/*
 * What the files that read, write and compare paths share.
 *
 * A reader is a cursor over foreign text and the rules it is read by. Every fk__take_x() either
 * moves the cursor behind a whole x or records a fault and returns its error; text is read from
 * left to right once, so the first fault found is the leftmost.
 */

#include "core/uri.h"
#include "fraktor/path.h"

#define FK_PATH_MAX    1024u /* defaults of fk_path_options */
#define FK_SEGMENT_MAX 255u
#define FK_DEPTH_MAX   64u

/* All that the two sets of rules differ in. What follows from a difference (that "%24x" is reserved
 * where escapes are decoded) is not listed. */
typedef struct fk_ruleset {
    fk_str scheme[2]; /* by fk_scheme; "://" follows in memory */
    const char *scheme_fault;
    bool decodes;         /* an escape is what it stands for: compared so, and checked so */
    bool scheme_counts;   /* in equality */
    bool dot_names;       /* "." and ".." are names in paths, and "." is one in selections */
    bool root_is_own_top; /* ".." from the root is the root, not an error at the first segment */
    bool uid_signed;      /* 32 bit with sign, and 0 may be written */
    bool zones;           /* "[fe80::1%eth0]" is a host */
    bool underscores;     /* in hosts that are not parsed but given, in labels but the last */
    bool colon_is_scheme; /* a ':' in the first element of a selection makes it an URI, as in the
                           * RFCs; otherwise only "://" does, for ':' is legal in names */
    bool empty_is_root;   /* the empty selection */
    bool split_unchecked; /* elements from other systems may be anything but control characters */
    fk_str ignored;       /* system and only segment of a path that keeps its address always */
} fk_ruleset;

extern const fk_ruleset fk__rulesets[2]; /* by fk_rules */

static inline const fk_ruleset *fk__ruleset(unsigned rules)
{
    return &fk__rulesets[rules == FK_RULES_PEKKO];
}

/* ---- reading -------------------------------------------------------------------------------- */

/* What a character may be part of. */
enum {
    FK_SEGMENT_NAME = 1, /* what names are made of, besides escapes */
    FK_SEGMENT_WILD = 2, /* '?' */
    FK_SYSTEM_NAME = 4,
    FK_SEGMENT_ANY = 8, /* no class: anything but control characters */
};

extern const uint8_t fk__path_class[256];

typedef struct fk_reader {
    const char *start; /* offsets count from here */
    const char *at;
    const char *end; /* not beyond what the limits let matter */
    size_t len;      /* of the text in full */
    const fk_ruleset *rules;
    uint32_t path_max;
    uint32_t segment_max;
    uint32_t depth_max;
    uint32_t depth; /* non-empty segments so far: the index of the current one */
    bool utf8;
    fk_path_fault fault;
} fk_reader;

void fk__reader_init(fk_reader *r, unsigned rules, const fk_path_options *options, fk_str text);
/* Do not look further than a limit of `max` bytes requires. */
void fk__reader_reach(fk_reader *r, uint32_t max);
/* Records a fault. `at` is in the text; a fault of a segment says which, others -1. */
fk_err fk__reader_fail(fk_reader *r, fk_err err, const char *at, const char *message);
fk_err fk__reader_fail_segment(fk_reader *r, fk_err err, const char *at, const char *message);
/* What the caller returns: err, or that the text is too long. */
fk_err fk__reader_finish(fk_reader *r, fk_err err, fk_path_fault *fault);

/* scheme://system[@host:port]; the cursor is then on '/', '?', '#' or at the end. */
FK_MUST_USE fk_err fk__take_address(fk_reader *r, fk_path *path);
/* One segment, up to '/', '#' or the end. Not empty unless the cursor is there already. */
FK_MUST_USE fk_err fk__take_segment(fk_reader *r, unsigned accepts);
/* A decimal of 1..max without sign or leading zero; the cursor stops on the byte refused. */
static inline bool fk__take_number(fk_reader *r, uint64_t max, uint64_t *out)
{
    uint64_t n = 0;
    const char *at = r->at;
    *out = 0;
    if (at != r->end && *at != '0') {
        for (; at != r->end; at++) {
            unsigned digit = (unsigned char)*at - (unsigned)'0';
            if (digit > 9) break;
            if (n > max / 10 || (n == max / 10 && digit > max % 10)) {
                r->at = at;
                return false;
            }
            n = n * 10 + digit;
        }
    }
    bool some = at != r->at;
    r->at = at;
    *out = n;
    return some;
}

/* '#' and the number. */
FK_MUST_USE fk_err fk__take_uid(fk_reader *r, uint64_t *uid);

/* A selection up to the end. `level` is the depth of the place it begins from, FK_LEVEL_UNKNOWN if
 * it is not known yet; e->anchor says what the caller knows of it. */
FK_MUST_USE fk_err fk__take_elements(fk_reader *r, fk_expression *e, uint32_t level,
                                     unsigned accepts);
/* The same with whatever comes in front: an address or '/'. */
FK_MUST_USE fk_err fk__take_expression(fk_reader *r, fk_expression *e, uint32_t level,
                                       unsigned accepts);

#define FK_LEVEL_UNKNOWN UINT32_MAX

/* ---- segments ------------------------------------------------------------------------------- */

/* The next byte of a segment, escapes decoded if the rules do; -1 at the end. */
static inline int fk__segment_byte(const fk_ruleset *rules, fk_str *s)
{
    if (s->len == 0) return -1;
    int byte = (unsigned char)s->ptr[0];
    size_t used = 1;
    if (byte == '%' && rules->decodes) {
        int decoded = fk__uri_escape(s->ptr, s->ptr + s->len);
        if (decoded >= 0) { /* text that was never checked may hold a lone '%' */
            byte = decoded;
            used = 3;
        }
    }
    s->ptr += used;
    s->len -= used;
    return byte;
}

/* Walks text forward: the next segment at or after *cursor, which moves behind it. */
bool fk__segment_next(fk_str text, size_t *cursor, fk_str *segment);
/* Walks backward: the last segment; *text loses it and the '/' before it. False: there is none. */
bool fk__segment_last(fk_str *text, fk_str *segment);
bool fk__segment_has_escape(fk_str s);
bool fk__segment_equal(const fk_ruleset *rules, fk_str a, fk_str b);

/* ---- writing -------------------------------------------------------------------------------- */

/* Text that is cut where the buffer ends; len goes on counting. */
typedef struct fk_text {
    char *buf;
    size_t size;
    size_t len;
} fk_text;

void fk__text_put(fk_text *t, fk_str s);
/* Text from outside, whatever is in it, on one line and cut to what fits. */
#define FK_SHOWN_MAX 512
fk_str fk__text_shown(fk_str text, char buf[FK_SHOWN_MAX]);
void fk__text_number(fk_text *t, uint64_t n);
/* scheme://system[@host:port] */
void fk__text_address(fk_text *t, const fk_path *path);
/* "/a/b", without empty segments; nothing for the root. */
void fk__text_segments(fk_text *t, const fk_path *path);
/* "#7", "#-7" or nothing. */
void fk__text_uid(fk_text *t, const fk_path *path);

/* A uid that can be written and read back by the rules; 0 is none. */
bool fk__uid_fits(const fk_ruleset *rules, uint64_t uid);

#endif /* FK_CORE_PATH_H */
