/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps and Secrets. Why: they are what pods read. Must never hand the host a Secret of a type
 * a host controller acts on (it would mint a host token), nor a key that envFrom turns into a
 * variable that hands out devices. */

#include <string.h>

#include <sublet/encode.h>

#include "shape.h"

static bool is_refused(struct arena *a, const struct translate_tenant *t, const cJSON *member,
                       bool encoded)
{
    struct str value = json_str(member);

    return gpu_env_key_refused(t->config, json_key(member), STR_NULL) &&
           ((encoded && !base64_decode(a, value, &value)) ||
            gpu_env_key_refused(t->config, json_key(member), value));
}

/* A copy of a map of strings without refused keys. Values of a Secret are base64. */
static cJSON *data_down(struct arena *a, const struct translate_tenant *t, const cJSON *data,
                        bool encoded)
{
    cJSON *ret = json_new_object(a);

    json_each(member, data)
    {
        if (!json_is_string(member) || !json_is_object(data) || is_refused(a, t, member, encoded))
            continue;
        object_add(a, ret, json_key(member), json_new_string(a, json_str(member)));
    }
    return ret;
}

/* `immutable` stays with the tenant: a deleted and re-created object is an update on the host. */
static cJSON *object_down(struct arena *a, const struct translate_tenant *t, const cJSON *v,
                          const char *kind)
{
    cJSON *ret = json_new_object(a);
    char name[64];

    add_str(a, ret, "apiVersion", STR("v1"));
    add_str(a, ret, "kind", str_c(kind));
    translate_name(t, json_str_at(v, "metadata.namespace"), json_str_at(v, "metadata.name"), name);
    object_add(a, ret, STR("metadata"), translate_metadata(a, t, v, str_c(name)));
    return ret;
}

cJSON *translate_config_map(struct arena *a, const struct translate_tenant *t, const cJSON *v)
{
    cJSON *ret = object_down(a, t, v, "ConfigMap");

    if (json_count(json_get(v, "data")))
        object_add(a, ret, STR("data"), data_down(a, t, json_get(v, "data"), false));
    if (json_count(json_get(v, "binaryData")))
        object_add(a, ret, STR("binaryData"), data_down(a, t, json_get(v, "binaryData"), true));
    return ret;
}

/* Types whose content the host checks but on which nothing of the host acts. */
static struct str secret_type(struct str type)
{
    static const char *const kept[] = {"Opaque",
                                       "kubernetes.io/basic-auth",
                                       "kubernetes.io/dockercfg",
                                       "kubernetes.io/dockerconfigjson",
                                       "kubernetes.io/ssh-auth",
                                       "kubernetes.io/tls"};

    for (size_t i = 0; i < COUNT(kept); i++) {
        if (str_eqc(type, kept[i]))
            return type;
    }
    return STR("Opaque");
}

cJSON *translate_secret(struct arena *a, const struct translate_tenant *t, const cJSON *v)
{
    cJSON *ret = object_down(a, t, v, "Secret");

    add_str(a, ret, "type", secret_type(json_str(json_get(v, "type"))));
    if (json_count(json_get(v, "data")))
        object_add(a, ret, STR("data"), data_down(a, t, json_get(v, "data"), true));
    return ret;
}

void translate_data_warnings(struct arena *a, const struct translate_tenant *t, const cJSON *v,
                             void (*warn)(void *ctx, struct str text), void *ctx)
{
    static const char *const maps[] = {"data", "stringData", "binaryData"};
    bool secret = str_eqc(json_str(json_get(v, "kind")), "Secret");

    for (size_t i = 0; i < COUNT(maps); i++) {
        const cJSON *map = json_get(v, maps[i]);
        bool encoded = i == 0 ? secret : i == 2;

        json_each(member, json_is_object(map) ? map : NULL)
        {
            if (json_is_string(member) && is_refused(a, t, member, encoded))
                warn(ctx, arena_printf(a,
                                       "%s[%s] is left out of what pods get: devices are given by "
                                       "the scheduler, not by variables",
                                       maps[i], member->string));
        }
    }
}

cJSON *translate_data_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted)
{
    static const char *const maps[] = {"data", "binaryData"};
    cJSON *ret = translate_service_update_patch(a, host_now, host_wanted, NULL);

    for (size_t i = 0; i < 2; i++) {
        cJSON *patch = translate_map_patch(a, json_get(host_now, maps[i]),
                                           json_get(host_wanted, maps[i]), NULL, NULL);

        if (!patch)
            continue;
        ret = ret ? ret : json_new_object(a);
        object_add(a, ret, str_c(maps[i]), patch);
    }
    return ret;
}
