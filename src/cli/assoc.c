/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor assoc and fraktor quarantine: what a running node knows of other systems, and what it is to
 * do about one. Both ask its /user/admin. */

#include "admin.h"
#include "cli.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

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

static void help(const char *command)
{
    bool is_assoc = strcmp(command, "assoc") == 0;
    fputs(is_assoc ? ASSOC_HELP : QUARANTINE_HELP, stdout);
    if (is_assoc) putchar('\n');
    fputs(ADMIN_HELP, stdout);
    printf("\nexample: fraktor %s --node " ADMIN_NODE_DEFAULT "\n",
           is_assoc ? "assoc" : "quarantine clear demo@127.0.0.1:4002");
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
        .node = ADMIN_NODE_DEFAULT
    };
}

int cli_assoc(int argc, char **argv)
{
    admin_options options = defaults("assoc");
    int code = parse(argc, argv, &options);
    if (code != CLI_OK || options.client.helped) return code;
    if (options.force) return cli_usage_error("assoc", "there is no option --force");
    if (optind < argc) return cli_usage_error("assoc", "too much: '%s'", argv[optind]);
    return admin_print(&options.client, options.node,
                       options.client.json ? FK_STR("assoc json") : FK_STR("assoc"));
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
    return admin_print(&options.client, options.node, fk_str_of(text));
}
