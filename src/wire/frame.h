/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_FRAME_H
#define FK_WIRE_FRAME_H

/*
 * A connection carries one stream in one direction: a header of five bytes, then frames, each a
 * length of four bytes and that many bytes of envelope. The deframer takes the bytes as they come,
 * cut anywhere, and gives out whole frames.
 */

#include "wire/wire.h"

enum {
    FK_CONNECTION_HEADER = 5, /* bytes */
    FK_FRAME_HEADER = 4,
    FK_FRAME_MAX = 256 << 10, /* bytes of envelope, if nobody says otherwise */
    FK_FRAME_MAX_LARGE = 2 << 20,
};

typedef enum fk_wire_stream {
    FK_STREAM_NONE = 0, /* not known yet */
    FK_STREAM_CONTROL,
    FK_STREAM_ORDINARY,
    FK_STREAM_LARGE,
    FK_STREAM_COUNT,
} fk_wire_stream;

typedef enum fk_wire_magic {
    FK_MAGIC_PEKKO = 0, /* "PEKK": Pekko from 2.0 on */
    FK_MAGIC_AKKA,      /* "AKKA": Pekko 1.x and before */
    FK_MAGIC_COUNT,
} fk_wire_magic;

void fk__connection_header_write(fk_wire_magic magic, fk_wire_stream stream,
                                 unsigned char to[FK_CONNECTION_HEADER]);

static inline void fk__frame_header_write(uint32_t len, unsigned char to[FK_FRAME_HEADER])
{
    fk__store32(to, len);
}

/* ---- taking frames out of a stream ---------------------------------------------------------- */

typedef struct fk_deframer {
    /* Written by fk__deframer_init() and its caller. */
    uint32_t frame_max[FK_STREAM_COUNT]; /* by stream; may change at any time */

    /* Read by the caller. */
    fk_wire_stream stream;
    fk_wire_magic magic;
    uint32_t frame_len;  /* of the frame that is being collected; 0: none */
    uint64_t offset;     /* bytes of the stream that have been taken */
    fk_wire_fault fault; /* of FK_DEFRAME_FAULT */

    /* The deframer's own. */
    unsigned char head[FK_CONNECTION_HEADER]; /* of a header that came in pieces */
    uint32_t head_len;
    unsigned char *room; /* of a frame that came in pieces; lent */
    uint32_t room_size;
    uint32_t room_len;
} fk_deframer;

typedef enum fk_deframe {
    FK_DEFRAME_MORE = 0, /* all bytes are taken: come back with more */
    FK_DEFRAME_STREAM,   /* the connection header is complete; go on stepping */
    FK_DEFRAME_FRAME,    /* a frame; go on stepping */
    FK_DEFRAME_ROOM,     /* a frame goes beyond these bytes: fk__deframer_lend(), then go on */
    FK_DEFRAME_FAULT,    /* the stream is broken for good; see fault */
} fk_deframe;

void fk__deframer_init(fk_deframer *d);
/* Takes from *bytes what it can use and moves it on. *frame is written with FK_DEFRAME_FRAME and
 * good until the next step: in the caller's bytes if it was whole there, else in the room. */
FK_MUST_USE fk_deframe fk__deframer_step(fk_deframer *d, fk_str *bytes, fk_str *frame);
/* Room for frames that come in pieces: at least d->frame_len bytes when it was asked for; lent
 * until it is replaced, which only may be done between frames, or the deframer given up. */
void fk__deframer_lend(fk_deframer *d, void *room, uint32_t size);
/* The stream has ended. FK_E_TRUNCATED in the middle of something. */
FK_MUST_USE fk_err fk__deframer_end(const fk_deframer *d, fk_wire_fault *fault);

#endif /* FK_WIRE_FRAME_H */
