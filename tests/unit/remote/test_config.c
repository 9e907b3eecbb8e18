/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is asked of remoting, completed or refused. */

#include <string.h>

#include "remote/config.h"
#include "support/test.h"

static const fk_remoting_config PLAIN = { .enabled = true, .host = "10.0.0.7", .port = 2552 };

TEST(remoting_config_is_completed)
{
    fk_remoting_config c;
    CHECK_OK(fk__remoting_configure(&PLAIN, &c));
    CHECK_STR(c.host, "10.0.0.7");
    CHECK_STR(c.bind_host, "127.0.0.1");
    CHECK_U64(c.port, 2552);
    CHECK_U64(c.bind_port, 0); /* the listener's business */
    CHECK_U64(c.outbound_max, 16384);
    CHECK_U64(c.frame_max, 256 << 10);
    CHECK_U64(c.frame_max_large, 2 << 20);
    CHECK_U64(c.connections_max, 1024);
    CHECK_U64(c.half_open_max, 64);
    CHECK_U64(c.watches_max, 10000);
    CHECK_U64(c.systems_max, 4096);
    CHECK_U64(c.quarantined_max, 65536);
    CHECK_U64(c.connecting_max, 64);
    CHECK_U64(c.inbound_bytes_max, 64 << 20);
    CHECK_U64(c.handshake_timeout, FK_SECONDS(20));
    CHECK_U64(c.reconnect_min, FK_MILLIS(100));
    CHECK_U64(c.reconnect_max, FK_SECONDS(30));
    CHECK_U64(c.heartbeat_every, FK_SECONDS(1));
    CHECK_U64(c.heartbeat_pause, FK_SECONDS(10));
    CHECK_U64(c.idle_after, FK_MINUTES(5));
    CHECK_U64(c.compress_every, FK_MINUTES(1));
    CHECK(!c.trusting);
    CHECK(!c.allow_unencrypted_beyond_loopback);
    CHECK_U64(c.deferred_max, 0); /* depends on the rules: the authorities' */
}

TEST(remoting_config_completed_twice_is_the_same)
{
    fk_remoting_config once, twice;
    memset(&once, 0, sizeof(once));
    memset(&twice, 0, sizeof(twice));
    CHECK_OK(fk__remoting_configure(&PLAIN, &once));
    CHECK_OK(fk__remoting_configure(&once, &twice));
    const void *first = &once, *second = &twice; /* all bytes, also those between the fields */
    CHECK(memcmp(first, second, sizeof(once)) == 0);
}

TEST(remoting_config_keeps_what_was_asked)
{
    static const char *const LARGE[] = { "/user/files", "/user/a/b", NULL };
    fk_remoting_config asked = PLAIN, c;
    asked.bind_host = "0.0.0.0";
    asked.bind_port = 7;
    asked.large = LARGE;
    asked.frame_max = 4 << 10;
    asked.frame_max_large = 64 << 20;
    asked.connections_max = 3;
    asked.reconnect_min = FK_MINUTES(2);
    asked.compress_every = FK_NEVER;
    CHECK_OK(fk__remoting_configure(&asked, &c));
    CHECK_STR(c.bind_host, "0.0.0.0");
    CHECK_U64(c.bind_port, 7);
    CHECK(c.large == LARGE);
    CHECK_U64(c.frame_max, 4 << 10);
    CHECK_U64(c.frame_max_large, 64 << 20);
    CHECK_U64(c.half_open_max, 3); /* not more than there may be at all */
    CHECK_U64(c.reconnect_max, FK_MINUTES(2));
    CHECK(c.compress_every == FK_NEVER);
}

TEST(remoting_config_binds_to_the_loopback_of_the_same_family)
{
    fk_remoting_config asked = PLAIN, c;
    asked.host = "[2001:db8::7]";
    CHECK_OK(fk__remoting_configure(&asked, &c));
    CHECK_STR(c.bind_host, "::1");
}

#define REFUSED(error, member, ...)                                                                \
    do {                                                                                           \
        fk_remoting_config asked = PLAIN, c = { .port = 1 };                                       \
        asked.member = (__VA_ARGS__);                                                              \
        CHECK_ERR(fk__remoting_configure(&asked, &c), error);                                      \
        CHECK_U64(c.port, 1); /* nothing was written */                                            \
    } while (0)

TEST(remoting_config_refuses_what_cannot_work)
{
    static const char *const RELATIVE[] = { "/user/files", "files", NULL };
    static const char *const ROOT[] = { "/", NULL };
    REFUSED(FK_E_INVALID, enabled, false);
    REFUSED(FK_E_AUTHORITY, host, NULL);
    REFUSED(FK_E_AUTHORITY, host, "");
    REFUSED(FK_E_INVALID, bind_host, "");
    REFUSED(FK_E_INVALID, frame_max, (4 << 10) - 1);
    REFUSED(FK_E_INVALID, frame_max, (64 << 20) + 1);
    REFUSED(FK_E_INVALID, frame_max_large, (4 << 10) - 1);
    REFUSED(FK_E_INVALID, frame_max_large, (64 << 20) + 1);
    REFUSED(FK_E_INVALID, half_open_max, 1025);
    REFUSED(FK_E_INVALID, systems_max, (1 << 20) + 1);
    REFUSED(FK_E_INVALID, quarantined_max, (1 << 20) + 1);
    REFUSED(FK_E_INVALID, inbound_bytes_max, (2 << 20) - 1); /* no large frame would fit */
    REFUSED(FK_E_INVALID, handshake_timeout, -1);
    REFUSED(FK_E_INVALID, reconnect_min, -1);
    REFUSED(FK_E_INVALID, reconnect_max, -1);
    REFUSED(FK_E_INVALID, reconnect_max, FK_MILLIS(99));
    REFUSED(FK_E_INVALID, heartbeat_every, -1);
    REFUSED(FK_E_INVALID, heartbeat_pause, -1);
    REFUSED(FK_E_INVALID, idle_after, -1);
    REFUSED(FK_E_INVALID, compress_every, -1);
    REFUSED(FK_E_INVALID, large, RELATIVE);
    REFUSED(FK_E_INVALID, large, ROOT);
}
