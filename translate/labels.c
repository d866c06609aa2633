/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and selectors. Why: host schedulers, meshes, policy engines and cloud controllers obey
 * labels, and the admin's own Services, PodMonitors and policies select by the common ones (app,
 * app.kubernetes.io/name); a ReplicaSet or StatefulSet of the host namespace even adopts pods by
 * them. So a key keeps its name only where the admin allows it; every other goes down under a
 * hashed key, which selectors translated by the same function still find. Must never emit a
 * selector that is not narrowed to this tenant, nor let a tenant write a key under sublet.dev/. */

#include <string.h>

#include "impl.h"

/* What an API server writes into a pod when it is bound to a node. The host's API server writes it,
 * too: ours stay in the virtual cluster, and selectors match the host's. */
static const char *const WRITTEN_BY_BOTH[] = {"topology.kubernetes.io/region",
                                              "topology.kubernetes.io/zone"};

static bool key_matches(struct str key, struct str entry)
{
    if (entry.n && entry.p[entry.n - 1] == '/')
        return key.n > entry.n && str_has_prefix(key, entry);
    return entry.n && str_eq(key, entry);
}

/* A trailing slash in the list stands for all keys below it. */
bool translate_labels_key_listed(struct str key, struct str_list allow)
{
    if (str_has_prefix(key, STR("sublet.dev/")) || config_key_steers(key))
        return false;
    for (size_t i = 0; i < allow.n; i++) {
        if (key_matches(key, allow.items[i]))
            return true;
    }
    return false;
}

static bool written_by_both(struct str key)
{
    for (size_t i = 0; i < COUNT(WRITTEN_BY_BOTH); i++) {
        if (str_eqc(key, WRITTEN_BY_BOTH[i]))
            return true;
    }
    return false;
}

void translate_labels_drop_written_by_both(cJSON *labels)
{
    for (size_t i = 0; i < COUNT(WRITTEN_BY_BOTH); i++)
        json_remove(labels, WRITTEN_BY_BOTH[i]);
}

bool translate_topology_key(struct str key, struct str_list listed)
{
    return written_by_both(key) || str_list_has(listed, key);
}

static struct str hashed(struct arena *a, struct str key)
{
    char hash[HASH_CHARS + 1];

    translate_hash(1, &key, hash);
    return arena_printf(a, LABEL_HASHED "%s", hash);
}

struct str translate_label_key(struct arena *a, const struct translate_tenant *t, struct str key)
{
    if (translate_labels_key_listed(key, t->config->labels_allow) || written_by_both(key))
        return key;
    return hashed(a, key);
}

static void add_labels(struct arena *a, const struct translate_tenant *t, const cJSON *labels,
                       cJSON *to)
{
    json_each(label, labels)
    {
        struct str key = json_key(label), value = json_str(label);

        if (json_is_string(label) && json_is_object(labels))
            object_add(a, to,
                       config_value_steers(key, value) ? hashed(a, key)
                                                       : translate_label_key(a, t, key),
                       json_new_string(a, value));
    }
}

cJSON *translate_labels(struct arena *a, const struct translate_tenant *t, struct str ns,
                        const cJSON *labels)
{
    cJSON *ret = json_new_object(a);

    add_str(a, ret, LABEL_CLUSTER, t->cluster_uid);
    add_str(a, ret, LABEL_NAMESPACE, ns);
    add_labels(a, t, labels, ret);
    return ret;
}

cJSON *translate_match_labels(struct arena *a, const struct translate_tenant *t, struct str ns,
                              const cJSON *map)
{
    return translate_labels(a, t, ns, map);
}

static cJSON *new_term(struct arena *a, struct str key, struct str operator_)
{
    cJSON *term = json_new_object(a);

    add_str(a, term, "key", key);
    add_str(a, term, "operator", operator_);
    return term;
}

static cJSON *expressions_of(struct arena *a, cJSON *selector)
{
    cJSON *list = json_get(selector, "matchExpressions");

    return list ? list : object_add(a, selector, STR("matchExpressions"), json_new_array(a));
}

void translate_labels_selector_add(struct arena *a, cJSON *selector, struct str key,
                                   const char *operator_, struct str value)
{
    cJSON *term = new_term(a, key, str_c(operator_));
    cJSON *values = object_add(a, term, STR("values"), json_new_array(a));

    json_append(values, json_new_string(a, value));
    json_append(expressions_of(a, selector), term);
}

static void add_expression(struct arena *a, const struct translate_tenant *t, const cJSON *from,
                           cJSON *to)
{
    struct str key = json_str(json_get(from, "key"));
    const cJSON *values = json_get(from, "values");
    cJSON *term = new_term(a, translate_label_key(a, t, key), json_str(json_get(from, "operator")));

    if (json_count(values)) {
        cJSON *list = object_add(a, term, STR("values"), json_new_array(a));

        json_each(value, values)
        {
            if (json_is_string(value))
                json_append(list, json_new_string(a, json_str(value)));
        }
    }
    json_append(expressions_of(a, to), term);
}

/* The namespaces a selector sees: one is a label, several an expression, none a contradiction. */
static void add_scope(struct arena *a, struct scope scope, cJSON *match, cJSON *selector)
{
    cJSON *term, *values;

    if (scope.all)
        return;
    if (scope.n == 1) {
        add_str(a, match, LABEL_NAMESPACE, scope.namespaces[0]);
        return;
    }
    if (scope.n == 0) {
        json_append(expressions_of(a, selector),
                    new_term(a, STR(LABEL_CLUSTER), STR("DoesNotExist")));
        return;
    }
    term = new_term(a, STR(LABEL_NAMESPACE), STR("In"));
    values = object_add(a, term, STR("values"), json_new_array(a));
    for (size_t i = 0; i < scope.n; i++)
        json_append(values, json_new_string(a, scope.namespaces[i]));
    json_append(expressions_of(a, selector), term);
}

cJSON *translate_labels_selector(struct arena *a, const struct translate_tenant *t,
                                 struct scope scope, const cJSON *selector)
{
    const cJSON *expressions = json_get(selector, "matchExpressions");
    cJSON *ret, *match;

    if (!json_is_object(selector))
        return NULL;
    ret = json_new_object(a);
    match = object_add(a, ret, STR("matchLabels"), json_new_object(a));
    add_str(a, match, LABEL_CLUSTER, t->cluster_uid);
    add_scope(a, scope, match, ret);
    add_labels(a, t, json_get(selector, "matchLabels"), match);

    if (json_is_array(expressions)) {
        json_each(expression, expressions)
        {
            add_expression(a, t, expression, ret);
        }
    }
    return ret;
}

cJSON *translate_label_selector(struct arena *a, const struct translate_tenant *t, struct str ns,
                                const cJSON *selector)
{
    return translate_labels_selector(a, t, (struct scope){&ns, 1, false}, selector);
}

/* ---- namespaces of a term ---- */

const struct translate_namespaces *translate_namespaces_of(struct arena *a, const cJSON *list)
{
    struct translate_namespaces *ret;

    if (!list)
        return NULL;
    ret = ARENA_NEW(a, struct translate_namespaces);
    ret->items = arena_alloc(a, ((size_t)json_count(list) + 1) * sizeof(*ret->items));
    json_each(ns, list) ret->items[ret->n++] = (struct translate_namespace){
        json_str_at(ns, "metadata.name"), labels_flatten(a, json_path(ns, "metadata.labels"))};
    return ret;
}

size_t translate_namespaces_count(const struct translate_tenant *t)
{
    return t->namespaces ? t->namespaces->n : 0;
}

static size_t add_named(const cJSON *namespaces, struct str *out)
{
    size_t n = 0;

    json_each(one, namespaces)
    {
        if (json_str(one).n)
            out[n++] = json_str(one);
    }
    return n;
}

/* Those of the tenant's namespaces a namespaceSelector selects. */
static size_t add_selected(struct arena *a, const struct translate_tenant *t, const cJSON *selector,
                           struct str *out)
{
    struct selector parsed;
    size_t n = 0;

    if (selector_from_json(a, selector, &parsed, NULL))
        return 0;
    for (size_t i = 0; i < translate_namespaces_count(t); i++) {
        const struct translate_namespace *ns = &t->namespaces->items[i];

        if (ns->name.n && selector_match(&parsed, ns->labels))
            out[n++] = ns->name;
    }
    return n;
}

struct scope translate_labels_scope(struct arena *a, const struct translate_tenant *t,
                                    struct str ns, const cJSON *named, const cJSON *selector)
{
    struct scope scope = {0};
    struct str *out;

    if (json_is_object(selector) && !json_count(json_get(selector, "matchLabels")) &&
        !json_count(json_get(selector, "matchExpressions")))
        return (struct scope){.all = true};
    out = arena_alloc(a, ((size_t)json_count(named) + translate_namespaces_count(t) + 1) *
                             sizeof *out);
    scope.namespaces = out;
    if (!json_count(named) && !json_is_object(selector)) {
        out[scope.n++] = ns;
        return scope;
    }
    scope.n = add_named(named, out);
    if (json_is_object(selector))
        scope.n += add_selected(a, t, selector, out + scope.n);
    return scope;
}
