/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_SHELL_H
#define FK_CLUSTER_SHELL_H

/* The state of a grain's actor; grain.c runs it, shell.c makes it and what it stores. */

#include "cluster/cluster.h"

struct fk_shell {
    fk_seat *seat;
    const fk_breed *breed;
    fk_activation activation;
    fk_tray tray;
    const fk_hot *hot; /* the call of this turn, or NULL */
    fk_node **batch;   /* calls that were run and are not stored; NULL: not durable */
    uint32_t batch_count;
    uint32_t aside;      /* messages that were set aside */
    uint32_t batch_left; /* of those, still to come before the next store */
    bool is_begun;       /* the user's start has run */
    bool wants_end;      /* when nothing is under way */
    bool wants_removal;  /* of its row, instead of a store */
};

static inline void *fk__shell_state(fk_shell *shell)
{
    return (char *)shell + (sizeof(fk_shell) + 15) / 16 * 16;
}

/* The state as bytes: its own, or *memory of *size from fk__mem_alloc(). */
FK_MUST_USE fk_err fk__shell_snapshot(fk_shell *shell, fk_str *out, unsigned char **memory,
                                      size_t *size);
/* Begins a store, or the removal of the row. */
FK_MUST_USE fk_err fk__shell_store(fk_ctx *ctx, fk_shell *shell);
/* Tells of a grain, as the steward does. */
void fk__grain_event(const fk_seat *seat, fk_local *local, fk_placement_event_kind kind);

fk_err fk__shell_receive(fk_ctx *ctx, void *state, const fk_msg *msg);
void fk__shell_stop(fk_ctx *ctx, void *state);

#endif /* FK_CLUSTER_SHELL_H */
