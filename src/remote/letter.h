/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_LETTER_H
#define FK_REMOTE_LETTER_H

/* A message on its way to another system. */

#include "core/system.h"
#include "remote/authority.h"
#include "remote/envelopes.h"

typedef struct fk_remote fk_remote;

typedef struct fk_letter {
    fk_envelope link;
    fk_node *node; /* type, sender and contents; NULL: not a message but an errand for the driver */
    fk_ref to;     /* a proxy of this system; or none, and the letter is a selection */
    struct fk_letter_path *path; /* of a selection: what is selected at the peer; NULL else */
    uint8_t errand;              /* fk_errand, without node */
} fk_letter;

/* What other threads ask of the driver. */
typedef enum fk_errand {
    FK_ERRAND_NONE = 0,
    FK_ERRAND_WATCH,   /* somebody here watches `to` now */
    FK_ERRAND_UNWATCH, /* nobody does any more */
    FK_ERRAND_STOPPED, /* `to`, an actor here that was watched by others, has ended */
    FK_ERRAND_COUNT
} fk_errand;

#endif /* FK_REMOTE_LETTER_H */
