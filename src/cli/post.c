/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor tell and fraktor ask: one message to one actor of a running system. */

#include "cli.h"
#include "client.h"
#include "foreign.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 200000 };

static void help(const char *command)
{
    bool asks = strcmp(command, "ask") == 0;
    printf("usage: fraktor %s PATH [TYPE] VALUE [--timeout MS] [--listen HOST:PORT] [--json]\n\n",
           command);
    puts(
        asks
            ? "Sends a message to an actor of a running system, and prints its answer; how long that took,\n"
              "with connecting, goes to stderr.\n"
            : "Sends a message to an actor of a running system, and waits until it has arrived.\n");
    printf(
        "  PATH                complete, fraktor.tcp://SYSTEM@HOST:PORT/user/NAME, or pekko://...\n"
        "  TYPE                of the value: text (the default), int, long, bytes\n"
        "  VALUE               text as it is, or after the word text as a JSON string; a number;\n"
        "                      bytes in hexadecimal\n"
        "  --timeout MS        how long it may take (%d)\n"
        "  --listen HOST:PORT  where answers can reach us (127.0.0.1, any port)\n"
        "  --json              {\"ok\":true,...} or {\"ok\":false,\"error\",\"message\"}\n"
        "\n"
        "Exit code: 0 ok, 1 not reached or no answer, 2 wrong usage.\n"
        "\n"
        "example: fraktor %s fraktor.tcp://demo@127.0.0.1:4001/user/%s hi\n",
        CLIENT_TIMEOUT_MS, command, asks ? "echo" : "sink");
}

/* ---- values ------------------------------------------------------------------------------------------ */

/* What was read from the command line; the request borrows it. */
typedef struct post_value {
    char bytes[VALUE_MAX];
    fk_str text;
    fk_int number;
    fk_long number_long;
} post_value;

/* A JSON string without its quotes; no \u, which no shell needs. False: it is none. */
static bool unquote(const char *text, post_value *out)
{
    static const char FROM[] = "\"\\/ntrbf", TO[] = "\"\\/\n\t\r\b\f";
    size_t len = strlen(text), at = 0;
    if (len < 2 || len > VALUE_MAX || text[0] != '"' || text[len - 1] != '"') return false;
    for (size_t i = 1; i < len - 1; i++) {
        char c = text[i];
        if (c == '"') return false;
        if (c == '\\') {
            const char *found = text[++i] != '\0' ? strchr(FROM, text[i]) : NULL;
            if (found == NULL || i == len - 1) return false;
            c = TO[found - FROM];
        }
        out->bytes[at++] = c;
    }
    out->text = (fk_str){ out->bytes, at };
    return true;
}

static bool unhex(const char *text, post_value *out)
{
    size_t len = strlen(text);
    if (len % 2 != 0 || len / 2 > VALUE_MAX) return false;
    if (strspn(text, "0123456789abcdefABCDEF") != len) return false;
    for (size_t i = 0; i < len; i += 2) {
        char pair[3] = { text[i], text[i + 1], '\0' };
        out->bytes[i / 2] = (char)strtoul(pair, NULL, 16);
    }
    out->text = (fk_str){ out->bytes, len / 2 };
    return true;
}

static bool number(const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *out >= min && *out <= max;
}

/* False: the text is none of that type. */
static bool post_value_read(const char *type, const char *text, post_value *value, fk_out *out)
{
    int64_t n = 0;
    if (strcmp(type, "int") == 0) {
        bool ok = number(text, INT32_MIN, INT32_MAX, &n);
        value->number = (fk_int)n;
        *out = (fk_out){ &fk_type_fk_int, &value->number };
        return ok;
    }
    if (strcmp(type, "long") == 0) {
        bool ok = number(text, INT64_MIN, INT64_MAX, &n);
        value->number_long = n;
        *out = (fk_out){ &fk_type_fk_long, &value->number_long };
        return ok;
    }
    bool is_bytes = strcmp(type, "bytes") == 0;
    *out = (fk_out){ is_bytes ? &fk_type_bytes : &fk_type_text, &value->text };
    if (is_bytes) return unhex(text, value);
    if (text[0] == '"' && type[0] != '\0') return unquote(text, value);
    value->text = fk_str_of(text);
    return true;
}

/* ---- the answer -------------------------------------------------------------------------------------- */

static void print_value(const client_answer *answer)
{
    if (answer->type == &fk_type_text) {
        cli_json_text(stdout, (fk_str){ answer->data, answer->len });
    } else if (answer->type == &fk_type_fk_int) {
        fk_int n;
        memcpy(&n, answer->data, sizeof n);
        printf("%" PRId32, n);
    } else if (answer->type == &fk_type_fk_long) {
        fk_long n;
        memcpy(&n, answer->data, sizeof n);
        printf("%" PRId64, n);
    } else if (answer->type == &fk_type_fk_boolean) {
        fputs(answer->data[0] != 0 ? "true" : "false", stdout);
    } else { /* JSON has no bytes: hexadecimal, in quotes */
        putchar('"');
        for (size_t i = 0; i < answer->len; i++) printf("%02x", (unsigned char)answer->data[i]);
        putchar('"');
    }
}

static void print_json(const client_answer *answer, bool asks)
{
    if (answer->err != FK_OK) {
        printf("{\"ok\":false,\"error\":\"%s\",\"message\":", fk_err_name(answer->err));
        cli_json_text(stdout, fk_str_of(answer->why));
    } else {
        printf("{\"ok\":true");
        if (asks) {
            fputs(",\"type\":", stdout);
            cli_json_text(stdout, fk_str_of(answer->type->name));
            fputs(",\"value\":", stdout);
            print_value(answer);
        }
        printf(",\"latency_ms\":%.3f", answer->seconds * 1e3);
    }
    puts("}");
}

static int post(const client_options *options, const client_request *request)
{
    client_answer answer;
    bool asks = request->wants_answer;
    bool ok = client_call(request, &answer);
    if (options->json) {
        print_json(&answer, asks);
    } else if (!ok) {
        cli_failed(options->command, "%s", answer.why);
    } else {
        if (asks) print_value(&answer);
        if (asks) putchar('\n');
        fflush(stdout);
        fprintf(stderr, "%s in %.3f ms\n", asks ? "answered" : "arrived", answer.seconds * 1e3);
    }
    client_answer_free(&answer);
    return ok ? CLI_OK : CLI_FAILED;
}

/* ---- command line ------------------------------------------------------------------------------------ */

static const struct option OPTIONS[] = { CLIENT_OPTIONS };

static int parse(int argc, char **argv, client_options *out)
{
    int opt, code = CLI_OK;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        if (!client_option(opt, argv, out, &code)) break;
    }
    return code;
}

static bool is_type(const char *word)
{
    static const char *const TYPES[] = { "text", "int", "long", "bytes" };
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(TYPES[i], word) == 0) return true;
    }
    return false;
}

/* A negative number after the word for one is no option: taken out of argv before options are looked
 * for. NULL: there is none. */
static const char *negative_take(int *argc, char **argv)
{
    for (int i = 2; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_number = strcmp(argv[i - 1], "int") == 0 || strcmp(argv[i - 1], "long") == 0;
        const char *text = argv[i];
        if (!is_number || text[0] != '-' || text[1] < '0' || text[1] > '9') continue;
        memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof argv[0]); /* with the NULL */
        --*argc;
        return text;
    }
    return NULL;
}

static int command(int argc, char **argv, bool asks)
{
    static post_value value;
    client_options options = { .command = argv[0], .help = help, .timeout_ms = CLIENT_TIMEOUT_MS };
    client_request request = { .wants_answer = asks };
    const char *negative = negative_take(&argc, argv);
    int code = parse(argc, argv, &options);
    if (code != CLI_OK || options.helped) return code;
    int words = argc - optind, count = words + (negative != NULL);
    if (count < 2)
        return cli_usage_error(argv[0], "to whom, and what? It takes a path and a value");
    bool has_type = count == 3;
    if (count > 3) return cli_usage_error(argv[0], "too much: '%s'", argv[argc - 1]);
    if (has_type && !is_type(argv[optind + 1])) {
        return cli_usage_error(argv[0], "'%s' is not text, int, long or bytes", argv[optind + 1]);
    }
    const char *type = has_type ? argv[optind + 1] : "";
    const char *text = negative != NULL ? negative : argv[argc - 1];
    if (!post_value_read(type, text, &value, &request.msg)) {
        return cli_usage_error(argv[0], "'%.60s' is not a value of type %s", text, type);
    }
    request.path = argv[optind];
    request.timeout = FK_MILLIS(options.timeout_ms);
    request.listen = options.listen;
    return post(&options, &request);
}

int cli_tell(int argc, char **argv)
{
    return command(argc, argv, false);
}

int cli_ask(int argc, char **argv)
{
    return command(argc, argv, true);
}
