/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_CONTROL_H
#define FK_WIRE_CONTROL_H

/*
 * What two systems say to each other about themselves: serializer 17, one letter of manifest each.
 * These messages are never compressed.
 */

#include "wire/proto.h"

enum { FK_SERIALIZER_CONTROL = 17 };

typedef enum fk_control_kind { /* in the order of their manifests, 'a' to 'p' */
                               FK_CONTROL_NONE = 0,
                               FK_CONTROL_QUARANTINED,
                               FK_CONTROL_TERMINATING,
                               FK_CONTROL_TERMINATING_ACK,
                               FK_CONTROL_HANDSHAKE_REQ,
                               FK_CONTROL_HANDSHAKE_RSP,
                               FK_CONTROL_REF_TABLE,
                               FK_CONTROL_REF_TABLE_ACK,
                               FK_CONTROL_MANIFEST_TABLE,
                               FK_CONTROL_MANIFEST_TABLE_ACK,
                               FK_CONTROL_SYSTEM_MESSAGE,
                               FK_CONTROL_ACK,
                               FK_CONTROL_NACK,
                               FK_CONTROL_HEARTBEAT,
                               FK_CONTROL_HEARTBEAT_RSP,
                               FK_CONTROL_FLUSH,
                               FK_CONTROL_FLUSH_ACK,
                               FK_CONTROL_COUNT,
} fk_control_kind;

/* Each struct begins with the mask of wire/proto.h, which only the decoder writes. */
typedef struct fk_wire_address {
    uint32_t has;
    uint32_t port;
    fk_str protocol; /* "pekko" */
    fk_str system;
    fk_str host;
} fk_wire_address;

typedef struct fk_wire_unique { /* one incarnation of a system */
    uint32_t has;
    fk_wire_address address;
    uint64_t uid;
} fk_wire_unique;

typedef struct fk_wire_nothing {
    uint32_t has;
} fk_wire_nothing;

typedef struct fk_wire_from {
    uint32_t has;
    fk_wire_unique from;
} fk_wire_from;

typedef struct fk_wire_quarantined {
    uint32_t has;
    fk_wire_unique from, to;
} fk_wire_quarantined;

typedef struct fk_wire_handshake {
    uint32_t has;
    fk_wire_unique from;
    fk_wire_address to;
} fk_wire_handshake;

/* keys[i] is to be written as values[i]. */
typedef struct fk_wire_advertisement {
    uint32_t has;
    uint32_t version;
    fk_wire_unique from;
    uint64_t origin_uid; /* of the system that is to use the table */
    fk_proto_list keys;
    fk_proto_list values;
} fk_wire_advertisement;

typedef struct fk_wire_advertisement_ack {
    uint32_t has;
    uint32_t version;
    fk_wire_unique from;
} fk_wire_advertisement_ack;

/* A system message with a number. */
typedef struct fk_wire_numbered {
    uint32_t has;
    int32_t serializer;
    fk_str message;
    fk_str manifest;
    uint64_t seq;
    fk_wire_unique ack_to;
} fk_wire_numbered;

typedef struct fk_wire_ack { /* and nack */
    uint32_t has;
    uint64_t seq;
    fk_wire_unique from;
} fk_wire_ack;

typedef struct fk_wire_heartbeat_rsp {
    uint32_t has;
    uint64_t uid;
} fk_wire_heartbeat_rsp;

typedef struct fk_wire_flush_ack {
    uint32_t has;
    int32_t expected; /* acks in all; 1 from those who do not say */
} fk_wire_flush_ack;

typedef struct fk_wire_control {
    fk_control_kind kind;
    union {
        fk_wire_nothing nothing; /* heartbeat, flush */
        fk_wire_from from;       /* terminating and its ack, handshake response */
        fk_wire_quarantined quarantined;
        fk_wire_handshake handshake;
        fk_wire_advertisement table;
        fk_wire_advertisement_ack table_ack;
        fk_wire_numbered system_message;
        fk_wire_ack ack; /* ack, nack */
        fk_wire_heartbeat_rsp heartbeat_rsp;
        fk_wire_flush_ack flush_ack;
    } as;
} fk_wire_control;

/* "d"; static. */
fk_str fk__control_manifest(fk_control_kind kind);
/* FK_E_NO_CODEC when there is no such manifest. */
FK_MUST_USE fk_err fk__control_decode(fk_str manifest, fk_str bytes, fk_wire_control *out,
                                      fk_wire_fault *fault);
size_t fk__control_size(const fk_wire_control *control);
/* size as fk__control_size() said. */
void fk__control_encode(const fk_wire_control *control, unsigned char *to, size_t size);

/* The next pair of a table that was decoded: cursors are 0 at first; false at the end. */
typedef struct fk_wire_pair {
    size_t key_cursor, value_cursor;
    fk_str key;
    uint32_t value;
} fk_wire_pair;

bool fk__advertisement_next(const fk_wire_advertisement *table, fk_wire_pair *pair);

#endif /* FK_WIRE_CONTROL_H */
