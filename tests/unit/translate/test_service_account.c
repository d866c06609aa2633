/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccounts: what of them goes down, which annotations, and the pods that run under them. */

#include "test.h"

#include <sublet/translate_kind.h>

#define ROLE "arn:aws:iam::111122223333:role/"

static const char CONFIG[] =
    "policy: {labels: {allow: [team.example/]}, annotations: {allow: [note, iam.gke.io/]}}\n"
    "sync:\n"
    "  toHost:\n"
    "    serviceAccounts:\n"
    "      enabled: true\n"
    "      annotations:\n"
    "        eks.amazonaws.com/role-arn: ['" ROLE "team-*', '" ROLE "shared']\n"
    "        azure.workload.identity/client-id: [11111111-0000-0000-0000-000000000000]\n";

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

static const struct kind_rules *rules(void)
{
    return translate_kind_rules(DOWN_SERVICE_ACCOUNTS);
}

/* more: members of metadata; body: those beside it. */
static cJSON *account(struct fixture *f, const char *more, const char *body)
{
    return doc(
        f, arena_printf(f->a, "{metadata: {name: web, namespace: ml, uid: u1%s}%s}", more, body).p);
}

static cJSON *down(struct fixture *f, const char *more, const char *body)
{
    cJSON *ret = NULL, *again = NULL;

    assert_ok(translate_kind(f->a, &f->tenant, rules(), account(f, more, body), &ret, &f->err));
    assert_ok(translate_kind(f->a, &f->tenant, rules(), account(f, more, body), &again, &f->err));
    assert_true(translate_kind_is_written(ret, again));
    assert_null(translate_kind_update(f->a, rules(), ret, again));
    return ret;
}

/* Annotations that are not ours. */
static const char *annotations_of(struct fixture *f, const cJSON *host)
{
    cJSON *ret = json_new_object(f->a);

    json_each(note, json_path(host, "metadata.annotations"))
    {
        if (!str_has_prefix(json_key(note), STR("sublet.dev/")))
            json_set(f->a, ret, note->string, json_copy(f->a, note));
    }
    return json_text(f->a, ret).p;
}

static void an_account_has_nothing(void **state)
{
    struct fixture *f = *state;
    cJSON *host = down(f, ", ownerReferences: [{kind: Node, name: n, uid: u}], finalizers: [a/b]",
                       ", automountServiceAccountToken: true, secrets: [{name: s}], "
                       "imagePullSecrets: [{name: registry}], odd: 1");

    assert_true(rules() && translate_kind_goes_with_pods(rules()));
    assert_json(json_get(host, "automountServiceAccountToken"), "false");
    assert_str(json_str(json_get(host, "kind")), "ServiceAccount");
    assert_str(json_str(json_get(host, "apiVersion")), "v1");
    assert_int_equal(json_count(host), 4);
    assert_int_equal(json_count(json_get(host, "metadata")), 4);
    assert_str(json_str_at(host, "metadata.namespace"), "team-research");
    assert_str(json_str(json_get(json_path(host, "metadata.annotations"), ANNOTATION_UID)), "u1");
}

/* policy.annotations says what goes down of other kinds. */
static void only_listed_identities_go_down(void **state)
{
    static const struct {
        const char *written, *want;
    } cases[] = {
        {"note: a, iam.gke.io/gcp-service-account: x@p.iam.gserviceaccount.com", "{}"},
        {"kubernetes.io/enforce-mountable-secrets: 'true', sublet.dev/cluster: x", "{}"},
        {"eks.amazonaws.com/role-arn: '" ROLE "team-a'",
         "{\"eks.amazonaws.com/role-arn\":\"" ROLE "team-a\"}"},
        {"eks.amazonaws.com/role-arn: '" ROLE "shared', note: a",
         "{\"eks.amazonaws.com/role-arn\":\"" ROLE "shared\"}"},
        {"azure.workload.identity/client-id: 11111111-0000-0000-0000-000000000000",
         "{\"azure.workload.identity/client-id\":\"11111111-0000-0000-0000-000000000000\"}"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *host = down(
            f,
            arena_printf(f->a, ", annotations: {%s}, labels: {team.example/a: b}", cases[i].written)
                .p,
            "");

        assert_string_equal(annotations_of(f, host), cases[i].want);
        assert_str(json_str(json_get(json_path(host, "metadata.labels"), "team.example/a")), "b");
    }
}

static void other_values_are_refused(void **state)
{
    static const char *const cases[] = {
        ROLE "admin", ROLE "team-",  ROLE "team-*",  ROLE "team-a/b",   ROLE "team-a," ROLE "admin",
        "",           ROLE "TEAM-a", ROLE "shared2", " " ROLE "shared", ROLE "team-a:b",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        cJSON *v = account(f,
                           arena_printf(f->a,
                                        ", annotations: {eks.amazonaws.com/role-arn: '%s', "
                                        "note: a}",
                                        cases[i])
                               .p,
                           ""),
              *ret = NULL;
        struct err left_out;

        assert_error(translate_kind(f->a, &f->tenant, rules(), v, &ret, &f->err),
                     "serviceaccounts \"web\" is forbidden: "
                     "metadata.annotations[eks.amazonaws.com/role-arn]: is a value that the "
                     "administrator of the host does not permit");
        assert_null(ret);
        /* One that is stored already has no identity on the host. */
        err_init(&left_out, f->a);
        assert_ok(translate_kind_narrowed(f->a, &f->tenant, rules(), v, &ret, &left_out, &f->err));
        assert_ptr_equal(left_out.kind, &ERR_FORBIDDEN);
        assert_string_equal(annotations_of(f, ret), "{}");
    }
}

/* What is no longer listed, or no longer written, is removed on the host; what the host has added
 * stays. */
static void an_identity_is_taken_back(void **state)
{
    struct fixture *f = *state;
    cJSON *host = down(f, ", annotations: {eks.amazonaws.com/role-arn: '" ROLE "team-a'}", "");
    cJSON *bare = down(f, "", ""), *patch;

    json_set_str(f->a, json_path(host, "metadata.annotations"), "host.example/a", STR("b"));
    json_set_bool(f->a, host, "automountServiceAccountToken", true);
    assert_false(translate_kind_is_written(host, bare));
    patch = translate_kind_update(f->a, rules(), host, bare);
    assert_json(json_get(patch, "automountServiceAccountToken"), "false");
    assert_true(json_is_null(
        json_get(json_path(patch, "metadata.annotations"), "eks.amazonaws.com/role-arn")));
    assert_null(json_get(json_path(patch, "metadata.annotations"), "host.example/a"));
}

/* What controllers of the host write into an account stays, whatever becomes of the tenant's: a
 * host fence permits no change of it. */
static void the_secrets_of_the_host_stay(void **state)
{
    static const char *const theirs[] = {"secrets", "imagePullSecrets", "odd"};
    struct fixture *f = *state;
    cJSON *host = down(f, ", labels: {team.example/a: b}", ""), *patch;

    for (size_t i = 0; i < COUNT(theirs); i++)
        json_set(f->a, host, theirs[i], doc(f, "[{name: web-dockercfg-x1}]"));
    assert_null(
        translate_kind_update(f->a, rules(), host, down(f, ", labels: {team.example/a: b}", "")));
    patch =
        translate_kind_update(f->a, rules(), host, down(f, ", labels: {team.example/a: c}", ""));
    assert_int_equal(json_count(patch), 1);
    assert_json(json_path(patch, "metadata.labels"), "{\"team.example/a\":\"c\"}");
    json_set_bool(f->a, host, "automountServiceAccountToken", true);
    patch = translate_kind_update(f->a, rules(), host, down(f, "", ""));
    assert_int_equal(json_count(patch), 2);
    assert_json(json_get(patch, "automountServiceAccountToken"), "false");
}

/* ---- pods ---- */

static const cJSON *pod_of(struct fixture *f, const char *spec)
{
    cJSON *v = doc(f, arena_printf(f->a,
                                   "{metadata: {name: p, namespace: ml, uid: u2}, spec: {%s "
                                   "containers: [{name: c, image: i}]}}",
                                   spec)
                          .p),
          *ret = NULL;

    assert_ok(translate_pod(f->a, &f->tenant, NULL, v, NULL, &ret, &f->err));
    return json_get(ret, "spec");
}

static void pods_run_under_them(void **state)
{
    struct fixture *f = *state;
    char name[64];
    const cJSON *spec = pod_of(
        f, "serviceAccountName: web, automountServiceAccountToken: true, serviceAccount: x,");

    translate_name(&f->tenant, STR("ml"), STR("web"), name);
    assert_str(json_str(json_get(spec, "serviceAccountName")), name);
    assert_json(json_get(spec, "automountServiceAccountToken"), "false");
    assert_null(json_get(spec, "serviceAccount"));
    assert_null(json_get(pod_of(f, ""), "serviceAccountName"));
    use_config(f, "host: {podServiceAccount: of-pods}");
    assert_str(json_str(json_get(pod_of(f, "serviceAccountName: web,"), "serviceAccountName")),
               "of-pods");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_account_has_nothing),       TEST(only_listed_identities_go_down),
        TEST(other_values_are_refused),     TEST(an_identity_is_taken_back),
        TEST(the_secrets_of_the_host_stay), TEST(pods_run_under_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
