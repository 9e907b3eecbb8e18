/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_CLI_H
#define FK_CLI_CLI_H

/*
 * The fraktor program: what its commands share. It uses the public headers and POSIX only, as
 * any user's program would. Data goes to stdout, words to stderr.
 */

#include <stdbool.h>
#include <stdint.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* argv[0] is the command's own name. The result is the exit code. */
typedef int (*cli_command_fn)(int argc, char **argv);

int cli_ask(int argc, char **argv);
int cli_assoc(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_call(int argc, char **argv);
int cli_demo(int argc, char **argv);
int cli_grains(int argc, char **argv);
int cli_load(int argc, char **argv);
int cli_members(int argc, char **argv);
int cli_node(int argc, char **argv);
int cli_path(int argc, char **argv);
int cli_quarantine(int argc, char **argv);
int cli_sim(int argc, char **argv);
int cli_tell(int argc, char **argv);
int cli_where(int argc, char **argv);

/* One line on stderr, "fraktor bench: ...", with the advice to look at --help; gives CLI_USAGE. */
int cli_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same without the advice; gives CLI_FAILED. */
int cli_failed(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads a whole number with an optional k, M or G (thousands, not 1024s) into *out. False, with
 * *out untouched, when text is something else or not between min and max. */
bool cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* If the same is not called with 0 within so many seconds, the program ends with a message that
 * names what was going on and with CLI_FAILED: for calls that might never return. */
void cli_watchdog(const char *what, unsigned seconds);

/* From here on SIGINT and SIGTERM are only remembered; a second one of a kind ends the program. */
void cli_signals_catch(void);
/* Sleeps until that time of cli_seconds(). False: a signal has come, maybe before. */
bool cli_sleep_until(double when);

/* Seconds on the monotonic clock. */
double cli_seconds(void);

/* The next number of a sequence; *seed must not be 0. */
static inline uint64_t cli_random(uint64_t *seed)
{
    uint64_t x = *seed;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *seed = x;
}

#endif /* FK_CLI_CLI_H */
