/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/handshake_model.h"

TEST(handshake_model_agrees_over_many_events)
{
    history_run_all(handshake_model_run, test_is_sanitized() ? 100 : 500, 1000);
    const handshake_seen *seen = &handshake_model_seen;
    for (int i = 0; i < FK_DOOR_RESULT_COUNT; i++) {
        if (i == FK_DOOR_RESULT_REFUSED || i == FK_DOOR_RESULT_NOMEM)
            continue; /* test_handshake.c */
        CHECK(seen->results[i] > 0);
    }
    CHECK(seen->requests > 0 && seen->repeats > 0 && seen->injections > 0 && seen->failures > 0);
    CHECK(seen->drops > 0 && seen->held > 0 && seen->sent > 0);
}
