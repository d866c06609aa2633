/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery: the served groups, versions and resources, in the aggregated form (v2) and in the
 * three older documents. Both are built from the registry on request, as JSON, YAML or protobuf.
 * The ETag of the aggregated form is the hash of its JSON, so that clients with a cache (kubectl)
 * get a 304. It must never name anything that is not served. Source: apiserver
 * pkg/endpoints/discovery. */
#include "discovery.h"
#include "discovery_extension.h"

#include "../respond/respond.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/json_build.h>
#include <sublet/net.h>
#include <sublet/proto.h>
#include <sublet/yaml.h>

#define AGGREGATED STR(";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
#define PROTOBUF   "application/vnd.kubernetes.protobuf"

static const struct {
    unsigned bit;
    const char *name;
} VERB_NAMES[] = {
    {VERB_CREATE, "create"}, {VERB_DELETE, "delete"}, {VERB_DELETECOLLECTION, "deletecollection"},
    {VERB_GET, "get"},       {VERB_LIST, "list"},     {VERB_PATCH, "patch"},
    {VERB_UPDATE, "update"}, {VERB_WATCH, "watch"},
};

static cJSON *verbs_of(struct arena *a, unsigned verbs)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; i < COUNT(VERB_NAMES); i++) {
        if (verbs & VERB_NAMES[i].bit)
            json_append(list, json_new_string(a, str_c(VERB_NAMES[i].name)));
    }
    return list;
}

/* For custom resources the verbs are in the order of upstream's handler. */
static cJSON *resource_verbs(struct arena *a, const struct resource *r)
{
    static const char *const custom[] = {"delete", "deletecollection", "get",    "list",
                                         "patch",  "create",           "update", "watch"};
    cJSON *list;

    if (!r->crd || r->verbs != VERBS_ALL)
        return verbs_of(a, r->verbs);
    list = json_new_array(a);
    for (size_t i = 0; i < COUNT(custom); i++)
        json_append(list, json_new_string(a, str_c(custom[i])));
    return list;
}

static void add_texts(struct arena *a, cJSON *object, const char *key,
                      const char *const *descriptions)
{
    if (!descriptions || !*descriptions)
        return;
    cJSON *list = json_set(a, object, key, json_new_array(a));
    for (; *descriptions; descriptions++)
        json_append(list, json_new_string(a, str_c(*descriptions)));
}

static struct str group_version(struct arena *a, struct str group, struct str version)
{
    if (!group.n)
        return version;
    return arena_concat(a, 3, (struct str[]){group, STR("/"), version});
}

/* --- grouping: registry order is group, then version by preference, then resource --- */

struct walk {
    struct arena *arena;
    struct str group;   /* this group only; p == NULL: all but core; "" core */
    struct str version; /* this version only; p == NULL: all */
    cJSON *groups, *versions, *resources;
    struct str last_group, last_version;
    void (*open_group)(struct walk *w, struct str group);
    void (*open_version)(struct walk *w, struct str group, struct str version);
    void (*resource)(struct walk *w, const struct resource *r);
};

static bool on_walk(void *ctx, const struct resource *r)
{
    struct walk *w = ctx;

    if (w->group.p ? !str_eq(w->group, r->group) : r->group.n == 0)
        return true;
    if (w->version.p && !str_eq(w->version, r->version))
        return true;
    bool new_group = !w->last_group.p || !str_eq(w->last_group, r->group);
    if (new_group && w->open_group)
        w->open_group(w, r->group);
    if ((new_group || !str_eq(w->last_version, r->version)) && w->open_version)
        w->open_version(w, r->group, r->version);
    w->last_group = r->group;
    w->last_version = r->version;
    if (w->resource)
        w->resource(w, r);
    return true;
}

/* --- aggregated, apidiscovery.k8s.io/v2 --- */

static cJSON *kind_ref(struct arena *a, struct str group, struct str version, struct str kind)
{
    return json_object(a, JSON("group", group), JSON("version", version), JSON("kind", kind));
}

/* Upstream omits group and version of built-in kinds. */
static cJSON *own_kind_ref(struct arena *a, const struct resource *r, struct str kind)
{
    return kind_ref(a, r->crd ? r->group : STR(""), r->crd ? r->version : STR(""), kind);
}

static void v2_group(struct walk *w, struct str group)
{
    cJSON *item = json_append(w->groups, json_new_object(w->arena));
    cJSON *meta = json_ensure_object(w->arena, item, "metadata");

    if (group.n)
        json_set_str(w->arena, meta, "name", group);
    w->versions = json_set(w->arena, item, "versions", json_new_array(w->arena));
}

static void v2_version(struct walk *w, struct str group, struct str version)
{
    cJSON *item = json_append(w->versions, json_new_object(w->arena));

    (void)group;
    json_set_str(w->arena, item, "version", version);
    w->resources = json_set(w->arena, item, "resources", json_new_array(w->arena));
    json_set_str(w->arena, item, "freshness", STR("Current"));
}

static void v2_subresources(struct walk *w, cJSON *item, const struct resource *r)
{
    if (!r->n_subresources)
        return;
    cJSON *subs = json_set(w->arena, item, "subresources", json_new_array(w->arena));
    for (size_t i = 0; i < r->n_subresources; i++) {
        const struct subresource *s = &r->subresources[i];
        struct str kind = str_c(s->object_kind);
        bool own = !s->group || (!*s->group && !*s->version);
        cJSON *ref;

        own |= str_eqc(r->group, s->group) && str_eqc(r->version, s->version);
        ref = own ? own_kind_ref(w->arena, r, kind)
                  : kind_ref(w->arena, str_c(s->group), str_c(s->version), kind);
        json_append(subs,
                    json_object(w->arena, JSON("subresource", s->name), JSON("responseKind", ref),
                                JSON("verbs", verbs_of(w->arena, s->verbs))));
    }
}

static void v2_resource(struct walk *w, const struct resource *r)
{
    cJSON *item = json_object(w->arena, JSON("resource", r->plural),
                              JSON("responseKind", own_kind_ref(w->arena, r, r->kind)),
                              JSON("scope", resource_namespaced(r) ? "Namespaced" : "Cluster"),
                              JSON("singularResource", r->singular),
                              JSON("verbs", resource_verbs(w->arena, r)));

    json_append(w->resources, item);
    add_texts(w->arena, item, "shortNames", r->short_names);
    add_texts(w->arena, item, "categories", r->categories);
    v2_subresources(w, item, r);
}

static cJSON *aggregated(struct call *c, bool core)
{
    cJSON *list = json_new_object(c->arena);
    struct walk w = {.arena = c->arena, .group = core ? STR("") : STR_NULL};

    json_set_str(c->arena, list, "kind", STR("APIGroupDiscoveryList"));
    json_set_str(c->arena, list, "apiVersion", STR("apidiscovery.k8s.io/v2"));
    json_ensure_object(c->arena, list, "metadata");
    w.groups = json_set(c->arena, list, "items", json_new_array(c->arena));
    w.open_group = v2_group;
    w.open_version = v2_version;
    w.resource = v2_resource;
    registry_each(vapi_registry(c->api), on_walk, &w);
    if (!core)
        discovery_add_extensions(c, w.groups, STR_NULL, true);
    return list;
}

/* --- the older documents --- */

static cJSON *document(struct arena *a, const char *kind, bool with_version)
{
    cJSON *d = json_new_object(a);

    json_set_str(a, d, "kind", str_c(kind));
    if (with_version)
        json_set_str(a, d, "apiVersion", STR("v1"));
    return d;
}

static cJSON *version_entry(struct arena *a, struct str group, struct str version)
{
    cJSON *v = json_new_object(a);

    json_set_str(a, v, "groupVersion", group_version(a, group, version));
    json_set_str(a, v, "version", version);
    return v;
}

static void v1_group(struct walk *w, struct str group)
{
    cJSON *item = json_append(w->groups, json_new_object(w->arena));

    json_set_str(w->arena, item, "name", group);
    w->versions = json_set(w->arena, item, "versions", json_new_array(w->arena));
}

static void v1_version(struct walk *w, struct str group, struct str version)
{
    cJSON *item = w->groups->child->prev;

    json_append(w->versions, version_entry(w->arena, group, version));
    if (!json_get(item, "preferredVersion"))
        json_set(w->arena, item, "preferredVersion", version_entry(w->arena, group, version));
}

static cJSON *group_list(struct call *c, struct str only)
{
    struct walk w = {.arena = c->arena, .group = only, .groups = json_new_array(c->arena)};

    w.open_group = v1_group;
    w.open_version = v1_version;
    registry_each(vapi_registry(c->api), on_walk, &w);
    discovery_add_extensions(c, w.groups, only, false);
    return w.groups;
}

/* Of the stored kind: clients rewrite their objects when it changes. */
static struct str storage_hash(struct arena *a, const struct resource *r)
{
    struct str version = r->storage_version, group = STR("");
    unsigned char digest[32];

    if (str_find(version, '/') < version.n)
        group = str_cut(&version, '/');
    sha256(arena_concat(a, 5, (struct str[]){group, STR("/"), version, STR("/"), r->kind}), digest);
    return base64_encode(a, (struct str){(const char *)digest, 8});
}

static void v1_resource(struct walk *w, const struct resource *r)
{
    cJSON *item = json_object(w->arena, JSON("name", r->plural), JSON("singularName", r->singular),
                              JSON_BOOL("namespaced", resource_namespaced(r)),
                              JSON("kind", r->kind), JSON("verbs", resource_verbs(w->arena, r)));

    json_append(w->resources, item);
    add_texts(w->arena, item, "shortNames", r->short_names);
    add_texts(w->arena, item, "categories", r->categories);
    if (r->storage && (r->verbs & VERB_CREATE))
        json_set_str(w->arena, item, "storageVersionHash", storage_hash(w->arena, r));
    for (size_t i = 0; i < r->n_subresources; i++) {
        const struct subresource *s = &r->subresources[i];
        struct str name =
            arena_concat(w->arena, 3, (struct str[]){r->plural, STR("/"), str_c(s->name)});
        cJSON *sub = json_object(w->arena, JSON("name", name), JSON("singularName", ""),
                                 JSON_BOOL("namespaced", resource_namespaced(r)));

        if (s->group && *s->version &&
            (!str_eqc(r->group, s->group) || !str_eqc(r->version, s->version)))
            json_put(w->arena, sub, JSON("group", s->group), JSON("version", s->version));
        json_put(w->arena, sub, JSON("kind", s->object_kind),
                 JSON("verbs", verbs_of(w->arena, s->verbs)));
        json_append(w->resources, sub);
    }
}

static cJSON *resource_list(struct call *c, struct str group, struct str version)
{
    cJSON *list = document(c->arena, "APIResourceList", group.n > 0);
    struct walk w = {.arena = c->arena, .group = group, .version = version};

    json_set_str(c->arena, list, "groupVersion", group_version(c->arena, group, version));
    w.resources = json_set(c->arena, list, "resources", json_new_array(c->arena));
    w.resource = v1_resource;
    registry_each(vapi_registry(c->api), on_walk, &w);
    return list;
}

static cJSON *api_versions(struct call *c)
{
    cJSON *d = document(c->arena, "APIVersions", false);
    cJSON *versions = json_set(c->arena, d, "versions", json_new_array(c->arena));
    cJSON *addresses =
        json_set(c->arena, d, "serverAddressByClientCIDRs", json_new_array(c->arena));
    cJSON *address = json_append(addresses, json_new_object(c->arena));

    json_append(versions, json_new_string(c->arena, STR("v1")));
    json_set_str(c->arena, address, "clientCIDR", STR("0.0.0.0/0"));
    json_set_str(c->arena, address, "serverAddress", c->request->authority);
    return d;
}

/* --- answers --- */

/* The first supported media range decides; NULL: one of the older documents. */
static const char *aggregated_form(struct call *c)
{
    static const char *const forms[] = {"application/json", "application/yaml", PROTOBUF, NULL};
    struct str rest = net_header(c->request, "accept");

    while (rest.p) {
        struct str range = str_trim(str_cut(&rest, ','));
        struct str parameters = range, type = str_trim(str_cut(&parameters, ';'));
        bool as = str_contains(parameters, STR("as=APIGroupDiscoveryList"));

        if (!as && str_eqc(type, "*/*"))
            return NULL;
        for (size_t i = 0; forms[i]; i++) {
            if (!str_eqc(type, forms[i]))
                continue;
            if (!as)
                return NULL;
            if (str_contains(parameters, STR("g=apidiscovery.k8s.io")) &&
                str_contains(parameters, STR("v=v2")) &&
                !str_contains(parameters, STR("v=v2beta1")))
                return forms[i];
        }
    }
    return NULL;
}

/* The hash of the JSON form, for every form. */
static struct str aggregated_etag(struct call *c, struct str text)
{
    unsigned char digest[32];

    sha256(text, digest);
    return arena_concat(
        c->arena, 3,
        (struct str[]){STR("\""),
                       hex_encode(c->arena, (struct str){(const char *)digest, sizeof(digest)}),
                       STR("\"")});
}

static void answer_aggregated(struct call *c, bool core, const char *form)
{
    struct arena *a = c->arena;
    cJSON *list = aggregated(c, core);
    struct str text = json_text(a, list), etag = aggregated_etag(c, text);
    struct str type = arena_concat(a, 2, (struct str[]){str_c(form), AGGREGATED});
    struct buf other = BUF_INIT(0);

    call_header(c, "vary", STR("Accept"));
    call_header(c, "etag", etag);
    call_header(c, "cache-control", STR("public"));
    if (str_eq(net_header(c->request, "if-none-match"), etag)) {
        call_raw(c, 304, type, STR(""));
        return;
    }
    if (str_eqc(str_c(form), PROTOBUF)) {
        bool encoded = proto_encode(a, list, &text);

        assert(encoded); /* the table has its message */
    } else if (str_eqc(str_c(form), "application/yaml")) {
        yaml_print(&other, list);
        text = arena_str(a, buf_str(&other));
    }
    buf_fini(&other);
    call_raw(c, 200, type, text);
}

/* The older documents are available in every form of an object. */
static void answer(struct call *c, cJSON *document_, const struct err *unacceptable)
{
    if (unacceptable->kind)
        call_error(c, unacceptable);
    else
        call_tree(c, 200, document_);
}

/* /api, and the list of a version's resources, have a route each; a group has none. */
static void answer_routed(struct call *c, cJSON *document_, const struct err *unacceptable)
{
    static const char *const types[] = {"application/json", "application/yaml",
                                        "application/vnd.kubernetes.protobuf", NULL};
    struct err err;

    err_init(&err, c->arena);
    if (!respond_routable(c, types) &&
        respond_unroutable(&err, "application/json, application/yaml, "
                                 "application/vnd.kubernetes.protobuf"))
        call_error(c, &err);
    else
        answer(c, document_, unacceptable);
}

static void handle_roots(struct call *c, bool core, const struct err *unacceptable)
{
    const char *form = aggregated_form(c);

    if (form) {
        answer_aggregated(c, core, form);
        return;
    }
    if (core) {
        answer_routed(c, api_versions(c), unacceptable);
        return;
    }
    cJSON *list = document(c->arena, "APIGroupList", true);
    json_set(c->arena, list, "groups", group_list(c, STR_NULL));
    answer(c, list, unacceptable);
}

static void handle_group(struct call *c, struct str group, const struct err *unacceptable)
{
    cJSON *found = json_first(group_list(c, group));

    if (!found) {
        respond_text(c, 404, "404 page not found\n");
        return;
    }
    json_set_first(c->arena, found, "apiVersion", json_new_string(c->arena, STR("v1")));
    json_set_first(c->arena, found, "kind", json_new_string(c->arena, STR("APIGroup")));
    answer(c, found, unacceptable);
}

/* --- / lists the paths --- */

struct paths {
    struct arena *arena;
    struct str *path;
    size_t n, cap;
};

static void add_path(struct paths *p, struct str path)
{
    ARENA_GROW(p->arena, p->path, p->n, p->cap);
    p->path[p->n++] = path;
}

/* Called for each kind of a group; in_order() removes duplicates. */
static bool path_of_kind(void *ctx, const struct resource *r)
{
    struct paths *p = ctx;
    struct str group = arena_concat(p->arena, 2, (struct str[]){STR("/apis/"), r->group});
    struct str version = arena_concat(p->arena, 3, (struct str[]){group, STR("/"), r->version});

    if (!r->group.n || (p->n && str_eq(p->path[p->n - 1], version)))
        return true;
    add_path(p, group);
    add_path(p, version);
    return true;
}

static void path_of_extension(void *ctx, struct str path)
{
    add_path(ctx, path);
}

static void add_health(struct paths *p)
{
    for (size_t e = 0; e < N_HEALTH_PATHS; e++) {
        struct str root = arena_printf(p->arena, "/%s", HEALTH_PATHS[e].name);

        add_path(p, root);
        for (size_t i = 0; i < HEALTH_N_CHECKS; i++)
            if (HEALTH_CHECKS[i].endpoints & (unsigned)HEALTH_PATHS[e].which)
                add_path(
                    p, arena_concat(p->arena, 3,
                                    (struct str[]){root, STR("/"), str_c(HEALTH_CHECKS[i].name)}));
    }
    add_path(p, arena_printf(p->arena, "/readyz/%s", HEALTH_LAST.name));
}

static cJSON *in_order(struct paths *p)
{
    cJSON *list = json_new_array(p->arena);

    qsort(p->path, p->n, sizeof(*p->path), str_order);
    for (size_t i = 0; i < p->n; i++)
        if (!i || !str_eq(p->path[i], p->path[i - 1]))
            json_append(list, json_new_string(p->arena, p->path[i]));
    return list;
}

static void answer_index(struct call *c)
{
    static const char *const plain[] = {"/.well-known/openid-configuration",
                                        "/api",
                                        "/api/v1",
                                        "/apis",
                                        "/apis/",
                                        "/metrics",
                                        "/metrics/slis",
                                        "/openapi/v2",
                                        "/openapi/v3",
                                        "/openapi/v3/",
                                        "/openid/v1/jwks",
                                        "/version"};
    cJSON *index = json_new_object(c->arena);
    struct paths p = {.arena = c->arena};

    for (size_t i = 0; i < COUNT(plain); i++)
        add_path(&p, str_c(plain[i]));
    registry_each(vapi_registry(c->api), path_of_kind, &p);
    discovery_extension_paths(c, path_of_extension, &p);
    add_health(&p);
    json_set(c->arena, index, "paths", in_order(&p));
    c->pretty = true;
    c->output = OUTPUT_OBJECT;
    call_tree(c, 200, index);
}

bool discovery_handle(struct call *c, struct str path)
{
    const struct err *unacceptable = call_entry(c)->unacceptable;
    struct str rest = path, root, group, version;

    str_cut(&rest, '/'); /* before the first slash: nothing */
    if (!rest.p)
        return false;
    if (!rest.n || str_eqc(path, "/index.html")) {
        answer_index(c);
        return true;
    }
    if (str_has_prefix(rest, STR("apis//")))
        return false; /* the core group is not in /apis */

    /* Trailing slashes are ignored, as in upstream's router. */
    while (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--;

    root = str_cut(&rest, '/');
    bool core = str_eqc(root, "api");
    if (!core && !str_eqc(root, "apis"))
        return false;
    if (!rest.p) {
        handle_roots(c, core, unacceptable);
        return true;
    }
    group = core ? STR("") : str_cut(&rest, '/');
    if (!core && !rest.p) {
        handle_group(c, group, unacceptable);
        return true;
    }
    version = str_cut(&rest, '/');
    if (rest.p || !registry_has_group(vapi_registry(c->api), group, version))
        return false;
    answer_routed(c, resource_list(c, group, version), unacceptable);
    return true;
}
