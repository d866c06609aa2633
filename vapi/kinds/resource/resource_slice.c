/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceSlices: the devices a driver offers. Upstream walks maps in no order; here it is the
 * object's. Must never walk a list twice over. Source: pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "device.h"

#include <sublet/encode.h>
#include <sublet/quantity.h>
#include <ctype.h>

static const struct default_rule DEFAULT_RULES[] = {
    DROPPED("spec.devices[].nodeAllocatableResourceMappings"),
    DROPPED("spec.devices[].attributes[].bools"),
    DROPPED("spec.devices[].attributes[].ints"),
    DROPPED("spec.devices[].attributes[].strings"),
    DROPPED("spec.devices[].attributes[].versions"),
};

/* Upstream's default is its clock's time: that of the object's birth. */
static void slice_prepare_create(struct arena *a, cJSON *slice)
{
    struct str born = json_str_at(slice, "metadata.creationTimestamp");

    json_each(device, json_path(slice, "spec.devices"))
    {
        json_each(taint, json_get(device, "taints"))
        {
            if (born.n && !kinds_given(taint, "timeAdded"))
                json_set_str(a, taint, "timeAdded", born);
        }
    }
}

static WARNS(slice_warnings)
{
    struct str driver = json_str_at(object, "spec.driver");

    if (!str_eq(driver, kinds_lower_case(a, driver)))
        warn(ctx, arena_printf(a,
                               "spec.driver: driver names should be lowercase; %.*s contains "
                               "uppercase characters",
                               STR_F(go_quote(a, driver))));
}

#define MAX_DEVICES          128
#define MAX_DEVICES_ADVANCED 64
#define MAX_COUNTER_SETS     8
#define MAX_COUNTERS         32
#define MAX_FACTS            32
#define MAX_TEXT             64
#define MAX_TAINTS           16
#define MAX_CONSUMED         2
#define MAX_KEY              (63 + 1 + 32) /* domain, slash, name */

#define ONE_PLACE                                                                                  \
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"

#define ONE_PLACE_OF_DEVICE                                                                        \
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "                   \
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"

static struct str cut_number(struct str *s)
{
    size_t n = 0;

    while (n < s->n && isdigit((unsigned char)s->p[n]))
        n++;
    struct str number = str_sub(*s, 0, n);
    *s = str_from(*s, n);
    return number;
}

static bool is_plain_number(struct str s)
{
    return s.n == 1 || (s.n > 1 && s.p[0] != '0');
}

/* Identifiers separated by dots; strict: numbers have no leading zero. */
static bool are_identifiers(struct str rest, bool strict)
{
    do {
        struct str part = str_cut(&rest, '.');
        struct str left = part;

        if (!kinds_is_made_of(part, "-") ||
            (strict && cut_number(&left).n == part.n && !is_plain_number(part)))
            return false;
    } while (rest.p);
    return true;
}

static bool is_semver(struct str s)
{
    struct str build = s, head = str_cut(&build, '+'), release = head;

    for (size_t i = 0; i < 3; i++) {
        if (!is_plain_number(cut_number(&release)))
            return false;
        if (i < 2 && (!release.n || release.p[0] != '.'))
            return false;
        release = i < 2 ? str_from(release, 1) : release;
    }
    if (release.n && (release.p[0] != '-' || !are_identifiers(str_from(release, 1), true)))
        return false;
    return !build.p || are_identifiers(build, false);
}

static void check_version(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    if (!is_semver(json_str(value)))
        field_invalid(e, p, value, "must be a string compatible with semver.org spec 2.0.0");
}

static const struct rule ATTRIBUTE[] = {
    MAX_LENGTH("string", MAX_TEXT),
    CHECK("version", check_version),
    MAX_LENGTH("version", MAX_TEXT),
};

static void check_attribute(struct field_errors *e, const struct field_path *p,
                            const cJSON *attribute)
{
    static const char *const types[] = {"bool", "int", "string", "version"};
    size_t n = 0;

    for (size_t i = 0; i < COUNT(types); i++)
        n += kinds_given(attribute, types[i]) != NULL;
    rules_check_value(e, p, attribute, NULL, ATTRIBUTE, COUNT(ATTRIBUTE));
    if (!n)
        field_invalid_str(e, p, STR(""), "exactly one value must be specified");
    else if (n > 1)
        field_invalid(e, p, attribute, "exactly one value must be specified");
}

/* ---- capacities ---- */

static struct quantity amount(const cJSON *value)
{
    struct quantity q = {0};

    return quantity_parse(json_str(value), &q) ? q : (struct quantity){0};
}

static void refuse(struct field_errors *e, const struct field_path *p, const cJSON *value,
                   const char *why, const cJSON *other)
{
    field_invalid_printf(e, p, value, "%s: %.*s", why, STR_F(json_str(other)));
}

static void check_step(struct field_errors *e, const struct field_path *p, const cJSON *value,
                       const cJSON *least, const cJSON *step)
{
    int64_t size = quantity_units(amount(step));

    if (size && (quantity_units(amount(value)) - quantity_units(amount(least))) % size)
        field_invalid_printf(e, p, value,
                             "value is not a multiple of a given step (%.*s) from (%.*s)",
                             STR_F(json_str(step)), STR_F(json_str(least)));
}

static void check_range_policy(struct field_errors *e, const struct field_path *p,
                               const cJSON *range, const cJSON *normal, const cJSON *capacity)
{
    const cJSON *least = kinds_given(range, "min"), *most = kinds_given(range, "max"),
                *step = kinds_given(range, "step");
    struct quantity sum;
    AT(min, p, "min");
    AT(max, p, "max");

    if (!least) {
        field_required(e, min, "required when validRange is defined");
        return;
    }
    if (quantity_cmp(amount(least), amount(capacity)) > 0)
        refuse(e, min, least, "min is larger than capacity value", capacity);
    if (quantity_cmp(amount(normal), amount(least)) < 0)
        refuse(e, min, normal, "default is less than min", least);
    if (most && quantity_cmp(amount(least), amount(most)) > 0)
        refuse(e, max, least, "min is larger than max", most);
    if (most && quantity_cmp(amount(most), amount(capacity)) > 0)
        refuse(e, max, most, "max is larger than capacity value", capacity);
    if (most && quantity_cmp(amount(normal), amount(most)) > 0)
        refuse(e, max, normal, "default is more than max", most);
    if (!step)
        return;
    sum = quantity_add(amount(least), amount(step));
    if (quantity_cmp(sum, amount(capacity)) > 0)
        field_invalid_printf(e, FIELD(p, "step"), step,
                             "one step %.*s is larger than capacity value: %.*s",
                             STR_F(quantity_format(e->arena, sum)), STR_F(json_str(capacity)));
    check_step(e, FIELD(p, "step"), normal, least, step);
    if (most)
        check_step(e, FIELD(p, "step"), most, least, step);
}

static void check_values_policy(struct field_errors *e, const struct field_path *p,
                                const cJSON *values, const cJSON *normal, const cJSON *capacity)
{
    const cJSON *before = NULL;
    bool found = false;

    field_each(value, at, p, values)
    {
        if (before && quantity_cmp(amount(before), amount(value)) > 0)
            field_invalid(e, at, value, "values must be sorted in ascending order");
        if (quantity_cmp(amount(value), amount(capacity)) > 0)
            refuse(e, at, value, "option is larger than capacity value", capacity);
        found |= quantity_cmp(amount(value), amount(normal)) == 0;
        before = value;
    }
    if (!found)
        field_invalid(e, p, normal, "default value is not valid according to the requestPolicy");
}

static void check_capacity(struct field_errors *e, const struct field_path *p,
                           const cJSON *capacity, bool shared)
{
    const cJSON *policy = kinds_given(capacity, "requestPolicy"),
                *normal = kinds_given(policy, "default");
    const cJSON *values = json_get(policy, "validValues"),
                *range = kinds_given(policy, "validRange");
    const cJSON *value = json_get(capacity, "value");
    AT(at, p, "requestPolicy");

    if (!policy)
        return;
    if (!shared)
        field_forbidden(e, at, "allowMultipleAllocations must be true");
    else if (json_count(values) && range)
        field_forbidden(e, at,
                        "exactly one policy can be specified, cannot specify \"validValues\" and "
                        "\"validRange\" at the same time");
    else if (json_count(values) && !normal)
        field_required(e, FIELD(at, "default"), "required when validValues is defined");
    else if (json_count(values))
        check_values_policy(e, FIELD(at, "validValues"), values, normal, value);
    else if (range && !normal)
        field_required(e, FIELD(at, "default"), "required when validRange is defined");
    else if (range)
        check_range_policy(e, FIELD(at, "validRange"), range, normal, value);
}

/* ---- counters ---- */

static void check_counters(struct field_errors *e, const struct field_path *p, const cJSON *map)
{
    if (!json_count(map))
        field_required(e, p, "");
    else if (check_list_size(e, p, map, MAX_COUNTERS))
        json_each(counter, map) check_rule(e, p, NAME_DNS1123_LABEL, str_c(counter->string));
}

/* A repeated name is reported at the set. */
static void check_repeated(const struct check *c, const struct rule *r)
{
    const cJSON *name = json_get(c->value, r->words);

    if (!names_add(c->seen, json_str(name), c->value))
        field_duplicate(c->e, c->at, name);
}

#define COUNTER_SETS(path, key, most)                                                              \
    EACH_OF_AT_MOST(path, most, NAME(key, DNS1123_LABEL),                                          \
                    CHECK_ALWAYS("counters", check_counters),                                      \
                    ROW(NULL, check_repeated, .words = (key)))

/* ---- where devices are ---- */

/* Which of the ways to say where are used, in the words of the error; n counts them. */
struct places {
    struct buf text;
    size_t n;
};

static void add_place(struct places *s, const char *name)
{
    buf_printf(&s->text, "%s`%s`", s->n++ ? ", " : "", name);
}

static void check_true(struct field_errors *e, const struct field_path *p, const cJSON *object,
                       const char *key, struct places *places)
{
    const cJSON *value = kinds_given(object, key);

    if (json_true(value))
        add_place(places, key);
    else if (value)
        field_invalid(e, FIELD(p, key), value, "must be either unset or set to true");
}

static void check_places(struct field_errors *e, const struct field_path *p, const cJSON *object,
                         bool of_slice, struct places *places)
{
    const cJSON *node = kinds_given(object, "nodeName"),
                *selector = kinds_given(object, "nodeSelector");
    const cJSON *terms = json_get(selector, "nodeSelectorTerms");
    AT(at, p, "nodeSelector");

    if (node && json_str(node).n) {
        add_place(places, "nodeName");
        check_rule(e, FIELD(p, "nodeName"), NAME_DNS1123_SUBDOMAIN, json_str(node));
    } else if (node) {
        field_invalid(e, FIELD(p, "nodeName"), node,
                      of_slice ? "must be either unset or set to a non-empty string"
                               : "must not be empty");
    }
    if (selector) {
        add_place(places, "nodeSelector");
        validate_node_selector(e, at, selector);
        if (of_slice && json_count(terms) != 1)
            field_invalid(e, FIELD(at, "nodeSelectorTerms"), terms,
                          "must have exactly one node selector term");
    }
    check_true(e, p, object, "allNodes", places);
    if (of_slice)
        check_true(e, p, object, "perDeviceNodeSelection", places);
}

static void check_place(struct field_errors *e, const struct field_path *p, const cJSON *object,
                        bool of_slice)
{
    struct places places = {.text = BUF_INIT(256)};
    struct str all;

    buf_char(&places.text, '{');
    check_places(e, p, object, of_slice, &places);
    buf_char(&places.text, '}');
    all = arena_str(e->arena, buf_str(&places.text));
    buf_fini(&places.text);
    if (!places.n)
        field_required(e, p, of_slice ? ONE_PLACE : ONE_PLACE_OF_DEVICE);
    else if (places.n > 1)
        field_invalid_str(
            e, p, all, of_slice ? ONE_PLACE ", but multiple fields are set" : ONE_PLACE_OF_DEVICE);
}

/* ---- devices ---- */

/* As paths show a key: one that is too long without its middle. */
static struct str short_key(struct arena *a, struct str key)
{
    size_t left = MAX_KEY - 3;

    if (key.n <= MAX_KEY)
        return key;
    return arena_printf(a, "%.*s...%.*s", STR_F(str_sub(key, 0, (left + 1) / 2)),
                        STR_F(str_from(key, key.n - left / 2)));
}

static void check_facts(struct field_errors *e, const struct field_path *p, const cJSON *device)
{
    const cJSON *attributes = json_get(device, "attributes");
    const cJSON *capacity = json_get(device, "capacity");
    size_t n = json_count(attributes) + json_count(capacity);
    bool shared = json_true(json_get(device, "allowMultipleAllocations"));
    AT(facts, p, "attributes");
    AT(amounts, p, "capacity");

    if (n > MAX_FACTS)
        field_invalid(e, p, json_new_i64(e->arena, (int64_t)n),
                      "the total number of attributes and capacities must not exceed 32");
    json_each(attribute, attributes)
    {
        struct str key = str_c(attribute->string);

        check_device_key(e, facts, key);
        check_attribute(e, FIELD_KEY(facts, short_key(e->arena, key)), attribute);
    }
    json_each(item, capacity)
    {
        struct str key = str_c(item->string);

        check_device_key(e, amounts, key);
        check_capacity(e, FIELD_KEY(amounts, short_key(e->arena, key)), item, shared);
    }
}

static void check_device_place(const struct check *c)
{
    if (json_true(json_get(c->context, "perDeviceNodeSelection")))
        check_place(c->e, c->at, c->value, false);
    else if (kinds_given(c->value, "nodeName") || kinds_given(c->value, "nodeSelector") ||
             kinds_given(c->value, "allNodes"))
        field_invalid(c->e, c->at, NULL,
                      "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                      "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
}

/* context: the spec of the slice. */
static const struct rule DEVICES[] = {
    EACH(NULL, NAME_ALWAYS("name", DNS1123_LABEL), CHECK_ALWAYS(NULL, check_facts),
         EACH_OF_AT_MOST("taints", MAX_TAINTS, NAME_ALWAYS("key", QUALIFIED),
                         NAME_IF_SET("value", LABEL_VALUE),
                         ENUM("effect", ENUM_DEVICE_TAINT_EFFECT)),
         COUNTER_SETS("consumesCounters", "counterSet", MAX_CONSUMED),
         CALL(NULL, check_device_place), ALL(RULES_BINDING_CONDITIONS)),
    UNIQUE(NULL, "name")};

/* Fewer devices fit into a slice when they have more than plain attributes. */
static size_t most_devices(const cJSON *devices)
{
    json_each(device, devices)
    {
        if (json_count(json_get(device, "taints")) ||
            json_count(json_get(device, "consumesCounters")))
            return MAX_DEVICES_ADVANCED;
    }
    return MAX_DEVICES;
}

static void check_devices(const struct check *c)
{
    if (check_list_size(c->e, c->at, c->value, most_devices(c->value)))
        rules_check_value(c->e, c->at, c->value, json_get(c->object, "spec"), DEVICES,
                          COUNT(DEVICES));
}

/* ---- ResourceSlice ---- */

static void check_slice_place(const struct check *c)
{
    check_place(c->e, c->at, c->value, true);
}

static const struct rule SLICE_RULES[] = {
    DRIVER_NAME("spec.driver"),
    CHECK_STR("spec.pool.name", check_pool_name),
    POSITIVE("spec.pool.resourceSliceCount"),
    AT_LEAST("spec.pool.generation", 0, "must be greater than or equal to zero"),
    FIXED("spec.pool.name"),
    FIXED("spec.driver"),
    FIXED("spec.nodeName"),
    CALL("spec", check_slice_place),
    WHEN_ALL("spec", NAMES("sharedCounters", "devices"),
             INVALID_AS(NULL, "", "only one of `sharedCounters` or `devices` is allowed")),
    CALL("spec.devices", check_devices),
    COUNTER_SETS("spec.sharedCounters", "name", MAX_COUNTER_SETS),
};

/* ---- the kind ---- */

const struct kind KIND_RESOURCE_SLICE = {
    RESOURCE("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", "resourceslice"),
    .resource.flags = RES_GENERATION | RES_DELETE_RETURNS_OBJECT,
    COLUMNS({"Node", "string", .cell = show_text, .path = "spec.nodeName"},
            {"Driver", "string", .cell = show_text, .path = "spec.driver"},
            {"Pool", "string", .cell = show_text, .path = "spec.pool.name"},
            {"Age", "string", .cell = show_age}),
    FIELDS({"spec.nodeName", "spec.nodeName", ""}, {"spec.driver", "spec.driver", ""}),
    .warnings = slice_warnings,
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .prepare_create = slice_prepare_create,
    .rules = RULES(SLICE_RULES),
};
