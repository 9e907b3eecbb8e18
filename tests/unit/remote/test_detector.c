/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The conformance data for failure detection, phi_accrual.tsv: all rows; and what is not in it. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/detector.h"
#include "support/test.h"
#include "support/tsv.h"

#define TABLE FK_SOURCE_DIR "/tests/vectors/phi_accrual.tsv"

enum { SAMPLES_MAX = 1000, OUTPUTS = 16 };

static const double UNIT = 4294967296.0;

static tsv t;

/* The number after "name=" in the row's input. */
static double input_number(const char *input, const char *name)
{
    char key[64];
    snprintf(key, sizeof(key), "%s=", name);
    const char *found = strstr(input, key);
    if (found == NULL) test_failed(TABLE, (int)t.line, "no %s", name);
    return strtod(found + strlen(key), NULL);
}

static fk_time input_time(const char *input, const char *name)
{
    return (fk_time)(input_number(input, name) * 1e6);
}

static void check_phi(fk_phi phi, fk_str expected)
{
    char text[40] = { 0 };
    CHECK(expected.len < sizeof(text));
    memcpy(text, expected.ptr, expected.len);
    double want = strtod(text, NULL), got = (double)phi / UNIT;
    if (fabs(got - want) <= 1e-6 * want) return;
    test_failed(TABLE, (int)t.line, "phi is %.12g, expected %s", got, text);
}

static void run_ops(fk_detector *d, const char *ops, const fk_str *outputs, size_t count)
{
    size_t used = 0;
    while (*ops != '\0') {
        fk_time at = (fk_time)(strtod(strchr(ops, '@') + 1, NULL) * 1e6);
        if (strncmp(ops, "hb@", 3) == 0) {
            fk__detector_heartbeat(d, at);
        } else {
            CHECK(used < count);
            fk_str expected = outputs[used++];
            if (strncmp(ops, "phi@", 4) == 0) {
                check_phi(fk__detector_phi(d, at), expected);
            } else if (tsv_equal(expected, FK_STR("up")) != fk__detector_is_available(d, at)) {
                test_failed(TABLE, (int)t.line, "wrong at %s", ops);
            }
        }
        ops += strcspn(ops, ",");
        ops += *ops == ',';
    }
    CHECK_U64(used, count);
}

static void check_detector(const char *input)
{
    static fk_time sample[SAMPLES_MAX];
    fk_str outputs[OUTPUTS];
    fk_detector d;
    fk_time pause = input_time(input, "acceptable-heartbeat-pause");
    fk_detector_config config = {
        .threshold = FK_PHI(input_number(input, "threshold")),
        .samples_max = (uint32_t)input_number(input, "max-sample-size"),
        .deviation_min = input_time(input, "min-std-deviation"),
        .pause = pause != 0 ? pause : -1,
        .first_estimate = input_time(input, "first-heartbeat-estimate"),
    };
    CHECK_OK(fk__detector_configure(&config, &config));
    fk__detector_init(&d, &config, sample);
    run_ops(&d, strstr(input, "ops=") + 4, outputs, tsv_list(&t, "result", outputs, OUTPUTS));
}

TEST(vectors_of_failure_detection_hold)
{
    size_t rows = 0;
    for (tsv_open(&t, TABLE); tsv_next(&t); rows++) {
        char input[400] = { 0 };
        fk_str text = tsv_text(&t, "input");
        CHECK(text.len < sizeof(input));
        memcpy(input, text.ptr, text.len);
        if (tsv_is(&t, "kind", "phi")) {
            check_phi(fk__phi(input_time(input, "timeDiff"), input_time(input, "mean"),
                              input_time(input, "std")),
                      tsv_text(&t, "result"));
        } else {
            check_detector(input);
        }
    }
    CHECK(rows >= 25);
}

TEST(detector_by_default_waits_about_eleven_seconds_and_a_half)
{
    fk_detector_config config;
    fk_time sample[200], now = FK_SECONDS(1);
    fk_detector d;
    CHECK_OK(fk__detector_configure(NULL, &config));
    CHECK_U64(config.samples_max, 200);
    fk__detector_init(&d, &config, sample);
    CHECK(fk__detector_is_available(&d, FK_NEVER)); /* nobody has been heard, nobody is missed */
    for (int i = 0; i < 1000; i++, now += FK_SECONDS(1)) fk__detector_heartbeat(&d, now);
    now -= FK_SECONDS(1);
    CHECK(d.mean == FK_SECONDS(1));
    CHECK(d.deviation == 0);
    CHECK(fk__detector_is_available(&d, now + FK_MILLIS(11500)));
    CHECK(!fk__detector_is_available(&d, now + FK_MILLIS(11600)));
}

TEST(detector_config_is_checked)
{
    static const fk_detector_config BAD[] = {
        { .threshold = -1 },     { .threshold = FK_PHI_MOST + 1 }, { .samples_max = 1 },
        { .samples_max = 4097 }, { .deviation_min = -1 },          { .pause = FK_NEVER },
        { .first_estimate = 3 }, { .first_estimate = FK_NEVER },
    };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        fk_detector_config out;
        CHECK_ERR(fk__detector_configure(&BAD[i], &out), FK_E_INVALID);
    }
}
