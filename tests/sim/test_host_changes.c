/* SPDX-License-Identifier: Apache-2.0 */
/* What policies and controllers of the host change in the host objects of a tenant stays, and shows:
 * the syncer sends what the tenant changed, once. Counts of requests are bounds of what a host may be
 * burdened with, whatever undoes a patch. */
#include "worlds.h"

#include "engine.h"

#define QUIET_MS 300 /* a loop of patches takes a few ms a turn */

static unsigned patches(const struct sim *s)
{
    return fake_host_asked(s->host, "PATCH", "pods", false);
}

/* Runs on until a loop of patches would have shown. */
static void expect_patches(struct sim *s, unsigned at_least, unsigned at_most)
{
    sim_run_ms(s, QUIET_MS);
    if (patches(s) < at_least || patches(s) > at_most)
        fail_msg("%u patches of pods, wanted %u to %u", patches(s), at_least, at_most);
}

static void host_name_of(struct sim *s, const char *name, char out[64])
{
    translate_name(&s->syncer->tenant, STR("default"), str_c(name), out);
}

static cJSON *host_container(struct sim *s, struct arena *a)
{
    return json_first(json_path(json_first(fake_host_list(s->host, a, "pods")), "spec.containers"));
}

static void assert_host_image(struct sim *s, const char *image)
{
    struct arena *a = arena_new(0);
    struct str is = json_str(json_get(host_container(s, a), "image"));

    if (!str_eqc(is, image))
        fail_msg("image %.*s on the host, wanted %s", STR_F(is), image);
    arena_free(a);
}

static unsigned events(struct sim *s, const char *reason, const char *part)
{
    struct arena *a = arena_new(0);
    unsigned n = 0;

    json_each(event, sim_list(s, a, "events", "")) n +=
        str_eqc(json_str_at(event, "reason"), reason) &&
        str_contains(json_str_at(event, "message"), str_c(part));
    arena_free(a);
    return n;
}

static bool observed_2(struct sim *s)
{
    struct arena *a = arena_new(0);
    const cJSON *pod = sim_get(s, a, "pods", "default", "a");
    bool is = json_i64_at(pod, "status.observedGeneration", 0) == 2;

    arena_free(a);
    return is;
}

static void set_image(struct sim *s, const char *image)
{
    struct arena *a = arena_new(0);
    cJSON *list = json_path(sim_get(s, a, "pods", "default", "a"), "spec.containers"), *patch;

    json_set_str(a, json_first(list), "image", str_c(image));
    patch = json_new_object(a);
    json_set(a, json_ensure_object(a, patch, "spec"), "containers", json_copy(a, list));
    sim_patch(s, "pods", "default", "a", json_text(a, patch).p);
    sim_writes_done(s);
    assert_string_equal(s->refusal, "");
    arena_free(a);
}

/* --- images --- */

static bool label_is_down(struct sim *s)
{
    struct arena *a = arena_new(0);
    bool is = str_eqc(
        json_str(json_get(
            json_path(json_first(fake_host_list(s->host, a, "pods")), "metadata.labels"), "team")),
        "x");

    arena_free(a);
    return is;
}

#define TEAM "policy: {labels: {allow: [team]}}\n"

static void set_label(struct sim *s)
{
    sim_patch(s, "pods", "default", "a", "{'metadata':{'labels':{'team':'x'}}}");
    sim_writes_done(s);
}

static void test_an_image_rewritten_at_create_stays(void **state)
{
    struct sim *s = sim_new_ready(1, TEAM);

    (void)state;
    fake_host_rewrite_images(s->host, "mirror/", true, false);
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    expect_patches(s, 0, 0);
    assert_host_image(s, "mirror/i");
    set_label(s); /* another change leaves the image alone */
    sim_until(s, label_is_down, "the label");
    expect_patches(s, 1, 1);
    assert_host_image(s, "mirror/i");
    set_image(s, "j"); /* the tenant's own change goes down */
    sim_until(s, observed_2, "the generation to be observed");
    expect_patches(s, 2, 2);
    assert_host_image(s, "j");
    sim_free(s);
}

static void test_an_image_rewritten_at_update_stays(void **state)
{
    struct sim *s = sim_new_ready(2, TEAM);

    (void)state;
    fake_host_rewrite_images(s->host, "mirror/", false, true);
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    expect_patches(s, 0, 0);
    set_label(s);
    sim_until(s, label_is_down, "the label");
    expect_patches(s, 1, 1);
    assert_host_image(s, "mirror/i");
    sim_free(s);
}

static void test_an_image_rewritten_always_stays(void **state)
{
    struct sim *s = sim_new_ready(3, NULL);

    (void)state;
    fake_host_rewrite_images(s->host, "mirror/", true, true);
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    set_image(s, "j");
    sim_until(s, observed_2, "the generation to be observed");
    expect_patches(s, 1, 1);
    assert_host_image(s, "mirror/j");
    sim_close(s); /* what was sent is known to the next process */
    sim_open(s);
    sim_run_ms(s, QUIET_MS);
    set_image(s, "j:2");
    sim_run_ms(s, QUIET_MS);
    assert_host_image(s, "mirror/j:2");
    expect_patches(s, 2, 2);
    sim_free(s);
}

/* --- whatever undoes a patch --- */

static bool fight_is_reported(struct sim *s)
{
    return events(s, "SyncError", "changes what this virtual cluster writes") == 1;
}

static void test_a_patch_that_is_undone_is_not_repeated_at_once(void **state)
{
    struct sim *s = sim_new_ready(4, TEAM);
    char name[64];

    (void)state;
    fake_host_undo_label(s->host, "team");
    sim_create_pod(s, "a", "", "");
    sim_until(s, sim_pods_run, "the pod to run");
    set_label(s);
    sim_until(s, fight_is_reported, "an Event");
    expect_patches(s, 1, 1);
    /* Other changes on the host lead to no further patch, and are shown. */
    host_name_of(s, "a", name);
    for (int i = 0; i < 5; i++) {
        char text[64];

        snprintf(text, sizeof(text), "{\"status\":{\"message\":\"m%d\"}}", i);
        fake_host_patch(s->host, "pods", name, text);
        sim_run_ms(s, 20);
    }
    expect_patches(s, 1, 1);
    assert_true(fight_is_reported(s));
    /* Another change of the tenant's is sent at once; what is undone is tried again after a while. */
    set_image(s, "j");
    sim_until(s, observed_2, "the image to be applied");
    expect_patches(s, 2, 2);
    fake_host_undo_label(s->host, NULL);
    sim_jump(s, 61);
    sim_until(s, label_is_down, "the label, now that nothing undoes it");
    expect_patches(s, 3, 3);
    assert_true(fight_is_reported(s));
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_image_rewritten_at_create_stays),
        cmocka_unit_test(test_an_image_rewritten_at_update_stays),
        cmocka_unit_test(test_an_image_rewritten_always_stays),
        cmocka_unit_test(test_a_patch_that_is_undone_is_not_repeated_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
