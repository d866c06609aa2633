/* SPDX-License-Identifier: Apache-2.0 */
/* JSONPath as printer columns use it (client-go util/jsonpath without templates): .a, ['a.b'], [0],
 * [-1],
 * [*], .*, ..a is refused, filters [?(@.a.b=="c")] with == and !=. Compiled once; must never
 * recurse deeper than its own length. */
#include <sublet/crd.h>

#include <string.h>

#define MAX_STEPS 64

enum step_kind { STEP_FIELD, STEP_INDEX, STEP_ALL, STEP_FILTER };

struct step {
    enum step_kind kind;
    struct str field; /* or the filter's path, dotted */
    int64_t index;
    bool equals;      /* filter: ==, else != */
    struct str value; /* filter: the string to compare with */
};

struct jsonpath {
    size_t n;
    struct step steps[MAX_STEPS];
};

struct scanner {
    struct arena *arena;
    struct str rest;
    struct jsonpath *path;
    struct str text;
    struct err *err;
};

static int refuse(struct scanner *s, const char *why)
{
    return err_set(s->err, &ERR_BAD_REQUEST, "invalid JSONPath %.*s: %s", STR_F(s->text), why);
}

static int add(struct scanner *s, struct step step)
{
    if (s->path->n == MAX_STEPS)
        return refuse(s, "too many steps");
    s->path->steps[s->path->n++] = step;
    return 0;
}

/* A name after a dot; a backslash escapes the next character. */
static int scan_name(struct scanner *s)
{
    char *name = arena_alloc(s->arena, s->rest.n + 1);
    size_t n = 0, i = 0;

    for (; i < s->rest.n; i++) {
        char c = s->rest.p[i];

        if (c == '\\' && i + 1 < s->rest.n)
            c = s->rest.p[++i];
        else if (c == '.' || c == '[')
            break;
        name[n++] = c;
    }
    s->rest = str_from(s->rest, i);
    if (n == 1 && name[0] == '*')
        return add(s, (struct step){.kind = STEP_ALL});
    return n ? add(s, (struct step){.kind = STEP_FIELD, .field = {name, n}})
             : refuse(s, "a name is missing");
}

static struct str unquote(struct str s)
{
    bool quoted = s.n >= 2 && (s.p[0] == '\'' || s.p[0] == '"') && s.p[s.n - 1] == s.p[0];

    return quoted ? str_sub(s, 1, s.n - 2) : s;
}

static size_t closing(struct str s)
{
    char quote = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (quote)
            quote = s.p[i] == quote ? 0 : quote;
        else if (s.p[i] == '\'' || s.p[i] == '"')
            quote = s.p[i];
        else if (s.p[i] == ']')
            return i;
    }
    return s.n;
}

static int scan_bracket(struct scanner *s)
{
    size_t end = closing(s->rest);
    struct str inside = str_trim(str_sub(s->rest, 0, end));
    int64_t index;

    if (end == s->rest.n)
        return refuse(s, "a bracket is not closed");
    s->rest = str_from(s->rest, end + 1);
    if (str_eqc(inside, "*"))
        return add(s, (struct step){.kind = STEP_ALL});
    if (str_has_prefix(inside, STR("?(")) && str_has_suffix(inside, STR(")"))) {
        struct step step = {.kind = STEP_FILTER};
        size_t at = 0;

        inside = str_trim(str_sub(inside, 2, inside.n - 3)); /* the part between "?(" and ")" */
        while (at + 1 < inside.n &&
               !(inside.p[at + 1] == '=' && (inside.p[at] == '=' || inside.p[at] == '!')))
            at++;
        if (at + 1 >= inside.n || !str_has_prefix(inside, STR("@.")))
            return refuse(s, "only filters like ?(@.a==\"b\") are known");
        step.equals = inside.p[at] == '=';
        step.field = arena_str(s->arena, str_trim(str_sub(inside, 2, at - 2)));
        step.value = unquote(str_trim(str_from(inside, at + 2)));
        return add(s, step);
    }
    if (inside.n && (inside.p[0] == '\'' || inside.p[0] == '"'))
        return add(s, (struct step){.kind = STEP_FIELD, .field = unquote(inside)});
    if (str_to_i64(inside, &index))
        return add(s, (struct step){.kind = STEP_INDEX, .index = index});
    return refuse(s, "what is in the brackets is not known");
}

int jsonpath_compile(struct arena *a, struct str text, struct jsonpath **ret, struct err *err)
{
    struct scanner s = {.arena = a, .rest = arena_str(a, text), .text = text, .err = err};

    s.path = ARENA_NEW(a, struct jsonpath);
    if (text.n > 4096)
        return refuse(&s, "too long");
    if (str_has_prefix(s.rest, STR("$")))
        s.rest = str_from(s.rest, 1);
    while (s.rest.n) {
        char c = s.rest.p[0];

        s.rest = str_from(s.rest, 1);
        int failed = c == '.'   ? (s.rest.n && s.rest.p[0] == '[' ? 0 : scan_name(&s))
                     : c == '[' ? scan_bracket(&s)
                                : refuse(&s, "a step begins with . or [");
        if (failed)
            return -1;
    }
    *ret = s.path;
    return 0;
}

/* --- evaluation --- */

struct walk {
    const struct jsonpath *path;
    jsonpath_cb each;
    void *ctx;
    bool stopped;
};

static void visit(struct walk *w, size_t at, const cJSON *node);

static bool filter_holds(const struct step *step, const cJSON *item)
{
    char path[512];

    if (step->field.n >= sizeof(path))
        return false;
    memcpy(path, step->field.p, step->field.n);
    path[step->field.n] = '\0';
    const cJSON *found = json_path(item, path);
    struct str text = json_is_string(found) ? json_str(found)
                      : json_is_bool(found) ? (json_true(found) ? STR("true") : STR("false"))
                                            : STR_NULL;
    int64_t number, wanted;
    bool equal =
        text.p ? str_eq(text, step->value)
               : json_i64(found, &number) && str_to_i64(step->value, &wanted) && number == wanted;
    return found && equal == step->equals;
}

static void visit_children(struct walk *w, size_t at, const struct step *step, const cJSON *node)
{
    json_each(child, node)
    {
        if (w->stopped)
            return;
        if (step->kind == STEP_ALL || filter_holds(step, child))
            visit(w, at + 1, child);
    }
}

static void visit(struct walk *w, size_t at, const cJSON *node)
{
    if (!node || w->stopped)
        return;
    if (at == w->path->n) {
        w->stopped = !w->each(w->ctx, node);
        return;
    }
    const struct step *step = &w->path->steps[at];
    int64_t count = (int64_t)json_count(node);
    switch (step->kind) {
    case STEP_FIELD:
        visit(w, at + 1, json_is_object(node) ? json_get_str(node, step->field) : NULL);
        return;
    case STEP_INDEX: {
        int64_t i = step->index < 0 ? step->index + count : step->index;

        if (json_is_array(node) && i >= 0 && i < count)
            visit(w, at + 1, json_at(node, (size_t)i));
        return;
    }
    case STEP_ALL:
    case STEP_FILTER:
        visit_children(w, at, step, node);
        return;
    }
}

void jsonpath_eval(const struct jsonpath *p, const cJSON *root, jsonpath_cb each, void *ctx)
{
    struct walk w = {.path = p, .each = each, .ctx = ctx};

    visit(&w, 0, root);
}
