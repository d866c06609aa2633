/* SPDX-License-Identifier: Apache-2.0 */
/* Owners that wait for GPUs of a pool outside the ledger's line: a binding that rejects refuses the
 * pod, and its controller tries again after a delay that doubles each time. Why: GPUs must not idle
 * so long while a workload needs them. Must never wake more owners than fit, nor one for ever that
 * does not answer: a refused attempt costs a request. Owners that no release can help are in a list
 * of their own, where a change of pools or bindings wakes each once: those that the bindings there
 * are then may serve, WAKE_MAX at a time, since all their controllers' requests come at once. */

#include "gpu/refused.h"

#include <sublet/api_version.h>
#include <sublet/object.h>

enum {
    REFUSED_MAX = 1024, /* who was refused longest ago relies on its delay */
    WAKE_MAX = 32,      /* at once */
    ANSWER_MS = 10000,  /* an owner that was woken and requests nothing for so long needs nothing */
    NAME_MAX = 253,
    UID_MAX = 64,
};

static const struct refused_kind KINDS[] = {
    {"ReplicaSet", "apps", "replicasets"},
    {"ReplicationController", "", "replicationcontrollers"},
    {"StatefulSet", "apps", "statefulsets"},
    {"DaemonSet", "apps", "daemonsets"},
    {"Job", "batch", "jobs"},
    {"Pod", "", "pods"},
};

struct refusal {
    TAILQ_ENTRY(refusal) place;
    struct rational gpu_eq;
    struct str pool;            /* heap; none in the list of those that no pool serves */
    struct refused_owner owner; /* its strings: heap */
    struct refused_count count;
    uint64_t wave; /* of those that no pool serves: up to this one it was refused, or passed over */
    uint64_t refused; /* grows with each refusal in the list */
    bool woken;       /* since it was refused last, at woken_ms */
    int64_t woken_ms; /* monotonic */
};

/* What a tenant wrote is kept only where it can be the name of an object. */
static bool is_sane(const struct refused_owner *owner)
{
    return owner->name.n > 0 && owner->name.n <= NAME_MAX && owner->uid.n > 0 &&
           owner->uid.n <= UID_MAX && owner->pool.n <= NAME_MAX;
}

struct refused_owner sync_refused_owner(const cJSON *object)
{
    const cJSON *ref = owner_controller(object);
    struct str group = api_version_read(json_str(json_get(ref, "apiVersion"))).group;
    struct refused_owner ret = {
        .ns = json_str_at(object, "metadata.namespace"),
        .name = json_str(json_get(ref, "name")),
        .uid = json_str(json_get(ref, "uid")),
        .pool = json_str(json_get(json_path(object, "metadata.labels"), "sublet.dev/gpu-pool")),
        .priority = json_i64_at(object, "spec.priority", 0)};

    for (size_t i = 0; i < COUNT(KINDS) && is_sane(&ret); i++) {
        if (str_eqc(json_str(json_get(ref, "kind")), KINDS[i].kind) &&
            str_eqc(group, KINDS[i].group))
            ret.kind = &KINDS[i];
    }
    return ret;
}

static void forget(struct refusals *list, struct refusal *r)
{
    TAILQ_REMOVE(list, r, place);
    mem_free(r->pool.p);
    mem_free(r->owner.ns.p);
    mem_free(r->owner.name.p);
    mem_free(r->owner.uid.p);
    mem_free(r->owner.pool.p);
    mem_free(r);
}

static struct refusal *find(struct refusals *list, struct str uid)
{
    struct refusal *r;

    TAILQ_FOREACH(r, list, place)
    {
        if (str_eq(r->owner.uid, uid))
            return r;
    }
    return NULL;
}

/* Its refusal is the last of all; with it the list may be one too long. */
static void renew(struct refusals *list, struct refusal *last)
{
    struct refusal *r, *oldest = NULL;
    size_t n = 0;

    last->refused = 0;
    TAILQ_FOREACH(r, list, place)
    {
        n++;
        if (r == last)
            continue;
        if (!oldest || r->refused < oldest->refused)
            oldest = r;
        if (r->refused >= last->refused)
            last->refused = r->refused + 1;
    }
    if (n > REFUSED_MAX)
        forget(list, oldest);
}

static void insert(struct refusals *list, struct refusal *added)
{
    struct refusal *r;

    TAILQ_FOREACH_REVERSE(r, list, refusals, place)
    {
        if (r->owner.priority >= added->owner.priority) {
            TAILQ_INSERT_AFTER(list, r, added, place);
            return;
        }
    }
    TAILQ_INSERT_HEAD(list, added, place);
}

static struct refusal *add(struct refusals *list, const struct refused_owner *owner)
{
    struct refusal *r = NEW(struct refusal);

    r->owner = (struct refused_owner){.kind = owner->kind,
                                      .ns = mem_str(owner->ns),
                                      .name = mem_str(owner->name),
                                      .uid = mem_str(owner->uid),
                                      .pool = mem_str(owner->pool),
                                      .priority = owner->priority};
    insert(list, r);
    return r;
}

void sync_refused_add(struct refusals *list, const struct pool_choice *choice,
                      const struct refused_owner *owner)
{
    struct refusal *r = find(list, owner->uid);

    if (!owner->kind)
        return;
    if (rational_cmp(choice->gpu_eq, choice->binding->most) > 0) {
        if (r)
            forget(list, r);
        return;
    }
    if (!r) {
        r = add(list, owner);
    } else if (r->owner.priority != owner->priority) {
        TAILQ_REMOVE(list, r, place);
        r->owner.priority = owner->priority;
        insert(list, r);
    }
    mem_free(r->pool.p);
    r->pool = mem_str(choice->binding->pool->name);
    r->gpu_eq = choice->gpu_eq;
    r->woken = false;
    renew(list, r);
}

void sync_refused_add_unserved(struct refusals *list, const struct refused_owner *owner,
                               uint64_t wave)
{
    struct refusal *r = find(list, owner->uid);

    if (!owner->kind)
        return;
    r = r ? r : add(list, owner);
    if (!str_eq(r->owner.pool, owner->pool)) {
        mem_free(r->owner.pool.p);
        r->owner.pool = mem_str(owner->pool);
    }
    r->wave = wave;
    renew(list, r);
}

static bool may_serve(const struct config *config, const struct refused_owner *owner)
{
    const struct config_binding *b = config_binding_of(config, owner->pool);

    return !owner->pool.n || (b && !b->ended);
}

/* What is refused again meanwhile is of this wave. */
bool sync_refused_wake_wave(struct refusals *list, uint64_t wave, const struct config *config,
                            bool (*retry)(void *ctx, const struct refused_owner *owner), void *ctx)
{
    struct refusal *next;
    size_t n = 0;

    for (struct refusal *r = TAILQ_FIRST(list); r; r = next) {
        next = TAILQ_NEXT(r, place);
        if (r->wave >= wave)
            continue;
        if (!may_serve(config, &r->owner)) {
            r->wave = wave;
            continue;
        }
        if (n == WAKE_MAX)
            return true;
        n += retry(ctx, &r->owner);
        forget(list, r);
    }
    return false;
}

bool sync_refused_is_full(const struct refusals *list)
{
    const struct refusal *r;
    size_t n = 0;

    TAILQ_FOREACH(r, list, place) n++;
    return n >= REFUSED_MAX;
}

void sync_refused_prune(struct refusals *list, refused_lacks lacks, void *ctx)
{
    struct refusal *next;

    for (struct refusal *r = TAILQ_FIRST(list); r; r = next) {
        next = TAILQ_NEXT(r, place);
        (void)lacks(ctx, &r->owner, &r->count);
        if (r->count.gone)
            forget(list, r);
    }
}

void sync_refused_drop(struct refusals *list, struct str uid)
{
    struct refusal *r = find(list, uid);

    if (r)
        forget(list, r);
}

void sync_refused_wake(struct refusals *list, const struct config_binding *binding,
                       struct rational used, const struct clock *clock,
                       bool (*retry)(void *ctx, const struct refused_owner *owner), void *ctx)
{
    int64_t now = clock_mono_ms(clock);
    struct rational after;
    struct refusal *next;
    size_t n = 0;

    for (struct refusal *r = TAILQ_FIRST(list); r && n < WAKE_MAX; r = next) {
        next = TAILQ_NEXT(r, place);
        if (!str_eq(r->pool, binding->pool->name) || !rational_add(used, r->gpu_eq, &after) ||
            rational_cmp(after, binding->limit) > 0)
            continue;
        if ((r->woken && now - r->woken_ms >= ANSWER_MS) || !retry(ctx, &r->owner)) {
            forget(list, r);
            continue;
        }
        if (!r->woken)
            r->woken_ms = now;
        r->woken = true;
        used = after;
        n++;
    }
}

struct rational sync_refused_lack(struct refusals *list, const struct config_binding *binding,
                                  refused_lacks lacks, void *ctx)
{
    struct rational sum = RATIONAL_ZERO, all;
    struct refusal *r;

    TAILQ_FOREACH(r, list, place)
    {
        if (rational_cmp(sum, binding->most) >= 0)
            break;
        if (!str_eq(r->pool, binding->pool->name))
            continue;
        all = (struct rational){(int64_t)lacks(ctx, &r->owner, &r->count), 1};
        if (!rational_mul(all, r->gpu_eq, &all) || !rational_add(sum, all, &sum))
            sum = binding->most;
    }
    return rational_cmp(sum, binding->most) > 0 ? binding->most : sum;
}

void sync_refused_fini(struct refusals *list)
{
    while (!TAILQ_EMPTY(list))
        forget(list, TAILQ_FIRST(list));
}
