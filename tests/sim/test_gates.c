/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness gates: a controller of the tenant sets a condition, and the host's kubelet finds the
 * pod ready. The host's fake kubelet judges by the gates of its pod, as the real one does. */
#include "worlds.h"

#include "engine.h"

#define GATE       "gate.example/a"
#define GATED      ",'readinessGates':[{'conditionType':'" GATE "'}]"
#define GATES_TEAM "policy: {labels: {allow: [team]}}\n"

static unsigned patches(const struct sim *s)
{
    return fake_host_asked(s->host, "PATCH", "pods", false);
}

static const cJSON *condition(const cJSON *pod, const char *type)
{
    json_each(one, json_path(pod, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(one, "type")), type))
            return one;
    }
    return NULL;
}

static bool is_ready(struct sim *s, const char *wanted)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    bool is = str_eqc(json_str(json_get(condition(pod, "Ready"), "status")), wanted);

    arena_free(a);
    return is;
}

static bool ready(struct sim *s)
{
    return is_ready(s, "True");
}

static bool not_ready(struct sim *s)
{
    return is_ready(s, "False");
}

/* As a controller of the tenant does. */
static void set_gate(struct sim *s, const char *value)
{
    struct arena *a = arena_new(0);
    cJSON *list = json_new_array(a), *patch = json_new_object(a), *one;

    json_each(other, json_path(sim_get(s, a, "pods", "default", "a"), "status.conditions"))
    {
        if (!str_eqc(json_str(json_get(other, "type")), GATE))
            json_append(list, json_copy(a, other));
    }
    one = json_append(list, json_new_object(a));
    json_set_str(a, one, "type", STR(GATE));
    json_set_str(a, one, "status", str_c(value));
    json_set(a, json_ensure_object(a, patch, "status"), "conditions", list);
    sim_patch(s, "pods/status", "default", "a", json_text(a, patch).p);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    arena_free(a);
}

/* As a controller of the host does. */
static void set_gate_on_host(struct sim *s, const char *value)
{
    char name[64], text[256];

    translate_name(&s->syncer->tenant, STR("default"), STR("a"), name);
    snprintf(text, sizeof(text),
             "{\"status\":{\"conditions\":[{\"type\":\"" GATE "\",\"status\":\"%s\"}]}}", value);
    fake_host_patch(s->host, "pods", name, text);
}

static void test_a_gate_opens_on_the_host(void **state)
{
    struct sim *s = sim_new_ready(1, NULL);

    (void)state;
    sim_create_pod(s, "a", "", GATED);
    sim_until(s, not_ready, "the pod to run, not ready");
    assert_int_equal(patches(s), 0);
    set_gate(s, "True");
    sim_until(s, ready, "the pod to be ready");
    assert_int_equal(patches(s), 1);
    set_gate(s, "False");
    sim_until(s, not_ready, "the gate to be closed again");
    set_gate(s, "True");
    sim_until(s, ready, "the gate to be open again");
    sim_run_ms(s, 200);
    assert_int_equal(patches(s), 3);
    sim_close(s); /* nothing is sent again */
    sim_open(s);
    sim_run_ms(s, 200);
    assert_int_equal(patches(s), 3);
    sim_free(s);
}

/* A load balancer of the host sets it, the tenant never does. */
static void test_a_gate_of_the_host_stays_its_own(void **state)
{
    struct sim *s = sim_new_ready(2, NULL);

    (void)state;
    sim_create_pod(s, "a", "", GATED);
    sim_until(s, not_ready, "the pod to run, not ready");
    set_gate_on_host(s, "True");
    sim_until(s, ready, "the pod to be ready");
    sim_run_ms(s, 200);
    assert_int_equal(patches(s), 0);
    sim_free(s);
}

/* Both set it, each to something else. */
static void test_a_gate_of_two_owners_is_not_fought_over(void **state)
{
    struct sim *s = sim_new_ready(3, NULL);

    (void)state;
    sim_create_pod(s, "a", "", GATED);
    sim_until(s, not_ready, "the pod to run, not ready");
    set_gate(s, "True");
    sim_until(s, ready, "the pod to be ready");
    for (int i = 0; i < 10; i++) {
        set_gate_on_host(s, "False");
        sim_run_ms(s, 30);
    }
    assert_int_equal(patches(s), 1);
    sim_jump(s, 61);
    sim_until(s, ready, "the tenant's condition, after a while");
    assert_int_equal(patches(s), 2);
    sim_free(s);
}

static unsigned refusals(struct sim *s)
{
    struct arena *a = arena_new(0);
    unsigned n = 0;

    json_each(event, sim_list(s, a, "events", "")) n +=
        str_contains(json_str_at(event, "message"), STR("readiness gates stay closed"));
    arena_free(a);
    return n;
}

static bool refusal_is_reported(struct sim *s)
{
    return refusals(s) == 1;
}

static bool label_is_down(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = json_first(fake_host_list(s->host, a, "pods"));
    bool is = json_get(json_path(pod, "metadata.labels"), "team") != NULL;

    arena_free(a);
    return is;
}

/* A Role of an earlier version. */
static void test_without_the_right_all_else_works(void **state)
{
    struct sim *s = sim_new_ready(4, GATES_TEAM);

    (void)state;
    fake_host_deny(s->host, "patch pods/status", true);
    sim_create_pod(s, "a", "", GATED);
    sim_until(s, not_ready, "the pod to run, not ready");
    set_gate(s, "True");
    sim_until(s, refusal_is_reported, "an Event");
    sim_patch(s, "pods", "default", "a", "{'metadata':{'labels':{'team':'x'}}}");
    sim_until(s, label_is_down, "the label");
    sim_run_ms(s, 200);
    assert_int_equal(patches(s), 2);
    assert_int_equal(refusals(s), 1);
    fake_host_deny(s->host, "patch pods/status", false);
    sim_jump(s, 61);
    sim_until(s, ready, "the pod to be ready, now that the right is granted");
    sim_free(s);
}

static void test_conditions_of_kubernetes_are_no_gates(void **state)
{
    struct sim *s = sim_new_ready(5, NULL);

    (void)state;
    sim_create_pod(s, "a", "", ",'readinessGates':[{'conditionType':'PodScheduled'}]");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "conditions of Kubernetes' own"));
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gate_opens_on_the_host),
        cmocka_unit_test(test_a_gate_of_the_host_stays_its_own),
        cmocka_unit_test(test_a_gate_of_two_owners_is_not_fought_over),
        cmocka_unit_test(test_without_the_right_all_else_works),
        cmocka_unit_test(test_conditions_of_kubernetes_are_no_gates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
