/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON trees to protobuf messages, by the field numbers of the table: the inverse of proto.c. Like
 * gogo's generated encoders it writes from the end to the front, so that the length of a message is
 * known when its head is written, and produces the same bytes for an object whose fields are all
 * set; a field absent from the tree is omitted, which every decoder reads as its zero value. Must
 * never fail on a tree normalised by the same node: a value that does not fit its field is omitted.
 * Source: generated.proto and generated.pb.go of k8s.io/api and apimachinery. */

#include "builtin.h"
#include "proto_wire.h"
#include "scalar.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/api_version.h>
#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/proto.h>

#define FIRST_SIZE 4096
#define MAX_DEPTH  256
#define MAX_KEYS   (1u << 20)

/* Bytes that grow at their front. */
struct writer {
    struct arena *arena;
    char *bytes;
    size_t size, at; /* bytes[at..size) has been written */
    const struct schema *schema;
};

/* ---- the wire ---- */

static char *room(struct writer *w, size_t n)
{
    if (n > w->at) {
        size_t used = w->size - w->at, size = w->size ? w->size : FIRST_SIZE;
        char *bytes;

        while (size - used < n)
            size *= 2;
        bytes = arena_alloc(w->arena, size);
        if (used)
            memcpy(bytes + size - used, w->bytes + w->at, used);
        w->bytes = bytes;
        w->at = size - used;
        w->size = size;
    }
    w->at -= n;
    return w->bytes + w->at;
}

static void put_bytes(struct writer *w, struct str s)
{
    if (s.n)
        memcpy(room(w, s.n), s.p, s.n);
}

static void put_varint(struct writer *w, uint64_t value)
{
    char text[10];
    size_t n = 0;

    do {
        text[n] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        n++;
        value >>= 7;
    } while (value);
    put_bytes(w, (struct str){text, n});
}

static void put_key(struct writer *w, unsigned number, enum wire_type type)
{
    put_varint(w, (uint64_t)number << 3 | type);
}

static void put_number(struct writer *w, unsigned number, uint64_t value)
{
    put_varint(w, value);
    put_key(w, number, WIRE_VARINT);
}

/* Writes the head of the bytes written since the end was `mark` bytes away. */
static void close_message(struct writer *w, unsigned number, size_t mark)
{
    put_varint(w, w->size - w->at - mark);
    put_key(w, number, WIRE_BYTES);
}

static size_t written(const struct writer *w)
{
    return w->size - w->at;
}

static void put_text(struct writer *w, unsigned number, struct str s)
{
    size_t mark = written(w);

    put_bytes(w, s);
    close_message(w, number, mark);
}

/* ---- leaves ---- */

static void put_time(struct writer *w, unsigned number, const cJSON *value, bool micro)
{
    size_t mark = written(w);
    int64_t us, s, rest;

    if (!time_parse(json_str(value), &us))
        return;
    s = us / 1000000;
    rest = us % 1000000;
    if (rest < 0) {
        rest += 1000000;
        s--;
    }
    put_number(w, 2, micro ? (uint64_t)rest * 1000 : 0);
    put_number(w, 1, (uint64_t)s);
    close_message(w, number, mark);
}

static void put_int_or_string(struct writer *w, unsigned number, const cJSON *value)
{
    size_t mark = written(w);
    int64_t n = 0;
    bool text = json_is_string(value);

    json_i64(value, &n);
    put_text(w, 3, json_str(value));
    put_number(w, 2, (uint64_t)(int64_t)(int32_t)n);
    put_number(w, 1, text);
    close_message(w, number, mark);
}

/* A message whose only field is a string: Quantity, RawExtension, JSON, FieldsV1. */
static void put_wrapped(struct writer *w, unsigned number, struct str text)
{
    size_t mark = written(w);

    put_text(w, 1, text);
    close_message(w, number, mark);
}

static void put_duration(struct writer *w, unsigned number, const cJSON *value)
{
    size_t mark = written(w);
    int64_t ns;

    if (!duration_parse(json_str(value), &ns))
        return;
    put_number(w, 1, (uint64_t)ns);
    close_message(w, number, mark);
}

static void put_double(struct writer *w, unsigned number, const cJSON *value)
{
    double d = value->valuedouble;
    uint64_t bits;
    char *p = room(w, sizeof(bits));

    memcpy(&bits, &d, sizeof(bits));
    for (size_t i = 0; i < sizeof(bits); i++)
        p[i] = (char)(bits >> (8 * i));
    put_key(w, number, WIRE_FIXED64);
}

static void put_integer(struct writer *w, unsigned number, const cJSON *value)
{
    int64_t n = 0;
    uint64_t u = 0;

    if (json_i64(value, &n))
        put_number(w, number, (uint64_t)n);
    else if (str_to_u64(json_text(w->arena, value), &u))
        put_number(w, number, u);
}

static void put_base64(struct writer *w, unsigned number, const cJSON *value)
{
    struct str bytes;

    if (base64_decode(w->arena, json_str(value), &bytes))
        put_text(w, number, bytes);
}

static void put_scalar(struct writer *w, const struct schema_node *n, unsigned number,
                       const cJSON *value)
{
    switch (n->kind) {
    case SCHEMA_STRING:
        put_text(w, number, json_str(value));
        break;
    case SCHEMA_BOOL:
        put_number(w, number, json_true(value));
        break;
    case SCHEMA_BYTES:
        put_base64(w, number, value);
        break;
    case SCHEMA_DOUBLE:
        put_double(w, number, value);
        break;
    case SCHEMA_QUANTITY:
        put_wrapped(w, number,
                    json_is_string(value) ? json_str(value) : json_text(w->arena, value));
        break;
    case SCHEMA_INT_OR_STRING:
        put_int_or_string(w, number, value);
        break;
    case SCHEMA_TIME:
    case SCHEMA_MICRO_TIME:
        put_time(w, number, value, n->kind == SCHEMA_MICRO_TIME);
        break;
    case SCHEMA_DURATION:
        put_duration(w, number, value);
        break;
    case SCHEMA_ANY:
    case SCHEMA_FIELDS_V1:
    case SCHEMA_UNSTRUCTURED:
        put_wrapped(w, number, json_text(w->arena, value));
        break;
    default:
        put_integer(w, number, value);
        break;
    }
}

/* ---- messages ---- */

static void put_message(struct writer *w, uint32_t node, const cJSON *object, unsigned depth);

/* JSONSchemaPropsOrBool and similar: a message of which one field is the value. An object also sets
 * the flag. */
static void put_either(struct writer *w, const struct schema_node *n, unsigned number,
                       const cJSON *value, unsigned depth)
{
    const struct schema_node *message = node_at(w->schema, n->elem);
    size_t mark = written(w);
    bool flag;
    const struct schema_field *field = schema_either(w->schema, n->elem, value, &flag);
    cJSON *object = json_new_object(w->arena);

    if (!field)
        return;
    json_set(w->arena, object, schema_text(w->schema, field->name), json_copy(w->arena, value));
    for (size_t i = 0; i < message->n_fields && flag && !json_is_bool(value); i++) {
        const struct schema_field *other = &w->schema->fields[message->first_field + i];

        if (node_at(w->schema, other->node)->kind == SCHEMA_BOOL)
            json_set_bool(w->arena, object, schema_text(w->schema, other->name), true);
    }
    put_message(w, n->elem, object, depth + 1);
    close_message(w, number, mark);
}

static void put_value(struct writer *w, uint32_t node, unsigned number, const cJSON *value,
                      unsigned depth)
{
    const struct schema_node *n = node_at(w->schema, node);
    size_t mark = written(w);

    if (n->kind == SCHEMA_ANY && n->elem) {
        put_either(w, n, number, value, depth);
    } else if (n->kind != SCHEMA_OBJECT) {
        put_scalar(w, n, number, value);
    } else {
        put_message(w, node, value, depth + 1);
        close_message(w, number, mark);
    }
}

/* The items from last to first; a wrapped item is a message of its own. */
static void put_list(struct writer *w, const struct schema_node *n, unsigned number,
                     const cJSON *list, unsigned depth)
{
    size_t mark = written(w);
    unsigned item_number = n->first_field ? 1 : number;

    for (const cJSON *item = (list->child ? list->child->prev : NULL); item; item = item->prev) {
        put_value(w, n->elem, item_number, item, depth);
        if (item == list->child)
            break;
    }
    if (n->first_field)
        close_message(w, number, mark);
}

static int compare_keys(const void *a, const void *b)
{
    const cJSON *const *x = a, *const *y = b;

    return strcmp((*x)->string, (*y)->string);
}

/* Sorted by key, as gogo does. */
static void put_map(struct writer *w, const struct schema_node *n, unsigned number,
                    const cJSON *map, unsigned depth)
{
    size_t count = json_count(map), i = 0;
    const cJSON **members;

    if (!count || count > MAX_KEYS)
        return;
    members = arena_alloc(w->arena, count * sizeof(*members));
    json_each(member, map) members[i++] = member;
    qsort(members, count, sizeof(*members), compare_keys);
    while (i--) {
        const struct schema_node *value = node_at(w->schema, n->elem);
        size_t mark = written(w);

        if (value->kind == SCHEMA_LIST)
            put_list(w, value, 2, members[i], depth);
        else if (!json_is_null(members[i]))
            put_value(w, n->elem, 2, members[i], depth);
        else if (value->kind == SCHEMA_OBJECT || value->kind == SCHEMA_TIME)
            put_text(w, 2, STR("")); /* a message all of whose fields are zero */
        put_text(w, 1, str_c(members[i]->string));
        close_message(w, number, mark);
    }
}

static bool fits(const struct schema_node *n, const cJSON *value)
{
    switch (n->kind) {
    case SCHEMA_OBJECT:
    case SCHEMA_MAP:
        return json_is_object(value);
    case SCHEMA_LIST:
        return json_is_array(value);
    case SCHEMA_DOUBLE:
        return json_is_number(value);
    default:
        return !json_is_null(value);
    }
}

static void put_field(struct writer *w, const struct schema_field *field, const cJSON *object,
                      unsigned depth)
{
    const struct schema_node *n = node_at(w->schema, field->node);
    size_t mark = written(w);
    const cJSON *value;

    if (field->flags & FIELD_INLINE) { /* the object's own members, in a message of their own */
        put_message(w, field->node, object, depth + 1);
        close_message(w, field->pb, mark);
        return;
    }
    value = json_get(object, schema_text(w->schema, field->name));
    if (!value || !fits(n, value))
        return;
    if (n->kind == SCHEMA_LIST)
        put_list(w, n, field->pb, value, depth);
    else if (n->kind == SCHEMA_MAP)
        put_map(w, n, field->pb, value, depth);
    else
        put_value(w, field->node, field->pb, value, depth);
}

/* The next smaller field number; fields are few and sorted by name. */
static const struct schema_field *field_below(const struct schema *s, const struct schema_node *n,
                                              unsigned number)
{
    const struct schema_field *found = NULL;

    for (size_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &s->fields[n->first_field + i];

        if (field->pb && field->pb < number && (!found || field->pb > found->pb))
            found = field;
    }
    return found;
}

static void put_message(struct writer *w, uint32_t node, const cJSON *object, unsigned depth)
{
    const struct schema_node *n = node_at(w->schema, node);
    const struct schema_field *field;
    unsigned number = UINT16_MAX + 1u;

    if (depth > MAX_DEPTH)
        return;
    while ((field = field_below(w->schema, n, number))) {
        put_field(w, field, object, depth);
        number = field->pb;
    }
}

/* ---- whole bodies ---- */

/* Discovery documents have no group, two of them no version either. */
static uint32_t root_of(struct str api_version, struct str kind)
{
    struct api_version v = api_version_read(api_version);
    uint32_t node = schema_builtin_root(v.group, v.version, kind);

    if (node || (v.group.n && !str_eqc(v.group, "apidiscovery.k8s.io")))
        return node;
    return schema_builtin_root(STR("published"), v.version.n ? v.version : STR("v1"), kind);
}

/* 0: the kind has no message. */
static uint32_t message_of(const cJSON *object)
{
    uint32_t node =
        root_of(json_str(json_get(object, "apiVersion")), json_str(json_get(object, "kind")));

    return node && node_at(&SCHEMA_BUILTIN, node)->kind == SCHEMA_OBJECT ? node : 0;
}

/* The members of runtime.Unknown that follow its `raw`. */
static void put_envelope_tail(struct writer *w)
{
    put_text(w, 4, STR(""));
    put_text(w, 3, STR(""));
}

/* The members of runtime.Unknown that precede its `raw`. */
static void put_envelope_head(struct writer *w, const cJSON *object)
{
    size_t mark = written(w);

    put_text(w, 2, json_str(json_get(object, "kind")));
    put_text(w, 1, json_str(json_get(object, "apiVersion")));
    close_message(w, 1, mark);
    put_bytes(w, PROTO_MAGIC);
}

static struct str written_bytes(const struct writer *w)
{
    return (struct str){w->bytes + w->at, written(w)};
}

bool proto_encode(struct arena *a, const cJSON *object, struct str *ret)
{
    struct writer w = {.arena = a, .schema = &SCHEMA_BUILTIN};
    uint32_t node = message_of(object);
    size_t mark;

    if (!node)
        return false;
    put_envelope_tail(&w);
    mark = written(&w);
    put_message(&w, node, object, 1);
    close_message(&w, 2, mark);
    put_envelope_head(&w, object);
    *ret = written_bytes(&w);
    return true;
}

/* ---- lists in pieces ---- */

/* The items must be the last field of the message: the fields in the frame precede them. */
bool proto_list_open(const cJSON *frame, const char *items, struct proto_list *ret)
{
    const struct schema *s = &SCHEMA_BUILTIN;
    const struct schema_field *last;

    ret->root = message_of(frame);
    if (!ret->root)
        return false;
    last = field_below(s, node_at(s, ret->root), UINT16_MAX + 1u);
    if (!last || !str_eqc(str_c(schema_text(s, last->name)), items) ||
        node_at(s, last->node)->kind != SCHEMA_LIST)
        return false;
    ret->item = node_at(s, last->node)->elem;
    ret->number = last->pb;
    return true;
}

struct str proto_list_item(struct arena *a, const struct proto_list *l, const cJSON *item)
{
    struct writer w = {.arena = a, .schema = &SCHEMA_BUILTIN};

    put_value(&w, l->item, l->number, item, 1);
    return written_bytes(&w);
}

void proto_list_ends(struct arena *a, const struct proto_list *l, const cJSON *frame, size_t n,
                     struct str *ret_head, struct str *ret_tail)
{
    struct writer head = {.arena = a, .schema = &SCHEMA_BUILTIN}, tail = head;

    put_envelope_tail(&tail);
    *ret_tail = written_bytes(&tail);
    put_message(&head, l->root, frame, 1);
    put_varint(&head, written(&head) + n);
    put_key(&head, 2, WIRE_BYTES);
    put_envelope_head(&head, frame);
    *ret_head = written_bytes(&head);
}

bool proto_encode_event(struct arena *a, struct str type, const cJSON *object, struct str *ret)
{
    struct writer w = {.arena = a, .schema = &SCHEMA_BUILTIN};
    struct str body;
    size_t n;

    if (!proto_encode(a, object, &body))
        return false;
    put_wrapped(&w, 2, body);
    put_text(&w, 1, type);
    n = written(&w);
    put_bytes(
        &w,
        (struct str){(const char[]){(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n}, 4});
    *ret = (struct str){w.bytes + w.at, written(&w)};
    return true;
}
