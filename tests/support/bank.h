/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_BANK_H
#define FK_TESTS_SUPPORT_BANK_H

/*
 * A bank: durable accounts on nodes that are processes of their own, with one SQLite file between them,
 * and a test that is their client, kills them and stops them. The processes are the test's own program,
 * started again: bank.c has a constructor that turns it into a node.
 *
 * The test keeps a ledger. Each order that an account obeys gets a number from it, 1, 2, ..., which is
 * part of its state, and the answer names the number and the total after it. So what was lost, what was
 * done twice and what was done to an old state all show: as a number that comes twice or not at all, or
 * as a total that does not follow from the one before. An order that was given after another was
 * answered must have a greater number. Each account also keeps the epoch and version that it ran under
 * last, and counts as a fault whatever comes with older ones: a stale write that the store has taken.
 */

#include "support/rig.h"

enum { BANK_NODES = 3, BANK_ACCOUNTS_MAX = 256, BANK_ENTRIES_MAX = 1 << 14 };

/* What an account has answered. */
typedef struct bank_entry {
    int64_t amount, total;
    uint64_t epoch, version;
    bool is_there;
} bank_entry;

typedef struct bank_account {
    bank_entry *entries; /* by number */
    uint64_t seq_max;
    uint64_t answered;
    uint64_t unknown; /* calls that came to nothing: obeyed or not, nobody knows */
    int64_t sum;      /* of what was answered */
    /* Of the last answer. */
    uint64_t epoch;
    uint32_t node, life;
    int64_t moved_at; /* when this life of that node answered for the first time */
    int64_t latency;
} bank_account;

typedef struct bank_node {
    int pid;   /* 0: it does not run */
    int ready; /* end of a pipe */
    bool is_ready;
    uint16_t port;
    uint32_t life;
} bank_node;

typedef struct bank {
    rig r;
    fk_cluster *cluster;
    fk_time ttl;
    char folder[128]; /* under TMPDIR, or /tmp */
    uint32_t account_count;
    bank_node nodes[BANK_NODES];
    pthread_mutex_t lock;
    bank_account accounts[BANK_ACCOUNTS_MAX]; /* under lock */
    _Atomic uint64_t calls, failures;
    _Atomic bool is_over; /* whoever gives orders is to end */
} bank;

/* All nodes run and are ready, and every account has been called once. Skips the test where there is no
 * SQLite. */
void bank_open(bank *b, uint32_t accounts, fk_time ttl);
/* Calls every account once more, reads its row, and looks at what the ledger says; then ends the nodes
 * and the client. */
void bank_close(bank *b);

/* One order; waits for the answer, up to 30 s. FK_OK: it is in the ledger. */
fk_err bank_order_give(bank *b, uint32_t account, int64_t amount);
/* A copy. */
bank_account bank_look(bank *b, uint32_t account);

void bank_node_start(bank *b, uint32_t index);
/* SIGKILL, and it is gone. */
void bank_node_kill(bank *b, uint32_t index);
/* SIGTERM: it gives its slots away, leaves, ends with 0. */
void bank_node_leave(bank *b, uint32_t index);
/* SIGSTOP, SIGCONT. */
void bank_node_signal(const bank *b, uint32_t index, int signal);
bool bank_node_is_ready(bank *b, uint32_t index);
void bank_await_ready(bank *b);

/* Sorts; the value that a part of them (0.5, 0.99) does not exceed. */
int64_t bank_quantile(int64_t *values, size_t count, double part);

#endif /* FK_TESTS_SUPPORT_BANK_H */
