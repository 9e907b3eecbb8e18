/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_TESTKIT_SCENE_H
#define FK_TESTS_TESTKIT_SCENE_H

/* A simulation whose reports are caught, so that tests can look at failures. */

#include <string.h>

#include "fraktor/testkit.h"
#include "support/rig.h"

typedef struct scene {
    fk_sim *sim;
    fk_probe *probe;
    size_t failures; /* on_failure was called */
    char last[512];  /* its text */
    size_t len;
    char report[1 << 16];
} scene;

static inline void scene_write(void *user, const char *text, size_t len)
{
    scene *s = user;
    size_t room = sizeof(s->report) - 1 - s->len;
    if (len > room) len = room;
    memcpy(s->report + s->len, text, len);
    s->len += len;
    s->report[s->len] = '\0';
}

static inline void scene_failed(void *user, const fk_sim_failure *failure)
{
    scene *s = user;
    s->failures++;
    strncpy(s->last, failure->text, sizeof(s->last) - 1);
}

static inline void scene_begin(scene *s, fk_sim_config config)
{
    memset(s, 0, sizeof(*s));
    if (config.seed == 0) config.seed = 7;
    config.writer = (fk_writer){ scene_write, s };
    config.user = s;
    config.on_failure = scene_failed;
    CHECK_OK(fk_sim_create(&config, &s->sim));
    CHECK_OK(fk_probe_create(s->sim, "probe", &s->probe));
}

static inline fk_ref scene_spawn(scene *s, const char *name, const fk_props *props)
{
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_spawn(fk_sim_system(s->sim), fk_str_of(name), props, &ref));
    return ref;
}

/* One more failure than before, whose report has these words. */
static inline void scene_check_failure(const scene *s, size_t count, const char *words)
{
    CHECK_U64(s->failures, count);
    if (strstr(s->report, words) == NULL)
        test_failed(__FILE__, __LINE__, "no \"%s\" in\n%s", words, s->report);
}

static inline void scene_end(scene *s)
{
    bool passed = fk_sim_destroy(s->sim);
    if (passed != (s->failures == 0)) test_failed(__FILE__, __LINE__, "%s", s->report);
}

/* Sends back what it gets. */
static inline fk_err echo_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const num *value = FK_AS(num, msg);
    (void)state;
    return value != NULL ? fk_reply(ctx, FK_MSG(num, value->n)) : fk_unhandled(ctx, msg);
}

#endif /* FK_TESTS_TESTKIT_SCENE_H */
