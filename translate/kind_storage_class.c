/* SPDX-License-Identifier: Apache-2.0 */
/* StorageClasses of a tenant for provisioners that the admin listed; those of others stay with the
 * tenant, whose own provisioners serve them. Must never name, by a parameter, what the admin did
 * not list, nor become the default of the host. */

#include <sublet/translate_from_host.h>

#include "kind_impl.h"

#define UNLISTED "is not listed in sync.toHost.storageClasses for this provisioner"

static const struct config_provisioner *provisioner_of(const struct kind_call *c)
{
    return config_provisioner_of(c->tenant->config->to_host,
                                 json_str(json_get(c->object, "provisioner")));
}

/* What a class may say: nothing, of a provisioner that is not listed. */
static struct config_provisioner may_say(const struct kind_call *c)
{
    const struct config_provisioner *listed = provisioner_of(c);

    return listed ? *listed : (struct config_provisioner){0};
}

/* Under the name of one that the host offers, claims have the host's. Until its classes are listed,
 * the annotation alone says which of those here are copies of them. */
static bool goes_down(const struct kind_call *c)
{
    const cJSON *annotations = json_path(c->object, "metadata.annotations");

    return provisioner_of(c) && !translate_class_offered(c->tenant, c->name) &&
           !json_get(annotations, ANNOTATION_FROM_HOST);
}

static int check_parameter(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    (void)ret;
    return translate_kind_check_choice(c, value, may_say(c).parameters, UNLISTED);
}

static int check_option(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    (void)ret;
    return translate_kind_check_listed(c, value, may_say(c).mount_options, UNLISTED);
}

static int topology_key_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    return translate_kind_topology_key(c, value, may_say(c).topology_keys, ret);
}

/* Volumes that are retained would stay on the host when the tenant deletes its claim. */
static int reclaim_policy_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str_list listed = may_say(c).reclaim_policies;
    struct str policy = json_str(value);

    if (listed.n ? !str_list_has(listed, policy) : !str_eqc(policy, "Delete"))
        return translate_kind_refuse(c, "is not one of the reclaimPolicies of "
                                        "sync.toHost.storageClasses for this provisioner");
    *ret = json_copy(c->arena, value);
    return 0;
}

static const struct kind_rule DOWN[] = {
    {"provisioner", KIND_KEEP},
    {"reclaimPolicy", KIND_CALL, .call = reclaim_policy_down},
    {"volumeBindingMode", KIND_KEEP},
    {"allowVolumeExpansion", KIND_KEEP},
    {"allowedTopologies[*].matchLabelExpressions[*].key", KIND_CALL, .call = topology_key_down},
    {"allowedTopologies[*].matchLabelExpressions[*].values", KIND_KEEP},
    {"parameters.*", KIND_CHECK, .call = check_parameter},
    {"parameters.*", KIND_KEEP},
    {"mountOptions[*]", KIND_CHECK, .call = check_option},
    {"mountOptions[*]", KIND_KEEP},
    {0},
};

/* Of its annotations none goes down: is-default-class is for claims of this virtual cluster. */
const struct kind_rules TRANSLATE_RULES_STORAGE_CLASS = {.api_version = "storage.k8s.io/v1",
                                                         .kind = "StorageClass",
                                                         .group = "storage.k8s.io",
                                                         .plural = "storageclasses",
                                                         .down = DOWN,
                                                         .in_cluster = true,
                                                         .annotations =
                                                             translate_kind_no_annotations,
                                                         .goes_down = goes_down};
