/* SPDX-License-Identifier: MIT OR Apache-2.0 */
// The same in C++17, which has no designated initialisers.

#include <fraktor/fraktor.h>

#include <cstdio>

static fk_err greet(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    int *count = static_cast<int *>(state);
    std::printf("hello, %.*s (%d)\n", static_cast<int>(msg->len),
                static_cast<const char *>(msg->data), ++*count);
    if (*count == 3) fk_stop_self(ctx);
    return FK_OK;
}

int main()
{
    fk_system *sys = nullptr;
    fk_ref greeter{};
    int count = 0;
    fk_system_config config{};
    config.name = "hello";
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_props props{};
    props.receive = greet;
    props.state = &count;
    if (fk_spawn(sys, FK_STR("greeter"), &props, &greeter) != FK_OK) return 1;
    for (int i = 0; i < 3; i++) fk_send(sys, greeter, FK_TEXT("world"));
    if (fk_await_stopped(sys, greeter, FK_SECONDS(20)) != FK_OK) return 1;
    return fk_system_stop(sys) == FK_OK ? 0 : 1;
}
