/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/linear.h"

#include "base/base.h"

#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
    const fk_linear_call *x = a, *y = b;
    return x->begun < y->begun ? -1 : x->begun > y->begun;
}

static int by_end(const void *a, const void *b)
{
    const fk_linear_call *const *x = a, *const *y = b;
    return (*x)->ended < (*y)->ended ? -1 : (*x)->ended > (*y)->ended;
}

static const fk_linear_call *ends[FK_LINEAR_MAX];
static uint64_t free_from[FK_LINEAR_MAX];   /* of additions of unknown end: totals above this */
static bool is_told[2 * FK_LINEAR_MAX + 1]; /* totals of additions */

/* The greatest total that was known before each call began: calls are sorted by begin, ends by end. */
static const char *sweep(fk_linear_call *calls, uint32_t count, uint32_t *unknown, uint32_t *at)
{
    uint64_t known = 0;
    uint32_t ended = 0;
    for (uint32_t i = 0; i < count; i++) {
        const fk_linear_call *c = &calls[i];
        for (; ended < count && ends[ended]->ended < c->begun; ended++) {
            if (ends[ended]->value > known) known = ends[ended]->value;
        }
        *at = i;
        if (c->ended == FK_NEVER) {
            if (!c->is_read) free_from[(*unknown)++] = known;
        } else if (c->is_read && c->value < known) {
            return "a read was told less than what was known before it began";
        } else if (!c->is_read && c->value <= known) {
            return "an addition was told a total that was known before it began";
        }
    }
    return NULL;
}

/* free_from only grows: the first total that nobody made is for the first addition of unknown end,
 * which is the one that can make the most totals. */
static const char *fill(uint64_t total, uint32_t unknown)
{
    uint32_t used = 0;
    for (uint64_t made = 1; made <= total; made++) {
        if (is_told[made]) continue;
        if (used == unknown) return "a total was made by nobody";
        if (free_from[used] >= made) return "a total was made before the call that made it began";
        used++;
    }
    return NULL;
}

const char *fk__linear_check(fk_linear_call *calls, uint32_t count, uint64_t total, uint32_t *at)
{
    *at = 0;
    if (count > FK_LINEAR_MAX) return "there are too many calls";
    if (total > count) return "the total is greater than the number of calls";
    for (uint64_t i = 0; i <= total; i++) is_told[i] = false;
    qsort(calls, count, sizeof(*calls), by_begin);
    for (uint32_t i = 0; i < count; i++) {
        const fk_linear_call *c = ends[i] = &calls[i];
        *at = i;
        if (c->ended == FK_NEVER) continue;
        if (c->value > total) return "a call was told more than there is";
        if (c->is_read) continue;
        if (c->value == 0) return "an addition was told 0";
        if (is_told[c->value]) return "two additions were told the same total";
        is_told[c->value] = true;
    }
    qsort(ends, count, sizeof(*ends), by_end);
    uint32_t unknown = 0;
    const char *wrong = sweep(calls, count, &unknown, at);
    return wrong != NULL ? wrong : fill(total, unknown);
}
