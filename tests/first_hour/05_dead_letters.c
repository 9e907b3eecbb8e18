/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 5 of the first hour: sends to an actor that stopped, to a made-up reference and to none. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>

static int reported[FK_REASON_COUNT];

static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    reported[letter->reason]++;
    printf("dead_letter to=%u#%u type=%s reason=%s\n", letter->to.slot, letter->to.generation,
           letter->type->name, fk_reason_name(letter->reason));
}

static fk_err ignore(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_OK;
}

int main(void)
{
    fk_system *sys = NULL;
    fk_system_config config = { .name = "hello", .on_dead_letter = on_dead_letter };
    fk_props props = { .receive = ignore };
    fk_ref greeter;
    fk_stats stats;
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    if (fk_spawn(sys, FK_STR("greeter"), &props, &greeter) != FK_OK) return 1;
    fk_stop(sys, greeter);
    if (fk_await_stopped(sys, greeter, FK_SECONDS(20)) != FK_OK) return 1;

    fk_ref made_up = { 123456, 77, greeter.system };
    bool ok = fk_send(sys, greeter, FK_TEXT("too late")) == FK_OK;
    ok = fk_send(sys, made_up, FK_TEXT("anybody?")) == FK_OK && ok;
    ok = fk_send(sys, FK_REF_NONE, FK_TEXT("nobody")) == FK_OK && ok;

    fk_stats_get(sys, &stats);
    uint64_t all = 0;
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        all += stats.dead_letters[i];
        ok = ok && stats.dead_letters[i] == (uint64_t)reported[i];
    }
    printf("dead letters: %llu\n", (unsigned long long)all);
    ok = ok && all == 3 && reported[FK_REASON_STOPPED] == 1 && reported[FK_REASON_NO_RECEIVER] == 2;
    return fk_system_stop(sys) == FK_OK && ok ? 0 : 1;
}
