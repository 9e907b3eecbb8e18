/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_H
#define FK_BASE_H

/*
 * What every other header stands on: errors, strings, time, attributes.
 *
 * Functions that can fail return fk_err; results go to out-parameters, written
 * only on success unless the function says otherwise. There is no errno and no
 * "last error". Strings are pointer and length, never required to end in NUL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FK_VERSION_MAJOR 0
#define FK_VERSION_MINOR 1
#define FK_VERSION_PATCH 0
#define FK_VERSION_HEX   0x000100u

#if defined(__GNUC__)
#define FK_API      __attribute__((visibility("default")))
#define FK_MUST_USE __attribute__((warn_unused_result))
#define FK_WEAK     __attribute__((weak, visibility("default")))
#else
#define FK_API
#define FK_MUST_USE
#define FK_WEAK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Every error of the library, with the sentence fk_err_text() gives. The numbers are frozen:
 * they appear on the wire and in programs' output. New ones go to the end. */
#define FK_ERRORS(X)                                                                               \
    X(OK, 0, "ok")                                                                                 \
    X(E_INVALID, 1, "an argument is not valid")                                                    \
    X(E_NOMEM, 2, "the allocator has no memory left")                                              \
    X(E_LIMIT, 3, "a configured limit is reached")                                                 \
    X(E_FULL, 4, "the mailbox is full")                                                            \
    X(E_DEAD, 5, "the actor is gone, or the reference never named one")                            \
    X(E_STOPPING, 6, "the system is stopping")                                                     \
    X(E_TIMEOUT, 7, "the time is up")                                                              \
    X(E_NAME, 8, "the name is not a legal actor name")                                             \
    X(E_NAME_TAKEN, 9, "the parent already has a child of that name")                              \
    X(E_RESERVED, 10, "names that begin with '$' are made by the runtime only")                    \
    X(E_NOT_FOUND, 11, "there is no such thing")                                                   \
    X(E_STATE, 12, "not possible in this state")                                                   \
    X(E_UNHANDLED, 13, "the actor does not handle this type of message")                           \
    X(E_FOREIGN, 14, "the reference belongs to another system")                                    \
    X(E_OS, 15, "the operating system refused")                                                    \
    X(E_UNSUPPORTED, 16, "this port or build cannot do that")                                      \
    X(E_FAILED, 17, "the actor failed")                                                            \
    X(E_EMPTY, 18, "the text is empty")                                                            \
    X(E_SCHEME, 19, "the scheme is missing or not one of this system's")                           \
    X(E_NO_SYSTEM, 20, "the path names no actor system")                                           \
    X(E_SYSTEM, 21, "the name is not a legal system name")                                         \
    X(E_AUTHORITY, 22, "the host or the port is not valid")                                        \
    X(E_PERCENT, 23, "a percent escape is not '%' and two hexadecimal digits")                     \
    X(E_UID, 24, "the uid is not a legal number")                                                  \
    X(E_ESCAPE, 25, "the relative path climbs above its guardian")                                 \
    X(E_PID_UNKNOWN, 26, "no actor lives at that path")                                            \
    X(E_UNRESOLVED, 27, "the other system has not been reached yet")                               \
    X(E_QUARANTINED, 28, "the other system is quarantined")                                        \
    X(E_UID_RESERVED, 29, "the path and uid belong to an actor that died not long ago")            \
    X(E_KILLED, 30, "the actor was killed")                                                        \
    X(E_DEATH_PACT, 31, "an actor that it watched has stopped, and it did not handle that")        \
    X(E_NOT_BOOTSTRAPPED, 32, "the system is not running yet, or could not be started")            \
    X(E_MISSING_GUARDIAN, 33, "a guardian has not been made")                                      \
    X(E_ALREADY_STARTED, 34, "the system runs already")                                            \
    X(E_RESERVED_NAME, 35, "the name belongs to the runtime")                                      \
    X(E_ROOT_FIXED, 36, "the root guardian cannot be customised")                                  \
    X(E_SYSTEM_FIXED, 37, "the system guardian cannot be customised")                              \
    X(E_STRATEGY, 38, "the supervision strategy is not valid")                                     \
    X(E_CYCLE, 39, "the phases depend on each other in a circle")                                  \
    X(E_TYPE, 40, "the answer is of another type")                                                 \
    X(E_MALFORMED, 41, "the bytes are not what the protocol has in that place")                    \
    X(E_TRUNCATED, 42, "the bytes end before they are complete")                                   \
    X(E_PROTOCOL, 43, "the other side speaks another version of the protocol")                     \
    X(E_NO_CODEC, 44, "no codec is known for that type, serializer or manifest")                   \
    X(E_MISMATCH, 45, "the type is not laid out on the other side as it is here")                  \
    X(E_FORBIDDEN, 46, "the configuration does not allow that")                                    \
    X(E_IN_USE, 47, "the address is in use")                                                       \
    X(E_NOT_READY, 48, "the node is not a member of a cluster now, or does not know its members")  \
    X(E_PENDING, 49, "it is being worked on")                                                      \
    X(E_LOCK_DENIED, 50, "another node holds the lock")                                            \
    X(E_STORAGE, 51, "the store failed, or did not answer")                                        \
    X(E_ACTIVATION, 52, "the grain could not be started")                                          \
    X(E_CONFLICT, 53, "somebody else has changed it meanwhile")                                    \
    X(E_KEY, 54, "the key is empty or too long")                                                   \
    X(E_UNKNOWN_KIND, 55, "no member of the cluster has grains of that kind")                      \
    X(E_IDENTITY_SETUP, 56, "the node cannot take that part in the cluster")                       \
    X(E_OVERLOADED, 57, "too many wait for it already")                                            \
    X(E_FENCED, 58, "a later holder has taken over")                                               \
    X(E_CORRUPT, 59, "what is stored cannot be read")

typedef enum fk_err {
#define FK_ERR_ENUM(name, number, text) FK_##name = number,
    FK_ERRORS(FK_ERR_ENUM)
#undef FK_ERR_ENUM
} fk_err;

/* The sentence for an error, and its name ("FK_E_NOMEM"). Never NULL. Any thread. */
FK_API const char *fk_err_text(fk_err err);
FK_API const char *fk_err_name(fk_err err);

/* "0.1.0" */
FK_API const char *fk_version(void);

/* A borrowed piece of text. */
typedef struct fk_str {
    const char *ptr;
    size_t len;
} fk_str;

#ifdef __cplusplus
#define FK_STR(literal) (fk_str{ "" literal, sizeof(literal) - 1 })
#else
#define FK_STR(literal) ((fk_str){ "" literal, sizeof(literal) - 1 })
#endif

/* The function twin of FK_STR, for text that ends in NUL. */
FK_API fk_str fk_str_of(const char *text);

/* Nanoseconds: a moment on the port's monotonic clock, or a duration. */
typedef int64_t fk_time;

#define FK_NANOS(n)   ((fk_time)(n))
#define FK_MICROS(n)  ((fk_time)(n)*1000)
#define FK_MILLIS(n)  ((fk_time)(n)*1000000)
#define FK_SECONDS(n) ((fk_time)(n)*1000000000)
#define FK_MINUTES(n) (FK_SECONDS(n) * 60)
#define FK_NEVER      INT64_MAX

#ifdef __cplusplus
}
#endif
#endif /* FK_BASE_H */
