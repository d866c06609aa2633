/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual cluster restored from a backup: onto the same host, onto another, onto one that was
 * itself restored. Whatever the two have apart: nothing is deleted that no client deleted, what is
 * missing is created again under its uid, and what is newer than the backup is kept and counted. */
#include "sim.h"

#include <stdlib.h>

#include "engine.h"

#define POOLS                                                                                      \
    "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [],\n"  \
    "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}}\n"                                            \
    "bindings:\n- {pool: p, guarantee: \"2\", overQuota: reject, default: true}\n"
#define POD(name, more)                                                                            \
    "{'metadata':{'name':'" name "'},'spec':{'containers':[{'name':'c','image':'i'" more "}]}}"
#define GPU ",'resources':{'limits':{'nvidia.com/gpu':'1'}}"
#define CLAIM(name)                                                                                \
    "{'metadata':{'name':'" name "'},'spec':{'storageClassName':'fast','accessModes':"             \
    "['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}"
#define SERVICE(name) "{'metadata':{'name':'" name "'},'spec':{'ports':[{'port':80}]}}"
#define CONFIG        POOLS "policy: {storageClasses: [fast]}\n"

/* --- looking --- */

/* The host object made for default/name, in the sim's arena; NULL: there is none. */
static const cJSON *on_host(struct sim *s, const char *plural, const char *name)
{
    const cJSON *found = NULL;

    json_each(o, fake_host_list(s->host, s->arena, plural))
    {
        const cJSON *notes = json_path(o, "metadata.annotations");
        char host_name[64];

        translate_name(&s->syncer->tenant, STR("default"), str_c(name), host_name);
        if (str_eqc(json_str(json_get(notes, "sublet.dev/name")), name) &&
            str_eqc(json_str_at(o, "metadata.name"), host_name))
            found = o;
    }
    return found;
}

static struct str host_uid(struct sim *s, const char *plural, const char *name)
{
    return json_str_at(on_host(s, plural, name), "metadata.uid");
}

static struct str owner_uid(struct sim *s, const char *plural, const char *name)
{
    return json_str(
        json_get(json_path(on_host(s, plural, name), "metadata.annotations"), "sublet.dev/uid"));
}

static const cJSON *in_tenant(struct sim *s, const char *plural, const char *name)
{
    return sim_get(s, s->arena, plural, "default", name);
}

static struct str uid_of(struct sim *s, const char *plural, const char *name)
{
    return json_str_at(in_tenant(s, plural, name), "metadata.uid");
}

/* The host's admin removes the pod made for default/name. */
static void remove_on_host(struct sim *s, const char *name)
{
    struct str host_name = json_str_at(on_host(s, "pods", name), "metadata.name");

    fake_host_remove(s->host, "pods", arena_cstr(s->arena, host_name));
}

/* What the tests wait for. */
static const char *const PODS[] = {"a", "b", NULL};

static bool runs(struct sim *s, const char *name)
{
    const cJSON *pod = in_tenant(s, "pods", name), *host = on_host(s, "pods", name);

    return pod && host && str_eq(owner_uid(s, "pods", name), uid_of(s, "pods", name)) &&
           str_eqc(json_str_at(pod, "status.phase"), "Running") &&
           str_eq(json_str_at(pod, "spec.nodeName"), json_str_at(host, "spec.nodeName")) &&
           str_eq(json_str_at(pod, "status.podIP"), json_str_at(host, "status.podIP"));
}

static bool is_whole(struct sim *s)
{
    for (size_t i = 0; PODS[i]; i++)
        if (!runs(s, PODS[i]))
            return false;
    return str_eq(owner_uid(s, "persistentvolumeclaims", "data"),
                  uid_of(s, "persistentvolumeclaims", "data")) &&
           str_eqc(json_str_at(in_tenant(s, "persistentvolumeclaims", "data"), "status.phase"),
                   "Bound") &&
           str_eq(owner_uid(s, "services", "web"), uid_of(s, "services", "web")) &&
           str_eq(json_str_at(on_host(s, "services", "web"), "spec.clusterIP"),
                  json_str_at(in_tenant(s, "services", "web"), "spec.clusterIP"));
}

static bool newer_are_up(struct sim *s)
{
    return runs(s, "newer") && on_host(s, "persistentvolumeclaims", "newer") &&
           on_host(s, "services", "newer");
}

static bool is_compared(struct sim *s)
{
    return s->syncer->compared && sync_quarantine_count(s->syncer, SYNC_PODS) &&
           sync_quarantine_count(s->syncer, SYNC_CLAIMS) &&
           sync_quarantine_count(s->syncer, SYNC_SERVICES);
}

/* --- the host's provisioner --- */

static void bind_claims(struct sim *s)
{
    struct arena *a = arena_new(0);

    json_each(claim, fake_host_list(s->host, a, "persistentvolumeclaims"))
    {
        struct str volume = json_str_at(claim, "metadata.uid");
        cJSON *status = json_ensure_object(a, claim, "status");

        json_set_str(a, json_ensure_object(a, claim, "spec"), "volumeName", volume);
        json_set_str(a, status, "phase", STR("Bound"));
        json_set(a, status, "accessModes", json_copy(a, json_path(claim, "spec.accessModes")));
        json_set(a, status, "capacity", json_copy(a, json_path(claim, "spec.resources.requests")));
        fake_host_put(s->host, "persistentvolumeclaims", arena_cstr(a, json_text(a, claim)));
    }
    arena_free(a);
}

static bool claim_is_there(struct sim *s)
{
    return on_host(s, "persistentvolumeclaims", "data") != NULL;
}

static void bind_when_there(struct sim *s)
{
    sim_until(s, claim_is_there, "the claim on the host");
    bind_claims(s);
}

/* --- the day before and after the backup --- */

static bool is_no_pod_a(struct sim *s)
{
    return !in_tenant(s, "pods", "a") && !on_host(s, "pods", "a") && !on_host(s, "services", "web");
}

static bool has_account(struct sim *s)
{
    return in_tenant(s, "serviceaccounts", "default") != NULL;
}

static void make_first(struct sim *s)
{
    sim_until(s, has_account, "the service account");
    sim_create(s, "pods", "default", POD("a", ""));
    sim_create(s, "pods", "default", POD("b", GPU));
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("data"));
    sim_create(s, "services", "default", SERVICE("web"));
    sim_writes_done(s);
    bind_when_there(s);
    sim_until(s, is_whole, "the first objects");
}

static struct sim *begin(uint64_t seed)
{
    struct sim *s = sim_new(seed, CONFIG);

    make_first(s);
    sim_backup(s, "backup");
    return s;
}

static void go_on(struct sim *s)
{
    sim_create(s, "pods", "default", POD("newer", GPU));
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("newer"));
    sim_create(s, "services", "default", SERVICE("newer"));
    sim_writes_done(s);
    sim_until(s, newer_are_up, "objects newer than the backup");
    sim_delete(s, "pods", "default", "a", 0);
    sim_delete(s, "services", "default", "web", -1);
    sim_writes_done(s);
    sim_until(s, is_no_pod_a, "the deletions");
}

static void replace_host(struct sim *s, uint64_t seed)
{
    fake_host_free(s->host);
    s->host = fake_host_new(&s->loop, seed);
    fake_host_put(s->host, "nodes", "{\"metadata\":{\"name\":\"node-0\"}}");
    fake_host_put(s->host, "nodes", "{\"metadata\":{\"name\":\"node-1\"}}");
}

/* --- the tests --- */

static void test_same_host(void **state)
{
    struct sim *s = begin(1);
    struct str pod_a = uid_of(s, "pods", "a"), service = uid_of(s, "services", "web");
    struct str data = host_uid(s, "persistentvolumeclaims", "data"), newer, claim;

    (void)state;
    go_on(s);
    newer = host_uid(s, "pods", "newer");
    claim = host_uid(s, "persistentvolumeclaims", "newer");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, is_whole, "what the backup holds");
    assert_true(str_eq(uid_of(s, "pods", "a"), pod_a));
    assert_true(str_eq(uid_of(s, "services", "web"), service));
    assert_true(str_eq(host_uid(s, "persistentvolumeclaims", "data"), data));
    sim_until(s, is_compared, "the quarantine");
    assert_true(str_eq(host_uid(s, "pods", "newer"), newer));
    assert_int_equal(fake_host_asked(s->host, "DELETE", "persistentvolumeclaims", false), 0);

    /* Its GPU is taken: with b's, the limit of two is reached. */
    sim_create(s, "pods", "default", POD("more", GPU));
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "used: gpu=2"));

    /* A claim of the same name gets the volume. */
    sim_create(s, "persistentvolumeclaims", "default", CLAIM("newer"));
    sim_writes_done(s);
    sim_run_ms(s, 300);
    assert_true(str_eq(host_uid(s, "persistentvolumeclaims", "newer"), claim));
    assert_true(str_eq(owner_uid(s, "persistentvolumeclaims", "newer"),
                       uid_of(s, "persistentvolumeclaims", "newer")));
    assert_int_equal(sync_quarantine_count(s->syncer, SYNC_CLAIMS), 0);
    sim_free(s);
}

static bool pods_are_not_in_quarantine(struct sim *s)
{
    return !sync_quarantine_count(s->syncer, SYNC_PODS) && s->writes == 0;
}

static bool tokens_are_in_quarantine(struct sim *s)
{
    return sync_quarantine_count(s->syncer, SYNC_SECRETS) == 1;
}

static bool no_tokens_are_in_quarantine(struct sim *s)
{
    return sync_quarantine_count(s->syncer, SYNC_SECRETS) == 0;
}

static bool late_runs(struct sim *s)
{
    return runs(s, "late");
}

static bool late_is_taken_over(struct sim *s)
{
    return late_runs(s) && no_tokens_are_in_quarantine(s);
}

/* The tokens of a pod in quarantine are listed beside it, until it is taken over. */
static void test_tokens_are_in_quarantine_with_their_pod(void **state)
{
    struct sim *s = begin(20);

    (void)state;
    sim_create(s, "pods", "default", POD("late", ""));
    sim_writes_done(s);
    sim_until(s, late_runs, "a pod newer than the backup");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, tokens_are_in_quarantine, "the quarantine of the tokens");
    sim_close(s);
    sim_open(s);
    sim_until(s, tokens_are_in_quarantine, "the quarantine after a restart");
    sim_create(s, "pods", "default", POD("late", ""));
    sim_writes_done(s);
    sim_until(s, late_is_taken_over, "a pod of its name to take them over");
    assert_int_equal(fake_host_asked(s->host, "DELETE", "pods", false), 0);
    sim_free(s);
}

static void test_the_admin_removes_tokens(void **state)
{
    struct sim *s = begin(21);
    char name[64];

    (void)state;
    go_on(s);
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, tokens_are_in_quarantine, "the quarantine of the tokens");
    translate_token_secret_name(&s->syncer->tenant, STR("default"), STR("newer"), name);
    assert_true(fake_host_remove(s->host, "secrets", name));
    sim_until(s, no_tokens_are_in_quarantine, "the end of the quarantine");
    sim_free(s);
}

static void test_the_admin_removes_what_is_in_quarantine(void **state)
{
    struct sim *s = begin(2);

    (void)state;
    go_on(s);
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, is_compared, "the quarantine");
    /* A restart keeps it. */
    sim_close(s);
    sim_open(s);
    sim_until(s, is_compared, "the quarantine after a restart");
    remove_on_host(s, "newer");
    sim_until(s, pods_are_not_in_quarantine, "the end of the quarantine");
    s->refusal[0] = 0;
    sim_create(s, "pods", "default", POD("more", GPU));
    sim_writes_done(s);
    assert_int_equal(s->refusal[0], 0);
    sim_free(s);
}

static bool one_pod_is_in_quarantine(struct sim *s)
{
    return sync_quarantine_count(s->syncer, SYNC_PODS) == 1;
}

static bool c_runs(struct sim *s)
{
    return runs(s, "c");
}

static bool c_is_gone(struct sim *s)
{
    return !in_tenant(s, "pods", "c") && !on_host(s, "pods", "c") &&
           !sync_ledger_charged(s->syncer->ledger, str_c(s->note)).n;
}

static bool newer_runs(struct sim *s)
{
    return runs(s, "newer");
}

static void test_what_is_in_quarantine_holds_its_gpus(void **state)
{
    struct sim *s = begin(10);

    (void)state;
    sim_create(s, "pods", "default", POD("c", GPU));
    sim_writes_done(s);
    sim_until(s, c_runs, "a pod that has the last GPU");
    sim_backup(s, "full");
    snprintf(s->note, sizeof(s->note), "%.*s", STR_F(uid_of(s, "pods", "c")));
    sim_delete(s, "pods", "default", "c", 0);
    sim_writes_done(s);
    sim_until(s, c_is_gone, "its deletion");
    sim_create(s, "pods", "default", POD("newer", GPU));
    sim_writes_done(s);
    sim_until(s, newer_runs, "another one that has it");
    sim_stop_and_restore(s, "full");
    sim_open(s);
    sim_until(s, one_pod_is_in_quarantine, "the quarantine");
    sim_run_ms(s, 300);
    assert_non_null(in_tenant(s, "pods", "c"));
    assert_null(on_host(s, "pods", "c"));
    remove_on_host(s, "newer");
    sim_until(s, c_runs, "the pod of the backup");
    sim_free(s);
}

static void test_another_host(void **state)
{
    struct sim *s = begin(3);
    struct str pod = uid_of(s, "pods", "a"), claim = uid_of(s, "persistentvolumeclaims", "data");

    (void)state;
    sim_stop_and_restore(s, "backup");
    replace_host(s, 33);
    sim_open(s);
    sim_wait_for_no_leader(s);
    bind_when_there(s);
    sim_until(s, is_whole, "everything on the other host");
    assert_true(str_eq(uid_of(s, "pods", "a"), pod));
    assert_true(str_eq(uid_of(s, "persistentvolumeclaims", "data"), claim));
    sim_free(s);
}

static void test_an_address_that_is_taken(void **state)
{
    struct sim *s = begin(4);
    struct str ip = json_str_at(in_tenant(s, "services", "web"), "spec.clusterIP");

    (void)state;
    sim_stop_and_restore(s, "backup");
    replace_host(s, 44);
    fake_host_put(
        s->host, "services",
        arena_printf(s->arena,
                     "{\"metadata\":{\"name\":\"other\"},\"spec\":{\"clusterIP\":\"%.*s\"}}",
                     STR_F(ip))
            .p);
    sim_open(s);
    sim_wait_for_no_leader(s);
    bind_when_there(s);
    sim_until(s, is_whole, "a Service with another address");
    assert_false(str_eq(json_str_at(in_tenant(s, "services", "web"), "spec.clusterIP"), ip));
    sim_free(s);
}

static void host_is_restored(uint64_t seed, bool while_away)
{
    struct sim *s = sim_new(seed, CONFIG);
    struct fake_host_image *image;
    struct str pod;

    image = fake_host_image(s->host);
    make_first(s);
    pod = uid_of(s, "pods", "a");
    if (while_away)
        sim_close(s);
    fake_host_roll_back(s->host, image);
    if (while_away) {
        sim_open(s);
        sim_wait_for_no_leader(s);
    }
    bind_when_there(s);
    sim_until(s, is_whole, "everything again");
    assert_true(str_eq(uid_of(s, "pods", "a"), pod));
    sim_free(s);
}

/* Since the last renewal of the Lease: its revision alone shows it. */
static void test_a_host_that_was_restored(void **state)
{
    (void)state;
    host_is_restored(5, false);
}

static void test_a_host_that_was_restored_while_away(void **state)
{
    (void)state;
    host_is_restored(9, true);
}

/* What the restore takes back may still be under way on the host. */
static void test_a_deletion_from_before_the_restore(void **state)
{
    struct sim *s = begin(8);
    struct str pod = uid_of(s, "pods", "a");
    const char *name = arena_cstr(s->arena, json_str_at(on_host(s, "pods", "a"), "metadata.name"));

    (void)state;
    sim_stop_and_restore(s, "backup");
    fake_host_patch(s->host, "pods", name,
                    "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:30Z\","
                    "\"finalizers\":[\"example.com/drain\"]}}");
    sim_open(s);
    sim_run_ms(s, 300);
    assert_true(str_eq(uid_of(s, "pods", "a"), pod));
    fake_host_patch(s->host, "pods", name, "{\"metadata\":{\"finalizers\":null}}");
    sim_until(s, is_whole, "the pod again");
    assert_true(str_eq(uid_of(s, "pods", "a"), pod));
    sim_free(s);
}

/* --- a pod of the same name, newer than the backup --- */

static bool a_is_another(struct sim *s)
{
    return runs(s, "a") && !str_eqc(uid_of(s, "pods", "a"), s->note);
}

static void make_anew(struct sim *s, const char *json)
{
    snprintf(s->note, sizeof(s->note), "%.*s", STR_F(uid_of(s, "pods", "a")));
    sim_delete(s, "pods", "default", "a", 0);
    sim_writes_done(s);
    sim_run_ms(s, 50);
    sim_create(s, "pods", "default", json);
    sim_writes_done(s);
    sim_until(s, a_is_another, "a pod of the same name");
}

static void test_a_newer_pod_that_is_alike_is_adopted(void **state)
{
    struct sim *s = begin(6);
    struct str host;

    (void)state;
    make_anew(s, POD("a", ""));
    host = host_uid(s, "pods", "a");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, is_whole, "what the backup holds");
    assert_true(str_eqc(uid_of(s, "pods", "a"), s->note));
    assert_true(str_eq(host_uid(s, "pods", "a"), host));
    assert_int_equal(sync_quarantine_count(s->syncer, SYNC_PODS), 0);
    sim_free(s);
}

static void test_a_newer_pod_that_differs_is_kept(void **state)
{
    struct sim *s = begin(7);
    struct str host;

    (void)state;
    make_anew(s, POD("a", ",'args':['other']"));
    host = host_uid(s, "pods", "a");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, one_pod_is_in_quarantine, "the quarantine");
    sim_run_ms(s, 300);
    assert_true(str_eq(host_uid(s, "pods", "a"), host));
    assert_non_null(in_tenant(s, "pods", "a"));
    remove_on_host(s, "a");
    sim_until(s, is_whole, "the pod of the backup once the name is free");
    sim_free(s);
}

static bool a_is_gone(struct sim *s)
{
    return !in_tenant(s, "pods", "a");
}

/* What the tenant deletes is the pod of the backup, not the one that has its name by now. */
static void test_a_deleted_pod_takes_nothing_over(void **state)
{
    struct sim *s = begin(11);
    struct str host;

    (void)state;
    fake_host_faults(s->host)->down = true;
    sim_delete(s, "pods", "default", "a", 30);
    sim_writes_done(s);
    sim_backup(s, "deleting");
    fake_host_faults(s->host)->down = false;
    sim_until(s, a_is_gone, "the deletion");
    sim_create(s, "pods", "default", POD("a", ""));
    sim_writes_done(s);
    sim_until(s, is_whole, "another pod of this name");
    host = host_uid(s, "pods", "a");
    sim_stop_and_restore(s, "deleting");
    sim_open(s);
    sim_until(s, a_is_gone, "the deletion that the backup holds");
    sim_run_ms(s, 300);
    assert_true(str_eq(host_uid(s, "pods", "a"), host));
    assert_int_equal(sync_quarantine_count(s->syncer, SYNC_PODS), 1);
    sim_free(s);
}

/* --- GPUs of pods that this store does not know to be running --- */

#define QUEUE                                                                                      \
    "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [],\n"  \
    "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}}\n"                                            \
    "bindings:\n- {pool: p, guarantee: \"1\", overQuota: queue, default: true}\n"

static bool b_runs(struct sim *s)
{
    return runs(s, "b");
}

static bool a_runs(struct sim *s)
{
    return runs(s, "a");
}

static bool b_is_charged(struct sim *s)
{
    return sync_ledger_charged(s->syncer->ledger, uid_of(s, "pods", "b")).n > 0;
}

/* In the backup b waits for the GPU that a has; on the host b has it. */
static void test_a_pod_that_started_after_the_backup_holds_its_gpus(void **state)
{
    struct sim *s = sim_new(12, QUEUE);

    (void)state;
    sim_until(s, has_account, "the service account");
    sim_create(s, "pods", "default", POD("a", GPU));
    sim_writes_done(s);
    sim_until(s, a_runs, "a pod with the GPU");
    sim_create(s, "pods", "default", POD("b", GPU));
    sim_writes_done(s);
    sim_backup(s, "waiting");
    sim_delete(s, "pods", "default", "a", 0);
    sim_writes_done(s);
    sim_until(s, b_runs, "the pod that waited");
    sim_stop_and_restore(s, "waiting");
    sim_open(s);
    sim_until(s, b_is_charged, "its charge");
    sim_run_ms(s, 300);
    assert_non_null(in_tenant(s, "pods", "a"));
    assert_null(on_host(s, "pods", "a"));
    sim_delete(s, "pods", "default", "b", 0);
    sim_writes_done(s);
    sim_until(s, a_runs, "the pod of the backup, in its turn");
    sim_free(s);
}

/* --- seen on the host by a process that does not lead --- */

static bool is_waiting(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_WAITING &&
           reflector_synced(s->syncer->watches[SYNC_PODS].reflector);
}

static bool a_is_shown(struct sim *s)
{
    return reflector_get(s->syncer->watches[SYNC_PODS].reflector, str_c(s->note)) != NULL;
}

static bool a_is_no_longer_shown(struct sim *s)
{
    return !a_is_shown(s);
}

/* The host is restored, another process creates the pod again, and it is removed there. */
static void test_a_removal_seen_without_the_lease(void **state)
{
    struct sim *s = sim_new(13, CONFIG);
    struct fake_host_image *image = fake_host_image(s->host);
    const char *pod;

    (void)state;
    make_first(s);
    pod = arena_cstr(s->arena, json_text(s->arena, on_host(s, "pods", "a")));
    snprintf(s->note, sizeof(s->note), "%.*s",
             STR_F(json_str_at(on_host(s, "pods", "a"), "metadata.name")));
    fake_host_roll_back(s->host, image);
    fake_host_put(s->host, "leases",
                  "{\"metadata\":{\"name\":\"sim\"},\"spec\":{\"holderIdentity\":\"other_1\","
                  "\"leaseDurationSeconds\":40}}");
    sim_until(s, is_waiting, "another holder");
    fake_host_put(s->host, "pods", pod);
    sim_until(s, a_is_shown, "its pod");
    fake_host_remove(s->host, "pods", s->note);
    sim_until(s, a_is_no_longer_shown, "its removal");
    fake_host_patch(s->host, "leases", "sim", "{\"spec\":{\"holderIdentity\":\"\"}}");
    sim_until(s, a_is_gone, "the virtual pod to follow");
    sim_until(s, b_runs, "the other one, created again");
    assert_null(on_host(s, "pods", "a"));
    sim_free(s);
}

/* --- lives of one origin --- */

static struct str fork_on_host(struct sim *s)
{
    json_each(lease, fake_host_list(s->host, s->arena, "leases"))
    {
        if (str_eqc(json_str_at(lease, "metadata.name"), "sim"))
            return json_str(json_get(json_path(lease, "metadata.annotations"), "sublet.dev/fork"));
    }
    return STR("");
}

static struct str own_epoch(struct sim *s)
{
    return arena_str(s->arena, s->syncer->tenant.epoch);
}

/* This process's life, which goes on elsewhere, and the one that begins with its backup. */
static struct str restore_one(struct sim *s, const char *file)
{
    struct str before = own_epoch(s);

    sim_create(s, "configmaps", "default",
               arena_printf(s->arena, "{'metadata':{'name':'%s'}}", file).p);
    sim_writes_done(s);
    sim_backup(s, file);
    sim_stop_and_restore(s, file);
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    return before;
}

static void test_what_a_grandchild_lacks_is_known(void **state)
{
    struct sim *s = sim_new(13, NULL);
    struct str first, second;
    int64_t at;

    (void)state;
    sim_until(s, sim_leads, "the Lease");
    first = restore_one(s, "one");
    second = restore_one(s, "two");
    at = store_revision(s->store);
    assert_false(str_eq(first, second) || str_eq(second, own_epoch(s)));
    assert_true(str_contains(fork_on_host(s), first) && str_contains(fork_on_host(s), second));
    /* As the first one, should it still run, reads it. */
    s->report[0] = '\0';
    sync_lacking_start(s->syncer, first, fork_on_host(s), sim_on_report);
    sim_until(s, sim_has_report, "what the first lacks");
    assert_null(strstr(s->report, "not known"));
    /* A restart knows as much, and the list is bounded. */
    sim_close(s);
    sim_open(s);
    sim_until(s, sim_leads, "the Lease");
    assert_true(str_contains(fork_on_host(s), first) && store_revision(s->store) >= at);
    sim_free(s);
}

static size_t count_words(struct str list)
{
    size_t n = 0;

    for (; list.n; n++)
        str_cut(&list, ' ');
    return n;
}

static void test_ancestors_are_bounded(void **state)
{
    struct sim *s = sim_new(14, NULL);
    struct buf value = BUF_INIT(0);
    struct str own, oldest = STR("00000000000000000000000000000abc");

    (void)state;
    sim_until(s, sim_leads, "the Lease");
    own = own_epoch(s);
    buf_add(&value, own);
    for (int i = 0; i < SYNC_MOST_ANCESTORS - 1; i++)
        buf_printf(&value, " %032d@%d", i, 100 - i);
    buf_printf(&value, " %.*s@1", STR_F(oldest));
    store_record_put(s->store, RECORD_META, STR("ancestry"), buf_str(&value));
    buf_fini(&value);
    restore_one(s, "deep");
    assert_int_equal(count_words(fork_on_host(s)), SYNC_MOST_ANCESTORS);
    assert_true(str_contains(fork_on_host(s), own));
    assert_false(str_contains(fork_on_host(s), oldest));
    sim_free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_host),
        cmocka_unit_test(test_tokens_are_in_quarantine_with_their_pod),
        cmocka_unit_test(test_the_admin_removes_tokens),
        cmocka_unit_test(test_the_admin_removes_what_is_in_quarantine),
        cmocka_unit_test(test_what_is_in_quarantine_holds_its_gpus),
        cmocka_unit_test(test_another_host),
        cmocka_unit_test(test_an_address_that_is_taken),
        cmocka_unit_test(test_a_host_that_was_restored),
        cmocka_unit_test(test_a_host_that_was_restored_while_away),
        cmocka_unit_test(test_a_deletion_from_before_the_restore),
        cmocka_unit_test(test_a_newer_pod_that_is_alike_is_adopted),
        cmocka_unit_test(test_a_newer_pod_that_differs_is_kept),
        cmocka_unit_test(test_a_deleted_pod_takes_nothing_over),
        cmocka_unit_test(test_a_pod_that_started_after_the_backup_holds_its_gpus),
        cmocka_unit_test(test_a_removal_seen_without_the_lease),
        cmocka_unit_test(test_what_a_grandchild_lacks_is_known),
        cmocka_unit_test(test_ancestors_are_bounded),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
