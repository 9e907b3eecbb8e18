/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The echo and the sink of a node. */

#include "node.h"
#include "node_admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_text(const fk_msg *msg, const char *text)
{
    return msg->type == &fk_type_text && msg->len == strlen(text) &&
           memcmp(msg->data, text, msg->len) == 0;
}

/* ---- echo ------------------------------------------------------------------------------------ */

static fk_err echo_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (msg->type == &fk_type_text || msg->type == &fk_type_bytes) {
        fk_str bytes = { msg->data, msg->len };
        return fk_reply(ctx, (fk_out){ msg->type, &bytes });
    }
    /* What a message owns cannot be given away twice. */
    if (msg->type->drop != NULL) return fk_unhandled(ctx, msg);
    return fk_reply(ctx, (fk_out){ msg->type, msg->data });
}

/* ---- sink ------------------------------------------------------------------------------------ */

typedef struct sink {
    uint64_t count;
    uint64_t first, last; /* of the texts that are numbers; 0: there was none */
    uint64_t gaps;        /* where the next number was left out */
    uint64_t backwards;   /* where it was not above the last */
} sink;

static void sink_number(sink *self, const fk_msg *msg)
{
    char text[24] = "";
    if (msg->type != &fk_type_text || msg->len >= sizeof text) return;
    memcpy(text, msg->data, msg->len);
    uint64_t number = strtoull(text, NULL, 10);
    if (number == 0) return;
    if (self->first == 0) self->first = number;
    if (self->last != 0 && number <= self->last) self->backwards++;
    if (self->last != 0 && number > self->last + 1) self->gaps++;
    self->last = number;
}

static fk_err sink_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sink *self = state;
    if (is_text(msg, "?")) {
        char text[160];
        int len = snprintf(text, sizeof text,
                           "count=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64 " gaps=%" PRIu64
                           " backwards=%" PRIu64,
                           self->count, self->first, self->last, self->gaps, self->backwards);
        return fk_reply(ctx, FK_TEXT_AT(((fk_str){ text, (size_t)len })));
    }
    self->count++;
    sink_number(self, msg);
    return FK_OK;
}

fk_err node_actors_spawn(fk_system *sys)
{
    static const fk_props ECHO = { .receive = echo_receive };
    static const fk_props SINK = { .receive = sink_receive, .state_size = sizeof(sink) };
    fk_ref ref;
    fk_err err = fk_spawn(sys, FK_STR("echo"), &ECHO, &ref);
    if (err == FK_OK) err = fk_spawn(sys, FK_STR("sink"), &SINK, &ref);
    return err == FK_OK ? node_admin_spawn(sys) : err;
}
