/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A test without any framework: public headers, results as values, an exit code. */

#include <fraktor/testkit.h>
#include <stdio.h>

typedef struct {
    int n;
} question;
FK_MESSAGE(question);

static fk_err parrot(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const question *q = FK_AS(question, msg);
    (void)state;
    return q != NULL ? fk_reply(ctx, FK_MSG(question, q->n)) : fk_unhandled(ctx, msg);
}

static bool test_parrot(fk_sim *sim)
{
    fk_probe *probe;
    fk_ref ref;
    const fk_props props = { .receive = parrot };
    if (fk_probe_create(sim, "probe", &probe) != FK_OK) return false;
    if (fk_spawn(fk_sim_system(sim), FK_STR("parrot"), &props, &ref) != FK_OK) return false;
    fk_probe_send(probe, ref, FK_MSG(question, 42));
    const question *answer = FK_EXPECT(probe, question);
    return answer != NULL && FK_SIM_CHECK(sim, answer->n == 42) &&
           FK_EXPECT_NOTHING(probe, FK_SECONDS(60));
}

int main(void)
{
    fk_sim *sim;
    if (fk_sim_create(&(fk_sim_config){ .name = "unit_testkit_plain_program" }, &sim) != FK_OK) {
        return 1;
    }
    bool passed = test_parrot(sim);
    passed = fk_sim_destroy(sim) && passed;
    puts(passed ? "passed" : "failed");
    return passed ? 0 : 1;
}
