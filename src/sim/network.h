/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_NETWORK_H
#define FK_SIM_NETWORK_H

/*
 * A network for many systems in one process: the transport of remote/transport.h over virtual time.
 * A *host* is an address with a system behind it, or none; a *link* is one connection, whose bytes go
 * from the host that made it to the other. Bytes arrive late, in order, in pieces cut anywhere; a
 * sender has a window; a link may be refused, reset, or cut in one direction, so that bytes or
 * acknowledgements are held back until it is healed or reset. Everything is drawn from one seed.
 *
 * The network is also a strict judge of whoever uses it: what transport.h forbids is a failure, and
 * what is lent must not change. It keeps account of what it has thrown away, so that a message that
 * never came can be excused by that, and only by that.
 *
 * Nobody is called but from fk__network_deliver(), one call at a time.
 */

#include "base/hash.h"
#include "remote/transport.h"

#define FK_NETWORK_HOSTS 8u
#define FK_NETWORK_LINKS 256u

/* What the world gives it. */
typedef struct fk_network_world {
    fk_time (*now)(void);
    /* Does not return, unless in tests of this file. */
    void (*fail)(const char *invariant, const char *what);
} fk_network_world;

/* Who sits at a host: the functions of remote/driver.h. */
typedef struct fk_network_user {
    void *ctx;
    bool (*accepted)(void *ctx, fk_conn_id conn, fk_str from, fk_time now);
    void (*connected)(void *ctx, fk_conn_id conn, fk_time now);
    void (*writable)(void *ctx, fk_conn_id conn, fk_time now);
    bool (*read)(void *ctx, fk_conn_id conn, fk_str bytes, fk_time now);
    void (*closed)(void *ctx, fk_conn_id conn, fk_err err, fk_str why, fk_time now);
} fk_network_user;

/* What a seed says. Zero: never, or at once. */
typedef struct fk_network_config {
    uint64_t seed;
    fk_time delay_min, delay_max; /* of everything that goes from one host to another */
    fk_time accept_max;           /* a connection may wait so long to be accepted */
    fk_time connect_timeout;      /* 0: 3 s */
    uint32_t window;              /* bytes on their way in one link; 0: 64 KiB */
    uint32_t piece_max;           /* bytes told at once; 0: 64 KiB */
    uint32_t refuse_in;           /* one attempt in so many is refused */
    uint32_t reset_in;            /* one write in so many resets its link, sooner or later */
    uint32_t lazy_in;  /* one write in so many is not taken at once, though it might be */
    uint32_t spare_in; /* one abrupt end in so many lets arrive what is on its way */
} fk_network_config;

typedef struct fk_network_host {
    fk_str address;
    uint16_t port;
    bool is_up;
    bool is_silent;  /* down, and nobody says so */
    fk_conn_id next; /* of those accepted */
    fk_network_user user;
} fk_network_host;

/* Bytes, or acknowledgements of bytes, on their way. */
typedef struct fk_flight {
    size_t size;
    fk_time at; /* FK_NEVER: held back */
} fk_flight;

enum { FK_FLIGHTS = 64 };

typedef struct fk_flights {
    fk_flight item[FK_FLIGHTS];
    uint32_t first, count;
    fk_time last_at; /* nothing arrives before this */
} fk_flights;

typedef enum fk_link_end {
    FK_LINK_END_WAITING, /* the maker: no answer yet; the other: not told yet */
    FK_LINK_END_OPEN,
    FK_LINK_END_GONE,
} fk_link_end;

/* One connection. For all but the network: to read. */
typedef struct fk_net_link {
    bool is_used;
    uint8_t maker, other; /* hosts */
    uint8_t aimed;        /* whose address it was made to: another, if it was misled */
    fk_link_end maker_end, other_end;
    fk_conn_id maker_id, other_id;
    fk_time
        answer_at; /* the maker hears what became of its attempt; FK_NEVER: its question is lost */
    fk_time give_up_at;
    bool is_refused;
    fk_time accept_at;
    /* Towards the other: bytes; those behind `sent` are lent and have not left. */
    unsigned char *bytes;
    size_t head, sent, tail, capacity;
    fk_flights data;
    bool is_ending; /* no more bytes will be written ... */
    bool is_reset;  /* ... by a reset */
    fk_time end_at; /* FK_NEVER: held back */
    /* Towards the maker. */
    fk_flights acks;
    size_t unacked;
    bool is_broken; /* the maker will hear that it is gone ... */
    fk_time broken_at;
    /* What is lent, and how it was. */
    bool is_lent;
    const void *lent;
    unsigned char *lent_copy;
    size_t lent_len, lent_capacity;
    fk_time lazy_until; /* what is lent does not begin to leave before */
} fk_net_link;

typedef struct fk_network_count {
    uint64_t connects, refused, timeouts, accepted, resets, held, lent, cut_frames, lost,
        late_accepts;
} fk_network_count;

typedef struct fk_network {
    fk_network_world world;
    fk_network_config config;
    fk_rng rng;
    uint32_t host_count;
    bool is_calm; /* no chance takes part any more but in delays and pieces */
    fk_network_host host[FK_NETWORK_HOSTS];
    bool is_stale[FK_NETWORK_HOSTS]; /* next_at is to be found anew */
    fk_time next_at[FK_NETWORK_HOSTS];
    bool is_cut[FK_NETWORK_HOSTS][FK_NETWORK_HOSTS];  /* [from][to] */
    uint8_t route[FK_NETWORK_HOSTS];                  /* who answers at the address of that host */
    fk_time slow[FK_NETWORK_HOSTS][FK_NETWORK_HOSTS]; /* added to each delay */
    fk_time accepted_at[FK_NETWORK_HOSTS][FK_NETWORK_HOSTS]; /* [from][to]: in their order */
    fk_time lost_at[FK_NETWORK_HOSTS][FK_NETWORK_HOSTS]; /* bytes were thrown away, the last time */
    fk_network_count count;
    uint32_t link_end; /* of those ever used */
    fk_net_link link[FK_NETWORK_LINKS];
    /* What is being told: while its user reads it the other end may write. */
    unsigned char *told[FK_NETWORK_HOSTS];
    size_t told_capacity[FK_NETWORK_HOSTS];
} fk_network;

/* Forgets everything of the run before. Memory is kept. */
void fk__network_begin(fk_network *net, const fk_network_world *world,
                       const fk_network_config *config);
/* address is lent for as long as the network is used. Returns its number. */
uint32_t fk__network_host(fk_network *net, fk_str address, uint16_t port);

/* Somebody sits there now, and may connect and be connected to. */
void fk__network_up(fk_network *net, uint32_t host, const fk_network_user *user);
/* He has left in order: no connection may be left. */
void fk__network_down(fk_network *net, uint32_t host);
/* He is gone at once. Silently: nobody hears of it, until somebody else is there. */
void fk__network_crash(fk_network *net, uint32_t host, bool is_silent);

/* For remote/transport.h, without wake: ctx says who calls. */
typedef struct fk_network_port {
    fk_network *net;
    uint32_t host;
} fk_network_port;
fk_err fk__network_connect(void *port, fk_conn_id conn, fk_str address, uint16_t number);
bool fk__network_write(void *port, fk_conn_id conn, const void *bytes, size_t len);
void fk__network_close(void *port, fk_conn_id conn, bool gently);

/* When the next thing happens at a host: FK_NEVER, or any time. Cheap when nothing has changed. */
fk_time fk__network_next(fk_network *net, uint32_t host);
/* Tells the host one thing that is due. False: there is none. */
bool fk__network_deliver(fk_network *net, uint32_t host);

/* ---- faults --------------------------------------------------------------------------------- */

/* What goes that way is held back, or goes on. */
void fk__network_cut(fk_network *net, uint32_t from, uint32_t to, bool is_cut);
/* Every link between the two ends, in both directions. */
void fk__network_reset(fk_network *net, uint32_t a, uint32_t b);
/* One of all links ends, if there is one. */
void fk__network_reset_any(fk_network *net);
/* No more faults: nothing is cut, slow or misled. */
void fk__network_heal(fk_network *net);

/* Ends of links that a host has. */
uint32_t fk__network_ends(const fk_network *net, uint32_t host);
/* Those that others have made, and it has accepted. */
uint32_t fk__network_met(const fk_network *net, uint32_t host);
/* Links that a host has made to the address of another and not given up. */
uint32_t fk__network_made(const fk_network *net, uint32_t from, uint32_t to);
/* Asserts what must hold of all links. */
void fk__network_check(const fk_network *net);

#endif /* FK_SIM_NETWORK_H */
