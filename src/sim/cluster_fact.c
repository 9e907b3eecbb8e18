/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/cluster_fact.h"

#include "sim/cluster.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 60 };

typedef struct line {
    fk_time at;
    fk_cfact what;
    uint32_t node;
    uint64_t a, b;
    const char *text; /* static; NULL: b is a number */
} line;

static const char *const NAMES[FK_CFACT_COUNT][3] = {
#define CFACT_NAMES(NAME, text, a, b) { text, a, b },
    FK_CFACTS(CFACT_NAMES)
#undef CFACT_NAMES
};

static line recent[SHOWN];
static uint64_t count, hash;
static FILE *follower;
static bool is_brief;

void fk__cfact_begin(void)
{
    count = 0;
    hash = UINT64_C(0xCBF29CE484222325);
}

void fk__cfact_follow(FILE *out, bool brief)
{
    follower = out;
    is_brief = brief;
}

static bool is_part_of_story(const line *l)
{
    switch (l->what) {
    case FK_CFACT_PLAN:
    case FK_CFACT_CUT:
    case FK_CFACT_HEAL:
    case FK_CFACT_JOINED:
    case FK_CFACT_EXPIRE:
    case FK_CFACT_ACT_START:
    case FK_CFACT_ACT_END:
    case FK_CFACT_LEAVING:
    case FK_CFACT_GONE: return true;
    case FK_CFACT_VIEW: return l->node == FK_CSIM_LOCK;
    case FK_CFACT_DONE: return l->b != FK_OK;
    case FK_CFACT_EVENT:
        return l->a == FK_PLACEMENT_LEASE_LOST || l->a == FK_PLACEMENT_FENCED ||
               l->a == FK_PLACEMENT_STATE;
    default: return false;
    }
}

uint64_t fk__cfact_hash(void)
{
    return hash;
}

uint64_t fk__cfact_count(void)
{
    return count;
}

static void print(FILE *out, const line *l)
{
    char node[16] = "-";
    if (l->node == FK_CSIM_LOCK)
        snprintf(node, sizeof(node), "lock");
    else if (l->node == FK_CSIM_ROWS)
        snprintf(node, sizeof(node), "rows");
    else if (l->node < FK_CSIM_NODES)
        snprintf(node, sizeof(node), "n%" PRIu32, l->node);
    const char *const *names = NAMES[l->what];
    fprintf(out, "%12.6f s  %-5s %-18s", (double)l->at / 1e9, node, names[0]);
    if (*names[1] != '\0') fprintf(out, " %s %" PRIu64, names[1], l->a);
    if (l->text != NULL)
        fprintf(out, " %s", l->text);
    else if (*names[2] != '\0')
        fprintf(out, " %s %" PRIu64, names[2], l->b);
    fputc('\n', out);
}

static void note(const line *l)
{
    recent[count++ % SHOWN] = *l;
    uint64_t words[3] = { (uint64_t)l->what << 56 ^ (uint64_t)l->node << 48 ^ (uint64_t)l->at, l->a,
                          l->b };
    for (int i = 0; i < 3; i++) hash = fk__mix64(hash ^ words[i]);
    if (follower != NULL && (!is_brief || is_part_of_story(l))) print(follower, l);
}

void fk__cfact(fk_cfact what, uint32_t node, uint64_t a, uint64_t b)
{
    note(&(line){ fk__csim.now - fk__csim.begun, what, node, a, b, NULL });
}

void fk__cfact_text(fk_cfact what, uint32_t node, uint64_t a, const char *text)
{
    uint64_t b = 0;
    for (const char *at = text; *at != '\0'; at++) b = b * 31 + (unsigned char)*at;
    note(&(line){ fk__csim.now - fk__csim.begun, what, node, a, b, text });
}

void fk__cfact_print(FILE *out)
{
    uint64_t first = count > SHOWN ? count - SHOWN : 0;
    for (uint64_t i = first; i < count; i++) print(out, &recent[i % SHOWN]);
}
