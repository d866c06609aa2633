/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods give GPUs back: the lowest priority first, of those the newest, and no more than must.
 */
#include "gpu/reclaim.h"

#include "test.h"

#define POD(name, second, rank, gpus)                                                              \
    {                                                                                              \
        .uid = STR(name), .created = STR("2026-01-01T00:00:0" second "Z"), .priority = (rank),     \
        .gpu_eq = {                                                                                \
            (gpus),                                                                                \
            1                                                                                      \
        }                                                                                          \
    }

/* The chosen ones in their order: "a b " */
static const char *chosen(struct reclaim_pod *pods, size_t n, int64_t held, int64_t limit)
{
    static char text[256];
    size_t used = 0;

    sync_reclaim_choose(pods, n, (struct rational){held, 1}, (struct rational){limit, 1});
    text[0] = 0;
    for (size_t i = 0; i < n; i++)
        if (pods[i].chosen)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s ", STR_F(pods[i].uid));
    return text;
}

static void the_lowest_priority_goes_first_then_the_newest(void **state)
{
    struct reclaim_pod pods[] = {POD("high", "9", 1000, 1), POD("old", "1", 100, 1),
                                 POD("new", "5", 100, 1), POD("normal", "7", 500, 1)};

    (void)state;
    assert_string_equal(chosen(pods, 4, 4, 4), "");
    assert_string_equal(chosen(pods, 4, 4, 3), "new ");
    assert_string_equal(chosen(pods, 4, 4, 2), "new old ");
    assert_string_equal(chosen(pods, 4, 4, 1), "new old normal ");
    assert_string_equal(chosen(pods, 4, 4, 0), "new old normal high ");
}

/* What is on its way out counts as given back, and one of several GPUs as all of them. */
static void no_more_are_chosen_than_must(void **state)
{
    struct reclaim_pod pods[] = {POD("a", "1", 0, 1), POD("b", "2", 0, 4), POD("c", "3", 0, 1)};

    (void)state;
    assert_string_equal(chosen(pods, 3, 6, 3), "c b ");
    for (size_t i = 0; i < 3; i++)
        pods[i].leaving = str_eqc(pods[i].uid, "b");
    assert_string_equal(chosen(pods, 3, 6, 2), "");
    assert_string_equal(chosen(pods, 3, 6, 1), "c ");
}

static void what_holds_nothing_is_left(void **state)
{
    struct reclaim_pod pods[] = {POD("none", "9", -5, 0), POD("one", "1", 5, 1)};

    (void)state;
    assert_string_equal(chosen(pods, 2, 1, 0), "one ");
    assert_string_equal(chosen(pods, 0, 3, 0), "");
}

/* Of the same priority and second: always the same ones, in whatever order they come. */
static void the_choice_does_not_depend_on_their_order(void **state)
{
    struct reclaim_pod one[] = {POD("a", "1", 0, 1), POD("b", "1", 0, 1), POD("c", "1", 0, 1)};
    struct reclaim_pod other[] = {POD("c", "1", 0, 1), POD("a", "1", 0, 1), POD("b", "1", 0, 1)};

    (void)state;
    assert_string_equal(chosen(one, 3, 3, 1), "a b ");
    assert_string_equal(chosen(other, 3, 3, 1), "a b ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_priority_goes_first_then_the_newest),
        cmocka_unit_test(no_more_are_chosen_than_must),
        cmocka_unit_test(what_holds_nothing_is_left),
        cmocka_unit_test(the_choice_does_not_depend_on_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
