/* SPDX-License-Identifier: Apache-2.0
 *
 * Custom resources against what a real server said of them: unknown fields, defaults, nulls, and
 * every rule with its exact words (data/record_crds.py). Then what no server shows:
 * ratcheting, and that hostile schemas and objects take bounded time. */

#include "cases.h"

#include "crd_version.h"

static struct crd_version *recorded;

/* Upstream's own quirks, reviewed and left out. */
static const char *const QUIRKS[] = {
    /* A float that became too large for an integer prints in Go's form. */
    "{\"int\": 9223372036854775808}",
    /* An integer by a fractional multipleOf: upstream rounds the factor down to 0 and complains. */
    "{\"num\": 1000001}",
    /* Upstream stores these as 1 and 1, a set with a duplicate. */
    "{\"seti\": [1, 1.0]}",
    /* The metadata of embedded resources is the tenant's controller's business here. */
    "{\"emb\": {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"x\", "
    "\"foo\": 1}, "
    "\"spec\"",
    "{\"emb\": {\"apiVersion\": \"a/b/c\", \"kind\": \"Po_d\", \"metadata\": {\"labels\": {\"a "
    "b\": "
    "\"x\"}}",
};

static bool is_quirk(const char *name)
{
    for (size_t i = 0; i < COUNT(QUIRKS); i++) {
        if (!strncmp(name, QUIRKS[i], 60))
            return true;
    }
    return false;
}

static void compare_unknown(struct tested *t, const struct strict_errors *strict)
{
    cJSON *got = json_new_array(t->arena);

    for (size_t i = 0; i < strict->n; i++) {
        struct str rest = strict->text[i];

        str_cut(&rest, '"');
        json_append(got, json_new_string(t->arena, str_cut(&rest, '"')));
    }
    case_compare(t, got, json_get(t->json, "unknown"));
}

static void run_object(struct tested *t)
{
    struct strict_errors strict = {.arena = t->arena};
    cJSON *object = json_copy(t->arena, json_get(t->json, "object"));
    const cJSON *want = json_get(t->json, "causes");
    struct field_errors e;

    if (json_get(t->json, "schema")) {
        recorded = crd_version_of(json_get(t->json, "schema"));
        return;
    }
    if (is_quirk(t->name))
        return;
    field_errors_init(&e, t->arena);
    json_set_str(t->arena, object, "apiVersion", STR("a.b/v1"));
    json_set_str(t->arena, object, "kind", STR("A"));
    crd_prune(recorded, t->arena, object, &strict);
    crd_default(recorded, t->arena, object);
    crd_validate(recorded, &e, NULL, object, NULL);
    case_compare(t, causes_of(t->arena, &e), want ? want : json_new_array(t->arena));
    if (want)
        return;
    json_remove(object, "apiVersion");
    json_remove(object, "kind");
    case_compare(t, object, json_get(t->json, "result"));
    compare_unknown(t, &strict);
}

static void test_recorded(void **state)
{
    (void)state;
    run_cases("crd_objects.jsonl", 100, run_object);
    crd_version_drop(recorded);
}

/* ---- by hand ---- */

static void check(const char *schema, const char *object, const char *old, const char *want)
{
    struct arena *a = arena_new(0);
    struct crd_version *v = crd_version_of(parse_quoted(a, schema));
    cJSON *tree = parse_quoted(a, object), *before = old ? parse_quoted(a, old) : NULL;
    struct field_errors e;

    field_errors_init(&e, a);
    crd_validate(v, &e, NULL, tree, before);
    struct str got = e.first ? e.first->message : STR("");
    check_str(got, want, __FILE__, __LINE__);
    crd_version_drop(v);
    arena_free(a);
}

#define SPEC(s) "{'type':'object','properties':{'spec':" s "}}"

static void test_ratcheting(void **state)
{
    const char *schema = SPEC("{'type':'object','properties':{'a':{'type':'integer','minimum':5},"
                              "'b':{'type':'string'}}}");
    const char *list = SPEC("{'type':'array','x-kubernetes-list-type':'map',"
                            "'x-kubernetes-list-map-keys':['k'],'items':{'type':'object',"
                            "'required':['k'],'properties':{'k':{'type':'string'},"
                            "'v':{'type':'integer','minimum':5}}}}");
    const char *wrong = "Invalid value: 1: spec.a in body should be greater than or equal to 5";

    (void)state;
    check(schema, "{'spec':{'a':1}}", NULL, wrong);
    check(schema, "{'spec':{'a':1}}", "{'spec':{'a':2}}", wrong);
    check(schema, "{'spec':{'a':1,'b':'x'}}", "{'spec':{'a':1}}", "");
    check(list, "{'spec':[{'k':'y','v':9},{'k':'x','v':1}]}", "{'spec':[{'k':'x','v':1}]}", "");
    check(list, "{'spec':[{'k':'y','v':1}]}", "{'spec':[{'k':'x','v':1}]}",
          "Invalid value: 1: spec[0].v in body should be greater than or equal to 5");
    /* Duplicates that were there may stay. */
    check(list, "{'spec':[{'k':'x','v':6},{'k':'x','v':7}]}",
          "{'spec':[{'k':'x','v':6},{'k':'x','v':6}]}", "");
    check(list, "{'spec':[{'k':'x','v':6},{'k':'x','v':7}]}", "{'spec':[{'k':'x','v':6}]}",
          "Duplicate value: {\"k\":\"x\"}");
}

static void test_patterns_end(void **state)
{
    const char *schema = SPEC("{'type':'string','pattern':'^(a+)+$'}");
    const char *both = SPEC("{'type':'string','pattern':'^(a|b)*$'}");
    struct buf b = BUF_INIT(0);

    (void)state;
    check(schema, "{'spec':'aaaa'}", NULL, "");
    check(schema, "{'spec':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'}", NULL,
          "Invalid value: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\": "
          "spec in body should match '^(a+)+$'");
    buf_addc(&b, "{'spec':'");
    for (int i = 0; i < 2000; i++)
        buf_addc(&b, "ab");
    buf_addc(&b, "'}");
    buf_char(&b, '\0');
    check(both, b.p, NULL, "");
    buf_fini(&b);
}

struct many {
    struct arena *a;
    struct buf schema, object, old;
    struct field_errors errors;
};

static void validate_many(struct many *m)
{
    cJSON *schema, *object, *old = NULL;
    struct crd_version *v;

    m->a = arena_new(0);
    assert_int_equal(json_parse(m->a, buf_str(&m->schema), &schema, NULL), 0);
    assert_int_equal(json_parse(m->a, buf_str(&m->object), &object, NULL), 0);
    if (m->old.n)
        assert_int_equal(json_parse(m->a, buf_str(&m->old), &old, NULL), 0);
    v = crd_version_of(schema);
    field_errors_init(&m->errors, m->a);
    crd_validate(v, &m->errors, NULL, object, old);
    crd_version_drop(v);
}

static void drop_many(struct many *m)
{
    buf_fini(&m->schema);
    buf_fini(&m->object);
    buf_fini(&m->old);
    arena_free(m->a);
}

/* A long string: a match that begins at each place of it, or reads all of it at each step, would
 * take hours. */
static void test_patterns_of_long_strings_end(void **state)
{
    static const struct {
        const char *pattern, *end;
        bool holds;
    } cases[] = {{"a*[bc]", "", false},
                 {"a*[bc]", "b", true},
                 {"xyz$", "xyz", true},
                 {"xyz$", "xyzx", false},
                 {"\\\\Qx|y", "x|y", true},
                 {"\\\\Qx|y", "xy", false},
                 {"(?i)END|other", "end", true},
                 {"^(?:a*[bc]|a)*$", "", true},
                 {"^(?:a*[bc]|a)*$", "d", false},
                 {"^b|a*[bc]", "", false},
                 {"a{200}[bc]", "", false},
                 {"^(a|aa){1,900}b", "", false},
                 {"^a+$", "", true}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct many m = {.schema = BUF_INIT(0), .object = BUF_INIT(0), .old = BUF_INIT(0)};

        buf_printf(&m.schema,
                   "{\"type\":\"object\",\"properties\":{\"spec\":{\"pattern\":\"%s\"}}}",
                   cases[i].pattern);
        buf_addc(&m.object, "{\"spec\":\"");
        for (int k = 0; k < 500000; k++)
            buf_char(&m.object, 'a');
        buf_printf(&m.object, "%s\"}", cases[i].end);
        validate_many(&m);
        assert_int_equal(m.errors.n, !cases[i].holds);
        drop_many(&m);
    }
}

/* Each of many strings would take as long as it may: the budget is of the whole object. */
static void test_patterns_have_a_budget(void **state)
{
    struct arena *a = arena_new(0);
    struct buf b = BUF_INIT(0);
    struct crd_version *v = crd_version_of(parse_quoted(
        a, SPEC("{'type':'array','items':{'type':'string','pattern':'^(.*)*(.*)*(.*)*x$'}}")));
    cJSON *tree;
    struct field_errors e;
    struct err err;

    (void)state;
    err_init(&err, a);
    buf_addc(&b, "{\"spec\":[");
    for (int i = 0; i < 2000; i++)
        buf_addc(&b, i ? ",\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"" : "\"\"");
    buf_addc(&b, "]}");
    assert_int_equal(json_parse(a, buf_str(&b), &tree, &err), 0);
    field_errors_init(&e, a);
    crd_validate(v, &e, NULL, tree, NULL);
    assert_int_equal(e.n, 2000);
    buf_fini(&b);
    crd_version_drop(v);
    arena_free(a);
}

/* Whether it is said of a list of 20,000 numbers, judged by a schema around 2,000 alternatives of
 * which none holds, that it would take too long. */
static bool takes_too_long(const char *before, const char *after)
{
    struct arena *a = arena_new(0);
    struct buf s = BUF_INIT(0), b = BUF_INIT(0);
    struct field_errors e;
    struct err err;
    cJSON *tree, *schema;
    size_t told = 0;

    err_init(&err, a);
    buf_printf(&s, "{\"type\":\"object\",\"properties\":{\"spec\":%s", before);
    for (int i = 0; i < 2000; i++)
        buf_printf(&s, "%s{\"minimum\":%d}", i ? "," : "", 10 + i);
    buf_printf(&s, "%s}}", after);
    buf_addc(&b, "{\"spec\":[1");
    for (int i = 0; i < 20000; i++)
        buf_addc(&b, ",1");
    buf_addc(&b, "]}");
    assert_int_equal(json_parse(a, buf_str(&s), &schema, &err), 0);
    assert_int_equal(json_parse(a, buf_str(&b), &tree, &err), 0);
    struct crd_version *v = crd_version_of(schema);
    field_errors_init(&e, a);
    crd_validate(v, &e, NULL, tree, NULL);
    for (const struct err_cause *c = e.first; c; c = c->next)
        told += strstr(c->message.p, "would take too long") != NULL;
    assert_true(e.n && told <= 1);
    buf_fini(&s);
    buf_fini(&b);
    crd_version_drop(v);
    arena_free(a);
    return told;
}

static void test_steps_have_a_budget(void **state)
{
    (void)state;
    takes_too_long("{\"type\":\"array\",\"items\":{\"oneOf\":[",
                   "]}}"); /* after many other errors */
    /* What was not judged to its end is no alternative that fails. */
    assert_true(takes_too_long("{\"type\":\"array\",\"not\":{\"items\":{\"anyOf\":[{\"oneOf\":[",
                               "]},{\"maximum\":1}]}}}"));
    assert_true(
        takes_too_long("{\"type\":\"array\",\"not\":{\"items\":{\"not\":{\"anyOf\":[", "]}}}}"));
}

/* The closest of alternatives within alternatives is judged twice at each level, not twice as often
 * as at the level above. */
static void test_levels_do_not_multiply(void **state)
{
    struct arena *a = arena_new(0);
    struct buf s = BUF_INIT(0);
    struct field_errors e;
    struct err err;
    cJSON *schema;
    enum { DEEP = 40 };

    (void)state;
    err_init(&err, a);
    buf_addc(&s, "{\"type\":\"object\",\"properties\":{\"spec\":");
    for (int i = 0; i < DEEP; i++)
        buf_addc(&s, "{\"anyOf\":[");
    buf_addc(&s, "{\"minimum\":5}");
    for (int i = 0; i < DEEP; i++)
        buf_addc(&s, "]}");
    buf_addc(&s, "}}");
    assert_int_equal(json_parse(a, buf_str(&s), &schema, &err), 0);
    struct crd_version *v = crd_version_of(schema);
    field_errors_init(&e, a);
    crd_validate(v, &e, NULL, parse_quoted(a, "{'spec':1}"), NULL);
    assert_int_equal(e.n, DEEP + 1); /* one for each level, and the bound */
    buf_fini(&s);
    crd_version_drop(v);
    arena_free(a);
}

/* BEFOREiAFTER,... for n numbers. */
static void add_many(struct buf *b, int n, const char *before, const char *after)
{
    for (int i = 0; i < n; i++)
        buf_printf(b, "%s%s%d%s", i ? "," : "", before, i, after);
}

/* Each member of a large object, in another order than before: by a look at each pair it would be
 * hours until this test ended. */
static void test_large_maps(void **state)
{
    struct many m = {.schema = BUF_INIT(0), .object = BUF_INIT(0), .old = BUF_INIT(0)};
    enum { MANY = 100000 };

    (void)state;
    buf_addc(&m.schema, "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\","
                        "\"additionalProperties\":{\"type\":\"integer\",\"minimum\":5}}}}");
    buf_addc(&m.object, "{\"spec\":{\"x\":1,");
    add_many(&m.object, MANY, "\"k", "\":7");
    buf_addc(&m.object, "}}");
    buf_addc(&m.old, "{\"spec\":{\"last\":1,\"x\":1,");
    add_many(&m.old, MANY, "\"j", "\":6");
    buf_addc(&m.old, "}}");
    validate_many(&m);
    assert_int_equal(m.errors.n, 0); /* x was wrong before */
    drop_many(&m);
}

static void test_large_requirements(void **state)
{
    struct many m = {.schema = BUF_INIT(0), .object = BUF_INIT(0), .old = BUF_INIT(0)};
    enum { MANY = 100000 };

    (void)state;
    buf_addc(&m.schema, "{\"type\":\"object\",\"required\":[");
    add_many(&m.schema, MANY, "\"k", "\"");
    buf_addc(&m.schema,
             "],\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
             "\"required\":[");
    add_many(&m.schema, 2000, "\"r", "\"");
    buf_addc(&m.schema, "]}}}}");
    buf_addc(&m.object, "{");
    add_many(&m.object, MANY - 1, "\"k", "\":7");
    buf_addc(&m.object, "}");
    validate_many(&m);
    assert_int_equal(m.errors.n, 1);
    assert_str(m.errors.first->field, "k99999");
    arena_free(m.a);
    buf_clear(&m.object);
    buf_addc(&m.object, "{\"spec\":[");
    for (int i = 0; i < 20000; i++)
        buf_addc(&m.object, i ? ",{}" : "{}");
    buf_addc(&m.object, "]}");
    validate_many(&m);
    assert_true(m.errors.n > 200); /* and the steps ended before all of them were counted */
    assert_true(m.errors.n < 5000000);
    drop_many(&m);
}

/* Each of many alternatives looks for its own members in one large object. */
static void test_large_alternatives(void **state)
{
    struct many m = {.schema = BUF_INIT(0), .object = BUF_INIT(0), .old = BUF_INIT(0)};
    enum { ALTERNATIVES = 2000 };

    (void)state;
    buf_addc(&m.schema,
             "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,\"anyOf\":[");
    add_many(&m.schema, ALTERNATIVES, "{\"required\":[\"x\",\"y", "\"]}");
    buf_addc(&m.schema, "]}");
    buf_addc(&m.object, "{");
    add_many(&m.object, 100000, "\"k", "\":7");
    buf_addc(&m.object, "}");
    validate_many(&m);
    assert_int_equal(m.errors.n, 2);
    assert_str(m.errors.first->next->message,
               "Forbidden: validating it against its schema would take too long");
    assert_true(arena_used(m.a) < (size_t)256 << 20);
    drop_many(&m);
}

/* A value that is none of many is compared with each, and its message lists all of them. */
static void test_large_enums(void **state)
{
    struct many m = {.schema = BUF_INIT(0), .object = BUF_INIT(0), .old = BUF_INIT(0)};

    (void)state;
    buf_addc(&m.schema,
             "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{"
             "\"enum\":[");
    add_many(&m.schema, 50000, "\"e", "\"");
    buf_addc(&m.schema, "]}}}}");
    buf_addc(&m.object, "{\"spec\":[");
    add_many(&m.object, 50000, "\"x", "\"");
    buf_addc(&m.object, "]}");
    validate_many(&m);
    assert_true(m.errors.first->message.n > 400000);
    assert_true(arena_used(m.a) < (size_t)64 << 20);
    drop_many(&m);
}

/* Each of many items gets a default of 1,000 bytes. */
static void test_defaults_are_bounded(void **state)
{
    struct arena *a = arena_new(0);
    struct buf s = BUF_INIT(0), b = BUF_INIT(0);
    struct crd_version *v;
    cJSON *schema, *tree;
    size_t before;
    enum { ITEMS = 100000 };

    (void)state;
    buf_addc(
        &s, "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"array\",\"items\":{\"type\":"
            "\"object\",\"properties\":{\"x\":{\"type\":\"string\",\"default\":\"");
    for (int i = 0; i < 1000; i++)
        buf_char(&s, 'x');
    buf_addc(&s, "\"}}}}}}");
    buf_addc(&b, "{\"spec\":[{}");
    for (int i = 1; i < ITEMS; i++)
        buf_addc(&b, ",{}");
    buf_addc(&b, "]}");
    assert_int_equal(json_parse(a, buf_str(&s), &schema, NULL), 0);
    v = crd_version_of(schema);
    assert_int_equal(json_parse(a, buf_str(&b), &tree, NULL), 0);
    before = arena_used(a);
    assert_false(crd_default_written(v, a, tree, false));
    assert_true(arena_used(a) - before < (size_t)66 << 20);
    assert_int_equal(json_parse(a, buf_str(&b), &tree, NULL), 0); /* stored before it had them */
    before = arena_used(a);
    crd_default(v, a, tree);
    assert_true(arena_used(a) - before < (size_t)66 << 20);
    assert_int_equal(json_str_at(json_first(json_get(tree, "spec")), "x").n, 1000);
    tree = parse_quoted(a, "{'spec':[{},{}]}");
    assert_true(crd_default_written(v, a, tree, true));
    assert_int_equal(json_str_at(json_at(json_get(tree, "spec"), 1), "x").n, 1000);
    buf_fini(&s);
    buf_fini(&b);
    crd_version_drop(v);
    arena_free(a);
}

/* One object may lack as many fields as a schema has, or have as many nulls as fit. A search among
 * all of them for each would not end. */
static void test_many_defaults(void **state)
{
    struct arena *a = arena_new(0);
    struct buf s = BUF_INIT(0), b = BUF_INIT(0);
    enum { FIELDS = 60000, NULLS = 100000 };
    struct crd_version *v;
    cJSON *tree;

    (void)state;
    buf_addc(&s, "{'type':'object','properties':{'m':{'type':'object','additionalProperties':"
                 "{'type':'string','default':'y'}}");
    for (int i = 0; i < FIELDS; i++)
        buf_printf(&s, ",'p%d':{'type':'string','default':''}", i);
    buf_addc(&s, "}}");
    buf_addc(&b, "{'p7':'x','m':{'a':'x'");
    for (int i = 0; i < NULLS; i++)
        buf_printf(&b, ",'a%d':null", i);
    buf_addc(&b, "}}");
    v = crd_version_of(parse_quoted(a, arena_cstr(a, buf_str(&s))));
    tree = parse_quoted(a, arena_cstr(a, buf_str(&b)));
    crd_default(v, a, tree);
    assert_int_equal(json_count(tree), FIELDS + 1);
    assert_true(str_eqc(json_str_at(tree, "p7"), "x"));
    assert_int_equal(json_count(json_get(tree, "m")), NULLS + 1);
    assert_true(str_eqc(json_str_at(tree, "m.a99"), "y"));
    buf_fini(&s);
    buf_fini(&b);
    crd_version_drop(v);
    arena_free(a);
}

/* All versions of a CRD share the schema of the one objects are stored with. */
static void test_stored_is_shared(void **state)
{
    struct arena *a = arena_new(0);
    const cJSON *crd = parse_quoted(
        a, "{'spec':{'group':'a.b','names':{'plural':'as','kind':'A'},'versions':["
           "{'name':'v1','schema':{'openAPIV3Schema':{'type':'object'}}},"
           "{'name':'v2','storage':true,'schema':{'openAPIV3Schema':{'type':'object','properties':"
           "{'x':{'type':'string','default':'y'}}}}},"
           "{'name':'v3','schema':{'openAPIV3Schema':{'type':'object'}}}]}}");
    const cJSON *versions = json_path(crd, "spec.versions");
    struct crd_version *v1 = crd_version_new(crd, json_at(versions, 0), NULL),
                       *v2 = crd_version_new(crd, json_at(versions, 1), v1),
                       *v3 = crd_version_new(crd, json_at(versions, 2), v1);
    cJSON *tree = parse_quoted(a, "{'apiVersion':'a.b/v2'}");

    (void)state;
    assert_non_null(v1->stored);
    assert_null(v2->stored);
    assert_ptr_equal(v3->stored, v1->stored);
    crd_version_drop(v1);
    crd_from_stored(v3, a, tree);
    assert_null(json_get(tree, "x"));
    assert_non_null(v3->stored->compiled);
    crd_version_drop(v2);
    crd_version_drop(v3);
    arena_free(a);
}

/* A Go client that knows an integer cannot read 7.0: numbers are stored as Go prints them. */
static void test_plain_numbers(void **state)
{
    (void)state;
    struct arena *a = arena_new(0);
    struct crd_version *v = crd_version_of(
        parse_quoted(a, SPEC("{'type':'object','x-kubernetes-preserve-unknown-fields':true}")));
    cJSON *tree = parse_quoted(a, "{'spec':{'a':[7.0,1e3,2.50,-1.0e-7,1e21],'b':{'c':"
                                  "9007199254740993,'d':12345678901234567890,'e':'1.0'}}}");

    crd_default(v, a, tree);
    check_str(json_text(a, tree),
              "{\"spec\":{\"a\":[7,1000,2.5,-1e-7,1e+21],\"b\":{\"c\":9007199254740993,"
              "\"d\":12345678901234567000,\"e\":\"1.0\"}}}",
              __FILE__, __LINE__);
    crd_version_drop(v);
    arena_free(a);
}

/* additionalProperties: false is stored, and then obeyed. */
static void test_closed(void **state)
{
    (void)state;
    check(SPEC("{'type':'object','additionalProperties':false}"), "{'spec':{'x':1}}", NULL,
          "Invalid value: \"x\": spec.x in body is a forbidden property");
    check(SPEC("{'type':'object','additionalProperties':true}"), "{'spec':{'x':1}}", NULL, "");
}

/* metadata.name may be restricted at the root, the other members are the API's. */
static void test_root_names(void **state)
{
    (void)state;
    check("{'type':'object','properties':{'metadata':{'type':'object','properties':{'name':"
          "{'type':'string','maxLength':3}}}}}",
          "{'metadata':{'name':'abcd','labels':{'a':'b'}}}", NULL,
          "Too long: may not be more than 3 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_ratcheting),
        cmocka_unit_test(test_patterns_end),
        cmocka_unit_test(test_patterns_of_long_strings_end),
        cmocka_unit_test(test_patterns_have_a_budget),
        cmocka_unit_test(test_steps_have_a_budget),
        cmocka_unit_test(test_levels_do_not_multiply),
        cmocka_unit_test(test_large_maps),
        cmocka_unit_test(test_large_requirements),
        cmocka_unit_test(test_large_alternatives),
        cmocka_unit_test(test_large_enums),
        cmocka_unit_test(test_defaults_are_bounded),
        cmocka_unit_test(test_many_defaults),
        cmocka_unit_test(test_stored_is_shared),
        cmocka_unit_test(test_plain_numbers),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_root_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
