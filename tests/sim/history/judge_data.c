/* SPDX-License-Identifier: Apache-2.0 */
/* What pods use on the host is what the tenant wrote: the content of ConfigMaps and Secrets, the
 * addresses of Services, volumes and nodes. Part of judge_agree.c: it holds when it is quiet. */
#include "judge_impl.h"

#include <string.h>

#include "engine.h"

struct using
{
    struct agreeing g;
    struct life *life;
    struct str ns;
};

static const cJSON *virtual_at(struct using *u, const char *plural, struct str ns, struct str name)
{
    const struct store_object *o =
        store_get(u->life->store, tenant_storage(u->life, plural), ns, name);

    return o ? vapi_tree(u->g.arena, o) : NULL;
}

static bool same_member(const cJSON *one, const cJSON *other, const char *key)
{
    const cJSON *a = json_get(one, key), *b = json_get(other, key);

    return json_count(a) == json_count(b) && (!json_count(a) || json_equal(a, b));
}

/* One that the tenant does not have is not awaited. */
static void judge_ref(void *ctx, const char *plural, struct str name)
{
    struct using *u = ctx;
    const cJSON *object = name.n ? virtual_at(u, plural, u->ns, name) : NULL, *host;

    if (!object || !u->g.same)
        return;
    u->g.plural = plural;
    host = judge_host_of(&u->g, json_str_at(object, "metadata.uid"));
    if (!host)
        u->g.same = judge_differ("%s %.*s is in use, and not on the host", plural, STR_F(name));
    else if (!same_member(object, host, "data") || !same_member(object, host, "binaryData"))
        u->g.same = judge_differ("%s %.*s has another content on the host", plural, STR_F(name));
}

void judge_each_ref(const cJSON *pod, void (*call)(void *ctx, const char *plural, struct str name),
                    void *ctx)
{
    json_each(container, json_path(pod, "spec.containers"))
    {
        json_each(from, json_get(container, "envFrom"))
        {
            call(ctx, "configmaps", json_str_at(from, "configMapRef.name"));
            call(ctx, "secrets", json_str_at(from, "secretRef.name"));
        }
    }
    json_each(volume, json_path(pod, "spec.volumes"))
    {
        call(ctx, "configmaps", json_str_at(volume, "configMap.name"));
        call(ctx, "secrets", json_str_at(volume, "secret.secretName"));
        json_each(source, json_path(volume, "projected.sources"))
        {
            call(ctx, "configmaps", json_str_at(source, "configMap.name"));
            call(ctx, "secrets", json_str_at(source, "secret.name"));
        }
    }
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct using *u = ctx;
    const cJSON *pod = vapi_tree(u->g.arena, o);
    struct str node = json_str_at(pod, "spec.nodeName");

    if (host_pod_is_finished(pod) || !node.n) /* finished, or it waits for GPUs */
        return true;
    u->ns = o->ns;
    judge_each_ref(pod, judge_ref, u);
    if (u->g.same && !virtual_at(u, "nodes", STR(""), node))
        u->g.same = judge_differ("pod %.*s is on node %.*s, which is not shown", STR_F(o->name),
                                 STR_F(node));
    return u->g.same;
}

static bool on_service(void *ctx, const struct store_object *o)
{
    struct using *u = ctx;
    const cJSON *service = vapi_tree(u->g.arena, o), *host;

    u->g.plural = "services";
    host = judge_host_of(&u->g, o->uid);
    if (!host)
        return true; /* `kubernetes` */
    u->g.same =
        (str_eq(json_str_at(service, "spec.clusterIP"), json_str_at(host, "spec.clusterIP")) &&
         json_i64_at(json_first(json_path(service, "spec.ports")), "port", 0) ==
             json_i64_at(json_first(json_path(host, "spec.ports")), "port", 0)) ||
        judge_differ("services %.*s has another address or port on the host", STR_F(o->name));
    return u->g.same;
}

static bool on_claim(void *ctx, const struct store_object *o)
{
    struct using *u = ctx;
    const cJSON *claim = vapi_tree(u->g.arena, o), *volume;
    struct str name = json_str_at(claim, "spec.volumeName");

    if (!str_eqc(json_str_at(claim, "status.phase"), "Bound"))
        return true;
    volume = virtual_at(u, "persistentvolumes", STR(""), name);
    u->g.same = (volume && str_eq(json_str_at(volume, "spec.claimRef.uid"), o->uid) &&
                 str_eqc(json_str_at(volume, "status.phase"), "Bound")) ||
                judge_differ("claim %.*s is bound to %.*s, which is not its volume", STR_F(o->name),
                             STR_F(name));
    return u->g.same;
}

static bool each(struct using *u, const char *plural,
                 bool (*call)(void *ctx, const struct store_object *o))
{
    return !store_scan(u->life->store, tenant_storage(u->life, plural), STR_NULL, STR_NULL,
                       STR_NULL, 0, call, u, NULL) &&
           u->g.same;
}

bool judge_content_agrees(struct world *w, struct arena *a)
{
    struct using u = {.g = {w, a, NULL, 0, NULL, true}, .life = w->lives[0]};

    return each(&u, "pods", on_pod) && each(&u, "services", on_service) &&
           each(&u, "persistentvolumeclaims", on_claim);
}
