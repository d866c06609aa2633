/* SPDX-License-Identifier: Apache-2.0 */
/* What StorageClasses and PersistentVolumes have in common on their way down: values that the admin
 * listed, topology keys, no annotations. Must never let a value pass that is not listed. */

#include "kind_impl.h"

int translate_kind_check_choice(const struct kind_call *c, const cJSON *value,
                                struct config_choices listed, const char *unlisted)
{
    const struct config_choice *choice =
        value->string ? config_choice_of(listed, json_key(value)) : NULL;

    if (!choice)
        return translate_kind_refuse(c, "%s", unlisted);
    if (json_is_string(value) && config_choice_allows(choice, json_str(value)))
        return 0;
    return translate_kind_refuse(c,
                                 "is a value that the administrator of the host does not permit");
}

int translate_kind_check_listed(const struct kind_call *c, const cJSON *value,
                                struct str_list listed, const char *unlisted)
{
    return str_list_has(listed, json_str(value)) ? 0 : translate_kind_refuse(c, "%s", unlisted);
}

/* Labels of nodes are the host's; the tenant is shown these alone (from_host.c). */
int translate_kind_topology_key(const struct kind_call *c, const cJSON *value,
                                struct str_list listed, cJSON **ret)
{
    if (!translate_topology_key(json_str(value), listed))
        return translate_kind_refuse(
            c, "is not one of topology.kubernetes.io/zone, topology.kubernetes.io/region, nor of "
               "topologyKeys of its driver");
    *ret = json_copy(c->arena, value);
    return 0;
}

int translate_kind_no_annotations(const struct kind_call *c, const cJSON *annotations, cJSON **ret)
{
    (void)annotations;
    *ret = json_new_object(c->arena);
    return 0;
}
