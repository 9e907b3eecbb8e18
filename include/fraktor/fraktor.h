/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_FRAKTOR_H
#define FK_FRAKTOR_H

/*
 * fraktor: an actor runtime for C. Include this; read in this order:
 *
 *   fraktor/base.h      errors, strings, time
 *   fraktor/message.h   messages and references; who owns a message after send (the library,
 *                       always, even on failure)
 *   fraktor/actor.h     what an actor is made of and what it may do: tell, spawn, stash, timers
 *   fraktor/event.h     what happens: dead letters, failures, lives; subscribing, publishing
 *   fraktor/log.h       what the program says; lines in logfmt or JSON
 *   fraktor/system.h    systems: start, spawn, send, stop, dead letters, counters
 *   fraktor/boot.h      starting a system step by step
 *   fraktor/ask.h       questions: an answer within a time, for threads and for actors
 *   fraktor/path.h      actor paths: read, write, compare, resolve
 *   fraktor/registry.h  from references to paths and back; uids
 *   fraktor/select.h    sending to whoever is at a path, with wildcards
 *   fraktor/router.h    many actors behind one reference: pools, groups, broadcast
 *   fraktor/remote.h    other systems: their states, what waits for them, quarantine
 *   fraktor/codec.h     how messages become bytes for other systems
 *   fraktor/cluster.h   grains: actors that are there when they are called, on one node at a time
 *   fraktor/store.h     where a cluster keeps its members, leases and the state of its grains
 *   fraktor/strategy.h  who should own what
 *   fraktor/lookup.h    from a key to its place, for drivers of your own
 *   fraktor/placement.h the machinery that decides which node runs a grain
 *   fraktor/shutdown.h  going down in phases, with tasks and deadlines
 *   fraktor/inspect.h   the tree of actors and a list of them, as text and JSON
 *   fraktor/port.h      the table of functions a system needs from its machine
 *   fraktor/host.h      Linux: own allocator, own event loop
 *
 * Words: *borrowed* (the default for pointers) - used until the call returns; *copied*; *taken* -
 * owned by the callee even if it fails; *lent* - yours until a stated moment.
 */

#include "fraktor/actor.h"
#include "fraktor/ask.h"
#include "fraktor/base.h"
#include "fraktor/boot.h"
#include "fraktor/cluster.h"
#include "fraktor/codec.h"
#include "fraktor/event.h"
#include "fraktor/host.h"
#include "fraktor/inspect.h"
#include "fraktor/log.h"
#include "fraktor/lookup.h"
#include "fraktor/message.h"
#include "fraktor/path.h"
#include "fraktor/placement.h"
#include "fraktor/port.h"
#include "fraktor/registry.h"
#include "fraktor/remote.h"
#include "fraktor/router.h"
#include "fraktor/select.h"
#include "fraktor/shutdown.h"
#include "fraktor/store.h"
#include "fraktor/strategy.h"
#include "fraktor/system.h"

#endif /* FK_FRAKTOR_H */
