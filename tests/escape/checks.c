/* SPDX-License-Identifier: Apache-2.0 */
/* The checks allowed.rules names: what takes more than a word or a fact. Why they are written out
 * again: translate has lists of the same things, and a word that is missing there must be missing
 * in one place only. Must never include a header of translate. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static bool in(struct str s, const char *const *words)
{
    for (; *words; words++) {
        if (str_eqc(s, *words))
            return true;
    }
    return false;
}

/* ---- names ---- */

static bool is_dns_label(struct str s)
{
    if (!s.n || s.n > 63)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool inner = c == '-' && i && i + 1 < s.n;

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !inner)
            return false;
    }
    return true;
}

static bool is_hash(struct str s)
{
    if (s.n != 16)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '2' && s.p[i] <= '7'))
            return false;
    }
    return true;
}

static const char *dns_label(struct walk *w, const struct node *n)
{
    (void)w;
    return is_dns_label(n->text) ? NULL : "no DNS label";
}

/* With a DNS of its own no pod of the tenant is given the host's cluster DNS. */
static const char *dns_policy(struct walk *w, const struct node *n)
{
    const struct node *own = node_get(w->facts, "dns"), *network;

    if (!own || !str_has_prefix(n->text, STR("ClusterFirst")))
        return NULL;
    network = node_get(node_get(w->root, "spec"), "hostNetwork");
    if (str_eqc(n->text, "ClusterFirst") && network && str_eqc(network->text, "true"))
        return NULL; /* to the kubelet, the node's own */
    return "the host's DNS, although the tenant has one";
}

/* <name>-<hash>: whatever the tenant wrote, it cannot be the name of what others made. */
static const char *our_name(struct walk *w, const struct node *n)
{
    struct str s = n->text;

    (void)w;
    if (!is_dns_label(s) || s.n < 18 || s.p[s.n - 17] != '-' || !is_hash(str_from(s, s.n - 16)))
        return "not a name that only this tenant's objects have";
    return NULL;
}

/* By these, queueing systems and GPU schedulers take orders. */
static bool is_order(struct str key)
{
    static const char *const domains[] = {"kueue.x-k8s.io",
                                          "kai.scheduler",
                                          "run.ai",
                                          "volcano.sh",
                                          "hami.io",
                                          "kai-resource-isolator.io",
                                          NULL};
    static const char *const keys[] = {"gpu-fraction",
                                       "gpu-memory",
                                       "runai-gpu-group",
                                       "mps",
                                       "priorityClassName",
                                       "pod-group-name",
                                       "runai/queue",
                                       "nvidia.com/use-gpuuuid",
                                       "nvidia.com/nouse-gpuuuid",
                                       "nvidia.com/use-gputype",
                                       "nvidia.com/nouse-gputype",
                                       "nvidia.com/vgpu-mode",
                                       "nvidia.com/numa-bind",
                                       "scheduling.k8s.io/group-name",
                                       NULL};
    struct str domain = str_sub(key, 0, str_find(key, '/'));

    for (size_t i = 0; domains[i]; i++) {
        if (domain.n < key.n && str_has_suffix(domain, str_c(domains[i])))
            return true;
    }
    return in(key, keys);
}

/* Does a list of the admin's let the key through, by itself or by a prefix that ends in a slash? */
static bool listed(const struct node *list, struct str key)
{
    node_each(one, list)
    {
        struct str entry = node_text(one);
        bool prefix = str_has_suffix(entry, STR("/"));

        if (prefix ? str_has_prefix(key, entry) && key.n > entry.n : str_eq(key, entry))
            return !str_has_prefix(key, STR("sublet.dev/")) && !is_order(key);
    }
    return false;
}

static bool is_hashed(struct str key, const char *prefix)
{
    struct str p = str_c(prefix);

    return str_has_prefix(key, p) && is_hash(str_from(key, p.n));
}

static const char *label_key(struct walk *w, const struct node *n)
{
    return listed(node_get(w->facts, "labels"), n->key) || is_hashed(n->key, "sublet.dev/l-")
               ? NULL
               : "a label the host may obey";
}

/* What an API server writes into pods of its own is found by selectors, but never sent. */
static const char *selector_label_key(struct walk *w, const struct node *n)
{
    static const char *const written[] = {"topology.kubernetes.io/region",
                                          "topology.kubernetes.io/zone", NULL};

    return in(n->key, written) ? NULL : label_key(w, n);
}

static const char *expression_key(struct walk *w, const struct node *n)
{
    struct node key = {.type = NODE_STRING, .key = n->text};

    if (str_eqc(n->text, "sublet.dev/cluster") || str_eqc(n->text, "sublet.dev/namespace"))
        return NULL;
    return selector_label_key(w, &key);
}

static const char *annotation_key(struct walk *w, const struct node *n)
{
    if (str_eqc(n->key, "kubectl.kubernetes.io/default-container") ||
        listed(node_get(w->facts, "annotations"), n->key) || is_hashed(n->key, "sublet.dev/a-"))
        return NULL;
    return "an annotation the host may obey";
}

/* A tenant must not keep the host from removing a node. */
static const char *autoscaler(struct walk *w, const struct node *n)
{
    return str_eqc(n->text, "true") || listed(node_get(w->facts, "annotations"), n->key)
               ? NULL
               : "keeps a node of the host";
}

/* ---- pools and nodes ---- */

static const char *pool_name(struct walk *w, const struct node *n)
{
    (void)n;
    return w->pool ? NULL : "a pool the tenant has not";
}

static const char *pool_mode(struct walk *w, const struct node *n)
{
    return str_eq(n->text, node_text(node_get(w->pool, "mode"))) ? NULL : "not the pool's mode";
}

static const char *pool_queue(struct walk *w, const struct node *n)
{
    return n->key.n && str_eq(n->key, node_text(node_get(w->pool, "queueKey"))) &&
                   str_eq(n->text, node_text(node_get(w->pool, "queue")))
               ? NULL
               : "not the queue of the pool";
}

static const char *pool_gang(struct walk *w, const struct node *n)
{
    struct str prefix = node_text(node_get(w->facts, "gangs"));
    struct str rest = str_from(n->text, prefix.n);

    if (!n->key.n || !str_eq(n->key, node_text(node_get(w->pool, "gangKey"))) || !prefix.n ||
        !str_has_prefix(n->text, prefix) || rest.n != 16)
        return "not a group of this virtual cluster";
    for (size_t i = 0; i < rest.n; i++) {
        if (!((rest.p[i] >= 'a' && rest.p[i] <= 'z') || (rest.p[i] >= '2' && rest.p[i] <= '7')))
            return "not a group of this virtual cluster";
    }
    return NULL;
}

static const char *gang_total(struct walk *w, const struct node *n)
{
    int64_t total;

    return str_eqc(node_text(node_get(w->pool, "gangKey")), "kueue.x-k8s.io/pod-group-name") &&
                   str_to_i64(n->text, &total) && total > 1
               ? NULL
               : "not the size of a group";
}

static const char *gang_skip(struct walk *w, const struct node *n)
{
    return str_eqc(node_text(node_get(w->pool, "gangKey")), "pod-group-name") &&
                   str_eqc(n->text, "true")
               ? NULL
               : "a pod whose group is not ours";
}

/* ---- parts of GPUs ---- */

static bool has_parts(const struct walk *w)
{
    return str_eqc(node_text(node_get(w->pool, "mode")), "kai-fraction");
}

/* "0.01" to "0.99": the one spelling of each. */
static const char *part(struct walk *w, const struct node *n)
{
    struct str s = n->text;
    bool good = s.n == 4 && str_has_prefix(s, STR("0.")) && s.p[2] >= '0' && s.p[2] <= '9' &&
                s.p[3] >= '0' && s.p[3] <= '9' && !str_eqc(s, "0.00");

    return has_parts(w) && good ? NULL : "not a part that the pool hands out";
}

static const char *part_container(struct walk *w, const struct node *n)
{
    return has_parts(w) && is_dns_label(n->text) ? NULL : "a container of no pool of parts";
}

/* What the names of the ConfigMaps begin with in which KAI says the device of a pod. */
static bool is_maps(struct str s)
{
    struct str end = STR("-shared-gpu");

    return s.n == 16 + end.n && str_has_suffix(s, end) && is_hash(str_sub(s, 0, 16));
}

static const char *part_maps(struct walk *w, const struct node *n)
{
    return has_parts(w) && is_maps(n->text) ? NULL : "ConfigMaps that are not KAI's for this pod";
}

static bool is_map(struct str s)
{
    size_t digits = 0;

    while (digits < s.n && s.p[s.n - 1 - digits] >= '0' && s.p[s.n - 1 - digits] <= '9')
        digits++;
    return digits && digits + 1 < s.n && s.p[s.n - 1 - digits] == '-' &&
           is_maps(str_sub(s, 0, s.n - 1 - digits));
}

static const char *key_name(struct walk *w, const struct node *n)
{
    return has_parts(w) && is_map(n->text) ? NULL : our_name(w, n);
}

static const char *tier(struct walk *w, const struct node *n)
{
    node_each(one, node_get(w->pool, "tiers"))
    {
        if (str_eq(node_text(one), n->text))
            return NULL;
    }
    return "no tier of the pool";
}

static const char *lifetime(struct walk *w, const struct node *n)
{
    const struct node *most = node_get(w->pool, "maxLifetime");

    if (most && strtoll(n->text.p, NULL, 10) > strtoll(most->text.p, NULL, 10))
        return "longer than the pool allows";
    return NULL;
}

/* The admin's "key=value". */
static struct str cpu_label(const struct node *one, struct str *ret_value)
{
    *ret_value = node_text(one);
    return str_cut(ret_value, '=');
}

static const char *pool_selector(struct walk *w, const struct node *spec)
{
    const struct node *selector = node_get(spec, "nodeSelector"), *fixed;

    fixed = node_get(w->pool, "nodeSelector");
    if (w->pool && (!fixed || !fixed->first))
        return "a pool without a node selector";
    node_each(one, fixed)
    {
        if (!str_eq(node_text(node_get_str(selector, one->key)), one->text))
            return "the node selector of the pool is missing";
    }
    node_each(one, w->pool ? NULL : node_get(w->facts, "cpuNodes"))
    {
        struct str value, key = cpu_label(one, &value);

        if (!str_eq(node_text(node_get_str(selector, key)), value))
            return "the labels of nodes for pods without devices are missing";
    }
    return NULL;
}

static bool is_stored(const struct walk *w)
{
    const struct node *stored = node_get(w->facts, "stored");

    return stored && str_eqc(stored->text, "true");
}

static const char *selector_key(struct walk *w, const struct node *n)
{
    struct str own = node_text(node_get_str(node_get(w->pool, "nodeSelector"), n->key));

    if (!str_has_prefix(n->key, STR("sublet.dev/")) || str_eq(own, n->text) || is_stored(w))
        return NULL;
    node_each(one, w->pool ? NULL : node_get(w->facts, "cpuNodes"))
    {
        struct str value, key = cpu_label(one, &value);

        if (str_eq(key, n->key) && str_eq(value, n->text))
            return NULL;
    }
    return "a key of the admin's";
}

static const struct node *required_terms(const struct node *spec)
{
    return node_get(node_get(node_get(node_get(spec, "affinity"), "nodeAffinity"),
                             "requiredDuringSchedulingIgnoredDuringExecution"),
                    "nodeSelectorTerms");
}

/* value NULL: any, or none. */
static const struct node *expression(const struct node *term, struct str key, const char *op,
                                     const char *value)
{
    node_each(one, node_get(term, "matchExpressions"))
    {
        bool has = !value;

        if (!str_eq(node_text(node_get(one, "key")), key) ||
            !str_eqc(node_text(node_get(one, "operator")), op))
            continue;
        node_each(each, node_get(one, "values"))
        {
            has |= value && str_eqc(node_text(each), value);
        }
        if (has)
            return one;
    }
    return NULL;
}

/* The product as an admin lists it, or the same hardware cut or shared. */
static bool is_product(const struct node *products, struct str value)
{
    node_each(one, products)
    {
        struct str product = node_text(one), tail = str_from(value, product.n);

        if (str_has_prefix(value, product) &&
            (!tail.n || str_has_prefix(tail, STR("-SHARED")) || str_has_prefix(tail, STR("-MIG-"))))
            return true;
    }
    return false;
}

static bool names_products_only(const struct node *products, const struct node *expression_)
{
    const struct node *values = node_get(expression_, "values");

    node_each(value, values)
    {
        if (!is_product(products, node_text(value)))
            return false;
    }
    return values && values->first;
}

/* Expressions are ANDed: one that names nothing else is the fence, whatever the tenant's own
 * name. */
static const char *product_fence(const struct node *products, const struct node *term)
{
    node_each(one, node_get(term, "matchExpressions"))
    {
        if (str_eqc(node_text(node_get(one, "key")), "nvidia.com/gpu.product") &&
            str_eqc(node_text(node_get(one, "operator")), "In") &&
            names_products_only(products, one))
            return NULL;
    }
    return "a term without the products of the pool";
}

/* Machines of pools are out, by the key of them all or by the selector of each; so are others with
 * GPUs. */
static const char *no_pool_fence(struct walk *w, const struct node *term)
{
    bool cpu_pool = false;

    node_each(one, node_get(w->facts, "cpuNodes"))
    {
        cpu_pool |= str_has_prefix(node_text(one), STR("sublet.dev/pool="));
    }
    if (!cpu_pool && !expression(term, STR("sublet.dev/pool"), "DoesNotExist", NULL))
        return "a term that lets a pod without GPUs onto machines of pools";
    if (!expression(term, STR("nvidia.com/gpu.present"), "NotIn", "true") ||
        !expression(term, STR("feature.node.kubernetes.io/amd-gpu"), "NotIn", "true"))
        return "a term that lets a pod without GPUs onto machines with some";
    node_each(pool, node_get(w->facts, "pools"))
    {
        bool out = false;

        node_each(label, node_get(pool, "nodeSelector"))
        {
            out |= str_eqc(label->key, "sublet.dev/pool") ||
                   expression(term, label->key, "NotIn", arena_cstr(w->arena, label->text));
        }
        if (!out)
            return "a term that lets a pod without GPUs onto machines of a pool";
    }
    return NULL;
}

/* Terms are ORed: each has the fence, or is one no node meets. */
static const char *fence(struct walk *w, const struct node *spec)
{
    const struct node *terms = required_terms(spec), *products = node_get(w->pool, "products");
    bool by_product = products && products->first;

    if (w->pool && !by_product)
        return NULL; /* the node selector is the fence */
    if (!terms || !terms->first)
        return "no term of nodes, hence no fence";
    node_each(term, terms)
    {
        const char *what;

        if (expression(term, STR("kubernetes.io/os"), "Exists", NULL) &&
            expression(term, STR("kubernetes.io/os"), "DoesNotExist", NULL))
            continue;
        what = by_product ? product_fence(products, term) : no_pool_fence(w, term);
        if (what)
            return what;
    }
    return NULL;
}

/* By name only a node that the tenant is shown is required; any may be avoided. */
static const char *node_field(struct walk *w, const struct node *n)
{
    bool avoided = str_eqc(node_text(node_get(n, "operator")), "NotIn");

    node_each(value, avoided ? NULL : node_get(n, "values"))
    {
        bool shown = false;

        node_each(one, node_get(w->facts, "nodesShown"))
        {
            shown |= str_eq(node_text(one), node_text(value));
        }
        if (!shown)
            return "a node the tenant is not shown";
    }
    return NULL;
}

static const char *not_empty(struct walk *w, const struct node *term)
{
    const struct node *a = node_get(term, "matchExpressions"), *b = node_get(term, "matchFields");

    (void)w;
    return (a && a->first) || (b && b->first) ? NULL : "an empty term";
}

/* A pool's pods alone tolerate what has its key. */
static bool is_of_a_pool(struct walk *w, struct str key)
{
    node_each(pool, node_get(w->facts, "pools"))
    {
        node_each(one, node_get(pool, "tolerations"))
        {
            if (str_eq(node_text(node_get(one, "key")), key))
                return true;
        }
    }
    return false;
}

static bool is_every_pods(struct walk *w, const struct node *n)
{
    node_each(one, node_get(w->facts, "tolerations"))
    {
        if (node_equal(one, n))
            return !is_of_a_pool(w, node_text(node_get(n, "key")));
    }
    return false;
}

static const char *toleration(struct walk *w, const struct node *n)
{
    struct str key = node_text(node_get(n, "key"));
    const struct node *seconds = node_get(n, "tolerationSeconds");

    node_each(one, node_get(w->pool, "tolerations"))
    {
        if (node_equal(one, n))
            return NULL;
    }
    if (is_every_pods(w, n))
        return NULL;
    if (!str_eqc(key, "node.kubernetes.io/not-ready") &&
        !str_eqc(key, "node.kubernetes.io/unreachable"))
        return "a toleration no pool grants";
    if (!str_eqc(node_text(node_get(n, "effect")), "NoExecute") || !seconds ||
        strtoll(seconds->text.p, NULL, 10) > 3600)
        return "an eviction put off without bound";
    return NULL;
}

/* ---- devices ---- */

static bool is_device(struct str key)
{
    return str_find(key, '/') < key.n;
}

static const char *resource(struct walk *w, const struct node *n)
{
    if (!is_device(n->key))
        return NULL; /* a name the host does not know is refused there */
    node_each(one, node_get(w->pool, "resources"))
    {
        if (str_eq(node_text(node_get(one, "name")), n->key))
            return NULL;
    }
    return "a device no pool offers";
}

/* What hands out devices, and whose names of resources make the runtime do so. */
static const struct vendor {
    const char *variable, *resources[5];
} VENDORS[] = {
    {"NVIDIA_VISIBLE_DEVICES",
     {"nvidia.com/gpu", "nvidia.com/mig-", "nvidia.com/vgpu", "volcano.sh/vgpu-number",
      "k8s.amazonaws.com/vgpu"}},
    {"NVIDIA_IMEX_CHANNELS", {NULL}},
    {"AMD_VISIBLE_DEVICES",
     {"amd.com/gpu", "amd.com/spx_", "amd.com/dpx_", "amd.com/qpx_", "amd.com/cpx_"}},
    {"HABANA_VISIBLE_DEVICES", {"habana.ai/"}},
    {"ASCEND_VISIBLE_DEVICES", {"huawei.com/Ascend", "huawei.com/npu"}},
    {"MTHREADS_VISIBLE_DEVICES", {"mthreads.com/"}},
    {"CAMBRICON_VISIBLE_DEVICES", {"cambricon.com/"}},
    {"IX_VISIBLE_DEVICES", {"iluvatar.ai/", "iluvatar.com/"}},
    {"METAX_VISIBLE_DEVICES", {"metax-tech.com/"}},
    {"ENFLAME_VISIBLE_DEVICES", {"enflame.com/"}},
};
enum { N_VENDORS = COUNT(VENDORS) };

static const struct vendor *vendor_of(struct str name)
{
    for (size_t i = 0; i < N_VENDORS; i++) {
        if (str_eqc(name, VENDORS[i].variable))
            return &VENDORS[i];
    }
    return NULL;
}

/* Does the resource make a runtime set the variable? An admin may say so of any. */
static bool grants(const struct walk *w, const struct vendor *vendor, struct str resource)
{
    for (size_t i = 0; i < 5 && vendor->resources[i]; i++) {
        if (str_has_prefix(resource, str_c(vendor->resources[i])))
            return true;
    }
    node_each(one, node_get(w->pool, "resources"))
    {
        node_each(name, str_eq(node_text(node_get(one, "name")), resource)
                            ? node_get(one, "variables")
                            : NULL)
        {
            if (str_eqc(node_text(name), vendor->variable))
                return true;
        }
    }
    return false;
}

static bool is_given(const struct walk *w, const struct node *container,
                     const struct vendor *vendor)
{
    static const char *const maps[] = {"limits", "requests"};

    for (size_t i = 0; i < 2; i++) {
        node_each(amount, node_get(node_get(container, "resources"), maps[i]))
        {
            if (grants(w, vendor, amount->key) && !str_eqc(amount->text, "0"))
                return true;
        }
    }
    return false;
}

static const struct node *variable(const struct node *container, const char *name)
{
    node_each(one, node_get(container, "env"))
    {
        if (str_eqc(node_text(node_get(one, "name")), name))
            return one;
    }
    return NULL;
}

static int64_t units_of(const struct node *map, const char *name)
{
    struct str text = node_text(node_get(map, name));

    return text.n && text.n < 18 && text.p[0] >= '0' && text.p[0] <= '9' ? strtoll(text.p, NULL, 10)
                                                                         : -1;
}

/* In a pool of HAMi or Volcano a container has all three of one GPU and a share, or none of them:
 * without its compute HAMi gives a GPU whole, and without its memory all of that. */
static const char *share_of(const struct walk *w, const struct node *map)
{
    static const char *const hami[] = {"nvidia.com/gpu", "nvidia.com/gpumem",
                                       "nvidia.com/gpucores"};
    static const char *const volcano[] = {"volcano.sh/vgpu-number", "volcano.sh/vgpu-memory",
                                          "volcano.sh/vgpu-cores"};
    struct str mode = node_text(node_get(w->pool, "mode"));
    const char *const *names = str_eqc(mode, "hami")           ? hami
                               : str_eqc(mode, "volcano-vgpu") ? volcano
                                                               : NULL;
    int64_t most = units_of(w->pool, "gpuMemory"), number, memory, cores;

    if (!names)
        return NULL;
    number = units_of(map, names[0]);
    memory = units_of(map, names[1]);
    cores = units_of(map, names[2]);
    if (number == -1 && memory == -1 && cores == -1)
        return NULL;
    if (number != 1 || cores < 1 || cores > 100 || memory < 1 || memory * 100 > most * cores)
        return "not one GPU and a share of it";
    return NULL;
}

static const char *share(struct walk *w, const struct node *amounts)
{
    const char *why = share_of(w, node_get(amounts, "limits"));

    return why ? why : share_of(w, node_get(amounts, "requests"));
}

/* An image may request every device by its own ENV; only an explicit value overrides it. */
static const char *vendor_void(struct walk *w, const struct node *container)
{
    for (size_t i = 0; i < N_VENDORS; i++) {
        if (!is_given(w, container, &VENDORS[i]) && !variable(container, VENDORS[i].variable))
            return arena_printf(w->arena, "%s is not void, though no such GPU is asked for",
                                VENDORS[i].variable)
                .p;
    }
    return NULL;
}

/* The kubelet adds the host's unless the pod says otherwise. */
static const char *api_env(struct walk *w, const struct node *container)
{
    static const char *const names[] = {"KUBERNETES_SERVICE_HOST",
                                        "KUBERNETES_SERVICE_PORT",
                                        "KUBERNETES_SERVICE_PORT_HTTPS",
                                        "KUBERNETES_PORT",
                                        "KUBERNETES_PORT_443_TCP",
                                        "KUBERNETES_PORT_443_TCP_PROTO",
                                        "KUBERNETES_PORT_443_TCP_PORT",
                                        "KUBERNETES_PORT_443_TCP_ADDR",
                                        NULL};

    for (size_t i = 0; names[i]; i++) {
        const struct node *one = variable(container, names[i]);

        if (!one || !node_get(one, "value"))
            return arena_printf(w->arena, "%s is the host's", names[i]).p;
    }
    return NULL;
}

static bool is_shared(const struct walk *w)
{
    static const char *const own[] = {"exclusive", "mig", NULL};

    return w->pool && !in(node_text(node_get(w->pool, "mode")), own);
}

static const char *const NEVER[] = {"NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES",
                                    "ASCEND_RUNTIME_OPTIONS", "ASCEND_VNPU_SPECS", NULL};
static const char *const NEVER_SHARED[] = {"CUDA_DISABLE_CONTROL", "LD_PRELOAD",
                                           "GPU_CORE_UTILIZATION_POLICY", NULL};

static bool is_shared_control(struct str name)
{
    return in(name, NEVER_SHARED) || str_has_prefix(name, STR("CUDA_MPS_")) ||
           str_has_prefix(name, STR("CUDA_DEVICE_MEMORY_LIMIT")) ||
           str_has_prefix(name, STR("CUDA_DEVICE_SM_LIMIT"));
}

/* The device that KAI says. */
static bool is_part_of(const struct node *env)
{
    const struct node *ref = node_get(node_get(env, "valueFrom"), "configMapKeyRef");

    return ref && is_map(node_text(node_get(ref, "name"))) &&
           str_eqc(node_text(node_get(ref, "key")), "NVIDIA_VISIBLE_DEVICES") &&
           !node_get(ref, "optional");
}

static const char *device_env(struct walk *w, const struct node *n)
{
    static const char *const off[] = {"void", "none", NULL};
    struct str name = node_text(node_get(n, "name")), value = node_text(node_get(n, "value"));

    if (str_eqc(name, "NVIDIA_VISIBLE_DEVICES") && has_parts(w) && is_part_of(n))
        return NULL;
    if (vendor_of(name))
        return in(value, off) && !node_get(n, "valueFrom") ? NULL
                                                           : "a variable that hands out devices";
    if (in(name, NEVER) || str_has_prefix(name, STR("DOCKER_RESOURCE_")) ||
        (is_shared(w) && is_shared_control(name)))
        return "a variable that takes control of devices";
    return NULL;
}

/* With a prefix, keys that are harmless become such a variable. */
static const char *env_prefix(struct walk *w, const struct node *n)
{
    if (!n->text.n)
        return NULL;
    for (size_t i = 0; i < N_VENDORS; i++) {
        if (str_has_prefix(str_c(VENDORS[i].variable), n->text))
            return "a prefix of a variable that hands out devices";
    }
    if (is_shared(w) &&
        (str_has_prefix(STR("LD_PRELOAD"), n->text) || str_has_prefix(n->text, STR("CUDA_MPS_"))))
        return "a prefix of a variable that takes control of devices";
    return NULL;
}

/* envFrom without a prefix makes variables of every key. */
static const char *data_key(struct walk *w, const struct node *n)
{
    static const char *const harmless[] = {"void", "none", "dm9pZA==", "bm9uZQ==", NULL};

    (void)w;
    if (in(n->key, NEVER))
        return "a key that becomes a variable of devices";
    return vendor_of(n->key) && !in(n->text, harmless)
               ? "a key that becomes a variable that hands out devices"
               : NULL;
}

/* Without "//", "/./" and "/x/../", as a runtime reads it. */
static struct str clean_path(struct walk *w, struct str rest)
{
    char *clean = arena_alloc(w->arena, rest.n + 2);
    size_t size = 0;

    while (rest.p) {
        struct str part = str_cut(&rest, '/');

        if (!part.n || str_eqc(part, "."))
            continue;
        if (str_eqc(part, "..")) {
            while (size && clean[--size] != '/')
                ;
            continue;
        }
        clean[size++] = '/';
        memcpy(clean + size, part.p, part.n);
        size += part.n;
    }
    return (struct str){clean, size};
}

/* A mount there is a list of devices for NVIDIA's runtime. */
static const char *mount_path(struct walk *w, const struct node *n)
{
    static const char *const directories[] = {"/var/run/nvidia-container-devices",
                                              "/run/nvidia-container-devices"};
    struct str path = clean_path(w, n->text);

    for (size_t i = 0; i < 2; i++) {
        struct str directory = str_c(directories[i]);

        if (str_has_prefix(path, directory) &&
            (path.n == directory.n || path.p[directory.n] == '/'))
            return "a mount that asks for devices";
    }
    return NULL;
}

/* ---- Pod Security ---- */

static const char *capability(struct walk *w, const struct node *n)
{
    static const char *const baseline[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};

    if (w->privileged)
        return NULL;
    if (w->restricted)
        return str_eqc(n->text, "NET_BIND_SERVICE") ? NULL : "a capability beyond restricted";
    return in(n->text, baseline) ? NULL : "a capability beyond baseline";
}

static const char *profile(struct walk *w, const struct node *n)
{
    return w->privileged || !n->text.n || str_eqc(n->text, "RuntimeDefault") ? NULL
                                                                             : "no RuntimeDefault";
}

static const char *selinux_type(struct walk *w, const struct node *n)
{
    static const char *const types[] = {
        "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", NULL};

    return w->privileged || in(n->text, types) ? NULL : "a type beyond baseline";
}

static const char *sysctl(struct walk *w, const struct node *n)
{
    static const char *const safe[] = {"kernel.shm_rmid_forced",
                                       "net.ipv4.ip_local_port_range",
                                       "net.ipv4.ip_local_reserved_ports",
                                       "net.ipv4.ip_unprivileged_port_start",
                                       "net.ipv4.ping_group_range",
                                       "net.ipv4.tcp_fin_timeout",
                                       "net.ipv4.tcp_keepalive_intvl",
                                       "net.ipv4.tcp_keepalive_probes",
                                       "net.ipv4.tcp_keepalive_time",
                                       "net.ipv4.tcp_rmem",
                                       "net.ipv4.tcp_syncookies",
                                       "net.ipv4.tcp_wmem",
                                       NULL};

    return w->privileged || in(n->text, safe) ? NULL : "a sysctl beyond baseline";
}

static const char *escalation(struct walk *w, const struct node *n)
{
    return w->restricted && !str_eqc(n->text, "false") ? "more rights than restricted" : NULL;
}

/* ---- volumes, Secrets, claims ---- */

static const char *one_source(struct walk *w, const struct node *volume)
{
    size_t n = 0;

    (void)w;
    node_each(member, volume)
    {
        n++;
    }
    return n == 2 && node_get(volume, "name") ? NULL : "not a name and one source";
}

/* metadata of the host pod is the host's, but for the annotations we made for the purpose. */
static const char *downward_path(struct walk *w, const struct node *n)
{
    (void)w;
    if (str_has_prefix(n->text, STR("metadata.annotations['sublet.dev/")) ||
        str_has_prefix(n->text, STR("metadata.labels['")))
        return NULL;
    return "it shows the host's metadata";
}

static const char *secret_type(struct walk *w, const struct node *n)
{
    static const char *const inert[] = {"Opaque",
                                        "kubernetes.io/basic-auth",
                                        "kubernetes.io/dockercfg",
                                        "kubernetes.io/dockerconfigjson",
                                        "kubernetes.io/ssh-auth",
                                        "kubernetes.io/tls",
                                        NULL};

    (void)w;
    return in(n->text, inert) ? NULL : "a type the host acts on";
}

/* A word that is none is refused by the host; this one needs no port and no pod to lead away. */
static const char *service_type(struct walk *w, const struct node *n)
{
    (void)w;
    return str_eqc(n->text, "ExternalName") ? "a name of the tenant's choice in the host's DNS"
                                            : NULL;
}

static const char *storage_class(struct walk *w, const struct node *n)
{
    const struct node *offered = node_get(w->facts, "storageClasses");

    if (!n->text.n)
        return "no class: an admin's volume would be bound";
    if (!offered || !offered->first)
        return NULL; /* the host's default, which is not known here */
    node_each(one, offered)
    {
        if (str_eq(node_text(one), n->text))
            return NULL;
    }
    return "a class that is not offered";
}

/* ---- by name ---- */

static const struct {
    const char *name;
    check_fn check;
} CHECKS[] = {
    {"annotation-key", annotation_key},
    {"autoscaler", autoscaler},
    {"api-env", api_env},
    {"capability", capability},
    {"data-key", data_key},
    {"device-env", device_env},
    {"dns-label", dns_label},
    {"dns-policy", dns_policy},
    {"downward-path", downward_path},
    {"env-prefix", env_prefix},
    {"escalation", escalation},
    {"expression-key", expression_key},
    {"fence", fence},
    {"gang-skip", gang_skip},
    {"gang-total", gang_total},
    {"key-name", key_name},
    {"label-key", label_key},
    {"lifetime", lifetime},
    {"mount-path", mount_path},
    {"node-field", node_field},
    {"not-empty", not_empty},
    {"one-source", one_source},
    {"our-name", our_name},
    {"part", part},
    {"part-container", part_container},
    {"part-maps", part_maps},
    {"pool-gang", pool_gang},
    {"pool-mode", pool_mode},
    {"pool-name", pool_name},
    {"pool-queue", pool_queue},
    {"pool-selector", pool_selector},
    {"profile", profile},
    {"resource", resource},
    {"secret-type", secret_type},
    {"selector-key", selector_key},
    {"selector-label-key", selector_label_key},
    {"selinux-type", selinux_type},
    {"service-type", service_type},
    {"share", share},
    {"storage-class", storage_class},
    {"sysctl", sysctl},
    {"tier", tier},
    {"toleration", toleration},
    {"vendor-void", vendor_void},
};

check_fn check_find(struct str name)
{
    for (size_t i = 0; i < COUNT(CHECKS); i++) {
        if (str_eqc(name, CHECKS[i].name))
            return CHECKS[i].check;
    }
    return NULL;
}
