/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Equality, order and hash. They must agree, so they look at the same things in the same form. */

#include "base/hash.h"
#include "core/path.h"

bool fk__segment_has_escape(fk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '%') return true;
    }
    return false;
}

static bool same_text(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* <0, 0, >0 by the bytes the segments stand for. */
static int segment_compare(const fk_ruleset *rules, fk_str a, fk_str b)
{
    int left, right;
    do {
        left = fk__segment_byte(rules, &a);
        right = fk__segment_byte(rules, &b);
    } while (left == right && left >= 0);
    return left - right;
}

bool fk__segment_equal(const fk_ruleset *rules, fk_str a, fk_str b)
{
    if (same_text(a, b)) return true;
    if (!rules->decodes) return false;
    if (!fk__segment_has_escape(a) && !fk__segment_has_escape(b)) return false;
    return segment_compare(rules, a, b) == 0;
}

bool fk_path_equal(const fk_path *a, const fk_path *b)
{
    const fk_ruleset *rules = fk__ruleset(a->rules);
    size_t i = 0, j = 0;
    fk_str left, right;
    if (a->rules != b->rules || a->depth != b->depth || a->port != b->port) return false;
    if (rules->scheme_counts && a->scheme != b->scheme) return false;
    if (!same_text(a->system, b->system) || !same_text(a->host, b->host)) return false;
    if (same_text(a->segments, b->segments)) return true;
    while (fk_path_next(a, &i, &left) && fk_path_next(b, &j, &right)) {
        if (!fk__segment_equal(rules, left, right)) return false;
    }
    return true;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* As if each text were followed by its terminator, and then compared as a whole. */
static int terminated_compare(fk_str a, char a_end, fk_str b, char b_end)
{
    for (size_t i = 0;; i++) {
        int left = i < a.len ? (unsigned char)a.ptr[i] : (unsigned char)a_end;
        int right = i < b.len ? (unsigned char)b.ptr[i] : (unsigned char)b_end;
        if (left != right) return left - right;
        if (i >= a.len || i >= b.len) return 0;
    }
}

static int port_compare(uint16_t a, uint16_t b)
{
    char left[8], right[8];
    fk_text l = { left, sizeof(left), 0 }, r = { right, sizeof(right), 0 };
    fk__text_number(&l, a);
    fk__text_number(&r, b);
    return terminated_compare((fk_str){ left, l.len }, '/', (fk_str){ right, r.len }, '/');
}

/* As the texts scheme://system@host:port/ compare. No part can hold the byte that ends it. */
static int root_compare(const fk_path *a, const fk_path *b)
{
    int order = 0;
    if (fk__ruleset(a->rules)->scheme_counts) {
        order = terminated_compare(fk_path_scheme(a), ':', fk_path_scheme(b), ':');
    }
    if (order == 0) {
        order = terminated_compare(a->system, a->host.len != 0 ? '@' : '/', b->system,
                                   b->host.len != 0 ? '@' : '/');
    }
    if (order == 0) order = terminated_compare(a->host, ':', b->host, ':');
    return order != 0 ? order : port_compare(a->port, b->port);
}

int fk_path_compare(const fk_path *a, const fk_path *b)
{
    const fk_ruleset *rules = fk__ruleset(a->rules);
    fk_str left = a->segments, right = b->segments;
    fk_str a_name, b_name;
    if (a->rules != b->rules) return a->rules - b->rules;
    for (;;) {
        bool a_has = fk__segment_last(&left, &a_name);
        bool b_has = fk__segment_last(&right, &b_name);
        if (!a_has || !b_has) {
            if (a_has == b_has) return root_compare(a, b);
            return a_has ? -1 : 1; /* Pekko: the root comes after everything below it */
        }
        int order = segment_compare(rules, a_name, b_name);
        if (order != 0) return order;
    }
}

/* ---- hash ----------------------------------------------------------------------------------- */

/* Eight bytes a step. The last word of a part holds what is left, if only nothing: so parts end
 * where they end, for none holds a NUL. */
static uint64_t hash_step(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

static uint64_t hash_part(const fk_ruleset *rules, uint64_t hash, fk_str part)
{
    uint64_t word = 0;
    unsigned len = 0;
    int byte;
    while ((byte = fk__segment_byte(rules, &part)) >= 0) {
        word = word << 8 | (uint64_t)byte;
        if (++len % 8 == 0) {
            hash = hash_step(hash, word);
            word = 0;
        }
    }
    return hash_step(hash, word);
}

uint64_t fk_path_hash(const fk_path *path)
{
    const fk_ruleset *rules = fk__ruleset(path->rules);
    uint64_t scheme = rules->scheme_counts ? path->scheme : 0u;
    uint64_t hash = hash_step(path->port, (uint64_t)path->rules << 32 | scheme);
    size_t cursor = 0;
    fk_str segment;
    hash = hash_part(rules, hash, path->system);
    hash = hash_part(rules, hash, path->host);
    while (fk_path_next(path, &cursor, &segment)) hash = hash_part(rules, hash, segment);
    return fk__mix64(hash);
}
