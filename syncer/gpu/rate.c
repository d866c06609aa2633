/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of created pods: a row "rate/<pool>" of the ledger, "rate/" for pods without devices, with
 * the minute and how many were created in it. A row, so that a restart forgets none and a failed
 * transaction takes its pods back. Must never count a pod that is refused. */

#include "gpu/rate.h"

static int64_t limit_of(const struct rates *r, const struct config_binding *binding)
{
    return binding ? binding->pool->pods_per_minute : r->config->pods_per_minute;
}

static struct str row_key(struct arena *a, const struct config_binding *binding)
{
    return binding ? arena_printf(a, "rate/%.*s", STR_F(binding->pool->name)) : STR("rate/");
}

/* Pods of this minute; a row of another minute counts none. */
static int64_t created_now(const struct rates *r, struct arena *a,
                           const struct config_binding *binding, int64_t minute)
{
    struct str row, of;
    int64_t counted, n;

    if (!store_record_get(r->store, RECORD_LEDGER, row_key(a, binding), &row))
        return 0;
    of = str_cut(&row, ' ');
    return str_to_i64(of, &counted) && str_to_i64(row, &n) && counted == minute ? n : 0;
}

int sync_rate_check(const struct rates *r, const struct config_binding *binding, struct str name,
                    bool of_claim, struct err *err)
{
    int64_t most = limit_of(r, binding), now = clock_wall_s(r->clock), n;
    struct arena *a;

    if (!most)
        return 0;
    a = arena_new(0);
    n = created_now(r, a, binding, now / 60);
    arena_free(a);
    if (n < most)
        return 0;
    if (!binding)
        return err_forbidden(err, STR(""), STR("pods"), name,
                             "guardrail pods-per-minute: policy.podsPerMinute allows %lld; the "
                             "next minute begins in %llds",
                             (long long)most, (long long)(60 - now % 60));
    return err_forbidden(err, of_claim ? STR("resource.k8s.io") : STR(""),
                         of_claim ? STR("resourceclaims") : STR("pods"), name,
                         "guardrail gpu-pods-per-minute: pool \"%.*s\" allows %lld; the next "
                         "minute begins in %llds",
                         STR_F(binding->pool->name), (long long)most, (long long)(60 - now % 60));
}

void sync_rate_count(const struct rates *r, const struct config_binding *binding)
{
    int64_t minute = clock_wall_s(r->clock) / 60;
    struct arena *a;

    if (!limit_of(r, binding))
        return;
    a = arena_new(0);
    store_record_put(r->store, RECORD_LEDGER, row_key(a, binding),
                     arena_printf(a, "%lld %lld", (long long)minute,
                                  (long long)created_now(r, a, binding, minute) + 1));
    arena_free(a);
}
