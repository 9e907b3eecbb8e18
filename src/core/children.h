/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_CHILDREN_H
#define FK_CORE_CHILDREN_H

/*
 * The children of a cell, by name: an open-addressed table of slots.
 *
 * Only the parent's owner changes it, except that anybody may spawn under a guardian until it is
 * closed. Changes are made under the parent's children_lock, for the sake of lookups from
 * elsewhere; the owner itself reads without.
 *
 * A child's name pointer changes under its own lock and, once others can know the child, the
 * parent's; so either suffices to read it.
 */

#include "core/system.h"

/* A cell's label is the address of one of these, or for a generated name that nobody has asked for
 * yet, twice its number plus 1. */
struct fk_name {
    uint64_t number;  /* of a generated one */
    uint32_t size;    /* of the text: the name, or when somebody has asked for it ... */
    uint32_t at, len; /* ... the canonical path that the name is in; len 0: it is generated */
    bool is_path;
    char text[];
};

static inline uint64_t fk__label_of_number(uint64_t number)
{
    return number << 1 | 1;
}

static inline uint64_t fk__label_of_name(const fk_name *name)
{
    return (uintptr_t)name;
}

/* NULL: it is a number, or the cell has no name at all. */
static inline fk_name *fk__label_name(uint64_t label)
{
    return (label & 1) != 0 ? NULL : (fk_name *)(uintptr_t)label;
}

static inline uint64_t fk__label_number(uint64_t label)
{
    const fk_name *name = fk__label_name(label);
    return name != NULL ? name->number : label >> 1;
}

/* False for a generated one, and for NULL. */
static inline bool fk__name_is_given(const fk_name *name)
{
    return name != NULL && name->len != 0;
}

static inline fk_str fk__name_text(const fk_name *name)
{
    return (fk_str){ name->text + name->at, name->len };
}

/* Makes the child known. It gets its name here: `name` must be legal, or empty for a generated
 * one. FK_E_NAME_TAKEN, FK_E_STOPPING, FK_E_NOMEM, FK_E_LIMIT change nothing. */
FK_MUST_USE fk_err fk__children_add(fk_local *local, fk_cell *parent, fk_cell *child, fk_str name);
/* Forgets the child, which is not ENDING any more then, and leaves an obituary with its name. */
void fk__children_remove(fk_worker *worker, fk_cell *parent, fk_cell *child);
/* The living child of that name, or who is known by it under /temp. False also when the parent is not of that generation any more. */
bool fk__children_find(fk_cell *parent, uint32_t generation, fk_str name, fk_ref *out,
                       uint64_t *uid);
/* Up to max of the living ones. */
size_t fk__children_list(fk_cell *parent, fk_ref *out, size_t max);
/* No child can be added any more. From here on the table is the owner's alone. */
void fk__children_close(fk_cell *parent);
/* For the owner of a closed parent: the next child after *cursor, which begins at 0; NULL at the
 * end. */
fk_cell *fk__children_next(fk_cell *parent, uint32_t *cursor);
/* All children that a parent has now, one by one; more may come meanwhile, and those given may be
 * told to stop. Only one at a time for a parent; it may be left before its end. */
typedef struct fk_brood {
    fk_cell *parent;
    uint32_t bit; /* in the word of those still to come; taken away when they are given */
    uint32_t at;
    bool found; /* one, since it began at 0 */
} fk_brood;
fk_brood fk__brood(fk_cell *parent);
fk_cell *fk__brood_next(fk_brood *brood);
/* For the owner of a closed parent without children: frees the table. */
void fk__children_fini(fk_local *local, fk_cell *parent);
/* Frees the table of a system that is given up, whatever is in it. */
void fk__children_abandon(fk_local *local, fk_cell *parent);

/* Of what a name means, however it is written. */
uint64_t fk__name_hash(const fk_system *sys, fk_str name);
/* What a label says, generated or not: a generated name is written to buf. */
fk_str fk__label_text(uint64_t label, char buf[FK_AUTONAME_MAX]);
/* Bytes that a generated name takes. */
size_t fk__autoname_len(uint64_t number);
/* Text that is all name; NULL: local->cache.err says why. */
fk_name *fk__name_create(fk_local *local, fk_str text, const fk_site *site);
void fk__name_free(fk_local *local, fk_name *name);

#endif /* FK_CORE_CHILDREN_H */
