/* SPDX-License-Identifier: Apache-2.0 */
/* RBAC: the rules that apply to a user, and whether a rule allows a request. Source of the
 * semantics: k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac and pkg/apis/rbac/v1 evaluation
 * helpers. */
#include "rbac.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define RBAC_MAGIC 0x72626163u
#define FEW_GROUPS 32

enum rbac_source { ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS, N_SOURCES };

static const char *const SOURCE_PLURALS[N_SOURCES] = {"roles", "clusterroles", "rolebindings",
                                                      "clusterrolebindings"};

struct subject {
    enum { SUBJECT_USER, SUBJECT_GROUP, SUBJECT_ACCOUNT } kind;
    struct str name; /* of an account: its user name, system:serviceaccount:ns:name */
};

struct binding {
    STAILQ_ENTRY(binding) place;
    struct str ns, name; /* ns empty: ClusterRoleBinding */
    struct str role_kind, role;
    const struct subject *subjects;
    size_t n_subjects;
};

/* A role referenced by a binding; compiled once per generation of the index. */
struct role {
    SLIST_ENTRY(role) place;
    struct str ns, name;
    const struct rule *rules;
    size_t n;
    bool missing;
};

struct rbac {
    unsigned magic;
    struct vapi *api;
    unsigned storage[N_SOURCES];
    struct store_watch *watches[N_SOURCES];
    struct arena *arena;             /* the index; NULL: not built */
    STAILQ_HEAD(, binding) bindings; /* in the arena, as are roles */
    SLIST_HEAD(, role) roles;
};

/* --- compiling --- */

const struct rule *rbac_rules_read(struct arena *a, const cJSON *role, size_t *ret_n)
{
    const cJSON *array = json_get(role, "rules");
    size_t n = json_count(array), i = 0;
    struct rule *rules = arena_alloc(a, (n ? n : 1) * sizeof(*rules));

    json_each(r, array)
    {
        rules[i++] = (struct rule){
            .verbs = json_str_list(a, json_get(r, "verbs")),
            .groups = json_str_list(a, json_get(r, "apiGroups")),
            .resources = json_str_list(a, json_get(r, "resources")),
            .names = json_str_list(a, json_get(r, "resourceNames")),
            .urls = json_str_list(a, json_get(r, "nonResourceURLs")),
        };
    }
    *ret_n = n;
    return rules;
}

static struct subject subject_read(struct arena *a, const cJSON *s, struct str binding_ns)
{
    struct str kind = json_str_at(s, "kind"), name = json_str_at(s, "name");
    struct str ns = json_str_at(s, "namespace");

    if (str_eqc(kind, "Group"))
        return (struct subject){SUBJECT_GROUP, arena_str(a, name)};
    if (!str_eqc(kind, "ServiceAccount"))
        return (struct subject){SUBJECT_USER, arena_str(a, name)};
    if (!ns.n)
        ns = binding_ns;
    return (struct subject){SUBJECT_ACCOUNT, arena_printf(a, "system:serviceaccount:%.*s:%.*s",
                                                          STR_F(ns), STR_F(name))};
}

static bool on_binding(void *ctx, const struct store_object *o)
{
    struct rbac *r = ctx;
    struct arena *scratch = arena_new(0), *a = r->arena;
    const cJSON *tree = vapi_tree(scratch, o), *subjects = json_get(tree, "subjects");
    struct binding *b = ARENA_NEW(a, struct binding);
    struct subject *list = arena_alloc(a, (json_count(subjects) + 1) * sizeof(*list));

    *b = (struct binding){.ns = arena_str(a, o->ns), .name = arena_str(a, o->name)};
    b->role_kind = arena_str(a, json_str_at(tree, "roleRef.kind"));
    b->role = arena_str(a, json_str_at(tree, "roleRef.name"));
    b->subjects = list;
    json_each(s, subjects) list[b->n_subjects++] = subject_read(a, s, o->ns);
    STAILQ_INSERT_TAIL(&r->bindings, b, place);
    arena_free(scratch);
    return true;
}

static void scan(struct rbac *r, enum rbac_source source, store_scan_cb each)
{
    struct err err;

    err_init(&err, NULL);
    int failed = store_scan(vapi_store(r->api), r->storage[source], STR_NULL, STR_NULL, STR_NULL, 0,
                            each, r, &err);
    assert(!failed); /* an existing role can always be read */
}

static void index_make(struct rbac *r)
{
    if (r->arena)
        return;
    r->arena = arena_new(0);
    SLIST_INIT(&r->roles);
    STAILQ_INIT(&r->bindings);
    scan(r, CLUSTER_ROLE_BINDINGS, on_binding);
    scan(r, ROLE_BINDINGS, on_binding);
}

static void on_change(void *ctx)
{
    struct rbac *r = ctx;
    bool expired = false;

    assert(r->magic == RBAC_MAGIC);
    for (size_t i = 0; i < N_SOURCES; i++) {
        while (r->watches[i] && store_watch_next(r->watches[i], &expired))
            continue;
    }
    r->arena = arena_free(r->arena);
}

static const struct role *role_get(struct rbac *r, struct str ns, struct str kind, struct str name)
{
    bool cluster = str_eqc(kind, "ClusterRole");
    struct str where = cluster ? STR("") : ns;

    struct role *role;

    SLIST_FOREACH(role, &r->roles, place)
    {
        if (str_eq(role->name, name) && str_eq(role->ns, where))
            return role;
    }
    const struct store_object *o =
        store_get(vapi_store(r->api), r->storage[cluster ? CLUSTER_ROLES : ROLES], where, name);
    role = ARENA_NEW(r->arena, struct role);
    *role = (struct role){.ns = arena_str(r->arena, where), .name = arena_str(r->arena, name)};
    if (o) {
        struct arena *scratch = arena_new(0);

        role->rules = rbac_rules_read(r->arena, vapi_tree(scratch, o), &role->n);
        arena_free(scratch);
    }
    role->missing = !o;
    SLIST_INSERT_HEAD(&r->roles, role, place);
    return role;
}

const struct rule *rbac_role_rules(struct rbac *r, struct arena *a, struct str ns, struct str kind,
                                   struct str name, size_t *ret_n)
{
    bool cluster = str_eqc(kind, "ClusterRole");
    const struct store_object *o =
        store_get(vapi_store(r->api), r->storage[cluster ? CLUSTER_ROLES : ROLES],
                  cluster ? STR("") : ns, name);

    *ret_n = 0;
    return o ? rbac_rules_read(a, vapi_tree(a, o), ret_n) : NULL;
}

/* --- matching --- */

/* An access review may name a hundred thousand groups, and a binding as many subjects. */
struct membership {
    const struct user *user;
    struct str *sorted; /* its groups; NULL: few enough for a linear search */
};

static bool is_in_group(const struct membership *k, struct str group)
{
    const struct user *u = k->user;

    if (k->sorted)
        return bsearch(&group, k->sorted, u->n_groups, sizeof(group), str_order) != NULL;
    for (size_t i = 0; i < u->n_groups; i++) {
        if (str_eq(u->groups[i], group))
            return true;
    }
    return false;
}

static const struct subject *binding_subject(const struct binding *b, const struct membership *k)
{
    for (size_t i = 0; i < b->n_subjects; i++) {
        const struct subject *s = &b->subjects[i];

        if (s->kind == SUBJECT_GROUP ? is_in_group(k, s->name) : str_eq(s->name, k->user->name))
            return s;
    }
    return NULL;
}

/* Of "system:serviceaccount:ns:name" the namespace; *name becomes the last part. */
static struct str split_account(struct str *name)
{
    *name = str_from(*name, sizeof("system:serviceaccount:") - 1);
    return str_cut(name, ':');
}

static void each_rule(struct rbac *r, const struct membership *k, struct str ns, rule_cb each,
                      void *ctx)
{
    static const char *const kinds[] = {"User", "Group", "ServiceAccount"};
    const struct binding *b;

    STAILQ_FOREACH(b, &r->bindings, place)
    {
        if (b->ns.n && !str_eq(b->ns, ns))
            continue;
        const struct subject *s = binding_subject(b, k);
        if (!s)
            continue;
        const struct role *role = role_get(r, b->ns, b->role_kind, b->role);
        struct str account = s->name;
        struct rule_origin origin = {
            .binding_kind = b->ns.n ? "RoleBinding" : "ClusterRoleBinding",
            .role_kind = str_eqc(b->role_kind, "ClusterRole") ? "ClusterRole" : "Role",
            .subject_kind = kinds[s->kind],
            .binding = b->name,
            .role = b->role,
            .subject = s->name,
            .subject_ns = s->kind == SUBJECT_ACCOUNT ? split_account(&account) : STR_NULL,
            .ns = b->ns,
        };
        if (s->kind == SUBJECT_ACCOUNT)
            origin.subject = account;
        if (role->missing && !each(ctx, NULL, &origin))
            return;
        for (size_t i = 0; i < role->n; i++) {
            if (!each(ctx, &role->rules[i], &origin))
                return;
        }
    }
}

void rbac_each(struct rbac *r, const struct user *u, struct str ns, rule_cb each, void *ctx)
{
    struct membership k = {.user = u};
    struct arena *a = u->n_groups > FEW_GROUPS ? arena_new(0) : NULL;

    assert(r->magic == RBAC_MAGIC);
    index_make(r);
    if (a) {
        size_t n = k.user->n_groups;

        k.sorted = arena_alloc(a, n * sizeof(*k.sorted));
        for (size_t i = 0; i < n; i++)
            k.sorted[i] = k.user->groups[i];
        qsort(k.sorted, n, sizeof(*k.sorted), str_order);
    }
    each_rule(r, &k, ns, each, ctx);
    if (a)
        arena_free(a);
}

/* The resource of a request may contain the slash: upstream compares the joined strings. */
static bool is_together(struct str rule, struct str resource, struct str subresource)
{
    if (!subresource.n)
        return str_eq(rule, resource);
    return rule.n == resource.n + 1 + subresource.n && str_has_prefix(rule, resource) &&
           rule.p[resource.n] == '/' && str_eq(str_from(rule, resource.n + 1), subresource);
}

/* "pods/log" is matched by itself, by "*" and by any resource with that subresource. */
static bool resource_matches(struct str_list list, struct str resource, struct str subresource)
{
    if (str_list_has(list, STR("*")))
        return true;
    for (size_t i = 0; i < list.n; i++) {
        struct str rule = list.items[i];

        if (is_together(rule, resource, subresource) ||
            (subresource.n && str_has_prefix(rule, STR("*/")) &&
             str_eq(str_from(rule, 2), subresource)))
            return true;
    }
    return false;
}

static bool url_matches(struct str_list list, struct str path)
{
    for (size_t i = 0; i < list.n; i++) {
        struct str url = list.items[i];

        if (str_eqc(url, "*") || str_eq(url, path))
            return true;
        if (!str_has_suffix(url, STR("*")))
            continue;
        while (url.n && url.p[url.n - 1] == '*')
            url.n--;
        if (str_has_prefix(path, url))
            return true;
    }
    return false;
}

bool rbac_rule_allows(const struct rule *rule, const struct attributes *what)
{
    if (!str_list_has_or_star(rule->verbs, str_c(what->verb)))
        return false;
    if (!what->resource.p)
        return url_matches(rule->urls, what->path);
    return str_list_has_or_star(rule->groups, what->group) &&
           resource_matches(rule->resources, what->resource, what->subresource) &&
           (rule->names.n == 0 || (what->name.n && str_list_has(rule->names, what->name)));
}

void rbac_missing_add(struct missing_roles *m, struct arena *a, const struct rule_origin *o)
{
    bool cluster = !strcmp(o->role_kind, "ClusterRole");
    struct str text = arena_printf(a, "%s.rbac.authorization.k8s.io \"%.*s\" not found",
                                   cluster ? "clusterrole" : "role", STR_F(o->role));

    for (size_t i = 0; i < m->n; i++) {
        if (str_eq(m->texts[i], text))
            return;
    }
    if (m->n < MISSING_MOST)
        m->texts[m->n++] = text;
}

/* As apimachinery's Aggregate prints errors: several in brackets, each once. */
struct str rbac_missing_message(const struct missing_roles *m, struct arena *a)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    for (size_t i = 0; i < m->n; i++) {
        buf_addc(&b, i ? ", " : m->n > 1 ? "[" : "");
        buf_add(&b, m->texts[i]);
    }
    buf_addc(&b, m->n > 1 ? "]" : "");
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

/* --- covering: whether a holder of these rules may grant that one --- */

bool rbac_rules_allow(const struct rule *held, size_t n, const struct attributes *what)
{
    for (size_t i = 0; i < n; i++) {
        if (rbac_rule_allows(&held[i], what))
            return true;
    }
    return false;
}

static bool names_covered(const struct rule *held, size_t n, const struct rule *wanted,
                          struct attributes *what)
{
    if (!wanted->names.n) {
        what->name = STR("");
        return rbac_rules_allow(held, n, what);
    }
    for (size_t i = 0; i < wanted->names.n; i++) {
        what->name = wanted->names.items[i];
        if (!rbac_rules_allow(held, n, what))
            return false;
    }
    return true;
}

static bool resources_covered(const struct rule *held, size_t n, const struct rule *wanted,
                              struct attributes *what)
{
    for (size_t g = 0; g < wanted->groups.n; g++) {
        what->group = wanted->groups.items[g];
        for (size_t i = 0; i < wanted->resources.n; i++) {
            struct str rest = wanted->resources.items[i];

            what->resource = str_cut(&rest, '/');
            what->subresource = rest.p ? rest : STR("");
            if (!what->subresource.n) /* "pods/" is not "pods" */
                what->resource = wanted->resources.items[i];
            if (!names_covered(held, n, wanted, what))
                return false;
        }
    }
    return true;
}

static size_t product(const size_t *factors, size_t n)
{
    size_t product = 1;

    for (size_t i = 0; i < n; i++) {
        if (factors[i] > 1 && product > RULES_MAX_PERMISSIONS / factors[i])
            return RULES_MAX_PERMISSIONS + 1;
        product *= factors[i] ? factors[i] : 1;
    }
    return product;
}

size_t rbac_rules_permissions(size_t n_held, const struct rule *w)
{
    const size_t resources[] = {n_held, w->verbs.n, w->groups.n, w->resources.n, w->names.n};
    const size_t urls[] = {n_held, w->verbs.n, w->urls.n};

    return product(resources, 5) + product(urls, 3);
}

/* A wanted "*" is compared literally: only a held "*" covers it. */
bool rbac_rules_cover(const struct rule *held, size_t n_held, const struct rule *wanted)
{
    struct arena *a;
    bool covered = true;

    if (rbac_rules_permissions(n_held, wanted) > RULES_MAX_PERMISSIONS)
        return false;
    a = arena_new(0);

    for (size_t v = 0; v < wanted->verbs.n && covered; v++) {
        struct attributes what = {.verb = arena_cstr(a, wanted->verbs.items[v])};

        covered = resources_covered(held, n_held, wanted, &what);
        for (size_t i = 0; i < wanted->urls.n && covered; i++) {
            what.resource = STR_NULL;
            what.path = wanted->urls.items[i];
            covered = rbac_rules_allow(held, n_held, &what);
        }
    }
    arena_free(a);
    return covered;
}

/* --- lifecycle --- */

struct rbac *rbac_new(struct vapi *api)
{
    struct rbac *r = NEW(struct rbac);
    struct store *store = vapi_store(api);
    struct err err;

    *r = (struct rbac){.magic = RBAC_MAGIC, .api = api};
    err_init(&err, NULL);
    for (size_t i = 0; i < N_SOURCES; i++) {
        const struct resource *res = registry_find_group_resource(
            vapi_registry(api), STR("rbac.authorization.k8s.io"), str_c(SOURCE_PLURALS[i]));

        assert(res); /* a built-in kind */
        r->storage[i] = res->storage;
        int failed = store_watch_open(store, r->storage[i], store_revision(store), on_change, r,
                                      &r->watches[i], &err);
        assert(!failed);
    }
    return r;
}

struct rbac *rbac_free(struct rbac *r)
{
    if (!r)
        return NULL;
    assert(r->magic == RBAC_MAGIC);
    for (size_t i = 0; i < N_SOURCES; i++)
        store_watch_close(r->watches[i]);
    arena_free(r->arena);
    r->magic = 0;
    return mem_free(r);
}
