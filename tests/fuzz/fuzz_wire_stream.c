/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a byte, which says how long pieces are, and a stream. In pieces it must come out as
 * it does in one. Not too many of them: each is a block of its own, and that takes time. */

#include "fuzz/fuzz.h"
#include "support/wire_reader.h"

enum { STREAM_MAX = 2048, FRAME_MAX = 1024, PIECES_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cuts[PIECES_MAX + 1];
    if (size == 0 || size > STREAM_MAX) return 0;
    fk_str stream = { (const char *)data + 1, size - 1 };
    size_t count = 0, step = 1 + data[0] % 64 + stream.len / PIECES_MAX;
    for (size_t at = step; at < stream.len; at += step) cuts[count++] = at; /* PIECES_MAX at most */
    cuts[count] = 0;
    wire_outcome pieces = wire_stream(stream, cuts, FRAME_MAX);
    wire_outcome whole = wire_stream(stream, (size_t[]){ 0 }, FRAME_MAX);
    FUZZ_CHECK(pieces.err == whole.err && pieces.at == whole.at);
    FUZZ_CHECK(pieces.frames == whole.frames && pieces.checksum == whole.checksum);
    return 0;
}
