/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * `sync.toHost:` of the configuration: which further kinds go down to the host, and what bounds
 * them. Their values were checked when they were loaded; what each field becomes is in
 * translate_kind.h. */
#pragma once

#include <sublet/config.h>

enum sync_down {
#define SYNC_DOWN(id, key, group, version, plural, scope) DOWN_##id,
#include <sublet/tbl/sync_down.h>
#undef SYNC_DOWN
    N_SYNC_DOWN
};
enum config_scope { SYNC_NAMESPACE, SYNC_CLUSTER };
struct config_down_kind {
    const char *key, *group, *version, *plural;
    enum config_scope scope;
};
extern const struct config_down_kind CONFIG_DOWN_KINDS[N_SYNC_DOWN];

/* What becomes of one path of a custom resource. */
enum config_patch_action { PATCH_REFERENCE, PATCH_LABELS, PATCH_SELECTOR, PATCH_VALUE, PATCH_DROP };
struct config_patch {
    const char *path; /* "spec.dnsNames[*]", "spec.*.name" */
    enum config_patch_action action;
    struct str kind;    /* of the referent: "Secret" */
    const cJSON *value; /* PATCH_VALUE: put in the place of what is there */
};
struct config_patches {
    const struct config_patch *items;
    size_t n;
};
/* What the admin changes in host objects of a built-in kind, after their translation. */
struct config_host_patch {
    const char *path; /* "spec.rules[*].host", whose last part is a name; NULL: an annotation */
    const char *annotation; /* its key */
    const cJSON *value;     /* NULL: removed */
};
struct config_host_patches {
    const struct config_host_patch *items;
    size_t n;
};
/* customResources."certificates.cert-manager.io/v1" */
struct config_custom {
    const char *group, *version, *plural;
    struct config_patches patches;
};

/* priorityClasses.ranges: tenants' classes up to this value become that class of the host. */
struct config_priority_range {
    int64_t up_to;
    struct str host_class;
};

/* services.mappings: a Service of the tenant, and the name of its further host Service. */
struct config_service_alias {
    struct str ns, name, host_name;
};

/* One key, and the values that a tenant may give it: serviceAccounts.annotations, parameters. */
struct config_choice {
    struct str key;
    struct str_list values; /* "arn:aws:iam::111122223333:role/team-*" */
};
struct config_choices {
    const struct config_choice *items;
    size_t n;
};
/* storageClasses.provisioners."ebs.csi.aws.com" */
struct config_provisioner {
    struct str name;
    struct config_choices parameters;
    struct str_list mount_options;
    struct str_list reclaim_policies; /* empty: Delete */
    struct str_list topology_keys;    /* beside those of zone and region */
};

/* persistentVolumes.drivers."efs.csi.aws.com" */
struct config_driver {
    struct config_choice handles; /* key: the driver; "fs-0abc::fsap-*" */
    struct config_choices attributes;
    struct str_list mount_options;
    struct str_list topology_keys; /* as above */
};

struct config_to_host {
    bool enabled[N_SYNC_DOWN];
    bool gateway_api; /* gatewayApi.enabled: gateway_classes are shown, unless fromHost says */
    struct config_host_patches patches[N_SYNC_DOWN];
    struct config_host_patches service_patches, claim_patches; /* of annotations */
    const struct config_service_alias *aliases;                /* of different host names */
    size_t n_aliases;
    bool all_config_maps, all_secrets; /* not only those that something refers to */
    const cJSON *images; /* pods.translateImage, of images and prefixes: see translate_image() */
    struct str pod_runtime_class; /* pods.runtimeClassName, of pods that get no other; "": none */
    struct str pod_priority_class;
    const cJSON *tolerations;        /* pods.enforceTolerations: of every pod; as tolerations */
    struct str_list network_cidrs;   /* networkPolicies.allowedCIDRs: ipBlocks only inside these */
    struct str_list slice_cidrs;     /* endpointSlices.allowedCIDRs */
    struct str_list ingress_classes; /* the first one is that of an Ingress that names none */
    struct str_list ingress_hosts;   /* "a.team.example", "*.team.example" */
    struct str_list gateway_classes;
    struct str_list gateway_hosts; /* of listeners */
    bool gateway_wildcards;        /* a listener may have a pattern of these as it is */
    bool priorities;               /* priorityClasses.enabled */
    const cJSON *priority_names;   /* a tenant's class: that of the host; may be NULL */
    const struct config_priority_range *ranges; /* ascending */
    size_t n_ranges;
    struct config_choices identities;
    const struct config_provisioner *provisioners;
    size_t n_provisioners;
    int64_t max_storage_classes; /* of those that go down */
    const struct config_driver *drivers;
    size_t n_drivers;
    int64_t max_volumes;                /* of those that go down */
    const struct config_custom *custom; /* the enabled ones */
    size_t n_custom;
};
/* NULL: no Service is mapped to this name of the host. */
const struct config_service_alias *config_alias_of(const struct config_to_host *to,
                                                   struct str host_name);
/* Is the host name one of the list? A pattern stands for exactly one label, as in an Ingress. */
bool config_host_listed(struct str_list patterns, struct str host);
/* Is there a host name that the list admits and a listener of a Gateway serves? The listener's
 * `*.` stands for one label or more, as does a pattern's with wildcards, of a route. */
bool config_hosts_meet(struct str_list patterns, bool wildcards, struct str listener);
/* NULL: the key is not listed. */
const struct config_choice *config_choice_of(struct config_choices choices, struct str key);
/* Is the value one of the list? A `*` at the end stands for letters, digits, `-`, `.` and `_`. */
bool config_choice_allows(const struct config_choice *choice, struct str value);
/* NULL: StorageClasses with this provisioner stay with the tenant. */
const struct config_provisioner *config_provisioner_of(const struct config_to_host *to,
                                                       struct str name);
/* NULL: PersistentVolumes of this driver do not go down. */
const struct config_driver *config_driver_of(const struct config_to_host *to, struct str name);
