/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled expression: parsed, checked, its calls linked and its literal patterns compiled. */
#include "impl.h"

#include <string.h>

#include <sublet/clock.h>

#define MOST_PROBLEMS 100 /* in one message, as cel-go */

static const char *const PATTERN_FUNCTIONS = "matches|find|findAll";

/* Problems of literals follow each other in one message. */
struct linking {
    struct arena *arena;
    struct cel_program *program;
    struct buf problems;
    size_t n_problems;
};

static void report(struct linking *l, const struct cel_node *x, const struct cel_node *literal)
{
    struct err err;

    if (l->n_problems++ >= MOST_PROBLEMS)
        return;
    err_init(&err, l->arena);
    cel_report(l->arena, l->program->source, literal->at, &err, "invalid %.*s argument",
               STR_F(x->name));
    buf_printf(&l->problems, "%s%.*s", l->n_problems > 1 ? "\n" : "", STR_F(err.message));
}

static int refuse(struct linking *l, struct err *err)
{
    if (l->n_problems > MOST_PROBLEMS)
        buf_printf(&l->problems, "\n%zu more errors were truncated", l->n_problems - MOST_PROBLEMS);
    err_set(err, &ERR_INVALID, "%.*s", STR_F(buf_str(&l->problems)));
    buf_fini(&l->problems);
    return -1;
}

static bool is_text(const struct cel_node *x)
{
    return x->op == CEL_LITERAL && x->value.kind == CEL_STRING;
}

static void check_time(struct linking *l, const struct cel_node *x)
{
    int64_t value;

    if (x->n != 1 || x->member || !is_text(x->args[0]))
        return;
    if ((str_eqc(x->name, "timestamp") && !time_parse(x->args[0]->value.s, &value)) ||
        (str_eqc(x->name, "duration") && !duration_parse(x->args[0]->value.s, &value)))
        report(l, x, x->args[0]);
}

static void check_pattern(struct linking *l, struct cel_node *x)
{
    struct cel_node *pattern;

    if (x->n < 2 || str_word_index(PATTERN_FUNCTIONS, x->name) < 0 || !is_text(x->args[1]))
        return;
    pattern = x->args[1];
    if (pattern_check(l->arena, pattern->value.s))
        report(l, x, pattern);
    else
        x->pattern = l->program->patterns =
            pattern_new(l->arena, pattern->value.s, l->program->patterns);
}

static const struct cel_function *const *rows_of(struct arena *a, struct str name)
{
    const struct cel_function *first = cel_function_first(name), **rows;
    size_t n = 0;

    for (const struct cel_function *f = first; f; f = cel_function_next(f))
        n++;
    rows = arena_alloc(a, (n + 1) * sizeof(*rows));
    n = 0;
    for (const struct cel_function *f = first; f; f = cel_function_next(f))
        rows[n++] = f;
    return rows;
}

static void link_calls(struct linking *l, struct cel_node *x)
{
    for (size_t i = 0; i < x->n; i++)
        link_calls(l, x->args[i]);
    if (x->op != CEL_CALL)
        return;
    x->functions = rows_of(l->arena, x->name);
    check_pattern(l, x);
    check_time(l, x);
}

int cel_compile(struct arena *a, struct str source, const struct cel_environment *e,
                struct cel_program **ret, struct err *err)
{
    struct cel_program *p = ARENA_NEW(a, struct cel_program);
    struct linking l = {a, p, BUF_INIT(0), 0};

    p->source = arena_str(a, source);
    if (cel_parse(a, p->source, p, err) || cel_check_types(a, p, e, err))
        return -1;
    link_calls(&l, p->root);
    if (l.n_problems) {
        cel_program_release(p);
        return refuse(&l, err);
    }
    *ret = p;
    return 0;
}

void cel_program_release(struct cel_program *p)
{
    if (!p)
        return;
    pattern_free_all(p->patterns);
    p->patterns = NULL;
}

const char *cel_program_type(const struct cel_program *p)
{
    return p->type;
}

static bool names(const struct cel_node *x, struct str name)
{
    if (x->op == CEL_IDENT && str_eq(x->name, name))
        return true;
    for (size_t i = 0; i < x->n; i++) {
        if (names(x->args[i], name))
            return true;
    }
    return false;
}

bool cel_program_names(const struct cel_program *p, struct str name)
{
    return names(p->root, name);
}

unsigned cel_program_depth(const struct cel_program *p)
{
    return p->root->depth;
}

struct str cel_program_source(const struct cel_program *p)
{
    return p->source;
}
