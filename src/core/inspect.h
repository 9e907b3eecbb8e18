/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_INSPECT_H
#define FK_CORE_INSPECT_H

/* What can be said of one actor, and how it is written. */

#include "core/box.h"
#include "fraktor/inspect.h"

typedef struct fk_sight {
    fk_ref ref;
    uint64_t uid;
    uint64_t memory;
    uint32_t depth;
    uint32_t children;
    uint32_t mailbox; /* FK_MAILBOX_UNKNOWN */
    const char *state;
    uint32_t name_len;
    char name[64]; /* cut */
} fk_sight;

/* Looks at a cell that has an actor; false: it has none (any more). at_rest: nothing runs meanwhile,
 * so that every mailbox can be counted. */
bool fk__sight_take(fk_system *sys, fk_cell *cell, bool at_rest, fk_sight *out);
/* The same for a child of `parent`, whose children_lock the caller holds. */
bool fk__sight_take_child(const fk_cell *parent, fk_cell *child, bool at_rest, fk_sight *out);

/* One line. */
void fk__sight_write_header(const fk_writer *writer);
void fk__sight_write(fk_system *sys, const fk_sight *sight, const fk_writer *writer);
void fk__sight_write_branch(const fk_sight *sight, const fk_writer *writer);
void fk__sight_write_json(fk_system *sys, const fk_sight *sight, const fk_writer *writer);

/* As fk_dump_tree(). */
size_t fk__dump_tree(fk_system *sys, const fk_dump_options *options, bool at_rest,
                     const fk_writer *writer);

#endif /* FK_CORE_INSPECT_H */
