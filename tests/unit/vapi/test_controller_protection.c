/* SPDX-License-Identifier: Apache-2.0 */
/* What stays while it is in use, and nodes that nothing goes to until they are ready. */
#include "controller_world.h"

#include <sublet/admission.h>

/* ---- claims and volumes ---- */

static void claim(const char *name)
{
    world_create(W, "persistentvolumeclaims", "n",
                 arena_printf(world_arena(W),
                              "{'metadata':{'name':'%s'},'spec':{'accessModes':['ReadWriteOnce'],"
                              "'resources':{'requests':{'storage':'1Gi'}}}}",
                              name)
                     .p);
}

static void pod(const char *name, const char *claim_name)
{
    world_create(W, "pods", "n",
                 arena_printf(world_arena(W),
                              "{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c',"
                              "'image':'i'}],'volumes':[{'name':'v','persistentVolumeClaim':"
                              "{'claimName':'%s'}}]}}",
                              name, claim_name)
                     .p);
}

static cJSON *get_claim(const char *name)
{
    return world_get(W, "persistentvolumeclaims", "n", name);
}

static bool has_finalizer(const cJSON *object, const char *name)
{
    json_each(f, json_path(object, "metadata.finalizers"))
    {
        if (str_eqc(json_str(f), name))
            return true;
    }
    return false;
}

static void a_claim_out_of_use_goes_at_once(void **state)
{
    (void)state;
    claim("free");
    assert_true(has_finalizer(get_claim("free"), "kubernetes.io/pvc-protection"));
    world_delete(W, "persistentvolumeclaims", "n", "free", NULL);
    world_settle(W);
    assert_null(get_claim("free"));
}

static void a_claim_in_use_stays_until_its_last_pod_is_gone(void **state)
{
    (void)state;
    claim("data");
    pod("a", "data");
    pod("b", "data");
    pod("c", "other");
    world_settle(W);
    world_delete(W, "persistentvolumeclaims", "n", "data", NULL);
    world_settle(W);
    assert_non_null(json_path(get_claim("data"), "metadata.deletionTimestamp"));
    world_delete(W, "pods", "n", "a", NULL);
    world_settle(W);
    assert_non_null(get_claim("data"));
    world_delete(W, "pods", "n", "b", NULL);
    world_settle(W);
    assert_null(get_claim("data"));
}

static void a_pod_without_a_node_does_not_hold_its_claim(void **state)
{
    (void)state;
    world_freeze(W, true);
    claim("early");
    pod("waits", "early");
    world_settle(W);
    world_delete(W, "persistentvolumeclaims", "n", "early", NULL);
    world_settle(W);
    assert_null(get_claim("early"));
}

static void a_claim_of_before_is_protected_too(void **state)
{
    (void)state;
    claim("old");
    world_patch(W, "persistentvolumeclaims", "n", "old", "{'metadata':{'finalizers':null}}");
    world_settle(W);
    assert_true(has_finalizer(get_claim("old"), "kubernetes.io/pvc-protection"));
}

static void a_volume_stays_while_its_claim_is_there(void **state)
{
    static const char volumes[] = "persistentvolumes";
    struct str uid;

    (void)state;
    claim("data");
    uid = json_str_at(get_claim("data"), "metadata.uid");
    world_create(W, volumes, "",
                 arena_printf(world_arena(W),
                              "{'metadata':{'name':'pv'},'spec':{'capacity':{'storage':'1Gi'},"
                              "'accessModes':['ReadWriteOnce'],'csi':{'driver':'d.example',"
                              "'volumeHandle':'h'},'claimRef':{'kind':'PersistentVolumeClaim',"
                              "'namespace':'n','name':'data','uid':'%.*s'}}}",
                              STR_F(uid))
                     .p);
    world_patch_status(W, volumes, "", "pv", "{'status':{'phase':'Bound'}}");
    world_patch(W, "persistentvolumeclaims", "n", "data", "{'spec':{'volumeName':'pv'}}");
    world_settle(W);
    assert_true(has_finalizer(world_get(W, volumes, "", "pv"), "kubernetes.io/pv-protection"));
    world_delete(W, volumes, "", "pv", NULL);
    world_settle(W);
    assert_non_null(world_get(W, volumes, "", "pv"));
    world_delete(W, "persistentvolumeclaims", "n", "data", NULL);
    world_settle(W);
    assert_null(get_claim("data"));
    assert_null(world_get(W, volumes, "", "pv"));
}

static void a_class_stays_while_it_is_named(void **state)
{
    static const char classes[] = "volumeattributesclasses.storage.k8s.io";

    (void)state;
    world_create(W, classes, "",
                 "{'metadata':{'name':'fast'},'driverName':'d.example','parameters':{'a':'b'}}");
    world_create(W, "persistentvolumeclaims", "n",
                 "{'metadata':{'name':'data'},'spec':{'accessModes':['ReadWriteOnce'],"
                 "'volumeAttributesClassName':'fast','resources':{'requests':{'storage':'1Gi'}}}}");
    world_settle(W);
    assert_true(has_finalizer(world_get(W, classes, "", "fast"), "kubernetes.io/vac-protection"));
    world_delete(W, classes, "", "fast", NULL);
    world_settle(W);
    assert_non_null(world_get(W, classes, "", "fast"));
    world_delete(W, "persistentvolumeclaims", "n", "data", NULL);
    world_settle(W);
    assert_null(world_get(W, classes, "", "fast"));
}

/* ---- nodes ---- */

/* The effect of a taint, or "". */
static const char *taint(const char *key)
{
    json_each(t, json_path(world_get(W, "nodes", "", "node"), "spec.taints"))
    {
        if (str_eqc(json_str_at(t, "key"), key))
            return json_str_at(t, "effect").p;
    }
    return "";
}

static void condition(const char *type, const char *status)
{
    world_patch_status(W, "nodes", "", "node",
                       arena_printf(world_arena(W),
                                    "{'status':{'conditions':[{'type':'%s','status':'%s'}]}}", type,
                                    status)
                           .p);
    world_settle(W);
}

static void taints_follow_conditions(void **state)
{
    (void)state;
    world_create(W, "nodes", "",
                 "{'metadata':{'name':'node'},'spec':{'taints':[{'key':'mine','effect':"
                 "'NoSchedule'},{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'}]}}");
    condition("Ready", "False");
    assert_string_equal(taint("node.kubernetes.io/not-ready"), "NoSchedule");
    condition("Ready", "True");
    assert_string_equal(taint("node.kubernetes.io/not-ready"), "");
    assert_string_equal(taint("mine"), "NoSchedule");
    condition("Ready", "Unknown");
    assert_string_equal(taint("node.kubernetes.io/unreachable"), "NoSchedule");
    condition("DiskPressure", "True");
    assert_string_equal(taint("node.kubernetes.io/unreachable"), "");
    assert_string_equal(taint("node.kubernetes.io/disk-pressure"), "NoSchedule");
    condition("DiskPressure", "False");
    world_patch(W, "nodes", "", "node", "{'spec':{'unschedulable':true}}");
    world_settle(W);
    assert_string_equal(taint("node.kubernetes.io/unschedulable"), "NoSchedule");
    world_patch(W, "nodes", "", "node", "{'spec':{'unschedulable':null}}");
    world_settle(W);
    assert_string_equal(taint("node.kubernetes.io/unschedulable"), "");
}

static void beside_a_manager_only_new_nodes_are_let_in(void **state)
{
    (void)state;
    world_config(W)->controllers_native = false;
    world_create(W, "nodes", "",
                 "{'metadata':{'name':'node'},'spec':{'unschedulable':true,'taints':[{'key':"
                 "'node.kubernetes.io/not-ready','effect':'NoSchedule'},{'key':"
                 "'node.kubernetes.io/disk-pressure','effect':'NoSchedule'}]}}");
    condition("Ready", "False");
    assert_string_equal(taint("node.kubernetes.io/not-ready"), "NoSchedule");
    condition("Ready", "True");
    assert_string_equal(taint("node.kubernetes.io/not-ready"), "");
    assert_string_equal(taint("node.kubernetes.io/disk-pressure"), "NoSchedule");
    assert_string_equal(taint("node.kubernetes.io/unschedulable"), "");
}

static void nodes_of_another_cluster_are_left_alone(void **state)
{
    (void)state;
    world_create(W, "nodes", "",
                 "{'metadata':{'name':'node','annotations':{'sublet.dev/host-uid':'u'}},'spec':"
                 "{'taints':[{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'}]}}");
    condition("Ready", "True");
    assert_string_equal(taint("node.kubernetes.io/not-ready"), "NoSchedule");
}

/* What admission makes of a new node of that user. */
static const cJSON *admitted(const struct user *user, const char *json)
{
    struct admission_call c = {
        .api = world_api(W),
        .arena = world_arena(W),
        .user = user,
        .resource =
            registry_find_group_resource(vapi_registry(world_api(W)), STR(""), STR("nodes")),
        .operation = ADMISSION_CREATE,
    };
    cJSON *node = world_parse(W, json);
    struct err err;

    err_init(&err, c.arena);
    c.name = json_str_at(node, "metadata.name");
    assert_int_equal(admission_mutate(&c, node, NULL, &err), 0);
    return json_path(node, "spec.taints");
}

static void nodes_come_tainted(void **state)
{
    static const char plain[] = "{'metadata':{'name':'x'}}";
    static const char other[] =
        "{'metadata':{'name':'x'},'spec':{'taints':[{'key':'a','effect':'NoExecute'}]}}";
    static const char same[] = "{'metadata':{'name':'x'},'spec':{'taints':[{'key':"
                               "'node.kubernetes.io/not-ready','effect':'NoSchedule'}]}}";
    struct user kubelet = {.name = STR("someone")};

    (void)state;
    assert_int_equal(json_count(admitted(&kubelet, plain)), 1);
    assert_str(json_str_at(json_at(admitted(&kubelet, plain), 0), "key"),
               "node.kubernetes.io/not-ready");
    assert_int_equal(json_count(admitted(&kubelet, other)), 2);
    assert_int_equal(json_count(admitted(&kubelet, same)), 1);
    assert_null(admitted(&USER_INTERNAL, plain));
}

/* What is said about a resize of the init container of a pod on `node`; "" when it may be. */
static const char *resized(const char *init)
{
    struct user user = {.name = STR("someone")};
    struct admission_call c = {
        .api = world_api(W),
        .arena = world_arena(W),
        .user = &user,
        .resource = registry_find_group_resource(vapi_registry(world_api(W)), STR(""), STR("pods")),
        .subresource = STR("resize"),
        .ns = STR("n"),
        .name = STR("p"),
        .operation = ADMISSION_UPDATE,
    };
    static const char pod_text[] =
        "{'metadata':{'name':'p','namespace':'n'},'spec':{'nodeName':'node','containers':[{'name':"
        "'c','image':'i'}],'initContainers':[{'name':'i','image':'i',%s'resources':{'requests':{"
        "'cpu':'%d'}}}]}}";
    cJSON *old = world_parse(W, arena_printf(world_arena(W), pod_text, init, 1).p);
    cJSON *new = world_parse(W, arena_printf(world_arena(W), pod_text, init, 2).p);
    struct err err;

    err_init(&err, c.arena);
    return admission_validate(&c, new, old, &err) ? arena_cstr(world_arena(W), err.message) : "";
}

static void nodes_say_what_they_know(void **state)
{
    (void)state;
    world_create(W, "nodes", "", "{'metadata':{'name':'node'}}");
    world_patch_status(W, "nodes", "", "node", "{'status':{'allocatable':{'cpu':'8'}}}");
    assert_string_equal(resized(""),
                        "pods \"p\" is forbidden: pod update requires features "
                        "InPlacePodVerticalScalingInitContainers which are not available on node "
                        "\"node\"");
    assert_string_equal(resized("'restartPolicy':'Always',"), "");
    world_patch_status(
        W, "nodes", "", "node",
        "{'status':{'declaredFeatures':['InPlacePodVerticalScalingInitContainers']}}");
    assert_string_equal(resized(""), "");
}

/* ---- the API's own Service ---- */

static const struct vapi_address ADDRESS = {{"10.9.0.1", 8}, {"10.1.2.3", 8}, 443, 8443, 6443};
static const char SLICES[] = "endpointslices.discovery.k8s.io";

static cJSON *own(const char *resource)
{
    return world_get(W, resource, "default", "kubernetes");
}

static void publish(const struct vapi_address *address)
{
    vapi_publish_address(world_api(W), address);
    world_settle(W);
}

static void the_api_says_where_it_is(void **state)
{
    (void)state;
    assert_null(own("services"));
    publish(&ADDRESS);
    assert_str(json_str_at(own("services"), "spec.clusterIP"), "10.9.0.1");
    assert_int_equal(
        json_i64_at(json_first(json_path(own("services"), "spec.ports")), "targetPort", 0), 8443);
    const cJSON *subset = json_first(json_path(own("endpoints"), "subsets"));
    assert_str(json_str_at(json_first(json_get(subset, "addresses")), "ip"), "10.1.2.3");
    assert_int_equal(json_i64_at(json_first(json_get(subset, "ports")), "port", 0), 6443);
    assert_str(json_str_at(own(SLICES), "addressType"), "IPv4");
}

static void what_is_taken_away_comes_back(void **state)
{
    (void)state;
    publish(&ADDRESS);
    world_delete(W, "services", "default", "kubernetes", NULL);
    world_settle(W);
    assert_non_null(own("services"));
    assert_non_null(own("endpoints"));
    world_delete(W, "endpoints", "default", "kubernetes", NULL);
    world_delete(W, SLICES, "default", "kubernetes", NULL);
    world_settle(W);
    assert_non_null(own("endpoints"));
    assert_non_null(own(SLICES));
    world_patch(W, "endpoints", "default", "kubernetes",
                "{'subsets':null,'metadata':{'labels':{'mine':'1'}}}");
    world_pass(W, 2);
    assert_str(json_str(json_get(json_path(own("endpoints"), "metadata.labels"), "mine")), "1");
    world_patch(W, "services", "default", "kubernetes", "{'spec':{'selector':{'a':'b'}}}");
    world_patch(W, SLICES, "default", "kubernetes", "{'metadata':{'labels':null}}");
    world_pass(W, 2);
    assert_int_equal(json_count(json_path(own("endpoints"), "subsets")), 1);
    assert_null(json_path(own("services"), "spec.selector"));
    assert_str(
        json_str(json_get(json_path(own(SLICES), "metadata.labels"), "kubernetes.io/service-name")),
        "kubernetes");
}

static void nothing_is_written_that_is_right(void **state)
{
    int64_t before;

    (void)state;
    publish(&ADDRESS);
    world_pass(W, 5);
    before = store_revision(vapi_store(world_api(W)));
    publish(&ADDRESS);
    world_pass(W, 60);
    assert_int_equal(store_revision(vapi_store(world_api(W))), before);
}

static void another_address_is_another_service(void **state)
{
    static const struct vapi_address moved = {{"10.9.0.2", 8}, {"fd00::1", 7}, 443, 8443, 6443};
    static const struct vapi_address nowhere = {{"", 0}, {"", 0}, 443, 8443, 443};

    (void)state;
    publish(&ADDRESS);
    publish(&moved);
    world_pass(W, 2);
    assert_str(json_str_at(own("services"), "spec.clusterIP"), "10.9.0.2");
    assert_str(json_str_at(own(SLICES), "addressType"), "IPv6");
    publish(&nowhere);
    world_pass(W, 2);
    assert_str(json_str_at(own("services"), "spec.clusterIP"), "None");
    assert_null(own("endpoints"));
    assert_null(own(SLICES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_claim_out_of_use_goes_at_once),
        WORLD_TEST(a_claim_in_use_stays_until_its_last_pod_is_gone),
        WORLD_TEST(a_pod_without_a_node_does_not_hold_its_claim),
        WORLD_TEST(a_claim_of_before_is_protected_too),
        WORLD_TEST(a_volume_stays_while_its_claim_is_there),
        WORLD_TEST(a_class_stays_while_it_is_named),
        WORLD_TEST(taints_follow_conditions),
        WORLD_TEST(beside_a_manager_only_new_nodes_are_let_in),
        WORLD_TEST(nodes_of_another_cluster_are_left_alone),
        WORLD_TEST(nodes_come_tainted),
        WORLD_TEST(nodes_say_what_they_know),
        WORLD_TEST(the_api_says_where_it_is),
        WORLD_TEST(what_is_taken_away_comes_back),
        WORLD_TEST(nothing_is_written_that_is_right),
        WORLD_TEST(another_address_is_another_service),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
