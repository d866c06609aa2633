/* SPDX-License-Identifier: Apache-2.0 */
/* Did the host keep what was sent? A host of another minor, or with a feature gate off, answers 201
 * and drops what it does not know. Why: a pod without its volume or its user namespace is another
 * pod, and the loss would go unnoticed. Must never take a value that the host changed or added for
 * a loss, nor show a value: it may be a Secret's. */

#include "core/kept.h"

#define SHOWN_MAX  8
#define PATH_SHOWN 128

static void on_dropped(void *ctx, const struct compare_change *change)
{
    struct dropped *d = ctx;

    if (d->n < DROPPED_MAX)
        d->paths[d->n] = change->path;
    d->n++;
}

void sync_dropped(struct arena *a, const cJSON *sent, const cJSON *answer, struct dropped *ret)
{
    *ret = (struct dropped){0};
    (void)sync_compare_kept(a, sent, answer, on_dropped, ret);
}

static bool has(const struct dropped *d, struct str path)
{
    for (size_t i = 0; i < d->n && i < DROPPED_MAX; i++) {
        if (str_eq(d->paths[i], path))
            return true;
    }
    return false;
}

void sync_dropped_both(struct dropped *d, const struct dropped *other)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n && i < DROPPED_MAX; i++) {
        if (has(other, d->paths[i]))
            d->paths[n++] = d->paths[i];
    }
    d->n = n;
}

struct str sync_dropped_text(struct arena *a, const struct dropped *d)
{
    struct str ret = STR("");
    size_t shown = d->n < SHOWN_MAX ? d->n : SHOWN_MAX;

    for (size_t i = 0; i < shown; i++)
        ret = arena_printf(a, "%.*s%s%.*s", STR_F(ret), i ? ", " : "",
                           STR_F(str_clip(d->paths[i], PATH_SHOWN)));
    if (d->n > shown)
        ret = arena_printf(a, "%.*s and %zu more", STR_F(ret), d->n - shown);
    return ret;
}

/* "spec.containers[app].securityContext.procMount" -> "securityContext.procMount" */
static struct str of_container(struct str path)
{
    static const char *const lists[] = {"spec.containers[", "spec.initContainers[",
                                        "spec.ephemeralContainers["};

    for (size_t i = 0; i < COUNT(lists); i++) {
        if (!str_has_prefix(path, str_c(lists[i])))
            continue;
        (void)str_cut(&path, ']');
        (void)str_cut(&path, '.');
        return path;
    }
    return STR_NULL;
}

bool sync_dropped_changes_pod(const struct dropped *d)
{
    static const char *const fields[] = {"spec.securityContext", "spec.hostUsers", "spec.volumes",
                                         "spec.resourceClaims", "spec.schedulingGates"};

    for (size_t i = 0; i < d->n && i < DROPPED_MAX; i++) {
        for (size_t k = 0; k < COUNT(fields); k++) {
            if (str_has_prefix(d->paths[i], str_c(fields[k])))
                return true;
        }
        if (str_has_prefix(of_container(d->paths[i]), STR("securityContext")))
            return true;
    }
    return d->n > DROPPED_MAX;
}
