/* SPDX-License-Identifier: Apache-2.0 */
/* What policies and controllers of the host change in the host objects of a tenant stays, and
 * shows: the syncer sends what the tenant changed, once. Counts of requests are bounds of what a
 * host may be burdened with, whatever undoes a patch. */
#include "worlds.h"

#include "engine.h"

#define QUIET_MS 300 /* a loop of patches takes a few ms a turn */

static unsigned patches(const struct sim *s)
{
    return fake_host_asked(s->host, "PATCH", "pods", false);
}

/* Runs on until a loop of patches would have shown. */
static void expect_patches(struct sim *s, unsigned at_least, unsigned at_most)
{
    sim_run_ms(s, QUIET_MS);
    if (patches(s) < at_least || patches(s) > at_most)
        fail_msg("%u patches of pods, wanted %u to %u", patches(s), at_least, at_most);
}

static void host_name_of(struct sim *s, const char *name, char out[64])
{
    translate_name(&s->syncer->tenant, STR("default"), str_c(name), out);
}

static cJSON *host_container(struct sim *s, struct arena *a)
{
    return json_first(json_path(json_first(fake_host_list(s->host, a, "pods")), "spec.containers"));
}

static void assert_host_image(struct sim *s, const char *image)
{
    struct arena *a = arena_new(0);
    struct str is = json_str(json_get(host_container(s, a), "image"));

    if (!str_eqc(is, image))
        fail_msg("image %.*s on the host, wanted %s", STR_F(is), image);
    arena_free(a);
}

static unsigned events(struct sim *s, const char *reason, const char *part)
{
    struct arena *a = arena_new(0);
    unsigned n = 0;

    json_each(event, sim_list(s, a, "events", "")) n +=
        str_eqc(json_str_at(event, "reason"), reason) &&
        str_contains(json_str_at(event, "message"), str_c(part));
    arena_free(a);
    return n;
}

static bool observed_2(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    bool is = json_i64_at(pod, "status.observedGeneration", 0) == 2;

    arena_free(a);
    return is;
}

static void set_image(struct sim *s, const char *image)
{
    struct arena *a = arena_new(0);
    cJSON *list = json_path(sim_get(s, a, "pods", "default", "a"), "spec.containers"), *patch;

    json_set_str(a, json_first(list), "image", str_c(image));
    patch = json_new_object(a);
    json_set(a, json_ensure_object(a, patch, "spec"), "containers", json_copy(a, list));
    sim_patch(s, "pods", "default", "a", json_text(a, patch).p);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    arena_free(a);
}

/* --- images --- */

static bool label_is_down(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = str_eqc(
        json_str(json_get(
            json_path(json_first(fake_host_list(s->host, a, "pods")), "metadata.labels"), "team")),
        "x");

    arena_free(a);
    return is;
}

#define TEAM "policy: {labels: {allow: [team]}}\n"

static void set_label(struct sim *s)
{
    sim_patch(s, "pods", "default", "a", "{'metadata':{'labels':{'team':'x'}}}");
    sim_writes_done(s);
}

static void test_an_image_rewritten_at_create_stays(void **state)
{
    struct sim *s = sim_new_ready(1, TEAM);

    (void)state;
    fake_host_rewrite_images(s->host, "mirror/", true, false);
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    expect_patches(s, 0, 0);
    assert_host_image(s, "mirror/i");
    set_label(s); /* another change leaves the image alone */
    sim_until(s, label_is_down, "the label");
    expect_patches(s, 1, 1);
    assert_host_image(s, "mirror/i");
    set_image(s, "j"); /* the tenant's own change goes down */
    sim_until(s, observed_2, "the generation to be observed");
    expect_patches(s, 2, 2);
    assert_host_image(s, "j");
    sim_free(s);
}

static void test_an_image_rewritten_at_update_stays(void **state)
{
    struct sim *s = sim_new_ready(2, TEAM);

    (void)state;
    fake_host_rewrite_images(s->host, "mirror/", false, true);
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    expect_patches(s, 0, 0);
    set_label(s);
    sim_until(s, label_is_down, "the label");
    expect_patches(s, 1, 1);
    assert_host_image(s, "mirror/i");
    sim_free(s);
}

static void test_an_image_rewritten_always_stays(void **state)
{
    struct sim *s = sim_new_ready(3, NULL);

    (void)state;
    fake_host_rewrite_images(s->host, "mirror/", true, true);
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    set_image(s, "j");
    sim_until(s, observed_2, "the generation to be observed");
    expect_patches(s, 1, 1);
    assert_host_image(s, "mirror/j");
    sim_close(s); /* what was sent is known to the next process */
    sim_open(s);
    sim_run_ms(s, QUIET_MS);
    set_image(s, "j:2");
    sim_run_ms(s, QUIET_MS);
    assert_host_image(s, "mirror/j:2");
    expect_patches(s, 2, 2);
    sim_free(s);
}

/* --- quantities --- */

#define REQUESTS ",'resources':{'requests':{'cpu':'1','memory':'1Gi'}}"

/* The tenant's API checks a resize against the node. */
static struct sim *sim_with_a_large_node(uint64_t seed, const char *config)
{
    struct sim *s = sim_new_ready(seed, config);

    fake_host_put(s->host, "nodes",
                  "{\"metadata\":{\"name\":\"large\"},\"status\":{\"allocatable\":{"
                  "\"cpu\":\"64\",\"memory\":\"64Gi\",\"pods\":\"110\"}}}");
    fake_host_place(s->host, "large");
    return s;
}

/* What the only host pod requests. */
static void assert_requests(struct sim *s, const char *cpu, const char *memory)
{
    struct arena *a = arena_new(0);
    const cJSON *requests = json_path(host_container(s, a), "resources.requests");

    if (!str_eqc(json_str(json_get(requests, "cpu")), cpu) ||
        !str_eqc(json_str(json_get(requests, "memory")), memory))
        fail_msg("the host's: %s", json_text(a, requests).p);
    arena_free(a);
}

/* A vertical autoscaler on the host. */
static void resize_on_host(struct sim *s, const char *cpu)
{
    struct arena *a = arena_new(0);
    cJSON *container = json_copy(a, host_container(s, a)), *patch = json_new_object(a);
    char name[64];

    json_set_str(a, json_path(container, "resources.requests"), "cpu", str_c(cpu));
    json_append(json_set(a, json_ensure_object(a, patch, "spec"), "containers", json_new_array(a)),
                container);
    host_name_of(s, "a", name);
    fake_host_patch(s->host, "pods", name, json_text(a, patch).p);
    arena_free(a);
}

static void resize(struct sim *s, const char *quantity, const char *value)
{
    struct arena *a = arena_new(0);
    cJSON *list = json_copy(a, json_path(sim_get(s, a, "pods", "default", "a"), "spec.containers"));
    cJSON *patch = json_new_object(a);

    json_set_str(a, json_path(json_first(list), "resources.requests"), quantity, str_c(value));
    json_set(a, json_ensure_object(a, patch, "spec"), "containers", list);
    sim_patch(s, "pods/resize", "default", "a", json_text(a, patch).p);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    arena_free(a);
}

static bool resize_is_reported(struct sim *s)
{
    return events(s, "ResizedByHost", "requests.cpu of container c from 1 to 3") == 1;
}

static void test_a_resize_by_the_host_stays(void **state)
{
    struct sim *s = sim_with_a_large_node(5, TEAM);

    (void)state;
    sim_create_pod(s, "a", REQUESTS, "");
    sim_until(s, sim_pods_run, "the pod to run");
    resize_on_host(s, "3");
    sim_until(s, resize_is_reported, "an Event");
    expect_patches(s, 0, 0);
    resize(s, "memory", "2Gi"); /* the tenant's own change goes down, and no other */
    sim_until(s, observed_2, "the generation to be observed");
    expect_patches(s, 2, 2); /* the resize, and its record */
    assert_requests(s, "3", "2Gi");
    set_label(s);
    sim_until(s, label_is_down, "the label");
    expect_patches(s, 3, 3);
    assert_requests(s, "3", "2Gi");
    assert_int_equal(events(s, "ResizedByHost", ""), 1);
    sim_free(s);
}

/* The host's admission sets another quantity than the one sent. */
static void test_a_resize_that_the_host_changes_ends(void **state)
{
    struct sim *s = sim_with_a_large_node(6, NULL);

    (void)state;
    fake_host_fix_cpu(s->host, "2");
    sim_create_pod(s, "a", REQUESTS, "");
    sim_until(s, sim_pods_run, "the pod to run");
    resize(s, "cpu", "4");
    sim_until(s, observed_2, "the generation to be observed");
    expect_patches(s, 2, 2);
    assert_requests(s, "2", "1Gi");
    sim_free(s);
}

#define CLAIM                                                                                      \
    "{'metadata':{'name':'a'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{"               \
    "'requests':{'storage':'1Gi'}}}}"

static bool claim_is(struct sim *s, const char *size)
{
    struct arena *a = arena_new(0);
    const cJSON *claim = json_first(fake_host_list(s->host, a, "persistentvolumeclaims"));
    bool is = str_eqc(json_str_at(claim, "spec.resources.requests.storage"), size);

    arena_free(a);
    return is;
}

static bool claim_is_1(struct sim *s)
{
    return claim_is(s, "1Gi");
}

static bool claim_is_bound(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *claim = sim_get(s, a, "persistentvolumeclaims", "default", "a");
    bool is = str_eqc(json_str_at(claim, "status.phase"), "Bound");

    arena_free(a);
    return is;
}

static void test_a_claim_that_the_host_grew_stays(void **state)
{
    struct sim *s = sim_new_ready(7, "policy: {storageClasses: [standard]}\n");
    char name[64];

    (void)state;
    sim_create(s, "persistentvolumeclaims", "default", CLAIM);
    sim_until(s, claim_is_1, "the claim on the host");
    host_name_of(s, "a", name);
    fake_host_patch(s->host, "persistentvolumeclaims", name,
                    "{\"spec\":{\"volumeName\":\"pv\"},\"status\":{\"phase\":\"Bound\","
                    "\"capacity\":{\"storage\":\"1Gi\"}}}");
    sim_until(s, claim_is_bound, "the claim to be bound");
    fake_host_patch(s->host, "persistentvolumeclaims", name,
                    "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"5Gi\"}}}}");
    sim_run_ms(s, QUIET_MS);
    assert_true(claim_is(s, "5Gi"));
    assert_int_equal(fake_host_asked(s->host, "PATCH", "persistentvolumeclaims", false), 0);
    assert_int_equal(events(s, "ResizedByHost", "from 1Gi to 5Gi"), 1);
    sim_free(s);
}

/* --- whatever undoes a patch --- */

static bool fight_is_reported(struct sim *s)
{
    return events(s, "SyncError", "changes what this virtual cluster writes") == 1;
}

static void test_a_patch_that_is_undone_is_not_repeated_at_once(void **state)
{
    struct sim *s = sim_new_ready(4, TEAM);
    char name[64];

    (void)state;
    fake_host_undo_label(s->host, "team");
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    set_label(s);
    sim_until(s, fight_is_reported, "an Event");
    expect_patches(s, 1, 1);
    /* Other changes on the host lead to no further patch, and are shown. */
    host_name_of(s, "a", name);
    for (int i = 0; i < 5; i++) {
        char text[64];

        snprintf(text, sizeof(text), "{\"status\":{\"message\":\"m%d\"}}", i);
        fake_host_patch(s->host, "pods", name, text);
        sim_run_ms(s, 20);
    }
    expect_patches(s, 1, 1);
    assert_true(fight_is_reported(s));
    /* Another change of the tenant's is sent at once; what is undone is tried again after a
     * while. */
    set_image(s, "j");
    sim_until(s, observed_2, "the image to be applied");
    expect_patches(s, 2, 2);
    fake_host_undo_label(s->host, NULL);
    sim_jump(s, 61);
    sim_until(s, label_is_down, "the label, now that nothing undoes it");
    expect_patches(s, 3, 3);
    assert_true(fight_is_reported(s));
    sim_free(s);
}

/* --- the end of a pod --- */

#define KEPT                                                                                       \
    "{'metadata':{'name':'a','finalizers':['team.example/keep']},'spec':{'containers':["           \
    "{'name':'c','image':'i'}]}}"
#define DISRUPTED(phase, reason)                                                                   \
    "{\"status\":{\"phase\":\"" phase "\",\"conditions\":[{\"type\":\"DisruptionTarget\","         \
    "\"status\":\"True\",\"reason\":\"" reason "\"}]}}"

static bool pod_is_terminating(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = object_is_terminating(sim_get(s, a, "pods", "default", "a"));

    arena_free(a);
    return is;
}

static bool pod_has_failed(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    bool is = str_eqc(json_str_at(pod, "status.phase"), "Failed") && object_is_terminating(pod);

    arena_free(a);
    return is;
}

static void assert_ended(struct sim *s, const char *phase, const char *reason)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    const cJSON *target =
        condition_find(json_path(pod, "status.conditions"), STR("DisruptionTarget"));

    if (!str_eqc(json_str_at(pod, "status.phase"), phase) ||
        !str_eqc(json_str(json_get(target, "reason")), reason))
        fail_msg("wanted %s, %s: %s", phase, reason, json_text(a, json_get(pod, "status")).p);
    arena_free(a);
}

static struct sim *sim_with_a_kept_pod(uint64_t seed)
{
    struct sim *s = sim_new_ready(seed, NULL);

    sim_create(s, "pods", "default", KEPT);
    sim_until(s, sim_pods_run, "the pod to run");
    return s;
}

static void let_go(struct sim *s)
{
    sim_patch(s, "pods", "default", "a", "{'metadata':{'finalizers':null}}");
    sim_until(s, sim_pod_is_gone, "the pod to be gone");
    sim_until(s, sim_nothing_recorded, "no records");
    sim_free(s);
}

/* The reason and the deletion come at once: no run sees the host pod in between. */
static void test_the_last_status_comes_up(void **state)
{
    struct sim *s = sim_with_a_kept_pod(9);
    char name[64];

    (void)state;
    host_name_of(s, "a", name);
    fake_host_patch(s->host, "pods", name, DISRUPTED("Failed", "PreemptionByScheduler"));
    fake_host_patch(s->host, "pods", name,
                    "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:30Z\"}}");
    assert_true(fake_host_remove(s->host, "pods", name));
    sim_until(s, pod_is_terminating, "the virtual pod to follow");
    assert_ended(s, "Failed", "PreemptionByScheduler");
    let_go(s);
}

/* The garbage collector of pods marks those of a deleted node and gives them no grace period. */
static void test_a_pod_of_a_lost_node_is_deleted(void **state)
{
    struct sim *s = sim_with_a_kept_pod(10);
    char name[64];

    (void)state;
    host_name_of(s, "a", name);
    fake_host_patch(s->host, "pods", name, DISRUPTED("Failed", "DeletionByPodGC"));
    assert_true(fake_host_remove(s->host, "pods", name));
    sim_until(s, pod_is_terminating, "the virtual pod to follow");
    assert_ended(s, "Failed", "DeletionByPodGC");
    let_go(s);
}

/* No final status was seen. A Job with a pod failure policy counts terminal pods only. */
static void test_a_kept_pod_does_not_run_for_ever(void **state)
{
    struct sim *s = sim_with_a_kept_pod(11);

    (void)state;
    sim_close(s);
    assert_true(fake_host_remove(s->host, "pods", NULL));
    sim_open(s);
    sim_until(s, pod_has_failed, "the virtual pod to end");
    assert_ended(s, "Failed", "");
    let_go(s);
}

static void test_a_finished_pod_stays_with_the_tenant(void **state)
{
    struct sim *s = sim_new_ready(12, NULL);
    char name[64];

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    host_name_of(s, "a", name);
    fake_host_patch(s->host, "pods", name, DISRUPTED("Failed", "TerminationByKubelet"));
    assert_true(fake_host_remove(s->host, "pods", name));
    sim_run_ms(s, QUIET_MS);
    assert_false(pod_is_terminating(s));
    assert_ended(s, "Failed", "TerminationByKubelet");
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pod_is_gone, "the pod to be gone");
    sim_free(s);
}

/* --- Events about what has gone --- */

static void put_event(struct sim *s, const char *event, const char *name, const char *host_uid)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s.%s\"},\"involvedObject\":{\"kind\":\"Pod\","
             "\"namespace\":\"%.*s\",\"name\":\"%s\",\"uid\":\"%s\"},"
             "\"reason\":\"Preempted\",\"message\":\"%s\"}",
             name, event, STR_F(s->config.host_namespace), name, host_uid, event);
    fake_host_put(s->host, "events", text);
}

static bool first_is_copied(struct sim *s)
{
    return events(s, "Preempted", "first") == 1;
}

static void copy_uid(const cJSON *object, char ret[64])
{
    snprintf(ret, 64, "%.*s", STR_F(json_str_at(object, "metadata.uid")));
}

/* A pod `a` that runs, under the virtual and the host uid that it has. */
static void run_pod(struct sim *s, char virtual_uid[64], char host_uid[64])
{
    struct arena *a = arena_new(0);

    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    copy_uid(json_first(fake_host_list(s->host, a, "pods")), host_uid);
    copy_uid(sim_get(s, a, "pods", "default", "a"), virtual_uid);
    arena_free(a);
}

static void assert_preempted(struct sim *s, const char *virtual_uid)
{
    struct arena *a = arena_new(0);

    json_each(event, sim_list(s, a, "events", "default"))
    {
        if (str_eqc(json_str_at(event, "reason"), "Preempted"))
            assert_true(str_eqc(json_str_at(event, "involvedObject.uid"), virtual_uid));
    }
    arena_free(a);
}

/* --- of every kind that goes down --- */

struct involved {
    const char *resource, *kind, *body;
    bool with_pod; /* goes down with one only; is remembered after it has gone */
};

/* s->note: the resource. Beside it the host has the kubeconfig's Secret. */
static const cJSON *found_down(struct sim *s, struct arena *a)
{
    json_each(o, fake_host_list(s->host, a, s->note))
    {
        if (str_eqc(json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/name")),
                    "a"))
            return o;
    }
    return NULL;
}

static bool is_down(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = found_down(s, a);

    arena_free(a);
    return is;
}

static bool has_left(struct sim *s)
{
    return !is_down(s);
}

static bool second_is_copied(struct sim *s)
{
    return events(s, "Preempted", "second") == 1;
}

static void report_event(struct sim *s, const struct involved *t, const char *event,
                         const char *name, const char *uid)
{
    fake_host_put(s->host, "events",
                  arena_printf(s->arena,
                               "{\"metadata\":{\"name\":\"%s.%s\"},\"involvedObject\":{\"kind\":"
                               "\"%s\",\"apiVersion\":\"v1\",\"namespace\":\"%.*s\",\"name\":"
                               "\"%s\",\"uid\":\"%s\"},\"reason\":\"Preempted\",\"message\":"
                               "\"%s\"}",
                               name, event, t->kind, STR_F(s->config.host_namespace), name, uid,
                               event)
                      .p);
}

static void events_of(const struct involved *t)
{
    struct sim *s = sim_new_ready(16, "sync: {toHost: {serviceAccounts: {enabled: true}}}\n");
    const cJSON *host;
    char name[64], uid[64];

    snprintf(s->note, sizeof(s->note), "%s", t->resource);
    sim_create(s, t->resource, "default", t->body);
    sim_writes_done(s);
    if (t->with_pod)
        sim_create_pod(s, "p", "", ",'serviceAccountName':'a'");
    sim_until(s, is_down, t->resource);
    host = found_down(s, s->arena);
    copy_uid(host, uid);
    snprintf(name, sizeof(name), "%.*s", STR_F(json_str_at(host, "metadata.name")));
    report_event(s, t, "foreign", name, "host-uid-of-another");
    report_event(s, t, "first", name, uid);
    sim_until(s, first_is_copied, t->kind);

    if (t->with_pod)
        sim_delete(s, "pods", "default", "p", 0);
    sim_delete(s, t->resource, "default", "a", 0);
    sim_writes_done(s);
    sim_until(s, has_left, t->resource);
    report_event(s, t, "second", name, uid);
    if (t->with_pod)
        sim_until(s, second_is_copied, t->kind);
    sim_run_ms(s, QUIET_MS);
    assert_int_equal(events(s, "Preempted", ""), t->with_pod ? 2 : 1);
    sim_free(s);
}

static void test_events_of_data_and_accounts(void **state)
{
    static const struct involved cases[] = {
        {"configmaps", "ConfigMap",
         "{'metadata':{'name':'a','annotations':{'sublet.dev/sync':'true'}}}"},
        {"secrets", "Secret", "{'metadata':{'name':'a','annotations':{'sublet.dev/sync':'true'}}}"},
        {"serviceaccounts", "ServiceAccount", "{'metadata':{'name':'a'}}", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        events_of(&cases[i]);
}

/* The scheduler's Event and the end of the pod come by two watches. A pod of the same name that is
 * there by then is another one. */
static void test_an_event_after_the_deletion_is_copied(void **state)
{
    struct sim *s = sim_new_ready(14, NULL);
    char name[64], host_uid[64], virtual_uid[64], next_host[64], next_virtual[64];

    (void)state;
    run_pod(s, virtual_uid, host_uid);
    host_name_of(s, "a", name);
    assert_true(fake_host_remove(s->host, "pods", name));
    sim_until(s, sim_pod_is_gone, "the pod to be gone");
    run_pod(s, next_virtual, next_host);
    assert_string_not_equal(host_uid, next_host);

    put_event(s, "foreign", name, "host-uid-of-another");
    put_event(s, "first", name, host_uid);
    sim_until(s, first_is_copied, "the Event");
    sim_run_ms(s, QUIET_MS);
    assert_int_equal(events(s, "Preempted", ""), 1);
    assert_preempted(s, virtual_uid);
    sim_free(s);
}

/* The time is that of KEPT_MS in events.c. */
static void test_a_deleted_pod_is_not_remembered_for_ever(void **state)
{
    struct sim *s = sim_new_ready(15, NULL);
    char name[64], host_uid[64], virtual_uid[64];

    (void)state;
    run_pod(s, virtual_uid, host_uid);
    host_name_of(s, "a", name);
    assert_true(fake_host_remove(s->host, "pods", name));
    sim_until(s, sim_pod_is_gone, "the pod to be gone");
    put_event(s, "first", name, host_uid);
    sim_until(s, first_is_copied, "the Event");
    sim_jump(s, 31);
    sim_run_ms(s, QUIET_MS);
    put_event(s, "late", name, host_uid);
    sim_run_ms(s, QUIET_MS);
    assert_int_equal(events(s, "Preempted", ""), 1);
    sim_free(s);
}

/* --- labels that lists select by --- */

#define UNLABELLED "{\"metadata\":{\"labels\":{\"sublet.dev/cluster\":null}}}"
#define UNMARKED                                                                                   \
    "{\"metadata\":{\"labels\":{\"sublet.dev/cluster\":null,\"sublet.dev/namespace\":null},"       \
    "\"annotations\":{\"sublet.dev/uid\":null}}}"

/* That which is made for default/a: by its name, since it may have no marks. */
static const cJSON *made_for_a(struct sim *s, struct arena *a, const char *plural)
{
    char name[64];

    host_name_of(s, "a", name);
    json_each(o, fake_host_list(s->host, a, plural))
    {
        if (str_eqc(json_str_at(o, "metadata.name"), name))
            return o;
    }
    return NULL;
}

static bool is_marked(struct sim *s, const char *plural)
{
    struct arena *a = arena_new(0);
    const cJSON *object = made_for_a(s, a, plural);
    struct str ns, name, uid;
    bool is = translate_owner(&s->syncer->tenant, object, &ns, &name, &uid);

    arena_free(a);
    return is;
}

static bool pod_is_marked(struct sim *s)
{
    return is_marked(s, "pods") && sim_worlds_agree(s);
}

static bool host_pod_has_gone(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool gone = !made_for_a(s, a, "pods");

    arena_free(a);
    return gone;
}

static int64_t charged(struct sim *s)
{
    struct arena *a = arena_new(0);
    struct str uid = json_str_at(sim_get(s, a, "pods", "default", "a"), "metadata.uid");
    bool is = sync_ledger_charged(s->syncer->ledger, uid).n;

    arena_free(a);
    return is;
}

static void assert_runs_as(struct sim *s, const char *virtual_uid, const char *host_uid)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");

    assert_true(str_eqc(json_str_at(pod, "metadata.uid"), virtual_uid));
    assert_false(object_is_terminating(pod));
    assert_true(str_eqc(json_str_at(pod, "status.phase"), "Running"));
    assert_true(str_eqc(json_str_at(made_for_a(s, a, "pods"), "metadata.uid"), host_uid));
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    assert_true(charged(s));
    arena_free(a);
}

static struct sim *sim_with_a_gpu_pod(uint64_t seed, char virtual_uid[64], char host_uid[64])
{
    struct sim *s = sim_new_ready(seed, POOLS);
    struct arena *a = arena_new(0);

    sim_create_pod(s, "a", GPU(1), "");
    sim_until(s, sim_pods_run, "the pod to run");
    copy_uid(made_for_a(s, a, "pods"), host_uid);
    copy_uid(sim_get(s, a, "pods", "default", "a"), virtual_uid);
    arena_free(a);
    return s;
}

static void unlabel(struct sim *s, const char *plural, const char *patch)
{
    char name[64];

    host_name_of(s, "a", name);
    fake_host_patch(s->host, plural, name, patch);
}

/* ... while no process runs. */
static void unlabel_meanwhile(struct sim *s, const char *patch)
{
    char name[64];

    host_name_of(s, "a", name);
    sim_close(s);
    fake_host_patch(s->host, "pods", name, patch);
    sim_open(s);
}

/* A client of the host removes the label: the watch reports a deletion, and the next list of a
 * process that starts lacks the pod. It runs on. */
static void test_a_pod_without_its_label_is_not_deleted(void **state)
{
    static const char *const patches[] = {UNLABELLED, UNMARKED};

    (void)state;
    for (unsigned i = 0; i < 2 * COUNT(patches); i++) {
        char virtual_uid[64], host_uid[64];
        struct sim *s = sim_with_a_gpu_pod(20 + i, virtual_uid, host_uid);

        if (i % 2)
            unlabel_meanwhile(s, patches[i / 2]);
        else
            unlabel(s, "pods", patches[i / 2]);
        sim_until(s, pod_is_marked, "the labels to be set again");
        sim_run_ms(s, QUIET_MS);
        assert_runs_as(s, virtual_uid, host_uid);
        assert_int_equal(events(s, "SyncError", "labels by which it is found"), 1);
        sim_delete(s, "pods", "default", "a", 0);
        sim_until(s, sim_pod_is_gone, "the pod to be gone");
        sim_until(s, host_pod_has_gone, "the host pod to be gone");
        sim_until(s, sim_nothing_recorded, "no records");
        sim_free(s);
    }
}

/* The tenant deletes it before the label is back. */
static void test_a_deleted_pod_without_its_label_leaves_the_host(void **state)
{
    char virtual_uid[64], host_uid[64];
    struct sim *s = sim_with_a_gpu_pod(24, virtual_uid, host_uid);

    (void)state;
    fake_host_faults(s->host)->slow = "pods";
    unlabel(s, "pods", UNLABELLED);
    sim_delete(s, "pods", "default", "a", 0);
    sim_writes_done(s);
    fake_host_faults(s->host)->slow = NULL;
    sim_until(s, sim_pod_is_gone, "the pod to be gone");
    sim_until(s, host_pod_has_gone, "the host pod to be gone");
    sim_until(s, sim_nothing_recorded, "no records");
    sim_free(s);
}

/* Another one has its name by now: it was deleted, and this one is left alone. */
static void test_another_pod_of_its_name_is_none_of_ours(void **state)
{
    struct sim *s = sim_new_ready(25, NULL);
    char text[512], name[64];

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    host_name_of(s, "a", name);
    sim_close(s);
    assert_true(fake_host_remove(s->host, "pods", name));
    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\"},\"spec\":{}}", name);
    fake_host_put(s->host, "pods", text);
    sim_open(s);
    sim_until(s, sim_pod_is_gone, "the pod to be gone");
    sim_run_ms(s, QUIET_MS);
    assert_false(host_pod_has_gone(s));
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

static bool claim_is_marked(struct sim *s)
{
    return is_marked(s, "persistentvolumeclaims");
}

static bool claim_is_lost(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *claim = sim_get(s, a, "persistentvolumeclaims", "default", "a");
    bool is = str_eqc(json_str_at(claim, "status.phase"), "Lost");

    arena_free(a);
    return is;
}

static void test_a_claim_without_its_label_is_not_lost(void **state)
{
    struct sim *s = sim_new_ready(26, "policy: {storageClasses: [standard]}\n");
    char name[64];

    (void)state;
    sim_create(s, "persistentvolumeclaims", "default", CLAIM);
    sim_until(s, claim_is_1, "the claim on the host");
    unlabel(s, "persistentvolumeclaims",
            "{\"spec\":{\"volumeName\":\"pv\"},\"status\":{\"phase\":\"Bound\",\"capacity\":"
            "{\"storage\":\"1Gi\"}}}");
    sim_until(s, claim_is_bound, "the claim to be bound");
    unlabel(s, "persistentvolumeclaims", UNLABELLED);
    sim_until(s, claim_is_marked, "the labels to be set again");
    sim_run_ms(s, QUIET_MS);
    assert_true(claim_is_bound(s));
    assert_int_equal(events(s, "ClaimLost", ""), 0);
    host_name_of(s, "a", name);
    assert_true(fake_host_remove(s->host, "persistentvolumeclaims", name));
    sim_until(s, claim_is_lost, "the claim to be lost");
    sim_free(s);
}

/* --- labels and annotations that the host writes --- */

#define KEYS_UP                                                                                    \
    "policy: {labels: {fromHost: [zone.example/], allow: [both.example/]}, annotations: "          \
    "{fromHost: [lb.example/, both.example/], allow: [both.example/]}}\n"

static struct str shown_key(struct sim *s, const char *map, const char *key)
{
    struct arena *a = arena_new(0);
    const cJSON *meta = json_get(sim_get(s, a, "pods", "default", "a"), "metadata");
    struct str ret = arena_str(s->arena, json_str(json_get(json_get(meta, map), key)));

    arena_free(a);
    return ret;
}

static struct str version(struct sim *s)
{
    struct arena *a = arena_new(0);
    struct str ret = arena_str(
        s->arena, json_str_at(sim_get(s, a, "pods", "default", "a"), "metadata.resourceVersion"));

    arena_free(a);
    return ret;
}

static bool first_is_shown(struct sim *s)
{
    return str_eqc(shown_key(s, "labels", "zone.example/name"), "z1") &&
           str_eqc(shown_key(s, "annotations", "both.example/a"), "h1");
}

static bool second_is_shown(struct sim *s)
{
    return !shown_key(s, "labels", "zone.example/name").n &&
           str_eqc(shown_key(s, "annotations", "both.example/a"), "h2");
}

static bool nothing_is_shown(struct sim *s)
{
    return !shown_key(s, "annotations", "both.example/a").n &&
           !shown_key(s, "annotations", "sublet.dev/host-keys").n;
}

/* Also while the virtual cluster is closed. */
static void host_writes(struct sim *s, const char *name, const char *metadata)
{
    fake_host_patch(s->host, "pods", name,
                    arena_printf(s->arena, "{\"metadata\":{%s}}", metadata).p);
}

static void expect_quiet(struct sim *s, unsigned at_least, unsigned at_most)
{
    struct str before = version(s);

    expect_patches(s, at_least, at_most);
    assert_true(str_eq(version(s), before));
}

/* One patch: the label, under the hash of its key. The annotation does not go down again, though
 * its key is one that may. */
static void test_keys_of_the_host_come_up_without_a_loop(void **state)
{
    struct sim *s = sim_new_ready(16, KEYS_UP);
    char name[64];

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    host_name_of(s, "a", name);
    host_writes(s, name,
                "\"labels\":{\"zone.example/name\":\"z1\"},"
                "\"annotations\":{\"both.example/a\":\"h1\",\"other\":\"h\"}");
    sim_until(s, first_is_shown, "the keys of the host");
    sim_run_ms(s, QUIET_MS);
    expect_quiet(s, 1, 1);
    assert_int_equal(shown_key(s, "annotations", "other").n, 0);

    /* The next process goes by the record in the object. */
    sim_close(s);
    host_writes(s, name,
                "\"labels\":{\"zone.example/name\":null},"
                "\"annotations\":{\"both.example/a\":\"h2\"}");
    sim_open(s);
    sim_until(s, second_is_shown, "what the host changed meanwhile");
    sim_run_ms(s, QUIET_MS);
    expect_quiet(s, 2, 2);

    host_writes(s, name, "\"annotations\":{\"both.example/a\":null}");
    sim_until(s, nothing_is_shown, "the annotation to be gone");
    sim_run_ms(s, QUIET_MS);
    expect_quiet(s, 2, 2);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_image_rewritten_at_create_stays),
        cmocka_unit_test(test_an_image_rewritten_at_update_stays),
        cmocka_unit_test(test_an_image_rewritten_always_stays),
        cmocka_unit_test(test_a_resize_by_the_host_stays),
        cmocka_unit_test(test_a_resize_that_the_host_changes_ends),
        cmocka_unit_test(test_a_claim_that_the_host_grew_stays),
        cmocka_unit_test(test_a_patch_that_is_undone_is_not_repeated_at_once),
        cmocka_unit_test(test_the_last_status_comes_up),
        cmocka_unit_test(test_a_pod_of_a_lost_node_is_deleted),
        cmocka_unit_test(test_a_kept_pod_does_not_run_for_ever),
        cmocka_unit_test(test_a_finished_pod_stays_with_the_tenant),
        cmocka_unit_test(test_a_pod_without_its_label_is_not_deleted),
        cmocka_unit_test(test_a_deleted_pod_without_its_label_leaves_the_host),
        cmocka_unit_test(test_another_pod_of_its_name_is_none_of_ours),
        cmocka_unit_test(test_a_claim_without_its_label_is_not_lost),
        cmocka_unit_test(test_events_of_data_and_accounts),
        cmocka_unit_test(test_an_event_after_the_deletion_is_copied),
        cmocka_unit_test(test_a_deleted_pod_is_not_remembered_for_ever),
        cmocka_unit_test(test_keys_of_the_host_come_up_without_a_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
