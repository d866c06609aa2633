/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of Table rows. Internal to vapi/kinds. */
#pragma once

#include <sublet/object.h>
#include <sublet/selector.h>

struct row {
    struct arena *a;
    const cJSON *object;
    int64_t now;
    cJSON *cells;
};

/* Texts live in the row's arena; an empty one is printed as it is. */
void cell_text(const struct row *r, struct str text);
void cell_or(const struct row *r, struct str text, const char *otherwise);
void cell_number(const struct row *r, int64_t number);
void cell_number_at(const struct row *r, const char *path); /* absent: 0 */
void cell_text_at(const struct row *r, const char *path);   /* absent: "" */
void cell_text_or(const struct row *r, const char *path, const char *otherwise);
void cell_bool(const struct row *r, bool value);
void cell_count(const struct row *r, const char *path); /* of an array or object */
void cell_age(const struct row *r);                     /* since metadata.creationTimestamp */
void cell_first(const struct row *r, struct str text);  /* in place of the name */
/* "5m" since then, "<unknown>" when there is no time. */
struct str since(const struct row *r, struct str time);
/* Names and images of containers. */
void cell_containers(const struct row *r, const cJSON *containers);
/* "a=b,c=d" of a map, "<none>" of an empty one. */
void cell_map(const struct row *r, const cJSON *labels);
/* A LabelSelector; empty and none give `otherwise`. */
void cell_selector(const struct row *r, const cJSON *selector, const char *otherwise);
struct str label_selector_text(struct arena *a, const cJSON *selector);
/* Joins the strings of a list. */
struct str join(struct arena *a, const cJSON *list, const char *separator);

#define ROW_CELLS(name) void name(struct arena *a, const cJSON *object, int64_t now, cJSON *cells)
ROW_CELLS(cells_age); /* Age only */

/* A sorted set of at most 64 strings, printed with commas. */
struct cell_set {
    struct str items[64];
    size_t n;
};
void cell_set_add(struct cell_set *s, struct str text);
void cell_set_print(struct buf *b, const struct cell_set *s);
/* The addresses of status.loadBalancer.ingress. */
void cell_balancer_addresses(struct buf *b, const cJSON *object);
/* Marks the name of a class as that of the default class. */
bool annotated_true(const cJSON *object, const char *name);
void cell_mark_default(const struct row *r);
