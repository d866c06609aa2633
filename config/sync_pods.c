/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost.pods`: what the host's pods have in place of what the tenant wrote, or where it
 * wrote nothing. Must never take a class of the system for a default. */

#include <sublet/config_pool.h>
#include <sublet/config_sync.h>

#include "impl.h"

enum { MOST_IMAGES = 1024, MOST_TOLERATIONS = 16 };

/* Upstream judges an image by no more than this. */
static bool image_valid(struct str image)
{
    if (!image.n)
        return false;
    for (size_t i = 0; i < image.n; i++)
        if ((unsigned char)image.p[i] <= ' ' || image.p[i] == '\x7f')
            return false;
    return true;
}

static int pods_images(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;

    if (place_map(at, value, &to->images))
        return -1;
    if (json_count(to->images) > MOST_IMAGES)
        return place_error(at, "at most %d", MOST_IMAGES);
    json_each(member, to->images)
    {
        struct place inner = place_member(at, member->string);

        if (!image_valid(json_key(member)) || !image_valid(json_str(member)))
            return place_error(&inner, "want an image for an image, such as "
                                       "\"nginx:1.29\": \"mirror.example/nginx:1.29\"");
        if (str_has_suffix(json_key(member), STR("/")) !=
                str_has_suffix(json_str(member), STR("/")) ||
            str_has_prefix(json_key(member), STR("/")))
            return place_error(&inner,
                               "want a prefix for a prefix, both with a slash at the end, such as "
                               "\"docker.io/\": \"mirror.example/hub/\"");
    }
    return 0;
}

static int read_class(const struct place *at, const cJSON *value, struct str *ret)
{
    const char *why;

    if (place_string(at, value, ret))
        return -1;
    why = ret->n ? name_check_dns1123_subdomain(*ret) : NULL;
    return why ? place_error(at, "\"%.*s\": %s", STR_F(*ret), why) : 0;
}

static int pods_runtime_class(const struct place *at, const cJSON *value, void *into)
{
    return read_class(at, value, &((struct config_to_host *)into)->pod_runtime_class);
}

static int pods_priority_class(const struct place *at, const cJSON *value, void *into)
{
    struct str *class = &((struct config_to_host *)into)->pod_priority_class;

    if (read_class(at, value, class))
        return -1;
    if (str_has_prefix(*class, STR("system-")))
        return place_error(at, "\"%.*s\": a class of the host's system is never a tenant's",
                           STR_F(*class));
    return 0;
}

/* Taints that say what a node is, or how it is: no pod of a tenant is kept there against them. */
static const char *const NEVER_TOLERATED[] = {
    "sublet.dev/",
    "node.kubernetes.io/",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
};

static const char *check_tolerated(struct str key)
{
    const char *why = name_check_qualified(key);

    for (size_t i = 0; !why && i < COUNT(NEVER_TOLERATED); i++)
        if (str_has_prefix(key, str_c(NEVER_TOLERATED[i])))
            why = "a taint with this key is never tolerated by every pod";
    return why;
}

static const char *check_effect(struct str effect)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};

    for (size_t i = 0; i < COUNT(effects); i++)
        if (str_eqc(effect, effects[i]))
            return NULL;
    return "want KEY, KEY:EFFECT, KEY=VALUE or KEY=VALUE:EFFECT";
}

/* "key=value:NoSchedule"; without a value any, without an effect all. */
static int read_toleration(const struct place *at, struct str text, cJSON *list)
{
    struct str effect = text, value = str_cut(&effect, ':'), key = str_cut(&value, '=');
    const char *why = check_tolerated(key);
    cJSON *one = json_new_object(at->arena);

    if (!why && value.p)
        why = name_check_label_value(value);
    if (!why && effect.p)
        why = check_effect(effect);
    if (why)
        return place_error(at, "\"%.*s\": %s", STR_F(text), why);
    json_set_str(at->arena, one, "key", key);
    json_set_str(at->arena, one, "operator", value.p ? STR("Equal") : STR("Exists"));
    if (value.p)
        json_set_str(at->arena, one, "value", value);
    if (effect.p)
        json_set_str(at->arena, one, "effect", effect);
    json_append(list, one);
    return 0;
}

static int pods_tolerations(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    cJSON *list = json_new_array(at->arena);
    struct str_list texts;

    if (place_list(at, value, &texts))
        return -1;
    if (texts.n > MOST_TOLERATIONS)
        return place_error(at, "at most %d", MOST_TOLERATIONS);
    for (size_t i = 0; i < texts.n; i++) {
        struct place inner = place_item(at, i);

        if (read_toleration(&inner, texts.items[i], list))
            return -1;
    }
    to->tolerations = list;
    return 0;
}

/* Pods without devices would get onto the nodes of a pool. */
int config_check_tolerations(const struct place *at, const struct config *config)
{
    struct place pods = place_member(at, "pods"), inner = place_member(&pods, "enforceTolerations");

    json_each(one, config->to_host->tolerations)
    {
        struct str key = json_str(json_get(one, "key"));

        if (config_pools_tolerate(config, key))
            return place_error(&inner, "\"%.*s\": a pool has this toleration, for its own pods",
                               STR_F(key));
    }
    return 0;
}

static const struct place_key POD_KEYS[] = {
    {"enforceTolerations", pods_tolerations},
    {"translateImage", pods_images},
    {"runtimeClassName", pods_runtime_class},
    {"priorityClassName", pods_priority_class},
    {0},
};

int config_read_pods(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, POD_KEYS, into);
}
