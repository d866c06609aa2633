/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of a pod. Why: a volume names other objects, shows the pod its own metadata and carries
 * its tokens, all of which differ on the host. Must never pass a source that reaches the node or
 * another tenant's storage, nor let the host mint a token of its own. */

#include <string.h>

#include "shape.h"

/* ---- the downward API ---- */

bool translate_pod_field_path_key(struct str path, const char *map, struct str *ret_key)
{
    struct str prefix = str_c(map), tail = STR("']");

    if (!str_has_prefix(path, prefix) || !str_has_suffix(path, tail))
        return false;
    path = str_sub(path, prefix.n, path.n - prefix.n - tail.n);
    if (!str_has_prefix(path, STR("['")))
        return false;
    *ret_key = str_from(path, 2);
    return true;
}

/* strconv.Quote, as far as annotations need it: control characters and
 * invisible ones are escaped, letters of all scripts stay. */
static void add_quoted(struct buf *b, struct str s)
{
    static const char letters[] = "abtnvfr"; /* 0x07 to 0x0D */

    buf_char(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        unsigned char next = i + 1 < s.n ? (unsigned char)s.p[i + 1] : 0;

        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c >= 7 && c <= 13)
            buf_printf(b, "\\%c", letters[c - 7]);
        else if (c < 0x20 || c == 0x7F)
            buf_printf(b, "\\x%02x", c);
        else if (c == 0xC2 && (next < 0xA1 || next == 0xAD) &&
                 ++i) /* C1, no-break blank, soft hyphen */
            buf_printf(b, "\\u%04x", next);
        else
            buf_char(b, (char)c);
    }
    buf_char(b, '"');
}

/* A map as the kubelet writes it into a file: k="v" lines, sorted by key. */
static struct str map_text(struct arena *a, const cJSON *map)
{
    struct buf b = BUF_INIT(0);
    struct str ret;
    struct members members = translate_map_sorted_members(a, map);

    for (size_t i = 0; i < members.n; i++) {
        if (!json_is_string(members.items[i]))
            continue;
        if (b.n)
            buf_char(&b, '\n');
        buf_add(&b, json_key(members.items[i]));
        buf_char(&b, '=');
        add_quoted(&b, json_str(members.items[i]));
    }
    ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return ret;
}

/* The path of an annotation of the host pod, where a downward API volume finds a value. */
static struct str note_path(struct down *d, struct str key)
{
    return arena_printf(d->arena, "metadata.annotations['%.*s']", STR_F(key));
}

static struct str note_text(struct down *d, struct str key, struct str text)
{
    if (!json_get_str(d->notes, key))
        object_add(d->arena, d->notes, key, json_new_string(d->arena, text));
    return note_path(d, key);
}

static struct str note_map(struct down *d, const char *key, const cJSON *map)
{
    if (!json_get(d->notes, key))
        add_str(d->arena, d->notes, key, map_text(d->arena, map));
    return note_path(d, str_c(key));
}

/* The host's field path for the tenant's. It stays live, as annotations follow the virtual pod. */
static struct str field_path_down(struct down *d, struct str path)
{
    static const struct {
        const char *path, *down;
    } fixed[] = {
        {"metadata.name", "metadata.annotations['" ANNOTATION_NAME "']"},
        {"metadata.namespace", "metadata.annotations['" ANNOTATION_NS "']"},
        {"metadata.uid", "metadata.annotations['" ANNOTATION_UID "']"},
    };
    const cJSON *labels = json_get(d->meta, "labels"), *notes = json_get(d->meta, "annotations");
    struct str key;

    for (size_t i = 0; i < COUNT(fixed); i++) {
        if (str_eqc(path, fixed[i].path))
            return str_c(fixed[i].down);
    }
    if (str_eqc(path, "metadata.labels"))
        return note_map(d, ANNOTATION_LABELS, labels);
    if (str_eqc(path, "metadata.annotations"))
        return note_map(d, ANNOTATION_ALL, notes);
    if (translate_pod_field_path_key(path, "metadata.labels", &key))
        return arena_printf(d->arena, "metadata.labels['%.*s']",
                            STR_F(translate_label_key(d->arena, d->tenant, key)));
    if (translate_pod_field_path_key(path, "metadata.annotations", &key))
        return note_text(d, translate_metadata_hashed_key(d->arena, key),
                         json_str(json_get_str(notes, key)));
    return note_path(d, translate_metadata_hashed_key(d->arena, path)); /* unknown: an empty file */
}

static cJSON *field_ref_down(struct down *d, const cJSON *ref)
{
    cJSON *ret = json_new_object(d->arena);

    if (json_str(json_get(ref, "apiVersion")).n)
        add_str(d->arena, ret, "apiVersion", json_str(json_get(ref, "apiVersion")));
    add_str(d->arena, ret, "fieldPath", field_path_down(d, json_str(json_get(ref, "fieldPath"))));
    return ret;
}

static const struct field RESOURCE_REF_FIELDS[] = {
    {"containerName", FIELD_SCALAR},
    {"resource", FIELD_SCALAR},
    {"divisor", FIELD_SCALAR},
    {0},
};

static const struct field DOWNWARD_ITEM_FIELDS[] = {
    {"path", FIELD_SCALAR},
    {"fieldRef", FIELD_MAKE, .make = field_ref_down},
    {"resourceFieldRef", FIELD_OBJECT, .fields = RESOURCE_REF_FIELDS},
    {"mode", FIELD_SCALAR},
    {0},
};

static const struct field DOWNWARD_FIELDS[] = {
    {"items", FIELD_LIST, .fields = DOWNWARD_ITEM_FIELDS},
    {"defaultMode", FIELD_SCALAR},
    {0},
};

/* ---- sources ---- */

static const struct field ITEM_FIELDS[] = {
    {"key", FIELD_SCALAR},
    {"path", FIELD_SCALAR},
    {"mode", FIELD_SCALAR},
    {0},
};

static const struct field CONFIG_MAP_FIELDS[] = {
    {"name", FIELD_NAME},
    {"items", FIELD_LIST, .fields = ITEM_FIELDS},
    {"defaultMode", FIELD_SCALAR},
    {"optional", FIELD_SCALAR},
    {0},
};

static const struct field SECRET_FIELDS[] = {
    {"secretName", FIELD_NAME},
    {"items", FIELD_LIST, .fields = ITEM_FIELDS},
    {"defaultMode", FIELD_SCALAR},
    {"optional", FIELD_SCALAR},
    {0},
};

static const struct field CLAIM_FIELDS[] = {
    {"claimName", FIELD_NAME},
    {"readOnly", FIELD_SCALAR},
    {0},
};

static const struct field EMPTY_DIR_FIELDS[] = {
    {"medium", FIELD_SCALAR},
    {"sizeLimit", FIELD_SCALAR},
    {0},
};

static const struct field IMAGE_FIELDS[] = {
    {"reference", FIELD_MAKE, .make = translate_pod_image_down},
    {"pullPolicy", FIELD_SCALAR},
    {0},
};

static const struct field SECRET_REF_FIELDS[] = {{"name", FIELD_NAME}, {0}};

static const struct field HOST_PATH_FIELDS[] = {
    {"path", FIELD_SCALAR},
    {"type", FIELD_SCALAR},
    {0},
};

static const struct field NFS_FIELDS[] = {
    {"server", FIELD_SCALAR},
    {"path", FIELD_SCALAR},
    {"readOnly", FIELD_SCALAR},
    {0},
};

static const struct field CSI_FIELDS[] = {
    {"driver", FIELD_SCALAR},
    {"readOnly", FIELD_SCALAR},
    {"fsType", FIELD_SCALAR},
    {"volumeAttributes", FIELD_MAP},
    {"nodePublishSecretRef", FIELD_OBJECT, .fields = SECRET_REF_FIELDS},
    {0},
};

/* ---- projected ---- */

struct str translate_pod_token_key(struct arena *a, struct str volume, size_t source)
{
    return arena_printf(a, "%.*s-%zu", STR_F(volume), source);
}

/* The tenant's own API issues the token; the host sees a file of a Secret. */
static cJSON *token_source_down(struct down *d, const cJSON *token, struct str volume, size_t index)
{
    cJSON *ret = json_new_object(d->arena), *secret, *items, *item;

    secret = object_add(d->arena, ret, STR("secret"), json_new_object(d->arena));
    add_str(d->arena, secret, "name", str_c(d->token_secret));
    items = object_add(d->arena, secret, STR("items"), json_new_array(d->arena));
    item = json_append(items, json_new_object(d->arena));
    add_str(d->arena, item, "key", translate_pod_token_key(d->arena, volume, index));
    add_str(d->arena, item, "path", json_str(json_get(token, "path")));
    return ret;
}

static const struct field PROJECTED_REF_FIELDS[] = {
    {"name", FIELD_NAME},
    {"items", FIELD_LIST, .fields = ITEM_FIELDS},
    {"optional", FIELD_SCALAR},
    {0},
};

static const struct field PROJECTED_DOWNWARD_FIELDS[] = {
    {"items", FIELD_LIST, .fields = DOWNWARD_ITEM_FIELDS},
    {0},
};

static const struct field PROJECTION_FIELDS[] = {
    {"secret", FIELD_OBJECT, .fields = PROJECTED_REF_FIELDS},
    {"configMap", FIELD_OBJECT, .fields = PROJECTED_REF_FIELDS},
    {"downwardAPI", FIELD_OBJECT, .fields = PROJECTED_DOWNWARD_FIELDS},
    {0},
};

static const struct field PROJECTED_FIELDS[] = {{"defaultMode", FIELD_SCALAR}, {0}};

static cJSON *projected_down(struct down *d, const cJSON *projected, struct str volume)
{
    cJSON *ret = json_new_object(d->arena), *sources;
    size_t index = 0;

    sources = object_add(d->arena, ret, STR("sources"), json_new_array(d->arena));
    json_each(source, json_get(projected, "sources"))
    {
        const cJSON *token = json_get(source, "serviceAccountToken");
        cJSON *down = json_is_object(token) ? token_source_down(d, token, volume, index)
                                            : shape_copy(d, PROJECTION_FIELDS, source);

        if (json_count(down))
            json_append(sources, down);
        index++;
    }
    shape_into(d, PROJECTED_FIELDS, projected, ret);
    return ret;
}

/* ---- volumes ---- */

static const struct source {
    const char *key;
    enum volume_class class;
    const struct field *fields; /* NULL: made by hand */
} SOURCES[] = {
    {"configMap", VOLUME_PLAIN, CONFIG_MAP_FIELDS},
    {"secret", VOLUME_PLAIN, SECRET_FIELDS},
    {"projected", VOLUME_PLAIN, NULL},
    {"emptyDir", VOLUME_PLAIN, EMPTY_DIR_FIELDS},
    {"persistentVolumeClaim", VOLUME_PLAIN, CLAIM_FIELDS},
    {"downwardAPI", VOLUME_PLAIN, DOWNWARD_FIELDS},
    {"ephemeral", VOLUME_PLAIN, NULL},
    {"image", VOLUME_PLAIN, IMAGE_FIELDS},
    {"hostPath", VOLUME_PRIVILEGED, HOST_PATH_FIELDS},
    {"nfs", VOLUME_PRIVILEGED, NFS_FIELDS},
    {"csi", VOLUME_PRIVILEGED, CSI_FIELDS},
};

static const struct source *find_source(const char *key)
{
    for (size_t i = 0; i < COUNT(SOURCES); i++) {
        if (strcmp(SOURCES[i].key, key) == 0)
            return &SOURCES[i];
    }
    return NULL;
}

const char *translate_pod_volume_source(const cJSON *volume, enum volume_class *ret_class)
{
    const char *worst = NULL;

    *ret_class = VOLUME_PLAIN;
    if (!json_is_object(volume))
        return NULL;
    json_each(member, volume)
    {
        const struct source *source = find_source(member->string);
        enum volume_class class = source ? source->class : VOLUME_UNSUPPORTED;

        if (strcmp(member->string, "name") == 0 || json_is_null(member))
            continue;
        if (worst && class <= *ret_class)
            continue;
        worst = member->string;
        *ret_class = class;
    }
    return worst;
}

/* The claim of a generic ephemeral volume: the virtual controller gives it this name. */
static cJSON *ephemeral_claim(struct down *d, struct str volume)
{
    cJSON *ret = json_new_object(d->arena);
    struct str name = arena_printf(d->arena, "%.*s-%.*s", STR_F(d->name), STR_F(volume));

    add_str(d->arena, ret, "claimName", shape_name_down(d, name));
    return ret;
}

cJSON *translate_pod_volume_down(struct down *d, const cJSON *volume)
{
    struct str name = json_str(json_get(volume, "name"));
    cJSON *ret = json_new_object(d->arena);

    add_str(d->arena, ret, "name", name);
    for (size_t i = 0; i < COUNT(SOURCES); i++) {
        const cJSON *value = json_get(volume, SOURCES[i].key);
        const char *key = SOURCES[i].key;
        cJSON *down;

        if (!json_is_object(value) || (SOURCES[i].class == VOLUME_PRIVILEGED && !d->privileged))
            continue;
        if (SOURCES[i].fields) {
            down = shape_copy(d, SOURCES[i].fields, value);
            if (SOURCES[i].fields == IMAGE_FIELDS)
                translate_pod_pull_policy_down(d, down, "pullPolicy");
        } else if (strcmp(key, "ephemeral") == 0) {
            key = "persistentVolumeClaim";
            down = ephemeral_claim(d, name);
        } else {
            down = projected_down(d, value, name);
        }
        object_add(d->arena, ret, str_c(key), down);
        return ret;
    }
    object_add(d->arena, ret, STR("emptyDir"), json_new_object(d->arena));
    return ret;
}
