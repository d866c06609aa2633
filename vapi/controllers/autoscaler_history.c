/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a target may follow its metrics: bounds, policies per period, and the recommendations of
 * the stabilization windows. Must never keep more than the longest window needs. Source:
 * pkg/controller/podautoscaler/horizontal.go of Kubernetes 1.36. */
#include "autoscaler.h"

#include <math.h>

#include <sublet/hash.h>

#define DOWNSCALE_WINDOW_S 300
#define LONGEST_WINDOW_S   3600
#define MOST_SAMPLES       512
#define UP_FACTOR          2
#define UP_LEAST           4

struct change {
    int64_t at_s, replicas; /* a recommendation, or by how many the target changed */
};
struct changes {
    struct change *items;
    size_t n, cap;
};
struct hpa_history {
    UT_hash_handle hh;
    char *key;
    struct changes recommended, up, down;
};
struct hpa_histories {
    struct hpa_history *map;
};

/* --- life --- */

struct hpa_histories *hpa_histories_new(void)
{
    return NEW(struct hpa_histories);
}

static void history_free(struct hpa_histories *all, struct hpa_history *h)
{
    HASH_DEL(all->map, h);
    mem_free(h->recommended.items);
    mem_free(h->up.items);
    mem_free(h->down.items);
    mem_free(h->key);
    mem_free(h);
}

struct hpa_histories *hpa_histories_free(struct hpa_histories *all)
{
    struct hpa_history *h, *next;

    HASH_ITER(hh, all->map, h, next)
    history_free(all, h);
    return mem_free(all);
}

static struct hpa_history *find(struct hpa_histories *all, struct str key)
{
    struct hpa_history *h = NULL;

    HASH_FIND(hh, all->map, key.p, (unsigned)key.n, h);
    return h;
}

void hpa_history_forget(struct hpa_histories *all, struct str key)
{
    struct hpa_history *h = find(all, key);

    if (h)
        history_free(all, h);
}

static void add(struct changes *c, int64_t at_s, int64_t replicas)
{
    size_t old = 0;

    while (old < c->n &&
           (c->items[old].at_s < at_s - LONGEST_WINDOW_S || c->n - old >= MOST_SAMPLES))
        old++;
    for (size_t i = old; i < c->n; i++)
        c->items[i - old] = c->items[i];
    c->n -= old;
    GROW(c->items, c->n, c->cap);
    c->items[c->n++] = (struct change){at_s, replicas};
}

struct hpa_history *hpa_history_get(struct hpa_histories *all, struct str key, int64_t current,
                                    int64_t now_s)
{
    struct hpa_history *h = find(all, key);

    if (h)
        return h;
    h = NEW(struct hpa_history);
    h->key = mem_strdup(key);
    HASH_ADD_KEYPTR(hh, all->map, h->key, (unsigned)key.n, h);
    add(&h->recommended, now_s, current);
    return h;
}

/* --- recommendations --- */

static int64_t lowest_since(const struct changes *c, int64_t since_s, int64_t value)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].at_s > since_s && c->items[i].replicas < value)
            value = c->items[i].replicas;
    return value;
}

static int64_t highest_since(const struct changes *c, int64_t since_s, int64_t value)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].at_s > since_s && c->items[i].replicas > value)
            value = c->items[i].replicas;
    return value;
}

static void say_able(struct hpa_limits *ret, bool stabilized, bool up)
{
    ret->able_reason = !stabilized ? "ReadyForNewScale"
                       : up        ? "ScaleUpStabilized"
                                   : "ScaleDownStabilized";
    ret->able_message = !stabilized ? "recommended size matches current size"
                        : up ? "recent recommendations were lower than current one, applying "
                               "the lowest recent recommendation"
                             : "recent recommendations were higher than current one, applying "
                               "the highest recent recommendation";
}

static int64_t stabilize(struct hpa_history *h, const cJSON *behavior, int64_t current,
                         int64_t wanted, int64_t now_s, struct hpa_limits *ret)
{
    int64_t up_s = json_i64_at(behavior, "scaleUp.stabilizationWindowSeconds", 0);
    int64_t down_s =
        json_i64_at(behavior, "scaleDown.stabilizationWindowSeconds", DOWNSCALE_WINDOW_S);
    int64_t low = lowest_since(&h->recommended, now_s - up_s, wanted);
    int64_t high = highest_since(&h->recommended, now_s - down_s, wanted);
    int64_t stable = current;

    if (behavior) {
        stable = stable < low ? low : stable;
        stable = stable > high ? high : stable;
    } else {
        stable = high;
    }
    add(&h->recommended, now_s, wanted);
    say_able(ret, stable != wanted, behavior && wanted >= current);
    return stable;
}

/* --- rates --- */

static int64_t sum_since(const struct changes *c, int64_t since_s)
{
    int64_t sum = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].at_s > since_s)
            sum += c->items[i].replicas;
    return sum;
}

static int64_t policy_limit(const struct hpa_history *h, const cJSON *policy, bool up,
                            int64_t current, int64_t now_s)
{
    int64_t since = now_s - json_i64_at(policy, "periodSeconds", 0);
    int64_t begin = current - sum_since(&h->up, since) + sum_since(&h->down, since);
    int64_t value = json_i64_at(policy, "value", 0);
    double share = (double)value / 100.0;

    if (str_eqc(json_str(json_get(policy, "type")), "Pods"))
        return up ? begin + value : begin - value;
    return up ? (int64_t)ceil((double)begin * (1.0 + share))
              : (int64_t)((double)begin * (1.0 - share));
}

/* How far the policies of a direction let the target go. */
static int64_t rate_limit(const struct hpa_history *h, const cJSON *rules, bool up, int64_t current,
                          int64_t now_s)
{
    struct str select = json_str(json_get(rules, "selectPolicy"));
    bool widest = !str_eqc(select, "Min"), first = true;
    int64_t limit = current;

    if (str_eqc(select, "Disabled"))
        return current;
    json_each(policy, json_get(rules, "policies"))
    {
        int64_t one = policy_limit(h, policy, up, current, now_s);

        if (first || (widest == up ? one > limit : one < limit))
            limit = one;
        first = false;
    }
    return up ? (limit > current ? limit : current) : (limit < current ? limit : current);
}

static void say_limit(struct hpa_limits *ret, bool limited, bool up, bool by_rate)
{
    ret->limited = limited;
    if (!limited) {
        ret->reason = "DesiredWithinRange";
        ret->message = "the desired count is within the acceptable range";
    } else if (by_rate) {
        ret->reason = up ? "ScaleUpLimit" : "ScaleDownLimit";
        ret->message =
            up ? "the desired replica count is increasing faster than the maximum scale rate"
               : "the desired replica count is decreasing faster than the maximum scale rate";
    } else {
        ret->reason = up ? "TooManyReplicas" : "TooFewReplicas";
        ret->message = up ? "the desired replica count is more than the maximum replica count"
                          : "the desired replica count is less than the minimum replica count";
    }
}

/* Without a behavior: at most twice as many, or 4; down at once. */
static int64_t bound_plain(int64_t current, int64_t wanted, int64_t least, int64_t most,
                           struct hpa_limits *ret)
{
    int64_t rate = current * UP_FACTOR > UP_LEAST ? current * UP_FACTOR : UP_LEAST;
    int64_t limit = most > rate ? rate : most;

    if (wanted < least) {
        say_limit(ret, true, false, false);
        return least;
    }
    say_limit(ret, wanted > limit, true, most > rate);
    return wanted > limit ? limit : wanted;
}

static int64_t bound(const struct hpa_history *h, const cJSON *behavior, int64_t current,
                     int64_t wanted, int64_t least, int64_t most, int64_t now_s,
                     struct hpa_limits *ret)
{
    bool up = wanted > current, by_rate, limited;
    int64_t rate, limit;

    if (wanted == current) {
        say_limit(ret, false, false, false);
        return wanted;
    }
    rate = rate_limit(h, json_get(behavior, up ? "scaleUp" : "scaleDown"), up, current, now_s);
    by_rate = up ? most > rate : least < rate;
    limit = by_rate ? rate : up ? most : least;
    limited = up ? wanted > limit : wanted < limit;
    say_limit(ret, limited, up, by_rate);
    return limited ? limit : wanted;
}

int64_t hpa_history_limit(struct hpa_history *h, const cJSON *hpa, int64_t current, int64_t wanted,
                          int64_t now_s, struct hpa_limits *ret)
{
    const cJSON *behavior = json_path(hpa, "spec.behavior");
    int64_t least = json_i64_at(hpa, "spec.minReplicas", 1);
    int64_t most = json_i64_at(hpa, "spec.maxReplicas", INT32_MAX);
    int64_t stable = stabilize(h, behavior, current, wanted, now_s, ret);

    if (!behavior)
        return bound_plain(current, stable, least, most, ret);
    return bound(h, behavior, current, stable, least, most, now_s, ret);
}

void hpa_history_scaled(struct hpa_history *h, const cJSON *hpa, int64_t from, int64_t to,
                        int64_t now_s)
{
    if (!json_path(hpa, "spec.behavior"))
        return;
    if (to > from)
        add(&h->up, now_s, to - from);
    else
        add(&h->down, now_s, from - to);
}
