/* SPDX-License-Identifier: Apache-2.0 */
/* Between the version an object is stored in and another that serves it. Must lose nothing: what a
 * version cannot say goes where upstream puts it. */
#include "impl.h"

static const struct {
    const char *api_version;
    void (*from_storage)(struct arena *a, cJSON *object);
    void (*to_storage)(struct arena *a, cJSON *object);
} CONVERSIONS[] = {
    {"autoscaling/v1", autoscaler_from_storage, autoscaler_to_storage},
    {"events.k8s.io/v1", event_from_storage, event_to_storage},
};

void kinds_convert(struct arena *a, const struct resource *r, cJSON *object)
{
    for (size_t i = 0; i < COUNT(CONVERSIONS); i++) {
        if (str_eqc(r->api_version, CONVERSIONS[i].api_version))
            CONVERSIONS[i].from_storage(a, object);
    }
    json_set_str(a, object, "apiVersion", r->api_version);
}

void kinds_convert_to_storage(struct arena *a, const struct resource *r, cJSON *object)
{
    for (size_t i = 0; i < COUNT(CONVERSIONS); i++) {
        if (str_eqc(r->api_version, CONVERSIONS[i].api_version))
            CONVERSIONS[i].to_storage(a, object);
    }
    json_set_str(a, object, "apiVersion", r->storage_version);
}

const char *kinds_unreadable(struct arena *a, const struct resource *r, const cJSON *body)
{
    return r->ops == &DAEMON_SET_OPS ? daemon_set_unreadable(a, body) : NULL;
}
