/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_TIE_H
#define FK_SIM_TIE_H

/*
 * The ledger of what systems think of each other: the state of each authority as its events tell it,
 * and which systems were shut out by which. A system that was shut out stays so: nothing that it
 * sends from then on arrives, and nothing is sent to it (R3). States change along the arrows of
 * remote/authority.h alone (R4). For each message that is refused for it there is one event (R6).
 */

#include "sim/folk.h"

typedef enum fk_tie_state {
    FK_TIE_NONE = 0,
    FK_TIE_UNRESOLVED,
    FK_TIE_CONNECTED,
    FK_TIE_QUARANTINE,
} fk_tie_state;

/* A change that was told before those that came first: threads do not wait for each other. */
typedef struct fk_tie_news {
    uint32_t number; /* 0: none */
    const char *from, *to, *reason;
    bool was_asking; /* when it was told */
} fk_tie_news;

#define FK_TIE_NEWS 8u

/* What a system thinks of whoever is at a station. */
typedef struct fk_tie {
    fk_tie_state state;
    fk_time since;
    fk_time quarantined_at; /* the last time, of all houses; -1: never */
    fk_time lifted_at;      /* the same of its end */
    uint32_t changes;
    fk_tie_news news[FK_TIE_NEWS];
} fk_tie;

typedef struct fk_ties {
    fk_time duration; /* of a quarantine */
    bool is_calm;     /* there is no trouble from outside: nobody is given up */
    bool is_asking;   /* somebody calls for a quarantine just now */
    fk_tie tie[FK_FOLK_STATIONS][FK_FOLK_STATIONS];
    uint32_t invalid[FK_FOLK_STATIONS], refused[FK_FOLK_STATIONS];
    /* [who][its house][whom][its house]; 0: never */
    fk_time shut_at[FK_FOLK_STATIONS][FK_FOLK_HOUSES][FK_FOLK_STATIONS][FK_FOLK_HOUSES];
} fk_ties;

extern fk_ties fk__ties;

void fk__ties_begin(fk_time quarantine, bool is_calm);
/* A new system is at that station. */
void fk__ties_built(uint32_t station);
/* An event about another system, FK_TOPIC_REMOTE. */
void fk__tie_event(uint32_t station, const fk_event *event);
/* A dead letter of any kind. */
void fk__tie_letter(uint32_t station, fk_reason reason);

/* A message got through that was sent then. */
void fk__tie_check_passage(uint32_t from, uint32_t from_house, uint32_t to, uint32_t to_house,
                           fk_time sent_at, uint32_t number);
/* Some system at a station has shut that one out. */
bool fk__tie_was_shut(uint32_t station, uint32_t whom, uint32_t whom_house);
/* That system has shut out one at the other station, then or later. */
bool fk__tie_has_shut(uint32_t station, uint32_t house, uint32_t whom, fk_time since);
/* One of the two present systems has shut the other out. */
bool fk__tie_is_shut(uint32_t a, uint32_t b);
/* Its state has changed, and the event is still to come. */
bool fk__tie_is_changing(uint32_t station, uint32_t peer);
/* While nobody runs, and the system at that station is in the middle of nothing. */
void fk__tie_check_rest(uint32_t station);

#endif /* FK_SIM_TIE_H */
