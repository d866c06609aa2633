/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled expression: parsed, checked, its calls linked and its literal patterns compiled. */
#include "impl.h"

#include <string.h>

static const char *const PATTERN_FUNCTIONS = "matches|find|findAll";

static int check_pattern(struct arena *a, struct cel_program *p, struct cel_node *x,
                         struct err *err)
{
    struct cel_node *last = x->n ? x->args[x->n - 1] : NULL;
    size_t at = str_eqc(x->name, "findAll") && x->n == 3 ? 1 : x->n - 1;
    const char *problem;

    if (!last || str_word_index(PATTERN_FUNCTIONS, x->name) < 0)
        return 0;
    last = x->args[at];
    if (last->op != CEL_LITERAL || last->value.kind != CEL_STRING)
        return 0;
    problem = pattern_check(a, last->value.s);
    if (problem)
        return cel_report(a, p->source, last->at, err, "invalid %.*s argument", STR_F(x->name));
    x->pattern = p->patterns = pattern_new(a, last->value.s, p->patterns);
    return 0;
}

static int link_calls(struct arena *a, struct cel_program *p, struct cel_node *x, struct err *err)
{
    for (size_t i = 0; i < x->n; i++) {
        if (link_calls(a, p, x->args[i], err))
            return -1;
    }
    if (x->op != CEL_CALL)
        return 0;
    x->function = cel_function_first(x->name);
    return check_pattern(a, p, x, err);
}

int cel_compile(struct arena *a, struct str source, const struct cel_environment *e,
                struct cel_program **ret, struct err *err)
{
    struct cel_program *p = ARENA_NEW(a, struct cel_program);

    p->source = arena_str(a, source);
    if (cel_parse(a, p->source, p, err) || cel_check_types(a, p, e, err))
        return -1;
    if (link_calls(a, p, p->root, err)) {
        cel_program_release(p);
        return -1;
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

struct str cel_program_source(const struct cel_program *p)
{
    return p->source;
}
