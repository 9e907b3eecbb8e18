/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The remote workloads on libuv alone: no actors, no names, no codec. A frame is its length and a
 * payload; the sender writes 64 of them at a time and waits for the end of a write before the next,
 * so flow control is TCP's. This is the limit for whoever uses libuv and batches like that.
 */
#include <stdbool.h>
#include <uv.h>

#include "../remote.h"

enum { BATCH = 64, FRAME = 4 + REMOTE_PAYLOAD, READ_SIZE = 1 << 18 };

typedef struct end {
    uv_tcp_t tcp;
    const bench_args *args;
    void (*on_frame)(struct end *end, unsigned char *frame);
    uint64_t next; /* number of the frame that is due, or to be sent */
    size_t have;   /* bytes in buf */
    unsigned char buf[READ_SIZE];
    unsigned char out[BATCH * FRAME];
    uv_write_t write;
    remote_watch begun;
    uint64_t asked_ns;
    uint64_t *trip_ns;
} end;

static end self; /* each process has one */

static void frame_make(unsigned char *frame, uint64_t number)
{
    uint32_t length = REMOTE_PAYLOAD;
    memset(frame + 4, 'x', REMOTE_PAYLOAD);
    memcpy(frame, &length, sizeof length);
    memcpy(frame + 4, &number, sizeof number);
}

static uint64_t frame_number(const unsigned char *frame)
{
    uint64_t number;
    memcpy(&number, frame + 4, sizeof number);
    return number;
}

static void written(uv_write_t *write, int status)
{
    (void)write;
    if (status < 0) bench_fail(self.args->workload, uv_strerror(status));
}

static void send_out(end *e, size_t len, uv_write_cb then)
{
    uv_buf_t buf = uv_buf_init((char *)e->out, (unsigned)len);
    int status = uv_write(&e->write, (uv_stream_t *)&e->tcp, &buf, 1, then);
    if (status < 0) bench_fail(e->args->workload, uv_strerror(status));
}

/* ---- reading ------------------------------------------------------------------------------- */

static void lend(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
    (void)handle;
    (void)wanted;
    *buf = uv_buf_init((char *)self.buf + self.have, (unsigned)(READ_SIZE - self.have));
}

static void got(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    size_t at = 0;
    (void)stream;
    (void)buf;
    if (n == UV_EOF && self.begun.second == 0) _exit(0); /* the first process is done */
    if (n < 0) bench_fail(self.args->workload, uv_strerror((int)n));
    self.have += (size_t)n;
    for (; self.have - at >= FRAME; at += FRAME) {
        uint32_t length;
        memcpy(&length, self.buf + at, sizeof length);
        if (length != REMOTE_PAYLOAD) bench_fail(self.args->workload, "a frame of another length");
        self.on_frame(&self, self.buf + at);
    }
    memmove(self.buf, self.buf + at, self.have - at);
    self.have -= at;
}

static void open_stream(void)
{
    uv_tcp_nodelay(&self.tcp, 1);
    uv_read_start((uv_stream_t *)&self.tcp, lend, got);
}

/* ---- the second process -------------------------------------------------------------------- */

static void sink_frame(end *e, unsigned char *frame)
{
    if (frame_number(frame) != e->next) bench_fail(e->args->workload, "out of order");
    if (++e->next < e->args->ops) return;
    frame_make(e->out, e->next);
    send_out(e, FRAME, written);
}

static void echo_frame(end *e, unsigned char *frame)
{
    memcpy(e->out, frame, FRAME);
    send_out(e, FRAME, written);
}

static void accepted(uv_stream_t *server, int status)
{
    uv_tcp_init(server->loop, &self.tcp);
    if (status < 0 || uv_accept(server, (uv_stream_t *)&self.tcp) < 0) _exit(1);
    open_stream();
}

static void serve(int fd, const bench_args *args)
{
    static uv_tcp_t server;
    struct sockaddr_in address;
    int size = sizeof address;
    uv_loop_t *loop = uv_default_loop();
    self.args = args;
    self.on_frame = strcmp(args->workload, "remote-ask") == 0 ? echo_frame : sink_frame;
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(loop, &server);
    if (uv_tcp_bind(&server, (const struct sockaddr *)&address, 0) < 0) _exit(1);
    if (uv_listen((uv_stream_t *)&server, 1, accepted) < 0) _exit(1);
    uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
    remote_ready(fd, ntohs(address.sin_port));
    uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- the first process --------------------------------------------------------------------- */

static void send_batch(uv_write_t *write, int status)
{
    size_t count = 0;
    written(write, status);
    for (; count < BATCH && self.next < self.args->ops; count++) {
        frame_make(self.out + count * FRAME, self.next++);
    }
    if (count > 0) send_out(&self, count * FRAME, send_batch);
}

static void source_frame(end *e, unsigned char *frame)
{
    if (frame_number(frame) != e->args->ops) bench_fail(e->args->workload, "wrong count");
    remote_report("uv", e->args, e->begun, e->args->ops, NULL);
    _exit(0);
}

static void ask(end *e)
{
    frame_make(e->out, e->next);
    e->asked_ns = bench_now_ns();
    send_out(e, FRAME, written);
}

static void asker_frame(end *e, unsigned char *frame)
{
    e->trip_ns[e->next] = bench_now_ns() - e->asked_ns;
    if (frame_number(frame) != e->next) bench_fail(e->args->workload, "another answer");
    if (++e->next < e->args->ops) {
        ask(e);
        return;
    }
    remote_report("uv", e->args, e->begun, e->args->ops, e->trip_ns);
    _exit(0);
}

static void connected(uv_connect_t *request, int status)
{
    written(NULL, status);
    (void)request;
    open_stream();
    self.begun = remote_begin(self.begun.second);
    if (self.trip_ns != NULL) {
        ask(&self);
    } else {
        send_batch(NULL, 0);
    }
}

int main(int argc, char **argv)
{
    bench_args args = bench_args_parse(argc, argv);
    bool asks = strcmp(args.workload, "remote-ask") == 0;
    struct sockaddr_in address;
    uv_connect_t request;

    if (!asks && strcmp(args.workload, "remote-oneway") != 0) {
        bench_fail(args.workload, "unknown workload");
    }
    if (args.ops == 0) args.ops = asks ? 20000 : 10000000;
    remote_second second = remote_start(serve, &args);
    self.args = &args;
    self.begun.second = second.pid;
    self.on_frame = asks ? asker_frame : source_frame;
    if (asks && (self.trip_ns = calloc(args.ops, sizeof *self.trip_ns)) == NULL) {
        bench_fail(args.workload, "no memory");
    }
    uv_ip4_addr("127.0.0.1", second.port, &address);
    uv_tcp_init(uv_default_loop(), &self.tcp);
    uv_tcp_connect(&request, &self.tcp, (const struct sockaddr *)&address, connected);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return 1;
}
