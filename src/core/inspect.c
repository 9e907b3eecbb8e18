/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Walks through all actors. The tree is walked with a frame for each level and no other memory. A
 * parent with few children shows them in the order of their uids, by looking for the next one
 * each time, which no change of its table disturbs; one with many, in the order of its table.
 *
 * The list goes by slots, which never move.
 */

#include "core/inspect.h"

#include "core/children.h"

enum { INSPECT_FRAMES_MAX = 128, FEW_CHILDREN = 32, SORTED_DEFAULT = 50 };

static fk_dump_options options_of(const fk_dump_options *options)
{
    return options != NULL ? *options : (fk_dump_options){ .limit = 0 };
}

/* ---- the tree ---------------------------------------------------------------------------- */

/* A parent on the way down, and the child that was shown last. */
typedef struct inspect_frame {
    fk_cell *cell;
    uint32_t generation;
    uint32_t cursor; /* of many children */
    uint64_t last_number;
    uint32_t last_slot;
    bool is_begun;
    bool has_few;
} inspect_frame;

static bool is_after(const inspect_frame *frame, uint64_t number, uint32_t slot)
{
    if (!frame->is_begun) return true;
    return number != frame->last_number ? number > frame->last_number : slot > frame->last_slot;
}

/* The oldest child that is younger than the last one, or NULL. Under the parent's lock. */
static fk_cell *oldest_after(const inspect_frame *frame, uint64_t *number)
{
    fk_cell *best = NULL;
    uint32_t cursor = 0;
    fk_cell *child;
    while ((child = fk__children_next(frame->cell, &cursor)) != NULL) {
        if ((fk__half_load(&child->generation, FK_ACQUIRE) & 1) == 0) continue;
        uint64_t own = fk__uid_number(child->sys, child->uid);
        if (!is_after(frame, own, child->slot)) continue;
        if (best != NULL && (own > *number || (own == *number && child->slot > best->slot))) {
            continue;
        }
        best = child;
        *number = own;
    }
    return best;
}

static bool next_of_few(inspect_frame *frame, bool at_rest, fk_sight *out)
{
    fk_cell *child;
    uint64_t number = 0;
    while ((child = oldest_after(frame, &number)) != NULL) {
        frame->last_number = number;
        frame->last_slot = child->slot;
        frame->is_begun = true;
        if (fk__sight_take_child(frame->cell, child, at_rest, out)) return true;
    }
    return false;
}

static bool next_of_many(inspect_frame *frame, bool at_rest, fk_sight *out)
{
    fk_cell *child;
    while ((child = fk__children_next(frame->cell, &frame->cursor)) != NULL) {
        if (fk__sight_take_child(frame->cell, child, at_rest, out)) return true;
    }
    return false;
}

static bool next_child(inspect_frame *frame, bool at_rest, fk_sight *out)
{
    fk_cell *parent = frame->cell;
    fk_mem *mem = &parent->sys->mem;
    bool found = false;
    fk__mem_lock(mem, &parent->children_lock);
    if (fk__half_load(&parent->generation, FK_ACQUIRE) == frame->generation) {
        if (!frame->is_begun && frame->cursor == 0)
            frame->has_few = parent->children_count <= FEW_CHILDREN;
        found =
            frame->has_few ? next_of_few(frame, at_rest, out) : next_of_many(frame, at_rest, out);
    }
    fk__mem_unlock(mem, &parent->children_lock);
    return found;
}

static void show_branch(fk_system *sys, const fk_dump_options *options, const fk_sight *sight,
                        const fk_writer *writer)
{
    if (options->format == FK_DUMP_JSON)
        fk__sight_write_json(sys, sight, writer);
    else
        fk__sight_write_branch(sight, writer);
}

size_t fk__dump_tree(fk_system *sys, const fk_dump_options *options, bool at_rest,
                     const fk_writer *writer)
{
    inspect_frame frame[INSPECT_FRAMES_MAX];
    fk_sight sight;
    size_t shown = 0;
    uint32_t deepest = options->depth != 0 && options->depth < INSPECT_FRAMES_MAX
                           ? options->depth
                           : INSPECT_FRAMES_MAX;
    size_t limit = options->limit != 0 ? options->limit : SIZE_MAX;
    if (!fk__sight_take(sys, sys->top.root, at_rest, &sight)) return 0;
    show_branch(sys, options, &sight, writer);
    shown++;
    frame[0] = (inspect_frame){ .cell = sys->top.root, .generation = sight.ref.generation };
    uint32_t level = 1;
    while (level > 0 && shown < limit) {
        if (!next_child(&frame[level - 1], at_rest, &sight)) {
            level--;
            continue;
        }
        show_branch(sys, options, &sight, writer);
        shown++;
        if (level == deepest || sight.children == 0) continue;
        fk_cell *cell = fk__slots_at(&sys->slots, sight.ref.slot);
        FK_ASSERT(cell != NULL);
        frame[level++] = (inspect_frame){ .cell = cell, .generation = sight.ref.generation };
    }
    return shown;
}

size_t fk_dump_tree(fk_system *sys, const fk_dump_options *options, const fk_writer *writer)
{
    fk_dump_options own = options_of(options);
    return fk__dump_tree(sys, &own, false, writer);
}

/* ---- the list ---------------------------------------------------------------------------- */

/* Calls with every actor until it says no. */
typedef bool (*sight_fn)(void *arg, const fk_sight *sight);

static void for_each_actor(fk_system *sys, sight_fn fn, void *arg)
{
    fk_sight sight;
    fk_cell *cell;
    for (uint32_t slot = 0; (cell = fk__slots_at(&sys->slots, slot)) != NULL; slot++) {
        if (fk__sight_take(sys, cell, false, &sight) && !fn(arg, &sight)) return;
    }
}

typedef struct inspect_list {
    fk_system *sys;
    const fk_writer *writer;
    fk_dump_options options;
    size_t shown;
    size_t limit;
    /* The largest so far, largest first. */
    uint32_t count;
    struct {
        uint64_t key;
        uint32_t slot, generation;
    } best[FK_DUMP_SORTED_MAX];
} inspect_list;

static bool list_show(void *arg, const fk_sight *sight)
{
    inspect_list *list = arg;
    if (list->shown == list->limit) return false;
    if (list->options.format == FK_DUMP_JSON)
        fk__sight_write_json(list->sys, sight, list->writer);
    else
        fk__sight_write(list->sys, sight, list->writer);
    list->shown++;
    return true;
}

static uint64_t sort_key(fk_dump_sort sort, const fk_sight *sight)
{
    switch (sort) {
    case FK_DUMP_BY_CHILDREN: return sight->children;
    case FK_DUMP_BY_MEMORY: return sight->memory;
    case FK_DUMP_BY_MAILBOX: return sight->mailbox != FK_MAILBOX_UNKNOWN ? sight->mailbox : 0;
    case FK_DUMP_UNSORTED: break;
    }
    return 0;
}

static bool list_keep(void *arg, const fk_sight *sight)
{
    inspect_list *list = arg;
    uint64_t key = sort_key(list->options.sort, sight);
    FK_ASSERT(list->limit > 0);
    if (list->count > 0 && list->count == list->limit && list->best[list->count - 1].key >= key)
        return true;
    if (list->count < list->limit) list->count++;
    uint32_t at = list->count - 1;
    for (; at > 0 && list->best[at - 1].key < key; at--) list->best[at] = list->best[at - 1];
    list->best[at].key = key;
    list->best[at].slot = sight->ref.slot;
    list->best[at].generation = sight->ref.generation;
    return true;
}

static void list_sorted(inspect_list *list)
{
    fk_sight sight;
    if (list->limit == SIZE_MAX) list->limit = SORTED_DEFAULT;
    if (list->limit > FK_DUMP_SORTED_MAX) list->limit = FK_DUMP_SORTED_MAX;
    for_each_actor(list->sys, list_keep, list);
    for (uint32_t i = 0; i < list->count; i++) {
        fk_cell *cell = fk__slots_at(&list->sys->slots, list->best[i].slot);
        bool found = fk__sight_take(list->sys, cell, false, &sight);
        if (found && sight.ref.generation == list->best[i].generation) list_show(list, &sight);
    }
}

size_t fk_dump_ps(fk_system *sys, const fk_dump_options *options, const fk_writer *writer)
{
    inspect_list list;
    list.sys = sys;
    list.writer = writer;
    list.options = options_of(options);
    list.limit = list.options.limit != 0 ? list.options.limit : SIZE_MAX;
    list.shown = 0;
    list.count = 0;
    if (list.options.format != FK_DUMP_JSON) fk__sight_write_header(writer);
    if (list.options.sort == FK_DUMP_UNSORTED)
        for_each_actor(sys, list_show, &list);
    else
        list_sorted(&list);
    return list.shown;
}
