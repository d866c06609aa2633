/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a container. Why: the kubelet would reveal to a pod the host's API, the host's
 * Services and the host's names; so what it would add is added here, from the virtual cluster, and
 * what can be known is written as a literal. Must never pass a variable that hands out devices. */

#include <stdlib.h>
#include <string.h>

#include "shape.h"

struct env_list {
    struct down *d;
    cJSON *list;
    struct str_list taken; /* sorted: names the tenant set */
    size_t budget;
};

/* What is refused does not go down, and stands in the way of nothing. */
static bool goes_down(const struct down *d, const cJSON *env)
{
    enum pool_mode mode = d->pool ? d->pool->mode : POOL_EXCLUSIVE;

    return json_str(json_get(env, "name")).n && !gpu_env_refused(d->tenant->config, env, mode);
}

static struct str_list names_of(const struct down *d, const cJSON *env)
{
    struct str *items = arena_alloc(d->arena, (json_count(env) + 1) * sizeof *items);
    size_t n = 0;

    json_each(one, env)
    {
        if (goes_down(d, one))
            items[n++] = json_str(json_get(one, "name"));
    }
    qsort(items, n, sizeof *items, str_order);
    return (struct str_list){items, n};
}

static void add(struct env_list *e, struct str name, struct str value)
{
    cJSON *one;

    if (e->taken.n && bsearch(&name, e->taken.items, e->taken.n, sizeof name, str_order))
        return;
    one = json_append(e->list, json_new_object(e->d->arena));
    add_str(e->d->arena, one, "name", name);
    add_str(e->d->arena, one, "value", value);
}

/* ---- the API and Services, as the kubelet names them ---- */

static struct str variable_part(struct arena *a, struct str name)
{
    char *text = arena_cstr(a, name);

    for (char *p = text; *p; p++) {
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
        else if (*p == '-' || *p == '.')
            *p = '_';
    }
    return (struct str){text, name.n};
}

static struct str host_text(struct arena *a, struct str ip)
{
    return str_find(ip, ':') < ip.n ? arena_printf(a, "[%.*s]", STR_F(ip)) : ip;
}

/* X_PORT_<named>_<PROTO> and what follows from it; named is the number of the port, except where
 * the name has to cover another Service's. */
static void add_port(struct env_list *e, struct str prefix, int64_t named, struct str ip,
                     const cJSON *port)
{
    struct arena *a = e->d->arena;
    struct str protocol = json_str(json_get(port, "protocol")), upper, lower, base, url;
    int64_t number = json_i64_at(port, "port", 0);
    char *text;

    if (!protocol.n)
        protocol = STR("TCP");
    upper = variable_part(a, protocol);
    text = arena_cstr(a, upper);
    for (char *p = text; *p; p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    }
    lower = (struct str){text, upper.n};
    base = arena_printf(a, "%.*s_PORT_%lld_%.*s", STR_F(prefix), (long long)named, STR_F(upper));
    url = arena_printf(a, "%.*s://%.*s:%lld", STR_F(lower), STR_F(host_text(a, ip)),
                       (long long)number);
    add(e, base, url);
    add(e, arena_printf(a, "%.*s_PROTO", STR_F(base)), lower);
    add(e, arena_printf(a, "%.*s_PORT", STR_F(base)), arena_printf(a, "%lld", (long long)number));
    add(e, arena_printf(a, "%.*s_ADDR", STR_F(base)), ip);
}

static void add_service(struct env_list *e, struct str name, struct str ip, const cJSON *ports)
{
    struct arena *a = e->d->arena;
    struct str prefix = variable_part(a, name), protocol, first;
    const cJSON *port = json_first(ports);
    int64_t number = json_i64_at(port, "port", 0);

    first = arena_printf(a, "%lld", (long long)number);
    add(e, arena_printf(a, "%.*s_SERVICE_HOST", STR_F(prefix)), ip);
    add(e, arena_printf(a, "%.*s_SERVICE_PORT", STR_F(prefix)), first);
    json_each(one, ports)
    {
        struct str label = json_str(json_get(one, "name"));

        if (label.n)
            add(e,
                arena_printf(a, "%.*s_SERVICE_PORT_%.*s", STR_F(prefix),
                             STR_F(variable_part(a, label))),
                arena_printf(a, "%lld", (long long)json_i64_at(one, "port", 0)));
    }
    protocol = json_str(json_get(port, "protocol"));
    add(e, arena_printf(a, "%.*s_PORT", STR_F(prefix)),
        arena_printf(a, "%s://%.*s:%lld",
                     str_eqc(protocol, "UDP")    ? "udp"
                     : str_eqc(protocol, "SCTP") ? "sctp"
                                                 : "tcp",
                     STR_F(host_text(a, ip)), (long long)number));
    json_each(one, ports)
    {
        add_port(e, prefix, json_i64_at(one, "port", 0), ip, one);
    }
}

/* The port of the host's Service default/kubernetes; kube-apiserver makes it with no other. */
enum { HOST_API_PORT = 443 };

static cJSON *api_ports(struct arena *a, int64_t number)
{
    cJSON *ports = json_new_array(a), *port = json_append(ports, json_new_object(a));

    add_str(a, port, "name", STR("https"));
    json_set_i64(a, port, "port", number);
    return ports;
}

/* The kubelet gives every container the Service default/kubernetes, whatever enableServiceLinks
 * says (pkg/kubelet/kubelet_pods.go, getServiceEnvVarMap). Only a variable of the same name in env
 * keeps the host's away, so each of those names is set: to the tenant's API, and to nothing while
 * its address is not known. They stand first and always: a later variable of the tenant's under
 * one of the names wins, while the host's value would fill in for one whose optional source is
 * missing, and for a reference ahead of it. */
static void add_api(struct env_list *e)
{
    static const char *const names[] = {
        "SERVICE_HOST", "SERVICE_PORT",       "SERVICE_PORT_HTTPS", "PORT",
        "PORT_443_TCP", "PORT_443_TCP_PROTO", "PORT_443_TCP_PORT",  "PORT_443_TCP_ADDR"};
    const struct translate_tenant *t = e->d->tenant;
    struct env_list first = {e->d, e->list, {0}, 0};
    cJSON *ports;

    if (!t->api_ip.n) {
        for (size_t i = 0; i < COUNT(names); i++)
            add(&first, arena_printf(e->d->arena, "KUBERNETES_%s", names[i]), STR(""));
        return;
    }
    ports = api_ports(e->d->arena, t->api_port);
    add_service(&first, STR("kubernetes"), t->api_ip, ports);
    if (t->api_port != HOST_API_PORT)
        add_port(&first, STR("KUBERNETES"), HOST_API_PORT, t->api_ip, json_first(ports));
}

static void add_links(struct env_list *e)
{
    if (json_get(e->d->spec, "enableServiceLinks") &&
        !json_true(json_get(e->d->spec, "enableServiceLinks")))
        return;
    json_each(service, e->d->services)
    {
        struct str name = json_str_at(service, "metadata.name");
        struct str ip = json_str_at(service, "spec.clusterIP");
        const cJSON *ports = json_path(service, "spec.ports");
        /* About what a Service's variables weigh in the object. */
        size_t weight = (name.n + 64) * (3 + 5 * json_count(ports));

        if (!name.n || !ip.n || str_eqc(ip, "None") || !json_count(ports) ||
            str_eqc(name, "kubernetes"))
            continue;
        if (weight > e->budget)
            return;
        e->budget -= weight;
        add_service(e, name, ip, ports);
    }
}

/* ---- the tenant's variables ---- */

static const struct field KEY_REF_FIELDS[] = {
    {"name", FIELD_NAME},
    {"key", FIELD_SCALAR},
    {"optional", FIELD_SCALAR},
    {0},
};

static const struct field RESOURCE_REF_FIELDS[] = {
    {"containerName", FIELD_SCALAR},
    {"resource", FIELD_SCALAR},
    {"divisor", FIELD_SCALAR},
    {0},
};

static const struct field FILE_REF_FIELDS[] = {
    {"volumeName", FIELD_SCALAR},
    {"path", FIELD_SCALAR},
    {"key", FIELD_SCALAR},
    {"optional", FIELD_SCALAR},
    {0},
};

static const struct field FIELD_REF_FIELDS[] = {
    {"apiVersion", FIELD_SCALAR},
    {"fieldPath", FIELD_SCALAR},
    {0},
};

static const struct field VALUE_FROM_FIELDS[] = {
    {"fieldRef", FIELD_OBJECT, .fields = FIELD_REF_FIELDS},
    {"resourceFieldRef", FIELD_OBJECT, .fields = RESOURCE_REF_FIELDS},
    {"configMapKeyRef", FIELD_OBJECT, .fields = KEY_REF_FIELDS},
    {"secretKeyRef", FIELD_OBJECT, .fields = KEY_REF_FIELDS},
    {"fileKeyRef", FIELD_OBJECT, .fields = FILE_REF_FIELDS},
    {0},
};

static const struct field FROM_REF_FIELDS[] = {
    {"name", FIELD_NAME},
    {"optional", FIELD_SCALAR},
    {0},
};

const struct field TRANSLATE_POD_ENV_FROM_FIELDS[] = {
    {"prefix", FIELD_SCALAR},
    {"configMapRef", FIELD_OBJECT, .fields = FROM_REF_FIELDS},
    {"secretRef", FIELD_OBJECT, .fields = FROM_REF_FIELDS},
    {0},
};

/* What only the host knows: of its nodes nothing where a node stands for a pool. */
static bool host_field(const struct down *d, struct str path)
{
    static const struct {
        const char *path;
        bool of_node;
    } paths[] = {{"spec.nodeName", true},
                 {"status.hostIP", true},
                 {"status.hostIPs", true},
                 {"status.podIP", false},
                 {"status.podIPs", false}};

    for (size_t i = 0; i < COUNT(paths); i++) {
        if (str_eqc(path, paths[i].path))
            return !paths[i].of_node || !d->tenant->config->nodes_per_pool;
    }
    return false;
}

/* What the tenant's pod says of itself; a path that is not known says nothing. */
static struct str own_field(struct down *d, struct str path)
{
    struct str key;

    if (str_eqc(path, "metadata.name"))
        return d->name;
    if (str_eqc(path, "metadata.namespace"))
        return d->ns;
    if (str_eqc(path, "metadata.uid"))
        return json_str(json_get(d->meta, "uid"));
    if (str_eqc(path, "spec.nodeName"))
        return translate_pod_pool_node(d);
    if (str_eqc(path, "spec.serviceAccountName"))
        return json_str(json_get(d->spec, "serviceAccountName"));
    if (translate_pod_field_path_key(path, "metadata.labels", &key))
        return json_str(json_get_str(json_get(d->meta, "labels"), key));
    if (translate_pod_field_path_key(path, "metadata.annotations", &key))
        return json_str(json_get_str(json_get(d->meta, "annotations"), key));
    return STR("");
}

/* $(VAR) is expanded in values but not in what a reference gives: "$$" is a "$" there. */
static struct str literal(struct arena *a, struct str s)
{
    struct buf b = BUF_INIT(0);
    struct str ret;

    if (str_find(s, '$') == s.n)
        return s;
    for (size_t i = 0; i < s.n; i++) {
        buf_char(&b, s.p[i]);
        if (s.p[i] == '$')
            buf_char(&b, '$');
    }
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

static cJSON *variable_down(struct down *d, const cJSON *env)
{
    const cJSON *from = json_get(env, "valueFrom"), *value = json_get(env, "value");
    const cJSON *field = json_get(from, "fieldRef");
    struct str path = json_str(json_get(field, "fieldPath"));
    cJSON *ret = json_new_object(d->arena);

    add_str(d->arena, ret, "name", json_str(json_get(env, "name")));
    if (json_is_object(field) && !host_field(d, path))
        add_str(d->arena, ret, "value", literal(d->arena, own_field(d, path)));
    else if (json_is_object(from))
        object_add(d->arena, ret, STR("valueFrom"), shape_copy(d, VALUE_FROM_FIELDS, from));
    else if (json_is_string(value))
        add_str(d->arena, ret, "value", json_str(value));
    return ret;
}

static bool is_granted(struct down *d, const struct device_counts *given, struct str variable)
{
    for (size_t i = 0; i < given->n; i++) {
        const struct pool_resource *r =
            d->pool ? config_pool_resource(d->pool, given->items[i].name) : NULL;

        if (r && gpu_resource_grants(r, variable))
            return true;
    }
    return false;
}

/* An image may request every device by its own ENV; only an explicit value overrides it. */
static void add_voids(struct env_list *e, const struct device_counts *given)
{
    struct str_list variables = gpu_variables(e->d->arena, e->d->tenant->config);

    for (size_t i = 0; i < variables.n; i++) {
        if (!is_granted(e->d, given, variables.items[i]))
            add(e, variables.items[i], STR("void"));
    }
}

cJSON *translate_pod_env_down(struct down *d, const cJSON *container,
                              const struct device_counts *given)
{
    const cJSON *env = json_get(container, "env");
    cJSON *part = translate_pod_fraction_variable(d, container);
    struct env_list e = {d, json_new_array(d->arena), names_of(d, env), d->links_budget};

    add_voids(&e, given);
    if (part)
        json_append(e.list, part);
    add_api(&e);
    add_links(&e);
    if (!json_is_array(env))
        return e.list;
    json_each(one, env)
    {
        if (goes_down(d, one) &&
            !(part && json_equal(json_get(one, "name"), json_get(part, "name"))))
            json_append(e.list, variable_down(d, one));
    }
    return e.list;
}
