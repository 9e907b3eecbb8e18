/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sweep's scenarios of messages that go to other systems and come from them. What comes and does
 * not get through for want of memory is a dead letter, not an error. */

#include <string.h>

#include "core/system.h"
#include "oom/sweep.h"
#include "remote/mail.h"
#include "remote/remote.h"

typedef struct parcel {
    int64_t number;
    fk_ref who;
    unsigned char filling[200];
} parcel;
FK_MESSAGE(parcel);
FK_CODEC_STRUCT(parcel, 1, FK_FIELD(parcel, number), FK_FIELD(parcel, who),
                FK_FIELD_ARRAY(parcel, filling));

static const char OTHER[] = "fraktor://b@10.0.0.2:2/user/other#5";

static fk_ref other, question;
static unsigned char frame[8192];

static fk_err asked(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    question = msg->sender;
    return FK_OK;
}

static fk_err ask_once(fk_ctx *ctx, void *arg)
{
    fk_ref silent;
    (void)arg;
    CHECK_OK(fk_spawn(arg, FK_STR("silent"), &(fk_props){ .receive = asked }, &silent));
    return fk_ask(ctx, silent, FK_TEXT("?"), 1, FK_SECONDS(9));
}

static void prepare_mail(sweep *s)
{
    fk_props props = { .receive = probe_receive, .state = &s->probe };
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
    CHECK_OK(fk_resolve(s->r.sys, fk_str_of(OTHER), &other, NULL));
    rig_do(&s->r, s->doer, ask_once, s->r.sys);
    CHECK(!fk_ref_is_none(question));
}

static fk_err mail_open(sweep *s, fk_mail **out)
{
    static const fk_codec *const CODECS[] = { &fk_codec_parcel, NULL };
    fk_mail_config config = { .codecs = CODECS, .frame_max = 8000, .frame_max_large = 8000 };
    return fk__mail_create(fk__remote_of(s->r.sys), &config, out);
}

/* ---- writing ------------------------------------------------------------------------------------------ */

static void write_one(sweep *s, fk_mail *mail, fk_mail_peer *peer, fk_ref sender, fk_out what,
                      const char *elements)
{
    static const fk_authority_key B = { { "b", 1 }, { "10.0.0.2", 8 }, 2 };
    fk_authority authority = { .key = B };
    fk_letter_path path = { .authority = &authority,
                            .expression = { .elements = FK_STR(""), .uid = 0, .count = 2 } };
    fk_codec_fault fault;
    fk_local *local = fk__local_enter(s->r.sys);
    fk_node *node = fk__node_create(&local->cache, what);
    if (node == NULL) {
        note(s, local->cache.err);
    } else {
        node->sender = fk__sender_pack(sender.slot, sender.generation);
        fk_letter letter = { .node = node, .to = other };
        if (elements != NULL) {
            path.expression.elements = fk_str_of(elements);
            letter.path = &path;
        }
        fk_mail_room room = { .to = frame, .size = sizeof(frame) };
        fk_err err = fk__mail_write(mail, peer, &letter, &room, &fault);
        if (!note(s, err)) CHECK_ERR(fault.err, FK_E_NOMEM);
        fk__node_drop_contents(&local->cache, node);
        fk__node_free(&local->cache, node);
    }
    fk__local_leave(local);
}

static void write_all(sweep *s)
{
    fk_mail *mail = NULL;
    fk_mail_peer peer = { .cache = NULL };
    parcel with = { 7, s->target, { 0 } };
    if (!note(s, mail_open(s, &mail))) return;
    for (int times = 0; times < 2; times++) {
        write_one(s, mail, &peer, s->target, FK_TEXT("text"), NULL);
        write_one(s, mail, &peer, question, FK_TEXT("asked"), NULL);
        write_one(s, mail, &peer, s->doer, FK_MSG_AT(parcel, &with), NULL);
        write_one(s, mail, &peer, FK_REF_NONE, FK_IDENTIFY(3), "/user/a*");
        write_one(s, mail, &peer, FK_REF_NONE, FK_MSG_REF(s->target), NULL);
    }
    fk__mail_forget(mail, &peer);
    fk__mail_destroy(mail);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

typedef struct letter {
    int32_t serializer;
    const char *manifest;
    fk_str payload;
} letter;

static void read_one(sweep *s, fk_mail *mail, fk_mail_peer *peer, const char *to, letter what)
{
    fk_authority from = { .text = FK_STR("b@10.0.0.2:2") };
    fk_wire_fault fault;
    char path[128];
    fk_path_of(s->r.sys, s->target, path, sizeof(path));
    fk_wire_envelope e = { .serializer = what.serializer,
                           .sender = { .text = fk_str_of(OTHER) },
                           .recipient = { .text = fk_str_of(to != NULL ? to : path) },
                           .manifest = { .text = fk_str_of(what.manifest) },
                           .payload = what.payload };
    fk_local *local = fk__local_enter(s->r.sys);
    CHECK_OK(fk__mail_read(mail, local, peer, &from, &e, &fault));
    fk__local_leave(local);
    rig_run(&s->r);
}

static fk_str misc_bytes(const fk_wire_misc *misc, unsigned char *to)
{
    size_t size = fk__misc_size(misc);
    fk__misc_encode(misc, to, size);
    return (fk_str){ (const char *)to, size };
}

static fk_str selection_bytes(unsigned char *to)
{
    fk_wire_pattern patterns[] = { { .kind = FK_PATTERN_NAME, .text = FK_STR("user") },
                                   { .kind = FK_PATTERN_GLOB, .text = FK_STR("t*") } };
    fk_wire_selection selection = { .serializer = FK_SERIALIZER_TEXT,
                                    .message = FK_STR("selected"),
                                    .patterns = { .count = 2, .items = patterns } };
    size_t size = fk__selection_size(&selection);
    fk__selection_encode(&selection, to, size);
    return (fk_str){ (const char *)to, size };
}

static void read_all(sweep *s)
{
    static char large[3000];
    unsigned char bytes[5][512];
    fk_mail *mail = NULL;
    fk_mail_peer peer = { .cache = NULL };
    fk_wire_misc identify = { .kind = FK_MISC_IDENTIFY };
    identify.as.identify.id =
        (fk_wire_payload){ .serializer = FK_SERIALIZER_TEXT, .message = FK_STR("mark") };
    fk_wire_misc failure = { .kind = FK_MISC_FAILURE };
    failure.as.status =
        (fk_wire_payload){ .serializer = FK_SERIALIZER_TEXT, .message = FK_STR("why") };
    fk_wire_misc ref = { .kind = FK_MISC_REF };
    ref.as.ref.path = FK_STR("fraktor://c@10.0.0.3:3/user/met");
    if (!note(s, mail_open(s, &mail))) return;
    for (int times = 0; times < 2; times++) {
        read_one(s, mail, &peer, NULL, (letter){ FK_SERIALIZER_TEXT, "", FK_STR("text") });
        read_one(s, mail, &peer, NULL, (letter){ FK_SERIALIZER_BYTES, "", { large, 3000 } });
        read_one(s, mail, &peer, NULL, (letter){ 16, "A", misc_bytes(&identify, bytes[0]) });
        read_one(s, mail, &peer, NULL, (letter){ 16, "E", misc_bytes(&failure, bytes[1]) });
        read_one(s, mail, &peer, NULL, (letter){ 16, "G", misc_bytes(&ref, bytes[2]) });
        read_one(s, mail, &peer, NULL, (letter){ 99, "x", FK_STR("?") });
        read_one(s, mail, &peer, "fraktor://fraktor@10.0.0.1:1/",
                 (letter){ FK_SERIALIZER_SELECTION, "", selection_bytes(bytes[3]) });
    }
    fk__mail_forget(mail, &peer);
    fk__mail_destroy(mail);
    if (atomic_load(&s->r.refused) == 0) CHECK(s->probe.count >= 8); /* all that can be got */
}

const scenario SWEEP_MAIL[] = {
    { "@mail going out", prepare_mail, write_all, 0 },
    { "@mail coming in", prepare_mail, read_all, 0 },
    { NULL, NULL, NULL, 0 },
};
