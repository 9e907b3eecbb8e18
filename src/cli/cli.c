/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void complain(const char *command, const char *format, va_list args)
{
    fflush(stdout); /* keeps the two streams in order when both are a terminal or one file */
    fprintf(stderr, "fraktor%s%s: ", command[0] == '\0' ? "" : " ", command);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int cli_usage_error(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(command, format, args);
    va_end(args);
    fprintf(stderr, "Try 'fraktor%s%s --help'.\n", command[0] == '\0' ? "" : " ", command);
    return CLI_USAGE;
}

int cli_failed(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(command, format, args);
    va_end(args);
    return CLI_FAILED;
}

bool cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    char *end = NULL;
    uint64_t scale = 1;

    if (text[0] < '0' || text[0] > '9') return false; /* strtoull takes signs and spaces */
    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    if (errno != 0) return false;
    if (*end == 'k') scale = 1000;
    if (*end == 'M') scale = 1000000;
    if (*end == 'G') scale = 1000000000;
    if (scale != 1) end++;
    if (*end != '\0' || n > UINT64_MAX / scale) return false;
    n *= scale;
    if (n < min || n > max) return false;
    *out = n;
    return true;
}

static const char *volatile watched;

/* In a signal handler: nothing but write() and _exit(). */
static void on_alarm(int number)
{
    static const char TEXT[] = "fraktor: stuck, giving up: ";
    (void)number;
    bool said = write(STDERR_FILENO, TEXT, sizeof TEXT - 1) > 0 &&
                write(STDERR_FILENO, watched, strlen(watched)) > 0 &&
                write(STDERR_FILENO, "\n", 1) > 0;
    (void)said; /* there is nothing left to do about it */
    _exit(CLI_FAILED);
}

void cli_watchdog(const char *what, unsigned seconds)
{
    watched = what;
    signal(SIGALRM, on_alarm);
    alarm(seconds);
}

static volatile sig_atomic_t has_signal;

static void on_signal(int number)
{
    (void)number;
    has_signal = 1;
}

void cli_signals_catch(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* In small pieces: another thread may be the one that gets the signal. */
bool cli_sleep_until(double when)
{
    static const double PIECE = 0.02;
    for (;;) {
        double left = when - cli_seconds();
        if (has_signal) return false;
        if (left <= 0) return true;
        if (left > PIECE) left = PIECE;
        const struct timespec t = { .tv_nsec = (long)(left * 1e9) };
        nanosleep(&t, NULL);
    }
}

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
