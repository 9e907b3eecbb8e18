/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/answer.h"

#include "base/safeguard.h"
#include "core/extras.h"
#include "core/mailbox.h"
#include "core/promise.h"
#include "core/send.h"

/* It has no drop function of its own: a copy that a user makes owns nothing. */
const fk_type fk_type_fk_answer = { "fk_answer", sizeof(fk_answer), _Alignof(fk_answer), NULL };

/* What follows the node's header. node->len is that of the answer, and all that the user sees. */
struct fk_asking {
    fk_answer answer;
    fk_node *reply;      /* what answer.reply shows; NULL: none */
    fk_asking *next;     /* the asker's: in its list */
    fk_asking **link;    /* the asker's: what points to this; NULL: it is in no list */
    uint32_t slot;       /* of the promise ... */
    uint32_t generation; /* ... and which one */
    uint32_t to_slot;    /* who gets it; the generation is in the node */
    bool is_piped;       /* not the asker's own */
    bool is_ended;       /* the asker's: it has given the question up */
};

_Static_assert(sizeof(fk_asking) <= FK_INLINE_MAX, "an answer is a node like any other");

static fk_asking *asking_of(const fk_node *node)
{
    return (fk_asking *)(uintptr_t)node->bytes;
}

static fk_node *asking_node(fk_asking *asking)
{
    return FK_CONTAINER(asking, fk_node, bytes);
}

size_t fk__answer_size(void)
{
    return sizeof(fk_asking);
}

/* ---- the asker's list -------------------------------------------------------------------------- */

static void asking_link(fk_extras *extras, fk_asking *asking)
{
    asking->next = extras->asks;
    asking->link = &extras->asks;
    if (asking->next != NULL) asking->next->link = &asking->next;
    extras->asks = asking;
}

static void asking_unlink(fk_asking *asking)
{
    if (asking->link == NULL) return;
    *asking->link = asking->next;
    if (asking->next != NULL) asking->next->link = asking->link;
    asking->link = NULL;
}

/* ---- making and sending ------------------------------------------------------------------------ */

fk_err fk__answer_create(fk_local *local, fk_cell *cell, fk_ref to, uint64_t id, fk_node **out)
{
    if (cell != NULL && FK_UNLIKELY(cell->extras == NULL)) FK_TRY(fk__extras_need(local, cell));
    fk_node *node = fk__cache_get(&local->cache, FK_CLASS_128, FK_SITE("answer"));
    if (FK_UNLIKELY(node == NULL)) return local->cache.err;
    node->type = &fk_type_fk_answer;
    node->generation = to.generation;
    node->len = sizeof(fk_answer);
    node->flags = FK_NODE_AUTO | FK_NODE_DROP;
    node->size_class = FK_CLASS_128;
    fk_asking *asking = asking_of(node);
    *asking = (fk_asking){ .answer.id = id, .to_slot = to.slot, .is_piped = cell == NULL };
    if (cell != NULL) asking_link(cell->extras, asking);
    *out = node;
    return FK_OK;
}

void fk__answer_bind(fk_node *node, fk_ref promise, fk_ref asked)
{
    fk_asking *asking = asking_of(node);
    asking->slot = promise.slot;
    asking->generation = promise.generation;
    node->sender = fk__sender_pack(asked.slot, asked.generation);
}

void fk__answer_destroy(fk_cache *cache, fk_node *node)
{
    asking_unlink(asking_of(node));
    fk__node_free(cache, node);
}

void fk__answer_deliver(fk_local *local, fk_node *node, fk_err err, fk_node *reply)
{
    fk_asking *asking = asking_of(node);
    asking->answer.err = err;
    asking->reply = reply;
    if (FK_LIKELY(reply != NULL)) {
        node->sender = reply->sender;
        fk__node_view(reply, local->system, &asking->answer.reply);
    }
    if (FK_UNLIKELY(asking->is_piped)) {
        fk__send_node(local, (fk_ref){ asking->to_slot, node->generation, local->system }, node);
        return;
    }
    /* Pushed even if the asker has ended, as a timer is: the slot's next turn throws it away. And past
     * the bounds of a mailbox: there is no more than one for each question. */
    fk_cell *cell = fk__slots_at(&local->sys->slots, asking->to_slot);
    if (fk__mailbox_push(cell, &node->link)) fk__schedule(local, cell);
}

/* ---- delivery ---------------------------------------------------------------------------------- */

bool fk__answer_arrived(fk_worker *worker, fk_node *node)
{
    fk_asking *asking = asking_of(node);
    asking_unlink(asking);
    if (FK_UNLIKELY(asking->is_ended)) {
        fk_ref promise = { asking->slot, asking->generation, worker->sys->id };
        fk__dead_node(&worker->local, FK_REASON_LATE_REPLY, promise, node);
        return false;
    }
    node->flags &= (uint8_t)~FK_NODE_AUTO; /* a message like any other */
    return true;
}

fk_node *fk__answer_open(const fk_node *node, fk_err *err)
{
    const fk_asking *asking = asking_of(node);
    *err = asking->answer.err;
    return asking->reply;
}

void fk__answer_drop(fk_cache *cache, fk_node *node)
{
    fk_asking *asking = asking_of(node);
    if (asking->reply == NULL) return;
    fk__node_drop_contents(cache, asking->reply);
    fk__node_free(cache, asking->reply);
    asking->reply = NULL;
}

void fk__asks_end(fk_worker *worker, fk_cell *cell)
{
    fk_extras *extras = cell->extras;
    if (!FK_SAFEGUARD(ASKS_END)) return;
    while (extras->asks != NULL) {
        fk_asking *asking = extras->asks;
        fk_cell *promise = fk__slots_at(&worker->sys->slots, asking->slot);
        fk_node *node = NULL;
        asking_unlink(asking);
        asking->is_ended = true;               /* should it be in the mailbox already */
        if (asking->generation == 0) continue; /* it was over before it was asked */
        if (!fk__promise_cancel(&worker->local, promise, asking->generation, &node)) continue;
        FK_ASSERT(node == asking_node(asking));
        fk__node_free(&worker->local.cache, node);
    }
}
