/* SPDX-License-Identifier: Apache-2.0 */
/* Creates whose answer was lost: they may still be executed later, so their records prove the
 * object ours and keep its charge until that can no longer be. */
#include "worlds.h"

#include "core/mapping.h"
#include "engine.h"

static bool no_pods(struct sim *s)
{
    return sim_pod_is_gone(s) && !fake_host_count(s->host, "pods");
}

/* Two creates were sent, and one of them made the pod. When the pod has left, the other may still
 * be executed: its GPUs stay charged, and its record proves that it is to be deleted. */
static void test_second_create_comes_late(void **state)
{
    struct sim *s = sim_new_ready(5, POOLS);
    struct mapping m = {.exists = true, .tried = 1};
    struct arena *a = arena_new(0);
    struct str late;
    cJSON *pod;

    (void)state;
    sync_mapping_put(s->syncer, SYNC_PODS, STR("default"), STR("a"), &m);
    sim_create_pod(s, "a", GPU(4), "");
    sim_until(s, sim_pods_run, "the pod to run");
    m = sync_mapping_get(s->syncer, a, SYNC_PODS, STR("default"), STR("a"));
    assert_int_equal(m.tried, 1);
    pod = json_first(fake_host_list(s->host, a, "pods"));
    json_set_str(a, json_get(pod, "metadata"), "uid", STR("late"));
    late = json_text(a, pod);
    assert_true(fake_host_remove(s->host, "pods", NULL));
    sim_until(s, sim_pod_is_gone, "the virtual pod to follow");
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 1);
    fake_host_put(s->host, "pods", late.p);
    sim_until(s, no_pods, "the late pod to be deleted");
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 1);
    /* A clock that is set is no time that passes, during a restart neither. */
    sim_set_clock(s, 3 * 3600);
    sim_run_ms(s, 300);
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 1);
    sim_close(s);
    s->moment.jump_us += 3 * 3600 * INT64_C(1000000);
    sim_open(s);
    sim_run_ms(s, 1000);
    assert_int_equal(sim_records(s, RECORD_LEDGER, "gpu/"), 1);
    sim_jump(s, 80);
    sim_until(s, sim_nothing_recorded, "the sim_records to end");
    arena_free(a);
    sim_free(s);
}

static bool create_is_uncertain(struct sim *s)
{
    struct arena *a = arena_new(0);
    struct mapping m = sync_mapping_get(s->syncer, a, SYNC_PODS, STR("default"), STR("a"));

    arena_free(a);
    return m.tried > 0;
}

/* Its pod may leave before the Secret is seen: the record then still proves it ours. */
static void test_uncertain_token_secret_is_on_record(void **state)
{
    struct sim *s = sim_new_ready(7, POOLS);
    char name[64];

    (void)state;
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    translate_token_secret_name(&s->syncer->tenant, STR("default"), STR("a"), name);
    fake_host_faults(s->host)->lose = 1000;
    assert_true(fake_host_remove(s->host, "secrets", name));
    sim_until(s, create_is_uncertain, "the lost create to be on record");
    fake_host_faults(s->host)->lose = 0;
    sim_free(s);
}

/* A pod of the same name waits until that create can no longer be executed, and not longer. */
static void test_successor_of_an_uncertain_create_runs(void **state)
{
    struct sim *s = sim_new_ready(6, QUEUE);
    struct mapping m = {.exists = true, .tried = 1};

    (void)state;
    sync_mapping_put(s->syncer, SYNC_PODS, STR("default"), STR("a"), &m);
    sim_create_pod(s, "a", GPU(2), "");
    sim_until(s, sim_pods_run, "the pod to run");
    assert_true(fake_host_remove(s->host, "pods", NULL));
    sim_until(s, sim_pod_is_gone, "the virtual pod to follow");
    sim_create_pod(s, "a", GPU(2), "");
    sim_writes_done(s);
    sim_run_ms(s, 500);
    assert_int_equal(fake_host_count(s->host, "pods"), 0);
    sim_jump(s, 80);
    sim_until(s, sim_pods_run, "its successor to run");
    sim_free(s);
}

static bool pod_is_looked_up(struct sim *s)
{
    return fake_host_outstanding(s->host, "GET", "pods") == 1;
}

/* While a create waits, for the answer to a look-up here, its pod is deleted: it is not sent. */
static void test_deleted_while_its_create_waits(void **state)
{
    struct sim *s = sim_new_ready(8, POOLS);
    struct mapping m = {.exists = true, .tried = 1};

    (void)state;
    sync_mapping_put(s->syncer, SYNC_PODS, STR("default"), STR("a"), &m);
    fake_host_faults(s->host)->slow = "pods";
    sim_create_pod(s, "a", "", "");
    sim_until(s, pod_is_looked_up, "the look-up of its pod");
    sim_delete(s, "pods", "default", "a", -1);
    sim_writes_done(s);
    assert_true(pod_is_looked_up(s)); /* still */
    sim_run_ms(s, 5500);
    assert_int_equal(fake_host_asked(s->host, "POST", "pods", false), 0);
    sim_free(s);
}

static bool pod_has_left(struct sim *s)
{
    return !fake_host_count(s->host, "pods") && !sim_records(s, RECORD_LEDGER, "gpu/");
}

static bool pod_is_back(struct sim *s)
{
    return sim_records(s, RECORD_LEDGER, "gpu/p/host:") == 1;
}

/* While a charged pod's create is looked up, the host is restored to a state with a pod that the
 * tenant had deleted: together they exceed the limit, so the create waits. */
static void test_a_restored_host_holds_more_than_was_charged(void **state)
{
    struct sim *s = sim_new_ready(9, POOLS);
    struct mapping m = {.exists = true, .tried = 1};
    struct fake_host_image *image;

    (void)state;
    sim_create_pod(s, "b", GPU(2), "");
    sim_until(s, sim_pods_run, "the first pod to run");
    image = fake_host_image(s->host);
    sim_delete(s, "pods", "default", "b", -1);
    sim_until(s, pod_has_left, "the first pod to leave");
    sync_mapping_put(s->syncer, SYNC_PODS, STR("default"), STR("a"), &m);
    fake_host_faults(s->host)->slow = "pods";
    sim_create_pod(s, "a", GPU(4), "");
    sim_until(s, pod_is_looked_up, "the look-up of the second pod");
    fake_host_roll_back(s->host, image);
    sim_until(s, pod_is_back, "the first pod to be charged again");
    sim_run_ms(s, 5000);
    assert_int_equal(fake_host_count(s->host, "pods"), 1);
    sim_free(s);
}

/* The Secret with the tokens of pod a. */
static const cJSON *token_secret(struct sim *s, struct arena *a)
{
    char name[64];

    translate_token_secret_name(&s->syncer->tenant, STR("default"), STR("a"), name);
    json_each(secret, fake_host_list(s->host, a, "secrets"))
    {
        if (str_eqc(json_str_at(secret, "metadata.name"), name))
            return secret;
    }
    return NULL;
}

static bool has_note(struct sim *s, const char *key, const char *value)
{
    struct arena *a = arena_new(0);
    bool has = str_eqc(
        json_str(json_get(json_path(token_secret(s, a), "metadata.annotations"), key)), value);

    arena_free(a);
    return has;
}

static struct sim *sim_with_tokens(uint64_t seed, char secret[64])
{
    struct sim *s = sim_new_ready(seed, NULL);

    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    translate_token_secret_name(&s->syncer->tenant, STR("default"), STR("a"), secret);
    return s;
}

#define LATER "ffffffffffffffffffffffffffffffff"

/* Its pod needs it, whatever has become of ours: it is neither renewed nor deleted. */
static void test_tokens_of_a_later_epoch_stay(void **state)
{
    char secret[64];
    struct sim *s = sim_with_tokens(16, secret);

    (void)state;
    fake_host_patch(s->host, "secrets", secret,
                    "{\"metadata\":{\"annotations\":{\"sublet.dev/epoch\":\"" LATER "\"}}}");
    sim_run_ms(s, 200);
    sim_jump(s, 3300);
    sim_run_ms(s, 2000);
    assert_true(has_note(s, "sublet.dev/epoch", LATER));
    assert_true(fake_host_finish_pod(s->host, "Succeeded"));
    sim_run_ms(s, 2000);
    assert_true(has_note(s, "sublet.dev/epoch", LATER));
    sim_free(s);
}

/* Another client replaced it, which no event has shown yet. */
static void test_tokens_are_not_written_into_a_secret_of_another(void **state)
{
    char secret[64];
    struct sim *s = sim_with_tokens(17, secret);
    char text[128];

    (void)state;
    fake_host_faults(s->host)->deaf = "secrets";
    assert_true(fake_host_remove(s->host, "secrets", secret));
    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\"}}", secret);
    fake_host_put(s->host, "secrets", text);
    sim_jump(s, 3300);
    sim_run_ms(s, 2000);
    assert_true(has_note(s, "sublet.dev/uid", ""));
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_create_comes_late),
        cmocka_unit_test(test_uncertain_token_secret_is_on_record),
        cmocka_unit_test(test_tokens_of_a_later_epoch_stay),
        cmocka_unit_test(test_tokens_are_not_written_into_a_secret_of_another),
        cmocka_unit_test(test_successor_of_an_uncertain_create_runs),
        cmocka_unit_test(test_deleted_while_its_create_waits),
        cmocka_unit_test(test_a_restored_host_holds_more_than_was_charged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
