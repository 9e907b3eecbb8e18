/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Field numbers: Pekko's SystemMessageFormats.proto. */

#include "wire/sysmsg.h"

static const fk_proto_field PROTO_WATCH_FIELDS[] = {
    FK_PROTO_INNER(fk_sysmsg_watch, 1, MESSAGE, REQUIRED, watchee, &fk__proto_ref),
    FK_PROTO_INNER(fk_sysmsg_watch, 2, MESSAGE, REQUIRED, watcher, &fk__proto_ref),
};
static const fk_proto_type PROTO_WATCH = FK_PROTO_TYPE(fk_sysmsg_watch, PROTO_WATCH_FIELDS);

static const fk_proto_field PROTO_SUPERVISE_FIELDS[] = {
    FK_PROTO_INNER(fk_sysmsg_supervise, 1, MESSAGE, REQUIRED, child, &fk__proto_ref),
    FK_PROTO_PLAIN(fk_sysmsg_supervise, 2, BOOL, REQUIRED, is_async),
};
static const fk_proto_type PROTO_SUPERVISE =
    FK_PROTO_TYPE(fk_sysmsg_supervise, PROTO_SUPERVISE_FIELDS);

static const fk_proto_field PROTO_FAILED_FIELDS[] = {
    FK_PROTO_INNER(fk_sysmsg_failed, 1, MESSAGE, REQUIRED, child, &fk__proto_ref),
    FK_PROTO_PLAIN(fk_sysmsg_failed, 2, U64, REQUIRED, uid),
};
static const fk_proto_type PROTO_FAILED = FK_PROTO_TYPE(fk_sysmsg_failed, PROTO_FAILED_FIELDS);

static const fk_proto_field PROTO_DEATH_FIELDS[] = {
    FK_PROTO_INNER(fk_sysmsg_death, 1, MESSAGE, REQUIRED, actor, &fk__proto_ref),
    FK_PROTO_PLAIN(fk_sysmsg_death, 2, BOOL, REQUIRED, existence_confirmed),
    FK_PROTO_PLAIN(fk_sysmsg_death, 3, BOOL, REQUIRED, address_terminated),
};
static const fk_proto_type PROTO_DEATH = FK_PROTO_TYPE(fk_sysmsg_death, PROTO_DEATH_FIELDS);

static const fk_proto_field PROTO_SYSMSG_FIELDS[] = {
    FK_PROTO_NUMBER(fk_wire_sysmsg, 1, U32, REQUIRED, kind, FK_SYSMSG_COUNT - 1),
    FK_PROTO_INNER(fk_wire_sysmsg, 2, MESSAGE, OPTIONAL, watch, &PROTO_WATCH),
    FK_PROTO_INNER(fk_wire_sysmsg, 3, MESSAGE, OPTIONAL, cause, &fk__proto_payload),
    FK_PROTO_INNER(fk_wire_sysmsg, 5, MESSAGE, OPTIONAL, supervise, &PROTO_SUPERVISE),
    FK_PROTO_INNER(fk_wire_sysmsg, 6, MESSAGE, OPTIONAL, failed, &PROTO_FAILED),
    FK_PROTO_INNER(fk_wire_sysmsg, 7, MESSAGE, OPTIONAL, death, &PROTO_DEATH),
};
static const fk_proto_type PROTO_SYSMSG = FK_PROTO_TYPE(fk_wire_sysmsg, PROTO_SYSMSG_FIELDS);

enum { /* by place in PROTO_SYSMSG_FIELDS */
       SYSMSG_HAS_WATCH = 1 << 1,
       SYSMSG_HAS_CAUSE = 1 << 2,
       SYSMSG_HAS_SUPERVISE = 1 << 3,
       SYSMSG_HAS_FAILED = 1 << 4,
       SYSMSG_HAS_DEATH = 1 << 5,
};

static const uint8_t SYSMSG_PARTS[FK_SYSMSG_COUNT] = {
    [FK_SYSMSG_RECREATE] = SYSMSG_HAS_CAUSE,
    [FK_SYSMSG_RESUME] = SYSMSG_HAS_CAUSE,
    [FK_SYSMSG_SUPERVISE] = SYSMSG_HAS_SUPERVISE,
    [FK_SYSMSG_WATCH] = SYSMSG_HAS_WATCH,
    [FK_SYSMSG_UNWATCH] = SYSMSG_HAS_WATCH,
    [FK_SYSMSG_FAILED] = SYSMSG_HAS_CAUSE | SYSMSG_HAS_FAILED,
    [FK_SYSMSG_DEATH] = SYSMSG_HAS_DEATH,
};

fk_err fk__sysmsg_decode(fk_str bytes, fk_wire_sysmsg *out, fk_wire_fault *fault)
{
    fk_wire_sysmsg message;
    FK_TRY(fk__proto_decode(&PROTO_SYSMSG, bytes, &message, fault));
    if ((SYSMSG_PARTS[message.kind] & ~message.has) != 0) {
        return fk__wire_fail(fault, FK_E_MALFORMED, bytes.len,
                             "a system message lacks what its type needs");
    }
    *out = message;
    return FK_OK;
}

/* The mask follows from the kind, so that nobody has to know of it. */
static fk_wire_sysmsg sysmsg_marked(const fk_wire_sysmsg *message)
{
    fk_wire_sysmsg copy = *message;
    FK_ASSERT(message->kind < FK_SYSMSG_COUNT);
    copy.has = SYSMSG_PARTS[message->kind];
    if (message->kind == FK_SYSMSG_CREATE && message->cause.message.len > 0)
        copy.has |= SYSMSG_HAS_CAUSE;
    return copy;
}

size_t fk__sysmsg_size(const fk_wire_sysmsg *message)
{
    fk_wire_sysmsg copy = sysmsg_marked(message);
    return fk__proto_size(&PROTO_SYSMSG, &copy);
}

void fk__sysmsg_encode(const fk_wire_sysmsg *message, unsigned char *to, size_t size)
{
    fk_wire_sysmsg copy = sysmsg_marked(message);
    fk__proto_encode(&PROTO_SYSMSG, &copy, to, size);
}
