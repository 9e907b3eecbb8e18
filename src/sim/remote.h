/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_REMOTE_H
#define FK_SIM_REMOTE_H

/*
 * The scenario "remote": two to four systems (sim/station.h) and a network between them
 * (sim/network.h). Actors send each other numbered messages in all ways there are, watch each other,
 * stop and fail; a director disturbs the network and the systems, ends some and begins others. Then
 * all faults are healed, and everybody must reach everybody again. What must hold is in sim/post.h,
 * sim/vigil.h and sim/tie.h.
 */

#include "fraktor/codec.h"
#include "sim/folk.h"
#include "sim/network.h"
#include "sim/swarm.h"

/* What actors do. */
#define FK_DEEDS(X)                                                                                \
    X(TELL, 20)                                                                                    \
    X(BURST, 3)                                                                                    \
    X(ASK, 6)                                                                                      \
    X(SELECT, 2)                                                                                   \
    X(WATCH, 8)                                                                                    \
    X(UNWATCH, 4)                                                                                  \
    X(STOP, 1)                                                                                     \
    X(FAIL, 1)

typedef enum fk_deed {
#define FK_DEED_ENUM(NAME, weight) FK_DEED_##NAME,
    FK_DEEDS(FK_DEED_ENUM)
#undef FK_DEED_ENUM
        FK_DEED_COUNT
} fk_deed;

/* What happens to them. */
#define FK_TROUBLES(X)                                                                             \
    X(CUT_ONE_WAY, 4)                                                                              \
    X(CUT, 4)                                                                                      \
    X(MEND, 6)                                                                                     \
    X(RESET_PAIR, 3)                                                                               \
    X(RESET_ANY, 4)                                                                                \
    X(SLOW, 2)                                                                                     \
    X(MISLEAD, 2)                                                                                  \
    X(PAUSE, 3)                                                                                    \
    X(CRASH, 2)                                                                                    \
    X(CRASH_SILENT, 2)                                                                             \
    X(END, 2)                                                                                      \
    X(QUARANTINE, 1)                                                                               \
    X(OVERRIDE, 2)

typedef enum fk_trouble {
#define FK_TROUBLE_ENUM(NAME, weight) FK_TROUBLE_##NAME,
    FK_TROUBLES(FK_TROUBLE_ENUM)
#undef FK_TROUBLE_ENUM
        FK_TROUBLE_COUNT
} fk_trouble;

/* What the seed says, besides the swarm. */
typedef struct fk_voyage {
    uint32_t stations;
    uint32_t workers;
    uint32_t rounds;     /* of the first phase */
    uint32_t nap_ms;     /* the longest between two of them */
    uint32_t trouble_in; /* one round in so many brings trouble; 0: none does */
    uint32_t orders;     /* to actors, at most, in a round */
    uint32_t posts_max;
    uint32_t uidless_in; /* one reference in so many is without uid */
    uint32_t wide_in;    /* one message in so many is long */
    uint32_t react_in;   /* one message in so many is replied to or forwarded */
    uint32_t deed[FK_DEED_COUNT], deed_sum;
    uint32_t trouble[FK_TROUBLE_COUNT], trouble_sum;
    const char *large[2];
    fk_network_config network;
    fk_remoting_config remoting;
} fk_voyage;

typedef struct fk_remote_run {
    fk_voyage voyage;
    bool is_calm;                                    /* there is no trouble: nothing gets lost */
    bool is_healing;                                 /* nobody does anything by himself any more */
    bool proved[FK_FOLK_STATIONS][FK_FOLK_STATIONS]; /* a message has got through, since it is */
    fk_time paused_until[FK_FOLK_STATIONS];
    fk_time slow_until;
    uint32_t rests;
} fk_remote_run;

extern fk_remote_run fk__remote_run_state;

/* One run of that seed: NULL, or what was found. */
const char *fk__remote_run(uint64_t seed);

/* remote_swarm.c */
void fk__voyage_draw(fk_voyage *v, fk_swarm *s, uint64_t seed);

/* remote_actor.c: inhabitants. */
void fk__remote_spawn(uint32_t station, uint32_t slot);
/* Tells an actor to do something; target: a station that it is to send to, or FK_NOBODY. */
void fk__remote_order(uint32_t person, uint32_t deeds, uint32_t target);
void fk__remote_letter(void *user, const fk_dead_letter *letter);
void fk__remote_actors_begin(void);
/* Questions have an answer by now. */
void fk__remote_asks_check_live(void);
extern const fk_codec *const fk__remote_codecs[];

/* remote_fault.c: what happens. */
void fk__remote_boot(uint32_t station);
void fk__remote_trouble(void);
/* Goes on with what takes its time: systems that end, that begin, pauses. */
void fk__remote_tend(void);
void fk__remote_heal(void);

#endif /* FK_SIM_REMOTE_H */
