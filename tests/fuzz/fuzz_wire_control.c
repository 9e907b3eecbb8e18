/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a control message's letter and its bytes. */

#include "fuzz/fuzz.h"
#include "support/wire_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    fk_str manifest = { (const char *)data, 1 };
    (void)wire_read(WIRE_CONTROL, manifest, (fk_str){ (const char *)data + 1, size - 1 });
    return 0;
}
