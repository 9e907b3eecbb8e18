/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/sometimes.h"

uint64_t fk__sometimes[FK_SOMETIMES_COUNT];

const char *fk__sometimes_name(fk_sometimes which)
{
    static const char *const NAMES[FK_SOMETIMES_COUNT] = {
#define SOMETIMES_NAME(NAME, name, where) name,
        FK_SOMETIMES(SOMETIMES_NAME)
#undef SOMETIMES_NAME
    };
    return NAMES[which];
}

uint32_t fk__sometimes_where(fk_sometimes which)
{
    static const uint32_t WHERE[FK_SOMETIMES_COUNT] = {
#define SOMETIMES_WHERE(NAME, name, where) FK_IN_##where,
        FK_SOMETIMES(SOMETIMES_WHERE)
#undef SOMETIMES_WHERE
    };
    return WHERE[which];
}
