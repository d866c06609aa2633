/* SPDX-License-Identifier: Apache-2.0 */
/* What policies and webhooks see beside the object: `request`; and what only policies see,
 * `namespaceObject` and the answers of the authorizer. Source: k8s.io/apiserver
 * admission/plugin/cel/condition.go (CreateAdmissionRequest, CreateNamespaceObject),
 * pkg/cel/library/authz.go. */
#include "plugins.h"
#include "policies.h"

#include <sublet/call.h>
#include <sublet/json_build.h>
#include <sublet/object.h>

struct policy_body_kind policy_body_kind(const struct resource *r, struct str subresource)
{
    const struct subresource *s = subresource.n ? resource_sub(r, subresource) : NULL;
    bool own = s && s->version && s->version[0];

    return (struct policy_body_kind){
        .group = own ? str_c(s->group) : r->group,
        .version = own ? str_c(s->version) : r->version,
        .kind = s && s->object_kind && s->object_kind[0] ? str_c(s->object_kind) : r->kind};
}

static cJSON *kind_tree(struct arena *a, const struct resource *r, struct str subresource)
{
    struct policy_body_kind k = policy_body_kind(r, subresource);

    return json_object(a, JSON("group", k.group), JSON("version", k.version), JSON("kind", k.kind));
}

static cJSON *resource_tree(struct arena *a, const struct resource *r)
{
    return json_object(a, JSON("group", r->group), JSON("version", r->version),
                       JSON("resource", r->plural));
}

struct user policy_request_user(struct arena *a, const struct admission_call *c)
{
    static const struct str groups[] = {STR("system:serviceaccounts"),
                                        STR("system:serviceaccounts:kube-system"),
                                        STR("system:authenticated")};

    if (!c->controller)
        return *c->user;
    return (struct user){
        .name = arena_printf(a, "system:serviceaccount:kube-system:%s", c->controller),
        .groups = groups,
        .n_groups = COUNT(groups),
    };
}

static cJSON *user_tree(struct arena *a, const struct user *u)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; i < u->n_groups; i++)
        json_append(list, json_new_string(a, u->groups[i]));
    return json_object(a, JSON("username", u->name), JSON_NONEMPTY("uid", u->uid),
                       JSON("groups", u->n_groups ? list : NULL),
                       JSON("extra", json_count(u->extra) ? json_copy(a, u->extra) : NULL));
}

static void add_delete_options(struct arena *a, cJSON *tree, const struct call_options *o)
{
    if (o->grace_seconds >= 0)
        json_set_i64(a, tree, "gracePeriodSeconds", o->grace_seconds);
    if (o->uid.n)
        json_set_str(a, json_ensure_object(a, tree, "preconditions"), "uid", o->uid);
    if (o->propagation.n)
        json_set_str(a, tree, "propagationPolicy", o->propagation);
}

static cJSON *options_tree(struct arena *a, const struct admission_call *c)
{
    static const char *const kinds[] = {[ADMISSION_CREATE] = "CreateOptions",
                                        [ADMISSION_UPDATE] = "UpdateOptions",
                                        [ADMISSION_DELETE] = "DeleteOptions"};
    static const char *const validations[] = {"Warn", "Ignore", "Strict"};
    const struct call_options *o = c->options;
    cJSON *ret;

    if (c->operation == ADMISSION_CONNECT)
        return json_new_null(a);
    ret = json_object(a, JSON("kind", kinds[c->operation]), JSON("apiVersion", "meta.k8s.io/v1"));
    if (c->dry_run)
        json_set(a, ret, "dryRun", json_array(a, json_new_string(a, STR("All"))));
    if (!o)
        return ret;
    if (c->operation == ADMISSION_DELETE) {
        add_delete_options(a, ret, o);
        return ret;
    }
    if (o->field_manager.n)
        json_set_str(a, ret, "fieldManager", o->field_manager);
    if (o->validation != VALIDATION_WARN && !c->controller) /* the default */
        json_set_str(a, ret, "fieldValidation", str_c(validations[o->validation]));
    return ret;
}

cJSON *policy_request_tree(const struct policy_request *q, const struct resource *as,
                           const struct resource *named)
{
    const struct admission_call *c = q->call;
    struct arena *a = q->arena;

    return json_object(
        a, JSON("uid", ""), JSON("kind", kind_tree(a, as, c->subresource)),
        JSON("resource", resource_tree(a, named)), JSON_NONEMPTY("subResource", c->subresource),
        JSON("requestKind", kind_tree(a, c->resource, c->subresource)),
        JSON("requestResource", resource_tree(a, c->resource)),
        JSON_NONEMPTY("requestSubResource", c->subresource), JSON_NONEMPTY("name", q->name),
        JSON_NONEMPTY("namespace", q->ns), JSON("operation", plugin_operation(c->operation)),
        JSON("userInfo", user_tree(a, &q->user)), JSON("object", json_new_null(a)),
        JSON("oldObject", json_new_null(a)), JSON_BOOL("dryRun", c->dry_run),
        JSON("options", options_tree(a, c)));
}

/* NULL for what is in no namespace, and for Namespaces themselves. */
cJSON *policy_namespace_tree(const struct policy_request *q)
{
    const struct store_object *ns;
    cJSON *tree, *metadata;

    if (!q->ns.n || resource_is_namespace(q->call->resource))
        return NULL;
    ns = plugin_stored(q->call, "", "namespaces", STR(""), q->ns);
    if (!ns)
        return NULL;
    tree = vapi_tree(q->arena, ns);
    metadata = json_get(tree, "metadata");
    json_remove(metadata, "managedFields");
    json_remove(metadata, "ownerReferences");
    json_remove(tree, "kind");
    json_remove(tree, "apiVersion");
    return tree;
}

/* ---- the authorizer ---- */

static const struct user *checked_user(const struct policy_request *q, const struct cel_check *c,
                                       struct user *account, struct str groups[3])
{
    if (!c->service_account.n)
        return &q->user; /* of a controller: the account, not this process */
    groups[0] = STR("system:serviceaccounts");
    groups[1] = arena_printf(q->arena, "system:serviceaccounts:%.*s", STR_F(c->service_account_ns));
    groups[2] = STR("system:authenticated");
    *account = (struct user){
        .name = arena_printf(q->arena, "system:serviceaccount:%.*s:%.*s",
                             STR_F(c->service_account_ns), STR_F(c->service_account)),
        .groups = groups,
        .n_groups = 3,
    };
    return account;
}

bool policy_request_authorize(void *request, const struct cel_check *check, struct str *ret_reason)
{
    struct policy_request *q = request;
    struct user account;
    struct str groups[3];
    struct attributes what = {
        .verb = arena_cstr(q->arena, check->verb),
        .group = check->group,
        .version = STR("*"),
        .resource = check->resource,
        .subresource = check->subresource,
        .name = check->name,
        .ns = check->ns,
    };

    if (check->path.n)
        what = (struct attributes){.verb = what.verb, .path = check->path};
    return auth_authorize(vapi_auth(q->call->api), q->arena,
                          checked_user(q, check, &account, groups), &what, ret_reason);
}
