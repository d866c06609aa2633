/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted sets of strings in cells, and marks of a default class. */
#include "kind.h"

#include <string.h>

void cell_set_add(struct cell_set *s, struct str text)
{
    size_t at = 0;

    while (at < s->n && str_cmp(s->items[at], text) < 0)
        at++;
    if (s->n == COUNT(s->items) || (at < s->n && str_eq(s->items[at], text)))
        return;
    memmove(&s->items[at + 1], &s->items[at], (s->n - at) * sizeof(s->items[0]));
    s->items[at] = text;
    s->n++;
}

void cell_set_print(struct buf *b, const struct cell_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        buf_addc(b, b->n ? "," : "");
        buf_add(b, s->items[i]);
    }
}

void cell_balancer_addresses(struct buf *b, const cJSON *object)
{
    struct cell_set s = {.n = 0};

    json_each(ingress, json_path(object, "status.loadBalancer.ingress"))
    {
        struct str ip = json_str(json_get(ingress, "ip"));
        struct str host = json_str(json_get(ingress, "hostname"));

        if (ip.n || host.n)
            cell_set_add(&s, ip.n ? ip : host);
    }
    cell_set_print(b, &s);
}

bool kinds_annotated_true(const cJSON *object, const char *name)
{
    return str_eqc(json_str(json_get(json_path(object, "metadata.annotations"), name)), "true");
}

struct str names_of_class(const struct row *r, bool is_default)
{
    struct str name = json_str_at(r->object, "metadata.name");

    return is_default ? arena_printf(r->a, "%.*s (default)", STR_F(name)) : name;
}
