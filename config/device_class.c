/* SPDX-License-Identifier: Apache-2.0 */
/* `pools[].deviceClasses`: the classes of devices that ResourceClaims may name in a pool of mode
 * dra, and what each device of them counts. Must never grant a class without a weight, nor
 * parameters of a driver that are not written out whole. */

#include "impl.h"

enum { MOST_CLASSES = 64, MOST_PARAMETERS = 64, MOST_ATTRIBUTES = 64 };

static int read_gpu_eq(const struct place *at, const cJSON *value, void *into)
{
    return place_rational(at, value, &((struct pool_device_class *)into)->gpu_eq);
}

static int read_per_claim(const struct place *at, const cJSON *value, void *into)
{
    return place_count(at, value, &((struct pool_device_class *)into)->per_claim);
}

static int read_name_of_driver(const struct place *at, const cJSON *value, struct str *ret)
{
    const char *why;

    if (place_string(at, value, ret))
        return -1;
    why = name_check_dns1123_subdomain(*ret);
    return why ? place_error(at, "\"%.*s\": %s", STR_F(*ret), why) : 0;
}

static int read_driver(const struct place *at, const cJSON *value, void *into)
{
    struct str driver;

    (void)into;
    return read_name_of_driver(at, value, &driver);
}

static int read_parameters(const struct place *at, const cJSON *value, void *into)
{
    (void)into;
    return json_is_object(value) ? 0 : config_wrong_type(at->err, at->path, "an object", value);
}

static const struct place_key DEVICE_CONFIG_KEYS[] = {
    {"driver", read_driver},
    {"parameters", read_parameters},
    {0},
};

static int read_config(const struct place *at, const cJSON *value, void *into)
{
    size_t i = 0;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    if (json_count(value) > MOST_PARAMETERS)
        return place_error(at, "at most %d", MOST_PARAMETERS);
    json_each(item, value)
    {
        struct place inner = place_item(at, i++);

        if (place_object(&inner, item, DEVICE_CONFIG_KEYS, NULL))
            return -1;
        if (!json_get(item, "driver") || !json_get(item, "parameters"))
            return place_error(&inner, "driver and parameters are needed");
    }
    ((struct pool_device_class *)into)->config = json_copy(at->arena, value);
    return 0;
}

/* ---- which devices of ResourceSlices are of the class: `sublet fleet` counts those ---- */

static int read_devices_driver(const struct place *at, const cJSON *value, void *into)
{
    return read_name_of_driver(at, value, &((struct pool_device_class *)into)->driver);
}

static int read_attributes(const struct place *at, const cJSON *value, void *into)
{
    const cJSON **ret = &((struct pool_device_class *)into)->attributes;

    if (place_map(at, value, ret))
        return -1;
    return json_count(*ret) > MOST_ATTRIBUTES ? place_error(at, "at most %d", MOST_ATTRIBUTES) : 0;
}

static const struct place_key DEVICES_KEYS[] = {
    {"driver", read_devices_driver},
    {"attributes", read_attributes},
    {0},
};

static int read_devices(const struct place *at, const cJSON *value, void *into)
{
    if (place_object(at, value, DEVICES_KEYS, into))
        return -1;
    return ((struct pool_device_class *)into)->driver.n ? 0 : place_error(at, "driver is needed");
}

static const struct place_key DEVICE_CLASS_KEYS[] = {
    {"gpuEq", read_gpu_eq},
    {"perClaim", read_per_claim},
    {"config", read_config},
    {"devices", read_devices},
    {0},
};

static int read_class(const struct place *at, const cJSON *value, struct pool_device_class *ret)
{
    const char *why = name_check_dns1123_subdomain(ret->name);

    if (why)
        return place_error(at, "%s", why);
    ret->gpu_eq = (struct rational){-1, 1};
    if (place_object(at, value, DEVICE_CLASS_KEYS, ret))
        return -1;
    if (ret->gpu_eq.num < 0)
        return place_error(at, "gpuEq is needed");
    if (ret->gpu_eq.num == 0 && !ret->per_claim)
        return place_error(at, "perClaim is needed with gpuEq 0: what no quota counts has a cap");
    return 0;
}

int config_read_device_classes(const struct place *at, const cJSON *value, struct config_pool *pool)
{
    struct pool_device_class *list;

    if (json_is_array(value) && json_count(value) == 0)
        return 0;
    if (!json_is_object(value))
        return config_wrong_type(at->err, at->path, "an object", value);
    if (json_count(value) > MOST_CLASSES)
        return place_error(at, "at most %d", MOST_CLASSES);
    list = arena_alloc(at->arena, (json_count(value) + 1) * sizeof *list);
    pool->device_classes = list;
    json_each(member, value)
    {
        struct place inner = place_member(at, member->string);
        struct pool_device_class class = {.name = arena_str(at->arena, json_key(member))};

        if (read_class(&inner, member, &class))
            return -1;
        list[pool->n_device_classes++] = class;
    }
    return 0;
}
