/* SPDX-License-Identifier: Apache-2.0 */
/* Translation by rows. Why: a further kind is a table, and its review is the reading of that table.
 * The walk follows the object and all rows at once; a row ends where its path ends. Must never copy
 * a value that no row names, except of a kind that goes down whole. */

#include "host_keys.h"
#include "kind_impl.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include <sublet/encode.h>

enum { MOST_ROWS = 128 };

/* A row, and what of its path is still below the present value. */
struct cursor {
    const struct kind_rule *rule;
    const char *rest; /* "", ".name...", "[*]..." */
};

struct frame {
    const struct frame *outer;
    const char *key; /* NULL: an item */
    size_t index;
    const cJSON *parent;
};

struct walk {
    struct arena *arena;
    const struct translate_tenant *tenant;
    const struct kind_rules *rules;
    const cJSON *object;
    struct str ns, name;
    struct err *err, *left_out;
    translate_ref_cb ref; /* NULL: not wanted */
    void *ref_ctx;
};

/* ---- paths ---- */

static struct str path_of(struct arena *a, const struct frame *f)
{
    struct str outer = f->outer ? path_of(a, f->outer) : STR("");

    if (!f->key)
        return arena_printf(a, "%.*s[%zu]", STR_F(outer), f->index);
    return arena_printf(a, "%.*s%s%s", STR_F(outer), outer.n ? "." : "", f->key);
}

/* What follows in a path after a member of this name; NULL: it leads elsewhere. */
static const char *below_member(const char *rest, const char *key)
{
    size_t n;

    if (*rest != '.')
        return NULL;
    rest++;
    n = strcspn(rest, ".[");
    if (n == 1 && *rest == '*')
        return rest + 1;
    return strlen(key) == n && !strncmp(rest, key, n) ? rest + n : NULL;
}

static const char *below_item(const char *rest)
{
    return strncmp(rest, "[*]", 3) ? NULL : rest + 3;
}

static size_t descend(const struct cursor *from, size_t n, const char *key, struct cursor *to)
{
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        const char *rest = key ? below_member(from[i].rest, key) : below_item(from[i].rest);

        if (rest)
            to[m++] = (struct cursor){from[i].rule, rest};
    }
    return m;
}

/* ---- actions ---- */

int translate_kind_refuse(const struct kind_call *c, const char *format, ...)
{
    struct str why;
    va_list args;

    va_start(args, format);
    why = arena_vprintf(c->arena, format, args);
    va_end(args);
    return err_set(c->err, &ERR_FORBIDDEN, "%s: %.*s", c->path, STR_F(why));
}

bool translate_kind_leaves_out(const struct kind_call *c)
{
    if (!c->left_out)
        return false;
    if (!c->left_out->kind)
        err_set(c->left_out, c->err->kind, "%.*s", STR_F(c->err->message));
    err_clear(c->err);
    return true;
}

static struct kind_call call_of(struct walk *w, const struct frame *f, const struct kind_rule *row)
{
    return (struct kind_call){.arena = w->arena,
                              .tenant = w->tenant,
                              .object = w->object,
                              .ns = w->ns,
                              .name = w->name,
                              .path = path_of(w->arena, f).p,
                              .err = w->err,
                              .left_out = w->left_out,
                              .parent = f->parent,
                              .host = w->rules->host,
                              .what = row->what,
                              .ref = w->ref,
                              .ref_ctx = w->ref_ctx};
}

cJSON *translate_kind_reference(const struct kind_call *c, const char *kind, struct str ns,
                                struct str name)
{
    static const struct {
        const char *kind;
        enum translate_ref_kind ref;
    } copied[] = {{"Secret", REF_SECRET}, {"ConfigMap", REF_CONFIG_MAP}};
    char host_name[64];

    if (!name.n)
        return NULL;
    for (size_t i = 0; c->ref && str_find(name, '/') == name.n && i < COUNT(copied); i++)
        if (!strcmp(kind, copied[i].kind))
            c->ref(c->ref_ctx, copied[i].ref,
                   str_eq(ns, c->ns) ? name
                                     : arena_printf(c->arena, "%.*s/%.*s", STR_F(ns), STR_F(name)),
                   true);
    translate_name(c->tenant, ns, name, host_name);
    return json_new_string(c->arena, str_c(host_name));
}

/* A LabelSelector must not pass for a map of labels: what narrows the map would be unknown fields
 * there, and the host would drop them. */
static int labels_down(struct walk *w, const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    if (json_get(value, "matchLabels") || json_get(value, "matchExpressions"))
        return translate_kind_refuse(c, "is a LabelSelector; its patch has to be `selector: {}`");
    *ret = json_is_object(value) ? translate_match_labels(w->arena, w->tenant, w->ns, value) : NULL;
    return 0;
}

static int act(struct walk *w, const struct frame *f, const struct kind_rule *rule,
               const cJSON *value, cJSON **ret)
{
    struct kind_call c = {0};

    if (rule->action != KIND_KEEP)
        c = call_of(w, f, rule);
    switch (rule->action) {
    case KIND_KEEP:
        *ret = json_copy(w->arena, value);
        return 0;
    case KIND_REFERENCE:
        *ret = translate_kind_reference(&c, rule->what, w->ns, json_str(value));
        return 0;
    case KIND_SELECTOR:
        *ret = translate_label_selector(w->arena, w->tenant, w->ns, value);
        return *ret ? 0 : translate_kind_refuse(&c, "is no LabelSelector");
    case KIND_LABELS:
        return labels_down(w, &c, value, ret);
    case KIND_VALUE:
        *ret = json_copy(w->arena, rule->value);
        return 0;
    case KIND_REFUSE:
        return translate_kind_refuse(&c, "%s", rule->what);
    case KIND_CALL:
        return rule->call(&c, value, ret);
    case KIND_DROP:
    case KIND_CHECK:
        break;
    }
    return 0;
}

/* ---- the walk ---- */

static int copy(struct walk *w, const struct frame *f, const cJSON *value, const struct cursor *at,
                size_t n, cJSON **ret);

/* Looks at the value as a whole; *ret_end: the row that decides it, if one ends here. */
static int check_here(struct walk *w, const struct frame *f, const cJSON *value,
                      const struct cursor *at, size_t n, const struct kind_rule **ret_end)
{
    for (size_t i = 0; i < n; i++) {
        struct kind_call c;

        if (*at[i].rest)
            continue;
        if (at[i].rule->action != KIND_CHECK) {
            *ret_end = *ret_end ? *ret_end : at[i].rule;
            continue;
        }
        c = call_of(w, f, at[i].rule);
        if (at[i].rule->call(&c, value, NULL))
            return -1;
    }
    return 0;
}

static int copy_children(struct walk *w, const struct frame *f, const cJSON *value,
                         const struct cursor *at, size_t n, cJSON *to)
{
    struct cursor below[MOST_ROWS];
    size_t i = 0;

    json_each(item, value)
    {
        struct frame inner = {f, json_is_object(value) ? item->string : NULL, i++, value};
        size_t m = descend(at, n, inner.key, below);
        cJSON *made = NULL;

        if (json_is_null(item) && json_is_object(value))
            continue;
        if (copy(w, &inner, item, below, m, &made))
            return -1;
        if (made && inner.key)
            object_add(w->arena, to, json_key(item), made);
        else if (made)
            json_append(to, made);
    }
    return 0;
}

static int copy(struct walk *w, const struct frame *f, const cJSON *value, const struct cursor *at,
                size_t n, cJSON **ret)
{
    const struct kind_rule *end = NULL;

    if (!n) {
        *ret = w->rules->whole ? json_copy(w->arena, value) : NULL;
        return 0;
    }
    if (check_here(w, f, value, at, n, &end))
        return -1;
    if (end)
        return act(w, f, end, value, ret);
    if (json_is_object(value))
        *ret = json_new_object(w->arena);
    else if (json_is_array(value))
        *ret = json_new_array(w->arena);
    else
        *ret = w->rules->whole ? json_copy(w->arena, value) : NULL;
    return json_count(value) ? copy_children(w, f, value, at, n, *ret) : 0;
}

/* Is the member one that has rules of its own? */
static bool is_apart(const char *key)
{
    static const char *const apart[] = {"apiVersion", "kind", "metadata", "status"};
    bool found = false;

    for (size_t i = 0; i < COUNT(apart); i++)
        found |= !strcmp(key, apart[i]);
    return found;
}

static int walk(struct walk *w, const struct kind_rule *rows, bool status, const cJSON *from,
                cJSON *to)
{
    struct cursor at[MOST_ROWS], below[MOST_ROWS];
    size_t n = 0;

    for (; rows->path; rows++) {
        assert(n < MOST_ROWS); /* a row that is left out would let a value pass */
        at[n++] = (struct cursor){rows, rows->path};
    }
    json_each(member, from)
    {
        struct frame f = {NULL, member->string, 0, from};
        cJSON *made = NULL;
        size_t m = 0;

        if (json_is_null(member) ||
            (status ? strcmp(member->string, "status") != 0 : is_apart(member->string)))
            continue;
        for (size_t i = 0; i < n; i++) {
            size_t key = strcspn(at[i].rest, ".[");

            if (strlen(member->string) == key && !strncmp(at[i].rest, member->string, key))
                below[m++] = (struct cursor){at[i].rule, at[i].rest + key};
        }
        if (copy(w, &f, member, below, m, &made))
            return -1;
        if (made)
            object_add(w->arena, to, json_key(member), made);
    }
    return 0;
}

int translate_kind_part(const struct kind_call *c, const struct kind_rule *rows, const cJSON *value,
                        cJSON **ret)
{
    static const struct kind_rules none = {0};
    struct cursor at[MOST_ROWS];
    struct walk w = {.arena = c->arena,
                     .tenant = c->tenant,
                     .rules = &none,
                     .object = c->object,
                     .ns = c->ns,
                     .name = c->name,
                     .err = c->err,
                     .left_out = c->left_out,
                     .ref = c->ref,
                     .ref_ctx = c->ref_ctx};
    struct frame f = {NULL, c->path, 0, NULL};
    size_t n = 0;

    for (; rows->path; rows++) {
        assert(n < MOST_ROWS);
        at[n++] = (struct cursor){rows, rows->path};
    }
    return copy(&w, &f, value, at, n, ret);
}

/* ---- down ---- */

const struct kind_rules *translate_kind_rules_at(struct arena *a, const struct kind_rules *rules,
                                                 const char *version)
{
    struct kind_rules *ret = ARENA_NEW(a, struct kind_rules);

    *ret = *rules;
    ret->api_version = arena_printf(a, "%s/%s", rules->group, version).p;
    return ret;
}

static struct walk walk_of(struct arena *a, const struct translate_tenant *t,
                           const struct kind_rules *rules, const cJSON *v, struct err *err)
{
    return (struct walk){.arena = a,
                         .tenant = t,
                         .rules = rules,
                         .object = translate_host_keys_without(a, t, v, false),
                         .ns = json_str_at(v, "metadata.namespace"),
                         .name = json_str_at(v, "metadata.name"),
                         .err = err};
}

static void add_digest(struct arena *a, cJSON *object)
{
    unsigned char digest[32];
    char encoded[27];

    sha256(json_text(a, object), digest);
    base32_lower(digest, sizeof(digest), encoded, sizeof(encoded) - 1);
    encoded[sizeof(encoded) - 1] = 0;
    json_set_str(a, json_ensure_path(a, object, "metadata.annotations"), ANNOTATION_DIGEST,
                 str_c(encoded));
}

static int metadata_down(struct walk *w, const struct kind_call *c, struct str host_name,
                         cJSON **ret)
{
    cJSON *v = json_new_object(w->arena),
          *metadata = json_copy(w->arena, json_get(w->object, "metadata")), *listed = NULL;

    if (metadata)
        object_add(w->arena, v, STR("metadata"), metadata);
    if (w->rules->hidden)
        json_remove(json_get(metadata, "annotations"), w->rules->hidden);
    if (w->rules->annotations &&
        w->rules->annotations(c, json_get(metadata, "annotations"), &listed))
        return -1;
    *ret = translate_metadata_with(w->arena, w->tenant, v, host_name, listed);
    if (w->rules->in_cluster) {
        json_remove(*ret, "namespace");
        json_set_str(w->arena, json_get(*ret, "labels"), LABEL_HOST_NAMESPACE,
                     w->tenant->host_namespace);
    }
    return 0;
}

static int forbidden(const struct walk *w, struct err *err)
{
    struct str why = arena_str(w->arena, str_sub(err->message, 0, REFUSAL_BYTES));

    return err_forbidden(err, str_c(w->rules->group), str_c(w->rules->plural), w->name, "%.*s",
                         STR_F(why));
}

int translate_kind_narrowed(struct arena *a, const struct translate_tenant *t,
                            const struct kind_rules *rules, const cJSON *v, cJSON **ret,
                            struct err *left_out, struct err *err)
{
    struct walk w = walk_of(a, t, rules, v, err);
    struct kind_call c = {.arena = a,
                          .tenant = t,
                          .object = w.object,
                          .ns = w.ns,
                          .name = w.name,
                          .path = "",
                          .err = err,
                          .host = rules->host,
                          .left_out = left_out};
    cJSON *object = json_new_object(a), *metadata;
    char name[64];

    *ret = NULL;
    if (rules->goes_down && !rules->goes_down(&c))
        return 0;
    add_str(a, object, "apiVersion", str_c(rules->api_version));
    add_str(a, object, "kind", rules->kind ? str_c(rules->kind) : json_str(json_get(v, "kind")));
    translate_name(t, w.ns, w.name, name);
    if (metadata_down(&w, &c, str_c(name), &metadata))
        return forbidden(&w, err);
    object_add(a, object, STR("metadata"), metadata);
    w.left_out = left_out;
    if (walk(&w, rules->down, false, v, object))
        return forbidden(&w, err);
    if (left_out && left_out->kind)
        (void)forbidden(&w, left_out);
    if (rules->needs && !json_path(object, rules->needs))
        return 0;
    if (rules->finish)
        rules->finish(&c, object);
    if (rules->patched)
        translate_host_patch(a, &t->config->to_host->patches[rules->patched - 1], object);
    add_digest(a, object);
    *ret = object;
    return 0;
}

int translate_kind(struct arena *a, const struct translate_tenant *t,
                   const struct kind_rules *rules, const cJSON *v, cJSON **ret, struct err *err)
{
    return translate_kind_narrowed(a, t, rules, v, ret, NULL, err);
}

/* All of it that names other objects. */
static int walk_all(struct walk *w)
{
    const cJSON *notes = json_path(w->object, "metadata.annotations");
    struct frame f = {NULL, "", 0, NULL};
    struct kind_call c = call_of(w, &f, &(struct kind_rule){0});
    cJSON *unused;

    if (w->rules->annotations && w->rules->annotations(&c, notes, &unused))
        return -1;
    return walk(w, w->rules->down, false, w->object, json_new_object(w->arena));
}

void translate_kind_refs(struct arena *a, const struct translate_tenant *t,
                         const struct kind_rules *rules, const cJSON *v, translate_ref_cb each,
                         void *ctx)
{
    struct err err;
    struct walk w = walk_of(a, t, rules, v, &err);

    err_init(&err, a);
    if (walk_all(&w))
        return; /* what is refused does not go down, and needs nothing there */
    w.ref = each;
    w.ref_ctx = ctx;
    if (walk_all(&w))
        err_clear(&err);
}

cJSON *translate_kind_status_rows(struct arena *a, const struct translate_tenant *t,
                                  const struct kind_rules *rules, const cJSON *host, const cJSON *v)
{
    struct err err;
    struct walk w = walk_of(a, t, rules, v, &err);
    cJSON *ret = json_new_object(a);

    err_init(&err, a);
    return walk(&w, rules->up, true, host, ret) ? NULL : json_get(ret, "status");
}

bool translate_kind_patched(struct arena *a, const struct translate_tenant *t,
                            const struct config_patches *patches, const cJSON *host, cJSON *to)
{
    struct err err;
    struct kind_rules rules = {.whole = true, .down = translate_custom_rows(a, patches)};
    struct walk w = walk_of(a, t, &rules, host, &err);

    err_init(&err, a);
    return !walk(&w, rules.down, false, host, to) && !walk(&w, rules.down, true, host, to);
}

cJSON *translate_kind_body(struct arena *a, const cJSON *object)
{
    cJSON *ret = json_new_object(a);

    json_each(member, object) if (!is_apart(member->string))
        object_add(a, ret, json_key(member), json_copy(a, member));
    return ret;
}

bool translate_kind_reads_namespaces(const struct kind_rules *rules)
{
    return rules->reads_namespaces;
}

bool translate_kind_reads_gateways(const struct kind_rules *rules)
{
    return rules->reads_gateways;
}

bool translate_kind_is_made(const struct kind_rules *rules, const cJSON *v)
{
    return rules->is_made && rules->is_made(v);
}

bool translate_kind_goes_with_pods(const struct kind_rules *rules)
{
    return rules->with_pods;
}

bool translate_kind_is_fence(const struct kind_rules *rules)
{
    return rules->is_fence;
}
