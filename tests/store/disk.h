/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_STORE_DISK_H
#define FK_TESTS_STORE_DISK_H

/* A folder of the test's own with the file of a store in it; the kit's store is there. */

extern char disk_folder[64];
extern char disk_path[96];

/* Runs SQL on the file by another connection. */
void disk_tamper(const char *text);
/* A number that a query gives. */
long long disk_query(const char *text);

#endif /* FK_TESTS_STORE_DISK_H */
