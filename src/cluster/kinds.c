/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cluster/cluster.h"

#include "cluster/identity.h"
#include "core/path.h"
#include "core/registry.h"
#include "core/spawn.h"

const fk_breed *fk__breed_find(const fk_cluster *cluster, fk_str name)
{
    /* Acquire pairs with fk_kind_register(). */
    const fk_breed *breed = fk__word_ptr(&cluster->breeds, FK_ACQUIRE);
    for (; breed != NULL; breed = breed->next) {
        if (breed->name_len == name.len && memcmp(breed->name, name.ptr, name.len) == 0) break;
    }
    return breed;
}

/* /user/KIND only has children; one that fails ends. */
static fk_err kind_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

static fk_err kind_parent(fk_cluster *cluster, fk_str name, fk_ref *out)
{
    static const fk_props KIND = { .receive = kind_receive,
                                   .strategy = { .decide = fk_decide_stop } };
    FK_TRY(fk_spawn(cluster->sys, name, &KIND, out));
    fk_cell *cell = fk__cell_resolve(cluster->sys, *out);
    if (cell == NULL) return FK_E_STOPPING;
    fk__half_or(&cell->gate, FK_GATE_SHARED, FK_RELAXED); /* before anybody spawns below it */
    return FK_OK;
}

fk_str fk__grain_name(const fk_system *sys, fk_str key, fk_grain_id id,
                      char room[FK_GRAIN_NAME_ROOM])
{
    static const char HEX[] = "0123456789abcdef";
    bool may_be = key.len <= 255 && key.ptr[0] != '~';
    if (may_be && key.len <= sys->paths.segment_max && fk__name_is_plain(key)) return key;
    may_be = may_be && !fk__segment_has_escape(key);
    if (may_be && fk_path_check_name(&sys->paths, key, NULL) == FK_OK) return key;
    room[0] = '~';
    for (uint32_t i = 0; i < 16; i++) {
        room[1 + i] = HEX[id.hi >> (60 - 4 * i) & 15];
        room[17 + i] = HEX[id.lo >> (60 - 4 * i) & 15];
    }
    return (fk_str){ room, FK_GRAIN_NAME_ROOM };
}

static fk_err kind_check(const fk_kind *kind)
{
    if (kind == NULL || kind->props == NULL || kind->props->receive == NULL) return FK_E_INVALID;
    if (kind->size != 0 && kind->size < sizeof(fk_kind)) return FK_E_INVALID;
    if ((kind->encode == NULL) != (kind->decode == NULL) || kind->idle_ttl < 0) return FK_E_INVALID;
    if (kind->props->state_size > SIZE_MAX / 2) return FK_E_NOMEM;
    if (kind->props->state != NULL || kind->props->dispatcher != FK_DISPATCHER_DEFAULT) {
        return FK_E_INVALID;
    }
    return fk__props_check(kind->props);
}

fk_err fk_kind_register(fk_cluster *cluster, fk_str name, const fk_kind *kind)
{
    fk_grain_key probe;
    fk_ref parent;
    void *memory;
    uint32_t count = 0;
    if (cluster == NULL) return FK_E_INVALID;
    if (cluster->config.client) return FK_E_IDENTITY_SETUP;
    FK_TRY(kind_check(kind));
    if (fk_grain_key_of(name, FK_STR("x"), &probe) != FK_OK) return FK_E_NAME;
    if (fk__breed_find(cluster, name) != NULL) return FK_E_NAME_TAKEN;
    const fk_breed *breed = fk__word_ptr(&cluster->breeds, FK_ACQUIRE);
    for (; breed != NULL; breed = breed->next) count++;
    if (count >= FK_MEMBER_KINDS_MAX) return FK_E_LIMIT;
    fk_mem *mem = &cluster->sys->mem;
    size_t init = kind->props->init != NULL ? kind->props->state_size : 0;
    FK_TRY(fk__mem_alloc(mem, sizeof(fk_breed) + init, FK_SITE("kind of grains"), &memory));
    /* Its name is taken from here on: of two that register it at once, one fails. */
    fk_err err = kind_parent(cluster, name, &parent);
    if (err != FK_OK) {
        fk__mem_free(mem, memory, sizeof(fk_breed) + init);
        return err;
    }
    fk_breed *own = memory;
    *own = (fk_breed){ .kind = *kind, .props = *kind->props, .parent = parent };
    own->kind.props = &own->props;
    if (own->kind.idle_ttl == 0) own->kind.idle_ttl = FK_MINUTES(10);
    if (init != 0) {
        memcpy(own + 1, kind->props->init, init);
        own->props.init = own + 1;
    }
    own->name_len = (uint32_t)name.len;
    memcpy(own->name, name.ptr, name.len);
    own->name[name.len] = '\0';
    fk__shell_props(own, &own->shell_props);
    fk__mem_lock(mem, &cluster->lock);
    own->next = fk__word_ptr(&cluster->breeds, FK_RELAXED);
    fk__word_store(&cluster->breeds, (uintptr_t)own, FK_RELEASE);
    fk__mem_unlock(mem, &cluster->lock);
    /* If it cannot be told, it finds out when it looks: it is registered. */
    (void)fk__steward_tell(cluster, FK_TASK_KIND, own);
    return FK_OK;
}
