/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/bank.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fraktor/codec.h"
#include "fraktor/host.h"
#include "fraktor/remote.h"
#include "support/peer.h"

typedef struct bank_order {
    int64_t amount;
} bank_order;
FK_MESSAGE(bank_order);
FK_CODEC_STRUCT(bank_order, 1, FK_FIELD(bank_order, amount));

typedef struct bank_receipt {
    int64_t total;
    uint64_t seq, epoch, version;
    uint32_t node, life;
    uint64_t faults;
} bank_receipt;
FK_MESSAGE(bank_receipt);
FK_CODEC_STRUCT(bank_receipt, 1, FK_FIELD(bank_receipt, total), FK_FIELD(bank_receipt, seq),
                FK_FIELD(bank_receipt, epoch), FK_FIELD(bank_receipt, version),
                FK_FIELD(bank_receipt, node), FK_FIELD(bank_receipt, life),
                FK_FIELD(bank_receipt, faults));

static const fk_codec *const CODECS[] = { &fk_codec_bank_order, &fk_codec_bank_receipt, NULL };

static const fk_time CALL_TIME = FK_SECONDS(30);

static fk_remoting_config bank_remoting(uint16_t port)
{
    return (fk_remoting_config){ .enabled = true,
                                 .host = "127.0.0.1",
                                 .port = port,
                                 .reconnect_min = FK_MILLIS(20),
                                 .reconnect_max = FK_MILLIS(500),
                                 .codecs = CODECS };
}

/* ---- a node ------------------------------------------------------------------------------------ */

typedef struct account_state {
    int64_t total;
    uint64_t seq, epoch, version, faults;
} account_state;

static uint32_t own_node, own_life;

static fk_err account_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    account_state *self = state;
    const bank_order *order = FK_AS(bank_order, msg);
    fk_grain_info info;
    if (order == NULL) return fk_unhandled(ctx, msg);
    fk_err err = fk_grain_self(ctx, &info);
    if (err != FK_OK) return err;
    if (info.epoch < self->epoch || info.version < self->version) self->faults++;
    self->epoch = info.epoch;
    self->version = info.version;
    self->seq++;
    self->total += order->amount;
    return fk_reply(ctx, FK_MSG(bank_receipt, .total = self->total, .seq = self->seq,
                                .epoch = info.epoch, .version = info.version, .node = own_node,
                                .life = own_life, .faults = self->faults));
}

static void node_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->level < FK_LEVEL_WARN && getenv("BANK_EVENTS") == NULL) return;
    fprintf(stderr, "[%u.%u] %lld %s %s %.*s %s %s\n", (unsigned)own_node, (unsigned)own_life,
            (long long)(test_clock() / 1000000), fk_event_name(event->kind),
            event->to != NULL ? event->to : "", (int)event->text.len, event->text.ptr,
            event->reason != NULL ? event->reason : "", fk_err_name(event->err));
}

typedef struct crowd {
    uint32_t up;
    bool has_self;
} crowd;

static void crowd_count(void *user, const fk_member *member, bool is_self)
{
    crowd *c = user;
    if (member->status != FK_MEMBER_UP || member->kind_count == 0) return;
    c->up++;
    c->has_self = c->has_self || is_self;
}

static crowd crowd_look(fk_cluster *cluster)
{
    crowd c = { 0 };
    CHECK_OK(fk_cluster_members(cluster, crowd_count, &c));
    return c;
}

/* ThreadSanitizer keeps a signal back until its thread calls something that it knows, and a futex is not:
 * so another thread is to take it. */
static void signals_block(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int node_run(uint16_t port, fk_time ttl, const char *store)
{
    static const fk_props ACCOUNT = { .receive = account_receive,
                                      .state_size = sizeof(account_state) };
    fk_system *sys;
    fk_cluster *cluster;
    const char *why = "";
    fk_system_config config = { .name = "bank", .workers = 1, .remoting = bank_remoting(port) };
    if (getenv("BANK_VERBOSE") != NULL) config.on_event = node_event;
    if (fk_system_start(&config, &sys) != FK_OK) return 4;
    if (fk_host_shutdown_on_signal(sys, NULL) != FK_OK) return 5;
    signals_block();
    fk_cluster_config join = { .store = store, .lease_ttl = ttl, .slots = 128, .why = &why };
    fk_err err = fk_cluster_join(sys, &join, &cluster);
    if (err != FK_OK) {
        fprintf(stderr, "node %u cannot join: %s, %s\n", (unsigned)own_node, fk_err_name(err), why);
        return 6;
    }
    fk_kind kind = { .props = &ACCOUNT, .durable = true };
    if (fk_kind_register(cluster, FK_STR("account"), &kind) != FK_OK) return 7;
    if (fk_cluster_await_ready(cluster, FK_SECONDS(30)) != FK_OK) return 8;
    while (!crowd_look(cluster).has_self && !fk_is_terminating(sys)) test_sleep_ms(1);
    if (write(1, "r", 1) != 1) return 9;
    if (fk_shutdown_await(sys, FK_NEVER, &err) != FK_OK) return 10;
    fk_err stopped = fk_system_stop(sys);
    return err == FK_OK && stopped == FK_OK ? 0 : 11;
}

/* BANK_NODE: "index, life, port, TTL in ms, URL of the store". */
__attribute__((constructor)) static void node_main(void)
{
    const char *text = getenv("BANK_NODE");
    char store[192];
    unsigned index, life, port, ttl_ms;
    if (text == NULL) return;
    if (sscanf(text, "%u %u %u %u %191s", &index, &life, &port, &ttl_ms, store) != 5) _exit(3);
    own_node = index;
    own_life = life;
    int code = node_run((uint16_t)port, FK_MILLIS((fk_time)ttl_ms), store);
    if (code != 0) fprintf(stderr, "node %u.%u ends with %d\n", index, life, code);
    exit(code);
}

/* ---- nodes, from outside -------------------------------------------------------------------------- */

void bank_node_start(bank *b, uint32_t index)
{
    bank_node *node = &b->nodes[index];
    int ends[2];
    char text[320];
    CHECK(node->pid == 0);
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    node->life++;
    snprintf(text, sizeof(text), "%u %u %u %u sqlite:%s/bank.db", (unsigned)index,
             (unsigned)node->life, (unsigned)node->port, (unsigned)(b->ttl / FK_MILLIS(1)),
             b->folder);
    CHECK(setenv("BANK_NODE", text, 1) == 0);
    node->pid = fork();
    CHECK(node->pid >= 0);
    if (node->pid == 0) {
        /* It must not outlive a test that has failed: whoever runs this one waits for all that holds its
         * stderr. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 1);
        execl("/proc/self/exe", "bank_node", (char *)NULL);
        _exit(127);
    }
    unsetenv("BANK_NODE");
    close(ends[1]);
    node->ready = ends[0];
    node->is_ready = false;
    CHECK(fcntl(node->ready, F_SETFL, O_NONBLOCK) == 0);
}

bool bank_node_is_ready(bank *b, uint32_t index)
{
    bank_node *node = &b->nodes[index];
    char c;
    if (node->pid == 0) return false;
    if (node->is_ready) return true;
    ssize_t got = read(node->ready, &c, 1);
    CHECK(got != 0); /* it has ended by itself */
    node->is_ready = got == 1;
    return node->is_ready;
}

void bank_await_ready(bank *b)
{
    for (uint32_t i = 0; i < BANK_NODES; i++) PEER_AWAIT(bank_node_is_ready(b, i));
}

void bank_node_signal(const bank *b, uint32_t index, int signal)
{
    CHECK(b->nodes[index].pid > 0);
    CHECK(kill(b->nodes[index].pid, signal) == 0);
}

static int node_end(bank *b, uint32_t index, int signal)
{
    bank_node *node = &b->nodes[index];
    int status;
    bank_node_signal(b, index, signal);
    CHECK(waitpid(node->pid, &status, 0) == node->pid);
    close(node->ready);
    node->pid = 0;
    return status;
}

void bank_node_kill(bank *b, uint32_t index)
{
    int status = node_end(b, index, SIGKILL);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

void bank_node_leave(bank *b, uint32_t index)
{
    int status = node_end(b, index, SIGTERM);
    CHECK(WIFEXITED(status));
    CHECK_U64(WEXITSTATUS(status), 0);
}

/* ---- orders ------------------------------------------------------------------------------------------ */

static fk_str account_key(uint32_t account, char room[16])
{
    snprintf(room, 16, "a%u", (unsigned)account);
    return fk_str_of(room);
}

static void ledger_enter(bank_account *a, const bank_receipt *r, int64_t amount, uint64_t floor)
{
    if (r->seq <= floor || r->seq >= BANK_ENTRIES_MAX || a->entries[r->seq].is_there ||
        r->faults != 0) {
        fprintf(stderr,
                "number %" PRIu64 ", total %" PRId64 ", epoch %" PRIu64 ", version %" PRIu64
                " by node %u.%u; faults %" PRIu64 "; at least %" PRIu64 " was there before\n",
                r->seq, r->total, r->epoch, r->version, (unsigned)r->node, (unsigned)r->life,
                r->faults, floor);
    }
    CHECK_U64(r->faults, 0);
    CHECK(r->seq > floor);
    CHECK(r->seq < BANK_ENTRIES_MAX);
    CHECK(!a->entries[r->seq].is_there);
    a->entries[r->seq] = (bank_entry){ amount, r->total, r->epoch, r->version, true };
    if (r->seq > a->seq_max) a->seq_max = r->seq;
    a->answered++;
    a->sum += amount;
    a->epoch = r->epoch;
    a->node = r->node;
    a->life = r->life;
}

fk_err bank_order_give(bank *b, uint32_t account, int64_t amount)
{
    bank_account *a = &b->accounts[account];
    bank_receipt receipt = { .seq = 0 };
    char room[16];
    pthread_mutex_lock(&b->lock);
    uint64_t floor = a->seq_max;
    pthread_mutex_unlock(&b->lock);
    int64_t begin = test_clock();
    fk_err err =
        fk_grain_ask_wait(b->cluster, FK_STR("account"), account_key(account, room),
                          FK_MSG(bank_order, amount), FK_INTO(bank_receipt, &receipt), CALL_TIME);
    int64_t end = test_clock();
    atomic_fetch_add(&b->calls, 1);
    pthread_mutex_lock(&b->lock);
    if (err == FK_OK) {
        if (a->node != receipt.node || a->life != receipt.life) a->moved_at = end;
        ledger_enter(a, &receipt, amount, floor);
        a->latency = end - begin;
    } else {
        atomic_fetch_add(&b->failures, 1);
        a->unknown++;
        fprintf(stderr, "%s: an order of %" PRId64 " came to nothing after %" PRId64 " ms: %s\n",
                room, amount, (end - begin) / 1000000, fk_err_name(err));
    }
    pthread_mutex_unlock(&b->lock);
    return err;
}

bank_account bank_look(bank *b, uint32_t account)
{
    pthread_mutex_lock(&b->lock);
    bank_account copy = b->accounts[account];
    pthread_mutex_unlock(&b->lock);
    return copy;
}

/* ---- beginning and end ----------------------------------------------------------------------------------- */

void bank_open(bank *b, uint32_t accounts, fk_time ttl)
{
    char store[192];
    const char *why = "", *parent = getenv("TMPDIR");
    *b = (bank){ .ttl = ttl, .account_count = accounts };
    CHECK(accounts <= BANK_ACCOUNTS_MAX);
    pthread_mutex_init(&b->lock, NULL);
    int len = snprintf(b->folder, sizeof(b->folder), "%s/fraktor-kill-XXXXXX",
                       parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    CHECK(len > 0 && (size_t)len < sizeof(b->folder));
    CHECK(mkdtemp(b->folder) != NULL);
    snprintf(store, sizeof(store), "sqlite:%s/bank.db", b->folder);
    rig_start_with(
        &b->r, (fk_system_config){ .name = "client", .workers = 1, .remoting = bank_remoting(0) });
    fk_cluster_config join = {
        .client = true, .store = store, .lease_ttl = ttl, .slots = 128, .why = &why
    };
    fk_err err = fk_cluster_join(b->r.sys, &join, &b->cluster);
    if (err == FK_E_UNSUPPORTED) {
        CHECK_OK(fk_system_stop(b->r.sys));
        CHECK(rmdir(b->folder) == 0);
        skip(); /* a library that was built without SQLite */
    }
    CHECK_OK(err);
    for (uint32_t i = 0; i < accounts; i++) {
        b->accounts[i].entries = calloc(BANK_ENTRIES_MAX, sizeof(bank_entry));
        CHECK(b->accounts[i].entries != NULL);
    }
    for (uint32_t i = 0; i < BANK_NODES; i++) {
        b->nodes[i].port = peer_free_port();
        bank_node_start(b, i);
    }
    bank_await_ready(b);
    CHECK_OK(fk_cluster_await_ready(b->cluster, FK_SECONDS(30)));
    PEER_AWAIT(crowd_look(b->cluster).up == BANK_NODES);
    for (uint32_t i = 0; i < accounts; i++) CHECK_OK(bank_order_give(b, i, 0));
}

/* Every number up to the last is there once, but for orders of which nobody knows what they came to; each
 * total follows from the one before; epochs and versions do not go back. */
static void ledger_check(const bank_account *a)
{
    uint64_t missing = 0;
    const bank_entry *before = NULL;
    int64_t total = 0;
    for (uint64_t i = 1; i <= a->seq_max; i++) {
        const bank_entry *e = &a->entries[i];
        if (!e->is_there) {
            missing++;
            before = NULL;
            continue;
        }
        if (i == 1) CHECK_U64(e->total, e->amount);
        if (before != NULL) {
            CHECK(e->total == before->total + e->amount);
            CHECK(e->epoch >= before->epoch);
            CHECK(e->version >= before->version);
        }
        before = e;
        total = e->total;
    }
    CHECK_U64(a->answered + missing, a->seq_max);
    CHECK(missing <= a->unknown);
    if (a->unknown == 0) CHECK(total == a->sum);
}

static void row_check(bank *b, uint32_t account)
{
    fk_grain_row row;
    char room[16];
    const bank_account *a = &b->accounts[account];
    const bank_entry *last = &a->entries[a->seq_max];
    CHECK_OK(fk_grain_peek(b->cluster, FK_STR("account"), account_key(account, room), &row));
    CHECK(row.epoch >= last->epoch);
    CHECK(row.version > last->version); /* that one was before its turn */
}

void bank_close(bank *b)
{
    char path[160];
    int64_t sum = 0;
    uint64_t orders = 0;
    bank_await_ready(b);
    for (uint32_t i = 0; i < b->account_count; i++) CHECK_OK(bank_order_give(b, i, 0));
    for (uint32_t i = 0; i < b->account_count; i++) {
        const bank_account *a = &b->accounts[i];
        row_check(b, i);
        ledger_check(a);
        sum += a->entries[a->seq_max].total;
        orders += a->answered;
    }
    printf("%" PRIu64 " calls, %" PRIu64 " came to nothing; %" PRIu64 " answered; sum %" PRId64
           "\n",
           (uint64_t)b->calls, (uint64_t)b->failures, orders, sum);
    fk_cluster_stats stats;
    CHECK_OK(fk_cluster_stats_get(b->cluster, &stats));
    printf("client: %" PRIu64 " sent, %" PRIu64 " of these again\n", stats.sent, stats.retried);
    for (uint32_t i = 0; i < BANK_NODES; i++) bank_node_leave(b, i);
    CHECK_OK(fk_system_stop(b->r.sys));
    rig_check_empty(&b->r);
    for (uint32_t i = 0; i < b->account_count; i++) free(b->accounts[i].entries);
    for (size_t i = 0; i < 3; i++) {
        static const char *const ENDS[] = { "", "-wal", "-shm" };
        snprintf(path, sizeof(path), "%s/bank.db%s", b->folder, ENDS[i]);
        unlink(path);
    }
    CHECK(rmdir(b->folder) == 0);
    pthread_mutex_destroy(&b->lock);
    CHECK_U64(b->failures, 0);
    CHECK(sum == 0);
}

static int by_value(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

int64_t bank_quantile(int64_t *values, size_t count, double part)
{
    if (count == 0) return 0;
    qsort(values, count, sizeof(*values), by_value);
    size_t at = (size_t)((double)count * part);
    return values[at < count ? at : count - 1];
}
