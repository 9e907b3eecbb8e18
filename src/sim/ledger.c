/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/ledger.h"

#include "base/base.h"
#include "base/hash.h"
#include "sim/world.h"

fk_ledger fk__ledger;

static fk_ledger *const l = &fk__ledger;
static FILE *follower;

void fk__ledger_begin(void)
{
    memset(l, 0, offsetof(fk_ledger, person));
    l->mail_count = l->alarm_count = 1;
    l->hash = UINT64_C(0xCBF29CE484222325);
}

void fk__ledger_follow(FILE *out)
{
    follower = out;
}

void fk__ledger_note(fk_fact_kind kind, uint32_t actor, uint32_t other, uint32_t number,
                     uint32_t detail)
{
    fk_fact fact = { kind, fk__world_self(), fk__world_now(), actor, other, number, detail };
    l->recent[l->facts++ % FK_FACTS_SHOWN] = fact;
    uint64_t words[3] = { (uint64_t)kind << 56 ^ (uint64_t)(uint32_t)fact.at << 16 ^ fact.thread,
                          (uint64_t)actor << 48 ^ (uint64_t)other << 32 ^ number, detail };
    for (int i = 0; i < 3; i++) l->hash = fk__mix64(l->hash ^ words[i]);
    if (follower != NULL) fk__fact_print(follower, &fact);
}

static const char *fact_text(fk_fact_kind kind)
{
    static const char *const TEXTS[] = {
#define FACT_TEXT(NAME, text) text,
        FK_FACTS(FACT_TEXT)
#undef FACT_TEXT
    };
    return TEXTS[kind];
}

static void print_actor(FILE *out, const char *before, uint32_t actor)
{
    if (actor == FK_NOBODY)
        fprintf(out, "%s-", before);
    else
        fprintf(out, "%sa%u", before, (unsigned)actor);
}

void fk__fact_print(FILE *out, const fk_fact *fact)
{
    char thread[16] = "-"; /* while nobody runs */
    if (fact->thread < FK_MACHINE_THREADS_MAX) {
        snprintf(thread, sizeof(thread), "t%u", (unsigned)fact->thread);
    }
    fprintf(out, "%14.6f ms  %-3s %-20s ", (double)fact->at / 1e6, thread, fact_text(fact->kind));
    print_actor(out, "", fact->actor);
    print_actor(out, " ", fact->other);
    fprintf(out, " #%u %u\n", (unsigned)fact->number, (unsigned)fact->detail);
}

void fk__ledger_print(FILE *out)
{
    uint64_t first = l->facts > FK_FACTS_SHOWN ? l->facts - FK_FACTS_SHOWN : 0;
    fprintf(out, "      virtual time  thread fact       actor other #number detail\n");
    for (uint64_t i = first; i < l->facts; i++) {
        fk__fact_print(out, &l->recent[i % FK_FACTS_SHOWN]);
    }
}
