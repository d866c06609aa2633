/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * FlowSchemas and priority levels, compiled from the store after every change. A cluster without
 * them (or a request that matches none) uses one level for all users, with a flow per user. It must
 * never trust their number: those beyond a bound are left out. Source: k8s.io/apiserver
 * pkg/util/flowcontrol rule.go; the order of schemas: apf_controller.go. */
#include "flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SCHEMAS  256
#define MAX_LEVELS   64
#define MOST_DEFAULT 300

enum subject_kind { SUBJECT_USER, SUBJECT_GROUP, SUBJECT_ACCOUNT };
struct subject {
    enum subject_kind kind;
    struct str name, ns;
};
struct resource_rule {
    struct str_list verbs, groups, resources, namespaces;
    bool cluster_scope;
};
struct path_rule {
    struct str_list verbs, paths;
};

struct flow_rule {
    const struct subject *subjects;
    const struct resource_rule *resources;
    const struct path_rule *paths;
    size_t n_subjects, n_resources, n_paths;
};

struct flow_rules {
    struct arena *arena;
    struct flow_schema *schemas;
    size_t n, cap;
    struct flow_schema otherwise;
    struct vapi *api;
    struct flow_levels *levels;
};

/* ---- matching ---- */

static bool in_group(const struct user *u, struct str group)
{
    for (size_t i = 0; i < u->n_groups; i++)
        if (str_eq(u->groups[i], group))
            return true;
    return false;
}

static bool is_account(const struct user *u, const struct subject *s)
{
    struct str rest = u->name;

    if (!str_has_prefix(rest, STR("system:serviceaccount:")))
        return false;
    rest = str_from(rest, sizeof("system:serviceaccount:") - 1);
    if (!str_eq(str_cut(&rest, ':'), s->ns))
        return false;
    return str_eqc(s->name, "*") || str_eq(s->name, rest);
}

static bool match_subject(const struct subject *s, const struct user *u)
{
    switch (s->kind) {
    case SUBJECT_USER:
        return str_eqc(s->name, "*") || str_eq(s->name, u->name);
    case SUBJECT_GROUP:
        return str_eqc(s->name, "*") || in_group(u, s->name);
    default:
        return is_account(u, s);
    }
}

static bool match_resource(const struct resource_rule *r, const struct attributes *what)
{
    char room[256];
    struct str resource = what->resource;

    if (!str_list_has_or_star(r->verbs, str_c(what->verb)) ||
        !str_list_has_or_star(r->groups, what->group))
        return false;
    if (what->ns.n ? !str_list_has_or_star(r->namespaces, what->ns) : !r->cluster_scope)
        return false;
    if (what->subresource.n && resource.n + what->subresource.n < sizeof(room)) {
        memcpy(room, resource.p, resource.n);
        room[resource.n] = '/';
        memcpy(room + resource.n + 1, what->subresource.p, what->subresource.n);
        resource = (struct str){room, resource.n + 1 + what->subresource.n};
    }
    return str_list_has_or_star(r->resources, resource);
}

static bool match_path(const struct path_rule *r, const struct attributes *what)
{
    if (!str_list_has_or_star(r->verbs, str_c(what->verb)))
        return false;
    for (size_t i = 0; i < r->paths.n; i++) {
        struct str p = r->paths.items[i];

        if (str_eq(p, what->path))
            return true;
        if (p.n && p.p[p.n - 1] == '*' && str_has_prefix(what->path, str_sub(p, 0, p.n - 1)))
            return true;
    }
    return false;
}

static bool match_rule(const struct flow_rule *r, const struct user *u,
                       const struct attributes *what)
{
    bool subject = false;

    for (size_t i = 0; !subject && i < r->n_subjects; i++)
        subject = match_subject(&r->subjects[i], u);
    if (!subject)
        return false;
    if (!what->resource.p) {
        for (size_t i = 0; i < r->n_paths; i++)
            if (match_path(&r->paths[i], what))
                return true;
        return false;
    }
    for (size_t i = 0; i < r->n_resources; i++)
        if (match_resource(&r->resources[i], what))
            return true;
    return false;
}

const struct flow_schema *flow_rules_match(const struct flow_rules *r, const struct user *u,
                                           const struct attributes *what)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t j = 0; j < r->schemas[i].n_rules; j++)
            if (match_rule(&r->schemas[i].rules[j], u, what))
                return &r->schemas[i];
    return &r->otherwise;
}

/* ---- levels ---- */

static struct flow_level *find_level(const struct flow_levels *levels, struct str name)
{
    struct flow_level *l;

    SLIST_FOREACH(l, levels, place)
    {
        if (str_eqc(name, l->name))
            break;
    }
    return l;
}

/* A level is never removed: flows may still refer to it. */
static struct flow_level *make_level(struct flow_rules *r, struct str name)
{
    struct flow_level *l = find_level(r->levels, name);
    size_t n = 0;

    if (l)
        return l;
    SLIST_FOREACH(l, r->levels, place)
    {
        n++;
    }
    if (n >= MAX_LEVELS)
        return NULL;
    l = NEW(struct flow_level);
    l->name = mem_strdup(name);
    l->shares = 30;
    l->most_waiting = MOST_DEFAULT;
    TAILQ_INIT(&l->ring);
    SLIST_INSERT_HEAD(r->levels, l, place);
    return l;
}

static void set_uid(char *to, size_t room, struct str uid)
{
    struct buf b = BUF_INIT(room - 1);

    buf_add(&b, uid);
    memcpy(to, b.n ? b.p : "", b.n);
    to[b.n] = '\0';
    buf_fini(&b);
}

static int64_t positive(const cJSON *tree, const char *path, int64_t otherwise)
{
    int64_t value = json_i64_at(tree, path, otherwise);

    return value > 0 ? value : 1;
}

static bool on_level(void *ctx, const struct store_object *o)
{
    struct flow_rules *r = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = vapi_tree(a, o);
    struct flow_level *l = make_level(r, o->name);
    int64_t hand, length;

    if (l) {
        set_uid(l->uid, sizeof(l->uid), o->uid);
        l->exempt = str_eqc(json_str_at(tree, "spec.type"), "Exempt");
        l->reject = str_eqc(json_str_at(tree, "spec.limited.limitResponse.type"), "Reject");
        l->shares = positive(tree,
                             l->exempt ? "spec.exempt.nominalConcurrencyShares"
                                       : "spec.limited.nominalConcurrencyShares",
                             30);
        /* Otherwise a level without shares would be starved by the others. */
        if (l->exempt)
            l->shares = 100;
        hand = positive(tree, "spec.limited.limitResponse.queuing.handSize", 6);
        length = positive(tree, "spec.limited.limitResponse.queuing.queueLengthLimit", 50);
        l->most_waiting = hand < 100 && length < 10000 ? hand * length : MOST_DEFAULT;
    }
    arena_free(a);
    return true;
}

/* ---- schemas ---- */

static void read_subject(struct arena *a, const cJSON *node, struct subject *ret)
{
    struct str kind = json_str(json_get(node, "kind"));

    if (str_eqc(kind, "User")) {
        *ret = (struct subject){.kind = SUBJECT_USER, .name = json_str_at(node, "user.name")};
    } else if (str_eqc(kind, "Group")) {
        *ret = (struct subject){.kind = SUBJECT_GROUP, .name = json_str_at(node, "group.name")};
    } else {
        *ret = (struct subject){.kind = SUBJECT_ACCOUNT,
                                .name = json_str_at(node, "serviceAccount.name"),
                                .ns = json_str_at(node, "serviceAccount.namespace")};
    }
    ret->name = arena_str(a, ret->name);
    ret->ns = arena_str(a, ret->ns);
}

static void read_rule(struct arena *a, const cJSON *node, struct flow_rule *ret)
{
    const cJSON *subjects = json_get(node, "subjects"), *paths = json_get(node, "nonResourceRules");
    const cJSON *resources = json_get(node, "resourceRules");
    struct subject *s = arena_alloc(a, (json_count(subjects) + 1) * sizeof(*s));
    struct resource_rule *r = arena_alloc(a, (json_count(resources) + 1) * sizeof(*r));
    struct path_rule *p = arena_alloc(a, (json_count(paths) + 1) * sizeof(*p));

    *ret = (struct flow_rule){.subjects = s, .resources = r, .paths = p};
    json_each(item, subjects) read_subject(a, item, &s[ret->n_subjects++]);
    json_each(item, resources)
    {
        r[ret->n_resources++] = (struct resource_rule){
            .verbs = json_str_list(a, json_get(item, "verbs")),
            .groups = json_str_list(a, json_get(item, "apiGroups")),
            .resources = json_str_list(a, json_get(item, "resources")),
            .namespaces = json_str_list(a, json_get(item, "namespaces")),
            .cluster_scope = json_true(json_get(item, "clusterScope")),
        };
    }
    json_each(item, paths)
    {
        p[ret->n_paths++] = (struct path_rule){json_str_list(a, json_get(item, "verbs")),
                                               json_str_list(a, json_get(item, "nonResourceURLs"))};
    }
}

static enum flow_by read_by(const cJSON *tree)
{
    struct str type = json_str_at(tree, "spec.distinguisherMethod.type");

    if (str_eqc(type, "ByUser"))
        return FLOW_BY_USER;
    return str_eqc(type, "ByNamespace") ? FLOW_BY_NAMESPACE : FLOW_BY_NOTHING;
}

static bool on_schema(void *ctx, const struct store_object *o)
{
    struct flow_rules *r = ctx;
    struct arena *a = r->arena, *scratch = arena_new(0);
    cJSON *tree = vapi_tree(scratch, o), *rules = json_path(tree, "spec.rules");
    struct flow_schema *s;
    struct flow_rule *list = arena_alloc(a, (json_count(rules) + 1) * sizeof(*list));
    struct flow_level *level =
        find_level(r->levels, json_str_at(tree, "spec.priorityLevelConfiguration.name"));

    ARENA_GROW(a, r->schemas, r->n, r->cap);
    s = &r->schemas[r->n];
    *s = (struct flow_schema){
        .name = arena_cstr(a, o->name),
        .level = level ? level : r->otherwise.level,
        .by = read_by(tree),
        .precedence = json_i64_at(tree, "spec.matchingPrecedence", 1000),
        .rules = list,
    };
    set_uid(s->uid, sizeof(s->uid), o->uid);
    json_each(item, rules) read_rule(a, item, &list[s->n_rules++]);
    arena_free(scratch);
    return ++r->n < MAX_SCHEMAS;
}

static int by_precedence(const void *a, const void *b)
{
    const struct flow_schema *x = a, *y = b;

    if (x->precedence != y->precedence)
        return x->precedence < y->precedence ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* ---- all of them ---- */

static void scan(struct flow_rules *r, const char *plural, store_scan_cb each)
{
    struct vapi *api = r->api;
    const struct resource *res =
        registry_find(api->registry, STR("flowcontrol.apiserver.k8s.io"), STR("v1"), str_c(plural));
    struct err err;

    if (!res)
        return;
    err_init(&err, r->arena);
    if (store_scan(api->o.store, res->storage, STR_NULL, STR_NULL, STR_NULL, 0, each, r, &err))
        err_clear(&err); /* the latest revision always exists */
}

struct flow_rules *flow_rules_load(struct vapi *api, struct flow_levels *levels)
{
    struct arena *a = arena_new(0);
    struct flow_rules *r = ARENA_NEW(a, struct flow_rules);
    struct flow_level *everybody;

    *r = (struct flow_rules){.arena = a, .api = api, .levels = levels};
    everybody = make_level(r, STR("catch-all")); /* before others use up the bound */
    assert(everybody);
    scan(r, "prioritylevelconfigurations", on_level);
    if (!everybody->uid[0])
        set_uid(everybody->uid, sizeof(everybody->uid), str_c(api->level_uid));
    r->otherwise = (struct flow_schema){
        .name = arena_cstr(a, STR("catch-all")), .level = everybody, .by = FLOW_BY_USER};
    set_uid(r->otherwise.uid, sizeof(r->otherwise.uid), str_c(api->flow_uid));
    scan(r, "flowschemas", on_schema);
    if (r->n)
        qsort(r->schemas, r->n, sizeof(*r->schemas), by_precedence);
    return r;
}

struct flow_rules *flow_rules_free(struct flow_rules *r)
{
    if (r)
        arena_free(r->arena);
    return NULL;
}
