/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a letter, which says what message, and its bytes: 's' a system message, '/' a
 * selection, '!' a struct, 'T' an exception that could not be serialized, and else the manifest of
 * a miscellaneous one. */

#include "fuzz/fuzz.h"
#include "support/wire_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    fk_str bytes = { (const char *)data + 1, size - 1 };
    switch (data[0]) {
    case 's': (void)wire_read(WIRE_SYSMSG, FK_STR(""), bytes); break;
    case '/': (void)wire_read(WIRE_SELECTION, FK_STR(""), bytes); break;
    case '!': (void)wire_read(WIRE_STRUCT, FK_STR(""), bytes); break;
    case 'T': (void)wire_read(WIRE_MISC, FK_STR("TNSEX"), bytes); break;
    default: (void)wire_read(WIRE_MISC, (fk_str){ (const char *)data, 1 }, bytes); break;
    }
    return 0;
}
