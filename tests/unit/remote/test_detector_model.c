/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/detector_model.h"

TEST(detector_model_agrees_over_many_heartbeats)
{
    history_run_all(detector_model_run, test_is_sanitized() ? 100 : 500, 500);
    const detector_seen *seen = &detector_model_seen;
    CHECK(seen->heartbeats > 0 && seen->judgements > 0);
    CHECK(seen->absences > 0 && seen->returns > 0);
}
