/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Letting it crash: a teller that meets a coin it does not know fails, and the bank decides. A torn
 * note is no reason to forget what was counted: the teller goes on. A forged one is: it begins anew.
 * After two fresh starts the bank has had enough, and the teller is stopped. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>

enum { TORN = -1, FORGED = -2 };

typedef struct {
    int value;
} coin;
FK_MESSAGE(coin);

typedef struct {
    int total; /* made anew, zeroed, at every restart */
} teller;

static fk_err teller_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    teller *self = state;
    const coin *c = FK_AS(coin, msg);
    if (c == NULL) return fk_unhandled(ctx, msg);
    if (c->value == TORN) return fk_fail(ctx, FK_E_INVALID, "a torn note");
    if (c->value == FORGED) return fk_fail(ctx, FK_E_INVALID, "a forged note");
    self->total += c->value;
    printf("teller: %d, together %d\n", c->value, self->total);
    return FK_OK;
}

static fk_err teller_start(fk_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    puts("teller: good morning");
    return FK_OK;
}

static void teller_stop(fk_ctx *ctx, void *state)
{
    const teller *self = state;
    (void)ctx;
    printf("teller: leaves %d behind\n", self->total);
}

/* Runs in the bank, which has no state. */
static fk_directive bank_decide(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    bool is_harmless = strcmp(failure->detail, "a torn note") == 0;
    printf("bank: %s\n", failure->detail);
    return is_harmless ? FK_DIRECTIVE_RESUME : FK_DIRECTIVE_RESTART;
}

static fk_err bank_start(fk_ctx *ctx, void *state)
{
    static const fk_props TELLER = { .receive = teller_receive,
                                     .start = teller_start,
                                     .stop = teller_stop,
                                     .state_size = sizeof(teller) };
    fk_ref ref;
    (void)state;
    return fk_spawn_child(ctx, FK_STR("teller"), &TELLER, &ref);
}

/* Whatever comes to the bank goes to its teller, if it still has one. */
static fk_err bank_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref to;
    (void)state;
    if (fk_child(ctx, FK_STR("teller"), &to) == FK_OK) return fk_forward(ctx, to);
    puts("bank: closed");
    return fk_unhandled(ctx, msg);
}

int main(void)
{
    static const int COINS[] = { 5, 2, TORN, 1, FORGED, 10, FORGED, 20, FORGED, 3 };
    static const fk_props BANK = { .receive = bank_receive,
                                   .start = bank_start,
                                   .strategy = { .decide = bank_decide, .restarts = 2 } };
    fk_system *sys;
    fk_ref bank;
    /* On this thread, so that the lines come in the same order every time. */
    fk_system_config config = { .name = "bank", .workers = FK_WORKERS_NONE };
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("bank"), &BANK, &bank);
    for (size_t i = 0; err == FK_OK && i < sizeof COINS / sizeof COINS[0]; i++) {
        err = fk_send(sys, bank, FK_MSG(coin, COINS[i]));
        while (fk_host_run_once(sys, 0) != 0) {
        }
    }
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}
