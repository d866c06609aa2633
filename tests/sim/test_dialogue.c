/* SPDX-License-Identifier: Apache-2.0 */
/* A host that cannot be reached, trusted or used is reported, once, and so is its recovery; and a
 * tenant's dry runs are not handed on to the host one by one. */
#include "sim.h"

#include "engine.h"

#include <sublet/encode.h>

#define POD "{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c','image':'%s'}]}}"

static void create_pod(struct sim *s, const char *name, const char *image)
{
    char text[512];

    snprintf(text, sizeof(text), POD, name, image);
    sim_create(s, "pods", "default", text);
}

static bool account_is_there(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool there = sim_get(s, a, "serviceaccounts", "default", "default") != NULL;

    arena_free(a);
    return there;
}

static struct sim *new_sim(uint64_t seed)
{
    struct sim *s = sim_new(seed, NULL);

    sim_until(s, account_is_there, "the default service account");
    return s;
}

static const char *wanted_reason, *wanted_text;

static bool is_reported(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", ""))
    {
        struct str message = json_str_at(event, "message");

        if (!str_eqc(json_str_at(event, "reason"), wanted_reason) ||
            !str_contains(message, str_c(wanted_text)))
            continue;
        found = true;
        assert_false(str_contains(message, STR("system:serviceaccount")));
    }
    arena_free(a);
    return found;
}

static void expect(struct sim *s, const char *reason, const char *text)
{
    wanted_reason = reason;
    wanted_text = text;
    sim_until(s, is_reported, reason);
}

static void reported_as(enum host_trouble trouble, bool unauthorized, const char *reason)
{
    struct sim *s = new_sim(20 + trouble);
    struct fake_faults *f = fake_host_faults(s->host);

    f->trouble = trouble;
    f->unauthorized = unauthorized;
    f->down = !unauthorized;
    create_pod(s, "a", "i");
    expect(s, reason, "the host cluster: ");
    sim_free(s);
}

static void test_every_trouble_has_its_reason(void **state)
{
    (void)state;
    reported_as(HOST_TLS, false, "TLSVerificationFailed");
    reported_as(HOST_DNS, false, "NameResolutionFailed");
    reported_as(HOST_REFUSED, false, "ConnectionFailed");
    reported_as(HOST_TIMEOUT, false, "Timeout");
    reported_as(HOST_FINE, true, "Unauthorized");
}

static bool a_is_there(struct sim *s)
{
    return fake_host_count(s->host, "configmaps") + fake_host_count(s->host, "pods") > 0;
}

static void test_missing_right_is_reported(void **state)
{
    struct sim *s = new_sim(31);

    (void)state;
    fake_host_deny(s->host, "create pods", true);
    create_pod(s, "a", "i");
    expect(s, "Forbidden", "does not permit this virtual cluster to create pods");
    fake_host_deny(s->host, "create pods", false);
    sim_until(s, a_is_there, "the pod, once it is permitted");
    sim_free(s);
}

static bool last_is_published(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(secret, fake_host_list(s->host, a, "secrets")) found |=
        str_eq(json_str_at(secret, "data.value"), base64_encode(a, str_c(s->note)));
    arena_free(a);
    return found;
}

/* Whatever step of the previous publication it meets. */
static void test_the_last_kubeconfig_is_published(void **state)
{
    struct sim *s = new_sim(12);

    (void)state;
    fake_host_faults(s->host)->max_delay_ms = 20;
    for (unsigned i = 0; i < 60; i++) {
        syncer_publish_kubeconfig(s->syncer, arena_printf(s->arena, "first %u", i));
        sim_run_ms(s, i);
        snprintf(s->note, sizeof(s->note), "second %u", i);
        syncer_publish_kubeconfig(s->syncer, str_c(s->note));
        sim_until(s, last_is_published, "the last kubeconfig");
    }
    sim_free(s);
}

static const char *published(struct sim *s, const char *key)
{
    json_each(secret, fake_host_list(s->host, s->arena, "secrets"))
    {
        if (str_eqc(json_str_at(secret, "metadata.name"), "sim-kubeconfig"))
            return arena_cstr(s->arena, json_str(json_get(json_get(secret, "data"), key)));
    }
    return "";
}

static bool has_parts(struct sim *s)
{
    return !strcmp(published(s, "client-key"), "a2V5");
}

static bool has_renewed_parts(struct sim *s)
{
    return !strcmp(published(s, "client-key"), "bmV3");
}

/* Tools know the whole by two names, and its parts. */
static void test_the_parts_of_a_kubeconfig_are_published(void **state)
{
    static const char text[] =
        "clusters:\n- cluster:\n    certificate-authority-data: Y2E=\nusers:\n"
        "- user:\n    client-certificate-data: Y2VydA==\n"
        "    client-key-data: a2V5\n";
    struct sim *s = new_sim(35);

    (void)state;
    syncer_publish_kubeconfig(s->syncer, str_c(text));
    sim_until(s, has_parts, "the parts");
    assert_string_equal(published(s, "certificate-authority"), "Y2E=");
    assert_string_equal(published(s, "client-certificate"), "Y2VydA==");
    assert_string_equal(published(s, "config"), published(s, "value"));
    assert_true(published(s, "value")[0]);
    syncer_publish_kubeconfig(s->syncer, STR("client-key-data: bmV3\n"));
    sim_until(s, has_renewed_parts, "the renewed key");
    sim_free(s);
}

/* A host that was restored has one of before. */
static void test_a_restored_kubeconfig_is_published_again(void **state)
{
    struct sim *s = new_sim(34);
    struct fake_host_image *image;

    (void)state;
    snprintf(s->note, sizeof(s->note), "first");
    syncer_publish_kubeconfig(s->syncer, str_c(s->note));
    sim_until(s, last_is_published, "the first kubeconfig");
    image = fake_host_image(s->host);
    snprintf(s->note, sizeof(s->note), "second");
    syncer_publish_kubeconfig(s->syncer, str_c(s->note));
    sim_until(s, last_is_published, "the second kubeconfig");
    sim_run_ms(s, 60 * 1000);
    fake_host_roll_back(s->host, image);
    assert_false(last_is_published(s));
    sim_until(s, last_is_published, "the second kubeconfig again");
    sim_free(s);
}

/* --- whose kubeconfig it is --- */

static struct str kubeconfig_note(struct sim *s, const char *key)
{
    json_each(secret, fake_host_list(s->host, s->arena, "secrets"))
    {
        if (str_eqc(json_str_at(secret, "metadata.name"), "sim-kubeconfig"))
            return json_str(json_get(json_path(secret, "metadata.annotations"), key));
    }
    return STR("");
}

static bool is_marked(struct sim *s)
{
    return last_is_published(s) &&
           str_eq(kubeconfig_note(s, "sublet.dev/cluster-uid"), s->syncer->tenant.cluster_uid) &&
           str_eq(kubeconfig_note(s, "sublet.dev/epoch"), s->syncer->tenant.epoch);
}

static void publish(struct sim *s, const char *kubeconfig)
{
    snprintf(s->note, sizeof(s->note), "%s", kubeconfig);
    syncer_publish_kubeconfig(s->syncer, str_c(kubeconfig));
}

/* One without marks is of an earlier version; the data may be right already. */
static void test_a_kubeconfig_says_whose_it_is(void **state)
{
    struct sim *s = new_sim(33);

    (void)state;
    publish(s, "first");
    sim_until(s, is_marked, "the marks of a created one");
    fake_host_patch(s->host, "secrets", "sim-kubeconfig", "{\"metadata\":{\"annotations\":null}}");
    publish(s, "first");
    sim_until(s, is_marked, "the marks of one that has none");
    sim_free(s);
}

/* Within seconds, and the data alone may be wrong. */
static void test_a_kubeconfig_that_another_client_changes_is_mended(void **state)
{
    struct sim *s = new_sim(33);
    unsigned writes;

    (void)state;
    publish(s, "first");
    sim_until(s, is_marked, "the first");
    sim_run_ms(s, 2000);
    assert_true(fake_host_remove(s->host, "secrets", "sim-kubeconfig"));
    assert_false(last_is_published(s));
    sim_until(s, is_marked, "one in place of the deleted one");
    sim_run_ms(s, 2000);
    fake_host_patch(s->host, "secrets", "sim-kubeconfig", "{\"data\":{\"value\":\"ZWRpdGVk\"}}");
    assert_false(last_is_published(s));
    sim_until(s, is_marked, "the data of an edited one");
    writes = fake_host_asked(s->host, "PATCH", "secrets", false);
    sim_run_ms(s, 60 * 1000);
    assert_int_equal(fake_host_asked(s->host, "PATCH", "secrets", false), writes);
    sim_free(s);
}

/* Who edits it again at once has it longer each time. */
static void test_a_kubeconfig_is_not_fought_over(void **state)
{
    struct sim *s = new_sim(34);
    unsigned before;

    (void)state;
    publish(s, "first");
    sim_until(s, is_marked, "the first");
    before = fake_host_asked(s->host, "PATCH", "secrets", false);
    for (unsigned i = 0; i < 240; i++) {
        if (last_is_published(s))
            fake_host_patch(s->host, "secrets", "sim-kubeconfig",
                            "{\"data\":{\"value\":\"ZWRpdGVk\"}}");
        sim_run_ms(s, 500);
    }
    assert_in_range(fake_host_asked(s->host, "PATCH", "secrets", false) - before, 4, 8);
    sim_free(s);
}

/* A later life of this cluster has the name; it serves its kubeconfig there. */
static void test_a_later_kubeconfig_is_kept(void **state)
{
    struct sim *s = new_sim(34);

    (void)state;
    publish(s, "first");
    sim_until(s, is_marked, "the first");
    fake_host_patch(s->host, "secrets", "sim-kubeconfig",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/epoch\":"
                    "\"ffffffffffffffffffffffffffffffff\"}}}");
    syncer_publish_kubeconfig(s->syncer, STR("second"));
    expect(s, "KubeconfigSecretExists", "is not this virtual cluster's");
    sim_run_ms(s, 50);
    assert_true(last_is_published(s)); /* still the first */
    sim_free(s);
}

/* Another cluster had the name before: with the Lease of the name it is ours. */
static void test_a_name_that_was_anothers(void **state)
{
    struct sim *s = new_sim(35);

    (void)state;
    publish(s, "first");
    sim_until(s, is_marked, "the first");
    fake_host_patch(s->host, "secrets", "sim-kubeconfig",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/cluster-uid\":\"another\","
                    "\"sublet.dev/epoch\":\"00000000000000000000000000000001\"}}}");
    publish(s, "second");
    sim_until(s, is_marked, "the second");
    sim_free(s);
}

static bool is_without_the_lease(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_WITHOUT;
}

/* ... and without it nothing keeps the two apart. */
static void test_anothers_kubeconfig_is_kept_without_a_lease(void **state)
{
    struct sim *s = new_sim(36);

    (void)state;
    publish(s, "first");
    sim_until(s, is_marked, "the first");
    sim_close(s);
    fake_host_deny(s->host, "get leases", true);
    fake_host_patch(s->host, "secrets", "sim-kubeconfig",
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/cluster-uid\":\"another\"}}}");
    sim_open(s);
    sim_until(s, is_without_the_lease, "the refusal");
    expect(s, "KubeconfigSecretExists", "is not this virtual cluster's");
    assert_true(last_is_published(s));
    sim_free(s);
}

/* --- further Secrets with it --- */

static const cJSON *secret(struct sim *s, const char *name)
{
    json_each(one, fake_host_list(s->host, s->arena, "secrets"))
    {
        if (str_eqc(json_str_at(one, "metadata.name"), name))
            return one;
    }
    return NULL;
}

static bool given_is_filled(struct sim *s)
{
    return str_eq(json_str_at(secret(s, "given"), "data.value"),
                  base64_encode(s->arena, str_c(s->note)));
}

/* Helm made it, with its own labels, which stay; what else it held is gone. */
static void test_a_secret_that_is_given_is_filled(void **state)
{
    struct sim *s = sim_new(37, "kubeconfig: {additionalSecrets: [{name: given}]}\n");

    (void)state;
    sim_until(s, account_is_there, "the default service account");
    fake_host_put(s->host, "secrets",
                  "{\"metadata\":{\"name\":\"given\",\"labels\":{"
                  "\"app.kubernetes.io/managed-by\":\"Helm\"},\"annotations\":{"
                  "\"sublet.dev/kubeconfig\":\"sim\"}},\"data\":{\"old\":\"b2xk\"}}");
    snprintf(s->note, sizeof(s->note), "second");
    syncer_publish_kubeconfig_more(s->syncer, 0, str_c(s->note));
    sim_until(s, given_is_filled, "the Secret to be filled");
    assert_true(str_eqc(json_str(json_get(json_path(secret(s, "given"), "metadata.labels"),
                                          "app.kubernetes.io/managed-by")),
                        "Helm"));
    assert_null(json_path(secret(s, "given"), "data.old"));
    assert_string_equal(published(s, "value"), "a3ViZWNvbmZpZw=="); /* of sim_open() */
    fake_host_remove(s->host, "secrets", "given");
    snprintf(s->note, sizeof(s->note), "third");
    syncer_publish_kubeconfig_more(s->syncer, 0, str_c(s->note));
    sim_until(s, given_is_filled, "the Secret that was missing");
    sim_free(s);
}

/* The Secret that is there, of this metadata beside its name, stays as it is. */
static void expect_kept(unsigned seed, const char *options, const char *metadata)
{
    struct sim *s = sim_new(seed, options);

    sim_until(s, account_is_there, "the default service account");
    fake_host_put(s->host, "secrets",
                  arena_printf(s->arena,
                               "{\"metadata\":{\"name\":\"given\",%s},"
                               "\"data\":{\"value\":\"b2xk\"}}",
                               metadata)
                      .p);
    syncer_publish_kubeconfig_more(s->syncer, 0, STR("ours"));
    expect(s, "KubeconfigSecretExists", "is not made for it");
    assert_true(str_eqc(json_str_at(secret(s, "given"), "data.value"), "b2xk"));
    sim_free(s);
}

/* Of another virtual cluster, or of none. */
static void test_a_secret_that_is_not_given_is_kept(void **state)
{
    static const char options[] = "kubeconfig: {additionalSecrets: [{name: given}]}\n";

    (void)state;
    expect_kept(38, options, "\"annotations\":{}");
    expect_kept(39, options, "\"annotations\":{\"sublet.dev/kubeconfig\":\"another\"}");
}

/* Two host namespaces can have a virtual cluster of one name, each with the Lease of it. Where both
 * name the same Secret of a third, the first keeps it. */
#define OF_NAMESAKE(more)                                                                          \
    "\"labels\":{\"app.kubernetes.io/managed-by\":\"sublet\","                                     \
    "\"app.kubernetes.io/instance\":\"sim\"},\"annotations\":{" more                               \
    "\"sublet.dev/cluster-uid\":\"another\","                                                      \
    "\"sublet.dev/epoch\":\"00000000000000000000000000000001\"}"
static void test_a_secret_of_a_namesake_is_kept(void **state)
{
    static const char options[] =
        "kubeconfig: {additionalSecrets: [{name: given, namespace: argocd}]}\n";

    (void)state;
    expect_kept(41, options, OF_NAMESAKE(""));
    expect_kept(42, options, OF_NAMESAKE("\"sublet.dev/kubeconfig\":\"sim\","));
}

static void test_unpublished_kubeconfig_is_reported(void **state)
{
    struct sim *s = new_sim(32);

    (void)state;
    fake_host_deny(s->host, "create secrets", true);
    fake_host_remove(s->host, "secrets", "sim-kubeconfig");
    syncer_publish_kubeconfig(s->syncer, STR("another"));
    expect(s, "KubeconfigNotPublished", "cannot be written on the host cluster");
    sim_free(s);
}

/* --- dry runs --- */

static unsigned dry_posts(struct sim *s, const char *plural)
{
    return fake_host_asked(s->host, "POST", plural, true);
}

static bool host_is_watched(struct sim *s)
{
    return reflector_synced(s->syncer->watches[SYNC_NODES].reflector);
}

/* Alike but for their names: one dry run. Each of its own: no more than the budget of dry runs
 * lets through at once. */
static void test_verdicts_are_asked_for_once(void **state)
{
    struct sim *s = new_sim(33);
    uint64_t start = uv_hrtime();
    char name[32], image[32];
    unsigned budget;

    (void)state;
    sim_until(s, host_is_watched, "the host");
    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "alike-%u", i);
        create_pod(s, name, "i");
    }
    sim_writes_done(s);
    assert_int_equal(s->refusal[0], 0);
    assert_int_equal(dry_posts(s, "pods"), 1);
    for (unsigned i = 0; i < 400; i++) {
        snprintf(name, sizeof(name), "other-%u", i);
        snprintf(image, sizeof(image), "image-%u", i);
        create_pod(s, name, image);
    }
    sim_writes_done(s); /* all are stored: the host judges them when they get there */
    assert_int_equal(s->refusal[0], 0);
    budget = 40 + 10 * (unsigned)((uv_hrtime() - start) / 1000000000 + 1);
    assert_in_range(dry_posts(s, "pods"), 2, budget);
    sim_free(s);
}

struct judged {
    struct sim *sim;
    struct arena *arena;
    unsigned refused, admitted, no_turn, no_answer, n;
};

static void on_judged(void *ctx, const struct dry_result *result, const struct err *err)
{
    struct judged *j = ctx;

    assert_true(err || str_has_prefix(result->host_name, STR("verdict-")));
    j->n++;
    j->admitted += !err;
    j->refused += err && sync_dry_run_refused(err);
    j->no_turn += err && err->kind == &ERR_TOO_MANY_REQUESTS;
    j->no_answer += err && !sync_dry_run_refused(err) && err->kind != &ERR_TOO_MANY_REQUESTS;
}

static void ask(struct judged *j, const char *name, const char *type)
{
    struct arena *a = j->arena;
    cJSON *service = json_new_object(a);
    struct dry_run q = {
        .id = SYNC_SERVICES, .object = service, .patience = DRY_RUN_URGENT, .timeout_ms = 500};

    json_set_str(a, json_ensure_object(a, service, "metadata"), "name",
                 arena_printf(a, "%s-0123456789abcdef", name)); /* as host names end */
    json_set_str(a, json_ensure_object(a, service, "spec"), "type", str_c(type));
    sync_dry_run_send(j->sim->syncer, a, &q, on_judged, j);
}

static unsigned wanted_n;
static struct judged *the_judged;

static bool all_judged(struct sim *s)
{
    (void)s;
    return the_judged->n == wanted_n;
}

static void wait_for(struct judged *j, unsigned n)
{
    the_judged = j;
    wanted_n = n;
    sim_until(j->sim, all_judged, "dry runs");
}

static void test_answers_are_kept_and_failures_are_not(void **state)
{
    struct sim *s = new_sim(34);
    struct judged j = {.sim = s, .arena = arena_new(0)};

    (void)state;
    sim_until(s, host_is_watched, "the host");
    fake_host_faults(s->host)->fail = 1000;
    ask(&j, "a", "ClusterIP");
    wait_for(&j, 1);
    assert_int_equal(j.no_answer, 1);
    fake_host_faults(s->host)->fail = 0;
    for (int i = 0; i < 5; i++)
        ask(&j, i % 2 ? "a" : "b", "ClusterIP");
    wait_for(&j, 6);
    assert_int_equal(j.admitted, 5);
    assert_int_equal(dry_posts(s, "services"), 1); /* what failed did not arrive */
    ask(&j, "c", "ClusterIP");
    wait_for(&j, 7);
    assert_int_equal(dry_posts(s, "services"), 1);
    sync_dry_runs_forget(s->syncer->dry_runs);
    fake_host_deny(s->host, "create services", true);
    ask(&j, "d", "ClusterIP");
    wait_for(&j, 8);
    ask(&j, "e", "ClusterIP");
    wait_for(&j, 9);
    assert_int_equal(j.refused, 0); /* a missing right is no verdict, but as certain as one */
    assert_int_equal(j.no_answer, 3);
    assert_int_equal(dry_posts(s, "services"), 2);
    ask(&j, "e", "NodePort"); /* not alike */
    wait_for(&j, 10);
    assert_int_equal(dry_posts(s, "services"), 3);
    arena_free(j.arena);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_trouble_has_its_reason),
        cmocka_unit_test(test_missing_right_is_reported),
        cmocka_unit_test(test_the_last_kubeconfig_is_published),
        cmocka_unit_test(test_the_parts_of_a_kubeconfig_are_published),
        cmocka_unit_test(test_a_restored_kubeconfig_is_published_again),
        cmocka_unit_test(test_a_kubeconfig_says_whose_it_is),
        cmocka_unit_test(test_a_kubeconfig_that_another_client_changes_is_mended),
        cmocka_unit_test(test_a_kubeconfig_is_not_fought_over),
        cmocka_unit_test(test_a_later_kubeconfig_is_kept),
        cmocka_unit_test(test_a_name_that_was_anothers),
        cmocka_unit_test(test_anothers_kubeconfig_is_kept_without_a_lease),
        cmocka_unit_test(test_unpublished_kubeconfig_is_reported),
        cmocka_unit_test(test_a_secret_that_is_given_is_filled),
        cmocka_unit_test(test_a_secret_that_is_not_given_is_kept),
        cmocka_unit_test(test_a_secret_of_a_namesake_is_kept),
        cmocka_unit_test(test_verdicts_are_asked_for_once),
        cmocka_unit_test(test_answers_are_kept_and_failures_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
