/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of resource.k8s.io share: names, selectors and configuration of devices, and the
 * requests of a claim. Must never judge an expression: only that it is there and not too long is
 * known here. Source: pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "device.h"

#include <ctype.h>

#define MAX_ALTERNATIVE 8
#define MAX_SELECTORS   32
#define MAX_CONSTRAINTS 32
#define MAX_TOLERATIONS 16
#define MAX_EXPRESSION  (10 * 1024)
#define MAX_PARAMETERS  (10 * 1024)

#define NOT_A_REQUEST                                                                              \
    "must be the name of a request in the claim or the name of a request and a subrequest "        \
    "separated by '/'"

static void check_identifier(struct field_errors *e, const struct field_path *p, struct str id)
{
    if (id.n > 32)
        field_too_long(e, p, 32);
    if (!kinds_is_made_of(id, "_") || isdigit((unsigned char)id.p[0]))
        field_invalid_str(e, p, id,
                          "a valid C identifier must start with alphabetic character or '_', "
                          "followed by a string of alphanumeric characters or '_' (e.g. 'my_name', "
                          " or 'MY_NAME',  or 'MyName', regex used for validation is "
                          "'[A-Za-z_][A-Za-z0-9_]*')");
}

void check_device_key(struct field_errors *e, const struct field_path *p, struct str key)
{
    struct str rest = key, domain = str_cut(&rest, '/');

    if (!rest.p) {
        check_identifier(e, p, domain);
        return;
    }
    if (str_find(rest, '/') < rest.n)
        return;
    if (domain.n)
        check_driver_name(e, p, domain);
    else
        field_invalid_str(e, p, STR(""), "the domain must not be empty");
    if (rest.n)
        check_identifier(e, p, rest);
    else
        field_invalid_str(e, p, STR(""), "the name must not be empty");
}

void check_pool_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    struct str rest = name;

    if (!check_given(e, p, name))
        return;
    if (name.n > 253)
        field_too_long(e, p, 253);
    do {
        check_rule(e, p, NAME_DNS1123_SUBDOMAIN, str_cut(&rest, '/'));
    } while (rest.p);
}

/* ---- what requests, classes and claims share ---- */

const struct rule RULES_DEVICE_SELECTORS[1] = {EACH_OF_AT_MOST(
    "selectors", MAX_SELECTORS, REQUIRED("cel", ""), MAX_LENGTH("cel.expression", MAX_EXPRESSION))};

/* Any JSON object. */
void check_raw_object(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    if (!value || json_is_null(value))
        field_required(e, p, "");
    else if (!json_is_object(value))
        field_invalid_str(e, p, STR("<value omitted>"), "must be a valid JSON object");
    else if (json_text(e->arena, value).n > MAX_PARAMETERS)
        field_too_long(e, p, MAX_PARAMETERS);
}

const struct rule RULES_DEVICE_CONFIG[2] = {
    REQUIRED("opaque", ""),
    WITHIN("opaque", DRIVER_NAME("driver"), CHECK_ALWAYS("parameters", check_raw_object)),
};

/* ---- requests ---- */

static void check_mode(const struct check *c)
{
    struct field_errors *e = c->e;
    const struct field_path *p = c->at;
    const cJSON *request = c->value;
    struct str mode = json_str(json_get(request, "allocationMode"));
    int64_t count = json_i64_at(request, "count", 0);
    const cJSON *shown = json_new_i64(e->arena, count);

    if (!kinds_one_of(mode, ENUM_DEVICE_ALLOCATION_MODE))
        field_not_supported(e, FIELD(p, "allocationMode"), mode, ENUM_DEVICE_ALLOCATION_MODE);
    else if (str_eqc(mode, "All") && count)
        field_invalid(e, FIELD(p, "count"), shown,
                      "must not be specified when allocationMode is 'All'");
    else if (str_eqc(mode, "ExactCount") && count <= 0)
        field_invalid(e, FIELD(p, "count"), shown, "must be greater than zero");
}

static const struct rule EXACT[] = {
    NAME("deviceClassName", DNS1123_SUBDOMAIN),
    ALL(RULES_DEVICE_SELECTORS),
    CALL(NULL, check_mode),
    EACH_OF_AT_MOST("tolerations", MAX_TOLERATIONS, NAME_IF_SET("key", QUALIFIED),
                    WHEN(NULL, "operator", "Exists",
                         MUST_BE("value", "", "must be empty for operator `Exists`")),
                    WHEN(NULL, "operator", "Equal", NAME_ALWAYS("value", LABEL_VALUE)),
                    ENUM("operator", ENUM_DEVICE_TOLERATION_OPERATOR),
                    ENUM_IF_SET("effect", ENUM_DEVICE_TAINT_EFFECT)),
};

static const struct rule ALTERNATIVES[] = {
    EACH_OF_AT_MOST(NULL, MAX_ALTERNATIVE, NAME_ALWAYS("name", DNS1123_LABEL), ALL(EXACT)),
    UNIQUE_OF_AT_MOST(NULL, MAX_ALTERNATIVE, "name"),
};

static void check_ways(const struct check *c)
{
    const cJSON *exactly = kinds_given(c->value, "exactly"),
                *list = json_get(c->value, "firstAvailable");

    if (exactly && json_count(list))
        field_invalid(c->e, c->at, NULL,
                      "exactly one of `exactly` or `firstAvailable` is required, but multiple "
                      "fields are set");
    else if (exactly)
        rules_check_value(c->e, FIELD(c->at, "exactly"), exactly, NULL, EXACT, COUNT(EXACT));
    else if (json_count(list))
        rules_check_value(c->e, FIELD(c->at, "firstAvailable"), list, NULL, ALTERNATIVES,
                          COUNT(ALTERNATIVES));
    else
        field_required(c->e, c->at, "exactly one of `exactly` or `firstAvailable` is required");
}

/* ---- names of requests, "request" or "request/alternative" ---- */

struct names names_of_requests(struct arena *a, const cJSON *requests)
{
    struct names ret = {.arena = a};

    json_each(request, requests)
    {
        struct str name = json_str(json_get(request, "name"));

        names_add(&ret, name, request);
        json_each(alternative, json_get(request, "firstAvailable"))
        {
            struct str sub = json_str(json_get(alternative, "name"));

            names_add(&ret, arena_printf(a, "%.*s/%.*s", STR_F(name), STR_F(sub)), alternative);
        }
    }
    return ret;
}

/* context: the names of the requests. */
void check_request_name(const struct check *c)
{
    struct str name = json_str(c->value), rest = name, first = str_cut(&rest, '/');

    if (rest.p && str_find(rest, '/') < rest.n) {
        field_invalid_str(c->e, c->at, name, NOT_A_REQUEST);
        return;
    }
    check_rule(c->e, c->at, NAME_DNS1123_LABEL, first);
    if (rest.p)
        check_rule(c->e, c->at, NAME_DNS1123_LABEL, rest);
    if (!names_has(c->context, name))
        field_invalid_str(c->e, c->at, name, NOT_A_REQUEST);
}

const struct rule RULES_REQUEST_REFS[2] = {
    EACH_OF_AT_MOST("requests", MAX_REQUESTS, CALL(NULL, check_request_name)),
    UNIQUE_OF_AT_MOST("requests", MAX_REQUESTS, NULL),
};

/* ---- claims ---- */

static void check_full_key(struct field_errors *e, const struct field_path *p, const cJSON *key)
{
    check_device_key(e, p, json_str(key));
    if (str_find(json_str(key), '/') == json_str(key).n)
        field_invalid(e, p, key,
                      "a fully qualified name must be a domain and a name separated by a slash");
}

static const struct rule ATTRIBUTE[] = {
    WHEN_NONE(NULL, NAMES("matchAttribute", "distinctAttribute"),
              MISSING(NULL, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is "
                            "required, but multiple fields are set")),
    CHECK("matchAttribute", check_full_key),
    UNLESS_GIVEN(NULL, "matchAttribute", CHECK("distinctAttribute", check_full_key)),
};

/* context: the names of the requests. */
static const struct rule CLAIM_DEVICES[] = {
    EACH_OF_AT_MOST("requests", MAX_REQUESTS, NAME_ALWAYS("name", DNS1123_LABEL),
                    CALL(NULL, check_ways)),
    UNIQUE_OF_AT_MOST("requests", MAX_REQUESTS, "name"),
    EACH_OF_AT_MOST("constraints", MAX_CONSTRAINTS, ALL(RULES_REQUEST_REFS), ALL(ATTRIBUTE)),
    EACH_OF_AT_MOST("config", MAX_CONFIG, ALL(RULES_REQUEST_REFS), ALL(RULES_DEVICE_CONFIG)),
};

void check_claim_devices(struct field_errors *e, const struct field_path *p, const cJSON *devices)
{
    struct names known = names_of_requests(e->arena, json_get(devices, "requests"));

    rules_check_value(e, p, devices, &known, CLAIM_DEVICES, COUNT(CLAIM_DEVICES));
}

static void request_defaults(struct arena *a, cJSON *request)
{
    static const struct default_rule rules[] = {
        SET_TEXT_Z("allocationMode", "ExactCount"),
        SET_TEXT_Z("tolerations[].operator", "Equal"),
    };

    if (!json_is_object(request))
        return;
    defaults_apply(a, request, rules, COUNT(rules));
    if (str_eqc(json_str(json_get(request, "allocationMode")), "ExactCount") &&
        !json_i64_at(request, "count", 0))
        json_set_i64(a, request, "count", 1);
}

void defaults_device_claim(struct arena *a, cJSON *spec)
{
    json_each(request, json_path(spec, "devices.requests"))
    {
        request_defaults(a, json_get(request, "exactly"));
        json_each(one, json_get(request, "firstAvailable")) request_defaults(a, one);
    }
}

#define CONDITION_NAMES(path) EACH_OF_AT_MOST(path, 4, NAME_ALWAYS(NULL, QUALIFIED))

static void check_both_or_neither(const struct check *c)
{
    const cJSON *good = json_get(c->value, "bindingConditions");
    const cJSON *bad = json_get(c->value, "bindingFailureConditions");
    struct names binding = {.arena = c->e->arena}, failing = binding;
    AT(good_at, c->at, "bindingConditions");
    AT(bad_at, c->at, "bindingFailureConditions");

    names_add_texts(&binding, good);
    field_each(name, at, bad_at, bad)
    {
        if (!names_add(&failing, json_str(name), name))
            field_duplicate(c->e, at, name);
        if (names_has(&binding, json_str(name)))
            field_invalid(c->e, at, name,
                          "bindingFailureConditions must not overlap with bindingConditions");
    }
    if (!binding.n && failing.n)
        field_invalid(c->e, good_at, good,
                      "bindingConditions are required to use bindingFailureConditions");
    if (!failing.n && binding.n)
        field_invalid(c->e, bad_at, bad,
                      "bindingFailureConditions are required to use bindingConditions");
}

const struct rule RULES_BINDING_CONDITIONS[4] = {
    CONDITION_NAMES("bindingConditions"),
    CONDITION_NAMES("bindingFailureConditions"),
    UNIQUE("bindingConditions", NULL),
    CALL(NULL, check_both_or_neither),
};
