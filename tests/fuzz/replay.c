/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a fuzz target over its corpus without libFuzzer, so that every compiler and every suite
 * does. Each file is given as a heap block of just its size, whole and cut after each of its
 * bytes: half a text is what a parser sees most often in trouble.
 *
 * usage: fuzz_path DIRECTORY|FILE...
 */

#include <dirent.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

enum { FILE_SIZE_MAX = 1 << 16, PATH_SIZE_MAX = 4096 };

static size_t files, inputs;

static void run(const char *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) abort();
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    inputs++;
}

static void replay_file(const char *path)
{
    static char bytes[FILE_SIZE_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
    for (size_t cut = 0; cut <= size; cut++) run(bytes, cut);
    files++;
}

static void replay(const char *path)
{
    struct dirent **entry = NULL;
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISDIR(status.st_mode)) {
        replay_file(path);
        return;
    }
    int count = scandir(path, &entry, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char file[PATH_SIZE_MAX];
        snprintf(file, sizeof(file), "%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.') replay_file(file);
        free(entry[i]);
    }
    free(entry);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) replay(argv[i]);
    printf("%zu files, %zu inputs\n", files, inputs);
    return files > 0 ? 0 : 1; /* nothing to run is a mistake, not a success */
}
