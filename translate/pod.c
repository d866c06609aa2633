/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual pod as a host pod. Why: this is the one object that runs a tenant's code, so it is
 * built from nothing by tables, in a fixed order; the checks run again here, because a pod may have
 * been stored under another configuration. Must never send a field by which the tenant would have
 * an identity on the host: service account, priority, owner, node. */

#include <string.h>

#include "pod_marks.h"
#include "shape.h"

#include <sublet/config_sync.h>
#include <sublet/json_build.h>
#include <sublet/object.h>

#define NAME_LONGEST 253

/* ---- tables ---- */

static const struct field SYSCTL_FIELDS[] = {
    {"name", FIELD_SCALAR},
    {"value", FIELD_SCALAR},
    {0},
};

static const struct field POD_SECURITY_FIELDS[] = {
    {"seLinuxOptions", FIELD_OBJECT, .fields = TRANSLATE_POD_SELINUX_FIELDS},
    {"windowsOptions", FIELD_OBJECT, .fields = TRANSLATE_POD_WINDOWS_FIELDS},
    {"runAsUser", FIELD_SCALAR},
    {"runAsGroup", FIELD_SCALAR},
    {"runAsNonRoot", FIELD_SCALAR},
    {"supplementalGroups", FIELD_SCALARS},
    {"supplementalGroupsPolicy", FIELD_SCALAR},
    {"fsGroup", FIELD_SCALAR},
    {"fsGroupChangePolicy", FIELD_SCALAR},
    {"sysctls", FIELD_LIST, .fields = SYSCTL_FIELDS},
    {"seccompProfile", FIELD_OBJECT, .fields = TRANSLATE_POD_SECCOMP_FIELDS},
    {"appArmorProfile", FIELD_OBJECT, .fields = TRANSLATE_POD_SECCOMP_FIELDS},
    {"seLinuxChangePolicy", FIELD_SCALAR},
    {0},
};

static const struct field PULL_SECRET_FIELDS[] = {{"name", FIELD_NAME}, {0}};
static const struct field GATE_FIELDS[] = {{"conditionType", FIELD_SCALAR}, {0}};
static const struct field OS_FIELDS[] = {{"name", FIELD_SCALAR}, {0}};

static const struct field SPEC_FIELDS[] = {
    {"volumes", FIELD_EACH, .make = translate_pod_volume_down},
    {"initContainers", FIELD_EACH, .make = translate_pod_container_down},
    {"containers", FIELD_EACH, .make = translate_pod_container_down},
    {"restartPolicy", FIELD_SCALAR},
    {"terminationGracePeriodSeconds", FIELD_SCALAR},
    {"hostNetwork", FIELD_SCALAR, .privileged = true},
    {"hostPID", FIELD_SCALAR, .privileged = true},
    {"hostIPC", FIELD_SCALAR, .privileged = true},
    {"hostUsers", FIELD_SCALAR},
    {"shareProcessNamespace", FIELD_SCALAR},
    {"securityContext", FIELD_OBJECT, .fields = POD_SECURITY_FIELDS},
    {"imagePullSecrets", FIELD_LIST, .fields = PULL_SECRET_FIELDS},
    {"hostnameOverride", FIELD_SCALAR},
    {"readinessGates", FIELD_LIST, .fields = GATE_FIELDS},
    {"topologySpreadConstraints", FIELD_EACH, .make = translate_pod_spread_down},
    {"os", FIELD_OBJECT, .fields = OS_FIELDS},
    {"resources", FIELD_MAKE, .make = translate_pod_resources_down},
    {"resourceClaims", FIELD_EACH, .make = translate_pod_claim_down},
    {0},
};

/* ---- names and addresses ---- */

static void add_hostname(struct down *d, cJSON *spec)
{
    struct str wanted = json_str(json_get(d->spec, "hostname"));
    struct str name = str_sub(wanted.n ? wanted : d->name, 0, 63);
    char text[64];
    size_t n = name.n;

    if (json_get(spec, "hostnameOverride") || !n)
        return;
    for (size_t i = 0; i < n; i++)
        text[i] = name.p[i] == '.' ? '-' : name.p[i];
    while (n && text[n - 1] == '-')
        n--;
    add_str(d->arena, spec, "hostname", (struct str){text, n});
}

static const struct field ALIAS_FIELDS[] = {
    {"ip", FIELD_SCALAR},
    {"hostnames", FIELD_SCALARS},
    {0},
};

/* The tenant's API under its usual names, also where the host's DNS answers. */
static void add_host_aliases(struct down *d, cJSON *spec)
{
    struct str domain = d->tenant->config->cluster_domain;
    cJSON *list = json_new_array(d->arena), *alias, *names;

    json_each(one, json_get(d->spec, "hostAliases"))
    {
        if (json_is_object(one))
            json_append(list, shape_copy(d, ALIAS_FIELDS, one));
    }
    if (d->tenant->api_ip.n) {
        alias = json_append(list, json_new_object(d->arena));
        add_str(d->arena, alias, "ip", d->tenant->api_ip);
        names = object_add(d->arena, alias, STR("hostnames"), json_new_array(d->arena));
        json_append(names,
                    json_new_string(d->arena, arena_printf(d->arena, "kubernetes.default.svc.%.*s",
                                                           STR_F(domain))));
        json_append(names, json_new_string(d->arena, STR("kubernetes.default.svc")));
        json_append(names, json_new_string(d->arena, STR("kubernetes.default")));
        if (str_eqc(d->ns, "default"))
            json_append(names, json_new_string(d->arena, STR("kubernetes")));
    }
    if (json_count(list))
        object_add(d->arena, spec, STR("hostAliases"), list);
}

/* ---- what the pool decides ---- */

static void add_deadline(struct down *d, cJSON *spec)
{
    int64_t seconds = json_i64_at(d->spec, "activeDeadlineSeconds", 0);
    int64_t most = d->pool ? d->pool->max_lifetime_s : 0;

    if (most && (!seconds || seconds > most))
        seconds = most;
    if (seconds)
        json_set_i64(d->arena, spec, "activeDeadlineSeconds", seconds);
}

/* By the tiers of the pool, if it has any; else the class that the tenant's is mapped to, one that
 * is shown, or that of all pods. */
static struct str priority_down(const struct down *d, struct str class)
{
    struct str mapped;

    if (d->pool && json_count(d->pool->priority_tiers))
        return translate_priority_tier(d->tenant, d->pool, d->spec);
    if (translate_priority_map(d->tenant->config, d->spec, &mapped) && mapped.n)
        return mapped;
    return translate_shows(d->tenant, FROM_PRIORITY_CLASSES, class)
               ? class
               : d->tenant->config->to_host->pod_priority_class;
}

/* The pool's, whatever the pod names; else one that is shown, or that of all pods. */
static void add_runtime_class(struct down *d, cJSON *spec)
{
    struct str class = json_str(json_get(d->spec, "runtimeClassName"));

    if (d->pool && d->pool->runtime_class.n)
        class = d->pool->runtime_class;
    else if (!translate_shows(d->tenant, FROM_RUNTIME_CLASSES, class))
        class = d->tenant->config->to_host->pod_runtime_class;
    if (class.n)
        add_str(d->arena, spec, "runtimeClassName", class);
}

static void add_placement(struct down *d, cJSON *spec)
{
    cJSON *selector = translate_pod_node_selector_down(d, json_get(d->spec, "nodeSelector"));
    cJSON *affinity = translate_pod_affinity_down(d, json_get(d->spec, "affinity"));
    cJSON *tolerations = translate_pod_tolerations_down(d, json_get(d->spec, "tolerations"));
    struct str tier;

    if (selector)
        object_add(d->arena, spec, STR("nodeSelector"), selector);
    if (affinity)
        object_add(d->arena, spec, STR("affinity"), affinity);
    if (tolerations)
        object_add(d->arena, spec, STR("tolerations"), tolerations);
    tier = priority_down(d, json_str(json_get(d->spec, "priorityClassName")));
    if (tier.n)
        add_str(d->arena, spec, "priorityClassName", tier);
    if (d->pool && d->pool->scheduler.n)
        add_str(d->arena, spec, "schedulerName", d->pool->scheduler);
    add_runtime_class(d, spec);
}

/* The tenant's own account, where it goes down; it is on the host before the pod is. */
static void add_account(struct down *d, cJSON *spec)
{
    const struct config *config = d->tenant->config;
    struct str own = json_str(json_get(d->spec, "serviceAccountName"));

    if (config->to_host->enabled[DOWN_SERVICE_ACCOUNTS] && own.n)
        add_str(d->arena, spec, "serviceAccountName", shape_name_down(d, own));
    else if (config->pod_service_account.n)
        add_str(d->arena, spec, "serviceAccountName", config->pod_service_account);
}

static cJSON *spec_down(struct down *d)
{
    cJSON *spec = shape_copy(d, SPEC_FIELDS, d->spec);

    add_deadline(d, spec);
    add_hostname(d, spec);
    translate_pod_dns_down(d, spec);
    add_host_aliases(d, spec);
    add_placement(d, spec);
    add_account(d, spec);
    /* The host must neither mint a token for the tenant nor reveal the host's Services. */
    json_set_bool(d->arena, spec, "automountServiceAccountToken", false);
    json_set_bool(d->arena, spec, "enableServiceLinks", false);
    return spec;
}

/* ---- the pod ---- */

static void down_init(struct down *d, struct arena *a, const struct translate_tenant *t,
                      const struct pool_choice *choice, const cJSON *vpod, const cJSON *services)
{
    size_t containers;

    *d = (struct down){.arena = a, .tenant = t, .object = vpod, .services = services};
    d->meta = json_get(vpod, "metadata");
    d->spec = json_get(vpod, "spec");
    d->ns = json_str(json_get(d->meta, "namespace"));
    d->name = json_str(json_get(d->meta, "name"));
    d->privileged = t->config->pod_security == POD_SECURITY_PRIVILEGED;
    d->claims = translate_pod_claims_allowed(t);
    d->pool = choice && choice->binding ? choice->binding->pool : NULL;
    containers = json_count(json_get(d->spec, "containers")) +
                 json_count(json_get(d->spec, "initContainers"));
    d->links_budget = LINKS_BYTES_MAX / (containers + 1);
    translate_token_secret_name(t, d->ns, d->name, d->token_secret);
}

/* "Job/train": whose pod it is, by name. A Deployment stands for its ReplicaSets. */
static void add_owner(struct arena *a, cJSON *notes, const cJSON *vpod)
{
    const cJSON *owner = owner_controller(vpod);
    struct str kind = json_str(json_get(owner, "kind")), name = json_str(json_get(owner, "name"));
    struct str hash = json_str(json_get(json_path(vpod, "metadata.labels"), "pod-template-hash"));

    if (!name.n || !kind.n)
        return;
    if (str_eqc(kind, "ReplicaSet") && hash.n && name.n > hash.n + 1 &&
        str_has_suffix(name, arena_printf(a, "-%.*s", STR_F(hash)))) {
        kind = STR("Deployment");
        name.n -= hash.n + 1;
    }
    add_str(a, notes, ANNOTATION_OWNER,
            arena_printf(a, "%.*s/%.*s", STR_F(str_clip(kind, NAME_LONGEST)),
                         STR_F(str_clip(name, NAME_LONGEST))));
}

int translate_pod(struct arena *a, const struct translate_tenant *t,
                  const struct pool_choice *choice, const cJSON *vpod, const cJSON *services,
                  cJSON **ret, struct err *err)
{
    struct down d;
    cJSON *metadata, *spec;
    char name[64];

    down_init(&d, a, t, choice, vpod, services);
    if (!d.name.n || !d.ns.n)
        return err_set(err, &ERR_BAD_REQUEST,
                       "a pod without name or namespace cannot be translated");
    if (translate_check_pod(a, t, d.ns, vpod, err) || gpu_count_pod(a, vpod, &d.requested, err))
        return -1;

    translate_name(t, d.ns, d.name, name);
    metadata = translate_metadata(a, t, vpod, str_c(name));
    if (d.pool) {
        cJSON *labels = json_get(metadata, "labels");

        add_str(a, labels, LABEL_POOL, d.pool->name);
        add_str(a, labels, LABEL_MODE, config_mode_name(d.pool->mode));
        add_owner(a, json_get(metadata, "annotations"), vpod);
        translate_pod_queue_down(&d, labels, json_get(metadata, "annotations"));
        translate_pod_fraction_down(&d, json_get(metadata, "annotations"));
        translate_pod_gang_down(&d, choice->gang, choice->gang_size, labels,
                                json_get(metadata, "annotations"));
    }
    d.notes = json_get(metadata, "annotations");
    translate_pod_autoscaler_down(&d, d.notes);
    spec = spec_down(&d);
    if (d.pool)
        translate_pod_scheduling_group_down(&d, choice->gang, spec);
    translate_pod_sent_note(a, d.notes, spec, d.spec);
    *ret = json_object(a, JSON("apiVersion", "v1"), JSON("kind", "Pod"), JSON("metadata", metadata),
                       JSON("spec", spec));
    return 0;
}

bool translate_pod_gated(const cJSON *vpod)
{
    return json_count(json_path(vpod, "spec.schedulingGates")) > 0;
}

int translate_ephemeral(struct arena *a, const struct translate_tenant *t,
                        const struct pool_choice *choice, const cJSON *vpod, const cJSON *host_now,
                        cJSON **ret, struct err *err)
{
    const cJSON *have = json_path(host_now, "spec.ephemeralContainers");
    cJSON *list = NULL;
    struct down d;

    *ret = NULL;
    down_init(&d, a, t, choice, vpod, NULL);
    d.ephemeral = true;
    if (translate_check_pod(a, t, d.ns, vpod, err))
        return -1;
    json_each(container, json_get(d.spec, "ephemeralContainers"))
    {
        struct str name = json_str(json_get(container, "name"));
        bool there = false;

        json_each(one, have)
        {
            there |= str_eq(json_str(json_get(one, "name")), name);
        }
        if (there)
            continue;
        list = list ? list : json_new_array(a);
        json_append(list, translate_pod_container_down(&d, container));
    }
    if (!list)
        return 0;
    *ret = json_object(a, JSON("spec", json_object(a, JSON("ephemeralContainers", list))));
    return 0;
}
