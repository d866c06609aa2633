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

/* Texts v1 always prints, and events.k8s.io/v1 only when there is something in them. */
static const char *const ALWAYS[] = {"reportingComponent", "reportingInstance"};

void event_from_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(ALWAYS); i++) {
        const cJSON *text = json_get(event, ALWAYS[i]);

        if (json_is_string(text) && !json_str(text).n)
            json_remove(event, ALWAYS[i]);
    }
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].core, NAMES[i].events);
}

void event_to_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].events, NAMES[i].core);
    for (size_t i = 0; i < COUNT(ALWAYS); i++)
        if (!json_get(event, ALWAYS[i]))
            json_set_str(a, event, ALWAYS[i], STR(""));
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

/* shown: what the version of the request calls the reporter. */
static void check_texts(struct field_errors *e, const cJSON *event, const char *shown)
{
    struct str reporter = json_str(json_get(event, "reportingComponent"));
    AT(p, NULL, shown);

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
static void check_event(struct field_errors *e, const cJSON *object, const char *shown)
{
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str about = json_str_at(object, "involvedObject.namespace");
    bool timed = given(object, "eventTime") != NULL, fits = str_eq(ns, about);

    if (!about.n)
        fits = str_eqc(ns, "default") || (timed && str_eqc(ns, "kube-system"));
    if (!fits && (!timed || !about.n))
        field_invalid_str(e, FIELD(FIELD(NULL, "involvedObject"), "namespace"), about,
                          "does not match event.namespace");
    if (timed)
        check_texts(e, object, shown);
    check_rule(e, FIELD(NULL, "namespace"), NAME_DNS1123_SUBDOMAIN, ns);
}

static void event_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    (void)old;
    check_event(e, object, "reportingComponent");
}

/* Upstream does not look at names of events. */
static const char *event_name(struct str name)
{
    return name_check_path_segment(name);
}

/* ---- events.k8s.io/v1: more is asked for, and little may change ---- */

static void check_series(struct field_errors *e, const cJSON *series)
{
    if (!series)
        return;
    if (json_i64_at(series, "count", 0) < 2)
        field_invalid_str(e, FIELD(NULL, "series.count"), STR(""), "should be at least 2");
    if (!given(series, "lastObservedTime"))
        field_required(e, FIELD(NULL, "series.lastObservedTime"), "");
}

static void check_unset(struct field_errors *e, const cJSON *event)
{
    const cJSON *source = json_get(event, "source");

    if (given(event, "firstTimestamp"))
        field_invalid_str(e, FIELD(NULL, "firstTimestamp"), STR(""), "needs to be unset");
    if (given(event, "lastTimestamp"))
        field_invalid_str(e, FIELD(NULL, "lastTimestamp"), STR(""), "needs to be unset");
    if (json_i64_at(event, "count", 0))
        field_invalid_str(e, FIELD(NULL, "count"), STR(""), "needs to be unset");
    if (json_str(json_get(source, "component")).n || json_str(json_get(source, "host")).n)
        field_invalid_str(e, FIELD(NULL, "source"), STR(""), "needs to be unset");
}

static void check_new_event(struct field_errors *e, const cJSON *event)
{
    struct str type = json_str(json_get(event, "type"));

    check_series(e, given(event, "series"));
    if (!given(event, "eventTime"))
        field_required(e, FIELD(NULL, "eventTime"), "");
    if (!str_eqc(type, "Normal") && !str_eqc(type, "Warning"))
        field_invalid_str(e, FIELD(NULL, "type"), STR(""),
                          arena_printf(e->arena, "has invalid value: %.*s", STR_F(type)).p);
    check_unset(e, event);
}

static void check_event_change(struct field_errors *e, const cJSON *event, const cJSON *old)
{
    /* Names of the stored version; a reporter is told by its name in the other. */
    static const struct {
        const char *name, *shown;
        bool text;
    } fixed[] = {
        {"involvedObject", "involvedObject", false},
        {"reason", "reason", true},
        {"message", "message", true},
        {"source", "source", false},
        {"firstTimestamp", "firstTimestamp", false},
        {"lastTimestamp", "lastTimestamp", false},
        {"count", "count", false},
        {"type", "type", true},
        {"eventTime", "eventTime", false},
        {"action", "action", true},
        {"related", "related", false},
        {"reportingComponent", "reportingController", true},
        {"reportingInstance", "reportingInstance", true},
    };

    if (!same_value(json_get(event, "series"), json_get(old, "series")))
        check_series(e, given(event, "series"));
    for (size_t i = 0; i < COUNT(fixed); i++) {
        const struct field_path *p = FIELD(NULL, fixed[i].shown);
        const cJSON *now = json_get(event, fixed[i].name), *was = json_get(old, fixed[i].name);

        if (fixed[i].text)
            check_immutable_text(e, p, now, was);
        else
            check_immutable(e, p, now, was);
    }
}

static void event_validate_strictly(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    check_event(e, object, "reportingController");
    if (old)
        check_event_change(e, object, old);
    else
        check_new_event(e, object);
}

const struct kind_ops STRICT_EVENT_OPS = {
    .validate = event_validate_strictly,
    .cells = cells_event,
};

const struct kind_ops EVENT_OPS = {
    .validate = event_validate,
    .check_name = event_name,
    .cells = cells_event,
};
