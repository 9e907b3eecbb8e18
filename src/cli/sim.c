/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fraktor sim: the simulator is a program of its own, because it holds the core a second time,
 * built with switches that --mutate can reach. It lies beside the running program.
 */

#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char PROGRAM[] = "fraktor-sim";

static const char HELP[] =
    "usage: fraktor sim SCENARIO [--seed S] [--runs N] [--mutate NAME] [--json]\n"
    "       fraktor sim --list\n"
    "\n"
    "Runs the deterministic simulator. All arguments go to the program fraktor-sim, which lies\n"
    "in the same directory as fraktor; it is not there now, so this is all there is to say.\n"
    "\n"
    "example: fraktor sim kernel --seed 1 --runs 200 --json\n";

/* Writes the path of the sibling to out, which has PATH_MAX bytes. */
static bool sibling(char *out)
{
    ssize_t len = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (len <= 0) return false;
    out[len] = '\0';
    char *slash = strrchr(out, '/');
    if (slash == NULL) return false;
    if ((size_t)(slash + 1 - out) + sizeof PROGRAM > PATH_MAX) return false;
    memcpy(slash + 1, PROGRAM, sizeof PROGRAM);
    return true;
}

int cli_sim(int argc, char **argv)
{
    char path[PATH_MAX];

    if (!sibling(path)) return cli_failed("sim", "cannot tell where this program lies");
    argv[0] = path;
    fflush(stdout);
    execv(path, argv);
    int error = errno;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(HELP, stdout);
        return CLI_OK;
    }
    if (error == ENOENT) {
        return cli_failed("sim", "the simulator is not installed: there is no %s", path);
    }
    return cli_failed("sim", "cannot run %s: %s", path, strerror(error));
}
