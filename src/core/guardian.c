/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/guardian.h"

#include "core/spawn.h"

/* They do nothing but have children. */
static fk_err guardian_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

/* What is sent to /deadLetters is one, in the name of its sender. */
static fk_err dead_letters_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    fk__dead_letter(&fk__ctx_worker(ctx)->local, FK_REASON_NO_RECEIVER, fk_self(ctx), msg);
    return FK_OK;
}

static const fk_props GUARDIAN = { .receive = guardian_receive };
static const fk_props DEAD_LETTERS = { .receive = dead_letters_receive };

static fk_err guardian_create(fk_local *local, fk_str name, const fk_props *props, fk_cell **out)
{
    fk_ref ref;
    const uint64_t none = 0;
    FK_TRY(fk__spawn(local, local->sys->top.root, name, &none, props, &ref));
    *out = fk__cell_resolve(local->sys, ref);
    return FK_OK;
}

fk_err fk__guardians_create(fk_system *sys)
{
    fk_local *local = fk__local_enter(sys);
    fk_err err = guardian_create(local, FK_STR(""), &GUARDIAN, &sys->top.root);
    if (err == FK_OK) err = guardian_create(local, FK_STR("user"), &GUARDIAN, &sys->top.user);
    if (err == FK_OK) err = guardian_create(local, FK_STR("system"), &GUARDIAN, &sys->top.system);
    if (err == FK_OK) err = guardian_create(local, FK_STR("temp"), &GUARDIAN, &sys->top.temp);
    if (err == FK_OK) {
        err = guardian_create(local, FK_STR("deadLetters"), &DEAD_LETTERS, &sys->top.dead_letters);
    }
    fk__local_leave(local);
    return err;
}
