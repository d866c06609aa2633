/* SPDX-License-Identifier: Apache-2.0 */
/* Prevents privilege escalation: the writer of a role must hold its rules (admission checks
 * `escalate` first), the writer of a binding must hold the role's rules (or may `bind` it). Any
 * change is checked, because a label alone aggregates a role's rules into another. Source:
 * k8s.io/kubernetes pkg/registry/rbac. */
#include "rbac.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>

#include "auth_impl.h"

struct held {
    struct arena *arena;
    struct rule *rules;
    size_t n, cap;
};

static bool on_held(void *ctx, const struct rule *rule, const struct rule_origin *origin)
{
    struct held *h = ctx;

    (void)origin;
    if (!rule)
        return true;
    if (h->n == h->cap) {
        size_t cap = h->cap ? 2 * h->cap : 64;
        struct rule *grown = arena_alloc(h->arena, cap * sizeof(*grown));

        for (size_t i = 0; i < h->n; i++)
            grown[i] = h->rules[i];
        h->rules = grown;
        h->cap = cap;
    }
    h->rules[h->n++] = *rule;
    return true;
}

static void write_list(struct buf *b, struct arena *a, const char *name, struct str_list list,
                       bool *some)
{
    if (!list.n)
        return;
    buf_printf(b, "%s%s:[", *some ? ", " : "", name);
    *some = true;
    for (size_t i = 0; i < list.n; i++) {
        if (i)
            buf_addc(b, " ");
        buf_add(b, go_quote(a, list.items[i]));
    }
    buf_char(b, ']');
}

/* ---- missing rules, as upstream reports them: by group, resource and name, or by URL ---- */

#define MOST_MISSING 256   /* reported */
#define MOST_PARTS   16384 /* checked over all rules; beyond it they are reported unmerged */

struct lack {
    struct rule rule; /* lists of one item, except the verbs */
    size_t room;      /* capacity of the verbs */
};

struct lacks {
    struct arena *arena;
    const struct held *held;
    struct lack *items;
    size_t n, requested;
};

static struct str_list one(struct arena *a, struct str word)
{
    struct str *items = ARENA_NEW(a, struct str);

    *items = word;
    return (struct str_list){items, 1};
}

static bool same_list(struct str_list a, struct str_list b)
{
    return a.n == b.n && (!a.n || str_eq(a.items[0], b.items[0]));
}

static void lack_add(struct lacks *l, const struct rule *part)
{
    struct lack *lack = NULL;
    struct str *verbs;

    for (size_t i = 0; i < l->n && !lack && !part->urls.n; i++) {
        const struct rule *r = &l->items[i].rule;

        if (same_list(r->groups, part->groups) && same_list(r->resources, part->resources) &&
            same_list(r->names, part->names) && !r->urls.n)
            lack = &l->items[i];
    }
    if (!lack) {
        if (l->n == MOST_MISSING)
            return;
        lack = &l->items[l->n++];
        *lack = (struct lack){.rule = *part, .room = part->verbs.n};
        return;
    }
    if (lack->rule.verbs.n == lack->room) {
        lack->room = 2 * lack->room + 4;
        verbs = arena_alloc(l->arena, lack->room * sizeof(*verbs));
        for (size_t i = 0; i < lack->rule.verbs.n; i++)
            verbs[i] = lack->rule.verbs.items[i];
        lack->rule.verbs.items = verbs;
    }
    ((struct str *)(uintptr_t)lack->rule.verbs.items)[lack->rule.verbs.n++] = part->verbs.items[0];
}

static void check_part(struct lacks *l, struct str verb, struct str group, struct str resource,
                       const struct str *name)
{
    struct str sub = resource;
    struct attributes what = {.verb = arena_cstr(l->arena, verb), .group = group};

    what.resource = str_cut(&sub, '/');
    what.subresource = sub.p ? sub : STR("");
    if (!what.subresource.n)
        what.resource = resource;
    what.name = name ? *name : STR("");
    if (rbac_rules_allow(l->held->rules, l->held->n, &what))
        return;
    lack_add(l, &(struct rule){.verbs = one(l->arena, verb),
                               .groups = one(l->arena, group),
                               .resources = one(l->arena, resource),
                               .names = name ? one(l->arena, *name) : (struct str_list){NULL, 0}});
}

static void check_urls(struct lacks *l, const struct rule *w)
{
    for (size_t u = 0; u < w->urls.n; u++) {
        for (size_t v = 0; v < w->verbs.n; v++) {
            struct attributes what = {.verb = arena_cstr(l->arena, w->verbs.items[v]),
                                      .path = w->urls.items[u]};

            if (!rbac_rules_allow(l->held->rules, l->held->n, &what))
                lack_add(l, &(struct rule){.verbs = one(l->arena, w->verbs.items[v]),
                                           .urls = one(l->arena, w->urls.items[u])});
        }
    }
}

static void check_rule(struct lacks *l, const struct rule *w)
{
    size_t parts = rbac_rules_permissions(1, w);

    if (parts > MOST_PARTS - l->requested) {
        if (l->n < MOST_MISSING)
            l->items[l->n++] = (struct lack){.rule = *w, .room = w->verbs.n};
        return;
    }
    l->requested += parts;
    for (size_t g = 0; g < w->groups.n; g++) {
        struct str group = w->groups.items[g];

        for (size_t r = 0; r < w->resources.n; r++) {
            for (size_t v = 0; v < w->verbs.n; v++) {
                for (size_t n = 0; n < w->names.n; n++)
                    check_part(l, w->verbs.items[v], group, w->resources.items[r],
                               &w->names.items[n]);
                if (!w->names.n)
                    check_part(l, w->verbs.items[v], group, w->resources.items[r], NULL);
            }
        }
    }
    check_urls(l, w);
}

/* Sorted, without duplicates, one line each. */
static void write_lacks(struct buf *out, const struct lacks *l)
{
    struct str *lines = arena_alloc(l->arena, (l->n + 1) * sizeof(*lines));

    for (size_t i = 0; i < l->n; i++) {
        struct buf b = BUF_INIT(4096);
        bool some = false;

        buf_char(&b, '{');
        write_list(&b, l->arena, "APIGroups", l->items[i].rule.groups, &some);
        write_list(&b, l->arena, "Resources", l->items[i].rule.resources, &some);
        write_list(&b, l->arena, "ResourceNames", l->items[i].rule.names, &some);
        write_list(&b, l->arena, "NonResourceURLs", l->items[i].rule.urls, &some);
        write_list(&b, l->arena, "Verbs", l->items[i].rule.verbs, &some);
        buf_addc(&b, "}");
        lines[i] = arena_str(l->arena, buf_str(&b));
        buf_fini(&b);
    }
    qsort(lines, l->n, sizeof(*lines), str_order);
    for (size_t i = 0; i < l->n; i++) {
        if (i && str_eq(lines[i], lines[i - 1]))
            continue;
        buf_addc(out, i ? "\n" : "");
        buf_add(out, lines[i]);
    }
}

static int refuse(const struct user *u, const struct resource *r, struct str name,
                  const struct lacks *l, struct err *err)
{
    struct buf groups = BUF_INIT(4096), text = BUF_INIT(64 * 1024);

    for (size_t i = 0; i < u->n_groups; i++) {
        buf_addc(&groups, i ? " " : "");
        buf_add(&groups, go_quote(l->arena, u->groups[i]));
    }
    write_lacks(&text, l);
    err_forbidden(err, r->group, r->plural, name,
                  "user \"%.*s\" (groups=[%.*s]) is attempting to grant RBAC permissions "
                  "not currently held:\n%.*s",
                  STR_F(u->name), STR_F(buf_str(&groups)), STR_F(buf_str(&text)));
    buf_fini(&groups);
    buf_fini(&text);
    return -1;
}

static int covered(struct auth *auth, struct arena *a, const struct user *u, struct str ns,
                   const struct resource *r, struct str name, const struct rule *wanted, size_t n,
                   struct err *err)
{
    struct held held = {.arena = a};
    struct lacks lacks = {.arena = a, .held = &held};
    size_t requested = 0;
    bool missing = false;

    rbac_each(auth_rbac(auth), u, ns, on_held, &held);
    for (size_t i = 0; i < n; i++) {
        requested += rbac_rules_permissions(held.n, &wanted[i]);
        if (requested <= RULES_MAX_PERMISSIONS && rbac_rules_cover(held.rules, held.n, &wanted[i]))
            continue;
        missing = true;
        if (!lacks.items)
            lacks.items = arena_alloc(a, MOST_MISSING * sizeof(*lacks.items));
        check_rule(&lacks, &wanted[i]);
    }
    return missing ? refuse(u, r, name, &lacks, err) : 0;
}

/* ---- changed fields ---- */

/* Fields that the garbage collector or every write changes. */
static bool is_upkeep(const char *key)
{
    static const char *const keys[] = {"ownerReferences", "finalizers", "managedFields",
                                       "resourceVersion"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!strcmp(key, keys[i]))
            return true;
    }
    return false;
}

static cJSON *without_upkeep(struct arena *a, const cJSON *object)
{
    cJSON *kept = json_new_object(a), *metadata = json_new_object(a);

    json_each(m, object)
    {
        if (strcmp(m->string, "metadata") && !(json_is_array(m) && !json_count(m)))
            json_set(a, kept, m->string, json_copy(a, m));
    }
    json_each(m, json_get(object, "metadata"))
    {
        if (!is_upkeep(m->string) && (json_is_string(m) || json_count(m)))
            json_set(a, metadata, m->string, json_copy(a, m));
    }
    json_set(a, kept, "metadata", metadata);
    return kept;
}

/* ---- roles and bindings ---- */

static bool aggregates(const cJSON *role)
{
    return json_count(json_path(role, "aggregationRule.clusterRoleSelectors")) > 0;
}

/* An aggregation selector may gather any rule, so its author must hold all. */
static bool holds_all(struct auth *auth, struct arena *a, const struct user *u)
{
    static const struct str star = {"*", 1};
    const struct str_list any = {&star, 1};
    const struct rule all[] = {{.verbs = any, .groups = any, .resources = any},
                               {.verbs = any, .urls = any}};
    struct held held = {.arena = a};

    rbac_each(auth_rbac(auth), u, STR(""), on_held, &held);
    return rbac_rules_cover(held.rules, held.n, &all[0]) &&
           rbac_rules_cover(held.rules, held.n, &all[1]);
}

static int check_binding(struct auth *auth, struct arena *a, const struct user *u,
                         const struct resource *r, const cJSON *object, struct err *err)
{
    struct str name = json_str_at(object, "metadata.name"),
               ns = json_str_at(object, "metadata.namespace");
    struct str kind = json_str_at(object, "roleRef.kind"),
               role = json_str_at(object, "roleRef.name");
    bool cluster = str_eqc(kind, "ClusterRole");
    const struct rule *rules;
    size_t n;
    struct attributes what;

    ns = ns.p ? ns : STR("");
    if (!role.n || !(cluster || (ns.n && str_eqc(kind, "Role"))))
        return 0; /* validation refuses it */
    what = (struct attributes){.verb = "bind",
                               .group = STR("rbac.authorization.k8s.io"),
                               .version = STR("v1"),
                               .resource = cluster ? STR("clusterroles") : STR("roles"),
                               .ns = ns,
                               .name = role,
                               .subresource = STR("")};
    if (auth_authorize(auth, a, u, &what, NULL))
        return 0;
    rules = rbac_role_rules(auth_rbac(auth), a, ns, kind, role, &n);
    if (!rules)
        return err_not_found(err, r->group, r->plural, role); /* upstream's name of it */
    return covered(auth, a, u, ns, r, name, rules, n, err);
}

int auth_check_escalation(struct auth *auth, struct arena *a, const struct user *u,
                          const struct resource *r, const cJSON *object, const cJSON *old,
                          struct err *err)
{
    if (auth_is_master(u) || (old && json_equal(without_upkeep(a, object), without_upkeep(a, old))))
        return 0;
    if (str_eqc(r->kind, "Role") || str_eqc(r->kind, "ClusterRole")) {
        struct str name = json_str_at(object, "metadata.name");
        struct str ns = json_str_at(object, "metadata.namespace");
        const struct rule *rules;
        size_t n;

        rules = rbac_rules_read(a, object, &n);
        if (covered(auth, a, u, ns.p ? ns : STR(""), r, name, rules, n, err))
            return -1;
        if ((aggregates(object) || aggregates(old)) && !holds_all(auth, a, u))
            return err_forbidden(err, r->group, r->plural, name,
                                 "must have cluster-admin privileges to use the aggregationRule");
        return 0;
    }
    return check_binding(auth, a, u, r, object, err);
}
