/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_MAIL_ROOM_H
#define FK_REMOTE_MAIL_ROOM_H

/* What the files of mail share. */

#include "remote/mail.h"
#include "remote/remote.h"
#include "wire/container.h"

/* Texts that are not kept are written here; each has its own place while a frame is made. */
typedef enum fk_mail_place {
    FK_PLACE_RECIPIENT = 0,
    FK_PLACE_SENDER,
    FK_PLACE_INSIDE, /* of a reference in a message; good until the next one */
    FK_PLACE_COUNT
} fk_mail_place;

struct fk_mail {
    fk_remote *remote;
    fk_system *sys;
    fk_mail_config config;
    fk_codecs codecs;
    /* That wrote and read something last, for most messages are like the one before. NULL: none. */
    const fk_codec *codec_wrote, *codec_read;
    uint32_t met; /* references that were met so far: see mail_names.h */
    char *place[FK_PLACE_COUNT];
    size_t place_size; /* of each */
    size_t block_size; /* of all: this, the codecs' tables and the places */
};

/* Whose names are read, and on whose thread. */
typedef struct fk_mail_way {
    fk_mail *mail;
    fk_mail_peer *peer; /* NULL: nobody's in particular; nothing is remembered */
    fk_local *local;
} fk_mail_way;

/* Who a text names. All zero: nobody. */
typedef struct fk_named {
    fk_ref ref;      /* FK_REF_NONE: nobody, and */
    uint8_t miss;    /* fk_reason: what a message to it is */
    uint8_t err;     /* FK_OK, FK_E_NOMEM, FK_E_LIMIT, or the fault of a text that is no path */
    bool is_own;     /* of this system */
    bool is_guarded; /* and the root, or below /system */
} fk_named;

/* A message that has come, and for whom. */
typedef struct fk_arrival {
    fk_mail_way way;
    const fk_authority *from;
    fk_wire_fault *fault;
    fk_str to_text; /* as it came */
    fk_named to;
    fk_named sender;
} fk_arrival;

/* mail_open.c: the message in a payload, as a node that has its sender; lent to nobody yet. FK_OK and
 * NULL: it was refused, and is a dead letter, or was delivered as what it is. */
FK_MUST_USE fk_err fk__arrival_open(const fk_arrival *a, const fk_wire_payload *payload,
                                    bool is_selected, fk_node **out);
/* What came does not reach anybody: one dead letter of the bytes, with a sentence and whatever is to
 * be said about the payload. */
void fk__arrival_refuse(const fk_arrival *a, fk_reason reason, const fk_wire_payload *payload,
                        const char *why);
/* mail_select.c: a selection has come, seen from a->to.ref. */
FK_MUST_USE fk_err fk__arrival_select(const fk_arrival *a, fk_str bytes);

/* References inside messages, for codecs. Only for reading does it need a local. */
typedef struct fk_mail_refs {
    fk_codec_refs refs;
    fk_mail_way way;
} fk_mail_refs;
void fk__mail_refs_init(fk_mail_refs *refs, fk_mail_way way);

/* A message on its way out, measured: its envelope, and what the payload will be. */
typedef struct fk_packet {
    fk_wire_envelope e; /* payload.len is the size, payload.ptr NULL */
    /* One of three: */
    const fk_codec *codec; /* writes data */
    const void *data;
    size_t len;
    void *bytes; /* of that size, as they are to be; ours to free */
    fk_wire_misc misc;
    /* What misc has views of. */
    unsigned char number[8];
    unsigned char cause[512];
} fk_packet;

/* mail_packet.c. Fills all but the envelope's sender and recipient; the envelope is zeroed before. The
 * node is lent until the packet is written. */
FK_MUST_USE fk_err fk__packet_open(fk_mail *mail, fk_mail_peer *peer, const fk_node *node,
                                   fk_packet *out, fk_codec_fault *fault);
/* Writes just as many bytes as were measured. */
FK_MUST_USE fk_err fk__packet_write(fk_mail *mail, fk_mail_peer *peer, const fk_packet *packet,
                                    unsigned char *to, fk_codec_fault *fault);
void fk__packet_close(fk_mail *mail, fk_packet *packet);
/* mail_select.c: puts the packet into a selection. */
FK_MUST_USE fk_err fk__packet_select(fk_mail *mail, fk_mail_peer *peer, const fk_letter_path *path,
                                     fk_packet *packet, fk_codec_fault *fault);

static inline fk_err fk__packet_fail(const fk_packet *packet, fk_codec_fault *fault, fk_err err,
                                     const char *message)
{
    *fault = (fk_codec_fault){ err, packet->e.serializer, packet->e.manifest.text, 0, message };
    return err;
}

#endif /* FK_REMOTE_MAIL_ROOM_H */
