/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_POST_H
#define FK_TESTS_SUPPORT_POST_H

/*
 * A post office: two systems, "a" and "b", whose mails are connected without anything in between.
 * What is sent to a reference of the other one becomes a frame at once and waits; post_run() reads
 * frames and runs both systems until there is nothing left to do.
 */

#include "remote/mail.h"
#include "remote/remote.h"
#include "support/observer.h"

enum { POST_FRAMES = 256, POST_FRAME_MAX = 16384, POST_TABLE = 16 };

typedef struct post_side {
    observer o;
    fk_mail *mail;
    fk_mail_peer peer; /* what it knows of the other */
    fk_authority authority;
    /* For post_compress(). */
    fk_wire_table refs_out, manifests_out;
    fk_compression refs_in, manifests_in;
    void *memory[4];
    /* How the last letter that could not be written ended. */
    fk_err err;
    fk_codec_fault fault;
    size_t unsent;
} post_side;

typedef struct post_frame {
    uint32_t from; /* 0: a; 1: b */
    size_t len;
    unsigned char bytes[POST_FRAME_MAX];
} post_frame;

typedef struct post {
    post_side side[2];
    post_frame frame[POST_FRAMES]; /* those that wait, and before them those that were read */
    size_t read, written;
    fk_err read_err; /* of the last one that was malformed */
} post;

/* All zero: fraktor's rules, no codecs, not trusting. */
typedef struct post_config {
    fk_rules rules;
    fk_scheme scheme;
    const fk_codec *const *codecs;
    bool is_trusting;
    uint32_t frame_max;
} post_config;

/* There is one at a time. */
void post_start(post *p, post_config config);
void post_stop(post *p);
void post_run(post *p);
/* Without actors: only frames. */
void post_read(post *p);
/* Gives b what is not a frame of a's, as if it were: an envelope's bytes. */
fk_err post_inject(post *p, fk_str envelope);

/* The actor of the side at that path, "/user/x", as the other side refers to it. */
fk_ref post_ref(post *p, uint32_t of, const char *path);
/* The last frame that was written, its envelope. */
fk_wire_envelope post_last(const post *p);

/* b advertises what has come so far, and a uses it, without a network in between. */
void post_compress(post *p);

#endif /* FK_TESTS_SUPPORT_POST_H */
