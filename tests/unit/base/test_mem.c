/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/mem.h"

#include "support/rig.h"

static uintptr_t used(const fk_mem *mem)
{
    return fk__word_load(&mem->used, FK_RELAXED);
}

TEST(mem_counts_what_it_holds)
{
    rig r;
    fk_mem mem;
    void *a, *b;
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    CHECK_U64(used(&mem), 0);
    CHECK_OK(fk__mem_alloc(&mem, 100, FK_SITE("test a"), &a));
    CHECK_OK(fk__mem_alloc(&mem, 28, FK_SITE("test b"), &b));
    CHECK_U64(used(&mem), 128);
    CHECK_U64(atomic_load(&r.bytes), 128);
    CHECK_U64((uintptr_t)a % 16, 0);
    fk__mem_free(&mem, a, 100);
    CHECK_U64(used(&mem), 28);
    fk__mem_free(&mem, NULL, 50);
    CHECK_U64(used(&mem), 28);
    fk__mem_free(&mem, b, 28);
    CHECK_U64(used(&mem), 0);
    rig_check_empty(&r);
}

TEST(mem_limit_is_exact_and_differs_from_no_memory)
{
    rig r;
    fk_mem mem;
    void *a, *b = &r;
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 1000);
    CHECK_OK(fk__mem_alloc(&mem, 600, FK_SITE("test a"), &a));
    CHECK_ERR(fk__mem_alloc(&mem, 401, FK_SITE("test b"), &b), FK_E_LIMIT);
    CHECK(b == NULL);
    CHECK_U64(used(&mem), 600);
    CHECK_OK(fk__mem_alloc(&mem, 400, FK_SITE("test b"), &b));
    CHECK_U64(used(&mem), 1000);
    fk__mem_free(&mem, b, 400);
    rig_fault(&r, 1, false);
    CHECK_ERR(fk__mem_alloc(&mem, 400, FK_SITE("test b"), &b), FK_E_NOMEM);
    CHECK(b == NULL);
    CHECK_U64(used(&mem), 600);
    fk__mem_free(&mem, a, 600);
    CHECK_ERR(fk__mem_alloc(&mem, SIZE_MAX, FK_SITE("test c"), &b), FK_E_LIMIT);
    CHECK_U64(used(&mem), 0);
    rig_check_empty(&r);
}

static void *no_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)ptr;
    (void)old_size;
    (void)new_size;
    return NULL;
}

TEST(mem_passes_on_that_the_port_has_none)
{
    rig r;
    fk_mem mem;
    void *a;
    rig_init(&r);
    r.port.alloc = no_alloc;
    fk__mem_init(&mem, &r.port, 0);
    CHECK_ERR(fk__mem_alloc(&mem, 10, FK_SITE("test a"), &a), FK_E_NOMEM);
    CHECK_U64(used(&mem), 0);
}

static const fk_site *last_site;

static void note_site(void *user, const fk_site *site, bool refused)
{
    (void)user;
    (void)refused;
    last_site = site;
}

TEST(mem_tells_admit_where_it_is_and_that_is_in_the_section)
{
    extern const fk_site __start_fk_sites[], __stop_fk_sites[];
    rig r;
    fk_mem mem;
    void *a;
    rig_init(&r);
    r.on_admit = note_site;
    fk__mem_init(&mem, &r.port, 0);
    CHECK_OK(fk__mem_alloc(&mem, 10, FK_SITE("test of sites"), &a));
    CHECK_STR(last_site->what, "test of sites");
    CHECK(last_site >= __start_fk_sites);
    CHECK(last_site < __stop_fk_sites);
    fk__mem_free(&mem, a, 10);
    rig_check_empty(&r);
}
