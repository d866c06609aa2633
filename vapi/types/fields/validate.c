/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that an applied configuration has its type: the walks that follow rely on it. Source:
 * structured-merge-diff typed/validate.go. */
#include "fields.h"

#define MAX_PROBLEMS 64

struct walk {
    struct arena *arena;
    struct str problems[MAX_PROBLEMS];
    size_t n;
};

static void note(struct walk *w, const struct element_step *at, const char *problem)
{
    struct buf b = BUF_INIT(16 * 1024);

    if (w->n == MAX_PROBLEMS)
        return;
    element_path(&b, at);
    buf_addc(&b, b.n ? ": " : "");
    buf_addc(&b, problem);
    w->problems[w->n++] = arena_str(w->arena, buf_str(&b));
    buf_fini(&b);
}

static void validate(struct walk *w, struct field_type t, const cJSON *value,
                     const struct element_step *at);

static const char *expected(struct walk *w, const char *what, const cJSON *value)
{
    return arena_printf(w->arena, "expected %s, got %s", what, go_value(w->arena, value)).p;
}

static void validate_map(struct walk *w, const struct atom *t, const cJSON *value,
                         const struct element_step *at)
{
    if (json_is_null(value))
        return;
    if (!json_is_object(value)) {
        note(w, at, expected(w, "map", value));
        return;
    }
    json_each(member, value)
    {
        struct element e = element_field(member->string);
        struct element_step here = {at, &e};
        bool declared;
        struct field_type type = type_member(t, member->string, &declared);

        if (type.form == TYPE_NONE) {
            note(w, &here, "field not declared in schema");
            return;
        }
        validate(w, type, member, &here);
    }
}

static void validate_items(struct walk *w, const struct atom *t, const cJSON *value,
                           const struct element_step *at)
{
    struct items items;
    struct str why = STR_NULL;
    bool bad = items_of(w->arena, t, value, &items, &why) != 0;

    /* Upstream also checks the items before the one without identity. */
    for (uint32_t i = 0; !bad && i < items.n; i++) {
        struct element_step here = {at, &items.at[i].element};

        if (items.at[i].twin != i) {
            const struct element *e = &items.at[i].element;
            struct buf b = BUF_INIT(16 * 1024);

            buf_addc(&b, "duplicate entries for key ");
            element_text(&b, e);
            note(w, at, arena_str(w->arena, buf_str(&b)).p);
            buf_fini(&b);
        }
        validate(w, type_item(t), items.at[i].value, &here);
    }
    if (bad)
        note(w, at, why.p);
}

static void validate_list(struct walk *w, const struct atom *t, const cJSON *value,
                          const struct element_step *at)
{
    int64_t i = 0;

    if (json_is_null(value))
        return;
    if (!json_is_array(value)) {
        note(w, at, expected(w, "list", value));
        return;
    }
    if (!t->atomic_list) {
        validate_items(w, t, value, at);
        return;
    }
    json_each(item, value)
    {
        struct element e = {.kind = ELEMENT_INDEX, .index = i++};
        struct element_step here = {at, &e};

        validate(w, type_item(t), item, &here);
    }
}

static void validate(struct walk *w, struct field_type t, const cJSON *value,
                     const struct element_step *at)
{
    struct atom atom;
    const char *problem;

    atom_of(t, &atom);
    switch (atom_choose(atom_deduce(&atom, value))) {
    case ATOM_MAP:
        validate_map(w, &atom, value, at);
        return;
    case ATOM_LIST:
        validate_list(w, &atom, value, at);
        return;
    case ATOM_SCALAR:
        problem = atom_problem(w->arena, &atom, value);
        if (problem)
            note(w, at, problem);
        return;
    default:
        note(w, at, "schema error: invalid atom: inlined");
    }
}

int typed_validate(struct arena *a, struct field_type t, const cJSON *value, struct err *err)
{
    struct walk *w = ARENA_NEW(a, struct walk);
    struct buf b = BUF_INIT(256 * 1024);

    w->arena = a;
    validate(w, t, value, &(struct element_step){NULL, NULL});
    if (!w->n)
        return 0;
    buf_addc(&b, w->n > 1 ? "errors:" : "");
    for (size_t i = 0; i < w->n; i++) {
        buf_addc(&b, w->n > 1 ? "\n  " : "");
        buf_add(&b, w->problems[i]);
    }
    err_set(err, &ERR_BAD_REQUEST, "%.*s", STR_F(buf_str(&b)));
    buf_fini(&b);
    return -1;
}
