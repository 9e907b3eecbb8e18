/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A tag says where its text is, and texts come in the order of their tags without gaps. Pekko does
 * not look at the places; here they must be right, so that each envelope has one spelling.
 */

#include "wire/envelope.h"

enum { /* offsets of the fixed part */
       ENVELOPE_VERSION = 0,
       ENVELOPE_FLAGS = 1,
       ENVELOPE_REF_TABLE = 2,
       ENVELOPE_MANIFEST_TABLE = 3,
       ENVELOPE_UID = 4,
       ENVELOPE_SERIALIZER = 12,
       ENVELOPE_SENDER = 16,
       ENVELOPE_RECIPIENT = 20,
       ENVELOPE_MANIFEST = 24,
};

#define TAG_COMPRESSED 0xff000000u /* any of these bits; all of them when written */
#define TAG_INDEX      0x0000ffffu

/* The offset of the first byte that is not ASCII, or the length. */
static FK_COLD size_t ascii_len(fk_str s)
{
    size_t i = 0;
    while (i < s.len && (unsigned char)s.ptr[i] < 0x80) i++;
    return i;
}

/* Two for each message, so without a branch for each word; the last may overlap the one before. */
static inline bool is_ascii(fk_str s)
{
    uint64_t word, all = 0;
    if (FK_UNLIKELY(s.len < sizeof(word))) return ascii_len(s) == s.len;
    const char *last = s.ptr + s.len - sizeof(word);
    for (const char *at = s.ptr; at < last; at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        all |= word;
    }
    memcpy(&word, last, sizeof(word));
    return ((all | word) & 0x8080808080808080u) == 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* `tag` is the offset of the tag, *at of the next text. */
static inline fk_err envelope_name(fk_str frame, size_t tag, size_t *at, fk_wire_name *out,
                                   fk_wire_fault *fault)
{
    uint32_t value = fk__load32(frame.ptr + tag);
    if ((value & TAG_COMPRESSED) != 0) {
        out->index = (uint16_t)(value & TAG_INDEX);
        out->is_compressed = true;
        return FK_OK;
    }
    if (value != *at) {
        return fk__wire_fail(fault, FK_E_MALFORMED, tag, "a text is not where its tag says");
    }
    if (frame.len - *at < 2) {
        return fk__wire_fail(fault, FK_E_TRUNCATED, frame.len, "the length of a text is cut");
    }
    size_t len = fk__load16(frame.ptr + *at);
    if (len > FK_WIRE_LITERAL_MAX) {
        return fk__wire_fail(fault, FK_E_LIMIT, *at, "a text is too long");
    }
    if (frame.len - *at - 2 < len) {
        return fk__wire_fail(fault, FK_E_TRUNCATED, frame.len, "a text is cut");
    }
    out->text = (fk_str){ frame.ptr + *at + 2, len };
    if (FK_UNLIKELY(!is_ascii(out->text))) {
        return fk__wire_fail(fault, FK_E_MALFORMED, *at + 2 + ascii_len(out->text),
                             "a text is not ASCII");
    }
    *at += 2 + len;
    return FK_OK;
}

static fk_err envelope_metadata(fk_str frame, size_t *at, fk_str *out, fk_wire_fault *fault)
{
    if (frame.len - *at < 4) {
        return fk__wire_fail(fault, FK_E_TRUNCATED, frame.len, "the length of metadata is cut");
    }
    size_t len = fk__load32(frame.ptr + *at);
    if (frame.len - *at - 4 < len) {
        return fk__wire_fail(fault, FK_E_TRUNCATED, frame.len, "the metadata is cut");
    }
    *out = (fk_str){ frame.ptr + *at + 4, len };
    *at += 4 + len;
    return FK_OK;
}

fk_err fk__envelope_decode(fk_str frame, fk_wire_envelope *out, fk_wire_fault *fault)
{
    if (frame.len > 0 && frame.ptr[ENVELOPE_VERSION] != 0) {
        return fk__wire_fail(fault, FK_E_PROTOCOL, ENVELOPE_VERSION, "the version must be 0");
    }
    if (frame.len < FK_ENVELOPE_FIXED) {
        return fk__wire_fail(fault, FK_E_TRUNCATED, frame.len, "the envelope's header is cut");
    }
    fk_wire_envelope e = {
        .uid = fk__load64(frame.ptr + ENVELOPE_UID),
        .serializer = (int32_t)fk__load32(frame.ptr + ENVELOPE_SERIALIZER),
        .flags = (uint8_t)frame.ptr[ENVELOPE_FLAGS],
        .ref_table = (uint8_t)frame.ptr[ENVELOPE_REF_TABLE],
        .manifest_table = (uint8_t)frame.ptr[ENVELOPE_MANIFEST_TABLE],
    };
    size_t at = FK_ENVELOPE_FIXED;
    if ((e.flags & FK_ENVELOPE_METADATA) != 0) {
        FK_TRY(envelope_metadata(frame, &at, &e.metadata, fault));
    }
    FK_TRY(envelope_name(frame, ENVELOPE_SENDER, &at, &e.sender, fault));
    FK_TRY(envelope_name(frame, ENVELOPE_RECIPIENT, &at, &e.recipient, fault));
    FK_TRY(envelope_name(frame, ENVELOPE_MANIFEST, &at, &e.manifest, fault));
    e.payload = (fk_str){ frame.ptr + at, frame.len - at };
    *out = e;
    return FK_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

static fk_err envelope_name_size(const fk_wire_name *name, size_t *size)
{
    if (name->is_compressed) return FK_OK;
    if (name->text.len > FK_WIRE_LITERAL_MAX) return FK_E_LIMIT;
    if (!is_ascii(name->text)) return FK_E_INVALID;
    *size += 2 + name->text.len;
    return FK_OK;
}

fk_err fk__frame_size(const fk_wire_envelope *e, uint32_t frame_max, size_t *out)
{
    bool metadata = (e->flags & FK_ENVELOPE_METADATA) != 0;
    size_t size = FK_ENVELOPE_FIXED;
    FK_ASSERT(e->version == 0);
    if (!metadata && e->metadata.len > 0) return FK_E_INVALID;
    FK_TRY(envelope_name_size(&e->sender, &size));
    FK_TRY(envelope_name_size(&e->recipient, &size));
    FK_TRY(envelope_name_size(&e->manifest, &size));
    if (metadata) size += 4;
    /* One after the other: the sum of lengths from outside might not fit into a number. */
    if (size > frame_max || e->metadata.len > frame_max - size) return FK_E_LIMIT;
    size += e->metadata.len;
    if (e->payload.len > frame_max - size) return FK_E_LIMIT;
    *out = FK_FRAME_HEADER + size + e->payload.len;
    return FK_OK;
}

static unsigned char *envelope_put(unsigned char *at, fk_str bytes)
{
    if (bytes.len > 0) memcpy(at, bytes.ptr, bytes.len);
    return at + bytes.len;
}

static unsigned char *envelope_put_name(unsigned char *start, size_t tag, unsigned char *at,
                                        const fk_wire_name *name)
{
    if (name->is_compressed) {
        fk__store32(start + tag, TAG_COMPRESSED | name->index);
        return at;
    }
    fk__store32(start + tag, (uint32_t)(at - start));
    fk__store16(at, (uint16_t)name->text.len);
    return envelope_put(at + 2, name->text);
}

unsigned char *fk__frame_encode(const fk_wire_envelope *e, unsigned char *to)
{
    unsigned char *start = to + FK_FRAME_HEADER;
    unsigned char *at = start + FK_ENVELOPE_FIXED;
    start[ENVELOPE_VERSION] = e->version;
    start[ENVELOPE_FLAGS] = e->flags;
    start[ENVELOPE_REF_TABLE] = e->ref_table;
    start[ENVELOPE_MANIFEST_TABLE] = e->manifest_table;
    fk__store64(start + ENVELOPE_UID, e->uid);
    fk__store32(start + ENVELOPE_SERIALIZER, (uint32_t)e->serializer);
    if ((e->flags & FK_ENVELOPE_METADATA) != 0) {
        fk__store32(at, (uint32_t)e->metadata.len);
        at = envelope_put(at + 4, e->metadata);
    }
    at = envelope_put_name(start, ENVELOPE_SENDER, at, &e->sender);
    at = envelope_put_name(start, ENVELOPE_RECIPIENT, at, &e->recipient);
    at = envelope_put_name(start, ENVELOPE_MANIFEST, at, &e->manifest);
    fk__frame_header_write((uint32_t)((size_t)(at - start) + e->payload.len), to);
    if (e->payload.ptr != NULL) (void)envelope_put(at, e->payload);
    return at;
}
