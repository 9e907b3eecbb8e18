/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_LETTER_H
#define FK_REMOTE_LETTER_H

/* A message on its way to another system. */

#include "core/system.h"
#include "fraktor/codec.h"
#include "remote/authority.h"
#include "remote/envelopes.h"

typedef struct fk_remote fk_remote;

typedef struct fk_letter {
    fk_envelope link;
    fk_node *node; /* type, sender and contents */
    fk_ref to;     /* a proxy of this system; or none, and the letter is a selection */
    struct fk_letter_path *path; /* of a selection: what is selected at the peer; NULL else */
} fk_letter;

/* Freed with its letter. */
typedef struct fk_letter_path {
    uint32_t size; /* of all of it */
    uint32_t len;  /* of what dead letters show of the text */
    fk_authority *authority;
    fk_expression expression; /* from the peer's root: elements (in text), their count, and uid */
    char text[];              /* all of it, in canonical form: "fraktor.tcp://b@h:1/user/?#7" */
} fk_letter_path;

/* fk_remote_ops.send and .select. */
fk_err fk__letter_send(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref to, fk_node *node);
fk_err fk__letter_select(void *ctx, fk_local *local, const fk_expression *expression,
                         fk_node *node);
/* One that does not go for that error, which is returned: a dead letter, and if it is
 * FK_E_QUARANTINED an InvalidAssociation with that address. */
fk_err fk__letter_refuse(fk_local *local, fk_str address, fk_letter *letter, fk_err err);
/* A letter that does not go: one dead letter. */
void fk__letter_discard(fk_local *local, fk_reason reason, fk_letter *letter);
/* One that cannot be written. */
void fk__letter_fail(fk_local *local, fk_letter *letter, const fk_codec_fault *fault);
/* One that was written. */
void fk__letter_done(fk_local *local, fk_letter *letter);
/* Without its node, which has gone, or is the caller's. */
void fk__letter_free(fk_local *local, fk_letter *letter);

#endif /* FK_REMOTE_LETTER_H */
