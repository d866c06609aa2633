/* SPDX-License-Identifier: Apache-2.0 */
/* Events, in the versions v1 (stored) and events.k8s.io/v1: one object under two sets of names.
 * Source: pkg/apis/core/validation/events.go. */
#include "../rules/kind.h"

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

/* Strings v1 always prints, and events.k8s.io/v1 only when they are not empty. */
static const char *const ALWAYS[] = {"reportingComponent", "reportingInstance"};

static void event_from_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(ALWAYS); i++) {
        const cJSON *text = json_get(event, ALWAYS[i]);

        if (json_is_string(text) && !json_str(text).n)
            json_remove(event, ALWAYS[i]);
    }
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].core, NAMES[i].events);
}

static void event_to_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].events, NAMES[i].core);
    for (size_t i = 0; i < COUNT(ALWAYS); i++)
        if (!json_get(event, ALWAYS[i]))
            json_set_str(a, event, ALWAYS[i], STR(""));
}

/* Strings of Events that have an eventTime. */
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
            field_invalid_str_printf(e, at, STR(""), "can have at most %zu characters",
                                     TEXTS[i].max);
    }
}

/* Events of both versions are checked as those of v1 always were. words: the reporter, as shown. */
static void check_event(const struct check *c, const struct rule *r)
{
    struct str ns = json_str_at(c->object, "metadata.namespace");
    struct str about = json_str_at(c->object, "involvedObject.namespace");
    bool timed = kinds_given(c->object, "eventTime") != NULL, fits = str_eq(ns, about);

    if (!about.n)
        fits = str_eqc(ns, "default") || (timed && str_eqc(ns, "kube-system"));
    if (!fits && (!timed || !about.n))
        field_invalid_str(c->e, FIELD(FIELD(NULL, "involvedObject"), "namespace"), about,
                          "does not match event.namespace");
    if (timed)
        check_texts(c->e, c->object, r->words);
    check_rule(c->e, FIELD(NULL, "namespace"), NAME_DNS1123_SUBDOMAIN, ns);
}

static const struct rule EVENT_RULES[] = {ROW(NULL, check_event, .words = "reportingComponent")};

/* ---- events.k8s.io/v1: more is required, and little may change ---- */

static void check_series(const struct check *c)
{
    if (json_i64_at(c->value, "count", 0) < 2)
        field_invalid_str(c->e, FIELD(NULL, "series.count"), STR(""), "should be at least 2");
    if (!kinds_given(c->value, "lastObservedTime"))
        field_required(c->e, FIELD(NULL, "series.lastObservedTime"), "");
}

static void check_type(const struct check *c)
{
    struct str type = json_str(c->value);

    if (!str_eqc(type, "Normal") && !str_eqc(type, "Warning"))
        field_invalid_str_printf(c->e, c->at, STR(""), "has invalid value: %.*s", STR_F(type));
}

/* A reporter is reported under its name in this version. */
static void check_same_reporter(const struct check *c)
{
    check_immutable_text(c->e, FIELD(NULL, "reportingController"), c->value, c->old);
}

#define UNSET(path) INVALID_AS(path, "", "needs to be unset")

/* Names of the stored version. */
static const struct rule STRICT_RULES[] = {
    ROW(NULL, check_event, .words = "reportingController"),
    CHANGED("series", WITHIN(NULL, CALL(NULL, check_series))),
    ON_CREATE(REQUIRED("eventTime", ""), CALL("type", check_type), UNSET("firstTimestamp"),
              UNSET("lastTimestamp"), UNSET("count"),
              WHEN_ANY("source", NAMES("component", "host"), UNSET(NULL))),
    ON_UPDATE(FIXED("involvedObject"), FIXED_TEXT("reason"), FIXED_TEXT("message"),
              ALL_FIXED(NULL, "source", "firstTimestamp", "lastTimestamp", "count"),
              FIXED_TEXT("type"), FIXED("eventTime"), FIXED_TEXT("action"), FIXED("related"),
              CALL("reportingComponent", check_same_reporter), FIXED_TEXT("reportingInstance")),
};

/* ---- cells ---- */

/* Both versions of the API come here; the first name that has a value counts. */
static const cJSON *either(const cJSON *event, const char *core, const char *events)
{
    const cJSON *value = json_get(event, core);

    return value ? value : json_get(event, events);
}

static struct str first_of(struct str one, struct str other)
{
    return one.n ? one : other;
}

CELL(cell_source)
{
    const cJSON *source = either(r->object, "source", "deprecatedSource");
    struct str component =
        first_of(json_str(json_get(source, "component")),
                 json_str(either(r->object, "reportingComponent", "reportingController")));
    struct str instance = first_of(json_str(json_get(source, "host")),
                                   json_str(json_get(r->object, "reportingInstance")));

    if (instance.n)
        component = arena_printf(r->a, "%.*s, %.*s", STR_F(component), STR_F(instance));
    cell_text(r, component);
}

CELL(cell_object)
{
    const cJSON *target = either(r->object, "involvedObject", "regarding");
    struct str kind = kinds_lower_case(r->a, json_str(json_get(target, "kind")));
    struct str name = json_str(json_get(target, "name"));

    if (name.n)
        cell_printf(r, "%.*s/%.*s", STR_F(kind), STR_F(name));
    else
        cell_text(r, kind);
}

CELL(cell_subobject)
{
    cell_text(r, json_str(json_get(either(r->object, "involvedObject", "regarding"), "fieldPath")));
}

CELL(cell_message)
{
    cell_text(r, str_trim(json_str(either(r->object, "message", "note"))));
}

static struct str first_time(const cJSON *event)
{
    return first_of(json_str(either(event, "firstTimestamp", "deprecatedFirstTimestamp")),
                    json_str(json_get(event, "eventTime")));
}

CELL(cell_first_seen)
{
    cell_text(r, kinds_since(r, first_time(r->object)));
}

CELL(cell_number_of)
{
    const cJSON *series = json_get(r->object, "series");
    int64_t count = 0;

    if (json_is_object(series))
        count = json_i64_at(series, "count", 0);
    else if (!json_i64(either(r->object, "count", "deprecatedCount"), &count) || !count)
        count = 1;
    cell_number(r, count);
}

static struct str last_seen(const struct row *r)
{
    const cJSON *series = json_get(r->object, "series");
    struct str last = json_str(either(r->object, "lastTimestamp", "deprecatedLastTimestamp"));

    if (json_is_object(series))
        return kinds_since(r, json_str(json_get(series, "lastObservedTime")));
    return kinds_since(r, first_of(last, first_time(r->object)));
}

/* ---- the kinds ---- */

static const struct column COLUMNS[] = {
    {"Type", "string", .cell = show_text, .path = "type"},
    {"Reason", "string", .cell = show_text, .path = "reason"},
    {"Object", "string", .cell = cell_object},
    {"Subobject", "string", .priority = 1, .cell = cell_subobject},
    {"Source", "string", .priority = 1, .cell = cell_source},
    {"Message", "string", .cell = cell_message},
    {"First Seen", "string", .priority = 1, .cell = cell_first_seen},
    {"Count", "string", .priority = 1, .cell = cell_number_of},
    {"Name", "string", .format = "name", .priority = 1, .cell = show_text, .path = "metadata.name"},
    {NULL},
};

static const struct column LAST_SEEN = {"Last Seen", "string"};

static const struct selectable_field EVENTS_FIELDS[] = {
    {"reason", "reason", ""},
    {"reportingController", "reportingComponent", ""},
    {"regarding.kind", "involvedObject.kind", ""},
    {"regarding.namespace", "involvedObject.namespace", ""},
    {"regarding.name", "involvedObject.name", ""},
    {"regarding.uid", "involvedObject.uid", ""},
    {"regarding.apiVersion", "involvedObject.apiVersion", ""},
    {"regarding.resourceVersion", "involvedObject.resourceVersion", ""},
    {"regarding.fieldPath", "involvedObject.fieldPath", ""},
    {"type", "type", ""},
    {NULL, NULL, NULL},
};

const struct kind KIND_EVENT = {
    RESOURCE("", "v1", "Event", "events", "event"),
    .resource.short_names = NAMES("ev"),
    .resource.flags =
        RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_ANY_FINALIZER | RES_META_LAST | RES_EXPIRES,
    .resource.columns = COLUMNS,
    .resource.first_column = &LAST_SEEN,
    FIELDS({"involvedObject.kind", "involvedObject.kind", ""},
           {"involvedObject.namespace", "involvedObject.namespace", ""},
           {"involvedObject.name", "involvedObject.name", ""},
           {"involvedObject.uid", "involvedObject.uid", ""},
           {"involvedObject.apiVersion", "involvedObject.apiVersion", ""},
           {"involvedObject.resourceVersion", "involvedObject.resourceVersion", ""},
           {"involvedObject.fieldPath", "involvedObject.fieldPath", ""}, {"reason", "reason", ""},
           {"reportingComponent", "reportingComponent", ""},
           {"source", "source.component|reportingComponent", ""}, {"type", "type", ""}),
    .first_cell = last_seen,
    .rules = RULES(EVENT_RULES),
    .check_name = name_check_path_segment, /* upstream checks no more */
};

const struct kind KIND_EVENTS_EVENT = {
    RESOURCE("events.k8s.io", "v1", "Event", "events", "event"),
    .resource.short_names = NAMES("ev"),
    .resource.flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_EXPIRES,
    .resource.storage_version = KIND_STR("v1"),
    .resource.columns = COLUMNS,
    .resource.first_column = &LAST_SEEN,
    .resource.fields = EVENTS_FIELDS,
    .first_cell = last_seen,
    .rules = RULES(STRICT_RULES),
    .from_storage = event_from_storage,
    .to_storage = event_to_storage,
};
