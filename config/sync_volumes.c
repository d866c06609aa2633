/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost.persistentVolumes`: the CSI drivers of the host for whose volumes a tenant may write
 * PersistentVolumes, and which volumes these are. Must never list a driver without the handles of
 * its volumes: a handle is all that a driver needs to find the data of any tenant. */

#include <sublet/config_sync.h>

#include "impl.h"

enum { MOST_DRIVERS = 64, MOST_VOLUMES = 1000, DEFAULT_VOLUMES = 16 };

/* Of the volumes that show where the claims of a tenant are stored (syncer/objects/claims.c). */
#define DRIVER_OF_CLAIMS "host.sublet.dev"

static int driver_handles(const struct place *at, const cJSON *value, void *into)
{
    return config_read_values(at, value, &((struct config_driver *)into)->handles.values);
}

static int driver_attributes(const struct place *at, const cJSON *value, void *into)
{
    return config_read_choices(at, value, &((struct config_driver *)into)->attributes);
}

static int driver_mount_options(const struct place *at, const cJSON *value, void *into)
{
    return place_words(at, value, &((struct config_driver *)into)->mount_options);
}

static int driver_topology_keys(const struct place *at, const cJSON *value, void *into)
{
    return config_read_topology_keys(at, value, &((struct config_driver *)into)->topology_keys);
}

static const struct place_key DRIVER_KEYS[] = {
    {"volumeHandles", driver_handles},
    {"volumeAttributes", driver_attributes},
    {"mountOptions", driver_mount_options},
    {"topologyKeys", driver_topology_keys},
    {0},
};

static int read_driver(const struct place *at, const cJSON *value, struct config_driver *driver)
{
    const char *why = name_check_dns1123_subdomain(driver->handles.key);

    if (why)
        return place_error(at, "%s", why);
    if (str_eqc(driver->handles.key, DRIVER_OF_CLAIMS))
        return place_error(at, "is the driver of the volumes that claims of the host have");
    if (!json_is_null(value) && place_object(at, value, DRIVER_KEYS, driver))
        return -1;
    if (!driver->handles.values.n)
        return place_error(at, "volumeHandles is needed: a volume is found by its handle, "
                               "whoever's it is");
    return 0;
}

static int volume_drivers(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct config_driver *all;

    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    if (json_count(value) > MOST_DRIVERS)
        return place_error(at, "at most %d", MOST_DRIVERS);
    all = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*all));
    to->drivers = all;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct config_driver *one = &all[to->n_drivers++];

        *one = (struct config_driver){.handles.key = arena_str(at->arena, json_key(member))};
        if (read_driver(&inner, member, one))
            return -1;
    }
    return 0;
}

static int volumes_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct config_to_host *)into)->enabled[DOWN_VOLUMES]);
}

static int volumes_max(const struct place *at, const cJSON *value, void *into)
{
    int64_t *ret = &((struct config_to_host *)into)->max_volumes;

    if (place_count(at, value, ret))
        return -1;
    return *ret >= 1 && *ret <= MOST_VOLUMES ? 0 : place_error(at, "want 1 to %d", MOST_VOLUMES);
}

static const struct place_key VOLUME_KEYS[] = {
    {"enabled", volumes_enabled},
    {"max", volumes_max},
    {"drivers", volume_drivers},
    {0},
};

int config_read_volumes(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;

    to->max_volumes = DEFAULT_VOLUMES;
    if (place_object(at, value, VOLUME_KEYS, into))
        return -1;
    if (to->enabled[DOWN_VOLUMES] && !to->n_drivers)
        return place_error(at, "drivers is needed: without it no PersistentVolume could go down");
    return 0;
}

const struct config_driver *config_driver_of(const struct config_to_host *to, struct str name)
{
    for (size_t i = 0; i < to->n_drivers; i++)
        if (str_eq(to->drivers[i].handles.key, name))
            return &to->drivers[i];
    return NULL;
}
