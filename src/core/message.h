/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_MESSAGE_H
#define FK_CORE_MESSAGE_H

/*
 * A message inside the kernel: a node, 32 bytes of header and then the bytes of the message if
 * there are at most FK_INLINE_MAX of them, or else one pointer to an fk_payload. So what queues
 * in a mailbox is one block of 40, 48, 64 or 128 bytes, copied once.
 *
 * A node carries the generation of the actor it was meant for. The cell compares it before
 * delivery, and that is all that protects a slot's next tenant from the last one's mail: a
 * sender may be as slow as it likes between resolving a ref and pushing the node
 * (docs/adr/0002-generation-travels-with-the-message.md).
 */

#include "base/pool.h"
#include "fraktor/system.h"

typedef struct fk_link {
    fk_word next;
} fk_link;

enum {
    FK_NODE_DROP = 1,    /* the type has a drop function */
    FK_NODE_PAYLOAD = 2, /* the message is an fk_payload, its address the inline bytes */
    FK_NODE_TIMER = 4,   /* fired by a timer: see timer.c */
    FK_NODE_AUTO = 8,    /* the runtime handles it: poison, kill, identify, notices */
    FK_NODE_LIVE = 16,   /* held by a stash or a heap: not freed when the queue moves past it */
    FK_NODE_MOVED = 32,  /* its contents went elsewhere: nothing to drop */
    FK_NODE_NOTED = 64,  /* fk_fail() was called while it was handled */
    FK_NODE_ONCE = 128   /* with TIMER: the node is the timer */
};

/* What the runtime's own actors tell themselves: to look at the clock. Nobody misses one. */
extern const fk_type fk__type_tick;

typedef struct fk_node {
    fk_link link;
    const fk_type *type;
    uint64_t sender;     /* generation and slot: one store, one load, for what follows at once */
    uint32_t generation; /* of the receiver */
    uint16_t len;        /* inline bytes */
    uint8_t flags;
    uint8_t size_class;
    unsigned char bytes[]; /* at 32: aligned as the block is */
} fk_node;

#define FK_NODE_HEADER 32
#define FK_INLINE_MAX  (128 - FK_NODE_HEADER)

_Static_assert(sizeof(void *) != 8 || offsetof(fk_node, bytes) == FK_NODE_HEADER,
               "the header is 32 bytes");

/* They have no size, so that they never take the short way, which does not look at types. */
static inline bool fk__type_is_auto(const fk_type *type)
{
    return type == &fk_type_poison || type == &fk_type_identify || type == &fk_type_kill;
}

struct fk_payload {
    fk_word shares;
    fk_system *sys;
    const fk_type *type;
    size_t len;
    size_t block_size; /* of header and data */
    _Alignas(16) unsigned char data[];
};

/* Makes a node of what the user passed. On failure (NULL, reason in cache->err) nothing has been
 * taken yet: the caller reports the dead letter and calls fk__out_drop(). The sender is not
 * written, nor is the generation. */
fk_node *fk__node_create(fk_cache *cache, fk_out out);
/* The same in a block that has room for so many inline bytes and knows its class. */
FK_MUST_USE fk_err fk__node_fill(fk_cache *cache, fk_node *node, size_t room, fk_out out);
/* Makes a payload, which is taken, the contents of a node with room for its address. */
void fk__node_put_payload(fk_node *node, fk_payload *payload);
/* A second node with the same bytes; the contents are not shared but doubled, so one of the two
 * must be marked FK_NODE_MOVED, or fk__node_share called. */
fk_node *fk__node_copy(fk_cache *cache, const fk_node *node);
/* One more share of the payload of a node that has one. */
void fk__node_share(const fk_node *node);
/* Moves a struct out of a node, with what it owns. False: others share it, and it owns something. */
bool fk__node_move(fk_cache *cache, fk_node *node, void *to);
/* Undoes fk__node_create: the contents are the caller's again. */
void fk__node_unmake(fk_cache *cache, fk_node *node, fk_out out);
/* Drops the contents, not the block. */
void fk__node_drop_contents(fk_cache *cache, fk_node *node);
/* Drops the contents of a message that never became a node. */
void fk__out_drop(fk_cache *cache, fk_out out);
/* One more for another receiver, as far as that is possible. */
bool fk__out_can_double(fk_out out);
void fk__out_double(fk_out out);
/* The user's view of a node that is not a timer's. */
void fk__node_view(const fk_node *node, uint32_t system, fk_msg *out);
void fk__out_view(fk_out out, fk_ref sender, fk_msg *msg);
/* What would make such a node, to be sent again: lent as long as the node, which keeps the contents,
 * and the text, which is written to if need be. */
fk_out fk__node_out(const fk_node *node, fk_str *text);

static inline void fk__node_free(fk_cache *cache, fk_node *node)
{
    fk__cache_put(cache, node->size_class, node);
}

static inline unsigned fk__node_class(size_t len)
{
    if (len <= 8) return FK_CLASS_40; /* what is that small needs no more than 8-byte alignment */
    return len <= 16 ? FK_CLASS_48 : len <= 32 ? FK_CLASS_64 : FK_CLASS_128;
}

/* Copies 1 to FK_INLINE_MAX bytes without a call: whole words, the last of which may overlap. */
static inline void fk__copy_inline(unsigned char *to, const unsigned char *from, uint32_t len)
{
    if (FK_LIKELY(len >= 8)) {
        memcpy(to, from, 8);
        for (uint32_t i = 8; FK_UNLIKELY(i + 8 <= len); i += 8) memcpy(to + i, from + i, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len >= 4) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else {
        to[0] = from[0];
        to[len / 2] = from[len / 2];
        to[len - 1] = from[len - 1];
    }
}

/* The same for a plain struct of at most `most` bytes with a block at hand, without a call; NULL:
 * not so. */
static inline fk_node *fk__node_create_plain(fk_cache *cache, fk_out out, uint32_t most)
{
    uint32_t len = out.type->size;
    if (FK_UNLIKELY(len - 1 >= most)) return NULL;
    unsigned size_class = most <= 8 ? FK_CLASS_40 : fk__node_class(len);
    fk_node *node = fk__cache_get_quick(cache, size_class);
    if (FK_UNLIKELY(node == NULL)) return NULL;
    node->type = out.type;
    node->len = (uint16_t)len;
    node->flags = out.type->drop != NULL ? FK_NODE_DROP : 0;
    node->size_class = (uint8_t)size_class;
    if (most <= 8 && FK_LIKELY(len == 8))
        memcpy(node->bytes, out.data, 8);
    else
        fk__copy_inline(node->bytes, out.data, len);
    return node;
}

static inline uint64_t fk__sender_pack(uint32_t slot, uint32_t generation)
{
    return (uint64_t)generation << 32 | slot;
}

static inline fk_ref fk__sender_ref(uint64_t sender, uint32_t system)
{
    return (fk_ref){ (uint32_t)sender, (uint32_t)(sender >> 32), sender != 0 ? system : 0 };
}

fk_err fk__payload_create(fk_cache *cache, fk_system *sys, const fk_type *type, size_t len,
                          fk_payload **out);
void fk__payload_put(fk_cache *cache, fk_payload *payload);

#endif /* FK_CORE_MESSAGE_H */
