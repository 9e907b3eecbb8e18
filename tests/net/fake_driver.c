/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "net/fake_driver.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

fake the_fake;
fake_names the_names;

/* ---- names -------------------------------------------------------------------------------------- */

#undef getaddrinfo
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out);

int fake_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                     struct addrinfo **out)
{
    fake_names *n = &the_names;
    atomic_fetch_add(&n->calls, 1);
    if (strncmp(name, "slow", 4) != 0) return getaddrinfo(name, service, hints, out);
    size_t running = atomic_fetch_add(&n->running, 1) + 1;
    size_t most = atomic_load(&n->most);
    while (running > most && !atomic_compare_exchange_weak(&n->most, &most, running)) {
    }
    while (!atomic_load(&n->is_released)) test_sleep_ms(1);
    int status = getaddrinfo("127.0.0.1", service, hints, out);
    atomic_fetch_sub(&n->running, 1);
    return status;
}

/* ---- what holds of every call ------------------------------------------------------------------- */

static fake *enter(fk_driver *driver)
{
    fake *f = (fake *)(void *)driver;
    CHECK(f == &the_fake);
    CHECK(atomic_load(&f->is_started));
    CHECK(!atomic_load(&f->is_stopped));
    CHECK(!f->is_calling); /* not from within a call to the transport */
    if (!f->has_thread) {
        f->has_thread = true;
        f->thread = pthread_self();
        f->tid = gettid();
    }
    CHECK(pthread_equal(f->thread, pthread_self()));
    /* The worker counts as awake: what it is sent is noticed. */
    CHECK(fk__half_load(&f->worker->state, FK_RELAXED) == FK_WORKER_RUNNING);
    CHECK(!f->worker->is_sentinel);
    return f;
}

fake_conn *fake_find(fake *f, fk_conn_id id)
{
    for (uint32_t i = f->conn_count; i > 0; i--) {
        if (f->conn[i - 1].id == id) return &f->conn[i - 1];
    }
    return NULL;
}

static fake_conn *known(fake *f, fk_conn_id id)
{
    fake_conn *c = fake_find(f, id);
    CHECK(c != NULL);
    CHECK(!c->is_over);
    return c;
}

static fake_conn *add(fake *f, fk_conn_id id)
{
    const fake_conn *old = fake_find(f, id);
    CHECK(old == NULL || old->is_over);
    CHECK(f->conn_count < FAKE_CONNS);
    fake_conn *c = &f->conn[f->conn_count++];
    *c = (fake_conn){ .id = id };
    return c;
}

/* ---- to the transport ------------------------------------------------------------------------------ */

fk_err fake_connect(fake *f, fk_conn_id id, const char *host, uint16_t port)
{
    return fake_connect_as(f, id, host, port, true);
}

fk_err fake_connect_as(fake *f, fk_conn_id id, const char *host, uint16_t port, bool is_wanted)
{
    fake_conn *c = add(f, id);
    f->is_calling = true;
    fk_err err = f->transport->connect(f->transport->ctx, id, fk_str_of(host), port, is_wanted);
    f->is_calling = false;
    if (err != FK_OK) c->is_over = true;
    return err;
}

bool fake_write(fake *f, fk_conn_id id, const void *bytes, size_t len)
{
    fake_conn *c = known(f, id);
    CHECK(!c->is_lent);
    f->is_calling = true;
    bool taken = f->transport->write(f->transport->ctx, id, bytes, len);
    f->is_calling = false;
    c->is_lent = !taken;
    return taken;
}

void fake_close(fake *f, fk_conn_id id, bool gently)
{
    known(f, id)->is_over = true;
    f->is_calling = true;
    f->transport->close(f->transport->ctx, id, gently);
    f->is_calling = false;
}

/* ---- from the transport ----------------------------------------------------------------------------- */

fk_driver *fk__driver_of(const fk_system *sys)
{
    (void)sys;
    return (fk_driver *)(void *)&the_fake;
}

void fk__driver_start(fk_driver *driver, const fk_transport *transport, fk_worker *worker)
{
    fake *f = (fake *)(void *)driver;
    fk_net *net = transport->ctx;
    CHECK(!atomic_load(&f->is_started));
    if (f->stall != 0) net->stall = f->stall;
    if (f->leave != 0) net->leave = f->leave;
    if (f->lookup != 0) net->lookup = f->lookup;
    f->transport = transport;
    f->worker = worker;
    atomic_store(&f->is_started, true);
}

void fk__driver_stop(fk_driver *driver)
{
    fake *f = (fake *)(void *)driver;
    CHECK(atomic_load(&f->is_started));
    CHECK(!atomic_load(&f->is_stopped));
    for (uint32_t i = 0; i < f->conn_count; i++) {
        if (!f->conn[i].is_over) fake_close(f, f->conn[i].id, i % 2 == 0);
    }
    atomic_store(&f->is_stopped, true);
}

fk_time fk__driver_run(fk_driver *driver, fk_time now)
{
    fake *f = enter(driver);
    pthread_mutex_lock(&f->lock);
    fake_fn task = f->task;
    if (task != NULL) task(f, f->task_arg);
    if (task != NULL) f->task = NULL;
    if (f->on_run != NULL) f->on_run(f, now);
    pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&f->runs, 1);
    return atomic_load(&f->next);
}

bool fk__driver_accepted(fk_driver *driver, fk_conn_id conn, fk_str from, fk_time now)
{
    fake *f = enter(driver);
    (void)now;
    CHECK((conn & FK_CONN_ACCEPTED) != 0);
    pthread_mutex_lock(&f->lock);
    fake_conn *c = add(f, conn);
    c->is_accepted = true;
    CHECK(from.len < sizeof(c->from));
    memcpy(c->from, from.ptr, from.len);
    c->is_over = f->refuses;
    pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&f->accepted, 1);
    return !f->refuses;
}

void fk__driver_connected(fk_driver *driver, fk_conn_id conn, fk_time now)
{
    fake *f = enter(driver);
    (void)now;
    pthread_mutex_lock(&f->lock);
    fake_conn *c = known(f, conn);
    CHECK(!c->is_connected);
    c->is_connected = true;
    if (f->on_connected != NULL) f->on_connected(f, c);
    pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&f->connected, 1);
}

void fk__driver_writable(fk_driver *driver, fk_conn_id conn, fk_time now)
{
    fake *f = enter(driver);
    (void)now;
    pthread_mutex_lock(&f->lock);
    fake_conn *c = known(f, conn);
    CHECK(c->is_lent);
    c->is_lent = false;
    c->writables++;
    if (f->on_writable != NULL) f->on_writable(f, c);
    pthread_mutex_unlock(&f->lock);
}

bool fk__driver_read(fk_driver *driver, fk_conn_id conn, fk_str bytes, fk_time now)
{
    fake *f = enter(driver);
    (void)now;
    CHECK(bytes.len > 0);
    pthread_mutex_lock(&f->lock);
    fake_conn *c = known(f, conn);
    for (size_t i = 0; i < bytes.len && !f->is_any_byte; i++) {
        CHECK_U64((unsigned char)bytes.ptr[i], fake_byte(c->received + i));
    }
    c->received += bytes.len;
    c->reads++;
    atomic_fetch_add(&f->bytes, bytes.len);
    if (f->on_read != NULL) f->on_read(f, c, bytes);
    bool result = f->read_result;
    if (!result) c->is_over = true;
    pthread_mutex_unlock(&f->lock);
    return result;
}

void fk__driver_closed(fk_driver *driver, fk_conn_id conn, fk_err err, fk_str why, fk_time now)
{
    fake *f = enter(driver);
    (void)now;
    CHECK(why.len > 0);
    pthread_mutex_lock(&f->lock);
    fake_conn *c = known(f, conn);
    c->is_over = c->is_closed = true;
    c->err = err;
    size_t len = why.len < sizeof(c->why) ? why.len : sizeof(c->why) - 1;
    memcpy(c->why, why.ptr, len);
    if (f->on_closed != NULL) f->on_closed(f, c);
    pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&f->closed, 1);
}

/* ---- the world ------------------------------------------------------------------------------------------ */

fake *fake_reset(void)
{
    memset(&the_fake, 0, sizeof(the_fake));
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&the_fake.lock, &recursive);
    atomic_store(&the_fake.next, FK_NEVER);
    the_fake.read_result = true;
    return &the_fake;
}

size_t world_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;
    CHECK(dir != NULL);
    while (readdir(dir) != NULL) count++;
    closedir(dir);
    return count;
}

static void work_nothing(uv_work_t *work)
{
    (void)work;
}

/* libuv keeps two descriptors and the threads of its pool for ever. */
static void warm_up(void)
{
    static bool is_warm;
    if (is_warm) return;
    uv_loop_t loop;
    uv_work_t work;
    CHECK(uv_loop_init(&loop) == 0);
    CHECK(uv_queue_work(&loop, &work, work_nothing, NULL) == 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
    is_warm = true;
}

void world_start(world *w, uint32_t workers)
{
    warm_up();
    *w = (world){ .is_driven = workers == 0, .fds = world_fds(), .threads = test_thread_count() };
    fk_system_config config = { .name = "net",
                                .workers = w->is_driven ? FK_WORKERS_NONE : workers,
                                .remoting = { .enabled = true, .host = "127.0.0.1" } };
    CHECK_OK(fk_system_start(&config, &w->sys));
    CHECK(world_port(w) != 0);
}

void world_stop(world *w)
{
    CHECK_OK(fk_system_stop(w->sys));
    CHECK(atomic_load(&the_fake.is_stopped));
    CHECK_U64(world_fds(), w->fds);
    int64_t end = test_clock() + FK_SECONDS(10);
    /* A joined thread leaves /proc a moment later. */
    while (test_thread_count() != w->threads && test_clock() < end) test_sleep_ms(1);
    CHECK_U64(test_thread_count(), w->threads);
}

uint16_t world_port(const world *w)
{
    return fk_remoting_port(w->sys);
}

void world_pass(world *w)
{
    if (w->is_driven)
        fk_host_run_once(w->sys, FK_MILLIS(1));
    else
        test_sleep_ms(1);
}

void world_pass_ms(world *w, unsigned ms)
{
    int64_t end = test_clock() + FK_MILLIS(ms);
    while (test_clock() < end) world_pass(w);
}

static bool is_done(fake *f)
{
    pthread_mutex_lock(&f->lock);
    bool done = f->task == NULL;
    pthread_mutex_unlock(&f->lock);
    return done;
}

void world_do(world *w, fake_fn fn, void *arg)
{
    fake *f = &the_fake;
    pthread_mutex_lock(&f->lock);
    f->task = fn;
    f->task_arg = arg;
    pthread_mutex_unlock(&f->lock);
    f->transport->wake(f->transport->ctx);
    WORLD_UNTIL(w, is_done(f));
}

fake_conn world_conn(fk_conn_id id)
{
    fake *f = &the_fake;
    pthread_mutex_lock(&f->lock);
    const fake_conn *c = fake_find(f, id);
    fake_conn copy = c != NULL ? *c : (fake_conn){ .id = 0 };
    pthread_mutex_unlock(&f->lock);
    return copy;
}

fake_conn world_last(void)
{
    fake *f = &the_fake;
    fake_conn copy = { .id = 0 };
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = f->conn_count; i > 0 && copy.id == 0; i--) {
        if (f->conn[i - 1].is_accepted) copy = f->conn[i - 1];
    }
    pthread_mutex_unlock(&f->lock);
    return copy;
}

/* ---- the other side ----------------------------------------------------------------------------------------- */

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

int peer_connect(uint16_t port)
{
    struct sockaddr_in to = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

int peer_listen(int backlog, uint16_t *port)
{
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0);
    CHECK(bind(fd, (struct sockaddr *)&at, size) == 0);
    CHECK(listen(fd, backlog) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

int peer_accept(world *w, int listener)
{
    int fd = -1;
    WORLD_UNTIL(w, (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    return fd;
}

void peer_send(world *w, int fd, size_t from, size_t len)
{
    unsigned char bytes[8192];
    while (len > 0) {
        size_t n = len < sizeof(bytes) ? len : sizeof(bytes);
        for (size_t i = 0; i < n; i++) bytes[i] = fake_byte(from + i);
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        CHECK(sent > 0 || (sent < 0 && errno == EAGAIN));
        if (sent < 0) world_pass(w);
        if (sent < 0) continue;
        from += (size_t)sent;
        len -= (size_t)sent;
    }
}

long peer_read(int fd, size_t from)
{
    static unsigned char bytes[65536];
    ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n < 0 && errno == EAGAIN) return -1;
    if (n < 0) return -2;
    for (ssize_t i = 0; i < n; i++) CHECK_U64(bytes[i], fake_byte(from + (size_t)i));
    return n;
}

void peer_reset(int fd)
{
    struct linger nothing = { 1, 0 };
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &nothing, sizeof(nothing)) == 0);
    close(fd);
}
