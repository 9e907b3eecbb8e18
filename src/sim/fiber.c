/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/fiber.h"

#include "sim/context.h"
#include "sim/fiber_sanitize.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fk_fiber {
    fk_context context;
    fk_fiber_fn *fn;
    void *arg;
    unsigned char *map; /* guard page, then the stack; NULL for the host */
    size_t map_size;
    size_t guard_size;
    const void *stack; /* for the host known only to the sanitizer */
    size_t stack_size;
    void *fake; /* the sanitizer's own stack of this fiber */
};

static fk_fiber host;
static fk_fiber *current = &host;
static fk_fiber *previous; /* who was left by the switch under way */

fk_fiber *fk__fiber_create(size_t stack_size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t map_size = (stack_size + page - 1) / page * page + page;
    fk_fiber *fiber = calloc(1, sizeof(*fiber));
    if (fiber == NULL) return NULL;
    void *map = mmap(NULL, map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) != 0) {
        if (map != MAP_FAILED) munmap(map, map_size);
        free(fiber);
        return NULL;
    }
    fiber->map = map;
    fiber->map_size = map_size;
    fiber->guard_size = page;
    fiber->stack = fiber->map + page;
    fiber->stack_size = map_size - page;
    return fiber;
}

void fk__fiber_destroy(fk_fiber *fiber)
{
    if (fiber == NULL) return;
    assert(fiber != current);
    munmap(fiber->map, fiber->map_size);
    free(fiber);
}

/* The first thing on either side of a switch: the sanitizer learns where we came from, which is
 * also how it learns the host's stack. */
static void arrive(void)
{
    fk__sanitize_enter(current->fake, &previous->stack, &previous->stack_size);
}

static void entry(void)
{
    arrive();
    current->fn(current->arg);
    fk__fiber_switch(NULL);
    abort(); /* a finished fiber was continued without fk__fiber_start() */
}

void fk__fiber_start(fk_fiber *fiber, fk_fiber_fn *fn, void *arg)
{
    assert(fiber != current);
    fk__sanitize_renew(fiber->stack, fiber->stack_size);
    fiber->fn = fn;
    fiber->arg = arg;
    fiber->fake = NULL;
    fiber->context = fk__context_make(fiber->map + fiber->guard_size, fiber->stack_size, entry);
}

void fk__fiber_switch(fk_fiber *to)
{
    fk_fiber *from = current;
    if (to == NULL) to = &host;
    assert(to != from);
    previous = from;
    current = to;
    fk__sanitize_leave(&from->fake, to->stack, to->stack_size);
    fk__context_swap(&from->context, to->context);
    arrive();
}

fk_fiber *fk__fiber_self(void)
{
    return current == &host ? NULL : current;
}

bool fk__fiber_is_guard(const fk_fiber *fiber, const void *address)
{
    const unsigned char *at = address;
    return at >= fiber->map && at < fiber->map + fiber->guard_size;
}
