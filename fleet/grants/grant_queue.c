/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of KAI behind grants of parts of GPUs. Why half a hundredth is added to a limit: KAI adds
 * floats, and 28 parts of 0.07 make 1.9600000000000004 there; sums of hundredths are below the
 * limit exactly if they are at most what is granted. Must never write a Queue that is not ours, nor
 * take a limit that another hand raised for less than it lets through. */
#include "grant_queue.h"

#include <math.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/fraction.h>
#include <sublet/json_build.h>
#include <sublet/object.h>
#include <sublet/selector.h>

#define MANAGER       "sublet-fleet"
#define MANAGED       "app.kubernetes.io/managed-by"
#define MOST          ((struct rational){INT64_C(999999999), 1})
#define MOST_TEMPLATE 253

static struct rational most(struct rational a, struct rational b)
{
    return rational_cmp(a, b) > 0 ? a : b;
}

bool grant_is_queued(const struct grant_state *s, size_t pool)
{
    return pool != SHARE_NO_POOL && s->configs[pool].mode == POOL_KAI;
}

/* --- names --- */

static struct str template_of(const cJSON *item)
{
    return json_str_at(item, "scheduler.queueTemplate");
}

static size_t word_at(struct str template)
{
    const char *at =
        template.n ? memmem(template.p, template.n, GRANT_QUEUE_WORD, sizeof(GRANT_QUEUE_WORD) - 1)
                   : NULL;

    return at ? (size_t)(at - template.p) : SIZE_MAX;
}

struct str grant_queue_spec_why(const struct grant_state *s, const cJSON *item)
{
    struct str template = template_of(item);

    if (!s->keeps_queues)
        return STR("mode kai-fraction needs grants.kaiQueues of sublet fleet, which keeps a Queue "
                   "of KAI for each binding: no ResourceQuota bounds parts of GPUs");
    if (word_at(template) == SIZE_MAX || template.n > MOST_TEMPLATE)
        return STR("scheduler.queueTemplate of mode kai-fraction has " GRANT_QUEUE_WORD
                   ", such as " GRANT_QUEUE_WORD "-parts: each binding has a Queue of its own");
    return STR("");
}

static struct str by_template(const struct grant_state *s, struct str ns, size_t pool)
{
    const struct grant_pool *p = grant_pool_at(s, pool);
    struct str template = template_of(p ? p->item : NULL), name = STR("");
    size_t at;

    while ((at = word_at(template)) != SIZE_MAX) {
        name = arena_printf(s->a, "%.*s%.*s%.*s", STR_F(name), STR_F(str_sub(template, 0, at)),
                            STR_F(ns));
        template = str_from(template, at + sizeof(GRANT_QUEUE_WORD) - 1);
    }
    return arena_printf(s->a, "%.*s%.*s", STR_F(name), STR_F(template));
}

static bool is_in_parts(struct rational gpus)
{
    return FRACTION_WHOLE % gpus.den == 0;
}

struct str grant_queue_row_why(const struct grant_state *s, const struct grant_row *r)
{
    struct str name;
    const char *why;

    if (!grant_is_queued(s, r->index))
        return STR("");
    if (!is_in_parts(r->guarantee) || !is_in_parts(r->burst) || !is_in_parts(r->lend))
        return STR("guarantee, burst and lend of mode kai-fraction are hundredths of GPUs");
    name = by_template(s, r->tenant->ns, r->index);
    why = name_check_dns1123_subdomain(name);
    why = why ? why : name_check_label_value(name);
    return why ? arena_printf(s->a, "the name \"%.*s\" of its Queue: %s", STR_F(name), why)
               : STR("");
}

static struct str parent_name(const struct grant_state *s, size_t pool)
{
    return arena_printf(s->a, "sublet-%.*s", STR_F(s->configs[pool].name));
}

static struct str owner_of(const struct grant_state *s, struct str ns, size_t pool)
{
    return arena_printf(s->a, "%.*s/%.*s", STR_F(ns), STR_F(s->configs[pool].name));
}

struct str grant_queue_path(struct grant_state *s, struct str name)
{
    return arena_printf(s->a, GRANT_QUEUES "/%.*s", STR_F(name));
}

/* --- what there is --- */

static struct grant_queue *by_name(const struct grant_state *s, struct str name)
{
    struct map_entry *e = map_get(&s->queues_by_name, name);

    return e ? CONTAINER(e, struct grant_queue, by_name) : NULL;
}

/* Of several with one owner the first by name. */
static struct grant_queue *by_owner(const struct grant_state *s, struct str owner)
{
    struct map_entry *e = map_get(&s->queues_by_owner, owner);

    return e ? CONTAINER(e, struct grant_queue, by_owner) : NULL;
}

static struct grant_queue *queue_of(const struct grant_state *s, struct str ns, size_t pool)
{
    return grant_is_queued(s, pool) ? by_owner(s, owner_of(s, ns, pool)) : NULL;
}

struct str grant_queue_name(const struct grant_state *s, const struct grant_row *r)
{
    const struct grant_queue *q = queue_of(s, r->tenant->ns, r->index);

    return q ? q->name : by_template(s, r->tenant->ns, r->index);
}

struct str grant_queue_version(const struct grant_state *s, const struct grant_row *r)
{
    const struct grant_queue *q = by_name(s, grant_queue_name(s, r));

    return q ? json_str_at(q->tree, "metadata.resourceVersion") : STR("");
}

/* In thousandths: whole hundredths, rounded down, and a half more. */
static int64_t limit_milli(struct rational gpus)
{
    __int128 parts = (__int128)gpus.num * FRACTION_WHOLE / gpus.den;

    return gpus.num <= 0 || !parts ? 0 : (int64_t)parts * 10 + 5;
}

static cJSON *limit_node(struct grant_state *s, int64_t milli)
{
    return json_new_double(s->a, (double)milli / 1000);
}

/* -1, and what no sum comes near: all of the pool, and more. Absent is 0 to KAI. */
static struct rational limit_of(const cJSON *tree)
{
    const cJSON *limit = json_path(tree, "spec.resources.gpu.limit");
    double gpus = json_is_number(limit) ? limit->valuedouble : 0;

    if (!(gpus >= 0 && gpus < 1e6))
        return MOST;
    return (struct rational){(int64_t)ceil(gpus * 1000 - 1e-6), 1000};
}

static struct rational noted(const cJSON *tree, const char *key, struct str pool)
{
    struct str text = meta_annotation(tree, key);
    struct arena *a = arena_new(0);
    struct rational gpus = RATIONAL_ZERO;
    cJSON *record;

    if (pool.n && !json_parse(a, text, &record, NULL))
        text = json_str(json_get_str(record, pool));
    if (!rational_parse(text, &gpus) || gpus.num < 0 || gpus.den > 10000 ||
        rational_cmp(gpus, MOST) > 0)
        gpus = RATIONAL_ZERO;
    arena_free(a);
    return gpus;
}

static void read_bound(struct grant_state *s, struct grant_queue *q)
{
    struct str pool = str_from(q->owner, str_find(q->owner, '/') + 1);
    struct rational limit = limit_of(q->tree);
    int64_t until_us;

    q->record = noted(q->tree, GRANT_ANNOTATION, pool);
    q->limit = q->record;
    if (rational_cmp(limit, (struct rational){limit_milli(q->record), 1000}) > 0)
        q->limit = most(limit, q->record);
    q->until_s =
        time_parse(meta_annotation(q->tree, GRANT_QUEUE_UNTIL), &until_us) ? until_us / 1000000 : 0;
    if (q->until_s > s->now_s + GRANT_QUEUE_SETTLES_S) /* the clock was set back */
        q->until_s = s->now_s + GRANT_QUEUE_SETTLES_S;
    if (q->until_s <= s->now_s)
        return;
    q->from = noted(q->tree, GRANT_QUEUE_FROM, STR(""));
    if (!s->next_s || q->until_s < s->next_s)
        s->next_s = q->until_s;
}

void grant_queue_add(struct grant_state *s, const cJSON *tree)
{
    struct grant_queue *q = ARENA_NEW(s->a, struct grant_queue), *other;
    size_t slash;

    *q = (struct grant_queue){.tree = tree,
                              .name = meta_name(tree),
                              .record = RATIONAL_ZERO,
                              .limit = RATIONAL_ZERO,
                              .from = RATIONAL_ZERO};
    if (by_name(s, q->name))
        return;
    map_put(&s->queues_by_name, &q->by_name, q->name);
    ARENA_GROW(s->a, s->queues, s->n_queues, s->cap_queues);
    s->queues[s->n_queues++] = q;
    if (!str_eqc(meta_label(tree, MANAGED), MANAGER))
        return;
    q->owner = meta_annotation(tree, GRANT_QUEUE_OF);
    slash = str_find(q->owner, '/');
    if (slash >= q->owner.n) {
        q->owner = STR("");
        return;
    }
    if (slash)
        grant_state_namespace(s, str_sub(q->owner, 0, slash));
    read_bound(s, q);
    other = by_owner(s, q->owner);
    if (other && str_cmp(other->name, q->name) < 0)
        return;
    if (other)
        map_remove(&s->queues_by_owner, &other->by_owner);
    map_put(&s->queues_by_owner, &q->by_owner, q->owner);
}

void grant_queue_pod(struct grant_state *s, const struct grant_pod *pod)
{
    struct grant_queue *q = pod->queue.n ? by_name(s, pod->queue) : NULL;

    if (q)
        q->used = true;
}

struct rational grant_queue_bound(const struct grant_state *s, struct str ns, size_t pool)
{
    const struct grant_queue *q = queue_of(s, ns, pool);

    return q ? q->limit : RATIONAL_ZERO;
}

struct rational grant_queue_pending(struct grant_state *s, struct str ns, size_t pool)
{
    const struct grant_queue *q = queue_of(s, ns, pool);
    struct rational sum = q ? most(q->limit, q->from) : RATIONAL_ZERO;
    bool more = q && sum.num;

    for (size_t i = 0; q && i < s->n_queues; i++) {
        const struct grant_queue *other = s->queues[i];

        if (other == q || !str_eq(other->owner, q->owner))
            continue;
        rational_add_most(&sum, most(other->limit, other->from));
        more = true;
    }
    return more ? sum : RATIONAL_ZERO;
}

/* --- what stands against one --- */

static const char *not_ours(struct grant_state *s, struct str name, struct str *ret_message)
{
    *ret_message = arena_printf(s->a,
                                "Queue \"%.*s\" exists and belongs to another component: it stays "
                                "as it is, and nothing is granted",
                                STR_F(name));
    return "QueueNotOurs";
}

static bool is_of_another(const struct grant_state *s, struct str name, struct str owner)
{
    const struct grant_queue *q = by_name(s, name);

    return q && !str_eq(q->owner, owner);
}

static struct str refusal_of(struct grant_state *s, struct str name)
{
    return s->refused ? s->refused(s->ctx, grant_queue_path(s, name), STR("")) : STR("");
}

static const char *refused(struct grant_state *s, struct str name, struct str *ret_message)
{
    struct str why = refusal_of(s, name);

    if (!why.n)
        return NULL;
    *ret_message = arena_printf(s->a, "Queue \"%.*s\": %.*s", STR_F(name), STR_F(why));
    return "QueueRefused";
}

static const char *parent_trouble(struct grant_state *s, size_t pool, struct str *ret_message)
{
    struct str name = parent_name(s, pool);

    if (!s->queues_known) {
        *ret_message = s->queues_why.n ? s->queues_why : STR("Queues of KAI are not listed yet");
        return "QueuesUnknown";
    }
    if (is_of_another(s, name, owner_of(s, STR(""), pool)))
        return not_ours(s, name, ret_message);
    return refused(s, name, ret_message);
}

const char *grant_queues_trouble(struct grant_state *s, size_t pool, struct str *ret_message)
{
    const char *reason = parent_trouble(s, pool, ret_message);

    for (size_t i = 0; i < s->n_rows && !reason; i++)
        if (s->rows[i].index == pool)
            reason = refused(s, grant_queue_name(s, &s->rows[i]), ret_message);
    return reason;
}

const char *grant_queue_trouble(struct grant_state *s, const struct grant_row *r,
                                struct str *ret_message)
{
    struct str name = grant_queue_name(s, r), admins;
    const char *reason = NULL;

    if (is_of_another(s, name, owner_of(s, r->tenant->ns, r->index)))
        return not_ours(s, name, ret_message);
    reason = parent_trouble(s, r->index, &admins);
    reason = reason ? reason : refused(s, name, &admins);
    if (reason)
        *ret_message = STR("its Queue cannot be kept now: the GPUPool says why");
    else
        *ret_message = arena_printf(s->a, "Queue \"%.*s\"", STR_F(name));
    return reason;
}

/* --- writes --- */

static cJSON *unlimited(struct grant_state *s)
{
    return json_object(s->a, JSON_I64("quota", -1), JSON_I64("limit", -1),
                       JSON_I64("overQuotaWeight", 1));
}

static cJSON *bounded(struct grant_state *s, struct rational gpus)
{
    int64_t milli = limit_milli(gpus);

    return json_object(s->a, JSON("quota", limit_node(s, milli)),
                       JSON("limit", limit_node(s, milli)), JSON_I64("overQuotaWeight", 1));
}

/* One that there is keeps what this process does not know, and what the administrator adds. */
static cJSON *body_of(struct grant_state *s, const cJSON *tree, struct str name, struct str owner,
                      cJSON *gpu)
{
    cJSON *body = tree ? json_copy(s->a, tree) : json_new_object(s->a), *metadata, *resources;

    json_put(s->a, body, JSON("apiVersion", "scheduling.run.ai/v2"), JSON("kind", "Queue"));
    metadata = json_ensure_object(s->a, body, "metadata");
    json_set_str(s->a, metadata, "name", name);
    json_set_str(s->a, json_ensure_object(s->a, metadata, "labels"), MANAGED, STR(MANAGER));
    json_set_str(s->a, json_ensure_object(s->a, metadata, "annotations"), GRANT_QUEUE_OF, owner);
    resources = json_ensure_object(s->a, json_ensure_object(s->a, body, "spec"), "resources");
    if (!json_get(resources, "cpu"))
        json_set(s->a, resources, "cpu", unlimited(s));
    if (!json_get(resources, "memory"))
        json_set(s->a, resources, "memory", unlimited(s));
    json_set(s->a, resources, "gpu", gpu);
    return body;
}

/* The limit of before, for as long as KAI may decide by it. */
static void note_lowered(struct grant_state *s, const struct grant_queue *q, struct rational want,
                         cJSON *annotations)
{
    struct rational before = most(q->limit, q->from);

    if (rational_cmp(want, q->limit) < 0) {
        json_set_str(s->a, annotations, GRANT_QUEUE_FROM, rational_format(s->a, before));
        json_set_str(s->a, annotations, GRANT_QUEUE_UNTIL,
                     time_format_s(s->a, s->now_s + GRANT_QUEUE_SETTLES_S));
    } else if (q->until_s <= s->now_s) {
        json_remove(annotations, GRANT_QUEUE_FROM);
        json_remove(annotations, GRANT_QUEUE_UNTIL);
    }
}

static bool is_as_wanted(const struct grant_queue *q, const cJSON *spec, struct rational want)
{
    return rational_cmp(q->record, want) == 0 &&
           json_equal(json_path(q->tree, "spec.resources.gpu"), json_path(spec, "resources.gpu")) &&
           str_eq(json_str_at(q->tree, "spec.parentQueue"), json_str_at(spec, "parentQueue"));
}

static struct str record_of(struct grant_state *s, size_t pool, struct rational gpus)
{
    cJSON *record = json_new_object(s->a);

    json_set_str(s->a, record, arena_cstr(s->a, s->configs[pool].name),
                 rational_format(s->a, gpus));
    return json_text(s->a, record);
}

static void put_queue(struct grant_state *s, const struct grant_queue *q, struct str name,
                      cJSON *body, struct grant_write *ret)
{
    *ret =
        (struct grant_write){.method = q ? "PUT" : "POST",
                             .path = grant_queue_path(s, name),
                             .collection = q ? STR("") : STR(GRANT_QUEUES),
                             .version = json_str_at(q ? q->tree : NULL, "metadata.resourceVersion"),
                             .value = RATIONAL_ZERO,
                             .body = body};
}

bool grant_queue_write(struct grant_state *s, size_t row, struct grant_write *ret)
{
    const struct grant_row *r = &s->rows[row];
    const struct share_binding *b = &s->bindings[row];
    struct str owner = owner_of(s, r->tenant->ns, r->index), unused;
    const struct grant_queue *q = by_owner(s, owner);
    struct rational had = q ? q->limit : RATIONAL_ZERO;
    struct rational want = b->write == SHARE_WRITE_QUOTA ? b->value : q ? q->record : had;
    bool raises = rational_cmp(want, had) > 0;
    struct str parent = parent_name(s, r->index), name = grant_queue_name(s, r);
    cJSON *body, *annotations;

    if (!grant_row_carries(s, row) || (!q && (!raises || by_name(s, name))) ||
        (raises && (!by_name(s, parent) || parent_trouble(s, r->index, &unused) != NULL)))
        return false;
    body = body_of(s, q ? q->tree : NULL, name, owner, bounded(s, want));
    json_set_str(s->a, json_get(body, "spec"), "parentQueue", parent);
    if (q && is_as_wanted(q, json_get(body, "spec"), want))
        return false;
    annotations = json_path(body, "metadata.annotations");
    json_set_str(s->a, annotations, GRANT_ANNOTATION, record_of(s, r->index, want));
    if (q)
        note_lowered(s, q, want, annotations);
    put_queue(s, q, name, body, ret);
    ret->pool = raises ? s->configs[r->index].name : STR("");
    ret->value = raises ? want : RATIONAL_ZERO;
    return true;
}

/* It is made, and no more: its limits and its own parent are the administrator's. */
bool grant_parent_write(struct grant_state *s, size_t pool, struct grant_write *ret)
{
    struct str name;
    bool any = false;

    if (!grant_is_queued(s, pool) || !s->queues_known)
        return false;
    for (size_t i = 0; i < s->n_rows && !any; i++)
        any = s->rows[i].tree && s->rows[i].index == pool;
    name = parent_name(s, pool);
    if (!any || by_name(s, name))
        return false;
    put_queue(s, NULL, name, body_of(s, NULL, name, owner_of(s, STR(""), pool), unlimited(s)), ret);
    return true;
}

/* Does a GPUPool of this name exist that is, or may be, of the mode? */
static bool has_pool(const struct grant_state *s, struct str pool)
{
    for (size_t i = 0; i < s->n_pools; i++)
        if (str_eq(s->pools[i].name, pool))
            return s->pools[i].index == SHARE_NO_POOL || grant_is_queued(s, s->pools[i].index);
    return false;
}

static bool has_binding(const struct grant_state *s, struct str ns, struct str pool)
{
    for (size_t i = 0; i < s->n_rows; i++)
        if (s->rows[i].tree && str_eq(s->rows[i].pool, pool) && str_eq(s->rows[i].tenant->ns, ns))
            return true;
    return false;
}

static bool has_children(const struct grant_state *s, struct str name)
{
    for (size_t i = 0; i < s->n_queues; i++)
        if (str_eq(json_str_at(s->queues[i]->tree, "spec.parentQueue"), name))
            return true;
    return false;
}

/* Absence from a list that is current proves that a binding or pool was deleted: grants.c takes no
 * turn without such lists. Of a pool that exists only one that lets nothing through. */
static bool is_left_over(const struct grant_state *s, const struct grant_queue *q)
{
    size_t slash = str_find(q->owner, '/');
    struct str ns = str_sub(q->owner, 0, slash), pool = str_from(q->owner, slash + 1);

    if (q->used || q->until_s > s->now_s)
        return false;
    if (!ns.n)
        return !has_pool(s, pool) && !has_children(s, q->name);
    if (!has_pool(s, pool) || by_owner(s, q->owner) != q)
        return true;
    return !has_binding(s, ns, pool) && !q->limit.num;
}

bool grant_queue_delete(struct grant_state *s, size_t k, struct grant_write *ret)
{
    const struct grant_queue *q = s->queues[k];

    if (!s->queues_known || !q->owner.n || object_is_terminating(q->tree) || !is_left_over(s, q))
        return false;
    put_queue(
        s, q, q->name,
        json_object(s->a, JSON("apiVersion", "v1"), JSON("kind", "DeleteOptions"),
                    JSON("preconditions",
                         json_object(s->a, JSON("uid", meta_uid(q->tree)),
                                     JSON("resourceVersion",
                                          json_str_at(q->tree, "metadata.resourceVersion"))))),
        ret);
    ret->method = "DELETE";
    return true;
}
