/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * What the files of this room share. Must never be included outside it. */
#pragma once

#include <sublet/translate.h>

#define ANNOTATION_OWNED          "sublet.dev/owned"  /* keys of the allow-list that we wrote */
#define ANNOTATION_OWNER          "sublet.dev/owner"  /* of a pod with devices: what a bill names */
#define ANNOTATION_LABELS         "sublet.dev/labels" /* all as k="v" lines, for the downward API */
#define ANNOTATION_ALL            "sublet.dev/annotations"
#define ANNOTATION_DIGEST         "sublet.dev/digest" /* of the object as it was written last */
#define ANNOTATION_SENT_IMAGES    "sublet.dev/sent-images"    /* {"main": "nginx:1"} */
#define ANNOTATION_SENT_RESOURCES "sublet.dev/sent-resources" /* pod_sent.c, pvc.c */

/* An order to the host's cluster-autoscaler: pod_autoscaler.c. */
#define AUTOSCALER_SAFE "cluster-autoscaler.kubernetes.io/safe-to-evict"

/* of host objects without a namespace: that of their tenant */
#define LABEL_HOST_NAMESPACE "sublet.dev/host-namespace"
#define LABEL_HASHED         "sublet.dev/l-" /* + hash: a label that is not allow-listed */
#define ANNOTATION_HASHED    "sublet.dev/a-" /* + hash: one annotation, for downward API volumes */

enum { HASH_CHARS = 16, NAME_CUT = 46 };
enum { REFUSAL_BYTES = 1023 }; /* of a 403: what a tenant wrote is quoted in it */

/* HASH_CHARS characters of base32(sha256(length-prefixed parts)), NUL-terminated. */
void translate_hash(size_t n, const struct str *parts, char out[HASH_CHARS + 1]);
/* The marks of an object of ours, under whatever name. */
bool translate_marks(const struct translate_tenant *t, const cJSON *meta, struct str *ret_ns,
                     struct str *ret_name, struct str *ret_uid);

/* json_add() with a copy of the key. */
static inline cJSON *object_add(struct arena *a, cJSON *object, struct str key, cJSON *item)
{
    return json_add(object, arena_cstr(a, key), item);
}

static inline cJSON *add_str(struct arena *a, cJSON *object, const char *key, struct str value)
{
    return object_add(a, object, str_c(key), json_new_string(a, value));
}

/* ---- priority.c ---- */

/* The host's PriorityClass of a pod with this spec, by sync.toHost.priorityClasses; empty: none.
 * False: its class is not granted. */
bool translate_priority_map(const struct config *config, const cJSON *spec, struct str *ret);
/* The host's PriorityClass of a pod with this spec in a pool with tiers; never empty. */
struct str translate_priority_tier(const struct translate_tenant *t, const struct config_pool *pool,
                                   const cJSON *spec);
int translate_priority_check(const struct config *config, const cJSON *pod,
                             struct err *err) MUST_CHECK;

/* ---- name.c ---- */

/* The host name of what the tenant's object must not reach: no object ever has it. */
void translate_denied_name(const struct translate_tenant *t, struct str ns, struct str name,
                           char out[64]);

/* ---- labels.c: whose pods a selector may see ---- */

/* Is it a label of the host's nodes by which storage may name places: of the zone or the region, or
 * one that the admin listed? */
bool translate_topology_key(struct str key, struct str_list listed);

size_t translate_namespaces_count(const struct translate_tenant *t); /* of those that are known */
/* Virtual namespaces: `all` of the tenant, or those listed (none: nothing matches). */
struct scope {
    const struct str *namespaces;
    size_t n;
    bool all;
};
/* The namespaces that a term with these members means, from namespace ns: a namespaceSelector would
 * see the host's, so it becomes the names of those of the tenant's that it selects. Either may be
 * NULL. */
struct scope translate_labels_scope(struct arena *a, const struct translate_tenant *t,
                                    struct str ns, const cJSON *named, const cJSON *selector);
/* A metav1.LabelSelector, translated and narrowed to the scope; NULL stays NULL (matches nothing).
 */
cJSON *translate_labels_selector(struct arena *a, const struct translate_tenant *t,
                                 struct scope scope, const cJSON *selector);
/* Adds a term to a translated selector: key in (or not in) one value. */
void translate_labels_selector_add(struct arena *a, cJSON *selector, struct str key,
                                   const char *operator_, struct str value);
bool translate_labels_key_listed(struct str key, struct str_list allow);
void translate_labels_drop_written_by_both(cJSON *labels); /* of metadata, not of selectors */

/* ---- metadata.c ---- */

/* Does an annotation of this key go down as it is? */
bool translate_annotation_listed(const struct translate_tenant *t, struct str key);
/* The host key under which an annotation that is not allow-listed goes down for a downward API
 * volume. */
struct str translate_metadata_hashed_key(struct arena *a, struct str key);
/* translate_metadata() with these annotations of the tenant's; NULL: those that the admin
 * allows. */
cJSON *translate_metadata_with(struct arena *a, const struct translate_tenant *t,
                               const cJSON *vobject, struct str host_name,
                               const cJSON *annotations);

/* ---- host_patch.c ---- */
struct config_host_patches;
void translate_host_patch(struct arena *a, const struct config_host_patches *patches, cJSON *host);

/* ---- message.c ---- */

/* A virtual name that may occur under its host name, which is computed when a message needs it. */
struct message_name {
    struct str name;
    char host[64];
};
/* translate_text_up, with further virtual names of the namespace: those that cannot be derived from
 * their host names, for length or characters. */
struct message_names {
    struct str host_name, ns, name;
    struct message_name *more;
    size_t n_more;
    bool ready;   /* the host names of `more` are computed */
    bool refusal; /* a message of the host's API: addresses of connections in it are the host's */
    bool program; /* it is of the tenant's program: only names of objects in it are the host's */
    bool others;  /* set: a word has the form of our host names, and is none of namespace ns */
};
struct str translate_message_up(struct arena *a, const struct translate_tenant *t, struct str text,
                                struct message_names *names);

/* ---- scheduling.c ---- */

/* Translates a message that counts the host's nodes to the number of nodes the tenant is shown;
 * false for any other message. */
bool translate_scheduling_up(struct arena *a, struct str text, size_t shown, struct str *ret);

/* ---- map_patch.c ---- */

/* May this key, which the wanted map lacks, be removed? */
typedef bool (*map_drop_cb)(void *ctx, struct str key);
/* What turns now into wanted, as a merge patch; NULL when nothing differs. may_drop NULL: all may.
 */
cJSON *translate_map_patch(struct arena *a, const cJSON *now, const cJSON *wanted,
                           map_drop_cb may_drop, void *ctx);
/* The members of an object in the order of their keys; none for anything else. */
struct members {
    const cJSON **items;
    size_t n;
};
struct members translate_map_sorted_members(struct arena *a, const cJSON *map);
/* Labels and annotations we own that differ, as a patch of metadata; NULL when none does. */
cJSON *translate_map_patch_metadata(struct arena *a, const cJSON *host_now,
                                    const cJSON *host_wanted);
