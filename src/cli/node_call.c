/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calling a grain for somebody at a terminal: the admin asks, and passes on what comes. */

#include "cli.h"
#include "node_admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_MS_MAX = 86400000 };

/* Ids of calls have this bit, so that they are none of another question of the admin. */
#define CALL_BIT (UINT64_C(1) << 63)

/* The word before the next space. False: there is none. */
static bool take_until_space(fk_str *rest, fk_str *word)
{
    const char *space = rest->len != 0 ? memchr(rest->ptr, ' ', rest->len) : NULL;
    if (space == NULL) return false;
    *word = (fk_str){ rest->ptr, (size_t)(space - rest->ptr) };
    *rest = (fk_str){ space + 1, rest->len - word->len - 1 };
    return true;
}

static bool take_number(fk_str *rest, uint64_t min, uint64_t max, uint64_t *out)
{
    fk_str word;
    char text[24] = "";
    if (!take_until_space(rest, &word) || word.len >= sizeof text) return false;
    memcpy(text, word.ptr, word.len);
    return cli_number(text, min, max, out);
}

static node_call *find_call(node_calls *calls, uint64_t id)
{
    for (uint32_t i = 0; i < NODE_CALLS_MAX; i++) {
        if (calls->call[i].id == id) return &calls->call[i];
    }
    return NULL;
}

fk_err node_calls_begin(fk_ctx *ctx, node_calls *calls, fk_ref asker, fk_str rest)
{
    uint64_t ms, size;
    fk_str kind;
    if (!take_number(&rest, 1, CALL_MS_MAX, &ms) || !take_until_space(&rest, &kind)) {
        return FK_E_INVALID;
    }
    if (!take_number(&rest, 0, FK_GRAIN_KEY_MAX, &size)) return FK_E_KEY;
    if (rest.len < size + 1 || rest.ptr[size] != ' ') return FK_E_INVALID;
    fk_str key = { rest.ptr, size };
    fk_str text = { rest.ptr + size + 1, rest.len - size - 1 };
    node_call *call = find_call(calls, 0);
    if (call == NULL) return FK_E_OVERLOADED;
    uint64_t id = ++calls->last | CALL_BIT;
    fk_err err = fk_grain_ask(ctx, kind, key, FK_TEXT_AT(text), id, FK_MILLIS(ms));
    if (err == FK_OK) *call = (node_call){ id, asker, cli_seconds() };
    return err;
}

static fk_err pass_on(fk_ctx *ctx, const node_call *call, const fk_answer *a)
{
    double ms = (cli_seconds() - call->begun) * 1e3;
    const fk_msg *reply = &a->reply;
    char head[160];
    if (a->err != FK_OK) {
        snprintf(head, sizeof head, "error %s: %s", fk_err_name(a->err), fk_err_text(a->err));
        return fk_tell(ctx, call->asker, FK_TEXT_AT(fk_str_of(head)));
    }
    bool is_text = reply->type == &fk_type_text;
    int len = snprintf(head, sizeof head, "ok %.3f %s\n", ms, is_text ? "text" : "other");
    size_t more = is_text ? reply->len : strlen(reply->type->name);
    char *text = malloc((size_t)len + more);
    if (text == NULL) return FK_E_NOMEM;
    memcpy(text, head, (size_t)len);
    memcpy(text + len, is_text ? (const char *)reply->data : reply->type->name, more);
    fk_err err = fk_tell(ctx, call->asker, FK_TEXT_AT(((fk_str){ text, (size_t)len + more })));
    free(text);
    return err;
}

bool node_calls_answer(fk_ctx *ctx, node_calls *calls, const fk_answer *a)
{
    node_call *call = (a->id & CALL_BIT) != 0 ? find_call(calls, a->id) : NULL;
    if (call == NULL) return false;
    (void)pass_on(ctx, call, a); /* or whoever asked gives up by themselves */
    call->id = 0;
    return true;
}
