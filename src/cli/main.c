/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The command table. A new command is one line here, one in cli.h and a file of its own. */

#include "cli.h"

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    const char *about;
    cli_command_fn run;
} command;

static const command COMMANDS[] = {
    { "ask", "ask an actor of a running system something", cli_ask },
    { "assoc", "list the other systems that a node knows", cli_assoc },
    { "bench", "measure this machine with the classic actor workloads", cli_bench },
    { "call", "ask a grain of a cluster something", cli_call },
    { "demo", "run a cluster of three nodes, kill one, and show that no money is lost", cli_demo },
    { "grains", "list the grains that are active on a node", cli_grains },
    { "load", "move money between the accounts of a cluster, and check the books", cli_load },
    { "members", "list the members of a cluster", cli_members },
    { "node", "run a system that others can send to", cli_node },
    { "path", "take actor paths apart, resolve and compare them", cli_path },
    { "quarantine", "have a node keep another system out, or let it in again", cli_quarantine },
    { "sim", "run the deterministic simulator (the program fraktor-sim)", cli_sim },
    { "tell", "send a message to an actor of a running system", cli_tell },
    { "where", "say which member of a cluster owns a grain, and why", cli_where },
};

enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0] };

static void usage(FILE *out)
{
    fputs("usage: fraktor COMMAND [ARGUMENT]...\n"
          "       fraktor --help | --version\n"
          "\n"
          "The actor runtime fraktor, from the command line.\n"
          "\n"
          "commands:\n",
          out);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "  %-12s%s\n", COMMANDS[i].name, COMMANDS[i].about);
    }
    fputs("\n"
          "'fraktor COMMAND --help' explains one, with an example. Every command takes --json and\n"
          "then prints one object per line. Exit code: 0 ok, 1 failed, 2 wrong usage.\n"
          "\n"
          "example: fraktor bench pingpong --threads 2 --json\n",
          out);
}

static const command *find(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(COMMANDS[i].name, name) == 0) return &COMMANDS[i];
    }
    return NULL;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("fraktor %s\n", fk_version());
        return CLI_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return CLI_OK;
    }
    const command *found = find(argv[1]);
    if (found == NULL) return cli_usage_error("", "there is no command '%s'", argv[1]);
    return found->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);
    /* Output that did not arrive (a full disk, say) must not look like success. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (code == CLI_OK) code = cli_failed("", "cannot write to stdout");
    }
    return code;
}
