/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_TOWN_H
#define FK_TESTS_SUPPORT_TOWN_H

/*
 * A town: up to three systems of one process with remoting at loopback, in one cluster, over a store in
 * memory that can be told to be slow, to fail, and to be gone. Through the public headers alone. Real time:
 * a test waits for what must happen, up to half a minute.
 *
 * Its grains are counters, of the kinds "durable", "volatile" and "brief" (durable, ends when idle).
 */

#include "support/peer.h" /* PEER_AWAIT */

enum { TOWN_MAX = 3, TOWN_EVENTS = 4096, TOWN_KEYS = 64 };

/* What a counter can be asked to do. */
typedef enum town_verb {
    TOWN_ADD = 0, /* arg */
    TOWN_FAIL,    /* adds arg, then fails */
    TOWN_DELETE,
    TOWN_NAP,    /* arg milliseconds, then adds 1 */
    TOWN_BECOME, /* the answer's .n is an error */
    TOWN_STASH,
    TOWN_REPORT,  /* adds arg and tells the actor in .to */
    TOWN_REQUEST, /* .n: of fk_grain_self(), its request's first number */
    TOWN_BULK     /* adds 1, and answers with arg bytes */
} town_verb;

typedef struct town_op {
    int64_t verb, arg;
    fk_ref to;
} town_op;
FK_MESSAGE(town_op);

typedef struct town_total {
    int64_t n;
    int64_t node;    /* index of who answers */
    int64_t version; /* of the row, when the turn began */
    int64_t epoch;
} town_total;
FK_MESSAGE(town_total);

/* Has no codec. */
typedef struct town_secret {
    int64_t n;
} town_secret;
FK_MESSAGE(town_secret);

typedef struct town_event {
    fk_event_kind topic;
    fk_placement_event_kind kind;
    fk_time at, observed_at;
    fk_err err;
    uint64_t epoch, version;
    char text[64], authority[32], reason[64];
} town_event;

typedef struct town_node {
    rig r; /* first */
    fk_cluster *cluster;
    char id[16]; /* "a", "b", "c" */
    bool is_up;
    pthread_mutex_t lock;
    town_event event[TOWN_EVENTS];
    size_t events;
} town_node;

/* What the store does with operations; any time. */
typedef struct town_store {
    _Atomic bool is_gone;    /* state: nothing is done, nobody knows */
    _Atomic bool is_full;    /* STORE and RENEW are refused */
    _Atomic bool is_lossy;   /* STORE is not done, and nobody knows */
    _Atomic bool is_held;    /* STORE waits */
    _Atomic int unsure;      /* so many STOREs are done, and the outcome is not told */
    _Atomic bool hides_view; /* VIEW is not answered */
    _Atomic int blind;       /* nor to that node; -1: none */
    _Atomic int slow_ms;     /* JOIN and RENEW take that long, and then are done */
    _Atomic size_t held;     /* that wait */
    _Atomic size_t loads, stores, renewals_refused;
} town_store;

extern town_store town_shop;
extern const fk_store_provider *const TOWN_PROVIDERS[2];
extern town_node *town; /* TOWN_MAX of them */
/* Over all nodes: hooks of grains that were run; alive, of any one key, at most. */
extern _Atomic size_t town_starts, town_stops;

/* A new store, no nodes. */
void town_begin(void);
/* Node i with remoting, not in a cluster. */
void town_system(int i);
/* The config of node i in this town. */
fk_cluster_config town_config(int i);
/* A node that has joined, knows the kinds and is ready. */
void town_open(int i, fk_cluster_config config);
void town_kinds(int i);
/* Several, which know each other and hold what is theirs. */
void town_open_all(int count, fk_cluster_config config);
void town_settle(int members);
/* Ends all that are up. */
void town_end(void);
void town_close(int i);

/* Adds to a counter, from node i; half a minute. */
fk_err town_ask(int i, const char *kind, const char *key, town_op op, town_total *out);
town_total town_add(int i, const char *kind, const char *key, int64_t by);
fk_grain_place town_where(int i, const char *kind, const char *key);
/* A key of that kind whose owner, by node 0's view, is node i; n: which. */
const char *town_key(const char *kind, int i, int n, char buf[32]);
fk_cluster_stats town_stats(int i);
/* Placement events of that kind at node i about that grain ("kind/key"; NULL: any). */
size_t town_happened(int i, fk_placement_event_kind kind, const char *text);
/* Index of the first one from `from` on; SIZE_MAX: none. */
size_t town_find(int i, fk_placement_event_kind kind, const char *text, size_t from);

#endif /* FK_TESTS_SUPPORT_TOWN_H */
