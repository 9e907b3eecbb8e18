/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_CODEC_H
#define FK_WIRE_CODEC_H

/* What the files of the codecs have in common: the set, the numbers, the structs. */

#include "fraktor/codec.h"
#include "wire/wire.h"

/* Those that every set has. */
extern const fk_codec *const fk__codecs_basic[];
extern const uint32_t fk__codecs_basic_count;

/* fault may be NULL. */
static inline fk_err fk__codec_fail(const fk_codec *codec, fk_codec_fault *fault, fk_err err,
                                    size_t at, const char *message)
{
    if (fault != NULL) {
        *fault = (fk_codec_fault){ err, codec->serializer, fk_codec_manifest(codec), at, message };
    }
    return err;
}

/* Of FK_SERIALIZER_STRUCT. */
FK_MUST_USE fk_err fk__codec_struct_check(const fk_codec *codec, fk_codec_fault *fault);
size_t fk__codec_struct_size(const fk_codec *codec);
void fk__codec_struct_encode(const fk_codec *codec, const unsigned char *message,
                             unsigned char *to);
FK_MUST_USE fk_err fk__codec_struct_decode(const fk_codec *codec, fk_str bytes,
                                           unsigned char *message, fk_codec_fault *fault);

#endif /* FK_WIRE_CODEC_H */
