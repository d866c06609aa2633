/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a structural schema to an object: drops unknown fields, sets defaults of absent ones,
 * gives numbers their canonical form. Must never change values below
 * x-kubernetes-preserve-unknown-fields, except for the fields specified there. Source of the
 * semantics: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting}. */
#include "judge.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/schema.h>

struct pruner {
    const struct crd_version *v;
    struct arena *arena;
    struct strict_errors *strict;
};

static bool is_type_meta(const char *key)
{
    return !strcmp(key, "apiVersion") || !strcmp(key, "kind") || !strcmp(key, "metadata");
}

/* A position; only printed for an unknown field. */
struct place {
    const struct place *up;
    const char *key; /* NULL: an index */
    size_t index;
};

static void note_unknown(struct pruner *p, const struct place *at)
{
    struct buf b = BUF_INIT(16 * 1024);
    const struct place *chain[256];
    size_t n = 0;

    if (!p->strict)
        return;
    for (; at && n < 256; at = at->up)
        chain[n++] = at;
    while (n--) {
        if (!chain[n]->key) {
            buf_printf(&b, "[%zu]", chain[n]->index);
            continue;
        }
        if (b.n)
            buf_char(&b, '.');
        buf_addc(&b, chain[n]->key);
    }

    strict_add(p->strict, "unknown field", arena_str(p->arena, buf_str(&b)));
    buf_fini(&b);
}

/* Below x-kubernetes-embedded-resource metadata is ObjectMeta, whatever the schema says. */
static void prune_metadata(struct pruner *p, cJSON *metadata, const struct place *at)
{
    uint32_t any = schema_builtin_root(STR(""), STR("v1"), STR("ConfigMap"));
    uint32_t known = schema_child(&SCHEMA_BUILTIN, any, STR("metadata"));
    cJSON *next;

    for (cJSON *member = json_first(metadata); member; member = next) {
        struct place here = {.up = at, .key = member->string};

        next = member->next;
        if (schema_child(&SCHEMA_BUILTIN, known, str_c(member->string)))
            continue;
        note_unknown(p, &here);
        json_detach(metadata, member);
    }
}

/* node 0: nothing is specified, so no field is known. kept: below preserve-unknown-fields. */
static void prune(struct pruner *p, uint32_t node, cJSON *value, const struct place *at, bool kept,
                  bool is_root);

static void prune_members(struct pruner *p, uint32_t node, cJSON *object, const struct place *at,
                          bool kept, bool keeps_meta)
{
    const struct schema_node *n = schema_node(&p->v->schema, node);
    bool more = node && crd_version_rules(p->v, node)->flags & RULE_MORE;
    cJSON *next;

    for (cJSON *member = json_first(object); member; member = next) {
        const struct schema_field *f =
            node ? schema_field(&p->v->schema, node, str_c(member->string)) : NULL;
        struct place here = {.up = at, .key = member->string};

        next = member->next;
        if (keeps_meta && is_type_meta(member->string)) {
            if (at && !strcmp(member->string, "metadata") && json_is_object(member))
                prune_metadata(p, member, &here);
            continue;
        }
        if (f || more) {
            prune(p, f ? f->node : n->elem, member, &here, false, false);
        } else if (!kept) {
            note_unknown(p, &here);
            json_detach(object, member);
        }
    }
}

static void prune(struct pruner *p, uint32_t node, cJSON *value, const struct place *at, bool kept,
                  bool is_root)
{
    const struct schema_node *n = schema_node(&p->v->schema, node);
    unsigned flags = node ? crd_version_rules(p->v, node)->flags : 0;
    size_t i = 0;

    kept = kept || flags & RULE_PRESERVE;
    if (json_is_object(value)) {
        prune_members(p, node, value, at, kept, is_root || flags & RULE_EMBEDDED);
    } else if (json_is_array(value)) {
        uint32_t elem = n->kind == SCHEMA_LIST || n->kind == SCHEMA_ANY ? n->elem : 0;

        json_each(item, value)
        {
            struct place here = {.up = at, .index = i++};

            prune(p, elem, item, &here, kept, false);
        }
    }
}

void crd_prune_value(const struct crd_version *v, struct arena *a, uint32_t node, cJSON *value)
{
    struct pruner p = {.v = v, .arena = a};

    prune(&p, node, value, NULL, false, node == v->root);
}

void crd_prune(const struct crd_version *v, struct arena *a, cJSON *object,
               struct strict_errors *strict)
{
    struct pruner p = {.v = v, .arena = a, .strict = strict};
    size_t before = strict ? strict->n : 0;

    if (v->preserve_all)
        return;
    crd_version_ready(v);
    prune(&p, v->root, object, NULL, false, true);
    if (strict && strict->n > before)
        qsort(strict->text + before, strict->n - before, sizeof(*strict->text), str_order);
}

/* --- nulls and defaults --- */

/* Of a tree that prints as more bytes than an object may have. */
#define MOST_DEFAULTS ((size_t)64 << 20)

struct filler {
    const struct crd_version *v;
    struct arena *a;
    bool keeps_nulls; /* that no default replaces */
    size_t most;      /* that the arena may have; each of many items may have a large default */
};

static void fill(const struct filler *f, uint32_t node, cJSON *value);

static bool is_full(const struct filler *f)
{
    return arena_used(f->a) > f->most;
}

/* A null the schema does not allow: replaced by its default, or, in objects, removed. */
static bool is_wrong_null(const struct crd_version *v, uint32_t node, const cJSON *value)
{
    return node && json_is_null(value) && !(crd_version_rules(v, node)->flags & RULE_NULLABLE);
}

/* An object may have as many defaults as a schema has fields. */
static void add_members(const struct filler *filler, uint32_t node, cJSON *object)
{
    const struct crd_version *v = filler->v;
    const struct schema_node *n = schema_node(&v->schema, node);
    uint32_t count = n->kind == SCHEMA_OBJECT ? n->n_fields : 0;
    struct lookup given = crd_lookup(object);

    for (uint32_t i = n->first_field; i < n->first_field + count; i++) {
        const struct schema_field *f = &v->schema.fields[i];
        const char *name = schema_text(&v->schema, f->name);

        if (f->flags & FIELD_HAS_DEFAULT && !crd_look_up(&given, str_c(name)))
            json_add(object, arena_cstr(filler->a, str_c(name)),
                     json_copy(filler->a, crd_version_rules(v, f->node)->default_value));
    }
    crd_lookup_end(&given);
}

static void fill_members(const struct filler *filler, uint32_t node, cJSON *object)
{
    const struct crd_version *v = filler->v;
    cJSON *next, *with;

    add_members(filler, node, object);
    for (cJSON *member = json_first(object); member; member = next) {
        uint32_t child = schema_child(&v->schema, node, str_c(member->string));

        next = member->next;
        if (is_wrong_null(v, child, member)) {
            const cJSON *otherwise = crd_version_rules(v, child)->default_value;

            if (!otherwise) {
                if (!filler->keeps_nulls)
                    json_detach(object, member);
                continue;
            }
            with = json_copy(filler->a, otherwise);
            json_replace(object, member, with);
            member = with;
        }
        fill(filler, child, member);
    }
}

static void fill(const struct filler *f, uint32_t node, cJSON *value)
{
    const struct crd_version *v = f->v;
    uint32_t elem = schema_node(&v->schema, node)->elem;
    cJSON *next;

    if (node == 0 || is_full(f))
        return;
    if (json_is_object(value))
        fill_members(f, node, value);
    if (!json_is_array(value) || !elem)
        return;
    for (cJSON *item = json_first(value); item; item = next) {
        next = is_full(f) ? NULL : item->next;
        if (is_wrong_null(v, elem, item) && crd_version_rules(v, elem)->default_value) {
            cJSON *with = json_copy(f->a, crd_version_rules(v, elem)->default_value);

            json_replace(value, item, with);
            item = with;
        }
        fill(f, elem, item);
    }
}

/* Numbers as Go's decoder keeps them: an int64, or otherwise a double in its shortest form. Clients
 * that know a field as an integer cannot read 1.0. */
static void plain_numbers(cJSON *value)
{
    int64_t number;

    if (json_is_number(value) && value->valuestring &&
        (strpbrk(value->valuestring, ".eE") || !json_i64(value, &number)))
        value->valuestring = NULL;
    json_each(member, value) plain_numbers(member);
}

static void set_defaults(const struct filler *f, cJSON *object)
{
    plain_numbers(object);
    if (!f->v->schema_text)
        return;
    crd_version_ready(f->v);
    fill(f, f->v->root, object);
}

void crd_default(const struct crd_version *v, struct arena *a, cJSON *object)
{
    set_defaults(&(struct filler){.v = v, .a = a, .most = arena_used(a) + MOST_DEFAULTS}, object);
}

bool crd_default_written(const struct crd_version *v, struct arena *a, cJSON *object, bool applied)
{
    const struct filler f = {
        .v = v, .a = a, .keeps_nulls = applied, .most = arena_used(a) + MOST_DEFAULTS};

    set_defaults(&f, object);
    return !is_full(&f);
}

/* Source: apiextensions-apiserver's codec, which decodes by the version an object carries and only
 * coerces what it converts (pkg/apiserver/customresource_handler.go). */
void crd_from_own(const struct crd_version *v, struct arena *a, cJSON *object)
{
    crd_prune(v, a, object, NULL);
    crd_default(v, a, object);
}

void crd_from_stored(const struct crd_version *v, struct arena *a, cJSON *object)
{
    crd_from_own(v->stored ? v->stored : v, a, object);
    if (v->stored)
        crd_prune(v, a, object, NULL);
}

void crd_to_stored(const struct crd_version *v, struct arena *a, cJSON *object)
{
    if (v->stored)
        crd_prune(v->stored, a, object, NULL);
}
