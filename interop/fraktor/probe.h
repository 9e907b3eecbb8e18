/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INTEROP_PROBE_H
#define INTEROP_PROBE_H

/* /user/probe, in whose name the script sends and watches, and which reports all that comes back. */

#include <fraktor/fraktor.h>

/* A message as the script gives it. */
typedef struct payload {
    const fk_type *type;
    char *bytes; /* of text and bytes, owned: see payload_free() */
    size_t len;
    union {
        fk_int small;
        fk_long large;
        fk_boolean truth;
        fk_ref ref;
    } as;
} payload;

/* room: lent until the result has been sent. */
fk_out payload_out(const payload *from, fk_str *room);
void payload_free(payload *what);

typedef struct probe_watch {
    fk_ref actor;
    bool on;
} probe_watch;
FK_MESSAGE(probe_watch);

/* Also reports dead letters and quarantines from here on. */
FK_MUST_USE fk_err probe_spawn(fk_system *sys, fk_ref *out);
/* Reports the identity by that id, which is copied. */
fk_err probe_identify(fk_system *sys, fk_ref probe, const char *id, fk_str selection);
/* Takes the payload; reports the answer by that id, which is copied. */
FK_MUST_USE fk_err probe_ask(fk_system *sys, const char *id, fk_ref to, payload *question);

#endif /* INTEROP_PROBE_H */
