/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A telegram, little endian; text is two bytes of length and that many bytes:
 *
 *     version 1 | kind 1 | flags 1 | hops 1 | view 8
 *     CALL    request 16 | earlier 16 | low 8 | left_ms 4 | reply_to | grain_kind | key | cargo
 *     ANSWER  request 16 | err 4 | cargo
 *     MOVED   incarnation 8 | grain_kind | count 4 | count times: slot 4, epoch 8
 *     NEWS
 *     cargo   serializer 4, and unless that is 0: manifest | length 4 | bytes
 *
 * Nothing may follow. Measuring is writing to nowhere, so that the two cannot differ.
 */

#include "cluster/telegram.h"

enum {
    TELEGRAM_VERSION = 1,
    TELEGRAM_HEADER = 12,
    TELEGRAM_WANTS_ANSWER = 1, /* the only flag, of a CALL */
    TELEGRAM_CLAIM = 12,
    TELEGRAM_CLAIMS_MAX = 4096
};

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct telegram_pen {
    unsigned char *to; /* NULL: only measures */
    size_t at;
} telegram_pen;

static void telegram_put(telegram_pen *pen, uint64_t n, size_t size)
{
    for (size_t i = 0; i < size && pen->to != NULL; i++) {
        pen->to[pen->at + i] = (unsigned char)(n >> (8 * i));
    }
    pen->at += size;
}

static void telegram_put_bytes(telegram_pen *pen, fk_str bytes)
{
    if (pen->to != NULL && bytes.len > 0) memcpy(pen->to + pen->at, bytes.ptr, bytes.len);
    pen->at += bytes.len;
}

static void telegram_put_text(telegram_pen *pen, fk_str text)
{
    FK_ASSERT(text.len <= UINT16_MAX);
    telegram_put(pen, text.len, 2);
    telegram_put_bytes(pen, text);
}

static void telegram_put_request(telegram_pen *pen, fk_request request)
{
    telegram_put(pen, request.origin, 8);
    telegram_put(pen, request.seq, 8);
}

static void telegram_put_cargo(telegram_pen *pen, const fk_cargo *cargo)
{
    telegram_put(pen, (uint32_t)cargo->serializer, 4);
    if (cargo->serializer == 0) return;
    FK_ASSERT(cargo->bytes.len <= UINT32_MAX);
    telegram_put_text(pen, cargo->manifest);
    telegram_put(pen, cargo->bytes.len, 4);
    telegram_put_bytes(pen, cargo->bytes);
}

static void telegram_put_call(telegram_pen *pen, const fk_telegram *t)
{
    FK_ASSERT(t->request.origin != 0);
    FK_ASSERT(t->key.len > 0 && t->key.len <= FK_GRAIN_KEY_MAX);
    FK_ASSERT(t->grain_kind.len > 0 && t->grain_kind.len <= FK_KIND_NAME_MAX);
    FK_ASSERT(t->reply_to.len <= FK_MEMBER_TEXT_MAX);
    FK_ASSERT(t->reply_to.len > 0 || !t->wants_answer);
    telegram_put_request(pen, t->request);
    telegram_put_request(pen, t->earlier);
    telegram_put(pen, t->low, 8);
    telegram_put(pen, t->left_ms, 4);
    telegram_put_text(pen, t->reply_to);
    telegram_put_text(pen, t->grain_kind);
    telegram_put_text(pen, t->key);
    telegram_put_cargo(pen, &t->cargo);
}

/* claims may be NULL when only measuring. */
static void telegram_put_moved(telegram_pen *pen, const fk_telegram *t, const fk_slot_claim *claims)
{
    FK_ASSERT(t->claim_count <= TELEGRAM_CLAIMS_MAX);
    FK_ASSERT(t->grain_kind.len > 0 && t->grain_kind.len <= FK_KIND_NAME_MAX);
    telegram_put(pen, t->incarnation, 8);
    telegram_put_text(pen, t->grain_kind);
    telegram_put(pen, t->claim_count, 4);
    if (pen->to == NULL) {
        pen->at += (size_t)t->claim_count * TELEGRAM_CLAIM;
        return;
    }
    FK_ASSERT(t->claims.ptr == NULL);
    FK_ASSERT(claims != NULL || t->claim_count == 0);
    for (uint32_t i = 0; i < t->claim_count; i++) {
        FK_ASSERT(claims[i].slot < FK_SLOTS_MAX);
        telegram_put(pen, claims[i].slot, 4);
        telegram_put(pen, claims[i].epoch, 8);
    }
}

static void telegram_write(telegram_pen *pen, const fk_telegram *t, const fk_slot_claim *claims)
{
    bool is_call = t->kind == FK_TELEGRAM_CALL;
    telegram_put(pen, TELEGRAM_VERSION, 1);
    telegram_put(pen, t->kind, 1);
    telegram_put(pen, is_call && t->wants_answer ? TELEGRAM_WANTS_ANSWER : 0, 1);
    telegram_put(pen, is_call ? t->hops : 0, 1);
    telegram_put(pen, t->view, 8);
    switch (t->kind) {
    case FK_TELEGRAM_CALL: telegram_put_call(pen, t); return;
    case FK_TELEGRAM_ANSWER:
        FK_ASSERT(t->request.origin != 0);
        telegram_put_request(pen, t->request);
        telegram_put(pen, t->err, 4);
        telegram_put_text(pen, t->authority);
        telegram_put_cargo(pen, &t->cargo);
        return;
    case FK_TELEGRAM_MOVED: telegram_put_moved(pen, t, claims); return;
    case FK_TELEGRAM_NEWS: return;
    }
    FK_ASSERT(false);
}

size_t fk__telegram_measure(const fk_telegram *telegram)
{
    telegram_pen pen = { NULL, 0 };
    telegram_write(&pen, telegram, NULL);
    return pen.at;
}

void fk__telegram_encode(const fk_telegram *telegram, const fk_slot_claim *claims,
                         unsigned char *to, size_t size)
{
    telegram_pen pen = { to, 0 };
    FK_ASSERT(to != NULL);
    FK_ASSERT(size == fk__telegram_measure(telegram));
    telegram_write(&pen, telegram, claims);
    FK_ASSERT(pen.at == size);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct telegram_eye {
    fk_str bytes;
    size_t at;
    fk_wire_fault *fault;
} telegram_eye;

/* The last `back` bytes that were taken are wrong. */
static fk_err telegram_bad(const telegram_eye *eye, size_t back, const char *message)
{
    return fk__wire_fail(eye->fault, FK_E_MALFORMED, eye->at - back, message);
}

static fk_err telegram_take_bytes(telegram_eye *eye, size_t len, fk_str *out)
{
    if (len > eye->bytes.len - eye->at) {
        return fk__wire_fail(eye->fault, FK_E_TRUNCATED, eye->bytes.len,
                             "the telegram ends before it is complete");
    }
    *out = (fk_str){ eye->bytes.ptr + eye->at, len };
    eye->at += len;
    return FK_OK;
}

static fk_err telegram_take(telegram_eye *eye, size_t size, uint64_t *out)
{
    fk_str bytes;
    uint64_t n = 0;
    FK_TRY(telegram_take_bytes(eye, size, &bytes));
    for (size_t i = 0; i < size; i++) n |= (uint64_t)(unsigned char)bytes.ptr[i] << (8 * i);
    *out = n;
    return FK_OK;
}

static fk_err telegram_take_text(telegram_eye *eye, size_t min, size_t max, fk_str *out)
{
    uint64_t len = 0;
    FK_TRY(telegram_take(eye, 2, &len));
    if (len < min) return telegram_bad(eye, 2, "a text is empty that must not be");
    if (len > max) return telegram_bad(eye, 2, "a text is longer than it may be");
    return telegram_take_bytes(eye, (size_t)len, out);
}

static fk_err telegram_take_request(telegram_eye *eye, fk_request *out)
{
    FK_TRY(telegram_take(eye, 8, &out->origin));
    return telegram_take(eye, 8, &out->seq);
}

static fk_err telegram_take_number(telegram_eye *eye, fk_request *out)
{
    FK_TRY(telegram_take_request(eye, out));
    return out->origin != 0 ? FK_OK : telegram_bad(eye, 16, "a call must have a number");
}

static fk_err telegram_take_cargo(telegram_eye *eye, fk_cargo *out)
{
    uint64_t n = 0;
    FK_TRY(telegram_take(eye, 4, &n));
    uint32_t serializer = (uint32_t)n;
    memcpy(&out->serializer, &serializer, sizeof(serializer)); /* also a negative one */
    if (serializer == 0) return FK_OK;
    FK_TRY(telegram_take_text(eye, 0, UINT16_MAX, &out->manifest));
    FK_TRY(telegram_take(eye, 4, &n));
    return telegram_take_bytes(eye, (size_t)n, &out->bytes);
}

/* A later release may have errors that this one does not know; they are failures all the same. */
static fk_err telegram_known_err(uint64_t number)
{
    if (number > INT32_MAX) return FK_E_FAILED;
    switch ((fk_err)number) {
#define TELEGRAM_ERR(name, value, text) case FK_##name:
        FK_ERRORS(TELEGRAM_ERR)
#undef TELEGRAM_ERR
        return (fk_err)number;
    }
    return FK_E_FAILED;
}

static fk_err telegram_take_call(telegram_eye *eye, fk_telegram *t)
{
    uint64_t left = 0;
    FK_TRY(telegram_take_number(eye, &t->request));
    FK_TRY(telegram_take_request(eye, &t->earlier));
    FK_TRY(telegram_take(eye, 8, &t->low));
    FK_TRY(telegram_take(eye, 4, &left));
    t->left_ms = (uint32_t)left;
    FK_TRY(telegram_take_text(eye, t->wants_answer ? 1 : 0, FK_MEMBER_TEXT_MAX, &t->reply_to));
    FK_TRY(telegram_take_text(eye, 1, FK_KIND_NAME_MAX, &t->grain_kind));
    FK_TRY(telegram_take_text(eye, 1, FK_GRAIN_KEY_MAX, &t->key));
    return telegram_take_cargo(eye, &t->cargo);
}

static fk_err telegram_take_answer(telegram_eye *eye, fk_telegram *t)
{
    uint64_t err = 0;
    FK_TRY(telegram_take_number(eye, &t->request));
    FK_TRY(telegram_take(eye, 4, &err));
    t->err = telegram_known_err(err);
    FK_TRY(telegram_take_text(eye, 0, FK_MEMBER_TEXT_MAX, &t->authority));
    return telegram_take_cargo(eye, &t->cargo);
}

static fk_err telegram_take_moved(telegram_eye *eye, fk_telegram *t)
{
    uint64_t count = 0;
    FK_TRY(telegram_take(eye, 8, &t->incarnation));
    FK_TRY(telegram_take_text(eye, 1, FK_KIND_NAME_MAX, &t->grain_kind));
    FK_TRY(telegram_take(eye, 4, &count));
    if (count > TELEGRAM_CLAIMS_MAX) return telegram_bad(eye, 4, "there are too many claims");
    size_t first = eye->at;
    FK_TRY(telegram_take_bytes(eye, (size_t)count * TELEGRAM_CLAIM, &t->claims));
    t->claim_count = (uint32_t)count;
    for (uint32_t i = 0; i < t->claim_count; i++) {
        fk_slot_claim claim;
        fk__telegram_claim(t, i, &claim);
        if (claim.slot >= FK_SLOTS_MAX) {
            return fk__wire_fail(eye->fault, FK_E_MALFORMED, first + (size_t)i * TELEGRAM_CLAIM,
                                 "no slot can be claimed like that");
        }
    }
    return FK_OK;
}

static fk_err telegram_take_header(telegram_eye *eye, fk_telegram *t)
{
    uint64_t version = 0, kind = 0, flags = 0, hops = 0;
    FK_TRY(telegram_take(eye, 1, &version));
    if (version == 0) return telegram_bad(eye, 1, "no telegram has version 0");
    if (version > TELEGRAM_VERSION) {
        return fk__wire_fail(eye->fault, FK_E_PROTOCOL, 0, "the telegram is of a later version");
    }
    FK_TRY(telegram_take(eye, 1, &kind));
    if (kind < FK_TELEGRAM_CALL || kind > FK_TELEGRAM_NEWS) {
        return telegram_bad(eye, 1, "no telegram is of that kind");
    }
    t->kind = (fk_telegram_kind)kind;
    bool is_call = t->kind == FK_TELEGRAM_CALL;
    FK_TRY(telegram_take(eye, 1, &flags));
    if (flags > (is_call ? TELEGRAM_WANTS_ANSWER : 0)) return telegram_bad(eye, 1, "unknown flags");
    t->wants_answer = flags != 0;
    FK_TRY(telegram_take(eye, 1, &hops));
    if (hops != 0 && !is_call) return telegram_bad(eye, 1, "only calls make hops");
    t->hops = (uint8_t)hops;
    return telegram_take(eye, 8, &t->view);
}

static fk_err telegram_take_body(telegram_eye *eye, fk_telegram *t)
{
    switch (t->kind) {
    case FK_TELEGRAM_CALL: return telegram_take_call(eye, t);
    case FK_TELEGRAM_ANSWER: return telegram_take_answer(eye, t);
    case FK_TELEGRAM_MOVED: return telegram_take_moved(eye, t);
    case FK_TELEGRAM_NEWS: return FK_OK;
    }
    return FK_E_MALFORMED;
}

fk_err fk__telegram_decode(fk_str bytes, fk_telegram *out, fk_wire_fault *fault)
{
    telegram_eye eye = { bytes, 0, fault };
    fk_telegram telegram;
    memset(&telegram, 0, sizeof(telegram));
    FK_TRY(telegram_take_header(&eye, &telegram));
    FK_ASSERT(eye.at == TELEGRAM_HEADER);
    FK_TRY(telegram_take_body(&eye, &telegram));
    if (eye.at != bytes.len) return telegram_bad(&eye, 0, "something follows the telegram");
    *out = telegram;
    return FK_OK;
}

void fk__telegram_claim(const fk_telegram *telegram, uint32_t index, fk_slot_claim *out)
{
    FK_ASSERT(index < telegram->claim_count);
    FK_ASSERT(telegram->claims.len == (size_t)telegram->claim_count * TELEGRAM_CLAIM);
    const char *at = telegram->claims.ptr + (size_t)index * TELEGRAM_CLAIM;
    *out = (fk_slot_claim){ .slot = fk__load32(at), .epoch = fk__load64(at + 4) };
}
