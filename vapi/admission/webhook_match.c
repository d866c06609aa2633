/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a webhook applies to a request: selectors, then rules, then the same rules for other
 * versions of the object (matchPolicy Equivalent). Must never apply one to a configuration of
 * admission itself, or a broken webhook could not be removed. Source: apiserver
 * pkg/admission/plugin/webhook/{generic,predicates}. */
#include "plugins.h"
#include "webhook_impl.h"

#include <sublet/selector.h>

static bool rule_admits(const cJSON *rule, const struct webhook_review *r,
                        const struct resource *as)
{
    const struct call *c = r->call;

    return plugin_rule_admits(rule, r->operation, c->ns.n && !resource_is_namespace(r->requested),
                              as, c->sub ? str_c(c->sub->name) : STR(""));
}

/* ---- other versions ---- */

struct equivalent {
    const cJSON *rule;
    const struct webhook_review *review;
    const struct resource *found;
};

static bool on_resource(void *ctx, const struct resource *as)
{
    struct equivalent *e = ctx;

    if (as->storage != e->review->requested->storage || as == e->review->requested ||
        as->flags & RES_REVIEW || !rule_admits(e->rule, e->review, as))
        return true;
    e->found = as;
    return false;
}

static const struct resource *matching_version(const cJSON *hook, const struct webhook_review *r)
{
    json_each(rule,
              json_get(hook, "rules")) if (rule_admits(rule, r, r->requested)) return r->requested;
    if (!str_eqc(json_str(json_get(hook, "matchPolicy")), "Equivalent"))
        return NULL;
    json_each(rule, json_get(hook, "rules"))
    {
        struct equivalent e = {.rule = rule, .review = r};

        registry_each(vapi_registry(r->call->api), on_resource, &e);
        if (e.found)
            return e.found;
    }
    return NULL;
}

/* ---- selectors ---- */

static bool selects(const struct selector *s, struct arena *a, const cJSON *object)
{
    return object && selector_match(s, labels_flatten(a, json_path(object, "metadata.labels")));
}

static bool object_selected(struct arena *a, const cJSON *hook, const struct webhook_review *r)
{
    const cJSON *given = json_get(hook, "objectSelector");
    struct selector s;

    if (!json_count(given))
        return true;
    if (selector_from_json(a, given, &s, NULL))
        return false;
    return selects(&s, a, r->object) || selects(&s, a, r->old);
}

/* A namespace that does not exist has no labels; the write itself is refused for it. */
static bool namespace_selected(struct arena *a, const cJSON *hook, const struct webhook_review *r)
{
    const cJSON *given = json_get(hook, "namespaceSelector");
    bool own = resource_is_namespace(r->requested);
    const struct resource *spaces =
        registry_find_group_resource(vapi_registry(r->call->api), STR(""), STR("namespaces"));
    const struct store_object *o;
    struct selector s;

    if (!json_count(given) || (!own && !r->call->ns.n))
        return true;
    if (selector_from_json(a, given, &s, NULL))
        return false;
    if (own && r->object && !r->call->sub)
        return selects(&s, a, r->object);
    o = spaces ? store_latest(vapi_store(r->call->api), spaces->storage, STR(""),
                              own ? r->call->name : r->call->ns)
               : NULL;
    return selector_match(&s, o ? o->labels : STR(""));
}

bool webhook_matches(struct arena *a, const cJSON *hook, const struct webhook_review *r,
                     const struct resource **ret_as)
{
    const struct resource *as;

    if (str_eqc(r->requested->group, "admissionregistration.k8s.io"))
        return false;
    as = matching_version(hook, r);
    if (!as || !namespace_selected(a, hook, r) || !object_selected(a, hook, r))
        return false;
    *ret_as = as;
    return true;
}
