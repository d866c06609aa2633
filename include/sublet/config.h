/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * The configuration of one virtual cluster: one YAML document (the `config:` part of the chart's
 * values), flags and SUBLET_* variables over it, all from the one table tbl/options.h. Pools and
 * bindings are in config_pool.h, further synced kinds in config_sync.h. Everything lives in the
 * arena given to config_load. */
#pragma once

#include <sublet/json.h>
#include <sublet/pod_security.h>
#include <sublet/rational.h>

struct config_pool;
struct config_binding;
struct config_to_host;
struct config_from;
struct config_kubeconfig;

enum config_verdict { VERDICT_OFF, VERDICT_WARN, VERDICT_ENFORCE };
enum config_tolerations { TOLERATIONS_DROP, TOLERATIONS_REFUSE };
enum config_prices { PRICES_NEVER, PRICES_DRY_RUN, PRICES_ALWAYS };

/* `authentication.jwt[]`: whose tokens name users, as in kube-apiserver's
 * AuthenticationConfiguration. Strings are empty where nothing was given. */
struct config_claim {
    struct str claim, prefix;
};
struct config_claim_rule {
    struct str claim, value;
};
struct config_issuer {
    struct str url, discovery_url, certificate_authority; /* the latter PEM */
    struct str_list audiences;                            /* one of them must be in a token's */
    bool match_any;
    struct config_claim username, groups;
    struct str uid_claim;
    const struct config_claim_rule *rules;
    size_t n_rules;
};

struct config {
    struct arena *arena;
    const cJSON *tree; /* merged: file, then environment, then flags */
    struct str name;   /* the virtual cluster */
    struct str host_namespace, host_kubeconfig, service_namespace, pod_service_account;
    struct str listen_address;    /* "0.0.0.0:8443" */
    struct str_list listen_names; /* further names of the serving certificate */
    int64_t certificate_life_ms;
    struct str data_dir, cluster_domain; /* store.path; "cluster.local" */
    struct str api_address; /* address at which pods reach this API: IP of the host Service; empty:
                               found on the host, or the listen address */
    struct str dns_listen, dns_address;
    struct str_list dns_forwarders, dns_stubs, dns_hosts, dns_aliases, dns_hidden, dns_searches,
        dns_clients;
    int64_t dns_cache, dns_forward_rate;
    enum config_verdict verdict;
    int64_t verdict_timeout_ms;
    enum pod_security_level pod_security;
    struct str_list labels_allow, annotations_allow, webhook_urls; /* keys; "prefix/": all below */
    struct str_list labels_up, annotations_up; /* the same, of what the host writes */
    enum config_tolerations tolerations;       /* what happens to those that no pool grants */
    enum config_prices price_warnings;         /* when a tenant is warned of what pods cost */
    struct str_list cpu_nodes;       /* "key=value": labels of nodes for pods without devices */
    struct str_list plain_resources; /* extended resources that are no devices */
    struct str_list node_labels;     /* what else of a host node's labels a tenant sees */
    bool controllers_native;
    int64_t host_qps, host_burst, host_dry_qps, max_failed_pods, max_services;
    bool pull_always;        /* policy.imagePullPolicy */
    int64_t pods_per_minute; /* created without devices; 0: no limit */
    struct str log_level;
    bool fleet_bindings; /* GPUBindings of the host namespace are followed: config_bound.h */
    int64_t lend_after_ms;
    const struct config_pool *pools;
    size_t n_pools;
    const struct config_binding *bindings;
    size_t n_bindings;
    const struct config_from *from; /* sync.fromHost: config_sync_from.h */
    size_t n_from;
    bool nodes_per_pool;       /* one node for each pool, in place of the host's */
    bool kubelets;             /* nodes/proxy is served */
    int64_t kubelet_addresses; /* ... and at so many addresses of nodes */
    bool metrics_from_host;    /* metrics.k8s.io is served */
    bool metrics_whole_nodes;  /* of a node: what the host measures; else the tenant's own pods */
    int64_t max_objects, max_bytes;
    int64_t history_events, history_bytes, history_ms, history_memory;
    int64_t lease_duration_ms;
    bool lease_away_read_only;
    bool grants, grants_kai_queues, grants_device_claims; /* of `sublet fleet`, all five */
    int64_t grants_grace_ms, grants_pause_ms;
#define CONFIG_GRANTS_LABELS      16
#define CONFIG_GRANTS_LABELS_TEXT "16"
    struct str_list grants_labels;
    struct str ledger_postgres; /* of `sublet fleet`: a file */
    bool dcgm;                  /* telemetry.dcgm of `sublet fleet` */
    struct str dcgm_namespace, dcgm_selector, dcgm_path, dcgm_idle_below_text;
    struct rational dcgm_idle_below; /* of that */
    int64_t dcgm_port, dcgm_interval_ms, dcgm_idle_after_ms;
    struct str telemetry_fleet, telemetry_fleet_ca, telemetry_fleet_token; /* URL; files */
    bool lease_force; /* of `sublet serve --force`: no option, since it must not persist */
    struct str_list storage_classes;      /* of PVCs; the first is the default; empty: any */
    const struct config_to_host *to_host; /* config_sync.h; never NULL once loaded */
    const cJSON *manifests;               /* init.manifests: objects with names; NULL: none */
    const struct config_issuer *issuers;  /* authentication.jwt */
    size_t n_issuers;
    bool anonymous_refused;          /* who shows nothing is 401 */
    struct str_list anonymous_paths; /* else: open to anonymous requests; n == 0: all paths */
    struct str audit_policy, audit_policy_file, audit_path;   /* YAML; path; path or "-" */
    int64_t audit_max_size, audit_max_backups, audit_max_age; /* bytes; files; days */
    bool audit_refuse;
    int64_t max_mutating, max_reading, max_watches, max_watches_all, memory_limit,
        request_timeout_ms;
    struct str kubeconfig_server;  /* "https://research.gpu.example"; empty: the listen address */
    struct str kubeconfig_context; /* empty: the name of the virtual cluster */
    const struct config_kubeconfig *kubeconfigs; /* config_kubeconfig.h */
    size_t n_kubeconfigs;
};

/* The options of tbl/options.h, generic: for --help, the reference page and values.schema.json. */
enum option_type {
    OPTION_STRING,
    OPTION_INT,
    OPTION_BOOL,
    OPTION_ENUM,
    OPTION_DURATION,
    OPTION_LIST,
    OPTION_QUANTITY
};
struct option {
    const char *path; /* "policy.verdict" */
    const char *flag; /* "--verdict", or NULL */
    const char *env;  /* "SUBLET_POLICY_VERDICT" */
    enum option_type type;
    const char *otherwise; /* default as a string */
    const char *values;    /* enum, string: "off|warn|enforce"; bool: words for false|true;
                              int, duration, quantity: "min..max"; "" for no bound */
    const char *help;
    size_t offset; /* in struct config */
};
extern const struct option CONFIG_OPTIONS[];
extern const size_t CONFIG_N_OPTIONS;

/* file may be empty; args as in argv after the command (`--config F` is skipped: the caller
 * read it). Flags win over SUBLET_* variables, variables over the file; unknown variables are
 * ignored (a host Service called "sublet" makes some). Errors are BAD_REQUEST and name the place:
 * `config: pools[0].mode: unknown value "fast": want one of exclusive|mig|...`; unknown keys are
 * errors. */
int config_load(struct arena *a, struct str file_text, int argc, char *const *argv,
                char *const *environ_, struct config *ret, struct err *err) MUST_CHECK;
void config_help(struct buf *b, const char *command);
