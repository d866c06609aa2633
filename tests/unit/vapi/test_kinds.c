/* SPDX-License-Identifier: Apache-2.0
 *
 * Every built-in kind against a real server: what it makes of an object that is created (defaults,
 * preparation), what it refuses in which words, and the rows it prints. The cases were recorded by
 * data/record_kinds.py. */

#include "cases.h"

#include <sublet/kinds.h>

#define UID  "11111111-2222-4333-8444-555555555555"
#define BORN "2026-01-02T03:04:05Z"

static struct resource find_resource(const cJSON *object)
{
    struct str rest = json_str(json_get(object, "apiVersion")), version = str_cut(&rest, '/');
    struct str group = rest.p ? version : STR(""), kind = json_str(json_get(object, "kind"));

    if (rest.p)
        version = rest;
    for (const struct kind *const *k = KINDS; *k; k++) {
        struct resource r = (*k)->resource;

        if (!str_eq(r.group, group) || !str_eq(r.version, version) || !str_eq(r.kind, kind))
            continue;
        r.built_in = *k;
        r.schema = &SCHEMA_BUILTIN;
        r.node = schema_builtin_root(group, version, kind);
        r.api_version = json_str(json_get(object, "apiVersion"));
        return r;
    }
    fail_msg("no such kind: %.*s", STR_F(kind));
    return (struct resource){.verbs = 0};
}

/* ---- what a write does beside what kinds do ---- */

static void defaults(struct arena *a, const struct resource *r, cJSON *object)
{
    kinds_defaults(r, a, object);
    schema_default(a, r->schema, r->node, object);
}

static void decode(struct tested *t, const struct resource *r, cJSON *object)
{
    struct strict_errors strict = {.arena = t->arena};
    struct err err;

    err_init(&err, t->arena);
    if (schema_normalise(t->arena, r->schema, r->node, object, &strict, &err))
        fail_msg("%s: %.*s", t->name, STR_F(err.message));
    if (strict.n)
        fail_msg("%s: %.*s", t->name, STR_F(strict.text[0]));
    defaults(t->arena, r, object);
}

static void birth(struct arena *a, const struct resource *r, cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata");

    json_set_str(a, metadata, "uid", STR(UID));
    json_set_str(a, metadata, "creationTimestamp", STR(BORN));
    if (r->flags & RES_NAMESPACED)
        json_set_str(a, metadata, "namespace", STR("ns1"));
    if ((r->flags & (RES_STATUS | RES_STATUS_ON_CREATE)) == RES_STATUS)
        json_remove(object, "status");
}

static void strip(cJSON *object)
{
    cJSON *metadata = json_get(object, "metadata");

    json_remove(metadata, "uid");
    json_remove(metadata, "creationTimestamp");
    json_remove(metadata, "generation");
}

static void take_status(struct arena *a, cJSON *object, const cJSON *old)
{
    if (json_get(old, "status"))
        json_set(a, object, "status", json_copy(a, json_get(old, "status")));
    else
        json_remove(object, "status");
}

/* ---- comparing ---- */

/* Objects shown as values are upstream's internal types, and differences of pods its own diff. */
static struct str mask(struct arena *a, struct str message)
{
    size_t from = str_find(message, '{'), to = str_rfind(message, '}');

    message = str_sub(message, 0, str_find(message, '\n'));
    if (from < to && to < message.n && from > 2 && message.p[from - 2] == ':')
        return arena_printf(a, "%.*s{*%.*s", (int)from, message.p, STR_F(str_from(message, to)));
    return message;
}

static struct str cause_text(struct arena *a, struct str type, struct str field, struct str message)
{
    return arena_printf(a, "%.*s %.*s: %.*s", STR_F(type), STR_F(field), STR_F(mask(a, message)));
}

static void set_uid(struct arena *a, cJSON *object)
{
    json_set_str(a, json_get(object, "metadata"), "uid", STR(UID));
}

static bool said_before(const struct err_cause *first, const struct err_cause *c)
{
    for (; first != c; first = first->next) {
        if (str_eq(first->type, c->type) && str_eq(first->field, c->field) &&
            str_eq(first->message, c->message))
            return true;
    }
    return false;
}

static void compare_causes(struct tested *t, const struct field_errors *e)
{
    const cJSON *want = json_first(json_get(t->json, "causes"));

    for (const struct err_cause *c = e->first; c || want;) {
        struct str got = STR("nothing"), expected = STR("nothing");

        if (c && said_before(e->first, c)) {
            c = c->next;
            continue;
        }
        if (c)
            got = cause_text(t->arena, c->type, c->field, c->message);
        if (want)
            expected = cause_text(t->arena, json_str(json_at(want, 0)), json_str(json_at(want, 1)),
                                  json_str(json_at(want, 2)));
        if (!str_eq(got, expected))
            case_fails(t, "cause", got, expected);
        c = c ? c->next : NULL;
        want = want ? want->next : NULL;
    }
}

static void judge(struct tested *t, cJSON *object, const struct field_errors *e)
{
    if (e->first || json_get(t->json, "causes")) {
        compare_causes(t, e);
        return;
    }
    strip(object);
    case_compare(t, object, json_get(t->json, "want"));
}

/* ---- the three forms of cases ---- */

#define TOLD (1 << 20) /* a mark on the warning of a case */

/* Cases recorded with their warnings hold all of them, in any order. */
static void on_warning(void *ctx, struct str text)
{
    struct tested *t = ctx;

    json_each(want, json_get(t->json, "warnings"))
    {
        if (str_eq(json_str(want), text)) {
            want->type |= TOLD;
            return;
        }
    }
    if (json_get(t->json, "warnings"))
        case_fails(t, "warning", text, STR("nothing"));
}

static void check_warnings(struct tested *t)
{
    json_each(want, json_get(t->json, "warnings"))
    {
        bool of_api = str_has_prefix(json_str(want), STR("v1 ")); /* that a version is old */

        if (!(want->type & TOLD) && !of_api)
            case_fails(t, "warning", STR("nothing"), json_str(want));
    }
}

static void check_create(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "object"));
    struct resource r = find_resource(object);
    struct field_errors e;

    field_errors_init(&e, t->arena);
    decode(t, &r, object);
    birth(t->arena, &r, object);
    if (r.built_in->warnings_before_create)
        r.built_in->warnings_before_create(t->arena, object, on_warning, t);
    kinds_prepare_create(&r, t->arena, object);
    if (r.built_in->validate_first)
        r.built_in->validate_first(&e, object, NULL);
    if (!e.n)
        kinds_validate(&r, &e, object, NULL);
    if (r.built_in->warnings && !e.n)
        r.built_in->warnings(t->arena, object, on_warning, t);
    if (!e.n)
        check_warnings(t);
    judge(t, object, &e);
}

static void check_update(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "object"));
    cJSON *old = json_copy(t->arena, json_get(t->json, "old"));
    struct str sub = json_str(json_get(t->json, "sub"));
    bool status = str_eqc(sub, "status");
    struct resource r = find_resource(object);
    struct field_errors e;

    field_errors_init(&e, t->arena);
    decode(t, &r, object);
    decode(t, &r, old);
    set_uid(t->arena, object);
    set_uid(t->arena, old);
    if (str_eqc(sub, "resize")) {
        object = prepare_pod_resize(t->arena, object, old);
        validate_pod_resize(&e, object, old);
        judge(t, object, &e);
        return;
    }
    if (!status && r.flags & RES_STATUS)
        take_status(t->arena, object, old);
    if (str_eqc(sub, "ephemeralcontainers")) {
        object = prepare_pod_ephemeral(t->arena, object, old);
        validate_pod_ephemeral(&e, object, old);
        judge(t, object, &e);
        return;
    }
    if (status && r.built_in->prepare_status)
        r.built_in->prepare_status(t->arena, object, old);
    if (!status && r.built_in->prepare_update)
        r.built_in->prepare_update(t->arena, object, old);
    if (!status && r.built_in->validate_first)
        r.built_in->validate_first(&e, object, old);
    if (status)
        kinds_validate_status(&r, &e, object, old);
    else if (!e.n)
        kinds_validate(&r, &e, object, old);
    judge(t, object, &e);
}

static void check_columns(struct tested *t, const struct resource *r)
{
    static const struct column name = {.name = "Name", .type = "string", .format = "name"};
    const struct column *c = r->first_column ? r->first_column : &name;
    size_t i = 0;

    json_each(want, json_get(t->json, "columns"))
    {
        struct str got, expected = json_text(t->arena, want);

        if (!c->name)
            fail_msg("%s: a column is missing: %s", t->name, expected.p);
        got = arena_printf(t->arena, "[\"%s\",\"%s\",\"%s\",%d]", c->name, c->type,
                           c->format ? c->format : "", c->priority);
        if (!str_eq(got, expected))
            case_fails(t, "column", got, expected);
        c = &r->columns[i++];
    }
}

static void check_row(struct tested *t)
{
    cJSON *object = json_copy(t->arena, json_get(t->json, "row"));
    cJSON *cells = json_new_array(t->arena);
    struct resource r = find_resource(object);

    check_columns(t, &r);
    kinds_cells(&r, &(const struct row){t->arena, object, json_i64_at(t->json, "now", 0), cells});
    case_compare(t, cells, json_get(t->json, "cells"));
}

static void check(struct tested *t)
{
    if (json_get(t->json, "row"))
        check_row(t);
    else if (json_get(t->json, "old"))
        check_update(t);
    else
        check_create(t);
}

static void as_upstream(void **state)
{
    (void)state;
    run_cases("kinds.jsonl", 100, check);
}

/* A number upstream reads with the object, out of an annotation. */
static void unreadable(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"1", NULL},
        {"-5", NULL},
        {"+7", NULL},
        {"007", NULL},
        {"", "strconv.ParseInt: parsing \"\": invalid syntax"},
        {"a b", "strconv.ParseInt: parsing \"a b\": invalid syntax"},
        {"1-", "strconv.ParseInt: parsing \"1-\": invalid syntax"},
        {"9223372036854775808",
         "strconv.ParseInt: parsing \"9223372036854775808\": value out of range"},
    };
    struct arena *a = arena_new(1 << 20);
    cJSON *set = json_new_object(a);
    struct resource r;

    (void)state;
    json_set_str(a, set, "apiVersion", STR("apps/v1"));
    json_set_str(a, set, "kind", STR("DaemonSet"));
    r = find_resource(set);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *why;

        json_set_str(a, json_ensure_path(a, set, "metadata.annotations"),
                     "deprecated.daemonset.template.generation", str_c(cases[i].text));
        why = kinds_unreadable(a, &r, set);
        assert_int_equal(why != NULL, cases[i].why != NULL);
        if (why)
            assert_string_equal(why, cases[i].why);
    }
    arena_free(a);
}

/* ---- what has no effect yet ---- */

struct said {
    struct str text;
    size_t n;
};

static void on_said(void *ctx, struct str text)
{
    struct said *s = ctx;

    s->text = text;
    s->n++;
}

static const struct {
    const char *group, *plural, *object, *begins; /* begins NULL: it works */
} NO_EFFECT[] = {
    {"networking.k8s.io", "networkpolicies", "{}", "NetworkPolicy has no effect yet: "},
    {"networking.k8s.io", "servicecidrs", "{}", "ServiceCIDR has no effect yet: "},
    {"networking.k8s.io", "ingresses", "{}", NULL},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", "{}", NULL},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "{}", NULL},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", "{}", NULL},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", "{}", NULL},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicies", "{}", NULL},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "{}", NULL},
    {"apiregistration.k8s.io", "apiservices", "{\"spec\":{\"group\":\"g\"}}", NULL},
    {"apiregistration.k8s.io", "apiservices", "{\"spec\":{\"service\":{\"name\":\"s\"}}}", NULL},
    {"apiextensions.k8s.io", "customresourcedefinitions",
     "{\"spec\":{\"conversion\":{\"strategy\":\"None\"},\"versions\":[{\"schema\":{"
     "\"openAPIV3Schema\":{\"properties\":{\"x-kubernetes-validations\":{\"type\":\"string\"}}}}}]}"
     "}",
     NULL},
    {"apiextensions.k8s.io", "customresourcedefinitions",
     "{\"spec\":{\"conversion\":{\"strategy\":\"Webhook\"}}}", NULL},
    {"apiextensions.k8s.io", "customresourcedefinitions",
     "{\"spec\":{\"versions\":[{},{\"schema\":{\"openAPIV3Schema\":{\"properties\":{\"a\":{"
     "\"x-kubernetes-validations\":[{\"rule\":\"true\"}]}}}}}]}}",
     NULL},
    {"", "pods", "{}", NULL},
};

static struct resource resource_named(struct str group, struct str plural)
{
    struct resource r = {.verbs = 0};

    for (const struct kind *const *k = KINDS; *k && !r.built_in; k++) {
        r = (*k)->resource;
        r.built_in = str_eq(r.group, group) && str_eq(r.plural, plural) ? *k : NULL;
    }
    assert_non_null(r.built_in);
    return r;
}

static void test_no_effect(void **state)
{
    struct arena *a = arena_new(0);

    (void)state;
    for (size_t i = 0; i < COUNT(NO_EFFECT); i++) {
        struct resource r = resource_named(str_c(NO_EFFECT[i].group), str_c(NO_EFFECT[i].plural));
        struct said said = {0};
        cJSON *object;
        struct err err;

        err_init(&err, a);
        assert_int_equal(json_parse(a, str_c(NO_EFFECT[i].object), &object, &err), 0);
        kinds_warn_no_effect(a, &r, object, on_said, &said);
        assert_int_equal(said.n, NO_EFFECT[i].begins != NULL);
        if (said.n)
            assert_true(str_has_prefix(said.text, str_c(NO_EFFECT[i].begins)));
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_effect),
                                       cmocka_unit_test(as_upstream), cmocka_unit_test(unreadable)};

    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
