/* SPDX-License-Identifier: Apache-2.0
 * room: translate
 *
 * What the kubelet of a node reports of its pods, cut to the tenant's own and in its names. Pure
 * functions, as all of the room: the caller says which host object is whose. What is shown is by
 * list: fields of a summary, labels of a series. */
#pragma once

#include <sublet/buf.h>
#include <sublet/json.h>

struct translate_tenant;

enum kubelet_kind { KUBELET_POD, KUBELET_CLAIM };

struct kubelet_view {
    const struct translate_tenant *tenant;
    /* The virtual object whose host object, of this name in the tenant's host namespace and, unless
     * empty, of this uid, is proved to be its own; NULL: there is none. Lives as long as the view.
     */
    const cJSON *(*own)(void *ctx, enum kubelet_kind kind, struct str host_name,
                        struct str host_uid);
    void *ctx;
    bool whole;   /* the node's own values as well, other tenants' pods included */
    bool devices; /* series of GPUs: only those of pods, and with the labels of a device */
};

/* /pods: a PodList of the virtual pods; /runningpods/: what the container runtime has of them;
 * /stats/summary. NULL: not what a kubelet answers. */
cJSON *translate_kubelet_pods(struct arena *a, const struct kubelet_view *v, const cJSON *list);
cJSON *translate_kubelet_running(struct arena *a, const struct kubelet_view *v, const cJSON *list);
cJSON *translate_kubelet_summary(struct arena *a, const struct kubelet_view *v,
                                 const cJSON *summary);

/* Metrics in Prometheus' text format, line by line. A series is shown if it names a pod or a claim
 * of the tenant; one that names neither only with `whole`, and only of the node itself. */
#define SERIES_LINE_MAX 65536 /* bytes; a longer line is left out */
struct series_filter;
struct series_filter *series_filter_new(const struct kubelet_view *v); /* copies *v */
/* Appends what may be shown of the lines that ended. */
void series_filter_add(struct series_filter *f, struct str bytes, struct buf *out);
void series_filter_end(struct series_filter *f, struct buf *out);  /* a last line without its end */
struct series_filter *series_filter_free(struct series_filter *f); /* takes NULL */
