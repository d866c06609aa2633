/* SPDX-License-Identifier: Apache-2.0 */
/* The default roles and bindings of every cluster. The first start creates them in one batch; a
 * later start with the same table reads nothing; a start with a changed table creates missing
 * objects, and adds missing rules and subjects to those that an admin has not opted out
 * (autoupdate). Must never remove anything an admin added. */
#include "rbac.h"

#include <assert.h>

#include <sublet/encode.h>
#include <sublet/json_build.h>

#include "auth_impl.h"

#define BOOTSTRAP_LABEL "kubernetes.io/bootstrapping"
#define AUTOUPDATE      "rbac.authorization.kubernetes.io/autoupdate"
#define RECORD_KEY      STR("rbac-bootstrap")
#define RBAC_GROUP      STR("rbac.authorization.k8s.io")

struct role_row {
    const char *kind, *ns, *name, *labels, *aggregation, *rules;
};
struct binding_row {
    const char *kind, *ns, *name, *role_kind, *role, *subjects;
};

static const struct role_row ROLES[] = {
#define BOOTSTRAP_ROLE(kind, ns, name, labels, aggregation, rules)                                 \
    {kind, ns, name, labels, aggregation, rules},
#define BOOTSTRAP_BINDING(kind, ns, name, role_kind, role, subjects)
#include <sublet/tbl/bootstrap_rbac.h>
#undef BOOTSTRAP_ROLE
#undef BOOTSTRAP_BINDING
};
static const struct binding_row BINDINGS[] = {
#define BOOTSTRAP_ROLE(kind, ns, name, labels, aggregation, rules)
#define BOOTSTRAP_BINDING(kind, ns, name, role_kind, role, subjects)                               \
    {kind, ns, name, role_kind, role, subjects},
#include <sublet/tbl/bootstrap_rbac.h>
#undef BOOTSTRAP_ROLE
#undef BOOTSTRAP_BINDING
};

struct bootstrap {
    struct auth *auth;
    struct vapi *api;
    unsigned pending; /* writes in progress, plus 1 while they are being issued */
    bool failed, incomplete;
    struct err err;
    struct arena *arena;
    struct str digest;
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
};

/* --- rows to objects --- */

static cJSON *split_words(struct arena *a, struct str text)
{
    cJSON *list = json_new_array(a);

    while (text.p && text.n) {
        struct str word = str_cut(&text, ',');

        json_append(list, json_new_string(a, str_eqc(word, "-") ? STR("") : word));
    }
    return list;
}

static cJSON *rules_of(struct arena *a, const char *text)
{
    static const char *const fields[] = {"verbs", "apiGroups", "resources", "resourceNames",
                                         "nonResourceURLs"};
    cJSON *rules = json_new_array(a);
    struct str lines = str_c(text);

    while (lines.p && lines.n) {
        struct str line = str_cut(&lines, '\n');
        cJSON *rule = json_append(rules, json_new_object(a));

        for (size_t i = 0; i < COUNT(fields); i++) {
            struct str part = str_cut(&line, '|');

            if (part.n)
                json_set(a, rule, fields[i], split_words(a, part));
        }
    }
    return rules;
}

static void pairs(struct arena *a, cJSON *map, const char *text)
{
    struct str rest = str_c(text);

    while (rest.p && rest.n) {
        struct str value = str_cut(&rest, ';'), key = str_cut(&value, '=');

        json_set_str(a, map, arena_cstr(a, key), value);
    }
}

static cJSON *object_new(struct arena *a, const char *kind, const char *ns, const char *name,
                         const char *labels)
{
    cJSON *object = json_new_object(a), *meta;

    json_set_str(a, object, "kind", str_c(kind));
    json_set_str(a, object, "apiVersion", STR("rbac.authorization.k8s.io/v1"));
    meta = json_ensure_object(a, object, "metadata");
    json_set_str(a, meta, "name", str_c(name));
    if (*ns)
        json_set_str(a, meta, "namespace", str_c(ns));
    cJSON *map = json_ensure_object(a, meta, "labels");
    json_set_str(a, map, BOOTSTRAP_LABEL, STR("rbac-defaults"));
    pairs(a, map, labels);
    json_set_str(a, json_ensure_object(a, meta, "annotations"), AUTOUPDATE, STR("true"));
    return object;
}

/* The initial rules of an aggregated role: those of all rows its selector matches; the controller
 * maintains them afterwards. A row whose rules are aggregated themselves contributes its own
 * parts. */
static void aggregate(struct arena *a, cJSON *rules, const char *selector, unsigned depth)
{
    for (size_t i = 0; i < COUNT(ROLES) && depth; i++) {
        if (!str_contains(str_c(ROLES[i].labels), str_c(selector)))
            continue;
        json_each(rule, rules_of(a, ROLES[i].rules)) json_append(rules, json_copy(a, rule));
        if (*ROLES[i].aggregation)
            aggregate(a, rules, ROLES[i].aggregation, depth - 1);
    }
}

static cJSON *role_of(struct arena *a, const struct role_row *row)
{
    cJSON *role = object_new(a, row->kind, row->ns, row->name, row->labels);
    cJSON *rules = rules_of(a, row->rules);

    if (*row->aggregation) {
        cJSON *rule = json_ensure_object(a, role, "aggregationRule");
        cJSON *selectors = json_set(a, rule, "clusterRoleSelectors", json_new_array(a));
        cJSON *selector = json_append(selectors, json_new_object(a));

        pairs(a, json_ensure_object(a, selector, "matchLabels"), row->aggregation);
        aggregate(a, rules, row->aggregation, 4);
    }
    json_set(a, role, "rules", rules);
    return role;
}

static cJSON *binding_of(struct arena *a, const struct binding_row *row)
{
    cJSON *binding = object_new(a, row->kind, row->ns, row->name, "");
    cJSON *ref = json_object(a, JSON("apiGroup", RBAC_GROUP), JSON("kind", row->role_kind),
                             JSON("name", row->role));
    cJSON *subjects = json_new_array(a);
    struct str rest = str_c(row->subjects);

    json_put(a, binding, JSON("roleRef", ref), JSON("subjects", subjects));
    while (rest.p && rest.n) {
        struct str name = str_cut(&rest, ';'), kind = str_cut(&name, ':');
        struct str ns = str_cut(&name, ':');
        struct str group = str_eqc(kind, "ServiceAccount") ? STR_NULL : RBAC_GROUP;

        json_append(subjects,
                    json_object(a, JSON("kind", kind), JSON_NONEMPTY("apiGroup", group),
                                JSON("name", name),
                                JSON_NONEMPTY("namespace", str_eqc(ns, "-") ? STR_NULL : ns)));
    }
    return binding;
}

/* --- writing --- */

bool auth_can_wait(struct vapi *api, const struct err *err)
{
    struct str known;

    return err->kind == &ERR_STORAGE &&
           store_record_get(vapi_store(api), RECORD_META, RECORD_KEY, &known);
}

static void release(struct bootstrap *b)
{
    assert(b->pending > 0);
    if (--b->pending == 0) {
        void (*done)(void *, const struct err *) = b->done;
        void *ctx = b->ctx;

        if (!b->failed && !b->incomplete)
            store_record_put(vapi_store(b->api), RECORD_META, RECORD_KEY, b->digest);
        done(ctx, b->failed ? &b->err : NULL);
        arena_free(b->arena);
    }
}

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    struct bootstrap *b = ctx;

    (void)object;
    /* An admin may have created it first. */
    if (err && auth_can_wait(b->api, err)) {
        b->incomplete = true;
    } else if (err && err->kind != &ERR_ALREADY_EXISTS && !b->failed) {
        b->failed = true;
        b->err.kind = err->kind;
        b->err.message = arena_str(b->arena, err->message);
    }
    release(b);
}

/* Appends to old's array the items of wanted that it lacks; true when there were any. */
static bool merge_list(struct arena *a, cJSON *old, const cJSON *wanted, const char *key)
{
    bool changed = false;
    cJSON *have = json_get(old, key);

    if (!json_is_array(have))
        have = json_set(a, old, key, json_new_array(a));
    json_each(item, json_get(wanted, key))
    {
        bool found = false;

        json_each(other, have) found = found || json_equal(item, other);
        if (!found)
            json_append(have, json_copy(a, item));
        changed = changed || !found;
    }
    return changed;
}

static void put_object(struct bootstrap *b, const cJSON *wanted, const char *plural,
                       const char *list)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(b->api), RBAC_GROUP, str_c(plural));
    struct str ns = json_str_at(wanted, "metadata.namespace");
    const struct store_object *o = store_get(vapi_store(b->api), r->storage, ns.p ? ns : STR(""),
                                             json_str_at(wanted, "metadata.name"));

    if (!o) {
        b->pending++;
        vapi_create(b->api, r, ns.p ? ns : STR(""), wanted, on_written, b);
        return;
    }
    cJSON *old = vapi_tree(b->arena, o);
    cJSON *annotations = json_path(old, "metadata.annotations");
    if (str_eqc(json_str(json_get(annotations, AUTOUPDATE)), "false"))
        return;
    if (json_get(wanted, "aggregationRule") || !merge_list(b->arena, old, wanted, list))
        return;
    b->pending++;
    vapi_update(b->api, r, STR_NULL, old, on_written, b);
}

static struct str table_digest(struct arena *a)
{
    struct buf text = BUF_INIT(0);
    unsigned char digest[32];

    for (size_t i = 0; i < COUNT(ROLES); i++)
        buf_printf(&text, "%s %s %s %s %s %s\n", ROLES[i].kind, ROLES[i].ns, ROLES[i].name,
                   ROLES[i].labels, ROLES[i].aggregation, ROLES[i].rules);
    for (size_t i = 0; i < COUNT(BINDINGS); i++)
        buf_printf(&text, "%s %s %s %s %s\n", BINDINGS[i].ns, BINDINGS[i].name,
                   BINDINGS[i].role_kind, BINDINGS[i].role, BINDINGS[i].subjects);
    sha256(buf_str(&text), digest);
    buf_fini(&text);
    return hex_encode(a, (struct str){(const char *)digest, sizeof(digest)});
}

static const char *plural_of(const char *kind)
{
    static const struct {
        const char *kind, *plural;
    } plurals[] = {{"ClusterRole", "clusterroles"},
                   {"Role", "roles"},
                   {"ClusterRoleBinding", "clusterrolebindings"},
                   {"RoleBinding", "rolebindings"}};

    for (size_t i = 0; i < COUNT(plurals); i++) {
        if (str_eqc(str_c(kind), plurals[i].kind))
            return plurals[i].plural;
    }
    __builtin_unreachable(); /* the table has only four kinds */
}

void auth_bootstrap(struct auth *auth, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct arena *a = arena_new(0);
    struct bootstrap *b = ARENA_NEW(a, struct bootstrap);
    struct str known;

    *b = (struct bootstrap){
        .auth = auth, .api = auth_api(auth), .arena = a, .pending = 1, .done = done, .ctx = ctx};
    err_init(&b->err, a);
    b->digest = table_digest(a);
    bool same = store_record_get(vapi_store(b->api), RECORD_META, RECORD_KEY, &known) &&
                str_eq(known, b->digest);
    for (size_t i = 0; i < COUNT(ROLES) && !same; i++)
        put_object(b, role_of(a, &ROLES[i]), plural_of(ROLES[i].kind), "rules");
    for (size_t i = 0; i < COUNT(BINDINGS) && !same; i++)
        put_object(b, binding_of(a, &BINDINGS[i]), plural_of(BINDINGS[i].kind), "subjects");
    release(b);
}
