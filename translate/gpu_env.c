/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables and mounts that hand out devices. Why: with the common container runtimes a
 * variable is enough to get every GPU of a node, whatever the scheduler thought, and the kubelet
 * puts a pod's variables after those of the device plugin, so the tenant's would win. Must never
 * let a value through that is not known harmless: valueFrom hides the value, so it is refused. */

#include <string.h>

#include "pool.h"

#include <sublet/vgpu.h>

struct env_rule {
    const char *name;
    bool prefix;        /* every variable that begins so */
    bool shared_only;   /* matters only where software shares a GPU */
    const char *values; /* what may stand there, by commas; NULL: nothing */
};

/* Of a variable that names devices. */
static const struct env_rule NO_DEVICE = {"", false, false, "void|none"};

static const struct env_rule RULES[] = {
    {"NVIDIA_DRIVER_CAPABILITIES", false, false, "all|compute|compat32|graphics|ngx|utility|video"},
    {"NVIDIA_MIG_CONFIG_DEVICES", false, false, NULL},
    {"NVIDIA_MIG_MONITOR_DEVICES", false, false, NULL},
    {"NVIDIA_GDS", false, false, "disabled"},
    {"NVIDIA_GDRCOPY", false, false, "disabled"},
    {"NVIDIA_MOFED", false, false, "disabled"},
    {"NVIDIA_NVSWITCH", false, false, "disabled"},
    {"ASCEND_RUNTIME_", true, false, NULL},
    {"ASCEND_VNPU_SPECS", false, false, NULL},
    {"DOCKER_RESOURCE_", true, false, NULL}, /* AMD's and NVIDIA's, for Swarm */
    {"CUDA_DISABLE_CONTROL", false, true, NULL},
    {"CUDA_DEVICE_MEMORY_LIMIT", true, true, NULL},
    {"CUDA_DEVICE_SM_LIMIT", true, true, NULL},
    {"CUDA_DEVICE_MEMORY_SHARED_CACHE", false, true, NULL},
    {"CUDA_OVERSUBSCRIBE", false, true, NULL},
    {"CUDA_TASK_PRIORITY", false, true, NULL},
    {"ACTIVE_OOM_KILLER", false, true, NULL},
    {"CUDA_MPS_", true, true, NULL},
    {"GPU_CORE_UTILIZATION_POLICY", false, true, NULL},
    {"LD_PRELOAD", false, true, NULL},
};

static bool is_shared(enum pool_mode mode)
{
    return mode != POOL_EXCLUSIVE && mode != POOL_MIG;
}

static const struct env_rule *rule_for(const struct config *config, struct str name, bool shared)
{
    if (gpu_is_variable(config, name))
        return &NO_DEVICE;
    for (size_t i = 0; i < COUNT(RULES); i++) {
        const struct env_rule *rule = &RULES[i];

        if (rule->shared_only && !shared)
            continue;
        if (rule->prefix ? str_has_prefix(name, str_c(rule->name)) : str_eqc(name, rule->name))
            return rule;
    }
    return NULL;
}

/* Every word of a comma separated value must be known. An empty value has no effect, but an empty
 * list of devices differs between runtimes, so it is not a known word. */
static bool value_known(const struct env_rule *rule, struct str value)
{
    if (!rule->values || !value.n)
        return false;
    while (value.p) {
        if (str_word_index(rule->values, str_trim(str_cut(&value, ','))) < 0)
            return false;
    }
    return true;
}

bool gpu_env_refused(const struct config *config, const cJSON *env, enum pool_mode mode)
{
    const struct env_rule *rule =
        rule_for(config, json_str(json_get(env, "name")), is_shared(mode));

    if (!rule)
        return false;
    return json_get(env, "valueFrom") || !value_known(rule, json_str(json_get(env, "value")));
}

bool gpu_env_prefix_refused(const struct config *config, struct str prefix, enum pool_mode mode)
{
    if (!prefix.n)
        return false;
    if (gpu_variable_begins(config, prefix))
        return true;
    for (size_t i = 0; i < COUNT(RULES); i++) {
        struct str name = str_c(RULES[i].name);

        if (RULES[i].shared_only && !is_shared(mode))
            continue;
        if (str_has_prefix(name, prefix) || (RULES[i].prefix && str_has_prefix(prefix, name)))
            return true;
    }
    return false;
}

bool gpu_env_key_refused(const struct config *config, struct str key, struct str value)
{
    const struct env_rule *rule;
    bool shared = false;

    for (size_t i = 0; i < config->n_bindings; i++)
        shared |= is_shared(config->bindings[i].pool->mode);
    rule = rule_for(config, key, shared);
    return rule && !value_known(rule, value);
}

/* Lexically cleaned, as the runtime does: no "//", "/./" and "/x/../". Stops at n bytes. */
static size_t clean_path(struct str path, char *out, size_t size)
{
    size_t n = 0;

    while (path.p) {
        struct str part = str_cut(&path, '/');

        if (!part.n || str_eqc(part, "."))
            continue;
        if (str_eqc(part, "..")) {
            while (n && out[--n] != '/')
                ;
            continue;
        }
        if (n + 1 + part.n > size)
            break;
        out[n++] = '/';
        memcpy(out + n, part.p, part.n);
        n += part.n;
    }
    return n;
}

static bool is_within(struct str mount_path, const char *const *directories)
{
    char clean[4096];
    struct str path = {clean, clean_path(mount_path, clean, sizeof clean)};

    for (size_t i = 0; directories[i]; i++) {
        struct str directory = str_c(directories[i]);

        if (str_has_prefix(path, directory) &&
            (path.n == directory.n || path.p[directory.n] == '/'))
            return true;
    }
    return false;
}

bool gpu_mount_refused(struct str mount_path)
{
    static const char *const directories[] = {"/var/run/nvidia-container-devices",
                                              "/run/nvidia-container-devices", NULL};

    return is_within(mount_path, directories);
}

/* Source: HAMi 2.10.0, pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go; the plugin of
 * Volcano has the same library. */
bool gpu_mount_unlimits(struct str mount_path, enum pool_mode mode)
{
    static const char *const directories[] = {"/etc/ld.so.preload", "/usr/local/vgpu",
                                              "/tmp/vgpulock", NULL};

    return vgpu_system(mode) && is_within(mount_path, directories);
}
