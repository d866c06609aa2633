/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembered tokens: bounded, never good past their end; and on a whole control plane, that a token
 * dies with its account or with what it is bound to, remembered or not. */

#include "controller_world.h"

#include <string.h>

#include <sublet/auth.h>
#include <sublet/pki.h>
#include <sublet/vapi.h>

#include "../../../vapi/auth/token_cache.h"

#define T0 1800000000LL

static struct world *CLUSTER;

static struct token_claims claims_of(const char *account, const struct str *audiences, size_t n)
{
    return (struct token_claims){
        .ns = STR("n"),
        .service_account = str_c(account),
        .service_account_uid = STR("u"),
        .bound_kind = STR("Pod"),
        .bound_name = STR("p"),
        .bound_uid = STR("pu"),
        .id = STR("j"),
        .audiences = audiences,
        .n_audiences = n,
        .issued = T0,
        .not_before = T0,
        .expires = T0 + 600,
    };
}

static void keeps_what_was_said(void **state)
{
    static const struct str AUDIENCES[] = {{"one", 3}, {"two", 3}};
    struct arena *a = arena_new(0);
    struct token_cache *c = token_cache_new(4);
    struct token_claims in = claims_of("sa", AUDIENCES, 2), out;

    (void)state;
    assert_false(token_cache_get(c, a, STR("t"), T0, &out));
    token_cache_put(c, STR("t"), T0, &in);
    assert_false(token_cache_get(c, a, STR("T"), T0, &out));
    assert_true(token_cache_get(c, a, STR("t"), T0 + 599, &out));
    token_cache_free(c); /* the answer is the arena's */
    assert_str(out.service_account, "sa");
    assert_str(out.bound_uid, "pu");
    assert_str(out.node_name, "");
    assert_int_equal(out.n_audiences, 2);
    assert_str(out.audiences[1], "two");
    assert_int_equal(out.expires, T0 + 600);
    arena_free(a);
}

static void never_past_its_end(void **state)
{
    struct arena *a = arena_new(0);
    struct token_cache *c = token_cache_new(4);
    struct token_claims in = claims_of("sa", NULL, 0), out;

    (void)state;
    token_cache_put(c, STR("t"), T0 + 10, &in);
    assert_false(token_cache_get(c, a, STR("t"), T0 + 600, &out));
    assert_false(token_cache_get(c, a, STR("t"), T0 + 20, &out)); /* it is forgotten */
    token_cache_put(c, STR("t"), T0 + 10, &in);
    assert_false(token_cache_get(c, a, STR("t"), T0 + 9, &out)); /* a clock that went back */
    token_cache_put(c, STR("t"), T0 + 600, &in);
    assert_false(token_cache_get(c, a, STR("t"), T0 + 599, &out));
    token_cache_free(c);
    arena_free(a);
}

static void forgets_the_least_used(void **state)
{
    struct arena *a = arena_new(0);
    struct token_cache *c = token_cache_new(3);
    struct token_claims in = claims_of("sa", NULL, 0), out;

    (void)state;
    token_cache_put(c, STR("1"), T0, &in);
    token_cache_put(c, STR("2"), T0, &in);
    token_cache_put(c, STR("3"), T0, &in);
    assert_true(token_cache_get(c, a, STR("1"), T0, &out));
    token_cache_put(c, STR("1"), T0, &in); /* again: no entry has to leave */
    token_cache_put(c, STR("4"), T0, &in);
    assert_true(token_cache_get(c, a, STR("1"), T0, &out));
    assert_false(token_cache_get(c, a, STR("2"), T0, &out));
    assert_true(token_cache_get(c, a, STR("3"), T0, &out));
    assert_true(token_cache_get(c, a, STR("4"), T0, &out));
    token_cache_free(c);
    arena_free(a);
}

/* --- on a control plane --- */

static int set_up(void **state)
{
    (void)state;
    CLUSTER = world_new(7);
    world_create(CLUSTER, "namespaces", "", "{'metadata':{'name':'n'}}");
    world_create(CLUSTER, "serviceaccounts", "n", "{'metadata':{'name':'sa'}}");
    world_create(CLUSTER, "secrets", "n", "{'metadata':{'name':'s'}}");
    world_settle(CLUSTER);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_free(CLUSTER);
    return 0;
}

static struct str uid_of(const char *resource, const char *name)
{
    return json_str_at(world_get(CLUSTER, resource, "n", name), "metadata.uid");
}

static struct str sign(const char *bound_kind, struct str bound_uid)
{
    struct pki *pki = vapi_pki(world_api(CLUSTER));
    struct str audience = pki_issuer(pki), jwt;
    struct token_claims claims = claims_of("sa", &audience, 1);
    struct err err;

    claims.service_account_uid = uid_of("serviceaccounts", "sa");
    claims.bound_kind = str_c(bound_kind);
    claims.bound_name = bound_uid.n ? STR("s") : STR("");
    claims.bound_uid = bound_uid;
    claims.issued = claims.not_before = world_now(CLUSTER);
    claims.expires = claims.issued + 3600;
    err_init(&err, world_arena(CLUSTER));
    assert_int_equal(pki_sign_token(pki, world_arena(CLUSTER), &claims, &jwt, &err), 0);
    return jwt;
}

/* The user of this token, or "" when it is not cached. */
static struct str shown(struct str jwt)
{
    struct arena *a = world_arena(CLUSTER);
    struct net_header header = {STR("authorization"), arena_printf(a, "Bearer %.*s", STR_F(jwt))};
    struct net_request request = {.arena = a, .headers = &header, .n_headers = 1};
    struct attributes what = {.verb = "get", .path = STR("/")};
    struct user user;
    struct err err;

    err_init(&err, a);
    if (!auth_authenticate(vapi_auth(world_api(CLUSTER)), a, &request, &what, &user, &err))
        return user.name;
    assert_ptr_equal(err.kind, &ERR_UNAUTHORIZED);
    err_clear(&err);
    return STR("");
}

static void dies_with_its_account(void **state)
{
    struct str jwt = sign("", STR("")), forged;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_str(shown(jwt), "system:serviceaccount:n:sa");
    forged = arena_str(world_arena(CLUSTER), jwt);
    forged = str_sub(forged, 0, forged.n - 1);
    assert_str(shown(forged), "");

    world_delete(CLUSTER, "serviceaccounts", "n", "sa", NULL);
    assert_str(shown(jwt), "");
    world_create(CLUSTER, "serviceaccounts", "n", "{'metadata':{'name':'sa'}}");
    world_settle(CLUSTER);
    assert_str(shown(jwt), ""); /* the name is there again, the account is not */
}

static void dies_with_what_it_is_bound_to(void **state)
{
    struct str jwt = sign("Secret", uid_of("secrets", "s"));

    (void)state;
    assert_str(shown(jwt), "system:serviceaccount:n:sa");
    assert_str(shown(jwt), "system:serviceaccount:n:sa");
    world_delete(CLUSTER, "secrets", "n", "s", NULL);
    assert_str(shown(jwt), "");
}

static void ends_in_time(void **state)
{
    struct str jwt = sign("", STR(""));

    (void)state;
    assert_str(shown(jwt), "system:serviceaccount:n:sa");
    world_pass(CLUSTER, 3500);
    assert_str(shown(jwt), "system:serviceaccount:n:sa");
    world_pass(CLUSTER, 200);
    assert_str(shown(jwt), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_was_said),
        cmocka_unit_test(never_past_its_end),
        cmocka_unit_test(forgets_the_least_used),
        cmocka_unit_test_setup_teardown(dies_with_its_account, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dies_with_what_it_is_bound_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ends_in_time, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
