/* SPDX-License-Identifier: Apache-2.0
 *
 * CEL: what expressions evaluate to, what the compiler refuses and in which words, and that cost
 * and depth are bounded. */

#include "test.h"

#include <sublet/cel.h>

static const char *const OBJECT =
    "{\"metadata\":{\"name\":\"web\",\"labels\":{\"app\":\"web\",\"a/b\":\"c\"}},"
    "\"spec\":{\"replicas\":3,\"ratio\":1.5,\"none\":null,\"on\":true,"
    "\"containers\":[{\"name\":\"a\",\"image\":\"r.example/a:1\"},"
    "{\"name\":\"b\",\"image\":\"docker.io/b\",\"limits\":{\"cpu\":\"500m\"}}]}}";

static const struct cel_declaration DECLARED[] = {
    {"object", "*"},    {"oldObject", "*"},       {"request", "Q"},
    {"variables", "V"}, {"namespaceObject", "N"}, {"authorizer", "Z"},
};

static const char *variable_type(void *ctx, struct str name)
{
    (void)ctx;
    return str_eqc(name, "n") ? "i" : NULL;
}

static struct cel_value variable(void *ctx, struct cel_run *run, struct str name)
{
    (void)ctx;
    (void)run;
    (void)name;
    return (struct cel_value){.kind = CEL_INT, .i = 7};
}

static bool authorize(void *ctx, const struct cel_check *check, struct str *ret_reason)
{
    (void)ctx;
    *ret_reason = STR("because");
    return str_eqc(check->resource, "pods") && str_eqc(check->verb, "get");
}

static const struct cel_environment ENVIRONMENT = {DECLARED, COUNT(DECLARED), true, variable_type,
                                                   NULL};

/* The value as CEL would print it in a message; errors begin with '!', refusals with '?'. */
static struct str evaluated(struct arena *a, const char *source, int64_t limit)
{
    struct cel_program *p, *show;
    struct cel_value v;
    struct err err;
    int64_t cost = 0;
    cJSON *object;

    err_init(&err, a);
    assert_int_equal(json_parse(a, str_c(OBJECT), &object, &err), 0);

    const struct cel_variable bound[] = {
        {"object", cel_from_json(object)},
        {"oldObject", cel_from_json(NULL)},
        {"request", cel_from_json(object)},
        {"variables", {.kind = CEL_VARIABLES}},
        {"namespaceObject", cel_from_json(NULL)},
        {"authorizer", {.kind = CEL_AUTHORIZER}},
        {"v", {0}},
    };
    struct cel_variable all[COUNT(bound)];
    struct cel_activation activation = {all, COUNT(all), variable, authorize, NULL};

    memcpy(all, bound, sizeof(all));
    if (cel_compile(a, str_c(source), &ENVIRONMENT, &p, &err))
        return arena_printf(a, "?%.*s", STR_F(err.message));
    v = cel_evaluate(a, p, &activation, limit, &cost);
    cel_program_release(p);
    assert_true(cost <= limit);
    if (v.kind == CEL_ERROR)
        return arena_printf(a, "!%.*s", STR_F(v.s));

    const struct cel_declaration shown[] = {{"v", "*"}};
    const struct cel_environment e = {shown, 1, true, NULL, NULL};

    all[COUNT(all) - 1].value = v;
    if (v.kind == CEL_OPTIONAL)
        all[COUNT(all) - 1].value = v.inner ? *v.inner : cel_string(STR("none"));
    assert_int_equal(cel_compile(a, STR("'%s'.format([v])"), &e, &show, &err), 0);
    v = cel_evaluate(a, show, &activation, CEL_CALL_LIMIT, &cost);
    cel_program_release(show);
    return v.s;
}

struct expected {
    const char *source, *want;
};

static void run(const struct expected *rows, size_t n)
{
    size_t wrong = 0;

    for (size_t i = 0; i < n; i++) {
        struct arena *a = arena_new((size_t)16 << 20);
        struct str got = evaluated(a, rows[i].source, CEL_CALL_LIMIT);

        if (!str_eqc(got, rows[i].want)) {
            print_error("%s\n got  %.*s\n want %s\n", rows[i].source, STR_F(got), rows[i].want);
            wrong++;
        }
        arena_free(a);
    }
    assert_int_equal(wrong, 0);
}

static void test_values(void **state)
{
    static const struct expected rows[] = {
        {"url('HTTPS://A.b:80/c?d=e#f').getScheme() + url('https://A.b:80/c').getPort()",
         "https80"},
        {"url('https://a.b/?x=1&y=%20+&x=2').getQuery()['x']", "[\"1\", \"2\"]"},
        {"url('x').getHost()",
         "!URL parse error during conversion from string: parse \"x\": invalid URI for request"},
        {"url('http://a:b/').getHost()",
         "!URL parse error during conversion from string: parse \"http://a:b/\": invalid port "
         "\":b\" after host"},
        {"isURL('/a') && !isURL('a.b') && !isURL('http://[::1/')", "true"},
        {"format.dns1123Label().validate('ab').hasValue()", "false"},
        {"format.byte().validate('*').value()", "[\"invalid base64\"]"},
        {"format.named('uuid').value() == format.uuid()", "true"},
        {"format.named('none').hasValue()", "false"},
        {"semver('1.0.0-a.2').isLessThan(semver('1.0.0-a.10'))", "true"},
        {"semver('v01.02', true).minor()", "2"},
        {"semver('1.2').major()", "!No Major.Minor.Patch elements found"},
        {"semver('1.0.0+a') == semver('1.0.0+b')", "true"},
        {"string(cidr('10.1.2.3/12').masked()) + string(cidr('fd00:f::1/20').masked())",
         "10.0.0.0/12fd00::/20"},
        {"ip('8.8.8.8').isGlobalUnicast() && !ip('fe80::1').isGlobalUnicast()", "true"},
        {"1 + 2 * 3", "7"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775807 + 1", "!integer overflow"},
        {"9223372036854775808", "?ERROR: <input>:1:1: invalid int literal\n"
                                " | 9223372036854775808\n | ^"},
        {"5 / 0", "!division by zero"},
        {"7 % 4", "3"},
        {"0x1F", "31"},
        {"1u + 2u", "3"},
        {"1u - 2u", "!unsigned integer overflow"},
        {"1.5 * 2.0", "3"},
        {"dyn(1) == 1.0 && dyn(1u) == 1", "true"},
        {"1 < 1.5 && 2u > 1", "true"},
        {"'a' + \"b\" + r'\\n' + '\\x41\\u00e9\\101'", "ab\\nA\303\251A"},
        {"'''a'b'''", "a'b"},
        {"b'\\xff'.size()", "1"},
        {"true ? 'y' : 'n'", "y"},
        {"[1, 2] + [3]", "[1, 2, 3]"},
        {"{'a': [dyn(true), dyn(null)]}", "{\"a\":[true, null]}"},
        {"{'a': 1}.a", "1"},
        {"2 in [1, 2]", "true"},
        {"'x' in {'y': 1}", "false"},
        {"[1, [2]] == [1.0, [2]]", "?ERROR: <input>:1:5: expected type 'int' but found "
                                   "'list(int)'\n | [1, [2]] == [1.0, [2]]\n | ....^"},
        {"!false || 1 / 0 > 1", "true"},
        {"1 / 0 > 1 || true", "true"},
        {"1 / 0 > 1 && false", "false"},
        {"1 / 0 > 1 || false", "!division by zero"},
        {"type(1) == int && type('') == string", "true"},
        {"int('12') + int(3.9) + int(2u)", "17"},
        {"string(1) + string(true) + string(1.5)", "1true1.5"},
        {"'%s'.format([[1.1, 0.1, 1e300, 100000.0, 999999.5, 0.0001, 123456.789, 1e6]])",
         "[1.1, 0.1, 1e+300, 100000, 999999.5, 0.0001, 123456.789, 1e+06]"},
        {"'%s'.format([[5e-324, 0.30000000000000004, 1.0 / 3.0, -2.5, 999999.9999999999]])",
         "[5e-324, 0.30000000000000004, 0.3333333333333333, -2.5, 999999.9999999999]"},
        {"double('1.5') + double(1)", "2.5"},
        {"duration('1h30m') > duration('60m')", "true"},
        {"string(duration('90s'))", "90s"},
        {"timestamp('2024-02-29T12:30:00Z').getDayOfMonth()", "28"},
        {"timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
         "true"},
        {"// all\n 1 // one\n", "1"},
    };

    (void)state;
    run(rows, COUNT(rows));
}

static void test_objects(void **state)
{
    static const struct expected rows[] = {
        {"object.spec.replicas > 2", "true"},
        {"object.spec.ratio", "1.5"},
        {"object.spec.missing", "!no such key: missing"},
        {"has(object.spec.missing)", "false"},
        {"has(object.spec.none) && object.spec.none == null", "true"},
        {"object.metadata.labels['a/b']", "c"},
        {"object.spec.containers[1].name", "b"},
        {"object.spec.containers[2].name", "!index out of bounds: 2"},
        {"object.spec.containers.all(c, c.image.startsWith('r.example/'))", "false"},
        {"object.spec.containers.exists(c, has(c.limits) && 'cpu' in c.limits)", "true"},
        {"object.spec.containers.exists_one(c, c.name == 'a')", "true"},
        {"object.spec.containers.map(c, c.name)", "[\"a\", \"b\"]"},
        {"object.spec.containers.filter(c, c.name != 'a').map(c, c.image)", "[\"docker.io/b\"]"},
        {"object.spec.containers.map(c, c.name == 'a', c.image)", "[\"r.example/a:1\"]"},
        {"object.metadata.labels.all(k, k.size() > 2)", "true"},
        {"object.metadata.labels.all(k, v, v != '')", "true"},
        {"[3, 1].transformList(i, v, i * v)", "[0, 1]"},
        {"{'a': 1}.transformMap(k, v, v + 1)", "{\"a\":2}"},
        {"['a', 'b'].transformMapEntry(i, v, {v: i})", "{\"a\":0, \"b\":1}"},
        {"{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, k != 'a', {v: k, k: v})",
         "{\"b\":\"y\", \"y\":\"b\"}"},
        {"[1, 2].transformMapEntry(i, v, dyn({}))", "{}"},
        {"[1, 2].transformMapEntry(i, v, {'a': v})", "!insert failed: key a already exists"},
        {"[1, 2].transformMapEntry(i, v, dyn(v))", "!no such overload: cel.@mapInsert(map, int)"},
        {"timestamp('2026-07-01T22:30:15.123Z').getHours('Europe/Berlin')", "0"},
        {"timestamp('2026-01-01T22:30:00Z').getHours('Europe/Berlin')", "23"},
        {"timestamp('2026-12-31T22:30:00Z').getFullYear('+02:00')", "2027"},
        {"timestamp('2026-01-01T00:30:00Z').getMinutes('-01:15')", "15"},
        {"timestamp('2026-01-01T00:30:00Z').getDayOfYear('01:00')", "0"},
        {"timestamp('2026-01-01T00:30:00Z').getDate('UTC')", "1"},
        {"timestamp('2026-01-01T00:30:00Z').getDate('')", "1"},
        {"timestamp('2026-01-01T00:30:00Z').getDate('Nowhere/Town')",
         "!unknown time zone Nowhere/Town"},
        {"timestamp('2026-01-01T00:30:00Z').getDate('x:00')",
         "!strconv.Atoi: parsing \"x\": invalid syntax"},
        {"timestamp('2026-01-01T00:30:00Z').getDate('99999999:00')", "!timestamp overflow"},
        {"object.?spec.?missing.orValue('x')", "x"},
        {"object.?spec.?replicas.hasValue()", "true"},
        {"object[?'spec'].optMap(s, s.replicas).value()", "3"},
        {"[1, ?optional.none(), ?optional.of(2)]", "[1, 2]"},
        {"oldObject == null", "true"},
        {"Object{spec: Object.spec{a: 1}}.spec.a", "1"},
        {"Object{?a: optional.none(), ?b: optional.of(2)} == Object{b: 2.0}", "true"},
        {"Object{a: 1} == Object.a{a: 1}", "?ERROR: <input>:1:14: found no matching overload for "
                                           "'_==_' applied to '(Object, Object.a)'\n"
                                           " | Object{a: 1} == Object.a{a: 1}\n | .............^"},
        {"has(Object{a: 1}.b)", "false"},
        {"Object{a: 1}.b", "!no such key: b"},
        {"JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a~/b')}.path", "/a~0~1b"},
        {"[JSONPatch{op: 'a'}, Object{}].size()",
         "?ERROR: <input>:1:28: expected type 'JSONPatch' but found 'Object'\n"
         " | [JSONPatch{op: 'a'}, Object{}].size()\n | ...........................^"},
        {"Other{a: 1}", "?ERROR: <input>:1:6: undeclared reference to 'Other' (in container '')\n"
                        " | Other{a: 1}\n | .....^"},
        {"oldObject.spec", "!no such key: spec"},
        {"object.spec.replicas + 'a'", "!no such overload"},
        {"variables.n + 1", "8"},
        {"object.spec.containers[1]", "{\"image\":\"docker.io/b\", "
                                      "\"limits\":{\"cpu\":\"500m\"}, \"name\":\"b\"}"},
    };

    (void)state;
    run(rows, COUNT(rows));
}

static void test_functions(void **state)
{
    static const struct expected rows[] = {
        {"'tacocat'.indexOf('co')", "2"},
        {"'tacocat'.lastIndexOf('a')", "5"},
        {"'h\303\251llo'.charAt(1)", "\303\251"},
        {"'tacocat'.substring(4)", "cat"},
        {"'tacocat'.substring(0, 4).upperAscii()", "TACO"},
        {"'a,b,c'.split(',').join('-')", "a-b-c"},
        {"'abc'.split('')", "[\"a\", \"b\", \"c\"]"},
        {"'hello hello'.replace('he', 'we', 1)", "wello hello"},
        {"' x '.trim() + '|'", "x|"},
        {"'abc'.matches('^[a-c]+$')", "true"},
        {"'abc 123'.find('[0-9]+')", "123"},
        {"'1 22 3'.findAll('[0-9]+')", "[\"1\", \"22\", \"3\"]"},
        {"'%s has %d, %.2f, %x'.format(['a', 3, 1.5, 255])", "a has 3, 1.50, ff"},
        {"strings.quote('a\"b')", "\"a\\\"b\""},
        {"[1, 2, 3].sum() + [5, 4].max() - [5, 4].min()", "7"},
        {"[1, 2].isSorted() && ![2, 1].isSorted()", "true"},
        {"[3, 1, 2].sort() == [1, 2, 3]", "true"},
        {"['bb', 'a'].sortBy(s, s.size())", "[\"a\", \"bb\"]"},
        {"[[1], [2, 3]].flatten()", "[1, 2, 3]"},
        {"[1, 2, 1].distinct().reverse()", "[2, 1]"},
        {"[1, 2, 3].slice(1, 3)", "[2, 3]"},
        {"lists.range(3)", "[0, 1, 2]"},
        {"sets.contains([1, 2], [2]) && sets.intersects([1], [1]) && !sets.equivalent([1], [2])",
         "true"},
        {"quantity('500m').isLessThan(quantity('1'))", "true"},
        {"quantity('1Gi').add(quantity('1Gi')).compareTo(quantity('2Gi'))", "0"},
        {"quantity(object.spec.containers[1].limits.cpu) <= quantity('1')",
         "?ERROR: <input>:1:48: found no matching overload for '_<=_' applied to "
         "'(kubernetes.Quantity, kubernetes.Quantity)'\n"
         " | quantity(object.spec.containers[1].limits.cpu) <= quantity('1')\n"
         " | ...............................................^"},
        {"isQuantity('x')", "false"},
        {"cidr('10.0.0.0/8').containsIP('10.1.2.3') && isIP('::1') && !isCIDR('1.2.3.4')", "true"},
        {"ip('127.0.0.1').isLoopback() && ip('::1').family() == 6", "true"},
        {"authorizer.group('').resource('pods').namespace('d').check('get').allowed()", "true"},
        {"authorizer.group('').resource('secrets').check('get').allowed()", "false"},
    };

    (void)state;
    run(rows, COUNT(rows));
}

/* The words of cel-go, which users search for. */
static void test_refused(void **state)
{
    static const struct expected rows[] = {
        {"foo == 1", "?ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n"
                     " | foo == 1\n | ^"},
        {"object.x == 1 &&\n fun(1)",
         "?ERROR: <input>:2:5: undeclared reference to 'fun' (in container '')\n"
         " |  fun(1)\n | ....^"},
        {"'a' == 1", "?ERROR: <input>:1:5: found no matching overload for '_==_' applied to "
                     "'(string, int)'\n | 'a' == 1\n | ....^"},
        {"'a'.startsWith(1)",
         "?ERROR: <input>:1:15: found no matching overload for 'startsWith' applied to "
         "'string.(int)'\n | 'a'.startsWith(1)\n | ..............^"},
        {"request.nope", "?ERROR: <input>:1:8: undefined field 'nope'\n | request.nope\n"
                         " | .......^"},
        {"variables.nope", "?ERROR: <input>:1:10: undefined field 'nope'\n | variables.nope\n"
                           " | .........^"},
        {"'a'.matches('(')", "?ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('(')\n"
                             " | ............^"},
        {"1.all(x, true)",
         "?ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension (must "
         "be list, map, or dynamic)\n | 1.all(x, true)\n | ^"},
        {"has(object)", "?ERROR: <input>:1:5: invalid argument to has() macro\n | has(object)\n"
                        " | ....^"},
    };

    (void)state;
    run(rows, COUNT(rows));
}

static const char *const BOMBS[] = {
    "lists.range(100000).all(x, lists.range(100000).all(y, x + y >= 0))",
    "lists.range(900).map(x, lists.range(900).map(y, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaa')).size() > 0",
    "lists.range(99999).all(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('^(a+)+$') || true)",
};

/* Passing the limit is an error that no || absorbs. */
static void test_cost_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(BOMBS); i++) {
        struct arena *a = arena_new((size_t)16 << 20);

        assert_str(evaluated(a, BOMBS[i], CEL_CALL_LIMIT),
                   "!operation cancelled: actual cost limit exceeded");
        arena_free(a);
    }
}

static void test_depth_ends(void **state)
{
    static const struct {
        const char *open, *middle, *close;
        size_t times;
    } rows[] = {
        {"(", "1", ")", 5000},     {"[", "1", "]", 5000},      {"", "1", "+1", 5000},
        {"-", "1", "", 90000},     {"", "object", ".a", 5000}, {"true?1:", "1", "", 5000},
        {"{'a':", "1", "}", 3000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *a = arena_new((size_t)64 << 20);
        struct buf b = BUF_INIT(0);
        struct str got;

        for (size_t k = 0; k < rows[i].times; k++)
            buf_addc(&b, rows[i].open);
        buf_addc(&b, rows[i].middle);
        for (size_t k = 0; k < rows[i].times; k++)
            buf_addc(&b, rows[i].close);
        got = evaluated(a, arena_cstr(a, buf_str(&b)), CEL_CALL_LIMIT);
        if (*rows[i].open == '-')
            assert_str(got, "1");
        else if (!str_contains(got, STR("limit exceeded")))
            fail_msg("%s: %.*s", rows[i].open, (int)(got.n < 200 ? got.n : 200), got.p);
        buf_fini(&b);
        arena_free(a);
    }
}

#define LONG 40000

/* What is free, or as dear as one step, upstream: a source may have thousands, an object too. */
static void test_walks_are_charged(void **state)
{
    static const struct {
        const char *source;
        int64_t least;
    } rows[] = {
        {"size(object.l) > 0", LONG / 8},
        {"size(object.s) > 0", LONG / 100},
        {"object.l[object.l.size() - 1] == 0 || object.l[0] == 1", LONG / 4},
        {"object.l[9999999] == 0 || true", LONG / 8},
        {"object.l == [1]", LONG / 8},
        {"object.l.first().hasValue()", LONG / 8},
        {"object.s in [object.t]", LONG / 10},
        {"[object.s] == [object.t]", LONG / 10},
        {"{'a': object.s} == {'a': object.t}", LONG / 10},
        {"object.s == object.t", LONG / 10},
        {"object.t in object.m", LONG / 256},
        {"[object.s, object.t].max() != ''", LONG / 10},
        {"[object.s, object.t].sort() != []", LONG / 10},
        {"[object.s, object.t].sortBy(x, x) != []", LONG / 10},
        {"[object.s, object.t].isSorted()", LONG / 10},
        {"[object.s, object.t].distinct() != []", LONG / 10},
        {"int(object.s) == 0 || true", LONG / 11},
        {"double(object.s) == 0.0 || true", LONG / 11},
        {"duration(object.s) == duration('0s') || true", LONG / 11},
        {"timestamp(object.s) == timestamp(0) || true", LONG / 11},
        {"'%x'.format([object.s]) == ''", LONG / 5},
        {"'%e'.format([1.0]) == ''", 20},
        {"string(1e300) == ''", 50},
        {"'%.100f'.format([1.0]) == ''", 70},
        {"'a'.matches(object.p)", 1000},
        {"[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0] == []", 23},
        {"true ? (true ? (true ? (true ? true : true) : true) : true) : true", 1},
    };
    struct buf b = BUF_INIT(0);

    (void)state;
    buf_addc(&b, "{\"l\":[1");
    for (size_t i = 1; i < LONG / 2; i++)
        buf_addc(&b, ",1");
    for (const char *key = "st"; *key; key++) {
        buf_printf(&b, "%s,\"%c\":\"", *key == 's' ? "]" : "", *key);
        for (size_t i = 0; i < LONG; i++)
            buf_char(&b, '1');
        buf_printf(&b, "%c\"", *key);
    }
    buf_addc(&b, ",\"p\":\"");
    for (size_t i = 0; i < 1000; i++)
        buf_char(&b, 'a');
    buf_addc(&b, "\",\"m\":{\"");
    for (size_t i = 0; i <= LONG; i++)
        buf_char(&b, '1');
    buf_addc(&b, "\":1}}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *a = arena_new(0);
        struct cel_variable object = {"object", {0}};
        const struct cel_activation activation = {&object, 1, NULL, NULL, NULL};
        struct cel_program *p;
        struct cel_value v;
        int64_t cost = 0;
        struct err err;
        cJSON *tree;

        err_init(&err, a);
        assert_int_equal(json_parse(a, buf_str(&b), &tree, &err), 0);
        object.value = cel_from_json(tree);
        assert_int_equal(cel_compile(a, str_c(rows[i].source), &ENVIRONMENT, &p, &err), 0);
        v = cel_evaluate(a, p, &activation, CEL_CALL_LIMIT, &cost);
        cel_program_release(p);
        if (v.kind != CEL_BOOL || cost < rows[i].least)
            fail_msg("%s: kind %d, cost %lld", rows[i].source, v.kind, (long long)cost);
        arena_free(a);
    }
    buf_fini(&b);
}

/* before, what repeats with its separator, after: what compiling it may take of memory. */
static void test_compiling_ends(void **state)
{
    static const struct {
        const char *before, *repeated, *after;
        size_t times;
        const char *want;
    } rows[] = {
        {"[", "'',", "''].size()", 30000, "30001"},
        {"size(", "1,", "1)", 45000,
         "?ERROR: <input>:1:5: found no matching overload for 'size' applied to '(45001 "
         "arguments)'"},
        {"'a'.size(", "1,", "1)", 45000,
         "?ERROR: <input>:1:9: found no matching overload for 'size' applied to '(45002 "
         "arguments)'"},
        {"[", "timestamp(''),\n", "timestamp('')]", 6000, "5901 more errors were truncated"},
        {"[", "timestamp(''),", "timestamp('')]", 6000, "5901 more errors were truncated"},
        {"[1]", ".map(a,{a:a})", ".size()", 60, "!unsupported key type"},
        {"optional.of(1)", ".optMap(a,{'k':[a,a]}).optMap(a,[a])", ".hasValue()", 99, "true"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *a = arena_new((size_t)64 << 20);
        struct buf b = BUF_INIT(0);
        struct str got;

        buf_addc(&b, rows[i].before);
        for (size_t k = 0; k < rows[i].times; k++)
            buf_addc(&b, rows[i].repeated);
        buf_addc(&b, rows[i].after);
        got = evaluated(a, arena_cstr(a, buf_str(&b)), CEL_CALL_LIMIT);
        if (!str_contains(got, str_c(rows[i].want)))
            fail_msg("%zu: %.*s", i, (int)(got.n < 200 ? got.n : 200), got.p);
        if (arena_used(a) > (size_t)24 << 20)
            fail_msg("%zu: %zu bytes", i, arena_used(a));
        buf_fini(&b);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),         cmocka_unit_test(test_objects),
        cmocka_unit_test(test_functions),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cost_ends),      cmocka_unit_test(test_depth_ends),
        cmocka_unit_test(test_compiling_ends), cmocka_unit_test(test_walks_are_charged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
