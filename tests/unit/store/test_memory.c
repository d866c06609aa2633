/* SPDX-License-Identifier: Apache-2.0
 * A start without memory fails, and the next one has everything: neither a page nor the file is
 * called damaged for want of memory. A read that was interrupted and repeated is no failure. */
#include "fault_vfs.h"
#include "harness.h"

#include <sublet/store_quarantine.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE    4096
#define OBJECTS 300

static int setup(void **state)
{
    fault_setup(state);
    fixture_in_memory(*state);
    return 0;
}

/* Many pages, one of them noise, and answered writes in the log. */
static void make_store(struct fixture *f, bool damaged)
{
    static const char noise[PAGE] = {1, 2, 3};
    struct fixture source;
    char name[16], path[128];

    fixture_init(&source);
    fixture_in_memory(&source);
    fixture_open(&source);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        put(&source, "a", name, i);
    }
    assert_true(fixture_sync(&source));
    fixture_reopen(&source);
    put(&source, "a", "logged", 7);
    assert_true(fixture_sync(&source));
    copy_store(source.dir, f->dir);
    fixture_fini(&source);
    if (!damaged)
        return;
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, 9 * PAGE, SEEK_SET);
    assert_int_equal(fwrite(noise, 1, PAGE, file), PAGE);
    fclose(file);
}

/* False: the start was refused. */
static bool opens(struct fixture *f)
{
    err_clear(&f->err);
    if (!store_open(&f->loop, &f->options, &f->store, &f->err)) {
        f->pods = store_resource(f->store, STR("pods"));
        return true;
    }
    f->store = NULL;
    assert_ptr_equal(f->err.kind, &ERR_STORAGE);
    return false;
}

static size_t check(struct fixture *f, bool damaged)
{
    struct store_damage d;

    store_damage(f->store, &d);
    assert_true(!d.salvaged || damaged);
    assert_false(d.own_account || d.log || d.log_missing || d.unattributed || d.records);
    assert_int_equal(damaged, d.objects + d.nameless > 0);
    assert_int_equal(committed(f, "a", "logged"), 7);
    return store_count(f->store, f->pods) + d.nameless;
}

/* At each call for memory in turn: it fails once, or from there on. */
static void starve(struct fixture *f, bool damaged, int times)
{
    int refused = 0, failures = 1;
    size_t whole = 0;

    for (int after = 0; failures; after += 1 + after / 8) {
        make_store(f, damaged);
        fault_arm_memory(after, times);
        bool open = opens(f);
        failures = fault_disarm();
        if (!open) {
            if (!str_contains(f->err.message, STR("memory")))
                fail_msg("after %d: %.*s", after, STR_F(f->err.message));
            /* Of a good file; a damaged one may have been made again already. */
            assert_true(damaged || file_size(f, "state.db.damaged") == -1);
            fixture_open(f);
            refused++;
        }
        size_t n = check(f, damaged);
        whole = whole ? whole : n;
        assert_int_equal(n, whole);
        fixture_close(f);
        char path[128];
        snprintf(path, sizeof(path), "%s/state.db.damaged", f->dir);
        assert_int_equal(unlink(path), damaged ? 0 : -1);
    }
    print_message("%d refused\n", refused);
    assert_true(refused > 10);
}

static void test_no_memory(void **state)
{
    for (int i = 0; i < 4; i++)
        starve(*state, i % 2, i / 2 ? -1 : 1);
}

static void test_interrupted(void **state)
{
    struct fixture *f = *state;

    make_store(f, true);
    fault_arm(FAULT_READ, FAULT_ANY, FAULT_INTERRUPTED, 0, -1);
    if (!opens(f))
        fail_msg("%.*s", STR_F(f->err.message));
    assert_true(fault_disarm() > 0);
    check(f, true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, fault_teardown)
    const struct CMUnitTest tests[] = {TEST(no_memory), TEST(interrupted)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
