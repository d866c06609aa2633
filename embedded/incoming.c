/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod requires of a node, read from its tree. Must stay pure: trees in, tables out. Source:
 * k8s.io/component-helpers resource, scheduling/corev1/nodeaffinity; scheduler framework types.go.
 */
#include "attempt.h"

#include <sublet/object.h>
#include <sublet/quantity.h>

/* --- quantities --- */

static int64_t value_of(struct str name, struct str text)
{
    struct quantity q;

    if (!quantity_parse(text, &q) || q.nano < 0)
        return 0;
    return str_eqc(name, "cpu") ? quantity_milli(q) : quantity_units(q);
}

static struct named_quantity *slot(struct quantities *to, struct str name)
{
    for (size_t i = 0; i < to->n; i++) {
        if (str_eq(to->list[i].name, name))
            return &to->list[i];
    }
    if (to->n == MAX_QUANTITIES)
        return NULL;
    to->list[to->n] = (struct named_quantity){name, 0};
    return &to->list[to->n++];
}

static struct quantities quantities_new(struct arena *a)
{
    return (struct quantities){arena_alloc(a, MAX_QUANTITIES * sizeof(struct named_quantity)), 0};
}

static int64_t plus(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static struct str scalar(struct arena *a, const cJSON *v)
{
    return json_is_string(v) ? json_str(v) : json_text(a, v);
}

struct quantities quantities_read(struct arena *a, const cJSON *map)
{
    size_t n = json_count(map), i = 0;
    struct quantities to = {arena_alloc(a, (n ? n : 1) * sizeof(struct named_quantity)), 0};

    json_each(v, map)
    {
        if (i++ == MAX_QUANTITIES)
            break;
        struct str name = str_c(v->string);
        to.list[to.n++] = (struct named_quantity){name, value_of(name, scalar(a, v))};
    }
    return to;
}

static void add(struct quantities *to, const struct quantities *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct named_quantity *at = slot(to, from->list[i].name);

        if (at)
            at->value = plus(at->value, from->list[i].value);
    }
}

static void raise_to(struct quantities *to, const struct quantities *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct named_quantity *at = slot(to, from->list[i].name);

        if (at && at->value < from->list[i].value)
            at->value = from->list[i].value;
    }
}

/* Init containers run one after the other, beside the sidecars that started before them. */
static void add_init(struct arena *a, const cJSON *pod, struct quantities *to)
{
    struct quantities most = quantities_new(a), sidecars = quantities_new(a);

    json_each(c, json_path(pod, "spec.initContainers"))
    {
        struct quantities one = quantities_read(a, json_path(c, "resources.requests"));
        struct quantities now = quantities_new(a);

        if (container_is_sidecar(c)) {
            add(to, &one);
            add(&sidecars, &one);
            raise_to(&most, &sidecars);
            continue;
        }
        add(&now, &one);
        add(&now, &sidecars);
        raise_to(&most, &now);
    }
    raise_to(to, &most);
}

struct quantities quantities_of_pod(struct arena *a, const cJSON *pod)
{
    struct arena *scratch = arena_new(0);
    struct quantities sum = quantities_new(scratch), all;

    json_each(c, json_path(pod, "spec.containers"))
    {
        struct quantities one = quantities_read(scratch, json_path(c, "resources.requests"));

        add(&sum, &one);
    }
    add_init(scratch, pod, &sum);
    json_each(v, json_path(pod, "spec.resources.requests"))
    {
        struct named_quantity *at = slot(&sum, str_c(v->string));

        if (at)
            at->value = value_of(at->name, scalar(scratch, v));
    }
    all = quantities_read(scratch, json_path(pod, "spec.overhead"));
    add(&sum, &all);
    all = (struct quantities){arena_alloc(a, (sum.n + 1) * sizeof(struct named_quantity)), sum.n};
    for (size_t i = 0; i < sum.n; i++)
        all.list[i] = (struct named_quantity){arena_str(a, sum.list[i].name), sum.list[i].value};
    arena_free(scratch);
    return all;
}

/* --- ports --- */

static size_t each_port(struct arena *a, const cJSON *containers, struct host_port *to)
{
    size_t n = 0;

    json_each(c, containers)
    {
        json_each(port, json_get(c, "ports"))
        {
            int64_t number = json_i64_at(port, "hostPort", 0);
            struct str ip = json_str_at(port, "hostIP");

            if (!number)
                continue;
            if (to)
                to[n] = (struct host_port){arena_str(a, ip.n ? ip : STR("0.0.0.0")),
                                           arena_str(a, json_str_at(port, "protocol")), number};
            n++;
        }
    }
    return n;
}

struct host_port *embedded_pod_host_ports(struct arena *a, const cJSON *pod, size_t *ret_n)
{
    const cJSON *containers = json_path(pod, "spec.containers");
    size_t n = each_port(a, containers, NULL);
    struct host_port *ports = n ? arena_alloc(a, n * sizeof(*ports)) : NULL;

    if (n)
        each_port(a, containers, ports);
    *ret_n = n;
    return ports;
}

/* --- terms between pods --- */

static void read_namespaces(struct arena *a, const cJSON *pod, const cJSON *term,
                            struct pod_term *ret)
{
    const cJSON *list = json_get(term, "namespaces"),
                *selector = json_get(term, "namespaceSelector");
    size_t n = json_count(list), i = 0;
    struct str *names = arena_alloc(a, (n + 1) * sizeof(*names));

    json_each(name, list) names[i++] = arena_str(a, json_str(name));
    ret->has_ns_selector =
        json_is_object(selector) && !selector_from_json(a, selector, &ret->ns_selector, NULL);
    if (!n && !ret->has_ns_selector)
        names[i++] = arena_str(a, meta_ns(pod));
    ret->namespaces = names;
    ret->n_namespaces = i;
}

static void read_term(struct arena *a, const cJSON *pod, const cJSON *term, int64_t weight,
                      struct pod_term *ret)
{
    *ret = (struct pod_term){.weight = weight};
    ret->topology = arena_str(a, json_str_at(term, "topologyKey"));
    /* The selector's strings may point into the tree, which is about to be freed. */
    const cJSON *copy = json_copy(a, json_get(term, "labelSelector"));
    if (selector_from_json(a, copy, &ret->selector, NULL))
        ret->selector = (struct selector){.nothing = true};
    read_namespaces(a, pod, json_copy(a, term), ret);
}

struct pod_terms embedded_pod_terms_read(struct arena *a, const cJSON *pod, const char *kind,
                                         bool required)
{
    const cJSON *group = json_get(json_path(pod, "spec.affinity"), kind);
    const cJSON *list =
        json_get(group, required ? "requiredDuringSchedulingIgnoredDuringExecution"
                                 : "preferredDuringSchedulingIgnoredDuringExecution");
    size_t n = json_count(list), i = 0;
    struct pod_terms terms = {n ? arena_alloc(a, n * sizeof(struct pod_term)) : NULL, n};

    json_each(item, list)
    {
        const cJSON *term = required ? item : json_get(item, "podAffinityTerm");

        read_term(a, pod, term, json_i64_at(item, "weight", 0), &terms.list[i++]);
    }
    return terms;
}

static bool in_namespaces(struct vapi *api, const struct pod_term *t, struct str ns)
{
    const struct store_object *o;

    for (size_t i = 0; i < t->n_namespaces; i++) {
        if (str_eq(t->namespaces[i], ns))
            return true;
    }
    if (!t->has_ns_selector)
        return false;
    o = store_get(vapi_store(api), embedded_resource(api, "", "namespaces")->storage, STR(""), ns);
    return o && selector_match(&t->ns_selector, o->labels);
}

bool embedded_pod_term_matches(struct vapi *api, const struct pod_term *t,
                               const struct store_object *pod)
{
    return selector_match(&t->selector, pod->labels) && in_namespaces(api, t, pod->ns);
}

/* --- node selectors --- */

static bool compare(struct str value, const cJSON *e, bool greater)
{
    int64_t have, want;

    if (!str_to_i64(value, &have) ||
        !str_to_i64(json_str(json_at(json_get(e, "values"), 0)), &want))
        return false;
    return greater ? have > want : have < want;
}

static bool expression_holds(const cJSON *e, bool present, struct str value)
{
    struct str operator_ = json_str_at(e, "operator");
    bool in = false;

    json_each(v, json_get(e, "values")) in |= present && str_eq(json_str(v), value);
    if (str_eqc(operator_, "In"))
        return in;
    if (str_eqc(operator_, "NotIn"))
        return !in;
    if (str_eqc(operator_, "Exists"))
        return present;
    if (str_eqc(operator_, "DoesNotExist"))
        return !present;
    if (str_eqc(operator_, "Gt"))
        return present && compare(value, e, true);
    return str_eqc(operator_, "Lt") && present && compare(value, e, false);
}

bool embedded_node_term_matches(struct arena *a, const cJSON *term, const struct node_entry *n)
{
    const cJSON *expressions = json_get(term, "matchExpressions");
    const cJSON *fields = json_get(term, "matchFields");

    (void)a;
    if (!json_count(expressions) && !json_count(fields))
        return false; /* an empty term matches nothing */
    json_each(e, expressions)
    {
        struct str value = STR_NULL;
        bool present = labels_get(n->object->labels, json_str_at(e, "key"), &value);

        if (!expression_holds(e, present, value))
            return false;
    }
    json_each(e, fields)
    {
        if (!expression_holds(e, str_eqc(json_str_at(e, "key"), "metadata.name"), n->name))
            return false;
    }
    return true;
}

bool embedded_node_selector_matches(struct arena *a, const cJSON *selector,
                                    const struct node_entry *n)
{
    if (!json_is_object(selector))
        return true;
    json_each(term, json_get(selector, "nodeSelectorTerms"))
    {
        if (embedded_node_term_matches(a, term, n))
            return true;
    }
    return false;
}

/* --- an attempt --- */

static void read_spreads(struct attempt *t)
{
    const cJSON *list = json_path(t->pod, "spec.topologySpreadConstraints");
    struct arena *a = t->arena;

    t->spreads = arena_alloc(a, (json_count(list) + 1) * sizeof(*t->spreads));
    json_each(c, list)
    {
        struct spread *s = &t->spreads[t->n_spreads];

        if (!str_eqc(json_str_at(c, "whenUnsatisfiable"), "DoNotSchedule"))
            continue;
        *s = (struct spread){
            .topology = json_str_at(c, "topologyKey"),
            .max_skew = json_i64_at(c, "maxSkew", 1),
            .min_domains = json_i64_at(c, "minDomains", 1),
            .honour_affinity = !str_eqc(json_str_at(c, "nodeAffinityPolicy"), "Ignore"),
            .honour_taints = str_eqc(json_str_at(c, "nodeTaintsPolicy"), "Honor"),
        };
        if (selector_from_json(a, json_get(c, "labelSelector"), &s->selector, NULL))
            s->selector = (struct selector){.nothing = true};
        s->self = selector_match(&s->selector, t->entry->object->labels);
        t->n_spreads++;
    }
}

static void read_volumes(struct attempt *t)
{
    struct vapi *api = t->cluster->api;
    const cJSON *volumes = json_path(t->pod, "spec.volumes");

    t->volume_selectors = arena_alloc(t->arena, (json_count(volumes) + 1) * sizeof(cJSON *));
    json_each(v, volumes)
    {
        struct str claim = json_str_at(v, "persistentVolumeClaim.claimName");
        const cJSON *pvc, *pv, *selector;

        if (!claim.n)
            continue;
        pvc = embedded_read(api, t->arena, embedded_resource(api, "", "persistentvolumeclaims"),
                            meta_ns(t->pod), claim);
        pv = embedded_read(api, t->arena, embedded_resource(api, "", "persistentvolumes"), STR(""),
                           json_str_at(pvc, "spec.volumeName"));
        selector = json_path(pv, "spec.nodeAffinity.required");
        if (selector)
            t->volume_selectors[t->n_volume_selectors++] = selector;
    }
}

static bool matches_all(struct attempt *t, const struct store_object *pod)
{
    for (size_t i = 0; i < t->affinity.n; i++) {
        if (!embedded_pod_term_matches(t->cluster->api, &t->affinity.list[i], pod))
            return false;
    }
    return true;
}

void attempt_init(struct attempt *t, struct cluster *c, struct arena *a, struct pod_entry *entry)
{
    *t = (struct attempt){.cluster = c, .arena = a, .entry = entry};
    t->pod = vapi_tree(a, entry->object);
    t->affinity = embedded_pod_terms_read(a, t->pod, "podAffinity", true);
    t->anti = embedded_pod_terms_read(a, t->pod, "podAntiAffinity", true);
    t->matches_itself = matches_all(t, entry->object);
    read_spreads(t);
    read_volumes(t);
    attempt_count(t);
}
