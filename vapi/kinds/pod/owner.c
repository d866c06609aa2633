/* SPDX-License-Identifier: Apache-2.0 */
/* What kinds that own pods share: a template under a selector that matches it, and counters of
 * replicas in their status. Source: pkg/apis/apps/validation/validation.go. */
#include "parts.h"

#include <string.h>

static const struct field_path TEMPLATE = {.name = "template", .parent = &SPEC};

/* ---- templates under a selector ---- */

static const char *const ALWAYS[] = {"Always", NULL};

/* kind: in upstream's message about deadlines. */
void owner_check_template(struct field_errors *e, const cJSON *spec, const char *kind)
{
    const cJSON *pod = json_path(spec, "template.spec");
    const struct field_path *p = FIELD(&TEMPLATE, "spec");
    struct str restart = json_str(json_get(pod, "restartPolicy"));

    validate_pod_template(e, &TEMPLATE, json_get(spec, "template"));
    if (!str_eqc(restart, "Always"))
        field_not_supported(e, FIELD(p, "restartPolicy"), restart, ALWAYS);
    if (json_get(pod, "activeDeadlineSeconds"))
        field_forbidden(
            e, FIELD(p, "activeDeadlineSeconds"),
            arena_printf(e->arena, "activeDeadlineSeconds in %s is not Supported", kind).p);
}

void owner_check_match(struct field_errors *e, const cJSON *spec, const struct selector *selector)
{
    const cJSON *labels = json_path(spec, "template.metadata.labels");

    if (!selector_match(selector, labels_flatten(e->arena, labels)))
        field_invalid(e, FIELD(FIELD(&TEMPLATE, "metadata"), "labels"), labels,
                      "`selector` does not match template `labels`");
}

bool owner_selector_is_empty(const cJSON *selector)
{
    return !json_count(json_get(selector, "matchLabels")) &&
           !json_count(json_get(selector, "matchExpressions"));
}

/* Empty for a deployment or replica set is said the same. False when it cannot be used. */
bool owner_check_selector(struct field_errors *e, const cJSON *spec, const char *kind,
                          struct selector *ret)
{
    const cJSON *selector = given(spec, "selector");
    const struct field_path *p = FIELD(&SPEC, "selector");
    struct err err;

    err_init(&err, e->arena);
    if (!selector)
        field_required(e, p, "");
    validate_label_selector(e, p, selector);
    if (selector && owner_selector_is_empty(selector))
        field_invalid(e, p, selector,
                      arena_printf(e->arena, "empty selector is invalid for %s", kind).p);
    if (selector_from_json(e->arena, selector, ret, &err)) {
        field_invalid(e, p, selector,
                      strcmp(kind, "statefulset") == 0 ? "" : "invalid label selector");
        return false;
    }
    return true;
}

void validate_owner(struct field_errors *e, const cJSON *spec, const char *kind, const char *shown)
{
    struct selector selector;

    if (!owner_check_selector(e, spec, kind, &selector))
        return;
    if (selector.n || selector.nothing)
        owner_check_match(e, spec, &selector);
    owner_check_template(e, spec, shown);
}

void owner_check_counts(struct field_errors *e, const cJSON *status,
                        const struct owner_count *counts, size_t n)
{
    int64_t replicas = json_i64_at(status, "replicas", 0);

    for (size_t i = 0; i < n; i++)
        check_nonnegative(e, FIELD(&STATUS, counts[i].name), json_get(status, counts[i].name));
    for (size_t i = 0; i < n; i++) {
        if (counts[i].capped && json_i64_at(status, counts[i].name, 0) > replicas)
            field_invalid(e, FIELD(&STATUS, counts[i].name),
                          json_new_i64(e->arena, json_i64_at(status, counts[i].name, 0)),
                          "cannot be greater than status.replicas");
    }
}

void owner_check_available(struct field_errors *e, const cJSON *status, const char *why)
{
    int64_t available = json_i64_at(status, "availableReplicas", 0);

    if (available > json_i64_at(status, "readyReplicas", 0))
        field_invalid(e, FIELD(&STATUS, "availableReplicas"), json_new_i64(e->arena, available),
                      why);
}

void owner_check_collisions(struct field_errors *e, const cJSON *status, const cJSON *old)
{
    const cJSON *now = given(status, "collisionCount"), *before = given(old, "collisionCount");

    /* One that is gone is less than one of 0. */
    if (before &&
        (!now || json_i64_at(old, "collisionCount", 0) > json_i64_at(status, "collisionCount", 0)))
        field_invalid(e, FIELD(&STATUS, "collisionCount"), now ? now : json_new_i64(e->arena, 0),
                      "cannot be decremented");
}

void replicas_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{\"replicas\":0}");
}

void validate_replicas_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const struct owner_count counts[] = {
        {"replicas", false},         {"fullyLabeledReplicas", true}, {"readyReplicas", true},
        {"availableReplicas", true}, {"observedGeneration", false},  {"terminatingReplicas", false},
    };
    const cJSON *status = json_get(object, "status");

    (void)old;
    owner_check_counts(e, status, counts, COUNT(counts));
    owner_check_available(e, status, "cannot be greater than readyReplicas");
}

void cell_template(const struct row *r, const char *containers)
{
    cell_containers(r, json_path(r->object, containers));
}

void cell_ready(const struct row *r)
{
    cell_text(r, arena_printf(r->a, "%lld/%lld",
                              (long long)json_i64_at(r->object, "status.readyReplicas", 0),
                              (long long)json_i64_at(r->object, "spec.replicas", 0)));
}

void cell_replicas(const struct row *r)
{
    cell_number_at(r, "spec.replicas");
    cell_number_at(r, "status.replicas");
    cell_number_at(r, "status.readyReplicas");
    cell_age(r);
    cell_template(r, "spec.template.spec.containers");
}
