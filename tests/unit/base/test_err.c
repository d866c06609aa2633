/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: the words of apimachinery, with and without an arena, and that nothing in an err points
 * to memory of its caller. Must never compare kinds otherwise than by address. */

#include "test.h"

#include <sublet/err.h>

static void sets_and_wraps(void **state)
{
    struct arena *a = arena_new(0);
    struct err err;
    char text[] = "disk full";

    (void)state;
    err_init(&err, a);
    assert_null(err.kind);
    assert_int_equal(err_set(&err, &ERR_STORAGE, "%s", text), -1);
    text[0] = 'X';
    assert_ptr_equal(err.kind, &ERR_STORAGE);
    assert_str(err.message, "disk full");
    assert_int_equal(err_wrap(&err, "row %d", 3), -1);
    assert_str(err.message, "row 3: disk full");
    assert_int_equal(err.kind->code, 507);
    assert_string_equal(err.kind->reason, "InsufficientStorage");

    err_clear(&err);
    assert_null(err.kind);
    assert_int_equal(err.message.n, 0);
    assert_ptr_equal(err.arena, a);
    arena_free(a);
}

static void does_without_an_arena(void **state)
{
    struct err err = {0};
    char wide[600];

    (void)state;
    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    err_set(&err, &ERR_INTERNAL, "short");
    err_wrap(&err, "outer");
    assert_str(err.message, "outer: short");
    assert_ptr_equal(err.message.p, err.text);

    err_set(&err, &ERR_INTERNAL, "a%s\xc3\xa9", wide);
    assert_int_equal(err.message.n, sizeof err.text - 1);
    wide[253] = 0;
    err_set(&err, &ERR_INTERNAL, "a%s\xc3\xa9", wide); /* 256 bytes; é is not cut in two */
    assert_int_equal(err.message.n, 254);
    err_not_found(&err, STR_NULL, STR("pods"), STR("x"));
    assert_str(err.message, "pods \"x\" not found");
    assert_int_equal(err.name.n, 0);
    err_cause(&err, STR("FieldValueInvalid"), STR("spec"), STR("m"));
    assert_null(err.causes);

    assert_int_equal(err_set(NULL, &ERR_INTERNAL, "%s", ""), -1);
    assert_int_equal(err_wrap(NULL, "%s", ""), -1);
    assert_int_equal(err_not_found(NULL, STR_NULL, STR("pods"), STR("x")), -1);
    assert_int_equal(err_forbidden(NULL, STR_NULL, STR_NULL, STR_NULL, "%s", "no"), -1);
    err_cause(NULL, STR_NULL, STR_NULL, STR_NULL);
}

static void speaks_like_apimachinery(void **state)
{
    struct arena *a = arena_new(0);
    struct err err;

    (void)state;
    err_init(&err, a);
    err_not_found(&err, STR("apps"), STR("deployments"), STR("x"));
    assert_str(err.message, "deployments.apps \"x\" not found");
    assert_ptr_equal(err.kind, &ERR_NOT_FOUND);
    assert_str(err.group, "apps");
    assert_str(err.resource, "deployments");
    assert_str(err.name, "x");

    err_already_exists(&err, STR("apps"), STR("deployments"), STR("x"));
    assert_str(err.message, "deployments.apps \"x\" already exists");
    assert_ptr_equal(err.kind, &ERR_ALREADY_EXISTS);

    err_conflict(&err, STR_NULL, STR("pods"), STR("x"),
                 "the object has been modified; please apply your changes to the latest version "
                 "and try again");
    assert_str(err.message, "Operation cannot be fulfilled on pods \"x\": the object has been "
                            "modified; please apply your changes to the latest version and try "
                            "again");
    assert_ptr_equal(err.kind, &ERR_CONFLICT);

    err_forbidden(&err, STR_NULL, STR("pods"), STR("x"), "quota %d", 1);
    assert_str(err.message, "pods \"x\" is forbidden: quota 1");
    err_forbidden(&err, STR("apps"), STR("deployments"), STR_NULL, "no");
    assert_str(err.message, "deployments.apps is forbidden: no");
    err_forbidden(&err, STR_NULL, STR_NULL, STR("x"), "no");
    assert_str(err.message, "forbidden: no");
    assert_ptr_equal(err.kind, &ERR_FORBIDDEN);
    arena_free(a);
}

static void quotes_names_like_go(void **state)
{
    struct arena *a = arena_new(0);
    struct err err;

    (void)state;
    err_init(&err, a);
    err_not_found(&err, STR_NULL, STR("pods"), STR("a\"\\\n\x1b\xff\xc3\xa9\0"));
    assert_str(err.message, "pods \"a\\\"\\\\\\n\\x1b\\xff\xc3\xa9\\x00\" not found");
    arena_free(a);
}

static void keeps_causes_in_order(void **state)
{
    struct arena *a = arena_new(0);
    struct err err, moved;

    (void)state;
    err_init(&err, a);
    moved = err; /* errs are values until the first cause */
    err_cause(&moved, STR("FieldValueRequired"), STR("spec.a"), STR("one"));
    err_cause(&moved, STR("FieldValueInvalid"), STR("spec.b"), STR("two"));
    err_set(&moved, &ERR_INVALID, "invalid");
    assert_null(err.causes);
    assert_str(moved.causes->field, "spec.a");
    assert_str(moved.causes->next->type, "FieldValueInvalid");
    assert_str(moved.causes->next->message, "two");
    assert_null(moved.causes->next->next);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_and_wraps),           cmocka_unit_test(does_without_an_arena),
        cmocka_unit_test(speaks_like_apimachinery), cmocka_unit_test(quotes_names_like_go),
        cmocka_unit_test(keeps_causes_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
