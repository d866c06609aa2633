/* SPDX-License-Identifier: Apache-2.0 */
/* Who writes an admission policy or its binding may read the parameters that it names: what an
 * expression sees, it can show. Must never let a binding read what its author may not. Source:
 * k8s.io/kubernetes pkg/registry/admissionregistration/{validating,mutating}admissionpolicy and
 * -policybinding/authz.go. */
#include "plugins.h"

#include <sublet/field.h>
#include <sublet/json_build.h>
#include <sublet/vapi.h>

#define GROUP "admissionregistration.k8s.io"

/* A user as Go prints it. */
static struct str shown_user(struct arena *a, const struct user *u)
{
    struct buf b = BUF_INIT(4096);
    struct str ret;

    buf_printf(&b, "&{%.*s %.*s [", STR_F(u->name), STR_F(u->uid));
    for (size_t i = 0; i < u->n_groups; i++)
        buf_printf(&b, "%s%.*s", i ? " " : "", STR_F(u->groups[i]));
    buf_addc(&b, "] map[]}");
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

/* What a paramKind is, with "*" for what is not known. False: there is no such resource. */
static bool resolve(const struct admission_call *c, const cJSON *kind, struct attributes *what)
{
    struct str version = json_str(json_get(kind, "apiVersion")), group = STR("");
    const struct resource *r;

    what->group = what->version = what->resource = STR("*");
    if (str_find(version, '/') < version.n)
        group = str_cut(&version, '/');
    if (!version.n)
        return false;
    r = registry_find_kind(vapi_registry(c->api), group, version, json_str(json_get(kind, "kind")));
    what->group = group;
    what->version = version;
    what->resource = r ? r->plural : what->resource;
    return r != NULL;
}

static bool may(const struct admission_call *c, const struct attributes *what)
{
    return auth_authorize(vapi_auth(c->api), c->arena, c->user, what, NULL);
}

static void check_policy(const struct admission_call *c, const cJSON *object, const cJSON *old,
                         struct field_errors *e)
{
    const cJSON *kind = json_path(object, "spec.paramKind");
    struct attributes what = {.verb = "get", .ns = STR("*"), .name = STR("*")};

    if (!json_is_object(kind) || json_equal(kind, json_path(old, "spec.paramKind")))
        return;
    (void)resolve(c, kind, &what);
    if (may(c, &what))
        return;
    field_forbidden(e, FIELD(FIELD(NULL, "spec"), "paramKind"),
                    arena_printf(c->arena,
                                 "user %.*s must have \"get\" permission on all objects of the "
                                 "referenced paramKind (kind=%.*s, apiVersion=%.*s)",
                                 STR_F(shown_user(c->arena, c->user)),
                                 STR_F(json_str(json_get(kind, "kind"))),
                                 STR_F(json_str(json_get(kind, "apiVersion"))))
                        .p);
}

/* Why the rights that are needed are those for everything; empty: they are not. */
static struct str unknown(const struct admission_call *c, const char *policies,
                          struct str policy_name, struct attributes *what)
{
    const struct store_object *policy = plugin_stored(c, GROUP, policies, STR(""), policy_name);
    const cJSON *kind = policy ? json_path(vapi_tree(c->arena, policy), "spec.paramKind") : NULL;

    if (resolve(c, kind, what) || (policy && !kind))
        return STR("");
    if (!policy)
        return arena_printf(c->arena, "get policy %.*s", STR_F(policy_name));
    return arena_printf(c->arena, "resolve paramKind &{%.*s %.*s}",
                        STR_F(json_str(json_get(kind, "apiVersion"))),
                        STR_F(json_str(json_get(kind, "kind"))));
}

/* The user and the verb change places in upstream's other sentence. */
static void check_binding(const struct admission_call *c, const char *policies, const cJSON *object,
                          const cJSON *old, struct field_errors *e)
{
    const cJSON *spec = json_get(object, "spec"), *before = json_get(old, "spec"),
                *ref = json_get(spec, "paramRef");
    struct str policy_name = json_str(json_get(spec, "policyName")),
               user = shown_user(c->arena, c->user), why;
    struct attributes what = {.ns = json_str(json_get(ref, "namespace")),
                              .name = json_str(json_get(ref, "name"))};

    if (!json_is_object(ref) || (json_equal(ref, json_get(before, "paramRef")) &&
                                 str_eq(policy_name, json_str(json_get(before, "policyName")))))
        return;
    what.verb = what.name.n ? "get" : "list";
    why = unknown(c, policies, policy_name, &what);
    if (may(c, &what))
        return;
    field_forbidden(e, FIELD(FIELD(NULL, "spec"), "paramRef"),
                    why.n ? arena_printf(c->arena,
                                         "unable to %.*s to determine minimum required permissions "
                                         "and user %.*s does not have \"%s\" permission for all "
                                         "groups, versions and resources",
                                         STR_F(why), STR_F(user), what.verb)
                                .p
                          : arena_printf(c->arena,
                                         "user %s does not have \"%.*s\" permission on the object "
                                         "referenced by paramRef",
                                         what.verb, STR_F(user))
                                .p);
}

int policy_rights_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                           struct err *err)
{
    struct str plural = c->resource->plural;
    struct field_errors e;

    if (!object || c->operation == ADMISSION_DELETE || c->subresource.n ||
        !str_eqc(c->resource->group, GROUP) || c->user->groups == USER_INTERNAL.groups)
        return 0;
    field_errors_init(&e, c->arena);
    if (str_word_index("validatingadmissionpolicies|mutatingadmissionpolicies", plural) >= 0)
        check_policy(c, object, old, &e);
    else if (str_eqc(plural, "validatingadmissionpolicybindings"))
        check_binding(c, "validatingadmissionpolicies", object, old, &e);
    else if (str_eqc(plural, "mutatingadmissionpolicybindings"))
        check_binding(c, "mutatingadmissionpolicies", object, old, &e);
    return field_errors_to_err(&e, c->resource->group, c->resource->kind, c->name, err);
}
