/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows and functions of a kind do together: defaults, preparation, validation, cells,
 * conversion. Must never compare names of kinds: what differs is in struct kind. */
#include "rules/kind.h"

void kinds_defaults(const struct resource *r, struct arena *a, cJSON *object)
{
    const struct kind *k = r->built_in;

    if (!k)
        return;
    defaults_apply(a, object, k->default_rules.rows, k->default_rules.n);
    if (k->defaults)
        k->defaults(a, object);
}

void kinds_prepare_create(const struct resource *r, struct arena *a, cJSON *object)
{
    const struct kind *k = r->built_in;

    if (k && k->new_status)
        defaults_set_status(a, object, k->new_status);
    if (k && k->prepare_create)
        k->prepare_create(a, object);
}

static void check_object(struct field_errors *e, const cJSON *object, const cJSON *old,
                         struct rules rules)
{
    const struct check c = {.e = e, .value = object, .old = old, .object = object, .before = old};

    rules_check(&c, rules.rows, rules.n);
}

void kinds_validate(const struct resource *r, struct field_errors *e, const cJSON *object,
                    const cJSON *old)
{
    const struct kind *k = r->built_in;

    if (!k)
        return;
    check_object(e, object, old, k->rules);
    if (k->validate)
        k->validate(e, object, old);
}

void kinds_validate_status(const struct resource *r, struct field_errors *e, const cJSON *object,
                           const cJSON *old)
{
    const struct kind *k = r->built_in;

    if (!k)
        return;
    check_object(e, object, old, k->status_rules);
    if (k->validate_status)
        k->validate_status(e, object, old);
}

void kinds_cells(const struct resource *r, const struct row *row)
{
    const struct kind *k = r->built_in;
    struct str name = json_str_at(row->object, "metadata.name");

    json_append(row->cells,
                json_new_string(row->a, k && k->first_cell ? k->first_cell(row) : name));
    for (const struct column *c = r->columns; c && c->name; c++)
        c->cell(row, c);
}

void kinds_convert(struct arena *a, const struct resource *r, cJSON *object)
{
    if (r->built_in && r->built_in->from_storage)
        r->built_in->from_storage(a, object);
    json_set_str(a, object, "apiVersion", r->api_version);
}

void kinds_convert_to_storage(struct arena *a, const struct resource *r, cJSON *object)
{
    if (r->built_in && r->built_in->to_storage)
        r->built_in->to_storage(a, object);
    json_set_str(a, object, "apiVersion", r->storage_version);
}

const char *kinds_unreadable(struct arena *a, const struct resource *r, const cJSON *body)
{
    return r->built_in && r->built_in->unreadable ? r->built_in->unreadable(a, body) : NULL;
}

void kinds_warn_no_effect(struct arena *a, const struct resource *r, const cJSON *object,
                          void (*warn)(void *ctx, struct str text), void *ctx)
{
    const struct no_effect *n = r->built_in ? r->built_in->no_effect : NULL;

    for (; n && n->what; n++) {
        if (!n->applies || n->applies(object))
            warn(ctx, arena_printf(a, "%s has no effect yet: %s", n->what, n->instead));
    }
}
