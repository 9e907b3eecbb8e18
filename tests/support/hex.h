/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_HEX_H
#define FK_TESTS_SUPPORT_HEX_H

/* Bytes as text and back. */

#include "fraktor/base.h"

/* Hexadecimal digits, spaces between them ignored, into a heap block of just that size; the caller
 * frees it. Anything else ends the program. */
fk_str hex_bytes(fk_str text);
/* Of bytes; NUL at the end; the caller frees it. */
char *hex_text(fk_str bytes);

#endif /* FK_TESTS_SUPPORT_HEX_H */
