/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of apps/v1 and ReplicationControllers: the selector matches the template and stays, the
 * strategy can make progress. Source: pkg/apis/apps/validation/validation.go. */
#include "validate.h"

#include <string.h>

static const struct field_path SPEC = {.name = "spec"};
static const struct field_path STATUS = {.name = "status"};
static const struct field_path TEMPLATE = {.name = "template", .parent = &SPEC};

/* ---- templates under a selector ---- */

static const char *const ALWAYS[] = {"Always", NULL};

/* kind: in upstream's message about deadlines. */
static void check_template(struct field_errors *e, const cJSON *spec, const char *kind)
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

static void check_match(struct field_errors *e, const cJSON *spec, const struct selector *selector)
{
    const cJSON *labels = json_path(spec, "template.metadata.labels");

    if (!selector_match(selector, labels_flatten(e->arena, labels)))
        field_invalid(e, FIELD(FIELD(&TEMPLATE, "metadata"), "labels"), labels,
                      "`selector` does not match template `labels`");
}

static bool is_empty_selector(const cJSON *selector)
{
    return !json_count(json_get(selector, "matchLabels")) &&
           !json_count(json_get(selector, "matchExpressions"));
}

/* Empty for a deployment or replica set is said the same. False when it cannot be used. */
static bool check_selector(struct field_errors *e, const cJSON *spec, const char *kind,
                           struct selector *ret)
{
    const cJSON *selector = given(spec, "selector");
    const struct field_path *p = FIELD(&SPEC, "selector");
    struct err err;

    err_init(&err, e->arena);
    if (!selector)
        field_required(e, p, "");
    validate_label_selector(e, p, selector);
    if (selector && is_empty_selector(selector))
        field_invalid(e, p, selector,
                      arena_printf(e->arena, "empty selector is invalid for %s", kind).p);
    if (selector_from_json(e->arena, selector, ret, &err)) {
        field_invalid(e, p, selector,
                      strcmp(kind, "statefulset") == 0 ? "" : "invalid label selector");
        return false;
    }
    return true;
}

static void check_matched(struct field_errors *e, const cJSON *spec, const char *kind,
                          const char *shown)
{
    struct selector selector;

    if (!check_selector(e, spec, kind, &selector))
        return;
    if (selector.n || selector.nothing)
        check_match(e, spec, &selector);
    check_template(e, spec, shown);
}

/* ---- Deployment ---- */

static void check_rolling_update(struct field_errors *e, const struct field_path *p,
                                 const cJSON *rolling)
{
    const cJSON *unavailable = json_get(rolling, "maxUnavailable");
    const cJSON *surge = json_get(rolling, "maxSurge");

    check_int_or_percent(e, FIELD(p, "maxUnavailable"), unavailable);
    check_int_or_percent(e, FIELD(p, "maxSurge"), surge);
    if (!int_or_percent(unavailable) && !int_or_percent(surge))
        field_invalid(e, FIELD(p, "maxUnavailable"), unavailable,
                      "may not be 0 when `maxSurge` is 0");
    check_not_over_100(e, FIELD(p, "maxUnavailable"), unavailable);
}

static void check_strategy(struct field_errors *e, const struct field_path *p,
                           const cJSON *strategy)
{
    static const char *const types[] = {"Recreate", "RollingUpdate", NULL};
    struct str type = json_str(json_get(strategy, "type"));
    const cJSON *rolling = json_get(strategy, "rollingUpdate");

    if (str_eqc(type, "RollingUpdate"))
        check_rolling_update(e, FIELD(p, "rollingUpdate"), rolling);
    else if (!str_eqc(type, "Recreate"))
        field_not_supported_value(e, p, strategy, types);
    else if (rolling)
        field_forbidden(e, FIELD(p, "rollingUpdate"),
                        "may not be specified when strategy `type` is 'Recreate'");
}

static void check_progress(struct field_errors *e, const cJSON *spec)
{
    const cJSON *deadline = json_get(spec, "progressDeadlineSeconds");
    const struct field_path *p = FIELD(&SPEC, "progressDeadlineSeconds");
    int64_t seconds;

    if (!json_i64(deadline, &seconds))
        return;
    check_nonnegative(e, p, deadline);
    if (seconds <= json_i64_at(spec, "minReadySeconds", 0))
        field_invalid(e, p, deadline, "must be greater than minReadySeconds");
}

void validate_deployment(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {"minReadySeconds", "revisionHistoryLimit", NULL};
    const cJSON *spec = json_get(object, "spec");

    check_nonnegative(e, FIELD(&SPEC, "replicas"), json_get(spec, "replicas"));
    check_matched(e, spec, "deployment", "ReplicaSet");
    check_strategy(e, FIELD(&SPEC, "strategy"), json_get(spec, "strategy"));
    check_all_nonnegative(e, &SPEC, spec, numbers);
    check_progress(e, spec);
    if (old)
        check_immutable(e, FIELD(&SPEC, "selector"), given(spec, "selector"),
                        given(old, "spec.selector"));
}

/* ---- ReplicaSet, ReplicationController ---- */

void validate_replica_set(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {"replicas", "minReadySeconds", NULL};
    const cJSON *spec = json_get(object, "spec");

    check_all_nonnegative(e, &SPEC, spec, numbers);
    check_matched(e, spec, "deployment", "ReplicaSet");
    if (old)
        check_immutable(e, FIELD(&SPEC, "selector"), given(spec, "selector"),
                        given(old, "spec.selector"));
}

void validate_replication_controller(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {"minReadySeconds", "replicas", NULL};
    const cJSON *spec = json_get(object, "spec"), *selector = given(spec, "selector");
    struct selector s;

    (void)old;
    check_all_nonnegative(e, &SPEC, spec, numbers);
    if (!json_count(selector))
        field_required(e, FIELD(&SPEC, "selector"), "");
    if (!given(spec, "template")) {
        field_required(e, &TEMPLATE, "");
        return;
    }
    selector_from_map(e->arena, selector, &s);
    if (json_count(selector))
        check_match(e, spec, &s);
    check_template(e, spec, "ReplicationController");
}

/* ---- StatefulSet ---- */

static void check_set_strategy(struct field_errors *e, const cJSON *strategy)
{
    const struct field_path *p = FIELD(&SPEC, "updateStrategy");
    const struct field_path *at = FIELD(p, "rollingUpdate");
    struct str type = json_str(json_get(strategy, "type"));
    const cJSON *rolling = json_get(strategy, "rollingUpdate");
    const cJSON *unavailable = json_get(rolling, "maxUnavailable");

    if (!type.n) {
        field_required(e, p, "");
    } else if (str_eqc(type, "OnDelete")) {
        if (rolling)
            field_invalid(e, at, rolling, "only allowed for updateStrategy 'RollingUpdate'");
    } else if (!str_eqc(type, "RollingUpdate")) {
        field_invalid(e, p, strategy, "must be 'RollingUpdate' or 'OnDelete'");
    } else if (rolling) {
        check_nonnegative(e, FIELD(at, "partition"), json_get(rolling, "partition"));
        if (!unavailable)
            return;
        check_int_or_percent(e, FIELD(at, "maxUnavailable"), unavailable);
        if (!int_or_percent(unavailable))
            field_invalid(e, FIELD(at, "maxUnavailable"), unavailable, "cannot be 0");
        check_not_over_100(e, FIELD(at, "maxUnavailable"), unavailable);
    }
}

static void check_retention(struct field_errors *e, const cJSON *policy)
{
    static const char *const types[] = {"Retain", "Delete", NULL};
    static const char *const when[] = {"whenDeleted", "whenScaled"};
    const struct field_path *p = FIELD(&SPEC, "persistentVolumeClaimRetentionPolicy");

    for (size_t i = 0; policy && i < COUNT(when); i++) {
        struct str type = json_str(json_get(policy, when[i]));

        if (!one_of(type, types))
            field_not_supported(e, FIELD(p, when[i]), type, types);
    }
}

/* The template as its pods get it: named by the set, with the claims of the set as volumes. */
static cJSON *template_with_claims(struct arena *a, const cJSON *spec)
{
    cJSON *template_ = json_copy(a, json_get(spec, "template"));
    cJSON *pod = json_ensure_object(a, template_, "spec"), *volumes = json_new_array(a);
    struct names claims = {.arena = a};

    json_remove(pod, "hostname");
    json_remove(pod, "subdomain");
    json_each(claim, json_get(spec, "volumeClaimTemplates"))
    {
        struct str name = json_str_at(claim, "metadata.name");
        cJSON *volume;

        if (!names_add(&claims, name, claim))
            continue;
        volume = json_append(volumes, json_new_object(a));
        json_set_str(a, volume, "name", name);
        json_set_str(a, json_ensure_object(a, volume, "persistentVolumeClaim"), "claimName", name);
    }
    if (!claims.n)
        return template_;
    json_each(volume, json_get(pod, "volumes"))
    {
        if (!names_has(&claims, json_str(json_get(volume, "name"))))
            json_append(volumes, json_copy(a, volume));
    }
    json_set(a, pod, "volumes", volumes);
    return template_;
}

static void check_set_template(struct field_errors *e, const cJSON *spec)
{
    struct selector selector;
    cJSON *made;

    if (!check_selector(e, spec, "statefulset", &selector))
        return;
    made = json_new_object(e->arena);
    json_set(e->arena, made, "template", template_with_claims(e->arena, spec));
    if (selector.n || selector.nothing)
        check_match(e, made, &selector);
    check_template(e, made, "StatefulSet");
}

static void check_set_fixed(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    static const char *const movable[] = {"replicas",
                                          "template",
                                          "updateStrategy",
                                          "minReadySeconds",
                                          "ordinals",
                                          "revisionHistoryLimit",
                                          "persistentVolumeClaimRetentionPolicy"};
    cJSON *a = json_copy(e->arena, spec), *b = json_copy(e->arena, old);

    for (size_t i = 0; i < COUNT(movable); i++) {
        json_remove(a, movable[i]);
        json_remove(b, movable[i]);
    }
    if (!json_equal(a, b))
        field_forbidden(e, &SPEC,
                        "updates to statefulset spec for fields other than 'replicas', "
                        "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                        "forbidden");
}

static void check_set_claims(struct field_errors *e, const cJSON *spec)
{
    const struct field_path *p = FIELD(&SPEC, "volumeClaimTemplates");
    size_t i = 0;

    json_each(claim, json_get(spec, "volumeClaimTemplates"))
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        validate_claim_spec(e, FIELD(at, "spec"), json_get(claim, "spec"));
    }
}

void validate_stateful_set(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"OrderedReady", "Parallel", NULL};
    static const char *const numbers[] = {"replicas", "minReadySeconds", NULL};
    const cJSON *spec = json_get(object, "spec");
    struct str policy = json_str(json_get(spec, "podManagementPolicy"));
    struct str service = json_str(json_get(spec, "serviceName"));

    if (check_given(e, FIELD(&SPEC, "podManagementPolicy"), policy) && !one_of(policy, policies))
        field_invalid_str(e, FIELD(&SPEC, "podManagementPolicy"), policy,
                          "must be 'OrderedReady' or 'Parallel'");
    check_set_strategy(e, json_get(spec, "updateStrategy"));
    check_retention(e, json_get(spec, "persistentVolumeClaimRetentionPolicy"));
    if (!old)
        check_set_claims(e, spec);
    check_all_nonnegative(e, &SPEC, spec, numbers);
    check_nonnegative(e, FIELD(&SPEC, "ordinals.start"), json_path(spec, "ordinals.start"));
    if (!old && service.n)
        check_rule(e, FIELD(&SPEC, "serviceName"), NAME_DNS1123_LABEL, service);
    check_set_template(e, spec);
    if (old)
        check_set_fixed(e, spec, json_get(old, "spec"));
}

/* ---- DaemonSet ---- */

static void check_daemon_rolling(struct field_errors *e, const struct field_path *p,
                                 const cJSON *rolling)
{
    const cJSON *unavailable = json_get(rolling, "maxUnavailable");
    const cJSON *surge = json_get(rolling, "maxSurge");
    bool may_miss, may_add;

    check_int_or_percent(e, FIELD(p, "maxUnavailable"), unavailable);
    check_int_or_percent(e, FIELD(p, "maxSurge"), surge);
    check_not_over_100(e, FIELD(p, "maxUnavailable"), unavailable);
    check_not_over_100(e, FIELD(p, "maxSurge"), surge);
    may_miss = int_or_percent(unavailable) != 0;
    may_add = int_or_percent(surge) != 0;
    if (may_miss && may_add)
        field_invalid(e, FIELD(p, "maxSurge"), surge,
                      "may not be set when maxUnavailable is non-zero");
    else if (!may_miss && !may_add)
        field_required(e, FIELD(p, "maxUnavailable"), "cannot be 0 when maxSurge is 0");
}

static void check_daemon_strategy(struct field_errors *e, const cJSON *strategy)
{
    static const char *const types[] = {"RollingUpdate", "OnDelete", NULL};
    const struct field_path *p = FIELD(&SPEC, "updateStrategy");
    struct str type = json_str(json_get(strategy, "type"));

    if (str_eqc(type, "RollingUpdate"))
        check_daemon_rolling(e, FIELD(p, "rollingUpdate"), json_get(strategy, "rollingUpdate"));
    else if (!str_eqc(type, "OnDelete"))
        field_not_supported_value(e, p, strategy, types);
}

void validate_daemon_set(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {"minReadySeconds", NULL};
    const cJSON *spec = json_get(object, "spec"), *selector = given(spec, "selector");
    const struct field_path *p = FIELD(&SPEC, "selector");
    struct selector s;
    struct err err;

    err_init(&err, e->arena);
    if (old)
        check_immutable(e, p, selector, given(old, "spec.selector"));
    validate_label_selector(e, p, selector);
    if (selector_from_json(e->arena, selector, &s, &err) == 0)
        check_match(e, spec, &s);
    if (selector && is_empty_selector(selector))
        field_invalid(e, p, selector, "empty selector is invalid for daemonset");
    check_template(e, spec, "DaemonSet");
    check_all_nonnegative(e, &SPEC, spec, numbers);
    check_daemon_strategy(e, json_get(spec, "updateStrategy"));
    check_nonnegative(e, FIELD(&SPEC, "revisionHistoryLimit"),
                      json_get(spec, "revisionHistoryLimit"));
}

/* ---- ControllerRevision ---- */

void validate_revision(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *p = FIELD(NULL, "data");
    const cJSON *data = json_get(object, "data");

    check_nonnegative(e, FIELD(NULL, "revision"), json_get(object, "revision"));
    if (old)
        check_immutable(e, p, data, json_get(old, "data"));
    else if (!data || json_is_null(data))
        field_required(e, p, "data is mandatory");
    else if (!json_is_object(data))
        field_required(e, p, "data must be a valid JSON object");
}

/* ---- status ---- */

/* Numbers of status, in the order they are checked; those marked are at most `replicas`. */
struct count {
    const char *name;
    bool capped;
};

static void check_counts(struct field_errors *e, const cJSON *status, const struct count *counts,
                         size_t n)
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

static void check_available(struct field_errors *e, const cJSON *status, const char *why)
{
    int64_t available = json_i64_at(status, "availableReplicas", 0);

    if (available > json_i64_at(status, "readyReplicas", 0))
        field_invalid(e, FIELD(&STATUS, "availableReplicas"), json_new_i64(e->arena, available),
                      why);
}

static void check_collisions(struct field_errors *e, const cJSON *status, const cJSON *old)
{
    const cJSON *now = given(status, "collisionCount"), *before = given(old, "collisionCount");

    /* One that is gone is less than one of 0. */
    if (before &&
        (!now || json_i64_at(old, "collisionCount", 0) > json_i64_at(status, "collisionCount", 0)))
        field_invalid(e, FIELD(&STATUS, "collisionCount"), now ? now : json_new_i64(e->arena, 0),
                      "cannot be decremented");
}

void validate_deployment_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const struct count counts[] = {
        {"observedGeneration", false},  {"replicas", false},         {"updatedReplicas", true},
        {"readyReplicas", true},        {"availableReplicas", true}, {"unavailableReplicas", false},
        {"terminatingReplicas", false}, {"collisionCount", false},
    };
    const cJSON *status = json_get(object, "status");

    check_counts(e, status, counts, COUNT(counts));
    check_available(e, status, "cannot be greater than readyReplicas");
    check_collisions(e, status, json_get(old, "status"));
}

void validate_replicas_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const struct count counts[] = {
        {"replicas", false},         {"fullyLabeledReplicas", true}, {"readyReplicas", true},
        {"availableReplicas", true}, {"observedGeneration", false},  {"terminatingReplicas", false},
    };
    const cJSON *status = json_get(object, "status");

    (void)old;
    check_counts(e, status, counts, COUNT(counts));
    check_available(e, status, "cannot be greater than readyReplicas");
}

void validate_stateful_set_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const struct count counts[] = {
        {"replicas", false},       {"readyReplicas", true},     {"currentReplicas", true},
        {"updatedReplicas", true}, {"availableReplicas", true}, {"observedGeneration", false},
        {"collisionCount", false},
    };
    const cJSON *status = json_get(object, "status");

    check_counts(e, status, counts, COUNT(counts));
    check_available(e, status, "cannot be greater than status.readyReplicas");
    check_collisions(e, status, json_get(old, "status"));
}

void validate_daemon_set_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const numbers[] = {
        "currentNumberScheduled", "numberMisscheduled",
        "desiredNumberScheduled", "numberReady",
        "observedGeneration",     "updatedNumberScheduled",
        "numberAvailable",        "numberUnavailable",
        "collisionCount",         NULL,
    };
    const cJSON *status = json_get(object, "status");

    check_all_nonnegative(e, &STATUS, status, numbers);
    check_collisions(e, status, json_get(old, "status"));
}
