/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over files: each argument is a file or a directory of them. Why: what a fuzzer
 * once found stays found, with any compiler and in every test run. Must never pass without having
 * replayed anything. */

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sublet/buf.h>
#include <sublet/mem.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static unsigned replayed;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct buf b = BUF_INIT(0);
    char part[4096];
    unsigned char *exact;
    size_t n;

    if (!file) {
        perror(path);
        return -1;
    }
    while ((n = fread(part, 1, sizeof part, file)) > 0)
        buf_add(&b, (struct str){part, n});
    fclose(file);

    /* Of its exact size, so that a read past the end is seen. */
    exact = mem_alloc(b.n);
    if (b.n)
        memcpy(exact, b.p, b.n);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, b.n);
    replayed++;
    mem_free(exact);
    buf_fini(&b);
    return 0;
}

static int replay_directory(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    int result = 0;

    if (!directory) {
        perror(path);
        return -1;
    }
    while (result == 0 && (entry = readdir(directory))) {
        char name[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        result = replay_file(name);
    }
    closedir(directory);
    return result;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat st;
        bool directory = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);

        if ((directory ? replay_directory(argv[i]) : replay_file(argv[i])) < 0)
            return 1;
    }
    printf("%u inputs replayed\n", replayed);
    return replayed ? 0 : 1;
}
