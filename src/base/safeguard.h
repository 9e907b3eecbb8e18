/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_SAFEGUARD_H
#define FK_BASE_SAFEGUARD_H

/*
 * Safeguards and the mutations that remove them.
 *
 * A checker that never fails proves nothing, so every safeguard that a proof rests on
 * can be taken out, one at a time, and some explorer schedule or simulator seed must
 * then fail. The real code names its safeguards where it uses them:
 *
 *     if (FK_SAFEGUARD(STALE_CHECK) && node->generation != cell->generation) ...
 *
 * In the library FK_SAFEGUARD(X) is the constant 1 and costs nothing; a name missing
 * from the list below does not compile. With FK_SIM it is 0 while X is the mutation
 * being tried.
 */

#include <stdint.h>

/* NAME, name on the command line, what the mutation takes away, and the scenario or harness
 * family that must notice. */
#define FK_MUTATIONS(X)                                                                            \
    X(STALE_CHECK, "stale-check", "a ref is not compared with the generation of its slot",         \
      "kernel")                                                                                    \
    X(IDLE_CAS, "idle-cas", "an actor goes idle by a plain store instead of a read-modify-write",  \
      "kernel")                                                                                    \
    X(IDLE_RECHECK, "idle-recheck", "the queue is not looked at again after going idle", "kernel") \
    X(SYSTEM_FIRST, "system-first", "user messages are run before waiting system messages",        \
      "kernel")                                                                                    \
    X(PARK_RECHECK, "park-recheck", "a worker parks without looking for work once more", "kernel") \
    X(CLAIM, "claim", "a free cell is reused while a late message is being run on it", "kernel")   \
    X(STOP_GENERATION, "stop-generation", "a stop asked of an old actor stops the new one",        \
      "kernel")                                                                                    \
    X(BOX_OWNER, "box-owner", "a bounded mailbox takes mail for its former owner", "kernel")       \
    X(CAPACITY, "capacity", "a bounded mailbox takes more than its capacity", "kernel")            \
    X(BUDGET, "budget", "a chatting pair keeps its worker for ever", "kernel")                     \
    X(TIMER_SERIAL, "timer-serial", "a cancelled timer's message still arrives", "kernel")         \
    X(WATCH, "watch", "a worker that has work keeps the sentinel's mark", "explorer")              \
    X(SUBSCRIBER_HELD, "subscriber-held", "a subscriber is freed while somebody is at it",         \
      "explorer")                                                                                  \
    X(UNSUBSCRIBE_WAITS, "unsubscribe-waits", "unsubscribing does not wait for the callback",      \
      "explorer")                                                                                  \
    X(REPLAY_ONCE, "replay-once", "what was replayed is delivered, too", "explorer")               \
    X(NEXT_FLUSH, "next-flush", "the cell in the next slot is forgotten when the budget ends",     \
      "kernel")                                                                                    \
    X(SETTLE, "settle", "a worker that gives its queue away loses it", "kernel")                   \
    X(HALT, "halt", "an actor that is stopping still handles messages", "kernel")                  \
    X(DRAIN, "drain", "what is in a bounded mailbox when its actor ends is forgotten", "kernel")   \
    X(CHILDREN_FIRST, "children-first", "a parent ends before its children", "kernel")             \
    X(TIMERS_END, "timers-end", "timers go on after their actor has ended", "kernel")              \
    X(BOX_WAKE, "box-wake", "senders that wait for room sleep on when the actor ends", "kernel")   \
    X(DROP, "drop", "what a message owns is not released", "kernel")                               \
    X(MOVED, "moved", "what a forwarded message owns is released twice", "kernel")                 \
    X(STASH_HOLD, "stash-hold", "a stashed message is freed with the queue", "kernel")             \
    X(PATH_UID, "path-uid", "a path's uid is not compared with the actor's", "kernel")             \
    X(PATH_ENDING, "path-ending", "an actor's path is read from a slot that it has left",          \
      "kernel")                                                                                    \
    X(PATH_KEPT, "path-kept", "a path is kept with whoever has the slot now", "kernel")            \
    X(SELECT_ALIVE, "select-alive", "a wildcard also selects those who are not there yet",         \
      "kernel")                                                                                    \
    X(UID_HELD, "uid-held", "a uid that is claimed can be claimed again", "kernel")                \
    X(UID_TIME, "uid-time", "a uid that was given back is free at once", "kernel")                 \
    X(WATCH_DEAD, "watch-dead", "a watch that finds its actor dead is not answered", "lifecycle")  \
    X(UNWATCH, "unwatch", "who ended a watch is still told", "lifecycle")                          \
    X(HOLD_CHILDREN, "hold-children", "children of a failed actor go on", "lifecycle")             \
    X(RESTART_LIMIT, "restart-limit", "a child is restarted more often than it may", "lifecycle")  \
    X(RESTART_WAITS, "restart-waits", "a restart does not wait for the children it stopped",       \
      "lifecycle")                                                                                 \
    X(RESTART_FRESH, "restart-fresh", "an actor keeps its old state when restarted", "lifecycle")  \
    X(TERMINATE_ONCE, "terminate-once", "termination can go back to an earlier step", "lifecycle") \
    X(SIGNAL_ONCE, "signal-once", "a signal that is on its way to the parent is sent again",       \
      "lifecycle")                                                                                 \
    X(WATCH_KEPT, "watch-kept", "a restart ends the watches of the watcher", "lifecycle")          \
    X(NAME_FREE, "name-free", "watchers are told of an end before the parent is", "lifecycle")     \
    X(STOP_HOOK_ONCE, "stop-hook-once", "the stop hook runs for a state that was left before",     \
      "lifecycle")                                                                                 \
    X(HOLD_SELF, "hold-self", "an actor that has failed goes on", "lifecycle")                     \
    X(ESCALATED, "escalated", "who made its parent fail is not let go on with it", "lifecycle")    \
    X(NEWS, "news", "failures of children are forgotten while the parent is held", "lifecycle")    \
    X(AWAITED, "awaited", "the end of a child forgets that a restart waits for it", "lifecycle")   \
    X(CONCERNED, "concerned", "all-for-one leaves the siblings alone", "lifecycle")                \
    X(RESTART_WINDOW, "restart-window", "one restart more than a window allows", "lifecycle")      \
    X(STASH_RESTART, "stash-restart", "a restart leaves messages in the stash", "lifecycle")       \
    X(TIMERS_RESTART, "timers-restart", "timers go on over a restart", "lifecycle")                \
    X(BEHAVIOUR_RESTART, "behaviour-restart", "a restarted actor keeps its last behaviour",        \
      "lifecycle")                                                                                 \
    X(HOOKS_AWAITED, "hooks-awaited", "/system stops without waiting for its hooks", "lifecycle")  \
    X(USER_FIRST, "user-first", "/system is stopped together with /user", "lifecycle")             \
    X(SPAWN_CLOSED, "spawn-closed", "actors can be made while the system ends", "lifecycle")       \
    X(PROMISE_FIRST, "promise-first", "two replies may both be taken for the answer", "explorer")  \
    X(PROMISE_DISARM, "promise-disarm", "a question that is over stays in the wheel", "explorer")  \
    X(PROMISE_NAME, "promise-name", "a question that is over keeps its name", "explorer")          \
    X(ANSWER_HEARD, "answer-heard", "the answer to an old failure is taken for a later one",       \
      "explorer")                                                                                  \
    X(ASKS_END, "asks-end", "questions outlive the actor that asked them", "explorer")             \
    X(DEFER_ORDER, "defer-order", "deferred envelopes are drained last one first",                 \
      "models remote")                                                                             \
    X(DEFER_BOUND, "defer-bound", "one authority may defer any number of envelopes",               \
      "models remote")                                                                             \
    X(DEFER_TOTAL, "defer-total", "all authorities may defer any number of envelopes",             \
      "models remote")                                                                             \
    X(DEFER_DRAIN, "defer-drain", "a new envelope overtakes those still being drained",            \
      "models remote")                                                                             \
    X(QUARANTINE_REFUSES, "quarantine-refuses", "what is sent to the quarantined is deferred",     \
      "models remote")                                                                             \
    X(QUARANTINE_RETURNS, "quarantine-returns", "deferred envelopes stay when quarantine begins",  \
      "models remote")                                                                             \
    X(QUARANTINE_ONCE, "quarantine-once", "deferred envelopes are handed back and kept, too",      \
      "models remote")                                                                             \
    X(QUARANTINE_TIME, "quarantine-time", "a quarantine is over at once", "models remote")         \
    X(QUARANTINE_UID, "quarantine-uid", "a quarantined system may shake hands again",              \
      "models remote")                                                                             \
    X(OVERRIDE_WAITS, "override-waits", "after an override sends do not wait for a handshake",     \
      "models")                                                                                    \
    X(ATTEMPT_NUMBER, "attempt-number", "the outcome of an old attempt counts for the new one",    \
      "models")                                                                                    \
    X(BACKOFF, "backoff", "a failed attempt is followed by the next at once", "models")            \
    X(GIVE_UP, "give-up", "reconnecting goes on for ever", "models")                               \
    X(UNACKED_RETURNS, "unacked-returns", "what a former peer has not acknowledged is forgotten",  \
      "models remote")                                                                             \
    X(UNACKED_BOUND, "unacked-bound", "any number of system messages may be unacknowledged",       \
      "models")                                                                                    \
    X(SEQ_RESTART, "seq-restart", "numbers of system messages go on with another peer",            \
      "models remote")                                                                             \
    X(PEER_FORMER, "peer-former", "a peer that was replaced is counted for anew", "models")        \
    X(SEQ_ONCE, "seq-once", "a system message that comes twice is delivered twice", "models")      \
    X(SEQ_GAP, "seq-gap", "a system message is delivered although one before it is missing",       \
      "models")                                                                                    \
    X(ACK_PEER, "ack-peer", "the acknowledgement of a former peer counts", "models")               \
    X(ACK_SENT, "ack-sent", "what was not sent can be acknowledged", "models")                     \
    X(NACK_ONCE, "nack-once", "one gap is answered as often as it is reported", "models")          \
    X(RESEND, "resend", "what is not acknowledged is not sent again", "models remote")             \
    X(DELIVERY_GIVE_UP, "delivery-give-up", "a peer that never acknowledges is waited for",        \
      "models")                                                                                    \
    X(PAUSE_LEARNT, "pause-learnt", "a failure detector takes a failure for a usual interval",     \
      "models")                                                                                    \
    X(DEVIATION_LEAST, "deviation-least", "a failure detector expects perfect regularity",         \
      "models")                                                                                    \
    X(HANDSHAKE_WAITS, "handshake-waits", "messages do not wait for the answer to a handshake",    \
      "models")                                                                                    \
    X(HANDSHAKE_OWN, "handshake-own", "a control stream takes the answer to another request",      \
      "models")                                                                                    \
    X(HANDSHAKE_REPEAT, "handshake-repeat", "a handshake is asked for once only", "models")        \
    X(HANDSHAKE_FAILS, "handshake-fails", "a handshake may take any time", "models")               \
    X(HANDSHAKE_INJECT, "handshake-inject", "a peer that was restarted is not asked again",        \
      "models")                                                                                    \
    X(HANDSHAKE_TO, "handshake-to", "a handshake that is meant for another is accepted",           \
      "models remote")                                                                             \
    X(ORIGIN_TAKEN, "origin-taken", "a system may take the uid of another one", "models")          \
    X(ORIGIN_REFUSED, "origin-refused", "frames of a quarantined system are let in",               \
      "models remote")                                                                             \
    X(BONDS_BOUND, "bonds-bound", "a node may watch any number of actors", "models")               \
    X(WATCH_SHARED, "watch-shared", "each watcher has a watch of its own on the wire", "models")   \
    X(WATCHERS_FORGOTTEN, "watchers-forgotten", "watchers outlive their node", "models")           \
    X(REWATCH, "rewatch", "a node that was restarted is not told whom to watch", "models remote")  \
    X(NOTICE_OWN, "notice-own", "a node is believed about actors of other nodes", "models")        \
    X(FIRST_REPLY, "first-reply", "a node that never answered is not missed", "models")            \
    X(LATE_TICK, "late-tick", "a node is judged by one who has slept", "models")                   \
    X(LINE_ORDER, "line-order", "a letter is deferred before those sent earlier", "driver")        \
    X(LINE_RETURN, "line-return", "a letter is deferred before those that come back", "driver")    \
    X(NEW_PEER_CLOSES, "new-peer-closes", "streams to a system that is gone stay open", "driver")  \
    X(GUEST_NEWEST, "guest-newest", "an old connection is read beside the new", "remote")          \
    X(LINE_BOUND, "line-bound", "any number of messages may wait for a slow connection", "remote") \
    X(CONNECTING, "connecting", "any number of connections may be made at a time", "remote")       \
    X(HALF_OPEN, "half-open", "any number of connections may be without a handshake", "remote")    \
    X(UID_FRESH, "uid-fresh", "the next life of a system gives the same uids to its actors",       \
      "remote")                                                                                    \
    X(TEMP_FRESH, "temp-fresh", "the next life of a system gives the same names to questions",     \
      "remote")                                                                                    \
    X(INVALID_EACH, "invalid-each", "messages to the quarantined are refused without an event",    \
      "remote")                                                                                    \
    X(ENDS_TOLD, "ends-told",                                                                      \
      "who watches from elsewhere is told of an end when something else happens", "remote")        \
    X(BOND_UID, "bond-uid", "a watch by path ends the one by path and uid with it", "remote")      \
    X(SCHEME_ONE, "scheme-one", "an actor has a reference for each scheme", "remote")              \
    X(LINE_REOPENED, "line-reopened", "a letter that meets a gate being opened is refused",        \
      "explorer")                                                                                  \
    X(LINE_OWNER, "line-owner", "a letter waits for whoever has its line by now", "explorer")      \
    X(LINE_BUSY, "line-busy", "a line is not called while the driver is at it", "explorer")        \
    X(HANDSHAKE_FROM, "handshake-from", "a handshake may be in another's name", "driver")          \
    X(DEDUP_CHECK, "dedup-check", "a call that was answered before is run again", "cluster")       \
    X(DEDUP_STALE, "dedup-stale", "a call that its origin has settled is run", "cluster")          \
    X(DEDUP_LOW, "dedup-low", "a call counts as settled before it is", "cluster")                  \
    X(CALL_SAME_NUMBER, "call-same-number", "a call that is sent again has another number",        \
      "cluster")                                                                                   \
    X(OUTPUT_COMMIT, "output-commit", "a grain is heard before what it did is stored", "cluster")  \
    X(STORE_UNKNOWN_BREAKS, "store-unknown-breaks",                                                \
      "a grain goes on although nobody knows whether it was stored", "cluster")                    \
    X(ACTIVATION_LEASE, "activation-lease", "a grain takes turns after the lease of its node",     \
      "cluster")                                                                                   \
    X(PLACEMENT_SELF_FENCE, "placement-self-fence", "a member goes on when its lease is over",     \
      "cluster")                                                                                   \
    X(PLACEMENT_SEND_TIME, "placement-send-time",                                                  \
      "a lease is counted from the answer, not from the request", "cluster")                       \
    X(PLACEMENT_OLD_VIEW, "placement-old-view", "an older view replaces a newer one", "cluster")   \
    X(PLACEMENT_STORE_RESULT, "placement-store-result", "a store that failed counts as done",      \
      "cluster")                                                                                   \
    X(PLACEMENT_STOP_ALL, "placement-stop-all",                                                    \
      "who stops forgets what runs instead of stopping it", "cluster")                             \
    X(PLACEMENT_RELEASE_LATE, "placement-release-late",                                            \
      "a slot is released when an activation of it ends", "cluster")                               \
    X(PLACEMENT_SINGLE_FLIGHT, "placement-single-flight",                                          \
      "each who waits for a grain starts it anew", "cluster")                                      \
    X(PLACEMENT_PHASE, "placement-phase", "a result counts for any phase of its request",          \
      "cluster")                                                                                   \
    X(PLACEMENT_STOPPING, "placement-stopping", "a grain is started while it still stops",         \
      "cluster")                                                                                   \
    X(PLACEMENT_DRAIN_WAITS, "placement-drain-waits",                                              \
      "a slot is handed over while grains of it still run", "cluster")                             \
    X(PLACEMENT_TIE, "placement-tie", "of equal members the first of the list owns a slot",        \
      "cluster")                                                                                   \
    X(STORE_EPOCH, "store-epoch", "a store of an earlier holder counts", "cluster")                \
    X(STORE_VERSION_AND_STAMP, "store-version-and-stamp",                                          \
      "a load leaves no fence, and a store is not compared with the version", "cluster")           \
    X(STORE_EPOCH_REUSE, "store-epoch-reuse", "the epoch of a slot that was released comes again", \
      "cluster")

#define FK_MUTATION_ENUM(NAME, name, what, where) FK_MUTATION_##NAME,

enum { FK_MUTATION_NONE, FK_MUTATIONS(FK_MUTATION_ENUM) FK_MUTATION_COUNT };

#if defined(FK_SIM)
extern uint32_t fk__mutation; /* the safeguard that is out; src/sim/mutation.c */
#define FK_SAFEGUARD(NAME) (fk__mutation != FK_MUTATION_##NAME)
#else
#define FK_SAFEGUARD(NAME) (FK_MUTATION_##NAME != FK_MUTATION_NONE)
#endif

#endif /* FK_BASE_SAFEGUARD_H */
