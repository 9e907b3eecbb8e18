/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_REGISTRY_H
#define FK_CORE_REGISTRY_H

/* From refs to paths and back, through the tree of cells; no table of its own, no global lock. */

#include "core/system.h"

/* What is remembered of an actor that has ended. */
typedef struct fk_obituary {
    uint32_t slot, generation; /* generation 0: an empty entry */
    uint32_t parent_slot, parent_generation;
    uint64_t uid;
    uint64_t label; /* owned */
    fk_time died;
} fk_obituary;

/* The last ones that a worker saw end, oldest first from `next` on. */
typedef struct fk_obituaries {
    fk_lock lock;
    uint32_t next;
    fk_time forgotten; /* when the newest one that is not here any more died; 0: none */
    fk_obituary entry[256];
} fk_obituaries;

FK_MUST_USE fk_err fk__obituaries_create(fk_worker *worker);
void fk__obituaries_destroy(fk_worker *worker);
/* For a child that is ENDING, under its parent's lock; takes its name, which the caller then removes
 * from it. Needs no memory. Returns the name that was forgotten for it, owned: fk__name_free(). */
fk_name *fk__obituary_add(fk_worker *worker, const fk_cell *parent, const fk_cell *child);
/* What is looked for among the obituaries, and what to do with it while it is locked. */
typedef struct fk_obituary_search {
    bool (*take)(void *arg, const fk_obituary *entry); /* true: that was it */
    void *arg;
    fk_time forgotten; /* the latest of all workers */
} fk_obituary_search;
/* Looks at what all workers remember, until it is found. */
bool fk__obituaries_search(fk_system *sys, fk_obituary_search *search);
/* Who had a uid, and when it died. False: not among those remembered; *died is then when the last
 * of those that were forgotten did, or 0. */
bool fk__obituary_of_uid(fk_system *sys, uint64_t uid, fk_ref *out, fk_time *died);

/* Builds the path without keeping it: the length in full, or 0; the text only if it fits. Of an
 * actor of this system, but not the root. */
size_t fk__path_read(fk_system *sys, fk_ref ref, char *buf, size_t size);
/* As fk_path_of(). */
size_t fk__path_of(fk_local *local, fk_ref ref, char *buf, size_t size);
/* As fk_dead_letter_path(). */
size_t fk__dead_letter_path(fk_local *local, const fk_dead_letter *letter, char *buf, size_t size);
/* The actor at a path of this system, whatever address it is written with. */
bool fk__registry_find(fk_system *sys, const fk_path *path, fk_ref *out, uint64_t *uid);
/* The path is one of this system's own. */
bool fk__registry_is_own(const fk_system *sys, const fk_path *path);
/* A text that is no path was met: an event. */
void fk__path_fault(fk_system *sys, fk_local *local, fk_str text, const fk_path_fault *fault);

#endif /* FK_CORE_REGISTRY_H */
