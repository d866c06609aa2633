/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody hands out what they do not hold: who writes a role must hold its rules (or may
 * `escalate`), who writes a binding must hold the role's (or may `bind` it). */
#include "rbac.h"

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

static void write_list(struct buf *b, const char *name, struct str_list list, bool *some)
{
    if (!list.n)
        return;
    buf_printf(b, "%s%s:[", *some ? ", " : "", name);
    *some = true;
    for (size_t i = 0; i < list.n; i++) {
        if (i)
            buf_addc(b, " ");
        buf_json_string(b, list.items[i]);
    }
    buf_char(b, ']');
}

static void write_rule(struct buf *b, const struct rule *rule)
{
    bool some = false;

    buf_char(b, '{');
    write_list(b, "APIGroups", rule->groups, &some);
    write_list(b, "Resources", rule->resources, &some);
    write_list(b, "ResourceNames", rule->names, &some);
    write_list(b, "NonResourceURLs", rule->urls, &some);
    write_list(b, "Verbs", rule->verbs, &some);
    buf_addc(b, "}");
}

static int covered(struct auth *auth, struct arena *a, const struct user *u, struct str ns,
                   const struct resource *r, struct str name, const struct rule *wanted, size_t n,
                   struct err *err)
{
    struct held held = {.arena = a};
    struct buf text = BUF_INIT(8192);
    size_t missing = 0;

    rbac_each(auth_rbac(auth), u, ns, on_held, &held);
    for (size_t i = 0; i < n; i++) {
        if (rules_cover(held.rules, held.n, &wanted[i]))
            continue;
        if (missing++)
            buf_char(&text, '\n');
        write_rule(&text, &wanted[i]);
    }
    int result = 0;
    if (missing) {
        struct buf groups = BUF_INIT(4096);

        for (size_t i = 0; i < u->n_groups; i++) {
            buf_addc(&groups, i ? " " : "");
            buf_json_string(&groups, u->groups[i]);
        }
        result =
            err_forbidden(err, r->group, r->plural, name,
                          "user \"%.*s\" (groups=[%.*s]) is attempting to grant RBAC permissions "
                          "not currently held:\n%.*s",
                          STR_F(u->name), STR_F(buf_str(&groups)), STR_F(buf_str(&text)));
        buf_fini(&groups);
    }
    buf_fini(&text);
    return result;
}

static bool may(struct auth *auth, struct arena *a, const struct user *u, const char *verb,
                struct str resource, struct str ns, struct str name)
{
    struct attributes what = {.verb = verb,
                              .group = STR("rbac.authorization.k8s.io"),
                              .version = STR("v1"),
                              .resource = resource,
                              .ns = ns,
                              .name = name,
                              .subresource = STR("")};

    return auth_authorize(auth, a, u, &what, NULL);
}

static int check_role(struct auth *auth, struct arena *a, const struct user *u,
                      const struct resource *r, const cJSON *object, const cJSON *old,
                      struct err *err)
{
    struct str name = json_str_at(object, "metadata.name"),
               ns = json_str_at(object, "metadata.namespace");
    size_t n;

    if (old && json_equal(json_get(old, "rules"), json_get(object, "rules")) &&
        json_equal(json_get(old, "aggregationRule"), json_get(object, "aggregationRule")))
        return 0;
    if (may(auth, a, u, "escalate", r->plural, ns, name))
        return 0;
    if (json_get(object, "aggregationRule"))
        return err_forbidden(err, r->group, r->plural, name,
                             "must have cluster-admin privileges to use an aggregationRule");
    const struct rule *rules = rules_read(a, object, &n);
    return covered(auth, a, u, ns.p ? ns : STR(""), r, name, rules, n, err);
}

static int check_binding(struct auth *auth, struct arena *a, const struct user *u,
                         const struct resource *r, const cJSON *object, const cJSON *old,
                         struct err *err)
{
    struct str name = json_str_at(object, "metadata.name"),
               ns = json_str_at(object, "metadata.namespace");
    struct str kind = json_str_at(object, "roleRef.kind"),
               role = json_str_at(object, "roleRef.name");
    bool cluster = str_eqc(kind, "ClusterRole");
    size_t n;

    if (old && json_equal(json_get(old, "roleRef"), json_get(object, "roleRef")) &&
        json_equal(json_get(old, "subjects"), json_get(object, "subjects")))
        return 0;
    ns = ns.p ? ns : STR("");
    if (may(auth, a, u, "bind", cluster ? STR("clusterroles") : STR("roles"), ns, role))
        return 0;
    const struct rule *rules = rbac_role_rules(auth_rbac(auth), a, ns, kind, role, &n);
    if (!rules)
        return err_not_found(err, r->group, cluster ? STR("clusterroles") : STR("roles"), role);
    return covered(auth, a, u, ns, r, name, rules, n, err);
}

int auth_check_escalation(struct auth *auth, struct arena *a, const struct user *u,
                          const struct resource *r, const cJSON *object, const cJSON *old,
                          struct err *err)
{
    if (user_is_master(u))
        return 0;
    if (str_eqc(r->kind, "Role") || str_eqc(r->kind, "ClusterRole"))
        return check_role(auth, a, u, r, object, old, err);
    return check_binding(auth, a, u, r, object, old, err);
}
