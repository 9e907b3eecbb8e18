/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/mem.h"

void fk__mem_init(fk_mem *mem, const fk_port *port, size_t max)
{
    FK_ASSERT(port->alloc != NULL);
    FK_ASSERT(port->lock != NULL);
    FK_ASSERT(port->unlock != NULL);

    mem->port = *port;
    mem->max = max;
    fk__word_init(&mem->used, 0);
}

fk_err fk__mem_alloc(fk_mem *mem, size_t size, const fk_site *site, void **out)
{
    FK_ASSERT(size > 0);
    *out = NULL;

    /* By compare-exchange: a request that is refused must not make others look refused. */
    size_t max = mem->max != 0 ? mem->max : SIZE_MAX / 2;
    uintptr_t used = fk__word_load(&mem->used, FK_RELAXED);
    do {
        if (size > max || used > max - size) return mem->max != 0 ? FK_E_LIMIT : FK_E_NOMEM;
    } while (!fk__word_cas(&mem->used, &used, used + size, FK_ACQ_REL));
    fk_err err = FK_OK;
    if (mem->port.admit != NULL && !mem->port.admit(mem->port.ctx, site, size)) {
        err = FK_E_NOMEM;
    } else {
        *out = mem->port.alloc(mem->port.ctx, NULL, 0, size);
        if (*out == NULL) err = FK_E_NOMEM;
    }
    if (err != FK_OK) fk__word_add(&mem->used, (uintptr_t)0 - size, FK_RELAXED);
    return err;
}

void fk__mem_free(fk_mem *mem, void *ptr, size_t size)
{
    if (ptr == NULL) return;
    mem->port.alloc(mem->port.ctx, ptr, size, 0);
    uintptr_t before = fk__word_add(&mem->used, (uintptr_t)0 - size, FK_RELAXED);
    FK_ASSERT(before >= size);
}
