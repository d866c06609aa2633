/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that sync.toHost enables, on a host with faults, after a restore, and on a host that was
 * itself restored. Whatever happens: each object is on the host once, nothing is deleted that no
 * client deleted, and nothing is requested of the host for a kind that is off. */
#include "sim.h"

#include "engine.h"

#include <sublet/config_sync.h>

#define POLICIES "networkpolicies.networking.k8s.io"
#define CONFIG                                                                                     \
    "sync: {toHost: {networkPolicies: {enabled: true}, podDisruptionBudgets: {enabled: true}}}\n"
#define N 12

static const char *name_of(struct sim *s, const char *prefix, unsigned i)
{
    return arena_printf(s->arena, "%s%u", prefix, i).p;
}

static void create(struct sim *s, const char *name)
{
    sim_create(s, POLICIES, "default",
               arena_printf(s->arena,
                            "{'apiVersion':'networking.k8s.io/v1','kind':'NetworkPolicy',"
                            "'metadata':{'name':'%s'},'spec':{'podSelector':{},'ingress':[{}]}}",
                            name)
                   .p);
}

static const cJSON *on_host(struct sim *s, struct arena *a, const char *name)
{
    const cJSON *found = NULL;

    json_each(o, fake_host_list(s->host, a, "networkpolicies"))
    {
        if (!str_eqc(json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/name")),
                     name))
            continue;
        assert_null(found); /* never twice */
        found = o;
    }
    return found;
}

/* Is each of the tenant's on the host, under its uid and with as many rules, and no other? */
static bool is_alike(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *mine = sim_list(s, a, POLICIES, "default");
    bool alike = json_count(mine) == fake_host_count(s->host, "networkpolicies");

    json_each(v, mine)
    {
        const cJSON *o = on_host(s, a, arena_cstr(a, json_str_at(v, "metadata.name")));

        alike =
            alike && o &&
            str_eq(json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/uid")),
                   json_str_at(v, "metadata.uid")) &&
            json_count(json_path(o, "spec.ingress")) == json_count(json_path(v, "spec.ingress"));
    }
    arena_free(a);
    return alike;
}

static void on_a_bad_host(uint64_t seed)
{
    struct sim *s = sim_new(seed, CONFIG);

    sim_spoil_host(s);
    for (unsigned i = 0; i < N; i++)
        create(s, name_of(s, "p", i));
    sim_writes_done(s);
    sim_run_ms(s, 300);
    for (unsigned i = 0; i < N; i += 3)
        sim_patch(s, POLICIES, "default", name_of(s, "p", i), "{'spec':{'ingress':[{},{}]}}");
    for (unsigned i = 1; i < N; i += 3)
        sim_delete(s, POLICIES, "default", name_of(s, "p", i), 0);
    sim_writes_done(s);
    sim_close(s);
    sim_open(s);
    for (unsigned i = 1; i < N; i += 6)
        create(s, name_of(s, "p", i)); /* again, under another uid */
    sim_writes_done(s);
    sim_run_ms(s, 300);
    sim_mend_host(s);
    sim_until(s, is_alike, "the host as the tenant has it");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

static void test_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        on_a_bad_host(seed);
}

static bool newer_is_in_quarantine(struct sim *s)
{
    return sync_quarantine_count(s->syncer, (enum sync_id)N_SYNC_FIXED) == 1;
}

static bool newer_is_taken_over(struct sim *s)
{
    return sync_quarantine_count(s->syncer, (enum sync_id)N_SYNC_FIXED) == 0 && is_alike(s);
}

static void test_a_backup_is_restored(void **state)
{
    struct sim *s = sim_new(20, CONFIG);
    struct str uid, newer;

    (void)state;
    create(s, "old");
    sim_writes_done(s);
    sim_until(s, is_alike, "it on the host");
    uid = json_str_at(on_host(s, s->arena, "old"), "metadata.uid");
    sim_backup(s, "backup");
    create(s, "newer");
    sim_writes_done(s);
    sim_until(s, is_alike, "both on the host");
    newer = json_str_at(on_host(s, s->arena, "newer"), "metadata.uid");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, newer_is_in_quarantine, "the quarantine");
    assert_true(str_eq(json_str_at(on_host(s, s->arena, "old"), "metadata.uid"), uid));
    assert_int_equal(fake_host_asked(s->host, "DELETE", "networkpolicies", false), 0);
    create(s, "newer");
    sim_writes_done(s);
    sim_until(s, newer_is_taken_over, "the newer one to be taken over");
    assert_true(str_eq(json_str_at(on_host(s, s->arena, "newer"), "metadata.uid"), newer));
    sim_free(s);
}

static void test_a_host_that_was_restored(void **state)
{
    struct sim *s = sim_new(21, CONFIG);
    struct fake_host_image *image = fake_host_image(s->host);

    (void)state;
    create(s, "p");
    sim_writes_done(s);
    sim_until(s, is_alike, "it on the host");
    fake_host_roll_back(s->host, image);
    sim_until(s, is_alike, "it again");
    assert_true(fake_host_asked(s->host, "GET", "networkpolicies", false) > 0);
    assert_int_equal(fake_host_asked(s->host, "DELETE", "networkpolicies", false), 0);
    sim_free(s);
}

/* --- the admin's list becomes shorter --- */

#define REMOVED "10.30.0.0/16"

static bool is_narrowed(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *host = on_host(s, a, "p");
    struct str text = json_text(a, host);
    const cJSON *first = json_at(json_path(host, "spec.egress"), 0);
    const cJSON *second = json_at(json_path(host, "spec.egress"), 1);
    bool narrowed = host && !str_contains(text, STR(REMOVED));

    if (narrowed) {
        assert_int_equal(json_count(json_path(host, "spec.egress")), 2);
        assert_int_equal(json_count(json_get(first, "to")), 1);
        assert_true(str_contains(json_text(a, first), STR("10.20.0.0/16")));
        assert_int_equal(json_count(json_get(second, "to")), 1); /* matches nothing */
        assert_true(str_contains(json_text(a, second), STR("DoesNotExist")));
    }
    arena_free(a);
    return narrowed;
}

static bool narrowing_is_reported(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool found = false;

    json_each(e, sim_list(s, a, "events", "default")) found |=
        str_contains(json_str(json_get(e, "message")), STR("left out on the host")) &&
        str_contains(json_str(json_get(e, "message")), STR(REMOVED));
    arena_free(a);
    return found;
}

static void test_a_policy_is_narrowed_with_the_list(void **state)
{
    struct sim *s = sim_new(25, "sync: {toHost: {networkPolicies: {enabled: true, allowedCIDRs: "
                                "[10.20.0.0/16, " REMOVED "]}}}\n");
    struct config_to_host *to = ARENA_NEW(s->arena, struct config_to_host);
    struct str uid;

    (void)state;
    sim_create(
        s, POLICIES, "default",
        "{'apiVersion':'networking.k8s.io/v1','kind':'NetworkPolicy','metadata':{'name':'p'},"
        "'spec':{'podSelector':{},'policyTypes':['Egress'],'egress':["
        "{'to':[{'ipBlock':{'cidr':'10.20.0.0/16'}},{'ipBlock':{'cidr':'" REMOVED "'}}]},"
        "{'to':[{'ipBlock':{'cidr':'" REMOVED "'}}]}]}}");
    sim_writes_done(s);
    while (!on_host(s, s->arena, "p"))
        sim_run_ms(s, 2);
    uid = json_str_at(on_host(s, s->arena, "p"), "metadata.uid");
    sim_close(s);
    *to = *s->config.to_host;
    to->network_cidrs.n = 1;
    s->config.to_host = to;
    sim_open(s);
    sim_until(s, is_narrowed, "the host's policy without the removed range");
    sim_until(s, narrowing_is_reported, "an Event");
    assert_true(str_eq(json_str_at(on_host(s, s->arena, "p"), "metadata.uid"), uid));
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

static bool stays_away(struct sim *s)
{
    return !fake_host_count(s->host, "networkpolicies") && fake_host_count(s->host, "services") > 0;
}

static bool is_told(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool told = false;

    json_each(e, sim_list(s, a, "events", "default")) told |=
        str_eqc(json_str(json_get(e, "reason")), "SyncError") &&
        str_contains(json_str(json_get(e, "message")), STR("does not have this kind"));
    arena_free(a);
    return told;
}

static void test_a_host_without_the_kind_says_so(void **state)
{
    struct sim *s = sim_new(24, CONFIG);

    (void)state;
    fake_host_faults(s->host)->unreadable = "networkpolicies";
    create(s, "p");
    sim_writes_done(s);
    sim_until(s, is_told, "an Event");
    assert_int_equal(fake_host_count(s->host, "networkpolicies"), 0);
    sim_free(s);
}

/* --- ConfigMaps and Secrets of namespace default that go down by themselves --- */

#define MARK "'annotations':{'sublet.dev/sync':'true'}"

static const cJSON *data_on_host(struct sim *s, struct arena *a, const char *plural,
                                 const char *name)
{
    const cJSON *found = NULL;

    json_each(o, fake_host_list(s->host, a, plural))
    {
        const cJSON *notes = json_path(o, "metadata.annotations");

        if (!str_eqc(json_str(json_get(notes, "sublet.dev/name")), name) ||
            !str_eqc(json_str(json_get(notes, "sublet.dev/namespace")), "default"))
            continue;
        assert_null(found);
        found = o;
    }
    return found;
}

static bool has(struct sim *s, const char *plural, const char *name)
{
    struct arena *a = arena_new(0);
    bool there = data_on_host(s, a, plural, name) != NULL;

    arena_free(a);
    return there;
}

static bool has_marked(struct sim *s)
{
    return has(s, "configmaps", "m") && has(s, "secrets", "m");
}

static bool has_later(struct sim *s)
{
    return has(s, "configmaps", "later");
}

static bool has_no_marked(struct sim *s)
{
    return !has(s, "configmaps", "m") && !has(s, "secrets", "m") && !has_later(s);
}

static bool has_no_data(struct sim *s)
{
    return has_no_marked(s) && !has(s, "configmaps", "plain");
}

static void create_tokens(struct sim *s)
{
    sim_create(s, "secrets", "default",
               "{'metadata':{'name':'boot'," MARK "},'type':'bootstrap.kubernetes.io/token',"
               "'data':{'token-id':'YWJjZGVm'}}");
    sim_create(s, "secrets", "default",
               "{'metadata':{'name':'token','annotations':{'sublet.dev/sync':'true',"
               "'kubernetes.io/service-account.name':'default'}},"
               "'type':'kubernetes.io/service-account-token'}");
}

static void test_marked_data_goes_down(void **state)
{
    struct sim *s = sim_new(26, NULL);
    struct str uid;

    (void)state;
    create_tokens(s);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'m'," MARK "},'data':{'k':'1'}}");
    sim_create(s, "secrets", "default", "{'metadata':{'name':'m'," MARK "},'data':{'k':'dg=='}}");
    sim_create(s, "configmaps", "default",
               "{'metadata':{'name':'plain','annotations':{'sublet.dev/sync':'false'}},"
               "'data':{'k':'sublet.dev/sync'}}");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'later'}}");
    sim_writes_done(s);
    sim_until(s, has_marked, "the marked objects");
    assert_false(has_later(s));
    uid = json_str_at(data_on_host(s, s->arena, "configmaps", "m"), "metadata.uid");
    sim_close(s);
    sim_open(s);
    sim_patch(s, "configmaps", "default", "later", "{'metadata':{" MARK "}}");
    sim_writes_done(s);
    sim_until(s, has_later, "what is marked after a restart");
    assert_true(
        str_eq(json_str_at(data_on_host(s, s->arena, "configmaps", "m"), "metadata.uid"), uid));
    assert_false(has(s, "secrets", "boot") || has(s, "secrets", "token") ||
                 has(s, "configmaps", "plain"));

    sim_patch(s, "configmaps", "default", "m",
              "{'metadata':{'annotations':{'sublet.dev/sync':null}}}");
    sim_delete(s, "configmaps", "default", "later", 0);
    sim_delete(s, "secrets", "default", "m", 0);
    sim_until(s, has_no_marked, "the host without what is not marked any more");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

static bool has_all(struct sim *s)
{
    return has_marked(s) && has(s, "configmaps", "plain") &&
           has(s, "configmaps", "kube-root-ca.crt");
}

/* Both on one: the mark and the option; and a copy of what is on the host anyway. */
static void test_all_data_goes_down(void **state)
{
    struct sim *s =
        sim_new(27, "sync: {toHost: {configMaps: {all: true}, secrets: {all: true}}}\n");
    struct config_to_host *to = ARENA_NEW(s->arena, struct config_to_host);

    (void)state;
    create_tokens(s);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'m'," MARK "},'data':{'k':'1'}}");
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'plain'}}");
    sim_create(s, "configmaps", "default",
               "{'metadata':{'name':'later','annotations':{'sublet.dev/from-host':'sync'}}}");
    sim_create(s, "secrets", "default", "{'metadata':{'name':'m'},'data':{'k':'dg=='}}");
    sim_writes_done(s);
    sim_until(s, has_all, "all of them");
    assert_false(has(s, "secrets", "boot") || has(s, "secrets", "token") || has_later(s));
    sim_patch(s, "configmaps", "default", "m",
              "{'metadata':{'annotations':{'sublet.dev/sync':null}}}");
    sim_writes_done(s);
    sim_run_ms(s, 300);
    assert_true(has_all(s));

    sim_close(s);
    *to = *s->config.to_host;
    to->all_config_maps = to->all_secrets = false;
    s->config.to_host = to;
    sim_open(s);
    sim_until(s, has_no_data, "the host without what no pod refers to");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

/* Neither a kind that is off, nor one that the tenant does not use. */
static void test_what_is_not_used_is_not_watched(void **state)
{
    struct sim *s = sim_new(22, NULL);

    (void)state;
    create(s, "p");
    sim_create(s, "services", "default",
               "{'metadata':{'name':'s'},'spec':{'ports':[{'port':80}]}}");
    sim_writes_done(s);
    sim_until(s, stays_away, "a Service on the host");
    assert_int_equal(s->syncer->n_kinds, N_SYNC_FIXED);
    assert_int_equal(fake_host_asked(s->host, "GET", "networkpolicies", false), 0);
    sim_free(s);

    s = sim_new(23, CONFIG);
    sim_create(s, "services", "default",
               "{'metadata':{'name':'s'},'spec':{'ports':[{'port':80}]}}");
    sim_writes_done(s);
    sim_until(s, stays_away, "a Service on the host");
    assert_int_equal(fake_host_asked(s->host, "GET", "networkpolicies", false), 0);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_a_backup_is_restored),
        cmocka_unit_test(test_a_host_that_was_restored),
        cmocka_unit_test(test_a_policy_is_narrowed_with_the_list),
        cmocka_unit_test(test_a_host_without_the_kind_says_so),
        cmocka_unit_test(test_marked_data_goes_down),
        cmocka_unit_test(test_all_data_goes_down),
        cmocka_unit_test(test_what_is_not_used_is_not_watched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
