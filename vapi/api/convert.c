/* SPDX-License-Identifier: Apache-2.0 */
/* Stored bytes in the version that was asked for. Objects are stored in one version; the others
 * differ in apiVersion, and for custom resources in what their schema prunes and defaults. Must
 * never change what is stored: the trees made here belong to the reader. */
#include <sublet/call.h>
#include <sublet/crd.h>
#include <sublet/kinds.h>

#include "read.h"

bool convert_is_identity(const struct resource *r)
{
    return str_eq(r->storage_version, r->api_version) && !(r->crd && crd_defaults_on_read(r->crd));
}

cJSON *vapi_tree(struct arena *a, const struct store_object *o)
{
    cJSON *tree = NULL;
    struct err err;

    err_init(&err, a);
    int failed = json_parse(a, o->bytes, &tree, &err);
    /* We printed these bytes ourselves. */
    if (failed)
        __builtin_trap();
    return tree;
}

cJSON *convert_tree(struct arena *a, const struct resource *r, const struct store_object *o)
{
    cJSON *tree = vapi_tree(a, o);

    if (convert_is_identity(r))
        return tree;
    if (!r->crd && !str_eq(r->storage_version, r->api_version)) {
        kinds_convert(a, r, tree);
        return tree;
    }
    json_set_str(a, tree, "apiVersion", r->api_version);
    if (r->crd) {
        crd_prune(r->crd, a, tree, NULL);
        crd_default(r->crd, a, tree);
    }
    return tree;
}
