/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost.storageClasses`: the provisioners of the host for which a tenant may write classes
 * of its own, and what such a class may say. Must never permit a parameter or a mount option that
 * is not listed: they can name Secrets, pools and servers that are not the tenant's. */

#include <sublet/config_sync.h>

#include "impl.h"

enum { MOST_PROVISIONERS = 64, MOST_CLASSES = 1000, DEFAULT_CLASSES = 16 };

static int storage_parameters(const struct place *at, const cJSON *value, void *into)
{
    return config_read_choices(at, value, &((struct config_provisioner *)into)->parameters);
}

static int storage_mount_options(const struct place *at, const cJSON *value, void *into)
{
    return place_words(at, value, &((struct config_provisioner *)into)->mount_options);
}

static int storage_reclaim_policies(const struct place *at, const cJSON *value, void *into)
{
    struct str_list *ret = &((struct config_provisioner *)into)->reclaim_policies;

    if (place_words(at, value, ret))
        return -1;
    for (size_t i = 0; i < ret->n; i++) {
        struct place inner = place_item(at, i);

        if (!str_eqc(ret->items[i], "Delete") && !str_eqc(ret->items[i], "Retain"))
            return config_wrong_word(at->err, inner.path, ret->items[i], "Delete|Retain");
    }
    return 0;
}

static int storage_topology_keys(const struct place *at, const cJSON *value, void *into)
{
    return config_read_topology_keys(at, value,
                                     &((struct config_provisioner *)into)->topology_keys);
}

static const struct place_key PROVISIONER_KEYS[] = {
    {"parameters", storage_parameters},
    {"mountOptions", storage_mount_options},
    {"reclaimPolicies", storage_reclaim_policies},
    {"topologyKeys", storage_topology_keys},
    {0},
};

static int storage_provisioners(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct config_provisioner *all;

    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    if (json_count(value) > MOST_PROVISIONERS)
        return place_error(at, "at most %d", MOST_PROVISIONERS);
    all = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*all));
    to->provisioners = all;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct config_provisioner *one = &all[to->n_provisioners++];
        const char *why;

        *one = (struct config_provisioner){.name = arena_str(at->arena, json_key(member))};
        why = name_check_qualified(one->name);
        if (why)
            return place_error(&inner, "%s", why);
        if (str_eqc(one->name, "kubernetes.io/no-provisioner"))
            return place_error(&inner,
                               "makes no volumes: its claims would bind any volume made by hand");
        if (!json_is_null(member) && place_object(&inner, member, PROVISIONER_KEYS, one))
            return -1;
    }
    return 0;
}

static int storage_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct config_to_host *)into)->enabled[DOWN_STORAGE_CLASSES]);
}

static int storage_max(const struct place *at, const cJSON *value, void *into)
{
    int64_t *ret = &((struct config_to_host *)into)->max_storage_classes;

    if (place_count(at, value, ret))
        return -1;
    return *ret >= 1 && *ret <= MOST_CLASSES ? 0 : place_error(at, "want 1 to %d", MOST_CLASSES);
}

static const struct place_key STORAGE_KEYS[] = {
    {"enabled", storage_enabled},
    {"max", storage_max},
    {"provisioners", storage_provisioners},
    {0},
};

int config_read_storage_classes(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;

    to->max_storage_classes = DEFAULT_CLASSES;
    if (place_object(at, value, STORAGE_KEYS, into))
        return -1;
    if (to->enabled[DOWN_STORAGE_CLASSES] && !to->n_provisioners)
        return place_error(at, "provisioners is needed: without it no StorageClass could go down");
    return 0;
}

const struct config_provisioner *config_provisioner_of(const struct config_to_host *to,
                                                       struct str name)
{
    for (size_t i = 0; i < to->n_provisioners; i++)
        if (str_eq(to->provisioners[i].name, name))
            return &to->provisioners[i];
    return NULL;
}
