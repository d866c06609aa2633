/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pod may run. Why: the pool's node selector, product and tolerations are the fence around
 * GPUs, and selectors over pods would match other tenants' pods. Whatever the tenant wrote is ANDed
 * with the fence; terms are ORed, so the fence is in every one of them. Must never let a term
 * become wider than it was: a term that loses a condition is dropped. */

#include <string.h>

#include <sublet/config_sync.h>
#include <sublet/vgpu.h>

#include "shape.h"

static const char PRODUCT_LABEL[] = "nvidia.com/gpu.product";
static const char SHARING_LABEL[] = "nvidia.com/gpu.sharing-strategy";

/* Seconds a tenant's pods stay on a node that is lost. */
enum { NOT_READY_SECONDS_MAX = 3600 };

/* ---- products ---- */

/* Its nodes have another product name, and say how they share. */
static bool is_shared(const struct config_pool *pool)
{
    return pool->mode == POOL_TIME_SLICING || pool->mode == POOL_MPS;
}

struct str_list translate_pod_product_variants(struct arena *a, const struct config_pool *pool,
                                               const struct device_counts *requested,
                                               struct str product)
{
    struct str *items = arena_alloc(a, (requested->n + 2) * sizeof *items);
    struct str base = config_product_base(product), mig = STR("nvidia.com/mig-");
    size_t n = 0;

    for (size_t i = 0; pool->mode == POOL_MIG && i < requested->n; i++) {
        const struct pool_resource *r = config_pool_resource(pool, requested->items[i].name);

        /* The MIG strategy "single" shows slices as whole GPUs and appends the profile to the
         * product. */
        if (r && str_has_prefix(r->name, mig) && !str_eq(r->name, r->host_name))
            items[n++] =
                arena_printf(a, "%.*s-MIG-%.*s", STR_F(base), STR_F(str_from(r->name, mig.n)));
    }
    if (n == 0)
        items[n++] = base;
    if (is_shared(pool))
        items[n++] = arena_printf(a, "%.*s-SHARED", STR_F(base));
    return (struct str_list){items, n};
}

static void append_variants(struct down *d, struct str product, cJSON *values)
{
    struct str_list variants =
        translate_pod_product_variants(d->arena, d->pool, &d->requested, product);

    for (size_t i = 0; i < variants.n; i++)
        json_append(values, json_new_string(d->arena, variants.items[i]));
}

static cJSON *expression(struct arena *a, const char *key, const char *operator_)
{
    cJSON *ret = json_new_object(a);

    add_str(a, ret, "key", str_c(key));
    add_str(a, ret, "operator", str_c(operator_));
    return ret;
}

/* A device plugin that shares without another resource name says so in the product's name and in
 * this label. */
static void add_unshared(struct down *d, bool by_product, cJSON *to)
{
    static const enum pool_mode sharing[] = {POOL_TIME_SLICING, POOL_MPS};
    bool whole = d->pool->mode == POOL_EXCLUSIVE || d->pool->mode == POOL_MIG ||
                 d->pool->mode == POOL_KAI || vgpu_system(d->pool->mode); /* which share whole
                                                                           * ones themselves */
    cJSON *values;

    if (!whole || (by_product && !d->pool->adversarial))
        return;
    values = object_add(d->arena, json_append(to, expression(d->arena, SHARING_LABEL, "NotIn")),
                        STR("values"), json_new_array(d->arena));
    for (size_t i = 0; i < COUNT(sharing); i++)
        json_append(values, json_new_string(d->arena, config_mode_name(sharing[i])));
}

/* Expressions that every required term must hold as well; none when the fence is the node selector
 * alone. */
static cJSON *fence(struct down *d)
{
    struct str wanted = json_str(json_get(json_get(d->spec, "nodeSelector"), PRODUCT_LABEL));
    cJSON *ret, *one, *values;

    if (!d->pool)
        return translate_pod_fence_expressions(d->arena, d->tenant->config);
    ret = json_new_array(d->arena);
    add_unshared(d, wanted.n || d->pool->products.n, ret);
    if (!wanted.n && !d->pool->products.n)
        return ret;
    one = json_append(ret, expression(d->arena, PRODUCT_LABEL, "In"));
    values = object_add(d->arena, one, STR("values"), json_new_array(d->arena));
    if (wanted.n)
        append_variants(d, wanted, values);
    for (size_t i = 0; !wanted.n && i < d->pool->products.n; i++)
        append_variants(d, d->pool->products.items[i], values);
    return ret;
}

enum translate_node translate_pod_node_meaning(const struct translate_tenant *t, struct str name)
{
    return t->node && name.n ? t->node(t->node_ctx, name) : NODE_UNKNOWN;
}

/* ---- node affinity ---- */

static cJSON *expression_down(struct down *d, const cJSON *from)
{
    struct str key = json_str(json_get(from, "key"));
    const cJSON *values = json_get(from, "values");
    cJSON *ret = json_new_object(d->arena), *list;

    add_str(d->arena, ret, "key", key);
    add_str(d->arena, ret, "operator", json_str(json_get(from, "operator")));
    if (!json_is_array(values))
        return ret;
    list = object_add(d->arena, ret, STR("values"), json_new_array(d->arena));
    json_each(value, values)
    {
        if (!json_is_string(value))
            continue;
        if (d->pool && str_eqc(key, PRODUCT_LABEL))
            append_variants(d, json_str(value), list);
        else
            json_append(list, json_new_string(d->arena, json_str(value)));
    }
    return ret;
}

static const struct field PREFERENCE_FIELDS[] = {
    {"matchExpressions", FIELD_EACH, .make = expression_down},
    {"matchFields", FIELD_EACH, .make = expression_down},
    {0},
};

static const struct field PREFERRED_NODE_FIELDS[] = {
    {"weight", FIELD_SCALAR},
    {"preference", FIELD_OBJECT, .fields = PREFERENCE_FIELDS},
    {0},
};

/* Do all of the fields name nodes that the tenant may name on the host? NotIn reveals and opens
 * nothing. */
static bool fields_known(struct down *d, const cJSON *fields)
{
    json_each(field, fields)
    {
        if (!str_eqc(json_str(json_get(field, "key")), "metadata.name"))
            return false;
        if (str_eqc(json_str(json_get(field, "operator")), "NotIn"))
            continue;
        json_each(value, json_get(field, "values"))
        {
            if (translate_pod_node_meaning(d->tenant, json_str(value)) != NODE_SHOWN)
                return false;
        }
    }
    return true;
}

static void append_field(struct arena *a, cJSON *term, const char *operator_, struct str name)
{
    cJSON *fields = json_get(term, "matchFields"), *one, *values;

    if (!fields)
        fields = object_add(a, term, STR("matchFields"), json_new_array(a));
    one = json_append(fields, expression(a, "metadata.name", operator_));
    values = object_add(a, one, STR("values"), json_new_array(a));
    json_append(values, json_new_string(a, name));
}

/* The node of spec.nodeName as a field, so that the host's scheduler decides; and without devices
 * the nodes that only their names keep it off. */
static void append_nodes(struct down *d, cJSON *term)
{
    struct str name = json_str(json_get(d->spec, "nodeName"));

    if (name.n && !d->tenant->config->nodes_per_pool)
        append_field(d->arena, term, "In", name);
    for (size_t i = 0; i < d->tenant->unfenced.n && !d->pool; i++)
        append_field(d->arena, term, "NotIn", d->tenant->unfenced.items[i]);
}

static bool is_empty(const cJSON *term)
{
    return !json_count(json_get(term, "matchExpressions")) &&
           !json_count(json_get(term, "matchFields"));
}

/* A term, or NULL when it says nothing (it then matches no node) or cannot go down whole. */
static cJSON *term_down(struct down *d, const cJSON *from_, const cJSON *fence_)
{
    const cJSON *term = from_, *expressions, *fields;
    cJSON *ret = json_new_object(d->arena), *list;

    if (is_empty(from_) || !translate_pod_pool_node_settle(d, from_, &term))
        return NULL;
    expressions = json_get(term, "matchExpressions");
    fields = json_get(term, "matchFields");
    if (!fields_known(d, fields))
        return NULL;
    if (json_count(expressions) || json_count(fence_)) {
        list = object_add(d->arena, ret, STR("matchExpressions"), json_new_array(d->arena));
        json_each(from, expressions)
        {
            json_append(list, expression_down(d, from));
        }
        json_each(from, fence_)
        {
            json_append(list, json_copy(d->arena, from));
        }
    }
    if (json_count(fields)) {
        list = object_add(d->arena, ret, STR("matchFields"), json_new_array(d->arena));
        json_each(from, fields)
        {
            json_append(list, expression_down(d, from));
        }
    }
    append_nodes(d, ret);
    if (is_empty(ret)) { /* it holds for every node */
        list = object_add(d->arena, ret, STR("matchExpressions"), json_new_array(d->arena));
        json_append(list, expression(d->arena, "kubernetes.io/os", "Exists"));
    }
    return ret;
}

/* A term that no node meets, for terms of which none could go down. */
static cJSON *nowhere(struct arena *a)
{
    cJSON *ret = json_new_object(a);
    cJSON *list = object_add(a, ret, STR("matchExpressions"), json_new_array(a));

    json_append(list, expression(a, "kubernetes.io/os", "Exists"));
    json_append(list, expression(a, "kubernetes.io/os", "DoesNotExist"));
    return ret;
}

/* The term of a pod whose author wrote none; NULL when none is needed. */
static cJSON *only_term(struct down *d, cJSON *fence_)
{
    cJSON *ret = json_new_object(d->arena);

    if (json_count(fence_))
        object_add(d->arena, ret, STR("matchExpressions"), fence_);
    append_nodes(d, ret);
    return json_count(ret) ? ret : NULL;
}

static cJSON *required_nodes(struct down *d, const cJSON *required)
{
    struct str node = json_str(json_get(d->spec, "nodeName"));
    bool known = d->tenant->config->nodes_per_pool
                     ? translate_pod_pool_node_fits(d)
                     : !node.n || translate_pod_node_meaning(d->tenant, node) == NODE_SHOWN;
    cJSON *fence_ = fence(d), *ret = json_new_object(d->arena), *terms, *term;

    terms = object_add(d->arena, ret, STR("nodeSelectorTerms"), json_new_array(d->arena));
    if (known && !json_is_object(required)) {
        term = only_term(d, fence_);
        if (!term)
            return NULL;
        json_append(terms, term);
        return ret;
    }
    json_each(from, known ? json_get(required, "nodeSelectorTerms") : NULL)
    {
        term = term_down(d, from, fence_);
        if (term)
            json_append(terms, term);
    }
    if (!json_count(terms))
        json_append(terms, nowhere(d->arena));
    return ret;
}

static cJSON *preferred_down(struct down *d, const cJSON *one)
{
    const cJSON *before = json_get(one, "preference"), *term;
    cJSON *settled;

    if (!translate_pod_pool_node_settle(d, before, &term) ||
        !fields_known(d, json_get(term, "matchFields")))
        return NULL;
    if (term == before)
        return shape_copy(d, PREFERRED_NODE_FIELDS, one);
    if (is_empty(term)) /* it holds for every node the pod may be placed on */
        return NULL;
    settled = json_copy(d->arena, one);
    json_set(d->arena, settled, "preference", json_copy(d->arena, term));
    return shape_copy(d, PREFERRED_NODE_FIELDS, settled);
}

static const struct field NODE_PREFERRED_FIELDS[] = {
    {"preferredDuringSchedulingIgnoredDuringExecution", FIELD_EACH, .make = preferred_down},
    {0},
};

static cJSON *node_affinity_down(struct down *d, const cJSON *affinity)
{
    const char *key = "requiredDuringSchedulingIgnoredDuringExecution";
    cJSON *ret = json_new_object(d->arena);
    cJSON *required = required_nodes(d, json_get(affinity, key));

    if (required)
        object_add(d->arena, ret, str_c(key), required);
    shape_into(d, NODE_PREFERRED_FIELDS, affinity, ret);
    return ret;
}

/* ---- pod affinity ---- */

/* matchLabelKeys: the pod's own values, as the API server merges them into the selector. */
static void merge_keys(struct down *d, const cJSON *keys, const char *operator_, cJSON *selector)
{
    const cJSON *labels = json_get(d->meta, "labels");

    json_each(key, keys)
    {
        const cJSON *value = json_get_str(labels, json_str(key));

        if (json_is_string(value))
            translate_labels_selector_add(d->arena, selector,
                                          translate_label_key(d->arena, d->tenant, json_str(key)),
                                          operator_, json_str(value));
    }
}

static cJSON *pod_term_down(struct down *d, const cJSON *term)
{
    cJSON *ret = json_new_object(d->arena);
    cJSON *selector = translate_labels_selector(
        d->arena, d->tenant,
        translate_labels_scope(d->arena, d->tenant, d->ns, json_get(term, "namespaces"),
                               json_get(term, "namespaceSelector")),
        json_get(term, "labelSelector"));

    if (selector) {
        merge_keys(d, json_get(term, "matchLabelKeys"), "In", selector);
        merge_keys(d, json_get(term, "mismatchLabelKeys"), "NotIn", selector);
        object_add(d->arena, ret, STR("labelSelector"), selector);
    }
    add_str(d->arena, ret, "topologyKey", json_str(json_get(term, "topologyKey")));
    return ret;
}

static const struct field WEIGHTED_FIELDS[] = {
    {"weight", FIELD_SCALAR},
    {"podAffinityTerm", FIELD_MAKE, .make = pod_term_down},
    {0},
};

static const struct field POD_AFFINITY_FIELDS[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", FIELD_EACH, .make = pod_term_down},
    {"preferredDuringSchedulingIgnoredDuringExecution", FIELD_LIST, .fields = WEIGHTED_FIELDS},
    {0},
};

static const struct field AFFINITY_FIELDS[] = {
    {"podAffinity", FIELD_OBJECT, .fields = POD_AFFINITY_FIELDS},
    {"podAntiAffinity", FIELD_OBJECT, .fields = POD_AFFINITY_FIELDS},
    {0},
};

cJSON *translate_pod_affinity_down(struct down *d, const cJSON *affinity)
{
    cJSON *ret = json_new_object(d->arena);
    cJSON *nodes = node_affinity_down(d, json_get(affinity, "nodeAffinity"));

    if (json_count(nodes))
        object_add(d->arena, ret, STR("nodeAffinity"), nodes);
    shape_into(d, AFFINITY_FIELDS, affinity, ret);
    return json_count(ret) ? ret : NULL;
}

/* ---- topology spread ---- */

static const struct field SPREAD_FIELDS[] = {
    {"maxSkew", FIELD_SCALAR},
    {"topologyKey", FIELD_SCALAR},
    {"whenUnsatisfiable", FIELD_SCALAR},
    {"minDomains", FIELD_SCALAR},
    {"nodeAffinityPolicy", FIELD_SCALAR},
    {"nodeTaintsPolicy", FIELD_SCALAR},
    {0},
};

cJSON *translate_pod_spread_down(struct down *d, const cJSON *constraint)
{
    cJSON *ret = shape_copy(d, SPREAD_FIELDS, constraint);
    cJSON *selector =
        translate_label_selector(d->arena, d->tenant, d->ns, json_get(constraint, "labelSelector"));

    if (selector) {
        merge_keys(d, json_get(constraint, "matchLabelKeys"), "In", selector);
        object_add(d->arena, ret, STR("labelSelector"), selector);
    }
    return ret;
}

/* ---- node selector ---- */

/* What the admin fixes for pods without devices. */
static const cJSON *cpu_selector(struct down *d)
{
    struct str_list list = d->tenant->config->cpu_nodes;
    cJSON *ret = json_new_object(d->arena);

    for (size_t i = 0; i < list.n; i++) {
        struct str value = list.items[i], key = str_cut(&value, '=');

        object_add(d->arena, ret, key, json_new_string(d->arena, value));
    }
    return ret;
}

cJSON *translate_pod_node_selector_down(struct down *d, const cJSON *selector)
{
    const cJSON *fixed = d->pool ? d->pool->node_selector : cpu_selector(d);
    bool shared = d->pool && is_shared(d->pool);
    cJSON *ret = json_new_object(d->arena);

    json_each(member, fixed)
    {
        object_add(d->arena, ret, json_key(member), json_copy(d->arena, member));
    }
    if (shared && !json_get(fixed, SHARING_LABEL))
        add_str(d->arena, ret, SHARING_LABEL, config_mode_name(d->pool->mode));
    json_each(member, selector)
    {
        if (!json_is_object(selector) || !json_is_string(member) || json_get(fixed, member->string))
            continue;
        if (d->pool && strcmp(member->string, PRODUCT_LABEL) == 0) /* stands in the affinity */
            continue;
        if (translate_pod_pool_node_is_key(d, json_key(member)))
            continue;
        if (!shared || strcmp(member->string, SHARING_LABEL) != 0)
            object_add(d->arena, ret, json_key(member), json_copy(d->arena, member));
    }
    return json_count(ret) ? ret : NULL;
}

/* ---- tolerations ---- */

/* not-ready and unreachable: the tenant's seconds up to a bound, and only for NoExecute. */
static cJSON *eviction_down(struct down *d, const cJSON *from)
{
    struct str key = json_str(json_get(from, "key")), effect = json_str(json_get(from, "effect"));
    int64_t seconds = json_i64_at(from, "tolerationSeconds", NOT_READY_SECONDS_MAX);
    cJSON *ret;
    size_t i = 0;

    while (i < TOLERATED_DOWN && !str_eqc(key, POOL_TOLERATED_KEYS[i]))
        i++;
    if (i == TOLERATED_DOWN || (effect.n && !str_eqc(effect, "NoExecute")))
        return NULL;
    ret = json_new_object(d->arena);
    add_str(d->arena, ret, "key", key);
    add_str(d->arena, ret, "operator", STR("Exists"));
    add_str(d->arena, ret, "effect", STR("NoExecute"));
    json_set_i64(d->arena, ret, "tolerationSeconds",
                 seconds < NOT_READY_SECONDS_MAX ? seconds : NOT_READY_SECONDS_MAX);
    return ret;
}

cJSON *translate_pod_tolerations_down(struct down *d, const cJSON *tolerations)
{
    cJSON *ret = json_new_array(d->arena);

    json_each(from, tolerations)
    {
        cJSON *one = json_count(ret) < 16 ? eviction_down(d, from) : NULL;

        if (one)
            json_append(ret, one);
    }
    if (d->pool) {
        json_each(from, d->pool->tolerations)
        {
            json_append(ret, json_copy(d->arena, from));
        }
    }
    json_each(from, d->tenant->config->to_host->tolerations)
    {
        if (pool_enforces(d->tenant->config, from))
            json_append(ret, json_copy(d->arena, from));
    }
    return json_count(ret) ? ret : NULL;
}
