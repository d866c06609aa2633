/* SPDX-License-Identifier: Apache-2.0 */
/* StatefulSets of apps/v1. Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
 * pkg/registry/apps. */
#include "../rules/kind.h"
#include "../pod/pod.h"

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
    defaults_pod_template(a, json_path(object, "spec.template"));
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

    if (!owner_check_selector(e, spec, "statefulset", &selector))
        return;
    made = json_new_object(e->arena);
    json_set(e->arena, made, "template", template_with_claims(e->arena, spec));
    if (selector.n || selector.nothing)
        owner_check_match(e, made, &selector);
    owner_check_template(e, made, "StatefulSet");
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

        validate_claim_spec(e, FIELD(at, "spec"), json_get(claim, "spec"), false);
    }
}

static void validate_stateful_set(struct field_errors *e, const cJSON *object, const cJSON *old)
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

static void validate_stateful_set_status(struct field_errors *e, const cJSON *object,
                                         const cJSON *old)
{
    static const struct owner_count counts[] = {
        {"replicas", false},       {"readyReplicas", true},     {"currentReplicas", true},
        {"updatedReplicas", true}, {"availableReplicas", true}, {"observedGeneration", false},
        {"collisionCount", false},
    };
    const cJSON *status = json_get(object, "status");

    owner_check_counts(e, status, counts, COUNT(counts));
    owner_check_available(e, status, "cannot be greater than status.readyReplicas");
    owner_check_collisions(e, status, json_get(old, "status"));
}

static void warn_claim_templates(const struct warner *w, const cJSON *spec)
{
    AT(list, FIELD(NULL, "spec"), "volumeClaimTemplates");
    size_t i = 0;

    json_each(claim, json_get(spec, "volumeClaimTemplates"))
        warn_claim_spec(w, FIELD_INDEX(list, i++), json_get(claim, "spec"));
}

static WARNS(warn_stateful_set)
{
    WARNER(w);

    warn_workload(a, object, warn, ctx);
    warn_claim_templates(&w, json_get(object, "spec"));
}

static ROW_CELLS(cells_stateful_set)
{
    struct row r = {a, object, now, cells};

    cell_ready(&r);
    cell_age(&r);
    cell_template(&r, "spec.template.spec.containers");
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Ready", "string", "", "", 0},      {"Age", "string", "", "", 0},
    {"Containers", "string", "", "", 1}, {"Images", "string", "", "", 1},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_STATEFUL_SET = {
    .resource =
        {
            RESOURCE("apps", "v1", "StatefulSet", "statefulsets", "statefulset"),
            .short_names = NAMES("sts"),
            .categories = NAMES("all"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION,
            .columns = COLUMNS,
            SUBRESOURCES(SCALE_BY(SCALE_SELECTOR), STATUS_OF("StatefulSet")),
        },
    .defaults = stateful_set_defaults,
    .prepare_create = stateful_set_prepare_create,
    .prepare_update = stateful_set_prepare_update,
    .validate = validate_stateful_set,
    .validate_status = validate_stateful_set_status,
    .check_name = name_check_dns1123_label,
    .warnings = warn_stateful_set,
    .cells = cells_stateful_set,
};
