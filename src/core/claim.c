/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/claim.h"

#include "fraktor/registry.h"

#include "base/safeguard.h"
#include "core/path.h"
#include "core/registry.h"
#include "core/spawn.h"

enum { BUCKETS = 256, CLAIMS_DEFAULT = 65536 };

typedef struct fk_claim {
    struct fk_claim *next;
    uint64_t uid;
    fk_ref actor;  /* of fk_spawn_as(); FK_REF_NONE: somebody's own affair */
    fk_time until; /* FK_NEVER while it is in use */
    uint32_t len;
    char segments[]; /* "/user/alice" */
} fk_claim;

struct fk_claims {
    fk_lock lock;
    uint32_t count, max;
    fk_half occupied; /* count != 0, to be seen without the lock */
    fk_ref sweeper;   /* made with the first claim that ends */
    fk_time next;     /* nothing is over before */
    fk_claim *bucket[BUCKETS];
};

fk_err fk__claims_create(fk_system *sys, uint32_t max)
{
    void *memory;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_claims), FK_SITE("claims"), &memory));
    memset(memory, 0, sizeof(fk_claims));
    sys->claims = memory;
    sys->claims->max = max != 0 ? max : CLAIMS_DEFAULT;
    sys->claims->next = FK_NEVER;
    return FK_OK;
}

static void claim_free(fk_system *sys, fk_claim *claim)
{
    fk__mem_free(&sys->mem, claim, sizeof(*claim) + claim->len);
}

void fk__claims_destroy(fk_system *sys)
{
    fk_claims *claims = sys->claims;
    if (claims == NULL) return;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        while (claims->bucket[i] != NULL) {
            fk_claim *claim = claims->bucket[i];
            claims->bucket[i] = claim->next;
            claim_free(sys, claim);
        }
    }
    fk__mem_free(&sys->mem, claims, sizeof(*claims));
}

/* ---- the table: under claims->lock ------------------------------------------------------------ */

static fk_claim **claim_bucket(fk_system *sys, uint64_t uid)
{
    uint64_t hash = fk__hash_bytes(&sys->key, &uid, sizeof(uid)); /* uids come from outside */
    return &sys->claims->bucket[hash % BUCKETS];
}

static bool claim_is_for(const fk_system *sys, const fk_claim *claim, const fk_path *path,
                         uint64_t uid)
{
    fk_path own = { .segments = { claim->segments, claim->len } };
    size_t a = 0, b = 0;
    fk_str mine, theirs;
    if (claim->uid != uid) return false;
    for (;;) {
        bool more = fk_path_next(&own, &a, &mine);
        if (fk_path_next(path, &b, &theirs) != more) return false;
        if (!more) return true;
        if (!fk__segment_equal(sys->ruleset, mine, theirs)) return false;
    }
}

static fk_claim *claim_find(fk_system *sys, const fk_path *path, uint64_t uid)
{
    fk_claim *claim = *claim_bucket(sys, uid);
    while (claim != NULL && !claim_is_for(sys, claim, path, uid)) claim = claim->next;
    return claim;
}

static void claim_remove(fk_system *sys, fk_claim *claim)
{
    fk_claim **link = claim_bucket(sys, claim->uid);
    while (*link != claim) link = &(*link)->next;
    *link = claim->next;
    sys->claims->count--;
    fk__half_store(&sys->claims->occupied, sys->claims->count != 0, FK_RELAXED);
    claim_free(sys, claim);
}

static fk_err claim_add(fk_system *sys, const fk_path *path, uint64_t uid)
{
    fk_claims *claims = sys->claims;
    void *memory;
    if (claims->count >= claims->max) return FK_E_LIMIT;
    size_t len = path->segments.len;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_claim) + len, FK_SITE("claim"), &memory));
    fk_claim *claim = memory;
    fk_claim **bucket = claim_bucket(sys, uid);
    *claim = (fk_claim){ .next = *bucket, .uid = uid, .until = FK_NEVER, .len = (uint32_t)len };
    if (len != 0) memcpy(claim->segments, path->segments.ptr, len);
    *bucket = claim;
    claims->count++;
    fk__half_store(&claims->occupied, 1, FK_RELAXED);
    return FK_OK;
}

/* Forgets what is over at that time; returns when the next one will be, or FK_NEVER. */
static fk_time expire(fk_system *sys, fk_time now)
{
    fk_time next = FK_NEVER;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        fk_claim *following;
        for (fk_claim *claim = sys->claims->bucket[i]; claim != NULL; claim = following) {
            following = claim->next;
            if (claim->until <= now)
                claim_remove(sys, claim);
            else if (claim->until < next)
                next = claim->until;
        }
    }
    return next;
}

/* The same, but the table is walked only when there is something to forget. */
static fk_time claims_expire(fk_system *sys, fk_time now)
{
    fk_claims *claims = sys->claims;
    fk__mem_lock(&sys->mem, &claims->lock);
    if (claims->next <= now) claims->next = expire(sys, now);
    fk_time next = claims->next;
    fk__mem_unlock(&sys->mem, &claims->lock);
    return next;
}

/* ---- the sweeper: /system/uids ---------------------------------------------------------------- */

static fk_out sweep_message(void)
{
    return (fk_out){ &fk__type_tick, "" };
}

static fk_err sweeper_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (msg->type != &fk__type_tick) return fk_unhandled(ctx, msg);
    fk_time now = fk_now(ctx);
    fk_time next = claims_expire(fk_system_of(ctx), now);
    if (next == FK_NEVER) return FK_OK;
    fk_err err = fk_timer_start(ctx, 1, FK_TIMER_ONCE, next - now, sweep_message());
    return err == FK_E_NOMEM || err == FK_E_LIMIT ? FK_OK : err; /* no reason to end */
}

/* Something is reserved from now on: the sweeper will see to its end. Should it not get the message,
 * or no timer, the table is swept by whoever claims the next time. */
static void sweeper_tell(fk_system *sys)
{
    static const fk_props SWEEPER = { .receive = sweeper_receive };
    fk_claims *claims = sys->claims;
    fk__mem_lock(&sys->mem, &claims->lock);
    fk_ref ref = claims->sweeper;
    fk__mem_unlock(&sys->mem, &claims->lock);
    if (!fk_is_alive(sys, ref)) {
        fk_local *local = fk__local_enter(sys);
        /* If another thread is faster, the name is taken. */
        fk_err err = fk__spawn(local, sys->top.system, FK_STR("uids"), NULL, &SWEEPER, &ref);
        fk__local_leave(local);
        if (err != FK_OK) return;
        fk__mem_lock(&sys->mem, &claims->lock);
        claims->sweeper = ref;
        fk__mem_unlock(&sys->mem, &claims->lock);
    }
    fk_send(sys, ref, sweep_message());
}

/* ---- claiming ----------------------------------------------------------------------------------- */

/* Under sys->lock. */
static bool uid_was_issued(fk_system *sys, uint64_t uid)
{
    fk__mem_lock(&sys->mem, &sys->lock);
    uint64_t number = fk__uid_number(sys, uid);
    bool issued = number >= sys->uid_first && number < sys->uid_next;
    fk__mem_unlock(&sys->mem, &sys->lock);
    return issued;
}

/* The actor that has died was at that path; also when its own is too long to be told. */
static bool lived_at(fk_system *sys, fk_ref actor, const fk_path *path)
{
    char text[FK_PATH_MAX + 1];
    fk_path own;
    size_t len = fk_path_of(sys, actor, text, sizeof(text));
    if (len == 0 || len >= sizeof(text)) return true;
    if (fk_path_parse(&sys->paths, (fk_str){ text, len }, &own, NULL) != FK_OK) return true;
    fk_path asked = *path; /* with or without the address, it is this system's */
    asked.scheme = own.scheme;
    asked.host = own.host;
    asked.port = own.port;
    return fk_path_equal(&own, &asked);
}

/* How long one of our own stays reserved: 0 is not at all. */
static fk_time own_uid_left(fk_system *sys, const fk_path *path, uint64_t uid, fk_time now)
{
    fk_ref ref;
    uint64_t current;
    fk_time died;
    if (fk__registry_find(sys, path, &ref, &current) && current == uid) return FK_NEVER;
    if (!uid_was_issued(sys, uid)) return 0;
    /* When it is not known when its actor died, the last one that is not known of must do. */
    bool known = fk__obituary_of_uid(sys, uid, &ref, &died);
    if (known ? !lived_at(sys, ref, path) : died == 0) return 0;
    fk_time until = fk__time_add(died, sys->quarantine);
    return until > now ? until - now : 0;
}

/* How long a claim stays: 0 is that there is none. */
static fk_time claim_left(fk_system *sys, const fk_path *path, uint64_t uid, fk_time now)
{
    fk_time left = 0;
    fk__mem_lock(&sys->mem, &sys->claims->lock);
    const fk_claim *claim = claim_find(sys, path, uid);
    if (claim != NULL && FK_SAFEGUARD(UID_HELD))
        left = claim->until == FK_NEVER ? FK_NEVER : claim->until - now;
    fk__mem_unlock(&sys->mem, &sys->claims->lock);
    return left > 0 ? left : 0;
}

static fk_err claim_enter(fk_system *sys, const fk_path *path, uint64_t uid)
{
    fk__mem_lock(&sys->mem, &sys->claims->lock);
    bool taken = claim_find(sys, path, uid) != NULL && FK_SAFEGUARD(UID_HELD);
    fk_err err = taken ? FK_E_UID_RESERVED : claim_add(sys, path, uid);
    fk__mem_unlock(&sys->mem, &sys->claims->lock);
    return err;
}

static fk_err claim(fk_system *sys, const fk_path *path, uint64_t uid, fk_time *left)
{
    fk_time now = fk__system_now(sys);
    if (!fk__claims_are_empty(sys)) {
        claims_expire(sys, now);
        *left = claim_left(sys, path, uid, now);
        if (*left != 0) return FK_E_UID_RESERVED;
    }
    *left = own_uid_left(sys, path, uid, now);
    if (*left != 0) return FK_E_UID_RESERVED;
    fk_err err = claim_enter(sys, path, uid);
    if (err == FK_E_UID_RESERVED) *left = FK_NEVER; /* somebody was faster */
    return err;
}

/* Ends the use of a claim that is the actor's, or nobody's. */
static bool claim_end(fk_system *sys, fk_claim *claim, fk_ref actor)
{
    if (claim == NULL || claim->until != FK_NEVER || !fk_ref_equal(claim->actor, actor)) {
        return false;
    }
    fk_time quarantine = FK_SAFEGUARD(UID_TIME) ? sys->quarantine : 0;
    claim->until = fk__time_add(fk__system_now(sys), quarantine);
    if (claim->until < sys->claims->next) sys->claims->next = claim->until;
    return true;
}

static fk_err parse_own(fk_system *sys, fk_str text, uint64_t uid, fk_path *out)
{
    FK_TRY(fk_path_parse(&sys->paths, text, out, NULL));
    if (uid == 0 || !fk__uid_fits(sys->ruleset, uid) || out->depth == 0) return FK_E_UID;
    if (out->uid != 0 && out->uid != uid) return FK_E_UID; /* "...#7" is not the place for a 9 */
    return fk__registry_is_own(sys, out) ? FK_OK : FK_E_FOREIGN;
}

fk_err fk_uid_claim(fk_system *sys, fk_str text, uint64_t uid, fk_time *left)
{
    fk_path path;
    fk_time ignored;
    FK_TRY(parse_own(sys, text, uid, &path));
    return claim(sys, &path, uid, left != NULL ? left : &ignored);
}

fk_err fk_uid_release(fk_system *sys, fk_str text, uint64_t uid)
{
    fk_path path;
    FK_TRY(parse_own(sys, text, uid, &path));
    fk__mem_lock(&sys->mem, &sys->claims->lock);
    bool ended = claim_end(sys, claim_find(sys, &path, uid), FK_REF_NONE);
    fk__mem_unlock(&sys->mem, &sys->claims->lock);
    if (ended) sweeper_tell(sys);
    return ended ? FK_OK : FK_E_NOT_FOUND;
}

/* ---- claims of actors ---------------------------------------------------------------------------- */

static void claim_settle(fk_system *sys, const fk_path *path, uint64_t uid, fk_ref actor)
{
    fk__mem_lock(&sys->mem, &sys->claims->lock);
    fk_claim *own = claim_find(sys, path, uid);
    if (own != NULL && fk_ref_is_none(actor))
        claim_remove(sys, own);
    else if (own != NULL) /* not released by somebody whose it is not */
        own->actor = actor;
    fk__mem_unlock(&sys->mem, &sys->claims->lock);
    /* It may have died before we could note whose claim it is. */
    if (!fk_ref_is_none(actor) && !fk_is_alive(sys, actor)) fk__claim_died(sys, actor, uid);
}

/* The claim comes first, so that nobody else has the uid meanwhile. */
static fk_err spawn_claimed(fk_system *sys, const fk_path *path, uint64_t uid,
                            const fk_props *props, fk_ref *out)
{
    fk_time left;
    FK_TRY(claim(sys, path, uid, &left));
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__spawn(local, sys->top.user, fk_path_name(path), &uid, props, out);
    fk__local_leave(local);
    claim_settle(sys, path, uid, err == FK_OK ? *out : FK_REF_NONE);
    return err;
}

fk_err fk_spawn_as(fk_system *sys, fk_str name, uint64_t uid, const fk_props *props, fk_ref *out)
{
    void *memory;
    if (sys == NULL || out == NULL || name.len == 0 || name.ptr == NULL) return FK_E_INVALID;
    FK_TRY(fk_path_check_name(&sys->paths, name, NULL));
    if (uid == 0 || !fk__uid_fits(sys->ruleset, uid)) return FK_E_UID;
    size_t size = sizeof("/user/") - 1 + name.len;
    FK_TRY(fk__mem_alloc(&sys->mem, size, FK_SITE("path of a claim"), &memory));
    fk_text text = { memory, size, 0 };
    fk__text_put(&text, FK_STR("/user/"));
    fk__text_put(&text, name);
    fk_path path = sys->address;
    path.segments = (fk_str){ memory, size };
    path.depth = 2;
    fk_err err = spawn_claimed(sys, &path, uid, props, out);
    fk__mem_free(&sys->mem, memory, size);
    return err;
}

void fk__claim_died(fk_system *sys, fk_ref actor, uint64_t uid)
{
    bool ended = false;
    fk__mem_lock(&sys->mem, &sys->claims->lock);
    for (fk_claim *c = *claim_bucket(sys, uid); c != NULL && !ended; c = c->next) {
        ended = c->uid == uid && claim_end(sys, c, actor);
    }
    fk__mem_unlock(&sys->mem, &sys->claims->lock);
    if (ended) sweeper_tell(sys);
}

bool fk__claims_are_empty(const fk_system *sys)
{
    return fk__half_load(&sys->claims->occupied, FK_RELAXED) == 0;
}

bool fk__claims_has(fk_system *sys, uint64_t uid)
{
    if (FK_LIKELY(fk__claims_are_empty(sys))) return false;
    fk__mem_lock(&sys->mem, &sys->claims->lock);
    const fk_claim *claim = *claim_bucket(sys, uid);
    while (claim != NULL && claim->uid != uid) claim = claim->next;
    fk__mem_unlock(&sys->mem, &sys->claims->lock);
    return claim != NULL;
}
