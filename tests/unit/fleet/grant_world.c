/* SPDX-License-Identifier: Apache-2.0 */
/* The host of grant_world.h. Each write is checked as it is applied: no GPU is promised twice. */
#include "grant_world.h"
#include "../../quoted.h"

cJSON *object(struct host_of *h, const char *text)
{
    return quoted_json(h->a, str_c(text));
}

void stamp(struct host_of *h, cJSON *tree)
{
    cJSON *metadata = json_ensure_object(h->a, tree, "metadata");

    json_set_str(h->a, metadata, "resourceVersion",
                 arena_printf(h->a, "%lld", (long long)++h->version));
}

void begin_unrecorded(struct host_of *h, uint64_t seed)
{
    *h =
        (struct host_of){.a = arena_new(0), .random = seed * 0x9e3779b97f4a7c15u + 1, .now_s = NOW};
    h->pool = object(h, "{'metadata':{'name':'a100','generation':1},'spec':{'nodeSelector':"
                        "{'sublet.dev/pool':'a100'}}}");
    stamp(h, h->pool);
    for (int i = 0; i < 2; i++) {
        h->nodes[i] = object(
            h, "{'metadata':{'labels':{'sublet.dev/pool':'a100'}},'status':{'capacity':{"
               "'nvidia.com/gpu':'8'},'allocatable':{'nvidia.com/gpu':'8'},'conditions':[{'type':"
               "'Ready','status':'True'}]}}");
        json_set_str(h->a, json_get(h->nodes[i], "metadata"), "name", arena_printf(h->a, "n%d", i));
    }
}

void begin(struct host_of *h, uint64_t seed)
{
    begin_unrecorded(h, seed);
    record_pool(h);
}

/* As the watch keeps the nodes, with what HAMi registered there. */
void begin_shares(struct host_of *h, uint64_t seed)
{
    begin_unrecorded(h, seed);
    h->shares = true;
    h->pool = object(h, "{'metadata':{'name':'a100','generation':1},'spec':{'mode':'hami',"
                        "'gpuMemoryMiB':40960,'nodeSelector':{'sublet.dev/pool':'a100'},"
                        "'scheduler':{'kind':'hami'}}}");
    stamp(h, h->pool);
    for (int i = 0; i < 2; i++) {
        json_set(h->a, json_get(h->nodes[i], "status"), "capacity",
                 object(h, "{'nvidia.com/gpu':'80','nvidia.com/gpucores':'800'}"));
        json_set(h->a, json_get(h->nodes[i], "status"), "allocatable",
                 object(h, "{'nvidia.com/gpu':'80','nvidia.com/gpucores':'800'}"));
    }
    record_pool(h);
}

/* One of whole shares, in as many containers. */
static void add_shares(struct host_of *h, cJSON *pod, int64_t gpus)
{
    cJSON *list = json_new_array(h->a);

    for (int64_t i = 0; i < gpus; i++)
        json_append(list, object(h, "{'resources':{'limits':{'nvidia.com/gpu':'1',"
                                    "'nvidia.com/gpumem':'40960','nvidia.com/gpucores':'100'}}}"));
    json_set(h->a, json_get(pod, "spec"), "containers", list);
}

void bind_team(struct host_of *h, int tenant, const char *spec)
{
    cJSON *b = json_object(
        h->a,
        JSON("metadata",
             json_object(h->a, JSON("name", "a100"),
                         JSON("namespace", arena_printf(h->a, "team-%d", tenant)),
                         JSON("creationTimestamp", time_format_s(h->a, NOW - 100 + tenant)),
                         JSON_I64("generation", 1))),
        JSON("spec", object(h, spec)));

    stamp(h, b);
    h->bindings[tenant] = b;
}

cJSON *pod_of(struct host_of *h, int tenant)
{
    cJSON *pod = object(h, "{'metadata':{},'spec':{'nodeSelector':{'sublet.dev/pool':'a100'},"
                           "'containers':[{'resources':{'limits':{}}}]},'status':{}}");

    json_set_str(h->a, json_get(pod, "metadata"), "namespace",
                 arena_printf(h->a, "team-%d", tenant));
    json_set_i64(h->a, json_path(json_at(json_path(pod, "spec.containers"), 0), "resources.limits"),
                 "nvidia.com/gpu", h->holds[tenant]);
    if (h->shares)
        add_shares(h, pod, h->holds[tenant]);
    if (h->on[tenant])
        json_set_str(h->a, json_get(pod, "spec"), "nodeName", str_c(h->on[tenant]));
    if (h->evicted[tenant])
        json_set_str(h->a, json_get(pod, "metadata"), "deletionTimestamp",
                     time_format_s(h->a, NOW));
    return pod;
}

void look_at_node(struct host_of *h, struct grant_state *s, const cJSON *tree)
{
    struct grant_node *node = ARENA_NEW(h->a, struct grant_node);

    grant_node_of(h->a, tree, node);
    grant_state_node(s, node);
}

void look_at_pod(struct host_of *h, struct grant_state *s, const cJSON *tree)
{
    struct grant_pod *pod = ARENA_NEW(h->a, struct grant_pod);

    if (grant_pod_of(h->a, tree, pod))
        grant_state_pod(s, pod);
}

static struct str refusal(void *ctx, struct str path, struct str part)
{
    const struct host_of *h = ctx;

    return str_has_suffix(path, str_c(h->refuses)) && str_eqc(part, h->refused_part)
               ? STR("not this one")
               : STR("");
}

void look(struct host_of *h, struct grant_state *s)
{
    struct grant_times times = {.now_s = h->now_s, .grace_s = 60, .pause_s = 300};

    grant_state_begin(s, h->a, &times);
    s->budgets = h->budgets;
    s->ctx = h;
    s->refused = h->refuses ? refusal : NULL;
    grant_state_pool(s, h->pool);
    if (h->second)
        grant_state_pool(s, h->second);
    for (int i = 0; i < TENANTS; i++)
        if (h->bindings[i])
            grant_state_binding(s, h->bindings[i]);
    for (int i = 0; i < TENANTS; i++) {
        if (h->quotas[i])
            grant_state_quota(s, h->quotas[i]);
        if (h->demands[i])
            grant_state_demand(s, h->demands[i]);
    }
    for (int i = 0; i < 2; i++)
        if (h->nodes[i])
            look_at_node(h, s, h->nodes[i]);
    for (int i = 0; i < TENANTS; i++)
        look_at_pod(h, s, pod_of(h, i));
    grant_state_settle(s);
    assert_true(!s->n_configs || !s->shares[0].overflow);
}

/* --- what the host makes of a write --- */

int64_t units_at(const cJSON *tree, const char *path)
{
    const cJSON *map = json_path(tree, path);
    int64_t n = 0;

    if (str_to_i64(json_str(json_get(map, "requests.nvidia.com/gpucores")), &n))
        return n / 100;
    (void)str_to_i64(json_str(json_get(map, "requests.nvidia.com/gpu")), &n);
    return n;
}

static void charge_shares(struct host_of *h, int tenant)
{
    int64_t gpus = h->holds[tenant];

    json_set(h->a, h->quotas[tenant], "status",
             json_object(
                 h->a, JSON("used",
                            json_object(h->a,
                                        JSON("requests.nvidia.com/gpu",
                                             arena_printf(h->a, "%lld", (long long)gpus)),
                                        JSON("requests.nvidia.com/gpumem",
                                             arena_printf(h->a, "%lld", (long long)gpus * 40960)),
                                        JSON("requests.nvidia.com/gpucores",
                                             arena_printf(h->a, "%lld", (long long)gpus * 100))))));
}

/* Its controller and its admission plug-in. */
void charge(struct host_of *h, int tenant)
{
    cJSON *q = h->quotas[tenant];

    json_set(
        h->a, q, "status",
        json_object(h->a, JSON("used", json_object(h->a,
                                                   JSON("requests.nvidia.com/gpu",
                                                        arena_printf(h->a, "%lld",
                                                                     (long long)h->holds[tenant])),
                                                   JSON("requests." SLICES, "0")))));
    if (h->shares)
        charge_shares(h, tenant);
    stamp(h, q);
}

static bool is_stale(const cJSON *tree, const struct grant_write *w)
{
    return !str_eq(json_str_at(tree, "metadata.resourceVersion"), w->version);
}

static void put(struct host_of *h, cJSON **at, const struct grant_write *w)
{
    if (is_stale(*at, w))
        return;
    *at = json_copy(h->a, w->body);
    stamp(h, *at);
}

void apply(struct host_of *h, const struct grant_write *w)
{
    if (str_has_prefix(w->path, STR(GRANT_GROUP "/gpupools/"))) {
        put(h, str_contains(w->path, STR("/a100/")) ? &h->pool : &h->second, w);
        return;
    }
    for (int i = 0; i < TENANTS; i++) {
        struct str ns = arena_printf(h->a, "/namespaces/team-%d/", i);
        bool quota = str_contains(w->path, STR("/resourcequotas/"));

        if (!str_contains(w->path, ns))
            continue;
        put(h, quota ? &h->quotas[i] : &h->bindings[i], w);
        if (quota)
            charge(h, i);
    }
}

int64_t grant_of(const struct host_of *h, int i)
{
    int64_t n = 0;

    (void)str_to_i64(json_str_at(h->bindings[i], "status.grant"), &n);
    return n;
}

int64_t slices_at(const struct host_of *h, int tenant)
{
    int64_t n = 0;

    (void)str_to_i64(
        json_str(json_get(json_path(h->quotas[tenant], "spec.hard"), "requests." SLICES)), &n);
    return n;
}

/* All that bounds shares bounds the same GPUs. */
static void check_shares(const cJSON *quota)
{
    const cJSON *hard = json_path(quota, "spec.hard");
    int64_t gpus = units_at(quota, "spec.hard"), n = -1;

    if (!quota)
        return;
    assert_true(str_to_i64(json_str(json_get(hard, "requests.nvidia.com/gpu")), &n));
    assert_int_equal(n, gpus * 100);
    assert_true(str_to_i64(json_str(json_get(hard, "requests.nvidia.com/gpumem")), &n));
    assert_int_equal(n, gpus * 40960);
}

void check_host(const struct host_of *h)
{
    int64_t hard = 0, held = 0;

    for (int i = 0; i < TENANTS; i++) {
        if (slices_at(h, i) || h->sliced || (!h->quotas[i] && !h->bindings[i]))
            continue;
        hard += units_at(h->quotas[i], "spec.hard");
        if (h->shares)
            check_shares(h->quotas[i]);
        held += h->holds[i];
        assert_true(grant_of(h, i) <= units_at(h->quotas[i], "spec.hard"));
        assert_true(h->holds[i] <= units_at(h->quotas[i], "spec.hard"));
    }
    assert_true(hard <= GPUS && held <= GPUS);
}

/* The writes of a moment as lines; each is applied. Returns how many there were. */
size_t step(struct host_of *h, struct buf *out)
{
    struct grant_state s;
    struct grant_write w;
    size_t at = 0, n = 0;

    look(h, &s);
    for (; grant_next_write(&s, &at, &w); n++) {
        const cJSON *hard = json_path(w.body, "spec.hard");

        buf_printf(out, "%s %.*s %.*s\n", w.method, STR_F(w.path),
                   STR_F(hard ? json_text(h->a, hard) : json_str_at(w.body, "status.grant")));
        if (h->refuses && str_has_suffix(w.path, str_c(h->refuses))) {
            h->refused_part = arena_cstr(h->a, w.part);
            n--;
            continue;
        }
        apply(h, &w);
        check_host(h);
    }
    grant_state_end(&s);
    return n;
}

/* The first status of the pool, which says what is in force. */
void record_pool(struct host_of *h)
{
    struct buf unused = BUF_INIT(0);

    assert_int_equal(step(h, &unused), 1);
    buf_fini(&unused);
    assert_true(json_path(h->pool, "status.inForce") != NULL);
}

struct str status_text(struct host_of *h, int tenant, const char *path)
{
    cJSON *node = json_path(h->bindings[tenant], path);

    return json_is_string(node) ? json_str(node) : node ? json_text(h->a, node) : STR("-");
}

/* Steps until nothing is left to write. */
void set_ready(struct host_of *h, int node, const char *status)
{
    json_set_str(h->a, json_at(json_path(h->nodes[node], "status.conditions"), 0), "status",
                 str_c(status));
}

void run_on(struct host_of *h, int tenant, int64_t gpus, const char *node)
{
    h->holds[tenant] = gpus;
    h->on[tenant] = node;
    charge(h, tenant);
}

void maintain(struct host_of *h, const char *text)
{
    cJSON *spec = json_get(h->pool, "spec");

    json_remove(spec, "maintenance");
    json_set(h->a, spec, "maintenance", object(h, text));
    stamp(h, h->pool);
}
