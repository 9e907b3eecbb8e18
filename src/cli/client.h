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

/* What all commands with a client can be told. */
typedef struct client_options {
    const char *command;
    void (*help)(const char *command);
    endpoint listen;
    uint64_t timeout_ms;
    bool json, helped;
} client_options;

enum { CLIENT_TIMEOUT_MS = 5000 };

/* For getopt_long(); the last. */
#define CLIENT_OPTIONS                                                                             \
    { "timeout", required_argument, NULL, 't' }, { "listen", required_argument, NULL, 'l' },       \
        { "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' },                    \
    {                                                                                              \
        NULL, 0, NULL, 0                                                                           \
    }

/* Takes one of them, or what getopt_long() gives for a mistake. False: there is nothing more to do, and
 * *code is the exit code; what was wrong has been said. */
bool client_option(int opt, char **argv, client_options *out, int *code);

#endif /* FK_CLI_CLIENT_H */
