/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/cluster.h"

#include "sim/crash.h"
#include "sim/fiber.h"
#include "sim/sometimes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 2000000, CHUNK = 1 << 20 };

fk_csim fk__csim;

static fk_csim *const w = &fk__csim;
static fk_fiber *fiber;
static bool is_running;
static char failure[400], invariant[16];

/* ---- findings ------------------------------------------------------------------------------ */

bool fk__csim_is_running(void)
{
    return is_running;
}

const char *fk__csim_invariant(void)
{
    return invariant;
}

/* What the run was doing is left as it stands; its memory goes with the next run. */
void fk__csim_fail(const char *which, const char *format, ...)
{
    if (failure[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(failure, sizeof(failure), format, arguments);
        va_end(arguments);
        snprintf(invariant, sizeof(invariant), "%s", which);
    }
    for (;;) fk__fiber_switch(NULL);
}

void fk__csim_assert_failed(const char *file, int line)
{
    fk__csim_fail("assertion", "%s:%d", file, line);
}

static void crashed(const char *what)
{
    fk__csim_fail("crash", "%s", what);
}

/* ---- memory of the run --------------------------------------------------------------------- */

typedef struct chunk {
    struct chunk *next;
    size_t used;
    _Alignas(16) unsigned char bytes[CHUNK];
} chunk;

static chunk *chunks, *current;

static void out_of_memory(void)
{
    fputs("fraktor-sim: out of memory\n", stderr);
    exit(2);
}

void *fk__csim_new(size_t size)
{
    size = (size + 15) & ~(size_t)15;
    FK_ASSERT(size <= CHUNK);
    if (current == NULL || current->used + size > CHUNK) {
        chunk *next = current != NULL ? current->next : chunks;
        if (next == NULL) {
            next = malloc(sizeof(chunk));
            if (next == NULL) out_of_memory();
            next->next = NULL;
            if (current != NULL)
                current->next = next;
            else
                chunks = next;
        }
        next->used = 0;
        current = next;
    }
    void *at = current->bytes + current->used;
    current->used += size;
    memset(at, 0, size);
    return at;
}

/* ---- chance -------------------------------------------------------------------------------- */

uint32_t fk__csim_below(uint32_t end)
{
    return (uint32_t)(((fk__rng_next(&w->rng) >> 32) * end) >> 32);
}

bool fk__csim_one_in(uint32_t n)
{
    return n != 0 && fk__csim_below(n) == 0;
}

fk_time fk__csim_between(fk_time low, fk_time high)
{
    uint64_t width = (uint64_t)(high - low) + 1;
    return low + (fk_time)(fk__rng_next(&w->rng) % width);
}

/* ---- events: a heap by time, then by the order in which they were made ------------------------ */

static bool is_before(const fk_csim_event *a, const fk_csim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(const fk_csim_event *event)
{
    if (w->heap_count == w->heap_capacity) {
        uint32_t capacity = w->heap_capacity == 0 ? 4096 : w->heap_capacity * 2;
        fk_csim_event *heap = realloc(w->heap, capacity * sizeof(*heap));
        if (heap == NULL) out_of_memory();
        w->heap = heap;
        w->heap_capacity = capacity;
    }
    uint32_t at = w->heap_count++;
    while (at != 0 && is_before(event, &w->heap[(at - 1) / 2])) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = *event;
}

static fk_csim_event pop(void)
{
    fk_csim_event first = w->heap[0], last = w->heap[--w->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= w->heap_count) break;
        if (child + 1 < w->heap_count && is_before(&w->heap[child + 1], &w->heap[child])) child++;
        if (!is_before(&w->heap[child], &last)) break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return first;
}

void fk__csim_at(fk_time delay, void (*fn)(void *arg, uint64_t number), void *arg, uint64_t number)
{
    push(&(fk_csim_event){ .at = w->now + delay,
                           .order = ++w->order,
                           .fn = fn,
                           .arg = arg,
                           .number = number,
                           .node = FK_CSIM_NOBODY });
}

uint64_t fk__csim_node_at(fk_csim_node *n, fk_time delay, void (*fn)(void *arg, uint64_t number),
                          void *arg, uint64_t number)
{
    push(&(fk_csim_event){ .at = w->now + delay,
                           .order = ++w->order,
                           .fn = fn,
                           .arg = arg,
                           .number = number,
                           .life = n->life,
                           .node = n->index });
    return w->order;
}

static void step(void)
{
    fk_csim_event event = pop();
    w->now = event.at;
    if (event.node == FK_CSIM_NOBODY) {
        w->events++;
        event.fn(event.arg, event.number);
        return;
    }
    fk_csim_node *n = &w->node[event.node];
    if (n->life != event.life || n->state == FK_CSIM_ABSENT) return;
    if (n->paused_until > w->now) { /* it keeps its place among those that wait with it */
        event.at = n->paused_until;
        push(&event);
        return;
    }
    w->events++;
    event.fn(event.arg, event.number);
    if (n->life == event.life && n->state != FK_CSIM_ABSENT) fk__csim_node_after(n);
}

static void pass(fk_time end)
{
    while (w->heap_count != 0 && w->heap[0].at <= end) {
        step();
        if (w->events > EVENTS_MAX) fk__csim_fail("I12", "livelock: there is no end of events");
    }
    w->now = end;
}

/* ---- the run ------------------------------------------------------------------------------- */

static void make_keys(void)
{
    static const char *const KINDS[FK_CSIM_KINDS] = { "account", "cache" };
    for (uint32_t i = 0; i < FK_CSIM_KEYS; i++) {
        w->key_kind[i] = i % 4 == 3; /* every fourth is volatile */
        snprintf(w->key_text[i], sizeof(w->key_text[i]), "g%u", (unsigned)i);
        fk_err err = fk_grain_key_of(fk_str_of(KINDS[w->key_kind[i]]), fk_str_of(w->key_text[i]),
                                     &w->key[i]);
        FK_ASSERT(err == FK_OK);
    }
    for (uint32_t kind = 0; kind < FK_CSIM_KINDS; kind++) {
        uint32_t found = 0;
        for (uint32_t i = 0; found < FK_CSIM_SLOTS; i++) {
            char text[8];
            fk_grain_key key;
            snprintf(text, sizeof(text), "p%u", (unsigned)(i % 100000));
            fk_err err = fk_grain_key_of(fk_str_of(KINDS[kind]), fk_str_of(text), &key);
            FK_ASSERT(err == FK_OK);
            uint32_t slot = fk_slot_of(key.id, FK_CSIM_SLOTS);
            if (w->probe[kind][slot].key.len != 0) continue;
            memcpy(w->probe_text[kind][slot], text, sizeof(text));
            key.key.ptr = w->probe_text[kind][slot];
            w->probe[kind][slot] = key;
            found++;
        }
    }
}

static uint32_t count_open(void)
{
    return w->book.deeds_open;
}

/* After the last fault everything must come right within two leases and the longest timeouts. */
static void recover(void)
{
    const fk_csim_plan *p = &w->plan;
    fk_time within = FK_SECONDS(6) + p->command_timeout + 2 * p->op_timeout + FK_SECONDS(4);
    fk__csim_heal();
    w->healed_at = w->now;
    pass(w->now + within);
    w->is_closing = true;
    fk_time end = w->now + p->call_timeout + FK_SECONDS(1);
    while (count_open() != 0 && w->now < end) pass(w->now + FK_MILLIS(100));
    if (count_open() != 0) fk__csim_fail("L1", "%u calls do not end", (unsigned)count_open());
}

/* Every node reaches every grain; one node after the other, so that none is in the way. */
static void probe(void)
{
    pass(w->now + FK_SECONDS(2)); /* calls that nobody waits for any more are still on their way */
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        fk_csim_node *n = &w->node[i];
        uint32_t first = w->book.deed_count;
        if (n->state != FK_CSIM_RUNNING) continue;
        for (uint32_t key = 0; key < w->plan.keys; key++) fk__csim_ask(n, key, i % 2 != 0, 0);
        fk__csim_node_after(n);
        fk_time end = w->now + w->plan.call_timeout + FK_SECONDS(1);
        while (count_open() != 0 && w->now < end) pass(w->now + FK_MILLIS(50));
        for (uint32_t k = first; k < w->book.deed_count; k++) {
            const fk_csim_deed *d = &w->book.deed[k];
            if (d->is_over && d->err == FK_OK) continue;
            fk__csim_fail("L3", "n%u cannot reach g%u: %s", (unsigned)d->node, (unsigned)d->key,
                          d->is_over ? fk_err_name(d->err) : "no end");
        }
    }
}

/* One after the other, and the next when all know of it. */
static void stop_all(void)
{
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        fk_csim_node *n = &w->node[i];
        if (n->state != FK_CSIM_RUNNING) continue;
        fk__csim_leave(n, false);
        fk_time end = w->now + FK_SECONDS(20);
        while (n->state != FK_CSIM_ABSENT && w->now < end) pass(w->now + FK_MILLIS(50));
        if (n->state != FK_CSIM_ABSENT) fk__csim_fail("L5", "n%u does not end", (unsigned)i);
        pass(w->now + 2 * w->plan.view_every + FK_MILLIS(200));
    }
}

static void run_main(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        fk_csim_node *n = &w->node[i];
        bool is_there = n->is_guest ? w->plan.has_guest : i < w->plan.members;
        if (is_there) fk__csim_boot(n);
    }
    pass(w->now + FK_SECONDS(2));
    fk__csim_trouble_begin();
    pass(w->now + w->plan.trouble);
    recover();
    probe();
    fk__book_check_live();
    pass(w->now + w->plan.idle_ttl + FK_SECONDS(5));
    fk__book_check_idle();
    stop_all();
    fk__book_check_ended();
}

static void begin(uint64_t seed, bool is_split)
{
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) fk__csim_abandon(&w->node[i]);
    fk_csim_event *heap = w->heap;
    uint32_t capacity = w->heap_capacity;
    memset(w, 0, sizeof(*w));
    w->heap = heap;
    w->heap_capacity = capacity;
    current = NULL;
    w->rng.state = fk__mix64(seed ^ UINT64_C(0x7C15D1CE5EED0001)) | 1;
    fk__csim_plan_draw(&w->plan, seed, is_split);
    w->begun = w->now = FK_SECONDS(1000);
    w->is_strict = w->plan.mood != FK_CSIM_CLOCKS;
    w->alone = FK_CSIM_NOBODY;
    failure[0] = invariant[0] = '\0';
    fk__cfact_begin();
    fk__cfact_text(FK_CFACT_PLAN, FK_CSIM_NOBODY, w->plan.mood, fk__csim_mood_name(w->plan.mood));
    make_keys();
    fk__book_begin();
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        fk_csim_node *n = &w->node[i];
        n->index = (uint8_t)i;
        n->is_guest = i >= FK_CSIM_MEMBERS;
        n->clock_true = w->now;
        n->clock_local = FK_SECONDS(1 + fk__csim_below(100000));
        n->clock_ppm = (int32_t)fk__csim_between(-w->plan.ppm_max, w->plan.ppm_max);
    }
}

static const char *run(uint64_t seed, bool is_split)
{
    if (fiber == NULL) {
        fiber = fk__fiber_create(FK_FIBER_STACK_SIZE);
        if (fiber == NULL) out_of_memory();
        fk__crash_install(crashed);
    }
    is_running = true;
    begin(seed, is_split);
    fk__fiber_start(fiber, run_main, NULL);
    fk__fiber_switch(fiber);
    is_running = false;
    return failure[0] != '\0' ? failure : NULL;
}

const char *fk__csim_run(uint64_t seed)
{
    return run(seed, false);
}

const char *fk__csim_run_split(uint64_t seed)
{
    return run(seed, true);
}

uint64_t fk__csim_events(void)
{
    return w->events;
}

uint64_t fk__csim_calls(void)
{
    return w->book.calls;
}

const char *fk__csim_plan_text(void)
{
    static char text[200];
    const fk_csim_plan *p = &w->plan;
    snprintf(
        text, sizeof(text),
        "%s: %u members%s, %u grains, %u clients each, trouble for %lld s, %u calls, %u failed",
        fk__csim_mood_name(p->mood), (unsigned)p->members, p->has_guest ? " and a guest" : "",
        (unsigned)p->keys, (unsigned)p->clients, (long long)(p->trouble / FK_SECONDS(1)),
        (unsigned)w->book.deed_count, (unsigned)w->book.failed);
    return text;
}

void fk__csim_tell(FILE *out)
{
    static const char *const PARTS[3] = { "before", "cut", "healed" };
    fprintf(out, "%s\n", fk__csim_plan_text());
    fprintf(out, "node     part     turns  last turn  calls: ok  FK_E_NOT_READY  other errors\n");
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        bool is_there = w->node[i].is_guest ? w->plan.has_guest : i < w->plan.members;
        for (uint32_t part = 0; part < 3 && is_there; part++) {
            fprintf(out, "n%u%-6s %-7s %6u %8.3f s %10u %15u %13u\n", (unsigned)i,
                    i == w->alone         ? " (cut)"
                    : w->node[i].is_guest ? " guest"
                                          : "",
                    PARTS[part], (unsigned)w->book.part[i][part].turns,
                    (double)w->book.part[i][part].last_turn / 1e9,
                    (unsigned)w->book.part[i][part].ok, (unsigned)w->book.part[i][part].not_ready,
                    (unsigned)w->book.part[i][part].other);
        }
    }
    fprintf(out, "one activation of each grain at most, all along and after healing: %s\n",
            failure[0] == '\0' ? "yes" : failure);
}
