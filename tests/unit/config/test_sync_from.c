/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.fromHost`: what is enabled becomes a row, errors are reported with their place. */

#include "test.h"

#include <sublet/config_sync_from.h>

#define FROM(entries) "sync: {fromHost: {" entries "}}"
#define PATCHED(it)                                                                                \
    FROM("customResources: {w.example.com: {enabled: true, scope: Cluster, patches: [" it "]}}")
#define PATCHES "config: sync.fromHost.customResources[w.example.com].patches"

static void nothing_by_default(void **state)
{
    struct config_fixture *f = *state;

    assert_ok(load_config(f, ""));
    assert_int_equal(f->config.n_from, 0);
    assert_ok(load_config(f, "sync: {fromHost: null, maxServices: 3}"));
    assert_ok(load_config(f, FROM("")));
    assert_ok(load_config(f, FROM("ingressClasses: {selector: {matchLabels: {a: b}}}")));
    assert_ok(load_config(f, FROM("secrets: {enabled: false}, customResources: {}")));
    assert_int_equal(f->config.n_from, 0);
    assert_null(config_from_row(&f->config, FROM_INGRESS_CLASSES));
    assert_false(f->config.metrics_from_host);
}

static void patches(void **state)
{
    struct config_fixture *f = *state;
    const struct config_patches *read;
    struct str items = STR("");

    assert_ok(load_config(f, PATCHED("{path: 'spec.servers[*].token', drop: true},"
                                     "{path: status.address, value: none}")));
    read = &f->config.from[0].patches;
    assert_int_equal(read->n, 2);
    assert_string_equal(read->items[0].path, "spec.servers[*].token");
    assert_int_equal(read->items[0].action, PATCH_DROP);
    assert_string_equal(read->items[1].path, "status.address");
    assert_int_equal(read->items[1].action, PATCH_VALUE);
    assert_str(json_str(read->items[1].value), "none");

    for (int i = 0; i < 65; i++)
        items = arena_printf(f->a, "%.*s{path: spec.a%d, drop: true}, ", STR_F(items), i);
    assert_error(load_config(f, arena_printf(f->a, PATCHED("%.*s"), STR_F(items)).p),
                 PATCHES ": at most 64");
}

static bool picks(const struct config_fixture *f, const struct config_from *row, const char *labels)
{
    cJSON *tree = NULL;

    assert_int_equal(json_parse(f->a, str_c(labels), &tree, NULL), 0);
    return selector_match(&row->selector, labels_flatten(f->a, tree));
}

static void classes(void **state)
{
    struct config_fixture *f = *state;
    const struct config_from *row;

    assert_ok(
        load_config(f, FROM("ingressClasses: {enabled: true},"
                            "runtimeClasses: {enabled: true, selector: {matchLabels: {tier: a},"
                            " matchExpressions: [{key: x, operator: NotIn, values: [z]}]}},"
                            "csiStorageCapacities: {enabled: true}")));
    assert_int_equal(f->config.n_from, 3);
    row = config_from_row(&f->config, FROM_INGRESS_CLASSES);
    assert_str(row->group, "networking.k8s.io");
    assert_str(row->plural, "ingressclasses");
    assert_true(picks(f, row, "{}"));
    row = config_from_row(&f->config, FROM_RUNTIME_CLASSES);
    assert_false(row->namespaced);
    assert_true(picks(f, row, "{\"tier\": \"a\"}"));
    assert_false(picks(f, row, "{\"tier\": \"a\", \"x\": \"z\"}"));
    assert_false(picks(f, row, "{}"));
    assert_int_equal(config_from_row(&f->config, FROM_CSI_STORAGE_CAPACITIES)->n_mappings, 0);
}

static void mappings(void **state)
{
    struct config_fixture *f = *state;
    const struct config_from *row;

    assert_ok(load_config(f, FROM("configMaps: {enabled: true, mappings: {byName: {"
                                  "  shared/ca: default/root-ca, tools/*: tools/*, '': own,"
                                  "  /one: own/other}}}")));
    row = config_from_row(&f->config, FROM_CONFIG_MAPS);
    assert_int_equal(row->n_mappings, 4);
    assert_str(row->mappings[0].host_ns, "shared");
    assert_str(row->mappings[0].host_name, "ca");
    assert_str(row->mappings[0].ns, "default");
    assert_str(row->mappings[0].name, "root-ca");
    assert_str(row->mappings[1].host_ns, "tools");
    assert_str(row->mappings[1].host_name, "");
    assert_str(row->mappings[1].ns, "tools");
    assert_str(row->mappings[1].name, "");
    assert_str(row->mappings[2].host_ns, "");
    assert_str(row->mappings[2].ns, "own");
    assert_str(row->mappings[3].host_name, "one");
    assert_str(row->mappings[3].name, "other");
}

static void shared_gateways(void **state)
{
    struct config_fixture *f = *state;
    const struct config_from *row;

    assert_ok(load_config(f, FROM("gateways: {enabled: true, hosts: [a.example, '*.team.example'],"
                                  " mappings: {byName: {infra/edge: shared/public, b/*: c/*}}}")));
    row = config_from_row(&f->config, FROM_GATEWAYS);
    assert_str(row->group, "gateway.networking.k8s.io");
    assert_int_equal(row->n_mappings, 2);
    assert_int_equal(row->hosts.n, 2);
    assert_str(row->hosts.items[1], "*.team.example");
    assert_false(row->wildcards);
    assert_ok(load_config(f, FROM("gateways: {enabled: true, hosts: ['*.team.example'], wildcards: "
                                  "true, mappings: {byName: {infra/edge: shared/public}}}")));
    assert_true(config_from_row(&f->config, FROM_GATEWAYS)->wildcards);
}

static void headless_services(void **state)
{
    struct config_fixture *f = *state;
    const struct config_from *row;

    assert_ok(load_config(f, FROM("services: {enabled: true, mappings: {byName: {a/*: c/*, e/b: "
                                  "c/d}}}")));
    assert_false(config_from_row(&f->config, FROM_SERVICES)->headless);
    assert_null(config_from_row(&f->config, FROM_ENDPOINT_SLICES));
    assert_ok(load_config(f, FROM("services: {headless: true, mappings: {byName: {a/*: c/*}}}")));
    assert_int_equal(f->config.n_from, 0);

    /* Their EndpointSlices are found by the same mappings, whatever their labels are. */
    assert_ok(
        load_config(f, FROM("services: {enabled: true, headless: true, selector: {matchLabels: "
                            "{a: b}}, mappings: {byName: {a/*: c/*, e/b: x/d}}}")));
    row = config_from_row(&f->config, FROM_ENDPOINT_SLICES);
    assert_true(config_from_row(&f->config, FROM_SERVICES)->headless);
    assert_str(row->group, "discovery.k8s.io");
    assert_str(row->plural, "endpointslices");
    assert_int_equal(row->n_mappings, 2);
    assert_int_equal(row->selector.n, 0);
    assert_str(row->mappings[1].host_name, "b");
    assert_str(row->mappings[1].name, "d");
}

static void custom_resources(void **state)
{
    struct config_fixture *f = *state;

    assert_ok(
        load_config(f, FROM("customResources: {"
                            "  widgets.example.com: {enabled: true, scope: Cluster},"
                            "  gadgets.example.com/v1beta1: {enabled: true, scope: Namespaced,"
                            "    mappings: {byName: {a/*: b/*}}},"
                            "  off.example.com: {scope: Cluster}}")));
    assert_int_equal(f->config.n_from, 2);
    assert_str(f->config.from[0].key, "widgets.example.com");
    assert_str(f->config.from[0].plural, "widgets");
    assert_str(f->config.from[0].group, "example.com");
    assert_str(f->config.from[0].version, "");
    assert_false(f->config.from[0].namespaced);
    assert_str(f->config.from[1].version, "v1beta1");
    assert_true(f->config.from[1].namespaced);
    assert_int_equal(f->config.from[1].n_mappings, 1);
}

static const struct {
    const char *yaml, *error;
} REFUSED[] = {
    {FROM("configMaps: {enabled: true, mappings: {byName: {/sublet-gpu-demand: a/b}}}"),
     "config: sync.fromHost.configMaps.mappings.byName./sublet-gpu-demand: "
     "\"/sublet-gpu-demand\" is what a virtual cluster reports to the fleet"},
    {FROM("configMaps: {enabled: true, mappings: {byName: {team-b/sublet-gpu-demand: a/b}}}"),
     "config: sync.fromHost.configMaps.mappings.byName.team-b/sublet-gpu-demand: "
     "\"team-b/sublet-gpu-demand\" is what a virtual cluster reports to the fleet"},
    {FROM("customResources: {w.example.com/v1: {enabled: true, scope: Cluster},"
          " w.example.com/v2: {enabled: true, scope: Cluster}}"),
     "config: sync.fromHost.customResources[w.example.com/v2]: w is configured already, as "
     "w.example.com/v1"},
    {FROM("nodes: {}"),
     "config: sync.fromHost.nodes: unknown key: known here are ingressClasses, runtimeClasses, "
     "priorityClasses, storageClasses, deviceClasses, gatewayClasses, gateways, csiDrivers, "
     "csiNodes, csiStorageCapacities, configMaps, secrets, services, customResources"},
    {"sync: {fromHosts: {}}", "config: sync.fromHosts: unknown key: known here are toHost, "
                              "fromHost, nodes, nodeLabels, kubelets, kubeletAddresses, "
                              "maxFailedPods, maxServices"},
    {"sync: {kubeletAddresses: 2}", "config: sync.kubeletAddresses: needs sync.kubelets: own"},
    {"sync: {kubelets: own, kubeletAddresses: 65}",
     "config: sync.kubeletAddresses: must be within 0..64"},
    {"sync: {nodes: perPool, kubelets: own}",
     "config: sync.kubelets: \"own\": sync.nodes perPool shows no node that has a kubelet"},
    {"{sync: {nodes: perPool}, metrics: {nodes: whole}}",
     "config: metrics.nodes: \"whole\": sync.nodes perPool shows no node of the host"},
    {"{sync: {nodes: perPool}, pools: [{name: no-pool, nodeSelector: {a: b}}]}",
     "config: pools.name: \"no-pool\": with sync.nodes perPool it is the node of pods without "
     "devices"},
    {"sync: {fromHost: true}", "config: sync.fromHost: want an object, got bool"},
    {FROM("ingressClasses: {enabled: yes please}"),
     "config: sync.fromHost.ingressClasses.enabled: want true or false, got string"},
    {FROM("ingressClasses: {mappings: {}}"), "config: sync.fromHost.ingressClasses.mappings: "
                                             "unknown key: known here are enabled, selector"},
    {FROM("csiNodes: {selector: {labels: {a: b}}}"),
     "config: sync.fromHost.csiNodes.selector.labels: unknown key: known here are matchLabels, "
     "matchExpressions"},
    {FROM("csiNodes: {selector: {matchExpressions: [{key: a, operator: Maybe}]}}"),
     "config: sync.fromHost.csiNodes.selector: \"Maybe\" is not a valid label selector operator"},
    {FROM("gateways: {enabled: true, hosts: [a.example]}"),
     "config: sync.fromHost.gateways: mappings.byName is needed"},
    {FROM("gateways: {enabled: true, mappings: {byName: {a/b: c/d}}}"),
     "config: sync.fromHost.gateways: hosts is needed: without it no route could name a Gateway"},
    {FROM("gateways: {wildcards: all}"),
     "config: sync.fromHost.gateways.wildcards: want true or false, got string"},
    {FROM("gateways: {enabled: true, hosts: ['*'], mappings: {byName: {a/b: c/d}}}"),
     "config: sync.fromHost.gateways.hosts[0]: \"*\": want a name such as a.team.example or "
     "*.team.example"},
    {FROM(
         "gateways: {enabled: true, hosts: [a.example], mappings: {byName: {a/b: c/d, e/*: c/*}}}"),
     "config: sync.fromHost.gateways.mappings.byName: \"c\" is the target of a whole namespace as "
     "well"},
    {FROM("services: {enabled: true, headless: true, mappings: {byName: {a/*: c/*, e/b: c/d}}}"),
     "config: sync.fromHost.services.mappings.byName: \"c\" is the target of a whole namespace as "
     "well"},
    {FROM("services: {headless: all}"),
     "config: sync.fromHost.services.headless: want true or false, got string"},
    {FROM("secrets: {headless: true}"),
     "config: sync.fromHost.secrets.headless: unknown key: known "
     "here are enabled, mappings, selector"},
    {FROM("secrets: {enabled: true}"), "config: sync.fromHost.secrets: mappings.byName is needed"},
    {FROM("secrets: {mappings: {byName: {a/b: c/*}}}"),
     "config: sync.fromHost.secrets.mappings.byName.a/b: a name goes to a name, and namespace/* to "
     "namespace/*"},
    {FROM("secrets: {mappings: {byName: {a/*: /*}}}"),
     "config: sync.fromHost.secrets.mappings.byName.a/*: \"/*\": a namespace is needed"},
    {FROM("secrets: {mappings: {byName: {a/*: b/*, c/*: b}}}"),
     "config: sync.fromHost.secrets.mappings.byName.c/*: \"b/*\" is the target of another mapping "
     "already"},
    {FROM("secrets: {mappings: {byName: {a/: b/}}}"),
     "config: sync.fromHost.secrets.mappings.byName.a/: \"a/\": want namespace/name or "
     "namespace/*"},
    {FROM("secrets: {mappings: {byName: {A/*: b/*}}}"),
     "config: sync.fromHost.secrets.mappings.byName.A/*: \"A/*\": a lowercase RFC 1123 label must "
     "consist of lower case alphanumeric characters or '-', and must start and end with an "
     "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
     "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
    {FROM("customResources: {widgets: {enabled: true, scope: Cluster}}"),
     "config: sync.fromHost.customResources[widgets]: \"widgets\": want plural.group/version"},
    {FROM("customResources: {roles.rbac.authorization.k8s.io: {enabled: true, scope: Cluster}}"),
     "config: sync.fromHost.customResources[roles.rbac.authorization.k8s.io]: "
     "\"roles.rbac.authorization.k8s.io\": is no custom resource"},
    {FROM("customResources: {deployments.apps: {enabled: true, scope: Cluster}}"),
     "config: sync.fromHost.customResources[deployments.apps]: \"deployments.apps\": is no custom "
     "resource"},
    {FROM("customResources: {a.example.com: {enabled: true}}"),
     "config: sync.fromHost.customResources[a.example.com]: scope is needed"},
    {FROM("customResources: {a.example.com: {enabled: true, scope: Namespaced}}"),
     "config: sync.fromHost.customResources[a.example.com]: mappings.byName is needed"},
    {FROM("customResources: {a.example.com: {scope: Cluster, mappings: {byName: {a/*: b/*}}}}"),
     "config: sync.fromHost.customResources[a.example.com]: mappings are for scope Namespaced"},
    {PATCHED("{path: metadata.labels, drop: true}"),
     PATCHES "[0].path: \"metadata.labels\": want a path such as spec.servers[*].token; which keys "
             "of metadata are shown is up to policy"},
    {PATCHED("{path: kind, value: K}"), PATCHES
     "[0].path: \"kind\": want a path such as spec.servers[*].token; which keys of metadata "
     "are shown is up to policy"},
    {PATCHED("{path: '*.token', drop: true}"),
     PATCHES "[0].path: \"*.token\": want a path such as spec.servers[*].token; which keys of "
             "metadata are shown is up to policy"},
    {PATCHED("{path: spec..a, drop: true}"),
     PATCHES "[0].path: \"spec..a\": want a path such as spec.servers[*].token; which keys of "
             "metadata are shown is up to policy"},
    {PATCHED("{path: spec.a}"), PATCHES "[0]: want a path and one of value, drop"},
    {PATCHED("{drop: true}"), PATCHES "[0]: want a path and one of value, drop"},
    {PATCHED("{path: spec.a, drop: true}, {path: spec.b, drop: true, value: 1}"),
     PATCHES "[1]: want a path and one of value, drop"},
    {PATCHED("{path: spec.a, drop: false}"), PATCHES "[0].drop: want true"},
    {PATCHED("{path: spec.a, reference: {kind: Secret}}"),
     PATCHES "[0].reference: unknown key: known here are path, value, drop"},
    {FROM("customResources: {w.example.com: {enabled: true, scope: Cluster, patches: {}}}"),
     PATCHES ": want a list, got object"},
    {"metrics: {source: prometheus}",
     "config: metrics.source: unknown value \"prometheus\": want one of off|host"},
};

static void refused(void **state)
{
    struct config_fixture *f = *state;

    for (size_t i = 0; i < COUNT(REFUSED); i++)
        assert_error(load_config(f, REFUSED[i].yaml), REFUSED[i].error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_by_default, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(classes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mappings, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(shared_gateways, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(headless_services, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(custom_resources, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(patches, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(refused, config_setup, config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
