/* SPDX-License-Identifier: Apache-2.0 */
/* The rights on the host that the configuration needs: one access review for each verb of each. */
#include "check.h"

#include <string.h>

#include <sublet/config_kubeconfig.h>
#include <sublet/config_sync.h>
#include <sublet/config_sync_from.h>
#include <sublet/translate_gang.h>

#define NAMESPACE false
#define CLUSTER   true
#define REQUIRED  true
#define OPTIONAL  false
static const struct host_right RIGHTS[] = {
#define HOST_RIGHT(scope, need, group, resource, verbs, without)                                   \
    {scope, need, group, resource, verbs, without},
#include <sublet/tbl/host_rights.h>
#undef HOST_RIGHT
};
#define N_RIGHTS   COUNT(RIGHTS)
#define DOWN_VERBS "get,list,watch,create,patch,delete" /* of each kind of sync.toHost */
#define UP_VERBS   "list,watch"                         /* ... of sync.fromHost */

static void add_right(struct host_right *rights, struct host_check *c, bool cluster,
                      const char *group, const char *plural)
{
    rights[c->n_rights++] = (struct host_right){cluster, REQUIRED, group, plural, DOWN_VERBS, ""};
}

static void add_shown(struct host_right *rights, struct host_check *c,
                      const struct config_from *row, const struct config_from_mapping *m)
{
    struct host_right *r = &rights[c->n_rights++];

    *r = (struct host_right){
        !m,       REQUIRED, arena_cstr(c->arena, row->group), arena_cstr(c->arena, row->plural),
        UP_VERBS, ""};
    if (m) {
        r->ns = m->host_ns;
        r->name = row->kind == FROM_ENDPOINT_SLICES ? STR("") : m->host_name; /* random names */
    }
}

static void add_metrics(struct host_right *rights, struct host_check *c)
{
    const char *group = "metrics.k8s.io";

    if (!c->config->metrics_from_host)
        return;
    rights[c->n_rights++] = (struct host_right){NAMESPACE, REQUIRED, group, "pods", "list", ""};
    if (c->config->metrics_whole_nodes)
        rights[c->n_rights++] = (struct host_right){CLUSTER, REQUIRED, group, "nodes", "list", ""};
}

/* The PodGroups of a pool whose pods are gangs; once for each kind of scheduler. */
static void add_groups(struct host_right *rights, struct host_check *c,
                       const struct config_pool *pool)
{
    struct str root = translate_gang_root(pool->scheduler_kind), group;

    if (pool->gang && pool->scheduler_kind == SCHEDULER_KUEUE)
        rights[c->n_rights++] =
            (struct host_right){NAMESPACE, REQUIRED, "kueue.x-k8s.io", "workloads", "delete", ""};
    if (!pool->gang || !root.n)
        return;
    root = str_from(root, sizeof("/apis/") - 1);
    group = str_cut(&root, '/');
    for (size_t i = 0; i < c->n_rights; i++) {
        if (str_eqc(group, rights[i].group) && str_eqc(STR("podgroups"), rights[i].resource))
            return;
    }
    rights[c->n_rights++] = (struct host_right){NAMESPACE,
                                                REQUIRED,
                                                arena_cstr(c->arena, group),
                                                "podgroups",
                                                "list,watch,create,patch,delete",
                                                ""};
}

/* Those beside the tenant's objects are written by the right to all Secrets there. */
static void add_kubeconfigs(struct host_right *rights, struct host_check *c)
{
    for (size_t i = 0; i < c->config->n_kubeconfigs; i++) {
        const struct config_kubeconfig *one = &c->config->kubeconfigs[i];

        if (one->ns.n && !str_eq(one->ns, c->config->host_namespace))
            rights[c->n_rights++] = (struct host_right){
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

static void gather_shown(struct host_right *rights, struct host_check *c)
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
            (struct host_right){NAMESPACE, REQUIRED, "", "resourcequotas", UP_VERBS, ""};
    if (c->config->fleet_bindings)
        rights[c->n_rights++] = (struct host_right){
            NAMESPACE, REQUIRED, CONFIG_GROUP_FLEET, "gpubindings", "get,list,watch", ""};
    for (size_t i = 0; i < c->config->n_pools; i++)
        add_groups(rights, c, &c->config->pools[i]);
    if (c->config->kubelets)
        rights[c->n_rights++] =
            (struct host_right){CLUSTER, REQUIRED, "", "nodes/proxy", "get", ""};
}

void host_check_gather_rights(struct host_check *c)
{
    const struct config_to_host *to = c->config->to_host;
    struct host_right *rights =
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

static cJSON *review(struct host_check *c, const struct host_right *r, struct str verb)
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

static void right_done(struct host_check *c)
{
    const struct host_right *r = &c->rights[c->right++];
    const char *what = arena_printf(c->arena, "right %s%s%.*s", r->resource, r->ns.n ? " of " : "",
                                    STR_F(r->ns.n ? r->ns : STR("")))
                           .p;
    struct str lacking = arena_str(c->arena, buf_str(&c->lacking));
    struct str of = r->name.n ? arena_printf(c->arena, "%.*s: ", STR_F(r->name)) : STR("");

    buf_clear(&c->lacking);
    if (c->unsure)
        host_check_report(c, HOST_FINDING_WARNING, what,
                          STR("the host does not answer access reviews"));
    else if (!lacking.n)
        host_check_report(c, HOST_FINDING_OK, what,
                          arena_printf(c->arena, "%.*s%s", STR_F(of), r->verbs));
    else if (r->required)
        host_check_report(
            c, HOST_FINDING_MISSING, what,
            arena_printf(c->arena, "%.*snot permitted: %.*s", STR_F(of), STR_F(lacking)));
    else
        host_check_report(c, HOST_FINDING_WARNING, what,
                          arena_printf(c->arena, "%.*snot permitted: %.*s; %s", STR_F(of),
                                       STR_F(lacking), r->without));
    c->unsure = false;
}

static void on_reviewed(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct host_check *c = ctx;
    cJSON *tree = host_check_body(c, answer);
    struct str verb = json_str_at(tree, "spec.resourceAttributes.verb");

    if (err || !verb.n)
        c->unsure = true;
    else if (!json_true(json_path(tree, "status.allowed")))
        buf_printf(&c->lacking, "%s%.*s", c->lacking.n ? ", " : "", STR_F(verb));
    host_check_review_next(c);
}

void host_check_review_next(struct host_check *c)
{
    struct str verb;

    if (!c->verbs.n) {
        right_done(c);
        host_check_next(c);
        return;
    }
    verb = str_cut(&c->verbs, ',');
    host_check_send(c, "POST", STR("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
                    json_text(c->arena, review(c, &c->rights[c->right], verb)), on_reviewed);
}
