/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_PROPERTY_PATH_PIECE_H
#define FK_TESTS_PROPERTY_PATH_PIECE_H

/* The pieces of which the model of paths is made: cutting text, and judging each piece by itself. */

#include "property/path_model.h"

/* The bytes from .. to - 1. */
fk_str text_cut(fk_str text, size_t from, size_t to);
bool text_is(fk_str a, const char *b);
bool text_same(fk_str a, fk_str b);
bool text_is_alnum(char c);
/* Where the first of these characters, or this text, is; the length when it is nowhere. */
size_t text_find_any(fk_str text, const char *set);
size_t text_find(fk_str text, const char *what);

/* A decimal from 1 to max without sign, leading zero or anything around it; 0 when it is none. */
uint64_t model_number(fk_str text, uint64_t max);
bool model_is_system(fk_str text);
/* "host:port" into out's host and port. */
bool model_take_authority(fk_str text, model_path *out);
/* FK_OK, or what is wrong with a non-empty segment and at which of its bytes. */
fk_err model_check_segment(fk_str segment, size_t *at);
/* '%' and two hexadecimal digits, and more. */
bool model_is_escape(fk_str text);
/* A segment without fault; gives the length. */
size_t model_decode(fk_str segment, char *out);

#endif /* FK_TESTS_PROPERTY_PATH_PIECE_H */
