/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The apply patch: validation of a configuration, the merge (vapi/types/fields), and the update of
 * kubectl's annotation. Must never accept a configuration of another kind than the URL names.
 * Source: apimachinery
 * pkg/util/managedfields/internal/{structuredmerge,versioncheck,lastappliedupdater,
 * skipnonapplied}.go. */
#include "managed.h"

#include "../request/request.h"
#include "../../core/meta.h"

#include <stdlib.h>
#include <string.h>

#define LAST_APPLIED    "kubectl.kubernetes.io/last-applied-configuration"
#define MAX_ANNOTATIONS (256u * 1024)

/* ---- the configuration ---- */

static int check_version(const struct call *c, struct err *err)
{
    struct str group, version, kind;
    struct str got = json_str(json_get(c->body, "apiVersion"));
    struct str got_kind = json_str(json_get(c->body, "kind"));
    size_t slash = str_find(got, '/');
    struct str got_group = slash == got.n ? STR("") : str_sub(got, 0, slash);
    struct str got_version = slash == got.n ? got : str_from(got, slash + 1);

    call_body_expected(c, &group, &version, &kind);
    if (str_eq(got_group, group) && str_eq(got_version, version) && str_eq(got_kind, kind))
        return 0;
    return err_set(err, &ERR_BAD_REQUEST, "invalid object type: %.*s/%.*s, Kind=%.*s",
                   STR_F(got_group), STR_F(got_version), STR_F(got_kind));
}

/* `apps/v1, Kind=Deployment` */
static struct str kind_name(const struct call *c)
{
    struct str group, version, kind;

    call_body_expected(c, &group, &version, &kind);
    return arena_printf(c->arena, "%.*s/%.*s, Kind=%.*s", STR_F(group), STR_F(version),
                        STR_F(kind));
}

/* `default/web; apps/v1, Kind=Deployment`, as upstream's messages name a configuration. */
static struct str config_name(const struct call *c)
{
    return arena_printf(c->arena, "%.*s/%.*s; %.*s",
                        STR_F(json_str_at(c->body, "metadata.namespace")),
                        STR_F(json_str_at(c->body, "metadata.name")), STR_F(kind_name(c)));
}

static int check_config(const struct managed *m, struct err *err)
{
    struct call *c = m->call;
    struct field_type type;
    struct str why;

    if (check_version(c, err))
        return -1;
    if (json_is_array(json_path(c->body, "metadata.managedFields")))
        return err_set(err, &ERR_BAD_REQUEST, "metadata.managedFields must be nil");
    if (!m->versions.type_of(m->versions.ctx, m->write.version, &type) ||
        typed_validate(c->arena, type, c->body, err) == 0)
        return 0;
    why = arena_str(c->arena, err->message);
    return err_set(err, &ERR_UNKNOWN, "failed to create typed patch object (%.*s): %.*s",
                   STR_F(config_name(c)), STR_F(why));
}

/* ---- kubectl's annotation ---- */

static int by_key(const void *left, const void *right)
{
    return strcmp((*(cJSON *const *)left)->string, (*(cJSON *const *)right)->string);
}

static void print_sorted(struct arena *a, struct buf *b, const cJSON *node)
{
    size_t n = json_count(node), i = 0;
    const cJSON **sorted;

    if (!json_is_object(node) && !json_is_array(node)) {
        if (json_is_string(node))
            buf_json_string(b, json_str(node));
        else
            json_print(b, node);
        return;
    }
    sorted = arena_alloc(a, (n + 1) * sizeof(*sorted));
    json_each(child, node) sorted[i++] = child;
    if (json_is_object(node))
        qsort(sorted, n, sizeof(*sorted), by_key);
    buf_char(b, json_is_object(node) ? '{' : '[');
    for (i = 0; i < n; i++) {
        buf_addc(b, i ? "," : "");
        if (json_is_object(node)) {
            buf_json_string(b, str_c(sorted[i]->string));
            buf_char(b, ':');
        }
        print_sorted(a, b, sorted[i]);
    }
    buf_char(b, json_is_object(node) ? '}' : ']');
}

static size_t annotations_size(const cJSON *annotations)
{
    size_t n = 0;

    json_each(item, annotations) n += strlen(item->string) + json_str(item).n;
    return n;
}

/* Client-side apply may follow: the annotation holds the last applied configuration. It is dropped
 * when it gets too long. */
static void update_annotation(const struct managed *m, cJSON *object)
{
    struct call *c = m->call;
    cJSON *annotations = json_path(object, "metadata.annotations");
    cJSON *config;
    struct buf b = BUF_INIT(2 * API_MAX_BODY);

    if (!str_eqc(m->write.manager, "kubectl") || !json_str(json_get(annotations, LAST_APPLIED)).n)
        return;
    config = json_copy(c->arena, c->body);
    json_remove(json_path(config, "metadata.annotations"), LAST_APPLIED);
    print_sorted(c->arena, &b, config);
    buf_char(&b, '\n');
    json_set_str(c->arena, annotations, LAST_APPLIED, buf_str(&b));
    buf_fini(&b);
    if (annotations_size(annotations) > MAX_ANNOTATIONS)
        json_remove(annotations, LAST_APPLIED);
}

/* ---- the apply ---- */

/* Fields of an untracked object need an owner. */
static int own_what_is_there(const struct managed *m, const cJSON *live, struct managers *managers,
                             struct err *err)
{
    struct field_write w = m->write;
    const cJSON *empty = managed_empty(m);

    w.manager = STR("before-first-apply");
    return managers->n ? 0 : managers_update(&w, managers, empty, live, err);
}

static int read_entries(const struct managed *m, const cJSON *live, struct managers *ret,
                        struct err *err)
{
    struct str why;

    if (managers_read(m->call->arena, json_path(live, "metadata.managedFields"), ret, &why) == 0)
        return 0;
    return err_set(err, &ERR_UNKNOWN, "failed to decode managed fields: %.*s", STR_F(why));
}

static int merge(struct managed *m, cJSON *live, cJSON **ret, struct err *err)
{
    struct call *c = m->call;
    struct arena *a = c->arena;
    struct managers managers;
    cJSON *made, *entries;

    if (check_config(m, err) || read_entries(m, live, &managers, err))
        return -1;
    json_remove(json_get(live, "metadata"), "managedFields");
    if (own_what_is_there(m, live, &managers, err) ||
        managers_apply(&m->write, &managers, live, c->body, c->options.force, &made, err)) {
        /* Lists of the live object have duplicate keys. */
        if (err->kind == &ERR_BAD_REQUEST)
            err->kind = &ERR_UNKNOWN;
        return -1;
    }
    *ret = made ? made : live;
    update_annotation(m, *ret);
    entries = managers_write(a, &managers);
    if (entries)
        json_set(a, vapi_meta_of(a, *ret), "managedFields", entries);
    return 0;
}

/* The merged tree contains the client's input: it is normalised like everything that is stored. For
 * a custom resource that is its metadata; the schema refuses nulls. Messages name only the fields
 * when there is no kind. */
static int normalise(struct call *c, cJSON *made, struct err *err)
{
    struct strict_errors strict = c->strict;
    cJSON *part = c->resource->crd ? json_new_object(c->arena) : made;
    struct str kind = json_str(json_get(made, "kind")), why;
    cJSON *metadata = json_get(made, "metadata");
    int failed;

    c->strict = (struct strict_errors){.arena = c->arena};
    if (part == made)
        json_remove(made, "kind");
    else if (metadata)
        json_set(c->arena, part, "metadata", json_copy(c->arena, metadata));
    failed = body_normalise(c, part, err);
    c->strict = strict;
    if (part != made && json_get(part, "metadata"))
        json_set(c->arena, made, "metadata", json_copy(c->arena, json_get(part, "metadata")));
    json_set_str(c->arena, made, "kind", kind);
    if (!failed)
        return 0;
    why = arena_str(c->arena, err->message);
    return err_set(err, &ERR_UNKNOWN,
                   "failed to convert new object (%.*s) to proper version: unable to convert "
                   "unstructured object to %.*s: %.*s",
                   STR_F(config_name(c)), STR_F(kind_name(c)), STR_F(why));
}

/* Only duplicate keys are left: unknown fields were refused. */
static int check_strict(struct call *c, struct err *err)
{
    if (!c->strict.n || c->options.validation == VALIDATION_IGNORE)
        return 0;
    if (c->options.validation == VALIDATION_STRICT)
        return err_set(err, &ERR_BAD_REQUEST,
                       "error strict decoding YAML: error converting YAML to JSON: %.*s",
                       STR_F(strict_join(&c->strict)));
    for (size_t i = 0; i < c->strict.n; i++)
        call_warn(c, c->strict.text[i]);
    return 0;
}

int managed_apply(struct call *c, cJSON *live, cJSON **ret, struct err *err)
{
    bool creating = !live;
    struct managed m;

    managed_open(&m, c, c->resource);
    if (creating)
        live = managed_empty(&m);
    if (merge(&m, live, ret, err))
        return -1;
    if (creating && json_str_at(*ret, "metadata.uid").n) {
        const cJSON *made = *ret;
        struct str uid = json_str_at(made, "metadata.uid");

        return err_conflict(
            err, c->resource->group, c->resource->plural, c->name,
            arena_printf(c->arena,
                         "uid mismatch: the provided object specified uid %.*s, and no "
                         "existing object was found",
                         STR_F(uid))
                .p);
    }
    return normalise(c, *ret, err) || check_strict(c, err) ? -1 : 0;
}
