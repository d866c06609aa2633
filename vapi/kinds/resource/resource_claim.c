/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims. Source: pkg/apis/resource/v1/defaults.go,
 * pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "device.h"

#include <sublet/object.h>
#include <ctype.h>

static const struct default_rule DEFAULT_RULES[] = {
    SET_BY("spec", defaults_device_claim),
    SET_TEXT_Z("status.allocation.devices.results[].tolerations[].operator", "Equal"),
};

#define MAX_RESERVED   256
#define MAX_CONDITIONS 8
#define MAX_IPS        16

static const struct rule CLAIM_RULES[] = {
    FIXED("spec"), ON_CREATE(CHECK_ALWAYS("spec.devices", check_claim_devices))};

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

    if (s.n != 36 && s.n != 32)
        why = arena_printf(e->arena, "error validating uid: invalid UUID length: %zu", s.n).p;
    else if (!is_hex(s, s.n == 36 ? form : NULL))
        why = "error validating uid: invalid UUID format";
    else if (s.n != 36 || !str_eq(s, kinds_lower_case(e->arena, s)))
        why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
              "with lowercase hexadecimal characters";
    if (why)
        field_invalid(e, p, id, why);
}

static const struct rule DEVICE_ID[] = {
    DRIVER_NAME("driver"),
    CHECK_STR("pool", check_pool_name),
    NAME_ALWAYS("device", DNS1123_LABEL),
};

/* context: names of the requests of the claim. */
static const struct rule RESULT[] = {
    CALL("request", check_request_name),
    ALL(DEVICE_ID),
    ALL(RULES_BINDING_CONDITIONS),
    CHECK("shareID", check_share),
};

static const struct rule ALLOCATION[] = {
    EACH_OF_AT_MOST("devices.results", MAX_REQUESTS, ALL(RESULT)),
    EACH_OF_AT_MOST("devices.config", 2 * MAX_CONFIG, ENUM("source", ENUM_ALLOCATION_CONFIG_SOURCE),
                    ALL(RULES_REQUEST_REFS), ALL(RULES_DEVICE_CONFIG)),
    CHECK("nodeSelector", validate_node_selector),
};

static void check_reserved(const struct check *c)
{
    size_t n = json_count(c->value);

    if (n && n <= MAX_RESERVED && !kinds_given(c->object, "status.allocation"))
        field_forbidden(c->e, c->at, "may not be specified when `allocated` is not set");
}

static const struct rule CONSUMERS[] = {
    EACH_OF_AT_MOST("status.reservedFor", MAX_RESERVED, ALL_GIVEN(NULL, "resource", "name", "uid")),
    UNIQUE_OF_AT_MOST("status.reservedFor", MAX_RESERVED, "uid"),
    CALL("status.reservedFor", check_reserved),
};

static struct str device_id(struct arena *a, const cJSON *device)
{
    struct str share = json_str(json_get(device, "shareID"));
    struct str id = arena_printf(a, "%.*s/%.*s/%.*s", STR_F(json_str(json_get(device, "driver"))),
                                 STR_F(json_str(json_get(device, "pool"))),
                                 STR_F(json_str(json_get(device, "device"))));

    return share.n ? arena_printf(a, "%.*s/%.*s", STR_F(id), STR_F(share)) : id;
}

static void check_allocated(const struct check *c)
{
    if (!names_has(c->context, device_id(c->e->arena, c->value)))
        field_invalid(c->e, c->at, c->value, "must be an allocated device in the claim");
}

/* context: the devices of the allocation. */
static const struct rule DEVICE_STATUS[] = {
    ALL(DEVICE_ID),
    CHECK("shareID", check_share),
    CALL(NULL, check_allocated),
    MAX_ITEMS("conditions", MAX_CONDITIONS),
    CONDITIONS("conditions"),
    CHECK("data", check_raw_object),
    WITHIN("networkData", MAX_LENGTH("interfaceName", 256), MAX_LENGTH("hardwareAddress", 128),
           EACH_OF_AT_MOST("ips", MAX_IPS, TEST_STR(NULL, check_interface)),
           UNIQUE_OF_AT_MOST("ips", MAX_IPS, NULL)),
};

static void validate_resource_claim_status(struct field_errors *e, const cJSON *object,
                                           const cJSON *old)
{
    const cJSON *status = json_get(object, "status"),
                *allocation = kinds_given(status, "allocation");
    const cJSON *before = kinds_given(old, "status.allocation");
    struct names known = names_of_requests(e->arena, json_path(object, "spec.devices.requests"));
    struct names allocated = {.arena = e->arena}, seen = {.arena = e->arena};
    AT(p, NULL, "status");

    rules_check_value(e, NULL, object, NULL, CONSUMERS, COUNT(CONSUMERS));
    json_each(result, json_path(allocation, "devices.results"))
        names_add(&allocated, device_id(e->arena, result), result);
    member_each(device, at, p, status, "devices")
    {
        rules_check_value(e, at, device, &allocated, DEVICE_STATUS, COUNT(DEVICE_STATUS));
        if (!names_add(&seen, device_id(e->arena, device), device))
            field_duplicate(e, at, json_new_string(e->arena, device_id(e->arena, device)));
    }
    if (allocation && before)
        check_immutable(e, FIELD(p, "allocation"), allocation, before);
    else if (allocation)
        rules_check_value(e, FIELD(p, "allocation"), allocation, &known, ALLOCATION,
                          COUNT(ALLOCATION));
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

const struct kind KIND_RESOURCE_CLAIM = {
    RESOURCE("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", "resourceclaim"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE |
                      RES_STATUS_KEEPS_META,
    COLUMNS({"State", "string", .cell = cell_state}, {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("ResourceClaim")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .new_status = "{}",
    .rules = RULES(CLAIM_RULES),
    .validate_status = validate_resource_claim_status,
};
