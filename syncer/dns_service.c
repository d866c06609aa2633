/* SPDX-License-Identifier: Apache-2.0 */
/* kube-system/kube-dns of the tenant: under which address its pods find its DNS. It stands for the
 * host Service in front of this process and has no host object of its own. Must never touch a
 * Service of that name that the tenant made while there was no DNS of ours. */
#include "engine.h"

#define NAMESPACE            STR("kube-system")
#define NAME                 STR("kube-dns")
#define ANNOTATION_FROM_HOST "sublet.dev/from-host"
#define DNS_PORT             53

bool service_is_dns(struct syncer *s, const cJSON *object, struct str ns, struct str name)
{
    struct str note =
        json_str(json_get(json_path(object, "metadata.annotations"), ANNOTATION_FROM_HOST));
    struct arena *a;
    bool free;

    if (!str_eq(ns, NAMESPACE) || !str_eq(name, NAME))
        return false;
    a = arena_new(0);
    free = !mapping_get(s, a, SYNC_SERVICES, ns, name).exists;
    arena_free(a);
    return free && (s->tenant.dns_ip.n || str_eqc(note, "true"));
}

/* --- what is wanted --- */

static cJSON *new_object(struct arena *a)
{
    cJSON *object = json_new_object(a), *meta = json_ensure_object(a, object, "metadata");

    json_set_str(a, meta, "name", NAME);
    json_set_str(a, meta, "namespace", NAMESPACE);
    json_set_str(a, json_ensure_object(a, meta, "annotations"), ANNOTATION_FROM_HOST, STR("true"));
    return object;
}

static cJSON *set_ports(struct arena *a, cJSON *holder, bool of_service)
{
    static const char *const ports[][2] = {{"dns", "UDP"}, {"dns-tcp", "TCP"}};
    cJSON *list = json_set(a, holder, "ports", json_new_array(a));

    for (size_t i = 0; i < 2; i++) {
        cJSON *port = json_append(list, json_new_object(a));

        json_set_str(a, port, "name", str_c(ports[i][0]));
        json_set_i64(a, port, "port", DNS_PORT);
        json_set_str(a, port, "protocol", str_c(ports[i][1]));
        if (of_service)
            json_set_i64(a, port, "targetPort", DNS_PORT);
    }
    return list;
}

static cJSON *want_service(struct arena *a, struct str ip)
{
    cJSON *object = new_object(a), *spec = json_ensure_object(a, object, "spec");
    cJSON *labels = json_ensure_object(a, json_get(object, "metadata"), "labels");

    json_set_str(a, labels, "k8s-app", NAME);
    json_set_str(a, labels, "kubernetes.io/cluster-service", STR("true"));
    json_set_str(a, labels, "kubernetes.io/name", STR("CoreDNS")); /* what clients look for */
    json_set_str(a, spec, "type", STR("ClusterIP"));
    json_set_str(a, spec, "clusterIP", ip);
    json_append(json_set(a, spec, "clusterIPs", json_new_array(a)), json_new_string(a, ip));
    set_ports(a, spec, true);
    return object;
}

/* What stands behind the address is the host's affair: the endpoint is the address again. */
static cJSON *want_slice(struct arena *a, struct str ip)
{
    cJSON *object = new_object(a), *endpoint;
    cJSON *labels = json_ensure_object(a, json_get(object, "metadata"), "labels");

    json_set_str(a, labels, "kubernetes.io/service-name", NAME);
    json_set_str(a, object, "addressType", str_c(str_find(ip, ':') < ip.n ? "IPv6" : "IPv4"));
    endpoint = json_append(json_set(a, object, "endpoints", json_new_array(a)), json_new_object(a));
    json_append(json_set(a, endpoint, "addresses", json_new_array(a)), json_new_string(a, ip));
    json_set_bool(a, json_ensure_object(a, endpoint, "conditions"), "ready", true);
    set_ports(a, object, false);
    return object;
}

/* --- kept so --- */

static void keep_slice(struct sync_run *run, struct str ip)
{
    const struct resource *slices =
        syncer_resource(run->syncer, "discovery.k8s.io", "endpointslices");
    const cJSON *now = reconcile_get(run->reconcile, slices, NAMESPACE, NAME), *want;

    if (!ip.n) {
        if (now)
            reconcile_delete(run->reconcile, slices, NAMESPACE, NAME, sync_uid(now), NULL);
        return;
    }
    want = want_slice(run->arena, ip);
    if (!now)
        reconcile_create(run->reconcile, slices, NAMESPACE, want);
    else if (!json_equal(json_get(now, "endpoints"), json_get(want, "endpoints")))
        reconcile_delete(run->reconcile, slices, NAMESPACE, NAME, sync_uid(now), NULL);
}

/* A merge patch of what somebody changed; NULL: nothing. */
static cJSON *difference(struct arena *a, const cJSON *now, const cJSON *want)
{
    cJSON *patch = json_new_object(a);
    const cJSON *ports = json_path(want, "spec.ports");
    const cJSON *note = json_get(json_path(now, "metadata.annotations"), ANNOTATION_FROM_HOST);

    if (!json_equal(json_path(now, "spec.ports"), ports))
        json_set(a, json_ensure_object(a, patch, "spec"), "ports", json_copy(a, ports));
    if (json_path(now, "spec.selector"))
        json_set(a, json_ensure_object(a, patch, "spec"), "selector", json_new_null(a));
    if (!str_eqc(json_str(note), "true"))
        json_set_str(a, json_ensure_path(a, patch, "metadata.annotations"), ANNOTATION_FROM_HOST,
                     STR("true"));
    return json_first(patch) ? patch : NULL;
}

void service_keep_dns(struct sync_run *run)
{
    const struct resource *services = syncer_resource(run->syncer, "", "services");
    struct str ip = run->syncer->tenant.dns_ip;
    const cJSON *now = run->virtual_;
    cJSON *want = want_service(run->arena, ip), *patch;

    if (!run->syncer->address_known || (now && object_is_terminating(now)))
        return;
    keep_slice(run, ip);
    if (!now) {
        if (ip.n)
            reconcile_create(run->reconcile, services, NAMESPACE, want);
    } else if (!str_eq(json_str_at(now, "spec.clusterIP"), ip)) {
        /* It cannot be changed; its end brings the key back. */
        reconcile_delete(run->reconcile, services, NAMESPACE, NAME, run->uid, NULL);
    } else if ((patch = difference(run->arena, now, want))) {
        reconcile_patch(run->reconcile, services, STR_NULL, NAMESPACE, NAME, patch);
    }
}

void service_publish_dns(struct syncer *s)
{
    syncer_add(s, SYNC_SERVICES, NAMESPACE, NAME);
}
