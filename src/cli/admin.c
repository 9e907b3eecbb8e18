/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "admin.h"

#include "cli.h"
#include "foreign.h"

#include <stdio.h>
#include <string.h>

void admin_complain(const client_options *options, const char *code, const char *why)
{
    if (options->json) {
        fputs("{\"ok\":false,\"error\":", stdout);
        cli_json_text(stdout, fk_str_of(code));
        fputs(",\"message\":", stdout);
        cli_json_text(stdout, fk_str_of(why));
        puts("}");
    } else {
        cli_failed(options->command, "%s", why);
    }
}

/* "error FK_E_STATE: not possible in this state" */
static void complain_as_told(const client_options *options, char *text)
{
    char *code = text + strcspn(text, " "), *end;
    if (*code != '\0') code++;
    end = strstr(code, ": ");
    if (end != NULL) *end = '\0';
    admin_complain(options, code, end != NULL ? end + 2 : text);
}

/* What a node says is foreign, too: nothing but lines of ASCII. */
static void make_plain(client_answer *answer)
{
    for (size_t i = 0; i < answer->len; i++) {
        char *c = &answer->data[i];
        if (*c != '\n' && (*c < 0x20 || *c > 0x7e)) *c = '?';
    }
}

bool admin_ask(const client_options *options, const char *node, fk_str text, client_answer *out)
{
    char path[600];
    snprintf(path, sizeof path, "%s/user/admin", node);
    client_request request = { .path = path,
                               .msg = { &fk_type_text, &text },
                               .wants_answer = true,
                               .timeout = FK_MILLIS(options->timeout_ms),
                               .listen = options->listen };
    if (!client_call(&request, out)) {
        admin_complain(options, fk_err_name(out->err), out->why);
    } else if (out->type != &fk_type_text) {
        admin_complain(options, "FK_E_TYPE", "its /user/admin is not that of a fraktor node");
    } else if (strncmp(out->data, "ok", 2) != 0) {
        make_plain(out);
        complain_as_told(options, out->data);
    } else {
        return true;
    }
    client_answer_free(out);
    return false;
}

int admin_print(const client_options *options, const char *node, fk_str text)
{
    client_answer answer;
    if (!admin_ask(options, node, text, &answer)) return CLI_FAILED;
    make_plain(&answer);
    if (answer.data[2] == '\n')
        fputs(answer.data + 3, stdout);
    else
        puts(options->json ? "{\"ok\":true}" : answer.data);
    client_answer_free(&answer);
    return CLI_OK;
}
