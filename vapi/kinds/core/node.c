/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes. Source: ValidateNode in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"

#include <sublet/encode.h>
#include <ctype.h>
#include <string.h>

static void node_defaults(struct arena *a, cJSON *node)
{
    cJSON *status = json_get(node, "status"), *capacity = json_get(status, "capacity");
    cJSON *spec = json_get(node, "spec");
    struct str one = json_str(json_get(spec, "podCIDR"));
    struct str first = json_str(json_at(json_get(spec, "podCIDRs"), 0));

    if (capacity && !json_get(status, "allocatable"))
        json_set(a, status, "allocatable", json_copy(a, capacity));
    defaults_resource_list(a, json_get(status, "capacity"));
    defaults_resource_list(a, json_get(status, "allocatable"));
    /* podCIDR is the first of podCIDRs; where they differ, podCIDR is right (old clients). */
    if (one.n && !str_eq(one, first))
        json_append(json_set(a, spec, "podCIDRs", json_new_array(a)), json_new_string(a, one));
    else if (!one.n && first.n)
        json_set_str(a, spec, "podCIDR", first);
}

/* The configuration of a node was taken out of the API; only old objects still have one. */
static void node_prepare_create(struct arena *a, cJSON *node)
{
    (void)a;
    json_remove(json_get(node, "spec"), "configSource");
    json_remove(json_get(node, "status"), "config");
}

static void node_prepare_update(struct arena *a, cJSON *node, const cJSON *old)
{
    if (!json_path(old, "spec.configSource") && !json_path(old, "status.config"))
        node_prepare_create(a, node);
}

static void check_taint(struct field_errors *e, const struct field_path *p, const cJSON *taint)
{
    struct str value = json_str(json_get(taint, "value"));
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(NAME_LABEL_VALUE, value, messages);
    struct buf all = BUF_INIT(0);

    check_rule(e, FIELD(p, "key"), NAME_QUALIFIED, json_str(json_get(taint, "key")));
    for (size_t i = 0; i < n; i++) {
        buf_addc(&all, i ? ";" : "");
        buf_addc(&all, messages[i]);
    }
    if (n)
        field_invalid_str(e, FIELD(p, "value"), value, arena_str(e->arena, buf_str(&all)).p);
    buf_fini(&all);
    check_enum(e, FIELD(p, "effect"), json_str(json_get(taint, "effect")),
               ENUM_TAINT_EFFECT_DECLARED);
}

static void check_taints(const struct check *c)
{
    const struct field_path *p = FIELD(FIELD(NULL, "metadata"), "taints"); /* upstream's own path */
    struct names seen = {.arena = c->e->arena};

    field_each(taint, at, p, c->value)
    {
        struct str key = json_str(json_get(taint, "key"));
        struct str effect = json_str(json_get(taint, "effect"));

        check_taint(c->e, at, taint);
        if (!names_add(&seen, arena_printf(c->e->arena, "%.*s:%.*s", STR_F(key), STR_F(effect)),
                       taint))
            field_duplicate_because(c->e, at, taint,
                                    "taints must be unique by key and effect pair");
    }
}

static void check_amounts(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    json_each(quantity, list)
        check_resource_value(e, FIELD(p, quantity->string), str_c(quantity->string), quantity);
}

static void check_ranges(struct field_errors *e, const struct field_path *p, const cJSON *ranges)
{
    const cJSON *first = json_first(ranges);
    size_t n = json_count(ranges);

    field_each(range, at, p, ranges) check_cidr(e, at, json_str(range));
    if (n > 2 || (n == 2 && kinds_is_ipv6(json_str(first)) == kinds_is_ipv6(json_str(first->next))))
        field_invalid(e, p, ranges, "may specify no more than one CIDR for each IP family");
}

static void check_addresses(const struct check *c)
{
    struct names seen = {.arena = c->e->arena};

    field_each(address, at, c->at, c->value)
    {
        if (!names_add(&seen, json_text(c->e->arena, address), address))
            field_duplicate(c->e, at, address);
    }
}

/* MyFeature, MyFeature/mySubFeature. */
static bool is_feature(struct str name)
{
    if (!name.n || name.p[0] < 'A' || name.p[0] > 'Z')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];

        if (c == '/' ? i + 1 == name.n || name.p[i + 1] == '/' : c >= 0x80 || !isalnum(c))
            return false;
    }
    return true;
}

static const char *feature_problem(struct arena *a, struct str name)
{
    struct str quoted = go_quote(a, name);

    if (name.n > 253)
        return problem_printf(a, "invalid feature name %.*s: must be no more than 253 characters",
                              STR_F(quoted));
    if (is_feature(name))
        return NULL;
    return problem_printf(a,
                          "invalid feature name %.*s: must start with an UpperCamelCase segment, "
                          "with subsequent segments separated by '/' (e.g., MyFeature or "
                          "MyFeature/mySubFeature), and contain only alphanumeric characters and "
                          "slashes",
                          STR_F(quoted));
}

static void check_features(const struct check *c)
{
    size_t i = 0;

    json_each(feature, c->value)
    {
        const struct field_path *at = FIELD_INDEX(c->at, i), *following = FIELD_INDEX(c->at, i + 1);
        const char *why = feature_problem(c->e->arena, json_str(feature));
        int order = feature->next ? str_cmp(json_str(feature), json_str(feature->next)) : -1;

        if (why)
            field_invalid(c->e, at, feature, why);
        if (order == 0)
            field_duplicate(c->e, following, feature->next);
        else if (order > 0)
            field_invalid(c->e, following, feature->next, "list must be sorted alphabetically");
        i++;
    }
}

/* Upstream checks the whole object first on an update. */
static const struct rule NODE_RULES[] = {
    CALL("spec.taints", check_taints),
    CHECK("status.capacity", check_amounts),
    CHECK("status.allocatable", check_amounts),
    CALL("status.declaredFeatures", check_features),
    CHECK("spec.podCIDRs", check_ranges),
    ON_UPDATE(CALL("status.addresses", check_addresses)),
    FIXED_ONCE_SET("spec.podCIDRs",
                   "node updates may not change podCIDR except from \"\" to valid"),
    FIXED_ONCE_SET("spec.providerID",
                   "node updates may not change providerID except from \"\" to valid"),
    FIXED_ELSE_FORBIDDEN("spec.externalID", "may not be updated"),
};

/* ---- warnings ---- */

static WARNS(warn_node)
{
    WARNER(w);

    if (json_str(json_path(object, "spec.externalID")).n)
        warn_at(&w, FIELD(FIELD(NULL, "spec"), "externalID"),
                "this field is deprecated, and is unused by Kubernetes");
    if (kinds_given(object, "spec.configSource"))
        warn_at(&w, FIELD(FIELD(NULL, "spec"), "configSource"),
                "the feature is removed; value is ignored");
}

/* ---- cells ---- */

#define ROLE_PREFIX "node-role.kubernetes.io/"

CELL(cell_roles)
{
    struct cell_set s = {.n = 0};
    struct buf b = BUF_INIT(0);

    json_each(label, json_path(r->object, "metadata.labels"))
    {
        struct str key = str_c(label->string);

        if (str_has_prefix(key, STR(ROLE_PREFIX))) {
            if (key.n > strlen(ROLE_PREFIX))
                cell_set_add(&s, str_from(key, strlen(ROLE_PREFIX)));
        } else if (str_eqc(key, "kubernetes.io/role") && json_str(label).n) {
            cell_set_add(&s, json_str(label));
        }
    }
    cell_set_print(&b, &s);
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

CELL(cell_node_status)
{
    struct str ready = STR("Unknown");

    json_each(condition, json_path(r->object, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(condition, "type")), "Ready"))
            ready = str_eqc(json_str(json_get(condition, "status")), "True") ? STR("Ready")
                                                                             : STR("NotReady");
    }
    if (json_true(json_path(r->object, "spec.unschedulable")))
        ready = arena_printf(r->a, "%.*s,SchedulingDisabled", STR_F(ready));
    cell_text(r, ready);
}

/* path: the type of the address. */
static void cell_address(const struct row *r, const struct column *c)
{
    struct str found = STR("<none>");

    json_each(address, json_path(r->object, "status.addresses"))
    {
        if (str_eqc(json_str(json_get(address, "type")), c->path)) {
            found = json_str(json_get(address, "address"));
            break;
        }
    }
    cell_text(r, found);
}

CELL(cell_kernel)
{
    struct str kernel = json_str_at(r->object, "status.nodeInfo.kernelVersion");
    struct str arch = json_str_at(r->object, "status.nodeInfo.architecture");

    if (!kernel.n)
        kernel = STR("<unknown>");
    if (arch.n)
        kernel = arena_printf(r->a, "%.*s (%.*s)", STR_F(kernel), STR_F(arch));
    cell_text(r, kernel);
}

/* ---- the kind ---- */

const struct kind KIND_NODE = {
    RESOURCE("", "v1", "Node", "nodes", "node"),
    .resource.short_names = NAMES("no"),
    .resource.flags = RES_STATUS | RES_STATUS_ON_CREATE | RES_NAME_ON_UPDATE,
    COLUMNS({"Status", "string", .cell = cell_node_status}, {"Roles", "string", .cell = cell_roles},
            {"Age", "string", .cell = show_age},
            {"Version", "string", .cell = show_text, .path = "status.nodeInfo.kubeletVersion"},
            {"Internal-IP", "string", .priority = 1, .cell = cell_address, .path = "InternalIP"},
            {"External-IP", "string", .priority = 1, .cell = cell_address, .path = "ExternalIP"},
            {"OS-Image", "string", .priority = 1, .cell = show_text,
             .path = "status.nodeInfo.osImage", .otherwise = "<unknown>"},
            {"Kernel-Version", "string", .priority = 1, .cell = cell_kernel},
            {"Container-Runtime", "string", .priority = 1, .cell = show_text,
             .path = "status.nodeInfo.containerRuntimeVersion", .otherwise = "<unknown>"}),
    FIELDS({"spec.unschedulable", "spec.unschedulable", "false"}),
    SUBRESOURCES({"proxy", SUB_PROXY,
                  VERB_GET | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE, "", "",
                  "NodeProxyOptions", NULL},
                 STATUS_OF("Node")),
    .defaults = node_defaults,
    .prepare_create = node_prepare_create,
    .prepare_update = node_prepare_update,
    .prepare_status = node_prepare_update,
    .rules = RULES(NODE_RULES),
    .status_rules = RULES(NODE_RULES),
    .warnings = warn_node,
};
