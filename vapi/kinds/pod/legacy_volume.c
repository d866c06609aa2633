/* SPDX-License-Identifier: Apache-2.0 */
/* Volume plugins of the past, in pods and in PersistentVolumes: members that must be there, and the
 * few checks some have beside that. Nothing mounts them; a manifest that is wrong is refused all
 * the same. Source: pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <ctype.h>
#include <string.h>

/* The context of rows: a volume of a pod, or (persistent) a PersistentVolume; name is the volume's.
 */
struct subject {
    bool persistent;
    struct str name;
};

static bool is_persistent(const struct check *c)
{
    const struct subject *s = c->context;

    return s->persistent;
}

static void check_namespace(const struct check *c)
{
    if (is_persistent(c))
        check_given(c->e, c->at, json_str(c->value));
}

#define SECRET_REF WITHIN("secretRef", GIVEN("name"), CALL("namespace", check_namespace))

/* 0 is none; the words of upstream leave it out. */
#define PARTITION RANGE_ELSE("partition", 0, 255, "must be between 1 and 255, inclusive")

/* ---- iscsi ---- */

/* NNNN-NN.<domain>:<anything without separators>, what follows "iqn." */
static bool is_iqn_rest(struct str s)
{
    static const char form[] = "dddd-dd.";
    size_t i, domain;

    for (i = 0; form[i]; i++)
        if (i >= s.n || (form[i] == 'd' ? !isdigit((unsigned char)s.p[i]) : s.p[i] != form[i]))
            return false;
    for (domain = i; i < s.n && (isalnum((unsigned char)s.p[i]) || s.p[i] == '-' || s.p[i] == '.');
         i++)
        ;
    if (i == domain || i + 1 >= s.n || s.p[i] != ':')
        return false;
    for (i++; i < s.n; i++)
        if (memchr(",;*&$| \t\n\f\r", s.p[i], 11))
            return false;
    return true;
}

/* The name may begin anywhere: upstream's expression is not anchored in front. */
static bool is_iqn(struct str s)
{
    for (size_t i = 0; i + 4 <= s.n; i++)
        if (memcmp(s.p + i, "iqn.", 4) == 0 && is_iqn_rest(str_from(s, i + 4)))
            return true;
    return false;
}

static void check_initiator(const struct check *c, const struct field_path *p, struct str name)
{
    bool iqn = str_has_prefix(name, STR("iqn")), eui = str_has_prefix(name, STR("eui"));
    bool naa = str_has_prefix(name, STR("naa"));

    if (!iqn && !eui && !naa)
        field_invalid_str(c->e, p, name,
                          is_persistent(c) ? "must be valid format"
                                           : "must be valid format starting with iqn, eui, or naa");
    else if ((iqn && !is_iqn(name)) ||
             (eui && (name.n != 20 || !kinds_is_made_of(str_from(name, 4), ""))) ||
             (naa && (name.n != 36 || !kinds_is_made_of(str_from(name, 4), ""))))
        field_invalid_str(c->e, p, name, "must be valid format");
}

static void check_iqn(const struct check *c)
{
    if (check_given(c->e, c->at, json_str(c->value)))
        check_initiator(c, c->at, json_str(c->value));
}

static void check_chap_secret(const struct check *c)
{
    bool asks = json_true(json_get(c->object, "chapAuthDiscovery")) ||
                json_true(json_get(c->object, "chapAuthSession"));

    if (asks && !c->value)
        field_required(c->e, c->at, "");
    if (c->value && is_persistent(c))
        check_given(c->e, FIELD(c->at, "name"), json_str(json_get(c->value, "name")));
}

static bool is_portal_too_long(const struct check *c)
{
    const struct subject *s = c->context;
    struct str portal = json_str(json_get(c->value, "targetPortal"));

    return kinds_given(c->value, "initiatorName") && s->name.n + 1 + portal.n > 64;
}

#define PORTAL_TOO_LONG                                                                            \
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "           \
    "iscsi.initiatorName is specified."

static void check_portal_of_persistent(const struct check *c)
{
    if (is_persistent(c) && is_portal_too_long(c))
        field_invalid_str(c->e, FIELD(c->at, "targetportal"),
                          json_str(json_get(c->value, "targetPortal")), PORTAL_TOO_LONG);
}

static void check_portal_of_pod(const struct check *c)
{
    const struct subject *s = c->context;

    if (!is_persistent(c) && is_portal_too_long(c))
        field_invalid_str(c->e, FIELD(c->at->parent, "name"), s->name, PORTAL_TOO_LONG);
}

static void check_initiator_name(const struct check *c)
{
    if (c->value)
        check_initiator(c, FIELD(c->at->parent, "initiatorname"), json_str(c->value));
}

/* ---- fc, glusterfs, flocker, quobyte ---- */

static void check_endpoints_namespace(const struct check *c)
{
    if (!is_persistent(c) || !c->value)
        return;
    if (json_str(c->value).n)
        check_rule(c->e, c->at, NAME_DNS1123_LABEL, json_str(c->value));
    else
        field_invalid_str(c->e, c->at, STR(""),
                          "if the endpointnamespace is set, it must be a valid namespace name");
}

static void check_flocker(struct field_errors *e, const struct field_path *p, const cJSON *flocker)
{
    struct str name = json_str(json_get(flocker, "datasetName"));
    struct str uuid = json_str(json_get(flocker, "datasetUUID"));

    if (!name.n && !uuid.n)
        field_required(e, p, "one of datasetName and datasetUUID is required");
    if (name.n && uuid.n)
        field_invalid_str(e, p, STR("resource"),
                          "datasetName and datasetUUID can not be specified simultaneously");
    if (str_find(name, '/') != name.n)
        field_invalid_str(e, FIELD(p, "datasetName"), name, "must not contain '/'");
}

/* As Go's net.SplitHostPort sees it: host:port, [host]:port; either may be empty. */
static bool is_host_port(struct str s)
{
    size_t colon = str_rfind(s, ':'), open = str_find(s, '['), close = str_find(s, ']');
    struct str rest;

    if (colon == s.n)
        return false;
    if (open == 0)
        return close < s.n && close + 1 == colon && str_find(str_from(s, 1), '[') == s.n - 1 &&
               str_find(str_from(s, close + 1), ']') == s.n - close - 1;
    rest = str_sub(s, 0, colon);
    return str_find(rest, ':') == rest.n && open == s.n && close == s.n;
}

static void check_registry(const struct check *c)
{
    static const char form[] = "must be a host:port pair or multiple pairs separated by commas";
    struct str registry = json_str(c->value), rest = registry;

    if (!registry.n) {
        field_required(c->e, c->at, form);
    } else if (json_str(json_get(c->object, "tenant")).n >= 65) {
        field_required(c->e, FIELD(c->at->parent, "tenant"),
                       "must be a UUID and may not exceed a length of 64 characters");
    } else {
        while (rest.p)
            if (!is_host_port(str_cut(&rest, ',')))
                field_invalid_str(c->e, c->at, registry, form);
    }
}

/* ---- flexVolume, azure ---- */

static bool is_reserved(struct field_errors *e, struct str key)
{
    struct str ns = str_sub(key, 0, str_find(key, '/'));
    char *lower = arena_cstr(e->arena, arena_concat(e->arena, 2, (struct str[]){STR("."), ns}));

    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return str_has_suffix(str_c(lower), STR(".kubernetes.io")) ||
           str_has_suffix(str_c(lower), STR(".k8s.io"));
}

static void check_options(struct field_errors *e, const struct field_path *p, const cJSON *options)
{
    json_each(option, options)
    {
        struct str key = str_c(option->string);

        if (is_reserved(e, key))
            field_invalid_str(e, FIELD_KEY(p, key), key,
                              "kubernetes.io and k8s.io namespaces are reserved");
    }
}

static void check_disk_uri(const struct check *c)
{
    static const char *const managed[] = {
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
        "{disk-id}",
        NULL};
    static const char *const blobs[] = {
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd", NULL};
    const cJSON *kind = kinds_given(c->object, "kind");
    bool is_managed = str_eqc(json_str(kind), "Managed");
    struct str uri = json_str(c->value);

    if (kind && !str_has_prefix(uri, is_managed ? STR("/subscriptions/") : STR("https://")))
        field_not_supported(c->e, c->at, uri, is_managed ? managed : blobs);
}

/* ---- the table ---- */

static const struct plugin {
    const char *name, *shown; /* shown: in paths, when upstream writes it otherwise */
    const struct rule *rows;
    size_t n;
} PLUGINS[] = {
    {"gcePersistentDisk", "persistentDisk", ROWS_INSIDE(GIVEN("pdName"), PARTITION)},
    {"awsElasticBlockStore", NULL, ROWS_INSIDE(GIVEN("volumeID"), PARTITION)},
    {"iscsi", NULL,
     ROWS_INSIDE(CALL(NULL, check_portal_of_persistent), GIVEN("targetPortal"),
                 CALL("iqn", check_iqn), RANGE("lun", 0, 255), CALL("secretRef", check_chap_secret),
                 CALL("initiatorName", check_initiator_name), CALL(NULL, check_portal_of_pod))},
    {"glusterfs", NULL,
     ROWS_INSIDE(ALL_GIVEN(NULL, "endpoints", "path"),
                 CALL("endpointsNamespace", check_endpoints_namespace))},
    {"flocker", NULL, ROWS_INSIDE(CHECK(NULL, check_flocker))},
    {"rbd", NULL, ROWS_INSIDE(SOME("monitors", ""), GIVEN("image"))},
    {"cinder", NULL, ROWS_INSIDE(GIVEN("volumeID"), SECRET_REF)},
    {"cephfs", NULL, ROWS_INSIDE(SOME("monitors", ""))},
    {"quobyte", NULL, ROWS_INSIDE(CALL("registry", check_registry), GIVEN("volume"))},
    {"fc", NULL,
     ROWS_INSIDE(
         WHEN_NONE(NULL, NAMES("targetWWNs", "wwids"),
                   MISSING("targetWWNs", "must specify either targetWWNs or wwids, but not both")),
         WHEN_ALL(
             NULL, NAMES("targetWWNs", "wwids"),
             INVALID("targetWWNs", "targetWWNs and wwids can not be specified simultaneously")),
         WHEN_ANY(NULL, NAMES("targetWWNs"),
                  REQUIRED("lun", "lun is required if targetWWNs is specified"),
                  RANGE("lun", 0, 255)))},
    {"flexVolume", NULL, ROWS_INSIDE(GIVEN("driver"), CHECK("options", check_options))},
    {"azureFile", NULL,
     ROWS_INSIDE(ALL_GIVEN(NULL, "secretName", "shareName"),
                 WITHIN("secretNamespace", CALL(NULL, check_namespace)))},
    {"vsphereVolume", NULL, ROWS_INSIDE(GIVEN("volumePath"))},
    {"photonPersistentDisk", NULL, ROWS_INSIDE(GIVEN("pdID"))},
    {"portworxVolume", NULL, ROWS_INSIDE(GIVEN("volumeID"))},
    {"azureDisk", NULL,
     ROWS_INSIDE(ALL_GIVEN(NULL, "diskName", "diskURI"),
                 ENUM_IF_GIVEN("cachingMode", ENUM_AZURE_DATA_DISK_CACHING_MODE),
                 ENUM_IF_GIVEN("kind", ENUM_AZURE_DATA_DISK_KIND),
                 CALL("diskURI", check_disk_uri))},
    {"scaleIO", NULL, ROWS_INSIDE(ALL_GIVEN(NULL, "gateway", "system", "volumeName"))},
    {"storageos", NULL,
     ROWS_INSIDE(NAME("volumeName", DNS1123_LABEL), NAME_IF_SET("volumeNamespace", DNS1123_LABEL),
                 SECRET_REF)},
};

void validate_legacy_volume(struct field_errors *e, const struct field_path *p, const char *plugin,
                            const cJSON *source, bool persistent, struct str name)
{
    const struct subject subject = {persistent, name};

    for (const struct plugin *k = PLUGINS; k < PLUGINS + COUNT(PLUGINS); k++) {
        if (strcmp(k->name, plugin) == 0)
            rules_check_value(e, FIELD(p, k->shown ? k->shown : k->name), source, &subject, k->rows,
                              k->n);
    }
}
