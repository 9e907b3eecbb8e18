/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_OOM_CLUSTER_TOWN_H
#define FK_TESTS_OOM_CLUSTER_TOWN_H

/*
 * A town: a node of a cluster with grains that keep accounts, whose memory can be refused by the
 * place that asks for it. What was acknowledged is written down, and must be there afterwards.
 */

#include "support/rig.h"

enum { TOWN_ACCOUNTS = 6, TOWN_FLEAS = 48, TOWN_CROWD = 70 };

typedef struct town {
    rig r; /* first: the port's ctx */
    const char *name, *store;
    fk_cluster *cluster; /* NULL: joining has failed */
    bool has_kind[3];
    bool is_remote, direct;
    fk_time leave_time;
    _Atomic fk_time patience;         /* of the next call; little after one that was late */
    int64_t tried[TOWN_ACCOUNTS];     /* deposits, whatever became of them */
    int64_t acked[TOWN_ACCOUNTS];     /* the last balance that was told */
    _Atomic uint64_t asked, answered; /* by an actor */
} town;

/* ---- what is refused, by all ports of all towns -------------------------------------------------- */

/* The use-th time that it asks, counted from 1; `stays`: and all times after that. NULL: nothing. */
void fault_set(const fk_site *site, uint64_t use, bool stays);
/* Neither refuses nor counts until it goes on. */
void fault_pause(bool paused);
/* Since fault_set(). */
uint64_t fault_count(void);
/* How often a site has been asked for since fault_set(), and whether it was ever refused so. */
uint64_t site_uses(const fk_site *site);
bool site_was_refused(const fk_site *site, bool stays);
/* A port that refuses; rig_init() before. */
void fault_port(rig *r);

/* ---- a town -------------------------------------------------------------------------------------- */

void town_start(town *t, const char *name, const char *store, bool direct, bool is_remote);
/* With or without memory: true when all of it has worked. */
bool town_join(town *t);
void town_work(town *t);
void town_look(town *t);
void town_leave(town *t);
/* With memory again: everything works, and what was acknowledged is there. */
void town_check(town *t);
void town_stop(town *t);

#endif /* FK_TESTS_OOM_CLUSTER_TOWN_H */
