/* SPDX-License-Identifier: Apache-2.0 */
/* What the host refuses of grants. Why a wish that differs is sent at once: a quota that may not be
 * raised may be lowered, and whoever waits for its GPUs must not wait for the pause of the raise.
 * Why the parts of a ResourceQuota are apart: writes for two pools of a namespace take turns, and
 * each would be another wish than the one that was refused last. */
#include "refusals.h"

#include <sublet/hash.h>
#include <sublet/metrics.h>

#include "grant_queue.h"

#define FIRST_PAUSE_MS 1000
#define MOST_PAUSE_MS  30000
#define MOST_WHY       500

struct refusal {
    struct map_entry by_key;
    struct str key, why; /* heap */
    uint64_t wish;
    int64_t pause_ms, until_ms;
    bool wanted;
};
struct refusals {
    struct map by_key;
    bool forgot;
};

struct refusals *fleet_refusals_new(void)
{
    return NEW(struct refusals);
}

static void drop(struct refusals *r, struct refusal *one)
{
    map_remove(&r->by_key, &one->by_key);
    mem_free(one->key.p);
    mem_free(one->why.p);
    mem_free(one);
}

static void drop_entry(void *ctx, struct map_entry *e)
{
    drop(ctx, CONTAINER(e, struct refusal, by_key));
}

struct refusals *fleet_refusals_free(struct refusals *r)
{
    if (r)
        map_each(&r->by_key, drop_entry, r);
    return mem_free(r);
}

/* No path has a blank. */
static struct refusal *find(const struct refusals *r, struct arena *a, struct str path,
                            struct str part, struct str *ret_key)
{
    struct map_entry *e;

    *ret_key = arena_printf(a, "%.*s %.*s", STR_F(path), STR_F(part));
    e = map_get(&r->by_key, *ret_key);
    return e ? CONTAINER(e, struct refusal, by_key) : NULL;
}

static struct refusal *refusal_of(const struct refusals *r, struct str path, struct str part)
{
    struct arena *a;
    struct refusal *one;
    struct str key;

    if (!map_count(&r->by_key))
        return NULL;
    a = arena_new(0);
    one = find(r, a, path, part, &key);
    arena_free(a);
    return one;
}

bool fleet_is_refusal(const struct err *err)
{
    static const struct err_kind *const others[] = {
        &ERR_UNAUTHORIZED,      &ERR_NOT_FOUND,   &ERR_CONFLICT, &ERR_ALREADY_EXISTS,
        &ERR_TOO_MANY_REQUESTS, &ERR_UNAVAILABLE, &ERR_TIMEOUT,
    };
    bool other = !err || !err->kind;

    for (size_t i = 0; i < COUNT(others) && !other; i++)
        other = err->kind == others[i];
    return !other;
}

uint64_t fleet_refusals_wish(struct arena *a, const struct grant_write *w)
{
    const cJSON *wish = w->kind ? json_path(w->body, "status.grant") : json_get(w->body, "spec");

    return str_hash(wish ? json_text(a, wish) : STR(""), hash_seed());
}

bool fleet_refusals_note(struct refusals *r, struct str path, struct str part, uint64_t wish,
                         struct str why, int64_t now_ms)
{
    struct arena *a = arena_new(0);
    struct str key;
    struct refusal *one = find(r, a, path, part, &key);
    bool first = !one;

    if (first) {
        one = NEW(struct refusal);
        one->key = mem_str(key);
        map_put(&r->by_key, &one->by_key, one->key);
    }
    arena_free(a);
    mem_free(one->why.p);
    one->why = mem_str(str_clip(why.n ? why : STR("refused"), MOST_WHY));
    one->wish = wish;
    one->wanted = true;
    one->pause_ms = first ? FIRST_PAUSE_MS : one->pause_ms * 2;
    one->pause_ms = one->pause_ms < MOST_PAUSE_MS ? one->pause_ms : MOST_PAUSE_MS;
    one->until_ms = now_ms + one->pause_ms;
    return first;
}

void fleet_refusals_taken(struct refusals *r, struct str path, struct str part)
{
    struct refusal *one = refusal_of(r, path, part);

    if (one)
        drop(r, one);
}

int64_t fleet_refusals_wait(struct refusals *r, struct str path, struct str part, uint64_t wish,
                            int64_t now_ms)
{
    struct refusal *one = refusal_of(r, path, part);

    if (!one)
        return 0;
    one->wanted = true;
    return wish == one->wish && now_ms < one->until_ms ? one->until_ms - now_ms : 0;
}

struct str fleet_refusals_why(const struct refusals *r, struct str path, struct str part)
{
    const struct refusal *one = refusal_of(r, path, part);

    return one ? one->why : STR("");
}

static void forget_unwanted(void *ctx, struct map_entry *e)
{
    struct refusal *one = CONTAINER(e, struct refusal, by_key);
    struct refusals *r = ctx;

    if (one->wanted) {
        one->wanted = false;
        return;
    }
    drop(r, one);
    r->forgot = true;
}

bool fleet_refusals_forget(struct refusals *r)
{
    r->forgot = false;
    map_each(&r->by_key, forget_unwanted, r);
    return r->forgot;
}

size_t fleet_refusals_count(const struct refusals *r)
{
    return map_count(&r->by_key);
}

/* --- metrics --- */

enum { A_QUOTA, A_BINDING, A_POOL, A_QUEUE, N_KINDS };

static const char *const KINDS[N_KINDS] = {"ResourceQuota", "GPUBinding", "GPUPool", "Queue"};

static unsigned kind_of(struct str path)
{
    if (str_has_prefix(path, STR("/api/v1/")))
        return A_QUOTA;
    if (str_has_prefix(path, STR(GRANT_QUEUES "/")))
        return A_QUEUE;
    return str_has_prefix(path, STR(GRANT_GROUP "/gpupools/")) ? A_POOL : A_BINDING;
}

struct sums {
    uint64_t of[N_KINDS];
};

static void add(void *ctx, struct map_entry *e)
{
    struct sums *sums = ctx;

    sums->of[kind_of(CONTAINER(e, struct refusal, by_key)->key)]++;
}

void fleet_refusals_metrics(const struct refusals *r, struct buf *out)
{
    struct map map = r->by_key;
    struct sums sums = {{0}};

    map_each(&map, add, &sums);
    metrics_family(out, METRIC_FLEET_REFUSED);
    for (size_t i = 0; i < N_KINDS; i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "kind", str_c(KINDS[i]));
        metrics_sample_u64(out, METRIC_FLEET_REFUSED, buf_str(&labels), sums.of[i]);
        buf_fini(&labels);
    }
}
