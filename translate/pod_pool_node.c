/* SPDX-License-Identifier: Apache-2.0 */
/* Names of nodes in a pod where each stands for the nodes of a pool (sync.nodes: perPool). The host
 * has no node of such a name, so what a tenant writes about it is settled here: true, and the fence
 * of the pool is all that remains, or false, and the term leads nowhere. Must never let a name of
 * the tenant's meet one of a machine. */

#include <sublet/translate_pool_node.h>

#include "shape.h"

static const char HOSTNAME_LABEL[] = "kubernetes.io/hostname";

struct str translate_pod_pool_node(const struct down *d)
{
    return translate_pool_node_name(d->pool);
}

bool translate_pod_pool_node_fits(const struct down *d)
{
    struct str name = json_str(json_get(d->spec, "nodeName"));
    const cJSON *host = json_get(json_get(d->spec, "nodeSelector"), HOSTNAME_LABEL);

    return (!name.n || str_eq(name, translate_pod_pool_node(d))) &&
           (!host || str_eq(json_str(host), translate_pod_pool_node(d)));
}

bool translate_pod_pool_node_is_key(const struct down *d, struct str key)
{
    return d->tenant->config->nodes_per_pool && str_eqc(key, HOSTNAME_LABEL);
}

/* Does the node of the pod meet this requirement of its name? */
static bool meets(const struct down *d, const cJSON *one)
{
    struct str operator_ = json_str(json_get(one, "operator"));
    bool listed = json_list_has(json_get(one, "values"), translate_pod_pool_node(d));

    return str_eqc(operator_, "In")      ? listed
           : str_eqc(operator_, "NotIn") ? !listed
                                         : str_eqc(operator_, "Exists");
}

/* The requirements that are not about the node's name; false: one of those is not met. */
static bool settle_list(struct down *d, const cJSON *list, const char *name_key, bool only_names,
                        cJSON *ret)
{
    json_each(one, list)
    {
        if (str_eqc(json_str(json_get(one, "key")), name_key)) {
            if (!meets(d, one))
                return false;
        } else if (only_names) {
            return false;
        } else {
            json_append(ret, json_copy(d->arena, one));
        }
    }
    return true;
}

bool translate_pod_pool_node_settle(struct down *d, const cJSON *term, const cJSON **ret)
{
    cJSON *expressions = json_new_array(d->arena), *fields = json_new_array(d->arena), *copy;

    *ret = term;
    if (!d->tenant->config->nodes_per_pool)
        return true;
    if (!settle_list(d, json_get(term, "matchExpressions"), HOSTNAME_LABEL, false, expressions) ||
        !settle_list(d, json_get(term, "matchFields"), "metadata.name", true, fields))
        return false;
    copy = json_new_object(d->arena);
    if (json_count(expressions))
        json_set(d->arena, copy, "matchExpressions", expressions);
    *ret = copy;
    return true;
}
