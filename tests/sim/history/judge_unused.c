/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of the tenant stays on the host that nothing refers to: ConfigMaps and Secrets are there
 * for pods alone. Part of judge_agree.c: it holds when it is quiet. Must never demand that what no
 * record proves is removed. */
#include "judge_impl.h"

#include <string.h>

#include "engine.h"

struct usage {
    struct arena *arena;
    const char *plural;
    struct str name, pod_uid; /* sought: an object by name, or the tokens of a pod */
    bool found;
};

static void on_ref(void *ctx, const char *plural, struct str name)
{
    struct usage *u = ctx;

    u->found |= !strcmp(plural, u->plural) && str_eq(name, u->name);
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct usage *u = ctx;

    if (u->pod_uid.n)
        u->found |= str_eq(o->uid, u->pod_uid);
    else
        judge_each_ref(vapi_tree(u->arena, o), on_ref, u);
    return !u->found;
}

/* Does a pod of that namespace use it? */
static bool is_used(struct life *l, struct arena *a, const char *plural, const cJSON *host)
{
    const cJSON *notes = json_path(host, "metadata.annotations");
    struct str ns = json_str(json_get(notes, "sublet.dev/namespace"));
    struct usage u = {a, plural, json_str(json_get(notes, "sublet.dev/name")), STR_NULL, false};
    const struct store_object *o;

    if (json_get(notes, "sublet.dev/renew-at")) { /* tokens carry what their pod carries */
        u.pod_uid = host_virtual_uid(host);
    } else {
        o = store_get(l->store, tenant_storage(l, plural), ns, u.name);
        if (!o || !str_eq(o->uid, host_virtual_uid(host)))
            return false;
    }
    return !store_scan(l->store, tenant_storage(l, "pods"), ns, STR_NULL, STR_NULL, 0, on_pod, &u,
                       NULL) &&
           u.found;
}

static bool is_in_quarantine(struct life *l, struct arena *a, const struct host_object_model *o)
{
    struct str value;

    return store_record_get(l->store, RECORD_MAPPING,
                            arena_printf(a, "quarantine/%s/%s", o->plural, o->name), &value);
}

/* The process's own. */
static bool is_of_tenant(const struct host_object_model *o, const cJSON *tree)
{
    return (!strcmp(o->plural, "configmaps") || !strcmp(o->plural, "secrets")) &&
           host_is_ours(tree) && !str_has_suffix(str_c(o->name), STR("-kubeconfig"));
}

bool judge_all_is_used(struct world *w, struct arena *a)
{
    struct life *l = w->lives[0];

    for (const struct host_object_model *o = host_model_first(w->host); o; o = o->next) {
        const cJSON *tree = host_parse(a, o->bytes);

        if (is_of_tenant(o, tree) && !is_used(l, a, o->plural, tree) &&
            !is_in_quarantine(l, a, o) && !judge_may_have_orphans(w, l, o->plural))
            return judge_differ("%s %s is on the host, and nothing refers to it", o->plural,
                                o->name);
    }
    return true;
}
