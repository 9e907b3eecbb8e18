/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sweep's scenarios with sockets. They are left out when the library was built without them. */

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "oom/sweep.h"

bool sweep_has_network(void)
{
    fk_system *sys;
    fk_system_config config = { .workers = FK_WORKERS_NONE,
                                .remoting = { .enabled = true, .host = "127.0.0.1" } };
    fk_err err = fk_system_start(&config, &sys);
    if (err == FK_E_UNSUPPORTED) return false;
    CHECK_OK(err);
    CHECK_OK(fk_system_stop(sys));
    return true;
}

/* Whoever cannot be let in is turned away, and the next one can. */
static void let_in(sweep *s)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(fk_remoting_port(s->r.sys)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < 3; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(fd >= 0);
        CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
        rig_run(&s->r);
        close(fd);
        rig_run(&s->r);
    }
}

const scenario SWEEP_NET[] = {
    { "start with a network", NULL, NULL, SWEEP_LISTENS },
    { "start with a network and threads", NULL, NULL, SWEEP_LISTENS | 2 },
    { "somebody connects", NULL, let_in, SWEEP_LISTENS },
    { NULL, NULL, NULL, 0 },
};
