/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_MESSAGE_H
#define FK_MESSAGE_H

/*
 * Messages. A message is a plain struct with a type descriptor:
 *
 *     typedef struct { int64_t amount; } deposit;
 *     FK_MESSAGE(deposit);                                once per type, at file scope; or
 *                                                         FK_MESSAGE_DROP, FK_MESSAGE_QUIET
 *
 *     fk_tell(ctx, account, FK_MSG(deposit, 100));        send
 *     const deposit *d = FK_AS(deposit, msg);             match: NULL when it is another type
 *
 * Who owns the message after a send? The library, always, even when the send fails:
 * the bytes were copied, and what the type's drop function releases has been taken.
 * A message that cannot be delivered becomes a dead letter and is dropped once.
 *
 * Large data moves without copying in an fk_payload (below); shared data is a payload
 * sent many times. FK_MESSAGE in a header gives one descriptor per process, whichever
 * files include it; so a type's name must be unique in the program.
 */

#include "fraktor/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FK_MESSAGE_SIZE_MAX 65536u /* of a struct sent by FK_MSG; a payload may be larger */

/* A reference to an actor: a value, safe to copy, keep, compare and make up. A stale,
 * foreign or invented one leads to dead letters, never to freed memory. */
typedef struct fk_ref {
    uint32_t slot;
    uint32_t generation;
    uint32_t system;
} fk_ref;

#ifdef __cplusplus
#define FK_REF_NONE (fk_ref{ 0, 0, 0 })
#else
#define FK_REF_NONE ((fk_ref){ 0, 0, 0 })
#endif

static inline bool fk_ref_equal(fk_ref a, fk_ref b)
{
    return a.slot == b.slot && a.generation == b.generation && a.system == b.system;
}

static inline bool fk_ref_is_none(fk_ref ref)
{
    return ref.generation == 0;
}

/* Describes a type of message. drop, which may be NULL, releases what the message owns
 * besides its own bytes; it runs exactly once per message, on some thread of the system. */
typedef struct fk_type {
    const char *name;
    uint32_t size;
    uint32_t align; /* and FK_TYPE_QUIET, if so */
    void (*drop)(void *message);
} fk_type;

/* Nobody misses a message of this type that does not arrive: it is no dead letter, only an
 * FK_EVENT_SUPPRESSED. */
#define FK_TYPE_QUIET 0x80000000u

/* A message on its way in: type and the address of its bytes. Made by FK_MSG and friends,
 * passed by value, used up by the call it is passed to. */
typedef struct fk_out {
    const fk_type *type;
    const void *data;
} fk_out;

/* A message as receive sees it: lent, gone when receive returns. */
typedef struct fk_msg {
    const fk_type *type;
    const void *data;
    size_t len;    /* bytes at data; for a struct its size */
    fk_ref sender; /* FK_REF_NONE when sent from outside */
} fk_msg;

/* The functions behind FK_AS and FK_MSG. A type's name is its identity in the whole program; two
 * types of one name but different size are found out here instead of reading each other's bytes:
 * the message does not match, the send gives FK_E_INVALID. */
static inline const void *fk_msg_data_if(const fk_msg *msg, const fk_type *type, size_t size)
{
    return msg->type == type && msg->len == size ? msg->data : NULL;
}

extern FK_API const fk_type fk_type_clash;

static inline const fk_type *fk_type_sized(const fk_type *type, size_t size)
{
    return type->size == size ? type : &fk_type_clash;
}

/* Text and bytes of any length; data is an fk_str, copied with what it points to. In
 * receive msg->data is the first byte and msg->len their number. */
extern FK_API const fk_type fk_type_text;
extern FK_API const fk_type fk_type_bytes;
/* A reference, by itself: FK_MSG_REF(ref), FK_AS(fk_ref, msg). */
extern FK_API const fk_type fk_type_fk_ref;
/* An fk_payload (data), which is taken. In receive the type is the payload's own. */
extern FK_API const fk_type fk_type_payload;
/* Delivered by the runtime: see fk_receive_timeout_set(), fk_poison(), fk_kill() and FK_IDENTIFY(). */
extern FK_API const fk_type fk_type_receive_timeout;
extern FK_API const fk_type fk_type_poison;
extern FK_API const fk_type fk_type_kill;
extern FK_API const fk_type fk_type_identify;

/* Large or shared data: one block, made here, filled by the caller, sent by FK_MSG_PAYLOAD
 * without copying. type may be NULL (fk_type_bytes). A send takes one share; fk_payload_share()
 * adds one, so that the same bytes can be sent to many; then nobody may write to them.
 * The type's drop runs on the data with the last share. Any thread; not after the system's end. */
typedef struct fk_payload fk_payload;
struct fk_system;

FK_API FK_MUST_USE fk_err fk_payload_create(struct fk_system *sys, const fk_type *type, size_t len,
                                            fk_payload **out);
FK_API void *fk_payload_data(fk_payload *payload);
FK_API size_t fk_payload_len(const fk_payload *payload);
FK_API fk_payload *fk_payload_share(fk_payload *payload);
/* Gives back one share without sending it. */
FK_API void fk_payload_put(fk_payload *payload);

#ifdef __cplusplus
}

template <class T> static inline const T *fk_addr(const T &value)
{
    return &value;
}
#define FK_MESSAGE_MAKE(T, d, marks)                                                               \
    extern "C" {                                                                                   \
    extern FK_WEAK const fk_type fk_type_##T;                                                      \
    const fk_type fk_type_##T = { #T, sizeof(T), (uint32_t)alignof(T) | (marks), d };              \
    }                                                                                              \
    static_assert(sizeof(T) <= FK_MESSAGE_SIZE_MAX, #T " is too large: send it as an fk_payload"); \
    static_assert(alignof(T) <= 16, #T " is over-aligned: send it as an fk_payload")
#define FK_MSG(T, ...)                                                                             \
    (fk_out{ fk_type_sized(&fk_type_##T, sizeof(T)), fk_addr<T>(T{ __VA_ARGS__ }) })
#define FK_MSG_AT(T, p)                                                                            \
    (fk_out{ fk_type_sized(&fk_type_##T, sizeof(T)), static_cast<const T *>(p) })
#define FK_TEXT(literal)  (fk_out{ &fk_type_text, fk_addr<fk_str>(FK_STR(literal)) })
#define FK_TEXT_AT(s)     (fk_out{ &fk_type_text, fk_addr<fk_str>(s) })
#define FK_BYTES_AT(s)    (fk_out{ &fk_type_bytes, fk_addr<fk_str>(s) })
#define FK_MSG_REF(r)     (fk_out{ &fk_type_fk_ref, fk_addr<fk_ref>(r) })
#define FK_MSG_PAYLOAD(p) (fk_out{ &fk_type_payload, static_cast<const fk_payload *>(p) })
#else
#define FK_MESSAGE_MAKE(T, d, marks)                                                               \
    extern FK_WEAK const fk_type fk_type_##T;                                                      \
    const fk_type fk_type_##T = { #T, sizeof(T), (uint32_t) _Alignof(T) | (marks), d };            \
    _Static_assert(sizeof(T) <= FK_MESSAGE_SIZE_MAX,                                               \
                   #T " is too large: send it as an fk_payload");                                  \
    _Static_assert(_Alignof(T) <= 16, #T " is over-aligned: send it as an fk_payload")
#define FK_MSG(T, ...) ((fk_out){ fk_type_sized(&fk_type_##T, sizeof(T)), &(T){ __VA_ARGS__ } })
#define FK_MSG_AT(T, p)                                                                            \
    ((fk_out){ fk_type_sized(&fk_type_##T, sizeof(T)), _Generic((p), T * : (p), const T * : (p)) })
#define FK_TEXT(literal) ((fk_out){ &fk_type_text, &FK_STR(literal) })
#define FK_TEXT_AT(s)    ((fk_out){ &fk_type_text, &(fk_str){ (s).ptr, (s).len } })
#define FK_BYTES_AT(s)   ((fk_out){ &fk_type_bytes, &(fk_str){ (s).ptr, (s).len } })
#define FK_MSG_REF(r)                                                                              \
    ((fk_out){ &fk_type_fk_ref, &(fk_ref){ (r).slot, (r).generation, (r).system } })
#define FK_MSG_PAYLOAD(p) ((fk_out){ &fk_type_payload, _Generic((p), fk_payload * : (p)) })
#endif

#define FK_MESSAGE(T)         FK_MESSAGE_MAKE(T, NULL, 0)
#define FK_MESSAGE_DROP(T, d) FK_MESSAGE_MAKE(T, d, 0)
#define FK_MESSAGE_QUIET(T)   FK_MESSAGE_MAKE(T, NULL, FK_TYPE_QUIET)
#define FK_AS(T, msg)         ((const T *)fk_msg_data_if((msg), &fk_type_##T, sizeof(T)))

#endif /* FK_MESSAGE_H */
