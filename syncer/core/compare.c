/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual object beside the host object made of it: what was changed, added and dropped; and what
 * was sent beside the host's answer: what is absent there. Why: the
 * translation says what it does by doing it, so nothing here repeats it; the reasons are those of
 * tbl/fields.h, items of lists are paired by the keys of the built-in types. Must never translate,
 * nor take longer for a hostile object than STEPS_MAX allows. */

#include "core/compare.h"

#include <string.h>

#include <sublet/api_version.h>
#include <sublet/schema.h>

enum { STEPS_MAX = 200000, WARNINGS_MAX = 16, DEPTH_MAX = 64 };

struct compare {
    struct arena *arena;
    const struct schema *schema;
    compare_cb each;
    void *ctx;
    size_t steps;
    bool kept; /* what was sent beside the answer: only what is absent there */
};

/* Of a kind whose fields have no rows in tbl/fields.h. */
#define NO_ROWS ""

/* A place in both objects, and what the tables say of it. */
struct place {
    const char *section; /* NULL: below a field without rows */
    uint32_t node;       /* 0: of no known type */
    struct str path;     /* "" at the root */
    unsigned depth;      /* with NO_ROWS: nothing else bounds it */
};

static const struct translate_field PLAIN = {"", "", TREAT_PASS, false, ""};

static bool may_step(struct compare *c)
{
    return c->steps < STEPS_MAX && ++c->steps;
}

static bool is_empty(const cJSON *value)
{
    return !value || json_is_null(value) || (!json_is_scalar(value) && !json_count(value));
}

static void report(struct compare *c, struct str path, const struct translate_field *row,
                   const cJSON *from, const cJSON *to)
{
    struct compare_change change = {.path = path, .from = from, .to = to, .row = row};

    change.op = is_empty(from) ? COMPARE_ADDED : is_empty(to) ? COMPARE_DROPPED : COMPARE_CHANGED;
    change.reason = row && row->treatment != TREAT_INSIDE ? str_c(row->text)
                    : row                                 ? STR("")
                          : STR("a field that this version does not know");
    c->each(c->ctx, &change);
}

static void compare_objects(struct compare *c, const struct place *at, const cJSON *v,
                            const cJSON *h);

/* --- lists --- */

struct lists {
    struct place at;     /* of the items */
    const char *keys;    /* "a\0b\0\0"; NULL: paired by their order */
    cJSON *lost, *added; /* items that only one side has */
    const cJSON *cursor; /* of the host's items: those before it are paired or added */
};

/* A key that is itself rewritten pairs nothing. */
static const char *keys_of(struct compare *c, const char *section, uint32_t list)
{
    const struct schema_node *n = schema_node(c->schema, list);
    const char *keys = n->list_type == LIST_MAP && n->keys ? schema_text(c->schema, n->keys) : NULL;
    const struct translate_field *row = keys ? translate_field(section, str_c(keys)) : NULL;

    return row && row->treatment == TREAT_PASS ? keys : NULL;
}

/* defaulted: a key that a lacks may have any value in b. */
static bool same_keys(const char *keys, bool defaulted, const cJSON *a, const cJSON *b)
{
    for (; *keys; keys += strlen(keys) + 1) {
        const cJSON *x = json_get(a, keys), *y = json_get(b, keys);

        if (!x && (!y || defaulted))
            continue;
        if (!x || !y || !json_equal(x, y))
            return false;
    }
    return true;
}

/* The host keeps the tenant's order, so the next one is nearly always the cursor's. */
static const cJSON *partner(struct compare *c, const struct lists *l, const cJSON *item)
{
    for (const cJSON *one = l->cursor; one && may_step(c); one = one->next) {
        if (!l->keys || same_keys(l->keys, c->kept, item, one))
            return one;
    }
    return NULL;
}

static struct str item_path(struct compare *c, const struct lists *l, const cJSON *item, size_t i)
{
    struct str key = l->keys ? json_str(json_get(item, l->keys)) : STR("");

    if (key.n)
        return arena_printf(c->arena, "%.*s[%.*s]", STR_F(l->at.path), STR_F(key));
    return arena_printf(c->arena, "%.*s[%zu]", STR_F(l->at.path), i);
}

static void add_until(struct compare *c, struct lists *l, const cJSON *end)
{
    for (; l->cursor && l->cursor != end; l->cursor = l->cursor->next)
        json_append(l->added, json_copy(c->arena, l->cursor));
}

static void compare_items(struct compare *c, struct lists *l, const cJSON *v)
{
    size_t i = 0;

    json_each(item, v)
    {
        const cJSON *other = partner(c, l, item);
        struct place at = l->at;

        at.path = item_path(c, l, item, i++);
        if (!other) {
            json_append(l->lost, json_copy(c->arena, item));
            continue;
        }
        add_until(c, l, other);
        l->cursor = other->next;
        compare_objects(c, &at, item, other);
    }
    add_until(c, l, NULL);
}

static void compare_lists(struct compare *c, const struct place *at, const cJSON *v, const cJSON *h)
{
    const struct schema_node *n = schema_node(c->schema, at->node);
    struct lists l = {.at = {at->section, n->elem, at->path, at->depth},
                      .keys = keys_of(c, at->section, at->node),
                      .lost = json_new_array(c->arena),
                      .added = json_new_array(c->arena),
                      .cursor = json_first(h)};
    const struct translate_field *row = l.keys ? translate_field(at->section, str_c(l.keys)) : NULL;

    row = row ? row : &PLAIN;
    compare_items(c, &l, v);
    if (json_count(l.lost))
        report(c, at->path, row, l.lost, NULL);
    if (json_count(l.added))
        report(c, at->path, row, NULL, l.added);
}

/* --- objects --- */

static struct str member_path(struct compare *c, const struct place *in, struct str key)
{
    if (!in->path.n)
        return key;
    return arena_printf(c->arena, "%.*s.%.*s", STR_F(in->path), STR_F(key));
}

static bool has_objects(const cJSON *list)
{
    return json_is_array(list) && json_is_object(json_first(list));
}

/* By its shape alone. */
static void compare_plain(struct compare *c, const struct place *in, struct str key, const cJSON *v,
                          const cJSON *h)
{
    struct place at = {NO_ROWS, schema_child(c->schema, in->node, key), member_path(c, in, key),
                       in->depth + 1};

    if (at.depth == DEPTH_MAX)
        c->steps = STEPS_MAX;
    else if (json_is_object(v) && json_is_object(h))
        compare_objects(c, &at, v, h);
    else if (has_objects(v) && has_objects(h))
        compare_lists(c, &at, v, h);
    else if (!(v && h && json_equal(v, h)) && !(is_empty(v) && is_empty(h)))
        report(c, at.path, &PLAIN, v, h);
}

static void compare_member(struct compare *c, const struct place *in, struct str key,
                           const cJSON *v, const cJSON *h)
{
    const struct translate_field *row = translate_field(in->section, key);
    struct place at = {.path = member_path(c, in, key)};

    if (in->section && !*in->section) {
        compare_plain(c, in, key, v, h);
    } else if (row && row->treatment == TREAT_INSIDE) {
        at.section = row->text;
        at.node = schema_child(c->schema, in->node, key);
        if (schema_node(c->schema, at.node)->kind == SCHEMA_LIST)
            compare_lists(c, &at, v, h);
        else
            compare_objects(c, &at, v, h);
    } else if (!(v && h && json_equal(v, h)) && !(is_empty(v) && is_empty(h))) {
        if (!row || row->text[0] || h)
            report(c, at.path, row, v, h);
    }
}

static bool is_of_root(const struct place *at, struct str key)
{
    bool plain = at->section && !*at->section; /* then its metadata has been compared */

    return !at->path.n && (str_eqc(key, "apiVersion") || str_eqc(key, "kind") ||
                           str_eqc(key, "status") || (plain && str_eqc(key, "metadata")));
}

static void compare_objects(struct compare *c, const struct place *at, const cJSON *v,
                            const cJSON *h)
{
    json_each(member, json_is_object(v) ? v : NULL)
    {
        if (may_step(c) && !is_of_root(at, json_key(member)))
            compare_member(c, at, json_key(member), member, json_get(h, member->string));
    }
    json_each(member, json_is_object(h) ? h : NULL)
    {
        if (may_step(c) && !is_of_root(at, json_key(member)) && !json_get(v, member->string))
            compare_member(c, at, json_key(member), NULL, member);
    }
}

/* --- what was sent beside the answer --- */

/* Go prints no zero value of such a field, sent or not. */
static bool is_unprinted(struct compare *c, const struct place *in, const cJSON *value)
{
    const struct schema_field *f = schema_field(c->schema, in->node, json_key(value));
    bool zero = json_is_string(value)   ? !json_str(value).n
                : json_is_number(value) ? value->valuedouble == 0
                                        : json_is_bool(value) && !json_true(value);

    return is_empty(value) ||
           (zero && f && (f->flags & FIELD_OMITEMPTY) && !(f->flags & FIELD_POINTER));
}

static void kept_value(struct compare *c, const struct place *at, const cJSON *sent,
                       const cJSON *got, unsigned depth);

static const cJSON *find_key(struct compare *c, const cJSON *from, const cJSON *end,
                             const cJSON *member)
{
    for (const cJSON *one = from; one && one != end && may_step(c); one = one->next) {
        if (!strcmp(one->string, member->string))
            return one;
    }
    return NULL;
}

/* A map of a tenant's size has the same order on both sides: the next is nearly always after. */
static const cJSON *find_member(struct compare *c, const cJSON *got, const cJSON **after,
                                const cJSON *member)
{
    const cJSON *ret = find_key(c, *after, NULL, member);

    ret = ret ? ret : find_key(c, json_first(got), *after, member);
    if (ret)
        *after = ret->next;
    return ret;
}

static const cJSON *find_item(struct compare *c, struct lists *l, const cJSON *got,
                              const cJSON *item)
{
    const cJSON *ret = partner(c, l, item);

    if (!ret && l->cursor != json_first(got)) {
        l->cursor = json_first(got);
        ret = partner(c, l, item);
    }
    if (ret)
        l->cursor = ret->next;
    return ret;
}

/* Of a list without keys, whose length the host changed, nothing can be said. */
static void kept_items(struct compare *c, const struct place *in, const cJSON *sent,
                       const cJSON *got, unsigned depth)
{
    const struct schema_node *n = schema_node(c->schema, in->node);
    struct lists l = {.at = {in->section, n->elem, in->path}, .cursor = json_first(got)};
    const char *shown = in->section ? keys_of(c, in->section, in->node) : NULL;
    size_t i = 0;

    if (n->list_type == LIST_MAP && n->keys)
        l.keys = schema_text(c->schema, n->keys);
    if (!l.keys && json_count(sent) != json_count(got))
        return;
    json_each(item, sent)
    {
        const cJSON *other = find_item(c, &l, got, item);
        struct lists named = {.at = l.at, .keys = shown};
        struct place at = l.at;

        if (c->steps == STEPS_MAX)
            return;
        at.path = item_path(c, &named, item, i++);
        if (other)
            kept_value(c, &at, item, other, depth);
        else
            report(c, at.path, NULL, item, NULL);
    }
}

static void kept_members(struct compare *c, const struct place *in, const cJSON *sent,
                         const cJSON *got, unsigned depth)
{
    const cJSON *after = json_first(got);

    json_each(member, sent)
    {
        struct str key = json_key(member);
        const struct translate_field *row = in->section ? translate_field(in->section, key) : NULL;
        struct place at = {.path = key};
        const cJSON *other;

        if (is_unprinted(c, in, member) || str_has_prefix(key, STR("$")) || is_of_root(in, key) ||
            (!in->path.n && str_eqc(key, "metadata")))
            continue;
        other = find_member(c, got, &after, member);
        if (c->steps == STEPS_MAX)
            return;
        if (json_is_scalar(member) && other)
            continue;
        at.path = member_path(c, in, key);
        at.node = schema_child(c->schema, in->node, key);
        at.section = row && row->treatment == TREAT_INSIDE ? row->text : NULL;
        if (is_empty(other))
            report(c, at.path, row, member, NULL);
        else
            kept_value(c, &at, member, other, depth);
    }
}

static void kept_value(struct compare *c, const struct place *at, const cJSON *sent,
                       const cJSON *got, unsigned depth)
{
    if (depth == DEPTH_MAX)
        c->steps = STEPS_MAX;
    else if (json_is_object(sent) && json_is_object(got))
        kept_members(c, at, sent, got, depth + 1);
    else if (json_is_array(sent) && json_is_array(got))
        kept_items(c, at, sent, got, depth + 1);
}

bool sync_compare_kept(struct arena *a, const cJSON *sent, const cJSON *answer, compare_cb each,
                       void *ctx)
{
    struct compare c = {a, &SCHEMA_BUILTIN, each, ctx, 0, true};
    const cJSON *typed = json_get(answer, "kind") ? answer : sent; /* an item of a list has none */
    struct str kind = json_str(json_get(typed, "kind"));
    struct api_version v = api_version_read(json_str(json_get(typed, "apiVersion")));
    struct place root = {arena_cstr(a, kind), schema_builtin_root(v.group, v.version, kind),
                         STR("")};

    if (json_is_object(sent) && json_is_object(answer))
        kept_members(&c, &root, sent, answer, 0);
    return c.steps < STEPS_MAX;
}

/* --- a virtual object beside its host object --- */

static bool has_rows(const char *kind)
{
    for (size_t i = 0; i < TRANSLATE_N_FIELDS; i++)
        if (!strcmp(TRANSLATE_FIELDS[i].section, kind))
            return true;
    return false;
}

bool sync_compare(struct arena *a, struct str kind, const cJSON *virtual_, const cJSON *host,
                  compare_cb each, void *ctx)
{
    struct compare c = {a, &SCHEMA_BUILTIN, each, ctx, 0, false};
    struct api_version v = api_version_read(json_str(json_get(host, "apiVersion")));
    const char *section = arena_cstr(a, kind);
    struct place root = {section, schema_builtin_root(STR(""), STR("v1"), kind), STR("")};
    struct place metadata = {"ObjectMeta", 0, STR("metadata")};

    if (v.group.n || !has_rows(section)) {
        root.section = NO_ROWS;
        root.node = schema_builtin_root(v.group, v.version, kind);
        compare_objects(&c, &metadata, json_get(virtual_, "metadata"), json_get(host, "metadata"));
    }
    compare_objects(&c, &root, virtual_, host);
    return c.steps < STEPS_MAX;
}

const char *sync_compare_word(enum compare_op op)
{
    static const char *const words[] = {
        [COMPARE_CHANGED] = "changed", [COMPARE_ADDED] = "added", [COMPARE_DROPPED] = "dropped"};

    return words[op];
}

/* --- for the author --- */

struct warnings {
    struct arena *arena;
    void (*warn)(void *ctx, struct str text);
    void *ctx;
    size_t n;
};

/* What is refused is not there; its default is. */
static bool is_said(const struct compare_change *change)
{
    if (!change->row)
        return change->op == COMPARE_DROPPED;
    return change->row->said &&
           (change->row->treatment != TREAT_REFUSE || change->op != COMPARE_DROPPED);
}

static void on_change(void *ctx, const struct compare_change *change)
{
    static const char *const words[] = {[COMPARE_CHANGED] = "differs on the host cluster",
                                        [COMPARE_ADDED] = "is set on the host cluster",
                                        [COMPARE_DROPPED] = "is not sent to the host cluster"};
    struct warnings *w = ctx;

    if (!is_said(change) || w->n++ >= WARNINGS_MAX)
        return;
    w->warn(w->ctx, arena_printf(w->arena, "%.*s: %s: %.*s", STR_F(str_clip(change->path, 128)),
                                 words[change->op], STR_F(change->reason)));
}

void sync_compare_warn(struct arena *a, struct str kind, const cJSON *virtual_, const cJSON *host,
                       void (*warn)(void *warn_ctx, struct str text), void *warn_ctx)
{
    struct warnings w = {a, warn, warn_ctx, 0};
    bool whole = sync_compare(a, kind, virtual_, host, on_change, &w);

    if (w.n > WARNINGS_MAX)
        warn(warn_ctx,
             arena_printf(a, "%zu more fields differ on the host cluster", w.n - WARNINGS_MAX));
    if (!whole)
        warn(warn_ctx, STR("the object is too large to compare it with its host object"));
}
