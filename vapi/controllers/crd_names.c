/* SPDX-License-Identifier: Apache-2.0 */
/* The names a CRD gets: first come, first served within a group, and an accepted name stays
 * accepted until its CRD is deleted. Must never give a CRD the plural of a built-in kind. */
#include "crd_names.h"

#include <stdlib.h>

#include <sublet/controller.h>

/* A sorted set of names with counts: a CRD may list as many as fit into it. */
struct name_set {
    struct str *items;
    size_t n, cap;
};

/* Names of the built-in kinds of the group, and of its CRDs that matter. */
struct names {
    struct name_set builtin, crds;
};

struct taken {
    struct arena *arena;
    struct str group;
    const cJSON *requested, *accepted; /* names of the CRD being checked */
    struct store *store;
    struct registry *registry;
    struct names resources, kinds; /* plurals, singulars and short names; kinds of objects, lists */
    struct name_set quoted;        /* names not accepted yet, quoted as in JSON */
    struct names_verdict *verdict;
};

/* Up to this many names are searched in the bytes of a CRD before it is parsed. */
#define FEW_NAMES 16

/* --- sets --- */

static void set_add(struct arena *a, struct name_set *set, struct str name)
{
    if (!name.n)
        return;
    if (set->n == set->cap) {
        struct str *items = arena_alloc(a, (set->cap = 2 * set->cap + 8) * sizeof(*items));

        for (size_t i = 0; i < set->n; i++)
            items[i] = set->items[i];
        set->items = items;
    }
    set->items[set->n++] = name;
}

static int by_name(const void *a, const void *b)
{
    const struct str *x = a, *y = b;

    return str_cmp(*x, *y);
}

static void set_sort(struct name_set *set)
{
    if (set->n)
        qsort(set->items, set->n, sizeof(*set->items), by_name);
}

static bool set_has(const struct name_set *set, struct str name)
{
    return set->n && bsearch(&name, set->items, set->n, sizeof(*set->items), by_name);
}

/* --- names in use --- */

static bool on_builtin(void *ctx, const struct resource *r)
{
    struct taken *t = ctx;
    struct name_set *set = &t->resources.builtin;

    if (resource_of_crd(r) || !str_eq(r->group, t->group))
        return true;
    set_add(t->arena, &t->kinds.builtin, r->kind);
    set_add(t->arena, &t->kinds.builtin, r->list_kind);
    set_add(t->arena, set, r->plural);
    set_add(t->arena, set, r->singular);
    for (const char *const *n = r->short_names; n && *n; n++)
        set_add(t->arena, set, str_c(*n));
    return true;
}

/* Most CRDs contain none of the names. */
static bool may_hold(const struct taken *t, struct str bytes)
{
    bool found = t->quoted.n > FEW_NAMES;

    for (size_t i = 0; i < t->quoted.n && !found; i++)
        found = str_contains(bytes, t->quoted.items[i]);
    return found;
}

static void add_crd(struct taken *t, const cJSON *names)
{
    static const char *const kinds[] = {"kind", "listKind"}, *const resources[] = {"plural",
                                                                                   "singular"};
    struct arena *a = t->arena;

    for (size_t i = 0; i < 2; i++) {
        set_add(a, &t->kinds.crds, arena_str(a, json_str_at(names, kinds[i])));
        set_add(a, &t->resources.crds, arena_str(a, json_str_at(names, resources[i])));
    }
    json_each(name, json_get(names, "shortNames"))
        set_add(a, &t->resources.crds, arena_str(a, json_str(name)));
}

static bool on_crd(void *ctx, const struct store_object *o)
{
    struct taken *t = ctx;
    struct str group = o->name;
    struct arena *a;

    str_cut(&group, '.');
    if (!str_eq(group, t->group) || !may_hold(t, o->bytes))
        return true;
    a = arena_new(0);
    add_crd(t, json_path(vapi_tree(a, o), "status.acceptedNames"));
    arena_free(a);
    return true;
}

static void want(struct taken *t, struct str name)
{
    set_add(t->arena, &t->quoted, arena_printf(t->arena, "\"%.*s\"", STR_F(name)));
}

static void find_taken(struct taken *t, const struct name_set *accepted_short)
{
    static const char *const fields[] = {"plural", "singular", "kind", "listKind"};
    const struct resource *crds = registry_find_group_resource(
        t->registry, STR("apiextensions.k8s.io"), STR("customresourcedefinitions"));

    for (size_t i = 0; i < COUNT(fields); i++) {
        struct str requested = json_str_at(t->requested, fields[i]);

        if (!str_eq(requested, json_str_at(t->accepted, fields[i])))
            want(t, requested);
    }
    json_each(name, json_get(t->requested, "shortNames"))
    {
        if (!set_has(accepted_short, json_str(name)))
            want(t, json_str(name));
    }
    registry_each(t->registry, on_builtin, t);
    if (t->quoted.n)
        store_scan_latest(t->store, crds->storage, STR_NULL, on_crd, t);
    set_sort(&t->kinds.builtin);
    set_sort(&t->kinds.crds);
    set_sort(&t->resources.builtin);
    set_sort(&t->resources.crds);
}

static bool is_taken(const struct names *names, struct str name)
{
    return set_has(&names->builtin, name) || set_has(&names->crds, name);
}

/* --- verdict --- */

static struct str in_use(struct arena *a, struct str name)
{
    return arena_printf(a, "\"%.*s\" is already in use", STR_F(name));
}

/* The last conflict is the one reported, as upstream. */
static void refuse(struct taken *t, const char *reason, struct str message)
{
    t->verdict->reason = reason;
    t->verdict->message = message;
}

struct wanted_name {
    const char *field, *reason;
    bool kinds;
};
static const struct wanted_name RULES[] = {{"plural", "PluralConflict", false},
                                           {"singular", "SingularConflict", false},
                                           {"kind", "KindConflict", true},
                                           {"listKind", "ListKindConflict", true}};

static void judge_name(struct taken *t, const struct wanted_name *rule)
{
    const struct names *names = rule->kinds ? &t->kinds : &t->resources;
    struct str requested = json_str_at(t->requested, rule->field);
    struct str accepted = json_str_at(t->accepted, rule->field);

    if (set_has(&names->builtin, requested) ||
        (!str_eq(requested, accepted) && is_taken(names, requested))) {
        refuse(t, rule->reason, in_use(t->arena, requested));
        return;
    }
    json_set_str(t->arena, t->verdict->accepted, rule->field, requested);
}

static void judge_short_names(struct taken *t, const struct name_set *accepted)
{
    const cJSON *requested = json_get(t->requested, "shortNames");
    struct buf all = BUF_INIT(0);
    size_t n = 0;

    json_each(item, requested)
    {
        struct str name = json_str(item);

        if (!set_has(&t->resources.builtin, name) &&
            (set_has(accepted, name) || !is_taken(&t->resources, name)))
            continue;
        buf_add(&all, n++ ? STR(", ") : STR(""));
        buf_add(&all, in_use(t->arena, name));
    }
    if (n)
        refuse(t, "ShortNamesConflict",
               n > 1 ? arena_printf(t->arena, "[%.*s]", STR_F(buf_str(&all)))
                     : arena_str(t->arena, buf_str(&all)));
    else if (requested)
        json_set(t->arena, t->verdict->accepted, "shortNames", json_copy(t->arena, requested));
    else
        json_remove(t->verdict->accepted, "shortNames");
    buf_fini(&all);
}

struct names_verdict names_judge(struct vapi *api, struct arena *a, const cJSON *crd)
{
    struct names_verdict verdict = {.accepted = json_new_object(a)};
    struct taken t = {.arena = a,
                      .group = json_str_at(crd, "spec.group"),
                      .requested = json_path(crd, "spec.names"),
                      .accepted = json_path(crd, "status.acceptedNames"),
                      .store = vapi_store(api),
                      .registry = vapi_registry(api),
                      .verdict = &verdict};
    const cJSON *categories = json_get(t.requested, "categories");
    struct name_set accepted_short = {0};
    const struct resource *builtin;

    if (json_is_object(t.accepted))
        verdict.accepted = json_copy(a, t.accepted);
    json_each(name, json_get(t.accepted, "shortNames")) set_add(a, &accepted_short, json_str(name));
    set_sort(&accepted_short);
    find_taken(&t, &accepted_short);
    for (size_t i = 0; i < COUNT(RULES); i++) {
        if (i == 2)
            judge_short_names(&t, &accepted_short);
        judge_name(&t, &RULES[i]);
    }
    json_remove(verdict.accepted, "categories");
    if (categories)
        json_set(a, verdict.accepted, "categories", json_copy(a, categories));
    builtin = registry_find_group_resource(t.registry, t.group, json_str_at(t.requested, "plural"));
    verdict.shadows = builtin && !resource_of_crd(builtin);
    return verdict;
}

const cJSON *names_serving(struct arena *a, const cJSON *crd)
{
    const cJSON *requested = json_path(crd, "spec.names");
    const cJSON *accepted = json_path(crd, "status.acceptedNames");
    cJSON *copy;

    if (!json_str_at(accepted, "plural").n || json_equal(requested, accepted))
        return crd;
    copy = json_copy(a, crd);
    json_set(a, json_get(copy, "spec"), "names", json_copy(a, accepted));
    return copy;
}
