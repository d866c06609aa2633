/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of Services. Must never require what the allocator assigns after this: addresses,
 * ports of nodes. Source: ValidateService in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "port.h"
#include "service.h"

static bool is_headless(const cJSON *spec)
{
    const cJSON *ips = json_get(spec, "clusterIPs");

    return json_count(ips) == 1 && str_eqc(json_str(json_first(ips)), "None");
}

/* The pairs of a protocol and a number must be unique. */
static void check_pairs(struct field_errors *e, const struct field_path *p, const cJSON *ports,
                        bool of_node)
{
    const char *key = of_node ? "nodePort" : "port";
    struct names pairs = {.arena = e->arena};

    field_each(port, at, p, ports)
    {
        long long number = json_i64_at(port, key, 0);
        struct str protocol = json_str(json_get(port, "protocol"));
        struct str pair = arena_printf(e->arena, "%.*s/%lld", STR_F(protocol), number);

        if ((of_node && !number) || names_add(&pairs, pair, port))
            continue;
        field_duplicate(e, of_node ? FIELD(at, key) : at, of_node ? json_get(port, key) : port);
    }
}

/* ---- types ---- */

static void check_external_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    if (name.n && name.p[name.n - 1] == '.')
        name = str_sub(name, 0, name.n - 1);
    if (check_given(e, p, name))
        check_rule(e, p, NAME_DNS1123_SUBDOMAIN, name);
}

static void check_by_type(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const char *why = NULL;

    if (!json_count(json_get(spec, "ports")) && !is_headless(spec) &&
        !kinds_service_is(spec, "ExternalName"))
        field_required(e, FIELD(p, "ports"), "");
    if (kinds_service_is(spec, "LoadBalancer"))
        why = "may not be set to 'None' for LoadBalancer services";
    else if (kinds_service_is(spec, "NodePort"))
        why = "may not be set to 'None' for NodePort services";
    if (why && is_headless(spec))
        field_invalid_str(e, FIELD_INDEX(FIELD(p, "clusterIPs"), 0), STR("None"), why);
}

/* ---- addresses ---- */

static void check_both_ips(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    struct str ip = json_str(json_get(spec, "clusterIP"));
    const cJSON *ips = json_get(spec, "clusterIPs");

    if (ip.n && !json_count(ips))
        field_required(e, p, "");
    else if (ip.n && !str_eq(ip, json_str(json_first(ips))))
        field_invalid(e, p, ips, "first value must match `clusterIP`");
    else if (!ip.n && json_count(ips))
        field_invalid(e, p, ips, "must be empty when `clusterIP` is not specified");
}

static const struct rule FAMILIES[] = {
    EACH("ipFamilies", ENUM_ALWAYS(NULL, NAMES("IPv4", "IPv6")), ONCE(NULL)),
    ENUM_IF_GIVEN("ipFamilyPolicy", ENUM_IP_FAMILY_POLICY),
};

static bool check_each_ip(struct field_errors *e, const struct field_path *p, const cJSON *ips,
                          const cJSON *accepted)
{
    bool ok = true;
    size_t i = 0;

    json_each(ip, ips)
    {
        const struct field_path *at = FIELD_INDEX(p, i);

        if (!i++ && str_eqc(json_str(ip), "None")) {
            if (json_count(ips) > 1) {
                field_invalid(e, p, ips, "'None' must be the first and only value");
                ok = false;
            }
        } else if (!check_legacy_ip(e, at, json_str(ip), accepted)) {
            ok = false;
        }
    }
    return ok;
}

static void check_ip_families(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *family = json_first(json_get(spec, "ipFamilies"));
    size_t i = 0;

    json_each(ip, json_get(spec, "clusterIPs"))
    {
        bool want_v6 = str_eqc(json_str(family), "IPv6");

        if (!family)
            return;
        if ((want_v6 || str_eqc(json_str(family), "IPv4")) &&
            kinds_is_ipv6(json_str(ip)) != want_v6)
            field_invalid_printf(e, FIELD_INDEX(p, i), ip,
                                 "expected an %s value as indicated by `ipFamilies[%zu]`",
                                 want_v6 ? "IPv6" : "IPv4", i);
        family = family->next;
        i++;
    }
}

static void check_cluster_ips(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                              const cJSON *old)
{
    const cJSON *ips = json_get(spec, "clusterIPs"), *first = json_first(ips);
    AT(at, p, "clusterIPs");
    bool ok;

    check_both_ips(e, at, spec);
    rules_check_value(e, p, spec, NULL, FAMILIES, COUNT(FAMILIES));
    ok = check_each_ip(e, at, ips, json_get(old, "clusterIPs"));
    if (json_count(ips) > 2)
        field_invalid(e, at, ips, "may only hold up to 2 values");
    if (!ok)
        return;
    if (json_count(ips) > 1 && (json_count(ips) > 2 || kinds_is_ipv6(json_str(first)) ==
                                                           kinds_is_ipv6(json_str(first->next))))
        field_invalid(e, at, ips, "may specify no more than one IP for each IP family");
    if (!is_headless(spec))
        check_ip_families(e, at, spec);
}

/* ---- load balancers and policies ---- */

static void check_balancer(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *allocate = kinds_given(spec, "allocateLoadBalancerNodePorts");
    const cJSON *class_ = kinds_given(spec, "loadBalancerClass");
    AT(at, p, "loadBalancerClass");

    if (!kinds_service_is(spec, "LoadBalancer")) {
        if (allocate)
            field_forbidden(e, FIELD(p, "allocateLoadBalancerNodePorts"),
                            "may only be used when `type` is 'LoadBalancer'");
        if (class_)
            field_forbidden(e, at, "may only be used when `type` is 'LoadBalancer'");
        return;
    }
    if (!allocate)
        field_required(e, FIELD(NULL, "allocateLoadBalancerNodePorts"), "");
    if (class_)
        check_rule(e, at, NAME_QUALIFIED, json_str(class_));
}

static void check_policies(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char *const near[] = {"PreferClose", "PreferSameZone", "PreferSameNode", NULL};
    struct str external = json_str(json_get(spec, "externalTrafficPolicy"));
    const cJSON *internal = kinds_given(spec, "internalTrafficPolicy");
    const cJSON *port = json_get(spec, "healthCheckNodePort");

    if (kinds_service_is_external(spec))
        check_enum(e, FIELD(p, "externalTrafficPolicy"), external,
                   ENUM_SERVICE_EXTERNAL_TRAFFIC_POLICY);
    else if (external.n)
        field_invalid_str(e, FIELD(p, "externalTrafficPolicy"), external,
                          "may only be set for externally-accessible services");
    if (json_i64_at(spec, "healthCheckNodePort", 0)) {
        if (kinds_service_wants_health_port(spec))
            check_port(e, FIELD(p, "healthCheckNodePort"), port);
        else
            field_invalid(e, FIELD(p, "healthCheckNodePort"), port,
                          "may only be set when `type` is 'LoadBalancer' and "
                          "`externalTrafficPolicy` is 'Local'");
    }
    if (!internal && (kinds_service_is(spec, "ClusterIP") || kinds_service_is(spec, "NodePort") ||
                      kinds_service_is(spec, "LoadBalancer")))
        field_required(e, FIELD(p, "internalTrafficPolicy"), "");
    check_enum_if(e, FIELD(p, "internalTrafficPolicy"), internal,
                  ENUM_SERVICE_INTERNAL_TRAFFIC_POLICY);
    check_enum_if(e, FIELD(p, "trafficDistribution"), kinds_given(spec, "trafficDistribution"),
                  near);
}

/* ---- changes ---- */

/* The first of a list stays, the second may come, or go when the policy says so. */
static void check_second(struct field_errors *e, const cJSON *spec, const cJSON *old,
                         const char *key, const char *released)
{
    const cJSON *now = json_get(spec, key), *was = json_get(old, key);
    const cJSON *policy = kinds_given(spec, "ipFamilyPolicy");
    AT(list, &KINDS_SPEC, key);
    const struct field_path *first = FIELD_INDEX(list, 0);

    if (json_count(was) && json_count(now) && !json_equal(json_first(now), json_first(was)))
        field_invalid(e, first, json_get(spec, "clusterIPs"), "may not change once set");
    if (json_count(was) > 1 && json_count(now) == 1 && !str_eqc(json_str(policy), "SingleStack"))
        field_invalid(e, FIELD(&KINDS_SPEC, "ipFamilyPolicy"), policy, released);
}

static void check_list(struct field_errors *e, const cJSON *spec, const cJSON *old, const char *key,
                       const char *released)
{
    const cJSON *now = json_get(spec, key), *was = json_get(old, key);
    bool families = str_eqc(str_c(key), "ipFamilies");
    AT(list, &KINDS_SPEC, key);
    size_t i = 0;

    if (json_count(now) != json_count(was)) {
        check_second(e, spec, old, key, released);
        return;
    }
    json_each(item, was)
    {
        if (!json_equal(item, json_at(now, i)))
            field_invalid(e, FIELD_INDEX(list, families ? 0 : i), now, "may not change once set");
        i++;
    }
}

static void check_addresses_kept(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    bool headless = is_headless(spec), was_headless = is_headless(old);

    if (kinds_service_is(spec, "ExternalName") || kinds_service_is(old, "ExternalName") ||
        (headless && was_headless))
        return;
    if (json_count(json_get(old, "clusterIPs")) && !json_count(json_get(spec, "clusterIPs")))
        field_invalid(e, FIELD_INDEX(FIELD(&KINDS_SPEC, "clusterIPs"), 0), json_new_null(e->arena),
                      "primary clusterIP can not be unset");
    else
        check_list(e, spec, old, "clusterIPs",
                   "must be set to 'SingleStack' when releasing the secondary clusterIP");
    if (headless == was_headless)
        check_list(e, spec, old, "ipFamilies",
                   "must be set to 'SingleStack' when releasing the secondary ipFamily");
}

static void check_update(const struct check *c)
{
    const cJSON *class_ = kinds_given(c->value, "loadBalancerClass");

    check_addresses_kept(c->e, c->value, c->old);
    if (kinds_service_is(c->value, "LoadBalancer") && kinds_service_is(c->old, "LoadBalancer") &&
        !kinds_same_value(class_, kinds_given(c->old, "loadBalancerClass")))
        field_invalid(c->e, FIELD(&KINDS_SPEC, "loadBalancerClass"), class_,
                      "may not change once set");
    if (kinds_service_wants_health_port(c->value) && kinds_service_wants_health_port(c->old) &&
        !kinds_same_at(c->value, c->old, "healthCheckNodePort"))
        field_forbidden(c->e, FIELD(&KINDS_SPEC, "healthCheckNodePort"), IMMUTABLE);
}

/* Upstream's allocator refuses addresses before the strategy validates the Service. */
VALIDATES(validate_service_addresses)
{
    const cJSON *spec = json_get(object, "spec");

    if (!kinds_service_is(spec, "ExternalName"))
        check_cluster_ips(e, &KINDS_SPEC, spec, json_get(old, "spec"));
}

static void check_external_ip(const struct check *c)
{
    if (check_legacy_ip(c->e, c->at, json_str(c->value), json_path(c->before, "spec.externalIPs")))
        check_endpoint_ip(c->e, c->at, json_str(c->value));
}

static void check_port_pairs(const struct check *c)
{
    check_pairs(c->e, c->at, c->value, true);
    check_pairs(c->e, c->at, c->value, false);
}

static void check_source_ranges(const struct check *c)
{
    const cJSON *ranges = json_get(c->value, "loadBalancerSourceRanges");
    AT(p, c->at, "LoadBalancerSourceRanges"); /* upstream's own path */

    if (json_count(ranges) && !kinds_service_is(c->value, "LoadBalancer"))
        field_forbidden(c->e, p, "may only be used when `type` is 'LoadBalancer'");
    field_each(range, at, p, ranges) check_legacy_cidr(
        c->e, at, str_trim(json_str(range)), json_get(c->old, "loadBalancerSourceRanges"));
}

#define FOR_CLIENT_IP "when session affinity type is ClientIP"

static const struct rule AFFINITY[] = {
    ENUM("sessionAffinity", ENUM_SERVICE_AFFINITY),
    WHEN(NULL, "sessionAffinity", "None",
         FORBIDDEN("sessionAffinityConfig", "must not be set when session affinity is None")),
    WHEN(NULL, "sessionAffinity", "ClientIP", REQUIRED("sessionAffinityConfig", FOR_CLIENT_IP),
         WITHIN("sessionAffinityConfig", REQUIRED("clientIP", FOR_CLIENT_IP)),
         WITHIN(
             "sessionAffinityConfig.clientIP", REQUIRED("timeoutSeconds", FOR_CLIENT_IP),
             RANGE_ELSE("timeoutSeconds", 1, 86400, "must be greater than 0 and less than 86400"))),
};

#define NOT_EXTERNAL "may not be set for ExternalName services"

const struct rule RULES_SERVICE[13] = {
    ON_UPDATE(CALL("spec", check_update)),
    CHECK_ALWAYS("spec", check_by_type),
    WHEN("spec", "type", "ExternalName", FORBIDDEN("clusterIPs", NOT_EXTERNAL),
         FORBIDDEN("ipFamilies", NOT_EXTERNAL), FORBIDDEN("ipFamilyPolicy", NOT_EXTERNAL),
         CHECK_STR("externalName", check_external_name)),
    EACH("spec.ports", CALL("name", check_named_port), ONCE_IF_SET("name"), PORT("port"),
         ENUM("protocol", ENUM_PROTOCOL), PORT_OR_NAME("targetPort"),
         NAME_IF_GIVEN("appProtocol", QUALIFIED)),
    LABELS("spec.selector"),
    INSIDE("spec", ALL(AFFINITY)),
    EACH("spec.externalIPs", CALL(NULL, check_external_ip)),
    ENUM("spec.type", ENUM_SERVICE_TYPE),
    WHEN("spec", "type", "ClusterIP",
         EACH("ports", FORBIDDEN("nodePort", "may not be used when `type` is 'ClusterIP'"))),
    CALL("spec.ports", check_port_pairs),
    CALL("spec", check_source_ranges),
    CHECK_ALWAYS("spec", check_balancer),
    CHECK_ALWAYS("spec", check_policies),
};

/* ---- status ---- */

static void check_ingress(struct field_errors *e, const struct field_path *p, const cJSON *ingress,
                          const struct names *accepted)
{
    struct str ip = json_str(json_get(ingress, "ip"));
    struct str host = json_str(json_get(ingress, "hostname"));
    const cJSON *mode = kinds_given(ingress, "ipMode");

    if (ip.n && !names_has(accepted, ip))
        check_ip(e, FIELD(p, "ip"), ip);
    if (!mode && ip.n)
        field_required(e, FIELD(p, "ipMode"), "must be specified when `ip` is set");
    else if (mode && !ip.n)
        field_forbidden(e, FIELD(p, "ipMode"), "may not be specified when `ip` is not set");
    else
        check_enum_if(e, FIELD(p, "ipMode"), mode, ENUM_LOAD_BALANCER_IP_MODE);
    if (!host.n)
        return;
    check_rule(e, FIELD(p, "hostname"), NAME_DNS1123_SUBDOMAIN, host);
    if (kinds_is_ip(e->arena, host))
        field_invalid_str(e, FIELD(p, "hostname"), host, "must be a DNS name, not an IP address");
}

VALIDATES(validate_service_status)
{
    const cJSON *list = json_path(object, "status.loadBalancer.ingress");
    struct names accepted = {.arena = e->arena};
    AT(status, NULL, "status");
    AT(balancer, status, "loadBalancer");
    AT(p, balancer, "ingress");

    if (!kinds_service_is(json_get(object, "spec"), "LoadBalancer") && json_count(list)) {
        field_forbidden(e, p, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    names_add_members(&accepted, json_path(old, "status.loadBalancer.ingress"), "ip");
    field_each(ingress, at, p, list) check_ingress(e, at, ingress, &accepted);
}
