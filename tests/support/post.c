/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/send.h"

static post *office;

static uint32_t side_of(const fk_system *sys)
{
    return sys == office->side[0].o.r.sys ? 0 : 1;
}

/* The letter is written at once; the node is taken. */
static fk_err letter_write(fk_local *local, fk_letter *letter)
{
    post *p = office;
    uint32_t from = side_of(local->sys);
    post_side *side = &p->side[from];
    CHECK(p->written < POST_FRAMES);
    post_frame *frame = &p->frame[p->written];
    frame->from = from;
    fk_mail_room room = { .to = frame->bytes, .size = sizeof(frame->bytes) };
    fk_err err = fk__mail_write(side->mail, &side->peer, letter, &room, &side->fault);
    frame->len = room.len;
    if (err == FK_OK) {
        p->written++;
    } else {
        side->err = err;
        side->unsent++;
        CHECK_ERR(side->fault.err, err);
        CHECK(side->fault.message != NULL);
    }
    fk__node_drop_contents(&local->cache, letter->node);
    fk__node_free(&local->cache, letter->node);
    return err;
}

/* Instead of the remote part's own. */
static fk_err post_send(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref to, fk_node *node)
{
    (void)ctx;
    (void)proxy;
    return letter_write(local, &(fk_letter){ .node = node, .to = to });
}

static fk_err post_select(void *ctx, fk_local *local, const fk_expression *e, fk_node *node)
{
    post_side *side = &office->side[side_of(local->sys)];
    fk_letter_path path = { .authority = &side->authority, .expression = *e };
    (void)ctx;
    return letter_write(local, &(fk_letter){ .node = node, .path = &path });
}

static void side_start(post *p, uint32_t i, const post_config *config)
{
    static const char *const NAMES[] = { "a", "b" };
    post_side *side = &p->side[i];
    memset(side, 0, sizeof(*side));
    fk_system_config system = { .name = NAMES[i],
                                .paths = { .rules = config->rules },
                                .scheme = config->scheme,
                                .remoting = { .host = "10.0.0.1", .port = (uint16_t)(1000 + i) } };
    observer_start_with(&side->o, system);
    fk_mail_config mail = { .codecs = config->codecs,
                            .own_uid = 100 + i,
                            .frame_max = config->frame_max != 0 ? config->frame_max : 8192,
                            .frame_max_large = 16000,
                            .is_trusting = config->is_trusting };
    CHECK_OK(fk__mail_create(fk__remote_of(side->o.r.sys), &mail, &side->mail));
    side->authority.text = i == 0 ? FK_STR("b@10.0.0.1:1001") : FK_STR("a@10.0.0.1:1000");
    side->authority.key =
        (fk_authority_key){ fk_str_of(NAMES[1 - i]), FK_STR("10.0.0.1"), (uint16_t)(1001 - i) };
    side->o.r.sys->remote.send = post_send;
    side->o.r.sys->remote.select = post_select;
}

void post_start(post *p, post_config config)
{
    office = p;
    p->read = p->written = 0;
    p->read_err = FK_OK;
    for (uint32_t i = 0; i < 2; i++) side_start(p, i, &config);
}

void post_stop(post *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        post_side *side = &p->side[i];
        fk__mail_forget(side->mail, &side->peer);
        fk__mail_destroy(side->mail);
        for (int m = 0; m < 4; m++) free(side->memory[m]);
        rig_stop(&side->o.r);
    }
}

static fk_err side_read(post_side *to, fk_str envelope)
{
    fk_wire_envelope e;
    fk_wire_fault fault;
    FK_TRY(fk__envelope_decode(envelope, &e, &fault));
    fk_local *local = fk__local_enter(to->o.r.sys);
    fk_err err = fk__mail_read(to->mail, local, &to->peer, &to->authority, &e, &fault);
    fk__local_leave(local);
    return err;
}

fk_err post_inject(post *p, fk_str envelope)
{
    return side_read(&p->side[1], envelope);
}

void post_read(post *p)
{
    while (p->read < p->written) {
        const post_frame *frame = &p->frame[p->read++];
        fk_str bytes = { (const char *)frame->bytes + 4, frame->len - 4 };
        fk_err err = side_read(&p->side[1 - frame->from], bytes);
        if (err != FK_OK) p->read_err = err;
    }
}

void post_run(post *p)
{
    size_t turns;
    do {
        post_read(p);
        turns = rig_run(&p->side[0].o.r) + rig_run(&p->side[1].o.r);
    } while (turns != 0 || p->read != p->written);
    p->read = p->written = 0;
}

fk_wire_envelope post_last(const post *p)
{
    fk_wire_envelope e;
    CHECK(p->written > 0);
    const post_frame *frame = &p->frame[p->written - 1];
    CHECK_OK(
        fk__envelope_decode((fk_str){ (const char *)frame->bytes + 4, frame->len - 4 }, &e, NULL));
    return e;
}

fk_ref post_ref(post *p, uint32_t of, const char *path)
{
    char text[512];
    fk_ref ref = FK_REF_NONE;
    const fk_system *sys = p->side[of].o.r.sys;
    snprintf(text, sizeof(text), "%.*s%s", (int)sys->address_len, sys->address_text, path);
    CHECK_OK(fk_resolve(p->side[1 - of].o.r.sys, fk_str_of(text), &ref, NULL));
    return ref;
}

/* ---- compression --------------------------------------------------------------------------------- */

static const fk_compression_config TABLES = { POST_TABLE, 128, 2048 };
static const fk_hash_key TABLE_KEY = { 3, 4 };

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size);
    CHECK(memory != NULL);
    return memory;
}

static void tables_open(post *p)
{
    post_side *a = &p->side[0], *b = &p->side[1];
    if (b->peer.refs_in != NULL) return;
    b->memory[0] = zeroed(fk__compression_memory(&TABLES));
    b->memory[1] = zeroed(fk__compression_memory(&TABLES));
    fk__compression_init(&b->refs_in, &TABLES, &TABLE_KEY, b->memory[0]);
    fk__compression_init(&b->manifests_in, &TABLES, &TABLE_KEY, b->memory[1]);
    b->peer.refs_in = &b->refs_in;
    b->peer.manifests_in = &b->manifests_in;
    a->memory[0] = zeroed(fk__table_memory(POST_TABLE, 2048));
    a->memory[1] = zeroed(fk__table_memory(POST_TABLE, 2048));
    fk__table_init(&a->refs_out, &TABLE_KEY, POST_TABLE, 2048, a->memory[0]);
    fk__table_init(&a->manifests_out, &TABLE_KEY, POST_TABLE, 2048, a->memory[1]);
    a->peer.refs_out = &a->refs_out;
    a->peer.manifests_out = &a->manifests_out;
}

static void advertise(fk_compression *from, fk_wire_table *to)
{
    fk_wire_advertisement advertisement = { .has = 0 };
    if (!fk__compression_advertise(from, &advertisement)) return;
    fk__table_clear(to, (uint8_t)advertisement.version);
    const fk_str *keys = advertisement.keys.items;
    const uint32_t *values = advertisement.values.items;
    for (uint32_t i = 0; i < advertisement.keys.count; i++) {
        CHECK(fk__table_add(to, keys[i], (uint16_t)values[i]));
    }
}

void post_compress(post *p)
{
    tables_open(p);
    advertise(&p->side[1].refs_in, &p->side[0].refs_out);
    advertise(&p->side[1].manifests_in, &p->side[0].manifests_out);
}
