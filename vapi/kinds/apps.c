/* SPDX-License-Identifier: Apache-2.0 */
/* The workloads of apps/v1, and ReplicationControllers. Source: pkg/apis/apps/v1/defaults.go,
 * pkg/registry/apps. */
#include "validate.h"

#include <sublet/encode.h>

static cJSON *template_of(const cJSON *object)
{
    return json_path(object, "spec.template");
}

static bool same_at(const cJSON *a, const cJSON *b, const char *path)
{
    const cJSON *x = json_path(a, path), *y = json_path(b, path);

    return x && y ? json_equal(x, y) : x == y;
}

static bool has_text(const cJSON *object, const char *path, const char *text)
{
    return str_eqc(json_str_at(object, path), text);
}

/* ---- Deployment ---- */

static const struct default_rule DEPLOYMENT[] = {
    SET_NUMBER("spec.replicas", 1),
    SET_TEXT_Z("spec.strategy+.type", "RollingUpdate"),
    SET_NUMBER("spec.revisionHistoryLimit", 10),
    SET_NUMBER("spec.progressDeadlineSeconds", 600),
};
static const struct default_rule DEPLOYMENT_ROLLING[] = {
    SET_TEXT("spec.strategy.rollingUpdate+.maxUnavailable", "25%"),
    SET_TEXT("spec.strategy.rollingUpdate+.maxSurge", "25%"),
};

static void deployment_defaults(struct arena *a, cJSON *object)
{
    defaults_apply(a, object, DEPLOYMENT, COUNT(DEPLOYMENT));
    if (has_text(object, "spec.strategy.type", "RollingUpdate"))
        defaults_apply(a, object, DEPLOYMENT_ROLLING, COUNT(DEPLOYMENT_ROLLING));
    defaults_pod_template(a, template_of(object));
}

static void deployment_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{}");
}

/* Annotations are copied to replica sets, so they count as a change to be observed. */
static void deployment_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    if (!same_at(object, old, "metadata.annotations"))
        json_set_i64(a, json_get(object, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

static void deployment_prepare_status(struct arena *a, cJSON *object, const cJSON *old)
{
    keep_old(a, object, old, "metadata.labels");
}

const struct kind_ops DEPLOYMENT_OPS = {
    .defaults = deployment_defaults,
    .prepare_create = deployment_prepare_create,
    .prepare_update = deployment_prepare_update,
    .validate = validate_deployment,
    .validate_status = validate_deployment_status,
    .prepare_status = deployment_prepare_status,
    .warnings = warn_workload,
    .cells = cells_deployment,
};

/* ---- ReplicaSet ---- */

static void replica_set_defaults(struct arena *a, cJSON *object)
{
    static const struct default_rule rules[] = {SET_NUMBER("spec.replicas", 1)};

    defaults_apply(a, object, rules, COUNT(rules));
    defaults_pod_template(a, template_of(object));
}

static void replicas_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{\"replicas\":0}");
}

const struct kind_ops REPLICA_SET_OPS = {
    .defaults = replica_set_defaults,
    .prepare_create = replicas_prepare_create,
    .validate = validate_replica_set,
    .validate_status = validate_replicas_status,
    .warnings = warn_workload,
    .cells = cells_replicas,
};

/* ---- ReplicationController ---- */

static void controller_defaults(struct arena *a, cJSON *object)
{
    static const struct default_rule rules[] = {SET_NUMBER("spec.replicas", 1)};
    cJSON *spec = json_get(object, "spec");
    const cJSON *labels = json_path(template_of(object), "metadata.labels");

    defaults_apply(a, object, rules, COUNT(rules));
    if (labels && !json_count(json_get(spec, "selector")))
        json_set(a, spec, "selector", json_copy(a, labels));
    if (labels && !json_count(json_path(object, "metadata.labels")))
        json_set(a, json_ensure_object(a, object, "metadata"), "labels", json_copy(a, labels));
    defaults_pod_template(a, template_of(object));
}

const struct kind_ops REPLICATION_CONTROLLER_OPS = {
    .defaults = controller_defaults,
    .prepare_create = replicas_prepare_create,
    .validate = validate_replication_controller,
    .validate_status = validate_replicas_status,
    .warnings_before_create = warn_new_owner,
    .warnings = warn_template,
    .cells = cells_controller,
};

/* ---- StatefulSet ---- */

static const struct default_rule STATEFUL_SET[] = {
    SET_TEXT_Z("spec.podManagementPolicy", "OrderedReady"),
    SET_NUMBER("spec.updateStrategy.rollingUpdate.partition", 0),
    SET_TEXT_Z("spec.persistentVolumeClaimRetentionPolicy+.whenDeleted", "Retain"),
    SET_TEXT_Z("spec.persistentVolumeClaimRetentionPolicy+.whenScaled", "Retain"),
    SET_NUMBER("spec.replicas", 1),
    SET_NUMBER("spec.revisionHistoryLimit", 10),
};

static void stateful_set_defaults(struct arena *a, cJSON *object)
{
    cJSON *spec = json_get(object, "spec"), *strategy;

    if (!json_is_object(spec))
        return;
    strategy = json_ensure_object(a, spec, "updateStrategy");
    if (!json_str(json_get(strategy, "type")).n) {
        json_set_str(a, strategy, "type", STR("RollingUpdate"));
        json_ensure_object(a, strategy, "rollingUpdate");
    }
    defaults_apply(a, object, STATEFUL_SET, COUNT(STATEFUL_SET));
    defaults_pod_template(a, template_of(object));
    json_each(claim, json_get(spec, "volumeClaimTemplates"))
    {
        json_set_str(a, claim, "apiVersion", STR("v1"));
        json_set_str(a, claim, "kind", STR("PersistentVolumeClaim"));
        defaults_claim(a, claim);
    }
}

/* maxUnavailable belongs to a feature that is off upstream too: only what is there stays. */
static void drop_max_unavailable(cJSON *object, const cJSON *old)
{
    if (!json_path(old, "spec.updateStrategy.rollingUpdate.maxUnavailable"))
        json_remove(json_path(object, "spec.updateStrategy.rollingUpdate"), "maxUnavailable");
}

static void stateful_set_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    (void)a;
    drop_max_unavailable(object, old);
}

static void stateful_set_prepare_create(struct arena *a, cJSON *object)
{
    drop_max_unavailable(object, NULL);
    set_status(a, object, "{\"availableReplicas\":0,\"replicas\":0}");
}

const struct kind_ops STATEFUL_SET_OPS = {
    .defaults = stateful_set_defaults,
    .prepare_create = stateful_set_prepare_create,
    .prepare_update = stateful_set_prepare_update,
    .validate = validate_stateful_set,
    .validate_status = validate_stateful_set_status,
    .check_name = name_check_dns1123_label,
    .warnings = warn_stateful_set,
    .cells = cells_stateful_set,
};

/* ---- DaemonSet ---- */

static const struct default_rule DAEMON_SET[] = {
    SET_TEXT_Z("spec.updateStrategy+.type", "RollingUpdate"),
    SET_NUMBER("spec.revisionHistoryLimit", 10),
};
static const struct default_rule DAEMON_SET_ROLLING[] = {
    SET_NUMBER("spec.updateStrategy.rollingUpdate+.maxUnavailable", 1),
    SET_NUMBER("spec.updateStrategy.rollingUpdate+.maxSurge", 0),
};

/* No defaults: what Go prints of numbers that are not set. */
static const struct default_rule DAEMON_SET_OTHER[] = {
    SET_NUMBER("spec.updateStrategy.rollingUpdate.maxUnavailable", 0),
    SET_NUMBER("spec.updateStrategy.rollingUpdate.maxSurge", 0),
};

static void daemon_set_defaults(struct arena *a, cJSON *object)
{
    defaults_apply(a, object, DAEMON_SET, COUNT(DAEMON_SET));
    if (has_text(object, "spec.updateStrategy.type", "RollingUpdate"))
        defaults_apply(a, object, DAEMON_SET_ROLLING, COUNT(DAEMON_SET_ROLLING));
    else
        defaults_apply(a, object, DAEMON_SET_OTHER, COUNT(DAEMON_SET_OTHER));
    defaults_pod_template(a, template_of(object));
}

/* A field of the internal type that v1 shows as an annotation. */
#define TEMPLATE_GENERATION "deprecated.daemonset.template.generation"

static int64_t template_generation(const cJSON *object)
{
    int64_t generation = 0;
    const cJSON *annotations = json_path(object, "metadata.annotations");

    str_to_i64(json_str(json_get(annotations, TEMPLATE_GENERATION)), &generation);
    return generation;
}

/* Upstream reads the number when it reads the object. */
const char *daemon_set_unreadable(struct arena *a, const cJSON *object)
{
    const cJSON *text = json_get(json_path(object, "metadata.annotations"), TEMPLATE_GENERATION);
    struct str number = json_str(text), digits = number;
    int64_t n;

    if (!json_is_string(text))
        return NULL;
    if (digits.n && (digits.p[0] == '+' || digits.p[0] == '-'))
        digits = str_from(digits, 1);
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            digits.n = 0;
    }
    if (digits.n && str_to_i64(number.p[0] == '+' ? digits : number, &n))
        return NULL;
    return arena_printf(a, "strconv.ParseInt: parsing %.*s: %s", STR_F(go_quote(a, number)),
                        digits.n ? "value out of range" : "invalid syntax")
        .p;
}

static void set_template_generation(struct arena *a, cJSON *object, int64_t generation)
{
    json_set_str(a, json_ensure_path(a, object, "metadata.annotations"), TEMPLATE_GENERATION,
                 arena_printf(a, "%lld", (long long)generation));
}

static void daemon_set_prepare_create(struct arena *a, cJSON *object)
{
    int64_t generation = template_generation(object);

    set_status(a, object,
               "{\"currentNumberScheduled\":0,\"desiredNumberScheduled\":0,"
               "\"numberMisscheduled\":0,\"numberReady\":0}");
    set_template_generation(a, object, generation < 1 ? 1 : generation);
}

static void daemon_set_prepare_update(struct arena *a, cJSON *object, const cJSON *old)
{
    int64_t generation = template_generation(old);

    if (!same_at(object, old, "spec.template"))
        generation++;
    set_template_generation(a, object, generation);
}

const struct kind_ops DAEMON_SET_OPS = {
    .defaults = daemon_set_defaults,
    .prepare_create = daemon_set_prepare_create,
    .prepare_update = daemon_set_prepare_update,
    .validate = validate_daemon_set,
    .validate_status = validate_daemon_set_status,
    .warnings = warn_template,
    .cells = cells_daemon_set,
};

/* ---- ControllerRevision ---- */

const struct kind_ops CONTROLLER_REVISION_OPS = {
    .validate = validate_revision,
    .cells = cells_revision,
};
