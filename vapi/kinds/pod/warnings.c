/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about pods and pod templates, in upstream's words. Must never refuse anything, nor look
 * at a list more than once per item. Source: pkg/api/pod/warnings.go. */
#include "parts.h"

#include <sublet/encode.h>
#include <sublet/quantity.h>
#include <string.h>

void warn_at(const struct warner *w, const struct field_path *p, const char *text)
{
    w->warn(w->ctx, arena_printf(w->arena, "%.*s: %s", STR_F(field_path_text(w->arena, p)), text));
}

static void warn_quoted(const struct warner *w, const struct field_path *p, const char *before,
                        struct str value, const char *after)
{
    warn_printf(w, p, "%s%.*s%s", before, STR_F(go_quote(w->arena, value)), after);
}

/* ---- labels of nodes ---- */

static const struct {
    const char *label, *text;
} OLD_LABELS[] = {
    {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
    {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
    {"failure-domain.beta.kubernetes.io/region",
     "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
    {"failure-domain.beta.kubernetes.io/zone",
     "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
    {"beta.kubernetes.io/instance-type",
     "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
    {"app.kubernetes.io/created-by", "deprecated since v1.9"},
    {"scheduler.alpha.kubernetes.io/preferAvoidPods",
     "deprecated since v1.22; use Taints and Tolerations instead"},
    {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"},
};

const char *warn_deprecated_label(struct str label)
{
    for (size_t i = 0; i < COUNT(OLD_LABELS); i++) {
        if (str_eqc(label, OLD_LABELS[i].label))
            return OLD_LABELS[i].text;
    }
    return NULL;
}

void warn_node_terms(const struct warner *w, const struct field_path *p, const cJSON *selector)
{
    member_each(term, at, p, selector, "nodeSelectorTerms")
        member_each(expression, item, at, term, "matchExpressions")
    {
        struct str key = json_str(json_get(expression, "key"));
        const char *text = warn_deprecated_label(key);

        if (text)
            warn_printf(w, FIELD(item, "key"), "%.*s is %s", STR_F(key), text);
    }
}

/* ---- pods: scheduling ---- */

static void warn_scheduling(const struct warner *w, const struct field_path *p, const cJSON *spec)
{
    const cJSON *affinity = json_path(spec, "affinity.nodeAffinity");
    AT(node, FIELD(p, "affinity"), "nodeAffinity");

    json_each(label, json_get(spec, "nodeSelector"))
    {
        const char *text = warn_deprecated_label(str_c(label->string));

        if (text)
            warn_at(w, FIELD_KEY(FIELD(p, "nodeSelector"), str_c(label->string)), text);
    }
    warn_node_terms(w, FIELD(node, "requiredDuringSchedulingIgnoredDuringExecution"),
                    json_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"));
    member_each(constraint, at, p, spec, "topologySpreadConstraints")
    {
        struct str key = json_str(json_get(constraint, "topologyKey"));
        const char *text = warn_deprecated_label(key);

        if (text)
            warn_printf(w, FIELD(at, "topologyKey"), "%.*s is %s", STR_F(key), text);
        if (!kinds_given(constraint, "labelSelector"))
            warn_at(w, FIELD(at, "labelSelector"),
                    "a null labelSelector results in matching no pod");
    }
}

/* ---- volumes ---- */

static const struct {
    const char *name, *shown, *text; /* shown: as the Go field */
    bool of_pod, of_volume;
} OLD_VOLUMES[] = {
    {"photonPersistentDisk", "photonPersistentDisk",
     "deprecated in v1.11, non-functional in v1.16+", true, true},
    {"gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+", true, false},
    {"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+", true, true},
    {"flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+", true, false},
    {"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+", true, true},
    {"quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+", true, false},
    {"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+", true, true},
    {"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+", true, true},
    {"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+", true, true},
};

void warn_volume_source(const struct warner *w, const struct field_path *p, const cJSON *source,
                        bool of_pod)
{
    for (size_t i = 0; i < COUNT(OLD_VOLUMES); i++) {
        if ((of_pod ? OLD_VOLUMES[i].of_pod : OLD_VOLUMES[i].of_volume) &&
            kinds_given(source, OLD_VOLUMES[i].name))
            warn_at(w, FIELD(p, OLD_VOLUMES[i].shown), OLD_VOLUMES[i].text);
    }
}

/* Bytes come in whole ones. */
static void warn_fraction(const struct warner *w, const struct field_path *p, const cJSON *list,
                          const char *name)
{
    struct str text = json_str(json_get(list, name));
    struct quantity q;

    if (text.n && quantity_parse(text, &q) && quantity_milli(q) % 1000 != 0)
        warn_quoted(w, FIELD_KEY(p, str_c(name)), "fractional byte value ", text,
                    " is invalid, must be an integer");
}

void warn_claim_spec(const struct warner *w, const struct field_path *p, const cJSON *spec)
{
    AT(resources, p, "resources");

    warn_fraction(w, FIELD(resources, "requests"), json_path(spec, "resources.requests"),
                  "storage");
    warn_fraction(w, FIELD(resources, "limits"), json_path(spec, "resources.limits"), "storage");
}

static void warn_volumes(const struct warner *w, const struct field_path *p, const cJSON *spec)
{
    member_each(volume, at, p, spec, "volumes")
    {
        const cJSON *claim = json_path(volume, "ephemeral.volumeClaimTemplate");

        warn_volume_source(w, at, volume, true);
        if (json_is_object(claim))
            warn_claim_spec(w, FIELD(FIELD(FIELD(at, "ephemeral"), "volumeClaimTemplate"), "spec"),
                            json_get(claim, "spec"));
    }
}

/* ---- lists whose items ought to differ ---- */

static void warn_duplicates(const struct warner *w, const struct field_path *p, const cJSON *list,
                            const char *key, bool empty_is_odd)
{
    struct names seen = {.arena = w->arena};

    field_each(item, item_at, p, list)
    {
        AT(at, item_at, key);
        struct str value = json_str(json_get(item, key));

        if (!names_add(&seen, value, item))
            warn_quoted(w, at, arena_printf(w->arena, "duplicate %s ", key).p, value, "");
        if (!value.n && empty_is_odd)
            warn_quoted(w, at, "invalid empty name ", value, "");
    }
}

/* A later value that does not build on the one before hides it. */
static void warn_env(const struct warner *w, const struct field_path *p, const cJSON *list)
{
    struct names seen = {.arena = w->arena};

    field_each(item, at, p, list)
    {
        struct str name = json_str(json_get(item, "name")),
                   value = json_str(json_get(item, "value"));
        struct str self;

        if (names_add(&seen, name, item))
            continue;
        self = arena_printf(w->arena, "$(%.*s)", STR_F(name));
        if (kinds_given(item, "valueFrom") || str_eq(value, self) || !str_contains(value, self))
            warn_quoted(w, at, "hides previous definition of ", name,
                        ", which may be dropped when using apply");
    }
}

/* ---- ports ---- */

struct port_warner {
    const struct warner *w;
    struct names ports, names;
};

/* Against the first port of that number: upstream compares with all, which costs a square. */
static void warn_port_pair(struct port_warner *s, const struct field_path *at, const cJSON *port,
                           const cJSON *other, struct str other_path)
{
    int64_t mine = json_i64_at(port, "hostPort", 0), theirs = json_i64_at(other, "hostPort", 0);
    struct str ip = json_str(json_get(port, "hostIP")), its = json_str(json_get(other, "hostIP"));
    struct str what = STR("");

    if (str_eq(ip, its) && mine == theirs)
        what = STR("duplicate");
    else if (!mine || !theirs)
        what = STR("overlapping");
    else if (mine == theirs && !ip.n != !its.n)
        what = STR("dangerously ambiguous");
    if (what.n)
        warn_printf(s->w, at, "%.*s port definition with %.*s", STR_F(what), STR_F(other_path));
}

/* The port as Go prints one. */
static void warn_host_ip(const struct warner *w, const struct field_path *at, const cJSON *port)
{
    struct str ip = json_str(json_get(port, "hostIP"));

    if (ip.n && !json_i64_at(port, "hostPort", 0))
        warn_printf(w, at,
                    "hostIP set without hostPort: {Name:%.*s HostPort:0 ContainerPort:%lld "
                    "Protocol:%.*s HostIP:%.*s}",
                    STR_F(json_str(json_get(port, "name"))),
                    (long long)json_i64_at(port, "containerPort", 0),
                    STR_F(json_str(json_get(port, "protocol"))), STR_F(ip));
}

/* Where a port was met first is kept as a string node beside it. */
static void warn_ports(struct port_warner *s, const struct field_path *p, const cJSON *list)
{
    struct arena *a = s->w->arena;

    field_each(port, at, p, list)
    {
        struct str name = json_str(json_get(port, "name"));
        struct str key =
            arena_printf(a, "%lld/%.*s", (long long)json_i64_at(port, "containerPort", 0),
                         STR_F(json_str(json_get(port, "protocol"))));
        const cJSON *other = names_get(&s->ports, key), *named = names_get(&s->names, name);
        cJSON *met = json_new_array(a);

        warn_host_ip(s->w, at, port);
        if (other)
            warn_port_pair(s, at, port, json_at(other, 0), json_str(json_at(other, 1)));
        if (name.n && named)
            warn_quoted(s->w, at, "duplicate port name ", name,
                        arena_printf(a,
                                     " with %.*s, services and probes that select ports by name "
                                     "will use %.*s",
                                     STR_F(json_str(json_at(named, 1))),
                                     STR_F(json_str(json_at(named, 1))))
                            .p);
        json_append(met, json_copy(a, port));
        json_append(met, json_new_string(a, field_path_text(a, at)));
        names_add(&s->ports, key, met);
        if (name.n)
            names_add(&s->names, name, met);
    }
}

/* ---- pods ---- */

static void warn_container(struct port_warner *s, const struct field_path *p,
                           const cJSON *container)
{
    static const char *const kinds[] = {"limits", "requests"};
    static const char *const amounts[] = {"memory", "ephemeral-storage"};
    const cJSON *resources = json_get(container, "resources");
    AT(at, p, "resources");

    for (size_t i = 0; i < COUNT(amounts); i++) {
        for (size_t k = 0; k < COUNT(kinds); k++)
            warn_fraction(s->w, FIELD(at, kinds[k]), json_get(resources, kinds[k]), amounts[i]);
    }
    warn_env(s->w, FIELD(p, "env"), json_get(container, "env"));
    warn_ports(s, FIELD(p, "ports"), json_get(container, "ports"));
}

/* Terms that say nothing about whom they mean. */
static void warn_affinity_terms(const struct warner *w, const struct field_path *p,
                                const cJSON *terms, const char *inner)
{
    field_each(item, at, p, terms)
    {
        const struct field_path *within = FIELD(at, inner);
        const cJSON *term = inner ? json_get(item, inner) : item;

        if (!kinds_given(term, "labelSelector"))
            warn_at(w, FIELD(inner ? within : at, "labelSelector"),
                    "a null labelSelector results in matching no pod");
    }
}

static void warn_affinity(const struct warner *w, const struct field_path *p, const cJSON *spec)
{
    static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};
    static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";
    static const char preferred[] = "preferredDuringSchedulingIgnoredDuringExecution";
    AT(affinity, p, "affinity");

    for (size_t i = 0; i < COUNT(kinds); i++) {
        const cJSON *terms = json_get(json_get(spec, "affinity"), kinds[i]);
        const struct field_path *at = FIELD(affinity, kinds[i]);

        warn_affinity_terms(w, FIELD(at, required), json_get(terms, required), NULL);
        warn_affinity_terms(w, FIELD(at, preferred), json_get(terms, preferred), "podAffinityTerm");
    }
}

/* p: where the pod is; NULL for one that is no template. */
void warn_pod_at(const struct warner *w, const struct field_path *p, const cJSON *pod)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    const struct field_path *at_spec = FIELD(p, "spec");
    const cJSON *spec = json_get(pod, "spec");
    struct port_warner s = {w, {.arena = w->arena}, {.arena = w->arena}};

    warn_pod_annotations(w, p, pod);
    warn_scheduling(w, at_spec, spec);
    warn_volumes(w, at_spec, spec);
    warn_volume_paths(w->arena, spec, w->warn, w->ctx);
    warn_duplicates(w, FIELD(at_spec, "hostAliases"), json_get(spec, "hostAliases"), "ip", false);
    warn_duplicates(w, FIELD(at_spec, "imagePullSecrets"), json_get(spec, "imagePullSecrets"),
                    "name", true);
    warn_fraction(w, FIELD(at_spec, "overhead"), json_get(spec, "overhead"), "memory");
    warn_fraction(w, FIELD(at_spec, "overhead"), json_get(spec, "overhead"), "ephemeral-storage");
    for (size_t i = 0; i < COUNT(lists); i++) {
        member_each(container, at, at_spec, spec, lists[i]) warn_container(&s, at, container);
    }
    if (json_i64_at(spec, "terminationGracePeriodSeconds", 0) < 0)
        warn_at(w, FIELD(at_spec, "terminationGracePeriodSeconds"),
                "must be >= 0; negative values are invalid and will be treated as 1");
    warn_affinity(w, at_spec, spec);
}

WARNS(warn_pod)
{
    WARNER(w);

    warn_pod_at(&w, NULL, object);
}

/* Pods take their names from what makes them. */
void warn_owner_name(const struct warner *w, const cJSON *object)
{
    const char *why = name_check_dns1123_label(json_str(json_path(object, "metadata.name")));

    if (why)
        warn_printf(w, FIELD(FIELD(NULL, "metadata"), "name"),
                    "this is used in Pod names and hostnames, which can result in "
                    "surprising behavior; a DNS label is recommended: [%s]",
                    why);
}

WARNS(warn_new_owner)
{
    WARNER(w);

    warn_owner_name(&w, object);
}

WARNS(warn_template_bare)
{
    WARNER(w);

    warn_pod_at(&w, FIELD(NULL, "template"), json_get(object, "template"));
}

WARNS(warn_template)
{
    WARNER(w);

    warn_pod_at(&w, FIELD(FIELD(NULL, "spec"), "template"), json_path(object, "spec.template"));
}

WARNS(warn_workload)
{
    WARNER(w);

    warn_owner_name(&w, object);
    warn_template(a, object, warn, ctx);
}
