/* SPDX-License-Identifier: Apache-2.0 */
/* What `sublet fleet` grants, followed without a restart: GPUBindings of the host namespace come,
 * change and leave, while the host, its watches or this process are away; and what is charged stays
 * exact. */
#include "worlds.h"

#include "engine.h"

#define FOLLOW "fleet: {bindings: true}\n"
#define SPEC(more)                                                                                 \
    "\"spec\":{\"pool\":\"p\",\"guarantee\":\"4\",\"burst\":\"4\",\"default\":true" more "}"
#define STATUS(grant)                                                                              \
    "\"status\":{\"grant\":\"" grant "\",\"pool\":{\"name\":\"p\",\"mode\":\"exclusive\","         \
    "\"nodeSelector\":{\"pool\":\"p\"},\"resources\":{\"nvidia.com/gpu\":{\"gpuEq\":\"1\"}}}}"
#define BINDING(name, spec, status)                                                                \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"h\"}," spec "," status "}"
#define QUEUED ",\"overQuota\":\"queue\""
#define STRICT QUEUED ",\"queueOrder\":\"strict\""

static void grant(struct sim *s, const char *gpus)
{
    char text[128];

    snprintf(text, sizeof(text), "{\"status\":{\"grant\":\"%s\"}}", gpus);
    fake_host_patch(s->host, "gpubindings", "b", text);
}

static struct rational limit_of(struct sim *s, const char *pool)
{
    const struct config_binding *b = config_binding_of(s->syncer->config, str_c(pool));

    return b ? b->limit : (struct rational){-1, 1};
}

/* Until the limit of pool p is that of the note; -1: it is not bound. */
static bool has_limit(struct sim *s)
{
    int64_t n;

    return str_to_i64(str_c(s->note), &n) && limit_of(s, "p").num == n;
}

static void until_limit(struct sim *s, const char *gpus)
{
    snprintf(s->note, sizeof(s->note), "%s", gpus);
    sim_until(s, has_limit, "the limit");
}

/* The answer to the create of a pod; empty: it was created. */
static const char *refusal(struct sim *s, const char *name, const char *container)
{
    s->refusal[0] = 0;
    sim_create_pod(s, name, container, "");
    sim_writes_done(s);
    return s->refusal;
}

static int64_t used(struct sim *s)
{
    struct config_pool pool = {.name = STR("p")};
    struct rational sum = sync_ledger_used(s->syncer->ledger, &pool);

    assert_int_equal(sum.den, 1);
    return sum.num;
}

static struct sim *with_grant(uint64_t seed, const char *config, const char *binding,
                              const char *gpus)
{
    struct sim *s = sim_new_ready(seed, config);

    fake_host_put(s->host, "gpubindings", binding);
    until_limit(s, gpus);
    return s;
}

#define B(more, gpus) BINDING("b", SPEC(more), STATUS(gpus))

static void test_a_raised_grant_lets_more_run(void **state)
{
    struct sim *s = sim_new_ready(51, FOLLOW);

    (void)state;
    assert_non_null(strstr(refusal(s, "a", GPU(2)),
                           "nvidia.com/gpu is not offered by any pool of this virtual cluster"));
    fake_host_put(s->host, "gpubindings", B("", "2"));
    until_limit(s, "2");
    assert_string_equal(refusal(s, "a", GPU(2)), "");
    sim_until_runs(s, "a");
    assert_non_null(strstr(refusal(s, "b", GPU(1)),
                           "pods \"b\" is forbidden: exceeded quota: gpu/p, requested: gpu=1, "
                           "used: gpu=2, limited: gpu=2"));
    grant(s, "3");
    until_limit(s, "3");
    assert_string_equal(refusal(s, "b", GPU(1)), "");
    sim_until_runs(s, "b");
    assert_int_equal(used(s), 3);
    sim_free(s);
}

static bool waits(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "b");
    const cJSON *c = condition_find(json_path(pod, "status.conditions"), STR("PodScheduled"));
    bool ret = str_contains(json_str(json_get(c, "message")), str_c(s->note));

    arena_free(a);
    return ret;
}

/* What waits for a grant goes on at once; what no grant can ever hold is refused. */
static void test_a_raised_grant_ends_the_wait(void **state)
{
    struct sim *s = with_grant(52, FOLLOW, B(QUEUED, "2"), "2");

    (void)state;
    assert_non_null(strstr(refusal(s, "huge", GPU(9)), "exceeded quota: gpu/p, requested: gpu=9"));
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    assert_string_equal(refusal(s, "b", GPU(3)), "");
    snprintf(s->note, sizeof(s->note), "position 1, ahead 0 GPU; granted now: 2");
    sim_until(s, waits, s->note);
    grant(s, "5");
    sim_until_runs(s, "b");
    assert_int_equal(used(s), 5);
    sim_free(s);
}

/* A workload that was refused is tried again by the grant, not by its growing delay. */
static void test_a_raised_grant_wakes_what_was_refused(void **state)
{
    struct sim *s = with_grant(53, FOLLOW, B("", "1"), "1");
    int64_t before;

    (void)state;
    sim_create(s, "replicasets.apps", "default",
               "{'metadata':{'name':'set'},'spec':{'replicas':2,'selector':{'matchLabels':{'app':"
               "'set'}},'template':{'metadata':{'labels':{'app':'set'}},'spec':"
               "{'automountServiceAccountToken':false,'containers':[{'name':'c','image':'i'" GPU(
                   1) "}]}}}}");
    sim_run_ms(s, 90 * 1000);
    assert_int_equal(used(s), 1);
    before = clock_mono_ms(&s->clock);
    grant(s, "2");
    sim_run_ms(s, 5000);
    assert_int_equal(used(s), 2);
    assert_true(clock_mono_ms(&s->clock) - before < 10 * 1000);
    sim_free(s);
}

#define TEMPLATE(name, gpus)                                                                       \
    "'template':{'metadata':{'labels':{'app':'" name "'}},'spec':{'automountServiceAccountToken'"  \
    ":false,'containers':[{'name':'c','image':'i'" GPU(gpus) "}]"
#define SET(name, gpus)                                                                            \
    "{'metadata':{'name':'" name "'},'spec':{'replicas':1,'selector':{'matchLabels':{'app':'" name \
    "'}}," TEMPLATE(name, gpus) "}}}}"
#define JOB(name, gpus)                                                                            \
    "{'metadata':{'name':'" name "'},'spec':{" TEMPLATE(name, gpus) ",'restartPolicy':'Never'}}}}"

/* Its next attempts by itself are a minute away. */
static void after_90_s(struct sim *s, const char *binding, int64_t expected)
{
    sim_run_ms(s, 90 * 1000);
    fake_host_put(s->host, "gpubindings", binding);
    sim_run_ms(s, 5000);
    assert_int_equal(used(s), expected);
}

/* It was refused while no pool was bound. */
static void test_a_new_binding_wakes_what_was_refused(void **state)
{
    struct sim *s = sim_new_ready(65, FOLLOW);

    (void)state;
    sim_create(s, "replicasets.apps", "default", SET("set", 1));
    sim_create(s, "statefulsets.apps", "default", SET("stateful", 1));
    sim_create(s, "jobs.batch", "default", JOB("job", 1));
    after_90_s(s, B("", "8"), 3);
    sim_free(s);
}

/* More than are tried at once: all within seconds, but those of a pool that is not bound. */
static void test_a_new_binding_wakes_many_in_steps(void **state)
{
    struct sim *s = sim_new_ready(77, FOLLOW);
    char name[16];

    (void)state;
    for (unsigned i = 0; i < 80; i++) {
        snprintf(name, sizeof(name), "set-%u", i);
        sim_create(s, "replicasets.apps", "default",
                   arena_printf(s->arena,
                                "{'metadata':{'name':'%s'},'spec':{'replicas':1,'selector':"
                                "{'matchLabels':{'app':'a'}},'template':{'metadata':{'labels':{"
                                "'app':'a'%s}},'spec':{'automountServiceAccountToken':false,"
                                "'containers':[{'name':'c','image':'i'" GPU(1) "}]}}}}",
                                name, i % 8 == 7 ? ",'sublet.dev/gpu-pool':'other'" : "")
                       .p);
    }
    after_90_s(s,
               BINDING("b",
                       "\"spec\":{\"pool\":\"p\",\"guarantee\":\"4\",\"burst\":\"96\","
                       "\"default\":true}",
                       STATUS("100")),
               70);
    sim_free(s);
}

/* What a workload requests exceeded all that its binding could grant then, or a cap of the pool. */
static void test_a_changed_binding_wakes_what_was_refused(void **state)
{
    struct sim *s = with_grant(66, FOLLOW, B("", "8"), "8");

    (void)state;
    sim_create(s, "replicasets.apps", "default", SET("large", 9));
    after_90_s(s,
               BINDING("b",
                       "\"spec\":{\"pool\":\"p\",\"guarantee\":\"4\",\"burst\":\"8\",\"default\":"
                       "true}",
                       STATUS("12")),
               9);
    sim_free(s);
}

static void put_node(struct sim *s)
{
    fake_host_put(s->host, "nodes",
                  "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"pool\":\"p\",\"kubernetes.io/"
                  "hostname\":\"n1\"}},"
                  "\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"8\"},\"allocatable\":"
                  "{\"nvidia.com/gpu\":\"8\"}}}");
}

/* Does the virtual node offer as many GPUs as the note has? */
static bool node_has(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *node = sim_get(s, a, "nodes", "", "n1");
    bool ret =
        node && str_eqc(json_str(json_get(json_path(node, "status.allocatable"), "nvidia.com/gpu")),
                        s->note);

    arena_free(a);
    return ret;
}

static void until_node_has(struct sim *s, const char *gpus)
{
    snprintf(s->note, sizeof(s->note), "%s", gpus);
    sim_until(s, node_has, "the node");
}

static void test_nodes_follow_the_grant(void **state)
{
    struct sim *s = sim_new_ready(54, FOLLOW);

    (void)state;
    put_node(s);
    fake_host_put(s->host, "gpubindings", B("", "2"));
    until_node_has(s, "2");
    grant(s, "6");
    until_node_has(s, "6");
    grant(s, "1");
    until_node_has(s, "1");
    sim_free(s);
}

/* What runs stays, and its charge; nothing new starts before there is room. */
static void test_a_lowered_grant_refuses_what_is_new(void **state)
{
    struct sim *s = with_grant(55, FOLLOW, B("", "4"), "4");

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    sim_create_pod(s, "b", GPU(2), "");
    sim_until_runs(s, "a");
    sim_until_runs(s, "b");
    grant(s, "3");
    until_limit(s, "3");
    assert_non_null(strstr(refusal(s, "c", GPU(1)),
                           "exceeded quota: gpu/p, requested: gpu=1, used: gpu=4, limited: gpu=3"));
    sim_run_ms(s, 30 * 1000);
    assert_int_equal(fake_host_count(s->host, "pods"), 2);
    assert_int_equal(used(s), 4);
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pod_is_gone, "pod a");
    sim_run_ms(s, 3000);
    assert_string_equal(refusal(s, "c", GPU(1)), "");
    sim_until_runs(s, "c");
    assert_int_equal(used(s), 3);
    sim_free(s);
}

/* Its pool is unknown no sooner than its last pod has left; the charge is no one's afterwards. */
static void test_what_runs_outlives_its_binding(void **state)
{
    struct sim *s = with_grant(56, FOLLOW, B("", "4"), "4");

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    fake_host_remove(s->host, "gpubindings", "b");
    until_limit(s, "0");
    assert_non_null(strstr(refusal(s, "c", GPU(1)), "is not offered by any pool"));
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 10 * 1000);
    sim_until_runs(s, "a");
    assert_int_equal(used(s), 2);
    assert_int_equal(limit_of(s, "p").num, 0);
    sim_patch(s, "pods", "default", "a", "{'metadata':{'labels':{'x':'y'}}}");
    sim_writes_done(s);
    sim_until(s, sim_worlds_agree, "both worlds to agree");
    sim_delete(s, "pods", "default", "a", 0);
    until_limit(s, "-1");
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 0);
    assert_int_equal(sim_records(s, RECORD_META, "gpu-binding/"), 0);
    fake_host_put(s->host, "gpubindings", B("", "4"));
    until_limit(s, "4");
    assert_string_equal(refusal(s, "d", GPU(4)), "");
    sim_until_runs(s, "d");
    sim_free(s);
}

/* Neither Ready nor with a pool: as if it were not bound. */
static void test_one_that_is_not_ready_grants_nothing(void **state)
{
    struct sim *s = with_grant(57, FOLLOW, B("", "4"), "4");

    (void)state;
    sim_create_pod(s, "a", GPU(1), "");
    sim_until_runs(s, "a");
    fake_host_patch(s->host, "gpubindings", "b",
                    "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
                    "\"reason\":\"Overcommitted\"}]}}");
    until_limit(s, "0");
    assert_non_null(strstr(refusal(s, "c", GPU(1)), "is not offered by any pool"));
    assert_int_equal(used(s), 1);
    fake_host_patch(s->host, "gpubindings", "b",
                    "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    until_limit(s, "4");
    assert_string_equal(refusal(s, "c", GPU(1)), "");
    sim_until_runs(s, "a");
    sim_free(s);
}

/* The last grants hold while the host is away, across a restart, and are neither none nor more. */
static void test_the_last_grants_hold_while_the_host_is_away(void **state)
{
    struct sim *s = with_grant(58, FOLLOW, B("", "2"), "2");

    (void)state;
    sim_create_pod(s, "a", GPU(1), "");
    sim_until_runs(s, "a");
    fake_host_faults(s->host)->down = true;
    sim_close(s);
    sim_open(s);
    assert_int_equal(limit_of(s, "p").num, 2);
    assert_string_equal(refusal(s, "b", GPU(1)), "");
    assert_non_null(strstr(refusal(s, "c", GPU(1)),
                           "exceeded quota: gpu/p, requested: gpu=1, used: gpu=2, limited: gpu=2"));
    grant(s, "3"); /* in the meantime */
    sim_run_ms(s, 20 * 1000);
    assert_int_equal(limit_of(s, "p").num, 2);
    fake_host_faults(s->host)->down = false;
    until_limit(s, "3");
    sim_until_runs(s, "b");
    assert_string_equal(refusal(s, "c", GPU(1)), "");
    sim_until_runs(s, "c");
    sim_free(s);
}

/* A list that is refused, or a kind that is not served, ends nothing. */
static void test_what_cannot_be_read_ends_nothing(void **state)
{
    struct sim *s = with_grant(59, FOLLOW, B("", "2"), "2");

    (void)state;
    fake_host_faults(s->host)->unreadable = "gpubindings";
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 30 * 1000);
    assert_int_equal(limit_of(s, "p").num, 2);
    assert_string_equal(refusal(s, "a", GPU(2)), "");
    sim_until_runs(s, "a");
    sim_free(s);
}

static bool is_noted(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "")) found |=
        str_eqc(json_str_at(event, "reason"), s->note);
    arena_free(a);
    return found;
}

/* One that cannot be read changes nothing of its own or of others, and is reported. */
static void test_a_bad_one_changes_nothing(void **state)
{
    struct sim *s = with_grant(60, FOLLOW, B("", "2"), "2");

    (void)state;
    fake_host_patch(s->host, "gpubindings", "b",
                    "{\"status\":{\"grant\":\"8\",\"pool\":{\"mode\":\"fast\"}}}");
    snprintf(s->note, sizeof(s->note), "InvalidGPUBinding");
    sim_until(s, is_noted, s->note);
    assert_int_equal(limit_of(s, "p").num, 2);
    fake_host_put(s->host, "gpubindings",
                  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"pool\":\"q\",\"guarantee\":1},"
                  "\"status\":{\"grant\":\"1\",\"pool\":{\"name\":\"q\",\"nodeSelector\":{\"pool\":"
                  "\"q\"},\"resources\":{\"x.example/npu\":{\"gpuEq\":1}}}}}");
    sim_run_ms(s, 5000);
    assert_int_equal(limit_of(s, "q").num, 1);
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 5000);
    assert_int_equal(limit_of(s, "p").num, 2);
    fake_host_patch(s->host, "gpubindings", "b",
                    "{\"status\":{\"pool\":{\"mode\":\"exclusive\"}}}");
    until_limit(s, "8");
    sim_free(s);
}

/* The pool of the file stays the file's. */
static void test_the_file_keeps_its_pools(void **state)
{
    struct sim *s = sim_new_ready(61, FOLLOW POOLS);

    (void)state;
    fake_host_put(s->host, "gpubindings", B("", "1"));
    snprintf(s->note, sizeof(s->note), "InvalidGPUBinding");
    sim_until(s, is_noted, s->note);
    assert_int_equal(limit_of(s, "p").num, 4);
    assert_string_equal(refusal(s, "a", GPU(4)), "");
    sim_until_runs(s, "a");
    sim_free(s);
}

#define OTHER_POOL(more)                                                                           \
    "{\"metadata\":{\"name\":\"b\",\"namespace\":\"h\"},\"spec\":{\"pool\":\"q\",\"guarantee\":"   \
    "\"2\"" more "},\"status\":{\"grant\":\"2\",\"pool\":{\"name\":\"q\",\"nodeSelector\":"        \
    "{\"pool\":\"q\"},\"resources\":{\"nvidia.com/gpu\":{\"gpuEq\":\"1\"}}}}}"

/* A binding of the same name and of another pool is another one: what runs keeps its pool. */
static void test_a_replaced_binding_leaves_its_pool(void **state)
{
    struct sim *s = with_grant(62, FOLLOW "sync: {nodes: perPool}\n", B("", "4"), "4");

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    fake_host_remove(s->host, "gpubindings", "b");
    fake_host_put(s->host, "gpubindings", OTHER_POOL(",\"default\":true"));
    until_limit(s, "0");
    assert_int_equal(limit_of(s, "q").num, 2);
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 10 * 1000);
    assert_int_equal(limit_of(s, "p").num, 0);
    assert_int_equal(limit_of(s, "q").num, 2);
    assert_int_equal(used(s), 2);
    sim_until_runs(s, "a");
    assert_int_equal(sim_records(s, RECORD_META, "gpu-binding/"), 2);
    assert_string_equal(refusal(s, "c", GPU(2)), "");
    sim_until_runs(s, "c");
    sim_delete(s, "pods", "default", "a", 0);
    until_limit(s, "-1");
    assert_int_equal(sim_records(s, RECORD_META, "gpu-binding/"), 1);
    fake_host_put(s->host, "gpubindings", B("", "3")); /* and back */
    until_limit(s, "3");
    assert_int_equal(limit_of(s, "q").num, 0);
    sim_until_runs(s, "c");
    sim_free(s);
}

/* One that has ended gives way to its successor, whichever name is first, and keeps its charges. */
static void test_a_successor_takes_the_pool(void **state)
{
    static const char *const successors[] = {
        BINDING("a", SPEC(""), STATUS("3")),
        BINDING("c", SPEC(""), STATUS("3")),
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct sim *s = with_grant(63, FOLLOW, B("", "4"), "4");

        sim_create_pod(s, "a", GPU(2), "");
        sim_until_runs(s, "a");
        fake_host_remove(s->host, "gpubindings", "b");
        until_limit(s, "0");
        fake_host_put(s->host, "gpubindings", successors[i]);
        until_limit(s, "3");
        assert_int_equal(used(s), 2);
        assert_int_equal(sim_records(s, RECORD_META, "gpu-binding/"), 1);
        assert_non_null(strstr(refusal(s, "c", GPU(2)), "used: gpu=2, limited: gpu=3"));
        assert_string_equal(refusal(s, "b", GPU(1)), "");
        sim_until_runs(s, "b");
        sim_close(s);
        sim_open(s);
        sim_run_ms(s, 5000);
        assert_int_equal(limit_of(s, "p").num, 3);
        assert_int_equal(used(s), 3);
        sim_free(s);
    }
}

/* What is newer than a backup stays charged while its pool is not bound. */
static void test_a_pool_that_is_not_bound_keeps_its_charges(void **state)
{
    struct sim *s = sim_new_ready(69, POOLS);

    (void)state;
    sim_backup(s, "before");
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    sim_stop_and_restore(s, "before");
    sim_open(s);
    sim_run_ms(s, 10 * 1000);
    assert_int_equal(used(s), 2);
    sim_close(s);
    s->config.n_pools = s->config.n_bindings = 0;
    sim_open(s);
    sim_run_ms(s, 10 * 1000);
    assert_int_equal(used(s), 2);
    sim_free(s);
}

#define CLAIMED                                                                                    \
    "pools:\n- {name: d, mode: dra, nodeSelector: {pool: d}, deviceClasses: {whole: {gpuEq: "      \
    "\"1\"}}}\n"                                                                                   \
    "bindings:\n- {pool: d, guarantee: \"4\"}\n"                                                   \
    "sync: {toHost: {resourceClaims: {enabled: true}}}\n"

/* One claim, under one uid for good. */
static bool claim_is_there(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *claim = json_first(fake_host_list(s->host, a, "resourceclaims"));
    struct str uid = json_str_at(claim, "metadata.uid");
    bool is = uid.n && (!s->note[0] || str_eqc(uid, s->note));

    snprintf(s->note, sizeof(s->note), "%.*s", STR_F(uid));
    arena_free(a);
    return is;
}

static bool no_claim_is_there(struct sim *s)
{
    return !fake_host_count(s->host, "resourceclaims");
}

static bool claim_event(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "default")) found |=
        str_eqc(json_str_at(event, "involvedObject.kind"), "ResourceClaim") &&
        str_contains(json_str_at(event, "message"), STR("is not bound"));
    arena_free(a);
    return found;
}

/* A claim on the host holds its devices, as a pod there runs on: also while no pool is bound that
 * grants it, and before it is known what is bound. */
static void test_a_claim_outlives_the_binding_of_its_pool(void **state)
{
    for (unsigned follows = 0; follows < 2; follows++) {
        struct sim *s = sim_new_ready(70 + follows, CLAIMED);

        (void)state;
        sim_create(s, "resourceclaims.resource.k8s.io", "default",
                   "{'metadata':{'name':'a'},'spec':{'devices':{'requests':[{'name':'r',"
                   "'exactly':{'deviceClassName':'whole'}}]}}}");
        sim_writes_done(s);
        assert_string_equal(s->refusal, "");
        sim_until(s, claim_is_there, "the claim on the host");
        sim_close(s);
        s->config.n_pools = s->config.n_bindings = 0;
        s->config.fleet_bindings = follows;
        sim_open(s);
        sim_run_ms(s, 10 * 1000);
        assert_true(claim_is_there(s));
        assert_true(claim_event(s));
        assert_int_equal(fake_host_asked(s->host, "DELETE", "resourceclaims", false), 0);
        sim_delete(s, "resourceclaims.resource.k8s.io", "default", "a", 0);
        sim_until(s, no_claim_is_there, "the host without the claim");
        sim_free(s);
    }
}

/* Of two defaults the older one is it, whatever their names are. */
static void test_the_oldest_is_the_default(void **state)
{
    struct sim *s = with_grant(64, FOLLOW, B("", "4"), "4");

    (void)state;
    fake_host_put(s->host, "gpubindings",
                  "{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-03-01T00:00:00Z\"},"
                  "\"spec\":{\"pool\":\"q\",\"guarantee\":1,\"default\":true},"
                  "\"status\":{\"grant\":\"1\",\"pool\":{\"name\":\"q\",\"nodeSelector\":{\"pool\":"
                  "\"q\"},\"resources\":{\"nvidia.com/gpu\":{\"gpuEq\":1}}}}}");
    fake_host_patch(s->host, "gpubindings", "a",
                    "{\"metadata\":{\"creationTimestamp\":\"2026-03-01T00:00:00Z\"}}");
    snprintf(s->note, sizeof(s->note), "DefaultTaken");
    sim_until(s, is_noted, s->note);
    sim_run_ms(s, 2000);
    assert_true(config_binding_of(s->syncer->config, STR("p"))->is_default);
    assert_false(config_binding_of(s->syncer->config, STR("q"))->is_default);
    sim_close(s);
    sim_open(s);
    assert_true(config_binding_of(s->syncer->config, STR("p"))->is_default);
    sim_free(s);
}

/* What counts as no GPU holds its pool as well. */
static void test_what_counts_nothing_outlives_its_binding(void **state)
{
    struct sim *s = sim_new_ready(65, FOLLOW);

    (void)state;
    fake_host_put(s->host, "gpubindings",
                  "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"pool\":\"p\",\"guarantee\":1,"
                  "\"default\":true},\"status\":{\"grant\":\"1\",\"pool\":{\"name\":\"p\","
                  "\"nodeSelector\":{\"pool\":\"p\"},\"resources\":{\"nvidia.com/gpu\":"
                  "{\"gpuEq\":0,\"perPod\":1}}}}}");
    until_limit(s, "1");
    assert_string_equal(refusal(s, "a", GPU(1)), "");
    sim_until_runs(s, "a");
    fake_host_remove(s->host, "gpubindings", "b");
    until_limit(s, "0");
    sim_run_ms(s, 10 * 1000);
    assert_int_equal(limit_of(s, "p").num, 0);
    sim_delete(s, "pods", "default", "a", 0);
    until_limit(s, "-1");
    sim_free(s);
}

/* The first of a strict line keeps its place while its grant is lowered. */
static void test_a_strict_line_outlives_a_lowered_grant(void **state)
{
    struct sim *s = with_grant(66, FOLLOW, B(STRICT, "4"), "4");

    (void)state;
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    assert_string_equal(refusal(s, "b", GPU(3)), "");
    sim_run_ms(s, 3000);
    assert_string_equal(refusal(s, "c", GPU(2)), "");
    grant(s, "2");
    until_limit(s, "2");
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pod_is_gone, "pod a");
    sim_run_ms(s, 20 * 1000);
    assert_int_equal(used(s), 0);
    grant(s, "3");
    sim_until_runs(s, "b");
    assert_int_equal(used(s), 3);
    sim_free(s);
}

/* A store of before the bindings counts what runs on the host as soon as they are known; until then
 * no pod is judged by them. */
static void test_a_restored_store_waits_for_its_bindings(void **state)
{
    struct sim *s = sim_new_ready(68, FOLLOW "sync: {nodes: perPool}\n");

    (void)state;
    sim_backup(s, "before");
    fake_host_put(s->host, "gpubindings", B("", "4"));
    until_limit(s, "4");
    sim_create_pod(s, "a", GPU(2), "");
    sim_until_runs(s, "a");
    fake_host_faults(s->host)->unlisted = "gpubindings";
    sim_stop_and_restore(s, "before");
    sim_open(s);
    sim_run_ms(s, 20 * 1000);
    assert_int_equal(limit_of(s, "p").num, -1);
    assert_non_null(strstr(refusal(s, "c", GPU(1)), "try again later"));
    fake_host_faults(s->host)->unlisted = NULL;
    until_limit(s, "4");
    sim_run_ms(s, 5000);
    assert_int_equal(used(s), 2);
    assert_non_null(strstr(refusal(s, "c", GPU(3)), "used: gpu=2, limited: gpu=4"));
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    sim_free(s);
}

/* --- by chance --- */

static int64_t gpus_of(const cJSON *pod)
{
    const cJSON *c = json_at(json_path(pod, "spec.containers"), 0);
    int64_t n = 0;

    str_to_i64(json_str(json_get(json_path(c, "resources.limits"), "nvidia.com/gpu")), &n);
    return n;
}

/* GPUs of the host's pods that are not finished. */
static int64_t held(struct sim *s)
{
    struct arena *a = arena_new(0);
    int64_t sum = 0;

    json_each(pod, fake_host_list(s->host, a, "pods"))
    {
        struct str phase = json_str_at(pod, "status.phase");

        if (!str_eqc(phase, "Failed") && !str_eqc(phase, "Succeeded"))
            sum += gpus_of(pod);
    }
    arena_free(a);
    return sum;
}

static bool is_exact(struct sim *s)
{
    return used(s) == held(s);
}

static bool is_bound(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool ret = json_count(fake_host_list(s->host, a, "gpubindings")) > 0;

    arena_free(a);
    return ret;
}

/* One thing that the fleet, the tenant, or fate does. */
static void act(struct sim *s, unsigned n)
{
    char text[64];

    switch (fake_host_random(s->host) % 8) {
    case 0:
    case 1:
        snprintf(text, sizeof(text), "%u", (unsigned)(fake_host_random(s->host) % 9));
        if (is_bound(s))
            grant(s, text);
        break;
    case 2:
        if (fake_host_remove(s->host, "gpubindings", "b"))
            break;
        fake_host_put(s->host, "gpubindings", B("", "3"));
        break;
    case 3:
        fake_host_finish_pod(s->host, "Succeeded");
        break;
    case 4:
        snprintf(text, sizeof(text), "p%u", n / 2);
        sim_delete(s, "pods", "default", text, 0);
        break;
    case 5:
        sim_close(s);
        sim_open(s);
        break;
    default:
        snprintf(text, sizeof(text), "p%u", n);
        sim_create_pod(s, text, n % 2 ? GPU(1) : GPU(2), "");
        break;
    }
}

/* No more is created than the most that was ever granted, and what is charged is what is held, in
 * whatever order grants, bindings, pods and processes come and leave. */
static void test_the_charge_stays_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        struct sim *s = with_grant(70 + seed, FOLLOW, B("", "8"), "8");

        for (unsigned n = 0; n < 30; n++) {
            if (n == 10)
                sim_spoil_host(s);
            if (n == 20)
                sim_mend_host(s);
            act(s, n);
            sim_run_ms(s, 1000);
            assert_true(held(s) <= 8);
        }
        sim_writes_done(s);
        sim_until(s, is_exact, "the charge to be what is held");
        sim_run_ms(s, 30 * 1000);
        assert_true(is_exact(s));
        sim_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_raised_grant_lets_more_run),
        cmocka_unit_test(test_a_raised_grant_ends_the_wait),
        cmocka_unit_test(test_a_raised_grant_wakes_what_was_refused),
        cmocka_unit_test(test_a_new_binding_wakes_what_was_refused),
        cmocka_unit_test(test_a_new_binding_wakes_many_in_steps),
        cmocka_unit_test(test_a_changed_binding_wakes_what_was_refused),
        cmocka_unit_test(test_nodes_follow_the_grant),
        cmocka_unit_test(test_a_lowered_grant_refuses_what_is_new),
        cmocka_unit_test(test_what_runs_outlives_its_binding),
        cmocka_unit_test(test_one_that_is_not_ready_grants_nothing),
        cmocka_unit_test(test_the_last_grants_hold_while_the_host_is_away),
        cmocka_unit_test(test_what_cannot_be_read_ends_nothing),
        cmocka_unit_test(test_a_bad_one_changes_nothing),
        cmocka_unit_test(test_the_file_keeps_its_pools),
        cmocka_unit_test(test_a_replaced_binding_leaves_its_pool),
        cmocka_unit_test(test_a_successor_takes_the_pool),
        cmocka_unit_test(test_a_pool_that_is_not_bound_keeps_its_charges),
        cmocka_unit_test(test_a_claim_outlives_the_binding_of_its_pool),
        cmocka_unit_test(test_the_oldest_is_the_default),
        cmocka_unit_test(test_what_counts_nothing_outlives_its_binding),
        cmocka_unit_test(test_a_strict_line_outlives_a_lowered_grant),
        cmocka_unit_test(test_a_restored_store_waits_for_its_bindings),
        cmocka_unit_test(test_the_charge_stays_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
