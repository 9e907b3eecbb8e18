/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_OFFICE_H
#define FK_REMOTE_OFFICE_H

/*
 * What the files of the driver share:
 *
 *   driver.c     its life, its turn, connections by number
 *   line.c       letters: from senders to streams, and back when there is no way
 *   stream.c     outgoing connections: buffers, handshakes, frames
 *   turnstile.c  which of them are opened, when there are many
 *   guest.c      incoming connections: frames of others, and who may come in
 *   speech.c     what systems say to each other about themselves, on control streams
 *   bond.c       watches across systems
 *   retirement.c systems that nobody here wants any more
 *   crowd.c      systems that give way to others
 *   agent.c      /system/remote-watcher, the actor that watches for others and sees the end coming
 *
 * Everything here is called on the driver's thread, without the lock of the remote part, unless it
 * says otherwise.
 */

#include "base/map.h"
#include "remote/line.h"
#include "remote/remote.h"
#include "wire/sysmsg.h"

/* An incoming connection. */
typedef struct fk_guest {
    fk_conn_id conn;
    uint64_t number; /* in the order they came */
    fk_deframer deframer;
    unsigned char *room;
    uint32_t room_size;
    fk_origin *origin; /* whose it is, once it has been greeted ... */
    uint64_t uid;      /* ... as long as this is its uid */
    uint64_t claim;    /* of its first handshake: from whom it says it is; 0: there was none */
    fk_time close_at;  /* unless it is greeted before; FK_NEVER: it has been */
    fk_time came_at;
    fk_time began_at; /* when the frame of which there is a part began ... */
    fk_time
        stall_at;   /* ... and when that is to be closed, unless more of it comes; FK_NEVER: none */
    bool is_doomed; /* of no use any more: closed when the driver runs next */
    struct fk_guest *next, **link;
    uint8_t from_len;
    char from[63]; /* "127.0.0.1:40222" */
} fk_guest;

/* An actor here that others watch. */
typedef struct fk_subject {
    fk_ref ref;
    struct fk_subject *next; /* of those that have come back */
    bool is_unwatched;       /* it has not stopped, but the agent had no memory to watch it */
    uint32_t text_len;
    char text[]; /* as others know it */
} fk_subject;

/* A system message to the peer, numbered. */
typedef struct fk_sysparcel {
    fk_parcel parcel; /* first */
    uint32_t recipient_len, message_len;
    unsigned char bytes[]; /* the recipient's path, then the message */
} fk_sysparcel;

/* No frame with one of these is larger. */
#define FK_SYSPARCEL_MAX 8192u

/* Who has not proved yet that it is where it says, and is in the way of others, may stay for this part
 * of handshake_timeout. */
#define FK_UNPROVEN_PART 20

/* Nor any other frame of a control stream, whatever the config's frame_max: for whoever takes messages
 * of 4 KiB only may still be watched, and has a table of names. */
#define FK_CONTROL_FRAME_MAX ((uint32_t)32 << 10)

/* What others can bring about without end is told once a second at most, with a count. */
typedef enum fk_scold_kind {
    FK_SCOLD_BYTES,    /* bytes that are not the protocol's */
    FK_SCOLD_STRANGER, /* a frame of a system that was never met, or is quarantined */
    FK_SCOLD_REFUSED,  /* a handshake that is refused, or a connection too many */
    FK_SCOLD_LOST,     /* messages of ours that were on a connection when it broke */
    FK_SCOLD_COUNT
} fk_scold_kind;

typedef struct fk_scold {
    fk_time next_at;
    uint32_t suppressed;
} fk_scold;

enum { FK_CROWD = 64 };

/* How far our own end is. */
typedef enum fk_parting {
    FK_PARTING_NONE = 0,
    FK_PARTING_ASKED, /* by the agent: everything is to be sent, and peers told */
    FK_PARTING_SAID,  /* they are: waiting for their answers */
    FK_PARTING_DONE
} fk_parting;

struct fk_driver {
    fk_remote *remote;
    fk_remoting_config config; /* complete */
    fk_transport transport;
    fk_worker *worker;
    fk_local *local; /* the worker's */
    bool is_started;
    uint64_t uid; /* of this system, as in remote->uid */
    fk_mail *mail;
    fk_door door;
    fk_handshake_config handshake;
    fk_delivery_config delivery;
    fk_watcher watcher;
    fk_deadline **heap; /* of the watcher */
    fk_map conns;       /* by number: an fk_stream, or an fk_guest */
    fk_conn_id conn_next;
    uint64_t guest_number; /* of the last */
    uint32_t guest_count, half_open_count;
    uint32_t inbound_bytes; /* rooms of all guests */
    uint32_t half_count;    /* streams of ours that are half open ... */
    uint32_t queued_count;  /* ... and those that wait until there are fewer */
    fk_time turns_at;       /* not before that are these looked through for nothing */
    fk_guest *guests;
    fk_line *lines_free;   /* under the lock of the remote part */
    fk_line *awake;        /* those to be looked at in this turn */
    fk_map subjects;       /* fk_subject, by ref */
    fk_subject *buried;    /* subjects that have stopped, until all have been told */
    fk_subject *unwatched; /* subjects that the agent had no memory to watch: tried again, later */
    fk_time unwatched_at;
    bool has_unended;
    fk_bond_ended unended; /* an end for which there was no memory */
    bool was_confirmed;    /* of the end being told: the actor had existed */
    fk_time now;
    fk_time next_at; /* when the first of all that is due */
    fk_scold scold[FK_SCOLD_COUNT];
    fk_time retire_at;       /* when it is worth while to look for systems that nobody wants */
    fk_time retire_again_at; /* not before that when it is crowded: there were none */
    uint32_t retire_round;
    fk_authority *crowd[FK_CROWD]; /* who gives way next, as of the last search; NULL: nobody */
    uint32_t crowd_next;
    fk_ref agent;
    fk_time agent_at; /* when to try again, until it has begun */
    fk_parting parting;
    fk_time parting_at;
    char watcher_path[FK_ADDRESS_MAX + 32]; /* our /system/remote-watcher */
    uint32_t watcher_path_len;

    /* Any thread. */
    fk_word lines;     /* all; put in under the lock of the remote part, never taken out */
    fk_word busy;      /* stack of lines to look at */
    fk_word stopped;   /* stack of fk_subject that have ended */
    fk_half is_full;   /* somebody found no place in the table */
    fk_half is_poked;  /* a step of an authority was made by somebody else */
    fk_half is_hooked; /* the agent has begun */
    fk_half is_asked;  /* the agent has been told of the end of the system */
};

static inline bool fk__stream_is_control(const fk_stream *stream)
{
    return stream->kind == FK_STREAM_CONTROL;
}

/* ---- driver.c */

/* The first of all lines. */
static inline fk_line *fk__driver_lines(const fk_driver *driver)
{
    /* Acquire: what fk__line_get() has written to it. */
    return (fk_line *)fk__word_load(&driver->lines, FK_ACQUIRE);
}

/* Something is due at that time. */
static inline void fk__driver_due(fk_driver *driver, fk_time at)
{
    if (at < driver->next_at) driver->next_at = at;
}

/* After a step of an authority, whoever made it: events and dead letters, and then the line. */
void fk__driver_act(fk_driver *driver, fk_authority_effects *effects);
/* Makes streams and letters of a line fit the state of its authority. */
void fk__driver_settle(fk_driver *driver, fk_line *line);
/* The line has something to do when the driver runs next. */
void fk__line_wake(fk_driver *driver, fk_line *line);
FK_MUST_USE fk_err fk__conn_add(fk_driver *driver, fk_conn_id conn, void *what);
void fk__driver_scold(fk_driver *driver, fk_scold_kind kind, fk_str who, const char *reason,
                      uint64_t at);

/* ---- line.c */

/* Takes in what senders have put on the line, or gives back what cannot go. False: nobody has the line,
 * it was called for what has been done since. */
bool fk__line_gather(fk_driver *driver, fk_line *line);

/* ---- stream.c */

/* Opens a connection, if there is none. */
void fk__stream_open(fk_driver *driver, fk_stream *stream);
void fk__stream_close(fk_driver *driver, fk_stream *stream, bool gently);
void fk__stream_connected(fk_driver *driver, fk_stream *stream);
/* The connection is gone. */
void fk__stream_lost(fk_driver *driver, fk_stream *stream);
/* Writes what there is to be written. */
void fk__stream_pump(fk_driver *driver, fk_stream *stream);
void fk__stream_tick(fk_driver *driver, fk_stream *stream);
/* A frame of ours; false: there is no room for it now. */
FK_MUST_USE bool fk__stream_frame(fk_driver *driver, fk_stream *stream,
                                  const fk_wire_envelope *envelope, unsigned char **payload,
                                  size_t payload_len);

/* ---- turnstile.c */

/* It may be opened now; else it is called when its turn has come. */
FK_MUST_USE bool fk__turnstile_pass(fk_driver *driver, fk_stream *stream);
/* It is not to be opened any more. */
void fk__turnstile_leave(fk_driver *driver, fk_stream *stream);
/* It is half open; it may not be that any more, or is closed. */
void fk__turnstile_begin(fk_driver *driver, fk_stream *stream);
void fk__turnstile_look(fk_driver *driver, fk_stream *stream);
void fk__turnstile_end(fk_driver *driver, fk_stream *stream);
/* Calls those whose turn it is. */
void fk__turnstile_run(fk_driver *driver);

/* ---- guest.c */

/* Bytes have come. False: the guest is gone, and the connection to be closed. */
FK_MUST_USE bool fk__guest_read(fk_driver *driver, fk_guest *guest, fk_str bytes);
/* The connection has ended. */
void fk__guest_lost(fk_driver *driver, fk_guest *guest);
void fk__guest_close(fk_driver *driver, fk_guest *guest);
/* Closes those that are of no use or late. */
void fk__guests_tick(fk_driver *driver);

/* ---- speech.c */

/* To be said on the control stream. */
void fk__line_owe(fk_driver *driver, fk_line *line, fk_control_kind kind);
/* Writes a HandshakeReq, on any stream; false: there is no room for it now. */
FK_MUST_USE bool fk__speech_request(fk_driver *driver, fk_stream *stream);
/* Writes what is owed; false: there is no room for all of it now. */
FK_MUST_USE bool fk__speech_write(fk_driver *driver, fk_stream *stream);
/* A control message has come. False: it cannot be; close the connection. */
FK_MUST_USE bool fk__speech_hear(fk_driver *driver, fk_guest *guest,
                                 const fk_wire_envelope *envelope, fk_wire_fault *fault);
/* A heartbeat, or the answer to one, which are for /system/remote-watcher. */
void fk__speech_heartbeat(fk_driver *driver, fk_line *line, bool is_reply, uint64_t uid);
/* Time for tables of frequent names. */
void fk__speech_advertise(fk_driver *driver, fk_line *line);
void fk__tables_free(fk_driver *driver, fk_line *line);
/* Those that the peer has advertised. */
void fk__tables_out_free(fk_driver *driver, fk_line *line);

/* ---- bond.c */

/* Somebody here watches somebody there, or does not any more: what has been noted on the line. */
void fk__bonds_news(fk_driver *driver, fk_line *line);
/* A system message of the peer has come, in order. False: it is to come again, for want of memory, or
 * it is malformed: then the fault says so. */
FK_MUST_USE bool fk__bonds_hear(fk_driver *driver, fk_line *line, fk_str message,
                                fk_wire_fault *fault);
/* Another system answers there; one has answered a heartbeat; the system is gone for good. */
void fk__bonds_renewed(fk_driver *driver, fk_line *line);
void fk__bonds_reply(fk_driver *driver, fk_line *line);
void fk__bonds_lose(fk_driver *driver, fk_line *line);
/* The system is quarantined, and so gone for good. False: it is not any more. */
FK_MUST_USE bool fk__bonds_put_out(fk_driver *driver, fk_line *line);
void fk__bonds_tick(fk_driver *driver);
/* What the outbox says. */
void fk__bonds_outbox(fk_driver *driver, fk_line *line, fk_outbox_effects *effects);
void fk__parcels_free(fk_driver *driver, fk_envelopes *parcels);
FK_MUST_USE fk_err fk__bonds_init_all(fk_driver *driver);
void fk__bonds_fini_all(fk_driver *driver);

/* ---- retirement.c */

/* Under the lock: somebody here has a reason to be connected with it. */
bool fk__line_is_wanted(const fk_line *line);
/* Under the lock: it is an actor here that began. Others can bring about anything but that. */
bool fk__line_is_ours(const fk_line *line);
/* Forgets systems that nobody wants, those that are so for the longest time first. False: there are
 * none. Not while a frame of one is being read. */
bool fk__retire_some(fk_driver *driver);
void fk__retire_tick(fk_driver *driver);
/* Under the lock: it lives, for all we know, and has exchanged numbered messages with us. */
bool fk__line_counts_on_us(const fk_line *line);
bool fk__line_has_letters(const fk_line *line);
/* Lines that have connections to us get the mark of this round. */
void fk__guests_mark(fk_driver *driver);

/* ---- crowd.c */

/* The table is full: somebody who is out of reach gives way. False: there is nobody, or not now. As
 * fk__retire_some(). */
bool fk__crowd_make_room(fk_driver *driver);

/* ---- agent.c */

/* Makes the agent, unless there is one, and has it begin; again and again until is_hooked. */
void fk__agent_start(fk_driver *driver);
/* The agent is to watch a subject, which comes back by driver->stopped. False: no memory. */
FK_MUST_USE bool fk__agent_watch(fk_driver *driver, fk_subject *subject);
/* Any thread: it has stopped, or could not be watched. */
void fk__subject_return(fk_driver *driver, fk_subject *subject);
/* Peers know that we end: so may the system. */
void fk__agent_parted(fk_driver *driver);

#endif /* FK_REMOTE_OFFICE_H */
