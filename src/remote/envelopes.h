/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_ENVELOPES_H
#define FK_REMOTE_ENVELOPES_H

/*
 * Lists of envelopes: messages on their way to another system. An envelope belongs to whoever made
 * it; what is here is only the link by which it hangs in one list at a time, so that queueing
 * allocates nothing and a whole queue changes hands in one step.
 */

#include "base/base.h"

/* Embedded in the maker's own struct; FK_CONTAINER() leads back to that. */
typedef struct fk_envelope {
    struct fk_envelope *next;
} fk_envelope;

/* All zero is the empty list. */
typedef struct fk_envelopes {
    fk_envelope *first, *last;
    uint32_t count;
} fk_envelopes;

/* At the end; the envelope must not be in a list. */
static inline void fk__envelopes_put(fk_envelopes *list, fk_envelope *envelope)
{
    envelope->next = NULL;
    if (list->last != NULL)
        list->last->next = envelope;
    else
        list->first = envelope;
    list->last = envelope;
    list->count++;
}

/* At the beginning. */
static inline void fk__envelopes_put_first(fk_envelopes *list, fk_envelope *envelope)
{
    envelope->next = list->first;
    list->first = envelope;
    if (list->last == NULL) list->last = envelope;
    list->count++;
}

/* The first one, or NULL. */
static inline fk_envelope *fk__envelopes_take(fk_envelopes *list)
{
    fk_envelope *envelope = list->first;
    if (envelope == NULL) return NULL;
    list->first = envelope->next;
    if (list->first == NULL) list->last = NULL;
    list->count--;
    envelope->next = NULL;
    return envelope;
}

/* Everything in `from` goes to the end of `to`. */
static inline void fk__envelopes_move(fk_envelopes *to, fk_envelopes *from)
{
    if (from->first == NULL) return;
    if (to->last != NULL)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->count += from->count;
    *from = (fk_envelopes){ NULL, NULL, 0 };
}

#endif /* FK_REMOTE_ENVELOPES_H */
