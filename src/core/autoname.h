/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_AUTONAME_H
#define FK_CORE_AUTONAME_H

/*
 * Names that the runtime makes, as Pekko spells them. The counter is the caller's: one for each
 * parent, or one for each system where it says so. All write at most `size` bytes, without NUL,
 * and return the length in full.
 */

#include "fraktor/path.h"

/* A function in the place of an actor: "$$b", "$$h-adapter". It counts with its parent's children. */
size_t fk__autoname_function(uint64_t n, fk_str label, char *buf, size_t size);
/* Under /temp, for the time of a question: "echo$a", after the actor that is asked. One counter for
 * each system. */
size_t fk__autoname_temp(uint64_t n, fk_str asked, char *buf, size_t size);
/* The same for a selection that is asked, by its text: "_user_c2$a". */
size_t fk__autoname_temp_selection(uint64_t n, fk_str asked, char *buf, size_t size);

#endif /* FK_CORE_AUTONAME_H */
