/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_STORE_MEMORY_H
#define FK_STORE_MEMORY_H

/*
 * A store in the memory of one process. All who open the same name share one memory_cluster, which
 * lives until the last of them closes it. Everything in it is under its lock.
 */

#include <pthread.h>

#include "store/store.h"

enum { MEMORY_LEVELS = 20 };

/* Ours; never empty memory, so that nothing differs from none. */
typedef struct memory_text {
    char *ptr;
    size_t len;
} memory_text;

/* An id that was ever seen: it stays, for the incarnations must not begin again. */
typedef struct memory_name {
    struct memory_name *next;
    uint64_t incarnation; /* the last one that joined; 0: none did */
    size_t len;
    char text[];
} memory_name;

static inline fk_str fk__memory_id(const memory_name *name)
{
    return name != NULL ? (fk_str){ name->text, name->len } : FK_STR("");
}

/* One that is not down. */
typedef struct memory_member {
    memory_name *name;
    uint64_t incarnation;
    memory_text address, kinds;
    uint32_t weight;
    fk_member_status status;
    fk_time expires_at;
} memory_member;

typedef struct memory_slot {
    uint64_t epoch;
    memory_name *owner; /* NULL: nobody */
    uint64_t incarnation;
} memory_slot;

typedef struct memory_kind {
    struct memory_kind *next;
    memory_slot *slots; /* as many as the cluster has */
    size_t len;
    char text[];
} memory_kind;

/* Of a skip list in the order of kind and key. */
typedef struct memory_grain {
    fk_str kind, key; /* behind the struct */
    uint64_t epoch;
    memory_name *holder;
    uint64_t incarnation;
    uint64_t version;
    fk_str pid, snapshot, dedup; /* in `block` */
    void *block;
    size_t block_size;
    uint64_t request[2];
    bool has_request;   /* the last store was under this fence */
    fk_time removed_at; /* 0: it was not */
    uint32_t levels;
    struct memory_grain *next[];
} memory_grain;

typedef struct memory_cluster {
    struct memory_cluster *next;
    memory_text name;
    size_t handles;
    fk_mem mem;
    pthread_mutex_t lock;
    fk_time shift; /* of the clock, for tests */
    fk_time now;   /* of this apply() */
    memory_text strategy;
    uint32_t slots; /* 0: nobody has joined yet */
    uint64_t version;
    memory_name *names;
    memory_member *members; /* in the order of id and incarnation */
    uint32_t member_count, member_room;
    memory_kind *kinds;
    memory_grain *head[MEMORY_LEVELS];
    uint64_t dice;
} memory_cluster;

FK_MUST_USE fk_err fk__memory_text_make(fk_mem *mem, fk_str from, memory_text *out);
void fk__memory_text_free(fk_mem *mem, memory_text text);

static inline fk_str fk__memory_str(memory_text text)
{
    return (fk_str){ text.ptr, text.len };
}

FK_MUST_USE fk_err fk__memory_name_get(memory_cluster *c, fk_str id, memory_name **out);
/* NULL: it is not there, or its lease is over. */
memory_member *fk__memory_member_live(memory_cluster *c, fk_str id, uint64_t incarnation);
void fk__memory_join(memory_cluster *c, fk_store_op *op);
void fk__memory_renew(memory_cluster *c, fk_store_op *op);
void fk__memory_update(memory_cluster *c, fk_store_op *op);
void fk__memory_leave(memory_cluster *c, fk_store_op *op);
void fk__memory_view(memory_cluster *c, fk_store_op *op);
void fk__memory_members_fini(memory_cluster *c);

void fk__memory_acquire(memory_cluster *c, fk_store_op *op);
void fk__memory_transfer(memory_cluster *c, fk_store_op *op);
void fk__memory_release(memory_cluster *c, fk_store_op *op);
void fk__memory_slots_fini(memory_cluster *c);

void fk__memory_load(memory_cluster *c, fk_store_op *op);
void fk__memory_put(memory_cluster *c, fk_store_op *op);
void fk__memory_remove(memory_cluster *c, fk_store_op *op);
void fk__memory_peek(memory_cluster *c, fk_store_op *op);
void fk__memory_list(memory_cluster *c, fk_store_op *op);
void fk__memory_purge(memory_cluster *c);
void fk__memory_grains_fini(memory_cluster *c);

/* For tests: the clock of that store goes so much ahead, on top of what it did before. */
void fk__memory_clock_shift(fk_store *store, fk_time by);

#endif /* FK_STORE_MEMORY_H */
