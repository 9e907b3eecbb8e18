/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The shortest program: one actor that greets three times and stops. */

#include <fraktor/fraktor.h>
#include <stdio.h>

static fk_err greet(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    int *count = state;
    printf("hello, %.*s (%d)\n", (int)msg->len, (const char *)msg->data, ++*count);
    if (*count == 3) fk_stop_self(ctx);
    return FK_OK;
}

int main(void)
{
    fk_system *sys = NULL;
    fk_ref greeter;
    int count = 0;
    if (fk_system_start(&(fk_system_config){ .name = "hello" }, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("greeter"), &(fk_props){ .receive = greet, .state = &count },
                          &greeter);
    for (int i = 0; i < 3 && err == FK_OK; i++) err = fk_send(sys, greeter, FK_TEXT("world"));
    if (err == FK_OK) err = fk_await_stopped(sys, greeter, FK_SECONDS(10));
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}
