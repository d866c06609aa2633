/* SPDX-License-Identifier: Apache-2.0
 *
 * PodSecurity on a whole control plane: what is refused, warned about and recorded in the audit
 * log, policies of versions, and what a new level costs at most. The words of every check are
 * compared with a real server by tests/integration/test_pod_security.py; here is what no server
 * shows. */

#include "controller_world.h"

#include <sublet/admission.h>

#define KEY "pod-security.kubernetes.io/"

static int set_up(void **state)
{
    world_set_up(state);
    world_freeze(W, true);
    return 0;
}

/* ---- one admission, and all that it reported ---- */

#define MAX_TOLD 64
static struct {
    struct err err;
    struct str warnings[MAX_TOLD];
    size_t n_warnings;
    cJSON *annotations;
} told;

static void on_warn(void *ctx, struct str text)
{
    (void)ctx;
    if (told.n_warnings < MAX_TOLD)
        told.warnings[told.n_warnings] = arena_str(world_arena(W), text);
    told.n_warnings++;
}

static void on_annotate(void *ctx, struct str key, struct str value)
{
    (void)ctx;
    json_set_str(world_arena(W), told.annotations, arena_cstr(world_arena(W), key), value);
}

/* "" or the refusal. */
static struct str admit(const char *resource, const char *sub, enum admission_operation operation,
                        const cJSON *object, const cJSON *old)
{
    struct arena *a = world_arena(W);
    struct str group = str_c(resource), plural = str_cut(&group, '.');
    struct admission_call c = {.api = world_api(W),
                               .arena = a,
                               .user = &USER_INTERNAL,
                               .ns = STR("n"),
                               .subresource = str_c(sub),
                               .operation = operation,
                               .name = json_str_at(object, "metadata.name"),
                               .warn = on_warn,
                               .annotate = on_annotate};

    memset(&told, 0, sizeof(told));
    told.annotations = json_new_object(a);
    err_init(&told.err, a);
    c.resource = registry_find_group_resource(vapi_registry(world_api(W)),
                                              group.p ? group : STR(""), plural);
    assert_non_null(c.resource);
    if (!resource_namespaced(c.resource))
        c.ns = STR("");
    return admission_validate(&c, object, old, &told.err) ? told.err.message : STR("");
}

static const char *annotation(const char *key)
{
    struct str text =
        json_str(json_get(told.annotations, arena_printf(world_arena(W), KEY "%s", key).p));

    return text.p ? text.p : "";
}

static void label(const char *labels)
{
    world_patch(W, "namespaces", "", "n",
                arena_printf(world_arena(W), "{'metadata':{'labels':%s}}", labels).p);
}

static cJSON *pod(const char *spec)
{
    return world_parse(
        W, arena_printf(world_arena(W), "{'metadata':{'name':'p','namespace':'n'},'spec':%s}", spec)
               .p);
}

#define PRIVILEGED "{'containers':[{'name':'c','image':'i','securityContext':{'privileged':true}}]}"
#define PLAIN      "{'containers':[{'name':'c','image':'i'}]}"

/* ---- the tests ---- */

static void modes(void **state)
{
    (void)state;
    assert_str(admit("pods", "", ADMISSION_CREATE, pod(PRIVILEGED), NULL), "");
    assert_string_equal(annotation("enforce-policy"), "privileged:latest");
    assert_int_equal(told.n_warnings, 0);

    label("{'" KEY "enforce':'baseline','" KEY "audit':'restricted','" KEY
          "audit-version':'v1.19','" KEY "warn':'restricted'}");
    assert_str(admit("pods", "", ADMISSION_CREATE, pod(PRIVILEGED), NULL),
               "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": privileged "
               "(container \"c\" must not set securityContext.privileged=true)");
    assert_ptr_equal(told.err.kind, &ERR_FORBIDDEN);
    assert_string_equal(annotation("enforce-policy"), "baseline:latest");
    assert_true(str_has_prefix(str_c(annotation("audit-violations")),
                               STR("would violate PodSecurity \"restricted:v1.19\": privileged ")));
    assert_int_equal(told.n_warnings, 0); /* it is refused anyway */

    assert_str(admit("pods", "", ADMISSION_CREATE, pod(PLAIN), NULL), "");
    assert_int_equal(told.n_warnings, 1);
    assert_str(
        told.warnings[0],
        "would violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false "
        "(container \"c\" must set securityContext.allowPrivilegeEscalation=false), "
        "unrestricted capabilities (container \"c\" must set "
        "securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or "
        "container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "
        "container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" "
        "or \"Localhost\")");
    /* Of v1.19: capabilities were not checked. */
    assert_null(strstr(annotation("audit-violations"), "capabilities"));
    assert_non_null(strstr(annotation("audit-violations"), "seccompProfile"));
}

static void templates(void **state)
{
    cJSON *deployment =
        world_parse(W, "{'metadata':{'name':'d'},'spec':{'template':{'spec':" PRIVILEGED "}}}");

    (void)state;
    label("{'" KEY "enforce':'baseline'}");
    assert_str(admit("deployments.apps", "", ADMISSION_CREATE, deployment, NULL), "");
    assert_int_equal(told.n_warnings, 1);
    assert_true(str_has_prefix(told.warnings[0],
                               STR("would violate PodSecurity \"baseline:latest\": privileged")));
    assert_string_equal(annotation("enforce-policy"), "");
    assert_str(admit("deployments.apps", "status", ADMISSION_UPDATE, deployment, deployment), "");
    assert_int_equal(told.n_warnings, 0);
    /* No template at all. */
    admit("replicationcontrollers", "", ADMISSION_CREATE,
          world_parse(W, "{'metadata':{'name':'r'},'spec':{}}"), NULL);
    assert_int_equal(told.n_warnings, 0);
}

static void labels_without_sense(void **state)
{
    cJSON *ns = world_parse(W, "{'metadata':{'name':'x','labels':{'" KEY "enforce':'tight','" KEY
                               "warn-version':'1.2'}}}");

    (void)state;
    admit("namespaces", "", ADMISSION_CREATE, ns, NULL);
    assert_ptr_equal(told.err.kind, &ERR_INVALID);
    assert_str(told.err.causes->field, "metadata.labels[" KEY "enforce]");
    assert_str(told.err.causes->message,
               "Invalid value: \"tight\": must be one of privileged, baseline, restricted");
    assert_str(told.err.causes->next->message,
               "Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"");
    /* What was there may stay. */
    assert_str(admit("namespaces", "", ADMISSION_UPDATE, ns, ns), "");

    world_patch_at(W, "namespaces", "status", "", "n",
                   "{'metadata':{'labels':{'" KEY "enforce':'tight'}}}");
    assert_true(str_contains(admit("pods", "", ADMISSION_CREATE, pod(PLAIN), NULL),
                             STR("violates PodSecurity \"restricted:latest\"")));
    assert_string_equal(annotation("error"),
                        "Failed to parse policy: metadata.labels[" KEY "enforce]: Invalid value: "
                        "\"tight\": must be one of privileged, baseline, restricted");
}

#define UNMASKED "'containers':[{'name':'c','securityContext':{'procMount':'Unmasked'}}]}"

/* An unmasked /proc is for pods with users of their own; validation refuses it elsewhere. */
static void proc_mounts(void **state)
{
    cJSON *bare = pod("{" UNMASKED), *own = pod("{'hostUsers':false," UNMASKED);

    (void)state;
    label("{'" KEY "enforce':'baseline'}");
    assert_true(admit("pods", "", ADMISSION_CREATE, bare, NULL).n > 0);
    assert_str(admit("pods", "", ADMISSION_CREATE, own, NULL), "");
    label("{'" KEY "enforce-version':'v1.34'}");
    assert_true(admit("pods", "", ADMISSION_CREATE, own, NULL).n > 0);
    label("{'" KEY "enforce':'restricted','" KEY "enforce-version':'v1.35'}");
    assert_true(
        str_contains(admit("pods", "", ADMISSION_CREATE, own, NULL), STR("procMount (container")));
}

static void updates(void **state)
{
    cJSON *before = pod(PRIVILEGED), *same = pod(PRIVILEGED), *other = pod(PRIVILEGED), *debug;

    (void)state;
    label("{'" KEY "enforce':'baseline'}");
    json_set_str(world_arena(W), json_first(json_path(other, "spec.containers")), "image",
                 STR("j"));
    assert_str(admit("pods", "", ADMISSION_UPDATE, same, before), "");
    assert_true(admit("pods", "", ADMISSION_UPDATE, other, before).n > 0);
    assert_str(admit("pods", "status", ADMISSION_UPDATE, other, before), "");
    assert_true(admit("pods", "resize", ADMISSION_UPDATE, other, before).n > 0);
    debug = pod("{'containers':[{'name':'c','image':'i'}],'ephemeralContainers':[{'name':'e',"
                "'image':'i','securityContext':{'privileged':true}}]}");
    assert_true(admit("pods", "ephemeralcontainers", ADMISSION_UPDATE, debug, pod(PLAIN)).n > 0);
    assert_str(admit("pods", "ephemeralcontainers", ADMISSION_UPDATE, debug, debug), "");
}

/* What makes pods says why it cannot. */
static void a_controller_is_told(void **state)
{
    (void)state;
    world_freeze(W, false);
    label("{'" KEY "enforce':'baseline'}");
    world_create(
        W, "replicasets.apps", "n",
        "{'metadata':{'name':'r'},'spec':{'replicas':2,'selector':{'matchLabels':{'a':'b'}},"
        "'template':{'metadata':{'labels':{'a':'b'}},'spec':" PRIVILEGED "}}}");
    world_settle(W);
    assert_int_equal(world_count(W, "pods", "n", NULL, NULL), 0);
    assert_true(world_events(W, "n", "ReplicaSet", "FailedCreate") > 0);
}

/* A new level is checked against pods by the thousand, one of each controller first. */
static void a_sweep_is_bounded(void **state)
{
    struct arena *a = world_arena(W);
    cJSON *before = world_get(W, "namespaces", "", "n"), *after = json_copy(a, before);

    (void)state;
    world_node(W, "gpu", "{}");
    for (int i = 0; i < 3100; i++)
        world_create(W, "pods", "n",
                     arena_printf(a,
                                  "{'metadata':{'name':'z%04d','ownerReferences':[{'apiVersion':"
                                  "'a/v1','kind':'R','name':'r','uid':'u','controller':true}]},"
                                  "'spec':" PRIVILEGED "}",
                                  i)
                         .p);
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'zz'},'spec':{'hostPID':true,"
                 "'containers':[{'name':'c','image':'i'}]}}");
    json_set_str(a, json_ensure_path(a, after, "metadata.labels"), KEY "enforce", STR("baseline"));
    assert_str(admit("namespaces", "", ADMISSION_UPDATE, after, before), "");
    assert_int_equal(told.n_warnings, 4);
    assert_str(told.warnings[0],
               "new PodSecurity enforce level only checked against the first 3000 "
               "of 3101 existing pods");
    assert_str(told.warnings[1], "existing pods in namespace \"n\" violate the new PodSecurity "
                                 "enforce level \"baseline:latest\"");
    assert_true(str_contains(told.warnings[2], STR(" (and 2998 other pods): privileged")));
    assert_str(told.warnings[3], "zz: host namespaces");
    assert_str(admit("namespaces", "", ADMISSION_UPDATE, before, after), "");
    assert_int_equal(told.n_warnings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(modes, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(templates, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(labels_without_sense, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(proc_mounts, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(updates, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_controller_is_told, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_sweep_is_bounded, set_up, world_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
