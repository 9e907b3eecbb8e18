/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program with its own poll() loop and no other thread. The system runs on the loop's thread:
 * fk_host_fd() tells poll() when there is work, fk_host_timeout_ms() how long it may sleep. Lines
 * come from a pipe, as they would from a socket, and go to an actor. */

#include <fraktor/fraktor.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
    int lines;
    bool *finished;
} shouter;

static fk_err shouter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    shouter *self = state;
    if (msg->type == &fk_type_receive_timeout) {
        printf("quiet for 20 ms after %d lines\n", self->lines);
        *self->finished = true;
        fk_stop_self(ctx);
        return FK_OK;
    }
    if (msg->type != &fk_type_text) return fk_unhandled(ctx, msg);
    const char *text = msg->data;
    for (size_t i = 0; i < msg->len; i++) {
        putchar(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i]);
    }
    puts("!");
    self->lines++;
    return fk_receive_timeout_set(ctx, FK_MILLIS(20));
}

/* One byte at a time would be simpler, but a real program gets many lines in one read. */
static void feed(fk_system *sys, fk_ref to, const char *text, size_t len)
{
    size_t begin = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n') continue;
        fk_send(sys, to, FK_TEXT_AT(((fk_str){ text + begin, i - begin })));
        begin = i + 1;
    }
}

static void loop(fk_system *sys, fk_ref to, int input, const bool *finished)
{
    struct pollfd p[2] = { { input, POLLIN, 0 }, { fk_host_fd(sys), POLLIN, 0 } };
    char buf[256];
    while (!*finished) {
        if (poll(p, 2, fk_host_timeout_ms(sys)) < 0) return;
        if ((p[0].revents & POLLIN) != 0) {
            ssize_t got = read(input, buf, sizeof buf);
            if (got > 0) feed(sys, to, buf, (size_t)got);
        }
        if ((p[0].revents & POLLHUP) != 0) p[0].fd = -1; /* poll() passes over it */
        fk_host_run_once(sys, 0);
    }
}

int main(void)
{
    static const char LINES[] = "one thread\nno locks\ntwo file descriptors\n";
    fk_system *sys = NULL;
    fk_ref ref;
    bool finished = false;
    int end[2];
    const fk_system_config config = { .name = "loop", .workers = FK_WORKERS_NONE };
    const shouter init = { .finished = &finished };
    const fk_props props = { .receive = shouter_receive, .state_size = sizeof init, .init = &init };

    if (pipe(end) != 0) return 1;
    if (write(end[1], LINES, sizeof LINES - 1) != (ssize_t)sizeof LINES - 1) return 1;
    close(end[1]);
    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_err err = fk_spawn(sys, FK_STR("shouter"), &props, &ref);
    if (err == FK_OK) loop(sys, ref, end[0], &finished);
    fk_system_stop(sys);
    close(end[0]);
    return finished ? 0 : 1;
}
