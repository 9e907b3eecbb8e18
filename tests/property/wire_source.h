/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_PROPERTY_WIRE_SOURCE_H
#define FK_TESTS_PROPERTY_WIRE_SOURCE_H

/* Messages and envelopes of the protocol, drawn at random. What is drawn lives until the next. */

#include "support/property.h"
#include "support/wire_reader.h"
#include "wire/control.h"
#include "wire/envelope.h"
#include "wire/sysmsg.h"

enum { WIRE_ITEMS_MAX = 6, WIRE_TEXT_MAX = 48, WIRE_POOL = 4096 };

typedef struct wire_source {
    test_random *random;
    char pool[WIRE_POOL]; /* the texts */
    size_t used;
    fk_str keys[WIRE_ITEMS_MAX];
    uint32_t values[WIRE_ITEMS_MAX];
    fk_wire_pattern patterns[WIRE_ITEMS_MAX];
} wire_source;

void wire_source_init(wire_source *s, test_random *random);
fk_wire_envelope wire_source_envelope(wire_source *s);
fk_wire_control wire_source_control(wire_source *s);
fk_wire_sysmsg wire_source_sysmsg(wire_source *s);
fk_wire_selection wire_source_selection(wire_source *s);
fk_wire_misc wire_source_misc(wire_source *s);

#endif /* FK_TESTS_PROPERTY_WIRE_SOURCE_H */
