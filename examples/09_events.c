/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The event stream: whatever is worth knowing about a system is an event. A callback and an actor
 * listen to dead letters, a sink writes log lines, and a topic of the program's own, which is simply
 * a type of message, goes to whoever has subscribed. */

#define _POSIX_C_SOURCE 200809L /* fileno() */

#include <fraktor/fraktor.h>
#include <stdio.h>

typedef struct {
    int degrees;
} weather;
FK_MESSAGE(weather);

typedef struct {
    int n;
} heartbeat;
FK_MESSAGE_QUIET(heartbeat); /* nobody misses one */

/* Runs on the thread that noticed. */
static void on_event(void *user, const fk_event *event)
{
    (void)user;
    printf("callback: %s %s of type %s\n", fk_level_name(event->level), fk_event_name(event->kind),
           event->letter->type->name);
}

/* Gets records: events that it may look at in its own time. */
static fk_err clerk_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_event_record *record = FK_AS(fk_event_record, msg);
    (void)state;
    if (record == NULL) return fk_unhandled(ctx, msg);
    printf("clerk: %s to %s, %s\n", fk_event_name(record->kind), record->path, record->reason);
    return FK_OK;
}

static fk_err farmer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const weather *w = FK_AS(weather, msg);
    (void)state;
    if (w == NULL) return fk_unhandled(ctx, msg);
    printf("farmer: %d degrees\n", w->degrees);
    if (w->degrees < 0) fk_log_here(ctx, FK_LEVEL_WARN, FK_STR("frost!\nlevel=error forged=1"));
    return FK_OK;
}

/* A log line without its time stamp, which differs each time. */
static void print_log(FILE *file)
{
    char line[4096];
    rewind(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        int at = 0;
        sscanf(line, "%*s %n", &at);
        printf("log: %s", line + at);
    }
}

static fk_err run(fk_system *sys, FILE *file)
{
    static const fk_props CLERK = { .receive = clerk_receive },
                          FARMER = { .receive = farmer_receive };
    fk_ref clerk, farmer;
    fk_subscription callback, sink;
    fk_err err = fk_spawn(sys, FK_STR("clerk"), &CLERK, &clerk);
    if (err == FK_OK) err = fk_spawn(sys, FK_STR("farmer"), &FARMER, &farmer);
    if (err != FK_OK) return err;

    fk_log_config log = { .fd = fileno(file), .burst = 2, .window = FK_MINUTES(5) };
    err = fk_log_open(sys, &log, &sink);
    if (err == FK_OK) {
        err = fk_subscribe(sys, FK_TOPIC_DEAD_LETTERS, FK_LEVEL_DEBUG, on_event, NULL, &callback);
    }
    if (err == FK_OK) err = fk_subscribe_actor(sys, clerk, FK_TOPIC(DEAD_LETTER));
    if (err == FK_OK) err = fk_subscribe_type(sys, farmer, &fk_type_weather);
    if (err != FK_OK) return err;

    fk_publish(sys, FK_MSG(weather, 20));
    fk_publish(sys, FK_MSG(weather, -5));
    while (fk_host_run_once(sys, 0) > 0) continue;

    fk_stop(sys, farmer);
    while (fk_host_run_once(sys, 0) > 0) continue;
    fk_send(sys, farmer, FK_MSG(heartbeat, 1)); /* suppressed: for those who ask for debug */
    for (int i = 0; i < 3; i++) fk_send(sys, farmer, FK_TEXT("good morning"));
    fk_publish(sys, FK_MSG(weather, 15)); /* nobody listens: that is fine */
    return fk_unsubscribe(sys, callback);
}

int main(void)
{
    fk_system *sys = NULL;
    FILE *file = tmpfile();
    fk_system_config config = { .name = "farm", .workers = FK_WORKERS_NONE };
    if (file == NULL || fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_err err = run(sys, file);
    while (fk_host_run_once(sys, 0) > 0) continue;
    fk_system_stop(sys); /* the sink closes itself, and says what it left out */
    print_log(file);
    fclose(file);
    return err == FK_OK ? 0 : 1;
}
