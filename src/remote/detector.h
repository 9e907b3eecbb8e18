/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_DETECTOR_H
#define FK_REMOTE_DETECTOR_H

/*
 * A failure detector for one peer: from the times at which signs of life came it tells, at any
 * moment, how suspicious the silence since the last one is (remote/phi.h), and whether that is too
 * much. It knows neither why it is asked nor what follows.
 *
 * The intervals between signs are kept, the last so many of them; before there are any, two are
 * made up around an estimate. An interval that ended a silence in which the peer counted as gone is
 * not kept: one long pause would make the detector blind for the next.
 */

#include "remote/phi.h"

/* All zero is the default. */
typedef struct fk_detector_config {
    fk_phi threshold;       /* from which on a silence is too much; 0: 10 */
    uint32_t samples_max;   /* 0: 200; at least 2, at most 4,096 */
    fk_time deviation_min;  /* 0: 100 ms */
    fk_time pause;          /* that is acceptable on top of the mean; 0: 10 s, below 0: none */
    fk_time first_estimate; /* of an interval; 0: 1 s; at most an hour */
} fk_detector_config;

/* For all but the functions below: to read. */
typedef struct fk_detector {
    const fk_detector_config *config; /* complete (fk__detector_configure) */
    fk_time *sample;                  /* the caller's: config->samples_max of them, as a ring */
    uint32_t count;
    uint32_t oldest;
    bool is_begun;   /* there was a sign of life */
    fk_time last_at; /* of the last one */
    fk_time mean;    /* of the samples, without the pause */
    fk_time deviation;
} fk_detector;

/* Checks *config, which may be NULL, and writes it out with its defaults filled in: FK_E_INVALID.
 */
FK_MUST_USE fk_err fk__detector_configure(const fk_detector_config *config,
                                          fk_detector_config *out);

/* config and sample must stay where they are for as long as the detector is used. */
void fk__detector_init(fk_detector *detector, const fk_detector_config *config, fk_time *sample);
/* Nothing was ever heard. */
void fk__detector_reset(fk_detector *detector);
/* A sign of life. */
void fk__detector_heartbeat(fk_detector *detector, fk_time now);
/* 0 before the first sign. */
fk_phi fk__detector_phi(const fk_detector *detector, fk_time now);
bool fk__detector_is_available(const fk_detector *detector, fk_time now);

#endif /* FK_REMOTE_DETECTOR_H */
