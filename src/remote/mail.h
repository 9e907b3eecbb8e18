/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_MAIL_H
#define FK_REMOTE_MAIL_H

/*
 * Mail: a message of this process as a frame of the wire, and back. Here are the names of actors (as
 * text, by table, by cache), payloads (by codec), references inside payloads, selections, Identify,
 * poison and kill; and what others may not do to us. Nothing here knows connections.
 *
 * All functions are called on the driver's thread.
 */

#include "remote/letter.h"
#include "wire/codec.h"
#include "wire/compression.h"
#include "wire/container.h"
#include "wire/envelope.h"

typedef struct fk_mail fk_mail;
typedef struct fk_mail_cache fk_mail_cache;

/* One correspondent: what both sides know of each other's texts. Embedded in a line. All zero: nothing.
 * Only what is above the caches is for others to fill. */
typedef struct fk_mail_peer {
    fk_wire_table *refs_out, *manifests_out; /* advertised by the peer; NULL: none yet */
    fk_compression *refs_in, *manifests_in;  /* advertised by us, of the present uid; NULL: none */
    fk_mail_cache *cache;                    /* mail_names.h; made when first needed */
} fk_mail_peer;

typedef struct fk_mail_config {
    const fk_codec *const *codecs; /* ends with NULL; may be NULL */
    uint64_t own_uid;
    uint32_t frame_max, frame_max_large;
    bool is_trusting; /* peers may poison and kill actors, and reach those below /system */
} fk_mail_config;

FK_MUST_USE fk_err fk__mail_create(fk_remote *remote, const fk_mail_config *config, fk_mail **out);
void fk__mail_destroy(fk_mail *mail);
/* The peer is another system now, or has gone: nothing that was known of its texts holds. Frees. */
void fk__mail_forget(fk_mail *mail, fk_mail_peer *peer);

/* Where a frame is to be written. */
typedef struct fk_mail_room {
    unsigned char *to;
    size_t size;
    size_t len;    /* of the frame: set by fk__mail_write() */
    bool is_large; /* by the large stream's limit */
} fk_mail_room;

/* Writes a letter as one frame. FK_OK: room->len bytes were written. FK_E_FULL: there is no room; it
 * needs room->len bytes. All else: it can never be sent, the fault says why (fault->message is
 * static): the caller makes a dead letter of it. The letter stays the caller's. */
FK_MUST_USE fk_err fk__mail_write(fk_mail *mail, fk_mail_peer *peer, const fk_letter *letter,
                                  fk_mail_room *room, fk_codec_fault *fault);

/* What the dead letter of such a fault says. */
fk_reason fk__mail_reason(fk_err err);

/* A frame that is not a control message (serializer 17) nor a numbered one has come from `from`, a system
 * that may be let in. Delivers what it carries to the actor it is for; or publishes one dead letter
 * that says what was wrong: no such actor, no codec (with id and manifest), not allowed. FK_OK in all
 * these cases. FK_E_MALFORMED: the bytes are not what they claim to be, see fault; the caller decides about the connection. */
FK_MUST_USE fk_err fk__mail_read(fk_mail *mail, fk_local *local, fk_mail_peer *peer,
                                 const fk_authority *from, const fk_wire_envelope *envelope,
                                 fk_wire_fault *fault);

/* True: it is the heartbeat of Pekko's remote watcher, a selection of /system/remote-watcher, in which
 * *inner is the control message (serializer 17). Those are the driver's. */
FK_MUST_USE bool fk__mail_is_heartbeat(const fk_wire_envelope *envelope, fk_wire_payload *inner);

/* A ref as its text for the wire, canonical, with uid, of this system or another; and back: of this system
 * the actor itself, of another one a proxy. Length 0, FK_REF_NONE: nobody. The text is written if it
 * fits, without NUL. FK_E_NOMEM, FK_E_LIMIT, or the fault of a text that is no path. */
size_t fk__mail_text(fk_mail *mail, fk_local *local, fk_ref ref, char *buf, size_t size);
FK_MUST_USE fk_err fk__mail_ref(fk_mail *mail, fk_local *local, fk_str text, fk_ref *out);
/* The same of an actor here, without a reference to anybody else. False: the text is of another system, or
 * no path. */
bool fk__mail_own(fk_mail *mail, fk_local *local, fk_str text, fk_ref *out);

#endif /* FK_REMOTE_MAIL_H */
