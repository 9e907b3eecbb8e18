/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_DEMO_BANK_H
#define FK_CLI_DEMO_BANK_H

/*
 * The bank of `fraktor demo`: who talks to whom.
 *
 *   branch                 parent of the others; closes accounts and opens them again
 *   +- account (1000)      holds money
 *   +- teller (4)          moves money: a debit here, a credit there, 64 transfers at a time
 *   +- printer             prints receipts; its mailbox is bounded and overflows on purpose
 *   +- reporter            prints a line every second, on a thread of its own
 *
 * Money is in an account, or with a teller between debit and credit, or on its way from a closed
 * account to the branch; so nothing is lost as long as every message either arrives or comes
 * back. A debit or credit to an account that is just closed becomes a dead letter, and the
 * system's dead-letter callback tells the teller, who tries again a little later.
 */

#include <fraktor/fraktor.h>

enum { DEMO_ACCOUNTS = 1000, DEMO_TELLERS = 4, DEMO_SLOTS = 64 };

#define DEMO_OPENING INT64_C(1000) /* money in each account at the start */

typedef struct demo_totals {
    uint64_t transfers;
    uint64_t refused; /* for lack of money */
    uint64_t retries; /* after a dead letter */
} demo_totals;

/* What main and the actors share. Written before the actors start; the books by the branch, for main
 * to read when the system is down. */
typedef struct demo_bank {
    fk_system *sys;
    bool json;
    fk_ref branch;
    fk_ref printer;
    fk_ref reporter;

    bool closed; /* the books are made up: */
    demo_totals totals;
    uint64_t reopened;
    int64_t money;
} demo_bank;

/* ---- teller and account; slot is the teller's and comes back in every answer -------------- */

typedef struct {
    uint32_t slot;
    int64_t amount;
} demo_debit;
FK_MESSAGE(demo_debit);

typedef struct {
    uint32_t slot;
    int64_t amount; /* 0: refused */
} demo_debited;
FK_MESSAGE(demo_debited);

typedef struct {
    uint32_t slot;
    int64_t amount;
} demo_credit;
FK_MESSAGE(demo_credit);

typedef struct {
    uint32_t slot;
} demo_credited;
FK_MESSAGE(demo_credited);

/* The debit or credit of that slot did not arrive. */
typedef struct {
    uint32_t slot;
} demo_bounced;
FK_MESSAGE(demo_bounced);

/* ---- branch ----------------------------------------------------------------------------- */

typedef struct {
    uint32_t index;
    fk_ref ref;
} demo_opened; /* to each teller */
FK_MESSAGE(demo_opened);

typedef struct {
    uint32_t index;
    int64_t balance;
} demo_closed; /* from an account that has stopped */
FK_MESSAGE(demo_closed);

typedef struct {
    bool open;
} demo_hours; /* to branch and tellers: begin work, or finish it */
FK_MESSAGE(demo_hours);

typedef struct {
    demo_totals totals;
} demo_teller_closed; /* a teller has no transfer under way any more */
FK_MESSAGE(demo_teller_closed);

typedef struct {
    uint32_t unused;
} demo_audit;
FK_MESSAGE(demo_audit);

typedef struct {
    int64_t balance;
} demo_statement;
FK_MESSAGE(demo_statement);

/* ---- printer and reporter --------------------------------------------------------------- */

typedef struct {
    uint32_t from;
    uint32_t to;
    int64_t amount;
} demo_receipt;
FK_MESSAGE(demo_receipt);

typedef struct {
    uint64_t transfers; /* since the last one */
    uint64_t reopened;
} demo_tally;
FK_MESSAGE(demo_tally);

typedef struct {
    uint32_t unused;
} demo_tick;
FK_MESSAGE(demo_tick);

/* Spawns the branch with everything under it. */
fk_err demo_branch_spawn(demo_bank *bank);
fk_err demo_teller_spawn(fk_ctx *ctx, demo_bank *bank, uint32_t index, fk_ref *out);
fk_err demo_printer_spawn(fk_ctx *ctx, fk_ref *out);
fk_err demo_reporter_spawn(fk_ctx *ctx, demo_bank *bank, fk_ref *out);

#endif /* FK_CLI_DEMO_BANK_H */
