/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost:`: nothing is on by default, and a mistake names its place. */

#include "test.h"

#include <sublet/config_sync.h>

static void nothing_by_default(void **state)
{
    static const char *const empty[] = {"",
                                        "sync: null",
                                        "sync: {}",
                                        "sync: {toHost: null}",
                                        "sync: {toHost: {}}",
                                        "sync: {toHost: {customResources: {a.b.example: }}}"};
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(empty); i++) {
        assert_ok(load_config(f, empty[i]));
        for (int k = 0; k < N_SYNC_DOWN; k++)
            assert_false(f->config.to_host->enabled[k]);
        assert_false(f->config.to_host->all_config_maps || f->config.to_host->all_secrets);
        assert_int_equal(f->config.to_host->n_custom, 0);
    }
}

static void all_of_it(void **state)
{
    struct config_fixture *f = *state;
    const struct config_to_host *to;

    assert_ok(load_config(
        f, "sync:\n"
           "  maxServices: 7\n"
           "  toHost:\n"
           "    pods: {translateImage: {'nginx:1': 'mirror.example/nginx:1'}, runtimeClassName: "
           "sandbox}\n"
           "    configMaps: {all: true}\n"
           "    secrets: {all: false}\n"
           "    networkPolicies: {enabled: true, allowedCIDRs: [10.20.0.0/16, 'fd00:1::/32']}\n"
           "    ingresses: {enabled: true, classes: [nginx, web], hosts: ['*.team.example']}\n"
           "    podDisruptionBudgets: {enabled: true}\n"
           "    gateways: {enabled: true, classes: [shared], hosts: ['*.team.example']}\n"
           "    httpRoutes: {enabled: false}\n"
           "    grpcRoutes: {enabled: true}\n"
           "    customResources:\n"
           "      certificates.cert-manager.io:\n"
           "        enabled: true\n"
           "        patches:\n"
           "        - {path: spec.secretName, reference: {apiVersion: v1, kind: Secret}}\n"
           "        - {path: 'spec.targets[*].selector', labels: {}}\n"
           "        - {path: spec.*.zone, value: {a: [1]}}\n"
           "        - {path: spec.hostNetwork, drop: true}\n"
           "      httproutes.gateway.networking.k8s.io/v1beta1: {enabled: true}\n"
           "      off.team.example: {enabled: false}\n"));
    to = f->config.to_host;
    assert_str(json_str(json_get(to->images, "nginx:1")), "mirror.example/nginx:1");
    assert_str(to->pod_runtime_class, "sandbox");
    assert_str(to->pod_priority_class, "");
    assert_true(to->all_config_maps);
    assert_false(to->all_secrets);
    assert_true(to->enabled[DOWN_NETWORK_POLICIES] && to->enabled[DOWN_INGRESSES]);
    assert_true(to->enabled[DOWN_DISRUPTION_BUDGETS]);
    assert_true(to->enabled[DOWN_GATEWAYS] && to->enabled[DOWN_GRPC_ROUTES]);
    assert_false(to->enabled[DOWN_HTTP_ROUTES] || to->enabled[DOWN_TLS_ROUTES]);
    assert_str(to->gateway_classes.items[0], "shared");
    assert_int_equal(to->gateway_hosts.n, 1);
    assert_int_equal(to->network_cidrs.n, 2);
    assert_str(to->ingress_classes.items[0], "nginx");
    assert_int_equal(to->n_custom, 2);
    assert_string_equal(to->custom[0].plural, "certificates");
    assert_string_equal(to->custom[0].group, "cert-manager.io");
    assert_string_equal(to->custom[0].version, "v1");
    assert_string_equal(to->custom[1].version, "v1beta1");
    assert_int_equal(to->custom[0].n_patches, 4);
    assert_int_equal(to->custom[0].patches[0].action, PATCH_REFERENCE);
    assert_str(to->custom[0].patches[0].kind, "Secret");
    assert_string_equal(to->custom[0].patches[1].path, "spec.targets[*].selector");
    assert_int_equal(to->custom[0].patches[2].action, PATCH_VALUE);
    assert_true(json_is_object(to->custom[0].patches[2].value));
    assert_int_equal(to->custom[0].patches[3].action, PATCH_DROP);
    assert_int_equal(f->config.max_services, 7);
}

#define TO       "config: sync.toHost"
#define CUSTOM   TO ".customResources"
#define ONE(it)  "sync: {toHost: {customResources: {a.b.example: {patches: [" it "]}}}}"
#define PATCH(n) CUSTOM ".a.b.example.patches[0]" n

static const char *const MISTAKES[][2] = {
    {"sync: {toHost: {claims: {enabled: true}}}",
     TO ".claims: unknown key: known here are pods, configMaps, secrets, networkPolicies, "
        "ingresses, podDisruptionBudgets, endpointSlices, gateways, httpRoutes, grpcRoutes, "
        "tlsRoutes, backendTLSPolicies, resourceClaims, priorityClasses, customResources"},
    {"sync: {toHost: {pods: {enabled: true}}}",
     TO ".pods.enabled: unknown key: known here are translateImage, runtimeClassName, "
        "priorityClassName"},
    {"sync: {toHost: {pods: {translateImage: {a: 1}}}}",
     TO ".pods.translateImage.a: want a string, got number"},
    {"sync: {toHost: {pods: {translateImage: {a: ''}}}}",
     TO ".pods.translateImage.a: want an image for an image, such as \"nginx:1.29\": "
        "\"mirror.example/nginx:1.29\""},
    {"sync: {toHost: {pods: {translateImage: {'a b': b}}}}",
     TO ".pods.translateImage.a b: want an image for an image, such as \"nginx:1.29\": "
        "\"mirror.example/nginx:1.29\""},
    {"sync: {toHost: {pods: {priorityClassName: system-node-critical}}}",
     TO ".pods.priorityClassName: \"system-node-critical\": a class of the host's system is "
        "never a tenant's"},
    {"sync: {toHost: {secrets: {all: yes please}}}",
     TO ".secrets.all: want true or false, got string"},
    {"sync: {toHost: {configMaps: {enabled: true}}}",
     TO ".configMaps.enabled: unknown key: known here are all"},
    {"sync: {toHost: [1]}", TO ": want an object, got array"},
    {"sync: {toHost: {ingresses: true}}", TO ".ingresses: want an object, got bool"},
    {"sync: {toHost: {ingresses: {enabled: yes please}}}",
     TO ".ingresses.enabled: want true or false, got string"},
    {"sync: {toHost: {ingresses: {enabled: true, classes: [nginx]}}}",
     TO ".ingresses: classes and hosts are needed: without them no Ingress could go down"},
    {"sync: {toHost: {ingresses: {hosts: ['*']}}}",
     TO ".ingresses.hosts[0]: \"*\": want a name such as a.team.example or *.team.example"},
    {"sync: {toHost: {ingresses: {hosts: ['*.*.example']}}}",
     TO ".ingresses.hosts[0]: \"*.*.example\": want a name such as a.team.example or "
        "*.team.example"},
    {"sync: {toHost: {ingresses: {hosts: ['example']}}}",
     TO ".ingresses.hosts[0]: \"example\": want a name such as a.team.example or "
        "*.team.example"},
    {"sync: {toHost: {gateways: {enabled: true, hosts: [a.example]}}}",
     TO ".gateways: classes and hosts are needed: without them no Gateway could go down"},
    {"sync: {toHost: {gateways: {enabled: true, classes: [a b], hosts: [a.example]}}}",
     TO ".gateways.classes[0]: \"a b\": a lowercase RFC 1123 subdomain must consist of lower "
        "case alphanumeric characters, '-' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'example.com', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
    {"sync: {toHost: {tlsRoutes: {enabled: true}, customResources: "
     "{tlsroutes.gateway.networking.k8s.io: {enabled: true}}}}",
     TO ": tlsRoutes is enabled already, and goes down by its own rules: customResources must "
        "not name tlsroutes.gateway.networking.k8s.io"},
    {"sync: {toHost: {priorityClasses: {enabled: true}}}",
     TO ".priorityClasses: mappings.byName or ranges is needed: without them no PriorityClass "
        "of the host is granted"},
    {"sync: {toHost: {priorityClasses: {mappings: {byName: {a: system-node-critical}}}}}",
     TO ".priorityClasses.mappings.byName.a: \"system-node-critical\": a class of the host's "
        "system is never a tenant's"},
    {"sync: {toHost: {priorityClasses: {ranges: [{upTo: 1, class: system-x}]}}}",
     TO ".priorityClasses.ranges[0].class: \"system-x\": a class of the host's system is never "
        "a tenant's"},
    {"sync: {toHost: {priorityClasses: {ranges: [{upTo: 1, class: a}, {upTo: 1, class: b}]}}}",
     TO ".priorityClasses.ranges[1]: upTo must be more than that of the range before"},
    {"sync: {toHost: {priorityClasses: {ranges: [{class: a}]}}}",
     TO ".priorityClasses.ranges[0]: want upTo and class"},
    {"sync: {toHost: {priorityClasses: {ranges: [{upTo: 2000000000, class: a}]}}}",
     TO ".priorityClasses.ranges[0].upTo: want a number up to 1000000000"},
    {"sync: {toHost: {priorityClasses: {enabled: true, ranges: [{upTo: 1, class: a}]}}, "
     "fromHost: {priorityClasses: {enabled: true}}}",
     "config: sync.fromHost: priorityClasses: either the host's classes are shown, or "
     "sync.toHost.priorityClasses maps the tenant's own"},
    {"sync: {toHost: {networkPolicies: {allowedCIDRs: [10.0.0.1]}}}",
     TO ".networkPolicies.allowedCIDRs[0]: \"10.0.0.1\": want a range such as 10.20.0.0/16"},
    {"sync: {toHost: {endpointSlices: {enabled: true}}}",
     TO ".endpointSlices: allowedCIDRs is needed: without it no EndpointSlice could go down"},
    {"sync: {toHost: {networkPolicies: {allowedCIDRs: [10.0.0.0/8, 0.0.0.0/0]}}}",
     TO ".networkPolicies.allowedCIDRs[1]: \"0.0.0.0/0\": must not reach 169.254.0.0/16"},
    {"sync: {toHost: {networkPolicies: {allowedCIDRs: ['::/0']}}}",
     TO ".networkPolicies.allowedCIDRs[0]: \"::/0\": must not reach ::1/128"},
    {"sync: {toHost: {customResources: {deployments.apps: {}}}}",
     CUSTOM ".deployments.apps: want the plural and the group of a custom resource, such as "
            "certificates.cert-manager.io/v1"},
    {"sync: {toHost: {customResources: {pods: {}}}}",
     CUSTOM ".pods: want the plural and the group of a custom resource, such as "
            "certificates.cert-manager.io/v1"},
    {"sync: {toHost: {customResources: {clusterroles.rbac.authorization.k8s.io: {}}}}",
     CUSTOM ".clusterroles.rbac.authorization.k8s.io: is a kind of Kubernetes itself: only "
            "custom resources go down by their name"},
    {"sync: {toHost: {customResources: {a.b.example: {}, a.b.example/v2: {}}}}", NULL},
    {"sync: {toHost: {customResources: {a.b.example: {enabled: true}, a.b.example/v2: {}}}}",
     CUSTOM ".a.b.example/v2: is there in another version already"},
    {ONE("{path: spec.a}"),
     PATCH(": want a path and one of reference, labels, selector, value, drop")},
    {ONE("{path: spec.a, drop: true, labels: {}}"),
     PATCH(": want a path and one of reference, labels, selector, value, drop")},
    {ONE("{path: spec.a, drop: false}"), PATCH(".drop: want true")},
    {ONE("{path: metadata.labels, drop: true}"),
     PATCH(".path: \"metadata.labels\": want a path such as spec.rules[*].secretName; metadata "
           "and status have rules of their own")},
    {ONE("{path: 'spec[0].a', drop: true}"),
     PATCH(".path: \"spec[0].a\": want a path such as spec.rules[*].secretName; metadata and "
           "status have rules of their own")},
    {ONE("{path: spec.a, reference: {apiVersion: v1}}"), PATCH(".reference: kind is needed")},
    {ONE("{path: spec.a, labels: {a: b}}"), PATCH(".labels: want {}")},
};

static void mistakes(void **state)
{
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(MISTAKES); i++) {
        int rc = load_config(f, MISTAKES[i][0]);

        if (MISTAKES[i][1])
            assert_error(rc, MISTAKES[i][1]);
        else
            assert_ok(rc);
    }
}

static void hosts_are_whole_labels(void **state)
{
    static const struct {
        const char *host;
        bool listed;
    } cases[] = {
        {"a.team.example", true},
        {"team.example", false},
        {"a.b.team.example", false},
        {"*.team.example", true},
        {"xteam.example", false},
        {"evil.example", false},
        {"fixed.example", true},
        {"a.fixed.example", false},
        {".team.example", false},
        {"*.fixed.example", false},
        {"", false},
        {"*", false},
        {"a.team.example.org", false},
        {"*.", false},
    };
    struct str items[] = {STR("*.team.example"), STR("fixed.example")};
    struct str_list patterns = {items, 2};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (config_host_listed(patterns, str_c(cases[i].host)) != cases[i].listed)
            fail_msg("%s", cases[i].host);
    assert_false(config_host_listed((struct str_list){0}, STR("a.team.example")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_by_default, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(all_of_it, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mistakes, config_setup, config_teardown),
        cmocka_unit_test(hosts_are_whole_labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
