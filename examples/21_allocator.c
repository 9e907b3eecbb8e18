/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An allocator of one's own: take the host's port, replace alloc, start the system with it. This
 * one counts; at the end nothing may be left. Frees come with their size, so it needs no header
 * in front of each block. */

#include <fraktor/fraktor.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Not behind ctx: that goes to the host's other functions, too. */
static atomic_size_t bytes; /* outstanding; any thread of the system allocates */
static atomic_size_t calls;

/* Like lua_Alloc: old_size 0 allocates, new_size 0 frees. */
static void *counting_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    atomic_fetch_add(&calls, 1);
    if (new_size == 0) {
        atomic_fetch_sub(&bytes, old_size);
        free(ptr);
        return NULL;
    }
    void *block = malloc(new_size);
    if (block != NULL) atomic_fetch_add(&bytes, new_size);
    return block;
}

static fk_err worker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    fk_stop_self(ctx);
    return FK_OK;
}

int main(void)
{
    fk_system *sys = NULL;
    fk_port port = fk_host_port();
    port.alloc = counting_alloc;
    port.align = 0; /* malloc promises 16 bytes, not more */
    const fk_system_config config = { .name = "frugal", .port = &port };

    if (fk_system_start(&config, &sys) != FK_OK) return 1;
    fk_err err = FK_OK;
    for (int i = 0; i < 1000 && err == FK_OK; i++) {
        fk_ref ref;
        err = fk_spawn(sys, FK_STR(""), &(fk_props){ .receive = worker_receive }, &ref);
        if (err == FK_OK) err = fk_send(sys, ref, FK_TEXT("work, then stop"));
    }
    printf("running: memory is in use: %s\n", atomic_load(&bytes) > 0 ? "yes" : "no");
    fk_system_stop(sys);
    printf("1000 actors: %s\n", fk_err_text(err));
    printf("fewer calls than actors: %s\n", atomic_load(&calls) < 1000 ? "yes" : "no");
    printf("stopped: %zu bytes outstanding\n", atomic_load(&bytes));
    return err == FK_OK && atomic_load(&bytes) == 0 ? 0 : 1;
}
