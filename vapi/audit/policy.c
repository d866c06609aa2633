/* SPDX-License-Identifier: Apache-2.0
 *
 * An audit policy: parsed once, evaluated at every request. Why: operators bring the file that
 * worked with kube-apiserver, so rules match as they do there; the first match decides. It must
 * never accept a policy it would not enforce: an unknown key is an error. Source: k8s.io/apiserver
 * pkg/audit/policy checker.go, pkg/apis/audit/validation. */
#include <sublet/audit.h>

#include <assert.h>
#include <string.h>

#include <sublet/yaml.h>

#define POLICY_MAGIC    0x61706f6cu
#define MAX_POLICY_TEXT (1u << 20)

struct group_rule {
    struct str group;
    struct str_list resources, names;
};

struct rule {
    enum audit_level level;
    struct str_list users, groups, verbs, namespaces, urls;
    const struct group_rule *resources;
    size_t n_resources;
    unsigned omit_stages;
    bool omit_managed_fields;
};

struct audit_policy {
    unsigned magic;
    struct arena *arena;
    struct rule *rules;
    size_t n_rules;
    unsigned omit_stages;
    bool omit_managed_fields;
};

static const char *const LEVELS[] = {"None", "Metadata", "Request", "RequestResponse"};
static const char *const STAGES[] = {"RequestReceived", "ResponseStarted", "ResponseComplete",
                                     "Panic"};

/* ---- reading ---- */

struct reader {
    struct arena *arena;
    struct err *err;
};

static int bad(struct reader *r, struct str where, const char *why)
{
    return err_set(r->err, &ERR_BAD_REQUEST, "audit policy: %.*s: %s", STR_F(where), why);
}

static struct str below(struct reader *r, struct str path, const char *key)
{
    return path.n ? arena_printf(r->arena, "%.*s.%s", STR_F(path), key) : str_c(key);
}

static struct str element(struct reader *r, struct str path, size_t i)
{
    return arena_printf(r->arena, "%.*s[%zu]", STR_F(path), i);
}

/* keys: NULL-ended. */
static int check_keys(struct reader *r, const cJSON *object, struct str path,
                      const char *const *keys)
{
    if (!json_is_object(object))
        return bad(r, path.n ? path : STR("document"), "want an object");
    json_each(member, object)
    {
        size_t i = 0;

        while (keys[i] && strcmp(keys[i], member->string))
            i++;
        if (!keys[i])
            return bad(r, below(r, path, member->string), "unknown key");
    }
    return 0;
}

static int read_texts(struct reader *r, const cJSON *object, struct str path, const char *key,
                      struct str_list *ret)
{
    const cJSON *list = json_get(object, key);
    struct str *items, where = below(r, path, key);
    size_t n = 0;

    *ret = (struct str_list){NULL, 0};
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return bad(r, where, "want a list of strings");
    items = arena_alloc(r->arena, (json_count(list) + 1) * sizeof(*items));
    json_each(item, list)
    {
        if (!json_is_string(item))
            return bad(r, element(r, where, n), "want a string");
        items[n++] = json_str(item);
    }
    *ret = (struct str_list){items, n};
    return 0;
}

static int read_bool(struct reader *r, const cJSON *object, struct str path, const char *key,
                     bool *ret)
{
    const cJSON *value = json_get(object, key);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_bool(value))
        return bad(r, below(r, path, key), "want true or false");
    *ret = json_true(value);
    return 0;
}

static int read_stages(struct reader *r, const cJSON *object, struct str path, unsigned *ret)
{
    struct str where = below(r, path, "omitStages");
    struct str_list stages;

    if (read_texts(r, object, path, "omitStages", &stages))
        return -1;
    for (size_t i = 0; i < stages.n; i++) {
        size_t stage = 0;

        while (stage < AUDIT_N_STAGES && !str_eqc(stages.items[i], STAGES[stage]))
            stage++;
        if (stage == AUDIT_N_STAGES)
            return bad(r, element(r, where, i),
                       "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic");
        *ret |= 1u << stage;
    }
    return 0;
}

static int read_level(struct reader *r, const cJSON *rule, struct str path, enum audit_level *ret)
{
    struct str level = json_str(json_get(rule, "level"));

    for (size_t i = 0; i < COUNT(LEVELS); i++) {
        if (str_eqc(level, LEVELS[i])) {
            *ret = (enum audit_level)i;
            return 0;
        }
    }
    return bad(r, below(r, path, "level"), "want one of None, Metadata, Request, RequestResponse");
}

/* A `*` is allowed at the end only. */
static int check_urls(struct reader *r, const struct rule *rule, struct str path)
{
    struct str where = below(r, path, "nonResourceURLs");

    for (size_t i = 0; i < rule->urls.n; i++) {
        struct str url = rule->urls.items[i];

        if (str_eqc(url, "*"))
            continue;
        if (!str_has_prefix(url, STR("/")))
            return bad(r, element(r, where, i),
                       "non-resource URL rules must begin with a '/' character");
        if (str_find(url, '*') + 1 < url.n)
            return bad(r, element(r, where, i),
                       "non-resource URL wildcards '*' must be the final character of the rule");
    }
    if (rule->urls.n && (rule->n_resources || rule->namespaces.n))
        return bad(r, where, "rules cannot apply to both regular resources and non-resource URLs");
    return 0;
}

/* A name like "rbac.authorization.k8s.io"; no version after it, no capitals. */
static bool is_group(struct str group)
{
    if (str_eqc(group, "*"))
        return true;
    for (size_t i = 0; i < group.n; i++) {
        char c = group.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '.')
            return false;
    }
    return group.n <= 253;
}

static int read_group(struct reader *r, const cJSON *node, struct str path, struct group_rule *ret)
{
    static const char *const keys[] = {"group", "resources", "resourceNames", NULL};

    if (check_keys(r, node, path, keys) ||
        read_texts(r, node, path, "resources", &ret->resources) ||
        read_texts(r, node, path, "resourceNames", &ret->names))
        return -1;
    ret->group = json_str(json_get(node, "group"));
    if (!is_group(ret->group))
        return bad(r, below(r, path, "group"), "want the name of an API group, without a version");
    if (ret->names.n && !ret->resources.n)
        return bad(r, below(r, path, "resourceNames"),
                   "using resourceNames requires at least one resource");
    return 0;
}

static int read_groups(struct reader *r, const cJSON *node, struct str path, struct rule *rule)
{
    const cJSON *list = json_get(node, "resources");
    struct str where = below(r, path, "resources");
    struct group_rule *groups;

    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return bad(r, where, "want a list");
    groups = arena_alloc(r->arena, (json_count(list) + 1) * sizeof(*groups));
    rule->resources = groups;
    json_each(item, list)
    {
        groups[rule->n_resources] = (struct group_rule){.group = STR("")};
        if (read_group(r, item, element(r, where, rule->n_resources), &groups[rule->n_resources]))
            return -1;
        rule->n_resources++;
    }
    return 0;
}

static int read_rule(struct reader *r, const cJSON *node, struct str path, struct rule *rule)
{
    static const char *const keys[] = {
        "level",           "users",      "userGroups",        "verbs", "resources", "namespaces",
        "nonResourceURLs", "omitStages", "omitManagedFields", NULL};
    struct {
        const char *key;
        struct str_list *to;
    } lists[] = {
        {"users", &rule->users},          {"userGroups", &rule->groups},
        {"verbs", &rule->verbs},          {"namespaces", &rule->namespaces},
        {"nonResourceURLs", &rule->urls},
    };

    if (check_keys(r, node, path, keys) || read_level(r, node, path, &rule->level))
        return -1;
    for (size_t i = 0; i < COUNT(lists); i++)
        if (read_texts(r, node, path, lists[i].key, lists[i].to))
            return -1;
    if (read_groups(r, node, path, rule) || read_stages(r, node, path, &rule->omit_stages) ||
        read_bool(r, node, path, "omitManagedFields", &rule->omit_managed_fields))
        return -1;
    return check_urls(r, rule, path);
}

static int read_policy(struct reader *r, struct str text, struct audit_policy *p)
{
    const cJSON *list;

    static const char *const keys[] = {
        "apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields", NULL};
    cJSON *tree;

    if (text.n > MAX_POLICY_TEXT)
        return bad(r, STR("document"), "longer than 1 MiB");
    if (yaml_parse(r->arena, text, NULL, NULL, &tree, r->err))
        return err_wrap(r->err, "audit policy");
    if (check_keys(r, tree, STR(""), keys))
        return -1;
    if (!str_eqc(json_str(json_get(tree, "apiVersion")), "audit.k8s.io/v1"))
        return bad(r, STR("apiVersion"), "want audit.k8s.io/v1");
    if (!str_eqc(json_str(json_get(tree, "kind")), "Policy"))
        return bad(r, STR("kind"), "want Policy");
    if (read_stages(r, tree, STR(""), &p->omit_stages) ||
        read_bool(r, tree, STR(""), "omitManagedFields", &p->omit_managed_fields))
        return -1;

    list = json_get(tree, "rules");
    if (!json_is_array(list) || !json_first(list))
        return bad(r, STR("rules"), "want at least one rule");
    p->rules = arena_alloc(r->arena, json_count(list) * sizeof(*p->rules));
    json_each(item, list)
    {
        struct rule *rule = &p->rules[p->n_rules];

        *rule = (struct rule){.omit_stages = p->omit_stages,
                              .omit_managed_fields = p->omit_managed_fields};
        if (read_rule(r, item, element(r, STR("rules"), p->n_rules), rule))
            return -1;
        p->n_rules++;
    }
    return 0;
}

int audit_policy_parse(struct str text, struct audit_policy **ret, struct err *err)
{
    struct arena *a = arena_new(0);
    struct audit_policy *p = ARENA_NEW(a, struct audit_policy);
    struct reader r = {a, err};

    p->magic = POLICY_MAGIC;
    p->arena = a;
    if (read_policy(&r, text, p)) {
        arena_free(a);
        return -1;
    }
    *ret = p;
    return 0;
}

struct audit_policy *audit_policy_free(struct audit_policy *p)
{
    if (!p)
        return NULL;
    assert(p->magic == POLICY_MAGIC);
    p->magic = 0;
    arena_free(p->arena);
    return NULL;
}

/* ---- matching ---- */

static bool match_user(const struct rule *r, const struct user *user)
{
    if (r->users.n && (!user || !str_list_has(r->users, user->name)))
        return false;
    if (!r->groups.n)
        return true;
    for (size_t i = 0; user && i < user->n_groups; i++)
        if (str_list_has(r->groups, user->groups[i]))
            return true;
    return false;
}

/* "pods", "pods/log", "*", and the two forms with a star beside the slash. */
static bool match_resource(struct str wanted, const struct attributes *what)
{
    struct str rest = wanted, head;

    if (str_eqc(wanted, "*"))
        return true;
    head = str_cut(&rest, '/');
    if (!rest.p)
        return !what->subresource.n && str_eq(head, what->resource);
    if (str_eqc(rest, "*") && str_eq(head, what->resource))
        return true;
    if (!what->subresource.n || !str_eq(rest, what->subresource))
        return false;
    return str_eqc(head, "*") || str_eq(head, what->resource);
}

static bool match_group(const struct group_rule *g, const struct attributes *what)
{
    if (!str_eqc(g->group, "*") && !str_eq(g->group, what->group))
        return false;
    if (!g->resources.n)
        return true;
    if (g->names.n && !str_list_has(g->names, what->name))
        return false;
    for (size_t i = 0; i < g->resources.n; i++)
        if (match_resource(g->resources.items[i], what))
            return true;
    return false;
}

static bool match_url(const struct rule *r, const struct attributes *what)
{
    for (size_t i = 0; !what->resource.p && i < r->urls.n; i++) {
        struct str url = r->urls.items[i];

        if (str_eq(url, what->path))
            return true;
        if (url.n && url.p[url.n - 1] == '*' &&
            str_has_prefix(what->path, str_sub(url, 0, url.n - 1)))
            return true;
    }
    return false;
}

static bool matches(const struct rule *r, const struct user *user, const struct attributes *what)
{
    if (!match_user(r, user) || (r->verbs.n && !str_list_has(r->verbs, str_c(what->verb))))
        return false;
    if (r->namespaces.n || r->n_resources) {
        if (!what->resource.p || (r->namespaces.n && !str_list_has(r->namespaces, what->ns)))
            return false;
        for (size_t i = 0; i < r->n_resources; i++)
            if (match_group(&r->resources[i], what))
                return true;
        return !r->n_resources;
    }
    return !r->urls.n || match_url(r, what);
}

void audit_decide(const struct audit_policy *p, const struct user *user,
                  const struct attributes *what, struct audit_decision *ret)
{
    assert(p->magic == POLICY_MAGIC);
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct rule *r = &p->rules[i];

        if (!matches(r, user, what))
            continue;
        *ret = (struct audit_decision){r->level, r->omit_stages, r->omit_managed_fields};
        return;
    }
    *ret = (struct audit_decision){AUDIT_LEVEL_NONE, p->omit_stages, p->omit_managed_fields};
}
