/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors against k8s.io/apimachinery v0.36.3: what it accepts comes back in its canonical form,
 * what it refuses is refused in its words. And label sets, which must hold whatever a tenant wrote.
 */

#include "../base/test.h"

#include <sublet/selector.h>

#define RE_KEY "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define BAD_NAME                                                                                   \
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "  \
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " \
    "validation is '" RE_KEY "')"
#define BAD_VALUE                                                                                  \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', " \
    " or '12345', regex used for validation is '(" RE_KEY ")?')"
#define SIXTEEN "vvvvvvvvvvvvvvvv"

struct fact {
    const char *text, *answer;
};

typedef int (*parse_cb)(struct arena *a, struct str text, struct selector *ret, struct err *err);

static void accepts(parse_cb parse, const struct fact *facts, size_t n)
{
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < n; i++) {
        struct selector s;
        struct err err;
        err_init(&err, a);
        if (parse(a, str_c(facts[i].text), &s, &err))
            fail_msg("%s: %.*s", facts[i].text, STR_F(err.message));
        assert_str(selector_format(a, &s), facts[i].answer);
        assert_false(s.nothing);
    }
    arena_free(a);
}

static void refuses(parse_cb parse, const struct fact *facts, size_t n)
{
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < n; i++) {
        struct selector s;
        struct err err;
        err_init(&err, a);
        if (!parse(a, str_c(facts[i].text), &s, &err))
            fail_msg("accepted: %s", facts[i].text);
        assert_str(err.message, facts[i].answer);
        assert_ptr_equal(err.kind, &ERR_BAD_REQUEST);
    }
    arena_free(a);
}

static void accepts_labels(void **state)
{
    static const struct fact facts[] = {
        {"a=b", "a=b"},
        {"a==b,c!=d", "a=b,c!=d"},
        {"e in (g,f,f),!h", "e in (f,g),!h"},
        {"x notin ()", "x notin ()"},
        {"x in (,a)", "x in (,a)"},
        {"x in (a,)", "x in (,a)"},
        {"x in (a,,,,,b)", "x in (,a,b)"},
        {"x>5,y<7", "x>5,y<7"},
        {" a ,\tb\r\n", "a,b"},
        {"in in (in,notin)", "in in (in,notin)"},
        {"b,a,!b", "a,b,!b"},
        {"", ""},
        {"a=,b", "a=,b"},
        {"a==", "a="},
        {"app.kubernetes.io/name = x.y_z-1", "app.kubernetes.io/name=x.y_z-1"},
    };

    (void)state;
    accepts(selector_parse, facts, COUNT(facts));
}

static void refuses_labels(void **state)
{
    static const struct fact facts[] = {
        {",", "found ',', expected: !, identifier, or 'end of string'"},
        {"=a", "found '=', expected: !, identifier, or 'end of string'"},
        {"a,", "found '', expected: identifier after ','"},
        {"a,,b", "found ',', expected: identifier after ','"},
        {"!a=b", "found '=', expected: ',' or 'end of string'"},
        {"a=b=c", "found '=', expected: ',' or 'end of string'"},
        {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
        {"!", "unable to parse requirement: found '', expected: identifier"},
        {"a=(", "unable to parse requirement: found '(', expected: identifier"},
        {"a in b", "unable to parse requirement: found 'b' expected: '('"},
        {"a in", "unable to parse requirement: found '' expected: '('"},
        {"a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"},
        {"a in (!)", "unable to parse requirement: found '!', expected: ',', ')' or identifier"},
        {"a in (b", "unable to parse requirement: found '', expected: ',' or ')'"},
        {"a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"},
        {"a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"},
        {"a in (b,!)", "unable to parse requirement: found '!', expected: ',', or identifier"},
        {"a>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' "
                "operators, the value must be an integer"},
        {"a>-5", "unable to parse requirement: values[0][a]: Invalid value: \"-5\": " BAD_VALUE},
        {"/a", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be "
               "non-empty"},
        {"a/", "unable to parse requirement: <nil>: Invalid value: \"a/\": name part must be "
               "non-empty; " BAD_NAME},
        {"-a=b", "unable to parse requirement: <nil>: Invalid value: \"-a\": " BAD_NAME},
        {"a in (-b,c-,d)",
         "unable to parse requirement: [values[0][a]: Invalid value: \"-b\": " BAD_VALUE
         ", values[1][a]: Invalid value: \"c-\": " BAD_VALUE "]"},
        {"a==\"b\"",
         "unable to parse requirement: values[0][a]: Invalid value: \"\\\"b\\\"\": " BAD_VALUE},
        {"a=" SIXTEEN SIXTEEN SIXTEEN SIXTEEN,
         "unable to parse requirement: values[0][a]: Invalid value: \"" SIXTEEN SIXTEEN SIXTEEN
             SIXTEEN "\": must be no more than 63 bytes"},
    };

    (void)state;
    refuses(selector_parse, facts, COUNT(facts));
}

static void a_nul_ends_labels(void **state)
{
    struct arena *a = arena_new(0);
    struct selector s;
    struct err err;

    (void)state;
    err_init(&err, a);
    assert_int_equal(selector_parse(a, (struct str){"a=b, \0c", 7}, &s, &err), -1);
    assert_str(err.message, "found '', expected: identifier after ','");
    assert_int_equal(selector_parse(a, (struct str){"a\0=b\0,c", 7}, &s, &err), 0);
    assert_str(selector_format(a, &s), "a=b,c");
    arena_free(a);
}

static void bounds_terms_and_values(void **state)
{
    struct arena *a = arena_new(0);
    struct buf text = BUF_INIT(0);
    struct selector s;
    struct err err;

    (void)state;
    err_init(&err, a);
    for (int i = 0; i < SELECTOR_MAX_TERMS; i++)
        buf_printf(&text, "%sk%d", i ? "," : "", i);
    assert_int_equal(selector_parse(a, buf_str(&text), &s, &err), 0);
    assert_int_equal(s.n, SELECTOR_MAX_TERMS);
    for (size_t i = 1; i < s.n; i++)
        assert_true(str_cmp(s.terms[i - 1].key, s.terms[i].key) < 0);
    buf_addc(&text, ",x");
    assert_int_equal(selector_parse(a, buf_str(&text), &s, &err), -1);
    assert_str(err.message, "selector has more than 256 requirements");

    buf_clear(&text);
    for (int i = 0; i <= SELECTOR_MAX_TERMS; i++)
        buf_printf(&text, "k%d=v,", i);
    assert_int_equal(selector_parse_fields(a, buf_str(&text), &s, &err), -1);

    buf_clear(&text);
    buf_addc(&text, "a in (");
    for (int i = 0; i < 5000; i++)
        buf_addc(&text, "-,");
    for (int i = 0; i < 5000; i++)
        buf_printf(&text, "-%d,", i);
    buf_addc(&text, ")");
    assert_int_equal(selector_parse(a, buf_str(&text), &s, &err), -1);
    assert_true(err.message.n < 20000); /* not one message for each of 5,001 bad values */
    buf_fini(&text);
    arena_free(a);
}

/* The terms as "key op value" lines: selector_format() is for labels and escapes nothing. */
static void reads_fields(void **state)
{
    static const struct fact facts[] = {
        {"metadata.name=x", "metadata.name=x"},
        {"status.phase!=Running,metadata.name==x", "metadata.name=x,status.phase!=Running"},
        {"a=b\\,c\\=\\\\", "a=b,c=\\"},
        {"a=", "a="},
        {"a!=", "a!="},
        {"=", ""},
        {"", ""},
        {",,a=b,,", "a=b"},
        {"a = b", "a = b"},
    };
    static const struct fact bad[] = {
        {"a,b", "invalid selector: 'a,b'; can't understand 'a'"},
        {"a!b", "invalid selector: 'a!b'; can't understand 'a!b'"},
        {"a=b=c", "invalid field selector: unescaped character in value: 61"},
        {"a=b\\x", "invalid field selector: invalid escape sequence: \\x"},
        {"a=\\\xc3\xa9", "invalid field selector: invalid escape sequence: \\\xc3\xa9"},
        {"a=b\\", "invalid field selector: invalid escape sequence: \\"},
    };

    (void)state;
    accepts(selector_parse_fields, facts, COUNT(facts));
    refuses(selector_parse_fields, bad, COUNT(bad));
}

static int parse_json(struct arena *a, struct str text, struct selector *ret, struct err *err)
{
    cJSON *node;

    return json_parse(a, text, &node, err) || selector_from_json(a, node, ret, err) ? -1 : 0;
}

static void reads_json(void **state)
{
    static const struct fact facts[] = {
        {"{}", ""},
        {"{\"matchLabels\":null,\"matchExpressions\":[]}", ""},
        {"{\"matchLabels\":{\"b\":\"1\",\"a\":\"2\",\"c\":null}}", "a=2,b=1,c="},
        {"{\"matchExpressions\":[{\"key\":\"t\",\"operator\":\"In\",\"values\":[\"y\",\"x\"]},"
         "{\"key\":\"a\",\"operator\":\"Exists\"},{\"key\":\"z\",\"operator\":\"DoesNotExist\"},"
         "{\"key\":\"n\",\"operator\":\"NotIn\",\"values\":[\"q\"]}]}",
         "a,n notin (q),t in (x,y),!z"},
        {"{\"matchLabels\":{\"a\":\"1\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\","
         "\"values\":[\"1\",\"2\"]}]}",
         "a=1,a in (1,2)"},
    };
    static const struct fact bad[] = {
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}",
         "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":[\"x\"]}]}",
         "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"1\"]}]}",
         "\"Gt\" is not a valid label selector operator"},
        {"{\"matchExpressions\":[null]}", "\"\" is not a valid label selector operator"},
        {"{\"matchExpressions\":[{\"operator\":\"Exists\"}]}",
         "key: Invalid value: \"\": name part must be non-empty; " BAD_NAME},
        {"{\"matchLabels\":{\"a b\":\"c d\"}}",
         "[key: Invalid value: \"a b\": " BAD_NAME
         ", values[0][a b]: Invalid value: \"c d\": " BAD_VALUE "]"},
        {"{\"matchLabels\":{\"a\":1}}", "json: cannot unmarshal number into Go struct field "
                                        "LabelSelector.matchLabels of type string"},
        {"{\"matchLabels\":[]}", "json: cannot unmarshal array into Go struct field "
                                 "LabelSelector.matchLabels of type map[string]string"},
        {"{\"matchExpressions\":[{\"key\":1}]}",
         "json: cannot unmarshal number into Go struct field "
         "LabelSelectorRequirement.matchExpressions.key of type string"},
        {"[]", "json: cannot unmarshal array into Go value of type v1.LabelSelector"},
    };

    (void)state;
    accepts(parse_json, facts, COUNT(facts));
    refuses(parse_json, bad, COUNT(bad));
}

static struct str flat(struct arena *a, const char *json)
{
    struct err err;
    cJSON *map;

    err_init(&err, a);
    assert_int_equal(json_parse(a, str_c(json), &map, &err), 0);
    return labels_flatten(a, map);
}

static void nothing_is_not_everything(void **state)
{
    struct arena *a = arena_new(0);
    struct str labels = flat(a, "{\"a\":\"1\",\"b\":\"2\"}");
    struct selector s;
    struct err err;
    cJSON *map = json_new_object(a);

    (void)state;
    err_init(&err, a);
    assert_int_equal(selector_from_json(a, NULL, &s, &err), 0);
    assert_false(selector_match(&s, labels));
    assert_int_equal(selector_from_json(a, json_new_null(a), &s, &err), 0);
    assert_false(selector_match(&s, labels));
    assert_int_equal(selector_from_json(a, map, &s, &err), 0);
    assert_true(selector_match(&s, labels));
    assert_true(selector_match(&s, STR_NULL));

    selector_from_map(a, NULL, &s);
    assert_false(selector_match(&s, labels));
    selector_from_map(a, map, &s);
    assert_false(selector_match(&s, labels));
    json_set_str(a, map, "b", STR("2"));
    json_set_str(a, map, "a", STR("1"));
    selector_from_map(a, map, &s);
    assert_true(selector_match(&s, labels));
    assert_str(selector_format(a, &s), "a=1,b=2");
    assert_false(selector_match(&s, flat(a, "{\"a\":\"1\"}")));
    arena_free(a);
}

static void matches(void **state)
{
    static const struct {
        const char *selector, *labels;
        bool answer;
    } facts[] = {
        {"a=1", "{\"a\":\"1\"}", true},
        {"a=1", "{\"a\":\"2\"}", false},
        {"a=1", "{}", false},
        {"a=", "{\"a\":\"\"}", true},
        {"a=", "{}", false},
        {"a!=1", "{}", true},
        {"a!=1", "{\"a\":\"1\"}", false},
        {"a in (1,2)", "{\"a\":\"2\"}", true},
        {"a in (1,2)", "{\"aa\":\"2\"}", false},
        {"a notin (1,2)", "{\"a\":\"2\"}", false},
        {"a notin (1,2)", "{}", true},
        {"a", "{\"a\":\"x\"}", true},
        {"a", "{\"b\":\"x\"}", false},
        {"!a", "{\"b\":\"x\"}", true},
        {"!a", "{\"a\":\"\"}", false},
        {"a>5", "{\"a\":\"6\"}", true},
        {"a>5", "{\"a\":\"5\"}", false},
        {"a<5", "{\"a\":\"-9\"}", true},
        {"a<5", "{\"a\":\"four\"}", false},
        {"a>5", "{}", false},
        {"a,a!=2,c,!b", "{\"c\":\"\",\"a\":\"1\",\"d\":\"\"}", true},
        {"a,a!=1,c", "{\"c\":\"\",\"a\":\"1\"}", false},
        {"z", "{\"a\":\"\",\"m\":\"\",\"z\":\"\"}", true},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(facts); i++) {
        struct selector s;
        struct err err;
        err_init(&err, a);
        assert_int_equal(selector_parse(a, str_c(facts[i].selector), &s, &err), 0);
        if (selector_match(&s, flat(a, facts[i].labels)) != facts[i].answer)
            fail_msg("%s on %s", facts[i].selector, facts[i].labels);
    }
    arena_free(a);
}

static void matches_unsorted_terms(void **state)
{
    const struct str one = STR("1");
    const struct selector_term terms[] = {
        {.key = STR("z"), .op = SEL_EQ, .n_values = 1, .values = &one},
        {.key = STR("a"), .op = SEL_EQ, .n_values = 1, .values = &one},
        {.key = STR("m"), .op = SEL_NOT_EXISTS},
    };
    const struct selector s = {.n = 3, .terms = terms};
    struct arena *a = arena_new(0);

    (void)state;
    assert_true(selector_match(&s, flat(a, "{\"a\":\"1\",\"z\":\"1\"}")));
    assert_false(selector_match(&s, flat(a, "{\"a\":\"2\",\"z\":\"1\"}")));
    assert_false(selector_match(&s, flat(a, "{\"a\":\"1\",\"m\":\"\",\"z\":\"1\"}")));
    arena_free(a);
}

static void flattens(void **state)
{
    struct arena *a = arena_new(0);
    struct str set = flat(a, "{\"b\":\"2\",\"a\":\"\",\"n\":1,\"bb\":\"3\",\"z\":\"x\\u0000y\"}");
    struct str value = STR("untouched"), key, rest;

    (void)state;
    assert_int_equal(set.n, 12);
    assert_memory_equal(set.p,
                        "a\0\0b\0"
                        "2\0bb\0"
                        "3",
                        12);
    assert_true(labels_get(set, STR("a"), &value));
    assert_int_equal(value.n, 0);
    assert_true(labels_get(set, STR("bb"), &value));
    assert_str(value, "3");
    assert_false(labels_get(set, STR("z"), &value)); /* its value cannot be held */
    assert_false(labels_get(set, STR("aa"), &value));
    assert_str(value, "3");

    rest = set;
    for (int i = 0; i < 3; i++)
        assert_true(labels_next(&rest, &key, &value));
    assert_str(key, "bb");
    assert_false(labels_next(&rest, &key, &value));
    rest = str_sub(set, 0, set.n - 1); /* cut off: no pair is made up */
    assert_true(labels_next(&rest, &key, &value));
    assert_true(labels_next(&rest, &key, &value));
    assert_false(labels_next(&rest, &key, &value));

    assert_null(labels_flatten(a, NULL).p);
    assert_non_null(flat(a, "{}").p);
    assert_int_equal(flat(a, "{}").n, 0);
    assert_false(labels_get(STR_NULL, STR("a"), &value));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_labels),
        cmocka_unit_test(refuses_labels),
        cmocka_unit_test(a_nul_ends_labels),
        cmocka_unit_test(bounds_terms_and_values),
        cmocka_unit_test(reads_fields),
        cmocka_unit_test(reads_json),
        cmocka_unit_test(nothing_is_not_everything),
        cmocka_unit_test(matches),
        cmocka_unit_test(matches_unsorted_terms),
        cmocka_unit_test(flattens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
