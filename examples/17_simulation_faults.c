/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Three nodes in a world where everything goes wrong, and time is a number. Each node is a coordinator of
 * fraktor/placement.h, which decides and does nothing else; so whoever drives it can do what it says late,
 * or not at all. Nodes stand still and wake up, cannot reach the lock service, lose their leases and join
 * again. In every millisecond every node that may takes a turn of each grain that it has: no two of them
 * may have the same one. The same seed tells the same story; and a node that does not look at its lease
 * before a turn is found out. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>

enum { NODES = 3, SLOTS = 8, KEYS = 6, LETTERS = 512, SEEDS = 24 };
enum { FAULTS_END = 15000, STEPS = 17000 }; /* milliseconds of one world */

static const fk_time TTL = FK_MILLIS(300);
static const char *const IDS[NODES] = { "north", "south", "west" };

typedef struct {
    fk_placement *p;
    fk_time awake_at, reachable_at; /* faults */
    bool wants_join;
    uint64_t active[KEYS]; /* the activation's number, or 0 */
} node;

/* Something on its way, to the lock service or to a node. */
typedef struct {
    fk_time at;
    int node;
    bool is_used, is_answer, is_join;
    fk_time asked_at;
    uint64_t incarnation;
    fk_placement_result result;
    fk_slot_claim slots[SLOTS];
    int to, key;
    uint64_t to_incarnation;
} letter;

typedef struct {
    uint64_t seed, story; /* story: a hash of all that happened */
    fk_time now;
    bool is_careless; /* nodes do not look at their leases */
    node node[NODES];
    letter letter[LETTERS];
    fk_grain_key key[KEYS];
    uint64_t pids, tickets, view_version;
    /* the lock service: one lease for a node, and a row for each slot */
    fk_time until[NODES];
    uint64_t incarnation[NODES];
    struct {
        int owner;
        uint64_t incarnation, epoch;
    } slot[SLOTS];
    uint32_t turns, moves, lost, twice, reached;
    int last[KEYS]; /* who took the last turn */
} world;

static world w; /* large */

static uint64_t dice(uint64_t sides)
{
    w.seed ^= w.seed << 13;
    w.seed ^= w.seed >> 7;
    w.seed ^= w.seed << 17;
    return w.seed % sides;
}

static void tell(uint64_t what)
{
    w.story = (w.story ^ what) * UINT64_C(0x100000001b3);
}

static int node_of(fk_str id)
{
    for (int i = 0; i < NODES; i++) {
        if (strlen(IDS[i]) == id.len && memcmp(IDS[i], id.ptr, id.len) == 0) return i;
    }
    return -1;
}

static int key_of(fk_grain_id id)
{
    int i = 0;
    while (i < KEYS - 1 && !fk_grain_id_equal(w.key[i].id, id)) i++;
    return i;
}

/* ---- letters ------------------------------------------------------------------------------------------ */

static void post(const letter *l, uint64_t most)
{
    for (int i = 0; i < LETTERS; i++) {
        if (w.letter[i].is_used) continue;
        w.letter[i] = *l;
        w.letter[i].is_used = true;
        w.letter[i].at = w.now + FK_MILLIS((fk_time)(1 + dice(most)));
        return;
    }
}

static bool is_alive(int i)
{
    return w.until[i] > w.now;
}

static bool is_free(uint32_t slot)
{
    int owner = w.slot[slot].owner;
    return owner < 0 || !is_alive(owner) || w.slot[slot].incarnation != w.incarnation[owner];
}

/* What the lock service does with a claim; 0: it is refused. */
static void claim_settle(const letter *l, fk_slot_claim *claim)
{
    int owner = w.slot[claim->slot].owner;
    bool is_ours = owner == l->node && w.slot[claim->slot].incarnation == l->incarnation;
    bool is_free_now = is_free(claim->slot);
    uint64_t epoch = claim->epoch;
    claim->epoch = 0;
    if (l->result.kind == FK_COMMAND_TRY_ACQUIRE) {
        if (is_free_now) {
            w.slot[claim->slot].owner = l->node;
            w.slot[claim->slot].incarnation = l->incarnation;
            w.slot[claim->slot].epoch++;
        }
        if (is_free_now || is_ours) {
            claim->epoch = w.slot[claim->slot].epoch;
        } else {
            claim->holder = fk_str_of(IDS[owner]);
            claim->holder_incarnation = w.slot[claim->slot].incarnation;
        }
    } else if (is_ours && w.slot[claim->slot].epoch == epoch) {
        bool is_transfer = l->result.kind == FK_COMMAND_TRANSFER_SLOT;
        w.slot[claim->slot].owner = is_transfer ? l->to : -1;
        w.slot[claim->slot].incarnation = l->to_incarnation;
        if (is_transfer) claim->epoch = ++w.slot[claim->slot].epoch;
    }
}

/* A letter has come to the lock service, which answers. */
static void serve(letter l)
{
    bool is_member = is_alive(l.node) && w.incarnation[l.node] == l.incarnation;
    l.is_answer = true;
    if (l.is_join) {
        w.incarnation[l.node]++;
        w.until[l.node] = w.now + TTL;
        w.view_version++;
        l.incarnation = w.incarnation[l.node];
    } else if (!is_member) {
        l.result.verdict = FK_VERDICT_REFUSED;
        l.result.err = FK_E_FENCED;
    } else if (l.result.kind == FK_COMMAND_RENEW_MEMBER) {
        w.until[l.node] = w.now + TTL;
    } else if (l.result.kind == FK_COMMAND_TRANSFER_SLOT &&
               (!is_alive(l.to) || w.incarnation[l.to] != l.to_incarnation)) {
        l.result.verdict = FK_VERDICT_REFUSED;
        l.result.err = FK_E_NOT_FOUND;
    } else {
        for (uint32_t i = 0; i < l.result.slot_count; i++) claim_settle(&l, &l.slots[i]);
    }
    post(&l, 30);
}

/* An answer has come to a node. */
static void hear(letter *l)
{
    node *n = &w.node[l->node];
    if (l->is_join) {
        fk_err err = fk_placement_start_member(n->p, fk_str_of(IDS[l->node]), l->incarnation,
                                               l->asked_at, w.now);
        if (err != FK_OK) n->wants_join = true;
    } else if (l->result.kind == FK_COMMAND_STOP_ACTIVATION) {
        fk_placement_stopped(n->p, w.key[l->key].id, l->result.pid, "asked to", w.now);
    } else {
        l->result.slots = l->slots;
        fk_err err = fk_placement_handle_result(n->p, &l->result, w.now);
        bool is_start = l->result.kind == FK_COMMAND_ENSURE_ACTIVATION;
        if (is_start && err == FK_OK) n->active[l->key] = l->result.pid;
    }
}

static void letters_step(void)
{
    for (int i = 0; i < LETTERS; i++) {
        letter *l = &w.letter[i];
        node *n = &w.node[l->node];
        bool is_own = l->result.kind == FK_COMMAND_ENSURE_ACTIVATION ||
                      l->result.kind == FK_COMMAND_STOP_ACTIVATION;
        if (!l->is_used || w.now < l->at) continue;
        if (l->is_answer && w.now < n->awake_at) continue; /* it waits until somebody is there */
        letter now = *l;
        l->is_used = false;
        if (!is_own && w.now < n->reachable_at) {
            if (now.is_join) n->wants_join = true; /* lost */
        } else if (now.is_answer) {
            hear(&now);
        } else {
            serve(now);
        }
    }
}

/* ---- what a coordinator says ---------------------------------------------------------------------------- */

static void on_command(void *ctx, const fk_placement_command *c)
{
    node *n = ctx;
    letter l = { .node = (int)(n - w.node), .incarnation = w.incarnation[n - w.node] };
    if (c->kind == FK_COMMAND_CANCEL_REQUEST) return;
    l.result = (fk_placement_result){ .kind = c->kind,
                                      .request_id = c->request_id,
                                      .slot_count = c->slot_count };
    l.is_answer = c->kind == FK_COMMAND_ENSURE_ACTIVATION || c->kind == FK_COMMAND_STOP_ACTIVATION;
    l.to = node_of(c->to);
    l.to_incarnation = c->to_incarnation;
    for (uint32_t i = 0; i < c->slot_count; i++) l.slots[i] = c->slots[i];
    if (l.is_answer) {
        l.key = key_of(c->key.id);
        l.result.pid = c->kind == FK_COMMAND_STOP_ACTIVATION ? c->pid : ++w.pids;
    }
    if (c->kind == FK_COMMAND_STOP_ACTIVATION) n->active[l.key] = 0;
    tell((uint64_t)c->kind * 31 + c->request_id);
    post(&l, l.is_answer ? 3 : 30);
}

static void on_event(void *ctx, const fk_placement_event *e)
{
    node *n = ctx;
    tell((uint64_t)e->kind * 1009 + e->epoch);
    if (e->kind != FK_PLACEMENT_LEASE_LOST) return;
    n->wants_join = true;
    w.lost++;
}

static void on_settled(void *ctx, uint64_t ticket, const fk_resolution *r)
{
    (void)ctx;
    tell(ticket * 7 + (uint64_t)r->err);
}

static void on_discard(void *ctx, void *record)
{
    (void)ctx;
    (void)record; /* volatile grains have none */
}

/* ---- the world -------------------------------------------------------------------------------------------- */

static void view_show(node *n)
{
    static const fk_str ROOM = { "room", 4 };
    fk_member members[NODES];
    fk_view view = { w.view_version, members, 0 };
    for (int i = 0; i < NODES; i++) {
        if (!is_alive(i)) continue;
        members[view.count++] = (fk_member){ .id = fk_str_of(IDS[i]),
                                             .incarnation = w.incarnation[i],
                                             .address = fk_str_of(IDS[i]),
                                             .kinds = &ROOM,
                                             .kind_count = 1,
                                             .weight = 100,
                                             .status = FK_MEMBER_UP };
    }
    if (fk_placement_update_topology(n->p, &view, w.now) != FK_OK) tell(1);
}

static void faults(int i)
{
    node *n = &w.node[i];
    if (dice(900) == 0) n->awake_at = w.now + FK_MILLIS((fk_time)dice(900));
    if (dice(900) == 0) n->reachable_at = w.now + FK_MILLIS((fk_time)dice(900));
}

static void turns(int i)
{
    node *n = &w.node[i];
    bool may = w.is_careless || w.now < fk_placement_lease_deadline(n->p);
    for (int k = 0; k < KEYS; k++) {
        if (n->active[k] == 0 || !may) continue;
        w.turns++;
        if (w.last[k] != i) w.moves++;
        w.last[k] = i;
        for (int other = 0; other < i; other++) {
            const node *o = &w.node[other];
            bool may_other = w.is_careless || w.now < fk_placement_lease_deadline(o->p);
            if (w.now >= o->awake_at && may_other && o->active[k] != 0) w.twice++;
        }
    }
}

static void node_step(int i)
{
    node *n = &w.node[i];
    fk_resolution where;
    if (w.now < n->awake_at) return;
    turns(i);
    if (n->wants_join && w.now >= n->reachable_at) {
        n->wants_join = false;
        post(&(letter){ .node = i, .is_join = true, .asked_at = w.now }, 30);
    }
    if (dice(20) == 0 && w.now >= n->reachable_at && w.view_version != 0) view_show(n);
    if (dice(10) == 0) {
        fk_err err = fk_placement_resolve(n->p, &w.key[dice(KEYS)], ++w.tickets, w.now, &where);
        tell((uint64_t)err);
    }
    fk_placement_tick(n->p, w.now);
}

static void leases_step(void)
{
    for (int i = 0; i < NODES; i++) {
        if (w.until[i] == 0 || is_alive(i)) continue;
        w.until[i] = 0;
        w.view_version++;
    }
}

static fk_err live(uint64_t seed, bool is_careless)
{
    static const char *const NAMES[KEYS] = { "lobby", "kitchen", "hall", "attic", "shed", "roof" };
    const fk_port port = fk_host_port();
    fk_err err = FK_OK;
    w = (world){ .seed = seed * UINT64_C(0x9e3779b97f4a7c15), .story = 14695981039346656037u };
    w.is_careless = is_careless;
    for (int i = 0; i < SLOTS; i++) w.slot[i].owner = -1;
    for (int i = 0; i < KEYS && err == FK_OK; i++) {
        err = fk_grain_key_of(FK_STR("room"), fk_str_of(NAMES[i]), &w.key[i]);
    }
    for (int i = 0; i < NODES && err == FK_OK; i++) {
        node *n = &w.node[i];
        fk_placement_config config = { .size = sizeof config,
                                       .slots = SLOTS,
                                       .lease_ttl = TTL,
                                       .command_timeout = FK_MILLIS(100),
                                       .outcome = { n, on_command, on_event, on_settled,
                                                    on_discard } };
        n->wants_join = true;
        err = fk_placement_create(&config, &port, &n->p);
        if (err == FK_OK) {
            err = fk_placement_add_kind(n->p, &(fk_activated_kind){ .name = FK_STR("room") }, 0);
        }
    }
    for (int step = 1; step <= STEPS && err == FK_OK; step++) {
        w.now = FK_MILLIS(step);
        leases_step();
        letters_step();
        for (int i = 0; i < NODES; i++) {
            if (step < FAULTS_END) faults(i);
            node_step(i);
            fk_placement_check(w.node[i].p);
        }
    }
    for (int k = 0; k < KEYS; k++) {
        for (int i = 0; i < NODES; i++) w.reached += w.node[i].active[k] != 0;
    }
    for (int i = 0; i < NODES; i++) {
        if (w.node[i].p != NULL) fk_placement_destroy(w.node[i].p);
    }
    return err;
}

int main(void)
{
    uint64_t turns_all = 0, moves = 0, lost = 0, twice = 0, unreached = 0;
    fk_err err = FK_OK;
    for (uint64_t seed = 1; seed <= SEEDS && err == FK_OK; seed++) {
        err = live(seed, false);
        turns_all += w.turns;
        moves += w.moves;
        lost += w.lost;
        twice += w.twice;
        unreached += w.reached != KEYS;
    }
    printf("%d worlds, %d seconds each\n", SEEDS, STEPS / 1000);
    printf("leases were lost: %s\n", lost > SEEDS ? "many" : "not enough");
    printf("grains moved: %s\n", moves > SEEDS ? "often" : "not enough");
    printf("turns: %s\n", turns_all > 1000000 ? "more than a million" : "too few");
    printf("two nodes took turns of one grain: %d times\n", (int)twice);
    printf("worlds where a grain is out of reach when the faults are over: %d\n", (int)unreached);

    if (err == FK_OK) err = live(7, false);
    uint64_t story = w.story;
    if (err == FK_OK) err = live(7, false);
    printf("the same seed again: %s\n", w.story == story ? "the same story" : "another story");

    uint64_t found = 0;
    for (uint64_t seed = 1; seed <= SEEDS && err == FK_OK && found == 0; seed++) {
        err = live(seed, true);
        if (w.twice > 0) found = seed;
    }
    printf("nodes that do not look at their leases: %s\n", found > 0 ? "found out" : "not noticed");
    if (err != FK_OK) printf("failed: %s\n", fk_err_text(err));
    return err == FK_OK ? 0 : 1;
}
