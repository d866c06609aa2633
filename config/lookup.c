/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in a loaded configuration. They are here because the parser and translate must agree on
 * what a pool offers. Must never change what was loaded. */

#include <string.h>

#include "impl.h"

const char CONFIG_MODES[] = "exclusive|mig|time-slicing|mps|kai-fraction|hami|volcano-vgpu|dra";

struct str config_mode_name(enum pool_mode mode)
{
    struct str rest = str_c(CONFIG_MODES), word = str_cut(&rest, '|');

    for (unsigned i = 0; i < (unsigned)mode; i++)
        word = str_cut(&rest, '|');
    return word;
}

const struct pool_resource *config_pool_resource(const struct config_pool *pool, struct str name)
{
    for (size_t i = 0; i < pool->n_resources; i++) {
        if (str_eq(pool->resources[i].name, name))
            return &pool->resources[i];
    }
    return NULL;
}

const struct pool_device_class *config_pool_device_class(const struct config_pool *pool,
                                                         struct str name)
{
    for (size_t i = 0; i < pool->n_device_classes; i++) {
        if (str_eq(pool->device_classes[i].name, name))
            return &pool->device_classes[i];
    }
    return NULL;
}

const struct config_binding *config_binding_of(const struct config *config, struct str pool)
{
    for (size_t i = 0; i < config->n_bindings; i++) {
        if (str_eq(config->bindings[i].pool->name, pool))
            return &config->bindings[i];
    }
    return NULL;
}

static bool pool_tolerates(const struct config_pool *pool, struct str key)
{
    json_each(toleration, pool->tolerations)
    {
        if (str_eq(json_str(json_get(toleration, "key")), key))
            return true;
    }
    for (size_t i = 0; i < pool->n_resources; i++) {
        if (str_eq(pool->resources[i].host_name, key)) /* the host's plugin adds it */
            return true;
    }
    return false;
}

bool config_pools_tolerate(const struct config *config, struct str key)
{
    for (size_t i = 0; i < config->n_pools; i++) {
        if (pool_tolerates(&config->pools[i], key))
            return true;
    }
    for (size_t i = 0; i < config->n_bindings; i++) { /* of the fleet's pools as well */
        if (pool_tolerates(config->bindings[i].pool, key))
            return true;
    }
    return false;
}

bool config_has_tiers(const struct config *config)
{
    for (size_t i = 0; i < config->n_bindings; i++) {
        if (json_count(config->bindings[i].pool->priority_tiers))
            return true;
    }
    return false;
}

struct str config_product_base(struct str product)
{
    if (str_has_suffix(product, STR("-SHARED")))
        product.n -= 7;
    for (size_t i = 0; i + 5 <= product.n; i++) {
        if (memcmp(product.p + i, "-MIG-", 5) == 0)
            return str_sub(product, 0, i);
    }
    return product;
}

bool config_pool_has_product(const struct config_pool *pool, struct str product)
{
    return pool->products.n == 0 || str_list_has(pool->products, config_product_base(product));
}

struct str config_cpu_node_value(const struct config *config, struct str key)
{
    for (size_t i = 0; i < config->cpu_nodes.n; i++) {
        struct str value = config->cpu_nodes.items[i];

        if (str_eq(str_cut(&value, '='), key))
            return value;
    }
    return STR_NULL;
}
