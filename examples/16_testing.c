/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Testing an actor: a shopping cart that expires after a day without a visitor. The test lets days
 * pass in no time, loses a message, makes memory run out, and asks a probe what the cart said. */

#include <fraktor/fraktor.h>
#include <fraktor/testkit.h>
#include <stdio.h>

/* ---- the actor under test: it knows nothing of tests ------------------------------------- */

typedef struct {
    int sku;
} add_item;
FK_MESSAGE(add_item);

typedef struct {
    int items;
} item_added;
FK_MESSAGE(item_added);

typedef struct {
    int items;
} expired;
FK_MESSAGE(expired);

typedef struct {
    int items;
    fk_ref owner;
} cart;

static fk_err cart_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    cart *self = state;
    if (FK_AS(expired, msg) != NULL) {
        fk_tell(ctx, self->owner, FK_MSG(expired, self->items));
        fk_stop_self(ctx);
        return FK_OK;
    }
    if (FK_AS(add_item, msg) == NULL) return fk_unhandled(ctx, msg);
    self->owner = msg->sender;
    fk_err err = fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MINUTES(24 * 60), FK_MSG(expired, 0));
    if (err != FK_OK) return err; /* without the timer it would live for ever */
    self->items++;
    return fk_reply(ctx, FK_MSG(item_added, self->items));
}

static const fk_props CART = { .receive = cart_receive, .state_size = sizeof(cart) };

/* ---- the tests: they return whether they passed ------------------------------------------ */

static bool test_cart_expires(fk_sim *sim, fk_probe *user, fk_ref ref)
{
    fk_probe_send(user, ref, FK_MSG(add_item, 7));
    if (FK_EXPECT(user, item_added) == NULL) return false;
    fk_sim_advance(sim, FK_MINUTES(23 * 60));
    fk_probe_send(user, ref, FK_MSG(add_item, 8)); /* in time: the day begins anew */
    const item_added *added = FK_EXPECT(user, item_added);
    if (added == NULL || !FK_SIM_CHECK(sim, added->items == 2)) return false;
    if (!FK_EXPECT_NOTHING(user, FK_MINUTES(23 * 60))) return false;
    if (FK_EXPECT_WITHIN(user, expired, FK_MINUTES(61)) == NULL) return false;
    printf("the cart expired after %lld hours\n", (long long)(fk_sim_now(sim) / FK_MINUTES(60)));
    return fk_sim_expect_stopped(sim, ref, 0);
}

static bool test_a_message_is_lost(fk_sim *sim, fk_probe *user, fk_ref ref)
{
    if (fk_sim_drop_next(sim, ref, &fk_type_add_item, 1) != FK_OK) return false;
    fk_probe_send(user, ref, FK_MSG(add_item, 7));
    if (!FK_EXPECT_NOTHING(user, FK_SECONDS(10))) return false;
    fk_probe_send(user, ref, FK_MSG(add_item, 7)); /* as a user would */
    const item_added *added = FK_EXPECT(user, item_added);
    return added != NULL && FK_SIM_CHECK(sim, added->items == 1);
}

static bool test_no_memory_for_the_timer(fk_sim *sim, fk_probe *user, fk_ref ref)
{
    fk_sim_fail_site(sim, "timer");
    fk_probe_send(user, ref, FK_MSG(add_item, 7));
    if (!fk_sim_expect_failure(sim, FK_E_NOMEM, 0)) return false; /* and not: says it was added */
    return FK_EXPECT_NOTHING(user, FK_SECONDS(1));
}

/* One test in a simulation of its own; with the same seed it is the same again. */
static bool run(const char *name, bool (*test)(fk_sim *, fk_probe *, fk_ref))
{
    fk_sim *sim;
    fk_probe *user;
    fk_ref ref;
    if (fk_sim_create(&(fk_sim_config){ .name = name }, &sim) != FK_OK) return false;
    bool passed = fk_probe_create(sim, "visitor", &user) == FK_OK &&
                  fk_spawn(fk_sim_system(sim), FK_STR("cart"), &CART, &ref) == FK_OK &&
                  test(sim, user, ref);
    passed = fk_sim_destroy(sim) && passed;
    printf("%s: %s\n", name, passed ? "passed" : "failed");
    return passed;
}

int main(void)
{
    bool passed = run("cart_expires", test_cart_expires);
    passed = run("a_message_is_lost", test_a_message_is_lost) && passed;
    passed = run("no_memory_for_the_timer", test_no_memory_for_the_timer) && passed;
    return passed ? 0 : 1;
}
