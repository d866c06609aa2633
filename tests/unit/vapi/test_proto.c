/* SPDX-License-Identifier: Apache-2.0
 *
 * Protobuf bodies with random contents against upstream's decoder, and what is malformed or
 * hostile. */

#include "cases.h"

#include <sublet/encode.h>

static void check(struct tested *t)
{
    struct str body;
    cJSON *got;
    struct err err;

    err_init(&err, t->arena);
    assert_true(base64_decode(t->arena, json_str_at(t->json, "object"), &body));
    if (case_returned(t, proto_decode(t->arena, body, &got, &err), &err))
        case_compare(t, got, json_get(t->json, "result"));
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("proto.jsonl", 100, check);
}

/* The error of a body as a message; "" when it decodes. The bytes of *ret, if
 * wanted for. */
static const char *decode(struct arena *a, struct str body, struct str *ret)
{
    struct err err;
    cJSON *object;

    err_init(&err, a);
    if (proto_decode(a, body, &object, &err)) {
        assert_ptr_equal(err.kind, &ERR_BAD_REQUEST);
        return arena_cstr(a, err.message);
    }
    if (ret)
        *ret = json_text(a, object);
    return "";
}

#define BODY(bytes) ((struct str){"k8s\0" bytes, sizeof bytes + 3})
/* Envelopes of v1 kinds: type meta, then the length of the message. */
#define CONFIG_MAP(length)                                                                         \
    "\x0a\x0f\x0a\x02v1\x12\x09"                                                                   \
    "ConfigMap\x12" length
#define POD(length)                                                                                \
    "\x0a\x09\x0a\x02v1\x12\x03"                                                                   \
    "Pod\x12" length

static void envelopes(void **state)
{
    struct arena *a = arena_new(0);
    struct str text;

    (void)state;
    assert_string_equal(decode(a, STR(""), NULL), "empty data");
    assert_string_equal(
        decode(a, STR("{}"), NULL),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    assert_string_equal(decode(a, BODY(""), NULL), "empty body");
    assert_string_equal(decode(a, BODY("\x0a\x00"), NULL),
                        "Object 'Kind' is missing in the protobuf envelope");
    assert_string_equal(decode(a,
                               BODY("\x0a\x09\x0a\x02v1\x12\x03"
                                    "Nod"),
                               NULL),
                        "no kind \"Nod\" is registered for version \"v1\"");
    assert_string_equal(decode(a,
                               BODY("\x0a\x09\x0a\x02v1\x12\x03"
                                    "P\nd"),
                               NULL),
                        "Object 'Kind' is missing in the protobuf envelope");
    assert_string_equal(decode(a, BODY(CONFIG_MAP("\x00") "\x1a\x04gzip"), NULL),
                        "protobuf content encoding is not supported");
    assert_string_equal(decode(a, BODY(CONFIG_MAP("\x00")), &text), "");
    assert_str(text, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{}}");
    arena_free(a);
}

static void malformed(void **state)
{
    static const struct {
        struct str body;
        const char *error;
    } cases[] = {
        {BODY(POD("\x01") "\x0a"), "unexpected EOF"},     /* no length */
        {BODY(POD("\x02") "\x0a\x05"), "unexpected EOF"}, /* too short */
        {BODY(POD("\x02") "\x08\x01"), "proto: wrong wireType = 0 for field metadata"},
        {BODY(POD("\x01") "\x0c"), "proto: wiretype end group for non-group"},
        {BODY(POD("\x01") "\x07"), "proto: illegal tag 0 (wire type 7)"},
        {BODY(POD("\x01") "\x0f"), "proto: illegal wireType 7"},
        {BODY(POD("\x0b") "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
         "proto: integer overflow"},
        {BODY(POD("\x0b") "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "unexpected EOF"},
        {BODY(POD("\x06") "\xfa\xff\xff\xff\xff\x01"),
         "proto: illegal tag 536870911 (wire type 2)"},
    };
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str want =
            arena_printf(a, "Pod in version \"v1\" cannot be handled as a Pod: %s", cases[i].error);

        assert_string_equal(decode(a, cases[i].body, NULL), want.p);
    }
    assert_string_equal(decode(a, BODY("\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x7f"), NULL),
                        "unexpected EOF");
    arena_free(a);
}

/* Fields of a newer release are dropped, groups among them. */
static void unknown_fields(void **state)
{
    struct arena *a = arena_new(0);
    struct str text;

    (void)state;
    assert_string_equal(decode(a,
                               BODY(CONFIG_MAP("\x15") "\xf8\x07\x01"
                                                       "\xfa\x07\x01x"
                                                       "\xfd\x07"
                                                       "abcd"
                                                       "\xfb\x07\x08\x01\xfc\x07"
                                                       "\x20\x01"),
                               &text),
                        "");
    assert_str(text,
               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"immutable\":true,\"metadata\":{}}");
    arena_free(a);
}

/* Of a key met twice the last entry stays, a message met twice is merged, maps come sorted. */
static void repeated_parts(void **state)
{
    struct arena *a = arena_new(0);
    struct str text;

    (void)state;
    assert_string_equal(decode(a,
                               BODY(CONFIG_MAP("\x1e") "\x12\x06\x0a\x01"
                                                       "b\x12\x01"
                                                       "1"
                                                       "\x12\x06\x0a\x01"
                                                       "a\x12\x01"
                                                       "2"
                                                       "\x12\x06\x0a\x01"
                                                       "b\x12\x01"
                                                       "3"
                                                       "\x12\x04\x0a\x02"
                                                       "bc"),
                               &text),
                        "");
    assert_str(text,
               "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"a\":\"2\",\"b\":\"3\","
               "\"bc\":\"\"},\"metadata\":{}}");
    assert_string_equal(decode(a,
                               BODY(CONFIG_MAP("\x0a") "\x0a\x03\x0a\x01x"
                                                       "\x0a\x03\x1a\x01n"),
                               &text),
                        "");
    assert_str(text, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\","
                     "\"namespace\":\"n\"}}");
    arena_free(a);
}

static void add_varint(struct buf *b, size_t n)
{
    for (; n >= 0x80; n >>= 7)
        buf_char(b, (char)(n | 0x80));
    buf_char(b, (char)n);
}

static struct str tagged(struct arena *a, char tag, struct str inner)
{
    struct buf b = BUF_INIT(0);

    buf_char(&b, tag);
    add_varint(&b, inner.n);
    buf_add(&b, inner);

    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

/* JSONSchemaProps.not (29) and its like nest without end in the type. */
static void deep_messages(void **state)
{
    struct arena *a = arena_new(0);
    struct str schema = STR(""), body;
    uint32_t node = schema_builtin_root(STR("apiextensions.k8s.io"), STR("v1"),
                                        STR("CustomResourceDefinition"));
    const struct schema_field *at = schema_field(&SCHEMA_BUILTIN, node, STR("spec"));
    struct err err;
    cJSON *ret;

    (void)state;
    at = schema_field(&SCHEMA_BUILTIN, at->node, STR("versions"));
    at = schema_field(&SCHEMA_BUILTIN, schema_node(&SCHEMA_BUILTIN, at->node)->elem, STR("schema"));
    at = schema_field(&SCHEMA_BUILTIN, at->node, STR("openAPIV3Schema"));
    node = at->node;
    at = schema_field(&SCHEMA_BUILTIN, node, STR("not"));
    for (int i = 0; i < 2000; i++) {
        body = tagged(a, (char)(at->pb << 3 & 0x7f) | (char)0x82, schema);
        schema =
            arena_concat(a, 3, (struct str[]){str_sub(body, 0, 1), STR("\x01"), str_from(body, 1)});
    }
    err_init(&err, a);
    assert_true(at->pb >= 16 && at->pb < 32);
    assert_int_equal(proto_decode_message(a, &SCHEMA_BUILTIN, node, schema, &ret, &err), -1);
    assert_str(err.message, "proto: message is nested too deeply");
    arena_free(a);
}

/* Two bytes of body per item would be 100 bytes of tree each. */
static void many_items(void **state)
{
    struct arena *a = arena_new((size_t)512 << 20);
    struct buf b = BUF_INIT(0);
    uint32_t node = schema_builtin_root(STR(""), STR("v1"), STR("ConfigMap"));
    struct err err;
    cJSON *ret;

    (void)state;
    err_init(&err, a);
    for (size_t i = 0; i < JSON_LIMITS.nodes + 10; i++)
        buf_add(&b, ((struct str){"\x12\x00", 2}));
    assert_int_equal(proto_decode_message(a, &SCHEMA_BUILTIN, node, buf_str(&b), &ret, &err), -1);
    assert_str(err.message, "proto: message has too many values");
    buf_fini(&b);
    arena_free(a);
}

/* A string that is no UTF-8 comes out as Go's JSON encoder writes it. */
static void bad_text(void **state)
{
    struct arena *a = arena_new(0);
    struct str text;

    (void)state;
    assert_string_equal(decode(a,
                               BODY(CONFIG_MAP("\x09") "\x0a\x07\x0a\x05"
                                                       "a\xff\xc3"
                                                       "b\xe2"),
                               &text),
                        "");
    assert_str(text, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                     "\"a\xef\xbf\xbd\xef\xbf\xbd"
                     "b\xef\xbf\xbd\"}}");
    assert_string_equal(
        decode(a, BODY(CONFIG_MAP("\x05") "\x12\x03\x0a\x01\x00"), NULL),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: proto: a key of data has "
        "a zero byte");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_upstream),    cmocka_unit_test(envelopes),
        cmocka_unit_test(malformed),      cmocka_unit_test(unknown_fields),
        cmocka_unit_test(repeated_parts), cmocka_unit_test(deep_messages),
        cmocka_unit_test(many_items),     cmocka_unit_test(bad_text),
    };

    return cmocka_run_group_tests_name("proto", tests, NULL, NULL);
}
