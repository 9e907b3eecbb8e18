/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_CLAIM_H
#define FK_CORE_CLAIM_H

/*
 * Who may use which uid. Uids that this system gives out never come again, so nothing has to be
 * remembered of them but when the last few hundred owners died (registry.c). A table is needed only
 * for uids from elsewhere that somebody claimed: it holds them while they are in use and for the
 * quarantine duration after that. An actor under /system, made with the first claim, sweeps it.
 */

#include "core/system.h"

FK_MUST_USE fk_err fk__claims_create(fk_system *sys, uint32_t max);
void fk__claims_destroy(fk_system *sys);

/* The actor has died: what it claimed is reserved from now on. */
void fk__claim_died(fk_system *sys, fk_ref actor, uint64_t uid);
/* Nothing is claimed: the usual case, without a lock. */
bool fk__claims_are_empty(const fk_system *sys);
/* Somebody brought that uid along from elsewhere. */
bool fk__claims_has(fk_system *sys, uint64_t uid);

#endif /* FK_CORE_CLAIM_H */
