/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "load.h"

#include "cli.h"
#include "load_latency.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ORDER_MAX = 120, AMOUNT_MAX = 100, REST_MS = 20 };

typedef struct load_account {
    pthread_mutex_t mutex; /* guards all of it */
    int64_t balance;
    uint64_t applied;
    bool is_read;
    uint32_t waiting;   /* calls under way */
    double progress_at; /* when one was answered, or the first began to wait */
    double pause;
} load_account;

typedef struct load_caller {
    load *load;
    uint32_t index;
    uint64_t id;     /* by which accounts know it; no other run has it */
    uint64_t number; /* of its last order */
    uint64_t seed;
    pthread_t thread;
} load_caller;

struct load {
    fk_cluster *cluster;
    load_options options;
    load_account *account;
    load_caller caller[LOAD_CALLERS_MAX];
    uint32_t running; /* callers with a thread */
    load_latency latency;
    _Atomic bool is_over;
    _Atomic uint64_t transfers, refused, calls, failed, repeated, unknown;

    /* The books, under way: */
    pthread_mutex_t mutex;
    load_books books;
};

typedef enum order_outcome { ORDER_DONE, ORDER_REFUSED, ORDER_UNKNOWN } order_outcome;

static void add_one(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void rest(void)
{
    const struct timespec t = { .tv_nsec = REST_MS * 1000000L };
    nanosleep(&t, NULL);
}

/* ---- one call ------------------------------------------------------------------------------------- */

static void account_wait_begin(load_account *account, double now)
{
    pthread_mutex_lock(&account->mutex);
    if (account->waiting++ == 0) account->progress_at = now;
    pthread_mutex_unlock(&account->mutex);
}

static void account_wait_end(load_account *account, double now, bool is_answered)
{
    pthread_mutex_lock(&account->mutex);
    account->waiting--;
    double pause = now - account->progress_at;
    if (pause > account->pause) account->pause = pause;
    if (is_answered) account->progress_at = now;
    pthread_mutex_unlock(&account->mutex);
}

static void account_key(uint32_t index, char key[24])
{
    snprintf(key, 24, "a%05" PRIu32, index);
}

/* Asks until there is an answer. False: patience is over, or the system is ending. */
static bool insist(load_caller *caller, uint32_t index, const char *text, fk_buf answer)
{
    load *self = caller->load;
    load_account *account = &self->account[index];
    char key[24];
    bool is_answered = false;
    double begun = cli_seconds(), give_up = begun + (double)self->options.patience / 1e9;
    account_key(index, key);
    account_wait_begin(account, begun);
    for (;;) {
        double at = cli_seconds();
        add_one(&self->calls);
        fk_err err = fk_grain_ask_wait(self->cluster, FK_STR("account"), fk_str_of(key),
                                       FK_TEXT_AT(fk_str_of(text)), FK_INTO_TEXT(&answer),
                                       self->options.timeout);
        double now = cli_seconds();
        if (err == FK_OK) load_latency_add(&self->latency, now - at);
        is_answered = err == FK_OK;
        if (is_answered) break;
        add_one(&self->failed);
        if (err == FK_E_STOPPING || err == FK_E_DEAD || now > give_up) break;
        add_one(&self->repeated);
        rest();
    }
    account_wait_end(account, cli_seconds(), is_answered);
    return is_answered;
}

/* One order, with a number of its own. */
static order_outcome give_order(load_caller *caller, uint32_t index, const char *word,
                                int64_t amount)
{
    load *self = caller->load;
    load_account *account = &self->account[index];
    char text[ORDER_MAX], room[ORDER_MAX] = "";
    snprintf(text, sizeof text, "%s %" PRId64 " %" PRIu64 " %" PRIu64, word, amount, caller->id,
             ++caller->number);
    if (!insist(caller, index, text, FK_BUF(room))) {
        add_one(&self->unknown);
        return ORDER_UNKNOWN;
    }
    if (strncmp(room, "refused ", 8) == 0) return ORDER_REFUSED;
    if (strncmp(room, "ok ", 3) != 0) {
        add_one(&self->unknown);
        return ORDER_UNKNOWN;
    }
    pthread_mutex_lock(&account->mutex);
    account->balance += word[0] == 'd' ? amount : -amount;
    account->applied++;
    pthread_mutex_unlock(&account->mutex);
    return ORDER_DONE;
}

static bool read_account(load_caller *caller, uint32_t index, int64_t *balance, uint64_t *applied)
{
    char room[ORDER_MAX] = "";
    return insist(caller, index, "balance", FK_BUF(room)) &&
           sscanf(room, "ok balance=%" SCNd64 " applied=%" SCNu64, balance, applied) == 2;
}

/* ---- what callers do --------------------------------------------------------------------------------- */

static void *open_accounts(void *arg)
{
    load_caller *caller = arg;
    load *self = caller->load;
    for (uint32_t i = caller->index; i < self->options.accounts; i += self->options.callers) {
        load_account *account = &self->account[i];
        if (atomic_load(&self->is_over)) break;
        account->is_read = read_account(caller, i, &account->balance, &account->applied);
        if (account->is_read && account->applied == 0) {
            account->is_read = give_order(caller, i, "deposit", LOAD_OPENING) == ORDER_DONE;
        }
        if (!account->is_read) atomic_store(&self->is_over, true);
    }
    return NULL;
}

static void transfer(load_caller *caller)
{
    load *self = caller->load;
    uint32_t count = self->options.accounts;
    uint32_t from = (uint32_t)(cli_random(&caller->seed) % count);
    uint32_t to = (uint32_t)(cli_random(&caller->seed) % (count - 1));
    int64_t amount = (int64_t)(cli_random(&caller->seed) % AMOUNT_MAX) + 1;
    if (to >= from) to++;
    order_outcome outcome = give_order(caller, from, "withdraw", amount);
    if (outcome == ORDER_REFUSED) add_one(&self->refused);
    if (outcome != ORDER_DONE) return;
    if (give_order(caller, to, "deposit", amount) == ORDER_DONE) add_one(&self->transfers);
}

static void *make_transfers(void *arg)
{
    load_caller *caller = arg;
    while (!atomic_load(&caller->load->is_over)) transfer(caller);
    return NULL;
}

static void audit_one(load *self, const load_account *account, int64_t balance, uint64_t applied)
{
    load_books *books = &self->books;
    if (applied < account->applied) books->lost += account->applied - applied;
    if (applied > account->applied) books->twice += applied - account->applied;
    if (balance != account->balance) books->wrong++;
    books->found += balance;
}

static void *audit_accounts(void *arg)
{
    load_caller *caller = arg;
    load *self = caller->load;
    for (uint32_t i = caller->index; i < self->options.accounts; i += self->options.callers) {
        int64_t balance = 0;
        uint64_t applied = 0;
        bool is_read = read_account(caller, i, &balance, &applied);
        pthread_mutex_lock(&self->mutex);
        if (is_read)
            audit_one(self, &self->account[i], balance, applied);
        else
            self->books.unread++;
        pthread_mutex_unlock(&self->mutex);
    }
    return NULL;
}

static bool callers_start(load *self, void *(*work)(void *))
{
    for (self->running = 0; self->running < self->options.callers; self->running++) {
        load_caller *caller = &self->caller[self->running];
        if (pthread_create(&caller->thread, NULL, work, caller) != 0) return false;
    }
    return true;
}

static void callers_join(load *self)
{
    for (; self->running > 0; self->running--) {
        pthread_join(self->caller[self->running - 1].thread, NULL);
    }
}

/* ---- beginning and end ---------------------------------------------------------------------------------- */

static load *load_create(fk_cluster *cluster, const load_options *options)
{
    load *self = calloc(1, sizeof *self);
    struct timespec t;
    if (self == NULL) return NULL;
    self->account = calloc(options->accounts, sizeof *self->account);
    if (self->account == NULL) {
        free(self);
        return NULL;
    }
    self->cluster = cluster;
    self->options = *options;
    pthread_mutex_init(&self->mutex, NULL);
    for (uint32_t i = 0; i < options->accounts; i++) {
        pthread_mutex_init(&self->account[i].mutex, NULL);
    }
    clock_gettime(CLOCK_REALTIME, &t);
    /* Microseconds since 1970, and below them room for the callers of a run: below 2^63. */
    uint64_t base = ((uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000) * LOAD_CALLERS_MAX;
    for (uint32_t i = 0; i < options->callers; i++) {
        uint64_t seed = (base + i) * UINT64_C(0x9e3779b97f4a7c15);
        self->caller[i] = (load_caller){ self, i, base + i, 0, seed | 1, 0 };
    }
    return self;
}

fk_err load_start(fk_cluster *cluster, const load_options *options, load **out, const char **why)
{
    load *self = load_create(cluster, options);
    *why = "there is not enough memory";
    if (self == NULL) return FK_E_NOMEM;
    bool ok = callers_start(self, open_accounts);
    callers_join(self);
    if (!ok) *why = "cannot start that many threads";
    if (ok && atomic_load(&self->is_over)) {
        ok = false;
        *why = "the accounts do not answer: is a member of the cluster running? (fraktor node"
               " --store)";
    }
    /* What it took to begin says nothing of the work. */
    atomic_store(&self->calls, 0);
    atomic_store(&self->failed, 0);
    atomic_store(&self->repeated, 0);
    memset(&self->latency, 0, sizeof self->latency);
    load_pause_reset(self);
    if (ok && !callers_start(self, make_transfers)) {
        atomic_store(&self->is_over, true);
        callers_join(self);
        ok = false;
        *why = "cannot start that many threads";
    }
    if (!ok) {
        load_destroy(self);
        return FK_E_FAILED;
    }
    *out = self;
    return FK_OK;
}

void load_stop(load *self, load_books *out)
{
    atomic_store(&self->is_over, true);
    callers_join(self);
    self->books = (load_books){ .expected = 0 };
    for (uint32_t i = 0; i < self->options.accounts; i++) {
        self->books.expected += self->account[i].balance;
    }
    if (!callers_start(self, audit_accounts)) self->books.unread = self->options.accounts;
    callers_join(self);
    *out = self->books;
}

void load_destroy(load *self)
{
    for (uint32_t i = 0; i < self->options.accounts; i++) {
        pthread_mutex_destroy(&self->account[i].mutex);
    }
    pthread_mutex_destroy(&self->mutex);
    free(self->account);
    free(self);
}

/* ---- figures ------------------------------------------------------------------------------------------------ */

void load_pause_reset(load *self)
{
    for (uint32_t i = 0; i < self->options.accounts; i++) {
        load_account *account = &self->account[i];
        pthread_mutex_lock(&account->mutex);
        account->pause = 0;
        pthread_mutex_unlock(&account->mutex);
    }
}

void load_figures_get(load *self, load_figures *out)
{
    double now = cli_seconds(), pause = 0;
    *out = (load_figures){ .transfers = atomic_load(&self->transfers),
                           .refused = atomic_load(&self->refused),
                           .calls = atomic_load(&self->calls),
                           .failed = atomic_load(&self->failed),
                           .repeated = atomic_load(&self->repeated),
                           .unknown = atomic_load(&self->unknown),
                           .p50_ms = load_latency_at(&self->latency, 0.5),
                           .p99_ms = load_latency_at(&self->latency, 0.99),
                           .max_ms = load_latency_max(&self->latency) };
    for (uint32_t i = 0; i < self->options.accounts; i++) {
        load_account *account = &self->account[i];
        pthread_mutex_lock(&account->mutex);
        double open = account->waiting != 0 ? now - account->progress_at : 0;
        double longest = open > account->pause ? open : account->pause;
        pthread_mutex_unlock(&account->mutex);
        if (longest <= pause) continue;
        pause = longest;
        account_key(i, out->pause_key);
    }
    out->pause_ms = pause * 1e3;
}

bool load_is_ok(const load_figures *figures, const load_books *books)
{
    return figures->unknown == 0 && books->expected == books->found && books->lost == 0 &&
           books->twice == 0 && books->wrong == 0 && books->unread == 0;
}
