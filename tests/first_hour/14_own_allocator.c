/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 14 of the first hour: an allocator of one's own, whose 1st, 2nd, ... nth allocation fails.
 * Every run ends with FK_E_NOMEM or a failed actor, never with a crash or a leak. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct heap {
    long calls, fails_at, bytes;
} heap;

static void *own_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    heap *h = ctx;
    if (new_size == 0) {
        h->bytes -= (long)old_size;
        free(ptr);
        return NULL;
    }
    if (++h->calls == h->fails_at) return NULL;
    void *block = malloc(new_size);
    if (block != NULL) h->bytes += (long)new_size;
    return block;
}

typedef struct note {
    char text[200];
} note;
FK_MESSAGE(note);

static fk_err work(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref child;
    (void)state;
    if (msg->type == &fk_type_text) return FK_OK;
    fk_props props = { .receive = work, .state_size = 100 };
    fk_err err = fk_spawn_child(ctx, FK_STR("child"), &props, &child);
    if (err != FK_OK) return fk_fail(ctx, err, "no child");
    err = fk_tell(ctx, child, FK_TEXT("hello"));
    if (err == FK_OK) err = fk_timer_start(ctx, 1, FK_TIMER_ONCE, 0, FK_TEXT("tick"));
    if (err == FK_OK) err = fk_stash(ctx);
    return err;
}

/* One run with the nth allocation failing; returns the first error, or FK_OK. */
static fk_err run(heap *h, bool pools_malloc, fk_err *failed)
{
    fk_port port = fk_host_port();
    fk_system *sys;
    fk_ref ref;
    fk_stats stats;
    port.ctx = h;
    port.align = 0; /* malloc guarantees 16 bytes and no more */
    port.alloc = own_alloc;
    /* Without threads, so that each run makes the same allocations. */
    fk_system_config config = { .workers = FK_WORKERS_NONE,
                                .port = &port,
                                .pools_malloc = pools_malloc };
    *failed = FK_OK;
    fk_err err = fk_system_start(&config, &sys);
    if (err != FK_OK) return err;
    fk_props props = { .receive = work };
    err = fk_spawn(sys, FK_STR("worker"), &props, &ref);
    if (err == FK_OK) err = fk_send(sys, ref, FK_MSG(note, "note"));
    for (int i = 0; i < 10; i++) fk_host_run_once(sys, FK_MILLIS(1));
    fk_stats_get(sys, &stats);
    if (stats.failures > 0) *failed = FK_E_FAILED;
    fk_err stopped = fk_system_stop(sys);
    return err != FK_OK ? err : stopped;
}

int main(void)
{
    long nomem = 0, failures = 0;
    for (int mode = 0; mode < 2; mode++) {
        for (long n = 1;; n++) {
            heap h = { 0, n, 0 };
            fk_err failed, err = run(&h, mode != 0, &failed);
            if (h.bytes != 0) {
                printf("%ld bytes left after allocation %ld failed\n", h.bytes, n);
                return 1;
            }
            if (err != FK_OK && err != FK_E_NOMEM) {
                printf("allocation %ld failed: %s\n", n, fk_err_text(err));
                return 1;
            }
            nomem += err == FK_E_NOMEM;
            failures += failed != FK_OK;
            if (h.calls < n) break; /* it was never reached: the run passed */
        }
    }
    printf("%ld runs ended with FK_E_NOMEM, %ld with a failed actor, none with a leak\n", nomem,
           failures);
    return nomem > 5 && failures > 0 ? 0 : 1;
}
