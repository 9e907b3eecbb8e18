/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_WIRE_H
#define FK_WIRE_WIRE_H

/*
 * What all of this part shares. It turns the bytes of the Artery TCP protocol into views and back,
 * and does nothing else: no clock, no allocation, no state but what the caller holds.
 *
 * Bytes are an fk_str, whatever is in them; a view lives as long as the bytes that it was made from.
 * Everything that comes from outside is checked before it is believed: a length against what is
 * left, a limit before anything is kept. What is refused is refused with the place.
 */

#include "base/base.h"

/* Why bytes were refused, and where: the offset of the first one that is wrong, or of the first one
 * that is missing. */
typedef struct fk_wire_fault {
    fk_err err;
    uint64_t at;
    const char *message; /* a sentence; static */
} fk_wire_fault;

/* fault may be NULL. */
static inline fk_err fk__wire_fail(fk_wire_fault *fault, fk_err err, uint64_t at,
                                   const char *message)
{
    if (fault != NULL) *fault = (fk_wire_fault){ err, at, message };
    return err;
}

static inline bool fk__wire_equal(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Little endian whatever the machine; compilers know these for the loads and stores they are. */
static inline uint16_t fk__load16(const void *from)
{
    const unsigned char *at = from;
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t fk__load32(const void *from)
{
    const unsigned char *at = from;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t fk__load64(const void *from)
{
    const unsigned char *at = from;
    return (uint64_t)fk__load32(at) | (uint64_t)fk__load32(at + 4) << 32;
}

static inline void fk__store16(void *to, uint16_t n)
{
    unsigned char *at = to;
    at[0] = (unsigned char)n;
    at[1] = (unsigned char)(n >> 8);
}

static inline void fk__store32(void *to, uint32_t n)
{
    unsigned char *at = to;
    fk__store16(at, (uint16_t)n);
    fk__store16(at + 2, (uint16_t)(n >> 16));
}

static inline void fk__store64(void *to, uint64_t n)
{
    unsigned char *at = to;
    fk__store32(at, (uint32_t)n);
    fk__store32(at + 4, (uint32_t)(n >> 32));
}

#endif /* FK_WIRE_WIRE_H */
