/* SPDX-License-Identifier: Apache-2.0 */
/* See generate.h. A field is drawn by its type and its name: a toleration has keys of taints, a
 * variable the name of one that hands out devices. Most objects are an ordinary one with a few
 * fields too many; some are nothing but chance. */
#include "generate.h"

#include <stdio.h>
#include <string.h>

#include <sublet/schema.h>

enum { DEPTH_MAX = 14 };

/* splitmix64 */
uint64_t generator_next(struct generator *g)
{
    uint64_t z = (g->state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t generator_below(struct generator *g, uint64_t n)
{
    return generator_next(g) % n;
}

static bool chance(struct generator *g, unsigned percent)
{
    return generator_below(g, 100) < percent;
}

/* ---- what stands in a field ---- */

/* Words by the name of the field, by "|". */
static const struct {
    const char *field, *words;
} WORDS[] = {
    {"name", "c|d|main|x|default|NVIDIA_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES|NVIDIA_IMEX_"
             "CHANNELS|NVIDIA_MIG_CONFIG_DEVICES|AMD_VISIBLE_DEVICES|HABANA_VISIBLE_DEVICES|ASCEND_"
             "VISIBLE_DEVICES|MTHREADS_VISIBLE_DEVICES|CAMBRICON_VISIBLE_DEVICES|CUDA_MPS_PIPE_"
             "DIRECTORY|CUDA_DEVICE_MEMORY_LIMIT_0|CUDA_DISABLE_CONTROL|CUDA_OVERSUBSCRIBE|LD_"
             "PRELOAD|KUBERNETES_SERVICE_HOST|KUBERNETES_"
             "PORT_443_TCP_ADDR|kube-root-ca.crt|sublet-kubeconfig|kernel.msgmax|net.ipv4.tcp_"
             "syncookies|kernel.shm_rmid_forced|victim-aaaabbbbccccdddd|ndots"},
    {"value", "all|void|none|0|1|$(X)|GPU-1|all,void|a100|true|compute,utility|10.0.0.1|"},
    {"key",
     "nvidia.com/gpu|sublet.dev/pool|sublet.dev/cluster|node-role.kubernetes.io/control-plane|"
     "node.kubernetes.io/not-ready|node.kubernetes.io/unreachable|node.kubernetes.io/"
     "unschedulable|kubernetes.io/hostname|kubernetes.io/os|nvidia.com/gpu.present|nvidia.com/"
     "gpu.product|metadata.name|topology.kubernetes.io/zone|app|x|"},
    {"operator", "In|NotIn|Exists|DoesNotExist|Gt|Lt|Equal|"},
    {"effect", "NoSchedule|NoExecute|PreferNoSchedule|"},
    {"values", "true|H100|A100|L4|node-1|gpu-1|a100|x"},
    {"type", "ClusterIP|NodePort|LoadBalancer|ExternalName|RuntimeDefault|Unconfined|Localhost|"
             "Directory|spc_t|container_t|Opaque|kubernetes.io/service-account-token|bootstrap."
             "kubernetes.io/token|kubernetes.io/tls|Recreate|"},
    {"fieldPath", "metadata.name|metadata.uid|metadata.labels|metadata.annotations|metadata."
                  "namespace|metadata.labels['app']|metadata.annotations['x']|metadata.labels['a'] "
                  "b']|spec.nodeName|spec.serviceAccountName|status.hostIP|status.podIPs|metadata."
                  "annotations['sublet.dev/uid']|metadata.resourceVersion|.metadata.name"},
    {"prefix", "|NVIDIA_|N|LD_|CUDA_MPS_|APP_|NVIDIA_VISIBLE_DEVICES|KUBERNETES_"},
    {"mountPath",
     "/data|/dev|/var/run/nvidia-container-devices/all|/run/../var/run//nvidia-"
     "container-devices|var/run/nvidia-container-devices/0|/etc/ld.so.preload|/usr/local/"
     "vgpu|/tmp/vgpulock|/proc|/"},
    {"path", "/|/dev/nvidia0|/var/lib/kubelet|../../x|token|x"},
    {"host", "169.254.169.254|127.0.0.1|10.96.0.1|kubernetes.default|"},
    {"add", "SYS_ADMIN|ALL|NET_RAW|KILL|CHOWN|NET_BIND_SERVICE|SYS_PTRACE|chown"},
    {"drop", "ALL|KILL"},
    {"procMount", "Unmasked|Default"},
    {"resource", "limits.cpu|requests.memory|limits.nvidia.com/gpu"},
    {"nodeName", "gpu-1|node-1|own-1|"},
    {"serviceAccountName", "default|admin|sublet"},
    {"schedulerName", "default-scheduler|kai-scheduler|volcano|hami-scheduler|mine"},
    {"priorityClassName", "system-node-critical|system-cluster-critical|high|low|"},
    {"preemptionPolicy", "Never|PreemptLowerPriority"},
    {"runtimeClassName", "nvidia|kata|runc|nvidia-legacy"},
    {"clusterIP", "None|10.96.0.1|10.96.0.10|"},
    {"clusterIPs", "None|10.96.0.10"},
    {"externalIPs", "10.0.0.1|8.8.8.8"},
    {"externalName", "metadata.internal|kubernetes.default.svc"},
    {"loadBalancerClass", "x/y|service.k8s.aws/nlb|"},
    {"loadBalancerSourceRanges", "0.0.0.0/0"},
    {"storageClassName", "standard|gold|local|"},
    {"volumeName", "pv-of-others|v"},
    {"kind", "PersistentVolumeClaim|VolumeSnapshot|DaemonSet|Node|Job|ReplicaSet"},
    {"claimName", "c|victim-aaaabbbbccccdddd"},
    {"secretName", "s|victim-kubeconfig|sh.helm.release.v1.sublet"},
    {"restartPolicy", "Always|OnFailure|Never|"},
    {"dnsPolicy", "ClusterFirst|Default|None|ClusterFirstWithHostNet|"},
    {"hostname", "p|a.b|kube-dns|"},
    {"topologyKey", "kubernetes.io/hostname|topology.kubernetes.io/zone|x"},
    {"namespaces", "ml|kube-system|other"},
    {"mountPropagation", "Bidirectional|HostToContainer|None"},
    {"localhostProfile", "operator/x|"},
    {"ip", "10.0.0.1|127.0.0.1"},
    {"medium", "Memory|HugePages|"},
};

static const char KEYS[] =
    "app|k8s-app|app.kubernetes.io/name|job-name|pod-template-hash|team.example/x|note|sublet.dev/"
    "cluster|sublet.dev/namespace|sublet.dev/pool|sublet.dev/mode|sublet.dev/gpu-pool|sublet.dev/"
    "name|sublet.dev/uid|sublet.dev/owned|sublet.dev/owner|sublet.dev/sent-images|sublet.dev/"
    "l-aaaabbbbccccdddd|sublet.dev/a-"
    "aaaabbbbccccdddd|kueue.x-k8s.io/queue-name|kueue.x-k8s.io/pod-group-name|kueue.x-k8s.io/"
    "pod-group-total-count|"
    "kueue.x-k8s.io/retriable-in-group|kueue.x-k8s.io/priority-class|kueue.x-k8s.io/role-hash|"
    "kueue.x-k8s.io/pod-suspending-parent|kueue.x-k8s.io/prebuilt-workload-name|gpu-fraction|"
    "gpu-fraction-container-name|gpu-fraction-num-devices|runai/"
    "shared-gpu-configmap|gpu-memory|runai-gpu-group|scheduling.k8s.io/group-name|kai.scheduler/"
    "queue|runai/"
    "queue|volcano.sh/"
    "resource-group|volcano.sh/vgpu-ids-new|hami.io/vgpu|hami.io/webhook|hami.io/vgpu-devices-"
    "allocated|nvidia.com/use-gpuuuid|nvidia.com/vgpu-mode|cdi.k8s.io/gpu|istio.io/"
    "rev|k8s.v1.cni.cncf.io/networks|cluster-"
    "autoscaler.kubernetes.io/safe-to-evict|container.apparmor.security.beta.kubernetes.io/c|"
    "seccomp.security.alpha.kubernetes.io/pod|kubernetes.io/hostname|nvidia.com/gpu.present|"
    "nvidia.com/gpu.product|nvidia.com/gpu.deploy.driver|topology.kubernetes.io/zone|vcluster.loft."
    "sh/object-name|iam.amazonaws.com/role|eks.amazonaws.com/role-arn|pod-security.kubernetes.io/"
    "enforce|service.beta.kubernetes.io/aws-load-balancer-internal|kubectl.kubernetes.io/default-"
    "container|NVIDIA_VISIBLE_DEVICES|NVIDIA_IMEX_CHANNELS|VISIBLE_DEVICES|LD_PRELOAD";

static const char RESOURCES[] =
    "cpu|memory|ephemeral-storage|hugepages-2Mi|nvidia.com/gpu|nvidia.com/gpu.shared|nvidia.com/"
    "mig-"
    "1g.10gb|amd.com/gpu|rdma/hca|deviceclass.resource.kubernetes.io/gpu|requests.nvidia.com/gpu|"
    "pods|storage|example.com/fpga|sublet.dev/gpu-percent|nvidia.com/gpumem|nvidia.com/gpumem-"
    "percentage|nvidia.com/gpucores|nvidia.com/priority|volcano.sh/vgpu-number|volcano.sh/"
    "vgpu-memory|volcano.sh/vgpu-cores";

static const char QUANTITIES[] = "1|0|2|8|50|100|24576|100m|1Gi|1000000000|-1|1e3|0.5";

static struct str pick(struct generator *g, struct str words)
{
    struct str copy = words;
    uint64_t n = 1;

    for (size_t i = 0; i < words.n; i++)
        n += words.p[i] == '|';
    for (n = generator_below(g, n); n; n--)
        str_cut(&copy, '|');
    return str_cut(&copy, '|');
}

static struct str word_for(struct generator *g, struct str field)
{
    for (size_t i = 0; i < COUNT(WORDS); i++) {
        if (str_eqc(field, WORDS[i].field) && !chance(g, 5))
            return pick(g, str_c(WORDS[i].words));
    }
    return pick(g,
                chance(g, 80)
                    ? STR("a|b|x|default|all|host|true|/|0||a-b|A|1.2.3.4")
                    : STR("\xC3\xA9|\"'|$(NVIDIA_VISIBLE_DEVICES)|a\nb|a,b|a=b|..|sublet.dev/x"));
}

/* ---- by type ---- */

static cJSON *value(struct generator *g, uint32_t node, struct str field, unsigned depth);

static bool has_amounts(struct str field)
{
    return str_eqc(field, "limits") || str_eqc(field, "requests") || str_eqc(field, "overhead") ||
           str_eqc(field, "capacity");
}

static cJSON *map(struct generator *g, const struct schema_node *n, struct str field,
                  unsigned depth)
{
    cJSON *ret = json_new_object(g->arena);

    for (uint64_t i = generator_below(g, 4); i; i--) {
        struct str key = pick(g, has_amounts(field) ? str_c(RESOURCES) : str_c(KEYS));

        json_set(g->arena, ret, arena_cstr(g->arena, key), value(g, n->elem, field, depth + 1));
    }
    return ret;
}

/* How likely a field is written: few on the way down, or nothing would be small. */
static unsigned likely(const struct schema_field *field, unsigned depth)
{
    if (field->flags & FIELD_REQUIRED)
        return 95;
    return depth <= 1 ? 8 : depth <= 3 ? 14 : 25;
}

static void add_field(struct generator *g, cJSON *to, size_t index, unsigned depth)
{
    const struct schema_field *field = &SCHEMA_BUILTIN.fields[index];
    const char *name = schema_text(&SCHEMA_BUILTIN, field->name);

    if (field->flags & FIELD_INLINE)
        return;
    g->reached[index] = 1;
    json_set(g->arena, to, name, value(g, field->node, str_c(name), depth + 1));
}

static cJSON *object(struct generator *g, const struct schema_node *n, unsigned depth)
{
    cJSON *ret = json_new_object(g->arena);

    for (size_t i = 0; i < n->n_fields; i++) {
        size_t index = n->first_field + i;

        if (chance(g, likely(&SCHEMA_BUILTIN.fields[index], depth)))
            add_field(g, ret, index, depth);
    }
    /* One source is what a volume has; and what is not known must not go down. */
    if (n->n_fields && !json_count(ret))
        add_field(g, ret, n->first_field + generator_below(g, n->n_fields), depth);
    if (chance(g, 2))
        json_set_str(g->arena, ret, "unknownField", STR("x"));
    return ret;
}

static cJSON *list(struct generator *g, const struct schema_node *n, struct str field,
                   unsigned depth)
{
    cJSON *ret = json_new_array(g->arena);

    for (uint64_t i = 1 + generator_below(g, 2); i; i--)
        json_append(ret, value(g, n->elem, field, depth + 1));
    return ret;
}

static int64_t number(struct generator *g)
{
    static const int64_t numbers[] = {0, 1, 2, 80, 443, 300, 3600, 100000, -1, 2000001000, 30000};

    return numbers[generator_below(g, COUNT(numbers))];
}

static cJSON *value(struct generator *g, uint32_t node, struct str field, unsigned depth)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);
    struct arena *a = g->arena;

    if (depth > DEPTH_MAX)
        return json_new_null(a);
    switch (n->kind) {
    case SCHEMA_OBJECT:
        return object(g, n, depth);
    case SCHEMA_MAP:
        return map(g, n, field, depth);
    case SCHEMA_LIST:
        return list(g, n, field, depth);
    case SCHEMA_STRING:
        return json_new_string(a, word_for(g, field));
    case SCHEMA_BOOL:
        return json_new_bool(a, chance(g, 60));
    case SCHEMA_QUANTITY:
        return json_new_string(a, pick(g, str_c(QUANTITIES)));
    case SCHEMA_INT_OR_STRING:
        return chance(g, 50) ? json_new_i64(a, number(g)) : json_new_string(a, STR("http"));
    case SCHEMA_BYTES:
        return json_new_string(a, STR("YWxs"));
    case SCHEMA_TIME:
    case SCHEMA_MICRO_TIME:
        return json_new_string(a, STR("2026-01-01T00:00:00Z"));
    case SCHEMA_INT32:
    case SCHEMA_INT64:
        return json_new_i64(a, number(g));
    default:
        return json_new_object(a);
    }
}

/* ---- objects ---- */

static cJSON *metadata(struct generator *g)
{
    struct arena *a = g->arena;
    cJSON *ret = json_new_object(a);

    json_set_str(a, ret, "name",
                 pick(g, STR("p|train|a-b|web.x|kubernetes|a-very-long-name-that-is-"
                             "cut-somewhere-because-it-is-longer-than-46")));
    json_set_str(a, ret, "namespace", pick(g, STR("ml|default|kube-system|team|team-a")));
    json_set_str(a, ret, "uid", STR("11111111-2222-3333-4444-000000000000"));
    return ret;
}

/* Fields of one object, some of them, over what is there. */
static void add_some(struct generator *g, uint32_t node, cJSON *to, unsigned depth)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);

    for (uint64_t i = generator_below(g, 4); i && n->n_fields; i--)
        add_field(g, to, n->first_field + generator_below(g, n->n_fields), depth);
}

/* Containers as people write them, each with a few fields of chance. */
static cJSON *containers(struct generator *g, uint32_t list_node)
{
    uint32_t node = schema_node(&SCHEMA_BUILTIN, list_node)->elem;
    cJSON *ret = json_new_array(g->arena);

    for (uint64_t i = 1 + generator_below(g, 2); i; i--) {
        cJSON *one = json_append(ret, json_new_object(g->arena));

        json_set_str(g->arena, one, "name", i == 1 ? STR("c") : STR("d"));
        json_set_str(g->arena, one, "image", STR("example.com/i:1"));
        if (chance(g, 30)) {
            cJSON *limits = json_new_object(g->arena);

            json_set_str(g->arena, limits,
                         arena_cstr(g->arena, pick(g, STR("nvidia.com/gpu|nvidia.com/mig-1g.10gb|"
                                                          "example.com/fpga|cpu"))),
                         pick(g, STR("1|2|0")));
            json_set(g->arena, json_set(g->arena, one, "resources", json_new_object(g->arena)),
                     "limits", limits);
        }
        if (chance(g, 60))
            add_some(g, node, one, 3);
    }
    return ret;
}

static void ordinary(struct generator *g, uint32_t spec_node, cJSON *spec)
{
    static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};

    for (size_t i = 0; i < 3; i++) {
        uint32_t node = schema_child(&SCHEMA_BUILTIN, spec_node, str_c(lists[i]));

        if (node && (i == 0 || chance(g, 12)))
            json_set(g->arena, spec, lists[i], containers(g, node));
    }
}

static uint32_t spec_node(const char *kind)
{
    uint32_t root = schema_builtin_root(STR(""), STR("v1"), str_c(kind));

    return schema_child(&SCHEMA_BUILTIN, root, STR("spec"));
}

cJSON *generate_object(struct generator *g, const char *kind)
{
    uint32_t root = schema_builtin_root(STR(""), STR("v1"), str_c(kind)), spec = spec_node(kind);
    uint32_t meta = schema_child(&SCHEMA_BUILTIN, root, STR("metadata"));
    cJSON *ret = json_new_object(g->arena), *to, *own;

    json_set_str(g->arena, ret, "apiVersion", STR("v1"));
    json_set_str(g->arena, ret, "kind", str_c(kind));
    own = metadata(g);
    to = json_set(g->arena, ret, "metadata", json_new_object(g->arena));
    if (chance(g, 60))
        add_some(g, meta, to, 2);
    json_each(member, own)
    {
        json_set(g->arena, to, member->string, json_copy(g->arena, member));
    }
    if (!spec) {
        json_each(member, value(g, root, str_c(kind), 1))
        {
            if (!json_get(ret, member->string))
                json_set(g->arena, ret, member->string, json_copy(g->arena, member));
        }
        return ret;
    }
    to = json_set(g->arena, ret, "spec",
                  chance(g, 10) ? value(g, spec, STR("spec"), 1) : json_new_object(g->arena));
    ordinary(g, spec, to);
    add_some(g, spec, to, 2);
    return ret;
}

/* ---- coverage ---- */

static size_t missed_below(const struct generator *g, uint32_t node, unsigned char *seen,
                           struct buf *b)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);
    size_t total = 0;

    if (n->kind == SCHEMA_MAP || n->kind == SCHEMA_LIST)
        return missed_below(g, n->elem, seen, b);
    if (n->kind != SCHEMA_OBJECT || seen[node])
        return 0;
    seen[node] = 1;
    for (size_t i = 0; i < n->n_fields; i++) {
        const struct schema_field *field = &SCHEMA_BUILTIN.fields[n->first_field + i];

        if (field->flags & FIELD_INLINE)
            continue;
        total += 1 + missed_below(g, field->node, seen, b);
        if (!g->reached[n->first_field + i])
            buf_printf(b, "%s.%s\n", schema_text(&SCHEMA_BUILTIN, n->type_name),
                       schema_text(&SCHEMA_BUILTIN, field->name));
    }
    return total;
}

size_t generator_missed(const struct generator *g, const char *kind, struct buf *b)
{
    unsigned char *seen = mem_alloc(SCHEMA_BUILTIN.n_nodes);
    size_t total = missed_below(g, spec_node(kind), seen, b);

    mem_free(seen);
    return total;
}
