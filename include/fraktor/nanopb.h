/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_NANOPB_H
#define FK_NANOPB_H

/*
 * Protobuf messages by nanopb, as Pekko's own protobuf serializer reads and writes them.
 *
 *     #include "bank.pb.h"                                made from bank.proto by nanopb
 *     #include <fraktor/nanopb.h>
 *
 *     FK_MESSAGE(bank_Deposit);
 *     FK_CODEC_NANOPB(bank_Deposit, "org.example.bank.Deposit");
 *     ...
 *     .remoting = { .codecs = (const fk_codec *const[]){ &fk_codec_bank_Deposit, NULL } }
 *
 * The manifest is the name of the class on the other side. For messages whose fields have a bound (the
 * options max_size and max_count), because a message is copied byte by byte: fields that are pointers
 * or callbacks have nothing to do with what arrives.
 *
 * This header is not part of fraktor/fraktor.h. It needs the headers of nanopb, and the program its
 * library; libfraktor itself does not.
 */

#include <pb_decode.h>
#include <pb_encode.h>

#include "fraktor/codec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* FK_E_INVALID: it cannot be written, say because a text is longer than its field. */
static inline fk_err fk_nanopb_measure(const fk_codec *codec, const void *message, size_t len,
                                       size_t *size)
{
    (void)len;
    const pb_msgdesc_t *fields = (const pb_msgdesc_t *)codec->ctx;
    return pb_get_encoded_size(size, fields, message) ? FK_OK : FK_E_INVALID;
}

static inline fk_err fk_nanopb_encode(const fk_codec *codec, const void *message, size_t len,
                                      unsigned char *to, size_t size)
{
    (void)len;
    pb_ostream_t stream = pb_ostream_from_buffer(to, size);
    if (!pb_encode(&stream, (const pb_msgdesc_t *)codec->ctx, message)) return FK_E_INVALID;
    return stream.bytes_written == size ? FK_OK : FK_E_INVALID;
}

/* FK_E_MALFORMED: it is no such message, or does not fit into the fields. */
static inline fk_err fk_nanopb_decode(const fk_codec *codec, fk_str bytes, void *message)
{
    pb_istream_t stream = pb_istream_from_buffer((const pb_byte_t *)bytes.ptr, bytes.len);
    bool ok = pb_decode(&stream, (const pb_msgdesc_t *)codec->ctx, message);
    return ok ? FK_OK : FK_E_MALFORMED;
}

/* Defines fk_codec_T for a struct that nanopb made. At file scope, after FK_MESSAGE(T). */
#define FK_CODEC_NANOPB(T, class_name)                                                             \
    static const fk_codec fk_codec_##T = { sizeof(fk_codec),                                       \
                                           FK_SERIALIZER_PROTOBUF,                                 \
                                           class_name,                                             \
                                           &fk_type_##T,                                           \
                                           fk_nanopb_measure,                                      \
                                           fk_nanopb_encode,                                       \
                                           fk_nanopb_decode,                                       \
                                           &T##_msg,                                               \
                                           NULL,                                                   \
                                           0,                                                      \
                                           0 }

#ifdef __cplusplus
}
#endif
#endif /* FK_NANOPB_H */
