/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_CLIENT_H
#define FK_CLI_CLIENT_H

/*
 * A client: a small system that lives for one message. It has an address of its own, because an answer
 * is a message, too, and needs somewhere to go.
 */

#include <fraktor/fraktor.h>

#include "endpoint.h"

typedef struct client_request {
    const char *path; /* of the actor, complete */
    fk_out msg;
    bool wants_answer; /* else it is enough that the actor has it */
    fk_time timeout;
    endpoint listen; /* host "": at loopback */
} client_request;

typedef struct client_answer {
    const fk_type *type; /* NULL: there is none, or it has no name here */
    char *data;          /* ends in NUL; client_answer_free() */
    size_t len;
    double seconds;
    fk_err err;
    char why[2048]; /* what went wrong, where, and what to do */
} client_answer;

/* True: the answer is there, or the actor has the message. False: err and why are. */
bool client_call(const client_request *request, client_answer *out);
void client_answer_free(client_answer *answer);

#endif /* FK_CLI_CLIENT_H */
