/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_OBSERVER_H
#define FK_TESTS_SUPPORT_OBSERVER_H

/* A rig that writes down where each dead letter was meant to go, and each event about paths and other
 * systems. Lives and failures are the chronicle's. */

#include "support/rig.h"

enum { OBSERVER_MAX = 64, OBSERVER_TEXT = 2048 };

typedef struct observer_letter {
    fk_reason reason;
    fk_ref to, sender;
    const fk_type *type;
    char detail[128];         /* cut */
    size_t len;               /* of the path in full */
    char path[OBSERVER_TEXT]; /* by fk_dead_letter_path(), cut */
} observer_letter;

typedef struct observer_event {
    fk_event_kind kind;
    fk_path_fault fault;
    size_t len; /* of the text in full */
    char text[OBSERVER_TEXT];
} observer_event;

typedef struct observer {
    rig r;
    size_t letters, events; /* all; the last OBSERVER_MAX are kept */
    observer_letter letter[OBSERVER_MAX];
    observer_event event[OBSERVER_MAX];
} observer;

/* As rig_start_with(); ends by rig_stop(). */
void observer_start_with(observer *o, fk_system_config config);
/* As rig_try_start(), after observer_init(). */
void observer_init(observer *o);
fk_err observer_try_start(observer *o, fk_system_config config);
/* The last one, of which there must have been as many since the last call. */
const observer_letter *observer_letters(observer *o, size_t count);
const observer_event *observer_events(observer *o, size_t count);

/* A doer under /user; and its end. */
fk_ref observer_spawn(observer *o, const char *name);
void observer_bury(observer *o, fk_ref ref);

/* The path and the uid of an actor, as everybody sees it. */
uint64_t observer_uid(observer *o, fk_ref ref);
void observer_check_path(observer *o, fk_ref ref, const char *expected);
/* The same without the uid. */
void observer_check_place(observer *o, fk_ref ref, const char *expected);

#endif /* FK_TESTS_SUPPORT_OBSERVER_H */
