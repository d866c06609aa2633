/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims in the ledger: an allocation is a hold, whoever uses it, and what claims held and
 * what lay idle is the capacity that ResourceSlices show, over every history and every kill. */
#include "world.h"

#include <sublet/json_build.h>

#include "core/fact_claims.h"

#define DO(call) assert_int_equal((call), 0)

struct claims {
    struct world w;
    struct pool_device_class classes[2];
    struct grant_devices *d;
};

static cJSON *parse(struct claims *c, struct str text)
{
    char *copy = arena_cstr(c->w.a, text);

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return world_parse(&c->w, str_c(copy));
}

static void slice(struct claims *c, const char *node, const char *driver, int generation,
                  const char *devices)
{
    struct str text = arena_printf(
        c->w.a,
        "{'metadata':{'name':'%s-%s'},'spec':{'driver':'%s','nodeName':'%s','pool':{'name':'%s',"
        "'generation':%d,'resourceSliceCount':1},'sharedCounters':[{'name':'g0','counters':{"
        "'m':{'value':'7'}}}],'devices':[%s]}}",
        node, driver, driver, node, node, generation, devices);

    grant_devices_slice(c->d, arena_printf(c->w.a, "%s-%s", node, driver), parse(c, text));
}

#define GPU(name) "{'name':'" name "','attributes':{'type':{'string':'gpu'}}}"
#define PART(name, units)                                                                          \
    "{'name':'" name "','attributes':{'type':{'string':'mig'}},'consumesCounters':[{"              \
    "'counterSet':'g0','counters':{'m':{'value':'" units "'}}}]}"
#define SPLIT                                                                                      \
    "{'name':'g0','attributes':{'type':{'string':'gpu'}},'consumesCounters':[{"                    \
    "'counterSet':'g0','counters':{'m':{'value':'7'}}}]}"

/* "g0,g1": names of devices; a '!' before one: with adminAccess. NULL: no allocation. */
static cJSON *claim(struct claims *c, const char *uid, const char *node, const char *devices,
                    const char *allocated)
{
    struct buf results = BUF_INIT(0);
    struct str rest = str_c(devices ? devices : "");
    cJSON *tree;

    while (rest.n) {
        size_t comma = str_find(rest, ',');
        struct str name = str_sub(rest, 0, comma);
        bool admin = name.p[0] == '!';

        buf_printf(&results, "%s{'request':'r','driver':'gpu.x.io','pool':'%s','device':'%.*s'%s}",
                   results.n ? "," : "", node, STR_F(admin ? str_from(name, 1) : name),
                   admin ? ",'adminAccess':true" : "");
        rest = str_from(rest, comma + 1);
    }
    tree = parse(
        c, arena_printf(
               c->w.a,
               "{'metadata':{'uid':'%s','name':'h-%s','namespace':'team-a','labels':{"
               "'sublet.dev/cluster':'c'},'annotations':{'sublet.dev/name':'%s',"
               "'sublet.dev/namespace':'default'}},'spec':{'devices':{'requests':[{'name':'r',"
               "'exactly':{'deviceClassName':'whole'}}]}},'status':{%s%s%.*s%s}}",
               uid, uid, uid, devices ? "'allocation':{" : "", devices ? allocated : "",
               STR_F(devices ? arena_printf(c->w.a,
                                            "'nodeSelector':{'nodeSelectorTerms':[{'matchFields':["
                                            "{'key':'metadata.name','operator':'In','values':["
                                            "'%s']}]}]},'devices':{'results':[%.*s]}",
                                            node, STR_F(buf_str(&results)))
                             : STR("")),
               devices ? "},'reservedFor':[{'resource':'pods','name':'p','uid':'u'},"
                         "{'resource':'pods','name':'q','uid':'v'}]"
                       : ""));
    buf_fini(&results);
    fact_reduce_claim(c->w.a, tree);
    return tree;
}

static bool see(struct claims *c, cJSON *tree, const cJSON *user, int64_t now)
{
    bool waits;

    DO(observer_claim(c->w.observer, tree, user, now, &waits, &c->w.err));
    return waits;
}

static void see_node(struct claims *c, const char *name, int64_t now)
{
    DO(observer_node(c->w.observer, world_node(&c->w, name, 0, 0, true, BEGIN - HOUR), now,
                     &c->w.err));
}

static void start(struct claims *c, int64_t now)
{
    struct observer_options o = {.pools = &c->w.pool, .n_pools = 1, .devices = c->d};
    struct fleet_records records;
    struct str directory = str_c(c->w.directory);

    DO(ledger_open(directory, now, 1, &c->w.ledger, &c->w.err));
    DO(ledger_read(c->w.a, directory, LEDGER_OPEN, INT64_MAX, &records, &c->w.err));
    o.ledger = c->w.ledger;
    o.records = &records;
    c->w.observer = observer_new(&o);
    DO(observer_prices(c->w.observer, now, &c->w.err));
    see_node(c, "n1", now);
    see_node(c, "n2", now);
    DO(observer_nodes_listed(c->w.observer, now, &c->w.err));
    DO(observer_pods_listed(c->w.observer, now, &c->w.err));
}

static void listed(struct claims *c, int64_t now)
{
    DO(observer_claims_listed(c->w.observer, now, &c->w.err));
}

static void begin(struct claims *c)
{
    *c = (struct claims){.d = grant_devices_new()};
    world_open(&c->w);
    c->classes[0] = (struct pool_device_class){.name = STR("part"),
                                               .gpu_eq = {1, 7},
                                               .driver = STR("gpu.x.io"),
                                               .attributes = parse(c, STR("{'type':'mig'}"))};
    c->classes[1] = (struct pool_device_class){.name = STR("whole"),
                                               .gpu_eq = {1, 1},
                                               .driver = STR("gpu.x.io"),
                                               .attributes = parse(c, STR("{'type':'gpu'}"))};
    c->w.pool.mode = POOL_DRA;
    c->w.pool.n_resources = 0;
    c->w.pool.device_classes = c->classes;
    c->w.pool.n_device_classes = COUNT(c->classes);
    slice(c, "n1", "gpu.x.io", 1, GPU("g1") "," GPU("g2"));
    slice(c, "n2", "gpu.x.io", 1, SPLIT "," PART("a", "1") "," PART("b", "1") "," GPU("g1"));
    start(c, BEGIN);
}

static void end(struct claims *c)
{
    world_close(&c->w);
    grant_devices_free(c->d);
}

static struct fleet_records records_of(struct claims *c)
{
    struct fleet_records r;

    DO(ledger_commit(c->w.ledger, &c->w.err));
    DO(ledger_read(c->w.a, c->w.location, 0, INT64_MAX, &r, &c->w.err));
    return r;
}

static struct usage usage_of(struct claims *c)
{
    struct fleet_records r = records_of(c);
    struct usage u;

    DO(fleet_usage_compute(c->w.a, &r, 0, INT64_MAX, 1u << USAGE_TENANT | 1u << USAGE_POOL, &u,
                           &c->w.err));
    return u;
}

static void an_allocation_is_a_hold(void **state)
{
    struct claims c;
    struct fleet_records r;
    struct usage u;
    cJSON *pod;

    (void)state;
    begin(&c);
    listed(&c, BEGIN);
    pod = parse(&c, STR("{'metadata':{'name':'p','namespace':'team-a','uid':'u','labels':{"
                        "'sublet.dev/cluster':'c','x':'y'},'annotations':{'sublet.dev/owner':"
                        "'Job/train'}},'spec':{'resourceClaims':[{'name':'g'}],'containers':[{}]"
                        "}}"));
    fact_reduce_pod(c.w.a, pod);
    assert_false(see(&c, claim(&c, "c1", "n1", NULL, ""), NULL, BEGIN + SECOND));
    assert_false(see(&c, claim(&c, "c1", "n1", "g1,!g2", ""), pod, BEGIN + 2 * SECOND));
    for (int i = 3; i < 10; i++) /* further pods use it: charged once */
        assert_false(see(&c, claim(&c, "c1", "n1", "g1,!g2", ""), pod, BEGIN + i * SECOND));
    assert_false(see(&c, claim(&c, "c1", "n1", NULL, ""), pod, BEGIN + 10 * SECOND));
    assert_false(see(&c,
                     claim(&c, "c1", "n1", "g2", "'allocationTimestamp':'2026-01-01T00:00:00Z',"),
                     NULL, BEGIN + 12 * SECOND));
    assert_false(see(&c, claim(&c, "admin", "n1", "!g1", ""), NULL, BEGIN + 12 * SECOND));
    DO(observer_seen(c.w.observer, BEGIN + 14 * SECOND, &c.w.err));
    DO(observer_claim_gone(c.w.observer, STR("c1"), true, BEGIN + 15 * SECOND, &c.w.err));
    DO(observer_claim_gone(c.w.observer, STR("c1"), true, BEGIN + 16 * SECOND, &c.w.err));
    r = records_of(&c);
    assert_int_equal(r.n_holds, 2);
    assert_str(r.holds[0].tenant, "team-a");
    assert_str(r.holds[0].ns, "default");
    assert_str(r.holds[0].name, "ResourceClaim/c1");
    assert_str(r.holds[0].owner, "Job/train");
    assert_str(r.holds[0].pool, "a100");
    assert_str(r.holds[0].product, "A100");
    assert_str(r.holds[0].mode, "dra");
    assert_str(r.holds[0].resources, "gpu.x.io/n1/g1");
    assert_str(r.holds[0].reason, "Deallocated");
    assert_int_equal(r.holds[0].begin_us, BEGIN + 2 * SECOND);
    assert_int_equal(r.holds[0].end_us, BEGIN + 10 * SECOND);
    assert_str(r.holds[1].owner, "");
    assert_str(r.holds[1].reason, "Deleted");
    assert_int_equal(r.holds[1].begin_us, BEGIN); /* as the host says, not before the ledger */
    assert_int_equal(r.holds[1].end_us, BEGIN + 15 * SECOND);
    assert_false(r.holds[1].estimated);
    u = usage_of(&c);
    assert_int_equal(u.balances[0].capacity.num, 4 * 14 * SECOND);
    end(&c);
}

/* A GPU and its parts share counters: it is one GPU, of which parts hold what they weigh. */
static void parts_weigh_what_their_class_does(void **state)
{
    struct claims c;
    struct usage u;

    (void)state;
    begin(&c);
    listed(&c, BEGIN);
    assert_false(see(&c, claim(&c, "c1", "n2", "a", ""), NULL, BEGIN));
    assert_false(see(&c, claim(&c, "c2", "n2", "b", ""), NULL, BEGIN));
    assert_true(see(&c, claim(&c, "c3", "n3", "g1", ""), NULL, BEGIN)); /* no such node */
    DO(observer_seen(c.w.observer, BEGIN + 7 * SECOND, &c.w.err));
    u = usage_of(&c);
    assert_int_equal(u.balances[0].held.num, 2 * SECOND);
    assert_int_equal(u.balances[0].capacity.num, 4 * 7 * SECOND);
    assert_int_equal(u.balances[0].idle.num, 26 * SECOND);
    end(&c);
}

/* Devices change under claims: what is held stays held, and a claim waits for its slice. */
static void slices_that_change_are_the_capacity(void **state)
{
    struct claims c;
    struct usage u;
    cJSON *early;

    (void)state;
    begin(&c);
    listed(&c, BEGIN);
    early = claim(&c, "c1", "n1", "g9", "");
    json_remove(json_path(early, "spec.devices"), "requests"); /* its class is not known either */
    assert_true(see(&c, early, NULL, BEGIN));
    slice(&c, "n1", "gpu.x.io", 2, GPU("g9") "," GPU("g1") "," GPU("g2"));
    see_node(&c, "n1", BEGIN + SECOND);
    assert_false(see(&c, early, NULL, BEGIN + SECOND));
    slice(&c, "n1", "gpu.x.io", 3, "");
    see_node(&c, "n1", BEGIN + 2 * SECOND);
    assert_false(see(&c, early, NULL, BEGIN + 2 * SECOND)); /* it goes on */
    assert_false(see(&c, claim(&c, "c2", "n2", "gone", ""), NULL, BEGIN + 2 * SECOND));
    DO(observer_seen(c.w.observer, BEGIN + 3 * SECOND, &c.w.err));
    u = usage_of(&c);
    assert_int_equal(u.balances[0].held.num, 3 * SECOND); /* 2 of c1, 1 of c2 by its class */
    assert_int_equal(u.balances[0].capacity.num, (4 + 5 + 2) * SECOND);
    assert_int_equal(u.balances[0].unmatched.num, SECOND);
    end(&c);
}

static void what_ended_unobserved_is_estimated(void **state)
{
    struct claims c;
    struct fleet_records r;

    (void)state;
    begin(&c);
    listed(&c, BEGIN);
    see(&c, claim(&c, "gone", "n1", "g1", ""), NULL, BEGIN + SECOND);
    see(&c, claim(&c, "moved", "n1", "g2", ""), NULL, BEGIN + SECOND);
    see(&c, claim(&c, "kept", "n2", "g1", ""), NULL, BEGIN + SECOND);
    DO(observer_seen(c.w.observer, BEGIN + 5 * SECOND, &c.w.err));
    DO(ledger_commit(c.w.ledger, &c.w.err));
    world_kill(&c.w);
    start(&c, BEGIN + 60 * SECOND); /* the list of pods ends no claim */
    see(&c, claim(&c, "moved", "n2", "g0", ""), NULL, BEGIN + 60 * SECOND);
    see(&c, claim(&c, "kept", "n2", "g1", ""), NULL, BEGIN + 60 * SECOND);
    listed(&c, BEGIN + 60 * SECOND);
    r = records_of(&c);
    assert_int_equal(r.n_holds, 4);
    assert_int_equal(r.holds[0].end_us, BEGIN + 5 * SECOND);
    assert_str(r.holds[0].reason, "Unobserved");
    assert_true(r.holds[0].estimated);
    assert_int_equal(r.holds[1].end_us, BEGIN + 5 * SECOND);
    assert_true(r.holds[1].estimated);
    assert_int_equal(r.holds[2].end_us, FLEET_OPEN);
    assert_int_equal(r.holds[3].begin_us, BEGIN + 60 * SECOND);
    end(&c);
}

/* --- every history --- */

#define STEPS   120
#define DEVICES 4

static const char *const DEVICE[DEVICES] = {"g1", "g2", "a", "g1"};
static const char *const NODE[DEVICES] = {"n1", "n1", "n2", "n2"};
static const int SEVENTHS[DEVICES] = {7, 7, 1, 7};

struct history {
    char holder[DEVICES][16]; /* uid; empty: free */
    int claims;
};

static void see_all(struct claims *c, const struct history *h, int64_t now)
{
    for (int i = 0; i < DEVICES; i++)
        if (h->holder[i][0])
            assert_false(see(c, claim(c, h->holder[i], NODE[i], DEVICE[i], ""), NULL, now));
}

static void move(struct claims *c, struct history *h, int i, unsigned how, int64_t now)
{
    if (!h->holder[i][0]) {
        snprintf(h->holder[i], sizeof(h->holder[i]), "u%d", h->claims++);
        see(c, claim(c, h->holder[i], NODE[i], DEVICE[i], ""), NULL, now);
        return;
    }
    if (how % 3)
        DO(observer_claim_gone(c->w.observer, str_c(h->holder[i]), true, now, &c->w.err));
    else
        see(c, claim(c, h->holder[i], NODE[i], NULL, ""), NULL, now);
    h->holder[i][0] = 0;
}

static void conserves_every_history(void **state)
{
    uint64_t seed = 20;

    (void)state;
    for (int round = 0; round < 8; round++) {
        struct claims c;
        struct history h = {.claims = 0};
        struct usage u;
        int64_t want = 0;

        begin(&c);
        listed(&c, BEGIN);
        for (int step = 1; step <= STEPS; step++) {
            int64_t now = BEGIN + step * SECOND;
            uint64_t r = next_random(&seed);

            for (int i = 0; i < DEVICES; i++)
                want += h.holder[i][0] ? SEVENTHS[i] * SECOND : 0;
            move(&c, &h, (int)(r % DEVICES), (unsigned)(r >> 8) % 256, now);
            see_all(&c, &h, now);
            DO(observer_seen(c.w.observer, now, &c.w.err));
            DO(ledger_commit(c.w.ledger, &c.w.err));
            if (r >> 16 & 1)
                continue;
            world_kill(&c.w);
            start(&c, now);
            see_all(&c, &h, now);
            listed(&c, now);
        }
        u = usage_of(&c);
        assert_int_equal(u.balances[0].held.num * 7 / u.balances[0].held.den, want);
        assert_int_equal(u.balances[0].unmatched.num, 0);
        assert_int_equal(u.balances[0].capacity.num, (int64_t)4 * STEPS * SECOND);
        end(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_is_a_hold),
        cmocka_unit_test(parts_weigh_what_their_class_does),
        cmocka_unit_test(slices_that_change_are_the_capacity),
        cmocka_unit_test(what_ended_unobserved_is_estimated),
        cmocka_unit_test(conserves_every_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
