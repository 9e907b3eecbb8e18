/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A test with virtual time: a timer of 24 hours, a message that gets lost, a probe. With the argument
 * "broken" the actor under test has a fault, and 21_testing.py looks at what the test then says. */

#include <fraktor/testkit.h>
#include <stdio.h>
#include <string.h>

enum { SENSORS = 4 };

typedef struct {
    int sensor;
} reading;
FK_MESSAGE(reading);

typedef struct {
    int readings;
} daily;
FK_MESSAGE(daily);

typedef struct {
    fk_ref reader; /* of the daily report */
    int readings;
    bool is_broken;
} station;

static fk_err station_start(fk_ctx *ctx, void *state)
{
    const station *self = state;
    fk_time day = FK_MINUTES(24 * 60);
    return fk_timer_start(ctx, 1, FK_TIMER_FIXED_RATE, self->is_broken ? day + FK_MINUTES(60) : day,
                          FK_MSG(daily, 0));
}

static fk_err station_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    station *self = state;
    if (FK_AS(daily, msg) != NULL) {
        fk_err err = fk_tell(ctx, self->reader, FK_MSG(daily, self->readings));
        self->readings = 0;
        return err;
    }
    if (FK_AS(reading, msg) == NULL) return fk_unhandled(ctx, msg);
    self->readings++;
    return FK_OK;
}

typedef struct {
    int number;
    fk_ref station;
} sensor;

static fk_err sensor_start(fk_ctx *ctx, void *state)
{
    const sensor *self = state;
    return fk_timer_start(ctx, 1, FK_TIMER_FIXED_RATE, FK_MINUTES(60),
                          FK_MSG(reading, self->number));
}

static fk_err sensor_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const sensor *self = state;
    if (FK_AS(reading, msg) == NULL) return fk_unhandled(ctx, msg);
    return fk_tell(ctx, self->station, FK_MSG(reading, self->number));
}

static bool test_daily_report(fk_sim *sim, bool is_broken)
{
    fk_probe *reader;
    fk_ref ref, sensor_ref;
    fk_system *sys = fk_sim_system(sim);
    if (fk_probe_create(sim, "reader", &reader) != FK_OK) return false;
    const station init = { .reader = fk_probe_ref(reader), .is_broken = is_broken };
    const fk_props props = { .receive = station_receive,
                             .start = station_start,
                             .state_size = sizeof(init),
                             .init = &init };
    if (fk_spawn(sys, FK_STR("station"), &props, &ref) != FK_OK) return false;
    for (int i = 0; i < SENSORS; i++) {
        const sensor one = { i, ref };
        const fk_props sensor_props = { .receive = sensor_receive,
                                        .start = sensor_start,
                                        .state_size = sizeof(one),
                                        .init = &one };
        if (fk_spawn(sys, FK_STR(""), &sensor_props, &sensor_ref) != FK_OK) return false;
    }
    if (fk_sim_drop_next(sim, ref, &fk_type_reading, 1) != FK_OK) return false;
    if (!FK_EXPECT_NOTHING(reader, FK_MINUTES(23 * 60 + 30))) return false;
    const daily *report = FK_EXPECT_WITHIN(reader, daily, FK_MINUTES(40));
    /* 23 hours of readings without the one that got lost; those of the 24th race with the report. */
    return report != NULL && FK_SIM_CHECK(sim, report->readings >= 23 * SENSORS - 1) &&
           FK_SIM_CHECK(sim, report->readings < 24 * SENSORS);
}

int main(int argc, char **argv)
{
    fk_sim *sim;
    bool is_broken = argc > 1 && strcmp(argv[1], "broken") == 0;
    if (fk_sim_create(&(fk_sim_config){ .name = "first_hour_21" }, &sim) != FK_OK) return 1;
    bool passed = test_daily_report(sim, is_broken);
    passed = fk_sim_destroy(sim) && passed;
    puts(passed ? "passed" : "failed");
    return passed ? 0 : 1;
}
