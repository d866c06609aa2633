/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML reader: libyaml's events become a JSON tree. Why: kubectl, Argo CD and people send YAML,
 * and it must mean what sigs.k8s.io/yaml makes of it. Must never expand aliases past the limits, in
 * nodes, in bytes or in depth: a few lines of YAML can describe gigabytes. */

#include "yaml_impl.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>
#include <yaml.h>

#include "json_impl.h"
#include "json_keys.h"
#include "utf8.h"

/* What aliases may add to a document; go-yaml stops at about as many nodes. */
enum { ALIAS_NODES_MAX = 400000, ALIAS_BYTES_MAX = 4 << 20, KEY_SHOWN_MAX = 2048 };
enum { DUPLICATES_MAX = 100 };
/* libyaml spends time on every open flow collection for each token, so less than for JSON. */
enum { DEPTH_MAX = 128 };

/* One open collection: an alias must not name any of the chain. */
struct frame {
    struct frame *up;
    const cJSON *node;
};

struct loader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    struct arena *a;
    struct err *err;
    size_t nodes, alias_nodes, alias_bytes, anchored;
    unsigned depth;
    struct frame *frame;
    cJSON anchors; /* an object: name -> a holder whose child is the node */
    struct json_keys anchor_keys;
    json_duplicate_cb duplicate;
    void *ctx;
    unsigned duplicates;
};

static cJSON *load_node(struct loader *l);

static int fail(struct loader *l, const char *what)
{
    return err_set(l->err, &ERR_BAD_REQUEST, "yaml: line %zu: %s", l->event.start_mark.line + 1,
                   what);
}

/* Moves to the next event. */
static int next(struct loader *l)
{
    yaml_event_delete(&l->event);
    if (yaml_parser_parse(&l->parser, &l->event))
        return 0;
    if (l->parser.error == YAML_READER_ERROR) /* it knows the offset alone */
        return err_set(l->err, &ERR_BAD_REQUEST, "yaml: offset %zu: %s", l->parser.problem_offset,
                       l->parser.problem);
    return err_set(l->err, &ERR_BAD_REQUEST, "yaml: line %zu: %s", l->parser.problem_mark.line + 1,
                   l->parser.problem ? l->parser.problem : "cannot be parsed");
}

static int skip(struct loader *l, int events)
{
    while (events-- > 0)
        if (next(l) < 0)
            return -1;
    return 0;
}

/* Counts n more nodes; false when that is too many. */
static bool count_nodes(struct loader *l, size_t n)
{
    l->nodes += n;
    if (l->nodes > JSON_LIMITS.nodes) {
        fail(l, "document has too many values");
        return false;
    }
    if (arena_over(l->a)) {
        fail(l, "document needs too much memory");
        return false;
    }
    return true;
}

/* Duplicates */

/* A pair of a mapping: its name as JSON has it, and what identifies a duplicate. */
struct member {
    char *name;
    cJSON *value;
    size_t line; /* on which the value begins */
    bool quoted; /* the key is a string */
};

/* In go-yaml's words. */
static void report_duplicate(struct loader *l, const struct member *m)
{
    struct str key = str_sub(str_c(m->name), 0, KEY_SHOWN_MAX);

    if (!l->duplicate || l->duplicates >= DUPLICATES_MAX)
        return;
    l->duplicates++;
    if (m->quoted)
        key = go_quote(l->a, key);
    l->duplicate(l->ctx,
                 arena_printf(l->a, "line %zu: key %.*s already set in map", m->line, STR_F(key)));
}

/* The last value of a key wins. Keys are owned by the arena and hold no NUL. */
static void set_member(struct loader *l, struct json_keys *keys, cJSON *object,
                       const struct member *m)
{
    cJSON *old = json_keys_find(keys, object, str_c(m->name)), *value = m->value;

    if (!old) {
        value->string = m->name;
        json_link(object, value);
        json_keys_add(keys, object, value);
        return;
    }
    report_duplicate(l, m);
    /* The node stays, since the key set knows it; the value moves in. */
    *old = (cJSON){.next = old->next,
                   .prev = old->prev,
                   .string = old->string,
                   .type = value->type,
                   .child = value->child,
                   .valuestring = value->valuestring,
                   .valueint = value->valueint,
                   .valuedouble = value->valuedouble};
}

/* Anchors */

static struct str event_text(const yaml_char_t *text)
{
    return str_c((const char *)text);
}

static void anchor(struct loader *l, const yaml_char_t *name, cJSON *node)
{
    struct str key = event_text(name);
    cJSON *holder;

    if (!key.p)
        return;
    l->anchored++;
    holder = json_keys_find(&l->anchor_keys, &l->anchors, key);
    if (!holder) {
        holder = ARENA_NEW(l->a, cJSON);
        holder->string = arena_cstr(l->a, key);
        json_link(&l->anchors, holder);
        json_keys_add(&l->anchor_keys, &l->anchors, holder);
    }
    holder->child = node;
}

/* Adds up what a copy of node takes, as long as the alias limits hold. */
static bool measure(struct loader *l, const cJSON *node)
{
    l->alias_nodes++;
    if (json_is_string(node))
        l->alias_bytes += (size_t)node->valueint;
    if (l->alias_nodes > ALIAS_NODES_MAX || l->alias_bytes > ALIAS_BYTES_MAX)
        return false;
    json_each(child, node)
    {
        l->alias_bytes += strlen(child->string ? child->string : "");
        if (!measure(l, child))
            return false;
    }
    return true;
}

static cJSON *load_alias(struct loader *l)
{
    struct str name = event_text(l->event.data.alias.anchor);
    cJSON *holder = json_keys_find(&l->anchor_keys, &l->anchors, name);
    const cJSON *node = holder ? holder->child : NULL;
    size_t before = l->alias_nodes;

    if (!node) {
        err_set(l->err, &ERR_BAD_REQUEST, "yaml: line %zu: unknown anchor '%.*s' referenced",
                l->event.start_mark.line + 1, STR_F(name));
        return NULL;
    }
    for (const struct frame *f = l->frame; f; f = f->up) {
        if (f->node != node)
            continue;
        err_set(l->err, &ERR_BAD_REQUEST, "yaml: line %zu: anchor '%.*s' value contains itself",
                l->event.start_mark.line + 1, STR_F(name));
        return NULL;
    }
    if (json_deeper(node, DEPTH_MAX - l->depth)) {
        fail(l, "exceeded max depth");
        return NULL;
    }
    if (!measure(l, node)) {
        fail(l, "document contains excessive aliasing");
        return NULL;
    }
    return count_nodes(l, l->alias_nodes - before) ? json_copy(l->a, node) : NULL;
}

/* Scalars */

/* !!binary may hold any bytes; a JSON string may not: Go's encoder puts U+FFFD for each wrong byte.
 */
static struct str make_utf8(struct arena *a, struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;
    struct buf b = BUF_INIT(0);

    if (str_is_utf8(s))
        return s;
    while (p < end) {
        size_t n = utf8_step(p, end);

        buf_add(&b, n ? (struct str){(const char *)p, n} : STR("\xef\xbf\xbd"));
        p += n ? n : 1;
    }
    s = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return s;
}

static cJSON *binary_node(struct loader *l, struct str text)
{
    struct str bytes;

    if (!base64_decode(l->a, text, &bytes)) {
        fail(l, "!!binary value contains invalid base64 data");
        return NULL;
    }
    return json_new_string(l->a, make_utf8(l->a, bytes));
}

static cJSON *unsigned_node(struct arena *a, uint64_t value)
{
    cJSON *node = json_new_double(a, (double)value);
    char digits[24];

    snprintf(digits, sizeof digits, "%ju", (uintmax_t)value);
    node->valuestring = arena_cstr(a, str_c(digits));
    return node;
}

/* A float node says so in valueint: as a key it is written differently. */
static cJSON *float_node(struct arena *a, double value)
{
    cJSON *node = json_new_double(a, value);

    node->valueint = 1;
    return node;
}

static cJSON *plain_node(struct loader *l, const struct yaml_plain *value, struct str text)
{
    switch (value->kind) {
    case PLAIN_NULL:
        return json_new_null(l->a);
    case PLAIN_BOOL:
        return json_new_bool(l->a, value->truth);
    case PLAIN_INT:
        return json_new_i64(l->a, value->i);
    case PLAIN_UINT:
        return unsigned_node(l->a, value->u);
    case PLAIN_FLOAT:
        return float_node(l->a, value->f);
    case PLAIN_STRING:
        break;
    }
    return json_new_string(l->a, text);
}

static const char *const kind_tags[] = {
    [PLAIN_STRING] = "str", [PLAIN_NULL] = "null", [PLAIN_BOOL] = "bool",
    [PLAIN_INT] = "int",    [PLAIN_UINT] = "int",  [PLAIN_FLOAT] = "float",
};

/* A scalar with one of the tags null, bool, int and float. */
static cJSON *tagged_node(struct loader *l, struct str tag, struct str text)
{
    struct yaml_plain value = yaml_plain_resolve(text);
    const char *is = kind_tags[value.kind];

    if (str_eqc(tag, "float") && value.kind == PLAIN_INT)
        return float_node(l->a, (double)value.i);
    if (str_eqc(tag, is))
        return plain_node(l, &value, text);
    err_set(l->err, &ERR_BAD_REQUEST, "yaml: line %zu: cannot decode !!%s `%.*s` as a !!%.*s",
            l->event.start_mark.line + 1, is, (int)str_sub(text, 0, 64).n, text.p, STR_F(tag));
    return NULL;
}

static cJSON *scalar_value(struct loader *l)
{
    static const struct str prefix = {"tag:yaml.org,2002:", 18};
    const struct str text = {(const char *)l->event.data.scalar.value, l->event.data.scalar.length};
    struct str tag = event_text(l->event.data.scalar.tag);
    struct yaml_plain value;

    if (text.n > INT_MAX) {
        fail(l, "string is too long");
        return NULL;
    }
    if (tag.n == 0) {
        if (!l->event.data.scalar.plain_implicit)
            return json_new_string(l->a, text);
        value = yaml_plain_resolve(text);
        return plain_node(l, &value, text);
    }

    tag = str_has_prefix(tag, prefix) ? str_from(tag, prefix.n) : STR_NULL;
    if (str_eqc(tag, "binary"))
        return binary_node(l, text);
    if (str_eqc(tag, "null") || str_eqc(tag, "bool") || str_eqc(tag, "int") ||
        str_eqc(tag, "float"))
        return tagged_node(l, tag, text);
    return json_new_string(l->a, text); /* str, timestamp, and unknown tags */
}

static cJSON *load_scalar(struct loader *l)
{
    cJSON *node = count_nodes(l, 1) ? scalar_value(l) : NULL;

    if (node)
        anchor(l, l->event.data.scalar.anchor, node);
    return node;
}

/* Keys */

/* strconv.FormatFloat(f, 'g', -1, 32), which sigs.k8s.io/yaml uses for keys. */
static char *float_key(struct arena *a, double value)
{
    float f = (float)value;
    char text[40];
    int digits = 0, exponent;

    if (isnan(f))
        return arena_cstr(a, STR(".nan"));
    if (isinf(f))
        return arena_cstr(a, f > 0 ? STR(".inf") : STR("-.inf"));
    do {
        snprintf(text, sizeof text, "%.*e", digits, (double)f);
    } while (strtof(text, NULL) != f && ++digits < 9);

    exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 6)
        snprintf(text, sizeof text, "%.*f", digits > exponent ? digits - exponent : 0, (double)f);
    return arena_cstr(a, str_c(text));
}

/* A key as a member name; NULL with an error set when it cannot be one. */
static char *key_text(struct loader *l, const cJSON *key)
{
    int64_t i;

    if (json_is_string(key)) {
        if (memchr(key->valuestring, 0, (size_t)key->valueint)) {
            fail(l, "map key contains U+0000");
            return NULL;
        }
        return key->valuestring;
    }
    if (json_is_bool(key))
        return arena_cstr(l->a, json_true(key) ? STR("true") : STR("false"));
    if (json_is_number(key) && key->valueint)
        return float_key(l->a, key->valuedouble);
    if (json_i64(key, &i))
        return arena_cstr(l->a, json_text(l->a, key));

    fail(l, json_is_object(key) || json_is_array(key) ? "invalid map key" : "unsupported map key");
    return NULL;
}

/* Infinity and NaN may be keys, but no values. */
static bool is_json_value(struct loader *l, const cJSON *node)
{
    if (!json_is_number(node) || isfinite(node->valuedouble))
        return true;
    fail(l, "numbers must be finite");
    return false;
}

/* Collections */

static size_t value_line(const struct loader *l)
{
    return l->event.start_mark.line + 1;
}

static bool at_merge(const struct loader *l)
{
    const yaml_event_t *e = &l->event;

    return e->type == YAML_SCALAR_EVENT && e->data.scalar.length == 2 &&
           memcmp(e->data.scalar.value, "<<", 2) == 0 &&
           (e->data.scalar.plain_implicit ||
            str_eqc(event_text(e->data.scalar.tag), "tag:yaml.org,2002:merge"));
}

/* Moves all members of from into object, in order. They count as if they came by an alias: merges
 * inside merges move the same members again and again. */
static int merge_one(struct loader *l, struct json_keys *keys, cJSON *object, const cJSON *from,
                     size_t line)
{
    for (cJSON *child = from->child, *after; child; child = after) {
        after = child->next;
        if (++l->alias_nodes > ALIAS_NODES_MAX)
            return fail(l, "document contains excessive aliasing");
        set_member(l, keys, object, &(struct member){child->string, child, line, true});
    }
    return 0;
}

static const char merge_wants[] = "map merge requires map or sequence of maps as the value";

static int merge_all(struct loader *l, struct json_keys *keys, cJSON *object, cJSON *list,
                     size_t line)
{
    json_each(item, list)
    {
        if (!json_is_object(item))
            return fail(l, merge_wants);
    }
    for (cJSON *item = list->child ? list->child->prev : NULL; item;
         item = item == list->child ? NULL : item->prev)
        if (merge_one(l, keys, object, item, line) < 0)
            return -1;
    return 0;
}

/* The value of `<<`: a mapping, or a sequence of them of which the first wins. Its members move, so
 * what an anchor inside it names is copied before. */
static int load_merge(struct loader *l, struct json_keys *keys, cJSON *object)
{
    size_t anchored = l->anchored, line;
    bool alias;
    cJSON *from;

    if (next(l) < 0)
        return -1;
    alias = l->event.type == YAML_ALIAS_EVENT;
    line = value_line(l);
    from = load_node(l);
    if (!from)
        return -1;
    if (anchored != l->anchored) {
        if (!measure(l, from))
            return fail(l, "document contains excessive aliasing");
        from = json_copy(l->a, from);
    }
    if (json_is_array(from) && !alias)
        return merge_all(l, keys, object, from, line);
    if (!json_is_object(from))
        return fail(l, merge_wants);
    return merge_one(l, keys, object, from, line);
}

static int load_member(struct loader *l, struct json_keys *keys, cJSON *object)
{
    struct member m = {0};
    cJSON *key;

    if (at_merge(l))
        return load_merge(l, keys, object);
    key = load_node(l);
    m.name = key ? key_text(l, key) : NULL;
    if (!m.name || next(l) < 0)
        return -1;
    m.quoted = json_is_string(key);
    m.line = value_line(l);
    m.value = load_node(l);
    if (!m.value || !is_json_value(l, m.value))
        return -1;
    set_member(l, keys, object, &m);
    return 0;
}

static int load_members(struct loader *l, cJSON *object)
{
    struct json_keys keys = {0};
    int result;

    for (;;) {
        result = next(l);
        if (result < 0 || l->event.type == YAML_MAPPING_END_EVENT)
            break;
        result = load_member(l, &keys, object);
        if (result < 0)
            break;
    }
    json_keys_fini(&keys);
    return result;
}

static int load_items(struct loader *l, cJSON *array)
{
    for (;;) {
        cJSON *item;

        if (next(l) < 0)
            return -1;
        if (l->event.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        item = load_node(l);
        if (!item || !is_json_value(l, item))
            return -1;
        json_link(array, item);
    }
}

static cJSON *load_collection(struct loader *l)
{
    bool mapping = l->event.type == YAML_MAPPING_START_EVENT;
    cJSON *node = mapping ? json_new_object(l->a) : json_new_array(l->a);
    struct frame frame = {.up = l->frame, .node = node};
    int result;

    if (!count_nodes(l, 1))
        return NULL;
    if (l->depth == DEPTH_MAX) {
        fail(l, "exceeded max depth");
        return NULL;
    }
    anchor(l, mapping ? l->event.data.mapping_start.anchor : l->event.data.sequence_start.anchor,
           node);
    l->depth++;
    l->frame = &frame;
    result = mapping ? load_members(l, node) : load_items(l, node);
    l->frame = frame.up;
    l->depth--;
    return result < 0 ? NULL : node;
}

/* The node that the current event begins, which is the last event of it when this returns. */
static cJSON *load_node(struct loader *l)
{
    switch (l->event.type) {
    case YAML_SCALAR_EVENT:
        return load_scalar(l);
    case YAML_ALIAS_EVENT:
        return load_alias(l);
    default:
        return load_collection(l);
    }
}

/* STREAM-START [DOCUMENT-START node DOCUMENT-END] STREAM-END */
static cJSON *load_document(struct loader *l)
{
    cJSON *node;

    if (skip(l, 2) < 0)
        return NULL;
    if (l->event.type == YAML_STREAM_END_EVENT)
        return json_new_null(l->a);
    if (next(l) < 0)
        return NULL;
    node = load_node(l);
    if (!node || !is_json_value(l, node) || skip(l, 2) < 0)
        return NULL;
    if (l->event.type != YAML_STREAM_END_EVENT) {
        fail(l, "more than one document");
        return NULL;
    }
    return node;
}

struct str yaml_cut(struct str *rest)
{
    struct str document = {rest->p, 0};

    while (rest->p) {
        struct str line = str_cut(rest, '\n');

        if (str_has_prefix(line, STR("---")))
            break;
        document.n = (size_t)(line.p + line.n - document.p);
    }
    return document;
}

int yaml_parse(struct arena *a, struct str text, json_duplicate_cb duplicate, void *ctx,
               cJSON **ret, struct err *err)
{
    struct loader l = {.a = a, .err = err, .duplicate = duplicate, .ctx = ctx};
    cJSON *node;

    l.anchors.type = cJSON_Object;
    if (!yaml_parser_initialize(&l.parser))
        return err_set(err, &ERR_INTERNAL, "yaml: cannot start the parser");
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
    node = load_document(&l);
    yaml_event_delete(&l.event);
    yaml_parser_delete(&l.parser);
    json_keys_fini(&l.anchor_keys);
    if (!node)
        return -1;
    if (arena_over(a))
        return err_set(err, &ERR_BAD_REQUEST, "yaml: document needs too much memory");
    *ret = node;
    return 0;
}
