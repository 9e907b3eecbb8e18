/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/config.h"

#include "base/base.h"
#include "wire/frame.h"

static void config_number(uint32_t *number, uint32_t otherwise)
{
    if (*number == 0) *number = otherwise;
}

/* False: no time at all. */
static bool config_time(fk_time *time, fk_time otherwise)
{
    if (*time == 0) *time = otherwise;
    return *time > 0;
}

static bool config_frames(fk_remoting_config *c)
{
    config_number(&c->frame_max, FK_FRAME_MAX);
    config_number(&c->frame_max_large, FK_FRAME_MAX_LARGE);
    if (c->frame_max < FK_REMOTING_FRAME_MIN || c->frame_max > FK_REMOTING_FRAME_MOST) return false;
    uint32_t larger = c->frame_max > c->frame_max_large ? c->frame_max : c->frame_max_large;
    config_number(&c->inbound_bytes_max, larger > FK_INBOUND_BYTES ? larger : FK_INBOUND_BYTES);
    if (c->inbound_bytes_max < larger || c->inbound_bytes_max < FK_INBOUND_LEAST) return false;
    return c->frame_max_large >= FK_REMOTING_FRAME_MIN &&
           c->frame_max_large <= FK_REMOTING_FRAME_MOST;
}

static bool config_connections(fk_remoting_config *c)
{
    config_number(&c->connections_max, 1024);
    config_number(&c->half_open_max, c->connections_max < 64 ? c->connections_max : 64);
    config_number(&c->outbound_max, 16384);
    config_number(&c->watches_max, 10000);
    config_number(&c->references_max, 16384);
    config_number(&c->watchers_max, (c->references_max + 7) / 8);
    config_number(&c->connecting_max, 64);
    config_number(&c->systems_max, 4096);
    config_number(&c->quarantined_max, 65536);
    if (c->systems_max > FK_REMOTING_SYSTEMS_MOST) return false;
    if (c->quarantined_max > FK_REMOTING_SYSTEMS_MOST) return false;
    return c->half_open_max <= c->connections_max;
}

static bool config_times(fk_remoting_config *c)
{
    bool ok = config_time(&c->handshake_timeout, FK_SECONDS(20));
    ok = config_time(&c->reconnect_min, FK_MILLIS(100)) && ok;
    /* Whoever asks only for a long first delay gets no shorter ones after it. */
    fk_time longest = c->reconnect_min > FK_SECONDS(30) ? c->reconnect_min : FK_SECONDS(30);
    ok = config_time(&c->reconnect_max, longest) && ok;
    ok = config_time(&c->heartbeat_every, FK_SECONDS(1)) && ok;
    ok = config_time(&c->heartbeat_pause, FK_SECONDS(10)) && ok;
    ok = config_time(&c->idle_after, FK_MINUTES(5)) && ok;
    ok = config_time(&c->compress_every, FK_MINUTES(1)) && ok;
    return ok && c->reconnect_min <= c->reconnect_max;
}

/* Each is a path below a guardian. */
static bool config_large(const char *const *large)
{
    for (; large != NULL && *large != NULL; large++) {
        if ((*large)[0] != '/' || (*large)[1] == '\0') return false;
    }
    return true;
}

/* As it stands in an address: an IPv6 host is in brackets there. */
static const char *config_bind_host(const char *host)
{
    return host[0] == '[' ? "::1" : "127.0.0.1";
}

fk_err fk__remoting_configure(const fk_remoting_config *asked, fk_remoting_config *out)
{
    fk_remoting_config c = *asked;
    if (!c.enabled) return FK_E_INVALID;
    if (c.host == NULL || c.host[0] == '\0') return FK_E_AUTHORITY;
    if (c.bind_host == NULL) c.bind_host = config_bind_host(c.host);
    if (c.bind_host[0] == '\0') return FK_E_INVALID;
    if (!config_frames(&c) || !config_connections(&c) || !config_times(&c)) return FK_E_INVALID;
    if (!config_large(c.large)) return FK_E_INVALID;
    *out = c;
    return FK_OK;
}
