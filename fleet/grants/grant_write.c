/* SPDX-License-Identifier: Apache-2.0 */
/* The writes of grants: the status of a GPUBinding and of a GPUPool, and a namespace's
 * ResourceQuota. A write is what differs from the host, no more: at rest there is none. A
 * ResourceQuota is lowered only below nothing that it has charged, in the version that says so: a
 * pod that is admitted meanwhile makes another version of it, and the write a conflict. Must never
 * name a tenant in what another can read. */
#include "grant_write.h"

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/json_build.h>
#include <sublet/object.h>
#include <sublet/quantity.h>
#include <sublet/vgpu.h>

#include "grant_class.h"
#include "grant_money.h"
#include "grant_queue.h"

static struct str text_of(const struct grant_state *s, struct rational gpus)
{
    return rational_format(s->a, gpus.num < 0 ? RATIONAL_ZERO : gpus);
}

/* An object whose status has the conditions of the one on the host. */
static cJSON *conditions_of(struct grant_state *s, const cJSON *tree)
{
    cJSON *list = json_copy(s->a, json_path(tree, "status.conditions"));

    return json_object(
        s->a,
        JSON("status", json_object(s->a, JSON("conditions", list ? list : json_new_array(s->a)))));
}

static void set_condition(struct grant_state *s, cJSON *object, const char *type, bool is,
                          const char *reason, struct str message)
{
    condition_set(s->a, object, type, is ? "True" : "False", reason, message, s->now_s);
}

/* The same object with this status; NULL: it has it already. */
static cJSON *with_status(struct grant_state *s, const cJSON *tree, const char *kind, cJSON *status)
{
    cJSON *object;

    if (json_equal(status, json_get(tree, "status")))
        return NULL;
    object = json_copy(s->a, tree);
    return json_put(s->a, object, JSON("apiVersion", "sublet.dev/v1alpha1"), JSON("kind", kind),
                    JSON("status", status));
}

static bool put_status(struct grant_state *s, const cJSON *tree, const char *kind, struct str path,
                       cJSON *status, struct grant_write *ret)
{
    cJSON *body = with_status(s, tree, kind, status);

    if (!body)
        return false;
    *ret = (struct grant_write){.method = "PUT",
                                .path = path,
                                .version = json_str_at(tree, "metadata.resourceVersion"),
                                .value = RATIONAL_ZERO,
                                .body = body,
                                .kind = kind,
                                .before = tree};
    return true;
}

/* --- GPUBinding --- */

const char *const GRANT_REASONS[N_SHARE_STATES] = {
    [SHARE_READY] = "Granted",
    [SHARE_INVALID] = "Invalid",
    [SHARE_POOL_NOT_FOUND] = "PoolNotFound",
    [SHARE_POOL_DEDICATED] = "PoolDedicated",
    [SHARE_ALREADY_BOUND] = "AlreadyBound",
    [SHARE_OVERCOMMITTED] = "Overcommitted",
};

static const struct grant_pool *pool_of(const struct grant_state *s, const struct grant_row *r)
{
    for (size_t i = 0; i < s->n_pools; i++)
        if (str_eq(s->pools[i].name, r->pool))
            return &s->pools[i];
    return NULL;
}

/* Of this binding alone: the tenant reads it. */
static struct str message_of(struct grant_state *s, const struct grant_row *r,
                             enum share_state state)
{
    const struct grant_pool *p = pool_of(s, r);

    switch (state) {
    case SHARE_INVALID:
        return r->why.n
                   ? r->why
                   : STR("its fractions of GPUs have no common unit with those of the pool and "
                         "of older bindings");
    case SHARE_POOL_NOT_FOUND:
        return p ? arena_printf(s->a, "GPUPool \"%.*s\" is invalid", STR_F(r->pool))
                 : arena_printf(s->a, "no GPUPool is called \"%.*s\"", STR_F(r->pool));
    case SHARE_POOL_DEDICATED:
        return arena_printf(s->a,
                            "GPUPool \"%.*s\" is dedicated to another namespace than \"%.*s\"",
                            STR_F(r->pool), STR_F(r->tenant->ns));
    case SHARE_ALREADY_BOUND:
        return arena_printf(s->a, "GPUPool \"%.*s\" is bound by another GPUBinding of \"%.*s\"",
                            STR_F(r->pool), STR_F(r->tenant->ns));
    case SHARE_OVERCOMMITTED:
        return arena_printf(s->a,
                            "guarantee %.*s of \"%.*s\" does not fit into GPUPool \"%.*s\" beside "
                            "the guarantees of older bindings",
                            STR_F(text_of(s, r->guarantee)), STR_F(r->tenant->ns), STR_F(r->pool));
    default:
        return STR("");
    }
}

/* Is there another binding that may have more than its pods hold on nodes? */
static bool is_claimed(const struct grant_state *s, size_t i)
{
    for (size_t k = 0; k < s->n_rows; k++) {
        const struct share_binding *b = &s->bindings[k];

        if (k != i && b->pool == s->bindings[i].pool && b->state == SHARE_READY &&
            rational_cmp(b->target, b->placed) > 0)
            return true;
    }
    return false;
}

/* What is to be ended, and from when on: a notice that was given stays, unless there is more to end
 * and it has passed. Never of a guarantee that counts, nor what no other binding may have unless
 * the budget is exceeded, but where the pool is drained: then all of it, by the drain's own
 * notice. NULL: nothing is. */
static cJSON *reclaim_of(struct grant_state *s, size_t i, struct rational grant)
{
    const struct grant_row *r = &s->rows[i];
    const struct share_binding *b = &s->bindings[i];
    const struct grant_pool *p = grant_pool_at(s, b->pool);
    bool drained = p && p->phase.door == SHARE_DRAINED;
    bool taken = drained || grant_is_bounded(r, BUDGET_QUEUE);
    struct rational before, more, keeps = grant;
    int64_t at = object_time_s(r->tree, "status.reclaim.notBefore");

    if (grant_is_claimed(s, b->pool)) /* no pod is ended */
        return NULL;
    if (!drained && b->state == SHARE_READY && rational_cmp(r->guarantee, keeps) > 0)
        keeps = r->guarantee;
    if (!rational_sub(b->holds, keeps, &more) || more.num <= 0 || (!taken && !is_claimed(s, i)))
        return NULL;
    if (drained)
        at = p->phase.not_before_s;
    else if (!at || (at < s->now_s &&
                     (!rational_parse(json_str_at(r->tree, "status.reclaim.gpus"), &before) ||
                      rational_cmp(more, before) > 0)))
        at = s->now_s + s->grace_s;
    return json_object(s->a, JSON("gpus", text_of(s, more)),
                       JSON("notBefore", time_format_s(s->a, at)));
}

static cJSON *pool_copy(struct grant_state *s, const struct grant_row *r)
{
    const struct grant_pool *p = pool_of(s, r);

    cJSON *item = p && p->index != SHARE_NO_POOL ? json_copy(s->a, p->item) : NULL;

    grant_metering(s, p, item);
    if (item && grant_is_queued(s, p->index)) /* its own, by its name */
        json_set_str(s->a, json_get(item, "scheduler"), "queueTemplate", grant_queue_name(s, r));
    return item;
}

static struct str quota_path(struct grant_state *s, const struct grant_tenant *t)
{
    return arena_printf(s->a, "/api/v1/namespaces/%.*s/resourcequotas/" GRANT_QUOTA, STR_F(t->ns));
}

static struct str status_path(struct grant_state *s, const struct grant_row *r)
{
    return arena_printf(s->a, GRANT_GROUP "/namespaces/%.*s/gpubindings/%.*s/status",
                        STR_F(r->tenant->ns), STR_F(r->name));
}

/* What the host has against the ResourceQuota of a binding: of its pool, or as a whole. */
static struct str quota_refusal(struct grant_state *s, const struct grant_row *r)
{
    struct str path = s->refused ? quota_path(s, r->tenant) : STR(""), why;

    if (!path.n)
        return STR("");
    why = s->refused(s->ctx, path, r->pool);
    return why.n ? why : s->refused(s->ctx, path, STR(""));
}

/* Is the bound of a pool of parts kept, which is a Queue? Of others it is a ResourceQuota, of which
 * only a refusal is said. */
static void bounded_condition(struct grant_state *s, const struct grant_row *r, cJSON *object)
{
    struct str message;
    const char *trouble;

    if (!grant_is_queued(s, r->index)) {
        message = quota_refusal(s, r);
        if (message.n)
            set_condition(s, object, "Bounded", false, "QuotaRefused", message);
        else
            condition_remove(object, "Bounded");
        return;
    }
    trouble = grant_queue_trouble(s, r, &message);
    set_condition(s, object, "Bounded", !trouble, trouble ? trouble : "Queue", message);
}

/* Of claims, what is beyond the grant is said, and no more. */
static void reclaim_condition(struct grant_state *s, size_t i, struct rational grant, bool reclaims,
                              cJSON *object)
{
    const struct share_binding *b = &s->bindings[i];
    struct rational more =
        grant_is_claimed(s, b->pool) ? grant_without(b->holds, grant) : RATIONAL_ZERO;

    set_condition(s, object, "Reclaiming", reclaims,
                  reclaims   ? "BeyondGrant"
                  : more.num ? "ClaimsBeyondGrant"
                             : "WithinGrant",
                  reclaims   ? STR("pods are ended after reclaim.notBefore")
                  : more.num ? arena_printf(s->a,
                                            "claims hold %.*s GPUs beyond the grant until they are "
                                            "deleted: they are not taken back",
                                            STR_F(text_of(s, more)))
                             : STR(""));
}

/* Why a pool is not as usual, in words for tenants. */
static struct str reason_of(struct grant_state *s, const struct grant_pool *p)
{
    const struct grant_phase *phase = &p->phase;

    if (phase->maintenance >= GRANT_CORDONED && p->facts.wants.reason.n)
        return p->facts.wants.reason;
    if (phase->conversion == GRANT_CONVERTS || phase->switches)
        return arena_printf(s->a, "conversion %.*s", STR_F(p->change));
    if (phase->conversion == GRANT_WAITS_FOR_NODES)
        return STR("conversion: its nodes are not ready yet");
    return phase->maintenance >= GRANT_CORDONED ? STR("maintenance") : STR("");
}

/* Of one tenant alone, the pool takes no new pods. */
static cJSON *stopped_by_budget(struct grant_state *s, const struct grant_row *r)
{
    return json_object(
        s->a, JSON("state", "cordon"),
        JSON("reason", arena_printf(s->a, "%.*s is spent", STR_F(grant_budget_name(s, r)))),
        JSON("until", time_format_s(s->a, r->spent.next_s)));
}

/* What the tenant's process and users are to know. NULL: the pool is as usual. */
static cJSON *maintenance_of(struct grant_state *s, const struct grant_row *r,
                             const struct share_binding *b)
{
    static const char *const states[] = {"none", "cordon", "drain"};
    const struct grant_pool *p = b->state == SHARE_READY ? grant_pool_at(s, b->pool) : NULL;
    const struct config_maintenance *wants = p ? &p->facts.wants : NULL;
    struct str reason = p ? reason_of(s, p) : STR("");
    bool ours = p && p->phase.maintenance >= GRANT_CORDONED;
    int64_t grace = ours && wants->grace_s ? wants->grace_s : s->grace_s;

    if (p && p->phase.door == SHARE_OPEN && b->closed)
        return stopped_by_budget(s, r);
    if (!reason.n)
        return NULL;
    return json_object(s->a, JSON("state", states[p->phase.door]), JSON("reason", reason),
                       JSON_NONEMPTY("until", ours && wants->until_s
                                                  ? time_format_s(s->a, wants->until_s)
                                                  : STR("")),
                       JSON_NONEMPTY("grace", p->phase.door == SHARE_DRAINED && grace > 0
                                                  ? arena_printf(s->a, "%llds", (long long)grace)
                                                  : STR("")));
}

/* NULL: it may lend all of `lend`. */
static cJSON *pause_of(struct grant_state *s, const struct share_binding *b)
{
    if (!b->paused_until_s)
        return NULL;
    return json_object(s->a, JSON("lend", text_of(s, b->paused_lend)),
                       JSON("until", time_format_s(s->a, b->paused_until_s)));
}

static bool write_binding(struct grant_state *s, size_t i, struct grant_write *ret)
{
    const struct grant_row *r = &s->rows[i];
    const struct share_binding *b = &s->bindings[i];
    bool ready = b->state == SHARE_READY;
    struct rational grant = b->pool == SHARE_NO_POOL        ? RATIONAL_ZERO
                            : b->write == SHARE_WRITE_GRANT ? b->value
                                                            : b->grant;
    bool borrows = ready && rational_cmp(grant, r->guarantee) > 0;
    bool is_short = ready && s->shares[b->pool].short_of && rational_cmp(grant, r->guarantee) < 0;
    struct rational lent = share_lent(b, s->shares);
    cJSON *reclaim = reclaim_of(s, i, grant), *object = conditions_of(s, r->tree), *status;
    cJSON *maintenance = maintenance_of(s, r, b);
    bool closed = maintenance && s->shares[b->pool].door != SHARE_OPEN;

    set_condition(s, object, "Ready", ready,
                  closed     ? "PoolUnavailable"
                  : is_short ? "Unhealthy"
                             : GRANT_REASONS[b->state],
                  closed ? json_str_at(maintenance, "reason")
                  : is_short
                      ? STR("GPUs of the pool that are healthy are fewer than its guarantees")
                      : message_of(s, r, b->state));
    set_condition(s, object, "Borrowing", borrows, borrows ? "BeyondGuarantee" : "WithinGuarantee",
                  STR(""));
    reclaim_condition(s, i, grant, reclaim != NULL, object);
    grant_budget_conditions(s, r, object);
    bounded_condition(s, r, object);
    status = json_object(
        s->a, JSON("grant", text_of(s, grant)), JSON("pool", pool_copy(s, r)),
        JSON("reclaim", reclaim), JSON_NONEMPTY("lent", lent.num ? text_of(s, lent) : STR("")),
        JSON("lendPause", pause_of(s, b)), JSON("maintenance", maintenance),
        JSON("budget", grant_budget_status(s, r)),
        JSON("conditions", json_path(object, "status.conditions")),
        JSON_I64("observedGeneration", json_i64_at(r->tree, "metadata.generation", 0)));
    return put_status(s, r->tree, "GPUBinding", status_path(s, r), status, ret);
}

/* --- GPUPool --- */

static struct rational sum_pool(const struct grant_state *s, size_t index)
{
    struct rational sum = RATIONAL_ZERO;

    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].index == index && s->rows[i].tree &&
            !rational_add(sum, s->bindings[i].grant, &sum))
            return s->shares[index].capacity;
    return sum;
}

/* A write of a binding of the pool that the host refuses, whose tenant the administrator may read
 * of. NULL: there is none. */
static const char *refused_write(struct grant_state *s, const struct grant_pool *p,
                                 struct str *ret_why)
{
    struct str why = STR("");

    for (size_t i = 0; s->refused && p->index != SHARE_NO_POOL && i < s->n_rows; i++) {
        const struct grant_row *r = &s->rows[i];

        if (r->index != p->index)
            continue;
        if ((why = quota_refusal(s, r)).n)
            *ret_why = arena_printf(s->a,
                                    "ResourceQuota \"" GRANT_QUOTA "\" of namespace \"%.*s\": "
                                    "%.*s",
                                    STR_F(r->tenant->ns), STR_F(why));
        else if (r->tree && (why = s->refused(s->ctx, status_path(s, r), STR(""))).n)
            *ret_why = arena_printf(s->a, "status of GPUBinding \"%.*s/%.*s\": %.*s",
                                    STR_F(r->tenant->ns), STR_F(r->name), STR_F(why));
        if (why.n)
            return "WriteRefused";
    }
    return NULL;
}

/* Of two pools with one resource, what a namespace has of both is bounded together. */
static void fence_condition(struct grant_state *s, const struct grant_pool *p, cJSON *object)
{
    const struct config_pool *other =
        p->index == SHARE_NO_POOL ? NULL : grant_shares_resource(s, p->index);
    struct str why = STR("");
    const char *trouble =
        grant_is_queued(s, p->index) ? grant_queues_trouble(s, p->index, &why) : NULL;

    trouble = trouble ? trouble : refused_write(s, p, &why);
    if (grant_is_queued(s, p->index) || trouble) {
        set_condition(s, object, "Fenced", !trouble, trouble ? trouble : "OwnQueues", why);
        return;
    }
    set_condition(s, object, "Fenced", p->index != SHARE_NO_POOL && !other,
                  p->index == SHARE_NO_POOL ? "Invalid"
                  : other                   ? "SharedResource"
                                            : "OwnResources",
                  other ? arena_printf(s->a,
                                       "GPUPool \"%.*s\" has a resource of this one: a "
                                       "ResourceQuota bounds what a namespace has of both together",
                                       STR_F(other->name))
                        : STR(""));
}

/* In words of its mode. */
static struct str nothing_there(const struct grant_state *s, const struct grant_pool *p)
{
    return grant_is_claimed(s, p->index)
               ? STR("no node with the labels of nodeSelector has devices of deviceClasses in its "
                     "ResourceSlices")
               : STR("no node with GPUs has the labels of nodeSelector");
}

static void pool_conditions(struct grant_state *s, const struct grant_pool *p, cJSON *object)
{
    const struct share_pool *pool = p->index == SHARE_NO_POOL ? NULL : &s->shares[p->index];
    struct str unknown;
    bool reads = !grant_class_is_unknown(s, p->index, &unknown);
    bool serves = pool && pool->total.num && !pool->overflow && reads,
         over = pool && reads && (pool->overcommitted || pool->short_of);

    set_condition(s, object, "Ready", serves,
                  !pool || pool->overflow ? "Invalid"
                  : !reads                ? "DevicesUnknown"
                  : serves                ? "Served"
                                          : "NoNodes",
                  !pool            ? str_clip(p->why, 1000)
                  : pool->overflow ? STR("sums of its GPUs do not fit: nothing is granted anew")
                  : !reads         ? str_clip(unknown, 1000)
                  : serves         ? STR("")
                                   : nothing_there(s, p));
    set_condition(s, object, "Overcommitted", over,
                  !over                 ? "WithinCapacity"
                  : pool->overcommitted ? "Refused"
                                        : "Unhealthy",
                  !over ? STR("")
                  : pool->overcommitted
                      ? arena_printf(s->a,
                                     "the guarantee of GPUBinding %.*s does not fit beside those "
                                     "of older bindings",
                                     STR_F(p->refused))
                      : STR("healthy GPUs are fewer than the guarantees"));
}

/* "2 of 5 nodes WHAT: a, b" after what the buffer has. */
static void add_nodes(struct buf *b, const struct fleet_watch_sums *sums,
                      enum fleet_watch_state state, const char *what)
{
    size_t n = sums->states[state];

    if (n)
        buf_printf(b, "%s%zu of %zu nodes %s: %.*s", b->n ? "; " : "", n, sums->nodes, what,
                   STR_F(str_clip(sums->first[state], 400)));
}

/* Of nodes as they are, not of what is granted: one that is cordoned is meant to be. */
static void node_conditions(struct grant_state *s, const struct grant_pool *p, cJSON *object)
{
    const struct fleet_watch_sums *sums =
        p->index == SHARE_NO_POOL || !s->watched ? NULL : &s->watched[p->index];
    struct buf faults = BUF_INIT(0), open = BUF_INIT(0);

    if (!sums)
        return;
    add_nodes(&faults, sums, FLEET_WATCH_DOWN, "are not Ready");
    add_nodes(&faults, sums, FLEET_WATCH_UNHEALTHY, "are unhealthy");
    add_nodes(&open, sums, FLEET_WATCH_UNTAINTED, "have no taint, so that any pod can land there");
    set_condition(s, object, "NodesHealthy", !faults.n,
                  !faults.n                        ? "AllHealthy"
                  : sums->states[FLEET_WATCH_DOWN] ? "NodesDown"
                                                   : "Unhealthy",
                  arena_str(s->a, buf_str(&faults)));
    set_condition(s, object, "Untainted", open.n > 0, open.n ? "NoTaint" : "Tainted",
                  arena_str(s->a, buf_str(&open)));
    set_condition(s, object, "Misused", sums->misused > 0,
                  sums->misused ? "PodsWithoutGPUs" : "NoneFound",
                  sums->misused ? STR("pods that hold no GPUs run on nodes of the pool") : STR(""));
    buf_fini(&faults);
    buf_fini(&open);
}

#define MOST_NAMED 3

/* ", 4 by namespace "a", whose GPUBinding was deleted": no process has to end its pods. */
static void add_unbound(struct grant_state *s, const struct grant_pool *p, struct buf *b)
{
    struct rational more = RATIONAL_ZERO;
    size_t n = 0;

    for (size_t i = 0; i < s->n_rows; i++) {
        const struct grant_row *r = &s->rows[i];
        struct rational holds = s->bindings[i].holds;

        if (r->index != p->index || r->tree || !holds.num)
            continue;
        if (n++ < MOST_NAMED)
            buf_printf(b, "%s %.*s by namespace \"%.*s\"", n > 1 ? " and" : ",",
                       STR_F(text_of(s, holds)), STR_F(r->tenant->ns));
        else
            rational_add_most(&more, holds);
    }
    if (n > MOST_NAMED)
        buf_printf(b, " and %.*s by %zu more", STR_F(text_of(s, more)), n - MOST_NAMED);
    if (n)
        buf_printf(b, ", whose GPUBinding was deleted: %s, or bind it again",
                   grant_is_claimed(s, p->index) ? "delete its claims" : "end its pods");
}

/* "4 GPUs of 2 bindings are still held" */
static struct str still_held(struct grant_state *s, const struct grant_pool *p)
{
    const struct grant_sums *sums = &s->sums[p->index];
    struct rational sum = RATIONAL_ZERO;
    struct buf b = BUF_INIT(0);
    struct str text;
    size_t n = 0;

    for (size_t i = 0; i < s->n_rows; i++)
        if (s->bindings[i].pool == p->index && s->bindings[i].holds.num) {
            rational_add_most(&sum, s->bindings[i].holds);
            n++;
        }
    buf_printf(&b, "%.*s GPUs of %zu bindings are held", STR_F(text_of(s, sum)), n);
    add_unbound(s, p, &b);
    if (sums->foreign.num)
        buf_printf(&b, ", and %.*s by %s, such as \"%.*s\"", STR_F(text_of(s, sums->foreign)),
                   grant_is_claimed(s, p->index) ? "claims that no GPUBinding bounds, in namespaces"
                                                 : "pods of namespaces without a GPUBinding",
                   STR_F(sums->foreign_ns));
    text = arena_str(s->a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static void accepted_condition(struct grant_state *s, const struct grant_pool *p, cJSON *object)
{
    bool is = !p->wish_why.n;

    set_condition(s, object, "Accepted", is, is ? "Accepted" : "InvalidMaintenance",
                  is ? STR("")
                     : arena_printf(s->a, "spec.maintenance counts as none: %.*s",
                                    STR_F(str_clip(p->wish_why, 800))));
}

static void maintenance_condition(struct grant_state *s, const struct grant_pool *p, cJSON *object)
{
    static const char *const reasons[] = {"Open", "Planned", "Cordoned", "Draining", "Drained"};
    const struct config_maintenance *wants = &p->facts.wants;
    const struct grant_phase *phase = &p->phase;
    bool is = phase->maintenance >= GRANT_CORDONED;
    struct str start = wants->start_s ? time_format_s(s->a, wants->start_s) : STR("");
    struct str until = wants->until_s ? time_format_s(s->a, wants->until_s) : STR("");
    struct str held = phase->maintenance == GRANT_DRAINING ? still_held(s, p) : STR("");

    if (!phase->maintenance)
        start = until = STR("");
    set_condition(s, object, "Maintenance", is,
                  is && phase->overdue ? "Overdue" : reasons[phase->maintenance],
                  arena_printf(s->a, "%.*s%s%.*s%s%.*s%s%.*s",
                               STR_F(phase->maintenance ? wants->reason : STR("")),
                               start.n ? "; from " : "", STR_F(start), until.n ? "; until " : "",
                               STR_F(until), held.n ? "; " : "", STR_F(held)));
}

static struct str unlabelled(struct grant_state *s, const struct grant_pool *p)
{
    size_t n = s->sums[p->index].n_unlabelled;

    return n ? arena_printf(s->a, "; %zu have no label " GRANT_STRATEGY, n) : STR("");
}

static void conversion_condition(struct grant_state *s, const struct grant_pool *p, cJSON *object)
{
    const struct grant_phase *phase = &p->phase;
    enum grant_conversion c = phase->conversion;
    struct str text = STR("");

    if (c == GRANT_REFUSED)
        text = arena_printf(s->a, "the spec is none, and what was before it stays in force: %.*s",
                            STR_F(str_clip(p->next_why, 800)));
    else if (c == GRANT_CONVERTS)
        text = arena_printf(s->a, "%.*s: what was before it is in force until it is drained; %.*s",
                            STR_F(p->change), STR_F(still_held(s, p)));
    else if (c == GRANT_WAITS_FOR_NODES && phase->switches)
        text = arena_printf(s->a, "%.*s: its nodes are to be converted", STR_F(p->change));
    else if (c == GRANT_WAITS_FOR_NODES)
        text = arena_printf(s->a, "%zu of %zu nodes do not have its devices yet%.*s",
                            p->facts.changing, p->facts.nodes, STR_F(unlabelled(s, p)));
    set_condition(s, object, GRANT_CONVERTING,
                  c >= GRANT_CONVERTS ||
                      (c == GRANT_REFUSED && p->facts.was_changing && p->facts.changing),
                  c == GRANT_REFUSED           ? "Refused"
                  : c == GRANT_CONVERTS        ? GRANT_DRAINS
                  : c == GRANT_WAITS_FOR_NODES ? "WaitingForNodes"
                                               : "AsSpecified",
                  text);
}

/* What the next turn, or another process, must know. */
static cJSON *memory_of(struct grant_state *s, const struct grant_pool *p)
{
    return p->index == SHARE_NO_POOL ? json_copy(s->a, json_path(p->tree, "status.inForce"))
                                     : json_copy(s->a, p->phase.switches ? p->next : p->item);
}

/* Of no node it is forgotten before all of them show what is in force. */
static struct str converts_from(const struct grant_pool *p)
{
    if (p->phase.switches)
        return p->mixed;
    return p->index != SHARE_NO_POOL && p->facts.nodes && !p->facts.changing ? STR("") : p->before;
}

static bool write_pool(struct grant_state *s, const struct grant_pool *p, struct grant_write *ret)
{
    struct rational zero = RATIONAL_ZERO, granted = RATIONAL_ZERO, left = RATIONAL_ZERO;
    const struct share_pool *pool = p->index == SHARE_NO_POOL ? NULL : &s->shares[p->index];
    cJSON *object = conditions_of(s, p->tree), *status;
    struct str since = p->phase.since_s ? time_format_s(s->a, p->phase.since_s) : STR(""), mode;

    mode = STR("");
    if (pool) {
        granted = sum_pool(s, p->index);
        (void)rational_sub(pool->serving, granted, &left);
    }
    pool_conditions(s, p, object);
    fence_condition(s, p, object);
    node_conditions(s, p, object);
    if (pool) {
        accepted_condition(s, p, object);
        maintenance_condition(s, p, object);
        conversion_condition(s, p, object);
        mode = config_mode_name(s->configs[p->index].mode);
    }
    status = json_object(
        s->a, JSON("capacity", text_of(s, pool ? pool->healthy : zero)),
        JSON("guaranteed", text_of(s, pool ? pool->guaranteed : zero)),
        JSON("granted", text_of(s, granted)), JSON("free", text_of(s, left)),
        JSON_NONEMPTY("mode", mode), JSON("inForce", memory_of(s, p)),
        JSON_NONEMPTY("convertsFrom", converts_from(p)), JSON_NONEMPTY("drainSince", since),
        JSON("conditions", json_path(object, "status.conditions")),
        JSON_I64("observedGeneration", json_i64_at(p->tree, "metadata.generation", 0)));
    return put_status(s, p->tree, "GPUPool",
                      arena_printf(s->a, GRANT_GROUP "/gpupools/%.*s/status", STR_F(p->name)),
                      status, ret);
}

/* --- ResourceQuota --- */

/* floor(gpus / each) */
static int64_t units_in(struct rational gpus, struct rational each)
{
    __int128 units = (__int128)gpus.num * each.den / ((__int128)gpus.den * each.num);

    return gpus.num <= 0 ? 0 : units > INT64_MAX ? INT64_MAX : (int64_t)units;
}

/* A sum that does not fit stays at what did: it bounds more. */
static void add_key(struct grant_state *s, cJSON *units, struct str key, int64_t more)
{
    int64_t have = 0, sum;

    (void)json_i64(json_get_str(units, key), &have);
    if (__builtin_add_overflow(have, more, &sum))
        sum = have;
    json_set_i64(s->a, units, arena_cstr(s->a, key), sum);
}

/* Beside the compute of shares, which is the pool's resource: their memory, and how many there are.
 * A container has one GPU, or the memory, which no quota multiplies by the GPUs, would bound
 * nothing. */
static void add_shares(struct grant_state *s, cJSON *units, const struct config_pool *pool,
                       struct rational gpus)
{
    const struct vgpu_system *system = vgpu_system(pool->mode);

    if (!system)
        return;
    add_key(s, units, arena_printf(s->a, "requests.%s", system->number),
            units_in(gpus, (struct rational){1, VGPU_WHOLE}));
    add_key(s, units, arena_printf(s->a, "requests.%s", system->memory),
            units_in(gpus, (struct rational){1, pool->gpu_memory_mib}));
}

static void add_units(struct grant_state *s, cJSON *units, size_t pool, struct rational gpus)
{
    for (size_t i = 0; i < s->configs[pool].n_resources; i++) {
        const struct pool_resource *r = &s->configs[pool].resources[i];

        if (r->gpu_eq.num)
            add_key(s, units, grant_quota_key(s, pool, r), units_in(gpus, r->gpu_eq));
    }
    add_shares(s, units, &s->configs[pool], gpus);
}

/* Has it charged no more than these units, of what is lowered? What is not may be charged beyond
 * its bound, by pods that are older than it. One that was never bounded has no charge yet. */
static bool has_charged_less(const cJSON *quota, const cJSON *units, const cJSON *before)
{
    json_each(one, units)
    {
        const cJSON *used = json_get_str(json_path(quota, "status.used"), json_key(one));
        struct quantity q;
        int64_t most = 0, was = 0;

        (void)json_i64(one, &most);
        (void)json_i64(json_get_str(before, json_key(one)), &was);
        if (most >= was)
            continue;
        if (json_get_str(json_path(quota, "spec.hard"), json_key(one)) && !used)
            return false;
        if (used && quantity_parse(json_str(used), &q) && quantity_units(q) > most)
            return false;
    }
    return true;
}

struct quota_plan {
    cJSON *units, *record;
    struct str pool; /* the one that changes; or empty */
    struct rational value;
    bool raises;
};

/* Of a pool that does not exist now, or is invalid: its part stays as it is. */
static bool keeps_unknown(struct grant_state *s, const struct grant_tenant *t, cJSON *record)
{
    struct rational gpus;
    cJSON *had;
    bool any = false;

    if (!t->quota || json_parse(s->a, meta_annotation(t->quota, GRANT_ANNOTATION), &had, NULL))
        return false;
    json_each(one, had)
    {
        bool known = false;

        for (size_t i = 0; i < s->n_configs && !known; i++)
            known = str_eq(s->configs[i].name, json_key(one));
        if (known || !rational_parse(json_str(one), &gpus) || !gpus.num)
            continue;
        json_set_str(s->a, record, one->string, json_str(one));
        any = true;
    }
    return any;
}

/* What was bounded stays bounded: by what other pools make of it, or 0. */
static void begin_units(struct grant_state *s, const struct grant_tenant *t, struct quota_plan *p)
{
    bool unknown = keeps_unknown(s, t, p->record);
    cJSON *known = json_new_object(s->a);

    for (size_t i = 0; i < s->n_configs && unknown; i++)
        if (!grant_is_queued(s, i))
            add_units(s, known, i, grant_quota_of(s, t, i));
    json_each(one, json_path(t->quota, "spec.hard"))
    {
        int64_t of_known = 0, left;
        struct quantity q;

        (void)json_i64(json_get_str(known, json_key(one)), &of_known);
        left = unknown && quantity_parse(json_str(one), &q) ? quantity_units(q) - of_known : 0;
        json_set_i64(s->a, p->units, one->string, left > 0 ? left : 0);
    }
}

/* Of a pool of parts pods take whole GPUs past its Queue, by another scheduler: it grants none. */
static void bound_whole(struct grant_state *s, cJSON *units)
{
    if (!json_get(units, "requests.nvidia.com/gpu"))
        json_set_i64(s->a, units, "requests.nvidia.com/gpu", 0);
}

/* The quota of a tenant with one binding changed: of a namespace, one at a time. Of a pool that it
 * has no part of it bounds the resources as well, to 0: nothing else does. */
static void plan_quota(struct grant_state *s, const struct grant_tenant *t, size_t changed,
                       struct quota_plan *p)
{
    *p = (struct quota_plan){.units = json_new_object(s->a), .record = json_new_object(s->a)};
    begin_units(s, t, p);
    for (size_t i = 0; i < s->n_configs; i++) {
        struct rational gpus = grant_quota_of(s, t, i);

        if (grant_is_queued(s, i)) {
            bound_whole(s, p->units);
            continue;
        }
        if (changed < s->n_rows && s->rows[changed].index == i) {
            p->pool = s->configs[i].name;
            p->value = s->bindings[changed].value;
            p->raises = rational_cmp(p->value, gpus) > 0;
            gpus = p->value;
        }
        add_units(s, p->units, i, gpus);
        if (gpus.num || p->pool.p == s->configs[i].name.p)
            json_set_str(s->a, p->record, arena_cstr(s->a, s->configs[i].name), text_of(s, gpus));
    }
}

static cJSON *quota_body(struct grant_state *s, const struct grant_tenant *t,
                         const struct quota_plan *p)
{
    cJSON *hard = json_new_object(s->a);
    struct str version = json_str_at(t->quota, "metadata.resourceVersion");

    json_each(one, p->units) json_set_str(s->a, hard, one->string, json_text(s->a, one));
    return json_object(
        s->a, JSON("apiVersion", "v1"), JSON("kind", "ResourceQuota"),
        JSON("metadata",
             json_object(s->a, JSON("name", GRANT_QUOTA), JSON("namespace", t->ns),
                         JSON_NONEMPTY("resourceVersion", version),
                         JSON("labels", json_object(s->a, JSON("app.kubernetes.io/managed-by",
                                                               "sublet-fleet"))),
                         JSON("annotations", json_object(s->a, JSON(GRANT_ANNOTATION,
                                                                    json_text(s->a, p->record)))))),
        JSON("spec", json_object(s->a, JSON("hard", hard))));
}

static void put_quota(struct grant_state *s, const struct grant_tenant *t,
                      const struct quota_plan *p, struct grant_write *ret)
{
    struct str collection =
        arena_printf(s->a, "/api/v1/namespaces/%.*s/resourcequotas", STR_F(t->ns));

    *ret = (struct grant_write){.method = t->quota ? "PUT" : "POST",
                                .path = quota_path(s, t),
                                .collection = t->quota ? STR("") : collection,
                                .version = json_str_at(t->quota, "metadata.resourceVersion"),
                                .part = p->pool,
                                .pool = p->raises ? p->pool : STR(""),
                                .value = p->raises ? p->value : RATIONAL_ZERO,
                                .body = quota_body(s, t, p)};
}

static bool write_quota(struct grant_state *s, size_t i, struct grant_write *ret)
{
    const struct grant_tenant *t = s->rows[i].tenant;
    struct quota_plan now, p;

    plan_quota(s, t, SIZE_MAX, &now);
    plan_quota(s, t, i, &p);
    if (!p.raises && !has_charged_less(t->quota, p.units, now.units))
        return false;
    put_quota(s, t, &p, ret);
    return true;
}

/* The host writes 1000 as 1k. */
static bool is_bound(const cJSON *quota, const cJSON *units)
{
    const cJSON *hard = json_path(quota, "spec.hard");

    json_each(one, units)
    {
        struct quantity q;
        int64_t n = 0;

        (void)json_i64(one, &n);
        if (!quantity_parse(json_str(json_get_str(hard, json_key(one))), &q) ||
            quantity_units(q) != n)
            return false;
    }
    return json_count(hard) == json_count(units);
}

/* Another hand changed it, or there is another pool: it bounds again what it is to. The first
 * binding of a namespace makes it, though nothing is granted. */
static bool repair_quota(struct grant_state *s, size_t i, struct grant_write *ret)
{
    const struct grant_tenant *t = s->rows[i].tenant;
    struct quota_plan p;

    if (t->quota ? !meta_annotation(t->quota, GRANT_ANNOTATION).n : !s->rows[i].tree)
        return false;
    for (size_t k = 0; k < i; k++)
        if (s->rows[k].tenant == t)
            return false;
    plan_quota(s, t, SIZE_MAX, &p);
    if (is_bound(t->quota, p.units))
        return false;
    put_quota(s, t, &p, ret);
    return true;
}

/* --- the list --- */

/* Nothing of it is written: its sums do not fit, or what is in force is not on record, so that a
 * change of its devices would take effect without a drain. */
static bool is_held_back(const struct grant_state *s, size_t pool)
{
    const struct grant_pool *p = grant_pool_at(s, pool);
    struct str unused;

    return p && (s->shares[pool].overflow || p->unrecorded ||
                 (grant_is_queued(s, pool) && !s->queues_known) ||
                 grant_class_is_unknown(s, pool, &unused));
}

/* The writes of a row, in three places of the list. */
static bool write_row(struct grant_state *s, size_t row, size_t place, struct grant_write *ret)
{
    const struct grant_pool *p = grant_pool_at(s, s->rows[row].index);
    bool queued = grant_is_queued(s, s->rows[row].index);

    if (is_held_back(s, s->rows[row].index)) /* what is bounded stays so, of its other pools too */
        return place == 0 && !p->unrecorded && repair_quota(s, row, ret);
    if (place == 1)
        return queued && grant_queue_write(s, row, ret);
    if (place == 2)
        return s->rows[row].tree && write_binding(s, row, ret);
    if (s->bindings[row].write == SHARE_WRITE_QUOTA && !queued)
        return write_quota(s, row, ret);
    return repair_quota(s, row, ret);
}

bool grant_next_write(struct grant_state *s, size_t *at, struct grant_write *ret)
{
    const size_t pools = 3 * s->n_rows, parents = pools + s->n_pools;
    const size_t queues = parents + s->n_configs;

    while (*at < queues + s->n_queues) {
        size_t i = (*at)++;
        bool writes;

        if (i < pools)
            writes = write_row(s, i % s->n_rows, i / s->n_rows, ret);
        else if (i < parents)
            writes = write_pool(s, &s->pools[i - pools], ret);
        else if (i < queues)
            writes = !is_held_back(s, i - parents) && grant_parent_write(s, i - parents, ret);
        else
            writes = grant_queue_delete(s, i - queues, ret);
        if (writes)
            return true;
    }
    return false;
}
