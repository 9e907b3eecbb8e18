/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The smallest test of a user; compiled as C and as C++. */

#include <fraktor/testkit.h>

#include <stdio.h>

int main(void)
{
    fk_sim *sim = NULL;
    fk_probe *probe = NULL;
    if (fk_sim_create(NULL, &sim) != FK_OK) return 1;
    if (fk_probe_create(sim, "probe", &probe) != FK_OK) return 1;
    fk_probe_send(probe, fk_probe_ref(probe), FK_TEXT("hello"));
    bool passed = fk_probe_expect(probe, &fk_type_text, 0) != NULL;
    passed = fk_sim_destroy(sim) && passed;
    puts(fk_version());
    return passed ? 0 : 1;
}
