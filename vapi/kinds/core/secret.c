/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets. stringData must never reach the store. Source: ValidateSecret in
 * pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "data.h"
#include "../../types/tree.h"

#include <sublet/encode.h>

#define ACCOUNT_NAME "kubernetes.io/service-account.name"

/* stringData wins over data. */
static void put_string_data(struct arena *a, cJSON *data, const cJSON *texts)
{
    struct names there = {.arena = a};

    names_add_keys(&there, data);
    json_each(item, texts)
    {
        cJSON *value = json_new_string(a, base64_encode(a, json_str(item)));
        const cJSON *old = names_get(&there, str_c(item->string));

        if (old)
            tree_become((cJSON *)(uintptr_t)old, value);
        else
            json_add(data, item->string, value);
    }
    tree_sort_members(a, data);
}

static const struct default_rule DEFAULT_RULES[] = {SET_TEXT_Z("type", "Opaque")};

static void secret_defaults(struct arena *a, cJSON *secret)
{
    if (!json_get(secret, "stringData"))
        return;
    if (json_count(json_get(secret, "stringData")))
        put_string_data(a, json_ensure_object(a, secret, "data"), json_get(secret, "stringData"));
    json_remove(secret, "stringData");
}

/* What the types of secrets must contain. */
static const struct secret_type {
    const char *type, *keys[2];
    enum { ALL_KEYS, ANY_KEY, FILLED, JSON_TEXT } rule;
} SECRET_TYPES[] = {
    {"kubernetes.io/dockercfg", {".dockercfg"}, JSON_TEXT},
    {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}, JSON_TEXT},
    {"kubernetes.io/basic-auth", {"username", "password"}, ANY_KEY},
    {"kubernetes.io/ssh-auth", {"ssh-privatekey"}, FILLED},
    {"kubernetes.io/tls", {"tls.crt", "tls.key"}, ALL_KEYS},
};

static void check_json(struct field_errors *e, const struct field_path *p, const cJSON *value)
{
    struct str text;
    struct err err;
    cJSON *tree;

    if (!base64_decode(e->arena, json_str(value), &text))
        return;
    err_init(&err, e->arena);
    if (json_parse(e->arena, text, &tree, &err)) /* in upstream's words: no place in brackets */
        field_invalid_str(
            e, p, STR("<secret contents redacted>"),
            arena_cstr(e->arena, str_sub(err.message, 0, str_rfind(err.message, '(') - 1)));
    else if (!json_is_object(tree) && !json_is_null(tree))
        field_invalid_str_printf(e, p, STR("<secret contents redacted>"),
                                 "json: cannot unmarshal %s into Go value of type "
                                 "map[string]interface {}",
                                 json_type_name(tree));
}

static void check_keys(struct field_errors *e, const struct field_path *p, const cJSON *data,
                       const struct secret_type *type)
{
    size_t there = 0;

    for (size_t i = 0; i < COUNT(type->keys) && type->keys[i]; i++)
        there += json_get(data, type->keys[i]) != NULL;
    if (type->rule == ANY_KEY && there)
        return;
    for (size_t i = 0; i < COUNT(type->keys) && type->keys[i]; i++) {
        const struct field_path *at = FIELD_KEY(p, str_c(type->keys[i]));
        const cJSON *value = json_get(data, type->keys[i]);

        if (!value || (type->rule == FILLED && !json_str(value).n))
            field_required(e, at, "");
        else if (type->rule == JSON_TEXT)
            check_json(e, at, value);
    }
}

static void secret_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const members[] = {"data", NULL};
    AT(p, NULL, "data");
    size_t total = 0;
    const struct field_path *annotations = FIELD(FIELD(NULL, "metadata"), "annotations");
    struct str type;

    if (old)
        check_immutable(e, FIELD(NULL, "type"), json_get(object, "type"), json_get(old, "type"));
    check_frozen(e, object, old, members);
    json_each(item, json_get(object, "data"))
    {
        check_config_key(e, FIELD_KEY(p, str_c(item->string)), str_c(item->string));
        total += kinds_decoded_size(json_str(item));
    }
    if (total > MAX_DATA)
        field_too_long(e, p, MAX_DATA);
    type = json_str(json_get(object, "type"));
    if (str_eqc(type, "kubernetes.io/service-account-token"))
        check_given(e, FIELD_KEY(annotations, STR(ACCOUNT_NAME)),
                    json_str(json_get(json_path(object, "metadata.annotations"), ACCOUNT_NAME)));
    for (size_t i = 0; i < COUNT(SECRET_TYPES); i++) {
        if (str_eqc(type, SECRET_TYPES[i].type))
            check_keys(e, p, json_get(object, "data"), &SECRET_TYPES[i]);
    }
}

/* Only what can be said without reading certificates. */
static WARNS(warn_secret)
{
    struct str certificate, key;

    if (!str_eqc(json_str(json_get(object, "type")), "kubernetes.io/tls") ||
        !base64_decode(a, json_str(json_get(json_get(object, "data"), "tls.crt")), &certificate) ||
        !base64_decode(a, json_str(json_get(json_get(object, "data"), "tls.key")), &key))
        return;
    if (!str_contains(certificate, STR("-----BEGIN ")))
        warn(ctx, STR("tls: failed to find any PEM data in certificate input"));
    else if (!str_contains(key, STR("-----BEGIN ")))
        warn(ctx, STR("tls: failed to find any PEM data in key input"));
}

/* ---- the kind ---- */

const struct kind KIND_SECRET = {
    RESOURCE("", "v1", "Secret", "secrets", "secret"),
    .resource.flags = RES_NAMESPACED | RES_NAME_ON_UPDATE,
    COLUMNS({"Type", "string", .cell = show_text, .path = "type"},
            {"Data", "string", .cell = show_count, .path = "data"},
            {"Age", "string", .cell = show_age}),
    FIELDS({"type", "type", ""}),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .defaults = secret_defaults,
    .validate = secret_validate,
    .warnings = warn_secret,
};
