/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An actor's path is the names on the way up. They are found in the cells, each under its parent's
 * lock, and for an actor that has ended among the obituaries of the workers. The finished text is
 * kept with the actor's name, so that asking again is a lookup and a copy under the actor's own lock.
 */

#include "core/registry.h"

#include "fraktor/registry.h"

#include "base/safeguard.h"
#include "core/children.h"
#include "core/event.h"
#include "core/path.h"
#include "core/promise.h"
#include "core/temp.h"

/* ---- the way up ----------------------------------------------------------------------------- */

/* Somebody on the way up, and after climb() its name and the one above. */
typedef struct fk_climber {
    uint32_t slot, generation;
    uint64_t uid;
    size_t len;
    char *end; /* the name is written so that it ends here; NULL: not at all */
} fk_climber;

static void climber_name(fk_climber *c, fk_str name)
{
    c->len = name.len;
    if (c->end == NULL) return;
    c->end -= name.len;
    memcpy(c->end, name.ptr, name.len);
}

static bool take_step(void *arg, const fk_obituary *entry)
{
    fk_climber *c = arg;
    if (entry->slot != c->slot || entry->generation != c->generation) return false;
    char generated[FK_AUTONAME_MAX];
    climber_name(c, fk__label_text(entry->label, generated));
    c->uid = entry->uid;
    c->slot = entry->parent_slot;
    c->generation = entry->parent_generation;
    return true;
}

/* Alive, or ended without its parent having seen it: it has its name and its place. */
static bool is_there(const fk_cell *cell, uint32_t generation)
{
    uint32_t now = fk__half_load(&cell->generation, FK_ACQUIRE);
    if (now == generation) return true;
    if (now != generation + 1) return false;
    bool is_ending = (fk__half_load(&cell->gate, FK_ACQUIRE) & FK_GATE_ENDING) != 0;
    /* Another actor, under another parent, may have come and gone between the two loads: then what
     * we saw is its gate. Acquire above pairs with the release of that gate. */
    bool is_same = fk__half_load(&cell->generation, FK_ACQUIRE) == now;
    return (is_ending && is_same) || !FK_SAFEGUARD(PATH_ENDING);
}

/* One level. False: nobody knows the actor any more. */
static bool climb(fk_system *sys, fk_climber *c)
{
    const fk_cell *cell = fk__slots_at(&sys->slots, c->slot);
    fk_cell *parent = cell != NULL ? fk__cell_parent(cell) : NULL;
    if (parent != NULL) {
        fk__mem_lock(&sys->mem, &parent->children_lock);
        bool found = is_there(cell, c->generation);
        if (found) {
            char generated[FK_AUTONAME_MAX];
            climber_name(c, fk__label_text(cell->label, generated));
            c->uid = cell->uid;
            c->slot = parent->slot;
            c->generation = fk__half_load(&parent->generation, FK_ACQUIRE);
        }
        fk__mem_unlock(&sys->mem, &parent->children_lock);
        if (found) return true;
    }
    return fk__obituaries_search(sys, &(fk_obituary_search){ take_step, c, 0 });
}

/* ---- from a ref to its path ------------------------------------------------------------------ */

static void copy_cut(char *buf, size_t size, const char *text, size_t len)
{
    if (size == 0) return;
    size_t fits = len < size ? len : size - 1;
    memcpy(buf, text, fits);
    buf[fits] = '\0';
}

static size_t path_cached(fk_system *sys, fk_cell *cell, uint32_t generation, char *buf,
                          size_t size)
{
    size_t len = 0;
    fk__mem_lock(&sys->mem, &cell->children_lock);
    const fk_name *name = is_there(cell, generation) ? fk__label_name(cell->label) : NULL;
    if (name != NULL && name->is_path) {
        len = name->size;
        copy_cut(buf, size, name->text, len);
    }
    fk__mem_unlock(&sys->mem, &cell->children_lock);
    return len;
}

/* Where the last segment ends. */
static size_t name_end(fk_str path)
{
    for (size_t i = path.len; i > 0 && path.ptr[i - 1] != '/'; i--) {
        if (path.ptr[i - 1] == '#') return i - 1;
    }
    return path.len;
}

/* Keeps a path that was built with the cell, for the next one who asks: it takes the place of the
 * name that it ends in. Without memory, or when the actor has ended meanwhile, it is simply built
 * again. */
static void path_cache(fk_local *local, fk_cell *cell, uint32_t generation, fk_str path)
{
    fk_mem *mem = &local->sys->mem;
    fk_cell *parent = fk__cell_parent(cell);
    fk_name *name = fk__name_create(local, path, FK_SITE("path of an actor"));
    if (name == NULL) return;
    name->is_path = true;
    fk__mem_lock(mem, &parent->children_lock);
    fk__mem_lock(mem, &cell->children_lock);
    fk_name *old = fk__label_name(cell->label);
    bool is_same = fk__half_load(&cell->generation, FK_ACQUIRE) == generation;
    if ((is_same || !FK_SAFEGUARD(PATH_KEPT)) && (old == NULL || !old->is_path)) {
        name->len = old != NULL ? old->len : 0;
        name->at = (uint32_t)name_end(path) - name->len;
        name->number = fk__label_number(cell->label);
        cell->label = fk__label_of_name(name);
        name = old; /* whoever reads it holds one of the locks, so nobody does now */
    }
    fk__mem_unlock(mem, &cell->children_lock);
    fk__mem_unlock(mem, &parent->children_lock);
    fk__name_free(local, name);
}

static fk_text uid_text(const fk_system *sys, uint64_t uid, char *buf, size_t size)
{
    fk_path path = { .uid = uid, .rules = (uint8_t)sys->paths.rules };
    fk_text text = { buf, size, 0 };
    fk__text_uid(&text, &path);
    return text;
}

size_t fk__path_read(fk_system *sys, fk_ref ref, char *buf, size_t size)
{
    char number[24];
    fk_climber c = { .slot = ref.slot, .generation = ref.generation };
    size_t full = sys->address_len;
    fk_text uid = { NULL, 0, 0 };
    for (bool first = true; c.slot != sys->top.root->slot; first = false) {
        if (!climb(sys, &c)) return 0;
        if (first) uid = uid_text(sys, c.uid, number, sizeof(number));
        full += 1 + c.len;
    }
    full += uid.len;
    if (full >= size) return full;
    /* Once more, now that the end is known: names do not change. */
    buf[full] = '\0';
    memcpy(buf + full - uid.len, number, uid.len);
    c = (fk_climber){ .slot = ref.slot, .generation = ref.generation, .end = buf + full - uid.len };
    while (c.slot != sys->top.root->slot) {
        if (!climb(sys, &c)) { /* forgotten just now */
            buf[0] = '\0';
            return 0;
        }
        *--c.end = '/';
    }
    memcpy(buf, sys->address_text, sys->address_len);
    return full;
}

/* A path that does not fit the caller's buffer is shown as far as it does. */
static void path_build_cut(fk_local *local, fk_ref ref, size_t full, char *buf, size_t size)
{
    char *text = fk__cache_alloc(&local->cache, full + 1, FK_SITE("path, for a moment"));
    if (text == NULL) return;
    if (fk__path_read(local->sys, ref, text, full + 1) == full) copy_cut(buf, size, text, full);
    fk__cache_free(&local->cache, text, full + 1);
}

static size_t path_of_root(const fk_system *sys, char *buf, size_t size)
{
    fk_text text = { buf, size, 0 };
    fk__text_put(&text, (fk_str){ sys->address_text, sys->address_len });
    fk__text_put(&text, FK_STR("/"));
    if (size > 0) buf[text.len < size ? text.len : size - 1] = '\0';
    return text.len;
}

/* What needs no memory: 0 when that is not enough. */
static size_t path_at_hand(fk_system *sys, fk_ref ref, char *buf, size_t size)
{
    if (size > 0) buf[0] = '\0';
    if (ref.system != sys->id || (ref.generation & 1) == 0) return 0;
    fk_cell *cell = fk__slots_at(&sys->slots, ref.slot);
    if (cell == NULL) return 0;
    if ((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_REMOTE) != 0) {
        return sys->remote.path != NULL ? sys->remote.path(sys->remote.ctx, ref, buf, size) : 0;
    }
    if (cell == sys->top.root) return ref.generation == 1 ? path_of_root(sys, buf, size) : 0;
    return path_cached(sys, cell, ref.generation, buf, size);
}

size_t fk__path_of(fk_local *local, fk_ref ref, char *buf, size_t size)
{
    fk_system *sys = local->sys;
    size_t len = path_at_hand(sys, ref, buf, size);
    fk_cell *cell = fk__slots_at(&sys->slots, ref.slot);
    bool is_possible = cell != NULL && cell != sys->top.root && ref.system == sys->id;
    if (len != 0 || !is_possible || (ref.generation & 1) == 0) return len;
    if (fk__cell_is_promise(cell)) return fk__temp_path(local, ref, buf, size);
    len = fk__path_read(sys, ref, buf, size);
    if (len == 0 || size == 0) return len;
    if (len >= size) {
        path_build_cut(local, ref, len, buf, size);
        return len;
    }
    if (fk__cell_resolve(sys, ref) != NULL)
        path_cache(local, cell, ref.generation, (fk_str){ buf, len });
    return len;
}

size_t fk_path_of(fk_system *sys, fk_ref ref, char *buf, size_t size)
{
    size_t len = path_at_hand(sys, ref, buf, size);
    if (len != 0) return len;
    fk_local *local = fk__local_enter(sys);
    len = fk__path_of(local, ref, buf, size);
    fk__local_leave(local);
    return len;
}

size_t fk__dead_letter_path(fk_local *local, const fk_dead_letter *letter, char *buf, size_t size)
{
    const fk_system *sys = local->sys;
    fk_text text = { buf, size, 0 };
    if (letter->path.len == 0) {
        size_t len = fk__path_of(local, letter->to, buf, size);
        if (len != 0) return len;
        fk__text_put(&text, (fk_str){ sys->address_text, sys->address_len });
        fk__text_put(&text, FK_STR("/deadLetters"));
    } else {
        fk__text_put(&text, letter->path);
    }
    if (size > 0) buf[text.len < size ? text.len : size - 1] = '\0';
    return text.len;
}

size_t fk_dead_letter_path(fk_system *sys, const fk_dead_letter *letter, char *buf, size_t size)
{
    fk_local *local = fk__local_enter(sys);
    size_t len = fk__dead_letter_path(local, letter, buf, size);
    fk__local_leave(local);
    return len;
}

/* ---- from a path to a ref --------------------------------------------------------------------- */

bool fk__registry_is_own(const fk_system *sys, const fk_path *path)
{
    const fk_path *own = &sys->address;
    if (path->system.len != own->system.len ||
        memcmp(path->system.ptr, own->system.ptr, own->system.len) != 0) {
        return false;
    }
    if (path->host.len == 0) return true;
    return path->port == own->port && path->host.len == own->host.len &&
           memcmp(path->host.ptr, own->host.ptr, own->host.len) == 0;
}

/* Nearly every path goes through /user, which the system knows without asking its root. */
static bool is_user(const fk_path *path)
{
    const char *text = path->segments.ptr;
    size_t len = path->segments.len;
    return len >= 5 && memcmp(text, "/user", 5) == 0 && (len == 5 || text[5] == '/');
}

/* Only Pekko's rules let such a segment into a path. */
static bool is_parent(fk_str segment)
{
    return segment.len == 2 && segment.ptr[0] == '.' && segment.ptr[1] == '.';
}

/* One level up; the root is its own parent. False: nobody knows the actor any more. */
static bool find_parent(fk_system *sys, fk_ref *at)
{
    fk_climber c = { .slot = at->slot, .generation = at->generation };
    if (at->slot == sys->top.root->slot) return true;
    if (!climb(sys, &c)) return false;
    *at = (fk_ref){ c.slot, c.generation, sys->id };
    return true;
}

bool fk__registry_find(fk_system *sys, const fk_path *path, fk_ref *out, uint64_t *uid)
{
    bool begins_at_user = is_user(path);
    fk_ref at = fk__cell_ref(begins_at_user ? sys->top.user : sys->top.root);
    size_t cursor = begins_at_user ? 5 : 0;
    fk_str segment;
    *uid = 0;
    if ((at.generation & 1) == 0) return false;
    while (fk_path_next(path, &cursor, &segment)) {
        if (is_parent(segment)) {
            *uid = 0;
            if (!find_parent(sys, &at)) return false;
            continue;
        }
        fk_cell *parent = fk__slots_at(&sys->slots, at.slot);
        if (!fk__children_find(parent, at.generation, segment, &at, uid)) return false;
    }
    if (path->uid != 0 && path->uid != *uid && FK_SAFEGUARD(PATH_UID)) return false;
    *out = at;
    return true;
}

void fk__path_fault(fk_system *sys, fk_local *local, fk_str text, const fk_path_fault *fault)
{
    if (!fk__event_wanted(sys, FK_EVENT_PATH_FAULT)) return;
    char buf[FK_SHOWN_MAX];
    fk__event(sys, local,
              &(fk_event){ .kind = FK_EVENT_PATH_FAULT,
                           .text = fk__text_shown(text, buf),
                           .fault = *fault,
                           .reason = fault->message });
}

fk_err fk_resolve(fk_system *sys, fk_str text, fk_ref *out, fk_path_fault *fault)
{
    fk_path path;
    fk_path_fault found;
    uint64_t uid;
    bool is_booting = fk__half_load(&sys->stopping, FK_ACQUIRE) == FK_SPAWN_BOOTING;
    if (is_booting) return FK_E_NOT_BOOTSTRAPPED;
    fk_err err = fk_path_parse(&sys->paths, text, &path, &found);
    if (err != FK_OK) {
        if (fault != NULL) *fault = found;
        fk__path_fault(sys, NULL, text, &found);
        return err;
    }
    /* Pekko takes an address for the path of nobody, not for the root's. */
    bool is_address = path.depth == 0 && text.ptr[text.len - 1] != '/';
    if (is_address && sys->paths.rules == FK_RULES_PEKKO) return FK_E_PID_UNKNOWN;
    if (fk__registry_is_own(sys, &path)) {
        return fk__registry_find(sys, &path, out, &uid) ? FK_OK : FK_E_PID_UNKNOWN;
    }
    if (path.host.len == 0 || sys->remote.resolve == NULL) return FK_E_UNRESOLVED;
    fk_local *local = fk__local_enter(sys);
    err = sys->remote.resolve(sys->remote.ctx, local, &path, true, out);
    fk__local_leave(local);
    return err;
}

fk_err fk_system_path(fk_system *sys, const fk_str *names, size_t count, fk_buf buf, fk_path *out,
                      fk_path_fault *fault)
{
    const fk_path *own = &sys->address;
    fk_path_parts parts = {
        .scheme = (fk_scheme)own->scheme,
        .system = own->system,
        .host = own->host,
        .port = own->port,
        .guardian = sys->guardian,
        .names = names,
        .count = count,
    };
    return fk_path_build(&sys->paths, &parts, buf, out, fault);
}
