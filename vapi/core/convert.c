/* SPDX-License-Identifier: Apache-2.0 */
/* Stored bytes in the requested version. Objects are stored in one version; the others differ in
 * apiVersion, and for custom resources by the pruning and defaults of their schema. What only a
 * webhook converts stays as it is stored: who shows it called conversion_read() before. Must never
 * change stored bytes: the trees made here belong to the reader. */
#include "core.h"
#include "meta.h"

#include <sublet/conversion.h>
#include <sublet/crd.h>
#include <sublet/json_build.h>
#include <sublet/kinds.h>

struct str conversion_carried(const struct resource *r, const struct store_object *o)
{
    struct str rest =
        str_from(o->bytes, sizeof("{\"kind\":\"\",\"apiVersion\":\"") - 1 + r->kind.n);

    return str_cut(&rest, '"');
}

bool conversion_needed(const struct resource *r, struct str api_version)
{
    return r->conversion && !str_eq(api_version, r->api_version);
}

bool conversion_needed_stored(const struct resource *r, const struct store_object *o)
{
    return !o->converted && conversion_needed(r, conversion_carried(r, o));
}

bool convert_is_identity(const struct resource *r, const struct store_object *o)
{
    /* Objects of a CRD whose storage version changed still have their previous apiVersion. */
    if (r->crd)
        return o->converted ||
               (!crd_defaults_on_read(r->crd) && str_eq(conversion_carried(r, o), r->api_version));
    return str_eq(r->storage_version, r->api_version);
}

cJSON *vapi_tree(struct arena *a, const struct store_object *o)
{
    cJSON *tree = NULL;
    struct err err;

    err_init(&err, a);
    if (!json_parse(a, o->bytes, &tree, &err) && json_is_object(tree))
        return tree;
    /* The store checks objects when it loads them (store_options.readable), and we wrote the
     * others: this handles a store opened without that check. */
    return json_object(a,
                       JSON("metadata", json_object(a, JSON("name", o->name), JSON("uid", o->uid),
                                                    JSON_NONEMPTY("namespace", o->ns))));
}

cJSON *convert_tree(struct arena *a, const struct resource *r, const struct store_object *o)
{
    cJSON *tree = vapi_tree(a, o);

    if (convert_is_identity(r, o) || conversion_needed_stored(r, o))
        return tree;
    if (!r->crd && !str_eq(r->storage_version, r->api_version)) {
        kinds_convert(a, r, tree);
        return tree;
    }
    if (r->crd) {
        struct str carried = json_str(json_get(tree, "apiVersion"));

        if (!str_eq(carried, r->api_version) && str_eq(carried, r->storage_version)) {
            crd_from_stored(r->crd, a, tree);
        } else {
            crd_prune(r->crd, a, tree, NULL);
            crd_default(r->crd, a, tree);
        }
        vapi_meta_canonical(a, r, tree); /* defaults are appended */
    }
    json_set_str(a, tree, "apiVersion", r->api_version);
    return tree;
}
