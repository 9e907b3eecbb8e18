/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Answers as they are kept in a dedup window: serializer, manifest, bytes. A type without a codec can be
 * answered again by this process only, which is where its asker must be, too: its bytes are kept as they
 * are, under the type's name, and the type is remembered as long as the cluster.
 */

#include "cluster/cluster.h"

enum { SERIALIZER_OWN = -1, HEAD = 6 };

typedef struct fk_known_type {
    struct fk_known_type *next;
    const fk_type *type;
} fk_known_type;

static bool type_is_named(const fk_type *type, fk_str name)
{
    fk_str own = fk_str_of(type->name);
    return own.len == name.len && memcmp(own.ptr, name.ptr, name.len) == 0;
}

static const fk_type *type_known(const fk_cluster *cluster, fk_str name, size_t size)
{
    /* Acquire: as it was written by type_learn(). */
    const fk_known_type *known = fk__word_ptr(&cluster->types, FK_ACQUIRE);
    for (; known != NULL; known = known->next) {
        if (known->type->size == size && type_is_named(known->type, name)) return known->type;
    }
    return NULL;
}

static fk_err type_learn(fk_cluster *cluster, const fk_type *type)
{
    void *memory;
    if (type_known(cluster, fk_str_of(type->name), type->size) == type) return FK_OK;
    FK_TRY(fk__mem_alloc(&cluster->sys->mem, sizeof(fk_known_type), FK_SITE("type of answers"),
                         &memory));
    fk_known_type *known = memory;
    known->type = type;
    uintptr_t first = fk__word_load(&cluster->types, FK_RELAXED);
    do {
        known->next = (fk_known_type *)first;
    } while (!fk__word_cas(&cluster->types, &first, (uintptr_t)known, FK_RELEASE));
    return FK_OK;
}

void fk__answer_types_fini(fk_cluster *cluster)
{
    fk_known_type *known = fk__word_ptr(&cluster->types, FK_ACQUIRE), *next;
    for (; known != NULL; known = next) {
        next = known->next;
        fk__mem_free(&cluster->sys->mem, known, sizeof(*known));
    }
}

fk_err fk__answer_pack(fk_cluster *cluster, const fk_msg *msg, unsigned char **bytes, size_t *size)
{
    fk_cargo cargo;
    unsigned char *memory = NULL;
    size_t memory_size = 0;
    void *out;
    fk_err err = fk__cargo_pack(cluster, msg, &cargo, &memory, &memory_size);
    if (err == FK_E_NO_CODEC && msg->type->size != 0 && msg->type->drop == NULL) {
        err = type_learn(cluster, msg->type);
        cargo = (fk_cargo){ SERIALIZER_OWN, fk_str_of(msg->type->name), { msg->data, msg->len } };
    }
    if (err != FK_OK) return err;
    size_t total = HEAD + cargo.manifest.len + cargo.bytes.len;
    err = fk__mem_alloc(&cluster->sys->mem, total, FK_SITE("answer of a grain"), &out);
    if (err == FK_OK) {
        unsigned char *to = out;
        fk__store32(to, (uint32_t)cargo.serializer);
        fk__store16(to + 4, (uint16_t)cargo.manifest.len);
        if (cargo.manifest.len != 0) memcpy(to + HEAD, cargo.manifest.ptr, cargo.manifest.len);
        if (cargo.bytes.len != 0) {
            memcpy(to + HEAD + cargo.manifest.len, cargo.bytes.ptr, cargo.bytes.len);
        }
        *bytes = to;
        *size = total;
    }
    fk__mem_free(&cluster->sys->mem, memory, memory_size);
    return err;
}

fk_err fk__answer_unpack(fk_cluster *cluster, fk_local *local, fk_str bytes, fk_node **out)
{
    if (bytes.len < HEAD) return FK_E_CORRUPT;
    size_t manifest = fk__load16(bytes.ptr + 4);
    if (bytes.len - HEAD < manifest) return FK_E_CORRUPT;
    fk_cargo cargo = { (int32_t)fk__load32(bytes.ptr),
                       { bytes.ptr + HEAD, manifest },
                       { bytes.ptr + HEAD + manifest, bytes.len - HEAD - manifest } };
    if (cargo.serializer != SERIALIZER_OWN) return fk__cargo_open(cluster, local, &cargo, out);
    const fk_type *type = type_known(cluster, cargo.manifest, cargo.bytes.len);
    if (type == NULL) return FK_E_NO_CODEC;
    fk_payload *payload = NULL; /* aligned as any struct wants it */
    FK_TRY(fk__payload_create(&local->cache, cluster->sys, type, cargo.bytes.len, &payload));
    memcpy(payload->data, cargo.bytes.ptr, cargo.bytes.len);
    *out = fk__node_create(&local->cache, (fk_out){ &fk_type_payload, payload });
    if (*out != NULL) return FK_OK;
    fk__payload_put(&local->cache, payload);
    return local->cache.err;
}
