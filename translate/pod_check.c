/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod, or a pod template, must not contain. Why: the tenant learns at apply time, with the
 * field, what would never reach the host. Must never depend on the pool: that is pool_resolve. Must
 * never be the only guard: translate_pod emits by allow-list whatever this let through. */

#include <stdarg.h>
#include <string.h>

#include "shape.h"

#include <sublet/object.h>

/* No workload needs more; without bounds a small request makes a huge host object. */
enum { CONTAINERS_MAX = 256, TERMS_MAX = 64, DOWNWARD_ITEMS_MAX = 512, CLAIMS_MAX = 32 };

struct check {
    struct arena *arena;
    const struct translate_tenant *tenant;
    const cJSON *pod, *spec;
    struct str name;
    bool privileged;
    struct err *err;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct check *c, const char *format,
                                                        ...)
{
    struct str message;
    va_list args;

    va_start(args, format);
    message = str_clip(arena_vprintf(c->arena, format, args), REFUSAL_BYTES);
    va_end(args);
    return err_forbidden(c->err, STR_NULL, STR("pods"), c->name, "%.*s", STR_F(message));
}

/* ---- placement ---- */

static bool is_stored(const struct check *c)
{
    return json_str_at(c->pod, "metadata.resourceVersion").n > 0;
}

/* The node of a stored pod may be deleted, or no longer shown: the pod then runs nowhere. */
static int check_node_name(const struct check *c)
{
    struct str node = json_str(json_get(c->spec, "nodeName"));

    if (!node.n || is_stored(c) || translate_pod_node_meaning(c->tenant, node) != NODE_UNKNOWN)
        return 0;
    return refuse(c, "spec.nodeName: \"%.*s\": this virtual cluster has no such node", STR_F(node));
}

static int check_key(const struct check *c, const char *where, struct str key)
{
    if (!str_has_prefix(key, STR("sublet.dev/")))
        return 0;
    return refuse(c,
                  "%s: %.*s: labels of sublet.dev are not a tenant's to choose nodes by; "
                  "label " LABEL_GPU_POOL " of the pod chooses its pool",
                  where, STR_F(key));
}

static int check_term(const struct check *c, const cJSON *term)
{
    json_each(one, json_get(term, "matchExpressions"))
    {
        if (check_key(c, "spec.affinity.nodeAffinity", json_str(json_get(one, "key"))))
            return -1;
    }

    json_each(field, json_get(term, "matchFields"))
    {
        if (!str_eqc(json_str(json_get(field, "key")), "metadata.name"))
            return refuse(c, "spec.affinity.nodeAffinity: matchFields are allowed on "
                             "metadata.name only");
        json_each(value, json_get(field, "values"))
        {
            if (translate_pod_node_meaning(c->tenant, json_str(value)) == NODE_UNKNOWN)
                return refuse(
                    c,
                    "spec.affinity.nodeAffinity: matchFields metadata.name \"%.*s\": this "
                    "virtual cluster has no such node",
                    STR_F(json_str(value)));
        }
    }
    return 0;
}

static int check_node_terms(const struct check *c, const cJSON *affinity)
{
    const cJSON *required = json_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    const cJSON *preferred = json_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    const cJSON *terms = json_get(required, "nodeSelectorTerms");

    if (json_count(terms) > TERMS_MAX || json_count(preferred) > TERMS_MAX)
        return refuse(c, "spec.affinity.nodeAffinity: more than %d terms", TERMS_MAX);
    if (is_stored(c))
        return 0;
    json_each(term, terms)
    {
        if (check_term(c, term))
            return -1;
    }
    json_each(one, preferred)
    {
        if (check_term(c, json_get(one, "preference")))
            return -1;
    }
    return 0;
}

/* Those of a stored pod can only narrow the fence. */
static int check_node_keys(const struct check *c)
{
    const cJSON *selector = json_get(c->spec, "nodeSelector");

    if (is_stored(c))
        return 0;
    json_each(member, json_is_object(selector) ? selector : NULL)
    {
        if (check_key(c, "spec.nodeSelector", json_key(member)))
            return -1;
    }
    json_each(one, json_get(c->spec, "topologySpreadConstraints"))
    {
        if (check_key(c, "spec.topologySpreadConstraints", json_str(json_get(one, "topologyKey"))))
            return -1;
    }
    return 0;
}

static int check_affinity(const struct check *c)
{
    static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};
    static const char *const lists[] = {"requiredDuringSchedulingIgnoredDuringExecution",
                                        "preferredDuringSchedulingIgnoredDuringExecution"};
    const cJSON *affinity = json_get(c->spec, "affinity");

    for (size_t i = 0; i < 4; i++) {
        const cJSON *list = json_get(json_get(affinity, kinds[i / 2]), lists[i % 2]);

        if (json_count(list) > TERMS_MAX)
            return refuse(c, "spec.affinity.%s: more than %d terms", kinds[i / 2], TERMS_MAX);
        json_each(one, is_stored(c) ? NULL : list)
        {
            const cJSON *term = i % 2 ? json_get(one, "podAffinityTerm") : one;

            if (check_key(c, "spec.affinity", json_str(json_get(term, "topologyKey"))))
                return -1;
        }
    }
    if (json_count(json_get(c->spec, "topologySpreadConstraints")) > TERMS_MAX)
        return refuse(c, "spec.topologySpreadConstraints: more than %d", TERMS_MAX);
    return check_node_terms(c, json_get(affinity, "nodeAffinity"));
}

/* ---- volumes ---- */

static int check_projected(const struct check *c, struct str volume, const cJSON *sources)
{
    static const char *const known[] = {"secret", "configMap", "downwardAPI",
                                        "serviceAccountToken"};

    json_each(source, sources)
    {
        json_each(member, source)
        {
            bool found = json_is_null(member);

            for (size_t i = 0; i < COUNT(known); i++)
                found |= strcmp(member->string ? member->string : "", known[i]) == 0;
            if (!found)
                return refuse(c, "volume \"%.*s\": projected source %.64s is not supported",
                              STR_F(volume), member->string ? member->string : "");
        }
    }
    return 0;
}

static size_t downward_items(const cJSON *volume)
{
    size_t n = json_count(json_get(json_get(volume, "downwardAPI"), "items"));

    json_each(source, json_get(json_get(volume, "projected"), "sources"))
    {
        n += json_count(json_get(json_get(source, "downwardAPI"), "items"));
    }
    return n;
}

static int check_volumes(const struct check *c)
{
    size_t items = 0;

    json_each(volume, json_get(c->spec, "volumes"))
    {
        struct str name = json_str(json_get(volume, "name"));
        enum volume_class class;
        const char *source = translate_pod_volume_source(volume, &class);

        if (class == VOLUME_UNSUPPORTED)
            return refuse(c, "volume \"%.*s\": type %.64s is not supported", STR_F(name), source);
        if (class == VOLUME_PRIVILEGED && !c->privileged)
            return refuse(c, "volume \"%.*s\": type %.64s needs policy.podSecurity privileged",
                          STR_F(name), source);
        if (check_projected(c, name, json_get(json_get(volume, "projected"), "sources")))
            return -1;
        items += downward_items(volume);
    }
    if (items > DOWNWARD_ITEMS_MAX)
        return refuse(c, "more than %d downwardAPI items", DOWNWARD_ITEMS_MAX);
    return 0;
}

/* ---- volumes, claims, counts ---- */

static const char NO_CLAIMS[] = "resource claims need sync.toHost.resourceClaims";

/* An ephemeral container has what was allocated before it, and claims nothing. */
static int check_container_claims(const struct check *c, bool allowed)
{
    for (size_t i = 0; i < 3; i++) {
        json_each(container, json_get(c->spec, POD_CONTAINER_LISTS[i]))
        {
            if (json_count(json_get(json_get(container, "resources"), "claims")) &&
                (!allowed || i == 2))
                return refuse(c, "container \"%.*s\": %s",
                              STR_F(json_str(json_get(container, "name"))),
                              allowed ? "an ephemeral container has no claims" : NO_CLAIMS);
        }
    }
    return 0;
}

static int check_claims(const struct check *c)
{
    bool allowed = translate_pod_claims_allowed(c->tenant);
    size_t n = json_count(json_get(c->spec, "resourceClaims"));

    if (n && !allowed)
        return refuse(c, "spec.resourceClaims: %s", NO_CLAIMS);
    if (n > CLAIMS_MAX)
        return refuse(c, "spec.resourceClaims: more than %d", CLAIMS_MAX);
    if (json_count(json_get(c->spec, "schedulingGroup")) ||
        json_count(json_get(c->spec, "workloadRef")))
        return refuse(c, "spec.schedulingGroup: pod groups are not supported by this version");
    if (json_count(json_path(c->spec, "resources.claims")))
        return refuse(c, "spec.resources.claims: claims are of containers");
    return check_container_claims(c, allowed);
}

/* A condition that a gate names is the tenant's to set on the host pod; that of a stored pod stays
 * there. */
static int check_gates(const struct check *c)
{
    json_each(gate, is_stored(c) ? NULL : json_get(c->spec, "readinessGates"))
    {
        struct str type = json_str(json_get(gate, "conditionType"));

        if (translate_pod_condition_is_reserved(type))
            return refuse(c,
                          "spec.readinessGates: \"%.*s\": conditions of Kubernetes' own are not a "
                          "tenant's to set; a gate has a domain",
                          STR_F(type));
    }
    return 0;
}

static int check_counts(const struct check *c)
{
    size_t n = 0;

    for (size_t i = 0; i < 3; i++)
        n += json_count(json_get(c->spec, POD_CONTAINER_LISTS[i]));
    return n > CONTAINERS_MAX ? refuse(c, "more than %d containers", CONTAINERS_MAX) : 0;
}

/* Only the ephemeral containers are refused: kubectl debug adds capabilities by default. */
static bool is_debugging(const struct check *c, enum pod_security_level level)
{
    cJSON *spec;
    struct str violations;

    if (!json_count(json_get(c->spec, "ephemeralContainers")))
        return false;
    spec = json_copy(c->arena, c->spec);
    json_remove(spec, "ephemeralContainers");
    return pod_security_fence(c->arena, level, spec, &violations);
}

static int check_security(const struct check *c)
{
    enum pod_security_level level = c->tenant->config->pod_security;
    const char *name = level == POD_SECURITY_RESTRICTED ? "restricted" : "baseline";
    struct str violations, hint = STR("");

    if (c->privileged || pod_security_fence(c->arena, level, c->spec, &violations))
        return 0;
    if (is_debugging(c, level))
        hint = arena_printf(c->arena, "; kubectl debug --profile=%s adds a container that complies",
                            name);
    return err_forbidden(c->err, STR_NULL, STR("pods"), c->name,
                         "violates policy.podSecurity \"%s\": %.*s%.*s", name, STR_F(violations),
                         STR_F(hint));
}

int translate_check_pod(struct arena *a, const struct translate_tenant *t, struct str ns,
                        const cJSON *pod, struct err *err)
{
    struct check c = {
        .arena = a, .tenant = t, .pod = pod, .spec = json_get(pod, "spec"), .err = err};

    (void)ns;
    c.privileged = t->config->pod_security == POD_SECURITY_PRIVILEGED;
    c.name = json_str_at(pod, "metadata.name");
    if (!c.name.n)
        c.name = json_str_at(pod, "metadata.generateName");
    if (check_counts(&c) || check_node_name(&c) || check_node_keys(&c) || check_affinity(&c))
        return -1;
    if (check_security(&c) || check_volumes(&c) || check_gates(&c))
        return -1;
    return check_claims(&c);
}
