/* SPDX-License-Identifier: Apache-2.0 */
/* The owners whose pods a full pool refused: who is woken when there is room, in which order, and
 * how long one that does not answer keeps its place. */
#include "gpu/refused.h"

#include "test.h"

#define POD(kind, version, name, uid, priority)                                                    \
    "{\"metadata\":{\"namespace\":\"n\",\"ownerReferences\":[{\"controller\":true,\"kind\":"       \
    "\"" kind "\",\"apiVersion\":\"" version "\",\"name\":\"" name "\",\"uid\":\"" uid             \
    "\"}]},\"spec\":{\"priority\":" #priority "}}"

struct fixture {
    struct arena *arena;
    struct refusals list;
    struct config_pool pool;
    struct config_binding binding;
    struct config config;
    uint64_t wave;
    int64_t now_ms;
    struct clock clock;
    char woken[4096];    /* "a b " */
    const char *content; /* the name of an owner that needs nothing any more */
    const char *gone;    /* the name of one that was deleted */
    int64_t revision;    /* of all owners; 0: each look reads them */
    size_t n_read;
};

static int64_t mono_ms(void *ctx)
{
    return ((struct fixture *)ctx)->now_ms;
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);

    f->arena = arena_new(0);
    TAILQ_INIT(&f->list);
    f->pool.name = STR("p");
    f->binding = (struct config_binding){.pool = &f->pool, .most = {8, 1}, .limit = {8, 1}};
    f->config = (struct config){.bindings = &f->binding, .n_bindings = 1};
    f->clock = (struct clock){.mono_ms = mono_ms, .ctx = f};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    sync_refused_fini(&f->list);
    arena_free(f->arena);
    mem_free(f);
    return 0;
}

static void refuse_text(struct fixture *f, const char *pod, int64_t gpus)
{
    struct pool_choice choice = {
        .binding = &f->binding, .gpu_eq = {gpus, 1}, .limit = f->binding.limit};
    struct refused_owner owner;
    cJSON *tree = NULL;

    assert_int_equal(json_parse(f->arena, str_c(pod), &tree, NULL), 0);
    owner = sync_refused_owner(tree);
    sync_refused_add(&f->list, &choice, &owner);
}

static void refuse(struct fixture *f, const char *name, int64_t gpus, int64_t priority)
{
    struct str pod =
        arena_printf(f->arena,
                     "{\"metadata\":{\"namespace\":\"n\",\"ownerReferences\":[{"
                     "\"controller\":true,\"kind\":\"Job\",\"apiVersion\":\"batch/v1\","
                     "\"name\":\"%s\",\"uid\":\"u-%s\"}]},\"spec\":{\"priority\":%lld}}",
                     name, name, (long long)priority);

    refuse_text(f, pod.p, gpus);
}

static bool on_retry(void *ctx, const struct refused_owner *owner)
{
    struct fixture *f = ctx;
    size_t n = strlen(f->woken);

    assert_str(owner->ns, "n");
    if (f->content && str_eqc(owner->name, f->content))
        return false;
    snprintf(f->woken + n, sizeof(f->woken) - n, "%.*s ", STR_F(owner->name));
    return true;
}

/* Those that are woken while `used` of eight GPUs are in use. */
static const char *wake(struct fixture *f, int64_t used)
{
    f->woken[0] = 0;
    sync_refused_wake(&f->list, &f->binding, (struct rational){used, 1}, &f->clock, on_retry, f);
    return f->woken;
}

static void only_kinds_of_controllers_are_kept(void **state)
{
    struct fixture *f = *state;
    struct str huge = arena_printf(f->arena, POD("Job", "batch/v1", "%0300d", "u", 0), 1);

    refuse_text(f, "{\"metadata\":{\"namespace\":\"n\"},\"spec\":{}}", 1);
    refuse_text(f, POD("RayCluster", "ray.io/v1", "ray", "u-ray", 0), 1);
    refuse_text(f, POD("ReplicaSet", "example.com/v1", "other", "u-other", 0), 1);
    refuse_text(f, POD("Job", "batch/v1", "nameless", "", 0), 1);
    refuse_text(f, huge.p, 1);
    assert_string_equal(wake(f, 0), "");
    refuse_text(f, POD("ReplicaSet", "apps/v1", "set", "u-set", 0), 1);
    refuse_text(f, POD("ReplicationController", "v1", "rc", "u-rc", 0), 1);
    assert_string_equal(wake(f, 0), "set rc ");
}

static void those_that_fit_are_woken_by_priority_and_age(void **state)
{
    struct fixture *f = *state;

    refuse(f, "first", 4, 0);
    refuse(f, "large", 8, 0);
    refuse(f, "second", 2, 0);
    refuse(f, "urgent", 2, 100);
    assert_string_equal(wake(f, 8), "");
    assert_string_equal(wake(f, 5), "urgent ");
    assert_string_equal(wake(f, 4), "urgent second ");
    assert_string_equal(wake(f, 0), "urgent first second ");
}

static void a_refused_one_keeps_its_place_and_a_served_one_goes_behind(void **state)
{
    struct fixture *f = *state;

    refuse(f, "a", 1, 0);
    refuse(f, "b", 1, 0);
    assert_string_equal(wake(f, 7), "a ");
    refuse(f, "a", 1, 0);
    assert_string_equal(wake(f, 7), "a ");
    sync_refused_drop(&f->list, STR("u-a"));
    refuse(f, "a", 1, 0);
    assert_string_equal(wake(f, 7), "b ");
    refuse(f, "a", 1, 5);
    assert_string_equal(wake(f, 7), "a ");
}

/* What the first does not need is for the next. */
static void one_that_needs_nothing_leaves(void **state)
{
    struct fixture *f = *state;

    refuse(f, "a", 1, 0);
    refuse(f, "b", 1, 0);
    f->content = "a";
    assert_string_equal(wake(f, 7), "b ");
    f->content = NULL;
    assert_string_equal(wake(f, 0), "b ");
    refuse(f, "c", 1, 0);
    f->now_ms += 9999;
    assert_string_equal(wake(f, 7), "b ");
    f->now_ms += 1;
    assert_string_equal(wake(f, 7), "c ");
}

static size_t on_lacks(void *ctx, const struct refused_owner *owner, struct refused_count *known)
{
    struct fixture *f = ctx;

    if (known->revision && known->revision == f->revision)
        return known->n;
    *known = (struct refused_count){
        .revision = f->revision, .n = 2, .gone = f->gone && str_eqc(owner->name, f->gone)};
    f->n_read++;
    if (f->content && str_eqc(owner->name, f->content))
        return 0;
    return str_eqc(owner->name, "huge") ? SIZE_MAX / 2 : 2;
}

static int64_t lack(struct fixture *f)
{
    struct rational sum = sync_refused_lack(&f->list, &f->binding, on_lacks, f);

    assert_int_equal(sum.den, 1);
    return sum.num;
}

/* Of each owner what it lacks, in the pool, and never more than the binding can have. */
static void what_is_lacked_is_a_bounded_sum(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(lack(f), 0);
    refuse(f, "a", 1, 0);
    refuse(f, "b", 2, 0);
    assert_int_equal(lack(f), 6);
    f->content = "b";
    assert_int_equal(lack(f), 2);
    f->content = NULL;
    refuse(f, "c", 3, 0);
    assert_int_equal(lack(f), 8);
    refuse(f, "huge", 8, 9);
    assert_int_equal(lack(f), 8);
    f->pool.name = STR("other");
    assert_int_equal(lack(f), 0);
}

/* One that is refused again is the owner it was; one that left the list, another. */
static void what_an_owner_lacks_is_kept_with_it(void **state)
{
    struct fixture *f = *state;

    f->revision = 7;
    refuse(f, "a", 1, 0);
    refuse(f, "b", 1, 0);
    assert_int_equal(lack(f), 4);
    assert_int_equal(lack(f), 4);
    refuse(f, "a", 1, 5);
    assert_int_equal(lack(f), 4);
    assert_int_equal(f->n_read, 2);
    f->revision = 8;
    assert_int_equal(lack(f), 4);
    assert_int_equal(f->n_read, 4);
    sync_refused_drop(&f->list, STR("u-a"));
    refuse(f, "a", 1, 0);
    assert_int_equal(lack(f), 4);
    assert_int_equal(f->n_read, 5);
}

static void the_list_and_each_wake_are_bounded(void **state)
{
    struct fixture *f = *state;
    size_t n = 0, most = 0;
    char name[16];

    for (unsigned i = 0; i < 1100; i++) {
        snprintf(name, sizeof(name), "j%u", i);
        refuse(f, name, 0, 0);
    }
    wake(f, 0);
    for (const char *p = f->woken; *p; p++)
        most += *p == ' ';
    assert_int_equal(most, 32);
    for (unsigned i = 1100; i > 0; i--) {
        snprintf(name, sizeof(name), "u-j%u", i - 1);
        sync_refused_drop(&f->list, str_c(name));
        n += i - 1 >= 76 && TAILQ_EMPTY(&f->list);
    }
    assert_int_equal(n, 1); /* the last 1024 are kept: from index 76 on */
}

/* Whatever its priority: what was refused longest ago may need nothing any more. */
static void a_full_list_loses_the_one_refused_longest_ago(void **state)
{
    struct fixture *f = *state;
    char name[16];

    refuse(f, "stale", 1, 9);
    refuse(f, "insists", 1, 8);
    for (unsigned i = 0; i < 1022; i++) {
        snprintf(name, sizeof(name), "j%u", i);
        refuse(f, name, 8, 0);
    }
    refuse(f, "insists", 1, 8);
    assert_string_equal(wake(f, 6), "stale insists ");
    refuse(f, "added", 1, 7);
    assert_string_equal(wake(f, 6), "insists added ");
}

/* More than the limit: no release is enough. Their entries would keep others out. */
static void one_that_can_never_fit_is_not_kept(void **state)
{
    struct fixture *f = *state;

    refuse(f, "huge", 9, 0);
    assert_true(TAILQ_EMPTY(&f->list));
    refuse(f, "grows", 8, 0);
    assert_string_equal(wake(f, 0), "grows ");
    refuse(f, "grows", 9, 0);
    assert_true(TAILQ_EMPTY(&f->list));
}

/* An owner that is gone leaves a list; one that lacks nothing at the moment may lack some later. */
static void those_that_are_gone_are_forgotten(void **state)
{
    struct fixture *f = *state;
    char name[16];

    f->revision = 1;
    refuse(f, "waits", 1, 0);
    refuse(f, "content", 1, 0);
    refuse(f, "deleted", 1, 0);
    for (unsigned i = 0; i < 1020; i++) {
        snprintf(name, sizeof(name), "j%u", i);
        refuse(f, name, 8, 0);
    }
    assert_false(sync_refused_is_full(&f->list));
    refuse(f, "last", 8, 0);
    assert_true(sync_refused_is_full(&f->list));
    f->gone = "deleted";
    f->content = "content";
    sync_refused_prune(&f->list, on_lacks, f);
    f->content = NULL;
    assert_false(sync_refused_is_full(&f->list));
    refuse(f, "added", 1, 0);
    assert_string_equal(wake(f, 5), "waits content added ");
}

static void unserved(struct fixture *f, const char *kind, const char *name, const char *pool)
{
    cJSON *tree = NULL;
    struct refused_owner owner;
    struct str pod = arena_printf(
        f->arena,
        "{\"metadata\":{\"namespace\":\"n\",\"labels\":{\"sublet.dev/gpu-pool\":\"%s\"},"
        "\"ownerReferences\":[{\"controller\":true,\"kind\":\"%s\",\"apiVersion\":\"batch/v1\","
        "\"name\":\"%s\",\"uid\":\"u-%s\"}]}}",
        pool, kind, name, name);

    assert_int_equal(json_parse(f->arena, pod, &tree, NULL), 0);
    owner = sync_refused_owner(tree);
    sync_refused_add_unserved(&f->list, &owner, f->wave);
}

/* True: there is another step of this wave. */
static bool wake_wave(struct fixture *f)
{
    f->woken[0] = 0;
    return sync_refused_wake_wave(&f->list, f->wave, &f->config, on_retry, f);
}

static size_t n_woken(const struct fixture *f)
{
    size_t n = 0;

    for (const char *p = f->woken; *p; p++)
        n += *p == ' ';
    return n;
}

/* What no pool serves waits for other pools, not for room, and is tried once when they change. */
static void what_no_pool_serves_is_woken_once(void **state)
{
    struct fixture *f = *state;

    unserved(f, "RayCluster", "ray", "");
    assert_true(TAILQ_EMPTY(&f->list));
    unserved(f, "Job", "x", "");
    unserved(f, "Job", "x", "");
    unserved(f, "Job", "y", "");
    assert_string_equal(wake(f, 0), "");
    assert_int_equal(lack(f), 0);
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "");
    f->wave++;
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "x y ");
    unserved(f, "Job", "x", "");
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "");
    f->wave++;
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "x ");
    assert_true(TAILQ_EMPTY(&f->list));
}

/* In steps, in the order in which they came, each once whatever is refused meanwhile. */
static void a_wave_comes_in_bounded_steps(void **state)
{
    struct fixture *f = *state;
    size_t steps = 1, sum = 0;
    char name[16];
    bool more;

    for (unsigned i = 0; i < 1100; i++) {
        snprintf(name, sizeof(name), "j%u", i);
        unserved(f, "Job", name, "");
    }
    f->wave++;
    assert_true(wake_wave(f));
    assert_int_equal(n_woken(f), 32);
    assert_true(strncmp(f->woken, "j76 j77 ", 8) == 0);
    for (sum = n_woken(f), more = true; more; steps++) {
        unserved(f, "Job", "j76", "");
        more = wake_wave(f);
        assert_true(n_woken(f) <= 32);
        sum += n_woken(f);
    }
    assert_int_equal(sum, 1024);
    assert_int_equal(steps, 32);
    f->wave++;
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "j76 ");
}

/* A pod that names a pool is served by no other, nor by a binding that has ended. */
static void a_wave_passes_over_those_of_other_pools(void **state)
{
    struct fixture *f = *state;

    unserved(f, "Job", "any", "");
    unserved(f, "Job", "here", "p");
    unserved(f, "Job", "there", "q");
    f->wave++;
    f->binding.ended = true;
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "any ");
    f->wave++;
    f->binding.ended = false;
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "here ");
    f->pool.name = STR("q");
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "");
    f->wave++;
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "there ");
}

/* What it would be woken for later is what it requested last. */
static void the_pool_is_that_of_the_last_attempt(void **state)
{
    struct fixture *f = *state;

    unserved(f, "Job", "a", "q");
    unserved(f, "Job", "a", "p");
    f->wave++;
    assert_false(wake_wave(f));
    assert_string_equal(f->woken, "a ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_kinds_of_controllers_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_fit_are_woken_by_priority_and_age, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_refused_one_keeps_its_place_and_a_served_one_goes_behind,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_needs_nothing_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_lacked_is_a_bounded_sum, setup, teardown),
        cmocka_unit_test_setup_teardown(what_an_owner_lacks_is_kept_with_it, setup, teardown),
        cmocka_unit_test_setup_teardown(the_list_and_each_wake_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_list_loses_the_one_refused_longest_ago, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_can_never_fit_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_are_gone_are_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_pool_serves_is_woken_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wave_comes_in_bounded_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wave_passes_over_those_of_other_pools, setup, teardown),
        cmocka_unit_test_setup_teardown(the_pool_is_that_of_the_last_attempt, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
