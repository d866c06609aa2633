/* SPDX-License-Identifier: Apache-2.0
 *
 * CustomResourceDefinitions against what a real server said of them (data/record_crds.py): what is
 * taken, what is refused, at which path and in which words. Then what must be refused for its
 * size. */

#include "cases.h"

#include <sublet/kinds.h>

#include "crd_version.h"

/* Reviewed: upstream prints Go structs, or knows what we do not serve. */
static const char *const QUIRKS[] = {
    "status-root", "status-root2", /* the value is a Go struct */
    "dupver",      "nostor",
    "nover",       /* likewise, and status.storedVersions of the same fault */
    "badver",      /* the same error again, at spec.version */
    "items-array", /* upstream judges no further */
    "root-def",    /* defaults at the root want apiVersion and kind */
    "def-defreq",  /* same words, for a default that is pruned first */
    NULL,
};

static void run_crd(struct tested *t)
{
    cJSON *crd = json_copy(t->arena, json_get(t->json, "crd"));
    struct field_errors e;

    for (size_t i = 0; QUIRKS[i]; i++) {
        if (!strcmp(t->name, QUIRKS[i]))
            return;
    }
    field_errors_init(&e, t->arena);
    KIND_CUSTOM_RESOURCE_DEFINITION.defaults(t->arena, crd);
    KIND_CUSTOM_RESOURCE_DEFINITION.validate(&e, crd, NULL);
    case_compare(t, causes_of(t->arena, &e), json_get(t->json, "causes"));
}

static void test_recorded(void **state)
{
    (void)state;
    run_cases("crd_schemas.jsonl", 100, run_crd);
}

/* ---- hostile ---- */

static size_t errors_of(struct str schema)
{
    struct arena *a = arena_new(0);
    cJSON *crd = parse_quoted(
        a, "{'metadata':{'name':'as.a.b'},'spec':{'group':'a.b','scope':'Cluster','names':{"
           "'plural':'as','kind':'A'},'versions':[{'name':'v1','served':true,'storage':true}]}}");
    struct field_errors e;
    struct err err;
    cJSON *tree;

    err_init(&err, a);
    assert_int_equal(json_parse(a, schema, &tree, &err), 0);
    json_set(a, json_ensure_object(a, json_first(json_path(crd, "spec.versions")), "schema"),
             "openAPIV3Schema", tree);
    field_errors_init(&e, a);
    KIND_CUSTOM_RESOURCE_DEFINITION.defaults(a, crd);
    KIND_CUSTOM_RESOURCE_DEFINITION.validate(&e, crd, NULL);
    size_t n = e.n;
    arena_free(a);
    return n;
}

static size_t nested(const char *open, const char *middle, const char *close, int depth)
{
    struct buf b = BUF_INIT(0);

    buf_addc(&b, "{\"type\":\"object\",\"properties\":{\"a\":");
    for (int i = 0; i < depth; i++)
        buf_addc(&b, open);
    buf_addc(&b, middle);
    for (int i = 0; i < depth; i++)
        buf_addc(&b, close);
    buf_addc(&b, "}}");
    size_t n = errors_of(buf_str(&b));
    buf_fini(&b);
    return n;
}

static void test_depth(void **state)
{
    const char *array = "{\"type\":\"array\",\"items\":", *leaf = "{\"type\":\"string\"}";

    (void)state;
    assert_int_equal(nested(array, leaf, "}", 100), 0);
    assert_int_equal(nested(array, leaf, "}", 126), 0);
    assert_true(nested(array, leaf, "}", 140) > 0);
    assert_true(nested(array, leaf, "}", 240) > 0);
    assert_true(nested("{\"type\":\"string\",\"not\":", "{}", "}", 140) > 0);
}

static void test_patterns_in_all(void **state)
{
    struct buf b = BUF_INIT(0);

    (void)state;
    buf_addc(&b, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 80; i++) {
        buf_printf(&b, "%s\"a%d\":{\"type\":\"string\",\"pattern\":\"", i ? "," : "", i);
        for (int k = 0; k < 1000; k++)
            buf_char(&b, 'a');
        buf_addc(&b, "\"}");
    }
    buf_addc(&b, "}}");
    assert_true(errors_of(buf_str(&b)) > 0);
    buf_fini(&b);
}

static void test_huge_enum(void **state)
{
    struct buf b = BUF_INIT(0);

    (void)state;
    buf_addc(&b, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"enum\":[0");
    for (int i = 1; i < 100000; i++)
        buf_printf(&b, ",%d", i);
    buf_addc(&b, "]}}}");
    assert_int_equal(errors_of(buf_str(&b)), 0);
    buf_fini(&b);
}

/* Schemas that are not even objects; the decoder lets them through to us. */
static void test_odd_shapes(void **state)
{
    static const char *const schemas[] = {
        "5",
        "[]",
        "null",
        "\"x\"",
        "{\"type\":5}",
        "{\"type\":\"object\",\"properties\":[1]}",
        "{\"type\":\"object\",\"properties\":{\"a\":5}}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":7}}}",
        "{\"type\":\"object\",\"allOf\":{\"a\":1},\"properties\":5}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"default\":{\"b\":1}}}}"};

    (void)state;
    for (size_t i = 0; i < COUNT(schemas); i++)
        assert_true(errors_of(str_c(schemas[i])) > 0);
}

/* ---- what is filled in, and how one goes ---- */

static void test_default_port(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *crd = parse_quoted(a, "{'spec':{'names':{'kind':'A'},'conversion':{'strategy':'Webhook',"
                                 "'webhook':{'clientConfig':{'service':{'name':'s'}}}}}}");

    (void)state;
    KIND_CUSTOM_RESOURCE_DEFINITION.defaults(a, crd);
    assert_int_equal(json_i64_at(crd, "spec.conversion.webhook.clientConfig.service.port", 0), 443);
    arena_free(a);
}

static void test_first_delete(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *crd =
        parse_quoted(a, "{'metadata':{'name':'as.a.b','finalizers':['a.b/c']},'spec':{},"
                        "'status':{'conditions':[{'type':'Established','status':'True'}]}}");

    (void)state;
    KIND_CUSTOM_RESOURCE_DEFINITION.prepare_delete(a, crd, 0);
    KIND_CUSTOM_RESOURCE_DEFINITION.prepare_delete(a, crd, 0);
    const cJSON *held = json_path(crd, "metadata.finalizers");
    assert_int_equal(json_count(held), 2);
    assert_true(str_eqc(json_str(json_at(held, 1)), "customresourcecleanup.apiextensions.k8s.io"));
    const cJSON *last = json_at(json_path(crd, "status.conditions"), 1);
    assert_true(str_eqc(json_str_at(last, "type"), "Terminating"));
    assert_true(str_eqc(json_str_at(last, "reason"), "InstanceDeletionPending"));
    arena_free(a);
}

/* ---- patterns: RE2's syntax ---- */

static void test_pattern_syntax(void **state)
{
    static const char *const good[] = {
        "",        "a|b",    "^$",           "(?i)x",      "(?P<name>x)", "(?<name>x)",
        "(?:x)*",  "a{2}",   "a{2,}",        "a{2,3}?",    "a{",          "a{,2}",
        "[]a]",    "[^]]",   "[[:alpha:]_]", "[\\d\\-]",   "\\.",         "\\x41",
        "\\x{41}", "\\pL",   "\\p{Greek}",   "\\Qa+(b\\E", "\\bx\\B",     "\\A\\z",
        "a??",     "a+?b*?", "\\071",        "\xc3\xa9+"};
    static const char *const bad[] = {
        "(",       ")",      "[",     "a**",     "a+*",    "a+++",  "*a",    "+",    "?a",
        "(*UTF)a", "(?=a)",  "(?!a)", "(?<=a)",  "(?<!a)", "(?>a)", "(?|a)", "(?R)", "(?1)",
        "(?#c)",   "(a)\\1", "\\g1",  "\\k<a>",  "\\K",    "\\R",   "\\X",   "\\G",  "\\Z",
        "\\C",     "\\e",    "\\c",   "a{1001}", "a{3,2}", "a\\",   "[b-a]", "a|*"};
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        const char *wrong = pattern_check(a, str_c(good[i]));

        if (wrong)
            fail_msg("%s: %s", good[i], wrong);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (!pattern_check(a, str_c(bad[i])))
            fail_msg("%s was taken", bad[i]);
    }
    arena_free(a);
}

/* ---- stored by an earlier release ---- */

static cJSON *crd_with_rule(struct arena *a, const char *rule)
{
    const char *text =
        arena_printf(a,
                     "{'metadata':{'name':'as.a.b'},'spec':{'group':'a.b','scope':'Cluster','names'"
                     ":{'plural':'as','kind':'A','singular':'a','listKind':'AList'},'versions':[{"
                     "'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':"
                     "'object','x-kubernetes-validations':[{'rule':'%s'}]}}}]},"
                     "'status':{'storedVersions':['v1']}}",
                     rule)
            .p;

    return parse_quoted(a, text);
}

static size_t errors_of_update(const char *before, const char *after)
{
    struct arena *a = arena_new(0);
    struct field_errors e;
    size_t ret;

    field_errors_init(&e, a);
    KIND_CUSTOM_RESOURCE_DEFINITION.validate(&e, crd_with_rule(a, after),
                                             before ? crd_with_rule(a, before) : NULL);
    ret = e.n;
    arena_free(a);
    return ret;
}

/* Its status is written, and its finalizer goes, whatever a rule of it holds. */
static void test_a_stored_rule_is_not_judged_again(void **state)
{
    size_t fine = errors_of_update("true", "true");

    (void)state;
    assert_true(errors_of_update(NULL, "nope(") > errors_of_update(NULL, "true"));
    assert_int_equal(errors_of_update("nope(", "nope("), fine);
    assert_true(errors_of_update("nope(", "nope((") > fine);
    assert_int_equal(errors_of_update("nope(", "true"), fine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_patterns_in_all),
        cmocka_unit_test(test_huge_enum),
        cmocka_unit_test(test_odd_shapes),
        cmocka_unit_test(test_default_port),
        cmocka_unit_test(test_first_delete),
        cmocka_unit_test(test_pattern_syntax),
        cmocka_unit_test(test_a_stored_rule_is_not_judged_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
