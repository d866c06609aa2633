/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of Tables: functions that print the cell of one, and the pieces they are made of.
 * Internal to vapi/kinds. */
#pragma once

#include <sublet/kind.h>
#include <sublet/object.h>
#include <sublet/selector.h>

/* The function of a column of one kind only. */
#define CELL(name)                                                                                 \
    static void name(const struct row *r, const struct column *c __attribute__((unused)))

/* ---- of any column; c->path is where the value is ---- */
void show_text(const struct row *r, const struct column *c);   /* c->otherwise when it is empty */
void show_number(const struct row *r, const struct column *c); /* absent: 0 */
void show_bool(const struct row *r, const struct column *c);
void show_count(const struct row *r, const struct column *c);    /* of an array or object */
void show_map(const struct row *r, const struct column *c);      /* "a=b,c=d", "<none>" */
void show_selector(const struct row *r, const struct column *c); /* a LabelSelector */
void show_names(const struct row *r, const struct column *c);    /* of containers */
void show_images(const struct row *r, const struct column *c);
void show_age(const struct row *r, const struct column *c); /* since metadata.creationTimestamp */
/* The columns of a pod template; template: its path. */
#define TEMPLATE_COLUMNS(template)                                                                 \
    {"Containers", "string", .priority = 1, .cell = show_names,                                    \
     .path = template ".spec.containers"},                                                         \
    {                                                                                              \
        "Images", "string", .priority = 1, .cell = show_images,                                    \
                            .path = template ".spec.containers"                                    \
    }

/* ---- pieces; strings live in the row's arena ---- */
void cell_text(const struct row *r, struct str text);
#define cell_printf(r, ...) cell_text(r, arena_printf((r)->a, __VA_ARGS__))
void cell_or(const struct row *r, struct str text, const char *otherwise); /* when it is empty */
void cell_number(const struct row *r, int64_t number);
void cell_bool(const struct row *r, bool value);
/* "a/b" of two members; otherwise where there is no object. */
void cell_pair(const struct row *r, const cJSON *object, const char *a, const char *b,
               const char *otherwise);
/* "5m" since then, "<unknown>" when there is no time. */
struct str kinds_since(const struct row *r, struct str time);
struct str show_label_selector_text(struct arena *a, const cJSON *selector);
/* Joins the strings of a list. */
struct str kinds_join(struct arena *a, const cJSON *list, const char *separator);

/* A sorted set of at most 64 strings, printed with commas. */
struct cell_set {
    struct str items[64];
    size_t n;
};
void cell_set_add(struct cell_set *s, struct str text);
void cell_set_print(struct buf *b, const struct cell_set *s);
/* The addresses of status.loadBalancer.ingress. */
void cell_balancer_addresses(struct buf *b, const cJSON *object);
bool kinds_annotated_true(const cJSON *object, const char *name);
/* The first cell of a class, marked when it is the default class. */
struct str names_of_class(const struct row *r, bool is_default);
