/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The view, and the tables that come of it. A new view is taken in two steps: everything that needs
 * memory first, table by table, and back again if one of them gets none; then what cannot fail.
 */

#include "cluster/placement.h"

/* ---- the copy ----------------------------------------------------------------------------------- */

static int text_compare(fk_str a, fk_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len != 0 ? memcmp(a.ptr, b.ptr, len) : 0;
    if (order != 0) return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

static int member_compare(const fk_member *a, fk_str id, uint64_t incarnation)
{
    int order = text_compare(a->id, id);
    if (order != 0) return order;
    return a->incarnation < incarnation ? -1 : a->incarnation > incarnation;
}

/* Shell's: stores give them in order, so there is mostly nothing to do. */
static void members_sort(fk_member *member, uint32_t count)
{
    static const uint32_t GAPS[] = { 797161, 88573, 9841, 1093, 121, 13, 4, 1 };
    for (size_t g = 0; g < sizeof(GAPS) / sizeof(GAPS[0]); g++) {
        uint32_t gap = GAPS[g];
        for (uint32_t i = gap; i < count; i++) {
            fk_member moved = member[i];
            uint32_t at = i;
            for (; at >= gap; at -= gap) {
                if (member_compare(&member[at - gap], moved.id, moved.incarnation) <= 0) break;
                member[at] = member[at - gap];
            }
            member[at] = moved;
        }
    }
}

static bool member_is_legal(const fk_member *m)
{
    if (m->id.len == 0 || m->id.len > FK_MEMBER_TEXT_MAX) return false;
    if (m->address.len > FK_MEMBER_TEXT_MAX || m->kind_count > FK_MEMBER_KINDS_MAX) return false;
    for (uint32_t i = 0; i < m->kind_count; i++) {
        if (m->kinds[i].len == 0 || m->kinds[i].len > FK_KIND_NAME_MAX) return false;
    }
    return true;
}

static fk_str census_text(char **at, fk_str text)
{
    fk_str copy = { *at, text.len };
    if (text.len != 0) memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

/* Without the one called `without`, which may be NULL. */
static fk_err census_create(fk_placement *p, const fk_view *view, const fk_member *without,
                            fk_census **out)
{
    size_t kinds = 0, text = 0;
    uint32_t count = 0;
    void *memory;
    for (uint32_t i = 0; i < view->count; i++) {
        const fk_member *m = &view->members[i];
        if (!member_is_legal(m)) return FK_E_INVALID;
        kinds += m->kind_count;
        text += m->id.len + m->address.len;
        for (uint32_t k = 0; k < m->kind_count; k++) text += m->kinds[k].len;
    }
    size_t size =
        sizeof(fk_census) + view->count * sizeof(fk_member) + kinds * sizeof(fk_str) + text;
    FK_TRY(fk__mem_alloc(&p->mem, size, FK_SITE("view"), &memory));
    fk_census *census = memory;
    fk_member *member = (fk_member *)(void *)(census + 1);
    fk_str *kind = (fk_str *)(void *)(member + view->count);
    char *at = (char *)(kind + kinds);
    for (uint32_t i = 0; i < view->count; i++) {
        const fk_member *m = &view->members[i];
        if (m == without) continue;
        member[count] = *m;
        member[count].id = census_text(&at, m->id);
        member[count].address = census_text(&at, m->address);
        member[count].kinds = kind;
        for (uint32_t k = 0; k < m->kind_count; k++) *kind++ = census_text(&at, m->kinds[k]);
        count++;
    }
    if (FK_SAFEGUARD(PLACEMENT_TIE)) members_sort(member, count);
    *census =
        (fk_census){ .view = { view->version, member, count }, .member = member, .size = size };
    *out = census;
    return FK_OK;
}

void fk__census_free(fk_placement *p, fk_census *census)
{
    if (census != NULL) fk__mem_free(&p->mem, census, census->size);
}

static uint32_t census_index(const fk_census *census, fk_str id, uint64_t incarnation)
{
    uint32_t low = 0, high = census != NULL ? census->view.count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = member_compare(&census->member[middle], id, incarnation);
        if (order == 0) return middle;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return FK_NOBODY;
}

uint32_t fk__census_find(const fk_placement *p, fk_str id, uint64_t incarnation)
{
    return census_index(p->census, id, incarnation);
}

/* ---- realms ------------------------------------------------------------------------------------- */

fk_realm *fk__realm_find(const fk_placement *p, fk_str name)
{
    fk_realm *realm = p->realms;
    while (realm != NULL && !fk__text_equal(fk__realm_name(realm), name)) realm = realm->next;
    return realm;
}

fk_err fk__realm_create(fk_placement *p, fk_str name, fk_realm **out)
{
    void *memory;
    FK_ASSERT(name.len > 0 && name.len <= FK_KIND_NAME_MAX);
    FK_TRY(fk__mem_alloc(&p->mem, sizeof(fk_realm), FK_SITE("kind"), &memory));
    fk_realm *realm = memory;
    *realm = (fk_realm){ .next = p->realms, .name_len = (uint8_t)name.len };
    memcpy(realm->name, name.ptr, name.len);
    for (int q = 0; q < FK_QUEUE_COUNT; q++) {
        realm->queue[q] = (fk_slot_queue){ FK_NOBODY, FK_NOBODY, 0 };
    }
    p->realms = realm;
    p->realm_count++;
    *out = realm;
    return FK_OK;
}

static void realm_destroy(fk_placement *p, fk_realm *realm)
{
    fk__slot_table_fini(&realm->table, &p->mem);
    fk__mem_free(&p->mem, realm->member_of, realm->member_capacity * sizeof(uint32_t));
    fk__mem_free(&p->mem, realm->slot, p->config.slots * sizeof(fk_slot));
    fk__mem_free(&p->mem, realm, sizeof(*realm));
    p->realm_count--;
}

void fk__realm_drop(fk_placement *p, fk_realm *realm)
{
    fk_realm **link = &p->realms;
    while (*link != realm) link = &(*link)->next;
    *link = realm->next;
    realm_destroy(p, realm);
}

void fk__realms_free(fk_placement *p)
{
    while (p->realms != NULL) {
        fk_realm *next = p->realms->next;
        realm_destroy(p, p->realms);
        p->realms = next;
    }
}

/* Kinds that neither this member nor the view has. */
static void realms_sweep(fk_placement *p)
{
    fk_realm **link = &p->realms;
    while (*link != NULL) {
        fk_realm *realm = *link;
        if (realm->is_local || realm->is_listed) {
            link = &realm->next;
        } else {
            *link = realm->next;
            realm_destroy(p, realm);
        }
    }
}

static bool member_has_kind(const fk_member *m, fk_str kind)
{
    for (uint32_t k = 0; k < m->kind_count; k++) {
        if (fk__text_equal(m->kinds[k], kind)) return true;
    }
    return false;
}

static bool member_is_self(const fk_placement *p, const fk_member *m)
{
    return p->role == FK_ROLE_MEMBER && m->incarnation == p->incarnation &&
           fk__text_equal(m->id, fk__placement_id(p));
}

/* Who can own slots of a kind, by id: of several lives of a member the last. Fills whichever of the
 * arrays there is. */
static uint32_t census_candidates(const fk_placement *p, const fk_census *census, fk_str kind,
                                  fk_candidate *candidate, uint32_t *member_of)
{
    uint32_t count = 0, last = FK_NOBODY;
    for (uint32_t i = 0; census != NULL && i < census->view.count; i++) {
        const fk_member *m = &census->member[i];
        if (m->status != FK_MEMBER_UP || m->weight == 0 || !member_has_kind(m, kind)) continue;
        if (p->is_draining && member_is_self(p, m)) continue;
        bool is_again = last != FK_NOBODY && fk__text_equal(census->member[last].id, m->id);
        if (is_again) count--;
        if (candidate != NULL) {
            candidate[count] = (fk_candidate){ fk_member_seed(m->id), m->weight };
        }
        if (member_of != NULL) member_of[count] = i;
        last = i;
        count++;
    }
    return count;
}

fk_owner fk__realm_owner(const fk_placement *p, const fk_realm *realm, uint32_t slot,
                         uint32_t *member)
{
    if (realm->table.slots == 0) return FK_OWNER_NOBODY;
    uint32_t candidate = realm->table.owner[slot];
    if (candidate == FK_NOBODY) return FK_OWNER_NOBODY;
    uint32_t index = realm->member_of[candidate];
    if (index == p->self) return FK_OWNER_SELF;
    if (p->role == FK_ROLE_MEMBER &&
        fk__text_equal(p->census->member[index].id, fk__placement_id(p))) {
        return FK_OWNER_NOBODY;
    }
    *member = index;
    return FK_OWNER_OTHER;
}

bool fk__placement_is_leaving(const fk_placement *p)
{
    if (p->is_draining) return true;
    return p->self != FK_NOBODY && p->census->member[p->self].status == FK_MEMBER_DRAINING;
}

/* ---- taking a view ------------------------------------------------------------------------------ */

static fk_err realm_reserve(fk_placement *p, fk_realm *realm, uint32_t count)
{
    void *memory;
    if (count <= realm->member_capacity) return FK_OK;
    FK_TRY(fk__mem_alloc(&p->mem, count * sizeof(uint32_t), FK_SITE("members of a kind"), &memory));
    if (realm->member_capacity != 0) {
        memcpy(memory, realm->member_of, realm->member_capacity * sizeof(uint32_t));
    }
    fk__mem_free(&p->mem, realm->member_of, realm->member_capacity * sizeof(uint32_t));
    realm->member_of = memory;
    realm->member_capacity = count;
    return FK_OK;
}

static fk_err realm_update(fk_placement *p, fk_realm *realm, const fk_census *census,
                           fk_candidate *scratch)
{
    uint32_t count = census_candidates(p, census, fk__realm_name(realm), scratch, NULL);
    if (count == 0 && realm->table.slots == 0) return FK_OK; /* nobody owns what is not there */
    return fk__slot_table_update(&realm->table, &p->mem, p->config.strategy, scratch, count,
                                 p->config.slots);
}

/* A realm for each kind of the view, with room for its members. Those that are new and not needed
 * in the end go with the sweep. */
static fk_err census_prepare(fk_placement *p, const fk_census *census)
{
    for (uint32_t i = 0; i < census->view.count; i++) {
        const fk_member *m = &census->member[i];
        for (uint32_t k = 0; k < m->kind_count; k++) {
            fk_realm *realm = fk__realm_find(p, m->kinds[k]);
            if (realm == NULL) FK_TRY(fk__realm_create(p, m->kinds[k], &realm));
        }
    }
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        FK_TRY(realm_reserve(p, realm, census->view.count));
    }
    return FK_OK;
}

static fk_err census_tables(fk_placement *p, const fk_census *census)
{
    fk_err err = FK_OK;
    void *memory;
    FK_ASSERT(census != NULL);
    uint32_t before = p->census != NULL ? p->census->view.count : 0;
    uint32_t most = (before > census->view.count ? before : census->view.count) + 1;
    size_t size = most * sizeof(fk_candidate);
    FK_TRY(fk__mem_alloc(&p->mem, size, FK_SITE("candidates"), &memory));
    fk_realm *failed = p->realms;
    while (failed != NULL && err == FK_OK) {
        err = realm_update(p, failed, census, memory);
        if (err == FK_OK) failed = failed->next;
    }
    for (fk_realm *realm = p->realms; err != FK_OK && realm != failed; realm = realm->next) {
        fk_err undone = realm_update(p, realm, p->census, memory);
        FK_ASSERT(undone == FK_OK); /* it had room for them */
    }
    fk__mem_free(&p->mem, memory, size);
    return err;
}

/* Hints that point into the old view. */
static void realm_rehint(fk_placement *p, fk_realm *realm, const fk_census *old)
{
    for (uint32_t i = realm->queue[FK_QUEUE_REFUSED].first; i != FK_NOBODY;) {
        fk_slot *s = &realm->slot[i];
        uint32_t next = s->next;
        if (s->holder != FK_NOBODY) {
            const fk_member *m = &old->member[s->holder];
            s->holder = fk__census_find(p, m->id, m->incarnation);
            /* Whoever had it is gone: it may be free by now. */
            if (s->holder == FK_NOBODY) fk__slot_queue(p, realm, i, FK_QUEUE_NONE);
        }
        i = next;
    }
}

static void realm_relist(const fk_placement *p, fk_realm *realm)
{
    realm->is_listed = false;
    for (uint32_t i = 0; i < p->census->view.count && !realm->is_listed; i++) {
        realm->is_listed = member_has_kind(&p->census->member[i], fk__realm_name(realm));
    }
    census_candidates(p, p->census, fk__realm_name(realm), NULL, realm->member_of);
}

/* What is cached is of no use when its member is gone, or when the table says the same. */
static void pids_review(fk_placement *p)
{
    for (fk_ring *at = p->pids.made.next, *next; at != &p->pids.made; at = next) {
        fk_pid *pid = FK_CONTAINER(at, fk_pid, made);
        next = at->next;
        uint32_t owner = FK_NOBODY;
        uint32_t member = fk__census_find(p, fk__pid_authority(pid), pid->incarnation);
        const fk_realm *realm = fk__realm_find(p, fk__pid_key(pid).kind);
        bool is_known = realm != NULL && member != FK_NOBODY;
        if (is_known) fk__realm_owner(p, realm, fk_slot_of(pid->id, p->config.slots), &owner);
        if (is_known && owner != member) continue;
        fk__say_cached(p, FK_PLACEMENT_CACHE_DROPPED, pid,
                       member == FK_NOBODY ? "member left" : "view");
        fk__pids_drop(&p->pids, pid);
    }
}

static void census_review(fk_placement *p)
{
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        fk__slots_review(p, realm);
    }
    fk__slots_pump(p);
}

static fk_err census_take(fk_placement *p, fk_census *census)
{
    fk_census *old = p->census;
    fk_err err = census_prepare(p, census);
    if (err == FK_OK) err = census_tables(p, census);
    if (err != FK_OK) {
        realms_sweep(p);
        fk__census_free(p, census);
        return err;
    }
    p->census = census;
    p->self = FK_NOBODY;
    if (p->role == FK_ROLE_MEMBER) {
        p->self = fk__census_find(p, fk__placement_id(p), p->incarnation);
    }
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        realm_relist(p, realm);
        if (realm->slot != NULL) realm_rehint(p, realm, old);
    }
    fk__census_free(p, old);
    realms_sweep(p);
    fk__say(p,
            (fk_placement_event){ .kind = FK_PLACEMENT_TOPOLOGY, .version = census->view.version });
    fk__placement_restate(p);
    pids_review(p);
    census_review(p);
    return FK_OK;
}

fk_err fk__census_refresh(fk_placement *p)
{
    p->self = FK_NOBODY;
    if (p->census == NULL) return FK_OK;
    if (p->role == FK_ROLE_MEMBER) {
        p->self = fk__census_find(p, fk__placement_id(p), p->incarnation);
    }
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        FK_TRY(realm_reserve(p, realm, p->census->view.count));
    }
    FK_TRY(census_tables(p, p->census));
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) realm_relist(p, realm);
    census_review(p);
    return FK_OK;
}

fk_err fk_placement_update_topology(fk_placement *p, const fk_view *view, fk_time now)
{
    fk_census *census;
    fk__placement_enter(p, now);
    if (view->version == 0) return FK_E_INVALID;
    bool is_newer = p->census == NULL || view->version > p->census->view.version;
    if (FK_SAFEGUARD(PLACEMENT_OLD_VIEW) && !is_newer) return FK_OK;
    FK_TRY(census_create(p, view, NULL, &census));
    return census_take(p, census);
}

void fk_placement_expect_view(fk_placement *p, uint64_t version, fk_time now)
{
    fk__placement_enter(p, now);
    bool was_old = fk_placement_view(p).version < p->expected;
    if (version == 0 || version > p->expected) p->expected = version;
    if (was_old && version == 0 && p->census != NULL) census_review(p);
}

fk_err fk_placement_member_left(fk_placement *p, fk_str id, uint64_t incarnation, fk_time now)
{
    fk_census *census;
    fk__placement_enter(p, now);
    uint32_t index = fk__census_find(p, id, incarnation);
    if (index == FK_NOBODY) return FK_E_NOT_FOUND;
    FK_TRY(census_create(p, &p->census->view, &p->census->member[index], &census));
    return census_take(p, census);
}

fk_err fk_placement_drain(fk_placement *p, fk_time now)
{
    fk__placement_enter(p, now);
    if (p->role != FK_ROLE_MEMBER) return FK_E_STATE;
    if (p->is_draining) return FK_OK;
    p->is_draining = true;
    fk_err err = fk__census_refresh(p);
    if (err != FK_OK) p->is_draining = false;
    return err;
}

fk_view fk_placement_view(const fk_placement *p)
{
    return p->census != NULL ? p->census->view : (fk_view){ 0, NULL, 0 };
}
