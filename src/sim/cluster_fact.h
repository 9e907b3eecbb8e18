/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_CLUSTER_FACT_H
#define FK_SIM_CLUSTER_FACT_H

/* What happened in the simulated cluster, line by line. All of it goes into the hash of the run; the
 * last lines are shown when something was found. */

#include "base/base.h"

#include <stdio.h>

/* NAME, text, and what a and b are. */
#define FK_CFACTS(X)                                                                               \
    X(PLAN, "plan", "mood", "members")                                                             \
    X(BOOT, "boot", "life", "")                                                                    \
    X(CRASH, "fault.crash", "life", "")                                                            \
    X(GONE, "gone", "life", "")                                                                    \
    X(PAUSE, "fault.pause", "ms", "")                                                              \
    X(CUT, "fault.cut", "to", "ms")                                                                \
    X(HEAL, "fault.none", "", "")                                                                  \
    X(RATE, "fault.clock.rate", "ppm", "")                                                         \
    X(FREEZE, "fault.clock.freeze", "ms", "")                                                      \
    X(SERVICE_DOWN, "fault.svc.down", "which", "ms")                                               \
    X(SERVICE_SLOW, "fault.svc.slow", "which", "ms")                                               \
    X(FAILOVER, "fault.svc.failover", "lost", "")                                                  \
    X(DISK_FULL, "fault.disk.full", "ms", "")                                                      \
    X(DROP, "fault.drop", "to", "")                                                                \
    X(DUP, "fault.dup", "to", "")                                                                  \
    X(JOINED, "joined", "incarnation", "")                                                         \
    X(LEAVING, "leaving", "incarnation", "")                                                       \
    X(DRAINED, "drained", "incarnation", "")                                                       \
    X(VIEW, "view", "version", "members")                                                          \
    X(GRANT, "lease.grant", "slot", "epoch")                                                       \
    X(RENEW, "lease.renew", "incarnation", "")                                                     \
    X(EXPIRE, "lease.expire", "incarnation", "")                                                   \
    X(RELEASE, "lease.release", "slot", "epoch")                                                   \
    X(TRANSFER, "lease.transfer", "slot", "epoch")                                                 \
    X(DEADLINE, "fence.deadline", "local ms", "true ms")                                           \
    X(COMMAND, "cmd", "request", "kind")                                                           \
    X(RESULT, "cmd.result", "request", "verdict")                                                  \
    X(ACT_START, "act.start", "key", "epoch")                                                      \
    X(ACT_STOP, "act.stop", "key", "pid")                                                          \
    X(ACT_END, "act.end", "key", "pid")                                                            \
    X(TURN_BEGIN, "turn.begin", "key", "call")                                                     \
    X(TURN_END, "turn.end", "key", "call")                                                         \
    X(LOAD, "load.ok", "key", "epoch")                                                             \
    X(STORE, "store.ok", "key", "version")                                                         \
    X(REJECT, "store.reject", "key", "why")                                                        \
    X(UNKNOWN, "store.unknown", "key", "version")                                                  \
    X(CALL, "call", "call", "key")                                                                 \
    X(ATTEMPT, "call.sent", "call", "to")                                                          \
    X(BACK, "call.back", "call", "key")                                                            \
    X(REPLY, "reply", "call", "value")                                                             \
    X(DONE, "call.done", "call", "err")                                                            \
    X(EVENT, "event", "kind", "epoch")

typedef enum fk_cfact {
#define FK_CFACT_ENUM(NAME, text, a, b) FK_CFACT_##NAME,
    FK_CFACTS(FK_CFACT_ENUM)
#undef FK_CFACT_ENUM
        FK_CFACT_COUNT
} fk_cfact;

void fk__cfact_begin(void);
/* node: whose it is, or 0xff. */
void fk__cfact(fk_cfact what, uint32_t node, uint64_t a, uint64_t b);
/* For people: a word more. */
void fk__cfact_text(fk_cfact what, uint32_t node, uint64_t a, const char *text);
/* is_brief: only what a story needs. */
void fk__cfact_follow(FILE *out, bool is_brief);
void fk__cfact_print(FILE *out);
uint64_t fk__cfact_hash(void);
uint64_t fk__cfact_count(void);

/* The scenarios themselves (cluster.c), for those who cannot include sim/cluster.h, because the names
 * of other scenarios clash with those of the real modules. */
const char *fk__csim_run(uint64_t seed);
const char *fk__csim_run_split(uint64_t seed);
bool fk__csim_is_running(void);
const char *fk__csim_invariant(void);
const char *fk__csim_plan_text(void);
/* What became of whom, for people. */
void fk__csim_tell(FILE *out);
uint64_t fk__csim_events(void);
uint64_t fk__csim_calls(void);
_Noreturn void fk__csim_assert_failed(const char *file, int line);

#endif /* FK_SIM_CLUSTER_FACT_H */
