/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor members, grains, where and call: a cluster as one of its nodes sees it. */

#include "admin.h"
#include "cli.h"
#include "foreign.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much longer than a grain its node may take: to be reached, and to answer. */
enum { COMMAND_MAX = 16000, REACH_MS = 3000 };

typedef struct cluster_options {
    client_options client;
    const char *node;
} cluster_options;

typedef struct cluster_help {
    const char *command, *usage, *about, *example;
} cluster_help;

static const cluster_help HELP[] = {
    { "members", "members",
      "Lists the members of a cluster: status, weight, how often each has joined, its kinds.", "" },
    { "grains", "grains [KIND]", "Lists the grains that are active on a node.", " account" },
    { "where", "where KIND KEY",
      "Says which member owns a grain, by the view of a node, and why. Activates nothing.",
      " account alice" },
    { "call", "call KIND KEY TEXT",
      "Asks a grain something, by way of a node, and prints the answer. The grain is activated if\n"
      "need be. 'fraktor node' has the kinds account (balance, deposit N, withdraw N) and counter\n"
      "(get, add N).",
      " account alice 'deposit 100'" },
};

static void help(const char *command)
{
    for (size_t i = 0; i < sizeof HELP / sizeof HELP[0]; i++) {
        const cluster_help *h = &HELP[i];
        if (strcmp(h->command, command) != 0) continue;
        printf("usage: fraktor %s [--node ADDRESS] [--timeout MS] [--listen HOST:PORT] [--json]\n"
               "\n%s\n\n",
               h->usage, h->about);
        fputs(ADMIN_HELP, stdout);
        printf("\nexample: fraktor %s%s --node " ADMIN_NODE_DEFAULT "\n", h->command, h->example);
    }
}

static const struct option OPTIONS[] = {
    { "node", required_argument, NULL, 'n' },
    CLIENT_OPTIONS,
};

/* True: it can be done; else *code is the exit code. */
static bool parse(int argc, char **argv, cluster_options *out, int *code)
{
    int opt;
    *out = (cluster_options){
        .client = { .command = argv[0], .help = help, .timeout_ms = CLIENT_TIMEOUT_MS },
        .node = ADMIN_NODE_DEFAULT
    };
    *code = CLI_OK;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        if (opt == 'n')
            out->node = optarg;
        else if (!client_option(opt, argv, &out->client, code))
            break;
    }
    return *code == CLI_OK && !out->client.helped;
}

int cli_members(int argc, char **argv)
{
    cluster_options options;
    int code;
    if (!parse(argc, argv, &options, &code)) return code;
    if (optind < argc) return cli_usage_error(argv[0], "too much: '%s'", argv[optind]);
    return admin_print(&options.client, options.node,
                       options.client.json ? FK_STR("members json") : FK_STR("members"));
}

int cli_grains(int argc, char **argv)
{
    char text[COMMAND_MAX];
    cluster_options options;
    int code;
    if (!parse(argc, argv, &options, &code)) return code;
    if (argc - optind > 1) return cli_usage_error(argv[0], "too much: '%s'", argv[optind + 1]);
    const char *kind = optind < argc ? argv[optind] : "";
    int len = snprintf(text, sizeof text, "grains %s%s%s", options.client.json ? "json" : "text",
                       kind[0] != '\0' ? " " : "", kind);
    if (len >= (int)sizeof text) return cli_usage_error(argv[0], "the kind is too long");
    return admin_print(&options.client, options.node, (fk_str){ text, (size_t)len });
}

/* What no node could make sense of is not sent. */
static int check_grain(const char *command, const char *kind, const char *key)
{
    fk_grain_key grain;
    fk_err err = fk_grain_key_of(fk_str_of(kind), fk_str_of(key), &grain);
    if (err == FK_E_KEY) return cli_usage_error(command, "a key has 1 to 4096 bytes");
    if (err != FK_OK) return cli_usage_error(command, "'%.80s' is no name of a kind", kind);
    return CLI_OK;
}

int cli_where(int argc, char **argv)
{
    char text[COMMAND_MAX];
    cluster_options options;
    int code;
    if (!parse(argc, argv, &options, &code)) return code;
    if (argc - optind < 2)
        return cli_usage_error(argv[0], "which grain? It takes a kind and a key");
    if (argc - optind > 2) return cli_usage_error(argv[0], "too much: '%s'", argv[optind + 2]);
    code = check_grain(argv[0], argv[optind], argv[optind + 1]);
    if (code != CLI_OK) return code;
    int len = snprintf(text, sizeof text, "where %s %s %s", options.client.json ? "json" : "text",
                       argv[optind], argv[optind + 1]);
    return admin_print(&options.client, options.node, (fk_str){ text, (size_t)len });
}

/* "ok 0.312 text", and in the next lines what the grain said. */
static int print_answer(const client_options *options, const client_answer *answer)
{
    char *end = NULL;
    double ms = strtod(answer->data + 2, &end);
    const char *line = memchr(answer->data, '\n', answer->len);
    if (line == NULL || end == NULL) {
        admin_complain(options, "FK_E_TYPE", "its /user/admin is not that of a fraktor node");
        return CLI_FAILED;
    }
    fk_str said = { line + 1, answer->len - (size_t)(line + 1 - answer->data) };
    bool is_text = strncmp(end, " text\n", 6) == 0;
    if (options->json) {
        printf("{\"ok\":true,\"%s\":", is_text ? "answer" : "type");
        cli_json_text(stdout, said);
        printf(",\"latency_ms\":%.3f}\n", ms);
        return CLI_OK;
    }
    if (!is_text) fputs("a message of type ", stdout);
    cli_show_text(stdout, said);
    putchar('\n');
    fflush(stdout);
    fprintf(stderr, "answered in %.3f ms\n", ms);
    return CLI_OK;
}

int cli_call(int argc, char **argv)
{
    char text[COMMAND_MAX];
    cluster_options options;
    client_answer answer;
    int code;
    if (!parse(argc, argv, &options, &code)) return code;
    if (argc - optind < 3) {
        return cli_usage_error(argv[0], "whom, and what? It takes a kind, a key and a text");
    }
    if (argc - optind > 3) return cli_usage_error(argv[0], "too much: '%s'", argv[optind + 3]);
    const char *kind = argv[optind], *key = argv[optind + 1];
    code = check_grain(argv[0], kind, key);
    if (code != CLI_OK) return code;
    int len = snprintf(text, sizeof text, "call %llu %s %zu %s %s",
                       (unsigned long long)options.client.timeout_ms, kind, strlen(key), key,
                       argv[optind + 2]);
    if (len >= (int)sizeof text) return cli_usage_error(argv[0], "the text is too long");
    options.client.timeout_ms += REACH_MS;
    if (!admin_ask(&options.client, options.node, (fk_str){ text, (size_t)len }, &answer)) {
        return CLI_FAILED;
    }
    code = print_answer(&options.client, &answer);
    client_answer_free(&answer);
    return code;
}
