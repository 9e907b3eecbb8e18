/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sinks: the lines they write, what they leave out, and how they end. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/event.h"
#include "support/rig.h"

/* A rig whose wall clock stands still, and a file for its log. */
typedef struct desk {
    rig r;
    int fd;
    fk_subscription sink;
    char text[65536];
    char *line[256]; /* since the last look */
    size_t lines;
    size_t seen;
} desk;

static desk D;

#define STAMP "ts=2023-11-14T22:13:20.125Z sys=test "

static fk_time wall(void *ctx)
{
    (void)ctx;
    return FK_SECONDS(1700000000) + FK_MILLIS(125);
}

static void desk_start(fk_log_config config)
{
    char name[] = "fk_log_XXXXXX";
    D.fd = mkstemp(name);
    CHECK(D.fd > 0);
    unlink(name);
    D.seen = 0;
    rig_init(&D.r);
    D.r.port.wall = wall;
    CHECK_OK(rig_try_start(&D.r, &(fk_system_config){ .name = "test" }));
    config.fd = D.fd;
    CHECK_OK(fk_log_open(D.r.sys, &config, &D.sink));
}

static void desk_end(void)
{
    rig_stop(&D.r);
    close(D.fd);
}

/* New lines, of which there must be so many. */
static void desk_lines(size_t count)
{
    ssize_t len = pread(D.fd, D.text, sizeof(D.text) - 1, (off_t)D.seen);
    CHECK(len >= 0);
    D.seen += (size_t)len;
    D.text[len] = '\0';
    D.lines = 0;
    for (char *at = D.text; *at != '\0';) {
        char *end = strchr(at, '\n');
        CHECK(end != NULL);
        *end = '\0';
        D.line[D.lines++] = at;
        at = end + 1;
    }
    CHECK_U64(D.lines, count);
}

static void say(fk_level level, fk_str text)
{
    fk_log(D.r.sys, level, FK_REF_NONE, text);
}

TEST(log_line_of_a_text_is_logfmt)
{
    desk_start((fk_log_config){ 0 });
    say(FK_LEVEL_INFO, FK_STR("hello"));
    say(FK_LEVEL_ERROR, FK_STR("a = \"b\\c\""));
    say(FK_LEVEL_DEBUG, FK_STR("not written"));
    desk_lines(2);
    CHECK_STR(D.line[0], STAMP "level=info name=log text=hello");
    CHECK_STR(D.line[1], STAMP "level=error name=log text=\"a = \\\"b\\\\c\\\"\"");
    desk_end();
}

TEST(log_line_cannot_be_forged)
{
    desk_start((fk_log_config){ 0 });
    say(FK_LEVEL_INFO, FK_STR("x\nts=1 level=error\t\x80\x7f"));
    desk_lines(1);
    CHECK_STR(D.line[0],
              STAMP "level=info name=log text=\"x\\x0ats=1 level=error\\x09\\x80\\x7f\"");
    desk_end();
}

TEST(log_line_of_json_is_one_object)
{
    desk_start((fk_log_config){ .format = FK_LOG_JSON });
    say(FK_LEVEL_WARN, FK_STR("a\"\n\\"));
    fk_path_fault fault = { FK_E_NAME, 1, 4, "no name" };
    fk__event(D.r.sys, NULL,
              &(fk_event){ .kind = FK_EVENT_PATH_FAULT,
                           .text = FK_STR("a%20b"),
                           .fault = fault,
                           .reason = fault.message });
    desk_lines(2);
    CHECK_STR(D.line[0], "{\"ts\":\"2023-11-14T22:13:20.125Z\",\"sys\":\"test\",\"level\":\"warn\","
                         "\"name\":\"log\",\"text\":\"a\\\"\\u000a\\\\\"}");
    CHECK_STR(D.line[1],
              "{\"ts\":\"2023-11-14T22:13:20.125Z\",\"sys\":\"test\",\"level\":\"warn\","
              "\"name\":\"path_fault\",\"text\":\"a%20b\",\"err\":\"FK_E_NAME\",\"at\":4,"
              "\"reason\":\"no name\"}");
    desk_end();
}

TEST(log_line_that_is_too_long_is_cut_and_well_formed)
{
    static char text[10000];
    for (int format = FK_LOG_LOGFMT; format <= FK_LOG_JSON; format++) {
        desk_start((fk_log_config){ .format = (fk_log_format)format });
        memset(text, '\n', sizeof(text));
        say(FK_LEVEL_INFO, (fk_str){ text, sizeof(text) });
        memset(text, 'x', sizeof(text));
        say(FK_LEVEL_INFO, (fk_str){ text, sizeof(text) });
        desk_lines(2);
        for (size_t i = 0; i < 2; i++) {
            size_t len = strlen(D.line[i]);
            CHECK(len < 4096 && len > 4000);
            CHECK_STR(D.line[i] + len - (format == FK_LOG_JSON ? 2 : 1),
                      format == FK_LOG_JSON ? "\"}" : "\"");
        }
        desk_end();
    }
}

TEST(log_line_of_a_dead_letter_names_everybody)
{
    char path[200], line[600];
    static probe p;
    desk_start((fk_log_config){ 0 });
    fk_ref dead = doer_spawn(&D.r), sender = probe_spawn(&D.r, &p);
    fk_path_of(D.r.sys, dead, path, sizeof(path));
    CHECK_OK(fk_stop(D.r.sys, dead));
    rig_run(&D.r);
    CHECK_OK(fk_send_from(D.r.sys, dead, sender, FK_TEXT("too late")));
    desk_lines(1);
    int len =
        snprintf(line, sizeof(line),
                 STAMP "level=info name=dead_letter to=%s type=text reason=stopped sender=", path);
    fk_path_of(D.r.sys, sender, line + len, sizeof(line) - (size_t)len);
    CHECK_STR(D.line[0], line);
    desk_end();
}

TEST(log_line_of_supervision_says_who_why_and_what)
{
    char path[200], line[600];
    desk_start((fk_log_config){ 0 });
    fk_ref actor = doer_spawn(&D.r);
    fk_path_of(D.r.sys, actor, path, sizeof(path));
    fk_failure failure = { actor, FK_E_FAILED, &fk_type_num, "no luck", FK_PHASE_MESSAGE };
    fk__event(D.r.sys, NULL,
              &(fk_event){ .kind = FK_EVENT_SUPERVISED,
                           .actor = actor,
                           .failure = &failure,
                           .directive = FK_DIRECTIVE_RESTART,
                           .count = 2 });
    fk__event(
        D.r.sys, NULL,
        &(fk_event){
            .kind = FK_EVENT_TERMINATION, .from = "running", .to = "stopping", .reason = "asked" });
    fk__event(D.r.sys, NULL,
              &(fk_event){ .kind = FK_EVENT_RESTARTED,
                           .actor = { 99999, 7, actor.system },
                           .err = FK_E_KILLED });
    desk_lines(3);
    snprintf(line, sizeof(line),
             STAMP "level=warn name=supervised path=%s err=FK_E_FAILED type=num phase=message "
                   "detail=\"no luck\" directive=restart count=2",
             path);
    CHECK_STR(D.line[0], line);
    CHECK_STR(D.line[1], STAMP "level=info name=termination from=running to=stopping reason=asked");
    CHECK_STR(D.line[2], STAMP "level=info name=actor_restarted ref=99999.7 err=FK_E_KILLED");
    desk_end();
}

TEST(log_line_of_remoting_says_how_many_were_not_told)
{
    fk_event event = { .kind = FK_EVENT_REMOTE, .text = FK_STR("10.0.0.1:1"), .reason = "garbage" };
    desk_start((fk_log_config){ 0 });
    fk__event(D.r.sys, NULL, &event);
    event.count = 41;
    fk__event(D.r.sys, NULL, &event);
    desk_lines(2);
    CHECK(strstr(D.line[0], "name=remote text=10.0.0.1:1 reason=garbage") != NULL);
    CHECK(strstr(D.line[0], "suppressed") == NULL);
    CHECK(strstr(D.line[1], "suppressed=41 text=10.0.0.1:1 reason=garbage") != NULL);
    desk_end();
}

/* ---- what is left out ---------------------------------------------------------------------------- */

static void letters(size_t count)
{
    for (size_t i = 0; i < count; i++) CHECK_OK(fk_send(D.r.sys, FK_REF_NONE, FK_MSG(num, 1)));
}

TEST(log_limits_each_kind_and_counts_the_rest)
{
    desk_start((fk_log_config){ 0 });
    letters(25);
    desk_lines(10);
    for (int i = 0; i < 30; i++) say(FK_LEVEL_INFO, FK_STR("never left out"));
    desk_lines(30);
    rig_advance(&D.r, FK_MILLIS(999));
    letters(1);
    desk_lines(0);
    rig_advance(&D.r, FK_MILLIS(1));
    letters(2);
    desk_lines(2);
    CHECK(strstr(D.line[0], " reason=no_receiver suppressed=16") != NULL);
    CHECK(strstr(D.line[1], "suppressed") == NULL);
    letters(11);
    desk_lines(8);
    CHECK_OK(fk_log_close(D.r.sys, D.sink));
    desk_lines(1);
    CHECK_STR(D.line[0], STAMP "level=info name=dead_letter suppressed=3");
    CHECK_ERR(fk_log_close(D.r.sys, D.sink), FK_E_NOT_FOUND);
    letters(1);
    desk_lines(0);
    desk_end();
}

TEST(log_limit_is_the_config_s)
{
    desk_start(
        (fk_log_config){ .burst = 2, .window = FK_MINUTES(5), .topics = FK_TOPIC(DEAD_LETTER) });
    say(FK_LEVEL_ERROR, FK_STR("not a topic of this one"));
    letters(4);
    desk_lines(2);
    rig_advance(&D.r, FK_MINUTES(5));
    letters(1);
    desk_lines(1);
    CHECK(strstr(D.line[0], "suppressed=2") != NULL);
    desk_end();
}

TEST(log_level_of_a_topic_changes_at_run_time)
{
    desk_start((fk_log_config){ 0 });
    CHECK(!fk__event_wanted(D.r.sys, FK_EVENT_STARTED));
    CHECK_OK(fk_log_level_set(D.r.sys, FK_TOPIC_LIFECYCLE | FK_TOPIC_LOG, FK_LEVEL_DEBUG));
    fk__event(D.r.sys, NULL, &(fk_event){ .kind = FK_EVENT_STARTED });
    say(FK_LEVEL_DEBUG, FK_STR("now"));
    desk_lines(2);
    CHECK_STR(D.line[0], STAMP "level=debug name=actor_started");
    CHECK_OK(fk_log_level_set(D.r.sys, FK_TOPIC_ALL, FK_LEVEL_ERROR));
    letters(1);
    say(FK_LEVEL_WARN, FK_STR("no"));
    say(FK_LEVEL_ERROR, FK_STR("yes"));
    desk_lines(1);
    CHECK_ERR(fk_log_level_set(D.r.sys, 0, FK_LEVEL_INFO), FK_E_INVALID);
    CHECK_ERR(fk_log_level_set(D.r.sys, FK_TOPIC_ALL, (fk_level)4), FK_E_INVALID);
    desk_end();
}

TEST(log_level_of_a_sink_holds_whatever_the_topics_are)
{
    desk_start((fk_log_config){ .level = FK_LEVEL_WARN });
    CHECK_OK(fk_log_level_set(D.r.sys, FK_TOPIC_ALL, FK_LEVEL_DEBUG));
    letters(1);
    say(FK_LEVEL_INFO, FK_STR("no"));
    say(FK_LEVEL_WARN, FK_STR("yes"));
    desk_lines(1);
    desk_end();
}

TEST(log_replays_if_asked)
{
    desk_start((fk_log_config){ 0 });
    fk_subscription second;
    say(FK_LEVEL_WARN, FK_STR("before"));
    say(FK_LEVEL_INFO, FK_STR("not kept"));
    desk_lines(2);
    rig_advance(&D.r, FK_MILLIS(120));
    fk_log_config config = { .fd = D.fd, .topics = FK_TOPIC_REPLAY };
    CHECK_OK(fk_log_open(D.r.sys, &config, &second));
    desk_lines(1);
    CHECK_STR(D.line[0], "ts=2023-11-14T22:13:20.005Z sys=test level=warn name=log text=before");
    desk_end();
}

/* ---- files, and the end -------------------------------------------------------------------------- */

TEST(log_appends_to_a_file_that_it_closes)
{
    rig r;
    char name[] = "fk_log_XXXXXX", text[600] = "";
    int fd = mkstemp(name);
    CHECK(fd >= 0);
    fk_subscription sink;
    for (int i = 0; i < 2; i++) {
        rig_start(&r);
        CHECK_OK(fk_log_open(r.sys, &(fk_log_config){ .path = name }, &sink));
        fk_log(r.sys, FK_LEVEL_INFO, FK_REF_NONE, i == 0 ? FK_STR("first") : FK_STR("second"));
        rig_stop(&r);
    }
    CHECK(read(fd, text, sizeof(text) - 1) > 0);
    CHECK(strstr(text, "text=first\n") != NULL);
    CHECK(strstr(text, "text=second\n") != NULL);
    close(fd);
    unlink(name);
}

TEST(log_of_a_bad_config_is_refused)
{
    rig r;
    fk_subscription sink;
    rig_start(&r);
    CHECK_ERR(fk_log_open(r.sys, NULL, &sink), FK_E_INVALID);
    CHECK_ERR(fk_log_open(r.sys, &(fk_log_config){ .size = 4 }, &sink), FK_E_INVALID);
    CHECK_ERR(fk_log_open(r.sys, &(fk_log_config){ .fd = -1 }, &sink), FK_E_INVALID);
    CHECK_ERR(fk_log_open(r.sys, &(fk_log_config){ .window = -1 }, &sink), FK_E_INVALID);
    CHECK_ERR(fk_log_open(r.sys, &(fk_log_config){ .path = "/nowhere/at/all" }, &sink), FK_E_OS);
    rig_stop(&r);
}

TEST(log_counts_lines_that_could_not_be_written)
{
    desk_start((fk_log_config){ 0 });
    int full = open("/dev/full", O_WRONLY);
    CHECK(full > 0);
    fk_subscription sink;
    CHECK_OK(fk_log_open(D.r.sys, &(fk_log_config){ .fd = full }, &sink));
    letters(2);
    CHECK(dup2(D.fd, full) == full); /* room again */
    desk_lines(2);
    letters(1);
    desk_lines(2);
    CHECK(strstr(D.line[1], "suppressed=2") != NULL);
    CHECK_OK(fk_log_close(D.r.sys, sink));
    close(full);
    desk_end();
}

TEST(log_to_a_pipe_that_nobody_reads_does_not_end_the_process)
{
    rig r;
    int fd[2];
    fk_subscription sink;
    sigset_t pending;
    CHECK(pipe(fd) == 0);
    rig_start(&r);
    CHECK_OK(fk_log_open(r.sys, &(fk_log_config){ .fd = fd[1] }, &sink));
    close(fd[0]);
    fk_log(r.sys, FK_LEVEL_INFO, FK_REF_NONE, FK_STR("to nobody")); /* SIGPIPE, by default deadly */
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGPIPE) == 0);
    rig_stop(&r);
    close(fd[1]);
}

static void complain(fk_ctx *ctx, void *state)
{
    (void)state;
    (void)fk_fail(ctx, FK_E_FAILED, "the door is stuck");
}

TEST(log_to_a_pipe_that_is_full_does_not_block)
{
    int fd[2];
    fk_subscription sink;
    rig r;
    rig_start(&r);
    CHECK(pipe(fd) == 0);
    CHECK_OK(fk_log_open(r.sys, &(fk_log_config){ .fd = fd[1] }, &sink));
    for (int i = 0; i < 5000; i++) { /* five times what a pipe holds */
        fk_log(r.sys, FK_LEVEL_WARN, FK_REF_NONE, FK_STR("the same again"));
    }
    fk_log_close(r.sys, sink);
    rig_stop(&r);
    close(fd[0]);
    close(fd[1]);
}

typedef struct collected {
    char text[4096];
    size_t len;
} collected;

static void collect(void *user, const char *text, size_t len)
{
    collected *c = user;
    CHECK(c->len + len < sizeof(c->text));
    memcpy(c->text + c->len, text, len);
    c->len += len;
}

TEST(dump_of_events_shows_what_is_kept_as_text_and_json)
{
    collected text = { "", 0 }, json = { "", 0 };
    rig r;
    rig_start(&r);
    fk_log(r.sys, FK_LEVEL_WARN, FK_REF_NONE, FK_STR("first"));
    fk_log(r.sys, FK_LEVEL_DEBUG, FK_REF_NONE, FK_STR("not kept"));
    fk_log(r.sys, FK_LEVEL_ERROR, FK_REF_NONE, FK_STR("second"));
    CHECK_U64(fk_dump_events(r.sys, NULL, &(fk_writer){ collect, &text }), 2);
    CHECK(strstr(text.text, "level=warn name=log text=first\n") != NULL);
    CHECK(strstr(text.text, "level=error name=log text=second\n") != NULL);
    CHECK(strstr(text.text, "not kept") == NULL);
    fk_dump_options options = { .format = FK_DUMP_JSON };
    CHECK_U64(fk_dump_events(r.sys, &options, &(fk_writer){ collect, &json }), 2);
    CHECK(json.text[0] == '{' && strstr(json.text, "\"text\":\"second\"}\n") != NULL);
    rig_stop(&r);
}

TEST(log_line_of_a_stop_hook_s_complaint_says_so)
{
    fk_ref ref;
    const fk_props props = { .receive = doer_receive, .stop = complain };
    desk_start((fk_log_config){ .topics = FK_TOPIC(FAILED) });
    CHECK_OK(fk_spawn(D.r.sys, FK_STR("door"), &props, &ref));
    CHECK_OK(fk_stop(D.r.sys, ref));
    rig_run(&D.r);
    desk_lines(1);
    CHECK(strstr(D.line[0], " phase=stop ") != NULL);
    desk_end();
}

TEST(log_ends_in_order_when_the_stream_stops)
{
    desk_start((fk_log_config){ .burst = 1 });
    fk_subscription json;
    fk_log_config second = { .fd = D.fd, .burst = 1, .format = FK_LOG_JSON };
    CHECK_OK(fk_log_open(D.r.sys, &second, &json));
    letters(3);
    desk_lines(2);
    fk__events_stop(D.r.sys);
    desk_lines(2);
    CHECK_STR(D.line[0], STAMP "level=info name=dead_letter suppressed=2");
    CHECK(strstr(D.line[1], "\"suppressed\":2}") != NULL);
    letters(1);
    say(FK_LEVEL_ERROR, FK_STR("after"));
    desk_lines(0);
    CHECK_ERR(fk_log_close(D.r.sys, D.sink), FK_E_NOT_FOUND);
    CHECK_ERR(fk_log_open(D.r.sys, &second, &json), FK_E_STOPPING);
    desk_end();
}
