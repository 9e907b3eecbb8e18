/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_SOMETIMES_H
#define FK_SIM_SOMETIMES_H

/*
 * What must happen sometimes: each fault and each branch of the workload that a proof rests on is
 * counted, and a thousand seeds without one of them are a failure. A simulator that has quietly
 * stopped testing something is noticed so.
 */

#include <stdint.h>

#define FK_SOMETIMES(X)                                                                            \
    X(STALLED_THREAD, "stalled-thread")                                                            \
    X(CLOCK_JUMP, "clock-jump")                                                                    \
    X(SPURIOUS_WAKE, "spurious-wake")                                                              \
    X(WEAK_MEMORY, "weak-memory")                                                                  \
    X(DIRECT_BLOCKS, "direct-blocks")                                                              \
    X(POOLED_BLOCKS, "pooled-blocks")                                                              \
    X(ALLOCATION_FAILED, "allocation-failed")                                                      \
    X(CREATION_FAILED, "creation-failed")                                                          \
    X(MEMORY_LIMIT, "memory-limit")                                                                \
    X(SEND_NO_MEMORY, "send-no-memory")                                                            \
    X(SPAWN_NO_MEMORY, "spawn-no-memory")                                                          \
    X(TIMER_NO_MEMORY, "timer-no-memory")                                                          \
    X(ACTORS_LIMIT, "actors-limit")                                                                \
    X(PINNED, "pinned")                                                                            \
    X(PIN_REFUSED, "pin-refused")                                                                  \
    X(STEAL, "steal")                                                                              \
    X(OVERFLOW, "ready-overflow")                                                                  \
    X(CALM, "calm")                                                                                \
    X(SHUFFLED, "shuffled")                                                                        \
    X(SLOT_REUSED, "slot-reused")                                                                  \
    X(NAME_TAKEN, "name-taken")                                                                    \
    X(NAME_REUSED, "name-reused")                                                                  \
    X(SPAWN_STOPPING, "spawn-while-stopping")                                                      \
    X(STALE_REF, "stale-ref")                                                                      \
    X(NO_REF, "no-ref")                                                                            \
    X(MADE_UP_REF, "made-up-ref")                                                                  \
    X(FOREIGN_REF, "foreign-ref")                                                                  \
    X(FULL, "full")                                                                                \
    X(FULL_INSIDE_BLOCK, "full-inside-block")                                                      \
    X(BLOCKED, "blocked")                                                                          \
    X(DROPPED_NEWEST, "dropped-newest")                                                            \
    X(DROPPED_OLDEST, "dropped-oldest")                                                            \
    X(PRIORITY, "priority")                                                                        \
    X(STABLE, "stable")                                                                            \
    X(CONTROL, "control")                                                                          \
    X(OVERTAKEN, "overtaken")                                                                      \
    X(REPLIED, "replied")                                                                          \
    X(FORWARDED, "forwarded")                                                                      \
    X(UNHANDLED, "unhandled")                                                                      \
    X(SHARED_PAYLOAD, "shared-payload")                                                            \
    X(MOVED_PAYLOAD, "moved-payload")                                                              \
    X(UNSENT_PAYLOAD, "unsent-payload")                                                            \
    X(STASHED, "stashed")                                                                          \
    X(STASHED_TIMER, "stashed-timer")                                                              \
    X(STASH_FULL, "stash-full")                                                                    \
    X(UNSTASHED, "unstashed")                                                                      \
    X(STASH_DIED, "stash-died")                                                                    \
    X(BECOME, "become")                                                                            \
    X(UNBECOME, "unbecome")                                                                        \
    X(TIMER_ONCE, "timer-once")                                                                    \
    X(TIMER_DELAY, "timer-fixed-delay")                                                            \
    X(TIMER_RATE, "timer-fixed-rate")                                                              \
    X(TIMER_CANCELLED, "timer-cancelled")                                                          \
    X(TIMER_RESTARTED, "timer-restarted")                                                          \
    X(TIMER_STOPPED, "timer-stopped")                                                              \
    X(TIMER_MISSED, "timer-missed-periods")                                                        \
    X(RECEIVE_TIMEOUT, "receive-timeout")                                                          \
    X(FAILED, "failed")                                                                            \
    X(FAILED_START, "failed-start")                                                                \
    X(STOP_SELF, "stop-self")                                                                      \
    X(STOP_OTHER, "stop-other")                                                                    \
    X(STOP_STALE, "stop-stale")                                                                    \
    X(STOP_CHILDREN, "stop-with-children")                                                         \
    X(POISONED, "poisoned")                                                                        \
    X(AWAITED, "awaited")                                                                          \
    X(AWAIT_TIMEOUT, "await-timeout")                                                              \
    X(RESOLVED, "resolved")                                                                        \
    X(RESOLVED_GONE, "resolved-gone")                                                              \
    X(RESOLVED_HEIR, "resolved-heir")                                                              \
    X(IDENTIFIED, "identified")                                                                    \
    X(SELECTED, "selected")                                                                        \
    X(SELECT_MISSED, "select-missed")                                                              \
    X(CALLED, "called")                                                                            \
    X(CALL_MISSED, "call-missed")                                                                  \
    X(CLAIMED, "claimed")                                                                          \
    X(CLAIM_RESERVED, "claim-reserved")                                                            \
    X(CLAIM_EXPIRED, "claim-expired")                                                              \
    X(LETTER_SENDS, "dead-letter-sends")                                                           \
    X(STOP_HOOK_SENDS, "stop-hook-sends")                                                          \
    X(ENDED_AT_REST, "ended-at-rest")                                                              \
    X(ENDED_EARLY, "ended-early")                                                                  \
    X(FAIRNESS, "fairness-checked")

typedef enum fk_sometimes {
#define FK_SOMETIMES_ENUM(NAME, name) FK_SOMETIMES_##NAME,
    FK_SOMETIMES(FK_SOMETIMES_ENUM)
#undef FK_SOMETIMES_ENUM
        FK_SOMETIMES_COUNT
} fk_sometimes;

extern uint64_t fk__sometimes[FK_SOMETIMES_COUNT];

#define FK_SOMETIMES_HIT(NAME) (fk__sometimes[FK_SOMETIMES_##NAME]++)

const char *fk__sometimes_name(fk_sometimes which);

#endif /* FK_SIM_SOMETIMES_H */
