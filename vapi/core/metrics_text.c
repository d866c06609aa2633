/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The Prometheus text exposition format. It must never print a label unescaped or a number a
 * scraper cannot read. Source: prometheus.io, version 0.0.4. */
#include <sublet/metrics.h>

#include <assert.h>
#include <math.h>

static const struct {
    const char *name, *type, *help;
} METRICS[N_METRICS] = {
#define COUNTER                              "counter"
#define GAUGE                                "gauge"
#define HISTOGRAM                            "histogram"
#define METRIC(id, type, name, labels, help) {name, type, help},
#include <sublet/tbl/metrics.h>
#undef METRIC
};

void metrics_family(struct buf *out, enum metric metric)
{
    const char *name = METRICS[metric].name;

    buf_printf(out, "# HELP %s ", name);
    for (const char *p = METRICS[metric].help; *p; p++) {
        if (*p == '\\' || *p == '\n')
            buf_char(out, '\\');
        buf_char(out, *p == '\n' ? 'n' : *p);
    }
    buf_printf(out, "\n# TYPE %s %s\n", name, METRICS[metric].type);
}

static void add_number(struct buf *out, double value)
{
    if (isnan(value))
        buf_addc(out, "NaN");
    else if (isinf(value))
        buf_addc(out, value > 0 ? "+Inf" : "-Inf");
    else if (value == floor(value) && fabs(value) < 1e15)
        buf_i64(out, (int64_t)value);
    else
        buf_printf(out, "%.9g", value);
}

static void add_name(struct buf *out, const char *name, struct str labels)
{
    buf_addc(out, name);
    if (labels.n) {
        buf_char(out, '{');
        buf_add(out, labels);
        buf_char(out, '}');
    }
    buf_char(out, ' ');
}

void metrics_sample(struct buf *out, enum metric metric, struct str labels, double value)
{
    add_name(out, METRICS[metric].name, labels);
    add_number(out, value);
    buf_char(out, '\n');
}

void metrics_sample_u64(struct buf *out, enum metric metric, struct str labels, uint64_t value)
{
    add_name(out, METRICS[metric].name, labels);
    buf_printf(out, "%llu\n", (unsigned long long)value);
}

void metrics_sample_us(struct buf *out, enum metric metric, struct str labels, uint64_t us)
{
    add_name(out, METRICS[metric].name, labels);
    buf_printf(out, "%llu", (unsigned long long)(us / 1000000));
    if (us % 1000000)
        buf_printf(out, ".%06llu", (unsigned long long)(us % 1000000));
    buf_char(out, '\n');
}

void metrics_single(struct buf *out, enum metric metric, double value)
{
    metrics_family(out, metric);
    metrics_sample(out, metric, STR(""), value);
}

void metrics_single_u64(struct buf *out, enum metric metric, uint64_t value)
{
    metrics_family(out, metric);
    metrics_sample_u64(out, metric, STR(""), value);
}

void metrics_label(struct buf *labels, const char *name, struct str value)
{
    if (labels->n)
        buf_char(labels, ',');
    buf_addc(labels, name);
    buf_addc(labels, "=\"");
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];

        if (c == '\\' || c == '"' || c == '\n')
            buf_char(labels, '\\');
        buf_char(labels, c == '\n' ? 'n' : c);
    }
    buf_char(labels, '"');
}

static void add_total(struct buf *out, const char *name, const char *suffix, struct str labels)
{
    buf_addc(out, name);
    add_name(out, suffix, labels);
}

void metrics_histogram(struct buf *out, enum metric metric, struct str labels, const double *bounds,
                       size_t n_bounds, const struct metrics_histogram *h)
{
    const char *name = METRICS[metric].name;
    uint64_t total = 0;
    double bound;

    for (size_t i = 0; i <= n_bounds; i++) {
        total += h->counts[i];

        bound = i < n_bounds ? bounds[i] : INFINITY;
        buf_printf(out, "%s_bucket{", name);
        buf_add(out, labels);
        buf_addc(out, labels.n ? ",le=\"" : "le=\"");
        add_number(out, bound);
        buf_printf(out, "\"} %llu\n", (unsigned long long)total);
    }
    add_total(out, name, "_sum", labels);
    add_number(out, (double)h->sum_us / 1e6);
    buf_char(out, '\n');
    add_total(out, name, "_count", labels);
    buf_printf(out, "%llu\n", (unsigned long long)total);
}
