/* SPDX-License-Identifier: Apache-2.0
 * room: fleet
 *
 * A computed usage as an administrator or a spreadsheet reads it. */
#pragma once

#include <sublet/buf.h>
#include <sublet/fleet_usage.h>

enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON, REPORT_FOCUS, REPORT_HTML };
#define REPORT_FORMATS "table|csv|json|focus|html" /* in this order */

/* "tenant,pool" to a bit for each column. ret_label: the key of a "label:key", of which there is at
 * most one, otherwise empty. BAD_REQUEST names the unknown one. */
int report_columns(struct str list, unsigned *ret, struct str *ret_label,
                   struct err *err) MUST_CHECK;
/* FOCUS has rows for each of these. */
#define REPORT_FOCUS_COLUMNS                                                                       \
    (1u << USAGE_TENANT | 1u << USAGE_POOL | 1u << USAGE_PRODUCT | 1u << USAGE_MONTH)
/* "2026-11", "2026-11-26" (their begin, in UTC) or an RFC 3339 time. */
int report_time(struct arena *a, struct str text, int64_t *ret_us, struct err *err) MUST_CHECK;
/* "2026-11": its begin and end, in UTC. */
int report_month(struct arena *a, struct str month, int64_t *ret_from, int64_t *ret_until,
                 struct err *err) MUST_CHECK;
/* A report may have a million lines: it is handed on a piece at a time. */
struct report_sink {
    void (*write)(void *ctx, struct str piece);
    void *ctx;
};
/* columns: those it was computed with. */
void report_write(const struct report_sink *sink, const struct usage *u, unsigned columns,
                  enum report_format format);
/* The same into a buffer. */
void report_print(struct buf *out, const struct usage *u, unsigned columns,
                  enum report_format format);
