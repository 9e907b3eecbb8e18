/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sinks: subscribers that write a line for each event. A line is made on the stack of the thread that
 * noticed and written by one write(), so threads need no lock but for the moment in which they are
 * counted against the limit.
 */

#include "fraktor/log.h"
#include "fraktor/inspect.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/event.h"
#include "fraktor/registry.h"
#include "host/host.h"
#include "host/line.h"

enum { BURST_DEFAULT = 10, FILE_MODE = 0644, SHOWN_PATH_MAX = 1024 };

#define WINDOW_DEFAULT FK_SECONDS(1)

/* Of one kind of event. */
typedef struct limiter {
    fk_time began;
    uint32_t count; /* lines since then */
    uint64_t suppressed;
} limiter;

typedef struct fk_sink {
    fk_system *sys;
    int fd;
    bool owns_fd;
    fk_log_format format;
    uint32_t burst;
    fk_time window;
    fk_lock lock; /* of what follows */
    limiter limit[FK_EVENT_COUNT];
} fk_sink;

/* ---- the limit ----------------------------------------------------------------------------------- */

/* False: this one is only counted. Otherwise *suppressed is how many were before it. */
static bool limit_admit(fk_sink *sink, const fk_event *event, uint64_t *suppressed)
{
    limiter *l = &sink->limit[event->kind];
    bool is_admitted = true;
    fk__mem_lock(&sink->sys->mem, &sink->lock);
    if (l->count == 0 || event->at - l->began >= sink->window) {
        l->began = event->at;
        l->count = 0;
    }
    if (event->kind != FK_EVENT_LOG && l->count >= sink->burst) is_admitted = false;
    if (is_admitted) {
        l->count += l->count < UINT32_MAX;
        *suppressed = l->suppressed;
        l->suppressed = 0;
    } else {
        l->suppressed++;
    }
    fk__mem_unlock(&sink->sys->mem, &sink->lock);
    return is_admitted;
}

static void limit_return(fk_sink *sink, fk_event_kind kind, uint64_t lost)
{
    fk__mem_lock(&sink->sys->mem, &sink->lock);
    sink->limit[kind].suppressed += lost;
    fk__mem_unlock(&sink->sys->mem, &sink->lock);
}

/* ---- lines --------------------------------------------------------------------------------------- */

/* When that was, by the wall clock of now. */
static void put_time(fk_line *line, const fk_system *sys, fk_time at)
{
    const fk_port *port = &sys->mem.port;
    char text[40];
    struct tm parts;
    fk_time wall = port->wall != NULL ? port->wall(port->ctx) : 0;
    if (port->wall != NULL) wall -= port->now(port->ctx) - at;
    time_t seconds = (time_t)(wall / FK_SECONDS(1));
    if (gmtime_r(&seconds, &parts) == NULL) return;
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    unsigned millis = (unsigned)(wall % FK_SECONDS(1) / FK_MILLIS(1));
    snprintf(text + len, sizeof(text) - len, ".%03uZ", millis % 1000);
    fk__line_chars(line, "ts", text);
}

static void put_actor(fk_line *line, fk_system *sys, const char *key, fk_ref ref)
{
    char path[SHOWN_PATH_MAX];
    if (fk_ref_is_none(ref)) return;
    if (fk_path_of(sys, ref, path, sizeof(path)) == 0) { /* forgotten */
        snprintf(path, sizeof(path), "%u.%u", ref.slot, ref.generation);
        key = "ref";
    }
    fk__line_chars(line, key, path);
}

static void put_letter(fk_line *line, fk_system *sys, const fk_dead_letter *letter)
{
    char path[SHOWN_PATH_MAX];
    fk_dead_letter_path(sys, letter, path, sizeof(path));
    fk__line_chars(line, "to", path);
    fk__line_chars(line, "type", letter->type->name);
    fk__line_chars(line, "reason", fk_reason_name(letter->reason));
    if (letter->detail.len != 0) fk__line_text(line, "detail", letter->detail);
    put_actor(line, sys, "sender", letter->sender);
}

static void put_failure(fk_line *line, const fk_failure *failure)
{
    static const char *const PHASES[] = { "message", "start", "restart", "child", "stop" };
    fk__line_chars(line, "err", fk_err_name(failure->err));
    if (failure->type != NULL) fk__line_chars(line, "type", failure->type->name);
    if ((unsigned)failure->phase < sizeof(PHASES) / sizeof(PHASES[0])) {
        fk__line_chars(line, "phase", PHASES[failure->phase]);
    }
    fk__line_chars(line, "detail", failure->detail);
}

/* What there is besides a letter. */
static void put_fields(fk_line *line, fk_system *sys, const fk_event *event)
{
    put_actor(line, sys, "path", event->actor);
    if (event->failure != NULL) put_failure(line, event->failure);
    if (event->kind == FK_EVENT_SUPERVISED) {
        fk__line_chars(line, "directive", fk_directive_name(event->directive));
        fk__line_number(line, "count", event->count);
    }
    if (event->kind == FK_EVENT_REMOTE && event->count != 0) {
        fk__line_number(line, "suppressed", event->count); /* before it reached us */
    }
    put_actor(line, sys, "by", event->other);
    if (event->text.len != 0) fk__line_text(line, "text", event->text);
    fk__line_chars(line, "from", event->from);
    fk__line_chars(line, "to", event->to);
    if (event->kind == FK_EVENT_PATH_FAULT) {
        fk__line_chars(line, "err", fk_err_name(event->fault.err));
        fk__line_number(line, "at", event->fault.at);
    } else if (event->failure == NULL && event->err != FK_OK) {
        fk__line_chars(line, "err", fk_err_name(event->err));
    }
    fk__line_chars(line, "reason", event->reason);
}

static void put_head(fk_line *line, fk_sink *sink, const fk_event *event)
{
    fk__line_begin(line, sink->format);
    put_time(line, sink->sys, event->at);
    fk__line_chars(line, "sys", sink->sys->name);
    fk__line_chars(line, "level", fk_level_name(event->level));
    fk__line_chars(line, "name", fk_event_name(event->kind));
}

/* The end of it, and out with it. */
static bool put_out(fk_sink *sink, fk_line *line, uint64_t suppressed)
{
    if (suppressed != 0) fk__line_number(line, "suppressed", suppressed);
    fk__line_end(line);
    return fk__host_write(sink->fd, line->buf, line->len) == (ssize_t)line->len;
}

static void put_event(fk_line *line, fk_sink *sink, const fk_event *event)
{
    put_head(line, sink, event);
    if (event->letter != NULL)
        put_letter(line, sink->sys, event->letter);
    else
        put_fields(line, sink->sys, event);
}

static void on_event(void *user, const fk_event *event)
{
    fk_sink *sink = user;
    uint64_t suppressed = 0;
    fk_line line;
    if (!limit_admit(sink, event, &suppressed)) return;
    put_event(&line, sink, event);
    if (!put_out(sink, &line, suppressed)) limit_return(sink, event->kind, suppressed + 1);
}

/* ---- open and close ------------------------------------------------------------------------------ */

static void sink_close(fk_sink *sink)
{
    fk_system *sys = sink->sys;
    if (sink->owns_fd) close(sink->fd);
    fk__mem_free(&sys->mem, sink, sizeof(*sink));
}

/* Nobody is in on_event() any more. */
static void on_ended(void *user)
{
    fk_sink *sink = user;
    for (uint32_t kind = 0; kind < FK_EVENT_COUNT; kind++) {
        uint64_t suppressed = sink->limit[kind].suppressed;
        if (suppressed == 0) continue;
        fk_event event = { .kind = (fk_event_kind)kind,
                           .level = fk__event_level((fk_event_kind)kind),
                           .at = fk__system_now(sink->sys) };
        fk_line line;
        put_head(&line, sink, &event);
        (void)put_out(sink, &line, suppressed);
    }
    sink_close(sink);
}

static fk_err sink_create(fk_system *sys, const fk_log_config *config, fk_sink **out)
{
    void *memory;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_sink), FK_SITE("sink"), &memory));
    fk_sink *sink = memory;
    memset(sink, 0, sizeof(*sink));
    sink->sys = sys;
    sink->format = config->format;
    sink->burst = config->burst != 0 ? config->burst : BURST_DEFAULT;
    sink->window = config->window != 0 ? config->window : WINDOW_DEFAULT;
    sink->fd = config->fd != 0 ? config->fd : STDERR_FILENO;
    if (config->path != NULL) {
        sink->fd = open(config->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, FILE_MODE);
        sink->owns_fd = sink->fd >= 0;
    }
    if (sink->fd < 0) {
        sink_close(sink);
        return FK_E_OS;
    }
    *out = sink;
    return FK_OK;
}

static bool config_is_valid(const fk_log_config *config)
{
    if (config->size != 0 && config->size < sizeof(*config)) return false;
    if ((unsigned)config->format > FK_LOG_JSON || (unsigned)config->level >= FK_LEVELS)
        return false;
    return config->window >= 0 && config->fd >= 0;
}

fk_err fk_log_open(fk_system *sys, const fk_log_config *config, fk_subscription *out)
{
    if (config == NULL || out == NULL || !config_is_valid(config)) return FK_E_INVALID;
    fk_topics topics = config->topics;
    if ((topics & ~FK_TOPIC_REPLAY) == 0) topics |= FK_TOPIC_ALL;
    fk_sink *sink = NULL;
    FK_TRY(sink_create(sys, config, &sink));
    fk_subscriber like = { .fn = on_event,
                           .user = sink,
                           .ended = on_ended,
                           .is_sink = true,
                           .asked = topics,
                           .level = (uint8_t)config->level };
    fk_err err = fk__subscribe(sys, &like, out);
    if (err != FK_OK) sink_close(sink);
    return err;
}

fk_err fk_log_close(fk_system *sys, fk_subscription sink)
{
    return fk_unsubscribe(sys, sink);
}

/* ---- what is kept ------------------------------------------------------------------------------ */

typedef struct event_dump {
    fk_sink sink; /* only what a line needs of one */
    pthread_t thread;
    const fk_writer *writer;
    size_t count;
} event_dump;

static void dump_event(void *user, const fk_event *event)
{
    event_dump *dump = user;
    fk_line line;
    if (!pthread_equal(dump->thread, pthread_self())) return; /* happens just now: not kept */
    put_event(&line, &dump->sink, event);
    fk__line_end(&line);
    dump->writer->write(dump->writer->user, line.buf, line.len);
    dump->count++;
}

size_t fk_dump_events(fk_system *sys, const fk_dump_options *options, const fk_writer *writer)
{
    bool is_json = options != NULL && options->format == FK_DUMP_JSON;
    event_dump dump = { .sink = { .sys = sys, .format = is_json ? FK_LOG_JSON : FK_LOG_LOGFMT },
                        .thread = pthread_self(),
                        .writer = writer };
    fk_subscription subscription;
    fk_topics topics = FK_TOPIC_ALL | FK_TOPIC_REPLAY;
    if (fk_subscribe(sys, topics, FK_LEVEL_DEBUG, dump_event, &dump, &subscription) != FK_OK)
        return 0;
    fk_unsubscribe(sys, subscription);
    return dump.count;
}
