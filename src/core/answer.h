/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_ANSWER_H
#define FK_CORE_ANSWER_H

/*
 * Answers: the messages that tell an actor what became of its questions. The node is made together
 * with the question, so that an answer needs no memory, and holds the reply's node when there is one.
 *
 * An actor knows its questions by a list of the answers to come. One leaves the list on the actor's
 * own thread, when it is delivered; so ending an actor is walking that list, and what has been
 * answered already but not been delivered is found out on delivery, as with timers.
 */

#include "core/system.h"

#include "fraktor/ask.h"

typedef struct fk_asking fk_asking;

/* The answer to a question that will be asked by `cell`, in its list; or, with cell NULL, by nobody in
 * particular, for another. to: who gets it. */
FK_MUST_USE fk_err fk__answer_create(fk_local *local, fk_cell *cell, fk_ref to, uint64_t id,
                                     fk_node **out);
/* Its promise, and who is asked. */
void fk__answer_bind(fk_node *node, fk_ref promise, fk_ref asked);
/* Forgets an answer that will never come: by its actor. */
void fk__answer_destroy(fk_cache *cache, fk_node *node);
/* Sends it. reply: taken, or NULL. */
void fk__answer_deliver(fk_local *local, fk_node *node, fk_err err, fk_node *reply);
/* On the actor's thread: it is being delivered. False: the question was given up meanwhile. */
bool fk__answer_arrived(fk_worker *worker, fk_node *node);
/* Gives up all questions of an actor, which stops: no answer is delivered any more. */
void fk__asks_end(fk_worker *worker, fk_cell *cell);

/* The error, and the reply, or NULL; both are still the node's. */
fk_node *fk__answer_open(const fk_node *node, fk_err *err);
/* Drops what the answer holds. */
void fk__answer_drop(fk_cache *cache, fk_node *node);
/* Bytes that belong to the node behind its header. */
size_t fk__answer_size(void);

/* Made here, not by a user who fills in the struct. */
static inline bool fk__node_is_answer(const fk_node *node)
{
    return node->type == &fk_type_fk_answer && (node->flags & FK_NODE_DROP) != 0;
}

#endif /* FK_CORE_ANSWER_H */
