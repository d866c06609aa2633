/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests by table: a data file has one case per line, a JSON object made with upstream's own Go code
 * (see data/README.md). Every case is run, each in an arena of its own; what differs is printed. */
#pragma once

#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include <sublet/schema.h>

enum { CASE_LINE_MAX = 4 * 1024 * 1024 };

struct tested {
    struct arena *arena;
    const cJSON *json; /* the line */
    const char *name;
    unsigned failures;
};

typedef void (*case_cb)(struct tested *t);

static inline void case_fails(struct tested *t, const char *what, struct str got, struct str want)
{
    t->failures++;
    print_error("%s: %s\n  got  %.*s\n  want %.*s\n", t->name, what, STR_F(got), STR_F(want));
}

/* Where two trees differ first, to be read by a person. */
static inline void print_difference(struct arena *a, const char *path, const cJSON *got,
                                    const cJSON *want)
{
    struct arena *copy = arena_new(0);

    if (json_is_object(got) && json_is_object(want)) {
        json_each(w, want)
        {
            const cJSON *g = json_get(got, w->string);

            if (!json_equal(g, w))
                print_difference(a, arena_printf(a, "%s.%s", path, w->string).p, g, w);
        }
        json_each(g, got)
        {
            if (!json_get(want, g->string))
                print_error("%s.%s: not wanted: %s\n", path, g->string, json_text(copy, g).p);
        }
    } else {
        print_error("%s:\n got  %s\n want %s\n", path, got ? json_text(copy, got).p : "nothing",
                    json_text(copy, want).p);
    }
    arena_free(copy);
}

static inline void case_compare(struct tested *t, const cJSON *got, const cJSON *want)
{
    if (json_equal(got, want))
        return;
    t->failures++;
    print_difference(t->arena, t->name, got, want);
}

/* What a call returned, against the case's code and message. True when a result is to be compared.
 */
static inline bool case_returned(struct tested *t, int failed, const struct err *err)
{
    int64_t code = json_i64_at(t->json, "code", 0);
    struct str message = json_str_at(t->json, "message");

    if (!failed && !code)
        return true;
    if (!failed || !code) {
        case_fails(t, "outcome", failed ? err->message : STR("no error"),
                   code ? message : STR("no error"));
        return false;
    }
    if (err->kind->code != code || !str_eq(err->message, message))
        case_fails(t, "error", err->message, message);
    return false;
}

static inline uint32_t case_root(const struct tested *t)
{
    struct str rest = json_str_at(t->json, "kind");
    struct str group = str_cut(&rest, '/'), version = str_cut(&rest, '/');
    uint32_t node = schema_builtin_root(group, version, rest);

    if (!node)
        fail_msg("%s: unknown kind", t->name);
    return node;
}

static inline unsigned case_run(struct str line, case_cb run)
{
    struct tested t = {.arena = arena_new(0)};
    struct err err;
    cJSON *json;

    err_init(&err, t.arena);
    if (json_parse(t.arena, line, &json, &err))
        fail_msg("data: %.*s", STR_F(err.message));
    t.json = json;
    t.name = json_str_at(json, "name").p;
    run(&t);
    arena_free(t.arena);
    return t.failures ? 1 : 0;
}

/* SUBLET_CASES names another folder, to run more cases than the tree keeps. */
static inline void run_cases(const char *file, size_t at_least, case_cb run)
{
    const char *folder = getenv("SUBLET_CASES");
    char path[4096], *line = NULL;
    size_t room = 0, cases = 0;
    unsigned failures = 0;
    ssize_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder ? folder : CASES_FOLDER, file);
    f = fopen(path, "r");
    if (!f)
        fail_msg("cannot open %s: %s", path, strerror(errno));
    while ((n = getline(&line, &room, f)) > 0) {
        failures += case_run((struct str){line, (size_t)n}, run);
        cases++;
    }
    fclose(f);
    (free)(line);
    print_message("%zu cases\n", cases);
    if (failures)
        fail_msg("%u of %zu cases differ", failures, cases);
    assert_true(cases >= at_least);
}
