/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of the host a tenant is shown, what it may require by their names, and what is
 * reported of the nodes of its pools. The host has node-0 and node-1, and what a test adds. */
#include "sim.h"

#define POOL                                                                                       \
    "pools:\n- {name: p, nodeSelector: {sublet.dev/pool: p},\n"                                    \
    "   tolerations: [{key: sublet.dev/pool, operator: Equal, value: p, effect: NoSchedule}]}\n"   \
    "bindings:\n- {pool: p, guarantee: \"1\", overQuota: queue}\n"
#define POD(name, spec)                                                                            \
    "{'metadata':{'name':'" name "'},'spec':{" spec                                                \
    "'containers':[{'name':'c','image':'i','resources':{'limits':{'nvidia.com/gpu':'1'}}}]}}"
#define PLAIN(name)                                                                                \
    "{'metadata':{'name':'" name "'},'spec':{'automountServiceAccountToken':false,"                \
    "'containers':[{'name':'c','image':'i'}]}}"
#define BINDING(pod, node)                                                                         \
    "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'" pod "'},'target':{'kind':'Node',"   \
    "'name':'" node "'}}"
#define PIN(node)                                                                                  \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"                \
    "{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':["      \
    "'" node "']}]}]}}},"
/* No taint keeps the tenant's pods off it; its label does. */
#define OTHERS                                                                                     \
    "{\"metadata\":{\"name\":\"gpu-others\",\"labels\":{\"sublet.dev/pool\":\"others\"}}}"

static bool has_node(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    bool found = sim_get(s, a, "nodes", "", name) != NULL;

    arena_free(a);
    return found;
}

static bool nodes_are_shown(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool account = sim_get(s, a, "serviceaccounts", "default", "default") != NULL;

    arena_free(a);
    return account && has_node(s, "node-0") && has_node(s, "node-1");
}

/* The host pod of this virtual name as it was sent, or NULL. */
static const cJSON *sent(struct sim *s, struct arena *a, const char *name)
{
    json_each(pod, fake_host_list(s->host, a, "pods"))
    {
        if (str_eqc(json_str(json_get(json_path(pod, "metadata.annotations"), "sublet.dev/name")),
                    name))
            return pod;
    }
    return NULL;
}

static struct str pinned_to(const cJSON *host_pod)
{
    const cJSON *terms = json_path(host_pod, "spec.affinity.nodeAffinity."
                                             "requiredDuringSchedulingIgnoredDuringExecution."
                                             "nodeSelectorTerms");
    const cJSON *field = json_first(json_get(json_first(terms), "matchFields"));

    return json_str(json_first(json_get(field, "values")));
}

static bool runs_on(struct sim *s, const char *name, const char *node)
{
    struct arena *a = arena_new(0);
    const cJSON *host = sent(s, a, name), *pod = sim_get(s, a, "pods", "default", name);
    bool yes = str_eqc(json_str_at(host, "spec.nodeName"), node) &&
               str_eqc(json_str_at(pod, "spec.nodeName"), node) &&
               str_eqc(json_str_at(pod, "status.phase"), "Running");

    arena_free(a);
    return yes;
}

static bool a_runs(struct sim *s)
{
    return runs_on(s, "a", "node-1");
}

static bool b_runs(struct sim *s)
{
    return runs_on(s, "b", "node-0");
}

#define assert_refused(text) check_refused(s, (text), __FILE__, __LINE__)
static void check_refused(struct sim *s, const char *text, const char *file, int line)
{
    sim_writes_done(s);
    if (strcmp(s->refusal, text) != 0) {
        print_error("got  \"%s\"\nwant \"%s\"\n", s->refusal, text);
        _fail(file, line);
    }
    s->refusal[0] = 0;
}

static void test_names_of_shown_nodes_go_down(void **state)
{
    struct sim *s = sim_new(1, NULL);
    struct arena *a = arena_new(0);

    (void)state;
    fake_host_put(s->host, "nodes", OTHERS);
    sim_until(s, nodes_are_shown, "the nodes");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'a'},'spec':{'nodeName':'node-1','containers':[{'name':'c',"
               "'image':'i'}]}}");
    sim_until(s, a_runs, "the pod to run where it was asked for");
    assert_string_equal(arena_cstr(a, pinned_to(sent(s, a, "a"))), "node-1");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'b'},'spec':{" PIN("node-0") "'containers':[{'name':'c',"
                                                                 "'image':'i'}]}}");
    sim_until(s, b_runs, "the pod to run where its affinity says");
    assert_refused("");

    sim_create(s, "pods", "default",
               "{'metadata':{'name':'x'},'spec':{'nodeName':'gpu-others','containers':[{'name':"
               "'c','image':'i'}]}}");
    assert_refused(
        "pods \"x\" is forbidden: spec.nodeName: \"gpu-others\": this virtual cluster has "
        "no such node");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'x','ownerReferences':[{'apiVersion':'apps/v1','kind':"
               "'DaemonSet','name':'d','uid':'u','controller':true}]},'spec':{" PIN(
                   "gpu-others") "'containers':[{'name':'c','image':'i'}]}}");
    assert_refused("pods \"x\" is forbidden: spec.affinity.nodeAffinity: matchFields metadata.name "
                   "\"gpu-others\": this virtual cluster has no such node");
    assert_false(has_node(s, "gpu-others"));
    arena_free(a);
    sim_free(s);
}

static bool first_is_down(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 1;
}

static bool has_room(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool gone = !sim_get(s, a, "pods", "default", "first");

    arena_free(a);
    return gone;
}

/* The host has the first pod; the second waits for quota, and is the tenant's scheduler's to bind.
 */
static void test_binding_asks_the_hosts_scheduler(void **state)
{
    struct sim *s = sim_new(2, POOL);
    struct arena *a = arena_new(0);

    (void)state;
    fake_host_put(s->host, "nodes", OTHERS);
    sim_until(s, nodes_are_shown, "the nodes");
    sim_create(s, "pods", "default", POD("first", ""));
    sim_until(s, first_is_down, "the first pod");
    sim_create(s, "pods", "default", POD("a", ""));
    sim_writes_done(s);

    sim_create(s, "bindings", "default", BINDING("a", "gpu-others"));
    assert_refused(
        "pods \"a\" is forbidden: target.name: \"gpu-others\": this virtual cluster has no "
        "such node");
    sim_create(s, "bindings", "default", BINDING("a", "nowhere"));
    assert_refused("pods \"a\" is forbidden: target.name: \"nowhere\": this virtual cluster has no "
                   "such node");
    assert_false(has_node(s, "gpu-others"));
    sim_create(s, "bindings", "default", BINDING("a", "node-1"));
    assert_refused("");
    assert_null(sent(s, a, "a"));

    sim_delete(s, "pods", "default", "first", 0);
    sim_until(s, has_room, "the first pod to go");
    sim_until(s, a_runs, "the bound pod to run on its node");
    assert_string_equal(arena_cstr(a, pinned_to(sent(s, a, "a"))), "node-1");
    assert_false(has_node(s, "gpu-others"));
    arena_free(a);
    sim_free(s);
}

static bool a_is_tried(struct sim *s)
{
    struct str record;

    return store_record_get(s->store, RECORD_MAPPING, STR("pods/default/a"), &record) &&
           str_contains(record, STR(" t "));
}

/* Two schedulers must not place one pod. */
static void test_binding_comes_too_late(void **state)
{
    struct sim *s = sim_new(3, NULL);

    (void)state;
    sim_until(s, nodes_are_shown, "the nodes");
    sim_create(s, "pods", "default", PLAIN("first"));
    sim_until(s, first_is_down, "the first pod");
    fake_host_faults(s->host)->refuse = 1000; /* whether it arrived is not known */
    sim_create(s, "pods", "default", PLAIN("a"));
    sim_until(s, a_is_tried, "the pod to be sent");
    sim_create(s, "bindings", "default", BINDING("a", "node-1"));
    assert_refused("Operation cannot be fulfilled on pods/binding \"a\": pod a is with the host "
                   "cluster's scheduler already");
    fake_host_faults(s->host)->refuse = 0;
    sim_free(s);
}

static bool others_are_shown(struct sim *s)
{
    return has_node(s, "gpu-others");
}

static bool others_are_hidden(struct sim *s)
{
    return !has_node(s, "gpu-others");
}

/* What the host's scheduler decided is shown, for as long as the tenant has a pod there. */
static void test_nodes_in_use_are_shown(void **state)
{
    struct sim *s = sim_new(4, NULL);

    (void)state;
    fake_host_put(s->host, "nodes", OTHERS);
    sim_until(s, nodes_are_shown, "the nodes");
    assert_false(has_node(s, "gpu-others"));
    fake_host_place(s->host, "gpu-others");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    sim_until(s, others_are_shown, "the node that is in use");
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, others_are_hidden, "the node to be hidden again");
    sim_free(s);
}

static void look_at_machine(const cJSON *node, const char *arch)
{
    const cJSON *labels = json_path(node, "metadata.labels"),
                *info = json_path(node, "status.nodeInfo");

    assert_true(str_eqc(json_str(json_get(labels, "kubernetes.io/os")), "linux"));
    assert_true(str_eqc(json_str(json_get(info, "operatingSystem")), "linux"));
    assert_true(str_eqc(json_str(json_get(labels, "kubernetes.io/arch")), arch));
    assert_true(str_eqc(json_str(json_get(info, "architecture")), arch));
    assert_false(json_str(json_get(info, "kubeletVersion")).n);
}

static bool is_of_another_machine(struct sim *s)
{
    struct arena *a = arena_new(0);
    cJSON *node = sim_get(s, a, "nodes", "", "gpu-others");
    bool is = str_eqc(json_str_at(node, "status.nodeInfo.architecture"), "s390x");

    if (is)
        look_at_machine(node, "s390x");
    arena_free(a);
    return is;
}

static bool daemon_runs(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 2;
}

/* DaemonSets choose nodes by the labels of their machines. */
static void test_nodes_that_cannot_be_read_have_a_machine(void **state)
{
#if defined(__x86_64__)
    static const char own[] = "amd64";
#else
    static const char own[] = "arm64";
#endif
    struct sim *s = sim_new(10, NULL);

    (void)state;
    fake_host_deny(s->host, "list nodes", true);
    fake_host_deny(s->host, "watch nodes", true);
    fake_host_place(s->host, "gpu-others");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    sim_until(s, others_are_shown, "the node that is in use");
    look_at_machine(sim_get(s, s->arena, "nodes", "", "gpu-others"), own);
    sim_create(s, "daemonsets.apps", "default",
               "{'apiVersion':'apps/v1','kind':'DaemonSet','metadata':{'name':'d'},'spec':{"
               "'selector':{'matchLabels':{'a':'d'}},'template':{'metadata':{'labels':{'a':'d'}},"
               "'spec':{'nodeSelector':{'kubernetes.io/os':'linux'},'containers':[{'name':'c',"
               "'image':'i'}]}}}}");
    sim_until(s, daemon_runs, "the pod of the DaemonSet");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'b'},'spec':{'nodeSelector':{'kubernetes.io/arch':'s390x'},"
               "'containers':[{'name':'c','image':'i'}]}}");
    sim_until(s, is_of_another_machine, "what the node selector says");
    sim_free(s);
}

/* ---- the nodes of pools ---- */

static bool reported(struct sim *s, const char *reason, const char *message)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", ""))
    {
        found |= str_eqc(json_str_at(event, "reason"), reason) &&
                 str_eqc(json_str_at(event, "message"), message);
    }
    arena_free(a);
    return found;
}

static bool no_nodes_reported(struct sim *s)
{
    return reported(s, "PoolWithoutNodes", "no node of the host has the labels of pool \"p\"");
}

static bool untainted_reported(struct sim *s)
{
    return reported(s, "PoolNodesUntainted", "1 of 2 nodes of pool \"p\" lack its taint");
}

#define TAINTED(name, taint)                                                                       \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"sublet.dev/pool\":\"p\"}},"                \
    "\"spec\":{\"taints\":[{\"key\":\"sublet.dev/pool\",\"value\":\"" taint                        \
    "\",\"effect\":\"NoSchedule\"}]}}"

static void test_pools_are_held_against_the_nodes(void **state)
{
    struct sim *s = sim_new(5, POOL);

    (void)state;
    sim_until(s, no_nodes_reported, "the pool without nodes");
    fake_host_put(s->host, "nodes", TAINTED("gpu-1", "p"));
    fake_host_put(s->host, "nodes", TAINTED("gpu-2", "other"));
    sim_until(s, untainted_reported, "the node without the pool's taint");
    sim_free(s);
}

static bool pool_node_is_shown(struct sim *s)
{
    return has_node(s, "gpu-1");
}

/* ---- agents that run on every node ---- */

static size_t count_pods(struct sim *s, const char *node)
{
    struct arena *a = arena_new(0);
    size_t n = 0;

    json_each(pod, sim_list(s, a, "pods", "default"))
    {
        n += str_contains(json_text(a, json_path(pod, "spec.affinity")), str_c(node));
    }
    arena_free(a);
    return n;
}

static bool agents_run(struct sim *s)
{
    return count_pods(s, "node-0") == 1 && count_pods(s, "node-1") == 1;
}

/* The wildcard toleration of an agent has no effect, so a node of the pool is none of its nodes: a
 * pod for it would wait for ever. */
static void test_agents_keep_off_pools(void **state)
{
    struct sim *s = sim_new(6, POOL);

    (void)state;
    fake_host_put(s->host, "nodes", TAINTED("gpu-1", "p"));
    sim_until(s, nodes_are_shown, "the nodes");
    sim_until(s, pool_node_is_shown, "the node of the pool");
    sim_create(s, "daemonsets.apps", "default",
               "{'metadata':{'name':'agent'},'spec':{'selector':{'matchLabels':{'a':'b'}},"
               "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'tolerations':[{'operator':"
               "'Exists'}],'containers':[{'name':'c','image':'i'}]}}}}");
    sim_until(s, agents_run, "a pod on each open node");
    sim_writes_done(s);
    assert_int_equal(count_pods(s, "gpu-1"), 0);
    sim_free(s);
}

/* ---- nodes with devices and no label ---- */

#define NPU(name)                                                                                  \
    "{\"metadata\":{\"name\":\"" name "\"},\"status\":{\"capacity\":{\"x.example/npu\":\"8\"}}}"

/* The nodes that the host pod must avoid by name: "a b ". */
static struct str avoids(struct sim *s, struct arena *a, const char *name)
{
    const cJSON *terms =
        json_path(sent(s, a, name), "spec.affinity.nodeAffinity."
                                    "requiredDuringSchedulingIgnoredDuringExecution."
                                    "nodeSelectorTerms");
    struct str ret = STR("");

    json_each(field, json_get(json_first(terms), "matchFields"))
    {
        assert_true(str_eqc(json_str(json_get(field, "operator")), "NotIn"));
        ret = arena_printf(a, "%.*s%.*s ", STR_F(ret),
                           STR_F(json_str(json_first(json_get(field, "values")))));
    }
    return ret;
}

static bool noted_is_down(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = sent(s, a, s->note) != NULL;

    arena_free(a);
    return is;
}

#define assert_avoids(name, nodes) check_avoids(s, (name), (nodes), __FILE__, __LINE__)
static void check_avoids(struct sim *s, const char *name, const char *nodes, const char *file,
                         int line)
{
    struct arena *a = arena_new(0);
    struct str got;

    snprintf(s->note, sizeof(s->note), "%s", name);
    sim_until(s, noted_is_down, "the pod to be sent");
    got = avoids(s, a, name);
    if (!str_eqc(got, nodes)) {
        print_error("got  \"%.*s\"\nwant \"%s\"\n", STR_F(got), nodes);
        _fail(file, line);
    }
    arena_free(a);
}

static bool a_waits(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool says = false;

    json_each(event, sim_list(s, a, "events", "default")) says |=
        str_eqc(json_str_at(event, "reason"), "SyncError") &&
        str_has_prefix(json_str_at(event, "message"),
                       STR("too many nodes of the host cluster have devices"));
    arena_free(a);
    return says;
}

/* A pod of a tenant without pools keeps off them, from the first one after a start on, and while
 * they come and go. */
static void test_pods_without_devices_avoid_nodes_that_have_some(void **state)
{
    struct sim *s = sim_new(21, NULL);

    (void)state;
    fake_host_put(s->host, "nodes", NPU("npu-2"));
    fake_host_put(s->host, "nodes", NPU("npu-1"));
    sim_create(s, "pods", "default", PLAIN("a"));
    assert_avoids("a", "npu-1 npu-2 ");
    assert_false(has_node(s, "npu-1"));
    fake_host_remove(s->host, "nodes", "npu-1");
    fake_host_patch(s->host, "nodes", "npu-2",
                    "{\"metadata\":{\"labels\":{\"sublet.dev/pool\":\"npus\"}}}");
    fake_host_put(s->host, "nodes", NPU("npu-3"));
    sim_run_ms(s, 2000);
    sim_create(s, "pods", "default", PLAIN("b"));
    assert_avoids("b", "npu-3 ");
    sim_free(s);
}

static void add_too_many_nodes(struct sim *s)
{
    char node[160];

    for (unsigned i = 0; i < 129; i++) {
        snprintf(node, sizeof(node), NPU("npu-%u"), i);
        fake_host_put(s->host, "nodes", node);
    }
}

/* More than a pod can name: none goes down unprotected. */
static void test_too_many_nodes_to_avoid_stop_pods_without_devices(void **state)
{
    struct sim *s = sim_new(22, NULL);

    (void)state;
    add_too_many_nodes(s);
    sim_create(s, "pods", "default", PLAIN("a"));
    sim_until(s, a_waits, "an Event that says why it waits");
    assert_int_equal(fake_host_count(s->host, "pods"), 0);
    fake_host_remove(s->host, "nodes", "npu-0");
    sim_until(s, first_is_down, "the pod");
    sim_free(s);
}

static bool label_is_down(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = str_eqc(json_str_at(sent(s, a, "a"), "metadata.labels.x"), "y");

    arena_free(a);
    return is;
}

/* A pod that exists is where it is: its updates go down. */
static void test_too_many_nodes_to_avoid_do_not_stop_updates(void **state)
{
    struct sim *s = sim_new(23, "policy: {labels: {allow: [x]}}\n");

    (void)state;
    fake_host_place(s->host, "node-1");
    sim_create(s, "pods", "default", PLAIN("a"));
    sim_until(s, a_runs, "the pod to run");
    add_too_many_nodes(s);
    sim_run_ms(s, 2000);
    sim_patch(s, "pods", "default", "a", "{'metadata':{'labels':{'x':'y'}}}");
    sim_until(s, label_is_down, "the label on the host");
    assert_false(a_waits(s));
    sim_free(s);
}

/* ---- one node for each pool ---- */

#define PER_POOL "sync: {nodes: perPool}\n"
#define MACHINE(name)                                                                              \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"sublet.dev/pool\":\"p\"}},"                \
    "\"spec\":{\"taints\":[{\"key\":\"sublet.dev/pool\",\"value\":\"p\",\"effect\":"               \
    "\"NoSchedule\"}]},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"     \
    "\"capacity\":{\"cpu\":\"8\",\"nvidia.com/gpu\":\"8\"},"                                       \
    "\"allocatable\":{\"cpu\":\"8\",\"nvidia.com/gpu\":\"8\"}}}"
#define READY                                                                                      \
    "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"allocatable\":{"     \
    "\"cpu\":"                                                                                     \
    "\"4\"}}}"

static bool allocates(struct sim *s, const char *name, const char *resource, const char *want)
{
    struct arena *a = arena_new(0);
    const cJSON *node = sim_get(s, a, "nodes", "", name);
    bool yes = str_eqc(
        json_str(json_get_str(json_path(node, "status.allocatable"), str_c(resource))), want);

    arena_free(a);
    return yes;
}

static bool pool_is_shown(struct sim *s)
{
    return allocates(s, "p", "nvidia.com/gpu", "1") && allocates(s, "p", "cpu", "16") &&
           allocates(s, "no-pool", "cpu", "4");
}

static bool a_runs_in_the_pool(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    bool yes = str_eqc(json_str_at(sent(s, a, "a"), "spec.nodeName"), "gpu-1") &&
               str_eqc(json_str_at(pod, "spec.nodeName"), "p") &&
               str_eqc(json_str_at(pod, "status.phase"), "Running") &&
               !json_path(pod, "status.hostIP");

    arena_free(a);
    return yes;
}

static bool quota_is_seen(struct sim *s)
{
    return allocates(s, "p", "cpu", "2500m") && allocates(s, "no-pool", "cpu", "2500m");
}

static bool pool_is_cordoned(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *node = sim_get(s, a, "nodes", "", "p");
    bool yes = json_true(json_path(node, "spec.unschedulable"));

    arena_free(a);
    return yes && allocates(s, "p", "nvidia.com/gpu", "1") && allocates(s, "p", "cpu", "0");
}

static bool has_dates(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    const cJSON *node = sim_get(s, a, "nodes", "", name);
    const cJSON *ready = json_first(json_path(node, "status.conditions"));
    bool yes = json_str(json_get(ready, "lastHeartbeatTime")).n &&
               json_str(json_get(ready, "lastTransitionTime")).n;

    arena_free(a);
    return yes;
}

/* The limit is 1 of 16 GPUs; CPUs are those of the pool's machines, until a quota says less. */
static void test_one_node_stands_for_a_pool(void **state)
{
    struct sim *s = sim_new(7, PER_POOL POOL);

    (void)state;
    fake_host_patch(s->host, "nodes", "node-0", READY);
    fake_host_put(s->host, "nodes", MACHINE("gpu-1"));
    fake_host_put(s->host, "nodes", MACHINE("gpu-2"));
    fake_host_place(s->host, "gpu-1");
    sim_until(s, pool_is_shown, "the nodes of the pools");
    assert_true(has_dates(s, "p"));
    sim_create(s, "pods", "default", POD("a", ""));
    sim_until(s, a_runs_in_the_pool, "the pod to run on its pool's node");
    assert_false(has_node(s, "gpu-1") || has_node(s, "gpu-2") || has_node(s, "node-0"));
    fake_host_put(s->host, "resourcequotas",
                  "{\"metadata\":{\"name\":\"team\"},\"status\":{\"hard\":{\"requests.cpu\":\"3\"},"
                  "\"used\":{\"requests.cpu\":\"500m\"}}}");
    sim_until(s, quota_is_seen, "the quota to bound both nodes");
    fake_host_patch(s->host, "nodes", "gpu-1", "{\"spec\":{\"unschedulable\":true}}");
    fake_host_patch(s->host, "nodes", "gpu-2", "{\"spec\":{\"unschedulable\":true}}");
    sim_until(s, pool_is_cordoned, "the cordoned machines to have no room");
    sim_free(s);
}

static bool agent_runs(struct sim *s)
{
    return count_pods(s, "no-pool") == 1;
}

/* A pod that could not run there is refused, or is none of the node's pods. */
static void test_the_node_of_a_pool_takes_its_pods_only(void **state)
{
    struct sim *s = sim_new(8, PER_POOL POOL);

    (void)state;
    fake_host_patch(s->host, "nodes", "node-0", READY);
    fake_host_put(s->host, "nodes", MACHINE("gpu-1"));
    fake_host_put(s->host, "nodes", MACHINE("gpu-2"));
    sim_until(s, pool_is_shown, "the nodes of the pools");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'x'},'spec':{'nodeName':'p','containers':[{'name':'c','image':"
               "'i'}]}}");
    assert_refused("pods \"x\" is forbidden: spec.nodeName: \"p\": this pod runs on node "
                   "\"no-pool\": the devices it requests decide its pool");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'x'},'spec':{'nodeName':'gpu-1','containers':[{'name':'c',"
               "'image':'i'}]}}");
    assert_refused("pods \"x\" is forbidden: spec.nodeName: \"gpu-1\": this virtual cluster has no "
                   "such node");
    sim_create(s, "daemonsets.apps", "default",
               "{'metadata':{'name':'agent'},'spec':{'selector':{'matchLabels':{'a':'b'}},"
               "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'tolerations':[{'operator':"
               "'Exists'}],'containers':[{'name':'c','image':'i'}]}}}}");
    sim_until(s, agent_runs, "a pod on the node of pods without devices");
    sim_writes_done(s);
    assert_int_equal(count_pods(s, "\"p\""), 0);
    sim_free(s);
}

static bool a_was_renamed(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    bool yes =
        str_eqc(json_str_at(pod, "spec.nodeName"), s->config.nodes_per_pool ? "no-pool" : "node-1");

    s->flag |= !str_eqc(json_str_at(pod, "status.phase"), "Running");
    arena_free(a);
    return yes && has_node(s, "node-1") != s->config.nodes_per_pool &&
           has_node(s, "no-pool") == s->config.nodes_per_pool;
}

static void restart_as(struct sim *s, bool per_pool)
{
    sim_close(s);
    s->config.nodes_per_pool = per_pool;
    s->flag = false;
    sim_open(s);
    sim_until(s, a_was_renamed, "the pod to be on the other node");
    assert_false(s->flag); /* it ran all the time */
}

/* Pods run on while the option changes, and no machine is left on show. */
static void test_nodes_are_exchanged_under_running_pods(void **state)
{
    struct sim *s = sim_new(9, NULL);

    (void)state;
    sim_until(s, nodes_are_shown, "the nodes");
    fake_host_place(s->host, "node-1");
    sim_create(s, "pods", "default", PLAIN("a"));
    sim_until(s, a_runs, "the pod to run");
    restart_as(s, true);
    restart_as(s, false);
    sim_free(s);
}

static bool bare_is_shown(struct sim *s)
{
    return has_node(s, "bare");
}

static bool bare_has_processors(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool has = json_get(json_path(sim_get(s, a, "nodes", "", "bare"), "status.allocatable"), "cpu");

    arena_free(a);
    return has;
}

static void test_a_node_without_labels_changes(void **state)
{
    struct sim *s = sim_new(11, NULL);

    (void)state;
    fake_host_put(s->host, "nodes", "{\"metadata\":{\"name\":\"bare\"},\"spec\":{}}");
    sim_until(s, bare_is_shown, "the node");
    fake_host_patch(s->host, "nodes", "bare", "{\"status\":{\"allocatable\":{\"cpu\":\"8\"}}}");
    sim_until(s, bare_has_processors, "what is allocatable by now");
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_shown_nodes_go_down),
        cmocka_unit_test(test_binding_asks_the_hosts_scheduler),
        cmocka_unit_test(test_binding_comes_too_late),
        cmocka_unit_test(test_nodes_in_use_are_shown),
        cmocka_unit_test(test_nodes_that_cannot_be_read_have_a_machine),
        cmocka_unit_test(test_pools_are_held_against_the_nodes),
        cmocka_unit_test(test_agents_keep_off_pools),
        cmocka_unit_test(test_pods_without_devices_avoid_nodes_that_have_some),
        cmocka_unit_test(test_too_many_nodes_to_avoid_stop_pods_without_devices),
        cmocka_unit_test(test_too_many_nodes_to_avoid_do_not_stop_updates),
        cmocka_unit_test(test_one_node_stands_for_a_pool),
        cmocka_unit_test(test_the_node_of_a_pool_takes_its_pods_only),
        cmocka_unit_test(test_nodes_are_exchanged_under_running_pods),
        cmocka_unit_test(test_a_node_without_labels_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
