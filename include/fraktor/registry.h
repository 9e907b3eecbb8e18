/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REGISTRY_H
#define FK_REGISTRY_H

/*
 * Actors and their paths: from a reference to its path and back, and who may use a uid.
 *
 * Every place that shows an actor shows its canonical path, "fraktor://bank/user/alice#7", with
 * "@host:port" when the system has an address. The number is the actor's uid: it never comes
 * again, so a path with it names one actor for ever, without it whoever has that name now.
 *
 * All functions may be called from any thread, inside receive too.
 */

#include "fraktor/path.h"
#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The canonical path of an actor, written to buf (always NUL-terminated when size > 0); returns the
 * length it has in full: it was cut when that is size or more. Costs a lookup and a copy once it
 * has been asked for before. Also of an actor that has stopped, as long as it is one of the last few
 * hundred; else, and for a reference that never named an actor, 0. */
FK_API size_t fk_path_of(fk_system *sys, fk_ref ref, char *buf, size_t size);
/* Where a dead letter was meant to go, in the same form; never 0: /deadLetters when nobody knows. */
FK_API size_t fk_dead_letter_path(fk_system *sys, const fk_dead_letter *letter, char *buf,
                                  size_t size);

/* The actor at a complete path, "fraktor://bank/user/alice", by steps from the root; a uid must be
 * that actor's. The path of another system gives a reference, too: what is sent to it waits until
 * that system is reached. Fails with the faults of fk_path_parse() and with FK_E_PID_UNKNOWN
 * (nobody there), FK_E_UNRESOLVED (another system, and no address), FK_E_QUARANTINED, FK_E_LIMIT,
 * FK_E_NOMEM; text that is no path is an event, too. fault may be NULL. */
FK_API FK_MUST_USE fk_err fk_resolve(fk_system *sys, fk_str path, fk_ref *out,
                                     fk_path_fault *fault);

/* The path of this system that the names lead to, below the guardian of its config. As
 * fk_path_build(). */
FK_API FK_MUST_USE fk_err fk_system_path(fk_system *sys, const fk_str *names, size_t count,
                                         fk_buf buf, fk_path *out, fk_path_fault *fault);

/* ---- uids --------------------------------------------------------------------------------------
 * A path with its uid stays reserved for the quarantine duration of the config after the actor's
 * death, so that nobody who remembers the dead actor takes another one for it. The name alone is
 * free at once: the next actor of that name has a uid of its own. */

/* An actor under /user with a uid from elsewhere (a log, another system). Needs a name: FK_E_INVALID
 * without. FK_E_UID: not a uid by the rules. FK_E_UID_RESERVED: that path and uid are in use or
 * reserved; a uid of this system's own whose actor is forgotten counts as reserved until the
 * quarantine of the last forgotten one is over. Otherwise as fk_spawn(). */
FK_API FK_MUST_USE fk_err fk_spawn_as(fk_system *sys, fk_str name, uint64_t uid,
                                      const fk_props *props, fk_ref *out);
/* Takes a path and uid for the caller. FK_E_UID_RESERVED: *left (which may be NULL) is how long they
 * stay reserved, FK_NEVER while an actor or another claim has them. FK_E_LIMIT: config's claims_max.
 * The faults of fk_path_parse(); FK_E_FOREIGN for the path of another system. */
FK_API FK_MUST_USE fk_err fk_uid_claim(fk_system *sys, fk_str path, uint64_t uid, fk_time *left);
/* Gives a claim back: reserved from here on. FK_E_NOT_FOUND: there is none. */
FK_API fk_err fk_uid_release(fk_system *sys, fk_str path, uint64_t uid);

#ifdef __cplusplus
}
#endif
#endif /* FK_REGISTRY_H */
