/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Nodes that are killed and stopped at any moment, on one file. Each child holds slots under a short
 * lease, loads the grain of a slot and counts in it, and writes down what it was told. It looks at its
 * lease before each turn; whoever stops right after that is wrong about it when it goes on, and that
 * is what fences are for. In the end what was
 * written down must fit together:
 *
 *   - an epoch of a slot was given to one holder only, and the row's is none of the lower ones
 *   - of each grain every version was acknowledged to one only, and says as many as were counted
 *   - what was acknowledged under an epoch was so before the load of any later one
 *
 * STORE_KILLS is how many are killed (30); a third as many are stopped.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/disk.h"
#include "store/kit.h"

enum { CHILDREN = 4, SLOTS = 8, NOTES_MAX = 2000000 };

#define TTL    FK_MILLIS(300)
#define MARGIN FK_MILLIS(30)

/* ---- a child ---------------------------------------------------------------------------------- */

typedef struct held {
    uint64_t epoch; /* 0: not held */
    bool is_loaded;
    uint64_t version;
    uint64_t count;
    fk_time rests_until;
} held;

typedef struct child {
    fk_store *store;
    int log;
    char id[16];
    uint64_t incarnation;
    fk_time asked_at, deadline; /* of the lease */
    held slot[SLOTS];
    test_random dice;
} child;

static fk_time clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return FK_SECONDS(t.tv_sec) + t.tv_nsec;
}

/* One write for each line: they never mix. */
static void note(const child *c, char what, uint32_t slot, const uint64_t n[3])
{
    char line[128];
    int len = snprintf(line, sizeof line, "%c %u %llu %llu %llu %s/%llu\n", what, slot,
                       (unsigned long long)n[0], (unsigned long long)n[1], (unsigned long long)n[2],
                       c->id, (unsigned long long)c->incarnation);
    if (write(c->log, line, (size_t)len) != len) _exit(3);
}

static void child_join(child *c)
{
    memset(c->slot, 0, sizeof c->slot);
    fk_store_op op = kit_op(FK_STORE_JOIN);
    op.member = (fk_member){ .id = fk_str_of(c->id), .address = FK_STR("a") };
    op.ttl = TTL;
    op.strategy = "rendezvous";
    op.slots = SLOTS;
    c->asked_at = clock_now();
    kit_do(c->store, &op);
    c->deadline = op.err == FK_OK ? c->asked_at + TTL - MARGIN : 0;
    c->incarnation = op.member.incarnation;
}

static void child_renew(child *c)
{
    fk_store_op op = kit_op(FK_STORE_RENEW);
    op.member.id = fk_str_of(c->id);
    op.member.incarnation = c->incarnation;
    op.ttl = TTL;
    fk_time asked_at = clock_now();
    kit_do(c->store, &op);
    if (op.verdict == FK_VERDICT_REFUSED) c->deadline = 0;
    if (op.verdict != FK_VERDICT_OK) return;
    c->asked_at = asked_at;
    c->deadline = asked_at + TTL - MARGIN;
}

/* Sometimes one sleeps beyond its lease, at the worst moment: when it has just seen that it lasts. */
static void child_doze(child *c, uint64_t one_in)
{
    if (test_random_below(&c->dice, one_in) != 0) return;
    test_sleep_ms(250 + (unsigned)test_random_below(&c->dice, 300));
}

static void child_claim(child *c, uint32_t slot, fk_store_verb verb)
{
    fk_slot_claim claim = { .slot = slot, .epoch = c->slot[slot].epoch };
    fk_store_op op = kit_claim(c->store, verb, c->id, c->incarnation, &claim);
    c->slot[slot] = (held){ 0 };
    if (op.verdict != FK_VERDICT_OK || verb != FK_STORE_ACQUIRE || claim.epoch == 0) return;
    c->slot[slot].epoch = claim.epoch;
    note(c, 'E', slot, (uint64_t[]){ claim.epoch, 0, 0 });
}

static void child_load(child *c, uint32_t slot)
{
    char key[16];
    held *h = &c->slot[slot];
    snprintf(key, sizeof key, "g%u", slot);
    child_doze(c, 10);
    fk_store_op op = kit_load(c->store, key, kit_fence(h->epoch, c->id, c->incarnation));
    if (op.verdict != FK_VERDICT_OK) {
        *h = (held){ 0 };
        return;
    }
    h->is_loaded = true;
    h->version = op.record.version;
    h->count = 0;
    if (op.record.snapshot.len == sizeof h->count) {
        memcpy(&h->count, op.record.snapshot.ptr, sizeof h->count);
    }
    /* Who was here before may come now. */
    h->rests_until = clock_now() + FK_MILLIS(test_random_below(&c->dice, 300));
    note(c, 'L', slot, (uint64_t[]){ h->epoch, h->version, h->count });
}

static void child_count(child *c, uint32_t slot)
{
    char key[16];
    held *h = &c->slot[slot];
    uint64_t count = h->count + 1;
    snprintf(key, sizeof key, "g%u", slot);
    fk_store_op op = kit_op(FK_STORE_STORE);
    op.key = (fk_grain_key){ .kind = FK_STR("account"), .key = fk_str_of(key) };
    op.fence = kit_fence(h->epoch, c->id, c->incarnation);
    op.version = h->version;
    op.request[0] = test_random_next(&c->dice);
    op.request[1] = 1;
    op.record.snapshot = (fk_str){ (const char *)&count, sizeof count };
    child_doze(c, 40);
    kit_do(c->store, &op);
    if (op.verdict != FK_VERDICT_OK) {
        *h = (held){ 0 };
        return;
    }
    h->count = count;
    h->version = op.record.version;
    note(c, 'S', slot, (uint64_t[]){ h->epoch, h->version, h->count });
}

static void child_turn(child *c)
{
    fk_time now = clock_now();
    if (now >= c->deadline) {
        child_join(c);
        return;
    }
    if (now >= c->asked_at + TTL / 3) child_renew(c);
    uint32_t slot = (uint32_t)test_random_below(&c->dice, SLOTS);
    held *h = &c->slot[slot];
    if (clock_now() >= c->deadline) return; /* before each turn */
    if (h->epoch == 0) {
        child_claim(c, slot, FK_STORE_ACQUIRE);
    } else if (!h->is_loaded) {
        child_load(c, slot);
    } else if (clock_now() < h->rests_until) {
        test_sleep_ms(1);
    } else if (test_random_below(&c->dice, 100) == 0) {
        child_claim(c, slot, FK_STORE_RELEASE);
    } else {
        child_count(c, slot);
    }
    test_sleep_ms((unsigned)test_random_below(&c->dice, 3));
}

/* Begins before main(), which would run the tests again. */
__attribute__((constructor(65535))) static void child_main(void)
{
    static child c;
    static fk_port port;
    const char *number = getenv("FK_CHILD");
    const char *why = NULL;
    char url[128];
    if (number == NULL) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    k.room_left = SIZE_MAX;
    port = fk_host_port();
    snprintf(c.id, sizeof c.id, "c%s", number);
    snprintf(url, sizeof url, "sqlite:%s", getenv("FK_FILE"));
    const char *notes = getenv("FK_NOTES");
    if (notes == NULL) _exit(4);
    c.log = open(notes, O_WRONLY | O_APPEND | O_CLOEXEC);
    c.dice.state = (uint64_t)clock_now() | 1;
    if (c.log < 0) _exit(4);
    while (fk_store_open(fk_str_of(url), NULL, false, &port, &c.store, &why) != FK_OK) {
        test_sleep_ms(10); /* all come at once, and one makes the file */
    }
    for (;;) child_turn(&c);
}

/* ---- the parent -------------------------------------------------------------------------------- */

typedef struct line {
    char what;
    uint32_t slot;
    uint64_t epoch, version, count;
    char holder[40];
} line;

static char notes_path[128];
static line *lines;
static size_t line_count;

static pid_t child_start(int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("FK_CHILD", text, 1);
        setenv("FK_FILE", disk_path, 1);
        setenv("FK_NOTES", notes_path, 1);
        execl("/proc/self/exe", "child", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void notes_read(void)
{
    FILE *file = fopen(notes_path, "r");
    char text[160];
    CHECK(file != NULL);
    lines = calloc(NOTES_MAX, sizeof *lines);
    CHECK(lines != NULL);
    while (line_count < NOTES_MAX && fgets(text, sizeof text, file) != NULL) {
        line *l = &lines[line_count++];
        unsigned long long n[3];
        CHECK(sscanf(text, "%c %u %llu %llu %llu %39s", &l->what, &l->slot, &n[0], &n[1], &n[2],
                     l->holder) == 6);
        l->epoch = n[0];
        l->version = n[1];
        l->count = n[2];
        CHECK(l->slot < SLOTS);
    }
    fclose(file);
}

/* By slot, what, then version for stores and epoch for the rest. */
static int line_compare(const void *a, const void *b)
{
    const line *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    uint64_t n = x->what == 'S' ? x->version : x->epoch;
    uint64_t m = y->what == 'S' ? y->version : y->epoch;
    if (n != m) return n < m ? -1 : 1;
    return strcmp(x->holder, y->holder);
}

static void check_neighbours(const line *x, const line *y)
{
    if (x->slot != y->slot || x->what != y->what) return;
    if (x->what == 'E' && x->epoch == y->epoch) CHECK_STR(y->holder, x->holder);
    if (x->what != 'S') return;
    CHECK(y->version > x->version); /* acknowledged once */
    CHECK(y->epoch >= x->epoch);
    if (y->epoch == x->epoch) CHECK_STR(y->holder, x->holder);
}

/* Every load against every store of the slot. What was stored under a lower epoch is all in what was
 * loaded, and nothing of a higher one is: then it would have been refused. */
static void check_loads(uint32_t slot)
{
    for (size_t i = 0; i < line_count; i++) {
        const line *l = &lines[i];
        for (size_t j = 0; j < line_count && l->slot == slot && l->what == 'L'; j++) {
            const line *s = &lines[j];
            if (s->slot != slot || s->what != 'S') continue;
            if (s->epoch < l->epoch) CHECK(s->version <= l->version);
            if (s->epoch > l->epoch) CHECK(s->version > l->version);
        }
    }
}

static void check_rows(uint64_t kills)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        uint64_t version = 0, epoch = 0, count = 0;
        char key[16], query[96];
        for (size_t i = 0; i < line_count; i++) {
            if (lines[i].slot != slot) continue;
            if (lines[i].epoch > epoch) epoch = lines[i].epoch;
            if (lines[i].what == 'S' && lines[i].version > version) version = lines[i].version;
        }
        snprintf(key, sizeof key, "g%u", slot);
        fk_store_op op = kit_peek(k.a, key);
        CHECK_DONE(op);
        CHECK(op.record.version >= version);
        CHECK(op.record.version <= version + kills + CHILDREN); /* not told of: one each */
        CHECK_U64(op.record.snapshot.len, sizeof count);
        memcpy(&count, op.record.snapshot.ptr, sizeof count);
        CHECK_U64(count, op.record.version); /* nobody's counting was lost */
        snprintf(query, sizeof query, "SELECT epoch FROM slot WHERE kind = 'account' AND slot = %u",
                 slot);
        CHECK((uint64_t)disk_query(query) >= epoch);
        check_loads(slot);
    }
}

static size_t count_of(char what)
{
    size_t count = 0;
    for (size_t i = 0; i < line_count; i++) count += lines[i].what == what;
    return count;
}

static void torment(pid_t *pids, uint64_t kills, uint64_t seed)
{
    test_random dice = { seed };
    for (uint64_t i = 0; i < kills; i++) {
        size_t who = (size_t)test_random_below(&dice, CHILDREN);
        test_sleep_ms(50 + (unsigned)test_random_below(&dice, 400));
        CHECK(kill(pids[who], SIGKILL) == 0);
        CHECK(waitpid(pids[who], NULL, 0) == pids[who]);
        pids[who] = child_start((int)who);
        if (i % 3 != 0) continue;
        who = (size_t)test_random_below(&dice, CHILDREN);
        test_sleep_ms((unsigned)test_random_below(&dice, 200));
        CHECK(kill(pids[who], SIGSTOP) == 0);
        test_sleep_ms(400 + (unsigned)test_random_below(&dice, 200));
        CHECK(kill(pids[who], SIGCONT) == 0);
    }
}

TEST(sqlite_nodes_that_are_killed_and_stopped_lose_nothing)
{
    pid_t pids[CHILDREN];
    uint64_t kills = test_env("STORE_KILLS", 30);
    uint64_t seed = test_env("STORE_SEED", (uint64_t)clock_now() | 1);
    printf("STORE_SEED=%llu\n", (unsigned long long)seed);
    kit_begin();
    snprintf(notes_path, sizeof notes_path, "%s/notes", disk_folder);
    close(open(notes_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (int i = 0; i < CHILDREN; i++) pids[i] = child_start(i);
    test_sleep_ms(500);
    torment(pids, kills, seed);
    test_sleep_ms(500);
    for (int i = 0; i < CHILDREN; i++) {
        CHECK(kill(pids[i], SIGKILL) == 0);
        CHECK(waitpid(pids[i], NULL, 0) == pids[i]);
    }
    notes_read();
    printf("%zu acquired, %zu loaded, %zu stored\n", count_of('E'), count_of('L'), count_of('S'));
    CHECK(count_of('S') > 100);
    CHECK(count_of('E') > SLOTS * 2);
    qsort(lines, line_count, sizeof *lines, line_compare);
    for (size_t i = 1; i < line_count; i++) check_neighbours(&lines[i - 1], &lines[i]);
    for (size_t i = 0; i < line_count; i++) {
        if (lines[i].what != 'E') CHECK_U64(lines[i].version, lines[i].count);
    }
    check_rows(kills);
    free(lines);
    unlink(notes_path);
    kit_end();
}
