/* SPDX-License-Identifier: Apache-2.0 */
/* Events, in the versions v1 (stored) and events.k8s.io/v1: one object under two sets of names. */
#include "validate.h"

/* What differs between the two: name in v1, name in events.k8s.io/v1. */
static const struct {
    const char *core, *events;
} NAMES[] = {
    {"involvedObject", "regarding"},
    {"source", "deprecatedSource"},
    {"message", "note"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

static void rename_member(struct arena *a, cJSON *object, const char *from, const char *to)
{
    cJSON *member = json_get(object, from);

    if (!member)
        return;
    json_remove(object, to);
    member->string = arena_cstr(a, str_c(to));
}

void event_from_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].core, NAMES[i].events);
}

void event_to_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].events, NAMES[i].core);
}

/* ---- validation ---- */

/* Texts of events that have an eventTime. */
static const struct {
    const char *name;
    size_t max;
    bool required;
} TEXTS[] = {
    {"reportingInstance", 128, true},
    {"action", 128, true},
    {"reason", 128, true},
    {"message", 1024, false},
};

static void check_texts(struct field_errors *e, const cJSON *event)
{
    struct str reporter = json_str(json_get(event, "reportingComponent"));
    AT(p, NULL, "reportingComponent");

    check_given(e, p, reporter);
    check_rule(e, p, NAME_QUALIFIED, reporter);
    for (size_t i = 0; i < COUNT(TEXTS); i++) {
        struct str text = json_str(json_get(event, TEXTS[i].name));
        AT(at, NULL, TEXTS[i].name);

        if (TEXTS[i].required)
            check_given(e, at, text);
        if (text.n > TEXTS[i].max)
            field_invalid_str(
                e, at, STR(""),
                arena_printf(e->arena, "can have at most %zu characters", TEXTS[i].max).p);
    }
}

/* Events of both versions are checked as those of v1 always were. */
static void event_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str about = json_str_at(object, "involvedObject.namespace");
    bool timed = given(object, "eventTime") != NULL, fits = str_eq(ns, about);

    (void)old;
    if (!about.n)
        fits = str_eqc(ns, "default") || (timed && str_eqc(ns, "kube-system"));
    if (!fits && (!timed || !about.n))
        field_invalid_str(e, FIELD(FIELD(NULL, "involvedObject"), "namespace"), about,
                          "does not match event.namespace");
    if (timed)
        check_texts(e, object);
    check_rule(e, FIELD(NULL, "namespace"), NAME_DNS1123_SUBDOMAIN, ns);
}

/* Upstream does not look at names of events. */
static const char *event_name(struct str name)
{
    return name_check_path_segment(name);
}

const struct kind_ops EVENT_OPS = {
    .validate = event_validate,
    .check_name = event_name,
    .cells = cells_event,
};
