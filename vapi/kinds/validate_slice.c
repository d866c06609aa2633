/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of EndpointSlices, IPAddresses and ServiceCIDRs, in upstream's words and order. Must never
 * look at the endpoints of an update that leaves them. Source: pkg/apis/discovery/validation,
 * pkg/apis/networking/validation. */
#include "validate.h"

#define MAX_ENDPOINTS 1000
#define MAX_ADDRESSES 100
#define MAX_PORTS     20000
#define MAX_LABELS    16
#define MAX_HINTS     8

/* ---- EndpointSlice ---- */

static void check_domain(struct field_errors *e, const struct field_path *p, struct str shown)
{
    struct str name = str_has_suffix(shown, STR(".")) ? str_sub(shown, 0, shown.n - 1) : shown;
    const char *why;

    if (!check_given(e, p, shown))
        return;
    why = name_check_dns1123_subdomain(name);
    if (why) {
        field_invalid_str(e, p, name, why);
        return;
    }
    if (str_find(name, '.') == name.n) {
        field_invalid_str(e, p, name,
                          "should be a domain with at least two segments separated by "
                          "dots");
        return;
    }
    for (struct str rest = name; rest.p;) {
        struct str label = str_cut(&rest, '.');

        why = name_check_dns1123_label(label);
        if (why) {
            field_invalid_str(e, p, label, why);
            return;
        }
    }
}

static void check_address(struct field_errors *e, const struct field_path *list, size_t i,
                          const cJSON *address, struct str type)
{
    const struct field_path *p = FIELD_INDEX(list, i);
    struct str text = json_str(address);
    bool wants_v6 = str_eqc(type, "IPv6");
    const char *why;

    if (str_eqc(type, "FQDN")) {
        check_domain(e, p, text);
        return;
    }
    if (!wants_v6 && !str_eqc(type, "IPv4"))
        return;
    why = wants_v6 ? canonical_ip_problem(e->arena, text) : ip_problem(text);
    if (why) {
        field_invalid_str(e, p, text, why);
        return;
    }
    if (is_ipv6(text) != wants_v6)
        field_invalid(e, list, address,
                      wants_v6 ? "must be an IPv6 address" : "must be an IPv4 address");
    check_endpoint_ip(e, p, text);
}

static void check_hint_names(struct field_errors *e, const struct field_path *p, const cJSON *list,
                             enum name_rule rule)
{
    struct names seen = {.arena = e->arena};
    size_t i = 0;

    if (json_count(list) > MAX_HINTS) {
        field_too_many(e, p, json_count(list), MAX_HINTS);
        return;
    }
    json_each(hint, list)
    {
        const struct field_path *at = FIELD(FIELD_INDEX(p, i++), "name");
        struct str name = json_str(json_get(hint, "name"));

        if (!names_add(&seen, name, hint))
            field_duplicate(e, at, json_get(hint, "name"));
        check_rule(e, at, rule, name);
    }
}

static void check_endpoint(struct field_errors *e, const struct field_path *p,
                           const cJSON *endpoint, struct str type)
{
    const cJSON *addresses = json_get(endpoint, "addresses"), *hints = given(endpoint, "hints");
    const cJSON *node = given(endpoint, "nodeName"), *host = given(endpoint, "hostname");
    const cJSON *topology = json_get(endpoint, "deprecatedTopology");
    size_t n = json_count(addresses), i = 0;
    AT(at, p, "addresses");

    if (!n)
        field_required(e, at, "must contain at least 1 address");
    else if (n > MAX_ADDRESSES)
        field_too_many(e, at, n, MAX_ADDRESSES);
    json_each(address, addresses) check_address(e, at, i++, address, type);
    if (node)
        check_rule(e, FIELD(p, "nodeName"), NAME_DNS1123_SUBDOMAIN, json_str(node));
    if (json_count(topology) > MAX_LABELS)
        field_too_many(e, FIELD(p, "deprecatedTopology"), json_count(topology), MAX_LABELS);
    validate_labels(e, FIELD(p, "deprecatedTopology"), topology);
    if (host)
        check_rule(e, FIELD(p, "hostname"), NAME_DNS1123_LABEL, json_str(host));
    check_hint_names(e, FIELD(FIELD(p, "hints"), "forZones"), json_get(hints, "forZones"),
                     NAME_LABEL_VALUE);
    check_hint_names(e, FIELD(FIELD(p, "hints"), "forNodes"), json_get(hints, "forNodes"),
                     NAME_DNS1123_SUBDOMAIN);
}

static void check_ports(struct field_errors *e, const cJSON *list)
{
    static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
    struct names seen = {.arena = e->arena};
    AT(p, NULL, "ports");
    size_t i = 0;

    if (json_count(list) > MAX_PORTS) {
        field_too_many(e, p, json_count(list), MAX_PORTS);
        return;
    }
    json_each(port, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        const cJSON *protocol = given(port, "protocol"), *app = given(port, "appProtocol");
        struct str name = json_str(json_get(port, "name"));

        if (name.n)
            check_rule(e, FIELD(at, "name"), NAME_DNS1123_LABEL, name);
        if (!names_add(&seen, name, port))
            field_duplicate(e, FIELD(at, "name"), json_get(port, "name"));
        if (!protocol)
            field_required(e, FIELD(at, "protocol"), "");
        else
            check_enum_if(e, FIELD(at, "protocol"), protocol, protocols);
        if (app)
            check_rule(e, FIELD(at, "appProtocol"), NAME_QUALIFIED, json_str(app));
    }
}

static void check_endpoints(struct field_errors *e, const cJSON *list, struct str type)
{
    AT(p, NULL, "endpoints");
    size_t i = 0;

    if (json_count(list) > MAX_ENDPOINTS) {
        field_too_many(e, p, json_count(list), MAX_ENDPOINTS);
        return;
    }
    json_each(endpoint, list) check_endpoint(e, FIELD_INDEX(p, i++), endpoint, type);
}

void validate_endpoint_slice(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const types[] = {"FQDN", "IPv4", "IPv6", NULL};
    const cJSON *endpoints = json_get(object, "endpoints");
    struct str type = json_str(json_get(object, "addressType"));

    check_enum(e, FIELD(NULL, "addressType"), type, types);
    check_ports(e, json_get(object, "ports"));
    if (!old || !same_value(endpoints, json_get(old, "endpoints")))
        check_endpoints(e, endpoints, type);
    if (old)
        check_immutable(e, FIELD(NULL, "addressType"), json_get(object, "addressType"),
                        json_get(old, "addressType"));
}

/* ---- IPAddress ---- */

static void check_segment(struct field_errors *e, const struct field_path *p, const cJSON *ref,
                          const char *key, bool required)
{
    struct str text = json_str(json_get(ref, key));

    if (text.n)
        check_rule(e, FIELD(p, key), NAME_PATH_SEGMENT, text);
    else if (required)
        field_required(e, FIELD(p, key), "");
}

void validate_ip_address(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *ref = given(object, "spec.parentRef");
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "parentRef");
    struct str group = json_str(json_get(ref, "group"));

    if (old)
        check_immutable(e, p, ref, given(old, "spec.parentRef"));
    if (!ref) {
        field_required(e, p, "");
        return;
    }
    if (group.n)
        check_rule(e, FIELD(p, "group"), NAME_DNS1123_SUBDOMAIN, group);
    check_segment(e, p, ref, "resource", true);
    check_segment(e, p, ref, "name", true);
    check_segment(e, p, ref, "namespace", false);
}

/* ---- ServiceCIDR ---- */

static void check_cidrs(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *list = json_get(spec, "cidrs");
    size_t n = json_count(list), before = e->n, i = 0;

    if (!n)
        field_required(e, p, "at least one CIDR required");
    else if (n > 2)
        field_invalid(e, p, spec, "may only hold up to 2 values");
    if (!n || n > 2)
        return;
    json_each(cidr, list) check_canonical_cidr(e, FIELD_INDEX(p, i++), json_str(cidr));
    if (n == 2 && e->n == before &&
        is_ipv6(json_str(json_at(list, 0))) == is_ipv6(json_str(json_at(list, 1))))
        field_invalid(e, p, list,
                      "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                      "2001:db8::/64");
}

static void check_same_cidrs(struct field_errors *e, const struct field_path *p, const cJSON *list,
                             const cJSON *old, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_immutable(e, FIELD_INDEX(p, i), json_at(list, i), json_at(old, i));
}

void validate_service_cidr(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *list = json_path(object, "spec.cidrs"), *before = json_path(old, "spec.cidrs");
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "cidrs");
    size_t now = json_count(list), was = json_count(before);

    if (!old) {
        check_cidrs(e, p, json_get(object, "spec"));
    } else if (now == was) {
        check_same_cidrs(e, p, list, before, now);
    } else if (was == 1 && now == 2) {
        check_same_cidrs(e, p, list, before, 1);
        check_cidrs(e, p, json_get(object, "spec"));
    } else {
        field_invalid(e, p, list, IMMUTABLE);
    }
}
