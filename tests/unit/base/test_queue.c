/* SPDX-License-Identifier: Apache-2.0 */
/* The work queue: the three states of a key and every way between them, backoff, limits, and a long
 * random run against a model that is too simple to be wrong. */

#include "test.h"

#include <sublet/queue.h>

#define assert_get(q, now, text)                                                                   \
    do {                                                                                           \
        struct str key_;                                                                           \
        assert_true(queue_get((q), (now), &key_));                                                 \
        assert_str(key_, (text));                                                                  \
    } while (0)
#define assert_nothing(q, now)                                                                     \
    do {                                                                                           \
        struct str key_;                                                                           \
        assert_false(queue_get((q), (now), &key_));                                                \
    } while (0)

static void adds_once(void **state)
{
    struct queue *q = queue_new(NULL);

    (void)state;
    assert_int_equal(queue_next_due(q), INT64_MAX);
    assert_true(queue_add(q, STR("a"), 10));
    assert_true(queue_add(q, STR("a"), 11));
    assert_int_equal(queue_length(q), 1);
    assert_int_equal(queue_next_due(q), 10);
    assert_nothing(q, 9);
    assert_get(q, 10, "a");
    assert_nothing(q, 1000);
    assert_int_equal(queue_length(q), 0);
    queue_done(q, STR("a"), 10, false);
    assert_nothing(q, 1000);
    assert_int_equal(queue_next_due(q), INT64_MAX);
    assert_null(queue_free(q));
    assert_null(queue_free(NULL));
}

static void comes_again_when_added_while_working(void **state)
{
    struct queue *q = queue_new(NULL);

    (void)state;
    queue_add(q, STR("a"), 0);
    assert_get(q, 0, "a");
    queue_add_at(q, STR("a"), 50);
    queue_add_at(q, STR("a"), 30);
    queue_add_at(q, STR("a"), 40);
    assert_nothing(q, 1000); /* never twice at a time */
    queue_done(q, STR("a"), 1, false);
    assert_int_equal(queue_next_due(q), 30);
    assert_get(q, 30, "a");
    queue_done(q, STR("a"), 30, false);
    assert_nothing(q, 1000);
    queue_free(q);
}

static void the_earlier_due_time_wins(void **state)
{
    struct queue *q = queue_new(NULL);

    (void)state;
    queue_add_at(q, STR("a"), 100);
    queue_add_at(q, STR("b"), 90);
    queue_add_at(q, STR("a"), 200);
    assert_int_equal(queue_next_due(q), 90);
    queue_add_at(q, STR("a"), 10);
    assert_int_equal(queue_next_due(q), 10);
    assert_get(q, 95, "a");
    assert_get(q, 95, "b");
    queue_free(q); /* keys that are worked on are freed as well */
}

static void is_first_in_first_out(void **state)
{
    struct queue *q = queue_new(NULL);
    char text[8];

    (void)state;
    for (int i = 0; i < 500; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        queue_add(q, str_c(text), 7);
    }
    for (int i = 0; i < 500; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        assert_get(q, 7, text);
        queue_done(q, str_c(text), 7, false);
    }
    queue_free(q);
}

static void backs_off(void **state)
{
    const struct queue_options options = {.backoff_base_ms = 10, .backoff_max_ms = 75};
    static const int64_t delays[] = {10, 20, 40, 75, 75, 75};
    struct queue *q = queue_new(&options);
    int64_t now = 0;

    (void)state;
    queue_add(q, STR("a"), now);
    for (unsigned i = 0; i < 6; i++) {
        assert_get(q, now, "a");
        queue_done(q, STR("a"), now, true);
        assert_int_equal(queue_failures(q, STR("a")), i + 1);
        assert_int_equal(queue_next_due(q), now + delays[i]);
        now += delays[i];
        assert_nothing(q, now - 1);
    }
    assert_get(q, now, "a");
    queue_add(q, STR("a"), now); /* new news do not wait for the backoff */
    queue_done(q, STR("a"), now, true);
    assert_get(q, now, "a");
    queue_forget(q, STR("a"));
    assert_int_equal(queue_failures(q, STR("a")), 0);
    queue_done(q, STR("a"), now, true);
    assert_int_equal(queue_next_due(q), now + 10);
    assert_get(q, now + 10, "a");
    queue_done(q, STR("a"), now, false);
    assert_int_equal(queue_failures(q, STR("a")), 0);
    queue_forget(q, STR("unknown"));
    queue_free(q);
}

static void backoff_never_overflows(void **state)
{
    const struct queue_options options = {.backoff_base_ms = 3, .backoff_max_ms = INT64_MAX / 2};
    struct queue *q = queue_new(&options);

    (void)state;
    queue_add(q, STR("a"), 0);
    for (int i = 0; i < 200; i++) {
        assert_get(q, INT64_MAX, "a");
        queue_done(q, STR("a"), 0, true);
        assert_true(queue_next_due(q) > 0);
    }
    assert_int_equal(queue_next_due(q), INT64_MAX / 2);
    queue_free(q);
}

static void is_bounded(void **state)
{
    const struct queue_options options = {.max_keys = 2};
    struct queue *q = queue_new(&options);

    (void)state;
    assert_true(queue_add(q, STR("a"), 0));
    assert_true(queue_add(q, STR("b"), 0));
    assert_false(queue_add(q, STR("c"), 0));
    assert_true(queue_add(q, STR("a"), 0));
    assert_get(q, 0, "a");
    assert_false(queue_add(q, STR("c"), 0)); /* a key in work counts */
    queue_done(q, STR("a"), 0, false);
    assert_true(queue_add(q, STR("c"), 0));
    queue_free(q);
}

static void keys_are_bytes(void **state)
{
    struct queue *q = queue_new(NULL);
    struct str key;
    char text[] = {'a', '\0', 'b'};

    (void)state;
    queue_add(q, (struct str){text, 3}, 0);
    queue_add(q, (struct str){text, 1}, 0);
    queue_add(q, STR(""), 0);
    text[2] = 'x'; /* the key was copied */
    assert_int_equal(queue_length(q), 3);
    assert_true(queue_get(q, 0, &key));
    assert_true(str_eq(key, (struct str){"a\0b", 3}));
    queue_done(q, key, 0, false); /* the queue's own view of the key is good enough */
    assert_get(q, 0, "a");
    assert_get(q, 0, "");
    queue_free(q);
}

/* The model: an array of all keys, searched from one end to the other. */
enum { MODEL_KEYS = 40, BASE = 5, CAP = 100 };

struct model {
    int state; /* 0 absent, 1 waiting, 2 working */
    bool again;
    int64_t due, again_due;
    unsigned failures;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void model_add(struct model *m, int64_t due)
{
    if (m->state == 2) {
        m->again_due = m->again && m->again_due < due ? m->again_due : due;
        m->again = true;
        return;
    }
    m->due = m->state == 1 && m->due < due ? m->due : due;
    m->state = 1;
}

static void model_done(struct model *m, int64_t now, bool failed)
{
    int64_t due = INT64_MAX;

    m->failures = failed ? m->failures + 1 : 0;
    if (failed)
        due = now + (m->failures > 5 ? CAP : BASE << (m->failures - 1));
    due = due < CAP + now ? due : (failed ? now + CAP : due);
    if (m->again && m->again_due < due)
        due = m->again_due;
    m->state = failed || m->again ? 1 : 0;
    m->again = false;
    m->due = due;
}

static void check_model(struct queue *q, const struct model *keys)
{
    int64_t earliest = INT64_MAX;
    size_t waiting = 0;

    for (int i = 0; i < MODEL_KEYS; i++) {
        waiting += keys[i].state == 1;
        if (keys[i].state == 1 && keys[i].due < earliest)
            earliest = keys[i].due;
    }
    assert_int_equal(queue_length(q), waiting);
    assert_int_equal(queue_next_due(q), earliest);
}

static void step(struct queue *q, struct model *keys, uint64_t *seed, int64_t now)
{
    int i = (int)(next_random(seed) % MODEL_KEYS);
    char text[8];
    struct str key;

    snprintf(text, sizeof(text), "%d", i);
    switch (next_random(seed) % 4) {
    case 0: {
        int64_t due = now + (int64_t)(next_random(seed) % 50);
        assert_true(queue_add_at(q, str_c(text), due));
        model_add(&keys[i], due);
        break;
    }
    case 1:
        if (!queue_get(q, now, &key))
            break;
        uint64_t number;
        assert_true(str_to_u64(key, &number));
        i = (int)number;
        assert_int_equal(keys[i].state, 1);
        assert_true(keys[i].due <= now);
        for (int other = 0; other < MODEL_KEYS; other++)
            assert_false(keys[other].state == 1 && keys[other].due < keys[i].due);
        keys[i].state = 2;
        break;
    default:
        if (keys[i].state != 2)
            break;
        bool failed = next_random(seed) % 2;
        queue_done(q, str_c(text), now, failed);
        model_done(&keys[i], now, failed);
        assert_int_equal(queue_failures(q, str_c(text)), keys[i].failures);
    }
}

static void agrees_with_a_model(void **state)
{
    const struct queue_options options = {.backoff_base_ms = BASE, .backoff_max_ms = CAP};
    struct queue *q = queue_new(&options);
    struct model keys[MODEL_KEYS] = {0};
    uint64_t seed = 0x9e3779b97f4a7c15;

    (void)state;
    for (int64_t i = 0; i < 20000; i++) {
        step(q, keys, &seed, i / 4);
        check_model(q, keys);
    }
    queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_once),
        cmocka_unit_test(comes_again_when_added_while_working),
        cmocka_unit_test(the_earlier_due_time_wins),
        cmocka_unit_test(is_first_in_first_out),
        cmocka_unit_test(backs_off),
        cmocka_unit_test(backoff_never_overflows),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(agrees_with_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
