/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of strings and objects that many kinds share, in upstream's words and order. Must never
 * change what it looks at. Source: apimachinery pkg/util/validation, pkg/api/validation,
 * pkg/apis/meta/v1/validation. */
#include "check.h"

#include <sublet/kinds.h>

#include <ctype.h>
#include <string.h>

#define MAX_ANNOTATIONS (256 * 1024)

const struct field_path KINDS_SPEC = {.name = "spec"}, KINDS_STATUS = {.name = "status"};

/* ---- lists ---- */

bool kinds_one_of(struct str s, const char *const *list)
{
    for (size_t i = 0; list[i]; i++) {
        if (str_eqc(s, list[i]))
            return true;
    }
    return false;
}

const cJSON *kinds_given(const cJSON *object, const char *path)
{
    const cJSON *value = json_path(object, path);

    return json_is_null(value) ? NULL : value;
}

bool kinds_same_value(const cJSON *a, const cJSON *b)
{
    a = json_is_null(a) ? NULL : a;
    b = json_is_null(b) ? NULL : b;
    return a && b ? json_equal(a, b) : a == b;
}

bool check_immutable(struct field_errors *e, const struct field_path *p, const cJSON *value,
                     const cJSON *old)
{
    if (kinds_same_value(value, old))
        return true;
    field_invalid(e, p, value, IMMUTABLE);
    return false;
}

void check_immutable_text(struct field_errors *e, const struct field_path *p, const cJSON *value,
                          const cJSON *old)
{
    if (!value && json_str(old).n)
        field_invalid_str(e, p, STR(""), IMMUTABLE);
    else
        check_immutable(e, p, value, old);
}

bool kinds_same_at(const cJSON *a, const cJSON *b, const char *path)
{
    return kinds_same_value(json_path(a, path), json_path(b, path));
}

bool kinds_text_is(const cJSON *object, const char *path, const char *text)
{
    return str_eqc(json_str_at(object, path), text);
}

bool check_list_size(struct field_errors *e, const struct field_path *p, const cJSON *list,
                     size_t most)
{
    if (json_count(list) > most)
        field_too_many(e, p, json_count(list), most);
    return json_count(list) <= most;
}

/* ---- strings ---- */

bool kinds_is_made_of(struct str s, const char *others)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!s.p[i] || (!isalnum((unsigned char)s.p[i]) && !strchr(others, s.p[i])))
            return false;
    }
    return s.n > 0;
}

struct str kinds_lower_case(struct arena *a, struct str s)
{
    char *copy = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        copy[i] = (char)tolower((unsigned char)copy[i]);
    return (struct str){copy, s.n};
}

struct str kinds_trimmed(struct str s)
{
    while (s.n && (s.p[0] == ' ' || (s.p[0] >= '\t' && s.p[0] <= '\r')))
        s = str_from(s, 1);
    while (s.n && (s.p[s.n - 1] == ' ' || (s.p[s.n - 1] >= '\t' && s.p[s.n - 1] <= '\r')))
        s = str_sub(s, 0, s.n - 1);
    return s;
}

bool check_rule(struct field_errors *e, const struct field_path *p, enum name_rule rule,
                struct str s)
{
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(rule, s, messages);

    for (size_t i = 0; i < n; i++)
        field_invalid_str(e, p, s, messages[i]);
    return n == 0;
}

/* check_rule() of its lower case. */
static bool check_rule_caseless(struct field_errors *e, const struct field_path *p,
                                enum name_rule rule, struct str s)
{
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(rule, kinds_lower_case(e->arena, s), messages);

    for (size_t i = 0; i < n; i++)
        field_invalid_str(e, p, s, messages[i]);
    return n == 0;
}

bool check_given(struct field_errors *e, const struct field_path *p, struct str s)
{
    if (!s.n)
        field_required(e, p, "");
    return s.n > 0;
}

bool check_enum(struct field_errors *e, const struct field_path *p, struct str s,
                const char *const *supported)
{
    if (!check_given(e, p, s))
        return false;
    if (kinds_one_of(s, supported))
        return true;
    field_not_supported(e, p, s, supported);
    return false;
}

bool check_enum_if(struct field_errors *e, const struct field_path *p, const cJSON *value,
                   const char *const *supported)
{
    if (!value || kinds_one_of(json_str(value), supported))
        return true;
    field_not_supported(e, p, json_str(value), supported);
    return false;
}

void check_driver_name(struct field_errors *e, const struct field_path *p, struct str driver)
{
    if (!check_given(e, p, driver))
        return;
    if (driver.n > 63)
        field_too_long(e, p, 63);
    check_rule_caseless(e, p, NAME_DNS1123_SUBDOMAIN, driver);
}

static bool no_upward_prefix(struct field_errors *e, const struct field_path *p, struct str s)
{
    if (str_eqc(s, "."))
        field_invalid_str(e, p, s, "must not be '.'");
    else if (str_eqc(s, ".."))
        field_invalid_str(e, p, s, "must not be '..'");
    else if (str_has_prefix(s, STR("..")))
        field_invalid_str(e, p, s, "must not start with '..'");
    else
        return true;
    return false;
}

bool check_config_key(struct field_errors *e, const struct field_path *p, struct str key)
{
    size_t before = e->n;

    if (key.n > 253)
        field_invalid_str(e, p, key, "must be no more than 253 characters");
    if (!kinds_is_made_of(key, "-_."))
        field_invalid_str(
            e, p, key,
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')");
    no_upward_prefix(e, p, key);
    return e->n == before;
}

bool check_env_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] >= ' ' && name.p[i] < 0x7f && name.p[i] != '=')
            continue;
        field_invalid_str(e, p, name,
                          "a valid environment variable name must consist only of printable ASCII "
                          "characters other than '='");
        return false;
    }
    return true;
}

bool check_port_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    size_t before = e->n, letters = 0;
    bool charset = name.n > 0;

    for (size_t i = 0; i < name.n; i++) {
        letters += islower((unsigned char)name.p[i]) != 0;
        charset &= islower((unsigned char)name.p[i]) || isdigit((unsigned char)name.p[i]) ||
                   name.p[i] == '-';
    }
    if (name.n > 15)
        field_invalid_str(e, p, name, "must be no more than 15 characters");
    if (!charset)
        field_invalid_str(e, p, name,
                          "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    if (!letters)
        field_invalid_str(e, p, name, "must contain at least one letter (a-z)");
    if (str_contains(name, STR("--")))
        field_invalid_str(e, p, name, "must not contain consecutive hyphens");
    if (name.n && (name.p[0] == '-' || name.p[name.n - 1] == '-'))
        field_invalid_str(e, p, name, "must not begin or end with a hyphen");
    return e->n == before;
}

static bool is_underscored_label(struct str s)
{
    if (s.n && s.p[0] == '_')
        s = str_from(s, 1);
    if (!s.n || strchr("-_", s.p[0]) || strchr("-_", s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!islower((unsigned char)s.p[i]) && !isdigit((unsigned char)s.p[i]) && s.p[i] != '-' &&
            s.p[i] != '_')
            return false;
    }
    return true;
}

#define UNDERSCORED "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"

bool check_underscored_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    struct str rest = name;

    if (name.n > 253)
        field_invalid_str(e, p, name, "must be no more than 253 characters");
    do {
        if (!is_underscored_label(str_cut(&rest, '.'))) {
            field_invalid_str(
                e, p, name,
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                "characters, '_', '-' or '.', and must start and end with an alphanumeric "
                "character "
                "(e.g. 'example.com', regex used for validation is '" UNDERSCORED "(\\." UNDERSCORED
                ")*')");
            return false;
        }
    } while (rest.p);
    return name.n <= 253;
}

void check_annotations(struct field_errors *e, const struct field_path *p, const cJSON *map)
{
    size_t total = 0;

    json_each(annotation, map)
    {
        struct str key = str_c(annotation->string);

        check_rule_caseless(e, p, NAME_QUALIFIED, key);
        total += key.n + json_str(annotation).n;
    }
    if (total > MAX_ANNOTATIONS)
        field_too_long(e, p, MAX_ANNOTATIONS);
}

/* ---- paths of files ---- */

bool kinds_is_absolute(struct str path)
{
    return path.n > 0 && path.p[0] == '/';
}

bool check_no_backsteps(struct field_errors *e, const struct field_path *p, struct str path)
{
    struct str rest = path;

    do {
        if (str_eqc(str_cut(&rest, '/'), "..")) {
            field_invalid_str(e, p, path, "must not contain '..'");
            return false;
        }
    } while (rest.p);
    return true;
}

void check_descending_path(struct field_errors *e, const struct field_path *p, struct str path)
{
    if (kinds_is_absolute(path))
        field_invalid_str(e, p, path, "must be a relative path");
    check_no_backsteps(e, p, path);
}

void check_local_path(struct field_errors *e, const struct field_path *p, struct str path)
{
    check_descending_path(e, p, path);
    if (str_has_prefix(path, STR("..")) && !str_has_prefix(path, STR("../")))
        field_invalid_str(e, p, path, "must not start with '..'");
}

bool check_domain_prefixed_path(struct field_errors *e, const struct field_path *p, struct str text)
{
    struct str rest = text, domain = str_cut(&rest, '/');
    size_t before = e->n;

    if (!check_given(e, p, text))
        return false;
    if (!rest.p || !domain.n || !rest.n) {
        field_invalid_str(e, p, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        return false;
    }
    check_rule(e, p, NAME_DNS1123_SUBDOMAIN, domain);
    if (!kinds_is_made_of(rest, "/-._~%!$&'()*+,;=:"))
        field_invalid_str(
            e, p, rest,
            "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
    return e->n == before;
}

/* ---- labels and selectors ---- */

void validate_labels(struct field_errors *e, const struct field_path *p, const cJSON *labels)
{
    json_each(label, labels)
    {
        check_rule(e, p, NAME_QUALIFIED, str_c(label->string));
        check_rule(e, p, NAME_LABEL_VALUE, json_str(label));
    }
}

void check_selector_values(struct field_errors *e, const struct field_path *p, struct str op,
                           const cJSON *values)
{
    if (str_eqc(op, "In") || str_eqc(op, "NotIn")) {
        if (!json_count(values))
            field_required(e, FIELD(p, "values"),
                           "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (str_eqc(op, "Exists") || str_eqc(op, "DoesNotExist")) {
        if (json_count(values))
            field_forbidden(e, FIELD(p, "values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
        field_invalid_str(e, FIELD(p, "operator"), op, "not a valid selector operator");
    }
}

void validate_label_selector(struct field_errors *e, const struct field_path *p,
                             const cJSON *selector)
{
    if (!selector)
        return;
    validate_labels(e, FIELD(p, "matchLabels"), json_get(selector, "matchLabels"));
    member_each(requirement, at, p, selector, "matchExpressions")
    {
        check_selector_values(e, at, json_str(json_get(requirement, "operator")),
                              json_get(requirement, "values"));
        check_rule(e, FIELD(at, "key"), NAME_QUALIFIED, json_str(json_get(requirement, "key")));
        member_each(value, value_at, at, requirement, "values")
            check_rule(e, value_at, NAME_LABEL_VALUE, json_str(value));
    }
}

/* ---- conditions ---- */

void check_reason(struct field_errors *e, const struct field_path *p, struct str reason)
{
    bool ok = kinds_is_made_of(reason, "_,:") && isalpha((unsigned char)reason.p[0]) &&
              !strchr(",:", reason.p[reason.n - 1]);

    if (!check_given(e, p, reason))
        return;
    if (!ok)
        field_invalid_str(
            e, p, reason,
            "a condition reason must start with alphabetic character, optionally followed by a "
            "string of alphanumeric characters or '_,:', and must end with an alphanumeric "
            "character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB', "
            " or 'ReasonA:ReasonB', regex used for validation is "
            "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
    if (reason.n > 1024)
        field_too_long(e, p, 1024);
}
