/* SPDX-License-Identifier: Apache-2.0 */
/* `authentication:`: what upstream takes is taken, and what would be ignored is refused, with its
 * place. */

#include "test.h"

#define ISSUER(more)                                                                               \
    "authentication: {jwt: [{issuer: {"                                                            \
    "url: 'https://a.example', " more "}, "
#define USERNAME                    "username: {claim: sub, prefix: 'a:'}"
#define ONE(issuer, mappings, more) ISSUER(issuer) "claimMappings: {" mappings "}" more "}]}"

static void nothing_by_default(void **state)
{
    struct config_fixture *f = *state;

    assert_ok(load_config(f, ""));
    assert_int_equal(f->config.n_issuers, 0);
    assert_false(f->config.anonymous_refused);
    assert_int_equal(f->config.anonymous_paths.n, 0);
    assert_ok(load_config(f, "authentication: null"));
    assert_ok(load_config(f, "authentication: {}"));
}

static void all_of_it(void **state)
{
    struct config_fixture *f = *state;
    const struct config_issuer *i;

    assert_ok(load_config(
        f, "authentication:\n"
           "  anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}\n"
           "  jwt:\n"
           "  - issuer:\n"
           "      url: https://login.example.com/realm/\n"
           "      discoveryURL: https://10.0.0.1/d\n"
           "      audiences: [one, two]\n"
           "      audienceMatchPolicy: MatchAny\n"
           "      egressSelectorType: ''\n"
           "      certificateAuthority: |\n"
           "        -----BEGIN CERTIFICATE-----\n"
           "    claimMappings:\n"
           "      username: {claim: email, prefix: ''}\n"
           "      groups: {claim: roles, prefix: 'team:', expression: ''}\n"
           "      uid: {claim: sub}\n"
           "      extra: []\n"
           "    claimValidationRules: [{claim: hd, requiredValue: example.com}]\n"
           "    userValidationRules: []\n"));
    assert_int_equal(f->config.n_issuers, 1);
    i = &f->config.issuers[0];
    assert_str(i->url, "https://login.example.com/realm/");
    assert_str(i->discovery_url, "https://10.0.0.1/d");
    assert_int_equal(i->audiences.n, 2);
    assert_str(i->username.claim, "email");
    assert_str(i->username.prefix, "");
    assert_str(i->groups.prefix, "team:");
    assert_str(i->uid_claim, "sub");
    assert_int_equal(i->n_rules, 1);
    assert_str(i->rules[0].value, "example.com");
    assert_int_equal(f->config.anonymous_paths.n, 2);
    assert_false(f->config.anonymous_refused);

    assert_ok(load_config(f, "authentication: {anonymous: {enabled: false}}"));
    assert_true(f->config.anonymous_refused);
}

static void mistakes(void **state)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"authentication: []", "want an object"},
        {"authentication: {oidc: []}", "known here are jwt, anonymous"},
        {"authentication: {jwt: {}}", "authentication.jwt: want a list"},
        {"authentication: {jwt: [{}]}", "authentication.jwt[0]: issuer is needed"},
        {ONE("audiences: []", USERNAME, ""), "issuer: at least one of audiences is needed"},
        {ONE("audiences: [x, x]", USERNAME, ""), "\"x\" is given twice"},
        {ONE("audiences: [x, z]", USERNAME, ""), "audienceMatchPolicy must be MatchAny"},
        {ONE("audiences: [x], audienceMatchPolicy: All", USERNAME, ""), "want one of MatchAny"},
        {ONE("audiences: [x], egressSelectorType: cluster", USERNAME, ""), "no egress selector"},
        {ONE("audiences: [x], discoveryURL: 'https://a.example/'", USERNAME, ""),
         "discoveryURL must be different from url"},
        {ONE("audiences: [x], discoveryURL: 'http://b'", USERNAME, ""), "scheme must be https"},
        {ONE("audiences: [x], certificateAuthority: x", USERNAME, ""), "certificates as PEM"},
        {ONE("audiences: [x]", "groups: {claim: g, prefix: ''}", ""),
         "claimMappings.username.claim is needed"},
        {ONE("audiences: [x]", "username: {claim: sub}", ""),
         "claimMappings.username: prefix is needed with claim"},
        {ONE("audiences: [x]", "username: {expression: claims.sub}", ""),
         "claimMappings.username.expression: CEL expressions are not evaluated"},
        {ONE("audiences: [x]", USERNAME ", uid: {expression: claims.sub}", ""),
         "claimMappings.uid.expression: CEL expressions are not evaluated"},
        {ONE("audiences: [x]", USERNAME ", extra: [{key: a/b, valueExpression: claims.b}]", ""),
         "claimMappings.extra: CEL expressions are not evaluated"},
        {ONE("audiences: [x]", USERNAME, ", claimValidationRules: [{expression: 'true'}]"),
         "claimValidationRules[0].expression: CEL expressions are not evaluated"},
        {ONE("audiences: [x]", USERNAME, ", claimValidationRules: [{requiredValue: a}]"),
         "claimValidationRules[0]: claim is needed"},
        {ONE("audiences: [x]", USERNAME, ", claimValidationRules: [{claim: a}, {claim: a}]"),
         "claimValidationRules[1]: claim is that of [0] already"},
        {ONE("audiences: [x]", USERNAME, ", claimValidationRules: [{claim: a, message: b}]"),
         "may not be specified when claim is set"},
        {ONE("audiences: [x]", USERNAME, ", userValidationRules: [{expression: 'true'}]"),
         "userValidationRules: CEL expressions are not evaluated"},
        {"authentication: {anonymous: {conditions: [{path: /livez}]}}",
         "enabled should be set to true when conditions are defined"},
        {"authentication: {anonymous: {enabled: 1}}", "want true or false"},
        {"authentication: {anonymous: {enabled: true, conditions: [{}]}}", "path is needed"},
        {"authentication: {anonymous: {enabled: true, conditions: [{path: livez}]}}",
         "want a path such as /livez"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        err_init(&f->err, f->a);
        assert_int_equal(load_config(f, cases[i].yaml), -1);
        assert_has(f->err.message, "config: authentication");
        assert_has(f->err.message, cases[i].message);
    }
}

static void urls(void **state)
{
    static const struct {
        const char *url, *message;
    } cases[] = {
        {"", "must not be empty"},
        {"http://a", "scheme must be https"},
        {"https://", "names no host"},
        {"https:///x", "names no host"},
        {"https://a?b", "must not contain a query"},
        {"https://a/#b", "must not contain a fragment"},
        {"https://me@a/", "must not contain a username"},
        {"https://a /b", "no blanks"},
        {"https://kubernetes.default.svc.cluster.local", "the cluster's own service accounts"},
    };
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str yaml =
            arena_printf(f->a,
                         "authentication: {jwt: [{issuer: {url: '%s', audiences: [x]}, "
                         "claimMappings: {" USERNAME "}}]}",
                         cases[i].url);

        err_init(&f->err, f->a);
        assert_int_equal(load_config(f, yaml.p), -1);
        assert_has(f->err.message, cases[i].message);
    }
}

static void two_of_one_issuer(void **state)
{
    struct config_fixture *f = *state;

    assert_error(
        load_config(f, "authentication: {jwt: ["
                       "{issuer: {url: 'https://a', audiences: [x]}, claimMappings: {" USERNAME
                       "}}, {issuer: {url: 'https://a', audiences: [z]}, claimMappings: "
                       "{" USERNAME "}}]}"),
        "config: authentication.jwt[1]: issuer.url is that of [0] already");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_by_default, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(all_of_it, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mistakes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(urls, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(two_of_one_issuer, config_setup, config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
