/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the host about our objects. Why: the host's scheduler and kubelet report why a pod does
 * not start. Must never show an Event about any other object of the host. */

#include <string.h>

#include "shape.h"

#include <sublet/json_build.h>

static const char *const KINDS[] = {"Pod",       "Service", "PersistentVolumeClaim",
                                    "ConfigMap", "Secret",  "ServiceAccount"};

/* Those of other groups are kinds that the configuration sends down: the caller knows the
 * object. */
static bool kind_shown(const cJSON *involved)
{
    struct str kind = json_str(json_get(involved, "kind"));
    struct str version = json_str(json_get(involved, "apiVersion"));

    if (str_find(version, '/') < version.n)
        return true;
    for (size_t i = 0; i < COUNT(KINDS); i++) {
        if (str_eqc(kind, KINDS[i]))
            return true;
    }
    return false;
}

/* The host's "<object>.<suffix>" under the virtual name; without a suffix, a hash of the whole
 * name. */
static struct str event_name(struct arena *a, struct str host_event, struct str name)
{
    size_t dot = str_rfind(host_event, '.');
    char hash[HASH_CHARS + 1];

    if (dot < host_event.n)
        return arena_printf(a, "%.*s.%.*s", STR_F(name), STR_F(str_from(host_event, dot + 1)));
    translate_hash(1, &host_event, hash);
    return arena_printf(a, "%.*s.%s", STR_F(name), hash);
}

static cJSON *involved_up(struct arena *a, const cJSON *from, struct str ns, struct str name,
                          struct str uid)
{
    return json_object(a, JSON_NONEMPTY("kind", json_str(json_get(from, "kind"))),
                       JSON_NONEMPTY("apiVersion", json_str(json_get(from, "apiVersion"))),
                       JSON_NONEMPTY("fieldPath", json_str(json_get(from, "fieldPath"))),
                       JSON("namespace", ns), JSON("name", name), JSON("uid", uid));
}

static const struct field SERIES_FIELDS[] = {
    {"count", FIELD_SCALAR},
    {"lastObservedTime", FIELD_SCALAR},
    {0},
};

static const struct field EVENT_FIELDS[] = {
    {"reason", FIELD_SCALAR},
    {"type", FIELD_SCALAR},
    {"action", FIELD_SCALAR},
    {"count", FIELD_SCALAR},
    {"firstTimestamp", FIELD_SCALAR},
    {"lastTimestamp", FIELD_SCALAR},
    {"eventTime", FIELD_SCALAR},
    {"series", FIELD_OBJECT, .fields = SERIES_FIELDS},
    {0},
};

/* ---- who says it ---- */

/* "ebs.csi.aws.com_ebs-csi-controller-7d9f_1f0c...": the name of a controller, followed by its own
 * pod. */
static struct str component_up(const cJSON *component)
{
    struct str name = json_str(component);

    return str_sub(name, 0, str_find(name, '_'));
}

/* A kubelet is named by the node of the pod. Other instances are pods and machines of the
 * administrator. */
static struct str kubelet_up(const struct translate_tenant *t, struct str node)
{
    struct str shown = t->node_up ? t->node_up(t->node_ctx, node) : STR_NULL;

    return shown.p ? shown : t->node_up ? STR("") : node;
}

static void reporter_up(struct arena *a, const struct translate_tenant *t, const cJSON *event,
                        cJSON *to)
{
    const cJSON *source = json_get(event, "source");
    struct str component = component_up(json_get(source, "component"));
    struct str reporting = component_up(json_get(event, "reportingComponent"));
    struct str instance = json_str(json_get(event, "reportingInstance"));
    cJSON *copy;

    if (json_is_object(source)) {
        copy = object_add(a, to, STR("source"), json_new_object(a));
        if (component.n)
            add_str(a, copy, "component", component);
        if (str_eqc(component, "kubelet") && json_str(json_get(source, "host")).n)
            add_str(a, copy, "host", kubelet_up(t, json_str(json_get(source, "host"))));
    }
    if (reporting.p)
        add_str(a, to, "reportingComponent", reporting);
    if (json_is_string(json_get(event, "reportingInstance")))
        add_str(a, to, "reportingInstance",
                str_eqc(reporting, "kubelet") ? kubelet_up(t, instance) : reporting);
}

static struct str component_of(const cJSON *event)
{
    struct str legacy = json_str_at(event, "source.component");

    return legacy.n ? legacy : json_str(json_get(event, "reportingComponent"));
}

cJSON *translate_event_up(struct arena *a, const struct translate_tenant *t,
                          const cJSON *host_event, struct str ns, struct str name, struct str uid)
{
    const cJSON *involved = json_get(host_event, "involvedObject");
    struct str host_name = json_str(json_get(involved, "name"));
    struct down d = {.arena = a, .tenant = t};
    struct str event, message;
    char expect[64];
    cJSON *ret;

    translate_name(t, ns, name, expect);
    if (!str_eqc(host_name, expect) || !kind_shown(involved) ||
        !str_eq(json_str(json_get(involved, "namespace")), t->host_namespace))
        return NULL;

    event = event_name(a, json_str_at(host_event, "metadata.name"), name);
    if (!translate_queue_event_up(t->config, component_of(host_event),
                                  json_str_at(host_event, "reason"), &message))
        message =
            translate_text_up(a, t, json_str(json_get(host_event, "message")), host_name, ns, name);
    ret = json_object(a, JSON("apiVersion", "v1"), JSON("kind", "Event"),
                      JSON("metadata", json_object(a, JSON("name", event), JSON("namespace", ns))),
                      JSON("involvedObject", involved_up(a, involved, ns, name, uid)),
                      JSON("message", message));
    shape_into(&d, EVENT_FIELDS, host_event, ret);
    reporter_up(a, t, host_event, ret);
    return ret;
}
