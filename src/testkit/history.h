/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTKIT_HISTORY_H
#define FK_TESTKIT_HISTORY_H

/* What has happened: the last few events, and a hash of all of them. An event is kept as it was told
 * and becomes text only when somebody wants to read it. */

#include "fraktor/event.h"

enum { FK_HISTORY_MAX = 256, FK_HISTORY_SHOWN = 20, FK_HISTORY_TEXT = 96 };

typedef enum fk_moment_kind {
    FK_MOMENT_MESSAGE, /* actor got one of that type from other */
    FK_MOMENT_LETTER,  /* a dead one, from other to actor; text: reason, or reason and path */
    FK_MOMENT_FAILURE, /* actor failed; text: error and detail */
    FK_MOMENT_EVENT,   /* of the system, about actor; text */
    FK_MOMENT_FAULT,   /* made by the testkit, to actor; text */
    FK_MOMENT_NOTE     /* text */
} fk_moment_kind;

typedef struct fk_moment {
    fk_moment_kind kind;
    fk_time at;
    fk_ref actor, other;
    const fk_type *type; /* or NULL */
    char text[FK_HISTORY_TEXT];
} fk_moment;

typedef struct fk_history {
    uint64_t count;
    uint64_t hash;
    uint32_t shown;
    fk_moment last[FK_HISTORY_MAX];
} fk_history;

void fk__history_init(fk_history *history, uint32_t shown);
/* at: since the beginning. */
void fk__history_add(fk_history *history, const fk_moment *moment);
/* The events to be shown, oldest first: *index is 0 at first; NULL at the end. */
const fk_moment *fk__history_next(const fk_history *history, uint32_t *index);

struct fk_sim;
/* Adds an event; at is filled in. */
void fk__sim_record(struct fk_sim *sim, fk_moment *moment);

/* An event in words; an actor by its path; a time as seconds. All return buf. */
enum { FK_SHOWN_TIME = 32, FK_SHOWN_ACTOR = 160, FK_SHOWN_MOMENT = 512 };
const char *fk__sim_show_moment(struct fk_sim *sim, const fk_moment *moment,
                                char buf[FK_SHOWN_MOMENT]);
const char *fk__sim_show_actor(struct fk_sim *sim, fk_ref actor, char buf[FK_SHOWN_ACTOR]);
const char *fk__sim_show_time(fk_time at, char buf[FK_SHOWN_TIME]);

#endif /* FK_TESTKIT_HISTORY_H */
