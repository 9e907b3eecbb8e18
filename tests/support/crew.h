/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_CREW_H
#define FK_TESTS_SUPPORT_CREW_H

/* Workers for routers, and what they did. */

#include "support/rig.h"

enum { CREW_MAX = 64, CREW_FAIL = 1000000 };

typedef struct crew {
    size_t started, stopped, restarted; /* workers, in the order of their starts */
    fk_ref ref[CREW_MAX];
    size_t got[CREW_MAX];    /* messages */
    uint64_t last[CREW_MAX]; /* num */
    size_t all;
    fk_ref sender;       /* of the last message */
    const fk_type *type; /* of it */
    size_t len;
} crew;

typedef struct crew_worker {
    crew *crew;
    size_t index;
} crew_worker;

/* Props of workers that write down what they get in the crew, which lives longer. A num of CREW_FAIL
 * makes one fail, the text "leave" stop. init: where what they begin with is put. */
fk_props crew_props(crew *c, crew_worker *init);
/* One worker that is nobody's routee, under /user. */
fk_ref crew_spawn(rig *r, crew *c);

/* Which one that is: from 0, in the order of their starts. */
size_t crew_index(const crew *c, fk_ref ref);
/* Sends nums from first on to a router, and runs. */
void crew_send(rig *r, fk_ref to, uint64_t first, size_t count);
/* What FK_ROUTEES gives; the router must answer. */
size_t crew_list(rig *r, fk_ref router, fk_ref out[CREW_MAX]);

#endif /* FK_TESTS_SUPPORT_CREW_H */
