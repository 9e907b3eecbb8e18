/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The message is sent by an actor, so that whatever is sent after it stays behind it: a plain message
 * has arrived when the question behind it, who is there, is answered.
 */

#include "client.h"

#include "cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STOP_SECONDS = 15 };

typedef struct client {
    const client_request *request;
    client_answer *answer;
    fk_ref to;
    double begun;
} client;

/* ---- options ------------------------------------------------------------------------------------- */

bool client_option(int opt, char **argv, client_options *out, int *code)
{
    bool ok = true;
    *code = CLI_OK;
    switch (opt) {
    case 'h':
        out->help(out->command);
        out->helped = true;
        return false;
    case 'j': out->json = true; break;
    case 't': ok = cli_number(optarg, 1, 86400000, &out->timeout_ms); break;
    case 'l': ok = endpoint_parse(optarg, true, &out->listen); break;
    case ':': *code = cli_usage_error(out->command, "%s needs a value", argv[optind - 1]); break;
    default:
        *code = cli_usage_error(out->command, "there is no option %s ('--' ends the options)",
                                argv[optind - 1]);
        break;
    }
    if (!ok) *code = cli_usage_error(out->command, "'%s' does not fit there", optarg);
    return *code == CLI_OK;
}

/* ---- the actor ----------------------------------------------------------------------------------- */

static fk_err client_begin(fk_ctx *ctx, void *state)
{
    client *self = *(client **)state;
    const client_request *request = self->request;
    fk_err err = FK_OK;
    self->begun = cli_seconds();
    if (!request->wants_answer) err = fk_tell(ctx, self->to, request->msg);
    const fk_out question = request->wants_answer ? request->msg : FK_IDENTIFY(1);
    if (err == FK_OK) err = fk_ask(ctx, self->to, question, 1, request->timeout);
    if (err == FK_OK) return FK_OK;
    self->answer->err = err;
    fk_stop_self(ctx);
    return FK_OK;
}

static void client_keep(client_answer *answer, const fk_msg *reply)
{
    answer->data = malloc(reply->len + 1);
    if (answer->data == NULL) {
        answer->err = FK_E_NOMEM;
        return;
    }
    memcpy(answer->data, reply->data, reply->len);
    answer->data[reply->len] = '\0';
    answer->len = reply->len;
    answer->type = reply->type;
}

static fk_err client_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    client *self = *(client **)state;
    const fk_answer *a = FK_AS(fk_answer, msg);
    if (a == NULL) return fk_unhandled(ctx, msg);
    self->answer->seconds = cli_seconds() - self->begun;
    self->answer->err = a->err;
    const fk_identity *identity = FK_AS(fk_identity, &a->reply);
    if (a->err == FK_OK && self->request->wants_answer) client_keep(self->answer, &a->reply);
    if (a->err == FK_OK && !self->request->wants_answer && identity != NULL &&
        fk_ref_is_none(identity->ref)) {
        self->answer->err = FK_E_PID_UNKNOWN;
    }
    fk_stop_self(ctx);
    return FK_OK;
}

/* ---- what went wrong -------------------------------------------------------------------------------- */

static void explain_silence(fk_system *sys, const client_request *request, const fk_path *path,
                            client_answer *out)
{
    char address[600], why[200];
    endpoint at = { .port = path->port };
    fk_authority_info info = { .status = FK_AUTHORITY_UNRESOLVED };
    long long ms = (long long)(request->timeout / FK_MILLIS(1));
    fk_path_format(path, FK_FORM_ADDRESS, address, sizeof address);
    fk_err known = fk_authority_state(sys, fk_str_of(address), &info);
    snprintf(at.host, sizeof at.host, "%.*s", (int)path->host.len, path->host.ptr);
    if (known == FK_OK && info.status == FK_AUTHORITY_CONNECTED) {
        snprintf(
            out->why, sizeof out->why,
            "%s is there, but %s has not answered within %lld ms (does it exist? does it answer"
            " this type of message?)",
            address, request->path, ms);
    } else if (!endpoint_probe(&at, why, sizeof why)) {
        snprintf(out->why, sizeof out->why,
                 "could not reach %s:%u: %s (is the node running? fraktor node --listen %s:%u)",
                 at.host, at.port, why, at.host, at.port);
    } else {
        snprintf(
            out->why, sizeof out->why,
            "%s:%u accepts connections, but did not shake hands as %s within %lld ms (is that its"
            " name and address? does it speak Artery over TCP?)",
            at.host, at.port, address, ms);
    }
}

static void explain(fk_system *sys, const client_request *request, const fk_path *path,
                    client_answer *out)
{
    switch (out->err) {
    case FK_OK: break;
    case FK_E_TIMEOUT: explain_silence(sys, request, path, out); break;
    case FK_E_PID_UNKNOWN:
    case FK_E_DEAD:
        snprintf(out->why, sizeof out->why,
                 "nobody lives at %s (the message is a dead letter there)", request->path);
        break;
    case FK_E_QUARANTINED:
        snprintf(out->why, sizeof out->why, "%s has quarantined us, or we it: start again",
                 request->path);
        break;
    default:
        snprintf(out->why, sizeof out->why, "cannot send to %s: %s", request->path,
                 fk_err_text(out->err));
    }
}

/* ---- the system ---------------------------------------------------------------------------------- */

static fk_err client_run(fk_system *sys, client *self)
{
    const fk_props props = {
        .receive = client_receive, .start = client_begin, .state_size = sizeof self, .init = &self
    };
    fk_ref ref;
    fk_err err = fk_resolve(sys, fk_str_of(self->request->path), &self->to, NULL);
    if (err == FK_OK) err = fk_spawn(sys, FK_STR("client"), &props, &ref);
    /* It stops when the time is up, which is within the system's own reach. */
    return err == FK_OK ? fk_await_stopped(sys, ref, FK_NEVER) : err;
}

static fk_err client_start(const client_request *request, const fk_path *path, fk_system **out)
{
    bool is_ipv6 = path->host.len > 0 && path->host.ptr[0] == '[';
    bool is_pekko = path->rules == FK_RULES_PEKKO;
    const char *host = request->listen.host;
    if (host[0] == '\0') host = is_ipv6 ? "[::1]" : "127.0.0.1";
    const fk_system_config config = {
        .size = sizeof config,
        .name = "fraktor-cli",
        .workers = 1,
        .paths = { .rules = (fk_rules)path->rules },
        .scheme = is_pekko ? FK_SCHEME_LOCAL : FK_SCHEME_TCP,
        .remoting = { .enabled = true, .host = host, .port = request->listen.port }
    };
    return fk_system_start(&config, out);
}

bool client_call(const client_request *request, client_answer *out)
{
    fk_system *sys;
    fk_path path;
    fk_path_fault fault;
    client self = { .request = request, .answer = out };
    fk_path_options options = { .rules = FK_RULES_FRAKTOR };
    *out = (client_answer){ .err = FK_OK };
    if (strncmp(request->path, "pekko", 5) == 0) options.rules = FK_RULES_PEKKO;
    out->err = fk_path_parse(&options, fk_str_of(request->path), &path, &fault);
    if (out->err == FK_OK && path.host.len == 0) {
        out->err = FK_E_AUTHORITY;
        fault = (fk_path_fault){ .err = out->err, .at = 0, .message = "it has no @host:port" };
    }
    if (out->err != FK_OK) {
        snprintf(out->why, sizeof out->why, "'%.300s' is no path of another system: %s (byte %zu)",
                 request->path, fault.message, fault.at);
        return false;
    }
    out->err = client_start(request, &path, &sys);
    if (out->err != FK_OK) {
        snprintf(out->why, sizeof out->why, "cannot start a system of one's own: %s",
                 fk_err_text(out->err));
        return false;
    }
    fk_err err = client_run(sys, &self);
    if (out->err == FK_OK) out->err = err;
    explain(sys, request, &path, out);
    cli_watchdog("fk_system_stop() does not return", STOP_SECONDS);
    fk_system_stop(sys);
    cli_watchdog("", 0);
    return out->err == FK_OK;
}

void client_answer_free(client_answer *answer)
{
    free(answer->data);
    answer->data = NULL;
}
