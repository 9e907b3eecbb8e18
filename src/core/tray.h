/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_TRAY_H
#define FK_CORE_TRAY_H

/*
 * What an actor has sent, kept back until it may go out. A part above the core (grains) puts one into
 * ctx->tray around a call of the user's receive; what that sends is then collected here instead of
 * being sent, in order. The answer to the message being handled is there by itself, too, because it
 * may have to be given again.
 */

#include "core/system.h"

typedef struct fk_outgoing {
    struct fk_outgoing *next;
    fk_ref to;
    fk_node *node; /* has its sender */
} fk_outgoing;

typedef struct fk_tray {
    bool is_direct;  /* nothing is kept back: only who calls is known */
    bool has_sent;   /* something else than the answer, since the turn began */
    fk_ref asker;    /* of the message being handled */
    fk_out inner;    /* that message, as it would be sent on; lent */
    fk_node *answer; /* in the list, too, or NULL; since the turn began */
    fk_err err;      /* something could not be kept back, since the turn began */
    fk_outgoing *first, **last;
} fk_tray;

static inline void fk__tray_init(fk_tray *tray)
{
    *tray = (fk_tray){ .first = NULL };
    tray->last = &tray->first;
}

/* As fk_tell(), fk_reply(), from the actor that has the tray. */
fk_err fk__tray_tell(fk_ctx *ctx, fk_ref to, fk_out msg);
/* The same in the name of somebody else. */
fk_err fk__tray_send(fk_ctx *ctx, fk_ref to, fk_ref sender, fk_out msg);
/* As fk_forward(): FK_E_UNSUPPORTED for a message that owns something, because the call may have to be
 * run again. */
fk_err fk__tray_forward(fk_ctx *ctx, fk_ref to);
/* Keeps a node back, which is taken. FK_E_NOMEM: it is a dead letter, and tray->err says so, whoever
 * sent it. */
fk_err fk__tray_put(fk_local *local, fk_tray *tray, fk_ref to, fk_node *node);
/* Sends everything. */
void fk__tray_release(fk_local *local, fk_tray *tray);
/* Nothing of it was ever said. */
void fk__tray_discard(fk_local *local, fk_tray *tray);

#endif /* FK_CORE_TRAY_H */
