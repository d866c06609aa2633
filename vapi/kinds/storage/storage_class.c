/* SPDX-License-Identifier: Apache-2.0 */
/* StorageClasses. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "class.h"

#include <sublet/encode.h>
#include <stdlib.h>

static void class_defaults(struct arena *a, cJSON *class)
{
    static const struct default_rule rules[] = {
        SET_TEXT("reclaimPolicy", "Delete"),
        SET_TEXT("volumeBindingMode", "Immediate"),
    };

    defaults_apply(a, class, rules, COUNT(rules));
}

static void check_topology(struct field_errors *e, const struct field_path *p, const cJSON *term)
{
    struct names keys = {.arena = e->arena};
    AT(list, p, "matchLabelExpressions");
    size_t i = 0;

    json_each(requirement, json_get(term, "matchLabelExpressions"))
    {
        const struct field_path *at = FIELD_INDEX(list, i++);
        const cJSON *key = json_get(requirement, "key"), *values = json_get(requirement, "values");
        struct names seen = {.arena = e->arena};
        size_t k = 0;

        if (!json_count(values))
            field_required(e, FIELD(at, "values"), "");
        json_each(value, values)
        {
            const struct field_path *here = FIELD_INDEX(FIELD(at, "values"), k++);

            if (!names_add(&seen, json_str(value), value))
                field_duplicate(e, here, value);
        }
        check_rule(e, FIELD(at, "key"), NAME_QUALIFIED, json_str(key));
        if (!names_add(&keys, json_str(key), requirement))
            field_duplicate(e, FIELD(at, "key"), key);
    }
}

/* The texts of a set in one order, in brackets. */
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

/* What a term asks for, whatever the order of its parts. */
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
    size_t i = 0;

    json_each(term, topologies)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        check_topology(e, at, term);
        /* Upstream finds a term without expressions in the places it has not filled yet. */
        if (!names_add(&seen, term_text(e->arena, term), term) ||
            !json_count(json_get(term, "matchLabelExpressions")))
            field_duplicate(e, FIELD(at, "matchLabelExpressions"),
                            json_new_string(e->arena, STR("")));
    }
}

static void class_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"Delete", "Retain", NULL};
    static const char *const modes[] = {"Immediate", "WaitForFirstConsumer", NULL};
    static const char *const fixed[] = {"parameters", "provisioner", "reclaimPolicy",
                                        "volumeBindingMode"};
    struct str policy = json_str(json_get(object, "reclaimPolicy"));

    for (size_t i = 0; old && i < COUNT(fixed); i++) {
        const cJSON *was = given(old, fixed[i]);

        if (!same_value(given(object, fixed[i]), was) &&
            (was || json_count(json_get(object, fixed[i]))))
            field_invalid(e, FIELD(NULL, fixed[i]), json_get(object, fixed[i]), IMMUTABLE);
    }
    check_provisioner(e, FIELD(NULL, "provisioner"), json_get(object, "provisioner"));
    check_parameters(e, FIELD(NULL, "parameters"), json_get(object, "parameters"), true);
    if (policy.n)
        check_enum(e, FIELD(NULL, "reclaimPolicy"), policy, policies);
    if (given(object, "volumeBindingMode"))
        check_enum_if(e, FIELD(NULL, "volumeBindingMode"), given(object, "volumeBindingMode"),
                      modes);
    else
        field_required(e, FIELD(NULL, "volumeBindingMode"), "");
    check_topologies(e, FIELD(NULL, "allowedTopologies"), json_get(object, "allowedTopologies"));
}

static WARNS(warn_storage_class)
{
    AT(list, NULL, "allowedTopologies");
    WARNER(w);
    size_t i = 0;

    json_each(topology, json_get(object, "allowedTopologies"))
    {
        const struct field_path *at = FIELD(FIELD_INDEX(list, i++), "matchLabelExpressions");
        size_t k = 0;

        json_each(expression, json_get(topology, "matchLabelExpressions"))
        {
            const struct field_path *item = FIELD(FIELD_INDEX(at, k++), "key");
            const char *text = deprecated_label(json_str(json_get(expression, "key")));

            if (text)
                warn_at(&w, item, text);
        }
    }
}

static ROW_CELLS(cells_storage_class)
{
    struct row r = {a, object, now, cells};

    if (annotated_true(object, "storageclass.kubernetes.io/is-default-class") ||
        annotated_true(object, "storageclass.beta.kubernetes.io/is-default-class"))
        cell_mark_default(&r);
    cell_text_at(&r, "provisioner");
    cell_text_or(&r, "reclaimPolicy", "Delete");
    cell_text_or(&r, "volumeBindingMode", "Immediate");
    cell_bool(&r, json_true(json_get(object, "allowVolumeExpansion")));
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Provisioner", "string", "", "", 0},
    {"ReclaimPolicy", "string", "", "", 0},
    {"VolumeBindingMode", "string", "", "", 0},
    {"AllowVolumeExpansion", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_STORAGE_CLASS = {
    .resource =
        {
            RESOURCE("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass"),
            .short_names = NAMES("sc"),
            .verbs = VERBS_ALL,
            .flags = RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .defaults = class_defaults,
    .validate = class_validate,
    .warnings = warn_storage_class,
    .cells = cells_storage_class,
};
