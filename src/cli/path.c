/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor path: the command line. */

#include "path.h"

#include "cli.h"
#include "foreign.h"

#include <getopt.h>
#include <string.h>

typedef struct path_options {
    fk_path_options path;
    bool json;
    bool helped;
} path_options;

static void help(void)
{
    puts(
        "usage: fraktor path OPERATION ARGUMENT... [--rules fraktor|pekko] [--json]\n"
        "       fraktor path URI\n"
        "       fraktor path batch [--rules fraktor|pekko]\n"
        "\n"
        "Reads actor paths and names by the library's own rules and says what they mean, or which\n"
        "byte is wrong.\n"
        "\n"
        "operations:");
    for (size_t i = 0; path_op_at(i) != NULL; i++) {
        const path_op *op = path_op_at(i);
        printf("  %-9s%-14s%s\n", op->name, op->args, op->about);
    }
    puts(
        "  batch                  answers lines \"OPERATION<TAB>ARGUMENT...\" from stdin, each with a\n"
        "                         line of JSON; \\N absent, \\e empty, \\\\ \\t \\n \\r \\xHH in arguments\n"
        "\n"
        "options:\n"
        "  --rules R   fraktor (the default), or pekko: its schemes, uids and comparisons\n"
        "  --json      {\"ok\":true,...} or {\"ok\":false,\"error\",\"at\",\"segment\",\"message\"}; with two\n"
        "              arguments also \"arg\", which of them is wrong\n"
        "  --          what follows is an argument even if it begins with '-'\n"
        "\n"
        "Exit code: 0 there is an answer (also \"no\"), 1 refused, 2 wrong usage.\n"
        "\n"
        "example: fraktor path resolve fraktor://sys/user/a/b ../c");
}

/* ---- asking --------------------------------------------------------------------------------- */

/* What was asked is no path at all; op tells which example will help. what is foreign. */
static int usage(const path_op *op, const char *why, const char *what)
{
    enum { SHOWN_MAX = 60 };
    fk_str text = fk_str_of(what);
    bool cut = text.len > SHOWN_MAX;

    fflush(stdout);
    fprintf(stderr, "fraktor path: %s", why);
    cli_show_text(stderr, cut ? (fk_str){ what, SHOWN_MAX } : text);
    fprintf(stderr, "%s\nTry 'fraktor path --help'.\nexample: %s\n", cut ? "..." : "",
            (op != NULL ? op : path_op_at(0))->example);
    return CLI_USAGE;
}

/* One sentence, and the byte: "path: the port is larger than 65535 (invalid_authority, byte 14)". */
static void print_fault(const path_op *op, const path_answer *answer, const fk_str *arg)
{
    const fk_path_fault *fault = &answer->fault;
    fflush(stdout);
    cli_show_caret(stderr, arg[answer->fault_arg], fault->at);
    fprintf(stderr, "fraktor path: %s (%s, byte %zu", fault->message, path_code(fault->err),
            fault->at);
    if (fault->segment >= 0) fprintf(stderr, " in segment %d", (int)fault->segment);
    if (op->arg_count > 1) fprintf(stderr, " of argument %zu", answer->fault_arg + 1);
    fputs(")\n", stderr);
}

static int ask(const path_op *op, char **argv, const path_options *options)
{
    path_answer answer = { .fault = { .err = FK_OK } };
    fk_str arg[PATH_ARGS_MAX] = { { NULL, 0 } };

    for (size_t i = 0; i < op->arg_count; i++) arg[i] = fk_str_of(argv[i]);
    op->run(&options->path, arg, &answer);
    bool ok = answer.fault.err == FK_OK;
    if (!ok && fk_path_code(answer.fault.err) == NULL) return usage(op, answer.fault.message, "");
    if (options->json) {
        path_print_json(stdout, op, &answer);
    } else if (ok) {
        path_print_text(stdout, &answer);
    } else {
        print_fault(op, &answer, arg);
    }
    return ok ? CLI_OK : CLI_FAILED;
}

/* ---- command line --------------------------------------------------------------------------- */

static const struct option OPTIONS[] = {
    { "rules", required_argument, NULL, 'r' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static bool take_rules(const char *text, fk_rules *out)
{
    if (strcmp(text, "fraktor") != 0 && strcmp(text, "pekko") != 0) return false;
    *out = text[0] == 'p' ? FK_RULES_PEKKO : FK_RULES_FRAKTOR;
    return true;
}

/* Gives CLI_OK, or the exit code after saying why not. */
static int parse(int argc, char **argv, path_options *out)
{
    int opt;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        if (opt == 'r') {
            if (take_rules(optarg, &out->path.rules)) continue;
            return usage(NULL, "--rules is fraktor or pekko, not ", optarg);
        } else if (opt == 'j') {
            out->json = true;
        } else if (opt == 'h') {
            help();
            out->helped = true;
            return CLI_OK;
        } else if (opt == ':') {
            return usage(NULL, "a value is missing after ", argv[optind - 1]);
        } else {
            return usage(NULL,
                         "there is no such option ('--' ends the options): ", argv[optind - 1]);
        }
    }
    return CLI_OK;
}

/* A lower-case word is more likely an operation mistyped than a path. */
static bool is_word(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "abcdefghijklmnopqrstuvwxyz-")] == '\0';
}

int cli_path(int argc, char **argv)
{
    path_options options = { .path = { .rules = FK_RULES_FRAKTOR } };
    int code = parse(argc, argv, &options);
    if (code != CLI_OK || options.helped) return code;

    char **rest = argv + optind;
    size_t count = (size_t)(argc - optind);
    if (count == 0) return usage(NULL, "which operation, or which path?", "");
    if (strcmp(rest[0], "batch") == 0) {
        if (count > 1) return usage(NULL, "batch reads from stdin and takes no arguments", "");
        return path_batch(stdin, stdout, &options.path);
    }
    const path_op *op = path_op_find(fk_str_of(rest[0]));
    if (op == NULL) {
        if (count > 1 || is_word(rest[0])) return usage(NULL, "there is no operation ", rest[0]);
        return ask(path_op_at(0), rest, &options);
    }
    if (count - 1 != op->arg_count) {
        return usage(op,
                     count - 1 < op->arg_count ? "too few arguments, it takes "
                                               : "too many arguments, it takes ",
                     op->args);
    }
    return ask(op, rest + 1, &options);
}
