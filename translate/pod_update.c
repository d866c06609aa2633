/* SPDX-License-Identifier: Apache-2.0 */
/* What of a running host pod may change. Why: the API allows little, webhooks and schedulers have
 * added to the pod since, and a patch that fights them never ends. So a patch holds only fields
 * that we own and that differ, lists start from their present items, and a patch of a list carries
 * the resourceVersion at which it was read. An image or a quantity is sent only if the tenant
 * changed it since it was sent last (pod_sent.c). */

#include <string.h>

#include <sublet/quantity.h>

#include "pod_marks.h"
#include "shape.h"

static const cJSON *named(const cJSON *list, struct str name)
{
    json_each(one, list)
    {
        if (str_eq(json_str(json_get(one, "name")), name))
            return one;
    }
    return NULL;
}

/* The present list with the images that the tenant changed; injected containers, and images that
 * the host rewrote, stay as they are. */
static cJSON *images_patch(const struct sent *sent, const cJSON *now, const cJSON *wanted)
{
    struct arena *a = sent->arena;
    cJSON *ret = json_copy(a, now);
    bool differs = false;

    json_each(container, ret)
    {
        struct str name = json_str(json_get(container, "name"));
        struct str image = json_str(json_get(named(wanted, name), "image"));

        if (!image.n || str_eq(image, json_str(json_get(container, "image"))) ||
            translate_sent_same_image(sent, name, image))
            continue;
        json_set_str(a, container, "image", image);
        differs = true;
    }
    return differs ? ret : NULL;
}

/* A toleration may be added, never removed: the present tolerations and the added ones. */
static cJSON *tolerations_patch(const struct sent *sent, const cJSON *now, const cJSON *wanted)
{
    struct arena *a = sent->arena;
    cJSON *ret = json_is_array(now) ? json_copy(a, now) : json_new_array(a);
    bool differs = false;

    json_each(toleration, wanted)
    {
        bool there = false;

        json_each(one, now)
        {
            there |= json_equal(one, toleration);
        }
        if (there)
            continue;
        json_append(ret, json_copy(a, toleration));
        differs = true;
    }
    return differs ? ret : NULL;
}

/* A deadline may be set and shortened. */
static cJSON *deadline_patch(const struct sent *sent, const cJSON *now, const cJSON *wanted)
{
    int64_t have, want;

    if (!json_i64(wanted, &want))
        return NULL;
    return !json_i64(now, &have) || want < have ? json_new_i64(sent->arena, want) : NULL;
}

typedef cJSON *(*patch_cb)(const struct sent *sent, const cJSON *now, const cJSON *wanted);

static const struct {
    const char *key;
    patch_cb patch;
    bool list;
} FIELDS[] = {
    {"initContainers", images_patch, true},
    {"containers", images_patch, true},
    {"activeDeadlineSeconds", deadline_patch, false},
    {"tolerations", tolerations_patch, true},
};

static struct sent sent_of(struct arena *a, const cJSON *host_now, const cJSON *host_wanted,
                           bool changed)
{
    return (struct sent){.arena = a,
                         .images = translate_sent_read(a, host_now, ANNOTATION_SENT_IMAGES),
                         .resources = translate_sent_read(a, host_now, ANNOTATION_SENT_RESOURCES),
                         .written = translate_sent_read(a, host_wanted, ANNOTATION_SENT_IMAGES),
                         .changed = changed};
}

/* *lists: the patch has a list. */
static cJSON *spec_patch(const struct sent *sent, const cJSON *host_now, const cJSON *host_wanted,
                         bool *lists)
{
    struct arena *a = sent->arena;
    const cJSON *now = json_get(host_now, "spec"), *wanted = json_get(host_wanted, "spec");
    cJSON *spec = NULL;
    bool same = json_equal(now, wanted);

    for (size_t i = 0; !same && i < COUNT(FIELDS); i++) {
        cJSON *value =
            FIELDS[i].patch(sent, json_get(now, FIELDS[i].key), json_get(wanted, FIELDS[i].key));

        if (!value)
            continue;
        spec = spec ? spec : json_new_object(a);
        object_add(a, spec, str_c(FIELDS[i].key), value);
        *lists |= FIELDS[i].list;
    }
    return spec;
}

/* The record of quantities is written once pods/resize has taken them: until then the present one
 * stays. */
static const cJSON *without_pending(struct arena *a, const cJSON *host_now,
                                    const cJSON *host_wanted)
{
    const cJSON *now = json_path(host_now, "metadata.annotations");
    cJSON *ret = json_new_object(a), *metadata, *notes;

    metadata = json_set(a, ret, "metadata", json_copy(a, json_get(host_wanted, "metadata")));
    notes = json_get(metadata, "annotations");
    if (!json_get(notes, ANNOTATION_SENT_RESOURCES))
        return ret;
    now = json_get(now, ANNOTATION_SENT_RESOURCES);
    if (now)
        json_set(a, notes, ANNOTATION_SENT_RESOURCES, json_copy(a, now));
    else
        json_remove(notes, ANNOTATION_SENT_RESOURCES);
    return ret;
}

cJSON *translate_pod_update(struct arena *a, const cJSON *host_now, const cJSON *host_wanted,
                            bool changed)
{
    struct str version = json_str_at(host_now, "metadata.resourceVersion");
    struct sent sent = sent_of(a, host_now, host_wanted, changed);
    bool lists = false;
    cJSON *spec = spec_patch(&sent, host_now, host_wanted, &lists), *ret, *metadata;

    if (translate_pod_resize(a, host_now, host_wanted, changed))
        host_wanted = without_pending(a, host_now, host_wanted);
    host_wanted = translate_pod_without_queue(a, host_wanted);
    host_wanted = translate_pod_autoscaler_kept(a, host_now, host_wanted);
    ret = translate_service_update_patch(a, host_now, host_wanted, spec);
    if (!lists || !version.n)
        return ret;
    metadata = json_ensure_object(a, ret, "metadata");
    json_set_str(a, metadata, "resourceVersion", version);
    return ret;
}

cJSON *translate_pod_resized(struct arena *a, const cJSON *host_wanted)
{
    cJSON *ret = json_new_object(a);

    json_set_str(a, json_ensure_path(a, ret, "metadata.annotations"), ANNOTATION_SENT_RESOURCES,
                 json_str(json_get(json_path(host_wanted, "metadata.annotations"),
                                   ANNOTATION_SENT_RESOURCES)));
    return ret;
}

/* ---- is it the same pod? ---- */

static bool same_quantities(const cJSON *now, const cJSON *wanted)
{
    json_each(quantity, wanted)
    {
        if (!json_equal(json_get(now, quantity->string), quantity))
            return false;
    }
    return true;
}

static bool same_container(const cJSON *now, const cJSON *wanted)
{
    static const char *const keys[] = {"command", "args", "restartPolicy"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!json_equal(json_get(now, keys[i]), json_get(wanted, keys[i])))
            return false;
    }
    return same_quantities(json_path(now, "resources.limits"),
                           json_path(wanted, "resources.limits"));
}

bool translate_pod_is_made_of(const cJSON *host_now, const cJSON *host_wanted)
{
    static const char *const lists[] = {"initContainers", "containers"};

    for (size_t i = 0; i < COUNT(lists); i++) {
        const cJSON *now = json_get(json_get(host_now, "spec"), lists[i]);

        json_each(wanted, json_get(json_get(host_wanted, "spec"), lists[i]))
        {
            const cJSON *found = named(now, json_str(json_get(wanted, "name")));

            if (!found || !same_container(found, wanted))
                return false;
        }
    }
    return true;
}

/* ---- resize: its own subresource ---- */

/* The quantities that the tenant changed; of: the name of their container. */
static cJSON *quantities_patch(const struct sent *sent, struct str of, const char *map,
                               const cJSON *now, const cJSON *wanted)
{
    struct arena *a = sent->arena;
    cJSON *ret = NULL;

    json_each(member, json_is_object(wanted) ? wanted : NULL)
    {
        if (!translate_pod_is_resizable(json_key(member)) ||
            quantity_equal(a, json_get(now, member->string), member) ||
            translate_sent_same_quantity(sent, of, map, member))
            continue;
        ret = ret ? ret : json_new_object(a);
        object_add(a, ret, json_key(member), json_copy(a, member));
    }
    return ret;
}

/* Changed limits and requests, of a container or of the pod as a whole. */
static cJSON *resources_patch(const struct sent *sent, struct str of, const cJSON *now,
                              const cJSON *wanted)
{
    static const char *const maps[] = {"limits", "requests"};
    cJSON *ret = NULL;

    for (size_t i = 0; i < 2; i++) {
        cJSON *patch =
            quantities_patch(sent, of, maps[i], json_get(now, maps[i]), json_get(wanted, maps[i]));

        if (!patch)
            continue;
        ret = ret ? ret : json_new_object(sent->arena);
        object_add(sent->arena, ret, str_c(maps[i]), patch);
    }
    return ret;
}

static cJSON *whole_resize(const struct sent *sent, const cJSON *now, const cJSON *wanted)
{
    return resources_patch(sent, STR(SENT_WHOLE), now, wanted);
}

/* Of the containers both have, those that the tenant changed. */
static cJSON *containers_resize(const struct sent *sent, const cJSON *now, const cJSON *wanted)
{
    struct arena *a = sent->arena;
    cJSON *list = NULL, *one;

    json_each(container, wanted)
    {
        struct str name = json_str(json_get(container, "name"));
        const cJSON *have = named(now, name);
        cJSON *patch = have ? resources_patch(sent, name, json_get(have, "resources"),
                                              json_get(container, "resources"))
                            : NULL;

        if (!patch)
            continue;
        list = list ? list : json_new_array(a);
        one = json_append(list, json_new_object(a));
        add_str(a, one, "name", name);
        object_add(a, one, STR("resources"), patch);
    }
    return list;
}

cJSON *translate_pod_resize(struct arena *a, const cJSON *host_now, const cJSON *host_wanted,
                            bool changed)
{
    static const struct {
        const char *key;
        patch_cb patch;
    } parts[] = {
        {"initContainers", containers_resize},
        {"containers", containers_resize},
        {"resources", whole_resize},
    };
    const cJSON *now = json_get(host_now, "spec"), *wanted = json_get(host_wanted, "spec");
    struct sent sent = sent_of(a, host_now, host_wanted, changed);
    cJSON *spec = json_new_object(a), *ret = json_new_object(a);

    for (size_t i = 0; i < COUNT(parts); i++) {
        cJSON *patch =
            parts[i].patch(&sent, json_get(now, parts[i].key), json_get(wanted, parts[i].key));

        if (patch)
            object_add(a, spec, str_c(parts[i].key), patch);
    }
    if (!json_count(spec))
        return NULL;
    json_set(a, ret, "spec", spec);
    return ret;
}

bool translate_pod_is_applied(struct arena *a, const cJSON *host_now, const cJSON *host_wanted,
                              bool changed)
{
    struct sent sent = sent_of(a, host_now, host_wanted, changed);
    bool lists = false;

    return !spec_patch(&sent, host_now, host_wanted, &lists) &&
           !translate_pod_resize(a, host_now, host_wanted, changed);
}
