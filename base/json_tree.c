/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups and builders over the JSON tree. Why: cJSON's look-ups ignore case and its builders
 * allocate on the heap. Must never free a node, share one between two parents, or
 * recurse deeper than a decoder admits. */

#include <sublet/json.h>

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "arena.h"
#include "json_impl.h"

static bool is_type(const cJSON *node, int type)
{
    return node && (node->type & 0xFF) == type;
}

bool json_is_object(const cJSON *node)
{
    return is_type(node, cJSON_Object);
}

bool json_is_array(const cJSON *node)
{
    return is_type(node, cJSON_Array);
}

bool json_is_string(const cJSON *node)
{
    return is_type(node, cJSON_String);
}

bool json_is_number(const cJSON *node)
{
    return is_type(node, cJSON_Number);
}

bool json_is_bool(const cJSON *node)
{
    return is_type(node, cJSON_True) || is_type(node, cJSON_False);
}

bool json_is_null(const cJSON *node)
{
    return is_type(node, cJSON_NULL);
}

bool json_is_scalar(const cJSON *node)
{
    return json_is_string(node) || json_is_number(node) || json_is_bool(node);
}

bool json_true(const cJSON *node)
{
    return is_type(node, cJSON_True);
}

const char *json_type_name(const cJSON *node)
{
    switch (node ? node->type & 0xFF : cJSON_NULL) {
    case cJSON_Object:
        return "object";
    case cJSON_Array:
        return "array";
    case cJSON_String:
        return "string";
    case cJSON_Number:
        return "number";
    case cJSON_True:
    case cJSON_False:
        return "bool";
    default:
        return "null";
    }
}

/* Look-ups */

cJSON *json_get(const cJSON *object, const char *key)
{
    if (!json_is_object(object))
        return NULL;
    json_each(child, object)
    {
        if (strcmp(child->string, key) == 0)
            return child;
    }
    return NULL;
}

cJSON *json_get_str(const cJSON *object, struct str key)
{
    if (!json_is_object(object) || (key.n && memchr(key.p, 0, key.n)))
        return NULL;
    json_each(child, object)
    {
        if (strncmp(child->string, key.p ? key.p : "", key.n) == 0 && child->string[key.n] == 0)
            return child;
    }
    return NULL;
}

cJSON *json_at(const cJSON *array, size_t index)
{
    if (!json_is_array(array))
        return NULL;
    json_each(child, array)
    {
        if (index-- == 0)
            return child;
    }
    return NULL;
}

cJSON *json_path(const cJSON *node, const char *path)
{
    const char *dot;

    while (path && (dot = strchr(path, '.'))) {
        node = json_get_str(node, (struct str){path, (size_t)(dot - path)});
        path = dot + 1;
    }
    return path ? json_get(node, path) : NULL;
}

cJSON *json_first(const cJSON *parent)
{
    return parent ? parent->child : NULL;
}

size_t json_count(const cJSON *node)
{
    size_t n = 0;

    json_each(child, node)
    {
        n++;
    }
    return n;
}

struct str json_key(const cJSON *member)
{
    return str_c(member->string);
}

struct str json_str(const cJSON *node)
{
    if (!json_is_string(node))
        return STR_NULL;
    return (struct str){node->valuestring, (size_t)node->valueint};
}

struct str_list json_str_list(struct arena *a, const cJSON *list)
{
    size_t n = json_count(list), i = 0;
    struct str *items = arena_alloc(a, (n + 1) * sizeof(*items));

    json_each(item, list) items[i++] = arena_str(a, json_str(item));
    return (struct str_list){items, n};
}

bool json_list_has(const cJSON *list, struct str text)
{
    json_each(item, list)
    {
        if (str_eq(json_str(item), text))
            return true;
    }
    return false;
}

struct str json_str_at(const cJSON *node, const char *path)
{
    return json_str(json_path(node, path));
}

int64_t json_i64_at(const cJSON *node, const char *path, int64_t otherwise)
{
    int64_t value;

    return json_i64(json_path(node, path), &value) ? value : otherwise;
}

static bool deeper(const cJSON *node, unsigned depth)
{
    if (!json_is_object(node) && !json_is_array(node))
        return false;
    if (depth == 0)
        return true;
    json_each(child, node)
    {
        if (deeper(child, depth - 1))
            return true;
    }
    return false;
}

bool json_deeper(const cJSON *node, unsigned depth)
{
    return deeper(node, depth < JSON_DEPTH_MAX ? depth : JSON_DEPTH_MAX);
}

/* Builders */

static cJSON *new_node(struct arena *a, int type)
{
    cJSON *node = ARENA_NEW(a, cJSON);

    node->type = type;
    return node;
}

cJSON *json_new_object(struct arena *a)
{
    return new_node(a, cJSON_Object);
}

cJSON *json_new_array(struct arena *a)
{
    return new_node(a, cJSON_Array);
}

cJSON *json_new_string(struct arena *a, struct str s)
{
    cJSON *node = new_node(a, cJSON_String);

    assert(s.n <= INT_MAX);
    node->valuestring = arena_cstr(a, s);
    node->valueint = (int)s.n;
    return node;
}

cJSON *json_new_i64(struct arena *a, int64_t value)
{
    const int64_t exact = INT64_C(1) << 53;
    cJSON *node = new_node(a, cJSON_Number);

    node->valuedouble = (double)value;
    if (value > exact || value < -exact) {
        struct buf b = BUF_INIT(0);

        buf_i64(&b, value);
        node->valuestring = arena_cstr(a, buf_str(&b));
        buf_fini(&b);
    }
    return node;
}

cJSON *json_new_double(struct arena *a, double value)
{
    cJSON *node = new_node(a, cJSON_Number);

    node->valuedouble = value;
    return node;
}

cJSON *json_new_bool(struct arena *a, bool value)
{
    return new_node(a, value ? cJSON_True : cJSON_False);
}

cJSON *json_new_null(struct arena *a)
{
    return new_node(a, cJSON_NULL);
}

/* A copy without children and place. */
static cJSON *copy_one(struct arena *a, const cJSON *from)
{
    cJSON *node = new_node(a, from->type & 0xFF);

    node->valuedouble = from->valuedouble;
    node->valueint = from->valueint;
    if (json_is_string(from))
        node->valuestring = arena_cstr(a, json_str(from));
    else if (from->valuestring)
        node->valuestring = arena_cstr(a, str_c(from->valuestring));
    if (from->string)
        node->string = arena_cstr(a, str_c(from->string));
    return node;
}

/* A container whose children are still to be copied. */
struct job {
    const cJSON *from;
    cJSON *to;
};

cJSON *json_copy(struct arena *a, const cJSON *node)
{
    struct job few[64], *jobs = few;
    size_t n = 0, cap = 64;
    cJSON *top;

    if (!node)
        return NULL;
    top = copy_one(a, node);
    top->string = NULL;
    if (node->child)
        jobs[n++] = (struct job){node, top};

    while (n) {
        struct job job = jobs[--n];

        json_each(child, job.from)
        {
            cJSON *copy = copy_one(a, child);

            json_link(job.to, copy);
            if (!child->child)
                continue;
            if (n == cap) {
                struct job *more = mem_alloc(cap * 2 * sizeof *more);

                memcpy(more, jobs, n * sizeof *more);
                if (jobs != few)
                    mem_free(jobs);
                jobs = more;
                cap *= 2;
            }
            jobs[n++] = (struct job){child, copy};
        }
    }
    if (jobs != few)
        mem_free(jobs);
    return top;
}

/* Changing members */

cJSON *json_set(struct arena *a, cJSON *object, const char *key, cJSON *item)
{
    cJSON *old = json_get(object, key);

    assert(json_is_object(object) && !item->next);
    if (old) {
        json_replace(object, old, item);
        return item;
    }
    item->string = arena_cstr(a, str_c(key));
    json_link(object, item);
    return item;
}

cJSON *json_set_first(struct arena *a, cJSON *object, const char *key, cJSON *item)
{
    assert(json_is_object(object) && !item->next);
    json_remove(object, key);
    item->string = arena_cstr(a, str_c(key));
    item->next = object->child;
    if (item->next) {
        item->prev = item->next->prev;
        item->next->prev = item;
    } else {
        item->prev = item;
    }
    object->child = item;
    return item;
}

cJSON *json_set_str(struct arena *a, cJSON *object, const char *key, struct str value)
{
    return json_set(a, object, key, json_new_string(a, value));
}

cJSON *json_set_i64(struct arena *a, cJSON *object, const char *key, int64_t value)
{
    return json_set(a, object, key, json_new_i64(a, value));
}

cJSON *json_set_bool(struct arena *a, cJSON *object, const char *key, bool value)
{
    return json_set(a, object, key, json_new_bool(a, value));
}

cJSON *json_add(cJSON *object, const char *key, cJSON *item)
{
    union {
        const char *key;
        char *string; /* of cJSON's type; never written through */
    } pun = {.key = key};

    assert(json_is_object(object) && !item->next);
    item->string = pun.string;
    json_link(object, item);
    return item;
}

cJSON *json_append(cJSON *array, cJSON *item)
{
    assert(json_is_array(array) && !item->next);
    item->string = NULL;
    json_link(array, item);
    return item;
}

cJSON *json_ensure_object(struct arena *a, cJSON *object, const char *key)
{
    cJSON *member = json_get(object, key);

    return json_is_object(member) ? member : json_set(a, object, key, json_new_object(a));
}

cJSON *json_ensure_path(struct arena *a, cJSON *object, const char *dotted)
{
    struct str rest = str_c(dotted);

    while (rest.p) {
        struct str key = str_cut(&rest, '.');
        cJSON *member = json_get_str(object, key);

        if (!json_is_object(member))
            member = json_set(a, object, arena_cstr(a, key), json_new_object(a));
        object = member;
    }
    return object;
}

void json_remove(cJSON *object, const char *key)
{
    cJSON *member = json_get(object, key);

    if (member)
        json_detach(object, member);
}

void json_detach(cJSON *parent, cJSON *child)
{
    cJSON *first = parent->child, *next = child->next;

    if (child == first) {
        parent->child = next;
        if (next)
            next->prev = child->prev;
    } else {
        child->prev->next = next;
        if (next)
            next->prev = child->prev;
        else
            first->prev = child->prev;
    }
    child->next = child->prev = NULL;
}

void json_replace(cJSON *parent, cJSON *child, cJSON *with)
{
    if (child == with)
        return;
    with->string = child->string;
    with->next = child->next;
    with->prev = child->prev == child ? with : child->prev;
    if (with->next)
        with->next->prev = with;
    else if (parent->child != child)
        parent->child->prev = with;
    if (parent->child == child)
        parent->child = with;
    else
        with->prev->next = with;
    child->next = child->prev = NULL;
}
