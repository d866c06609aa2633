/* SPDX-License-Identifier: Apache-2.0
 * room: config (private)
 *
 * What the files of this room share. Must never be included outside it. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/selector.h>

struct config_choices;

/* ---- place.c: readers of nested objects ---- */

/* A place in the configuration: "config: pools[0].caps". */
struct place {
    struct arena *arena;
    struct str path;
    struct err *err;
};

/* One key of an object: its reader receives the value, the place of the value and the draft it
 * fills in. */
struct place_key {
    const char *key;
    int (*read)(const struct place *at, const cJSON *value, void *into);
};
struct place place_member(const struct place *at, const char *key);
struct place place_item(const struct place *at, size_t index);
/* Passes every member to its reader. Unknown keys and values that are no objects are errors; a null
 * is skipped. */
int place_object(const struct place *at, const cJSON *value, const struct place_key *keys,
                 void *into);
int place_error(const struct place *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

int place_string(const struct place *at, const cJSON *value, struct str *ret);
int place_bool(const struct place *at, const cJSON *value, bool *ret);
int place_word(const struct place *at, const cJSON *value, const char *words, int *ret);
int place_count(const struct place *at, const cJSON *value, int64_t *ret);
int place_seconds(const struct place *at, const cJSON *value, int64_t *ret);
/* "4", "1/7" or a number; never negative. */
int place_rational(const struct place *at, const cJSON *value, struct rational *ret);
/* Strings. */
int place_list(const struct place *at, const cJSON *value, struct str_list *ret);
/* Strings to strings. */
int place_map(const struct place *at, const cJSON *value, const cJSON **ret);

/* ---- options.c: the option table ---- */

/* The string of a flag, a variable or a default, as the node the file would hold. where names its
 * origin. */
int option_node(struct arena *a, const struct option *option, struct str where, struct str text,
                cJSON **ret, struct err *err) MUST_CHECK;
/* Checks a node against the option and stores it into the config; a null is skipped. */
int option_store(struct arena *a, const struct option *option, struct str where, const cJSON *node,
                 struct config *config, struct err *err) MUST_CHECK;
/* An array of strings as a list. */
int config_read_list(struct arena *a, struct str where, const cJSON *node, struct str_list *ret,
                     struct err *err) MUST_CHECK;
/* `where: want a string, got number`. */
int config_wrong_type(struct err *err, struct str where, const char *want, const cJSON *got);
/* `where: unknown value "x": want one of a|b`. */
int config_wrong_word(struct err *err, struct str where, struct str got, const char *words);

/* ---- the parts that are no options ---- */

struct config_host_patches;
struct config_patches;

extern const char CONFIG_MODES[]; /* "exclusive|mig|..." */
/* `pools:` and `bindings:` of the tree. */
int config_load_pools(struct arena *a, const cJSON *tree, struct config *config,
                      struct err *err) MUST_CHECK;
int config_load_bindings(const struct place *at, const cJSON *list,
                         struct config *config) MUST_CHECK;
/* One item of each, with everything that is checked of it alone; pool.c, binding.c. A binding's
 * pool is one of config->pools. */
int config_read_pool(const struct place *at, const cJSON *value, const struct config *config,
                     struct config_pool *ret) MUST_CHECK;
/* vgpu.c: what pools of HAMi and Volcano need, and only those may have. */
int config_check_vgpu(const struct place *at, const struct config_pool *p,
                      bool has_resources) MUST_CHECK;
int config_read_maintenance(const struct place *at, const cJSON *value,
                            struct config_maintenance *ret) MUST_CHECK;
int config_read_binding(const struct place *at, const cJSON *value, const struct config *config,
                        struct config_binding *ret) MUST_CHECK;
/* `deviceClasses` of a pool. device_class.c */
int config_read_device_classes(const struct place *at, const cJSON *value,
                               struct config_pool *pool) MUST_CHECK;
/* `policy.webhookUrls`; webhook_url.c */
int config_check_webhook_urls(const struct config *c, struct err *err) MUST_CHECK;
/* `telemetry:`, by its options; telemetry.c */
int config_check_telemetry(struct config *config, struct err *err) MUST_CHECK;
/* `authentication:` of the tree. It reads options: they must be loaded. */
int config_load_authentication(struct arena *a, const cJSON *tree, struct config *config,
                               struct err *err) MUST_CHECK;
/* `init:` of the tree. init.c */
int config_load_init(struct arena *a, const cJSON *tree, struct config *config,
                     struct err *err) MUST_CHECK;
/* `kubeconfig.additionalSecrets`. kubeconfig.c */
int config_load_kubeconfigs(struct arena *a, const cJSON *tree, struct config *config,
                            struct err *err) MUST_CHECK;
const char *config_context_check(struct str name); /* its problem; NULL: none */
bool config_url_valid(struct str url);             /* config.c */
/* Host names, and patterns such as "*.team.example". sync.c */
int config_read_hosts(const struct place *at, const cJSON *value, struct str_list *ret);
/* Parts of `sync.toHost`; into: a config_to_host. */
int config_read_pods(const struct place *at, const cJSON *value, void *into); /* sync_pods.c */
/* Is no toleration of every pod one of a pool's taint? The pools are read by then. */
int config_check_tolerations(const struct place *at, const struct config *config);
/* Patches of host objects of a kind whose spec they may change; of annotations alone.
 * sync_patches.c */
int config_read_host_patches(const struct place *at, const cJSON *value,
                             struct config_host_patches *ret);
int config_read_annotations(const struct place *at, const cJSON *value,
                            struct config_host_patches *ret);
/* Of what sync.fromHost shows: PATCH_VALUE and PATCH_DROP. sync.c */
int config_read_from_patches(const struct place *at, const cJSON *value,
                             struct config_patches *ret);
/* Names, `*` and `[*]` after each: "spec.rules[*].hosts[*]"; not of metadata or status. sync.c */
bool config_path_valid(struct str path);
/* sync_services.c */
int config_read_services(const struct place *at, const cJSON *value, void *into);
/* Is no alias the name of another Service of the chart? The name is read by then. */
int config_check_aliases(const struct place *at, const struct config *config);
/* sync_priority.c */
int config_read_priority_classes(const struct place *at, const cJSON *value, void *into);
/* sync_accounts.c */
int config_read_service_accounts(const struct place *at, const cJSON *value, void *into);
/* sync_storage.c */
int config_read_storage_classes(const struct place *at, const cJSON *value, void *into);
/* sync_volumes.c */
int config_read_volumes(const struct place *at, const cJSON *value, void *into);
/* Keys with the values that a tenant may give each. choices.c */
int config_read_choices(const struct place *at, const cJSON *value, struct config_choices *ret);
/* The values of one key. */
int config_read_values(const struct place *at, const cJSON *value, struct str_list *ret);
/* Labels of nodes by which storage names places. */
int config_read_topology_keys(const struct place *at, const cJSON *value, struct str_list *ret);
/* At most 64 strings. place.c */
int place_words(const struct place *at, const cJSON *value, struct str_list *ret);
/* `sync.toHost:` of the tree. */
int config_load_to_host(struct arena *a, const cJSON *tree, struct config *config,
                        struct err *err) MUST_CHECK;
/* `sync.fromHost` of the tree. */
int config_load_sync_from(struct arena *a, const cJSON *tree, struct config *config,
                          struct err *err) MUST_CHECK;
