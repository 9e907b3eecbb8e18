/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "node_admin.h"

#include "cli.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MAX = 16384, SEND_MAX = 10000000, MEET_SECONDS = 10 };

typedef struct admin {
    fk_ref met;
    fk_ref asker;     /* of the meeting under way */
    uint64_t meeting; /* its number */
    uint64_t terminated, address_terminated;
    node_calls calls;
    char text[COMMAND_MAX]; /* of the command that is being done */
} admin;

/* Counted on whichever thread refuses a message. */
static _Atomic uint64_t invalid_associations;

static void on_invalid_association(void *user, const fk_event *event)
{
    (void)user;
    (void)event;
    atomic_fetch_add(&invalid_associations, 1);
}

/* ---- answers --------------------------------------------------------------------------------- */

static fk_err answer(fk_ctx *ctx, fk_ref to, const char *text)
{
    return fk_tell(ctx, to, FK_TEXT_AT(fk_str_of(text)));
}

static fk_err reply(fk_ctx *ctx, const fk_msg *msg, const char *text)
{
    return answer(ctx, msg->sender, text);
}

static fk_err reply_err(fk_ctx *ctx, const fk_msg *msg, fk_err err)
{
    char text[160];
    if (err == FK_OK) return reply(ctx, msg, "ok");
    snprintf(text, sizeof text, "error %s: %s", fk_err_name(err), fk_err_text(err));
    return reply(ctx, msg, text);
}

/* ---- commands: what follows the word, and the message to answer -------------------------------- */

typedef fk_err (*admin_fn)(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest);

static fk_err do_assoc(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    (void)self;
    char *list = node_assoc_text(fk_system_of(ctx), strcmp(rest, "json") == 0);
    if (list == NULL) return reply_err(ctx, msg, FK_E_NOMEM);
    size_t size = strlen(list) + 4;
    char *text = malloc(size);
    if (text != NULL) snprintf(text, size, "ok\n%s", list);
    fk_err err = text != NULL ? reply(ctx, msg, text) : reply_err(ctx, msg, FK_E_NOMEM);
    free(text);
    free(list);
    return err;
}

static fk_err do_quarantine(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    (void)self;
    return reply_err(ctx, msg, fk_authority_quarantine(fk_system_of(ctx), fk_str_of(rest)));
}

static fk_err do_clear(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    (void)self;
    return reply_err(ctx, msg, fk_authority_override(fk_system_of(ctx), fk_str_of(rest)));
}

static fk_err do_force(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    (void)self;
    return reply_err(ctx, msg, fk_authority_override_force(fk_system_of(ctx), fk_str_of(rest)));
}

/* ---- of the cluster ---- */

/* Gives and frees a text that begins with "ok", or says err. */
static fk_err reply_text(fk_ctx *ctx, const fk_msg *msg, char *text, fk_err err)
{
    if (text == NULL && err == FK_E_NOT_READY) {
        return reply(
            ctx, msg,
            "error FK_E_NOT_READY: that node is in no cluster, or knows no members yet (was"
            " it started with --store?)");
    }
    if (text == NULL) return reply_err(ctx, msg, err);
    err = reply(ctx, msg, text);
    free(text);
    return err;
}

/* True: the rest began with that word, and is what follows it now. */
static bool take_word(const char **rest, const char *word)
{
    size_t len = strlen(word);
    if (strncmp(*rest, word, len) != 0) return false;
    if ((*rest)[len] != '\0' && (*rest)[len] != ' ') return false;
    *rest += len;
    if (**rest == ' ') ++*rest;
    return true;
}

static fk_err do_members(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    fk_err err;
    (void)self;
    char *text = node_members_text(fk_system_of(ctx), take_word(&rest, "json"), &err);
    return reply_text(ctx, msg, text, err);
}

static fk_err do_grains(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    fk_err err;
    (void)self;
    bool json = take_word(&rest, "json");
    if (!json && !take_word(&rest, "text")) return reply_err(ctx, msg, FK_E_INVALID);
    char *text = node_grains_text(fk_system_of(ctx), json, rest, &err);
    return reply_text(ctx, msg, text, err);
}

static fk_err do_where(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    fk_err err;
    bool json = take_word(&rest, "json");
    if (!json && !take_word(&rest, "text")) return reply_err(ctx, msg, FK_E_INVALID);
    /* The key may hold any byte, and ends where the message does. */
    const char *end = rest + msg->len - (size_t)(rest - self->text);
    const char *space = memchr(rest, ' ', (size_t)(end - rest));
    if (space == NULL) return reply_err(ctx, msg, FK_E_KEY);
    fk_str kind = { rest, (size_t)(space - rest) };
    fk_str key = { space + 1, (size_t)(end - space - 1) };
    char *text = node_where_text(fk_system_of(ctx), json, kind, key, &err);
    if (err == FK_E_UNKNOWN_KIND) {
        return reply(ctx, msg, "error FK_E_UNKNOWN_KIND: no member runs grains of that kind");
    }
    return reply_text(ctx, msg, text, err);
}

static fk_err do_call(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    fk_str text = { rest, msg->len - (size_t)(rest - self->text) };
    fk_err err = node_calls_begin(ctx, &self->calls, msg->sender, text);
    if (err == FK_E_NOT_READY) return reply_text(ctx, msg, NULL, err);
    return err != FK_OK ? reply_err(ctx, msg, err) : FK_OK;
}

/* Says how many were taken, and why the first that was not. */
static fk_err do_send(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    char word[24] = "", text[160];
    uint64_t count, taken = 0;
    fk_err first = FK_OK;
    fk_ref to;
    (void)self;
    const char *path = strchr(rest, ' ');
    if (path == NULL || (size_t)(path - rest) >= sizeof word) {
        return reply_err(ctx, msg, FK_E_INVALID);
    }
    memcpy(word, rest, (size_t)(path - rest));
    if (!cli_number(word, 1, SEND_MAX, &count)) return reply_err(ctx, msg, FK_E_INVALID);
    fk_err err = fk_resolve(fk_system_of(ctx), fk_str_of(path + 1), &to, NULL);
    if (err != FK_OK) return reply_err(ctx, msg, err);
    for (uint64_t i = 1; i <= count; i++) {
        int len = snprintf(word, sizeof word, "%" PRIu64, i);
        err = fk_tell(ctx, to, FK_TEXT_AT(((fk_str){ word, (size_t)len })));
        if (err == FK_OK) taken++;
        if (first == FK_OK) first = err;
    }
    snprintf(text, sizeof text, "ok taken=%" PRIu64 " refused=%" PRIu64 " first=%s", taken,
             count - taken, fk_err_name(first));
    return reply(ctx, msg, text);
}

static fk_err do_meet(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    fk_ref to;
    fk_err err = fk_resolve(fk_system_of(ctx), fk_str_of(rest), &to, NULL);
    if (err == FK_OK) {
        err = fk_ask(ctx, to, FK_IDENTIFY(0), ++self->meeting, FK_SECONDS(MEET_SECONDS));
    }
    if (err != FK_OK) return reply_err(ctx, msg, err);
    self->asker = msg->sender;
    return FK_OK;
}

static fk_err do_tell(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    return reply_err(ctx, msg, fk_tell(ctx, self->met, FK_TEXT_AT(fk_str_of(rest))));
}

static fk_err do_watch(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    (void)rest;
    return reply_err(ctx, msg, fk_watch(ctx, self->met));
}

static fk_err do_counts(fk_ctx *ctx, admin *self, const fk_msg *msg, const char *rest)
{
    char text[384];
    fk_stats stats;
    fk_remoting_stats others;
    uint64_t letters = 0;
    (void)rest;
    fk_stats_get(fk_system_of(ctx), &stats);
    fk_err err = fk_remoting_stats_get(fk_system_of(ctx), &others);
    if (err != FK_OK) return reply_err(ctx, msg, err);
    for (int i = 0; i < FK_REASON_COUNT; i++) letters += stats.dead_letters[i];
    snprintf(text, sizeof text,
             "ok terminated=%" PRIu64 " address_terminated=%" PRIu64 " invalid_association=%" PRIu64
             " dead_letters=%" PRIu64 " memory=%" PRIu64 " systems=%" PRIu32 " references=%" PRIu32
             " quarantined=%" PRIu32 " quarantined_over=%" PRIu64,
             self->terminated, self->address_terminated, atomic_load(&invalid_associations),
             letters, stats.memory, others.systems, others.references, others.quarantined,
             others.quarantined_over);
    return reply(ctx, msg, text);
}

static const struct {
    const char *word;
    admin_fn run;
} WORDS[] = {
    { "assoc", do_assoc },   { "quarantine", do_quarantine },
    { "clear", do_clear },   { "force", do_force },
    { "send", do_send },     { "meet", do_meet },
    { "tell", do_tell },     { "watch", do_watch },
    { "counts", do_counts }, { "members", do_members },
    { "grains", do_grains }, { "where", do_where },
    { "call", do_call },
};

/* ---- the actor ------------------------------------------------------------------------------- */

static fk_err admin_command(fk_ctx *ctx, admin *self, const fk_msg *msg)
{
    char *text = self->text;
    if (msg->len >= sizeof self->text) return reply_err(ctx, msg, FK_E_LIMIT);
    memcpy(text, msg->data, msg->len);
    text[msg->len] = '\0';
    char *rest = strchr(text, ' ');
    if (rest != NULL) *rest++ = '\0';
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strcmp(WORDS[i].word, text) == 0) {
            return WORDS[i].run(ctx, self, msg, rest != NULL ? rest : text + msg->len);
        }
    }
    return reply(ctx, msg,
                 "error FK_E_INVALID: the commands are assoc, quarantine, clear, force, send, meet,"
                 " tell, watch, counts, members, grains, where, call");
}

static fk_err admin_met(fk_ctx *ctx, admin *self, const fk_answer *a)
{
    char text[1024] = "ok ";
    if (node_calls_answer(ctx, &self->calls, a) || a->id != self->meeting) return FK_OK;
    const fk_identity *identity = FK_AS(fk_identity, &a->reply);
    if (identity == NULL || fk_ref_is_none(identity->ref)) {
        return answer(ctx, self->asker, "error FK_E_PID_UNKNOWN: nobody is there");
    }
    self->met = identity->ref;
    fk_path_of(fk_system_of(ctx), self->met, text + 3, sizeof text - 3);
    return answer(ctx, self->asker, text);
}

static fk_err admin_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    admin *self = state;
    if (msg->type == &fk_type_text) return admin_command(ctx, self, msg);
    const fk_answer *a = FK_AS(fk_answer, msg);
    if (a != NULL) return admin_met(ctx, self, a);
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end == NULL) return fk_unhandled(ctx, msg);
    self->terminated++;
    if (end->address_terminated) self->address_terminated++;
    return FK_OK;
}

fk_err node_admin_spawn(fk_system *sys)
{
    static const fk_props ADMIN = { .receive = admin_receive, .state_size = sizeof(admin) };
    fk_subscription ignored;
    fk_ref ref;
    fk_err err = fk_subscribe(sys, FK_TOPIC(INVALID_ASSOCIATION), FK_LEVEL_DEBUG,
                              on_invalid_association, NULL, &ignored);
    return err == FK_OK ? fk_spawn(sys, FK_STR("admin"), &ADMIN, &ref) : err;
}
