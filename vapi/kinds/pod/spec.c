/* SPDX-License-Identifier: Apache-2.0 */
/* Pod specs, of pods and of templates. What a host would judge anyway (policy, quota, whether a
 * class exists) is left to it. Source: ValidatePodSpec, ValidatePodTemplateSpec and
 * ValidatePodSpecificAnnotations in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <string.h>

static const struct field_path METADATA = {.name = "metadata"};

/* ---- parts of the spec ---- */

static void check_dns_names(struct field_errors *e, const struct field_path *p,
                            const cJSON *searches)
{
    size_t total = 0;

    if (json_count(searches) > 32)
        field_invalid(e, p, searches, "must not have more than 32 search paths");
    json_each(search, searches) total += json_str(search).n + (search != searches->child);
    if (total > 2048)
        field_invalid(e, p, searches,
                      "must not have more than 2048 characters (including spaces) in the search "
                      "list");
    field_each(search, at, p, searches)
    {
        struct str name = json_str(search);

        if (str_eqc(name, "."))
            continue;
        if (str_has_suffix(name, STR(".")))
            name.n--;
        check_underscored_name(e, at, name);
    }
}

static void check_dns(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *config = json_get(spec, "dnsConfig");
    const cJSON *servers = json_get(config, "nameservers");
    const struct field_path *list = FIELD(p, "nameservers"), *options = FIELD(p, "options");
    size_t i = 0;

    if (str_eqc(json_str(json_get(spec, "dnsPolicy")), "None") && !json_count(servers)) {
        field_required(e, config ? list : p,
                       config ? "must provide at least one DNS nameserver when `dnsPolicy` is None"
                              : "must provide `dnsConfig` when `dnsPolicy` is None");
        return;
    }
    if (json_count(servers) > 3)
        field_invalid(e, list, servers, "must not have more than 3 nameservers");
    field_each(server, at, list, servers) check_ip(e, at, json_str(server));
    check_dns_names(e, FIELD(p, "searches"), json_get(config, "searches"));
    i = 0;
    json_each(option, json_get(config, "options"))
    {
        if (!json_str(json_get(option, "name")).n)
            field_required(e, FIELD_INDEX(options, i), "must not be empty");
        i++;
    }
}

static void check_gate(const struct check *c)
{
    const cJSON *name = json_get(c->value, "name");

    check_rule(c->e, c->at, NAME_QUALIFIED, json_str(name));
    if (!names_add(c->seen, json_str(name), c->value))
        field_duplicate(c->e, c->at, name);
}

/* A name that is repeated is not checked again. */
static void check_claim_name(const struct check *c)
{
    if (!check_given(c->e, c->at, json_str(c->value)))
        return;
    if (names_add(c->seen, json_str(c->value), c->value))
        check_rule(c->e, c->at, NAME_DNS1123_LABEL, json_str(c->value));
    else
        field_duplicate(c->e, c->at, c->value);
}

#define CLAIM_SOURCES NAMES("resourceClaimName", "resourceClaimTemplateName")
static const struct rule CLAIMS[] = {EACH(
    "resourceClaims", CALL("name", check_claim_name),
    WHEN_ALL(
        NULL, CLAIM_SOURCES,
        INVALID(
            NULL,
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")),
    WHEN_NONE(
        NULL, CLAIM_SOURCES,
        INVALID(NULL, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")),
    NAME_IF_GIVEN("resourceClaimName", DNS1123_SUBDOMAIN),
    NAME_IF_GIVEN("resourceClaimTemplateName", DNS1123_SUBDOMAIN))};

/* Ports of a pod on the node's network are the node's. */
static void check_host_network(struct field_errors *e, const struct field_path *p,
                               const cJSON *spec, const struct pod_rules *rules)
{
    if (!json_true(json_get(spec, "hostNetwork")))
        return;
    member_each(container, at, p, spec, "containers")
    {
        member_each(port, here, at, container, "ports")
        {
            const cJSON *host = json_get(port, "hostPort");
            int64_t number = json_i64_at(port, "hostPort", 0);

            if ((rules->is_pod || number) && number != json_i64_at(port, "containerPort", 0))
                field_invalid(e, FIELD(here, "hostPort"), host ? host : json_new_i64(e->arena, 0),
                              "must match `containerPort` when `hostNetwork` is true");
        }
    }
}

static void on_host_users(void *ctx, const struct field_path *p, const cJSON *container)
{
    if (json_count(json_get(container, "volumeDevices")))
        field_forbidden(ctx, FIELD(p, "volumeDevices"), "when `hostUsers` is false");
}

static void check_host_users(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *users = json_get(spec, "hostUsers");
    static const struct {
        const char *name, *shown;
    } shared[] = {{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}};

    if (!users || json_true(users))
        return;
    for (size_t i = 0; i < COUNT(shared); i++) {
        if (json_true(json_get(spec, shared[i].name)))
            field_forbidden(e, FIELD(p, shared[i].shown), "when `hostUsers` is false");
    }
    kinds_pod_each_container(p, spec, on_host_users, e);
}

/* ---- the spec ---- */

static void check_resources(struct pod_check *c, const struct field_path *p)
{
    const cJSON *resources = json_get(c->spec, "resources");

    if (!resources)
        return;
    if (str_eqc(json_str_at(c->spec, "os.name"), "windows")) {
        field_forbidden(c->e, p, "may not be set for a windows pod");
        return;
    }
    if (json_get(resources, "claims"))
        field_forbidden(c->e, FIELD(p, "claims"),
                        "claims may not be set for Resources at pod-level");
    validate_requirements(c->e, p, resources, &c->claims, true);
    validate_pod_amounts(c->e, p, c->spec);
}

static void check_containers(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                             const struct pod_rules *rules)
{
    const cJSON *users = json_get(spec, "hostUsers");
    struct pod_check c = {
        .e = e,
        .spec = spec,
        .volumes = {.arena = e->arena},
        .claims = {.arena = e->arena},
        .host_users = !users || json_true(users),
    };

    validate_volumes(e, FIELD(p, "volumes"), json_get(spec, "volumes"), rules, &c.volumes);
    json_each(claim, json_get(spec, "resourceClaims"))
    {
        if (json_str(json_get(claim, "name")).n)
            names_add(&c.claims, json_str(json_get(claim, "name")), claim);
    }
    rules_check_value(e, p, spec, NULL, CLAIMS, COUNT(CLAIMS));
    validate_containers(&c, p);
    check_resources(&c, FIELD(p, "resources"));
}

void validate_overhead(struct field_errors *e, const struct field_path *p, const cJSON *overhead)
{
    struct names none = {.arena = e->arena};
    cJSON *requirements = json_new_object(e->arena);

    json_set(e->arena, requirements, "limits", json_copy(e->arena, overhead));
    validate_requirements(e, p, requirements, &none, false);
}

static void check_parts(const struct check *c)
{
    check_containers(c->e, c->at, c->value, c->context);
    check_host_network(c->e, c->at, c->value, c->context);
}

static void check_security(const struct check *c)
{
    validate_pod_security(c->e, FIELD(c->at, "securityContext"),
                          json_get(c->value, "securityContext"), c->value);
    validate_affinity(c->e, FIELD(c->at, "affinity"), json_get(c->value, "affinity"));
    check_dns(c->e, FIELD(c->at, "dnsConfig"), c->value);
}

/* context: struct pod_rules. */
static const struct rule SPEC_RULES[] = {
    REQUIRED("terminationGracePeriodSeconds", ""),
    CALL(NULL, check_parts),
    ENUM("restartPolicy", ENUM_RESTART_POLICY_DECLARED),
    ENUM("dnsPolicy", ENUM_DNS_POLICY_DECLARED),
    LABELS("nodeSelector"),
    CALL(NULL, check_security),
    EACH("readinessGates", NAME_ALWAYS("conditionType", QUALIFIED)),
    EACH("schedulingGates", CALL(NULL, check_gate)),
    CHECK("topologySpreadConstraints", validate_spread),
    CHECK_ALWAYS(NULL, validate_host_process),
    CHECK_ALWAYS(NULL, check_host_users),
    WHEN_TRUE(NULL, "setHostnameAsFQDN",
              FORBIDDEN("hostnameOverride", "may not be specified when setHostnameAsFQDN is true")),
    WHEN_TRUE(NULL, "hostNetwork",
              FORBIDDEN("hostnameOverride", "may not be specified when hostNetwork is true")),
    MAX_LENGTH("hostnameOverride", 64),
    NAME_IF_GIVEN("hostnameOverride", DNS1123_SUBDOMAIN),
    NAME_IF_SET("serviceAccountName", DNS1123_SUBDOMAIN),
    NAME_IF_SET("nodeName", DNS1123_SUBDOMAIN),
    NAME_IF_SET("hostname", DNS1123_LABEL),
    NAME_IF_SET("subdomain", DNS1123_LABEL),
    NAME_IF_SET("priorityClassName", DNS1123_SUBDOMAIN),
    NAME_IF_GIVEN("runtimeClassName", DNS1123_SUBDOMAIN),
    RANGE("activeDeadlineSeconds", 1, INT32_MAX),
    INSIDE("tolerations", ALL(RULES_TOLERATIONS)),
    EACH("hostAliases", TEST_STR("ip", check_ip), EACH_NAME("hostnames", DNS1123_SUBDOMAIN)),
    WITHIN("preemptionPolicy", ENUM(NULL, ENUM_PREEMPTION_POLICY_DECLARED)),
    CHECK("overhead", validate_overhead),
    CHECK_ALWAYS(NULL, validate_os),
    CHECK_ALWAYS(NULL, validate_file_variables),
};

static void validate_pod_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                              const struct pod_rules *rules)
{
    rules_check_value(e, p, spec, rules, SPEC_RULES, COUNT(SPEC_RULES));
}

/* ---- annotations that mean something ---- */

#define MIRROR   "kubernetes.io/config.mirror"
#define COST     "controller.kubernetes.io/pod-deletion-cost"
#define APPARMOR "container.apparmor.security.beta.kubernetes.io/"

static bool is_cost(struct str text)
{
    int64_t cost;

    if (text.n > 1 && text.p[0] == '+')
        return false;
    return str_to_i64(text, &cost) && cost >= INT32_MIN && cost <= INT32_MAX &&
           !(text.n > 1 && text.p[0] == '0');
}

static bool has_container(const cJSON *spec, struct str name)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};

    for (size_t i = 0; i < COUNT(lists); i++) {
        json_each(c, json_get(spec, lists[i]))
        {
            if (str_eq(json_str(json_get(c, "name")), name))
                return true;
        }
    }
    return false;
}

static void check_app_armor(struct field_errors *e, const struct field_path *p,
                            const cJSON *annotation, const cJSON *spec)
{
    struct str key = str_c(annotation->string), profile = json_str(annotation);
    struct str container = str_from(key, sizeof(APPARMOR) - 1);

    if (!has_container(spec, container))
        field_invalid_str(e, FIELD_KEY(p, key), container, "container not found");
    if (profile.n && !str_eqc(profile, "runtime/default") && !str_eqc(profile, "unconfined") &&
        !str_has_prefix(profile, STR("localhost/")))
        field_invalid_str_printf(e, FIELD_KEY(p, key), profile,
                                 "invalid AppArmor profile name: \"%.*s\"", STR_F(profile));
}

static void validate_pod_annotations(struct field_errors *e, const struct field_path *p,
                                     const cJSON *annotations, const cJSON *spec)
{
    const cJSON *mirror = json_get(annotations, MIRROR), *cost = json_get(annotations, COST);

    if (mirror && !json_str(json_get(spec, "nodeName")).n)
        field_invalid(e, FIELD_KEY(p, STR(MIRROR)), mirror,
                      "must set spec.nodeName if mirror pod annotation is set");
    if (cost && !is_cost(json_str(cost)))
        field_invalid(e, FIELD_KEY(p, STR(COST)), cost, "must be a 32bit integer");
    json_each(annotation, annotations)
    {
        if (str_has_prefix(str_c(annotation->string), STR(APPARMOR)))
            check_app_armor(e, p, annotation, spec);
    }
}

/* ---- templates ---- */

void validate_pod_template(struct field_errors *e, const struct field_path *p,
                           const cJSON *template_)
{
    static const struct pod_rules rules = {.is_pod = false};
    const cJSON *spec = json_get(template_, "spec");
    const cJSON *annotations = json_path(template_, "metadata.annotations");

    validate_labels(e, FIELD(p, "labels"), json_path(template_, "metadata.labels"));
    check_annotations(e, FIELD(p, "annotations"), annotations);
    validate_pod_annotations(e, FIELD(p, "annotations"), annotations, spec);
    validate_pod_spec(e, FIELD(p, "spec"), spec, &rules);
    if (json_count(json_get(spec, "ephemeralContainers")))
        field_forbidden(e, FIELD(FIELD(p, "spec"), "ephemeralContainers"),
                        "ephemeral containers not allowed in pod template");
}

/* ---- pods ---- */

static void check_padding(struct field_errors *e, const struct field_path *p, struct str image)
{
    if (str_trim(image).n != image.n)
        field_invalid_str(e, p, image, "must not have leading or trailing whitespace");
}

static const struct rule IMAGES[] = {
    EACH("containers", CHECK_STR("image", check_padding)),
    EACH("initContainers", CHECK_STR("image", check_padding)),
};

/* A token is of an account. */
static const struct rule NO_TOKENS[] = {
    EACH("volumes", EACH("projected.sources",
                         FORBIDDEN("serviceAccountToken",
                                   "must not be specified when serviceAccountName is not set"))),
};

void validate_whole_pod(struct field_errors *e, const cJSON *pod)
{
    const struct pod_rules rules = {.is_pod = true, .name = json_str_at(pod, "metadata.name")};
    const cJSON *spec = json_get(pod, "spec");

    validate_pod_annotations(e, FIELD(&METADATA, "annotations"),
                             json_path(pod, "metadata.annotations"), spec);
    validate_pod_spec(e, &KINDS_SPEC, spec, &rules);
    if (!json_str(json_get(spec, "serviceAccountName")).n)
        rules_check_value(e, &KINDS_SPEC, spec, NULL, NO_TOKENS, COUNT(NO_TOKENS));
    rules_check_value(e, &KINDS_SPEC, spec, NULL, IMAGES, COUNT(IMAGES));
}
