/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_ASK_H
#define FK_ASK_H

/*
 * Asking: a message whose answer is waited for, for a limited time.
 *
 * From outside a thread waits; inside receive nobody does, and the answer comes as a message:
 *
 *     err = fk_ask_wait(sys, alice, FK_MSG(deposit, 1), FK_INTO(balance, &b), FK_SECONDS(1));
 *
 *     fk_ask(ctx, alice, FK_MSG(deposit, 1), MY_ID, FK_SECONDS(1));
 *     ...
 *     const fk_answer *a = FK_AS(fk_answer, msg);
 *     const balance *b = a != NULL ? FK_AS(balance, &a->reply) : NULL;
 *
 * Whoever is asked sees a sender like any other and answers with fk_reply(), now or later, or passes
 * the reference on. That sender is no actor but stands for the question: the first message it gets is
 * the answer, and then it is gone; later ones are dead letters with FK_REASON_LATE_REPLY. It has a
 * path, /temp/alice$a, from the moment somebody wants to know it until the answer; it can be watched;
 * fk_stop() and fk_poison() end the question with FK_E_KILLED. Questions count as actors for
 * actors_max.
 */

#include "fraktor/path.h"
#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of a question. The sender of the message is who answered, or else who was asked. */
typedef struct fk_answer {
    uint64_t id; /* of the question */
    /* FK_OK: reply is there. FK_E_TIMEOUT; FK_E_DEAD: who was asked had stopped already; FK_E_KILLED.
     * Then reply.type is NULL, which is no type that FK_AS matches. FK_E_FAILED: an actor of another
     * system says that it failed; reply is a text that says why. */
    fk_err err;
    fk_msg reply; /* lent with the message */
} fk_answer;
extern FK_API const fk_type fk_type_fk_answer;

/* ---- inside receive and the hooks ------------------------------------------------------- */

/* FK_OK: exactly one fk_answer with that id comes, unless this actor stops before; a
 * restart changes nothing.
 * FK_E_FULL, FK_E_NOMEM, FK_E_LIMIT, FK_E_QUARANTINED, FK_E_INVALID: none comes, and the message
 * became a dead letter, as with fk_tell(). Never early; a timeout <= 0 is over at once, and the
 * question is not sent. In every case the message has been taken. */
FK_API fk_err fk_ask(fk_ctx *ctx, fk_ref to, fk_out msg, uint64_t id, fk_time timeout);
/* The same with the fk_answer going to somebody else, whatever becomes of this actor. When that is a
 * sender who waits for an answer itself, it gets the reply, or the error, as its own. */
FK_API fk_err fk_ask_pipe(fk_ctx *ctx, fk_ref to, fk_out msg, fk_ref answer_to, uint64_t id,
                          fk_time timeout);

/* ---- outside threads -------------------------------------------------------------------- */

/* Where fk_ask_wait() puts the answer. */
typedef struct fk_into {
    const fk_type *type; /* NULL: any; it is dropped */
    void *data;          /* the struct; an fk_buf for fk_type_text and fk_type_bytes */
} fk_into;

/* FK_INTO_TEXT(&buf): text, which ends in NUL; FK_E_LIMIT when it does not fit. */
#ifdef __cplusplus
#define FK_INTO(T, p)   (fk_into{ fk_type_sized(&fk_type_##T, sizeof(T)), static_cast<T *>(p) })
#define FK_INTO_TEXT(p) (fk_into{ &fk_type_text, static_cast<fk_buf *>(p) })
#define FK_INTO_NOTHING (fk_into{ nullptr, nullptr })
#else
#define FK_INTO(T, p)                                                                              \
    ((fk_into){ fk_type_sized(&fk_type_##T, sizeof(T)), _Generic((p), T * : (p)) })
#define FK_INTO_TEXT(p) ((fk_into){ &fk_type_text, _Generic((p), fk_buf * : (p)) })
#define FK_INTO_NOTHING ((fk_into){ NULL, NULL })
#endif

/* The function twin of FK_INTO. */
FK_API fk_into fk_into_of(const fk_type *type, void *data);

/* Waits for the answer, which is the caller's then, with what its drop function would release.
 * FK_E_TIMEOUT; FK_E_DEAD (also when the system terminates meanwhile); FK_E_KILLED; FK_E_FAILED; FK_E_TYPE: the
 * answer is of another type, or of one with a drop function and shared with others: it became a
 * dead letter, "unhandled"; FK_E_STATE inside receive and from whoever drives a loop;
 * FK_E_UNSUPPORTED without port->wait; and what fk_send() gives. A full mailbox that blocks is
 * waited for first, and for as long as it takes. */
FK_API FK_MUST_USE fk_err fk_ask_wait(fk_system *sys, fk_ref to, fk_out msg, fk_into into,
                                      fk_time timeout);

/* ---- names under /temp, from any thread -------------------------------------------------------- */

/* Gives whoever lives, an actor or the sender of a question, one more name: /temp/PREFIX$a, which no
 * other ever has, until it is unregistered or its owner is gone. Writes the complete path. prefix: a
 * legal name, or empty. FK_E_DEAD, FK_E_NAME, FK_E_RESERVED, FK_E_PERCENT, FK_E_LIMIT (path does not
 * fit, or is longer than the config allows), FK_E_NOMEM. */
FK_API FK_MUST_USE fk_err fk_temp_register(fk_system *sys, fk_str prefix, fk_ref ref, fk_buf path);
/* FK_E_NOT_FOUND: it is not there (any more), or is no path under this system's /temp. */
FK_API fk_err fk_temp_unregister(fk_system *sys, fk_str path);

#ifdef __cplusplus
}
#endif
#endif /* FK_ASK_H */
