/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregated ClusterRoles (admin, edit, view, and a tenant's own): their rules are the union of
 * those of all roles that their selectors match. Must never use a role's own rules as a source, and
 * lists every rule once. */
#include "selector_index.h"
#include "util.h"

static void on_sum(void *ctx, struct str ns, struct str name)
{
    controller_add_name(ctx, ns, name);
}

/* The role may be aggregated, or a source of others. */
static void map_role(struct controller *c, const struct store_event *e)
{
    struct selector_index *x = controller_state(c);

    selector_index_apply(x, e);
    if (str_contains(e->object->bytes, STR("\"aggregationRule\":{")))
        controller_map_self(c, e);
    selector_index_event(x, e, on_sum, c);
}

static bool has_rule(const cJSON *rules, const cJSON *rule)
{
    json_each(known, rules)
    {
        if (json_equal(known, rule))
            return true;
    }
    return false;
}

static int add_matching(struct reconcile *r, const struct resource *res, const cJSON *sum,
                        const cJSON *spec, cJSON *rules)
{
    struct arena *a = reconcile_arena(r);
    struct selector selector;
    struct err err;

    err_init(&err, a);
    if (selector_from_json(a, spec, &selector, &err)) {
        reconcile_fail(r, &err);
        return -1;
    }
    json_each(role, reconcile_list(r, res, STR_NULL, &selector))
    {
        if (str_eq(meta_name(role), meta_name(sum)))
            continue;
        json_each(rule, json_get(role, "rules"))
        {
            if (!has_rule(rules, rule))
                json_append(rules, json_copy(a, rule));
        }
    }
    return 0;
}

static void aggregation_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *res = reconcile_resource(r, "rbac.authorization.k8s.io", "clusterroles");
    struct str ns, name;
    cJSON *sum, *rules = json_new_array(a);

    if (!key_split(reconcile_key(r), &ns, &name) || !(sum = reconcile_get(r, res, STR(""), name)) ||
        object_is_terminating(sum) || !json_is_object(json_get(sum, "aggregationRule")))
        return;
    json_each(spec, json_path(sum, "aggregationRule.clusterRoleSelectors"))
    {
        if (add_matching(r, res, sum, spec, rules))
            return;
    }
    const cJSON *now = json_get(sum, "rules");
    if (json_count(now) == json_count(rules) && (!json_count(rules) || json_equal(now, rules)))
        return;
    json_set(a, sum, "rules", rules);
    reconcile_update(r, res, sum);
}

static void *start(struct controller *c)
{
    (void)c;
    return selector_index_new(SELECTOR_AGGREGATE);
}

static const struct controller_source SOURCES[] = {
    {"rbac.authorization.k8s.io", "clusterroles", map_role},
    {NULL, NULL, NULL},
};

const struct controller_def AGGREGATION_CONTROLLER = {
    .name = "clusterrole-aggregation-controller",
    .sources = SOURCES,
    .reconcile = aggregation_reconcile,
    .start = start,
    .stop = selector_index_stop,
};
