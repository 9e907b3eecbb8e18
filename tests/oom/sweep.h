/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_OOM_SWEEP_H
#define FK_TESTS_OOM_SWEEP_H

/* What the scenarios of the sweep share. */

#include "support/rig.h"

typedef struct sweep {
    rig r;
    fk_ref doer;
    bool direct, stays;
    bool may_fail;                  /* actors of the scenario fail on purpose */
    _Atomic uint64_t calls, failed; /* operations, and those that failed */
    _Atomic int made, dropped;
    _Atomic bool open, passed; /* a gate for threads */
    probe probe;
    fk_ref target;
    void (*finish)(struct sweep *s); /* what is to be done with memory again; NULL: nothing */
} sweep;

enum { SWEEP_LISTENS = 1 << 16 };

typedef struct scenario {
    const char *name; /* begins with '@': the system has an address */
    void (*prepare)(sweep *s);
    void (*act)(sweep *s); /* NULL: starting the system is what is tried */
    uint32_t workers;      /* 0: no threads; SWEEP_LISTENS may be added */
} scenario;

/* sweep_paths.c: paths, uids and selections; ends with a row without a name. */
extern const scenario SWEEP_PATHS[];
/* sweep_shutdown.c: the same. */
extern const scenario SWEEP_SHUTDOWN[];
/* sweep_events.c: the event stream and sinks; the same. */
extern const scenario SWEEP_EVENTS[];
/* sweep_lives.c: failures, watches, hooks and the end. */
extern const scenario SWEEP_LIVES[];
/* sweep_supervision.c: the same. */
extern const scenario SWEEP_SUPERVISION[];
/* sweep_ask.c: the same for questions and names under /temp. */
extern const scenario SWEEP_ASK[];
/* sweep_net.c: the same, with sockets; only if there are any. */
extern const scenario SWEEP_NET[];
bool sweep_has_network(void);
/* sweep_remote.c: the same, with another system. */
extern const scenario SWEEP_REMOTE[];
/* sweep_routers.c: the same. */
extern const scenario SWEEP_ROUTERS[];

/* sweep_mail.c: messages from and to other systems. */
extern const scenario SWEEP_MAIL[];

/* The only error there may be. */
static inline bool note(sweep *s, fk_err err)
{
    s->calls++;
    if (err == FK_OK) return true;
    CHECK_ERR(err, FK_E_NOMEM);
    s->failed++;
    return false;
}

/* ---- messages that are counted ----------------------------------------------------------- */

typedef struct token {
    _Atomic int *dropped;
    uint64_t n;
} token;

typedef struct token_large {
    token token;
    unsigned char filling[300];
} token_large;

static inline void token_drop(void *message)
{
    token *t = message;
    atomic_fetch_add(t->dropped, 1);
}

static const fk_type fk_type_token
    __attribute__((unused)) = { "token", sizeof(token), _Alignof(token), token_drop };
static const fk_type fk_type_token_large
    __attribute__((unused)) = { "token_large", sizeof(token_large), _Alignof(token_large),
                                token_drop };

static inline token make_token(sweep *s)
{
    atomic_fetch_add(&s->made, 1);
    return (token){ &s->dropped, 1 };
}

#endif /* FK_TESTS_OOM_SWEEP_H */
