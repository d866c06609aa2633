/* SPDX-License-Identifier: Apache-2.0 */
/* What of a host pod was sent last. Why: policies of the host rewrite images, and a vertical
 * autoscaler resizes containers there; a value that differs from what the tenant wants is the
 * tenant's change only if it differs from what was sent as well. The record is two annotations,
 * since the API takes the images with their pod and a resize apart from it. Must never be read for
 * what the host pod has. */

#include <sublet/quantity.h>

#include "shape.h"

static const char *const LISTS[] = {"initContainers", "containers"};

/* All that may change in a running pod (pkg/apis/core/validation, ValidatePodResize). */
bool translate_pod_is_resizable(struct str name)
{
    return str_eqc(name, "cpu") || str_eqc(name, "memory");
}

/* ---- the record of a spec ---- */

static cJSON *quantities_of(struct arena *a, const cJSON *map)
{
    cJSON *ret = NULL;

    json_each(member, json_is_object(map) ? map : NULL)
    {
        if (!translate_pod_is_resizable(json_key(member)))
            continue;
        ret = ret ? ret : json_new_object(a);
        object_add(a, ret, json_key(member), json_copy(a, member));
    }
    return ret;
}

static void note_resources(struct arena *a, cJSON *record, struct str name, const cJSON *resources)
{
    static const char *const maps[] = {"limits", "requests"};
    cJSON *of = NULL;

    for (size_t i = 0; i < COUNT(maps); i++) {
        cJSON *quantities = quantities_of(a, json_get(resources, maps[i]));

        if (!quantities)
            continue;
        of = of ? of : json_new_object(a);
        json_set(a, of, maps[i], quantities);
    }
    if (of)
        json_set(a, record, arena_cstr(a, name), of);
}

void translate_pod_sent_note(struct arena *a, cJSON *annotations, const cJSON *spec,
                             const cJSON *virtual_spec)
{
    cJSON *images = json_new_object(a), *resources = json_new_object(a);

    for (size_t i = 0; i < COUNT(LISTS); i++) {
        json_each(written, json_get(virtual_spec, LISTS[i]))
            json_set_str(a, images, arena_cstr(a, json_str(json_get(written, "name"))),
                         json_str(json_get(written, "image")));
        json_each(container, json_get(spec, LISTS[i])) note_resources(
            a, resources, json_str(json_get(container, "name")), json_get(container, "resources"));
    }
    note_resources(a, resources, STR(SENT_WHOLE), json_get(spec, "resources"));
    add_str(a, annotations, ANNOTATION_SENT_IMAGES, json_text(a, images));
    add_str(a, annotations, ANNOTATION_SENT_RESOURCES, json_text(a, resources));
}

/* ---- reading it ---- */

const cJSON *translate_sent_read(struct arena *a, const cJSON *host_now, const char *key)
{
    struct str text = json_str(json_get(json_path(host_now, "metadata.annotations"), key));
    cJSON *ret = NULL;

    if (!text.n || json_parse(a, text, &ret, NULL) || !json_is_object(ret))
        return NULL;
    return ret;
}

bool translate_sent_same_image(const struct sent *sent, struct str container, struct str image)
{
    struct str written = json_str(json_get_str(sent->written, container));

    image = written.n ? written : image;
    if (!sent->images)
        return !sent->changed;
    return str_eq(json_str(json_get_str(sent->images, container)), image);
}

bool translate_sent_same_quantity(const struct sent *sent, struct str container, const char *map,
                                  const cJSON *wanted)
{
    const cJSON *of = sent->resources ? json_get_str(sent->resources, container) : NULL;

    if (!sent->resources)
        return !sent->changed;
    return quantity_equal(sent->arena, json_get(json_get(of, map), wanted->string), wanted);
}
