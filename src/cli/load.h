/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_LOAD_H
#define FK_CLI_LOAD_H

/*
 * Transfers between accounts of a cluster, and the books that prove that each happened once.
 *
 * A transfer is a withdrawal here and a deposit there: two calls. Callers are threads, and each has one
 * order under way. A call that came to nothing leaves open whether the order was done, so it is given
 * again, with the same number, until the account says what became of it (node_kinds.h says how it
 * knows). So at the end every account's balance, and how many orders changed it, are known here, and
 * are compared with what the account says. Nobody else may use these accounts meanwhile.
 */

#include <fraktor/fraktor.h>

enum { LOAD_CALLERS_MAX = 64, LOAD_ACCOUNTS_MAX = 100000 };

#define LOAD_OPENING INT64_C(1000) /* money of an account that was never used */

typedef struct load_options {
    uint32_t accounts, callers;
    fk_time timeout;  /* of one call */
    fk_time patience; /* an order that nobody answers for so long is unknown */
} load_options;

/* How it goes, and at the end how it went. */
typedef struct load_figures {
    uint64_t transfers, refused;
    uint64_t calls;    /* made */
    uint64_t failed;   /* of these, that came to nothing */
    uint64_t repeated; /* calls made because of that */
    uint64_t unknown;  /* orders of which nobody knows whether they were done */
    double p50_ms, p99_ms, max_ms;
    double pause_ms; /* longest time that calls of one key waited without one being answered */
    char pause_key[24];
} load_figures;

/* lost and twice count orders; wrong: accounts whose balance is not what it should be. */
typedef struct load_books {
    int64_t expected, found;
    uint64_t lost, twice, wrong, unread;
} load_books;

typedef struct load load;

/* Reads the accounts, gives each money that has never had any, and starts the callers. *why is a
 * sentence when that fails. */
fk_err load_start(fk_cluster *cluster, const load_options *options, load **out, const char **why);
void load_figures_get(load *self, load_figures *out);
/* The longest pause from here on. */
void load_pause_reset(load *self);
/* Lets every caller finish what it has begun, and makes up the books. */
void load_stop(load *self, load_books *out);
void load_destroy(load *self);

bool load_is_ok(const load_figures *figures, const load_books *books);

/* A client of the cluster of config->store, and its system. The exit code, after saying what is
 * wrong. */
int load_join(const char *command, const fk_cluster_config *config, fk_system **sys,
              fk_cluster **cluster);

#endif /* FK_CLI_LOAD_H */
