/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what asks for devices: DeviceClasses, ResourceClaims and their templates, in upstream's
 * words and order. Must never judge an expression: only that it is there and not too long is known
 * here. Source: pkg/apis/resource/validation. */
#include "validate.h"

#include <ctype.h>
#include <stdlib.h>

#define MAX_REQUESTS    32
#define MAX_ALTERNATIVE 8
#define MAX_SELECTORS   32
#define MAX_CONSTRAINTS 32
#define MAX_CONFIG      32
#define MAX_TOLERATIONS 16
#define MAX_RESERVED    256
#define MAX_CONDITIONS  8
#define MAX_IPS         16
#define MAX_EXPRESSION  (10 * 1024)
#define MAX_PARAMETERS  (10 * 1024)
#define NOT_A_REQUEST                                                                              \
    "must be the name of a request in the claim or the name of a request and a subrequest "        \
    "separated by '/'"

bool check_list_size(struct field_errors *e, const struct field_path *p, const cJSON *list,
                     size_t most)
{
    if (json_count(list) > most)
        field_too_many(e, p, json_count(list), most);
    return json_count(list) <= most;
}

/* ---- names ---- */

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

static void check_selectors(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    size_t i = 0;

    if (!check_list_size(e, p, list, MAX_SELECTORS))
        return;
    json_each(selector, list)
    {
        const struct field_path *at = FIELD(FIELD_INDEX(p, i++), "cel");

        if (!given(selector, "cel"))
            field_required(e, at, "");
        else if (json_str(json_path(selector, "cel.expression")).n > MAX_EXPRESSION)
            field_too_long(e, FIELD(at, "expression"), MAX_EXPRESSION);
    }
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

static void check_configuration(struct field_errors *e, const struct field_path *p,
                                const cJSON *config)
{
    const cJSON *opaque = given(config, "opaque");
    AT(at, p, "opaque");

    if (!opaque) {
        field_required(e, at, "");
        return;
    }
    check_driver_name(e, FIELD(at, "driver"), json_str(json_get(opaque, "driver")));
    check_raw_object(e, FIELD(at, "parameters"), json_get(opaque, "parameters"));
}

static void check_toleration(struct field_errors *e, const struct field_path *p,
                             const cJSON *toleration)
{
    static const char *const operators[] = {"Equal", "Exists", NULL};
    static const char *const effects[] = {"NoExecute", "NoSchedule", "None", NULL};
    struct str key = json_str(json_get(toleration, "key")),
               op = json_str(json_get(toleration, "operator")),
               value = json_str(json_get(toleration, "value")),
               effect = json_str(json_get(toleration, "effect"));

    if (key.n)
        check_rule(e, FIELD(p, "key"), NAME_QUALIFIED, key);
    if (str_eqc(op, "Exists") && value.n)
        field_invalid_str(e, FIELD(p, "value"), value, "must be empty for operator `Exists`");
    else if (str_eqc(op, "Equal"))
        check_rule(e, FIELD(p, "value"), NAME_LABEL_VALUE, value);
    check_enum(e, FIELD(p, "operator"), op, operators);
    if (effect.n && !one_of(effect, effects))
        field_not_supported(e, FIELD(p, "effect"), effect, effects);
}

/* ---- requests ---- */

static void check_mode(struct field_errors *e, const struct field_path *p, const cJSON *request)
{
    static const char *const modes[] = {"All", "ExactCount", NULL};
    struct str mode = json_str(json_get(request, "allocationMode"));
    int64_t count = json_i64_at(request, "count", 0);
    const cJSON *shown = json_new_i64(e->arena, count);

    if (!one_of(mode, modes))
        field_not_supported(e, FIELD(p, "allocationMode"), mode, modes);
    else if (str_eqc(mode, "All") && count)
        field_invalid(e, FIELD(p, "count"), shown,
                      "must not be specified when allocationMode is 'All'");
    else if (str_eqc(mode, "ExactCount") && count <= 0)
        field_invalid(e, FIELD(p, "count"), shown, "must be greater than zero");
}

static void check_exact(struct field_errors *e, const struct field_path *p, const cJSON *request)
{
    const cJSON *tolerations = json_get(request, "tolerations");
    struct str class = json_str(json_get(request, "deviceClassName"));
    size_t i = 0;

    if (check_given(e, FIELD(p, "deviceClassName"), class))
        check_rule(e, FIELD(p, "deviceClassName"), NAME_DNS1123_SUBDOMAIN, class);
    check_selectors(e, FIELD(p, "selectors"), json_get(request, "selectors"));
    check_mode(e, p, request);
    if (check_list_size(e, FIELD(p, "tolerations"), tolerations, MAX_TOLERATIONS)) {
        json_each(toleration, tolerations)
            check_toleration(e, FIELD_INDEX(FIELD(p, "tolerations"), i++), toleration);
    }
}

/* A list of texts or of objects with names, each once. */
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

static void check_alternatives(struct field_errors *e, const struct field_path *p,
                               const cJSON *list)
{
    size_t i = 0;

    if (!check_list_size(e, p, list, MAX_ALTERNATIVE))
        return;
    json_each(request, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        check_rule(e, FIELD(at, "name"), NAME_DNS1123_LABEL, json_str(json_get(request, "name")));
        check_exact(e, at, request);
    }
    check_unique(e, p, list, "name");
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
        check_exact(e, FIELD(p, "exactly"), exactly);
    else if (json_count(list))
        check_alternatives(e, FIELD(p, "firstAvailable"), list);
    else
        field_required(e, p, "exactly one of `exactly` or `firstAvailable` is required");
}

/* ---- names of requests, "request" or "request/alternative" ---- */

static struct names request_names(struct arena *a, const cJSON *requests)
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

static void check_request_name(struct field_errors *e, const struct field_path *p, struct str name,
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

static void check_request_refs(struct field_errors *e, const struct field_path *p,
                               const cJSON *list, const struct names *known)
{
    size_t i = 0;

    if (!check_list_size(e, p, list, MAX_REQUESTS))
        return;
    json_each(name, list) check_request_name(e, FIELD_INDEX(p, i++), json_str(name), known);
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

static void check_claim_devices(struct field_errors *e, const struct field_path *p,
                                const cJSON *devices)
{
    const cJSON *requests = json_get(devices, "requests"), *config = json_get(devices, "config");
    const cJSON *constraints = json_get(devices, "constraints");
    struct names known = request_names(e->arena, requests);
    size_t i = 0, k = 0, n = 0;

    if (check_list_size(e, FIELD(p, "requests"), requests, MAX_REQUESTS)) {
        json_each(request, requests)
            check_request(e, FIELD_INDEX(FIELD(p, "requests"), i++), request);
        check_unique(e, FIELD(p, "requests"), requests, "name");
    }
    if (check_list_size(e, FIELD(p, "constraints"), constraints, MAX_CONSTRAINTS)) {
        json_each(constraint, constraints)
            check_constraint(e, FIELD_INDEX(FIELD(p, "constraints"), k++), constraint, &known);
    }
    if (!check_list_size(e, FIELD(p, "config"), config, MAX_CONFIG))
        return;
    json_each(item, config)
    {
        const struct field_path *at = FIELD_INDEX(FIELD(p, "config"), n++);

        check_request_refs(e, FIELD(at, "requests"), json_get(item, "requests"), &known);
        check_configuration(e, at, item);
    }
}

void validate_resource_claim(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    if (old)
        check_immutable(e, p, spec, json_get(old, "spec"));
    else
        check_claim_devices(e, FIELD(p, "devices"), json_get(spec, "devices"));
}

void validate_resource_claim_template(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    if (old)
        check_immutable(e, p, spec, json_get(old, "spec"));
    validate_claim_metadata(e, FIELD(p, "metadata"), json_get(spec, "metadata"));
    check_claim_devices(e, FIELD(FIELD(p, "spec"), "devices"), json_path(spec, "spec.devices"));
}

/* ---- the status of a claim ---- */

static bool is_hex(struct str s, const char *hyphens)
{
    for (size_t i = 0; i < s.n; i++) {
        bool hyphen = hyphens && hyphens[i] == '-';

        if (hyphen ? s.p[i] != '-' : !isxdigit((unsigned char)s.p[i]))
            return false;
    }
    return true;
}

/* A device that is shared: a UUID in the form that is printed. */
static void check_share(struct field_errors *e, const struct field_path *p, const cJSON *id)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    struct str s = json_str(id);
    const char *why = NULL;

    if (!id)
        return;
    if (s.n != 36 && s.n != 32)
        why = arena_printf(e->arena, "error validating uid: invalid UUID length: %zu", s.n).p;
    else if (!is_hex(s, s.n == 36 ? form : NULL))
        why = "error validating uid: invalid UUID format";
    else if (s.n != 36 || !str_eq(s, lower_case(e->arena, s)))
        why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
              "with lowercase hexadecimal characters";
    if (why)
        field_invalid(e, FIELD(p, "shareID"), id, why);
}

static void check_result(struct field_errors *e, const struct field_path *p, const cJSON *result,
                         const struct names *known)
{
    check_request_name(e, FIELD(p, "request"), json_str(json_get(result, "request")), known);
    check_driver_name(e, FIELD(p, "driver"), json_str(json_get(result, "driver")));
    check_pool_name(e, FIELD(p, "pool"), json_str(json_get(result, "pool")));
    check_rule(e, FIELD(p, "device"), NAME_DNS1123_LABEL, json_str(json_get(result, "device")));
    check_binding_conditions(e, p, result);
    check_share(e, p, given(result, "shareID"));
}

static void check_allocation(struct field_errors *e, const struct field_path *p,
                             const cJSON *allocation, const struct names *known)
{
    static const char *const sources[] = {"FromClaim", "FromClass", NULL};
    const cJSON *results = json_path(allocation, "devices.results");
    const cJSON *config = json_path(allocation, "devices.config");
    const cJSON *selector = given(allocation, "nodeSelector");
    AT(devices, p, "devices");
    size_t i = 0, k = 0;

    if (check_list_size(e, FIELD(devices, "results"), results, MAX_REQUESTS)) {
        json_each(result, results)
            check_result(e, FIELD_INDEX(FIELD(devices, "results"), i++), result, known);
    }
    if (check_list_size(e, FIELD(devices, "config"), config, 2 * MAX_CONFIG)) {
        json_each(item, config)
        {
            const struct field_path *at = FIELD_INDEX(FIELD(devices, "config"), k++);

            check_enum(e, FIELD(at, "source"), json_str(json_get(item, "source")), sources);
            check_request_refs(e, FIELD(at, "requests"), json_get(item, "requests"), known);
            check_configuration(e, at, item);
        }
    }
    if (selector)
        validate_node_selector(e, FIELD(p, "nodeSelector"), selector);
}

static void check_reserved(struct field_errors *e, const struct field_path *p, const cJSON *status)
{
    static const char *const needed[] = {"resource", "name", "uid"};
    const cJSON *list = json_get(status, "reservedFor");
    size_t i = 0;

    if (!check_list_size(e, p, list, MAX_RESERVED))
        return;
    json_each(consumer, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);

        for (size_t k = 0; k < COUNT(needed); k++)
            check_given(e, FIELD(at, needed[k]), json_str(json_get(consumer, needed[k])));
    }
    check_unique(e, p, list, "uid");
    if (json_count(list) && !given(status, "allocation"))
        field_forbidden(e, p, "may not be specified when `allocated` is not set");
}

static struct str device_id(struct arena *a, const cJSON *device)
{
    struct str share = json_str(json_get(device, "shareID"));
    struct str id = arena_printf(a, "%.*s/%.*s/%.*s", STR_F(json_str(json_get(device, "driver"))),
                                 STR_F(json_str(json_get(device, "pool"))),
                                 STR_F(json_str(json_get(device, "device"))));

    return share.n ? arena_printf(a, "%.*s/%.*s", STR_F(id), STR_F(share)) : id;
}

static void check_interfaces(struct field_errors *e, const struct field_path *p, const cJSON *ips)
{
    size_t i = 0;

    json_each(ip, ips) check_interface(e, FIELD_INDEX(p, i++), json_str(ip));
    check_unique(e, p, ips, NULL);
}

static void check_network(struct field_errors *e, const struct field_path *p, const cJSON *data)
{
    const cJSON *ips = json_get(data, "ips");

    if (json_str(json_get(data, "interfaceName")).n > 256)
        field_too_long(e, FIELD(p, "interfaceName"), 256);
    if (json_str(json_get(data, "hardwareAddress")).n > 128)
        field_too_long(e, FIELD(p, "hardwareAddress"), 128);
    if (check_list_size(e, FIELD(p, "ips"), ips, MAX_IPS))
        check_interfaces(e, FIELD(p, "ips"), ips);
}

static void check_device_status(struct field_errors *e, const struct field_path *p,
                                const cJSON *device, const struct names *allocated)
{
    const cJSON *conditions = json_get(device, "conditions"), *data = given(device, "data");
    struct str id = device_id(e->arena, device);

    check_driver_name(e, FIELD(p, "driver"), json_str(json_get(device, "driver")));
    check_pool_name(e, FIELD(p, "pool"), json_str(json_get(device, "pool")));
    check_rule(e, FIELD(p, "device"), NAME_DNS1123_LABEL, json_str(json_get(device, "device")));
    check_share(e, p, given(device, "shareID"));
    if (!names_has(allocated, id))
        field_invalid(e, p, device, "must be an allocated device in the claim");
    check_list_size(e, FIELD(p, "conditions"), conditions, MAX_CONDITIONS);
    validate_conditions(e, FIELD(p, "conditions"), conditions);
    if (data)
        check_raw_object(e, FIELD(p, "data"), data);
    check_network(e, FIELD(p, "networkData"), given(device, "networkData"));
}

void validate_resource_claim_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *status = json_get(object, "status"), *allocation = given(status, "allocation");
    const cJSON *before = given(old, "status.allocation");
    struct names known = request_names(e->arena, json_path(object, "spec.devices.requests"));
    struct names allocated = {.arena = e->arena}, seen = {.arena = e->arena};
    AT(p, NULL, "status");
    size_t i = 0;

    check_reserved(e, FIELD(p, "reservedFor"), status);
    json_each(result, json_path(allocation, "devices.results"))
        names_add(&allocated, device_id(e->arena, result), result);
    json_each(device, json_get(status, "devices"))
    {
        const struct field_path *at = FIELD_INDEX(FIELD(p, "devices"), i++);

        check_device_status(e, at, device, &allocated);
        if (!names_add(&seen, device_id(e->arena, device), device))
            field_duplicate(e, at, json_new_string(e->arena, device_id(e->arena, device)));
    }
    if (allocation && before)
        check_immutable(e, FIELD(p, "allocation"), allocation, before);
    else if (allocation)
        check_allocation(e, FIELD(p, "allocation"), allocation, &known);
}

/* ---- DeviceClass ---- */

void validate_device_class(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *config = json_get(spec, "config");
    const cJSON *name = given(spec, "extendedResourceName");
    AT(p, NULL, "spec");
    size_t i = 0;

    (void)old;
    check_selectors(e, FIELD(p, "selectors"), json_get(spec, "selectors"));
    if (check_list_size(e, FIELD(p, "config"), config, MAX_CONFIG)) {
        json_each(item, config) check_configuration(e, FIELD_INDEX(FIELD(p, "config"), i++), item);
    }
    if (name && !is_extended_resource(json_str(name)))
        field_invalid(e, FIELD(p, "extendedResourceName"), name,
                      "must be a valid extended resource name");
}
