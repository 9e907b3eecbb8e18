/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 9 of the first hour: a question with a timeout of 10 ms to an actor that never answers, on a
 * clock that stands still until the program moves it. The sender that the actor saw has a path under
 * /temp as long as it is waited for; a reply that comes too late is a dead letter. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>

static fk_time virtual_now = FK_SECONDS(1);
static fk_ref question;
static fk_err outcome = FK_OK;
static fk_time answered_at;
static int late_replies;

static fk_time clock_now(void *ctx)
{
    (void)ctx;
    return virtual_now;
}

static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    printf("dead_letter type=%s reason=%s\n", letter->type->name, fk_reason_name(letter->reason));
    late_replies += letter->reason == FK_REASON_LATE_REPLY;
}

static fk_err never_answers(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    question = msg->sender;
    return FK_OK;
}

static fk_err asks(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer == NULL) return fk_ask(ctx, *(fk_ref *)state, FK_TEXT("hello?"), 1, FK_MILLIS(10));
    outcome = answer->err;
    answered_at = fk_now(ctx);
    return FK_OK;
}

static void run_until(fk_system *sys, fk_time until)
{
    for (; virtual_now <= until; virtual_now += FK_MICROS(100)) {
        while (fk_host_run_once(sys, 0) != 0) continue;
    }
}

int main(void)
{
    fk_port port = fk_host_port();
    port.now = clock_now;
    port.cycles = NULL;
    fk_system_config config = {
        .name = "hello", .workers = FK_WORKERS_NONE, .port = &port, .on_dead_letter = on_dead_letter
    };
    fk_system *sys = NULL;
    fk_ref silent, asker, found;
    char path[64];
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    if (fk_spawn(sys, FK_STR("silent"), &(fk_props){ .receive = never_answers }, &silent) !=
        FK_OK) {
        return 1;
    }
    fk_props props = { .receive = asks, .state = &silent };
    if (fk_spawn(sys, FK_STR("asker"), &props, &asker) != FK_OK) return 1;
    fk_send(sys, asker, FK_TEXT("ask"));
    fk_time asked_at = virtual_now;
    run_until(sys, virtual_now);

    fk_path_of(sys, question, path, sizeof(path));
    bool ok = strcmp(path, "fraktor://hello/temp/silent$a") == 0;
    ok = fk_resolve(sys, fk_str_of(path), &found, NULL) == FK_OK && ok;
    printf("waiting at %s\n", path);

    run_until(sys, virtual_now + FK_MILLIS(20));
    fk_time took = answered_at - asked_at;
    printf("%s after %lld ms\n", fk_err_name(outcome), (long long)(took / FK_MILLIS(1)));
    ok = outcome == FK_E_TIMEOUT && took >= FK_MILLIS(10) && took < FK_MILLIS(12) && ok;
    ok = fk_resolve(sys, fk_str_of(path), &found, NULL) == FK_E_PID_UNKNOWN && ok;

    ok = fk_send_from(sys, question, silent, FK_TEXT("here I am")) == FK_OK && ok;
    return fk_system_stop(sys) == FK_OK && ok && late_replies == 1 ? 0 : 1;
}
