/* SPDX-License-Identifier: Apache-2.0
 *
 * Protobuf messages to JSON trees, by the field numbers of the table. Like gogo's generated
 * decoders: the last scalar wins, repeated messages are merged, unknown fields are dropped. Must
 * never trust a length, a depth or a count of the message; the tree it makes has the limits of a
 * JSON body. */

#include "proto.h"
#include "builtin.h"
#include "normalise.h"
#include "tree.h"

#include <assert.h>

int proto_count(struct proto *p)
{
    if (++p->nodes > JSON_LIMITS.nodes || arena_over(p->arena))
        return err_set(p->err, &ERR_BAD_REQUEST, "proto: message has too many values");
    return 0;
}

int proto_wrong_wire(struct proto *p, const struct wire_field *wire, const char *field)
{
    return err_set(p->err, &ERR_BAD_REQUEST, "proto: wrong wireType = %d for field %s",
                   (int)wire->type, field);
}

static int decode_message(struct proto *p, uint32_t node, cJSON *object, struct str bytes,
                          unsigned depth);

static bool is_message(const struct schema_node *n)
{
    return n->kind == SCHEMA_OBJECT;
}

/* ANY with a message of its own (JSONSchemaPropsOrArray, ...OrBool, ...OrStringArray). */
static bool is_either(const struct schema_node *n)
{
    return n->kind == SCHEMA_ANY && n->elem;
}

/* The alternative an `either` message holds: its list if that has items, else its object, else its
 * flag. */
static cJSON *pick_either(struct proto *p, const struct schema_node *either, const cJSON *message)
{
    const struct schema_node *n = node_at(p->schema, either->elem);
    cJSON *picked = NULL;
    bool has_flag = false;

    for (size_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &p->schema->fields[n->first_field + i];
        uint8_t kind = node_at(p->schema, field->node)->kind;
        cJSON *member = json_get(message, schema_text(p->schema, field->name));

        has_flag |= kind == SCHEMA_BOOL;
        if (member &&
            (!picked || kind == SCHEMA_LIST || (kind == SCHEMA_OBJECT && json_is_bool(picked))))
            picked = member;
    }
    if (!picked)
        return has_flag ? json_new_bool(p->arena, false) : json_new_null(p->arena);
    json_detach((cJSON *)(uintptr_t)message, picked);
    return picked;
}

/* A single value: a list item, the value of a map entry, a scalar field. */
static int decode_value(struct proto *p, uint32_t node, const struct wire_field *wire,
                        const char *name, unsigned depth, cJSON **ret)
{
    const struct schema_node *n = node_at(p->schema, node);
    cJSON *value;

    if (!is_message(n) && !is_either(n))
        return proto_scalar(p, n, wire, name, ret);
    if (wire->type != WIRE_BYTES)
        return proto_wrong_wire(p, wire, name);
    if (proto_count(p))
        return -1;
    value = json_new_object(p->arena);
    if (decode_message(p, is_either(n) ? n->elem : node, value, wire->bytes, depth + 1))
        return -1;
    *ret = is_either(n) ? pick_either(p, n, value) : value;
    return 0;
}

static bool can_pack(const struct schema_node *item)
{
    return (item->kind >= SCHEMA_BOOL && item->kind <= SCHEMA_UINT64) ||
           item->kind == SCHEMA_DOUBLE;
}

static int decode_packed(struct proto *p, const struct schema_node *item, struct str bytes,
                         const char *name, cJSON *array)
{
    while (bytes.n > 0) {
        struct wire_field wire = {.type = WIRE_VARINT};
        cJSON *value;

        if (item->kind == SCHEMA_DOUBLE) {
            if (bytes.n < 8)
                return err_set(p->err, &ERR_BAD_REQUEST, "unexpected EOF");
            wire.type = WIRE_FIXED64;
            for (size_t i = 0; i < 8; i++)
                wire.value |= (uint64_t)(unsigned char)bytes.p[i] << (8 * i);
            bytes = str_from(bytes, 8);
        } else if (wire_varint(&bytes, &wire.value, p->err)) {
            return -1;
        }
        if (proto_scalar(p, item, &wire, name, &value))
            return -1;
        json_append(array, value);
    }
    return 0;
}

static int decode_item(struct proto *p, const struct schema_node *list,
                       const struct wire_field *wire, const char *name, unsigned depth,
                       cJSON *array)
{
    const struct schema_node *item = node_at(p->schema, list->elem);
    cJSON *value;

    if (wire->type == WIRE_BYTES && can_pack(item))
        return decode_packed(p, item, wire->bytes, name, array);
    if (item->kind == SCHEMA_LIST || item->kind == SCHEMA_MAP)
        return err_set(p->err, &ERR_BAD_REQUEST, "proto: field %s cannot be decoded", name);
    if (decode_value(p, list->elem, wire, name, depth, &value))
        return -1;
    json_append(array, value);
    return 0;
}

static int decode_list(struct proto *p, const struct schema_node *list,
                       const struct wire_field *wire, const char *name, unsigned depth,
                       cJSON *array)
{
    struct str bytes;
    struct wire_field item;
    int more;

    if (!list->first_field)
        return decode_item(p, list, wire, name, depth, array);
    if (wire->type != WIRE_BYTES)
        return proto_wrong_wire(p, wire, name);
    /* authentication/v1 ExtraValue and similar:
     * `message ExtraValue { repeated string items = 1; }`. */
    bytes = wire->bytes;
    while ((more = wire_next(&bytes, &item, p->err)) > 0) {
        if (item.number == 1 && decode_item(p, list, &item, name, depth, array))
            return -1;
    }
    return more;
}

static int decode_map_value(struct proto *p, uint32_t node, const struct wire_field *wire,
                            const char *name, unsigned depth, cJSON **ret)
{
    const struct schema_node *n = node_at(p->schema, node);

    if (n->kind != SCHEMA_LIST)
        return decode_value(p, node, wire, name, depth, ret);
    if (proto_count(p))
        return -1;
    *ret = json_new_array(p->arena);
    return decode_list(p, n, wire, name, depth + 1, *ret);
}

/* map<string, V> is `repeated Entry { string key = 1; V value = 2; }`. An absent value is null here
 * and becomes its zero value when the tree is normalised. */
static int decode_entry(struct proto *p, const struct schema_node *map,
                        const struct wire_field *wire, const char *name, unsigned depth,
                        cJSON *object)
{
    struct str rest = wire->bytes, key = STR("");
    struct wire_field part;
    cJSON *value = NULL;
    int more;

    if (wire->type != WIRE_BYTES)
        return proto_wrong_wire(p, wire, name);
    while ((more = wire_next(&rest, &part, p->err)) > 0) {
        if (part.number == 1 && part.type != WIRE_BYTES)
            return proto_wrong_wire(p, &part, name);
        if (part.number == 1)
            key = proto_text(p, part.bytes);
        if (part.number == 2 && decode_map_value(p, map->elem, &part, name, depth, &value))
            return -1;
    }
    if (more < 0 || proto_count(p))
        return -1;
    if (str_find(key, '\0') < key.n)
        return err_set(p->err, &ERR_BAD_REQUEST, "proto: a key of %s has a zero byte", name);
    if (!value && node_at(p->schema, map->elem)->kind == SCHEMA_BYTES)
        value = json_new_string(p->arena, STR(""));
    json_add(object, arena_cstr(p->arena, key), value ? value : json_new_null(p->arena));
    return 0;
}

/* Keys of messages are names of the table: equal names are equal pointers. */
static cJSON *find_member(const cJSON *object, const char *name)
{
    json_each(member, object)
    {
        if (member->string == name)
            return member;
    }
    return NULL;
}

static cJSON *member_of(struct proto *p, cJSON *object, const char *name, bool array)
{
    cJSON *member = find_member(object, name);

    if (member)
        return member;
    if (proto_count(p))
        return NULL;
    return json_add(object, name, array ? json_new_array(p->arena) : json_new_object(p->arena));
}

static int decode_field(struct proto *p, const struct schema_field *field,
                        const struct wire_field *wire, cJSON *object, unsigned depth)
{
    const struct schema_node *n = node_at(p->schema, field->node);
    const char *name = schema_text(p->schema, field->name);
    cJSON *member, *value;

    if (is_message(n) && wire->type != WIRE_BYTES)
        return proto_wrong_wire(p, wire, name);
    if (field->flags & FIELD_INLINE)
        return decode_message(p, field->node, object, wire->bytes, depth + 1);
    if (is_message(n) || n->kind == SCHEMA_LIST || n->kind == SCHEMA_MAP) {
        member = member_of(p, object, name, n->kind == SCHEMA_LIST);
        if (!member)
            return -1;
        if (is_message(n))
            return decode_message(p, field->node, member, wire->bytes, depth + 1);
        if (n->kind == SCHEMA_LIST)
            return decode_list(p, n, wire, name, depth + 1, member);
        return decode_entry(p, n, wire, name, depth + 1, member);
    }
    if (decode_value(p, field->node, wire, name, depth, &value))
        return -1;
    member = find_member(object, name);
    if (member)
        json_replace(object, member, value);
    else
        json_add(object, name, value);
    return 0;
}

static int decode_message(struct proto *p, uint32_t node, cJSON *object, struct str bytes,
                          unsigned depth)
{
    struct wire_field wire;
    int more;

    if (depth > JSON_LIMITS.depth)
        return err_set(p->err, &ERR_BAD_REQUEST, "proto: message is nested too deeply");
    while ((more = wire_next(&bytes, &wire, p->err)) > 0) {
        const struct schema_field *field = schema_field_pb(p->schema, node, wire.number);

        if (field && decode_field(p, field, &wire, object, depth))
            return -1;
    }
    return more;
}

int proto_tree(struct arena *a, const struct schema *s, uint32_t node, struct str bytes,
               cJSON *object, struct err *err)
{
    struct proto p = {.arena = a, .schema = s, .err = err};

    if (schema_node(s, node)->kind != SCHEMA_OBJECT)
        return err_set(err, &ERR_INTERNAL, "proto: the type is not a message");
    return decode_message(&p, node, object, bytes, 1);
}

int proto_decode_message(struct arena *a, const struct schema *s, uint32_t node, struct str bytes,
                         cJSON **ret, struct err *err)
{
    cJSON *object = json_new_object(a);

    if (proto_tree(a, s, node, bytes, object, err))
        return -1;
    if (normalise_decoded(a, s, node, object, err))
        return -1;
    *ret = object;
    return 0;
}
