/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation: a walk over the tree. An error is a value, which && and || absorb as CEL prescribes.
 * Must never go on once the cost limit is passed, and must stay within its arena. Source: cel-spec
 * langdef.md; cel-go interpreter/runtimecost.go for what a step costs. */
#include "impl.h"

#include <string.h>

#define COST_LIST 10
#define COST_MAP  30
#define COST_NEW  40 /* an object */

static struct cel_value eval(struct cel_run *r, const struct cel_node *x);

void cel_charge(struct cel_run *r, uint64_t units)
{
    if (units > (uint64_t)(r->limit - r->cost)) {
        r->cost = r->limit;
        r->over = true;
    } else {
        r->cost += (int64_t)units;
    }
}

void cel_charge_walk(struct cel_run *r, size_t steps)
{
    cel_charge(r, steps / 4);
}

/* Literals, logic and conditions cost nothing upstream, and a source may have thousands. */
static void charge_step(struct cel_run *r, const struct cel_node *x)
{
    r->steps += x->op == CEL_COND ? 4 : 1;
    if (r->steps < 16)
        return;
    r->steps = 0;
    cel_charge(r, 1);
}

void cel_charge_text(struct cel_run *r, size_t bytes)
{
    cel_charge(r, (bytes + 9) / 10);
}

void cel_charge_long(struct cel_run *r, struct cel_value v)
{
    if (v.kind == CEL_STRING && v.s.n > 32)
        cel_charge_text(r, v.s.n - 32);
}

void *cel_room(struct cel_run *r, size_t n)
{
    if (n > arena_left(r->arena)) {
        r->over = true;
        return NULL;
    }
    return arena_alloc(r->arena, n ? n : 1);
}

static struct cel_value ended(struct cel_run *r)
{
    r->over = true;
    return (struct cel_value){.kind = CEL_ERROR,
                              .s = STR("operation cancelled: actual cost limit exceeded")};
}

/* ---- names and members ---- */

static struct cel_value eval_name(struct cel_run *r, const struct cel_node *x)
{
    const struct cel_scope *s = r->scope;
    size_t passed = 0;

    for (; s && !str_eq(s->name, x->name); s = s->up)
        passed++;
    cel_charge_walk(r, passed / 4);
    if (s)
        return s->value;
    for (size_t i = 0; i < r->activation->n; i++) {
        if (str_eqc(x->name, r->activation->variables[i].name))
            return r->activation->variables[i].value;
    }
    if (str_word_index("bool|int|uint|double|string|bytes|list|map|type", x->name) >= 0)
        return cel_type(x->name);
    if (str_eqc(x->name, "null_type"))
        return cel_type(STR("null_type"));
    return cel_error(r, "no such attribute(s): %.*s", STR_F(x->name));
}

static bool member(struct cel_run *r, struct cel_value from, struct str name, struct cel_value *ret)
{
    if (from.kind == CEL_VARIABLES && r->activation->member) {
        *ret = r->activation->member(r->activation->ctx, r, name);
        return true;
    }
    if (from.kind == CEL_OBJECT)
        from = (struct cel_value){.kind = CEL_MAP, .map = &from.object->fields};
    return from.kind == CEL_MAP && cel_find(r, from, cel_string(name), ret);
}

static struct cel_value request_resource(struct cel_run *r)
{
    for (size_t i = 0; i < r->activation->n; i++) {
        if (!strcmp(r->activation->variables[i].name, "authorizer.requestResource"))
            return r->activation->variables[i].value;
    }
    return cel_error(r, "no such attribute(s): authorizer.requestResource");
}

/* A select through an optional, or a `.?`: absent members are none, not an error. */
static struct cel_value select_optional(struct cel_run *r, struct cel_value from, struct str name)
{
    struct cel_value found;

    if (from.kind == CEL_OPTIONAL) {
        if (!from.inner)
            return from;
        from = *from.inner;
    }
    if (from.kind != CEL_MAP && from.kind != CEL_VARIABLES && from.kind != CEL_OBJECT)
        return cel_no_overload(r);
    return member(r, from, name, &found) ? cel_some(r, found) : cel_none();
}

static struct cel_value eval_select(struct cel_run *r, const struct cel_node *x)
{
    struct cel_value from = eval(r, x->args[0]), found;

    if (from.kind == CEL_ERROR)
        return from;
    cel_charge(r, 1);
    if (x->optional || from.kind == CEL_OPTIONAL)
        return select_optional(r, from, x->name);
    if (from.kind == CEL_AUTHORIZER && str_eqc(x->name, "requestResource"))
        return request_resource(r);
    if (member(r, from, x->name, &found))
        return found;
    if (from.kind != CEL_MAP && from.kind != CEL_OBJECT)
        return from.kind == CEL_LIST   ? cel_error(r, "unsupported index type 'string' in list")
               : from.kind == CEL_NULL ? cel_error(r, "no such key: %.*s", STR_F(x->name))
                                       : cel_no_overload(r);
    return cel_error(r, "no such key: %.*s", STR_F(x->name));
}

static struct cel_value eval_has(struct cel_run *r, const struct cel_node *x)
{
    struct cel_value from = eval(r, x->args[0]), found;

    if (from.kind == CEL_ERROR)
        return from;
    if (from.kind == CEL_OPTIONAL) {
        if (!from.inner)
            return cel_bool(false);
        from = *from.inner;
    }
    if (from.kind == CEL_VARIABLES)
        return cel_bool(true);
    if (from.kind != CEL_MAP && from.kind != CEL_OBJECT)
        return cel_no_overload(r);
    return cel_bool(member(r, from, x->name, &found));
}

/* ---- operators that need not evaluate all operands ---- */

/* One false decides &&, one true ||, whatever errors the other operands have. */
static struct cel_value eval_logic(struct cel_run *r, const struct cel_node *x)
{
    bool decisive = x->op == CEL_OR;
    struct cel_value first = cel_bool(!decisive);

    for (size_t i = 0; i < x->n && !r->over; i++) {
        struct cel_value v = eval(r, x->args[i]);

        if (v.kind == CEL_BOOL && v.b == decisive)
            return v;
        if (v.kind != CEL_BOOL && first.kind != CEL_ERROR)
            first = v.kind == CEL_ERROR ? v : cel_no_overload(r);
    }
    return first;
}

static struct cel_value eval_condition(struct cel_run *r, const struct cel_node *x)
{
    struct cel_value v = eval(r, x->args[0]);

    if (v.kind == CEL_ERROR)
        return v;
    if (v.kind != CEL_BOOL)
        return cel_no_overload(r);
    return eval(r, x->args[v.b ? 1 : 2]);
}

/* ---- calls ---- */

static bool fits(const struct cel_function *f, const struct cel_node *x, const struct cel_value *a)
{
    const char *type = f->args;

    if (f->member != x->member)
        return false;
    for (size_t i = 0; i < x->n; i++) {
        if (!*type || !cel_kind_fits(*type, a[i].kind))
            return false;
        type = cel_type_skip(type);
    }
    return !*type;
}

/* `a.or(b)` and `a.orValue(b)` evaluate b only when a is none. */
static bool is_lazy(const struct cel_node *x, struct cel_value first)
{
    return x->member && x->n == 2 && first.kind == CEL_OPTIONAL && first.inner &&
           (str_eqc(x->name, "or") || str_eqc(x->name, "orValue"));
}

static struct cel_value eval_call(struct cel_run *r, const struct cel_node *x)
{
    struct cel_value small[4], *a = small;

    if (x->n > COUNT(small) && !(a = cel_room(r, x->n * sizeof(*a))))
        return ended(r);
    for (size_t i = 0; i < x->n; i++) {
        a[i] = eval(r, x->args[i]);
        if (a[i].kind == CEL_ERROR)
            return a[i];
        if (!i && is_lazy(x, a[0]))
            return str_eqc(x->name, "or") ? a[0] : *a[0].inner;
    }
    cel_charge(r, 1);
    r->node = x;
    for (const struct cel_function *const *f = x->functions; *f; f++) {
        if (fits(*f, x, a))
            return (*f)->call(r, a, x->n);
    }
    return cel_no_overload(r);
}

/* ---- literals of lists and maps ---- */

/* Element or field i is `?` and none; *v: what it holds otherwise, or an error. */
static bool is_absent(struct cel_run *r, const struct cel_node *x, size_t i, struct cel_value *v)
{
    if (v->kind == CEL_ERROR || !x->optionals || !x->optionals[i])
        return false;
    if (v->kind != CEL_OPTIONAL) {
        *v = cel_no_overload(r);
        return false;
    }
    if (!v->inner)
        return true;
    *v = *v->inner;
    return false;
}

static struct cel_value eval_list(struct cel_run *r, const struct cel_node *x)
{
    struct cel_value *items = cel_room(r, x->n * sizeof(*items));
    size_t n = 0;

    if (!items)
        return ended(r);
    cel_charge(r, COST_LIST);
    for (size_t i = 0; i < x->n; i++) {
        struct cel_value v = eval(r, x->args[i]);

        if (is_absent(r, x, i, &v))
            continue;
        if (v.kind == CEL_ERROR)
            return v;
        items[n++] = v;
    }
    return cel_new_list(r, items, n);
}

static struct cel_value new_map(struct cel_run *r, const struct cel_value *keys,
                                const struct cel_value *values, size_t n)
{
    struct cel_map *m = ARENA_NEW(r->arena, struct cel_map);

    *m = (struct cel_map){n, keys, values};
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}

static bool is_key(struct cel_value v)
{
    return v.kind == CEL_STRING || v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_BOOL;
}

static struct cel_value eval_map(struct cel_run *r, const struct cel_node *x)
{
    struct cel_value *keys = cel_room(r, 2 * x->n * sizeof(*keys)), *values;
    size_t n = 0;

    if (!keys)
        return ended(r);
    values = keys + x->n / 2;
    cel_charge(r, COST_MAP);
    for (size_t i = 0; i < x->n && !r->over; i += 2) {
        struct cel_value k = eval(r, x->args[i]), v = eval(r, x->args[i + 1]), other;
        struct cel_map so_far = {n, keys, values};
        struct cel_value map = {.kind = CEL_MAP, .map = &so_far};

        if (k.kind == CEL_ERROR || v.kind == CEL_ERROR)
            return k.kind == CEL_ERROR ? k : v;
        if (!is_key(k))
            return cel_error(r, "unsupported key type");
        if (is_absent(r, x, i, &v))
            continue;
        if (v.kind == CEL_ERROR)
            return v;
        if (cel_find(r, map, k, &other))
            return cel_error(r, "Failed with repeated key");
        keys[n] = k;
        values[n++] = v;
    }
    return new_map(r, keys, values, n);
}

static struct cel_value eval_object(struct cel_run *r, const struct cel_node *x)
{
    struct cel_value *keys = cel_room(r, 2 * x->n * sizeof(*keys)), *values;
    struct cel_object *made;
    size_t n = 0;

    if (!keys)
        return ended(r);
    values = keys + x->n / 2;
    cel_charge(r, COST_NEW);
    for (size_t i = 0; i < x->n && !r->over; i += 2) {
        struct cel_value v = eval(r, x->args[i + 1]);

        if (is_absent(r, x, i, &v))
            continue;
        if (v.kind == CEL_ERROR)
            return v;
        keys[n] = x->args[i]->value;
        values[n++] = v;
    }
    made = ARENA_NEW(r->arena, struct cel_object);
    *made = (struct cel_object){x->name, {n, keys, values}};
    return (struct cel_value){.kind = CEL_OBJECT, .object = made};
}

/* ---- macros over lists and maps ---- */

struct folding {
    const struct cel_node *x;
    struct cel_value result; /* of all, exists: so far */
    struct cel_value *items, *keys;
    size_t n, cap;
    size_t found; /* of exists_one */
    bool done;
};

/* all, exists: errors count only when nothing decides. */
static void step_decide(struct cel_run *r, struct folding *f, bool decisive)
{
    struct cel_value v = eval(r, f->x->args[1]);

    if (v.kind == CEL_BOOL && v.b == decisive) {
        f->result = v;
        f->done = true;
    } else if (v.kind != CEL_BOOL && f->result.kind != CEL_ERROR) {
        f->result = v.kind == CEL_ERROR ? v : cel_no_overload(r);
    }
}

/* The predicate in front of a transform; true: go on with this element. */
static bool passes(struct cel_run *r, struct folding *f, const struct cel_node *predicate)
{
    struct cel_value v = eval(r, predicate);

    if (v.kind == CEL_BOOL)
        return v.b;
    f->result = v.kind == CEL_ERROR ? v : cel_no_overload(r);
    f->done = true;
    return false;
}

static void step_collect(struct cel_run *r, struct folding *f, struct cel_value item,
                         struct cel_value key)
{
    const struct cel_node *x = f->x;
    bool filter = x->fold == FOLD_FILTER;

    if ((filter || x->n == 3) && !passes(r, f, x->args[1]))
        return;
    if (!filter)
        item = eval(r, x->args[x->n - 1]);
    if (item.kind == CEL_ERROR) {
        f->result = item;
        f->done = true;
        return;
    }
    f->keys[f->n] = key;
    f->items[f->n++] = item;
    cel_charge(r, 1);
}

static bool grow(struct cel_run *r, struct folding *f)
{
    size_t cap = f->cap ? 2 * f->cap : 4;
    struct cel_value *keys = cel_room(r, 2 * cap * sizeof(*keys));

    if (!keys)
        return false;
    if (f->n) {
        memcpy(keys, f->keys, f->n * sizeof(*keys));
        memcpy(keys + cap, f->items, f->n * sizeof(*keys));
    }
    f->keys = keys;
    f->items = keys + cap;
    f->cap = cap;
    return true;
}

/* An error, or null. */
static struct cel_value insert(struct cel_run *r, struct folding *f, struct cel_value key,
                               struct cel_value value)
{
    struct cel_map so_far = {f->n, f->keys, f->items};
    struct cel_value map = {.kind = CEL_MAP, .map = &so_far}, other;

    if (cel_find(r, map, key, &other))
        return cel_error(r, "insert failed: key %.*s already exists", STR_F(cel_text(r, key)));
    if (f->n == f->cap && !grow(r, f))
        return ended(r);
    f->keys[f->n] = key;
    f->items[f->n++] = value;
    return cel_null();
}

/* Each step gives a map, whose entries are added. */
static void step_insert(struct cel_run *r, struct folding *f)
{
    const struct cel_node *x = f->x;
    struct cel_value v;
    struct cel_map entries;

    if (x->n == 3 && !passes(r, f, x->args[1]))
        return;
    v = eval(r, x->args[x->n - 1]);
    if (v.kind != CEL_MAP) {
        f->result = v.kind == CEL_ERROR
                        ? v
                        : cel_error(r, "no such overload: cel.@mapInsert(map, %.*s)",
                                    STR_F(cel_kind_name(v)));
        f->done = true;
        return;
    }
    entries = cel_entries(r, v);
    for (size_t i = 0; i < entries.n && !f->done && !r->over; i++) {
        v = insert(r, f, entries.keys[i], entries.values[i]);
        f->done = v.kind == CEL_ERROR;
        f->result = f->done ? v : f->result;
    }
    cel_charge(r, 1);
}

static void step(struct cel_run *r, struct folding *f, struct cel_value item, struct cel_value key)
{
    switch (f->x->fold) {
    case FOLD_ALL:
        step_decide(r, f, false);
        return;
    case FOLD_EXISTS:
        step_decide(r, f, true);
        return;
    case FOLD_ONE:
        f->found += passes(r, f, f->x->args[1]);
        return;
    case FOLD_TRANSFORM_ENTRIES:
        step_insert(r, f);
        return;
    default:
        step_collect(r, f, item, key);
    }
}

/* Sorts items by keys; the keys have an order, or it is an error. */
static struct cel_value sorted(struct cel_run *r, struct folding *f)
{
    /* Insertion with charges: a list is short, or the limit ends it. */
    struct cel_value *keys = f->items, *values = f->keys;
    int order;

    for (size_t i = 1; i < f->n && !r->over; i++) {
        for (size_t j = i; j; j--) {
            struct cel_value k = keys[j], v = values[j];

            if (!cel_compare(r, keys[j - 1], k, &order))
                return cel_error(r, "list elements must be comparable");
            cel_charge(r, 1);
            if (order <= 0)
                break;
            keys[j] = keys[j - 1];
            values[j] = values[j - 1];
            keys[j - 1] = k;
            values[j - 1] = v;
        }
    }
    return cel_new_list(r, values, f->n);
}

static struct cel_value folded(struct cel_run *r, struct folding *f)
{
    if (f->result.kind == CEL_ERROR)
        return f->result;
    switch (f->x->fold) {
    case FOLD_ALL:
    case FOLD_EXISTS:
        return f->result;
    case FOLD_ONE:
        return cel_bool(f->found == 1);
    case FOLD_SORT_BY:
        return sorted(r, f);
    case FOLD_TRANSFORM_MAP:
    case FOLD_TRANSFORM_ENTRIES:
        return new_map(r, f->keys, f->items, f->n);
    default:
        return cel_new_list(r, f->items, f->n);
    }
}

static void run_fold(struct cel_run *r, struct folding *f, struct cel_map each, bool over_map)
{
    const struct cel_node *x = f->x;
    struct cel_scope first = {r->scope, x->name, cel_null()},
                     second = {&first, x->second, cel_null()};
    const struct cel_scope *outer = r->scope;

    r->scope = x->second.n ? &second : &first;
    for (size_t i = 0; i < each.n && !f->done && !r->over; i++) {
        struct cel_value key = over_map ? each.keys[i] : cel_int((int64_t)i);

        first.value = x->second.n || over_map ? key : each.values[i];
        second.value = each.values[i];
        cel_charge(r, 1);
        step(r, f, x->fold == FOLD_TRANSFORM_MAP ? each.values[i] : first.value,
             x->fold == FOLD_SORT_BY ? first.value : key);
    }
    r->scope = outer;
}

static struct cel_value eval_optional_map(struct cel_run *r, const struct cel_node *x,
                                          struct cel_value from)
{
    struct cel_scope scope = {r->scope, x->name, cel_null()};
    const struct cel_scope *outer = r->scope;
    struct cel_value v;

    if (from.kind != CEL_OPTIONAL)
        return cel_no_overload(r);
    if (!from.inner)
        return from;
    scope.value = *from.inner;
    r->scope = &scope;
    v = eval(r, x->args[1]);
    r->scope = outer;
    if (v.kind == CEL_ERROR || x->fold == FOLD_OPT_FLAT)
        return v.kind == CEL_ERROR || v.kind == CEL_OPTIONAL ? v : cel_no_overload(r);
    return cel_some(r, v);
}

static struct cel_value eval_fold(struct cel_run *r, const struct cel_node *x)
{
    struct folding f = {.x = x, .result = cel_bool(x->fold == FOLD_ALL)};
    struct cel_value from = eval(r, x->args[0]);
    struct cel_map each = {0};

    if (from.kind == CEL_ERROR)
        return from;
    if (x->fold == FOLD_OPT_MAP || x->fold == FOLD_OPT_FLAT)
        return eval_optional_map(r, x, from);
    if (from.kind == CEL_MAP) {
        each = cel_entries(r, from);
    } else if (from.kind == CEL_LIST) {
        struct cel_list l = cel_items(r, from);

        each = (struct cel_map){l.n, NULL, l.items};
    } else {
        return cel_error(r, "got '%s', expected iterable type",
                         from.kind == CEL_STRING ? "types.String" : cel_kind_name(from).p);
    }
    if (x->fold == FOLD_TRANSFORM_ENTRIES) {
        cel_charge(r, COST_MAP);
    } else if (x->fold >= FOLD_MAP) {
        f.items = cel_room(r, 2 * each.n * sizeof(*f.items));
        if (!f.items)
            return ended(r);
        f.keys = f.items + each.n;
        cel_charge(r, COST_LIST);
    }
    run_fold(r, &f, each, from.kind == CEL_MAP);
    return folded(r, &f);
}

/* ---- the tree ---- */

static struct cel_value eval(struct cel_run *r, const struct cel_node *x)
{
    if (r->over || arena_over(r->arena))
        return ended(r);
    if (x->op != CEL_IDENT && x->op != CEL_SELECT && x->op != CEL_CALL)
        charge_step(r, x);
    switch (x->op) {
    case CEL_LITERAL:
        return x->value;
    case CEL_IDENT:
        cel_charge(r, 1);
        return eval_name(r, x);
    case CEL_SELECT:
        return eval_select(r, x);
    case CEL_HAS:
        return eval_has(r, x);
    case CEL_CALL:
        return eval_call(r, x);
    case CEL_AND:
    case CEL_OR:
        return eval_logic(r, x);
    case CEL_COND:
        return eval_condition(r, x);
    case CEL_NEW_LIST:
        return eval_list(r, x);
    case CEL_NEW_MAP:
        return eval_map(r, x);
    case CEL_NEW_OBJECT:
        return eval_object(r, x);
    case CEL_FOLD:
        return eval_fold(r, x);
    }
    return cel_no_overload(r);
}

struct cel_value cel_evaluate(struct arena *a, const struct cel_program *p,
                              const struct cel_activation *activation, int64_t limit, int64_t *cost)
{
    struct cel_run r = {.arena = a, .activation = activation, .limit = limit};
    struct cel_value v = eval(&r, p->root);

    *cost += r.cost;
    return r.over ? ended(&r) : v;
}
