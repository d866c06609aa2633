/* SPDX-License-Identifier: Apache-2.0 */
/* Services: what they default to and what an update keeps; service_checks.c validates them. Must
 * not choose addresses or ports: the allocator does. Source: pkg/apis/core/v1/defaults.go,
 * pkg/registry/core/service/strategy.go. */
#include "../rules/kind.h"
#include "service.h"

/* ---- defaults ---- */

bool kinds_service_is(const cJSON *spec, const char *type)
{
    return kinds_text_is(spec, "type", type);
}

static bool wants_node_port(const cJSON *spec)
{
    return kinds_service_is(spec, "NodePort") || kinds_service_is(spec, "LoadBalancer");
}

bool kinds_service_is_external(const cJSON *spec)
{
    return wants_node_port(spec) ||
           (kinds_service_is(spec, "ClusterIP") && json_count(json_get(spec, "externalIPs")));
}

bool kinds_service_wants_health_port(const cJSON *spec)
{
    return kinds_service_is(spec, "LoadBalancer") &&
           kinds_text_is(spec, "externalTrafficPolicy", "Local");
}

static const struct default_rule SERVICE[] = {
    SET_TEXT_Z("spec+.sessionAffinity", "None"),
    SET_TEXT_Z("spec+.type", "ClusterIP"),
    SET_TEXT_Z("spec+.ports[].protocol", "TCP"),
};

static void default_ports(struct arena *a, cJSON *ports)
{
    json_each(port, ports)
    {
        const cJSON *target = json_get(port, "targetPort"), *number = json_get(port, "port");

        if (number && (!target || (json_is_string(target) && !json_str(target).n) ||
                       (json_is_number(target) && target->valuedouble == 0)))
            json_set(a, port, "targetPort", json_copy(a, number));
    }
}

static void service_defaults(struct arena *a, cJSON *service)
{
    cJSON *spec = json_get(service, "spec");
    struct str affinity = json_str(json_get(spec, "sessionAffinity"));

    if (str_eqc(affinity, "None"))
        json_remove(spec, "sessionAffinityConfig");
    if (str_eqc(affinity, "ClientIP") &&
        !json_path(spec, "sessionAffinityConfig.clientIP.timeoutSeconds"))
        json_set_i64(a, json_ensure_path(a, spec, "sessionAffinityConfig.clientIP"),
                     "timeoutSeconds", 10800);
    default_ports(a, json_get(spec, "ports"));
    if (kinds_service_is_external(spec) && !json_str(json_get(spec, "externalTrafficPolicy")).n)
        json_set_str(a, spec, "externalTrafficPolicy", STR("Cluster"));
    if ((wants_node_port(spec) || kinds_service_is(spec, "ClusterIP")) &&
        !json_get(spec, "internalTrafficPolicy"))
        json_set_str(a, spec, "internalTrafficPolicy", STR("Cluster"));
    if (!kinds_service_is(spec, "LoadBalancer"))
        return;
    if (!json_get(spec, "allocateLoadBalancerNodePorts"))
        json_set_bool(a, spec, "allocateLoadBalancerNodePorts", true);
    json_each(ingress, json_path(service, "status.loadBalancer.ingress"))
    {
        if (json_str(json_get(ingress, "ip")).n && !json_get(ingress, "ipMode"))
            json_set_str(a, ingress, "ipMode", STR("VIP"));
    }
}

/* ---- what an update leaves behind when the type changes ---- */

static void drop_if_same(cJSON *spec, const cJSON *old, const char *key)
{
    if (kinds_same_at(spec, old, key))
        json_remove(spec, key);
}

static bool has_node_port(const cJSON *ports, int64_t number)
{
    json_each(p, ports) if (json_i64_at(p, "nodePort", 0) == number) return true;
    return false;
}

static bool adds_node_ports(const cJSON *spec, const cJSON *old)
{
    json_each(p, json_get(spec, "ports"))
    {
        int64_t number = json_i64_at(p, "nodePort", 0);

        if (number && !has_node_port(json_get(old, "ports"), number))
            return true;
    }
    return false;
}

static void drop_by_type(cJSON *spec, const cJSON *old)
{
    if (!kinds_service_is(old, "ExternalName") && kinds_service_is(spec, "ExternalName")) {
        if (kinds_same_at(spec, old, "clusterIP") && kinds_same_at(spec, old, "clusterIPs")) {
            json_remove(spec, "clusterIP");
            json_remove(spec, "clusterIPs");
        }
        drop_if_same(spec, old, "ipFamilies");
        drop_if_same(spec, old, "ipFamilyPolicy");
    }
    if (wants_node_port(old) && !wants_node_port(spec) && !adds_node_ports(spec, old)) {
        json_each(p, json_get(spec, "ports")) json_remove(p, "nodePort");
    }
    if (kinds_service_wants_health_port(old) && !kinds_service_wants_health_port(spec))
        drop_if_same(spec, old, "healthCheckNodePort");
    if (kinds_service_is(old, "LoadBalancer") && !kinds_service_is(spec, "LoadBalancer")) {
        drop_if_same(spec, old, "allocateLoadBalancerNodePorts");
        drop_if_same(spec, old, "loadBalancerClass");
    }
    if (kinds_service_is_external(old) && !kinds_service_is_external(spec))
        drop_if_same(spec, old, "externalTrafficPolicy");
}

/* ---- values that were allocated and a client does not repeat ---- */

static void set_only_address(struct arena *a, cJSON *spec)
{
    json_append(json_set(a, spec, "clusterIPs", json_new_array(a)),
                json_copy(a, json_get(spec, "clusterIP")));
}

static struct str node_port_text(struct arena *a, const cJSON *port)
{
    return arena_printf(a, "%lld", (long long)json_i64_at(port, "nodePort", 0));
}

/* Of the ports with the same name, unless another one took it. */
static void keep_node_ports(struct arena *a, cJSON *spec, const cJSON *old)
{
    struct names ports = {.arena = a}, taken = {.arena = a};

    json_each(p, json_get(spec, "ports")) names_add(&taken, node_port_text(a, p), p);
    json_each(p, json_get(old, "ports")) names_add(&ports, json_str(json_get(p, "name")), p);
    json_each(p, json_get(spec, "ports"))
    {
        const cJSON *was = names_get(&ports, json_str(json_get(p, "name")));

        if (json_i64_at(p, "nodePort", 0) || !json_i64_at(was, "nodePort", 0) ||
            names_has(&taken, node_port_text(a, was)))
            continue;
        json_set(a, p, "nodePort", json_copy(a, json_get(was, "nodePort")));
    }
}

static void keep_allocated(struct arena *a, cJSON *spec, const cJSON *old)
{
    if (!kinds_service_is(spec, "ExternalName") && !kinds_service_is(old, "ExternalName")) {
        if (!json_str_at(spec, "clusterIP").n && json_str_at(old, "clusterIP").n)
            defaults_keep_old(a, spec, old, "clusterIP");
        if (!json_count(json_get(spec, "clusterIPs")) && json_count(json_get(old, "clusterIPs")))
            defaults_keep_old(a, spec, old, "clusterIPs");
    }
    if (wants_node_port(spec) && wants_node_port(old))
        keep_node_ports(a, spec, old);
    if (kinds_service_wants_health_port(spec) && kinds_service_wants_health_port(old) &&
        !json_i64_at(spec, "healthCheckNodePort", 0) && json_get(old, "healthCheckNodePort"))
        defaults_keep_old(a, spec, old, "healthCheckNodePort");
}

/* clusterIP and clusterIPs say the same; older clients know only the first. */
static void sync_addresses(struct arena *a, cJSON *spec, const cJSON *old)
{
    struct str now = json_str(json_get(spec, "clusterIP"));
    struct str was = json_str(json_get(old, "clusterIP"));

    if (str_eq(now, was)) {
        if (json_count(json_get(old, "clusterIPs")) && !json_count(json_get(spec, "clusterIPs")))
            defaults_keep_old(a, spec, old, "clusterIPs");
        return;
    }
    if (now.n && !kinds_same_at(spec, old, "clusterIPs"))
        return;
    if (now.n)
        set_only_address(a, spec);
    else if (kinds_same_at(spec, old, "clusterIPs"))
        json_remove(spec, "clusterIPs");
}

/* Upstream hides what it once set for names of elsewhere; a wrong value is refused first. */
static void hide_internal_policy(cJSON *spec)
{
    if (kinds_service_is(spec, "ExternalName") &&
        kinds_one_of(json_str_at(spec, "internalTrafficPolicy"),
                     ENUM_SERVICE_INTERNAL_TRAFFIC_POLICY))
        json_remove(spec, "internalTrafficPolicy");
}

static void service_prepare_create(struct arena *a, cJSON *service)
{
    cJSON *spec = json_get(service, "spec");

    hide_internal_policy(spec);
    defaults_set_status(a, service, "{\"loadBalancer\":{}}");
    if (json_str_at(spec, "clusterIP").n && !json_count(json_get(spec, "clusterIPs")))
        set_only_address(a, spec);
}

static void service_prepare_update(struct arena *a, cJSON *service, const cJSON *old)
{
    cJSON *spec = json_get(service, "spec"), *status;

    keep_allocated(a, spec, json_get(old, "spec"));
    sync_addresses(a, spec, json_get(old, "spec"));
    drop_by_type(spec, json_get(old, "spec"));
    hide_internal_policy(spec);
    if (kinds_service_is(spec, "LoadBalancer"))
        return;
    status = json_ensure_object(a, service, "status");
    json_set(a, status, "loadBalancer", json_new_object(a));
}

static WARNS(warn_service)
{
    const cJSON *spec = json_get(object, "spec");
    struct str type = json_str(json_get(spec, "type"));
    bool external = str_eqc(type, "ExternalName"), ips = json_count(json_get(spec, "externalIPs"));
    /* Without addresses upstream takes a service for headless. */
    bool headless = str_eqc(json_str(json_get(spec, "clusterIP")), "None") && !external;

    (void)a;
    if (json_get(json_path(object, "metadata.annotations"),
                 "service.kubernetes.io/topology-aware-hints"))
        warn(ctx, STR("annotation service.kubernetes.io/topology-aware-hints is deprecated, please "
                      "use service.kubernetes.io/topology-mode instead"));
    if (headless && json_str(json_get(spec, "loadBalancerIP")).n)
        warn(ctx, STR("spec.loadBalancerIP is ignored for headless services"));
    if (headless && ips)
        warn(ctx, STR("spec.externalIPs is ignored for headless services"));
    if (headless && !str_eqc(json_str(json_get(spec, "sessionAffinity")), "None"))
        warn(ctx, STR("spec.SessionAffinity is ignored for headless services"));
    if (ips && !headless && !external)
        warn(ctx, STR("spec.externalIPs is deprecated and may no longer be implemented in some "
                      "clusters"));
    if (external && ips)
        warn(ctx, STR("spec.externalIPs is ignored when spec.type is \"ExternalName\""));
    if (!external && json_str(json_get(spec, "externalName")).n)
        warn(ctx, STR("spec.externalName is ignored when spec.type is not \"ExternalName\""));
    if (str_eqc(json_str(json_get(spec, "trafficDistribution")), "PreferClose"))
        warn(ctx, STR("spec.trafficDistribution: \"PreferClose\" is deprecated; use "
                      "\"PreferSameZone\""));
}

/* ---- cells ---- */

CELL(cell_external)
{
    struct str type = json_str_at(r->object, "spec.type");
    const cJSON *external = json_path(r->object, "spec.externalIPs");
    bool balanced = str_eqc(type, "LoadBalancer");
    struct buf b = BUF_INIT(0);

    if (str_eqc(type, "ExternalName")) {
        cell_text(r, json_str_at(r->object, "spec.externalName"));
        return;
    }
    if (balanced)
        cell_balancer_addresses(&b, r->object);
    if (json_count(external)) {
        buf_addc(&b, b.n ? "," : "");
        buf_add(&b, kinds_join(r->a, external, ","));
    }
    cell_or(r, buf_str(&b), balanced ? "<pending>" : "<none>");
    buf_fini(&b);
}

CELL(cell_service_ports)
{
    struct buf b = BUF_INIT(0);

    json_each(port, json_path(r->object, "spec.ports"))
    {
        int64_t node = json_i64_at(port, "nodePort", 0);

        buf_addc(&b, b.n ? "," : "");
        buf_i64(&b, json_i64_at(port, "port", 0));
        if (node > 0) {
            buf_char(&b, ':');
            buf_i64(&b, node);
        }
        buf_char(&b, '/');
        buf_add(&b, json_str(json_get(port, "protocol")));
    }
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

CELL(cell_cluster_ip)
{
    cell_or(r, json_str(json_at(json_path(r->object, "spec.clusterIPs"), 0)), "<none>");
}

/* ---- the kind ---- */

const struct kind KIND_SERVICE = {
    RESOURCE("", "v1", "Service", "services", "service"),
    .resource.short_names = NAMES("svc"),
    .resource.categories = NAMES("all"),
    .resource.flags =
        RES_NAMESPACED | RES_STATUS | RES_CREATE_ON_UPDATE | RES_DELETE_RETURNS_OBJECT,
    COLUMNS({"Type", "string", .cell = show_text, .path = "spec.type"},
            {"Cluster-IP", "string", .cell = cell_cluster_ip},
            {"External-IP", "string", .cell = cell_external},
            {"Port(s)", "string", .cell = cell_service_ports}, {"Age", "string", .cell = show_age},
            {"Selector", "string", .priority = 1, .cell = show_map, .path = "spec.selector"}),
    FIELDS({"spec.clusterIP", "spec.clusterIP", ""}, {"spec.type", "spec.type", ""}),
    SUBRESOURCES({"proxy", SUB_PROXY,
                  VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
                  "ServiceProxyOptions", NULL},
                 STATUS_OF("Service")),
    .default_rules = DEFAULTS(SERVICE),
    .defaults = service_defaults,
    .prepare_create = service_prepare_create,
    .prepare_update = service_prepare_update,
    .validate_first = validate_service_addresses,
    .rules = RULES(RULES_SERVICE),
    .validate_status = validate_service_status,
    .check_name = name_check_dns1123_label,
    .warnings = warn_service,
};
