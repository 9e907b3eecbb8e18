/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_POST_H
#define FK_SIM_POST_H

/*
 * The ledger of messages between systems: each has a number, and ends once. It is received, by whom
 * it was meant for and in its order; or it is one dead letter, here or there; or it was lost on the
 * way, which only something that loses can excuse: a crash of either system, bytes that the network
 * has thrown away, or a receiver that lets nothing of that system in.
 */

#include "sim/folk.h"

#define FK_POSTS_MAX 2048u

typedef enum fk_post_via {
    FK_VIA_TELL = 0,
    FK_VIA_REPLY,
    FK_VIA_FORWARD,
    FK_VIA_ASK,
    FK_VIA_ANSWER, /* a reply to a question */
    FK_VIA_SELECT,
    FK_VIA_COUNT
} fk_post_via;

typedef struct fk_post {
    uint16_t from;         /* person: who sent it last */
    uint16_t origin;       /* who sent it first, and gets a reply */
    uint16_t to;           /* person; FK_NOBODY: whoever is there */
    uint8_t station, slot; /* where it goes to */
    uint8_t via;
    uint8_t received, dead; /* how often; of this leg of its way */
    uint8_t reason;
    uint8_t legs; /* forwarded so often */
    bool is_returned;
    bool is_asked; /* the origin waits for the reply */
    fk_err err;
    uint32_t seq; /* among those of one sender to one place, in one class */
    fk_time at;
} fk_post;

typedef struct fk_posts {
    uint32_t count; /* number 0 is not used */
    uint32_t received, dead, lost;
    uint32_t letters[FK_REASON_COUNT]; /* ours */
    uint32_t unread[FK_FOLK_STATIONS]; /* dead letters there that say not which message they were */
    fk_post post[FK_POSTS_MAX];
} fk_posts;

extern fk_posts fk__posts;

void fk__posts_begin(void);
/* Somebody sends; 0: the ledger is full. to: a person, or FK_NOBODY and whoever is there. */
uint32_t fk__post_send(uint32_t from, uint32_t to, uint32_t station, uint32_t slot,
                       fk_post_via via);
void fk__post_sent(uint32_t number, fk_err err);
/* It goes on from whoever has it now. */
void fk__post_forward(uint32_t number, uint32_t by, uint32_t to, uint32_t station, uint32_t slot);
void fk__post_received(uint32_t number, uint32_t by);
void fk__post_dead(uint32_t number, uint32_t station, fk_reason reason);
/* A dead letter at that station, of bytes that could not be read. */
void fk__post_unread(uint32_t station);

/* Messages that are still on their way, or lost. */
uint32_t fk__posts_open(void);
/* All that will ever arrive has. is_calm: there is no excuse. */
void fk__posts_check_ended(bool is_calm);

#endif /* FK_SIM_POST_H */
