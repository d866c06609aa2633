/* SPDX-License-Identifier: Apache-2.0 */
/* A file is read whole or not at all, and replaced so. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sublet/file.h>

static char path[] = "/tmp/sublet-file-XXXXXX";

static int setup(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static void reads_up_to_the_limit(void **state)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct str text;

    (void)state;
    err_init(&err, a);
    assert_int_equal(file_read(a, str_c(path), 10, &text, &err), 0);
    assert_true(str_eqc(text, "0123456789"));
    assert_int_equal(file_read(a, str_c(path), 9, &text, &err), -1);
    assert_true(str_has_suffix(err.message, STR(": File too large")));
    arena_free(a);
}

static void says_what_the_system_says(void **state)
{
    struct arena *a = arena_new(0);
    struct err err;
    struct str text;

    (void)state;
    err_init(&err, a);
    assert_int_equal(file_read(a, STR("/nowhere/at/all"), 10, &text, &err), -1);
    assert_true(str_eqc(err.message, "cannot open /nowhere/at/all: No such file or directory"));
    assert_int_equal(file_read(a, STR("/tmp"), 10, &text, &err), -1);
    assert_true(str_eqc(err.message, "cannot read /tmp: Is a directory"));
    arena_free(a);
}

static void is_replaced_whole(void **state)
{
    struct arena *a = arena_new(0);
    struct str text, other = arena_printf(a, "%s.new", path);
    struct err err;

    (void)state;
    err_init(&err, a);
    assert_int_equal(file_replace(str_c(path), STR("new"), &err), 0);
    assert_int_equal(file_read(a, str_c(path), 10, &text, &err), 0);
    assert_true(str_eqc(text, "new"));
    assert_int_equal(access(other.p, F_OK), -1);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0); /* no file can take its place */
    assert_int_equal(file_replace(str_c(path), STR("new"), &err), -1);
    assert_true(str_has_prefix(err.message, STR("cannot rename ")));
    assert_int_equal(access(other.p, F_OK), -1);
    rmdir(path);
    assert_int_equal(file_replace(str_c(path), STR("left for teardown"), &err), 0);
    assert_int_equal(file_replace(STR("/nowhere/at/all"), STR("new"), &err), -1);
    assert_true(
        str_eqc(err.message, "cannot write /nowhere/at/all.new: No such file or directory"));
    arena_free(a);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_up_to_the_limit),
        cmocka_unit_test(says_what_the_system_says),
        cmocka_unit_test(is_replaced_whole),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
