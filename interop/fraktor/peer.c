/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A fraktor node that a script drives: commands come by standard input, events go by standard
 * output, one a line. interop/README.md has both. */

#include "cast.h"
#include "event.h"
#include "probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 2048, WORDS_MAX = 5 };

typedef struct peer {
    fk_system *sys;
    fk_ref probe;
    char address[256];
} peer;

/* ---- words of a command -------------------------------------------------------------------------- */

/* Splits at single spaces, in place; the last word is the rest of the line. Missing ones are empty. */
static void split(char *line, char **word, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *end = i + 1 < count ? strchr(line, ' ') : NULL;
        word[i] = line;
        if (end != NULL) *end++ = '\0';
        line = end != NULL ? end : line + strlen(line);
    }
}

/* A path of this system may be short: "/user/echo". */
static fk_err resolve(const peer *self, const char *path, fk_ref *out)
{
    char full[PATH_SIZE];
    int len = snprintf(full, sizeof full, "%s%s", path[0] == '/' ? self->address : "", path);
    if (len < 0 || (size_t)len >= sizeof full) return FK_E_LIMIT;
    return fk_resolve(self->sys, fk_str_of(full), out, NULL);
}

static fk_err resolve_user(const peer *self, const char *name, fk_ref *out)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/user/%s", name);
    return resolve(self, path, out);
}

static fk_err parse_hex(const char *text, payload *out)
{
    for (size_t i = 0; text[2 * i] != '\0'; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) return FK_E_INVALID;
        out->bytes[out->len++] = (char)byte;
    }
    return FK_OK;
}

static fk_err parse_payload(const peer *self, const char *type, const char *value, payload *out)
{
    static const struct {
        const char *name;
        const fk_type *type;
    } TYPES[] = { { "string", &fk_type_text },     { "bytes", &fk_type_bytes },
                  { "int", &fk_type_fk_int },      { "long", &fk_type_fk_long },
                  { "bool", &fk_type_fk_boolean }, { "ref", &fk_type_fk_ref },
                  { "poison", &fk_type_poison },   { "kill", &fk_type_kill } };
    *out = (payload){ .type = NULL };
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(TYPES[i].name, type) == 0) out->type = TYPES[i].type;
    }
    if (out->type == &fk_type_fk_int) out->as.small = (fk_int)strtol(value, NULL, 10);
    if (out->type == &fk_type_fk_long) out->as.large = strtoll(value, NULL, 10);
    if (out->type == &fk_type_fk_boolean) out->as.truth = strcmp(value, "true") == 0;
    if (out->type == &fk_type_fk_ref) return resolve(self, value, &out->as.ref);
    if (out->type != &fk_type_text && out->type != &fk_type_bytes) {
        return out->type != NULL ? FK_OK : FK_E_INVALID;
    }
    out->bytes = strdup(value);
    if (out->bytes == NULL) return FK_E_NOMEM;
    out->len = out->type == &fk_type_text ? strlen(value) : 0;
    return out->type == &fk_type_text ? FK_OK : parse_hex(value, out);
}

/* ---- commands: the words after the verb ------------------------------------------------------------ */

static fk_err send_as(const peer *self, fk_ref sender, char **word)
{
    payload message;
    fk_str room;
    fk_ref to = FK_REF_NONE;
    fk_err err = resolve(self, word[0], &to);
    if (err != FK_OK) return err;
    err = parse_payload(self, word[1], word[2], &message);
    if (err == FK_OK && message.type == &fk_type_poison)
        err = fk_poison(self->sys, to);
    else if (err == FK_OK && message.type == &fk_type_kill)
        err = fk_kill(self->sys, to);
    else if (err == FK_OK)
        err = fk_send_from(self->sys, to, sender, payload_out(&message, &room));
    payload_free(&message);
    return err;
}

static fk_err do_tell(peer *self, char **word)
{
    return send_as(self, self->probe, word);
}

static fk_err do_send(peer *self, char **word)
{
    return send_as(self, FK_REF_NONE, word);
}

static fk_err do_select(peer *self, char **word)
{
    payload message;
    fk_str room;
    fk_err err = parse_payload(self, word[1], word[2], &message);
    if (err == FK_OK) {
        err = fk_select_send_from(self->sys, self->probe, fk_str_of(word[0]), self->probe,
                                  payload_out(&message, &room));
    }
    payload_free(&message);
    return err;
}

static fk_err do_ask(peer *self, char **word)
{
    payload message;
    fk_ref to;
    fk_err err = resolve(self, word[1], &to);
    if (err != FK_OK) return err;
    err = parse_payload(self, word[2], word[3], &message);
    if (err == FK_OK) return probe_ask(self->sys, word[0], to, &message);
    payload_free(&message);
    return err;
}

static fk_err do_identify(peer *self, char **word)
{
    return probe_identify(self->sys, self->probe, word[0], fk_str_of(word[1]));
}

static fk_err watch_or_not(const peer *self, const char *path, bool on)
{
    probe_watch wish = { .on = on };
    fk_err err = resolve(self, path, &wish.actor);
    return err == FK_OK ? fk_send(self->sys, self->probe, FK_MSG_AT(probe_watch, &wish)) : err;
}

static fk_err do_watch(peer *self, char **word)
{
    return watch_or_not(self, word[0], true);
}

static fk_err do_unwatch(peer *self, char **word)
{
    return watch_or_not(self, word[0], false);
}

static fk_err do_spawn(peer *self, char **word)
{
    const fk_props *props = cast_props(word[1]);
    fk_ref ref;
    if (props == NULL) return FK_E_INVALID;
    fk_err err = fk_spawn(self->sys, fk_str_of(word[0]), props, &ref);
    if (err != FK_OK) return err;
    event_begin("spawned");
    event_ref("ref", self->sys, ref);
    event_end();
    return FK_OK;
}

static fk_err do_stop(peer *self, char **word)
{
    fk_ref ref;
    fk_err err = resolve_user(self, word[0], &ref);
    return err == FK_OK ? fk_stop(self->sys, ref) : err;
}

static fk_err do_aim(peer *self, char **word)
{
    fk_ref forward, at;
    fk_err err = resolve_user(self, "forward", &forward);
    if (err == FK_OK) err = resolve(self, word[0], &at);
    return err == FK_OK ? fk_send(self->sys, forward, FK_MSG(aim, at)) : err;
}

static fk_err do_flood(peer *self, char **word)
{
    fk_ref sink;
    fk_err err = resolve(self, word[0], &sink);
    return err == FK_OK ? cast_flood(self->sys, sink, strtoll(word[1], NULL, 10)) : err;
}

static fk_err do_report(peer *self, char **word)
{
    fk_ref sink;
    (void)word;
    fk_err err = resolve_user(self, "sink", &sink);
    return err == FK_OK ? fk_send(self->sys, sink, FK_MSG(report, true)) : err;
}

/* Only of the system that is meant: another may have come meanwhile. */
static fk_err do_quarantine(peer *self, char **word)
{
    fk_authority_info info;
    fk_err err = fk_authority_state(self->sys, fk_str_of(word[0]), &info);
    if (err == FK_OK && info.uid != strtoull(word[1], NULL, 10)) err = FK_E_UID;
    return err == FK_OK ? fk_authority_quarantine(self->sys, fk_str_of(word[0])) : err;
}

static const struct {
    const char *verb;
    size_t words;
    fk_err (*perform)(peer *self, char **word);
} COMMANDS[] = {
    { "tell", 3, do_tell },
    { "send", 3, do_send },
    { "select", 3, do_select },
    { "ask", 4, do_ask },
    { "identify", 2, do_identify },
    { "watch", 1, do_watch },
    { "unwatch", 1, do_unwatch },
    { "spawn", 2, do_spawn },
    { "stop", 1, do_stop },
    { "aim", 1, do_aim },
    { "flood", 2, do_flood },
    { "report", 1, do_report },
    { "quarantine", 2, do_quarantine },
};

/* A command that cannot be done is an event, too; the script decides. */
static void command(peer *self, char *line)
{
    char *word[2], *rest[WORDS_MAX];
    split(line, word, 2);
    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++) {
        if (strcmp(COMMANDS[i].verb, word[0]) != 0) continue;
        split(word[1], rest, COMMANDS[i].words);
        fk_err err = COMMANDS[i].perform(self, rest);
        if (err != FK_OK) event_error(word[0], fk_err_text(err));
        return;
    }
    event_error(word[0], "no such command");
}

static void command_loop(peer *self)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while ((len = getline(&line, &size, stdin)) > 0) {
        if (line[len - 1] == '\n') line[len - 1] = '\0';
        if (strcmp(line, "exit") == 0) break;
        command(self, line);
    }
    free(line);
}

/* ---- its life -------------------------------------------------------------------------------------- */

/* "1s", "200ms" */
static fk_time parse_time(const char *text)
{
    char *unit;
    long long number = strtoll(text, &unit, 10);
    return strcmp(unit, "ms") == 0 ? FK_MILLIS(number) : FK_SECONDS(number);
}

/* The detector waits less than usual: tests are to be short. */
static fk_system_config config_of(int argc, char **argv)
{
    fk_system_config config = { .size = sizeof config,
                                .name = "F",
                                .workers = 2,
                                .paths.rules = FK_RULES_PEKKO,
                                .remoting = { .enabled = true,
                                              .trusting = true,
                                              .host = "127.0.0.1",
                                              .heartbeat_pause = FK_SECONDS(2) } };
    for (int i = 1; i + 1 < argc; i += 2) {
        uint16_t port = (uint16_t)strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--name") == 0) config.name = argv[i + 1];
        if (strcmp(argv[i], "--port") == 0) config.remoting.port = port;
        if (strcmp(argv[i], "--bind") == 0) config.remoting.bind_port = port;
        if (strcmp(argv[i], "--compress") == 0) {
            config.remoting.compress_every = parse_time(argv[i + 1]);
        }
    }
    return config;
}

static fk_err peer_start(peer *self, const fk_system_config *config)
{
    char buf[PATH_SIZE];
    fk_path own;
    fk_err err = fk_system_start(config, &self->sys);
    if (err != FK_OK) return err;
    err = fk_system_path(self->sys, NULL, 0, FK_BUF(buf), &own, NULL);
    if (err != FK_OK) return err;
    fk_path_format(&own, FK_FORM_ADDRESS, self->address, sizeof self->address);
    err = probe_spawn(self->sys, &self->probe);
    if (err == FK_OK) err = cast_spawn(self->sys);
    /* Whoever answers has started: the pool has its children by now. */
    fk_ref pool;
    if (err == FK_OK) err = fk_resolve_one(self->sys, FK_STR("/user/pool"), FK_SECONDS(5), &pool);
    return err;
}

static void say_ready(const peer *self)
{
    char uid[24];
    snprintf(uid, sizeof uid, "%" PRIu64, fk_system_uid(self->sys));
    event_begin("ready");
    event_text("address", fk_str_of(self->address));
    event_text("uid", fk_str_of(uid));
    event_text("version", fk_str_of(fk_version()));
    event_end();
}

int main(int argc, char **argv)
{
    peer self = { .sys = NULL };
    char aim_first[] = "aim /user/echo";
    const fk_system_config config = config_of(argc, argv);
    fk_err err = peer_start(&self, &config);
    if (err != FK_OK) {
        fprintf(stderr, "interop-peer: %s\n", fk_err_text(err));
        return 1;
    }
    command(&self, aim_first);
    say_ready(&self);
    command_loop(&self);
    err = fk_system_stop(self.sys);
    event_begin("exited");
    event_text("text", fk_str_of(fk_err_text(err)));
    event_end();
    return err == FK_OK ? 0 : 1;
}
