/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of pods: each of one type, named once, and what the types in use require. Must never look
 * at what a node has: that is the host's verdict. Source: validateVolumeSource and what it calls in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/encode.h>

static void want(struct field_errors *e, const struct field_path *p, const cJSON *object,
                 const char *name)
{
    check_given(e, FIELD(p, name), json_str(json_get(object, name)));
}

void validate_host_path(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    struct str path = json_str(json_get(source, "path"));

    if (!check_given(e, FIELD(p, "path"), path))
        return;
    check_no_backsteps(e, FIELD(p, "path"), path);
    check_enum_if(e, FIELD(p, "type"), json_get(source, "type"), ENUM_HOST_PATH_TYPE);
}

static void check_git(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    want(e, p, source, "repository");
    check_descending_path(e, FIELD(p, "directory"), json_str(json_get(source, "directory")));
}

void validate_nfs(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    struct str path = json_str(json_get(source, "path"));

    want(e, p, source, "server");
    want(e, p, source, "path");
    if (!is_absolute(path))
        field_invalid_str(e, FIELD(p, "path"), path, "must be an absolute path");
}

static void check_claim(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    want(e, p, source, "claimName");
}

static void check_csi(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    const cJSON *secret = json_get(source, "nodePublishSecretRef");
    struct str name = json_str_at(secret, "name");

    check_driver_name(e, FIELD(p, "driver"), json_str(json_get(source, "driver")));
    if (secret && check_given(e, FIELD(FIELD(p, "nodePublishSecretRef"), "name"), name))
        check_rule(e, FIELD(p, "name"), NAME_DNS1123_SUBDOMAIN, name); /* upstream's own path */
}

static void check_empty_dir(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    struct str limit = json_str(json_get(source, "sizeLimit"));

    if (limit.n && limit.p[0] == '-')
        field_forbidden(e, FIELD(p, "sizeLimit"),
                        "SizeLimit field must be a valid resource quantity");
}

static void check_image(struct field_errors *e, const struct field_path *p, const cJSON *source)
{

    check_enum(e, FIELD(p, "pullPolicy"), json_str(json_get(source, "pullPolicy")),
               ENUM_PULL_POLICY);
}

static void check_ephemeral(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    const cJSON *template_ = json_get(source, "volumeClaimTemplate");

    if (template_)
        validate_claim_template(e, FIELD(p, "volumeClaimTemplate"), template_);
    else
        field_required(e, FIELD(p, "volumeClaimTemplate"), "");
}

/* ---- files made of objects ---- */

static void check_key(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    struct str path = json_str(json_get(item, "path"));

    want(e, p, item, "key");
    check_given(e, FIELD(p, "path"), path);
    check_local_path(e, FIELD(p, "path"), path);
    check_file_mode(e, FIELD(p, "mode"), json_get(item, "mode"));
}

static void check_keys(struct field_errors *e, const struct field_path *p, const cJSON *source,
                       const char *name)
{
    const struct field_path *items = FIELD(p, "items");
    size_t i = 0;

    want(e, p, source, name);
    check_file_mode(e, FIELD(p, "defaultMode"), json_get(source, "defaultMode"));
    json_each(item, json_get(source, "items")) check_key(e, FIELD_INDEX(items, i++), item);
}

static void check_secret(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    check_keys(e, p, source, "secretName");
}

static void check_config_map(struct field_errors *e, const struct field_path *p,
                             const cJSON *source)
{
    check_keys(e, p, source, "name");
}

static void check_file(struct field_errors *e, const struct field_path *p, const cJSON *file)
{
    struct str path = json_str(json_get(file, "path"));
    const cJSON *field = json_get(file, "fieldRef"), *amount = json_get(file, "resourceFieldRef");

    check_given(e, FIELD(p, "path"), path);
    check_local_path(e, FIELD(p, "path"), path);
    if (field) {
        validate_field_ref(e, FIELD(p, "fieldRef"), field, true);
        if (amount)
            field_invalid_str(e, p, STR("resource"),
                              "fieldRef and resourceFieldRef can not be specified simultaneously");
    } else if (amount) {
        validate_resource_field_ref(e, FIELD(p, "resourceFieldRef"), amount, true);
    } else {
        field_required(e, p, "one of fieldRef and resourceFieldRef is required");
    }
    check_file_mode(e, FIELD(p, "mode"), json_get(file, "mode"));
}

static void check_downward(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    check_file_mode(e, FIELD(p, "defaultMode"), json_get(source, "defaultMode"));
    json_each(file, json_get(source, "items")) check_file(e, p, file);
}

/* ---- projected ---- */

/* Paths of all sources of one volume: a file may come from one of them only. */
struct projection {
    struct field_errors *e;
    const struct field_path *p;
    struct names paths;
};

static void claim_path(struct projection *j, struct str path, struct str shown)
{
    if (path.n && !names_add(&j->paths, path, NULL))
        field_invalid_str(j->e, j->p, shown, "conflicting duplicate paths");
}

static void project_object(struct projection *j, const struct field_path *p, const cJSON *source)
{
    const struct field_path *items = FIELD(p, "items");
    struct str name = json_str(json_get(source, "name"));
    size_t i = 0;

    check_given(j->e, FIELD(p, "name"), name);
    json_each(item, json_get(source, "items"))
    {
        check_key(j->e, FIELD_INDEX(items, i++), item);
        claim_path(j, json_str(json_get(item, "path")), name);
    }
}

static void project_downward(struct projection *j, const struct field_path *p, const cJSON *source)
{
    json_each(file, json_get(source, "items"))
    {
        struct str path = json_str(json_get(file, "path"));

        check_file(j->e, p, file);
        claim_path(j, path, path);
    }
}

static void project_token(struct projection *j, const struct field_path *p, const cJSON *source)
{
    const cJSON *seconds = json_get(source, "expirationSeconds");
    struct str path = json_str(json_get(source, "path"));
    int64_t n = 0;

    json_i64(seconds, &n);
    if (n < 600)
        field_invalid(j->e, FIELD(p, "expirationSeconds"), seconds,
                      "may not specify a duration less than 10 minutes");
    if (n > INT64_C(1) << 32)
        field_invalid(j->e, FIELD(p, "expirationSeconds"), seconds,
                      "may not specify a duration larger than 2^32 seconds");
    if (check_given(j->e, FIELD(j->p, "path"), path))
        check_local_path(j->e, FIELD(j->p, "path"), path);
}

static const struct {
    const char *name;
    void (*check)(struct projection *j, const struct field_path *p, const cJSON *source);
} PROJECTIONS[] = {
    {"secret", project_object},
    {"configMap", project_object},
    {"downwardAPI", project_downward},
    {"serviceAccountToken", project_token},
};

static void check_projected(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    struct projection j = {e, p, {.arena = e->arena}};
    const struct field_path *list = FIELD(p, "sources");
    size_t i = 0;

    check_file_mode(e, FIELD(p, "defaultMode"), json_get(source, "defaultMode"));
    json_each(one, json_get(source, "sources"))
    {
        const struct field_path *at = FIELD_INDEX(list, i++);

        for (size_t k = 0; k < COUNT(PROJECTIONS); k++) {
            const cJSON *part = json_get(one, PROJECTIONS[k].name);

            if (part)
                PROJECTIONS[k].check(&j, FIELD(at, PROJECTIONS[k].name), part);
        }
        if (json_count(one) > 1)
            field_forbidden(e, at, "may not specify more than 1 volume type per source");
    }
}

/* ---- one type a volume; in upstream's order ---- */

static const struct source {
    const char *name;
    void (*check)(struct field_errors *e, const struct field_path *p, const cJSON *source);
    const char *shown; /* in paths, when upstream writes it otherwise */
} SOURCES[] = {
    {"emptyDir", check_empty_dir, NULL},
    {"hostPath", validate_host_path, NULL},
    {"gitRepo", check_git, NULL},
    {"gcePersistentDisk", NULL, NULL},
    {"awsElasticBlockStore", NULL, NULL},
    {"secret", check_secret, NULL},
    {"nfs", validate_nfs, NULL},
    {"iscsi", NULL, NULL},
    {"glusterfs", NULL, NULL},
    {"flocker", NULL, NULL},
    {"persistentVolumeClaim", check_claim, NULL},
    {"rbd", NULL, NULL},
    {"cinder", NULL, NULL},
    {"cephfs", NULL, "cephFS"},
    {"quobyte", NULL, NULL},
    {"downwardAPI", check_downward, "downwarAPI"},
    {"fc", NULL, NULL},
    {"flexVolume", NULL, NULL},
    {"configMap", check_config_map, NULL},
    {"azureFile", NULL, NULL},
    {"vsphereVolume", NULL, NULL},
    {"photonPersistentDisk", NULL, NULL},
    {"portworxVolume", NULL, NULL},
    {"azureDisk", NULL, NULL},
    {"storageos", NULL, NULL},
    {"projected", check_projected, NULL},
    {"scaleIO", NULL, NULL},
    {"csi", check_csi, NULL},
    {"ephemeral", check_ephemeral, NULL},
    {"image", check_image, NULL},
};

/* The claim that is made for a volume of its own. */
static struct str made_claim(struct arena *a, const struct pod_rules *rules, struct str volume)
{
    return arena_printf(a, "%.*s-%.*s", STR_F(rules->name), STR_F(volume));
}

static void check_made_claim(struct field_errors *e, const struct field_path *p, struct str volume,
                             const struct pod_rules *rules)
{
    struct str claim = made_claim(e->arena, rules, volume);
    const char *messages[NAME_MESSAGES_MAX];
    size_t n = name_check(NAME_DNS1123_SUBDOMAIN, claim, messages);

    for (size_t i = 0; i < n; i++)
        field_invalid_str(e, FIELD(p, "name"), volume,
                          arena_printf(e->arena, "PVC name %.*s: %s",
                                       STR_F(go_quote(e->arena, claim)), messages[i])
                              .p);
}

/* What is asked of a source because of the pod around it. */
static void check_in_pod(struct field_errors *e, const struct field_path *p, const cJSON *volume,
                         const char *source, const struct pod_rules *rules)
{
    struct str name = json_str(json_get(volume, "name"));

    if (str_eqc(str_c(source), "image") && rules->is_pod)
        check_given(e, FIELD(FIELD(p, "image"), "reference"),
                    json_str_at(volume, "image.reference"));
    if (str_eqc(str_c(source), "ephemeral") && rules->name.n && name.n)
        check_made_claim(e, p, name, rules);
}

static void check_source(struct field_errors *e, const struct field_path *p, const cJSON *volume,
                         const struct pod_rules *rules)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(SOURCES); i++) {
        const cJSON *source = json_get(volume, SOURCES[i].name);

        if (!source)
            continue;
        if (n++)
            field_forbidden(e, FIELD(p, SOURCES[i].shown ? SOURCES[i].shown : SOURCES[i].name),
                            "may not specify more than 1 volume type");
        else if (SOURCES[i].check)
            SOURCES[i].check(e, FIELD(p, SOURCES[i].name), source);
        else
            validate_legacy_volume(e, p, SOURCES[i].name, source, false,
                                   json_str(json_get(volume, "name")));
        if (n == 1)
            check_in_pod(e, p, volume, SOURCES[i].name, rules);
    }
    if (!n)
        field_required(e, p, "must specify a volume type");
}

void validate_volumes(struct field_errors *e, const struct field_path *p, const cJSON *volumes,
                      const struct pod_rules *rules, struct names *ret)
{
    struct names made = {.arena = e->arena};
    size_t i = 0;

    json_each(volume, volumes)
    {
        if (rules->name.n && json_get(volume, "ephemeral"))
            names_add(&made, made_claim(e->arena, rules, json_str(json_get(volume, "name"))), NULL);
    }
    json_each(volume, volumes)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        const cJSON *claim = json_path(volume, "persistentVolumeClaim.claimName");
        struct str name = json_str(json_get(volume, "name"));
        size_t before = e->n;

        check_source(e, at, volume, rules);
        if (check_given(e, FIELD(at, "name"), name))
            check_rule(e, FIELD(at, "name"), NAME_DNS1123_LABEL, name);
        if (names_has(ret, name))
            field_duplicate(e, FIELD(at, "name"), json_get(volume, "name"));
        if (e->n == before)
            names_add(ret, name, volume);
        if (claim && names_has(&made, json_str(claim)))
            field_invalid(e, FIELD(FIELD(at, "persistentVolumeClaim"), "claimName"), claim,
                          "must not reference a PVC that gets created for an ephemeral volume");
    }
}
