/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_LINE_H
#define FK_REMOTE_LINE_H

/*
 * A line: everything between us and one authority. There is one for as long as the authority exists;
 * when that is forgotten, another one gets the line, whose memory is never anything else until the
 * system ends: so whoever finds a line without the lock may put a letter on it, and the line of an
 * authority to which nobody sends any more gets letters for that one still. They are for references
 * that have given way, and are found out by that.
 *
 * Any thread puts letters on it. While the authority is clear the *gate* is open: one addition to a
 * word, which says so and counts, and a push onto a stack. While it is shut the authority decides,
 * under the lock of the remote part, and whoever comes that way first hands over what is still on
 * the stack: so what was sent first is deferred first. The gate is opened and shut under the lock
 * alone.
 *
 *   senders -> gate, stack -> ready, per stream -> buffer -> transport
 *                 |              |
 *                 +-> deferred <-+   (remote/authority.h)
 *
 * Everything else of a line is the driver's: three outgoing streams; what is owed to the peer on the
 * control stream, a bit for each kind of message, because the newest of a kind says it all, so that
 * there is no queue to overflow; numbered system messages; watches.
 */

#include "base/atomic.h"
#include "remote/handshake.h"
#include "remote/letter.h"
#include "remote/mail.h"
#include "remote/transport.h"
#include "remote/watcher.h"
#include "wire/control.h"

typedef struct fk_line fk_line;
typedef struct fk_driver fk_driver;
struct fk_remote_proxy;

#define FK_LINE_OPEN ((uintptr_t)1) /* in line->gate */
#define FK_LINE_ONE  ((uintptr_t)2) /* a letter */

/* An outgoing connection. */
typedef struct fk_stream {
    fk_line *line;
    fk_handshake handshake;
    uint8_t kind;     /* fk_wire_stream */
    fk_conn_id conn;  /* 0: none */
    uint64_t attempt; /* of the authority, for which it was opened */
    bool is_connected;
    bool wants_request; /* a HandshakeReq goes next */
    bool is_notice;     /* only to say that somebody is quarantined: nobody is greeted */
    bool is_lent;       /* the buffer is with the transport */
    bool is_half;       /* not connected, or without an answer: counted by the driver */
    bool is_queued;     /* there are too many of these: waits for its turn ... */
    bool is_called;     /* ... and that has come */
    unsigned char *buffer;
    uint32_t size, len;
    uint32_t letters; /* in the buffer */
    fk_time used_at;
    fk_envelopes ready; /* of letters */
} fk_stream;

struct fk_line {
    /* Any thread. */
    fk_word gate;        /* letters on the stack and ready, times FK_LINE_ONE; | FK_LINE_OPEN */
    fk_word stack;       /* of fk_letter, newest first */
    fk_half is_busy;     /* the driver will look at it */
    fk_half is_refusing; /* the system that is there may not be let in; under the lock */
    fk_line *busy_next;

    fk_authority *authority; /* changes under the lock alone; NULL: free */
    fk_line *free_next;
    fk_envelopes piercing; /* under the lock of the remote part: see fk__authority_send() */
    /* Under the lock of the remote part: proxies about whose watches there is news. */
    struct fk_remote_proxy *news_first, *news_last;
    /* The same: the gate has been open, and the driver has not given back what came through it. */
    bool has_older;

    /* The driver's. */
    fk_line *all_next; /* of all */
    fk_line *next;     /* of those that the driver looks at in this turn */
    bool is_awake;     /* it is one of these */
    bool is_out;       /* its quarantine has been seen */
    bool has_old_news; /* for which there was no memory; to be looked at again */
    fk_peer peer;
    fk_outbox outbox;
    fk_watcher_node watching;
    fk_time *samples; /* of its detector; made when somebody is watched */
    fk_mail_peer mail;
    fk_stream stream[FK_STREAM_COUNT]; /* by kind; the first is not used */
    uint64_t newest[FK_STREAM_COUNT];  /* of its guests: the last one of each stream */
    uint32_t owed;                     /* a bit for each fk_control_kind */
    uint64_t uid;                      /* of the system that all this is about; 0: never met */
    uint64_t uid_guest;                /* the newest guest that brought it */
    uint64_t ack_seq;                  /* of the ack or nack that is owed */
    uint64_t quarantined_uid;          /* of the notice that is owed */
    uint8_t table_version[2];          /* of the acks of tables that are owed: refs, manifests */
    fk_time compress_at;
    bool has_left;        /* it has answered that we terminate */
    bool is_gone;         /* it has told us that it terminates */
    bool is_counting;     /* it has sent a numbered message that means something here */
    uint32_t retire_mark; /* of the last search in which it had a connection to us */
    uint16_t leaver_len;  /* who there told us that it terminates */
    char leaver[254];
    uint8_t why_len; /* why the last connection ended */
    char why[62];
};

/* Under the lock of the remote part: the line of an authority, made if need be. FK_E_NOMEM. */
FK_MUST_USE fk_err fk__line_get(fk_remote *remote, fk_authority *authority, fk_line **out);
/* With the system. */
void fk__line_destroy(fk_remote *remote, fk_line *line);
/* Under the lock, on the driver's thread: its authority is about to be forgotten. There must be nothing
 * on it, and no connection. */
void fk__line_retire(fk_driver *driver, fk_line *line);

/* Any thread. The letter is taken; FK_E_FULL, FK_E_QUARANTINED, FK_E_DEAD: it is a dead letter now.
 * pierces: as fk__authority_send(); the authority must be held, for a selection does not say to which
 * line it belongs. */
FK_MUST_USE fk_err fk__line_send(fk_remote *remote, fk_local *local, fk_line *line,
                                 fk_letter *letter, bool pierces);
/* Under the lock, after each step of its authority: shuts the gate unless it may stay open. */
void fk__line_follow(fk_line *line);
/* Under the lock: whether somebody watches a proxy is news to the driver; and the next of these. */
void fk__line_note(fk_remote *remote, fk_line *line, struct fk_remote_proxy *proxy);
struct fk_remote_proxy *fk__line_news(fk_remote *remote, fk_line *line);
/* No handshake with what a quarantined system was replaced by: what was to pierce does not go. */
void fk__line_blunt(fk_driver *driver, fk_line *line);
/* Any thread: the driver is to look at the line. */
void fk__line_call(fk_remote *remote, fk_line *line);

#endif /* FK_REMOTE_LINE_H */
