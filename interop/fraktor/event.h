/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INTEROP_EVENT_H
#define INTEROP_EVENT_H

/*
 * What happened, as one line of JSON on standard output. From event_begin() to event_end() the
 * output is this thread's, so lines stay whole.
 */

#include <fraktor/fraktor.h>

void event_begin(const char *name);
void event_text(const char *key, fk_str text);
void event_number(const char *key, int64_t number);
void event_truth(const char *key, bool truth);
/* The path of an actor; null for nobody. */
void event_ref(const char *key, fk_system *sys, fk_ref ref);
/* "type" and "value" of a message. */
void event_message(fk_system *sys, const fk_type *type, const void *data, size_t len);
void event_end(void);

/* A command that could not be done. */
void event_error(const char *command, const char *text);

#endif /* INTEROP_EVENT_H */
