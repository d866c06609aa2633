/* SPDX-License-Identifier: Apache-2.0 */
/* Volume plugins of the past, in pods and in PersistentVolumes: members that must be there, and the
 * few checks some have beside that. Nothing mounts them; a manifest that is wrong is refused all
 * the same. Source: pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <ctype.h>
#include <string.h>

/* A volume of a pod, or (persistent) a PersistentVolume; name is the volume's. */
struct subject {
    struct field_errors *e;
    const struct field_path *p;
    const cJSON *source;
    bool persistent;
    struct str name;
};

static struct str text(const struct subject *s, const char *member)
{
    return json_str(json_get(s->source, member));
}

static void check_secret_ref(const struct subject *s)
{
    const cJSON *ref = given(s->source, "secretRef");
    AT(at, s->p, "secretRef");

    if (!ref)
        return;
    check_given(s->e, FIELD(at, "name"), json_str(json_get(ref, "name")));
    if (s->persistent)
        check_given(s->e, FIELD(at, "namespace"), json_str(json_get(ref, "namespace")));
}

static void check_partition(const struct subject *s)
{
    const cJSON *partition = json_get(s->source, "partition");
    int64_t n;

    /* 0 is none; the words of upstream leave it out. */
    if (json_i64(partition, &n) && (n < 0 || n > 255))
        field_invalid(s->e, FIELD(s->p, "partition"), partition,
                      "must be between 1 and 255, inclusive");
}

/* ---- iscsi ---- */

static bool all_alnum(struct str s, size_t n)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]))
            return false;
    return s.n == n;
}

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

static void check_initiator(const struct subject *s, const char *member, struct str name,
                            bool pod_words)
{
    bool iqn = str_has_prefix(name, STR("iqn")), eui = str_has_prefix(name, STR("eui"));
    bool naa = str_has_prefix(name, STR("naa"));

    if (!iqn && !eui && !naa)
        field_invalid_str(s->e, FIELD(s->p, member), name,
                          pod_words ? "must be valid format starting with iqn, eui, or naa"
                                    : "must be valid format");
    else if ((iqn && !is_iqn(name)) || (eui && !all_alnum(str_from(name, 4), 16)) ||
             (naa && !all_alnum(str_from(name, 4), 32)))
        field_invalid_str(s->e, FIELD(s->p, member), name, "must be valid format");
}

static void check_iscsi_names(const struct subject *s)
{
    static const char too_long[] = "Total length of <volume name>:<iscsi.targetPortal> must be "
                                   "under 64 characters if iscsi.initiatorName is specified.";
    const cJSON *initiator = given(s->source, "initiatorName");
    struct str portal = text(s, "targetPortal");

    if (!initiator)
        return;
    if (s->name.n + 1 + portal.n > 64) {
        if (s->persistent)
            field_invalid_str(s->e, FIELD(s->p, "targetportal"), portal, too_long);
        else
            field_invalid_str(s->e, FIELD(s->p->parent, "name"), s->name, too_long);
    }
    check_initiator(s, "initiatorname", json_str(initiator), !s->persistent);
}

static void check_iscsi(const struct subject *s)
{
    const cJSON *secret = given(s->source, "secretRef");
    bool asks = json_true(json_get(s->source, "chapAuthDiscovery")) ||
                json_true(json_get(s->source, "chapAuthSession"));

    if (check_given(s->e, FIELD(s->p, "iqn"), text(s, "iqn")))
        check_initiator(s, "iqn", text(s, "iqn"), !s->persistent);
    check_range(s->e, FIELD(s->p, "lun"), given(s->source, "lun"), 0, 255);
    if (asks && !secret)
        field_required(s->e, FIELD(s->p, "secretRef"), "");
    if (secret && s->persistent)
        check_given(s->e, FIELD(FIELD(s->p, "secretRef"), "name"),
                    json_str(json_get(secret, "name")));
    check_iscsi_names(s);
}

/* ---- fc, glusterfs, flocker, quobyte ---- */

static void check_fc(const struct subject *s)
{
    const cJSON *targets = json_get(s->source, "targetWWNs"), *lun = given(s->source, "lun");
    bool ids = json_count(json_get(s->source, "wwids"));
    AT(at, s->p, "targetWWNs");

    if (!json_count(targets) && !ids)
        field_required(s->e, at, "must specify either targetWWNs or wwids, but not both");
    if (json_count(targets) && ids)
        field_invalid(s->e, at, targets,
                      "targetWWNs and wwids can not be specified simultaneously");
    if (json_count(targets) && !lun)
        field_required(s->e, FIELD(s->p, "lun"), "lun is required if targetWWNs is specified");
    else if (json_count(targets))
        check_range(s->e, FIELD(s->p, "lun"), lun, 0, 255);
}

static void check_glusterfs(const struct subject *s)
{
    const cJSON *ns = given(s->source, "endpointsNamespace");
    AT(at, s->p, "endpointsNamespace");

    if (!s->persistent || !ns)
        return;
    if (json_str(ns).n)
        check_rule(s->e, at, NAME_DNS1123_LABEL, json_str(ns));
    else
        field_invalid_str(s->e, at, STR(""),
                          "if the endpointnamespace is set, it must be a valid namespace name");
}

static void check_flocker(const struct subject *s)
{
    struct str name = text(s, "datasetName"), uuid = text(s, "datasetUUID");

    if (!name.n && !uuid.n)
        field_required(s->e, s->p, "one of datasetName and datasetUUID is required");
    if (name.n && uuid.n)
        field_invalid_str(s->e, s->p, STR("resource"),
                          "datasetName and datasetUUID can not be specified simultaneously");
    if (str_find(name, '/') != name.n)
        field_invalid_str(s->e, FIELD(s->p, "datasetName"), name, "must not contain '/'");
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

static void check_quobyte(const struct subject *s)
{
    static const char form[] = "must be a host:port pair or multiple pairs separated by commas";
    struct str registry = text(s, "registry"), rest = registry;

    if (!registry.n) {
        field_required(s->e, FIELD(s->p, "registry"), form);
    } else if (text(s, "tenant").n >= 65) {
        field_required(s->e, FIELD(s->p, "tenant"),
                       "must be a UUID and may not exceed a length of 64 characters");
    } else {
        while (rest.p)
            if (!is_host_port(str_cut(&rest, ',')))
                field_invalid_str(s->e, FIELD(s->p, "registry"), registry, form);
    }
    check_given(s->e, FIELD(s->p, "volume"), text(s, "volume"));
}

/* ---- flexVolume, azure, storageos ---- */

static bool is_reserved(struct field_errors *e, struct str key)
{
    struct str ns = str_sub(key, 0, str_find(key, '/'));
    char *lower = arena_cstr(e->arena, arena_concat(e->arena, 2, (struct str[]){STR("."), ns}));

    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return str_has_suffix(str_c(lower), STR(".kubernetes.io")) ||
           str_has_suffix(str_c(lower), STR(".k8s.io"));
}

static void check_flex(const struct subject *s)
{
    json_each(option, json_get(s->source, "options"))
    {
        struct str key = str_c(option->string);

        if (is_reserved(s->e, key))
            field_invalid_str(s->e, FIELD_KEY(FIELD(s->p, "options"), key), key,
                              "kubernetes.io and k8s.io namespaces are reserved");
    }
}

static void check_azure_file(const struct subject *s)
{
    const cJSON *ns = given(s->source, "secretNamespace");

    if (s->persistent && ns)
        check_given(s->e, FIELD(s->p, "secretNamespace"), json_str(ns));
}

static void check_azure_disk(const struct subject *s)
{
    static const char *const managed[] = {
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
        "{disk-id}",
        NULL};
    static const char *const blobs[] = {
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd", NULL};
    const cJSON *kind = given(s->source, "kind");
    bool is_managed = str_eqc(json_str(kind), "Managed");
    struct str uri = text(s, "diskURI");

    check_enum_if(s->e, FIELD(s->p, "cachingMode"), given(s->source, "cachingMode"),
                  ENUM_AZURE_DATA_DISK_CACHING_MODE);
    check_enum_if(s->e, FIELD(s->p, "kind"), kind, ENUM_AZURE_DATA_DISK_KIND);
    if (kind && !str_has_prefix(uri, is_managed ? STR("/subscriptions/") : STR("https://")))
        field_not_supported(s->e, FIELD(s->p, "diskURI"), uri, is_managed ? managed : blobs);
}

static void check_storageos(const struct subject *s)
{
    struct str name = text(s, "volumeName"), ns = text(s, "volumeNamespace");

    if (name.n)
        check_rule(s->e, FIELD(s->p, "volumeName"), NAME_DNS1123_LABEL, name);
    if (ns.n)
        check_rule(s->e, FIELD(s->p, "volumeNamespace"), NAME_DNS1123_LABEL, ns);
    check_secret_ref(s);
}

/* ---- the table ---- */

static const struct plugin {
    const char *name, *shown; /* shown: in paths, when upstream writes it otherwise */
    const char *required[3];
    void (*check)(const struct subject *s);
} PLUGINS[] = {
    {"gcePersistentDisk", "persistentDisk", {"pdName"}, check_partition},
    {"awsElasticBlockStore", NULL, {"volumeID"}, check_partition},
    {"iscsi", NULL, {"targetPortal"}, check_iscsi},
    {"glusterfs", NULL, {"endpoints", "path"}, check_glusterfs},
    {"flocker", NULL, {NULL}, check_flocker},
    {"rbd", NULL, {"monitors", "image"}, NULL},
    {"cinder", NULL, {"volumeID"}, check_secret_ref},
    {"cephfs", NULL, {"monitors"}, NULL},
    {"quobyte", NULL, {NULL}, check_quobyte},
    {"fc", NULL, {NULL}, check_fc},
    {"flexVolume", NULL, {"driver"}, check_flex},
    {"azureFile", NULL, {"secretName", "shareName"}, check_azure_file},
    {"vsphereVolume", NULL, {"volumePath"}, NULL},
    {"photonPersistentDisk", NULL, {"pdID"}, NULL},
    {"portworxVolume", NULL, {"volumeID"}, NULL},
    {"azureDisk", NULL, {"diskName", "diskURI"}, check_azure_disk},
    {"scaleIO", NULL, {"gateway", "system", "volumeName"}, NULL},
    {"storageos", NULL, {"volumeName"}, check_storageos},
};

void validate_legacy_volume(struct field_errors *e, const struct field_path *p, const char *plugin,
                            const cJSON *source, bool persistent, struct str name)
{
    for (size_t i = 0; i < COUNT(PLUGINS); i++) {
        const struct plugin *k = &PLUGINS[i];
        const struct subject s = {e, FIELD(p, k->shown ? k->shown : k->name), source, persistent,
                                  name};

        if (strcmp(k->name, plugin) != 0)
            continue;
        for (size_t m = 0; m < COUNT(k->required) && k->required[m]; m++) {
            const cJSON *member = json_get(source, k->required[m]);

            if (!json_str(member).n && !json_count(member))
                field_required(e, FIELD(s.p, k->required[m]), "");
        }
        if (k->check)
            k->check(&s);
        return;
    }
}
