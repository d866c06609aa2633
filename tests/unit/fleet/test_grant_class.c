/* SPDX-License-Identifier: Apache-2.0 */
/* GPUPools of mode dra on a host of a few objects: devices of ResourceSlices are granted, the
 * ResourceQuota is of the class's key, claims are what is held, and a process that is ended between
 * any two writes promises no device twice. */
#include "test.h"
#include "../../quoted.h"

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/json_build.h>
#include <sublet/object.h>

#include "grants/grant_class.h"
#include "grants/grant_write.h"

#define TENANTS 3
#define DEVICES 8 /* of two nodes */
#define NOW     INT64_C(1790000000)
#define KEY     "whole" GRANT_CLASS_KEY

struct host_of {
    struct arena *a;
    uint64_t random;
    int64_t version, most; /* most: writes of a step before the process ends */
    bool off, unknown;
    struct grant_devices *devices;
    cJSON *pools[2], *nodes[2], *bindings[TENANTS], *quotas[TENANTS];
    int64_t claims[TENANTS]; /* devices that are claimed */
    int64_t seen[TENANTS];   /* of these, by a watch that is late */
    bool late;
    const char *on[TENANTS];   /* the node of these; NULL: they are not allocated */
    const char *foreign_class; /* of a claim of team-0, else of no tenant */
    int foreign;               /* devices of n1 that another namespace has */
};

static cJSON *object(struct host_of *h, const char *text)
{
    return quoted_json(h->a, str_c(text));
}

static void stamp(struct host_of *h, cJSON *tree)
{
    json_set_str(h->a, json_ensure_object(h->a, tree, "metadata"), "resourceVersion",
                 arena_printf(h->a, "%lld", (long long)++h->version));
}

static void slice(struct host_of *h, const char *node, int n, const char *more)
{
    struct buf b = BUF_INIT(0);

    for (int i = 0; i < n; i++)
        buf_printf(&b, "%s{'name':'g%d'%s}", i ? "," : "", i, i ? "" : more);
    grant_devices_slice(
        h->devices, str_c(node),
        object(h, arena_printf(h->a,
                               "{'spec':{'driver':'d.io','nodeName':'%s','pool':{'name':'%s',"
                               "'generation':1,'resourceSliceCount':1},'devices':[%.*s]}}",
                               node, node, STR_F(buf_str(&b)))
                      .p));
    buf_fini(&b);
}

#define POOL                                                                                       \
    "{'metadata':{'name':'dev','generation':1},'spec':{'mode':'dra','nodeSelector':{'pool':"       \
    "'dev'},'deviceClasses':{'whole':{'gpuEq':1,'devices':{'driver':'d.io'}}}},'status':{"         \
    "'conditions':[{'type':'Converting','status':'False'}]}}"

static void begin(struct host_of *h, uint64_t seed)
{
    *h = (struct host_of){.a = arena_new(0),
                          .random = seed * 0x9e3779b97f4a7c15u + 1,
                          .most = INT64_MAX,
                          .devices = grant_devices_new()};
    h->pools[0] = object(h, POOL);
    stamp(h, h->pools[0]);
    for (int i = 0; i < 2; i++) {
        h->nodes[i] = object(h, "{'metadata':{'labels':{'pool':'dev'}},'status':{'conditions':[{"
                                "'type':'Ready','status':'True'}]}}");
        json_set_str(h->a, json_get(h->nodes[i], "metadata"), "name", arena_printf(h->a, "n%d", i));
    }
    slice(h, "n0", DEVICES / 2, "");
    slice(h, "n1", DEVICES / 2, "");
}

static void end(struct host_of *h)
{
    grant_devices_free(h->devices);
    arena_free(h->a);
}

static void bind_team(struct host_of *h, int i, const char *spec)
{
    h->bindings[i] = json_object(
        h->a,
        JSON("metadata", json_object(h->a, JSON("name", "dev"),
                                     JSON("namespace", arena_printf(h->a, "team-%d", i)),
                                     JSON("creationTimestamp", time_format_s(h->a, NOW - 100 + i)),
                                     JSON_I64("generation", ++h->version))),
        JSON("spec", object(h, spec)),
        JSON("status",
             h->bindings[i] ? json_copy(h->a, json_get(h->bindings[i], "status")) : NULL));
    stamp(h, h->bindings[i]);
}

static void look_at_claims(struct host_of *h, struct grant_state *s, struct str ns, int64_t n,
                           const char *node, const char *class)
{
    struct fact_units *units = ARENA_NEW(h->a, struct fact_units);
    struct grant_claimed *devices = arena_alloc(h->a, (size_t)(n + 1) * sizeof(*devices));
    struct str key = arena_printf(h->a, "%s" GRANT_CLASS_KEY, class);
    struct grant_claim claim = {.ns = ns, .units = units, .devices = devices, .n_units = n > 0};

    *units = (struct fact_units){key, n};
    claim.node = node ? str_c(node) : STR("");
    for (int64_t i = 0; i < n && node; i++)
        devices[claim.n_devices++] = (struct grant_claimed){
            .name = {STR("d.io"), str_c(node), arena_printf(h->a, "g%lld", (long long)i)},
            .key = key};
    grant_state_claim(s, &claim);
}

static void look(struct host_of *h, struct grant_state *s)
{
    struct grant_times times = {.now_s = NOW, .grace_s = 60, .pause_s = 300};

    grant_state_begin(s, h->a, &times);
    s->classes = (struct grant_class_source){
        .enabled = !h->off, .known = !h->unknown, .devices = h->devices};
    for (size_t i = 0; i < COUNT(h->pools); i++)
        if (h->pools[i])
            grant_state_pool(s, h->pools[i]);
    for (int i = 0; i < TENANTS; i++)
        if (h->bindings[i])
            grant_state_binding(s, h->bindings[i]);
    for (int i = 0; i < TENANTS; i++)
        if (h->quotas[i])
            grant_state_quota(s, h->quotas[i]);
    for (int i = 0; i < 2; i++) {
        struct grant_node *node = ARENA_NEW(h->a, struct grant_node);

        grant_node_of(h->a, h->nodes[i], node);
        grant_state_node(s, node);
    }
    for (int i = 0; i < TENANTS; i++) {
        h->seen[i] = h->late ? h->seen[i] : h->claims[i];
        look_at_claims(h, s, arena_printf(h->a, "team-%d", i), h->seen[i], h->on[i], "whole");
    }
    look_at_claims(h, s, h->foreign_class ? STR("team-0") : STR("other"), h->foreign, "n1",
                   h->foreign_class ? h->foreign_class : "whole");
    grant_state_settle(s);
}

/* --- what the host makes of a write --- */

/* -1: it bounds nothing. */
static int64_t hard_of(const struct host_of *h, int i)
{
    int64_t n = -1;

    (void)str_to_i64(json_str(json_get(json_path(h->quotas[i], "spec.hard"), KEY)), &n);
    return n;
}

static int64_t grant_of(const struct host_of *h, int i)
{
    int64_t n = 0;

    (void)str_to_i64(json_str_at(h->bindings[i], "status.grant"), &n);
    return n;
}

static void charge(struct host_of *h, int i)
{
    if (!h->quotas[i])
        return;
    json_set(h->a, h->quotas[i], "status",
             json_object(
                 h->a, JSON("used",
                            json_object(h->a, JSON(KEY, arena_printf(h->a, "%lld",
                                                                     (long long)h->claims[i]))))));
    stamp(h, h->quotas[i]);
}

/* Admission: what does not fit is refused. */
static bool claim(struct host_of *h, int i, int64_t n)
{
    int64_t hard = hard_of(h, i);

    if (n > 0 && (hard < 0 || h->claims[i] + n > hard))
        return false;
    h->claims[i] = h->claims[i] + n > 0 ? h->claims[i] + n : 0;
    charge(h, i);
    return true;
}

static void put(struct host_of *h, cJSON **at, const struct grant_write *w)
{
    if (!str_eq(json_str_at(*at, "metadata.resourceVersion"), w->version))
        return;
    *at = json_copy(h->a, w->body);
    stamp(h, *at);
}

static void apply(struct host_of *h, const struct grant_write *w)
{
    for (int i = 0; i < TENANTS; i++) {
        bool quota = str_contains(w->path, STR("/resourcequotas/"));

        if (!str_contains(w->path, arena_printf(h->a, "/namespaces/team-%d/", i)))
            continue;
        put(h, quota ? &h->quotas[i] : &h->bindings[i], w);
        if (quota)
            charge(h, i);
        return;
    }
    put(h, str_contains(w->path, STR("/dev/")) ? &h->pools[0] : &h->pools[1], w);
}

static void check_host(const struct host_of *h)
{
    int64_t sum = 0;

    for (int i = 0; i < TENANTS; i++) {
        int64_t hard = hard_of(h, i) > 0 ? hard_of(h, i) : 0;

        sum += hard > h->claims[i] ? hard : h->claims[i];
        assert_true(grant_of(h, i) <= hard);
        assert_true(h->claims[i] <= hard);
    }
    assert_true(sum <= DEVICES);
}

static size_t step(struct host_of *h, struct buf *out)
{
    struct grant_state s;
    struct grant_write w;
    size_t at = 0, n = 0;

    look(h, &s);
    for (; (int64_t)n < h->most && grant_next_write(&s, &at, &w); n++) {
        const cJSON *hard = json_path(w.body, "spec.hard");

        if (str_contains(w.path, STR("/namespaces/")))
            buf_printf(out, "%s %.*s %.*s\n", w.method, STR_F(str_from(w.path, 4)),
                       STR_F(hard ? json_text(h->a, hard) : json_str_at(w.body, "status.grant")));
        apply(h, &w);
        check_host(h);
    }
    grant_state_end(&s);
    return n;
}

#define SETTLE_ROUNDS 20
#include "grant_steps.h"

#define PATH(n, rest) "/v1/namespaces/team-" #n "/" rest " "
#define QUOTA(n)      PATH(n, "resourcequotas/sublet-gpu")
#define GRANT(n)      "s/sublet.dev/v1alpha1/namespaces/team-" #n "/gpubindings/dev/status "
#define HARD(n)       "{\"" KEY "\":\"" #n "\"}\n"

/* --- cases --- */

static void the_quota_of_the_class_goes_up_first_and_down_with_claims(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    settle(&h);
    bind_team(&h, 0, "{'pool':'dev','guarantee':2}");
    check_step(&h, "POST " QUOTA(0) HARD(2) "PUT " GRANT(0) "0\n");
    check_step(&h, "PUT " GRANT(0) "2\n");
    assert_true(claim(&h, 0, 2));
    assert_false(claim(&h, 0, 1));
    bind_team(&h, 0, "{'pool':'dev','guarantee':5}");
    check_step(&h, "PUT " QUOTA(0) HARD(5) "PUT " GRANT(0) "2\n");
    check_step(&h, "PUT " GRANT(0) "5\n");
    assert_true(claim(&h, 0, 3));
    bind_team(&h, 0, "{'pool':'dev','guarantee':1}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 1);
    assert_int_equal(hard_of(&h, 0), 5); /* what is claimed is not taken back */
    assert_null(json_path(h.bindings[0], "status.reclaim"));
    assert_str(condition_text(&h, h.bindings[0], "Reclaiming"),
               "False ClaimsBeyondGrant claims hold 4 GPUs beyond the grant until they are "
               "deleted: they are not taken back");
    bind_team(&h, 1, "{'pool':'dev','guarantee':7}");
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 3);
    claim(&h, 0, -3);
    settle(&h);
    assert_int_equal(hard_of(&h, 0), 2);
    assert_int_equal(grant_of(&h, 1), 6);
    claim(&h, 0, -1);
    settle(&h);
    assert_int_equal(hard_of(&h, 0), 1);
    assert_int_equal(grant_of(&h, 1), 7);
    assert_str(json_str_at(h.pools[0], "status.granted"), "8");
    assert_str(json_str_at(h.pools[0], "status.free"), "0");
    assert_str(condition_text(&h, h.pools[0], "Fenced"), "True OwnResources ");
    end(&h);
}

static void a_guarantee_that_does_not_fit_is_refused(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'dev','guarantee':6}");
    settle(&h);
    bind_team(&h, 1, "{'pool':'dev','guarantee':3}");
    settle(&h);
    assert_int_equal(hard_of(&h, 1), 0);
    assert_str(condition_text(&h, h.bindings[1], "Ready"),
               "False Overcommitted guarantee 3 of \"team-1\" does not fit into GPUPool \"dev\" "
               "beside the guarantees of older bindings");
    assert_str(condition_text(&h, h.pools[0], "Overcommitted"),
               "True Refused the guarantee of GPUBinding team-1/dev does not fit beside those of "
               "older bindings");
    json_set_str(h.a, json_get(h.pools[0], "spec"), "kind", STR("dedicated"));
    stamp(&h, h.pools[0]);
    bind_team(&h, 1, "{'pool':'dev','guarantee':1}");
    settle(&h);
    assert_str(condition_text(&h, h.bindings[1], "Ready"),
               "False PoolDedicated GPUPool \"dev\" is dedicated to another namespace than "
               "\"team-1\"");
    end(&h);
}

static void nothing_is_borrowed_or_lent(void **state)
{
    static const char *const specs[] = {"{'pool':'dev','guarantee':2,'burst':1}",
                                        "{'pool':'dev','guarantee':2,'lend':'1'}",
                                        "{'pool':'dev','guarantee':2,'overQuota':'queue'}"};
    struct host_of h;

    (void)state;
    for (size_t i = 0; i < COUNT(specs); i++) {
        begin(&h, 1);
        bind_team(&h, 0, specs[i]);
        settle(&h);
        assert_int_equal(hard_of(&h, 0), 0);
        assert_str(condition_text(&h, h.bindings[0], "Ready"),
                   i < 2 ? "False Invalid burst and lend are not for a GPUPool of mode dra: claims "
                           "of devices are not taken back"
                         : "False Invalid overQuota queue is for pods: a claim of devices is "
                           "charged when it is created, or refused");
        end(&h);
    }
}

static void check_ready(struct host_of *h, const char *want)
{
    settle(h);
    assert_str(condition_text(h, h->pools[0], "Ready"), want);
}

static void a_mistake_has_its_place_in_the_object(void **state)
{
    struct host_of h;
    cJSON *spec;

    (void)state;
    begin(&h, 1);
    spec = json_get(h.pools[0], "spec");
    json_set_str(h.a, spec, "trust", STR("adversarial"));
    check_ready(&h, "False Invalid spec.mode: trust adversarial allows only exclusive|mig");
    end(&h);
}

static void a_pool_that_cannot_be_counted_is_none(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    json_remove(json_path(h.pools[0], "spec.deviceClasses.whole"), "devices");
    check_ready(&h, "False Invalid deviceClasses.whole.devices is needed: by its driver, and "
                    "attributes, devices of the class are known in ResourceSlices");
    json_set(
        h.a, json_get(h.pools[0], "spec"), "deviceClasses",
        object(&h,
               arena_printf(h.a, "{'%0*d':{'gpuEq':1,'devices':{'driver':'d.io'}}}", 226, 0).p));
    settle(&h);
    assert_true(str_contains(condition_text(&h, h.pools[0], "Ready"),
                             STR("a ResourceQuota bounds names of at most 225 bytes")));
    json_set(h.a, json_get(h.pools[0], "spec"), "deviceClasses",
             object(&h, "{'whole':{'gpuEq':0,'perClaim':1}}"));
    check_ready(&h, "False Invalid deviceClasses: none of them has a gpuEq greater than 0");
    h.pools[0] = object(&h, POOL);
    h.off = true;
    check_ready(&h, "False Invalid mode dra needs grants.deviceClaims of sublet fleet, which reads "
                    "ResourceSlices and ResourceClaims of the host");
    h.off = false;
    check_ready(&h, "True Served ");
    grant_devices_slice(h.devices, STR("n0"), NULL);
    grant_devices_slice(h.devices, STR("n1"), NULL);
    check_ready(&h, "False NoNodes no node with the labels of nodeSelector has devices of "
                    "deviceClasses in its ResourceSlices");
    end(&h);
}

/* While slices or claims cannot be read, what is granted stays. */
static void nothing_changes_by_what_is_not_known(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'dev','guarantee':6}");
    settle(&h);
    grant_devices_slice(h.devices, STR("n0"), NULL);
    grant_devices_slice(h.devices, STR("n1"), NULL);
    h.unknown = true;
    bind_team(&h, 1, "{'pool':'dev','guarantee':1}");
    settle(&h);
    assert_int_equal(hard_of(&h, 0), 6);
    assert_int_equal(grant_of(&h, 0), 6);
    assert_int_equal(grant_of(&h, 1), 0);
    assert_str(condition_text(&h, h.pools[0], "Ready"),
               "False DevicesUnknown ResourceSlices and ResourceClaims are not read yet");
    assert_str(condition_text(&h, h.pools[0], "Overcommitted"), "False WithinCapacity ");
    h.unknown = false;
    slice(&h, "n0", DEVICES / 2, "");
    slice(&h, "n1", DEVICES / 2, "");
    settle(&h);
    assert_int_equal(grant_of(&h, 1), 1);
    end(&h);
}

/* What is not known of one pool keeps no other hand's bound, of this pool or another. */
static void a_bound_is_repaired_while_devices_are_not_known(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'dev','guarantee':2}");
    settle(&h);
    h.unknown = true;
    settle(&h);
    json_set_str(h.a, json_path(h.quotas[0], "spec.hard"), KEY, STR("100"));
    stamp(&h, h.quotas[0]);
    check_step(&h, "PUT " QUOTA(0) HARD(2));
    check_step(&h, "");
    end(&h);
}

static void devices_of_others_are_not_granted(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    h.foreign = 2;
    bind_team(&h, 0, "{'pool':'dev','guarantee':8}");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 6);
    h.foreign_class = "any"; /* its own claim of a class that the pool does not have */
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 6);
    h.foreign_class = NULL;
    h.foreign = 0;
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    end(&h);
}

static void health_takes_no_guarantee(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'dev','guarantee':8}");
    settle(&h);
    slice(&h, "n0", DEVICES / 2, ",'taints':[{'key':'xid','effect':'NoExecute'}]");
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 8);
    assert_str(json_str_at(h.pools[0], "status.capacity"), "7");
    assert_str(condition_text(&h, h.pools[0], "Overcommitted"),
               "True Unhealthy healthy GPUs are fewer than the guarantees");
    slice(&h, "n0", DEVICES / 2 - 1, ""); /* it is gone */
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 7);
    assert_int_equal(hard_of(&h, 0), 7);
    end(&h);
}

/* Of a namespace without a grant the class is bounded as well; a deleted binding leaves that. */
static void a_class_is_bounded_for_all_bindings(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    h.pools[1] = object(&h, "{'metadata':{'name':'plain','generation':1},'spec':{'nodeSelector':{"
                            "'pool':'plain'}},'status':{'conditions':[{'type':'Converting',"
                            "'status':'False'}]}}");
    stamp(&h, h.pools[1]);
    bind_team(&h, 0, "{'pool':'plain'}");
    bind_team(&h, 1, "{'pool':'dev','guarantee':2}");
    settle(&h);
    assert_int_equal(hard_of(&h, 0), 0);
    assert_str(json_str(json_get(json_path(h.quotas[1], "spec.hard"), "requests.nvidia.com/gpu")),
               "0");
    assert_true(claim(&h, 1, 2));
    h.bindings[1] = NULL;
    settle(&h);
    assert_int_equal(hard_of(&h, 1), 2);
    claim(&h, 1, -2);
    settle(&h);
    assert_int_equal(hard_of(&h, 1), 0);
    end(&h);
}

/* No pod is ended; what is held is said, until it is given back. */
static void a_drain_waits_for_claims(void **state)
{
    struct host_of h;

    (void)state;
    begin(&h, 1);
    bind_team(&h, 0, "{'pool':'dev','guarantee':2}");
    bind_team(&h, 1, "{'pool':'dev','guarantee':2}");
    settle(&h);
    assert_true(claim(&h, 0, 2) && claim(&h, 1, 1));
    h.bindings[1] = NULL;
    h.foreign = 1;
    json_set(h.a, json_get(h.pools[0], "spec"), "maintenance",
             object(&h, "{'state':'drain','reason':'firmware'}"));
    stamp(&h, h.pools[0]);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 0);
    assert_int_equal(hard_of(&h, 0), 2);
    assert_null(json_path(h.bindings[0], "status.reclaim"));
    assert_str(condition_text(&h, h.bindings[0], "Ready"), "True PoolUnavailable firmware");
    assert_str(condition_text(&h, h.pools[0], "Maintenance"),
               "True Draining firmware; 3 GPUs of 2 bindings are held, 1 by namespace \"team-1\", "
               "whose GPUBinding was deleted: delete its claims, or bind it again, and 1 by claims "
               "that no GPUBinding bounds, in namespaces, such as \"other\"");
    claim(&h, 0, -2);
    claim(&h, 1, -1);
    h.foreign = 0;
    settle(&h);
    assert_int_equal(hard_of(&h, 0), 0);
    assert_str(condition_text(&h, h.pools[0], "Maintenance"), "True Drained firmware");
    json_remove(json_get(h.pools[0], "spec"), "maintenance");
    stamp(&h, h.pools[0]);
    settle(&h);
    assert_int_equal(grant_of(&h, 0), 2);
    end(&h);
}

/* --- any order --- */

static uint64_t below(struct host_of *h, uint64_t n)
{
    h->random ^= h->random << 13;
    h->random ^= h->random >> 7;
    h->random ^= h->random << 17;
    return h->random % n;
}

static void change(struct host_of *h)
{
    int i = (int)below(h, TENANTS);
    int64_t n = (int64_t)below(h, DEVICES + 2);

    switch (below(h, 6)) {
    case 0:
        bind_team(h, i, arena_printf(h->a, "{'pool':'dev','guarantee':%lld}", (long long)n).p);
        break;
    case 1:
        if (!below(h, 4))
            h->bindings[i] = NULL;
        break;
    case 2:
        h->on[i] = below(h, 2) ? "n0" : NULL;
        break;
    default:
        (void)claim(h, i, below(h, 2) ? n / 2 : -n);
    }
}

static void a_process_may_end_between_any_two_writes(void **state)
{
    struct buf unused = BUF_INIT(0);

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct host_of h;
        int64_t wanted = 0;

        begin(&h, seed);
        for (int i = 0; i < 60; i++) {
            change(&h);
            h.most = (int64_t)below(&h, 4);
            h.late = below(&h, 2);
            step(&h, &unused);
            check_host(&h);
        }
        h.most = INT64_MAX;
        h.late = false;
        for (int i = 0; i < TENANTS; i++)
            claim(&h, i, -DEVICES);
        settle(&h);
        for (int i = 0; i < TENANTS; i++) {
            int64_t guarantee = json_i64_at(h.bindings[i], "spec.guarantee", 0);

            wanted += guarantee;
            assert_true(grant_of(&h, i) == guarantee || grant_of(&h, i) == 0);
        }
        for (int i = 0; i < TENANTS && wanted <= DEVICES; i++)
            assert_int_equal(grant_of(&h, i), json_i64_at(h.bindings[i], "spec.guarantee", 0));
        end(&h);
    }
    buf_fini(&unused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quota_of_the_class_goes_up_first_and_down_with_claims),
        cmocka_unit_test(a_guarantee_that_does_not_fit_is_refused),
        cmocka_unit_test(nothing_is_borrowed_or_lent),
        cmocka_unit_test(a_pool_that_cannot_be_counted_is_none),
        cmocka_unit_test(a_mistake_has_its_place_in_the_object),
        cmocka_unit_test(nothing_changes_by_what_is_not_known),
        cmocka_unit_test(a_bound_is_repaired_while_devices_are_not_known),
        cmocka_unit_test(devices_of_others_are_not_granted),
        cmocka_unit_test(health_takes_no_guarantee),
        cmocka_unit_test(a_class_is_bounded_for_all_bindings),
        cmocka_unit_test(a_drain_waits_for_claims),
        cmocka_unit_test(a_process_may_end_between_any_two_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
