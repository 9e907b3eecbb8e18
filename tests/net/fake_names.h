/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_NET_FAKE_NAMES_H
#define FK_TESTS_NET_FAKE_NAMES_H

/* Included before everything else when src/host/net*.c are compiled for these tests: they then call
 * the fake driver, while the library's own stays where it is. */

#define fk__driver_of        fake_driver_of
#define fk__driver_start     fake_driver_start
#define fk__driver_stop      fake_driver_stop
#define fk__driver_run       fake_driver_run
#define fk__driver_accepted  fake_driver_accepted
#define fk__driver_connected fake_driver_connected
#define fk__driver_writable  fake_driver_writable
#define fk__driver_read      fake_driver_read
#define fk__driver_closed    fake_driver_closed
#define getaddrinfo          fake_getaddrinfo

#endif /* FK_TESTS_NET_FAKE_NAMES_H */
