/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The program everything starts from. 03_hello.py compiles and runs it as a newcomer would. */

#include <fraktor/fraktor.h>
#include <stdio.h>

static fk_err greet(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    int *count = (int *)state;
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
    fk_props props = { .receive = greet, .state = &count };
    if (fk_spawn(sys, FK_STR("greeter"), &props, &greeter) != FK_OK) return 1;
    for (int i = 0; i < 3; i++) fk_send(sys, greeter, FK_TEXT("world"));
    if (fk_await_stopped(sys, greeter, FK_SECONDS(20)) != FK_OK) return 1;
    return fk_system_stop(sys) == FK_OK ? 0 : 1;
}
