/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_FACT_H
#define FK_SIM_FACT_H

/* Facts: what happened, one after the other, as every scenario writes it down. They go into the hash
 * of the run; the last ones are shown when something was found. */

#include "fraktor/base.h"

#include <stdio.h>

#define FK_FACTS_SHOWN 30u
#define FK_NOBODY      0xffffu /* no actor: the sender is outside, the receiver made up */

#define FK_FACTS(X)                                                                                \
    X(SEND, "send")                                                                                \
    X(SENT, "sent")                                                                                \
    X(RECEIVE, "receive")                                                                          \
    X(HANDLED, "handled")                                                                          \
    X(DEAD, "dead letter")                                                                         \
    X(DROP, "drop")                                                                                \
    X(FORWARD, "forward")                                                                          \
    X(STASH, "stash")                                                                              \
    X(UNSTASH, "unstash")                                                                          \
    X(BECOME, "become")                                                                            \
    X(SPAWN, "spawn")                                                                              \
    X(SPAWNED, "spawned")                                                                          \
    X(START, "start hook")                                                                         \
    X(STARTED, "started")                                                                          \
    X(STOP, "stop hook")                                                                           \
    X(STOPPED, "stopped")                                                                          \
    X(ASK_STOP, "ask to stop")                                                                     \
    X(ASKED_STOP, "asked to stop")                                                                 \
    X(POISON, "poison")                                                                            \
    X(FAILURE, "failure")                                                                          \
    X(TIMER_START, "timer start")                                                                  \
    X(TIMER_STARTED, "timer started")                                                              \
    X(TIMER_CANCEL, "timer cancel")                                                                \
    X(TIMER_FIRE, "timer fire")                                                                    \
    X(TIMEOUT_SET, "receive timeout set")                                                          \
    X(TIMEOUT, "receive timeout")                                                                  \
    X(AWAIT, "await stopped")                                                                      \
    X(RESOLVE, "resolve")                                                                          \
    X(IDENTIFY, "identify")                                                                        \
    X(CALL, "call")                                                                                \
    X(CALLED, "called")                                                                            \
    X(REACHED, "reached")                                                                          \
    X(CLAIM, "claim")                                                                              \
    X(RELEASE, "release")                                                                          \
    X(RENEW, "new life")                                                                           \
    X(EVENT, "event")                                                                              \
    X(DECIDE, "decide")                                                                            \
    X(KILL, "kill")                                                                                \
    X(WATCH, "watch")                                                                              \
    X(WATCHED, "watched")                                                                          \
    X(UNWATCH, "unwatch")                                                                          \
    X(TOLD, "told of an end")                                                                      \
    X(PHASE, "termination")                                                                        \
    X(HOOK, "hook asked")                                                                          \
    X(FAREWELL, "farewell")                                                                        \
    X(REST, "rest")                                                                                \
    X(STOPPING, "system stopping")                                                                 \
    X(DOWN, "system down")                                                                         \
    X(GONE, "system gone")                                                                         \
    X(BOOT, "boot")                                                                                \
    X(CRASH, "crash")                                                                              \
    X(PAUSE, "pause")                                                                              \
    X(CUT, "cut")                                                                                  \
    X(RESET, "reset")                                                                              \
    X(SLOW, "slow")                                                                                \
    X(MISLED, "misled")                                                                            \
    X(HEAL, "heal")                                                                                \
    X(AUTHORITY, "authority")                                                                      \
    X(INVALID, "invalid association")                                                              \
    X(QUARANTINE, "quarantine asked for")                                                          \
    X(OVERRIDE, "override asked for")                                                              \
    X(ASKED, "asked")                                                                              \
    X(ANSWER, "answer")                                                                            \
    X(RUMOUR, "remote event")

typedef enum fk_fact_kind {
#define FK_FACT_ENUM(NAME, text) FK_FACT_##NAME,
    FK_FACTS(FK_FACT_ENUM)
#undef FK_FACT_ENUM
} fk_fact_kind;

typedef struct fk_fact {
    fk_fact_kind kind;
    uint32_t thread;
    fk_time at;
    uint32_t actor; /* or FK_NOBODY */
    uint32_t other; /* or FK_NOBODY */
    uint32_t number;
    uint32_t detail;
} fk_fact;

void fk__ledger_begin(void);
void fk__ledger_note(fk_fact_kind kind, uint32_t actor, uint32_t other, uint32_t number,
                     uint32_t detail);
void fk__ledger_print(FILE *out);
void fk__fact_print(FILE *out, const fk_fact *fact);
/* Every line as it is recorded, too; NULL: not. */
void fk__ledger_follow(FILE *out);

#endif /* FK_SIM_FACT_H */
