/* SPDX-License-Identifier: Apache-2.0 */
/* YAML: that it means what sigs.k8s.io/yaml v1.6 makes of it (the expected strings are its results,
 * with keys in document order), that bombs are refused, and that what is printed reads back the
 * same. */

#include "test.h"

#include <sublet/yaml.h>

static struct arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena = arena_free(arena);
    return 0;
}

struct pair {
    const char *text, *want;
};

static cJSON *parse_n(struct str text, struct err *err)
{
    struct str exact = {memcpy(mem_alloc(text.n), text.n ? text.p : "", text.n), text.n};
    cJSON *node = NULL;

    err_init(err, arena);
    if (yaml_parse(arena, exact, NULL, NULL, &node, err) < 0) {
        assert_ptr_equal(err->kind, &ERR_BAD_REQUEST);
        assert_null(node);
    }
    mem_free(exact.p);
    return node;
}

static void check_values(const struct pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct err err;
        cJSON *node = parse_n(str_c(pairs[i].text), &err);

        if (!node)
            fail_msg("%s: %.*s", pairs[i].text, STR_F(err.message));
        assert_str(json_text(arena, node), pairs[i].want);
    }
}

static void check_errors(const struct pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct err err;

        if (parse_n(str_c(pairs[i].text), &err))
            fail_msg("%s is no error", pairs[i].text);
        assert_str(err.message, pairs[i].want);
    }
}

static void types_plain_scalars(void **state)
{
    static const struct pair pairs[] = {
        {"[y, n, yes, No, ON, off, true, FALSE, tRue]",
         "[true,false,true,false,true,false,true,false,\"tRue\"]"},
        {"[~, null, Null, nULL, '', \"\"]", "[null,null,null,\"nULL\",\"\",\"\"]"},
        {"[0o17, 0x1f, 1_000, 017, 08, 0b11, -0b11, +1, -1, +0x1f, 1__0, _1, 1_, 0x_1f, 0O17]",
         "[15,31,1000,15,8,3,-3,1,-1,31,10,\"_1\",1,31,15]"},
        {"[0o18, 0o, 0x, 0b2, 00, 0_1, 09, 1_000.5, 0b1_0, --1, 1-1]",
         "[\"0o18\",\"0o\",\"0x\",\"0b2\",0,1,9,1000.5,2,\"--1\",\"1-1\"]"},
        {"[1.0, 1., .5, 1e3, +1.5, -1.5e-3, 1_0.5, .5_0, 1e, .e1, ., .1.1, +.5, -0, -0.0, 1e400]",
         "[1,1,0.5,1000,1.5,-0.0015,10.5,0.5,\"1e\",\".e1\",\".\",\".1.1\",0.5,0,-0,\"1e400\"]"},
        {"[9223372036854775807, 9223372036854775808, 18446744073709551616, -9223372036854775808]",
         "[9223372036854775807,9223372036854775808,18446744073709552000,-9223372036854775808]"},
        {"[2001-01-01, 2001-12-14t21:59:43.10-05:00, 12:30:45]",
         "[\"2001-01-01\",\"2001-12-14t21:59:43.10-05:00\",\"12:30:45\"]"},
        {"['1', \"true\", 'null', !!str 1]", "[\"1\",\"true\",\"null\",\"1\"]"},
        {"[!!int \"5\", !!float 5, !!bool yes, !!binary aGVsbG8=, !foo 5, !!set {b}]",
         "[5,5,true,\"hello\",\"5\",{\"b\":null}]"},
        {"!!binary /////w==", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };

    (void)state;
    check_values(pairs, COUNT(pairs));
}

static void reads_documents(void **state)
{
    static const struct pair pairs[] = {
        {"", "null"},
        {"# nothing\n", "null"},
        {"---\n", "null"},
        {"a: 1\n...\n", "{\"a\":1}"},
        {"%YAML 1.1\n---\na: 1", "{\"a\":1}"},
        {"\xef\xbb\xbf"
         "a: 1",
         "{\"a\":1}"},
        {"a:\n- b\n- c: d\n  e: f\n", "{\"a\":[\"b\",{\"c\":\"d\",\"e\":\"f\"}]}"},
        {"a: |\n  x\n  y\nb: >\n  x\n  y\nc: |-\n  z\n",
         "{\"a\":\"x\\ny\\n\",\"b\":\"x y\\n\",\"c\":\"z\"}"},
        {"a: \"\\u0041\\x41\\n\\0\"", "{\"a\":\"AA\\n\\u0000\"}"},
        {"{\"a\":1,\"b\":[true,null,\"x\\ny\"]}", "{\"a\":1,\"b\":[true,null,\"x\\ny\"]}"},
        {"? a\n: b", "{\"a\":\"b\"}"},
        {"{1: a, 1.5: b, true: c, 0x1f: d, 1e3: e, on: f, 2001-01-01: g, -1: h}",
         "{\"1\":\"a\",\"1.5\":\"b\",\"true\":\"f\",\"31\":\"d\",\"1000\":\"e\",\"2001-01-01\":"
         "\"g\","
         "\"-1\":\"h\"}"},
        {"{1e21: b, 0.1: c, 16777217.0: d, 1e-7: e, 3.14159265358979: f, .inf: g}",
         "{\"1e+21\":\"b\",\"0.1\":\"c\",\"1.6777216e+07\":\"d\",\"1e-07\":\"e\","
         "\"3.1415927\":\"f\",\".inf\":\"g\"}"},
    };

    (void)state;
    check_values(pairs, COUNT(pairs));
}

static void expands_anchors(void **state)
{
    static const struct pair pairs[] = {
        {"a: &x {b: 1}\nc: *x", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"a: &x 5\n*x : *x", "{\"a\":5,\"5\":5}"},
        {"[&x 1, *x, &x 2, *x]", "[1,1,2,2]"},
        {"a: &x {b: 1}\nc: {<<: *x, d: 2, b: 3}", "{\"a\":{\"b\":1},\"c\":{\"b\":3,\"d\":2}}"},
        {"a: &x {b: 1}\nc: {d: 2, b: 3, <<: *x}", "{\"a\":{\"b\":1},\"c\":{\"d\":2,\"b\":1}}"},
        {"c: {<<: {b: 1}, d: 2}", "{\"c\":{\"b\":1,\"d\":2}}"},
        {"a: &x {b: 1}\nc: {<<: [*x, {b: 4, e: 5}], d: 2}",
         "{\"a\":{\"b\":1},\"c\":{\"b\":1,\"e\":5,\"d\":2}}"},
        {"c: {\"<<\": 1}\nd: <<", "{\"c\":{\"\\u003c\\u003c\":1},\"d\":\"\\u003c\\u003c\"}"},
        {"a: {<<: &m {b: &n [1]}, c: *m}\nd: *n",
         "{\"a\":{\"b\":[1],\"c\":{\"b\":[1]}},\"d\":[1]}"},
    };

    (void)state;
    check_values(pairs, COUNT(pairs));
}

static void refuses(void **state)
{
    static const struct pair pairs[] = {
        {"a: 1\n---\nb: 2", "yaml: line 2: more than one document"},
        {"a: 1\nb: *x", "yaml: line 2: unknown anchor 'x' referenced"},
        {"a: &x [*x]", "yaml: line 1: anchor 'x' value contains itself"},
        {"a: &x {<<: *x}", "yaml: line 1: anchor 'x' value contains itself"},
        {"~: a", "yaml: line 1: unsupported map key"},
        {"18446744073709551615: a", "yaml: line 1: unsupported map key"},
        {"{a: b}: c", "yaml: line 1: invalid map key"},
        {"[a]: c", "yaml: line 1: invalid map key"},
        {"\"a\\0b\": c", "yaml: line 1: map key contains U+0000"},
        {"c: {<<: 5}", "yaml: line 1: map merge requires map or sequence of maps as the value"},
        {"c: {<<: [[]]}", "yaml: line 1: map merge requires map or sequence of maps as the value"},
        {"a: &x [{}]\nc: {<<: *x}",
         "yaml: line 2: map merge requires map or sequence of maps as the value"},
        {"a: 1\nb: .inf", "yaml: line 2: numbers must be finite"},
        {"[.nan]", "yaml: line 1: numbers must be finite"},
        {"a: !!int 5.5", "yaml: line 1: cannot decode !!float `5.5` as a !!int"},
        {"a: !!null foo", "yaml: line 1: cannot decode !!str `foo` as a !!null"},
        {"!!binary x", "yaml: line 1: !!binary value contains invalid base64 data"},
        {"a: b: c", "yaml: line 1: mapping values are not allowed in this context"},
        {"a: [1", "yaml: line 2: did not find expected ',' or ']'"},
        {"a: \xff", "yaml: offset 3: invalid leading UTF-8 octet"},
        {"a: \x01", "yaml: offset 3: control characters are not allowed"},
    };

    (void)state;
    check_errors(pairs, COUNT(pairs));
}

static void note_path(void *ctx, struct str path)
{
    struct buf *b = ctx;

    buf_add(b, path);
    buf_char(b, ';');
}

static void reports_duplicates(void **state)
{
    struct buf b = BUF_INIT(0);
    struct err err;
    cJSON *node;

    (void)state;
    err_init(&err, arena);
    assert_int_equal(yaml_parse(arena,
                                STR("a: 1\nb:\n- c: 1\n  c: 2\n  c: 3\n1: v\n\"1\": w\na: {d: 1}\n"
                                    "m: {<<: {o: 1}, o: 2}"),
                                note_path, &b, &node, &err),
                     0);
    assert_str(buf_str(&b),
               "line 4: key \"c\" already set in map;line 5: key \"c\" already set in map;"
               "line 7: key \"1\" already set in map;line 8: key \"a\" already set in map;"
               "line 9: key \"o\" already set in map;");
    assert_str(json_text(arena, node),
               "{\"a\":{\"d\":1},\"b\":[{\"c\":3}],\"1\":\"w\",\"m\":{\"o\":2}}");
    buf_fini(&b);
}

/* a: [x x x...], b: [*a *a ...], ... : 9^9 nodes, or a few nodes with very long strings. */
static void refuses_bombs(void **state)
{
    struct buf b = BUF_INIT(0);
    struct err err;

    (void)state;
    buf_addc(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        buf_printf(&b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            buf_printf(&b, "%s*a%d", k ? "," : "", i - 1);
        buf_addc(&b, "]\n");
    }
    assert_null(parse_n(buf_str(&b), &err));
    assert_true(str_contains(err.message, STR("document contains excessive aliasing")));

    buf_clear(&b);
    for (int i = 0; i < 100; i++)
        buf_addc(&b, "{<<: ");
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "%ck%d: v", i ? ',' : '{', i);
    for (int i = 0; i < 101; i++)
        buf_char(&b, '}');
    assert_null(parse_n(buf_str(&b), &err)); /* each level moves all of them */
    assert_true(str_contains(err.message, STR("document contains excessive aliasing")));

    buf_clear(&b);
    buf_printf(&b, "- &a x%0100000d\n", 0);
    for (int i = 0; i < 1000; i++)
        buf_addc(&b, "- *a\n");
    assert_null(parse_n(buf_str(&b), &err));
    assert_true(str_contains(err.message, STR("document contains excessive aliasing")));
    buf_fini(&b);
}

static void limits_depth(void **state)
{
    struct buf b = BUF_INIT(0);
    struct err err;

    (void)state;
    for (int i = 0; i < 5000; i++)
        buf_char(&b, '[');
    assert_null(parse_n(buf_str(&b), &err));
    assert_str(err.message, "yaml: line 1: exceeded max depth");

    buf_clear(&b);
    buf_addc(&b, "[[[[[[[[[[ &x a ]]]]]]]]]]");
    assert_non_null(parse_n(buf_str(&b), &err));

    buf_clear(&b);
    buf_addc(&b, "- &a0 [1]\n");
    for (int i = 1; i < 300; i++)
        buf_printf(&b, "- &a%d [*a%d]\n", i, i - 1);
    assert_null(parse_n(buf_str(&b), &err));
    assert_true(str_contains(err.message, STR("exceeded max depth")));
    buf_fini(&b);
}

static void prints_like_kubectl(void **state)
{
    struct buf b = BUF_INIT(0);
    struct err err;
    cJSON *node;

    (void)state;
    err_init(&err, arena);
    assert_int_equal(
        json_parse(arena,
                   STR("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"labels\":{},"
                       "\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"name\":\"x\"},"
                       "\"spec\":{\"containers\":[{\"image\":\"a.b/c:1\",\"args\":[\"-v\",\"on\","
                       "\"1\"],\"tty\":true}],\"m\":[[1,2],[]],\"z\":null},"
                       "\"text\":\"a\\n  b\\n\",\"cut\":\"a\\nb\",\"odd\":\"\\nx\",\"e\":\"\"}"),
                   &node, &err),
        0);
    yaml_print(&b, node);
    assert_str(buf_str(&b), "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n"
                            "  creationTimestamp: \"2026-01-02T03:04:05Z\"\n  name: x\n"
                            "spec:\n  containers:\n  - image: a.b/c:1\n    args:\n    - \"-v\"\n"
                            "    - \"on\"\n    - \"1\"\n    tty: true\n  m:\n  - - 1\n    - 2\n"
                            "  - []\n  z: null\ntext: |\n  a\n    b\ncut: |-\n  a\n  b\n"
                            "odd: \"\\nx\"\ne: \"\"\n");
    buf_fini(&b);
}

static void check_read_back(const cJSON *node)
{
    struct buf b = BUF_INIT(0);
    struct err err;
    cJSON *again;

    yaml_print(&b, node);
    again = parse_n(buf_str(&b), &err);
    if (!again)
        fail_msg("%.*s\n%.*s", STR_F(err.message), STR_F(buf_str(&b)));
    if (!json_equal(node, again))
        fail_msg("%.*s\nis not\n%.*s", STR_F(buf_str(&b)), STR_F(json_text(arena, node)));
    buf_fini(&b);
}

/* Every pair of these as a value, an item, a key and a document. */
static void prints_what_reads_back(void **state)
{
    static const char *const parts[] = {
        "",
        "a",
        " ",
        "\n",
        "\t",
        "\r",
        ":",
        "#",
        "-",
        "? ",
        "y",
        "null",
        "~",
        "1",
        "1_0",
        "0x1f",
        "1.",
        "1e3",
        ".5",
        ".inf",
        "<<",
        "=",
        "*a",
        "&a",
        "!t",
        "%",
        "@",
        "`",
        "\"",
        "'",
        "|",
        ">",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\\",
        "---",
        "...",
        "12:3",
        "\x7f",
        "\xc2\x85",
        "\xe2\x80\xa8",
        "\xef\xbb\xbf",
        "\xef\xbf\xbe",
        "\xc3\xa9",
        "\xf0\x9f\x98\x80",
        "2026-01-02",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(parts); i++) {
        for (size_t k = 0; k < COUNT(parts); k++) {
            struct str s = arena_printf(arena, "%s%s", parts[i], parts[k]);
            cJSON *node = json_new_object(arena), *list = json_new_array(arena);

            check_read_back(json_new_string(arena, s));
            json_append(list, json_new_string(arena, s));
            json_append(list,
                        json_set(arena, json_new_object(arena), "x", json_new_string(arena, s)));
            json_set(arena, node, s.p, list);
            json_set_str(arena, node, "next", s);
            check_read_back(node);
            arena_reset(arena);
        }
    }
}

static void prints_long_keys(void **state)
{
    cJSON *node = json_new_object(arena), *inner = json_new_object(arena);
    struct str key = arena_printf(arena, "%02000d", 7);

    (void)state;
    json_set_i64(arena, inner, key.p, 1);
    json_set(arena, inner, arena_printf(arena, "x%s", key.p).p, json_copy(arena, inner));
    json_append(json_set(arena, node, key.p, json_new_array(arena)), inner);
    check_read_back(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_plain_scalars),    cmocka_unit_test(reads_documents),
        cmocka_unit_test(expands_anchors),        cmocka_unit_test(refuses),
        cmocka_unit_test(reports_duplicates),     cmocka_unit_test(refuses_bombs),
        cmocka_unit_test(limits_depth),           cmocka_unit_test(prints_like_kubectl),
        cmocka_unit_test(prints_what_reads_back), cmocka_unit_test(prints_long_keys),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
