/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_LOG_H
#define FK_LOG_H

/*
 * Logs: what the program says, and sinks that write events as lines.
 *
 *     fk_log_here(ctx, FK_LEVEL_WARN, FK_STR("the till is short"));
 *
 *     fk_log_open(sys, &(fk_log_config){ .path = "bank.log" }, &sink);
 *
 *     ts=2026-01-31T12:00:00.000Z sys=bank level=info name=dead_letter to=fraktor://bank/user/alice#7 type=text reason=stopped
 *
 * A line is one write(). Whatever is not printable ASCII is escaped, so nobody can forge a line.
 */

#include "fraktor/event.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- any thread -------------------------------------------------------------------------------- */

/* An FK_EVENT_LOG, about an actor or FK_REF_NONE. Costs next to nothing if nobody wants that level. */
FK_API void fk_log(fk_system *sys, fk_level level, fk_ref actor, fk_str text);
/* What sinks write of these topics begins with that level; FK_LEVEL_INFO at first. At any time.
 * FK_E_INVALID. */
FK_API fk_err fk_log_level_set(fk_system *sys, fk_topics topics, fk_level level);

/* ---- inside receive and the hooks --------------------------------------------------------------- */

/* About this actor. */
FK_API void fk_log_here(fk_ctx *ctx, fk_level level, fk_str text);

/* ---- sinks: any thread, on Linux ---------------------------------------------------------------- */

typedef enum fk_log_format {
    FK_LOG_LOGFMT = 0,
    FK_LOG_JSON, /* an object per line, all values strings but numbers */
} fk_log_format;

/* All zero: everything from level info on, to standard error. */
typedef struct fk_log_config {
    uint32_t size;    /* sizeof(fk_log_config), or 0 for the layout of release 0.1 */
    int fd;           /* the caller's; 0: standard error */
    const char *path; /* instead: a file, which is made if need be, and appended to */
    fk_log_format format;
    fk_level level;   /* and not below this, whatever the topics' levels are */
    fk_topics topics; /* 0: FK_TOPIC_ALL; FK_TOPIC_REPLAY may be added */
    /* Of each kind but LOG, at most `burst` lines in a window (0: 10, and 1 second). The next line
     * after that says "suppressed=" how many were left out, as does one at the end. */
    uint32_t burst;
    fk_time window;
} fk_log_config;

/* Fails with FK_E_INVALID, FK_E_OS (the file), FK_E_STOPPING, FK_E_NOMEM, FK_E_LIMIT. A line that
 * cannot be written is left out and counted as suppressed. */
FK_API FK_MUST_USE fk_err fk_log_open(fk_system *sys, const fk_log_config *config,
                                      fk_subscription *out);
/* The same as fk_unsubscribe(). A sink that is not closed closes itself when the system ends. */
FK_API fk_err fk_log_close(fk_system *sys, fk_subscription sink);

#ifdef __cplusplus
}
#endif
#endif /* FK_LOG_H */
