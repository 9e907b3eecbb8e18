/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Instead of net*.c, in a build without libuv: nothing listens, so there never is a network. */

#include "host/net.h"

fk_err fk__net_listen(fk_system_config *config, const fk_port *port, int *fd)
{
    (void)config;
    (void)port;
    (void)fd;
    return FK_E_UNSUPPORTED;
}

uint16_t fk__net_port(int fd)
{
    (void)fd;
    return 0;
}

fk_err fk__net_create(fk_system *sys, int listener, bool is_driven, fk_net **out)
{
    (void)sys;
    (void)listener;
    (void)is_driven;
    (void)out;
    return FK_E_UNSUPPORTED;
}

void fk__net_destroy(fk_net *net)
{
    FK_ASSERT(net == NULL);
}

void fk__net_wake(fk_net *net)
{
    FK_ASSERT(net == NULL);
}

void fk__net_run(fk_net *net)
{
    FK_ASSERT(net == NULL);
}

int fk__net_fd(const fk_net *net)
{
    FK_ASSERT(net == NULL);
    return -1;
}

fk_time fk__net_left(fk_net *net)
{
    FK_ASSERT(net == NULL);
    return FK_NEVER;
}

void fk__net_turn(fk_net *net, uint32_t windows)
{
    (void)windows;
    FK_ASSERT(net == NULL);
}
