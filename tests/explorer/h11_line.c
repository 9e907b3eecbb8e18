/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H11: letters are handed over to the driver. Two threads send to an actor of another system while the
 * driver, which is real but for its transport, takes them off the line; "line-shut" loses the other
 * system meanwhile, "line-open" finds it again, too. Wherever a letter ends, none is lost, none doubled,
 * those of one sender stay in order, and nothing lies on the line without the driver being called.
 * "line-next" forgets the other system, too, and gives its line to the next one, if no letter is in the
 * way, and "line-anew" finds that one: no letter waits for it.
 */

#include "core/path.h"
#include "explorer/kernel.h"
#include "remote/office.h"

enum { SENDERS = 2, DRIVER = SENDERS, EACH = 2, UID = 77 };

typedef struct world {
    fk_driver *driver;
    fk_remote *remote;
    fk_authority *authority;
    fk_line *line;
    fk_ref there;
    bool is_called;
    bool is_shut, is_opened; /* what happens to the other system */
    bool is_anew;            /* it is forgotten, and another one comes ... */
    bool is_forgotten;       /* ... unless a letter waits for it */
    uint32_t senders;        /* that have not ended */
} world;

static world the_world;

static const kernel_config ONE = { .workers = 1, .direct = true };

/* ---- a transport on which nothing happens ----------------------------------------------------- */

static fk_err on_connect(void *ctx, fk_conn_id conn, fk_str to, uint16_t port, bool is_wanted)
{
    (void)ctx, (void)conn, (void)to, (void)port, (void)is_wanted;
    return FK_OK;
}

static bool on_write(void *ctx, fk_conn_id conn, const void *bytes, size_t len)
{
    (void)ctx, (void)conn, (void)bytes, (void)len;
    return true;
}

static void on_close(void *ctx, fk_conn_id conn, bool gently)
{
    (void)ctx, (void)conn, (void)gently;
}

static void on_wake(void *ctx)
{
    world *w = ctx;
    w->is_called = true;
}

/* ---- the driver --------------------------------------------------------------------------------- */

static void tell(world *w, fk_authority_event event)
{
    fk_authority_effects effects;
    fk__remote_lock(w->remote);
    (void)!fk__authority_step(&w->remote->table, w->authority, &event, the_kernel.now, &effects);
    fk__line_follow(w->line);
    fk__remote_unlock(w->remote);
    fk__driver_act(w->driver, &effects);
}

static void met(world *w)
{
    tell(w, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = UID });
}

static void lost(world *w)
{
    tell(w, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_DROPPED, .uid = UID });
}

static void run(world *w)
{
    w->is_called = false;
    (void)fk__driver_run(w->driver, the_kernel.now);
}

static bool has_news(void *arg)
{
    const world *w = arg;
    return w->is_called || w->senders == 0;
}

static void map(world *w)
{
    fk__remote_lock(w->remote);
    fk_err err = fk__authority_map(&w->remote->table, w->authority, FK_STR(""), 0, the_kernel.now);
    fk__remote_unlock(w->remote);
    fk__explore_check(err == FK_OK, "no mapping");
}

static fk_ref name(world *w, fk_str text)
{
    fk_system *sys = w->remote->sys;
    fk_path path;
    fk_ref ref = FK_REF_NONE;
    fk_err err = fk_path_parse(&sys->paths, text, &path, NULL);
    fk_local *local = &sys->dispatch.worker[0]->local;
    if (err == FK_OK) err = fk__remote_meet(w->remote, local, &path, &ref);
    fk__explore_check(err == FK_OK, "no reference");
    return ref;
}

/* Another system, which has the line of the first one if that is forgotten. */
static void replace(world *w)
{
    w->is_forgotten = fk__retire_some(w->driver);
    fk_ref ref = name(w, FK_STR("fraktor.tcp://c@10.0.0.3:3/user/x"));
    fk__remote_lock(w->remote);
    w->authority = fk__proxies_find(&w->remote->proxies, ref)->authority;
    w->line = w->authority->user;
    fk__remote_unlock(w->remote);
    map(w);
    if (w->is_opened) met(w);
    run(w);
}

static void drive(world *w)
{
    if (w->is_shut) {
        lost(w);
        run(w);
    }
    if (w->is_anew) {
        replace(w);
    } else if (w->is_opened) {
        met(w);
        run(w);
    }
    for (;;) {
        fk__explore_await(has_news, w);
        if (!w->is_called) break;
        run(w);
    }
}

/* ---- the harnesses ------------------------------------------------------------------------------ */

static void start(world *w)
{
    fk_system *sys = kernel_start(&ONE, 0, SENDERS);
    fk_system_config config = {
        .remoting = { .host = "10.0.0.1", .port = 1, .enabled = true, .outbound_max = 64 }
    };
    fk_transport transport = { w, on_connect, on_write, on_close, on_wake, NULL, NULL };
    sys->address.host = FK_STR("10.0.0.1"); /* kernel_start() knows of no network */
    sys->address.port = 1;
    fk_err err = fk__remote_attach(sys, &config);
    fk__explore_check(err == FK_OK, "no remoting");
    w->remote = fk__remote_of(sys);
    w->driver = w->remote->driver;
    w->senders = SENDERS;
    fk__driver_start(w->driver, &transport, sys->dispatch.worker[0]);
    w->there = name(w, FK_STR("fraktor.tcp://b@10.0.0.2:2/user/x"));
    w->line = fk__driver_lines(w->driver);
    w->authority = w->line->authority;
    fk__explore_label(&w->line->gate, sizeof(fk_word), 1, "gate");
    fk__explore_label(&w->line->stack, sizeof(fk_word), 1, "stack");
    fk__explore_label(&w->line->is_busy, sizeof(fk_half), 1, "is_busy");
    fk__explore_label(&w->driver->busy, sizeof(fk_word), 1, "busy");
    map(w);
    met(w);
    run(w);
    fk__explore_check((fk__word_load(&w->line->gate, FK_RELAXED) & FK_LINE_OPEN) != 0, "shut");
}

static void send_setup(void *state)
{
    start(state);
}

static void shut_setup(void *state)
{
    world *w = state;
    w->is_shut = true;
    start(w);
}

static void open_setup(void *state)
{
    world *w = state;
    w->is_shut = w->is_opened = true;
    start(w);
}

static void next_setup(void *state)
{
    world *w = state;
    w->is_shut = w->is_anew = true;
    start(w);
}

static void anew_setup(void *state)
{
    world *w = state;
    w->is_shut = w->is_anew = w->is_opened = true;
    start(w);
}

/* As kernel_send(); but it may find that the reference has given way. */
static void send(world *w, uint32_t number)
{
    numbered message = { number, ~number };
    the_kernel.sent[number]++;
    the_kernel.sending++;
    fk_err err = fk_send(the_kernel.sys, w->there, (fk_out){ &NUMBERED, &message });
    the_kernel.sending--;
    fk__explore_check(err == FK_OK || err == FK_E_FULL || (w->is_anew && err == FK_E_DEAD),
                      "a send failed");
}

static void thread(void *state, uint32_t id)
{
    world *w = state;
    if (id == DRIVER) {
        drive(w);
        return;
    }
    for (uint32_t i = 0; i < EACH; i++) send(w, id * EACH + i);
    kernel_barrier();
    kernel_thread_ends();
    w->senders--;
}

/* Letters in the order in which they will go. */
static uint32_t look(const fk_envelopes *list, uint32_t next[SENDERS])
{
    uint32_t count = 0;
    for (fk_envelope *e = list->first; e != NULL; e = e->next, count++) {
        fk_letter *letter = FK_CONTAINER(e, fk_letter, link);
        uint32_t number = numbered_of(letter->node->bytes)->number, sender = number / EACH;
        fk__explore_check(number == next[sender], "out of order");
        next[sender]++;
    }
    return count;
}

static void finish(void *state)
{
    world *w = state;
    uint32_t next[SENDERS] = { 0, EACH };
    uintptr_t gate = fk__word_load(&w->line->gate, FK_RELAXED);
    const fk_envelopes *ready = &w->line->stream[FK_STREAM_ORDINARY].ready;
    fk__explore_check(fk__word_load(&w->line->stack, FK_RELAXED) == 0, "the driver was not called");
    uint32_t count = look(ready, next);
    fk__explore_check(gate / FK_LINE_ONE == count, "the gate has lost count");
    count += look(&w->authority->deferred, next);
    fk__explore_check(count == SENDERS * EACH, "a letter is missing");
    fk__driver_stop(w->driver);
    kernel_end(true);
}

/* Wherever the first system still has letters, they are for it; what is on the line of the second will be
 * found out when it is written. */
static void anew_finish(void *state)
{
    world *w = state;
    uint32_t count = 0;
    for (uint32_t i = 0; i < SENDERS * EACH; i++) count += the_kernel.dead[i];
    for (const fk_line *line = fk__driver_lines(w->driver); line != NULL; line = line->all_next) {
        const fk_envelopes *ready = &line->stream[FK_STREAM_ORDINARY].ready;
        bool is_first = line != w->line;
        fk__explore_check(fk__word_load(&line->stack, FK_RELAXED) == 0,
                          "the driver was not called");
        fk__explore_check(fk__word_load(&line->gate, FK_RELAXED) / FK_LINE_ONE == ready->count,
                          "the gate has lost count");
        fk__explore_check(is_first || line->authority->deferred.count == 0, "it waits for another");
        fk__explore_check(ready->count == 0 || !is_first, "on a line that is shut");
        count += ready->count;
        if (line->authority != NULL) count += line->authority->deferred.count;
    }
    bool is_stale = fk__cell_resolve(w->remote->sys, w->there) == NULL;
    fk__explore_check(is_stale == w->is_forgotten, "a reference without its system");
    fk__explore_check(count == SENDERS * EACH, "a letter is missing");
    fk__driver_stop(w->driver);
    kernel_end(true);
}

/* With two preemptions these take a quarter of an hour. */
#define LONG_HARNESS(NAME, SETUP)                                                                  \
    {                                                                                              \
        .name = NAME, .threads = SENDERS + 1, .bound_max = 1, .setup = SETUP, .thread = thread,    \
        .finish = anew_finish, .state = &the_world, .state_size = sizeof(the_world)                \
    }

static const fk_harness HARNESSES[] = {
    KERNEL_HARNESS("line-send", SENDERS + 1, send_setup, thread, finish),
    KERNEL_HARNESS("line-shut", SENDERS + 1, shut_setup, thread, finish),
    KERNEL_HARNESS("line-open", SENDERS + 1, open_setup, thread, finish),
    LONG_HARNESS("line-next", next_setup),
    LONG_HARNESS("line-anew", anew_setup),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "line-shut", FK_MUTATION_LINE_ORDER, NULL, FK_MEMORY_SC, true, "out of order" },
    { "line-send", FK_MUTATION_LINE_BUSY, NULL, FK_MEMORY_SC, true, "the driver was not called" },
    { "line-open", FK_MUTATION_LINE_REOPENED, NULL, FK_MEMORY_SC, true, NULL },
    { "line-next", FK_MUTATION_LINE_OWNER, NULL, FK_MEMORY_SC, true, "it waits for another" },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}
