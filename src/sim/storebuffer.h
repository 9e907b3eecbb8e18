/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_STOREBUFFER_H
#define FK_SIM_STOREBUFFER_H

/*
 * The FIFO store buffer of one virtual thread, and raw access to memory by width. A full
 * buffer pushes its oldest store out, which hardware may do at any moment as well.
 */

#include "base/atomic.h"
#include "sim/happens.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FK_STOREBUFFER_LEN 8u

typedef struct fk_store {
    void *at; /* NULL: discarded, takes its place in the queue and writes nothing */
    uintptr_t value;
    fk_width width;
    fk_clock carried; /* when races are looked for */
} fk_store;

typedef struct fk_storebuffer {
    uint32_t len;
    fk_store store[FK_STOREBUFFER_LEN]; /* oldest first */
} fk_storebuffer;

static inline uintptr_t fk__memory_read(const void *at, fk_width width)
{
    return width == FK_WIDTH_WORD ? *(const uintptr_t *)at : *(const uint32_t *)at;
}

static inline void fk__memory_write(void *at, fk_width width, uintptr_t value)
{
    if (width == FK_WIDTH_WORD) {
        *(uintptr_t *)at = value;
    } else {
        *(uint32_t *)at = (uint32_t)value;
    }
}

/* The youngest store to at, or NULL. */
static inline const fk_store *fk__storebuffer_find(const fk_storebuffer *b, const void *at)
{
    for (uint32_t i = b->len; i > 0; i--) {
        if (b->store[i - 1].at == at) return &b->store[i - 1];
    }
    return NULL;
}

/* There must be room. */
static inline void fk__storebuffer_put(fk_storebuffer *b, fk_store store)
{
    b->store[b->len++] = store;
}

/* Takes the oldest store out; there must be one. */
static inline fk_store fk__storebuffer_take(fk_storebuffer *b)
{
    fk_store oldest = b->store[0];
    b->len--;
    for (uint32_t i = 0; i < b->len; i++) b->store[i] = b->store[i + 1];
    return oldest;
}

#endif /* FK_SIM_STOREBUFFER_H */
