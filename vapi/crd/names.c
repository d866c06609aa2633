/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a CRD gets: first come, first served within a group, and a name that was given stays
 * given until its CRD is gone. Must never give a CRD the plural of a built-in kind. */
#include "names.h"

#include <sublet/controller.h>

struct taken {
    struct arena *arena;
    struct str group;
    const cJSON *asked, *accepted; /* names of the CRD that is judged */
    struct store *store;
    struct registry *registry;
    struct names_verdict *verdict;
};

static bool is_short_name(const struct resource *r, struct str s)
{
    for (const char *const *n = r->short_names; n && *n; n++) {
        if (str_eqc(s, *n))
            return true;
    }
    return false;
}

struct name_search {
    struct str group, name;
    struct str quoted; /* the name as JSON has it: most definitions do not hold it */
    bool kinds;        /* else plurals, singulars and short names */
    bool found;
};

static bool on_builtin(void *ctx, const struct resource *r)
{
    struct name_search *s = ctx;

    if (r->crd || !str_eq(r->group, s->group))
        return true;
    s->found = s->kinds ? str_eq(r->kind, s->name) || str_eq(r->list_kind, s->name)
                        : str_eq(r->plural, s->name) || str_eq(r->singular, s->name) ||
                              is_short_name(r, s->name);
    return !s->found;
}

static bool on_crd(void *ctx, const struct store_object *o)
{
    struct name_search *s = ctx;
    struct str group = o->name;

    str_cut(&group, '.');
    if (!str_eq(group, s->group) || !str_contains(o->bytes, s->quoted))
        return true;
    struct arena *a = arena_new(0);
    const cJSON *crd = vapi_tree(a, o), *names = json_path(crd, "status.acceptedNames");

    s->found = s->kinds ? str_eq(json_str_at(names, "kind"), s->name) ||
                              str_eq(json_str_at(names, "listKind"), s->name)
                        : str_eq(json_str_at(names, "plural"), s->name) ||
                              str_eq(json_str_at(names, "singular"), s->name) ||
                              json_list_has(json_get(names, "shortNames"), s->name);
    arena_free(a);
    return !s->found;
}

static bool is_builtin_name(const struct taken *t, bool kinds, struct str name)
{
    struct name_search s = {.group = t->group, .name = name, .kinds = kinds};

    registry_each(t->registry, on_builtin, &s);
    return s.found;
}

static bool is_crd_name(const struct taken *t, bool kinds, struct str name)
{
    const struct resource *crds = registry_find_group_resource(
        t->registry, STR("apiextensions.k8s.io"), STR("customresourcedefinitions"));
    struct name_search s = {.group = t->group,
                            .name = name,
                            .quoted = arena_printf(t->arena, "\"%.*s\"", STR_F(name)),
                            .kinds = kinds};

    store_scan_latest(t->store, crds->storage, STR_NULL, on_crd, &s);
    return s.found;
}

static bool is_taken(const struct taken *t, bool kinds, struct str name)
{
    return name.n && (is_builtin_name(t, kinds, name) || is_crd_name(t, kinds, name));
}

static struct str in_use(struct arena *a, struct str name)
{
    return arena_printf(a, "\"%.*s\" is already in use", STR_F(name));
}

/* The last conflict is the one that is told, as upstream. */
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
    struct str asked = json_str_at(t->asked, rule->field);
    struct str accepted = json_str_at(t->accepted, rule->field);
    bool builtin = is_builtin_name(t, rule->kinds, asked);

    if (builtin || (!str_eq(asked, accepted) && is_taken(t, rule->kinds, asked))) {
        refuse(t, rule->reason, in_use(t->arena, asked));
        return;
    }
    json_set_str(t->arena, t->verdict->accepted, rule->field, asked);
}

static void judge_short_names(struct taken *t)
{
    const cJSON *asked = json_get(t->asked, "shortNames");
    const cJSON *accepted = json_get(t->accepted, "shortNames");
    struct buf all = BUF_INIT(0);
    size_t n = 0;

    json_each(item, asked)
    {
        struct str name = json_str(item);

        if (!is_builtin_name(t, false, name) &&
            (json_list_has(accepted, name) || !is_taken(t, false, name)))
            continue;
        buf_add(&all, n++ ? STR(", ") : STR(""));
        buf_add(&all, in_use(t->arena, name));
    }
    if (n)
        refuse(t, "ShortNamesConflict",
               n > 1 ? arena_printf(t->arena, "[%.*s]", STR_F(buf_str(&all)))
                     : arena_str(t->arena, buf_str(&all)));
    else if (asked)
        json_set(t->arena, t->verdict->accepted, "shortNames", json_copy(t->arena, asked));
    else
        json_remove(t->verdict->accepted, "shortNames");
    buf_fini(&all);
}

struct names_verdict names_judge(struct vapi *api, struct arena *a, const cJSON *crd)
{
    struct names_verdict verdict = {.accepted = json_new_object(a)};
    struct taken t = {.arena = a,
                      .group = json_str_at(crd, "spec.group"),
                      .asked = json_path(crd, "spec.names"),
                      .accepted = json_path(crd, "status.acceptedNames"),
                      .store = vapi_store(api),
                      .registry = vapi_registry(api),
                      .verdict = &verdict};
    const cJSON *categories = json_get(t.asked, "categories");
    const struct resource *builtin;

    if (json_is_object(t.accepted))
        verdict.accepted = json_copy(a, t.accepted);
    for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); i++) {
        if (i == 2)
            judge_short_names(&t);
        judge_name(&t, &RULES[i]);
    }
    json_remove(verdict.accepted, "categories");
    if (categories)
        json_set(a, verdict.accepted, "categories", json_copy(a, categories));
    builtin = registry_find_group_resource(t.registry, t.group, json_str_at(t.asked, "plural"));
    verdict.shadows = builtin && !builtin->crd;
    return verdict;
}

const cJSON *names_serving(struct arena *a, const cJSON *crd)
{
    const cJSON *asked = json_path(crd, "spec.names");
    const cJSON *accepted = json_path(crd, "status.acceptedNames");
    cJSON *copy;

    if (!json_str_at(accepted, "plural").n || json_equal(asked, accepted))
        return crd;
    copy = json_copy(a, crd);
    json_set(a, json_get(copy, "spec"), "names", json_copy(a, accepted));
    return copy;
}
