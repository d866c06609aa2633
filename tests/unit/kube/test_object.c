/* SPDX-License-Identifier: Apache-2.0 */
/* Access to objects: metadata, times, conditions, owners, tolerations. What the workload
 * controllers do with them is tested there; here are the edges. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sublet/object.h>
#include <sublet/quantity.h>
#include <sublet/yaml.h>

static struct arena *a;

static int set_up(void **state)
{
    (void)state;
    a = arena_new(0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    a = arena_free(a);
    return 0;
}

static cJSON *doc(const char *yaml)
{
    cJSON *ret = NULL;

    assert_int_equal(yaml_parse(a, str_c(yaml), NULL, NULL, &ret, NULL), 0);
    return ret;
}

static void assert_json(const cJSON *got, const char *want)
{
    if (json_equal(got, doc(want)))
        return;
    print_error("got  %.*s\nwant %s\n", STR_F(json_text(a, got)), want);
    fail();
}

static void metadata(void **state)
{
    const cJSON *o = doc("{metadata: {labels: {a: b}, annotations: {c: d}, creationTimestamp: "
                         "'2026-01-02T03:04:05Z', deletionTimestamp: 'soon'}}");

    (void)state;
    assert_true(str_eqc(meta_label(o, "a"), "b") && str_eqc(meta_annotation(o, "c"), "d"));
    assert_true(!meta_label(o, "c").n && !meta_annotation(NULL, "c").n);
    assert_int_equal(meta_created_s(o), 1767323045);
    assert_int_equal(object_time_s(o, "metadata.deletionTimestamp"), 0); /* no time */
    assert_int_equal(object_time_s(o, "metadata.none"), 0);
    assert_true(object_is_terminating(o) && meta_is_terminating(json_get(o, "metadata")));
    assert_false(object_is_terminating(json_get(o, "metadata")) || meta_is_terminating(NULL));
    assert_true(object_may_be_terminating(json_text(a, o)));
    assert_false(object_may_be_terminating(STR("{\"deletionTimestam\":1}")));
}

static void conditions(void **state)
{
    cJSON *o = doc("{}");

    (void)state;
    assert_json(condition_new(a, "Ready", "True", "Fine", STR("m"), STR("t")),
                "{type: Ready, status: 'True', lastTransitionTime: t, reason: Fine, message: m}");
    assert_true(condition_set(a, o, "Ready", "True", "Fine", STR("m"), 0));
    assert_false(condition_set(a, o, "Ready", "True", "Fine", STR("m"), 60));
    assert_true(condition_set(a, o, "Ready", "True", "Fine", STR("other"), 60));
    assert_json(condition_of(o, "Ready"), "{type: Ready, status: 'True', reason: Fine, message: "
                                          "other, lastTransitionTime: '1970-01-01T00:00:00Z'}");
    assert_true(condition_set(a, o, "Ready", "False", "Fine", STR("other"), 60));
    assert_true(str_eqc(json_str_at(condition_of(o, "Ready"), "lastTransitionTime"),
                        "1970-01-01T00:01:00Z"));

    o = doc("{status: {conditions: null}}");
    cJSON *made = condition_ensure(a, o, "Ready");
    assert_ptr_equal(condition_ensure(a, o, "Ready"), made);
    assert_json(o, "{status: {conditions: [{type: Ready}]}}");
}

static void owners(void **state)
{
    const cJSON *owner = doc("{metadata: {name: node-1, uid: u}}");
    cJSON *o = doc("{metadata: {ownerReferences: [{name: other}]}}");

    (void)state;
    owner_set(a, o, NULL);
    assert_json(o, "{metadata: {ownerReferences: [{name: other}]}}");
    owner_set(a, o, owner_reference(a, STR("v1"), STR("Node"), owner));
    assert_json(
        o, "{metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: node-1, uid: u}]}}");
    assert_null(owner_controller(o));
}

static void tolerations(void **state)
{
    static const struct {
        const char *toleration;
        bool covers;
    } cases[] = {
        {"{operator: Exists}", true},
        {"{key: k, operator: Exists}", true},
        {"{key: k, operator: Exists, effect: NoSchedule}", true},
        {"{key: k, operator: Exists, effect: NoExecute}", false},
        {"{key: other, operator: Exists}", false},
        {"{key: k, value: v}", true},
        {"{key: k, operator: Equal, value: v}", true},
        {"{key: k, operator: Equal, value: w}", false},
        {"{value: v}", false}, /* without a key only Exists */
        {"{key: k, operator: Gt, value: v}", false},
        {"{}", false},
    };
    const cJSON *taint = doc("{key: k, value: v, effect: NoSchedule}");
    cJSON *list = doc("[{key: other, operator: Exists}, {key: k, value: v}, {operator: Exists}]");

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(toleration_covers(doc(cases[i].toleration), taint), cases[i].covers);
    assert_ptr_equal(toleration_find(list, taint), json_at(list, 1));
    assert_null(toleration_find(NULL, taint));
}

static void quantities(void **state)
{
    (void)state;
    assert_true(quantity_equal(a, doc("1000m"), doc("'1'")));
    assert_true(quantity_equal(a, doc("1"), doc("'1'")));
    assert_true(quantity_equal(a, doc("x"), doc("x")));
    assert_false(quantity_equal(a, doc("1Gi"), doc("1G")));
    assert_false(quantity_equal(a, doc("x"), doc("1")));
    assert_false(quantity_equal(a, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(metadata, set_up, tear_down),
        cmocka_unit_test_setup_teardown(conditions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tolerations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quantities, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
