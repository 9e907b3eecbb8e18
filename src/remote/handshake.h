/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_HANDSHAKE_H
#define FK_REMOTE_HANDSHAKE_H

/*
 * Handshakes. Connections are one-way: each side makes its own, and a question that goes out on one
 * is answered on another. So there are two halves that do not know each other.
 *
 * fk_handshake is one stream that we have opened. Its first frame is a HandshakeReq; until it is
 * answered nothing else goes out, and it is repeated each second. After 20 s without an answer the
 * attempt has failed. Once answered, the request still goes out before a message, at most once a
 * second: a peer that was restarted behind the same address does not know us, and would drop
 * everything we say until it hears one.
 *
 * fk_door is where others come in: a request must be meant for us and come from a system that we
 * may talk to, and only then are frames of that system let in.
 *
 * What a handshake means for an authority is decided by the authority alone (remote/authority.h);
 * here it is only told. No clock, lock or thread, as there.
 */

#include "remote/origins.h"

/* ---- a stream of ours ---------------------------------------------------------------------- */

/* All zero is the default. */
typedef struct fk_handshake_config {
    fk_time repeat_every; /* while there is no answer; 0: 1 s */
    fk_time fail_after;   /* 0: 20 s */
    fk_time inject_every; /* before messages, after the answer; 0: 1 s */
} fk_handshake_config;

typedef enum fk_handshake_phase {
    FK_HANDSHAKE_IDLE = 0, /* there is no connection */
    FK_HANDSHAKE_WAITING,  /* for the answer */
    FK_HANDSHAKE_ANSWERED
} fk_handshake_phase;

/* For all but the functions below: to read. */
typedef struct fk_handshake {
    const fk_handshake_config *config; /* complete (fk__handshake_configure) */
    fk_handshake_phase phase;
    bool is_control;   /* system messages go this way */
    uint64_t attempt;  /* of the authority, for which the connection was made */
    fk_time inject_at; /* from then on a message is preceded by a request */
    fk_time repeat_at; /* these two: FK_NEVER unless it is waiting */
    fk_time fail_at;
} fk_handshake;

/* Written whole by each call that takes it. */
typedef struct fk_handshake_effects {
    bool must_request; /* send a HandshakeReq now, before anything else */
    bool has_failed;   /* close the connection; the authority has been told */
    fk_authority_result result;
    fk_authority_effects authority; /* of what it was told; with has_failed */
} fk_handshake_effects;

/* Checks *config, which may be NULL, and writes it out with its defaults filled in: FK_E_INVALID.
 */
FK_MUST_USE fk_err fk__handshake_configure(const fk_handshake_config *config,
                                           fk_handshake_config *out);

/* config must stay where it is. */
void fk__handshake_init(fk_handshake *handshake, const fk_handshake_config *config);
/* The connection is there, made for attempt number authority->attempt or, when the authority is
 * open already, for a further stream: then there is nothing to wait for. But a control stream waits
 * for an answer to its own request. It is numbered messages that go there, and they must not reach a
 * system that was restarted since the authority was opened: it would count them as ours, while we
 * begin to count again when we meet it. */
void fk__handshake_begin(fk_handshake *handshake, const fk_authority *authority, bool is_control,
                         fk_time now, fk_handshake_effects *effects);
/* The door has accepted this authority: for each of its streams. is_response: by a HandshakeRsp. If
 * a control stream is answered hereby, its outbox is open (remote/delivery.h). */
void fk__handshake_answered(fk_handshake *handshake, bool is_response);
/* The connection is gone. */
void fk__handshake_end(fk_handshake *handshake);
/* A message is to be sent: may it? If must_request is set, the request goes first. */
FK_MUST_USE bool fk__handshake_may_send(fk_handshake *handshake, fk_time now,
                                        fk_handshake_effects *effects);

/* When fk__handshake_tick must be called next. */
fk_time fk__handshake_next(const fk_handshake *handshake);
/* A stream that has failed means for its authority that the attempt has, or if that was opened from
 * the other side meanwhile, that there is no way to it. */
void fk__handshake_tick(fk_handshake *handshake, fk_authority_table *table, fk_authority *authority,
                        fk_time now, fk_handshake_effects *effects);

/* ---- where others come in ------------------------------------------------------------------- */

typedef struct fk_door {
    fk_authority_table *table;
    fk_origins origins;
    fk_authority_key own; /* under which we are known; its text is the caller's */
    uint64_t own_uid;
} fk_door;

typedef enum fk_door_result {
    FK_DOOR_RESULT_ACCEPTED = 0,
    /* All others: to be dropped, with a warning. */
    FK_DOOR_RESULT_NOT_US,      /* meant for another address */
    FK_DOOR_RESULT_INVALID,     /* no address, no uid, or our own */
    FK_DOOR_RESULT_UNKNOWN,     /* an answer, or a frame, of somebody who was never met */
    FK_DOOR_RESULT_TAKEN,       /* that uid is another system's */
    FK_DOOR_RESULT_QUARANTINED, /* that uid is */
    FK_DOOR_RESULT_REFUSED,     /* the authority does not take it now (fk_door_effects.result) */
    FK_DOOR_RESULT_LIMIT,       /* too many authorities */
    FK_DOOR_RESULT_NOMEM,
    FK_DOOR_RESULT_COUNT
} fk_door_result;

/* Written whole by each call that takes it. To be acted on in this order. */
typedef struct fk_door_effects {
    fk_authority_result result;
    fk_authority_effects authority; /* whom it is about, and what is to be done for it */
    fk_origin *origin;              /* when it was accepted */
    bool must_answer;               /* with a HandshakeRsp, on a stream of ours, which may have to
                                       be opened first */
    bool must_notify;               /* the peer, that it is quarantined */
} fk_door_effects;

/* A HandshakeReq has come. It is read in two steps, so that between them the caller can find or
 * make what he keeps for an authority. First: whom is it from? The authority is made and mapped to
 * the address it gives, if need be. */
FK_MUST_USE fk_door_result fk__door_knock(const fk_door *door, const fk_authority_key *from,
                                          const fk_authority_key *to, fk_time now,
                                          fk_door_effects *effects);
/* Second: is it let in? If it is, every waiting stream to it is answered. Also for a HandshakeRsp,
 * which is no request, of an authority that was found (fk__authority_find). If another system is
 * there than before (authority.is_new_peer), our streams lead to one that is gone: they are to be
 * closed and begun anew, and whoever keeps something for that system told. */
FK_MUST_USE fk_door_result fk__door_accept(fk_door *door, fk_peer *peer, uint64_t uid,
                                           bool is_request, fk_time now, fk_door_effects *effects);

/* A frame of that origin has come; *origin is written if it is known. is_quiet: it is a heartbeat
 * or a notice of quarantine, which is never answered with another one. */
FK_MUST_USE fk_door_result fk__door_admit(const fk_door *door, uint64_t uid, bool is_quiet,
                                          fk_origin **origin, bool *must_notify);

#endif /* FK_REMOTE_HANDSHAKE_H */
