/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_IDENTITY_H
#define FK_CLUSTER_IDENTITY_H

#include "fraktor/placement.h"

/* An actor name that is spelled in one way only: without escapes. Its length, at least 1, is whatever the
 * caller allows. */
bool fk__name_is_plain(fk_str name);

#endif /* FK_CLUSTER_IDENTITY_H */
