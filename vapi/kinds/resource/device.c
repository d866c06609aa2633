/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of resource.k8s.io share: names, selectors and configuration of devices, and the
 * requests of a claim. Must never judge an expression: only that it is there and not too long is
 * known here. Source: pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "device.h"

#include <ctype.h>

#define MAX_ALTERNATIVE 8

#define MAX_SELECTORS 32

#define MAX_CONSTRAINTS 32

#define MAX_TOLERATIONS 16

#define MAX_EXPRESSION (10 * 1024)

#define MAX_PARAMETERS (10 * 1024)

#define NOT_A_REQUEST                                                                              \
    "must be the name of a request in the claim or the name of a request and a subrequest "        \
    "separated by '/'"

static void check_identifier(struct field_errors *e, const struct field_path *p, struct str id)
{
    bool ok = id.n > 0;

    for (size_t i = 0; i < id.n; i++)
        ok &= id.p[i] == '_' || isalpha((unsigned char)id.p[i]) ||
              (i && isdigit((unsigned char)id.p[i]));
    if (id.n > 32)
        field_too_long(e, p, 32);
    if (!ok)
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

static void check_full_key(struct field_errors *e, const struct field_path *p, struct str key)
{
    check_device_key(e, p, key);
    if (str_find(key, '/') == key.n)
        field_invalid_str(
            e, p, key, "a fully qualified name must be a domain and a name separated by a slash");
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

static const struct rule SELECTORS[] = {EACH_OF_AT_MOST(
    NULL, MAX_SELECTORS, REQUIRED("cel", ""), MAX_LENGTH("cel.expression", MAX_EXPRESSION))};

void check_device_selectors(const struct check *c)
{
    rules_check(c, SELECTORS, COUNT(SELECTORS));
}

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

static const struct rule CONFIG[] = {
    REQUIRED("opaque", ""),
    WITHIN("opaque", DRIVER_NAME("driver"), CHECK_ALWAYS("parameters", check_raw_object)),
};

void check_device_config(struct field_errors *e, const struct field_path *p, const cJSON *config)
{
    rules_check_value(e, p, config, NULL, CONFIG, COUNT(CONFIG));
}

static void check_no_value(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    if (json_str(value).n)
        field_invalid_str(e, p, json_str(value), "must be empty for operator `Exists`");
}

/* ---- requests ---- */

static void check_mode(const struct check *c)
{
    struct field_errors *e = c->e;
    const struct field_path *p = c->at;
    const cJSON *request = c->value;
    struct str mode = json_str(json_get(request, "allocationMode"));
    int64_t count = json_i64_at(request, "count", 0);
    const cJSON *shown = json_new_i64(e->arena, count);

    if (!one_of(mode, ENUM_DEVICE_ALLOCATION_MODE))
        field_not_supported(e, FIELD(p, "allocationMode"), mode, ENUM_DEVICE_ALLOCATION_MODE);
    else if (str_eqc(mode, "All") && count)
        field_invalid(e, FIELD(p, "count"), shown,
                      "must not be specified when allocationMode is 'All'");
    else if (str_eqc(mode, "ExactCount") && count <= 0)
        field_invalid(e, FIELD(p, "count"), shown, "must be greater than zero");
}

static const struct rule EXACT[] = {
    NAME("deviceClassName", DNS1123_SUBDOMAIN),
    CALL("selectors", check_device_selectors),
    CALL(NULL, check_mode),
    EACH_OF_AT_MOST("tolerations", MAX_TOLERATIONS, NAME_IF_SET("key", QUALIFIED),
                    WHEN(NULL, "operator", "Exists", CHECK("value", check_no_value)),
                    WHEN(NULL, "operator", "Equal", NAME_ALWAYS("value", LABEL_VALUE)),
                    ENUM("operator", ENUM_DEVICE_TOLERATION_OPERATOR),
                    ENUM_IF_SET("effect", ENUM_DEVICE_TAINT_EFFECT)),
};

/* A list of strings, or of objects with names, each once. */
static void check_unique(struct field_errors *e, const struct field_path *p, const cJSON *list,
                         const char *key)
{
    struct names seen = {.arena = e->arena};
    size_t i = 0;

    json_each(item, list)
    {
        const cJSON *name = key ? json_get(item, key) : item;
        const struct field_path *at = FIELD_INDEX(p, i++);

        if (!names_add(&seen, json_str(name), item))
            field_duplicate(e, at, name ? name : json_new_string(e->arena, STR("")));
    }
}

static const struct rule ALTERNATIVES[] = {
    EACH(NULL, NAME_ALWAYS("name", DNS1123_LABEL), ALL(EXACT)),
    UNIQUE(NULL, "name"),
};

static void check_alternatives(struct field_errors *e, const struct field_path *p,
                               const cJSON *list)
{
    if (check_list_size(e, p, list, MAX_ALTERNATIVE))
        rules_check_value(e, p, list, NULL, ALTERNATIVES, COUNT(ALTERNATIVES));
}

static void check_request(struct field_errors *e, const struct field_path *p, const cJSON *request)
{
    const cJSON *exactly = given(request, "exactly"), *list = json_get(request, "firstAvailable");

    check_rule(e, FIELD(p, "name"), NAME_DNS1123_LABEL, json_str(json_get(request, "name")));
    if (exactly && json_count(list))
        field_invalid(e, p, NULL,
                      "exactly one of `exactly` or `firstAvailable` is required, but multiple "
                      "fields are set");
    else if (exactly)
        rules_check_value(e, FIELD(p, "exactly"), exactly, NULL, EXACT, COUNT(EXACT));
    else if (json_count(list))
        check_alternatives(e, FIELD(p, "firstAvailable"), list);
    else
        field_required(e, p, "exactly one of `exactly` or `firstAvailable` is required");
}

/* ---- names of requests, "request" or "request/alternative" ---- */

struct names request_names(struct arena *a, const cJSON *requests)
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

void check_request_name(struct field_errors *e, const struct field_path *p, struct str name,
                        const struct names *known)
{
    struct str rest = name, first = str_cut(&rest, '/');

    if (rest.p && str_find(rest, '/') < rest.n) {
        field_invalid_str(e, p, name, NOT_A_REQUEST);
        return;
    }
    check_rule(e, p, NAME_DNS1123_LABEL, first);
    if (rest.p)
        check_rule(e, p, NAME_DNS1123_LABEL, rest);
    if (!names_has(known, name))
        field_invalid_str(e, p, name, NOT_A_REQUEST);
}

void check_request_refs(struct field_errors *e, const struct field_path *p, const cJSON *list,
                        const struct names *known)
{
    if (!check_list_size(e, p, list, MAX_REQUESTS))
        return;
    field_each(name, at, p, list) check_request_name(e, at, json_str(name), known);
    check_unique(e, p, list, NULL);
}

/* ---- claims ---- */

static void check_constraint(struct field_errors *e, const struct field_path *p,
                             const cJSON *constraint, const struct names *known)
{
    const cJSON *match = given(constraint, "matchAttribute");
    const cJSON *distinct = given(constraint, "distinctAttribute");

    check_request_refs(e, FIELD(p, "requests"), json_get(constraint, "requests"), known);
    if (match)
        check_full_key(e, FIELD(p, "matchAttribute"), json_str(match));
    else if (distinct)
        check_full_key(e, FIELD(p, "distinctAttribute"), json_str(distinct));
    else
        field_required(e, p,
                       "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, "
                       "but multiple fields are set");
}

void check_claim_devices(struct field_errors *e, const struct field_path *p, const cJSON *devices)
{
    const cJSON *requests = json_get(devices, "requests"), *config = json_get(devices, "config");
    const cJSON *constraints = json_get(devices, "constraints");
    struct names known = request_names(e->arena, requests);

    if (check_list_size(e, FIELD(p, "requests"), requests, MAX_REQUESTS)) {
        field_each(request, at, FIELD(p, "requests"), requests) check_request(e, at, request);
        check_unique(e, FIELD(p, "requests"), requests, "name");
    }
    if (check_list_size(e, FIELD(p, "constraints"), constraints, MAX_CONSTRAINTS)) {
        field_each(constraint, at, FIELD(p, "constraints"), constraints)
            check_constraint(e, at, constraint, &known);
    }
    if (!check_list_size(e, FIELD(p, "config"), config, MAX_CONFIG))
        return;
    field_each(item, at, FIELD(p, "config"), config)
    {
        check_request_refs(e, FIELD(at, "requests"), json_get(item, "requests"), &known);
        check_device_config(e, at, item);
    }
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

#define MAX_BINDING 4

static void check_condition_names(struct field_errors *e, const struct field_path *p,
                                  const cJSON *list)
{
    if (!check_list_size(e, p, list, MAX_BINDING))
        return;
    field_each(name, at, p, list) check_rule(e, at, NAME_QUALIFIED, json_str(name));
}

void check_binding_conditions(struct field_errors *e, const struct field_path *p,
                              const cJSON *device)
{
    const cJSON *good = json_get(device, "bindingConditions");
    const cJSON *bad = json_get(device, "bindingFailureConditions");
    struct names binding = {.arena = e->arena}, failing = {.arena = e->arena};
    AT(good_at, p, "bindingConditions");
    AT(bad_at, p, "bindingFailureConditions");
    size_t i = 0, k = 0;

    check_condition_names(e, good_at, good);
    check_condition_names(e, bad_at, bad);
    json_each(name, good)
    {
        if (!names_add(&binding, json_str(name), name))
            field_duplicate(e, FIELD_INDEX(good_at, i), name);
        i++;
    }
    json_each(name, bad)
    {
        if (!names_add(&failing, json_str(name), name))
            field_duplicate(e, FIELD_INDEX(bad_at, k), name);
        if (names_has(&binding, json_str(name)))
            field_invalid(e, FIELD_INDEX(bad_at, k), name,
                          "bindingFailureConditions must not overlap with bindingConditions");
        k++;
    }
    if (!i && k)
        field_invalid(e, good_at, good,
                      "bindingConditions are required to use bindingFailureConditions");
    if (!k && i)
        field_invalid(e, bad_at, bad,
                      "bindingFailureConditions are required to use bindingConditions");
}
