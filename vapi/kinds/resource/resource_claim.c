/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims. Source: pkg/apis/resource/v1/defaults.go,
 * pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "device.h"

#include <sublet/object.h>
#include <ctype.h>

static void claim_defaults(struct arena *a, cJSON *claim)
{
    static const struct default_rule rules[] = {
        SET_TEXT_Z("status.allocation.devices.results[].tolerations[].operator", "Equal")};

    defaults_device_claim(a, json_get(claim, "spec"));
    defaults_apply(a, claim, rules, COUNT(rules));
}

#define MAX_RESERVED 256

#define MAX_CONDITIONS 8

#define MAX_IPS 16

static void validate_resource_claim(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    if (old)
        check_immutable(e, p, spec, json_get(old, "spec"));
    else
        check_claim_devices(e, FIELD(p, "devices"), json_get(spec, "devices"));
}

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

            check_enum(e, FIELD(at, "source"), json_str(json_get(item, "source")),
                       ENUM_ALLOCATION_CONFIG_SOURCE);
            check_request_refs(e, FIELD(at, "requests"), json_get(item, "requests"), known);
            check_device_config(e, at, item);
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

static void validate_resource_claim_status(struct field_errors *e, const cJSON *object,
                                           const cJSON *old)
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

CELL(cell_state)
{
    bool deleting = object_is_terminating(r->object);
    const cJSON *status = json_get(r->object, "status");

    if (json_get(status, "allocation"))
        cell_printf(r, "%sallocated%s", deleting ? "deleted," : "",
                    json_count(json_get(status, "reservedFor")) ? ",reserved" : "");
    else
        cell_text(r, deleting ? STR("deleted") : STR("pending"));
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"State", "string", .cell = cell_state},
    {"Age", "string", .cell = show_age},
    {NULL},
};

const struct kind KIND_RESOURCE_CLAIM = {
    .resource =
        {
            RESOURCE("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", "resourceclaim"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE |
                     RES_STATUS_KEEPS_META,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("ResourceClaim")),
        },
    .defaults = claim_defaults,
    .new_status = "{}",
    .validate = validate_resource_claim,
    .validate_status = validate_resource_claim_status,
};
