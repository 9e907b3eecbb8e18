/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Systems come, go and are forgotten while threads send to references of them, which have given way or
 * not, and select actors there: every letter is written once, to the actor that it is for, or is one
 * dead letter.
 *
 * A sender that is held up between finding a reference and putting its letter on a line may find both to
 * be another's. That takes a few instructions; so some letters go to references that were seen at any
 * time before, past the look at their generation.
 */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "support/switchboard.h"
#include "wire/container.h"

enum {
    SYSTEMS = 24,
    NAMES = 4,   /* actors of each that are met */
    ANY = NAMES, /* a selection of all of them */
    WHO = 1 + NAMES,
    ROOM = 8,     /* for systems */
    MET_MAX = 12, /* references */
    SENDERS = 3,
    EACH = 1 << 22, /* letters of one sender, at most */
    PACE = 500,     /* and while systems come and go once */
    SEEN = 64       /* references that a sender remembers */
};

_Static_assert((SYSTEMS + 1) * WHO <= 256, "fits into a byte");

/* What a sender remembers. */
typedef struct seen {
    uint64_t ref;
    uint32_t number, name;
} seen;

static switchboard b;
static _Atomic uint64_t refs[SYSTEMS + 1][NAMES]; /* slot and generation; 0: never met */
static _Atomic bool is_wanted[SYSTEMS + 1];
static uint32_t lives[SYSTEMS + 1];
static uint8_t meant[SENDERS * EACH]; /* by the number that is in the letter: system and actor */
static _Atomic uint8_t ends[SENDERS * EACH];
static uint64_t sent[SENDERS];
static uint64_t written;
static _Atomic uint64_t dead, given_way, crowded_out;
static _Atomic uint64_t turns;
static _Atomic bool is_over;
/* Whoever selects may take the last room in the table of systems, but not while one comes in. */
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

/* ---- the ends of letters -------------------------------------------------------------------------- */

static void end_one(fk_long number)
{
    CHECK(number >= 0 && number < SENDERS * EACH);
    CHECK_U64(atomic_fetch_add(&ends[number], 1), 0);
}

static void on_letter(uint32_t to, const fk_wire_envelope *e)
{
    fk_str bytes = e->payload;
    fk_wire_selection selection;
    fk_wire_fault fault;
    char expected[64];
    if (e->serializer == FK_SERIALIZER_SELECTION) {
        CHECK_OK(fk__selection_decode(e->payload, &selection, &fault));
        bytes = selection.message;
    }
    CHECK_U64(bytes.len, sizeof(fk_long));
    fk_long number = (fk_long)fk__load64(bytes.ptr);
    end_one(number);
    uint32_t name = meant[number] % WHO;
    CHECK_U64(to, meant[number] / WHO);
    CHECK((name == ANY) == (e->serializer == FK_SERIALIZER_SELECTION));
    int len = snprintf(expected, sizeof(expected), "fraktor://c@10.0.0.1:%u/", to);
    if (name != ANY)
        len += snprintf(expected + len, sizeof(expected) - (size_t)len, "user/x%u", name);
    CHECK_U64(e->recipient.text.len, (size_t)len);
    CHECK(memcmp(e->recipient.text.ptr, expected, (size_t)len) == 0);
    written++;
}

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (strcmp(event->reason, "crowded out") == 0) atomic_fetch_add(&crowded_out, 1);
}

static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    fk_long number;
    (void)user;
    if (letter->type != &fk_type_fk_long) return;
    memcpy(&number, letter->data, sizeof(number));
    end_one(number);
    atomic_fetch_add(&dead, 1);
    fk_str late = FK_STR("the reference has given way");
    bool is_late =
        letter->detail.len == late.len && memcmp(letter->detail.ptr, late.ptr, late.len) == 0;
    if (is_late) atomic_fetch_add(&given_way, 1);
}

/* ---- senders -------------------------------------------------------------------------------------- */

static fk_err select_all(uint32_t number, fk_long letter)
{
    char path[64];
    int len = snprintf(path, sizeof(path), "fraktor.tcp://c@10.0.0.1:%u/user/x?", number);
    pthread_mutex_lock(&door);
    fk_err err = fk_select_send(b.r.sys, (fk_str){ path, (size_t)len }, FK_MSG(fk_long, letter));
    pthread_mutex_unlock(&door);
    return err == FK_E_LIMIT ? FK_OK : err;
}

/* As fk_send(), by whoever has found that the reference is good, however long ago. */
static fk_err send_late(fk_ref to, fk_long letter)
{
    fk_local *local = fk__local_enter(b.r.sys);
    fk_node *node = fk__node_create(&local->cache, FK_MSG(fk_long, letter));
    node->sender = 0;
    node->generation = to.generation;
    fk_proxy *proxy = fk__slots_at(&b.r.sys->slots, to.slot)->state;
    fk_err err = b.r.sys->remote.send(b.remote, local, proxy, to, node);
    fk__local_leave(local);
    return err;
}

/* Nobody sends to one that is to be forgotten, unless it is too late. */
static bool may_send(const seen *who, bool is_late)
{
    if (who->ref == 0) return false;
    if (atomic_load(&is_wanted[who->number])) return true;
    return is_late && !fk_is_alive(b.r.sys, fk__sender_ref(who->ref, b.r.sys->id));
}

/* False: there is nobody to send to. */
static bool send_one(test_random *random, seen past[SEEN], fk_long letter)
{
    seen who = { .number = 1 + (uint32_t)test_random_below(random, SYSTEMS),
                 .name = (uint32_t)test_random_below(random, NAMES) };
    fk_err err;
    who.ref = atomic_load(&refs[who.number][who.name]);
    if (test_random_below(random, 64) == 0 && atomic_load(&is_wanted[who.number])) {
        meant[letter] = (uint8_t)(who.number * WHO + ANY);
        err = select_all(who.number, letter);
    } else {
        seen *one = &past[test_random_below(random, SEEN)];
        bool is_late = one->ref != 0 && test_random_below(random, 4) == 0;
        if (!may_send(is_late ? one : &who, is_late)) return false;
        if (!is_late) *one = who;
        meant[letter] = (uint8_t)(one->number * WHO + one->name);
        fk_ref to = fk__sender_ref(one->ref, b.r.sys->id);
        err = is_late ? send_late(to, letter) : fk_send(b.r.sys, to, FK_MSG(fk_long, letter));
    }
    /* Who is crowded out is quarantined for a moment. */
    CHECK(err == FK_OK || err == FK_E_FULL || err == FK_E_DEAD || err == FK_E_QUARANTINED);
    return true;
}

static void *send_them(void *arg)
{
    uintptr_t sender = (uintptr_t)arg;
    test_random random = { sender + 1 };
    seen past[SEEN] = { { 0, 0, 0 } };
    while (!atomic_load(&is_over) && sent[sender] < EACH) {
        bool is_ahead = sent[sender] >= atomic_load(&turns) * PACE;
        if (is_ahead)
            sched_yield();
        else if (send_one(&random, past, (fk_long)(sender * EACH + sent[sender])))
            sent[sender]++;
    }
    return NULL;
}

/* ---- systems -------------------------------------------------------------------------------------- */

static void meet(uint32_t number, uint32_t name)
{
    char text[64];
    fk_path path;
    fk_ref ref;
    fk_str str = { text, (size_t)snprintf(text, sizeof(text),
                                          "fraktor.tcp://c@10.0.0.1:%u/user/x%u", number, name) };
    CHECK_OK(fk_path_parse(&b.r.sys->paths, str, &path, NULL));
    CHECK_OK(fk__remote_meet(b.remote, b.driver->local, &path, &ref));
    atomic_store(&refs[number][name], fk__sender_pack(ref.slot, ref.generation));
}

/* It comes in, if there is room; all that waits for it goes, because it is there. True: it had been
 * forgotten. */
static bool visit(test_random *random, uint32_t number)
{
    pthread_mutex_lock(&door);
    fk__remote_lock(b.remote);
    bool is_there = board_authority(&b, number) != NULL;
    bool has_room = is_there || b.remote->table.count < ROOM - 2;
    fk__remote_unlock(b.remote);
    if (has_room && b.caller[number].in == 0) board_meet(&b, number, 1 + lives[number]);
    pthread_mutex_unlock(&door);
    if (has_room) atomic_store(&is_wanted[number], true);
    for (uint32_t name = 0; has_room && name < NAMES; name++) {
        if (test_random_below(random, 2) == 0) meet(number, name);
    }
    bool was_met = lives[number] != 0;
    if (has_room && !was_met) lives[number] = 1;
    return has_room && was_met && !is_there;
}

/* It goes, with a word or without, and is sent to no more, or still. */
static void leave(test_random *random, uint32_t number)
{
    bool is_over_there = test_random_below(random, 2) == 0;
    if (test_random_below(random, 2) == 0) atomic_store(&is_wanted[number], false);
    board_run(&b);
    if (is_over_there) board_part(&b, number);
    board_drop(&b, number);
    if (is_over_there) lives[number]++;
}

TEST(retirement_every_letter_is_written_to_whom_it_is_for_or_a_dead_letter)
{
    static const int BY[] = {
        1, 1, 1, 1, 70, 70, 70, 3700
    }; /* who has gone is forgotten, or not yet */
    pthread_t thread[SENDERS];
    test_random random = { 7 };
    uint64_t forgotten = 0, all = 0;
    fk_subscription events;
    board_start(&b, ROOM);
    CHECK_OK(fk_subscribe(b.r.sys, FK_TOPIC(AUTHORITY), FK_LEVEL_INFO, on_event, NULL, &events));
    b.on_letter = on_letter;
    b.r.sys->on_dead_letter = on_dead_letter;
    b.remote->proxies.met_max = MET_MAX;
    for (uintptr_t i = 0; i < SENDERS; i++) {
        CHECK(pthread_create(&thread[i], NULL, send_them, (void *)i) == 0);
    }
    int64_t end = test_clock() + FK_SECONDS(10);
    for (uint64_t i = 0; i < test_scaled(5000) && test_clock() < end; i++) {
        atomic_fetch_add(&turns, 1);
        for (uint32_t other = 1; other <= SYSTEMS; other++) {
            bool goes = b.caller[other].in != 0 && test_random_below(&random, 3) == 0;
            if (goes) leave(&random, other);
        }
        forgotten += visit(&random, 1 + (uint32_t)test_random_below(&random, SYSTEMS));
        fk_time by = FK_SECONDS(BY[test_random_below(&random, sizeof(BY) / sizeof(BY[0]))]);
        board_pass(&b, by, by);
    }
    atomic_store(&is_over, true);
    for (uint32_t i = 0; i < SENDERS; i++) pthread_join(thread[i], NULL);
    board_stop(&b);
    for (uint32_t i = 0; i < SENDERS; i++) all += sent[i];
    printf(
        "%llu sent, %llu written, %llu dead, %llu of them found out late; %llu of %llu forgotten, %llu crowded out\n",
        (unsigned long long)all, (unsigned long long)written, (unsigned long long)dead,
        (unsigned long long)given_way, (unsigned long long)forgotten, (unsigned long long)turns,
        (unsigned long long)crowded_out);
    CHECK_U64(b.mistaken, 0);
    CHECK_U64(written + dead, all);
    CHECK(written > 0 && given_way > 0 && forgotten > 0);
    CHECK(crowded_out > 0 || test_is_sanitized()); /* there it may take too long */
}
