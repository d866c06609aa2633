/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes file: groups of simulated machines in a few words, as Node objects. Labels are those
 * that a cloud and GPU feature discovery would set. Must refuse what it does not know: a misspelt
 * key would be a machine that silently lacks what was configured. */
#include "impl.h"

#include <sublet/hash.h>
#include <sublet/json_build.h>
#include <sublet/quantity.h>
#include <sublet/yaml.h>

#define MAX_NODES   5000
#define PRODUCT_KEY "nvidia.com/gpu.product"

const char NODES_BUILT_IN[] = "nodes:\n"
                              "- name: gpu-a100-%d\n"
                              "  count: 2\n"
                              "  labels: {sublet.dev/pool: a100}\n"
                              "  taints:\n"
                              "  - {key: nvidia.com/gpu, value: present, effect: NoSchedule}\n"
                              "  - {key: sublet.dev/pool, value: a100, effect: NoSchedule}\n"
                              "  capacity: {cpu: '96', memory: 1000Gi, pods: '500'}\n"
                              "  gpu: {model: a100, count: 8}\n"
                              "- name: gpu-l4-%d\n"
                              "  count: 2\n"
                              "  labels: {sublet.dev/pool: shared}\n"
                              "  taints:\n"
                              "  - {key: nvidia.com/gpu, value: present, effect: NoSchedule}\n"
                              "  - {key: sublet.dev/pool, value: shared, effect: NoSchedule}\n"
                              "  capacity: {cpu: '96', memory: 1000Gi, pods: '500'}\n"
                              "  gpu: {model: l4, count: 8}\n"
                              "- name: cpu-%d\n"
                              "  count: 2\n"
                              "  capacity: {cpu: '32', memory: 256Gi, pods: '500'}\n";

/* What GPU feature discovery says of a model. */
struct gpu_model {
    const char *name, *product, *memory_mib, *family, *major, *minor, *mig;
};
static const struct gpu_model MODELS[] = {
    {"a100", "NVIDIA-A100-SXM4-80GB", "81920", "ampere", "8", "0", "true"},
    {"h100", "NVIDIA-H100-80GB-HBM3", "81559", "hopper", "9", "0", "true"},
    {"l4", "NVIDIA-L4", "23034", "ada-lovelace", "8", "9", "false"},
    {"t4", "Tesla-T4", "15360", "turing", "7", "5", "false"},
};
#define N_MODELS COUNT(MODELS)

enum member_type { TEXT, NUMBER, TEXTS, AMOUNTS, LIST, GROUP };
struct member {
    const char *key;
    enum member_type type;
    int64_t low, high; /* of a NUMBER */
};
static const struct member NODE_MEMBERS[] = {
    {"name", TEXT},           {"count", NUMBER, 1, MAX_NODES},
    {"labels", TEXTS},        {"annotations", TEXTS},
    {"taints", LIST},         {"capacity", AMOUNTS},
    {"allocatable", AMOUNTS}, {"gpu", GROUP},
    {"region", TEXT},         {"zone", TEXT},
    {"instanceType", TEXT},   {NULL, TEXT},
};
static const struct member TAINT_MEMBERS[] = {
    {"key", TEXT},
    {"value", TEXT},
    {"effect", TEXT},
    {NULL, TEXT},
};
static const struct member GPU_MEMBERS[] = {
    {"model", TEXT}, {"count", NUMBER, 1, 64}, {"replicas", NUMBER, 1, 64}, {"resource", TEXT},
    {NULL, TEXT},
};
static const struct member FILE_MEMBERS[] = {{"nodes", LIST}, {NULL, TEXT}};

struct node_name { /* in the reader's arena */
    UT_hash_handle hh;
    struct str name;
};
struct reader {
    struct arena *arena;
    struct err *err;
    struct str duplicate;
    cJSON *nodes;
    struct node_name *names;
};

static int wrong(struct reader *r, struct str at, const char *what)
{
    return err_set(r->err, &ERR_BAD_REQUEST, "nodes: %.*s: %s", STR_F(at), what);
}

static struct str below(struct reader *r, struct str at, const char *key)
{
    return at.n ? arena_printf(r->arena, "%.*s.%s", STR_F(at), key) : str_c(key);
}

/* --- shapes --- */

/* A scalar as the string a person meant by it: `pods: 500` and `pods: "500"` are the same. */
static struct str scalar_text(struct reader *r, const cJSON *v)
{
    if (json_is_string(v))
        return json_str(v);
    if (json_is_number(v) || json_is_bool(v))
        return json_text(r->arena, v);
    return STR_NULL;
}

static int check_texts(struct reader *r, struct str at, const cJSON *map, bool labels)
{
    if (!json_is_object(map))
        return wrong(r, at, "must be a map of texts");
    json_each(v, map)
    {
        struct str text = scalar_text(r, v);
        const char *why = name_check_qualified(str_c(v->string));

        if (!text.p)
            return wrong(r, below(r, at, v->string), "must be a text");
        if (!why && labels)
            why = name_check_label_value(text);
        if (why)
            return wrong(r, below(r, at, v->string), why);
    }
    return 0;
}

static int check_quantities(struct reader *r, struct str at, const cJSON *map)
{
    if (!json_is_object(map))
        return wrong(r, at, "must be a map of quantities");
    json_each(v, map)
    {
        struct quantity q;
        struct str text = scalar_text(r, v);

        if (!text.p || !quantity_parse(text, &q) || q.nano < 0)
            return wrong(r, below(r, at, v->string), "must be a quantity of at least 0");
    }
    return 0;
}

static int check_number(struct reader *r, struct str at, const cJSON *v, const struct member *m)
{
    int64_t number;

    if (json_i64(v, &number) && number >= m->low && number <= m->high)
        return 0;
    return wrong(r, at,
                 arena_printf(r->arena, "must be a number from %lld to %lld", (long long)m->low,
                              (long long)m->high)
                     .p);
}

static int check_member(struct reader *r, struct str at, const cJSON *v, const struct member *m)
{
    switch (m->type) {
    case TEXT:
        return json_is_string(v) && json_str(v).n ? 0 : wrong(r, at, "must be a text");
    case NUMBER:
        return check_number(r, at, v, m);
    case TEXTS:
        return check_texts(r, at, v, str_eqc(str_c(m->key), "labels"));
    case AMOUNTS:
        return check_quantities(r, at, v);
    case LIST:
        return json_is_array(v) ? 0 : wrong(r, at, "must be a list");
    case GROUP:
        return json_is_object(v) ? 0 : wrong(r, at, "must be a map");
    }
    return -1;
}

static int check_members(struct reader *r, struct str at, const cJSON *object,
                         const struct member *members)
{
    if (!json_is_object(object))
        return wrong(r, at, "must be a map");
    json_each(v, object)
    {
        const struct member *m = members;
        struct str path = below(r, at, v->string);

        while (m->key && !str_eqc(str_c(v->string), m->key))
            m++;
        if (!m->key)
            return wrong(r, path, "unknown key");
        if (check_member(r, path, v, m))
            return -1;
    }
    return 0;
}

/* --- parts of a node --- */

static void copy_texts(struct reader *r, cJSON *to, const cJSON *from)
{
    json_each(v, from) json_set_str(r->arena, to, v->string, scalar_text(r, v));
}

static int add_taints(struct reader *r, struct str at, const cJSON *group, cJSON *node)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
    cJSON *list = json_ensure_path(r->arena, node, "spec");
    size_t i = 0;

    if (!json_count(json_get(group, "taints")))
        return 0;
    list = json_set(r->arena, list, "taints", json_new_array(r->arena));
    json_each(taint, json_get(group, "taints"))
    {
        struct str path = arena_printf(r->arena, "%.*s.taints[%zu]", STR_F(at), i++);
        struct str effect = json_str_at(taint, "effect");
        const char *why;

        if (check_members(r, path, taint, TAINT_MEMBERS))
            return -1;
        if ((why = name_check_qualified(json_str_at(taint, "key"))))
            return wrong(r, below(r, path, "key"), why);
        if ((why = name_check_label_value(json_str_at(taint, "value"))))
            return wrong(r, below(r, path, "value"), why);
        if (!str_eqc(effect, effects[0]) && !str_eqc(effect, effects[1]) &&
            !str_eqc(effect, effects[2]))
            return wrong(r, below(r, path, "effect"),
                         "want one of NoSchedule|PreferNoSchedule|NoExecute");
        json_append(list, json_copy(r->arena, taint));
    }
    return 0;
}

static const struct gpu_model *find_model(struct str name)
{
    for (size_t i = 0; i < N_MODELS; i++) {
        if (str_eqc(name, MODELS[i].name))
            return &MODELS[i];
    }
    return NULL;
}

/* k8s-device-plugin's gpu-feature-discovery: what it labels a machine with. */
static void add_gpu_labels(struct reader *r, const struct gpu_model *m, int64_t count,
                           int64_t replicas, cJSON *labels)
{
    struct arena *a = r->arena;
    bool sliced = replicas > 1;
    const struct {
        const char *key;
        struct str value;
    } rows[] = {
        {"nvidia.com/gpu.present", STR("true")},
        {PRODUCT_KEY, arena_printf(a, "%s%s", m->product, sliced ? "-SHARED" : "")},
        {"nvidia.com/gpu.count", arena_printf(a, "%lld", (long long)count)},
        {"nvidia.com/gpu.replicas", arena_printf(a, "%lld", (long long)replicas)},
        {"nvidia.com/gpu.sharing-strategy", str_c(sliced ? "time-slicing" : "none")},
        {"nvidia.com/gpu.memory", str_c(m->memory_mib)},
        {"nvidia.com/gpu.family", str_c(m->family)},
        {"nvidia.com/gpu.compute.major", str_c(m->major)},
        {"nvidia.com/gpu.compute.minor", str_c(m->minor)},
        {"nvidia.com/gpu.machine", STR("simulated")},
        {"nvidia.com/mig.capable", str_c(m->mig)},
        {"nvidia.com/cuda.driver-version.full", STR("580.65.06")},
        {"nvidia.com/cuda.runtime-version.full", STR("13.0")},
        {"feature.node.kubernetes.io/pci-10de.present", STR("true")},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        json_set_str(a, labels, rows[i].key, rows[i].value);
}

static int add_gpus(struct reader *r, struct str at, const cJSON *group, cJSON *node)
{
    const cJSON *gpu = json_get(group, "gpu");
    struct str path = below(r, at, "gpu"), resource = json_str_at(gpu, "resource");
    const struct gpu_model *m = find_model(json_str_at(gpu, "model"));
    int64_t count = json_i64_at(gpu, "count", 8), replicas = json_i64_at(gpu, "replicas", 1);

    if (!gpu)
        return 0;
    if (check_members(r, path, gpu, GPU_MEMBERS))
        return -1;
    if (!m)
        return wrong(r, below(r, path, "model"),
                     arena_printf(r->arena, "unknown value \"%.*s\": want one of a100|h100|l4|t4",
                                  STR_F(json_str_at(gpu, "model")))
                         .p);
    if (!resource.n)
        resource = STR("nvidia.com/gpu");
    const char *why = name_check_qualified(resource);
    if (why)
        return wrong(r, below(r, path, "resource"), why);
    add_gpu_labels(r, m, count, replicas, json_path(node, "metadata.labels"));
    json_set_str(r->arena, json_path(node, "status.capacity"), arena_cstr(r->arena, resource),
                 arena_printf(r->arena, "%lld", (long long)(count * replicas)));
    return 0;
}

static void add_capacity(struct reader *r, const cJSON *group, cJSON *node)
{
    cJSON *capacity = json_ensure_path(r->arena, node, "status.capacity");

    json_put(r->arena, capacity, JSON("cpu", "32"), JSON("memory", "256Gi"),
             JSON("ephemeral-storage", "1Ti"), JSON("pods", "110"));
    copy_texts(r, capacity, json_get(group, "capacity"));
}

static void add_allocatable(struct reader *r, const cJSON *group, cJSON *node)
{
    cJSON *status = json_get(node, "status");

    json_set(r->arena, status, "allocatable", json_copy(r->arena, json_get(status, "capacity")));
    copy_texts(r, json_get(status, "allocatable"), json_get(group, "allocatable"));
}

static struct str text_or(const cJSON *group, const char *key, const char *otherwise)
{
    struct str text = json_str_at(group, key);

    return text.n ? text : str_c(otherwise);
}

static void add_labels(struct reader *r, const cJSON *group, struct str name, cJSON *node)
{
    struct arena *a = r->arena;
    cJSON *labels = json_ensure_path(a, node, "metadata.labels");

    json_put(a, labels, JSON("kubernetes.io/hostname", name), JSON("kubernetes.io/os", "linux"),
             JSON("kubernetes.io/arch", "amd64"),
             JSON("node.kubernetes.io/instance-type", text_or(group, "instanceType", "simulated")),
             JSON("topology.kubernetes.io/region", text_or(group, "region", "r1")),
             JSON("topology.kubernetes.io/zone", text_or(group, "zone", "r1a")));
}

/* --- groups --- */

/* "%d" stands for the machine's number. */
static struct str name_of(struct reader *r, struct str pattern, int64_t number)
{
    for (size_t i = 0; i + 1 < pattern.n; i++) {
        if (pattern.p[i] == '%' && pattern.p[i + 1] == 'd')
            return arena_printf(r->arena, "%.*s%lld%.*s", STR_F(str_sub(pattern, 0, i)),
                                (long long)number, STR_F(str_from(pattern, i + 2)));
    }
    return pattern;
}

/* False when there is a node of this name. */
static bool take_name(struct reader *r, struct str name)
{
    struct node_name *n;

    HASH_FIND(hh, r->names, name.p, name.n, n);
    if (n)
        return false;
    n = ARENA_NEW(r->arena, struct node_name);
    n->name = name;
    HASH_ADD_KEYPTR(hh, r->names, n->name.p, n->name.n, n);
    return true;
}

static int add_node(struct reader *r, struct str at, const cJSON *group, struct str name)
{
    struct arena *a = r->arena;
    cJSON *node = json_new_object(a);
    const char *why = name_check_dns1123_subdomain(name);

    if (why)
        return wrong(r, below(r, at, "name"), why);
    if (!take_name(r, name))
        return wrong(r, below(r, at, "name"),
                     arena_printf(a, "a second node \"%.*s\"", STR_F(name)).p);
    json_set_str(a, json_ensure_path(a, node, "metadata"), "name", name);
    add_labels(r, group, name, node);
    add_capacity(r, group, node);
    if (add_gpus(r, at, group, node) || add_taints(r, at, group, node))
        return -1;
    add_allocatable(r, group, node);
    copy_texts(r, json_path(node, "metadata.labels"), json_get(group, "labels"));
    if (json_get(group, "annotations"))
        copy_texts(r, json_ensure_path(a, node, "metadata.annotations"),
                   json_get(group, "annotations"));
    json_append(r->nodes, node);
    return 0;
}

static int add_group(struct reader *r, struct str at, const cJSON *group)
{
    struct str pattern = json_str_at(group, "name");
    int64_t count = json_i64_at(group, "count", 1);

    if (check_members(r, at, group, NODE_MEMBERS))
        return -1;
    if (!pattern.n)
        return wrong(r, below(r, at, "name"), "is needed");
    if (count > 1 && !str_contains(pattern, STR("%d")))
        return wrong(r, below(r, at, "name"), "needs %d, the number, where count is above 1");
    if ((int64_t)json_count(r->nodes) + count > MAX_NODES)
        return wrong(r, at, "too many nodes");
    for (int64_t i = 1; i <= count; i++) {
        if (add_node(r, at, group, name_of(r, pattern, i)))
            return -1;
    }
    return 0;
}

/* The error of the YAML reader, with its line. */
static void on_duplicate(void *ctx, struct str words)
{
    struct reader *r = ctx;

    if (!r->duplicate.p)
        r->duplicate = arena_str(r->arena, words);
}

static int read_file(struct reader *r, struct str text)
{
    struct arena *a = r->arena;
    cJSON *file;
    size_t i = 0;

    if (yaml_parse(a, text, on_duplicate, r, &file, r->err))
        return err_wrap(r->err, "nodes");
    if (r->duplicate.p)
        return err_set(r->err, &ERR_BAD_REQUEST, "nodes: %.*s", STR_F(r->duplicate));
    if (!json_is_object(file))
        return wrong(r, STR("file"), "must be a map with the key \"nodes\"");
    if (check_members(r, STR(""), file, FILE_MEMBERS))
        return -1;
    if (!json_get(file, "nodes"))
        return wrong(r, STR("nodes"), "is needed");
    json_each(group, json_get(file, "nodes"))
    {
        if (add_group(r, arena_printf(a, "nodes[%zu]", i++), group))
            return -1;
    }
    return 0;
}

int node_file_parse(struct arena *a, struct str text, cJSON **ret, struct err *err)
{
    struct reader r = {.arena = a, .err = err, .nodes = json_new_array(a)};
    int failed = read_file(&r, text.n ? text : str_c(NODES_BUILT_IN));

    HASH_CLEAR(hh, r.names);
    if (!failed)
        *ret = r.nodes;
    return failed;
}
