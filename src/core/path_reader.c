/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rules, and what every reader of paths does by them: segments, uids, faults. */

#include "core/path.h"

enum {
    /* How far behind a limit a fault before it can have its cause: in a host, in an escape. */
    LOOKAHEAD = 512,
};

const fk_ruleset fk__rulesets[2] = {
    [FK_RULES_FRAKTOR] = {
        .scheme = { { "fraktor://", 7 }, { "fraktor.tcp://", 11 } },
        .scheme_fault = "the scheme must be fraktor or fraktor.tcp",
        .decodes = true,
    },
    [FK_RULES_PEKKO] = {
        .scheme = { { "pekko://", 5 }, { "pekko.tcp://", 9 } },
        .scheme_fault = "the scheme must be pekko or pekko.tcp",
        .scheme_counts = true,
        .dot_names = true,
        .root_is_own_top = true,
        .uid_signed = true,
        .zones = true,
        .underscores = true,
        .colon_is_scheme = true,
        .empty_is_root = true,
        .split_unchecked = true,
        .ignored = { "local/ignore", 12 },
    },
};

#define L (FK_SEGMENT_NAME | FK_SYSTEM_NAME)
#define S FK_SEGMENT_NAME
#define W FK_SEGMENT_WILD

/* clang-format off */
const uint8_t fk__path_class[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, S, 0, 0, S, 0, S, S, 0, 0, S, S, S, L, S, 0,  /*   ! " # $ % & ' ( ) * + , - . / */
    L, L, L, L, L, L, L, L, L, L, S, S, 0, S, 0, W,  /* 0 1 2 3 4 5 6 7 8 9 : ; < = > ? */
    S, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,  /* @ A B C D E F G H I J K L M N O */
    L, L, L, L, L, L, L, L, L, L, L, 0, 0, 0, 0, L,  /* P Q R S T U V W X Y Z [ \ ] ^ _ */
    0, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,  /* ` a b c d e f g h i j k l m n o */
    L, L, L, L, L, L, L, L, L, L, L, 0, 0, 0, S, 0,  /* p q r s t u v w x y z { | } ~   */
};
/* clang-format on */

#undef L
#undef S
#undef W

/* ---- readers -------------------------------------------------------------------------------- */

static uint32_t limit_or(uint32_t limit, uint32_t otherwise)
{
    return limit != 0 ? limit : otherwise;
}

void fk__reader_init(fk_reader *r, unsigned rules, const fk_path_options *options, fk_str text)
{
    static const fk_path_options DEFAULTS = { 0 };
    if (options == NULL) options = &DEFAULTS;
    r->start = text.len != 0 ? text.ptr : "";
    r->at = r->start;
    r->len = text.len;
    r->rules = fk__ruleset(rules);
    r->path_max = limit_or(options->path_max, FK_PATH_MAX);
    r->segment_max = limit_or(options->segment_max, FK_SEGMENT_MAX);
    r->depth_max = limit_or(options->depth_max, FK_DEPTH_MAX);
    r->depth = 0;
    r->utf8 = options->utf8;
    fk__reader_reach(r, r->path_max);
}

void fk__reader_reach(fk_reader *r, uint32_t max)
{
    uint32_t reach = max < UINT32_MAX - LOOKAHEAD ? max + LOOKAHEAD : UINT32_MAX;
    r->end = r->start + (r->len < reach ? r->len : reach);
}

FK_COLD fk_err fk__reader_fail(fk_reader *r, fk_err err, const char *at, const char *message)
{
    r->fault = (fk_path_fault){ err, -1, (size_t)(at - r->start), message };
    return err;
}

FK_COLD fk_err fk__reader_fail_segment(fk_reader *r, fk_err err, const char *at,
                                       const char *message)
{
    (void)fk__reader_fail(r, err, at, message);
    r->fault.segment = (int32_t)r->depth;
    return err;
}

fk_err fk__reader_finish(fk_reader *r, fk_err err, fk_path_fault *fault)
{
    if (FK_UNLIKELY(r->len > r->path_max) && (err == FK_OK || r->fault.at >= r->path_max)) {
        err = fk__reader_fail(r, FK_E_LIMIT, r->start + r->path_max, "the text is too long");
    }
    if (FK_UNLIKELY(err != FK_OK) && fault != NULL) *fault = r->fault;
    return err;
}

/* ---- segments ------------------------------------------------------------------------------- */

/* The bytes of the escapes that spell one UTF-8 sequence of two bytes or more; 0: they spell none,
 * or a control character. */
static size_t escaped_utf8(const char *at, const char *end)
{
    int lead = fk__uri_escape(at, end);
    unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    uint32_t point = (uint32_t)lead & (0x3fu >> more);
    for (unsigned i = 1; i <= more; i++) {
        int next = fk__uri_escape(at + 3 * i, end);
        if (next < 0x80 || next > 0xbf) return 0;
        point = point << 6 | ((uint32_t)next & 0x3f);
    }
    static const uint32_t LEAST[] = { 0, 0xa0, 0x800, 0x10000 }; /* C1 controls end at 0x9f */
    bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return point < LEAST[more] || surrogate || point > 0x10ffff ? 0 : 3 * (size_t)(more + 1);
}

static const char BAD_CHARACTER[] =
    "a segment may hold letters, digits, -_.*$+:@&=,!~'; and escapes";
static const char BAD_ESCAPE[] = "an escape is '%' and two hexadecimal digits";
static const char BAD_MEANING[] = "an escape stands for what may not be in a name";

/* A fault inside a segment that began at `start`, unless it was too long before. */
static FK_COLD fk_err segment_fault(fk_reader *r, const char *start, fk_err err, const char *at,
                                    const char *message)
{
    if ((size_t)(at - start) <= r->segment_max) return fk__reader_fail_segment(r, err, at, message);
    return fk__reader_fail_segment(r, FK_E_LIMIT, start + r->segment_max, "a segment is too long");
}

/* The escape at *at, checked for what it stands for if the rules decode it. */
static fk_err take_escape(fk_reader *r, const char *start, const char **at)
{
    int byte = fk__uri_escape(*at, r->end);
    size_t used = 3;
    if (byte < 0) return segment_fault(r, start, FK_E_PERCENT, *at, BAD_ESCAPE);
    if (r->rules->decodes && (byte < 0x20 || byte > 0x7e || byte == '/')) {
        used = r->utf8 ? escaped_utf8(*at, r->end) : 0;
        if (used == 0) return segment_fault(r, start, FK_E_NAME, *at, BAD_MEANING);
    }
    *at += used;
    return FK_OK;
}

static FK_COLD bool is_dots(const fk_ruleset *rules, fk_str segment)
{
    size_t count = 0;
    int byte;
    while ((byte = fk__segment_byte(rules, &segment)) == '.') count++;
    return byte < 0 && count <= 2;
}

fk_err fk__take_segment(fk_reader *r, unsigned accepts)
{
    const char *start = r->at;
    const char *at = start;
    for (;;) {
        while (at != r->end && (fk__path_class[(unsigned char)*at] & accepts) != 0) at++;
        if (at == r->end || *at == '/' || *at == '#') break;
        if (*at != '%') return segment_fault(r, start, FK_E_NAME, at, BAD_CHARACTER);
        FK_TRY(take_escape(r, start, &at));
    }
    if ((size_t)(at - start) > r->segment_max) {
        return segment_fault(r, start, FK_E_LIMIT, at, NULL);
    }
    if (at != start && (*start == '.' || *start == '%') && !r->rules->dot_names &&
        is_dots(r->rules, (fk_str){ start, (size_t)(at - start) })) {
        return fk__reader_fail_segment(r, FK_E_NAME, start, "\".\" and \"..\" are not names");
    }
    r->at = at;
    return FK_OK;
}

/* ---- uids ----------------------------------------------------------------------------------- */

static bool take_signed(fk_reader *r, uint64_t *out)
{
    const char *start = r->at;
    bool negative = start != r->end && *start == '-';
    if (negative) r->at++;
    bool good = fk__take_number(r, (uint64_t)INT32_MAX + negative, out);
    if (!good && !negative && r->at == start && start != r->end && *start == '0') {
        r->at++;
        good = true;
    }
    if (negative) *out = (uint64_t)0 - *out;
    return good;
}

fk_err fk__take_uid(fk_reader *r, uint64_t *uid)
{
    FK_ASSERT(*r->at == '#');
    r->at++;
    bool good = r->rules->uid_signed ? take_signed(r, uid) : fk__take_number(r, UINT64_MAX, uid);
    if (good && r->at == r->end) return FK_OK;
    return fk__reader_fail(r, FK_E_UID, r->at,
                           "after '#' comes a decimal number without leading zeros");
}

bool fk__uid_fits(const fk_ruleset *rules, uint64_t uid)
{
    return !rules->uid_signed || uid <= INT32_MAX || uid >= (uint64_t)INT32_MIN;
}
