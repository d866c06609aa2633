/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet check --host`: a series of checks, each a request and findings from its answer. To add
 * one, add a row to LOOKS. Must never change anything on the host, and never take what is not
 * readable for missing.
 *
 *   version --answered--> rights, one by one --> LOOKS, one by one --> further Secrets --> finished
 *      '--no connection, 401--> finished */
#include "check.h"

#include <assert.h>

#include <sublet/host_trouble.h>

#define TIMEOUT_MS 10000
#define KUEUE_API  "/apis/kueue.x-k8s.io/v1beta2"
#define NO_GROUPS  "not served: pods of a pool with scheduler.gang are never created"

void host_check_report(struct host_check *c, enum host_finding level, const char *what,
                       struct str text)
{
    c->missing += level == HOST_FINDING_MISSING;
    c->found(c->ctx, level, str_c(what), text);
}

static void finish(struct host_check *c);

void host_check_send(struct host_check *c, const char *method, struct str path, struct str body,
                     host_done_cb done)
{
    struct host_request q = {
        .method = method, .path = path, .body = body, .timeout_ms = TIMEOUT_MS, .urgent = true};

    host_send(c->host, &q, done, c);
}

cJSON *host_check_body(struct host_check *c, const struct host_answer *answer)
{
    cJSON *tree = NULL;

    return answer && !json_parse(c->arena, answer->body, &tree, NULL) ? tree : NULL;
}

const cJSON *host_check_item(const cJSON *list, struct str name)
{
    json_each(one, json_get(list, "items"))
    {
        if (str_eq(json_str_at(one, "metadata.name"), name))
            return one;
    }
    return NULL;
}

void host_check_name(struct host_check *c, cJSON *to, struct str object, struct str by)
{
    if (object.n && !json_get_str(to, object))
        json_set_str(c->arena, to, arena_cstr(c->arena, object), by);
}

/* --- the connection --- */

static void on_trouble(void *ctx, enum host_trouble now, struct str detail)
{
    struct host_check *c = ctx;

    c->trouble = arena_printf(c->arena, "%s: %s%s%.*s%s", HOST_TROUBLES[now].reason,
                              HOST_TROUBLES[now].message, detail.n ? " (" : "", STR_F(detail),
                              detail.n ? ")" : "");
}

static void on_version(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct host_check *c = ctx;
    cJSON *version = host_check_body(c, answer);

    if (err && err->kind == &ERR_UNAUTHORIZED) {
        host_check_report(
            c, HOST_FINDING_MISSING, "credentials",
            STR("Unauthorized: the host does not accept them: expired, revoked or of another "
                "cluster"));
        finish(c);
        return;
    }
    if (err && (!answer || err->kind->code >= 500)) {
        host_check_report(c, HOST_FINDING_MISSING, "connection",
                          c->trouble.n ? c->trouble : err->message);
        finish(c);
        return;
    }
    host_check_report(c, HOST_FINDING_OK, "connection",
                      err ? STR("answers; its version may not be read")
                          : arena_printf(c->arena, "Kubernetes %.*s",
                                         STR_F(json_str(json_get(version, "gitVersion")))));
    host_check_next(c);
}

/* --- looks --- */

static const struct look {
    const char *what, *root, *path;
    enum {
        OF_CLUSTER,
        OF_NAMESPACE,
        OF_SERVICES
    } scope; /* of services: where the chart makes them */
    host_check_judge *judge;
    host_check_names *named; /* NULL: always looked at */
    const char *absent;      /* what 404 says; NULL: the namespace does not exist */
} LOOKS[] = {
    {"namespace", "/api/v1", "", OF_NAMESPACE, host_check_namespace, NULL, NULL},
    {"resource quota", "/api/v1", "/resourcequotas", OF_NAMESPACE, host_check_quota, NULL, NULL},
    {"limit range", "/api/v1", "/limitranges", OF_NAMESPACE, host_check_limits, NULL, NULL},
    {"GPUBindings", "/apis/" CONFIG_GROUP_FLEET "/v1alpha1", "/gpubindings", OF_NAMESPACE,
     host_check_bindings, host_check_named_bindings,
     "not served: install the definitions with charts/sublet-fleet"},
    {"nodes", "/api/v1", "/nodes", OF_CLUSTER, host_check_nodes, NULL, NULL},
    {"storage class", "/apis/storage.k8s.io/v1", "/storageclasses", OF_CLUSTER, host_check_classes,
     NULL, NULL},
    {"priority classes", "/apis/scheduling.k8s.io/v1", "/priorityclasses", OF_CLUSTER,
     host_check_priorities, host_check_named_priorities, NULL},
    {"runtime classes", "/apis/node.k8s.io/v1", "/runtimeclasses", OF_CLUSTER, host_check_runtimes,
     host_check_named_runtimes, NULL},
    {"services", "/api/v1", "/services", OF_NAMESPACE, host_check_aliases, host_check_named_aliases,
     NULL},
    {"kubelet services", "/api/v1", "/services", OF_SERVICES, host_check_kubelets,
     host_check_named_kubelets, NULL},
    {"queues", KUEUE_API, "/localqueues", OF_NAMESPACE, host_check_queues, host_check_named_queues,
     "not served: the host has no Kueue, or one before v1beta2"},
    {"cluster queues", KUEUE_API, "/clusterqueues", OF_CLUSTER, host_check_cluster_queues,
     host_check_named_cluster_queues, NULL},
    {"pod groups of KAI", "/apis/scheduling.run.ai/v2alpha2", "/podgroups", OF_NAMESPACE,
     host_check_groups, host_check_grouped_by_kai, NO_GROUPS},
    {"pod groups of Volcano", "/apis/scheduling.volcano.sh/v1beta1", "/podgroups", OF_NAMESPACE,
     host_check_groups, host_check_grouped_by_volcano, NO_GROUPS},
    {"pod groups of Kubernetes", "/apis/scheduling.k8s.io/v1beta1", "/podgroups", OF_NAMESPACE,
     host_check_groups, host_check_grouped_natively, NO_GROUPS},
};
#define N_LOOKS COUNT(LOOKS)

static void on_looked(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct host_check *c = ctx;
    const struct look *look = &LOOKS[c->look++];
    cJSON *tree = host_check_body(c, answer);

    if (!err && tree)
        look->judge(c, tree);
    else if (err && err->kind == &ERR_NOT_FOUND)
        host_check_report(c, HOST_FINDING_MISSING, look->what,
                          look->absent ? str_c(look->absent)
                                       : arena_printf(c->arena, "%.*s does not exist",
                                                      STR_F(c->config->host_namespace)));
    else if (err && err->kind == &ERR_FORBIDDEN)
        host_check_report(c, HOST_FINDING_WARNING, look->what,
                          STR("may not be read with these credentials: not checked"));
    else
        host_check_report(c, HOST_FINDING_WARNING, look->what,
                          err ? arena_printf(c->arena, "not checked: %.*s", STR_F(err->message))
                              : STR("not checked: the answer cannot be read"));
    host_check_next(c);
}

static void look(struct host_check *c)
{
    const struct look *l = &LOOKS[c->look];
    struct str ns = c->config->host_namespace, path;

    if (l->scope == OF_SERVICES && c->config->service_namespace.n)
        ns = c->config->service_namespace;
    path = l->scope == OF_CLUSTER
               ? arena_printf(c->arena, "%s%s", l->root, l->path)
               : arena_printf(c->arena, "%s/namespaces/%.*s%s", l->root, STR_F(ns), l->path);
    host_check_send(c, "GET", path, STR_NULL, on_looked);
}

static bool is_needed(struct host_check *c, const struct look *l)
{
    return !l->named || json_count(l->named(c));
}

void host_check_next(struct host_check *c)
{
    while (c->look < N_LOOKS && !is_needed(c, &LOOKS[c->look]))
        c->look++;
    if (c->right < c->n_rights) {
        c->verbs = str_c(c->rights[c->right].verbs);
        host_check_review_next(c);
    } else if (c->look < N_LOOKS) {
        look(c);
    } else if (c->secret < c->config->n_kubeconfigs) {
        host_check_secret(c);
    } else {
        finish(c);
    }
}

/* --- life --- */

static void on_closed(void *ctx)
{
    ((struct host_check *)ctx)->closed = true;
}

static void finish(struct host_check *c)
{
    host_stop(c->host);
    uv_stop(&c->loop);
}

int sync_host_check(struct arena *a, const struct config *config, host_finding_cb found, void *ctx,
                    struct err *err)
{
    struct host_check c = {.arena = a, .config = config, .found = found, .ctx = ctx};
    struct host_options options = {.loop = &c.loop,
                                   .clock = &CLOCK_SYSTEM,
                                   .rng = &RNG_SYSTEM,
                                   .kubeconfig = config->host_kubeconfig};

    host_check_gather_rights(&c);
    c.lacking = BUF_INIT(0);
    uv_loop_init(&c.loop);
    if (host_open(&options, &c.host, err)) {
        uv_loop_close(&c.loop);
        return -1;
    }
    host_on_trouble(c.host, on_trouble, &c);
    host_check_send(&c, "GET", STR("/version"), STR_NULL, on_version);
    uv_run(&c.loop, UV_RUN_DEFAULT); /* until finish() */
    host_close(c.host, on_closed, &c);
    uv_run(&c.loop, UV_RUN_DEFAULT);
    assert(c.closed);
    uv_loop_close(&c.loop);
    buf_fini(&c.lacking);
    config_bound_free(c.bound);
    return c.missing;
}
