/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccounts that pods run under on the host, by sync.toHost.serviceAccounts. Whatever
 * happens: a pod comes after its account, the account is the tenant's own, and it leaves with the
 * last pod or with the tenant's account, never before. */
#include "worlds.h"

#include "engine.h"

#define ACCOUNTS "serviceaccounts"
#define CONFIG                                                                                     \
    "sync: {toHost: {serviceAccounts: {enabled: true, annotations: {id.example/role: "             \
    "['team-*']}}}}\n"
#define LABELS "policy: {labels: {allow: [team.example/]}}\n"
#define N      9

static const char *const NAMES[] = {"one", "two", "three"};

static void create_account(struct sim *s, const char *name, const char *role)
{
    sim_create(s, ACCOUNTS, "default",
               arena_printf(s->arena,
                            "{'metadata':{'name':'%s','annotations':{'id.example/role':'%s'}}}",
                            name, role)
                   .p);
}

static void create_pod(struct sim *s, const char *name, const char *account)
{
    sim_create_pod(s, name, "", arena_printf(s->arena, ",'serviceAccountName':'%s'", account).p);
}

static const char *pod_name(struct sim *s, unsigned i)
{
    return arena_printf(s->arena, "p%u", i).p;
}

static const char *host_name(struct sim *s, const char *name)
{
    char text[64];

    translate_name(&s->syncer->tenant, STR("default"), str_c(name), text);
    return arena_cstr(s->arena, str_c(text));
}

static const cJSON *on_host(struct sim *s, struct arena *a, struct str name)
{
    json_each(o, fake_host_list(s->host, a, ACCOUNTS))
    {
        if (str_eq(json_str_at(o, "metadata.name"), name))
            return o;
    }
    return NULL;
}

static struct str note(const cJSON *object, const char *key)
{
    return json_str(json_get(json_path(object, "metadata.annotations"), key));
}

/* Has the host no pod whose account it lacks? */
static bool are_in_order(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool ordered = true;

    json_each(pod, fake_host_list(s->host, a, "pods"))
    {
        struct str account = json_str_at(pod, "spec.serviceAccountName");

        ordered &= account.n && note(on_host(s, a, account), "sublet.dev/uid").n;
    }
    arena_free(a);
    return ordered;
}

static bool all_run(struct sim *s)
{
    assert_true(are_in_order(s));
    return sim_pods_run(s);
}

/* Those of the pods, each as the tenant has it, and no other. */
static bool accounts_are_alike(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool alike = fake_host_count(s->host, ACCOUNTS) == COUNT(NAMES);

    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const cJSON *host = on_host(s, a, str_c(host_name(s, NAMES[i])));
        const cJSON *mine = sim_get(s, a, ACCOUNTS, "default", NAMES[i]);

        alike &= host && str_eq(note(host, "sublet.dev/uid"), json_str_at(mine, "metadata.uid")) &&
                 str_eq(note(host, "id.example/role"), note(mine, "id.example/role"));
    }
    arena_free(a);
    return alike;
}

static bool has_no_account(struct sim *s)
{
    return !fake_host_count(s->host, ACCOUNTS) && !fake_host_count(s->host, "pods") &&
           !sim_records(s, RECORD_MAPPING, ACCOUNTS);
}

static void on_a_bad_host(uint64_t seed)
{
    struct sim *s = sim_new_ready(seed, CONFIG);

    sim_spoil_host(s);
    create_account(s, "unused", "team-u");
    for (size_t i = 0; i < COUNT(NAMES); i++)
        create_account(s, NAMES[i], "team-a");
    sim_writes_done(s);
    for (unsigned i = 0; i < N; i++)
        create_pod(s, pod_name(s, i), NAMES[i % COUNT(NAMES)]);
    sim_writes_done(s);
    sim_run_ms(s, 300);
    sim_patch(s, ACCOUNTS, "default", NAMES[1],
              "{'metadata':{'annotations':{'id.example/role':'team-b'}}}");
    sim_writes_done(s);
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 300);
    sim_mend_host(s);
    sim_until(s, all_run, "all pods to run");
    sim_until(s, accounts_are_alike, "the accounts of the pods on the host");
    for (unsigned i = 0; i < N; i++)
        sim_delete(s, "pods", "default", pod_name(s, i), 0);
    sim_writes_done(s);
    sim_until(s, has_no_account, "the accounts to leave after the pods");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

static void test_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        on_a_bad_host(seed);
}

static bool is_refused(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(e, sim_list(s, a, "events", "default")) found |=
        str_contains(json_str(json_get(e, "message")), STR("its name is taken on the host"));
    arena_free(a);
    return found;
}

/* It may have rights there. */
static void test_an_account_of_the_host(void **state)
{
    struct sim *s = sim_new_ready(31, CONFIG);
    const char *taken = host_name(s, "one");

    (void)state;
    fake_host_put(s->host, ACCOUNTS,
                  arena_printf(s->arena,
                               "{\"metadata\":{\"name\":\"%s\",\"annotations\":{\"a\":\"b\"}}}",
                               taken)
                      .p);
    create_account(s, "one", "team-a");
    create_pod(s, "p", "one");
    sim_writes_done(s);
    sim_until(s, is_refused, "an Event");
    sim_run_ms(s, 5000);
    assert_int_equal(fake_host_count(s->host, "pods"), 0);
    assert_int_equal(fake_host_asked(s->host, "DELETE", ACCOUNTS, false), 0);
    assert_int_equal(fake_host_asked(s->host, "PATCH", ACCOUNTS, false), 0);
    assert_true(fake_host_remove(s->host, ACCOUNTS, taken));
    sim_until(s, all_run, "the pod to run under its own account");
    sim_free(s);
}

static struct str role_on_host(struct sim *s)
{
    return note(on_host(s, s->arena, str_c(host_name(s, "one"))), "id.example/role");
}

/* A real host refuses a pod whose account was removed a moment ago; this one takes it. */
static bool runs_as_b(struct sim *s)
{
    if (fake_host_count(s->host, "pods") && fake_host_count(s->host, ACCOUNTS))
        assert_true(str_eqc(role_on_host(s), "team-b"));
    return sim_pods_run(s);
}

static bool has_account(struct sim *s)
{
    return fake_host_count(s->host, ACCOUNTS) == 1;
}

static bool is_without_account(struct sim *s)
{
    return !fake_host_count(s->host, ACCOUNTS);
}

/* Deleted and created again, or changed: a pod that comes after that has the identity that it has
 * now. */
static void test_the_account_as_it_is_now(void **state)
{
    struct sim *s = sim_new_ready(32, CONFIG);

    (void)state;
    create_account(s, "one", "team-a");
    create_pod(s, "gated", "one");
    sim_writes_done(s);
    sim_until(s, has_account, "the account on the host");
    sim_until(s, sim_pods_run, "the pod to run");
    sim_delete(s, "pods", "default", "gated", 0);
    sim_writes_done(s);
    sim_until(s, is_without_account, "the account to leave");
    sim_patch(s, ACCOUNTS, "default", "one",
              "{'metadata':{'annotations':{'id.example/role':'team-b'}}}");
    create_pod(s, "second", "one");
    sim_writes_done(s);
    sim_until(s, runs_as_b, "the second pod to run");

    /* The tenant deletes the account: it has no identity on the host any more, and the pod goes
     * on. */
    sim_delete(s, ACCOUNTS, "default", "one", 0);
    sim_writes_done(s);
    sim_until(s, is_without_account, "the account to leave");
    assert_true(sim_pods_run(s));
    create_account(s, "one", "team-b");
    create_pod(s, "third", "one");
    sim_writes_done(s);
    sim_until(s, runs_as_b, "the third pod to run");
    sim_free(s);
}

static bool lacks_an_account(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(e, sim_list(s, a, "events", "default")) found |=
        str_contains(json_str(json_get(e, "message")), STR("serviceaccounts \"one\" not found"));
    arena_free(a);
    return found;
}

/* Its pod is not created under any other. */
static void test_a_pod_without_account(void **state)
{
    struct sim *s = sim_new_ready(33, CONFIG);

    (void)state;
    create_account(s, "one", "team-a");
    sim_create_pod(s, "p", "",
                   ",'serviceAccountName':'one','schedulingGates':[{'name':'a.example/g'}]");
    sim_writes_done(s);
    sim_delete(s, ACCOUNTS, "default", "one", 0);
    sim_writes_done(s);
    sim_patch(s, "pods", "default", "p", "{'spec':{'schedulingGates':[]}}");
    sim_writes_done(s);
    sim_until(s, lacks_an_account, "an Event");
    assert_int_equal(fake_host_count(s->host, "pods"), 0);
    create_account(s, "one", "team-a");
    sim_writes_done(s);
    sim_until(s, all_run, "the pod to run");
    sim_free(s);
}

/* ---- what controllers of the host write into an account ---- */

#define THEIRS                                                                                     \
    "\"secrets\":[{\"name\":\"one-dockercfg\"}],\"imagePullSecrets\":[{\"name\":\"one-"            \
    "dockercfg\"}]"

/* A host fence refuses a patch of them, and then no pod of the account comes any more. */
static const cJSON *with_theirs(struct sim *s)
{
    const cJSON *host = on_host(s, s->arena, str_c(host_name(s, "one")));

    assert_int_equal(json_count(json_get(host, "secrets")), 1);
    assert_int_equal(json_count(json_get(host, "imagePullSecrets")), 1);
    return host;
}

static bool has_the_label(struct sim *s)
{
    return str_eqc(
        json_str(json_get(json_path(with_theirs(s), "metadata.labels"), "team.example/a")), "c");
}

static bool has_the_epoch(struct sim *s)
{
    return str_eq(note(with_theirs(s), "sublet.dev/epoch"), s->syncer->tenant.epoch);
}

static void test_secrets_of_the_host(void **state)
{
    struct sim *s = sim_new_ready(34, CONFIG LABELS);

    (void)state;
    sim_create(s, ACCOUNTS, "default",
               "{'metadata':{'name':'one','labels':{'team.example/a':'b'}}}");
    create_pod(s, "first", "one");
    sim_writes_done(s);
    sim_until(s, all_run, "the first pod to run");
    fake_host_patch(s->host, ACCOUNTS, host_name(s, "one"), "{" THEIRS "}");
    sim_patch(s, ACCOUNTS, "default", "one", "{'metadata':{'labels':{'team.example/a':'c'}}}");
    sim_writes_done(s);
    sim_until(s, has_the_label, "the label on the host");
    create_pod(s, "second", "one");
    sim_writes_done(s);
    sim_until(s, all_run, "the second pod to run");
    sim_backup(s, "backup");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, has_the_epoch, "the account of the new life");
    create_pod(s, "third", "one");
    sim_writes_done(s);
    sim_until(s, all_run, "the third pod to run");
    assert_non_null(with_theirs(s));
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_an_account_of_the_host),
        cmocka_unit_test(test_the_account_as_it_is_now),
        cmocka_unit_test(test_a_pod_without_account),
        cmocka_unit_test(test_secrets_of_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
