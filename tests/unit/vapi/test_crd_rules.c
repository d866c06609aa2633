/* SPDX-License-Identifier: Apache-2.0
 *
 * x-kubernetes-validations: what no server shows. Rules that were stored broken, budgets, the size
 * of all rules, what is correlated and what did not change. The words are compared with a
 * kube-apiserver in tests/integration/test_crd_rules.py. */

#include "cases.h"

#include <sublet/clock.h>

#include "../../../vapi/crd/rules.h"
#include "../../../vapi/crd/schema_checks.h"
#include "crd_version.h"

#define SPEC(s) "{'type':'object','properties':{'spec':" s "}}"
#define RULE(s) "'x-kubernetes-validations':[{'rule':'" s "'}]"

/* The first error, or warning with "warning ", or empty. */
static struct str judged(struct arena *a, struct crd_version *v, const char *object,
                         const char *old)
{
    struct field_errors e, kept;

    field_errors_init(&e, a);
    field_errors_init(&kept, a);
    crd_validate(v, &e, &kept, parse_quoted(a, object), old ? parse_quoted(a, old) : NULL);
    if (e.first)
        return arena_printf(a, "%.*s: %.*s", STR_F(e.first->field), STR_F(e.first->message));
    if (kept.first)
        return arena_printf(a, "warning %.*s", STR_F(kept.first->field));
    return STR("");
}

static void check_judged(const char *schema, const char *object, const char *old, const char *want,
                         int line)
{
    struct arena *a = arena_new(0);
    struct crd_version *v = crd_version_of(parse_quoted(a, schema));

    check_str(judged(a, v, object, old), want, __FILE__, line);
    crd_version_drop(v);
    arena_free(a);
}
#define check(schema, object, old, want) check_judged(schema, object, old, want, __LINE__)

static void check_written(const char *schema, const char *want, int line)
{
    struct arena *a = arena_new(0);
    struct crd_effort effort = crd_effort_new();
    struct field_errors e;

    field_errors_init(&e, a);
    crd_check_schema(&e, FIELD(NULL, "s"), parse_quoted(a, schema), false, &effort);
    check_str(e.first
                  ? arena_printf(a, "%.*s: %.*s", STR_F(e.first->field), STR_F(e.first->message))
                  : STR(""),
              want, __FILE__, line);
    arena_free(a);
}
#define written(schema, want) check_written(schema, want, __LINE__)

static void test_stored_broken(void **state)
{
    const char *schema =
        SPEC("{'type':'object','properties':{'n':{'type':'integer'}}," RULE("self.nope == 1") "}");

    (void)state;
    check(schema, "{}", NULL, "");
    check(schema, "{'spec':{'n':1}}", NULL,
          "spec: Invalid value: \"object\": rule compile error: compilation failed: ERROR: "
          "<input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^");
    check(schema, "{'spec':{'n':1}}", "{'spec':{'n':1}}", "warning spec"); /* a finalizer goes */
    check(SPEC("{'x-kubernetes-preserve-unknown-fields':true," RULE("true") "}"), "{'spec':1}",
          NULL,
          "spec: Invalid value: \"\": rule compiler initialization error: failed to convert to "
          "declType for CEL validation rules");
}

static void test_changes(void **state)
{
    const char *map = SPEC("{'type':'array','x-kubernetes-list-type':'map',"
                           "'x-kubernetes-list-map-keys':['k'],'items':{'type':'object',"
                           "'properties':{'k':{'type':'string'},'v':{'type':'integer'," RULE(
                               "self >= oldSelf") "}}}}");
    const char *plain = SPEC("{'type':'string'," RULE("self == \\'a\\'") "}");

    (void)state;
    check(map, "{'spec':[{'k':'a','v':1}]}", NULL, "");
    check(map, "{'spec':[{'k':'b','v':1},{'k':'a','v':1}]}", "{'spec':[{'k':'a','v':2}]}",
          "spec[1].v: Invalid value: 1: failed rule: self >= oldSelf");
    check(map, "{'spec':[{'k':'b','v':1}]}", "{'spec':[{'k':'a','v':2}]}", "");
    check(map, "{'spec':[{'k':'a','v':1}]}", "{'spec':null}", "");
    check(plain, "{'spec':'b'}", "{'spec':'b'}", "warning spec");
    check(plain, "{'spec':'b'}", "{'spec':'c'}",
          "spec: Invalid value: \"b\": failed rule: self == \"a\"");
    check(plain, "{'spec':'b'}", "{}", "spec: Invalid value: \"b\": failed rule: self == \"a\"");
}

static void test_budgets(void **state)
{
    const char *calls = SPEC("{'type':'array','items':{'type':'integer'}," RULE(
        "self.all(x, self.all(y, self.all(z, x + y + z > 0)))") "}");
    struct arena *a = arena_new(0);
    const char *many =
        SPEC("{'type':'array','items':{'type':'array','items':{'type':'integer'}," RULE(
            "self.all(x, self.all(y, x + y > 0))") "}}");
    struct buf object = BUF_INIT(0);
    int64_t start = clock_mono_ms(&CLOCK_SYSTEM);

    (void)state;
    buf_addc(&object, "{'spec':[1");
    for (int i = 0; i < 500; i++)
        buf_addc(&object, ",1");
    buf_addc(&object, "]}");
    check(calls, arena_cstr(a, buf_str(&object)), NULL,
          "spec: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no "
          "further validation rules will be run due to call cost exceeds limit for rule: "
          "self.all(x, self.all(y, self.all(z, x + y + z > 0)))");
    buf_fini(&object);
    object = (struct buf)BUF_INIT(0);
    buf_addc(&object, "{'spec':[");
    for (int i = 0; i < 200 * 200; i++)
        buf_printf(&object, "%s%s1%s", i ? "," : "", i % 200 ? "" : "[", i % 200 == 199 ? "]" : "");
    buf_addc(&object, "]}");
    check(
        many, arena_cstr(a, buf_str(&object)), NULL,
        "spec[46]: Invalid value: \"array\": validation failed due to running out of cost budget, "
        "no further validation rules will be run");
    buf_fini(&object);
    assert_in_range(clock_mono_ms(&CLOCK_SYSTEM) - start, 0, 20000);
    arena_free(a);
}

/* A list of n numbers as the member of an object. */
static struct str with_list(struct arena *a, const char *begin, int n, const char *end)
{
    struct buf b = BUF_INIT(0);
    struct str ret;

    buf_addc(&b, begin);
    for (int i = 0; i < n; i++)
        buf_addc(&b, i ? ",1" : "[1");
    buf_addc(&b, "]");
    buf_addc(&b, end);
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

/* Neither literals, nor comparisons with nothing, nor what decodes a string again and again. */
static void test_nothing_is_free(void **state)
{
    static const char out_of_budget[] =
        "spec[%d]: Invalid value: \"integer\": validation failed due to running out of cost "
        "budget, no further validation rules will be run";
    struct arena *a = arena_new(0);
    struct buf schema = BUF_INIT(0), text = BUF_INIT(0);
    const char *list = with_list(a, "{'spec':", 20000, "}").p, *times;

    (void)state;
    buf_addc(&schema, "{'type':'object','properties':{'spec':{'type':'array','items':{'type':"
                      "'integer','x-kubernetes-validations':[{'rule':'true'}");
    for (int i = 1; i < RULES_MOST; i++)
        buf_addc(&schema, i % 2 ? ",{'rule':'true'}" : ",{'rule':'self == oldSelf'}");
    buf_addc(&schema, "]}}}}");
    check(arena_cstr(a, buf_str(&schema)), list, NULL, arena_printf(a, out_of_budget, 8880).p);
    buf_fini(&schema);

    schema = (struct buf)BUF_INIT(0);
    buf_addc(&schema, "{'type':'object','properties':{'spec':{'type':'array','items':{'type':"
                      "'integer','x-kubernetes-validations':[{'rule':'self == oldSelf'}");
    for (int i = 1; i < RULES_MOST; i++)
        buf_addc(&schema, ",{'rule':'self == oldSelf'}");
    buf_addc(&schema, "]}}}}");
    check(arena_cstr(a, buf_str(&schema)), with_list(a, "{'spec':", 100000, "}").p, NULL,
          arena_printf(a, out_of_budget, 79999).p);

    buf_addc(&text, "{'d':'");
    for (int i = 0; i < 500000; i++)
        buf_addc(&text, "0s");
    buf_addc(&text, "','l':");
    times = with_list(a, arena_cstr(a, buf_str(&text)), 1000, "}").p;
    check("{'type':'object','properties':{'l':{'type':'array','items':{'type':'integer'}},"
          "'d':{'type':'string','format':'duration'}}," RULE("self.l.all(x, self.d == self.d)") "}",
          times, NULL,
          "<nil>: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': "
          "no further validation rules will be run due to call cost exceeds limit for rule: "
          "self.l.all(x, self.d == self.d)");
    buf_fini(&schema);
    buf_fini(&text);
    arena_free(a);
}

/* Problems of a rule are counted, and cut, as others are. */
static void test_many_errors(void **state)
{
    const char *schema =
        SPEC("{'type':'array','items':{'type':'string'," RULE("self == \\'\\'") "}}");
    struct arena *a = arena_new((size_t)64 << 20);
    struct crd_version *v = crd_version_of(parse_quoted(a, schema));
    struct field_errors e;
    struct buf object = BUF_INIT(0);

    (void)state;
    buf_addc(&object, "{'spec':['x'");
    for (int i = 1; i < 20000; i++)
        buf_addc(&object, ",'x'");
    buf_addc(&object, "]}");
    field_errors_init(&e, a);
    crd_validate(v, &e, NULL, parse_quoted(a, arena_cstr(a, buf_str(&object))), NULL);
    assert_int_equal(e.n, 20000);
    assert_false(arena_over(a));
    buf_fini(&object);
    crd_version_drop(v);
    arena_free(a);
}

static void test_size(void **state)
{
    struct arena *a = arena_new(0);
    struct buf schema = BUF_INIT(0);

    (void)state;
    buf_addc(&schema, "{'type':'object','x-kubernetes-validations':[{'rule':'true'}");
    for (int i = 0; i < RULES_MOST; i++)
        buf_addc(&schema, ",{'rule':'true'}");
    buf_addc(&schema, "]}");
    written(arena_cstr(a, buf_str(&schema)),
            "s: Forbidden: the rules of one schema are too large in all");
    written("{'type':'object','x-kubernetes-validations':[{'rule':'self.x'}]}",
            "s.x-kubernetes-validations[0].rule: Invalid value: "
            "{\"Rule\":\"self.x\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,"
            "\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: "
            "<input>:1:5: undefined field 'x'\n | self.x\n | ....^");
    buf_fini(&schema);
    arena_free(a);
}

/* All defaults of a CRD have one budget. */
static void test_many_defaults(void **state)
{
    struct arena *a = arena_new(0);
    const char *list = with_list(a, "", 300, "").p;
    struct buf schema = BUF_INIT(0);

    (void)state;
    buf_addc(&schema, "{'type':'object','properties':{'a':{'type':'string'}");
    for (int i = 0; i < 40; i++)
        buf_printf(&schema,
                   ",'p%d':{'type':'array','items':{'type':'integer'}," RULE(
                       "self.all(x, self.all(y, x + y > 0))") ",'default':%s}",
                   i, list);
    buf_addc(&schema, "}}");
    written(arena_cstr(a, buf_str(&schema)),
            "s.properties[p10].default: Invalid value: \"array\": validation failed due to running "
            "out of cost budget, no further validation rules will be run");
    buf_fini(&schema);
    schema = (struct buf)BUF_INIT(0);
    buf_addc(&schema, "{'type':'object','properties':{'a':{'type':'string'}");
    for (int i = 0; i < 40; i++)
        buf_printf(&schema,
                   ",'p%d':{'type':'array','default':%s,'items':{'type':'integer','enum':%s}}", i,
                   list, with_list(a, "", 1000, "").p);
    buf_addc(&schema, "}}");
    written(arena_cstr(a, buf_str(&schema)),
            "s.properties[p13].default[95]: Forbidden: validating it against its schema would "
            "take too long");
    buf_fini(&schema);
    arena_free(a);
}

/* As many properties as an object may have. A search among all of them for each would not end. */
static void test_many_fields(void **state)
{
    struct arena *a = arena_new(0);
    struct buf schema = BUF_INIT(0);
    struct crd_effort effort = crd_effort_new();
    cJSON *properties, *tree;
    struct field_errors e;

    (void)state;
    buf_addc(&schema, "{'type':'object'," RULE("self.p7 == self.p8") ",'properties':{");
    for (int i = 0; i < CRD_MAX_FIELDS; i++)
        buf_printf(&schema, "%s'p%d':{'type':'string'}", i ? "," : "", i);
    buf_addc(&schema, "}}");
    tree = parse_quoted(a, arena_cstr(a, buf_str(&schema)));
    field_errors_init(&e, a);
    crd_check_schema(&e, FIELD(NULL, "s"), tree, false, &effort);
    assert_int_equal(e.n, 0);
    properties = json_get(tree, "properties");
    json_set(a, json_ensure_object(a, properties, "more"), "type",
             json_new_string(a, STR("string")));
    crd_check_schema(&e, FIELD(NULL, "s"), tree, false, &effort);
    assert_int_equal(e.n, 1);
    check_str(e.first->message, "Forbidden: the schema is too deep or too large", __FILE__,
              __LINE__);
    buf_fini(&schema);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_broken),   cmocka_unit_test(test_changes),
        cmocka_unit_test(test_budgets),         cmocka_unit_test(test_many_errors),
        cmocka_unit_test(test_nothing_is_free), cmocka_unit_test(test_size),
        cmocka_unit_test(test_many_defaults),   cmocka_unit_test(test_many_fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
