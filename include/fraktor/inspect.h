/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_INSPECT_H
#define FK_INSPECT_H

/*
 * Looking at a running system: the tree of its actors, or a list of them.
 *
 *     fk_dump_tree(sys, NULL, &writer);                            the whole tree, as text
 *     fk_dump_ps(sys, &(fk_dump_options){ .sort = FK_DUMP_BY_CHILDREN, .limit = 10 }, &writer);
 *
 * Both read the actors one by one, hold no lock while they write and need no memory, whatever the
 * number of actors; so a dump is no snapshot: what comes or goes meanwhile may be missing, and a
 * child of a parent with many may be shown twice. Any thread, inside receive too.
 */

#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where text goes, piece by piece. */
typedef struct fk_writer {
    void (*write)(void *user, const char *text, size_t len);
    void *user;
} fk_writer;

typedef enum fk_dump_format {
    FK_DUMP_TEXT = 0, /* for people: a line for each actor */
    FK_DUMP_JSON,     /* an object for each actor, one a line: path, ref, uid, depth, state,
                         children, mailbox (null: not known), memory */
} fk_dump_format;

typedef enum fk_dump_sort {
    FK_DUMP_UNSORTED = 0,
    FK_DUMP_BY_MAILBOX, /* largest first, and so the others */
    FK_DUMP_BY_CHILDREN,
    FK_DUMP_BY_MEMORY,
} fk_dump_sort;

#define FK_DUMP_SORTED_MAX 256u

/* All zero is the default. */
typedef struct fk_dump_options {
    fk_dump_format format;
    fk_dump_sort sort; /* of fk_dump_ps() */
    uint32_t limit;    /* actors shown; 0: all, or when sorted 50; when sorted, at most 256 */
    uint32_t depth;    /* of fk_dump_tree(): levels below the root; 0: all, up to 128 */
} fk_dump_options;

/* What is said of an actor:
 *   state     idle; active: it runs or will soon; stopping: it was asked to stop; held: it, or
 *             somebody above it, has failed and waits for a decision
 *   mailbox   messages waiting; known of a bounded mailbox only, because counting the others would
 *             slow down every send
 *   memory    bytes of the actor itself, its state and its table of children
 * options may be NULL. They return how many actors were shown. */
FK_API size_t fk_dump_tree(fk_system *sys, const fk_dump_options *options, const fk_writer *writer);
FK_API size_t fk_dump_ps(fk_system *sys, const fk_dump_options *options, const fk_writer *writer);
/* The events that the system keeps (the config's events_replay), oldest first, as lines of a log
 * (fraktor/log.h): logfmt, or JSON. Of the options only the format counts. Returns how many; 0 also
 * without memory. */
FK_API size_t fk_dump_events(fk_system *sys, const fk_dump_options *options,
                             const fk_writer *writer);

#ifdef __cplusplus
}
#endif
#endif /* FK_INSPECT_H */
