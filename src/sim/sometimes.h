/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_SOMETIMES_H
#define FK_SIM_SOMETIMES_H

/*
 * What must happen sometimes: each fault and each branch of the workload that a proof rests on is
 * counted, and a thousand seeds without one of them are a failure. A simulator that has quietly
 * stopped testing something is noticed so.
 */

#include <stdint.h>

/* The scenarios that it must happen in. */
enum { FK_IN_KERNEL = 1, FK_IN_LIFECYCLE = 2, FK_IN_BOTH = 3, FK_IN_REMOTE = 4, FK_IN_CLUSTER = 8 };

#define FK_SOMETIMES(X)                                                                            \
    X(STALLED_THREAD, "stalled-thread", BOTH)                                                      \
    X(CLOCK_JUMP, "clock-jump", BOTH)                                                              \
    X(SPURIOUS_WAKE, "spurious-wake", BOTH)                                                        \
    X(WEAK_MEMORY, "weak-memory", BOTH)                                                            \
    X(DIRECT_BLOCKS, "direct-blocks", BOTH)                                                        \
    X(POOLED_BLOCKS, "pooled-blocks", BOTH)                                                        \
    X(ALLOCATION_FAILED, "allocation-failed", BOTH)                                                \
    X(CREATION_FAILED, "creation-failed", BOTH)                                                    \
    X(MEMORY_LIMIT, "memory-limit", KERNEL)                                                        \
    X(SEND_NO_MEMORY, "send-no-memory", KERNEL)                                                    \
    X(SPAWN_NO_MEMORY, "spawn-no-memory", BOTH)                                                    \
    X(TIMER_NO_MEMORY, "timer-no-memory", KERNEL)                                                  \
    X(ACTORS_LIMIT, "actors-limit", KERNEL)                                                        \
    X(PINNED, "pinned", BOTH)                                                                      \
    X(PIN_REFUSED, "pin-refused", KERNEL)                                                          \
    X(STEAL, "steal", KERNEL)                                                                      \
    X(OVERFLOW, "ready-overflow", KERNEL)                                                          \
    X(CALM, "calm", KERNEL)                                                                        \
    X(SHUFFLED, "shuffled", BOTH)                                                                  \
    X(SLOT_REUSED, "slot-reused", BOTH)                                                            \
    X(NAME_TAKEN, "name-taken", BOTH)                                                              \
    X(NAME_REUSED, "name-reused", BOTH)                                                            \
    X(SPAWN_STOPPING, "spawn-while-stopping", BOTH)                                                \
    X(STALE_REF, "stale-ref", BOTH)                                                                \
    X(NO_REF, "no-ref", KERNEL)                                                                    \
    X(MADE_UP_REF, "made-up-ref", KERNEL)                                                          \
    X(FOREIGN_REF, "foreign-ref", KERNEL)                                                          \
    X(FULL, "full", KERNEL)                                                                        \
    X(FULL_INSIDE_BLOCK, "full-inside-block", KERNEL)                                              \
    X(BLOCKED, "blocked", KERNEL)                                                                  \
    X(DROPPED_NEWEST, "dropped-newest", KERNEL)                                                    \
    X(DROPPED_OLDEST, "dropped-oldest", KERNEL)                                                    \
    X(PRIORITY, "priority", KERNEL)                                                                \
    X(STABLE, "stable", KERNEL)                                                                    \
    X(CONTROL, "control", KERNEL)                                                                  \
    X(OVERTAKEN, "overtaken", KERNEL)                                                              \
    X(REPLIED, "replied", KERNEL)                                                                  \
    X(FORWARDED, "forwarded", KERNEL)                                                              \
    X(UNHANDLED, "unhandled", KERNEL)                                                              \
    X(SHARED_PAYLOAD, "shared-payload", KERNEL)                                                    \
    X(MOVED_PAYLOAD, "moved-payload", KERNEL)                                                      \
    X(UNSENT_PAYLOAD, "unsent-payload", KERNEL)                                                    \
    X(STASHED, "stashed", BOTH)                                                                    \
    X(STASHED_TIMER, "stashed-timer", KERNEL)                                                      \
    X(STASH_FULL, "stash-full", KERNEL)                                                            \
    X(UNSTASHED, "unstashed", BOTH)                                                                \
    X(STASH_DIED, "stash-died", KERNEL)                                                            \
    X(BECOME, "become", BOTH)                                                                      \
    X(UNBECOME, "unbecome", KERNEL)                                                                \
    X(TIMER_ONCE, "timer-once", BOTH)                                                              \
    X(TIMER_DELAY, "timer-fixed-delay", KERNEL)                                                    \
    X(TIMER_RATE, "timer-fixed-rate", KERNEL)                                                      \
    X(TIMER_CANCELLED, "timer-cancelled", KERNEL)                                                  \
    X(TIMER_RESTARTED, "timer-restarted", KERNEL)                                                  \
    X(TIMER_STOPPED, "timer-stopped", BOTH)                                                        \
    X(TIMER_MISSED, "timer-missed-periods", KERNEL)                                                \
    X(RECEIVE_TIMEOUT, "receive-timeout", KERNEL)                                                  \
    X(FAILED, "failed", KERNEL)                                                                    \
    X(FAILED_START, "failed-start", BOTH)                                                          \
    X(STOP_SELF, "stop-self", BOTH)                                                                \
    X(STOP_OTHER, "stop-other", BOTH)                                                              \
    X(STOP_STALE, "stop-stale", KERNEL)                                                            \
    X(STOP_CHILDREN, "stop-with-children", KERNEL)                                                 \
    X(POISONED, "poisoned", BOTH)                                                                  \
    X(AWAITED, "awaited", KERNEL)                                                                  \
    X(AWAIT_TIMEOUT, "await-timeout", KERNEL)                                                      \
    X(RESOLVED, "resolved", KERNEL)                                                                \
    X(RESOLVED_GONE, "resolved-gone", KERNEL)                                                      \
    X(RESOLVED_HEIR, "resolved-heir", KERNEL)                                                      \
    X(IDENTIFIED, "identified", KERNEL)                                                            \
    X(SELECTED, "selected", KERNEL)                                                                \
    X(SELECT_MISSED, "select-missed", KERNEL)                                                      \
    X(CALLED, "called", KERNEL)                                                                    \
    X(CALL_MISSED, "call-missed", KERNEL)                                                          \
    X(CLAIMED, "claimed", KERNEL)                                                                  \
    X(CLAIM_RESERVED, "claim-reserved", KERNEL)                                                    \
    X(CLAIM_EXPIRED, "claim-expired", KERNEL)                                                      \
    X(LETTER_SENDS, "dead-letter-sends", KERNEL)                                                   \
    X(STOP_HOOK_SENDS, "stop-hook-sends", KERNEL)                                                  \
    X(ENDED_AT_REST, "ended-at-rest", BOTH)                                                        \
    X(ENDED_EARLY, "ended-early", BOTH)                                                            \
    X(FAIRNESS, "fairness-checked", KERNEL)                                                        \
    X(RESUMED, "resumed", LIFECYCLE)                                                               \
    X(RESTARTED, "restarted", LIFECYCLE)                                                           \
    X(LIMIT_REACHED, "limit-reached", LIFECYCLE)                                                   \
    X(ALL_FOR_ONE, "all-for-one", LIFECYCLE)                                                       \
    X(REST_FOR_ONE, "rest-for-one", LIFECYCLE)                                                     \
    X(ESCALATED, "escalated", LIFECYCLE)                                                           \
    X(KILLED, "killed", LIFECYCLE)                                                                 \
    X(DEATH_PACT, "death-pact", LIFECYCLE)                                                         \
    X(FAILED_IN_RESTART, "failed-in-restart", LIFECYCLE)                                           \
    X(HELD_CHILD, "held-child", LIFECYCLE)                                                         \
    X(HELD_AT_REST, "held-at-rest", LIFECYCLE)                                                     \
    X(TOLD, "told", LIFECYCLE)                                                                     \
    X(TOLD_UNCONFIRMED, "told-unconfirmed", LIFECYCLE)                                             \
    X(TOLD_CUSTOM, "told-custom", LIFECYCLE)                                                       \
    X(UNWATCHED, "unwatched", LIFECYCLE)                                                           \
    X(UNWATCHED_LATE, "unwatched-late", LIFECYCLE)                                                 \
    X(WATCH_GUARDIAN, "watch-guardian", LIFECYCLE)                                                 \
    X(WATCH_MADE_UP, "watch-made-up", LIFECYCLE)                                                   \
    X(NAME_FREE, "name-free", LIFECYCLE)                                                           \
    X(KEPT_CHILD, "kept-child", LIFECYCLE)                                                         \
    X(USER_FAILED, "user-failed", LIFECYCLE)                                                       \
    X(HOOK_ASKED, "hook-asked", LIFECYCLE)                                                         \
    X(HOOK_LATE, "hook-late", LIFECYCLE)                                                           \
    X(HOOK_LATECOMER, "hook-latecomer", LIFECYCLE)                                                 \
    X(HOOK_DIED, "hook-died", LIFECYCLE)                                                           \
    X(TERMINATED_NOW, "terminated-now", LIFECYCLE)                                                 \
    X(TERMINATED_INSIDE, "terminated-inside", LIFECYCLE)                                           \
    X(TERMINATED_TWICE, "terminated-twice", LIFECYCLE)                                             \
    X(FAREWELL_LATE, "farewell-late", LIFECYCLE)                                                   \
    X(POST_LOST, "post-lost", REMOTE)                                                              \
    X(LINE_FULL, "line-full", REMOTE)                                                              \
    X(HALF_OPEN_FULL, "half-open-full", REMOTE)                                                    \
    X(CONNECTING_FULL, "connecting-full", REMOTE)                                                  \
    X(QUARANTINE_OVER, "quarantine-over", REMOTE)                                                  \
    X(NEW_PEER, "new-peer", REMOTE)                                                                \
    X(PEER_NOTICE, "peer-notice", REMOTE)                                                          \
    X(DETECTED, "detected", REMOTE)                                                                \
    X(GAVE_UP, "gave-up", REMOTE)                                                                  \
    X(DROPPED, "dropped", REMOTE)                                                                  \
    X(INVALID_ASSOCIATION, "invalid-association", REMOTE)                                          \
    X(DEFERRED, "deferred", REMOTE)                                                                \
    X(TOLD_REMOTE, "told-remote", REMOTE)                                                          \
    X(TOLD_ADDRESS, "told-address", REMOTE)                                                        \
    X(UNWATCHED_REMOTE, "unwatched-remote", REMOTE)                                                \
    X(SELECTED_REMOTE, "selected-remote", REMOTE)                                                  \
    X(FORWARDED_REMOTE, "forwarded-remote", REMOTE)                                                \
    X(ASK_ANSWERED, "ask-answered", REMOTE)                                                        \
    X(ASK_TIMED_OUT, "ask-timed-out", REMOTE)                                                      \
    X(LATE_REPLY, "late-reply", REMOTE)                                                            \
    X(REMOTE_FULL, "remote-full", REMOTE)                                                          \
    X(STATION_ENDED, "station-ended", REMOTE)                                                      \
    X(PAUSED, "paused", REMOTE)                                                                    \
    X(CRASHED, "crashed", REMOTE)                                                                  \
    X(CRASHED_SILENTLY, "crashed-silently", REMOTE)                                                \
    X(MISLED, "misled", REMOTE)                                                                    \
    X(QUARANTINE_ASKED, "quarantine-asked", REMOTE)                                                \
    X(OVERRIDDEN, "overridden", REMOTE)                                                            \
    X(LINK_REFUSED, "link-refused", REMOTE)                                                        \
    X(LINK_TIMEOUT, "link-timeout", REMOTE)                                                        \
    X(LINK_RESET, "link-reset", REMOTE)                                                            \
    X(LINK_CUT, "link-cut", REMOTE)                                                                \
    X(LINK_LENT, "link-lent", REMOTE)                                                              \
    X(LINK_CUT_SHORT, "link-cut-short", REMOTE)                                                    \
    X(LINK_LATE, "link-late", REMOTE)                                                              \
    X(CLUSTER_SPIKE, "cluster-spike", CLUSTER)                                                     \
    X(CLUSTER_CUT, "cluster-cut", CLUSTER)                                                         \
    X(CLUSTER_DROP, "cluster-drop", CLUSTER)                                                       \
    X(CLUSTER_DUP, "cluster-dup", CLUSTER)                                                         \
    X(CLUSTER_LATE_RESULT, "cluster-late-result", CLUSTER)                                         \
    X(CLUSTER_OP_TIMEOUT, "cluster-op-timeout", CLUSTER)                                           \
    X(CLUSTER_LOST_ACK, "cluster-lost-ack", CLUSTER)                                               \
    X(CLUSTER_TWICE, "cluster-twice", CLUSTER)                                                     \
    X(CLUSTER_EXPIRED, "cluster-expired", CLUSTER)                                                 \
    X(CLUSTER_DENIED, "cluster-denied", CLUSTER)                                                   \
    X(CLUSTER_TRANSFER, "cluster-transfer", CLUSTER)                                               \
    X(CLUSTER_FAILOVER, "cluster-failover", CLUSTER)                                               \
    X(CLUSTER_FENCED, "cluster-fenced", CLUSTER)                                                   \
    X(CLUSTER_CONFLICT, "cluster-conflict", CLUSTER)                                               \
    X(CLUSTER_FULL, "cluster-full", CLUSTER)                                                       \
    X(CLUSTER_STORED_AGAIN, "cluster-stored-again", CLUSTER)                                       \
    X(CLUSTER_BUSY, "cluster-busy", CLUSTER)                                                       \
    X(CLUSTER_RESENT, "cluster-resent", CLUSTER)                                                   \
    X(CLUSTER_FORWARDED, "cluster-forwarded", CLUSTER)                                             \
    X(CLUSTER_GIVEN_BACK, "cluster-given-back", CLUSTER)                                           \
    X(CLUSTER_DEDUPLICATED, "cluster-deduplicated", CLUSTER)                                       \
    X(CLUSTER_STALE, "cluster-stale", CLUSTER)                                                     \
    X(CLUSTER_UNWANTED, "cluster-unwanted", CLUSTER)                                               \
    X(CLUSTER_NOT_STARTED, "cluster-not-started", CLUSTER)                                         \
    X(CLUSTER_LEASE_LOST, "cluster-lease-lost", CLUSTER)                                           \
    X(CLUSTER_OLD_VIEW, "cluster-old-view", CLUSTER)                                               \
    X(CLUSTER_PAUSED, "cluster-paused", CLUSTER)                                                   \
    X(CLUSTER_CRASHED, "cluster-crashed", CLUSTER)                                                 \
    X(CLUSTER_LEFT, "cluster-left", CLUSTER)                                                       \
    X(CLUSTER_DRAINED, "cluster-drained", CLUSTER)                                                 \
    X(CLUSTER_FROZEN, "cluster-frozen", CLUSTER)                                                   \
    X(CLUSTER_DRAIN, "cluster-drain", CLUSTER)                                                     \
    X(CLUSTER_ROLLED, "cluster-rolled", CLUSTER)                                                   \
    X(CLUSTER_SPLIT, "cluster-split", CLUSTER)                                                     \
    X(CLUSTER_WORST_MOMENT, "cluster-worst-moment", CLUSTER)                                       \
    X(CLUSTER_TURN_TOO_LATE, "cluster-turn-too-late", CLUSTER)                                     \
    X(CLUSTER_CALL_FAILED, "cluster-call-failed", CLUSTER)                                         \
    X(CLUSTER_NOT_READY, "cluster-not-ready", CLUSTER)                                             \
    X(CLUSTER_NO_MEMORY, "cluster-no-memory", CLUSTER)

typedef enum fk_sometimes {
#define FK_SOMETIMES_ENUM(NAME, name, where) FK_SOMETIMES_##NAME,
    FK_SOMETIMES(FK_SOMETIMES_ENUM)
#undef FK_SOMETIMES_ENUM
        FK_SOMETIMES_COUNT
} fk_sometimes;

extern uint64_t fk__sometimes[FK_SOMETIMES_COUNT];

#define FK_SOMETIMES_HIT(NAME) (fk__sometimes[FK_SOMETIMES_##NAME]++)

const char *fk__sometimes_name(fk_sometimes which);
uint32_t fk__sometimes_where(fk_sometimes which);

#endif /* FK_SIM_SOMETIMES_H */
