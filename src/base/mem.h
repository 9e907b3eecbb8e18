/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_MEM_H
#define FK_BASE_MEM_H

/*
 * Memory of one system: the port's allocator, plus a byte count, a limit, and the table of all
 * places that allocate. Frees carry their size. Hot objects do not come from here but from the
 * pools (base/pool.h), which take whole regions.
 */

#include "base/atomic.h"
#include "base/base.h"
#include "fraktor/port.h"

typedef struct fk_mem {
    fk_port port;
    size_t max;   /* 0: no limit */
    fk_word used; /* bytes held from the port */
} fk_mem;

/* Names an allocation site; the linker collects them in the section fk_sites. The alignment makes
 * that an array: without it GCC rounds each one up to 16 bytes. */
#define FK_SITE(what)                                                                              \
    (__extension__({                                                                               \
        static const fk_site fk__site_here __attribute__((                                         \
            section("fk_sites"), used, aligned(sizeof(void *)))) = { what, __FILE__, __LINE__ };   \
        &fk__site_here;                                                                            \
    }))

void fk__mem_init(fk_mem *mem, const fk_port *port, size_t max);

/* FK_E_NOMEM or FK_E_LIMIT; *out is NULL then. The memory is not zeroed. */
FK_MUST_USE fk_err fk__mem_alloc(fk_mem *mem, size_t size, const fk_site *site, void **out);
/* ptr may be NULL. */
void fk__mem_free(fk_mem *mem, void *ptr, size_t size);

static inline void fk__mem_lock(fk_mem *mem, fk_lock *lock)
{
    mem->port.lock(mem->port.ctx, lock);
}

static inline void fk__mem_unlock(fk_mem *mem, fk_lock *lock)
{
    mem->port.unlock(mem->port.ctx, lock);
}

#endif /* FK_BASE_MEM_H */
