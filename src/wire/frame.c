/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "wire/frame.h"

enum { MAGIC_SIZE = 4 };

static const char FRAME_MAGIC[FK_MAGIC_COUNT][MAGIC_SIZE + 1] = {
    [FK_MAGIC_PEKKO] = "PEKK",
    [FK_MAGIC_AKKA] = "AKKA",
};

void fk__connection_header_write(fk_wire_magic magic, fk_wire_stream stream,
                                 unsigned char to[FK_CONNECTION_HEADER])
{
    FK_ASSERT(magic < FK_MAGIC_COUNT);
    FK_ASSERT(stream > FK_STREAM_NONE);
    FK_ASSERT(stream < FK_STREAM_COUNT);
    memcpy(to, FRAME_MAGIC[magic], MAGIC_SIZE);
    to[MAGIC_SIZE] = (unsigned char)stream;
}

void fk__deframer_init(fk_deframer *d)
{
    *d = (fk_deframer){ .stream = FK_STREAM_NONE };
    d->frame_max[FK_STREAM_CONTROL] = FK_FRAME_MAX;
    d->frame_max[FK_STREAM_ORDINARY] = FK_FRAME_MAX;
    d->frame_max[FK_STREAM_LARGE] = FK_FRAME_MAX_LARGE;
}

void fk__deframer_lend(fk_deframer *d, void *room, uint32_t size)
{
    FK_ASSERT(d->room_len == 0);
    FK_ASSERT(room != NULL || size == 0);
    FK_ASSERT(size >= d->frame_len);
    d->room = room;
    d->room_size = size;
}

static void deframer_use(fk_deframer *d, fk_str *bytes, size_t n)
{
    bytes->ptr += n;
    bytes->len -= n;
    d->offset += n;
}

static FK_COLD fk_deframe deframer_fail(fk_deframer *d, fk_err err, uint64_t at,
                                        const char *message)
{
    (void)fk__wire_fail(&d->fault, err, at, message);
    return FK_DEFRAME_FAULT;
}

/* Up to `size` bytes of a header into d->head; true when they are complete. */
static bool deframer_collect(fk_deframer *d, fk_str *bytes, uint32_t size)
{
    size_t n = size - d->head_len;
    if (n > bytes->len) n = bytes->len;
    if (n > 0) memcpy(d->head + d->head_len, bytes->ptr, n);
    d->head_len += (uint32_t)n;
    deframer_use(d, bytes, n);
    return d->head_len == size;
}

/* How many of the first len bytes are some magic's. */
static uint32_t magic_match(const unsigned char *head, uint32_t len, fk_wire_magic *magic)
{
    uint32_t best = 0;
    for (unsigned m = 0; m < FK_MAGIC_COUNT; m++) {
        uint32_t n = 0;
        while (n < len && head[n] == (unsigned char)FRAME_MAGIC[m][n]) n++;
        if (n <= best) continue;
        best = n;
        *magic = (fk_wire_magic)m;
    }
    return best;
}

/* A stranger is turned away at the first byte that is wrong, not when all five have come. */
static fk_deframe deframer_header(fk_deframer *d, fk_str *bytes)
{
    bool whole = deframer_collect(d, bytes, FK_CONNECTION_HEADER);
    uint32_t len = d->head_len < MAGIC_SIZE ? d->head_len : MAGIC_SIZE;
    uint32_t good = magic_match(d->head, len, &d->magic);
    if (good < len) {
        return deframer_fail(d, FK_E_MALFORMED, good, "a connection begins with PEKK or AKKA");
    }
    if (!whole) return FK_DEFRAME_MORE;
    unsigned stream = d->head[MAGIC_SIZE];
    if (stream == FK_STREAM_NONE || stream >= FK_STREAM_COUNT) {
        return deframer_fail(d, FK_E_MALFORMED, MAGIC_SIZE, "the stream must be 1, 2 or 3");
    }
    d->stream = (fk_wire_stream)stream;
    d->head_len = 0;
    return FK_DEFRAME_STREAM;
}

/* The length is judged before a byte of the frame is looked at, let alone kept. */
static inline fk_deframe deframer_length(fk_deframer *d, fk_str *bytes)
{
    uint32_t len;
    if (FK_LIKELY(d->head_len == 0 && bytes->len >= FK_FRAME_HEADER)) {
        len = fk__load32(bytes->ptr);
        deframer_use(d, bytes, FK_FRAME_HEADER);
    } else {
        if (!deframer_collect(d, bytes, FK_FRAME_HEADER)) return FK_DEFRAME_MORE;
        len = fk__load32(d->head);
    }
    uint64_t at = d->offset - FK_FRAME_HEADER;
    d->head_len = 0;
    if (len == 0) return deframer_fail(d, FK_E_MALFORMED, at, "a frame without bytes");
    if (len > d->frame_max[d->stream]) {
        return deframer_fail(d, FK_E_LIMIT, at, "the frame is longer than this stream allows");
    }
    d->frame_len = len;
    return FK_DEFRAME_FRAME;
}

static fk_deframe deframer_body(fk_deframer *d, fk_str *bytes, fk_str *frame)
{
    uint32_t len = d->frame_len;
    if (d->room_len == 0 && bytes->len >= len) {
        *frame = (fk_str){ bytes->ptr, len };
        deframer_use(d, bytes, len);
        d->frame_len = 0;
        return FK_DEFRAME_FRAME;
    }
    if (bytes->len == 0) return FK_DEFRAME_MORE;
    if (d->room_size < len) return FK_DEFRAME_ROOM;
    size_t n = len - d->room_len;
    if (n > bytes->len) n = bytes->len;
    memcpy(d->room + d->room_len, bytes->ptr, n);
    d->room_len += (uint32_t)n;
    deframer_use(d, bytes, n);
    if (d->room_len < len) return FK_DEFRAME_MORE;
    *frame = (fk_str){ (const char *)d->room, len };
    d->frame_len = 0;
    d->room_len = 0;
    return FK_DEFRAME_FRAME;
}

fk_deframe fk__deframer_step(fk_deframer *d, fk_str *bytes, fk_str *frame)
{
    if (d->fault.err != FK_OK) return FK_DEFRAME_FAULT;
    if (d->stream == FK_STREAM_NONE) return deframer_header(d, bytes);
    if (d->frame_len == 0) {
        fk_deframe result = deframer_length(d, bytes);
        if (result != FK_DEFRAME_FRAME) return result;
    }
    return deframer_body(d, bytes, frame);
}

fk_err fk__deframer_end(const fk_deframer *d, fk_wire_fault *fault)
{
    if (d->fault.err != FK_OK) {
        if (fault != NULL) *fault = d->fault;
        return d->fault.err;
    }
    if (d->head_len == 0 && d->frame_len == 0) return FK_OK;
    return fk__wire_fail(fault, FK_E_TRUNCATED, d->offset,
                         d->stream == FK_STREAM_NONE ? "the connection header is cut"
                                                     : "the last frame is cut");
}
