/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Systems come, go and are forgotten while threads send to references of them, which have given way or
 * not, and select actors there: every message is written to the system that it is for, or is one dead
 * letter.
 */

#include <pthread.h>
#include <stdio.h>

#include "support/switchboard.h"

enum { SYSTEMS = 24, ROOM = 8, SENDERS = 3 };

static switchboard b;
static _Atomic uint64_t refs[SYSTEMS + 1]; /* slot and generation; 0: never met */
static _Atomic uint64_t sent;
static _Atomic bool is_over;

static void select_one(uint32_t number)
{
    char path[64];
    int len = snprintf(path, sizeof(path), "fraktor.tcp://c@10.0.0.1:%u/user/y", number);
    fk_err err = fk_select_send(b.r.sys, (fk_str){ path, (size_t)len }, FK_MSG(fk_long, 1));
    CHECK(err == FK_OK || err == FK_E_FULL || err == FK_E_LIMIT || err == FK_E_DEAD);
    atomic_fetch_add(&sent, 1);
}

static void *send_them(void *arg)
{
    test_random random = { (uintptr_t)arg };
    while (!atomic_load(&is_over)) {
        uint32_t number = 1 + (uint32_t)test_random_below(&random, SYSTEMS);
        fk_ref to = fk__sender_ref(atomic_load(&refs[number]), b.r.sys->id);
        if (test_random_below(&random, 64) == 0) select_one(number);
        if (fk_ref_is_none(to)) continue;
        fk_err err = fk_send(b.r.sys, to, FK_MSG(fk_long, 2));
        CHECK(err == FK_OK || err == FK_E_FULL || err == FK_E_DEAD);
        atomic_fetch_add(&sent, 1);
    }
    return NULL;
}

/* All that waits for it goes, because it is there. */
static void visit(uint32_t number)
{
    if (b.caller[number].in != 0) return;
    board_meet(&b, number, 1);
    fk_ref ref = board_ref(&b, number, false);
    atomic_store(&refs[number], fk__sender_pack(ref.slot, ref.generation));
}

TEST(retirement_every_message_is_written_or_a_dead_letter)
{
    pthread_t thread[SENDERS];
    test_random random = { 7 };
    uint64_t forgotten = 0;
    board_start(&b, ROOM);
    for (uintptr_t i = 0; i < SENDERS; i++) {
        CHECK(pthread_create(&thread[i], NULL, send_them, (void *)(i + 1)) == 0);
    }
    /* Those who send leave the lock to nobody else for long, on a small machine. */
    int64_t end = test_clock() + FK_SECONDS(10);
    for (uint64_t i = 0; i < test_scaled(5000) && test_clock() < end; i++) {
        uint32_t number = 1 + (uint32_t)test_random_below(&random, SYSTEMS);
        /* Nobody else is connected, so that there is room. */
        for (uint32_t other = 1; other <= SYSTEMS; other++) {
            if (b.caller[other].in != 0 && test_random_below(&random, 3) == 0) {
                atomic_store(&refs[other],
                             test_random_below(&random, 2) == 0 ? 0 : atomic_load(&refs[other]));
                board_run(&b);
                board_drop(&b, other);
            }
        }
        fk__remote_lock(b.remote);
        bool was_there = board_authority(&b, number) != NULL;
        bool has_room = was_there || b.remote->table.count < ROOM - 2;
        fk__remote_unlock(b.remote);
        if (has_room) visit(number);
        if (!was_there) forgotten++;
        board_pass(&b, FK_SECONDS(1), FK_SECONDS(1));
    }
    atomic_store(&is_over, true);
    for (uint32_t i = 0; i < SENDERS; i++) pthread_join(thread[i], NULL);
    CHECK(forgotten > 0);
    board_stop(&b);
    printf("%llu sent, %llu written, %zu dead, %llu met anew\n", (unsigned long long)sent,
           (unsigned long long)b.letters, b.r.letters.count, (unsigned long long)forgotten);
    CHECK_U64(b.mistaken, 0);
    CHECK(b.letters > 0);
    CHECK_U64(b.letters + b.r.letters.count, sent);
}
