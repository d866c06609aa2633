/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * `sync.toHost:` of the configuration: which further kinds go down to the host, and what bounds
 * them. Their values were checked when they were loaded; what each field becomes is in
 * translate_kind.h. */
#pragma once

#include <sublet/config.h>

enum sync_down {
#define SYNC_DOWN(id, key, group, version, plural) DOWN_##id,
#include <sublet/tbl/sync_down.h>
#undef SYNC_DOWN
    N_SYNC_DOWN
};
struct config_down_kind {
    const char *key, *group, *version, *plural;
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
/* customResources."certificates.cert-manager.io/v1" */
struct config_custom {
    const char *group, *version, *plural;
    const struct config_patch *patches;
    size_t n_patches;
};

/* priorityClasses.ranges: tenants' classes up to this value become that class of the host. */
struct config_priority_range {
    int64_t up_to;
    struct str host_class;
};

struct config_to_host {
    bool enabled[N_SYNC_DOWN];
    bool all_config_maps, all_secrets; /* not only those that something refers to */
    const cJSON *images; /* pods.translateImage: that of a tenant's pod: that of the host's */
    struct str pod_runtime_class; /* pods.runtimeClassName, of pods that get no other; "": none */
    struct str pod_priority_class;
    struct str_list network_cidrs;   /* networkPolicies.allowedCIDRs: ipBlocks only inside these */
    struct str_list slice_cidrs;     /* endpointSlices.allowedCIDRs */
    struct str_list ingress_classes; /* the first one is that of an Ingress that names none */
    struct str_list ingress_hosts;   /* "a.team.example", "*.team.example" */
    struct str_list gateway_classes;
    struct str_list gateway_hosts; /* of listeners */
    bool priorities;               /* priorityClasses.enabled */
    const cJSON *priority_names;   /* a tenant's class: that of the host; may be NULL */
    const struct config_priority_range *ranges; /* ascending */
    size_t n_ranges;
    const struct config_custom *custom; /* the enabled ones */
    size_t n_custom;
};
/* Is the host name one of the list? A pattern stands for exactly one label, as in an Ingress. */
bool config_host_listed(struct str_list patterns, struct str host);
