/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual object beside its host object: which changes are seen, at which path and for which
 * reason, which of them an author is warned of, and that a large object ends in time. */
#include "test.h"

#include "admission/compare.h"
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes),
                                       cmocka_unit_test(test_warnings),
                                       cmocka_unit_test(test_bounds)};

    return cmocka_run_group_tests_name("syncer/admission/compare", tests, NULL, NULL);
}
