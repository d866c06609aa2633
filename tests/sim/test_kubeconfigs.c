/* SPDX-License-Identifier: Apache-2.0 */
/* Further Secrets with the token of a service account: never without a token that is valid for a
 * while, never with one of an account that is gone, and not written again without a reason. */
#include "worlds.h"

#include "engine.h"

#include <sublet/encode.h>
#include <sublet/pki.h>

#define LIFE_S 600
#define CONFIG                                                                                     \
    "kubeconfig: {additionalSecrets: [{name: given, serviceAccount: {namespace: default, name: "   \
    "robot, tokenLifetime: 10m}}]}\n"
#define FRAME "users: token: "

static void give(struct sim *s)
{
    fake_host_put(s->host, "secrets",
                  "{\"metadata\":{\"name\":\"given\",\"annotations\":{"
                  "\"sublet.dev/kubeconfig\":\"sim\"}},\"data\":{}}");
}

static struct str given(struct sim *s, const char *key)
{
    struct arena *a = arena_new(0);
    struct str ret = STR("");

    json_each(one, fake_host_list(s->host, a, "secrets"))
    {
        if (str_eqc(json_str_at(one, "metadata.name"), "given"))
            assert_true(
                base64_decode(s->arena, json_str(json_get(json_get(one, "data"), key)), &ret));
    }
    ret = arena_str(s->arena, ret);
    arena_free(a);
    return ret;
}

static bool has_token(struct sim *s)
{
    return given(s, "token").n > 0;
}

static bool is_empty(struct sim *s)
{
    return !given(s, "token").n && !given(s, "value").n && !given(s, "config").n;
}

static struct str last; /* the token before */

static bool has_another(struct sim *s)
{
    return has_token(s) && !str_eq(given(s, "token"), last);
}

/* What the Secret has is whole, and a token of the account that is there now. */
static struct token_claims check(struct sim *s)
{
    struct token_claims claims;
    struct arena *a = arena_new(0);
    struct err err;
    struct str token = given(s, "token");

    err_init(&err, s->arena);
    assert_int_equal(pki_verify_token(s->pki, s->arena, token, &claims, &err), 0);
    assert_true(str_eqc(claims.service_account, "robot") && str_eqc(claims.ns, "default"));
    assert_true(
        str_eq(claims.service_account_uid,
               json_str_at(sim_get(s, a, "serviceaccounts", "default", "robot"), "metadata.uid")));
    assert_int_equal(claims.expires - claims.issued, LIFE_S);
    assert_true(str_eq(given(s, "value"), arena_printf(s->arena, FRAME "%.*s\n", STR_F(token))));
    assert_true(str_eq(given(s, "config"), given(s, "value")));
    arena_free(a);
    last = token;
    return claims;
}

static void create_robot(struct sim *s)
{
    sim_create(s, "serviceaccounts", "default", "{'metadata':{'name':'robot'}}");
    sim_writes_done(s);
}

static unsigned writes(struct sim *s)
{
    return fake_host_asked(s->host, "PATCH", "secrets", false);
}

static bool is_warned(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(event, sim_list(s, a, "events", "")) found |=
        str_eqc(json_str_at(event, "reason"), "KubeconfigAccountMissing");
    arena_free(a);
    return found;
}

static struct sim *new_sim(uint64_t seed)
{
    struct sim *s = sim_new_ready(seed, CONFIG);

    give(s);
    syncer_publish_kubeconfig_more(s->syncer, 0, STR(FRAME));
    return s;
}

static void test_the_token_follows_the_account(void **state)
{
    struct sim *s = new_sim(1);
    struct token_claims first;

    (void)state;
    sim_until(s, is_warned, "the notice that there is no such account");
    assert_true(is_empty(s));
    create_robot(s);
    sim_until(s, has_token, "the token");
    first = check(s);

    sim_delete(s, "serviceaccounts", "default", "robot", -1);
    sim_until(s, is_empty, "the Secret to be empty");
    create_robot(s);
    sim_until(s, has_token, "the token of the next account");
    assert_false(str_eq(check(s).service_account_uid, first.service_account_uid));
    sim_free(s);
}

static void test_the_token_is_renewed_in_time(void **state)
{
    struct sim *s = new_sim(2);
    int64_t issued;

    (void)state;
    create_robot(s);
    sim_until(s, has_token, "the token");
    for (int i = 0; i < 3; i++) {
        unsigned before = writes(s);

        issued = check(s).issued;
        sim_run_ms(s, (LIFE_S * 4 / 5 - 20) * 1000);
        assert_int_equal(writes(s), before);
        sim_until(s, has_another, "the next token");
        assert_in_range(check(s).issued - issued, LIFE_S * 4 / 5, LIFE_S * 4 / 5 + 70);
        assert_int_equal(writes(s), before + 1);
    }
    sim_free(s);
}

/* The next process keeps the token, and replaces it when it is due. */
static void test_a_restart_keeps_the_token(void **state)
{
    struct sim *s = new_sim(3);
    unsigned before;

    (void)state;
    create_robot(s);
    sim_until(s, has_token, "the token");
    (void)check(s);
    before = writes(s);
    sim_close(s);
    sim_open(s);
    syncer_publish_kubeconfig_more(s->syncer, 0, STR(FRAME));
    sim_run_ms(s, (LIFE_S * 4 / 5 - 40) * 1000);
    assert_int_equal(writes(s), before);
    assert_true(str_eq(given(s, "token"), last));
    sim_until(s, has_another, "the next token");
    (void)check(s);

    /* While none runs it expires. */
    sim_close(s);
    s->moment.now_us += 2LL * LIFE_S * 1000000;
    sim_open(s);
    syncer_publish_kubeconfig_more(s->syncer, 0, STR(FRAME));
    sim_until(s, has_another, "a valid token");
    (void)check(s);
    sim_free(s);
}

/* The wall clock is what tokens are valid by: it is set, or has gone on while the machine slept. */
static void test_a_jump_of_the_clock_leaves_no_invalid_token(void **state)
{
    static const int64_t jumps_s[] = {LIFE_S * 9 / 10, 30 * 86400, -30 * 86400, -LIFE_S};
    struct sim *s = new_sim(5);

    (void)state;
    create_robot(s);
    sim_until(s, has_token, "the token");
    for (size_t i = 0; i < COUNT(jumps_s); i++) {
        (void)check(s);
        s->moment.jump_us += jumps_s[i] * 1000000;
        sim_run_ms(s, 90 * 1000);
        assert_true(has_another(s));
        (void)check(s);
    }
    sim_free(s);
}

/* What a reader of the Secret, or another with rights there, put in is no token of ours. */
static void test_a_foreign_token_is_replaced(void **state)
{
    struct sim *s = new_sim(4);

    (void)state;
    create_robot(s);
    sim_until(s, has_token, "the token");
    (void)check(s);
    fake_host_patch(s->host, "secrets", "given", "{\"data\":{\"token\":\"eA==\"}}");
    last = given(s, "token");
    syncer_publish_kubeconfig_more(s->syncer, 0, STR(FRAME));
    sim_until(s, has_another, "a token again");
    (void)check(s);
    sim_free(s);
}

/* ---- accounts that the configuration gives a role ---- */

#define BINDINGS "clusterrolebindings.rbac.authorization.k8s.io"
#define BOUND(role)                                                                                \
    "kubeconfig: {additionalSecrets: [{name: given, serviceAccount: {namespace: default, name: "   \
    "robot, clusterRole: " role ", tokenLifetime: 10m}}]}\n"

static bool is_bound(struct sim *s, const char *role)
{
    struct arena *a = arena_new(0);
    const cJSON *found =
        sim_get(s, a, BINDINGS, "", arena_printf(a, "sublet:kubeconfig:default:robot:%s", role).p);
    const cJSON *subject = json_first(json_get(found, "subjects"));
    bool bound = str_eqc(json_str_at(found, "roleRef.name"), role) &&
                 str_eqc(json_str_at(found, "roleRef.kind"), "ClusterRole") &&
                 str_eqc(json_str_at(subject, "kind"), "ServiceAccount") &&
                 str_eqc(json_str_at(subject, "name"), "robot") &&
                 str_eqc(json_str_at(subject, "namespace"), "default");

    arena_free(a);
    return bound;
}

static bool has_token_and_role(struct sim *s)
{
    return has_token(s) && is_bound(s, "view");
}

static bool has_another_and_role(struct sim *s)
{
    return has_another(s) && is_bound(s, "view");
}

static void test_an_account_with_a_role_is_made(void **state)
{
    struct sim *s = sim_new_ready(5, BOUND("view"));

    (void)state;
    give(s);
    syncer_publish_kubeconfig_more(s->syncer, 0, STR(FRAME));
    syncer_publish_kubeconfig(s->syncer, STR("admin"));
    sim_until(s, has_token_and_role, "the account, its token and its role");
    (void)check(s);
    assert_false(is_bound(s, "edit"));
    sim_delete(s, "serviceaccounts", "default", "robot", -1);
    sim_delete(s, BINDINGS, "", "sublet:kubeconfig:default:robot:view", -1);
    sim_until(s, has_another_and_role, "both again");
    (void)check(s);
    sim_free(s);
}

static bool is_unbound(struct sim *s)
{
    return !is_bound(s, "admin");
}

/* Of an earlier configuration. */
static void test_a_role_ends_with_the_configuration(void **state)
{
    struct sim *s = sim_new_ready(6, BOUND("view"));

    (void)state;
    sim_create(s, BINDINGS, "",
               "{'metadata':{'name':'sublet:kubeconfig:default:robot:admin'},'roleRef':{'apiGroup':"
               "'rbac.authorization.k8s.io','kind':'ClusterRole','name':'admin'},'subjects':[{"
               "'kind':'ServiceAccount','name':'robot','namespace':'default'}]}");
    sim_create(s, BINDINGS, "",
               "{'metadata':{'name':'of-the-tenant'},'roleRef':{'apiGroup':"
               "'rbac.authorization.k8s.io','kind':'ClusterRole','name':'admin'}}");
    sim_create(s, BINDINGS, "",
               "{'metadata':{'name':'sublet:kubeconfig:of:the:tenant'},'roleRef':{'apiGroup':"
               "'rbac.authorization.k8s.io','kind':'ClusterRole','name':'tenant'},'subjects':[{"
               "'kind':'ServiceAccount','name':'another','namespace':'of'}]}");
    sim_writes_done(s);
    assert_false(is_unbound(s));
    syncer_publish_kubeconfig(s->syncer, STR("admin"));
    sim_until(s, is_unbound, "the end of the earlier role");
    assert_non_null(sim_get(s, s->arena, BINDINGS, "", "of-the-tenant"));
    assert_non_null(sim_get(s, s->arena, BINDINGS, "", "sublet:kubeconfig:of:the:tenant"));
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_token_follows_the_account),
        cmocka_unit_test(test_the_token_is_renewed_in_time),
        cmocka_unit_test(test_a_restart_keeps_the_token),
        cmocka_unit_test(test_a_jump_of_the_clock_leaves_no_invalid_token),
        cmocka_unit_test(test_a_foreign_token_is_replaced),
        cmocka_unit_test(test_an_account_with_a_role_is_made),
        cmocka_unit_test(test_a_role_ends_with_the_configuration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
