/* SPDX-License-Identifier: Apache-2.0 */
/* Services under names that the admin chose: whose the Service of such a name is has to be proven
 * before it is written to or deleted, whatever is lost on the way. */
#include "sim.h"

#include "engine.h"
#include "objects/aliases.h"
#include "../quoted.h"

#include <sublet/config_sync.h>

#define SHOP "sync: {toHost: {services: {mappings: {byName: {default/a: shop}}}}}\n"
#define A    "{'metadata':{'name':'a'},'spec':{'selector':{'app':'a'},'ports':[{'port':80}]}}"
#define B    "{'metadata':{'name':'b'},'spec':{'selector':{'app':'b'},'ports':[{'port':80}]}}"
#define HEADLESS_A                                                                                 \
    "{'metadata':{'name':'a'},"                                                                    \
    "'spec':{'clusterIP':'None','selector':{'app':'a'},'ports':[{'port':80}]}}"
#define OTHER "{'metadata':{'name':'%s'},'spec':{'ports':[{'port':9}]}}"

static cJSON *host_service(struct sim *s, struct arena *a, const char *name)
{
    json_each(o, fake_host_list(s->host, a, "services"))
    {
        if (str_eqc(json_str_at(o, "metadata.name"), name))
            return o;
    }
    return NULL;
}

static struct str host_uid(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    struct str uid = arena_str(s->arena, json_str_at(host_service(s, a, name), "metadata.uid"));

    arena_free(a);
    return uid;
}

static bool has_shop(struct sim *s)
{
    return host_uid(s, "shop").n > 0;
}

static bool has_no_shop(struct sim *s)
{
    return !host_uid(s, "shop").n;
}

static bool has_store(struct sim *s)
{
    return host_uid(s, "store").n > 0;
}

static bool is_moved(struct sim *s)
{
    return has_store(s) && has_no_shop(s);
}

static bool nothing_is_left(struct sim *s)
{
    return !fake_host_count(s->host, "services");
}

static bool sells_at(struct sim *s, int64_t port)
{
    struct arena *a = arena_new(0);
    const cJSON *ports = json_path(host_service(s, a, "shop"), "spec.ports");
    bool does = json_count(ports) == 1 && json_i64_at(json_first(ports), "port", 0) == port;

    arena_free(a);
    return does;
}

static bool sells_at_81(struct sim *s)
{
    return sells_at(s, 81);
}

static bool name_is_taken(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool said = false;

    json_each(event, sim_list(s, a, "events", "")) said |=
        str_contains(json_str_at(event, "message"), STR("its further name on the host cluster"));
    arena_free(a);
    return said;
}

/* Another client of the host makes it: JSON with ' for ". */
static struct str put(struct sim *s, const char *name, const char *json)
{
    struct arena *a = arena_new(0);

    fake_host_put(s->host, "services", quoted(a, str_c(json)));
    arena_free(a);
    return host_uid(s, name);
}

static struct str put_other(struct sim *s, const char *name)
{
    char text[128];

    snprintf(text, sizeof(text), OTHER, name);
    return put(s, name, text);
}

static void create_a(struct sim *s)
{
    sim_create(s, "services", "default", A);
    sim_writes_done(s);
    assert_int_equal(s->refusal[0], 0);
}

static void delete_a(struct sim *s)
{
    sim_delete(s, "services", "default", "a", -1);
    sim_writes_done(s);
}

/* Between sim_close() and sim_open(): as an admin edits the file. */
static void map_service_to(struct sim *s, const char *service, const char *host_name)
{
    struct config_to_host *to = ARENA_NEW(s->arena, struct config_to_host);
    struct config_service_alias *alias = ARENA_NEW(s->arena, struct config_service_alias);

    *to = *s->config.to_host;
    *alias = (struct config_service_alias){STR("default"), str_c(service),
                                           str_c(host_name ? host_name : "")};
    to->aliases = alias;
    to->n_aliases = host_name ? 1 : 0;
    s->config.to_host = to;
}

static void map_to(struct sim *s, const char *host_name)
{
    map_service_to(s, "a", host_name);
}

static void test_it_follows_its_service(void **state)
{
    struct sim *s = sim_new(1, SHOP);
    struct arena *a = arena_new(0);
    const cJSON *shop;
    struct str uid;

    (void)state;
    create_a(s);
    sim_until(s, has_shop, "the second name");
    assert_int_equal(fake_host_count(s->host, "services"), 2);
    shop = host_service(s, a, "shop");
    assert_int_equal(json_count(json_path(shop, "spec.selector")), 3);
    assert_true(json_get(json_path(shop, "spec.selector"), LABEL_CLUSTER));
    uid = host_uid(s, "shop");

    sim_patch(s, "services", "default", "a",
              "{'spec':{'type':'NodePort','ports':[{'port':81}],'externalTrafficPolicy':'Local'}}");
    sim_writes_done(s);
    sim_until(s, sells_at_81, "the change");
    shop = host_service(s, a, "shop");
    assert_true(str_eqc(json_str_at(shop, "spec.type"), "ClusterIP"));
    assert_true(str_eq(host_uid(s, "shop"), uid));
    /* Changed or removed there, it is put right; a Service without a selector leads nowhere. */
    fake_host_patch(s->host, "services", "shop", "{\"spec\":{\"ports\":[{\"port\":7}]}}");
    sim_until(s, sells_at_81, "the repair");
    assert_true(fake_host_remove(s->host, "services", "shop"));
    sim_until(s, has_shop, "it again");
    sim_patch(s, "services", "default", "a", "{'spec':{'selector':null}}");
    sim_writes_done(s);
    sim_until(s, has_no_shop, "it to leave");
    sim_patch(s, "services", "default", "a", "{'spec':{'selector':{'app':'b'}}}");
    sim_writes_done(s);
    sim_until(s, has_shop, "it once more");
    delete_a(s);
    sim_until(s, nothing_is_left, "both to leave");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    arena_free(a);
    sim_free(s);
}

/* The answer to the create is lost, and the process dies: the record proves whose it is. */
static void test_a_crash_with_the_answer_lost(void **state)
{
    (void)state;
    for (int deleted = 0; deleted < 2; deleted++) {
        struct sim *s = sim_new(2, SHOP);
        struct str uid;

        create_a(s);
        fake_host_faults(s->host)->lose = 1000;
        sim_until(s, has_shop, "a create without an answer");
        uid = host_uid(s, "shop");
        sim_close(s);
        fake_host_faults(s->host)->lose = 0;
        sim_open(s);
        if (deleted) {
            delete_a(s);
            sim_until(s, nothing_is_left, "both to leave");
        } else {
            sim_run_ms(s, 200000);
            assert_true(str_eq(host_uid(s, "shop"), uid));
            assert_int_equal(fake_host_count(s->host, "services"), 2);
        }
        assert_int_equal(fake_host_trespasses(s->host), 0);
        sim_free(s);
    }
}

static void test_anothers_service_is_left_alone(void **state)
{
    struct sim *s = sim_new(3, SHOP);
    struct str uid = put_other(s, "shop");

    (void)state;
    create_a(s);
    sim_until(s, name_is_taken, "the warning");
    sim_close(s);
    sim_open(s);
    sim_run_ms(s, 200000);
    assert_true(str_eq(host_uid(s, "shop"), uid));
    delete_a(s);
    sim_run_ms(s, 200000);
    assert_true(str_eq(host_uid(s, "shop"), uid));
    create_a(s);
    assert_true(fake_host_remove(s->host, "services", "shop"));
    sim_until(s, has_shop, "the name once it is free");
    assert_false(str_eq(host_uid(s, "shop"), uid));
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

/* The mapping gives another name: the record of the former one deletes what it proves, also
 * after a crash in between. */
static void test_another_name(void **state)
{
    struct sim *s = sim_new(4, SHOP);

    (void)state;
    create_a(s);
    sim_until(s, has_shop, "the first name");
    sim_close(s);
    map_to(s, "store");
    fake_host_faults(s->host)->fail = 1000;
    sim_open(s);
    sim_run_ms(s, 3000);
    sim_close(s);
    fake_host_faults(s->host)->fail = 0;
    sim_open(s);
    sim_until(s, is_moved, "the other name");
    sim_close(s);
    map_to(s, NULL);
    sim_open(s);
    sim_run_ms(s, 5000);
    assert_false(has_store(s));
    assert_int_equal(fake_host_count(s->host, "services"), 1);
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

/* While nothing runs, another takes the former name: of the Service of the record only the name is
 * there. */
static void test_the_former_name_is_anothers(void **state)
{
    struct sim *s = sim_new(5, SHOP);
    struct str uid;

    (void)state;
    create_a(s);
    sim_until(s, has_shop, "the first name");
    sim_close(s);
    assert_true(fake_host_remove(s->host, "services", "shop"));
    uid = put_other(s, "shop");
    map_to(s, "store");
    sim_open(s);
    sim_until(s, has_store, "the other name");
    sim_run_ms(s, 200000);
    assert_true(str_eq(host_uid(s, "shop"), uid));
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

/* A copy carries all marks, and so may one under its very name, of a Service that the record does
 * not know. */
static void test_marks_alone_prove_nothing(void **state)
{
    static const char *const names[] = {"copy", "shop"};
    struct sim *s = sim_new(6, SHOP);
    struct str uids[2];
    char text[1024];

    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(
            text, sizeof(text),
            "{'metadata':{'name':'%s','namespace':'%.*s','labels':{'sublet.dev/cluster':'%.*s',"
            "'sublet.dev/namespace':'default'},'annotations':{'sublet.dev/name':'a',"
            "'sublet.dev/namespace':'default','sublet.dev/uid':'former',"
            "'sublet.dev/alias':'shop'}},'spec':{'ports':[{'port':9}]}}",
            names[i], STR_F(s->syncer->tenant.host_namespace),
            STR_F(s->syncer->tenant.cluster_uid));
        uids[i] = put(s, names[i], text);
    }
    create_a(s);
    sim_until(s, name_is_taken, "the warning");
    delete_a(s);
    sim_run_ms(s, 200000);
    for (int i = 0; i < 2; i++)
        assert_true(str_eq(host_uid(s, names[i]), uids[i]));
    sim_free(s);
}

/* Made after the backup, for a Service that the backup does not have. */
static void test_a_restore_deletes_nothing_that_is_newer(void **state)
{
    struct sim *s = sim_new(7, SHOP);
    struct str uid;

    (void)state;
    sim_run_ms(s, 1000);
    sim_backup(s, "backup");
    create_a(s);
    sim_until(s, has_shop, "the name");
    uid = host_uid(s, "shop");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_run_ms(s, 200000);
    assert_true(str_eq(host_uid(s, "shop"), uid));
    create_a(s);
    sim_until(s, name_is_taken, "the warning");
    assert_true(str_eq(host_uid(s, "shop"), uid));
    assert_true(fake_host_remove(s->host, "services", "shop"));
    sim_until(s, has_shop, "its own");
    sim_free(s);
}

static void test_a_restore_takes_what_is_its_own(void **state)
{
    struct sim *s = sim_new(8, SHOP);
    struct str uid;

    (void)state;
    create_a(s);
    sim_until(s, has_shop, "the name");
    uid = host_uid(s, "shop");
    sim_backup(s, "backup");
    delete_a(s);
    sim_until(s, nothing_is_left, "both to leave");
    create_a(s);
    sim_until(s, has_shop, "a successor");
    assert_false(str_eq(host_uid(s, "shop"), uid));
    sim_stop_and_restore(s, "backup");
    fake_host_remove(s->host, "services", "shop");
    sim_open(s);
    sim_until(s, has_shop, "what the backup has");
    sim_close(s);
    sim_open(s);
    delete_a(s);
    sim_until(s, has_no_shop, "it to leave");
    sim_free(s);
}

/* Does it stand for the Service of this name as it is now? */
static bool stands_for(struct sim *s, const char *name)
{
    struct arena *a = arena_new(0);
    const cJSON *virtual_ = sim_get(s, a, "services", "default", name);
    struct str uid = json_str_at(virtual_, "metadata.uid");
    const cJSON *notes = json_path(host_service(s, a, "shop"), "metadata.annotations");
    bool does = uid.n && str_eq(json_str(json_get(notes, "sublet.dev/uid")), uid);

    arena_free(a);
    return does;
}

static bool stands_for_a(struct sim *s)
{
    return stands_for(s, "a");
}

static bool stands_for_b(struct sim *s)
{
    return stands_for(s, "b");
}

/* The backup knows the host object as that of another Service, which is gone by now. */
static void test_a_restore_spares_what_became_anothers(void **state)
{
    struct sim *s = sim_new(9, SHOP);
    struct str uid;

    (void)state;
    create_a(s);
    sim_until(s, has_shop, "the name");
    uid = host_uid(s, "shop");
    sim_backup(s, "backup");
    sim_create(s, "services", "default", B);
    sim_writes_done(s);
    sim_close(s);
    map_service_to(s, "b", "shop");
    sim_open(s);
    sim_until(s, stands_for_b, "the name to be the other Service's");
    assert_true(str_eq(host_uid(s, "shop"), uid));
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_run_ms(s, 200000);
    assert_true(str_eq(host_uid(s, "shop"), uid));
    sim_free(s);
}

/* Of this very Service, which the backup has on its way out. */
static void test_a_record_of_another_life_deletes_nothing(void **state)
{
    struct sim *s = sim_new(11, SHOP);
    struct str uid;

    (void)state;
    create_a(s);
    sim_until(s, has_shop, "the name");
    uid = host_uid(s, "shop");
    sim_backup(s, "backup");
    sim_stop_and_restore(s, "backup");
    map_to(s, NULL);
    sim_open(s);
    sim_run_ms(s, 200000);
    assert_true(str_eq(host_uid(s, "shop"), uid));
    sim_close(s);
    map_to(s, "shop");
    sim_open(s);
    delete_a(s);
    sim_until(s, has_no_shop, "it to leave");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

/* As restore --plan sees it, which has no API. */
static enum sync_settlement planned(struct sim *s, bool metadata_alone)
{
    struct syncer plan = *s->syncer;
    struct arena *a = arena_new(0);
    enum sync_settlement settlement = SETTLE_NOTHING;
    cJSON *shop = host_service(s, a, "shop");
    struct str ns, name;

    plan.api = NULL;
    plan.life = 0;
    if (metadata_alone)
        json_remove(shop, "spec");
    assert_true(sync_alias_settle(&plan, a, STR("shop"), shop, &settlement, &ns, &name));
    arena_free(a);
    return settlement;
}

/* The create is executed, its answer is lost, and no watch has shown it when the Service has a
 * successor. */
static void test_a_successor_of_one_whose_answer_was_lost(void **state)
{
    struct sim *s = sim_new(10, SHOP);
    struct str uid;

    (void)state;
    sim_create(s, "services", "default", HEADLESS_A);
    sim_writes_done(s);
    fake_host_faults(s->host)->deaf = "services";
    fake_host_faults(s->host)->lose = 1000;
    sim_until(s, has_shop, "a create without an answer");
    fake_host_faults(s->host)->lose = 0;
    uid = host_uid(s, "shop");
    assert_int_equal(planned(s, false), SETTLE_KEEP);
    delete_a(s);
    sim_create(s, "services", "default", HEADLESS_A);
    sim_writes_done(s);
    assert_int_equal(s->refusal[0], 0);
    assert_false(stands_for_a(s));
    sim_run_ms(s, 5000);
    fake_host_faults(s->host)->deaf = NULL;
    fake_host_faults(s->host)->cut = 1000;
    sim_run_ms(s, 5000);
    fake_host_faults(s->host)->cut = 0;
    sim_until(s, stands_for_a, "the name to be the successor's");
    assert_true(str_eq(host_uid(s, "shop"), uid));
    delete_a(s);
    sim_until(s, nothing_is_left, "both to leave");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

/* As an earlier version, which did not check it, has stored it. */
static void store_external_ip(struct sim *s)
{
    unsigned storage = syncer_storage(s->syncer, SYNC_SERVICES);
    const struct store_object *o = store_latest(s->store, storage, STR("default"), STR("a"));
    struct arena *a = arena_new(0);
    cJSON *object = NULL, *ips = json_new_array(a);
    struct store_write w = {
        .op = STORE_UPDATE, .resource = storage, .ns = STR("default"), .name = STR("a")};
    struct err err;

    err_init(&err, a);
    assert_int_equal(json_parse(a, o->bytes, &object, NULL), 0);
    json_append(ips, json_new_string(a, STR("192.0.2.1")));
    json_set(a, json_get(object, "spec"), "externalIPs", ips);
    json_set_str(a, json_get(object, "metadata"), "resourceVersion",
                 arena_printf(a, "%lld", (long long)store_next_revision(s->store)));
    w.skip = o->skip;
    w.expected = o->revision;
    w.uid = o->uid;
    w.labels = o->labels;
    w.fields = o->fields;
    w.bytes = json_text(a, object);
    assert_int_equal(store_write(s->store, &w, &err), 0);
    arena_free(a);
}

static void test_what_is_refused_stays_as_it_is(void **state)
{
    struct sim *s = sim_new(13, SHOP);
    struct str uid;

    (void)state;
    create_a(s);
    sim_until(s, has_shop, "the name");
    uid = host_uid(s, "shop");
    store_external_ip(s);
    sim_run_ms(s, 20000);
    assert_true(str_eq(host_uid(s, "shop"), uid));
    sim_patch(s, "services", "default", "a", "{'spec':{'externalIPs':null,'ports':[{'port':81}]}}");
    sim_writes_done(s);
    sim_until(s, sells_at_81, "the change");
    assert_true(str_eq(host_uid(s, "shop"), uid));
    delete_a(s);
    sim_until(s, nothing_is_left, "both to leave");
    sim_free(s);
}

/* A plan may know the metadata alone. */
static void test_the_form_is_not_guessed(void **state)
{
    struct sim *s = sim_new(12, SHOP);
    struct arena *a = arena_new(0);

    (void)state;
    sim_create(s, "services", "default", HEADLESS_A);
    sim_writes_done(s);
    sim_until(s, has_shop, "the name");
    assert_true(str_eqc(json_str_at(host_service(s, a, "shop"), "spec.clusterIP"), "None"));
    assert_int_equal(planned(s, false), SETTLE_KEEP);
    assert_int_equal(planned(s, true), SETTLE_KEEP);
    arena_free(a);
    sim_free(s);
}

/* Requests fail in every way there is. */
static void test_a_storm(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 110; seed++) {
        struct sim *s = sim_new(seed, SHOP);

        sim_spoil_host(s);
        for (int i = 0; i < 4; i++) {
            sim_create(s, "services", "default", A);
            sim_writes_done(s);
            sim_run_ms(s, 500 + (unsigned)(fake_host_random(s->host) % 4000));
            if (i == 2) {
                sim_close(s);
                sim_open(s);
            }
            delete_a(s);
            sim_run_ms(s, (unsigned)(fake_host_random(s->host) % 4000));
        }
        sim_mend_host(s);
        sim_until(s, nothing_is_left, "all to leave");
        s->refusal[0] = 0;
        create_a(s);
        sim_until(s, has_shop, "the name");
        assert_int_equal(fake_host_trespasses(s->host), 0);
        sim_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_follows_its_service),
        cmocka_unit_test(test_a_crash_with_the_answer_lost),
        cmocka_unit_test(test_anothers_service_is_left_alone),
        cmocka_unit_test(test_another_name),
        cmocka_unit_test(test_the_former_name_is_anothers),
        cmocka_unit_test(test_marks_alone_prove_nothing),
        cmocka_unit_test(test_a_restore_deletes_nothing_that_is_newer),
        cmocka_unit_test(test_a_restore_takes_what_is_its_own),
        cmocka_unit_test(test_a_restore_spares_what_became_anothers),
        cmocka_unit_test(test_a_record_of_another_life_deletes_nothing),
        cmocka_unit_test(test_a_successor_of_one_whose_answer_was_lost),
        cmocka_unit_test(test_what_is_refused_stays_as_it_is),
        cmocka_unit_test(test_the_form_is_not_guessed),
        cmocka_unit_test(test_a_storm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
