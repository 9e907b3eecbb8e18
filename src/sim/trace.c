/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/trace.h"

#include "sim/quarantine.h"

#include <inttypes.h>

enum { EVENTS_MAX = 400, LABELS_MAX = 512, NAME_MAX_LEN = 64 };

typedef struct label {
    uintptr_t at;
    size_t size;
    uint32_t count;
    const char *name;
} label;

static bool is_on;
static fk_access events[EVENTS_MAX]; /* a ring: the last EVENTS_MAX of event_count */
static uint64_t event_count;
static label labels[LABELS_MAX];
static uint32_t label_count;

void fk__trace_reset(bool on)
{
    is_on = on;
    event_count = 0;
    label_count = 0;
}

void fk__trace_label(const void *at, size_t size, uint32_t count, const char *name)
{
    if (!is_on || label_count == LABELS_MAX) return;
    labels[label_count++] = (label){ (uintptr_t)at, size, count, name };
}

void fk__trace_event(void *ctx, const fk_access *event)
{
    (void)ctx;
    if (is_on) events[event_count++ % EVENTS_MAX] = *event;
}

static void put_offset(char *out, size_t used, size_t offset)
{
    if (offset > 0) snprintf(out + used, NAME_MAX_LEN - used, "+%zu", offset);
}

/* The name of an address: of the smallest label that holds it, else of its block. */
static bool name_of(uintptr_t at, char *out)
{
    const label *best = NULL;
    for (uint32_t i = 0; i < label_count; i++) {
        const label *l = &labels[i];
        if (at - l->at >= l->size * l->count) continue;
        if (best == NULL || l->size <= best->size) best = l;
    }
    uint32_t block;
    size_t offset;
    int used;
    if (best != NULL && best->count > 1) {
        offset = (at - best->at) % best->size;
        used = snprintf(out, NAME_MAX_LEN, "%s[%zu]", best->name,
                        (size_t)(at - best->at) / best->size);
    } else if (best != NULL) {
        offset = at - best->at;
        used = snprintf(out, NAME_MAX_LEN, "%s", best->name);
    } else if (fk__quarantine_find((const void *)at, &block, &offset)) {
        used = snprintf(out, NAME_MAX_LEN, "block%" PRIu32, block);
    } else {
        return false;
    }
    put_offset(out, used < NAME_MAX_LEN ? (size_t)used : NAME_MAX_LEN - 1, offset);
    return true;
}

static const char *value_text(uintptr_t value, char *out)
{
    if (value < 65536) {
        snprintf(out, NAME_MAX_LEN, "%" PRIuPTR, value);
    } else if (!name_of(value, out)) {
        snprintf(out, NAME_MAX_LEN, "0x%" PRIxPTR, value);
    }
    return out;
}

static void print_event(FILE *out, uint64_t number, const fk_access *e)
{
    char at[NAME_MAX_LEN] = "";
    char before[NAME_MAX_LEN];
    char after[NAME_MAX_LEN];
    if (e->at != NULL && !name_of((uintptr_t)e->at, at)) snprintf(at, sizeof(at), "%p", e->at);
    value_text(e->before, before);
    value_text(e->after, after);
    fprintf(out, "%6" PRIu64 "  %*sT%" PRIu32 " %-6s ", number, (int)e->thread * 2, "", e->thread,
            fk__event_name(e->kind));
    switch (e->kind) {
    case FK_ACCESS_NOTE: fprintf(out, "%s %s", e->text, after); break;
    case FK_ACCESS_AWAIT:
    case FK_ACCESS_RELAX:
    case FK_ACCESS_END: break;
    case FK_ACCESS_NOTIFY: fprintf(out, "%s", at); break;
    case FK_ACCESS_WAIT: fprintf(out, "%s is %s, seen %s", at, before, after); break;
    case FK_ACCESS_LOAD: fprintf(out, "%s = %s  (%s)", at, after, fk__order_name(e->order)); break;
    case FK_ACCESS_FLUSH: fprintf(out, "%s: %s -> %s", at, before, after); break;
    case FK_ACCESS_CAS_FAILED:
        fprintf(out, "%s = %s, not made %s  (%s)", at, before, after, fk__order_name(e->order));
        break;
    default:
        fprintf(out, "%s: %s -> %s  (%s%s)", at, before, after, fk__order_name(e->order),
                e->is_buffered ? ", buffered" : "");
        break;
    }
    fputc('\n', out);
}

void fk__trace_print(FILE *out)
{
    uint64_t first = event_count > EVENTS_MAX ? event_count - EVENTS_MAX : 0;
    if (first > 0) fprintf(out, "        ... %" PRIu64 " earlier events\n", first);
    for (uint64_t i = first; i < event_count; i++) {
        print_event(out, i, &events[i % EVENTS_MAX]);
    }
}
