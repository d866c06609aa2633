/* SPDX-License-Identifier: Apache-2.0 */
/* StorageClasses. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "class.h"

#include <sublet/encode.h>
#include <stdlib.h>

static const struct default_rule DEFAULT_RULES[] = {
    SET_TEXT("reclaimPolicy", "Delete"),
    SET_TEXT("volumeBindingMode", "Immediate"),
};

static const struct rule REQUIREMENT[] = {
    SOME("values", ""),
    UNIQUE("values", NULL),
    NAME_ALWAYS("key", QUALIFIED),
    ONCE("key"),
};
static const struct rule TERM[] = {EACH("matchLabelExpressions", ALL(REQUIREMENT))};

/* The strings of a set in one order, in brackets. */
static void print_set(struct buf *b, struct arena *a, struct str *texts, size_t n)
{
    qsort(texts, n, sizeof(*texts), str_order);
    buf_addc(b, "[");
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !str_eq(texts[i], texts[i - 1]))
            buf_add(b, go_quote(a, texts[i]));
    }
    buf_addc(b, "]");
}

static struct str requirement_text(struct arena *a, const cJSON *requirement)
{
    const cJSON *values = json_get(requirement, "values");
    size_t n = json_count(values), i = 0;
    struct str *texts = arena_alloc(a, (n + 1) * sizeof(*texts)), text;
    struct buf b = BUF_INIT(4 << 20);

    json_each(value, values) texts[i++] = json_str(value);
    buf_add(&b, go_quote(a, json_str(json_get(requirement, "key"))));
    print_set(&b, a, texts, n);
    text = str_c(arena_cstr(a, buf_str(&b)));
    buf_fini(&b);
    return text;
}

/* What a term requires, whatever the order of its parts. */
static struct str term_text(struct arena *a, const cJSON *term)
{
    const cJSON *list = json_get(term, "matchLabelExpressions");
    size_t n = json_count(list), i = 0;
    struct str *texts = arena_alloc(a, (n + 1) * sizeof(*texts)), text;
    struct buf b = BUF_INIT(4 << 20);

    json_each(requirement, list) texts[i++] = requirement_text(a, requirement);
    print_set(&b, a, texts, n);
    text = str_c(arena_cstr(a, buf_str(&b)));
    buf_fini(&b);
    return text;
}

static void check_topologies(struct field_errors *e, const struct field_path *p,
                             const cJSON *topologies)
{
    struct names seen = {.arena = e->arena};

    field_each(term, at, p, topologies)
    {
        rules_check_value(e, at, term, NULL, TERM, COUNT(TERM));
        /* Upstream finds a term without expressions in the places it has not filled yet. */
        if (!names_add(&seen, term_text(e->arena, term), term) ||
            !json_count(json_get(term, "matchLabelExpressions")))
            field_duplicate(e, FIELD(at, "matchLabelExpressions"),
                            json_new_string(e->arena, STR("")));
    }
}

/* Absent and empty are the same; what an update removes is shown as nothing. */
static void check_fixed(const struct check *c)
{
    static const char *const fixed[] = {"parameters", "provisioner", "reclaimPolicy",
                                        "volumeBindingMode"};

    for (size_t i = 0; i < COUNT(fixed); i++) {
        const cJSON *now = kinds_given(c->value, fixed[i]), *was = kinds_given(c->old, fixed[i]);

        if (!kinds_same_value(now, was) && (was || json_count(now)))
            field_invalid(c->e, FIELD(NULL, fixed[i]), now, IMMUTABLE);
    }
}

static const struct rule CLASS_RULES[] = {
    ON_UPDATE(CALL(NULL, check_fixed)),
    CALL("provisioner", check_provisioner),
    PARAMETERS("parameters", NULL),
    ENUM_IF_SET("reclaimPolicy", NAMES("Delete", "Retain")),
    ENUM_IF_GIVEN("volumeBindingMode", ENUM_VOLUME_BINDING_MODE),
    REQUIRED("volumeBindingMode", ""),
    CHECK_ALWAYS("allowedTopologies", check_topologies),
};

/* ---- warnings, cells ---- */

static WARNS(warn_storage_class)
{
    WARNER(w);

    member_each(topology, at, NULL, object, "allowedTopologies")
    {
        member_each(expression, item, at, topology, "matchLabelExpressions")
        {
            const char *text = warn_deprecated_label(json_str(json_get(expression, "key")));

            if (text)
                warn_at(&w, FIELD(item, "key"), text);
        }
    }
}

static struct str class_name(const struct row *r)
{
    return names_of_class(
        r, kinds_annotated_true(r->object, "storageclass.kubernetes.io/is-default-class") ||
               kinds_annotated_true(r->object, "storageclass.beta.kubernetes.io/is-default-class"));
}

/* ---- the kind ---- */

const struct kind KIND_STORAGE_CLASS = {
    RESOURCE("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass"),
    .resource.short_names = NAMES("sc"),
    .resource.flags = RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    COLUMNS({"Provisioner", "string", .cell = show_text, .path = "provisioner"},
            {"ReclaimPolicy", "string", .cell = show_text, .path = "reclaimPolicy",
             .otherwise = "Delete"},
            {"VolumeBindingMode", "string", .cell = show_text, .path = "volumeBindingMode",
             .otherwise = "Immediate"},
            {"AllowVolumeExpansion", "string", .cell = show_bool, .path = "allowVolumeExpansion"},
            {"Age", "string", .cell = show_age}),
    .first_cell = class_name,
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .rules = RULES(CLASS_RULES),
    .warnings = warn_storage_class,
};
