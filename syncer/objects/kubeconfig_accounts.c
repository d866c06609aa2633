/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig.additionalSecrets[].serviceAccount.clusterRole: the account whose token a Secret of
 * the host has, and its ClusterRoleBinding. Why: a client with the Secret has rights then without a
 * step of the tenant's. Must never leave a binding that the configuration has no more, nor delete
 * one of the tenant's, who may give its own such a name: one of this file binds what its name says.
 */
#include <sublet/config_kubeconfig.h>

#include "objects/objects.h"

#define PREFIX   "sublet:kubeconfig:"
#define GROUP    "rbac.authorization.k8s.io"
#define RETRY_MS 5000

static const struct resource *bindings(const struct syncer *s)
{
    return syncer_resource(s, GROUP, "clusterrolebindings");
}

static const struct resource *accounts(const struct syncer *s)
{
    return syncer_resource(s, "", "serviceaccounts");
}

static struct str name_of(struct arena *a, const struct config_kubeconfig *c)
{
    return arena_printf(a, PREFIX "%.*s:%.*s:%.*s", STR_F(c->account_ns), STR_F(c->account),
                        STR_F(c->cluster_role));
}

/* What is missing is seen at the next attempt. */
static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)err;
    (void)object;
}

static void bind(struct syncer *s, struct arena *a, const struct config_kubeconfig *c,
                 struct str name)
{
    cJSON *object = json_new_object(a), *role = json_ensure_object(a, object, "roleRef");
    cJSON *subjects = json_set(a, object, "subjects", json_new_array(a));
    cJSON *subject = json_append(subjects, json_new_object(a));

    json_set_str(a, object, "apiVersion", STR(GROUP "/v1"));
    json_set_str(a, object, "kind", STR("ClusterRoleBinding"));
    json_set_str(a, json_ensure_object(a, object, "metadata"), "name", name);
    json_set_str(a, role, "apiGroup", STR(GROUP));
    json_set_str(a, role, "kind", STR("ClusterRole"));
    json_set_str(a, role, "name", c->cluster_role);
    json_set_str(a, subject, "kind", STR("ServiceAccount"));
    json_set_str(a, subject, "name", c->account);
    json_set_str(a, subject, "namespace", c->account_ns);
    vapi_create(s->api, bindings(s), STR(""), object, on_written, NULL);
}

static void create(struct syncer *s, struct arena *a, const struct config_kubeconfig *c)
{
    cJSON *object = json_new_object(a), *metadata = json_ensure_object(a, object, "metadata");

    json_set_str(a, object, "apiVersion", STR("v1"));
    json_set_str(a, object, "kind", STR("ServiceAccount"));
    json_set_str(a, metadata, "name", c->account);
    json_set_str(a, metadata, "namespace", c->account_ns);
    vapi_create(s->api, accounts(s), c->account_ns, object, on_written, NULL);
}

static bool make_one(struct syncer *s, struct arena *a, const struct config_kubeconfig *c)
{
    struct str name = name_of(a, c);
    bool account = store_get(s->store, accounts(s)->storage, c->account_ns, c->account) != NULL;
    bool binding = store_get(s->store, bindings(s)->storage, STR(""), name) != NULL;

    if (!account)
        create(s, a, c);
    if (!binding)
        bind(s, a, c, name);
    return !account || !binding;
}

static void on_due(void *ctx)
{
    struct syncer *s = ctx;

    s->accounts_due = false;
    if (!syncer_is_closing(s))
        sync_kubeconfig_accounts_make(s);
}

void sync_kubeconfig_accounts_make(struct syncer *s)
{
    struct arena *a = arena_new(0);
    bool missing = false;

    for (size_t i = 0; i < s->config->n_kubeconfigs; i++)
        if (s->config->kubeconfigs[i].cluster_role.n)
            missing |= make_one(s, a, &s->config->kubeconfigs[i]);
    if (missing && !s->accounts_due) {
        s->accounts_due = true;
        syncer_defer_for(s, on_due, s, RETRY_MS);
    }
    arena_free(a);
}

/* Does it give the role to the account of its name? */
static bool is_made_here(struct arena *a, const struct store_object *o)
{
    const cJSON *tree = vapi_tree(a, o), *role = json_get(tree, "roleRef");

    if (!str_eqc(json_str(json_get(role, "kind")), "ClusterRole"))
        return false;
    json_each(subject, json_get(tree, "subjects"))
    {
        const struct config_kubeconfig c = {.account_ns = json_str(json_get(subject, "namespace")),
                                            .account = json_str(json_get(subject, "name")),
                                            .cluster_role = json_str(json_get(role, "name"))};

        if (str_eqc(json_str(json_get(subject, "kind")), "ServiceAccount") &&
            str_eq(name_of(a, &c), o->name))
            return true;
    }
    return false;
}

static bool on_binding(void *ctx, const struct store_object *o)
{
    static const struct vapi_delete options = {.grace_seconds = -1};
    struct syncer *s = ctx;
    struct arena *a = arena_new(0);
    bool wanted = !str_has_prefix(o->name, STR(PREFIX)) || !is_made_here(a, o);

    for (size_t i = 0; i < s->config->n_kubeconfigs; i++) {
        const struct config_kubeconfig *c = &s->config->kubeconfigs[i];

        wanted |= c->cluster_role.n && str_eq(name_of(a, c), o->name);
    }
    if (!wanted)
        vapi_delete(s->api, bindings(s), STR(""), o->name, &options, on_written, NULL);
    arena_free(a);
    return true;
}

void sync_kubeconfig_accounts_clear(struct syncer *s)
{
    store_scan_latest(s->store, bindings(s)->storage, STR_NULL, on_binding, s);
}
