/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims: which pool grants them, how many GPUs they are, the words of every refusal, and
 * what of them goes down and comes up. */

#include "test.h"

static const char CONFIG[] =
    "pools:\n"
    "- {name: dev, mode: dra, nodeSelector: {sublet.dev/pool: dev}, caps: {perPodGPU: 6},\n"
    "   deviceClasses: {whole: {gpuEq: '1', config: [{driver: d.example, parameters: {a: 1}}]},\n"
    "                   half: {gpuEq: '1/2'}, nic: {gpuEq: '0', perClaim: 2}}}\n"
    "- {name: big, mode: dra, nodeSelector: {sublet.dev/pool: big}, deviceClasses: {whole: {gpuEq: "
    "'1'}, third: {gpuEq: '1/3'}}}\n"
    "- {name: plain, nodeSelector: {sublet.dev/pool: plain}}\n"
    "bindings:\n"
    "- {pool: dev, guarantee: '4', burst: '4'}\n"
    "- {pool: big, guarantee: '1'}\n"
    "- {pool: plain, guarantee: '1'}\n"
    "sync: {toHost: {resourceClaims: {enabled: true}}}\n";

static int setup(void **state)
{
    *state = fixture_new(CONFIG);
    return 0;
}

static int teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

#define HALF  "{name: r, exactly: {deviceClassName: half, count: 3}}"
#define WHOLE "{name: r, exactly: {deviceClassName: whole}}"

static int resolve(struct fixture *f, const char *requests, const char *more,
                   struct pool_choice *ret)
{
    struct str text =
        arena_printf(f->a, "{metadata: {name: c}, spec: {devices: {requests: [%s]%s%s}}}", requests,
                     more[0] ? ", " : "", more);

    return pool_resolve_claim(f->a, &f->config, doc(f, arena_cstr(f->a, text)), false, NULL, ret,
                              &f->err);
}

static void counted(void **state)
{
    static const struct {
        const char *requests, *gpu_eq;
        int64_t devices;
    } cases[] = {
        {HALF, "1.5", 3},
        {"{name: r, exactly: {deviceClassName: half, count: 3}}, {name: n, exactly: "
         "{deviceClassName: nic, count: 2}}",
         "1.5", 3},
        /* the dearest alternative, of each request */
        {"{name: r, firstAvailable: [{name: a, deviceClassName: half, count: 3}, {name: b, "
         "deviceClassName: nic, count: 2}]}, " HALF,
         "3", 6},
    };
    struct fixture *f = *state;
    struct pool_choice c;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_ok(resolve(f, cases[i].requests, "", &c));
        assert_str(c.binding->pool->name, "dev");
        assert_str(rational_format(f->a, c.gpu_eq), cases[i].gpu_eq);
        assert_str(rational_format(f->a, c.limit), "8");
        assert_int_equal(c.devices, cases[i].devices);
        assert_true(c.of_claim);
    }
}

#define ONE(more) "{name: r, exactly: {deviceClassName: half, " more "}}"
#define NAMED     "resourceclaims.resource.k8s.io \"c\" is forbidden: "
#define PARAMETERS                                                                                 \
    "spec.devices.config: these parameters of driver \"d.example\" are not granted for "

static void refusals(void **state)
{
    static const struct {
        const char *requests, *more, *message;
    } cases[] = {
        {"", "", "spec.devices.requests: a claim requests at least one device"},
        {"{name: r, exactly: {deviceClassName: foreign}}", "",
         "request \"r\": device class \"foreign\" is not granted by any pool of this virtual "
         "cluster: granted whole, half, nic, whole, third"},
        {"{name: r, firstAvailable: [{name: a, deviceClassName: half}, {name: b, deviceClassName: "
         "foreign}]}",
         "",
         "request \"r/b\": device class \"foreign\" is not granted by any pool of this virtual "
         "cluster: granted whole, half, nic, whole, third"},
        {WHOLE, "",
         "several pools grant its device classes: set label sublet.dev/gpu-pool to one of dev, "
         "big"},
        {HALF ", {name: t, exactly: {deviceClassName: third}}", "",
         "no pool of this virtual cluster grants all its device classes"},
        {ONE("adminAccess: true"), "",
         "request \"r\": adminAccess: devices that other claims hold are not a tenant's to access"},
        {ONE("allocationMode: All"), "",
         "request \"r\": allocationMode \"All\": how many devices that takes is not known; use "
         "ExactCount"},
        {ONE("count: -1"), "", "request \"r\": count must be greater than zero"},
        {ONE("count: 9223372036854775807") ", " ONE("count: 9223372036854775807"), "",
         "the number of its devices is out of range"},
        {ONE("tolerations: [{operator: Exists}]"), "",
         "request \"r\": tolerations: taints of devices are not a tenant's to tolerate"},
        {ONE("count: 7"), "",
         "guardrail max-gpus-per-pod: requested 7 devices, pool \"dev\" allows 6"},
        {HALF ", {name: n, exactly: {deviceClassName: nic, count: 2}}, {name: m, exactly: "
              "{deviceClassName: nic}}",
         "", "guardrail max-devices-per-claim: requested nic=3, pool \"dev\" allows 2"},
        {HALF, "config: [{opaque: {driver: d.example, parameters: {a: 1}}}]",
         PARAMETERS "device class \"half\" by pool \"dev\""},
        {"{name: w, exactly: {deviceClassName: whole}}, " HALF,
         "config: [{requests: [w], opaque: {driver: d.example, parameters: {a: 2}}}]",
         PARAMETERS "device class \"whole\" by pool \"dev\""},
    };
    struct fixture *f = *state;
    struct pool_choice c;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *want = arena_printf(f->a, NAMED "%s", cases[i].message).p;

        assert_error(resolve(f, cases[i].requests, cases[i].more, &c), want);
    }
    assert_ok(resolve(f, "{name: w, exactly: {deviceClassName: whole}}, " HALF,
                      "config: [{requests: [w], opaque: {driver: d.example, parameters: {a: 1}}}]",
                      &c));
}

static void expressions_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct str half = arena_printf(f->a, "%1200s", "true");
    struct str two =
        arena_printf(f->a, "{cel: {expression: \"%.*s%.*s\"}}", STR_F(half), STR_F(half));
    struct str one = arena_printf(f->a, "{cel: {expression: \"%.*s\"}}", STR_F(half));
    struct pool_choice c;

    assert_int_equal(resolve(f, arena_printf(f->a, ONE("selectors: [%.*s]"), STR_F(two)).p, "", &c),
                     -1);
    assert_has(f->err.message, "a CEL expression may have 2048 bytes");
    assert_ok(resolve(f, arena_printf(f->a, ONE("selectors: [%.*s]"), STR_F(one)).p, "", &c));
    for (unsigned i = 0; i < 3; i++)
        one = arena_printf(f->a, "%.*s, %.*s", STR_F(one), STR_F(one));
    assert_int_equal(resolve(f, arena_printf(f->a, ONE("selectors: [%.*s]"), STR_F(one)).p, "", &c),
                     -1);
    assert_has(f->err.message, "those of a claim 8192");
}

/* The label of the claim, or of its namespace, chooses among pools; that of a template's claims is
 * in the template. */
static void wishes(void **state)
{
    struct fixture *f = *state;
    const cJSON *claim = doc(f, "{metadata: {name: c, labels: {sublet.dev/gpu-pool: big}}, spec: "
                                "{devices: {requests: [" WHOLE "]}}}");
    const cJSON *template_ = doc(f, "{metadata: {name: t}, spec: {metadata: {labels: "
                                    "{sublet.dev/gpu-pool: big}}, spec: {devices: {requests: "
                                    "[" WHOLE "]}}}}");
    const cJSON *none = doc(f, "{metadata: {name: c}, spec: {devices: {requests: [" WHOLE "]}}}");
    const cJSON *ns = doc(f, "{sublet.dev/gpu-pool: dev}");
    struct pool_choice c;

    assert_ok(pool_resolve_claim(f->a, &f->config, claim, false, ns, &c, &f->err));
    assert_str(c.binding->pool->name, "big");
    assert_ok(pool_resolve_claim(f->a, &f->config, template_, true, ns, &c, &f->err));
    assert_str(c.binding->pool->name, "big");
    assert_ok(pool_resolve_claim(f->a, &f->config, none, false, ns, &c, &f->err));
    assert_str(c.binding->pool->name, "dev");
    ns = doc(f, "{sublet.dev/gpu-pool: plain}");
    assert_error(pool_resolve_claim(f->a, &f->config, none, false, ns, &c, &f->err),
                 NAMED "request \"r\": device class \"whole\" is not granted by pool \"plain\": "
                       "granted none");
    template_ = doc(f, "{metadata: {name: t}, spec: {metadata: {annotations: "
                       "{resource.kubernetes.io/extended-resource-claim: 'true'}}, spec: {devices: "
                       "{requests: [" WHOLE "]}}}}");
    assert_error(pool_resolve_claim(f->a, &f->config, template_, true, NULL, &c, &f->err),
                 "resourceclaimtemplates.resource.k8s.io \"t\" is forbidden: annotation "
                 "resource.kubernetes.io/extended-resource-claim is the scheduler's to set");
}

/* What is on the host counts by its label, a class that is no longer granted as one each. */
static void host_claims(void **state)
{
    struct fixture *f = *state;
    cJSON *host = doc(f, "{metadata: {labels: {sublet.dev/pool: dev}}, spec: {devices: {requests: "
                         "[" HALF ", {name: g, exactly: {deviceClassName: gone, count: 2}}]}}}");
    struct pool_choice c;

    assert_true(pool_of_host_claim(f->a, &f->config, host, &c));
    assert_str(rational_format(f->a, c.gpu_eq), "3.5");
    json_remove(host, "metadata");
    assert_false(pool_of_host_claim(f->a, &f->config, host, &c));
}

/* ---- pods ---- */

#define POD(more) "{metadata: {name: p, namespace: ml" more

static void pods_of_claims(void **state)
{
    struct fixture *f = *state;
    struct pool_claims claims = {&f->config.bindings[0], 6};
    const cJSON *pod = doc(f, POD("}, spec: {containers: [{name: c}]}}"));
    struct pool_choice c;

    assert_ok(pool_resolve_with(f->a, &f->config, STR("ml"), pod, NULL, &claims, &c, &f->err));
    assert_str(c.binding->pool->name, "dev");
    assert_true(c.by_claims && c.gpu_eq.num == 0);
    claims.devices = 7;
    assert_error(pool_resolve_with(f->a, &f->config, STR("ml"), pod, NULL, &claims, &c, &f->err),
                 "pods \"p\" is forbidden: guardrail max-gpus-per-pod: claims of 7 devices, pool "
                 "\"dev\" allows 6");
    claims.devices = 1;
    pod = doc(f,
              POD("}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}"));
    assert_error(pool_resolve_with(f->a, &f->config, STR("ml"), pod, NULL, &claims, &c, &f->err),
                 "pods \"p\" is forbidden: nvidia.com/gpu and resource claims of pool \"dev\" in "
                 "one pod");
    pod = doc(f, POD(", labels: {sublet.dev/gpu-pool: big}}, spec: {containers: [{name: c}]}}"));
    assert_error(
        pool_resolve_with(f->a, &f->config, STR("ml"), pod, NULL, &claims, &c, &f->err),
        "pods \"p\" is forbidden: label sublet.dev/gpu-pool is \"big\", its resource claims "
        "are of pool \"dev\"");
    pod = doc(f, POD("}, spec: {nodeSelector: {sublet.dev/pool: big}, containers: [{name: c}]}}"));
    assert_int_equal(
        pool_resolve_with(f->a, &f->config, STR("ml"), pod, NULL, &claims, &c, &f->err), -1);
    assert_has(f->err.message, "contradicts pool \"dev\"");
}

static void a_pod_goes_down_with_claims_alone(void **state)
{
    struct fixture *f = *state;
    struct pool_choice choice = {.binding = &f->config.bindings[0], .by_claims = true};
    cJSON *host = NULL;
    const cJSON *pod = doc(
        f, POD(", uid: u}, spec: {resourceClaims: [{name: a, resourceClaimName: mine, more: 1}, "
               "{name: b, resourceClaimTemplateName: t}], containers: [{name: c, resources: "
               "{claims: [{name: a, request: r, more: 1}]}}]}, status: {resourceClaimStatuses: "
               "[{name: b, resourceClaimName: p-b-x}]}}"));
    char mine[64], made[64];

    translate_name(&f->tenant, STR("ml"), STR("mine"), mine);
    translate_name(&f->tenant, STR("ml"), STR("p-b-x"), made);
    assert_ok(translate_pod(f->a, &f->tenant, &choice, pod, NULL, &host, &f->err));
    assert_json(json_path(host, "spec.resourceClaims"),
                arena_printf(f->a,
                             "[{name: a, resourceClaimName: %s}, {name: b, "
                             "resourceClaimName: %s}]",
                             mine, made)
                    .p);
    assert_json(json_path(json_first(json_path(host, "spec.containers")), "resources"),
                "{claims: [{name: a, request: r}]}");
    assert_json(json_path(host, "spec.nodeSelector"), "{sublet.dev/pool: dev}");
    assert_str(json_str(json_get(json_path(host, "metadata.labels"), "sublet.dev/pool")), "dev");
    pod =
        doc(f, POD(", uid: u}, spec: {ephemeralContainers: [{name: e, resources: {claims: [{name: "
                   "a}]}}], containers: [{name: c}]}}"));
    assert_error(translate_check_pod(f->a, &f->tenant, STR("ml"), pod, &f->err),
                 "pods \"p\" is forbidden: container \"e\": an ephemeral container has no claims");
}

/* ---- claims, down and up ---- */

static void only_what_is_known_goes_down(void **state)
{
    struct fixture *f = *state;
    const struct kind_rules *rules = translate_kind_rules(DOWN_RESOURCE_CLAIMS);
    cJSON *host = NULL;
    const cJSON *v = doc(
        f,
        "{metadata: {name: c, namespace: ml, uid: u}, spec: {more: 1, devices: {more: 1, requests: "
        "[{name: r, exactly: {deviceClassName: half, count: 1, allocationMode: ExactCount, "
        "adminAccess: true, tolerations: [{operator: Exists}], selectors: [{cel: {expression: "
        "x}}], "
        "capacity: {requests: {memory: 1Gi}}, more: 1}}], constraints: [{matchAttribute: a/b, "
        "more: "
        "1}], config: [{requests: [r], opaque: {driver: d, parameters: {a: 1}}, more: 1}]}}, "
        "status: {allocation: {devices: {results: [{device: forged}]}}}}");

    assert_ok(translate_kind(f->a, &f->tenant, rules, v, &host, &f->err));
    assert_json(json_get(host, "spec"),
                "{devices: {requests: [{name: r, exactly: {deviceClassName: half, count: 1, "
                "allocationMode: ExactCount, selectors: [{cel: {expression: x}}], capacity: "
                "{requests: {memory: 1Gi}}}}], constraints: [{matchAttribute: a/b}], config: "
                "[{requests: [r], opaque: {driver: d, parameters: {a: 1}}}]}}");
    assert_null(json_get(host, "status"));
}

static void the_allocation_comes_up(void **state)
{
    struct fixture *f = *state;
    const cJSON *host = doc(
        f,
        "{metadata: {name: h}, status: {allocation: {devices: {results: [{request: r, driver: d, "
        "pool: node-1, device: gpu-0, adminAccess: null}], config: [{source: FromClass, opaque: "
        "{driver: d, parameters: {secret: 1}}}, {source: FromClaim, opaque: {driver: d, "
        "parameters: {a: 1}}}]}}, devices: [{driver: d, pool: node-1, device: gpu-0, data: {uuid: "
        "x}}], reservedFor: [{resource: pods, name: h, uid: x}]}}");

    assert_json(
        translate_kind_status_up(f->a, &f->tenant, translate_kind_rules(DOWN_RESOURCE_CLAIMS), host,
                                 doc(f, "{metadata: {name: c, namespace: ml}}")),
        "{allocation: {devices: {results: [{request: r, driver: d, pool: node-1, device: "
        "gpu-0}], config: [{source: FromClaim, opaque: {driver: d, parameters: {a: 1}}}]}}, "
        "devices: [{driver: d, pool: node-1, device: gpu-0}]}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counted),
        TEST(refusals),
        TEST(expressions_are_bounded),
        TEST(wishes),
        TEST(host_claims),
        TEST(pods_of_claims),
        TEST(a_pod_goes_down_with_claims_alone),
        TEST(only_what_is_known_goes_down),
        TEST(the_allocation_comes_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
