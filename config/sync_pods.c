/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost.pods`: what the host's pods have in place of what the tenant wrote, or where it
 * wrote nothing. Must never take a class of the system for a default. */

#include <sublet/config_sync.h>

#include "impl.h"

enum { MOST_IMAGES = 1024 };

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

static const struct place_key POD_KEYS[] = {
    {"translateImage", pods_images},
    {"runtimeClassName", pods_runtime_class},
    {"priorityClassName", pods_priority_class},
    {0},
};

int config_read_pods(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, POD_KEYS, into);
}
