/* SPDX-License-Identifier: Apache-2.0 */
/* What kinds that own pods share: a template under a selector that matches it, and counters of
 * replicas in their status. Source: pkg/apis/apps/validation/validation.go. */
#include "parts.h"

#include <string.h>

static const struct field_path TEMPLATE = {.name = "template", .parent = &KINDS_SPEC};

/* ---- templates under a selector ---- */

static const char *const ALWAYS[] = {"Always", NULL};

void check_owner_endless(struct field_errors *e, const cJSON *spec, const char *kind)
{
    const cJSON *pod = json_path(spec, "template.spec");
    const struct field_path *p = FIELD(&TEMPLATE, "spec");
    struct str restart = json_str(json_get(pod, "restartPolicy"));

    if (!str_eqc(restart, "Always"))
        field_not_supported(e, FIELD(p, "restartPolicy"), restart, ALWAYS);
    if (json_get(pod, "activeDeadlineSeconds"))
        field_forbidden_printf(e, FIELD(p, "activeDeadlineSeconds"),
                               "activeDeadlineSeconds in %s is not Supported", kind);
}

void check_owner_template(struct field_errors *e, const cJSON *spec, const char *kind)
{
    validate_pod_template(e, &TEMPLATE, json_get(spec, "template"));
    check_owner_endless(e, spec, kind);
}

void check_owner_match(struct field_errors *e, const cJSON *spec, const struct selector *selector)
{
    const cJSON *labels = json_path(spec, "template.metadata.labels");

    if (!selector_match(selector, labels_flatten(e->arena, labels)))
        field_invalid(e, FIELD(FIELD(&TEMPLATE, "metadata"), "labels"), labels,
                      "`selector` does not match template `labels`");
}

bool kinds_selector_is_empty(const cJSON *selector)
{
    return !json_count(json_get(selector, "matchLabels")) &&
           !json_count(json_get(selector, "matchExpressions"));
}

/* Empty for a deployment or replica set is said the same. False when it cannot be used. */
bool check_owner_selector(struct field_errors *e, const cJSON *spec, const char *kind,
                          struct selector *ret)
{
    const cJSON *selector = kinds_given(spec, "selector");
    const struct field_path *p = FIELD(&KINDS_SPEC, "selector");
    struct err err;

    err_init(&err, e->arena);
    if (!selector)
        field_required(e, p, "");
    validate_label_selector(e, p, selector);
    if (selector && kinds_selector_is_empty(selector))
        field_invalid_printf(e, p, selector, "empty selector is invalid for %s", kind);
    if (selector_from_json(e->arena, selector, ret, &err)) {
        field_invalid(e, p, selector,
                      strcmp(kind, "statefulset") == 0 ? "" : "invalid label selector");
        return false;
    }
    return true;
}

void validate_owner(const struct check *c)
{
    struct selector selector;

    if (!check_owner_selector(c->e, c->value, "deployment", &selector))
        return;
    if (selector.n || selector.nothing)
        check_owner_match(c->e, c->value, &selector);
    check_owner_template(c->e, c->value, "ReplicaSet");
}

void cell_ready(const struct row *r, const struct column *c)
{
    (void)c;
    cell_printf(r, "%lld/%lld", (long long)json_i64_at(r->object, "status.readyReplicas", 0),
                (long long)json_i64_at(r->object, "spec.replicas", 0));
}
