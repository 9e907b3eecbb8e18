/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/property.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RUNS_DEFAULT = 20000 };

static const char *property_name;
static property current;

/* The sanitizers' own hook, where there is one: they end the process without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* ---- what is said in the end: also in a signal handler, so with write() alone ------------------- */

static void say_bytes(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, bytes, len);
        if (n <= 0) return;
        bytes += n;
        len -= (size_t)n;
    }
}

static void say(const char *text)
{
    say_bytes(text, strlen(text));
}

static void say_number(uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n != 0);
    say_bytes(digits + at, sizeof(digits) - at);
}

static void say_text(fk_str text)
{
    static const char HEX[] = "0123456789abcdef";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        char escape[4] = { '\\', 'x', HEX[c / 16], HEX[c % 16] };
        bool plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
        say_bytes(plain ? text.ptr + i : escape, plain ? 1 : sizeof(escape));
    }
}

static void show_round(void)
{
    if (property_name == NULL) return;
    say("property ");
    say(property_name);
    say(" failed in the round of seed ");
    say_number(current.seed);
    for (size_t i = 0; i < current.input_count; i++) {
        say("\n  ");
        say(current.input[i].label);
        say(": \"");
        say_text(current.input[i].text);
        say("\" of bytes: ");
        say_number(current.input[i].text.len);
    }
    say("\nagain: PROPERTY_SEED=");
    say_number(current.seed);
    say(" PROPERTY_RUNS=1\n");
    property_name = NULL;
}

void property_failed(const char *file, int line, const char *what)
{
    show_round();
    test_failed(file, line, "does not hold: %s", what);
}

static void on_crash(int number)
{
    show_round();
    signal(number, SIG_DFL);
    raise(number);
}

/* ---- rounds ----------------------------------------------------------------------------------- */

uint64_t property_runs(void)
{
    uint64_t runs = test_env("PROPERTY_RUNS", 0);
    return runs > 0 ? runs : test_scaled(RUNS_DEFAULT);
}

void property_run(const char *name, property_round_fn round)
{
    uint64_t seed = test_env("PROPERTY_SEED", 1);
    uint64_t runs = property_runs();

    printf("property %s: seeds %llu .. %llu\n", name, (unsigned long long)seed,
           (unsigned long long)(seed + runs - 1));
    fflush(stdout);
    if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(show_round);
    static const int SIGNALS[] = { SIGSEGV, SIGBUS, SIGILL, SIGABRT };
    for (size_t i = 0; !test_is_sanitized() && i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
        signal(SIGNALS[i], on_crash);
    }
    property_name = name;
    for (uint64_t i = 0; i < runs; i++) {
        current.seed = seed + i;
        current.random.state = current.seed * 0x2545f4914f6cdd1du; /* neighbours far apart */
        current.input_count = 0;
        round(&current);
    }
    property_name = NULL;
}

void property_input(property *p, const char *label, fk_str text)
{
    if (p->input_count == PROPERTY_INPUTS_MAX || text.len > PROPERTY_INPUT_SIZE) abort();
    char *copy = p->input[p->input_count].copy;
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    p->input[p->input_count].label = label;
    p->input[p->input_count].text = (fk_str){ copy, text.len };
    p->input_count++;
}

/* ---- the edge of readable memory ------------------------------------------------------------- */

static char *edge[EDGE_COUNT]; /* mapped: EDGE_SIZE bytes between two pages that are not */

static char *edge_map(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *all = mmap(NULL, EDGE_SIZE + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) abort();
    if (mprotect(all + page, EDGE_SIZE, PROT_READ | PROT_WRITE) != 0) abort();
    return all + page;
}

char *edge_buffer(size_t place, size_t size)
{
    if (place >= EDGE_COUNT || size > EDGE_SIZE) abort();
    if (test_is_sanitized()) { /* red zones on both sides */
        free(edge[place]);
        edge[place] = malloc(size);
        if (edge[place] == NULL && size > 0) abort();
        return edge[place];
    }
    if (edge[place] == NULL) edge[place] = edge_map();
    bool at_start = (current.seed + place) % 2 == 0; /* the same when a round is run again */
    return at_start ? edge[place] : edge[place] + EDGE_SIZE - size;
}

fk_str edge_copy(size_t place, fk_str text)
{
    char *copy = edge_buffer(place, text.len);
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    return (fk_str){ copy, text.len };
}
