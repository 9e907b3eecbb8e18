/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_SYSMSG_H
#define FK_WIRE_SYSMSG_H

/* System messages between actors (serializer 22, no manifest). They travel inside numbered ones. */

#include "wire/container.h"

enum { FK_SERIALIZER_SYSMSG = 22 };

typedef enum fk_sysmsg_kind {
    FK_SYSMSG_CREATE = 0,
    FK_SYSMSG_RECREATE,
    FK_SYSMSG_SUSPEND,
    FK_SYSMSG_RESUME,
    FK_SYSMSG_TERMINATE,
    FK_SYSMSG_SUPERVISE,
    FK_SYSMSG_WATCH,
    FK_SYSMSG_UNWATCH,
    FK_SYSMSG_FAILED,
    FK_SYSMSG_DEATH, /* death watch notification */
    FK_SYSMSG_COUNT,
} fk_sysmsg_kind;

typedef struct fk_sysmsg_watch {
    uint32_t has;
    fk_wire_ref watchee, watcher;
} fk_sysmsg_watch;

typedef struct fk_sysmsg_supervise {
    uint32_t has;
    fk_wire_ref child;
    bool is_async;
} fk_sysmsg_supervise;

typedef struct fk_sysmsg_failed {
    uint32_t has;
    fk_wire_ref child;
    uint64_t uid;
} fk_sysmsg_failed;

typedef struct fk_sysmsg_death {
    uint32_t has;
    fk_wire_ref actor;
    bool existence_confirmed;
    bool address_terminated;
} fk_sysmsg_death;

/* What it has besides the kind follows from the kind. */
typedef struct fk_wire_sysmsg {
    uint32_t has;
    uint32_t kind;         /* fk_sysmsg_kind */
    fk_sysmsg_watch watch; /* watch, unwatch */
    fk_wire_payload cause; /* recreate, resume, failed; create if the message is not empty */
    fk_sysmsg_supervise supervise; /* supervise */
    fk_sysmsg_failed failed;       /* failed */
    fk_sysmsg_death death;         /* death */
} fk_wire_sysmsg;

FK_MUST_USE fk_err fk__sysmsg_decode(fk_str bytes, fk_wire_sysmsg *out, fk_wire_fault *fault);
size_t fk__sysmsg_size(const fk_wire_sysmsg *message);
void fk__sysmsg_encode(const fk_wire_sysmsg *message, unsigned char *to, size_t size);

#endif /* FK_WIRE_SYSMSG_H */
