/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a policy, a binding or a webhook is about: rules, selectors, equivalent resources.
 * Source: k8s.io/apiserver admission/plugin/policy/matching/matching.go, webhook/generic (
 * ShouldCallHook), webhook/predicates (rules, namespace, object). */
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

void policy_match_read(struct arena *a, const cJSON *spec, const char *rules,
                       struct policy_match *ret)
{
    ret->rules = json_get(spec, rules);
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

static bool rule_fits(const struct policy_request *q, const cJSON *rule, const struct resource *r)
{
    const struct admission_call *c = q->call;
    bool namespaced = q->ns.n && !resource_is_namespace(c->resource);

    return plugin_rule_admits(rule, c->operation, namespaced, r, c->subresource) &&
           name_fits(q, rule);
}

/* Other versions and groups of the same stored objects, with the same subresource. */
struct equivalent {
    const struct policy_request *q;
    const cJSON *rule;
    const struct resource *found;
};

static bool on_resource(void *ctx, const struct resource *r)
{
    struct equivalent *e = ctx;
    const struct resource *own = e->q->call->resource;

    struct str sub = e->q->call->subresource;

    if (r != own && r->storage == own->storage && !(r->flags & RES_REVIEW) &&
        (!sub.n || resource_sub(r, sub)) && rule_fits(e->q, e->rule, r))
        e->found = r;
    return !e->found;
}

/* The requested resource, if any rule names it; else what the first rule names that fits. */
static const struct resource *find_rule(const struct policy_request *q,
                                        const struct policy_match *m, const cJSON *rules)
{
    json_each(rule, rules)
    {
        if (rule_fits(q, rule, q->call->resource))
            return q->call->resource;
    }
    if (!m->equivalent)
        return NULL;
    json_each(rule, rules)
    {
        struct equivalent e = {q, rule, NULL};

        registry_each(vapi_registry(q->call->api), on_resource, &e);
        if (e.found)
            return e.found;
    }
    return NULL;
}

/* ---- selectors ---- */

static bool selects_all(const struct selector *s)
{
    return !s->n && !s->nothing;
}

/* Of the object and of the old one, printed once for all that select by them. */
static struct str labels_of(struct policy_request *q, bool old)
{
    const cJSON *object = old ? q->old : q->object;

    if (!q->has_labels[old] && object)
        q->labels[old] = labels_flatten(q->arena, json_path(object, "metadata.labels"));
    q->has_labels[old] = true;
    return q->labels[old];
}

/* A created or updated Namespace has its own labels. */
static int namespace_fits(struct policy_request *q, const struct policy_match *m, struct err *err)
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
        return selector_match(&m->ns, labels_of(q, false));
    ns = plugin_stored(c, "", "namespaces", STR(""), q->ns);
    if (!ns)
        return err_not_found(err, STR(""), STR("namespaces"), q->ns);
    return selector_match(&m->ns, ns->labels);
}

static int object_fits(struct policy_request *q, const struct policy_match *m, struct err *err)
{
    if (m->object_error.kind)
        return err_set(err, &ERR_INTERNAL, "%.*s", STR_F(m->object_error.message));
    if (selects_all(&m->object))
        return 1;
    if (q->call->operation == ADMISSION_CONNECT) /* options have no metadata */
        return 0;
    return (q->object && selector_match(&m->object, labels_of(q, false))) ||
           (q->old && selector_match(&m->object, labels_of(q, true)));
}

/* An error of a selector counts only where the rules match. */
int policy_matches(struct policy_request *q, const struct policy_match *m,
                   const struct resource **ret_as, struct err *err)
{
    struct err ns_err, object_err;
    int by_ns, by_object;

    err_init(&ns_err, err->arena);
    err_init(&object_err, err->arena);
    by_ns = namespace_fits(q, m, &ns_err);
    by_object = by_ns ? object_fits(q, m, &object_err) : 0;
    *ret_as = q->call->resource;
    if (!by_ns || !by_object || find_rule(q, m, m->excluded))
        return 0;
    if (json_count(m->rules) && !(*ret_as = find_rule(q, m, m->rules)))
        return 0;
    if (by_ns > 0 && by_object > 0)
        return 1;
    *err = by_ns < 0 ? ns_err : object_err;
    return -1;
}
