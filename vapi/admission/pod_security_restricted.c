/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the restricted level beyond baseline. Each check has upstream's message
 * (k8s.io/pod-security-admission policy); the table in pod_security_rules.c has its first version.
 * A check must never change: a policy may name the version it came with. */
#include "pod_security_helpers.h"

static bool may_escalate(struct found *f, const cJSON *container)
{
    (void)f;
    return !security_is_false(security_context(container, "allowPrivilegeEscalation"));
}

bool security_escalation(struct check *k)
{
    struct found f = security_found(k);

    security_visit(k, &f, may_escalate);
    return !security_any(&f) ||
           security_refuse(
               k, "allowPrivilegeEscalation != false",
               arena_printf(k->arena,
                            "%.*s must set securityContext.allowPrivilegeEscalation=false",
                            STR_F(security_bad_containers(&f))));
}

bool security_escalation_25(struct check *k)
{
    return security_is_windows(k) || security_escalation(k);
}

static bool keeps_capabilities(struct found *f, const cJSON *container)
{
    (void)f;
    return !json_list_has(security_context(container, "capabilities.drop"), STR("ALL"));
}

static bool adds_capability(struct found *f, const cJSON *container)
{
    static const char *const fine[] = {"NET_BIND_SERVICE", NULL};

    return security_others(f, security_context(container, "capabilities.add"), fine);
}

bool security_capabilities_restricted(struct check *k)
{
    struct found keeping = security_found(k), adding = security_found(k);
    struct strings details = {.arena = k->arena};

    security_visit(k, &keeping, keeps_capabilities);
    security_visit(k, &adding, adds_capability);
    security_strings_unite(&adding.values);
    if (security_any(&keeping))
        security_strings_add(
            &details,
            arena_printf(k->arena, "%.*s must set securityContext.capabilities.drop=[\"ALL\"]",
                         STR_F(security_bad_containers(&keeping))));
    if (security_any(&adding))
        security_strings_add(
            &details,
            arena_printf(k->arena, "%.*s must not include %.*s in securityContext.capabilities.add",
                         STR_F(security_bad_containers(&adding)),
                         STR_F(security_join_quoted(&adding.values))));
    return !details.n ||
           security_refuse(k, "unrestricted capabilities", security_join(&details, "; "));
}

bool security_capabilities_restricted_25(struct check *k)
{
    return security_is_windows(k) || security_capabilities_restricted(k);
}

/* The type of a volume that is not allowed; NULL for an allowed one. */
static const char *restricted_type(const cJSON *volume)
{
    static const char *const allowed[] = {
        "configMap", "csi",   "downwardAPI",           "emptyDir",
        "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret"};
    static const char *const restricted[] = {"hostPath",
                                             "gcePersistentDisk",
                                             "awsElasticBlockStore",
                                             "gitRepo",
                                             "nfs",
                                             "iscsi",
                                             "glusterfs",
                                             "rbd",
                                             "flexVolume",
                                             "cinder",
                                             "cephfs",
                                             "flocker",
                                             "fc",
                                             "azureFile",
                                             "vsphereVolume",
                                             "quobyte",
                                             "azureDisk",
                                             "photonPersistentDisk",
                                             "portworxVolume",
                                             "scaleIO",
                                             "storageos"};

    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
        if (json_get(volume, allowed[i]))
            return NULL;
    for (size_t i = 0; i < sizeof(restricted) / sizeof(*restricted); i++)
        if (json_get(volume, restricted[i]))
            return restricted[i];
    return "unknown";
}

bool security_restricted_volumes(struct check *k)
{
    struct strings bad = {.arena = k->arena}, types = {.arena = k->arena};

    json_each(volume, json_get(k->spec, "volumes"))
    {
        const char *type = restricted_type(volume);

        if (!type)
            continue;
        security_strings_add(&bad, json_str_at(volume, "name"));
        security_strings_add(&types, str_c(type));
    }
    security_strings_unite(&types);
    return !bad.n || security_refuse(k, "restricted volume types",
                                     arena_printf(k->arena, "%.*s %s %s %.*s",
                                                  STR_F(security_named("volume", "volumes", &bad)),
                                                  security_plural(bad.n, "uses", "use"),
                                                  security_plural(types.n, "restricted volume type",
                                                                  "restricted volume types"),
                                                  STR_F(security_join_quoted(&types))));
}

static bool sets_root(struct found *f, const cJSON *object)
{
    (void)f;
    return security_is_false(security_context(object, "runAsNonRoot"));
}

static bool omits_root(struct found *f, const cJSON *container)
{
    (void)f;
    return !json_is_bool(security_context(container, "runAsNonRoot"));
}

bool security_non_root(struct check *k)
{
    struct found setters = security_found(k), silent = security_found(k);

    setters.pod = sets_root(&setters, k->spec);
    security_visit(k, &setters, sets_root);
    if (security_any(&setters))
        return security_refuse(k, "runAsNonRoot != true",
                               arena_printf(k->arena,
                                            "%.*s must not set securityContext.runAsNonRoot=false",
                                            STR_F(security_setters(&setters))));
    if (json_true(security_context(k->spec, "runAsNonRoot")))
        return true;
    security_visit(k, &silent, omits_root);
    return !security_any(&silent) ||
           security_refuse(k, "runAsNonRoot != true",
                           arena_printf(k->arena,
                                        "pod or %.*s must set securityContext.runAsNonRoot=true",
                                        STR_F(security_bad_containers(&silent))));
}

bool security_non_root_35(struct check *k)
{
    return security_own_users(k) || security_non_root(k);
}

static bool is_zero(const cJSON *node)
{
    int64_t value;

    return json_i64(node, &value) && value == 0;
}

static bool is_root(struct found *f, const cJSON *object)
{
    (void)f;
    return is_zero(security_context(object, "runAsUser"));
}

bool security_not_user_0(struct check *k)
{
    struct found f = security_found(k);

    f.pod = is_root(&f, k->spec);
    security_visit(k, &f, is_root);
    return !security_any(&f) ||
           security_refuse(k, "runAsUser=0",
                           arena_printf(k->arena, "%.*s must not set runAsUser=0",
                                        STR_F(security_setters(&f))));
}

bool security_not_user_0_35(struct check *k)
{
    return security_own_users(k) || security_not_user_0(k);
}

static bool no_seccomp(struct found *f, const cJSON *container)
{
    (void)f;
    return !security_context(container, "seccompProfile");
}

bool security_seccomp_restricted(struct check *k)
{
    struct found silent = security_found(k);

    if (!security_seccomp_baseline_19(k))
        return false;
    if (security_context(k->spec, "seccompProfile"))
        return true;
    security_visit(k, &silent, no_seccomp);
    return !security_any(&silent) ||
           security_refuse(
               k, "seccompProfile",
               arena_printf(k->arena,
                            "pod or %.*s must set securityContext.seccompProfile.type to "
                            "\"RuntimeDefault\" or \"Localhost\"",
                            STR_F(security_bad_containers(&silent))));
}

bool security_seccomp_restricted_25(struct check *k)
{
    return security_is_windows(k) || security_seccomp_restricted(k);
}
