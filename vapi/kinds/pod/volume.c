/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of pods: each of one type, named once, and what the types in use require. Must never look
 * at what a node has: that is the host's verdict. Source: validateVolumeSource and what it calls in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/encode.h>

#include <string.h>

/* ---- sources ---- */

static const struct rule HOST_PATH[] = {
    TEST_STR("path", check_no_backsteps),
    ENUM_IF_GIVEN("type", ENUM_HOST_PATH_TYPE),
};

void validate_host_path(struct field_errors *e, const struct field_path *p, const cJSON *source)
{
    if (check_given(e, FIELD(p, "path"), json_str(json_get(source, "path"))))
        rules_check_value(e, p, source, NULL, HOST_PATH, COUNT(HOST_PATH));
}

static void check_absolute(struct field_errors *e, const struct field_path *p, struct str path)
{
    if (!kinds_is_absolute(path))
        field_invalid_str(e, p, path, "must be an absolute path");
}

const struct rule RULES_NFS[2] = {
    ALL_GIVEN(NULL, "server", "path"),
    CHECK_STR("path", check_absolute),
};

static void check_csi_secret(struct field_errors *e, const struct field_path *p, const cJSON *csi)
{
    const cJSON *secret = json_get(csi, "nodePublishSecretRef");
    struct str name = json_str_at(secret, "name");

    if (secret && check_given(e, FIELD(FIELD(p, "nodePublishSecretRef"), "name"), name))
        check_rule(e, FIELD(p, "name"), NAME_DNS1123_SUBDOMAIN, name); /* upstream's own path */
}

static void check_size_limit(struct field_errors *e, const struct field_path *p, const cJSON *limit)
{
    if (str_has_prefix(json_str(limit), STR("-")))
        field_forbidden(e, p, "SizeLimit field must be a valid resource quantity");
}

/* ---- files made of objects ---- */

static const struct rule KEY[] = {
    ALL_GIVEN(NULL, "key", "path"),
    CHECK_STR("path", check_local_path),
    FILE_MODE("mode"),
};

static void check_origin(const struct check *c)
{
    const cJSON *field = json_get(c->value, "fieldRef");
    const cJSON *amount = json_get(c->value, "resourceFieldRef");

    if (field)
        validate_field_ref(c->e, FIELD(c->at, "fieldRef"), field, true);
    if (field && amount)
        field_invalid_str(c->e, c->at, STR("resource"),
                          "fieldRef and resourceFieldRef can not be specified simultaneously");
    else if (amount)
        validate_resource_field_ref(c->e, FIELD(c->at, "resourceFieldRef"), amount, true);
    else if (!field)
        field_required(c->e, c->at, "one of fieldRef and resourceFieldRef is required");
}

static const struct rule FILE_OF_POD[] = {
    GIVEN("path"),
    CHECK_STR("path", check_local_path),
    CALL(NULL, check_origin),
    FILE_MODE("mode"),
};

static void check_file(struct field_errors *e, const struct field_path *p, const cJSON *file)
{
    rules_check_value(e, p, file, NULL, FILE_OF_POD, COUNT(FILE_OF_POD));
}

static void check_files(const struct check *c) /* upstream's paths have no index */
{
    json_each(file, json_get(c->value, "items")) check_file(c->e, c->at, file);
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
    struct str name = json_str(json_get(source, "name"));

    check_given(j->e, FIELD(p, "name"), name);
    member_each(item, at, p, source, "items")
    {
        rules_check_value(j->e, at, item, NULL, KEY, COUNT(KEY));
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

    check_file_mode(e, FIELD(p, "defaultMode"), json_get(source, "defaultMode"));
    member_each(one, at, p, source, "sources")
    {
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

#define KEYS(name) GIVEN(name), FILE_MODE("defaultMode"), EACH("items", ALL(KEY))

static const struct rule SOURCES[] = {
    WITHIN("emptyDir", CHECK("sizeLimit", check_size_limit)),
    CHECK("hostPath", validate_host_path),
    WITHIN("gitRepo", GIVEN("repository"), CHECK_STR("directory", check_descending_path)),
    LEGACY("gcePersistentDisk"),
    LEGACY("awsElasticBlockStore"),
    WITHIN("secret", KEYS("secretName")),
    WITHIN("nfs", ALL(RULES_NFS)),
    LEGACY("iscsi"),
    LEGACY("glusterfs"),
    LEGACY("flocker"),
    WITHIN("persistentVolumeClaim", GIVEN("claimName")),
    LEGACY("rbd"),
    LEGACY("cinder"),
    LEGACY("cephfs"),
    LEGACY("quobyte"),
    WITHIN("downwardAPI", FILE_MODE("defaultMode"), CALL(NULL, check_files)),
    LEGACY("fc"),
    LEGACY("flexVolume"),
    WITHIN("configMap", KEYS("name")),
    LEGACY("azureFile"),
    LEGACY("vsphereVolume"),
    LEGACY("photonPersistentDisk"),
    LEGACY("portworxVolume"),
    LEGACY("azureDisk"),
    LEGACY("storageos"),
    CHECK("projected", check_projected),
    LEGACY("scaleIO"),
    WITHIN("csi", DRIVER_NAME("driver"), CHECK(NULL, check_csi_secret)),
    WITHIN("ephemeral", REQUIRED("volumeClaimTemplate", ""),
           CHECK("volumeClaimTemplate", validate_claim_template)),
    WITHIN("image", ENUM("pullPolicy", ENUM_PULL_POLICY)),
};

/* Sources upstream spells differently in the paths of a second source. */
static const char *shown(const char *source)
{
    if (strcmp(source, "cephfs") == 0)
        return "cephFS";
    return strcmp(source, "downwardAPI") == 0 ? "downwarAPI" : source;
}

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
        field_invalid_str_printf(e, FIELD(p, "name"), volume, "PVC name %.*s: %s",
                                 STR_F(go_quote(e->arena, claim)), messages[i]);
}

static void check_source(struct field_errors *e, const struct field_path *p, const cJSON *volume,
                         const struct pod_rules *rules)
{
    struct str name = json_str(json_get(volume, "name"));
    size_t n = 0;

    for (size_t i = 0; i < COUNT(SOURCES); i++) {
        const struct rule *r = &SOURCES[i];
        const cJSON *source = json_get(volume, r->path);

        if (!source)
            continue;
        if (n++)
            field_forbidden(e, FIELD(p, shown(r->path)), "may not specify more than 1 volume type");
        else if (r->check)
            rules_check_value(e, p, volume, NULL, r, 1);
        else
            validate_legacy_volume(e, p, r->path, source, false, name);
        if (n > 1)
            continue;
        if (str_eqc(str_c(r->path), "image") && rules->is_pod)
            check_given(e, FIELD(FIELD(p, "image"), "reference"),
                        json_str_at(volume, "image.reference"));
        if (str_eqc(str_c(r->path), "ephemeral") && rules->name.n && name.n)
            check_made_claim(e, p, name, rules);
    }
    if (!n)
        field_required(e, p, "must specify a volume type");
}

void validate_volumes(struct field_errors *e, const struct field_path *p, const cJSON *volumes,
                      const struct pod_rules *rules, struct names *ret)
{
    struct names made = {.arena = e->arena};

    json_each(volume, volumes)
    {
        if (rules->name.n && json_get(volume, "ephemeral"))
            names_add(&made, made_claim(e->arena, rules, json_str(json_get(volume, "name"))), NULL);
    }
    field_each(volume, at, p, volumes)
    {
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
