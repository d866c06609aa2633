/* SPDX-License-Identifier: Apache-2.0 */
/* The syncer on a host that drops, loses, delays, forgets and is away, with restarts in between.
 * What happens is chosen by a seed, printed on failure (run again with SEED=n). However it goes:
 * when the faults end, both worlds agree; no pod was ever made twice; nothing of others was
 * touched. */
#include "worlds.h"

#include <inttypes.h>
#include <stdlib.h>

#include "engine.h"

static bool is_empty(struct sim *s)
{
    return sim_worlds_agree(s) && !fake_host_count(s->host, "pods") &&
           !fake_host_count(s->host, "services") && !fake_host_count(s->host, "secrets") &&
           !fake_host_count(s->host, "configmaps") &&
           !fake_host_count(s->host, "persistentvolumeclaims");
}

/* --- single stories --- */

static void test_pod_goes_down_and_status_comes_up(void **state)
{
    struct sim *s = sim_new_ready(1, NULL);

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    sim_delete(s, "pods", "default", "a", -1);
    sim_until(s, is_empty, "the host to be empty");
    sim_until(s, sim_nothing_recorded, "no records");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

static void test_pod_removed_on_the_host_is_not_brought_back(void **state)
{
    struct sim *s = sim_new_ready(2, NULL);

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    assert_true(fake_host_remove(s->host, "pods", NULL));
    sim_until(s, sim_pod_is_gone, "the virtual pod to follow");
    sim_until(s, is_empty, "the host to be empty");
    sim_free(s);
}

static bool foreign_refused(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool said = false;

    json_each(event, sim_list(s, a, "events", "")) said |=
        str_contains(json_str_at(event, "message"), STR("not this cluster's"));
    arena_free(a);
    return said;
}

static void test_foreign_object_is_never_touched(void **state)
{
    struct sim *s = sim_new_ready(3, NULL);
    char name[64], text[128];

    (void)state;
    translate_name(&s->syncer->tenant, STR("default"), STR("a"), name);
    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\"}}", name);
    fake_host_put(s->host, "pods", text);
    sim_create_pod(s, "a", "", "");
    sim_until(s, foreign_refused, "an event");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_delete(s, "pods", "default", "a", -1);
    sim_writes_done(s);
    sim_run_ms(s, 50);
    assert_int_equal(fake_host_trespasses(s->host), 0);
    assert_true(fake_host_remove(s->host, "pods", name));
    sim_free(s);
}

/* Everything the tenant had is lost: what runs on the host is not ours to judge. */
static void test_unknown_objects_of_our_cluster_stay(void **state)
{
    struct sim *s = sim_new_ready(4, NULL);
    char text[512];

    (void)state;
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"lost\",\"labels\":{\"sublet.dev/cluster\":\"%.*s\"},"
             "\"annotations\":{\"sublet.dev/name\":\"x\",\"sublet.dev/namespace\":\"default\","
             "\"sublet.dev/uid\":\"u\"}}}",
             STR_F(s->syncer->tenant.cluster_uid));
    fake_host_put(s->host, "pods", text);
    sim_create_pod(s, "a", "", "");
    sim_run_ms(s, 200);
    assert_true(fake_host_remove(s->host, "pods", "lost"));
    sim_free(s);
}

/* --- labels under other keys than before --- */

#define WEB                                                                                        \
    "{'metadata':{'name':'%s','labels':{'app':'web'}},'spec':{'containers':[{'name':'c',"          \
    "'image':'i'}]}}"

static size_t selected(const cJSON *selector, const cJSON *pods)
{
    size_t n = 0;

    json_each(pod, pods)
    {
        const cJSON *labels = json_path(pod, "metadata.labels");
        bool all = true;

        json_each(want, selector) all &= json_equal(json_get(labels, want->string), want);
        n += all;
    }
    return n;
}

/* At every look the Service on the host selects all its pods. */
static bool service_selects(struct sim *s, const char *key, bool alone)
{
    struct arena *a = arena_new(0);
    cJSON *pods = fake_host_list(s->host, a, "pods");
    const cJSON *service = json_at(fake_host_list(s->host, a, "services"), 0);
    const cJSON *selector = json_path(service, "spec.selector");
    bool there = json_get(selector, key) != NULL;

    if (service && json_count(pods) == 3)
        assert_int_equal(selected(selector, pods), 3);
    json_each(pod, pods)
    {
        there &= json_get(json_path(pod, "metadata.labels"), key) != NULL;
        there &= !alone || !json_get(json_path(pod, "metadata.labels"), "app");
    }
    there &= json_count(pods) == 3;
    arena_free(a);
    return there;
}

static bool selects_by_plain_key(struct sim *s)
{
    return service_selects(s, "app", false) && sim_pods_run(s);
}

static bool selects_by_hashed_key(struct sim *s)
{
    struct arena *a = arena_new(0);
    struct str key = translate_label_key(a, &s->syncer->tenant, STR("app"));
    bool done = service_selects(s, arena_cstr(a, key), true);

    arena_free(a);
    return done;
}

/* A version, or a configuration, that sent the key as it is left it on the host. */
static void test_labels_move_without_a_gap(void **state)
{
    struct arena *a = arena_new(0);
    struct str before[3];
    struct sim *s;

    (void)state;
    for (uint64_t seed = 31; seed < 36; seed++) {
        cJSON *pods;

        s = sim_new_ready(seed, "policy: {labels: {allow: [app]}}\n");
        sim_create(s, "services", "default",
                   "{'metadata':{'name':'web'},'spec':{'selector':{'app':'web'},"
                   "'ports':[{'port':80}]}}");
        for (size_t i = 0; i < 3; i++) {
            char text[256], name[8];

            snprintf(name, sizeof(name), "w%zu", i);
            snprintf(text, sizeof(text), WEB, name);
            sim_create(s, "pods", "default", text);
        }
        sim_until(s, selects_by_plain_key, "the pods behind their Service");
        pods = fake_host_list(s->host, a, "pods");
        for (size_t i = 0; i < 3; i++)
            before[i] = json_str_at(json_at(pods, i), "metadata.uid");
        sim_close(s);
        s->config.labels_allow = (struct str_list){0};
        fake_host_faults(s->host)->max_delay_ms = 20;
        sim_open(s);
        sim_until(s, selects_by_hashed_key, "the hashed key alone");
        pods = fake_host_list(s->host, a, "pods");
        for (size_t i = 0; i < 3; i++)
            assert_true(str_eq(json_str_at(json_at(pods, i), "metadata.uid"), before[i]));
        assert_int_equal(fake_host_trespasses(s->host), 0);
        sim_free(s);
    }
    arena_free(a);
}

/* --- storage classes --- */

#define CLASS(name, more)                                                                          \
    "{\"metadata\":{\"name\":\"" name "\"" more "},\"provisioner\":\"x.example/y\"}"
#define DEFAULT_CLASS(name)                                                                        \
    CLASS(name, ",\"annotations\":{\"storageclass.kubernetes.io/is-default-class\":\"true\"}")
#define CLAIM(name, more)                                                                          \
    "{'metadata':{'name':'" name "'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{"        \
    "'requests':{'storage':'1Gi'}}" more "}}"

static bool claim_on_host(struct sim *s)
{
    return fake_host_count(s->host, "persistentvolumeclaims") == 1;
}

/* The class of the only claim on the host. */
static void assert_host_class(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    const cJSON *claim = json_at(fake_host_list(s->host, a, "persistentvolumeclaims"), 0);

    if (!str_eqc(json_str_at(claim, "spec.storageClassName"), name))
        fail_msg("the host's claim: %s", json_text(a, claim).p);
    arena_free(a);
}

static bool class_known(struct sim *s)
{
    return s->syncer->tenant.host_class_known;
}

static bool default_is_shown(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *list = sim_list(s, a, "storageclasses.storage.k8s.io", "");
    const cJSON *notes = json_path(json_at(list, 0), "metadata.annotations");
    bool shown = json_count(list) == 1 &&
                 str_eqc(json_str_at(json_at(list, 0), "metadata.name"), "standard") &&
                 json_get(notes, "storageclass.kubernetes.io/is-default-class");

    arena_free(a);
    return shown;
}

static void refused_claim(struct sim *s, const char *text, const char *why)
{
    s->refusal[0] = 0;
    sim_create(s, "persistentvolumeclaims", "default", text);
    sim_writes_done(s);
    if (!strstr(s->refusal, why))
        fail_msg("refusal \"%s\", wanted \"%s\"", s->refusal, why);
}

/* With no list the host's default is all there is; readable or not, it goes down by name. */
static void test_the_default_class_alone_is_offered(void **state)
{
    (void)state;
    for (int readable = 0; readable < 2; readable++) {
        struct sim *s = sim_new_ready(41, NULL);

        sim_close(s);
        if (!readable)
            fake_host_faults(s->host)->unreadable = "storageclasses";
        fake_host_put(s->host, "storageclasses", DEFAULT_CLASS("standard"));
        fake_host_put(s->host, "storageclasses", CLASS("gold", ""));
        sim_open(s);
        sim_until(s, default_is_shown, "the default class, and no other");
        refused_claim(s, CLAIM("a", ",'storageClassName':'gold'"), "\"gold\" is not offered");
        refused_claim(s, CLAIM("a", ",'storageClassName':''"), "bound by hand");
        refused_claim(s, CLAIM("a", ",'volumeName':'admins'"), "picking a volume is not allowed");
        sim_create(s, "persistentvolumeclaims", "default", CLAIM("a", ""));
        sim_until(s, claim_on_host, "the claim on the host");
        assert_host_class(s, "standard");
        sim_delete(s, "persistentvolumeclaims", "default", "a", -1);
        sim_until(s, is_empty, "the host to be empty");
        sim_free(s);
    }
}

/* A claim without a class would bind to any classless volume of the admin's. */
static void test_no_class_is_no_claim(void **state)
{
    struct sim *s = sim_new_ready(42, NULL);

    (void)state;
    fake_host_put(s->host, "storageclasses", CLASS("gold", ""));
    sim_until(s, class_known, "the host's classes");
    refused_claim(s, CLAIM("a", ""), "no storage class is offered");
    assert_int_equal(fake_host_count(s->host, "persistentvolumeclaims"), 0);
    sim_free(s);
}

static bool refusal_told(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool said = false;

    json_each(event, sim_list(s, a, "events", "")) said |=
        str_contains(json_str_at(event, "message"), STR("\"gold\" is not offered")) &&
        (str_eqc(json_str_at(event, "involvedObject.kind"), "StatefulSet") ||
         str_eqc(json_str_at(event, "involvedObject.kind"), "PersistentVolumeClaim"));
    arena_free(a);
    return said;
}

/* While the host is away claims are taken; what becomes of them is said when it is back. */
static void test_claims_wait_for_the_class(void **state)
{
    struct sim *s = sim_new_ready(43, NULL);

    (void)state;
    sim_close(s);
    fake_host_put(s->host, "storageclasses", DEFAULT_CLASS("standard"));
    fake_host_faults(s->host)->down = true;
    sim_open(s);
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("a", ""));
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("b", ",'storageClassName':'gold'"));
    sim_writes_done(s);
    fake_host_faults(s->host)->down = false;
    sim_until(s, claim_on_host, "the claim without a class");
    assert_host_class(s, "standard");
    sim_until(s, refusal_told, "an event of the claim that is refused");
    assert_int_equal(fake_host_count(s->host, "persistentvolumeclaims"), 1);
    sim_free(s);
}

static bool volume_is_bound(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = str_eqc(
        json_str_at(sim_get(s, a, "persistentvolumes", "", "pv-of-the-host"), "status.phase"),
        "Bound");

    arena_free(a);
    return is;
}

static void shown_policy(const char *class, const char *policy)
{
    struct sim *s = sim_new_ready(45, "policy: {storageClasses: [gold, kept]}\n");
    const cJSON *claim, *volume;

    fake_host_put(s->host, "storageclasses", CLASS("gold", ""));
    fake_host_put(s->host, "storageclasses",
                  "{\"metadata\":{\"name\":\"kept\"},\"provisioner\":\"x.example/y\","
                  "\"reclaimPolicy\":\"Retain\"}");
    sim_run_ms(s, 1000);
    sim_create(s, "persistentvolumeclaims", "default",
               arena_printf(s->arena, CLAIM("a", ",'storageClassName':'%s'"), class).p);
    sim_writes_done(s);
    sim_until(s, claim_on_host, "the claim on the host");
    claim = json_first(fake_host_list(s->host, s->arena, "persistentvolumeclaims"));
    fake_host_patch(s->host, "persistentvolumeclaims",
                    arena_cstr(s->arena, json_str_at(claim, "metadata.name")),
                    "{\"spec\":{\"volumeName\":\"pv-of-the-host\"},\"status\":{\"phase\":\"Bound\","
                    "\"accessModes\":[\"ReadWriteOnce\"],\"capacity\":{\"storage\":\"1Gi\"}}}");
    sim_until(s, volume_is_bound, "the volume of the claim");
    volume = sim_get(s, s->arena, "persistentvolumes", "", "pv-of-the-host");
    assert_true(str_eqc(json_str_at(volume, "spec.persistentVolumeReclaimPolicy"), policy));
    sim_free(s);
}

/* What the tenant reads of its data after the claim is what the host does. */
static void test_volumes_have_the_reclaim_policy_of_the_class(void **state)
{
    (void)state;
    shown_policy("gold", "Delete");
    shown_policy("kept", "Retain");
}

static bool own_claims_told(struct sim *s)
{
    struct arena *a = arena_new(0);
    size_t n = 0;

    json_each(event, sim_list(s, a, "events", "")) n +=
        str_eqc(json_str_at(event, "reason"), "NotSynced");
    arena_free(a);
    return n == 2;
}

/* A class or a volume that the tenant made itself is for a provisioner of its own. */
static void test_claims_of_own_classes_stay(void **state)
{
    struct sim *s = sim_new_ready(45, "policy: {storageClasses: [standard]}\n");

    (void)state;
    sim_create(s, "storageclasses.storage.k8s.io", "",
               "{'metadata':{'name':'mine'},'provisioner':'a.example/b'}");
    sim_create(s, "persistentvolumes", "",
               "{'metadata':{'name':'pv'},'spec':{'storageClassName':'gold','accessModes':"
               "['ReadWriteOnce'],'capacity':{'storage':'1Gi'},'csi':{'driver':'d','volumeHandle':"
               "'h'}}}");
    sim_writes_done(s);
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("b", ",'storageClassName':'mine'"));
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("c", ",'storageClassName':'gold'"));
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    sim_until(s, own_claims_told, "the claims to be told apart");
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("a", ""));
    sim_until(s, claim_on_host, "the claim of the host");
    assert_int_equal(fake_host_count(s->host, "persistentvolumeclaims"), 1);
    refused_claim(s, CLAIM("x", ",'storageClassName':'old'"), "\"old\" is not offered");
    sim_free(s);
}

static void test_refused_claims_of_a_set_are_told(void **state)
{
    struct sim *s = sim_new_ready(44, "policy: {storageClasses: [standard]}\n");

    (void)state;
    sim_create(s, "statefulsets.apps", "default",
               "{'metadata':{'name':'db'},'spec':{'serviceName':'db','selector':{'matchLabels':{"
               "'app':'db'}},'template':{'metadata':{'labels':{'app':'db'}},'spec':{'containers':[{"
               "'name':'c','image':'i'}]}},'volumeClaimTemplates':[{'metadata':{'name':'data'},"
               "'spec':{'storageClassName':'gold','accessModes':['ReadWriteOnce'],'resources':{"
               "'requests':{'storage':'1Gi'}}}}]}}");
    sim_until(s, refusal_told, "an event of the set");
    sim_free(s);
}

/* A claim that is on the host keeps its class, whatever is offered by now. */
static void test_claims_on_the_host_stay(void **state)
{
    struct sim *s = sim_new_ready(45, "policy: {storageClasses: [gold]}\n");
    static struct str other[] = {{"standard", 8}};

    (void)state;
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("a", ""));
    sim_until(s, claim_on_host, "the claim on the host");
    assert_host_class(s, "gold");
    sim_close(s);
    s->config.storage_classes = (struct str_list){other, 1};
    sim_open(s);
    sim_patch(s, "persistentvolumeclaims", "default", "a",
              "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}");
    sim_writes_done(s);
    sim_run_ms(s, 100);
    assert_false(refusal_told(s));
    assert_host_class(s, "gold");
    sim_free(s);
}

static bool event_told(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool told = false;

    json_each(event, sim_list(s, a, "events", "")) told |=
        str_eqc(json_str_at(event, "message"), "cannot place x") &&
        str_eqc(json_str_at(event, "involvedObject.uid"), "u");
    arena_free(a);
    return told;
}

/* The host sends Events and pods in two streams, and a busy machine reads them in any order.
 */
static void test_event_ahead_of_its_pod_is_told(void **state)
{
    struct sim *s = sim_new_ready(6, NULL);
    char name[64], text[512];
    struct arena *a = arena_new(0);
    int64_t uid = 0;

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the watches");
    sim_run_ms(s, 50);
    translate_name(&s->syncer->tenant, STR("default"), STR("x"), name);
    fake_host_put(s->host, "events", "{\"metadata\":{\"name\":\"counter\"}}");
    assert_true(str_to_i64(
        str_from(json_str_at(json_at(fake_host_list(s->host, a, "events"), 0), "metadata.uid"), 9),
        &uid)); /* "host-uid-N": the pod will be the second after it */
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s.1\"},\"involvedObject\":{\"kind\":\"Pod\","
             "\"namespace\":\"%.*s\",\"name\":\"%s\",\"uid\":\"host-uid-%" PRId64 "\"},"
             "\"message\":\"cannot place %s\"}",
             name, STR_F(s->config.host_namespace), name, uid + 2, name);
    fake_host_put(s->host, "events", text);
    sim_run_ms(s, 50);
    assert_false(event_told(s));
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%.*s\","
             "\"labels\":{\"sublet.dev/cluster\":\"%.*s\",\"sublet.dev/namespace\":\"default\"},"
             "\"annotations\":{\"sublet.dev/name\":\"x\",\"sublet.dev/namespace\":\"default\","
             "\"sublet.dev/uid\":\"u\"}}}",
             name, STR_F(s->config.host_namespace), STR_F(s->syncer->tenant.cluster_uid));
    fake_host_put(s->host, "pods", text);
    sim_until(s, event_told, "the event");
    arena_free(a);
    sim_free(s);
}

static bool four_run(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 4 && s->writes == 0;
}

static bool one_finishes(struct sim *s)
{
    return fake_host_finish_pod(s->host, "Succeeded");
}

static bool three_charged(struct sim *s)
{
    return sim_records(s, RECORD_LEDGER, "gpu/") == 3;
}

static void test_quota_is_exact(void **state)
{
    struct sim *s = sim_new_ready(5, POOLS);
    char name[16];

    (void)state;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "g%d", i);
        sim_create_pod(s, name, GPU(1), "");
    }
    sim_until(s, four_run, "four pods on the host");
    assert_non_null(strstr(s->refusal, "exceeded quota: gpu/p"));
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 4);
    sim_close(s);
    sim_open(s);
    sim_create_pod(s, "more", GPU(1), "");
    sim_writes_done(s);
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 4);

    /* A finished pod gives back what it had. */
    sim_until(s, one_finishes, "a pod that can finish");
    sim_until(s, three_charged, "the charge of the finished pod to end");
    sim_create_pod(s, "again", GPU(1), "");
    sim_writes_done(s);
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 4);
    sim_free(s);
}

#define MOST_STEPS 10000

/* A pod is replaced while its predecessor runs: both are charged until the host has one of them
 * less, also in the moment when the successor is written and not committed. */
static void test_successor_keeps_its_charge(void **state)
{
    struct sim *s = sim_new_ready(9, POOLS);

    (void)state;
    sim_create_pod(s, "a", GPU(1), "");
    sim_until(s, sim_pods_run, "the pod to run");
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 1);
    sim_delete(s, "pods", "default", "a", 0);
    sim_create_pod(s, "a", GPU(1), "");
    for (unsigned steps = 0; sim_records(s, RECORD_LEDGER, "gpu/") == 1; steps++) {
        assert_true(s->writes && steps < MOST_STEPS);
        sim_step(s);
    }
    for (unsigned steps = 0; s->writes; steps++) {
        assert_true(steps < MOST_STEPS);
        sim_step(s);
        assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 2);
    }
    sim_until(s, sim_pods_run, "the successor to run");
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 1);
    sim_free(s);
}

static bool two_on_host(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 2;
}

static bool third_waits(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool waits = false;

    json_each(pod, sim_list(s, a, "pods", ""))
    {
        json_each(condition, json_path(pod, "status.conditions")) waits |=
            str_contains(json_str(json_get(condition, "message")),
                         STR("waiting for 1 GPU in pool p: position 1"));
    }
    arena_free(a);
    return waits;
}

static void test_queue_lets_the_next_one_in(void **state)
{
    struct sim *s = sim_new_ready(6, QUEUE);

    (void)state;
    sim_create_pod(s, "a", GPU(1), "");
    sim_create_pod(s, "b", GPU(1), "");
    sim_until(s, two_on_host, "two pods");
    sim_create_pod(s, "c", GPU(1), "");
    sim_until(s, third_waits, "the third to wait in line");
    assert_int_equal(fake_host_count(s->host, "pods"), 2);
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, sim_pods_run, "the other two to run");
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 2);
    sim_free(s);
}

static bool config_is_down(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(map, fake_host_list(s->host, a, "configmaps")) found |=
        str_eqc(json_str_at(map, "data.k"), "2");
    arena_free(a);
    return found && fake_host_count(s->host, "configmaps") == 2;
}

static void test_referenced_data_follows(void **state)
{
    struct sim *s = sim_new_ready(7, NULL);

    (void)state;
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'m'},'data':{'k':'1'}}");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'unused'},'data':{'k':'1'}}");
    sim_writes_done(s);
    sim_create_pod(s, "a", ",'envFrom':[{'configMapRef':{'name':'m'}}]", "");
    sim_until(s, sim_pods_run, "the pod to run");
    sim_patch(s, "configmaps", "default", "m", "{'data':{'k':'2'}}");
    sim_until(s, config_is_down, "the change to go down"); /* with kube-root-ca.crt */
    sim_delete(s, "pods", "default", "a", 0);
    sim_until(s, is_empty, "what nobody refers to to go");
    sim_free(s);
}

static bool config_is_refused(struct sim *s)
{
    return fake_host_asked(s->host, "POST", "configmaps", false) > 1; /* after kube-root-ca.crt */
}

/* A pod that waits for a copy on the host goes down without it once the tenant has deleted the
 * original: it is not waited for any longer. */
static void test_deleted_data_is_not_waited_for(void **state)
{
    struct sim *s = sim_new_ready(7, NULL);

    (void)state;
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'m'},'data':{'k':'1'}}");
    sim_create_pod(s, "b", "",
                   ""); /* needs kube-root-ca.crt, which every pod of the namespace needs */
    sim_until(s, sim_pods_run, "a first pod to run");
    fake_host_faults(s->host)->full = "configmaps";
    sim_create_pod(s, "a", ",'envFrom':[{'configMapRef':{'name':'m'}}]", "");
    sim_until(s, config_is_refused, "the host to refuse the copy");
    sim_delete(s, "configmaps", "default", "m", 0);
    sim_until(s, sim_pods_run, "the pod to run without it");
    sim_free(s);
}

static bool no_data(struct sim *s)
{
    return !fake_host_count(s->host, "secrets") && !fake_host_count(s->host, "configmaps");
}

/* Its token and copies leave with its last container, not with its record. */
static void test_finished_pod_needs_nothing(void **state)
{
    struct sim *s = sim_new_ready(8, NULL);

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    assert_false(no_data(s));
    assert_true(fake_host_finish_pod(s->host, "Succeeded"));
    sim_until(s, no_data, "its data to go");
    sim_until(s, sim_worlds_agree, "both worlds to agree");
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    assert_true(fake_host_remove(s->host, "pods", NULL));
    sim_until(s, sim_worlds_agree, "both worlds to agree");
    assert_int_equal(sim_records(s, RECORD_MAPPING, "pods/"), 1);
    sim_free(s);
}

/* --- everything at once --- */

static void no_pod_was_made_twice(struct sim *s, const cJSON *pods)
{
    json_each(pod, pods)
    {
        if (fake_host_doubled(s->host, json_str_at(pod, "metadata.uid")))
            fail_msg("seed %llu: pod %.*s was created twice", (unsigned long long)s->seed,
                     STR_F(json_str_at(pod, "metadata.name")));
    }
}

static void random_op(struct sim *s)
{
    uint64_t r = fake_host_random(s->host) >> 8;
    char name[16], service[256];

    snprintf(name, sizeof(name), "p%d", (int)(r / 100 % 12));
    switch (r % 10) {
    case 0:
    case 1:
    case 2:
        sim_create_pod(s, name, r % 3 ? GPU(1) : ",'envFrom':[{'configMapRef':{'name':'m'}}]", "");
        break;
    case 3:
        sim_delete(s, "pods", "default", name, -1);
        break;
    case 4:
        sim_delete(s, "pods", "default", name, 0);
        break;
    case 5:
        fake_host_remove(s->host, "pods", NULL);
        break;
    case 6:
        fake_host_finish_pod(s->host, r % 2 ? "Failed" : "Succeeded");
        break;
    case 7:
        sim_patch(s, "pods", "default", name, "{'metadata':{'labels':{'app':'x'}}}");
        sim_patch(s, "configmaps", "default", "m",
                  r % 2 ? "{'data':{'k':'1'}}" : "{'data':{'k':'2'}}");
        break;
    case 8:
        snprintf(service, sizeof(service),
                 "{'metadata':{'name':'s%d'},'spec':{'ports':[{'port':80}]}}", (int)(r / 7 % 3));
        sim_create(s, "services", "default", service);
        break;
    default:
        snprintf(service, sizeof(service), "s%d", (int)(r / 7 % 3));
        sim_delete(s, "services", "default", service, -1);
        break;
    }
}

static void set_faults(struct sim *s)
{
    *fake_host_faults(s->host) = (struct fake_faults){.refuse = 40,
                                                      .lose = 60,
                                                      .busy = 30,
                                                      .fail = 40,
                                                      .cut = 20,
                                                      .expire = 10,
                                                      .max_delay_ms = 4};
}

static void remove_everything(struct sim *s)
{
    struct arena *a = arena_new(0);

    json_each(pod, sim_list(s, a, "pods", "default"))
        sim_delete(s, "pods", "default", arena_cstr(a, json_str_at(pod, "metadata.name")), 0);
    json_each(service, sim_list(s, a, "services", "default"))
    {
        if (!str_eqc(json_str_at(service, "metadata.name"), "kubernetes"))
            sim_delete(s, "services", "default",
                       arena_cstr(a, json_str_at(service, "metadata.name")), -1);
    }
    arena_free(a);
    sim_writes_done(s);
}

/* Records stay for as long as a create whose answer was lost may still happen. */
static bool nothing_recorded_in_time(struct sim *s)
{
    if (sim_nothing_recorded(s))
        return true;
    sim_jump(s, 10);
    return false;
}

static bool is_empty_in_time(struct sim *s)
{
    if (is_empty(s))
        return true;
    sim_jump(s, 10);
    return false;
}

/* Returns the hash of what the host was sent. */
static uint64_t storm(uint64_t seed)
{
    uint64_t trace;
    struct sim *s = sim_new_ready(seed, POOLS);
    struct arena *a = arena_new(0);

    sim_create(s, "configmaps", "default", "{'metadata':{'name':'m'},'data':{'k':'1'}}");
    fake_host_put(s->host, "pods", "{\"metadata\":{\"name\":\"stranger\"}}");
    set_faults(s);
    for (int step = 0; step < 150; step++) {
        random_op(s);
        sim_run_ms(s, 1 + (unsigned)(fake_host_random(s->host) % 8));
        if (step % 50 == 25) {
            sim_close(s);
            s->writes = 0;
            sim_open(s);
        }
        fake_host_faults(s->host)->down = step % 60 > 50;
    }
    *fake_host_faults(s->host) = (struct fake_faults){0};
    sim_until(s, sim_worlds_agree, "both worlds to agree");
    no_pod_was_made_twice(s, sim_list(s, a, "pods", ""));
    remove_everything(s);
    sim_until(s, is_empty_in_time, "the host to be empty");
    sim_until(s, nothing_recorded_in_time, "no records");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    assert_true(fake_host_remove(s->host, "pods", "stranger"));
    trace = fake_host_trace(s->host);
    arena_free(a);
    sim_free(s);
    return trace;
}

/* Every request with its body, and the millisecond of its arrival. */
static void test_one_seed_is_one_run(void **state)
{
    uint64_t trace = storm(1);

    (void)state;
    assert_true(storm(1) == trace);
    assert_true(storm(2) != trace);
}

/* Random faults over random work: a dozen seeds in every run, others on request (SEED=n for
 * one, SEEDS=n for the first n). */
static void test_storms(void **state)
{
    const char *seed = getenv("SEED"), *seeds = getenv("SEEDS");
    uint64_t count = seeds ? strtoull(seeds, NULL, 10) : 12;

    (void)state;
    if (seed) {
        storm((uint64_t)strtoull(seed, NULL, 10));
        return;
    }
    for (uint64_t i = 1; i <= count; i++)
        storm(1000 + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pod_goes_down_and_status_comes_up),
        cmocka_unit_test(test_pod_removed_on_the_host_is_not_brought_back),
        cmocka_unit_test(test_foreign_object_is_never_touched),
        cmocka_unit_test(test_unknown_objects_of_our_cluster_stay),
        cmocka_unit_test(test_event_ahead_of_its_pod_is_told),
        cmocka_unit_test(test_labels_move_without_a_gap),
        cmocka_unit_test(test_the_default_class_alone_is_offered),
        cmocka_unit_test(test_volumes_have_the_reclaim_policy_of_the_class),
        cmocka_unit_test(test_claims_of_own_classes_stay),
        cmocka_unit_test(test_no_class_is_no_claim),
        cmocka_unit_test(test_claims_wait_for_the_class),
        cmocka_unit_test(test_refused_claims_of_a_set_are_told),
        cmocka_unit_test(test_claims_on_the_host_stay),
        cmocka_unit_test(test_quota_is_exact),
        cmocka_unit_test(test_successor_keeps_its_charge),
        cmocka_unit_test(test_queue_lets_the_next_one_in),
        cmocka_unit_test(test_referenced_data_follows),
        cmocka_unit_test(test_deleted_data_is_not_waited_for),
        cmocka_unit_test(test_finished_pod_needs_nothing),
        cmocka_unit_test(test_one_seed_is_one_run),
        cmocka_unit_test(test_storms),
    };
    const struct CMUnitTest storms[] = {cmocka_unit_test(test_storms)};

    if (getenv("SEED") || getenv("SEEDS"))
        return cmocka_run_group_tests(storms, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
