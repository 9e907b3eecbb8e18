/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/happens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Locations are found by address in an open hash table; an entry belongs to the present run when
 * its stamp says so, which makes the reset cheap. */
enum { TABLE_SIZE = 8192 };

typedef struct place {
    uintptr_t at;
    uint64_t stamp;
    fk_clock released; /* what the value carries */
    fk_clock touched;  /* the last atomic access of each thread, */
    fk_clock read;     /* the last plain read, */
    fk_clock written;  /* the last plain write */
} place;

static place table[TABLE_SIZE];
static uint64_t stamp;
static uint32_t place_count;
static uint32_t thread_count;
static fk_clock now[FK_HAPPENS_THREADS_MAX];

void fk__happens_reset(uint32_t threads)
{
    stamp++;
    place_count = 0;
    thread_count = threads;
    memset(now, 0, sizeof(now));
    /* Nothing before the start is ordered by clocks, so a thread's own time begins at 1. */
    for (uint32_t i = 0; i < threads; i++) now[i].at[i] = 1;
}

/* The entry of an address or the free one where it would be. */
static place *look_up(uintptr_t at)
{
    uint64_t hash = (uint64_t)at * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t i = (uint32_t)(hash >> 40) % TABLE_SIZE;
    while (table[i].stamp == stamp && table[i].at != at) i = (i + 1) % TABLE_SIZE;
    return &table[i];
}

static place *find(const void *at)
{
    place *p = look_up((uintptr_t)at);
    if (p->stamp == stamp) return p;
    if (++place_count > TABLE_SIZE / 2) {
        fputs("explorer: too many places to look for races\n", stderr);
        exit(2);
    }
    memset(p, 0, sizeof(*p));
    p->at = (uintptr_t)at;
    p->stamp = stamp;
    return p;
}

static void mark(fk_clock *clock, uint32_t thread)
{
    clock->at[thread] = now[thread].at[thread];
}

static void join(fk_clock *into, const fk_clock *from)
{
    for (uint32_t i = 0; i < thread_count; i++) {
        if (from->at[i] > into->at[i]) into->at[i] = from->at[i];
    }
}

static bool is_before(const fk_clock *a, const fk_clock *b)
{
    for (uint32_t i = 0; i < thread_count; i++) {
        if (a->at[i] > b->at[i]) return false;
    }
    return true;
}

static bool has_release(fk_order o)
{
    return o == FK_RELEASE || o == FK_ACQ_REL || o == FK_SEQ_CST;
}

static bool has_acquire(fk_order o)
{
    return o == FK_ACQUIRE || o == FK_ACQ_REL || o == FK_SEQ_CST;
}

/* What a store carries; what the thread does next is not part of it. */
static fk_clock carry(uint32_t thread, fk_order o)
{
    fk_clock carried = { { 0 } };
    if (has_release(o)) carried = now[thread];
    now[thread].at[thread]++;
    return carried;
}

fk_clock fk__happens_release(uint32_t thread, const void *at, fk_order o)
{
    mark(&find(at)->touched, thread);
    return carry(thread, o);
}

void fk__happens_store(const void *at, const fk_clock *carried)
{
    find(at)->released = *carried;
}

void fk__happens_load(uint32_t thread, const void *at, fk_order o)
{
    place *p = find(at);
    mark(&p->touched, thread);
    if (has_acquire(o)) join(&now[thread], &p->released);
}

void fk__happens_rmw(uint32_t thread, const void *at, fk_order o)
{
    place *p = find(at);
    mark(&p->touched, thread);
    if (has_acquire(o)) join(&now[thread], &p->released);
    fk_clock carried = carry(thread, o);
    join(&p->released, &carried); /* what was released before stays: a release sequence */
}

bool fk__happens_plain(uint32_t thread, const void *at, bool is_write)
{
    place *p = find(at);
    bool ok = is_before(&p->written, &now[thread]);
    if (is_write) ok = ok && is_before(&p->read, &now[thread]);
    mark(is_write ? &p->written : &p->read, thread);
    return ok;
}

bool fk__happens_free(uint32_t thread, const void *at, size_t size)
{
    bool ok = true;
    for (size_t i = 0; i < size && ok; i++) {
        const place *p = look_up((uintptr_t)at + i);
        if (p->stamp != stamp) continue;
        ok = is_before(&p->touched, &now[thread]) && is_before(&p->read, &now[thread]) &&
             is_before(&p->written, &now[thread]);
    }
    return ok;
}
