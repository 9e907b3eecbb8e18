/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How an op is answered. Whoever calls may be wrong about everything that comes from outside, so all
 * of it is looked at once, here, before any store sees it.
 */

#include <string.h>
#include <time.h>

#include "store/store.h"

fk_time fk__store_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return FK_SECONDS(t.tv_sec) + t.tv_nsec;
}

bool fk__store_is_write(fk_store_verb verb)
{
    return verb != FK_STORE_VIEW && verb != FK_STORE_PEEK && verb != FK_STORE_LIST;
}

bool fk__store_has_claims(fk_store_verb verb)
{
    return verb == FK_STORE_ACQUIRE || verb == FK_STORE_TRANSFER || verb == FK_STORE_RELEASE;
}

void fk__store_refuse(fk_store_op *op, fk_err err, const char *reason)
{
    op->verdict = FK_VERDICT_REFUSED;
    op->err = err;
    op->reason = reason;
}

void fk__store_unknown(fk_store_op *op, fk_err err, const char *reason)
{
    op->verdict = FK_VERDICT_UNKNOWN;
    op->err = err;
    op->reason = reason;
}

void fk__store_fenced(fk_store_op *op, uint64_t epoch)
{
    fk__store_refuse(op, FK_E_FENCED, "a later holder has loaded the grain");
    op->epoch = epoch;
}

void fk__store_lease_over(fk_store_op *op)
{
    fk__store_refuse(op, FK_E_FENCED, "the lease of that member is over");
}

void fk__store_join_next(fk_store_op *op, uint64_t last, bool is_up)
{
    bool is_again = op->member.incarnation != 0;
    if (is_again && is_up && op->member.incarnation < last) {
        fk__store_refuse(op, FK_E_NAME_TAKEN, "another system has joined with this id");
        return;
    }
    op->member.incarnation = last + 1;
}

void *fk__store_room(fk_store_op *op, size_t size)
{
    void *room = op->room != NULL ? op->room(op, size) : NULL;
    if (room == NULL) fk__store_refuse(op, FK_E_NOMEM, "no memory for what was read");
    return room;
}

bool fk__store_copy(fk_store_op *op, fk_str from, fk_str *to)
{
    *to = (fk_str){ NULL, 0 };
    if (from.ptr == NULL) return true;
    char *room =
        fk__store_room(op, from.len > 0 ? from.len : 1); /* nothing is not the same as none */
    if (room == NULL) return false;
    memcpy(room, from.ptr, from.len);
    *to = (fk_str){ room, from.len };
    return true;
}

/* ---- kinds ------------------------------------------------------------------------------- */

fk_str fk__store_kinds_join(const fk_member *member, char *out)
{
    size_t len = 0;
    for (uint32_t i = 0; i < member->kind_count; i++) {
        if (i > 0) out[len++] = ' ';
        memcpy(out + len, member->kinds[i].ptr, member->kinds[i].len);
        len += member->kinds[i].len;
    }
    FK_ASSERT(len < FK_STORE_KINDS_MAX);
    return (fk_str){ out, len };
}

bool fk__store_kinds_split(fk_store_op *op, fk_str text, fk_member *member)
{
    uint32_t count = text.len > 0;
    fk_str copy;
    member->kinds = NULL;
    member->kind_count = 0;
    if (count == 0) return true;
    for (size_t i = 0; i < text.len; i++) count += text.ptr[i] == ' ';
    fk_str *kinds = fk__store_room(op, count * sizeof *kinds);
    if (kinds == NULL || !fk__store_copy(op, text, &copy)) return false;
    member->kinds = kinds;
    for (size_t i = 0, from = 0; i <= copy.len; i++) {
        if (i < copy.len && copy.ptr[i] != ' ') continue;
        kinds[member->kind_count++] = (fk_str){ copy.ptr + from, i - from };
        from = i + 1;
    }
    return true;
}

/* ---- input -------------------------------------------------------------------------------- */

static bool is_text(fk_str s, size_t max)
{
    return s.ptr != NULL && s.len > 0 && s.len <= max && memchr(s.ptr, '\0', s.len) == NULL;
}

static bool is_kind(fk_str s)
{
    return is_text(s, FK_KIND_NAME_MAX) && memchr(s.ptr, ' ', s.len) == NULL;
}

static const char *member_wrong(const fk_store_op *op)
{
    const fk_member *m = &op->member;
    if (op->verb == FK_STORE_JOIN && !is_text(m->address, FK_MEMBER_TEXT_MAX)) {
        return "the address of a member has 1 to 255 bytes, none of them zero";
    }
    if (m->kind_count > FK_MEMBER_KINDS_MAX) return "a member has at most 64 kinds";
    for (uint32_t i = 0; i < m->kind_count; i++) {
        if (!is_kind(m->kinds[i])) return "the name of a kind is not a legal one";
    }
    if ((unsigned)m->status >= FK_MEMBER_DOWN) return "nobody joins who is down: leave instead";
    if (op->verb != FK_STORE_JOIN) return NULL;
    if (op->strategy == NULL || op->strategy[0] == '\0') return "whoever joins names a strategy";
    if (op->slots == 0 || op->slots > FK_SLOTS_MAX || (op->slots & (op->slots - 1)) != 0) {
        return "the number of slots is a power of two, at most 1048576";
    }
    return NULL;
}

static const char *claims_wrong(const fk_store_op *op)
{
    if (!is_kind(op->kind)) return "the name of a kind is not a legal one";
    if (op->claim_count > FK_SLOTS_MAX) return "more claims than there are slots";
    if (op->claims == NULL && op->claim_count > 0) return "there are no claims";
    for (uint32_t i = 0; i < op->claim_count; i++) {
        if (op->claims[i].slot >= FK_SLOTS_MAX) return "there is no such slot";
    }
    if (op->verb == FK_STORE_TRANSFER && !is_text(op->to, FK_MEMBER_TEXT_MAX)) {
        return "a transfer names the member that gets the slots";
    }
    return NULL;
}

static bool is_nowhere(fk_str s)
{
    return s.ptr == NULL && s.len > 0;
}

static const char *grain_wrong(const fk_store_op *op)
{
    if (!is_kind(op->key.kind)) return "the name of a kind is not a legal one";
    if (op->key.key.ptr == NULL || op->key.key.len == 0 || op->key.key.len > FK_GRAIN_KEY_MAX) {
        return "the key of a grain has 1 to 4096 bytes";
    }
    if (op->verb == FK_STORE_PEEK) return NULL;
    if (op->fence.epoch == 0) return "an epoch is at least 1";
    if (!is_text(op->fence.holder, FK_MEMBER_TEXT_MAX)) return "a fence names its holder";
    if (op->verb != FK_STORE_STORE) return NULL;
    if (is_nowhere(op->record.pid) || is_nowhere(op->record.snapshot) ||
        is_nowhere(op->record.dedup)) {
        return "a part of the record has a length, and is nowhere";
    }
    return NULL;
}

static const char *op_wrong(const fk_store_op *op)
{
    bool has_member = op->verb <= FK_STORE_LEAVE || fk__store_has_claims(op->verb);
    if ((unsigned)op->verb >= FK_STORE_VERB_COUNT) return "there is no such verb";
    if (has_member && !is_text(op->member.id, FK_MEMBER_TEXT_MAX)) {
        return "the id of a member has 1 to 255 bytes, none of them zero";
    }
    if (op->verb <= FK_STORE_RENEW && op->ttl <= 0) return "a lease lasts longer than nothing";
    if (op->verb == FK_STORE_JOIN || op->verb == FK_STORE_UPDATE) return member_wrong(op);
    if (fk__store_has_claims(op->verb)) return claims_wrong(op);
    if (op->verb >= FK_STORE_LOAD && op->verb <= FK_STORE_PEEK) return grain_wrong(op);
    if (op->verb == FK_STORE_LIST && !is_kind(op->kind)) {
        return "the name of a kind is not a legal one";
    }
    return op->verb == FK_STORE_LIST && op->put_key == NULL ? "nobody takes the keys" : NULL;
}

bool fk__store_begin(fk_store_op *op)
{
    op->verdict = FK_VERDICT_OK;
    op->err = FK_OK;
    op->epoch = 0;
    op->view = (fk_view){ 0, NULL, 0 };
    op->reason = NULL;
    const char *wrong = op_wrong(op);
    if (wrong != NULL) fk__store_refuse(op, FK_E_INVALID, wrong);
    return wrong == NULL;
}
