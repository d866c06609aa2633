/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost:`: nothing is on by default, and a mistake names its place. */

#include "test.h"

#include <sublet/config_sync.h>
#include <sublet/config_sync_from.h>

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
           "sandbox, enforceTolerations: ['dedicated=ml:NoSchedule', site]}\n"
           "    configMaps: {all: true}\n"
           "    services: {mappings: {byName: {default/web: shop, team/web: store, default/db: "
           "db}}}\n"
           "    secrets: {all: false}\n"
           "    networkPolicies: {enabled: true, allowedCIDRs: [10.20.0.0/16, 'fd00:1::/32']}\n"
           "    ingresses: {enabled: true, classes: [nginx, web], hosts: ['*.team.example']}\n"
           "    podDisruptionBudgets: {enabled: true}\n"
           "    gateways: {enabled: true, classes: [shared], hosts: ['*.team.example']}\n"
           "    httpRoutes: {enabled: false}\n"
           "    grpcRoutes: {enabled: true}\n"
           "    serviceAccounts: {enabled: true, annotations: {a.example/role: [team-*, one]}}\n"
           "    storageClasses: {enabled: true, provisioners: {csi.example: {parameters: {type: "
           "[fast]}, mountOptions: [noatime]}, bare.example: null}}\n"
           "    persistentVolumes: {enabled: true, max: 9, drivers: {csi.example: {volumeHandles: "
           "[one, 'fs-*'], volumeAttributes: {tier: [fast]}, mountOptions: [noatime]}}}\n"
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
    assert_int_equal(json_count(to->tolerations), 2);
    assert_str(json_str(json_get(json_first(to->tolerations), "value")), "ml");
    assert_int_equal(to->n_aliases, 3);
    assert_str(config_alias_of(to, STR("store"))->ns, "team");
    assert_str(config_alias_of(to, STR("store"))->name, "web");
    assert_null(config_alias_of(to, STR("web")));
    assert_true(to->all_config_maps);
    assert_false(to->all_secrets);
    assert_true(to->enabled[DOWN_NETWORK_POLICIES] && to->enabled[DOWN_INGRESSES]);
    assert_true(to->enabled[DOWN_DISRUPTION_BUDGETS]);
    assert_true(to->enabled[DOWN_GATEWAYS] && to->enabled[DOWN_GRPC_ROUTES]);
    assert_false(to->enabled[DOWN_HTTP_ROUTES] || to->enabled[DOWN_TLS_ROUTES]);
    assert_str(to->gateway_classes.items[0], "shared");
    assert_int_equal(to->gateway_hosts.n, 1);
    assert_true(to->gateway_wildcards);
    assert_true(to->enabled[DOWN_SERVICE_ACCOUNTS] && to->enabled[DOWN_STORAGE_CLASSES]);
    assert_int_equal(to->n_provisioners, 2);
    assert_int_equal(config_provisioner_of(to, STR("csi.example"))->parameters.n, 1);
    assert_str(config_provisioner_of(to, STR("csi.example"))->mount_options.items[0], "noatime");
    assert_int_equal(config_provisioner_of(to, STR("bare.example"))->parameters.n, 0);
    assert_null(config_provisioner_of(to, STR("other.example")));
    assert_true(to->enabled[DOWN_VOLUMES]);
    assert_int_equal(to->max_volumes, 9);
    assert_true(
        config_choice_allows(&config_driver_of(to, STR("csi.example"))->handles, STR("fs-1")));
    assert_int_equal(config_driver_of(to, STR("csi.example"))->attributes.n, 1);
    assert_str(config_driver_of(to, STR("csi.example"))->mount_options.items[0], "noatime");
    assert_null(config_driver_of(to, STR("other.example")));
    assert_int_equal(to->identities.n, 1);
    assert_str(to->identities.items[0].key, "a.example/role");
    assert_true(config_choice_allows(&to->identities.items[0], STR("one")));
    assert_true(config_choice_allows(&to->identities.items[0], STR("team-a.B_c-9")));
    assert_false(config_choice_allows(&to->identities.items[0], STR("team-")));
    assert_false(config_choice_allows(&to->identities.items[0], STR("team-a/b")));
    assert_false(config_choice_allows(&to->identities.items[0], STR("team-*")));
    assert_false(config_choice_allows(&to->identities.items[0], STR("ones")));
    assert_int_equal(to->network_cidrs.n, 2);
    assert_str(to->ingress_classes.items[0], "nginx");
    assert_int_equal(to->n_custom, 2);
    assert_string_equal(to->custom[0].plural, "certificates");
    assert_string_equal(to->custom[0].group, "cert-manager.io");
    assert_string_equal(to->custom[0].version, "v1");
    assert_string_equal(to->custom[1].version, "v1beta1");
    assert_int_equal(to->custom[0].patches.n, 4);
    assert_int_equal(to->custom[0].patches.items[0].action, PATCH_REFERENCE);
    assert_str(to->custom[0].patches.items[0].kind, "Secret");
    assert_string_equal(to->custom[0].patches.items[1].path, "spec.targets[*].selector");
    assert_int_equal(to->custom[0].patches.items[2].action, PATCH_VALUE);
    assert_true(json_is_object(to->custom[0].patches.items[2].value));
    assert_int_equal(to->custom[0].patches.items[3].action, PATCH_DROP);
    assert_int_equal(f->config.max_services, 7);
}

#define TO          "config: sync.toHost"
#define CUSTOM      TO ".customResources"
#define ONE(it)     "sync: {toHost: {customResources: {a.b.example: {patches: [" it "]}}}}"
#define INGRESS(it) "sync: {toHost: {ingresses: {patches: [" it "]}}}"
#define PATH(it)    TO ".ingresses.patches[0].path: \"" it "\": "
#define UNFIT                                                                                      \
    "want a member below spec, such as spec.rules[*].timeouts.request, or "                        \
    "metadata.annotations[KEY]"
#define SERVICES(it)    "sync: {toHost: {services: {mappings: {byName: {" it "}}}}}"
#define TOLERATE(it)    "sync: {toHost: {pods: {enforceTolerations: [" it "]}}}"
#define GATEWAY_API(it) "sync: {toHost: {gatewayApi: {" it "}}}"
#define TOLERATED       TO ".pods.enforceTolerations"
#define MAPPED          TO ".services.mappings"
#define PATCH(n)        CUSTOM ".a.b.example.patches[0]" n

static const char *const MISTAKES[][2] = {
    {"sync: {toHost: {claims: {enabled: true}}}",
     TO ".claims: unknown key: known here are pods, configMaps, secrets, services, "
        "persistentVolumeClaims, networkPolicies, ingresses, podDisruptionBudgets, endpointSlices, "
        "gatewayApi, gateways, httpRoutes, grpcRoutes, "
        "tlsRoutes, backendTLSPolicies, resourceClaims, serviceAccounts, storageClasses, "
        "persistentVolumes, priorityClasses, customResources"},
    {TOLERATE("'*'"),
     TOLERATED "[0]: \"*\": name part must consist of alphanumeric characters, '-', "
               "'_' or '.', and must start and end with an alphanumeric character "
               "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
               "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {TOLERATE("a, 'b:Always'"),
     TOLERATED "[1]: \"b:Always\": want KEY, KEY:EFFECT, KEY=VALUE or KEY=VALUE:EFFECT"},
    {TOLERATE("sublet.dev/pool"), TOLERATED "[0]: \"sublet.dev/pool\": a taint with this key is "
                                            "never tolerated by every pod"},
    {TOLERATE("'node-role.kubernetes.io/control-plane:NoSchedule'"), TOLERATED
     "[0]: \"node-role.kubernetes.io/control-plane:NoSchedule\": a taint with this key is "
     "never tolerated by every pod"},
    {"pools: [{name: a, nodeSelector: {p: a}, tolerations: [{key: gpus, operator: "
     "Exists}]}]\n" TOLERATE("'gpus=a'"),
     TOLERATED ": \"gpus\": a pool has this toleration, for its own pods"},
    {"pools: [{name: a, nodeSelector: {p: a}}]\n" TOLERATE("nvidia.com/gpu"),
     TOLERATED ": \"nvidia.com/gpu\": a pool has this toleration, for its own pods"},
    {SERVICES("default/a: shop, default/b: shop"),
     MAPPED ".byName.default/b: \"shop\" is the name of another Service already"},
    {SERVICES("default/a: default/b"),
     MAPPED ".byName.default/a: \"default/b\": a DNS-1035 label must consist of lower case "
            "alphanumeric characters or '-', start with an alphabetic character, and end with an "
            "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
            "'[a-z]([-a-z0-9]*[a-z0-9])?')"},
    {SERVICES("a: b"), MAPPED ".byName.a: \"a\": want namespace/name"},
    {SERVICES("default/*: b"),
     MAPPED ".byName.default/*: \"default/*\": a DNS-1035 label must consist of lower case "
            "alphanumeric characters or '-', start with an alphabetic character, and end with an "
            "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
            "'[a-z]([-a-z0-9]*[a-z0-9])?')"},
    {SERVICES("default/a: web-abcdefghijklmnop"),
     MAPPED ".byName.default/a: \"web-abcdefghijklmnop\": names of this form are those of synced "
            "objects"},
    {SERVICES("default/a: 7"), MAPPED ".byName.default/a: want a string, got number"},
    {"name: team\n" SERVICES("default/a: team"),
     MAPPED ": \"team\" is the name of this virtual cluster's own Service"},
    {"name: team\n" SERVICES("default/a: team-dns"),
     MAPPED ": \"team-dns\" is the name of this virtual cluster's own Service"},
    {"sync: {toHost: {persistentVolumes: {enabled: true}}}",
     TO ".persistentVolumes: drivers is needed: without it no PersistentVolume could go down"},
    {"sync: {toHost: {persistentVolumes: {max: 0}}}", TO ".persistentVolumes.max: want 1 to 1000"},
    {"sync: {toHost: {persistentVolumes: {drivers: {a.b: null}}}}",
     TO ".persistentVolumes.drivers.a.b: volumeHandles is needed: a volume is found by its handle, "
        "whoever's it is"},
    {"sync: {toHost: {persistentVolumes: {drivers: {a.b: {volumeHandles: ['*']}}}}}",
     TO ".persistentVolumes.drivers.a.b.volumeHandles[0]: \"*\": a * stands at the end only, after "
        "the beginning of a value"},
    {"sync: {toHost: {persistentVolumes: {drivers: {a.b: {volumeHandles: []}}}}}",
     TO ".persistentVolumes.drivers.a.b.volumeHandles: want 1 to 64 values that a tenant may give "
        "it"},
    {"sync: {toHost: {persistentVolumes: {drivers: {host.sublet.dev: {volumeHandles: [a]}}}}}",
     TO ".persistentVolumes.drivers.host.sublet.dev: is the driver of the volumes that claims of "
        "the host have"},
    {"sync: {toHost: {persistentVolumes: {drivers: {a.b: {reclaimPolicies: [Delete]}}}}}",
     TO ".persistentVolumes.drivers.a.b.reclaimPolicies: unknown key: known here are "
        "volumeHandles, volumeAttributes, mountOptions, topologyKeys"},
    {"sync: {toHost: {storageClasses: {enabled: true}}}",
     TO ".storageClasses: provisioners is needed: without it no StorageClass could go down"},
    {"sync: {toHost: {storageClasses: {max: 0}}}", TO ".storageClasses.max: want 1 to 1000"},
    {"sync: {toHost: {storageClasses: {max: 1001}}}", TO ".storageClasses.max: want 1 to 1000"},
    {"sync: {toHost: {storageClasses: {provisioners: {kubernetes.io/no-provisioner: {}}}}}",
     TO ".storageClasses.provisioners.kubernetes.io/no-provisioner: makes no volumes: its claims "
        "would bind any volume made by hand"},
    {"sync: {toHost: {storageClasses: {provisioners: {a b: {}}}}}",
     TO ".storageClasses.provisioners.a b: name part must consist of alphanumeric characters, "
        "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
        "'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
    {"sync: {toHost: {storageClasses: {provisioners: {a.b: {reclaimPolicies: [Recycle]}}}}}",
     TO ".storageClasses.provisioners.a.b.reclaimPolicies[0]: unknown value \"Recycle\": want one "
        "of Delete|Retain"},
    {"sync: {toHost: {storageClasses: {provisioners: {a.b: {parameters: {type: fast}}}}}}",
     TO ".storageClasses.provisioners.a.b.parameters.type: want a list, got string"},
    {"sync: {toHost: {storageClasses: {provisioners: {a.b: {topologyKeys: [zone]}}}}}",
     TO ".storageClasses.provisioners.a.b.topologyKeys[0]: want a label of nodes with a domain, "
        "such as topology.example.com/zone"},
    {"sync: {toHost: {persistentVolumes: {drivers: {a.b: {volumeHandles: [h], topologyKeys: "
     "[sublet.dev/pool]}}}}}",
     TO ".persistentVolumes.drivers.a.b.topologyKeys[0]: keys of sublet.dev are never a tenant's"},
    {GATEWAY_API("enabled: true, classes: [a]"),
     TO ".gatewayApi: classes and hosts are needed: without them no Gateway could go down"},
    {GATEWAY_API("patches: []"),
     TO ".gatewayApi.patches: unknown key: known here are enabled, classes, hosts, wildcards"},
    {GATEWAY_API("enabled: true, classes: [a], hosts: [x.example]}, gateways: {"),
     TO ".gatewayApi: gateways has a key of its own as well: one of the two says which classes "
        "and hosts there are"},
    {"sync: {toHost: {gatewayApi: true}}", TO ".gatewayApi: want an object, got bool"},
    {"sync: {toHost: {serviceAccounts: {annotations: [a]}}}",
     TO ".serviceAccounts.annotations: want an object, got array"},
    {"sync: {toHost: {serviceAccounts: {annotations: {a/b: x}}}}",
     TO ".serviceAccounts.annotations.a/b: want a list, got string"},
    {"sync: {toHost: {serviceAccounts: {annotations: {a/b: []}}}}",
     TO ".serviceAccounts.annotations.a/b: want 1 to 64 values that a tenant may give it"},
    {"sync: {toHost: {serviceAccounts: {annotations: {a/b: ['']}}}}",
     TO ".serviceAccounts.annotations.a/b[0]: must not be empty"},
    {"sync: {toHost: {serviceAccounts: {annotations: {a/b: [x, '*']}}}}",
     TO ".serviceAccounts.annotations.a/b[1]: \"*\": a * stands at the end only, after the "
        "beginning of a value"},
    {"sync: {toHost: {serviceAccounts: {annotations: {a/b: ['x*y*']}}}}",
     TO ".serviceAccounts.annotations.a/b[0]: \"x*y*\": a * stands at the end only, after the "
        "beginning of a value"},
    {"sync: {toHost: {serviceAccounts: {annotations: {sublet.dev/uid: [x]}}}}",
     TO ".serviceAccounts.annotations.sublet.dev/uid: keys of sublet.dev are never a tenant's"},
    {"sync: {toHost: {serviceAccounts: {annotations: {a/: [x]}}}}",
     TO ".serviceAccounts.annotations.a/: name part must be non-empty"},

    {"sync: {toHost: {pods: {enabled: true}}}",
     TO ".pods.enabled: unknown key: known here are enforceTolerations, translateImage, "
        "runtimeClassName, "
        "priorityClassName"},
    {"sync: {toHost: {pods: {translateImage: {a: 1}}}}",
     TO ".pods.translateImage.a: want a string, got number"},
    {"sync: {toHost: {pods: {translateImage: {a: ''}}}}",
     TO ".pods.translateImage.a: want an image for an image, such as \"nginx:1.29\": "
        "\"mirror.example/nginx:1.29\""},
#define PREFIXES                                                                                   \
    ": want a prefix for a prefix, both with a slash at the end, such as \"docker.io/\": "         \
    "\"mirror.example/hub/\""
    {"sync: {toHost: {pods: {translateImage: {a/: b}}}}", TO ".pods.translateImage.a/" PREFIXES},
    {"sync: {toHost: {pods: {translateImage: {a: b/}}}}", TO ".pods.translateImage.a" PREFIXES},
    {"sync: {toHost: {pods: {translateImage: {/: b/}}}}", TO ".pods.translateImage./" PREFIXES},
    {"sync: {toHost: {pods: {translateImage: {/a/: b/}}}}", TO ".pods.translateImage./a/" PREFIXES},
    {"sync: {toHost: {pods: {translateImage: {'a b': b}}}}",
     TO ".pods.translateImage.a b: want an image for an image, such as \"nginx:1.29\": "
        "\"mirror.example/nginx:1.29\""},
    {"sync: {toHost: {pods: {priorityClassName: system-node-critical}}}",
     TO ".pods.priorityClassName: \"system-node-critical\": a class of the host's system is "
        "never a tenant's"},
    {"sync: {toHost: {secrets: {all: yes please}}}",
     TO ".secrets.all: want true or false, got string"},
    {INGRESS("{path: spec.tls}"), TO ".ingresses.patches[0]: want a path and one of value, drop"},
    {INGRESS("{path: spec.tls, drop: true, value: 1}"),
     TO ".ingresses.patches[0]: want a path and one of value, drop"},
    {INGRESS("{path: spec.tls, reference: {kind: Secret}}"),
     TO ".ingresses.patches[0].reference: unknown key: known here are path, value, drop"},
    {INGRESS("{path: metadata.name, value: a}"), PATH("metadata.name") UNFIT},
    {INGRESS("{path: metadata.labels, drop: true}"), PATH("metadata.labels") UNFIT},
    {INGRESS("{path: metadata.annotations, drop: true}"), PATH("metadata.annotations") UNFIT},
    {INGRESS("{path: status.loadBalancer, drop: true}"), PATH("status.loadBalancer") UNFIT},
    {INGRESS("{path: spec, value: {}}"), PATH("spec") UNFIT},
    {INGRESS("{path: kind, value: a}"), PATH("kind") UNFIT},
    {INGRESS("{path: 'spec.tls[*]', drop: true}"), PATH("spec.tls[*]") UNFIT},
    {INGRESS("{path: 'spec.*', drop: true}"), PATH("spec.*") UNFIT},
    {INGRESS("{path: spec..a, drop: true}"), PATH("spec..a") UNFIT},
    {INGRESS("{path: 'metadata.annotations[sublet.dev/uid]', value: a}"),
     PATH("metadata.annotations[sublet.dev/uid]") "by annotations of sublet.dev an object is "
                                                  "recognized"},
    {INGRESS("{path: 'metadata.annotations[a', value: a}"),
     PATH("metadata.annotations[a") "want metadata.annotations[KEY]"},
    {INGRESS("{path: 'metadata.annotations[a]', value: 1}"),
     TO ".ingresses.patches[0]: an annotation gets a value, which is a string; those of tenants go "
        "down by policy.annotations.allow"},
    {INGRESS("{path: 'metadata.annotations[a]', drop: true}"),
     TO ".ingresses.patches[0]: an annotation gets a value, which is a string; those of tenants go "
        "down by policy.annotations.allow"},
    {"sync: {toHost: {gateways: {patches: [{path: 'spec.listeners[*].allowedRoutes.kinds', drop: "
     "true}]}}}",
     TO ".gateways.patches[0].path: \"spec.listeners[*].allowedRoutes.kinds\": cannot be patched: "
        "a Gateway of a tenant takes routes of this tenant alone"},
    {"sync: {toHost: {httpRoutes: {patches: [{path: 'spec.parentRefs[*].port', value: 1}]}}}",
     TO ".httpRoutes.patches[0].path: \"spec.parentRefs[*].port\": cannot be patched: the Gateways "
        "of a route are judged, and its status comes up by them"},
    {"sync: {toHost: {httpRoutes: {patches: [{path: 'spec.rules[*].backendRefs[*].namespace', "
     "value: a}]}}}",
     TO ".httpRoutes.patches[0].path: \"spec.rules[*].backendRefs[*].namespace\": cannot be "
        "patched: objects of a tenant stay in its namespace"},
    {"sync: {toHost: {services: {patches: [{path: spec.type, value: LoadBalancer}]}}}",
     TO ".services.patches[0]: only annotations can be patched: want metadata.annotations[KEY]"},
    {"sync: {toHost: {persistentVolumeClaims: {patches: [{path: spec.volumeName, drop: true}]}}}",
     TO ".persistentVolumeClaims.patches[0]: only annotations can be patched: want "
        "metadata.annotations[KEY]"},
    {"sync: {toHost: {networkPolicies: {patches: []}}}",
     TO ".networkPolicies.patches: unknown key: known here are enabled, allowedCIDRs"},
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
    {"sync: {toHost: {gateways: {wildcards: all}}}",
     TO ".gateways.wildcards: want true or false, got string"},
    {"sync: {toHost: {ingresses: {wildcards: true}}}",
     TO ".ingresses.wildcards: unknown key: known here are enabled, classes, hosts, patches"},
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

/* One key stands for three, and each of them may still say otherwise. */
static void gateway_api(void **state)
{
    struct config_fixture *f = *state;
    const struct config_to_host *to;
    const struct config_from *classes;

    assert_ok(load_config(f, GATEWAY_API("enabled: true, classes: [a, b], hosts: [x.example]")));
    to = f->config.to_host;
    assert_true(to->enabled[DOWN_GATEWAYS] && to->enabled[DOWN_HTTP_ROUTES] &&
                to->enabled[DOWN_GRPC_ROUTES]);
    assert_false(to->enabled[DOWN_TLS_ROUTES] || to->enabled[DOWN_BACKEND_TLS]);
    assert_true(to->gateway_wildcards);
    assert_str(to->gateway_hosts.items[0], "x.example");
    classes = config_from_row(&f->config, FROM_GATEWAY_CLASSES);
    assert_int_equal(classes->names.n, 2);
    assert_str(classes->names.items[1], "b");
    assert_ok(load_config(
        f, "sync: {fromHost: {gatewayClasses: {enabled: false}}, toHost: {grpcRoutes: {enabled: "
           "false}, tlsRoutes: {enabled: true}, gatewayApi: {enabled: true, wildcards: false, "
           "classes: [a], hosts: [x.example]}}}"));
    to = f->config.to_host;
    assert_true(to->enabled[DOWN_GATEWAYS] && to->enabled[DOWN_HTTP_ROUTES] &&
                to->enabled[DOWN_TLS_ROUTES]);
    assert_false(to->enabled[DOWN_GRPC_ROUTES] || to->gateway_wildcards);
    assert_null(config_from_row(&f->config, FROM_GATEWAY_CLASSES));
    assert_ok(load_config(f, GATEWAY_API("enabled: false")));
    assert_false(f->config.to_host->enabled[DOWN_HTTP_ROUTES]);
    assert_int_equal(f->config.n_from, 0);
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
        {"~^|x.team.example", false},
        {"a b;} x.team.example", false},
        {"a;.team.example", false},
        {"a\n.team.example", false},
        {"a*.team.example", false},
        {"?.team.example", false},
        {"A.team.example", false},
        {"\xc3\xa4.team.example", false},
    };
    struct str items[] = {STR("*.team.example"), STR("fixed.example")};
    struct str_list patterns = {items, 2};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (config_host_listed(patterns, str_c(cases[i].host)) != cases[i].listed)
            fail_msg("%s", cases[i].host);
    assert_false(config_host_listed((struct str_list){0}, STR("a.team.example")));
}

static void listeners_meet_the_hosts(void **state)
{
    static const struct {
        const char *listener;
        bool meets, meets_wildcards;
    } cases[] = {
        {"a.team.example", true, true},
        {"*.team.example", true, true},
        {"*.example", true, true},
        {"*.fixed.example", false, false},
        {"fixed.example", true, true},
        {"a.b.team.example", false, true},
        {"*.b.team.example", false, true},
        {"team.example", false, false},
        {"xteam.example", false, false},
        {"*.xteam.example", false, false},
        {"*.eam.example", false, false},
        {"bank.example", false, false},
        {"*.bank.example", false, false},
        {"*.example.org", false, false},
        {".team.example", false, false},
        {"", false, false},
        {"*", false, false},
        {"*.", false, false},
    };
    struct str items[] = {STR("*.team.example"), STR("fixed.example")};
    struct str_list patterns = {items, 2};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (config_hosts_meet(patterns, false, str_c(cases[i].listener)) != cases[i].meets ||
            config_hosts_meet(patterns, true, str_c(cases[i].listener)) != cases[i].meets_wildcards)
            fail_msg("%s", cases[i].listener);
    assert_false(config_hosts_meet((struct str_list){0}, true, STR("*.team.example")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_by_default, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(all_of_it, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(mistakes, config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(gateway_api, config_setup, config_teardown),
        cmocka_unit_test(hosts_are_whole_labels),
        cmocka_unit_test(listeners_meet_the_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
