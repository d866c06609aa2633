/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Trees of OpenAPI documents as messages of gnostic's protobuf (github.com/google/gnostic-models,
 * openapiv2 and openapiv3), by tables of field numbers. The tables hold only what our documents
 * contain; a member without a row is omitted. Extensions and free values are YAML strings inside
 * the messages, as in gnostic. Must never receive a tree with unbounded nesting. */
#include "openapi.h"

#include <assert.h>
#include <string.h>

#include <sublet/yaml.h>

enum shape {
    TEXT,
    FLAG,
    NUMBER,  /* double */
    INTEGER, /* int64 */
    TEXTS,   /* repeated string */
    TYPE,    /* v2: a message of repeated string; the value is one string */
    ONE,     /* a message */
    MANY,    /* repeated message */
    INSIDE,  /* the only field of a message of its own */
    NAMED,   /* a message of repeated {1: name, 2: message} */
    ENTRIES, /* repeated {1: name, 2: message}, directly in this message */
    ALLOWED, /* additionalProperties: {1: schema} or {2: bool} */
    FREE,    /* Any: {2: YAML} */
    FREES,   /* repeated Any */
    DEFAULT, /* v3: {1: number} or {2: bool} or {3: string} */
};

struct message;
struct row {
    const char *key;
    unsigned number;
    enum shape shape;
    const struct message *of;
};

struct message {
    const struct row *rows; /* by number; ended by key NULL */
    unsigned extensions;    /* number of repeated NamedAny for x-...; 0: none */
    /* One of several messages: the tree itself is a field of this message. */
    const struct row *(*choose)(const cJSON *tree);
};

#define MESSAGE(name) static const struct message name

/* ---- v2 ---- */

MESSAGE(SCHEMA2);

static const struct row SCHEMA2_ROWS[] = {
    {"$ref", 1, TEXT, NULL},
    {"format", 2, TEXT, NULL},
    {"title", 3, TEXT, NULL},
    {"description", 4, TEXT, NULL},
    {"default", 5, FREE, NULL},
    {"multipleOf", 6, NUMBER, NULL},
    {"maximum", 7, NUMBER, NULL},
    {"exclusiveMaximum", 8, FLAG, NULL},
    {"minimum", 9, NUMBER, NULL},
    {"exclusiveMinimum", 10, FLAG, NULL},
    {"maxLength", 11, INTEGER, NULL},
    {"minLength", 12, INTEGER, NULL},
    {"pattern", 13, TEXT, NULL},
    {"maxItems", 14, INTEGER, NULL},
    {"minItems", 15, INTEGER, NULL},
    {"uniqueItems", 16, FLAG, NULL},
    {"maxProperties", 17, INTEGER, NULL},
    {"minProperties", 18, INTEGER, NULL},
    {"required", 19, TEXTS, NULL},
    {"enum", 20, FREES, NULL},
    {"additionalProperties", 21, ALLOWED, &SCHEMA2},
    {"type", 22, TYPE, NULL},
    {"items", 23, INSIDE, &SCHEMA2},
    {"allOf", 24, MANY, &SCHEMA2},
    {"properties", 25, NAMED, &SCHEMA2},
    {"example", 30, FREE, NULL},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(SCHEMA2) = {SCHEMA2_ROWS, 31, NULL};

static const struct row BODY_ROWS[] = {
    {"description", 1, TEXT, NULL}, {"name", 2, TEXT, NULL},      {"in", 3, TEXT, NULL},
    {"required", 4, FLAG, NULL},    {"schema", 5, ONE, &SCHEMA2}, {NULL, 0, TEXT, NULL},
};
MESSAGE(BODY) = {BODY_ROWS, 6, NULL};

static const struct row QUERY_ROWS[] = {
    {"required", 1, FLAG, NULL},     {"in", 2, TEXT, NULL},   {"description", 3, TEXT, NULL},
    {"name", 4, TEXT, NULL},         {"type", 6, TEXT, NULL}, {"format", 7, TEXT, NULL},
    {"uniqueItems", 20, FLAG, NULL}, {NULL, 0, TEXT, NULL},
};
MESSAGE(QUERY) = {QUERY_ROWS, 23, NULL};

static const struct row PATH_ROWS[] = {
    {"required", 1, FLAG, NULL},     {"in", 2, TEXT, NULL},   {"description", 3, TEXT, NULL},
    {"name", 4, TEXT, NULL},         {"type", 5, TEXT, NULL}, {"format", 6, TEXT, NULL},
    {"uniqueItems", 19, FLAG, NULL}, {NULL, 0, TEXT, NULL},
};
MESSAGE(PATH) = {PATH_ROWS, 22, NULL};

static const struct row *choose_place(const cJSON *tree)
{
    static const struct row query = {"", 3, ONE, &QUERY}, path = {"", 4, ONE, &PATH};

    return str_eqc(json_str_at(tree, "in"), "path") ? &path : &query;
}
MESSAGE(NON_BODY) = {NULL, 0, choose_place};

static const struct row *choose_body(const cJSON *tree)
{
    static const struct row body = {"", 1, ONE, &BODY}, other = {"", 2, ONE, &NON_BODY};

    return str_eqc(json_str_at(tree, "in"), "body") ? &body : &other;
}
MESSAGE(PARAMETER2) = {NULL, 0, choose_body};

static const struct row REFERENCE_ROWS[] = {{"$ref", 1, TEXT, NULL}, {NULL, 0, TEXT, NULL}};
MESSAGE(REFERENCE) = {REFERENCE_ROWS, 0, NULL};

static const struct row *choose_reference(const cJSON *tree, const struct row *plain)
{
    static const struct row reference = {"", 2, ONE, &REFERENCE};

    return json_get(tree, "$ref") ? &reference : plain;
}

static const struct row *choose_parameter2(const cJSON *tree)
{
    static const struct row plain = {"", 1, ONE, &PARAMETER2};

    return choose_reference(tree, &plain);
}
MESSAGE(PARAMETERS_ITEM) = {NULL, 0, choose_parameter2};

static const struct row RESPONSE2_ROWS[] = {
    {"description", 1, TEXT, NULL},
    {"schema", 2, INSIDE, &SCHEMA2}, /* SchemaItem */
    {NULL, 0, TEXT, NULL},
};
MESSAGE(RESPONSE2) = {RESPONSE2_ROWS, 5, NULL};

static const struct row *choose_response2(const cJSON *tree)
{
    static const struct row plain = {"", 1, ONE, &RESPONSE2};

    (void)tree;
    return &plain;
}
MESSAGE(RESPONSE_VALUE) = {NULL, 0, choose_response2};

static const struct row OPERATION2_ROWS[] = {
    {"tags", 1, TEXTS, NULL},
    {"description", 3, TEXT, NULL},
    {"operationId", 5, TEXT, NULL},
    {"produces", 6, TEXTS, NULL},
    {"consumes", 7, TEXTS, NULL},
    {"parameters", 8, MANY, &PARAMETERS_ITEM},
    {"responses", 9, NAMED, &RESPONSE_VALUE},
    {"schemes", 10, TEXTS, NULL},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(OPERATION2) = {OPERATION2_ROWS, 13, NULL};

static const struct row PATH_ITEM2_ROWS[] = {
    {"get", 2, ONE, &OPERATION2},
    {"put", 3, ONE, &OPERATION2},
    {"post", 4, ONE, &OPERATION2},
    {"delete", 5, ONE, &OPERATION2},
    {"options", 6, ONE, &OPERATION2},
    {"head", 7, ONE, &OPERATION2},
    {"patch", 8, ONE, &OPERATION2},
    {"parameters", 9, MANY, &PARAMETERS_ITEM},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(PATH_ITEM2) = {PATH_ITEM2_ROWS, 10, NULL};

static const struct row KEY2_ROWS[] = {
    {"type", 1, TEXT, NULL},        {"name", 2, TEXT, NULL}, {"in", 3, TEXT, NULL},
    {"description", 4, TEXT, NULL}, {NULL, 0, TEXT, NULL},
};
MESSAGE(KEY2) = {KEY2_ROWS, 5, NULL};

static const struct row *choose_security2(const cJSON *tree)
{
    static const struct row key = {"", 2, ONE, &KEY2};

    (void)tree;
    return &key;
}
MESSAGE(SECURITY2) = {NULL, 0, choose_security2};

/* SecurityRequirement: names of schemes, each with its (empty) scopes. */
static const struct row NOTHING_ROWS[] = {{NULL, 0, TEXT, NULL}};
MESSAGE(SCOPES) = {NOTHING_ROWS, 0, NULL};
static const struct row *choose_schemes(const cJSON *tree)
{
    static const struct row schemes = {"", 1, ENTRIES, &SCOPES};

    (void)tree;
    return &schemes;
}
MESSAGE(REQUIREMENT) = {NULL, 0, choose_schemes};

static const struct row INFO2_ROWS[] = {
    {"title", 1, TEXT, NULL}, {"version", 2, TEXT, NULL}, {NULL, 0, TEXT, NULL}};
MESSAGE(INFO2) = {INFO2_ROWS, 7, NULL};

/* Paths (8) and definitions (9) come between. */
static const struct row HEAD2_ROWS[] = {
    {"swagger", 1, TEXT, NULL}, {"info", 2, ONE, &INFO2}, {NULL, 0, TEXT, NULL}};
MESSAGE(HEAD2) = {HEAD2_ROWS, 0, NULL};
static const struct row TAIL2_ROWS[] = {
    {"parameters", 10, NAMED, &PARAMETER2},
    {"security", 12, MANY, &REQUIREMENT},
    {"securityDefinitions", 13, NAMED, &SECURITY2},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(TAIL2) = {TAIL2_ROWS, 0, NULL};

/* ---- v3 ---- */

MESSAGE(SCHEMA_OR3);
MESSAGE(SCHEMA3);

static const struct row SCHEMA3_ROWS[] = {
    {"nullable", 1, FLAG, NULL},
    {"example", 7, FREE, NULL},
    {"title", 9, TEXT, NULL},
    {"multipleOf", 10, NUMBER, NULL},
    {"maximum", 11, NUMBER, NULL},
    {"exclusiveMaximum", 12, FLAG, NULL},
    {"minimum", 13, NUMBER, NULL},
    {"exclusiveMinimum", 14, FLAG, NULL},
    {"maxLength", 15, INTEGER, NULL},
    {"minLength", 16, INTEGER, NULL},
    {"pattern", 17, TEXT, NULL},
    {"maxItems", 18, INTEGER, NULL},
    {"minItems", 19, INTEGER, NULL},
    {"uniqueItems", 20, FLAG, NULL},
    {"maxProperties", 21, INTEGER, NULL},
    {"minProperties", 22, INTEGER, NULL},
    {"required", 23, TEXTS, NULL},
    {"enum", 24, FREES, NULL},
    {"type", 25, TEXT, NULL},
    {"allOf", 26, MANY, &SCHEMA_OR3},
    {"oneOf", 27, MANY, &SCHEMA_OR3},
    {"anyOf", 28, MANY, &SCHEMA_OR3},
    {"not", 29, ONE, &SCHEMA3},
    {"items", 30, INSIDE, &SCHEMA_OR3},
    {"properties", 31, NAMED, &SCHEMA_OR3},
    {"additionalProperties", 32, ALLOWED, &SCHEMA_OR3},
    {"default", 33, DEFAULT, NULL},
    {"description", 34, TEXT, NULL},
    {"format", 35, TEXT, NULL},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(SCHEMA3) = {SCHEMA3_ROWS, 36, NULL};

static const struct row *choose_schema3(const cJSON *tree)
{
    static const struct row plain = {"", 1, ONE, &SCHEMA3};

    return choose_reference(tree, &plain);
}
MESSAGE(SCHEMA_OR3) = {NULL, 0, choose_schema3};

static const struct row PARAMETER3_ROWS[] = {
    {"name", 1, TEXT, NULL},          {"in", 2, TEXT, NULL},
    {"description", 3, TEXT, NULL},   {"required", 4, FLAG, NULL},
    {"schema", 10, ONE, &SCHEMA_OR3}, {NULL, 0, TEXT, NULL},
};
MESSAGE(PARAMETER3) = {PARAMETER3_ROWS, 14, NULL};

static const struct row *choose_parameter3(const cJSON *tree)
{
    static const struct row plain = {"", 1, ONE, &PARAMETER3};

    return choose_reference(tree, &plain);
}
MESSAGE(PARAMETER_OR3) = {NULL, 0, choose_parameter3};

static const struct row MEDIA_ROWS[] = {{"schema", 1, ONE, &SCHEMA_OR3}, {NULL, 0, TEXT, NULL}};
MESSAGE(MEDIA) = {MEDIA_ROWS, 5, NULL};

static const struct row BODY3_ROWS[] = {
    {"description", 1, TEXT, NULL},
    {"content", 2, NAMED, &MEDIA},
    {"required", 3, FLAG, NULL},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(BODY3) = {BODY3_ROWS, 4, NULL};

static const struct row *choose_body3(const cJSON *tree)
{
    static const struct row plain = {"", 1, ONE, &BODY3};

    return choose_reference(tree, &plain);
}
MESSAGE(BODY_OR3) = {NULL, 0, choose_body3};

static const struct row RESPONSE3_ROWS[] = {
    {"description", 1, TEXT, NULL}, {"content", 3, NAMED, &MEDIA}, {NULL, 0, TEXT, NULL}};
MESSAGE(RESPONSE3) = {RESPONSE3_ROWS, 5, NULL};

static const struct row *choose_response3(const cJSON *tree)
{
    static const struct row plain = {"", 1, ONE, &RESPONSE3};

    return choose_reference(tree, &plain);
}
MESSAGE(RESPONSE_OR3) = {NULL, 0, choose_response3};

/* Responses: codes are entries of field 2. */
static const struct row *choose_responses3(const cJSON *tree)
{
    static const struct row codes = {"", 2, ENTRIES, &RESPONSE_OR3};

    (void)tree;
    return &codes;
}
MESSAGE(RESPONSES3) = {NULL, 0, choose_responses3};

static const struct row OPERATION3_ROWS[] = {
    {"tags", 1, TEXTS, NULL},
    {"description", 3, TEXT, NULL},
    {"operationId", 5, TEXT, NULL},
    {"parameters", 6, MANY, &PARAMETER_OR3},
    {"requestBody", 7, ONE, &BODY_OR3},
    {"responses", 8, ONE, &RESPONSES3},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(OPERATION3) = {OPERATION3_ROWS, 13, NULL};

static const struct row PATH_ITEM3_ROWS[] = {
    {"get", 4, ONE, &OPERATION3},
    {"put", 5, ONE, &OPERATION3},
    {"post", 6, ONE, &OPERATION3},
    {"delete", 7, ONE, &OPERATION3},
    {"options", 8, ONE, &OPERATION3},
    {"head", 9, ONE, &OPERATION3},
    {"patch", 10, ONE, &OPERATION3},
    {"parameters", 13, MANY, &PARAMETER_OR3},
    {NULL, 0, TEXT, NULL},
};
MESSAGE(PATH_ITEM3) = {PATH_ITEM3_ROWS, 14, NULL};

static const struct row KEY3_ROWS[] = {
    {"type", 1, TEXT, NULL}, {"description", 2, TEXT, NULL}, {"name", 3, TEXT, NULL},
    {"in", 4, TEXT, NULL},   {NULL, 0, TEXT, NULL},
};
MESSAGE(KEY3) = {KEY3_ROWS, 9, NULL};

static const struct row *choose_security3(const cJSON *tree)
{
    static const struct row plain = {"", 1, ONE, &KEY3};

    return choose_reference(tree, &plain);
}
MESSAGE(SECURITY3) = {NULL, 0, choose_security3};

static const struct row COMPONENTS_ROWS[] = {{"securitySchemes", 7, NAMED, &SECURITY3},
                                             {NULL, 0, TEXT, NULL}};
MESSAGE(COMPONENTS) = {COMPONENTS_ROWS, 10, NULL};

static const struct row INFO3_ROWS[] = {
    {"title", 1, TEXT, NULL}, {"version", 6, TEXT, NULL}, {NULL, 0, TEXT, NULL}};
MESSAGE(INFO3) = {INFO3_ROWS, 7, NULL};

static const struct row HEAD3_ROWS[] = {
    {"openapi", 1, TEXT, NULL}, {"info", 2, ONE, &INFO3}, {NULL, 0, TEXT, NULL}};
MESSAGE(HEAD3) = {HEAD3_ROWS, 0, NULL};

/* ---- the wire ---- */

enum wire { VARINT = 0, FIXED64 = 1, LENGTH = 2 };

static size_t varint(uint64_t value, char out[10])
{
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        out[n++] = (char)(value | 0x80);
    out[n++] = (char)value;
    return n;
}

static void put_varint(struct buf *b, uint64_t value)
{
    char text[10];
    size_t n = varint(value, text);

    buf_add(b, (struct str){text, n});
}

static void put_key(struct buf *b, unsigned number, enum wire wire)
{
    put_varint(b, (uint64_t)number << 3 | wire);
}

static void put_text(struct buf *b, unsigned number, struct str text)
{
    put_key(b, number, LENGTH);
    put_varint(b, text.n);
    buf_add(b, text);
}

/* A message follows its key; its length is inserted between once it is known. */
static size_t message_begin(struct buf *b, unsigned number)
{
    put_key(b, number, LENGTH);
    return b->n;
}

static void message_end(struct buf *b, size_t start)
{
    char length[10];
    size_t size, n;

    if (b->failed)
        return;
    size = b->n - start;
    n = varint(size, length);
    buf_add(b, (struct str){length, n}); /* makes room */
    if (b->failed)
        return;
    memmove(b->p + start + n, b->p + start, size);
    memcpy(b->p + start, length, n);
}

static void put_double(struct buf *b, unsigned number, double value)
{
    unsigned char bytes[8];
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(bits >> (8 * i));
    put_key(b, number, FIXED64);
    buf_add(b, (struct str){(char *)bytes, sizeof(bytes)});
}

static void put_integer(struct buf *b, unsigned number, const cJSON *value)
{
    int64_t i;

    if (!json_i64(value, &i) || !i)
        return;
    put_key(b, number, VARINT);
    put_varint(b, (uint64_t)i);
}

static void put_flag(struct buf *b, unsigned number, bool value)
{
    put_key(b, number, VARINT);
    put_varint(b, value);
}

static void put_any(struct buf *b, unsigned number, const cJSON *value)
{
    size_t start = message_begin(b, number);
    struct buf yaml = BUF_INIT(OPENAPI_MAX_DOCUMENT);

    yaml_print(&yaml, value);
    b->failed |= yaml.failed;
    put_text(b, 2, buf_str(&yaml));
    buf_fini(&yaml);
    message_end(b, start);
}

/* ---- messages ---- */

static void put_fields(struct buf *b, const struct message *m, const cJSON *tree);

static void put_message(struct buf *b, unsigned number, const struct message *m, const cJSON *tree)
{
    size_t start = message_begin(b, number);

    put_fields(b, m, tree);
    message_end(b, start);
}

static void put_entry(struct buf *b, unsigned number, const struct message *m, struct str name,
                      const cJSON *tree)
{
    size_t start = message_begin(b, number);

    put_text(b, 1, name);
    put_message(b, 2, m, tree);
    message_end(b, start);
}

static void put_allowed(struct buf *b, const struct row *row, const cJSON *value)
{
    size_t start = message_begin(b, row->number);

    if (json_is_bool(value))
        put_flag(b, 2, json_true(value));
    else
        put_message(b, 1, row->of, value);
    message_end(b, start);
}

static void put_default(struct buf *b, unsigned number, const cJSON *value)
{
    size_t start = message_begin(b, number);

    if (json_is_number(value))
        put_double(b, 1, value->valuedouble);
    else if (json_is_bool(value))
        put_flag(b, 2, json_true(value));
    else if (json_is_string(value))
        put_text(b, 3, json_str(value));
    message_end(b, start);
}

static void put_scalar(struct buf *b, const struct row *row, const cJSON *value)
{
    switch (row->shape) {
    case FLAG:
        if (json_true(value))
            put_flag(b, row->number, true);
        break;
    case NUMBER:
        if (json_is_number(value) && value->valuedouble != 0)
            put_double(b, row->number, value->valuedouble);
        break;
    case INTEGER:
        put_integer(b, row->number, value);
        break;
    default:
        if (json_str(value).n)
            put_text(b, row->number, json_str(value));
    }
}

static void put_many(struct buf *b, const struct row *row, const cJSON *value)
{
    json_each(item, value)
    {
        if (row->shape == TEXTS)
            put_text(b, row->number, json_str(item));
        else if (row->shape == FREES)
            put_any(b, row->number, item);
        else if (row->shape == MANY)
            put_message(b, row->number, row->of, item);
        else
            put_entry(b, row->number, row->of, str_c(item->string), item);
    }
}

static void put_wrapped(struct buf *b, const struct row *row, const cJSON *value)
{
    const struct row inner = {"", 1, row->shape == NAMED ? ENTRIES : ONE, row->of};
    size_t start = message_begin(b, row->number);

    if (row->shape == TYPE)
        put_text(b, 1, json_str(value));
    else if (row->shape == NAMED)
        put_many(b, &inner, value);
    else
        put_message(b, 1, row->of, value);
    message_end(b, start);
}

static void put_field(struct buf *b, const struct row *row, const cJSON *value)
{
    switch (row->shape) {
    case ONE:
        put_message(b, row->number, row->of, value);
        break;
    case TEXTS:
    case FREES:
    case MANY:
    case ENTRIES:
        put_many(b, row, value);
        break;
    case TYPE:
    case INSIDE:
    case NAMED:
        put_wrapped(b, row, value);
        break;
    case ALLOWED:
        put_allowed(b, row, value);
        break;
    case FREE:
        put_any(b, row->number, value);
        break;
    case DEFAULT:
        put_default(b, row->number, value);
        break;
    default:
        put_scalar(b, row, value);
    }
}

static void put_fields(struct buf *b, const struct message *m, const cJSON *tree)
{
    if (m->choose) {
        put_field(b, m->choose(tree), tree);
        return;
    }
    for (const struct row *row = m->rows; row->key; row++) {
        const cJSON *value = json_get(tree, row->key);

        if (value)
            put_field(b, row, value);
    }
    if (m->extensions) {
        json_each(member, tree)
        {
            size_t start;

            if (strncmp(member->string, "x-", 2) != 0)
                continue;
            start = message_begin(b, m->extensions);
            put_text(b, 1, str_c(member->string));
            put_any(b, 2, member);
            message_end(b, start);
        }
    }
}

/* ---- documents ---- */

static const struct {
    unsigned number; /* of the entry in its map */
    const struct message *of;
} PARTS[] = {
    [GNOSTIC_V2_PATHS] = {2, &PATH_ITEM2},
    [GNOSTIC_V2_SCHEMA] = {1, &SCHEMA2},
    [GNOSTIC_V3_PATHS] = {1, &PATH_ITEM3},
    [GNOSTIC_V3_SCHEMA] = {1, &SCHEMA_OR3},
};

void gnostic_add_named(struct buf *out, enum gnostic what, struct str name, const cJSON *tree)
{
    put_entry(out, PARTS[what].number, PARTS[what].of, name, tree);
}

void gnostic_document(struct buf *out, bool v2, const cJSON *head, struct str paths,
                      struct str schemas)
{
    put_fields(out, v2 ? &HEAD2 : &HEAD3, head);
    put_text(out, v2 ? 8 : 4, paths);
    if (!v2) {
        const cJSON *components = json_get(head, "components");
        size_t start = message_begin(out, 5);

        if (schemas.n)
            put_text(out, 1, schemas);
        put_fields(out, &COMPONENTS, components);
        message_end(out, start);
        return;
    }
    put_text(out, 9, schemas);
    put_fields(out, &TAIL2, head);
}
