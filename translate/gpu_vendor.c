/* SPDX-License-Identifier: Apache-2.0 */
/* The variables by which vendors' container runtimes hand out devices, and the resources that grant
 * each. Why: an image may carry such a variable in its own ENV, so a container gets an explicit
 * "void" for every one of them that the resources it is given do not grant. Variables that only
 * choose among the devices a container has (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES,
 * ASCEND_RT_VISIBLE_DEVICES) are not here: they hand out nothing. Must never match a resource that
 * is no accelerator: network cards and the like have their vendors' domains, too.
 *
 * All of these runtimes take "void" for no device: NVIDIA and Ascend by their documentation, the
 * others because they take only "all", indexes and ids for devices. */

#include <string.h>

#include <sublet/fraction.h>
#include <sublet/vgpu.h>

#include "pool.h"

static const struct {
    const char *variable;
    const char *resources; /* host names, by '|'; a trailing '*' stands for all that begin so */
} VENDORS[] = {
    {"NVIDIA_VISIBLE_DEVICES",
     "nvidia.com/gpu|nvidia.com/gpu.shared|nvidia.com/mig-*|nvidia.com/vgpu|volcano.sh/vgpu-number|"
     "k8s.amazonaws.com/vgpu|" VGPU_HAMI_CORES "|volcano.sh/vgpu-cores|" FRACTION_RESOURCE},
    /* A channel joins a memory domain of several machines: only a pool that names it grants it. */
    {"NVIDIA_IMEX_CHANNELS", ""},
    {"AMD_VISIBLE_DEVICES", "amd.com/gpu*|amd.com/spx_*|amd.com/dpx_*|amd.com/qpx_*|amd.com/cpx_*"},
    {"HABANA_VISIBLE_DEVICES", "habana.ai/*"},
    {"ASCEND_VISIBLE_DEVICES", "huawei.com/Ascend*|huawei.com/npu*"},
    {"MTHREADS_VISIBLE_DEVICES", "mthreads.com/*"},
    {"CAMBRICON_VISIBLE_DEVICES", "cambricon.com/*"},
    {"IX_VISIBLE_DEVICES", "iluvatar.ai/*|iluvatar.com/*"},
    {"METAX_VISIBLE_DEVICES", "metax-tech.com/*"},
    {"ENFLAME_VISIBLE_DEVICES", "enflame.com/*"},
};
enum { N_VENDORS = COUNT(VENDORS) };

static bool pattern_matches(const char *patterns, struct str resource)
{
    struct str rest = str_c(patterns);

    while (rest.n) {
        struct str one = str_cut(&rest, '|');

        if (str_has_suffix(one, STR("*")) ? str_has_prefix(resource, str_sub(one, 0, one.n - 1))
                                          : str_eq(resource, one))
            return true;
    }
    return false;
}

struct str_list gpu_variables(struct arena *a, const struct config *config)
{
    size_t n = 0, most = N_VENDORS;
    struct str *names;

    for (size_t i = 0; i < config->n_pools; i++) {
        for (size_t k = 0; k < config->pools[i].n_resources; k++)
            most += config->pools[i].resources[k].variables.n;
    }
    names = arena_alloc(a, most * sizeof *names);
    for (size_t i = 0; i < N_VENDORS; i++)
        names[n++] = str_c(VENDORS[i].variable);
    for (size_t i = 0; i < config->n_pools; i++) {
        for (size_t k = 0; k < config->pools[i].n_resources; k++) {
            struct str_list more = config->pools[i].resources[k].variables;

            for (size_t j = 0; j < more.n; j++) {
                if (!str_list_has((struct str_list){names, n}, more.items[j]))
                    names[n++] = more.items[j];
            }
        }
    }
    return (struct str_list){names, n};
}

bool gpu_is_variable(const struct config *config, struct str name)
{
    for (size_t i = 0; i < N_VENDORS; i++) {
        if (str_eqc(name, VENDORS[i].variable))
            return true;
    }
    for (size_t i = 0; i < config->n_pools; i++) {
        for (size_t k = 0; k < config->pools[i].n_resources; k++) {
            if (str_list_has(config->pools[i].resources[k].variables, name))
                return true;
        }
    }
    return false;
}

bool gpu_variable_begins(const struct config *config, struct str prefix)
{
    for (size_t i = 0; i < N_VENDORS; i++) {
        if (str_has_prefix(str_c(VENDORS[i].variable), prefix))
            return true;
    }
    for (size_t i = 0; i < config->n_pools; i++) {
        for (size_t k = 0; k < config->pools[i].n_resources; k++) {
            struct str_list more = config->pools[i].resources[k].variables;

            for (size_t j = 0; j < more.n; j++) {
                if (str_has_prefix(more.items[j], prefix))
                    return true;
            }
        }
    }
    return false;
}

bool gpu_resource_grants(const struct pool_resource *resource, struct str variable)
{
    if (str_list_has(resource->variables, variable))
        return true;
    for (size_t i = 0; i < N_VENDORS; i++) {
        if (str_eqc(variable, VENDORS[i].variable))
            return pattern_matches(VENDORS[i].resources, resource->host_name);
    }
    return false;
}
