/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor assoc and fraktor quarantine: what a running node knows of other systems, and what it is to
 * do about one. Both ask its /user/admin. */

#include "cli.h"
#include "client.h"
#include "foreign.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define NODE_DEFAULT "fraktor.tcp://demo@127.0.0.1:4001"

enum { COMMAND_MAX = 1024 };

typedef struct admin_options {
    client_options client;
    const char *node;
    bool force;
} admin_options;

static const char ASSOC_HELP[] =
    "usage: fraktor assoc [--node ADDRESS] [--timeout MS] [--listen HOST:PORT] [--json]\n"
    "\n"
    "Lists the other systems that a node knows: state, uid, how many messages wait for it, how long\n"
    "that has been so, and what is left of a quarantine.\n";

static const char QUARANTINE_HELP[] =
    "usage: fraktor quarantine set|clear AUTHORITY [--node ADDRESS] [--force] [--timeout MS]\n"
    "                          [--listen HOST:PORT] [--json]\n"
    "\n"
    "Has a node keep another system out, or let it in again before the time is over.\n"
    "\n"
    "  AUTHORITY           SYSTEM@HOST:PORT, or a complete address\n"
    "  --force             with clear: also the very system that was quarantined, whatever messages\n"
    "                      it has missed; without it, only one that was started since\n";

static const char SHARED_HELP[] =
    "  --node ADDRESS      which node (" NODE_DEFAULT ")\n"
    "  --timeout MS        how long it may take (5000)\n"
    "  --listen HOST:PORT  where answers can reach us (127.0.0.1, any port)\n"
    "  --json              an object per line\n"
    "\n"
    "Exit code: 0 ok, 1 not reached or refused, 2 wrong usage.\n";

static void help(const char *command)
{
    bool is_assoc = strcmp(command, "assoc") == 0;
    fputs(is_assoc ? ASSOC_HELP : QUARANTINE_HELP, stdout);
    if (is_assoc) putchar('\n');
    fputs(SHARED_HELP, stdout);
    printf("\nexample: fraktor %s --node " NODE_DEFAULT "\n",
           is_assoc ? "assoc" : "quarantine clear demo@127.0.0.1:4002");
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static void complain(const admin_options *options, const char *code, const char *why)
{
    if (options->client.json) {
        fputs("{\"ok\":false,\"error\":", stdout);
        cli_json_text(stdout, fk_str_of(code));
        fputs(",\"message\":", stdout);
        cli_json_text(stdout, fk_str_of(why));
        puts("}");
    } else {
        cli_failed(options->client.command, "%s", why);
    }
}

/* "error FK_E_STATE: not possible in this state" */
static void complain_as_told(const admin_options *options, char *text)
{
    char *code = text + strcspn(text, " "), *end;
    if (*code != '\0') code++;
    end = strstr(code, ": ");
    if (end != NULL) *end = '\0';
    complain(options, code, end != NULL ? end + 2 : text);
}

/* What a node says is foreign, too: nothing but lines of ASCII. */
static void make_plain(client_answer *answer)
{
    for (size_t i = 0; i < answer->len; i++) {
        char *c = &answer->data[i];
        if (*c != '\n' && (*c < 0x20 || *c > 0x7e)) *c = '?';
    }
}

/* Prints what the node says after "ok". */
static int ask_admin(const admin_options *options, const char *text)
{
    char path[600];
    fk_str msg = fk_str_of(text);
    client_answer answer;
    snprintf(path, sizeof path, "%s/user/admin", options->node);
    client_request request = { .path = path,
                               .msg = { &fk_type_text, &msg },
                               .wants_answer = true,
                               .timeout = FK_MILLIS(options->client.timeout_ms),
                               .listen = options->client.listen };
    bool ok = client_call(&request, &answer);
    if (ok) make_plain(&answer);
    if (!ok) {
        complain(options, fk_err_name(answer.err), answer.why);
    } else if (answer.type != &fk_type_text || strncmp(answer.data, "ok", 2) != 0) {
        ok = false;
        if (answer.type == &fk_type_text)
            complain_as_told(options, answer.data);
        else
            complain(options, "FK_E_TYPE", "its /user/admin is not that of a fraktor node");
    } else if (answer.data[2] == '\n') {
        fputs(answer.data + 3, stdout);
    } else {
        puts(options->client.json ? "{\"ok\":true}" : answer.data);
    }
    client_answer_free(&answer);
    return ok ? CLI_OK : CLI_FAILED;
}

/* ---- command line --------------------------------------------------------------------------------------- */

static const struct option OPTIONS[] = {
    { "node", required_argument, NULL, 'n' },
    { "force", no_argument, NULL, 'f' },
    CLIENT_OPTIONS,
};

static int parse(int argc, char **argv, admin_options *out)
{
    int opt, code = CLI_OK;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        if (opt == 'n')
            out->node = optarg;
        else if (opt == 'f')
            out->force = true;
        else if (!client_option(opt, argv, &out->client, &code))
            break;
    }
    return code;
}

static admin_options defaults(const char *command)
{
    return (admin_options){
        .client = { .command = command, .help = help, .timeout_ms = CLIENT_TIMEOUT_MS },
        .node = NODE_DEFAULT
    };
}

int cli_assoc(int argc, char **argv)
{
    admin_options options = defaults("assoc");
    int code = parse(argc, argv, &options);
    if (code != CLI_OK || options.client.helped) return code;
    if (options.force) return cli_usage_error("assoc", "there is no option --force");
    if (optind < argc) return cli_usage_error("assoc", "too much: '%s'", argv[optind]);
    return ask_admin(&options, options.client.json ? "assoc json" : "assoc");
}

int cli_quarantine(int argc, char **argv)
{
    char text[COMMAND_MAX];
    admin_options options = defaults("quarantine");
    int code = parse(argc, argv, &options);
    if (code != CLI_OK || options.client.helped) return code;
    if (argc - optind < 2)
        return cli_usage_error("quarantine", "set or clear, and of which system?");
    if (argc - optind > 2) return cli_usage_error("quarantine", "too much: '%s'", argv[optind + 2]);
    const char *verb = argv[optind], *authority = argv[optind + 1];
    bool clears = strcmp(verb, "clear") == 0;
    if (!clears && strcmp(verb, "set") != 0) {
        return cli_usage_error("quarantine", "'%s' is neither set nor clear", verb);
    }
    if (options.force && !clears) return cli_usage_error("quarantine", "--force goes with clear");
    bool is_pekko = strncmp(options.node, "pekko", 5) == 0;
    const char *scheme = strstr(authority, "://") != NULL ? ""
                         : is_pekko                       ? "pekko://"
                                                          : "fraktor.tcp://";
    const char *word = !clears ? "quarantine" : options.force ? "force" : "clear";
    int len = snprintf(text, sizeof text, "%s %s%s", word, scheme, authority);
    if (len >= (int)sizeof text) return cli_usage_error("quarantine", "the authority is too long");
    return ask_admin(&options, text);
}
