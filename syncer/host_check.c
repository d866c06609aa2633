/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet check --host`: a series of checks, each a request and findings from its answer. To add
 * one, add a row to LOOKS. Must never change anything on the host, and never take what is not
 * readable for missing.
 * Over a thousand lines: every row of LOOKS has a judgement of its own, which shares nothing.
 *
 *   version --answered--> rights, one by one --> LOOKS, one by one --> further Secrets --> finished
 *      '--no connection, 401--> finished */
#include "engine.h"

#include <sublet/host_check.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include <sublet/config_bound.h>
#include <sublet/config_kubeconfig.h>
#include <sublet/config_sync.h>
#include <sublet/config_sync_from.h>
#include <sublet/host.h>
#include <sublet/host_trouble.h>
#include <sublet/pool.h>
#include <sublet/selector.h>
#include <sublet/translate_alias.h>
#include <sublet/translate_gang.h>

#define TIMEOUT_MS 10000
#define KUEUE_API  "/apis/kueue.x-k8s.io/v1beta2"

struct right {
    bool cluster, required;
    const char *group, *resource, *verbs, *without;
    struct str ns, name; /* not in host.namespace; of this object only */
};

#define NAMESPACE false
#define CLUSTER   true
#define REQUIRED  true
#define OPTIONAL  false
static const struct right RIGHTS[] = {
#define HOST_RIGHT(scope, need, group, resource, verbs, without)                                   \
    {scope, need, group, resource, verbs, without},
#include <sublet/tbl/host_rights.h>
#undef HOST_RIGHT
};
#define N_RIGHTS   COUNT(RIGHTS)
#define DOWN_VERBS "get,list,watch,create,patch,delete" /* of each kind of sync.toHost */
#define UP_VERBS   "list,watch"                         /* ... of sync.fromHost */

struct check {
    struct arena *arena;
    const struct config *config; /* from judge_bindings() on: live */
    struct config live;
    struct config_bound *bound; /* NULL: nothing that the fleet grants */
    uv_loop_t loop;
    struct host *host;
    host_finding_cb found;
    void *ctx;
    int missing;
    const cJSON *namespace;     /* NULL: not readable */
    cJSON *cluster_queues;      /* of our LocalQueues: its name: that of the LocalQueue */
    struct str trouble;         /* why the host cannot be used at all */
    const struct right *rights; /* RIGHTS, and those of configured kinds */
    size_t n_rights, right, look, secret;
    struct str verbs;    /* of that right, not reviewed yet */
    struct buf lacking;  /* verbs of it that are denied */
    bool unsure, closed; /* unsure: a review failed */
};

static void report(struct check *c, enum host_finding level, const char *what, struct str text)
{
    c->missing += level == HOST_FINDING_MISSING;
    c->found(c->ctx, level, str_c(what), text);
}

static void finish(struct check *c);
static void next(struct check *c);

static void send_request(struct check *c, const char *method, struct str path, struct str body,
                         host_done_cb done)
{
    struct host_request q = {
        .method = method, .path = path, .body = body, .timeout_ms = TIMEOUT_MS, .urgent = true};

    host_send(c->host, &q, done, c);
}

static cJSON *read_body(struct check *c, const struct host_answer *answer)
{
    cJSON *tree = NULL;

    return answer && !json_parse(c->arena, answer->body, &tree, NULL) ? tree : NULL;
}

/* --- the connection --- */

static void on_trouble(void *ctx, enum host_trouble now, struct str detail)
{
    struct check *c = ctx;

    c->trouble = arena_printf(c->arena, "%s: %s%s%.*s%s", HOST_TROUBLES[now].reason,
                              HOST_TROUBLES[now].message, detail.n ? " (" : "", STR_F(detail),
                              detail.n ? ")" : "");
}

static void on_version(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct check *c = ctx;
    cJSON *version = read_body(c, answer);

    if (err && err->kind == &ERR_UNAUTHORIZED) {
        report(c, HOST_FINDING_MISSING, "credentials",
               STR("Unauthorized: the host does not accept them: expired, revoked or of another "
                   "cluster"));
        finish(c);
        return;
    }
    if (err && (!answer || err->kind->code >= 500)) {
        report(c, HOST_FINDING_MISSING, "connection", c->trouble.n ? c->trouble : err->message);
        finish(c);
        return;
    }
    report(c, HOST_FINDING_OK, "connection",
           err ? STR("answers; its version may not be read")
               : arena_printf(c->arena, "Kubernetes %.*s",
                              STR_F(json_str(json_get(version, "gitVersion")))));
    next(c);
}

/* --- rights --- */

static void add_right(struct right *rights, struct check *c, bool cluster, const char *group,
                      const char *plural)
{
    rights[c->n_rights++] = (struct right){cluster, REQUIRED, group, plural, DOWN_VERBS, ""};
}

static void add_shown(struct right *rights, struct check *c, const struct config_from *row,
                      const struct config_from_mapping *m)
{
    struct right *r = &rights[c->n_rights++];

    *r = (struct right){
        !m,       REQUIRED, arena_cstr(c->arena, row->group), arena_cstr(c->arena, row->plural),
        UP_VERBS, ""};
    if (m) {
        r->ns = m->host_ns;
        r->name = row->kind == FROM_ENDPOINT_SLICES ? STR("") : m->host_name; /* random names */
    }
}

static void add_metrics(struct right *rights, struct check *c)
{
    const char *group = "metrics.k8s.io";

    if (!c->config->metrics_from_host)
        return;
    rights[c->n_rights++] = (struct right){NAMESPACE, REQUIRED, group, "pods", "list", ""};
    if (c->config->metrics_whole_nodes)
        rights[c->n_rights++] = (struct right){CLUSTER, REQUIRED, group, "nodes", "list", ""};
}

/* The PodGroups of a pool whose pods are gangs; once for each kind of scheduler. */
static void add_groups(struct right *rights, struct check *c, const struct config_pool *pool)
{
    struct str root = translate_gang_root(pool->scheduler_kind), group;

    if (pool->gang && pool->scheduler_kind == SCHEDULER_KUEUE)
        rights[c->n_rights++] =
            (struct right){NAMESPACE, REQUIRED, "kueue.x-k8s.io", "workloads", "delete", ""};
    if (!pool->gang || !root.n)
        return;
    root = str_from(root, sizeof("/apis/") - 1);
    group = str_cut(&root, '/');
    for (size_t i = 0; i < c->n_rights; i++) {
        if (str_eqc(group, rights[i].group) && str_eqc(STR("podgroups"), rights[i].resource))
            return;
    }
    rights[c->n_rights++] = (struct right){NAMESPACE,
                                           REQUIRED,
                                           arena_cstr(c->arena, group),
                                           "podgroups",
                                           "list,watch,create,patch,delete",
                                           ""};
}

/* Those beside the tenant's objects are written by the right to all Secrets there. */
static void add_kubeconfigs(struct right *rights, struct check *c)
{
    for (size_t i = 0; i < c->config->n_kubeconfigs; i++) {
        const struct config_kubeconfig *one = &c->config->kubeconfigs[i];

        if (one->ns.n && !str_eq(one->ns, c->config->host_namespace))
            rights[c->n_rights++] = (struct right){
                NAMESPACE, REQUIRED, "", "secrets", "get,list,watch,patch", "", one->ns, one->name};
    }
}

static size_t count_shown(const struct config *config)
{
    /* metrics, kubelets, quotas, GPUBindings; groups of pools */
    size_t n = 5 + config->n_pools + config->n_kubeconfigs;

    for (size_t i = 0; i < config->n_from; i++)
        n += config->from[i].n_mappings ? config->from[i].n_mappings : 1;
    return n;
}

static void gather_shown(struct right *rights, struct check *c)
{
    for (size_t i = 0; i < c->config->n_from; i++) {
        const struct config_from *row = &c->config->from[i];

        if (!row->n_mappings)
            add_shown(rights, c, row, NULL);
        for (size_t k = 0; k < row->n_mappings; k++)
            add_shown(rights, c, row, &row->mappings[k]);
    }
    add_metrics(rights, c);
    add_kubeconfigs(rights, c);
    if (c->config->nodes_per_pool)
        rights[c->n_rights++] =
            (struct right){NAMESPACE, REQUIRED, "", "resourcequotas", UP_VERBS, ""};
    if (c->config->fleet_bindings)
        rights[c->n_rights++] = (struct right){NAMESPACE,     REQUIRED,         CONFIG_GROUP_FLEET,
                                               "gpubindings", "get,list,watch", ""};
    for (size_t i = 0; i < c->config->n_pools; i++)
        add_groups(rights, c, &c->config->pools[i]);
    if (c->config->kubelets)
        rights[c->n_rights++] = (struct right){CLUSTER, REQUIRED, "", "nodes/proxy", "get", ""};
}

static void gather_rights(struct check *c)
{
    const struct config_to_host *to = c->config->to_host;
    struct right *rights =
        arena_alloc(c->arena, (N_RIGHTS + N_SYNC_DOWN + to->n_custom + count_shown(c->config)) *
                                  sizeof(*rights));

    for (; c->n_rights < N_RIGHTS; c->n_rights++) {
        rights[c->n_rights] = RIGHTS[c->n_rights];
        if (c->config->nodes_per_pool && !strcmp(RIGHTS[c->n_rights].resource, "nodes"))
            rights[c->n_rights].required = true;
    }
    for (int i = 0; i < N_SYNC_DOWN; i++)
        if (to->enabled[i])
            add_right(rights, c, CONFIG_DOWN_KINDS[i].scope == SYNC_CLUSTER,
                      CONFIG_DOWN_KINDS[i].group, CONFIG_DOWN_KINDS[i].plural);
    for (size_t i = 0; i < to->n_custom; i++)
        add_right(rights, c, false, to->custom[i].group, to->custom[i].plural);
    gather_shown(rights, c);
    c->rights = rights;
}

static cJSON *review(struct check *c, const struct right *r, struct str verb)
{
    struct arena *a = c->arena;
    struct str resource = str_c(r->resource), plural = str_cut(&resource, '/');
    cJSON *body = json_new_object(a), *attributes;

    json_set_str(a, body, "apiVersion", STR("authorization.k8s.io/v1"));
    json_set_str(a, body, "kind", STR("SelfSubjectAccessReview"));
    attributes = json_ensure_object(a, json_ensure_object(a, body, "spec"), "resourceAttributes");
    json_set_str(a, attributes, "verb", verb);
    json_set_str(a, attributes, "group", str_c(r->group));
    json_set_str(a, attributes, "resource", plural);
    if (resource.n)
        json_set_str(a, attributes, "subresource", resource);
    if (!r->cluster)
        json_set_str(a, attributes, "namespace", r->ns.n ? r->ns : c->config->host_namespace);
    if (r->name.n)
        json_set_str(a, attributes, "name", r->name);
    if (!strcmp(r->resource, "leases") && !str_eqc(verb, "create")) /* granted by resourceNames */
        json_set_str(a, attributes, "name", c->config->name);
    return body;
}

static void right_done(struct check *c)
{
    const struct right *r = &c->rights[c->right++];
    const char *what = arena_printf(c->arena, "right %s%s%.*s", r->resource, r->ns.n ? " of " : "",
                                    STR_F(r->ns.n ? r->ns : STR("")))
                           .p;
    struct str lacking = arena_str(c->arena, buf_str(&c->lacking));
    struct str of = r->name.n ? arena_printf(c->arena, "%.*s: ", STR_F(r->name)) : STR("");

    buf_clear(&c->lacking);
    if (c->unsure)
        report(c, HOST_FINDING_WARNING, what, STR("the host does not answer access reviews"));
    else if (!lacking.n)
        report(c, HOST_FINDING_OK, what, arena_printf(c->arena, "%.*s%s", STR_F(of), r->verbs));
    else if (r->required)
        report(c, HOST_FINDING_MISSING, what,
               arena_printf(c->arena, "%.*snot permitted: %.*s", STR_F(of), STR_F(lacking)));
    else
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena, "%.*snot permitted: %.*s; %s", STR_F(of), STR_F(lacking),
                            r->without));
    c->unsure = false;
}

static void review_next(struct check *c);

static void on_reviewed(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct check *c = ctx;
    cJSON *tree = read_body(c, answer);
    struct str verb = json_str_at(tree, "spec.resourceAttributes.verb");

    if (err || !verb.n)
        c->unsure = true;
    else if (!json_true(json_path(tree, "status.allowed")))
        buf_printf(&c->lacking, "%s%.*s", c->lacking.n ? ", " : "", STR_F(verb));
    review_next(c);
}

static void review_next(struct check *c)
{
    struct str verb;

    if (!c->verbs.n) {
        right_done(c);
        next(c);
        return;
    }
    verb = str_cut(&c->verbs, ',');
    send_request(c, "POST", STR("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
                 json_text(c->arena, review(c, &c->rights[c->right], verb)), on_reviewed);
}

/* --- objects on the host --- */

static void judge_namespace(struct check *c, const cJSON *namespace)
{
    struct str level = json_str(
        json_get(json_path(namespace, "metadata.labels"), "pod-security.kubernetes.io/enforce"));

    c->namespace = namespace;
    report(c, HOST_FINDING_OK, "namespace", STR("exists"));
    if (!level.n || str_eqc(level, "privileged"))
        report(c, HOST_FINDING_WARNING, "pod security",
               STR("the namespace has no label pod-security.kubernetes.io/enforce with baseline or "
                   "restricted: the host's own admission stops no pod"));
    else
        report(c, HOST_FINDING_OK, "pod security", level);
}

static void judge_quota(struct check *c, const cJSON *list)
{
    if (json_count(json_get(list, "items")))
        report(c, HOST_FINDING_OK, "resource quota", STR("exists"));
    else
        report(c, HOST_FINDING_WARNING, "resource quota",
               STR("none in the namespace: the host bounds nothing by itself"));
}

static void judge_limits(struct check *c, const cJSON *list)
{
    bool has_default = false;

    json_each(range, json_get(list, "items"))
    {
        json_each(limit, json_path(range, "spec.limits"))
        {
            has_default |= str_eqc(json_str(json_get(limit, "type")), "Container") &&
                           json_path(limit, "default.memory");
        }
    }
    if (has_default)
        report(c, HOST_FINDING_OK, "limit range", STR("sets a default memory limit"));
    else
        report(c, HOST_FINDING_WARNING, "limit range",
               STR("no default memory limit: a container that sets none may use all of a node's"));
}

static void judge_pool(struct check *c, const struct config_pool *pool, const cJSON *nodes)
{
    const char *what = arena_printf(c->arena, "pool %.*s", STR_F(pool->name)).p;
    struct pool_problem problem;
    size_t n = 0;

    if (!pool_check_nodes(c->arena, pool, nodes, &problem)) {
        report(c, HOST_FINDING_WARNING, what,
               problem.detail.n ? arena_printf(c->arena, "%.*s: %.*s", STR_F(problem.message),
                                               STR_F(problem.detail))
                                : problem.message);
        return;
    }
    json_each(node, nodes) n += pool_has_node(pool, node);
    report(c, HOST_FINDING_OK, what, arena_printf(c->arena, "%zu nodes with its taint", n));
}

static void judge_nodes(struct check *c, const cJSON *list)
{
    for (size_t i = 0; i < c->config->n_pools; i++)
        judge_pool(c, &c->config->pools[i], json_get(list, "items"));
}

static void judge_default_class(struct check *c, const cJSON *list)
{
    json_each(class, json_get(list, "items"))
    {
        if (sync_class_is_default(class)) {
            report(c, HOST_FINDING_OK, "storage class",
                   arena_printf(c->arena, "%.*s is the host's default",
                                STR_F(json_str_at(class, "metadata.name"))));
            return;
        }
    }
    report(c, HOST_FINDING_WARNING, "storage class",
           STR("the host has no default class: claims that name none are refused"));
}

static void judge_classes(struct check *c, const cJSON *list)
{
    const struct str_list *wanted = &c->config->storage_classes;

    for (size_t i = 0; i < wanted->n; i++) {
        bool there = false;

        json_each(class, json_get(list, "items")) there |=
            str_eq(json_str_at(class, "metadata.name"), wanted->items[i]);
        report(c, there ? HOST_FINDING_OK : HOST_FINDING_MISSING, "storage class",
               arena_printf(c->arena, "%.*s %s", STR_F(wanted->items[i]),
                            there ? "exists" : "of policy.storageClasses does not exist"));
    }
    if (!wanted->n)
        judge_default_class(c, list);
}

/* --- GPUBindings: what they grant is checked like what the file binds --- */

static cJSON *followed_bindings(struct check *c)
{
    cJSON *ret = json_new_object(c->arena);

    if (c->config->fleet_bindings)
        json_set_bool(c->arena, ret, "fleet.bindings", true);
    return ret;
}

static void judge_binding(struct check *c, const cJSON *binding)
{
    const char *what =
        arena_printf(c->arena, "GPUBinding %.*s", STR_F(json_str_at(binding, "metadata.name"))).p;
    const cJSON *ready = condition_get(json_path(binding, "status.conditions"), "Ready");
    struct str grant = json_str_at(binding, "status.grant");
    bool unused;
    struct err err;

    err_init(&err, c->arena);
    if (str_eqc(json_str(json_get(ready, "status")), "False"))
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena, "grants nothing: %.*s: %.*s",
                            STR_F(json_str(json_get(ready, "reason"))),
                            STR_F(json_str(json_get(ready, "message")))));
    else if (!json_path(binding, "status.pool"))
        report(c, HOST_FINDING_WARNING, what,
               STR("grants nothing yet: sublet fleet has not written its status"));
    else if (config_bound_add(c->bound, binding, false, &unused, &err))
        report(c, HOST_FINDING_MISSING, what,
               arena_printf(c->arena, "cannot be followed: %.*s", STR_F(err.message)));
    else
        report(c, HOST_FINDING_OK, what,
               arena_printf(c->arena, "grants %.*s GPU of pool %.*s",
                            STR_F(grant.n ? grant : STR("0")),
                            STR_F(json_str_at(binding, "status.pool.name"))));
}

static void judge_bindings(struct check *c, const cJSON *list)
{
    if (!json_count(json_get(list, "items")))
        report(c, HOST_FINDING_WARNING, "GPUBindings",
               STR("none in the namespace: the fleet grants nothing"));
    c->bound = config_bound_new(c->config);
    json_each(binding, json_get(list, "items")) judge_binding(c, binding);
    c->live = *c->config;
    config_bound_install(c->bound, &c->live);
    c->config = &c->live;
}

/* --- classes that pods get --- */

/* `to`: each class of the host that the configuration names, and the option that does. */
static void name_class(struct check *c, cJSON *to, struct str class, struct str by)
{
    if (class.n && !json_get_str(to, class))
        json_set_str(c->arena, to, arena_cstr(c->arena, class), by);
}

static void name_classes(struct check *c, cJSON *to, const cJSON *map, struct str by)
{
    json_each(class, map) name_class(c, to, json_str(class), by);
}

static cJSON *named_priorities(struct check *c)
{
    const struct config_to_host *down = c->config->to_host;
    struct str by = STR("sync.toHost.priorityClasses");
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++)
        name_classes(c, ret, c->config->pools[i].priority_tiers,
                     arena_printf(c->arena, "priorityTiers of pool \"%.*s\"",
                                  STR_F(c->config->pools[i].name)));
    name_class(c, ret, down->pod_priority_class, STR("sync.toHost.pods.priorityClassName"));
    if (!down->priorities)
        return ret;
    name_classes(c, ret, down->priority_names, by);
    for (size_t i = 0; i < down->n_ranges; i++)
        name_class(c, ret, down->ranges[i].host_class, by);
    return ret;
}

static cJSON *named_runtimes(struct check *c)
{
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++)
        name_class(c, ret, c->config->pools[i].runtime_class,
                   arena_printf(c->arena, "runtimeClass of pool \"%.*s\"",
                                STR_F(c->config->pools[i].name)));
    name_class(c, ret, c->config->to_host->pod_runtime_class,
               STR("sync.toHost.pods.runtimeClassName"));
    return ret;
}

/* The host refuses every pod that gets a class which it lacks. */
static void judge_named(struct check *c, const char *kind, const cJSON *named, const cJSON *list)
{
    json_each(by, named)
    {
        const char *what = arena_printf(c->arena, "%s %s", kind, by->string).p;
        bool there = false;

        json_each(class, json_get(list, "items")) there |=
            str_eqc(json_str_at(class, "metadata.name"), by->string);
        if (there)
            report(c, HOST_FINDING_OK, what, STR("exists"));
        else
            report(c, HOST_FINDING_MISSING, what,
                   arena_printf(c->arena, "does not exist; named by %.*s", STR_F(json_str(by))));
    }
}

static void judge_priorities(struct check *c, const cJSON *list)
{
    judge_named(c, "priority class", named_priorities(c), list);
}

static void judge_runtimes(struct check *c, const cJSON *list)
{
    judge_named(c, "runtime class", named_runtimes(c), list);
}

/* --- further names of Services --- */

static cJSON *named_aliases(struct check *c)
{
    const struct config_to_host *down = c->config->to_host;
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < down->n_aliases; i++)
        json_set_str(c->arena, ret, arena_cstr(c->arena, down->aliases[i].host_name),
                     arena_printf(c->arena, "%.*s/%.*s", STR_F(down->aliases[i].ns),
                                  STR_F(down->aliases[i].name)));
    return ret;
}

/* Which virtual cluster's it is shows only with its store. */
static bool is_alias(const cJSON *service)
{
    const cJSON *notes = json_path(service, "metadata.annotations");

    return json_get(json_path(service, "metadata.labels"), LABEL_CLUSTER) &&
           str_eq(json_str(json_get(notes, ANNOTATION_ALIAS)),
                  json_str_at(service, "metadata.name"));
}

static const cJSON *item_of(const cJSON *list, struct str name)
{
    json_each(one, json_get(list, "items"))
    {
        if (str_eq(json_str_at(one, "metadata.name"), name))
            return one;
    }
    return NULL;
}

static void judge_alias(struct check *c, const cJSON *list, struct str name, struct str source)
{
    const char *what = arena_printf(c->arena, "service %.*s", STR_F(name)).p;
    const cJSON *found = item_of(list, name);

    if (found && !is_alias(found))
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena,
                            "exists, and is not a virtual cluster's: it is left alone, and %.*s "
                            "has no such name",
                            STR_F(source)));
    else
        report(c, HOST_FINDING_OK, what,
               arena_printf(c->arena, "%s for %.*s", found ? "exists" : "is free", STR_F(source)));
}

static void judge_aliases(struct check *c, const cJSON *list)
{
    json_each(source, named_aliases(c)) judge_alias(c, list, json_key(source), json_str(source));
}

/* --- addresses of kubelets --- */

static cJSON *named_kubelets(struct check *c)
{
    cJSON *ret = json_new_object(c->arena);

    for (int64_t i = 0; i < c->config->kubelet_addresses; i++)
        json_set_str(
            c->arena, ret,
            arena_printf(c->arena, "%.*s-kubelet-%lld", STR_F(c->config->name), (long long)i).p,
            STR(""));
    return ret;
}

/* Why no node can have it; NULL: one can. */
static const char *wrong_kubelet(const cJSON *service)
{
    struct str ip = json_str_at(service, "spec.clusterIP");

    if (!service)
        return "does not exist: the chart makes it, and a node has no address without it";
    if (!ip.n || str_eqc(ip, "None"))
        return "has no cluster IP: a node has no address by it";
    json_each(port, json_path(service, "spec.ports"))
    {
        if (json_i64_at(port, "port", 0) == 10250)
            return NULL;
    }
    return "has no port 10250, where clients expect a kubelet";
}

static void judge_kubelets(struct check *c, const cJSON *list)
{
    size_t good = 0;

    json_each(name, named_kubelets(c))
    {
        const char *why = wrong_kubelet(item_of(list, json_key(name)));

        good += !why;
        if (why)
            report(c, HOST_FINDING_WARNING, arena_printf(c->arena, "service %s", name->string).p,
                   str_c(why));
    }
    report(c, good ? HOST_FINDING_OK : HOST_FINDING_WARNING, "kubelet services",
           arena_printf(c->arena, "%zu of %lld can be the address of a node", good,
                        (long long)c->config->kubelet_addresses));
}

/* --- queues of Kueue --- */

static bool is_queued(const struct config_pool *pool)
{
    return pool->scheduler_kind == SCHEDULER_KUEUE;
}

/* `queue`: the pool. */
static cJSON *named_queues(struct check *c)
{
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++)
        if (is_queued(&c->config->pools[i]))
            name_class(c, ret, c->config->pools[i].queue, c->config->pools[i].name);
    return ret;
}

static const cJSON *item_named(const cJSON *list, struct str name)
{
    json_each(item, json_get(list, "items"))
    {
        if (str_eq(json_str_at(item, "metadata.name"), name))
            return item;
    }
    return NULL;
}

/* "False: reason: message" of Kueue's condition; empty where it is True, or not said yet. */
static struct str why_inactive(struct check *c, const cJSON *object)
{
    const cJSON *active = condition_get(json_path(object, "status.conditions"), "Active");

    if (!str_eqc(json_str(json_get(active, "status")), "False"))
        return STR("");
    return arena_printf(c->arena, "%.*s: %.*s", STR_F(json_str(json_get(active, "reason"))),
                        STR_F(str_clip(json_str(json_get(active, "message")), 256)));
}

static void judge_queue(struct check *c, const cJSON *list, struct str name, struct str pool)
{
    const char *what = arena_printf(c->arena, "queue %.*s", STR_F(name)).p;
    const cJSON *queue = item_named(list, name);
    struct str cluster_queue = json_str_at(queue, "spec.clusterQueue");
    struct str policy = json_str_at(queue, "spec.stopPolicy"), why = why_inactive(c, queue);

    if (!queue)
        report(c, HOST_FINDING_MISSING, what,
               arena_printf(c->arena,
                            "no LocalQueue of this name in the namespace: pods of pool %.*s are "
                            "never admitted",
                            STR_F(pool)));
    else if (why.n)
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena, "admits no pod of pool %.*s: %.*s", STR_F(pool), STR_F(why)));
    else if (policy.n && !str_eqc(policy, "None"))
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena, "admits no pod of pool %.*s: its stopPolicy is %.*s",
                            STR_F(pool), STR_F(policy)));
    else
        report(c, HOST_FINDING_OK, what,
               arena_printf(c->arena,
                            "of ClusterQueue %.*s, for pool %.*s; `sublet explain` shows "
                            "whether Kueue holds its pods",
                            STR_F(cluster_queue), STR_F(pool)));
    if (cluster_queue.n)
        json_set_str(c->arena, c->cluster_queues, arena_cstr(c->arena, cluster_queue), name);
}

static void judge_queues(struct check *c, const cJSON *list)
{
    c->cluster_queues = json_new_object(c->arena);
    json_each(pool, named_queues(c)) judge_queue(c, list, json_key(pool), json_str(pool));
}

/* Those that our LocalQueues name. */
static cJSON *named_cluster_queues(struct check *c)
{
    return c->cluster_queues;
}

static bool selects_namespace(struct check *c, const cJSON *queue)
{
    const cJSON *labels = json_path(c->namespace, "metadata.labels");
    struct selector selector;
    struct err err;

    err_init(&err, c->arena);
    return selector_from_json(c->arena, json_path(queue, "spec.namespaceSelector"), &selector,
                              &err) ||
           selector_match(&selector, labels_flatten(c->arena, labels));
}

static void judge_cluster_queue(struct check *c, const cJSON *list, struct str name,
                                struct str queue)
{
    const char *what = arena_printf(c->arena, "cluster queue %.*s", STR_F(name)).p;
    const cJSON *found = item_named(list, name);
    struct str why = why_inactive(c, found);

    if (!found)
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena, "does not exist; named by LocalQueue %.*s", STR_F(queue)));
    else if (why.n)
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena, "is not active: %.*s", STR_F(why)));
    else if (c->namespace && !selects_namespace(c, found))
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena,
                            "its namespaceSelector leaves %.*s out: no pod there is admitted",
                            STR_F(c->config->host_namespace)));
    else
        report(c, HOST_FINDING_OK, what,
               c->namespace ? STR("active, and selects the namespace")
                            : STR("active; the namespace's labels may not be read"));
}

static void judge_cluster_queues(struct check *c, const cJSON *list)
{
    json_each(queue, c->cluster_queues)
        judge_cluster_queue(c, list, json_key(queue), json_str(queue));
}

/* --- groups of pods --- */

static cJSON *grouped_pools(struct check *c, enum pool_scheduler kind)
{
    cJSON *ret = json_new_object(c->arena);

    for (size_t i = 0; i < c->config->n_pools; i++) {
        const struct config_pool *pool = &c->config->pools[i];

        if (pool->gang && pool->scheduler_kind == kind)
            name_class(c, ret, pool->name, pool->name);
    }
    return ret;
}

static cJSON *grouped_by_kai(struct check *c)
{
    return grouped_pools(c, SCHEDULER_KAI);
}

static cJSON *grouped_by_volcano(struct check *c)
{
    return grouped_pools(c, SCHEDULER_VOLCANO);
}

static cJSON *grouped_natively(struct check *c)
{
    return grouped_pools(c, SCHEDULER_NATIVE);
}

static void judge_groups(struct check *c, const cJSON *list)
{
    (void)list;
    report(c, HOST_FINDING_OK, "pod groups", STR("served: pods of gangs start together"));
}

static const struct look {
    const char *what, *root, *path; /* root, then namespaces/NAME where path begins with a slash */
    bool in_namespace;
    void (*judge)(struct check *c, const cJSON *tree);
    cJSON *(*named)(struct check *c); /* looked at only where this is not empty; NULL: always */
} LOOKS[] = {
    {"namespace", "/api/v1", "", true, judge_namespace, NULL},
    {"resource quota", "/api/v1", "/resourcequotas", true, judge_quota, NULL},
    {"limit range", "/api/v1", "/limitranges", true, judge_limits, NULL},
    {"GPUBindings", "/apis/" CONFIG_GROUP_FLEET "/v1alpha1", "/gpubindings", true, judge_bindings,
     followed_bindings},
    {"nodes", "/api/v1", "/nodes", false, judge_nodes, NULL},
    {"storage class", "/apis/storage.k8s.io/v1", "/storageclasses", false, judge_classes, NULL},
    {"priority classes", "/apis/scheduling.k8s.io/v1", "/priorityclasses", false, judge_priorities,
     named_priorities},
    {"runtime classes", "/apis/node.k8s.io/v1", "/runtimeclasses", false, judge_runtimes,
     named_runtimes},
    {"services", "/api/v1", "/services", true, judge_aliases, named_aliases},
    {"kubelet services", "/api/v1", "/services", true, judge_kubelets, named_kubelets},
    {"queues", KUEUE_API, "/localqueues", true, judge_queues, named_queues},
    {"cluster queues", KUEUE_API, "/clusterqueues", false, judge_cluster_queues,
     named_cluster_queues},
    {"pod groups of KAI", "/apis/scheduling.run.ai/v2alpha2", "/podgroups", true, judge_groups,
     grouped_by_kai},
    {"pod groups of Volcano", "/apis/scheduling.volcano.sh/v1beta1", "/podgroups", true,
     judge_groups, grouped_by_volcano},
    {"pod groups of Kubernetes", "/apis/scheduling.k8s.io/v1beta1", "/podgroups", true,
     judge_groups, grouped_natively},
};
#define N_LOOKS COUNT(LOOKS)

static void on_looked(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct check *c = ctx;
    const struct look *look = &LOOKS[c->look++];
    cJSON *tree = read_body(c, answer);

    if (!err && tree)
        look->judge(c, tree);
    else if (err && err->kind == &ERR_NOT_FOUND)
        report(
            c, HOST_FINDING_MISSING, look->what,
            look->judge == judge_bindings
                ? STR("not served: install the definitions with charts/sublet-fleet")
            : look->judge == judge_queues
                ? STR("not served: the host has no Kueue, or one before v1beta2")
            : look->judge == judge_groups
                ? STR("not served: pods of a pool with scheduler.gang are never created")
                : arena_printf(c->arena, "%.*s does not exist", STR_F(c->config->host_namespace)));
    else if (err && err->kind == &ERR_FORBIDDEN)
        report(c, HOST_FINDING_WARNING, look->what,
               STR("may not be read with these credentials: not checked"));
    else
        report(c, HOST_FINDING_WARNING, look->what,
               err ? arena_printf(c->arena, "not checked: %.*s", STR_F(err->message))
                   : STR("not checked: the answer cannot be read"));
    next(c);
}

static void look(struct check *c)
{
    const struct look *l = &LOOKS[c->look];
    struct str ns = c->config->host_namespace;

    if (l->judge == judge_kubelets && c->config->service_namespace.n)
        ns = c->config->service_namespace;
    send_request(c, "GET",
                 arena_printf(c->arena, "%s%s%.*s%s", l->root,
                              l->in_namespace ? "/namespaces/" : "",
                              STR_F(l->in_namespace ? ns : STR("")), l->path),
                 STR_NULL, on_looked);
}

/* --- further Secrets with the kubeconfig --- */

static struct str secret_state(const struct check *c, const cJSON *secret)
{
    const cJSON *meta = json_get(secret, "metadata");
    struct str given = json_str(json_get(json_get(meta, "annotations"), "sublet.dev/kubeconfig"));
    struct str made = json_str(json_get(json_get(meta, "labels"), "app.kubernetes.io/instance"));
    struct str by = json_str(json_get(json_get(meta, "labels"), "app.kubernetes.io/managed-by"));

    if (!str_eq(given, c->config->name) &&
        !(str_eqc(by, "sublet") && str_eq(made, c->config->name)))
        return STR_NULL;
    return json_count(json_get(secret, "data")) ? STR("exists, and holds a kubeconfig")
                                                : STR("exists, and is to be filled in");
}

static void on_secret(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct check *c = ctx;
    const struct config_kubeconfig *one = &c->config->kubeconfigs[c->secret++];
    bool here = !one->ns.n || str_eq(one->ns, c->config->host_namespace);
    const char *what = arena_printf(c->arena, "secret %.*s", STR_F(one->name)).p;
    cJSON *secret = read_body(c, answer);
    struct str state = secret && !err ? secret_state(c, secret) : STR_NULL;

    if (state.p)
        report(c, HOST_FINDING_OK, what, state);
    else if (err && err->kind == &ERR_NOT_FOUND)
        report(c, here ? HOST_FINDING_OK : HOST_FINDING_WARNING, what,
               here ? STR("does not exist yet: the virtual cluster makes it")
                    : STR("does not exist: the chart makes it, and no kubeconfig is there "
                          "without it"));
    else if (err && err->kind == &ERR_FORBIDDEN)
        report(c, HOST_FINDING_WARNING, what,
               STR("may not be read with these credentials: not checked"));
    else if (err)
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena, "not checked: %.*s", STR_F(err->message)));
    else
        report(c, HOST_FINDING_WARNING, what,
               arena_printf(c->arena,
                            "is not made for this virtual cluster, and never written: annotation "
                            "sublet.dev/kubeconfig: %.*s gives it",
                            STR_F(c->config->name)));
    next(c);
}

static void look_at_secret(struct check *c)
{
    const struct config_kubeconfig *one = &c->config->kubeconfigs[c->secret];

    send_request(c, "GET",
                 arena_printf(c->arena, "/api/v1/namespaces/%.*s/secrets/%.*s",
                              STR_F(one->ns.n ? one->ns : c->config->host_namespace),
                              STR_F(one->name)),
                 STR_NULL, on_secret);
}

static bool is_needed(struct check *c, const struct look *l)
{
    return !l->named || json_count(l->named(c));
}

static void next(struct check *c)
{
    while (c->look < N_LOOKS && !is_needed(c, &LOOKS[c->look]))
        c->look++;
    if (c->right < c->n_rights) {
        c->verbs = str_c(c->rights[c->right].verbs);
        review_next(c);
    } else if (c->look < N_LOOKS) {
        look(c);
    } else if (c->secret < c->config->n_kubeconfigs) {
        look_at_secret(c);
    } else {
        finish(c);
    }
}

/* --- life --- */

static void on_closed(void *ctx)
{
    ((struct check *)ctx)->closed = true;
}

static void finish(struct check *c)
{
    host_stop(c->host);
    uv_stop(&c->loop);
}

int sync_host_check(struct arena *a, const struct config *config, host_finding_cb found, void *ctx,
                    struct err *err)
{
    struct check c = {.arena = a, .config = config, .found = found, .ctx = ctx};
    struct host_options options = {.loop = &c.loop,
                                   .clock = &CLOCK_SYSTEM,
                                   .rng = &RNG_SYSTEM,
                                   .kubeconfig = config->host_kubeconfig};

    gather_rights(&c);
    c.lacking = BUF_INIT(0);
    uv_loop_init(&c.loop);
    if (host_open(&options, &c.host, err)) {
        uv_loop_close(&c.loop);
        return -1;
    }
    host_on_trouble(c.host, on_trouble, &c);
    send_request(&c, "GET", STR("/version"), STR_NULL, on_version);
    uv_run(&c.loop, UV_RUN_DEFAULT); /* until finish() */
    host_close(c.host, on_closed, &c);
    uv_run(&c.loop, UV_RUN_DEFAULT);
    assert(c.closed);
    uv_loop_close(&c.loop);
    buf_fini(&c.lacking);
    config_bound_free(c.bound);
    return c.missing;
}
