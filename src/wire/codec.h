/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_CODEC_H
#define FK_WIRE_CODEC_H

/* What the files of the codecs have in common: the set, the numbers, the structs. */

#include "fraktor/codec.h"
#include "wire/wire.h"

/* Those that every set has. */
extern const fk_codec *const fk__codecs_basic[];
extern const uint32_t fk__codecs_basic_count;

extern const fk_type fk__type_telegram;
#define FK_SERIALIZER_CLUSTER 26220

/* fault may be NULL. */
static inline fk_err fk__codec_fail(const fk_codec *codec, fk_codec_fault *fault, fk_err err,
                                    size_t at, const char *message)
{
    if (fault != NULL) {
        *fault = (fk_codec_fault){ err, codec->serializer, fk_codec_manifest(codec), at, message };
    }
    return err;
}

/* References in messages: how they become text, and refs again. */
typedef struct fk_codec_refs {
    void *ctx;
    /* The length of its text, which is written if it fits; 0: nobody. */
    size_t (*text)(void *ctx, fk_ref ref, char *buf, size_t size);
    fk_err (*ref)(void *ctx, fk_str text, fk_ref *out);
} fk_codec_refs;

/* As the public ones; refs may be NULL. */
FK_MUST_USE fk_err fk__codec_measure(const fk_codec *codec, const fk_codec_refs *refs,
                                     const void *message, size_t len, size_t *size);
/* FK_E_STATE: a reference's text is not the one that was measured. */
FK_MUST_USE fk_err fk__codec_encode(const fk_codec *codec, const fk_codec_refs *refs,
                                    const void *message, size_t len, unsigned char *to,
                                    size_t size);
FK_MUST_USE fk_err fk__codec_decode(const fk_codec *codec, const fk_codec_refs *refs, fk_str bytes,
                                    void *message, fk_codec_fault *fault);

/* Of FK_SERIALIZER_STRUCT. */
FK_MUST_USE fk_err fk__codec_struct_check(const fk_codec *codec, fk_codec_fault *fault);
FK_MUST_USE fk_err fk__codec_struct_measure(const fk_codec *codec, const fk_codec_refs *refs,
                                            const unsigned char *message, size_t *size);
FK_MUST_USE fk_err fk__codec_struct_encode(const fk_codec *codec, const fk_codec_refs *refs,
                                           const unsigned char *message, unsigned char *to,
                                           size_t size);
FK_MUST_USE fk_err fk__codec_struct_decode(const fk_codec *codec, const fk_codec_refs *refs,
                                           fk_str bytes, unsigned char *message,
                                           fk_codec_fault *fault);

#endif /* FK_WIRE_CODEC_H */
