/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the host as `sync.fromHost` shows them. Why tables: an object of the host holds what
 * its administrators need, such as parameters, references to credentials, names of machines and
 * owners, and a field of a later version may hold more. Must never show what a tenant owns on the
 * host, a credential that something of the host accepts, or a field that no table names. A custom
 * resource has no table: its spec and status are shown whole, as its administrator decided. */

#include <string.h>

#include <sublet/config_sync.h>
#include <sublet/config_sync_from.h>

#include "kind_impl.h"
#include "shape.h"

#define DEFAULT_INGRESS_CLASS "ingressclass.kubernetes.io/is-default-class"
#define MANAGED_BY            "app.kubernetes.io/managed-by" /* "sublet": this program's Secrets */

/* --- functions of single fields --- */

/* The class's own name: the handler names a configuration of the host's machines. */
static cJSON *make_handler(struct down *d, const cJSON *value)
{
    (void)value;
    return json_new_string(d->arena, d->name);
}

/* Of a machine, by a cloud: the tenant knows it by its name alone. */
static cJSON *make_node_id(struct down *d, const cJSON *value)
{
    (void)value;
    return json_new_string(d->arena, d->name);
}

/* What a controller of the host says of a class may name what its parameters refer to. */
static cJSON *make_message(struct down *d, const cJSON *value)
{
    (void)value;
    return json_new_string(d->arena, STR(FROM_HOST_MESSAGE));
}

/* A place, and the name of a node that the tenant is shown. */
static bool topology_shown(struct down *d, const cJSON *label)
{
    const struct config_from *row = config_from_row(d->tenant->config, FROM_CSI_STORAGE_CAPACITIES);

    if (translate_topology_key(json_key(label), row ? row->topology_keys : (struct str_list){0}))
        return true;
    return str_eqc(json_key(label), "kubernetes.io/hostname") && d->tenant->node &&
           d->tenant->node(d->tenant->node_ctx, json_str(label)) == NODE_SHOWN;
}

/* --- the tables --- */

static const struct field INGRESS_SPEC[] = {
    {"controller", FIELD_SCALAR},
    {0},
};
static const struct field INGRESS_CLASS[] = {
    {"spec", FIELD_OBJECT, .fields = INGRESS_SPEC},
    {0},
};
static const struct field RUNTIME_CLASS[] = {
    {"handler", FIELD_MAKE, .make = make_handler},
    {0},
};
static const struct field PRIORITY_CLASS[] = {
    {"value", FIELD_SCALAR},
    {"preemptionPolicy", FIELD_SCALAR},
    {0},
};
static const struct field STORAGE_CLASS[] = {
    {"provisioner", FIELD_SCALAR},
    {"reclaimPolicy", FIELD_SCALAR},
    {"volumeBindingMode", FIELD_SCALAR},
    {"allowVolumeExpansion", FIELD_SCALAR},
    {0},
};
static const struct field DEVICE_SPEC[] = {
    {"extendedResourceName", FIELD_SCALAR},
    {0},
};
static const struct field DEVICE_CLASS[] = {
    {"spec", FIELD_OBJECT, .fields = DEVICE_SPEC},
    {0},
};
static const struct field GATEWAY_SPEC[] = {
    {"controllerName", FIELD_SCALAR},
    {"description", FIELD_SCALAR},
    {0},
};
static const struct field GATEWAY_CONDITION[] = {
    {"type", FIELD_SCALAR},
    {"status", FIELD_SCALAR},
    {"reason", FIELD_SCALAR},
    {"message", FIELD_MAKE, .make = make_message},
    {"lastTransitionTime", FIELD_SCALAR},
    {0},
};
static const struct field GATEWAY_FEATURE[] = {
    {"name", FIELD_SCALAR},
    {0},
};
static const struct field GATEWAY_STATUS[] = {
    {"conditions", FIELD_LIST, .fields = GATEWAY_CONDITION},
    {"supportedFeatures", FIELD_LIST, .fields = GATEWAY_FEATURE},
    {0},
};
static const struct field GATEWAY_CLASS[] = {
    {"spec", FIELD_OBJECT, .fields = GATEWAY_SPEC},
    {"status", FIELD_OBJECT, .fields = GATEWAY_STATUS},
    {0},
};
/* The virtual cluster's definition wants certificates, or options, where a listener ends TLS. */
static cJSON *make_tls(struct down *d, const cJSON *value)
{
    struct str mode = json_str(json_get(value, "mode"));
    cJSON *ret = json_new_object(d->arena);

    if (mode.n)
        add_str(d->arena, ret, "mode", mode);
    if (!str_eqc(mode, "Passthrough"))
        json_set_str(d->arena, json_ensure_object(d->arena, ret, "options"), ANNOTATION_FROM_HOST,
                     STR(FROM_HOST_SYNC));
    return ret;
}

/* The host counts the routes of all who use it. */
static cJSON *make_none(struct down *d, const cJSON *value)
{
    (void)value;
    return json_new_i64(d->arena, 0);
}

static const struct field ROUTE_KIND[] = {
    {"group", FIELD_SCALAR},
    {"kind", FIELD_SCALAR},
    {0},
};
static const struct field LISTENER_ROUTES[] = {
    {"kinds", FIELD_LIST, .fields = ROUTE_KIND},
    {0},
};
static const struct field LISTENER[] = {
    {"name", FIELD_SCALAR},
    {"hostname", FIELD_SCALAR},
    {"port", FIELD_SCALAR},
    {"protocol", FIELD_SCALAR},
    {"tls", FIELD_MAKE, .make = make_tls},
    {"allowedRoutes", FIELD_OBJECT, .fields = LISTENER_ROUTES},
    {0},
};

/* May a route of this tenant have a host name that it serves? The others are for other tenants,
 * and named after them. */
static bool listener_shown(struct down *d, const cJSON *listener)
{
    const struct config_from *row = config_from_row(d->tenant->config, FROM_GATEWAYS);
    const cJSON *host = json_get(listener, "hostname");

    return !host || json_is_null(host) ||
           config_hosts_meet(row->hosts, row->wildcards, json_str(host));
}

/* On the host routes of all virtual namespaces are in one, which the host's listener admits or
 * not. */
static cJSON *make_listener(struct down *d, const cJSON *value)
{
    cJSON *ret;

    if (!listener_shown(d, value))
        return NULL;
    ret = shape_copy(d, LISTENER, value);
    json_set_str(d->arena, json_ensure_path(d->arena, ret, "allowedRoutes.namespaces"), "from",
                 STR("All"));
    return ret;
}

static const struct field LISTENER_STATUS[] = {
    {"name", FIELD_SCALAR},
    {"attachedRoutes", FIELD_MAKE, .make = make_none},
    {"supportedKinds", FIELD_LIST, .fields = ROUTE_KIND},
    {"conditions", FIELD_LIST, .fields = GATEWAY_CONDITION},
    {0},
};

static cJSON *make_listener_status(struct down *d, const cJSON *value)
{
    struct str name = json_str(json_get(value, "name"));

    json_each(listener, json_path(d->object, "spec.listeners"))
    {
        if (name.n && str_eq(name, json_str(json_get(listener, "name"))) &&
            listener_shown(d, listener))
            return shape_copy(d, LISTENER_STATUS, value);
    }
    return NULL;
}

static const struct field GATEWAY_ADDRESS[] = {
    {"type", FIELD_SCALAR},
    {"value", FIELD_SCALAR},
    {0},
};
static const struct field SHARED_SPEC[] = {
    {"gatewayClassName", FIELD_SCALAR},
    {"listeners", FIELD_EACH, .make = make_listener},
    {0},
};
static const struct field SHARED_STATUS[] = {
    {"addresses", FIELD_LIST, .fields = GATEWAY_ADDRESS},
    {"conditions", FIELD_LIST, .fields = GATEWAY_CONDITION},
    {"listeners", FIELD_EACH, .make = make_listener_status},
    {0},
};
static const struct field SHARED_GATEWAY[] = {
    {"spec", FIELD_OBJECT, .fields = SHARED_SPEC},
    {"status", FIELD_OBJECT, .fields = SHARED_STATUS},
    {0},
};
static const struct field DRIVER_SPEC[] = {
    {"attachRequired", FIELD_SCALAR},        {"podInfoOnMount", FIELD_SCALAR},
    {"volumeLifecycleModes", FIELD_SCALARS}, {"storageCapacity", FIELD_SCALAR},
    {"fsGroupPolicy", FIELD_SCALAR},         {"requiresRepublish", FIELD_SCALAR},
    {"seLinuxMount", FIELD_SCALAR},          {0},
};
static const struct field CSI_DRIVER[] = {
    {"spec", FIELD_OBJECT, .fields = DRIVER_SPEC},
    {0},
};
static const struct field ALLOCATABLE[] = {
    {"count", FIELD_SCALAR},
    {0},
};
static const struct field NODE_DRIVER[] = {
    {"name", FIELD_SCALAR},
    {"nodeID", FIELD_MAKE, .make = make_node_id},
    {"topologyKeys", FIELD_SCALARS},
    {"allocatable", FIELD_OBJECT, .fields = ALLOCATABLE},
    {0},
};
static const struct field CSI_NODE_SPEC[] = {
    {"drivers", FIELD_LIST, .fields = NODE_DRIVER},
    {0},
};
static const struct field CSI_NODE[] = {
    {"spec", FIELD_OBJECT, .fields = CSI_NODE_SPEC},
    {0},
};
static const struct field TOPOLOGY[] = {
    {"matchLabels", FIELD_MAP},
    {0},
};
static const struct field CSI_STORAGE_CAPACITY[] = {
    {"storageClassName", FIELD_SCALAR},
    {"capacity", FIELD_SCALAR},
    {"maximumVolumeSize", FIELD_SCALAR},
    {"nodeTopology", FIELD_OBJECT, .fields = TOPOLOGY},
    {0},
};
static const struct field CONFIG_MAP[] = {
    {"data", FIELD_MAP},
    {"binaryData", FIELD_MAP},
    {0},
};
static const struct field SECRET[] = {
    {"type", FIELD_SCALAR},
    {"data", FIELD_MAP},
    {0},
};

/* The tenant's pods reach it by its address, whatever else leads there on the host. */
static cJSON *make_type(struct down *d, const cJSON *value)
{
    (void)value;
    return json_new_string(d->arena, STR("ClusterIP"));
}

/* What receives it behind the address is the host's. */
static cJSON *make_port(struct down *d, const cJSON *value)
{
    static const char *const kept[] = {"name", "protocol", "port", "appProtocol"};
    cJSON *ret = json_new_object(d->arena);

    for (size_t i = 0; i < COUNT(kept); i++)
        if (json_is_scalar(json_get(value, kept[i])))
            object_add(d->arena, ret, str_c(kept[i]),
                       json_copy(d->arena, json_get(value, kept[i])));
    if (json_get(ret, "port"))
        object_add(d->arena, ret, STR("targetPort"), json_copy(d->arena, json_get(ret, "port")));
    return ret;
}

static const struct field SERVICE_SPEC[] = {
    {"type", FIELD_MAKE, .make = make_type},
    {"clusterIP", FIELD_SCALAR},
    {"clusterIPs", FIELD_SCALARS},
    {"ipFamilies", FIELD_SCALARS},
    {"ipFamilyPolicy", FIELD_SCALAR},
    {"ports", FIELD_EACH, .make = make_port},
    {0},
};
static const struct field SERVICE[] = {
    {"spec", FIELD_OBJECT, .fields = SERVICE_SPEC},
    {0},
};

static const struct field ENDPOINT_CONDITIONS[] = {
    {"ready", FIELD_SCALAR},
    {"serving", FIELD_SCALAR},
    {"terminating", FIELD_SCALAR},
    {0},
};
/* Neither the pod, its host name, the node nor the zone: those are the host's. */
static const struct field ENDPOINT[] = {
    {"addresses", FIELD_SCALARS},
    {"conditions", FIELD_OBJECT, .fields = ENDPOINT_CONDITIONS},
    {0},
};
static const struct field ENDPOINT_PORT[] = {
    {"name", FIELD_SCALAR},
    {"protocol", FIELD_SCALAR},
    {"port", FIELD_SCALAR},
    {"appProtocol", FIELD_SCALAR},
    {0},
};
static const struct field ENDPOINT_SLICE[] = {
    {"addressType", FIELD_SCALAR},
    {"endpoints", FIELD_LIST, .fields = ENDPOINT},
    {"ports", FIELD_LIST, .fields = ENDPOINT_PORT},
    {0},
};

/* --- which objects are never shown --- */

/* These give power over the whole API, and every virtual cluster has its own. */
static bool priority_shown(struct down *d)
{
    return !str_has_prefix(d->name, STR("system-"));
}

/* Those of policy.storageClasses, and the host's default, are shown with or without this. */
static bool storage_shown(struct down *d)
{
    return !translate_class_listed(d->tenant, d->name);
}

static bool gateway_class_shown(struct down *d)
{
    const struct config_from *row = config_from_row(d->tenant->config, FROM_GATEWAY_CLASSES);

    return row && (!row->names.n || str_list_has(row->names, d->name));
}

static bool csi_node_shown(struct down *d)
{
    return d->tenant->node && d->tenant->node(d->tenant->node_ctx, d->name) == NODE_SHOWN;
}

static bool capacity_shown(struct down *d)
{
    const cJSON *topology = json_get(d->object, "nodeTopology");
    const struct translate_tenant *t = d->tenant;
    struct str class = json_str(json_get(d->object, "storageClassName"));

    json_each(label, json_get(topology, "matchLabels"))
    {
        if (!topology_shown(d, label))
            return false;
    }
    return topology && !json_count(json_get(topology, "matchExpressions")) &&
           translate_class_offered(t, class);
}

/* Every namespace has it, and in the virtual cluster it holds another authority. */
static bool config_map_shown(struct down *d)
{
    return !str_eqc(d->name, "kube-root-ca.crt");
}

/* Tokens, bootstrap tokens and releases of Helm are none of these. */
static bool secret_shown(struct down *d)
{
    static const char *const types[] = {"Opaque",
                                        "kubernetes.io/basic-auth",
                                        "kubernetes.io/dockercfg",
                                        "kubernetes.io/dockerconfigjson",
                                        "kubernetes.io/ssh-auth",
                                        "kubernetes.io/tls"};
    struct str type = json_str(json_get(d->object, "type"));

    if (str_eqc(json_str(json_get(json_get(d->meta, "labels"), MANAGED_BY)), "sublet"))
        return false;
    for (size_t i = 0; i < COUNT(types); i++)
        if (str_eqc(type, types[i]))
            return true;
    return false;
}

/* The definition wants a listener. */
static bool gateway_shown(struct down *d)
{
    json_each(listener, json_path(d->object, "spec.listeners"))
    {
        if (json_is_object(listener) && listener_shown(d, listener))
            return true;
    }
    return false;
}

/* One with an address, or, if configured, with those of its EndpointSlices; the host's own API is
 * none of them. An ExternalName is a name for the host's resolver, not for the tenant's. */
static bool service_shown(struct down *d)
{
    const struct config_from *row = config_from_row(d->tenant->config, FROM_SERVICES);
    struct str ip = json_str_at(d->object, "spec.clusterIP");

    if (str_eqc(d->name, "kubernetes") &&
        str_eqc(json_str(json_get(d->meta, "namespace")), "default"))
        return false;
    return ip.n && (!str_eqc(ip, "None") || (row && row->headless)) &&
           !str_eqc(json_str_at(d->object, "spec.type"), "ExternalName");
}

static bool slice_shown(struct down *d)
{
    struct str type = json_str(json_get(d->object, "addressType"));

    return str_eqc(type, "IPv4") || str_eqc(type, "IPv6");
}

static const struct {
    const struct field *fields;
    bool (*shown)(struct down *d);
    const char *annotation; /* shown where it is "true" */
} KINDS[N_FROM_KINDS] = {
    [FROM_INGRESS_CLASSES] = {INGRESS_CLASS, .annotation = DEFAULT_INGRESS_CLASS},
    [FROM_RUNTIME_CLASSES] = {RUNTIME_CLASS},
    [FROM_PRIORITY_CLASSES] = {PRIORITY_CLASS, priority_shown},
    [FROM_STORAGE_CLASSES] = {STORAGE_CLASS, storage_shown},
    [FROM_DEVICE_CLASSES] = {DEVICE_CLASS},
    [FROM_GATEWAY_CLASSES] = {GATEWAY_CLASS, gateway_class_shown},
    [FROM_GATEWAYS] = {SHARED_GATEWAY, gateway_shown},
    [FROM_CSI_DRIVERS] = {CSI_DRIVER},
    [FROM_CSI_NODES] = {CSI_NODE, csi_node_shown},
    [FROM_CSI_STORAGE_CAPACITIES] = {CSI_STORAGE_CAPACITY, capacity_shown},
    [FROM_CONFIG_MAPS] = {CONFIG_MAP, config_map_shown},
    [FROM_SECRETS] = {SECRET, secret_shown},
    [FROM_SERVICES] = {SERVICE, service_shown},
    [FROM_CUSTOM_RESOURCES] = {NULL},
    [FROM_ENDPOINT_SLICES] = {ENDPOINT_SLICE, slice_shown},
};

/* --- the object --- */

static cJSON *allowed(struct arena *a, const cJSON *map, struct str_list allow)
{
    cJSON *ret = json_new_object(a);

    json_each(member, map)
    {
        if (json_is_string(member) && json_is_object(map) &&
            translate_labels_key_listed(json_key(member), allow) &&
            !config_key_installs(json_key(member)))
            object_add(a, ret, json_key(member), json_new_string(a, json_str(member)));
    }
    return ret;
}

static void add_metadata(struct down *d, const struct config_from *row, struct str ns,
                         struct str name, cJSON *to)
{
    const struct config *config = d->tenant->config;
    const cJSON *notes = json_get(d->meta, "annotations");
    const char *also = KINDS[row->kind].annotation;
    cJSON *metadata = json_new_object(d->arena), *shown, *labels;

    object_add(d->arena, to, STR("metadata"), metadata);
    add_str(d->arena, metadata, "name", name);
    if (ns.n)
        add_str(d->arena, metadata, "namespace", ns);
    labels = allowed(d->arena, json_get(d->meta, "labels"), config->labels_allow);
    if (json_count(labels))
        object_add(d->arena, metadata, STR("labels"), labels);
    shown = allowed(d->arena, notes, config->annotations_allow);
    if (also && str_eqc(json_str(json_get(notes, also)), "true"))
        json_set_str(d->arena, shown, also, STR("true"));
    json_set_str(d->arena, shown, ANNOTATION_FROM_HOST, STR(FROM_HOST_SYNC));
    object_add(d->arena, metadata, STR("annotations"), shown);
}

static void add_all_but_metadata(struct down *d, cJSON *to)
{
    static const char *const own[] = {"apiVersion", "kind", "metadata"};

    json_each(member, d->object)
    {
        bool is_own = false;

        for (size_t i = 0; i < COUNT(own); i++)
            is_own |= strcmp(member->string, own[i]) == 0;
        if (!is_own)
            object_add(d->arena, to, json_key(member), json_copy(d->arena, member));
    }
}

cJSON *translate_from_host(struct arena *a, const struct translate_tenant *t,
                           const struct config_from *row, const cJSON *host, struct str ns,
                           struct str name)
{
    struct down d = {.arena = a, .tenant = t, .object = host, .name = name};
    const cJSON *labels;
    cJSON *ret;

    d.meta = json_get(host, "metadata");
    labels = json_get(d.meta, "labels");
    if (json_get(labels, LABEL_CLUSTER) ||
        !selector_match(&row->selector, labels_flatten(a, labels)))
        return NULL;
    d.name = json_str(json_get(d.meta, "name"));
    if (KINDS[row->kind].shown && !KINDS[row->kind].shown(&d))
        return NULL;
    ret = json_new_object(a);
    add_metadata(&d, row, ns, name, ret);
    if (KINDS[row->kind].fields)
        shape_into(&d, KINDS[row->kind].fields, host, ret);
    else if (row->patches.n)
        return translate_kind_patched(a, t, &row->patches, host, ret) ? ret : NULL;
    else
        add_all_but_metadata(&d, ret);
    return ret;
}

struct str translate_from_host_slice_name(struct arena *a, const struct translate_tenant *t,
                                          struct str service, struct str host_name)
{
    struct str parts[] = {t->cluster_uid, service, host_name};
    char hash[HASH_CHARS + 1];

    translate_hash(COUNT(parts), parts, hash);
    return arena_printf(a, "%.*s-%s", STR_F(service), hash);
}

cJSON *translate_from_host_slice(struct arena *a, const struct translate_tenant *t,
                                 const struct config_from *row, const cJSON *host, struct str ns,
                                 struct str name, struct str service)
{
    cJSON *ret = translate_from_host(a, t, row, host, ns, name), *labels;

    if (!ret)
        return NULL;
    labels = json_ensure_path(a, ret, "metadata.labels");
    json_set_str(a, labels, LABEL_SERVICE_NAME, service);
    json_set_str(a, labels, "endpointslice.kubernetes.io/managed-by", STR("sublet.dev"));
    if (!json_get(ret, "endpoints"))
        object_add(a, ret, STR("endpoints"), json_new_array(a));
    return ret;
}

/* --- what a tenant's object may name --- */

bool translate_shows(const struct translate_tenant *t, enum config_from_kind kind, struct str name)
{
    return name.n && t->shown.is && config_from_row(t->config, kind) &&
           t->shown.is(t->shown.ctx, kind, STR(""), name);
}

bool translate_shows_host(const struct translate_tenant *t, enum config_from_kind kind,
                          struct str ns, struct str name, struct str *ret_host_ns,
                          struct str *ret_host_name)
{
    const struct config_from *row = config_from_row(t->config, kind);

    for (size_t i = 0; row && t->shown.is && i < row->n_mappings; i++) {
        const struct config_from_mapping *map = &row->mappings[i];

        if (!str_eq(map->ns, ns) || (map->name.n && !str_eq(map->name, name)))
            continue;
        *ret_host_ns = map->host_ns.n ? map->host_ns : t->host_namespace;
        *ret_host_name = map->name.n ? map->host_name : name;
        return t->shown.is(t->shown.ctx, kind, ns, name);
    }
    return false;
}

static bool is_of_a_pool(const struct config *config, enum config_from_kind kind, struct str name)
{
    for (size_t i = 0; i < config->n_bindings; i++) {
        const struct config_pool *pool = config->bindings[i].pool;

        if (kind == FROM_RUNTIME_CLASSES ? str_eq(pool->runtime_class, name)
                                         : json_get_str(pool->priority_tiers, name) != NULL)
            return true;
    }
    return false;
}

int translate_check_pod_classes(const struct translate_tenant *t, const cJSON *pod, struct err *err)
{
    static const struct {
        enum config_from_kind kind;
        const char *field;
    } classes[] = {
        {FROM_RUNTIME_CLASSES, "runtimeClassName"},
        {FROM_PRIORITY_CLASSES, "priorityClassName"},
    };

    if (json_str_at(pod, "metadata.resourceVersion").n)
        return 0; /* stored: its classes cannot change */
    if (!is_of_a_pool(t->config, FROM_PRIORITY_CLASSES,
                      json_str_at(pod, "spec.priorityClassName")) &&
        translate_priority_check(t->config, pod, err))
        return -1;
    for (size_t i = 0; i < COUNT(classes); i++) {
        struct str name = json_str(json_get(json_get(pod, "spec"), classes[i].field));

        if (!name.n || !config_from_row(t->config, classes[i].kind) ||
            is_of_a_pool(t->config, classes[i].kind, name) ||
            translate_shows(t, classes[i].kind, name))
            continue;
        if (classes[i].kind == FROM_PRIORITY_CLASSES && str_has_prefix(name, STR("system-")))
            continue; /* it stays in the virtual cluster */
        return err_forbidden(err, STR_NULL, STR("pods"), json_str_at(pod, "metadata.name"),
                             "spec.%s: \"%.*s\" is not offered to this virtual cluster",
                             classes[i].field, STR_F(name));
    }
    return 0;
}
