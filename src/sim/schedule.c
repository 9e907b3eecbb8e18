/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/schedule.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PCT_STEPS_FIRST = 64, PCT_SAME_MAX = 200, PCT_DEPTH_MAX = 16 };

void fk__schedule_init(fk_schedule *s, fk_schedule_kind kind, uint32_t bound, uint64_t seed)
{
    memset(s, 0, offsetof(fk_schedule, chosen));
    s->kind = kind;
    s->bound = bound;
    s->seed = seed;
    s->steps_seen = PCT_STEPS_FIRST;
    s->replay = NULL;
    s->replay_len = 0;
    if (kind == FK_SCHEDULE_PCT && s->bound > PCT_DEPTH_MAX) s->bound = PCT_DEPTH_MAX;
}

void fk__schedule_init_replay(fk_schedule *s, const uint8_t *actions, size_t len)
{
    fk__schedule_init(s, FK_SCHEDULE_REPLAY, 0, 0);
    s->replay = actions;
    s->replay_len = len;
}

/* splitmix64: any state is a good one, so each schedule can start from its number. */
static uint64_t random_u64(fk_schedule *s)
{
    uint64_t z = s->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint32_t random_below(fk_schedule *s, uint32_t end)
{
    return (uint32_t)(((random_u64(s) >> 32) * end) >> 32);
}

static void begin_pct(fk_schedule *s)
{
    s->lowest = 0;
    s->same_count = 0;
    for (uint32_t i = 0; i < 32; i++) s->priority[i] = 1 + (int64_t)(random_u64(s) >> 2);
    for (uint32_t i = 0; i + 1 < s->bound; i++) {
        s->change[i] = random_below(s, (uint32_t)s->steps_seen);
    }
}

void fk__schedule_begin(fk_schedule *s)
{
    s->count++;
    s->random = s->seed;
    s->random = random_u64(s) ^ s->count * UINT64_C(0xD1342543DE82EF95);
    s->depth = 0;
    s->preemptions = 0;
    if (s->kind == FK_SCHEDULE_PCT) begin_pct(s);
}

static uint32_t nth_bit(uint32_t mask, uint32_t n)
{
    for (; n > 0; n--) mask &= mask - 1;
    return (uint32_t)__builtin_ctz(mask);
}

/* The choices are: go on with the last thread, then all others in order. */
static uint32_t choose_dfs(fk_schedule *s, const fk_machine *m, uint32_t mask)
{
    uint32_t last = fk__machine_last(m);
    bool can_go_on = last != FK_MACHINE_NOBODY && (mask >> last & 1) != 0;
    uint32_t others = can_go_on ? mask & ~(UINT32_C(1) << last) : mask;
    if (can_go_on && s->preemptions >= s->bound) return last;

    uint32_t options = (uint32_t)__builtin_popcount(mask);
    uint32_t at = s->depth++;
    if (at == FK_SCHEDULE_STEPS_MAX) return FK_MACHINE_NOBODY;
    if (at == s->length) {
        s->chosen[at] = 0;
        s->options[at] = (uint8_t)options;
        s->length++;
    } else if (s->options[at] != options) {
        s->is_unsteady = true;
        return FK_MACHINE_NOBODY;
    }
    uint32_t choice = s->chosen[at];
    if (!can_go_on) return nth_bit(others, choice);
    if (choice == 0) return last;
    s->preemptions++;
    return nth_bit(others, choice - 1);
}

static uint32_t choose_random(fk_schedule *s, uint32_t mask)
{
    return nth_bit(mask, random_below(s, (uint32_t)__builtin_popcount(mask)));
}

static uint32_t choose_pct(fk_schedule *s, const fk_machine *m, uint32_t mask)
{
    uint64_t step = fk__machine_steps(m);
    uint32_t last = fk__machine_last(m);
    for (uint32_t rest = fk__machine_yielded(m); rest != 0; rest &= rest - 1) {
        s->priority[nth_bit(rest, 0)] = --s->lowest;
    }
    for (uint32_t i = 0; i + 1 < s->bound; i++) {
        if (s->change[i] == step && last != FK_MACHINE_NOBODY) s->priority[last] = --s->lowest;
    }
    if (s->same_count > PCT_SAME_MAX) s->priority[last] = --s->lowest;
    uint32_t best = nth_bit(mask, 0);
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        uint32_t action = nth_bit(rest, 0);
        if (s->priority[action] > s->priority[best]) best = action;
    }
    s->same_count = best == last ? s->same_count + 1 : 0;
    return best;
}

static uint32_t choose_replay(const fk_schedule *s, const fk_machine *m, uint32_t mask)
{
    uint64_t step = fk__machine_steps(m);
    if (step >= s->replay_len) return FK_MACHINE_NOBODY;
    uint32_t action = s->replay[step];
    return action < 32 && (mask >> action & 1) != 0 ? action : FK_MACHINE_NOBODY;
}

uint32_t fk__schedule_choose(void *ctx, const fk_machine *m, uint32_t mask)
{
    fk_schedule *s = ctx;
    switch (s->kind) {
    case FK_SCHEDULE_DFS: return choose_dfs(s, m, mask);
    case FK_SCHEDULE_RANDOM: return choose_random(s, mask);
    case FK_SCHEDULE_PCT: return choose_pct(s, m, mask);
    case FK_SCHEDULE_REPLAY: return choose_replay(s, m, mask);
    }
    abort();
}

bool fk__schedule_next(fk_schedule *s, uint64_t steps)
{
    if (steps > s->steps_seen) s->steps_seen = steps;
    if (s->kind != FK_SCHEDULE_DFS) return s->kind != FK_SCHEDULE_REPLAY;
    while (s->length > 0 && s->chosen[s->length - 1] + 1 == s->options[s->length - 1]) s->length--;
    if (s->length == 0) return false;
    s->chosen[s->length - 1]++;
    return true;
}

size_t fk__schedule_format(const uint8_t *actions, size_t len, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        size_t run = 1;
        while (i + run < len && actions[i + run] == actions[i]) run++;
        char token[48];
        int n = snprintf(token, sizeof(token), "%s%u%s", i > 0 ? "." : "",
                         (unsigned)(actions[i] % FK_ACTION_FLUSH),
                         actions[i] >= FK_ACTION_FLUSH ? "f" : "");
        if (run > 1) n += snprintf(token + n, sizeof(token) - (size_t)n, "x%zu", run);
        if (used + (size_t)n < size) memcpy(out + used, token, (size_t)n);
        used += (size_t)n;
        i += run;
    }
    if (size > 0) out[used < size ? used : size - 1] = '\0';
    return used;
}

bool fk__schedule_parse(const char *text, uint8_t *actions, size_t size, size_t *len)
{
    size_t n = 0;
    while (*text != '\0') {
        char *end;
        unsigned long thread = strtoul(text, &end, 10);
        unsigned long run = 1;
        if (end == text || thread >= FK_MACHINE_THREADS_MAX) return false;
        if (*end == 'f') {
            thread += FK_ACTION_FLUSH;
            end++;
        }
        if (*end == 'x') run = strtoul(end + 1, &end, 10);
        if (run > size - n) return false;
        memset(actions + n, (int)thread, run);
        n += run;
        if (*end == '.') end++;
        text = end;
        if (*text != '\0' && (*text < '0' || *text > '9')) return false;
    }
    *len = n;
    return true;
}
