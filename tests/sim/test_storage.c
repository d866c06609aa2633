/* SPDX-License-Identifier: Apache-2.0 */
/* StorageClasses of the tenant, which have no namespace on the host, and the claims that name them.
 * Whatever happens: each class is on the host once, and no other tenant's is changed. */
#include "worlds.h"

#include "engine.h"

#define CLASSES "storageclasses.storage.k8s.io"
#define PLURAL  "storageclasses"
#define CONFIG                                                                                     \
    "sync: {toHost: {storageClasses: {enabled: true, provisioners: {csi.example: {parameters: "    \
    "{type: [fast, slow]}}}}}}\n"
#define N 8

static void create(struct sim *s, const char *name, const char *provisioner)
{
    sim_create(s, CLASSES, "",
               arena_printf(s->arena,
                            "{'metadata':{'name':'%s'},'provisioner':'%s','parameters':{'type':"
                            "'fast'}}",
                            name, provisioner)
                   .p);
}

static const char *name_of(struct sim *s, unsigned i)
{
    return arena_printf(s->arena, "c%u", i).p;
}

static struct str host_name(struct sim *s, struct str name)
{
    char text[64];

    translate_name(&s->syncer->tenant, STR(""), name, text);
    return arena_str(s->arena, str_c(text));
}

static const cJSON *on_host(struct sim *s, struct arena *a, struct str name)
{
    json_each(o, fake_host_list(s->host, a, PLURAL))
    {
        if (str_eq(json_str_at(o, "metadata.name"), name))
            return o;
    }
    return NULL;
}

/* Each of the tenant's is there under its uid; of others there are `more`. */
static bool is_alike(struct sim *s, size_t more)
{
    struct arena *a = arena_new(0);
    const cJSON *mine = sim_list(s, a, CLASSES, "");
    size_t down = 0;
    bool alike = true;

    json_each(v, mine)
    {
        const cJSON *o;

        if (!str_eqc(json_str(json_get(v, "provisioner")), "csi.example"))
            continue;
        o = on_host(s, a, host_name(s, json_str_at(v, "metadata.name")));
        down++;
        alike &=
            o && str_eq(json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/uid")),
                        json_str_at(v, "metadata.uid"));
    }
    alike &= fake_host_count(s->host, PLURAL) == down + more;
    arena_free(a);
    return alike;
}

static bool only_mine(struct sim *s)
{
    return is_alike(s, 0);
}

static bool with_one_more(struct sim *s)
{
    return is_alike(s, 1);
}

static void on_a_bad_host(uint64_t seed)
{
    struct sim *s = sim_new(seed, CONFIG);

    sim_spoil_host(s);
    create(s, "own", "own.example");
    for (unsigned i = 0; i < N; i++)
        create(s, name_of(s, i), "csi.example");
    sim_writes_done(s);
    sim_run_ms(s, 300);
    for (unsigned i = 0; i < N; i += 2)
        sim_delete(s, CLASSES, "", name_of(s, i), 0);
    sim_writes_done(s);
    sim_close(s);
    sim_open(s);
    for (unsigned i = 0; i < N; i += 4)
        create(s, name_of(s, i), "csi.example"); /* again, under another uid */
    sim_writes_done(s);
    sim_run_ms(s, 300);
    sim_mend_host(s);
    sim_until(s, only_mine, "the host as the tenant has it");
    assert_int_equal(fake_host_trespasses(s->host), 0);
    sim_free(s);
}

static void test_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        on_a_bad_host(seed);
}

static void create_claim(struct sim *s, const char *class)
{
    sim_create(s, "persistentvolumeclaims", "default",
               arena_printf(s->arena,
                            "{'metadata':{'name':'data'},'spec':{'storageClassName':'%s',"
                            "'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':"
                            "'1Gi'}}}}",
                            class)
                   .p);
}

static const cJSON *claim_on_host(struct sim *s)
{
    return json_first(fake_host_list(s->host, s->arena, "persistentvolumeclaims"));
}

static bool has_claim(struct sim *s)
{
    return claim_on_host(s) != NULL;
}

static void test_a_claim_has_its_name_on_the_host(void **state)
{
    struct sim *s = sim_new(41, CONFIG);

    (void)state;
    create(s, "fast", "csi.example");
    sim_writes_done(s);
    sim_until(s, only_mine, "the class on the host");
    create_claim(s, "fast");
    sim_writes_done(s);
    sim_until(s, has_claim, "the claim on the host");
    assert_true(
        str_eq(json_str_at(claim_on_host(s), "spec.storageClassName"), host_name(s, STR("fast"))));
    sim_run_ms(s, 500);
    assert_true(
        str_eqc(json_str_at(sim_get(s, s->arena, "persistentvolumeclaims", "default", "data"),
                            "spec.storageClassName"),
                "fast"));
    sim_free(s);
}

static bool has_mine(struct sim *s)
{
    return on_host(s, s->arena, host_name(s, STR("mine"))) != NULL;
}

/* The host's: a watch by our label does not show it. */
static void test_a_class_that_is_not_ours(void **state)
{
    struct sim *s = sim_new(42, CONFIG);
    struct str taken = host_name(s, STR("taken"));

    (void)state;
    fake_host_put(
        s->host, PLURAL,
        arena_printf(s->arena,
                     "{\"metadata\":{\"name\":\"%.*s\",\"annotations\":{\"sublet.dev/name\":"
                     "\"taken\",\"sublet.dev/uid\":\"u\"}},\"provisioner\":\"csi.example\"}",
                     STR_F(taken))
            .p);
    create(s, "taken", "csi.example");
    create(s, "mine", "csi.example");
    sim_writes_done(s);
    sim_until(s, has_mine, "the other class on the host");
    sim_run_ms(s, 1000);
    assert_int_equal(fake_host_count(s->host, PLURAL), 1); /* with a label of ours */
    sim_delete(s, CLASSES, "", "taken", 0);
    sim_writes_done(s);
    sim_jump(s, 80);
    sim_until(s, only_mine, "the tenant's own alone");
    assert_int_equal(fake_host_asked(s->host, "DELETE", PLURAL, false), 0);
    assert_int_equal(fake_host_asked(s->host, "PATCH", PLURAL, false), 0);
    assert_non_null(on_host(s, s->arena, taken));
    sim_free(s);
}

static void test_a_backup_is_restored(void **state)
{
    struct sim *s = sim_new(43, CONFIG);

    (void)state;
    create(s, "old", "csi.example");
    sim_writes_done(s);
    sim_until(s, only_mine, "it on the host");
    sim_backup(s, "backup");
    create(s, "newer", "csi.example");
    sim_writes_done(s);
    sim_until(s, only_mine, "both on the host");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_until(s, with_one_more, "the newer one to be kept");
    sim_run_ms(s, 1000);
    assert_true(with_one_more(s));
    assert_int_equal(fake_host_asked(s->host, "DELETE", PLURAL, false), 0);
    sim_free(s);
}

/* --- the host's own default class, of a listed provisioner --- */

static bool shows_standard(struct sim *s)
{
    return sim_get(s, s->arena, CLASSES, "", "standard") != NULL;
}

/* After a restart, what the host offers is not known until its classes are listed. */
static void test_the_default_class_of_the_host(void **state)
{
    struct sim *s = sim_new(44, CONFIG);

    (void)state;
    fake_host_put(s->host, PLURAL,
                  "{\"metadata\":{\"name\":\"standard\",\"annotations\":{"
                  "\"storageclass.kubernetes.io/is-default-class\":\"true\"}},"
                  "\"provisioner\":\"csi.example\"}");
    create(s, "mine", "csi.example");
    sim_writes_done(s);
    sim_until(s, has_mine, "the tenant's class on the host");
    sim_until(s, shows_standard, "the class of the host");
    sim_close(s);
    fake_host_faults(s->host)->unlisted = PLURAL;
    sim_open(s);
    create_claim(s, "standard");
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_int_equal(fake_host_count(s->host, PLURAL), 1); /* with a label of ours */
    assert_false(has_claim(s));
    fake_host_faults(s->host)->unlisted = NULL;
    sim_until(s, has_claim, "the claim on the host");
    assert_true(str_eqc(json_str_at(claim_on_host(s), "spec.storageClassName"), "standard"));
    sim_run_ms(s, 500);
    assert_int_equal(fake_host_asked(s->host, "POST", PLURAL, false), 1);
    sim_free(s);
}

/* A claim keeps the name of its class for ever: it must not have that of another's. */
static void test_a_claim_waits_for_its_class(void **state)
{
    struct sim *s = sim_new(45, CONFIG);
    struct str taken = host_name(s, STR("taken"));

    (void)state;
    fake_host_put(s->host, PLURAL,
                  arena_printf(s->arena,
                               "{\"metadata\":{\"name\":\"%.*s\"},\"provisioner\":"
                               "\"csi.example\",\"parameters\":{\"pool\":\"of the admin\"}}",
                               STR_F(taken))
                      .p);
    create(s, "taken", "csi.example");
    create(s, "mine", "csi.example");
    sim_writes_done(s);
    sim_until(s, has_mine, "the other class on the host");
    create_claim(s, "taken");
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_false(has_claim(s));
    assert_true(fake_host_remove(s->host, PLURAL, taken.p));
    sim_jump(s, 80);
    sim_until(s, has_claim, "the claim on the host");
    assert_true(only_mine(s));
    assert_true(str_eq(json_str_at(claim_on_host(s), "spec.storageClassName"), taken));
    sim_free(s);
}

/* The class and its claim at once, on a host that refuses the class for a while. */
static void test_a_claim_follows_its_class(void **state)
{
    struct sim *s = sim_new(46, CONFIG);

    (void)state;
    fake_host_deny(s->host, "create " PLURAL, true);
    create(s, "mine", "csi.example");
    sim_writes_done(s);
    create_claim(s, "mine");
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_false(has_claim(s));
    fake_host_deny(s->host, "create " PLURAL, false);
    sim_until(s, has_mine, "the class on the host");
    sim_until(s, has_claim, "the claim on the host");
    assert_true(
        str_eq(json_str_at(claim_on_host(s), "spec.storageClassName"), host_name(s, STR("mine"))));
    sim_free(s);
}

static bool has_two(struct sim *s)
{
    return fake_host_count(s->host, PLURAL) == 2;
}

/* All at once: none is on record yet when the others are judged. */
static void test_the_number_is_bounded(void **state)
{
    struct sim *s = sim_new(47, "sync: {toHost: {storageClasses: {enabled: true, max: 2, "
                                "provisioners: {csi.example: {parameters: {type: [fast]}}}}}}\n");
    unsigned there = 0;

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        create(s, name_of(s, i), "csi.example");
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_true(has_two(s));
    s->refusal[0] = 0;
    create(s, "late", "csi.example");
    create(s, "own", "own.example");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "exceeded quota: sync.toHost.storageClasses.max"));
    assert_null(sim_get(s, s->arena, CLASSES, "", "late"));
    assert_non_null(sim_get(s, s->arena, CLASSES, "", "own"));

    while (!on_host(s, s->arena, host_name(s, str_c(name_of(s, there)))))
        there++;
    sim_delete(s, CLASSES, "", name_of(s, there), 0);
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    sim_until(s, has_two, "another in the place of the one that left");
    assert_int_equal(fake_host_asked(s->host, "POST", PLURAL, false), 3);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_a_claim_has_its_name_on_the_host),
        cmocka_unit_test(test_a_class_that_is_not_ours),
        cmocka_unit_test(test_a_backup_is_restored),
        cmocka_unit_test(test_the_default_class_of_the_host),
        cmocka_unit_test(test_a_claim_waits_for_its_class),
        cmocka_unit_test(test_a_claim_follows_its_class),
        cmocka_unit_test(test_the_number_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
