/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/detector_model.h"

#include <math.h>
#include <string.h>

enum { SAMPLES_MOST = 20, SAMPLES_ALL = 4096 };

/* All intervals that were ever kept; the last so many count. In seconds. */
static struct {
    history h;
    fk_detector detector;
    fk_detector_config config;
    fk_time sample[SAMPLES_MOST];
    fk_time now, last_at, usual;
    double kept[SAMPLES_ALL];
    uint32_t count;
    bool is_begun;
} m;

detector_seen detector_model_seen;

static double model_phi(void)
{
    double sum = 0, squares = 0;
    uint32_t n = m.count < m.config.samples_max ? m.count : m.config.samples_max;
    if (!m.is_begun) return 0;
    for (uint32_t i = m.count - n; i < m.count; i++) sum += m.kept[i];
    for (uint32_t i = m.count - n; i < m.count; i++) {
        squares += (m.kept[i] - sum / n) * (m.kept[i] - sum / n);
    }
    double deviation = sqrt(squares / n), least = (double)m.config.deviation_min / 1e9;
    if (deviation < least) deviation = least;
    double silence = (double)(m.now - m.last_at) / 1e9;
    double y = (silence - sum / n - (double)m.config.pause / 1e9) / deviation;
    double e = exp(-y * (1.5976 + 0.070566 * y * y));
    return y > 0 ? -log10(e / (1 + e)) : -log10(1 - 1 / (1 + e));
}

/* Where the two come so close to the threshold that rounding decides, either may be right. */
static bool is_close(double phi)
{
    double threshold = (double)m.config.threshold / 4294967296.0;
    return fabs(phi - threshold) < 1e-4 * threshold;
}

static bool act_judge(void)
{
    double expected = model_phi();
    double got = (double)fk__detector_phi(&m.detector, m.now) / 4294967296.0;
    double threshold = (double)m.config.threshold / 4294967296.0;
    detector_model_seen.judgements++;
    /* Beyond what a double can tell from certainty they need not agree on how sure they are. */
    if (expected < 300) EXPECT(&m.h, fabs(got - expected) <= 1e-6 + 1e-4 * expected);
    if (expected >= 300) EXPECT(&m.h, got > 100);
    if (is_close(expected)) return true;
    EXPECT(&m.h, fk__detector_is_available(&m.detector, m.now) == (expected < threshold));
    if (expected >= threshold) detector_model_seen.absences++;
    return true;
}

static bool act_heartbeat(void)
{
    double phi = model_phi(), threshold = (double)m.config.threshold / 4294967296.0;
    if (is_close(phi) || m.count + 2 >= SAMPLES_ALL) return true;
    fk__detector_heartbeat(&m.detector, m.now);
    detector_model_seen.heartbeats++;
    if (!m.is_begun) {
        m.kept[m.count++] = 0.75 * (double)m.config.first_estimate / 1e9;
        m.kept[m.count++] = 1.25 * (double)m.config.first_estimate / 1e9;
    } else if (phi < threshold) {
        m.kept[m.count++] = (double)(m.now - m.last_at) / 1e9;
    } else {
        detector_model_seen.returns++;
    }
    m.is_begun = true;
    m.last_at = m.now;
    return true;
}

static bool act(void)
{
    fk_time step = m.usual;
    switch (history_below(&m.h, 8)) {
    case 0: step = (fk_time)history_below(&m.h, FK_SECONDS(20)); break;
    case 1: step = (fk_time)history_below(&m.h, (uint64_t)m.usual * 2 + 1); break;
    default: break;
    }
    m.now += step;
    if (!act_judge()) return false;
    return history_chance(&m.h, 10) || act_heartbeat();
}

const char *detector_model_run(uint64_t seed, uint32_t steps, bool is_blind)
{
    memset(&m, 0, sizeof(m));
    history_begin(&m.h, seed, is_blind);
    m.now = FK_SECONDS(1000);
    m.usual = FK_MILLIS(1 + history_below(&m.h, 2000));
    fk_detector_config config = {
        .threshold = FK_PHI(1 + history_below(&m.h, 14)),
        .samples_max = 2 + (uint32_t)history_below(&m.h, SAMPLES_MOST - 1),
        .deviation_min = FK_MILLIS(1 + history_below(&m.h, 300)),
        .pause = history_chance(&m.h, 3) ? -1 : FK_MILLIS(1 + history_below(&m.h, 10000)),
        .first_estimate = FK_MILLIS(100 + history_below(&m.h, 2000)),
    };
    bool ok = fk__detector_configure(&config, &m.config) == FK_OK;
    fk__detector_init(&m.detector, &m.config, m.sample);
    for (m.h.step = 0; m.h.step < steps && ok; m.h.step++) ok = act();
    return ok ? NULL : m.h.failure;
}
