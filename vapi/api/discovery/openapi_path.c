/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The paths and operations of a resource, from its descriptor: verbs, subresources, scope. Must
 * never compare the name of a kind, except for the few connections whose options are parameters.
 * Source: apiserver pkg/endpoints/installer.go, pkg/endpoints/openapi, and apiextensions-apiserver
 * pkg/controller/openapi/builder for custom resources. */
#include "openapi.h"

#include <ctype.h>
#include <string.h>

#define PROTOBUF "application/vnd.kubernetes.protobuf"

static const char *const ANYTHING[] = {"*/*", NULL};
static const char *const TEXTS[] = {"application/json", "application/yaml", NULL};
static const char *const JSON_ONLY[] = {"application/json", NULL};
static const char *const KEYS[] = {"application/jwk-set+json", NULL};
static const char *const OBJECTS[] = {"application/json", "application/yaml", PROTOBUF, NULL};
static const char *const LOGS[] = {"text/plain", "application/json", "application/yaml", PROTOBUF,
                                   NULL};
static const char *const STREAMED[] = {"application/json",
                                       "application/yaml",
                                       PROTOBUF,
                                       "application/json;stream=watch",
                                       PROTOBUF ";stream=watch",
                                       NULL};
static const char *const PATCHES[] = {"application/json-patch+json", "application/merge-patch+json",
                                      "application/strategic-merge-patch+json",
                                      "application/apply-patch+yaml", NULL};
static const char *const CUSTOM_PATCHES[] = {"application/json-patch+json",
                                             "application/merge-patch+json",
                                             "application/apply-patch+yaml", NULL};

/* Shared by the operations of one resource. */
struct paths {
    struct document *d;
    const struct resource *r;
    const char *object, *list, *status, *patch, *options; /* components */
    struct str all, collection, item;                     /* paths; all: of every namespace */
    struct str group;                                     /* "RbacAuthorizationV1" in ids */
    const char *scope;                                    /* "Namespaced" or "" in ids */
    openapi_params scoped;                                /* parameters of every path below it */
};

/* ---- names ---- */

/* "rbac.authorization.k8s.io" -> "RbacAuthorization", or "rbacAuthorization". */
static void add_camel(struct buf *b, struct str text, bool capital)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (isalpha(c) || c == '_' || (i && isdigit(c))) {
            buf_char(b, (char)(capital ? toupper(c) : c));
            capital = false;
        } else {
            capital = true;
        }
    }
}

static struct str group_name(struct arena *a, struct str group, struct str version, bool tag)
{
    struct buf b = BUF_INIT(0);
    struct str name;

    if (!group.n)
        group = STR("core");
    if (str_has_suffix(group, STR(".k8s.io")))
        group.n -= sizeof(".k8s.io") - 1;
    add_camel(&b, group, !tag);
    if (tag && version.n)
        buf_char(&b, '_');
    add_camel(&b, version, !tag);
    name = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return name;
}

static struct str operation_id(const struct paths *p, const char *verb, const char *scope,
                               const char *suffix)
{
    return arena_printf(p->d->arena, "%s%.*s%s%.*s%s", verb, STR_F(p->group), scope,
                        STR_F(p->r->kind), suffix);
}

static const char *capitalised(struct arena *a, const char *word)
{
    char *copy = arena_cstr(a, str_c(word));

    copy[0] = (char)toupper((unsigned char)copy[0]);
    return copy;
}

const char *openapi_kind(struct document *d, struct str group, struct str version, struct str kind)
{
    uint32_t node = schema_builtin_root(group, version, kind);

    return node ? openapi_want(d, node) : NULL;
}

const char *openapi_custom_kind(struct arena *a, const struct resource *r, struct str kind)
{
    struct str group = r->group, reversed = STR("");

    while (group.p) {
        struct str part = str_cut(&group, '.');

        reversed = reversed.n ? arena_concat(a, 3, (struct str[]){part, STR("."), reversed}) : part;
    }
    return arena_printf(a, "%.*s.%.*s.%.*s", STR_F(reversed), STR_F(r->version), STR_F(kind)).p;
}

/* ---- operations ---- */

static struct openapi_operation *operation_new(const struct paths *p, struct openapi_path *path,
                                               const char *method, const char *action,
                                               struct str id, openapi_params params)
{
    struct openapi_operation *op = &path->operations[path->n++];

    *op = (struct openapi_operation){
        .method = method,
        .action = action,
        .id = id,
        .params = params,
        .consumes = p->r->crd ? TEXTS : ANYTHING,
        .produces = p->r->crd ? TEXTS : OBJECTS,
        .group = p->r->group,
        .version = p->r->version,
        .kind = p->r->kind,
    };
    return op;
}

static void path_begin(const struct paths *p, struct openapi_path *path, struct str text)
{
    *path = (struct openapi_path){
        .path = text,
        .tag = group_name(p->d->arena, p->r->group, p->r->version, true),
    };
}

static struct openapi_operation *add_list(const struct paths *p, struct openapi_path *path,
                                          const char *scope, const char *suffix,
                                          openapi_params params)
{
    struct openapi_operation *op =
        operation_new(p, path, "get", "list", operation_id(p, "list", scope, suffix),
                      params | PARAMS_LIST | PARAM_PRETTY);

    op->answer = p->list;
    if (!p->r->crd)
        op->produces = STREAMED;
    return op;
}

static void add_post(const struct paths *p, struct openapi_path *path, struct str id,
                     openapi_params params, const char *component)
{
    struct openapi_operation *op =
        operation_new(p, path, "post", "post", id, params | PARAMS_CREATE | PARAM_PRETTY);

    op->body = op->answer = component;
    op->answers = ANSWER_CREATED | ANSWER_ACCEPTED;
}

/* DELETE of a namespace returns the namespace while it terminates, but upstream's document says
 * Status. */
static bool delete_returns_object(const struct resource *r)
{
    return !r->crd && r->flags & RES_DELETE_RETURNS_OBJECT && !resource_sub(r, STR("finalize"));
}

static void add_delete_all(const struct paths *p, struct openapi_path *path)
{
    const char *scope = arena_printf(p->d->arena, "Collection%s", p->scope).p;
    struct openapi_operation *op =
        operation_new(p, path, "delete", "deletecollection", operation_id(p, "delete", scope, ""),
                      p->scoped | PARAM_PRETTY | (p->r->crd ? PARAMS_LIST : PARAMS_DELETE_ALL));

    op->answer = p->status;
    if (p->r->crd)
        return; /* upstream publishes no options of custom resources here */
    op->body = p->options;
    op->body_optional = true;
}

/* get, put and patch, of an object or of a subresource. */
static void add_access(const struct paths *p, struct openapi_path *path, unsigned verbs,
                       const char *suffix, const char *component)
{
    openapi_params params = p->scoped | PARAM_NAME | PARAM_PRETTY;
    struct openapi_operation *op;

    if (verbs & VERB_GET) {
        op = operation_new(p, path, "get", "get", operation_id(p, "read", p->scope, suffix),
                           params | (p->r->crd ? PARAMS_GET : 0));
        op->answer = component;
    }
    if (verbs & VERB_UPDATE) {
        op = operation_new(p, path, "put", "put", operation_id(p, "replace", p->scope, suffix),
                           params | PARAMS_CREATE);
        op->body = op->answer = component;
        op->answers = ANSWER_CREATED;
    }
    if (verbs & VERB_PATCH) {
        op = operation_new(p, path, "patch", "patch", operation_id(p, "patch", p->scope, suffix),
                           params | PARAMS_PATCH);
        op->body = p->patch;
        op->answer = component;
        op->answers = p->r->crd ? 0 : ANSWER_CREATED;
        op->consumes = p->r->crd ? CUSTOM_PATCHES : PATCHES;
    }
}

/* ---- connections ---- */

static const struct connection {
    const char *name;
    const openapi_params *params;
    bool all_methods;
} CONNECTIONS[] = {
    {"attach", &PARAMS_ATTACH, false},
    {"exec", &PARAMS_EXEC, false},
    {"portforward", &PARAMS_FORWARD, false},
    {"proxy", &PARAMS_PROXY, true},
};
static const char *const METHODS[] = {"get", "post", "put", "delete", "options", "head", "patch"};
#define FEW_METHODS 2

static const struct connection *connection_of(const struct subresource *s)
{
    for (size_t i = 0; i < COUNT(CONNECTIONS); i++)
        if (s->kind == SUB_PROXY && !strcmp(s->name, CONNECTIONS[i].name))
            return &CONNECTIONS[i];
    return NULL;
}

static void add_connection(const struct paths *p, const struct subresource *s,
                           const struct connection *c, bool below)
{
    struct arena *a = p->d->arena;
    struct openapi_path path;
    size_t n = c->all_methods ? COUNT(METHODS) : FEW_METHODS;
    openapi_params params = p->scoped | PARAM_NAME | *c->params | (below ? PARAM_PATH : 0);

    path_begin(p, &path,
               arena_printf(a, "%.*s/%s%s", STR_F(p->item), s->name, below ? "/{path}" : ""));
    for (size_t i = 0; i < n; i++) {
        const char *suffix =
            arena_printf(a, "%s%s", capitalised(a, s->name), below ? "WithPath" : "").p;
        const char *scope = arena_printf(a, "%s%s", capitalised(a, METHODS[i]), p->scope).p;
        struct openapi_operation *op = operation_new(
            p, &path, METHODS[i], "connect", operation_id(p, "connect", scope, suffix), params);

        op->consumes = op->produces = ANYTHING;
        op->kind = str_c(s->object_kind);
    }
    openapi_add_path(p->d, &path);
}

/* ---- the paths ---- */

static void add_collection(const struct paths *p)
{
    unsigned verbs = p->r->verbs;
    struct openapi_path path;

    if (resource_namespaced(p->r) && verbs & VERB_LIST) {
        path_begin(p, &path, p->all);
        add_list(p, &path, "", "ForAllNamespaces", 0);
        openapi_add_path(p->d, &path);
    }
    if (!(verbs & (VERB_LIST | VERB_CREATE | VERB_DELETECOLLECTION)))
        return;
    path_begin(p, &path, p->collection);
    if (verbs & VERB_LIST)
        add_list(p, &path, p->scope, "", p->scoped);
    if (verbs & VERB_CREATE)
        add_post(p, &path, operation_id(p, "create", p->scope, ""), p->scoped, p->object);
    if (verbs & VERB_DELETECOLLECTION)
        add_delete_all(p, &path);
    openapi_add_path(p->d, &path);
}

static void add_item(const struct paths *p)
{
    unsigned verbs = p->r->verbs;
    struct openapi_path path;

    if (!(verbs & (VERB_GET | VERB_UPDATE | VERB_PATCH | VERB_DELETE)))
        return;
    path_begin(p, &path, p->item);
    add_access(p, &path, verbs, "", p->object);
    if (verbs & VERB_DELETE) {
        openapi_params params = p->scoped | PARAM_NAME;
        struct openapi_operation *op =
            operation_new(p, &path, "delete", "delete", operation_id(p, "delete", p->scope, ""),
                          params | PARAMS_DELETE | PARAM_PRETTY);

        op->body = p->options;
        op->body_optional = true;
        op->answer = delete_returns_object(p->r) ? p->object : p->status;
        op->answers = ANSWER_ACCEPTED;
    }
    openapi_add_path(p->d, &path);
}

/* The type of a subresource's body: a kind of its own, or the object. */
static const char *sub_component(const struct paths *p, const struct subresource *s)
{
    struct str group = str_c(s->group), version = str_c(s->version);

    if (s->kind == SUB_STATUS || (!version.n && p->r->crd))
        return p->object;
    if (!version.n)
        group = p->r->group, version = p->r->version;
    return openapi_kind(p->d, group, version, str_c(s->object_kind));
}

static void add_subresource(const struct paths *p, const struct subresource *s)
{
    struct arena *a = p->d->arena;
    const char *suffix = capitalised(p->d->keep, s->name);
    bool log = s->kind == SUB_PROXY && !strcmp(s->name, "log");
    const char *component = log ? NULL : sub_component(p, s);
    struct openapi_path path;

    path_begin(p, &path, arena_printf(a, "%.*s/%s", STR_F(p->item), s->name));
    if (s->verbs & VERB_CREATE)
        add_post(p, &path, operation_id(p, "create", p->scope, suffix), p->scoped | PARAM_NAME,
                 component);
    add_access(p, &path, s->verbs, suffix, component);
    for (size_t i = 0; i < path.n; i++) {
        struct openapi_operation *op = &path.operations[i];

        if (log)
            op->params |= PARAMS_LOG, op->produces = LOGS;
        if (p->r->crd || log)
            continue;
        op->kind = str_c(s->object_kind);
        if (*s->version)
            op->group = str_c(s->group), op->version = str_c(s->version);
    }
    openapi_add_path(p->d, &path);
}

static void add_subresources(const struct paths *p)
{
    for (size_t i = 0; i < p->r->n_subresources; i++) {
        const struct subresource *s = &p->r->subresources[i];
        const struct connection *c = connection_of(s);

        if (!c) {
            add_subresource(p, s);
            continue;
        }
        add_connection(p, s, c, false);
        if (c->all_methods)
            add_connection(p, s, c, true);
    }
}

static void add_watch(const struct paths *p, struct str at, const char *action, const char *scope,
                      const char *suffix, openapi_params params)
{
    struct str version =
        arena_printf(p->d->arena, "/%s%.*s%s%.*s/", p->r->group.n ? "apis/" : "api",
                     STR_F(p->r->group), "/", STR_F(p->r->version));
    struct openapi_operation *op;
    struct openapi_path path;

    path_begin(p, &path,
               arena_concat(p->d->arena, 3,
                            (struct str[]){version, STR("watch/"), str_from(at, version.n)}));
    op = operation_new(p, &path, "get", action, operation_id(p, "watch", scope, suffix),
                       params | PARAMS_LIST | PARAM_PRETTY);
    op->answer = openapi_kind(p->d, STR("meta.k8s.io"), STR("v1"), STR("WatchEvent"));
    op->produces = STREAMED;
    openapi_add_path(p->d, &path);
}

static void add_watches(const struct paths *p)
{
    if (!(p->r->verbs & VERB_WATCH) || p->r->crd)
        return;
    if (resource_namespaced(p->r))
        add_watch(p, p->all, "watchlist", "", "ListForAllNamespaces", 0);
    add_watch(p, p->collection, "watchlist", p->scope, "List", p->scoped);
    if (p->r->verbs & VERB_GET)
        add_watch(p, p->item, "watch", p->scope, "", p->scoped | PARAM_NAME);
}

static const char *meta_kind(struct document *d, const char *kind)
{
    return openapi_kind(d, STR("meta.k8s.io"), STR("v1"), str_c(kind));
}

static const char *published_kind(struct document *d, const char *kind)
{
    return openapi_kind(d, STR("published"), STR("v1"), str_c(kind));
}

void openapi_resource_paths(struct document *d, const struct resource *r)
{
    struct arena *a = d->keep;
    bool namespaced = resource_namespaced(r), reads = r->verbs & VERB_LIST;
    struct str root = arena_printf(a, "/%s%.*s/%.*s/", r->group.n ? "apis/" : "api",
                                   STR_F(r->group), STR_F(r->version));
    struct paths p = {.d = d, .r = r, .scope = namespaced ? "Namespaced" : ""};

    p.all = arena_concat(a, 2, (struct str[]){root, r->plural});
    p.collection = namespaced ? arena_printf(a, "%.*snamespaces/{namespace}/%.*s", STR_F(root),
                                             STR_F(r->plural))
                              : p.all;
    p.item = arena_printf(a, "%.*s/{name}", STR_F(p.collection));
    p.group = group_name(a, r->group, r->version, false);
    p.scoped = namespaced ? PARAM_NAMESPACE : 0;
    p.object = r->crd ? openapi_custom_kind(a, r, r->kind) : openapi_want(d, r->node);
    if (reads)
        p.list = r->crd ? openapi_custom_kind(a, r, r->list_kind)
                        : openapi_kind(d, r->group, r->version, r->list_kind);
    if (r->verbs & (VERB_DELETE | VERB_DELETECOLLECTION)) {
        p.status = meta_kind(d, "Status");
        p.options = meta_kind(d, "DeleteOptions");
    }
    if (r->verbs & VERB_PATCH)
        p.patch = published_kind(d, "Patch");
    for (size_t i = 0; i < r->n_subresources; i++)
        if (r->subresources[i].verbs & VERB_PATCH && !connection_of(&r->subresources[i]))
            p.patch = published_kind(d, "Patch");
    add_collection(&p);
    add_item(&p);
    add_subresources(&p);
    add_watches(&p);
}

/* ---- paths that are no resources ---- */

static void add_plain(struct document *d, struct str path, struct str tag, struct str id,
                      const char *answer, const char *const *consumes, const char *const *produces)
{
    struct openapi_path p = {.path = path, .tag = tag, .n = 1};

    p.operations[0] = (struct openapi_operation){
        .method = "get", .id = id, .answer = answer, .consumes = consumes, .produces = produces};
    openapi_add_path(d, &p);
}

void openapi_version_path(struct document *d, bool core, struct str group, struct str version)
{
    struct arena *a = d->arena;
    struct str path = core ? arena_printf(a, "/api/%.*s/", STR_F(version))
                           : arena_printf(a, "/apis/%.*s/%.*s/", STR_F(group), STR_F(version));

    add_plain(d, path, group_name(a, group, version, true),
              arena_printf(a, "get%.*sAPIResources", STR_F(group_name(a, group, version, false))),
              published_kind(d, "APIResourceList"), OBJECTS, OBJECTS);
}

void openapi_group_path(struct document *d, struct str group)
{
    struct arena *a = d->arena;

    add_plain(d, arena_printf(a, "/apis/%.*s/", STR_F(group)), group_name(a, group, STR(""), true),
              arena_printf(a, "get%.*sAPIGroup", STR_F(group_name(a, group, STR(""), false))),
              published_kind(d, "APIGroup"), OBJECTS, OBJECTS);
}

static const struct single {
    const char *root, *tag, *id, *answer;
    const char *const *consumes, *const *produces;
} SINGLES[] = {
    {".well-known/openid-configuration", "WellKnown", "getServiceAccountIssuerOpenIDConfiguration",
     NULL, NULL, JSON_ONLY},
    {"api", "core", "getCoreAPIVersions", "APIVersions", OBJECTS, OBJECTS},
    {"apis", "apis", "getAPIVersions", "APIGroupList", OBJECTS, OBJECTS},
    {"openid/v1/jwks", "openid", "getServiceAccountIssuerOpenIDKeyset", NULL, NULL, KEYS},
    {"version", "version", "getCodeVersion", "Info", JSON_ONLY, JSON_ONLY},
};
const char *const OPENAPI_SINGLE_ROOTS[] = {
    ".well-known/openid-configuration", "api", "apis", "openid/v1/jwks", "version", NULL};

bool openapi_single_path(struct document *d, struct str root)
{
    for (size_t i = 0; i < COUNT(SINGLES); i++) {
        const struct single *s = &SINGLES[i];

        if (!str_eqc(root, s->root))
            continue;
        add_plain(d, arena_printf(d->arena, "/%s/", s->root), str_c(s->tag), str_c(s->id),
                  s->answer ? published_kind(d, s->answer) : NULL, s->consumes, s->produces);
        return true;
    }
    return false;
}
