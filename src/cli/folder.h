/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_FOLDER_H
#define FK_CLI_FOLDER_H

/* Temporary folders, in TMPDIR or /tmp. */

#include <stdbool.h>

enum { FOLDER_MAX = 256 };

/* "/tmp/fraktor-demo-x3Fa1Q" for "demo". */
bool folder_make(const char *purpose, char path[FOLDER_MAX]);
/* With the files in it; it must have no folders. */
void folder_remove(const char *path);

#endif /* FK_CLI_FOLDER_H */
