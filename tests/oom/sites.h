/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_OOM_SITES_H
#define FK_TESTS_OOM_SITES_H

/* The linker's table of all places that allocate, and who sweeps which. */

#include <stdbool.h>
#include <string.h>

#include "fraktor/port.h"

extern const fk_site __start_fk_sites[], __stop_fk_sites[];

/* True: cluster_sweep.c refuses it; else sweep.c does. */
static inline bool site_is_of_cluster(const fk_site *site)
{
    static const char *const PARTS[] = { "src/cluster/", "src/store/", "src/host/cluster.c",
                                         "src/host/placement_driver.c", "src/core/tray.c" };
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
        if (strstr(site->file, PARTS[i]) != NULL) return true;
    }
    return false;
}

#endif /* FK_TESTS_OOM_SITES_H */
