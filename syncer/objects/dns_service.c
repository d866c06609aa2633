/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant's kube-system/kube-dns: the address of its DNS. It represents the host Service in
 * front of this process and has no host object of its own. Must stay pure: services.c writes it. */
#include "objects/dns_service.h"

#include <sublet/str.h>

#define DNS_PORT 53

static cJSON *new_object(struct arena *a)
{
    cJSON *object = json_new_object(a), *meta = json_ensure_object(a, object, "metadata");

    json_set_str(a, meta, "name", STR(DNS_NAME));
    json_set_str(a, meta, "namespace", STR(DNS_NAMESPACE));
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

cJSON *sync_dns_service_want(struct arena *a, struct str ip)
{
    cJSON *object = new_object(a), *spec = json_ensure_object(a, object, "spec");
    cJSON *labels = json_ensure_object(a, json_get(object, "metadata"), "labels");

    json_set_str(a, labels, "k8s-app", STR(DNS_NAME));
    json_set_str(a, labels, "kubernetes.io/cluster-service", STR("true"));
    json_set_str(a, labels, "kubernetes.io/name", STR("CoreDNS")); /* what clients look for */
    json_set_str(a, spec, "type", STR("ClusterIP"));
    json_set_str(a, spec, "clusterIP", ip);
    json_append(json_set(a, spec, "clusterIPs", json_new_array(a)), json_new_string(a, ip));
    set_ports(a, spec, true);
    return object;
}

cJSON *sync_dns_slice_want(struct arena *a, struct str ip)
{
    cJSON *object = new_object(a), *endpoint;
    cJSON *labels = json_ensure_object(a, json_get(object, "metadata"), "labels");

    json_set_str(a, labels, "kubernetes.io/service-name", STR(DNS_NAME));
    json_set_str(a, object, "addressType", str_c(str_find(ip, ':') < ip.n ? "IPv6" : "IPv4"));
    endpoint = json_append(json_set(a, object, "endpoints", json_new_array(a)), json_new_object(a));
    json_append(json_set(a, endpoint, "addresses", json_new_array(a)), json_new_string(a, ip));
    json_set_bool(a, json_ensure_object(a, endpoint, "conditions"), "ready", true);
    set_ports(a, object, false);
    return object;
}

cJSON *sync_dns_service_difference(struct arena *a, const cJSON *now, const cJSON *want)
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
