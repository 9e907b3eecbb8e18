/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Timers and the stash. A database actor is told to connect, which takes 20 ms. Queries that came
 * before are stashed and handled in their old order afterwards. Then a heartbeat ticks; a timer
 * that is cancelled never arrives. */

#include <fraktor/fraktor.h>
#include <stdio.h>

enum { TIMER_CONNECT, TIMER_GIVE_UP, TIMER_HEARTBEAT };

typedef struct {
    int id;
} query;
FK_MESSAGE(query);

typedef struct {
    int port;
} connection;
FK_MESSAGE(connection);

typedef struct {
    int timer;
} alarm_clock;
FK_MESSAGE(alarm_clock);

typedef struct {
    bool connected;
    int beats;
} database;

static fk_err database_connect(fk_ctx *ctx, int port)
{
    printf("connecting to port %d\n", port);
    fk_err err = fk_timer_start(ctx, TIMER_CONNECT, FK_TIMER_ONCE, FK_MILLIS(20),
                                FK_MSG(alarm_clock, TIMER_CONNECT));
    if (err != FK_OK) return err;
    return fk_timer_start(ctx, TIMER_GIVE_UP, FK_TIMER_ONCE, FK_SECONDS(60),
                          FK_MSG(alarm_clock, TIMER_GIVE_UP));
}

static fk_err database_connected(fk_ctx *ctx, database *self)
{
    puts("connected");
    self->connected = true;
    fk_timer_cancel(ctx, TIMER_GIVE_UP);
    fk_err err = fk_timer_start(ctx, TIMER_HEARTBEAT, FK_TIMER_FIXED_DELAY, FK_MILLIS(10),
                                FK_MSG(alarm_clock, TIMER_HEARTBEAT));
    return err == FK_OK ? fk_unstash_all(ctx) : err;
}

static fk_err database_alarm(fk_ctx *ctx, database *self, int timer)
{
    if (timer == TIMER_CONNECT) return database_connected(ctx, self);
    if (timer == TIMER_GIVE_UP) return fk_fail(ctx, FK_E_TIMEOUT, "cannot connect");
    printf("heartbeat %d\n", ++self->beats);
    if (self->beats < 3) return FK_OK;
    printf("give-up timer is active: %s\n", fk_timer_is_active(ctx, TIMER_GIVE_UP) ? "yes" : "no");
    fk_stop_self(ctx); /* its timers end with it */
    return FK_OK;
}

static fk_err database_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    database *self = state;
    const alarm_clock *alarm = FK_AS(alarm_clock, msg);
    if (alarm != NULL) return database_alarm(ctx, self, alarm->timer);
    const connection *c = FK_AS(connection, msg);
    if (c != NULL) return database_connect(ctx, c->port);
    const query *q = FK_AS(query, msg);
    if (q == NULL) return fk_unhandled(ctx, msg);
    if (!self->connected) {
        printf("query %d: stashed\n", q->id);
        return fk_stash(ctx);
    }
    printf("query %d: answered\n", q->id);
    return FK_OK;
}

int main(void)
{
    fk_system *sys = NULL;
    fk_ref ref;
    const fk_props props = { .receive = database_receive, .state_size = sizeof(database) };
    if (fk_system_start(&(fk_system_config){ .name = "timers" }, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("database"), &props, &ref);
    for (int i = 1; i <= 3 && err == FK_OK; i++) err = fk_send(sys, ref, FK_MSG(query, i));
    if (err == FK_OK) err = fk_send(sys, ref, FK_MSG(connection, 5432));
    if (err == FK_OK) err = fk_await_stopped(sys, ref, FK_SECONDS(10));
    fk_system_stop(sys);
    return err == FK_OK ? 0 : 1;
}
