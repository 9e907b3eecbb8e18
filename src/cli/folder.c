/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool folder_make(const char *purpose, char path[FOLDER_MAX])
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] == '\0') base = "/tmp";
    int len = snprintf(path, FOLDER_MAX, "%s/fraktor-%s-XXXXXX", base, purpose);
    return len < FOLDER_MAX - 16 && mkdtemp(path) != NULL; /* with room for the names in it */
}

void folder_remove(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    if (dir == NULL) return;
    while ((entry = readdir(dir)) != NULL) unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}
