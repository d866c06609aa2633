/* SPDX-License-Identifier: Apache-2.0 */
/* The hash map: its hash is keyed with a secret that differs between two processes, and a walk is
 * in the order of insertion whatever the secret; the map from strings holds what it promises. The
 * program runs itself to be several processes. */

#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sublet/hash.h>

struct item {
    UT_hash_handle hh;
    char key[16];
};

/* One line: the seed, the bucket of one key in a large table, and the keys in the order of a walk.
 */
static void print_self(void)
{
    struct item items[100] = {0}, *map = NULL;
    unsigned hash;

    HASH_FUNCTION("tenant", 6, hash);
    printf("%016llx %08x", (unsigned long long)hash_seed(), hash);
    for (size_t i = 0; i < COUNT(items); i++) {
        snprintf(items[i].key, sizeof items[i].key, "k%zu", i);
        HASH_ADD_STR(map, key, &items[i]);
    }
    for (struct item *at = map; at; at = at->hh.next)
        printf(" %s", at->key);
    printf("\n");
    HASH_CLEAR(hh, map);
}

/* The line that another process of this program prints. */
static void read_other(char *line, size_t size)
{
    int ends[2], status;
    ssize_t n;
    size_t used = 0;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_hash", "print", NULL);
        _exit(127);
    }
    close(ends[1]);
    while ((n = read(ends[0], line + used, size - 1 - used)) > 0)
        used += (size_t)n;
    line[used] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void differs_between_processes(void **state)
{
    char one[2048], two[2048];

    (void)state;
    read_other(one, sizeof one);
    read_other(two, sizeof two);
    assert_memory_not_equal(one, two, 16);           /* the seed */
    assert_memory_not_equal(one + 17, two + 17, 8);  /* what is made of it */
    assert_string_equal(one + 17 + 8, two + 17 + 8); /* the walk */
    assert_true(strstr(one, " k0 k1 k2 k3 ") != NULL);
}

static void is_keyed_with_the_seed(void **state)
{
    unsigned hash;

    (void)state;
    HASH_FUNCTION("tenant", 6, hash);
    assert_int_equal(hash, (unsigned)str_hash(STR("tenant"), hash_seed()));
    assert_true(hash_seed() == hash_seed());
}

/* --- the map from strings: look-ups, growth, removal while walking --- */

struct entry {
    struct map_entry entry;
    char key[16];
    bool seen;
};

enum { N = 1000 };

static void see(void *ctx, struct map_entry *e)
{
    struct entry *at = CONTAINER(e, struct entry, entry);

    (void)ctx;
    assert_false(at->seen);
    at->seen = true;
}

static void remove_odd(void *ctx, struct map_entry *e)
{
    struct entry *at = CONTAINER(e, struct entry, entry);

    if ((at->key[strlen(at->key) - 1] - '0') % 2)
        map_remove(ctx, e);
}

static void everything_is_found(void **state)
{
    struct entry *entries = mem_alloc(N * sizeof(*entries));
    struct map m = {0};

    (void)state;
    assert_null(map_get(&m, STR("none")));
    for (int i = 0; i < N; i++) {
        snprintf(entries[i].key, sizeof(entries[i].key), "k%d", i);
        map_put(&m, &entries[i].entry, str_c(entries[i].key));
    }
    for (int i = 0; i < N; i++)
        assert_ptr_equal(map_get(&m, str_c(entries[i].key)), &entries[i].entry);
    map_each(&m, see, NULL);
    for (int i = 0; i < N; i++)
        assert_true(entries[i].seen);

    map_each(&m, remove_odd, &m);
    assert_int_equal(map_count(&m), N / 2);
    assert_null(map_get(&m, STR("k1")));
    assert_non_null(map_get(&m, STR("k2")));
    map_clear(&m);
    assert_int_equal(map_count(&m), 0);
    mem_free(entries);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differs_between_processes),
        cmocka_unit_test(is_keyed_with_the_seed),
        cmocka_unit_test(everything_is_found),
    };

    (void)argv;
    if (argc > 1) {
        print_self();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
