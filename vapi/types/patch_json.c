/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON patch (RFC 6902) as the API server applies it, quirks included: a replace may add a member,
 * the index -1 is the last, a copy of nothing is null. Source: gopkg.in/evanphx/json-patch.v4 and
 * apiserver pkg/endpoints/handlers/patch.go. Must never change the patch, and never work without
 * bounds: 10,000 operations may each walk a list of a million items. */

#include <string.h>

#include <sublet/schema.h>

#include "tree.h"

enum {
    OPERATIONS_MAX = 10000,
    COPY_MAX = 3 * 1024 * 1024, /* bytes of JSON that copies may add */
    STEPS_MAX = 50 * 1000 * 1000
};

struct json_patch {
    struct arena *arena;
    struct err *err;
    cJSON *root;
    int64_t copied, steps;
    bool tested; /* a test operation failed */
};

/* The location an operation acts on: a container and a key or index in it. */
struct target {
    cJSON *parent;
    struct str key;
};

struct operation {
    struct str op, path, from;
    const cJSON *value;
};

/* Upstream reports no further detail about a patch that does not apply. */
static int refuse(struct json_patch *p)
{
    return err_set(p->err, &ERR_INVALID,
                   "the server rejected our request due to an error in our request");
}

/* Pointers */

/* ~1 is '/', ~0 is '~' (RFC 6901), in one pass. */
static struct str decode_key(struct arena *a, struct str key)
{
    char *out;
    size_t n = 0;

    if (str_find(key, '~') == key.n)
        return key;
    out = arena_alloc(a, key.n + 1);
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~' && i + 1 < key.n && (key.p[i + 1] == '0' || key.p[i + 1] == '1'))
            out[n++] = key.p[++i] == '0' ? '~' : '/';
        else
            out[n++] = key.p[i];
    }
    return (struct str){out, n};
}

/* An index as strconv.Atoi reads it; a negative one counts from the end of `size` places. */
static bool parse_index(struct str key, size_t size, size_t *ret)
{
    int64_t index;

    if (key.n && key.p[0] == '+')
        key = str_from(key, 1);
    if (!str_to_i64(key, &index))
        return false;
    if (index < 0)
        index += (int64_t)size;
    if (index < 0 || (uint64_t)index >= size)
        return false;
    *ret = (size_t)index;
    return true;
}

static size_t count_steps(struct json_patch *p, const cJSON *parent)
{
    size_t n = json_count(parent);

    p->steps += (int64_t)n + 1;
    return n;
}

/* The member or item, NULL when there is none. */
static cJSON *find_child(struct json_patch *p, cJSON *parent, struct str key)
{
    size_t n = count_steps(p, parent), index;

    if (json_is_object(parent))
        return json_get_str(parent, key);
    return parse_index(key, n, &index) ? json_at(parent, index) : NULL;
}

static bool is_container(const cJSON *node)
{
    return json_is_object(node) || json_is_array(node);
}

/* False when the path leads nowhere. Upstream ignores anything before the first '/'. */
static bool find_target(struct json_patch *p, struct str path, struct target *ret)
{
    struct target t = {.parent = p->root};
    struct str rest = path;

    if (str_find(path, '/') == path.n || !is_container(p->root))
        return false;
    str_cut(&rest, '/');
    t.key = str_cut(&rest, '/');
    while (rest.p) {
        t.parent = find_child(p, t.parent, decode_key(p->arena, t.key));
        if (!is_container(t.parent) || p->steps > STEPS_MAX)
            return false;
        t.key = str_cut(&rest, '/');
    }
    t.key = decode_key(p->arena, t.key);
    *ret = t;
    return true;
}

/* Operations on the target */

static void insert_item(cJSON *array, size_t index, cJSON *item)
{
    cJSON *next = json_at(array, index);

    if (!next) {
        json_append(array, item);
        return;
    }
    item->string = NULL;
    item->next = next;
    item->prev = next->prev;
    if (array->child == next)
        array->child = item;
    else
        next->prev->next = item;
    next->prev = item;
}

static int add_at(struct json_patch *p, const struct target *t, cJSON *item)
{
    size_t n = count_steps(p, t->parent), index = n;

    if (json_is_array(t->parent)) {
        if (!str_eq(t->key, STR("-")) && !parse_index(t->key, n + 1, &index))
            return refuse(p);
        insert_item(t->parent, index, item);
        return 0;
    }
    if (str_find(t->key, '\0') < t->key.n)
        return refuse(p);
    json_set(p->arena, t->parent, arena_cstr(p->arena, t->key), item);
    return 0;
}

static cJSON *value_of(struct json_patch *p, const struct operation *o)
{
    return o->value ? json_copy(p->arena, o->value) : json_new_null(p->arena);
}

static int do_add(struct json_patch *p, const struct operation *o)
{
    struct target t;

    if (!find_target(p, o->path, &t))
        return refuse(p);
    return add_at(p, &t, value_of(p, o));
}

static int do_remove(struct json_patch *p, const struct operation *o)
{
    struct target t;
    cJSON *child;

    if (!find_target(p, o->path, &t))
        return refuse(p);
    child = find_child(p, t.parent, t.key);
    if (!child)
        return refuse(p);
    json_detach(t.parent, child);
    return 0;
}

static int do_replace(struct json_patch *p, const struct operation *o)
{
    struct target t;
    cJSON *child;

    if (o->path.n == 0) {
        if (!is_container(o->value))
            return refuse(p);
        p->root = value_of(p, o);
        return 0;
    }
    if (!find_target(p, o->path, &t))
        return refuse(p);
    child = find_child(p, t.parent, t.key);
    if (child)
        json_replace(t.parent, child, value_of(p, o));
    else if (json_is_object(t.parent))
        return add_at(p, &t, value_of(p, o));
    else
        return refuse(p);
    return 0;
}

static int do_move(struct json_patch *p, const struct operation *o)
{
    struct target t;
    cJSON *child;

    if (!find_target(p, o->from, &t))
        return refuse(p);
    child = find_child(p, t.parent, t.key);
    if (!child)
        return refuse(p);
    json_detach(t.parent, child);
    if (!find_target(p, o->path, &t))
        return refuse(p);
    return add_at(p, &t, child);
}

static int do_copy(struct json_patch *p, const struct operation *o)
{
    struct target from, to;
    const cJSON *source;

    if (!find_target(p, o->from, &from))
        return refuse(p);
    source = find_child(p, from.parent, from.key);
    if (!source && json_is_array(from.parent))
        return refuse(p);
    if (!find_target(p, o->path, &to))
        return refuse(p);
    if (!source)
        return add_at(p, &to, json_new_null(p->arena));

    if (json_deeper(source, JSON_LIMITS.depth))
        return refuse(p);
    p->copied += (int64_t)json_text(p->arena, source).n;
    if (p->copied > COPY_MAX)
        return refuse(p);
    return add_at(p, &to, json_copy(p->arena, source));
}

static int do_test(struct json_patch *p, const struct operation *o)
{
    const cJSON *child = p->root;
    struct target t;

    if (o->path.n) {
        if (!find_target(p, o->path, &t))
            return refuse(p);
        child = find_child(p, t.parent, t.key);
        if (!child && json_is_array(t.parent))
            return refuse(p);
    }
    count_steps(p, child);
    if (!child || json_is_null(child))
        p->tested = o->value && !json_is_null(o->value);
    else
        p->tested = !o->value || !json_equal(child, o->value);
    return p->tested ? refuse(p) : 0;
}

static const struct {
    struct str name;
    int (*run)(struct json_patch *p, const struct operation *o);
    bool moves;
} OPERATIONS[] = {
    {{"add", 3}, do_add, false},         {{"remove", 6}, do_remove, false},
    {{"replace", 7}, do_replace, false}, {{"move", 4}, do_move, true},
    {{"copy", 4}, do_copy, true},        {{"test", 4}, do_test, false},
};

static int run_operation(struct json_patch *p, const struct operation *o)
{
    for (size_t i = 0; i < COUNT(OPERATIONS); i++) {
        if (!str_eq(OPERATIONS[i].name, o->op))
            continue;
        if (!o->path.p || (OPERATIONS[i].moves && !o->from.p))
            return refuse(p);
        return OPERATIONS[i].run(p, o);
    }
    return refuse(p);
}

/* The document */

static int read_text(const cJSON *op, const char *name, struct str *ret, struct err *err)
{
    const cJSON *member = json_get(op, name);

    *ret = json_str(member);
    if (!member || json_is_null(member) || json_is_string(member))
        return 0;
    return err_set(err, &ERR_BAD_REQUEST,
                   "error decoding patch: json: cannot unmarshal %s into Go struct field "
                   "jsonPatchOp.%s of type string",
                   json_type_name(member), name);
}

static int read_operation(const cJSON *op, struct operation *ret, struct err *err)
{
    *ret = (struct operation){.value = json_get(op, "value")};
    if (!json_is_object(op) && !json_is_null(op))
        return err_set(err, &ERR_BAD_REQUEST,
                       "error decoding patch: json: cannot unmarshal %s into Go value of type "
                       "handlers.jsonPatchOp",
                       json_type_name(op));
    if (read_text(op, "op", &ret->op, err) || read_text(op, "path", &ret->path, err) ||
        read_text(op, "from", &ret->from, err))
        return -1;
    return 0;
}

/* The whole patch is read before any of it is applied. */
static int check_patch(const cJSON *patch, struct err *err)
{
    struct operation ignored;
    size_t n = json_count(patch);

    if (!json_is_array(patch) && !json_is_null(patch))
        return err_set(err, &ERR_BAD_REQUEST,
                       "error decoding patch: json: cannot unmarshal %s into Go value of type "
                       "[]handlers.jsonPatchOp",
                       json_type_name(patch));
    if (n > OPERATIONS_MAX)
        return err_set(
            err, &ERR_TOO_LARGE,
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            "%d, got %zu",
            OPERATIONS_MAX, n);
    json_each(op, patch)
    {
        if (read_operation(op, &ignored, err))
            return -1;
    }
    return 0;
}

static bool is_known(const char *member)
{
    return strcmp(member, "op") == 0 || strcmp(member, "path") == 0 ||
           strcmp(member, "from") == 0 || strcmp(member, "value") == 0;
}

void patch_json_unknown(const cJSON *patch, struct strict_errors *strict)
{
    size_t index = 0;

    if (!json_is_array(patch))
        return;
    json_each(op, patch)
    {
        if (json_is_object(op)) {
            json_each(member, op)
            {
                if (!is_known(member->string))
                    strict_add(strict, "json patch unknown field",
                               arena_printf(strict->arena, "[%zu].%s", index, member->string));
            }
        }
        index++;
    }
}

int patch_json_tested(struct arena *a, cJSON *object, const cJSON *patch, cJSON **ret,
                      bool *ret_tested, struct err *err)
{
    struct json_patch p = {.arena = a, .err = err, .root = object};

    *ret_tested = false;
    if (check_patch(patch, err))
        return -1;
    json_each(op, patch)
    {
        struct operation o;

        if (read_operation(op, &o, err) || run_operation(&p, &o)) {
            *ret_tested = p.tested;
            return -1;
        }
        if (p.steps > STEPS_MAX || arena_over(a))
            return err_set(err, &ERR_TOO_LARGE,
                           "Request entity is too large: the JSON patch takes too many "
                           "steps");
    }
    if (json_deeper(p.root, JSON_LIMITS.depth))
        return refuse(&p);
    *ret = p.root;
    return 0;
}

int patch_json(struct arena *a, cJSON *object, const cJSON *patch, cJSON **ret, struct err *err)
{
    bool tested;

    return patch_json_tested(a, object, patch, ret, &tested, err);
}
