/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The validation of every object's metadata, with upstream's messages and order. It must never
 * change the object. Source: apimachinery pkg/api/validation/objectmeta.go,
 * pkg/apis/meta/v1/validation. */
#include "verbs.h"

#include "../../core/meta.h"

#include <sublet/kind.h>
#include <sublet/object.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ANNOTATIONS (256 * 1024)
#define IMMUTABLE       "field is immutable"
#define MAX_WARNED      16

static const struct field_path METADATA = {.name = "metadata"};

static void check_rule(struct field_errors *e, const struct field_path *p, enum name_rule rule,
                       struct str shown, struct str s)
{
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(rule, s, messages);

    for (size_t i = 0; i < n; i++)
        field_invalid_str(e, p, shown, messages[i]);
}

/* ---- names ---- */

static void check_name(struct field_errors *e, const struct field_path *p, const struct resource *r,
                       struct str shown, struct str name)
{
    const char *why;

    if (r->built_in && r->built_in->check_name) {
        why = r->built_in->check_name(name);
        if (why)
            field_invalid_str(e, p, shown, why);
        return;
    }
    check_rule(e, p, r->flags & RES_SYSTEM_NAME ? NAME_PATH_SEGMENT : NAME_DNS1123_SUBDOMAIN, shown,
               name);
}

/* A prefix may end in a dash, a name may not. */
static struct str mask_dash(struct arena *a, struct str s)
{
    char *copy;

    if (s.n < 2 || s.p[s.n - 1] != '-')
        return s;
    copy = arena_cstr(a, s);
    copy[s.n - 1] = 'a';
    return (struct str){copy, s.n};
}

static void check_prefix(struct field_errors *e, const struct resource *r, const cJSON *metadata)
{
    struct str prefix = json_str(json_get(metadata, "generateName"));

    if (prefix.n && !(r->flags & RES_ANY_PREFIX))
        check_name(e, FIELD(&METADATA, "generateName"), r, prefix, mask_dash(e->arena, prefix));
}

/* For every kind: the name becomes part of a path. */
static void check_prefix_segment(struct field_errors *e, const cJSON *metadata)
{
    struct str prefix = json_str(json_get(metadata, "generateName"));

    if (str_find(prefix, '/') < prefix.n)
        field_invalid_str(e, FIELD(&METADATA, "generateName"), prefix, "may not contain '/'");
    if (str_find(prefix, '%') < prefix.n)
        field_invalid_str(e, FIELD(&METADATA, "generateName"), prefix, "may not contain '%'");
}

/* ---- labels and annotations ---- */

static struct str lower(struct arena *a, struct str s)
{
    char *copy = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char)tolower((unsigned char)copy[i]);
    return (struct str){copy, s.n};
}

static void check_annotations(struct field_errors *e, const cJSON *annotations)
{
    const struct field_path *p = FIELD(&METADATA, "annotations");
    size_t total = 0;

    json_each(annotation, annotations)
    {
        struct str key = str_c(annotation->string);

        check_rule(e, p, NAME_QUALIFIED, key, lower(e->arena, key));
        total += key.n + json_str(annotation).n;
    }
    if (total > MAX_ANNOTATIONS)
        field_too_long(e, p, MAX_ANNOTATIONS);
}

/* ---- owners ---- */

static void want_text(struct field_errors *e, const struct field_path *p, const char *key,
                      struct str value, const char *why)
{
    if (!value.n)
        field_invalid_str(e, FIELD(p, key), value, why);
}

static void check_owners(struct field_errors *e, const cJSON *owners)
{
    const struct field_path *p = FIELD(&METADATA, "ownerReferences");
    const cJSON *controller = NULL;

    json_each(owner, owners)
    {
        struct str api_version = json_str(json_get(owner, "apiVersion"));
        struct str kind = json_str(json_get(owner, "kind"));
        size_t slash = str_find(api_version, '/');
        struct str version = slash < api_version.n ? str_from(api_version, slash + 1) : api_version;

        if (!version.n || str_find(version, '/') < version.n)
            field_invalid_str(e, FIELD(p, "apiVersion"), api_version, "version must not be empty");
        want_text(e, p, "kind", kind, "must not be empty");
        want_text(e, p, "name", json_str(json_get(owner, "name")), "must not be empty");
        want_text(e, p, "uid", json_str(json_get(owner, "uid")), "must not be empty");
        if (str_eqc(api_version, "v1") && str_eqc(kind, "Event"))
            field_invalid(e, p, owner, "/v1, Kind=Event is disallowed from being an owner");

        if (!json_true(json_get(owner, "controller")))
            continue;
        if (controller)
            field_invalid(e, p, owners,
                          arena_printf(e->arena,
                                       "Only one reference can have Controller set to true. Found "
                                       "\"true\" in references for %.*s/%.*s and %.*s/%.*s",
                                       STR_F(json_str(json_get(controller, "kind"))),
                                       STR_F(json_str(json_get(controller, "name"))),
                                       STR_F(json_str(json_get(owner, "kind"))),
                                       STR_F(json_str(json_get(owner, "name"))))
                              .p);
        else
            controller = owner;
    }
}

/* ---- finalizers ---- */

static void check_finalizers(struct field_errors *e, const cJSON *finalizers)
{
    const struct field_path *p = FIELD(&METADATA, "finalizers");

    json_each(f, finalizers) check_rule(e, p, NAME_QUALIFIED, json_str(f), json_str(f));
    if (json_list_has(finalizers, STR("orphan")) &&
        json_list_has(finalizers, STR("foregroundDeletion")))
        field_invalid(e, p, finalizers,
                      "finalizer orphan and foregroundDeletion cannot be both set");
}

/* The names are shown as Go prints a list of strings. */
static void check_no_new_finalizers(struct field_errors *e, const cJSON *now, const cJSON *before)
{
    struct buf extra = BUF_INIT(4096);
    size_t n = json_count(before), i = 0;
    struct str *had = arena_alloc(e->arena, (n + 1) * sizeof(*had));

    /* Sorted, since lists may be as long as a body. */
    json_each(f, before) had[i++] = json_str(f);
    qsort(had, n, sizeof(*had), str_order);
    json_each(f, now)
    {
        struct str name = json_str(f);

        if (bsearch(&name, had, n, sizeof(*had), str_order))
            continue;
        buf_addc(&extra, extra.n ? ", " : "");
        buf_json_string(&extra, name);
    }
    if (extra.n) {
        struct str text = buf_str(&extra);

        field_forbidden(e, FIELD(&METADATA, "finalizers"),
                        arena_printf(e->arena,
                                     "no new finalizers can be added if the object is being "
                                     "deleted, found new finalizers []string{%.*s}",
                                     STR_F(text))
                            .p);
    }
    buf_fini(&extra);
}

/* ---- managed fields ---- */

static void check_managed(struct field_errors *e, const cJSON *entries)
{
    const struct field_path *list = FIELD(&METADATA, "managedFields");
    size_t i = 0;

    json_each(entry, entries)
    {
        const struct field_path *p = FIELD_INDEX(list, i++);
        struct str operation = json_str(json_get(entry, "operation"));
        struct str type = json_str(json_get(entry, "fieldsType"));

        if (!str_eqc(operation, "Apply") && !str_eqc(operation, "Update"))
            field_invalid_str(e, FIELD(p, "operation"), operation, "must be `Apply` or `Update`");
        if (type.n && !str_eqc(type, "FieldsV1"))
            field_invalid_str(e, FIELD(p, "fieldsType"), type, "must be `FieldsV1`");
        if (json_str(json_get(entry, "manager")).n > 128)
            field_too_long(e, FIELD(p, "manager"), 128);
    }
}

/* The kinds of k8s.io/api accept finalizers with a domain, and upstream's three without; those of
 * apiextensions and the aggregator, and custom resources, accept any. */
static bool has_strict_finalizers(const struct resource *r)
{
    if (r->crd || !r->node || r->flags & RES_ANY_FINALIZER)
        return false;
    return str_has_prefix(str_c(schema_text(r->schema, schema_node(r->schema, r->node)->type_name)),
                          STR("io.k8s.api."));
}

static bool is_standard_finalizer(struct str name)
{
    return str_eqc(name, "kubernetes") || str_eqc(name, "orphan") ||
           str_eqc(name, "foregroundDeletion");
}

static void check_finalizer_forms(struct field_errors *e, const cJSON *finalizers)
{
    const struct field_path *list = FIELD(&METADATA, "finalizers");
    size_t at = 0;

    json_each(f, finalizers)
    {
        struct str name = json_str(f);

        if (str_find(name, '/') == name.n && !is_standard_finalizer(name))
            field_invalid_str(
                e, FIELD_INDEX(list, at), name,
                "name is neither a standard finalizer name nor is it fully qualified");
        at++;
    }
}

/* Custom resources may have any finalizer; warnings advise a qualified one. Source: apiextensions
 * validator.go. */
void vapi_meta_warn_finalizers(struct call *c, const cJSON *object, const cJSON *old)
{
    const cJSON *before = json_path(old, "metadata.finalizers");
    size_t left = MAX_WARNED;

    json_each(f, json_path(object, "metadata.finalizers"))
    {
        struct str name = json_str(f);

        if (left-- == 0)
            return;
        if (str_find(name, '/') < name.n || is_standard_finalizer(name) ||
            json_list_has(before, name))
            continue;
        call_warn(c, arena_printf(
                         c->arena,
                         "metadata.finalizers: \"%.*s\": prefer a domain-qualified finalizer "
                         "name%s to avoid accidental conflicts with other finalizer writers",
                         STR_F(name), str_find(name, '.') < name.n ? " including a path (/)" : ""));
    }
}

/* ---- complete metadata ---- */

static void check_maps(struct field_errors *e, const cJSON *metadata)
{
    const cJSON *labels = json_get(metadata, "labels");
    const struct field_path *p = FIELD(&METADATA, "labels");

    json_each(label, labels)
    {
        struct str key = str_c(label->string), value = json_str(label);

        check_rule(e, p, NAME_QUALIFIED, key, key);
        check_rule(e, p, NAME_LABEL_VALUE, value, value);
    }

    check_annotations(e, json_get(metadata, "annotations"));
    check_owners(e, json_get(metadata, "ownerReferences"));
}

void vapi_meta_validate(struct field_errors *e, const struct resource *r, const cJSON *object)
{
    const cJSON *metadata = json_get(object, "metadata");
    struct str name = json_str(json_get(metadata, "name"));
    struct str ns = json_str(json_get(metadata, "namespace"));
    int64_t generation;

    check_prefix(e, r, metadata);
    if (!name.n)
        field_required(e, FIELD(&METADATA, "name"), "name or generateName is required");
    else
        check_name(e, FIELD(&METADATA, "name"), r, name, name);
    if (resource_namespaced(r)) {
        if (!ns.n)
            field_required(e, FIELD(&METADATA, "namespace"), "");
        else
            check_rule(e, FIELD(&METADATA, "namespace"), NAME_DNS1123_LABEL, ns, ns);
    }

    generation = json_i64_at(metadata, "generation", 0);
    if (generation < 0)
        field_invalid(e, FIELD(&METADATA, "generation"), json_get(metadata, "generation"),
                      "must be greater than or equal to 0");

    check_maps(e, metadata);
    check_finalizers(e, json_get(metadata, "finalizers"));
    check_managed(e, json_get(metadata, "managedFields"));
    if (has_strict_finalizers(r))
        check_finalizer_forms(e, json_get(metadata, "finalizers"));
}

void vapi_meta_validate_last(struct field_errors *e, const struct resource *r, const cJSON *object)
{
    if (r->flags & RES_META_LAST)
        vapi_meta_validate(e, r, object);
    else if (r->flags & RES_ANY_PREFIX)
        check_prefix_segment(e, json_get(object, "metadata"));
}

static void check_immutable(struct field_errors *e, const cJSON *now, const cJSON *before,
                            const char *key)
{
    const cJSON *a = json_get(now, key), *b = json_get(before, key);

    if (a == b || (a && b && json_equal(a, b)))
        return;
    if (a)
        field_invalid(e, FIELD(&METADATA, key), a, IMMUTABLE);
    else
        field_invalid_str(e, FIELD(&METADATA, key), STR(""), IMMUTABLE);
}

void vapi_meta_validate_update(struct field_errors *e, const struct resource *r,
                               const cJSON *object, const cJSON *old, bool on_status)
{
    static const char *const fixed[] = {
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    };
    const cJSON *metadata = json_get(object, "metadata");
    const cJSON *before = json_get(old, "metadata");

    if (meta_is_terminating(before))
        check_no_new_finalizers(e, json_get(metadata, "finalizers"),
                                json_get(before, "finalizers"));
    for (size_t i = 0; i < COUNT(fixed); i++)
        check_immutable(e, metadata, before, fixed[i]);
    check_prefix_segment(e, metadata);
    if (r->flags & RES_NAME_ON_UPDATE && !on_status)
        check_prefix(e, r, metadata);
    check_maps(e, metadata);
    check_finalizers(e, json_get(metadata, "finalizers"));
    check_managed(e, json_get(metadata, "managedFields"));
    if (has_strict_finalizers(r))
        check_finalizer_forms(e, json_get(metadata, "finalizers"));
}
