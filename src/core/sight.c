/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What anybody may know of an actor without asking it. Atomic fields are read as they are; the rest
 * is what stays the same while the parent's children_lock is held: as long as the parent has the
 * child in its table, no other actor moves into the cell.
 */

#include "core/inspect.h"

#include "core/box.h"
#include "core/children.h"
#include "core/path.h"
#include "core/registry.h"

enum { SIGHT_LINE = 1400, SIGHT_PATH = 1100, SIGHT_COLUMN = 40 };

/* ---- looking ----------------------------------------------------------------------------- */

static uint32_t queue_len(const fk_cell *cell)
{
    uint32_t len = 0;
    for (const fk_link *link = fk__word_ptr(&cell->head->next, FK_RELAXED); link != NULL;
         link = fk__word_ptr(&link->next, FK_RELAXED)) {
        len++;
    }
    return len;
}

static uint32_t mailbox_len(const fk_cell *cell, uint32_t generation, bool at_rest)
{
    fk_box *box = fk__word_ptr(&cell->box, FK_ACQUIRE);
    uint32_t len = FK_MAILBOX_UNKNOWN;
    if (box != NULL) len = fk__box_len(box, cell, generation);
    if (!at_rest) return len;
    return queue_len(cell) + (len != FK_MAILBOX_UNKNOWN ? len : 0);
}

static const char *state_of(const fk_cell *cell, uint32_t generation)
{
    if (fk__half_load(&cell->stop_generation, FK_RELAXED) == generation) return "stopping";
    if ((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_HELD) != 0) return "held";
    return (fk__word_load(&cell->tail, FK_RELAXED) & FK_TAIL_IDLE) != 0 ? "idle" : "active";
}

bool fk__sight_take_child(const fk_cell *parent, fk_cell *child, bool at_rest, fk_sight *out)
{
    fk_mem *mem = &child->sys->mem;
    uint32_t generation = fk__half_load(&child->generation, FK_ACQUIRE);
    if ((generation & 1) == 0) return false; /* being made, or it has ended */
    char generated[FK_AUTONAME_MAX];
    fk_str name = parent != NULL ? fk__label_text(child->label, generated) : FK_STR("/");
    *out = (fk_sight){ .ref = { child->slot, generation, child->sys->id },
                       .uid = child->uid,
                       .depth = child->ended.depth,
                       .state = state_of(child, generation),
                       .mailbox = mailbox_len(child, generation, at_rest) };
    out->name_len = (uint32_t)(name.len < sizeof(out->name) ? name.len : sizeof(out->name));
    memcpy(out->name, name.ptr, out->name_len);
    fk__mem_lock(mem, &child->children_lock);
    out->children = child->children_count;
    out->memory = child->children != NULL ? sizeof(uint64_t) << child->children_shift : 0;
    fk__mem_unlock(mem, &child->children_lock);
    out->memory += sizeof(fk_cell) + child->props->state_size;
    return true;
}

bool fk__sight_take(fk_system *sys, fk_cell *cell, bool at_rest, fk_sight *out)
{
    /* The generation first: the parent is then this actor's, or a later one's. */
    uint32_t generation = fk__half_load(&cell->generation, FK_ACQUIRE);
    if ((generation & 1) == 0) return false;
    /* Those have no parent and nothing to show, and a promise is no actor. */
    const uint32_t others = FK_GATE_REMOTE | FK_GATE_PROMISE;
    if ((fk__half_load(&cell->gate, FK_RELAXED) & others) != 0) return false;
    fk_cell *parent = fk__cell_parent(cell);
    if (parent == NULL) return fk__sight_take_child(NULL, cell, at_rest, out);
    fk__mem_lock(&sys->mem, &parent->children_lock);
    bool found = fk__half_load(&cell->generation, FK_ACQUIRE) == generation &&
                 fk__cell_parent(cell) == parent &&
                 fk__sight_take_child(parent, cell, at_rest, out);
    fk__mem_unlock(&sys->mem, &parent->children_lock);
    return found;
}

/* ---- writing ----------------------------------------------------------------------------- */

typedef struct sight_line {
    fk_text text;
    char buf[SIGHT_LINE];
} sight_line;

static void line_begin(sight_line *line)
{
    line->text = (fk_text){ line->buf, sizeof(line->buf), 0 };
}

static void line_end(sight_line *line, const fk_writer *writer)
{
    fk__text_put(&line->text, FK_STR("\n"));
    size_t len = line->text.len < sizeof(line->buf) ? line->text.len : sizeof(line->buf);
    writer->write(writer->user, line->buf, len);
}

static void sight_put_text(sight_line *line, const char *text)
{
    fk__text_put(&line->text, fk_str_of(text));
}

/* Spaces up to a column, at least one. */
static void put_column(sight_line *line, size_t column)
{
    do {
        fk__text_put(&line->text, FK_STR(" "));
    } while (line->text.len < column);
}

static void put_count(sight_line *line, uint32_t count, const char *otherwise)
{
    if (count == FK_MAILBOX_UNKNOWN)
        sight_put_text(line, otherwise);
    else
        fk__text_number(&line->text, count);
}

static void put_ref(sight_line *line, fk_ref ref)
{
    fk__text_number(&line->text, ref.slot);
    sight_put_text(line, ":");
    fk__text_number(&line->text, ref.generation);
}

/* The path that the actor has now, or its name if it has ended meanwhile or the path is too long. */
static void put_path(sight_line *line, fk_system *sys, const fk_sight *sight, bool with_address)
{
    char path[SIGHT_PATH];
    size_t len = fk__path_read(sys, sight->ref, path, sizeof(path));
    fk_str shown = { sight->name, sight->name_len };
    size_t skipped = with_address ? 0 : sys->address_len;
    if (len != 0 && len < sizeof(path) && sight->depth == 0) path[len++] = '/';
    if (len != 0 && len < sizeof(path)) {
        shown = (fk_str){ path + skipped, len - skipped };
    }
    for (size_t i = 0; i < shown.len; i++) { /* legal names need no escape, but that is not ours */
        if (shown.ptr[i] == '"' || shown.ptr[i] == '\\') sight_put_text(line, "\\");
        fk__text_put(&line->text, (fk_str){ shown.ptr + i, 1 });
    }
}

void fk__sight_write_header(const fk_writer *writer)
{
    sight_line line;
    line_begin(&line);
    sight_put_text(&line, "PATH");
    put_column(&line, SIGHT_COLUMN);
    sight_put_text(&line, "REF          STATE     CHILDREN  MAILBOX   MEMORY");
    line_end(&line, writer);
}

void fk__sight_write(fk_system *sys, const fk_sight *sight, const fk_writer *writer)
{
    sight_line line;
    line_begin(&line);
    put_path(&line, sys, sight, false);
    put_column(&line, SIGHT_COLUMN);
    size_t at = line.text.len;
    put_ref(&line, sight->ref);
    put_column(&line, at + 13);
    sight_put_text(&line, sight->state);
    put_column(&line, at + 23);
    fk__text_number(&line.text, sight->children);
    put_column(&line, at + 33);
    put_count(&line, sight->mailbox, "-");
    put_column(&line, at + 43);
    fk__text_number(&line.text, sight->memory);
    line_end(&line, writer);
}

void fk__sight_write_branch(const fk_sight *sight, const fk_writer *writer)
{
    sight_line line;
    line_begin(&line);
    for (uint32_t i = 0; i < sight->depth; i++) sight_put_text(&line, "  ");
    fk__text_put(&line.text, (fk_str){ sight->name, sight->name_len });
    if (sight->uid != 0) {
        sight_put_text(&line, "#");
        fk__text_number(&line.text, sight->uid);
    }
    sight_put_text(&line, " ");
    sight_put_text(&line, sight->state);
    if (sight->children != 0) {
        sight_put_text(&line, " children=");
        fk__text_number(&line.text, sight->children);
    }
    if (sight->mailbox != FK_MAILBOX_UNKNOWN && sight->mailbox != 0) {
        sight_put_text(&line, " mailbox=");
        fk__text_number(&line.text, sight->mailbox);
    }
    line_end(&line, writer);
}

static void put_member(sight_line *line, const char *name, uint64_t value)
{
    sight_put_text(line, name);
    fk__text_number(&line->text, value);
}

void fk__sight_write_json(fk_system *sys, const fk_sight *sight, const fk_writer *writer)
{
    sight_line line;
    line_begin(&line);
    sight_put_text(&line, "{\"path\":\"");
    put_path(&line, sys, sight, true);
    sight_put_text(&line, "\",\"ref\":\"");
    put_ref(&line, sight->ref);
    put_member(&line, "\",\"uid\":\"", sight->uid); /* text: it may be beyond what a double holds */
    put_member(&line, "\",\"depth\":", sight->depth);
    sight_put_text(&line, ",\"state\":\"");
    sight_put_text(&line, sight->state);
    put_member(&line, "\",\"children\":", sight->children);
    sight_put_text(&line, ",\"mailbox\":");
    put_count(&line, sight->mailbox, "null");
    put_member(&line, ",\"memory\":", sight->memory);
    sight_put_text(&line, "}");
    line_end(&line, writer);
}
