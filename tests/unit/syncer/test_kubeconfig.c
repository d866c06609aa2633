/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials as people write them: inline, in files, in a pod; and what is refused with its name.
 */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "host/kubeconfig.h"

#define HEAD                                                                                       \
    "apiVersion: v1\nkind: Config\ncurrent-context: here\n"                                        \
    "contexts: [{name: other}, {name: here, context: {cluster: k, user: u, namespace: x}}]\n"

static struct arena *arena;

static int setup(void **state)
{
    (void)state;
    arena = arena_new(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena = arena_free(arena);
    return 0;
}

static int parse(const char *text, struct kubeconfig *k, struct err *err)
{
    err_init(err, arena);
    return host_kubeconfig_parse(arena, str_c(text), STR("/nowhere"), k, err);
}

static void test_inline(void **state)
{
    struct kubeconfig k;
    struct err err;

    (void)state;
    assert_int_equal(parse(HEAD "clusters: [{name: k, cluster: {server: \"https://h:6443/k8s/c/\", "
                                "certificate-authority-data: Y2E=, tls-server-name: t, "
                                "proxy-url: \"http://p:1\"}}]\n"
                                "users: [{name: u, user: {client-certificate-data: Y2VydA==, "
                                "client-key-data: a2V5, username: nick, password: w}}]\n",
                           &k, &err),
                     0);
    assert_str(k.server, "https://h:6443/k8s/c");
    assert_str(k.ca, "ca");
    assert_str(k.certificate, "cert");
    assert_str(k.key, "key");
    assert_str(k.tls_server_name, "t");
    assert_str(k.proxy_url, "http://p:1");
    assert_str(k.username, "nick");
    assert_str(k.password, "w");
    assert_false(k.insecure);
}

static void test_files_are_relative_to_the_kubeconfig(void **state)
{
    char directory[] = "/tmp/sublet-kc-XXXXXX", path[64];
    struct kubeconfig k;
    struct err err;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/ca.crt", directory);
    f = fopen(path, "w");
    fputs("PEM", f);
    fclose(f);
    snprintf(path, sizeof(path), "%s/config", directory);
    f = fopen(path, "w");
    fputs(HEAD
          "clusters: [{name: k, cluster: {server: \"https://h\", certificate-authority: ca.crt,"
          " insecure-skip-tls-verify: true}}]\n"
          "users: [{name: u, user: {tokenFile: tok}}]\n",
          f);
    fclose(f);
    err_init(&err, arena);
    assert_int_equal(host_kubeconfig_load(arena, str_c(path), &k, &err), 0);
    assert_str(k.ca, "PEM");
    assert_true(k.insecure);
    assert_true(str_has_suffix(k.token_file, STR("/tok")));
    assert_true(str_has_prefix(k.token_file, str_c(directory)));
    unlink(path);
    snprintf(path, sizeof(path), "%s/ca.crt", directory);
    unlink(path);
    rmdir(directory);
}

static void test_refusals_name_the_place(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"a: [", "kubeconfig"},
        {"current-context: none\n", "context \"none\" does not exist"},
        {HEAD "clusters: []\n", "cluster \"k\" does not exist"},
        {HEAD "clusters: [{name: k, cluster: {server: \"ftp://h\"}}]\n", "server: want a URL"},
        {HEAD "clusters: [{name: k, cluster: {server: \"https://h\"}}]\n"
              "users: [{name: u, user: {exec: {command: aws}}}]\n",
         "user.exec is not supported"},
        {HEAD "clusters: [{name: k, cluster: {server: \"https://h\"}}]\n"
              "users: [{name: u, user: {client-key-data: a2V5}}]\n",
         "come together"},
        {HEAD "clusters: [{name: k, cluster: {server: \"https://h\", "
              "certificate-authority-data: \"%%\"}}]\n",
         "certificate-authority-data: not base64"},
        {HEAD "clusters: [{name: k, cluster: {server: \"https://h\", certificate-authority: f}}]\n",
         "/nowhere/f"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kubeconfig k;
        struct err err;

        assert_int_equal(parse(cases[i].text, &k, &err), -1);
        if (!str_contains(err.message, str_c(cases[i].want)))
            fail_msg("%zu: %.*s", i, STR_F(err.message));
    }
}

static void test_outside_a_pod(void **state)
{
    struct kubeconfig k;
    struct err err;

    (void)state;
    unsetenv("KUBERNETES_SERVICE_HOST");
    err_init(&err, arena);
    assert_int_equal(host_kubeconfig_load(arena, STR(""), &k, &err), -1);
    assert_true(str_contains(err.message, STR("not in a pod")));
}

static void put_file(const char *directory, const char *name, const char *text)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void test_in_a_pod(void **state)
{
    char directory[] = "/tmp/sublet-sa-XXXXXX", path[64];
    struct str account;
    struct kubeconfig k;
    struct err err;

    (void)state;
    assert_non_null(mkdtemp(directory));
    account = arena_printf(arena, "%s/", directory);
    put_file(directory, "token", "one\n");
    err_init(&err, arena);
    assert_int_equal(
        host_kubeconfig_in_cluster(arena, STR("10.96.0.1"), STR("443"), account, &k, &err), -1);
    assert_true(str_has_prefix(err.message, STR("the pod's service account: cannot open")));

    put_file(directory, "ca.crt", "PEM");
    assert_int_equal(
        host_kubeconfig_in_cluster(arena, STR("fd00::1"), STR("6443"), account, &k, &err), 0);
    assert_str(k.server, "https://[fd00::1]:6443");
    assert_str(k.ca, "PEM");
    assert_str(k.token, "one\n");
    /* Both are replaced under way. */
    assert_true(str_has_suffix(k.token_file, STR("/token")));
    assert_true(str_has_suffix(k.ca_file, STR("/ca.crt")));
    assert_false(k.insecure);
    snprintf(path, sizeof(path), "%s/ca.crt", directory);
    unlink(path);
    snprintf(path, sizeof(path), "%s/token", directory);
    unlink(path);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_inline, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_are_relative_to_the_kubeconfig, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals_name_the_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outside_a_pod, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_a_pod, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
