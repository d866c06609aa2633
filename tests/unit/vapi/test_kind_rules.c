/* SPDX-License-Identifier: Apache-2.0 */
/* The rows validation is made of: what each kind of row reports of an object, where, and in which
 * words; and that every kind of the table has what a write and a table need. */
#include "test.h"

#include "../../../vapi/kinds/rules/kind.h"

static const char *const COLOURS[] = {"Blue", "Red", NULL};

static const struct rule INNER[] = {NONNEGATIVE("n"), GIVEN("name")};
static const struct rule FIRST[] = {FORBIDDEN("n", "on create")};
static const struct rule LATER[] = {FORBIDDEN("n", "on update")};

static void check_sum(const struct check *c)
{
    if (json_i64_at(c->value, "a", 0) > json_i64_at(c->object, "most", 10))
        field_invalid(c->e, FIELD(c->at, "a"), json_get(c->value, "a"), "too much");
}

static void check_even(struct field_errors *e, const struct field_path *p, const cJSON *number)
{
    int64_t n;

    if (json_i64(number, &n) && n % 2)
        field_invalid(e, p, number, "must be even");
}

static void check_always(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    if (!value)
        field_required(e, p, "absent");
}

static void check_short(struct field_errors *e, const struct field_path *p, struct str text)
{
    if (text.n > 1)
        field_too_long(e, p, 1);
}

static bool test_short(struct field_errors *e, const struct field_path *p, struct str text)
{
    check_short(e, p, text);
    return text.n <= 1;
}

static void check_below(const struct check *c, const struct rule *r)
{
    if (json_count(c->value) >= (size_t)r->high)
        field_invalid(c->e, c->at, NULL, r->words);
}

/* A row, an object, the object before (NULL: a create), and the errors. */
static const struct {
    const char *name;
    struct rule row;
    const char *object, *old, *errors;
} CASES[] = {
    {"required", REQUIRED("a.b", "why"), "{\"a\":{\"b\":null}}", NULL, "Required value: why a.b;"},
    {"required there", REQUIRED("a", ""), "{\"a\":\"\"}", NULL, ""},
    {"given empty", GIVEN("a"), "{\"a\":\"\"}", NULL, "Required value a;"},
    {"given absent", GIVEN_ELSE("a", "why"), "{}", NULL, "Required value: why a;"},
    {"all given", ALL_GIVEN("a", "x", "y"), "{\"a\":{\"y\":\"1\"}}", NULL, "Required value a.x;"},
    {"some", SOME("a", ""), "{\"a\":[]}", NULL, "Required value a;"},
    {"some there", SOME("a", ""), "{\"a\":[1]}", NULL, ""},
    {"some of", SOME_OF("s", "why", "a", "b"), "{\"s\":{\"a\":[]}}", NULL,
     "Required value: why s;"},
    {"some of, the second", SOME_OF("s", "why", "a", "b"), "{\"s\":{\"b\":[1]}}", NULL, ""},
    {"forbidden", FORBIDDEN("a", "not here"), "{\"a\":0}", NULL, "Forbidden: not here a;"},
    {"forbidden null", FORBIDDEN("a", "not here"), "{\"a\":null}", NULL, ""},
    {"no items", NO_ITEMS("a", "none"), "{\"a\":{\"b\":1}}", NULL, "Forbidden: none a;"},
    {"no items, empty", NO_ITEMS("a", "none"), "{\"a\":{}}", NULL, ""},
    {"not true", NOT_TRUE("a", "no"), "{\"a\":true}", NULL, "Invalid value: true: no a;"},
    {"not true, false", NOT_TRUE("a", "no"), "{\"a\":false}", NULL, ""},
    {"must be", MUST_BE("a", "x", "no"), "{}", NULL, "Invalid value: \"\": no a;"},
    {"must be, is", MUST_BE("a", "x", "no"), "{\"a\":\"x\"}", NULL, ""},
    {"in, absent", IN("a", COLOURS, "no"), "{}", NULL, "Invalid value: \"\": no a;"},
    {"in, is", IN("a", COLOURS, "no"), "{\"a\":\"Red\"}", NULL, ""},
    {"in if set, empty", IN_IF_SET("a", COLOURS, "no"), "{\"a\":\"\"}", NULL, ""},
    {"in if set, not", IN_IF_SET("a", COLOURS, "no"), "{\"a\":\"x\"}", NULL,
     "Invalid value: \"x\": no a;"},
    {"not in, is", NOT_IN("a", COLOURS, "no"), "{\"a\":\"Blue\"}", NULL,
     "Invalid value: \"Blue\": no a;"},
    {"not in", NOT_IN("a", COLOURS, "no"), "{\"a\":\"x\"}", NULL, ""},
    {"when all", WHEN_ALL("s", NAMES("a", "b"), MISSING("c", "two")), "{\"s\":{\"a\":1,\"b\":{}}}",
     NULL, "Required value: two s.c;"},
    {"when all, one empty", WHEN_ALL("s", NAMES("a", "b"), MISSING("c", "two")),
     "{\"s\":{\"a\":1,\"b\":[]}}", NULL, ""},
    {"when any", WHEN_ANY("s", NAMES("a", "b"), INVALID_BARE("c", "one")), "{\"s\":{\"b\":[1]}}",
     NULL, "Invalid value: one s.c;"},
    {"when any, null", WHEN_ANY("s", NAMES("a", "b"), INVALID_BARE("c", "one")),
     "{\"s\":{\"b\":null}}", NULL, ""},
    {"when none", WHEN_NONE("s", NAMES("a", "b"), MISSING(NULL, "none")), "{\"s\":{\"a\":[]}}",
     NULL, "Required value: none s;"},
    {"when none, one", WHEN_NONE("s", NAMES("a", "b"), MISSING(NULL, "none")),
     "{\"s\":{\"b\":\"\"}}", NULL, ""},
    {"when true", WHEN_TRUE("s", "a", FORBIDDEN("b", "no")), "{\"s\":{\"a\":true,\"b\":1}}", NULL,
     "Forbidden: no s.b;"},
    {"when true, false", WHEN_TRUE("s", "a", FORBIDDEN("b", "no")), "{\"s\":{\"a\":false,\"b\":1}}",
     NULL, ""},
    {"invalid as", INVALID_AS("a", "{a}", "no"), "{\"a\":5}", NULL,
     "Invalid value: \"{a}\": no a;"},
    {"invalid as, absent", INVALID_AS("a", "{a}", "no"), "{}", NULL, ""},
    {"max items else", MAX_ITEMS_ELSE("a", 1, "many"), "{\"a\":[1,2]}", NULL,
     "Invalid value: [1,2]: many a;"},
    {"max items else, few", MAX_ITEMS_ELSE("a", 1, "many"), "{\"a\":[1]}", NULL, ""},
    {"max length else", MAX_LENGTH_ELSE("a", 1, "long"), "{\"a\":\"xy\"}", NULL,
     "Invalid value: \"xy\": long a;"},
    {"each of at most else", EACH_OF_AT_MOST_ELSE("a", 1, "many", INVALID(NULL, "no")),
     "{\"a\":[1,2]}", NULL, "Invalid value: [1,2]: many a;"},
    {"each of at most else, few", EACH_OF_AT_MOST_ELSE("a", 1, "many", INVALID(NULL, "no")),
     "{\"a\":[1]}", NULL, "Invalid value: 1: no a[0];"},
    {"enum type, right", ENUM_TYPE("a", COLOURS), "{\"a\":{\"type\":\"Red\"}}", NULL, ""},
    {"unless", UNLESS("a", "t", "x", FORBIDDEN("n", "no")), "{\"a\":{\"t\":\"y\",\"n\":1}}", NULL,
     "Forbidden: no a.n;"},
    {"unless, is", UNLESS("a", "t", "x", FORBIDDEN("n", "no")), "{\"a\":{\"t\":\"x\",\"n\":1}}",
     NULL, ""},
    {"when set", WHEN_SET("a", "t", FORBIDDEN("n", "no")), "{\"a\":{\"t\":\"y\",\"n\":1}}", NULL,
     "Forbidden: no a.n;"},
    {"when set, is not", WHEN_SET("a", "t", FORBIDDEN("n", "no")), "{\"a\":{\"t\":\"\",\"n\":1}}",
     NULL, ""},
    {"when empty", WHEN_EMPTY("a", "t", FORBIDDEN("n", "no")), "{\"a\":{\"n\":1}}", NULL,
     "Forbidden: no a.n;"},
    {"when empty, is not", WHEN_EMPTY("a", "t", FORBIDDEN("n", "no")),
     "{\"a\":{\"t\":\"y\",\"n\":1}}", NULL, ""},
    {"invalid", INVALID("a", "not this"), "{\"a\":0}", NULL, "Invalid value: 0: not this a;"},
    {"invalid absent", INVALID("a", "not this"), "{}", NULL, ""},
    {"not blank", NOT_BLANK("a", "why"), "{\"a\":\" \\t\"}", NULL, "Required value: why a;"},
    {"not blank, not trimmed", NOT_BLANK("a", ""), "{\"a\":\" x\"}", NULL, ""},
    {"enum absent", ENUM("a", COLOURS), "{}", NULL, "Required value a;"},
    {"enum wrong", ENUM("a", COLOURS), "{\"a\":\"x\"}", NULL,
     "Unsupported value: \"x\": supported values: \"Blue\", \"Red\" a;"},
    {"enum right", ENUM("a", COLOURS), "{\"a\":\"Red\"}", NULL, ""},
    {"enum said", ENUM_SAID("a", COLOURS, "valid values: x"), "{}", NULL,
     "Required value: valid values: x a;"},
    {"enum if set", ENUM_IF_SET("a", COLOURS), "{\"a\":\"\"}", NULL, ""},
    {"enum if given", ENUM_IF_GIVEN("a", COLOURS), "{\"a\":\"\"}", NULL,
     "Unsupported value: \"\": supported values: \"Blue\", \"Red\" a;"},
    {"enum if given, absent", ENUM_IF_GIVEN("a", COLOURS), "{}", NULL, ""},
    {"enum always", ENUM_ALWAYS("a", COLOURS), "{}", NULL,
     "Unsupported value: \"\": supported values: \"Blue\", \"Red\" a;"},
    {"each enum", EACH_ENUM("a", COLOURS), "{\"a\":[\"Red\",\"x\"]}", NULL,
     "Unsupported value: \"x\": supported values: \"Blue\", \"Red\" a[1];"},
    {"each enum of a list", EACH_ENUM_LIST("a", COLOURS), "{\"a\":[\"x\"]}", NULL,
     "Unsupported value: \"x\": supported values: \"Blue\", \"Red\" a;"},
    {"name absent", NAME("a", PATH_SEGMENT), "{}", NULL, "Required value a;"},
    {"name absent, said", NAME_SAID("a", PATH_SEGMENT, "why"), "{}", NULL,
     "Required value: why a;"},
    {"name wrong", NAME("a", PATH_SEGMENT), "{\"a\":\"..\"}", NULL,
     "Invalid value: \"..\": may not be '..' a;"},
    {"name if set", NAME_IF_SET("a", PATH_SEGMENT), "{\"a\":\"\"}", NULL, ""},
    {"name if given", NAME_IF_GIVEN("a", PATH_SEGMENT), "{\"a\":\".\"}", NULL,
     "Invalid value: \".\": may not be '.' a;"},
    {"each name", EACH_NAME("a", PATH_SEGMENT), "{\"a\":[\"x\",\".\"]}", NULL,
     "Invalid value: \".\": may not be '.' a[1];"},
    {"nonnegative", NONNEGATIVE("a"), "{\"a\":-1}", NULL,
     "Invalid value: -1: must be greater than or equal to 0 a;"},
    {"nonnegatives", NONNEGATIVES("s", "a", "b"), "{\"s\":{\"a\":1,\"b\":-2}}", NULL,
     "Invalid value: -2: must be greater than or equal to 0 s.b;"},
    {"positive absent", POSITIVE("a"), "{}", NULL,
     "Invalid value: 0: must be greater than zero a;"},
    {"range", RANGE("a", 1, 3), "{\"a\":4}", NULL,
     "Invalid value: 4: must be between 1 and 3, inclusive a;"},
    {"range absent", RANGE("a", 1, 3), "{}", NULL, ""},
    {"at least", AT_LEAST("a", 2, "more"), "{\"a\":1}", NULL, "Invalid value: 1: more a;"},
    {"at most", AT_MOST_NUMBER("a", 2), "{\"a\":3}", NULL,
     "Invalid value: 3: must be less than or equal to 2 a;"},
    {"port absent", PORT("a"), "{}", NULL,
     "Invalid value: 0: must be between 1 and 65535, inclusive a;"},
    {"no more than another", AT_MOST("s.a", "s.b"), "{\"s\":{\"a\":2,\"b\":1}}", NULL,
     "Invalid value: 2: cannot be greater than s.b s.a;"},
    {"all no more than another", ALL_AT_MOST("s", "s.b", "c", "a"), "{\"s\":{\"a\":2,\"b\":1}}",
     NULL, "Invalid value: 2: cannot be greater than s.b s.a;"},
    {"decreased", NOT_DECREASED("a"), "{\"a\":1}", "{\"a\":2}",
     "Invalid value: 1: cannot be decremented a;"},
    {"gone is decreased", NOT_DECREASED("a"), "{}", "{\"a\":0}",
     "Invalid value: 0: cannot be decremented a;"},
    {"decreased of a create", NOT_DECREASED("a"), "{\"a\":1}", NULL, ""},
    {"length", MAX_LENGTH("a", 2), "{\"a\":\"abc\"}", NULL,
     "Too long: may not be more than 2 bytes a;"},
    {"items", MAX_ITEMS("a", 1), "{\"a\":[1,2]}", NULL, "Too many: 2: must have at most 1 item a;"},
    {"star alone", STAR_ALONE("a", "things"), "{\"a\":[\"x\",\"*\"]}", NULL,
     "Invalid value: [\"x\",\"*\"]: if '*' is present, must not specify other things a;"},
    {"star", STAR_ALONE("a", "things"), "{\"a\":[\"*\"]}", NULL, ""},
    {"unique", UNIQUE("a", NULL), "{\"a\":[\"x\",\"y\",\"x\"]}", NULL,
     "Duplicate value: \"x\" a[2];"},
    {"unique keys", UNIQUE("a", "k"), "{\"a\":[{\"k\":\"x\"},{},{\"k\":\"x\"},{}]}", NULL,
     "Duplicate value: \"x\" a[2];Duplicate value: \"\" a[3];"},
    {"once", EACH("a", ONCE("k"), GIVEN("n")), "{\"a\":[{\"k\":\"x\"},{\"k\":\"x\",\"n\":\"y\"}]}",
     NULL, "Required value a[0].n;Duplicate value: \"x\" a[1].k;"},
    {"once in each list", EACH("a", EACH(NULL, ONCE(NULL))),
     "{\"a\":[[\"x\"],[\"x\"],[\"\",\"\"]]}", NULL, "Duplicate value: \"\" a[2][1];"},
    {"once if set", EACH("a", ONCE_IF_SET("k")),
     "{\"a\":[{},{\"k\":\"\"},{\"k\":\"x\"},{\"k\":\"x\"}]}", NULL,
     "Duplicate value: \"x\" a[3].k;"},
    {"fixed", FIXED("a"), "{\"a\":1}", "{\"a\":2}", "Invalid value: 1: field is immutable a;"},
    {"fixed of a create", FIXED("a"), "{\"a\":1}", NULL, ""},
    {"fixed null", FIXED("a"), "{\"a\":null}", "{}", ""},
    {"fixed text", FIXED_TEXT("a"), "{}", "{\"a\":\"x\"}",
     "Invalid value: \"\": field is immutable a;"},
    {"all fixed", ALL_FIXED("s", "a", "b"), "{\"s\":{\"b\":1}}", "{\"s\":{}}",
     "Invalid value: 1: field is immutable s.b;"},
    {"fixed, forbidden", FIXED_ELSE_FORBIDDEN("a", "no"), "{\"a\":1}", "{}", "Forbidden: no a;"},
    {"fixed once set", FIXED_ONCE_SET("a", "no"), "{\"a\":\"y\"}", "{\"a\":\"x\"}",
     "Forbidden: no a;"},
    {"fixed once it has items", FIXED_ONCE_SET("a", "no"), "{}", "{\"a\":[1]}", "Forbidden: no a;"},
    {"fixed once set, not set", FIXED_ONCE_SET("a", "no"), "{\"a\":\"y\"}", "{\"a\":\"\"}", ""},
    {"fixed once set, a create", FIXED_ONCE_SET("a", "no"), "{\"a\":\"y\"}", NULL, ""},
    {"within", WITHIN("s", ALL(INNER)), "{\"s\":{\"n\":-1}}", NULL,
     "Invalid value: -1: must be greater than or equal to 0 s.n;Required value s.name;"},
    {"within nothing", WITHIN("s", ALL(INNER)), "{}", NULL, ""},
    {"inside nothing", INSIDE("s", ALL(INNER)), "{}", NULL, "Required value s.name;"},
    {"each", EACH("s", ALL(INNER)), "{\"s\":[{\"name\":\"x\"},{}]}", NULL,
     "Required value s[1].name;"},
    {"each of at most", EACH_OF_AT_MOST("s", 1, ALL(INNER)), "{\"s\":[{},{}]}", NULL,
     "Too many: 2: must have at most 1 item s;"},
    {"when it is", WHEN("s", "t", "x", ALL(INNER)), "{\"s\":{\"t\":\"x\"}}", NULL,
     "Required value s.name;"},
    {"when it is not", WHEN("s", "t", "x", ALL(INNER)), "{\"s\":{\"t\":\"y\"}}", NULL, ""},
    {"when given", WHEN_GIVEN("s", "t", ALL(INNER)), "{\"s\":{\"t\":0}}", NULL,
     "Required value s.name;"},
    {"when given, null", WHEN_GIVEN("s", "t", ALL(INNER)), "{\"s\":{\"t\":null}}", NULL, ""},
    {"unless given", UNLESS_GIVEN("s", "t", ALL(INNER)), "{\"s\":{\"t\":null}}", NULL,
     "Required value s.name;"},
    {"unless given, given", UNLESS_GIVEN("s", "t", ALL(INNER)), "{\"s\":{\"t\":0}}", NULL, ""},
    {"missing", MISSING("s", "why"), "{\"s\":1}", NULL, "Required value: why s;"},
    {"on create", ON_CREATE(ALL(FIRST)), "{\"n\":1}", NULL, "Forbidden: on create n;"},
    {"on create, an update", ON_CREATE(ALL(FIRST)), "{\"n\":1}", "{}", ""},
    {"on update", ON_UPDATE(ALL(LATER)), "{\"n\":1}", "{}", "Forbidden: on update n;"},
    {"changed", CHANGED("s", ALL(INNER)), "{\"s\":{\"n\":1}}", "{\"s\":{}}",
     "Required value s.name;"},
    {"not changed", CHANGED("s", ALL(INNER)), "{\"s\":{}}", "{\"s\":{}}", ""},
    {"call", CALL("s", check_sum), "{\"s\":{\"a\":3},\"most\":2}", NULL,
     "Invalid value: 3: too much s.a;"},
    {"check", CHECK("a", check_even), "{\"a\":3}", NULL, "Invalid value: 3: must be even a;"},
    {"check nothing", CHECK("a", check_even), "{}", NULL, ""},
    {"check each", CHECK_EACH("a", check_even), "{\"a\":[2,3]}", NULL,
     "Invalid value: 3: must be even a[1];"},
    {"enum given, absent", ENUM_GIVEN("a", COLOURS), "{}", NULL, "Required value a;"},
    {"enum given, empty", ENUM_GIVEN("a", COLOURS), "{\"a\":\"\"}", NULL,
     "Unsupported value: \"\": supported values: \"Blue\", \"Red\" a;"},
    {"name always", NAME_ALWAYS("a", QUALIFIED), "{\"a\":\"x\"}", NULL, ""},
    {"name always, absent", NAME_ALWAYS("a", DNS1123_LABEL), "{}", NULL,
     "Invalid value: \"\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
     "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
     "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?') a;"},
    {"range in other words", RANGE_ELSE("a", 1, 3, "few"), "{\"a\":0}", NULL,
     "Invalid value: 0: few a;"},
    {"user", USER_ID("a"), "{\"a\":2147483648}", NULL,
     "Invalid value: 2147483648: must be between 0 and 2147483647, inclusive a;"},
    {"file mode", FILE_MODE("a"), "{\"a\":512}", NULL,
     "Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive a;"},
    {"port or name", PORT_OR_NAME("a"), "{\"a\":0}", NULL,
     "Invalid value: 0: must be between 1 and 65535, inclusive a;"},
    {"port or name, name", PORT_OR_NAME("a"), "{\"a\":\"http\"}", NULL, ""},
    {"number or percent", INT_OR_PERCENT("a"), "{\"a\":\"x\"}", NULL,
     "Invalid value: \"x\": a valid percent string must be a numeric string followed by an ending "
     "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%') a;"},
    {"at most 100 percent", AT_MOST_100_PERCENT("a"), "{\"a\":\"101%\"}", NULL,
     "Invalid value: \"101%\": must not be greater than 100% a;"},
    {"no more, in other words", AT_MOST_ELSE("s.a", "s.b", "less"), "{\"s\":{\"a\":2,\"b\":1}}",
     NULL, "Invalid value: 2: less s.a;"},
    {"labels", LABELS("a"), "{\"a\":{\"x\":\".\"}}", NULL,
     "Invalid value: \".\": a valid label must be an empty string or consist of alphanumeric "
     "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
     "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
     "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?') a;"},
    {"label selector", LABEL_SELECTOR("a"),
     "{\"a\":{\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\"}]}}", NULL,
     "Required value: must be specified when `operator` is 'In' or 'NotIn' "
     "a.matchExpressions[0].values;"},
    {"conditions", CONDITIONS("a"),
     "{\"a\":[{\"type\":\"T\",\"status\":\"x\",\"reason\":\"R\",\"lastTransitionTime\":\"2026-01-"
     "02T03:04:05Z\"}]}",
     NULL,
     "Unsupported value: \"x\": supported values: \"False\", \"True\", \"Unknown\" a[0].status;"},
    {"driver name", DRIVER_NAME("a"), "{\"a\":\"a_\"}", NULL,
     "Invalid value: \"a_\": a lowercase RFC 1123 subdomain must consist of lower case "
     "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
     "(e.g. 'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*') a;"},
    {"unique of at most", UNIQUE_OF_AT_MOST("a", 2, NULL), "{\"a\":[\"x\",\"x\"]}", NULL,
     "Duplicate value: \"x\" a[1];"},
    {"unique of too many", UNIQUE_OF_AT_MOST("a", 1, NULL), "{\"a\":[\"x\",\"x\"]}", NULL, ""},
    {"unique keys of at most", UNIQUE_OF_AT_MOST("a", 2, "k"),
     "{\"a\":[{\"k\":\"x\"},{\"k\":\"x\"}]}", NULL, "Duplicate value: \"x\" a[1];"},
    {"a row of its own", ROW("a", check_below, .high = 2, .words = "many"), "{\"a\":[1,2]}", NULL,
     "Invalid value: null: many a;"},
    {"check always", CHECK_ALWAYS("a", check_always), "{}", NULL, "Required value: absent a;"},
    {"check of a string", CHECK_STR("a", check_short), "{\"a\":\"xy\"}", NULL,
     "Too long: may not be more than 1 byte a;"},
    {"test of a string", TEST_STR("a", test_short), "{\"a\":\"xy\"}", NULL,
     "Too long: may not be more than 1 byte a;"},
    {"given and tested", GIVEN_STR("a", test_short), "{\"a\":\"xy\"}", NULL,
     "Too long: may not be more than 1 byte a;"},
    {"given, or not tested", GIVEN_STR("a", test_short), "{}", NULL, "Required value a;"},
    {"check each string", CHECK_EACH_STR("a", check_short), "{\"a\":[\"x\",\"xy\"]}", NULL,
     "Too long: may not be more than 1 byte a[1];"},
};

static cJSON *parse(struct arena *a, const char *text)
{
    cJSON *tree = NULL;
    struct err err;

    err_init(&err, a);
    if (text && json_parse(a, str_c(text), &tree, &err))
        fail_msg("%s: %.*s", text, STR_F(err.message));
    return tree;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_new(0);
        struct buf got = BUF_INIT(0);
        struct field_errors e;
        const cJSON *object = parse(a, CASES[i].object), *old = parse(a, CASES[i].old);
        const struct check c = {
            .e = &e, .value = object, .old = old, .object = object, .before = old};

        field_errors_init(&e, a);
        rules_check(&c, &CASES[i].row, 1);
        for (const struct err_cause *cause = e.first; cause; cause = cause->next)
            buf_printf(&got, "%.*s %.*s;", STR_F(cause->message), STR_F(cause->field));
        if (!str_eqc(buf_str(&got), CASES[i].errors))
            fail_msg("%s:\n got  %.*s\n want %s", CASES[i].name, STR_F(buf_str(&got)),
                     CASES[i].errors);
        buf_fini(&got);
        arena_free(a);
    }
}

static void double_number(struct arena *a, cJSON *member)
{
    json_set_i64(a, member, "n", 2 * json_i64_at(member, "n", 0));
}

static void test_defaults(void **state)
{
    static const struct default_rule rules[] = {
        SET_TEXT("a[].t", "x"),          SET_NUMBER_Z("a[].z+.k", 3), SET_BY("m", double_number),
        SET_BY("none.m", double_number), DROPPED("a[].gone"),         DROPPED("by[].gone"),
    };
    struct arena *a = arena_new(0);
    cJSON *object = parse(a, "{\"a\":[{\"gone\":1},{\"t\":\"\",\"z\":{\"k\":0}}],\"m\":{\"n\":2},"
                             "\"by\":{\"x\":{\"gone\":{}}}}");
    const cJSON *want =
        parse(a, "{\"a\":[{\"t\":\"x\",\"z\":{\"k\":3}},{\"t\":\"\",\"z\":{\"k\":3}}],"
                 "\"m\":{\"n\":4},\"by\":{\"x\":{}}}");

    (void)state;
    defaults_apply(a, object, rules, COUNT(rules));
    if (!json_equal(object, want))
        fail_msg("%.*s", STR_F(json_text(a, object)));
    arena_free(a);
}

/* A row names one of the resources once, and every column has a cell. */
static void test_table(void **state)
{
    (void)state;
    for (const struct kind *const *k = KINDS; *k; k++) {
        const struct resource *r = &(*k)->resource;

        for (const struct kind *const *other = KINDS; *other != *k; other++)
            assert_false(str_eq((*other)->resource.plural, r->plural) &&
                         str_eq((*other)->resource.group, r->group) &&
                         str_eq((*other)->resource.version, r->version));
        for (const struct column *c = r->columns; c && c->name; c++)
            assert_non_null(c->cell);
        assert_true(!(*k)->from_storage == !(*k)->to_storage);
        assert_true(!(*k)->from_storage == !r->storage_version.n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_defaults),
                                       cmocka_unit_test(test_table)};

    return cmocka_run_group_tests_name("kind rules", tests, NULL, NULL);
}
