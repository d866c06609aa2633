/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The Prometheus text exposition format (version 0.0.4), for code that adds to /metrics. A family
 * is its HELP and TYPE lines and then its samples, without interruption: a name appears once.
 *
 *   metrics_family(out, METRIC_CERTIFICATE_EXPIRY);
 *   metrics_sample(out, METRIC_CERTIFICATE_EXPIRY, STR("certificate=\"serving\""), 1.8e9);
 *
 * A string a tenant chooses (names, namespaces, user agents) must never become a label: the number
 * of samples is bounded. */
#pragma once

#include <sublet/buf.h>

struct vapi;

/* Rows of tbl/metrics.h. */
enum metric {
#define METRIC(id, type, name, labels, help) METRIC_##id,
#include <sublet/tbl/metrics.h>
#undef METRIC
    N_METRICS
};

void metrics_family(struct buf *out, enum metric metric);
/* labels: `a="x",b="y"`, each made by metrics_label(), or empty. */
void metrics_sample(struct buf *out, enum metric metric, struct str labels, double value);
void metrics_sample_u64(struct buf *out, enum metric metric, struct str labels, uint64_t value);
/* Microseconds as seconds, with every digit. */
void metrics_sample_us(struct buf *out, enum metric metric, struct str labels, uint64_t us);
/* A family of one sample without labels. */
void metrics_single(struct buf *out, enum metric metric, double value);
void metrics_single_u64(struct buf *out, enum metric metric, uint64_t value);
/* Appends `name="value"`, escaped, after a comma unless labels is empty. */
void metrics_label(struct buf *labels, const char *name, struct str value);

/* A histogram of seconds with upper bounds in ascending order (upstream's per metric). */
struct metrics_histogram {
    uint64_t *counts; /* n_bounds + 1: the last is above all bounds */
    uint64_t sum_us;
};
void metrics_histogram(struct buf *out, enum metric metric, struct str labels, const double *bounds,
                       size_t n_bounds, const struct metrics_histogram *h);

/* write() is called for every GET of /metrics, on the loop, after the server's own; at most 16. */
void vapi_add_metrics(struct vapi *api, void (*write)(void *ctx, struct buf *out), void *ctx);
