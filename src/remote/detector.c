/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mean and deviation are computed from all samples with each new one: that is exact, where sums that
 * are carried along would need more than 64 bits or drift, and a few hundred additions a second are
 * nothing.
 */

#include "remote/detector.h"

#include "base/safeguard.h"

enum {
    DETECTOR_SAMPLES_DEFAULT = 200,
    DETECTOR_SAMPLES_MOST = 4096,
    DETECTOR_SQUARE_BITS = 25 /* so that 4,096 squares fit into 62 bits */
};

/* Sums of so many stay below 2^62; longer intervals count as this. */
#define DETECTOR_INTERVAL_MOST FK_MINUTES(24 * 60)

fk_err fk__detector_configure(const fk_detector_config *config, fk_detector_config *out)
{
    fk_detector_config c = config != NULL ? *config : (fk_detector_config){ 0 };
    if (c.threshold == 0) c.threshold = FK_PHI(10);
    if (c.samples_max == 0) c.samples_max = DETECTOR_SAMPLES_DEFAULT;
    if (c.deviation_min == 0) c.deviation_min = FK_MILLIS(100);
    if (c.pause == 0) c.pause = FK_SECONDS(10);
    if (c.pause < 0) c.pause = 0;
    if (c.first_estimate == 0) c.first_estimate = FK_SECONDS(1);
    if (c.threshold < 0 || c.threshold > FK_PHI_MOST) return FK_E_INVALID;
    if (c.samples_max < 2 || c.samples_max > DETECTOR_SAMPLES_MOST) return FK_E_INVALID;
    if (c.deviation_min < 0 || c.pause > DETECTOR_INTERVAL_MOST) return FK_E_INVALID;
    if (c.first_estimate < 4 || c.first_estimate > FK_MINUTES(60)) return FK_E_INVALID;
    *out = c;
    return FK_OK;
}

void fk__detector_init(fk_detector *detector, const fk_detector_config *config, fk_time *sample)
{
    *detector = (fk_detector){ .config = config, .sample = sample };
}

void fk__detector_reset(fk_detector *detector)
{
    fk__detector_init(detector, detector->config, detector->sample);
}

static void detector_keep(fk_detector *d, fk_time interval)
{
    if (d->count < d->config->samples_max) {
        d->sample[d->count++] = interval;
        return;
    }
    d->sample[d->oldest] = interval;
    if (++d->oldest == d->config->samples_max) d->oldest = 0;
}

static uint64_t detector_distance(fk_time a, fk_time b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static fk_time detector_mean(const fk_detector *d)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < d->count; i++) sum += (uint64_t)d->sample[i];
    return (fk_time)fk__phi_divide(sum, d->count, 0);
}

/* Distances are cut to 25 significant bits of the largest, which costs 2^-24 of the result. */
static fk_time detector_deviation(const fk_detector *d, fk_time mean)
{
    uint64_t most = 0, sum = 0;
    uint32_t cut = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        uint64_t distance = detector_distance(d->sample[i], mean);
        if (distance > most) most = distance;
    }
    while (most >> cut >> DETECTOR_SQUARE_BITS != 0) cut++;
    for (uint32_t i = 0; i < d->count; i++) {
        uint64_t distance = detector_distance(d->sample[i], mean) >> cut;
        sum += distance * distance;
    }
    return (fk_time)(fk__phi_root(fk__phi_divide(sum, d->count, 0)) << cut);
}

static void detector_learn(fk_detector *d, fk_time interval)
{
    detector_keep(d, interval < DETECTOR_INTERVAL_MOST ? interval : DETECTOR_INTERVAL_MOST);
    d->mean = detector_mean(d);
    d->deviation = detector_deviation(d, d->mean);
}

void fk__detector_heartbeat(fk_detector *detector, fk_time now)
{
    fk_detector *d = detector;
    if (!d->is_begun) {
        fk_time quarter = d->config->first_estimate >> 2;
        detector_learn(d, d->config->first_estimate - quarter);
        detector_learn(d, d->config->first_estimate + quarter);
        d->is_begun = true;
    } else if (fk__detector_is_available(d, now) || !FK_SAFEGUARD(PAUSE_LEARNT)) {
        detector_learn(d, now > d->last_at ? now - d->last_at : 0);
    }
    d->last_at = now;
}

fk_phi fk__detector_phi(const fk_detector *detector, fk_time now)
{
    const fk_detector *d = detector;
    if (!d->is_begun) return 0;
    fk_time least = FK_SAFEGUARD(DEVIATION_LEAST) ? d->config->deviation_min : 1;
    fk_time deviation = d->deviation > least ? d->deviation : least;
    return fk__phi(now - d->last_at, d->mean + d->config->pause, deviation);
}

bool fk__detector_is_available(const fk_detector *detector, fk_time now)
{
    return fk__detector_phi(detector, now) < detector->config->threshold;
}
