/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of pods that are ended to give GPUs back. Why apart: it decides what is lost, so it is
 * one pure function. Must never choose one more than the limit requires, nor count as held what is
 * on its way out already. */

#include "gpu/reclaim.h"

#include <stdlib.h>

static int in_order(const void *x, const void *y)
{
    const struct reclaim_pod *a = x, *b = y;
    int newer;

    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    newer = str_cmp(b->created, a->created);
    return newer ? newer : str_cmp(a->uid, b->uid);
}

void sync_reclaim_choose(struct reclaim_pod *pods, size_t n, struct rational held,
                         struct rational limit)
{
    if (n)
        qsort(pods, n, sizeof(*pods), in_order);
    for (size_t i = 0; i < n; i++) {
        pods[i].chosen = false;
        if (pods[i].leaving && !rational_sub(held, pods[i].gpu_eq, &held))
            return;
    }
    for (size_t i = 0; i < n && rational_cmp(held, limit) > 0; i++) {
        if (pods[i].leaving || pods[i].gpu_eq.num <= 0)
            continue;
        if (!rational_sub(held, pods[i].gpu_eq, &held))
            return;
        pods[i].chosen = true;
    }
}
