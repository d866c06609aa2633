/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of paths and the structured merge: what is read comes out as it was, operations are those of
 * sets, merged lists keep upstream's order, and managers own what they should. */
#include "test.h"
#include "../../quoted.h"

#include <sublet/fields.h>

#include <string.h>

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

/* JSON with ' for ", so that cases stay readable. */
static cJSON *tree(const char *text)
{
    return quoted_json(a, str_c(text));
}

static struct field_set *set(const char *text)
{
    struct field_set *made;

    assert_int_equal(set_from_json(a, tree(text), &made), 0);
    return made;
}

static void assert_tree(const cJSON *got, const char *want)
{
    const cJSON *expected = tree(want);

    if (!json_equal(got, expected))
        fail_msg("got  %.*s\nwant %.*s", STR_F(json_text(a, got)), STR_F(json_text(a, expected)));
}

static void assert_set(const struct field_set *got, const char *want)
{
    assert_tree(set_to_json(a, got), want);
}

static struct field_type type_of(const char *group, const char *kind)
{
    struct field_type t = {.schema = &SCHEMA_BUILTIN,
                           .node = schema_builtin_root(str_c(group), STR("v1"), str_c(kind))};

    assert_true(t.node != 0);
    return t;
}

/* ---- sets ---- */

static void test_codec_keeps_sets(void **state)
{
    static const char *const same[] = {
        "{}",
        "{'f:a':{}}",
        "{'f:a':{'.':{},'f:b':{}},'f:c':{'f:d':{}}}",
        "{'k:{\\'a\\':1,\\'b\\':\\'x\\'}':{'f:b':{}},'v:\\'q\\'':{},'v:2':{},'i:3':{}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++) {
        char *text = arena_cstr(a, str_c(same[i]));

        assert_set(set(text), text);
    }
}

static void test_codec_sorts_and_ignores_what_it_does_not_know(void **state)
{
    struct field_set *x = set("{'f:b':{},'v:10':{},'v:9':{},'f:a':{},'z:new':{'f:q':{}}}");
    struct str text = json_text(a, set_to_json(a, x));

    (void)state;
    assert_true(str_eqc(text, "{\"f:a\":{},\"f:b\":{},\"v:9\":{},\"v:10\":{}}"));
}

/* Many spellings of one key are one key, in no more than linear time or so. */
static void test_codec_unites_spellings(void **state)
{
    struct buf b = BUF_INIT(0);
    struct field_set *x;
    struct err err;
    cJSON *text;

    (void)state;
    err_init(&err, a);
    buf_char(&b, '{');
    for (unsigned i = 0; i < 1 << 15; i++) {
        buf_printf(&b, "%s\"k:{", i ? "," : "");
        for (unsigned bit = 0; bit < 15; bit++)
            buf_addc(&b, i >> bit & 1 ? " " : "\\t");
        buf_printf(&b, "\\\"a\\\":1}\":{\"f:x%u\":{}}", i);
    }
    buf_char(&b, '}');
    assert_int_equal(json_parse(a, buf_str(&b), &text, &err), 0);
    assert_int_equal(set_from_json(a, text, &x), 0);
    assert_int_equal(x->n, 1);
    assert_int_equal(x->items[0].below->n, 1 << 15);
    buf_fini(&b);
}

static void test_codec_refuses_nonsense(void **state)
{
    static const char *const bad[] = {
        "{'nonsense':{}}", "{'f':{}}", "{'k:[]':{}}", "{'k:{':{}}",  "{'v:':{}}",
        "{'i:x':{}}",      "[]",       "{'f:a':1}",   "{'v:{]':{}}", "{'f:a':'text'}"};
    struct field_set *made;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (set_from_json(a, tree(bad[i]), &made) == 0)
            fail_msg("%s was read", bad[i]);
}

static void test_operations(void **state)
{
    struct field_set *x = set("{'f:a':{'.':{},'f:b':{}},'f:c':{}}");
    struct field_set *y = set("{'f:a':{},'f:c':{'f:d':{}},'f:e':{}}");

    (void)state;
    assert_set(set_union(a, x, y), "{'f:a':{'.':{},'f:b':{}},'f:c':{'.':{},'f:d':{}},'f:e':{}}");
    assert_set(set_intersection(a, x, y), "{'f:a':{}}");
    assert_set(set_difference(a, x, y), "{'f:a':{'f:b':{}},'f:c':{}}");
    assert_set(set_difference(a, y, x), "{'f:c':{'f:d':{}},'f:e':{}}");
    assert_set(set_without(a, x, y), "{'f:c':{}}");
    assert_null(set_difference(a, x, x));
    assert_ptr_equal(set_difference(a, x, NULL), x);
    assert_set(x, "{'f:a':{'.':{},'f:b':{}},'f:c':{}}");
}

/* The way of small sets beside large ones gives the same. */
static void test_operations_of_unequal_sets(void **state)
{
    struct field_set *x = set("{'f:k7':{},'f:z':{},'f:k9':{'f:a':{}}}"), *y = NULL;

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct element e = {.kind = ELEMENT_FIELD, .name = arena_printf(a, "k%d", i)};
        struct str text = arena_printf(a, "{'f:%.*s':{}}", STR_F(e.name));

        y = set_union(a, y, set(text.p));
    }
    assert_set(set_intersection(a, x, y), "{'f:k7':{}}");
    assert_set(set_intersection(a, y, x), "{'f:k7':{}}");
    assert_set(set_difference(a, x, y), "{'f:z':{},'f:k9':{'f:a':{}}}");
    assert_int_equal(set_difference(a, y, x)->n, 99);
}

static void test_paths(void **state)
{
    static const char *const paths[] = {"metadata.labels", "spec", NULL};
    struct field_set *x = set_of(a, paths);

    (void)state;
    assert_set(x, "{'f:metadata':{'f:labels':{}},'f:spec':{}}");
    assert_true(set_has_path(x, "metadata.labels"));
    assert_false(set_has_path(x, "metadata"));
    assert_false(set_has_path(x, "spec.x"));
}

/* ---- walks ---- */

static const char DEPLOYMENT[] =
    "{'spec':{'replicas':1,'selector':{'matchLabels':{'a':'b'}},'template':{'spec':{'containers':["
    "{'name':'c','ports':[{'containerPort':80}],'args':['x'],'env':[{'name':'E','value':'1'}]}]}}}"
    "}";

static void test_set_of_a_value(void **state)
{
    (void)state;
    assert_set(typed_set(a, type_of("apps", "Deployment"), tree(DEPLOYMENT)),
               "{'f:spec':{'f:replicas':{},'f:selector':{},'f:template':{'f:spec':{'f:containers':{"
               "'k:{\\'name\\':\\'c\\'}':{'.':{},'f:name':{},'f:args':{},'f:env':{"
               "'k:{\\'name\\':\\'E\\'}':{'.':{},'f:name':{},'f:value':{}}},'f:ports':{"
               "'k:{\\'containerPort\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:containerPort':{}}"
               "}}}}}}}");
}

static void assert_diff(const char *kind, const char *old, const char *now, const char *removed,
                        const char *modified, const char *added)
{
    struct field_diff d;
    struct err err;

    err_init(&err, a);
    assert_int_equal(typed_compare(a, type_of("", kind), tree(old), tree(now), &d, &err), 0);
    assert_set(d.removed, removed);
    assert_set(d.modified, modified);
    assert_set(d.added, added);
}

static void test_compare(void **state)
{
    (void)state;
    assert_diff("ConfigMap", "{'data':{'a':'1','b':'2','c':'3'}}",
                "{'data':{'a':'1','b':'9','d':'4'}}", "{'f:data':{'f:c':{}}}",
                "{'f:data':{'f:b':{}}}", "{'f:data':{'f:d':{}}}");
    assert_diff("ConfigMap", "{}", "{'data':{'a':'1'}}", "{}", "{}",
                "{'f:data':{'.':{},'f:a':{}}}");
    assert_diff("ConfigMap", "{'data':{'a':'1'}}", "{'data':{}}", "{'f:data':{'f:a':{}}}", "{}",
                "{}");
    assert_diff("ConfigMap", "{'data':{}}", "{'data':null}", "{}", "{'f:data':{}}", "{}");
    assert_diff("Pod", "{'spec':{'containers':[{'name':'a'}]}}",
                "{'spec':{'containers':[{'name':'b'},{'name':'a','image':'x'}]}}", "{}", "{}",
                "{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'f:image':{}},"
                "'k:{\\'name\\':\\'b\\'}':{'.':{},'f:name':{}}}}}");
    /* Items that share an identity are one whole. */
    assert_diff("Pod", "{'spec':{'containers':[{'name':'a'}]}}",
                "{'spec':{'containers':[{'name':'a'},{'name':'a','image':'x'}]}}",
                "{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}}}}}", "{}",
                "{'f:spec':{'f:containers':{'k:{\\'name\\':\\'a\\'}':{}}}}");
}

static void assert_merged(const char *kind, const char *live, const char *config, const char *want)
{
    struct field_type t = type_of("", kind);
    struct err err;
    cJSON *made;

    err_init(&err, a);
    assert_int_equal(typed_validate(a, t, tree(config), &err), 0);
    assert_int_equal(typed_merge(a, t, tree(live), tree(config), &made, &err), 0);
    assert_tree(made, want);
}

static void test_merge(void **state)
{
    (void)state;
    assert_merged("ConfigMap", "{'data':{'a':'1','b':'2'}}", "{'data':{'b':'3','c':'4'}}",
                  "{'data':{'a':'1','b':'3','c':'4'}}");
    assert_merged("ConfigMap", "{'data':{'a':'1'}}", "{'data':null}", "{'data':{'a':'1'}}");
    assert_merged("ConfigMap", "{'immutable':true}", "{'immutable':null}", "{'immutable':null}");
    assert_merged("Pod", "{'spec':{'nodeSelector':{'a':'1'}}}",
                  "{'spec':{'nodeSelector':{'b':'1'}}}", "{'spec':{'nodeSelector':{'b':'1'}}}");
}

static void assert_atomics(const char *kind, const char *config, const char *want)
{
    struct buf paths = BUF_INIT(0);

    assert_int_equal(typed_atomics(type_of("", kind), tree(config), &paths), *want != 0);
    assert_true(str_eqc(buf_str(&paths), want));
    buf_fini(&paths);
}

static void test_atomics(void **state)
{
    (void)state;
    assert_atomics("ConfigMap", "{'data':{'a':'1'},'metadata':{'finalizers':['x']}}", "");
    assert_atomics("Pod", "{'spec':{'containers':[{'name':'a'},{'name':'b','args':['x']}]}}",
                   ".spec.containers[1].args");
    assert_atomics("Pod", "{'spec':{'nodeSelector':{'b':'1'},'tolerations':[{'key':'k'}]}}",
                   ".spec.nodeSelector, .spec.tolerations");
    assert_atomics("Pod", "{'spec':5}", "");
}

/* finalizers is a set: order by the applied list where both have an item, else as it was. */
static void test_merge_order(void **state)
{
    static const struct {
        const char *live, *config, *want;
    } cases[] = {
        {"['a','b','c']", "['c','a']", "['b','c','a']"},
        {"['a','b']", "['b','x','a']", "['b','x','a']"},
        {"['a','b','c','d']", "['x','b','y','d','z']", "['a','x','b','c','y','d','z']"},
        {"['a','b']", "[]", "['a','b']"},
        {"[]", "['a']", "['a']"},
        {"['a','a','b']", "['b','a']", "['b','a']"},
        {"['q','q']", "['a']", "['q','q','a']"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str live = arena_printf(a, "{'metadata':{'finalizers':%s}}", cases[i].live);
        struct str config = arena_printf(a, "{'metadata':{'finalizers':%s}}", cases[i].config);
        struct str want = arena_printf(a, "{'metadata':{'finalizers':%s}}", cases[i].want);

        assert_merged("ConfigMap", live.p, config.p, want.p);
    }
}

static void test_remove(void **state)
{
    struct field_type t = type_of("", "ConfigMap");
    const char *object = "{'data':{'a':'1','b':'2'},'metadata':{'finalizers':['x','y']}}";

    (void)state;
    assert_tree(typed_remove(a, t, tree(object),
                             set("{'f:data':{'f:a':{}},'f:metadata':{"
                                 "'f:finalizers':{'v:\\'x\\'':{}}}}")),
                "{'data':{'b':'2'},'metadata':{'finalizers':['y']}}");
    assert_tree(typed_remove(a, t, tree(object), set("{'f:data':{'f:a':{},'f:b':{}}}")),
                "{'data':null,'metadata':{'finalizers':['x','y']}}");
    assert_tree(typed_remove(a, t, tree(object), set("{'f:data':{}}")),
                "{'metadata':{'finalizers':['x','y']}}");
}

static void test_ensure_named(void **state)
{
    (void)state;
    assert_set(
        typed_ensure_named(a, type_of("", "ConfigMap"),
                           set("{'f:data':{'f:a':{}},'f:metadata':{'f:labels':{'f:x':{}}}}")),
        "{'f:data':{'.':{},'f:a':{}},'f:metadata':{'.':{},'f:labels':{'.':{},'f:x':{}}}}");
}

static void test_what_became_atomic_is_owned_whole(void **state)
{
    (void)state;
    assert_set(typed_reconcile(
                   a, type_of("apps", "Deployment"),
                   set("{'f:spec':{'f:selector':{'f:matchLabels':{'f:a':{}}},'f:paused':{}}}")),
               "{'f:spec':{'f:selector':{},'f:paused':{}}}");
}

static void assert_refused(const char *kind, const char *config, const char *why)
{
    struct err err;

    err_init(&err, a);
    assert_int_equal(typed_validate(a, type_of("", kind), tree(config), &err), -1);
    if (!str_eqc(err.message, why))
        fail_msg("got  %.*s\nwant %s", STR_F(err.message), why);
}

static void test_validate(void **state)
{
    (void)state;
    assert_refused("ConfigMap", "{'foo':1}", ".foo: field not declared in schema");
    assert_refused("ConfigMap", "{'data':'x'}", ".data: expected map, got &{x}");
    assert_refused("ConfigMap", "{'immutable':'yes'}", ".immutable: expected boolean, got &{yes}");
    assert_refused("Pod", "{'spec':{'priority':'x'}}",
                   ".spec.priority: expected numeric (int or float), got string");
    assert_refused("Pod", "{'spec':{'containers':[{'name':'a'},{'name':'a'}]}}",
                   ".spec.containers: duplicate entries for key [name=\"a\"]");
    assert_refused("Pod", "{'spec':{'containers':['a']}}",
                   ".spec.containers: element 0: associative list with keys may not have non-map "
                   "elements");
    assert_refused(
        "Pod", "{'metadata':{'finalizers':[null]},'spec':{'x':1}}",
        "errors:\n  .metadata.finalizers: element 0: associative list without keys has an "
        "element that's an explicit null\n  .spec.x: field not declared in schema");
}

/* ---- managers ---- */

static cJSON *convert(void *ctx, struct arena *arena, const cJSON *object, struct str to)
{
    (void)ctx;
    (void)arena;
    return str_eqc(to, "v1") ? (cJSON *)(uintptr_t)object : NULL;
}

static bool version_type(void *ctx, struct str version, struct field_type *ret)
{
    (void)ctx;
    *ret = type_of("", "ConfigMap");
    return str_eqc(version, "v1");
}

static const struct field_versions VERSIONS = {.convert = convert, .type_of = version_type};

static struct field_write write_of(const char *manager, const char *now)
{
    return (struct field_write){.arena = a,
                                .versions = &VERSIONS,
                                .version = STR("v1"),
                                .manager = str_c(manager),
                                .now = str_c(now)};
}

/* One apply onto *live and *entries; NULL, or why it was refused. */
static const char *apply(cJSON **live, cJSON **entries, const char *manager, const char *config,
                         bool force)
{
    struct field_write w = write_of(manager, "2026-01-01T00:00:00Z");
    struct managers m;
    struct str why;
    struct err err;
    cJSON *made;

    err_init(&err, a);
    assert_int_equal(managers_read(a, *entries, &m, &why), 0);
    if (managers_apply(&w, &m, *live, tree(config), force, &made, &err))
        return arena_cstr(a, err.message);
    *live = made ? made : *live;
    *entries = managers_write(a, &m);
    return NULL;
}

static void test_apply_owns_shares_and_drops(void **state)
{
    cJSON *live = tree("{'kind':'ConfigMap'}"), *entries = NULL;

    (void)state;
    assert_null(apply(&live, &entries, "a", "{'data':{'x':'1','y':'1'}}", false));
    assert_null(apply(&live, &entries, "b", "{'data':{'x':'1'}}", false));
    /* What changed nothing has no time. */
    assert_tree(entries, "[{'manager':'b','operation':'Apply','apiVersion':'v1',"
                         "'fieldsType':'FieldsV1','fieldsV1':{'f:data':{'f:x':{}}}},"
                         "{'manager':'a','operation':'Apply','apiVersion':'v1',"
                         "'fieldsType':'FieldsV1','time':'2026-01-01T00:00:00Z',"
                         "'fieldsV1':{'f:data':{'f:x':{},'f:y':{}}}}]");
    assert_null(apply(&live, &entries, "a", "{}", false));
    assert_tree(live, "{'kind':'ConfigMap','data':{'x':'1'}}");
    assert_int_equal(json_count(entries), 1);
    assert_null(apply(&live, &entries, "b", "{}", false));
    assert_tree(live, "{'kind':'ConfigMap'}");
    assert_null(entries);
}

static void test_conflicts(void **state)
{
    cJSON *live = tree("{}"), *entries = NULL;

    (void)state;
    assert_null(apply(&live, &entries, "a", "{'data':{'x':'1','y':'1'}}", false));
    assert_string_equal(apply(&live, &entries, "b", "{'data':{'x':'2'}}", false),
                        "Apply failed with 1 conflict: conflict with \"a\": .data.x");
    assert_string_equal(
        apply(&live, &entries, "b", "{'data':{'y':'2','x':'2'}}", false),
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.x\n- .data.y");
    assert_tree(live, "{'data':{'x':'1','y':'1'}}");
    assert_null(apply(&live, &entries, "b", "{'data':{'x':'2'}}", true));
    assert_tree(live, "{'data':{'x':'2','y':'1'}}");
    assert_string_equal(apply(&live, &entries, "a", "{'data':{'x':'1','y':'1'}}", false),
                        "Apply failed with 1 conflict: conflict with \"b\": .data.x");
}

static void test_updates_take_over(void **state)
{
    struct field_write w = write_of("u", "2026-01-02T00:00:00Z");
    cJSON *live = tree("{}"), *entries = NULL, *now = tree("{'data':{'x':'2','z':'1'}}");
    struct managers m;
    struct str why;
    struct err err;

    (void)state;
    err_init(&err, a);
    assert_null(apply(&live, &entries, "a", "{'data':{'x':'1','y':'1'}}", false));
    assert_int_equal(managers_read(a, entries, &m, &why), 0);
    assert_int_equal(managers_update(&w, &m, live, now, &err), 0);
    /* a is left with nothing: x was changed and y is gone. */
    assert_tree(managers_write(a, &m),
                "[{'manager':'u','operation':'Update','apiVersion':'v1','fieldsType':'FieldsV1',"
                "'time':'2026-01-02T00:00:00Z','fieldsV1':{'f:data':{'f:x':{},'f:z':{}}}}]");
}

static void test_updaters_are_capped(void **state)
{
    cJSON *live = tree("{'data':{}}");
    struct managers m = {0};
    struct err err;
    cJSON *entries;

    (void)state;
    err_init(&err, a);
    for (int i = 0; i < 20; i++) {
        struct str name = arena_printf(a, "m%02d", i);
        struct field_write w = write_of(name.p, arena_printf(a, "2026-01-01T00:00:%02dZ", i).p);
        cJSON *now = json_copy(a, live);

        json_set_str(a, json_get(now, "data"), name.p, STR("1"));
        assert_int_equal(managers_update(&w, &m, live, now, &err), 0);
        live = now;
    }
    entries = managers_write(a, &m);
    assert_int_equal(json_count(entries), 10);
    assert_true(str_eqc(json_str_at(json_first(entries), "manager"), "ancient-changes"));
    assert_int_equal(json_count(json_path(json_first(entries), "fieldsV1.f:data")), 11);
}

static void test_entries_that_cannot_be_read(void **state)
{
    static const char *const bad[] = {
        "[{'operation':'Nonsense','apiVersion':'v1','fieldsType':'FieldsV1'}]",
        "[{'operation':'Apply','fieldsType':'FieldsV1'}]",
        "[{'operation':'Apply','apiVersion':'v1'}]",
        "[{'operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV2'}]",
        "[{'operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':{'x':{}}}]",
    };
    struct managers m;
    struct str why;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(managers_read(a, tree(bad[i]), &m, &why), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_codec_keeps_sets),
        TEST(test_codec_sorts_and_ignores_what_it_does_not_know),
        TEST(test_codec_unites_spellings),
        TEST(test_codec_refuses_nonsense),
        TEST(test_operations),
        TEST(test_operations_of_unequal_sets),
        TEST(test_paths),
        TEST(test_set_of_a_value),
        TEST(test_compare),
        TEST(test_merge),
        TEST(test_atomics),
        TEST(test_merge_order),
        TEST(test_remove),
        TEST(test_ensure_named),
        TEST(test_what_became_atomic_is_owned_whole),
        TEST(test_validate),
        TEST(test_apply_owns_shares_and_drops),
        TEST(test_conflicts),
        TEST(test_updates_take_over),
        TEST(test_updaters_are_capped),
        TEST(test_entries_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
