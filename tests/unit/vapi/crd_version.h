/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled version of a made-up CRD, and errors as the recorded cases have them. Must give back
 * all it took: what leaks here leaks in the server at every change of a CRD. */
#pragma once

#include "../../../vapi/crd/version_new.h"
#include "../../quoted.h"

/* JSON written with ' for ". */
static inline cJSON *parse_quoted(struct arena *a, const char *text)
{
    return quoted_json(a, str_c(text));
}

static inline struct crd_version *crd_version_of(const cJSON *schema)
{
    struct arena *a = arena_new(0);
    cJSON *crd = parse_quoted(a, "{'spec':{'group':'a.b','scope':'Cluster','names':{'plural':'as',"
                                 "'kind':'A'},'versions':[{'name':'v1','storage':true}]}}");
    cJSON *version = json_first(json_path(crd, "spec.versions"));

    json_set(a, json_ensure_object(a, version, "schema"), "openAPIV3Schema", json_copy(a, schema));
    struct crd_version *v = crd_version_new(crd, version, NULL);
    arena_free(a);
    return v;
}

static inline void crd_version_drop(struct crd_version *v)
{
    struct resource *r = v->resource;

    crd_version_free(v);
    mem_free(r); /* the registry's task */
}

/* [[type, field, message], ...] in the order of fields, which upstream's maps do not keep. */
static inline cJSON *causes_of(struct arena *a, const struct field_errors *e)
{
    cJSON *list = json_new_array(a);

    for (const struct err_cause *c = e->first; c; c = c->next) {
        cJSON *cause = json_append(list, json_new_array(a));

        json_append(cause, json_new_string(a, c->type));
        json_append(cause, json_new_string(a, c->field));
        json_append(cause, json_new_string(a, str_sub(c->message, 0, 1500)));
    }
    return list;
}
