/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.fromHost` of the configuration: which objects of the host the tenant is shown. Why apart:
 * its keys are kinds with selectors and mappings, which no option can express. Must never enable
 * what was not requested, nor map two sources onto one target: which of them is shown would depend
 * on chance. */

#include <sublet/config_bound.h>
#include <sublet/config_sync.h>
#include <sublet/config_sync_from.h>

#include "impl.h"

#define MAX_ROWS     64
#define MAX_MAPPINGS 64

static const struct row {
    const char *key, *group, *version, *plural;
    bool namespaced;
} ROWS[N_FROM_KINDS] = {
#define CLUSTER   false
#define NAMESPACE true
#define SYNC_UP(id, key, group, version, plural, read)                                             \
    [FROM_##id] = {key, group, version, plural, read},
#include <sublet/tbl/sync_up.h>
#undef SYNC_UP
    [FROM_CUSTOM_RESOURCES] = {"customResources", "", "", "", true},
    [FROM_ENDPOINT_SLICES] = {"services.headless", "discovery.k8s.io", "v1", "endpointslices",
                              true},
};

struct from_draft {
    struct config_from row;
    bool enabled, scoped;
};
struct rows {
    struct config *config;
    struct config_from *rows;
};

/* --- the readers of one entry --- */

static int read_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct from_draft *)into)->enabled);
}

static int read_match(const struct place *at, const cJSON *value, void *into)
{
    (void)at;
    (void)value;
    (void)into; /* selector_from_json() reads both */
    return 0;
}

static const struct place_key SELECTOR_KEYS[] = {
    {"matchLabels", read_match},
    {"matchExpressions", read_match},
    {0},
};

static int read_selector(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft *d = into;
    struct err err;

    if (place_object(at, value, SELECTOR_KEYS, NULL))
        return -1;
    err_init(&err, at->arena);
    if (selector_from_json(at->arena, value, &d->row.selector, &err))
        return place_error(at, "%.*s", STR_F(err.message));
    return 0;
}

static int read_hosts(const struct place *at, const cJSON *value, void *into)
{
    return config_read_hosts(at, value, &((struct from_draft *)into)->row.hosts);
}

static int read_wildcards(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct from_draft *)into)->row.wildcards);
}

static int read_headless(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct from_draft *)into)->row.headless);
}

static int read_topology_keys(const struct place *at, const cJSON *value, void *into)
{
    return config_read_topology_keys(at, value, &((struct from_draft *)into)->row.topology_keys);
}

static int read_scope(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft *d = into;
    int word;

    if (place_word(at, value, "Cluster|Namespaced", &word))
        return -1;
    d->row.namespaced = word == 1;
    d->scoped = true;
    return 0;
}

static int read_from_patches(const struct place *at, const cJSON *value, void *into)
{
    return config_read_from_patches(at, value, &((struct from_draft *)into)->row.patches);
}

/* --- mappings --- */

/* A namespace with a name, with a star or alone; an empty namespace is the own one, which only a
 * source may have. */
static int read_side(const struct place *at, struct str text, bool own_allowed, struct str *ret_ns,
                     struct str *ret_name)
{
    struct str name = text, ns = str_cut(&name, '/');
    const char *why = ns.n ? name_check_dns1123_label(ns) : NULL;

    if (str_eqc(name, "*"))
        name = STR("");
    else if (name.p && !name.n)
        return place_error(at, "\"%.*s\": want namespace/name or namespace/*", STR_F(text));
    if (!why && name.n)
        why = name_check_dns1123_subdomain(name);
    if (!why && !ns.n && !own_allowed)
        why = "a namespace is needed";
    if (why)
        return place_error(at, "\"%.*s\": %s", STR_F(text), why);
    *ret_ns = arena_str(at->arena, ns);
    *ret_name = arena_str(at->arena, name.n ? name : STR(""));
    return 0;
}

/* What a reference to a copy leads to has to follow from the configuration alone. */
static int check_mixture(const struct place *at, const struct config_from *row)
{
    struct place mappings = place_member(at, "mappings"), list = place_member(&mappings, "byName");

    for (size_t i = 0; i < row->n_mappings; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct config_from_mapping *a = &row->mappings[i], *b = &row->mappings[k];

            if (str_eq(a->ns, b->ns) && !a->name.n != !b->name.n)
                return place_error(&list, "\"%.*s\" is the target of a whole namespace as well",
                                   STR_F(a->ns));
        }
    }
    return 0;
}

static int check_target(const struct place *at, const struct config_from *row,
                        const struct config_from_mapping *m)
{
    for (size_t i = 0; i < row->n_mappings; i++) {
        const struct config_from_mapping *other = &row->mappings[i];

        if (str_eq(other->ns, m->ns) && str_eq(other->name, m->name))
            return place_error(at, "\"%.*s/%.*s\" is the target of another mapping already",
                               STR_F(m->ns), STR_F(m->name.n ? m->name : STR("*")));
    }
    return 0;
}

static int read_by_name(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft *d = into;
    struct config_from_mapping *list;

    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    if (json_count(value) > MAX_MAPPINGS)
        return place_error(at, "at most %d mappings are possible", MAX_MAPPINGS);
    list = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*list));
    d->row.mappings = list;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct config_from_mapping *m = &list[d->row.n_mappings];

        if (!json_is_string(member))
            return config_wrong_type(at->err, inner.path, "a string", member);
        if (read_side(&inner, json_key(member), true, &m->host_ns, &m->host_name) ||
            read_side(&inner, json_str(member), false, &m->ns, &m->name))
            return -1;
        if (!m->host_name.n != !m->name.n)
            return place_error(&inner, "a name goes to a name, and namespace/* to namespace/*");
        if (d->row.kind == FROM_CONFIG_MAPS && str_eqc(m->host_name, CONFIG_GPU_DEMAND))
            return place_error(&inner, "\"%.*s\" is what a virtual cluster reports to the fleet",
                               STR_F(json_key(member)));
        if (check_target(&inner, &d->row, m))
            return -1;
        d->row.n_mappings++;
    }
    return 0;
}

static const struct place_key FROM_MAPPING_KEYS[] = {
    {"byName", read_by_name},
    {0},
};

static int read_mappings(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, FROM_MAPPING_KEYS, into);
}

/* --- entries --- */

static const struct place_key FROM_CLASS_KEYS[] = {
    {"enabled", read_enabled},
    {"selector", read_selector},
    {0},
};
static const struct place_key FROM_CAPACITY_KEYS[] = {
    {"enabled", read_enabled},
    {"selector", read_selector},
    {"topologyKeys", read_topology_keys},
    {0},
};
static const struct place_key FROM_DATA_KEYS[] = {
    {"enabled", read_enabled},
    {"mappings", read_mappings},
    {"selector", read_selector},
    {0},
};
static const struct place_key FROM_GATEWAY_KEYS[] = {
    {"enabled", read_enabled},   {"hosts", read_hosts},         {"mappings", read_mappings},
    {"selector", read_selector}, {"wildcards", read_wildcards}, {0},
};
static const struct place_key FROM_SERVICE_KEYS[] = {
    {"enabled", read_enabled},
    {"headless", read_headless},
    {"mappings", read_mappings},
    {"selector", read_selector},
    {0},
};
static const struct place_key FROM_CUSTOM_KEYS[] = {
    {"enabled", read_enabled}, {"mappings", read_mappings}, {"patches", read_from_patches},
    {"scope", read_scope},     {"selector", read_selector}, {0},
};

static int add_row(const struct place *at, struct rows *r, const struct from_draft *d)
{
    if (!d->enabled)
        return 0;
    for (size_t i = 0; i < r->config->n_from; i++)
        if (str_eq(r->rows[i].plural, d->row.plural) && str_eq(r->rows[i].group, d->row.group))
            return place_error(at, "%.*s is configured already, as %.*s", STR_F(d->row.plural),
                               STR_F(r->rows[i].key));
    if (r->config->n_from == MAX_ROWS)
        return place_error(at, "at most %d kinds are possible", MAX_ROWS);
    r->rows[r->config->n_from++] = d->row;
    return 0;
}

static enum config_from_kind kind_at(const struct place *at)
{
    struct str key = str_from(at->path, str_rfind(at->path, '.') + 1);
    unsigned kind = 0;

    while (kind < FROM_CUSTOM_RESOURCES && !str_eqc(key, ROWS[kind].key))
        kind++;
    return (enum config_from_kind)kind;
}

static struct from_draft draft_of(enum config_from_kind kind)
{
    const struct row *row = &ROWS[kind];

    return (struct from_draft){.row = {.kind = kind,
                                       .key = str_c(row->key),
                                       .group = str_c(row->group),
                                       .version = str_c(row->version),
                                       .plural = str_c(row->plural),
                                       .namespaced = row->namespaced}};
}

static int read_classes(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft d = draft_of(kind_at(at));

    if (place_object(at, value, FROM_CLASS_KEYS, &d))
        return -1;
    return add_row(at, into, &d);
}

static int read_capacities(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft d = draft_of(FROM_CSI_STORAGE_CAPACITIES);

    if (place_object(at, value, FROM_CAPACITY_KEYS, &d))
        return -1;
    return add_row(at, into, &d);
}

static int need_mappings(const struct place *at, const struct from_draft *d)
{
    return d->enabled && !d->row.n_mappings ? place_error(at, "mappings.byName is needed") : 0;
}

static int read_data(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft d = draft_of(kind_at(at));

    if (place_object(at, value, FROM_DATA_KEYS, &d) || need_mappings(at, &d))
        return -1;
    return add_row(at, into, &d);
}

/* EndpointSlices of what is shown are found by the same mappings: a copy's Service, and with it its
 * slices, has to be of one namespace of the host. */
static int read_services(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft d = draft_of(FROM_SERVICES), slices = draft_of(FROM_ENDPOINT_SLICES);

    if (place_object(at, value, FROM_SERVICE_KEYS, &d) || need_mappings(at, &d))
        return -1;
    slices.enabled = d.enabled && d.row.headless;
    slices.row.mappings = d.row.mappings;
    slices.row.n_mappings = d.row.n_mappings;
    if (slices.enabled && check_mixture(at, &d.row))
        return -1;
    return add_row(at, into, &d) || add_row(at, into, &slices) ? -1 : 0;
}

/* Routes of several tenants may be on one listener: what keeps them apart are their host names. */
static int read_shared_gateways(const struct place *at, const cJSON *value, void *into)
{
    struct from_draft d = draft_of(FROM_GATEWAYS);

    if (place_object(at, value, FROM_GATEWAY_KEYS, &d) || need_mappings(at, &d))
        return -1;
    if (d.enabled && !d.row.hosts.n)
        return place_error(at, "hosts is needed: without it no route could name a Gateway");
    if (check_mixture(at, &d.row))
        return -1;
    return add_row(at, into, &d);
}

/* The groups that every API server has. */
static const char *const BUILT_IN[] = {
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "metrics.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
};

static bool is_built_in(struct str group)
{
    for (size_t i = 0; i < COUNT(BUILT_IN); i++)
        if (str_eqc(group, BUILT_IN[i]))
            return true;
    return str_find(group, '.') == group.n;
}

/* "widgets.example.com", "widgets.example.com/v1". */
static int read_resource(const struct place *at, struct str key, struct config_from *row)
{
    struct str version = key, full = str_cut(&version, '/'), group = full;
    struct str plural = str_cut(&group, '.');
    const char *why = name_check_dns1123_label(plural);

    if (!why)
        why = group.n ? name_check_dns1123_subdomain(group) : "want plural.group/version";
    if (!why && version.p)
        why = name_check_dns1035_label(version);
    if (!why && is_built_in(group))
        why = "is no custom resource";
    if (why)
        return place_error(at, "\"%.*s\": %s", STR_F(key), why);
    row->key = arena_str(at->arena, key);
    row->group = arena_str(at->arena, group);
    row->version = arena_str(at->arena, version.p ? version : STR(""));
    row->plural = arena_str(at->arena, plural);
    return 0;
}

static int read_custom(const struct place *at, const cJSON *value, struct rows *r)
{
    struct from_draft d = draft_of(FROM_CUSTOM_RESOURCES);
    struct str key = str_from(at->path, str_rfind(at->path, '[') + 1);

    key.n -= key.n > 0;
    if (read_resource(at, key, &d.row) || place_object(at, value, FROM_CUSTOM_KEYS, &d))
        return -1;
    if (d.enabled && !d.scoped)
        return place_error(at, "scope is needed");
    if (d.row.namespaced && need_mappings(at, &d))
        return -1;
    if (d.scoped && !d.row.namespaced && d.row.n_mappings)
        return place_error(at, "mappings are for scope Namespaced");
    return add_row(at, r, &d);
}

static int read_customs(const struct place *at, const cJSON *value, void *into)
{
    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    json_each(member, value)
    {
        struct place inner = *at;

        inner.path = arena_printf(at->arena, "%.*s[%s]", STR_F(at->path), member->string);
        if (!json_is_null(member) && read_custom(&inner, member, into))
            return -1;
    }
    return 0;
}

static const struct place_key FROM_KEYS[] = {
    {"ingressClasses", read_classes},
    {"runtimeClasses", read_classes},
    {"priorityClasses", read_classes},
    {"storageClasses", read_classes},
    {"deviceClasses", read_classes},
    {"gatewayClasses", read_classes},
    {"gateways", read_shared_gateways},
    {"csiDrivers", read_classes},
    {"csiNodes", read_classes},
    {"csiStorageCapacities", read_capacities},
    {"configMaps", read_data},
    {"secrets", read_data},
    {"services", read_services},
    {"customResources", read_customs},
    {0},
};

const struct config_from *config_from_row(const struct config *config, enum config_from_kind kind)
{
    for (size_t i = 0; i < config->n_from; i++)
        if (config->from[i].kind == kind)
            return &config->from[i];
    return NULL;
}

/* What sync.toHost.gatewayApi lets a Gateway name is shown. */
static int add_gateway_classes(const struct place *at, const cJSON *from, struct rows *r)
{
    struct from_draft d = draft_of(FROM_GATEWAY_CLASSES);

    d.enabled = r->config->to_host->gateway_api && !json_is_object(json_get(from, d.row.key.p));
    d.row.names = r->config->to_host->gateway_classes;
    return add_row(at, r, &d);
}

int config_load_sync_from(struct arena *a, const cJSON *tree, struct config *config,
                          struct err *err)
{
    const cJSON *from = json_path(tree, "sync.fromHost");
    struct place at = {a, STR("config: sync.fromHost"), err};
    struct rows r = {config, arena_alloc(a, MAX_ROWS * sizeof(struct config_from))};

    config->from = r.rows;
    config->n_from = 0;
    if (from && !json_is_null(from) && place_object(&at, from, FROM_KEYS, &r))
        return -1;
    if (add_gateway_classes(&at, from, &r))
        return -1;
    if (config->to_host->priorities && config_from_row(config, FROM_PRIORITY_CLASSES))
        return place_error(&at, "priorityClasses: either the host's classes are shown, or "
                                "sync.toHost.priorityClasses maps the tenant's own");
    return 0;
}
