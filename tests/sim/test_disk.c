/* SPDX-License-Identifier: Apache-2.0 */
/* A store that cannot write: nothing is created on the host without a durable record,
 * and it is created once when there is one. */
#include "sim.h"

#include <stdlib.h>

#include "../unit/store/fault_vfs.h"

#define POD                                                                                        \
    "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'busybox:1','envFrom':"    \
    "[{'configMapRef':{'name':'late','optional':true}}]}]}}"

static bool pod_is_there(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 1;
}

static bool has_late(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool has = false;

    json_each(o, fake_host_list(s->host, a, "configmaps"))
    {
        struct str name =
            json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/name"));
        has |= str_eqc(name, "late");
    }
    arena_free(a);
    return has;
}

static bool account_is_there(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool there = sim_get(s, a, "serviceaccounts", "default", "default") != NULL;

    arena_free(a);
    return there;
}

static unsigned asked(struct sim *s)
{
    return fake_host_asked(s->host, "POST", "configmaps", false);
}

static void test_record_before_create(void **state)
{
    struct sim *s = sim_new(1, NULL);
    unsigned before;

    (void)state;
    sim_until(s, account_is_there, "the default service account");
    sim_create(s, "pods", "default", POD);
    sim_writes_done(s);
    sim_until(s, pod_is_there, "the pod on the host");
    sim_run_ms(s, 500);
    before = asked(s);

    /* The object is stored, and nothing after it. */
    fault_arm(FAULT_SYNC, FAULT_LOG, FAULT_IO, 1, -1);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'late'},'data':{'k':'v'}}");
    sim_writes_done(s);
    sim_run_ms(s, 1500);
    assert_int_equal(asked(s), before);
    assert_true(fault_disarm() > 0);
    sim_until(s, has_late, "the object on the host");
    assert_int_equal(asked(s), before + 1);
    sim_free(s);
}

static unsigned secrets_posted(struct sim *s)
{
    return fake_host_asked(s->host, "POST", "secrets", false);
}

static bool has_secret(struct sim *s, const char *path, const char *value)
{
    struct arena *a = arena_new(0);
    bool has = false;

    json_each(o, fake_host_list(s->host, a, "secrets")) has |=
        str_eqc(json_str(json_get(json_path(o, path), "sublet.dev/name")), value) ||
        str_eqc(json_str(json_path(o, path)), value);
    arena_free(a);
    return has;
}

static bool first_is_there(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 1 &&
           has_secret(s, "metadata.annotations", "first") &&
           has_secret(s, "metadata.name", "sim-kubeconfig");
}

static bool both_are_there(struct sim *s)
{
    return fake_host_count(s->host, "pods") == 2 && has_secret(s, "metadata.annotations", "p");
}

/* What a pod refers to is on the host with the one before it: its token Secret is its first object
 * there. */
static void test_record_before_tokens(void **state)
{
    struct sim *s = sim_new(2, NULL);
    unsigned before;

    (void)state;
    sim_until(s, account_is_there, "the default service account");
    sim_create(s, "pods", "default",
               "{'metadata':{'name':'first'},'spec':{'containers':[{'name':'c','image':'i'}]}}");
    sim_writes_done(s);
    sim_until(s, first_is_there, "another pod");
    sim_run_ms(s, 500);
    before = secrets_posted(s);

    /* The pod is stored, and nothing after it. */
    fault_arm(FAULT_SYNC, FAULT_LOG, FAULT_IO, 1, -1);
    sim_create(s, "pods", "default", POD);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    sim_run_ms(s, 1500);
    assert_int_equal(secrets_posted(s), before);
    assert_true(fault_disarm() > 0);
    sim_until(s, both_are_there, "the pod and its tokens on the host");
    assert_int_equal(secrets_posted(s), before + 1);
    sim_free(s);
}

static bool pod_is_gone_or_runs(struct sim *s)
{
    const cJSON *pod = sim_get(s, s->arena, "pods", "default", "p");

    return !pod || str_eqc(json_str_at(pod, "status.phase"), "Running");
}

/* From the nth sync of the log on, counted from the pod's create, nothing is stored; and what is on
 * the host by then is removed there. For one n that is before it is on record that the pod was
 * there. */
static void removed_while_the_disk_fails(int n)
{
    struct sim *s = sim_new((uint64_t)n, NULL);
    struct str name;

    sim_until(s, account_is_there, "the default service account");
    sim_run_ms(s, 200);
    fault_arm(FAULT_SYNC, FAULT_LOG, FAULT_IO, n, -1);
    sim_create(s, "pods", "default", POD);
    sim_writes_done(s);
    sim_run_ms(s, 300);
    name = json_str_at(json_first(fake_host_list(s->host, s->arena, "pods")), "metadata.name");
    if (name.n)
        fake_host_remove(s->host, "pods", arena_cstr(s->arena, name));
    sim_run_ms(s, 300);
    fault_disarm();
    sim_run_ms(s, 100);
    if (n > 1)
        sim_until(s, pod_is_gone_or_runs, "the virtual pod to follow");
    assert_in_range(fake_host_asked(s->host, "POST", "pods", false), 0, 1);
    sim_free(s);
}

static void test_removed_while_the_disk_fails(void **state)
{
    (void)state;
    for (int n = 1; n <= 8; n++)
        removed_while_the_disk_fails(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_record_before_create),
                                       cmocka_unit_test(test_record_before_tokens),
                                       cmocka_unit_test(test_removed_while_the_disk_fails)};

    fault_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
