/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/uids.h"

enum { UIDS_CAPACITY_MIN = 4 };

static uint32_t uids_find(const fk_uids *uids, uint64_t uid)
{
    uint32_t i = 0;
    while (i < uids->count && uids->mark[i].uid != uid) i++;
    return i;
}

bool fk__uids_has(const fk_uids *uids, uint64_t uid)
{
    return uids_find(uids, uid) < uids->count;
}

static void uids_remove_at(fk_uids *uids, uint32_t index)
{
    uids->count--;
    memmove(&uids->mark[index], &uids->mark[index + 1],
            (uids->count - index) * sizeof(fk_uid_mark));
}

static fk_err uids_grow(fk_uids *uids, fk_mem *mem, uint32_t max)
{
    uint32_t capacity = uids->capacity != 0 ? uids->capacity * 2 : UIDS_CAPACITY_MIN;
    if (capacity > max) capacity = max;
    void *memory;
    FK_TRY(
        fk__mem_alloc(mem, capacity * sizeof(fk_uid_mark), FK_SITE("quarantined uids"), &memory));
    if (uids->count != 0) memcpy(memory, uids->mark, uids->count * sizeof(fk_uid_mark));
    fk__mem_free(mem, uids->mark, uids->capacity * sizeof(fk_uid_mark));
    uids->mark = memory;
    uids->capacity = capacity;
    return FK_OK;
}

fk_err fk__uids_reserve(fk_uids *uids, fk_mem *mem, fk_uids_limit limit, fk_time now,
                        uint64_t *forgotten)
{
    FK_ASSERT(limit.max > 0);
    *forgotten = 0;
    if (uids->count < uids->capacity) return FK_OK;
    if (uids->capacity < limit.max) return uids_grow(uids, mem, limit.max);
    if (fk__time_add(uids->mark[0].at, limit.keep) > now) return FK_E_LIMIT;
    *forgotten = uids->mark[0].uid;
    uids_remove_at(uids, 0);
    return FK_OK;
}

void fk__uids_add(fk_uids *uids, uint64_t uid, fk_time now)
{
    fk__uids_remove(uids, uid);
    FK_ASSERT(uids->count < uids->capacity);
    uids->mark[uids->count++] = (fk_uid_mark){ uid, now };
}

bool fk__uids_remove(fk_uids *uids, uint64_t uid)
{
    uint32_t index = uids_find(uids, uid);
    if (index == uids->count) return false;
    uids_remove_at(uids, index);
    return true;
}

bool fk__uids_are_over(const fk_uids *uids, fk_time keep, fk_time now)
{
    return uids->count == 0 || fk__time_add(uids->mark[uids->count - 1].at, keep) <= now;
}

void fk__uids_fini(fk_uids *uids, fk_mem *mem)
{
    fk__mem_free(mem, uids->mark, uids->capacity * sizeof(fk_uid_mark));
    *uids = (fk_uids){ NULL, 0, 0 };
}
