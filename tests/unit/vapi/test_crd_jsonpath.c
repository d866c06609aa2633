/* SPDX-License-Identifier: Apache-2.0
 *
 * JSONPath of printer columns: what it finds, in order, what it refuses to compile. */

#include "test.h"

#include "crd_version.h"

static const char *const OBJECT =
    "{'a':{'b':'c','x.y':1,'n':null,'t':true},'l':[1,2,3],"
    "'c':[{'type':'Ready','status':'True','n':5},{'type':'Other','status':'False','n':6}],"
    "'m':{'p':{'v':1},'q':{'v':2}}}";

struct seen {
    struct buf b;
    size_t stop_after;
};

static bool on_node(void *ctx, const cJSON *node)
{
    struct seen *s = ctx;
    struct arena *a = arena_new(0);

    if (s->b.n)
        buf_char(&s->b, ' ');
    buf_add(&s->b, json_text(a, node));
    arena_free(a);
    return !s->stop_after || --s->stop_after;
}

static void find(const char *path, size_t stop_after, const char *want)
{
    struct arena *a = arena_new(0);
    struct seen s = {.b = BUF_INIT(0), .stop_after = stop_after};
    struct jsonpath *p;
    struct err err;

    err_init(&err, a);
    if (jsonpath_compile(a, str_c(path), &p, &err))
        fail_msg("%s: %.*s", path, STR_F(err.message));
    jsonpath_eval(p, parse_quoted(a, OBJECT), on_node, &s);
    check_str(buf_str(&s.b), want, __FILE__, __LINE__);
    buf_fini(&s.b);
    arena_free(a);
}

static void test_finds(void **state)
{
    static const struct {
        const char *path, *want;
    } cases[] = {
        {".a.b", "\"c\""},
        {"$.a.b", "\"c\""},
        {".a['b']", "\"c\""},
        {".a[\"x.y\"]", "1"},
        {".a.x\\.y", "1"},
        {".a.n", "null"},
        {".a.nothing", ""},
        {".a.b.c", ""},
        {".l[0]", "1"},
        {".l[-1]", "3"},
        {".l[3]", ""},
        {".l[-4]", ""},
        {".l[*]", "1 2 3"},
        {".l.x", ""},
        {".a[0]", ""},
        {".m.*.v", "1 2"},
        {".m[*].v", "1 2"},
        {".c[*].type", "\"Ready\" \"Other\""},
        {".c[?(@.type==\"Ready\")].status", "\"True\""},
        {".c[?(@.type=='Ready')].status", "\"True\""},
        {".c[?(@.type!=\"Ready\")].status", "\"False\""},
        {".c[?(@.n==6)].type", "\"Other\""},
        {".c[?(@.absent==\"x\")].type", ""},
        {".c[?( @.type == \"]\" )].type", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        find(cases[i].path, 0, cases[i].want);
    find(".l[*]", 2, "1 2");
}

static void test_refuses(void **state)
{
    static const char *const paths[] = {
        "a",       ".",        "..a",        ".a[",          ".a[]",  ".a[x]",      ".a[?]",
        ".a[?()]", ".a[?(@)]", ".a[?(@.b)]", ".a[?(=\"\")]", ".a['b", ".a[?(@==1)]"};
    struct arena *a = arena_new(0);
    struct jsonpath *p;
    struct err err;

    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        err_init(&err, a);
        if (!jsonpath_compile(a, str_c(paths[i]), &p, &err))
            fail_msg("%s was taken", paths[i]);
    }
    arena_free(a);
}

static void test_is_bounded(void **state)
{
    struct arena *a = arena_new(0);
    struct buf b = BUF_INIT(0);
    struct jsonpath *p;
    struct err err;

    (void)state;
    for (int i = 0; i < 65; i++)
        buf_addc(&b, ".a");
    err_init(&err, a);
    assert_int_equal(jsonpath_compile(a, buf_str(&b), &p, &err), -1);
    assert_int_equal(jsonpath_compile(a, str_sub(buf_str(&b), 0, 128), &p, &err), 0);
    for (int i = 0; i < 4096; i++)
        buf_char(&b, 'a');
    assert_int_equal(jsonpath_compile(a, buf_str(&b), &p, &err), -1);
    buf_fini(&b);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
