/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is what a frame holds. */

#include "fuzz/fuzz.h"
#include "support/wire_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)wire_read(WIRE_ENVELOPE, FK_STR(""), (fk_str){ (const char *)data, size });
    return 0;
}
