/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_LEDGER_H
#define FK_SIM_LEDGER_H

/*
 * The ledger: what happened, written down outside the system under test, and the only
 * source of every check. Each fact is checked against all before it as it is recorded:
 *
 *   A1  a message ends once: handled, or dead with a reason; what it owns is dropped once
 *   A2  messages of one sender to one receiver are handled in their order, class by class
 *   A3  an actor does one thing at a time, nothing before its start nor after its stop
 *   A4  what was meant for one actor never reaches another, nor does a stop
 *   A5  nothing waits while everybody sleeps
 *   A7  children end before their parents; names are unique among living children; a path leads
 *       to the actor it is of
 *   A10 a selection reaches whoever matches, once; a claimed or reserved uid is not free
 *   A11 a timer is never early, and fires or is cancelled, never both
 *   A12 a ready actor waits for a bounded number of messages
 *   A13 mailboxes, stashes, actors and memory keep their limits
 *   A14 nothing is left at the end
 *   A15 start, messages, stop: in this order, each hook once
 *
 * The facts also go into a hash, in order, with virtual time: same seed, same hash. So nothing
 * here may depend on an address.
 */

#include "fraktor/system.h"
#include "sim/fact.h"

#define FK_ACTORS_MAX 1024u
#define FK_MAILS_MAX  8192u
#define FK_TIMERS_MAX 4096u
#define FK_ASIDE_MAX  64u
#define FK_TIMER_KEYS 8u
#define FK_PRIORITIES 4u
#define FK_CALLS_MAX  64u
#define FK_CALL_KINDS 3u /* everybody under /user, the named, those with generated names */

typedef enum fk_mail_state {
    FK_MAIL_SENT,  /* on its way or in a mailbox */
    FK_MAIL_HELD,  /* being handled */
    FK_MAIL_ASIDE, /* in a stash, or put back from it */
    FK_MAIL_DONE,
    FK_MAIL_DEAD,
} fk_mail_state;

typedef struct fk_mail {
    fk_ref to_ref;
    uint16_t to;     /* actor, or FK_NOBODY */
    uint16_t from;   /* who sent it last: actor, or FK_NOBODY */
    uint16_t origin; /* whom the receiver sees as the sender */
    uint16_t thread; /* of an outside sender */
    uint32_t seq;    /* of (from, to, class) */
    uint32_t first;  /* of a shared payload: the number that its bytes carry ... */
    uint8_t shares;  /* ... and how many sends it was */
    uint8_t state;
    uint8_t kind; /* the scenario's */
    uint8_t drops;
    uint8_t rounds; /* of a volley */
    uint8_t priority;
    uint8_t class;
    uint8_t reason;
    uint8_t hops;     /* how often it was forwarded */
    bool returned;    /* the send has */
    bool is_owned;    /* its type has a drop function */
    bool is_inside;   /* sent by fk_tell and friends, not fk_send */
    bool is_selected; /* sent to its path */
    bool is_silent;   /* sent by a dead-letter callback: not reported if it dies at once */
} fk_mail;

typedef enum fk_alarm_state {
    FK_ALARM_STARTING,
    FK_ALARM_ACTIVE,
    FK_ALARM_ENDED,
} fk_alarm_state;

typedef struct fk_alarm {
    uint16_t actor;
    uint8_t key, mode, state, drops;
    bool is_owned;
    uint32_t aside; /* copies of its message in a stash */
    uint32_t fires;
    fk_time period;
    fk_time due;   /* not before */
    fk_time slack; /* the grid of its periods begins at due, or so much later */
} fk_alarm;

/* What an actor's stash holds: a mail's number, or an alarm's with the top bit set. */
#define FK_ASIDE_ALARM UINT32_C(0x80000000)

typedef struct fk_aside {
    uint32_t count;
    uint32_t at[FK_ASIDE_MAX];
} fk_aside;

typedef struct fk_person {
    fk_ref ref;
    uint16_t parent; /* FK_NOBODY: from outside */
    uint16_t name;   /* 0: generated */
    uint16_t children;
    uint8_t mailbox, overflow;
    uint32_t capacity, stash_max;
    bool has_ref;
    bool is_refused; /* the spawn failed */
    bool is_spawned; /* the spawn returned */
    bool has_start, is_pinned;
    bool is_started, is_stillborn, is_stopping, is_gone;
    bool is_busy;      /* a hook or receive is running */
    bool is_receiving; /* a message: it looks at its signals before the next one */
    bool is_parting;   /* in its stop hook, perhaps for the last time */
    bool is_leaving;   /* must handle nothing more */
    bool is_held;      /* at this rest, it or one above it waits for a supervisor */
    bool is_asked;     /* somebody asked it to stop, or is about to */
    bool is_told;      /* ... and that call has returned */
    bool is_poisoned;
    uint32_t after_told; /* messages begun since */
    uint32_t held;       /* number of the mail or alarm being handled; 0: none */
    bool held_again;     /* it came back from the stash */
    uint32_t pending;    /* mails whose send has returned, in its mailbox */
    uint32_t urgent[FK_PRIORITIES];
    uint32_t received;
    uint64_t behaviours; /* a bit each, the newest lowest */
    uint32_t behaviour_count;
    fk_aside stash, front;
    uint64_t path_hash;            /* of its path; 0: nobody has asked for it */
    uint32_t alarm[FK_TIMER_KEYS]; /* active ones, by key; 0: none */
    fk_time timeout, timeout_last;
    bool is_timeout;        /* what it handles is its receive timeout */
    bool is_waiting;        /* A12: has mail */
    uint64_t waiting_since; /* in messages handled by anybody */
} fk_person;

/* A selection with a wildcard. */
typedef struct fk_call {
    uint8_t kind;
    bool is_missed;                        /* nobody was found */
    uint64_t expected[FK_ACTORS_MAX / 64]; /* must be reached */
    uint64_t reached[FK_ACTORS_MAX / 64];  /* have been, dead or alive */
} fk_call;

typedef struct fk_ledger {
    uint64_t hash;
    uint64_t facts;
    uint64_t received; /* messages that reached a receive, timers' included */
    uint32_t person_count, mail_count, alarm_count, call_count;
    uint32_t alive, alive_max; /* actors that exist */
    uint32_t pending;          /* of all actors */
    uint64_t wait_longest;
    uint64_t letters[FK_REASON_COUNT];
    uint64_t silent; /* dead letters that were counted, but not reported */
    uint64_t spawned, failures;
    uint64_t hidden;  /* actors, at most, that the system may have made for itself */
    bool is_stopping; /* the system */
    bool is_ending;   /* ... is being destroyed */
    bool may_lack_memory;
    bool is_disturbed;  /* somebody stopped before the system did */
    bool is_supervised; /* a failure is not the end */
    fk_fact recent[FK_FACTS_SHOWN];
    fk_person person[FK_ACTORS_MAX];
    fk_mail mail[FK_MAILS_MAX];    /* from 1 */
    fk_alarm alarm[FK_TIMERS_MAX]; /* from 1 */
    fk_call call[FK_CALLS_MAX];
} fk_ledger;

/* The ledger of the run. */
extern fk_ledger fk__ledger;

/* ---- mail -------------------------------------------------------------------------------- */

/* A send begins: its number. to may be FK_NOBODY. */
uint32_t fk__mail_send(const fk_mail *mail);
/* The call has returned. hops: what the mail had when it was made. */
void fk__mail_sent(uint32_t number, uint32_t hops, fk_err err);
/* Reaches the receive of an actor. number is what its bytes carry; returns the mail's own. */
uint32_t fk__mail_receive(uint32_t actor, uint32_t number, fk_ref sender);
void fk__mail_dead(uint32_t number, const fk_dead_letter *letter);
void fk__mail_drop(uint32_t number);
/* The actor sends what it holds on. */
void fk__mail_forward(uint32_t number, uint32_t to, fk_ref to_ref);
fk_mail *fk__mail_at(uint32_t number);
/* Everybody sleeps: none waits in a mailbox. */
void fk__mail_check_rest(void);
/* At the end: all are. */
void fk__mail_check_ended(void);

/* ---- actors ------------------------------------------------------------------------------ */

/* A spawn begins: the number of the actor to be. */
uint32_t fk__person_spawn(const fk_person *person);
void fk__person_spawned(uint32_t actor, fk_err err, fk_ref ref);
/* It begins a hook or a message, and ends it. */
void fk__person_enter(uint32_t actor, fk_ref self, const char *what);
void fk__person_begin_start(uint32_t actor, fk_ref self);
void fk__person_end_start(uint32_t actor, fk_err err);
/* Around each receive, whatever the message is. behaviour: which function it was. */
void fk__person_begin_receive(uint32_t actor, fk_ref self, uint32_t behaviour);
void fk__person_end_receive(uint32_t actor, fk_err err);
void fk__person_begin_stop(uint32_t actor, fk_ref self);
void fk__person_end_stop(uint32_t actor);
void fk__person_ask_stop(uint32_t actor, uint32_t by);
void fk__person_asked_stop(uint32_t actor, fk_err err);
void fk__person_poison(uint32_t actor);
void fk__person_failed(fk_ref ref);
void fk__person_stopped(fk_ref ref);
/* Is there a reason why it stops? */
bool fk__person_has_cause(const fk_person *person);
/* It has ended. */
void fk__person_end(uint32_t actor);
/* It begins anew: behaviour and timers as at first. is_restored: what it had stashed is in front. */
void fk__person_renew(uint32_t actor, bool is_restored);
void fk__person_become(uint32_t actor, uint32_t behaviour);
void fk__person_unbecome(uint32_t actor, fk_err err);
/* What it holds goes to the stash; the whole stash goes to the front. */
void fk__person_stash(uint32_t actor, fk_err err);
void fk__person_unstash(uint32_t actor, fk_err err);
/* What is received must be the first of the front, if there is one. Returns true when it was. */
bool fk__person_take_front(uint32_t actor, uint32_t code);
/* Mail comes in and goes out of its mailbox: A12, A13. */
void fk__person_mail_in(uint32_t actor);
void fk__person_mail_out(uint32_t actor);
void fk__person_check_ended(void);

/* ---- selections ---------------------------------------------------------------------------- */

uint32_t fk__call_begin(uint32_t kind);
void fk__call_end(uint32_t number, fk_err err);
void fk__call_arrived(uint32_t number, uint32_t actor);
void fk__call_dead(uint32_t number, const fk_dead_letter *letter);
void fk__call_check_ended(void);

/* ---- timers ------------------------------------------------------------------------------ */

uint32_t fk__alarm_start(const fk_alarm *alarm);
void fk__alarm_started(uint32_t number, fk_err err);
void fk__alarm_cancelled(uint32_t actor, uint32_t key, fk_err err);
void fk__alarm_fire(uint32_t actor, uint32_t number);
/* After the receive that it fired. */
void fk__alarm_handled(uint32_t number);
void fk__alarm_drop(uint32_t number);
void fk__alarm_dead(uint32_t number, const fk_dead_letter *letter);
/* The actor ends, or is restarted: then the receive timeout goes on. */
void fk__alarm_stop_all(uint32_t actor);
void fk__alarm_stop_timers(uint32_t actor);
void fk__alarm_timeout_set(uint32_t actor, fk_time timeout);
void fk__alarm_timeout(uint32_t actor);
/* Everybody sleeps until next: by then, nothing may be long due. */
void fk__alarm_check_due(fk_time next);
void fk__alarm_check_ended(void);

#endif /* FK_SIM_LEDGER_H */
