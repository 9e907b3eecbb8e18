/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 12 of the first hour: names and paths that are refused, each with its own error. */

#include <fraktor/fraktor.h>
#include <fraktor/path.h>
#include <stdio.h>
#include <string.h>

static fk_err ignore(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_OK;
}

static bool refused(fk_system *sys, fk_str name, fk_err expected)
{
    static const fk_props PROPS = { .receive = ignore };
    fk_ref ref;
    fk_err err = fk_spawn(sys, name, &PROPS, &ref);
    printf("%-10.10s -> %s\n", name.ptr, fk_err_name(err));
    return err == expected;
}

/* "../../.." from an actor right below /user, which would be a step above the root. */
static bool climbs(void)
{
    char buf[256];
    fk_path base, out;
    fk_path_fault fault = { .err = FK_OK };
    if (fk_path_parse(NULL, FK_STR("fraktor://s/user/a"), &base, NULL) != FK_OK) return false;
    fk_err err = fk_path_resolve(NULL, &base, FK_STR("../../.."), FK_BUF(buf), &out, &fault);
    printf("../../..   -> %s: %s\n", fk_err_name(err), fault.message);
    return err == FK_E_ESCAPE && fault.at == 3 && strstr(fault.message, "climbs above") != NULL;
}

int main(void)
{
    fk_system *sys = NULL;
    char name[1025];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    if (fk_system_start(&(fk_system_config){ .name = "hello" }, &sys) != FK_OK) return 1;
    bool ok = refused(sys, FK_STR("$x"), FK_E_RESERVED);
    ok = refused(sys, FK_STR("a/b"), FK_E_NAME) && ok;
    ok = refused(sys, fk_str_of(name), FK_E_LIMIT) && ok;
    ok = climbs() && ok;
    return fk_system_stop(sys) == FK_OK && ok ? 0 : 1;
}
