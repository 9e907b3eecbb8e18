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

    /* Counted first and taken back on refusal, so that two threads cannot both pass the limit. */
    uintptr_t before = fk__word_add(&mem->used, size, FK_RELAXED);
    fk_err err = FK_OK;
    if (mem->max != 0 && (size > mem->max || before > mem->max - size)) {
        err = FK_E_LIMIT;
    } else if (mem->port.admit != NULL && !mem->port.admit(mem->port.ctx, site, size)) {
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
