/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, precedence, and an error with its place for every mistake. */

#include "test.h"

#include <sublet/config_kubeconfig.h>
#include <sublet/config_webhook.h>

static int load_all(struct config_fixture *f, const char *yaml, int argc, const char *const *argv,
                    const char *const *env)
{
    char *args[16] = {0}, *vars[16] = {0};

    for (int i = 0; i < argc; i++)
        args[i] = arena_cstr(f->a, str_c(argv[i]));
    for (int i = 0; env && env[i]; i++)
        vars[i] = arena_cstr(f->a, str_c(env[i]));
    return config_load(f->a, str_c(yaml), argc, args, vars, &f->config, &f->err);
}

static void defaults(void **state)
{
    struct config_fixture *f = *state;
    const struct config *c = &f->config;

    assert_str(c->name, "sublet");
    assert_str(c->listen_address, "0.0.0.0:8443");
    assert_str(c->cluster_domain, "cluster.local");
    assert_str(c->data_dir, "/data");
    assert_int_equal(c->pod_security, POD_SECURITY_BASELINE);
    assert_int_equal(c->verdict, VERDICT_WARN);
    assert_int_equal(c->verdict_timeout_ms, 2000);
    assert_int_equal(c->max_bytes, 1 << 30);
    assert_true(c->controllers_native);
    assert_int_equal(c->n_pools + c->n_bindings + c->labels_allow.n, 0);
}

/* A listed URL admits what is below it, in no other spelling; nothing else is a webhook's URL. */
static void webhook_urls(void **state)
{
    static const char *const yes[] = {
        "https://a.example/in",    "https://A.example:443/in/x",       "https://a.example/in/",
        "https://b.example:8443",  "https://b.example:8443/any/thing", "https://10.0.0.7/x",
        "https://[fd00::7]:9443/x"};
    static const char *const no[] = {"https://a.example/",
                                     "https://a.example/inner",
                                     "https://a.example/in/../out",
                                     "https://a.example/in/./x",
                                     "https://a.example/in/%2e%2e/out",
                                     "https://a.example/in?x=1",
                                     "https://a.example/in#x",
                                     "https://a.example.evil/in",
                                     "https://a.example.:443/in",
                                     "https://evil@a.example/in",
                                     "https://a.example:8443/in",
                                     "https://a.example:/in",
                                     "https://a.example:0443x/in",
                                     "https://a.example\\.evil/in",
                                     "https://b.example",
                                     "https://10.0.0.70/x",
                                     "http://b.example:8443",
                                     "https:///in",
                                     "https://[fd00::7/x",
                                     ""};
    static const char *const mistakes[] = {"http://a",    "https://",       "https://*.a",
                                           "https://a?b", "https://a/../b", "a.example",
                                           "https://a:0"};
    struct config_fixture *f = *state;
    struct config_webhook_url url;

    assert_int_equal(load_all(f,
                              "policy: {webhookUrls: ['https://a.example/in/', "
                              "'https://b.example:8443', 'https://10.0.0.7', "
                              "'https://[fd00::7]:9443/x']}",
                              0, NULL, NULL),
                     0);
    for (size_t i = 0; i < COUNT(yes); i++)
        if (!config_webhook_url_allowed(&f->config, str_c(yes[i]), &url))
            fail_msg("%s is refused", yes[i]);
    for (size_t i = 0; i < COUNT(no); i++)
        if (config_webhook_url_allowed(&f->config, str_c(no[i]), &url))
            fail_msg("%s is allowed", no[i]);
    assert_true(config_webhook_url_parse(STR("https://[fd00::7]:9443/x"), &url));
    assert_str(url.host, "fd00::7");
    assert_int_equal(url.port, 9443);
    assert_str(url.path, "/x");
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const char *yaml = arena_printf(f->a, "policy: {webhookUrls: ['%s']}", mistakes[i]).p;

        err_clear(&f->err);
        assert_int_equal(load_all(f, yaml, 0, NULL, NULL), -1);
        assert_true(str_has_prefix(f->err.message, STR("config: policy.webhookUrls[0]: ")));
    }
}

static void file_is_read(void **state)
{
    struct config_fixture *f = *state;
    const struct config *c = &f->config;

    assert_ok(load_all(f,
                       "name: research\n"
                       "host: {namespace: team-research, kubeconfig: '', qps: 7}\n"
                       "listen: {address: '[::1]:6443', names: [research.gpu.example, 10.0.0.1]}\n"
                       "store: {path: /var/lib/sublet, maxBytes: 512Mi, maxObjects: 5000}\n"
                       "network: {clusterDomain: research.local, apiAddress: 10.96.0.9}\n"
                       "policy: {podSecurity: restricted, verdict: 'off', verdictTimeout: 1500ms, "
                       "labels: {allow: [a/]}}\n"
                       "sync: {nodeLabels: [rack], maxFailedPods: 3}\n"
                       "controllers: external\n"
                       "log:\n"
                       "pools: []\n"
                       "bindings: []\n",
                       0, NULL, NULL));
    assert_str(c->name, "research");
    assert_int_equal(c->host_qps, 7);
    assert_int_equal(c->host_burst, 1000);
    assert_int_equal(c->listen_names.n, 2);
    assert_int_equal(c->max_bytes, 512 << 20);
    assert_int_equal(c->verdict, VERDICT_OFF);
    assert_int_equal(c->verdict_timeout_ms, 1500);
    assert_int_equal(c->pod_security, POD_SECURITY_RESTRICTED);
    assert_true(str_list_has(c->node_labels, STR("rack")));
    assert_false(c->controllers_native);
    assert_str(c->log_level, "info");
}

/* To YAML an unquoted `off` is false. */
static void off_is_a_word(void **state)
{
    struct config_fixture *f = *state;

    assert_ok(load_all(f,
                       "{policy: {verdict: off}, kubeconfig: {server: 'https://r.example:8443'}}",
                       0, NULL, NULL));
    assert_int_equal(f->config.verdict, VERDICT_OFF);
    assert_str(f->config.kubeconfig_server, "https://r.example:8443");
}

static void further_secrets(void **state)
{
    struct config_fixture *f = *state;
    const struct config_kubeconfig *k;

    assert_ok(
        load_all(f,
                 "kubeconfig:\n"
                 "  context: team\n"
                 "  additionalSecrets:\n"
                 "  - {name: a, namespace: argocd, context: c, server: 'https://r.example'}\n"
                 "  - {name: a, namespace: '', insecure: true}\n"
                 "  - {name: b, certificateAuthority: '-----BEGIN CERTIFICATE-----'}\n"
                 "  - {name: c, serviceAccount: {name: robot, namespace: ci}}\n"
                 "  - {name: d, serviceAccount: {name: r, namespace: ci, clusterRole: system:x, "
                 "tokenLifetime: 1h}}\n",
                 0, NULL, NULL));
    assert_str(f->config.kubeconfig_context, "team");
    assert_int_equal(f->config.n_kubeconfigs, 5);
    k = f->config.kubeconfigs;
    assert_int_equal(k[0].account.n, 0);
    assert_str(k[3].account, "robot");
    assert_str(k[3].account_ns, "ci");
    assert_int_equal(k[3].token_s, 86400);
    assert_int_equal(k[3].cluster_role.n, 0);
    assert_int_equal(k[4].token_s, 3600);
    assert_str(k[4].cluster_role, "system:x");
    assert_str(k[0].ns, "argocd");
    assert_str(k[0].context, "c");
    assert_str(k[0].server, "https://r.example");
    assert_int_equal(k[1].ns.n, 0);
    assert_true(k[1].insecure);
    assert_str(k[2].certificate_authority, "-----BEGIN CERTIFICATE-----");
}

static void flags_win_over_variables_over_file(void **state)
{
    static const char *const args[] = {"--name", "flag", "--listen=127.0.0.1:0", "--config",
                                       "x.yaml"};
    static const char *const env[] = {"SUBLET_NAME=variable",
                                      "SUBLET_HOST_NAMESPACE=variable",
                                      "SUBLET_POLICY_LABELS_ALLOW=a.example/, b",
                                      "SUBLET_PORT=tcp://1.2.3.4:443",
                                      "SUBLET_HOST_QPS=9",
                                      "PATH=/bin",
                                      NULL};
    struct config_fixture *f = *state;

    assert_ok(
        load_all(f, "{name: file, host: {namespace: file}, store: {path: /file}}", 5, args, env));
    assert_str(f->config.name, "flag");
    assert_str(f->config.host_namespace, "variable");
    assert_str(f->config.data_dir, "/file");
    assert_str(f->config.listen_address, "127.0.0.1:0");
    assert_int_equal(f->config.host_qps, 9);
    assert_int_equal(f->config.labels_allow.n, 2);
    assert_str(json_str_at(f->config.tree, "name"), "flag");
    assert_str(json_str_at(f->config.tree, "host.namespace"), "variable");
    assert_true(json_i64_at(f->config.tree, "host.qps", 0) == 9);
}

#define KNOWN                                                                                      \
    "known here are pools, bindings, authentication, init, name, host, listen, kubeconfig, "       \
    "store, lease, grants, ledger, telemetry, network, policy, fleet, sync, metrics, "             \
    "controllers, audit, limits, log"

static const struct {
    const char *yaml, *message;
} FILE_MISTAKES[] = {
    {"[]", "config: want an object, got array"},
    {"nmae: x", "config: nmae: unknown key: " KNOWN},
    {"policy: {verdcit: off}", "config: policy.verdcit: unknown key: known here are podSecurity, "
                               "verdict, verdictTimeout, webhookUrls, labels, annotations, "
                               "tolerations, priceWarnings, cpuNodes, plainResources, "
                               "imagePullPolicy, podsPerMinute, storageClasses"},
    {"telemetry: {dcgm: {selector: \"a in (\"}}",
     "config: telemetry.dcgm.selector: unable to parse requirement: found '', expected: ',', "
     "')' or identifier"},
    {"telemetry: {dcgm: {selector: \"\"}}",
     "config: telemetry.dcgm.selector: \"\": it selects every pod"},
    {"telemetry: {dcgm: {idleBelow: \"1.5\"}}",
     "config: telemetry.dcgm.idleBelow: \"1.5\": want a number from 0 to 1"},
    {"telemetry: {fleet: \"http://fleet:8081\"}",
     "config: telemetry.fleet: \"http://fleet:8081\": want https://name or https://name:port"},
    {"telemetry: {fleet: \"https://fleet/path\"}",
     "config: telemetry.fleet: \"https://fleet/path\": want https://name or https://name:port"},
    {"telemetry: {dcgm: {path: \"metrics\"}}",
     "config: telemetry.dcgm.path: \"metrics\": want a path such as /metrics"},
    {"kubeconfig: {context: \"a b\"}", "config: kubeconfig.context: \"a b\": want printable ASCII "
                                       "characters without spaces"},
    {"kubeconfig: {additionalSecrets: {}}",
     "config: kubeconfig.additionalSecrets: want a list, got object"},
    {"kubeconfig: {additionalSecrets: [{namespace: a}]}",
     "config: kubeconfig.additionalSecrets[0]: name is missing"},
    {"kubeconfig: {additionalSecrets: [{name: A}]}",
     "config: kubeconfig.additionalSecrets[0].name: \"A\": a lowercase RFC 1123 subdomain must "
     "consist "
     "of lower case alphanumeric characters, '-' or '.', and must start and end with an "
     "alphanumeric "
     "character (e.g. 'example.com', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"kubeconfig: {additionalSecrets: [{name: a, namespace: b_c}]}",
     "config: kubeconfig.additionalSecrets[0].namespace: \"b_c\": a lowercase RFC 1123 label must "
     "consist of lower case alphanumeric characters or '-', and must start and end with an "
     "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {"kubeconfig: {additionalSecrets: [{name: a, server: \"http://x\"}]}",
     "config: kubeconfig.additionalSecrets[0].server: \"http://x\": want https://name or "
     "https://name:port"},
    {"kubeconfig: {additionalSecrets: [{name: a, certificateAuthority: x}]}",
     "config: kubeconfig.additionalSecrets[0].certificateAuthority: want certificates as PEM, of "
     "at most 65536 bytes"},
    {"kubeconfig: {additionalSecrets: [{name: a, insecure: true, certificateAuthority: "
     "\"-----BEGIN CERTIFICATE-----\"}]}",
     "config: kubeconfig.additionalSecrets[0]: insecure verifies nothing: leave out "
     "certificateAuthority"},
    {"{name: x, kubeconfig: {additionalSecrets: [{name: x-kubeconfig}]}}",
     "config: kubeconfig.additionalSecrets[0]: Secret x-kubeconfig is written without it"},
    {"{host: {namespace: team}, kubeconfig: {additionalSecrets: [{name: a}, {name: a, namespace: "
     "team}]}}",
     "config: kubeconfig.additionalSecrets[1]: Secret a is named twice"},
    {"kubeconfig: {additionalSecrets: [{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, "
     "{}, "
     "{}]}",
     "config: kubeconfig.additionalSecrets: at most 16 Secrets"},
    {"kubeconfig: {additionalSecrets: [{name: a, certificate: x}]}",
     "config: kubeconfig.additionalSecrets[0].certificate: unknown key: known here are name, "
     "namespace, context, server, insecure, certificateAuthority, serviceAccount"},
    {"kubeconfig: {additionalSecrets: [{name: a, serviceAccount: {name: robot}}]}",
     "config: kubeconfig.additionalSecrets[0].serviceAccount: want name and namespace of a "
     "ServiceAccount of the tenant"},
    {"kubeconfig: {additionalSecrets: [{name: a, serviceAccount: {name: r, namespace: team, "
     "clusterRole: a/b}}]}",
     "config: kubeconfig.additionalSecrets[0].serviceAccount.clusterRole: \"a/b\": may not "
     "contain '/'"},
    {"kubeconfig: {additionalSecrets: [{name: a, serviceAccount: {name: r, namespace: team, "
     "tokenLifetime: 9m}}]}",
     "config: kubeconfig.additionalSecrets[0].serviceAccount.tokenLifetime: want 10m to 24h"},
    {"kubeconfig: {additionalSecrets: [{name: a, serviceAccount: {name: r, namespace: team, "
     "tokenLifetime: 25h}}]}",
     "config: kubeconfig.additionalSecrets[0].serviceAccount.tokenLifetime: want 10m to 24h"},
    {"policy: {cpuNodes: [tier]}", "config: policy.cpuNodes: \"tier\": want key=value"},
    {"policy: {tolerations: ignore}",
     "config: policy.tolerations: unknown value \"ignore\": want one of drop|refuse"},
    {"host.qps: 5", "config: host.qps: unknown key: " KNOWN},
    {"policy: {verdict: yes}",
     "config: policy.verdict: unknown value \"on\": want one of off|warn|enforce"},
    {"policy: {podSecurity: [a]}", "config: policy.podSecurity: want a string, got array"},
    {"policy: {verdict: fast}",
     "config: policy.verdict: unknown value \"fast\": want one of off|warn|enforce"},
    {"policy: {labels: [x]}", "config: policy.labels: want an object, got array"},
    {"name: 5", "config: name: want a string, got number"},
    {"host: {qps: many}", "config: host.qps: want a whole number, got string"},
    {"host: {qps: 0}", "config: host.qps: must be within 1..100000"},
    {"host: {qps: 1.5}", "config: host.qps: want a whole number"},
    {"listen: {names: [a, 1]}", "config: listen.names[1]: want a string, got number"},
    {"listen: {names: a}", "config: listen.names: want a list of strings, got string"},
    {"policy: {verdictTimeout: 2}",
     "config: policy.verdictTimeout: want a duration such as 2s, got number"},
    {"policy: {verdictTimeout: 2h}", "config: policy.verdictTimeout: must be within 10ms..1m"},
    {"policy: {verdictTimeout: soon}", "config: policy.verdictTimeout: want a duration such as 2s"},
    {"store: {maxBytes: 1Ki}", "config: store.maxBytes: must be within 1Mi..1Ti"},
    {"store: {maxBytes: x}", "config: store.maxBytes: want a whole quantity such as 1Gi"},
    {"controllers: both",
     "config: controllers: unknown value \"both\": want one of external|native"},
    {"log: {level: loud}",
     "config: log.level: unknown value \"loud\": want one of error|warn|info|debug"},
    {"listen: {address: nowhere}", "config: listen.address: \"nowhere\": want address:port"},
    {"listen: {address: 'a:99999'}", "config: listen.address: \"a:99999\": want address:port"},
    {"kubeconfig: {server: \"http://a\"}",
     "config: kubeconfig.server: \"http://a\": want https://name or https://name:port"},
    {"kubeconfig: {server: \"https://:443\"}",
     "config: kubeconfig.server: \"https://:443\": want https://name or https://name:port"},
    {"kubeconfig: {server: 'https://a\"b'}",
     "config: kubeconfig.server: \"https://a\"b\": want https://name or https://name:port"},
    {"network: {apiAddress: api.example}",
     "config: network.apiAddress: \"api.example\": want an IP address"},
    {"grants: {labels: [cost center]}",
     "config: grants.labels: \"cost center\": name part must consist of alphanumeric "
     "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
     "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
     "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"grants: {labels: [a,b,c,d,e,f,g,h,i,j,k,l,m,o,p,q,r]}",
     "config: grants.labels: \"r\": want at most 16 keys"},
    {"policy: {labels: {allow: [kueue.x-k8s.io/queue-name]}}",
     "config: policy.labels.allow: \"kueue.x-k8s.io/queue-name\": queueing systems and GPU "
     "schedulers take orders by it: it is never a tenant's, and scheduler of a pool sets it"},
    {"policy: {labels: {allow: [scheduling.volcano.sh/]}}",
     "config: policy.labels.allow: \"scheduling.volcano.sh/\": queueing systems and GPU "
     "schedulers take orders by it: it is never a tenant's, and scheduler of a pool sets it"},
    {"policy: {labels: {allow: [priorityClassName]}}",
     "config: policy.labels.allow: \"priorityClassName\": queueing systems and GPU "
     "schedulers take orders by it: it is never a tenant's, and scheduler of a pool sets it"},
    {"policy: {annotations: {allow: [gpu-fraction]}}",
     "config: policy.annotations.allow: \"gpu-fraction\": queueing systems and GPU "
     "schedulers take orders by it: it is never a tenant's, and scheduler of a pool sets it"},
    {"policy: {labels: {allow: [sublet.dev/]}}",
     "config: policy.labels.allow: \"sublet.dev/\": keys of sublet.dev are never a tenant's"},
    {"policy: {labels: {fromHost: [example.com/, sublet.dev/pool]}}",
     "config: policy.labels.fromHost: \"sublet.dev/pool\": keys of sublet.dev are never a "
     "tenant's"},
    {"policy: {annotations: {fromHost: [hami.io/vgpu-node]}}",
     "config: policy.annotations.fromHost: \"hami.io/vgpu-node\": queueing systems and GPU "
     "schedulers take orders by it: it is never a tenant's, and scheduler of a pool sets it"},
    {"policy: {labels: {fromHost: [topology.kubernetes.io/zone]}}",
     "config: policy.labels.fromHost: \"topology.kubernetes.io/zone\": components of "
     "Kubernetes act on it: it never comes up"},
    {"policy: {labels: {fromHost: [pod-template-hash]}}",
     "config: policy.labels.fromHost: \"pod-template-hash\": components of Kubernetes act on it: "
     "it never comes up"},
    {"policy: {labels: {fromHost: [argocd.argoproj.io/instance]}}",
     "config: policy.labels.fromHost: \"argocd.argoproj.io/instance\": a tool of the tenant would "
     "take the object for one that it has installed: it never comes up"},
    {"policy: {annotations: {fromHost: [meta.helm.sh/]}}",
     "config: policy.annotations.fromHost: \"meta.helm.sh/\": a tool of the tenant would take the "
     "object for one that it has installed: it never comes up"},
    {"policy: {annotations: {fromHost: [kubernetes.io/]}}",
     "config: policy.annotations.fromHost: \"kubernetes.io/\": components of Kubernetes act "
     "on it: it never comes up"},
    {"pools: {}", "config: pools: want a list, got object"},
    {"bindings: 5", "config: bindings: want a list, got number"},
};

static void file_mistakes(void **state)
{
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(FILE_MISTAKES); i++) {
        int rc = load_all(f, FILE_MISTAKES[i].yaml, 0, NULL, NULL);

        assert_true(rc == 0 || f->err.kind == &ERR_BAD_REQUEST);
        assert_error(rc, FILE_MISTAKES[i].message);
    }
}

static void syntax_and_duplicates(void **state)
{
    struct config_fixture *f = *state;

    assert_int_equal(load_all(f, "name: a\nname: b\n", 0, NULL, NULL), -1);
    assert_has(f->err.message, "config: line 2: key \"name\" already set in map");
    assert_int_equal(load_all(f, "name: [", 0, NULL, NULL), -1);
    assert_has(f->err.message, "config: ");
    assert_int_equal(load_all(f, "name: Not_A_Label", 0, NULL, NULL), -1);
    assert_has(f->err.message, "config: name: \"Not_A_Label\": ");
}

static void argument_mistakes(void **state)
{
    static const struct {
        const char *args[2];
        int n;
        const char *message;
    } cases[] = {
        {{"--nmae", "x"}, 2, "unknown flag --nmae"},
        {{"serve", NULL}, 1, "unexpected argument \"serve\""},
        {{"--name", NULL}, 1, "--name: needs a value"},
        {{"--verdict", "fast"},
         2,
         "--verdict: unknown value \"fast\": want one of off|warn|enforce"},
        {{"--name=a=b", NULL}, 1, NULL},
    };
    static const char *const env[] = {"SUBLET_HOST_QPS=many", NULL};
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        int rc = load_all(f, "", cases[i].n, cases[i].args, NULL);

        assert_int_equal(rc, -1);
        if (cases[i].message)
            assert_error(rc, cases[i].message);
    }
    assert_error(load_all(f, "", 0, NULL, env),
                 "SUBLET_HOST_QPS: want a whole number, got \"many\"");
}

/* A failed load leaves what was there. */
static void result_is_untouched_on_failure(void **state)
{
    struct config_fixture *f = *state;

    assert_ok(load_all(f, "name: good", 0, NULL, NULL));
    assert_int_equal(load_all(f, "{name: better, policy: {verdict: x}}", 0, NULL, NULL), -1);
    assert_str(f->config.name, "good");
}

static void table_is_sound(void **state)
{
    struct config_fixture *f = *state;
    struct buf help = BUF_INIT(0);

    config_help(&help, "serve");
    for (size_t i = 0; i < CONFIG_N_OPTIONS; i++) {
        assert_has(buf_str(&help), CONFIG_OPTIONS[i].path);
        assert_true(CONFIG_OPTIONS[i].help[0] && CONFIG_OPTIONS[i].offset < sizeof f->config);
        assert_true(strncmp(CONFIG_OPTIONS[i].env, "SUBLET_", 7) == 0);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(CONFIG_OPTIONS[i].path, CONFIG_OPTIONS[k].path);
            assert_string_not_equal(CONFIG_OPTIONS[i].env, CONFIG_OPTIONS[k].env);
        }
    }
    buf_fini(&help);
}

static void keys_of_the_host(void **state)
{
    struct config_fixture *f = *state;
    struct str keys = STR("");

    for (int i = 0; i < 65; i++) {
        const char *yaml =
            arena_printf(f->a, "policy: {annotations: {fromHost: [%.*s]}}", STR_F(keys)).p;

        assert_ok(load_config(f, yaml));
        assert_int_equal(f->config.annotations_up.n, i);
        keys = arena_printf(f->a, "%.*s%sexample.com/k%d", STR_F(keys), i ? ", " : "", i);
    }
    assert_error(
        load_config(f,
                    arena_printf(f->a, "policy: {annotations: {fromHost: [%.*s]}}", STR_F(keys)).p),
        "config: policy.annotations.fromHost: \"example.com/k64\": want at most 64 keys");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_of_the_host, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(defaults, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(file_is_read, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(off_is_a_word, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(further_secrets, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(flags_win_over_variables_over_file, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(file_mistakes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(syntax_and_duplicates, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(argument_mistakes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(result_is_untouched_on_failure, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(webhook_urls, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(table_is_sound, config_setup, config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
