/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "demo_nodes.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_SECONDS = 30 };

/* In the child, which has one thread of many that the parent had: system calls only. */
static void become_node(char *const argv[], int out, int log, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(CLI_FAILED); /* which died before it could be told */
    setpgid(0, 0);                              /* Ctrl-C is for the parent, who closes in order */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) _exit(CLI_FAILED);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) _exit(CLI_FAILED);
    execv("/proc/self/exe", argv);
    _exit(CLI_FAILED);
}

bool demo_node_start(demo_node *node, int *ready_fd)
{
    char path[300], store[300], listen[32], ttl[16];
    int fd[2];
    snprintf(path, sizeof path, "%s/node%u.log", node->folder, node->number);
    snprintf(store, sizeof store, "sqlite:%s/bank.db", node->folder);
    snprintf(listen, sizeof listen, "127.0.0.1:%u", node->port);
    snprintf(ttl, sizeof ttl, "%d", DEMO_TTL_MS);
    char words[][12] = { "fraktor", "node", "--name", "bank", "--listen", "--store", "--ttl" };
    char *argv[] = { words[0], words[1], words[2], words[3], words[4], listen,
                     words[5], store,    words[6], ttl,      NULL };
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) return false;
    if (pipe2(fd, O_CLOEXEC) != 0) {
        close(log);
        return false;
    }
    pid_t parent = getpid();
    node->pid = fork();
    if (node->pid == 0) become_node(argv, fd[1], log, parent);
    close(fd[1]);
    close(log);
    if (node->pid < 0) {
        node->pid = 0;
        close(fd[0]);
        return false;
    }
    *ready_fd = fd[0];
    return true;
}

/* One line, within the time; false: it did not come. */
static bool read_line(int fd, char *line, size_t size)
{
    size_t len = 0;
    double until = cli_seconds() + READY_SECONDS;
    while (len + 1 < size) {
        struct pollfd p = { fd, POLLIN, 0 };
        double left = until - cli_seconds();
        if (left <= 0) return false;
        if (poll(&p, 1, (int)(left * 1e3) + 1) < 0 && errno != EINTR) return false;
        if ((p.revents & (POLLIN | POLLHUP)) == 0) continue;
        ssize_t n = read(fd, line + len, 1);
        if (n <= 0) return false;
        if (line[len++] == '\n') break;
    }
    line[len] = '\0';
    return true;
}

bool demo_node_await(demo_node *node, int ready_fd)
{
    char line[1024];
    unsigned port = 0;
    bool ok = read_line(ready_fd, line, sizeof line);
    close(ready_fd); /* it says nothing more */
    const char *member = ok ? strstr(line, " member=") : NULL;
    if (member == NULL || sscanf(member, " member=%299s", node->id) != 1) return false;
    const char *colon = strrchr(node->id, ':');
    if (colon == NULL || sscanf(colon + 1, "%u", &port) != 1) return false;
    node->port = (uint16_t)port;
    return true;
}

void demo_node_kill(demo_node *node)
{
    int status;
    if (node->pid == 0) return;
    kill(node->pid, SIGKILL);
    while (waitpid(node->pid, &status, 0) < 0 && errno == EINTR) continue;
    node->pid = 0;
}

void demo_node_drain(demo_node *node)
{
    if (node->pid != 0) kill(node->pid, SIGTERM);
}

bool demo_node_is_gone(demo_node *node, bool *in_order)
{
    int status = 0;
    if (node->pid == 0) return true;
    pid_t gone = waitpid(node->pid, &status, WNOHANG);
    if (gone == 0 || (gone < 0 && errno == EINTR)) return false;
    *in_order = gone == node->pid && WIFEXITED(status) && WEXITSTATUS(status) == CLI_OK;
    node->pid = 0;
    return true;
}
