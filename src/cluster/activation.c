/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What has to be noted: a call whose turn changed the state, or sent something. Run again it would do
 * that again. A turn that only looked and answered may be run as often as it comes.
 *
 * Turns are compared with the one before, not with what is stored: two turns of a batch may undo each
 * other, and still each has had its effect.
 */

#include "cluster/activation.h"

#include "base/hash.h"
#include "base/safeguard.h"

/* The same in every process: the hashes are part of what a store is known by. */
static const fk_hash_key ACTIVATION_HASH = { 0x66726b2d67726169u, 0x6e2d737461746530u };

static uint64_t activation_hash(fk_str bytes)
{
    return bytes.ptr != NULL ? fk__hash_bytes(&ACTIVATION_HASH, bytes.ptr, bytes.len) : 0;
}

fk_err fk__activation_init(fk_activation *a, fk_mem *mem, const fk_activation_start *start)
{
    *a = (fk_activation){
        .fence = start->fence,
        .version = start->version,
        .snapshot_hash = activation_hash(start->snapshot),
        .is_durable = start->is_durable,
    };
    fk__dedup_init(&a->dedup, mem);
    return fk__dedup_decode(&a->dedup, start->dedup);
}

void fk__activation_fini(fk_activation *a)
{
    fk__dedup_fini(&a->dedup);
}

static fk_dedup_verdict activation_look(const fk_activation *a, const fk_request *request,
                                        const fk_request *earlier, fk_str *answer)
{
    if (earlier != NULL && earlier->origin != 0 &&
        fk__dedup_check(&a->dedup, *earlier, answer) == FK_DEDUP_SEEN) {
        return FK_DEDUP_SEEN;
    }
    if (request->origin == 0) return FK_DEDUP_NEW;
    return fk__dedup_check(&a->dedup, *request, answer);
}

fk_admission fk__activation_admit(fk_activation *a, const fk_request *request,
                                  const fk_request *earlier, fk_time now, fk_time lease_deadline,
                                  fk_str *answer)
{
    if (a->is_broken) return FK_ADMIT_BACK;
    if (FK_SAFEGUARD(ACTIVATION_LEASE) && now >= lease_deadline) return FK_ADMIT_BACK;
    if (a->is_storing) return FK_ADMIT_WAIT;
    switch (activation_look(a, request, earlier, answer)) {
    case FK_DEDUP_SEEN:
        /* Maybe of a turn that is not stored yet: then the answer must not go out before. */
        return FK_SAFEGUARD(OUTPUT_COMMIT) && a->is_dirty ? FK_ADMIT_WAIT : FK_ADMIT_ANSWER;
    case FK_DEDUP_STALE: return FK_ADMIT_DROP;
    case FK_DEDUP_NEW: break;
    }
    if (request->origin != 0 && fk__dedup_is_full(&a->dedup)) return FK_ADMIT_OVERLOADED;
    return FK_ADMIT_RUN;
}

bool fk__activation_make_room(fk_activation *a, const fk_request *request, bool is_single,
                              uint64_t low, fk_time wall)
{
    if (!is_single) fk__dedup_settle(&a->dedup, request->origin, low, wall);
    fk__dedup_tidy(&a->dedup, wall);
    return !fk__dedup_is_full(&a->dedup);
}

/* With low, so that the origin's calls before it are forgotten first, and known as stale later. */
static fk_err activation_note(fk_activation *a, const fk_grain_turn *turn)
{
    fk_str answer = turn->has_answer ? turn->answer : (fk_str){ NULL, 0 };
    if (turn->has_answer && answer.ptr == NULL) answer.ptr = "";
    FK_TRY(fk__dedup_note(&a->dedup, turn->request, turn->is_single, answer, turn->wall));
    if (!turn->is_single) {
        fk__dedup_settle(&a->dedup, turn->request.origin, turn->low, turn->wall);
    }
    return FK_OK;
}

fk_err fk__activation_ran(fk_activation *a, const fk_grain_turn *turn)
{
    FK_ASSERT(!a->is_storing);
    if (a->is_broken) return FK_E_STATE;
    bool is_numbered = turn->request.origin != 0;
    if (is_numbered && !turn->is_single) {
        fk__dedup_settle(&a->dedup, turn->request.origin, turn->low, turn->wall);
    }

    a->unstored++;
    bool is_to_note = is_numbered && !turn->is_single;
    if (a->is_durable) {
        uint64_t hash = activation_hash(turn->snapshot);
        bool has_effect = hash != a->snapshot_hash || turn->has_sent;
        a->snapshot_hash = hash;
        is_to_note = has_effect && is_numbered;
        if (has_effect) a->is_dirty = true;
        if (!a->is_dirty) a->unstored = 0;
    } else if (a->unstored == FK_ACTIVATION_BATCH_MAX) {
        /* No store comes that would tidy. */
        a->unstored = 0;
        fk__dedup_tidy(&a->dedup, turn->wall);
    }
    fk_err err = is_to_note ? activation_note(a, turn) : FK_OK;
    if (err != FK_OK) fk__activation_break(a);
    return err;
}

bool fk__activation_is_clean(const fk_activation *a)
{
    if (a->is_broken) return false;
    if (!FK_SAFEGUARD(OUTPUT_COMMIT)) return true;
    return !a->is_dirty && !a->is_storing;
}

bool fk__activation_has_room(const fk_activation *a)
{
    return !a->is_broken && !a->is_storing && a->unstored < FK_ACTIVATION_BATCH_MAX;
}

size_t fk__activation_dedup_size(fk_activation *a, fk_time wall)
{
    FK_ASSERT(!a->is_storing);
    fk__dedup_tidy(&a->dedup, wall);
    return fk__dedup_measure(&a->dedup);
}

void fk__activation_store_begin(fk_activation *a, unsigned char *buf, size_t size)
{
    FK_ASSERT(a->is_durable);
    FK_ASSERT(!a->is_storing);
    FK_ASSERT(!a->is_broken);
    fk__dedup_encode(&a->dedup, buf, size);
    /* A store is the same as another when it stores the same. The calls in it would not do: a batch
     * may end with the same call and begin with others. */
    a->last = (fk_request){
        .origin = a->snapshot_hash,
        .seq = fk__hash_bytes(&ACTIVATION_HASH, buf, size),
    };
    a->is_storing = true;
}

bool fk__activation_stored(fk_activation *a, fk_verdict verdict, uint64_t version)
{
    if (a->is_broken) return false;
    FK_ASSERT(a->is_storing);
    a->is_storing = false;
    if (verdict == FK_VERDICT_UNKNOWN && !FK_SAFEGUARD(STORE_UNKNOWN_BREAKS)) {
        verdict = FK_VERDICT_OK;
        version = a->version + 1;
    }
    if (verdict != FK_VERDICT_OK) {
        fk__activation_break(a);
        return false;
    }
    a->version = version;
    a->unstored = 0;
    a->is_dirty = false;
    fk__dedup_answered(&a->dedup);
    return true;
}

void fk__activation_break(fk_activation *a)
{
    a->is_broken = true;
    a->is_storing = false;
}
