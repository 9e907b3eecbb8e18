/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fraktor demo: a bank of actors that works for some seconds under difficulties and then makes
 * up its books. demo_bank.h says who is who.
 */

#include "cli.h"
#include "demo_bank.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS_DEFAULT = 10, SECONDS_MAX = 86400, CLOSING_SECONDS = 30 };

static void help(void)
{
    puts(
        "usage: fraktor demo [--seconds N] [--json]\n"
        "\n"
        "Runs a bank: 1000 accounts, 4 tellers that move money between them as fast as they can,\n"
        "accounts that are closed in the middle of their work and opened again, and a receipt\n"
        "printer whose bounded mailbox overflows. Every second a line tells how it goes. At the\n"
        "end all the money must still be there; exit code 1 if it is not.\n"
        "\n"
        "  --seconds N   how long (10, or what the environment variable DEMO_SECONDS says)\n"
        "  --json        one object per line\n"
        "\n"
        "Ctrl-C (SIGINT, SIGTERM) closes the bank early: in order, telling on stderr how far it is,\n"
        "and with its summary; a second one ends the program at once, with code 130 (143).\n"
        "\n"
        "example: DEMO_SECONDS=3 fraktor demo");
}

/* ---- callbacks of the system ------------------------------------------------------------ */

/* Runs on whichever thread met the dead letter. Sending the teller a note is all it does. */
static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    demo_bank *bank = user;
    if (letter->type == &fk_type_demo_debit) {
        const demo_debit *debit = letter->data;
        fk_send_from(bank->sys, letter->sender, letter->to, FK_MSG(demo_bounced, debit->slot));
    } else if (letter->type == &fk_type_demo_credit) {
        const demo_credit *credit = letter->data;
        fk_send_from(bank->sys, letter->sender, letter->to, FK_MSG(demo_bounced, credit->slot));
    }
}

static void on_failure(void *user, const fk_failure *failure)
{
    (void)user;
    cli_failed("demo", "an actor failed at %s: %s: %s",
               failure->type == NULL ? "its start" : failure->type->name, fk_err_text(failure->err),
               failure->detail);
}

/* ---- closing ---------------------------------------------------------------------------- */

/* First the tellers finish what they have begun and the books are made up; then the system, which
 * belongs to the last phase, ends. */
static fk_err plan_closing(demo_bank *bank)
{
    const fk_shutdown_phase closing = { .name = FK_STR("service-requests-done"),
                                        .timeout = FK_SECONDS(CLOSING_SECONDS) };
    const fk_signal_config signals = { .progress_fd = STDERR_FILENO,
                                       .deadline = FK_SECONDS(2 * CLOSING_SECONDS) };
    fk_err err = fk_shutdown_phase_set(bank->sys, &closing);
    if (err == FK_OK) {
        err = fk_shutdown_task_add_actor(bank->sys, closing.name, FK_STR("books"), bank->branch,
                                         FK_MSG(demo_hours, false), NULL);
    }
    return err == FK_OK ? fk_host_shutdown_on_signal(bank->sys, &signals) : err;
}

/* Works until the time is up or a signal closes the bank. */
static fk_err work(demo_bank *bank, uint64_t seconds)
{
    fk_err outcome;
    fk_send(bank->sys, bank->branch, FK_MSG(demo_hours, true));
    fk_err err = fk_shutdown_await(bank->sys, FK_SECONDS(seconds), &outcome);
    if (err == FK_E_TIMEOUT) {
        err = fk_shutdown_run(bank->sys, FK_STR("closing time"));
        if (err == FK_OK) {
            err = fk_shutdown_await(bank->sys, FK_SECONDS(2 * CLOSING_SECONDS), &outcome);
        }
    }
    return err == FK_OK ? outcome : err;
}

/* ---- summary ---------------------------------------------------------------------------- */

static void summary_json(const demo_bank *bank, const fk_stats *stats, double seconds, bool ok)
{
    printf("{\"event\":\"summary\",\"seconds\":%.3f,\"transfers\":%llu,\"refused\":%llu,"
           "\"retries\":%llu,\"reopened\":%llu,\"messages\":%llu,\"dead_letters\":{",
           seconds, (unsigned long long)bank->totals.transfers,
           (unsigned long long)bank->totals.refused, (unsigned long long)bank->totals.retries,
           (unsigned long long)bank->reopened, (unsigned long long)stats->processed);
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        printf("%s\"%s\":%llu", i == 0 ? "" : ",", fk_reason_name((fk_reason)i),
               (unsigned long long)stats->dead_letters[i]);
    }
    printf("},\"failures\":%llu,\"money_expected\":%lld,\"money_found\":%lld,\"ok\":%s}\n",
           (unsigned long long)stats->failures, (long long)(DEMO_OPENING * DEMO_ACCOUNTS),
           (long long)bank->money, ok ? "true" : "false");
}

static void summary_text(const demo_bank *bank, const fk_stats *stats, double seconds, bool ok)
{
    printf("\nThe bank closed after %.1f s.\n", seconds);
    printf("  %12llu transfers, %llu more refused for lack of money\n",
           (unsigned long long)bank->totals.transfers, (unsigned long long)bank->totals.refused);
    printf("  %12llu messages, %.2f million a second\n", (unsigned long long)stats->processed,
           (double)stats->processed / seconds / 1e6);
    printf("  %12llu accounts closed at work and opened again\n",
           (unsigned long long)bank->reopened);
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        if (stats->dead_letters[i] == 0) continue;
        printf("  %12llu dead letters: %s%s\n", (unsigned long long)stats->dead_letters[i],
               fk_reason_name((fk_reason)i),
               i == FK_REASON_STOPPED          ? " (went back to the teller, who tried again)"
               : i == FK_REASON_DROPPED_OLDEST ? " (receipts: the printer's mailbox holds 8)"
                                               : "");
    }
    printf("  %12lld coins at the start, %lld now: %s\n", (long long)(DEMO_OPENING * DEMO_ACCOUNTS),
           (long long)bank->money, ok ? "nothing lost" : "THE BOOKS ARE WRONG");
}

static bool summarise(const demo_bank *bank, double seconds)
{
    fk_stats stats;
    fk_stats_get(bank->sys, &stats);
    bool ok = bank->money == DEMO_OPENING * DEMO_ACCOUNTS && stats.failures == 0;
    if (bank->json) {
        summary_json(bank, &stats, seconds, ok);
    } else {
        summary_text(bank, &stats, seconds, ok);
    }
    fflush(stdout);
    return ok;
}

/* ---- the command ------------------------------------------------------------------------ */

static int run(demo_bank *bank, uint64_t seconds)
{
    const fk_system_config config = { .size = sizeof config,
                                      .name = "bank",
                                      .user = bank,
                                      .on_dead_letter = on_dead_letter,
                                      .on_failure = on_failure };
    fk_err err = fk_system_start(&config, &bank->sys);
    if (err != FK_OK) return cli_failed("demo", "cannot start a system: %s", fk_err_text(err));
    err = demo_branch_spawn(bank);
    if (err == FK_OK) err = plan_closing(bank);
    if (err != FK_OK) {
        fk_system_stop(bank->sys);
        return cli_failed("demo", "cannot open the bank: %s", fk_err_text(err));
    }
    double begun = cli_seconds();
    err = work(bank, seconds);
    /* Something is stuck, so stopping might be, too. */
    if (err != FK_OK) return cli_failed("demo", "cannot close the bank: %s", fk_err_text(err));
    if (!bank->closed) {
        return cli_failed("demo", "the books were not made up within %d s", CLOSING_SECONDS);
    }
    bool ok = summarise(bank, cli_seconds() - begun);
    cli_watchdog("fk_system_stop() does not return", CLOSING_SECONDS);
    err = fk_system_stop(bank->sys);
    cli_watchdog("", 0);
    if (err != FK_OK) return cli_failed("demo", "stopping failed: %s", fk_err_text(err));
    return ok ? CLI_OK : cli_failed("demo", "the result is wrong");
}

static const struct option OPTIONS[] = {
    { "seconds", required_argument, NULL, 's' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

int cli_demo(int argc, char **argv)
{
    /* Static, because a stuck run returns while actors still use it. */
    static demo_bank bank;
    uint64_t seconds = SECONDS_DEFAULT;
    int opt;

    const char *wish = getenv("DEMO_SECONDS");
    if (wish != NULL && !cli_number(wish, 1, SECONDS_MAX, &seconds)) {
        return cli_usage_error("demo", "DEMO_SECONDS=%s is not a number in range", wish);
    }
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        if (opt == 'h') {
            help();
            return CLI_OK;
        }
        if (opt == ':') return cli_usage_error("demo", "%s needs a value", argv[optind - 1]);
        if (opt == '?') return cli_usage_error("demo", "there is no option %s", argv[optind - 1]);
        if (opt == 'j') bank.json = true;
        if (opt == 's' && !cli_number(optarg, 1, SECONDS_MAX, &seconds)) {
            return cli_usage_error("demo", "'%s' is not a number in range", optarg);
        }
    }
    if (optind < argc) return cli_usage_error("demo", "too much: '%s'", argv[optind]);

    return run(&bank, seconds);
}
