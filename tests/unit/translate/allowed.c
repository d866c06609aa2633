/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a host object and says whether it is one a tenant may cause, by rules of its own: see
 * allowed.h. */
#include "allowed.h"

#include <stdarg.h>
#include <stdio.h>

#include <string.h>

struct walk {
    struct arena *a;
    const struct translate_tenant *t;
    const struct config_pool *pool;
    bool privileged;
    const char *bad; /* the first finding */
};

__attribute__((format(printf, 2, 3))) static void bad(struct walk *w, const char *format, ...)
{
    char text[512];
    va_list args;

    if (w->bad)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->bad = arena_cstr(w->a, str_c(text));
}

static bool in(struct str s, const char *const *words)
{
    for (; *words; words++) {
        if (str_eqc(s, *words))
            return true;
    }
    return false;
}

/* Does the admin's list let the key through, by itself or by a prefix that ends in a slash? */
static bool allowed_by(struct str_list list, struct str key)
{
    for (size_t i = 0; i < list.n; i++) {
        struct str entry = list.items[i];
        bool prefix = str_has_suffix(entry, STR("/"));

        if (prefix ? str_has_prefix(key, entry) && key.n > entry.n : str_eq(key, entry))
            return !str_has_prefix(key, STR("sublet.dev/"));
    }
    return false;
}

/* Only these keys. */
static void keys(struct walk *w, const cJSON *object, const char *where, const char *const *known)
{
    if (object && !json_is_object(object) && !json_is_null(object))
        bad(w, "%s is no object", where);
    if (!json_is_object(object))
        return;
    json_each(member, object)
    {
        if (!in(str_c(member->string), known))
            bad(w, "%s.%s must not be there", where, member->string);
    }
}

/* ---- metadata ---- */

static void check_labels(struct walk *w, const cJSON *labels)
{
    static const char *const listed[] = {"sublet.dev/cluster", "sublet.dev/namespace",
                                         "sublet.dev/pool", "sublet.dev/mode", NULL};

    if (!str_eq(json_str(json_get(labels, "sublet.dev/cluster")), w->t->cluster_uid))
        bad(w, "labels lack the cluster");
    json_each(label, labels)
    {
        struct str key = str_c(label->string);

        if (in(key, listed) || allowed_by(w->t->config->labels_allow, key))
            continue;
        if (!str_has_prefix(key, STR("sublet.dev/l-")) || key.n != 13 + 16)
            bad(w, "label %s", label->string);
    }
}

static void check_annotations(struct walk *w, const cJSON *notes)
{
    static const char *const listed[] = {"sublet.dev/name",
                                         "sublet.dev/namespace",
                                         "sublet.dev/uid",
                                         "sublet.dev/owned",
                                         "sublet.dev/labels",
                                         "sublet.dev/annotations",
                                         "kubectl.kubernetes.io/default-container",
                                         NULL};

    json_each(note, notes)
    {
        struct str key = str_c(note->string);

        if (!in(key, listed) && !allowed_by(w->t->config->annotations_allow, key) &&
            (!str_has_prefix(key, STR("sublet.dev/a-")) || key.n != 13 + 16))
            bad(w, "annotation %s", note->string);
    }
}

static void check_metadata(struct walk *w, const cJSON *meta)
{
    static const char *const known[] = {"name", "namespace", "labels", "annotations", NULL};
    struct str name = json_str(json_get(meta, "name"));

    keys(w, meta, "metadata", known);
    if (name_check_dns1123_label(name) || name.n < 18)
        bad(w, "name %.*s", STR_F(name));
    if (!str_eq(json_str(json_get(meta, "namespace")), w->t->host_namespace))
        bad(w, "namespace");
    check_labels(w, json_get(meta, "labels"));
    check_annotations(w, json_get(meta, "annotations"));
}

/* A reference to another object must have the shape of one of our names. */
static void check_ref(struct walk *w, const cJSON *node, const char *where)
{
    struct str name = json_str(node);

    if (!node)
        return;
    if (name.n < 18 || name.p[name.n - 17] != '-' || name_check_dns1123_label(name))
        bad(w, "%s refers to \"%.*s\"", where, STR_F(name));
}

/* ---- placement ---- */

static void check_selector(struct walk *w, const cJSON *selector, const char *where)
{
    static const char *const known[] = {"matchLabels", "matchExpressions", NULL};
    const cJSON *labels = json_get(selector, "matchLabels");
    bool scoped = json_get(labels, "sublet.dev/namespace") != NULL;

    keys(w, selector, where, known);
    if (!str_eq(json_str(json_get(labels, "sublet.dev/cluster")), w->t->cluster_uid))
        bad(w, "%s is not narrowed to the cluster", where);
    json_each(term, json_get(selector, "matchExpressions"))
    {
        struct str key = json_str(json_get(term, "key"));

        scoped |= str_eqc(key, "sublet.dev/namespace") || str_eqc(key, "sublet.dev/cluster");
    }
    (void)scoped; /* all of the tenant's namespaces is a scope, too */
}

static void check_pod_terms(struct walk *w, const cJSON *affinity)
{
    static const char *const known[] = {"labelSelector", "topologyKey", NULL};
    static const char *const weighted[] = {"weight", "podAffinityTerm", NULL};

    json_each(term, json_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
    {
        keys(w, term, "podAffinity term", known);
        if (json_get(term, "labelSelector"))
            check_selector(w, json_get(term, "labelSelector"), "podAffinity");
    }
    json_each(one, json_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution"))
    {
        const cJSON *term = json_get(one, "podAffinityTerm");

        keys(w, one, "preferred podAffinity term", weighted);
        keys(w, term, "preferred podAffinity term", known);
        if (json_get(term, "labelSelector"))
            check_selector(w, json_get(term, "labelSelector"), "podAffinity");
    }
}

/* value NULL: the expression has none, or any. */
static bool has_expression(const cJSON *term, const char *key, const char *op, const char *value)
{
    json_each(one, json_get(term, "matchExpressions"))
    {
        if (str_eqc(json_str(json_get(one, "key")), key) &&
            str_eqc(json_str(json_get(one, "operator")), op) &&
            (!value || json_list_has(json_get(one, "values"), str_c(value))))
            return true;
    }
    return false;
}

/* The nodes that pods without devices must not reach, term by term. */
static void check_no_pool(struct walk *w, const cJSON *term)
{
    bool cpu_pool = false;

    for (size_t i = 0; i < w->t->config->cpu_nodes.n; i++)
        cpu_pool |= str_has_prefix(w->t->config->cpu_nodes.items[i], STR("sublet.dev/pool="));
    if (!cpu_pool && !has_expression(term, "sublet.dev/pool", "DoesNotExist", NULL))
        bad(w, "a node selector term that allows nodes of pools");
    if (!has_expression(term, "nvidia.com/gpu.present", "NotIn", "true") ||
        !has_expression(term, "feature.node.kubernetes.io/amd-gpu", "NotIn", "true"))
        bad(w, "a node selector term that allows GPU nodes");
    for (size_t i = 0; i < w->t->config->n_pools; i++) {
        bool excluded = false;

        json_each(label, w->t->config->pools[i].node_selector)
        {
            excluded |=
                str_eqc(str_c(label->string), "sublet.dev/pool") ||
                has_expression(term, label->string, "NotIn", arena_cstr(w->a, json_str(label)));
        }
        if (!excluded)
            bad(w, "a node selector term that allows nodes of pool %.*s",
                STR_F(w->t->config->pools[i].name));
    }
}

/* Nodes are picked by name only where the tenant is shown them. */
static void check_node_fields(struct walk *w, const cJSON *term)
{
    json_each(field, json_get(term, "matchFields"))
    {
        if (!str_eqc(json_str(json_get(field, "key")), "metadata.name"))
            bad(w, "matchFields on %.*s", STR_F(json_str(json_get(field, "key"))));
        json_each(value, json_get(field, "values"))
        {
            if (!str_eqc(json_str(json_get(field, "operator")), "NotIn") &&
                (!w->t->node || w->t->node(w->t->node_ctx, json_str(value)) != NODE_SHOWN))
                bad(w, "node %.*s, which is not shown", STR_F(json_str(value)));
        }
    }
}

/* Every ORed term carries the fence, or is one that no node meets. */
static void check_node_terms(struct walk *w, const cJSON *affinity)
{
    const cJSON *terms = json_get(
        json_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");
    bool product = w->pool && w->pool->products.n;

    if ((product || !w->pool) && !json_count(terms))
        bad(w, "no node affinity term");
    json_each(term, terms)
    {
        bool nowhere = false;

        json_each(one, json_get(term, "matchExpressions"))
        {
            nowhere |= str_eqc(json_str(json_get(one, "key")), "kubernetes.io/os") &&
                       str_eqc(json_str(json_get(one, "operator")), "DoesNotExist");
        }
        if (!json_count(json_get(term, "matchExpressions")) &&
            !json_count(json_get(term, "matchFields")))
            bad(w, "empty node selector term");
        if (product && !nowhere && !has_expression(term, "nvidia.com/gpu.product", "In", NULL))
            bad(w, "a node selector term without the products of the pool");
        if (!w->pool && !nowhere)
            check_no_pool(w, term);
        check_node_fields(w, term);
    }
    json_each(one, json_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution"))
    {
        check_node_fields(w, json_get(one, "preference"));
    }
}

static bool pool_tolerates(const struct walk *w, const cJSON *toleration)
{
    if (!w->pool)
        return false;
    json_each(one, w->pool->tolerations)
    {
        if (json_equal(one, toleration))
            return true;
    }
    return false;
}

static void check_tolerations(struct walk *w, const cJSON *list)
{
    json_each(one, list)
    {
        struct str key = json_str(json_get(one, "key"));
        int64_t seconds = json_i64_at(one, "tolerationSeconds", INT64_MAX);

        if (pool_tolerates(w, one))
            continue;
        if (!str_eqc(key, "node.kubernetes.io/not-ready") &&
            !str_eqc(key, "node.kubernetes.io/unreachable"))
            bad(w, "toleration of %.*s", STR_F(key));
        if (!str_eqc(json_str(json_get(one, "effect")), "NoExecute") || seconds > 3600)
            bad(w, "unbounded toleration of %.*s", STR_F(key));
    }
}

static void check_placement(struct walk *w, const cJSON *spec)
{
    const cJSON *selector = json_get(spec, "nodeSelector"), *affinity = json_get(spec, "affinity");

    json_each(fixed, w->pool ? w->pool->node_selector : NULL)
    {
        if (!json_equal(json_get(selector, fixed->string), fixed))
            bad(w, "nodeSelector lacks %s of the pool", fixed->string);
    }
    if (w->pool && !json_count(w->pool->node_selector))
        bad(w, "a pool without nodeSelector");
    for (size_t i = 0; !w->pool && i < w->t->config->cpu_nodes.n; i++) {
        struct str value = w->t->config->cpu_nodes.items[i], key = str_cut(&value, '=');

        if (!str_eq(json_str(json_get_str(selector, key)), value))
            bad(w, "nodeSelector lacks %.*s of policy.cpuNodes", STR_F(key));
    }
    check_node_terms(w, json_get(affinity, "nodeAffinity"));
    check_pod_terms(w, json_get(affinity, "podAffinity"));
    check_pod_terms(w, json_get(affinity, "podAntiAffinity"));
    check_tolerations(w, json_get(spec, "tolerations"));
    json_each(one, json_get(spec, "topologySpreadConstraints"))
    {
        if (json_get(one, "labelSelector"))
            check_selector(w, json_get(one, "labelSelector"), "topologySpreadConstraints");
        if (json_get(one, "matchLabelKeys"))
            bad(w, "matchLabelKeys");
    }
}

/* ---- containers ---- */

static void check_amounts(struct walk *w, const cJSON *map)
{
    json_each(amount, map)
    {
        struct str key = str_c(amount->string);
        bool offered = false;

        if (str_find(key, '/') == key.n)
            continue;
        for (size_t i = 0; w->pool && i < w->pool->n_resources; i++)
            offered |= str_eq(w->pool->resources[i].host_name, key);
        if (!offered)
            bad(w, "resource %s", amount->string);
    }
}

/* The kubelet fills in what of the host's own API no variable of the container names first. */
static void check_api_env(struct walk *w, const cJSON *container)
{
    static const char *const names[] = {
        "KUBERNETES_SERVICE_HOST",       "KUBERNETES_SERVICE_PORT",
        "KUBERNETES_SERVICE_PORT_HTTPS", "KUBERNETES_PORT",
        "KUBERNETES_PORT_443_TCP",       "KUBERNETES_PORT_443_TCP_PROTO",
        "KUBERNETES_PORT_443_TCP_PORT",  "KUBERNETES_PORT_443_TCP_ADDR"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const cJSON *found = NULL;

        json_each(env, json_get(container, "env"))
        {
            if (!found && str_eqc(json_str(json_get(env, "name")), names[i]))
                found = env;
        }
        if (!json_is_string(json_get(found, "value")))
            bad(w, "env leaves %s to the host", names[i]);
    }
}

/* Which resources of the host make a runtime set the variable itself. */
static const struct {
    const char *variable, *resources[4];
} RUNTIMES[] = {
    {"NVIDIA_VISIBLE_DEVICES", {"nvidia.com/gpu", "nvidia.com/mig-", "nvidia.com/vgpu"}},
    {"NVIDIA_IMEX_CHANNELS", {NULL}},
    {"AMD_VISIBLE_DEVICES", {"amd.com/gpu", "amd.com/cpx_"}},
    {"HABANA_VISIBLE_DEVICES", {"habana.ai/"}},
    {"ASCEND_VISIBLE_DEVICES", {"huawei.com/Ascend", "huawei.com/npu"}},
    {"MTHREADS_VISIBLE_DEVICES", {"mthreads.com/"}},
    {"CAMBRICON_VISIBLE_DEVICES", {"cambricon.com/"}},
    {"IX_VISIBLE_DEVICES", {"iluvatar."}},
    {"METAX_VISIBLE_DEVICES", {"metax-tech.com/"}},
    {"ENFLAME_VISIBLE_DEVICES", {"enflame.com/"}},
};

static bool is_given(const cJSON *container, const char *const resources[4])
{
    json_each(amount, json_get(json_get(container, "resources"), "limits"))
    {
        for (size_t i = 0; i < 4 && resources[i]; i++) {
            if (str_has_prefix(str_c(amount->string), str_c(resources[i])) &&
                !str_eqc(json_is_number(amount) ? STR("1") : json_str(amount), "0"))
                return true;
        }
    }
    json_each(amount, json_get(json_get(container, "resources"), "requests"))
    {
        for (size_t i = 0; i < 4 && resources[i]; i++) {
            if (str_has_prefix(str_c(amount->string), str_c(resources[i])))
                return true;
        }
    }
    return false;
}

/* The admin may say of a resource that it is handed out by a variable. */
static bool is_added(const struct walk *w, const cJSON *container, const char *variable)
{
    for (size_t i = 0; w->pool && i < w->pool->n_resources; i++) {
        const struct pool_resource *r = &w->pool->resources[i];
        const char *const resources[4] = {arena_cstr(w->a, r->host_name)};

        if (str_list_has(r->variables, str_c(variable)) && is_given(container, resources))
            return true;
    }
    return false;
}

/* Whatever the image says: "void" or "none", by a literal value, last of its name. */
static void check_runtimes(struct walk *w, const cJSON *container)
{
    static const char *const off[] = {"void", "none", NULL};

    for (size_t i = 0; i < sizeof RUNTIMES / sizeof RUNTIMES[0]; i++) {
        bool said = false;

        json_each(env, json_get(container, "env"))
        {
            if (!str_eqc(json_str(json_get(env, "name")), RUNTIMES[i].variable))
                continue;
            said = true;
            if (!in(json_str(json_get(env, "value")), off) || json_get(env, "valueFrom"))
                bad(w, "%s=%.*s", RUNTIMES[i].variable, STR_F(json_str(json_get(env, "value"))));
        }
        if (!said && !is_given(container, RUNTIMES[i].resources) &&
            !is_added(w, container, RUNTIMES[i].variable))
            bad(w, "a container without such devices does not say %s=void", RUNTIMES[i].variable);
    }
}

static void check_env(struct walk *w, const cJSON *container)
{
    static const char *const never[] = {"NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES",
                                        "ASCEND_RUNTIME_OPTIONS", "ASCEND_VNPU_SPECS", NULL};
    static const char *const shared[] = {"CUDA_DISABLE_CONTROL", "LD_PRELOAD",
                                         "GPU_CORE_UTILIZATION_POLICY", NULL};

    check_runtimes(w, container);
    json_each(env, json_get(container, "env"))
    {
        struct str name = json_str(json_get(env, "name"));
        struct str path =
            json_str(json_get(json_get(json_get(env, "valueFrom"), "fieldRef"), "fieldPath"));

        if (in(name, never) || str_has_prefix(name, STR("DOCKER_RESOURCE_")))
            bad(w, "env %.*s", STR_F(name));
        if (w->pool && w->pool->mode >= POOL_TIME_SLICING &&
            (in(name, shared) || str_has_prefix(name, STR("CUDA_MPS_")) ||
             str_has_prefix(name, STR("CUDA_DEVICE_MEMORY_LIMIT"))))
            bad(w, "env %.*s in a shared pool", STR_F(name));
        if (str_has_prefix(path, STR("metadata.")) || str_eqc(path, "spec.serviceAccountName"))
            bad(w, "env %.*s shows the host's %.*s", STR_F(name), STR_F(path));
        check_ref(w, json_get(json_get(json_get(env, "valueFrom"), "configMapKeyRef"), "name"),
                  "env");
        check_ref(w, json_get(json_get(json_get(env, "valueFrom"), "secretKeyRef"), "name"), "env");
    }
    json_each(from, json_get(container, "envFrom"))
    {
        struct str prefix = json_str(json_get(from, "prefix"));

        check_ref(w, json_get(json_get(from, "configMapRef"), "name"), "envFrom");
        check_ref(w, json_get(json_get(from, "secretRef"), "name"), "envFrom");
        for (size_t i = 0; prefix.n && i < sizeof RUNTIMES / sizeof RUNTIMES[0]; i++) {
            if (str_has_prefix(str_c(RUNTIMES[i].variable), prefix))
                bad(w, "envFrom prefix");
        }
    }
}

static void check_security(struct walk *w, const cJSON *context, bool pod)
{
    static const char *const capabilities[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};
    static const char *const profiles[] = {"seccompProfile", "appArmorProfile"};

    if (w->privileged)
        return;
    if (json_get(context, "privileged") || json_get(context, "procMount"))
        bad(w, "privileged or procMount");
    if (json_get(json_get(context, "windowsOptions"), "hostProcess"))
        bad(w, "hostProcess");
    json_each(one, json_get(json_get(context, "capabilities"), "add"))
    {
        if (!in(json_str(one), capabilities))
            bad(w, "capability %.*s", STR_F(json_str(one)));
    }
    for (size_t i = 0; i < 2; i++) {
        struct str type = json_str(json_get(json_get(context, profiles[i]), "type"));

        if (type.n && !str_eqc(type, "RuntimeDefault"))
            bad(w, "%s %.*s", profiles[i], STR_F(type));
    }
    json_each(one, json_get(context, "sysctls"))
    {
        struct str name = json_str(json_get(one, "name"));

        if (!pod ||
            (!str_has_prefix(name, STR("net.ipv4.")) && !str_eqc(name, "kernel.shm_rmid_forced")))
            bad(w, "sysctl %.*s", STR_F(name));
    }
}

static void check_handler(struct walk *w, const cJSON *handler)
{
    if (!w->privileged && (json_get(json_get(handler, "httpGet"), "host") ||
                           json_get(json_get(handler, "tcpSocket"), "host")))
        bad(w, "host of a probe or hook");
}

static void check_container(struct walk *w, const cJSON *c)
{
    static const char *const known[] = {"name",
                                        "image",
                                        "command",
                                        "args",
                                        "workingDir",
                                        "ports",
                                        "envFrom",
                                        "env",
                                        "resources",
                                        "resizePolicy",
                                        "restartPolicy",
                                        "restartPolicyRules",
                                        "volumeMounts",
                                        "volumeDevices",
                                        "livenessProbe",
                                        "readinessProbe",
                                        "startupProbe",
                                        "lifecycle",
                                        "terminationMessagePath",
                                        "terminationMessagePolicy",
                                        "imagePullPolicy",
                                        "securityContext",
                                        "stdin",
                                        "stdinOnce",
                                        "tty",
                                        "targetContainerName",
                                        NULL};
    static const char *const amounts[] = {"limits", "requests", NULL};

    keys(w, c, "container", known);
    keys(w, json_get(c, "resources"), "resources", amounts);
    for (size_t i = 0; amounts[i]; i++)
        check_amounts(w, json_get(json_get(c, "resources"), amounts[i]));
    check_env(w, c);
    check_api_env(w, c);
    check_security(w, json_get(c, "securityContext"), false);
    check_handler(w, json_get(c, "livenessProbe"));
    check_handler(w, json_get(c, "readinessProbe"));
    check_handler(w, json_get(c, "startupProbe"));
    check_handler(w, json_get(json_get(c, "lifecycle"), "postStart"));
    check_handler(w, json_get(json_get(c, "lifecycle"), "preStop"));
    json_each(port, json_get(c, "ports"))
    {
        if (!w->privileged && (json_get(port, "hostPort") || json_get(port, "hostIP")))
            bad(w, "hostPort");
    }
    json_each(mount, json_get(c, "volumeMounts"))
    {
        if (str_contains(json_str(json_get(mount, "mountPath")), STR("/nvidia-container-devices")))
            bad(w, "mount of devices");
        if (!w->privileged && json_get(mount, "mountPropagation"))
            bad(w, "mountPropagation");
    }
}

/* ---- volumes ---- */

static void check_downward(struct walk *w, const cJSON *source)
{
    json_each(item, json_get(source, "items"))
    {
        struct str path = json_str(json_get(json_get(item, "fieldRef"), "fieldPath"));

        if (str_eqc(path, "metadata.name") || str_eqc(path, "metadata.namespace") ||
            str_eqc(path, "metadata.uid") || str_eqc(path, "metadata.labels") ||
            str_eqc(path, "metadata.annotations"))
            bad(w, "a volume shows the host's %.*s", STR_F(path));
    }
}

static void check_volume(struct walk *w, const cJSON *volume)
{
    static const char *const plain[] = {"name",        "configMap", "secret",
                                        "projected",   "emptyDir",  "persistentVolumeClaim",
                                        "downwardAPI", "image",     NULL};
    static const char *const sources[] = {"secret", "configMap", "downwardAPI", NULL};

    if (!w->privileged)
        keys(w, volume, "volume", plain);
    if (json_count(volume) != 2)
        bad(w, "a volume of %zu keys", json_count(volume));
    check_ref(w, json_get(json_get(volume, "configMap"), "name"), "volume");
    check_ref(w, json_get(json_get(volume, "secret"), "secretName"), "volume");
    check_ref(w, json_get(json_get(volume, "persistentVolumeClaim"), "claimName"), "volume");
    check_downward(w, json_get(volume, "downwardAPI"));
    json_each(source, json_get(json_get(volume, "projected"), "sources"))
    {
        keys(w, source, "projected source", sources);
        check_ref(w, json_get(json_get(source, "configMap"), "name"), "projected");
        check_ref(w, json_get(json_get(source, "secret"), "name"), "projected");
        check_downward(w, json_get(source, "downwardAPI"));
    }
}

/* ---- pods ---- */

static void check_spec(struct walk *w, const cJSON *spec)
{
    static const char *const known[] = {"volumes",
                                        "initContainers",
                                        "containers",
                                        "restartPolicy",
                                        "terminationGracePeriodSeconds",
                                        "activeDeadlineSeconds",
                                        "dnsPolicy",
                                        "dnsConfig",
                                        "nodeSelector",
                                        "automountServiceAccountToken",
                                        "enableServiceLinks",
                                        "shareProcessNamespace",
                                        "securityContext",
                                        "imagePullSecrets",
                                        "hostname",
                                        "hostnameOverride",
                                        "affinity",
                                        "tolerations",
                                        "hostAliases",
                                        "readinessGates",
                                        "topologySpreadConstraints",
                                        "os",
                                        "hostUsers",
                                        "resources",
                                        NULL};
    static const char *const pool[] = {"runtimeClassName", "schedulerName", "priorityClassName",
                                       NULL};
    static const char *const host[] = {"hostNetwork", "hostPID", "hostIPC", NULL};

    json_each(member, spec)
    {
        struct str key = str_c(member->string);

        if (!in(key, known) && !(w->pool && in(key, pool)) && !(w->privileged && in(key, host)))
            bad(w, "spec.%s must not be there", member->string);
    }
    if (!json_is_bool(json_get(spec, "automountServiceAccountToken")) ||
        json_true(json_get(spec, "automountServiceAccountToken")))
        bad(w, "automountServiceAccountToken");
    if (w->pool && json_get(spec, "runtimeClassName") &&
        !str_eq(json_str(json_get(spec, "runtimeClassName")), w->pool->runtime_class))
        bad(w, "runtimeClassName");
    if (w->pool && w->pool->max_lifetime_s &&
        json_i64_at(spec, "activeDeadlineSeconds", INT64_MAX) > w->pool->max_lifetime_s)
        bad(w, "activeDeadlineSeconds");
}

static const struct config_pool *pool_of(const struct translate_tenant *t, const cJSON *labels)
{
    for (size_t i = 0; i < t->config->n_pools; i++) {
        if (str_eq(t->config->pools[i].name, json_str(json_get(labels, "sublet.dev/pool"))))
            return &t->config->pools[i];
    }
    return NULL;
}

const char *allowed_pod(struct arena *a, const struct translate_tenant *t, const cJSON *pod)
{
    static const char *const known[] = {"apiVersion", "kind", "metadata", "spec", NULL};
    const cJSON *spec = json_get(pod, "spec");
    struct walk w = {.a = a, .t = t};

    w.pool = pool_of(t, json_path(pod, "metadata.labels"));
    w.privileged = t->config->pod_security == POD_SECURITY_PRIVILEGED;
    keys(&w, pod, "pod", known);
    check_metadata(&w, json_get(pod, "metadata"));
    check_spec(&w, spec);
    check_placement(&w, spec);
    check_security(&w, json_get(spec, "securityContext"), true);
    check_amounts(&w, json_get(json_get(spec, "resources"), "limits"));
    json_each(container, json_get(spec, "initContainers"))
    {
        check_container(&w, container);
    }
    json_each(container, json_get(spec, "containers"))
    {
        check_container(&w, container);
    }
    json_each(volume, json_get(spec, "volumes"))
    {
        check_volume(&w, volume);
    }
    json_each(secret, json_get(spec, "imagePullSecrets"))
    {
        check_ref(&w, json_get(secret, "name"), "imagePullSecrets");
    }
    return w.bad;
}

const char *allowed_service(struct arena *a, const struct translate_tenant *t, const cJSON *service)
{
    static const char *const known[] = {"type",
                                        "ports",
                                        "selector",
                                        "sessionAffinity",
                                        "sessionAffinityConfig",
                                        "externalTrafficPolicy",
                                        "internalTrafficPolicy",
                                        "publishNotReadyAddresses",
                                        "ipFamilies",
                                        "ipFamilyPolicy",
                                        "allocateLoadBalancerNodePorts",
                                        "trafficDistribution",
                                        "clusterIP",
                                        NULL};
    const cJSON *spec = json_get(service, "spec"), *selector = json_get(spec, "selector");
    struct walk w = {.a = a, .t = t};

    check_metadata(&w, json_get(service, "metadata"));
    keys(&w, spec, "spec", known);
    if (json_get(spec, "clusterIP") && !str_eqc(json_str(json_get(spec, "clusterIP")), "None"))
        bad(&w, "clusterIP");
    if (selector && (json_count(selector) < 3 ||
                     !str_eq(json_str(json_get(selector, "sublet.dev/cluster")), t->cluster_uid)))
        bad(&w, "a selector that is not narrowed to the tenant");
    json_each(port, json_get(spec, "ports"))
    {
        if (json_get(port, "nodePort"))
            bad(&w, "nodePort");
    }
    return w.bad;
}
