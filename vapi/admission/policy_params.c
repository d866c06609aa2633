/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters a binding names: objects of the policy's paramKind, by name or by labels. Reading
 * them is charged to the request. Source: k8s.io/apiserver policy/generic/policy_dispatcher.go
 * (CollectParams), policy_source.go. */
#include "policies.h"

#include <sublet/call.h>

#define COST_PARAM 100 /* and one for each 16 bytes */

static const struct resource *kind_of(const struct policy_request *q, const struct policy *p)
{
    const cJSON *kind = json_get(p->spec, "paramKind");
    struct str version = json_str(json_get(kind, "apiVersion")), group = STR("");

    if (str_find(version, '/') < version.n)
        group = str_cut(&version, '/');
    return registry_find_kind(vapi_registry(q->call->api), group, version,
                              json_str(json_get(kind, "kind")));
}

const char *policy_params_problem(const struct policy_request *q, const struct policy *p)
{
    const cJSON *kind = json_get(p->spec, "paramKind");
    struct str version = json_str(json_get(kind, "apiVersion"));

    if (!json_is_object(kind) || kind_of(q, p))
        return NULL;
    return arena_printf(q->arena,
                        "failed to find resource referenced by paramKind: '%.*s%.*s, Kind=%.*s'",
                        STR_F(str_find(version, '/') < version.n ? STR("") : STR("/")),
                        STR_F(version), STR_F(json_str(json_get(kind, "kind"))))
        .p;
}

struct collecting {
    struct policy_request *q;
    const struct resource *r;
    const struct selector *labels;
    struct policy_params *params;
    size_t cap;
};

static void add(struct collecting *c, const struct store_object *o)
{
    ARENA_GROW(c->q->arena, c->params->items, c->params->n, c->cap);
    c->params->items[c->params->n++] = convert_tree(c->q->arena, c->r, o);
    c->q->left -= COST_PARAM + (int64_t)o->bytes.n / 16;
}

/* Those that the budget does not reach are not read: the request is refused for it. */
static bool on_param(void *ctx, const struct store_object *o)
{
    struct collecting *c = ctx;

    if (selector_match(c->labels, o->labels))
        add(c, o);
    c->q->left--;
    return c->q->left > 0 && !arena_over(c->q->arena);
}

static const char *find(struct collecting *c, const cJSON *ref, struct str ns)
{
    struct store *s = vapi_store(c->q->call->api);
    struct str name = json_str(json_get(ref, "name"));
    const struct store_object *o;
    struct selector labels;
    struct err err;

    err_init(&err, c->q->arena);
    if (name.n) {
        o = store_get(s, c->r->storage, ns, name);
        if (o)
            add(c, o);
        return NULL;
    }
    if (selector_from_json(c->q->arena, json_get(ref, "selector"), &labels, &err))
        return err.message.p;
    c->labels = &labels;
    if (store_scan(s, c->r->storage, ns, STR_NULL, STR_NULL, 0, on_param, c, &err))
        return err.message.p;
    return c->q->left > 0 ? NULL : POLICY_OUT_OF_BUDGET;
}

const char *policy_params_collect(struct policy_request *q, const struct policy *p,
                                  const struct policy *binding, struct policy_params *ret)
{
    const cJSON *ref = json_get(binding->spec, "paramRef");
    struct str ns = json_str(json_get(ref, "namespace"));
    struct collecting c = {.q = q, .r = kind_of(q, p), .params = ret};
    const char *problem;

    *ret = (struct policy_params){NULL, 1};
    if (!json_is_object(json_get(p->spec, "paramKind")) || !json_is_object(ref))
        return NULL;
    ret->n = 0;
    if (!c.r)
        return policy_params_problem(q, p);
    if (!resource_namespaced(c.r) && ns.n)
        return "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
    if (resource_namespaced(c.r) && !ns.n && !q->ns.n)
        return "cannot use namespaced paramRef in policy binding that matches cluster-scoped "
               "resources";
    problem = find(&c, ref, !resource_namespaced(c.r) ? STR("") : ns.n ? ns : q->ns);
    if (!problem && !ret->n && str_eqc(json_str(json_get(ref, "parameterNotFoundAction")), "Deny"))
        return "no params found for policy binding with `Deny` parameterNotFoundAction";
    return problem;
}
