/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in admission plug-ins on a whole control plane: what each makes of an object, what it
 * refuses in which words, and that quotas are summed exactly. */

#include "controller_world.h"

#include <sublet/admission.h>

static int set_up(void **state)
{
    world_set_up(state);
    world_freeze(W, true);
    return 0;
}

enum stage { MUTATE, VALIDATE, QUOTA };

/* What a plug-in says of an object, "" for nothing; *object is changed. */
static struct str admit(enum stage stage, const char *resource, enum admission_operation operation,
                        cJSON *object, const cJSON *old)
{
    struct arena *a = world_arena(W);
    struct str group = str_c(resource), plural = str_cut(&group, '.');
    static struct err err;
    struct admission_call c = {.api = world_api(W),
                               .arena = a,
                               .user = &USER_INTERNAL,
                               .ns = STR("n"),
                               .subresource = STR_NULL,
                               .operation = operation};
    int failed;

    err_init(&err, a);
    c.resource = registry_find_group_resource(vapi_registry(world_api(W)),
                                              group.p ? group : STR(""), plural);
    assert_non_null(c.resource);
    c.name = json_str_at(object ? object : old, "metadata.name");
    if (!resource_namespaced(c.resource))
        c.ns = STR("");
    failed = stage == MUTATE     ? admission_mutate(&c, object, old, &err)
             : stage == VALIDATE ? admission_validate(&c, object, old, &err)
                                 : admission_quota(&c, object, old, &err);
    return failed ? err.message : STR("");
}

static cJSON *pod(const char *spec)
{
    struct arena *a = world_arena(W);
    cJSON *p = world_parse(W, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p',"
                              "'namespace':'n'}}");

    json_set(a, p, "spec", world_parse(W, spec));
    return p;
}

#define ONE_CONTAINER   "{'containers':[{'name':'c','image':'i'}]}"
#define WITH(resources) "{'containers':[{'name':'c','image':'i','resources':" resources "}]}"

/* ---- NamespaceLifecycle ---- */

static void lifecycle(void **state)
{
    cJSON *config = world_parse(W, "{'metadata':{'name':'x','namespace':'gone'}}");
    struct arena *a = world_arena(W);
    struct err err;
    struct admission_call c = {.api = world_api(W),
                               .arena = a,
                               .user = &USER_INTERNAL,
                               .ns = STR("gone"),
                               .operation = ADMISSION_CREATE,
                               .name = STR("x")};

    (void)state;
    err_init(&err, a);
    c.resource =
        registry_find_group_resource(vapi_registry(world_api(W)), STR(""), STR("configmaps"));
    assert_int_equal(admission_mutate(&c, config, NULL, &err), -1);
    assert_str(err.message, "namespaces \"gone\" not found");

    const char *immortal[] = {"default", "kube-system", "kube-public"};
    for (size_t i = 0; i < 3; i++) {
        cJSON *ns = world_get(W, "namespaces", "", immortal[i]);

        if (ns)
            assert_true(str_has_suffix(admit(MUTATE, "namespaces", ADMISSION_DELETE, NULL, ns),
                                       STR("is forbidden: this namespace may not be deleted")));
    }
    assert_str(
        admit(MUTATE, "namespaces", ADMISSION_DELETE, NULL, world_get(W, "namespaces", "", "n")),
        "");

    /* Something holds it back: it is terminating. */
    world_create(W, "configmaps", "n", "{'metadata':{'name':'held','finalizers':['a.b/c']}}");
    world_delete(W, "namespaces", "", "n", NULL);
    assert_str(admit(MUTATE, "configmaps", ADMISSION_CREATE,
                     world_parse(W, "{'metadata':{'name':'x'}}"), NULL),
               "configmaps \"x\" is forbidden: unable to create new content in namespace n because "
               "it is being terminated");
}

/* ---- ServiceAccount ---- */

static size_t mounts(const cJSON *object, const char *which, size_t i)
{
    return json_count(
        json_get(json_at(json_get(json_get(object, "spec"), which), i), "volumeMounts"));
}

static void service_accounts(void **state)
{
    cJSON *p = pod("{'containers':[{'name':'c'},{'name':'d','volumeMounts':[{'name':'own',"
                   "'mountPath':'/var/run/secrets/kubernetes.io/serviceaccount'}]}],"
                   "'initContainers':[{'name':'i'}]}");

    (void)state;
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_str(json_str_at(p, "spec.serviceAccountName"), "default");
    assert_int_equal(json_count(json_path(p, "spec.volumes")), 1);
    const cJSON *volume = json_first(json_path(p, "spec.volumes"));
    assert_true(str_has_prefix(json_str_at(volume, "name"), STR("kube-api-access-")));
    assert_int_equal(json_count(json_path(volume, "projected.sources")), 3);
    assert_int_equal(mounts(p, "containers", 0), 1);
    assert_int_equal(mounts(p, "containers", 1), 1);
    assert_int_equal(mounts(p, "initContainers", 0), 1);

    p = pod("{'serviceAccountName':'nobody','containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL),
               "pods \"p\" is forbidden: error looking up service account n/nobody: serviceaccount "
               "\"nobody\" not found");

    world_create(W, "serviceaccounts", "n",
                 "{'metadata':{'name':'quiet'},'automountServiceAccountToken':false,"
                 "'imagePullSecrets':[{'name':'reg'}]}");
    p = pod("{'serviceAccountName':'quiet','containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_null(json_path(p, "spec.volumes"));
    assert_str(json_str_at(json_first(json_path(p, "spec.imagePullSecrets")), "name"), "reg");
    p = pod("{'serviceAccountName':'quiet','automountServiceAccountToken':true,"
            "'imagePullSecrets':[{'name':'mine'}],'containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(json_count(json_path(p, "spec.volumes")), 1);
    assert_str(json_str_at(json_first(json_path(p, "spec.imagePullSecrets")), "name"), "mine");
}

/* ---- Priority, tolerations, storage class ---- */

static void priority(void **state)
{
    cJSON *p = pod(ONE_CONTAINER);

    (void)state;
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(world_i64(p, "spec.priority"), 0);
    assert_str(json_str_at(p, "spec.preemptionPolicy"), "PreemptLowerPriority");

    world_create(W, "priorityclasses.scheduling.k8s.io", "",
                 "{'metadata':{'name':'low'},'value':-5,'preemptionPolicy':'Never'}");
    world_create(W, "priorityclasses.scheduling.k8s.io", "",
                 "{'metadata':{'name':'usual'},'value':50,'globalDefault':true}");
    p = pod("{'priorityClassName':'low','containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(world_i64(p, "spec.priority"), -5);
    assert_str(json_str_at(p, "spec.preemptionPolicy"), "Never");
    p = pod(ONE_CONTAINER);
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(world_i64(p, "spec.priority"), 50);
    assert_str(json_str_at(p, "spec.priorityClassName"), "usual");
    p = pod("{'priorityClassName':'none','containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL),
               "pods \"p\" is forbidden: no PriorityClass with name none was found");
}

static void system_priorities_stay(void **state)
{
    static const char of[] = "priorityclasses.scheduling.k8s.io";

    (void)state;
    assert_str(admit(VALIDATE, of, ADMISSION_DELETE, NULL,
                     world_parse(W, "{'metadata':{'name':'system-node-critical'}}")),
               "priorityclasses.scheduling.k8s.io \"system-node-critical\" is forbidden: this is a "
               "system priority class and cannot be deleted");
    assert_str(admit(VALIDATE, of, ADMISSION_DELETE, NULL,
                     world_parse(W, "{'metadata':{'name':'system-node'}}")),
               "");
}

static void priority_is_not_for_pods_to_say(void **state)
{
    cJSON *p = pod("{'priority':7,'containers':[{'name':'c'}]}"), *old, *other;

    (void)state;
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL),
               "pods \"p\" is forbidden: the integer value of priority (7) must not be provided in "
               "pod spec; priority admission controller computed 0 from the given PriorityClass "
               "name");
    p = pod("{'preemptionPolicy':'Never','containers':[{'name':'c'}]}");
    assert_true(str_contains(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL),
                             STR("the string value of PreemptionPolicy (Never) must not be")));
    p = pod("{'priority':0,'preemptionPolicy':'PreemptLowerPriority','containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");

    /* An update that leaves it out keeps it. */
    old = pod("{'priority':9,'preemptionPolicy':'Never','containers':[{'name':'c'}]}");
    p = pod(ONE_CONTAINER);
    assert_str(admit(MUTATE, "pods", ADMISSION_UPDATE, p, old), "");
    assert_int_equal(world_i64(p, "spec.priority"), 9);
    assert_str(json_str_at(p, "spec.preemptionPolicy"), "Never");

    world_create(W, "priorityclasses.scheduling.k8s.io", "",
                 "{'metadata':{'name':'usual'},'value':50,'globalDefault':true}");
    other = world_parse(W, "{'metadata':{'name':'more'},'value':5,'globalDefault':true}");
    assert_str(admit(VALIDATE, "priorityclasses.scheduling.k8s.io", ADMISSION_CREATE, other, NULL),
               "priorityclasses.scheduling.k8s.io \"more\" is forbidden: PriorityClass usual is "
               "already marked as default. Only one default can exist");
    other = world_get(W, "priorityclasses.scheduling.k8s.io", "", "usual");
    assert_str(admit(VALIDATE, "priorityclasses.scheduling.k8s.io", ADMISSION_UPDATE, other, other),
               "");
}

static void runtime_class(void **state)
{
    cJSON *p = pod("{'runtimeClassName':'none','containers':[{'name':'c'}]}"), *list;

    (void)state;
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL),
               "pods \"p\" is forbidden: pod rejected: RuntimeClass \"none\" not found");
    world_create(W, "runtimeclasses.node.k8s.io", "",
                 "{'metadata':{'name':'plain'},'handler':'h'}");
    world_create(
        W, "runtimeclasses.node.k8s.io", "",
        "{'metadata':{'name':'vm'},'handler':'h','overhead':{'podFixed':{'cpu':'250m'}},"
        "'scheduling':{'nodeSelector':{'vm':'yes'},'tolerations':[{'key':'vm','operator':'Exists'},"
        "{'key':'b','operator':'Equal','value':'1','effect':'NoExecute','tolerationSeconds':5}]}}");
    p = pod("{'runtimeClassName':'plain','containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_null(json_path(p, "spec.overhead"));
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE, p, NULL), "");

    p = pod("{'runtimeClassName':'vm','containers':[{'name':'c'}],'nodeSelector':{'a':'b'},"
            "'tolerations':[{'key':'vm','operator':'Equal','value':'x','effect':'NoSchedule'},"
            "{'key':'b','operator':'Exists','effect':'NoExecute'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_str(json_str_at(p, "spec.overhead.cpu"), "250m");
    assert_str(json_text(world_arena(W), json_path(p, "spec.nodeSelector")),
               "{\"a\":\"b\",\"vm\":\"yes\"}");
    list = json_path(p, "spec.tolerations"); /* two are every pod's */
    assert_int_equal(json_count(list), 4);
    assert_str(json_text(world_arena(W), json_at(list, 0)),
               "{\"key\":\"b\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}");
    assert_str(json_text(world_arena(W), json_at(list, 3)),
               "{\"key\":\"vm\",\"operator\":\"Exists\"}");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE, p, NULL), "");

    p = pod("{'runtimeClassName':'vm','containers':[{'name':'c'}],'nodeSelector':{'vm':'no'}}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL),
               "pods \"p\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
               "pod.spec.nodeSelector[vm] = no");
    p = pod("{'runtimeClassName':'vm','containers':[{'name':'c'}],'overhead':{'cpu':'1'}}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL),
               "pods \"p\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's "
               "defined Overhead");
    p = pod("{'containers':[{'name':'c'}],'overhead':{'cpu':'1'}}");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE, p, NULL),
               "pods \"p\" is forbidden: pod rejected: Pod Overhead set without corresponding "
               "RuntimeClass defined Overhead");
}

static void tolerations(void **state)
{
    cJSON *p = pod(ONE_CONTAINER);

    (void)state;
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(json_count(json_path(p, "spec.tolerations")), 2);
    const cJSON *t = json_first(json_path(p, "spec.tolerations"));
    assert_str(json_str_at(t, "key"), "node.kubernetes.io/not-ready");
    assert_int_equal(world_i64(t, "tolerationSeconds"), 300);
    p = pod("{'tolerations':[{'operator':'Exists'}],'containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(json_count(json_path(p, "spec.tolerations")), 1);
    p = pod("{'tolerations':[{'key':'node.kubernetes.io/not-ready','operator':'Exists',"
            "'effect':'NoSchedule'},{'key':'node.kubernetes.io/unreachable','operator':'Exists',"
            "'effect':'NoExecute','tolerationSeconds':5}],'containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(json_count(json_path(p, "spec.tolerations")), 3);
}

static void claims_in_use_are_protected(void **state)
{
    (void)state;
    cJSON *claim = world_parse(W, "{'metadata':{'name':'c','namespace':'n'}}"), *volume, *list;

    assert_str(admit(MUTATE, "persistentvolumeclaims", ADMISSION_CREATE, claim, NULL), "");
    assert_str(admit(MUTATE, "persistentvolumeclaims", ADMISSION_CREATE, claim, NULL), "");
    list = json_path(claim, "metadata.finalizers");
    assert_int_equal(json_count(list), 1);
    assert_string_equal(json_str(json_first(list)).p, "kubernetes.io/pvc-protection");
    volume = world_parse(W, "{'metadata':{'name':'v','finalizers':['example.com/x']}}");
    assert_str(admit(MUTATE, "persistentvolumes", ADMISSION_CREATE, volume, NULL), "");
    assert_int_equal(json_count(json_path(volume, "metadata.finalizers")), 2);
    json_remove(json_get(volume, "metadata"), "finalizers");
    assert_str(admit(MUTATE, "persistentvolumes", ADMISSION_UPDATE, volume, volume), "");
    assert_null(json_path(volume, "metadata.finalizers"));
}

static void storage_class(void **state)
{
    const char *claim = "{'metadata':{'name':'c'},'spec':{}}";
    cJSON *c = world_parse(W, claim);

    (void)state;
    assert_str(admit(MUTATE, "persistentvolumeclaims", ADMISSION_CREATE, c, NULL), "");
    assert_null(json_path(c, "spec.storageClassName"));
    world_create(W, "storageclasses.storage.k8s.io", "",
                 "{'metadata':{'name':'fast','annotations':{"
                 "'storageclass.kubernetes.io/is-default-class':'true'}},'provisioner':'x.y/z'}");
    world_create(W, "storageclasses.storage.k8s.io", "",
                 "{'metadata':{'name':'aaa','annotations':{"
                 "'storageclass.kubernetes.io/is-default-class':'false'}},'provisioner':'x.y/z'}");
    c = world_parse(W, claim);
    assert_str(admit(MUTATE, "persistentvolumeclaims", ADMISSION_CREATE, c, NULL), "");
    assert_str(json_str_at(c, "spec.storageClassName"), "fast");
    c = world_parse(W, "{'metadata':{'name':'c'},'spec':{'storageClassName':''}}");
    assert_str(admit(MUTATE, "persistentvolumeclaims", ADMISSION_CREATE, c, NULL), "");
    assert_str(json_str_at(c, "spec.storageClassName"), "");
}

static void ingress_class(void **state)
{
    const char *ingress = "{'metadata':{'name':'i'},'spec':{}}";
    cJSON *i = world_parse(W, ingress);

    (void)state;
    assert_str(admit(MUTATE, "ingresses.networking.k8s.io", ADMISSION_CREATE, i, NULL), "");
    assert_null(json_path(i, "spec.ingressClassName"));
    world_create(W, "ingressclasses.networking.k8s.io", "",
                 "{'metadata':{'name':'web','annotations':{"
                 "'ingressclass.kubernetes.io/is-default-class':'true'}},'spec':{'controller':"
                 "'a.b/c'}}");
    assert_str(admit(MUTATE, "ingresses.networking.k8s.io", ADMISSION_CREATE, i, NULL), "");
    assert_str(json_str_at(i, "spec.ingressClassName"), "web");
    i = world_parse(W, ingress);
    assert_str(admit(MUTATE, "ingresses.networking.k8s.io", ADMISSION_UPDATE, i, i), "");
    assert_null(json_path(i, "spec.ingressClassName"));
    i = world_parse(W, "{'metadata':{'name':'i','annotations':{'kubernetes.io/ingress.class':'x'}},"
                       "'spec':{}}");
    assert_str(admit(MUTATE, "ingresses.networking.k8s.io", ADMISSION_CREATE, i, NULL), "");
    assert_null(json_path(i, "spec.ingressClassName"));
}

/* ---- what grows ---- */

static cJSON *sized_claim(const char *size, const char *class, const char *phase)
{
    return world_parse(
        W, arena_printf(world_arena(W),
                        "{'metadata':{'name':'c'},'spec':{'storageClassName':'%s','resources':{"
                        "'requests':{'storage':'%s'}}},'status':{'phase':'%s'}}",
                        class, size, phase)
               .p);
}

static struct str grow(const char *class, const char *phase)
{
    return admit(VALIDATE, "persistentvolumeclaims", ADMISSION_UPDATE,
                 sized_claim("2Gi", class, phase), sized_claim("1Gi", class, phase));
}

static void claims_grow(void **state)
{
    (void)state;
    world_create(
        W, "storageclasses.storage.k8s.io", "",
        "{'metadata':{'name':'elastic'},'provisioner':'x.y/z','allowVolumeExpansion':true}");
    world_create(W, "storageclasses.storage.k8s.io", "",
                 "{'metadata':{'name':'stiff'},'provisioner':'x.y/z'}");
    assert_str(grow("elastic", "Bound"), "");
    assert_str(grow("elastic", "Pending"), "persistentvolumeclaims \"c\" is forbidden: Only bound "
                                           "persistent volume claims can be expanded");
    assert_true(str_contains(grow("stiff", "Bound"), STR("must support resize")));
    assert_true(str_contains(grow("none", "Bound"), STR("must support resize")));
    assert_str(admit(VALIDATE, "persistentvolumeclaims", ADMISSION_UPDATE,
                     sized_claim("1Gi", "stiff", "Bound"), sized_claim("2Gi", "stiff", "Bound")),
               "");
}

/* ---- nodes ---- */

static void pods_learn_their_zone(void **state)
{
    cJSON *p = pod("{'nodeName':'m','containers':[{'name':'c'}]}");

    (void)state;
    world_node(W, "m",
               "{'topology.kubernetes.io/zone':'z','topology.kubernetes.io/region':'r',"
               "'topology.kubernetes.io/other':'o'}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_int_equal(json_count(json_path(p, "metadata.labels")), 2);
    assert_str(json_str(json_get(json_path(p, "metadata.labels"), "topology.kubernetes.io/zone")),
               "z");
    p = pod("{'nodeName':'m','containers':[{'name':'c'}]}");
    assert_str(admit(MUTATE, "pods", ADMISSION_UPDATE, p, p), "");
    assert_null(json_path(p, "metadata.labels"));
    p = pod(ONE_CONTAINER);
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    assert_null(json_path(p, "metadata.labels"));
}

/* ---- LimitRanger ---- */

static void limit_range(const char *limits)
{
    struct str text =
        arena_printf(world_arena(W), "{'metadata':{'name':'l'},'spec':{'limits':[%s]}}", limits);

    world_create(W, "limitranges", "n", text.p);
}

static void limit_defaults(void **state)
{
    cJSON *p = pod("{'containers':[{'name':'c'},{'name':'d','resources':{'limits':{'cpu':'1'},"
                   "'requests':{'cpu':'1'}}}],'initContainers':[{'name':'i'}]}");

    (void)state;
    limit_range("{'type':'Container','default':{'cpu':'500m'},'defaultRequest':{'cpu':'100m'}}");
    assert_str(admit(MUTATE, "pods", ADMISSION_CREATE, p, NULL), "");
    const cJSON *c = json_first(json_path(p, "spec.containers"));
    assert_str(json_str_at(c, "resources.limits.cpu"), "500m");
    assert_str(json_str_at(c, "resources.requests.cpu"), "100m");
    assert_str(json_str_at(c->next, "resources.limits.cpu"), "1");
    assert_str(json_str_at(c->next, "resources.requests.cpu"), "1");
    c = json_first(json_path(p, "spec.initContainers"));
    assert_str(json_str_at(c, "resources.limits.cpu"), "500m");
    assert_str(
        json_str(json_get(json_path(p, "metadata.annotations"), "kubernetes.io/limit-ranger")),
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c; "
        "cpu request for init container i; cpu limit for init container i");
}

static void limit_bounds(void **state)
{
    (void)state;
    limit_range("{'type':'Container','min':{'cpu':'100m'},'max':{'cpu':'2'},"
                "'maxLimitRequestRatio':{'cpu':'4'}},{'type':'Pod','max':{'memory':'1Gi'}}");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE,
                     pod(WITH("{'requests':{'cpu':'1','memory':'1Gi'},'limits':{'cpu':'2',"
                              "'memory':'1Gi'}}")),
                     NULL),
               "");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE,
                     pod(WITH("{'requests':{'cpu':'50m'},'limits':{'cpu':'100m','memory':'1'}}")),
                     NULL),
               "pods \"p\" is forbidden: minimum cpu usage per Container is 100m, but request is "
               "50m");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE,
                     pod(WITH("{'requests':{'cpu':'1'},'limits':{'cpu':'3','memory':'1'}}")), NULL),
               "pods \"p\" is forbidden: maximum cpu usage per Container is 2, but limit is 3");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE,
                     pod(WITH("{'requests':{'cpu':'100m'},'limits':{'cpu':'1','memory':'1'}}")),
                     NULL),
               "pods \"p\" is forbidden: cpu max limit to request ratio per Container is 4, but "
               "provided ratio is 10.000000");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE,
                     pod(WITH("{'requests':{'cpu':'1'},'limits':{'cpu':'2','memory':'2Gi'}}")),
                     NULL),
               "pods \"p\" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2Gi");
    assert_str(admit(VALIDATE, "pods", ADMISSION_CREATE, pod(ONE_CONTAINER), NULL),
               "pods \"p\" is forbidden: [minimum cpu usage per Container is 100m.  No request is "
               "specified, maximum cpu usage per Container is 2.  No limit is specified, cpu max "
               "limit to request ratio per Container is 4, but no request is specified or request "
               "is 0, maximum memory usage per Pod is 1Gi.  No limit is specified]");
}

static void limit_claims(void **state)
{
    (void)state;
    limit_range("{'type':'PersistentVolumeClaim','min':{'storage':'1Gi'},'max':{'storage':'2Gi'}}");
    assert_str(admit(VALIDATE, "persistentvolumeclaims", ADMISSION_CREATE,
                     world_parse(W, "{'metadata':{'name':'c'},'spec':{'resources':{'requests':{"
                                    "'storage':'3Gi'}}}}"),
                     NULL),
               "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per "
               "PersistentVolumeClaim is 2Gi, but request is 3Gi");
}

/* ---- ResourceQuota ---- */

static void quota(const char *spec)
{
    struct str text = arena_printf(world_arena(W), "{'metadata':{'name':'q'},'spec':%s}", spec);

    world_create(W, "resourcequotas", "n", text.p);
    world_settle(W);
}

static struct str used(const char *what)
{
    struct arena *a = world_arena(W);
    cJSON *all =
        admission_quota_used(world_api(W), a, STR("n"), world_get(W, "resourcequotas", "n", "q"));

    return json_str(json_get(all, what));
}

#define COMPUTE(cpu, gpu)                                                                          \
    WITH("{'requests':{'cpu':'" cpu "','nvidia.com/gpu':'" gpu "'},'limits':{'cpu':'" cpu          \
         "','nvidia.com/gpu':'" gpu "'}}")

static void stored_pod(const char *name, const char *spec)
{
    cJSON *p = pod(spec);

    json_set_str(world_arena(W), json_get(p, "metadata"), "name", str_c(name));
    world_create_tree(W, "pods", "n", p);
}

/* A pod weighs what its containers request, or its init containers beside the sidecars before them,
 * whichever is more. */
static void quota_sums(void **state)
{
    (void)state;
    quota("{'hard':{'requests.cpu':'100','limits.cpu':'100','pods':'10','count/pods':'20',"
          "'requests.nvidia.com/gpu':'8'}}");
    stored_pod("a", COMPUTE("1500m", "2"));
    stored_pod("b", "{'initContainers':["
                    "{'name':'s','image':'i','restartPolicy':'Always','resources':{'requests':{"
                    "'cpu':'1'},'limits':{'cpu':'1'}}},"
                    "{'name':'i','image':'i','resources':{'requests':{'cpu':'3500m'},"
                    "'limits':{'cpu':'5'}}}],"
                    "'containers':[{'name':'a','image':'i','resources':{'requests':{'cpu':'1'},"
                    "'limits':{'cpu':'1'}}},{'name':'b','image':'i','resources':{'requests':{"
                    "'cpu':'2'},'limits':{'cpu':'2'}}}]}");
    assert_str(used("requests.cpu"), "6");
    assert_str(used("limits.cpu"), "7500m");
    assert_str(used("requests.nvidia.com/gpu"), "2");
    assert_str(used("pods"), "2");
    world_patch_status(W, "pods", "n", "a", "{'status':{'phase':'Succeeded'}}");
    assert_str(used("requests.cpu"), "4500m");
    assert_str(used("pods"), "1");
    assert_str(used("count/pods"), "2");
}

/* While a resize goes on what a node gave counts as well, and what it cannot give does not. */
static void quota_resized(void **state)
{
    (void)state;
    quota("{'hard':{'requests.cpu':'100','limits.cpu':'100','requests.memory':'1Ti'}}");
    stored_pod("a", "{'initContainers':["
                    "{'name':'s','image':'i','restartPolicy':'Always','resources':{'requests':{"
                    "'cpu':'1','memory':'1Mi'},'limits':{'cpu':'1'}}},"
                    "{'name':'i','image':'i','resources':{'requests':{'cpu':'1','memory':'1Mi'},"
                    "'limits':{'cpu':'1'}}}],"
                    "'containers':[{'name':'a','image':'i','resources':{'requests':{'cpu':'2',"
                    "'memory':'1Mi'},'limits':{'cpu':'4'}}}]}");
    assert_str(used("requests.cpu"), "3");
    world_patch_status(
        W, "pods", "n", "a",
        "{'status':{'initContainerStatuses':[{'name':'s','resources':{'requests':{'cpu':'2'}}},"
        "{'name':'i','resources':{'requests':{'cpu':'50'}}}],'containerStatuses':[{'name':'a',"
        "'resources':{'requests':{'cpu':'3'},'limits':{'cpu':'3'}},'allocatedResources':{'cpu':"
        "'3500m','memory':'2Mi'}},{'name':'x','resources':{'requests':{'cpu':'50'}}}]}}");
    assert_str(used("requests.cpu"), "5500m");
    assert_str(used("requests.memory"), "3Mi");
    assert_str(used("limits.cpu"), "5");
    world_patch_status(W, "pods", "n", "a",
                       "{'status':{'conditions':[{'type':'PodResizePending','status':'True',"
                       "'reason':'Infeasible'}]}}");
    assert_str(used("limits.cpu"), "3");
}

static void quota_overhead(void **state)
{
    const char *spec = "{'overhead':{'cpu':'250m','memory':'1Mi'},'containers':[{'name':'c',"
                       "'resources':{'requests':{'cpu':'1'},'limits':{'cpu':'1'}}}]}";

    (void)state;
    quota("{'hard':{'requests.cpu':'1','limits.cpu':'1'}}");
    assert_str(admit(QUOTA, "pods", ADMISSION_CREATE, pod(spec), NULL),
               "pods \"p\" is forbidden: exceeded quota: q, requested: limits.cpu=1250m,"
               "requests.cpu=1250m, used: limits.cpu=0,requests.cpu=0, limited: limits.cpu=1,"
               "requests.cpu=1");
}

/* Overhead is on top of requests always, of limits only where there are some. */
static void quota_overhead_of_limits(void **state)
{
    (void)state;
    quota("{'hard':{'limits.nvidia.com/x':'1','limits.ephemeral-storage':'1'}}");
    assert_str(admit(QUOTA, "pods", ADMISSION_CREATE,
                     pod("{'overhead':{'ephemeral-storage':'5'},'containers':[{'name':'c'}]}"),
                     NULL),
               "");
}

static void quota_limits(void **state)
{
    (void)state;
    quota("{'hard':{'requests.cpu':'2','pods':'2','requests.nvidia.com/gpu':'4'}}");
    stored_pod("a", COMPUTE("1", "3"));
    assert_str(admit(QUOTA, "pods", ADMISSION_CREATE, pod(COMPUTE("1", "1")), NULL), "");
    assert_str(admit(QUOTA, "pods", ADMISSION_CREATE, pod(COMPUTE("1001m", "1")), NULL),
               "pods \"p\" is forbidden: exceeded quota: q, requested: requests.cpu=1001m, used: "
               "requests.cpu=1, limited: requests.cpu=2");
    assert_str(admit(QUOTA, "pods", ADMISSION_CREATE, pod(COMPUTE("1", "2")), NULL),
               "pods \"p\" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, "
               "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4");
    assert_str(admit(QUOTA, "pods", ADMISSION_CREATE, pod(ONE_CONTAINER), NULL),
               "pods \"p\" is forbidden: failed quota: q: must specify requests.cpu for: c");
    /* The whole way: refused there as well, and nothing is left behind. */
    assert_string_equal(
        world_try(W, "pods", "n", "{'metadata':{'name':'z'},'spec':" COMPUTE("2", "1") "}"),
        "Forbidden");
    assert_str(used("pods"), "1");
}

#define CLAIM(size)                                                                                \
    "{'metadata':{'name':'c','namespace':'n'},'spec':{'accessModes':['ReadWriteOnce'],"            \
    "'resources':{'requests':{'storage':'" size "'}}}}"

/* An update is charged for what it adds, and may always take less. */
static void quota_updates(void **state)
{
    cJSON *small = world_parse(W, CLAIM("1Gi")), *mid = world_parse(W, CLAIM("2Gi")),
          *big = world_parse(W, CLAIM("3Gi"));

    (void)state;
    quota("{'hard':{'requests.storage':'2Gi','persistentvolumeclaims':'1'}}");
    world_create_tree(W, "persistentvolumeclaims", "n", small);
    assert_str(admit(QUOTA, "persistentvolumeclaims", ADMISSION_UPDATE, mid, small), "");
    assert_str(admit(QUOTA, "persistentvolumeclaims", ADMISSION_UPDATE, big, small),
               "persistentvolumeclaims \"c\" is forbidden: exceeded quota: q, requested: "
               "requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=2Gi");
    assert_str(admit(QUOTA, "persistentvolumeclaims", ADMISSION_UPDATE, small, big), "");
    assert_str(admit(QUOTA, "persistentvolumeclaims", ADMISSION_CREATE, small, NULL),
               "persistentvolumeclaims \"c\" is forbidden: exceeded quota: q, requested: "
               "persistentvolumeclaims=1, used: persistentvolumeclaims=1, limited: "
               "persistentvolumeclaims=1");
}

static void quota_objects(void **state)
{
    (void)state;
    quota("{'hard':{'services.nodeports':'1','services.loadbalancers':'0','count/jobs.batch':'0',"
          "'configmaps':'0'}}");
    assert_str(admit(QUOTA, "services", ADMISSION_CREATE,
                     world_parse(W, "{'metadata':{'name':'s'},'spec':{'type':'NodePort','ports':["
                                    "{'port':1},{'port':2}]}}"),
                     NULL),
               "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=2, "
               "used: services.nodeports=0, limited: services.nodeports=1");
    assert_str(admit(QUOTA, "services", ADMISSION_CREATE,
                     world_parse(W, "{'metadata':{'name':'s'},'spec':{'type':'LoadBalancer',"
                                    "'allocateLoadBalancerNodePorts':false,'ports':[{'port':1}]}}"),
                     NULL),
               "services \"s\" is forbidden: exceeded quota: q, requested: "
               "services.loadbalancers=1, used: services.loadbalancers=0, limited: "
               "services.loadbalancers=0");
    assert_str(admit(QUOTA, "jobs.batch", ADMISSION_CREATE,
                     world_parse(W, "{'metadata':{'name':'j'}}"), NULL),
               "jobs.batch \"j\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, "
               "used: count/jobs.batch=0, limited: count/jobs.batch=0");
    assert_str(admit(QUOTA, "secrets", ADMISSION_CREATE,
                     world_parse(W, "{'metadata':{'name':'j'}}"), NULL),
               "");
}

static void quota_scope(const char *scopes, const char *spec, bool concerned)
{
    struct arena *a = world_arena(W);
    cJSON *p = pod(spec);

    world_create(
        W, "resourcequotas", "n",
        arena_printf(a, "{'metadata':{'name':'q'},'spec':{'hard':{'pods':'0'},%s}}", scopes).p);
    json_set_str(a, json_ensure_object(a, p, "status"), "qosClass",
                 json_path(json_first(json_path(p, "spec.containers")), "resources.requests")
                     ? STR("Burstable")
                     : STR("BestEffort"));
    struct str said = admit(QUOTA, "pods", ADMISSION_CREATE, p, NULL);
    if ((said.n > 0) != concerned)
        fail_msg("%s of %s: %.*s", scopes, spec, STR_F(said));
    world_delete(W, "resourcequotas", "n", "q", NULL);
}

static void quota_scopes(void **state)
{
    const char *timed = "{'activeDeadlineSeconds':5,'containers':[{'name':'c'}]}";
    const char *high = "{'priorityClassName':'high','containers':[{'name':'c'}]}";
    const char *asks = WITH("{'requests':{'cpu':'1'}}");

    (void)state;
    quota_scope("'scopes':['Terminating']", timed, true);
    quota_scope("'scopes':['Terminating']", ONE_CONTAINER, false);
    quota_scope("'scopes':['NotTerminating']", timed, false);
    quota_scope("'scopes':['NotTerminating']", ONE_CONTAINER, true);
    quota_scope("'scopes':['BestEffort']", ONE_CONTAINER, true);
    quota_scope("'scopes':['BestEffort']", asks, false);
    quota_scope("'scopes':['NotBestEffort']", asks, true);
    quota_scope("'scopes':['NotBestEffort','Terminating']", asks, false);
    quota_scope("'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':'In',"
                "'values':['high','x']}]}",
                high, true);
    quota_scope("'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':'In',"
                "'values':['x']}]}",
                high, false);
    quota_scope("'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':"
                "'NotIn','values':['x']}]}",
                high, true);
    quota_scope("'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':"
                "'Exists'}]}",
                ONE_CONTAINER, false);
    quota_scope("'scopeSelector':{'matchExpressions':[{'scopeName':'CrossNamespacePodAffinity',"
                "'operator':'Exists'}]}",
                "{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
                "'namespaces':['m']}]}},'containers':[{'name':'c'}]}",
                true);
}

/* ---- certificate requests ---- */

static const struct str TEAM[] = {{"team", 4}, {"system:authenticated", 20}};
static const struct user ANN = {
    .name = {"ann", 3}, .uid = {"u-1", 3}, .groups = TEAM, .n_groups = 2};

static struct str as_ann(enum stage stage, enum admission_operation operation,
                         const char *subresource, cJSON *csr, const cJSON *old)
{
    struct arena *a = world_arena(W);
    static struct err err;
    struct admission_call c = {.api = world_api(W),
                               .arena = a,
                               .user = &ANN,
                               .ns = STR(""),
                               .name = STR("r"),
                               .subresource = str_c(subresource),
                               .operation = operation};

    err_init(&err, a);
    c.resource = registry_find_group_resource(
        vapi_registry(world_api(W)), STR("certificates.k8s.io"), STR("certificatesigningrequests"));
    int failed = stage == MUTATE ? admission_mutate(&c, csr, old, &err)
                                 : admission_validate(&c, csr, old, &err);
    return failed ? err.message : STR("");
}

#define BY_CLASS(op, values)                                                                       \
    "{'hard':{'persistentvolumeclaims':'0'},'scopeSelector':{'matchExpressions':[{'scopeName':"    \
    "'VolumeAttributesClass','operator':'" op "'" values "}]}}"

/* A claim that goes from one class to another counts under both. */
static void quota_of_volume_attributes(void **state)
{
    static const struct {
        const char *quota;
        bool none, gold, tin, both;
    } cases[] = {
        {BY_CLASS("In", ",'values':['gold']"), false, true, false, true},
        {BY_CLASS("NotIn", ",'values':['gold']"), true, false, true, true},
        {BY_CLASS("Exists", ""), false, true, true, true},
        {BY_CLASS("DoesNotExist", ""), true, false, false, false},
    };
    cJSON *none = world_parse(W, "{'metadata':{'name':'c'},'spec':{}}");
    cJSON *gold =
        world_parse(W, "{'metadata':{'name':'c'},'spec':{'volumeAttributesClassName':'gold'}}");
    cJSON *tin =
        world_parse(W, "{'metadata':{'name':'c'},'spec':{'volumeAttributesClassName':'tin'}}");
    cJSON *both = world_parse(W, "{'metadata':{'name':'c'},'spec':{'volumeAttributesClassName':"
                                 "'tin'},'status':{'currentVolumeAttributesClassName':'gold'}}");

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *claims = "persistentvolumeclaims";

        quota(cases[i].quota);
        assert_int_equal(admit(QUOTA, claims, ADMISSION_CREATE, none, NULL).n > 0, cases[i].none);
        assert_int_equal(admit(QUOTA, claims, ADMISSION_CREATE, gold, NULL).n > 0, cases[i].gold);
        assert_int_equal(admit(QUOTA, claims, ADMISSION_CREATE, tin, NULL).n > 0, cases[i].tin);
        assert_int_equal(admit(QUOTA, claims, ADMISSION_CREATE, both, NULL).n > 0, cases[i].both);
        assert_str(admit(QUOTA, "pods", ADMISSION_CREATE, pod(ONE_CONTAINER), NULL), "");
        world_delete(W, "resourcequotas", "n", "q", NULL);
    }
}

#define GPU "gpu.deviceclass.resource.k8s.io/devices"

static void quota_of_devices(void **state)
{
    static const struct {
        const char *requests, *counted;
    } cases[] = {
        {"[{'exactly':{'deviceClassName':'gpu','allocationMode':'ExactCount','count':3}}]", "3"},
        {"[{'exactly':{'deviceClassName':'gpu','allocationMode':'All'}}]", "32"},
        {"[{'firstAvailable':[{'deviceClassName':'gpu','allocationMode':'ExactCount','count':2},"
         "{'deviceClassName':'gpu','allocationMode':'ExactCount','count':4}]},"
         "{'exactly':{'deviceClassName':'gpu','allocationMode':'ExactCount','count':1}}]",
         "5"},
    };

    (void)state;
    quota("{'hard':{'" GPU "':'2'}}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct arena *a = world_arena(W);
        struct str text = arena_printf(
            a, "{'metadata':{'name':'c'},'spec':{'devices':{'requests':%s}}}", cases[i].requests);

        assert_str(admit(QUOTA, "resourceclaims.resource.k8s.io", ADMISSION_CREATE,
                         world_parse(W, text.p), NULL),
                   arena_printf(a,
                                "resourceclaims.resource.k8s.io \"c\" is forbidden: exceeded "
                                "quota: q, requested: " GPU "=%s, used: " GPU "=0, limited: " GPU
                                "=2",
                                cases[i].counted)
                       .p);
    }
}

/* A claim of n devices, made for a pod's extended resources (uid NULL: of no pod). */
static cJSON *device_claim(const char *name, int n, struct str uid)
{
    struct arena *a = world_arena(W);
    cJSON *claim = world_parse(
        W, arena_printf(a,
                        "{'metadata':{'name':'%s','namespace':'n'},'spec':{'devices':{'requests':[{"
                        "'name':'r','exactly':{'deviceClassName':'gpu','allocationMode':"
                        "'ExactCount','count':%d}}]}}}",
                        name, n)
               .p);
    cJSON *owned = world_parse(
        W, arena_printf(a,
                        "{'annotations':{'resource.kubernetes.io/extended-resource-claim':'true'},"
                        "'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p','uid':"
                        "'%.*s','controller':true}]}",
                        STR_F(uid))
               .p);

    json_each(member, uid.n ? owned : NULL)
        json_set(a, json_get(claim, "metadata"), member->string, json_copy(a, member));
    return claim;
}

static const char *claimed(const cJSON *claim)
{
    struct str said = admit(QUOTA, "resourceclaims.resource.k8s.io", ADMISSION_CREATE,
                            json_copy(world_arena(W), claim), NULL);

    return arena_cstr(world_arena(W), said);
}

static void quota_of_extended_resources(void **state)
{
    struct str uid;

    (void)state;
    quota("{'hard':{'requests.example.com/gpu':'2',"
          "'requests.deviceclass.resource.kubernetes.io/gpu':'9'}}");
    assert_string_equal(claimed(device_claim("c", 10, STR(""))), ""); /* there is no such class */
    world_create(W, "deviceclasses.resource.k8s.io", "",
                 "{'metadata':{'name':'gpu'},'spec':{'extendedResourceName':'example.com/gpu'}}");
    assert_string_equal(claimed(device_claim("c", 2, STR(""))), "");
    assert_non_null(strstr(claimed(device_claim("c", 10, STR(""))),
                           "requested: requests.deviceclass.resource.kubernetes.io/gpu=10,"
                           "requests.example.com/gpu=10, used: "));

    /* The pod counts both; the claim that was made for it, only what is more. */
    world_freeze(W, true);
    world_create(W, "pods", "n",
                 "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'i',"
                 "'resources':{'limits':{'example.com/gpu':'2'}}}]}}");
    uid = json_str_at(world_get(W, "pods", "n", "p"), "metadata.uid");
    assert_string_equal(claimed(device_claim("c", 2, uid)), "");
    assert_non_null(strstr(claimed(device_claim("c", 3, uid)), "requests.example.com/gpu=1, used"));
    assert_non_null(strstr(claimed(device_claim("c", 1, STR(""))), "exceeded quota"));
    assert_non_null(strstr(claimed(device_claim("c", 1, STR("other"))), "exceeded quota"));
    world_create_tree(W, "resourceclaims.resource.k8s.io", "n", device_claim("first", 2, uid));
    assert_non_null(strstr(claimed(device_claim("second", 1, uid)), "exceeded quota"));
    world_patch_status(W, "pods", "n", "p",
                       "{'status':{'extendedResourceClaimStatus':{'resourceClaimName':'second',"
                       "'requestMappings':[{'containerName':'c','resourceName':'example.com/gpu',"
                       "'requestName':'r'}]}}}");
    assert_non_null(strstr(claimed(device_claim("third", 1, uid)), "exceeded quota"));
}

static void certificate_requests(void **state)
{
    (void)state;
    cJSON *csr =
        world_parse(W, "{'metadata':{'name':'r'},'spec':{'signerName':'example.com/mine',"
                       "'username':'root','groups':['system:masters'],'extra':{'a':['b']}}}");
    cJSON *signed_ = world_parse(W, "{'metadata':{'name':'r'},'spec':{'signerName':"
                                    "'example.com/mine'},'status':{'certificate':'eA=='}}");
    const char *no = "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: user not "
                     "permitted to ";

    /* The user is the sender, whatever the body says. */
    assert_str(as_ann(MUTATE, ADMISSION_CREATE, NULL, csr, NULL), "");
    assert_str(json_str_at(csr, "spec.username"), "ann");
    assert_str(json_str_at(csr, "spec.uid"), "u-1");
    assert_str(json_str(json_at(json_path(csr, "spec.groups"), 0)), "team");
    assert_int_equal(json_count(json_path(csr, "spec.groups")), 2);
    assert_null(json_path(csr, "spec.extra"));
    /* It proves its key to signers that are not ours, too. */
    assert_true(str_contains(as_ann(VALIDATE, ADMISSION_CREATE, NULL, csr, NULL),
                             STR("spec.request: Invalid value")));

    assert_true(
        str_has_prefix(as_ann(VALIDATE, ADMISSION_UPDATE, "approval", csr, csr), str_c(no)));
    assert_true(
        str_has_prefix(as_ann(VALIDATE, ADMISSION_UPDATE, "status", signed_, csr), str_c(no)));
    /* What changes neither certificate nor conditions needs no leave. */
    assert_str(as_ann(VALIDATE, ADMISSION_UPDATE, "status", csr, csr), "");

    world_create(W, "clusterroles.rbac.authorization.k8s.io", "",
                 "{'metadata':{'name':'signers'},'rules':[{'apiGroups':['certificates.k8s.io'],"
                 "'resources':['signers'],'resourceNames':['example.com/*'],'verbs':['approve']},"
                 "{'apiGroups':['certificates.k8s.io'],'resources':['signers'],'resourceNames':["
                 "'example.com/mine'],'verbs':['sign']}]}");
    world_create(W, "clusterrolebindings.rbac.authorization.k8s.io", "",
                 "{'metadata':{'name':'signers'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
                 "'kind':'ClusterRole','name':'signers'},'subjects':[{'kind':'User','apiGroup':"
                 "'rbac.authorization.k8s.io','name':'ann'}]}");
    world_settle(W);
    assert_str(as_ann(VALIDATE, ADMISSION_UPDATE, "approval", csr, csr), "");
    assert_str(as_ann(VALIDATE, ADMISSION_UPDATE, "status", signed_, csr), "");
}

/* What is remembered of a version never answers for another one. */
static void quota_follows_every_version(void **state)
{
    (void)state;
    world_create(W, "resourcequotas", "n",
                 "{'metadata':{'name':'q'},'spec':{'hard':{'requests.storage':'10Gi'}}}");
    world_create(W, "persistentvolumeclaims", "n",
                 "{'metadata':{'name':'a'},'spec':{'accessModes':['ReadWriteOnce'],"
                 "'resources':{'requests':{'storage':'4Gi'}}}}");
    const char *seven = "{'metadata':{'name':'b'},'spec':{'accessModes':['ReadWriteOnce'],"
                        "'resources':{'requests':{'storage':'7Gi'}}}}";
    assert_string_equal(world_try(W, "persistentvolumeclaims", "n", seven), "Forbidden");
    world_delete(W, "persistentvolumeclaims", "n", "a", NULL);
    world_settle(W); /* its protection lets go of it */
    assert_string_equal(world_try(W, "persistentvolumeclaims", "n", seven), "");
    world_delete(W, "persistentvolumeclaims", "n", "b", NULL);
    world_settle(W);
    world_create(W, "persistentvolumeclaims", "n",
                 "{'metadata':{'name':'a'},'spec':{'accessModes':['ReadWriteOnce'],"
                 "'resources':{'requests':{'storage':'9Gi'}}}}");
    assert_string_equal(world_try(W, "persistentvolumeclaims", "n", seven), "Forbidden");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lifecycle, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(service_accounts, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(priority, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(system_priorities_stay, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(priority_is_not_for_pods_to_say, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(runtime_class, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(tolerations, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(claims_in_use_are_protected, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(storage_class, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(ingress_class, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(claims_grow, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(pods_learn_their_zone, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(limit_defaults, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(limit_bounds, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(limit_claims, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_sums, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_resized, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_overhead, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_overhead_of_limits, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_limits, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_updates, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_objects, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_scopes, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_of_volume_attributes, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_of_devices, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_of_extended_resources, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(quota_follows_every_version, set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(certificate_requests, set_up, world_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
