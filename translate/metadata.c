/* SPDX-License-Identifier: Apache-2.0 */
/* metadata of host objects, and what of it a later update may change. Why: annotations steer hosts
 * even more than labels do, so they go down by allow-list only; and what other clients (webhooks,
 * schedulers, administrators) write to our host objects stays. Must never send owner references,
 * finalizers, or generateName of a tenant. */

#include <string.h>

#include "host_keys.h"
#include "pod_marks.h"

static const char *const LISTED[] = {
    "kubectl.kubernetes.io/default-container",
};

bool translate_annotation_listed(const struct translate_tenant *t, struct str key)
{
    for (size_t i = 0; i < COUNT(LISTED); i++) {
        if (str_eqc(key, LISTED[i]))
            return true;
    }
    return translate_labels_key_listed(key, t->config->annotations_allow);
}

struct str translate_metadata_hashed_key(struct arena *a, struct str key)
{
    char hash[HASH_CHARS + 1];

    translate_hash(1, &key, hash);
    return arena_printf(a, ANNOTATION_HASHED "%s", hash);
}

/* Keys under their own name are recorded: seen on the host, they could be another component's. */
static void note_owned(struct buf *owned, char what, const cJSON *map)
{
    json_each(member, map)
    {
        if (str_has_prefix(json_key(member), STR("sublet.dev/")))
            continue;
        if (owned->n)
            buf_char(owned, ',');
        buf_char(owned, what);
        buf_char(owned, ':');
        buf_add(owned, json_key(member));
    }
}

static bool goes_down(const struct translate_tenant *t, struct str key, struct str value)
{
    return translate_annotation_listed(t, key) && !translate_note_of_dns(t, key, value);
}

/* listed: all of these go down; NULL: those of the object that the admin allows. */
static cJSON *annotations_down(struct arena *a, const struct translate_tenant *t,
                               const cJSON *vmeta, const cJSON *listed)
{
    const cJSON *from = listed ? listed : json_get(vmeta, "annotations");
    cJSON *ret = json_new_object(a);

    add_str(a, ret, ANNOTATION_NAME, json_str(json_get(vmeta, "name")));
    add_str(a, ret, ANNOTATION_NS, json_str(json_get(vmeta, "namespace")));
    add_str(a, ret, ANNOTATION_UID, json_str(json_get(vmeta, "uid")));
    if (t->epoch.n)
        add_str(a, ret, ANNOTATION_EPOCH, t->epoch);
    if (!json_is_object(from))
        return ret;
    json_each(note, from)
    {
        if (json_is_string(note) && (listed || goes_down(t, json_key(note), json_str(note))))
            object_add(a, ret, json_key(note), json_new_string(a, json_str(note)));
    }
    return ret;
}

cJSON *translate_metadata_with(struct arena *a, const struct translate_tenant *t,
                               const cJSON *vobject, struct str host_name, const cJSON *annotations)
{
    const cJSON *vmeta = json_get(translate_host_keys_without(a, t, vobject, true), "metadata");
    struct str ns = json_str(json_get(vmeta, "namespace"));
    cJSON *ret = json_new_object(a), *labels, *notes;
    struct buf owned = BUF_INIT(0);

    add_str(a, ret, "name", host_name);
    add_str(a, ret, "namespace", t->host_namespace);
    labels = translate_labels(a, t, ns, json_get(vmeta, "labels"));
    translate_labels_drop_written_by_both(labels);
    notes = annotations_down(a, t, vmeta, annotations);
    note_owned(&owned, 'l', labels);
    note_owned(&owned, 'a', notes);
    if (owned.n)
        add_str(a, notes, ANNOTATION_OWNED, buf_str(&owned));
    buf_fini(&owned);

    object_add(a, ret, STR("labels"), labels);
    object_add(a, ret, STR("annotations"), notes);
    return ret;
}

cJSON *translate_metadata(struct arena *a, const struct translate_tenant *t, const cJSON *vobject,
                          struct str host_name)
{
    return translate_metadata_with(a, t, vobject, host_name, NULL);
}
