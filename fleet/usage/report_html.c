/* SPDX-License-Identifier: Apache-2.0 */
/* A report as one page: its own style and plots (SVG), no script, nothing from a network, so that
 * it can be sent and kept as a file. Tenants choose names in it: must escape every value, and have
 * a policy that forbids scripts and requests even if one were missed. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/clock.h>

#define MOST_BARS   40
#define LABEL_CHARS 40
#define LABEL_X     310 /* where labels end and bars begin */
#define BAR_WIDTH   560
#define ROW         24

static const char HEAD[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>GPU usage</title>\n<style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;"
    "color:#1b2733;background:#fff}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{padding:.25em .7em;text-align:left;border-bottom:1px solid #dde3ea}\n"
    "td{unicode-bidi:isolate;overflow-wrap:anywhere}\n"
    ".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "svg{width:100%;height:auto}\nsvg text{font:13px system-ui,sans-serif;fill:#1b2733}\n"
    ".held{fill:#2f6fb3}.idle{fill:#c3ced9}.unhealthy{fill:#c8553d}\n"
    "</style>\n</head>\n<body>\n";

/* --- values --- */

static void put_escaped(struct buf *out, struct str s)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

    for (size_t i = 0; i < s.n; i++) {
        size_t k = 0;

        while (k < COUNT(entities) && entities[k].c != s.p[i])
            k++;
        if (k < COUNT(entities))
            buf_addc(out, entities[k].entity);
        else if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f) /* no character of a page */
            buf_addc(out, "\xef\xbf\xbd");
        else
            buf_char(out, s.p[i]);
    }
}

/* For plots, whose pixels need no exact value. */
static double approximate(struct exact v)
{
    return (double)v.num / (double)v.den;
}

/* --- plots --- */

static void open_plot(struct buf *out, const char *title, size_t n_rows)
{
    buf_printf(out, "<h2>%s</h2>\n<svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 1000 %zu\">\n",
               title, title, n_rows * ROW + 4);
}

/* What stands left of a bar; the whole of it is shown to a pointer that rests on it. */
static void put_label(struct buf *out, struct str label, size_t row)
{
    struct str cut = str_clip(label, LABEL_CHARS);

    buf_printf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\"><title>", LABEL_X - 10,
               row * ROW + 17);
    put_escaped(out, label);
    buf_addc(out, "</title>");
    put_escaped(out, cut);
    buf_printf(out, "%s</text>\n", cut.n < label.n ? "..." : "");
}

/* Returns where the bar ends. */
static double put_bar(struct buf *out, const char *class, double x, double width, size_t row)
{
    if (width > 0)
        buf_printf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\"/>\n",
                   class, x, row * ROW + 3, width, ROW - 6);
    return x + width;
}

static void put_figure(struct buf *out, struct str figure, double x, size_t row)
{
    buf_printf(out, "<text x=\"%.2f\" y=\"%zu\">", x + 8, row * ROW + 17);
    put_escaped(out, figure);
    buf_addc(out, "</text>\n");
}

static void plot_balance(struct arena *a, struct buf *out, const struct fleet_usage_balance *b,
                         size_t row)
{
    const struct {
        const char *class;
        struct exact part;
    } parts[] = {{"held", b->held}, {"idle", b->idle}, {"unhealthy", b->unhealthy}};
    double all = approximate(b->held) + approximate(b->idle) + approximate(b->unhealthy);
    double x = LABEL_X;

    put_label(out, arena_printf(a, "%.*s, %.*s", STR_F(b->pool), STR_F(b->month)), row);
    for (size_t i = 0; all > 0 && i < COUNT(parts); i++)
        x = put_bar(out, parts[i].class, x, approximate(parts[i].part) / all * BAR_WIDTH, row);
    put_figure(out,
               arena_printf(a, "%.*s h", STR_F(exact_decimal(a, report_hours(b->capacity), 1))),
               LABEL_X + BAR_WIDTH, row);
}

static void plot_pools(struct arena *a, struct buf *out, const struct usage *u)
{
    size_t n = u->n_balances < MOST_BARS ? u->n_balances : MOST_BARS;

    open_plot(out, "GPU hours of each pool: held, idle, unhealthy", n);
    for (size_t i = 0; i < n; i++) /* the last months of the last pools, if there are too many */
        plot_balance(a, out, &u->balances[u->n_balances - n + i], i);
    buf_addc(out, "</svg>\n");
}

static int order_by_hours(const void *a, const void *b)
{
    const struct fleet_usage_line *x = *(const struct fleet_usage_line *const *)a,
                                  *y = *(const struct fleet_usage_line *const *)b;
    int order = exact_cmp(y->gpu_us, x->gpu_us);

    return order ? order : (x > y) - (x < y);
}

/* The columns of a line in one string. */
static struct str name_of(struct arena *a, const struct fleet_usage_line *l)
{
    struct buf name = BUF_INIT(0);
    struct str copy;

    for (unsigned i = 0; i < N_USAGE_COLUMNS; i++)
        if (l->values[i].n) {
            buf_addc(&name, name.n ? ", " : "");
            buf_add(&name, l->values[i]);
        }
    copy = arena_str(a, buf_str(&name));
    buf_fini(&name);
    return copy;
}

static void plot_lines(struct arena *a, struct buf *out, const struct usage *u)
{
    const struct fleet_usage_line **lines = arena_alloc(a, (u->n_lines + 1) * sizeof(*lines));
    size_t n = 0, shown;

    for (size_t i = 0; i < u->n_lines; i++)
        if (u->lines[i]->kind == USAGE_HELD && u->lines[i]->gpu_us.num > 0)
            lines[n++] = u->lines[i];
    if (!n)
        return;
    qsort(lines, n, sizeof(*lines), order_by_hours);
    shown = n < MOST_BARS ? n : MOST_BARS;
    open_plot(out, "GPU hours held", shown);
    for (size_t i = 0; i < shown; i++) {
        const struct fleet_usage_line *l = lines[i];
        double width = approximate(l->gpu_us) / approximate(lines[0]->gpu_us) * BAR_WIDTH;

        put_label(out, name_of(a, l), i);
        put_figure(out,
                   arena_printf(a, "%.*s h", STR_F(exact_decimal(a, report_hours(l->gpu_us), 1))),
                   put_bar(out, "held", LABEL_X, width, i), i);
    }
    buf_addc(out, "</svg>\n");
    if (shown < n)
        buf_printf(out, "<p>The %zu longest of %zu; all are in the table.</p>\n", shown, n);
}

/* --- table --- */

static void put_row(struct buf *out, const struct usage *u, const char *tag,
                    const struct str *cells, size_t n)
{
    buf_addc(out, "<tr>");
    for (size_t i = 0; i < n; i++) {
        bool number = report_is_number(u, i, n);

        buf_printf(out, "<%s%s>", tag, number ? " class=\"n\"" : "");
        put_escaped(out, cells[i]);
        buf_printf(out, "</%s>", tag);
    }
    buf_addc(out, "</tr>\n");
}

static void put_table(struct report_out *to, const struct usage *u, unsigned columns)
{
    struct buf *out = &to->buf;
    struct str cells[REPORT_CELLS + 1];

    buf_addc(out, "<h2>Usage and cost</h2>\n<table>\n<thead>\n");
    put_row(out, u, "th", cells, report_head_cells(u, columns, cells));
    buf_addc(out, "</thead>\n<tbody>\n");
    for (size_t i = 0; i < u->n_lines; i++, report_line_ends(to))
        put_row(out, u, "td", cells,
                report_line_cells(to->a, u, u->lines[i], columns, REPORT_TABLE_PLACES, cells));
    buf_addc(out, "</tbody>\n</table>\n");
}

/* --- the page --- */

static void put_sums(struct arena *a, struct buf *out, const struct usage *u)
{
    struct buf sums = BUF_INIT(0);

    report_sums(a, &sums, u);
    for (struct str rest = buf_str(&sums); rest.n;) {
        buf_addc(out, "<p>");
        put_escaped(out, str_cut(&rest, '\n'));
        buf_addc(out, "</p>\n");
    }
    buf_fini(&sums);
}

void report_html(struct report_out *to, const struct usage *u, unsigned columns)
{
    struct arena *a = to->a;
    struct buf *out = &to->buf;

    buf_addc(out, HEAD);
    buf_printf(out, "<h1>GPU usage</h1>\n<p>From %.*s to %.*s.</p>\n",
               STR_F(time_format_s(a, u->from_us / 1000000)),
               STR_F(time_format_s(a, u->until_us / 1000000)));
    put_sums(a, out, u);
    plot_pools(a, out, u);
    plot_lines(a, out, u);
    put_table(to, u, columns);
    buf_addc(out, "</body>\n</html>\n");
}
