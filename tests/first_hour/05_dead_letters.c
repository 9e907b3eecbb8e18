/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 5 of the first hour: sends to an actor that stopped, to a made-up reference and to none. Each
 * is reported to the callback and is a line in the log; many of them are a few lines and a count. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 40, BURST = 10 };

static int reported[FK_REASON_COUNT];

static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    reported[letter->reason]++;
    printf("dead_letter to=%u#%u type=%s reason=%s\n", letter->to.slot, letter->to.generation,
           letter->type->name, fk_reason_name(letter->reason));
}

static fk_err ignore(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_OK;
}

/* The log so far, shown, too. */
static const char *log_text(FILE *file)
{
    static char text[65536];
    ssize_t len = pread(fileno(file), text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    fputs(text, stdout);
    return text;
}

static size_t lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) count += *text == '\n';
    return count;
}

int main(void)
{
    char path[256], line[400];
    FILE *file = tmpfile();
    fk_subscription sink;
    fk_system *sys = NULL;
    fk_system_config config = { .name = "hello", .on_dead_letter = on_dead_letter };
    fk_props props = { .receive = ignore };
    fk_ref greeter;
    fk_stats stats;
    if (file == NULL || fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_log_config log = {
        .fd = fileno(file), .burst = BURST, .window = FK_MINUTES(5), .topics = FK_TOPIC_DEAD_LETTERS
    };
    if (fk_log_open(sys, &log, &sink) != FK_OK) return 1;
    if (fk_spawn(sys, FK_STR("greeter"), &props, &greeter) != FK_OK) return 1;
    fk_path_of(sys, greeter, path, sizeof(path));
    fk_stop(sys, greeter);
    if (fk_await_stopped(sys, greeter, FK_SECONDS(20)) != FK_OK) return 1;

    fk_ref made_up = { 123456, 77, greeter.system };
    bool ok = fk_send(sys, greeter, FK_TEXT("too late")) == FK_OK;
    ok = fk_send(sys, made_up, FK_TEXT("anybody?")) == FK_OK && ok;
    ok = fk_send(sys, FK_REF_NONE, FK_TEXT("nobody")) == FK_OK && ok;

    fk_stats_get(sys, &stats);
    uint64_t all = 0;
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        all += stats.dead_letters[i];
        ok = ok && stats.dead_letters[i] == (uint64_t)reported[i];
    }
    printf("dead letters: %llu\n", (unsigned long long)all);
    ok = ok && all == 3 && reported[FK_REASON_STOPPED] == 1 && reported[FK_REASON_NO_RECEIVER] == 2;

    snprintf(line, sizeof(line), " level=info name=dead_letter to=%s type=text reason=stopped\n",
             path);
    ok = ok && lines(log_text(file)) == 3 && strstr(log_text(file), line) != NULL;
    for (int i = 0; i < MANY; i++) fk_send(sys, greeter, FK_TEXT("and again"));
    ok = ok && lines(log_text(file)) == BURST;
    ok = fk_system_stop(sys) == FK_OK && ok; /* the log closes itself, with what it left out */
    snprintf(line, sizeof(line), " name=dead_letter suppressed=%d\n", MANY + 3 - BURST);
    ok = ok && lines(log_text(file)) == BURST + 1 && strstr(log_text(file), line) != NULL;
    fclose(file);
    return ok ? 0 : 1;
}
