/* SPDX-License-Identifier: Apache-2.0 */
/* Events of writes that got no answer: once if they happened, never if not, never twice. */
#include "test.h"

#include <sublet/object.h>

#include "grants/unsaid.h"

struct fixture {
    struct unsaid *unsaid;
    struct arena *a;
    const char *now; /* the object as the host has it; NULL: it is gone */
    char said[256];
    bool under_way; /* another write of the object */
};

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);

    f->unsaid = fleet_unsaid_new();
    f->a = arena_new(0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    fleet_unsaid_free(f->unsaid);
    arena_free(f->a);
    mem_free(f);
    return 0;
}

static cJSON *parse(struct arena *a, const char *text)
{
    cJSON *tree = NULL;

    assert_int_equal(json_parse(a, str_c(text), &tree, NULL), 0);
    return tree;
}

#define OBJECT(uid, version, grant)                                                                \
    "{\"metadata\":{\"name\":\"b\",\"uid\":\"" uid "\",\"resourceVersion\":\"" version             \
    "\"},\"status\":{\"grant\":\"" grant "\"}}"

/* A write from this version to this status has no answer. */
static bool lost(struct fixture *f, const char *object, const char *message)
{
    struct arena *a = arena_new(0);
    struct unsaid_events e = {.a = a, .kind = "GPUBinding", .object = parse(a, object), .n = 1};

    e.list[0] = (struct fleet_event){"Normal", "GrantChanged", arena_str(a, str_c(message))};
    return fleet_unsaid_keep(f->unsaid, &e);
}

static const cJSON *see(void *ctx, struct arena *a, const char *kind, const cJSON *object)
{
    struct fixture *f = ctx;

    assert_string_equal(kind, "GPUBinding");
    assert_str(meta_name(object), "b");
    return f->now ? parse(a, f->now) : NULL;
}

static bool under_way(void *ctx, const cJSON *object)
{
    const struct fixture *f = ctx;

    assert_str(meta_name(object), "b");
    return f->under_way;
}

static void say(void *ctx, const struct unsaid_events *e)
{
    struct fixture *f = ctx;
    size_t n = strlen(f->said);

    assert_int_equal(e->n, 1);
    snprintf(f->said + n, sizeof(f->said) - n, "%.*s ", STR_F(e->list[0].message));
}

/* What is said when the host has this. */
static const char *settle(struct fixture *f, const char *now)
{
    struct unsaid_look look = {under_way, see, say, f};

    f->now = now;
    f->said[0] = 0;
    fleet_unsaid_settle(f->unsaid, &look);
    return f->said;
}

static void what_happened_is_said_once(void **state)
{
    struct fixture *f = *state;

    assert_true(lost(f, OBJECT("u", "5", "4"), "four"));
    assert_string_equal(settle(f, OBJECT("u", "5", "2")), "");
    assert_string_equal(settle(f, OBJECT("u", "5", "2")), "");
    assert_string_equal(settle(f, OBJECT("u", "6", "4")), "four ");
    assert_string_equal(settle(f, OBJECT("u", "6", "4")), "");
    assert_string_equal(settle(f, OBJECT("u", "7", "4")), "");
}

static void what_did_not_happen_is_never_said(void **state)
{
    struct fixture *f = *state;

    lost(f, OBJECT("u", "5", "4"), "four");
    assert_string_equal(settle(f, OBJECT("u", "6", "2")), "");
    assert_string_equal(settle(f, OBJECT("u", "7", "4")), "");
    lost(f, OBJECT("u", "7", "5"), "five");
    assert_string_equal(settle(f, NULL), "");
    assert_string_equal(settle(f, OBJECT("u", "8", "5")), "");
    lost(f, OBJECT("u", "8", "6"), "six");
    assert_string_equal(settle(f, OBJECT("another", "9", "6")), "");
    assert_string_equal(settle(f, OBJECT("u", "9", "6")), "");
}

/* It is sent again from the same version while the outcome is not known, as it was or otherwise. */
static void of_all_that_were_sent_one_is_said(void **state)
{
    struct fixture *f = *state;

    lost(f, OBJECT("u", "5", "4"), "four");
    lost(f, OBJECT("u", "5", "4"), "four");
    lost(f, OBJECT("u", "5", "8"), "eight");
    assert_string_equal(settle(f, OBJECT("u", "6", "8")), "eight ");
    assert_string_equal(settle(f, OBJECT("u", "6", "8")), "");
}

/* The answer of a later one says its Events: the earlier ones did not happen. */
static void an_answer_settles_its_version(void **state)
{
    struct fixture *f = *state;

    lost(f, OBJECT("u", "5", "4"), "four");
    lost(f, OBJECT("other", "5", "4"), "another's");
    fleet_unsaid_drop(f->unsaid, parse(f->a, OBJECT("u", "5", "4")));
    assert_string_equal(settle(f, OBJECT("u", "6", "4")), "");
    lost(f, OBJECT("u", "6", "7"), "seven");
    fleet_unsaid_drop(f->unsaid, parse(f->a, OBJECT("u", "5", "4")));
    assert_string_equal(settle(f, OBJECT("u", "7", "7")), "seven ");
}

/* The object may show what another write did before that is answered: its answer says it, or is
 * lost as well, and then it is the same write. */
static void nothing_is_said_while_another_write_is_under_way(void **state)
{
    struct fixture *f = *state;

    lost(f, OBJECT("u", "5", "4"), "four");
    f->under_way = true;
    assert_string_equal(settle(f, OBJECT("u", "6", "4")), "");
    lost(f, OBJECT("u", "5", "4"), "four");
    f->under_way = false;
    assert_string_equal(settle(f, OBJECT("u", "6", "4")), "four ");
    assert_string_equal(settle(f, OBJECT("u", "6", "4")), "");
}

static void they_are_bounded(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 1024; i++)
        assert_true(lost(f, arena_printf(f->a, OBJECT("u%d", "5", "4"), i).p, "x"));
    assert_false(lost(f, OBJECT("u", "5", "4"), "four"));
    assert_true(lost(f, OBJECT("u7", "5", "4"), "x"));
    assert_string_equal(settle(f, NULL), "");
    assert_true(lost(f, OBJECT("u", "5", "4"), "four"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_happened_is_said_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_did_not_happen_is_never_said, setup, teardown),
        cmocka_unit_test_setup_teardown(of_all_that_were_sent_one_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_settles_its_version, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_said_while_another_write_is_under_way, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(they_are_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
