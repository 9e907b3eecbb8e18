/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_PROPERTY_H
#define FK_TESTS_SUPPORT_PROPERTY_H

/*
 * Property tests: a round draws its inputs from a seed of its own and checks what must hold for
 * all inputs. PROPERTY_RUNS is how many rounds each property gets, PROPERTY_SEED the first one's
 * seed. Whatever goes wrong, also a crash, names the round's seed and shows its inputs; with that
 * seed and PROPERTY_RUNS=1 it happens again.
 */

#include "support/test.h"

enum { PROPERTY_INPUTS_MAX = 8, PROPERTY_INPUT_SIZE = 4096 };

typedef struct property {
    test_random random;
    uint64_t seed; /* of this round */
    struct {
        const char *label;
        fk_str text;
        char copy[PROPERTY_INPUT_SIZE];
    } input[PROPERTY_INPUTS_MAX];
    size_t input_count;
} property;

typedef void (*property_round_fn)(property *p);

/* Runs all rounds of one property. */
void property_run(const char *name, property_round_fn round);

/* Keeps a copy of an input of this round, to be shown if it fails. */
void property_input(property *p, const char *label, fk_str text);

uint64_t property_runs(void);

__attribute__((noreturn)) void property_failed(const char *file, int line, const char *what);

#define PROPERTY_CHECK(condition)                                                                  \
    ((condition) ? (void)0 : property_failed(__FILE__, __LINE__, #condition))

/* ---- the edge of readable memory ------------------------------------------------------------- */

/* A copy of the text that ends, or in every other round begins, where no byte can be touched: at an
 * unmapped page, or as a heap block of just that size under a sanitizer. There are EDGE_COUNT
 * places; one holds its copy until it is used again. At most EDGE_SIZE bytes. */
enum { EDGE_COUNT = 4, EDGE_SIZE = 16384 };

fk_str edge_copy(size_t place, fk_str text);
/* The same as a buffer to write to. */
char *edge_buffer(size_t place, size_t size);

#endif /* FK_TESTS_SUPPORT_PROPERTY_H */
