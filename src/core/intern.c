/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Props are copied at spawn, but a thousand actors of one kind need one copy. What differs from
 * actor to actor (init, state) is used up by the spawn and left out of the comparison, except that
 * there is an init or not.
 */

#include "core/system.h"

struct fk_interned {
    fk_interned *next;
    uint64_t hash;
    fk_props props;
};

static bool strategy_equal(const fk_strategy *a, const fk_strategy *b)
{
    return a->kind == b->kind && a->decide == b->decide && a->restarts == b->restarts &&
           a->within == b->within && a->backoff_min == b->backoff_min &&
           a->backoff_max == b->backoff_max && a->backoff_reset == b->backoff_reset &&
           a->backoff_jitter == b->backoff_jitter;
}

static bool props_equal(const fk_props *a, const fk_props *b)
{
    return a->receive == b->receive && a->start == b->start && a->stop == b->stop &&
           a->throughput == b->throughput && a->state_size == b->state_size &&
           a->mailbox == b->mailbox && a->overflow == b->overflow && a->capacity == b->capacity &&
           a->stash_max == b->stash_max && a->priority == b->priority &&
           a->dispatcher == b->dispatcher && a->before_restart == b->before_restart &&
           a->after_restart == b->after_restart && (a->init == NULL) == (b->init == NULL) &&
           strategy_equal(&a->strategy, &b->strategy);
}

static uint64_t props_hash(const fk_props *p)
{
    uint64_t hash = fk__mix64((uint64_t)(uintptr_t)p->receive);
    hash = fk__mix64(hash ^ (uint64_t)(uintptr_t)p->start);
    hash = fk__mix64(hash ^ (uint64_t)(uintptr_t)p->stop ^ p->capacity);
    return fk__mix64(hash ^ p->state_size ^ ((uint64_t)p->throughput << 32));
}

/* Byte by byte, which is quick, and what it says is true: bytes between the fields can only make
 * equal ones look different. */
bool fk__props_are_last(const fk_local *local, const fk_props *props)
{
    const char *last = (const char *)local->props_last, *given = (const char *)props;
    const size_t from = offsetof(fk_props, throughput), to = offsetof(fk_props, init);
    const size_t rest = offsetof(fk_props, mailbox);
    if (last == NULL || (props->init == NULL) != (local->props_last->init == NULL)) return false;
    return memcmp(last + from, given + from, to - from) == 0 &&
           memcmp(last + rest, given + rest, sizeof(*props) - rest) == 0;
}

fk_err fk__props_intern(fk_local *local, const fk_props *props, const fk_props **out)
{
    fk_system *sys = local->sys;
    uint64_t hash = props_hash(props);
    fk_interned **bucket = &sys->interned[hash % 64];
    fk_err err = FK_OK;
    fk__mem_lock(&sys->mem, &sys->lock);
    fk_interned *found = *bucket;
    while (found != NULL && !(found->hash == hash && props_equal(&found->props, props))) {
        found = found->next;
    }
    if (found == NULL) {
        void *memory;
        err = sys->interned_count >= FK_PROPS_MAX
                  ? FK_E_LIMIT
                  : fk__mem_alloc(&sys->mem, sizeof(*found), FK_SITE("props"), &memory);
        if (err == FK_OK) {
            found = memory;
            *found = (fk_interned){ *bucket, hash, *props };
            if (props->init != NULL)
                found->props.init = found; /* there was one: no more than that */
            found->props.state = NULL;
            *bucket = found;
            sys->interned_count++;
        }
    }
    fk__mem_unlock(&sys->mem, &sys->lock);
    if (err == FK_OK) *out = local->props_last = &found->props;
    return err;
}

void fk__props_fini(fk_system *sys)
{
    for (int i = 0; i < 64; i++) {
        while (sys->interned[i] != NULL) {
            fk_interned *dead = sys->interned[i];
            sys->interned[i] = dead->next;
            fk__mem_free(&sys->mem, dead, sizeof(*dead));
        }
    }
}
