/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost:` of the configuration. Must never enable a kind that is not named, nor take a kind
 * of Kubernetes itself for a custom resource: a Deployment that went down as it is would run pods
 * outside every fence. */

#include <ctype.h>
#include <string.h>

#include <sublet/cidr.h>
#include <sublet/config_sync.h>
#include <sublet/selector.h>

#include "impl.h"

enum { MOST_CUSTOM = 64, MOST_PATCHES = 64 };

const struct config_down_kind CONFIG_DOWN_KINDS[N_SYNC_DOWN] = {
#define SYNC_DOWN(id, key, group, version, plural, scope)                                          \
    {key, group, version, plural, SYNC_##scope},
#include <sublet/tbl/sync_down.h>
#undef SYNC_DOWN
};

/* Some controllers read more into a name than DNS does: an expression, or lines of a file. */
static bool is_host_name(struct str host)
{
    return !name_check_dns1123_subdomain(str_has_prefix(host, STR("*.")) ? str_from(host, 2)
                                                                         : host);
}

bool config_host_listed(struct str_list patterns, struct str host)
{
    if (!is_host_name(host))
        return false;
    for (size_t i = 0; i < patterns.n; i++) {
        struct str pattern = patterns.items[i];
        size_t dot = str_find(host, '.');

        if (str_eq(pattern, host))
            return true;
        if (str_has_prefix(pattern, STR("*.")) && dot && dot < host.n &&
            !str_has_prefix(host, STR("*")) && str_eq(str_from(pattern, 1), str_from(host, dot)))
            return true;
    }
    return false;
}

/* Are all names of the other one, or the name itself, among those of `*.example`? */
static bool is_below(struct str wildcard, struct str host)
{
    return str_has_prefix(wildcard, STR("*.")) && wildcard.n > 2 && host.n >= wildcard.n &&
           str_has_suffix(host, str_from(wildcard, 1));
}

bool config_hosts_meet(struct str_list patterns, bool wildcards, struct str listener)
{
    if (config_host_listed(patterns, listener))
        return true;
    for (size_t i = 0; i < patterns.n; i++)
        if (is_below(listener, patterns.items[i]) ||
            (wildcards && is_below(patterns.items[i], listener)))
            return true;
    return false;
}

/* ---- lists ---- */

static int read_cidrs(const struct place *at, const cJSON *value, struct str_list *ret)
{
    struct cidr range;

    if (place_list(at, value, ret))
        return -1;
    for (size_t i = 0; i < ret->n; i++) {
        struct place inner = place_item(at, i);

        if (!cidr_parse(ret->items[i], &range) || str_find(ret->items[i], '/') == ret->items[i].n)
            return place_error(&inner, "\"%.*s\": want a range such as 10.20.0.0/16",
                               STR_F(ret->items[i]));
    }
    return 0;
}

/* Where machines keep credentials, and the node itself: no rule of the chart may lead there,
 * either. */
static const char *const NEVER[] = {"169.254.0.0/16",    "168.63.129.16/32", "100.100.100.200/32",
                                    "192.0.0.192/32",    "127.0.0.0/8",      "::1/128",
                                    "fd00:ec2::254/128", "fe80::/10"};

static int check_never(const struct place *at, struct str_list ranges)
{
    struct cidr range, never;

    for (size_t i = 0; i < ranges.n; i++) {
        struct place inner = place_item(at, i);

        for (size_t k = 0; k < COUNT(NEVER); k++)
            if (cidr_parse(ranges.items[i], &range) && cidr_parse(str_c(NEVER[k]), &never) &&
                cidr_overlap(&range, &never))
                return place_error(&inner, "\"%.*s\": must not reach %s", STR_F(ranges.items[i]),
                                   NEVER[k]);
    }
    return 0;
}

/* ---- kinds ---- */

/* What the keys of a kind say; a kind has those of its table. */
struct kind_draft {
    bool enabled, wildcards;
    struct str_list cidrs, classes, hosts;
    struct config_host_patches patches;
};

static int kind_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct kind_draft *)into)->enabled);
}

static int kind_cidrs(const struct place *at, const cJSON *value, void *into)
{
    struct str_list *ret = &((struct kind_draft *)into)->cidrs;

    return read_cidrs(at, value, ret) || check_never(at, *ret) ? -1 : 0;
}

static int kind_classes(const struct place *at, const cJSON *value, void *into)
{
    struct str_list *classes = &((struct kind_draft *)into)->classes;

    if (place_list(at, value, classes))
        return -1;
    for (size_t i = 0; i < classes->n; i++) {
        struct place inner = place_item(at, i);
        const char *why = name_check_dns1123_subdomain(classes->items[i]);

        if (why)
            return place_error(&inner, "\"%.*s\": %s", STR_F(classes->items[i]), why);
    }
    return 0;
}

int config_read_hosts(const struct place *at, const cJSON *value, struct str_list *hosts)
{
    if (place_list(at, value, hosts))
        return -1;
    for (size_t i = 0; i < hosts->n; i++) {
        struct place inner = place_item(at, i);
        struct str host = hosts->items[i];
        bool wild = str_has_prefix(host, STR("*."));
        const char *why = name_check_dns1123_subdomain(wild ? str_from(host, 2) : host);

        if (why || str_find(host, '.') == host.n)
            return place_error(&inner,
                               "\"%.*s\": want a name such as a.team.example or "
                               "*.team.example",
                               STR_F(host));
    }
    return 0;
}

static int kind_hosts(const struct place *at, const cJSON *value, void *into)
{
    return config_read_hosts(at, value, &((struct kind_draft *)into)->hosts);
}

static int kind_wildcards(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct kind_draft *)into)->wildcards);
}

static int kind_patches(const struct place *at, const cJSON *value, void *into)
{
    return config_read_host_patches(at, value, &((struct kind_draft *)into)->patches);
}

static const struct place_key PLAIN_KEYS[] = {
    {"enabled", kind_enabled},
    {0},
};

static const struct place_key CIDR_KEYS[] = {
    {"enabled", kind_enabled},
    {"allowedCIDRs", kind_cidrs},
    {0},
};

static const struct place_key CLASS_KEYS[] = {
    {"enabled", kind_enabled},
    {"classes", kind_classes},
    {"hosts", kind_hosts},
    {"patches", kind_patches},
    {0},
};

static const struct place_key GATEWAY_KEYS[] = {
    {"enabled", kind_enabled}, {"classes", kind_classes},     {"hosts", kind_hosts},
    {"patches", kind_patches}, {"wildcards", kind_wildcards}, {0},
};

static const struct place_key GATEWAY_API_KEYS[] = {
    {"enabled", kind_enabled},
    {"classes", kind_classes},
    {"hosts", kind_hosts},
    {"wildcards", kind_wildcards},
    {0},
};

static const struct place_key ROUTE_KEYS[] = {
    {"enabled", kind_enabled},
    {"patches", kind_patches},
    {0},
};

static int read_network_policies(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct kind_draft d = {0};

    if (place_object(at, value, CIDR_KEYS, &d))
        return -1;
    to->enabled[DOWN_NETWORK_POLICIES] = d.enabled;
    to->network_cidrs = d.cidrs;
    return 0;
}

/* Both Ingresses and Gateways say which addresses of the host they serve. */
static int read_classed(const struct place *at, const cJSON *value, const struct place_key *keys,
                        const char *kind, struct kind_draft *ret)
{
    if (place_object(at, value, keys, ret))
        return -1;
    if (ret->enabled && (!ret->classes.n || !ret->hosts.n))
        return place_error(at, "classes and hosts are needed: without them no %s could go down",
                           kind);
    return 0;
}

static int read_ingresses(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct kind_draft d = {0};

    if (read_classed(at, value, CLASS_KEYS, "Ingress", &d))
        return -1;
    to->enabled[DOWN_INGRESSES] = d.enabled;
    to->patches[DOWN_INGRESSES] = d.patches;
    to->ingress_classes = d.classes;
    to->ingress_hosts = d.hosts;
    return 0;
}

static void store_gateways(struct config_to_host *to, const struct kind_draft *d)
{
    to->enabled[DOWN_GATEWAYS] = d->enabled;
    to->patches[DOWN_GATEWAYS] = d->patches;
    to->gateway_classes = d->classes;
    to->gateway_hosts = d->hosts;
    to->gateway_wildcards = d->wildcards;
}

static int read_gateways(const struct place *at, const cJSON *value, void *into)
{
    struct kind_draft d = {.wildcards = true};

    if (read_classed(at, value, GATEWAY_KEYS, "Gateway", &d))
        return -1;
    store_gateways(into, &d);
    return 0;
}

/* read_gateway_api() reads it, once the keys that it stands for are known. */
static int skip(const struct place *at, const cJSON *value, void *into)
{
    (void)at;
    (void)value;
    (void)into;
    return 0;
}

/* One key for several kinds; what has a key of its own goes by that one. */
static int read_gateway_api(const struct place *to_host, const cJSON *tree,
                            struct config_to_host *to)
{
    static const struct {
        const char *key;
        enum sync_down kind;
    } routes[] = {{"httpRoutes", DOWN_HTTP_ROUTES}, {"grpcRoutes", DOWN_GRPC_ROUTES}};
    const cJSON *value = json_get(tree, "gatewayApi");
    struct place at = place_member(to_host, "gatewayApi");
    struct kind_draft d = {.wildcards = true};

    if (!value || json_is_null(value))
        return 0;
    if (json_is_object(json_get(tree, "gateways")))
        return place_error(&at, "gateways has a key of its own as well: one of the two says which "
                                "classes and hosts there are");
    if (read_classed(&at, value, GATEWAY_API_KEYS, "Gateway", &d))
        return -1;
    if (!d.enabled)
        return 0;
    to->gateway_api = true;
    store_gateways(to, &d);
    for (size_t i = 0; i < COUNT(routes); i++) {
        if (!json_is_object(json_get(tree, routes[i].key)))
            to->enabled[routes[i].kind] = true;
    }
    return 0;
}

static int read_endpoint_slices(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct kind_draft d = {0};

    if (place_object(at, value, CIDR_KEYS, &d))
        return -1;
    if (d.enabled && !d.cidrs.n)
        return place_error(at, "allowedCIDRs is needed: without it no EndpointSlice could go down");
    to->enabled[DOWN_ENDPOINT_SLICES] = d.enabled;
    to->slice_cidrs = d.cidrs;
    return 0;
}

/* A kind with nothing to say but whether it goes down, and its patches. */
#define PLAIN(name, id, keys)                                                                      \
    static int name(const struct place *at, const cJSON *value, void *into)                        \
    {                                                                                              \
        struct kind_draft d = {0};                                                                 \
                                                                                                   \
        if (place_object(at, value, keys, &d))                                                     \
            return -1;                                                                             \
        ((struct config_to_host *)into)->enabled[DOWN_##id] = d.enabled;                           \
        ((struct config_to_host *)into)->patches[DOWN_##id] = d.patches;                           \
        return 0;                                                                                  \
    }
PLAIN(read_disruption_budgets, DISRUPTION_BUDGETS, PLAIN_KEYS)
PLAIN(read_resource_claims, RESOURCE_CLAIMS, PLAIN_KEYS)
PLAIN(read_http_routes, HTTP_ROUTES, ROUTE_KEYS)
PLAIN(read_grpc_routes, GRPC_ROUTES, ROUTE_KEYS)
PLAIN(read_tls_routes, TLS_ROUTES, ROUTE_KEYS)
PLAIN(read_backend_tls, BACKEND_TLS, PLAIN_KEYS)

/* ---- kinds that always go down ---- */

static int always_patches(const struct place *at, const cJSON *value, void *into)
{
    return config_read_annotations(at, value, into);
}

static const struct place_key ALWAYS_KEYS[] = {
    {"patches", always_patches},
    {0},
};

static int read_claims(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, ALWAYS_KEYS, &((struct config_to_host *)into)->claim_patches);
}

/* ---- ConfigMaps and Secrets: which of them, beside those that something refers to ---- */

static int data_all(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, into);
}

static const struct place_key DATA_KEYS[] = {
    {"all", data_all},
    {0},
};

static int read_config_maps(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, DATA_KEYS, &((struct config_to_host *)into)->all_config_maps);
}

static int read_secrets(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, DATA_KEYS, &((struct config_to_host *)into)->all_secrets);
}

/* ---- patches of a custom resource ---- */

struct patch_draft {
    struct config_patch patch;
    unsigned actions;
};

static bool is_well_formed(struct str path)
{
    struct str rest = path;

    while (rest.p) {
        struct str part = str_cut(&rest, '.');

        while (str_has_suffix(part, STR("[*]")))
            part.n -= 3;
        if (!part.n)
            return false;
        if (str_eqc(part, "*"))
            continue;
        for (size_t i = 0; i < part.n; i++)
            if (!isalnum((unsigned char)part.p[i]) && part.p[i] != '-' && part.p[i] != '_')
                return false;
    }
    return true;
}

static bool is_of_metadata(struct str path)
{
    return str_has_prefix(path, STR("metadata")) || str_eqc(path, "kind") ||
           str_eqc(path, "apiVersion");
}

bool config_path_valid(struct str path)
{
    return !is_of_metadata(path) && !str_has_prefix(path, STR("status")) && is_well_formed(path);
}

static int patch_path(const struct place *at, const cJSON *value, void *into)
{
    struct patch_draft *d = into;
    struct str path;

    if (place_string(at, value, &path))
        return -1;
    if (!config_path_valid(path))
        return place_error(at,
                           "\"%.*s\": want a path such as spec.rules[*].secretName; metadata "
                           "and status have rules of their own",
                           STR_F(path));
    d->patch.path = arena_cstr(at->arena, path);
    return 0;
}

/* A copy of the host's object has a status that follows no rules of ours. */
static int from_patch_path(const struct place *at, const cJSON *value, void *into)
{
    struct str path;

    if (place_string(at, value, &path))
        return -1;
    if (is_of_metadata(path) || *path.p == '*' || !is_well_formed(path))
        return place_error(at,
                           "\"%.*s\": want a path such as spec.servers[*].token; which keys of "
                           "metadata are shown is up to policy",
                           STR_F(path));
    ((struct patch_draft *)into)->patch.path = arena_cstr(at->arena, path);
    return 0;
}

static int reference_version(const struct place *at, const cJSON *value, void *into)
{
    struct str version;

    (void)into; /* the name of an object depends on its namespace and name only */
    return place_string(at, value, &version);
}

static int reference_kind(const struct place *at, const cJSON *value, void *into)
{
    return place_string(at, value, &((struct patch_draft *)into)->patch.kind);
}

static const struct place_key REFERENCE_KEYS[] = {
    {"apiVersion", reference_version},
    {"kind", reference_kind},
    {0},
};

static void set_action(struct patch_draft *d, enum config_patch_action action)
{
    d->patch.action = action;
    d->actions++;
}

static int patch_reference(const struct place *at, const cJSON *value, void *into)
{
    struct patch_draft *d = into;

    set_action(d, PATCH_REFERENCE);
    if (place_object(at, value, REFERENCE_KEYS, d))
        return -1;
    return d->patch.kind.n ? 0 : place_error(at, "kind is needed");
}

static int want_empty(const struct place *at, const cJSON *value)
{
    return json_is_object(value) && !json_count(value) ? 0 : place_error(at, "want {}");
}

static int patch_labels(const struct place *at, const cJSON *value, void *into)
{
    set_action(into, PATCH_LABELS);
    return want_empty(at, value);
}

static int patch_selector(const struct place *at, const cJSON *value, void *into)
{
    set_action(into, PATCH_SELECTOR);
    return want_empty(at, value);
}

static int patch_value(const struct place *at, const cJSON *value, void *into)
{
    struct patch_draft *d = into;

    set_action(d, PATCH_VALUE);
    d->patch.value = json_copy(at->arena, value);
    return 0;
}

static int patch_drop(const struct place *at, const cJSON *value, void *into)
{
    set_action(into, PATCH_DROP);
    return json_true(value) ? 0 : place_error(at, "want true");
}

static const struct place_key PATCH_KEYS[] = {
    {"path", patch_path},
    {"reference", patch_reference},
    {"labels", patch_labels},
    {"selector", patch_selector},
    {"value", patch_value},
    {"drop", patch_drop},
    {0},
};
static const struct place_key FROM_PATCH_KEYS[] = {
    {"path", from_patch_path},
    {"value", patch_value},
    {"drop", patch_drop},
    {0},
};

static int read_patches(const struct place *at, const cJSON *value, const struct place_key *keys,
                        const char *actions, struct config_patches *ret)
{
    struct config_patch *patches;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    if (json_count(value) > MOST_PATCHES)
        return place_error(at, "at most %d", MOST_PATCHES);
    patches = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*patches));
    json_each(item, value)
    {
        struct place inner = place_item(at, ret->n);
        struct patch_draft patch = {0};

        if (place_object(&inner, item, keys, &patch))
            return -1;
        if (!patch.patch.path || patch.actions != 1)
            return place_error(&inner, "want a path and one of %s", actions);
        patches[ret->n++] = patch.patch;
    }
    ret->items = patches;
    return 0;
}

int config_read_from_patches(const struct place *at, const cJSON *value, struct config_patches *ret)
{
    return read_patches(at, value, FROM_PATCH_KEYS, "value, drop", ret);
}

struct custom_draft {
    struct config_custom custom;
    bool enabled;
};

static int custom_patches(const struct place *at, const cJSON *value, void *into)
{
    return read_patches(at, value, PATCH_KEYS, "reference, labels, selector, value, drop",
                        &((struct custom_draft *)into)->custom.patches);
}

static int custom_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct custom_draft *)into)->enabled);
}

static const struct place_key CUSTOM_KEYS[] = {
    {"enabled", custom_enabled},
    {"patches", custom_patches},
    {0},
};

/* ---- custom resources ---- */

/* Groups under k8s.io whose kinds are custom resources on every cluster. */
static const char *const CUSTOM_GROUPS[] = {"gateway.networking.k8s.io", "snapshot.storage.k8s.io"};

static bool group_is_built_in(struct str group)
{
    for (size_t i = 0; i < COUNT(CUSTOM_GROUPS); i++)
        if (str_eqc(group, CUSTOM_GROUPS[i]))
            return false;
    return str_has_suffix(group, STR(".k8s.io"));
}

/* "plural.group" or "plural.group/version" */
static int split_name(const struct place *at, struct str name, struct config_custom *ret)
{
    struct str version = name, group = str_cut(&version, '/'), plural = str_cut(&group, '.');

    if (!version.p)
        version = STR("v1");
    if (!group.p || name_check_dns1123_label(plural) || name_check_dns1123_subdomain(group) ||
        str_find(group, '.') == group.n || name_check_dns1123_label(version))
        return place_error(at, "want the plural and the group of a custom resource, such as "
                               "certificates.cert-manager.io/v1");
    if (group_is_built_in(group))
        return place_error(at, "is a kind of Kubernetes itself: only custom resources go down by "
                               "their name");
    ret->plural = arena_cstr(at->arena, plural);
    ret->group = arena_cstr(at->arena, group);
    ret->version = arena_cstr(at->arena, version);
    return 0;
}

static int check_twice(const struct place *at, const struct config_to_host *to,
                       const struct config_custom *one)
{
    for (size_t i = 0; i < to->n_custom; i++)
        if (!strcmp(to->custom[i].plural, one->plural) && !strcmp(to->custom[i].group, one->group))
            return place_error(at, "is there in another version already");
    return 0;
}

static int read_custom(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct config_custom *custom;

    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    if (json_count(value) > MOST_CUSTOM)
        return place_error(at, "at most %d", MOST_CUSTOM);
    custom = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*custom));
    to->custom = custom;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct custom_draft d = {0};

        if (split_name(&inner, json_key(member), &d.custom) || check_twice(&inner, to, &d.custom))
            return -1;
        if (!json_is_null(member) && place_object(&inner, member, CUSTOM_KEYS, &d))
            return -1;
        if (d.enabled)
            custom[to->n_custom++] = d.custom;
    }
    return 0;
}

static const struct place_key TO_HOST_KEYS[] = {
    {"pods", config_read_pods},
    {"configMaps", read_config_maps},
    {"secrets", read_secrets},
    {"services", config_read_services},
    {"persistentVolumeClaims", read_claims},
    {"networkPolicies", read_network_policies},
    {"ingresses", read_ingresses},
    {"podDisruptionBudgets", read_disruption_budgets},
    {"endpointSlices", read_endpoint_slices},
    {"gatewayApi", skip},
    {"gateways", read_gateways},
    {"httpRoutes", read_http_routes},
    {"grpcRoutes", read_grpc_routes},
    {"tlsRoutes", read_tls_routes},
    {"backendTLSPolicies", read_backend_tls},
    {"resourceClaims", read_resource_claims},
    {"serviceAccounts", config_read_service_accounts},
    {"storageClasses", config_read_storage_classes},
    {"persistentVolumes", config_read_volumes},
    {"priorityClasses", config_read_priority_classes},
    {"customResources", read_custom},
    {0},
};

/* A kind with a key of its own is not translated by patches as well. */
static int check_keys(const struct place *at, const struct config_to_host *to)
{
    for (size_t i = 0; i < to->n_custom; i++) {
        for (int k = 0; k < N_SYNC_DOWN; k++)
            if (to->enabled[k] && !strcmp(to->custom[i].plural, CONFIG_DOWN_KINDS[k].plural) &&
                !strcmp(to->custom[i].group, CONFIG_DOWN_KINDS[k].group))
                return place_error(at,
                                   "%s is enabled already, and goes down by its own rules: "
                                   "customResources must not name %s.%s",
                                   CONFIG_DOWN_KINDS[k].key, to->custom[i].plural,
                                   to->custom[i].group);
    }
    return 0;
}

int config_load_to_host(struct arena *a, const cJSON *tree, struct config *config, struct err *err)
{
    struct place at = {a, STR("config: sync.toHost"), err};
    const cJSON *value = json_path(tree, "sync.toHost");
    struct config_to_host *to = ARENA_NEW(a, struct config_to_host);

    config->to_host = to;
    if (!value || json_is_null(value))
        return 0;
    if (place_object(&at, value, TO_HOST_KEYS, to) || read_gateway_api(&at, value, to))
        return -1;
    return check_keys(&at, to) || config_check_aliases(&at, config) ||
                   config_check_tolerations(&at, config)
               ? -1
               : 0;
}
