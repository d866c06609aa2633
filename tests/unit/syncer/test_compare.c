/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual object beside its host object: which changes are seen, at which path and for which
 * reason, which of them an author is warned of, and that a large object ends in time. */
#include "test.h"

#include "core/kept.h"
#include <sublet/yaml.h>

struct seen {
    struct arena *arena;
    struct buf text;
};

static cJSON *doc(struct arena *a, const char *text)
{
    cJSON *ret = NULL;
    struct err err;

    err_init(&err, a);
    if (yaml_parse(a, str_c(text), NULL, NULL, &ret, &err))
        fail_msg("%.*s", STR_F(err.message));
    return ret;
}

static void on_change(void *ctx, const struct compare_change *c)
{
    struct seen *seen = ctx;

    buf_printf(&seen->text, "%s %.*s", sync_compare_word(c->op), STR_F(c->path));
    if (c->from)
        buf_printf(&seen->text, " from %.*s", STR_F(json_text(seen->arena, c->from)));
    if (c->to)
        buf_printf(&seen->text, " to %.*s", STR_F(json_text(seen->arena, c->to)));
    buf_printf(&seen->text, ": %.*s\n", STR_F(c->reason));
}

static void test_changes(void **state)
{
    static const struct {
        const char *kind, *v, *host, *want;
    } cases[] = {
        {"Pod", "{spec: {hostname: a, restartPolicy: Always}, status: {phase: Pending}}",
         "{spec: {restartPolicy: Always, hostname: a}}", ""},
        {"Pod", "{metadata: {name: p, uid: u, generateName: g}}", "{metadata: {name: p-x}}",
         "changed metadata.name from \"p\" to \"p-x\": the host name: the name and a hash of "
         "cluster, namespace and name\n"},
        {"Pod", "{spec: {subdomain: x}}", "{spec: {nodeSelector: {a: b}}}",
         "dropped spec.subdomain from \"x\": the virtual cluster's DNS answers it; the kubelet "
         "would write the host's namespace and domain into /etc/hosts\n"
         "added spec.nodeSelector to {\"a\":\"b\"}: the node selector of the pool, or of "
         "policy.cpuNodes, is added\n"},
        /* items by their keys: what is added before does not shift them */
        {"Pod", "{spec: {containers: [{name: c, env: [{name: A, value: x}, {name: B}]}]}}",
         "{spec: {containers: [{name: c, env: [{name: K, value: k}, {name: L}, {name: A, value: "
         "z}, {name: B}]}]}}",
         "changed spec.containers[c].env[A].value from \"x\" to \"z\": \n"
         "added spec.containers[c].env to [{\"name\":\"K\",\"value\":\"k\"},{\"name\":\"L\"}]: the "
         "variables of the tenant's API and Services are added; those that name devices are "
         "void\n"},
        /* keys that are rewritten pair by order */
        {"Pod", "{spec: {imagePullSecrets: [{name: s}]}}",
         "{spec: {imagePullSecrets: [{name: s-x}]}}",
         "changed spec.imagePullSecrets[0].name from \"s\" to \"s-x\": the host name of the "
         "object\n"},
        {"Pod", "{spec: {newer: 1, volumes: [{name: v, emptyDir: {newer: 2}}]}}",
         "{spec: {volumes: [{name: v, emptyDir: {}}]}}",
         "dropped spec.newer from 1: a field that this version does not know\n"
         "dropped spec.volumes[v].emptyDir.newer from 2: a field that this version does not "
         "know\n"},
        {"Service", "{spec: {selector: {a: b}, ports: [{port: 1, protocol: TCP, name: x}]}}",
         "{spec: {selector: {h: b}, ports: [{port: 1, protocol: TCP, name: z}]}}",
         "changed spec.selector from {\"a\":\"b\"} to {\"h\":\"b\"}: narrowed to pods of the "
         "tenant's namespace\n"
         "changed spec.ports[0].name from \"x\" to \"z\": \n"},
        {"Pod", "{spec: {containers: 7, volumes: [null, 3], affinity: []}}", "{spec: []}",
         "dropped spec.volumes from [null,3]: \n"},
        /* a kind without rows: by its shape, but for its metadata */
        {"Ingress",
         "{metadata: {name: i}, spec: {rules: [{host: a, http: {paths: [{path: /}]}}, {host: b}], "
         "tls: []}, status: {x: 1}}",
         "{apiVersion: networking.k8s.io/v1, metadata: {name: i-x}, spec: {ingressClassName: c, "
         "rules: [{host: a, http: {paths: [{path: /x}]}}]}}",
         "changed metadata.name from \"i\" to \"i-x\": the host name: the name and a hash of "
         "cluster, namespace and name\n"
         "changed spec.rules[0].http.paths[0].path from \"/\" to \"/x\": \n"
         "dropped spec.rules from [{\"host\":\"b\"}]: \n"
         "added spec.ingressClassName to \"c\": \n"},
        {"Service", "{spec: {template: {a: [1, 2]}, b: {c: [{d: 1}]}}}", /* of another group */
         "{apiVersion: serving.example/v1, spec: {template: {a: [1, 3]}, b: {c: 2}}}",
         "changed spec.template.a from [1,2] to [1,3]: \n"
         "changed spec.b.c from [{\"d\":1}] to 2: \n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct seen seen = {arena_new(0), BUF_INIT(0)};

        assert_true(sync_compare(seen.arena, str_c(cases[i].kind), doc(seen.arena, cases[i].v),
                                 doc(seen.arena, cases[i].host), on_change, &seen));
        assert_str(buf_str(&seen.text), cases[i].want);
        buf_fini(&seen.text);
        arena_free(seen.arena);
    }
}

/* Deeper than any object that is stored: it ends, and says that it did. */
static void test_depth(void **state)
{
    struct seen seen = {arena_new(0), BUF_INIT(0)};
    cJSON *v = json_new_object(seen.arena), *host = json_new_object(seen.arena), *x = v, *y = host;

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        x = json_ensure_object(seen.arena, x, "a");
        y = json_ensure_object(seen.arena, y, "a");
    }
    json_set_str(seen.arena, x, "b", STR("c"));
    assert_false(sync_compare(seen.arena, STR("Deep"), v, host, on_change, &seen));
    assert_int_equal(buf_str(&seen.text).n, 0);
    buf_fini(&seen.text);
    arena_free(seen.arena);
}

static void on_warning(void *ctx, struct str text)
{
    buf_printf(&((struct seen *)ctx)->text, "%.*s\n", STR_F(text));
}

static void test_warnings(void **state)
{
    struct seen seen = {arena_new(0), BUF_INIT(0)};
    cJSON *v = doc(seen.arena, "{metadata: {name: p}, spec: {schedulerName: default-scheduler, "
                               "subdomain: x, priority: 0, dnsPolicy: ClusterFirst, newer: 1}}");
    cJSON *host = doc(seen.arena, "{metadata: {name: p-x}, spec: {dnsPolicy: None, "
                                  "runtimeClassName: secret-name}}");

    (void)state;
    sync_compare_warn(seen.arena, STR("Pod"), v, host, on_warning, &seen);
    assert_str(buf_str(&seen.text),
               "spec.subdomain: is not sent to the host cluster: the virtual cluster's DNS answers "
               "it; the kubelet would write the host's namespace and domain into /etc/hosts\n"
               "spec.newer: is not sent to the host cluster: a field that this version does not "
               "know\n"
               "spec.runtimeClassName: is set on the host cluster: the runtime class of the pool, "
               "or sync.toHost.pods.runtimeClassName; none without either\n");
    buf_fini(&seen.text);
    arena_free(seen.arena);
}

static void ignore_change(void *ctx, const struct compare_change *change)
{
    (void)ctx;
    (void)change;
}

/* What was sent beside the answer of a host that lacks some of it. */
static void test_dropped(void **state)
{
    static const struct {
        const char *sent, *answer, *want;
    } cases[] = {
        /* a gate that is off: an image volume is an emptyDir then */
        {"{spec: {hostUsers: false, volumes: [{name: m, image: {reference: x}}, {name: n}]}}",
         "{spec: {volumes: [{name: k, emptyDir: {}}, {name: m, emptyDir: {}}, {name: n}]}}",
         "spec.hostUsers, spec.volumes[m].image"},
        {"{spec: {containers: [{name: c, securityContext: {procMount: Default, runAsUser: 1}, "
         "resources: {limits: {cpu: 1, memory: 1Gi}}}]}}",
         "{spec: {containers: [{name: c, securityContext: {runAsUser: 2}, resources: {limits: "
         "{memory: 2Gi}}}]}}",
         "spec.containers[c].securityContext.procMount, spec.containers[c].resources.limits.cpu"},
        /* items that are gone, in another order, or with a key that has a default */
        {"{spec: {containers: [{name: b}, {name: a, ports: [{containerPort: 1, name: p}]}, {name: "
         "x}]}}",
         "{spec: {containers: [{name: a, ports: [{containerPort: 1, protocol: TCP}]}, {name: b}]}}",
         "spec.containers[a].ports[0].name, spec.containers[x]"},
        /* changed, defaulted, injected; zero values; what is not the object's content */
        {"{metadata: {labels: {a: b}}, status: {phase: X}, spec: {hostNetwork: false, hostname: "
         "'', "
         "nodeSelector: {}, affinity: null, tolerations: [{key: a}], containers: [{name: c, image: "
         "x, command: [a, b]}]}}",
         "{metadata: {}, spec: {hostNetwork: true, tolerations: [{key: z}, {key: a}], containers: "
         "[{name: sidecar}, {name: c, image: registry/x, command: [z]}]}}",
         ""},
        /* directives and removals of a patch */
        {"{spec: {$retainKeys: [a], activeDeadlineSeconds: null, priority: 3}}", "{spec: {x: 1}}",
         "spec.priority"},
        {"{spec: {imagePullSecrets: [{name: s-x}]}}", "{spec: {imagePullSecrets: [{name: y}]}}",
         "spec.imagePullSecrets[0]"},
        {"{spec: 3}", "{spec: []}", ""},
        {"{spec: {containers: 7, volumes: [3, null]}}", "{spec: {containers: [], volumes: 1}}", ""},
        /* of another kind: no rows, no schema */
        {"{apiVersion: example.com/v1, kind: Thing, spec: {a: {b: false}, list: [{x: 1}, {w: 2}]}}",
         "{apiVersion: example.com/v1, kind: Thing, spec: {a: {}, list: [{x: 1}, {z: 2}]}}",
         "spec.a, spec.list[1].w"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena *a = arena_new(0);
        cJSON *sent = doc(a, cases[i].sent), *answer = doc(a, cases[i].answer);
        struct dropped d;

        if (!json_get(answer, "kind")) {
            json_set_str(a, answer, "apiVersion", STR("v1"));
            json_set_str(a, answer, "kind", STR("Pod"));
        }
        sync_dropped(a, sent, answer, &d);
        assert_str(sync_dropped_text(a, &d), cases[i].want);
        arena_free(a);
    }
}

static void test_dropped_meaning(void **state)
{
    static const struct {
        const char *path;
        bool changes;
    } cases[] = {{"spec.hostUsers", true},
                 {"spec.volumes[v].image", true},
                 {"spec.initContainers[a].securityContext.procMount", true},
                 {"spec.securityContext", true},
                 {"spec.containers[a].resources.limits.cpu", false},
                 {"spec.containers[a].env[.securityContext].value", false},
                 {"spec.containers[", false},
                 {"spec.hostname", false}};
    struct dropped d = {.n = 1}, other = {.n = 2, .paths = {STR("spec.b"), STR("spec.a")}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        d.paths[0] = str_c(cases[i].path);
        assert_int_equal(sync_dropped_changes_pod(&d), cases[i].changes);
    }
    d = (struct dropped){.n = 2, .paths = {STR("spec.a"), STR("spec.c")}};
    sync_dropped_both(&d, &other);
    assert_int_equal(d.n, 1);
    assert_str(d.paths[0], "spec.a");
}

/* Many fields, deep ones, and lists that pair only by search. */
static void test_dropped_bounds(void **state)
{
    struct arena *a = arena_new(0);
    cJSON *sent = doc(a, "{apiVersion: v1, kind: Pod, spec: {}}"), *answer = json_copy(a, sent);
    cJSON *deep_sent = json_get(sent, "spec"), *deep = json_get(answer, "spec");
    cJSON *volumes[2] = {json_new_array(a), json_new_array(a)};
    struct dropped d;

    (void)state;
    for (int i = 0; i < 40; i++)
        json_set_str(a, json_get(sent, "spec"), arena_cstr(a, arena_printf(a, "f%d", i)), STR("x"));
    json_set_str(a, deep, "one", STR("x"));
    sync_dropped(a, sent, answer, &d);
    assert_int_equal(d.n, 40);
    assert_true(str_has_prefix(sync_dropped_text(a, &d), STR("spec.f0, spec.f1, ")));
    assert_non_null(strstr(arena_cstr(a, sync_dropped_text(a, &d)), "spec.f7 and 32 more"));
    assert_true(sync_dropped_changes_pod(&d)); /* one that is not shown may */

    for (int i = 0; i < 1000; i++) {
        deep_sent = json_ensure_object(a, deep_sent, "d");
        deep = json_ensure_object(a, deep, "d");
    }
    json_set_str(a, deep_sent, "x", STR("x"));
    json_set_str(a, deep, "y", STR("x"));
    assert_false(sync_compare_kept(a, sent, answer, ignore_change, NULL));

    for (int i = 0; i < 20000; i++) {
        cJSON *one = json_append(volumes[0], json_new_object(a));

        json_set_str(a, one, "name", arena_printf(a, "v%d", i));
        one = json_append(volumes[1], json_new_object(a));
        json_set_str(a, one, "name", arena_printf(a, "w%d", i));
    }
    sent = doc(a, "{apiVersion: v1, kind: Pod, spec: {}}");
    answer = json_copy(a, sent);
    json_set(a, json_get(sent, "spec"), "volumes", volumes[0]);
    json_set(a, json_get(answer, "spec"), "volumes", volumes[1]);
    assert_false(sync_compare_kept(a, sent, answer, ignore_change, NULL));
    arena_free(a);
}

static void count_lines(void *ctx, struct str text)
{
    (void)text;
    ++*(size_t *)ctx;
}

/* As many variables as a body has room for, none of which the host has: it ends, and says so. */
static void test_bounds(void **state)
{
    enum { MANY = 100000 };
    struct arena *a = arena_new(0);
    cJSON *v = doc(a, "{spec: {containers: [{name: c, env: []}]}}");
    cJSON *host = doc(a, "{spec: {containers: [{name: c, env: []}]}}");
    cJSON *lists[2] = {json_path(v, "spec.containers"), json_path(host, "spec.containers")};
    size_t lines = 0;

    (void)state;
    for (size_t i = 0; i < 2 * MANY; i++) {
        cJSON *one = json_append(json_get(json_first(lists[i % 2]), "env"), json_new_object(a));

        json_set_str(a, one, "name", arena_printf(a, "%s%zu", i % 2 ? "H" : "V", i));
    }
    for (size_t i = 0; i < 40; i++)
        json_set_i64(a, json_get(v, "spec"), arena_printf(a, "newer%zu", i).p, 1);
    sync_compare_warn(a, STR("Pod"), v, host, count_lines, &lines);
    assert_true(lines <= 18);
    assert_false(sync_compare(a, STR("Pod"), v, host, on_change,
                              &(struct seen){.arena = a, .text = BUF_INIT(1)}));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),       cmocka_unit_test(test_depth),
        cmocka_unit_test(test_warnings),      cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_dropped),       cmocka_unit_test(test_dropped_meaning),
        cmocka_unit_test(test_dropped_bounds)};

    return cmocka_run_group_tests_name("syncer/core/compare", tests, NULL, NULL);
}
