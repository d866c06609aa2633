/* SPDX-License-Identifier: Apache-2.0 */
/* Pools that a queueing system admits: the pool's queue, no group, and no key of the tenant's. */

#include "allowed.h"
#include "test.h"

static const char CONFIG[] =
    "name: research\n"
    "policy: {labels: {allow: [team.example/]}}\n"
    "pools:\n"
    "- {name: a100, nodeSelector: {sublet.dev/pool: a100}, tolerations: [{key: sublet.dev/pool, "
    "value: a100}], scheduler: {kind: kueue, queueTemplate: 't-{tenant}'}}\n"
    "- {name: l4, nodeSelector: {sublet.dev/pool: l4}, resources: {nvidia.com/l4: {gpuEq: 1}}}\n"
    "- {name: kai, nodeSelector: {sublet.dev/pool: kai}, resources: {amd.com/gpu: {gpuEq: 1}}, "
    "scheduler: {kind: kai, queueTemplate: 't-{tenant}'}}\n"
    "- {name: vol, nodeSelector: {sublet.dev/pool: vol}, resources: {nvidia.com/h200: {gpuEq: 1}}, "
    "scheduler: {kind: volcano, queueTemplate: 't-{tenant}'}}\n"
    "bindings: [{pool: a100, guarantee: 8}, {pool: l4, guarantee: 8}, {pool: kai, guarantee: 8}, "
    "{pool: vol, guarantee: 8}]\n";

static int setup(void **state)
{
    *state = fixture_new(CONFIG);
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

/* meta: members of metadata; resource: what it requests one of, or NULL. */
static cJSON *pod(struct fixture *f, const char *ns, const char *meta, const char *resource)
{
    return doc(f, arena_printf(f->a,
                               "{metadata: {name: p, namespace: %s, uid: u, %s}, spec: "
                               "{containers: [{name: c, image: i, resources: {limits: {%s: "
                               "1}}}]}}",
                               ns, meta, resource ? resource : "cpu")
                      .p);
}

static cJSON *down(struct fixture *f, const cJSON *vpod)
{
    struct pool_choice choice;
    cJSON *ret = NULL;

    assert_ok(pool_resolve(f->a, &f->config, STR("ml"), vpod, NULL, &choice, &f->err));
    assert_ok(translate_pod(f->a, &f->tenant, &choice, vpod, NULL, &ret, &f->err));
    assert_allowed(allowed_pod(f->a, &f->tenant, ret));
    return ret;
}

static struct str label(const cJSON *host, const char *key)
{
    return json_str(json_get(json_path(host, "metadata.labels"), key));
}

static struct str note(const cJSON *host, const char *key)
{
    return json_str(json_get(json_path(host, "metadata.annotations"), key));
}

#define QUEUE "kueue.x-k8s.io/queue-name"
#define GROUP "kueue.x-k8s.io/pod-group-name"
#define TOTAL "kueue.x-k8s.io/pod-group-total-count"
#define GROUPED                                                                                    \
    "labels: {" GROUP ": train, " QUEUE ": theirs, kueue.x-k8s.io/priority-class: high}, "         \
    "annotations: {" TOTAL ": '4', kueue.x-k8s.io/retriable-in-group: 'true', "                    \
    "kueue.x-k8s.io/role-hash: x, kueue.x-k8s.io/pod-group-fast-admission: 'true'}"

static void the_queue_is_that_of_the_pool(void **state)
{
    struct fixture *f = *state;

    assert_str(label(down(f, pod(f, "ml", "labels: {" QUEUE ": theirs}", "nvidia.com/gpu")), QUEUE),
               "t-research");
    assert_str(label(down(f, pod(f, "ml", "labels: {" QUEUE ": theirs}", "nvidia.com/l4")), QUEUE),
               "");
    assert_str(label(down(f, pod(f, "ml", "labels: {" QUEUE ": theirs}", NULL)), QUEUE), "");
}

/* Schedulers with queues of their own: KAI reads a label, Volcano an annotation. */
static void the_queue_of_a_scheduler(void **state)
{
    static const char theirs[] = "labels: {kai.scheduler/queue: theirs, project: theirs, " QUEUE
                                 ": theirs}, annotations: {scheduling.volcano.sh/queue-name: "
                                 "theirs, scheduling.k8s.io/group-name: g}";
    struct fixture *f = *state;
    cJSON *host = down(f, pod(f, "ml", theirs, "amd.com/gpu"));

    assert_str(label(host, "kai.scheduler/queue"), "t-research");
    assert_str(label(host, QUEUE), "");
    assert_str(label(host, "project"), "");
    assert_str(note(host, "scheduling.volcano.sh/queue-name"), "");
    assert_str(json_str_at(host, "spec.schedulerName"), "kai-scheduler");

    host = down(f, pod(f, "ml", theirs, "nvidia.com/h200"));
    assert_str(note(host, "scheduling.volcano.sh/queue-name"), "t-research");
    assert_str(note(host, "scheduling.k8s.io/group-name"), "");
    assert_str(label(host, "kai.scheduler/queue"), "");
    assert_str(json_str_at(host, "spec.schedulerName"), "volcano");
}

static void groups_are_refused(void **state)
{
    static const char *const metas[] = {"labels: {" GROUP ": g}", GROUPED,
                                        "annotations: {" TOTAL ": '2'}"};
    struct fixture *f = *state;
    struct pool_choice choice;
    cJSON *host;

    for (size_t i = 0; i < COUNT(metas); i++) {
        assert_int_equal(pool_resolve(f->a, &f->config, STR("ml"),
                                      pod(f, "ml", metas[i], "nvidia.com/gpu"), NULL, &choice,
                                      &f->err),
                         -1);
        assert_has(f->err.message,
                   "asks for a group, and pods of this pool are admitted one by one");
        assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
        host = down(f, pod(f, "ml", metas[i], "nvidia.com/l4"));
        assert_str(label(host, GROUP), "");
        assert_str(note(host, TOTAL), "");
        assert_str(note(host, "kueue.x-k8s.io/retriable-in-group"), "");
    }
}

static void on_warning(void *ctx, struct str text)
{
    struct fixture *f = ctx;

    f->warnings = arena_printf(f->a, "%.*s%.*s\n", STR_F(f->warnings), STR_F(text));
}

static struct str warned(struct fixture *f, const char *meta, const char *resource)
{
    struct pool_choice choice;
    cJSON *vpod = pod(f, "ml", meta, resource);

    f->warnings = STR("");
    assert_ok(pool_resolve(f->a, &f->config, STR("ml"), vpod, NULL, &choice, &f->err));
    pool_warnings(f->a, &f->config, &choice, vpod, on_warning, f);
    return f->warnings;
}

static void keys_without_effect_are_a_warning(void **state)
{
    struct fixture *f = *state;

    assert_str(warned(f, "labels: {app: x}", "nvidia.com/gpu"), "");
    assert_str(warned(f, "labels: {" QUEUE ": q}", "nvidia.com/gpu"),
               "metadata.labels[" QUEUE "] has no effect: the pool decides queues, groups and "
               "shares of GPUs\n");
    assert_has(warned(f, "annotations: {gpu-fraction: '0.5'}", NULL),
               "metadata.annotations[gpu-fraction] has no effect");
    assert_has(warned(f, "labels: {" GROUP ": g}", NULL),
               "metadata.labels[" GROUP "] has no effect");
}

/* The queueing system's own keys, and the queue of a pod that is there, stay as they are. */
static void a_queue_never_changes(void **state)
{
    struct fixture *f = *state;
    cJSON *wanted =
        down(f, pod(f, "ml", "labels: {kueue.x-k8s.io/priority-class: high}", "nvidia.com/gpu"));
    cJSON *now = json_copy(f->a, wanted), *meta = json_get(now, "metadata");

    json_set_str(f->a, json_get(meta, "labels"), QUEUE, STR("moved"));
    json_set_str(f->a, json_get(meta, "labels"), "kueue.x-k8s.io/managed", STR("true"));
    json_set_str(f->a, json_get(meta, "annotations"), "kueue.x-k8s.io/role-hash", STR("h"));
    assert_null(translate_pod_update(f->a, now, wanted, false));
    assert_true(translate_pod_is_applied(f->a, now, wanted, false));
    json_set_str(f->a, json_get(json_get(wanted, "metadata"), "labels"), "team.example/x",
                 STR("z"));
    assert_json(translate_pod_update(f->a, now, wanted, false),
                "{metadata: {labels: {team.example/x: z}}}");
}

#define RESERVED(status, text)                                                                     \
    "{status: {conditions: [{type: QuotaReserved, status: '" status "', message: \"" text "\"}]}}"

static struct str waiting(struct fixture *f, const char *workload)
{
    cJSON *host = down(f, pod(f, "ml", "labels: {}", "nvidia.com/gpu"));

    return translate_queue_up(f->a, &f->tenant, host, doc(f, workload));
}

/* What Kueue 0.17 says, and what a tenant reads of it. */
static void why_a_pod_waits(void **state)
{
    static const struct {
        const char *workload, *text;
    } cases[] = {
        {RESERVED("False",
                  "couldn't assign flavors to pod set main: insufficient unused quota for "
                  "nvidia.com/gpu in flavor secret-a100, 2 more needed, insufficient unused quota "
                  "for cpu in flavor secret-a100, 500m more needed"),
         "insufficient unused quota for nvidia.com/gpu, insufficient unused quota "
         "for cpu"},
        {RESERVED("False", "couldn't assign flavors to pod set main: insufficient unused quota for "
                           "example.com/hidden in flavor secret-a100, 2 more needed"),
         "its turn has not come"},
        {RESERVED(
             "False",
             "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu "
             "in flavor x, previously considered podsets requests (0) + current podset request "
             "(9) > maximum capacity (8)"),
         "it requests more than the queue ever has"},
        {RESERVED("False", "Preempted to accommodate a workload (UID: 3a9d, JobUID: 77) due to "
                           "prioritization in the ClusterQueue; preemptor path: /bank/fraud"),
         "its turn has not come"},
        {RESERVED("False", "LocalQueue t-research doesn't exist"), "the queue does not exist"},
        {RESERVED("False", "ClusterQueue secret is inactive"), "the queue is not active"},
        {RESERVED("False", "ClusterQueue secret is stopped"), "the queue is stopped"},
        {RESERVED("True", "Quota reserved in ClusterQueue secret"),
         "its quota is reserved, other checks are not done"},
    };
    struct fixture *f = *state;

    assert_str(translate_queue_up(f->a, &f->tenant,
                                  down(f, pod(f, "ml", "labels: {}", "nvidia.com/gpu")), NULL),
               "waiting in queue \"t-research\"");
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_str(waiting(f, cases[i].workload),
                   arena_printf(f->a, "waiting in queue \"t-research\": %s", cases[i].text).p);
    assert_null(waiting(f, "{status: {conditions: [{type: QuotaReserved, status: 'True'}, {type: "
                           "Admitted, status: 'True'}]}}")
                    .p);
    assert_null(translate_queue_up(f->a, &f->tenant,
                                   down(f, pod(f, "ml", "labels: {}", "nvidia.com/l4")), NULL)
                    .p);
}

/* What KAI 0.12 and Volcano 1.10 say of a pod, and what a tenant reads of it. */
static void why_a_scheduler_keeps_a_pod_waiting(void **state)
{
    static const struct {
        const char *resource, *message, *text;
    } cases[] = {
        {"amd.com/gpu",
         "Non-preemptible workload is over quota. Workload requested 2 GPUs, but bank quota is 4 "
         "GPUs, while 4 GPUs are already allocated for non-preemptible pods.",
         "a pod of its priority may not exceed the quota of the queue"},
        {"amd.com/gpu",
         "bank quota has reached the allowable limit of GPUs. Limit is 2 GPUs, currently 2 GPUs "
         "allocated and workload requested 1 GPUs",
         "the queue has reached its limit"},
        {"amd.com/gpu",
         "node(s) didn't have enough resources: GPUs. Workload wasn't chosen: bank uses <4> with a "
         "quota of <2>",
         "no node has enough free resources"},
        {"amd.com/gpu", "node-7.bank.internal: something new", "its turn has not come"},
        {"nvidia.com/h200", "queue resource quota insufficient: insufficient nvidia.com/gpu",
         "the queue has reached its limit"},
        {"nvidia.com/h200",
         "0/6 nodes are unavailable: 1 Insufficient nvidia.com/gpu, 5 node(s) didn't match Pod's "
         "node affinity/selector.",
         "no node has enough free resources"},
        {"nvidia.com/h200",
         "0/6 nodes are unavailable: 6 node(s) didn't match Pod's node affinity/selector.",
         "no nodes of the queue match its node selector and affinity"},
        {"nvidia.com/h200", "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1",
         "its turn has not come"},
        {"nvidia.com/h200", "pod group is not ready, 11 Pending, 11 minAvailable; Pending: 11",
         "not all pods of its gang fit at once"},
        {"amd.com/gpu",
         "Resources were found for 2 pods while 3 are required for gang scheduling. Additional "
         "pods cannot be scheduled due to: no nodes with enough resources were found: bank",
         "not all pods of its gang fit at once"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *vpod = pod(f, "ml", "labels: {}", cases[i].resource), *host = down(f, vpod), *up;
        cJSON *condition = doc(f, "{type: PodScheduled, status: 'False', reason: Unschedulable}");

        json_set_str(f->a, condition, "message", str_c(cases[i].message));
        up = json_set(f->a, host, "status", doc(f, "{phase: Pending, conditions: []}"));
        json_append(json_get(up, "conditions"), condition);
        up = translate_pod_status_up(f->a, &f->tenant, host, vpod, true);
        condition = json_at(json_get(up, "conditions"), 0);
        assert_str(json_str(json_get(condition, "message")),
                   arena_printf(f->a, "waiting in queue \"t-research\": %s", cases[i].text).p);
        assert_str(json_str(json_get(condition, "reason")), "Unschedulable");
    }
}

static void what_a_scheduler_ends(void **state)
{
    static const struct {
        const char *resource, *condition;
    } cases[] = {
        {"amd.com/gpu", "{type: DisruptionTarget, status: 'True', reason: "
                        "PreemptionByScheduler, message: for bank/fraud}"},
        {"nvidia.com/h200", "{type: Ready, status: 'False', reason: Evict, message: for bank}"},
        {"nvidia.com/l4", "{type: Ready, status: 'False', reason: Evict, message: for bank}"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *vpod = pod(f, "ml", "labels: {}", cases[i].resource), *host = down(f, vpod), *up;

        up = json_set(f->a, host, "status", doc(f, "{phase: Running, conditions: []}"));
        json_append(json_get(up, "conditions"), doc(f, cases[i].condition));
        up = translate_pod_status_up(f->a, &f->tenant, host, vpod, true);
        assert_str(json_str(json_get(json_at(json_get(up, "conditions"), 0), "message")),
                   "Its queue has ended it");
    }
}

/* Another tenant's workload and queue stand in both. */
#define PREEMPTED                                                                                  \
    "Preempted to accommodate a workload (UID: 3a9d, JobUID: 77) due to reclamation; preemptor "   \
    "path: /bank/fraud"

static void what_a_queue_ends(void **state)
{
    struct fixture *f = *state;
    cJSON *vpod = pod(f, "ml", "labels: {}", "nvidia.com/gpu"), *host = down(f, vpod), *up;

    json_set(f->a, host, "status",
             doc(f, "{phase: Running, conditions: [{type: TerminationTarget, status: 'True', "
                    "reason: StoppedByKueue, message: '" PREEMPTED "'}]}"));
    up = translate_pod_status_up(f->a, &f->tenant, host, vpod, true);
    assert_str(json_str(json_get(json_at(json_get(up, "conditions"), 0), "message")),
               "Its queue has ended it");
    up = doc(f, "{metadata: {name: e.1}, involvedObject: {kind: Pod, namespace: team-research}, "
                "reason: Stopped, message: '" PREEMPTED "', source: {component: "
                "pod-kueue-controller}}");
    json_set_str(f->a, json_get(up, "involvedObject"), "name", json_str_at(host, "metadata.name"));
    up = translate_event_up(f->a, &f->tenant, up, STR("ml"), STR("p"), STR("u"));
    assert_str(json_str_at(up, "message"), "Its queue has ended it");
    assert_str(json_str_at(up, "reason"), "Stopped");
}

static struct str event_of(struct fixture *f, const char *component, const char *reason)
{
    cJSON *host = down(f, pod(f, "ml", "labels: {}", "amd.com/gpu")), *event;

    event = doc(f, "{metadata: {name: e.1}, involvedObject: {kind: Pod, namespace: team-research}, "
                   "message: 'bank quota has reached the allowable limit of GPUs', source: {}}");
    json_set_str(f->a, json_get(event, "involvedObject"), "name",
                 json_str_at(host, "metadata.name"));
    json_set_str(f->a, event, "reason", str_c(reason));
    json_set_str(f->a, json_get(event, "source"), "component", str_c(component));
    event = translate_event_up(f->a, &f->tenant, event, STR("ml"), STR("p"), STR("u"));
    return json_str_at(event, "message");
}

/* KAI's condition names the node, and an error as it came. */
static void what_binds(void **state)
{
    static const char *const cases[][2] = {{"True", "It is bound to its node"},
                                           {"False", "It could not be bound to its node"}};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *vpod = pod(f, "ml", "labels: {}", "amd.com/gpu"), *host = down(f, vpod), *up;
        cJSON *condition = doc(f, "{type: PodBound, reason: x, message: to node bank-7}");

        json_set_str(f->a, condition, "status", str_c(cases[i][0]));
        up = json_set(f->a, host, "status", doc(f, "{phase: Pending, conditions: []}"));
        json_append(json_get(up, "conditions"), condition);
        up = translate_pod_status_up(f->a, &f->tenant, host, vpod, true);
        assert_str(json_str(json_get(json_at(json_get(up, "conditions"), 0), "message")),
                   cases[i][1]);
    }
}

/* KAI counts nothing of a pod with this label: it never keeps its name with this value. */
static void no_pod_is_uncounted(void **state)
{
    struct fixture *f = *state;
    cJSON *host;

    f->config.labels_allow = (struct str_list){(struct str[]){STR("app")}, 1};
    host = down(f, pod(f, "ml", "labels: {app: kai-resource-reservation}", NULL));
    assert_str(label(host, "app"), "");
    host = down(f, pod(f, "ml", "labels: {app: web}", NULL));
    assert_str(label(host, "app"), "web");
}

/* Their Events on a pod name queues as well; those of others stay as they are. */
static void what_schedulers_report(void **state)
{
    struct fixture *f = *state;

    assert_str(event_of(f, "kai-scheduler", "Unschedulable"), "Its queue cannot run it yet");
    assert_str(event_of(f, "kai-scheduler-pool", "Scheduled"), "Its queue has found a node for it");
    assert_str(event_of(f, "volcano", "FailedScheduling"), "Its queue cannot run it yet");
    assert_str(event_of(f, "pod-grouper", "New"), "Its queue has changed it");
    assert_str(event_of(f, "binder", "Bound"), "It is bound to its node");
    assert_str(event_of(f, "kubelet", "Started"),
               "bank quota has reached the allowable limit of GPUs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_queue_is_that_of_the_pool, setup, teardown),
        cmocka_unit_test_setup_teardown(the_queue_of_a_scheduler, setup, teardown),
        cmocka_unit_test_setup_teardown(why_a_scheduler_keeps_a_pod_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_scheduler_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(what_schedulers_report, setup, teardown),
        cmocka_unit_test_setup_teardown(what_binds, setup, teardown),
        cmocka_unit_test_setup_teardown(no_pod_is_uncounted, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_without_effect_are_a_warning, setup, teardown),
        cmocka_unit_test_setup_teardown(a_queue_never_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(why_a_pod_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_queue_ends, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
