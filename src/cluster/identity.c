/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From names to numbers: grains to their ids, members to their seeds.
 *
 * The hash is SipHash's round over 256 bits, one for each word of eight bytes, three at the end. The
 * lengths of both texts are in the first state, so that ("ab", "c") and ("a", "bc") have nothing in
 * common. Multiply-and-fold hashes are faster for long keys, but there a single word that meets a
 * zero makes all the others not count, and keys are chosen by strangers: two grains of one id would
 * be one grain. Nothing is secret here, since every machine has to find the same id.
 */

#include "cluster/identity.h"
#include "base/base.h"
#include "core/path.h"

enum { IDENTITY_GRAIN = 1, IDENTITY_MEMBER = 2, IDENTITY_LAST_ROUNDS = 3 };

typedef struct identity_state {
    uint64_t a, b, c, d;
} identity_state;

static FK_HOT uint64_t identity_rotate(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static FK_HOT void identity_round(identity_state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = identity_rotate(s->b, 13) ^ s->a;
    s->d = identity_rotate(s->d, 16) ^ s->c;
    s->a = identity_rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->d = identity_rotate(s->d, 21) ^ s->a;
    s->b = identity_rotate(s->b, 17) ^ s->c;
    s->c = identity_rotate(s->c, 32);
}

static FK_HOT void identity_word(identity_state *s, uint64_t word)
{
    s->d ^= word;
    identity_round(s);
    s->a ^= word;
}

/* Little endian on every machine; compilers make single loads of these where they can. */
static FK_HOT uint64_t identity_half(const unsigned char *at)
{
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24;
}

static FK_HOT uint64_t identity_full(const unsigned char *at)
{
    return identity_half(at) | identity_half(at + 4) << 32;
}

/* One to seven bytes, zeros behind them, without a loop: the pieces overlap. */
static FK_HOT uint64_t identity_rest(const unsigned char *at, size_t len)
{
    if (len >= 4) return identity_half(at) | identity_half(at + len - 4) << (8 * (len - 4));
    return (uint64_t)at[0] | (uint64_t)at[len / 2] << (8 * (len / 2)) |
           (uint64_t)at[len - 1] << (8 * (len - 1));
}

static FK_HOT void identity_text(identity_state *s, fk_str text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    size_t left = text.len;
    for (; left >= 8; left -= 8, at += 8) identity_word(s, identity_full(at));
    if (left != 0) identity_word(s, identity_rest(at, left));
}

/* The constants are the first digits of pi behind the point. */
static FK_HOT fk_grain_id identity_hash(uint64_t what, fk_str first, fk_str second)
{
    identity_state s = { 0x243f6a8885a308d3u ^ first.len, 0x13198a2e03707344u ^ second.len,
                         0xa4093822299f31d0u, 0x082efa98ec4e6c89u ^ what };
    identity_text(&s, first);
    identity_text(&s, second);
    s.c ^= 0xff; /* an end is no word */
    for (int i = 0; i < IDENTITY_LAST_ROUNDS; i++) identity_round(&s);
    return (fk_grain_id){ s.a ^ s.b, s.c ^ s.d };
}

FK_HOT bool fk__name_is_plain(fk_str name)
{
    const char *at = name.ptr;
    unsigned common = FK_SEGMENT_NAME;
    for (size_t i = 0; i < name.len; i++) common &= fk__path_class[(unsigned char)at[i]];
    if (common == 0 || at[0] == '$') return false;
    bool is_dots = at[0] == '.' && (name.len == 1 || (name.len == 2 && at[1] == '.'));
    return !is_dots;
}

fk_err fk_grain_key_of(fk_str kind, fk_str key, fk_grain_key *out)
{
    if (kind.len - 1 >= FK_KIND_NAME_MAX) return FK_E_UNKNOWN_KIND; /* zero wraps */
    if (!fk__name_is_plain(kind)) return FK_E_UNKNOWN_KIND;
    if (key.len - 1 >= FK_GRAIN_KEY_MAX) return FK_E_KEY; /* zero wraps */
    *out = (fk_grain_key){ kind, key, identity_hash(IDENTITY_GRAIN, kind, key) };
    return FK_OK;
}

uint64_t fk_member_seed(fk_str id)
{
    return identity_hash(IDENTITY_MEMBER, id, (fk_str){ "", 0 }).hi;
}

const char *fk_member_status_name(fk_member_status status)
{
    static const char *const NAMES[] = { "joining", "up", "draining", "down" };
    return (size_t)status < sizeof NAMES / sizeof NAMES[0] ? NAMES[status] : "unknown";
}
