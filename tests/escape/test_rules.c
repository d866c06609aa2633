/* SPDX-License-Identifier: Apache-2.0 */
/* The checker can fail: every bad object of bad.txt is found; for each constraint of allowed.rules
 * there is one that nothing else finds; an unknown member is found wherever it stands. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "checker.h"

struct line {
    struct str object, facts, path, json;
};

struct fixture {
    struct arena *arena, *scratch;
    struct rules *rules;
    struct node *good;
    struct line lines[512];
    size_t n_lines;
};

static struct str read_file(struct arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = arena_alloc(a, 1 << 16);
    size_t n = f ? fread(text, 1, 1 << 16, f) : 0;

    assert_non_null(f);
    fclose(f);
    assert_true(n < 1 << 16);
    return (struct str){text, n};
}

static void read_lines(struct fixture *f, struct str text)
{
    while (text.p) {
        struct str line = str_trim(str_cut(&text, '\n'));
        struct line *one = &f->lines[f->n_lines];

        if (!line.n || line.p[0] == '#')
            continue;
        one->facts = str_cut(&line, ' ');
        one->object = str_cut(&one->facts, '/');
        one->path = str_cut(&line, ' ');
        one->json = line;
        assert_true(++f->n_lines < 512);
    }
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    const char *why = "";

    f->arena = arena_new(0);
    f->scratch = arena_new(0);
    f->rules = rules_load(f->arena, read_file(f->arena, ALLOWED_RULES), &why);
    if (!f->rules)
        fail_msg("allowed.rules: %s", why);
    f->good = node_read(f->arena, read_file(f->arena, ESCAPE_DIR "/good.json"), &why);
    if (!f->good)
        fail_msg("good.json: %s", why);
    read_lines(f, read_file(f->arena, ESCAPE_DIR "/bad.txt"));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->arena = arena_free(f->arena);
    f->scratch = arena_free(f->scratch);
    mem_free(f);
    return 0;
}

/* Which shape an object of good.json has. */
static const char *shape_of(struct arena *a, struct str object)
{
    bool pod = str_eqc(object, "plain") || str_eqc(object, "shared") || str_eqc(object, "share");

    return pod ? "pod" : arena_cstr(a, object);
}

static const char *check(struct fixture *f, struct str facts, struct str name,
                         const struct node *object)
{
    return rules_check(f->scratch, f->rules, node_get_str(f->good, facts.n ? facts : STR("facts")),
                       shape_of(f->scratch, name), object);
}

static const char *check_line(struct fixture *f, const struct line *line)
{
    const char *why = "";
    struct node *object = node_copy(f->scratch, node_get_str(f->good, line->object)), *at, *value;

    if (str_eqc(line->json, "-")) {
        if (!node_remove(object, line->path))
            fail_msg("%.*s has no %.*s", STR_F(line->object), STR_F(line->path));
        return check(f, line->facts, line->object, object);
    }
    value = node_read(f->scratch, line->json, &why);
    at = node_at(f->scratch, object, line->path, true);
    if (!value || !at)
        fail_msg("%.*s: %s", STR_F(line->path), why);
    at->type = value->type;
    at->text = value->text;
    at->first = value->first;
    at->last = value->last;
    return check(f, line->facts, line->object, object);
}

static void good_objects_pass(void **state)
{
    static const char *const names[] = {"pod",     "plain",      "shared", "share",
                                        "service", "config-map", "secret", "claim"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(names); i++) {
        const char *bad = check(f, STR(""), str_c(names[i]), node_get(f->good, names[i]));

        if (bad)
            fail_msg("%s is good, but %s", names[i], bad);
    }
}

static void bad_objects_are_found(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < f->n_lines; i++) {
        if (!check_line(f, &f->lines[i]))
            fail_msg("not found: %.*s %.*s %.*s", STR_F(f->lines[i].object),
                     STR_F(f->lines[i].path), STR_F(f->lines[i].json));
        arena_reset(f->scratch);
    }
    print_message("%zu bad objects, all found\n", f->n_lines);
}

/* With the constraint out of force some bad object passes. */
static bool is_needed(struct fixture *f, size_t constraint)
{
    bool needed = false;

    rules_disable(f->rules, constraint);
    for (size_t i = 0; i < f->n_lines && !needed; i++) {
        needed = !check_line(f, &f->lines[i]);
        arena_reset(f->scratch);
    }
    rules_disable(f->rules, SIZE_MAX);
    return needed;
}

static void every_constraint_is_what_finds_something(void **state)
{
    struct fixture *f = *state;
    size_t missing = 0;

    for (size_t i = 0; i < rules_count(f->rules); i++) {
        if (is_needed(f, i))
            continue;
        print_message("no bad object for %.*s\n", STR_F(rules_name(f->arena, f->rules, i)));
        missing++;
    }
    assert_int_equal(missing, 0);
    print_message("%zu constraints, each the only one that finds something\n",
                  rules_count(f->rules));
}

/* Puts an unknown member into every object below n, one at a time. */
static size_t try_unknown(struct fixture *f, struct str name, struct node *root, struct node *n)
{
    struct node unknown = {.type = NODE_STRING, .key = STR("x/unknown"), .text = STR("y")};
    struct node *first = n->first, *last = n->last;
    size_t tried = 0;

    if (n->type == NODE_OBJECT && !str_eqc(n->key, "requests") && !str_eqc(n->key, "limits") &&
        !str_eqc(n->key, "data") && !str_eqc(n->key, "binaryData") &&
        !str_eqc(n->key, "nodeSelector")) {
        unknown.next = first;
        n->first = &unknown;
        n->last = last ? last : &unknown;
        if (!check(f, STR(""), name, root))
            fail_msg("an unknown member of %.*s is not found", STR_F(n->key));
        n->first = first;
        n->last = last;
        tried++;
    }
    for (struct node *below = n->first; below; below = below->next)
        tried += try_unknown(f, name, root, below);
    return tried;
}

static void unknown_members_are_found(void **state)
{
    static const char *const names[] = {"pod", "service", "config-map", "secret", "claim"};
    struct fixture *f = *state;
    size_t tried = 0;

    for (size_t i = 0; i < COUNT(names); i++) {
        struct node *object = node_copy(f->arena, node_get(f->good, names[i]));

        tried += try_unknown(f, str_c(names[i]), object, object);
    }
    print_message("%zu places, an unknown member found in each\n", tried);
}

static void what_is_no_json_is_found(void **state)
{
    static const char *const texts[] = {
        "",    "{",        "{\"a\":1,\"a\":2}", "[1,]", "01", "\"\\x\"", "\"\\ud800\"",
        "{}x", "\"\x01\"", "{\"a\" 1}",         "nul"};
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *why = NULL;

        assert_null(node_read(f->scratch, str_c(texts[i]), &why));
        assert_non_null(why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_objects_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_objects_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(every_constraint_is_what_finds_something, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_members_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_json_is_found, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
