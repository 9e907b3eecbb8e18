/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Wildcards. Only the last '*' is ever tried again: what an earlier one matched may stay as short
 * as it was found, because whatever follows it can still be found further right. So there is no
 * recursion, and no pattern takes more steps than its length times the name's.
 */

#include "core/path.h"

/* One character: a byte, or a UTF-8 sequence packed into a word; *s moves behind it. */
static uint32_t glob_take(const fk_ruleset *rules, fk_str *s)
{
    uint32_t unit = (uint32_t)fk__segment_byte(rules, s);
    unsigned more = unit >= 0xf0 ? 3 : unit >= 0xe0 ? 2 : unit >= 0xc2 ? 1 : 0;
    for (; more > 0; more--) {
        fk_str rest = *s;
        int next = fk__segment_byte(rules, &rest);
        if (next < 0x80 || next > 0xbf) break;
        unit = unit << 8 | (uint32_t)next;
        *s = rest;
    }
    return unit;
}

static fk_str glob_skip_stars(fk_str pattern)
{
    while (pattern.len > 0 && *pattern.ptr == '*') {
        pattern.ptr++;
        pattern.len--;
    }
    return pattern;
}

bool fk_path_match(fk_rules rules, fk_str pattern, fk_str name)
{
    const fk_ruleset *set = fk__ruleset(rules);
    fk_str after_star = { NULL, 0 }; /* of the pattern, behind the last '*' */
    fk_str retry = name;             /* of the name, where that is tried next */
    while (name.len > 0) {
        if (pattern.len > 0 && *pattern.ptr == '*') {
            pattern = after_star = glob_skip_stars(pattern);
            retry = name;
            continue;
        }
        if (pattern.len > 0) {
            fk_str rest = pattern, tail = name;
            bool any = *pattern.ptr == '?';
            uint32_t wanted = glob_take(set, &rest);
            if (glob_take(set, &tail) == wanted || any) {
                pattern = rest;
                name = tail;
                continue;
            }
        }
        if (after_star.ptr == NULL) return false;
        (void)glob_take(set, &retry);
        name = retry;
        pattern = after_star;
    }
    return glob_skip_stars(pattern).len == 0;
}
