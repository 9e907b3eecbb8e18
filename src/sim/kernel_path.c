/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Paths, selections and uids, as actors and outside threads use them while others come and go.
 *
 * What can be known for certain: an actor has one path for ever; a path with a uid leads to that
 * actor or to nobody; without, to somebody who has that path; and to an actor that lives for as long
 * as the question takes it does lead. A selection reaches each such actor once. A uid is its
 * claimant's, then reserved for the quarantine, then free.
 */

#include "fraktor/registry.h"

#include "base/base.h"
#include "fraktor/select.h"
#include "sim/kernel.h"
#include "sim/sometimes.h"

static fk_ledger *const l = &fk__ledger;

typedef struct sim_path {
    char text[256];
    size_t len;      /* 0: nobody remembers the actor */
    size_t bare_len; /* without the uid */
} sim_path;

/* ---- from a ref to its path ---------------------------------------------------------------- */

static void read_path(fk_ref ref, sim_path *out)
{
    out->len = fk_path_of(fk__kernel.sys, ref, out->text, sizeof(out->text));
    if (out->len >= sizeof(out->text)) fk__world_fail("A7", "a path of %zu bytes", out->len);
    out->bare_len = 0;
    while (out->bare_len < out->len && out->text[out->bare_len] != '#') out->bare_len++;
}

static uint64_t hash_text(fk_str text)
{
    uint64_t hash = text.len;
    for (size_t i = 0; i < text.len; i++) hash = fk__mix64(hash ^ (unsigned char)text.ptr[i]);
    return hash;
}

/* Of an actor that may end meanwhile. False: forgotten. */
static bool path_of(uint32_t actor, sim_path *out)
{
    fk_person *p = &l->person[actor];
    fk_path path;
    read_path(p->ref, out);
    if (out->len == 0) {
        if (!p->is_gone) fk__world_fail("A7", "a%u lives and has no path", (unsigned)actor);
        return false;
    }
    fk_str text = { out->text, out->len };
    bool is_path = fk_path_parse(NULL, text, &path, NULL) == FK_OK &&
                   fk_path_top(&path) == FK_TOP_USER && path.depth >= 2 && path.uid != 0;
    uint64_t hash = hash_text(text);
    if (p->path_hash == 0) p->path_hash = hash;
    if (!is_path || p->path_hash != hash) {
        fk__world_fail("A7", "the path of a%u is wrong: %s", (unsigned)actor, out->text);
    }
    return true;
}

void fk__kernel_look_at_path(void)
{
    sim_path path;
    uint32_t actor = fk__kernel_pick();
    if (actor != FK_NOBODY) path_of(actor, &path);
}

/* ---- from a path to a ref ------------------------------------------------------------------- */

static void check_found(uint32_t actor, const sim_path *path, bool with_uid, fk_ref found)
{
    sim_path other;
    FK_SOMETIMES_HIT(RESOLVED);
    if (fk_ref_equal(found, l->person[actor].ref)) return;
    if (with_uid || !l->person[actor].is_gone) {
        fk__world_fail("A7", "the path of a%u leads to another", (unsigned)actor);
    }
    read_path(found, &other);
    if (other.len == 0) return; /* ended and forgotten since */
    if (other.bare_len != path->bare_len || memcmp(other.text, path->text, path->bare_len) != 0) {
        fk__world_fail("A7", "%s leads to %s", path->text, other.text);
    }
    FK_SOMETIMES_HIT(RESOLVED_HEIR);
}

void fk__kernel_resolve(void)
{
    sim_path path;
    fk_ref found = FK_REF_NONE;
    uint32_t actor = fk__kernel_pick();
    if (actor == FK_NOBODY || !path_of(actor, &path)) return;
    bool with_uid = fk__world_one_in(2);
    fk_str text = { path.text, with_uid ? path.len : path.bare_len };
    if (fk__world_swarm()->is_churning && fk__world_one_in(2)) fk__world_linger();
    fk_err err = fk_resolve(fk__kernel.sys, text, &found, NULL);
    fk__ledger_note(FK_FACT_RESOLVE, actor, FK_NOBODY, with_uid, (uint32_t)err);
    if (err == FK_OK) {
        check_found(actor, &path, with_uid, found);
    } else if (err != FK_E_PID_UNKNOWN || !l->person[actor].is_gone) {
        fk__world_fail("A7", "the path of a%u gave %s", (unsigned)actor, fk_err_name(err));
    } else {
        FK_SOMETIMES_HIT(RESOLVED_GONE);
    }
}

/* The same by asking the actor itself. An identify in a bounded mailbox would take the room of a
 * message that is accounted for. */
void fk__kernel_identify(void)
{
    sim_path path;
    fk_ref found = FK_REF_NONE;
    uint32_t actor = fk__kernel_pick();
    if (actor == FK_NOBODY || l->person[actor].mailbox == FK_MAILBOX_BOUNDED) return;
    if (!path_of(actor, &path)) return;
    fk_time timeout = (fk_time)fk__world_below((uint32_t)FK_MILLIS(5));
    fk_time before = fk__world_now();
    fk_err err = fk_resolve_one(fk__kernel.sys, (fk_str){ path.text, path.len }, timeout, &found);
    fk__ledger_note(FK_FACT_IDENTIFY, actor, FK_NOBODY, 0, (uint32_t)err);
    bool ok = false;
    switch (err) {
    case FK_OK: ok = fk_ref_equal(found, l->person[actor].ref); break;
    case FK_E_PID_UNKNOWN: ok = l->person[actor].is_gone; break;
    case FK_E_TIMEOUT: ok = fk__world_now() - before >= timeout; break;
    case FK_E_NOMEM: ok = l->may_lack_memory; break;
    case FK_E_LIMIT: ok = l->may_lack_memory || fk__world_swarm()->actors_max != 0; break;
    case FK_E_STOPPING: ok = l->is_stopping; break;
    default: break;
    }
    if (!ok) fk__world_fail("A7", "identify of a%u: %s", (unsigned)actor, fk_err_name(err));
    if (err == FK_OK) FK_SOMETIMES_HIT(IDENTIFIED);
}

/* ---- selections ------------------------------------------------------------------------------ */

/* A message to whoever has that path and uid is one to that actor. */
void fk__kernel_select(fk_ctx *ctx, uint32_t from)
{
    sim_path path;
    uint32_t to = fk__kernel_pick();
    if (to == FK_NOBODY || !path_of(to, &path)) return;
    fk__kernel_send_selected(ctx, from, to, (fk_str){ path.text, path.len });
}

typedef struct sim_call {
    uint32_t number, check;
} sim_call;
FK_MESSAGE(sim_call);

static const uint32_t CALL_CHECK = 0xCA11u;

bool fk__kernel_is_call(const fk_type *type)
{
    return type == &fk_type_sim_call;
}

static uint32_t call_number(const void *data, size_t len)
{
    sim_call call = { 0, 0 };
    if (len == sizeof(call)) memcpy(&call, data, sizeof(call));
    if (call.check != CALL_CHECK) fk__world_fail("A1", "a call arrived damaged");
    return call.number;
}

bool fk__kernel_call_received(uint32_t actor, const fk_msg *msg)
{
    if (msg->type != &fk_type_sim_call) return false;
    fk__call_arrived(call_number(msg->data, msg->len), actor);
    return true;
}

/* Also the answers to those who have stopped waiting. */
bool fk__kernel_call_letter(const fk_dead_letter *letter)
{
    bool is_call = letter->type == &fk_type_sim_call;
    if (!is_call && letter->type != &fk_type_fk_identity) return false;
    l->letters[letter->reason]++;
    if (is_call) fk__call_dead(call_number(letter->data, letter->len), letter);
    return true;
}

/* To everybody under /user, or those with a name, or those without. Not where a mailbox has bounds:
 * there the call would take the room of a message that is accounted for. */
void fk__kernel_call(void)
{
    static const fk_str WHOM[FK_CALL_KINDS] = { { "/user/*", 7 },
                                                { "/user/n?", 8 },
                                                { "/user/$*", 8 } };
    if ((fk__world_swarm()->mailboxes >> FK_MAILBOX_BOUNDED & 1) != 0) return;
    if (l->call_count >= FK_CALLS_MAX) return;
    uint32_t kind = fk__world_below(FK_CALL_KINDS);
    uint32_t number = fk__call_begin(kind);
    fk_err err = fk_select_send(fk__kernel.sys, WHOM[kind], FK_MSG(sim_call, number, CALL_CHECK));
    fk__call_end(number, err);
}

/* ---- uids: each thread has its own, so that it knows what they are ----------------------------- */

static void expect(bool ok, const char *what, fk_err err)
{
    if (!ok) fk__world_fail("A10", "%s of a uid gave %s", what, fk_err_name(err));
}

static void claim_release(sim_claim *claim, fk_str path, uint64_t uid)
{
    fk_time before = fk__world_now();
    l->hidden++; /* the sweeper */
    fk_err err = fk_uid_release(fk__kernel.sys, path, uid);
    fk__ledger_note(FK_FACT_RELEASE, FK_NOBODY, FK_NOBODY, (uint32_t)uid, (uint32_t)err);
    expect(err == (claim->is_held ? FK_OK : FK_E_NOT_FOUND), "release", err);
    if (!claim->is_held) return;
    claim->is_held = false;
    claim->until_least = before + fk__kernel.sys->quarantine;
    claim->until_most = fk__world_now() + fk__kernel.sys->quarantine;
}

static void claim_take(sim_claim *claim, fk_str path, uint64_t uid)
{
    fk_time before = fk__world_now(), left = 0;
    fk_err err = fk_uid_claim(fk__kernel.sys, path, uid, &left);
    fk_time after = fk__world_now();
    fk__ledger_note(FK_FACT_CLAIM, FK_NOBODY, FK_NOBODY, (uint32_t)uid, (uint32_t)err);
    if (err == FK_E_UID_RESERVED) {
        FK_SOMETIMES_HIT(CLAIM_RESERVED);
        if (claim->is_held)
            expect(left == FK_NEVER, "claim", err);
        else
            expect(left > 0 && left <= claim->until_most - before, "claim", err);
        return;
    }
    expect(!claim->is_held && after >= claim->until_least, "claim", err);
    if (err != FK_OK) {
        expect((err == FK_E_NOMEM || err == FK_E_LIMIT) && l->may_lack_memory, "claim", err);
        return;
    }
    if (claim->until_most != 0)
        FK_SOMETIMES_HIT(CLAIM_EXPIRED);
    else
        FK_SOMETIMES_HIT(CLAIMED);
    claim->is_held = true;
}

void fk__kernel_claim(void)
{
    const fk_str path = FK_STR("fraktor://sim/user/guest");
    uint32_t which = fk__world_below(FK_SIM_CLAIMS);
    uint64_t uid = UINT64_C(7000001) + fk__world_self() * FK_SIM_CLAIMS + which;
    sim_claim *claim = &fk__kernel.claim[fk__world_self()][which];
    bool is_done = claim->is_held && !fk__world_one_in(4);
    if (is_done || fk__world_one_in(8))
        claim_release(claim, path, uid);
    else
        claim_take(claim, path, uid);
    if (fk__world_one_in(4)) fk__world_sleep(fk__kernel.sys->quarantine);
}
