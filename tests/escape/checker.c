/* SPDX-License-Identifier: Apache-2.0 */
/* Reads allowed.rules and walks an object along them; see checker.h. What a check by name does
 * stands in checks.c. */
#include "check.h"

enum { SHAPES_MAX = 128, RULES_MAX = 512, CONSTRAINTS_MAX = 512 };

enum constraint_kind { NEED, PRIVILEGED, WORDS, FACT, CHECK, KEY_CHECK };

struct constraint {
    enum constraint_kind kind;
    struct str text;
    check_fn check;
    size_t shape, line;
    struct str key;
    struct constraint *next;
};

struct rule {
    struct str key, type;
    struct constraint *constraints;
    struct rule *next;
};

struct shape {
    struct str name;
    struct rule *rules, *others; /* others: the rule of `*` */
    struct constraint *checks;   /* of the object as a whole */
};

struct rules {
    struct shape shapes[SHAPES_MAX];
    size_t n_shapes;
    struct constraint *constraints[CONSTRAINTS_MAX];
    size_t n_constraints;
    const struct constraint *off; /* out of force, for a test of the rules */
};

/* ---- reading the rules ---- */

static struct str next_word(struct str *line)
{
    struct str word;
    size_t n = 0;

    *line = str_trim(*line);
    while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t')
        n++;
    word = str_sub(*line, 0, n);
    *line = str_from(*line, n);
    return word;
}

static const struct shape *find_shape(const struct rules *r, struct str name)
{
    for (size_t i = 0; i < r->n_shapes; i++) {
        if (str_eq(r->shapes[i].name, name))
            return &r->shapes[i];
    }
    return NULL;
}

static bool read_constraint(struct constraint *c, struct str word)
{
    if (str_eqc(word, "need")) {
        c->kind = NEED;
    } else if (str_eqc(word, "privileged")) {
        c->kind = PRIVILEGED;
    } else if (str_has_prefix(word, STR("{")) && str_has_suffix(word, STR("}"))) {
        c->kind = WORDS;
        c->text = str_sub(word, 1, word.n - 2);
    } else if (str_has_prefix(word, STR("="))) {
        c->kind = FACT;
        c->text = str_from(word, 1);
    } else if (str_has_prefix(word, STR("@")) || str_has_prefix(word, STR("key@"))) {
        c->kind = word.p[0] == '@' ? CHECK : KEY_CHECK;
        c->text = str_from(word, str_find(word, '@') + 1);
        c->check = check_find(c->text);
        return c->check != NULL;
    } else {
        return false;
    }
    return true;
}

/* What follows in a line as constraints, appended to *list. */
static bool read_constraints(struct arena *a, struct rules *r, struct str line, struct str key,
                             struct constraint **list)
{
    for (struct str word = next_word(&line); word.n; word = next_word(&line)) {
        struct constraint *c = ARENA_NEW(a, struct constraint);

        if (r->n_constraints == CONSTRAINTS_MAX || !read_constraint(c, word))
            return false;
        c->shape = r->n_shapes - 1;
        c->key = key;
        r->constraints[r->n_constraints++] = c;
        c->next = *list;
        *list = c;
    }
    return true;
}

static bool read_line(struct arena *a, struct rules *r, struct str line)
{
    struct str word = next_word(&line);
    struct shape *shape;
    struct rule *rule;

    if (!word.n || word.p[0] == '#')
        return true;
    if (str_eqc(word, "shape")) {
        word = next_word(&line);
        if (r->n_shapes == SHAPES_MAX || !word.n || find_shape(r, word))
            return false;
        shape = &r->shapes[r->n_shapes++];
        shape->name = word;
        return read_constraints(a, r, line, STR(""), &shape->checks);
    }
    if (!r->n_shapes)
        return false;
    shape = &r->shapes[r->n_shapes - 1];
    rule = ARENA_NEW(a, struct rule);
    rule->key = word;
    rule->type = next_word(&line);
    if (str_eqc(word, "*")) {
        shape->others = rule;
    } else {
        rule->next = shape->rules;
        shape->rules = rule;
    }
    return rule->type.n && read_constraints(a, r, line, word, &rule->constraints);
}

static bool is_scalar_type(struct str type)
{
    static const char *const types[] = {"string", "number", "bool", "null", "scalar"};

    for (size_t i = 0; i < 5; i++) {
        if (str_eqc(type, types[i]))
            return true;
    }
    return false;
}

/* Every shape a rule names is there. */
static bool types_are_known(struct rules *r)
{
    for (size_t i = 0; i < r->n_shapes; i++) {
        for (const struct rule *rule = r->shapes[i].rules; rule; rule = rule->next) {
            struct str type = rule->type, head = str_cut(&type, ':');

            if (is_scalar_type(head) && !type.p)
                continue;
            if (!type.p || (!find_shape(r, type) && !is_scalar_type(type)))
                return false;
        }
    }
    return true;
}

struct rules *rules_load(struct arena *a, struct str text, const char **ret_why)
{
    struct rules *r = ARENA_NEW(a, struct rules);
    size_t number = 0;

    while (text.p) {
        struct str line = str_cut(&text, '\n');

        number++;
        if (!read_line(a, r, line)) {
            *ret_why = arena_printf(a, "line %zu: %.*s", number, STR_F(line)).p;
            return NULL;
        }
    }
    if (!types_are_known(r)) {
        *ret_why = "a type that is not known";
        return NULL;
    }
    return r;
}

size_t rules_count(const struct rules *r)
{
    return r->n_constraints;
}

struct str rules_name(struct arena *a, const struct rules *r, size_t constraint)
{
    static const char *const kinds[] = {"need", "privileged", "words", "fact", "check", "key"};
    const struct constraint *c = r->constraints[constraint];

    return arena_printf(a, "%.*s.%.*s %s %.*s", STR_F(r->shapes[c->shape].name), STR_F(c->key),
                        kinds[c->kind], STR_F(c->text));
}

void rules_disable(struct rules *r, size_t constraint)
{
    r->off = constraint < r->n_constraints ? r->constraints[constraint] : NULL;
}

/* ---- walking ---- */

struct position {
    struct walk *walk;
    const struct rules *rules;
    const char *bad; /* the first finding */
};

static bool finding(struct position *at, struct str path, const char *what)
{
    if (!at->bad)
        at->bad = arena_printf(at->walk->arena, "%.*s: %s", STR_F(path), what).p;
    return false;
}

static bool in_words(struct str words, struct str word)
{
    while (words.p) {
        if (str_eq(str_cut(&words, '|'), word))
            return true;
    }
    return false;
}

static bool meets(struct position *at, const struct constraint *c, const struct node *n,
                  struct str path)
{
    const char *what = NULL;

    if (at->rules->off == c)
        return true;
    switch (c->kind) {
    case NEED: /* seen to by the object */
    case KEY_CHECK:
        return true;
    case PRIVILEGED:
        what = at->walk->privileged ? NULL : "only a privileged tenant may have it";
        break;
    case WORDS:
        what = in_words(c->text, n->text) ? NULL : "not one of the words it may be";
        break;
    case FACT:
        what = str_eq(node_text(check_fact(at->walk, c->text)), n->text) && n->text.n
                   ? NULL
                   : "not what the tenant's configuration says";
        break;
    case CHECK:
        what = c->check(at->walk, n);
        break;
    }
    return what ? finding(at, path, what) : true;
}

static bool meets_all(struct position *at, const struct constraint *c, const struct node *n,
                      struct str path)
{
    for (; c; c = c->next) {
        if (!meets(at, c, n, path))
            return false;
    }
    return true;
}

static bool scalar_fits(struct str type, const struct node *n)
{
    switch (n->type) {
    case NODE_STRING:
        return str_eqc(type, "string") || str_eqc(type, "scalar");
    case NODE_NUMBER:
        return str_eqc(type, "number") || str_eqc(type, "scalar");
    case NODE_BOOL:
        return str_eqc(type, "bool") || str_eqc(type, "scalar");
    case NODE_NULL:
        return str_eqc(type, "null");
    default:
        return false;
    }
}

static bool walk_object(struct position *at, const struct shape *shape, const struct node *n,
                        struct str path);

static bool walk_scalars(struct position *at, const struct rule *rule, struct str type,
                         const struct node *n, struct str path)
{
    node_each(item, n)
    {
        if (!scalar_fits(type, item))
            return finding(at, path, "an item of another type");
        if (!meets_all(at, rule->constraints, item, path))
            return false;
    }
    return true;
}

static bool walk_map(struct position *at, const struct rule *rule, struct str type,
                     const struct node *n, struct str path)
{
    node_each(member, n)
    {
        struct str below =
            arena_printf(at->walk->arena, "%.*s.%.*s", STR_F(path), STR_F(member->key));

        if (!scalar_fits(type, member))
            return finding(at, below, "of another type");
        for (const struct constraint *c = rule->constraints; c; c = c->next) {
            struct constraint plain = *c;

            plain.kind = CHECK;
            if (c->kind == KEY_CHECK && c != at->rules->off && !meets(at, &plain, member, below))
                return false;
        }
    }
    return true;
}

static bool walk_list(struct position *at, const struct rule *rule, struct str type,
                      const struct node *n, struct str path)
{
    const struct shape *shape = find_shape(at->rules, type);
    size_t index = 0;

    if (n->type != NODE_LIST)
        return finding(at, path, "no list");
    if (is_scalar_type(type))
        return walk_scalars(at, rule, type, n, path);
    node_each(item, n)
    {
        struct str below = arena_printf(at->walk->arena, "%.*s[%zu]", STR_F(path), index++);

        if (!walk_object(at, shape, item, below))
            return false;
    }
    return meets_all(at, rule->constraints, n, path);
}

static bool walk_value(struct position *at, const struct rule *rule, const struct node *n,
                       struct str path)
{
    struct str type = rule->type, head = str_cut(&type, ':');

    if (str_eqc(head, "list"))
        return walk_list(at, rule, type, n, path);
    if (str_eqc(head, "map")) {
        return n->type == NODE_OBJECT ? walk_map(at, rule, type, n, path)
                                      : finding(at, path, "no object");
    }
    if (str_eqc(head, "object"))
        return walk_object(at, find_shape(at->rules, type), n, path) &&
               meets_all(at, rule->constraints, n, path);
    if (!scalar_fits(head, n))
        return finding(at, path, "of another type");
    return meets_all(at, rule->constraints, n, path);
}

static const struct rule *rule_of(const struct shape *shape, struct str key)
{
    for (const struct rule *rule = shape->rules; rule; rule = rule->next) {
        if (str_eq(rule->key, key))
            return rule;
    }
    return NULL;
}

static bool has_what_it_needs(struct position *at, const struct shape *shape, const struct node *n,
                              struct str path)
{
    for (const struct rule *rule = shape->rules; rule; rule = rule->next) {
        for (const struct constraint *c = rule->constraints; c; c = c->next) {
            if (c->kind == NEED && c != at->rules->off && !node_get_str(n, rule->key))
                return finding(at, path,
                               arena_printf(at->walk->arena, "lacks %.*s", STR_F(rule->key)).p);
        }
    }
    return true;
}

/* A member no rule names by its key. */
static bool walk_other(struct position *at, const struct shape *shape, const struct node *member,
                       struct str path)
{
    if (!shape->others)
        return finding(at, path, "must not be there");
    for (const struct constraint *c = shape->others->constraints; c; c = c->next) {
        struct constraint plain = *c;

        if (c == at->rules->off)
            continue;
        plain.kind = CHECK;
        if (!meets(at, c->kind == KEY_CHECK ? &plain : c, member, path))
            return false;
    }
    return scalar_fits(shape->others->type, member) ? true : finding(at, path, "of another type");
}

static bool walk_object(struct position *at, const struct shape *shape, const struct node *n,
                        struct str path)
{
    if (n->type != NODE_OBJECT)
        return finding(at, path, "no object");
    if (!has_what_it_needs(at, shape, n, path))
        return false;
    node_each(member, n)
    {
        const struct rule *rule = rule_of(shape, member->key);
        struct str below =
            arena_printf(at->walk->arena, "%.*s.%.*s", STR_F(path), STR_F(member->key));

        if (!(rule ? walk_value(at, rule, member, below) : walk_other(at, shape, member, below)))
            return false;
    }
    return meets_all(at, shape->checks, n, path);
}

const struct node *check_fact(const struct walk *w, struct str path)
{
    const struct node *at = w->facts;

    if (str_has_prefix(path, STR("pool."))) {
        at = w->pool;
        path = str_from(path, 5);
    }
    return node_get_str(at, path);
}

static const struct node *pool_of(const struct node *facts, const struct node *object)
{
    struct str name =
        node_text(node_get(node_get(node_get(object, "metadata"), "labels"), "sublet.dev/pool"));

    node_each(pool, node_get(facts, "pools"))
    {
        if (name.n && str_eq(node_text(node_get(pool, "name")), name))
            return pool;
    }
    return NULL;
}

const char *rules_check(struct arena *a, const struct rules *r, const struct node *facts,
                        const char *shape, const struct node *object)
{
    struct walk w = {.arena = a, .facts = facts, .pool = pool_of(facts, object), .root = object};
    struct position at = {&w, r, NULL};
    const struct shape *root = find_shape(r, str_c(shape));

    w.privileged = str_eqc(node_text(node_get(facts, "podSecurity")), "privileged");
    w.restricted = str_eqc(node_text(node_get(facts, "podSecurity")), "restricted");
    if (!root)
        return "no such shape";
    walk_object(&at, root, object, str_c(shape));
    return at.bad;
}
