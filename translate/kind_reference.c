/* SPDX-License-Identifier: Apache-2.0 */
/* References between objects of the Gateway API. Why: on the host all of a tenant's objects share
 * one namespace, and what keeps its namespaces apart there upstream, ReferenceGrants and
 * allowedRoutes, would permit everything. So both are applied here, and a reference that they do
 * not permit gets a name on the host that no object has. Must never emit a namespace, nor a name
 * that is not translated, but those of a Gateway of the host that the admin shows, and that only
 * for host names of the admin's list. */

#include "kind_impl.h"

enum { MOST_PARENTS = 32 }; /* as in the API's own definition */

/* ---- what the tenant's other objects say ---- */

static const cJSON *object_of(const struct kind_call *c, const char *group, const char *plural,
                              struct str ns, struct str name)
{
    const struct translate_related *related = c->tenant->related;

    return related && related->object
               ? related->object(related->ctx, c->arena, group, plural, ns, name)
               : NULL;
}

static struct str denied_name(struct arena *a, const struct translate_tenant *t, struct str ns,
                              struct str name)
{
    char ret[64];

    translate_denied_name(t, ns, name, ret);
    return arena_str(a, str_c(ret));
}

static struct str deny(const struct kind_call *c, struct str ns, struct str name, const char *why)
{
    const struct translate_related *related = c->tenant->related;

    if (related && related->denied)
        related->denied(related->ctx,
                        arena_printf(c->arena, "%s: %s: the reference leads nowhere on the host",
                                     c->path, why));
    return denied_name(c->arena, c->tenant, ns, name);
}

/* An empty namespace is none. */
static struct str namespace_of(const struct kind_call *c, const cJSON *ref)
{
    struct str ns = json_str(json_get(ref, "namespace"));

    return ns.n ? ns : c->ns;
}

static struct str value_or(const cJSON *object, const char *key, struct str otherwise)
{
    const cJSON *value = json_get(object, key);

    return value && !json_is_null(value) ? json_str(value) : otherwise;
}

/* ---- ReferenceGrants ---- */

struct target {
    struct str group, kind, ns, name;
};

static bool grants_from(const struct kind_call *c, const cJSON *grant)
{
    struct str kind = json_str(json_get(c->object, "kind"));

    json_each(from, json_path(grant, "spec.from"))
    {
        if (str_eqc(json_str(json_get(from, "group")), GATEWAY_GROUP) &&
            str_eq(json_str(json_get(from, "kind")), kind) &&
            str_eq(json_str(json_get(from, "namespace")), c->ns))
            return true;
    }
    return false;
}

static bool grants_to(const struct target *target, const cJSON *grant)
{
    json_each(to, json_path(grant, "spec.to"))
    {
        struct str name = json_str(json_get(to, "name"));

        if (str_eq(json_str(json_get(to, "group")), target->group) &&
            str_eq(json_str(json_get(to, "kind")), target->kind) &&
            (!name.n || str_eq(name, target->name)))
            return true;
    }
    return false;
}

static bool is_granted(const struct kind_call *c, const struct target *target)
{
    const struct translate_related *related = c->tenant->related;
    const cJSON *grants;

    if (!related || !related->list)
        return false;
    grants = related->list(related->ctx, c->arena, GATEWAY_GROUP, "referencegrants", target->ns);
    json_each(grant, grants)
    {
        if (grants_from(c, grant) && grants_to(target, grant))
            return true;
    }
    return false;
}

int gateway_reference_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct target to = {value_or(c->parent, "group", STR("")),
                        value_or(c->parent, "kind", str_c(c->what)), namespace_of(c, c->parent),
                        json_str(value)};

    if (!to.name.n)
        return translate_kind_refuse(c, "is no name");
    if (str_eq(to.ns, c->ns) || is_granted(c, &to)) {
        *ret = translate_kind_reference(c, to.group.n ? "" : arena_cstr(c->arena, to.kind), to.ns,
                                        to.name);
        return 0;
    }
    *ret = json_new_string(
        c->arena,
        deny(c, to.ns, to.name,
             arena_printf(c->arena, "namespace \"%.*s\" has no ReferenceGrant for %.*s \"%.*s\"",
                          STR_F(to.ns), STR_F(to.kind), STR_F(to.name))
                 .p));
    return 0;
}

/* ---- routes to Gateways ---- */

static bool selects_own(const struct kind_call *c, const cJSON *selector)
{
    const cJSON *ns = object_of(c, "", "namespaces", STR(""), c->ns);
    struct selector parsed;

    return ns && json_is_object(selector) &&
           !selector_from_json(c->arena, selector, &parsed, NULL) &&
           selector_match(&parsed, labels_flatten(c->arena, json_path(ns, "metadata.labels")));
}

/* Does the listener take routes of the route's namespace? */
static bool listener_admits(const struct kind_call *c, const cJSON *listener, struct str gateway_ns)
{
    const cJSON *namespaces = json_path(listener, "allowedRoutes.namespaces");
    struct str from = value_or(namespaces, "from", STR("Same"));

    if (str_eqc(from, "Selector"))
        return selects_own(c, json_get(namespaces, "selector"));
    return str_eqc(from, "All") || (str_eqc(from, "Same") && str_eq(gateway_ns, c->ns));
}

static bool is_meant(const cJSON *ref, const cJSON *listener)
{
    struct str section = json_str(json_get(ref, "sectionName"));
    const cJSON *port = json_get(ref, "port");

    return (!section.n || str_eq(section, json_str(json_get(listener, "name")))) &&
           (!port || json_is_null(port) || json_equal(port, json_get(listener, "port")));
}

static cJSON *add_parent(const struct kind_call *c, const cJSON *ref, struct str host_name,
                         cJSON *to)
{
    static const char *const kept[] = {"group", "kind", "sectionName", "port"};
    cJSON *made = json_append(to, json_new_object(c->arena));

    for (size_t i = 0; i < COUNT(kept); i++)
        if (json_is_scalar(json_get(ref, kept[i])) && !json_is_null(json_get(ref, kept[i])))
            object_add(c->arena, made, str_c(kept[i]), json_copy(c->arena, json_get(ref, kept[i])));
    add_str(c->arena, made, "name", host_name);
    return made;
}

static struct str translated(const struct kind_call *c, struct str ns, struct str name)
{
    char ret[64];

    translate_name(c->tenant, ns, name, ret);
    return arena_str(c->arena, str_c(ret));
}

/* The same message for a Gateway that does not exist: a route must not reveal what other namespaces
 * have. */
static struct str deny_parent(const struct kind_call *c, struct str ns, struct str name)
{
    return deny(c, ns, name,
                arena_printf(c->arena,
                             "namespace \"%.*s\" has no Gateway \"%.*s\" with a listener "
                             "that allows routes of this namespace",
                             STR_F(ns), STR_F(name))
                    .p);
}

/* Where some of the meant listeners admit it and others do not, each that does is named. */
static void attach(const struct kind_call *c, const cJSON *ref, const cJSON *gateway, struct str ns,
                   struct str name, cJSON *to)
{
    struct str host_name = translated(c, ns, name);
    size_t meant = 0, admitted = 0;

    json_each(listener, json_path(gateway, "spec.listeners"))
    {
        meant += is_meant(ref, listener);
        admitted += is_meant(ref, listener) && listener_admits(c, listener, ns);
    }
    if (admitted == meant && (meant || str_eq(ns, c->ns))) {
        add_parent(c, ref, host_name, to);
        return;
    }
    json_each(listener, json_path(gateway, "spec.listeners"))
    {
        if (is_meant(ref, listener) && listener_admits(c, listener, ns))
            json_set_str(c->arena, add_parent(c, ref, host_name, to), "sectionName",
                         json_str(json_get(listener, "name")));
    }
    if (!admitted)
        add_parent(c, ref, deny_parent(c, ns, name), to);
}

/* ---- routes to Gateways of the host, which other tenants use as well ---- */

/* A route's own `*.example` takes names of any depth, other than a pattern of the list. */
static int check_host(const struct kind_call *c, const struct config_from *row, struct str host)
{
    if (!config_host_listed(row->hosts, host))
        return translate_kind_refuse(
            c, "host name \"%.*s\" is not one of sync.fromHost.gateways.hosts", STR_F(host));
    if (str_has_prefix(host, STR("*")) && !row->wildcards)
        return translate_kind_refuse(c,
                                     "host name \"%.*s\" covers names of several labels, which "
                                     "sync.fromHost.gateways.wildcards does not admit",
                                     STR_F(host));
    return 0;
}

static int check_hosts(const struct kind_call *c)
{
    const struct config_from *row = config_from_row(c->tenant->config, FROM_GATEWAYS);
    const cJSON *hosts = json_path(c->object, "spec.hostnames");
    struct kind_call at = *c;

    at.path = "spec.hostnames";
    if (!json_is_array(hosts) || !json_count(hosts))
        return translate_kind_refuse(&at, "a route to a Gateway of the host without one would take "
                                          "the traffic of every host");
    json_each(host, hosts)
    {
        if (check_host(&at, row, json_str(host)))
            return -1;
    }
    return 0;
}

/* Where the tenant's object shows a Gateway of the host: that one's place there. */
static bool is_shared(const struct kind_call *c, struct str ns, struct str name,
                      struct str *ret_host_ns, struct str *ret_host_name)
{
    return translate_shows_host(c->tenant, FROM_GATEWAYS, ns, name, ret_host_ns, ret_host_name);
}

/* A listener that is not shown serves other tenants, and the reasons of the route's status would
 * say that the host has it. */
static bool names_hidden_listener(const cJSON *ref, const cJSON *gateway)
{
    const cJSON *port = json_get(ref, "port");

    if (!json_str(json_get(ref, "sectionName")).n && (!port || json_is_null(port)))
        return false;
    json_each(listener, json_path(gateway, "spec.listeners"))
    {
        if (is_meant(ref, listener))
            return false;
    }
    return true;
}

static int parent_down(const struct kind_call *c, const cJSON *ref, cJSON *to)
{
    struct str ns = namespace_of(c, ref), name = json_str(json_get(ref, "name"));
    struct str host_ns, host_name;
    const cJSON *gateway;

    if (!str_eqc(value_or(ref, "group", STR(GATEWAY_GROUP)), GATEWAY_GROUP) ||
        !str_eqc(value_or(ref, "kind", STR("Gateway")), "Gateway"))
        return translate_kind_refuse(c, "only Gateways go down as parents");
    if (!name.n)
        return translate_kind_refuse(c, "a parent needs a name");
    gateway = object_of(c, GATEWAY_GROUP, "gateways", ns, name);
    if (gateway && is_shared(c, ns, name, &host_ns, &host_name)) {
        if (names_hidden_listener(ref, gateway))
            add_parent(c, ref, deny_parent(c, ns, name), to);
        else
            json_set_str(c->arena, add_parent(c, ref, host_name, to), "namespace", host_ns);
        return check_hosts(c);
    }
    if (gateway)
        attach(c, ref, gateway, ns, name, to);
    else if (str_eq(ns, c->ns))
        add_parent(c, ref, translated(c, ns, name), to);
    else
        add_parent(c, ref, deny_parent(c, ns, name), to);
    return 0;
}

int gateway_parents_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    if (json_count(value) > MOST_PARENTS)
        return translate_kind_refuse(c, "at most %d parents go down", MOST_PARENTS);
    *ret = json_new_array(c->arena);
    json_each(ref, value)
    {
        if (json_is_array(value) && parent_down(c, ref, *ret))
            return -1;
    }
    return 0;
}

/* ---- status.parents ---- */

/* Is it the place on the host of the tenant's Gateway of this name? */
static bool leads_to(const struct kind_call *c, const cJSON *host_ref, struct str ns,
                     struct str name, bool *ret_shared)
{
    struct str host_name = json_str(json_get(host_ref, "name")), shared_ns, shared_name;

    *ret_shared = is_shared(c, ns, name, &shared_ns, &shared_name);
    if (*ret_shared)
        return str_eq(host_name, shared_name) &&
               str_eq(value_or(host_ref, "namespace", c->tenant->host_namespace), shared_ns);
    /* The name on the host begins with as much: a cheap test before the hash. */
    return str_has_prefix(host_name, str_sub(name, 0, 46)) &&
           str_eq(host_name, translated(c, ns, name));
}

/* The tenant's reference that went down as this one; NULL: none did. */
static const cJSON *origin_of(const struct kind_call *c, const cJSON *host_ref, bool *ret_shared)
{
    struct str host_name = json_str(json_get(host_ref, "name"));

    json_each(ref, json_path(c->object, "spec.parentRefs"))
    {
        struct str ns = namespace_of(c, ref), name = json_str(json_get(ref, "name"));
        struct str section = json_str(json_get(ref, "sectionName"));
        const cJSON *port = json_get(ref, "port");

        if ((leads_to(c, host_ref, ns, name, ret_shared) ||
             str_eq(host_name, denied_name(c->arena, c->tenant, ns, name))) &&
            (!section.n || str_eq(section, json_str(json_get(host_ref, "sectionName")))) &&
            (!port || json_is_null(port) || json_equal(port, json_get(host_ref, "port"))))
            return ref;
    }
    return NULL;
}

static bool has_parent(const cJSON *list, const cJSON *ref, struct str controller)
{
    json_each(one, list)
    {
        if (json_equal(json_get(one, "parentRef"), ref) &&
            str_eq(json_str(json_get(one, "controllerName")), controller))
            return true;
    }
    return false;
}

static cJSON *reference_up(struct arena *a, const cJSON *ref)
{
    static const char *const kept[] = {"group", "kind", "namespace", "name", "sectionName", "port"};
    cJSON *ret = json_new_object(a);

    for (size_t i = 0; i < COUNT(kept); i++)
        if (json_is_scalar(json_get(ref, kept[i])) && !json_is_null(json_get(ref, kept[i])))
            object_add(a, ret, str_c(kept[i]), json_copy(a, json_get(ref, kept[i])));
    return ret;
}

/* What a controller says of a Gateway that others use may name their routes. */
static cJSON *conditions_up(const struct kind_call *c, const cJSON *from, bool shared)
{
    cJSON *ret = translate_kind_conditions(c->arena, json_get(from, "conditions"));

    json_each(condition, shared ? ret : NULL)
        json_set_str(c->arena, condition, "message", STR(FROM_HOST_MESSAGE));
    return ret;
}

/* A reference that went down as several has the conditions of the first. */
int gateway_parents_up(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    *ret = json_new_array(c->arena);
    json_each(parent, value)
    {
        bool shared = false;
        const cJSON *origin = origin_of(c, json_get(parent, "parentRef"), &shared);
        struct str controller = json_str(json_get(parent, "controllerName"));
        cJSON *ref = reference_up(c->arena, origin), *one;

        if (!origin || !json_is_array(value) || has_parent(*ret, ref, controller))
            continue;
        one = json_append(*ret, json_new_object(c->arena));
        object_add(c->arena, one, STR("parentRef"), ref);
        add_str(c->arena, one, "controllerName", controller);
        object_add(c->arena, one, STR("conditions"), conditions_up(c, parent, shared));
    }
    return 0;
}

/* ---- status.ancestors of a policy ---- */

enum { MOST_ANCESTORS = 16 }; /* as in the API's own definition */

/* A Gateway that the tenant has or is shown, of any namespace; NULL: none is at this place on the
 * host. */
static const cJSON *gateway_at(const struct kind_call *c, const cJSON *host_ref, bool *ret_shared)
{
    const struct translate_related *related = c->tenant->related;
    const cJSON *gateways =
        related && related->list
            ? related->list(related->ctx, c->arena, GATEWAY_GROUP, "gateways", STR_NULL)
            : NULL;

    json_each(gateway, gateways)
    {
        if (leads_to(c, host_ref, json_str_at(gateway, "metadata.namespace"),
                     json_str_at(gateway, "metadata.name"), ret_shared))
            return gateway;
    }
    return NULL;
}

static bool is_target(const struct kind_call *c, struct str host_name, struct str *ret_name)
{
    json_each(target, json_path(c->object, "spec.targetRefs"))
    {
        *ret_name = json_str(json_get(target, "name"));
        if (ret_name->n && str_eq(host_name, translated(c, c->ns, *ret_name)))
            return true;
    }
    return false;
}

/* NULL: it is not the tenant's. */
static cJSON *ancestor_up(const struct kind_call *c, const cJSON *host_ref, bool *ret_shared)
{
    struct str host_name = json_str(json_get(host_ref, "name")), name;
    struct str kind = value_or(host_ref, "kind", STR("Gateway"));
    const cJSON *gateway = str_eqc(kind, "Gateway") ? gateway_at(c, host_ref, ret_shared) : NULL;
    cJSON *ref = reference_up(c->arena, host_ref);

    json_remove(ref, "namespace");
    if (gateway) {
        json_set_str(c->arena, ref, "name", json_str_at(gateway, "metadata.name"));
        json_set_str(c->arena, ref, "namespace", json_str_at(gateway, "metadata.namespace"));
        return ref;
    }
    if (!str_eqc(kind, "Service") || !is_target(c, host_name, &name))
        return NULL;
    json_set_str(c->arena, ref, "name", name);
    return ref;
}

int gateway_ancestors_up(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    *ret = json_new_array(c->arena);
    json_each(ancestor, json_count(value) <= MOST_ANCESTORS ? value : NULL)
    {
        bool shared = false;
        cJSON *ref = ancestor_up(c, json_get(ancestor, "ancestorRef"), &shared), *one;

        if (!ref || !json_is_array(value))
            continue;
        one = json_append(*ret, json_new_object(c->arena));
        object_add(c->arena, one, STR("ancestorRef"), ref);
        add_str(c->arena, one, "controllerName", json_str(json_get(ancestor, "controllerName")));
        object_add(c->arena, one, STR("conditions"), conditions_up(c, ancestor, shared));
    }
    return 0;
}
