/* SPDX-License-Identifier: Apache-2.0 */
/* Services. Why: on the host a Service moves traffic, so its selector must never reach another
 * tenant's pods, and its addresses are the host's to give. What the host allocates (cluster IP,
 * node ports, load balancer) goes up. A tenant never sets it, neither directly nor by way of
 * another type, and none of it is in what translate_service() makes. */

#include <stdio.h>
#include <string.h>

#include <sublet/config_sync.h>
#include <sublet/translate_alias.h>

#include "kind_impl.h"
#include "shape.h"

enum { SOURCE_RANGES_MAX = 64 }; /* each is a rule on every node of the host */

/* ---- what a Service may not say ---- */

static int refuse(struct err *err, const cJSON *service, const char *field, const char *why)
{
    return err_forbidden(err, STR_NULL, STR("services"), json_str_at(service, "metadata.name"),
                         "%s: %s", field, why);
}

static bool is_stored(const cJSON *object)
{
    return json_str_at(object, "metadata.resourceVersion").n > 0;
}

static int check_addresses(const cJSON *service, const cJSON *spec, struct err *err)
{
    if (json_count(json_get(spec, "externalIPs")))
        return refuse(err, service, "spec.externalIPs",
                      "external IPs are not allowed: they take over other tenants' traffic");
    if (json_str(json_get(spec, "loadBalancerIP")).n)
        return refuse(err, service, "spec.loadBalancerIP", "the host chooses the address");
    if (json_count(json_get(spec, "loadBalancerSourceRanges")) > SOURCE_RANGES_MAX)
        return refuse(err, service, "spec.loadBalancerSourceRanges", "at most 64 ranges go down");
    return 0;
}

/* Once stored, a Service carries the ports and the address the host gave it. */
static int check_picks(const cJSON *service, const cJSON *spec, struct err *err)
{
    struct str ip = json_str(json_get(spec, "clusterIP"));

    if (is_stored(service))
        return 0;
    if (ip.n && !str_eqc(ip, "None"))
        return refuse(
            err, service, "spec.clusterIP",
            "picking a cluster IP is not allowed; leave it out and the host allocates one");
    json_each(port, json_get(spec, "ports"))
    {
        if (json_i64_at(port, "nodePort", 0))
            return refuse(
                err, service, "spec.ports.nodePort",
                "picking a node port is not allowed; leave it out and the host allocates one");
    }
    if (json_i64_at(spec, "healthCheckNodePort", 0))
        return refuse(
            err, service, "spec.healthCheckNodePort",
            "picking a node port is not allowed; leave it out and the host allocates one");
    return 0;
}

/* Controllers of the host read annotations of an Ingress from its Services as well. Those that name
 * objects are translated in the Ingress; here they would go down as the tenant wrote them. Host
 * names are judged. old: as checked before; or NULL. */
static int check_notes(struct arena *a, const struct translate_tenant *t, const cJSON *service,
                       const cJSON *old, struct err *err)
{
    const cJSON *notes = json_path(old, "metadata.annotations");

    json_each(note, json_path(service, "metadata.annotations"))
    {
        const cJSON *was = json_get(notes, note->string);
        const char *why = translate_annotation_listed(t, json_key(note))
                              ? translate_kind_note_of_service(t, json_key(note), json_str(note))
                              : NULL;

        if (why && !(was && json_equal(was, note)))
            return refuse(err, service, arena_printf(a, "metadata.annotations[%s]", note->string).p,
                          why);
    }
    return 0;
}

int translate_check_service(struct arena *a, const struct translate_tenant *t, const cJSON *service,
                            struct err *err)
{
    const cJSON *spec = json_get(service, "spec");

    if (check_notes(a, t, service, NULL, err) || check_addresses(service, spec, err))
        return -1;
    return check_picks(service, spec, err);
}

/* ---- what a change of it may not say ---- */

static bool is_listed(struct str list, struct str value)
{
    while (list.n) {
        if (str_eq(str_cut(&list, ','), value))
            return true;
    }
    return false;
}

bool translate_service_gave(struct str given, const cJSON *value)
{
    char number[24];
    int64_t port = 0;

    if (json_is_string(value))
        return is_listed(given, json_str(value));
    if (!json_i64(value, &port))
        return false;
    snprintf(number, sizeof(number), "%lld", (long long)port);
    return is_listed(given, str_c(number));
}

static void add_given(struct buf *b, const cJSON *value)
{
    int64_t port = 0;

    if (json_is_string(value) && (!json_str(value).n || str_eqc(json_str(value), "None")))
        return;
    if (!json_is_string(value) && (!json_i64(value, &port) || !port))
        return;
    if (b->n)
        buf_char(b, ',');
    if (json_is_string(value))
        buf_add(b, json_str(value));
    else
        buf_printf(b, "%lld", (long long)port);
}

struct str translate_service_given(struct arena *a, const cJSON *service)
{
    const cJSON *spec = json_get(service, "spec"), *ips = json_get(spec, "clusterIPs");
    struct buf b = BUF_INIT(0);
    struct str ret;

    if (!json_count(ips))
        add_given(&b, json_get(spec, "clusterIP"));
    json_each(ip, ips) add_given(&b, ip);
    json_each(port, json_get(spec, "ports")) add_given(&b, json_get(port, "nodePort"));
    add_given(&b, json_get(spec, "healthCheckNodePort"));
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

static int check_given(const cJSON *service, const cJSON *value, struct str before,
                       struct str given, const char *field, const char *what, struct err *err)
{
    char why[96];

    if (!value || json_is_null(value) || translate_service_gave(before, value) ||
        translate_service_gave(given, value) || (json_is_string(value) && !json_str(value).n) ||
        str_eqc(json_str(value), "None") || (json_is_number(value) && value->valuedouble == 0))
        return 0;
    snprintf(why, sizeof(why),
             "picking a %s is not allowed; leave it out and the host allocates one", what);
    return refuse(err, service, field, why);
}

/* Stored by an earlier version that did not check, it can be corrected one field at a time. */
static int check_new_addresses(struct arena *a, const cJSON *service, const cJSON *old,
                               struct err *err)
{
    static const char *const keys[] = {"externalIPs", "loadBalancerIP", "loadBalancerSourceRanges"};
    cJSON *spec = json_copy(a, json_get(service, "spec"));

    for (size_t i = 0; i < COUNT(keys); i++) {
        const cJSON *x = json_get(spec, keys[i]), *y = json_get(json_get(old, "spec"), keys[i]);

        if (x && y && json_equal(x, y))
            json_remove(spec, keys[i]);
    }
    return check_addresses(service, spec, err);
}

int translate_check_service_change(struct arena *a, const struct translate_tenant *t,
                                   const cJSON *service, const cJSON *old, struct str given,
                                   struct err *err)
{
    const cJSON *spec = json_get(service, "spec");
    bool had = !str_eqc(json_str_at(old, "spec.type"), "ExternalName");
    const cJSON *checked = had ? old : NULL;
    struct str before = had ? translate_service_given(a, old) : STR("");

    if (check_notes(a, t, service, checked, err) || check_new_addresses(a, service, checked, err) ||
        check_given(service, json_get(spec, "clusterIP"), before, given, "spec.clusterIP",
                    "cluster IP", err) ||
        check_given(service, json_get(spec, "healthCheckNodePort"), before, given,
                    "spec.healthCheckNodePort", "node port", err))
        return -1;
    json_each(ip, json_get(spec, "clusterIPs"))
    {
        if (check_given(service, ip, before, given, "spec.clusterIPs", "cluster IP", err))
            return -1;
    }
    json_each(port, json_get(spec, "ports"))
    {
        if (check_given(service, json_get(port, "nodePort"), before, given, "spec.ports.nodePort",
                        "node port", err))
            return -1;
    }
    return 0;
}

/* ---- down ---- */

static const struct field PORT_FIELDS[] = {
    {"name", FIELD_SCALAR}, {"protocol", FIELD_SCALAR},   {"appProtocol", FIELD_SCALAR},
    {"port", FIELD_SCALAR}, {"targetPort", FIELD_SCALAR}, {0},
};

static const struct field CLIENT_IP_FIELDS[] = {{"timeoutSeconds", FIELD_SCALAR}, {0}};

static const struct field AFFINITY_FIELDS[] = {
    {"clientIP", FIELD_OBJECT, .fields = CLIENT_IP_FIELDS},
    {0},
};

/* No selector means endpoints written by hand; with our label alone it would select every pod of
 * the tenant. */
static cJSON *selector_down(struct down *d, const cJSON *selector)
{
    return json_count(selector) ? translate_match_labels(d->arena, d->tenant, d->ns, selector)
                                : NULL;
}

static const struct field SPEC_FIELDS[] = {
    {"type", FIELD_SCALAR},
    {"ports", FIELD_LIST, .fields = PORT_FIELDS},
    {"selector", FIELD_MAKE, .make = selector_down},
    {"sessionAffinity", FIELD_SCALAR},
    {"sessionAffinityConfig", FIELD_OBJECT, .fields = AFFINITY_FIELDS},
    {"externalTrafficPolicy", FIELD_SCALAR},
    {"internalTrafficPolicy", FIELD_SCALAR},
    {"publishNotReadyAddresses", FIELD_SCALAR},
    {"ipFamilies", FIELD_SCALARS},
    {"ipFamilyPolicy", FIELD_SCALAR},
    {"allocateLoadBalancerNodePorts", FIELD_SCALAR},
    {"loadBalancerSourceRanges", FIELD_SCALARS},
    {"trafficDistribution", FIELD_SCALAR},
    {0},
};

/* A class names a load balancer controller. On the host that may be any controller, so it never
 * goes down: a tenant's class can only name a controller of its own, which finds the node ports and
 * writes the status. */
static bool names_balancer(const cJSON *spec)
{
    return str_eqc(json_str(json_get(spec, "type")), "LoadBalancer") &&
           json_str(json_get(spec, "loadBalancerClass")).n;
}

/* The host gets only the ports that such a balancer sends to. */
static void remove_balancer(struct arena *a, cJSON *spec)
{
    const cJSON *allocate = json_get(spec, "allocateLoadBalancerNodePorts");
    bool ports = !allocate || json_true(allocate);

    json_set_str(a, spec, "type", ports ? STR("NodePort") : STR("ClusterIP"));
    json_remove(spec, "allocateLoadBalancerNodePorts");
    json_remove(spec, "loadBalancerSourceRanges");
    if (!ports)
        json_remove(spec, "externalTrafficPolicy");
}

int translate_service(struct arena *a, const struct translate_tenant *t, const cJSON *vservice,
                      cJSON **ret, struct err *err)
{
    struct down d = {.arena = a, .tenant = t, .object = vservice};
    cJSON *service, *spec;
    char name[64];

    *ret = NULL;
    d.spec = json_get(vservice, "spec");
    d.ns = json_str_at(vservice, "metadata.namespace");
    d.name = json_str_at(vservice, "metadata.name");
    if (translate_check_service(a, t, vservice, err))
        return -1;
    if (str_eqc(json_str(json_get(d.spec, "type")), "ExternalName"))
        return 0;

    service = json_new_object(a);
    add_str(a, service, "apiVersion", STR("v1"));
    add_str(a, service, "kind", STR("Service"));
    translate_name(t, d.ns, d.name, name);
    object_add(a, service, STR("metadata"), translate_metadata(a, t, vservice, str_c(name)));
    spec = object_add(a, service, STR("spec"), shape_copy(&d, SPEC_FIELDS, d.spec));
    if (str_eqc(json_str(json_get(d.spec, "clusterIP")), "None"))
        add_str(a, spec, "clusterIP", STR("None"));
    if (names_balancer(d.spec))
        remove_balancer(a, spec);
    translate_host_patch(a, &t->config->to_host->service_patches, service);
    *ret = service;
    return 0;
}

/* ---- under a name of the admin's ---- */

/* What reaches beyond the cluster is the tenant's own Service's alone. */
static void remove_outside(struct arena *a, cJSON *spec)
{
    static const char *const keys[] = {"externalTrafficPolicy", "allocateLoadBalancerNodePorts",
                                       "loadBalancerSourceRanges"};

    json_set_str(a, spec, "type", STR("ClusterIP"));
    for (size_t i = 0; i < COUNT(keys); i++)
        json_remove(spec, keys[i]);
}

int translate_service_alias(struct arena *a, const struct translate_tenant *t, const cJSON *service,
                            struct str host_name, cJSON **ret, struct err *err)
{
    cJSON *metadata;

    if (translate_service(a, t, service, ret, err))
        return -1;
    if (!*ret)
        return 0;
    if (!json_count(json_path(*ret, "spec.selector")))
        return refuse(err, service, "spec.selector", "sync.toHost.services maps it, and needs one");
    metadata = json_get(*ret, "metadata");
    json_set_str(a, metadata, "name", host_name);
    json_set_str(a, json_ensure_object(a, metadata, "annotations"), ANNOTATION_ALIAS, host_name);
    remove_outside(a, json_get(*ret, "spec"));
    return 0;
}

/* ---- updates ---- */

/* Fields without a default on the host: removed when we no longer send them. */
static const char *const REMOVABLE[] = {"trafficDistribution", "publishNotReadyAddresses",
                                        "sessionAffinityConfig", "loadBalancerSourceRanges", NULL};

static const cJSON *same_port(const cJSON *ports, const cJSON *port)
{
    struct str protocol = json_str(json_get(port, "protocol"));

    json_each(one, ports)
    {
        struct str other = json_str(json_get(one, "protocol"));

        if (json_equal(json_get(one, "port"), json_get(port, "port")) &&
            str_eq(other.n ? other : STR("TCP"), protocol.n ? protocol : STR("TCP")))
            return one;
    }
    return NULL;
}

/* Do all members that we send have their value, and is no other one there that we would send? */
static bool port_equal(const cJSON *now, const cJSON *wanted)
{
    static const char *const own[] = {"name", "appProtocol", NULL};

    if (!now)
        return false;
    json_each(member, json_is_object(wanted) ? wanted : NULL)
    {
        if (!json_equal(json_get(now, member->string), member))
            return false;
    }
    for (size_t i = 0; own[i]; i++) {
        if (json_get(now, own[i]) && !json_get(wanted, own[i]))
            return false;
    }
    return true;
}

/* The wanted list with the present node ports; NULL when nothing differs. */
static cJSON *ports_patch(struct arena *a, const cJSON *now, const cJSON *wanted, bool node_ports)
{
    cJSON *ret = json_new_array(a);
    bool differs = json_count(now) != json_count(wanted);

    json_each(port, wanted)
    {
        const cJSON *have = same_port(now, port);
        const cJSON *node_port = json_get(have, "nodePort");
        cJSON *copy = json_append(ret, json_copy(a, port));

        differs |= !port_equal(have, port);
        if (node_ports && node_port)
            json_set(a, copy, "nodePort", json_copy(a, node_port));
    }
    return differs ? ret : NULL;
}

static void patch_member(struct arena *a, cJSON *patch, const cJSON *now, const cJSON *wanted,
                         const cJSON *member)
{
    struct str type = json_str(json_get(wanted, "type"));
    bool node_ports = str_eqc(type, "NodePort") || str_eqc(type, "LoadBalancer");
    const cJSON *have = json_get(now, member->string);
    cJSON *value = NULL;

    if (strcmp(member->string, "clusterIP") == 0)
        return;
    if (strcmp(member->string, "ports") == 0)
        value = ports_patch(a, have, member, node_ports);
    else if (strcmp(member->string, "selector") == 0)
        value = translate_map_patch(a, have, member, NULL, NULL);
    else if (!json_equal(have, member))
        value = json_copy(a, member);
    if (value)
        object_add(a, patch, json_key(member), value);
}

static cJSON *spec_patch(struct arena *a, const cJSON *now, const cJSON *wanted)
{
    cJSON *patch = json_new_object(a);

    json_each(member, json_is_object(wanted) ? wanted : NULL)
    {
        patch_member(a, patch, now, wanted, member);
    }
    for (size_t i = 0; REMOVABLE[i]; i++) {
        if (json_get(now, REMOVABLE[i]) && !json_get(wanted, REMOVABLE[i]))
            object_add(a, patch, str_c(REMOVABLE[i]), json_new_null(a));
    }
    if (json_get(now, "selector") && !json_get(wanted, "selector"))
        object_add(a, patch, STR("selector"), json_new_null(a));
    return json_count(patch) ? patch : NULL;
}

cJSON *translate_service_update_patch(struct arena *a, const cJSON *host_now,
                                      const cJSON *host_wanted, cJSON *spec)
{
    cJSON *metadata = translate_map_patch_metadata(a, host_now, host_wanted);
    cJSON *ret;

    if (!metadata && !spec)
        return NULL;
    ret = json_new_object(a);
    if (metadata)
        object_add(a, ret, STR("metadata"), metadata);
    if (spec)
        object_add(a, ret, STR("spec"), spec);
    return ret;
}

cJSON *translate_service_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted)
{
    const cJSON *now = json_get(host_now, "spec"), *wanted = json_get(host_wanted, "spec");
    cJSON *spec = json_equal(now, wanted) ? NULL : spec_patch(a, now, wanted);

    return translate_service_update_patch(a, host_now, host_wanted, spec);
}

/* ---- up ---- */

cJSON *translate_service_status_up(struct arena *a, const cJSON *host, const cJSON *v)
{
    static const char *const keys[] = {"loadBalancer", "conditions", NULL};

    if (names_balancer(json_get(v, "spec")))
        return NULL;
    return translate_pod_status_copy(a, keys, json_get(host, "status"), json_get(v, "status"));
}

/* The virtual ports, each with the node port its host port got. */
static cJSON *ports_up(struct arena *a, const cJSON *host, const cJSON *v)
{
    cJSON *ret = json_copy(a, v);

    json_each(port, ret)
    {
        const cJSON *node_port = json_get(same_port(host, port), "nodePort");

        if (node_port)
            json_set(a, port, "nodePort", json_copy(a, node_port));
        else if (json_is_object(port))
            json_remove(port, "nodePort");
    }
    return ret;
}

cJSON *translate_service_spec_up(struct arena *a, const cJSON *host, const cJSON *v)
{
    static const char *const given[] = {"clusterIP",      "clusterIPs",          "ipFamilies",
                                        "ipFamilyPolicy", "healthCheckNodePort", NULL};
    const cJSON *from = json_get(host, "spec"), *to = json_get(v, "spec");
    cJSON *ret;

    if (!json_is_object(from) || !json_is_object(to))
        return NULL;
    ret = json_copy(a, to);
    for (size_t i = 0; given[i]; i++) {
        const cJSON *value = json_get(from, given[i]);

        if (value)
            json_set(a, ret, given[i], json_copy(a, value));
        else
            json_remove(ret, given[i]);
    }
    if (json_is_array(json_get(to, "ports")))
        json_set(a, ret, "ports", ports_up(a, json_get(from, "ports"), json_get(to, "ports")));
    return json_equal(ret, to) ? NULL : ret;
}
