/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a policy or a binding is about: rules, selectors, equivalent resources. Source:
 * k8s.io/apiserver admission/plugin/policy/matching/matching.go, webhook/predicates (rules,
 * namespace, object). */
#include "policies.h"

#include <sublet/object.h>

static void read_selector(struct arena *a, const cJSON *spec, const char *key, struct selector *ret,
                          struct err *err)
{
    static const struct selector everything = {0};
    const cJSON *selector = json_get(spec, key);

    err_init(err, a);
    *ret = everything;
    if (json_is_object(selector) && selector_from_json(a, selector, ret, err))
        ret->nothing = true;
}

void policy_match_read(struct arena *a, const cJSON *spec, struct policy_match *ret)
{
    ret->rules = json_get(spec, "resourceRules");
    ret->excluded = json_get(spec, "excludeResourceRules");
    ret->equivalent = str_eqc(json_str(json_get(spec, "matchPolicy")), "Equivalent");
    read_selector(a, spec, "namespaceSelector", &ret->ns, &ret->ns_error);
    read_selector(a, spec, "objectSelector", &ret->object, &ret->object_error);
}

/* ---- rules ---- */

static bool name_fits(const struct policy_request *q, const cJSON *rule)
{
    const cJSON *names = json_get(rule, "resourceNames");

    return !json_count(names) || json_list_has(names, q->name);
}

static bool rules_fit(const struct policy_request *q, const cJSON *rules, const struct resource *r)
{
    const struct admission_call *c = q->call;
    bool namespaced = q->ns.n && !resource_is_namespace(c->resource);

    json_each(rule, rules)
    {
        if (plugin_rule_admits(rule, c->operation, namespaced, r, c->subresource) &&
            name_fits(q, rule))
            return true;
    }
    return false;
}

/* Other versions and groups of the same stored objects. */
struct equivalents {
    const struct policy_request *q;
    const cJSON *rules;
    const struct resource *found;
};

static bool on_resource(void *ctx, const struct resource *r)
{
    struct equivalents *e = ctx;
    const struct resource *own = e->q->call->resource;

    if (r != own && r->storage == own->storage && rules_fit(e->q, e->rules, r))
        e->found = r;
    return !e->found;
}

static const struct resource *find_rule(const struct policy_request *q,
                                        const struct policy_match *m, const cJSON *rules)
{
    struct equivalents e = {q, rules, NULL};

    if (rules_fit(q, rules, q->call->resource))
        return q->call->resource;
    if (m->equivalent && json_count(rules))
        registry_each(vapi_registry(q->call->api), on_resource, &e);
    return e.found;
}

/* ---- selectors ---- */

static bool selects_all(const struct selector *s)
{
    return !s->n && !s->nothing;
}

/* A created or updated Namespace has its own labels. */
static int namespace_fits(const struct policy_request *q, const struct policy_match *m,
                          struct err *err)
{
    const struct admission_call *c = q->call;
    const struct store_object *ns;

    if (!q->ns.n && !resource_is_namespace(c->resource))
        return 1;
    if (m->ns_error.kind)
        return err_set(err, &ERR_INTERNAL, "%.*s", STR_F(m->ns_error.message));
    if (selects_all(&m->ns))
        return 1;
    if (resource_is_namespace(c->resource) && !c->subresource.n && q->object)
        return selector_match(&m->ns,
                              labels_flatten(q->arena, json_path(q->object, "metadata.labels")));
    ns = plugin_stored(c, "", "namespaces", STR(""), q->ns);
    if (!ns)
        return err_not_found(err, STR(""), STR("namespaces"), q->ns);
    return selector_match(&m->ns, ns->labels);
}

static int object_fits(const struct policy_request *q, const struct policy_match *m,
                       struct err *err)
{
    const cJSON *objects[] = {q->object, q->old};

    if (m->object_error.kind)
        return err_set(err, &ERR_INTERNAL, "%.*s", STR_F(m->object_error.message));
    if (selects_all(&m->object))
        return 1;
    for (size_t i = 0; i < COUNT(objects); i++) {
        if (objects[i] &&
            selector_match(&m->object,
                           labels_flatten(q->arena, json_path(objects[i], "metadata.labels"))))
            return 1;
    }
    return 0;
}

/* An error of a selector counts only where the rules match. */
int policy_matches(const struct policy_request *q, const struct policy_match *m,
                   const struct resource **ret_as, struct err *err)
{
    struct err object_err;
    int by_ns, by_object;

    err_init(&object_err, q->arena);
    by_ns = namespace_fits(q, m, err);
    by_object = by_ns ? object_fits(q, m, &object_err) : 0;
    *ret_as = q->call->resource;
    if (!by_ns || !by_object || find_rule(q, m, m->excluded))
        return 0;
    if (json_count(m->rules) && !(*ret_as = find_rule(q, m, m->rules)))
        return 0;
    if (by_ns > 0 && by_object < 0)
        *err = object_err;
    return by_ns < 0 || by_object < 0 ? -1 : 1;
}
