/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes of the tenant, which have no namespace on the host, and the claims that name
 * them. Whatever happens: each is on the host once, one handle serves one volume, and none is
 * deleted that the tenant did not delete. */
#include "worlds.h"

#include "engine.h"

#define PLURAL "persistentvolumes"
#define CLAIMS "persistentvolumeclaims"
#define CONFIG                                                                                     \
    "sync: {toHost: {persistentVolumes: {enabled: true, drivers: {csi.example: {volumeHandles: "   \
    "['fs-*']}}}}}\n"
#define N 8

static const char *name_of(struct sim *s, unsigned i)
{
    return arena_printf(s->arena, "v%u", i).p;
}

/* more: members of spec, from "," on. */
static void create(struct sim *s, const char *name, const char *more)
{
    sim_create(s, PLURAL, "",
               arena_printf(s->arena,
                            "{'metadata':{'name':'%s'},'spec':{'csi':{'driver':'csi.example',"
                            "'volumeHandle':'fs-%s'},'capacity':{'storage':'1Gi'},'accessModes':["
                            "'ReadWriteOnce'],'storageClassName':''%s}}",
                            name, name, more)
                   .p);
}

static void create_claim(struct sim *s, const char *name, const char *volume)
{
    sim_create(s, CLAIMS, "default",
               arena_printf(s->arena,
                            "{'metadata':{'name':'%s'},'spec':{'storageClassName':'',"
                            "'volumeName':'%s','accessModes':['ReadWriteOnce'],'resources':{"
                            "'requests':{'storage':'1Gi'}}}}",
                            name, volume)
                   .p);
}

#define FOR(claim) ",'claimRef':{'namespace':'default','name':'" claim "'}"

static const char *host_name(struct sim *s, const char *ns, const char *name)
{
    char text[64];

    translate_name(&s->syncer->tenant, str_c(ns), str_c(name), text);
    return arena_str(s->arena, str_c(text)).p;
}

static const cJSON *on_host(struct sim *s, const char *plural, const char *name)
{
    json_each(o, fake_host_list(s->host, s->arena, plural))
    {
        if (str_eqc(json_str_at(o, "metadata.name"), name))
            return o;
    }
    return NULL;
}

static const cJSON *volume_on_host(struct sim *s, const char *name)
{
    return on_host(s, PLURAL, host_name(s, "", name));
}

static const cJSON *claim_on_host(struct sim *s, const char *name)
{
    return on_host(s, CLAIMS, host_name(s, "default", name));
}

static struct str of_tenant(struct sim *s, const char *name, const char *path)
{
    return json_str_at(sim_get(s, s->arena, PLURAL, "", name), path);
}

/* Each of the tenant's is there under its uid, and no other. */
static bool only_mine(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *mine = sim_list(s, a, PLURAL, "");
    bool alike = fake_host_count(s->host, PLURAL) == json_count(mine);

    json_each(v, mine)
    {
        const cJSON *o = volume_on_host(s, arena_cstr(a, json_str_at(v, "metadata.name")));

        alike &=
            o && str_eq(json_str(json_get(json_path(o, "metadata.annotations"), "sublet.dev/uid")),
                        json_str_at(v, "metadata.uid"));
    }
    arena_free(a);
    return alike;
}

static void on_a_bad_host(uint64_t seed)
{
    struct sim *s = sim_new(seed, CONFIG);

    sim_spoil_host(s);
    for (unsigned i = 0; i < N; i++)
        create(s, name_of(s, i), FOR("c"));
    sim_writes_done(s);
    sim_run_ms(s, 300);
    for (unsigned i = 0; i < N; i += 2)
        sim_delete(s, PLURAL, "", name_of(s, i), 0);
    sim_writes_done(s);
    sim_close(s);
    sim_open(s);
    for (unsigned i = 0; i < N; i += 4)
        create(s, name_of(s, i), FOR("c")); /* again, under another uid */
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

/* --- a volume, its claim, and the claim after that --- */

static bool has_claim(struct sim *s)
{
    return claim_on_host(s, "data");
}

static bool is_bound(struct sim *s)
{
    return str_eqc(of_tenant(s, "v", "status.phase"), "Bound") &&
           str_eqc(json_str_at(sim_get(s, s->arena, CLAIMS, "default", "data"), "status.phase"),
                   "Bound");
}

static bool is_released(struct sim *s)
{
    return !claim_on_host(s, "data") && str_eqc(of_tenant(s, "v", "status.phase"), "Released");
}

static bool is_available(struct sim *s)
{
    return str_eqc(of_tenant(s, "v", "status.phase"), "Available");
}

static bool has_next(struct sim *s)
{
    return claim_on_host(s, "next");
}

/* What the host's binder does. */
static void host_binds(struct sim *s, const char *volume, const char *claim)
{
    const char *on = host_name(s, "", volume), *of = host_name(s, "default", claim);

    fake_host_patch(s->host, PLURAL, on,
                    arena_printf(s->arena,
                                 "{\"spec\":{\"claimRef\":{\"uid\":\"%.*s\",\"resourceVersion\":"
                                 "\"1\"}},\"status\":{\"phase\":\"Bound\"}}",
                                 STR_F(json_str_at(claim_on_host(s, claim), "metadata.uid")))
                        .p);
    fake_host_patch(s->host, CLAIMS, of,
                    "{\"status\":{\"phase\":\"Bound\",\"capacity\":{\"storage\":\"1Gi\"}}}");
}

static void test_a_claim_names_it(void **state)
{
    struct sim *s = sim_new(61, CONFIG);
    const cJSON *claim, *volume;

    (void)state;
    create(s, "v", "");
    sim_writes_done(s);
    sim_until(s, is_available, "the volume to be available");
    assert_int_equal(fake_host_count(s->host, PLURAL), 0); /* any claim could bind it */
    create_claim(s, "data", "v");
    sim_writes_done(s);
    sim_until(s, has_claim, "the claim on the host");
    claim = claim_on_host(s, "data");
    assert_string_equal(json_str_at(claim, "spec.volumeName").p, host_name(s, "", "v"));
    assert_true(str_eqc(json_str_at(claim, "spec.storageClassName"), ""));
    volume = volume_on_host(s, "v");
    assert_string_equal(json_str_at(volume, "spec.claimRef.name").p,
                        host_name(s, "default", "data"));
    host_binds(s, "v", "data");
    sim_until(s, is_bound, "both to be bound");
    claim = sim_get(s, s->arena, CLAIMS, "default", "data");
    assert_true(str_eqc(json_str_at(claim, "spec.volumeName"), "v"));
    assert_true(str_eq(of_tenant(s, "v", "spec.claimRef.uid"), json_str_at(claim, "metadata.uid")));
    assert_int_equal(json_count(sim_list(s, s->arena, PLURAL, "")), 1); /* no other shows it */

    /* A change keeps it bound. */
    sim_patch(s, PLURAL, "", "v", "{'spec':{'capacity':{'storage':'2Gi'}}}");
    sim_writes_done(s);
    sim_run_ms(s, 1000);
    volume = volume_on_host(s, "v");
    assert_true(str_eqc(json_str_at(volume, "spec.capacity.storage"), "2Gi"));
    assert_true(json_str_at(volume, "spec.claimRef.uid").n);

    /* A volume of a deleted claim belongs to no other claim, until the tenant says so. */
    sim_delete(s, CLAIMS, "default", "data", 0);
    sim_writes_done(s);
    fake_host_patch(s->host, PLURAL, host_name(s, "", "v"),
                    "{\"status\":{\"phase\":\"Released\"}}");
    sim_until(s, is_released, "the volume to be released");
    create_claim(s, "next", "v");
    sim_writes_done(s);
    sim_run_ms(s, 1000);
    assert_false(has_next(s));
    sim_patch(s, PLURAL, "", "v", "{'spec':{'claimRef':null}}");
    sim_writes_done(s);
    sim_until(s, has_next, "the next claim on the host");
    volume = volume_on_host(s, "v");
    assert_string_equal(json_str_at(volume, "spec.claimRef.name").p,
                        host_name(s, "default", "next"));
    assert_false(json_str_at(volume, "spec.claimRef.uid").n);
    assert_int_equal(fake_host_asked(s->host, "DELETE", PLURAL, false), 0);
    assert_int_equal(fake_host_asked(s->host, "POST", PLURAL, false), 1);
    sim_free(s);
}

static bool has_volume(struct sim *s)
{
    return volume_on_host(s, "v");
}

/* In a restart between the two. */
static void test_a_claim_follows_its_volume(void **state)
{
    struct sim *s = sim_new(62, CONFIG);

    (void)state;
    fake_host_deny(s->host, "create " PLURAL, true);
    create(s, "v", FOR("data"));
    sim_writes_done(s);
    create_claim(s, "data", "v");
    create_claim(s, "other", "v");
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_false(has_claim(s));
    sim_close(s);
    fake_host_deny(s->host, "create " PLURAL, false);
    sim_open(s);
    sim_until(s, has_volume, "the volume on the host");
    sim_until(s, has_claim, "the claim on the host");
    sim_run_ms(s, 1000);
    assert_null(claim_on_host(s, "other"));
    assert_int_equal(fake_host_asked(s->host, "POST", CLAIMS, false), 1);

    /* Deleted on the host: created again. */
    assert_true(fake_host_remove(s->host, PLURAL, host_name(s, "", "v")));
    sim_until(s, has_volume, "the volume again on the host");
    sim_free(s);
}

/* The volumes are listed before the claims are. */
static void test_claims_are_listed_late(void **state)
{
    struct sim *s = sim_new(69, CONFIG);

    (void)state;
    fake_host_deny(s->host, "list " CLAIMS, true);
    create(s, "v", FOR("data"));
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_false(has_volume(s));
    fake_host_deny(s->host, "list " CLAIMS, false);
    sim_run_ms(s, 310 * 1000); /* a watch that was refused */
    sim_until(s, has_volume, "the volume on the host");
    sim_free(s);
}

/* --- one handle, one volume --- */

static void put_other(struct sim *s, const char *name, const char *labels)
{
    fake_host_put(s->host, PLURAL,
                  arena_printf(s->arena,
                               "{\"metadata\":{\"name\":\"%s\",\"labels\":{%s}},\"spec\":{"
                               "\"csi\":{\"driver\":\"csi.example\",\"volumeHandle\":\"fs-v\"}}}",
                               name, labels)
                      .p);
}

static void test_a_handle_in_use(void **state)
{
    struct sim *s = sim_new(63, CONFIG);

    (void)state;
    put_other(s, "of-the-admin", "");
    create(s, "v", FOR("data"));
    create(s, "w", FOR("c"));
    sim_writes_done(s);
    create_claim(s, "data", "v");
    sim_writes_done(s);
    sim_run_ms(s, 3000);
    assert_null(volume_on_host(s, "v"));
    assert_non_null(volume_on_host(s, "w"));
    assert_false(has_claim(s));
    assert_true(fake_host_remove(s->host, PLURAL, "of-the-admin"));
    sim_jump(s, 80);
    sim_until(s, has_volume, "the volume on the host");
    sim_until(s, has_claim, "the claim on the host");
    sim_free(s);
}

/* Two that were created at once: neither list had the other. */
static void after_the_volume(const char *labels, bool first)
{
    struct sim *s = sim_new(64, CONFIG);

    create(s, "v", FOR("data"));
    sim_writes_done(s);
    sim_until(s, has_volume, "the volume on the host");
    put_other(s, "twin", labels);
    create_claim(s, "data", "v");
    sim_writes_done(s);
    sim_run_ms(s, 3000);
    assert_int_equal(has_claim(s), first);
    assert_int_equal(fake_host_asked(s->host, "DELETE", PLURAL, false), 0);
    sim_free(s);
}

static void test_twins(void **state)
{
    (void)state;
    after_the_volume("\"sublet.dev/cluster\":\"another\"", true);
    after_the_volume("", false);
}

/* --- of others, of another life --- */

static bool has_other(struct sim *s)
{
    return volume_on_host(s, "w");
}

static void test_a_name_that_is_taken(void **state)
{
    struct sim *s = sim_new(65, CONFIG);
    const char *taken = host_name(s, "", "v");

    (void)state;
    fake_host_put(s->host, PLURAL,
                  arena_printf(s->arena,
                               "{\"metadata\":{\"name\":\"%s\",\"annotations\":{\"sublet.dev/"
                               "name\":\"v\",\"sublet.dev/uid\":\"u\"}},\"spec\":{\"csi\":{"
                               "\"driver\":\"csi.example\",\"volumeHandle\":\"of-others\"}}}",
                               taken)
                      .p);
    create(s, "v", FOR("data"));
    create(s, "w", FOR("c"));
    sim_writes_done(s);
    create_claim(s, "data", "v");
    sim_writes_done(s);
    sim_until(s, has_other, "the other volume on the host");
    sim_run_ms(s, 1000);
    assert_false(has_claim(s));
    sim_delete(s, PLURAL, "", "v", 0);
    sim_writes_done(s);
    sim_jump(s, 80);
    assert_int_equal(fake_host_asked(s->host, "DELETE", PLURAL, false), 0);
    assert_int_equal(fake_host_asked(s->host, "PATCH", PLURAL, false), 0);
    assert_non_null(on_host(s, PLURAL, taken));
    sim_free(s);
}

static bool has_both(struct sim *s)
{
    return volume_on_host(s, "v") && volume_on_host(s, "w");
}

static void test_a_backup_is_restored(void **state)
{
    struct sim *s = sim_new(66, CONFIG);

    (void)state;
    create(s, "v", FOR("data"));
    sim_writes_done(s);
    sim_until(s, has_volume, "it on the host");
    sim_backup(s, "backup");
    create(s, "w", FOR("c"));
    sim_writes_done(s);
    sim_until(s, has_both, "both on the host");
    sim_stop_and_restore(s, "backup");
    sim_open(s);
    sim_run_ms(s, 2000);
    assert_true(has_both(s));
    /* Another volume of that name is not the one there: neither is changed into the other. */
    sim_create(
        s, PLURAL, "",
        "{'metadata':{'name':'w'},'spec':{'csi':{'driver':'csi.example','volumeHandle':"
        "'fs-x'},'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce']" FOR("c") "}}");
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_string_equal(json_str_at(volume_on_host(s, "w"), "spec.csi.volumeHandle").p, "fs-w");
    assert_int_equal(fake_host_asked(s->host, "DELETE", PLURAL, false), 0);
    sim_free(s);
}

/* --- what is refused --- */

static bool has_two(struct sim *s)
{
    return fake_host_count(s->host, PLURAL) == 2;
}

static void test_the_number_is_bounded(void **state)
{
    struct sim *s = sim_new(67, "sync: {toHost: {persistentVolumes: {enabled: true, max: 2, "
                                "drivers: {csi.example: {volumeHandles: ['fs-*']}}}}}\n");

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        create(s, name_of(s, i), FOR("c"));
    sim_writes_done(s);
    sim_run_ms(s, 2000);
    assert_true(has_two(s));
    s->refusal[0] = 0;
    create(s, "late", FOR("c"));
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "exceeded quota: sync.toHost.persistentVolumes.max"));
    assert_null(sim_get(s, s->arena, PLURAL, "", "late"));
    sim_free(s);
}

/* The volume of a claim that the host binds by itself is shown by one of this process. */
static void test_refused(void **state)
{
    struct sim *s = sim_new(68, CONFIG);

    (void)state;
    sim_create(s, PLURAL, "",
               "{'metadata':{'name':'h'},'spec':{'hostPath':{'path':'/'},'capacity':{'storage':"
               "'1Gi'},'accessModes':['ReadWriteOnce']}}");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "spec.hostPath: only volumes of the CSI drivers"));
    create_claim(s, "data", "none");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "spec.volumeName: names no PersistentVolume"));
    create(s, "v", ",'persistentVolumeReclaimPolicy':'Delete'");
    sim_writes_done(s);
    assert_non_null(strstr(s->refusal, "spec.persistentVolumeReclaimPolicy: can only be Retain"));
    assert_int_equal(json_count(sim_list(s, s->arena, PLURAL, "")), 0);
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_a_claim_names_it),
        cmocka_unit_test(test_a_claim_follows_its_volume),
        cmocka_unit_test(test_claims_are_listed_late),
        cmocka_unit_test(test_a_handle_in_use),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_a_name_that_is_taken),
        cmocka_unit_test(test_a_backup_is_restored),
        cmocka_unit_test(test_the_number_is_bounded),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
