/* SPDX-License-Identifier: Apache-2.0 */
/* Environment of containers and references to fields of the pod, also from downward API volumes.
 * Source: ValidateEnv and what it calls in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>

/* ---- fields of the pod ---- */

/* Whether a label is a field at all, where it may be used. */
static const struct {
    const char *path;
    bool env, volume;
} FIELDS[] = {
    {"metadata.annotations", false, true},
    {"metadata.labels", false, true},
    {"metadata.name", true, true},
    {"metadata.namespace", true, true},
    {"metadata.uid", true, true},
    {"spec.nodeName", true, false},
    {"spec.restartPolicy", false, false},
    {"spec.serviceAccountName", true, false},
    {"spec.schedulerName", false, false},
    {"status.phase", false, false},
    {"status.hostIP", true, false},
    {"status.hostIPs", true, false},
    {"status.podIP", true, false},
    {"status.podIPs", true, false},
    {"spec.host", true, false},
};
static const char *const ENV_FIELDS[] = {"metadata.name",
                                         "metadata.namespace",
                                         "metadata.uid",
                                         "spec.nodeName",
                                         "spec.serviceAccountName",
                                         "status.hostIP",
                                         "status.hostIPs",
                                         "status.podIP",
                                         "status.podIPs",
                                         NULL};
static const char *const VOLUME_FIELDS[] = {"metadata.annotations", "metadata.labels",
                                            "metadata.name",        "metadata.namespace",
                                            "metadata.uid",         NULL};

/* metadata.labels['key']: the key; false when there is no subscript. */
static bool split_subscript(struct str path, struct str *ret_path, struct str *ret_key)
{
    size_t open = str_find(path, '[');

    if (!str_has_suffix(path, STR("']")) || !open || open + 3 >= path.n || path.p[open + 1] != '\'')
        return false;
    *ret_path = str_sub(path, 0, open);
    *ret_key = str_sub(path, open + 2, path.n - open - 4);
    return true;
}

static void unknown_field(struct field_errors *e, const struct field_path *p, struct str path,
                          const char *what)
{
    field_invalid_str_printf(e, FIELD(p, "fieldPath"), path, "error converting fieldPath: %s: %.*s",
                             what, STR_F(path));
}

static void check_subscript(struct field_errors *e, const struct field_path *p, struct str whole,
                            struct str path, struct str key)
{
    if (str_eqc(path, "metadata.annotations"))
        check_rule(e, p, NAME_QUALIFIED, kinds_lower_case(e->arena, key));
    else if (str_eqc(path, "metadata.labels"))
        check_rule(e, p, NAME_QUALIFIED, key);
    else
        unknown_field(e, p, whole, "field label does not support subscript");
}

void validate_field_ref(struct field_errors *e, const struct field_path *p, const cJSON *ref,
                        bool of_volume)
{
    struct str path = json_str(json_get(ref, "fieldPath")), name, key;
    struct str version = json_str(json_get(ref, "apiVersion"));

    if (!check_given(e, FIELD(p, "apiVersion"), version) ||
        !check_given(e, FIELD(p, "fieldPath"), path))
        return;
    if (!str_eqc(version, "v1")) {
        field_invalid_str_printf(e, FIELD(p, "fieldPath"), path,
                                 "error converting fieldPath: unsupported pod version: %.*s",
                                 STR_F(version));
        return;
    }
    if (split_subscript(path, &name, &key)) {
        check_subscript(e, p, path, name, key);
        return;
    }
    for (size_t i = 0; i < COUNT(FIELDS); i++) {
        if (!str_eqc(path, FIELDS[i].path))
            continue;
        if (!(of_volume ? FIELDS[i].volume : FIELDS[i].env))
            field_not_supported(e, FIELD(p, "fieldPath"), path,
                                of_volume ? VOLUME_FIELDS : ENV_FIELDS);
        return;
    }
    unknown_field(e, p, path, "field label not supported");
}

/* ---- resources of the container ---- */

static const char *const RESOURCES[] = {
    "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
    NULL,
};
static const char *const CPU_DIVISORS[] = {"1m", "1", NULL};
static const char *const BYTE_DIVISORS[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P",  "1E",
                                            "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", NULL};
#define BYTES "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"

static const struct {
    const char *part;
    const char *const *divisors;
    const char *why;
} DIVISORS[] = {
    {".cpu", CPU_DIVISORS, "only divisor's values 1m and 1 are supported with the cpu resource"},
    {".memory", BYTE_DIVISORS,
     "only divisor's values " BYTES " are supported with the memory resource"},
    {".ephemeral-storage", BYTE_DIVISORS,
     "only divisor's values " BYTES " are supported with the local ephemeral storage resource"},
    {".hugepages-", BYTE_DIVISORS,
     "only divisor's values " BYTES " are supported with the hugepages resource"},
};

void validate_resource_field_ref(struct field_errors *e, const struct field_path *p,
                                 const cJSON *ref, bool of_volume)
{
    struct str name = json_str(json_get(ref, "resource"));
    struct str divisor = json_str(json_get(ref, "divisor"));
    struct quantity q;

    if (of_volume && !json_str(json_get(ref, "containerName")).n)
        field_required(e, FIELD(p, "containerName"), "");
    else if (!name.n)
        field_required(e, FIELD(p, "resource"), "");
    else if (!kinds_one_of(name, RESOURCES) && !str_has_prefix(name, STR("limits.hugepages-")) &&
             !str_has_prefix(name, STR("requests.hugepages-")))
        field_not_supported(e, FIELD(p, "resource"), name, RESOURCES);
    if (!quantity_parse(divisor, &q) || q.nano == 0)
        return;
    for (size_t i = 0; i < COUNT(DIVISORS); i++) {
        if (str_contains(name, str_c(DIVISORS[i].part)) &&
            !kinds_one_of(divisor, DIVISORS[i].divisors))
            field_invalid_str(e, FIELD(p, "divisor"), name, DIVISORS[i].why);
    }
}

/* ---- sources of variables ---- */

static const struct rule OBJECT_KEY[] = {
    NAME_ALWAYS("name", DNS1123_SUBDOMAIN),
    GIVEN_STR("key", check_config_key),
};
static const struct rule FILE_KEY[] = {
    GIVEN_STR("key", check_env_name),
    NAME("volumeName", DNS1123_LABEL),
    GIVEN_STR("path", check_no_backsteps),
};

static void check_env_field(struct field_errors *e, const struct field_path *p, const cJSON *ref)
{
    validate_field_ref(e, p, ref, false);
}

static void check_env_resource(struct field_errors *e, const struct field_path *p, const cJSON *ref)
{
    validate_resource_field_ref(e, p, ref, false);
}

static const struct rule SOURCES[] = {
    CHECK("fieldRef", check_env_field),         CHECK("resourceFieldRef", check_env_resource),
    WITHIN("configMapKeyRef", ALL(OBJECT_KEY)), WITHIN("secretKeyRef", ALL(OBJECT_KEY)),
    WITHIN("fileKeyRef", ALL(FILE_KEY)),
};

static void check_value_from(const struct check *c)
{
    const cJSON *from = json_get(c->value, "valueFrom");
    AT(p, c->at, "valueFrom");
    size_t n = 0;

    for (size_t i = 0; from && i < COUNT(SOURCES); i++) {
        n += json_get(from, SOURCES[i].path) != NULL;
        rules_check_value(c->e, p, from, NULL, &SOURCES[i], 1);
    }
    if (from && !n)
        field_invalid_str(c->e, p, STR(""),
                          "must specify one of: `fieldRef`, `resourceFieldRef`, "
                          "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
    else if (from && json_str(json_get(c->value, "value")).n)
        field_invalid_str(c->e, p, STR(""), "may not be specified when `value` is not empty");
    else if (n > 1)
        field_invalid_str(c->e, p, STR(""), "may not have more than one field specified at a time");
}

const struct rule RULES_ENV[1] = {
    EACH(NULL, GIVEN_STR("name", check_env_name), CALL(NULL, check_value_from)),
};

/* Reported at the list. */
static void check_one_source(const struct check *c)
{
    bool map = json_get(c->value, "configMapRef"), secret = json_get(c->value, "secretRef");

    if (!map && !secret)
        field_invalid_str(c->e, c->at->parent, STR(""),
                          "must specify one of: `configMapRef` or `secretRef`");
    else if (map && secret)
        field_invalid_str(c->e, c->at->parent, STR(""),
                          "may not have more than one field specified at a time");
}

const struct rule RULES_ENV_FROM[1] = {
    EACH(NULL, TEST_STR("prefix", check_env_name),
         WITHIN("configMapRef", NAME("name", DNS1123_SUBDOMAIN)),
         WITHIN("secretRef", NAME("name", DNS1123_SUBDOMAIN)), CALL(NULL, check_one_source)),
};

/* ---- variables of files ---- */

struct file_check {
    struct field_errors *e;
    struct names volumes;
};

static void on_container_files(void *ctx, const struct field_path *p, const cJSON *container)
{
    const struct file_check *f = ctx;

    member_each(variable, item, p, container, "env")
    {
        const cJSON *ref = kinds_given(variable, "valueFrom.fileKeyRef");
        AT(at, item, "valueFrom.fileKeyRef.volumeName");
        struct str name = json_str(json_get(ref, "volumeName"));
        const cJSON *volume = names_get(&f->volumes, name);

        if (ref && !volume)
            field_not_found(f->e, at, json_new_string(f->e->arena, name));
        else if (ref && !kinds_given(volume, "emptyDir"))
            field_invalid_str(f->e, at, name, "referenced volume must be of type emptyDir");
    }
}

void validate_file_variables(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    struct file_check f = {.e = e, .volumes = {.arena = e->arena}};

    names_add_members(&f.volumes, json_get(spec, "volumes"), "name");
    kinds_pod_each_container(p, spec, on_container_files, &f);
}
